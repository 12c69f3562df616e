"""Enter the next socket: find its item, and create its visit and prompt (R1, R12, R16, R18)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from materia_nb.engine.events import CastEnd, Event, SocketStart, Transition
from materia_nb.engine.items import begin_item, list_at, show_only
from materia_nb.engine.prompt import Prompt, work_prompt
from materia_nb.engine.prompt_context import PromptContext
from materia_nb.engine.routing import (
    Decision,
    SkippedSocket,
    about,
    cycles_failure,
    decision_of,
    edge_use,
    enter_path,
    max_cycles,
)
from materia_nb.engine.rules import DEFERRED_HANDOFF, Rules, SocketRules
from materia_nb.engine.state import (
    NEW_ITEM,
    CastState,
    Draft,
    Failure,
    Item,
    LaneScope,
    Past,
    StateView,
    Visit,
    waiting_visit,
)
from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.base import UNKNOWN, KnowledgeUpdate, Reading, Task, TurnFacts
from materia_nb.jsonvalue import JSON, FrozenDict, frozen
from materia_nb.loadout.graph import END, Region
from materia_nb.loadout.vocabulary import REWORK_CONDITIONS, WORK_ITEMS, Result

_MAX_ROUNDS: Final = 3
"""Maximum number of rework rounds to report to a protocol if the edge has no ``maxTraversals``."""


def turn_facts(rules: Rules, state: StateView, visit: Visit) -> TurnFacts:
    """Return the facts about the current turn that a protocol needs."""
    socket_rules = rules.sockets[visit.socket]
    rounds, max_rounds = _rework_rounds(rules, state, visit)
    return TurnFacts(
        meta={"step_id": visit.socket, "flow_key": rules.graph.name, "agent_key": socket_rules.socket.materia.id},
        agent_id=agent_id(state.request, visit.socket),
        assignment=assignment_for(rules, socket_rules, state),
        rounds=rounds,
        max_rounds=max_rounds,
        refused=visit.repairs,
        memory=visit.memory,
        sockets=frozenset(rules.graph.sockets),
        names=rules.names,
        changed_files=visit.changed,
    )


def answer_format(rules: Rules, state: StateView, visit: Visit, *, short: bool = False) -> str:
    """Return the instructions for the answer's format, with the fields that are allowed in this turn.

    ``short`` is True for the shorter instructions of later turns (R51).
    """
    socket_rules = rules.sockets[visit.socket]
    if visit.mode in socket_rules.work_modes:
        return DEFERRED_HANDOFF
    facts = turn_facts(rules, state, visit) if socket_rules.protocol.needs_facts else UNKNOWN
    return socket_rules.protocol.form(socket_rules.requirements, facts, short=short)


def assignment_for(rules: Rules, socket_rules: SocketRules, state: StateView) -> Mapping[str, JSON]:
    """Return the protocol's assignment for the agent of a socket, or {} if the protocol has no assignments."""
    if "assignment" not in socket_rules.protocol.overridden:
        return {}
    socket = socket_rules.socket
    provider, separator, _ = (socket.materia.model or "").partition(":")
    task = Task(
        f"{socket.materia.label}: {state.request}",
        agent_id(state.request, socket.id),
        rules.graph.name,
        socket.assignment,
        state.knowledge,
        rules.session,
        provider if separator else "",
    )
    return socket_rules.protocol.assignment(task)


def updated_knowledge(
    rules: Rules, socket_rules: SocketRules, state: StateView, value: JSON, knowledge: Mapping[str, JSON]
) -> KnowledgeUpdate:
    """Return the project's knowledge after an accepted output; most protocols do not change the knowledge."""
    if not isinstance(value, dict):
        return KnowledgeUpdate(knowledge)
    return socket_rules.protocol.learn(value, assignment_for(rules, socket_rules, state), knowledge)


def agent_id(request: str, socket: str) -> str:
    """Return the id of a socket's agent in this cast: the letter ``a`` followed by eight hexadecimal digits."""
    return "a" + hashlib.sha256(f"{request}\0{socket}".encode("utf-8", "replace")).hexdigest()[:8]


def _rework_rounds(rules: Rules, state: StateView, visit: Visit) -> tuple[int, int]:
    """Return the number of times that the socket has sent work back, and the maximum for this number.

    If the edge has no ``maxTraversals``, the maximum is :data:`_MAX_ROUNDS`. Inside an item, cycles are then counted
    instead.
    """
    edge = next((edge for edge in rules.sockets[visit.socket].socket.edges if edge.when in REWORK_CONDITIONS), None)
    if edge is None:
        return 0, _MAX_ROUNDS
    used, limit = edge_use(rules, state, visit, edge)
    if edge.max_traversals is not None and limit is not None:
        return used, limit
    if visit.item is None:
        return used, _MAX_ROUNDS
    record = state.items.get(visit.item.id)
    return (record.cycles if record else 0), _MAX_ROUNDS


def begin(
    rules: Rules, request: str, knowledge: Mapping[str, JSON] | None = None, data: Mapping[str, JSON] | None = None
) -> CastState:
    """Return the initial state of a cast; the cast is ready to enter the entry socket.

    Args:
        rules: the rules of the cast.
        request: the person's request.
        knowledge: the knowledge about the project, by section.
        data: the initial data of the state.
    """
    return CastState(
        request=request,
        data=frozen(dict(data or {})),
        next=rules.graph.entry,
        budget=rules.graph.budget,
        knowledge=frozen(dict(knowledge or {})),
    )


def enter(rules: Rules, state: CastState) -> Transition:
    """Enter ``state.next``: find its item or skip an empty loop, count the visit, and wait for an output (R1)."""
    if state.status != "ready":
        raise MateriaError(
            f"The cast {state.status_phrase}, so no socket can be entered.",
            hint="use `reply` to answer a waiting socket, or `retry` to continue a stopped cast",
            kind="not_ready",
        )
    draft = Draft(state)
    skips: list[SkippedSocket] = []
    while True:
        target = draft.next or END
        if draft.lane is not None and target not in draft.lane.sockets:
            return _end_lane(draft, draft.lane, skips)
        if target == END or (skips and any(target == skip.socket for skip in skips)):
            return _complete_cast(draft, skips)
        if rules.graph.regions and (region := _region_without_items(rules, draft, target)) is not None:
            draft.next = region.exit
            skips.append(SkippedSocket(target, region.loop, 0, None, region.exit))
            continue
        socket_rules = rules.sockets[target]
        if socket_rules.iteration is None or socket_rules.items is None:
            show_only(draft)
            return _begin_visit(rules, socket_rules, state, draft, None, skips)
        item = begin_item(socket_rules.iteration, socket_rules.items, draft)
        if item is not None:
            return _begin_visit(rules, socket_rules, state, draft, item, skips)
        iterator = socket_rules.iteration.iterator
        route = None if draft.detours else rules.empty_exit(socket_rules.socket)
        if draft.detours:  # the target has no item, so the detour is over
            draft.next, draft.detours = draft.detours[-1], draft.detours[:-1]
        else:
            draft.next = route.target if route else END
        entries = len(list_at(iterator.items, draft))
        skips.append(SkippedSocket(target, iterator.loop, entries, route.edge_id if route else None, draft.next))


def _region_without_items(rules: Rules, draft: Draft, target: str) -> Region | None:
    """Return the parallel loop to skip because its generator returned no items (P6), or None."""
    region = rules.graph.regions.get(draft.last_socket or "")
    if region is None or draft.lane is not None or target != region.first:
        return None
    return None if list_at(f"state.{WORK_ITEMS}", draft) else region


def _complete_cast(draft: Draft, skips: list[SkippedSocket]) -> Transition:
    show_only(draft)
    draft.status, draft.next = "complete", None
    return Transition(draft.freeze(), (CastEnd(ok=True),), _skip_decision(draft.steps, skips, END) if skips else None)


def _skip_decision(step: int, skips: list[SkippedSocket], target: str) -> Decision:
    return Decision(step, "empty loop", target, skips=tuple(skips))


def _end_lane(draft: Draft, lane: LaneScope, skips: list[SkippedSocket]) -> Transition:
    """End a lane after its last item; a lane that leaves its loop earlier fails, so that no item is skipped (P6)."""
    cursor_position = draft.cursors.get(lane.cursor, 0)
    if cursor_position not in lane.indexes:
        return _complete_cast(draft, skips)
    items_left = len(lane.indexes) - lane.indexes.index(cursor_position)
    failure = Failure(
        "stream_left",
        f"The lane {lane.name!r} continued to {draft.next or END} with {counted(items_left, 'item')} left.",
        draft.at.socket if draft.at else None,
        "use `why` to find the reason, then use `retry`; a lane may leave its loop only through an exit after its last item",
    )
    return stop_cast(draft, failure)


def _begin_visit(
    rules: Rules,
    socket_rules: SocketRules,
    before: CastState,
    draft: Draft,
    item: Item | None,
    skips: list[SkippedSocket],
) -> Transition:
    socket = socket_rules.socket.id
    number, step = draft.visits.get(socket, 0) + 1, draft.steps + 1
    prompt = None if socket_rules.socket.is_utility else EntryPrompt(rules, before, step)
    if item is not None:
        item_id = item.id
        record = enter_path(draft, socket, draft.items.get(item_id, NEW_ITEM), step)
        if record.cycles:
            limit = max_cycles(rules, draft, item_id)
            if record.cycles > limit:
                failure = cycles_failure(rules, draft, socket, item, limit, step)
                decision = decision_of(draft.at, "failure", None)._replace(skips=tuple(skips))
                return stop_cast(draft, failure, decision=decision)
        draft.items = FrozenDict({**draft.items, item_id: record})
    visit = Visit(socket, number, step, item, socket_rules.first_mode)
    subject = about(rules, visit)
    draft.visits = FrozenDict({**draft.visits, socket: number})
    draft.steps, draft.status, draft.next, draft.at = step, "waiting", None, visit
    draft.trail = (*draft.trail, socket)[-rules.trail :]
    state = draft.freeze()
    if rules.nests and prompt is not None:  # a state too deep for a prompt is refused before the agent is called
        socket_rules.prompt(state, item)
    start_event = SocketStart(about=subject, visit=number, step=step)
    return Transition(state, (start_event,), _skip_decision(step, skips, socket) if skips else None, prompt)


class EntryPrompt(Prompt):
    """The first prompt of a visit, assembled when one of its attributes is first read.

    A cast stores the prompt of every step, but few of these prompts are ever read. The prompt is assembled by entering
    the socket again.
    """

    __slots__ = ("_before", "_number", "_rules")

    _before: CastState | Past  # The state before the socket is entered, or the object that recomputes this state.

    def __init__(self, rules: Rules, before: CastState, number: int) -> None:
        self._rules, self._number = rules, number
        self._before = before

    def _assemble(self) -> Prompt:
        past = self._before
        before = past if isinstance(past, CastState) else past.before(self._number)
        return prompt_for(self._rules, enter(self._rules, before).state)

    def __eq__(self, other: object) -> bool:
        return self._assemble() == other  # so that the prompt is assembled once, not for each attribute

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Assemble the prompt and return one of its attributes."""
        if name not in Prompt.__slots__:
            raise AttributeError(name)
        return getattr(self._assemble(), name)

    @property
    def text(self) -> str:
        """The prompt as the agent reads it."""
        return self._assemble().text


def prompt_for(rules: Rules, state: CastState) -> Prompt:
    """Assemble the first prompt of the waiting visit."""
    return first_prompt(rules, state, waiting_visit(state))


def preview(rules: Rules, state: CastState, socket: str) -> tuple[Prompt | None, str]:
    """Return the prompt that an agent would receive if ``socket`` were entered now.

    Returns:
        The prompt and an empty string, or None and the reason why there would be no prompt.
    """
    transition = enter(rules, state._replace(status="ready", next=socket))
    visit = transition.state.at
    if transition.prompt is not None and visit is not None and visit.socket == socket:
        return transition.prompt, ""
    if transition.state.failure is not None:
        return None, f"Entering the socket now would stop the cast: {transition.state.failure.message}"
    return None, "The socket would be skipped now, because its list has no item."


def first_prompt(rules: Rules, state: CastState, visit: Visit) -> Prompt:
    """Assemble the first prompt of a visit."""
    socket_rules = rules.sockets[visit.socket]
    known_fields: Mapping[str, JSON] = {}
    if "assignment" in socket_rules.protocol.overridden:
        known_fields = {"agent_id": agent_id(state.request, visit.socket), **assignment_for(rules, socket_rules, state)}
    last = rules.sockets.get(state.last_socket) if state.last_socket is not None else None
    context = PromptContext(socket_rules.context, visit, state, None if last is None else last.socket)
    return work_prompt(
        context,
        socket_rules.prompt(state, visit.item),
        socket_rules.task(state, visit.item),
        answer_format(rules, state, visit),
        known_fields=known_fields,
        max_chars=rules.graph.limits.prompt_characters,
    )


def stop_cast(
    draft: Draft,
    failure: Failure,
    visit: Visit | None = None,
    reading: Reading | None = None,
    decision: Decision | None = None,
    *,
    events: tuple[Event, ...] = (),
) -> Transition:
    """Return the transition that fails the cast; ``events`` are recorded before the final event of the cast."""
    if decision is None:
        result = Result.from_failure(failure.kind) if reading is None else None
        decision = decision_of(visit or draft.at, "failure", None, reading, result=result)
    draft.status, draft.failure, draft.next = "failed", failure, None
    end = CastEnd(ok=False, error=failure.message, kind=failure.kind, socket=failure.socket or None)
    return Transition(draft.freeze(), (*events, end), decision._replace(failure=failure), None, reading)
