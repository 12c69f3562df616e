"""The progress bar of a long run: there while it runs, gone when it ends."""

from __future__ import annotations

import pytest

from browser.lab import Lab

pytestmark = pytest.mark.browser

SETUP = """
import threading
%load_ext materia_nb
%materia use Plan-Build-Eval
go = threading.Event()

@wb.agent("Plan")
def plan():
    return {"workItems": [{"title": f"item {n}", "context": "c"} for n in range(3)]}

@wb.agent("Build")
def build(turn):
    if turn.item_key == "WI-2":
        go.wait(60)
    threading.Event().wait(0.4)  # work that takes its time
    return "built"

wb.agent("Eval", lambda: {"satisfied": True})
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
threading.Timer(8, go.set).start()
%materia cast slowly
"""


def test_a_long_run_shows_how_far_it_is(lab: Lab):
    lab.open(lab.notebook(SETUP, "%materia run"))
    lab.run_cell(0)
    lab.start_cell(1)
    label = lab.cell(1).get_by_text("/3 items")
    label.wait_for()
    assert "step" in label.inner_text()
    lab.wait_idle()
    assert lab.cell(1).locator(".widget-hprogress").count() == 0
    assert "complete after 11 steps" in lab.cell_text(1)
