"""The states of steps that lie behind: not kept, but computed again from the outputs when somebody looks.

A cast keeps what every step was asked and answered. Its states would take as much again, and few of
them are ever looked at.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from materia_nb.engine import entering, outputs
from materia_nb.engine.entering import EntryPrompt
from materia_nb.engine.events import Transition
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, TurnRecord
from materia_nb.engine.state import CastState, Usage

LONGEST: Final = 64
"""How many steps are computed again at most to come to one state: about a millisecond."""


class PastStates:
    """The states around plain steps, one behind the other: that before the first, and the output of each."""

    __slots__ = ("_first", "_latest", "_outputs", "_rules", "_start")

    def __init__(self, rules: Rules, start: CastState) -> None:
        """Begin with the state that the first step was entered from."""
        self._rules, self._start = rules, start
        self._first = start.steps + 1
        self._latest = (start, start)
        self._outputs: dict[int, tuple[str, str | None, Usage | None]] = {}

    def take(self, rules: Rules, turn: TurnRecord, before: CastState, after: CastState) -> bool:
        """Take a step that began where this ends, with the same rules; False when it did not."""
        number = before.steps + 1
        if before is not self._latest[1] or rules is not self._rules or number - self._first == LONGEST:
            return False
        output = (turn.text, turn.artifact, turn.usage)
        if self._outputs.setdefault(number, output) is not output:
            return False  # another line went on from here, in another thread perhaps
        self._latest = (before, after)
        return True

    def before(self, number: int) -> CastState:
        """Return the state that step ``number`` was entered from."""
        return self._around(number)[0]

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""
        return self._around(number)[1]

    def _around(self, number: int) -> tuple[CastState, CastState]:
        latest, place = self._latest, number - self._first
        if latest[1].steps == number:
            return latest
        states = _computed(self, len(self._outputs))
        return states[place], states[place + 1]

    def compute(self, count: int) -> tuple[CastState, ...]:
        """Compute the states around the first ``count`` steps."""
        states = [self._start]
        for text, artifact, usage in list(self._outputs.values())[:count]:
            waiting = entering.enter(self._rules, states[-1]).state
            states.append(outputs.output(self._rules, waiting, text, usage, artifact=artifact).state)
        return tuple(states)


@lru_cache(maxsize=16)
def _computed(past: PastStates, count: int) -> tuple[CastState, ...]:
    return past.compute(count)


def follows(rules: Rules, session: Session, step: Transition, turn: TurnRecord) -> PastStates | None:
    """Return what finds the states of the latest step again, if they follow from the one before and this turn alone.

    They do where it was entered, asked and answered once and went on; neither a person nor a tool had a hand in it.
    """
    record, after = session.steps.latest, step.state
    if record is None or not record.plain or turn.mode != "work" or step.decision is None:
        return None
    states = record.states
    if after.status != "ready" or (after.at and after.at.changed) or not isinstance(states, tuple):
        return None
    before, latest = states
    if latest is not session.state:
        return None  # somebody changed it while the visit waited
    behind = session.steps.behind
    past = behind.states if behind else None
    if not isinstance(past, PastStates) or not past.take(rules, turn, before, after):
        past = PastStates(rules, before)
        past.take(rules, turn, before, after)
    if isinstance(record.prompt, EntryPrompt):
        record.prompt.let_go(past)
    return past
