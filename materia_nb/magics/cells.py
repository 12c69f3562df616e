"""The names of a notebook's cells, for code that was defined in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from materia_nb.agents.places import CELL_NAMES

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def name_cells(shell: InteractiveShell) -> Callable[[], None]:
    """Let errors name the cells of a shell, as ``In[3]``; returns what ends that."""

    def name(filename: str) -> str | None:
        named = shell.compile.format_code_name(filename)
        return named[1] if named is not None and named[0] == "Cell" else None

    CELL_NAMES.append(name)
    return lambda: CELL_NAMES.remove(name)
