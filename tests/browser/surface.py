"""Drive the panel of a cast in a cell with one method for each user action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from browser.picture import Picture

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab


_CHECK = """async ([rules, script]) => {
    if (!window.axe) window.eval(script);
    const options = { resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) };
    document.body.style.minHeight = "100vh";
    const { violations } = await axe.run(".mnb-surface", options);
    document.body.style.minHeight = "";
    return violations;
}"""
"""JavaScript function that returns the accessibility violations of all panels.

JupyterLab's ``body`` hides what overflows it and has no height, so that axe would treat all text as hidden and never
check its contrast.
"""


def violations(lab: Lab, where: str, *rules: str) -> list[tuple[str, str, str, str]]:
    """Return the accessibility violations that axe reports: location, rule, element and advice."""
    script = "" if lab.page.evaluate("() => Boolean(window.axe)") else AXE_SCRIPT
    return [
        (where, violation["id"], node["html"][:200], node["failureSummary"][:300])
        for violation in lab.page.evaluate(_CHECK, [rules, script])
        for node in violation["nodes"][:3]
    ]


IS_CLICKABLE = """(node) => node.ariaDisabled !== "true" && (!node.dataset.acts
    || !(node.dataset.acts === "often" ? node.dataset.settling : node.closest("[data-settling]")))"""
"""JavaScript function that returns true if a control accepts a click: it is enabled and has not just changed."""
_NOTE_PRESS = f"""() => {{
    const live = {IS_CLICKABLE}, control = (event) => event.target.closest("button, [role=menuitem]");
    const begin = (event) => (window.mnbPress = control(event) && live(control(event)));
    const end = (event) => (window.mnbPress &&= control(event) && live(control(event)));
    document.addEventListener("pointerdown", begin, {{ capture: true, once: true }});
    document.addEventListener("click", end, {{ capture: true, once: true }});
}}"""
PRESSES = 10


def press_button(button: Locator) -> None:
    """Click a button, and repeat the click if the button ignored it because it had just been redrawn."""
    page = button.page
    for _ in range(PRESSES):
        button.wait_for()
        page.wait_for_function(IS_CLICKABLE, arg=button.element_handle())
        page.evaluate(_NOTE_PRESS)
        button.click()
        if page.evaluate("() => window.mnbPress"):
            return
    pytest.fail(f"no press on {button} counts")


class Surface:
    """The panel that ``%materia show`` displays in a cell."""

    def __init__(self, lab: Lab, cell: int) -> None:
        self.lab = lab
        self.at: Locator = lab.cell(cell).locator(".mnb-surface").first
        self.at.locator(".mnb-pill").wait_for(state="attached")
        self.picture = Picture(lab, cell=cell) if self.at.locator(".mnb-canvas").count() else None

    def button(self, name: str) -> Locator:
        """Return the first visible button with the specified name."""
        return self.at.get_by_role("button", name=name, exact=True).locator("visible=true").first

    def press(self, name: str) -> None:
        """Press a button when it is enabled and has been visible long enough to accept a click."""
        press_button(self.button(name))

    def choose_again(self, name: str) -> None:
        """Choose an action from the menu *Again* of the bar."""
        self.press("Again ▾")
        press_button(self.at.get_by_role("menuitem", name=name, exact=True))

    def settled(self, button: Locator) -> Locator:
        """Wait until a button accepts a click, and return it."""
        button.wait_for()
        self.lab.page.wait_for_function(IS_CLICKABLE, arg=button.element_handle())
        return button

    def tab(self, name: str) -> None:
        """Open a tab of the inspector or the dock."""
        self.at.get_by_role("tab", name=name).first.click()

    def wait_for_status(self, words: str) -> None:
        """Wait until the status bar of the panel shows the specified status."""
        self.at.locator(".mnb-pill", has_text=words).wait_for()

    def wait_for_text(self, words: str) -> None:
        """Wait until the specified text is visible in the panel."""
        self.at.get_by_text(words).locator("visible=true").first.wait_for()

    def field(self, label: str) -> Locator:
        """Return the visible input field with the specified label."""
        return self.at.get_by_label(label, exact=True).locator("visible=true").first

    def reply(self, answer: str) -> None:
        """Submit an answer as soon as the panel reports that it is valid."""
        if not self.at.get_by_label("the answer", exact=True).is_visible():
            self.press("JSON")
        self.field("the answer").fill(answer)
        self.wait_for_text("this answer is valid")
        self.press("Send")

    def parts_out_of_reach(self) -> list[str]:
        """Return the parts of the open dock tab that lie beyond its edge and therefore cannot be clicked."""
        found: list[str] = self.at.locator(".mnb-dock").evaluate(
            """(dock) => [...dock.querySelectorAll("button, input, select, .mnb-gridhead > span")]
                .filter((one) => one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().right > dock.getBoundingClientRect().right)
                .map((one) => one.ariaLabel || one.textContent)"""
        )
        return found

    @property
    def height(self) -> float:
        """Return the height of the panel, in pixels."""
        box = self.at.bounding_box()
        assert box is not None
        return box["height"]
