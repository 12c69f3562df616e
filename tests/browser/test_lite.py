"""Test the site that runs notebooks entirely in the browser; requests to all other addresses are blocked.

``make lite`` builds the site and runs these tests, and ``make lite-test`` runs only the tests. Other targets skip them.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from browser.chrome import FLAGS
from browser.lab import Lab
from chromium import find_chromium
from materia_nb.utilities.process import NO_PROCESSES_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

SITE: Final = os.environ.get("MATERIA_LITE_SITE", "")
NO_NETWORK: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
START_MS: Final = 180_000  # Python and its packages are started anew by each notebook

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SITE, reason="needs the site: make lite builds it and runs this"),
]


class Lite(Lab):
    """A page of the site; ``asked`` lists the blocked addresses that the page requested."""

    last = 0
    """The element of the cell that was run most recently."""

    def __init__(self, browser: Browser, url: str) -> None:
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        context.set_default_timeout(60_000)
        self.url = url
        self.asked: list[str] = []
        context.on("request", lambda request: self._note(request.url))
        super().__init__(context.new_page(), None, Path())

    def _note(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.asked.append(url)

    def open(self, name: str) -> None:
        """Open a notebook of the site and wait for its kernel."""
        self.page.goto(f"{self.url}/lab/index.html?path={name}")
        self.page.wait_for_function(
            """(path) => {
                const panel = window.jupyterapp?.shell.currentWidget;
                return panel?.context?.path === path && panel.context.isReady
                    && panel.sessionContext?.session?.kernel?.status === 'idle';
            }""",
            arg=name,
            timeout=START_MS,
        )

    def run(self, text: str) -> str:
        """Append a cell to the notebook, run it, and return its output."""
        place = self.page.evaluate(
            """async (text) => {
                const book = window.jupyterapp.shell.currentWidget.content;
                book.activeCellIndex = book.widgets.length - 1;
                await window.jupyterapp.commands.execute('notebook:insert-cell-below');
                book.activeCell.model.sharedModel.setSource(text);
                return book.activeCellIndex;
            }""",
            text,
        )
        self.last = place
        self.run_cell(place)
        assert not [output.error for output in self.outputs(place) if output.error], text
        return self.cell_text(place)


@pytest.fixture(scope="module")
def offline(chromium: Browser) -> Iterator[tuple[Browser, str]]:
    """Yield a browser that can reach only the site, and the address of the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Discard the log message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = chromium.browser_type.launch(executable_path=find_chromium(), args=[*FLAGS, NO_NETWORK])
    yield browser, f"http://127.0.0.1:{server.server_port}"
    browser.close()
    server.shutdown()
    server.server_close()


@pytest.fixture
def lite(offline: tuple[Browser, str]) -> Iterator[Lite]:
    page = Lite(*offline)
    yield page
    page.page.context.close()
    assert page.asked == []
    assert page.page_errors == []


@pytest.mark.timeout(400)
def test_lesson_1_runs_and_a_guess_is_judged(lite: Lite, capsys: pytest.CaptureFixture[str]):
    began = time.monotonic()
    lite.open("01-edges.ipynb")
    started = time.monotonic()
    lite.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    lite.cell(1).locator("svg, img").first.wait_for()
    shown = time.monotonic()
    lite.wait_idle()
    cell = lite.cell(3)
    cell.get_by_role("button", name=re.compile("^Socket-2 · ")).click()
    cell.get_by_role("alert").get_by_text("Not this time").wait_for()
    judged = time.monotonic()
    with capsys.disabled():
        print(
            f"\nkernel {started - began:.1f} s, first graph {shown - began:.1f} s, "
            f"first verdict {judged - began:.1f} s after the page was requested"
        )
    cell.get_by_role("button", name=re.compile("^Socket-3 · ")).click()
    cell.get_by_role("alert").get_by_text("Right: the cast goes to Ask-Back").wait_for()
    assert "Edge 1 (always) leads to the end" in lite.cell_text(9)
    lite.run("import sys, importlib.util")
    assert lite.run("print('ipycytoscape' in sys.modules, importlib.util.find_spec('jedi'))").strip() == "False None"


@pytest.mark.timeout(400)
def test_loop_can_be_explored_simulated_and_stepped_by_magic_and_button(lite: Lite):
    lite.open("03-loops.ipynb")
    lite.run_all()
    lite.cell(4).get_by_text("item WI-1 (Roses)").first.wait_for()
    assert "complete" in lite.run('%materia use Garden\nwb.cast("the garden").run()\n%materia status')
    lite.run('cast = wb.cast("the garden")')
    assert "next: Plant" in lite.run("%materia step")
    lite.run("%materia show")
    lite.cell(lite.last).locator("[data-act=step]:visible:not([data-settling])").first.click()
    # The click may wait behind the first of these.
    assert "2" in [lite.run("print(len(cast.steps))").strip() for _ in range(3)]
    assert "states" in lite.run("wb.explore()")
    lite.run("reply = get_ipython().kernel.complete('wb.expl', 7)")
    assert lite.run("print('wb.expl'[: reply['cursor_start']] + reply['matches'][0])").strip() == "wb.explore"
    assert "casts" in lite.run("wb.simulate(n=50)")
    lite.screenshot("lite-loop")


@pytest.mark.timeout(400)
def test_bundled_utility_runs_in_the_browser_and_other_commands_are_refused(lite: Lite):
    lite.open("05-utilities.ipynb")
    lite.run_all()
    lite.cell(8).get_by_text("words: 3").wait_for()
    lite.run(
        'sockets = {"Socket-1": {"materia": "Git"}}\n'
        'wb.loadouts.define_materia("Git", {"type": "utility", "command": ["git", "status"]})\n'
        'wb.loadouts.define("Git", {"entry": "Socket-1", "sockets": sockets})\n'
        'cast = wb.cast("x")\n'
        "cast.run()"
    )
    assert NO_PROCESSES_REASON in lite.run("print(cast.failure.message)")
