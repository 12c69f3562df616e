"""Warnings about complete casts (R45), and explanations of differences from recorded routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from materia_nb.engine.events import Transition
from materia_nb.engine.item_edits import entry_of
from materia_nb.engine.items import is_iterated_by, item_at, list_at, positions_of, show_only
from materia_nb.engine.routing import Decision, SkippedSocket
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, current_item_id, id_after_edits
from materia_nb.engine.state import BOUNDS, CastState, Draft, Item, ItemId, Iteration, Position
from materia_nb.errors import counted
from materia_nb.handoff.checks import summarize_issues
from materia_nb.jsonvalue import JSON, as_list, compact, get_path
from materia_nb.loadout.topology import reachable_from
from materia_nb.loadout.vocabulary import REWORK_CONDITIONS, Result

_WarningCode: TypeAlias = Literal[
    "unanswered-verdict",
    "no-edge-matched",
    "exhausted-unmatched",
    "items-left",
    "empty-loop",
    "never-worked-on",
    "same-again",
    "empty-answer",
    "budget-blind",
]


_CODES: Final[tuple[_WarningCode, ...]] = get_args(_WarningCode)

_LabelledTexts: TypeAlias = frozenset[tuple[str, str]]

SHORTENED_FACTOR: int = 10
"""A field counts as shortened if its value in a refused answer was more than this many times as long."""


class CastWarning(NamedTuple):
    """A warning about a complete cast.

    Attributes:
        code: the kind of warning.
        message: a sentence that describes the problem.
        socket: the affected socket, or None.
        step: the number of the affected step; for an empty loop, the step that was entered instead.
        item: the key of the affected item, or None.
        sockets: for an empty loop, the sockets that are reachable only through the exits of this loop and that never
            ran.
    """

    code: _WarningCode
    message: str
    socket: str | None = None
    step: int | None = None
    item: str | None = None
    sockets: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_json(self) -> dict[str, JSON]:
        """Return the fields that are not empty as a JSON object for the journal."""
        fields: dict[str, JSON] = {**self._asdict(), "sockets": list(self.sockets)}
        return {name: value for name, value in fields.items() if value not in (None, [])}


def find_warnings(rules: Rules, session: Session) -> tuple[CastWarning, ...]:
    """Return the warnings about a complete cast (R45), or () if the cast is not complete.

    The warnings about the lanes of the cast come last.
    """
    if session.state.status != "complete":
        return ()
    all_decisions = (decision for step in session.steps for decision in (step.entry, step.decision))
    decisions = [decision for decision in (*all_decisions, session.ending) if decision is not None]

    def item_of(decision: Decision) -> ItemId | None:
        if decision.item is None or not session.edits:
            return decision.item
        later_edits = (edit for edit in session.edits if edit.step > decision.step - (edit.before.next is not None))
        return id_after_edits(rules, later_edits, decision.item)

    items_left = tuple(_open_items_warning(rules, session))
    iterators = [rules.graph.sockets[decision.socket or ""].iterator for decision in items_left]
    counted_cursor = iterators[0].cursor if iterators and iterators[0] is not None else None
    return (
        *_route_warnings(rules, decisions, item_of),
        *items_left,
        *_unvisited_item_warnings(rules, session, decisions, counted_cursor),
        *_answer_warnings(rules, session),
        *_uncounted_usage_warnings(session.state),
        *_lane_warnings(rules, session),
    )


def _lane_warnings(rules: Rules, session: Session) -> Iterator[CastWarning]:
    for streams in session.streams:
        for lane in streams.lanes.values():
            for warning in find_warnings(rules, lane.session):
                yield warning._replace(message=f"in lane {lane.name}: {warning.message}")


def latest_step_repeats(rules: Rules, session: Session) -> bool:
    """Return True if the latest step repeats the output or reason of an earlier visit; see :func:`repeated_steps`."""
    latest = session.steps[-1]
    socket_steps = [step for step in session.steps if step.at.socket == latest.at.socket]
    same_item_steps = [step for step in socket_steps if session.edits or step.item_key == latest.item_key]
    return any(step is latest for step in repeated_steps(rules, session, same_item_steps))


def repeated_steps(rules: Rules, session: Session, steps: Iterable[StepRecord] | None = None) -> Sequence[StepRecord]:
    """Return the steps that repeat the output or reason of an earlier visit to the same socket and item (R64).

    Differences in whitespace are ignored, and so are outputs that a person pinned or corrected. ``steps`` are the steps
    to compare; all steps by default.
    """
    visits: dict[object, list[StepRecord]] = {}
    for step in session.steps if steps is None else steps:
        if step.pinned is not None or step.decision is None or not step.turns:
            continue
        item = current_item_id(rules, session, step)
        if item is not None or step.at.item is None:
            visits.setdefault((step.socket, item), []).append(step)
    repeating_steps: list[StepRecord] = []
    for item_steps in visits.values():
        earlier_texts: dict[str | None, set[tuple[str, str]]] = {}
        for step in item_steps if len(item_steps) > 1 else ():
            texts, about = _labelled_texts(step), step.at.item
            known_texts = earlier_texts.setdefault(None if about is None else compact(about.value), set())
            if texts & known_texts:
                repeating_steps.append(step)
            known_texts |= texts
    return sorted(repeating_steps, key=lambda step: step.number)


def _labelled_texts(step: StepRecord) -> _LabelledTexts:
    turn = step.turns[-1]
    if turn.mode == "correction" or (turn.reading is not None and not turn.reading.accepted):
        return frozenset()
    reason = turn.reading.context if turn.reading is not None else None
    labelled_texts = (("output", turn.text), ("reason", reason or ""))
    return frozenset((kind, line) for kind, text in labelled_texts if (line := " ".join(text.split())))


def shortened_fields(rules: Rules, step: StepRecord) -> Sequence[str]:
    """Return the fields of an accepted answer that were much longer in an earlier, refused answer (R64)."""
    last = step.turns[-1] if len(step.turns) > 1 else None
    value = last.reading.value if last is not None and last.reading is not None else None
    if last is None or last.mode == "correction" or not isinstance(value, dict):
        return ()
    if last.reading is None or not last.reading.accepted:
        return ()
    fields = rules.sockets[step.socket].required_fields or [name for name in value if isinstance(value[name], dict)]
    answers = [
        turn.reading.value
        for turn in step.turns[step.turns_before_retry : -1]
        if turn.reading is not None and not turn.reading.accepted and isinstance(turn.reading.value, dict)
    ]
    return [
        name
        for name in fields
        if name in value and any(_size(value[name]) * SHORTENED_FACTOR < _size(answer.get(name)) for answer in answers)
    ]


def _size(value: JSON) -> int:
    return len(value.strip()) if isinstance(value, str) else 0 if value is None else len(compact(value))


def _answer_warnings(rules: Rules, session: Session) -> Iterator[CastWarning]:
    repeated = {step.number for step in repeated_steps(rules, session)}
    for step in session.steps:
        if step.number in repeated:
            item_phrase = f" for item {step.item_label or step.item_key}" if step.item_key is not None else ""
            message = f"{step.name} repeated an earlier output or reason{item_phrase} in visit {step.visit}"
            yield CastWarning("same-again", message, step.socket, step.number, step.item_key)
        if fields := shortened_fields(rules, step):
            message = (
                f"the accepted answer of {step.name} has less than a tenth of the content of its refused answer in "
                f"{', '.join(fields)}"
            )
            yield CastWarning("empty-answer", message, step.socket, step.number, step.item_key)


def _route_warnings(
    rules: Rules, decisions: Iterable[Decision], item_of: Callable[[Decision], ItemId | None]
) -> tuple[CastWarning, ...]:
    """Return the warnings about the route of a complete cast, in the order of the steps.

    Args:
        rules: the rules of the cast.
        decisions: all decisions in order, including decisions that only skipped empty loops.
        item_of: a function that returns the current id of the item of a decision, or None if the item was removed.
    """
    warnings: list[CastWarning] = []
    open_verdicts: dict[ItemId, CastWarning] = {}
    last: CastWarning | None = None
    empty_loops: list[tuple[Decision, SkippedSocket]] = []
    visited_sockets: set[str] = set()
    for decision in decisions:
        empty_loops += [(decision, skip) for skip in decision.skips if skip.empty]
        if decision.socket is None:
            continue
        visited_sockets.add(decision.socket)
        cursors = rules.sockets[decision.socket].consumer_cursors
        if cursors:  # the items are new, so verdicts on the old items no longer matter
            open_verdicts = {id_: verdict for id_, verdict in open_verdicts.items() if not is_iterated_by(id_, cursors)}
        verdict = _unanswered_verdict_warning(rules, decision)
        last = verdict if decision.item is None else None
        if decision.item is not None:
            item = item_of(decision)
            if item is not None:
                open_verdicts.pop(item, None)
            if verdict is not None and decision.done:
                warnings.append(verdict)
            elif verdict is not None and item is not None:
                open_verdicts[item] = verdict
        warnings += _unmatched_result_warnings(rules, decision)
    warnings += open_verdicts.values()
    warnings += [last] if last is not None else []
    warnings += _empty_loop_warnings(rules, empty_loops, visited_sockets)
    return tuple(sorted(warnings, key=lambda warning: (warning.step or 0, _CODES.index(warning.code))))


def _open_items_warning(rules: Rules, session: Session) -> Iterator[CastWarning]:
    """Yield a warning if the cast ended before the end of a list because the last socket has no edge (R3)."""
    last = session.steps[-1].decision if session.steps else None
    if last is None or last.by != "implied end" or last.exhausted or last.socket is None:
        return
    socket = rules.graph.sockets[last.socket]
    if socket.iterator is None or socket.edges:  # no-edge-matched reports a socket that has edges
        return
    count = len(list_at(socket.iterator.items, session.state)) - session.state.cursors.get(socket.iterator.cursor, 0)
    if count > 0:
        message = (
            f"{rules.graph.names[last.socket]} has no edge, so the cast ended there with {counted(count, 'item')} left"
        )
        yield CastWarning("items-left", message, last.socket, last.step, last.item_key)


def _unvisited_item_warnings(
    rules: Rules, session: Session, decisions: Sequence[Decision], counted_cursor: str | None
) -> Iterator[CastWarning]:
    """Yield a warning for each unprocessed item of a loop that was entered or of a list that was edited (R46, R67).

    Items in the list of ``counted_cursor`` are omitted, because another warning counts them. An inner list is checked
    separately for each outer item (R34).
    """
    state, edited_paths = session.state, {path for edit in session.edits for path in edit.lists}
    skipped_sockets = (skip.socket for decision in decisions for skip in decision.skips if not skip.empty)
    replaced = {
        iteration.iterator.cursor for socket in skipped_sockets if (iteration := rules.sockets[socket].iteration)
    }
    for path, iterations in rules.lists.items():
        entered_iterations = [iteration for iteration in iterations if iteration.iterator.cursor in state.cursors]
        for iteration in entered_iterations or (iterations[:1] if ".".join(path) in edited_paths else ()):
            cursor = iteration.iterator.cursor
            if cursor == counted_cursor:
                continue
            for outer_item, items, is_new in _iterated_lists(rules, session, iteration):
                for item, why in _unvisited_items(session, iteration, items, outer_item, is_new or cursor in replaced):
                    outer_phrase = "" if outer_item is None else f" of {outer_item.label}"
                    message = f"item {item.label}{outer_phrase} was never worked on: {why}"
                    yield CastWarning("never-worked-on", message, entry_of(rules, iteration), None, item.key)


def _unvisited_items(
    session: Session, iteration: Iteration, items: list[JSON], outer_item: Item | None, is_replaced: bool
) -> Iterator[tuple[Item, str]]:
    """Yield each unprocessed item of a list, with the reason why no visit processed it.

    An item before the cursor counts as processed, unless the item was skipped or the list was replaced. Every other
    item counts as processed only if a visit at the same index had an equal item or an item with the same title.
    """
    state, cursor = session.state, iteration.iterator.cursor
    outer = () if outer_item is None else positions_of(outer_item.id)
    cursor_position = state.cursors.get(cursor, 0) if state.nesting.get(cursor, ()) == outer else 0
    identities: Mapping[int, set[str]] | None = None
    for index in range(len(items)) if state.lane is None or state.lane.cursor != cursor else state.lane.indexes:
        item = item_at(iteration, items, index, outer)
        was_entered = state.passed_items.get((cursor, index, outer))
        if item is None or item.id in state.items or item.id in state.joined_items or was_entered:
            continue
        why = "the cast ended before reaching it"
        if index < cursor_position and was_entered is None:
            if session.edits or not is_replaced:
                continue
            why = "the list was replaced after its loop had passed this position"
        if was_entered is None:
            identities = _visited_identities(session, cursor, outer) if identities is None else identities
            if not identities[index].isdisjoint(_identities(items[index])):
                continue
        yield item, why


def _iterated_lists(
    rules: Rules, session: Session, iteration: Iteration
) -> Iterator[tuple[Item | None, list[JSON], bool]]:
    """Yield the lists of ``iteration``, each with its outer item or None (R34), and True if that item was replaced."""
    state, cursor = session.state, iteration.iterator.cursor
    items = [item for step in session.steps if (item := step.at.item) is not None]
    outer_keys = {item.outer for item in items if item.cursor == cursor} | {state.nesting.get(cursor, ())}
    outer_cursors = {outer[-1][0] for outer in outer_keys if outer}
    if not outer_cursors:
        yield None, list_at(iteration.iterator.items, state), False
    steps_within: dict[tuple[Position, ...], list[StepRecord]] = {}
    for step in session.steps if outer_cursors else ():
        item_positions = () if step.at.item is None else positions_of(step.at.item.id)
        for depth, (name, _) in enumerate(item_positions, start=1):
            if name in outer_cursors:
                steps_within.setdefault(item_positions[:depth], []).append(step)
    for outer, steps in steps_within.items():
        yield from _inner_list(rules, session, iteration, outer, steps)


def _inner_list(
    rules: Rules, session: Session, iteration: Iteration, outer: tuple[Position, ...], steps: Sequence[StepRecord]
) -> Iterator[tuple[Item, list[JSON], bool]]:
    """Yield an outer item, its inner list, and True if the outer item was replaced; yield nothing for a removed item.

    Values that are assigned inside an outer item are removed when the item ends, so the list is usually taken from the
    state after the last visit inside the item. If a person edited lists or replaced the outer item, the list is taken
    from the current outer item instead.
    """
    inner_steps = [step for step in steps if step.at.item is not None and step.at.item.outer == outer]
    outer_shown = None
    items: list[JSON] = []
    for step in inner_steps[-1:] or reversed(steps):
        after = Draft(step.after)
        if len(after.shown) < len(outer):  # an edit abandoned the outer item
            continue
        show_only(after, after.shown[: len(outer)])
        outer_shown = after.shown[-1]
        items = list_at(iteration.iterator.items, after, outer_shown.item)
        if items:
            break
    if outer_shown is None:
        return
    outer_iteration, outer_item, is_new = outer_shown.iteration, outer_shown.item, False
    if len(outer) == 1:
        later_edits = (edit for edit in session.edits if edit.step >= steps[-1].number)
        moved_id = id_after_edits(rules, later_edits, outer_item.id)
        current_item = moved_id and item_at(
            outer_iteration, list_at(outer_iteration.iterator.items, session.state), moved_id[1]
        )
        if not current_item:
            return
        is_new = _identities(current_item.value).isdisjoint(_identities(outer_item.value))
        if session.edits or is_new:
            alias = next(alias for alias in outer_iteration.paths if iteration.list_path[: len(alias)] == alias)
            items = as_list(get_path(current_item.value, iteration.list_path[len(alias) :]))
        outer_item = current_item
    yield outer_item, items, is_new


def _visited_identities(session: Session, cursor: str, outer: tuple[Position, ...]) -> Mapping[int, set[str]]:
    """Return the identities of the visited items, by their index in the list of ``cursor``.

    Edits can move inner items. If the list is an inner list and the cast was edited, every index therefore maps to the
    identities of all visited items in all outer items.
    """
    visited: defaultdict[int, set[str]] = defaultdict(set)
    all_identities: set[str] = set()
    for item in (step.at.item for step in session.steps):
        if item is not None and item.cursor == cursor and (item.outer == outer or (outer and session.edits)):
            visited[item.position] |= _identities(item.value)
            all_identities |= visited[item.position]
    return defaultdict(lambda: all_identities) if outer and session.edits else visited


def _identities(entry: JSON) -> set[str]:
    title = entry.get("title") if isinstance(entry, dict) else None
    return {compact(entry)} | ({f"title {title}"} if isinstance(title, str) else set())


def _unanswered_verdict_warning(rules: Rules, decision: Decision) -> CastWarning | None:
    """Return a warning if no edge, exit or person handled an output that was not satisfied; otherwise, return None."""
    if decision.result is not Result.NO or decision.by in ("person", "detour", "return", "failure"):
        return None
    chosen = decision.chosen
    if chosen is not None and chosen.when in REWORK_CONDITIONS:
        target = rules.graph.sockets.get(chosen.to)
        iterator = target.iterator if target else None
        stays_in_list = iterator is not None and decision.item is not None and iterator.cursor == decision.item[0]
        if not (decision.done and chosen.kind == "edge" and stays_in_list):
            return None  # the work was sent back; a retry edge taken after the advance works on the next item instead
    item = decision.at.item if decision.at is not None else None
    of = f"{rules.graph.names.get(decision.socket or '', 'the socket')}{f' about item {item.label}' if item is not None else ''}"
    message = f"the last output of {of} has satisfied: false, but no edge or exit handled this result"
    return CastWarning("unanswered-verdict", message, decision.socket, decision.step, decision.item_key)


def _unmatched_result_warnings(rules: Rules, decision: Decision) -> list[CastWarning]:
    if decision.by != "implied end" or decision.socket is None:
        return []
    about = (decision.socket, decision.step, decision.item_key)
    socket, loops, name = rules.graph.sockets[decision.socket], rules.graph.loops, rules.graph.names[decision.socket]
    if not decision.exhausted and socket.edges:
        return [CastWarning("no-edge-matched", f"no edge of {name} matched, so the cast ended there", *about)]
    if decision.exhausted and any(loops[loop].routes for loop in socket.loops):
        message = f"{name} exhausted its list and no exit matched, so the cast ended there"
        return [CastWarning("exhausted-unmatched", message, *about)]
    return []


def _empty_loop_warnings(
    rules: Rules, empty_loops: list[tuple[Decision, SkippedSocket]], visited: set[str]
) -> list[CastWarning]:
    sockets_behind: dict[str, tuple[str, ...]] = {}
    warnings = []
    for decision, skip in empty_loops:
        unvisited_sockets: tuple[str, ...] = ()
        if skip.loop is not None:
            if skip.loop not in sockets_behind:
                sockets_behind[skip.loop] = _sockets_after_exits(rules, skip.loop)
            unvisited_sockets = tuple(socket for socket in sockets_behind[skip.loop] if socket not in visited)
        skipped_name = f"loop {skip.loop}" if skip.loop is not None else rules.graph.names[skip.socket]
        consequence = f"; {rules.graph.list_names(unvisited_sockets)} never ran" if unvisited_sockets else ""
        message = f"{skipped_name} was skipped, because its list is empty{consequence}"
        warnings.append(CastWarning("empty-loop", message, skip.socket, decision.step, None, unvisited_sockets))
    return warnings


def _sockets_after_exits(rules: Rules, loop: str) -> tuple[str, ...]:
    """Return the sockets that are reachable from the entry socket only through the exits of a loop."""
    sockets_behind = _sockets_from_entry(rules) - _sockets_from_entry(rules, loop)
    return tuple(socket for socket in rules.graph.sockets if socket in sockets_behind)


def _sockets_from_entry(rules: Rules, excluded_loop: str | None = None) -> set[str]:
    graph = rules.graph
    targets = {socket.id: [edge.to for edge in socket.edges] for socket in graph.sockets.values()}
    for loop in graph.loops.values():
        for route in loop.routes if loop.id != excluded_loop else ():
            targets[route.source].append(route.target)
    return reachable_from([graph.entry], targets)


def _uncounted_usage_warnings(state: CastState) -> tuple[CastWarning, ...]:
    """Return a warning for each quantity that the budget could not count (R56)."""
    missing = {bound.quantity: bound.unknown_turns(state.usage) for bound in BOUNDS}
    return tuple(
        CastWarning(
            "budget-blind",
            f"agents did not report the {bound.quantity} of {counted(missing[bound.quantity], 'turn')}, so the budget could not count them",
            bound.socket,
            bound.step,
        )
        for bound in state.uncounted_quantities
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the route of a recorded cast and the route that this engine chooses.

    Attributes:
        step: the number of the step after which the routes differ, starting at 1.
        recorded: the route of the recorded cast.
        ours: the route that this engine chooses.
        why: the reason for the choice of this engine.
    """

    step: int
    recorded: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step}: recorded {self.recorded}; this engine {self.ours}: {self.why}"


def engine_route(session: Session, step: Transition | None) -> str:
    """Return a phrase that describes what this engine does next.

    ``step`` is the transition into the next socket, or None if no socket was entered.
    """
    state = step.state if step else session.state
    visit = state.at
    if state.status == "waiting" and visit is not None:
        return f"continues to {visit.socket}" if step else f"is still waiting for an output of {visit.socket}"
    if state.status == "failed" and state.failure is not None:
        return f"fails ({state.failure.kind})"
    if state.status == "ready" and step is None:
        return f"continues to {state.next}"
    return "ends" if state.status in ("complete", "ready") else f"is {state.status}"


def engine_reason(session: Session, step: Transition | None, recorded_error: str = "") -> str:
    """Return the reason for this engine's route; ``recorded_error`` is the error that ended the recorded cast."""
    state = step.state if step else session.state
    if state.failure is not None:
        return state.failure.message
    decision = session.steps[-1].decision if session.steps else None
    if decision is None:
        return "the entry socket of the loadout comes first" if not session.steps else "the socket has not answered yet"
    if decision.issues:
        return f"the output of {decision.socket} cannot be used: {summarize_issues(decision.issues, 5)}"
    reason = _choice_reason(decision)
    if step is not None and step.decision is not None and step.decision.skipped_sockets:
        reason += f"; skipped because no item is left: {', '.join(step.decision.skipped_sockets)}"
    limit = _limit_reason(session.state, decision, recorded_error)
    return f"{limit}; {reason}" if limit else reason


def _choice_reason(decision: Decision) -> str:
    chosen = decision.chosen
    if chosen is None:
        return f"{decision.socket} has no matching edge or exit, so {decision.target or 'end'} follows"
    reason = chosen.reason(decision.result)
    return f"the first matching {chosen.kind} of {decision.socket} is the {chosen.kind} to {chosen.to}: {reason}"


def _limit_reason(state: CastState, decision: Decision, recorded_error: str) -> str | None:
    """Return the reason why the recorded cast stopped at a limit but this engine does not, or None for other errors.

    This engine counts some limits differently (R18), and does not have some limits at all (R21).
    """
    error = recorded_error.lower()
    if "visit limit" in error:
        return "this engine counts visits but does not limit them"
    chosen = decision.chosen
    if "traversal" not in error or chosen is None:
        return None
    total = state.traversals.get(f"{decision.socket}->{chosen.to}", 0)
    if chosen.limit is None:
        return (
            f"the recording limits the uses of this edge in the whole cast ({total} so far); inside items, this engine "
            "limits only edges with maxTraversals, and cycles in which the cursor does not advance"
        )
    if decision.item_key is None:
        return f"for this engine, this is use {(chosen.used or 0) + 1} of {chosen.limit}"
    return (
        f"the recording counts the uses of this edge in the whole cast ({total} of {chosen.limit} so far); this engine "
        f"counts the uses for each item, and this is use {(chosen.used or 0) + 1} of {chosen.limit} for item "
        f"{decision.item_key}"
    )
