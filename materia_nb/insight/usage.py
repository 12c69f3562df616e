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
"""The keys by which usage can be summed up."""


class UsageRow(NamedTuple):
    """The usage of one socket, materia or item, or of a combination of these.

    Attributes:
        of: its names, in the order that was asked for; empty for steps outside items.
        visits: the number of visits.
        turns: the number of agent turns, including repairs.
        calls: the number of tool calls of its agents.
        usage: tokens and cost, also of turns without an answer.
        ms: the work time of its agents and processes in milliseconds, None if it is unknown for all visits.
        untimed: the number of visits whose work time is unknown and missing in ``ms`` (R56).
        waited: the time in milliseconds during which nothing ran, such as waiting for a person.
        left: the part of ``usage`` of steps that going back discarded.
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
        """Add another row."""
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


def _step_row(step: StepRecord, *, left: bool) -> UsageRow:
    """Return the usage of one step; ``left`` is True if going back discarded it."""
    usage, time = step_usage(step), step_time(step)
    turns = sum(turn.prompt is not None and turn.mode != "correction" for turn in step.turns)
    discarded = usage if left else Usage()
    return UsageRow(
        (), 1, turns, len(step.calls), usage, time.work, discarded, time.work is None, time.waited or 0
    )


def usage_by(rules: Rules, session: Session, by: Sequence[str] = ("socket",)) -> list[UsageRow]:
    """Sum up the usage of a cast, including discarded steps, in the order of the first visits.

    Raises:
        MateriaError: one of ``by`` is not socket, materia or item (``unknown_group``).
    """
    for name in by:
        needs_one_of(name, _GROUPS, f"Usage cannot be summed up by {name!r}.", "unknown_group")
    rows: dict[tuple[str, ...], UsageRow] = {}
    for step, left in every_step(session):
        names = {
            "socket": step.socket,
            "materia": rules.sockets[step.socket].socket.materia.id,
            "item": f"{step.item_key} {step.item_label or ''}".strip() if step.item_key else "",
        }
        key = tuple(names[name] for name in by)
        rows[key] = rows.get(key, UsageRow(key)).plus(_step_row(step, left=left))
    return list(rows.values())


# -- one step --------------------------------------------------------------------------------


def step_usage(step: StepRecord) -> Usage:
    """Sum up the usage of a step: that of its turns, and that of attempts without an answer."""
    return reduce(Usage.plus, (*step.spent, *(turn.usage for turn in step.turns if turn.usage)), Usage())


class StepTime(NamedTuple):
    """The times of a step in milliseconds; None if unknown (R56).

    Attributes:
        work: the time during which its agent or process worked, in all attempts; 0 if only a person answered.
        waited: the time during which nothing ran, such as waiting for a person. None while the step is not over.
        total: the time from entering the socket to the end of the step; None before that.
    """

    work: int | None
    waited: int | None
    total: int | None

    @property
    def words(self) -> str:
        """Such as ``0.20 s + 46 s waited``; empty before the step is over."""
        if self.total is None:
            return ""
        if self.work is None:
            return f"at most {format_seconds(self.total)}"
        waited = f" + {format_seconds(self.waited)} waited" if self.waited else ""
        return f"{format_seconds(self.work)}{waited}"


_MIN_WAIT_MS: Final = 500
"""Shorter waits are not counted: an answer is written, and the next step begins."""


def step_time(step: StepRecord) -> StepTime:
    """Return the times of a step. All views of time are made from this."""
    if step.ended is None:
        return StepTime(step.worked, None, None)
    total = max(0, step.ended - step.started)
    if step.worked is None:
        return StepTime(None, None, total)
    waited = total - step.worked
    return StepTime(step.worked, waited if waited >= _MIN_WAIT_MS else 0, total)


def work_time(steps: Iterable[StepRecord]) -> tuple[int | None, int]:
    """Sum up the work time of steps in milliseconds; also return the number of steps for which it is unknown (R56)."""
    times = [step.worked for step in steps]
    known = [time for time in times if time is not None]
    return sum(known) if known or not times else None, len(times) - len(known)


def format_work_time(milliseconds: int | None, unknown: int = 0) -> str:
    """Format the result of :func:`work_time`."""
    if milliseconds is None:
        return "unknown"
    return format_seconds(milliseconds) + (f" + {unknown} unknown" if unknown else "")


def format_seconds(milliseconds: int) -> str:
    """Format a time with three digits, so that stored outputs have one length."""
    seconds = milliseconds / 1000
    digits = next((digits for digits, limit in ((2, 9.995), (1, 99.95)) if seconds < limit), 0)
    return f"{seconds:.{digits}f} s"
