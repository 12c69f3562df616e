"""Test that changing one of two casts does not change the other, in memory or on disk (R47)."""

from __future__ import annotations

import inspect
from contextlib import nullcontext

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents import AgentTable
from materia_nb.cast import open_cast
from materia_nb.cast.breakpoint import Breakpoint
from materia_nb.cast.cast_breakpoints import CastBreakpoints
from materia_nb.cast.edits import Approvals, Edits, Labels, Pins, resolve_pin
from materia_nb.display.blocks import Displayable
from materia_nb.errors import MateriaError


def document():
    config = h.loop_config()
    config["activeLoadout"] = "T"
    config["loadouts"] = {"T": next(iter(config["loadouts"].values()))}
    return config


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path, bundled=False)
    bench.load(document())
    for name, agent in h.loop_agents().items():
        bench.agent(name, agent)
    yield bench
    bench.close()


def to_an_item(cast):
    """Run until the first item is done and the second one waits."""
    cast.run(steps=3)
    cast.step(ask=False)
    return cast


def two_casts(wb):
    return wb.cast("r"), wb.cast("r")


def parent_and_fork(wb):
    parent = wb.cast("r")
    return parent, parent.fork()


def fork_and_parent(wb):
    return parent_and_fork(wb)[::-1]


def two_forks(wb):
    parent = wb.cast("r")
    return parent.fork(), parent.fork()


def forks_late(wb):
    parent = to_an_item(wb.cast("r"))
    return parent.fork(), parent


def quests(wb):
    made = []
    for title in ("one", "two"):
        wb.quests.add(title)
        wb.quests.run(1)
        made.append(wb.current)
        wb.current.back(0)
    return made


def links(wb):
    return wb.link("T", "T", request="r"), wb.link("T", "T", request="r")


def rows(wb):
    swept = wb.sweep("T", "r", repeat=2, progress=False)
    return [wb.resume(row.open().run_dir).fork(0) for row in swept]


KINDS = (two_casts, parent_and_fork, fork_and_parent, two_forks, forks_late, quests, links, rows)


def shout(text: str) -> str:
    return text.upper()


WAYS = {
    Edits: {
        "items": lambda cast: cast.edit.items([*cast.now.work_items, h.item("more")]),
        "again": lambda cast: cast.edit.again(1),
        "abandon": lambda cast: cast.edit.abandon(),
        "set": lambda cast: cast.edit.set("mood", {"a": [1]}),
        "state": lambda cast: cast.edit.state({**cast.state, "x": 1}),
        "prompt": lambda cast: cast.edit.prompt("task", "Reworded."),
        "redefine": lambda cast: cast.edit.redefine(
            cast.graph.sockets["Socket-2"].materia.id,
            document()["materia"]["Build"] | {"description": "with care"},
        ),
        "undo": lambda cast: (cast.edit.set("a", 1), cast.edit.undo()),
        "output": lambda cast: (
            cast.back(1),
            cast.edit.output({"workItems": h.items("p", "q", "r")}),
        ),
        "budget": lambda cast: cast.edit.budget(7, max_cost_usd=1.5),
        "budget_in_words": lambda cast: cast.edit.budget_in_words("3 USD"),
        "remember": lambda cast: cast.edit.remember(1),
    },
    Labels: {
        "add": lambda cast: (cast.labels.add(1, note="n", verdict="bad"), cast.labels.add(tag="t", name="x")),
        "undo": lambda cast: (cast.labels.add(tag="t"), cast.labels.undo()),
    },
    Pins: {
        "add": lambda cast: (cast.pins.add("Socket-2", "pinned"), cast.pins.add("Socket-3", lambda: "f")),
        "put": lambda cast: cast.pins.put("Socket-2", resolve_pin(None, "Socket-2", "chosen")),
        "remove": lambda cast: (cast.pins.add("Socket-2", "pinned"), cast.pins.remove("Socket-2")),
    },
    CastBreakpoints: {
        "add": lambda cast: cast.breakpoints.add("Socket-3"),
        "put": lambda cast: cast.breakpoints.put(Breakpoint("before", "Socket-3")),
        "watch": lambda cast: cast.breakpoints.watch("mood"),
        "every": lambda cast: cast.breakpoints.every(10, "turns", "Socket-2"),
        "toggle": lambda cast: (
            cast.breakpoints.add("Socket-3"),
            cast.breakpoints.toggle(next(iter(cast.breakpoints))),
        ),
        "remove": lambda cast: (cast.breakpoints.add("Socket-3"), cast.breakpoints.remove(*cast.breakpoints)),
        "clear": lambda cast: cast.breakpoints.clear(),
        "change": lambda cast: cast.breakpoints.change(lambda own: []),
    },
    AgentTable: {
        "set": lambda cast: (cast.agents.set("Socket-2", lambda: "x"), cast.agents.set("*", "person")),
        "add_tool": lambda cast: cast.agents.add_tool(shout),
        "remove": lambda cast: (cast.agents.remove("Socket-2"), cast.agents.remove("*")),
        "copy": lambda cast: cast.agents.copy().set("Socket-2", "person"),
        "frozen": lambda cast: cast.agents.frozen().set("Socket-2", "person"),
    },
    Approvals: {
        "allow": lambda cast: cast.approvals.allow("bash", "edit"),
        "disallow": lambda cast: (cast.approvals.allow("bash"), cast.approvals.disallow()),
        "answer": lambda cast: cast.approvals.answer("yes"),
        "approve": lambda cast: cast.approvals.approve(always=True),
        "deny": lambda cast: cast.approvals.deny("no"),
        "decide": lambda cast: cast.approvals.decide(satisfied=True),
        "in_lane": lambda cast: cast.approvals.in_lane("one").approve(),
    },
}
REFUSED = {"in_lane", "remember", "answer", "approve", "deny", "decide"}
"""Methods that are refused because the cast does not wait for them; a refusal must not change any cast either."""
ON_A_FORK = {"abandon", "output", "prompt", "again"}
"""Methods that are called on a fork, because the other methods would no longer be possible after them."""
LOOKS = {
    Labels: {"of"},
    Pins: {"get", "items", "keys", "values"},
    CastBreakpoints: {"copy_from", "follow", "reached"},
    AgentTable: {"describe", "for_turn"},
}
"""Methods that do not change a cast, or that only the workbench calls when it creates a cast."""


def known(cast):
    """Return the state of a cast in memory."""
    return {
        "known": h.facts(cast),
        "agents": [cast.agents.for_turn(name, one.materia.id) for name, one in cast.graph.sockets.items()],
        "default": cast.agents.describe(),
        "breakpoints": list(cast.breakpoints),
        "prompt": str(cast.now.prompt),
        "rules": cast.runner.rules,
    }


def kept(cast):
    """Return the contents of every file of a cast on disk, except its lock."""
    cast.export.derived_files()
    return {
        path.relative_to(cast.run_dir): path.read_bytes()
        for path in cast.run_dir.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def check_same(cast, before, done):
    for now, wanted in zip((known(cast), kept(cast)), before, strict=True):
        for name in {*now, *wanted}:
            assert now.get(name) == wanted.get(name), (done, name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_r47_changes_to_one_cast_do_not_affect_other_casts(wb, kind):
    one, other = kind(wb)
    for cast in (one, other):
        if not cast.steps:
            to_an_item(cast)
    before, reopened = (known(other), kept(other)), h.facts(open_cast(other.run_dir))
    begun, changed = one.fork(), set()
    for part, ways in WAYS.items():
        for name, way in ways.items():
            cast = begun.fork() if name in ON_A_FORK else one
            mine = known(cast)
            with pytest.raises(MateriaError) if name in REFUSED else nullcontext():
                way(cast)
            if known(cast) != mine:
                changed.add(name)
            check_same(other, before, (part.__name__, name))
        assert h.facts(open_cast(other.run_dir)) == reopened, part
    assert changed >= {"items", "set", "redefine", "output", "budget", "add", "put", "watch", "allow"}
    one.abort()
    check_same(other, before, "abort")
    assert other.run() == "complete"


@pytest.mark.parametrize("part", WAYS, ids=lambda part: part.__name__)
def test_every_public_method_that_changes_a_cast_is_tested(part):
    public = {
        name
        for name, _ in inspect.getmembers(part, inspect.isfunction)
        if name[0] != "_" and not hasattr(Displayable, name)
    }
    assert public - LOOKS.get(part, set()) == set(WAYS[part])
