"""How two casts differ: their steps beside one another, the first difference, and why it came to it.

And how a cast differs from itself in another loadout, its answers being the same: nobody is asked, nothing runs.

What they did counts: answers, decisions, states and ends. Time, cost, ids and what was asked are told beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple, TypeAlias

from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Event, Events
from materia_nb.engine.evolve import begin_at, fold
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import (
    Edit,
    Session,
    StepRecord,
    Streams,
    TurnRecord,
    all_steps,
    parts_of,
    pending,
)
from materia_nb.engine.state import Status, Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.insight import diff
from materia_nb.insight.diff import (
    Aspect,
    ComparedCast,
    FirstDifference,
    LoadoutComparison,
    Side,
    ValueChange,
    compare_ends,
    explain_difference,
    sides_of,
)
from materia_nb.insight.usage import work_time
from materia_nb.jsonvalue import same
from materia_nb.loadout.graph import Route


class StepPair(NamedTuple):
    """A step of each cast beside one another, None where only the other has it; ``differs`` says in what they differ."""

    a: StepRecord | None
    b: StepRecord | None
    differs: tuple[Aspect, ...] = ()

    @property
    def did(self) -> tuple[Aspect, ...]:
        """In what the steps themselves differ: a state that differed before is no doing of theirs."""
        inherited = {"given", "state"} if "given" in self.differs else {"given"}
        return tuple(one for one in self.differs if one not in inherited)

    @property
    def side(self) -> Side:
        """Which of the two casts has it."""
        return "A" if self.b is None else "B" if self.a is None else "both"


class Comparison:
    """Two casts beside one another; true if they differ in what they did.

    ``a`` and ``b`` are what is compared.
    """

    def __init__(self, a: ComparedCast, b: ComparedCast) -> None:
        """Compare two casts; nothing is worked out before it is asked for."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def _names(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    @cached_property
    def first(self) -> FirstDifference | None:
        """Where they first differ in what they did, and why; None when they did the same."""
        return self.first_where(lambda one, other: bool(diff.differing_aspects(one, other, self._names)))

    def first_where(self, differ: Callable[[StepRecord, StepRecord], bool]) -> FirstDifference | None:
        """Where they first differ in the sense of ``differ``, or in how far they went, lane by lane; None where they do not."""
        right_of = {streams.step: streams for streams in self.b.session.streams}
        left_of = {streams.step: streams for streams in self.a.session.streams}
        for one, other in zip(self.a.session.steps, self.b.session.steps, strict=False):
            if differ(one, other):
                return self._at(one, other)
            left, right = left_of.get(one.number), right_of.get(one.number)
            if (found := self._in_lanes(left, right, one, differ)) is not None:
                return found
        return compare_ends(self.a, self.b)

    def _in_lanes(
        self,
        left: Streams | None,
        right: Streams | None,
        behind: StepRecord,
        differ: Callable[[StepRecord, StepRecord], bool],
    ) -> FirstDifference | None:
        if left is None or right is None:
            if left is right:
                return None
            shorter, longer = ("B", "A") if right is None else ("A", "B")
            why = f"{longer} has handed the items to lanes; {shorter} has not yet."
            way = diff.step_target(behind)
            return FirstDifference(behind.number, way, way, (why,), (), "", "B" if right is None else "A")
        found = []
        for name in left.lanes:
            if name in right.lanes:
                a = self.a._replace(session=left.lanes[name].session)
                b = self.b._replace(session=right.lanes[name].session)
                found.append(Comparison(a, b).first_where(differ))
        known = [one for one in found if one is not None]
        return next((one for one in known if not one.shorter), known[0] if known else None)

    def _at(self, one: StepRecord, other: StepRecord) -> FirstDifference:
        aspects = diff.differing_aspects(one, other, self._names)
        return explain_difference(one, other, aspects, self._names, (self.a.rules.graph, self.b.rules.graph))

    @property
    def stands(self) -> str | None:
        """Which of the two, ``A`` or ``B``, only has not gone on yet: all of its steps are the other's; None if neither."""
        name = "" if self.first is None else self.first.shorter
        side = self.a if name == "A" else self.b
        return name if name and side.session.state.status in ("ready", "waiting") else None

    @cached_property
    def parted(self) -> int | None:
        """The first step behind which the two routes are no longer the same, counted from 1; None when they are."""
        ones, others = self.a.session.steps, self.b.session.steps
        for number, (one, other) in enumerate(zip(ones, others, strict=False), start=1):
            if one.socket != other.socket:
                return number - 1
            if diff.step_target(one) != diff.step_target(other):
                return number
        return None if len(ones) == len(others) else min(len(ones), len(others))

    @cached_property
    def pairs(self) -> tuple[StepPair, ...]:
        """The steps of both, aligned: by index as long as they do the same, then by socket, item and how many times."""
        ones, others = tuple(all_steps(self.a.session)), tuple(all_steps(self.b.session))
        together = 0
        for one, other in zip(ones, others, strict=False):
            if (one.socket, one.item_key, one.lane) != (other.socket, other.item_key, other.lane):
                break
            together += 1
        pairs: list[_Aligned] = list(zip(ones[:together], others[:together], strict=True))
        pairs += _aligned(ones[together:], others[together:])
        return tuple(
            StepPair(one, other, diff.differing_aspects(one, other, self._names) if one and other else ())
            for one, other in pairs
        )

    @cached_property
    def state(self) -> list[ValueChange]:
        """Where their states differ as they stand now."""
        return diff.value_changes(self.a.session.state.data, self.b.session.state.data, self._names)

    @property
    def loadouts(self) -> LoadoutComparison:
        """The loadouts that they ran, beside one another."""
        return LoadoutComparison(self.a.rules.graph, self.b.rules.graph)

    @property
    def beside(self) -> StepComparison | None:
        """The step in which they first differ, of both: answer, prompt, state; None where not both have it."""
        first, found = self.first, list[StepRecord]()
        if first is None:
            return None
        for side in (self.a, self.b):
            steps = all_steps(side.session) if first.lane else side.session.steps[first.step - 1 :][:1]
            found += [one for one in steps if (one.number, one.lane) == (first.step, first.lane)]
        one, other = found if len(found) == 2 else (None, None)
        return None if one is None or other is None else StepComparison(one, other, self._names)

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """What each used in all."""
        return self.a.session.state.usage, self.b.session.state.usage

    @property
    def time(self) -> tuple[int | None, int | None]:
        """How many milliseconds the steps of each were worked on, None where that is unknown (R56)."""
        a, b = (work_time(all_steps(side.session))[0] for side in (self.a, self.b))
        return a, b

    @property
    def sockets(self) -> Mapping[str, Side]:
        """Which of the two was at a socket, by its id."""
        return sides_of(*([step.socket for step in all_steps(side.session)] for side in (self.a, self.b)))

    @property
    def routes(self) -> Mapping[Route, Side]:
        """Which of the two took an edge or exit."""
        return sides_of(_routes(self.a), _routes(self.b))


class StepComparison:
    """Two steps beside one another, of one cast or of two; true if they differ in what was done.

    ``a`` and ``b`` are the steps.
    """

    def __init__(self, a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> None:
        """Compare two steps; ``names`` are the ids of their casts, which make no difference."""
        self.a, self.b, self.names = a, b, names

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def differs(self) -> tuple[Aspect, ...]:
        """In what they differ; what stood in the state before does not count, since other steps made it."""
        found = diff.differing_aspects(self.a, self.b, self.names)
        return tuple(one for one in found if one not in ("given", "state"))

    @cached_property
    def first(self) -> FirstDifference | None:
        """How they differ, None when they did the same."""
        return explain_difference(self.a, self.b, self.differs, self.names) if self.differs else None

    @cached_property
    def answer(self) -> list[ValueChange]:
        """Where their answers differ."""
        return diff.value_changes(diff.step_answer(self.a), diff.step_answer(self.b), self.names)

    @cached_property
    def state(self) -> list[ValueChange]:
        """Where the states that they left differ."""
        return diff.value_changes(self.a.after.data, self.b.after.data, self.names)

    @cached_property
    def prompt(self) -> tuple[str, ...]:
        """The layers of their prompts that differ, by name."""
        return diff.differing_prompt_parts(self.a.prompt, self.b.prompt, self.names)


def previous_visit(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the visit of the same socket before a step, of the same item if there is one.

    Raises:
        MateriaError: its socket was not visited before (``no_step``).
    """
    place = number - steps[0].number  # the steps of a lane are numbered on from where it began
    step = steps[place]
    earlier = [one for one in steps[:place] if one.socket == step.socket]
    if not earlier:
        raise MateriaError(
            f"{step.socket} was not visited before step {number}.", hint="compare other steps", kind="no_step"
        )
    return next((one for one in reversed(earlier) if one.item_key == step.item_key), earlier[-1])


_Aligned: TypeAlias = tuple[StepRecord | None, StepRecord | None]


def _aligned(a: Sequence[StepRecord], b: Sequence[StepRecord]) -> list[_Aligned]:
    left, right = _keys(a), _keys(b)
    if right < left:  # the matcher is not symmetric, and a comparison is
        return [(one, other) for other, one in _aligned(b, a)]
    made: list[_Aligned] = []
    for kind, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            made += zip(a[i:j], b[k:m], strict=True)
        else:
            made += [(one, None) for one in a[i:j]]
            made += [(None, other) for other in b[k:m]]
    return made


def _keys(steps: Sequence[StepRecord]) -> list[tuple[str, str, str, int]]:
    """Name each step by its lane, its socket, its item, and how many times the socket had worked on it."""
    keys = ((step.lane, step.socket, step.item_key or "") for step in steps)
    return [(*key, times) for key, times in diff.number_repeats(keys)]


def _routes(side: ComparedCast) -> list[Route]:
    found: list[Route] = []
    for decision in (step.decision for step in all_steps(side.session)):
        if decision is None or decision.socket is None or decision.failure is not None:
            continue
        chosen = decision.chosen
        if chosen is not None:
            found.append((decision.socket, chosen.route or chosen.place or 0))
        elif decision.by == "implied end":
            found.append((decision.socket, "end"))
    return found


_AnswerKey: TypeAlias = tuple[str, str, str]
"""What an answer belongs to: its socket, and the key and label of its item, empty where there is none."""
RecordedAnswers: TypeAlias = Mapping[tuple[_AnswerKey, int], list[TurnRecord]]
"""The turns of each visit, by what it belongs to and how many times the socket had worked on that."""


class MissingAnswer(NamedTuple):
    """An answer that a replay lacks: of which visit, for which item, and why it is not there."""

    socket: str
    visit: int
    item_key: str | None
    why: str


def replay_end(session: Session, needs: MissingAnswer | None) -> str:
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
        left_out: what a person did in the original that is not part of the replay, in sentences.
        events: what the replay would have written to a journal, behind how it began.
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
        """The original (A) and the replay (B) beside one another."""
        return Comparison(self.original, self.replayed)

    @property
    def first(self) -> FirstDifference | None:
        """Where the replay first goes elsewhere, or ends otherwise; None when it goes the same way, as far as that went.

        A cast that came to its end and would have gone on goes elsewhere. One that was under way, or whose agent
        failed, goes on in its replay too: that is the same way.
        """
        found = self.compared.first_where(lambda one, other: diff.step_route(one) != diff.step_route(other))
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
        return replay_end(self.replayed.session, self.needs)

    @cached_property
    def asked_otherwise(self) -> tuple[int, ...]:
        """The steps of the replay that were asked something else when their answer was recorded, by number.

        Their answers could have been others. A utility counts when its command or parameters differ.
        """
        known = _by_key([step for part in parts_of(self.original.session) for step in part.steps])
        pairs = ((step, known.get(key)) for key, step in _by_key(self.replayed.session.steps).items())
        return tuple(
            step.number for step, source in pairs if source is not None and self._differs(step, source)
        )

    def _differs(self, step: StepRecord, source: StepRecord) -> bool:
        both = (self.original, self.replayed)
        one, other = (side.rules.sockets[step.socket].socket.materia for side in both)
        if one.kind == "utility" or other.kind == "utility":
            return (one.command, one.script, one.params) != (other.command, other.script, other.params)
        names = self.original.name, self.replayed.name
        return one.model != other.model or bool(
            diff.differing_prompt_parts(source.prompt, step.prompt, names)
        )


def replay_answers(original: ComparedCast, rules: Rules) -> Replay:
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
    needs = run.all(recorded_answers(before))
    left = tuple(f"A person's edit after step {edit.step} is left out." for edit in edits)
    return Replay(original, ComparedCast(original.name, rules, run.session), needs, left, tuple(run.events))


def recorded_answers(session: Session) -> RecordedAnswers:
    """Return the answers of the visits that count, those of lanes behind the others, by what each belongs to."""
    steps = [step for part in parts_of(session) for step in part.steps]
    return {key: _turns(step) for key, step in _by_key(steps).items()}


def send_answers(
    rules: Rules, session: Session, answers: RecordedAnswers, edits: list[Edit]
) -> tuple[Session, MissingAnswer | None]:
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

    def all(self, answers: RecordedAnswers, seen: Counter[_AnswerKey] | None = None) -> MissingAnswer | None:
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
                return MissingAnswer(visit.socket, visit.visit, visit.item_key, why)
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
    return dict(zip(diff.number_repeats(map(_answer_key, steps)), steps, strict=True))


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
