"""Test that a saved notebook shows the end of the run while live, reopened, untrusted, or after a kernel restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser.lab import Lab
from browser.surface import IS_CLICKABLE, Surface

pytestmark = pytest.mark.browser

AGENTS = """
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: {"workItems": [{"title": "a", "context": "b"}]})
for who in ("Eval", "Maintain"): wb.agent(who, lambda: {"satisfied": True})
for who in ("Build", "Narrate"): wb.agent(who, lambda: "done")
"""
CELLS = (
    "%load_ext materia_nb",
    AGENTS,
    "%materia cast --loadout Plan-Build-Eval bake a cake (don't burn it",
    "print('beside it')",
    "%materia use Plan-Build-Eval",
)
LOOKS = ("%materia run", "%materia why", "%materia steps", "%materia show graph", "%materia show")


@pytest.fixture
def cast(lab: Lab) -> Path:
    path = lab.notebook(*CELLS)
    lab.open(path)
    lab.run_all()
    lab.cell(2).get_by_role("button", name="Step", exact=True).wait_for()
    return path


def record(lab: Lab):
    """Return the text of the stored output."""
    return lab.cell(2).get_by_text("Record of cast")


def pictures(lab: Lab) -> int:
    """Return the number of visible pictures in the stored output."""
    return lab.cell(2).locator(":is(.jp-RenderedImage, .jp-RenderedSVG):visible").count()


def steps_recorded(lab: Lab, words: str) -> None:
    lab.page.wait_for_function(
        """(words) => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[2]
            .model.outputs.toJSON()).includes(words)""",
        arg=words,
    )


def reopen(lab: Lab, saved: str, *, trusted: bool) -> None:
    """Reopen a saved notebook without its kernel; the trusted notebook is opened in a page that is loaded again."""
    book = json.loads(saved)
    if not trusted:
        book["metadata"]["from"] = "elsewhere"  # its signature is another one then
    path = lab.folder / f"again-{trusted}.ipynb"
    path.write_text(json.dumps(book))
    lab.close()
    lab.open(path, reload=trusted)


def test_stored_output_is_hidden_by_the_live_panel_and_shown_after_a_reload(lab: Lab, cast: Path):
    assert pictures(lab) == 0
    assert not record(lab).is_visible()
    panel = Surface(lab, 2)
    panel.press("Step")
    steps_recorded(lab, "ready after 1 step")
    lab.save()
    saved = cast.read_text()
    panel.press("Run")
    steps_recorded(lab, "after 5 steps")
    lab.screenshot("record-live", cell=2)
    for trusted in (False, True):
        reopen(lab, saved, trusted=trusted)
        record(lab).wait_for(state="visible")
        words = lab.cell_text(2)
        assert "ready after 1 step" in words
        assert "%materia resume 20" in words
        assert pictures(lab) == 1
        if trusted:  # else JupyterLab draws no widget
            assert lab.cell(2).get_by_text("Loading widget").is_hidden()
            missing = lab.cell(2).get_by_text("model not found")
            missing.wait_for(state="attached")
            assert missing.is_hidden()
        else:
            image = lab.cell(4).locator("img").first
            image.wait_for()
            assert image.evaluate("image => image.naturalWidth") > 200
            assert "Socket-1, agent" not in lab.cell_text(4), "no words of the picture stand around it"
        step = lab.cell(2).locator("details", has_text="Step 1: Plan")
        step.locator("summary").click()
        assert "workItems" in step.inner_text()
        kind = ".jp-RenderedSVG" if trusted else ".jp-RenderedImage"
        assert lab.cell(2).locator(kind).is_visible()
        for dark in (False, True):
            lab.screenshot(f"record-{'trusted' if trusted else 'untrusted'}", dark=dark)


def test_saved_notebook_of_eight_cells_is_small(lab: Lab):
    path = lab.notebook(*CELLS[:3], *LOOKS)
    lab.open(path)
    lab.run_all()
    lab.save()
    assert path.read_text().count('"image/png"') == 3
    assert path.stat().st_size < 150_000


def test_stored_output_replaces_the_panel_after_a_kernel_restart(lab: Lab, cast: Path):
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    record(lab).wait_for(state="visible")
    assert not lab.cell(2).get_by_role("button", name="Step", exact=True).is_visible()
    lab.cell(2).get_by_text("The kernel of this panel is no longer running").wait_for()
    gone = lab.cell(2).locator(".mnb-surface").bounding_box()
    assert gone is not None
    assert gone["height"] < 120, "a line, no empty box"
    assert pictures(lab) == 1
    assert "beside it" in lab.cell_text(3)
    lab.screenshot("record-restarted")
    lab.run_cell(3)
    # JupyterLab's own: messages to the kernel that went are not answered.
    lab.page_errors[:] = [error for error in lab.page_errors if "Canceled future" not in error]


def test_panel_reports_on_the_next_click_that_its_kernel_was_shut_down(lab: Lab, cast: Path):
    step = lab.cell(2).get_by_role("button", name="Step", exact=True)
    gone = lab.cell(2).get_by_text("The kernel of this panel is no longer running")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab.page.get_by_text("No Kernel").first.wait_for()
    assert gone.is_hidden(), "JupyterLab leaves the widgets of a kernel that was shut down as they were"
    lab.page.wait_for_function(IS_CLICKABLE, arg=step.element_handle())
    step.click()
    gone.wait_for()
    assert step.is_hidden()
