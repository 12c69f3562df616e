"""Test the work item table in a browser (R46): dragging, pasting, removing and reopening items."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.lab import Lab
from browser.surface import Surface

pytestmark = pytest.mark.browser

AGENTS = """
def items(*names):
    return {"workItems": [{"title": n, "context": f"about {n}"} for n in names]}
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: items("Outline", "Draft", "Links", "Index", "Proofread"))
wb.agent("Build", lambda turn: f"built {turn.item_label}")
for who in ("Eval", "Maintain"): wb.agent(who, lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
"""
BEGUN = (
    "%load_ext materia_nb",
    AGENTS,
    "%materia use Plan-Build-Eval",
    "%materia cast a guide",
    "c = wb.current\nc.run(until=lambda c: c.now.engine.cursors.get('workItemIndex') == 2)",
    "print([label for socket, _, _, label in c.route if socket == 'Socket-2'])",
)


@pytest.fixture
def panel(lab: Lab) -> Surface:
    """Return a panel in which the items Outline and Draft are done and Links is next."""
    lab.open(lab.notebook(*BEGUN))
    lab.run_all()
    panel = Surface(lab, 3)
    panel.tab("Items")
    panel.wait_for_text("open, next")
    return panel


def titles(panel: Surface) -> list[str]:
    return [one.input_value() for one in panel.at.locator("input[data-field=title]").all()]


def states(panel: Surface) -> list[str]:
    return [one.inner_text().split(" ", 1)[1] for one in panel.at.locator(".mnb-state").all()]


def blue(panel: Surface) -> list[str]:
    """Return the names of the highlighted buttons, which suggest the next action to the user."""
    accent = panel.at.evaluate("(one) => getComputedStyle(one).getPropertyValue('--mnb-accent').trim()")
    red, green, blue = (int(accent[at : at + 2], 16) for at in (1, 3, 5))
    grounds = "(all) => all.map((one) => [one.innerText, getComputedStyle(one).backgroundColor])"
    buttons = panel.at.locator("button.mnb-main:visible:not([aria-disabled=true])").evaluate_all(grounds)
    return [words for words, ground in buttons if ground == f"rgb({red}, {green}, {blue})"]


def test_r46_item_dragged_to_the_front_is_processed_next(lab: Lab, panel: Surface):
    assert states(panel) == ["done", "done", "open, next", "open", "open"]
    assert blue(panel) == ["Step"]
    grip = panel.at.locator(".mnb-grip").nth(4)
    grip.scroll_into_view_if_needed()
    grip.hover()
    lab.page.mouse.down()
    top = panel.at.get_by_role("grid", name="work items").locator(".mnb-gridspace").bounding_box()
    assert top is not None
    lab.page.mouse.move(top["x"] + 10, top["y"] + 5, steps=6)
    lab.page.mouse.up()
    panel.wait_for_text("'Proofread' is at position 3, not 1")
    assert titles(panel) == ["Outline", "Draft", "Proofread", "Links", "Index"], "as it will be applied"
    assert blue(panel) == ["Apply"], "one primary act"
    lab.screenshot("items-dragged", cell=3)
    lab.screenshot("items-dragged", cell=3, dark=True)
    panel.press("Apply")
    panel.at.locator(".mnb-gridrow", has_text="open, next").locator("input[data-field=title]").wait_for()
    panel.press("Step")
    worked_on = panel.at.locator(".mnb-is-being-worked-on input[data-field=title]")
    assert worked_on.input_value() == "Proofread"
    lab.run_cell(5)
    assert "'Draft', 'Proofread']" in lab.cell_text(5)


def test_r46_current_item_is_removed_only_after_confirmation_and_done_items_can_be_reopened(lab: Lab, panel: Surface):
    panel.press("Step")
    panel.wait_for_text("being worked on")
    row = panel.at.locator(".mnb-gridrow", has_text="being worked on")
    row.locator("button[aria-label^=remove]").click()
    panel.wait_for_text("is being worked on at Build")
    lab.screenshot("items-asked", cell=3)
    panel.press("Keep it")
    assert len(titles(panel)) == 5
    panel.at.get_by_role("grid", name="work items").focus()
    keys = lab.page.keyboard
    keys.press("Home")
    keys.press("a")
    panel.wait_for_text("'Outline' will be worked on again")
    assert titles(panel) == ["Draft", "Links", "Outline", "Index", "Proofread"]
    panel.at.get_by_role("button", name="abandon WI-2", exact=True).click()
    panel.wait_for_text("it stays in the list as skipped")
    panel.press("Apply")
    panel.at.locator(".mnb-gridrow", has_text="skipped").wait_for()  # the kernel has applied it
    lab.screenshot("items-abandoned", cell=3, dark=True)
    panel.press("Run")
    panel.wait_for_status("done")
    lab.run_cell(5)
    assert "'Links', 'Outline', 'Index', 'Proofread']" in lab.cell_text(5)


def test_pasted_rows_may_have_line_breaks_and_errors_are_shown(lab: Lab, panel: Surface):
    grid = panel.at.get_by_role("grid", name="work items")
    rows = ['Sixth\t"first line\nsecond ""line"""', *(f"More {n}\tabout" for n in range(30)), "Blank\t"]
    grid.evaluate(
        """(grid, text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            grid.focus();
            grid.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        }""",
        "\r\n".join(rows),
    )
    panel.wait_for_text("WI-37: The context of a work item must not be blank.")
    field = panel.at.get_by_label("context of WI-37", exact=True)
    field.wait_for()
    assert field.evaluate("(one) => one === document.activeElement")
    field.fill("now it has one")
    panel.press("Apply")
    panel.at.locator("button[aria-disabled=true]:visible", has_text="Apply").first.wait_for()  # the kernel has taken it
    lab.set_source(5, "print(len(c.now.work_items), c.now.work_items[5])")
    lab.run_cell(5)
    assert "37 {'title': 'Sixth', 'context': 'first line\\nsecond \"line\"'}" in lab.cell_text(5)


def test_long_context_is_shown_in_full_and_survives_other_edits(lab: Lab, panel: Surface):
    lab.set_source(5, "c.edit.items([*c.now.work_items[:4], {'title': 'Long', 'context': 'x' * 9000 + 'end'}])")
    lab.run_cell(5)
    long = panel.at.locator("button[data-field=context]")
    panel.wait_for_text("… 9,003 characters")
    long.click()
    box = panel.at.locator(".mnb-over-rows")
    box.wait_for()
    assert box.input_value() == "x" * 9000 + "end"
    box.press("Escape")
    assert panel.at.locator("button:visible", has_text="Apply").first.get_attribute("aria-disabled") == "true"
    panel.at.get_by_label("title of WI-4", exact=True).fill("Register")
    panel.press("Apply")
    panel.at.locator("button[aria-disabled=true]:visible", has_text="Apply").first.wait_for()
    lab.set_source(5, "print([(item['title'], len(item['context'])) for item in c.now.work_items[3:]])")
    lab.run_cell(5)
    assert "[('Register', 11), ('Long', 9003)]" in lab.cell_text(5)
    long.click()
    box.fill("short")
    box.press("Escape")
    panel.press("Apply")
    panel.at.locator("button[aria-disabled=true]:visible", has_text="Apply").first.wait_for()
    lab.set_source(5, "print(c.now.work_items[4])")
    lab.run_cell(5)
    assert "{'title': 'Long', 'context': 'short'}" in lab.cell_text(5)


LIMITED = """
from itertools import count
visits = count()
def verdict():
    number = next(visits)
    if number == 5:
        raise RuntimeError("gone")
    return {"satisfied": number == 4 or number > 7}
wb.agent("Plan", lambda: items("Outline", "Draft"))
wb.agent("Eval", verdict)
design = wb.design("Plan-Build-Eval")
design.limit_edge("Socket-3", 1, 1)
print(wb.loadouts.save(design, "notebook"))
"""


def test_applied_edit_survives_corrections_going_back_and_retries(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", AGENTS + LIMITED, "%materia cast a guide", "%materia show"))
    lab.run_all()
    panel = Surface(lab, 3)
    panel.tab("Items")

    def keeps_the_edit() -> None:
        panel.tab("Items")
        context = panel.at.locator("input[data-field=context]").first
        context.wait_for()
        assert context.input_value() == "changed"

    panel.press("Run")
    panel.wait_for_status("failed · Eval")
    expect(panel.button("Retry with 1 more allowed")).to_be_focused()
    panel.at.locator("input[data-field=context]").first.fill("changed")
    panel.press("Apply")
    panel.at.locator("button[aria-disabled=true]", has_text="Apply").first.wait_for()
    keeps_the_edit()
    panel.tab("Timeline")
    panel.at.get_by_role("grid", name="steps").locator("[data-index='0']").click()
    panel.press("Go back to here")
    panel.wait_for_text("1 edit was applied again.")
    panel.wait_for_status("ready · Build is next")
    keeps_the_edit()
    panel.press("Run")
    panel.wait_for_status("failed · Eval")
    panel.choose_again("Discard the last answer and ask again")
    panel.wait_for_text("gone")  # the run that stopped at the limit has gone on to the next item
    panel.wait_for_status("failed · Eval")
    keeps_the_edit()
    panel.press("Retry this turn")
    panel.button("Retry with 1 more allowed").wait_for()
    keeps_the_edit()
    panel.at.get_by_text("Edit the output of step").locator("visible=true").click()
    expect(panel.field("the corrected output")).to_be_focused()
    panel.field("the corrected output").fill('{"satisfied": true}')
    panel.press("Use this output")  # and the run goes on
    panel.wait_for_status("done")
    keeps_the_edit()
