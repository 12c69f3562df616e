"""Test that a redraw rebuilds only the changed parts and shows the same content as a new panel."""

from __future__ import annotations

import json
import os
import random

import pytest

import cast_helpers as h
import stream_helpers
from materia_nb.errors import MateriaError
from materia_nb.widgets import base
from materia_nb.widgets.base import runs_of
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.cast_parts import PARTS, content_parts, dock_names
from materia_nb.widgets.cast_slices import StepRows
from materia_nb.widgets.inspector_tabs import TABS
from panel_helpers import from_page

MESSAGES = int(os.environ.get("MATERIA_MESSAGES", "60"))


@pytest.fixture(autouse=True)
def no_timers(monkeypatch):
    """Disable timers, so that only the test requests redraws."""

    class Never:
        def __init__(self, *_):
            pass

        def cancel(self):
            pass

    monkeypatch.setattr(base, "call_later", Never)


def say(panel, kind, **values):
    panel.guarded(panel.on_message)(from_page(panel, kind, **values))
    panel.runs.wait(60)
    panel.refresh()


def shown_by(panel):
    """Return everything that the page received, except the notice about the latest message."""
    state = panel.front.get_state()
    slices = {part.slice for part in content_parts()}
    told = {
        name: state[name] for name in slices if panel.opened == name or not PARTS.get(name, PARTS["items"]).while_open
    }
    told["surface"] = {**state["surface"], "notice": {}}
    return json.loads(json.dumps({**told, "look": panel.graph.front.look, "flags": panel.graph.front.flags}))


def made_now(panel):
    """Return a new panel for the same cast."""
    fresh = CastPanel(panel.cast)
    fresh.cast, fresh.casts, fresh.runs = panel.cast, panel.casts, runs_of(panel.cast)
    fresh.rows = StepRows(panel.rows.line)
    fresh.rows.shift_count = panel.rows.shift_count
    for name in ("past", "lane", "watched", "selected", "tab", "dock", "compares"):
        setattr(fresh, name, getattr(panel, name))
    fresh.refresh()
    shown = shown_by(fresh)
    fresh.close()
    return shown


def stale(panel):
    """Return the differences from a new panel as part, field and both values."""
    lived, fresh = shown_by(panel), made_now(panel)
    return [
        (name, key, lived[name].get(key), fresh[name].get(key))
        for name in lived
        for key in lived[name].keys() | fresh[name].keys()
        if lived[name].get(key) != fresh[name].get(key)
    ]


def failing(visit):
    if visit % 2:
        raise RuntimeError("gone")
    return "built"


SCENES = {
    "items": (h.loop_config, lambda: h.loop_agents(3, refuse=(1,))),
    "lanes": (stream_helpers.streams_config, stream_helpers.stream_agents),
    "a person": (h.loop_config, lambda: {**h.loop_agents(), "Check": h.Until()}),
    "failures": (h.loop_config, lambda: {**h.loop_agents(), "Build": failing}),
}


def message(dice, panel):
    """Return the kind and fields of a random user message; half of these messages change the state."""
    sockets = [*panel.cast.graph.sockets]
    socket, steps = dice.choice(sockets), len(panel.cast.steps)
    path = dice.choice(["note", "note", "plan.title", "workItems.0.title", "workItems.1.context"])
    text = dice.choice(['"x"', '"y"'] if path.startswith("work") else ["1", "true", "[1]", '"x"', "null"])
    place = dice.choice([{"kind": "before"}, {"kind": "after"}, {"kind": "after", "where": "state.note == 1"}])
    kind = dice.choice(["socket", "socket", "loop", "item"])
    element = {"kind": kind, "id": {"socket": socket, "loop": "L", "item": "1"}[kind]}
    return dice.choice(
        [
            ("set_value", {"path": path, "text": text}),
            ("set_value", {"path": path, "text": text}),
            ("set_value", {"path": path, "text": text}),
            ("undo", {}),
            ("remove_value", {"path": "note"}),
            ("step", {}),
            ("step", {}),
            ("step", {}),
            ("run_item", {}),
            ("run_to", {"socket": socket}),
            ("enter", {}),
            ("reply", {"text": dice.choice([h.YES, h.NO, "nonsense"])}),
            ("retry", {}),
            ("skip", {"note": "not now"}),
            ("by_hand", {"text": "by hand"}),
            ("edit_output", {"text": h.NO}),
            ("items", {"rows": [["new", "one", None, False], ["other", "two", None, False]]}),
            ("back", {"step": dice.randint(0, steps)}),
            ("line", {"line": dice.choice([None, 0])}),
            ("look", {"step": dice.randint(0, steps)}),
            ("row", {"row": dice.randint(0, steps + 3)}),
            ("now", {}),
            ("tab", {"tab": dice.choice([*TABS, "answer", "answer"])}),
            ("dock", {"dock": dice.choice(dock_names())}),
            ("select", {"element": dice.choice([None, None, element])}),
            ("lane", {"lane": dice.choice(["", "ui", "api"])}),
            ("break", {"breakpoint": {**place, "socket": socket}}),
            ("watch", {"path": "note"}),
            ("follow", {"path": path, "on": dice.random() < 0.5}),
            ("clear_breaks", {}),
            ("pin", {"socket": socket}),
            ("label", {"text": text}),
            ("budget", {"budget": dice.choice(["20000", "none", "9 turns"])}),
            ("fork", {"step": dice.randint(0, steps)}),
            ("show_cast", {"cast": 0}),
            ("compare", {"socket": socket}),
        ]
    )


def elsewhere(dice, panel):
    """Change the cast from a notebook cell."""
    cast = panel.cast
    dice.choice(
        [
            lambda: cast.agents.set("Build", dice.choice([lambda: "built anew", h.Until("built")])),
            lambda: cast.breakpoints.add("Socket-3"),
            lambda: cast.edit.set("note", dice.choice([1, True, "1"])),
            lambda: cast.labels.add(note="odd"),
            lambda: cast.step() if cast.status == "ready" else None,
        ]
    )()
    panel.refresh()


ONE_BY_ONE = (
    ("step", {}),
    ("step", {}),
    ("set_value", {"path": "note", "text": "1"}),
    ("set_value", {"path": "note", "text": "2"}),
    ("set_value", {"path": "workItems.2.title", "text": '"changed"'}),
    ("break", {"breakpoint": {"kind": "after", "socket": "Socket-2", "where": "state.note == 3"}}),
    ("set_value", {"path": "note", "text": "3"}),
    ("undo", {}),
    ("undo", {}),
    ("select", {"element": {"kind": "socket", "id": "Socket-3"}}),
    ("select", {"element": None}),
    ("label", {"text": "odd"}),
    ("watch", {"path": "note"}),
    ("clear_breaks", {}),
    ("pin", {"socket": "Socket-2"}),
    ("budget", {"budget": "20000"}),
    ("step", {}),
    ("set_value", {"path": "note", "text": "4"}),
    ("back", {"step": 1}),
    ("line", {"line": 0}),
    ("line", {"line": None}),
    ("set_value", {"path": "note", "text": "4"}),
    ("undo", {}),
    ("fork", {"step": 1}),
    ("dock", {"dock": "timeline"}),
    ("set_value", {"path": "note", "text": "5"}),
    ("show_cast", {"cast": 0}),
)
"""Messages that each change something that no other message in the list changes."""


def test_panel_shows_the_effect_of_every_message(tmp_path):
    document, agents = SCENES["items"]
    panel = CastPanel(h.start(tmp_path, document(), agents()))
    for kind, values in ONE_BY_ONE:
        say(panel, kind, **values)
        assert panel.front.surface["notice"].get("tone") != "bad", (kind, panel.front.surface["notice"])
        assert stale(panel) == [], kind
    panel.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scene", SCENES)
def test_updated_panel_equals_a_new_panel(tmp_path, scene, seed):
    document, agents = SCENES[scene]
    dice = random.Random(f"{scene} {seed}")
    panel = CastPanel(h.start(tmp_path, document(), agents()))
    done, refused = [], 0
    for _ in range(MESSAGES // 2):
        if dice.random() < 0.15:
            done.append("elsewhere")
            try:
                elsewhere(dice, panel)
            except MateriaError as error:
                done[-1] += f": {error}"
        else:
            done.append(message(dice, panel))
            say(panel, *done[-1][:1], **done[-1][1])
            refused += panel.front.surface["notice"].get("tone") == "bad"
        assert stale(panel) == [], done
    assert refused < len(done) * 0.7, "most messages do something"
    panel.close()
