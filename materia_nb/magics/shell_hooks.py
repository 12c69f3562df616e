"""What IPython is told beside the magics: names of cells, and lines that end in a question mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase

from materia_nb.agents.interface import CELL_NAMES

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def name_cells(shell: InteractiveShell) -> Callable[[], None]:
    """Let errors name the cells of a shell, as ``In[3]``; returns what ends that."""

    def name(filename: str) -> str | None:
        named = shell.compile.format_code_name(filename)
        return named[1] if named is not None and named[0] == "Cell" else None

    CELL_NAMES.append(name)
    return lambda: CELL_NAMES.remove(name)


_BEGINS: Final = "%materia "


class QuestionLine(TokenTransformBase):
    """Gives such a line, or ``x = %materia ...``, to the magic; ``%materia?`` alone stays IPython's."""

    priority = 0  # before IPython's help, which has 5

    def __init__(self, start: tuple[int, int], magic: Any) -> None:
        super().__init__(start)
        self._magic = magic

    @classmethod
    def find(cls, tokens_by_line: Any) -> QuestionLine | None:
        """Find the first such line."""
        for line in tokens_by_line:
            if len(line) < 3 or line[-2].string != "?":
                continue
            magic: Any = EscapedCommand.find([line]) or MagicAssign.find([line])
            if magic is None:
                continue
            first = next((one for one in line if one.start[0] - 1 == magic.start_line), None)
            if first is not None and first.line[magic.start_col :].startswith(_BEGINS):
                return cls(next(one.start for one in line if one.string.strip()), magic)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Write the line as the call that it stands for."""
        done: list[str] = self._magic.transform(lines)
        return done


def take_questions(shell: InteractiveShell) -> None:
    """Let lines of ``%materia`` end in a question mark."""
    leave_questions(shell)
    shell.input_transformer_manager.token_transformers.append(QuestionLine)


def leave_questions(shell: InteractiveShell) -> None:
    """Take that back."""
    kept = shell.input_transformer_manager.token_transformers
    kept[:] = [one for one in kept if one.__name__ != QuestionLine.__name__]
