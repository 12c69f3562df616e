"""The states of steps that lie behind: not kept, but computed again from the outputs when somebody looks.

A cast keeps what every step was asked and answered. Its states would take as much again, and few of
them are ever looked at.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from materia_nb.engine import entering, outputs
from materia_nb.engine.entering import EntryPrompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import CastState, Usage

LONGEST: Final = 64
"""How many steps are computed again at most to come to one state: about a millisecond."""


class PastStates:
    """The states around plain steps, one behind the other: that before the first, and the output of each."""

    __slots__ = ("_artifacts", "_first", "_last", "_rules", "_start", "_texts", "_usages")

    def __init__(self, rules: Rules, start: CastState) -> None:
        """Begin with the state that the first step was entered from."""
        self._rules, self._first = rules, start.steps + 1
        self._start = self._last = start
        self._texts: list[str] = []
        self._artifacts: list[str | None] = []
        self._usages: list[Usage | None] = []

    def take(self, rules: Rules, step: StepRecord, before: CastState, after: CastState) -> bool:
        """Take a step that began where this ends, with the same rules; False when it did not."""
        count = len(self._texts)
        if before is not self._last or rules is not self._rules or count == LONGEST:
            return False
        if step.at.step != self._first + count:
            return False  # another line went on from here
        turn = step.turns[0]
        self._artifacts.append(turn.artifact)
        self._usages.append(turn.usage)
        self._texts.append(turn.text)
        self._last = after
        return True

    def before(self, number: int) -> CastState:
        """Return the state that step ``number`` was entered from."""
        return _computed(self, len(self._texts))[number - self._first]

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""
        return _computed(self, len(self._texts))[number - self._first + 1]

    def compute(self, count: int) -> tuple[CastState, ...]:
        """Compute the states around the first ``count`` steps."""
        states = [self._start]
        outcomes = zip(self._texts[:count], self._artifacts, self._usages, strict=False)
        for text, artifact, usage in outcomes:
            waiting = entering.enter(self._rules, states[-1]).state
            state = outputs.output(self._rules, waiting, text, usage).state
            states.append(state._replace(last_artifact=artifact))
        return tuple(states)


@lru_cache(maxsize=16)
def _computed(past: PastStates, count: int) -> tuple[CastState, ...]:
    return past.compute(count)


def closed(rules: Rules, session: Session) -> StepRecord | None:
    """Return the latest step as it is kept once another follows: a plain one without its states."""
    step = session.steps.latest
    if step is None or not (step.plain and step.turns and isinstance(step.states, tuple)):
        return step
    before, after = step.states
    past = session.steps.behind and session.steps.behind.states
    if not isinstance(past, PastStates) or not past.take(rules, step, before, after):
        past = PastStates(rules, before)
        past.take(rules, step, before, after)
    if isinstance(step.prompt, EntryPrompt):
        step.prompt.let_go(past)
    return step._replace(states=past)
