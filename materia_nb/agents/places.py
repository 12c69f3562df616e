"""Where in a person's code something was raised, in words that they know: a cell rather than a temporary file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

AGENT_CELL: Final = "<agent "
"""How the name of the code begins that a ``%%materia agent`` cell is compiled to."""

CELL_NAMES: Final[list[Callable[[str], str | None]]] = []
"""What gives the name of a notebook's cell for the file name of its code; the magics put one in."""


def place(filename: str, line: int) -> str:
    """Say where a line of code is; the first line of a cell is 1."""
    if filename.startswith(AGENT_CELL):
        return (
            f"line {line} of the cell %%materia agent {filename.removeprefix(AGENT_CELL).removesuffix('>')}"
        )
    for name in CELL_NAMES:
        if (cell := name(filename)) is not None:
            return f"line {line} of cell {cell}"
    return f"{filename}:{line}"
