"""What a cast would have done in another loadout, its answers being the same. Pure: nobody is asked, nothing runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Event, Events
from materia_nb.engine.evolve import begin_at, fold
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, StepRecord, TurnRecord, parts_of, pending
from materia_nb.engine.state import Status
from materia_nb.errors import MateriaError, counted
from materia_nb.insight import sides
from materia_nb.insight.compare import Comparison
from materia_nb.insight.sides import FirstDifference, Side
from materia_nb.jsonvalue import same

_AnswerKey: TypeAlias = tuple[str, str, str]
"""What an answer belongs to: its socket, and the key and label of its item, empty where there is none."""
RecordedAnswers: TypeAlias = Mapping[tuple[_AnswerKey, int], list[TurnRecord]]
"""The turns of each visit, by what it belongs to and how many times the socket had worked on that."""


class Needed(NamedTuple):
    """An answer that a replay lacks: of which visit, for which item, and why it is not there."""

    socket: str
    visit: int
    item_key: str | None
    why: str


def end_of_replay(session: Session, needs: Needed | None) -> str:
    """Say how a run of recorded answers ended: a status, the kind of a failure, or ``needs``."""
    if needs is not None:
        return "needs"
    failure = session.state.failure
    return failure.kind if failure else session.state.status


@dataclass(eq=False, repr=False)
class Replay:
    """A cast as it would have gone in another loadout, as far as its recorded answers reach.

    True if it goes elsewhere, or ends otherwise (:attr:`first`).

    Attributes:
        original: the cast as it was.
        replayed: the cast as it would have gone.
        needs: the answer that is lacking to go on, None when it came to its end.
        left_out: what a person did in the original that is no part of the replay, in sentences.
        events: what the replay would have written to a journal, behind how it began.
    """

    original: Side
    replayed: Side
    needs: Needed | None
    left_out: Sequence[str] = ()
    events: Sequence[Event] = ()

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def compared(self) -> Comparison:
        """The original (A) and the replay (B) beside one another."""
        return Comparison(self.original, self.replayed)

    @property
    def first(self) -> FirstDifference | None:
        """Where the replay first goes elsewhere, or ends otherwise; None when it goes the same way, as far as that went.

        A cast that came to its end and would have gone on goes elsewhere. One that was under way, or whose agent
        failed, goes on in its replay too: that is the same way.
        """
        found = self.compared.first_where(lambda one, other: sides.led(one) != sides.led(other))
        state = self.original.session.state
        if found is None or found.aspects or self.needs is None or state.status == "complete":
            return found
        by_rule = state.failure is not None and (
            state.failure.blocked is not None or state.failure.allow is not None
        )
        return None if found.shorter != "B" and not by_rule else found

    @property
    def beside(self) -> FirstDifference | None:
        """What is first done otherwise on the same way: what decided, what was put into the state; None for nothing."""
        found, elsewhere = self.compared.first, self.first
        if found is None or not found.aspects:
            return None
        at_once = elsewhere is not None and elsewhere.lane == found.lane and elsewhere.step <= found.step
        return None if at_once else found

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order: socket, visit, item key, item label."""
        steps = self.replayed.session.steps
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in steps]

    @property
    def ends(self) -> str:
        """How it ends: ``complete``, or the kind of a failure; ``needs`` when an answer is lacking."""
        return end_of_replay(self.replayed.session, self.needs)

    @cached_property
    def asked_otherwise(self) -> tuple[int, ...]:
        """The steps of the replay that were asked something else when their answer was recorded, by number.

        Their answers could have been others. A utility counts when its command or parameters differ.
        """
        found = []
        for step, source in zip(
            self.replayed.session.steps, _sources(self.original, self.replayed), strict=True
        ):
            if source is not None and self._differs(step, source):
                found.append(step.number)
        return tuple(found)

    def _differs(self, step: StepRecord, source: StepRecord) -> bool:
        one, other = (
            side.rules.sockets[step.socket].socket.materia for side in (self.original, self.replayed)
        )
        if one.kind == "utility" or other.kind == "utility":
            return (one.command, one.script, one.params) != (other.command, other.script, other.params)
        names = self.original.name, self.replayed.name
        return one.model != other.model or bool(sides.prompt_parts(source, step, names))


def replay_answers(original: Side, rules: Rules) -> Replay:
    """Send the recorded answers of a cast through the rules of another loadout, as far as they reach.

    An answer belongs to a socket, an item and how many times the socket had worked on it; it is used where the
    same is asked again. Limits that were granted once more are granted again where they stop the replay, and a
    budget that a person set counts. Edits of a person are made again where the state is the one that they were made to.
    """
    before = original.session
    state = entering.begin(rules, before.start.request, before.start.knowledge, before.start.data)
    edits = list(before.edits)
    run = _Run(rules, begin_at(state), edits, dict(before.state.extra))
    if before.state.budget != rules.graph.budget == original.rules.graph.budget:
        run.do(decide.set_budget, before.state.budget)
    needs = run.all(recorded(before))
    left = tuple(f"A person's edit after step {edit.step} is left out." for edit in edits)
    return Replay(original, Side(original.name, rules, run.session), needs, left, tuple(run.events))


def recorded(session: Session) -> RecordedAnswers:
    """Return the answers of the visits that count, those of lanes behind the others, by what each belongs to."""
    steps = [step for part in parts_of(session) for step in part.steps]
    return {key: _turns(step) for key, step in _by_key(steps).items()}


def send_answers(
    rules: Rules, session: Session, answers: RecordedAnswers, edits: list[Edit]
) -> tuple[Session, Needed | None]:
    """Run a session that has just begun with these answers; also return the answer that is lacking to go on.

    Edits that are made are taken out of ``edits``.
    """
    run = _Run(rules, session, edits, {})
    needs = run.all(answers)
    return run.session, needs


class _Run:
    """A session on its way through recorded answers; ``grants`` are the limits that may be granted once more."""

    def __init__(
        self, rules: Rules, session: Session, edits: list[Edit], grants: dict[tuple[object, ...], int]
    ) -> None:
        self.rules, self.session, self.edits, self.grants = rules, session, edits, grants
        self.events: list[Event] = []

    def stands(self) -> Status:
        """Return how the session stands."""
        return self.session.state.status

    def do(self, command: Callable[..., Events], *given: object) -> None:
        events = command(self.rules, self.session, *given, 0)
        self.session = fold(self.rules, self.session, events)
        self.events += events

    def all(self, answers: RecordedAnswers, seen: Counter[_AnswerKey] | None = None) -> Needed | None:
        """Give every answer that is asked for; returns the first that is not there. Lanes go one after the other."""
        seen = Counter() if seen is None else seen
        while self.stands() == "ready":
            self._edit()
            for name in [one.lane for one in pending(self.rules, self.session) if one.lane]:
                if self.stands() == "ready" and (needs := _LaneRun(self, name).all(answers, seen)):
                    return needs
            if self.stands() == "ready":
                self.do(decide.enter)
            if self.stands() == "ready":
                continue
            if self.stands() != "waiting":
                if self._revived():
                    continue
                break
            self._edit()
            visit = self.session.steps[-1]
            key = _answer_key(visit)
            seen[key] += 1
            turns = answers.get((key, seen[key]))
            if lacks := self._answer(list(turns or ())):
                why = _never(visit, seen[key]) if turns is None else lacks
                return Needed(visit.socket, visit.visit, visit.item_key, why)
        return None

    def _answer(self, turns: list[TurnRecord]) -> str:
        """Give the recorded answers of a visit until it is over; returns what is lacking, empty for nothing."""
        while self.stands() == "waiting":
            if not turns:
                return f"it asks for another turn ({self.session.mode}) than were recorded"
            turn = turns.pop(0)
            at = self.session.state.at
            if self.session.mode == "draft" and at is not None and at.drafts > 0:
                if turn.mode == "draft":
                    self.do(decide.refine, turn.message or "")
                else:
                    self.do(decide.finalize)
            for used in turn.spent:
                self.do(decide.spent, used)
            given = Answer(
                turn.text,
                turn.usage,
                turn.meta,
                pinned=turn.pinned,
                thinking=turn.thinking,
                cut=turn.cut,
                worked=turn.worked,
            )
            self.do(decide.answer, given)
            if self.stands() == "failed":
                self._revived()
        if self.stands() == "held":
            return "its agent holds the cast, and what a person decided then is not replayed"
        return ""

    def _revived(self) -> bool:
        """Grant the limit that stopped the cast once more, where that was done then."""
        failure, visit = self.session.state.failure, self.session.state.at
        if failure is None:
            return False
        key: tuple[object, ...] = ("repair", visit.step) if visit else ()
        if failure.kind != "repair_exhausted":
            key = failure.allow[0] if failure.allow else ()
        if self.grants.get(key, 0) < 1:
            return False
        self.grants[key] -= failure.allow[1] if failure.allow else 1
        self.do(decide.revive)
        return True

    def _edit(self) -> None:
        """Make the edits again that were made to this very state."""
        while self.edits and _fits(self.edits[0], self.session):
            edit = self.edits[0]
            try:
                self.do(decide.edit_state, edit.after.data, edit.lists)
            except MateriaError:  # the other loadout does not allow it
                break
            self.edits.pop(0)


class _LaneRun(_Run):
    """The same in a lane of a run."""

    def __init__(self, run: _Run, name: str) -> None:
        self.rules, self.edits, self.grants = run.rules, [], run.grants
        self._run, self._name = run, name

    @property
    def session(self) -> Session:  # type: ignore[override]
        return self._run.session.streams[-1].lanes[self._name].session

    def stands(self) -> Status:
        return self.session.state.status if self._run.stands() == "ready" else self._run.stands()

    def do(self, command: Callable[..., Events], *given: object) -> None:
        self._run.do(decide.in_lane, self._name, command, *given)


def _answer_key(step: StepRecord) -> _AnswerKey:
    """Return what an answer belongs to, beside how many times the socket had worked on it."""
    return step.socket, step.item_key or "", step.item_label or ""


def _by_key(steps: Sequence[StepRecord]) -> Mapping[tuple[_AnswerKey, int], StepRecord]:
    return dict(zip(sides.counted_keys(map(_answer_key, steps)), steps, strict=True))


def _sources(original: Side, replayed: Side) -> list[StepRecord | None]:
    """For each step of a replay the one whose answers it used."""
    known = _by_key([step for part in parts_of(original.session) for step in part.steps])
    return [known.get(key) for key in _by_key(replayed.session.steps)]


def _turns(source: StepRecord) -> list[TurnRecord]:
    """The answers of a visit that count; a correction stands for the one that it corrected."""
    given = [turn for turn in source.turns[source.left :] if turn.mode != "correction"]
    corrections = [turn for turn in source.turns if turn.mode == "correction"]
    if corrections and given:
        given[-1] = given[-1]._replace(text=corrections[-1].text)
    return given


def _never(visit: StepRecord, times: int) -> str:
    item = f" for {visit.item_key} ({visit.item_label})" if visit.item_key else ""
    if times == 1:
        return f"{visit.socket} never answered{item}"
    return f"{visit.socket} answered{item} only {counted(times - 1, 'time')}"


def _fits(edit: Edit, session: Session) -> bool:
    now = session.state
    return (
        edit.step == now.steps
        and edit.before.status == now.status
        and same(dict(edit.before.data), dict(now.data))
    )
