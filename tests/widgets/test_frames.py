"""Test that each redraw of a panel shows a single snapshot of its cast, and happens only once."""

from __future__ import annotations

import ast
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

import cast_helpers as h
from call_counts import calls_of
from materia_nb import widgets
from materia_nb.cast.snapshot import Snapshot
from materia_nb.widgets import base
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.cast_parts import standalone_names
from materia_nb.widgets.cast_surface import CastSurface
from materia_nb.widgets.graph_panel import GraphPanel
from panel_helpers import from_page

FRAMES = int(os.environ.get("MATERIA_FRAMES", "200"))
HOLD_A_CAST = {"base", "cast_surface", "explorer", "cast_panel", "graph_panel", "predict"}
"""Modules that may hold a cast: the panels, and the modules that follow or start a cast."""


@pytest.fixture
def taken(monkeypatch):
    """Count the snapshots that are taken."""
    count: Counter[str] = Counter()
    init = Snapshot.__init__

    def counted(self, *given, **named):
        count["snapshots"] += 1
        init(self, *given, **named)

    monkeypatch.setattr(Snapshot, "__init__", counted)
    return count


@pytest.fixture
def drawn(monkeypatch):
    """Count the redraws of each panel; timers are only recorded and do not fire."""
    count: Counter[str] = Counter()

    def counted(kind):
        draw = kind.draw

        def drawing(self):
            count[kind.__name__] += 1
            draw(self)

        return drawing

    class Asked:
        def __init__(self, _, act):
            self.act, count["timers"] = act, count["timers"] + 1

        def cancel(self):
            count["timers"] -= 1

    for kind in (CastSurface, GraphPanel):
        monkeypatch.setattr(kind, "draw", counted(kind))
    monkeypatch.setattr(base, "call_later", Asked)
    return count


def test_only_the_listed_widget_modules_import_the_cast_class():
    knowing = set()
    for path in Path(widgets.__file__).parent.glob("*.py"):
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        if any(name.name == "Cast" for node in imports for name in node.names):
            knowing.add(path.stem)
    assert {name for name in knowing if not name.startswith("design")} == HOLD_A_CAST


@pytest.mark.parametrize("name", ["", *standalone_names()])
def test_each_redraw_takes_one_snapshot_of_the_cast(cast, taken, name):
    cast.run(steps=2)
    panel = CastPanel(cast, only_part=name)
    for tab in ("answer", "prompt", "why", "state", "calls", "about"):
        panel.tab = tab
        taken.clear()
        panel.refresh()
        assert taken["snapshots"] == 1, tab
    panel.close()


@pytest.mark.parametrize("status", ["waiting", "failed", "complete", "looked back"])
def test_each_redraw_takes_one_snapshot_in_every_cast_status(tmp_path, taken, status):
    def answer(turn):
        if status == "failed":
            raise RuntimeError("gone")
        return "done"

    cast = h.start(tmp_path, h.chain_config(2), answer)
    cast.step(ask=False) if status == "waiting" else cast.run()
    panel = CastPanel(cast)
    if status == "looked back":
        panel.show_step(1)
    taken.clear()
    panel.refresh()
    assert taken["snapshots"] == 1
    panel.close()


def frames_of_a_run(path, most):
    """Redraw a panel while its cast runs; return the step counts of its bar, timeline, inspector and graph for each
    redraw.
    """
    cast = h.start(path, h.loop_config(), h.loop_agents(120))
    panel = CastPanel(cast)
    panel.tab = "state"
    frames = []
    put, show = panel.front.put, panel.graph.show_moment

    def kept(slices):
        if "bar" in slices:
            counts = slices["bar"]["counts"].split(" ")[0]
            content = slices["inspector"]["content"]
            frames.append([int(counts), slices["timeline"]["total"], content["steps"], content["at"]])
        put(slices)

    def pictured(shown, *given, **named):
        frames[-1].append(len(shown.steps))
        show(shown, *given, **named)

    panel.front.put, panel.graph.show_moment = kept, pictured
    going = threading.Thread(target=cast.run, daemon=True)
    going.start()
    while len(frames) < most and going.is_alive():
        panel.refresh()
    cast.runner.stop.set()
    going.join(60)
    panel.close()
    cast.close()
    return frames


@pytest.mark.parametrize("items, steps, most", [(3, 4, 1_210), (120, 200, 1_430)])
def test_step_and_its_redraw_stay_within_call_limits(tmp_path, drawn, items, steps, most):
    """The rows of earlier steps and the texts of the items must not be built again."""
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(items))
    cast.run(steps=steps)
    panel = CastPanel(cast)

    def step_with_frame():
        cast.step()
        panel.refresh()

    step_with_frame()
    calls = calls_of(step_with_frame)
    assert drawn["CastSurface"] == 3, "no timer has drawn the step before"
    panel.close()
    assert 0 < calls <= most


def test_redraws_are_consistent_during_a_run(tmp_path):
    """The bar, timeline, inspector and graph of one redraw must show the same number of steps."""
    frames, runs = [], 0
    while len(frames) < FRAMES:
        frames += frames_of_a_run(tmp_path / str(runs := runs + 1), FRAMES - len(frames))
    assert len({tuple(frame) for frame in frames}) > 10, "runs went on meanwhile"
    assert [frame for frame in frames if len(set(frame)) != 1] == []


def test_click_causes_one_redraw_and_the_timer_does_not_cause_another(cast, drawn):
    panel = CastPanel(cast)
    drawn.clear()
    for number in range(3):
        panel.guarded(panel.on_message)(from_page(panel, "set_value", path=f"note{number}", text="1"))
        assert cast.state[f"note{number}"] == 1
    assert drawn == {"CastSurface": 3, "GraphPanel": 3}
    panel.guarded(panel.on_message)({"kind": "tab", "tab": "state"})
    assert drawn == {"CastSurface": 4, "GraphPanel": 3}, "a tab changes nothing of the graph"
    panel.close()


def test_changes_made_outside_the_panel_are_drawn_by_a_timer(cast, drawn):
    panel = CastPanel(cast)
    drawn.clear()
    cast.edit.set("note", 1)
    cast.edit.set("note", 2)
    assert drawn == {"timers": 1}, "many changes are one redraw"
    panel.refresh()
    assert +drawn == {"CastSurface": 1, "GraphPanel": 1}, "it is drawn: nothing is left to do"
    panel.close()


def test_first_click_is_drawn_immediately_and_later_clicks_are_throttled(cast, monkeypatch):
    timers = []

    class Timer:
        def __init__(self, wait, act):
            self.wait, self.act = wait, act
            timers.append(self)

        def cancel(self):
            pass

    monkeypatch.setattr(base, "call_later", Timer)
    monkeypatch.setattr(base.time, "monotonic", lambda: 1_000.0)
    panel = CastPanel(cast)
    panel.guarded(panel.on_message)({"kind": "tab", "tab": "state"})
    cast.edit.set("note", 1)
    assert timers[-1].wait == 0, "the click's own draw is not waited for"
    timers[-1].act()
    cast.edit.set("note", 2)
    assert timers[-1].wait == pytest.approx(panel.interval)
    panel.close()


def test_redraw_is_delayed_if_a_callback_starts_a_run(cast, monkeypatch):
    """Otherwise each step would first draw that it is running."""
    waits = []
    monkeypatch.setattr(base, "call_later", lambda wait, _: waits.append(wait))
    panel = CastPanel(cast)

    def start():
        run = threading.Thread(target=panel.schedule_refresh)
        run.start()
        run.join()

    panel.guarded(start)()
    start()
    assert waits == [0.05, 0]
    panel.close()


def test_redraw_requested_by_a_callback_happens_when_the_callback_ends(cast, drawn):
    panel = CastPanel(cast)
    drawn.clear()
    seen = []
    panel.guarded(lambda: (panel.schedule_refresh(), panel.schedule_refresh(), seen.append(drawn.total())))()
    assert seen == [0]
    assert drawn == {"CastSurface": 1}
    panel.close()
