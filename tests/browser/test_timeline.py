"""Going back in time in a real JupyterLab: look at an earlier step, go back to it, fork it, by mouse and keyboard."""

from __future__ import annotations

import re

from browser.lab import Lab, pick
from browser.test_panels import AGENTS

ROUTE = "print([socket for socket, *_ in wb.current.route], wb.current.id != first.id)"


def test_back_and_fork_by_clicks(lab: Lab):
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            AGENTS,
            "%materia use Plan-Build-Eval",
            "first = %materia cast a guide\nfirst.run()\n%materia show",
            ROUTE,
        )
    )
    lab.run_all()
    panel = lab.cell(3)
    panel.get_by_role("tab", name="timeline").click()
    steps = panel.get_by_role("listbox").filter(has_text="now")
    steps.wait_for()
    assert steps.locator("option").count() == 10
    pick(steps, "3 · Socket-3 Eval · WI-1 Outline → Socket-4 · ")
    panel.get_by_text("Shown: as it was after step 3.").wait_for()
    panel.get_by_text(re.compile("as it was · Plan-Build-Eval: ready after 3 steps")).first.wait_for()
    lab.screenshot("timeline", cell=3)
    lab.screenshot("timeline", cell=3, dark=True)
    panel.get_by_role("tab", name="state").click()
    panel.get_by_text("state, as it was").wait_for()
    panel.get_by_role("tab", name="timeline").click()

    panel.get_by_role("button", name="↑", exact=True).last.focus()
    lab.page.keyboard.press("Enter")
    panel.get_by_text("Shown: as it was after step 2.").wait_for()
    panel.get_by_role("button", name="Back to here").click()
    panel.get_by_text("Shown: the present.").wait_for()
    lab.run_cell(4)
    assert lab.cell_text(4).strip().endswith("['Socket-1', 'Socket-2'] False")
    line = panel.get_by_role("combobox").filter(has_text="abandoned 1: steps 3 to 8")
    line.select_option(label="abandoned 1: steps 3 to 8")
    panel.get_by_text("Shown: as it was after step 8 of the abandoned branch 1.").wait_for()
    lab.screenshot("timeline-abandoned", cell=3)
    panel.get_by_role("button", name="Now", exact=True).click()
    panel.get_by_role("button", name="Fork from here").click()
    panel.get_by_text(re.compile(r"^Fork of .* from step 2: ")).wait_for()
    lab.run_cell(4)
    assert lab.cell_text(4).strip().endswith("['Socket-1', 'Socket-2'] True")
