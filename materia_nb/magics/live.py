"""How a cast is shown as the value of a cell: with its panels where there is a kernel, else as a picture."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from materia_nb.cast import Cast
    from materia_nb.workbench import Workbench

_MODULE, _NAME = "materia_nb.cast", "Cast"


def show_casts_live(shell: InteractiveShell, workbench: Callable[[], Workbench]) -> None:
    """Let the shell show casts with their panels; one that is forked there becomes the workbench's current one."""

    def live(cast: Cast) -> dict[str, Any]:
        if getattr(shell, "kernel", None) is not None and cast.writable:
            try:
                from materia_nb.widgets import bench

                return bench.show(cast, lambda made: workbench().take(made))._repr_mimebundle_()
            except Exception:
                logging.getLogger("materia_nb.magics").warning("no panels; a picture is shown", exc_info=True)
        return cast._repr_mimebundle_()

    _formatter(shell).for_type_by_name(_MODULE, _NAME, live)


def show_casts_still(shell: InteractiveShell) -> None:
    """Take that back."""
    from materia_nb.cast import Cast

    _formatter(shell).pop(Cast, None)
    _formatter(shell).pop(f"{_MODULE}.{_NAME}", None)


def _formatter(shell: InteractiveShell) -> Any:
    formatter: Any = shell.display_formatter
    return formatter.mimebundle_formatter
