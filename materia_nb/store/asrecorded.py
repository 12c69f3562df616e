"""A cast whose loadout cannot be cast here, step by step as it was recorded, without the engine (R41)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from materia_nb.engine import events as ev
from materia_nb.engine import evolve as to
from materia_nb.engine import step as engine
from materia_nb.engine.artifacts import output_name
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Failure, Item, Visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END
from materia_nb.store.journal import Line
from materia_nb.store.reader import Recording, begun


def as_recorded(rules: Rules, lines: Sequence[Line], read: Callable[[str], str]) -> Recording:
    """List what was recorded: the steps with their items, outputs, tool calls and tokens, and how it ended.

    Nothing is parsed, assigned or decided, so there are no differences, and the state is that of the start.

    Args:
        rules: those of a sketch of the loadout, with every socket that was visited.
        lines: the events.
        read: gives the text of an artifact by name; raises MateriaError when it cannot.
    """
    session = to.begin(rules, begun(lines))
    done = Recording(session._replace(state=session.state._replace(next=None)))
    for line in lines:
        try:
            event = ev.from_json(line.type, line.data, line.ts, lenient=True)
        except MateriaError:
            continue  # a tool call that is none
        if isinstance(event, ev.SocketStart):
            _entered(done, rules, event)
        elif isinstance(event, ev.Output) and done.session.steps:
            _answered(done, rules, event, read)
        elif isinstance(event, ev.ToolCalled | ev.AgentNote) and done.session.steps:
            done.session = to.evolve(rules, done.session, event)
        elif isinstance(event, ev.CastRecast | ev.CastRevive):
            _set_state(done, done.session.state._replace(status="waiting", failure=None))
        elif isinstance(event, ev.CastEnd):
            _ended(done, event)
    return done


def visited_sockets(lines: Sequence[Line]) -> dict[str, str]:
    """Return the sockets that a journal names as started, each with its materia."""
    about = [line.data for line in lines if line.type == "socket_start"]
    return {data["socket"]: str(data.get("materia")) for data in about if isinstance(data.get("socket"), str)}


def _set_state(done: Recording, state: CastState) -> None:
    done.session = done.session._replace(state=state)


def _entered(done: Recording, rules: Rules, event: ev.SocketStart) -> None:
    socket, before = event.about.get("socket"), done.session.state
    if not isinstance(socket, str):
        return
    last = done.session.steps[-1].socket if done.session.steps else None
    visit = event.visit if event.visit and event.visit > 0 else before.visits.get(socket, 0) + 1
    if before.at is not None and (before.at.socket, before.at.visit) == (socket, visit):
        return  # the same visit once more
    key, label = event.about.get("itemKey"), event.about.get("itemLabel")
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
    done.session = to.keep_entry(done.session, engine.Step(state), event.ts)


def _answered(done: Recording, rules: Rules, event: ev.Output, read: Callable[[str], str]) -> None:
    step, state = done.session.steps[-1], done.session.state
    if event.artifact is None and event.text is None and isinstance(event, ev.RecoveryStart):
        # The reference writes the next answer of the visit over this one.
        error = (event.error or "no reason given")[:300]
        done.messages.append(
            f"Step {step.number}: an answer was refused and asked for again; the recording does not keep it ({error})."
        )
        return
    artifact, text = event.artifact or output_name(step.socket, step.visit, step.item_key), event.text
    if text is None:
        try:
            text = read(artifact)
        except MateriaError as error:
            text = ""
            done.messages.append(f"Step {step.number}: {' '.join(str(error).split())}")
    if event.usage is not None:
        state = state._replace(usage=state.usage.plus(event.usage))
    if isinstance(event, ev.SocketComplete):
        target = event.next if event.next in rules.sockets else END
        state = state._replace(status="ready", next=target, last_output=text)
    answer = to.Answer(text, artifact, event.usage)
    done.session = to.keep_output(rules, done.session, engine.Step(state), answer, event.ts)


def _ended(done: Recording, event: ev.CastEnd) -> None:
    state = done.session.state
    if event.ok is True:
        _set_state(done, _over(state, "complete"))
        return
    message = event.error or "the recording does not say why"
    aborted = event.kind == "aborted" or message.strip().lower() == "aborted"
    failure = Failure(event.kind or "recorded_failure", message, state.at.socket if state.at else None)
    over = _over(state, "aborted" if aborted else "failed")._replace(failure=failure)
    done.session = to.moved(done.session, engine.Step(over), event.ts)


def _over(state: CastState, status: JSON) -> CastState:
    return state._replace(status=status, next=None, failure=None)
