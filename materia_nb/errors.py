"""The one exception family: what went wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MateriaError(Exception):
    """A problem that a person can act on.

    Args:
        what: one sentence that says what is wrong.
        where: the path in a config, an output or on disk that it concerns.
        hint: what to do about it.
        kind: a stable word for programs, such as ``utility_timeout``.
    """

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, kind: str = "error"
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.kind = kind

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"  at: {self.where}")
        if self.hint:
            parts.append(f"  try: {self.hint}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """Give IPython these lines in place of a traceback (still a real error output)."""
        return [
            f"{type(self).__name__}: {line}" if i == 0 else line
            for i, line in enumerate(str(self).splitlines())
        ]


def close_match(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to ``name``, or None when nothing is near."""
    names = list(known)
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if found:
        return found[0]
    folded = {candidate.casefold(): candidate for candidate in names}
    return folded.get(name.casefold())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say what was probably meant by ``name``, or list the choices (at most ten)."""
    names = sorted(known)
    match = close_match(name, names)
    if match:
        return f"did you mean {match!r}?"
    if not names:
        return "there are none"
    shown = ", ".join(names[:10])
    return f"choose one of: {shown}" + (", ..." if len(names) > 10 else "")
