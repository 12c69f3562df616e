"""The error for an answer that a person gave and that breaks the rules: nothing of it is recorded (R42)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Issue

_TOLD: Final = 40


class RefusedAnswer(MateriaError):
    """An answer was not taken; ``issues`` are all the reasons, each with path, message and what to do."""

    def __init__(self, what: str, issues: Sequence[Issue], kind: str = "refused_answer") -> None:
        self.issues = tuple(issues)
        first, *others = issues
        if not others:
            super().__init__(f"{what} {first.message}", where=first.path, hint=first.fix, kind=kind)
            return
        lines = [
            what,
            *(f"  {issue.path}: {issue.message} To mend it: {issue.fix}." for issue in issues[:_TOLD]),
        ]
        if len(issues) > _TOLD:
            lines.append(f"  and {len(issues) - _TOLD} more of this sort")
        super().__init__("\n".join(lines), kind=kind)
