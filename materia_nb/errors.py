"""The one exception family: what went wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from materia_nb.outgoing import outgoing_line

_COMPARED: Final = 200  # characters of a name: comparing takes the square of it
_SHORT: Final = 6
"""Words of up to so many letters are soon alike by chance, as pause and use are, or edit and predict."""

_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[a-z0-9]+")


class MateriaError(Exception):
    """A problem that a person can act on.

    Args:
        what: one sentence that says what is wrong.
        where: the path in a config, an output or on disk that it concerns.
        hint: what to do about it.
        kind: a stable word for programs, such as ``utility_timeout``.
        more: what is listed below ``what``, a line each.

    Its text (``str``) has no keys in it and nothing that a terminal acts upon, and every line of it is one of
    these parts: a name from a loadout cannot add a line, whatever it holds.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        kind: str = "error",
        more: Sequence[str] = (),
    ) -> None:
        super().__init__(what)
        self.what = "\n".join([what, *more])
        self.where = where
        self.hint = hint
        self.kind = kind
        self._lines = (what, *more)

    def __str__(self) -> str:
        parts = [*self._lines]
        if self.where:
            parts.append(f"  at: {self.where}")
        if self.hint:
            first, *listed = self.hint.split("\n")
            parts += [f"  try: {first}", *(f"    {line.strip()}" for line in listed)]
        return "\n".join(map(outgoing_line, parts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _render_traceback_(self) -> list[str]:
        """Give IPython these lines in place of a traceback (still a real error output)."""
        return [
            f"{type(self).__name__}: {line}" if i == 0 else line
            for i, line in enumerate(str(self).splitlines())
        ]


def named_error(error: BaseException) -> str:
    """Say which error it is, and what it says if it says anything."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def counted(count: int, one: str, more: str | None = None) -> str:
    """Say how many of something: ``1 time``, ``3 times``; ``more`` is the plural where it is not ``one`` with an s."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"


def close_match(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to ``name``, or None when nothing is near.

    One with another number is near only with a digit too many or too few: whoever wrote Socket-77 did not mean
    Socket-5.
    """
    names, name = list(known), name[:_COMPARED]
    for found in difflib.get_close_matches(name, names, n=3, cutoff=0.6):
        a, b = name.casefold(), found.casefold()
        if _NUMBER.findall(a) != _NUMBER.findall(b):
            if len(a) != len(b) and _a_slip(a, b):
                return found
            continue
        long = min(len(a), len(b)) > _SHORT or (max(len(a), len(b)) > _SHORT and a[0] == b[0])
        if long or _a_slip(a, b):
            return found
    folded = {candidate.casefold(): candidate for candidate in names}
    # Last, a name that says more than the known one: file_path for path.
    words = {folded[word] for word in _WORD.findall(name.casefold()) if word in folded}
    return folded.get(name.casefold()) or (words.pop() if len(words) == 1 else None)


def _a_slip(name: str, known: str) -> bool:
    """Whether one word is the other with a letter too many, too few or another one, or two that changed places."""
    same = alike(name, known)
    rest, other = name[same:], known[same:]
    end = alike(rest[::-1], other[::-1])
    rest, other = rest[: len(rest) - end], other[: len(other) - end]
    return max(len(rest), len(other)) <= 1 or (len(rest) == 2 and rest == other[::-1])


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many letters, or lines, two texts have in common from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say what was probably meant by ``name``, or list the choices (at most ten)."""
    names = sorted(known)
    match = close_match(name, names)
    if match:
        return f"did you mean {match!r}?"
    if not names:
        return "there are none"
    shown = ", ".join(map(outgoing_line, names[:10]))
    return f"choose one of: {shown}" + (", ..." if len(names) > 10 else "")


def needs_one_of(name: str, known: Collection[str], what: str, kind: str) -> None:
    """Raise MateriaError, with what was probably meant as its hint, unless a name is one of those that are known."""
    if name not in known:
        raise MateriaError(what, hint=did_you_mean(name, known), kind=kind)
