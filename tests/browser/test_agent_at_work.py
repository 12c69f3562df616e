"""Test working agents in JupyterLab: streamed text, tool calls and approvals."""

from __future__ import annotations

import json

from browser.lab import Lab
from browser.surface import Surface, violations
from model_server import LONG_S, Slow, says, serving

HOSTILE = "<img src=x onerror=window.__owned=1>"
LOADOUT = {
    "entry": "Socket-1",
    "sockets": {"Socket-1": {"materia": "Build"}},
    "materia": {"Build": {"tools": "coding", "prompt": "Build {{request}}"}},
}
AGENT = f"""
import time
from dataclasses import replace
from pathlib import Path
from materia_nb.agents import NeedsApproval, CallEvent, NoteEvent, Reply, TextEvent, ToolCall, Usage

COMMAND = "make widget  # {HOSTILE}"

class Coder:
    name = "coder"

    def answer(self, turn):
        decided = [call for call in turn.calls if call.decided]
        if decided:
            turn.report(CallEvent(replace(decided[0], result="made")))
            return Reply("It is " + ("built." if decided[0].decided == "once" else "not built."), Usage(900, 80))
        turn.report(NoteEvent("429 from the model; trying again in 1 s (1 of 4)"))
        turn.report(CallEvent(ToolCall(id="1", tool="read", args={{"path": "Makefile"}}, result="widget: ...")))
        reason = "I have read the Makefile, and I will build the widget {HOSTILE} now."
        for word in reason.split(" "):
            turn.report(TextEvent(word + " "))
        while not Path("go on").exists():
            time.sleep(0.01)
        return NeedsApproval((ToolCall(id="2", tool="bash", args={{"command": COMMAND}}, round=2, said=reason),))

wb.agent("Build", Coder())
"""


def test_text_is_streamed_and_a_command_waits_for_approval(lab: Lab):
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia define loadout Building\n{json.dumps(LOADOUT)}",
            AGENT,
            "%materia cast the widget",
            "%materia handoff",
        )
    )
    for cell in range(4):
        lab.run_cell(cell)
    panel = Surface(lab, 3)
    panel.press("Step")
    panel.wait_for_text("I have read the Makefile")
    panel.wait_for_text("429 from the model")
    panel.wait_for_status("Running: Build")
    panel.tab("State")
    panel.at.locator("[role=tab][aria-selected=true]", has_text="State").wait_for()
    (lab.folder / "go on").touch()
    panel.wait_for_status("Your turn: Build asks for approval")
    panel.wait_for_text("is asking for approval to run")  # what waits for a person comes to the front
    panel.at.locator(".mnb-said", has_text="I have read the Makefile").wait_for()
    panel.wait_for_text("make widget")
    lab.screenshot("agent-asks", cell=3)
    lab.screenshot("agent-asks", cell=3, dark=True)
    panel.press("Allow once")
    panel.wait_for_status("ready · the end is next")
    lab.run_cell(4)
    assert "bash make widget" in lab.outputs(4)[0].text
    panel.tab("Calls 2")
    panel.wait_for_text("allowed once")
    assert violations(lab, "Calls") == []
    assert lab.page.evaluate("window.__owned") is None


def test_model_streams_while_its_cell_runs_and_can_be_interrupted(lab: Lab):
    slow = Slow(("I begin with ", f"the hinges {HOSTILE}"))
    with serving(slow, says("The door hangs.")) as server:
        lab.open(
            lab.notebook(
                "%load_ext materia_nb",
                f"%%materia define loadout Building\n{json.dumps(LOADOUT)}",
                f"%materia agent * openai:tiny --base-url {server.url}",
                "wb.cast('the door').show('reply')",
                "%materia step",
                "%materia step",
            )
        )
        for cell in range(4):
            lab.run_cell(cell)
        lab.start_cell(4)
        assert slow.begun.wait(LONG_S)
        lab.cell(3).get_by_text("I begin with the hinges").wait_for()
        lab.cell(4).get_by_text("the hinges").wait_for()
        lab.screenshot("model-streams", cell=4)
        lab.interrupt()
        lab.wait_idle()
        assert slow.gone.wait(LONG_S), "the request was given up"
        assert "Interrupted" in lab.outputs(4)[-1].text
        lab.run_cell(5)
        assert "The door hangs." in lab.outputs(5)[-1].text
    assert len(server.asked) == 2
    assert lab.page.evaluate("window.__owned") is None
