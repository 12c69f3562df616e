"""Test the page that plays a loadout on a phone without a network: taps, keys, links, dark mode and screen reader."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from browser.lab import SCREENSHOTS
from materia_nb.cast.workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def address(tmp_path: Path) -> str:
    bench = Workbench(tmp_path)
    page = bench.explore("Plan-Build-Eval", 2).play(tmp_path / "play.html")
    bench.close()
    return page.as_uri()


@pytest.fixture
def phone(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 360, "height": 740}, has_touch=True, offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    yield page
    context.close()
    assert not problems


def answer(page: Page, text: str) -> None:
    page.get_by_role("link", name=text, exact=True).tap()


def shoot(page: Page, name: str) -> None:
    """Save a screenshot for manual review if ``MATERIA_SCREENSHOTS`` is set."""
    if os.environ.get("MATERIA_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def wait_until_at(page: Page, place: str) -> None:
    page.get_by_role("heading", name=place, exact=True).wait_for()


def test_cast_can_be_played_to_the_end_and_restarted_by_tapping(phone: Page):
    wait_until_at(phone, "Plan")
    answer(phone, "lists 2 items")
    wait_until_at(phone, "Build, the first item")
    answer(phone, "answers")
    wait_until_at(phone, "Eval, the first item")
    answer(phone, "✗ not satisfied")
    wait_until_at(phone, "Build, the first item")
    said = phone.locator("[aria-live=polite]").inner_text()
    assert "Edge 2 (not_satisfied) leads to Build: the output sets satisfied: false." in said
    assert "(before: " in said
    assert "Turns so far: 3." in said
    assert "✓ satisfied: the cast would have gone to Maintain, the first item." in phone.inner_text("main")
    assert phone.locator("[data-socket='Socket-2'].here").count() == 1
    assert phone.locator(".here").count() == 1
    assert phone.locator(".taken").get_attribute("data-edge") == "edge:1:Socket-3"
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    shoot(phone, "play-phone")
    answer(phone, "Back")
    wait_until_at(phone, "Eval, the first item")
    phone.go_back()
    wait_until_at(phone, "Build, the first item")
    answer(phone, "Start again")
    wait_until_at(phone, "Plan")


def test_link_to_a_play_page_contains_the_state_of_the_cast(phone: Page, address: str):
    phone.goto(f"{address}#0.0.1")
    wait_until_at(phone, "Build, the first item")
    phone.goto(f"{address}#0.9.x")
    wait_until_at(phone, "Build, the first item")


def test_cast_can_be_played_to_the_end_by_keyboard_alone(phone: Page):
    phone.keyboard.press("1")
    wait_until_at(phone, "Build, the first item")
    assert phone.evaluate("document.activeElement.textContent") == "answers"
    for turns in range(2, 8):
        phone.keyboard.press("Enter")
        phone.get_by_text(f"Turns so far: {turns}.").wait_for()
    phone.keyboard.press("1")
    wait_until_at(phone, "Complete")
    assert phone.get_by_role("navigation", name="The cast has ended").count() == 1
    assert phone.evaluate("document.activeElement.textContent") == "Back"


def test_picture_is_dark_on_a_dark_page(phone: Page):
    background = "getComputedStyle(document.querySelector('#picture svg > rect')).fill"
    assert phone.evaluate(background) == "rgb(255, 255, 255)"
    phone.emulate_media(color_scheme="dark")
    phone.wait_for_selector('body[data-jp-theme-light="false"]')
    assert phone.evaluate(background) == "rgb(35, 35, 35)"
    phone.set_viewport_size({"width": 1280, "height": 900})
    shoot(phone, "play-dark")
