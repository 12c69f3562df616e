"""Test the text and the enabled buttons of the status bar at each stage of a cast, without a panel."""

from __future__ import annotations

import re
import time

import pytest

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, Reply, ToolCall, Usage
from materia_nb.cast import open_cast
from materia_nb.widgets.base import Activity
from materia_nb.widgets.cast_slices import bar_state

IDLE = Activity()
CALL = ToolCall(id="1", tool="bash", args={"command": "make it"})


class Asks:
    """An agent that asks for approval of a command and answers after the command has run."""

    name = "asks"

    def answer(self, turn):
        return Reply("made", Usage(3, 2, 0.5)) if turn.calls else NeedsApproval((CALL,))


def bar(cast, activity=IDLE):
    """Return the tone, the text and the enabled buttons of the status bar."""
    state = bar_state(cast.now, activity)
    return state["tone"], state["words"], {name for name, can in state["can"].items() if can}


GOING = {"run", "abort"}


@pytest.fixture
def cast(tmp_path):
    made = h.start(tmp_path, h.loop_config(), {**h.loop_agents(1), "Check": "person"})
    yield made
    made.close()


def test_status_bar_of_an_idle_cast_shows_its_status(cast):
    assert bar(cast) == ("ready", "ready · Plan is next", {"run"}), "nothing can be aborted yet"
    cast.step(ask=False)
    assert bar(cast) == ("paused", "paused · Plan", GOING)
    cast.breakpoints.add("Socket-3")
    cast.run()
    assert bar(cast) == ("breakpoint", "Breakpoint: Check", GOING)
    state = bar_state(cast.now, IDLE)
    assert state["detail"] == "before Check"
    assert [one["words"] for one in state["breaks"]] == ["before Check"]
    cast.breakpoints.clear()
    assert bar(cast, Activity(outcome="stopped")) == ("paused", "paused · Check", GOING)
    cast.step(ask=False)
    assert bar(cast) == ("wants", "Your turn: Check", {"abort"})
    state = bar_state(cast.now, IDLE)
    assert state["why"].startswith("it is your turn")
    assert (state["asks"], state["undo"], state["counts"][:7]) == (None, False, "3 steps")
    cast.reply(h.YES)
    cast.run()
    assert bar(cast) == ("done", "done", set())
    assert bar_state(cast.now, IDLE)["why"] == "the cast is complete"
    cast.close()
    assert bar(open_cast(cast.run_dir)) == ("gone", "complete · read-only", set())


def test_status_bar_of_a_running_cast_shows_a_requested_stop(cast):
    cast.step()
    cast.step(ask=False)
    busy = Activity(busy=True)
    assert bar(cast, busy) == ("working", "Running: Build · Part 1", {"pause", "abort"})
    aborting = Activity(busy=True, aborting=True)
    assert bar(cast, aborting) == ("aborting", "Aborting: Build", {"leave"})
    state = bar_state(cast.now, busy)
    assert (state["why"], state["busy"]) == ("a step is running", True)


def test_status_bar_offers_to_approve_a_command(tmp_path):
    cast = h.start(tmp_path, h.one_config(), Asks())
    cast.run()
    assert bar(cast) == ("wants", "Your turn: M asks for approval", {"abort"})
    asks = bar_state(cast.now, IDLE)["asks"]
    assert asks == {"words": "bash make it", "whole": True}
    cast.approvals.approve(always=True)
    assert bar_state(cast.now, IDLE)["allowed"] == ["bash"]
    cast.run()
    state = bar_state(cast.now, IDLE)
    assert (state["tone"], state["tokens"], state["cost"], state["unknown"]) == ("done", 5, 0.5, 0)
    cast.close()


def test_long_command_cannot_be_approved_in_the_status_bar(tmp_path):
    class Long(Asks):
        def answer(self, turn):
            return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "x" * 500}),))

    cast = h.start(tmp_path, h.one_config(), Long())
    cast.run()
    asks = bar_state(cast.now, IDLE)["asks"]
    assert (asks["words"][-1], asks["whole"]) == ("…", False)
    cast.close()


def test_status_bar_of_a_stopped_cast_shows_socket_and_actions(tmp_path):
    def gone():
        raise RuntimeError("gone")

    cast = h.start(tmp_path, h.one_config(), gone)
    cast.run()
    tone, words, can = bar(cast)
    assert (tone, words) == ("failed", "failed · M")
    assert can == set(), "the tab Answer offers what can be done"
    state = bar_state(cast.now, IDLE)
    assert "gone" in state["detail"]
    assert state["stopped"]
    assert bar(cast, Activity(busy=True))[2] == {"pause"}
    cast.close()
    aborted = h.start(tmp_path, h.one_config(), "person")
    aborted.run()
    aborted.abort("enough")
    assert bar(aborted)[:2] == ("aborted", "aborted · M")
    aborted.close()


def test_status_bar_offers_first_to_raise_an_exhausted_budget(tmp_path):
    class Costs:
        name = "costs"

        def answer(self, turn):
            return Reply("done", Usage(6, 4))

    cast = h.start(tmp_path, h.chain_config(3), Costs())
    cast.edit.budget(10)
    assert (bar_state(cast.now, IDLE)["most"], bar_state(cast.now, IDLE)["warn"]) == (10, False)
    cast.run()
    assert (cast.status, cast.failure.kind) == ("failed", "budget")
    cast.close()


def test_status_bar_estimates_the_remaining_time_of_a_loop(tmp_path):
    made = h.start(tmp_path, h.loop_config(), h.loop_agents(100_000))
    started = int(time.time() * 1000)
    for _ in range(12):
        made.step()
    words = bar(made, Activity(busy=True, started=started))[1]
    assert re.fullmatch(r"Running: \w+ · \d of 100000, about \d+ (s|min) left", words)
    detail = bar_state(made.now, Activity(busy=True, started=started))["detail"]
    assert detail.startswith("Part "), "the item is in the tooltip"
    made.close()
