"""The steps of a cast, kept as they happen and rebuilt the same way from a journal."""

from __future__ import annotations

from dataclasses import dataclass, field

from materia_nb.engine.decision import Decision
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.state import CastState, Mode, Usage
from materia_nb.engine.step import Step
from materia_nb.handoff.protocol import Reading


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One output of a visit: what was asked, what came, where it is kept, what was made of it.

    ``prompt`` and ``reading`` are None for a utility and for a draft respectively.
    """

    mode: Mode
    prompt: Prompt | None
    text: str
    artifact: str | None
    reading: Reading | None
    usage: Usage | None


@dataclass(slots=True)
class StepRecord:
    """One visit, from entering the socket to the decision that followed.

    ``before`` is the state when it was entered and ``after`` the latest one; while
    the socket still owes an output, ``decision`` is None or that of its last turn.
    ``entry`` tells which empty loops were passed over on the way in.
    """

    number: int
    socket: str
    visit: int
    item_key: str | None
    item_label: str | None
    started: int
    before: CastState
    after: CastState
    prompt: Prompt | None
    entry: Decision | None = None
    decision: Decision | None = None
    turns: list[TurnRecord] = field(default_factory=list)
    ended: int | None = None

    @property
    def output(self) -> str | None:
        """The text of the last turn, or None when none has come."""
        return self.turns[-1].text if self.turns else None

    @property
    def reading(self) -> Reading | None:
        """What was made of the last turn."""
        return self.turns[-1].reading if self.turns else None

    @property
    def artifact(self) -> str | None:
        """Where the output of the last turn is kept."""
        return self.turns[-1].artifact if self.turns else None


class History:
    """Collects the steps of one cast. The only thing about a cast that is changed in place."""

    def __init__(self, start: CastState) -> None:
        """Begin with the state before the first step."""
        self.start = start
        self.state = start
        self.steps: list[StepRecord] = []
        self.prompt: Prompt | None = None
        self.ending: Decision | None = None
        self.mode_asked: Mode = "work"

    def entered(self, step: Step, ts: int) -> None:
        """Keep the outcome of entering a socket, or of coming to the end."""
        before, state = self.state, step.state
        self.state = state
        visit = state.at
        if state.status == "waiting" and visit is not None:
            item = visit.item
            self.prompt = step.prompt
            self.mode_asked = visit.mode
            self.steps.append(
                StepRecord(
                    visit.step,
                    visit.socket,
                    visit.visit,
                    item.key if item else None,
                    item.label if item else None,
                    ts,
                    before,
                    state,
                    step.prompt,
                    step.decision,
                )
            )
        else:
            self.ending = step.decision

    def answered(self, step: Step, text: str, artifact: str | None, usage: Usage | None, ts: int) -> None:
        """Keep an output and what followed from it."""
        record = self.steps[-1]
        record.turns.append(TurnRecord(self.mode_asked, self.prompt, text, artifact, step.reading, usage))
        self.moved(step, ts)

    def moved(self, step: Step, ts: int) -> None:
        """Keep a transition that is no output: a failure, a request for the final result, recast, revive."""
        self.state = step.state
        if self.steps:
            record = self.steps[-1]
            record.after = step.state
            record.decision = step.decision or record.decision
            record.ended = None if step.state.status == "waiting" else ts
        if step.prompt is not None:
            self.prompt = step.prompt
        if step.state.status == "waiting" and step.state.at is not None:
            self.mode_asked = step.state.at.mode
