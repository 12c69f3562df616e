"""Test that unreported usage is unknown rather than zero (R56), and that a cost budget stops a cast (R20)."""

from __future__ import annotations

import json
import sys

import pytest

import cast_helpers as h
from builders import at, edge, say
from materia_nb.agents import CommandAgent, Reply, Usage
from materia_nb.agents.command_agent import preset_agent
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.tables import budget_view
from materia_nb.errors import MateriaError
from model_helpers import agent
from model_server import says, serving


def program(text="done"):
    return CommandAgent([sys.executable, "-I", "-S", "-c", f"print({text!r})"])


def priced(cost):
    return lambda turn: Reply("x", Usage(10, 5, cost))


def test_usage_is_unknown_if_a_program_reports_no_token_counts(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), program())
    assert cast.run() == "complete"
    usage = cast.now.usage
    assert (usage.input, usage.output, usage.tokens, usage.cost) == (None, None, None, None)
    assert (usage.uncounted, usage.unpriced) == (2, 2)
    report = cast.now.usage_report
    assert report["tokens"] == {"input": None, "output": None, "total": None}
    assert (report["cost"], report["uncounted"], report["unpriced"]) == ({"total": None}, 2, 2)
    assert "unknown" in repr(cast.usage())
    assert "0 tokens" not in repr(cast.usage())
    assert json.loads((cast.run_dir / "usage.json").read_text()) == report
    assert cast.steps.frame is not None
    assert all(row["tokens"] is None for row in map(cast.steps._row, cast.steps))
    assert cast.now.warnings == ()


def test_known_usage_is_summed_and_unknown_turns_are_counted(tmp_path):
    agents = {"Socket-1": program(), "Socket-2": priced(None), "Socket-3": priced(0.25)}
    cast = h.start(tmp_path, h.chain_config(3), agents)
    cast.run()
    usage = cast.now.usage
    assert (usage.tokens, usage.cost, usage.uncounted, usage.unpriced) == (30, 0.25, 1, 2)
    assert usage.tokens_text == "30, not counting 1 turn with unknown usage"
    assert usage.cost_text == "0.2500 USD, not counting 2 turns with unknown usage"
    assert cast.usage().headers[8] == "turns with unknown usage"
    assert [row[8] for row in cast.usage().rows] == ["1", "", "", "1"], "the sum leaves them out, and says so"
    cast.close()
    for again in (open_cast(cast.run_dir), resume_cast(cast.run_dir)):
        assert again.now.usage == usage
        assert again.fork().now.usage == usage if again.now.writable else True


def test_cost_is_unknown_if_usage_or_price_is_missing(tmp_path):
    with serving(says("one", tokens=None), says("two")) as server:
        cast = h.start(tmp_path, h.chain_config(2), agent(server))
        cast.run()
    assert (cast.now.usage.tokens, cast.now.usage.cost) == (15, None)
    assert (cast.now.usage.uncounted, cast.now.usage.unpriced) == (1, 2)


def test_usage_without_turns_is_zero(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), {"Socket-1": "person", "Socket-2": {"Socket-2": "scripted"}})
    cast.run()
    cast.reply("by hand")
    assert cast.run() == "complete"
    assert cast.now.usage[:5] == (0, 0, 0.0, 0, 0)


def test_budget_that_cannot_be_measured_causes_one_warning(tmp_path):
    cast = h.start(tmp_path, h.chain_config(3) | {"budget": {"maxTokens": 20, "maxCostUsd": 1}}, program())
    assert cast.run() == "complete"
    blind = [line["data"]["of"] for line in h.lines_of(cast) if line["type"] == "budget_blind"]
    assert blind == ["tokens", "cost"]
    warnings = cast.now.warnings
    assert [(warning.code, warning.socket, warning.step) for warning in warnings] == [
        ("budget-blind", "Socket-1", 1)
    ] * 2
    assert "of 3 turns" in warnings[0].message
    assert "unknown of 20" in repr(status_view(cast.now))
    assert open_cast(cast.run_dir).now.warnings == warnings
    assert h.lines_of(cast)[-1]["data"]["warnings"][0]["code"] == "budget-blind"


def test_cost_budget_warns_stops_and_can_be_raised(tmp_path):
    cast = h.start(tmp_path, h.chain_config(4) | {"budget": {"maxCostUsd": 1.0}}, priced(0.4))
    assert cast.run() == "failed"
    assert len(cast.steps) == 3
    assert cast.failure.kind == "budget"
    assert "1.2000 of 1.0000 USD" in cast.failure.message
    types = h.types_of(cast)
    assert (types.count("budget_warning"), types.count("budget_limit")) == (1, 1)
    with pytest.raises(MateriaError, match="still used up"):
        cast.retry(limit=True)
    assert "120%, used up" in repr(budget_view(cast.now))
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(priced(0.4)))
    resumed.edit.budget_in_words("2.50 USD")
    assert resumed.retry(limit=True) == "complete" or resumed.run() == "complete"
    assert resumed.now.engine.budget.max_cost_usd == 2.5


@pytest.mark.parametrize(
    "words, most",
    [
        ("200,000", (200_000, 1.0, 2.0, 3)),
        ("1 token", (1, 1.0, 2.0, 3)),
        ("$2.5", (7, 2.5, 2.0, 3)),
        ("3 usd", (7, 3.0, 2.0, 3)),
        ("1.5 seconds", (7, 1.0, 1.5, 3)),
        ("60s", (7, 1.0, 60.0, 3)),
        ("10 turns", (7, 1.0, 2.0, 10)),
        ("none", (None,) * 4),
        ("", (None,) * 4),
    ],
)
def test_budget_text_is_parsed(tmp_path, words, most):
    bounds = {"maxTokens": 7, "maxCostUsd": 1.0, "maxSeconds": 2, "maxTurns": 3}
    cast = h.start(tmp_path, h.one_config() | {"budget": bounds})
    cast.edit.budget_in_words(words)
    budget = cast.now.engine.budget
    assert (budget.max_tokens, budget.max_cost_usd, budget.max_seconds, budget.max_turns) == most


def test_turn_budget_counts_drafts_and_repairs_but_not_processes(tmp_path):
    answers = iter(["not json", say(satisfied=True), say(satisfied=False)])
    sockets = {
        "Socket-1": at("U", edge("Socket-2")),
        "Socket-2": at("J", edge("Socket-3"), parse="json"),
        "Socket-3": at("J", edge("Socket-4"), parse="json"),
        "Socket-4": at("J", parse="json"),
    }
    document = h.config(
        sockets, {"U": h.python("print('made')"), "J": h.agent()}, budget={"maxTurns": 3, "warnAtPercent": 60}
    )
    cast = h.start(tmp_path, document, lambda: next(answers))
    assert cast.run() == "failed"
    assert "used 3 of 3 turns" in cast.failure.message
    assert (len(cast.steps), cast.now.usage.turns) == (3, 3)
    told = {line["type"]: line["data"] for line in h.lines_of(cast) if line["type"].startswith("budget")}
    assert (told["budget_warning"]["turns"], told["budget_limit"]["maxTurns"]) == (2, 3)
    assert "turns: 3 of 3" in repr(status_view(cast.now))
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(lambda: say(satisfied=True)))
    assert (resumed.now.usage, resumed.now.engine) == (cast.now.usage, cast.now.engine)
    resumed.edit.budget(max_turns=5)
    resumed.retry(limit=True)
    resumed.run()
    assert (resumed.status, resumed.now.usage.turns) == ("complete", 4)


def seconds_pass(monkeypatch):
    """Replace the clock by one that advances by one second with each answer."""
    clock = [1_000_000]
    monkeypatch.setattr("materia_nb.cast.work.now", lambda: clock[0])

    def takes(what):
        clock[0] += 1_000
        return what

    return takes


def test_time_budget_excludes_the_time_that_people_need(tmp_path, monkeypatch):
    takes = seconds_pass(monkeypatch)
    document = h.chain_config(4) | {"budget": {"maxSeconds": 2}}
    cast = h.start(tmp_path, document, {"*": lambda: takes("x"), "Socket-1": "person"})
    assert cast.run() == "person"
    takes("a coffee")
    cast.reply("by hand")
    assert cast.run() == "failed"
    assert len(cast.steps) == 3  # the person's, and two of a second each
    assert "used 2.0 of 2.0 seconds" in cast.failure.message
    assert "100%, used up" in repr(budget_view(cast.now))
    assert open_cast(cast.run_dir).now.engine == cast.now.engine


def test_time_of_a_failed_turn_is_counted(tmp_path, monkeypatch):
    takes = seconds_pass(monkeypatch)
    answers = iter([ValueError("gone"), "x"])

    def tries():
        answer = takes(next(answers))
        if isinstance(answer, Exception):
            raise answer
        return answer

    cast = h.start(tmp_path, h.chain_config(2) | {"budget": {"maxSeconds": 2}}, tries)
    assert (cast.run(), cast.failure.kind) == ("failed", "agent_error")
    cast.retry()
    assert (cast.status, cast.failure.kind, len(cast.steps)) == ("failed", "budget", 1)
    assert open_cast(cast.run_dir).now.engine == cast.now.engine


@pytest.mark.parametrize("words", ["much", "-3", "2.5", "usd", "$", "$5 turns", "1e9", "²", "2.5 turns", "5 hours"])
def test_invalid_budget_is_refused(tmp_path, words):
    cast = h.start(tmp_path, h.one_config())
    with pytest.raises(MateriaError, match="not a budget"):
        cast.edit.budget_in_words(words)


def test_cached_and_thinking_tokens_are_separate_and_survive_a_restart(tmp_path):
    agents = {
        "Socket-1": lambda turn: Reply("x", Usage(100, 50, 0.5, cached=80)),
        "Socket-2": lambda turn: Reply("x", Usage(10, 5, 0.25, cached=4, reasoning=3)),
        "Socket-3": priced(None),
    }
    cast = h.start(tmp_path, h.chain_config(3), agents)
    cast.run()
    used = cast.now.usage
    assert (used.input, used.output, used.cached, used.reasoning) == (120, 60, 84, 3), "a part is no more"
    assert cast.now.usage_report["tokens"] == {
        "input": 120, "output": 60, "total": 180, "cached": 84, "reasoning": 3
    }  # fmt: skip
    view = cast.usage()
    assert "of which cached" in view.headers
    assert [row[view.headers.index("of which reasoning")] for row in view.rows] == [
        "unknown",
        "3",
        "unknown",
        "3",
    ]
    cast.close()
    assert resume_cast(cast.run_dir).now.usage == used


def test_configured_prices_override_reported_cost(tmp_path):
    prices = {
        "mine": {"input": 2, "output": 10, "cached": 0.5, "asOf": "2026-11-23"},
        "command:codex:small": {"input": 1, "output": 1},
        "nobody": {"input": 1000, "output": 1000},
    }

    class Mine:
        name = "mine"

        def answer(self, turn):
            return Reply("x", Usage(1_000_000, 100_000, 77.0, cached=400_000))

    class Silent(Mine):
        def answer(self, turn):
            return Reply("x")

    agents = {"Socket-1": Mine(), "Socket-2": priced(0.25), "Socket-3": Silent()}
    cast = h.start(tmp_path, h.chain_config(3) | {"prices": prices}, agents)
    cast.run()
    by_socket = cast.now.usage_report["bySocket"]
    assert by_socket["Socket-1"]["cost"] == 0.6 * 2 + 0.4 * 0.5 + 0.1 * 10
    assert by_socket["Socket-2"]["cost"] == 0.25, "it has none in the config"
    assert by_socket["Socket-3"]["cost"] is None, "unknown tokens have no price"
    assert (cast.now.usage.cost, cast.now.usage.unpriced) == (2.65, 1)
    assert preset_agent("command:codex").price_names("small") == ("command:codex:small", "command:codex")
