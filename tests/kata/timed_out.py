"""Example change: add a condition `timed_out` for failures by timeout, with a separate result.

The checks cover routing, explanations, explore and odds. Odds, simulations, estimates and their verbs accept the
probability of a timeout.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Play, asks, at, config, edge
from drawn_loadouts import loadouts
from materia_nb.display.graph_parts import links
from materia_nb.engine import recovery
from materia_nb.engine.state import Failure
from materia_nb.insight.estimate import estimate_cast
from materia_nb.insight.explore import Exploration, replay_witness
from materia_nb.insight.odds import simulate_casts
from materia_nb.insight.why import explain
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.vocabulary import CONDITIONS, Result, condition_spec
from materia_nb.magics import registry, verbs  # noqa: F401 - importing verbs registers them
from random_routes import check_every_route_is_possible

REFUSED = '    REFUSED = "refused", "a refused output", "the output was refused"\n'
TIMED_OUT = '    TIMED_OUT = "timed_out", "a timeout", "it took too long", "utility_timeout agent_timeout"\n'
ROW = """
[conditions.{name}]
results = ["{name}"]
sign = "{name}"
short = "{name}"
choice = "{name}"
phrase = "when {name}"
light = "#123456"
dark = "#abcdef"
"""
EDITS = {
    "loadout/vocabulary.py": (REFUSED, REFUSED + TIMED_OUT),
    "loadout/vocabulary.toml": (
        "\n[conditions.failed]\n",
        ROW.format(name="timed_out") + ROW.format(name="refused") + "\n[conditions.failed]\n",
    ),
}

BRANCHES = config(
    {
        "Try": asks(
            edge("Late", "timed_out"),
            edge("Odd", "refused"),
            edge("Bad", "failed"),
            edge("Good"),
            materia="U",
        ),
        **{name: at("P") for name in ("Late", "Odd", "Bad", "Good")},
    }
)


def check_routing_and_why() -> None:
    assert check_config(BRANCHES).ok
    for kind, target, words in (
        ("utility_timeout", "Late", "It took too long"),
        ("utility_exit", "Bad", "It failed"),
    ):
        play = Play(BRANCHES)
        play.take(recovery.fail(play.rules, play.state, Failure(kind, "so it ended")))
        assert play.last.decision.target == target
        why = str(explain(play.rules, "the step", play.last.decision, play.last.state))
        assert f"{words}: so it ended" in why, why
    play = Play(BRANCHES, "no JSON")
    assert play.last.decision.target == "Odd"
    assert "After a timeout, the cast would go to Late P." in str(
        explain(play.rules, "the step", play.last.decision, play.last.state)
    )
    only_failed = config({"Try": at("P", edge("Bad", "failed"), edge("end")), "Bad": at("P")})
    play = Play(only_failed)
    play.take(recovery.fail(play.rules, play.state, Failure("agent_timeout", "so it ended")))
    assert play.last.decision.target == "Bad", "a timeout is a failure"


def check_overlaps() -> None:
    """A timeout matches both the new edge and an edge for failures, so pictures must number these edges."""
    assert condition_spec("timed_out").overlaps(condition_spec("failed"))
    assert condition_spec("failed").overlaps(condition_spec("timed_out"))
    assert not condition_spec("timed_out").overlaps(condition_spec("refused"))
    failing = config(
        {"Try": at("P", edge("Bad", "failed"), edge("Late", "timed_out")), "Bad": at("P"), "Late": at("P")}
    )
    orders = [link.order for link in links(build_graph(failing)) if link.source == "Try" and link.kind == "edge"]
    assert orders == [1, 2], orders


def check_dead_edges_are_hinted() -> None:
    """An edge for timeouts or refused outputs can never be taken after an edge for all failures."""
    edges = [edge("end", when) for when in ("timed_out", "failed", "refused", "timed_out")]
    hints = check_config(config({"Try": at("P", *edges)})).hints
    assert [hint.source for hint in hints if hint.code == "never-taken"] == ["Try.edges[2]", "Try.edges[3]"]


def check_explore_and_odds() -> None:
    explored = Exploration(build_graph(BRANCHES), 0)
    assert explored.never == []
    assert explored.unreached == ()
    for number, target in enumerate(("Late", "Odd", "Bad", "Good"), 1):
        witness = explored.witness(("Try", number))
        assert witness.route == ("Try", target)
        session = replay_witness(play_rules(), witness)
        assert [step.socket for step in session.steps] == ["Try", target]
    odds = explored.odds(0.5, 0, timed_out=0.1, refused=0.2, failed=0.3)
    assert abs(sum(odds.ends.values()) - 1) < 1e-9, odds.ends
    shares = [odds.visits[name] for name in ("Late", "Odd", "Bad", "Good")]
    assert [round(share, 9) for share in shares] == [0.1, 0.2, 0.3, 0.4], shares


def check_simulation_and_estimate() -> None:
    graph, chances = build_graph(BRANCHES), {"timed_out": 0.1, "refused": 0.2, "failed": 0.3}
    visits = simulate_casts(graph, 400, 0.5, 0, **chances).visits
    for name, share in zip(("Late", "Odd", "Bad", "Good"), (0.1, 0.2, 0.3, 0.4), strict=True):
        assert abs(visits[name] / 400 - share) < 0.1, visits
    late = estimate_cast(graph, timed_out=1.0, casts=5)
    assert list(late.sockets) == ["Late"], "after a timeout only the agent of Late is asked"
    for name in ("explore odds", "explore simulate", "estimate"):
        assert {"--timed-out", "--refused", "--failed"} <= registry.VERBS[name].options.keys()


def play_rules():
    return Play(BRANCHES).rules


@settings(max_examples=15, deadline=None, database=None, derandomize=True)
@given(loadouts(), st.integers())
def check_random_loadouts(document: dict, seed: int) -> None:
    check_every_route_is_possible(document, seed)


if __name__ == "__main__":
    assert {"timed_out", "refused"} < set(CONDITIONS)
    assert Result.from_failure("agent_timeout") == "timed_out"
    check_routing_and_why()
    check_overlaps()
    check_dead_edges_are_hinted()
    check_explore_and_odds()
    check_simulation_and_estimate()
    check_random_loadouts()
