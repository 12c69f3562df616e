"""Double clicks, other views and going back, in a real JupyterLab: nothing acts on what nobody could have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browser.surface import Surface

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

GAPS = (80, 150, 250, 400, 500)
"""Milliseconds between the two presses of a double click."""
JUDGES = """
items = lambda *names: {"workItems": [{"title": name, "context": f"about {name}"} for name in names]}
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: items("Outline", "Draft", "Third", "Fourth", "Fifth", "Sixth"))
wb.agent("Build", lambda turn: f"built {turn.item_label}")
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
%load_ext materia_nb
%materia use Plan-Build-Eval
%materia cast a guide
"""
JUDGED = "print([step.item_label for step in wb.current.steps if step.socket == 'Socket-3' and step.output])"
APPROVES = """
from materia_nb.agents.interface import Asking, Called, Reply, ToolCall
ran = []
class Smith:
    name = "smith"
    def answer(self, turn):
        done = {call.id for call in turn.calls if call.result is not None}
        for call in turn.calls:
            if call.id not in done:
                ran.append(call.args["command"])
                turn.tell(Called(ToolCall(id=call.id, tool="bash", args=call.args, round=call.round, result="done", decided=call.decided)))
                done.add(call.id)
        for number, command in enumerate(["cat a.txt", "rm -r a", "rm -r b", "rm -r c", "rm -r d", "rm -r e"]):
            if f"c{number}" not in done:
                return Asking((ToolCall(id=f"c{number}", tool="bash", args={"command": command}, round=number + 1),))
        return Reply("x")
wb = __import__("materia_nb").Workbench(".")
wb.agent("Answer", Smith())
%load_ext materia_nb
%materia use Ask
%materia cast a guide
"""
RAN = "print(ran)"


def double_click(lab: Lab, button: Locator, gap: int) -> None:
    """Press twice at one place of the page, whatever stands there the second time."""
    button.hover()
    for pause in (0, gap):
        lab.page.wait_for_timeout(pause)
        lab.page.mouse.down()
        lab.page.mouse.up()


def printed(lab: Lab, cell: int) -> str:
    lab.run_cell(cell)
    return lab.cell_text(cell).strip()


def test_a_double_click_judges_one_item(lab: Lab):
    lab.open(lab.notebook(JUDGES, JUDGED))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.press("Run")
    judged = []
    for gap, item in zip(GAPS, ("Outline", "Draft", "Third", "Fourth", "Fifth"), strict=True):
        panel.says(f"built {item}")
        double_click(lab, panel.settled(panel.button("✓ satisfied")), gap)
        judged.append(item)
        panel.is_("wants you")
        assert printed(lab, 1).endswith(str(judged)), f"{gap} ms"


def test_a_double_click_allows_one_command(lab: Lab):
    lab.open(lab.notebook(APPROVES, RAN))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.press("Run")
    commands = ["cat a.txt", "rm -r a", "rm -r b", "rm -r c", "rm -r d", "rm -r e"]
    panel.at.locator(".mnb-asks", has_text=commands[0]).wait_for()
    for number, gap in enumerate(GAPS, 1):
        double_click(lab, panel.settled(panel.button("Allow")), gap)
        # The command runs in a thread: the next question is the proof that it ended.
        panel.at.locator(".mnb-asks", has_text=commands[number]).wait_for()
        assert printed(lab, 1).endswith(str(commands[:number])), f"{gap} ms"


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_key_that_is_held_or_pressed_twice_judges_one_item(lab: Lab, key: str):
    lab.open(lab.notebook(JUDGES, JUDGED))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.press("Run")
    panel.says("built Outline")
    panel.settled(panel.button("✓ satisfied")).focus()
    for _ in range(4):
        lab.page.keyboard.down(key)  # a key that is down already repeats
    lab.page.keyboard.up(key)
    lab.page.keyboard.press(key)
    panel.says("built Draft")
    assert printed(lab, 1).endswith("['Outline']")


def test_what_was_judged_in_one_view_is_not_judged_in_another(lab: Lab):
    lab.open(lab.notebook(JUDGES, "%materia show", JUDGED))
    lab.run_cell(0)
    lab.run_cell(1)
    first, second = Surface(lab, 0), Surface(lab, 1)
    first.press("Run")
    second.says("built Outline")
    buttons = [one.settled(one.button("✓ satisfied")).element_handle() for one in (first, second)]
    for button in buttons:
        assert button is not None
        button.evaluate("(node) => node.click()")
    second.says("built Draft")
    assert printed(lab, 2).endswith("['Outline']")


def test_after_going_back_a_press_meets_no_other_question(lab: Lab):
    lab.open(lab.notebook(JUDGES, "wb.current.back(2); wb.current.run()\n" + JUDGED, JUDGED))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.press("Run")
    panel.says("built Outline")
    panel.press("✓ satisfied")
    panel.says("built Draft")
    panel.settled(panel.button("✓ satisfied")).evaluate(
        "(node) => (window.late = node, window.heard = new Promise((done) => new MutationObserver(() => (node.click(), done())).observe(node.closest('.mnb-surface'), {subtree: true, childList: true, attributes: true})))"
    )
    assert printed(lab, 1).endswith("[]")
    lab.page.evaluate("() => window.heard")
    lab.page.wait_for_timeout(300)
    assert printed(lab, 2).endswith("[]")


def test_three_quick_steps_are_three_steps_at_most_and_no_error(lab: Lab):
    lab.open(lab.notebook(JUDGES, "print(len(wb.current.steps))"))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.settled(panel.button("Step")).focus()
    for count in range(1, 3):
        lab.page.keyboard.press("F10")
        panel.is_({1: "ready · Build is next", 2: "ready · Eval is next"}[count])
    for _ in range(3):
        lab.page.keyboard.press("F10")
    panel.is_("wants you")
    assert panel.at.locator(".mnb-notice[data-tone=bad]").is_hidden()
    assert printed(lab, 1).endswith("3")
