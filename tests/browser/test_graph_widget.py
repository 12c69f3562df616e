"""The graph panel in real JupyterLab: drawn, clicked on, followed, reloaded, and not run by what it shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.kernels import both_kernels
from browser.picture import Picture

if TYPE_CHECKING:
    from pathlib import Path

    from browser.lab import Lab

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.__owned=1>"


def agent(**fields: Any) -> dict[str, Any]:
    return {"tools": "none", "prompt": "Do {{request}} {{lastOutput}}", **fields}


def edge(when: str, to: str, most: int | None = None) -> dict[str, Any]:
    return {"when": when, "to": to} | ({"maxTraversals": most} if most else {})


REWORK = {
    "entry": "Socket-1",
    "sockets": {
        "Socket-1": {"materia": "Plan", "parse": "json", "edges": [edge("always", "Socket-2")]},
        "Socket-2": {"materia": "Build", "edges": [edge("always", "Socket-3")]},
        "Socket-3": {
            "materia": "Eval",
            "parse": "json",
            "edges": [edge("satisfied", "Socket-4"), edge("not_satisfied", "Socket-2", 3)],
        },
        "Socket-4": {"materia": "Maintain", "parse": "json", "edges": [edge("always", "Socket-2")]},
        "Socket-5": {"materia": "Tell"},
        "Socket-6": {"materia": "Ask"},
    },
    "loops": {
        "items": {
            "sockets": ["Socket-2", "Socket-3", "Socket-4"],
            "consumes": {"from": "Socket-1", "output": "workItems"},
            "exits": [
                {"id": "done", "from": "Socket-4", "condition": "satisfied", "targetSocketId": "Socket-5"},
                {
                    "id": "open",
                    "from": "Socket-4",
                    "condition": "not_satisfied",
                    "targetSocketId": "Socket-6",
                },
            ],
        }
    },
    "materia": {
        "Plan": agent(generator=True),
        "Build": agent(),
        "Eval": agent(),
        "Maintain": agent(),
        "Tell": agent(),
        "Ask": agent(multiTurn=True),
    },
}

CHAIN = {
    "entry": "Socket-1",
    "sockets": {
        f"Socket-{n}": {"materia": "M", "edges": [edge("always", f"Socket-{n + 1}")] if n < 30 else []}
        for n in range(1, 31)
    },
    "materia": {"M": agent()},
}

ODD = {
    "entry": "Socket-1",
    "sockets": {
        "Socket-1": {"materia": "M", "edges": [edge("always", "Socket-2")]},
        "Socket-2": {"materia": "M", "edges": []},
    },
    "materia": {"M": agent(label=HOSTILE, prompt=f"{HOSTILE} {{{{request}}}}")},
}

SETUP = """
import json, pathlib, threading, time
from materia_nb import Workbench
from materia_nb.widgets import GraphPanel, show_panel
wb = Workbench(bundled=False)
go_on = pathlib.Path("go on")
evals = []

def plan(turn):
    items = [{"title": f"Part {n}", "context": "small"} for n in (1, 2)]
    return json.dumps({"workItems": items})

def build(turn):
    return f"built {turn.item_label}"

def evaluate(turn):
    evals.append(turn.item_key)
    return json.dumps({"satisfied": len(evals) != 1, "context": "as it should be" if len(evals) != 1 else "too short"})

def slow(turn):
    while not go_on.exists():
        time.sleep(0.02)
    return "built at last"
"""


def define(name: str, loadout: dict[str, Any]) -> str:
    return f"wb.define_loadout({name!r}, {json.dumps(json.dumps(loadout))});"


AGENTS = (
    'agents = {"Plan": plan, "Build": build, "Eval": evaluate, "Maintain": evaluate, "Tell": lambda: "told"}'
)


def inspector(lab: Lab, cell: int) -> str:
    """What the panel in a cell tells about the selection."""
    return str(lab.cell(cell).locator(".mnb-panel section").first.inner_text())


def wait_for_text(lab: Lab, cell: int, text: str) -> None:
    lab.cell(cell).locator(".mnb-panel section", has_text=text).first.wait_for()


def no_error(lab: Lab, *cells: int) -> None:
    assert [one.text for cell in cells for one in lab.outputs(cell) if one.kind == "error"] == []


@pytest.fixture
def cast(lab: Lab) -> Lab:
    """A notebook whose third cell shows the panel of a cast; later cells go on with it."""
    lab.open(
        lab.notebook(
            SETUP,
            define("Rework", REWORK) + AGENTS,
            "cast = wb.cast('a widget', agents=agents); panel = GraphPanel(cast); panel",
            "cast.run(steps=4)",
            "cast.step()",
            "",
        )
    )
    for cell in (0, 1, 2):
        lab.run_cell(cell)
    no_error(lab, 0, 1, 2)
    return lab


def test_draws_a_loop_in_both_themes(cast: Lab):
    picture = Picture(cast)
    assert picture.ask("cy.nodes('.socket').length") == 6
    assert picture.ask("cy.edges('.exit').length") == 2
    assert picture.ask("cy.getElementById('l:items').children('.socket').length") == 3
    cast.run_cell(3)
    picture.wait_for_class("n:Socket-3", "current")
    # Two edges from one socket to others, and one back: none lies on another.
    middles = picture.ask(
        "cy.edges().map((one) => [one.midpoint().x.toFixed(1), one.midpoint().y.toFixed(1)].join())"
    )
    assert len(set(middles)) == len(middles)
    # The picture is whole and inside its frame.
    assert picture.ask(
        "(() => { const e = cy.elements().renderedBoundingBox(); return e.x1 >= -2 && e.y1 >= -2"
        " && e.x2 <= cy.width() + 2 && e.y2 <= cy.height() + 2; })()"
    )
    shots = [cast.screenshot("graph-loop", cell=2, dark=dark) for dark in (False, True)]
    assert shots[0].read_bytes() != shots[1].read_bytes()
    background = cast.page.evaluate(
        "() => getComputedStyle(document.querySelector('.mnb-canvas')).backgroundColor"
    )
    assert background in ("rgb(17, 17, 17)", "rgb(0, 0, 0)"), "the page is dark now, and so is the canvas"


HIDE_FOR_A_MOMENT = """(() => {
    const style = cy.container().parentElement.style, shown = style.display;
    style.display = 'none';
    cy.invalidateSize();
    const width = cy.width();
    style.display = shown;
    return width;
})()"""


def test_a_long_chain_can_be_read_and_shown_whole(lab: Lab):
    lab.open(lab.notebook(SETUP, define("Chain", CHAIN), "GraphPanel(wb.graph())"))
    lab.run_all()
    lab.wait_idle()
    no_error(lab, 0, 1, 2)
    picture = Picture(lab)
    assert picture.ask("cy.nodes('.socket').length") == 30
    assert picture.ask("cy.zoom()") > 0.6
    lab.screenshot("graph-long", cell=2)
    fit = lab.cell(2).get_by_role("button", name="fit")
    picture.press(fit, "cy.elements().renderedBoundingBox().h <= cy.height() + 2")
    smaller = picture.ask("cy.zoom()")
    larger = lab.cell(2).get_by_role("button", name="+", exact=True)
    picture.press(larger, f"cy.zoom() > {smaller} * 1.1")
    # The list brings what it selects into view.
    lab.cell(2).locator("select").select_option(label="Socket-29 · M · agent")
    wait_for_text(lab, 2, "Socket-29")
    lab.page.wait_for_function(
        f"() => {{ const at = {picture.cy}.getElementById('n:Socket-29').renderedPosition();"
        f" return at.y > 0 && at.y < {picture.cy}.height(); }}"
    )


def test_a_canvas_that_believes_to_have_no_size_is_shown_whole_all_the_same(lab: Lab):
    """As on a slow page that hides the cell for a moment: no observer in the page tells the canvas afterwards."""
    lab.open(
        lab.notebook(
            SETUP, define("Chain", CHAIN), "panel = GraphPanel(wb.graph())\npanel", "panel._settle()"
        )
    )
    for cell in range(3):
        lab.run_cell(cell)
    picture = Picture(lab)
    whole = "cy.width() > 0 && cy.elements().renderedBoundingBox().h <= cy.height() + 2"
    for act in (lambda: lab.cell(2).get_by_role("button", name="fit").click(), lambda: lab.run_cell(3)):
        assert picture.ask(HIDE_FOR_A_MOMENT) == 0
        act()
        picture.wait_until(whole)


def test_a_click_on_a_node_and_on_an_edge_tells_about_it(cast: Lab):
    cast.run_cell(3)
    picture = Picture(cast)
    picture.click("n:Socket-3")
    wait_for_text(cast, 2, "What its output must hold")
    assert "Eval" in inspector(cast, 2)
    assert "too short" in inspector(cast, 2), "its last handoff"
    picture.click("e:edge:1:Socket-3")
    wait_for_text(cast, 2, "It was taken.")
    assert "3 times" in inspector(cast, 2)
    picture.click("e:loop-exit:items:done")
    wait_for_text(cast, 2, "loop-exit:items:done")
    cast.set_source(5, "panel.selected")
    cast.run_cell(5)
    assert cast.outputs(5)[0].text == "('exit', 'loop-exit:items:done')"


def test_the_keyboard_does_what_the_mouse_does(cast: Lab):
    picture = Picture(cast)
    cast.cell(2).get_by_placeholder("type a name, then Enter").focus()
    cast.page.keyboard.type("socket-2")
    cast.page.keyboard.press("Enter")
    picture.wait_for_class("n:Socket-2", "selected")
    wait_for_text(cast, 2, "Build")
    for _ in range(2):
        cast.page.keyboard.press("Tab")
    cast.page.keyboard.press("Enter")
    picture.wait_for_class("e:edge:0:Socket-2", "selected")
    wait_for_text(cast, 2, "always → Socket-3")
    cast.page.keyboard.press("Space")
    picture.wait_for_class("n:Socket-3", "selected")
    wait_for_text(cast, 2, "Eval")
    assert cast.cell(2).locator("select").input_value() == "Socket-3 · Eval · agent, loop consumer"


def test_a_step_in_another_cell_shows_at_once(cast: Lab):
    picture = Picture(cast)
    assert picture.has_class("n:Socket-1", "current")
    cast.run_cell(4)
    picture.wait_for_class("n:Socket-2", "current")
    picture.wait_for_class("e:edge:0:Socket-1", "taken")
    assert picture.label("l:items").endswith("0/2 done")
    cast.run_cell(3)
    picture.wait_for_class("n:Socket-4", "current")
    assert picture.label("n:Socket-2").splitlines()[1] == "Build  \N{MULTIPLICATION SIGN}2"


@both_kernels
def test_follows_a_cell_that_blocks(cast: Lab, request: pytest.FixtureRequest):
    picture = Picture(cast)
    cast.set_source(5, "cast.agents.set('Build', slow); cast.run(steps=2)")
    cast.start_cell(5)
    picture.wait_for_class("n:Socket-2", "waiting")
    assert "*" in cast.cell(5).locator(".jp-InputPrompt").inner_text(), "the cell is still at it"
    (cast.folder / "go on").touch()
    picture.wait_for_class("n:Socket-3", "current")
    cast.wait_idle()
    no_error(cast, 5)


def test_two_displays_stay_in_step(cast: Lab):
    cast.set_source(5, "panel")
    cast.run_cell(5)
    one, other = Picture(cast, 0), Picture(cast, 1)
    cast.run_cell(4)
    for picture in (one, other):
        picture.wait_for_class("n:Socket-2", "current")
    other.click("n:Socket-3")
    for picture in (one, other):
        picture.wait_for_class("n:Socket-3", "selected")
    assert inspector(cast, 2) == inspector(cast, 5)


@both_kernels
def test_is_drawn_again_after_a_reload(cast: Lab):
    cast.run_cell(3)
    Picture(cast).click("n:Socket-2")
    wait_for_text(cast, 2, "Build")
    cast.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    cast.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    cast.open(cast.folder / "test.ipynb")
    picture = Picture(cast)
    picture.wait_for_class("n:Socket-3", "current")
    picture.wait_for_class("n:Socket-2", "selected")
    assert "Build" in inspector(cast, 2)
    cast.run_cell(4)
    picture.wait_for_class("n:Socket-4", "current")
    picture.click("n:Socket-1")
    wait_for_text(cast, 2, "Plan")


def test_hostile_labels_do_not_run(lab: Lab):
    lab.page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    lab.open(
        lab.notebook(
            SETUP,
            define("Odd", ODD),
            f"cast = wb.cast({HOSTILE!r}, agents={{'M': lambda: {HOSTILE!r}}}); panel = GraphPanel(cast); panel",
            "cast.run()",
            f"panel.on_select(lambda kind, key: [][{HOSTILE!r}])",
        )
    )
    lab.run_all()
    lab.wait_idle()
    no_error(lab, 0, 1, 2, 3, 4)
    picture = Picture(lab)
    picture.wait_for_class("s:end", "taken")
    assert picture.label("n:Socket-1").splitlines()[1].startswith("<img")
    picture.click("n:Socket-1")
    wait_for_text(lab, 2, HOSTILE)
    lab.cell(2).locator(".mnb-panel [role=alert]", has_text="TypeError").wait_for()
    lab.cell(2).locator("select").select_option(index=1)
    wait_for_text(lab, 2, "It was taken.")
    assert lab.page.locator(".jp-Notebook img[src='x']").count() == 0
    assert lab.page.locator(".tippy-popper, .tippy-tooltip").count() == 0
    assert lab.page.evaluate("window.__owned") is None


def test_running_a_cell_again_leaves_nothing_behind(cast: Lab):
    cast.set_source(
        2,
        "from ipywidgets.widgets.widget import _instances\n"
        "panel.close() if 'panel' in dir() else None\n"
        "panel = show_panel('graph', lambda: GraphPanel(cast)); print(len(_instances)); panel",
    )
    counts = []
    for _ in range(10):
        cast.run_cell(2)
        counts.append(cast.outputs(2)[0].text)
        Picture(cast)
    assert len(set(counts)) == 1
    assert cast.page.locator(".mnb-canvas").count() == 1


def test_a_reader_without_a_kernel_sees_the_picture(cast: Lab):
    [output] = cast.outputs(2)
    assert output.data["image/svg+xml"].startswith("<svg")
    assert "Socket-3" in output.text
    assert cast.cell(2).locator(".jp-OutputArea-output .mnb-panel").count() == 1
    assert cast.cell(2).locator(".jp-RenderedSVG").count() == 0, (
        "where there are widgets, they are what is drawn"
    )


def test_an_interrupt_does_not_stop_the_picture(cast: Lab, tmp_path: Path):
    cast.set_source(5, "cast.agents.set('Build', slow); cast.run(steps=2)")
    cast.start_cell(5)
    picture = Picture(cast)
    picture.wait_for_class("n:Socket-2", "waiting")
    cast.interrupt()
    cast.wait_idle()
    (cast.folder / "go on").touch()
    cast.run_cell(4)
    picture.wait_for_class("n:Socket-3", "current")
