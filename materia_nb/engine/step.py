"""The transitions of a cast: pure functions from a state and an input to the next state (R1, R2).

Each returns a :class:`Step`: the new state, what happened as events, and, when the
way on was decided, the decision. Nothing here touches files, clocks or processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from materia_nb.engine import followup
from materia_nb.engine.decision import AdvanceFact, Assigned, By, Decision
from materia_nb.engine.followup import cut
from materia_nb.engine.items import find_item, list_at, with_aliases, without_aliases
from materia_nb.engine.prompt import Prompt, final_prompt, repair_again, repair_prompt, work_prompt
from materia_nb.engine.routing import choose_edge, choose_exit, count_edge, count_exit, enter_path, matches
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import (
    CastState,
    Draft,
    Failure,
    Item,
    ItemId,
    ItemRecord,
    Mode,
    Pending,
    Usage,
    View,
    Visit,
)
from materia_nb.engine.values import source
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON, MISSING, set_path
from materia_nb.loadout.graph import END, Advance


class Event(NamedTuple):
    """Something that happened, for the journal; names and fields as R29 lists them."""

    type: str
    data: Mapping[str, JSON]


class Step(NamedTuple):
    """What a transition gives. ``prompt`` is set when an agent is to answer, ``reading`` when an output was read."""

    state: CastState
    events: tuple[Event, ...] = ()
    decision: Decision | None = None
    prompt: Prompt | None = None
    reading: Reading | None = None


def begin(rules: Rules, request: str) -> CastState:
    """Return the state of a cast that is about to enter its entry socket."""
    return CastState(request=request, next=rules.graph.entry, budget=rules.graph.budget)


def enter(rules: Rules, state: CastState) -> Step:
    """Enter ``state.next``: find its item or pass over an empty loop, count the visit, ask for output (R1)."""
    if state.status != "ready":
        raise MateriaError(
            f"The cast is {state.status}, so no socket can be entered.",
            hint="reply to the socket that waits, or recast or revive a cast that stopped",
            kind="not_ready",
        )
    draft = Draft(state)
    passed: list[str] = []
    while True:
        target = draft.next or END
        if target == END or target in passed:
            return _ended(draft, passed)
        here = rules.sockets[target]
        iterator = here.socket.iterator
        if iterator is None:
            draft.data, draft.aliases = without_aliases(draft), ()
            return _visit(rules, here, draft, None, passed)
        if iterator.cursor not in draft.cursors:
            draft.cursors = {**draft.cursors, iterator.cursor: 0}
        item = find_item(iterator, draft)
        draft.data, draft.aliases = without_aliases(draft), ()
        if item is not None:
            draft.data, draft.aliases = with_aliases(draft.data, iterator, item)
            return _visit(rules, here, draft, item, passed)
        passed.append(target)
        route = rules.empty_exit(here.socket)
        draft.next = route.target if route else END


def _ended(draft: Draft, passed: list[str]) -> Step:
    decision = _passed_over(draft.steps, passed, END)
    draft.data, draft.aliases = without_aliases(draft), ()
    draft.status, draft.next = "complete", None
    return Step(draft.done(), (Event("cast_end", {"ok": True}),), decision)


def _passed_over(step: int, passed: list[str], target: str) -> Decision | None:
    if not passed:
        return None
    return Decision(step, None, None, None, None, "empty loop", target, passed_over=tuple(passed))


def _visit(rules: Rules, here: SocketRules, draft: Draft, item: Item | None, passed: list[str]) -> Step:
    socket = here.socket
    number, step = draft.visits.get(socket.id, 0) + 1, draft.steps + 1
    if item is not None:
        record = enter_path(draft, socket.id, draft.items.get(item.id, ItemRecord()), step)
        limit = rules.graph.limits.max_no_advance_cycles + draft.extra.get(("cycles", item.id), 0)
        if record.cycles > limit:
            stopped = _stopped(draft, _no_advance(rules, draft, socket.id, item, limit))
            if passed and stopped.decision:
                return stopped._replace(decision=stopped.decision._replace(passed_over=tuple(passed)))
            return stopped
        draft.items = {**draft.items, item.id: record}
    mode: Mode = "draft" if socket.materia.multi_turn and not socket.is_utility else "work"
    visit = Visit(socket.id, number, step, item, mode)
    draft.visits = {**draft.visits, socket.id: number}
    draft.steps, draft.status, draft.next, draft.at = step, "waiting", None, visit
    prompt = None if socket.is_utility else _first_prompt(here, draft, visit)
    started = Event("socket_start", {**_about(here, visit), "visit": number})
    return Step(draft.done(), (started,), _passed_over(step, passed, socket.id), prompt)


def _no_advance(rules: Rules, state: View, socket: str, item: Item, limit: int) -> Failure:
    path = [seen for seen, _ in state.items[item.id].path]
    cycle = " -> ".join([*path[path.index(socket) :], socket])
    return Failure(
        "no_advance_cycles_exhausted",
        f"Item {item.key} went round {limit + 1} times without advancing: {cycle}.",
        socket,
        "see why the item is not done; revive to allow more rounds, or give the retry edge a maxTraversals",
        socket,
        (("cycles", item.id), max(rules.graph.limits.max_no_advance_cycles, 1)),
    )


def prompt_for(rules: Rules, state: CastState) -> Prompt:
    """Assemble the first prompt of the visit that is waiting."""
    visit = _waiting(state)
    return _first_prompt(rules.sockets[visit.socket], state, visit)


def _first_prompt(here: SocketRules, state: View, visit: Visit) -> Prompt:
    return work_prompt(
        here.socket.materia.prompt, here.ask, visit.socket, state, visit.item, draft=visit.mode == "draft"
    )


def output(
    rules: Rules, state: CastState, text: str, usage: Usage | None = None, prompt: Prompt | None = None
) -> Step:
    """An output arrived for the waiting visit: draft, refuse, or complete the step (R2, R19, R20).

    ``prompt`` is the prompt that was answered; a repair turn is built on it.
    """
    visit = _waiting(state)
    here = rules.sockets[visit.socket]
    draft = Draft(state)
    if usage is not None:
        total = draft.usage
        draft.usage = Usage(total.input + usage.input, total.output + usage.output, total.cost + usage.cost)
    if visit.mode == "draft":
        return _drafted(here, draft, visit)
    reading = here.protocol.read(text, here.wanted)
    if asks_otherwise(reading):
        return _not_followed(here, draft, visit, reading)
    if reading.error is not None:
        return _refused(rules, here, draft, visit, text, reading, prompt=prompt)
    return _complete(rules, here, draft, visit, text, reading)


def asks_otherwise(reading: Reading) -> bool:
    """Whether the output asks for something else than a route or a repair, which is not done here."""
    return reading.action == "escalate" or (reading.accepted and reading.action != "route")


def _not_followed(here: SocketRules, draft: Draft, visit: Visit, reading: Reading) -> Step:
    failure = Failure(
        "handoff_action",
        cut(f"{visit.socket} asks to {reading.action}, which a cast does not do yet: {reading.reason}", 800),
        visit.socket,
        "see what it asks for, then recast or revive to ask it again, or abort",
    )
    refused = Event("socket_refused", {**_about(here, visit), "visit": visit.visit})
    return _stopped(draft, failure, visit, reading, first=refused)


def _drafted(here: SocketRules, draft: Draft, visit: Visit) -> Step:
    visit = visit._replace(drafts=visit.drafts + 1, turn=visit.turn + 1)
    draft.at = visit
    event = Event(
        "socket_refinement", {**_about(here, visit), "visit": visit.visit, "refinementTurn": visit.drafts}
    )
    return Step(draft.done(), (event,), _decision(visit, "draft", visit.socket))


def finalize(rules: Rules, state: CastState, prompt: Prompt) -> Step:
    """The person is content with the drafts: ask for the final result in the same conversation."""
    visit = _waiting(state)
    if visit.mode != "draft":
        raise MateriaError(
            f"{visit.socket} is not a multi-turn socket with a draft.",
            hint="reply to it instead",
            kind="not_multi_turn",
        )
    if not visit.drafts:
        raise MateriaError(
            f"{visit.socket} has no draft yet.", hint="let its agent answer first (step)", kind="no_draft"
        )
    visit = visit._replace(mode="final")
    return Step(state._replace(at=visit), (), None, final_prompt(prompt, rules.sockets[visit.socket].ask))


def _refused(
    rules: Rules,
    here: SocketRules,
    draft: Draft,
    visit: Visit,
    text: str,
    reading: Reading,
    *,
    prompt: Prompt | None,
) -> Step:
    told = "; ".join(cut(f"{issue.path}: {issue.message}", 300) for issue in reading.issues[:8])
    refused = Event("socket_refused", {**_about(here, visit), "visit": visit.visit})
    if here.socket.is_utility:
        failure = Failure(
            "invalid_output",
            f"The output of {visit.socket} was refused. {told}",
            visit.socket,
            "correct the utility, then recast",
        )
        return _stopped(draft, failure, visit, reading, first=refused)
    allowed = rules.graph.limits.repair_attempts + draft.extra.get(("repair", visit.step), 0)
    if visit.repairs >= allowed:
        failure = Failure(
            "repair_exhausted",
            f"{visit.socket} gave an unusable answer {visit.repairs + 1} times. {told}",
            visit.socket,
            "recast to ask again, revive for another repair turn, or correct the answer yourself",
            refused=(reading.issues, text),
        )
        exhausted = Event(
            "same_socket_recovery_exhausted", {**refused.data, "error": told, "attempt": visit.repairs}
        )
        return _stopped(draft, failure, visit, reading, first=exhausted)
    visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    draft.at = visit
    before = prompt or _first_prompt(here, draft, visit)
    kind = "json_parse" if reading.error == "not_json" else "handoff_validation"
    facts = {**refused.data, "attempt": visit.repairs, "maxAttempts": allowed, "validationKind": kind}
    return Step(
        draft.done(),
        (
            Event("same_socket_recovery_start", {**facts, "error": told}),
            Event("same_socket_recovery_retry", facts),
        ),
        _decision(visit, "repair", visit.socket, reading),
        repair_prompt(before, here.ask, reading.issues, text),
        reading,
    )


def _complete(
    rules: Rules, here: SocketRules, draft: Draft, visit: Visit, text: str, reading: Reading
) -> Step:
    is_json = here.wanted.parse == "json"
    draft.last_output = kept = text if here.socket.is_utility else text.strip()
    if is_json:
        draft.last_json = reading.value
        draft.data = _canonical(here, draft.data, reading)
    if here.consumer_cursors:
        _renew(draft, here.consumer_cursors)
    assigned, failure = _assign(here, draft, visit, reading)
    decision = _decision(visit, "failure", None, reading, assigned)
    if failure:
        refused = Event("socket_refused", {**_about(here, visit), "visit": visit.visit})
        return _stopped(draft, failure, visit, reading, decision, first=refused)
    fact = _advance(here.socket.advance, draft, visit, reading)
    completed = Event("socket_complete", {**_about(here, visit), "visit": visit.visit, "parsed": is_json})
    pending = Pending(
        reading.satisfied,
        kept,
        reading.context,
        fact is not None and fact.exhausted,
        _advanced(fact, visit.item),
    )
    if fact is not None:
        decision = decision._replace(advance=fact)
    events, over = _check_budget(draft, visit)
    if over:
        draft.pending = pending
        return _stopped(
            draft, over, visit, reading, decision._replace(by="budget"), first=completed, more=events
        )
    return _route(rules, here, draft, visit, pending, decision, events=(completed, *events), reading=reading)


def _canonical(here: SocketRules, data: Mapping[str, JSON], reading: Reading) -> Mapping[str, JSON]:
    """Apply a utility's state patch and the canonical fields (R10)."""
    value, socket = reading.value, here.socket
    changed = dict(data)
    if socket.is_utility and isinstance(value, dict) and isinstance(value.get("state"), dict):
        changed.update(
            (key, part) for key, part in value["state"].items() if key not in ("workItems", "satisfied")
        )
    items = reading.work_items
    if isinstance(items, list) and (socket.is_generator or changed.get("workItems") in (None, [])):
        changed["workItems"] = items
    if reading.context and reading.context.strip():
        entry = f"[{socket.id} {socket.materia.label}] {reading.context}"
        before = changed.get("context")
        changed["context"] = f"{before}\n\n{entry}" if isinstance(before, str) and before.strip() else entry
    return changed


def _renew(draft: Draft, cursors: tuple[str, ...]) -> None:
    """A generator completed: the items of the loops that consume it are new (R17)."""
    draft.cursors = {name: 0 if name in cursors else at for name, at in draft.cursors.items()}
    draft.items = {item: record for item, record in draft.items.items() if item[0] not in cursors}
    draft.extra = {key: more for key, more in draft.extra.items() if not _concerns(key, cursors)}
    gone = [entry.item for entry in draft.follow_up if entry.item and entry.item[0] in cursors]
    draft.follow_up = followup.without_items(draft.follow_up, gone)


def _concerns(key: tuple[object, ...], cursors: tuple[str, ...]) -> bool:
    """Whether an allowance is that of an item of these cursors."""
    item = key[-1]
    return isinstance(item, tuple) and item[0] in cursors


def _assign(
    here: SocketRules, draft: Draft, visit: Visit, reading: Reading
) -> tuple[tuple[Assigned, ...], Failure | None]:
    """Run the assignments in order; each sees what the earlier ones set (R11)."""
    done: list[Assigned] = []
    for target, segments, text in here.assign:
        if not segments:
            failure = Failure(
                "assignment",
                f"The assignment target {target!r} of {visit.socket} names nothing.",
                visit.socket,
                "give it a name such as plan.items",
            )
            return tuple(done), failure
        value = source(text)(draft, visit.item, reading.value)
        done.append(Assigned(target, text, value is not MISSING))
        if value is not MISSING:
            draft.data = set_path(draft.data, list(segments), value)
    return tuple(done), None


def _advance(advance: Advance | None, draft: Draft, visit: Visit, reading: Reading) -> AdvanceFact | None:
    """Move the cursor when the condition holds, and say whether the list is exhausted (R14)."""
    if advance is None:
        return None
    before = draft.cursors.get(advance.cursor, 0)
    length = len(list_at(advance.items, draft, visit.item))
    if not matches(advance.when, reading.satisfied):
        return AdvanceFact(
            advance.when, False, advance.cursor, before, before, length, False, advance.derived
        )
    after = before + 1
    draft.cursors = {**draft.cursors, advance.cursor: after}
    return AdvanceFact(
        advance.when, True, advance.cursor, before, after, length, after >= length, advance.derived
    )


def _advanced(fact: AdvanceFact | None, item: Item | None) -> ItemId | None:
    """The item that ``advance`` moved on from: the visit's own, or that of another iterator's cursor."""
    if fact is None or not fact.moved:
        return None
    return item.id if item is not None and item.cursor == fact.cursor else (fact.cursor, fact.before)


def _check_budget(draft: Draft, visit: Visit) -> tuple[tuple[Event, ...], Failure | None]:
    """Warn once, and stop at the maximum; the step's own changes are kept (R20)."""
    most, used = draft.budget.max_tokens, draft.usage.tokens
    if most is None:
        return (), None
    facts = {"tokens": used, "maxTokens": most}
    if used >= most:
        failure = Failure(
            "budget",
            f"The cast has used {used} of {most} tokens.",
            visit.socket,
            "raise the budget of this cast (budget N), then revive it",
        )
        return (Event("budget_limit", facts),), failure
    if not draft.warned and used * 100 >= most * draft.budget.warn_at_percent:
        draft.warned = True
        return (Event("budget_warning", facts),), None
    return (), None


def _route(
    rules: Rules,
    here: SocketRules,
    draft: Draft,
    visit: Visit,
    pending: Pending,
    decision: Decision,
    *,
    events: tuple[Event, ...],
    reading: Reading | None = None,
) -> Step:
    """Choose the target and keep the books: follow-up, edge counts, the record of an item that is done."""
    item = visit.item
    if pending.exhausted:
        choice = choose_exit(here.exits, pending.satisfied)
    else:
        choice = choose_edge(rules, here, draft, visit, pending.satisfied)
    reworked = choice.edge is not None and choice.edge.when == "not_satisfied"
    failure = None
    if choice.edge is not None:
        failure = count_edge(rules, draft, visit, choice.edge)
    elif choice.route is not None:
        failure = count_exit(rules, draft, visit, choice.route)
    done = pending.advanced
    if reworked and (item is None or item.id != done):
        draft.follow_up = followup.capture(
            draft.follow_up, here.socket, choice.target, item, pending.context, pending.text
        )
    if not reworked and draft.follow_up:
        draft.follow_up = followup.without_target(draft.follow_up, visit.socket)
    if done is not None:
        if draft.follow_up:
            draft.follow_up = followup.without_items(draft.follow_up, [done])
        draft.items = {key: record for key, record in draft.items.items() if key != done}
    draft.pending = None
    decision = decision._replace(by=choice.by, target=choice.target, looks=choice.looks)
    if failure:
        return _stopped(draft, failure, visit, reading, decision._replace(by="failure"), more=events)
    draft.status, draft.next = "ready", choice.target
    return Step(draft.done(), events, decision, None, reading)


def fail(state: CastState, failure: Failure) -> Step:
    """Something outside the engine went wrong with the waiting visit: a process, an agent."""
    return _stopped(Draft(state), failure, _waiting(state))


def abort(state: CastState, reason: str) -> Step:
    """The person stops the cast."""
    failure = Failure(
        "aborted", reason, state.at.socket if state.at else None, "recast to go on from this socket"
    )
    stopped = state._replace(status="aborted", failure=failure)
    return Step(stopped, (Event("cast_end", {"ok": False, "error": reason, "kind": "aborted"}),))


def recast(rules: Rules, state: CastState) -> Step:
    """Ask the socket where a failed or aborted cast stopped once more, in the same visit, from its first prompt.

    A cast that stopped behind a completed socket goes on as :func:`revive` does.
    """
    _needs_stopped(state)
    visit = state.at
    if visit is None or state.next is not None or state.pending or (state.failure and state.failure.blocked):
        return revive(rules, state)
    here = rules.sockets[visit.socket]
    mode: Mode = "draft" if here.socket.materia.multi_turn and not here.socket.is_utility else "work"
    visit = visit._replace(mode=mode, turn=visit.turn + 1, repairs=0, drafts=0)
    return _waiting_again(here, state, visit, Event("cast_recast", _about(here, visit)))


def revive(rules: Rules, state: CastState) -> Step:
    """Go on where a failed cast stopped, with the exhausted allowance granted again (R18, R19, R20)."""
    _needs_stopped(state)
    failure, visit = state.failure, state.at
    kind = failure.kind if failure else "passive"
    here = rules.sockets[visit.socket] if visit else None
    event = Event("cast_revive", {**(_about(here, visit) if here and visit else {}), "kind": kind})
    if failure and failure.blocked:
        extra = state.extra
        if failure.allow:
            key, more = failure.allow
            extra = {**extra, key: extra.get(key, 0) + more}
        revived = state._replace(status="ready", next=failure.blocked, failure=None, extra=extra)
        return Step(revived, (event,))
    if here is None or visit is None or state.next is not None:
        return Step(
            state._replace(status="ready", next=state.next or rules.graph.entry, failure=None), (event,)
        )
    if state.pending:
        return _revive_budget(rules, here, state, visit, state.pending, event)
    if kind == "repair_exhausted":
        turn = ("repair", visit.step)
        state = state._replace(extra={**state.extra, turn: state.extra.get(turn, 0) + 1})
        visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    again = _waiting_again(here, state, visit, event)
    if failure and failure.refused and again.prompt:
        return again._replace(prompt=repair_again(again.prompt, *failure.refused))
    return again


def _waiting_again(here: SocketRules, state: CastState, visit: Visit, event: Event) -> Step:
    prompt = None if here.socket.is_utility else _first_prompt(here, state, visit)
    return Step(state._replace(status="waiting", failure=None, at=visit), (event,), None, prompt)


def _revive_budget(
    rules: Rules, here: SocketRules, state: CastState, visit: Visit, pending: Pending, event: Event
) -> Step:
    most = state.budget.max_tokens
    if most is not None and state.usage.tokens >= most:
        raise MateriaError(
            f"The budget of {most} tokens is still used up ({state.usage.tokens}).",
            hint="raise it first: budget N",
            kind="budget",
        )
    decision = _decision(visit, "failure", None)._replace(satisfied=pending.satisfied)
    draft = Draft(state)
    draft.failure = None
    return _route(rules, here, draft, visit, pending, decision, events=(event,))


def set_budget(state: CastState, max_tokens: int | None) -> CastState:
    """Change the budget of this cast only; a warning may come again."""
    return state._replace(budget=replace(state.budget, max_tokens=max_tokens), warned=False)


def _stopped(
    draft: Draft,
    failure: Failure,
    visit: Visit | None = None,
    reading: Reading | None = None,
    decision: Decision | None = None,
    *,
    first: Event | None = None,
    more: tuple[Event, ...] = (),
) -> Step:
    decision = decision or _decision(visit or draft.at, "failure", None, reading)
    draft.status, draft.failure, draft.next = "failed", failure, None
    data: dict[str, JSON] = {"ok": False, "error": failure.message, "kind": failure.kind}
    if failure.socket:
        data["socket"] = failure.socket
    events = (*((first,) if first else ()), *more, Event("cast_end", data))
    return Step(draft.done(), events, decision._replace(failure=failure), None, reading)


def _decision(
    visit: Visit | None,
    by: By,
    target: str | None,
    reading: Reading | None = None,
    assigned: tuple[Assigned, ...] = (),
) -> Decision:
    item = visit.item if visit else None
    return Decision(
        visit.step if visit else 0,
        visit.socket if visit else None,
        visit.visit if visit else None,
        item.key if item else None,
        item.label if item else None,
        by,
        target,
        reading.satisfied if reading else None,
        reading.notes if reading else (),
        reading.issues if reading else (),
        assigned,
    )


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """The fields that say which visit an event is about, as the reference names them."""
    return _about(rules.sockets[visit.socket], visit)


def _about(here: SocketRules, visit: Visit) -> dict[str, JSON]:
    item = visit.item
    if item is None:
        return here.about
    return {**here.about, "itemKey": item.key, "itemLabel": item.label, "itemLabelShort": short(item.label)}


@lru_cache(maxsize=4096)
def short(label: str, most: int = 60) -> str:
    """A label on one line, at most ``most`` characters."""
    return cut(" ".join(label.split()), most)


def _waiting(state: CastState) -> Visit:
    if state.status != "waiting" or state.at is None:
        raise MateriaError(
            f"No socket is waiting for an output; the cast is {state.status}.",
            hint="step first",
            kind="not_waiting",
        )
    return state.at


def _needs_stopped(state: CastState) -> None:
    if state.status not in ("failed", "aborted"):
        raise MateriaError(
            f"The cast is {state.status}, not failed or aborted.",
            hint="step or run goes on with it",
            kind="not_stopped",
        )
