"""Test lanes in the panel: in the graph, on the time axis, and with a person who answers."""

from __future__ import annotations

import pytest

from browser.lab import Lab
from browser.surface import Surface, press_button
from stream_helpers import stream_agents, streams_config

pytestmark = pytest.mark.browser

STREAMS = {"docs": [0, 3], "code": [1, 2, 4], "release": [5]}
CONFIG = streams_config(2)
LOADOUT = {**CONFIG["loadouts"]["T"], "materia": CONFIG["materia"]}
AGENTS = f"""
import materia_nb
wb = materia_nb.Workbench(".")
wb.loadouts.define("Lanes", {LOADOUT!r})
wb.agent("Plan", lambda: {stream_agents(STREAMS)["Plan"]()!r})
wb.agent("Setup", lambda: "ready")
wb.agent("Build", lambda item: "built " + item["title"])
wb.agent("Tell", lambda: "told")
"""


def test_person_answers_in_each_lane(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", AGENTS, "%materia use Lanes", "%materia cast a guide"))
    lab.run_all()
    panel = Surface(lab, 3)
    panel.press("Run")
    panel.wait_for_text("Your turn: docs · Check")
    panel.tab("Lanes 3")
    panel.wait_for_text("release is waiting for you.")
    lab.screenshot("lanes", cell=3)
    lab.screenshot("lanes", cell=3, dark=True)
    press_button(panel.at.get_by_role("button", name="Answer").nth(1))
    panel.wait_for_text("built Part 1")
    panel.reply('{"satisfied": true, "context": "good"}')
    panel.wait_for_text("1/3")
    lab.screenshot("lanes-answered", cell=3)


APPROVALS = """
from materia_nb.agents.interface import NeedsApproval, ToolCall
class Builder:
    name = "builder"
    def answer(self, turn):
        if "bash" in turn.allowed or any(call.decided for call in turn.calls):
            return "built with leave"
        return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "make " + turn.lane}),))
yes = lambda: '{"satisfied": true}'
cast = wb.cast("a guide", loadout="Lanes", agents={"Build": Builder(), "Check": yes})
print(cast.run())
cast.show()
"""
FAILED = """
def build(item, lane):
    if lane == "code":
        raise RuntimeError("no compiler")
    return "built " + item["title"]
cast = wb.cast("a guide", loadout="Lanes", agents={"Build": build, "Check": lambda: '{"satisfied": true}'})
print(cast.run())
cast.show()
"""


def test_calls_are_approved_and_denied_in_each_lane(lab: Lab):
    lab.open(lab.notebook(AGENTS, APPROVALS))
    lab.run_all()
    panel = Surface(lab, 1)
    panel.wait_for_status("Your turn: docs · Build asks for approval")
    panel.tab("Lanes 3")
    press_button(panel.at.get_by_role("button", name="Answer").nth(2))
    panel.wait_for_text("make release")
    lab.screenshot("lanes-approval", cell=1)
    lab.screenshot("lanes-approval", cell=1, dark=True)
    panel.press("Allow once")
    panel.wait_for_text("make docs")  # the next one that asks
    panel.press("Deny")
    panel.wait_for_text("make code")
    panel.press("Allow always")
    panel.wait_for_status("ready")
    panel.press("Run")
    panel.wait_for_status("done")


def test_failed_lane_can_be_answered_and_its_steps_are_shown(lab: Lab):
    lab.open(lab.notebook(AGENTS, FAILED))
    lab.run_all()
    panel = Surface(lab, 1)
    panel.wait_for_status("failed · code · Build")
    bar = panel.at.locator(".mnb-lanesaxis").get_by_role("button", name="Build 2", exact=False)
    bar.click()
    panel.wait_for_text("lane code")
    panel.wait_for_text("step 3")
    lab.screenshot("lanes-step", cell=1)
    lab.screenshot("lanes-step", cell=1, dark=True)
    panel.tab("Prompt")
    panel.wait_for_text("Build Part 1 after")
    bar.press("ArrowLeft")
    lab.page.keyboard.press("Enter")
    panel.tab("Output")
    panel.wait_for_text("ready")
    panel.press("Now")
    panel.tab("Timeline")
    row = panel.at.get_by_role("row").filter(has_text="code").filter(has_text="Setup")
    row.click()
    panel.wait_for_text("ready")
    assert row.get_attribute("aria-selected") == "true"
    assert row.locator(".mnb-gantt > span").count(), "it stands on the axis of the lanes"
    lab.screenshot("lanes-row", cell=1)
    lab.screenshot("lanes-row", cell=1, dark=True)
    panel.press("Now")
    panel.tab("Lanes 3")
    panel.press("Inspect")
    panel.press("Answer it by hand…")
    panel.field("the answer by hand").fill("built by hand")
    panel.wait_for_text("this answer is valid")
    panel.press("Send")
    panel.wait_for_status("ready")
    panel.press("Run")
    panel.wait_for_status("failed · code · Build")  # its next item
    panel.wait_for_text("1/3")
