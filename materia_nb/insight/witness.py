"""A scripted cast that shows that something can happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from materia_nb.engine import decide, evolve
from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.insight.answers import WORD
from materia_nb.insight.space import COMPLETE, Space, Way
from materia_nb.loadout.graph import Graph


class ByVisit:
    """A pin for a utility that answers otherwise at each visit."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.__name__ = "witness"

    def __call__(self, turn: Any) -> str:
        """Return the answer of the turn's visit."""
        return self.texts[int(turn.visit) - 1]

    def __repr__(self) -> str:
        return f"ByVisit({', '.join(self.texts)})"


@dataclass(frozen=True, slots=True)
class Witness:
    """A cast that shows that something can happen, by the shortest way there and from there to an end.

    ``wb.cast(request, agents={"*": witness.answers}, pins=witness.pins)`` makes it happen.

    Attributes:
        what: what it shows.
        route: the sockets that are visited, in order.
        end: ``complete`` or the kind of the failure; None when no end can be reached.
        answers: what agents say, by socket, turn by turn.
        pins: what utilities are pinned to, by socket.
        drafts: the sockets whose drafts a person accepts (``cast.finalize()``).
    """

    what: str
    route: tuple[str, ...]
    end: str | None
    answers: dict[str, list[str]]
    pins: dict[str, str | ByVisit]
    drafts: tuple[str, ...] = ()


def to_an_end(space: Space, start: int) -> list[tuple[int, Way]]:
    """Return the shortest way from a state to a success, else to a failure; empty when there is none."""
    came: dict[int, tuple[int, Way]] = {}
    todo, seen = deque([start]), {start}
    ends: dict[bool, int] = {}
    while todo and True not in ends:
        at = todo.popleft()
        if (end := space.nodes[at].end) is not None:
            ends.setdefault(end == COMPLETE, at)
        for way in space.ways[at]:
            if way.to not in seen:
                seen.add(way.to)
                came[way.to] = (at, way)
                todo.append(way.to)
    at = ends.get(True, ends.get(False, start))
    found: list[tuple[int, Way]] = []
    while at != start:
        found.append(came[at])
        at = came[at][0]
    return found[::-1]


def witness_of(graph: Graph, space: Space, what: str, ways: Sequence[tuple[int, Way]]) -> Witness:
    """Return the cast that goes these ways, each with the state that it leaves."""
    said: dict[str, list[str]] = {}
    for number, way in ways:
        socket = space.nodes[number].socket or ""
        said.setdefault(socket, []).extend([WORD] * (way.turns - 1) + [way.answer.text])
    pinned = {id_: texts for id_, texts in said.items() if graph.sockets[id_].is_utility}
    return Witness(
        what,
        tuple(space.nodes[number].socket or "" for number, _ in ways),
        space.nodes[ways[-1][1].to if ways else 0].end,
        {id_: texts for id_, texts in said.items() if id_ not in pinned},
        {id_: texts[0] if len(set(texts)) == 1 else ByVisit(texts) for id_, texts in pinned.items()},
        tuple(id_ for id_ in said if graph.sockets[id_].materia.multi_turn and id_ not in pinned),
    )


def played(rules: Rules, witness: Witness) -> Session:
    """Return the cast that a witness describes, as everything that it knows; nothing runs and nothing is written."""
    state = engine.begin(rules, WORD)
    session, said = Session(state, state), {id_: iter(texts) for id_, texts in witness.answers.items()}
    while session.state.status in ("ready", "waiting"):
        if session.state.status == "ready":
            session = decide.enter(rules, session, 0).session
            continue
        visit = decide.waiting(session)
        if visit.mode == "draft" and visit.drafts:
            session = decide.finalize(rules, session, 0).session
            continue
        pin = witness.pins.get(visit.socket)
        told = pin.texts[visit.visit - 1] if isinstance(pin, ByVisit) else pin
        text = next(said[visit.socket]) if told is None else told
        session = decide.answer(rules, session, evolve.Answer(text), 0).session
    return session
