"""The IPython extension with the magics ``%materia`` and ``%%materia``, which ``%load_ext materia_nb`` loads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics, the tab completion and the display of casts. A second call replaces all of them."""
    from materia_nb.agents.interface import CELL_NAME_FINDERS
    from materia_nb.magics.cast_display import CastDisplay
    from materia_nb.magics.magic import MateriaMagics, QuestionLine, make_cell_namer, make_matcher

    unload_ipython_extension(shell)
    magics = MateriaMagics(shell)
    shell.register_magics(magics)
    magics.hooks.callback(CastDisplay(shell, lambda: magics.bench).close)
    completer: Any = shell.Completer
    callbacks: list[tuple[list[Any], Any]] = [
        (CELL_NAME_FINDERS, make_cell_namer(shell)),
        (shell.input_transformer_manager.token_transformers, QuestionLine),
        ([] if completer is None else completer.custom_matchers, make_matcher(lambda: magics.bench)),
    ]
    for registry, callback in callbacks:
        registry.append(callback)
        magics.hooks.callback(registry.remove, callback)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics, the tab completion and the display of casts. The user's variables are kept."""
    magics: Any = shell.magics_manager.registry.pop("MateriaMagics", None)
    if magics is not None:
        magics.hooks.close()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("materia", None)


def run_cells(cells: Iterable[tuple[str, bool]]) -> Mapping[str, Any]:
    """Run cells one after another in a new shell without a kernel, and return the variables that the cells define.

    Args:
        cells: the source of each cell, and True if the cell is allowed to fail.

    Raises:
        Exception: the error of a cell that is not allowed to fail.
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
