"""The input of agents and utilities: the `Turn` that an agent is asked with, and the document that a process reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from materia_nb.agents.interface import Telling, Turn, turn_kind
from materia_nb.agents.tools import MoreTools, Tool
from materia_nb.engine.prompt_context import current_handoffs
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import NOTHING, Visit
from materia_nb.jsonvalue import JSON, MISSING, compact, thawed
from materia_nb.platform import Stop
from materia_nb.utilities.utility_step import stdin_document


def make_turn(  # noqa: PLR0913 - all that a turn is made of, by name
    rules: Rules,
    session: Session,
    visit: Visit,
    *,
    folder: Path,
    run_dir: Path,
    stop: Stop,
    tell: Callable[[Telling], None],
    document: JSON = None,
    before: tuple[int, int] | None = None,
    functions: Mapping[str, Tool] = NOTHING,
) -> Turn:
    """Return what the agent of a visit, or who is pinned in its place, is asked.

    Args:
        rules: what the cast runs by.
        session: what it knows.
        visit: which visit owes an answer.
        folder: the directory to work in.
        run_dir: the directory of the cast.
        stop: tells the agent to end.
        tell: takes what it tells while it answers.
        document: what the process is given that somebody answers for, None for an agent.
        before: how many turns the socket, and its materia, had, where the session does not know of all.
        functions: those that are tools, by name.
    """
    socket_rules = rules.sockets[visit.socket]
    materia, item = socket_rules.socket.materia, visit.item
    free = visit.mode in socket_rules.any_text  # anything may be said before the final answer
    state = session.state
    last = rules.sockets.get(state.last_socket or "")  # where it hands over JSON, the object that was read
    value = state.last_json if last is not None and last.wanted.parse == "json" else state.last_output
    question = session.asked if document is None else compact(document)
    turn = object.__new__(
        Turn
    )  # a frozen dataclass sets its fields one by one, which takes longer than many an answer
    turn.__dict__.update(
        socket_id=visit.socket,
        materia_id=materia.id,
        materia_label=materia.label,
        visit=visit.visit,
        kind=turn_kind(visit.mode, first=not visit.drafts),
        prompt=question if isinstance(question, str) else lambda: question.text,
        parts=() if isinstance(question, str) else lambda: question.parts,
        item=item.value if item else None,
        state=state.data,
        last=None if value is MISSING else value,
        handoffs=lambda: current_handoffs(state),
        conversation=session.said if session.spoken else (),
        meta=session.spoken[-1].meta if session.spoken else NOTHING,
        item_key=item.key if item else None,
        item_label=item.label if item else None,
        tools=materia.tools,
        model=materia.model,
        thinking=materia.thinking,
        wants=None if free else dict(socket_rules.wants) or None,
        schema=None if free or socket_rules.schema is None else thawed(socket_rules.schema),
        request=state.request,
        cast_id=run_dir.name,
        project=folder,
        stop=stop,
        index=session.turns.get(visit.socket, 0) if before is None else before[0],
        materia_index=session.turns.get(f"materia {materia.id}", 0) if before is None else before[1],
        lane=state.lane.name if state.lane is not None else "",
        turn_of_visit=visit.turn,
        grant=visit.grant if visit.grant and visit.grant.at(time.time()).standing == "PENDING" else None,
        allowed=session.allowed,
        calls=(*session.calls, *session.asking),
        tell=tell,
        more_tools=MoreTools(functions, rules.graph.mcp_servers, str(run_dir)),
    )
    return turn


def utility_input(
    rules: Rules, session: Session, visit: Visit, *, project: Path, run_dir: Path
) -> dict[str, JSON]:
    """Return what the process of a utility is given (R23)."""
    state, item = session.state, visit.item
    document = stdin_document(
        materia=rules.sockets[visit.socket].socket.materia,
        project=project,
        scope=state.scope,
        run_dir=run_dir,
        request=state.request,
        cast_id=run_dir.name,
        socket_id=visit.socket,
        state=state.data,
        item=item.value if item else None,
        item_key=item.key if item else None,
        item_label=item.label if item else None,
        cursor=(item.cursor, item.position) if item else None,
        cursors=state.cursors,
    )
    return document if state.lane is None else {**document, "lane": state.lane.name}
