"""Lesson 1 as a learner meets it: a click, a wrong answer, the right one."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from browser.lab import Lab

LESSON = Path(__file__).parents[2] / "notebooks" / "01-edges.ipynb"

pytestmark = pytest.mark.browser


def place(text: str) -> int:
    """The place of the first code cell that holds ``text``, among all cells."""
    cells = nbformat.read(LESSON, as_version=4).cells
    return next(n for n, cell in enumerate(cells) if cell.cell_type == "code" and text in cell.source)


def test_a_learner_clicks_and_answers(lab: Lab):
    lab.open(LESSON)
    predict, answers, checks = place("%materia predict"), place('sealed("'), place("check(\n")
    for index in range(predict + 1):
        lab.run_cell(index)
    lab.wait_idle()
    cell = lab.cell(predict)
    cell.get_by_role("button", name="Socket-2", exact=True).click()
    cell.get_by_text("Not this time").wait_for()
    assert "Edge 2 to Socket-3 was taken" in lab.cell_text(predict)
    cell.get_by_text("Socket-3 runs next").wait_for()
    lab.screenshot("lesson-predict", cell=predict)
    lab.screenshot("lesson-predict", cell=predict, dark=True)

    lab.set_source(answers, 'whole_route = ["Socket-1", "Socket-3"]\nafter_the_last = "end"')
    for index in range(predict + 1, checks + 1):
        lab.run_cell(index)
    lab.wait_idle()
    (output,) = lab.outputs(checks)
    assert output.kind == "error"
    assert "Its first 1 are right." in lab.cell_text(checks)
    assert "Traceback" not in lab.cell_text(checks)

    lab.set_source(answers, 'whole_route = ["Socket-1", "Socket-2", "Socket-3"]\nafter_the_last = "end"')
    lab.run_cell(answers)
    lab.run_cell(checks)
    lab.wait_idle()
    assert "✓ whole_route is right" in lab.cell_text(checks)
    assert "sealed" not in lab.outputs(checks)[0].text
