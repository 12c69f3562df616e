"""The comparison of two casts, and the replay of recorded answers in another loadout.

Answers, decisions, states and ends are compared. Time, cost, ids and prompts are shown, but make no difference. A
replay asks nobody and runs nothing.
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
from materia_nb.engine.session import Edit, Session, StepRecord, Streams, TurnRecord, all_steps, parts_of, pending
from materia_nb.engine.state import Status, Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.diff import (
    Aspect,
    ComparedCast,
    FirstDifference,
    LoadoutComparison,
    Side,
    ValueChange,
    compare_ends,
    differing_aspects,
    differing_prompt_parts,
    explain_difference,
    number_repeats,
    sides_of,
    step_answer,
    step_route,
    step_target,
    value_changes,
)
from materia_nb.insight.estimate import work_time
from materia_nb.jsonvalue import same
from materia_nb.loadout.graph import Route

_DifferenceTest: TypeAlias = Callable[[StepRecord, StepRecord], bool]


class StepPair(NamedTuple):
    """A step of each cast that belong together, None on the side that has no such step; ``differs`` has the aspects."""

    a: StepRecord | None
    b: StepRecord | None
    differs: tuple[Aspect, ...] = ()

    @property
    def did(self) -> tuple[Aspect, ...]:
        """The aspects in which the steps themselves differ, without a difference of the state before them."""
        inherited = {"given", "state"} if "given" in self.differs else {"given"}
        return tuple(aspect for aspect in self.differs if aspect not in inherited)

    @property
    def side(self) -> Side:
        """The side that has the step."""
        return "A" if self.b is None else "B" if self.a is None else "both"


class Comparison:
    """The comparison of two casts, ``a`` and ``b``; true if they differ in what they did."""

    def __init__(self, a: ComparedCast, b: ComparedCast) -> None:
        """Compare two casts; each difference is computed when it is asked for."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def _names(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    @cached_property
    def first(self) -> FirstDifference | None:
        """The first difference in what they did, with the reason; None if they did the same."""
        return self.first_where(lambda left, right: bool(differing_aspects(left, right, self._names)))

    def first_where(self, differ: _DifferenceTest) -> FirstDifference | None:
        """Return the first difference for which ``differ`` is true, or in length, lane by lane; None if there is none."""
        runs_of_a = {streams.step: streams for streams in self.a.session.streams}
        runs_of_b = {streams.step: streams for streams in self.b.session.streams}
        for left, right in zip(self.a.session.steps, self.b.session.steps, strict=False):
            if differ(left, right):
                return self._explain(left, right)
            lanes_of_a, lanes_of_b = runs_of_a.get(left.number), runs_of_b.get(left.number)
            if (difference := self._first_in_lanes(lanes_of_a, lanes_of_b, left, differ)) is not None:
                return difference
        return compare_ends(self.a, self.b)

    def _first_in_lanes(
        self, left: Streams | None, right: Streams | None, step: StepRecord, differ: _DifferenceTest
    ) -> FirstDifference | None:
        """Return the first difference in the lanes after a step."""
        if left is None or right is None:
            if left is right:
                return None
            shorter, longer = ("B", "A") if right is None else ("A", "B")
            line = f"{longer} has handed the items to lanes; {shorter} has not yet."
            target = step_target(step)
            return FirstDifference(step.number, target, target, (line,), (), "", "B" if right is None else "A")
        differences = []
        for name in left.lanes:
            if name in right.lanes:
                a = self.a._replace(session=left.lanes[name].session)
                b = self.b._replace(session=right.lanes[name].session)
                if (difference := Comparison(a, b).first_where(differ)) is not None:
                    differences.append(difference)
        complete = (difference for difference in differences if not difference.shorter)
        return next(complete, differences[0] if differences else None)

    def _explain(self, left: StepRecord, right: StepRecord) -> FirstDifference:
        aspects = differing_aspects(left, right, self._names)
        graphs = self.a.rules.graph, self.b.rules.graph
        return explain_difference(left, right, aspects, self._names, graphs)

    @property
    def stands(self) -> str | None:
        """``A`` or ``B`` if that cast is under way and only has fewer steps; None otherwise."""
        name = "" if self.first is None else self.first.shorter
        shorter = self.a if name == "A" else self.b
        return name if name and shorter.session.state.status in ("ready", "waiting") else None

    @cached_property
    def parted(self) -> int | None:
        """The number of steps after which the routes differ; None if they do not."""
        steps, others = self.a.session.steps, self.b.session.steps
        for number, (left, right) in enumerate(zip(steps, others, strict=False), start=1):
            if left.socket != right.socket:
                return number - 1
            if step_target(left) != step_target(right):
                return number
        return None if len(steps) == len(others) else min(len(steps), len(others))

    @cached_property
    def pairs(self) -> tuple[StepPair, ...]:
        """The steps of both, aligned: by index while they visit the same, then by socket, item and number of the visit."""
        steps, others = tuple(all_steps(self.a.session)), tuple(all_steps(self.b.session))
        common = 0
        for left, right in zip(steps, others, strict=False):
            if (left.socket, left.item_key, left.lane) != (right.socket, right.item_key, right.lane):
                break
            common += 1
        aligned: list[_Aligned] = list(zip(steps[:common], others[:common], strict=True))
        aligned += _align(steps[common:], others[common:])
        return tuple(
            StepPair(left, right, differing_aspects(left, right, self._names) if left and right else ())
            for left, right in aligned
        )

    @cached_property
    def state(self) -> list[ValueChange]:
        """The differences of their current states."""
        return value_changes(self.a.session.state.data, self.b.session.state.data, self._names)

    @property
    def loadouts(self) -> LoadoutComparison:
        """The comparison of the loadouts that they ran."""
        return LoadoutComparison(self.a.rules.graph, self.b.rules.graph)

    @property
    def beside(self) -> StepComparison | None:
        """The comparison of the step in which they first differ; None unless both have it."""
        first, steps = self.first, list[StepRecord]()
        if first is None:
            return None
        for cast in (self.a, self.b):
            candidates = all_steps(cast.session) if first.lane else cast.session.steps[first.step - 1 :][:1]
            steps += [step for step in candidates if (step.number, step.lane) == (first.step, first.lane)]
        return StepComparison(steps[0], steps[1], self._names) if len(steps) == 2 else None

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """The usage of each cast."""
        return self.a.session.state.usage, self.b.session.state.usage

    @property
    def time(self) -> tuple[int | None, int | None]:
        """The work time of each cast in milliseconds, None if it is unknown (R56)."""
        a, b = (work_time(all_steps(cast.session))[0] for cast in (self.a, self.b))
        return a, b

    @property
    def sockets(self) -> Mapping[str, Side]:
        """The sides that visited each socket."""
        return sides_of(*([step.socket for step in all_steps(cast.session)] for cast in (self.a, self.b)))

    @property
    def routes(self) -> Mapping[Route, Side]:
        """The sides that took each edge or exit."""
        return sides_of(_routes_taken(self.a), _routes_taken(self.b))


class StepComparison:
    """The comparison of two steps, ``a`` and ``b``, of one cast or of two; true if they differ in what was done."""

    def __init__(self, a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> None:
        """Compare two steps; ``names`` are the ids of their casts, which make no difference."""
        self.a, self.b, self.names = a, b, names

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def differs(self) -> tuple[Aspect, ...]:
        """The aspects in which they differ, without the state, which other steps changed too."""
        aspects = differing_aspects(self.a, self.b, self.names)
        return tuple(aspect for aspect in aspects if aspect not in ("given", "state"))

    @cached_property
    def first(self) -> FirstDifference | None:
        """The difference with its reasons, None if they did the same."""
        return explain_difference(self.a, self.b, self.differs, self.names) if self.differs else None

    @cached_property
    def answer(self) -> list[ValueChange]:
        """The differences of their answers."""
        return value_changes(step_answer(self.a), step_answer(self.b), self.names)

    @cached_property
    def state(self) -> list[ValueChange]:
        """The differences of the states after them."""
        return value_changes(self.a.after.data, self.b.after.data, self.names)

    @cached_property
    def prompt(self) -> tuple[str, ...]:
        """The names of the parts in which their prompts differ."""
        return differing_prompt_parts(self.a.prompt, self.b.prompt, self.names)


def previous_visit(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the visit of the same socket before a step, preferably of the same item.

    Raises:
        MateriaError: its socket was not visited before (``no_step``).
    """
    index = number - steps[0].number  # the steps of a lane are numbered from where it began
    step = steps[index]
    earlier = [visit for visit in steps[:index] if visit.socket == step.socket]
    if not earlier:
        raise MateriaError(
            f"{step.socket} was not visited before step {number}.", hint="compare other steps", kind="no_step"
        )
    return next((visit for visit in reversed(earlier) if visit.item_key == step.item_key), earlier[-1])


_Aligned: TypeAlias = tuple[StepRecord | None, StepRecord | None]


def _align(a: Sequence[StepRecord], b: Sequence[StepRecord]) -> list[_Aligned]:
    left, right = _visit_keys(a), _visit_keys(b)
    if right < left:  # SequenceMatcher is not symmetric, but a comparison must be
        return [(step, other) for other, step in _align(b, a)]
    pairs: list[_Aligned] = []
    for tag, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += zip(a[i:j], b[k:m], strict=True)
        else:
            pairs += [(step, None) for step in a[i:j]]
            pairs += [(None, step) for step in b[k:m]]
    return pairs


def _visit_keys(steps: Sequence[StepRecord]) -> list[tuple[str, str, str, int]]:
    """Return a key for each step: its lane, socket, item, and the number of the visit to that item."""
    keys = ((step.lane, step.socket, step.item_key or "") for step in steps)
    return [(*key, repeat) for key, repeat in number_repeats(keys)]


def _routes_taken(cast: ComparedCast) -> list[Route]:
    routes: list[Route] = []
    for decision in (step.decision for step in all_steps(cast.session)):
        if decision is None or decision.socket is None or decision.failure is not None:
            continue
        chosen = decision.chosen
        if chosen is not None:
            routes.append((decision.socket, chosen.route or chosen.place or 0))
        elif decision.by == "implied end":
            routes.append((decision.socket, "end"))
    return routes


# -- replay ----------------------------------------------------------------------------------

_AnswerKey: TypeAlias = tuple[str, str, str]
"""The socket of an answer, and the key and label of its item, empty if there is none."""
RecordedAnswers: TypeAlias = Mapping[tuple[_AnswerKey, int], list[TurnRecord]]
"""The turns of each visit, by socket and item, and the number of the visit to that item."""


class MissingAnswer(NamedTuple):
    """An answer that a replay needs and that was not recorded, with the reason."""

    socket: str
    visit: int
    item_key: str | None
    why: str


def replay_end(session: Session, needs: MissingAnswer | None) -> str:
    """Return how a replay ended: a status, the kind of a failure, or ``needs`` for a missing answer."""
    if needs is not None:
        return "needs"
    failure = session.state.failure
    return failure.kind if failure else session.state.status


@dataclass(eq=False, repr=False)
class Replay:
    """A cast as it would have gone in another loadout, as far as its recorded answers reach.

    True if it goes elsewhere or ends differently (:attr:`first`).

    Attributes:
        original: the recorded cast.
        replayed: the cast in the other loadout.
        needs: the answer that is missing, None if the replay came to its end.
        left_out: the acts of a person that are not replayed, in sentences.
        events: the events of the replay, after those with which it began.
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
        """The comparison of the original (A) with the replay (B)."""
        return Comparison(self.original, self.replayed)

    @property
    def first(self) -> FirstDifference | None:
        """The first step that goes elsewhere, or the different end; None if the route is the same as far as it goes.

        A replay that continues after the end of the original goes elsewhere. If the original was under way, or its
        agent failed, continuing is the same route.
        """
        difference = self.compared.first_where(lambda left, right: step_route(left) != step_route(right))
        state = self.original.session.state
        if difference is None or difference.aspects or self.needs is None or state.status == "complete":
            return difference
        stopped_by_rule = state.failure is not None and (
            state.failure.blocked is not None or state.failure.allow is not None
        )
        return None if difference.shorter != "B" and not stopped_by_rule else difference

    @property
    def beside(self) -> FirstDifference | None:
        """The first difference on the same route, such as another value in the state; None if there is none."""
        difference, elsewhere = self.compared.first, self.first
        if difference is None or not difference.aspects:
            return None
        if elsewhere is not None and elsewhere.lane == difference.lane and elsewhere.step <= difference.step:
            return None
        return difference

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order: socket, visit, item key, item label."""
        steps = self.replayed.session.steps
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in steps]

    @property
    def ends(self) -> str:
        """How it ends: ``complete``, or the kind of a failure; ``needs`` if an answer is missing."""
        return replay_end(self.replayed.session, self.needs)

    @cached_property
    def asked_otherwise(self) -> tuple[int, ...]:
        """The numbers of the steps of the replay whose prompt is not the recorded one.

        Their answers could have been different. A utility counts if its command or parameters differ.
        """
        parts = parts_of(self.original.session)
        recorded = _by_answer_key([step for part in parts for step in part.steps])
        replayed = _by_answer_key(self.replayed.session.steps)
        pairs = ((step, recorded.get(key)) for key, step in replayed.items())
        return tuple(
            step.number for step, source in pairs if source is not None and self._is_asked_otherwise(step, source)
        )

    def _is_asked_otherwise(self, step: StepRecord, source: StepRecord) -> bool:
        casts = (self.original, self.replayed)
        before, after = (cast.rules.sockets[step.socket].socket.materia for cast in casts)
        if before.kind == "utility" or after.kind == "utility":
            return (before.command, before.script, before.params) != (after.command, after.script, after.params)
        names = self.original.name, self.replayed.name
        return before.model != after.model or bool(differing_prompt_parts(source.prompt, step.prompt, names))


def replay_answers(original: ComparedCast, rules: Rules) -> Replay:
    """Replay the recorded answers of a cast by the rules of another loadout, as far as they reach.

    A recorded answer is used for the same socket, item and number of the visit to that item. Limits that were granted
    again are granted again where they stop the replay, and a budget that a person set counts. Edits of a person are
    repeated when the state equals the one that they changed.
    """
    session = original.session
    state = entering.begin(rules, session.start.request, session.start.knowledge, session.start.data)
    edits = list(session.edits)
    run = _Run(rules, begin_at(state), edits, dict(session.state.extra))
    if session.state.budget != rules.graph.budget == original.rules.graph.budget:
        run.apply(decide.set_budget, session.state.budget)
    needs = run.play(recorded_answers(session))
    left_out = tuple(f"A person's edit after step {edit.step} is left out." for edit in edits)
    replayed = ComparedCast(original.name, rules, run.session)
    return Replay(original, replayed, needs, left_out, tuple(run.events))


def recorded_answers(session: Session) -> RecordedAnswers:
    """Return the answers of the visits that count, those of lanes after the others."""
    steps = [step for part in parts_of(session) for step in part.steps]
    return {key: _recorded_turns(step) for key, step in _by_answer_key(steps).items()}


def send_answers(
    rules: Rules, session: Session, answers: RecordedAnswers, edits: list[Edit]
) -> tuple[Session, MissingAnswer | None]:
    """Run a new session with these answers; also return the answer that is missing.

    Edits that are made are removed from ``edits``.
    """
    run = _Run(rules, session, edits, {})
    needs = run.play(answers)
    return run.session, needs


class _Run:
    """A session that is played with recorded answers; ``grants`` are the limits that may be granted again."""

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
        """Give every answer that is asked for, lane after lane; return the first that was not recorded."""
        visits = Counter() if visits is None else visits
        while self.status() == "ready":
            self._repeat_edits()
            for name in [action.lane for action in pending(self.rules, self.session) if action.lane]:
                if self.status() == "ready" and (needs := _LaneRun(self, name).play(answers, visits)):
                    return needs
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
            if reason := self._answer(list(turns or ())):
                reason = _no_answer_words(visit, visits[key]) if turns is None else reason
                return MissingAnswer(visit.socket, visit.visit, visit.item_key, reason)
        return None

    def _answer(self, turns: list[TurnRecord]) -> str:
        """Give the recorded answers of a visit until it is over; return why that is not possible, empty if it is."""
        while self.status() == "waiting":
            if not turns:
                return f"it asks for another turn ({self.session.mode}) than were recorded"
            turn = turns.pop(0)
            visit = self.session.state.at
            if self.session.mode == "draft" and visit is not None and visit.drafts > 0:
                if turn.mode == "draft":
                    self.apply(decide.refine, turn.message or "")
                else:
                    self.apply(decide.finalize)
            for usage in turn.spent:
                self.apply(decide.spent, usage)
            answer = Answer(
                turn.text,
                turn.usage,
                turn.meta,
                pinned=turn.pinned,
                thinking=turn.thinking,
                cut=turn.cut,
                worked=turn.worked,
            )
            self.apply(decide.answer, answer)
            if self.status() == "failed":
                self._grant_again()
        if self.status() == "held":
            return "its agent holds the cast, and what a person decided then is not replayed"
        return ""

    def _grant_again(self) -> bool:
        """Grant the limit that stopped the cast again if that was done in the recording."""
        failure, visit = self.session.state.failure, self.session.state.at
        if failure is None:
            return False
        key: tuple[object, ...] = ("repair", visit.step) if visit else ()
        if failure.kind != "repair_exhausted":
            key = failure.allow[0] if failure.allow else ()
        if self.grants.get(key, 0) < 1:
            return False
        self.grants[key] -= failure.allow[1] if failure.allow else 1
        self.apply(decide.revive)
        return True

    def _repeat_edits(self) -> None:
        """Make the edits that were made to this very state."""
        while self.edits and _fits(self.edits[0], self.session):
            edit = self.edits[0]
            try:
                self.apply(decide.edit_state, edit.after.data, edit.lists)
            except MateriaError:  # the other loadout does not allow it
                break
            self.edits.pop(0)


class _LaneRun(_Run):
    """The same for one lane of a run."""

    def __init__(self, run: _Run, name: str) -> None:
        self.rules, self.edits, self.grants = run.rules, [], run.grants
        self._run, self._name = run, name

    @property
    def session(self) -> Session:  # type: ignore[override]
        return self._run.session.streams[-1].lanes[self._name].session

    def status(self) -> Status:
        return self.session.state.status if self._run.status() == "ready" else self._run.status()

    def apply(self, command: Callable[..., Events], *arguments: object) -> None:
        self._run.apply(decide.in_lane, self._name, command, *arguments)


def _answer_key(step: StepRecord) -> _AnswerKey:
    return step.socket, step.item_key or "", step.item_label or ""


def _by_answer_key(steps: Sequence[StepRecord]) -> Mapping[tuple[_AnswerKey, int], StepRecord]:
    return dict(zip(number_repeats(map(_answer_key, steps)), steps, strict=True))


def _recorded_turns(step: StepRecord) -> list[TurnRecord]:
    """Return the turns of a visit that count; a correction replaces the answer that it corrected."""
    turns = [turn for turn in step.turns[step.left :] if turn.mode != "correction"]
    corrections = [turn for turn in step.turns if turn.mode == "correction"]
    if corrections and turns:
        turns[-1] = turns[-1]._replace(text=corrections[-1].text)
    return turns


def _no_answer_words(visit: StepRecord, number: int) -> str:
    item = f" for {visit.item_key} ({visit.item_label})" if visit.item_key else ""
    if number == 1:
        return f"{visit.socket} never answered{item}"
    return f"{visit.socket} answered{item} only {counted(number - 1, 'time')}"


def _fits(edit: Edit, session: Session) -> bool:
    state = session.state
    return (
        edit.step == state.steps
        and edit.before.status == state.status
        and same(dict(edit.before.data), dict(state.data))
    )
