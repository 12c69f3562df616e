"""Test casts that run several linked loadouts, and casts that continue an earlier cast."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.cast.project_casts import MAX_CONTEXT, MAX_OUTPUT, MAX_REQUEST, MAX_TITLES
from materia_nb.errors import MateriaError
from materia_nb.magics.magic import next_words


@pytest.fixture
def shell(bench):
    return new_shell(bench)


def line(shell, text):
    return shell.run_line_magic("materia", text)


def test_two_linked_loadouts_run_as_one_cast_with_one_request(bench):
    bench.agent("Answer", lambda turn: f"answered {turn.request}")
    cast = bench.link("Ask", "Plan-Build-Eval", request="ship it")
    assert cast.run() == "complete"
    assert cast.now.engine.request == "ship it"
    materia = [cast.graph.sockets[step.socket].materia.id for step in cast.steps]
    assert materia[:6] == ["Answer", "Plan", "Build", "Eval", "Build", "Eval"]
    assert materia[-1] == "Narrate"
    stored = json.loads((cast.run_dir / "config.resolved.json").read_text())
    assert list(stored["loadouts"]) == ["Ask + Plan-Build-Eval"]
    assert "Ask + Plan-Build-Eval" not in bench.loadouts, "it is there for this cast only"
    cast.close()
    h.assert_same(bench.open(cast.id), cast)


def test_agent_set_by_socket_id_answers_for_the_linked_socket_with_this_id(bench):
    bench.agent("Answer", lambda: "by the materia")
    bench.agent("Socket-1", lambda turn: f"by the socket {turn.socket_id}")
    bench.agent("Socket-2", lambda: "of another place")
    cast = bench.link("Ask", "Ask", "Hello", request="r")
    cast.run(steps=2)
    assert [step.turns[-1].text for step in cast.steps] == [
        "by the socket Socket-1",
        "by the socket Socket-2",
    ]


def test_agent_set_for_a_socket_of_another_loadout_does_not_answer(bench):
    bench.agent("Socket-3", lambda: "of another loadout")
    bench.agent("*", lambda: {"satisfied": True, "context": "by everyone"})
    cast = bench.link("Hello", "Teach-Rework", request="r")
    cast.run(steps=3)
    assert "by everyone" in cast.steps[2].turns[-1].text


def test_agents_set_after_linking_loadouts_answer_in_the_linked_cast(bench):
    cast = bench.link("Ask", "Ask", request="r")
    bench.agent("*", lambda: "late")
    assert cast.run() == "complete"
    assert cast.now.engine.last_output == "late"


def test_invalid_link_of_loadouts_starts_no_cast(bench):
    for names, kind in ([("Akt",), "unknown_part"], [(), "unknown_part"]):
        with pytest.raises(MateriaError) as caught:
            bench.link(*names, request="r")
        assert caught.value.kind == kind
    with pytest.raises(MateriaError):
        bench.link("Ask", request="r", from_cast="no-such-cast")
    with pytest.raises(MateriaError, match="must be a string"):
        bench.link("Ask", request=3)
    assert not bench.casts()


# -- what an earlier cast tells ---------------------------------------------------------------


def test_state_of_a_linked_cast_contains_a_summary_of_the_earlier_cast(bench, project):
    bench.agent("Eval", lambda: {"satisfied": True, "context": "found a well"})
    earlier = bench.cast("dig")
    earlier.run()
    bench.agent("Chain-Context", lambda: "an account")
    cast = bench.link("Chain-Context", "Ask", request="go on", from_cast=earlier.id)
    told = cast.state["previous"]
    assert told["request"] == "dig"
    assert (told["cast"], told["loadout"], told["status"]) == (earlier.id, "Plan-Build-Eval", "complete")
    assert (told["lastOutput"], told["workItems"]) == ("told", ["a", "b", "c"])
    assert "found a well" in told["context"]
    cast.step()
    assert "found a well" in cast.steps[0].prompt.text
    assert "dig" in cast.steps[0].prompt.text
    cast.close()
    with Workbench_(project) as other:
        resumed = other.resume(cast.id)
        h.assert_same(resumed, cast)
        fork = resumed.fork(1)
        assert fork.state["previous"] == told
        fork.close()


class Workbench_(Workbench):  # noqa: N801 - only to be closed
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def test_summary_of_an_earlier_cast_has_a_maximum_length(bench):
    bench.agent("Plan", lambda: {"workItems": h.items(*["t" * 900] * 80), "context": "c" * 9000 + "END"})
    earlier = bench.cast("r" * 9000)
    earlier.run(steps=1)
    told = bench.link("Ask", request="r", from_cast="-1").state["previous"]
    assert len(told["request"]) == MAX_REQUEST
    assert len(told["lastOutput"]) == MAX_OUTPUT
    assert len(told["context"]) == MAX_CONTEXT
    assert told["context"].endswith("END")
    assert len(told["workItems"]) == MAX_TITLES
    assert len(json.dumps(told)) < 25_000


def test_state_has_no_summary_if_there_is_no_earlier_cast(bench):
    cast = bench.link("Ask", request="r")
    assert dict(cast.state) == {}
    assert "state" not in h.lines_of(cast)[0]["data"]


# -- the verb -----------------------------------------------------------------------------------


def test_link_verb_reads_the_request_after_two_dashes(shell, bench):
    first = line(shell, "link Ask Plan-Build-Eval -- ship -- the widget")
    assert first.now.engine.request == "ship -- the widget"
    assert len(first.graph.sockets) == 6
    second = line(shell, f"link materia:Answer --from {first.id} -- why?")
    assert second.state["previous"]["request"] == "ship -- the widget"
    assert bench.current is second
    third = shell.run_cell_magic("materia", "link Ask Hello", "two\nlines")
    assert third.now.engine.request == "two\nlines"


@pytest.mark.parametrize("text", ["link", "link -- ship", "link Ask", "link Ask --form -1 -- x"])
def test_incomplete_link_command_shows_its_usage(shell, text):
    with pytest.raises(MateriaError) as caught:
        line(shell, text)
    assert caught.value.kind == "usage"


def test_link_verb_completes_loadouts_only_before_the_two_dashes(bench):
    bench.loadouts.define_materia("Ask", {"tools": "none", "prompt": "p"})
    offered = next_words(lambda: bench, ["link"])
    assert {"Full-Auto", "Detect-VCS", "loadout:Ask", "materia:Ask", "--from"} <= set(offered)
    assert "Ask" not in offered
    assert "Full-Auto" in next_words(lambda: bench, ["link", "A", "B"])
    assert "Full-Auto" not in next_words(lambda: bench, ["link", "A", "--"])
    bench.cast("x", loadout="Full-Auto")
    assert next_words(lambda: bench, ["link", "A", "--from"]) == [bench.current.id]
