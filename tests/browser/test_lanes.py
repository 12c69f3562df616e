"""Lanes in the panel: where they are, on the graph and on an axis of time, and answered one by one."""

from __future__ import annotations

import pytest

from browser.lab import Lab
from browser.surface import Surface
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


def test_a_person_answers_in_each_lane(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", AGENTS, "%materia use Lanes", "%materia cast a guide"))
    lab.run_all()
    panel = Surface(lab, 3)
    panel.press("Run")
    panel.says("wants you · docs · Check")
    panel.tab("Lanes 3")
    panel.says("release waits for you.")
    lab.screenshot("lanes", cell=3)
    lab.screenshot("lanes", cell=3, dark=True)
    panel.at.get_by_role("button", name="Answer").nth(1).click()
    panel.says("built Part 1")
    panel.reply('{"satisfied": true, "context": "good"}')
    panel.says("1/3")
    lab.screenshot("lanes-answered", cell=3)
