"""Test that changing a value returned by a cast, a turn or a workbench does not change its owner (R47)."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import pickle
import threading
from collections.abc import Mapping, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from pathlib import Path
from types import FunctionType, MethodType, ModuleType

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents import AgentTable, FunctionAgent, PersonAgent
from materia_nb.cast import Cast, open_cast
from materia_nb.cast.cast_breakpoints import EditableBreakpoints
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError

MACHINES = (
    Cast,
    Workbench,
    Rules,
    EditableBreakpoints,
    AgentTable,
    FunctionAgent,
    PersonAgent,
    threading.Event,
    Path,
)
"""Types whose attributes may change, because they have methods for that purpose or belong to other packages."""
ROOMS = {"runner", "library"}
"""Attributes that hold internals, which callers change only deliberately."""
NOT_CALLED = (type, ModuleType, FunctionType, MethodType, type(len), str, bytes, int, float, bool, complex)
ASKED = (
    "why",
    "spent",
    "casts",
    "loadout",
    "check",
    "graph",
    "describe",
    "line",
    "of",
    "items",
)
"""Methods that only return a value and need no arguments."""


class Meddler:
    """Tries to change every value that is reachable from an object."""

    def __init__(self):
        self.seen = {}
        self.changed = []

    def meddle(self, root, name):
        todo = [(root, name)]
        while todo:
            one, path = todo.pop()
            if id(one) in self.seen or one is None or isinstance(one, NOT_CALLED) or path.count(".") > 9:
                continue
            if type(one).__module__.split(".")[0] not in ("builtins", "collections", "materia_nb", "types"):
                continue
            self.seen[id(one)] = one
            todo += self._parts(one, path)
            self._change(one, path)

    def _parts(self, one, path):
        found = []
        if isinstance(one, Mapping):
            found += [(value, f"{path}[{key!r}]") for key, value in list(one.items())]
        elif isinstance(one, list | tuple | set | frozenset) or hasattr(type(one), "__iter__"):
            with suppress(Exception):
                found += [(value, f"{path}[{place}]") for place, value in enumerate(one) if place < 200]
        for name in dir(one):
            if name.startswith("_") or name in ROOMS or isinstance(one, (Path, threading.Event)):
                continue
            with suppress(Exception):
                value = getattr(one, name)
                if callable(value) and name in ASKED:
                    value = value()
                found.append((value, f"{path}.{name}"))
        return found

    def _change(self, one, path):
        tries = []
        if isinstance(one, MutableMapping):
            tries += [
                lambda: one.__setitem__("meddled", 1),
                *(self._put(one, key) for key in list(one)),
                one.clear,
            ]
        elif isinstance(one, MutableSequence):
            tries += [
                lambda: one.append("meddled"),
                *(self._put(one, n) for n in range(min(len(one), 5))),
                one.clear,
            ]
        elif isinstance(one, MutableSet):
            tries += [lambda: one.add("meddled"), one.clear]
        if not isinstance(one, MACHINES):
            names = [field.name for field in dataclasses.fields(one)] if dataclasses.is_dataclass(one) else ()
            names = {*names, *getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ())}
            tries += [self._set(one, name) for name in names if not name.startswith("_")]
        for attempt in tries:
            with suppress(Exception):
                attempt()
                self.changed.append((path, type(one).__name__))

    def _put(self, one, key):
        return lambda: one.__setitem__(key, "meddled")

    def _set(self, one, name):
        return lambda: setattr(one, name, "meddled")


def agents(turn_seen=lambda turn: None):
    def check(turn):
        turn_seen(turn)
        return {
            "satisfied": turn.visit != 2,
            "context": f"looked {turn.visit} times",
            "notes": {"deep": [turn.visit]},
        }

    def build(turn):
        turn_seen(turn)
        return f"built {turn.item_label} of {turn.request}"

    return {
        "Plan": lambda: {"workItems": h.items("a", "b"), "plan": {"parts": [{"name": "x"}]}},
        "Build": build,
        "Check": check,
        "Tell": lambda turn: f"told {turn.prompt}",
    }


def document():
    config = h.loop_config(limits={"maxNoAdvanceCycles": 5})
    (loadout,) = config["loadouts"].values()
    loadout["sockets"]["Socket-1"]["assign"] = {"workItems": "$.workItems", "plan": "$.plan"}
    loadout["sockets"]["Socket-3"]["assign"] = {"notes": "$.notes"}
    config["materia"]["Tell"]["prompt"] = "Tell {{stateJson}}"
    return config


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path, bundled=False)
    bench.load(document())
    yield bench
    bench.close()


def begun(wb, seen=lambda turn: None):
    cast = wb.cast("the widget", agents=agents(seen))
    cast.run(steps=3)
    cast.edit.set("plan.more", {"list": [1, {"a": 1}]})
    cast.pins.add("Tell", {"context": "pinned"})
    cast.labels.add(1, note="good")
    cast.run(steps=2)
    cast.pins.remove("Tell")
    return cast


def without_ids(cast):
    """Return the content of a cast, in memory and on disk, without its id and its times."""
    cast.export.derived_files()
    lines = [{"type": line["type"], **line["data"]} for line in h.lines_of(cast)]
    for line in lines:
        line.pop("worked", None)
    text = json.dumps(lines) + repr(h.facts(cast)["state"]) + (cast.run_dir / "config.resolved.json").read_text()
    return text.replace(cast.id, "<cast>").replace(str(lines[0].get("session")), "<cast>")


def test_r47_changing_returned_values_affects_neither_cast_nor_workbench(wb, tmp_path):
    untouched = begun(wb)
    meddler = Meddler()
    cast = begun(wb, lambda turn: meddler.meddle(turn, "turn"))
    meddler.meddle(cast, "cast")
    meddler.meddle(cast.at(2), "cast.at(2)")
    meddler.meddle(wb, "wb")
    assert len(meddler.seen) > 1_000
    for one in (cast, untouched):
        one.edit.set("late", {"x": [1]})
        one.run()
    later = begun(wb)
    later.edit.set("late", {"x": [1]})
    later.run()
    h.assert_same(open_cast(cast.run_dir), cast)
    assert cast.status == "complete", meddler.changed[-50:]
    assert without_ids(cast) == without_ids(untouched) == without_ids(later)


def test_r47_returned_state_can_be_read_but_not_changed(wb):
    cast = begun(wb)
    with pytest.raises(MateriaError, match=r"cast\.edit\.set") as refused:
        cast.state["workItems"][0]["title"] = "X"
    assert refused.value.kind == "frozen"
    state = cast.state
    changes = [
        lambda: state.update(a=1),
        lambda: state.pop("plan"),
        lambda: state["workItems"].append(1),
        state["plan"]["parts"].sort,
        lambda: state["plan"].__ior__({"a": 1}),
        lambda: state["workItems"].__iadd__([1]),
        lambda: state.setdefault("b", 2),
        lambda: state["workItems"].__delitem__(0),
        cast.now.work_items[0].clear,
        cast.steps[0].turns[0].reading.value.clear,
        cast.now.visits.clear,
    ]
    for change in changes:
        with pytest.raises(MateriaError, match="in place"):
            change()
    assert state["workItems"] == h.items("a", "b")
    assert state["plan"] == {"parts": [{"name": "x"}], "more": {"list": [1, {"a": 1}]}}
    assert isinstance(state["plan"], dict)
    assert isinstance(state["workItems"], list)
    assert json.loads(json.dumps(state)) == state == pickle.loads(pickle.dumps(state))  # noqa: S301 - our own
    assert repr(state["plan"]) == str({"parts": [{"name": "x"}], "more": {"list": [1, {"a": 1}]}})


def test_copy_of_a_returned_value_can_be_changed(wb):
    state = begun(wb).state
    for mine in (copy.deepcopy(state), json.loads(json.dumps(state))):
        mine["workItems"][0]["title"] = "mine"
        mine["plan"]["parts"].append(1)
    for mine in (dict(state), {**state}, copy.copy(state), state.copy(), state | {}):
        mine["workItems"] = [*state["workItems"], 1]
        assert type(mine) is dict
    for mine in (
        list(state["workItems"]),
        copy.copy(state["workItems"]),
        state["workItems"] + [],
        state["workItems"][:],
    ):
        mine.append(1)
        assert type(mine) is list
    assert state["workItems"] == h.items("a", "b")


def test_every_mutation_of_a_frozen_container_is_refused():
    from materia_nb.jsonvalue import frozen

    for plain in ({"a": 1}, [1]):
        kind, changing = type(plain), []
        for name, _ in inspect.getmembers(kind, callable):
            one = frozen(kind(plain))
            with suppress(Exception):
                getattr(one, name)(*_arguments(name))
            changing += [name] if one != plain and name not in ("__init__", "__reversed__") else []
        assert not changing


def _arguments(name):
    return {
        "__setitem__": (0, 2),
        "__delitem__": (0,),
        "__imul__": (3,),
        "__iadd__": ([1],),
        "__ior__": ({"b": 1},),
        "insert": (0, 2),
        "append": (2,),
        "extend": ([2],),
        "remove": (1,),
        "setdefault": ("b", 1),
        "update": ({"b": 1},),
    }.get(name, ())
