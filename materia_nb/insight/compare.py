"""Comparisons of two casts, two steps or two loadouts. A comparison finds and explains the first difference.

Answers, decisions, states and the ends of casts are compared. Time, cost, ids and prompts are displayed, but they do
not count as differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import short_label
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, Streams, TurnRecord, all_steps
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.estimate import work_time
from materia_nb.insight.values import ValueChange, format_difference, is_same_value, value_changes, without_id
from materia_nb.jsonvalue import JSON, MISSING, equal_json
from materia_nb.loadout.graph import Budget, Edge, ExitRoute, Graph, Limits, Loop, Materia, Route, Socket, with_names

Side: TypeAlias = Literal["A", "B", "both"]
"""The side of a comparison (``A``, ``B`` or ``both``) that contains an element, such as a socket or an edge."""
_Key = TypeVar("_Key", bound=Hashable)


def sides_of(a: Iterable[_Key], b: Iterable[_Key]) -> dict[_Key, Side]:
    """Return, for each key in either collection, the side that contains it. The keys of ``a`` come first."""
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    return {key: "A" if key not in right else "both" if key in left else "B" for key in left | right}


# -- steps --------------------------------------------------------------------------------------

Aspect: TypeAlias = Literal["socket", "given", "answer", "route", "state"]
"""An aspect of a step: its socket and item, the state before it, its answer, its decision, or the state after it."""


class ComparedCast(NamedTuple):
    """One of the two casts in a comparison.

    Attributes:
        name: the id of the cast. The comparison ignores this id in texts.
        rules: the rules of the cast.
        session: the session of the cast.
        snapshots: the directory of the file snapshots of the cast, or None if it has no snapshots.
    """

    name: str
    rules: Rules
    session: Session
    snapshots: Path | None = None

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.session.steps)} steps>"


ComparedCasts: TypeAlias = tuple[ComparedCast, ComparedCast]


def step_answer(step: StepRecord) -> JSON:
    """Return the answer of a step, parsed if it is JSON, or None if the step has no answer yet."""
    reading = step.reading
    if reading is None or reading.value is None or reading.value is MISSING:
        return step.output
    return reading.value


def step_target(step: StepRecord) -> str | None:
    """Return the socket to which a step leads, or ``end``; return None if the step failed or has no answer yet."""
    return None if step.decision is None else step.decision.target


def step_route(step: StepRecord) -> tuple[str | None, ...]:
    """Return the socket, work item and target of a step, and the kind of failure that its answer caused (or None)."""
    decision = step.decision
    failure = decision.failure if decision is not None else None
    if decision is not None and decision.by == "failure" and decision.reading.error is None:
        failure = None
    return step.socket, step.item_key, step_target(step), failure.kind if failure else None


def differing_prompt_parts(a: Prompt | None, b: Prompt | None, cast_ids: tuple[str, str] = ("", "")) -> tuple[str, ...]:
    """Return the names of the parts in which two prompts differ. The ids of the casts are ignored."""
    left, right = prompt_part_texts(a, cast_ids[0]), prompt_part_texts(b, cast_ids[1])
    return tuple(name for name in dict.fromkeys((*left, *right)) if left.get(name) != right.get(name))


def prompt_part_texts(prompt: Prompt | None, cast_id: str) -> Mapping[str, str]:
    """Return the text of each part of a prompt that is not empty, with the id of the cast removed."""
    parts = () if prompt is None else prompt.parts
    return {part.name: without_id(part.text, cast_id) for part in parts if part.text}


def number_repeats(keys: Iterable[_Key]) -> Iterator[tuple[_Key, int]]:
    """Yield each key with its occurrence number: 1 for its first occurrence, 2 for the second, and so on."""
    counts: Counter[_Key] = Counter()
    for key in keys:
        counts[key] += 1
        yield key, counts[key]


def differing_aspects(a: StepRecord, b: StepRecord, cast_ids: tuple[str, str] = ("", "")) -> tuple[Aspect, ...]:
    """Return the aspects in which two steps differ. Prompts, time and cost are not compared."""
    differences: dict[Aspect, bool] = {
        "socket": (a.socket, a.item_key) != (b.socket, b.item_key),
        "given": not is_same_value(dict(a.before.data), dict(b.before.data), cast_ids),
        "answer": not _has_same_answers(a, b, cast_ids),
        "route": _compared_decision(a) != _compared_decision(b),
        "state": not is_same_value(dict(a.after.data), dict(b.after.data), cast_ids),
    }
    return tuple(aspect for aspect, differs in differences.items() if differs)


def _has_same_answers(a: StepRecord, b: StepRecord, cast_ids: tuple[str, str]) -> bool:
    if len(a.turns) != len(b.turns):
        return False
    return all(
        x.mode == y.mode and is_same_value(_turn_answer(x), _turn_answer(y), cast_ids)
        for x, y in zip(a.turns, b.turns, strict=True)
    )


def _turn_answer(turn: TurnRecord) -> JSON:
    value = None if turn.reading is None else turn.reading.value
    return turn.text.strip() if value is None or value is MISSING else value


def _compared_decision(step: StepRecord) -> tuple[object, ...]:
    """Return the parts of a step's decision that are compared. Edge counts and failure messages are excluded."""
    decision = step.decision
    if decision is None:
        return ()
    failure = decision.failure.kind if decision.failure else None
    return decision.by, decision.target, decision.satisfied, failure, decision.done, decision.exhausted


# -- reasons ------------------------------------------------------------------------------------

_MAX_VALUE_CHARS: Final = 60
_MAX_SHOWN_CHANGES: Final = 3


class FirstDifference(NamedTuple):
    """The first difference between two casts.

    Attributes:
        step: the number of the step, which is the same in both casts; 0 if the casts differ before their first step.
        a: the socket to which the step of cast A leads, or ``end``; None if the step failed or has no answer yet.
        b: the socket to which the step of cast B leads, or ``end``; None if the step failed or has no answer yet.
        lines: sentences that explain which answer, verdict, edge or exit caused the difference.
        aspects: the aspects in which the steps differ; empty if only one cast continued or the casts ended differently.
        lane: the name of the lane of the step, or "" if the step did not run in a lane.
        shorter: the cast (``A`` or ``B``) with fewer steps, if this is the only difference; otherwise "".
    """

    step: int
    a: str | None
    b: str | None
    lines: tuple[str, ...]
    aspects: tuple[Aspect, ...] = ()
    lane: str = ""
    shorter: Literal["", "A", "B"] = ""

    @property
    def location(self) -> str:
        """The number and the lane of the step, such as ``step 3 in lane blue``."""
        return f"step {self.step}{f' in lane {self.lane}' if self.lane else ''}"

    @property
    def why(self) -> str:
        """The explanation of the difference, as one string."""
        return " ".join(self.lines)

    def __str__(self) -> str:
        return f"S{self.location[1:]}: " + "\n  ".join(self.lines)


def explain_difference(
    left: StepRecord,
    right: StepRecord,
    aspects: tuple[Aspect, ...],
    cast_ids: tuple[str, str],
    casts: ComparedCasts | None,
) -> FirstDifference:
    """Explain why two steps differ although all earlier steps are equal. ``casts`` are the casts of the steps."""
    lines: list[str] = []
    visit = visit_text(left)
    if "socket" in aspects:
        lines.append(f"A visited {visit}, but B visited {visit_text(right)}.")
    if "given" in aspects:
        changes = value_changes(left.before.data, right.before.data, cast_ids)
        lines.append(f"A person changed the state before this step: {_list_changes(changes, 'state')}.")
    if "answer" in aspects and "socket" not in aspects:
        lines.append(_explain_answers(visit, left, right, cast_ids))
    if "route" in aspects or "socket" in aspects:
        lines += [_explain_decision("A", left), _explain_decision("B", right)]
    elif "answer" in aspects:
        lines.append(f"Both casts went to {left.name_of(step_target(left) or 'no socket')}.")
    if "state" in aspects and not {"answer", "socket", "given"} & {*aspects}:
        changes = value_changes(left.after.data, right.after.data, cast_ids)
        lines.append(f"The values assigned to the state differ: {_list_changes(changes, 'state')}.")
    lines += _explain_loadouts(casts, left, right)
    return FirstDifference(left.number, step_target(left), step_target(right), tuple(lines), aspects, left.lane)


def compare_ends(a: ComparedCast, b: ComparedCast) -> FirstDifference | None:
    """Return the difference if one cast has more steps or the casts ended differently; otherwise return None.

    All steps that both casts have must be equal.
    """
    steps, others = a.session.steps, b.session.steps
    count = min(len(steps), len(others))
    left, right = (step_target(each[count - 1]) if count else None for each in (steps, others))
    start = a.session.start
    number, lane = start.steps + count, start.lane.name if start.lane is not None else ""
    if len(steps) != len(others):
        shorter, longer, names = (a, b, "AB") if len(steps) < len(others) else (b, a, "BA")
        visit = visit_text(longer.session.steps[count])
        line = f"{names[0]} {_status_text(shorter)} now, but {names[1]} continued with {visit}."
        return FirstDifference(number, left, right, (line,), (), lane, "A" if shorter is a else "B")
    if _end_key(a) == _end_key(b):
        return None
    return FirstDifference(number, left, right, (f"A {_status_text(a)}; B {_status_text(b)}.",), (), lane)


def _end_key(cast: ComparedCast) -> tuple[str, str | None]:
    state = cast.session.state
    return state.status, state.failure.kind if state.failure else None


def _status_text(cast: ComparedCast) -> str:
    state = cast.session.state
    if state.failure is not None:
        return f"is {state.status} ({short_label(state.failure.message, _MAX_VALUE_CHARS)})"
    return f"is {state.status}"


def visit_text(step: StepRecord) -> str:
    """Return the name of a step's socket, and the title of its work item in parentheses."""
    item = short_label(step.item_label or step.item_key or "", _MAX_VALUE_CHARS)
    return f"{step.name} ({item})" if item else step.name


def _explain_answers(visit_name: str, left: StepRecord, right: StepRecord, cast_ids: tuple[str, str]) -> str:
    a, b = step_answer(left), step_answer(right)
    parts = differing_prompt_parts(left.prompt, right.prompt, cast_ids)
    prompts = f"Their prompts differ in: {', '.join(parts)}." if parts else ""
    if a is None or b is None:
        side = "neither cast" if a is b else "only B" if a is None else "only A"
        text = f"{visit_name} has an answer in {side}."
    elif isinstance(a, dict | list) and isinstance(b, dict | list):
        changes = value_changes(a, b, cast_ids)
        text = f"{visit_name} answered differently: {_list_changes(changes, '$')}."
        text = text if changes else _explain_turns(visit_name, left, right)
    elif is_same_value(a, b, cast_ids):
        text = _explain_turns(visit_name, left, right)
    else:
        text = f"{visit_name} answered differently: {_both_values_text(a, b)}."
    return f"{text} {prompts}".strip()


def _explain_turns(visit_name: str, left: StepRecord, right: StepRecord) -> str:
    turns, others = len(left.turns), len(right.turns)
    if turns == others:
        return f"{visit_name} answered differently in an earlier turn of the visit."
    return f"{visit_name} needed {counted(turns, 'turn')} in A and {counted(others, 'turn')} in B."


def _list_changes(changes: list[ValueChange], root: str) -> str:
    """Return a sentence fragment that lists the first changes. Changes of ``satisfied`` come first."""
    ordered = sorted(changes, key=lambda change: change.path.rpartition(".")[2] != "satisfied")
    return _join_first(
        f"{f'{root}.{change.path}' if change.path else root} is {_both_values_text(change.a, change.b)}"
        for change in ordered
    )


def _join_first(texts: Iterable[str]) -> str:
    all_texts = list(texts)
    hidden_count = len(all_texts) - _MAX_SHOWN_CHANGES
    return "; ".join([*all_texts[:_MAX_SHOWN_CHANGES], *([f"and {hidden_count} more"] if hidden_count > 0 else [])])


def _explain_decision(name: str, step: StepRecord) -> str:
    decision = step.decision
    if decision is None:
        return f"{name} is waiting for an answer."
    if decision.failure is not None:
        return f"{name} stopped: {short_label(decision.failure.message, _MAX_VALUE_CHARS)}"
    check, target = decision.chosen, step.name_of(decision.target or "")
    if check is None:
        return f"{name} went to {target} ({decision.by})."
    edge = f"exit {check.route}" if check.edge_index is None else f"edge {check.edge_index + 1}"
    return f"{name} took {edge} to {target}: {check.reason(decision.result)}."


def _explain_loadouts(casts: ComparedCasts | None, left: StepRecord, right: StepRecord) -> list[str]:
    """Return a list with a sentence about the differences between the definitions of the socket, or an empty list."""
    if casts is None or left.socket != right.socket:
        return []
    loadouts = LoadoutComparison(casts[0].rules.graph, casts[1].rules.graph)
    rows = [row.named(left.names) for row in loadouts.differences if row.of == left.socket]
    differences = _join_first(f"{row.field} is {_both_values_text(row.a, row.b)}" for row in rows)
    return [f"The loadouts define this socket differently: {differences}."] if rows else []


def _both_values_text(a: JSON, b: JSON) -> str:
    left, right = (
        f'"{text}"' if isinstance(value, str) else text
        for value, text in zip((a, b), format_difference(a, b, _MAX_VALUE_CHARS), strict=True)
    )
    return f"{left} in A, {right} in B"


# -- casts --------------------------------------------------------------------------------------

_IsDifferent: TypeAlias = Callable[[StepRecord, StepRecord], bool]


class StepPair(NamedTuple):
    """A step of cast A and the corresponding step of cast B; either is None if that cast has no corresponding step.

    ``differs`` contains the aspects in which the two steps differ.
    """

    a: StepRecord | None
    b: StepRecord | None
    differs: tuple[Aspect, ...] = ()

    @property
    def own_differences(self) -> tuple[Aspect, ...]:
        """The aspects in which the steps differ, excluding differences that result from earlier steps."""
        inherited = {"given", "state"} if "given" in self.differs else {"given"}
        return tuple(aspect for aspect in self.differs if aspect not in inherited)

    @property
    def side(self) -> Side:
        """The casts that contain the step: ``A``, ``B`` or ``both``."""
        return "A" if self.b is None else "B" if self.a is None else "both"


class Comparison:
    """The comparison of the casts ``a`` and ``b``. It is true in a boolean context if their steps or ends differ."""

    def __init__(self, a: ComparedCast, b: ComparedCast) -> None:
        """Prepare the comparison of two casts. Each difference is computed when it is first accessed."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def _ids(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    @cached_property
    def first(self) -> FirstDifference | None:
        """The first difference between the steps or ends of the casts, explained, or None if the casts are equal."""
        return self.first_where(lambda left, right: bool(differing_aspects(left, right, self._ids)))

    def first_where(self, is_different: _IsDifferent) -> FirstDifference | None:
        """Explain the first pair of steps for which ``is_different`` returns True. Lanes are searched one after another.

        If no pair of steps differs, return the difference between the ends of the casts, or None if the ends are equal.
        """
        runs_of_a = {streams.step: streams for streams in self.a.session.streams}
        runs_of_b = {streams.step: streams for streams in self.b.session.streams}
        for left, right in zip(self.a.session.steps, self.b.session.steps, strict=False):
            if is_different(left, right):
                aspects = differing_aspects(left, right, self._ids)
                return explain_difference(left, right, aspects, self._ids, (self.a, self.b))
            lanes_of_a, lanes_of_b = runs_of_a.get(left.number), runs_of_b.get(left.number)
            if (difference := self._first_in_lanes(lanes_of_a, lanes_of_b, left, is_different)) is not None:
                return difference
        return compare_ends(self.a, self.b)

    def _first_in_lanes(
        self, left: Streams | None, right: Streams | None, step: StepRecord, is_different: _IsDifferent
    ) -> FirstDifference | None:
        """Return the first difference in the lanes that started after a step, or None if the lanes are equal."""
        if left is None or right is None:
            if left is right:
                return None
            shorter, longer = ("B", "A") if right is None else ("A", "B")
            line = f"{longer} has distributed the items to lanes, but {shorter} has not."
            target = step_target(step)
            return FirstDifference(step.number, target, target, (line,), (), "", "B" if right is None else "A")
        differences = []
        for name in left.lanes:
            if name in right.lanes:
                a = self.a._replace(session=left.lanes[name].session)
                b = self.b._replace(session=right.lanes[name].session)
                if (difference := Comparison(a, b).first_where(is_different)) is not None:
                    differences.append(difference)
        complete = (difference for difference in differences if not difference.shorter)
        return next(complete, differences[0] if differences else None)

    @property
    def unfinished(self) -> str | None:
        """The unfinished cast (``A`` or ``B``) if the casts differ only because it has fewer steps; otherwise None."""
        name = "" if self.first is None else self.first.shorter
        shorter = self.a if name == "A" else self.b
        return name if name and shorter.session.state.status in ("ready", "waiting") else None

    @cached_property
    def pairs(self) -> tuple[StepPair, ...]:
        """All steps of both casts, aligned in pairs.

        As long as both casts visit the same sockets and items, steps are aligned by position; after that, they are
        aligned by socket, item and visit number.
        """
        steps, others = tuple(all_steps(self.a.session)), tuple(all_steps(self.b.session))
        common = 0
        for left, right in zip(steps, others, strict=False):
            if (left.socket, left.item_key, left.lane) != (right.socket, right.item_key, right.lane):
                break
            common += 1
        aligned: list[_Aligned] = list(zip(steps[:common], others[:common], strict=True))
        aligned += _align(steps[common:], others[common:])
        return tuple(
            StepPair(left, right, differing_aspects(left, right, self._ids) if left and right else ())
            for left, right in aligned
        )

    @cached_property
    def state(self) -> list[ValueChange]:
        """The differences between the current states of the casts."""
        return value_changes(self.a.session.state.data, self.b.session.state.data, self._ids)

    @property
    def loadouts(self) -> LoadoutComparison:
        """The comparison of the loadouts of the two casts."""
        return LoadoutComparison(self.a.rules.graph, self.b.rules.graph)

    @property
    def differing_step(self) -> StepComparison | None:
        """The comparison of the first steps that differ, or None if a cast lacks the step or the casts are equal."""
        first, steps = self.first, list[StepRecord]()
        if first is None:
            return None
        for cast in (self.a, self.b):
            candidates = all_steps(cast.session) if first.lane else cast.session.steps[first.step - 1 :][:1]
            steps += [step for step in candidates if (step.number, step.lane) == (first.step, first.lane)]
        return StepComparison(steps[0], steps[1], (self.a, self.b)) if len(steps) == 2 else None

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """The tokens and the cost of cast A and of cast B."""
        return self.a.session.state.usage, self.b.session.state.usage

    @property
    def time(self) -> tuple[int | None, int | None]:
        """The work time of cast A and of cast B in milliseconds; None for a cast whose work time is unknown (R56)."""
        a, b = (work_time(all_steps(cast.session))[0] for cast in (self.a, self.b))
        return a, b

    @property
    def sockets(self) -> Mapping[str, Side]:
        """The casts (``A``, ``B`` or ``both``) that visited each socket, by socket id."""
        return sides_of(*([step.socket for step in all_steps(cast.session)] for cast in (self.a, self.b)))

    @property
    def routes(self) -> Mapping[Route, Side]:
        """The casts (``A``, ``B`` or ``both``) that took each edge or exit."""
        return sides_of(_routes_taken(self.a), _routes_taken(self.b))


class StepComparison:
    """The comparison of the steps ``a`` and ``b`` of one or two casts; true in a boolean context if they differ."""

    def __init__(self, a: StepRecord, b: StepRecord, casts: ComparedCasts | None = None) -> None:
        """Prepare the comparison of two steps. ``casts`` are the casts of the steps; their ids in texts are ignored."""
        self.a, self.b, self.casts = a, b, casts
        self._ids = ("", "") if casts is None else (casts[0].name, casts[1].name)

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def differs(self) -> tuple[Aspect, ...]:
        """The aspects in which the steps differ.

        Differences between the states are ignored, because earlier steps may have caused them.
        """
        aspects = differing_aspects(self.a, self.b, self._ids)
        return tuple(aspect for aspect in aspects if aspect not in ("given", "state"))

    @cached_property
    def first(self) -> FirstDifference | None:
        """The difference between the steps and its explanation, or None if the steps are equal."""
        return explain_difference(self.a, self.b, self.differs, self._ids, self.casts) if self.differs else None

    @cached_property
    def answer(self) -> list[ValueChange]:
        """The differences between the answers of the steps."""
        return value_changes(step_answer(self.a), step_answer(self.b), self._ids)

    @cached_property
    def state(self) -> list[ValueChange]:
        """The differences between the states after the steps."""
        return value_changes(self.a.after.data, self.b.after.data, self._ids)

    @cached_property
    def prompt(self) -> tuple[str, ...]:
        """The names of the parts in which the prompts of the steps differ."""
        return differing_prompt_parts(self.a.prompt, self.b.prompt, self._ids)


def previous_visit(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the previous visit to the socket of a step, preferably for the same item.

    Raises:
        MateriaError: kind ``no_step``: the socket was not visited before.
    """
    index = number - steps[0].number  # the steps of a lane are numbered from where it began
    step = steps[index]
    earlier_visits = [visit for visit in steps[:index] if visit.socket == step.socket]
    if not earlier_visits:
        message = f"The socket of step {number} was not visited before."
        raise MateriaError(message, hint="compare other steps", kind="no_step")
    return next((visit for visit in reversed(earlier_visits) if visit.item_key == step.item_key), earlier_visits[-1])


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
    """Return the key of each step: its lane, its socket, its item, and the visit number for this item."""
    keys = ((step.lane, step.socket, step.item_key or "") for step in steps)
    return [(*key, repeat) for key, repeat in number_repeats(keys)]


def _routes_taken(cast: ComparedCast) -> list[Route]:
    routes: list[Route] = []
    for decision in (step.decision for step in all_steps(cast.session)):
        if decision is None or decision.socket is None or decision.failure is not None:
            continue
        chosen = decision.chosen
        if chosen is not None:
            routes.append((decision.socket, chosen.route or chosen.edge_index or 0))
        elif decision.by == "implied end":
            routes.append((decision.socket, "end"))
    return routes


# -- loadouts -----------------------------------------------------------------------------------

_ComparedObject: TypeAlias = Socket | Loop | Materia | Limits | Budget
_NOT_COMPARED: Final = frozenset(
    {"id", "edges", "materia", "loops", "routes", "layout", "parse_derived", "raw", "folder", "group"}
)  # Fields that are not compared as a whole, because their parts are compared or because they cannot affect a route.
# Fields that are listed for a socket or loop that only one of the loadouts contains.
_SHOWN_ALONE: Final = ("materia", "sockets")


class LoadoutDifference(NamedTuple):
    """A field whose value differs between two loadouts; the value is MISSING if a loadout lacks the field."""

    of: str
    field: str
    a: JSON
    b: JSON

    def named(self, names: Mapping[str, str]) -> LoadoutDifference:
        """Return a copy in which display names replace socket ids, except in raw JSON values of the config."""
        is_route = self.field.partition(" ")[0] in ("entry", "edge", "exit")
        a, b = (with_names(value, names) if is_route and isinstance(value, str) else value for value in self[2:])
        return self._replace(of=names.get(self.of, self.of), a=a, b=b)


class LoadoutComparison:
    """The comparison of two loadouts. It is true in a boolean context if their casts could take different routes.

    Differences between names are ignored.
    """

    def __init__(self, a: Graph, b: Graph) -> None:
        """Prepare the comparison of two loadouts. The differences are computed when they are first accessed."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return bool(self.differences)

    @cached_property
    def differences(self) -> tuple[LoadoutDifference, ...]:
        """The differences between the loadouts themselves, their sockets, loops, materia and limits, in this order."""
        groups = zip(_compared_fields(self.a), _compared_fields(self.b), strict=True)
        return tuple(difference for left, right in groups for difference in _compare_parts(left, right))

    @property
    def sockets(self) -> Mapping[str, Side]:
        """The loadouts (``A``, ``B`` or ``both``) that contain each socket, by socket id."""
        return sides_of(self.a.sockets, self.b.sockets)

    @property
    def routes(self) -> Mapping[Route, Side]:
        """The loadouts (``A``, ``B`` or ``both``) that contain each edge or exit; edges are identified by number."""
        return sides_of(_route_texts(self.a), _route_texts(self.b))

    @property
    def changed_routes(self) -> frozenset[Route]:
        """The edges and exits that both loadouts contain, but whose target, condition or limit differs."""
        left, right = _route_texts(self.a), _route_texts(self.b)
        return frozenset(key for key in left.keys() & right.keys() if left[key] != right[key])


def _compared_fields(graph: Graph) -> list[dict[str, dict[str, JSON]]]:
    """Return the fields to compare in five groups: the loadout itself, sockets, loops, materia and limits."""
    sockets, loops = graph.sockets, graph.loops.values()
    return [
        {"loadout": {"entry": graph.entry}},
        {
            id_: {"materia": socket.materia.id, **_fields(socket), **_numbered("edge", map(_edge_text, socket.edges))}
            for id_, socket in sockets.items()
        },
        {f"loop {loop.id}": {**_fields(loop), **_numbered("exit", map(_exit_text, loop.routes))} for loop in loops},
        {f"materia {socket.materia.id}": _fields(socket.materia) for socket in sockets.values()},
        {"limits": _fields(graph.limits), "budget": _fields(graph.budget)},
    ]


def _fields(part: _ComparedObject) -> dict[str, JSON]:
    from pydantic_core import to_jsonable_python

    names = (field.name for field in fields(part) if field.name not in _NOT_COMPARED)
    return {name: to_jsonable_python(getattr(part, name)) for name in names}


def _numbered(name: str, texts: Iterable[str]) -> dict[str, JSON]:
    return {f"{name} {number}": text for number, text in enumerate(texts, start=1)}


def _compare_parts(
    left: Mapping[str, Mapping[str, JSON]], right: Mapping[str, Mapping[str, JSON]]
) -> Iterator[LoadoutDifference]:
    for name, side in sides_of(left, right).items():
        a, b = left.get(name, {}), right.get(name, {})
        for field in {**a, **b}:
            values = a.get(field, MISSING), b.get(field, MISSING)
            if not equal_json(*values) and (side == "both" or field in _SHOWN_ALONE):
                yield LoadoutDifference(name, field, *values)


def _edge_text(edge: Edge) -> str:
    limit = "" if edge.max_traversals is None else f", at most {counted(edge.max_traversals, 'time')}"
    return f"{edge.when} to {edge.to}{limit}"


def _exit_text(route: ExitRoute) -> str:
    return f"{route.condition} from {route.source} to {route.target}"


def _route_texts(graph: Graph) -> dict[Route, str]:
    routes: dict[Route, str] = {}
    for socket in graph.sockets.values():
        routes |= {(socket.id, edge.index): _edge_text(edge) for edge in socket.edges}
    for loop in graph.loops.values():
        routes |= {(route.source, route.edge_id): _exit_text(route) for route in loop.routes}
    return routes
