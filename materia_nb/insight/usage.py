"""Time, tokens and cost: of one step, of several, and summed up by socket, materia or item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final, NamedTuple

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, every_step
from materia_nb.engine.state import Usage, known_sum
from materia_nb.errors import needs_one_of

_GROUPS: Final = ("socket", "materia", "item")
"""What can be added up by."""


class UsageRow(NamedTuple):
    """What went into one socket, materia or item, or into a combination of these.

    Attributes:
        of: its names, in the order that was asked for; empty for what belongs to no item.
        visits: how often it was visited.
        turns: how often an agent was asked, repairs among it.
        calls: how many tools its agents used.
        usage: tokens and cost, also of turns that gave no answer.
        ms: milliseconds that its agents and processes were at work, None where that is unknown of all visits.
        untimed: how many visits there are of which it is unknown: they are not in ``ms`` (R56).
        waited: milliseconds that it stood still, as for a person.
        left: how much of ``usage`` went into steps that going back left behind.
    """

    of: tuple[str, ...]
    visits: int = 0
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    ms: int | None = 0
    left: Usage = Usage()
    untimed: int = 0
    waited: int = 0

    def plus(self, other: UsageRow) -> UsageRow:
        """Add what went into something else."""
        return UsageRow(
            self.of,
            self.visits + other.visits,
            self.turns + other.turns,
            self.calls + other.calls,
            self.usage.plus(other.usage),
            known_sum(self.ms, other.ms),
            self.left.plus(other.left),
            self.untimed + other.untimed,
            self.waited + other.waited,
        )


def _spent_in(step: StepRecord, *, left: bool) -> UsageRow:
    """What went into one step; ``left`` is whether going back left it behind."""
    usage, time = step_usage(step), step_time(step)
    turns = sum(turn.prompt is not None and turn.mode != "correction" for turn in step.turns)
    gone = usage if left else Usage()
    return UsageRow(
        (), 1, turns, len(step.calls), usage, time.work, gone, time.work is None, time.waited or 0
    )


def usage_by(rules: Rules, session: Session, by: Sequence[str] = ("socket",)) -> list[UsageRow]:
    """Add up what a cast took, steps that were left behind included, in the order in which things came first.

    Raises:
        MateriaError: one of ``by`` is none of socket, materia and item (``unknown_group``).
    """
    for name in by:
        needs_one_of(name, _GROUPS, f"Nothing is added up by {name!r}.", "unknown_group")
    found: dict[tuple[str, ...], UsageRow] = {}
    for step, left in every_step(session):
        named = {
            "socket": step.socket,
            "materia": rules.sockets[step.socket].socket.materia.id,
            "item": f"{step.item_key} {step.item_label or ''}".strip() if step.item_key else "",
        }
        of = tuple(named[name] for name in by)
        found[of] = found.get(of, UsageRow(of)).plus(_spent_in(step, left=left))
    return list(found.values())


# -- steps


def step_usage(step: StepRecord) -> Usage:
    """Add up what a step cost: its turns, and what ``spent`` has of tries without an answer, whose turn has it as well."""
    return reduce(Usage.plus, (*step.spent, *(turn.usage for turn in step.turns if turn.usage)), Usage())


class StepTime(NamedTuple):
    """How long a step was worked on, in milliseconds, and how long not; None is what is unknown (R56).

    Attributes:
        work: its agent or process was at work, in all tries; 0 where only a person answered.
        waited: it stood still: a person was awaited, after a failure too. None while the step is not over.
        whole: from entering the socket to its end; None before that.
    """

    work: int | None
    waited: int | None
    whole: int | None

    @property
    def words(self) -> str:
        """Such as ``0.20 s + 46 s waited``; empty before it is over."""
        if self.whole is None:
            return ""
        if self.work is None:
            return f"at most {format_seconds(self.whole)}"
        waited = f" + {format_seconds(self.waited)} waited" if self.waited else ""
        return f"{format_seconds(self.work)}{waited}"


_STANDS_STILL_MS: Final = 500
"""What is shorter is not waiting: an answer is written, and the next step begins."""


def step_time(step: StepRecord) -> StepTime:
    """Say how long a step was worked on, and how long it waited. All that tells of time is made from this."""
    if step.ended is None:
        return StepTime(step.worked, None, None)
    whole = max(0, step.ended - step.started)
    if step.worked is None:
        return StepTime(None, None, whole)
    waited = whole - step.worked
    return StepTime(step.worked, waited if waited >= _STANDS_STILL_MS else 0, whole)


def work_time(steps: Iterable[StepRecord]) -> tuple[int | None, int]:
    """Add up the milliseconds that steps were worked on; beside it how many there are of which that is unknown (R56)."""
    times = [step.worked for step in steps]
    known = [one for one in times if one is not None]
    return sum(known) if known or not times else None, len(times) - len(known)


def format_work_time(milliseconds: int | None, unknown: int = 0) -> str:
    """Write what :func:`work_time` adds up."""
    if milliseconds is None:
        return "unknown"
    return format_seconds(milliseconds) + (f" + {unknown} unknown" if unknown else "")


def format_seconds(milliseconds: int) -> str:
    """Write a time, as long for a short one as for others: notebooks are compared."""
    seconds = milliseconds / 1000
    digits = next((digits for digits, most in ((2, 9.995), (1, 99.95)) if seconds < most), 0)
    return f"{seconds:.{digits}f} s"
