"""Run random casts of a loadout, and check that explore lists each of their routes as possible."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import assume

from builders import Play
from drawn_loadouts import rules_of
from materia_nb.engine import outputs, recovery
from materia_nb.engine.routing import choose_edge
from materia_nb.engine.rules import SocketRules
from materia_nb.engine.state import Failure
from materia_nb.insight.explore import Exploration
from materia_nb.loadout.vocabulary import WITHOUT_OUTPUT, Result

MAX_STATES = 1_000
FAILURE_KINDS = ["outside", *(kind for result in Result for kind in result.kinds)]


def check_every_route_is_possible(document: dict[str, Any], seed: int) -> None:
    """Assert that random casts take only routes that explore lists, and that the odds of all ends sum to 1."""
    explored, rng = Exploration(rules_of(document).graph, range(3), MAX_STATES), Random(seed)
    assume(explored.complete_search)
    for _ in range(20):
        play = Play(document)
        while play.visit and len(play.route) < 60:
            _take_turn(play, rng)
            check = play.decision.chosen if play.decision and play.decision.by in {"edge", "exit"} else None
            if check is not None:
                assert (check.route or (play.decision.socket, check.edge_index + 1)) not in explored.never
        assert set(play.sockets).isdisjoint(explored.unreached)
        assert play.visit or play.at in {*explored.ends, "repair_exhausted", "invalid_output"}
    failures: Any = {str(result): 0.1 for result in WITHOUT_OUTPUT}
    assert sum(explored.odds(0.6, 2, **failures).ends.values()) == pytest.approx(1)


def _take_turn(play: Play, rng: Random) -> None:
    """Apply a random result to the waiting visit; a failure is applied only if an edge matches it."""
    here, number = play.rules.sockets[play.visit.socket], rng.random()
    kind = rng.choice(FAILURE_KINDS)
    if play.visit.mode == "draft" and play.visit.drafts:
        play.take(outputs.finalize(play.rules, play.state, play.prompt))
    elif number < 0.3 and choose_edge(here, Result.from_failure(kind), exhausted=False) is not None:
        play.take(recovery.fail(play.rules, play.state, Failure(kind, "it broke")))
    elif number > 0.8:
        play.answer("no JSON")
    else:
        assigned = {target for socket in play.rules.graph.sockets.values() for target, _ in socket.assign}
        play.answer(is_well_formed(rng, here, rows="rows" not in assigned))


def is_well_formed(rng: Random, here: SocketRules, *, rows: bool) -> dict[str, Any]:
    """Return True if an output is valid for its socket: its lists have equal length, and it has only allowed fields."""
    count = rng.randrange(3)
    value: dict[str, Any] = {}
    if here.requirements.why_satisfied or rng.random() < 0.5:
        value["satisfied"] = rng.random() < 0.5
    if here.requirements.work_items:
        value["workItems"] = [{"title": f"t{n}", "context": "c"} for n in range(count)]
    if here.socket.is_utility and rows:
        value["state"] = {"rows": [{"title": "r"} for _ in range(count)]}
    return value
