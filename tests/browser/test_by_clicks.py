"""Casts gone through with the mouse and the panel's own fields, on the newest and the oldest kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from browser.kernels import both_kernels
from browser.picture import Picture

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

GATED = """
import pathlib, threading
%load_ext materia_nb
%materia use Plan-Build-Eval
wb.agent("Plan", lambda: {"workItems": [{"title": t, "context": "c"} for t in ("Outline", "Draft")]})

@wb.agent("Build")
def build(turn):
    while not pathlib.Path("go on").exists():
        threading.Event().wait(0.01)
    return "built"

for name in ("Eval", "Maintain"):
    wb.agent(name, lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
%materia cast slowly
"""


class CastPanel:
    """The panel of ``%materia show`` in one cell, as a person uses it."""

    def __init__(self, lab: Lab, cell: int) -> None:
        self.at: Locator = lab.cell(cell)
        self.picture = Picture(lab, cell=cell)

    def press(self, button: str) -> None:
        """Press a button of the toolbar or of the tab in front as soon as it can be pressed."""
        self.button(button).click()

    def button(self, name: str) -> Locator:
        return self.at.get_by_role("button", name=name, exact=True).locator("visible=true").first

    def tab(self, name: str) -> None:
        """Bring a tab to the front."""
        self.at.get_by_role("tab", name=name).click()

    def says(self, text: str) -> None:
        """Wait until this text can be seen."""
        self.at.get_by_text(text).locator("visible=true").first.wait_for()

    def reply(self, answer: object) -> None:
        """Answer in place of the agent that waits; JSON unless it is a text."""
        self.tab("reply (waiting)")
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.at.get_by_placeholder("the answer", exact=True).fill(text)
        self.says("this answer would be taken")
        self.press("Send")


@both_kernels
def test_a_cast_is_started_answered_and_finished_by_clicks_alone(lab: Lab):
    lab.open(
        lab.notebook(
            "%load_ext materia_nb", "%materia use Plan-Build-Eval", "%materia cast a guide", "%materia show"
        )
    )
    lab.run_all()
    panel = CastPanel(lab, 3)
    panel.picture.wait_for_class("n:Socket-1", "current")
    panel.press("Step")
    panel.says("Socket-1 (Plan) needs an answer")
    panel.reply({"workItems": [{"title": t, "context": "about it"} for t in ("Outline", "Draft")]})
    panel.says("next: Socket-2")
    panel.picture.wait_for_class("n:Socket-2", "current")

    panel.tab("items")
    panel.press("copy")
    panel.says("3 items, changed, not applied yet")
    panel.press("Apply")
    panel.picture.wait_for_label("l:items", "0/3 done")
    panel.press("Undo")
    panel.picture.wait_for_label("l:items", "0/2 done")
    panel.at.get_by_role("button", name="remove").nth(1).click()
    panel.press("Apply")
    panel.picture.wait_for_label("l:items", "0/1 done")

    visits = [
        ("Socket-2", "Three headings."),
        ("Socket-3", {"satisfied": False, "context": "one too many"}),
        ("Socket-2", "Two headings."),
        ("Socket-3", {"satisfied": True}),
        ("Socket-4", {"satisfied": True}),
        ("Socket-5", "There are two headings."),
    ]
    for steps, (socket, answer) in enumerate(visits, 2):
        panel.press("Run")
        panel.picture.wait_for_class(f"n:{socket}", "waiting")
        panel.says(f"{socket} (")
        panel.reply(answer)
        # While the answer is taken the buttons are dead for a moment.
        panel.says(f"ready after {steps} steps")
    panel.says("next: end")
    panel.press("Run")
    panel.says("complete after 7 steps")
    panel.picture.wait_for_class("s:end", "taken")
    panel.picture.wait_for_label("l:items", "1/1 done")
    assert panel.button("Run").is_disabled()
    panel.tab("state")
    panel.says("one too many")


@both_kernels
def test_a_run_is_paused_by_its_button_and_a_late_click_does_no_harm(lab: Lab):
    lab.open(lab.notebook(GATED, "%materia show", "%materia run --steps 3"))
    lab.run_cell(0)
    lab.run_cell(1)
    gate = lab.folder / "go on"
    panel = CastPanel(lab, 1)
    panel.press("Run")
    panel.picture.wait_for_class("n:Socket-2", "waiting")
    panel.press("Pause")
    panel.says("Run is running: step 2, Socket-2, WI-1 Outline, pausing")
    gate.touch()
    panel.says("paused")
    panel.picture.wait_for_class("n:Socket-3", "current")
    gate.unlink()

    # The same button while a cell runs the cast. Some releases of ipykernel take the click at once, on a thread
    # of their own; others when the cell has ended. The cast stops in front of the same socket.
    lab.start_cell(2)
    panel.picture.wait_for_class("n:Socket-2", "waiting")
    panel.press("Pause")
    gate.touch()
    lab.wait_idle()
    panel.says("Plan-Build-Eval: ready after 5 steps")
    panel.press("Run")
    panel.says("complete after 8 steps")
    assert [one.text for one in lab.outputs(2) if one.kind == "error"] == []
