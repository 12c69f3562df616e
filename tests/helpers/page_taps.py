"""Random taps on a page that plays a loadout, compared with the route of the engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from shutil import which
from typing import Any, Final, NamedTuple

import pytest

from materia_nb.cast.formatting import describe_failure
from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.evolve import fold, session_at
from materia_nb.engine.items import list_at
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.reachable_states import StateSpace, explore_states
from materia_nb.loadout.graph import Graph

TAPS: Final = 10_000
_SCRIPT: Final = Path(__file__).with_suffix(".cjs")

needs_node = pytest.mark.skipif(which("node") is None, reason="the page is JavaScript")


class EngineView(NamedTuple):
    """The position of a cast in the engine.

    Attributes:
        heading: the heading that the page should show.
        socket: the socket that waits or has failed; None if the cast is complete.
        end: ``complete`` or the kind of the failure; None while the cast waits.
        turns: the finished turns of agents.
        visited: the visited sockets, in order.
    """

    heading: str
    socket: str | None
    end: str | None
    turns: int
    visited: list[str]


class EnginePlayer:
    """Plays a loadout in the engine, by the numbers of the answers that its page offers."""

    def __init__(self, graph: Graph, items: Sequence[int]) -> None:
        self.graph, self.rules = graph, Rules(graph)
        self.space: StateSpace = explore_states(graph, items)
        self._first = self._enter(session_at(entering.begin(self.rules, SAMPLE)))
        self.restart()

    def restart(self) -> None:
        """Begin another cast."""
        self.session, self._state = self._first, 0

    def answer(self, number: int) -> None:
        """Give an answer."""
        move = self.space.moves[self._state][number]
        events = decide.answer(self.rules, self.session, Answer(move.answer.text), 0)
        self.session, self._state = self._enter(fold(self.rules, self.session, events)), move.to

    @property
    def answers(self) -> int:
        """The number of answers that can be given."""
        return len(self.space.moves[self._state])

    @property
    def view(self) -> EngineView:
        """The position of the cast."""
        state, visited = self.session.state, [step.socket for step in self.session.steps]
        agent_visits = [not self.graph.sockets[socket].is_utility for socket in visited]
        if state.status == "complete":
            return EngineView("Complete", None, "complete", sum(agent_visits), visited)
        if state.failure is not None:
            socket = state.failure.socket
            heading = f"Failed: {self.graph.names[socket]} {describe_failure(state.failure.kind)}"
            return EngineView(heading, socket, state.failure.kind, sum(agent_visits), visited)
        heading = self.graph.names[visited[-1]] + self._item_position(state)
        return EngineView(heading, visited[-1], None, sum(agent_visits[:-1]), visited)

    def _item_position(self, state: CastState) -> str:
        assert state.at is not None
        item, iterator = state.at.item, self.graph.sockets[state.at.socket].iterator
        if item is None or iterator is None:
            return ""
        is_last = item.position + 1 == len(list_at(iterator.items, state, item))
        if item.position == 0:
            return ", the only item" if is_last else ", the first item"
        return ", the last item" if is_last else ", an item in the middle"

    def _enter(self, session: Session) -> Session:
        while session.state.status == "ready":
            session = fold(self.rules, session, decide.enter(self.rules, session, 0))
        return session


def random_taps(graph: Graph, items: Sequence[int], seed: str) -> list[tuple[int | None, EngineView]]:
    """Return random taps on the answers of a page, with the position in the engine after each tap; None starts again."""
    return list(islice(_tap_forever(EnginePlayer(graph, items), Random(seed)), TAPS))


def _tap_forever(player: EnginePlayer, rng: Random) -> Iterator[tuple[int | None, EngineView]]:
    while True:
        player.restart()
        view = player.view
        yield None, view
        while view.end is None:
            number = rng.randrange(player.answers)
            player.answer(number)
            view = player.view
            yield number, view


def shown_after_taps(page: Path, taps: Sequence[int | None], learner: str = "") -> list[dict[str, Any]]:
    """Tap a page, and return what it shows after each tap: see ``page_taps.cjs``."""
    result = subprocess.run(
        ["node", _SCRIPT, page, learner], input=json.dumps(taps), capture_output=True, text=True, check=True, timeout=60
    )
    shown: list[dict[str, Any]] = json.loads(result.stdout)
    return shown
