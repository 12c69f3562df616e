"""Run line magics, cell magics and complete cells of %materia, and read the text of their values."""

from __future__ import annotations

import atexit

import materia_nb

SHELLS = []
"""The shells that the current test has created."""
HELLO = {
    "activeLoadout": "Hello",
    "loadouts": {"Hello": {"entry": "hello", "sockets": {"hello": {"materia": "hi"}}}},
    "materia": {
        "hi": {
            "type": "utility",
            "command": ["python3", "-c", 'print(\'{"state": {"greeting": "hi"}}\')'],
            "parse": "json",
        }
    },
}
ASK = """
entry: Socket-1
sockets:
  Socket-1: {materia: Judge, parse: json, edges: [{when: satisfied, to: Socket-2}, {when: always, to: end}]}
  Socket-2: {materia: Teller}
materia:
  Judge: {tools: none, prompt: "Judge {{request}}"}
  Teller: {tools: none, prompt: "Tell {{state.context}}"}
"""


def new_shell(bench=None):
    """Return an IPython shell with the magics and the workbench ``bench``, but without a history file.

    The shell is closed at the end of the test.
    """
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    materia_nb.load_ipython_extension(shell)
    if bench is not None:
        shell.user_ns["wb"] = bench
    SHELLS.append(shell)
    return shell


def end_shells():
    """Release all shells, because each would otherwise keep the variables of its cells until the process ends."""
    while SHELLS:
        made = SHELLS.pop()
        materia_nb.unload_ipython_extension(made)
        atexit.unregister(made.atexit_operations)


def line(shell, text):
    """Run a line magic and return its value."""
    return shell.run_line_magic("materia", text)


def cell(shell, first, body):
    """Run a cell magic and return its value."""
    return shell.run_cell_magic("materia", first, body)


def run(shell, source):
    """Run a cell as typed, and return its value or its error."""
    result = shell.run_cell(source)
    if result.error_before_exec or result.error_in_exec:
        raise result.error_before_exec or result.error_in_exec
    return result.result


def text(value):
    """Return the plain text representation of a value."""
    return value._repr_mimebundle_()["text/plain"]
