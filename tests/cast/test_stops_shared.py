"""Breakpoints and watched paths belong to a loadout in a workbench: forked, resumed and new casts have them."""

from __future__ import annotations

from materia_nb import Workbench


def test_a_new_cast_of_the_loadout_has_them_and_one_of_another_has_not(bench, cast):
    cast.breakpoints.add("Socket-2")
    cast.breakpoints.watch("plan")
    made = bench.cast("again")
    assert (set(made.breakpoints.sockets), set(made.breakpoints.paths)) == ({"Socket-2"}, {"plan"})
    assert not bench.cast("x", loadout="Hello-Utility").breakpoints.sockets
    made.breakpoints.clear()
    assert not cast.breakpoints.sockets, "taken away in one, gone in all"


def test_a_fork_and_a_resumed_cast_have_them(bench, cast):
    cast.breakpoints.add("Socket-3", lambda now: len(now.steps) > 1)
    cast.step()
    fork = bench.take(cast.fork())
    assert set(fork.breakpoints.sockets) == {"Socket-3"}
    fork.close()
    resumed = bench.resume(fork.id)
    assert resumed is not fork
    assert resumed.run() == "breakpoint"


def test_another_workbench_begins_without(bench, cast):
    cast.breakpoints.add("Socket-2")
    cast.close()
    assert not Workbench(bench.project).resume(cast.id).breakpoints.sockets


def test_what_was_set_before_a_workbench_takes_the_cast_stays(bench, cast):
    cast.fork().breakpoints.add("Socket-4")
    assert "Socket-4" in cast.breakpoints.sockets, "forked outside the workbench too"
