"""Test the graph panel in JupyterLab: drawing, clicks, updates during a cast, reloads and hostile text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browser.kernels import both_kernels
from browser.lab import WIDGET_MANAGER
from browser.picture import Picture, wait_until_still
from materia_nb.display.svg import THEMES, condition_role
from materia_nb.loadout.vocabulary import CONDITION_SPECS

if TYPE_CHECKING:
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
        f"Socket-{n}": {"materia": "M", "edges": [edge("always", f"Socket-{n + 1}")] if n < 31 else []}
        for n in range(1, 32)
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
    return f"wb.loadouts.define({name!r}, {json.dumps(json.dumps(loadout))});"


AGENTS = 'agents = {"Plan": plan, "Build": build, "Eval": evaluate, "Maintain": evaluate, "Tell": lambda: "told"}'


IS_COMPLETE = (
    "(() => { const e = cy.elements().renderedBoundingBox(); return cy.width() > 20 && e.x1 >= -2 && e.y1 >= -2"
    " && e.x2 <= cy.width() + 2 && e.y2 <= cy.height() + 2; })()"
)
IS_VISIBLE = f"({IS_COMPLETE} || cy.zoom() >= 0.81)"
"""JavaScript condition: the complete graph is visible, or the zoom level keeps the labels readable."""


def selected_in_kernel(cast: Lab) -> str:
    """Wait for the kernel to receive a click, and return the element that is selected there."""
    cast.run_cell(5)
    return cast.outputs(5)[0].text


def no_error(lab: Lab, *cells: int) -> None:
    assert [output.text for cell in cells for output in lab.outputs(cell) if output.kind == "error"] == []


@pytest.fixture
def cast(lab: Lab) -> Lab:
    """Open a notebook whose third cell displays the panel of a cast; later cells continue the cast."""
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


def test_graph_with_a_loop_is_drawn_in_both_themes_and_without_a_kernel(cast: Lab):
    _, words, drawn = cast.outputs(2)
    assert "Socket-3" in words.text
    assert drawn.data["image/svg+xml"].startswith("<svg")
    assert cast.cell(2).locator(".jp-OutputArea-output .mnb-panel").count() == 1
    for record in (".jp-RenderedSVG", ".mnb-record"):
        expect(cast.cell(2).locator(record), "where there are widgets, they are what is drawn").to_be_hidden()
    picture = Picture(cast, cell=2)
    assert picture.ask("cy.nodes('.socket').length") == 6
    assert picture.ask("cy.edges('.exit').length") == 2
    assert picture.ask("cy.nodes('.loop').length") == 1
    cast.run_cell(3)
    picture.wait_for_class("n:Socket-3", "current")
    # Two edges from one socket to others, and one back: what stands on them is apart.
    chips = picture.ask("cy.nodes('.chip').map((one) => [one.position('x'), one.position('y')].join())")
    assert len(set(chips)) == len(chips) == 4
    picture.wait_until(IS_COMPLETE)
    assert picture.ask("cy.nodes('.socket').every((one) => one.data('img')?.startsWith('data:image/svg+xml'))")
    in_light = cast.seen(cell=2)
    light = picture.ask("cy.getElementById('n:Socket-1').data('img')")
    assert cast.seen(cell=2, dark=True) != in_light
    # The page is dark now, and so are the cards.
    picture.wait_until(f"cy.getElementById('n:Socket-1').data('img') !== {json.dumps(light)}")


def test_long_chain_can_be_read_searched_and_fitted_into_view(lab: Lab):
    lab.open(lab.notebook(SETUP, define("Chain", CHAIN), "GraphPanel(wb.graph())"))
    lab.run_all()
    lab.wait_idle()
    no_error(lab, 0, 1, 2)
    picture = Picture(lab, cell=2)
    assert picture.ask("cy.nodes('.socket').length") == 31
    assert picture.ask("cy.zoom()") > 0.6
    lab.screenshot("graph-long", cell=2)
    lab.cell(2).locator(".mnb-c-map").wait_for()
    minimap, canvas = (lab.cell(2).locator(name).bounding_box() for name in (".mnb-c-map", ".mnb-canvas"))
    assert minimap is not None
    assert canvas is not None
    assert canvas["x"] + canvas["width"] <= minimap["x"], "the map covers nothing of the graph"
    fit = lab.cell(2).get_by_role("button", name="show the whole graph")
    picture.press(fit, IS_COMPLETE)
    smaller = picture.ask("cy.zoom()")
    larger = lab.cell(2).get_by_role("button", name="larger", exact=True)
    picture.press(larger, f"cy.zoom() > {smaller} * 1.1")
    # The wheel is for the page, with Ctrl for the picture.
    picture.at.hover()
    zoom = picture.ask("cy.zoom()")
    lab.page.mouse.wheel(0, -40)
    lab.page.keyboard.down("Control")
    lab.page.mouse.wheel(0, -200)
    lab.page.keyboard.up("Control")
    picture.wait_until(f"cy.zoom() > {zoom} * 1.05 && cy.zoom() < {zoom} * 1.6")
    # What is found in the list is brought into view.
    lab.cell(2).get_by_role("button", name="find a socket, edge or loop").click()
    lab.page.keyboard.type("socket-29")
    lab.page.keyboard.press("Enter")
    picture.wait_until(
        "(() => { const at = cy.getElementById('n:Socket-29').renderedPosition();"
        " return at.x > 0 && at.x < cy.width() && at.y > 0 && at.y < cy.height(); })()"
    )
    assert picture.ask("cy.zoom()") >= 0.69, "and so large that its name can be read"


def test_graph_fills_a_resized_canvas(cast: Lab):
    picture = Picture(cast, cell=2)
    assert picture.ask(IS_VISIBLE)
    for width in (900, 1250):
        cast.page.set_viewport_size({"width": width, "height": 900})
        picture.wait_until(f"Math.abs(cy.width() - cy.container().clientWidth) < 2 && {IS_VISIBLE}")
    hidden = """(() => {
        const style = cy.container().closest('.mnb-graph').style;
        style.display = 'none';
        cy.invalidateSize();
        const width = cy.width();
        requestAnimationFrame(() => setTimeout(() => { style.display = ''; }, 50));
        return width;
    })()"""
    assert picture.ask(hidden) == 0
    picture.wait_until(IS_VISIBLE)
    # Measured while it has no size for a moment that no frame shows, as between the style sheets of two themes.
    between = """(() => {
        const style = cy.container().closest('.mnb-graph').style;
        style.display = 'none';
        cy.resize();
        const width = cy.width();
        style.display = '';
        return width;
    })()"""
    assert picture.ask(between) == 0
    picture.wait_until(IS_VISIBLE)


def test_click_selects_the_element_under_the_mouse_after_scrolling(cast: Lab):
    cast.run_cell(3)
    picture = Picture(cast, cell=2)
    picture.click("n:Socket-3")
    picture.wait_for_class("n:Socket-3", "selected")
    picture.click("e:edge:1:Socket-3")
    picture.wait_for_class("e:edge:1:Socket-3", "selected")
    picture.click("e:loop-exit:items:done")
    picture.wait_for_class("e:loop-exit:items:done", "selected")
    cast.set_source(5, "panel.selected")
    selections = (selected_in_kernel(cast) for _ in range(20))
    assert "('exit', 'loop-exit:items:done')" in selections
    picture.click("n:Socket-1")
    picture.wait_for_class("n:Socket-1", "selected")
    # The page moves and tells nobody, as it does where something above is drawn or has just been scrolled. It moves by an
    # offset: where a margin would move it, a page that is scrolled stays at what it shows.
    top = "cy.container().getBoundingClientRect().top"
    before = picture.ask(top)
    picture.ask(
        "void Object.assign(cy.container().closest('.jp-Cell-outputArea').style, { position: 'relative', top: '60px' })"
    )
    assert picture.ask(top) > before + 20, "the page keeps some of it back where it scrolls along"
    cast.page.mouse.click(*picture.position_of("n:Socket-3"))
    picture.wait_for_class("n:Socket-3", "selected")


def test_small_card_is_not_covered_by_its_handle(lab: Lab):
    cells = (
        SETUP,
        define("Rework", REWORK),
        "panel = GraphPanel(wb.graph()); panel.mode = 'design'; panel",
        "panel.turn('down')",
    )
    lab.open(lab.notebook(*cells))
    lab.run_all()
    picture = Picture(lab, cell=2)
    picture.wait_until_still()
    picture.ask("void cy.zoom(0.4)")
    for socket in ("Socket-3", "Socket-2"):
        picture.click(f"n:{socket}")
        picture.wait_for_class(f"n:{socket}", "selected")
    # A press on the handle that goes nowhere selects what it belongs to.
    picture.click("n:Socket-5")
    handle = lab.cell(2).locator(".mnb-c-handle[data-element='n:Socket-5']")
    x, y = picture.position_of("n:Socket-3")
    lab.page.mouse.move(x, y)
    lab.cell(2).locator(".mnb-c-handle[data-element='n:Socket-3']").click()
    picture.wait_for_class("n:Socket-3", "selected")
    assert handle.count() == 0
    # It goes with its card when the graph is drawn anew under the mouse.
    lab.set_source(3, "panel.turn('right')")
    lab.run_cell(3)
    picture.wait_until(
        "(() => { const at = cy.getElementById('n:Socket-3').renderedPosition();"
        " const handle = cy.container().closest('.mnb-graph').querySelector('.mnb-c-handle');"
        " return Math.abs(parseFloat(handle.style.top) - at.y) < 3 && parseFloat(handle.style.left) > at.x; })()"
    )


def test_graph_can_be_used_by_keyboard(cast: Lab):
    cast.set_source(5, "panel.turn('down')")
    cast.run_cell(5)
    picture = Picture(cast, cell=2)
    picture.wait_until(
        "cy.getElementById('n:Socket-2').position('y') > cy.getElementById('n:Socket-1').position('y') + 60"
    )
    cast.page.evaluate("() => document.querySelector('.mnb-canvas').focus()")
    cells = cast.page.locator(".jp-Notebook .jp-Cell").count()
    cast.page.keyboard.press("ArrowDown")
    picture.wait_for_class("n:Socket-1", "selected")
    for key, there in (
        ("ArrowDown", "n:Socket-2"),
        ("ArrowDown", "n:Socket-3"),
        ("e", "e:edge:0:Socket-3"),
        ("e", "e:edge:1:Socket-3"),
    ):
        cast.page.keyboard.press(key)
        picture.wait_for_class(there, "selected")
    cast.page.keyboard.press("/")
    cast.page.keyboard.type("loop items")
    cast.page.keyboard.press("Enter")
    picture.wait_for_class("l:items", "selected")
    cast.page.keyboard.press("Space")
    picture.wait_until("cy.nodes('.folded').length === 1 && cy.getElementById('n:Socket-3').empty()")
    cast.page.keyboard.press("Space")
    picture.wait_until("cy.nodes('.folded').length === 0 && cy.getElementById('n:Socket-3').nonempty()")
    # B, D and M would each do something to the notebook.
    for key in ("m", "Escape", "d", "d", "b"):
        cast.page.keyboard.press(key)
    assert cast.page.locator(".jp-Notebook .jp-Cell").count() == cells
    cast.cell(2).get_by_role("option").filter(has_text="Eval · agent").wait_for(state="attached")


def test_context_menu_and_labels_can_be_used(cast: Lab):
    cast.set_source(5, "heard = []; end = panel.on_gesture(heard.append)")
    cast.run_cell(5)
    picture = Picture(cast, cell=2)
    menu = cast.cell(2).get_by_role("menu")
    picture.click("n:Socket-3", button="right")
    menu.wait_for()
    assert menu.get_by_role("menuitem").all_inner_texts()[:4] == [
        "Open in inspector",
        "Breakpoint here",
        "Stop after it",
        "Breakpoint, only when…",
    ]
    assert cast.page.locator(".lm-Menu").count() == 0, "that of JupyterLab stays away"
    menu.get_by_text("Breakpoint here").click()
    picture.click("e:edge:1:Socket-3", button="right")
    menu.get_by_text("Open in inspector").click()
    picture.click("e:edge:1:Socket-3", button="right")
    menu.get_by_text("Stop when taken").click()
    x, y = picture.position_of("n:Socket-4")
    cast.page.mouse.move(x, y)
    expect(cast.cell(2).get_by_role("application")).to_have_attribute("title", re.compile(r"Maintain \(Socket-4\)"))
    cast.set_source(5, "print(json.dumps([{'kind': one.kind, **one.fields} for one in heard]))")
    cast.run_cell(5)
    assert json.loads(cast.outputs(5)[0].text) == [
        {"kind": "break", "element": ["socket", "Socket-3"]},
        {"kind": "open", "element": ["edge", "edge:1:Socket-3"]},
        {"kind": "break", "element": ["edge", "edge:1:Socket-3"]},
    ]
    # Another direction, and away as files.
    width = picture.ask("cy.elements().boundingBox().w")
    cast.cell(2).get_by_role("button", name="legend, save as a picture").click()
    menu.get_by_text("Lay out").click()
    picture.wait_until(f"Math.abs(cy.elements().boundingBox().w - {width}) > 100 && {IS_VISIBLE}")
    files = {"PNG": b"\x89PNG", "SVG": b"<svg", "a page to play": b"<!doctype html>"}
    for words, begins in files.items():
        cast.cell(2).get_by_role("button", name="legend, save as a picture").click()
        with cast.page.expect_download() as download:
            menu.get_by_text(f"Save as {words}").click()
        assert download.value.suggested_filename == f"Rework.{words.lower() if words.isupper() else 'html'}"
        assert download.value.path().read_bytes().startswith(begins)
    # What the signs mean: each condition as it is drawn.
    cast.cell(2).get_by_role("button", name="legend, save as a picture").click()
    menu.get_by_text("Legend and shortcuts").click()
    rows = cast.cell(2).locator(".mnb-c-legend [role=listitem]")
    light = cast.page.evaluate("document.body.dataset.jpThemeLight") == "true"
    for word, one in CONDITION_SPECS.items():
        row = rows.filter(has_text=re.compile(f"^{re.escape(one.choice)}$"))
        line = row.locator("path").first
        colours = THEMES["light" if light else "dark"]
        assert line.get_attribute("stroke") == colours[condition_role(word)]
        dashes = " ".join(map(str, one.dashes)) if one.dashes else None
        assert line.get_attribute("stroke-dasharray") == dashes
    assert rows.filter(has_text="loop exit").locator("path").first.get_attribute("stroke-dasharray") == "7 4"


def test_mouse_and_keyboard_gestures_are_reported(lab: Lab):
    lab.open(
        lab.notebook(
            SETUP,
            define("Rework", REWORK),
            "panel = GraphPanel(wb.graph()); panel.mode = 'design'; heard = []\npanel.on_gesture(heard.append); panel",
            "import json; new = [heard.pop(0) for _ in range(len(heard))]  # messages may arrive in a thread meanwhile\n"
            "print(json.dumps([{'kind': gesture.kind, **gesture.fields} for gesture in new]))",
        )
    )
    lab.run_all()
    no_error(lab, 0, 1, 2, 3)
    picture, mouse = Picture(lab, cell=2), lab.page.mouse

    def heard(last: str) -> list[dict[str, Any]]:
        """Return the gestures reported since the last call, up to one of kind ``last``, which may arrive late."""
        found: list[dict[str, Any]] = []
        for _ in range(50):
            lab.run_cell(3)
            found += json.loads(lab.outputs(3)[0].text)
            if any(one["kind"] == last for one in found):
                break
        return found

    # From the handle of one socket to another.
    handle = lab.cell(2).locator(".mnb-c-handle")
    picture.click("n:Socket-5")
    wait_until_still(lab, ".mnb-c-handle")
    handle.hover()
    mouse.down()
    x, y = picture.position_of("n:Socket-6")
    mouse.move(x - 40, y - 5)
    mouse.move(x, y)
    picture.wait_for_class("n:Socket-6", "aimed")
    mouse.up()
    # A socket dragged elsewhere, and a frame around two.
    x, y = picture.position_of("n:Socket-1")
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 20, y + 40, steps=4)
    mouse.move(x + 30, y + 60, steps=4)
    mouse.up()
    (ax, ay), (bx, by) = picture.position_of("n:Socket-5"), picture.position_of("n:Socket-6")
    lab.page.keyboard.down("Shift")
    mouse.move(min(ax, bx) - 55, min(ay, by) - 26)
    mouse.down()
    mouse.move(max(ax, bx) + 20, max(ay, by) + 20, steps=3)
    mouse.up()
    lab.page.keyboard.up("Shift")
    picture.wait_for_class("n:Socket-5", "marked")
    told = heard("marquee")
    assert told[0] == {"kind": "connect", "from": "Socket-5", "to": "Socket-6"}
    assert (told[1]["kind"], told[1]["id"]) == ("move", "Socket-1")
    assert told[1]["y"] > told[1]["x"] / 100
    assert (told[2]["kind"], sorted(told[2]["ids"])) == ("marquee", ["Socket-5", "Socket-6"])
    # A click unmarks, and what the kernel still had to say of before does not mark again.
    assert picture.ask(
        f"""(async () => {{
            const model = [...(await ({WIDGET_MANAGER})())._modelsSync.values()].find((one) => one.get('flags')?.marked);
            const socket = cy.getElementById('n:Socket-2'), before = model.get('flags');
            socket.emit({{ type: 'tap', position: socket.position() }});
            model.set('flags', {{ ...before, name: 'late' }});
            const told = cy.container().getAttribute('aria-label').includes('late');
            return [told, before.marked.length, cy.nodes('.marked').length, cy.nodes('.selected').map((one) => one.id())];
        }})()"""
    ) == [True, 2, 0, ["n:Socket-2"]]
    # The same by keyboard: from Eval to what stands before it, and away with an edge.
    picture.click("n:Socket-3")
    (left, top), (x, y) = picture.position_of("n:Socket-2"), picture.position_of("n:Socket-3")
    for key in ("c", "ArrowUp" if y - top > x - left else "ArrowLeft"):
        lab.page.keyboard.press(key)
    picture.wait_for_class("n:Socket-2", "aimed")
    for key in ("Enter", "Escape", "e", "2", "]", "Delete", "Control+z"):
        lab.page.keyboard.press(key)
    assert [one for one in heard("undo") if one["kind"] != "marquee"] == [
        {"kind": "connect", "from": "Socket-3", "to": "Socket-2"},
        {"kind": "when", "of": ["edge", "edge:0:Socket-3"], "when": [*CONDITION_SPECS][1]},
        {"kind": "reorder", "of": ["edge", "edge:0:Socket-3"], "offset": 1},
        {"kind": "delete", "of": ["edge", "edge:0:Socket-3"]},
        {"kind": "undo"},
    ]
    # What stands on a line goes with it.
    picture.ask("void cy.getElementById('n:Socket-3').shift({ x: 90, y: 50 }).emit('drag')")
    picture.wait_until(
        "[0, 1].every((n) => { const at = cy.getElementById(`c:edge:${n}:Socket-3`).position();"
        " const middle = cy.getElementById(`e:edge:${n}:Socket-3`).midpoint();"
        " return Math.hypot(at.x - middle.x, at.y - middle.y) < 2; })"
    )


def test_two_displays_of_a_graph_show_steps_taken_in_another_cell(cast: Lab):
    cast.set_source(5, "panel")
    cast.run_cell(5)
    one, other = Picture(cast, 0), Picture(cast, 1)
    assert one.has_class("n:Socket-1", "current")
    cast.run_cell(4)
    for picture in (one, other):
        picture.wait_for_class("n:Socket-2", "current")
        picture.wait_for_class("e:edge:0:Socket-1", "taken")
        picture.wait_for_label("l:items", "0/2 done")
    other.click("n:Socket-3")
    for picture in (one, other):
        picture.wait_for_class("n:Socket-3", "selected")
    cast.run_cell(3)
    one.wait_for_class("n:Socket-4", "current")
    assert "visited \N{MULTIPLICATION SIGN}2" in one.label("n:Socket-2").splitlines()


@both_kernels
def test_graph_is_updated_during_blocked_cells_and_redrawn_after_a_page_reload(cast: Lab):
    picture = Picture(cast, cell=2)
    cast.set_source(5, "cast.agents.set('Build', slow); cast.run(steps=2)")
    cast.start_cell(5)
    picture.wait_for_class("n:Socket-2", "waiting")
    cast.interrupt()
    cast.wait_idle()
    cast.set_source(5, "cast.run(steps=1)")
    cast.start_cell(5)
    picture.wait_for_class("n:Socket-2", "waiting")
    assert "*" in cast.cell(5).locator(".jp-InputPrompt").inner_text(), "the cell is still at it"
    (cast.folder / "go on").touch()
    picture.wait_for_class("n:Socket-3", "current")
    cast.wait_idle()
    no_error(cast, 5)

    picture.click("n:Socket-1")
    picture.wait_for_class("n:Socket-1", "selected")
    cast.save()
    cast.open(cast.folder / "test.ipynb")
    picture = Picture(cast, cell=2)
    picture.wait_for_class("n:Socket-3", "current")
    picture.wait_for_class("n:Socket-1", "selected")
    cast.run_cell(4)
    picture.wait_for_class("n:Socket-2", "current")
    picture.click("n:Socket-4")
    picture.wait_for_class("n:Socket-4", "selected")


def test_hostile_labels_are_not_executed(lab: Lab):
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
    picture = Picture(lab, cell=2)
    picture.wait_for_class("s:end", "taken")
    assert picture.label("n:Socket-1").startswith("<img")
    picture.click("n:Socket-1")
    picture.wait_for_class("n:Socket-1", "selected")
    lab.cell(2).locator(".mnb-panel [role=alert]", has_text="TypeError").wait_for()
    x, y = picture.position_of("n:Socket-1")
    lab.page.mouse.move(x + 3, y + 3)
    expect(lab.cell(2).get_by_role("application")).to_have_attribute("title", re.compile(re.escape(HOSTILE)))
    lab.cell(2).get_by_role("button", name="find a socket, edge or loop").click()
    lab.cell(2).get_by_role("option").nth(1).click()
    picture.wait_for_class("e:edge:0:Socket-1", "selected")
    assert lab.page.locator(".jp-Notebook img[src='x']").count() == 0
    assert lab.page.locator(".tippy-popper, .tippy-tooltip").count() == 0
    assert lab.page.evaluate("window.__owned") is None


def test_rerunning_a_graph_cell_does_not_accumulate_widgets(cast: Lab):
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
        Picture(cast, cell=2)
    assert len(set(counts)) == 1
    assert cast.page.locator(".mnb-canvas").count() == 1
