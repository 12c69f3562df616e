"""The steps of a cast, kept as they happen and rebuilt the same way from a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from materia_nb.engine.decision import Decision
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.said import Message, ToolCall
from materia_nb.engine.state import CastState, Mode, Usage
from materia_nb.engine.step import Step
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One output of a visit: what was asked, what came, where it is kept, what was made of it.

    ``prompt`` and ``reading`` are None for a utility and for a draft respectively; ``message``
    is what the person said when that was asked in place of the prompt (refinement). A
    ``correction`` is what a person put in place of the output of a completed step. ``calls``
    are the tools that the agent used before it answered, ``meta`` what it gave beside its answer, and
    ``spent`` what was used up before it: by tries that failed, and until leave was given.
    """

    mode: Mode | Literal["correction"]
    prompt: Prompt | None
    text: str
    artifact: str | None
    reading: Reading | None
    usage: Usage | None
    message: str | None = None
    calls: tuple[ToolCall, ...] = ()
    meta: Mapping[str, JSON] = field(default_factory=dict)
    spent: tuple[Usage, ...] = ()


@dataclass(slots=True)
class StepRecord:
    """One visit, from entering the socket to the decision that followed.

    ``before`` is the state when it was entered and ``after`` the latest one; while
    the socket still owes an output, ``decision`` is None or that of its last turn.
    ``entry`` tells which empty loops were passed over on the way in. ``branch`` counts how
    often the cast had been taken back before, since visits are then numbered anew. ``missing``
    are the files that the last output says it made and that were not on the disk.

    ``calls`` are all tool calls of the visit, also those of turns that gave no output, ``notes``
    what its agent told a person, and ``spent`` what turns without an output cost. ``left`` is how many
    of ``turns`` the last recast left behind, ``tries`` how often the socket was run in this visit: 1 and every recast,
    revival and turn that was sent again.
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
    branch: int = 0
    missing: tuple[str, ...] = ()
    calls: list[ToolCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent: list[Usage] = field(default_factory=list)
    left: int = 0
    tries: int = 1

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


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person changed after so many steps: a JSON Patch and its inverse, and the states around it."""

    ts: int
    step: int
    patch: tuple[Mapping[str, JSON], ...]
    inverse: tuple[Mapping[str, JSON], ...]
    before: CastState
    after: CastState


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
        self.message: str | None = None
        self.said: list[Message] = []
        self.calls: tuple[ToolCall, ...] = ()
        self.asking: tuple[ToolCall, ...] = ()
        self.noted_before = 0
        self._spent: tuple[Usage, ...] = ()
        self.allowed: frozenset[str] = frozenset()
        self.edits: list[Edit] = []
        self._asked_before: list[Prompt | None] = []
        self.abandoned: list[Sequence[StepRecord]] = []
        self.kept: list[JSON] = []

    @property
    def asked(self) -> str:
        """The text that the waiting agent is to answer: the person's last message, else the prompt."""
        if self.message is not None:
            return self.message
        return self.prompt.text if self.prompt else ""

    def entered(self, step: Step, ts: int) -> None:
        """Keep the outcome of entering a socket, or of coming to the end."""
        before, state = self.state, step.state
        self.state = state
        self._forget()
        self.noted_before = 0
        self._spent = ()
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
                    branch=len(self.abandoned),
                )
            )
        else:
            self.ending = step.decision

    def answered(
        self,
        step: Step,
        text: str,
        artifact: str | None,
        usage: Usage | None,
        ts: int,
        meta: Mapping[str, JSON] | None = None,
    ) -> None:
        """Keep an output and what followed from it."""
        record = self.steps[-1]
        turn = TurnRecord(
            self.mode_asked,
            self.prompt,
            text,
            artifact,
            step.reading,
            usage,
            self.message,
            self.calls,
            meta or {},
            self._spent,
        )
        record.turns.append(turn)
        record.missing = ()
        if self.prompt is not None:
            self.said += _said(turn)
        self.message = None
        self.calls = self.asking = ()
        self._spent = ()
        self.moved(step, ts)

    def called(self, call: ToolCall) -> None:
        """Keep a tool call of the turn that waits; it no longer asks for leave, if it did.

        One that changes something is kept when it begins, and its result takes that one's place.
        """
        begun = next((one for one in self.calls if one.id == call.id), None)
        kept = self.steps[-1].calls
        if begun is not None:
            self.calls = tuple(call if one is begun else one for one in self.calls)
            kept[:] = [call if one is begun else one for one in kept]
        else:
            self.calls += (call,)
            kept.append(call)
        self.asking = tuple(one for one in self.asking if one.id != call.id)

    def asks(self, calls: Sequence[ToolCall]) -> None:
        """Keep which tool calls the waiting turn cannot go on without, or what was decided about them."""
        self.asking = tuple(calls)

    def noted(self, text: str) -> None:
        """Keep what an agent told a person while it answered."""
        self.steps[-1].notes.append(text)

    def resent(self, step: Step, ts: int) -> None:
        """Keep that a turn which was cut short is asked once more; what it noted then is of the past."""
        self.noted_before = len(self.steps[-1].notes)
        self.steps[-1].tries += 1
        self.moved(step, ts)

    def spent(self, usage: Usage, state: CastState) -> None:
        """Keep what a turn without an output cost."""
        self._spent += (usage,)
        self.steps[-1].spent.append(usage)
        self.state = state
        self.steps[-1].after = state

    def lacking(self, missing: Sequence[str]) -> None:
        """Keep which files the last output says it made although they are not there."""
        self.steps[-1].missing = tuple(missing)

    def remembered(self, entry: JSON) -> None:
        """Keep that a person kept what an agent suggested to remember."""
        self.kept.append(entry)

    def refined(self, message: str) -> None:
        """Keep what the person wants changed; it is asked in place of the prompt."""
        self.message = message
        self.calls = self.asking = ()

    def reworded(self, prompt: Prompt) -> None:
        """Keep another wording of the prompt that waits; the record of the step shows what is asked."""
        record = self.steps[-1]
        if record.prompt is self.prompt:
            record.prompt = prompt
        self.prompt = prompt

    def rebudgeted(self, state: CastState) -> None:
        """Keep another budget."""
        self.state = state

    def edited(self, edit: Edit, prompt: Prompt | None) -> None:
        """Keep what a person changed; ``prompt`` is what a waiting agent is asked now, if that changed."""
        self.edits.append(edit)
        self._asked_before.append(self.prompt)
        self.state = edit.after
        if prompt is not None:
            self.reworded(prompt)

    def undone(self) -> None:
        """Keep that the last edit was taken back."""
        self.state = self.edits.pop().before
        prompt = self._asked_before.pop()
        if prompt is not None and prompt is not self.prompt:
            self.reworded(prompt)

    def recommitted(self, step: Step, text: str, artifact: str | None, ts: int) -> None:
        """Keep a corrected output of the last step beside the original, and what followed from it."""
        record = self.steps[-1]
        record.turns.append(TurnRecord("correction", None, text, artifact, step.reading, None, None))
        record.missing = ()
        self.ending = None
        self.moved(step, ts)

    def back(self, state: CastState, number: int) -> None:
        """Go back behind a step; the steps after it become an abandoned branch."""
        if self.steps[number:]:
            self.abandoned.append(self.steps[number:])
        self.steps = self.steps[:number]
        self.edits = [edit for edit in self.edits if edit.step < number]
        del self._asked_before[len(self.edits) :]
        self.state, self.prompt, self.ending = state, None, None
        self._forget()

    def again(self, step: Step, ts: int) -> None:
        """Keep a recast or a revival: a prompt that tells the whole task begins the visit's conversation anew."""
        if step.state.status != "waiting" or (step.prompt is not None and step.prompt.begins):
            self._forget()
        self.noted_before = len(self.steps[-1].notes) if self.steps else 0
        if self.steps and step.state.status == "waiting":
            self.steps[-1].tries += 1
        if any(event.type == "cast_recast" for event in step.events):
            self.steps[-1].left = len(self.steps[-1].turns)
        self.moved(step, ts)

    def _forget(self) -> None:
        self.message = None
        self.said = []
        self.calls = self.asking = ()

    def moved(self, step: Step, ts: int) -> None:
        """Keep a transition that is no output: a failure, an abort, a request for the final result."""
        self.state = step.state
        if self.steps:
            record = self.steps[-1]
            record.after = step.state
            record.decision = step.decision or record.decision
            record.ended = None if step.state.status == "waiting" else ts
        if step.prompt is not None:
            self.prompt = step.prompt
            self.message = None
            self.calls = self.asking = ()
        if step.state.status == "waiting" and step.state.at is not None:
            self.mode_asked = step.state.at.mode


def history_to(start: CastState, steps: Sequence[StepRecord], number: int) -> History:
    """Return the history up to a step, as it was right after it."""
    history = History(start)
    history.steps = list(steps[:number])
    if number:
        last = history.steps[-1]
        history.state, history.prompt = last.after, last.prompt
        history.said = [said for turn in last.turns if turn.prompt is not None for said in _said(turn)]
    return history


def _said(turn: TurnRecord) -> tuple[Message, Message]:
    asked = turn.message if turn.message is not None else turn.prompt.text if turn.prompt else ""
    return Message("user", asked), Message("assistant", turn.text, turn.calls)
