"""Test estimates before a cast against manual calculations and real casts."""

from __future__ import annotations

import json
import random
from statistics import fmean

import pytest

from builders import asks, at, config, edge
from cast_helpers import start
from materia_nb import Workbench
from materia_nb.agents import ModelAgent
from materia_nb.engine.conversation import estimate_tokens
from materia_nb.errors import MateriaError
from materia_nb.insight.estimate import Prompts, estimate_cast
from materia_nb.loadout import build_graph
from realistic_loadouts import cleaning, paper, release

PRICED = "openai:gpt-4o"


@pytest.fixture
def bench(tmp_path):
    wb = Workbench(tmp_path)
    wb.use("Plan-Build-Eval")
    return wb


def once():
    """Return a loadout with one check that can send the work back once."""
    return build_graph(config({"Do": at("P", edge("Check")), "Check": asks(edge("Do", "not_satisfied", 1))}))


def test_estimate_is_exact_if_only_one_cast_is_possible(bench):
    """If every check is satisfied immediately, only one cast is possible and the estimate has no range."""
    prompts = Prompts(bench.graph(), "a guide to moss", 3)
    estimated = estimate_cast(bench.graph(), "a guide to moss", 3, 1.0, casts=5)
    tokens_in = sum(estimate_tokens(prompt.characters) for prompt in prompts.prompts)
    assert estimated.total.input == (tokens_in, tokens_in, tokens_in)
    assert estimated.total.turns == (len(prompts.prompts),) * 3
    assert {socket: takes.turns.mean for socket, takes in estimated.sockets.items()} == {
        socket: len(prompts.of(socket)) for socket in estimated.sockets
    }


def test_estimated_turns_range_from_shortest_to_longest_cast():
    """A cast has two turns, or four if the check sends work back: 2 + 2 (1 - p) turns on average."""
    estimated = estimate_cast(once(), satisfied=0.25, casts=400)
    assert estimated.total.turns.mean == pytest.approx(2 + 2 * 0.75, abs=0.2)
    assert (estimated.total.turns.low, estimated.total.turns.high) == (2, 4)
    assert estimate_cast(once(), satisfied=0.25, casts=400) == estimated


def test_estimate_uses_the_specified_answer_tokens_and_turn_prices():
    """The cost of two turns with known tokens follows from the prices."""
    estimated = estimate_cast(
        once(),
        satisfied=1.0,
        answer={"Do": 100, "*": 10},
        price=lambda _, told, said: told / 1000 + said,
        casts=3,
    )
    assert estimated.total.output.mean == 110
    assert estimated.total.cost is not None
    assert estimated.total.cost.mean == pytest.approx(estimated.total.input.mean / 1000 + 110)
    assert (estimated.shortest, estimated.unpriced) == ((), ())
    assert estimate_cast(once(), answer={"Do": 100}, casts=3).shortest == ("Check",)


def test_token_estimate_of_a_turn_includes_the_earlier_turns_of_its_conversation():
    """A draft and its final turn are one conversation: the second includes the first prompt and answer."""
    sockets = {"Do": asks(materia="P")}
    plain = config(sockets)
    talks = config(sockets)
    talks["materia"]["P"]["multiTurn"] = True
    one = estimate_cast(build_graph(plain), satisfied=1.0, answer=50, casts=1).sockets["Do"]
    two = estimate_cast(build_graph(talks), satisfied=1.0, answer=50, casts=1).sockets["Do"]
    assert (one.turns.mean, two.turns.mean) == (1, 2)
    assert two.input.mean > 2 * one.input.mean + 50
    assert two.output.mean == 100


def test_unknown_price_is_not_treated_as_zero():
    """The total excludes sockets with an unknown cost and names them; if every cost is unknown, so is the total (R56)."""
    estimated = estimate_cast(once(), satisfied=1.0, price=lambda socket, *_: 0.5 if socket == "Do" else None, casts=3)
    assert estimated.total.cost == (0.5, 0.5, 0.5)
    assert estimated.unpriced == ("Check",)
    assert estimated.sockets["Check"].cost is None
    none = estimate_cast(once(), satisfied=1.0, casts=3)
    assert none.total.cost is None
    assert none.unpriced == ("Do", "Check")


def test_pinned_sockets_cost_nothing(bench):
    """A check that is pinned to a satisfied verdict never sends the work back."""
    bench.agent("*", ModelAgent(PRICED))
    free = bench.estimate(items=2, satisfied=0.3, casts=10, answer=100)
    bench.pin("Eval", {"satisfied": True, "context": "good"})
    bench.pin("Socket-5", lambda: "the end")
    estimated = bench.estimate(items=2, satisfied={"Maintain": 1.0, "*": 0.3}, casts=10, answer=100)
    assert set(free.sockets) - set(estimated.sockets) == {"Socket-3", "Socket-5"}
    assert estimated.sockets["Socket-2"].turns == (2, 2, 2)
    assert free.sockets["Socket-2"].turns.mean > 2
    bench.pin("Socket-4", "no JSON")
    assert bench.estimate(items=2, casts=2).sockets["Socket-2"].turns == (1, 1, 1), "the cast fails there"


def test_estimate_refuses_zero_casts_and_unknown_names():
    with pytest.raises(MateriaError, match="needs at least one cast"):
        estimate_cast(once(), casts=0)
    with pytest.raises(MateriaError, match="Nobody"):
        estimate_cast(once(), answer={"Nobody": 3})


def test_estimate_uses_prices_of_configured_models(bench):
    """A function has no price, and the price of a model on a private server is unknown."""

    def never(turn):
        raise AssertionError(turn)

    bench.agent("*", never)
    assert "its cost is unknown" in repr(bench.estimate(items=2, casts=3))
    bench.agent("Socket-2", ModelAgent(PRICED))
    estimated = bench.estimate(items=2, satisfied=1.0, casts=3, answer=100)
    takes = estimated.sockets["Socket-2"]
    assert takes.cost is not None
    assert estimated.total.cost == takes.cost
    assert "Socket-2" not in estimated.unpriced
    assert "price is unknown" in estimated.line
    model_estimate = bench.estimate(items=2, satisfied=1.0, casts=3, answer=100, model=PRICED)
    assert model_estimate.unpriced == ()
    assert model_estimate.total.cost is not None
    assert model_estimate.total.cost.mean > takes.cost.mean
    assert ModelAgent(PRICED, base_url="http://localhost:1/v1").price(None, 10, 10) is None
    assert ModelAgent("openai:no-such-model-at-all").price(None, 10, 10) is None
    assert ModelAgent().price(None, 10, 10) is None
    assert not bench.casts()


TOKENS = 400
"""Number of tokens in each answer of the real casts, at four characters per token."""


class Talkative:
    """An agent with long answers, four of five of which are satisfied."""

    name = "talkative"

    def __init__(self, seed, graph):
        self.random, self.graph = random.Random(seed), graph
        self.tokens_in = 0

    def __call__(self, turn):
        self.tokens_in += estimate_tokens(len(turn.prompt))
        text = "words of the answer " * (TOKENS * 4 // 20)
        if turn.socket_id == "Socket-1":
            items = [{"title": f"Part {n}", "context": text[: len(text) // 5 - 40]} for n in range(1, 6)]
            return json.dumps({"workItems": items})
        if self.graph.sockets[turn.socket_id].parse == "text":
            return text
        return json.dumps({"satisfied": self.random.random() < 0.8, "context": text[:-40]})


@pytest.mark.parametrize("loadout", [release, paper, cleaning])
def test_estimate_is_within_ten_percent_of_real_casts(tmp_path, loadout):
    graph = build_graph(loadout())
    agents = [Talkative(seed, graph) for seed in range(60)]
    for number, agent in enumerate(agents):
        cast = start(tmp_path / str(number), loadout(), agent)
        cast.run()
        assert cast.steps[0].reading.accepted
        cast.close()
    estimate = estimate_cast(graph, "the widget", 5, 0.8, answer=TOKENS, casts=200)
    assert estimate.total.input.mean == pytest.approx(fmean(agent.tokens_in for agent in agents), rel=0.1)


def test_token_estimate_without_an_answer_length_is_marked_as_a_lower_bound(bench):
    assert "at least" in bench.estimate("Plan-Build-Eval", "x").line.split("tokens in")[0]


def test_specified_answer_length_is_divided_among_the_items_of_any_list(bench):
    """The planner's answer contains exactly four items, and a worker's prompt contains one of them."""
    sockets = {
        "List": asks(edge("Work"), assign={"rows": "$.rows"}),
        "Work": at("P", edge("Work"), foreach={"items": "state.rows", "as": "row", "cursor": "r"}, advance={}),
    }
    graph = build_graph(config(sockets))
    short, long = (estimate_cast(graph, items=4, answer={"List": tokens}, casts=1) for tokens in (100, 900))
    grown = long.sockets["Work"].input.mean - short.sockets["Work"].input.mean
    assert grown == pytest.approx(800, rel=0.1)


def test_cost_estimate_without_an_answer_length_is_marked_as_a_lower_bound(bench):
    assert "; at least $" in bench.estimate("Plan-Build-Eval", model=PRICED).line
    assert "least" not in bench.estimate("Plan-Build-Eval", model=PRICED, answer=100).line


@pytest.mark.parametrize(
    "given, words",
    [
        ({"items": -1}, "-1 is not a valid list length"),
        ({"items": 1.5}, "1.5 is not a valid list length"),
        ({"answer": "long"}, "'long' is not a number"),
        ({"answer": {"Do": "long"}}, "'long' is not a number"),
        ({"failed": (0.1, 0.2)}, "is not a number"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(given, words):
    with pytest.raises(MateriaError, match=words):
        estimate_cast(once(), casts=1, **given)
