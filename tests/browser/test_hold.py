"""Consent to a command in a real JupyterLab: the exact command is read, then approved by a click."""

from __future__ import annotations

import json

import protocol_helpers as p
from browser.lab import Lab

HOSTILE = "<img src=x onerror=window.__owned=1>"
LOADOUT = {
    "entry": "Socket-1",
    "sockets": {
        "Socket-1": {
            "materia": "Clean",
            "parse": "json",
            "handoff": "agent-contract",
            "edges": [{"when": "satisfied", "to": "Socket-2"}, {"when": "not_satisfied", "to": "end"}],
        },
        "Socket-2": {"materia": "Tell"},
    },
    "materia": {
        "Clean": {"tools": "none", "prompt": "Clean up {{request}}"},
        "Tell": {"tools": "none", "prompt": "Tell"},
    },
}
ASK = {
    "operation": f"remove what was built {HOSTILE}",
    "exact_content": f"rm -rf build  # {HOSTILE}",
    "scope": "build/",
    "risk_level": "HIGH",
    "rollback": "make build",
    "verification": "the folder is gone",
    "approval_id": "P-" + "0123456789abcdef" * 2,
}


def report(status, **more):
    return p.block(p.contract(agent_status__plan_status=status, **more))


def test_a_command_is_approved_by_a_click(lab: Lab):
    replies = [report("APPROVAL_REQUEST", approval_request=ASK), report("IN_PROGRESS"), report("COMPLETE")]
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia loadout Cleaning\n{json.dumps(LOADOUT)}",
            f"replies = iter({replies!r})\nwb.agent('Clean', lambda: next(replies))\nwb.agent('Tell', lambda: 'told');",
            "%materia cast the project",
        )
    )
    lab.run_all()
    panel = lab.cell(3)
    panel.get_by_role("button", name="Run", exact=True).click()
    panel.get_by_role("tab", name="reply (waiting)").click()
    panel.get_by_text("rm -rf build").first.wait_for()
    panel.get_by_text("fingerprint").wait_for()
    lab.screenshot("hold", cell=3)
    lab.screenshot("hold", cell=3, dark=True)
    panel.get_by_role("button", name="Approve once").click()
    panel.get_by_text("next: Socket-2").first.wait_for()
    assert lab.page.evaluate("window.__owned") is None
