"""Lines of ``%materia`` that end in a question mark, which IPython takes for a request for help otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

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
