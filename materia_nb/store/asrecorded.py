"""A cast whose loadout cannot be cast here, step by step as it was recorded, without the engine (R41)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.engine.said import call_from
from materia_nb.engine.state import CastState, Failure, Item, Visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END
from materia_nb.store.history import History
from materia_nb.store.journal import Line
from materia_nb.store.replay import OUTPUT_TYPES, Replay, usage_of
from materia_nb.store.rundir import output_name

_DONE: Final = "socket_complete"


def as_recorded(rules: Rules, lines: Sequence[Line], read: Callable[[str], str]) -> Replay:
    """List what was recorded: the steps with their items, outputs, tool calls and tokens, and how it ended.

    Nothing is parsed, assigned or decided, so there are no differences, and the state is that of the start.

    Args:
        rules: those of a sketch of the loadout, with every socket that was visited.
        lines: the events.
        read: gives the text of an artifact by name; raises MateriaError when it cannot.
    """
    start = next((line.data for line in lines if line.type == "cast_start"), {})
    request, data = start.get("request"), start.get("state")
    state = engine.begin(
        rules, request if isinstance(request, str) else "", None, data if isinstance(data, dict) else None
    )
    done = Replay(History(state._replace(next=None)))
    for line in lines:
        if line.type == "socket_start":
            _entered(done.history, rules, line)
        elif line.type in OUTPUT_TYPES and done.history.steps:
            _answered(done, rules, line, read)
        elif line.type == "tool_call" and done.history.steps:
            if (call := call_from(line.data.get("call"))) is not None:
                done.history.called(call)
        elif line.type == "agent_note" and done.history.steps:
            done.history.noted(str(line.data.get("text", "")))
        elif line.type in ("cast_recast", "cast_revive"):
            done.history.state = done.history.state._replace(status="waiting", failure=None)
        elif line.type == "cast_end":
            _ended(done.history, line)
    return done


def visited_sockets(lines: Sequence[Line]) -> dict[str, str]:
    """Return the sockets that a journal names as started, each with its materia."""
    about = [line.data for line in lines if line.type == "socket_start"]
    return {data["socket"]: str(data.get("materia")) for data in about if isinstance(data.get("socket"), str)}


def _entered(history: History, rules: Rules, line: Line) -> None:
    socket, before = line.data.get("socket"), history.state
    if not isinstance(socket, str):
        return
    last = history.steps[-1].socket if history.steps else None
    visit = _number(line.data.get("visit")) or before.visits.get(socket, 0) + 1
    if before.at is not None and (before.at.socket, before.at.visit) == (socket, visit):
        return  # the same visit once more
    key, label = line.data.get("itemKey"), line.data.get("itemLabel")
    item = (
        Item(None, key, label if isinstance(label, str) else key, 0, "", None)
        if isinstance(key, str)
        else None
    )
    at = Visit(socket, visit, before.steps + 1, item, rules.sockets[socket].first_mode)
    way = {f"{last}->{socket}": before.traversals.get(f"{last}->{socket}", 0) + 1} if last else {}
    state = before._replace(
        status="waiting",
        next=None,
        at=at,
        steps=at.step,
        failure=None,
        visits={**before.visits, socket: visit},
        traversals={**before.traversals, **way},
    )
    history.entered(engine.Step(state), line.ts)


def _answered(done: Replay, rules: Rules, line: Line, read: Callable[[str], str]) -> None:
    given, usage, state = line.data.get("artifact"), usage_of(line.data.get("usage")), done.history.state
    step, text = done.history.steps[-1], ""
    if given is None and line.type == "same_socket_recovery_start":
        # The reference writes the next answer of the visit over this one.
        error = str(line.data.get("error", "no reason given"))[:300]
        done.messages.append(
            f"Step {step.number}: an answer was refused and asked for again; the recording does not keep it ({error})."
        )
        return
    artifact = given if isinstance(given, str) else output_name(step.socket, step.visit, step.item_key)
    try:
        text = read(artifact)
    except MateriaError as error:
        done.messages.append(f"Step {step.number}: {' '.join(str(error).split())}")
    if usage is not None:
        state = state._replace(usage=state.usage.plus(usage))
    if line.type == _DONE:
        target = line.data.get("next")
        state = state._replace(
            status="ready", next=target if target in rules.sockets else END, last_output=text
        )
    done.history.answered(engine.Step(state), text, artifact, usage, line.ts)


def _ended(history: History, line: Line) -> None:
    state = history.state
    if line.data.get("ok") is True:
        history.state = _over(state, "complete")
        return
    message, kind = str(line.data.get("error", "the recording does not say why")), line.data.get("kind")
    aborted = kind == "aborted" or message.strip().lower() == "aborted"
    failure = Failure(
        kind if isinstance(kind, str) else "recorded_failure", message, state.at.socket if state.at else None
    )
    over = _over(state, "aborted" if aborted else "failed")._replace(failure=failure)
    history.moved(engine.Step(over), line.ts)


def _over(state: CastState, status: JSON) -> CastState:
    return state._replace(status=status, next=None, failure=None)


def _number(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
