"""Test in JupyterLab that each kind of failure can be fixed in the panel with few clicks and without a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from browser.surface import Surface, violations

if TYPE_CHECKING:
    from browser.lab import Lab

BENCH = """
import sys
from materia_nb import Workbench
from materia_nb.agents import Reply, Usage
wb = Workbench(".")
def python(code, **more):
    return {"type": "utility", "command": [sys.executable, "-I", "-S", "-c", code], "parse": "json", **more}
def loadout(count, **more):
    return {"entry": "Socket-1", "materia": {"Count": count, "Tell": {"tools": "none", "prompt": "Tell"}}, "sockets": {
        "Socket-1": {"materia": "Count", "edges": [{"when": "always", "to": "Socket-2"}], **more},
        "Socket-2": {"materia": "Tell"}}}
def failed(name, count, agents=None, budget=None, **more):
    wb.load({"budget": {"maxTokens": budget}} if budget else {})
    wb.loadouts.define(name, loadout(count, **more))
    cast = wb.cast("x", loadout=name, agents={"Tell": lambda: "told", **(agents or {})})
    cast.run()
    return cast
"""
UTILITY = {
    "utility_exit": "python('import sys; print(\"no such file\", file=sys.stderr); raise SystemExit(3)')",
    "utility_timeout": "python('import time; time.sleep(60)', timeoutMs=100)",
    "utility_not_started": "{**python(''), 'command': ['/no/such/program']}",
    "invalid_output": "python('print(1)')",
    "utility_failed": 'python(\'print("""{"satisfied": false, "state": {"n": {"ok": false, "error": "none"}}}""")\')',
}
AGENT = "{'tools': 'none', 'prompt': 'Count', 'generator': True}"
JSON = '{"state": {"n": 1}}'
ITEMS = '{"workItems": []}'


class Clicks:
    """Counts the clicks on a panel."""

    def __init__(self, surface: Surface) -> None:
        self.surface, self.count = surface, 0

    def press(self, name: str) -> None:
        self.surface.press(name)
        self.count += 1

    def write(self, label: str, text: str) -> None:
        self.surface.field(label).fill(text)


def by_hand(text):
    def mend(at: Clicks) -> None:
        at.press("Answer it by hand…")
        assert at.surface.field("the answer by hand").input_value() in ("", "prose"), (
            "what was refused, to be corrected"
        )
        at.write("the answer by hand", text)
        at.surface.wait_for_text("this answer is valid")
        at.press("Send")

    return mend


def pinned(at: Clicks) -> None:
    at.press("Answer it by hand…")
    at.write("the answer by hand", JSON)
    at.press("Pin and continue")


def skipped(at: Clicks) -> None:
    at.press("Skip this step…")
    at.write("reason for skipping", "not today")
    at.press("Skip it")


def corrected(at: Clicks) -> None:
    at.surface.at.get_by_text("Edit the output of step").locator("visible=true").click()
    at.count += 1
    at.write("the corrected output", JSON)
    at.press("Use this output")


def pressed(name):
    return lambda at: at.press(name)


FAILURES = {
    "utility_exit": (f"failed('A', {UTILITY['utility_exit']})", "Count exited with code 3", pressed("Apply it and retry")),
    "utility_timeout": (f"failed('B', {UTILITY['utility_timeout']})", "Count took longer than 100 ms", by_hand(JSON)),
    "utility_not_started": (f"failed('C', {UTILITY['utility_not_started']})", "Count could not be started", skipped),
    "invalid_output": (f"failed('D', {UTILITY['invalid_output']})", "Count gave an unusable output", pinned),
    "utility_failed": (f"failed('E', {UTILITY['utility_failed']})", "Count reported a failure", corrected),
    "repair_exhausted": (
        f"failed('F', {AGENT}, {{'Count': lambda: 'prose'}}, parse='json')", "Count gave no usable answer", by_hand(ITEMS),
    ),
    "agent_error": (
        f"failed('G', {AGENT}, {{'Count': lambda turn, n=[]: n.append(1) or (1/0 if len(n) == 1 else {ITEMS})}}, parse='json')",
        "Count failed", pressed("Retry this turn"),
    ),
    "budget": (
        f"failed('H', {AGENT}, {{'Count': lambda: Reply('{ITEMS}', Usage(9, 9))}}, budget=5, parse='json')",
        "Count used up the budget", pressed("Raise it"),
    ),
}  # fmt: skip


SAYS = """import sys; print('File "{project}/notes/a b.txt", line 3 <img src=x onerror="document.title=1">', file=sys.stderr)
print("see table.csv, ../../../../../../../etc/passwd and {project}/gone.csv", file=sys.stderr); raise SystemExit(3)"""


def test_files_named_by_a_failure_open_in_jupyterlab(lab: Lab):
    project = lab.folder.resolve()
    (project / "notes").mkdir()
    (project / "notes" / "a b.txt").write_text("Three words here")
    (project / "table.csv").write_text("x,y\n1,2\n")
    code = SAYS.format(project=project.as_posix())
    lab.open(lab.notebook(BENCH, f"failed('A', python({code!r})).show()"))
    lab.run_all()
    panel = Surface(lab, 1)
    panel.wait_for_text("Count exited with code 3")
    links = panel.at.locator(".mnb-failure a")
    shown = [text for text in links.all_inner_texts() if text]
    assert shown == [f'"{project.as_posix()}/notes/a b.txt"', "table.csv"], (
        "not what is gone, nor what is outside of the server's"
    )
    assert panel.at.locator(".mnb-failure img").count() == 0
    assert links.nth(1).evaluate("(one) => one.pathname") == f"/files/{project.name}/table.csv"
    links.first.focus()
    lab.page.keyboard.press("Enter")
    lab.page.locator(".jp-FileEditor", has_text="Three words here").wait_for()
    assert len(lab.page.context.pages) == 1


def test_each_kind_of_failure_is_fixed_in_at_most_three_clicks(lab: Lab):
    """Each cast runs in the same cell, because each further panel makes the page slower."""
    changes = "wb.loadouts.define('A', loadout(python('print({})'))) and None"
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    lab.open(lab.notebook(BENCH, "", changes))
    lab.run_cell(0)
    for kind, (made, headline, mend) in FAILURES.items():
        lab.set_source(1, f"{made}.show()")
        lab.run_cell(1)
        at = Clicks(Surface(lab, 1))
        at.surface.at.scroll_into_view_if_needed()
        at.surface.wait_for_status("failed · Count")
        at.surface.wait_for_text(headline)
        ways = at.surface.at.locator(".mnb-ways").evaluate("(one) => one.getBoundingClientRect().bottom")
        low = at.surface.at.evaluate("(one) => one.getBoundingClientRect().bottom")
        assert ways <= low, f"{kind}: what can be done is in sight"
        if kind == "utility_exit":
            at.surface.wait_for_text("no such file")
            lab.run_cell(2)
            at.surface.wait_for_text("changed since this cast began")
            assert violations(lab, kind) == []
            assert at.surface.parts_out_of_reach() == [], "the timeline beside the wide inspector"
            at.surface.tab("Items")
            assert at.surface.parts_out_of_reach() == []
            lab.screenshot("failed-utility", cell=1)
            lab.screenshot("failed-utility", cell=1, dark=True)
        mend(at)
        at.surface.wait_for_status("is next")
        at.press("Run")
        at.surface.wait_for_status("done")
        at.surface.wait_for_text("told")
        assert at.count <= 3, kind
        if kind == "utility_exit":
            lab.screenshot("mended", cell=1)
