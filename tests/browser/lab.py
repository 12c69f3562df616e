"""Drive a JupyterLab page with one method for each user action, such as opening, running or reading a cell."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nbformat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import ConsoleMessage, Dialog, Error, Locator, Page

    from browser.server import LabServer

SCREENSHOTS: Final = Path(__file__).resolve().parents[2] / "build" / "screenshots"
LIGHT: Final = "JupyterLab Light"
DARK: Final = "JupyterLab Dark"

_OPENED: Final = """(path) => {
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.context?.path === path && panel.context.isReady && panel.sessionContext?.isReady
        && panel.sessionContext.session?.kernel?.status === 'idle';
}"""
_IDLE: Final = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const waiting = [...panel.node.querySelectorAll('.jp-InputPrompt')]
        .some((prompt) => prompt.textContent.includes('*'));
    return !waiting && panel.sessionContext.session?.kernel?.status === 'idle';
}"""

_RUNS_REQUESTS: Final = """() => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const request = kernel.requestExecute({ code: '', silent: true, store_history: false });
    return new Promise((resolve) => {
        let isAccepted = false;
        request.onReply = (reply) => { isAccepted = reply.content.status === 'ok'; };
        request.onIOPub = ({ content }) => { if (content.execution_state === 'idle') resolve(isAccepted); };
    });
}"""
"""JavaScript function that sends an empty request, and returns True if the kernel has replied to it when it is idle.

An interrupt that arrives during the request can prevent the reply, so nothing may wait for it.
"""


CLOSING_ERRORS: Final = (
    # An ipykernel that ends sends from several threads at once, and its last messages can be mixed up.
    "Kernel message validation error",
    # What JupyterLab put off looks for the cells of a notebook that was closed.
    "Cannot read properties of null (reading 'widgets')",
)
"""Messages of errors that JupyterLab itself raises when a notebook and its kernel are closed."""

WIDGET_MANAGER: Final = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    return panel.content.rendermime.createRenderer('application/vnd.jupyter.widget-view+json')._manager.promise;
}"""
"""JavaScript function that returns the widget manager of the notebook."""


@dataclass(frozen=True, slots=True)
class Output:
    """A cell output as stored in the notebook model."""

    kind: str
    """``stream``, ``display_data``, ``execute_result`` or ``error``."""
    data: dict[str, Any] = field(default_factory=dict)
    """Values by MIME type; the text of a stream has the type ``text/plain``."""
    error: str = ""
    """The error name and message, such as ``NameError: ...``; empty for other outputs."""
    traceback: str = ""
    """The lines of the traceback in the error box, without colour codes."""

    @property
    def text(self) -> str:
        """Return the plain text of a stream, a value or an error."""
        return self.error or str(self.data.get("text/plain", ""))


class Lab:
    """A JupyterLab page with one open notebook.

    The page is shared by all tests, so that JupyterLab is loaded only once. The first notebook of a test opens in this
    page. The page is reloaded before each further notebook, unless :meth:`close` has closed the notebook before it.
    """

    def __init__(self, page: Page, server: LabServer, folder: Path, kernel: str = "python3") -> None:
        self.page = page
        self.folder = folder
        self.kernel = kernel
        self.page_errors: list[str] = []
        self.console_errors: list[str] = []
        self._server = server
        self._kernel_ends = False
        self._opened = False
        self._listeners = {"pageerror": self._raised, "console": self._logged, "dialog": self._asked}
        for event, heard in self._listeners.items():
            page.on(event, heard)

    def notebook(self, *cells: str, name: str = "test.ipynb") -> Path:
        """Write a notebook with the specified code cells to the folder of the test.

        A cell that begins with ``md:``, such as ``"md:# Title"``, becomes a Markdown cell.
        """
        book = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_markdown_cell(cell[3:]) if cell.startswith("md:") else nbformat.v4.new_code_cell(cell)
                for cell in cells
            ],
            metadata={"kernelspec": {"name": self.kernel, "display_name": self.kernel, "language": "python"}},
        )
        path = self.folder / name
        nbformat.write(book, path)
        return path

    def open(self, path: Path, *, reload: bool = False) -> None:
        """Open a notebook and wait for its kernel; a notebook from another folder is copied first.

        ``reload`` loads the page again in any case.
        """
        if not path.is_relative_to(self._server.root):
            path = Path(shutil.copy(path, self.folder))
        inside = path.relative_to(self._server.root).as_posix()
        if reload or self._opened or not self.page.evaluate("() => Boolean(window.jupyterapp)"):
            self.page.goto(f"{self._server.url}/lab/tree/{inside}?reset&token={self._server.token}")
        else:
            self._command("docmanager:open", {"path": inside, "factory": "Notebook"})
        self._opened = True
        self._kernel_ends = False
        self.page.wait_for_function(_OPENED, arg=inside)
        # Until it has asked the kernel for widgets of before, it may put older states over newer ones.
        self.page.wait_for_function(f"async () => (await ({WIDGET_MANAGER})()).restoredStatus")

    def run_all(self) -> None:
        """Run the cells in order until one raises an error, and wait until the kernel is idle."""
        self._command("notebook:run-all-cells")
        self.wait_idle()

    def run_cell(self, index: int) -> None:
        """Run one cell and wait until it has finished."""
        # A panel that is still redrawn gives the focus back to its own control, and JupyterLab then selects its cell.
        self.page.evaluate("() => document.activeElement?.blur?.()")
        self._select(index)
        self._command("notebook:run-cell")
        self.wait_idle()

    def save(self) -> None:
        """Save the notebook until it has no unsaved changes, because a panel may store its output shortly after it is
        drawn.
        """
        self.page.wait_for_function(
            """async () => {
                await window.jupyterapp.commands.execute('docmanager:save');
                return !window.jupyterapp.shell.currentWidget.context.model.dirty;
            }"""
        )

    def start_cell(self, index: int) -> None:
        """Start a cell without waiting for it to finish."""
        self._select(index)
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")

    def interrupt(self) -> None:
        """Interrupt the kernel, as the square button does, and wait until it accepts requests again.

        After an error, the kernel aborts the requests that it has already received. A cell that is started immediately
        might therefore never run.
        """
        self._command("notebook:interrupt-kernel")
        self.page.wait_for_function(_RUNS_REQUESTS)

    def wait_for_kernel(self) -> None:
        """Wait until the kernel has handled the messages that the page has sent so far."""
        self.page.wait_for_function(_RUNS_REQUESTS)

    def set_source(self, index: int, text: str) -> None:
        """Replace the source of a cell."""
        self.page.evaluate(
            "([i, text]) => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.setSource(text)",
            [index, text],
        )

    def wait_idle(self) -> None:
        """Wait until the kernel is idle and no cell prompt shows an asterisk."""
        self.page.wait_for_function(_IDLE)

    def outputs(self, index: int) -> list[Output]:
        """Return the outputs of a code cell from the notebook model, in order."""
        found = self.page.evaluate(
            "(i) => window.jupyterapp.shell.currentWidget.content.widgets[i].model.outputs.toJSON()", index
        )
        return [_output(one) for one in found]

    def cell(self, index: int) -> Locator:
        """Return the page element of a cell, which contains its input and its outputs."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell").nth(index)

    def cell_text(self, index: int) -> str:
        """Return the visible text of the outputs of a cell, without prompts such as ``[1]:``."""
        return "\n".join(self.cell(index).locator(".jp-OutputArea-output").all_inner_texts())

    def complete(self, index: int, text: str) -> list[str]:
        """Type text into an empty cell, press Tab, and return the completions.

        JupyterLab inserts a single candidate without showing a menu. The result is then a list with the complete text
        of the cell.
        """
        self.set_source(index, "")
        self._select(index)
        self._command("notebook:enter-edit-mode")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Tab")
        self.page.wait_for_function(
            """([i, text]) => document.querySelector('.jp-Completer:not(.lm-mod-hidden) .jp-Completer-item')
                || window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource()
                    !== text""",
            arg=[index, text],
        )
        items = self.page.locator(".jp-Completer:not(.lm-mod-hidden) .jp-Completer-match").all_inner_texts()
        if not items:
            return [self.source(index)]
        self.page.keyboard.press("Escape")
        return items

    def source(self, index: int) -> str:
        """Return the source of a cell."""
        return str(
            self.page.evaluate(
                "(i) => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource()",
                index,
            )
        )

    def set_theme(self, theme: str) -> None:
        """Switch to :data:`LIGHT` or :data:`DARK` and wait until the page has changed."""
        self._command("apputils:change-theme", {"theme": theme})
        self.page.wait_for_function("(theme) => document.body.dataset.jpThemeName === theme", arg=theme)
        # JupyterLab fades its start picture in and out over the page while it changes.
        self.page.wait_for_function("() => !document.getElementById('jupyterlab-splash')")

    def seen(self, *, dark: bool = False, cell: int | None = None) -> bytes:
        """Return a PNG of the notebook, or of one cell, in the light or the dark theme."""
        self.set_theme(DARK if dark else LIGHT)
        target = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)") if cell is None else self.cell(cell)
        return target.screenshot()

    def screenshot(self, name: str, *, dark: bool = False, cell: int | None = None) -> None:
        """Save a screenshot for manual review if ``MATERIA_SCREENSHOTS`` is set."""
        if "MATERIA_SCREENSHOTS" in os.environ:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            path = SCREENSHOTS / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}{'-dark' if dark else ''}.png"
            path.write_bytes(self.seen(dark=dark, cell=cell))

    def close(self) -> None:
        """Close the notebook and shut down its kernel, so that it does not slow down the next test."""
        self._kernel_ends = True
        self._opened = False
        if self.page.evaluate("() => Boolean(window.jupyterapp)"):
            self.page.evaluate(
                """async () => {
                    for (const panel of [...jupyterapp.shell.widgets('main')]) {
                        if (panel.context) panel.dispose();  // close() would ask whether to save
                    }
                    await jupyterapp.serviceManager.sessions.shutdownAll();
                }"""
            )
            if self.page.evaluate("() => document.body.dataset.jpThemeName") != LIGHT:
                self.set_theme(LIGHT)

    def leave(self) -> None:
        """Remove the event listeners of this test from the page, which the next test reuses."""
        for event, heard in self._listeners.items():
            self.page.remove_listener(event, heard)

    def _raised(self, error: Error) -> None:
        of_lab = "create_subshell_request" in str(error)  # JupyterLab's own, of a notebook that is closed at once
        if not of_lab and not (self._kernel_ends and any(words in str(error) for words in CLOSING_ERRORS)):
            self.page_errors.append(str(error))

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(message.text)

    def _asked(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":  # which JupyterLab shows when a notebook that was not saved is left
            self.page_errors.append(f"a dialog: {dialog.message}")
        dialog.accept()

    def _select(self, index: int) -> None:
        self.page.evaluate("(i) => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i; }", index)

    def _command(self, name: str, arguments: dict[str, str] | None = None) -> None:
        # What a command resolves to is often a widget, which cannot be carried over to Python.
        self.page.evaluate(
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args); }",
            [name, arguments or {}],
        )


def _output(raw: dict[str, Any]) -> Output:
    kind = raw["output_type"]
    if kind == "error":
        lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(raw["traceback"]))
        return Output(kind, error=f"{raw['ename']}: {raw['evalue']}", traceback=lines)
    if kind == "stream":
        return Output(kind, {"text/plain": _joined(raw["text"])})
    return Output(kind, {mime: _joined(value) for mime, value in raw["data"].items()})


def _joined(value: str | Sequence[str] | dict[str, Any]) -> Any:
    """Return a text in notebook format, which may be a list of lines, as one string."""
    return "".join(value) if isinstance(value, list) and all(isinstance(x, str) for x in value) else value
