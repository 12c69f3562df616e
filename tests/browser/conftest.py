"""Fixtures that start one JupyterLab and one Chromium for all browser tests; each test gets its own folder."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

import oldest_kernel
from browser.chrome import launched
from browser.kernels import NEWEST, OLDEST
from browser.lab import Lab
from browser.server import LabServer
from chromium import driver_starts, find_chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
VIEWPORT = {"width": 1280, "height": 1000}
SLOW_RENDER_LOOPS = """
    const request = window.requestAnimationFrame;
    window.requestAnimationFrame = (draw) =>
        String(draw).includes("requestedFrame") ? setTimeout(request, 50, draw) : request(draw);
"""
"""JavaScript that runs the render loop of each graph 20 times a second.

Cytoscape runs it in each frame, also if nothing has changed, which takes a tenth of the processor time of a page.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the browser tests and set their time limit."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("browser")
            item.add_marker(pytest.mark.timeout(240))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Store the test report, so that the ``lab`` fixture can read it."""
    report = yield
    if report.when == "call":
        item.stash[REPORT] = report
    return report


REPORT = pytest.StashKey[pytest.TestReport]()


# Package scope: while Playwright runs, its thread counts as inside an event loop, and asyncio.run() in
# any later test of the same worker would fail.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    if path is None or not driver_starts():
        _skip_or_fail("Chromium is missing; `make test` explains how to install it")
    with launched(path) as browser:
        yield browser


@pytest.fixture(scope="package")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    python = oldest_kernel.python()
    kernels = {NEWEST: Path(sys.executable)} | ({OLDEST: python} if python else {})
    server = LabServer(tmp_path_factory.mktemp("jupyterlab"), kernels)
    server.start()
    yield server
    server.stop()


class Pages:
    """Provides the page that loads JupyterLab once and opens the notebooks of all tests."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None

    def page(self) -> Page:
        """Return the page at its original size and with the mouse in its corner."""
        if self._page is None:
            context = self._browser.new_context(viewport=VIEWPORT)
            context.set_default_timeout(60_000)
            context.add_init_script(f"(() => {{ {SLOW_RENDER_LOOPS} }})();")
            self._page = context.new_page()
        self._page.set_viewport_size(VIEWPORT)
        self._page.mouse.move(0, 0)
        return self._page

    def close(self) -> None:
        """Close the page, so that the next test gets a new one."""
        if self._page is not None:
            self._page.context.close()
        self._page = None


@pytest.fixture(scope="package")
def pages(chromium: Browser) -> Iterator[Pages]:
    found = Pages(chromium)
    yield found
    found.close()


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> str:
    """Return the kernel name for the notebooks of a test: the newest kernel, unless the test is parametrized with both."""
    name: str = getattr(request, "param", NEWEST)
    if name == OLDEST and oldest_kernel.python() is None:
        _skip_or_fail("the environment with the oldest kernel is missing; `make test` creates it")
    return name


@pytest.fixture
def lab(request: pytest.FixtureRequest, kernel: str, pages: Pages, lab_server: LabServer) -> Iterator[Lab]:
    """Yield JupyterLab without an open notebook; ``lab.folder`` is the folder of the test below the server root.

    An uncaught exception in the page fails the test. After a failure, a screenshot and the server log are stored in
    build/browser-failures/, and the next test gets a new page.
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name)
    folder = lab_server.root / name
    folder.mkdir()
    driver = Lab(pages.page(), lab_server, folder, kernel)
    yield driver
    report = request.node.stash.get(REPORT, None)
    failed = report is None or report.failed
    if failed:
        _store_failure(request.config.rootpath / "build" / "browser-failures" / name, driver, lab_server)
    driver.close()
    driver.leave()
    if failed or driver.page_errors:
        pages.close()
    assert driver.page_errors == []


def _skip_or_fail(what: str) -> NoReturn:
    """Skip the test because a program is missing, or fail it in CI, where nobody would notice a skipped test."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def _store_failure(folder: Path, driver: Lab, server: LabServer) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    driver.page.screenshot(path=folder / "page.png")
    shutil.copy(server.log, folder)
    found = ["page errors:", *driver.page_errors, "console errors:", *driver.console_errors]
    (folder / "errors.txt").write_text("\n".join(found))
