"""Test that every level can be solved on a phone without a network, and that a wrong prediction names its misreading."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from materia_nb.lessons.questions import levels, write_levels

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

ANSWERS = {
    "complete": ["lists 2 items", "answers", "✗ not satisfied", "answers", "✓ satisfied", "answers"],
    "used-up": ["answers", "✗ not satisfied"] * 3,
    "make-it-happen": [
        "lists 2 items",
        "answers",
        "✓ satisfied",
        "✓ satisfied",
        "answers",
        "✗ not satisfied",
        "answers",
    ],
}
CHANGES = {"hasty-packer": "The edge for satisfied leads back to Pack", "fix-it": "The exit is for always"}
PREDICTED = ["first-match", "per-item"]
"""Two of the levels with predictions; tests/lessons/test_levels.py tests the routes and beliefs of all levels."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    write_levels(folder)
    return folder


@pytest.fixture
def phone(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 360, "height": 740}, has_touch=True, offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    width = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert not problems
    assert width <= 360


def open_level(page: Page, folder: Path, name: str) -> dict[str, Any]:
    page.goto((folder / f"{name}.html").as_uri())
    data: dict[str, Any] = json.loads(page.locator("#play-data").text_content() or "")
    return data


def task(page: Page) -> Locator:
    return page.locator(".task")


def expect_mark_in_the_overview(page: Page, name: str) -> None:
    page.get_by_role("link", name="All levels").tap()
    expect(page.locator(f"[data-level='{name}']")).to_contain_text("✓")


@pytest.mark.parametrize("name", ANSWERS)
def test_goal_can_be_reached_with_the_fewest_answers(phone: Page, folder: Path, name: str):
    open_level(phone, folder, name)
    for number, answer in enumerate(ANSWERS[name], 1):
        expect(task(phone)).not_to_contain_text("✓")
        phone.get_by_role("link", name=answer, exact=True).tap()
        expect(phone.locator("ol > li")).to_have_count(number)
    count = len(ANSWERS[name])
    expect(task(phone)).to_have_text(f"✓ Reached with {count} answers. The fewest are {count}.")
    phone.get_by_role("link", name="Back").tap()
    expect(task(phone)).not_to_contain_text("✓")
    phone.go_back()
    expect(task(phone)).to_contain_text("✓ Reached")
    names = [level.name for level in levels()]
    following = names[names.index(name) + 1 :][:1]
    addresses = [link.get_attribute("href") for link in phone.get_by_role("link", name="Next level").all()]
    assert addresses == [f"{other}.html" for other in following]
    expect_mark_in_the_overview(phone, name)


@pytest.mark.parametrize("name", PREDICTED)
def test_wrong_prediction_names_its_misreading_and_right_prediction_shows_the_next_state(
    phone: Page, folder: Path, name: str
):
    data = open_level(phone, folder, name)
    path, beliefs = data["level"]["paths"][0]
    labels = dict(data["level"]["targets"])
    state = data["states"][0]
    count = sum(wrong is not None for wrong in beliefs)
    asked = 0
    for number, wrong in zip(path, beliefs, strict=True):
        if wrong is not None:
            asked += 1
            expect(phone.get_by_role("heading", level=2)).to_have_text(data["texts"][state[0]])
            expect(phone.locator("[aria-live=polite]")).to_contain_text(f"{asked} of {count}. The answer: ")
        for target, belief in (wrong or {}).items():
            phone.get_by_role("button", name=labels[target], exact=True).tap()
            sentence = f"No. That would be right if {data['level']['beliefs'][belief]}."
            expect(phone.get_by_role("alert")).to_have_text(sentence)
        state = data["states"][state[5][number][0]]
        end = "end" if state[2] == "complete" else "stop"
        if wrong is not None:
            phone.get_by_role("button", name=labels[state[1] if state[2] is None else end], exact=True).tap()
    expect(phone.get_by_role("heading", level=2)).to_have_text(data["texts"][state[0]])
    expect(task(phone)).to_have_text(f"✓ You have predicted all {count} moves.")
    expect_mark_in_the_overview(phone, name)


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_change_is_refused_with_a_counterexample(phone: Page, folder: Path, name: str):
    data = open_level(phone, folder, name)
    assert phone.get_by_text("A counterexample is left:").is_visible()
    for number, change in enumerate(data["level"]["changes"], 1):
        phone.get_by_role("button", name=change["label"], exact=True).tap()
        phone.get_by_role("heading", name=change["label"], exact=True).wait_for()
        assert phone.locator("#picture > div:not([hidden])").count() == 1
        assert phone.locator(f"#picture > div:nth-child({number + 1})").is_visible()
        solved = change["label"] == CHANGES[name]
        assert phone.get_by_text("No cast can do that.").is_visible() == solved
        assert bool(phone.get_by_text("A counterexample is left:").count()) != solved
        assert ("✓" in task(phone).inner_text()) == solved
        if not solved:
            assert phone.locator("ol > li").last.inner_text() in {"Load-Van", "Complete"}
    expect_mark_in_the_overview(phone, name)


def test_another_player_name_leads_to_another_route_even_if_the_browser_cannot_store_it(phone: Page, folder: Path):
    phone.add_init_script("Storage.prototype.setItem = () => { throw new Error('full') }")
    data = open_level(phone, folder, "items-left")
    phone.goto((folder / "index.html").as_uri())
    texts = set()
    for name in ("ada", "bob", "cy", "dora & eve #1", "x" * 400):
        phone.get_by_label("Your name").fill(name)
        phone.get_by_label("Your name").blur()
        phone.reload()
        expect(phone.get_by_label("Your name")).to_have_value(name)
        phone.locator("[data-level='items-left']").tap()
        first = re.search(r"The answer: (.*)\. Where", phone.locator("[aria-live=polite]").inner_text())
        assert first
        draw = 0
        for letter in name:
            draw = (31 * draw + ord(letter)) % 2**31
        path, beliefs = data["level"]["paths"][draw % len(data["level"]["paths"])]
        asked = next(step for step, wrong in enumerate(beliefs) if wrong is not None)
        state = data["states"][0]
        for number in path[:asked]:
            state = data["states"][state[5][number][0]]
        assert first[1] == data["texts"][state[5][path[asked]][1]]
        texts.add(tuple(path))
        phone.get_by_role("link", name="All levels").tap()
        expect(phone.get_by_label("Your name")).to_have_value(name)
    assert len(texts) > 1


def test_level_can_be_solved_by_keyboard_alone(phone: Page, folder: Path):
    open_level(phone, folder, "empty-list")
    phone.keyboard.press("1")
    expect(phone.locator("ol > li")).to_have_count(1)
    phone.keyboard.press("1")
    phone.get_by_text("✓ Reached with 2 answers. The fewest are 2.").wait_for()


def test_overview_marks_a_solved_level_even_if_the_browser_cannot_store_it(phone: Page, folder: Path):
    """The mark is also shown if the browser cannot store it, or if it shows the page again after Back."""
    phone.goto((folder / "index.html").as_uri())
    marked = phone.locator("[data-level]", has_text="✓")
    expect(marked).to_have_count(0)
    phone.evaluate("localStorage.setItem('materia-level:complete', 'true')")
    phone.evaluate("for (const time of [1, 2]) dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(marked).to_have_text(["1. Complete is not good ✓"])
    phone.add_init_script(
        "Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new Error('refused'); }"
    )
    open_level(phone, folder, "empty-list")
    phone.keyboard.press("1")
    expect(phone.locator("ol > li")).to_have_count(1)
    phone.keyboard.press("1")
    phone.get_by_text("✓ Reached with 2 answers.").wait_for()
    expect_mark_in_the_overview(phone, "empty-list")
    expect(marked).to_have_count(1)
