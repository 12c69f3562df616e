"""The magics of a notebook: ``%load_ext materia_nb`` calls :func:`load_ipython_extension`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics, the tab completion and the display of casts; a second call replaces them."""
    from materia_nb.magics.cast_display import CastDisplay
    from materia_nb.magics.magic import MateriaMagics, make_matcher, name_cells, take_questions

    unload_ipython_extension(shell)
    magics = MateriaMagics(shell)
    shell.register_magics(magics)
    completer = shell.Completer
    if completer is not None:
        completer.custom_matchers.append(make_matcher(lambda: magics.bench))
    magics.shown = CastDisplay(shell, lambda: magics.bench)
    magics.names = name_cells(shell)
    take_questions(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics, the tab completion and the display of casts; keep the user's variables."""
    from materia_nb.magics.magic import IDENTIFIER, leave_questions

    magics: Any = shell.magics_manager.registry.get("MateriaMagics")
    if getattr(magics, "shown", None) is not None:
        magics.shown.close()
        magics.names()
        magics.shown = None
    leave_questions(shell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("materia", None)
    shell.magics_manager.registry.pop("MateriaMagics", None)
    completer: Any = shell.Completer
    if completer is not None:
        completer.custom_matchers[:] = [
            matcher for matcher in completer.custom_matchers if getattr(matcher, "matcher_identifier", "") != IDENTIFIER
        ]


def run_cells(cells: Iterable[tuple[str, bool]]) -> Mapping[str, Any]:
    """Run cells in order in a new shell without a kernel and without output, and return the variables that they defined.

    Args:
        cells: the source of each cell, and True if it may fail.

    Raises:
        Exception: the error of a cell that must not fail.
    """
    import atexit

    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    shell_class: Any = InteractiveShell  # the constructor is not annotated
    with capture_output():
        shell = shell_class(config=Config({"HistoryManager": {"enabled": False}}))
        load_ipython_extension(shell)
        try:
            for source, may_fail in cells:
                result = shell.run_cell(source)
                if not may_fail:
                    result.raise_error()
        finally:
            unload_ipython_extension(shell)
            atexit.unregister(shell.atexit_operations)  # otherwise atexit keeps every shell until the process ends
    names: Mapping[str, Any] = shell.user_ns
    return names
