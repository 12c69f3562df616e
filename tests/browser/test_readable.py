"""What a graph looks like at first sight, in a real JupyterLab at 1280 x 800 with its file browser open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from browser.picture import Picture
from browser.surface import Surface

if TYPE_CHECKING:
    from browser.lab import Lab

LEAST_TEXT = 9.0
SMALL_TEXT = {"1": 13.0, "2": 11.0, "3": 11.0}
"""The size of the smallest text on a card, a chip or a heading at zoom 1, by how much cards say."""
ALL = """
from materia_nb import Workbench
from materia_nb.cast.gallery import gallery
from materia_nb.widgets import GraphPanel
import ipywidgets
bench = Workbench(".")
graphs = [bench.loadouts.graph(name) for name in bench.loadouts]
graphs += [card.graph for card in gallery().values() if card.graph is not None]
size = ipywidgets.Layout(width="523px", height="526px")  # what a cell of 848 pixels leaves beside the inspector
ipywidgets.VBox([ipywidgets.Box([GraphPanel(graph, side=False).view], layout=size) for graph in graphs])
"""
STANDS = """() => [...document.querySelectorAll(".mnb-canvas")].map((canvas) => {
    const cy = canvas._cyreg.cy, graph = canvas.closest(".mnb-graph"), box = graph.getBoundingClientRect();
    const inside = cy.elements().filter((one) => !one.hasClass("anchor")).renderedBoundingBox({ includeOverlays: false, includeLabels: false });
    const tools = graph.querySelector(".mnb-c-tools").getBoundingClientRect();
    const under = cy.nodes().filter((one) => one.hasClass("socket") || one.hasClass("chip")).toArray().filter((one) => {
        const at = one.renderedBoundingBox({ includeOverlays: false });
        return at.y2 > tools.top - box.top && at.y1 < tools.bottom - box.top && at.x1 < tools.right - box.left && at.x2 > tools.left - box.left;
    }).map((one) => one.id());
    const entry = cy.getElementById("s:start").outgoers("node.socket").renderedBoundingBox({ includeOverlays: false, includeLabels: false });
    return { begins: entry.w > 0 && entry.x1 >= 0 && entry.y1 >= 0 && entry.x2 <= box.width && entry.y2 <= tools.top - box.top,
        sockets: cy.nodes(".socket").length, name: graph.querySelector("[aria-label^='graph of']")?.getAttribute("aria-label").slice(9, 40), zoom: cy.zoom(), under,
        cut: inside.x1 < -15 || inside.y1 < -15 || inside.x2 > box.width + 15 || inside.y2 > box.height + 15,
        share: Math.round(100 * inside.w * inside.h / box.width / box.height), level: graph.dataset.level, size: [box.width, box.height] };
})"""


def settled(lab: Lab) -> list[dict[str, Any]]:
    """How every canvas stands, once that does not change any more."""
    lab.page.wait_for_function(
        """() => {
            const all = [...document.querySelectorAll(".mnb-canvas")];
            const now = all.map((one) => one._cyreg?.cy.edges().length && JSON.stringify([one._cyreg.cy.zoom(), one._cyreg.cy.pan()])).join();
            if (!all.length || all.some((one) => !one._cyreg?.cy.edges().length)) return false;
            if (window.mnbNow !== now) Object.assign(window, { mnbNow: now, mnbSince: performance.now() });
            return performance.now() - window.mnbSince > 1500;
        }"""
    )
    found: list[dict[str, Any]] = lab.page.evaluate(STANDS)
    return found


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_every_loadout_can_be_read_at_first_sight(lab: Lab, theme: str):
    """No text is too small, and nothing is cut or under the buttons."""
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    lab.open(lab.notebook(ALL))
    lab.set_theme(theme)
    lab.run_all()
    all_of_them = settled(lab)
    assert len(all_of_them) > 15
    print(*(one for one in all_of_them if one["cut"] or one["share"] < 35), sep="\n")
    assert [one for one in all_of_them if one["zoom"] * SMALL_TEXT[one["level"]] < LEAST_TEXT - 0.06] == []
    assert [one for one in all_of_them if not one["begins"]] == []
    assert [one for one in all_of_them if one["cut"] or one["under"]] == []


DESIGNED = ("Plan-Build-Eval", "Parallel-Build", "Full-Auto", "Teach-Exits")


def test_a_bundled_loadout_is_whole_at_first_sight_in_the_designer(lab: Lab):
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    lab.open(lab.notebook("%load_ext materia_nb", *(f"%materia design {name}" for name in DESIGNED)))
    lab.run_all()
    all_of_them = settled(lab)
    assert len(all_of_them) == len(DESIGNED)
    assert [one for one in all_of_them if one["zoom"] * SMALL_TEXT[one["level"]] < LEAST_TEXT - 0.06] == []
    assert [one for one in all_of_them if one["cut"] or one["under"] or not one["begins"]] == []


@pytest.mark.parametrize(
    "name, whole", [("Teach-Edges", True), ("Plan-Build-Eval", False), ("Parallel-Build", False)]
)
def test_a_dock_that_opens_moves_nothing_of_the_graph(lab: Lab, name: str, whole: bool):
    """Neither with the first step, nor when the inspector takes the whole height for the end."""
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    answer = "{'satisfied': True, 'workItems': [], 'state': {}}"
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%materia use {name}",
            f"wb.agent('*', lambda: {answer})",
            "%materia cast x",
        )
    )
    lab.run_all()
    panel = Surface(lab, 3)
    assert panel.picture is not None
    settled(lab)
    where = "[cy.zoom(), cy.pan(), cy.nodes('.socket').map((one) => one.renderedPosition())]"
    before, high = panel.picture.ask(where), panel.picture.ask("cy.height()")
    panel.press("Step")
    panel.at.get_by_role("grid", name="steps").locator("[data-index='0']").wait_for()
    (now,) = settled(lab)
    assert panel.picture.ask("cy.height()") < high - 100
    assert panel.picture.ask(where) == before
    assert not (whole and now["cut"]), "what fits above the dock stands there from the beginning"
    panel.button("show the whole graph").click()
    (now,) = settled(lab)
    assert not now["cut"]


def test_a_change_of_theme_keeps_zoom_and_direction(lab: Lab):
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    lab.open(lab.notebook("%load_ext materia_nb", "%materia use Plan-Build-Eval", "%materia cast a guide"))
    lab.run_all()
    picture = Picture(lab, cell=Surface(lab, 2) and 2)
    settled(lab)
    where = "[cy.zoom(), cy.pan(), cy.nodes().map((one) => one.position())]"
    before = picture.ask(where)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        lab.set_theme(theme)
        settled(lab)
        assert picture.ask(where) == before
