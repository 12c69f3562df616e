"""Test in JupyterLab that a double click never activates a button that appeared between the two clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from browser.surface import Surface

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

GAPS = (80, 150, 250, 400, 500)
"""Intervals between the two presses of a double click, in milliseconds."""
JUDGING_NOTEBOOK = """
items = lambda *names: {"workItems": [{"title": name, "context": f"about {name}"} for name in names]}
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: items("Outline", "Draft", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth"))
wb.agent("Build", lambda turn: f"built {turn.item_label}")
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
%load_ext materia_nb
%materia use Plan-Build-Eval
%materia cast a guide
"""
JUDGED = "print([step.item_label for step in wb.current.steps if step.socket == 'Socket-3' and step.output])"
APPROVING_NOTEBOOK = """
from materia_nb.agents.interface import NeedsApproval, CallEvent, Reply, ToolCall
ran = []
class Smith:
    name = "smith"
    def answer(self, turn):
        done = {call.id for call in turn.calls if call.result is not None}
        for call in turn.calls:
            if call.id not in done:
                ran.append(call.args["command"])
                turn.report(CallEvent(ToolCall(id=call.id, tool="bash", args=call.args, round=call.round, result="done", decided=call.decided)))
                done.add(call.id)
        for number, command in enumerate(["cat a.txt", "rm -r a", "rm -r b", "rm -r c", "rm -r d", "rm -r e"]):
            if f"c{number}" not in done:
                return NeedsApproval((ToolCall(id=f"c{number}", tool="bash", args={"command": command}, round=number + 1),))
        return Reply("x")
wb = __import__("materia_nb").Workbench(".")
wb.agent("Answer", Smith())
%load_ext materia_nb
%materia use Ask
%materia cast a guide
"""
RAN = "print(ran)"


SETTLING = 600
"""Time for which a button must have been unchanged before it accepts a press, in milliseconds."""
HOLD_TIMERS = """(shortest) => {
    const { setTimeout: start, clearTimeout: stop } = window, held = new Map(), started = new Map();
    window.setTimeout = (act, wait, ...args) => {
        if (!(wait >= shortest)) return start(act, wait, ...args);
        const timer = {};  // a number could equal that of an earlier timer
        held.set(timer, () => start(act, wait, ...args));
        return timer;
    };
    window.clearTimeout = (timer) => held.delete(timer) || stop(started.get(timer) ?? timer);
    window.startHeldTimers = () => {
        window.setTimeout = start;
        for (const [timer, begin] of held) started.set(timer, begin());
        held.clear();
    };
}"""
"""JavaScript function that delays all timers of at least the specified duration until ``startHeldTimers()`` is called.
"""


def double_click(lab: Lab, button: Locator, gap: int) -> None:
    """Press twice at the same page position, even if another control is there at the second press.

    The settling time of buttons begins after the second press, even on a slow machine. A settling time shorter than
    :data:`SETTLING` is not delayed and therefore fails the test.
    """
    button.hover()
    lab.page.evaluate(HOLD_TIMERS, SETTLING)
    for pause in (0, gap):
        lab.page.wait_for_timeout(pause)
        lab.page.mouse.down()
        lab.page.mouse.up()
    lab.page.evaluate("() => window.startHeldTimers()")


def printed(lab: Lab, cell: int) -> str:
    lab.run_cell(cell)
    return lab.cell_text(cell).strip()


def test_double_click_on_a_verdict_judges_only_one_item(lab: Lab):
    lab.open(lab.notebook(JUDGING_NOTEBOOK, "%materia show", JUDGED))
    lab.run_cell(0)
    lab.run_cell(1)
    panel, other = Surface(lab, 0), Surface(lab, 1)
    panel.press("Run")
    items = iter(("Outline", "Draft", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth"))
    judged: list[str] = []
    item = next(items)

    def was_judged_once(act: str) -> None:
        nonlocal item
        judged.append(item)
        item = next(items)
        panel.wait_for_text(f"built {item}")
        assert printed(lab, 2).endswith(str(judged)), act

    panel.wait_for_text(f"built {item}")
    for gap in GAPS:
        double_click(lab, panel.settled(panel.button("✓ satisfied")), gap)
        was_judged_once(f"a double click of {gap} ms")
    for key in ("Enter", "Space"):
        panel.settled(panel.button("✓ satisfied")).focus()
        for _ in range(4):
            lab.page.keyboard.down(key)  # a key that is down already repeats
        lab.page.keyboard.up(key)
        lab.page.keyboard.press(key)
        was_judged_once(key)
    other.wait_for_text(f"built {item}")
    buttons = [one.settled(one.button("✓ satisfied")).element_handle() for one in (panel, other)]
    for button in buttons:
        assert button is not None
        button.evaluate("(node) => node.click()")
    was_judged_once("in two views")


def test_double_click_approves_only_one_command(lab: Lab):
    lab.open(lab.notebook(APPROVING_NOTEBOOK, RAN))
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


def test_each_quick_click_on_the_step_button_runs_one_step(lab: Lab):
    back = "wb.current.back(2); wb.current.run()\n" + JUDGED
    lab.open(lab.notebook(JUDGING_NOTEBOOK, "print(len(wb.current.steps))", back, JUDGED))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.settled(panel.button("Step")).focus()
    for pill in ("ready · Build is next", "ready · Eval is next"):
        lab.page.keyboard.press("F10")
        panel.wait_for_status(pill)
    for _ in range(3):
        lab.page.keyboard.press("F10")
    panel.wait_for_status("Your turn")
    assert panel.at.locator(".mnb-notice[data-tone=bad]").is_hidden()
    assert printed(lab, 1).endswith("3")

    panel.wait_for_text("built Outline")
    panel.press("✓ satisfied")
    panel.wait_for_status("ready")
    panel.press("Run")
    panel.wait_for_text("built Draft")
    panel.wait_for_status("Your turn")
    panel.settled(panel.button("✓ satisfied")).evaluate(
        """(node) => {
            const surface = node.closest(".mnb-surface");
            const press = (done) => surface.textContent.includes("built Draft") || (node.click(), done());
            window.pressed = new Promise((done) => new MutationObserver(() => press(done))
                .observe(surface, {subtree: true, childList: true, attributes: true}));
        }"""
    )
    assert printed(lab, 2).endswith("[]")
    lab.page.evaluate("() => window.pressed")
    panel.wait_for_text("built Outline")
    panel.settled(panel.button("✓ satisfied"))
    assert printed(lab, 3).endswith("[]")
