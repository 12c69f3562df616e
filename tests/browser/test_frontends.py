"""Test that the panel of a cast and its Step button work in Notebook 7 and Voila."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import nbformat
import pytest
from playwright.sync_api import expect

from browser.surface import press_button

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from browser.server import LabServer

pytestmark = pytest.mark.browser

CELLS: Final = (
    "%load_ext materia_nb",
    (
        "%materia use Teach-Edges\n"
        'wb.agent("*", {"Triage": {"satisfied": True, "context": "clear"}, "Answer": "Change the bulb."})'
    ),
    'cast = wb.cast("The lamp is dark")',
    # A page without cells has no other way to say how far the cast is.
    (
        "import ipywidgets\n"
        "steps = ipywidgets.Label()\n"
        'cast.follow.changes(lambda now: setattr(steps, "value", f"{len(now.steps)} step made"))\n'
        "steps"
    ),
    "%materia show",
)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(90_000)
    page = context.new_page()
    # Voila's page names stylesheets at a CDN; without them it is to work as well.
    page.route(re.compile(r"^https?://(?!127\.0\.0\.1|localhost)"), lambda route: route.abort())
    yield page
    context.close()


@pytest.fixture
def notebook(lab_server: LabServer, request: pytest.FixtureRequest) -> Path:
    """Return a notebook in the folder of JupyterLab's server, which also serves Notebook 7 and Voila if installed."""
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    path = lab_server.root / request.node.name / "cast.ipynb"
    path.parent.mkdir()
    nbformat.write(book, path)
    return path


def step(page: Page) -> None:
    """Click Step in the panel and wait until the kernel reports the step."""
    expect(page.get_by_text("Socket-1").first).to_be_attached(timeout=90_000)
    press_button(page.locator("[data-act=step]:visible").first)
    expect(page.get_by_text("1 step made")).to_be_visible(timeout=60_000)


def open_in(page: Page, frontend: str, server: LabServer, notebook: Path) -> None:
    page.goto(f"{server.url}/{frontend}/{notebook.relative_to(server.root).as_posix()}?token={server.token}")


@pytest.mark.skipif(find_spec("notebook") is None, reason="notebook is not installed: materia-nb[frontends]")
def test_step_button_works_in_notebook_7(page: Page, lab_server: LabServer, notebook: Path):
    open_in(page, "notebooks", lab_server, notebook)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    assert page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    step(page)


@pytest.mark.skipif(find_spec("voila") is None, reason="voila is not installed: materia-nb[frontends]")
def test_step_button_works_in_voila(page: Page, lab_server: LabServer, notebook: Path):
    open_in(page, "voila/render", lab_server, notebook)
    step(page)
