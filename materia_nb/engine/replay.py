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


class Replay:
    """Plain steps, one behind the other: the state before the first of them, and the output of each."""

    __slots__ = ("_artifacts", "_first", "_last", "_rules", "_start", "_texts", "_usages")

    def __init__(self, rules: Rules, step: StepRecord) -> None:
        """Begin with the state that ``step`` was entered from."""
        self._rules, self._first = rules, step.number
        self._start = self._last = step.before
        self._texts: list[str] = []
        self._artifacts: list[str | None] = []
        self._usages: list[Usage | None] = []

    def leads_to(self, rules: Rules, step: StepRecord) -> bool:
        """Whether ``step`` began where this ends, with the same rules, so that it can be added."""
        count = len(self._texts)
        return (
            count < LONGEST
            and step.number == self._first + count
            and step.before is self._last
            and rules is self._rules
        )

    def add(self, step: StepRecord) -> None:
        """Add a step that is plain: its states follow from its output."""
        turn = step.turns[0]
        self._artifacts.append(turn.artifact)
        self._usages.append(turn.usage)
        self._texts.append(turn.text)
        self._last = step.after

    def before(self, number: int) -> CastState:
        """Return the state that step ``number`` was entered from."""
        return self._states()[number - self._first]

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""
        return self._states()[number - self._first + 1]

    def _states(self) -> tuple[CastState, ...]:
        return _replayed(self, len(self._texts))

    def compute(self, count: int) -> tuple[CastState, ...]:
        """Compute the states around the first ``count`` steps."""
        states = [self._start]
        for text, artifact, usage in list(zip(self._texts, self._artifacts, self._usages, strict=False))[
            :count
        ]:
            waiting = entering.enter(self._rules, states[-1]).state
            state = outputs.output(self._rules, waiting, text, usage).state
            states.append(state._replace(last_artifact=artifact))
        return tuple(states)


@lru_cache(maxsize=16)
def _replayed(replay: Replay, count: int) -> tuple[CastState, ...]:
    return replay.compute(count)


def closed(rules: Rules, session: Session) -> StepRecord | None:
    """Return the latest step as it is kept once another follows: a plain one without its states."""
    steps = session.steps
    step = steps.latest
    if step is None or not (step.plain and step.turns and isinstance(step.states, tuple)):
        return step
    behind = steps[-2].states if len(steps) > 1 else None
    replay = behind if isinstance(behind, Replay) and behind.leads_to(rules, step) else Replay(rules, step)
    replay.add(step)
    if isinstance(step.prompt, EntryPrompt):
        step.prompt.replay_from(replay, step.number)
    return step._replace(states=replay)
