"""The transitions of a cast: pure functions from a state and an input to the next state (R1, R2).

Each returns a :class:`Step`: the new state, what happened as events, and, when the
way on was decided, the decision. Nothing here touches files, clocks or processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from materia_nb.engine import followup
from materia_nb.engine.decision import AdvanceFact, Assigned, Decision
from materia_nb.engine.items import find_item, list_at, with_aliases, without_aliases
from materia_nb.engine.prompt import Prompt, final_prompt, repair_prompt, work_prompt
from materia_nb.engine.routing import Choice, choose_edge, choose_exit, count_edge, enter_path, matches
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState, Failure, Item, ItemRecord, Mode, Pending, Usage, Visit
from materia_nb.engine.values import source_value
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
    passed: list[str] = []
    while True:
        target = state.next or END
        if target == END or target in passed:
            return _ended(state, passed)
        here = rules.sockets[target]
        iterator = here.socket.iterator
        if iterator is None:
            if state.aliases:
                state = state._replace(data=without_aliases(state), aliases=())
            return _visit(rules, here, state, None, passed)
        if iterator.cursor not in state.cursors:
            state = state._replace(cursors={**state.cursors, iterator.cursor: 0})
        item = find_item(iterator, state)
        data = without_aliases(state)
        if item is not None:
            data, aliases = with_aliases(data, iterator, item)
            return _visit(rules, here, state._replace(data=data, aliases=aliases), item, passed)
        passed.append(target)
        route = rules.empty_exit(here.socket)
        state = state._replace(data=data, aliases=(), next=route.target if route else END)


def _ended(state: CastState, passed: list[str]) -> Step:
    decision = None
    if passed:
        decision = Decision(
            state.steps, None, None, None, None, "empty loop", END, passed_over=tuple(passed)
        )
    state = state._replace(
        status="complete", next=None, data=without_aliases(state), aliases=()
    )
    return Step(state, (Event("cast_end", {"ok": True}),), decision)


def _visit(rules: Rules, here: SocketRules, state: CastState, item: Item | None, passed: list[str]) -> Step:
    socket = here.socket
    number, step = state.visits.get(socket.id, 0) + 1, state.steps + 1
    if item is not None:
        record = enter_path(state, socket.id, state.items.get(item.id, ItemRecord()), step)
        limit = rules.graph.limits.max_no_advance_cycles + state.extra.get(("cycles", item.id), 0)
        if record.cycles > limit:
            return _stopped(state, _no_advance(state, socket.id, item, limit))
        state = state._replace(items={**state.items, item.id: record})
    mode: Mode = "draft" if socket.materia.multi_turn and not socket.is_utility else "work"
    visit = Visit(socket.id, number, step, item, mode)
    state = state._replace(
        visits={**state.visits, socket.id: number}, steps=step, status="waiting", next=None, at=visit
    )
    prompt = None if socket.is_utility else prompt_for(rules, state)
    decision = None
    if passed:
        decision = Decision(
            step, None, None, None, None, "empty loop", socket.id, passed_over=tuple(passed)
        )
    return Step(state, (Event("socket_start", {**about(rules, visit), "visit": number}),), decision, prompt)


def _no_advance(state: CastState, socket: str, item: Item, limit: int) -> Failure:
    path = [seen for seen, _ in state.items[item.id].path]
    cycle = " -> ".join([*path[path.index(socket) :], socket])
    return Failure(
        "no_advance_cycles_exhausted",
        f"Item {item.key} went round {limit + 1} times without advancing: {cycle}.",
        socket,
        "see why the item is not done; revive to allow more rounds, or give the retry edge a maxTraversals",
        socket,
        (("cycles", item.id), max(limit, 1)),
    )


def prompt_for(rules: Rules, state: CastState) -> Prompt:
    """Assemble the first prompt of the visit that is waiting."""
    visit = _waiting(state)
    here = rules.sockets[visit.socket]
    return work_prompt(
        here.socket.materia.prompt, here.ask, visit.socket, state, visit.item, draft=visit.mode == "draft"
    )


def output(rules: Rules, state: CastState, text: str, usage: Usage | None = None, prompt: Prompt | None = None) -> Step:
    """An output arrived for the waiting visit: draft, refuse, or complete the step (R2, R19, R20).

    ``prompt`` is the prompt that was answered; a repair turn is built on it.
    """
    visit = _waiting(state)
    here = rules.sockets[visit.socket]
    if usage is not None:
        total = state.usage
        state = state._replace(
            usage=Usage(total.input + usage.input, total.output + usage.output, total.cost + usage.cost)
        )
    if visit.mode == "draft":
        return _draft(rules, state, visit)
    reading = here.protocol.read(text, here.wanted)
    if reading.error is not None:
        return _refused(rules, here, state, text, reading, prompt)
    return _complete(rules, here, state, text, reading)


def _draft(rules: Rules, state: CastState, visit: Visit) -> Step:
    visit = visit._replace(drafts=visit.drafts + 1, turn=visit.turn + 1)
    event = Event("socket_refinement", {**about(rules, visit), "refinementTurn": visit.drafts})
    return Step(state._replace(at=visit), (event,), _decision(visit, "draft", visit.socket))


def finalize(rules: Rules, state: CastState, prompt: Prompt) -> Step:
    """The person is content with the drafts: ask for the final result in the same conversation."""
    visit = _waiting(state)
    if visit.mode != "draft":
        raise MateriaError(
            f"{visit.socket} is not a multi-turn socket with a draft.", hint="reply to it instead", kind="not_multi_turn"
        )
    if not visit.drafts:
        raise MateriaError(
            f"{visit.socket} has no draft yet.", hint="let its agent answer first (step)", kind="no_draft"
        )
    visit = visit._replace(mode="final")
    return Step(state._replace(at=visit), (), None, final_prompt(prompt, rules.sockets[visit.socket].ask))


def _refused(
    rules: Rules, here: SocketRules, state: CastState, text: str, reading: Reading, prompt: Prompt | None
) -> Step:
    visit = _waiting(state)
    told = "; ".join(f"{issue.path}: {issue.message}" for issue in reading.issues[:8])
    if here.socket.is_utility:
        failure = Failure("invalid_output", f"The output of {visit.socket} was refused. {told}", visit.socket,
                          "correct the utility, then recast")  # fmt: skip
        return _with_output(_stopped(state, failure, visit, reading), rules, visit)
    allowed = rules.graph.limits.repair_attempts + state.extra.get(("repair", visit.step), 0)
    about_visit = {**about(rules, visit), "visit": visit.visit}
    if visit.repairs >= allowed:
        failure = Failure(
            "repair_exhausted",
            f"{visit.socket} gave an unusable answer {visit.repairs + 1} times. {told}",
            visit.socket,
            "recast to ask again, revive for another repair turn, or correct the answer yourself",
        )
        exhausted = Event("same_socket_recovery_exhausted", {**about_visit, "error": told, "attempt": visit.repairs})
        step = _stopped(state, failure, visit, reading)
        return step._replace(events=(exhausted, *step.events))
    visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    state = state._replace(at=visit)
    before = prompt or prompt_for(rules, state)
    kind = "json_parse" if reading.error == "not_json" else "handoff_validation"
    facts = {"attempt": visit.repairs, "maxAttempts": allowed, "validationKind": kind}
    events = (
        Event("same_socket_recovery_start", {**about_visit, **facts, "error": told}),
        Event("same_socket_recovery_retry", {**about_visit, **facts}),
    )
    return Step(
        state,
        events,
        _decision(visit, "repair", visit.socket, reading),
        repair_prompt(before, here.ask, reading.issues, text),
        reading,
    )


def _complete(rules: Rules, here: SocketRules, state: CastState, text: str, reading: Reading) -> Step:
    visit = _waiting(state)
    kept_text = text if here.socket.is_utility else text.strip()
    state = state._replace(last_output=kept_text)
    if here.wanted.parse == "json":
        state = state._replace(last_json=reading.value)
    state = state._replace(data=_canonical(here, state.data, reading))
    if here.consumer_cursors:
        state = _renew(state, here.consumer_cursors)
    state, assigned, failure = _assign(here, state, visit, reading)
    decision = _decision(visit, "failure", None, reading, assigned)
    if failure:
        return _with_output(_stopped(state, failure, visit, reading, decision), rules, visit)
    state, fact = _advance(here.socket.advance, state, visit, reading)
    done = Event("socket_complete", {**about(rules, visit), "visit": visit.visit, "parsed": here.wanted.parse == "json"})
    state, events, over = _check_budget(state, visit)
    pending = Pending(
        reading.satisfied,
        kept_text,
        reading.context,
        fact is not None and fact.exhausted,
        fact is not None and fact.moved and visit.item is not None and fact.cursor == visit.item.cursor,
    )
    decision = decision._replace(advance=fact)
    if over:
        step = _stopped(state._replace(pending=pending), over, visit, reading, decision._replace(by="budget"))
        return step._replace(events=(done, *events, *step.events))
    step = _route(rules, here, state, visit, pending, decision)
    return step._replace(events=(done, *events, *step.events), reading=reading)


def _canonical(here: SocketRules, data: Mapping[str, JSON], reading: Reading) -> Mapping[str, JSON]:
    """Apply a utility's state patch and the canonical fields (R10)."""
    value = reading.value
    if here.wanted.parse != "json":
        return data
    socket = here.socket
    changed = dict(data)
    if socket.is_utility and isinstance(value, dict) and isinstance(value.get("state"), dict):
        changed.update((key, part) for key, part in value["state"].items() if key not in ("workItems", "satisfied"))
    items = reading.work_items
    if isinstance(items, list) and (socket.is_generator or changed.get("workItems", []) == []):
        changed["workItems"] = items
    if reading.context and reading.context.strip():
        entry = f"[{socket.id} {socket.materia.label}] {reading.context}"
        before = changed.get("context")
        changed["context"] = f"{before}\n\n{entry}" if isinstance(before, str) and before.strip() else entry
    return changed


def _renew(state: CastState, cursors: tuple[str, ...]) -> CastState:
    """A generator completed: the items of the loops that consume it are new (R17)."""
    gone = [item for item in state.items if item[0] in cursors]
    gone += [entry.item for entry in state.follow_up if entry.item and entry.item[0] in cursors]
    return state._replace(
        cursors={name: 0 if name in cursors else at for name, at in state.cursors.items()},
        items={item: record for item, record in state.items.items() if item[0] not in cursors},
        follow_up=followup.without_items(state.follow_up, gone),
    )


def _assign(
    here: SocketRules, state: CastState, visit: Visit, reading: Reading
) -> tuple[CastState, tuple[Assigned, ...], Failure | None]:
    """Run the assignments in order; each sees what the earlier ones set (R11)."""
    done: list[Assigned] = []
    for target, segments, source in here.assign:
        if not segments:
            failure = Failure(
                "assignment",
                f"The assignment target {target!r} of {visit.socket} names nothing.",
                visit.socket,
                "give it a name such as plan.items",
            )
            return state, tuple(done), failure
        value = source_value(source, state, visit.item, reading.value)
        done.append(Assigned(target, source, value is not MISSING))
        if value is not MISSING:
            if len(segments) == 1:
                state = state._replace(data={**state.data, segments[0]: value})
            else:
                state = state._replace(data=set_path(state.data, list(segments), value))
    return state, tuple(done), None


def _advance(
    advance: Advance | None, state: CastState, visit: Visit, reading: Reading
) -> tuple[CastState, AdvanceFact | None]:
    """Move the cursor when the condition holds, and say whether the list is exhausted (R14)."""
    if advance is None:
        return state, None
    before = state.cursors.get(advance.cursor, 0)
    value = source_value(advance.items, state, visit.item, state.last_json)
    length = len(value) if isinstance(value, list) else 0
    if not matches(advance.when, reading.satisfied):
        return state, AdvanceFact(advance.when, False, advance.cursor, before, before, length, False, advance.derived)
    after = before + 1
    state = state._replace(cursors={**state.cursors, advance.cursor: after})
    fact = AdvanceFact(advance.when, True, advance.cursor, before, after, length, after >= length, advance.derived)
    return state, fact


def _check_budget(state: CastState, visit: Visit) -> tuple[CastState, tuple[Event, ...], Failure | None]:
    """Warn once, and stop at the maximum; the step's own changes are kept (R20)."""
    most, used = state.budget.max_tokens, state.usage.tokens
    if most is None:
        return state, (), None
    if used >= most:
        failure = Failure(
            "budget",
            f"The cast has used {used} of {most} tokens.",
            visit.socket,
            "raise the budget of this cast (budget N), then revive it",
        )
        return state, (Event("budget_limit", {"tokens": used, "maxTokens": most}),), failure
    if not state.warned and used * 100 >= most * state.budget.warn_at_percent:
        event = Event("budget_warning", {"tokens": used, "maxTokens": most})
        return state._replace(warned=True), (event,), None
    return state, (), None


def _route(rules: Rules, here: SocketRules, state: CastState, visit: Visit, pending: Pending, decision: Decision) -> Step:
    """Choose the target and keep the books: follow-up, edge counts, the record of an item that is done."""
    socket, item = here.socket, visit.item
    if pending.exhausted:
        choice = choose_exit(here.exits, pending.satisfied)
    else:
        choice = choose_edge(rules, here, state, visit, pending.satisfied)
    reworked = choice.edge is not None and choice.edge.when == "not_satisfied"
    failure = None
    if choice.edge is not None:
        state, failure = count_edge(rules, state, visit, choice.edge)
    kept = state.follow_up
    if reworked and not pending.advanced:
        kept = followup.capture(kept, socket, choice.target, item, pending.context, pending.text)
    if not reworked and kept:
        kept = followup.without_target(kept, socket.id)
    if pending.advanced and item is not None:
        kept = followup.without_items(kept, [item.id])
        state = state._replace(items={key: record for key, record in state.items.items() if key != item.id})
    state = state._replace(follow_up=kept, pending=None)
    decision = _chosen(decision, choice)
    if failure:
        return _stopped(state, failure, visit, None, decision._replace(by="failure"))
    return Step(state._replace(status="ready", next=choice.target), (), decision)


def _chosen(decision: Decision, choice: Choice) -> Decision:
    return decision._replace(by=choice.by, target=choice.target, looks=choice.looks)  # type: ignore[arg-type]


def fail(rules: Rules, state: CastState, failure: Failure) -> Step:
    """Something outside the engine went wrong with the waiting visit: a process, an agent."""
    return _stopped(state, failure, _waiting(state))


def abort(rules: Rules, state: CastState, reason: str) -> Step:
    """The person stops the cast."""
    failure = Failure("aborted", reason, state.at.socket if state.at else None, "recast to go on from this socket")
    stopped = state._replace(status="aborted", failure=failure)
    return Step(stopped, (Event("cast_end", {"ok": False, "error": reason, "kind": "aborted"}),))


def recast(rules: Rules, state: CastState) -> Step:
    """Ask the socket where a failed or aborted cast stopped once more, in the same visit, from its first prompt."""
    _needs_stopped(state)
    visit = state.at
    if visit is None or (state.failure and state.failure.blocked) or state.next is not None or state.pending:
        return revive(rules, state)
    mode: Mode = "draft" if rules.sockets[visit.socket].socket.materia.multi_turn else "work"
    visit = visit._replace(mode=mode, turn=visit.turn + 1, repairs=0, drafts=0)
    state = state._replace(status="waiting", failure=None, at=visit)
    prompt = None if rules.sockets[visit.socket].socket.is_utility else prompt_for(rules, state)
    return Step(state, (Event("cast_recast", about(rules, visit)),), None, prompt)


def revive(rules: Rules, state: CastState) -> Step:
    """Go on where a failed cast stopped, with the exhausted allowance granted again (R18, R19, R20)."""
    _needs_stopped(state)
    failure, visit = state.failure, state.at
    kind = failure.kind if failure else "passive"
    if kind == "budget" and state.pending and visit:
        return _revive_budget(rules, state, visit, state.pending)
    event = Event("cast_revive", {**(about(rules, visit) if visit else {}), "kind": kind})
    if failure and failure.blocked:
        if failure.allow:
            key, more = failure.allow
            state = state._replace(extra={**state.extra, key: state.extra.get(key, 0) + more})
        return Step(state._replace(status="ready", next=failure.blocked, failure=None), (event,))
    if state.next is not None or visit is None:
        return Step(state._replace(status="ready", next=state.next or rules.graph.entry, failure=None), (event,))
    if kind == "repair_exhausted":
        turn = ("repair", visit.step)
        state = state._replace(extra={**state.extra, turn: state.extra.get(turn, 0) + 1})
        visit = visit._replace(repairs=visit.repairs + 1, turn=visit.turn + 1)
    state = state._replace(status="waiting", failure=None, at=visit)
    prompt = None if rules.sockets[visit.socket].socket.is_utility else prompt_for(rules, state)
    return Step(state, (event,), None, prompt)


def _revive_budget(rules: Rules, state: CastState, visit: Visit, pending: Pending) -> Step:
    most = state.budget.max_tokens
    if most is not None and state.usage.tokens >= most:
        raise MateriaError(
            f"The budget of {most} tokens is still used up ({state.usage.tokens}).",
            hint="raise it first: budget N",
            kind="budget",
        )
    here = rules.sockets[visit.socket]
    decision = _decision(visit, "failure", None)._replace(satisfied=pending.satisfied)
    step = _route(rules, here, state._replace(failure=None), visit, pending, decision)
    event = Event("cast_revive", {**about(rules, visit), "kind": "budget"})
    return step._replace(events=(event, *step.events))


def set_budget(state: CastState, max_tokens: int | None) -> CastState:
    """Change the budget of this cast only; a warning may come again."""
    return state._replace(budget=replace(state.budget, max_tokens=max_tokens), warned=False)


def _stopped(
    state: CastState,
    failure: Failure,
    visit: Visit | None = None,
    reading: Reading | None = None,
    decision: Decision | None = None,
) -> Step:
    decision = decision or _decision(visit or state.at, "failure", None, reading)
    state = state._replace(status="failed", failure=failure, next=None)
    data = {"ok": False, "error": failure.message, "kind": failure.kind}
    if failure.socket:
        data["socket"] = failure.socket
    return Step(state, (Event("cast_end", data),), decision._replace(failure=failure), None, reading)


def _with_output(step: Step, rules: Rules, visit: Visit) -> Step:
    """Put the output that led to a failure on record, where no other event of the step does."""
    refused = Event("socket_refused", {**about(rules, visit), "visit": visit.visit})
    return step._replace(events=(refused, *step.events))


def _decision(
    visit: Visit | None,
    by: str,
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
        by,  # type: ignore[arg-type]
        target,
        reading.satisfied if reading else None,
        reading.notes if reading else (),
        reading.issues if reading else (),
        assigned,
    )


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """The fields that say which visit an event is about, as the reference names them."""
    materia = rules.sockets[visit.socket].socket.materia
    data: dict[str, JSON] = {"socket": visit.socket, "materia": materia.id, "materiaLabel": materia.label}
    if visit.item is not None:
        data["itemKey"] = visit.item.key
        data["itemLabel"] = visit.item.label
        data["itemLabelShort"] = short(visit.item.label)
    return data


def short(label: str, most: int = 60) -> str:
    """A label on one line, at most ``most`` characters."""
    text = " ".join(label.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _waiting(state: CastState) -> Visit:
    if state.status != "waiting" or state.at is None:
        raise MateriaError(
            f"No socket is waiting for an output; the cast is {state.status}.", hint="step first", kind="not_waiting"
        )
    return state.at


def _needs_stopped(state: CastState) -> None:
    if state.status not in ("failed", "aborted"):
        raise MateriaError(
            f"The cast is {state.status}, not failed or aborted.", hint="step or run goes on with it", kind="not_stopped"
        )


__all__ = [
    "CastState",
    "Event",
    "Step",
    "abort",
    "about",
    "begin",
    "enter",
    "fail",
    "finalize",
    "list_at",
    "output",
    "prompt_for",
    "recast",
    "revive",
    "set_budget",
]
