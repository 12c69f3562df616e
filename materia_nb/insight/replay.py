"""Replay of recorded answers in another loadout, without calling agents or running processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from materia_nb.engine import decide, entering
from materia_nb.engine import events as ev
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Event, Events
from materia_nb.engine.evolve import fold, session_at
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, StepRecord, TurnRecord, parts_of, pending_actions
from materia_nb.engine.state import Failure, Status
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.compare import (
    ComparedCast,
    Comparison,
    FirstDifference,
    differing_prompt_parts,
    number_repeats,
    step_route,
)
from materia_nb.insight.scripted_answers import sample_failure
from materia_nb.jsonvalue import equal_json

# The socket that gave an answer, and the key and label of its work item; both are empty outside a loop.
_AnswerKey: TypeAlias = tuple[str, str, str]
RecordedAnswers: TypeAlias = Mapping[tuple[_AnswerKey, int], Sequence[TurnRecord | Failure]]
"""The recorded turns of each visit, by socket, work item and visit number.

If the visit failed and an edge handled the failure, the failure follows the turns.
"""


class MissingAnswer(NamedTuple):
    """An answer that a replay needs but the recording does not contain, with the reason why the replay needs it."""

    socket: str
    visit: int
    item_key: str | None
    why: str


def replay_end(session: Session, missing_answer: MissingAnswer | None) -> str:
    """Return the end of a replay: the status of the cast, the kind of failure, or ``needs`` if an answer is missing."""
    if missing_answer is not None:
        return "needs"
    failure = session.state.failure
    return failure.kind if failure else session.state.status


@dataclass(eq=False, repr=False)
class Replay:
    """The route that the recorded answers of a cast take in another loadout, up to the first missing answer.

    A replay is true in a boolean context if it takes a different route or ends differently (:attr:`first`).

    Attributes:
        original: the recorded cast.
        replayed: the cast in the other loadout.
        needs: the missing answer, or None if the replay is complete.
        left_out: sentences about actions of a person that could not be repeated.
        events: the events of the replay, excluding its initial events.
    """

    original: ComparedCast
    replayed: ComparedCast
    needs: MissingAnswer | None
    left_out: Sequence[str] = ()
    events: Sequence[Event] = ()

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def compared(self) -> Comparison:
        """The comparison of the original cast (A) with the replay (B)."""
        return Comparison(self.original, self.replayed)

    @property
    def first(self) -> FirstDifference | None:
        """The first step with a different target, or the difference between the ends; None if the routes are equal.

        A replay that continues after the end of the original takes a different route. However, if the original cast was
        unfinished or its agent failed, a longer replay does not count as a different route.
        """
        difference = self.compared.first_where(lambda left, right: step_route(left) != step_route(right))
        state = self.original.session.state
        if difference is None or difference.aspects or self.needs is None or state.status == "complete":
            return difference
        failure = state.failure
        stopped_by_rule = failure is not None and (failure.blocked is not None or failure.allow is not None)
        return None if difference.shorter != "B" and not stopped_by_rule else difference

    @property
    def other_difference(self) -> FirstDifference | None:
        """The first difference of any kind, such as a different value in the state, or None if all steps are equal."""
        difference, elsewhere = self.compared.first, self.first
        if difference is None or not difference.aspects:
            return None
        if elsewhere is not None and elsewhere.lane == difference.lane and elsewhere.step <= difference.step:
            return None
        return difference

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits of the replay in order, each with its socket, visit number, item key and item label."""
        steps = self.replayed.session.steps
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in steps]

    @property
    def ends(self) -> str:
        """The outcome of the replay: ``complete``, the kind of failure, or ``needs`` if an answer is missing."""
        return replay_end(self.replayed.session, self.needs)

    @cached_property
    def changed_prompts(self) -> tuple[int, ...]:
        """The numbers of the replayed steps whose prompt differs from the recorded prompt.

        The agent might have answered such a prompt differently. Utilities are included if their command or parameters
        differ.
        """
        parts = parts_of(self.original.session)
        recorded = _group_by_answer_key([step for part in parts for step in part.steps])
        replayed = _group_by_answer_key(self.replayed.session.steps)
        pairs = ((step, recorded.get(key)) for key, step in replayed.items())
        return tuple(
            step.number for step, source in pairs if source is not None and self._has_changed_prompt(step, source)
        )

    def _has_changed_prompt(self, step: StepRecord, source: StepRecord) -> bool:
        casts = (self.original, self.replayed)
        before, after = (cast.rules.sockets[step.socket].socket.materia for cast in casts)
        if before.kind == "utility" or after.kind == "utility":
            return (before.command, before.script, before.params) != (after.command, after.script, after.params)
        names = self.original.name, self.replayed.name
        return before.model != after.model or bool(differing_prompt_parts(source.prompt, step.prompt, names))


def replay_answers(original: ComparedCast, rules: Rules) -> Replay:
    """Replay the recorded answers of a cast under the rules of another loadout, until an answer is missing.

    A recorded answer is used for the same socket, item and visit number for that item. The actions of a person are
    repeated: a limit is raised when the replay reaches that limit, and an edit is applied when the state equals the
    state before the original edit. A budget that the person set also applies.
    """
    session = original.session
    state = entering.begin(rules, session.start.request, session.start.knowledge, session.start.data)
    edits = list(session.edits)
    run = _SessionReplay(rules, session_at(state), edits, dict(session.state.extra))
    if session.state.budget != rules.graph.budget == original.rules.graph.budget:
        run.apply(decide.set_budget, session.state.budget)
    missing_answer = run.play(recorded_answers(session))
    left_out = tuple(f"A person's edit after step {edit.step} was not replayed." for edit in edits)
    replayed = ComparedCast(original.name, rules, run.session)
    return Replay(original, replayed, missing_answer, left_out, tuple(run.events))


def recorded_answers(session: Session) -> RecordedAnswers:
    """Return the recorded answers of all visits that were not discarded."""
    steps = [step for part in parts_of(session) for step in part.steps]
    return {key: _recorded_turns(step) for key, step in _group_by_answer_key(steps).items()}


def send_answers(
    rules: Rules, session: Session, answers: RecordedAnswers, edits: list[Edit]
) -> tuple[Session, MissingAnswer | None]:
    """Run a new session with recorded answers, and return the final session and the missing answer (or None).

    Edits that the session repeats are removed from ``edits``.
    """
    run = _SessionReplay(rules, session, edits, {})
    missing_answer = run.play(answers)
    return run.session, missing_answer


class _SessionReplay:
    """Runs a session with recorded answers. ``grants`` counts how often a person extended each limit."""

    def __init__(
        self, rules: Rules, session: Session, edits: list[Edit], grants: dict[tuple[object, ...], int]
    ) -> None:
        self.rules, self.session, self.edits, self.grants = rules, session, edits, grants
        self.events: list[Event] = []

    def status(self) -> Status:
        return self.session.state.status

    def apply(self, command: Callable[..., Events], *arguments: object) -> None:
        events = command(self.rules, self.session, *arguments, 0)
        self.session = fold(self.rules, self.session, events)
        self.events += events

    def play(self, answers: RecordedAnswers, visits: Counter[_AnswerKey] | None = None) -> MissingAnswer | None:
        """Run the session with the recorded answers, and return the first missing answer or None."""
        visits = Counter() if visits is None else visits
        while self.status() == "ready":
            self._repeat_edits()
            for name in [action.lane for action in pending_actions(self.rules, self.session) if action.lane]:
                if self.status() == "ready" and (missing_answer := _LaneReplay(self, name).play(answers, visits)):
                    return missing_answer
            if self.status() == "ready":
                self.apply(decide.enter)
            if self.status() == "ready":
                continue
            if self.status() != "waiting":
                if self._grant_again():
                    continue
                break
            self._repeat_edits()
            visit = self.session.steps[-1]
            key = _answer_key(visit)
            visits[key] += 1
            turns = answers.get((key, visits[key]))
            if reason := self._answer_visit(list(turns or ())):
                if turns is None:
                    reason = _missing_answer_reason(visit, visits[key])
                return MissingAnswer(visit.socket, visit.visit, visit.item_key, reason)
        return None

    def _answer_visit(self, turns: list[TurnRecord | Failure]) -> str:
        """Answer a visit with its recorded turns, and return the reason why the visit is incomplete, or ""."""
        while self.status() == "waiting":
            if not turns:
                return f"the agent is called for a turn ({self.session.mode}) that was not recorded"
            turn = turns.pop(0)
            if isinstance(turn, Failure):
                self.apply(decide.fail, turn, 0)
                continue
            visit = self.session.state.at
            if self.session.mode == "draft" and visit is not None and visit.drafts > 0:
                if turn.mode == "draft":
                    self.apply(decide.refine, turn.message or "")
                else:
                    self.apply(decide.finalize)
            for usage in turn.spent:
                self.apply(decide.record_in_turn, ev.TurnSpent(usage=usage))
            answer = Answer(turn.text, turn.usage, turn.meta, thinking=turn.thinking, worked=turn.worked)
            self.apply(decide.answer, answer._replace(pinned=turn.pinned, cut=turn.cut))
            if self.status() == "failed":
                self._grant_again()
        if self.status() == "held":
            return "the agent holds the cast for a person, whose decision is not replayed"
        return ""

    def _grant_again(self) -> bool:
        """Extend the limit that stopped the cast. Return False if no person extended it in the recording."""
        failure, visit = self.session.state.failure, self.session.state.at
        if failure is None:
            return False
        key: tuple[object, ...] = ("repair", visit.step) if visit else ()
        if failure.kind != "repair_exhausted":
            key = failure.allow[0] if failure.allow else ()
        if self.grants.get(key, 0) < 1:
            return False
        self.grants[key] -= failure.allow[1] if failure.allow else 1
        self.apply(decide.raise_limit)
        return True

    def _repeat_edits(self) -> None:
        """Repeat the next recorded edits as long as the state equals the state before the edit."""
        while self.edits and _can_repeat_edit(self.edits[0], self.session):
            edit = self.edits[0]
            try:
                self.apply(decide.edit_state, edit.after.data, edit.lists)
            except MateriaError:  # the other loadout does not allow the edit
                break
            self.edits.pop(0)


class _LaneReplay(_SessionReplay):
    """Runs the visits of one lane with recorded answers."""

    def __init__(self, run: _SessionReplay, name: str) -> None:
        self.rules, self.edits, self.grants = run.rules, [], run.grants
        self._run, self._name = run, name

    @property
    def session(self) -> Session:  # type: ignore[override]
        return self._run.session.streams[-1].lanes[self._name].session

    def status(self) -> Status:
        return self.session.state.status if self._run.status() == "ready" else self._run.status()

    def apply(self, command: Callable[..., Events], *arguments: object) -> None:
        self._run.apply(decide.run_in_lane, self._name, command, *arguments)


def _answer_key(step: StepRecord) -> _AnswerKey:
    return step.socket, step.item_key or "", step.item_label or ""


def _group_by_answer_key(steps: Sequence[StepRecord]) -> Mapping[tuple[_AnswerKey, int], StepRecord]:
    return dict(zip(number_repeats(map(_answer_key, steps)), steps, strict=True))


def _recorded_turns(step: StepRecord) -> list[TurnRecord | Failure]:
    """Return the turns of a visit that took effect; a correction replaces the answer that it corrects."""
    turns = [turn for turn in step.turns[step.turns_before_retry :] if turn.mode != "correction"]
    corrections = [turn for turn in step.turns if turn.mode == "correction"]
    if corrections and turns:
        turns[-1] = turns[-1]._replace(text=corrections[-1].text)
    decision = step.decision
    if decision is None or not decision.result.is_silent or (decision.failure is not None and decision.failure.again):
        return [*turns]
    return [*turns, sample_failure(decision.result)._replace(message=decision.reading.reason)]


def _missing_answer_reason(visit: StepRecord, number: int) -> str:
    item = f" for {visit.item_label or visit.item_key}" if visit.item_key else ""
    if number == 1:
        return f"{visit.name} never answered{item}"
    return f"{visit.name} answered{item} only {counted(number - 1, 'time')}"


def _can_repeat_edit(edit: Edit, session: Session) -> bool:
    state = session.state
    return (
        edit.step == state.steps
        and edit.before.status == state.status
        and equal_json(dict(edit.before.data), dict(state.data))
    )
