"""Up to which step a recorded cast is as it was written: by the links of its journal and the digests of long outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from materia_nb.errors import MateriaError, counted
from materia_nb.store.files import to_bytes
from materia_nb.store.journal import Contents, Line, read_journal
from materia_nb.store.rundir import RunDir, written_mark

CUT_SHORT: Final = (
    "The journal lacks its end: the line is gone, or another, that was the last one when the cast paused "
    "(manifest.json names it)."
)
_NO_LINKS: Final = (
    "The journal carries no links (another engine wrote it), so no change of it can be noticed."
)


@dataclass(frozen=True, slots=True, repr=False)
class Verified:
    """What a journal vouches for. It shows itself as text.

    Attributes:
        steps: how many steps are as they were written.
        lines: how many lines of the journal are.
        problems: what is not, a sentence each; empty where all is good.
        torn: whether a last line follows that a crash cut off: nothing that was finished is lost by it.
        linked: whether the journal carries links at all.
    """

    steps: int
    lines: int
    problems: tuple[str, ...]
    torn: bool
    linked: bool

    @property
    def good(self) -> bool:
        """Whether all is as it was written."""
        return not self.problems

    def __repr__(self) -> str:
        upto = f"up to step {self.steps}, {counted(self.lines, 'line')}" if self.steps else "no step"
        head = f"Good: {upto}." if self.good else f"Good only up to here: {upto}."
        torn = ["The last line is torn: a crash cut it off while it was written."] if self.torn else []
        return "\n".join([head, *self.problems, *torn, *([] if self.linked else [_NO_LINKS])])


def verify(files: RunDir) -> Verified:
    """Look through a run directory; nothing is written.

    Raises:
        MateriaError: there is no journal to read (``no_journal``).
    """
    contents = read_journal(files.journal, known=written_mark(files.path), lenient=True)
    problems, good = damages(contents), len(contents.lines) if contents.broken is None else contents.broken
    for index, line in enumerate(contents.lines):
        if index < good and (problem := _of_artifact(files, line)) is not None:
            problems.append(f"Line {index + 1}: {problem}")
            good = index
    return Verified(
        good_steps(contents.lines, good, whole=not problems),
        good,
        tuple(problems),
        bool(contents.torn),
        contents.linked,
    )


def damages(contents: Contents) -> list[str]:
    """Say which lines of a journal the links do not vouch for, and which end it lacks."""
    if contents.broken is not None:
        steps = good_steps(contents.lines, contents.broken)
        upto = f"up to step {steps}" if steps else "for no step"
        changed = f"The journal was changed: line {contents.broken + 1} is not what was written there"
        return [
            f"{changed}, or what came before it is gone. It is good {upto}; the rest may not be what happened."
        ]
    return [] if contents.reached else [CUT_SHORT]


def refuse_broken(files: RunDir, contents: Contents) -> None:
    """Raise MateriaError (``damaged_journal``) when the links do not vouch for every line."""
    if contents.broken is not None:
        raise MateriaError(
            damages(contents)[0],
            where=f"{files.journal}:{contents.broken + 1}",
            hint="restore the file from a copy, or cut it off before that line to go on from there",
            kind="damaged_journal",
        )


def good_steps(lines: Sequence[Line], count: int, *, whole: bool = False) -> int:
    """Return how many steps the first ``count`` lines tell to their end; with ``whole`` the one under way counts."""
    starts = [index for index, line in enumerate(lines[:count]) if line.type == "socket_start"]
    if not starts:
        return 0
    steps = lines[count - 1].steps
    ended = any(line.type == "socket_complete" for line in lines[starts[-1] : count])
    return (len(starts) if steps is None else steps) - (not whole and not ended)


def _of_artifact(files: RunDir, line: Line) -> str | None:
    name, digest = line.data.get("artifact"), line.data.get("sha256")
    if not isinstance(name, str) or not isinstance(digest, str):
        return None
    try:
        same = sha256(to_bytes(files.text_of(name))).hexdigest() == digest
    except MateriaError as error:
        return " ".join(str(error).split())
    return None if same else f"the output in {name} is not what was recorded: its SHA-256 is another."
