"""Test that the progress bar is visible during a long run and is removed when the run ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from browser.lab import Lab
from browser.surface import Surface

pytestmark = pytest.mark.browser

SETUP = """
import pathlib, threading
%load_ext materia_nb
%materia use Plan-Build-Eval
go_on = pathlib.Path("go_on")

@wb.agent("Plan")
def plan():
    return {"workItems": [{"title": f"item {n}", "context": "c"} for n in range(3)]}

@wb.agent("Build")
def build(turn):
    while turn.item_key == "WI-2" and not go_on.exists():
        threading.Event().wait(0.01)
    return "built"

wb.agent("Eval", lambda: {"satisfied": True})
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
%materia cast slowly
"""
COUNTING = """
import pathlib, threading
from materia_nb.magics.cast_display import count_progress
with count_progress("casts") as report:
    report(3, 1000)
    while not pathlib.Path("go_on").exists():
        threading.Event().wait(0.01)
"""


def test_long_runs_and_simulations_show_progress(lab: Lab):
    lab.open(lab.notebook(SETUP, "print('before')\n%materia run", COUNTING))
    gate = lab.folder / "go_on"
    lab.run_cell(0)
    lab.start_cell(1)
    label = lab.cell(1).get_by_text("/3 items")
    label.wait_for()
    assert " ".join(label.inner_text().split()) == "1/3 items, Build, step 5"
    gate.touch()
    lab.wait_idle()
    assert lab.cell(1).locator(".widget-hprogress").count() == 0
    assert "complete after 11 steps" in lab.cell_text(1)
    assert lab.cell_text(1).startswith("before")

    gate.unlink()
    lab.start_cell(2)
    lab.cell(2).get_by_text("3 of 1,000 casts").wait_for()
    assert lab.cell(2).locator(".widget-hprogress").count() == 1
    gate.touch()
    lab.wait_idle()
    assert lab.cell(2).locator(".widget-hprogress").count() == 0


LONG = """
import threading
%load_ext materia_nb
%materia use Plan-Build-Eval
wb.agent("Plan", lambda: {"workItems": [{"title": f"item {n}", "context": "c"} for n in range(300)]})
wb.agent("Build", lambda: threading.Event().wait(0.02) or "built")
wb.agent("*", lambda: {"satisfied": True})
%materia cast long
%materia show
"""
FRAMES = r"""async (surface) => {
    const cy = surface.querySelector(".mnb-canvas")._cyreg.cy;
    const number = (selector) => Number(surface.querySelector(selector).textContent.match(/\d+/) ?? 0);
    const visits = (socket) => Number((decodeURIComponent(cy.getElementById(`n:Socket-${socket}`).data("img")).match(/\u00d7(\d+)/) ?? [0, 0])[1]);
    const frames = [];
    for (const end = performance.now() + 3000; performance.now() < end;) {
        await new Promise(requestAnimationFrame);
        const frame = {
            bar: number(".mnb-counts"), items: number("[role=tab][data-tab=items]"),
            rows: Number(surface.querySelector("[role=grid][aria-label=steps]").ariaRowCount) - 1,
            visits: [visits(2), visits(3), visits(4)],
        };
        // A card shows no count before its second visit.
        if (frame.visits.every(Boolean)) frames.push(frame);
    }
    return frames;
}"""
"""JavaScript function that returns what the bar, the items, the timeline and the graph show in each frame of 3 seconds."""


def test_all_parts_of_the_panel_show_the_same_step_during_a_run(lab: Lab):
    """The graph follows the bar: its next update shows at least what the bar showed before its current count.

    The graph's message of the current count may still be on its way, because it is sent after the message of the bar.
    """
    lab.open(lab.notebook(LONG))
    lab.run_all()
    panel = Surface(lab, 0)
    panel.press("Run")
    panel.wait_for_status("Running")
    frames = panel.at.evaluate(FRAMES)
    updates = [0]
    for index, frame in enumerate(frames):
        build, evaluate, maintain = frame["visits"]
        assert frame["rows"] == frame["bar"], frame
        assert frame["items"] in ((frame["bar"] - 2) // 3, (frame["bar"] - 1) // 3), frame
        assert build - 1 <= evaluate <= build, frame
        assert evaluate - 1 <= maintain <= evaluate, frame
        assert 1 + sum(frame["visits"]) <= frame["bar"], frame
        if frame["visits"] != frames[updates[-1]]["visits"]:
            updates.append(index)
    assert len(updates) > 10, "the graph follows the run"
    for before, index in pairwise(updates[1:]):
        counts = sorted({frame["bar"] for frame in frames[:before]})
        assert 1 + sum(frames[index]["visits"]) >= counts[-2:][0], frames[before - 1 : index + 1]
