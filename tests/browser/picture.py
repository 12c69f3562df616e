"""Inspect and click the canvas of a graph panel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest
from playwright.sync_api import TimeoutError  # noqa: A004 - what a wait that is over raises

from browser.lab import WIDGET_MANAGER

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

_PRESSED_MS: Final = 20_000.0
_CELL: Final = "document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell')[%d]"

_CANVAS_STATE: Final = f"""({{
    zoom: cy.zoom(), pan: cy.pan(), size: [cy.width(), cy.height()],
    room: [cy.container().clientWidth, cy.container().clientHeight],
    box: cy.elements().renderedBoundingBox(),
    told: [...(await ({WIDGET_MANAGER})())._modelsSync.values()].map((one) => one.get('flags')).filter(Boolean),
    panel: cy.container().closest('.mnb-panel')?.innerText.slice(0, 400),
}})"""


_LABEL: Final = "const told = cy.getElementById(%s).scratch('_mnb'); return told?.words;"


def wait_until_still(lab: Lab, selector: str) -> None:
    """Wait until an element of the page has stopped moving; a new selection can shift the elements below it."""
    lab.page.evaluate("() => void (window.mnbRest = {})")
    lab.page.wait_for_function(
        """(selector) => {
            const box = document.querySelector(selector).getBoundingClientRect(), at = `${box.x} ${box.y}`;
            const kept = window.mnbRest;
            if (kept.at !== at) Object.assign(kept, { at, since: performance.now() });
            return performance.now() - kept.since > 500;
        }""",
        arg=selector,
    )


class Picture:
    """The canvas of a graph, inspected through its cytoscape object.

    Args:
        lab: the page.
        number: the index of the canvas in the page or in the cell, from 0.
        cell: the cell whose outputs contain the canvas; None searches the entire page.
    """

    def __init__(self, lab: Lab, number: int = 0, cell: int | None = None) -> None:
        self.lab = lab
        place = "document" if cell is None else _CELL % cell
        self._canvas = f"{place}.querySelectorAll('.mnb-canvas')[{number}]"
        self.at = (lab.page if cell is None else lab.cell(cell)).locator(".mnb-canvas").nth(number)
        self.cy = f"{self._canvas}._cyreg.cy"
        lab.page.wait_for_function(f"() => {self._canvas}?._cyreg?.cy.edges().length > 0")

    def ask(self, code: str) -> Any:
        return self.lab.page.evaluate(f"() => {{ const cy = {self.cy}; return {code}; }}")

    def press(self, button: Locator, condition: str) -> None:
        """Press a button until a JavaScript condition about ``cy`` is true, as a user does when nothing happens.

        On a slow machine, the button may still be moving while the page is drawn, and a press on a moving button is
        ignored.
        """
        for _ in range(2):
            button.click()
            try:
                self._wait(condition, _PRESSED_MS)
            except TimeoutError:
                continue
            return
        button.click()
        self.wait_until(condition)

    def _wait(self, condition: str, timeout: float | None = None) -> None:
        self.lab.page.wait_for_function(f"() => {{ const cy = {self.cy}; return {condition}; }}", timeout=timeout)

    def wait_until(self, condition: str) -> None:
        """Wait until a JavaScript condition about ``cy`` is true; a timeout error describes the canvas and its model."""
        try:
            self._wait(condition)
        except TimeoutError:
            told = self.lab.page.evaluate(f"async () => {{ const cy = {self.cy}; return {_CANVAS_STATE}; }}")
            pytest.fail(f"never so: {condition}\n{json.dumps(told, indent=1)}\n{self.lab.console_errors}")

    def has_class(self, element: str, name: str) -> bool:
        return bool(self.ask(f"cy.getElementById({json.dumps(element)}).hasClass({json.dumps(name)})"))

    def wait_for_class(self, element: str, name: str) -> None:
        self.lab.page.wait_for_function(
            f"() => {self.cy}.getElementById({json.dumps(element)}).hasClass({json.dumps(name)})"
        )

    def label(self, element: str) -> str:
        """Return the tooltip text of an element."""
        return str(self.ask(f"(() => {{ {_LABEL % json.dumps(element)} }})()"))

    def wait_for_label(self, element: str, ending: str) -> None:
        """Wait until the label of an element ends with the specified text."""
        self.lab.page.wait_for_function(
            f"(ending) => {{ const cy = {self.cy}; const words = (() => {{ {_LABEL % json.dumps(element)} }})();"
            " return words?.endsWith(ending); }",
            arg=ending,
        )

    def position_of(self, element: str) -> tuple[float, float]:
        """Return the page position of the centre of an element, or of the label of an edge."""
        self.at.scroll_into_view_if_needed()
        x, y = self.ask(
            f"""(() => {{
                const key = {json.dumps(element)}, chip = cy.getElementById(key.replace(/^e:/, 'c:'));
                const one = chip.nonempty() && chip.visible() ? chip : cy.getElementById(key);
                const at = one.isNode() ? one.renderedPosition() : one.renderedMidpoint();
                const box = cy.container().getBoundingClientRect();
                return [box.x + at.x, box.y + at.y];
            }})()"""
        )
        return x, y

    def wait_until_still(self) -> None:
        """Wait until the graph has stopped moving, because a new graph is laid out again when its size is known."""
        self.ask("void (window.mnbRest = {})")
        stands = "JSON.stringify([cy.zoom(), cy.pan(), cy.nodes().map((one) => one.position())])"
        self._wait(
            f"(() => {{ const at = {stands}, kept = window.mnbRest;"
            " if (kept.at !== at) Object.assign(kept, { at, since: performance.now() });"
            " return performance.now() - kept.since > 700; })()"
        )

    def click(self, element: str, button: Literal["left", "right"] = "left") -> None:
        """Click the centre of an element, and repeat the click if the graph moved during it."""
        for _ in range(3):
            x, y = self.position_of(element)
            self.ask(
                "(window.mnbHit = '', void cy.one('tap cxttap',"
                " (event) => { window.mnbHit = event.target === cy ? '' : event.target.id(); }))"
            )
            self.lab.page.mouse.click(x, y, button=button)
            if str(self.lab.page.evaluate("window.mnbHit"))[1:] == element[1:]:
                return
            self.wait_until_still()
