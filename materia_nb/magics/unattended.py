"""Running the cells of a notebook without a kernel, in a shell of their own: what the marks of a lesson are worked out by."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from materia_nb.magics import load_ipython_extension, unload_ipython_extension


def run_cells(cells: Iterable[tuple[str, bool]]) -> Mapping[str, Any]:
    """Run cells one after another, here and now, and show nothing of what they show.

    Args:
        cells: the source of each, and whether it may fail.

    Returns:
        The names that they defined.

    Raises:
        Exception: what a cell raised that may not.
    """
    made: Any = InteractiveShell
    with capture_output():
        shell = made(config=Config({"HistoryManager": {"enabled": False}}))
        load_ipython_extension(shell)
        try:
            for source, may_fail in cells:
                done = shell.run_cell(source)
                if not may_fail:
                    done.raise_error()
        finally:
            unload_ipython_extension(shell)
            atexit.unregister(shell.atexit_operations)  # else every shell is kept until the process ends
    names: Mapping[str, Any] = shell.user_ns
    return names
