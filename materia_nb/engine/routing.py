"""Choose the edge or exit after a visit (:func:`choose_edge`), count the uses of edges, and record decisions."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import (
    BOUNDS,
    NEW_ITEM,
    CastState,
    Draft,
    EdgeId,
    Failure,
    Item,
    ItemId,
    ItemRecord,
    StateView,
    Visit,
    has_limits,
)
from materia_nb.errors import counted
from materia_nb.handoff.base import Issue, Reading
from materia_nb.jsonvalue import JSON, FrozenDict
from materia_nb.loadout.graph import END, Edge, ExitRoute
from materia_nb.loadout.vocabulary import ACCEPTED, CONDITION_SPECS, WITHOUT_OUTPUT, Condition, Result, condition_spec

TargetReason: TypeAlias = Literal[
    "edge",
    "exit",
    "implied end",
    "empty loop",
    "repair",
    "draft",
    "finalize",
    "failure",
    "budget",
    "reissue",
    "pause",
    "escalate",
    "detour",
    "return",
    "person",
    "recording",
]
"""The reason why a step leads to its target."""


class RouteCheck(NamedTuple):
    """An edge or exit that was checked after a visit, and the result of this check."""

    kind: Literal["edge", "exit"]
    when: Condition
    to: str
    matched: bool
    edge_index: int | None = None
    route: str | None = None
    used: int | None = None
    limit: int | None = None

    def reason(self, result: Result) -> str:
        """Return a sentence that explains why the edge or exit matched this result or did not match."""
        condition = condition_spec(self.when)
        if not condition.matches_any_output or result not in ACCEPTED:
            return f"{result.sentence}; {self.when} needs {condition.needed_output}"
        if self.matched:
            return f"{self.when} matches"
        return f"{self.when} would match, but another exit has priority"


class Choice(NamedTuple):
    """The target that was chosen after a visit, the reason, and the edges or exits that were checked.

    ``edge`` or ``route`` is the edge or exit that was taken. ``used`` and ``limit`` are the number of uses of the
    edge and its limit.
    """

    target: str
    by: TargetReason
    checks: tuple[RouteCheck, ...] = ()
    edge: Edge | None = None
    route: ExitRoute | None = None
    used: int = 0
    limit: int | None = None


def choose_edge(rules: SocketRules, result: Result, exhausted: bool) -> Choice | None:
    """Choose the edge or exit to take after a visit; return None if the visit failed and no edge handles the failure.

    The running cast and ``why`` call this function directly; ``explore`` and ``odds`` call it through the engine.

    Args:
        rules: the rules of the visited socket.
        result: the result of the visit.
        exhausted: True if ``advance`` reached the end of the list, so an exit must be chosen.
    """
    if exhausted:
        return _choose_exit(rules.exits, result)
    return _choose_first_match(rules.socket.edges, result)


@lru_cache(maxsize=4096)  # so that steps of a long cast share the records of what was checked
def _choose_first_match(edges: tuple[Edge, ...], result: Result) -> Choice | None:
    """Choose the first matching edge. If no edge matches, the cast ends after an output (R3) and stops after a failure."""
    checks: list[RouteCheck] = []
    for edge in edges:
        is_match = CONDITION_SPECS[edge.when].matches(result)
        checks.append(RouteCheck("edge", edge.when, edge.to, is_match, edge.index, used=0))
        if is_match:
            return Choice(edge.to, "edge", tuple(checks), edge)
    return Choice(END, "implied end", tuple(checks)) if result in ACCEPTED else None


@lru_cache(maxsize=4096)
def _choose_exit(routes: tuple[ExitRoute, ...], result: Result) -> Choice:
    """Choose the exit whose condition matches, or else an ``always`` exit, or else the end (R16)."""
    matching = [route for route in routes if CONDITION_SPECS[route.condition].matches(result)]
    conditional = [route for route in matching if not CONDITION_SPECS[route.condition].matches_any_output]
    chosen = next(iter(conditional or matching), None)
    checks = tuple(
        RouteCheck("exit", route.condition, route.target, route is chosen, route=route.edge_id) for route in routes
    )
    if chosen is None:
        return Choice(END, "implied end", checks)
    return Choice(chosen.target, "exit", checks, route=chosen)


def handled_failures(rules: SocketRules) -> dict[Result, Result]:
    """Return the kinds of failure that the socket's edges handle, mapped to the first kind that takes the same edge."""
    first_kind_by_edge: dict[Edge | None, Result] = {}
    handled_kinds: dict[Result, Result] = {}
    for result in WITHOUT_OUTPUT:
        refusable = result is not Result.REFUSED or rules.requirements.parse != "text"  # any text is accepted
        if refusable and (choice := choose_edge(rules, result, exhausted=False)) is not None:
            handled_kinds[result] = first_kind_by_edge.setdefault(choice.edge, result)
    return handled_kinds


class AdvanceRecord(NamedTuple):
    """The effect of ``advance`` on a cursor: its positions before and after, and the length of the list (R14)."""

    when: str
    moved: bool
    cursor: str
    before: int
    after: int
    length: int
    exhausted: bool
    derived: bool


class AssignmentRecord(NamedTuple):
    """An assignment of a value to the state; ``found`` is True if the source had a value (R11)."""

    target: str
    source: str
    found: bool


class OutputEffects(NamedTuple):
    """The effects of an accepted output on the state: assignments, the advance, and warnings about knowledge."""

    assigned: tuple[AssignmentRecord, ...] = ()
    advance: AdvanceRecord | None = None
    warnings: tuple[Issue, ...] = ()


NO_EFFECTS: Final = OutputEffects()
NO_READING: Final = Reading(None)


class SkippedSocket(NamedTuple):
    """A socket that was skipped because its list had no further item (R16).

    Attributes:
        socket: the skipped socket.
        loop: the skipped loop, or None if the socket has its own ``foreach``.
        entries: the length of the list.
        route: the id of the exit that was taken instead, or None.
        target: the socket that was entered next.
    """

    socket: str
    loop: str | None
    entries: int
    route: str | None
    target: str

    @property
    def empty(self) -> bool:
        """True if the list was empty, and not only exhausted (R67)."""
        return self.entries == 0


class Decision(NamedTuple):
    """The routing decision at the end of a step, with its reasons.

    Attributes:
        step: the number of the step.
        by: the reason for the target.
        target: the next socket, ``end``, or None if the cast stopped.
        at: the completed or failed visit, or None if the decision only skipped empty loops.
        reading: the parsed output.
        result: the result of the visit.
        applied: the effects of an accepted output on the state.
        checks: the edges or exits that were checked, in order.
        skips: the sockets that were skipped before the next socket was entered.
        failure: the failure that stopped the cast, or None.
        done: True if the visit advanced the cursor past its item.
        exhausted: True if the list has no further item.
    """

    step: int
    by: TargetReason
    target: str | None
    at: Visit | None = None
    reading: Reading = NO_READING
    result: Result = Result.NOTHING
    applied: OutputEffects = NO_EFFECTS
    checks: tuple[RouteCheck, ...] = ()
    skips: tuple[SkippedSocket, ...] = ()
    failure: Failure | None = None
    done: bool = False
    exhausted: bool = False

    @property
    def socket(self) -> str | None:
        """Id of the visited socket, or None if the decision only skipped empty loops."""
        return self.at.socket if self.at else None

    @property
    def visit(self) -> int | None:
        """Number of the visit among the visits of its socket, counting from 1; None if only empty loops are skipped."""
        return self.at.visit if self.at else None

    @property
    def item(self) -> ItemId | None:
        """Id of the visit's item, or None outside a loop."""
        return self.at.item.id if self.at and self.at.item else None

    @property
    def item_key(self) -> str | None:
        """Key of the visit's item, such as WI-2, or None outside a loop."""
        return self.at.item.key if self.at and self.at.item else None

    @property
    def satisfied(self) -> bool | None:
        """Verdict of the output or of a person, or None if there is no verdict."""
        return self.result.satisfied

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Issues for which the output was refused."""
        return self.reading.issues

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """Warnings about the output and about the knowledge in it."""
        return self.reading.warnings + self.applied.warnings

    @property
    def assigned(self) -> tuple[AssignmentRecord, ...]:
        """Assignments from the output to the state."""
        return self.applied.assigned

    @property
    def advance(self) -> AdvanceRecord | None:
        """Movement of the cursor, or None if the socket has no ``advance``."""
        return self.applied.advance

    @property
    def skipped_sockets(self) -> tuple[str, ...]:
        """The sockets that were skipped before the next socket was entered, because their lists had no further item."""
        return tuple(skipped.socket for skipped in self.skips)

    @property
    def chosen(self) -> RouteCheck | None:
        """The edge or exit that was taken, or None."""
        return next((check for check in self.checks if check.matched), None)


def decision_of(
    visit: Visit | None,
    by: TargetReason,
    target: str | None,
    reading: Reading | None = None,
    applied: OutputEffects = NO_EFFECTS,
    *,
    result: Result | None = None,
) -> Decision:
    """Return the decision for a visit that takes no edge or exit; ``result`` overrides the result of the reading."""
    known_reading = reading or NO_READING
    step = 0 if visit is None else visit.step
    if result is None:
        result = Result.FAILED if reading is None and by == "failure" else known_reading.result
    return Decision(step, by, target, visit, known_reading, result, applied)


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """Return the fields that identify a visit in an event, under the field names of the reference engine."""
    socket_rules, item = rules.sockets[visit.socket], visit.item
    if item is None:
        return socket_rules.about
    item_fields = {"itemKey": item.key, "itemLabel": item.label, "itemLabelShort": short_label(item.label)}
    return {**socket_rules.about, **item_fields}


@lru_cache(maxsize=4096)
def short_label(label: str, max_chars: int = 60) -> str:
    """Return a label on one line, truncated to at most ``max_chars`` characters."""
    line = " ".join(label.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


class Limit(NamedTuple):
    """A limit of a cast: the limited quantity in words, its current amount and its maximum.

    ``used`` is None if nothing is being counted at present, and ``maximum`` is None if the quantity is not limited.
    """

    subject: str
    used: float | None
    maximum: float | None


def limits_of(rules: Rules, state: CastState) -> tuple[Limit, ...]:
    """Return all limits of the cast except the limits of single edges, which :func:`edge_uses` returns."""
    at, item = state.at, state.at.item if state.at else None
    repairs = rules.graph.limits.repair_attempts if at is None else max_repairs(rules, state, at)
    cycles, maximum = None, rules.graph.limits.max_no_advance_cycles
    if item is not None:
        cycles, maximum = state.items.get(item.id, NEW_ITEM).cycles, max_cycles(rules, state, item.id)
    bounds = [bound for bound in BOUNDS if bound.quantity == "tokens" or bound.maximum(state.budget) is not None]
    return (
        *(Limit(bound.name, bound.used(state.usage), bound.maximum(state.budget)) for bound in bounds),
        Limit("repairs of one visit", None if at is None else at.repairs, repairs),
        Limit("cycles of one item without an advance", cycles, maximum),
    )


def budget_problem(state: StateView) -> str | None:
    """Return a sentence about the first exhausted limit of the budget, or None if no limit is exhausted (R20, R56)."""
    for bound in BOUNDS:
        if bound.is_reached(state.usage, state.budget):
            amounts = bound.used(state.usage), bound.maximum(state.budget)
            used, maximum = (bound.number_format.format(amount or 0) for amount in amounts)
            return f"The cast has used {used} of {maximum} {bound.unit}."
    return None


def is_budget_nearly_used_up(state: StateView) -> bool:
    """Return True if enough of the budget is used to warn about it (R20)."""
    budget = state.budget
    return has_limits(budget) and any(bound.is_reached(state.usage, budget, budget.warn_at_percent) for bound in BOUNDS)


def edge_uses(rules: Rules, state: CastState) -> dict[EdgeId, tuple[int, int]]:
    """Return the number of uses and the limit of each edge of the current socket that has ``maxTraversals``."""
    visit = state.at
    if visit is None:
        return {}
    uses = {edge: edge_use(rules, state, visit, edge) for edge in rules.sockets[visit.socket].socket.edges}
    return {
        (visit.socket, edge.index): (used, limit)
        for edge, (used, limit) in uses.items()
        if edge.max_traversals is not None and limit is not None
    }


def edge_use(rules: Rules, state: StateView, visit: Visit, edge: Edge) -> tuple[int, int | None]:
    """Return the number of uses of an edge and its limit; the limit is None if uses of the edge are not counted.

    Inside an item, only edges with ``maxTraversals`` are counted, separately for each item. Outside items, every edge
    is counted, and its limit is ``maxTraversals`` or else ``limits.maxEdgeTraversals``.
    """
    item = visit.item
    limit = edge.max_traversals
    edge_id = (visit.socket, edge.index)
    if item is None:
        used = state.counts.get(edge_id, 0)
        limit = rules.graph.limits.max_edge_traversals if limit is None else limit
    elif limit is None:
        return 0, None
    else:
        record = state.items.get(item.id)
        used = record.used.get(edge_id, 0) if record else 0
    if state.extra:
        limit += state.extra.get(("edge", *edge_id, item.id if item else None), 0)
    return used, limit


def with_uses(rules: Rules, socket_rules: SocketRules, state: StateView, visit: Visit, choice: Choice) -> Choice:
    """Return the choice with the current number of uses and the limit of each edge that was checked."""
    used, limit, checks = 0, None, []
    for check, edge in zip(choice.checks, socket_rules.socket.edges, strict=False):
        used, limit = edge_use(rules, state, visit, edge)
        checks.append(_with_use(check, used, limit))
    if choice.edge is None:
        return choice._replace(checks=tuple(checks))
    return choice._replace(checks=tuple(checks), used=used, limit=limit)  # the last checked edge is the chosen edge


@lru_cache(maxsize=4096)
def _with_use(check: RouteCheck, used: int, limit: int | None) -> RouteCheck:
    """Return a checked edge with its number of uses and its limit, cached because every step stores such edges."""
    return check._replace(used=used, limit=limit)


_RAISE_LIMIT_HINT: Final = (
    "use `why` to find the reason, then use `retry --limit` to allow it again, or raise the limit in the loadout"
)


def count_edge(rules: Rules, draft: Draft, visit: Visit, edge: Edge, used: int, limit: int | None) -> Failure | None:
    """Count one use of the chosen edge; return a failure if the edge has exceeded its limit (R18, R21)."""
    edge_key = f"{visit.socket}->{edge.to}"
    draft.traversals = FrozenDict({**draft.traversals, edge_key: draft.traversals.get(edge_key, 0) + 1})
    if limit is None:
        return None
    edge_id: EdgeId = (visit.socket, edge.index)
    if edge.max_traversals is not None:
        draft.bounded_at = visit.step
    if visit.item is None:
        draft.counts = FrozenDict({**draft.counts, edge_id: used + 1})
    else:
        record = draft.items.get(visit.item.id, NEW_ITEM)
        record = record._replace(used=FrozenDict({**record.used, edge_id: used + 1}))
        draft.items = FrozenDict({**draft.items, visit.item.id: record})
    if used < limit:
        return None
    own_limit, limit_name = edge.max_traversals, "maxTraversals"
    if own_limit is None:
        own_limit, limit_name = rules.graph.limits.max_edge_traversals, "limits.maxEdgeTraversals"
    names, item_phrase = rules.graph.names, f" for item {visit.item.label}" if visit.item else ""
    subject = f"The edge {names[visit.socket]} → {names[edge.to]} ({edge.when.replace('_', ' ')})"
    rule = f"{subject} may be taken {counted(limit, 'time')}{item_phrase} ({limit_name})"
    allow = (("edge", *edge_id, visit.item.id if visit.item else None), own_limit)
    return _limit_failure(rules, draft, visit, rule, edge.to, allow)


def count_exit(rules: Rules, draft: Draft, visit: Visit, route: ExitRoute) -> Failure | None:
    """Count one use of an exit outside items; return a failure if the use exceeds the limit on edge traversals.

    Inside an item, the end of the list already limits the number of exits. Outside items, a cast could take an exit and
    return to it forever.
    """
    if visit.item is not None:
        return None
    names = rules.graph.names
    subject = f"The exit route {route.id} of {names[visit.socket]} to {names[route.target]}, taken outside an item,"
    return _count_use(rules, draft, route.edge_id, visit, subject, route.target)


def count_detour(rules: Rules, draft: Draft, visit: Visit, target: str) -> Failure | None:
    """Count one detour; return a failure if the detour exceeds the limit on edge traversals outside work items."""
    subject = f"The detour from {rules.graph.names[visit.socket]} to {rules.graph.names[target]}"
    return _count_use(rules, draft, f"detour:{visit.socket}->{target}", visit, subject, target)


def _count_use(rules: Rules, draft: Draft, name: str, visit: Visit, subject: str, target: str) -> Failure | None:
    """Count one use of an exit or detour; return a failure if the count exceeds ``limits.maxEdgeTraversals``."""
    key: EdgeId = (name, 0)
    used, maximum = draft.counts.get(key, 0), rules.graph.limits.max_edge_traversals
    draft.counts = FrozenDict({**draft.counts, key: used + 1})
    limit = maximum + draft.extra.get(("edge", *key, None), 0)
    if used < limit:
        return None
    rule = f"{subject} may be taken {counted(limit, 'time')} (limits.maxEdgeTraversals)"
    return _limit_failure(rules, draft, visit, rule, target, (("edge", *key, None), maximum))


def max_repairs(rules: Rules, state: StateView, visit: Visit) -> int:
    """Return the maximum number of repair turns in a visit (R19)."""
    return rules.graph.limits.repair_attempts + state.extra.get(("repair", visit.step), 0)


def max_cycles(rules: Rules, state: StateView, item: ItemId) -> int:
    """Return the maximum number of cycles that an item may complete without advancing (R18)."""
    return rules.graph.limits.max_no_advance_cycles + state.extra.get(("cycles", item), 0)


def cycles_failure(rules: Rules, state: StateView, socket: str, item: Item, limit: int, step: int) -> Failure:
    """Return the failure for an item that completed too many cycles without advancing; ``step`` is the current step."""
    first_step = next(step for visited, step in state.items[item.id].path if visited == socket)
    return Failure(
        "no_advance_cycles_exhausted",
        f"Item {item.label} completed {counted(limit + 1, 'cycle')} without advancing, the last one "
        f"{_cycle_text(rules, state.trail, socket, step - first_step)}.",
        socket,
        "use `why` to find the reason, then use `retry --limit` to allow more cycles, or set `maxTraversals` on the retry edge",
        socket,
        (("cycles", item.id), max(rules.graph.limits.max_no_advance_cycles, 1)),
    )


def _limit_failure(
    rules: Rules, draft: Draft, visit: Visit, rule: str, target: str, allow: tuple[tuple[object, ...], int]
) -> Failure:
    """Return the failure for an edge or exit that exceeded a limit; the message names the cycle, if there is one."""
    length = next((back for back, visited in enumerate(reversed(draft.trail), start=1) if visited == target), None)
    cycle = f", in the cycle {_cycle_text(rules, draft.trail, target, length)}" if length else ""
    message = f"{rule} and was chosen again{cycle}."
    return Failure("edge_traversals_exhausted", message, visit.socket, _RAISE_LIMIT_HINT, target, allow)


def _cycle_text(rules: Rules, trail: tuple[str, ...], socket: str, length: int) -> str:
    """Return the sockets of the latest cycle, which had ``length`` visits and returned to ``socket`` (R18)."""
    cycle_sockets = trail[-length:]
    names: list[str] = [] if len(cycle_sockets) == length else [socket, "..."]
    for visited in cycle_sockets:
        if visited in names:  # a cycle within the cycle, which is counted separately
            del names[names.index(visited) :]
        names.append(visited)
    return " → ".join(rules.graph.names.get(name, name) for name in [*names, socket])


def enter_path(state: StateView, socket: str, record: ItemRecord, visit_step: int) -> ItemRecord:
    """Add ``socket`` to the path of an item, and return its record.

    A socket that is already in the path completes a cycle (R18). The cycle is not counted if an edge with
    ``maxTraversals`` was taken since the last visit to the socket, because that edge already limits the cycle.
    """
    path = record.path
    for index, (visited, step) in enumerate(path):
        if visited == socket:
            counted = state.bounded_at < step
            return ItemRecord(record.used, (*path[:index], (socket, visit_step)), record.cycles + counted)
    return ItemRecord(record.used, (*path, (socket, visit_step)), record.cycles)
