"""Test the cast panel in JupyterLab: mouse, keyboard, going back, forks and accessibility."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.kernels import both_kernels
from browser.lab import DARK, LIGHT
from browser.surface import Surface, press_button, violations
from stream_helpers import stream_agents, streams_config

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

HOSTILE = "<img src=x onerror=window.__owned=1>"
AGENTS = """
def items(*names):
    return {"workItems": [{"title": n, "context": f"about {n}"} for n in names]}
wb = __import__("materia_nb").Workbench(".")
wb.agent("Plan", lambda: items("Outline", "Draft"))
wb.agent("Build", lambda turn: f"built {turn.item_label}")
wb.agent("Eval", lambda: {"satisfied": True})
wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Narrate", lambda: "told")
"""
GATED = (
    AGENTS.replace('lambda turn: f"built {turn.item_label}"', "build").replace(
        "wb = ",
        """
import pathlib, threading
def build(turn):
    while not pathlib.Path("go on").exists():
        threading.Event().wait(0.01)
    return "built"
wb = """,
    )
    + "%load_ext materia_nb\n%materia use Plan-Build-Eval\n%materia cast slowly\n"
)


RUN_IN_KERNEL = """async (code) => {
    await jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({ code }).done;
}"""


def test_reason_is_visible_and_each_question_receives_the_focus(lab: Lab):
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    start = "%load_ext materia_nb\n%materia use Plan-Build-Eval\nwb.agent('Build', lambda: 'built')\n%materia cast x"
    lab.open(lab.notebook(start, "%materia show"))
    lab.run_all()
    panel = Surface(lab, 1)

    def wait_for_focus(name: str) -> None:
        has_focus = "(name) => [document.activeElement.ariaLabel, ...document.activeElement.classList].includes(name)"
        lab.page.wait_for_function(has_focus, arg=name)

    panel.press("Step")
    wait_for_focus("title of item 1")
    panel.field("title of item 1").fill("Outline")
    panel.field("context of item 1").fill("three headings")
    panel.press("Send these items")
    panel.wait_for_status("Build is next")
    wait_for_focus("mnb-pill")
    panel.tab("Why")
    panel.press("Run")
    panel.wait_for_status("Your turn: Eval")
    wait_for_focus("the reason")
    reason = panel.field("the reason")
    wait_until_in_view(lab, reason)  # without scrolling
    wait_until_in_view(lab, panel.at.locator("pre", has_text="built"))
    reason.fill("There are four.")
    panel.press("✗ not satisfied")
    panel.at.locator(".mnb-under", has_text="visit 2").wait_for()
    wait_for_focus("the reason")
    lab.page.set_viewport_size({"width": 853, "height": 533})  # 1280 x 800 at 150 %
    wait_until_in_view(lab, reason, scroll=True)

    panel.tab("State")
    path = panel.field("new path")
    path.press_sequentially("no")
    for code in ('%%materia reply\n{"satisfied": false, "context": "Five."}', "%materia run"):
        lab.page.evaluate(RUN_IN_KERNEL, code)
    panel.at.get_by_role("tab", name="Answer ●").wait_for()
    path.press_sequentially("te")  # the question does not interrupt typing
    expect(path).to_have_value("note")
    panel.at.get_by_role("tab", name="State", selected=True).wait_for()
    panel.at.locator(".mnb-pill").focus()
    panel.at.get_by_role("tab", name="Answer", selected=True).wait_for()
    panel.at.locator(".mnb-under", has_text="visit 3").wait_for()


def wait_until_in_view(lab: Lab, field: Locator, *, scroll: bool = False) -> None:
    """Wait until nothing covers the field at its top and bottom; JupyterLab lays out its page some time after a resize."""
    in_view = """([field, scroll]) => {
        if (scroll) field.scrollIntoView({ block: 'nearest' });
        const { left, right, top, bottom } = field.getBoundingClientRect();
        return [top + 4, bottom - 4].every((y) => document.elementFromPoint((left + right) / 2, y) === field);
    }"""
    lab.page.wait_for_function(in_view, arg=[field.element_handle(), scroll])


def test_cast_can_be_completed_by_clicks_alone(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", "%materia use Plan-Build-Eval", f"%materia cast a guide {HOSTILE}"))
    lab.run_all()
    panel = Surface(lab, 2)
    high = panel.height
    panel.press("Step")
    panel.wait_for_status("Your turn: Plan")
    for place, title in enumerate(("Outline", HOSTILE), 1):
        panel.field(f"title of item {place}").fill(title)
        panel.field(f"context of item {place}").fill("about it")
        if place == 1:
            panel.press("Add")
    panel.press("Send these items")
    panel.wait_for_status("ready · Build is next")

    panel.tab("Items")
    panel.field("title of WI-2").fill("")
    panel.wait_for_text("must not be blank")
    assert panel.parts_out_of_reach() == []
    panel.field("title of WI-2").fill("Paragraphs")
    panel.field("title of WI-2").press("Alt+ArrowUp")
    panel.wait_for_text("changed, not applied yet")
    panel.press("Apply")
    panel.at.get_by_text("2 items", exact=True).wait_for()
    expect(panel.field("title of WI-1")).to_have_value("Paragraphs")
    panel.press("Undo")
    expect(panel.field("title of WI-1")).to_have_value("Outline")
    panel.at.get_by_label("remove WI-2").click()
    panel.press("Apply")
    panel.at.get_by_text("1 item", exact=True).wait_for()

    panel.press("Run")  # which goes on by itself once what it stopped for is answered
    for word, answer in (("Build", "Three headings."), ("Eval", None), ("Build", "Two headings.")):
        panel.wait_for_status(f"Your turn: {word}")
        if answer is not None:
            panel.reply(answer)
        else:
            panel.wait_for_text("✗ leads to Build (1st of 3 times)")
            panel.field("the reason").fill(f"one too many {HOSTILE}")
            panel.press("✗ not satisfied")
    for word in ("Eval", "Maintain"):
        panel.wait_for_status(f"Your turn: {word}")
        panel.press("✓ satisfied")
    panel.wait_for_status("Your turn: Narrate")
    panel.reply("There are two headings.")
    panel.wait_for_status("done")
    assert panel.button("Run").get_attribute("aria-disabled") == "true"
    panel.tab("State")
    panel.wait_for_text("one too many")
    assert panel.height == high, "nothing outside ever moves"
    assert lab.page.evaluate("window.__owned") is None


@both_kernels
def test_kernel_interrupt_pauses_a_run_started_by_button(lab: Lab):
    lab.open(lab.notebook(GATED, "1 + 1"))
    lab.run_cell(0)
    panel = Surface(lab, 0)
    panel.press("Run")
    panel.wait_for_status("Running: Build")
    lab.run_cell(1)  # and the kernel still hears it afterwards
    lab.interrupt()
    panel.wait_for_status("Pausing: Build")
    (lab.folder / "go on").touch()
    panel.wait_for_status("paused · Eval")
    assert lab.outputs(1)[0].text == "2"


@both_kernels
def test_run_is_paused_by_its_button_and_late_clicks_are_harmless(lab: Lab):
    lab.open(lab.notebook(GATED, "%materia run --steps 3"))
    lab.run_cell(0)
    gate = lab.folder / "go on"
    panel = Surface(lab, 0)
    unused = [
        panel.at.get_by_role("button", name=name, exact=True) for name in ("Pause", "Abort…", "Now", "play the steps")
    ]
    for control in (*unused, *(panel.at.locator(".mnb-gridhead").get_by_text(text) for text in ("tokens", "cost"))):
        expect(control.first).to_be_hidden()
    panel.press("Run")
    panel.wait_for_status("Running: Build")
    panel.press("Pause")
    panel.wait_for_status("Pausing: Build")
    gate.touch()
    panel.wait_for_status("paused · Eval")
    expect(unused[0]).to_be_hidden()
    expect(panel.button("Run")).to_be_focused()
    expect(panel.button("Abort…")).to_be_visible()
    gate.unlink()
    # The same button while a cell runs the cast. Some releases of ipykernel take the click at once, on a thread
    # of their own; others when the cell has ended. The cast stops in front of the same socket.
    lab.start_cell(1)
    panel.wait_for_status("Running: Build")
    panel.press("Pause")
    gate.touch()
    lab.wait_idle()
    panel.at.locator(".mnb-counts", has_text="5 steps").wait_for(state="attached")
    panel.press("Run")
    panel.wait_for_status("done")
    assert [output.text for output in lab.outputs(1) if output.kind == "error"] == []


def test_earlier_step_can_be_displayed_restored_and_forked(lab: Lab):
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            AGENTS,
            "%materia use Plan-Build-Eval",
            "first = %materia cast a guide\nfirst.run()\n%materia show",
            "print([socket for socket, *_ in wb.current.route], wb.current.id != first.id)",
        )
    )
    lab.run_all()
    panel = Surface(lab, 3)
    rows = panel.at.get_by_role("grid", name="steps")
    rows.locator("[data-index='2']").click()
    panel.at.locator(".mnb-under", has_text="step 3").wait_for()
    panel.tab("Why")
    panel.wait_for_text("So edge 1 (✓) leads to Maintain")
    rows.focus()
    lab.page.keyboard.press("ArrowUp")
    panel.at.locator(".mnb-under", has_text="step 2").wait_for()
    panel.choose_again("Go back to here")
    panel.wait_for_status("ready · Eval is next")
    lab.run_cell(4)
    assert lab.cell_text(4).strip().endswith("['Socket-1', 'Socket-2'] False")
    panel.field("branch of steps").select_option(label="branch 1: abandoned after step 2")
    panel.at.locator(".mnb-under", has_text="step 8").wait_for()
    panel.field("branch of steps").select_option(label="current branch")
    panel.press("Fork")
    panel.wait_for_text("A and B do not differ; each has 2 steps.")
    panel.press("Step")
    panel.wait_for_status("ready · Maintain is next")
    panel.wait_for_text("only in B")
    lab.run_cell(4)
    assert lab.cell_text(4).strip().endswith("['Socket-1', 'Socket-2', 'Socket-3'] True")
    panel.press("the original")
    panel.wait_for_status("ready · Eval is next")


def test_debugger_keys_comparison_menu_and_cast_list_work(lab: Lab):
    lab.open(
        lab.notebook(
            AGENTS,
            "%load_ext materia_nb\n%materia use Plan-Build-Eval\n%materia cast a guide",
            'wb.cast("another guide").close()\nwb.casts',
        )
    )
    lab.run_all()
    panel = Surface(lab, 1)
    keys = lab.page.keyboard
    panel.settled(panel.button("Step")).focus()
    keys.press("F10")
    panel.wait_for_status("ready · Build is next")
    keys.press("Shift+F10")
    panel.at.get_by_role("tab", name="Items 1/2").wait_for()
    keys.press("F8")
    panel.wait_for_status("done")
    panel.at.locator("[data-index='4']").click(button="right")
    panel.at.get_by_role("menuitem", name="with the last visit").click()
    panel.wait_for_text("A is step 2, B is step 5.")
    compared = panel.at.get_by_role("tabpanel", name="Compare")
    expect(compared.locator("p.mnb-words").first).to_have_text("built OutlineDraft")
    expect(compared.locator("p.mnb-words del").first).to_have_text("Outline")
    lab.screenshot("compare-visits", cell=1)
    lab.screenshot("compare-visits", cell=1, dark=True)
    panel.tab("Timeline")
    panel.at.locator("[data-index='4']").click(button="right")
    panel.at.get_by_role("menuitem", name="Compare the cast with").click()
    panel.at.get_by_role("menuitem", name="another guide").wait_for()
    keys.press("Escape")

    casts = lab.cell(2).locator(".mnb-casts")
    casts.get_by_role("button", name="refresh the list of casts").click()
    first, second = (casts.locator(".mnb-gridrow", has_text=words) for words in ("another guide", "complete"))
    expect(second).to_contain_text("a guide")
    first.click()
    press_button(casts.get_by_role("button", name="Compare…"))
    casts.get_by_role("menuitem").filter(has_text="a guide").filter(has_not_text="another").click()
    casts.get_by_role("region", name="differences between the casts").get_by_text("A ends at the start").wait_for()
    second.click()
    casts.get_by_role("button", name="Delete…").click()
    casts.get_by_role("menuitem", name="Keep it").click()
    casts.get_by_label("find casts by name, request, loadout or tag").fill("another")
    expect(casts.get_by_role("grid")).to_have_attribute("aria-rowcount", "2")
    lab.screenshot("casts", cell=2)
    lab.screenshot("casts", cell=2, dark=True)


def test_keyboard_shortcuts_step_select_and_edit_without_changing_cells(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", AGENTS, "%materia use Plan-Build-Eval", "%materia cast a guide"))
    lab.run_all()
    panel = Surface(lab, 3)
    keys = lab.page.keyboard
    panel.settled(panel.button("Step")).focus()
    keys.press("Enter")
    panel.wait_for_status("ready · Build is next")
    assert panel.button("Step").evaluate("(one) => document.activeElement === one"), "the focus stays where it is"
    panel.at.get_by_role("tab", name="Answer").focus()
    for _ in range(3):
        keys.press("ArrowRight")
    panel.at.get_by_role("tab", name="State", selected=True).wait_for()
    panel.at.locator(".mnb-branch summary", has_text="workItems").wait_for()
    panel.at.get_by_role("grid", name="steps").focus()
    keys.press("Home")
    panel.at.locator(".mnb-under", has_text="step 1").wait_for()
    for key in ("d", "d", "x", "Delete"):
        keys.press(key)  # in command mode these would take the cell away
    panel.press("Now")
    panel.button("Abort…").focus()
    keys.press("Enter")
    panel.wait_for_text("Abort this cast?")
    keys.press("Escape")
    assert panel.button("Abort…").evaluate("(one) => document.activeElement === one")
    # The second press comes in the same moment: nobody can have read the menu.
    panel.button("Abort…").evaluate("(button) => { button.click(); document.activeElement.click(); }")
    panel.settled(panel.at.get_by_role("menuitem", name="Abort the cast"))
    assert panel.at.locator(".mnb-pill", has_text="aborted").is_hidden()
    keys.press("Enter")
    panel.wait_for_status("aborted")
    assert lab.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length") == 4


PARTS = """
from materia_nb.display.blocks import Line
from materia_nb.widgets.cast_parts import PARTS, Part
steps = lambda seen: [Line(f"{len(seen.shown.steps)} steps so far")]
PARTS["made-up"] = Part(name="made-up", at="dock", title="Made up", blocks=steps)
c = wb.cast("a guide"); c.step()
c
"""


def test_parts_of_the_panel_are_tabs_and_can_be_shown_separately(lab: Lab):
    names = {
        "made-up": "dock",
        "items": "dock",
        "timeline": "dock",
        "state": "inspector",
        "reply": "inspector",
        "inspector": "inspector",
        "toolbar": "bar",
        "graph": "graph-cell",
    }
    lab.open(
        lab.notebook(
            f"%load_ext materia_nb\n{AGENTS}\n%materia use Plan-Build-Eval",
            PARTS,
            *(f"%materia show {name}" for name in names),
        )
    )
    lab.run_all()
    panel = Surface(lab, 1)
    row = panel.at.get_by_role("tablist", name="timeline and items").get_by_role("tab")
    expect(row).to_have_text(["Timeline", "Items 0/2", "Made up"])
    row.nth(0).focus()
    lab.page.keyboard.press("ArrowLeft")
    expect(row.nth(2)).to_be_focused()
    panel.wait_for_text("1 steps so far")
    assert panel.at.get_by_role("grid", name="steps").is_hidden()
    panel.press("Step")
    panel.wait_for_text("2 steps so far")
    for cell, (name, place) in enumerate(names.items(), 2):
        alone = lab.cell(cell).locator(".mnb-surface")
        alone.locator(f".mnb-{place}").locator("visible=true").first.wait_for()
        seen = [
            one
            for one in ("bar", "dock", "inspector", "graph-cell")
            if alone.locator(f".mnb-{one}").locator("visible=true").count()
        ]
        assert seen == [place], name
        assert alone.get_by_role("tablist", name="timeline and items").locator("visible=true").count() == 0
    lab.cell(2).get_by_text("2 steps so far").locator("visible=true").wait_for()
    expect(lab.cell(3).get_by_role("grid", name="work items")).to_be_visible()
    expect(lab.cell(4).get_by_role("grid", name="steps")).to_be_visible()


STOPS = """
%load_ext materia_nb
%materia use Plan-Build-Eval
wb.agent("Plan", lambda: {"workItems": [{"title": "a", "context": "b"}]})
wb.agent("Build", lambda: "built"); wb.agent("Maintain", lambda: {"satisfied": True})
wb.agent("Eval", lambda turn: {"satisfied": turn.visit != 1, "context": "not yet"})
c = wb.cast("a guide")
c
"""


def test_breakpoints_are_set_on_the_graph_and_in_the_inspector(lab: Lab):
    lab.open(lab.notebook(STOPS))
    lab.run_all()
    panel = Surface(lab, 0)

    def menu(element: str, words: str) -> None:
        panel.picture.click(element, button="right")
        panel.at.get_by_role("menuitem", name=words).click()

    def chip(words: str) -> Locator:
        return panel.at.get_by_role("button", name=f"remove the breakpoint {words}")

    menu("n:Socket-2", "Stop after it")
    chip("after Build").click()
    menu("e:edge:1:Socket-3", "Stop when taken")
    chip("Eval → Build (edge 2)").wait_for()
    panel.press("Run")
    panel.wait_for_status("Breakpoint: Build")
    panel.picture.wait_for_class("e:edge:1:Socket-3", "break")
    panel.picture.click("e:edge:1:Socket-3")
    panel.wait_for_text("not_satisfied · 2nd edge")
    panel.button("breakpoint").click()
    panel.at.get_by_role("menuitem", name="✓ Eval → Build (edge 2)").click()
    chip("Eval → Build (edge 2)").wait_for(state="detached")
    panel.picture.click("n:Socket-4")
    panel.wait_for_text("Socket-4 ·")  # in the inspector; its name stands in the timeline too
    unsatisfied = panel.at.get_by_role("menuitem", name="Maintain not satisfied")
    while not unsatisfied.count():  # the frame that is under way may draw the inspector, and close its menu
        panel.button("breakpoint").click()
    unsatisfied.click()
    chip("Maintain not satisfied").wait_for()


BREAKS = """
%load_ext materia_nb
%materia use Plan-Build-Eval
wb.agent("Plan", lambda: {"workItems": [{"title": "a", "context": "b"}]})
def broken():
    raise ValueError("no line")
wb.agent("Build", broken)
c = wb.cast("a guide"); c.breakpoints.add("Socket-3"); c.edit.budget(1000); c.step()
c
"""


def test_several_panels_have_no_accessibility_violations(lab: Lab):
    lanes = streams_config(2)
    lanes = {**lanes["loadouts"]["T"], "materia": lanes["materia"]}
    plan = stream_agents({"docs": [0, 3], "code": [1, 2, 4]})["Plan"]()
    agents = f"wb = __import__('materia_nb').Workbench('.')\nwb.loadouts.define('Lanes', {lanes!r})\nfor who in ('Setup', 'Build', 'Tell'): wb.agent(who, lambda: 'done')"
    cells = (
        "%load_ext materia_nb",
        f"{agents}\nwb.agent('Plan', lambda: {plan!r})",
        "%materia use Lanes",
        "%materia cast a guide",
    )
    lab.open(lab.notebook(*cells, "%materia show", "%materia design Plan-Build-Eval"))
    lab.run_all()
    panel = Surface(lab, 3)
    panel.press("Run")
    panel.tab("Lanes 2")
    panel.wait_for_text("is waiting for you.")
    lab.cell(5).get_by_role("region", name="palette of Plan-Build-Eval, panel 3").wait_for()
    regions = lab.page.get_by_role("region", name="inspector of")
    assert regions.evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))") == [
        "inspector of a guide",
        "inspector of a guide, panel 2",
        "inspector of Plan-Build-Eval, panel 3",
    ]
    assert violations(lab, "several panels") == []


def heard(panel: Surface) -> list[str]:
    """Return the role and name of each part of the panel in the order in which a screen reader announces them."""
    lines = panel.at.aria_snapshot().splitlines()
    roles = ("toolbar", "application", "region", "listbox", "separator")
    return [
        f"{role} {name.split(' of ')[0].split('.')[0]}"
        for line in lines
        if (found := re.match(r"\s*- '?(\w+) \"([^\"]*)", line))
        for role, name in [found.groups()]
        if role in roles
    ]


HEARD = [
    "toolbar the bar",
    "application graph",
    "listbox everything that can be selected in the graph",
    "toolbar view",
    "region inspector",
    "region timeline and items",
    "separator width",
    "separator height",
]


def reached(panel: Surface) -> list[str]:
    """Return the parts of the panel that receive the focus through the Tab key, in order and without repetition."""
    panel.at.locator(".mnb-bar button").first.focus()
    parts: list[str] = []
    where = """(surface) => {
        const at = document.activeElement, parts = '.mnb-bar, .mnb-graph-cell, .mnb-inspector, .mnb-dock, .mnb-split';
        return surface.contains(at) ? [...at.closest(parts).classList].find((one) => parts.includes('.' + one)) : null;
    }"""
    while (part := panel.at.evaluate(where)) is not None:
        parts += [part] if parts[-1:] != [part] else []
        panel.lab.page.keyboard.press("Tab")
    return parts


DRAWN = """from IPython.display import HTML
from materia_nb.display.blocks import Picture
svg = '<svg xmlns="http://www.w3.org/2000/svg"><rect fill="#fefefe"/></svg>'
HTML(Picture(svg, dark=(("#fefefe", "#010101"),)).as_html())
"""


def test_panel_has_no_accessibility_violations_in_both_themes(lab: Lab):
    lab.open(lab.notebook(BREAKS, DRAWN))
    lab.run_all()
    panel = Surface(lab, 0)
    found = []

    def look(where: str, *rules: str) -> None:
        found.extend(violations(lab, where, *rules))

    def look_at_tabs(*rules: str) -> None:
        for tab in ("Prompt", "Why", "State", "About"):
            panel.tab(tab)
            panel.at.get_by_role("tab", name=tab, selected=True).wait_for()
            look(tab, *rules)

    def fill() -> str:
        return str(lab.cell(1).locator(".mnb-drawn rect").evaluate("(one) => getComputedStyle(one).fill"))

    lab.screenshot("surface")
    lab.screenshot("surface", dark=True)
    lab.set_theme(LIGHT)
    assert fill() == "rgb(254, 254, 254)"
    look("begun")
    assert heard(panel) == HEARD
    assert reached(panel) == ["mnb-bar", "mnb-graph-cell", "mnb-inspector", "mnb-dock", "mnb-split"]
    look_at_tabs()
    panel.tab("Items")
    panel.at.get_by_role("grid", name="work items").wait_for()
    look("Items")
    lab.set_theme(DARK)
    assert fill() == "rgb(1, 1, 1)", "a picture has the colours of its page"
    look_at_tabs("color-contrast")
    look("Items, dark", "color-contrast")
    panel.press("Step")
    panel.wait_for_status("failed")
    panel.tab("Answer")
    look("failed, dark")
    lab.set_theme(LIGHT)
    look("failed", "color-contrast")
    assert found == [], json.dumps(found, indent=1)
