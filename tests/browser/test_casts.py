"""Test the list of casts and the comparison of casts and steps in JupyterLab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.surface import Surface, press_button, violations
from other_kernel import OtherKernel

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

BENCH = """%load_ext materia_nb
from materia_nb import Workbench
wb = Workbench(".")
wb.use("Plan-Build-Eval")
agents = {
    "Plan": lambda: {"workItems": [{"title": "Outline", "context": "Three headings."}]},
    "Build": lambda turn: f"Wrote four headings, visit {turn.visit}.",
    "Eval": lambda turn: "Fine" if (turn.visit, turn.kind) == (2, "work") else {"satisfied": turn.visit > 1, "context": "Read."},
    "Maintain": lambda: {"satisfied": True},
    "Narrate": lambda: "The guide is ready.",
}
cast = wb.cast("a short guide", agents=agents)
cast.run()
"""
BROKEN = """
def broken(turn):
    raise RuntimeError("no paper")
failed = wb.cast("a broken guide", agents={**agents, "Build": broken})
failed.run()
mended = wb.cast("release notes", agents=agents)
mended.run(steps=2)
"""


def opened(lab: Lab, *cells: str) -> int:
    lab.open(lab.notebook(BENCH, *cells))
    lab.run_all()
    return len(cells)


def step(panel: Surface, number: int) -> Locator:
    panel.tab("Timeline")
    return panel.at.get_by_role("grid", name="steps").locator(f"[data-index='{number - 1}']")


def choose(lab: Lab, words: str) -> None:
    lab.page.get_by_role("menuitem").filter(has_text=words).first.click()


def test_steps_and_forks_can_be_compared(lab: Lab):
    cell = opened(lab, "cast", "wb.current.agents.set('Build', lambda: 'Wrote three headings, visit 2.')") - 1
    panel = Surface(lab, cell)
    step(panel, 5).click(button="right")
    choose(lab, "with the last visit")
    panel.wait_for_text("A is step 3, B is step 5.")
    panel.wait_for_text("Eval (Outline) answered differently: $.satisfied is false in A, true in B.")
    compared = panel.at.get_by_role("tabpanel").filter(has_text="A is step 3")
    assert "answered\tdirectly\t1 repair" in compared.inner_text(), "that the answer of B was refused first"

    step(panel, 3).click()
    panel.button("Fork from here").wait_for()
    panel.button("Again ▾").focus()
    lab.page.keyboard.press("Enter")
    assert panel.at.get_by_role("menu", name="again").get_by_role("menuitem").all_inner_texts() == [
        *("Fork from here", "Go back to here", "Cast again")
    ]
    assert violations(lab, "menu") == []
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("ArrowUp")
    fork = panel.settled(panel.at.get_by_role("menuitem", name="Fork from here"))
    assert fork.evaluate("(one) => one === document.activeElement")
    lab.page.keyboard.press("Enter")
    panel.wait_for_text("B ends after step 3. Up to that point, A and B do not differ. A continues.")
    assert panel.at.evaluate("(one) => one.contains(document.activeElement)"), "the keyboard stays in the panel"
    compared = panel.at.get_by_role("tabpanel").filter(has_text="A is the original").first
    assert "current state" not in compared.inner_text()
    lab.run_cell(cell + 1)
    panel.press("Step")
    panel.wait_for_text("A and B first differ in step 4: Build (Outline) answered differently")
    assert [text.strip() for text in compared.locator("del").first.all_inner_texts()] == ["four"]
    assert [one.strip() for one in compared.locator("ins").first.all_inner_texts()] == ["three"]


def test_buttons_wait_until_the_kernel_has_selected_the_chosen_cast(lab: Lab):
    cell = opened(lab, BROKEN, "wb.casts", "") - 1
    casts = lab.cell(cell).locator(".mnb-casts")
    rows = casts.get_by_role("grid", name="casts").get_by_role("row")
    buttons = [casts.get_by_role("button", name=name, exact=True) for name in ("Open", "Fork", "Compare…", "Delete…")]
    for button in buttons:
        expect(button).to_be_enabled()
    lab.set_source(cell + 1, "import pathlib, time\nwhile not pathlib.Path('go on').exists(): time.sleep(0.02)")
    lab.start_cell(cell + 1)
    rows.filter(has_text="a broken guide").click()
    for button in buttons:
        expect(button).to_be_disabled()
    (lab.folder / "go on").touch()
    casts.get_by_text("Build failed").wait_for()
    for button in buttons:
        expect(button).to_be_enabled()


def test_casts_can_be_searched_displayed_compared_and_resumed(lab: Lab):
    cell = opened(lab, BROKEN, "wb.casts")
    casts = lab.cell(cell).locator(".mnb-casts")
    rows = casts.get_by_role("grid", name="casts").get_by_role("row")
    below = casts.get_by_role("region", name="the selected cast")
    below.get_by_text("next: Socket-3").wait_for()
    rows.filter(has_text="a short guide").click()
    below.get_by_text("The guide is ready.").first.wait_for()
    rows.filter(has_text="a broken guide").click()
    below.get_by_text("Build failed").wait_for()

    rows.filter(has_text="a short guide").click()
    press_button(casts.get_by_role("button", name="Compare…"))
    casts.get_by_role("menuitem").filter(has_text="release notes").click()
    casts.get_by_text("Up to that point, A and B do not differ").wait_for()
    casts.get_by_role("button", name="Close").click()

    casts.get_by_role("searchbox").fill("broken")
    rows.nth(2).wait_for(state="detached")
    rows.filter(has_text="a broken guide").click()
    press_button(casts.get_by_role("button", name="Resume"))
    lab.cell(cell).locator(".mnb-pill", has_text="failed · Build").wait_for()


def test_cast_of_another_kernel_can_be_followed_and_continued(lab: Lab):
    other = OtherKernel(lab.folder)
    try:
        agent = "%load_ext materia_nb\n%materia list casts\nwb.agent('*', lambda: 'from here')"
        lab.open(lab.notebook(agent, f"%materia open {other.run_dir}", "%materia show"))
        lab.run_all()
        panel = Surface(lab, 2)
        panel.wait_for_status(f"ready at Socket-1 M · run by process {other.process.pid}")
        rows = panel.at.get_by_role("grid", name="steps").get_by_role("row")
        for command, status in (("step", "ready at Socket-2 M"), ("step", "ready at Socket-3 M"), ("step", "failed")):
            other.does(command)
            panel.wait_for_status(status)
        rows.filter(has_text="by Socket-2").wait_for()
        lab.screenshot("elsewhere")
        other.does("retry")
        panel.wait_for_status("complete · read-only")
        rows.filter(has_text="by Socket-1").click()
        panel.at.locator(".mnb-under", has_text="step 1").wait_for()
        panel.press("Continue here")
        panel.wait_for_status("ready · Socket-2 M is next")
        panel.press("Run")
        panel.wait_for_status("done")
        panel.tab("Timeline")
        rows.filter(has_text="from here").first.wait_for()
        assert [step for step in rows.all_inner_texts() if "by Socket-2" in step] == []
    finally:
        other.process.kill()
        other.process.wait()
