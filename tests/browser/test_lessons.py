"""Test lessons as a learner uses them: a wrong guess and its correction, Run All, and buttons."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from browser.lab import Lab
from browser.surface import press_button
from materia_nb.shell.commands import BUNDLES, copy_bundle

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

pytestmark = pytest.mark.browser


def places(lesson: Path) -> dict[str, int]:
    """Return the index of each cell by its id."""
    cells = nbformat.read(lesson, as_version=4).cells
    return {cell.id: place for place, cell in enumerate(cells)}


def test_verdict_on_a_guess_is_stored_in_the_saved_notebook(lab: Lab):
    """Wrong guesses, correct guesses and double clicks leave the question, later cells and stored outputs unchanged."""
    lesson = NOTEBOOKS / "03-loops.ipynb"
    at = places(lesson)
    lab.open(lesson)
    lab.run_all()
    cell = lab.cell(at["cell-05"])
    cell.get_by_text("item WI-1 (Roses)").first.wait_for()
    cell.get_by_role("button", name="I am sure").click()
    cell.get_by_role("button", name="Socket-4 · Tell", exact=True).click()
    cell.get_by_role("alert").get_by_text("Not this time").wait_for()
    assert "exits are checked only in a step that exhausts the list" in lab.cell_text(at["cell-05"])
    assert "What happened" not in lab.cell_text(at["cell-05"]), "one may guess once more"
    lab.screenshot("lesson-predict-again", cell=at["cell-05"])
    lab.screenshot("lesson-predict-again", cell=at["cell-05"], dark=True)
    cell.get_by_role("button", name="Socket-2 · Plant", exact=True).dblclick()
    cell.get_by_role("alert").get_by_text("Right: the cast goes to Plant").wait_for()
    assert "A step is running" not in lab.cell_text(at["cell-05"])
    assert lab.page.evaluate("document.activeElement.textContent") == "Socket-2 · Plant"
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Enter")
    cell.get_by_role("alert").get_by_text("Your guess: the cast goes to Check.").wait_for()
    lab.screenshot("lesson-predict", cell=at["cell-05"])
    lab.screenshot("lesson-predict", cell=at["cell-05"], dark=True)
    cell.locator("svg [data-socket='Socket-1']").click()
    cell.get_by_role("alert").get_by_text("Your guess: the cast goes to Plan.").wait_for()
    cell.get_by_role("button", name="Next step").click()
    cell.get_by_text("Socket-2 runs next").first.wait_for()
    cell.get_by_role("button", name="Socket-3 · Check", exact=True).click()
    cell.get_by_text("2 steps predicted, 1.5 of 2 points").wait_for()
    lab.screenshot("lesson-predict-walk", cell=at["cell-05"])
    assert cell.locator(".jp-OutputArea-child").nth(1).is_hidden(), "the record, while the buttons live"
    for name in ("cell-07", "cell-09", "cell-10"):
        lab.run_cell(at[name])
    lab.wait_idle()
    assert not any(out.error for name in ("cell-07", "cell-09", "cell-10") for out in lab.outputs(at[name]))

    # Opened again with a new kernel, where the buttons have no model any more: the record shows the last verdict.
    lab.page.wait_for_function(  # it is brought up to date a moment after the buttons are
        "(i) => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[i].model.outputs.toJSON())"
        ".includes('Right: the cast goes to Check')",
        arg=at["cell-05"],
    )
    lab.save()
    lab.close()
    lab.open(lab.folder / lesson.name)
    cell.get_by_text("Right: the cast goes to Check").wait_for()
    cell.get_by_text("model not found").wait_for(state="hidden")
    assert cell.locator(".jp-OutputArea-child").nth(2).locator("svg, img").first.is_visible()


def test_wrong_answer_is_diagnosed_and_unanswered_questions_have_no_check_mark(lab: Lab):
    lesson = NOTEBOOKS / "01-edges.ipynb"
    at = places(lesson)
    lab.open(lesson)
    assert lab.cell(at["cell-06"]).locator(".jp-OutputPlaceholder").count() == 1, "what tells is folded"
    lab.run_all()
    assert lab.cell(at["cell-06"]).locator(".jp-OutputPlaceholder").count() == 0
    assert "0 of 2 right, 2 not answered yet" in lab.cell_text(at["cell-14"])
    lab.set_source(at["cell-13"], 'whole_route = ["Socket-1", "Socket-3"]\nafter_the_last = "end"')
    lab.run_cell(at["cell-13"])
    lab.run_cell(at["cell-14"])
    lab.wait_idle()
    assert "take the first edge that matches" in lab.cell_text(at["cell-14"])
    assert "✓ after_the_last is right" in lab.cell_text(at["cell-14"])
    assert "Traceback" not in lab.cell_text(at["cell-14"])
    lab.screenshot("lesson-check", cell=at["cell-14"])
    lab.screenshot("lesson-check", cell=at["cell-14"], dark=True)


def test_using_a_panel_does_not_break_later_cells(lab: Lab):
    """The timeline is used to go back before the cells of the lesson that go back are run."""
    lesson = NOTEBOOKS / "07-debugging.ipynb"
    at = places(lesson)
    lab.open(lesson)
    lab.run_all()
    timeline = lab.cell(at["cell-07"])
    rows = timeline.get_by_role("grid", name="steps")
    rows.locator("[data-index='2']").click(button="right")
    press_button(timeline.get_by_role("menuitem", name="Go back to here"))
    rows.locator("[data-index='3']").wait_for(state="detached")
    lab.screenshot("lesson-timeline", cell=at["cell-07"])
    for name in ("cell-11", "cell-13", "cell-14"):
        lab.run_cell(at[name])
    lab.wait_idle()
    assert not any(out.error for name in ("cell-11", "cell-13") for out in lab.outputs(at[name]))
    assert "0 of 3 right, 3 not answered yet" in lab.cell_text(at["cell-14"])


def test_opening_a_copied_lesson_leaves_the_notebook_unmodified(lab: Lab):
    copy_bundle(BUNDLES[0], lab.folder)
    lab.open(lab.folder / "01-edges.ipynb")
    changed = """async () => {
        const { context, sessionContext } = window.jupyterapp.shell.currentWidget;
        await sessionContext.session.kernel.info;
        await new Promise(requestAnimationFrame);
        return context.model.dirty;
    }"""
    assert not lab.page.evaluate(changed)
