"""Answers to one turn, tried side by side: what each would do, and what a notebook shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import plain, shorten
from materia_nb.display.html import html_fold, html_join, html_lines, html_panel, html_pre, html_table
from materia_nb.display.text import table
from materia_nb.engine.state import Usage
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import compact

COLUMNS: Final = ("attempt", "agent", "wording", "valid", "satisfied", "leads to", "tokens", "cost")
_ANSWER_CHARS: Final = 160
_OPEN: Final = 6
"""Up to so many answers are shown open."""


@dataclass(frozen=True)
class Attempt:
    """One answer to the turn, and what would come of it.

    Attributes:
        number: which one, from 1.
        agent: who was asked.
        wording: which of the other wordings was asked, from 1; 0 for the prompt as it is.
        text: the answer, None when there is none.
        valid: whether it would be taken.
        issues: why it would be refused.
        satisfied: what it says of that.
        to: the socket that it would lead to, ``end``, or None where it leads nowhere yet.
        leads: the same in words, with the item, or what else would happen.
        usage: tokens and cost of it.
        turns: how many turns it took; one that hands over in a turn of its own takes two.
        calls: how many tools it used.
        seconds: how long it took.
        error: why there is no answer.
        prompt: what was asked.
    """

    number: int
    agent: str
    wording: int
    text: str | None
    valid: bool
    issues: tuple[Issue, ...]
    satisfied: bool | None
    to: str | None
    leads: str
    usage: Usage
    turns: int
    calls: int
    seconds: float
    error: str | None
    prompt: str


def spent_in_all(attempts: Sequence[Attempt]) -> Usage:
    """Tokens and cost of all together."""
    total = Usage()
    for one in attempts:
        total = total.plus(one.usage)
    return total


class AttemptsView(Shown):
    """Attempts as a table, and in a notebook each answer in full."""

    def __init__(self, socket: str, attempts: Sequence[Attempt]) -> None:
        self._socket, self._attempts = socket, attempts

    def __repr__(self) -> str:
        rows = [_row(one) for one in self._attempts]
        below = [[shorten(one.text, _ANSWER_CHARS)] if one.text else [] for one in self._attempts]
        return plain("\n".join([self._line(), table(rows, COLUMNS, below=below), *self._issues()]))

    def _line(self) -> str:
        asked = self._attempts
        taken = sum(one.valid for one in asked)
        return f"{self._socket}, asked {_times(len(asked))}: {taken} would be taken, {_spent(spent_in_all(asked))}"

    def _issues(self) -> list[str]:
        told = []
        for one in self._attempts:
            told += [f"{one.number} is refused: {issue.path}: {issue.message}" for issue in one.issues[:3]]
            told += [f"{one.number} has no answer: {one.error}"] if one.error else []
        return told

    def _show(self) -> dict[str, Any]:
        rows = [(*_row(one), f"{one.seconds:.1f} s") for one in self._attempts]
        parts = [
            html_lines([self._line()]),
            html_table((*COLUMNS, "took"), rows),
            html_lines(self._issues()),
            *(
                html_fold(
                    f"answer {one.number}, of {one.agent}", html_pre(one.text), opened=len(rows) <= _OPEN
                )
                for one in self._attempts
                if one.text is not None
            ),
        ]
        return bundle(repr(self), html=html_panel("attempts", html_join(parts)))


def _row(one: Attempt) -> tuple[str, ...]:
    return (
        str(one.number),
        one.agent,
        str(one.wording) if one.wording else "as it is",
        "no answer" if one.text is None else "yes" if one.valid else "refused",
        "" if one.satisfied is None else compact(one.satisfied),
        one.leads,
        str(one.usage.tokens),
        f"{one.usage.cost:.4f} USD" if one.usage.cost else "",
    )


def _spent(usage: Usage) -> str:
    cost = f", {usage.cost:.4f} USD" if usage.cost else ""
    return f"{usage.tokens:,} tokens{cost} in all"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
