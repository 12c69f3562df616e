"""Test pins, with which a person fixes the answer of a socket or a materia, including utilities (R40)."""

from __future__ import annotations

import json

import pytest

from cast_helpers import agent, at, config, lines_of, python, start, types_of
from materia_nb import MateriaError, Workbench
from materia_nb.cast import open_cast, resume_cast
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.magics.registry import Call, find_verb
from materia_nb.store.journal import Journal

REAL = "import sys; open('ran', 'a').write('x'); print('{\"state\": {\"by\": \"process\"}}')"
PIN = {"state": {"by": "pin"}}


@pytest.fixture
def bench(project):
    """Return a workbench with a utility and an agent whose prompt contains the output of the utility."""
    new_bench = Workbench(project, bundled=False)
    new_bench.load(
        config(
            {"Socket-1": at("Count", ("always", "Socket-2")), "Socket-2": at("Tell")},
            {"Count": python(REAL, parse="json"), "Tell": agent("Tell {{state.by}}")},
        )
    )
    new_bench.agent("Tell", lambda prompt: f"told: {prompt.splitlines()[0]}")
    yield new_bench
    new_bench.close()


def test_pinned_utility_starts_no_process_and_uses_the_pinned_text_as_stdout(bench):
    cast = bench.cast("go", pins={"Count": json.dumps(PIN)})
    assert cast.run() == "complete"
    assert cast.state["by"] == "pin"
    assert not (bench.project / "ran").exists()
    assert "utility_command" not in types_of(cast)
    assert cast.steps[0].output == json.dumps(PIN)


def test_pinned_text_that_is_not_json_fails_like_invalid_stdout(bench):
    cast = bench.cast("go", pins={"Count": "no json"})
    assert cast.run() == "failed"
    assert cast.failure.kind == "invalid_output"


def test_pinned_text_needs_one_journal_write_and_a_pinned_function_needs_two(bench, monkeypatch):
    writes, append = [], Journal.append
    monkeypatch.setattr(
        Journal,
        "append",
        lambda self, lines: (writes.append([line.type for line in lines]), append(self, lines)),
    )
    cast = bench.cast("go", pins={"Count": json.dumps(PIN)})
    del writes[:]
    cast.step()
    cast.step()
    assert writes == [["socket_start", "socket_complete"], ["socket_start"], ["socket_complete"]]


def test_pin_of_a_socket_takes_precedence_over_the_pin_of_its_materia(bench):
    cast = bench.cast("go", pins={"Tell": "by materia", "Socket-2": "by socket"})
    cast.run()
    assert cast.steps[1].output == "by socket"


def test_pinned_function_receives_the_input_of_the_process(bench):
    cast = bench.cast("go", pins={"Count": lambda prompt: {"state": {"by": json.loads(prompt)["request"]}}})
    cast.run()
    assert cast.state["by"] == "go"
    assert not (bench.project / "ran").exists()


def test_exception_in_a_pinned_function_fails_the_cast_and_names_the_function(bench):
    def broken():
        raise ValueError("nothing there")

    cast = bench.cast("go", pins={"Count": broken})
    assert cast.run() == "failed"
    assert "broken" in cast.failure.message
    cast.pins.add("Count", PIN)
    cast.retry()
    assert cast.state["by"] == "pin"


def test_pinned_function_without_a_result_fails_the_cast(bench):
    cast = bench.cast("go", pins={"Count": lambda: None})
    assert cast.run() == "failed"


def test_latest_output_is_pinned_by_default(bench):
    cast = bench.cast("go")
    cast.run()
    cast.back(0)
    pin = cast.pins.add("Count")
    (bench.project / "ran").unlink()
    cast.run()
    assert pin.words == "its output in step 1"
    assert cast.state["by"] == "process"
    assert not (bench.project / "ran").exists()


def test_output_of_an_earlier_visit_can_be_pinned(bench):
    cast = bench.cast("go")
    cast.run()
    with pytest.raises(MateriaError, match="visit 2"):
        cast.pins.add("Socket-1", visit=2)
    assert cast.pins.add("Socket-1", visit=1).words == "its output in step 1"


def test_socket_without_an_output_cannot_be_pinned(bench):
    with pytest.raises(MateriaError) as caught:
        bench.cast("go").pins.add("Count")
    assert caught.value.kind == "no_output"


def test_pin_to_another_cast_replays_the_output_of_each_visit(bench):
    earlier = bench.cast("go", pins={"Count": PIN})
    earlier.run()
    cast = bench.cast("again", pins={"Count": earlier, "Socket-2": f"recorded:{earlier.id}"})
    cast.run()
    assert [step.output for step in cast.steps] == [step.output for step in earlier.steps]
    assert cast.steps[1].pinned == f"the cast {earlier.id}"


def test_visit_that_is_missing_from_the_pinned_cast_fails_with_a_reason(bench):
    earlier = bench.cast("go", pins={"Count": PIN})
    earlier.run()
    cast = bench.cast("again", pins={"Socket-1": earlier})
    cast.run()
    cast.back(0)
    loop = start(
        bench.project,
        config({"Socket-1": at("M", ("always", "Socket-1", 1))}, {"M": agent()}),
    )
    loop.pins.add("Socket-1", earlier)
    assert loop.run() == "failed"
    assert loop.failure.kind == "pin_exhausted"
    assert "visit 2" in loop.failure.message


def test_recording_file_can_be_pinned(bench, project):
    earlier = bench.cast("go", pins={"Count": PIN})
    earlier.run()
    earlier.export.recording(project / "r.json")
    cast = bench.cast("again", pins={"Count": PIN, "Tell": "recorded:r.json"})
    cast.run()
    assert cast.steps[1].output == earlier.steps[1].output
    assert cast.steps[1].pinned == "the recording r.json"


def test_pin_is_recorded_in_the_journal_and_the_step(bench):
    cast = bench.cast("go", pins={"Count": PIN})
    cast.run()
    pinned = next(line["data"] for line in lines_of(cast) if line["type"] == "pinned")
    assert (pinned["name"], pinned["to"], pinned["by"]) == ("Count", "a text", "person")
    done = next(line["data"] for line in lines_of(cast) if line["type"] == "socket_complete")
    assert done["pinned"] == "a text"
    assert cast.steps[0].pinned == "a text"
    assert cast.steps[1].pinned is None


def test_pin_is_shown_by_why_status_and_steps(bench):
    from materia_nb.cast.views.status import status_lines, steps_view

    cast = bench.cast("go", pins={"Count": PIN})
    assert "pinned: Count to a text" in status_lines(cast.now)
    cast.run()
    assert "The output was pinned to a text; no process was started." in cast.why(1).lines
    table = steps_view(cast.now)
    assert table.headers[-1] == "pinned to"
    assert [row[-1] for row in table.rows] == ["a text", ""]


def test_steps_of_a_cast_without_pins_have_no_pin_column(bench):
    from materia_nb.cast.views.status import steps_view

    cast = bench.cast("go")
    cast.run()
    assert "pinned to" not in steps_view(cast.now).headers


def test_process_runs_again_after_unpinning(bench):
    cast = bench.cast("go", pins={"Count": PIN})
    cast.pins.remove("Count")
    cast.run()
    assert cast.state["by"] == "process"
    assert "unpinned" in types_of(cast)
    with pytest.raises(MateriaError, match="not pinned"):
        cast.pins.remove("Count")


def test_pinned_text_survives_a_resume(bench):
    cast = bench.cast("go", pins={"Count": PIN, "Tell": "told"})
    cast.pins.remove("Tell")
    cast.close()
    other = resume_cast(cast.run_dir, bench.agents)
    assert dict(other.pins) == dict(cast.pins)
    other.run()
    assert other.steps[0].pinned == "a text"
    assert not (bench.project / "ran").exists()
    other.close()


def test_process_does_not_run_when_a_pinned_function_is_missing(bench):
    from materia_nb.cast.views.status import status_lines

    def mock():
        return PIN

    cast = bench.cast("go", pins={"Count": mock})
    cast.close()
    other = resume_cast(cast.run_dir, bench.agents)
    assert other.now.lost_pins == ("Count",)
    assert any("mock" in line and "lost" in line for line in status_lines(other.now))
    with pytest.raises(MateriaError) as caught:
        other.step()
    assert caught.value.kind == "pin_gone"
    assert not (bench.project / "ran").exists()
    other.pins.add("Count", mock)
    other.run()
    assert other.state["by"] == "pin"
    other.close()


def test_read_only_cast_shows_the_pins_of_its_journal(bench):
    cast = bench.cast("go", pins={"Count": PIN})
    cast.run()
    seen = open_cast(cast.run_dir)
    assert [step.pinned for step in seen.steps] == ["a text", None]
    assert list(seen.pins) == ["Count"]


def test_fork_keeps_pins_and_pinned_functions(bench):
    cast = bench.cast("go", pins={"Count": lambda: PIN, "Tell": "told"})
    cast.run()
    fork = cast.fork(1)
    assert fork.pins == cast.pins
    fork.back(0)
    fork.run()
    assert [step.output for step in fork.steps][1] == "told"
    assert fork.now.lost_pins == ()
    fork.close()


def test_going_back_keeps_the_pins(bench):
    cast = bench.cast("go")
    cast.run()
    cast.pins.add("Tell", "other")
    cast.back(1)
    cast.run()
    assert cast.steps[1].output == "other"


def test_past_snapshot_shows_its_pins(bench):
    cast = bench.cast("go", pins={"Count": PIN})
    cast.run(steps=1)
    cast.pins.remove("Count")
    cast.run()
    assert list(cast.at(1).pins) == ["Count"]
    assert not cast.at(2).pins


def test_error_for_an_unknown_pin_name_suggests_the_nearest_name(bench):
    with pytest.raises(MateriaError, match="Cuont") as caught:
        bench.cast("go", pins={"Cuont": "x"})
    assert "Count" in caught.value.hint


def test_invalid_pin_is_refused(bench):
    with pytest.raises(MateriaError) as caught:
        bench.cast("go", pins={"Count": 7})
    assert caught.value.kind == "bad_pin"


def test_cast_refused_because_of_its_pins_leaves_no_files(bench):
    before = len(bench.casts())
    with pytest.raises(MateriaError):
        bench.cast("go", pins={"Count": 7})
    assert len(bench.casts()) == before


# -- the workbench ------------------------------------------------------------------------


def test_pin_of_the_workbench_applies_to_current_and_new_casts(bench):
    cast = bench.cast("go")
    bench.pin("Count", PIN)
    cast.run()
    other = bench.cast("again")
    other.run()
    assert [cast.state["by"], other.state["by"]] == ["pin", "pin"]
    bench.unpin("Count")
    assert not bench.agents.pins
    third = bench.cast("once more")
    third.run()
    assert third.state["by"] == "process"


def test_pin_of_a_socket_applies_only_to_its_loadout(bench):
    bench.pin("Socket-2", "told")
    bench.loadouts.define("Other", {"sockets": {"Socket-2": {"materia": "Tell"}}, "entry": "Socket-2"})
    assert not bench.cast("go").pins
    assert list(bench.cast("go", loadout="T").pins) == ["Socket-2"]


def test_output_of_a_complete_cast_is_pinned_for_the_next_cast(bench):
    bench.cast("go").run()
    bench.pin("Count")
    (bench.project / "ran").unlink()
    cast = bench.cast("again")
    cast.run()
    assert cast.steps[0].pinned == "its output in step 1"
    assert not (bench.project / "ran").exists()


# -- the magics ------------------------------------------------------------------------------


def magic(bench, verb, body=None, /, **given):
    """Return a function that calls a verb in the same manner as the magic command."""
    return find_verb(verb).handler(Call(bench, given, body, {}))


def test_pin_verb_pins_the_text_of_a_cell_and_lists_pins(bench):
    bench.cast("go")
    shown = magic(bench, "pin", json.dumps(PIN), name="Count")
    assert shown.rows == [("Count", "a text", "this cast and later ones", json.dumps(PIN))]
    assert bench.current.step().pinned == "a text"
    assert repr(magic(bench, "pin", name="Count", off=True)) == "nothing is pinned"


def test_pin_verb_without_arguments_pins_the_latest_output(bench):
    bench.cast("go").run()
    magic(bench, "pin", name="Socket-1")
    assert magic(bench, "pin").rows[0][:3] == ("Socket-1", "its output in step 1", "later casts, of T")


def test_pin_source_without_an_answer_is_refused(bench):
    bench.pin("Count", PIN)
    with pytest.raises(MateriaError, match="cannot be combined with an answer"):
        magic(bench, "pin", name="Count", off=True, to="x")
    assert list(bench.agents.pins) == ["Count"]
    with pytest.raises(MateriaError, match="The socket or materia is missing"):
        magic(bench, "pin", off=True)


# -- an agent set for a utility --------------------------------------------------------------


@pytest.mark.parametrize("name", ["Count", "Socket-1"])
def test_agent_for_a_utility_is_refused_with_a_hint_to_use_a_pin(bench, name):
    with pytest.raises(MateriaError) as caught:
        bench.agent(name, lambda: PIN)
    assert caught.value.kind == "not_an_agent"
    assert "pin" in caught.value.hint


@pytest.mark.parametrize("name", ["Count", "Socket-1"])
def test_agent_for_a_utility_is_refused_if_it_is_set_for_one_cast(bench, name):
    with pytest.raises(MateriaError) as caught:
        bench.cast("go", agents={name: lambda: PIN})
    assert caught.value.kind == "not_an_agent"
    assert "pins=" in caught.value.hint


def test_script_for_a_utility_raises_an_error(bench):
    with pytest.raises(MateriaError) as caught:
        bench.cast("go", agents={"*": {"Count": "x", "Tell": "y"}})
    assert caught.value.kind == "not_an_agent"


def test_agent_for_a_materia_that_became_a_utility_raises_an_error(bench):
    bench.agent("Tell", lambda: "told")
    bench.loadouts.define_materia("Tell", python("print('told')"))
    with pytest.raises(MateriaError) as caught:
        bench.cast("go")
    assert caught.value.kind == "not_an_agent"


def test_misspelled_agent_name_for_a_cast_raises_an_error(bench):
    with pytest.raises(MateriaError) as caught:
        bench.cast("go", agents={"Tel": lambda: "told"})
    assert caught.value.kind == "unknown_materia"
