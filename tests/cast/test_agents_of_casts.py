"""Test that a cast has its own agents (R47), which changes to the workbench or to other casts do not affect."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.errors import MateriaError

YES = {"satisfied": True, "context": "good"}


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path, bundled=False)
    bench.load({**h.chain_config(3), "activeLoadout": "T"} | _two())
    yield bench
    bench.close()


def _two():
    """Return a config with two loadouts: one with Say and Judge, and one with a utility."""
    document = h.config(
        {"Socket-1": h.at("Say", ("always", "Socket-2")), "Socket-2": h.at("Judge", parse="json")},
        {"Say": h.agent(), "Judge": h.agent(), "Run": h.python("print(1)", parse="text")},
    )
    (loadout,) = document["loadouts"].values()
    other = {
        "entry": "Socket-1",
        "sockets": {"Socket-1": h.at("Run", ("always", "Socket-2")), "Socket-2": h.at("Say")},
    }
    return {"materia": document["materia"], "loadouts": {"T": loadout, "U": other}}


def said(cast):
    cast.run()
    return [step.output for step in cast.steps]


def speak(*words):
    """Return a Say agent that gives the specified text, and a Judge agent that is satisfied."""
    return {"Say": lambda: " ".join(words), "Judge": lambda: YES}


# -- who answers ----------------------------------------------------------------------------------------


def test_r47_agent_set_for_one_cast_does_not_answer_in_other_casts(wb):
    for name, agent in speak("bench").items():
        wb.agent(name, agent)
    one, other = wb.cast("a"), wb.cast("b")
    one.agents.set("Say", lambda: "own")
    later = wb.cast("c")
    assert [said(cast)[0] for cast in (one, other, later)] == ["own", "bench", "bench"]


def test_r47_fork_begins_with_a_copy_of_the_agents(wb):
    parent = wb.cast("g", agents=speak("parent"))
    parent.step()
    fork = parent.fork(0)
    assert fork.agents.for_turn("Socket-1", "Say") is parent.agents.for_turn("Socket-1", "Say")
    fork.agents.set("Judge", lambda: YES | {"context": "fork only"})
    parent.agents.set("Say", lambda: "parent only")
    assert said(parent)[1] == '{"satisfied":true,"context":"good"}'
    assert said(fork) == ["parent", '{"satisfied":true,"context":"fork only"}']


def test_r47_fork_changes_neither_its_cast_nor_the_workbench(wb):
    for name, agent in speak("bench").items():
        wb.agent(name, agent)
    fork = wb.cast("g").fork()
    fork.agents.set("Judge", "person")
    assert wb.cast("next").run() == "complete"
    wb.agent("Say", lambda: "late")
    assert fork.run() == "person"
    assert fork.steps[0].output == "late"


def test_r47_agent_set_under_the_name_star_is_the_default_agent(wb):
    cast = wb.cast("c")
    cast.agents.set("*", lambda: "everyone")
    assert cast.agents.default.name == "<lambda>"
    assert cast.step().output == "everyone"
    wb.agents.set("*", lambda: "bench")
    assert wb.cast("d").step().output == "bench"
    cast.agents.remove("*")
    cast.back(0)
    assert cast.step().output == "bench"


@pytest.mark.parametrize("name", ["Nosuch", "Socket-99", ""])
def test_r47_agent_for_an_unknown_name_is_refused_by_every_method(wb, name):
    told = []
    cast = wb.cast("c")
    for refuse in (
        lambda: wb.agent(name, "person"),
        lambda: wb.agent(name),
        lambda: wb.agents.set(name, "person"),
        lambda: cast.agents.set(name, "person"),
        lambda: cast.fork().agents.set(name, "person"),
        lambda: wb.cast("d", agents={name: "person"}),
        lambda: wb.open(cast.id).agents.set(name, "person"),
    ):
        with pytest.raises(MateriaError) as refused:
            refuse()
        told.append((refused.value.kind, refused.value.what))
    assert set(told) == {("unknown_materia", f"No materia or socket is called {name!r}.")}


def test_agent_for_a_utility_is_refused_in_a_cast(wb):
    cast = wb.cast("c", loadout="U")
    for name in ("Socket-1", "Run"):
        with pytest.raises(MateriaError, match="which runs a process") as refused:
            cast.agents.set(name, lambda: "x")
        assert refused.value.kind == "not_an_agent"
    cast.agents.set("*", lambda: "x")
    assert said(cast)[1] == "x"


@pytest.mark.parametrize("name", ["Say", "Socket-1", "*"])
def test_r47_agents_of_a_cast_survive_later_changes_to_the_workbench(wb, name):
    told = wb.cast("c", agents={name: lambda: "told"})
    set_later = wb.cast("c")
    set_later.agents.set(name, lambda: "told")
    follows = wb.cast("c")
    wb.agent(name, lambda: "late")
    assert [cast.step().output for cast in (told, set_later, follows)] == ["told", "told", "late"]


def test_r47_linked_casts_have_separate_agents(wb):
    wb.agent("*", lambda turn: YES if turn.socket_id == "Socket-2" else "bench")
    link = wb.link("T", "T", request="r")
    link.agents.set("Socket-3", lambda: "linked")
    other = wb.link("T", "T", request="r")
    assert [[step.output for step in one.steps] for one in (link, other) if one.run(steps=3)] == [
        ["bench", '{"satisfied":true,"context":"good"}', "linked"],
        ["bench", '{"satisfied":true,"context":"good"}', "bench"],
    ]
    wb.agent("Socket-1", lambda: "late")
    again = wb.link("T", "T", request="r")
    again.run(steps=3)
    assert [again.steps[0].output, again.steps[2].output] == ["late", "late"], "in both parts"
    assert again.fork(0).step().output == "late"


def test_r47_quest_uses_the_agents_of_its_workbench(wb):
    for name, agent in speak("bench").items():
        wb.agent(name, agent)
    wb.quests.add("one")
    wb.quests.add("two")
    wb.quests.run(1)
    first = wb.current
    first.agents.set("Say", "person")
    first.agents.set("*", "person")
    assert wb.quests.run() == "empty"
    assert wb.current is not first
    assert wb.current.steps[0].output == "bench"


# -- from where a fork goes on --------------------------------------------------------------------------


def test_r55_fork_contains_only_edits_made_before_the_forked_step(wb):
    cast = wb.cast("c", agents=speak("said"))
    cast.step()
    cast.edit.state({"mood": "wet"})
    assert (dict(cast.fork().state), dict(cast.fork(1).state)) == ({"mood": "wet"}, {})
    cast.step()
    cast.edit.set("late", 1)
    assert dict(cast.fork().state) == {"mood": "wet", "late": 1, "context": "[Socket-2 Judge] good"}
    for number in (0, 1, 2):
        fork, then = cast.fork(number), cast.at(number)
        assert (dict(fork.state), fork.route) == (dict(then.state), then.route)
        h.assert_same(wb.open(fork.id), fork)


def test_r55_fork_of_a_waiting_cast_also_waits(wb):
    cast = wb.cast("c", agents={"Say": "person"})
    cast.run()
    cast.edit.set("meanwhile", 1)
    for fork in (cast.fork(), cast.fork(1), cast.fork(-1)):
        assert (fork.status, fork.state["meanwhile"]) == ("waiting", 1)
        fork.reply("x")
        assert cast.status == "waiting"


@pytest.mark.parametrize("project", [5, None, b"x", ["a"], {}])
def test_invalid_project_path_raises_a_clear_error(project):
    with pytest.raises(MateriaError, match="the path is not valid"):
        Workbench(project)
