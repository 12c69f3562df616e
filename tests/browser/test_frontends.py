"""Test that the panel of a cast and its Step button work in Notebook 7 and Voila."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import nbformat
import pytest
from playwright.sync_api import expect

from browser.surface import press_button
from file_kernels import TRANSPORT_OPTION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

START_SECONDS: Final = 90
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


def answering(url: str) -> None:
    """Wait until the server accepts connections, because it may print its address earlier."""
    host, port = url.removeprefix("http://").split(":")
    until, again = time.monotonic() + START_SECONDS, threading.Event()
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            assert time.monotonic() < until, f"nobody answers at {url}"
            again.wait(0.1)
        else:
            return


@contextlib.contextmanager
def serving(folder: Path, *command: str) -> Iterator[str]:
    """Run a Jupyter server in its own folder and yield its address."""
    places = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    # Not in that folder: the path of a socket may have 107 characters.
    places["JUPYTER_RUNTIME_DIR"] = runtime = tempfile.mkdtemp(prefix="lab-")
    more = {"MATERIA_PROFILE_DIR": str(folder / "profile"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", *command, TRANSPORT_OPTION],
        cwd=folder,
        env={**os.environ, **places, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    found, url, lines = threading.Event(), [], []

    def read() -> None:
        for line in process.stdout:
            lines.append(line)
            if match := re.search(r"http://(?:127\.0\.0\.1|localhost):\d+", line):
                url.append(match[0])
                found.set()
        found.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert found.wait(START_SECONDS), "".join(lines)
        assert url, "".join(lines)
        answering(url[0])
        yield url[0]
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
                break
        reader.join(15)
        shutil.rmtree(runtime, ignore_errors=True)


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
def notebook(tmp_path: Path) -> Path:
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    path = tmp_path / "cast.ipynb"
    nbformat.write(book, path)
    return path


def step(page: Page) -> None:
    """Click Step in the panel and wait until the kernel reports the step."""
    expect(page.get_by_text("Socket-1").first).to_be_attached(timeout=90_000)
    press_button(page.locator("[data-act=step]:visible").first)
    expect(page.get_by_text("1 step made")).to_be_visible(timeout=60_000)


@pytest.mark.skipif(find_spec("notebook") is None, reason="notebook is not installed: materia-nb[frontends]")
def test_step_button_works_in_notebook_7(page: Page, notebook: Path):
    token = secrets.token_hex(16)
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    options += [f"--IdentityProvider.token={token}", "--JupyterNotebookApp.expose_app_in_browser=True"]
    with serving(notebook.parent, "notebook", *options) as url:
        page.goto(f"{url}/notebooks/{notebook.name}?token={token}")
        page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        )
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
        step(page)


@pytest.mark.skipif(find_spec("voila") is None, reason="voila is not installed: materia-nb[frontends]")
def test_step_button_works_in_voila(page: Page, notebook: Path):
    with socket.socket() as free:  # Voila takes no port 0
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    with serving(notebook.parent, "voila", notebook.name, *options) as url:
        page.goto(url)
        step(page)
