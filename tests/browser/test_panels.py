"""The panels of a cast in a real JupyterLab: a cast gone through by clicks alone."""

from __future__ import annotations

import json

from browser.lab import Lab

AGENTS = """
import json
def items(*names):
    return {"workItems": [{"title": n, "context": f"about {n}"} for n in names]}
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: items("Outline", "Draft"))
wb.agent("Build", lambda turn: f"built {turn.item_label}")
wb.agent("Eval", lambda: {"satisfied": True})
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
"""
ROUTE = "print([label for socket, _, _, label in wb.current.route if socket == 'Socket-2'])"


def test_a_cast_is_gone_through_by_clicks(lab: Lab):
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            AGENTS,
            "%materia use Plan-Build-Eval",
            "%materia cast a guide",
            "%materia show",
            ROUTE,
        )
    )
    lab.run_all()
    panel = lab.cell(4)
    panel.get_by_role("button", name="Step", exact=True).click()
    panel.get_by_text("next: Socket-2").first.wait_for()
    lab.screenshot("panels-toolbar")
    title = panel.get_by_placeholder("title: what is to be done").nth(1)
    title.wait_for()
    assert title.input_value() == "Draft"
    title.fill("")
    panel.get_by_text("must not be blank").wait_for()
    apply_ = panel.get_by_role("button", name="Apply", exact=True).first
    assert apply_.is_disabled()
    title.fill("Paragraphs")
    panel.get_by_text("changed, not applied yet").wait_for()
    apply_.click()
    panel.get_by_text("2 items", exact=True).wait_for()
    lab.screenshot("panels-items", cell=4)
    lab.screenshot("panels-items", cell=4, dark=True)
    panel.get_by_role("button", name="Run", exact=True).click()
    panel.get_by_text("complete after").first.wait_for()
    lab.run_cell(5)
    assert lab.cell_text(5).strip().endswith(str(["Outline", "Paragraphs"]))

    for tab in ("handoff", "state"):
        panel.get_by_role("tab", name=tab).click()
        panel.get_by_text({"handoff": "why", "state": "cursors and limits"}[tab], exact=True).first.wait_for()
        lab.screenshot(f"panels-{tab}", cell=4)


def test_a_person_answers_in_the_panel_and_hostile_text_stays_text(lab: Lab):
    hostile = "<img src=x onerror=window.__owned=1>"
    loadout = json.dumps(
        {
            "entry": "Socket-1",
            "sockets": {
                "Socket-1": {
                    "materia": "M",
                    "parse": "json",
                    "edges": [
                        {"when": "satisfied", "to": "Socket-2"},
                        {"when": "not_satisfied", "to": "end"},
                    ],
                },
                "Socket-2": {"materia": "M"},
            },
            "materia": {"M": {"label": hostile, "tools": "none", "prompt": f"{hostile} {{{{request}}}}"}},
        }
    )
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia loadout Hostile\n{loadout}",
            f"%materia cast {hostile}",
            "%materia show",
        )
    )
    lab.run_all()
    panel = lab.cell(3)
    panel.get_by_role("button", name="Run", exact=True).click()
    panel.get_by_role("tab", name="reply (waiting)").click()
    box = panel.get_by_placeholder("the answer", exact=True)
    box.fill(f'{{"context": "{hostile}"}}')
    panel.get_by_text("satisfied is missing").wait_for()
    assert panel.get_by_role("button", name="Send").is_disabled()
    lab.screenshot("panels-reply", cell=3)
    box.fill(f'{{"satisfied": true, "context": "{hostile}"}}')
    panel.get_by_text("this answer would be taken").wait_for()
    panel.get_by_role("button", name="Send").click()
    panel.get_by_text("next: Socket-2").first.wait_for()
    panel.get_by_role("tab", name="state").click()
    panel.get_by_text("cursors and limits").wait_for()
    panel.get_by_role("tab", name="handoff").click()
    panel.get_by_text("Handoff of step 1").wait_for()
    assert lab.page.evaluate("window.__owned") is None


def test_a_cast_is_shown_with_its_panels_and_running_its_cell_again_replaces_them(lab: Lab):
    count = "from ipywidgets.widgets.widget import _instances\nprint(len(_instances))"
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            AGENTS,
            "%materia use Plan-Build-Eval",
            "first = %materia cast a guide\nsecond = %materia cast a poem\ndisplay(first, second)",
            "%materia cast a song",
            "wb.current.show('items')",
            count,
        )
    )
    lab.run_all()
    both, panel = lab.cell(3), lab.cell(4)
    both.get_by_role("button", name="Step", exact=True).nth(1).wait_for()
    panel.get_by_role("button", name="Step", exact=True).click()
    panel.get_by_text("next: Socket-2").first.wait_for()
    lab.cell(5).get_by_placeholder("title: what is to be done").nth(1).wait_for()
    lab.run_cell(4)
    lab.run_cell(6)
    before = int(lab.cell_text(6))
    for _ in range(5):
        lab.run_cell(4)
        lab.run_cell(3)
    lab.run_cell(6)
    assert int(lab.cell_text(6)) == before
    both.get_by_role("button", name="Step", exact=True).nth(1).wait_for()
    assert any("image/svg+xml" in output.data for output in lab.outputs(4)), "the record of the cast"
