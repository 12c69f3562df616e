"""What the runtime tells a handoff protocol of a turn, beside the socket and the text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from materia_nb.engine.routing import edge_use
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import View, Visit
from materia_nb.handoff.protocol import Learned, Task, TurnFacts
from materia_nb.jsonvalue import JSON

MOST_ROUNDS: Final = 3
"""How often a loop may be taken whose edge has no ``maxTraversals``."""


def turn_facts(rules: Rules, here: SocketRules, state: View, visit: Visit) -> TurnFacts:
    """Gather what a protocol may want to know of the turn that ``visit`` is in."""
    rounds, most = _rounds(rules, here, state, visit)
    return TurnFacts(
        meta={
            "step_id": visit.socket,
            "flow_key": rules.graph.name,
            "agent_key": here.socket.materia.id,
        },
        agent_id=agent_id(state.request, visit.socket),
        given=given_to(rules, here, state),
        rounds=rounds,
        most_rounds=most,
        refused=visit.repairs,
        memory=visit.memory,
        sockets=frozenset(rules.graph.sockets),
        changed_files=visit.changed,
    )


def given_to(rules: Rules, here: SocketRules, state: View) -> Mapping[str, JSON]:
    """Return the envelope that the agent of a socket is handed before its turn; empty where its protocol has none."""
    if here.teller is None:
        return {}
    socket = here.socket
    task = Task(
        f"{socket.materia.label}: {state.request}",
        agent_id(state.request, socket.id),
        rules.graph.name,
        socket.assignment,
        state.knowledge,
        rules.session,
        _provider(socket.materia.model),
    )
    return here.teller.given(task)


def _provider(model: str | None) -> str:
    """Return the part of ``provider:model`` that says whose the model is."""
    return model.partition(":")[0] if model and ":" in model else ""


def learned_from(
    rules: Rules, here: SocketRules, state: View, value: JSON, knowledge: Mapping[str, JSON]
) -> Learned:
    """Return what is kept about the project after an accepted output."""
    if here.learner is None or not isinstance(value, dict):
        return Learned(knowledge)
    return here.learner.learn(value, given_to(rules, here, state), knowledge)


def agent_id(request: str, socket: str) -> str:
    """Return the runtime's own name of whoever answers a socket in a cast: ``a`` and hexadecimal digits."""
    return "a" + hashlib.sha256(f"{request}\0{socket}".encode("utf-8", "replace")).hexdigest()[:8]


def _rounds(rules: Rules, here: SocketRules, state: View, visit: Visit) -> tuple[int, int]:
    """How often the socket sent work back, and how often it may."""
    edge = next((edge for edge in here.socket.edges if edge.when == "not_satisfied"), None)
    if edge is None:
        return 0, MOST_ROUNDS
    used, limit = edge_use(rules, state, visit, edge)
    if edge.max_traversals is not None and limit is not None:
        return used, limit
    if visit.item is None:
        return used, MOST_ROUNDS
    record = state.items.get(visit.item.id)
    return (record.cycles if record else 0), MOST_ROUNDS
