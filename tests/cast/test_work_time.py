"""Test the working time and the waiting time of steps, in the journal and in all views (R56)."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, Reply, ToolCall
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.formatting import step_table
from materia_nb.insight.estimate import StepTime, step_time, work_time
from materia_nb.widgets.base import Activity
from materia_nb.widgets.cast_slices import StepRows, bar_state, timeline_state


class Clock:
    """A clock that advances only when the test advances it."""

    def __init__(self, monkeypatch):
        self.ms = 1_000_000
        for module in ("runner", "work", "cast", "runner_factory"):
            monkeypatch.setattr(f"materia_nb.cast.{module}.now", lambda: self.ms)

    def passes(self, seconds):
        self.ms += round(seconds * 1000)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def paused(tmp_path, clock):
    """Return a cast with a function that takes 0.2 s, one that fails and is retried 46 s later, and a person who takes
    30 s.
    """

    def first():
        clock.passes(0.2)
        return "first"

    def second(visit, tries=[]):  # noqa: B006 - one list for all calls
        tries.append(visit)
        if len(tries) % 2:
            raise ValueError("not yet")
        clock.passes(0.1)
        return "second"

    third = h.Until()
    cast = h.start(tmp_path, h.chain_config(3), {"Socket-1": first, "Socket-2": second, "Socket-3": third})
    cast.run()
    assert cast.status == "failed"
    clock.passes(46)
    cast.retry()
    cast.run()
    clock.passes(30)
    cast.reply("third")
    return cast


TIMES = [StepTime(200, 0, 200), StepTime(100, 46_000, 46_100), StepTime(0, 30_000, 30_000)]


def test_work_time_and_waiting_time_are_separate(paused):
    assert paused.run() == "complete"
    assert list(map(step_time, paused.steps)) == TIMES
    took = [row[-1] for row in step_table(paused.steps).rows]
    assert took == ["0.20 s", "0.10 s + 46.0 s waited", "0.00 s + 30.0 s waited"]


@pytest.mark.parametrize("pause, words", [(4, "0.00 s"), (5, "0.00 s + 5.00 s waited")])
def test_short_pause_between_two_cells_does_not_count_as_waiting(tmp_path, clock, pause, words):
    cast = h.start(tmp_path, h.chain_config(1), {"Socket-1": h.Until()})
    cast.run()
    clock.passes(pause)
    cast.reply("done")
    assert [row[-1] for row in step_table(cast.steps).rows] == [words]


def test_work_time_is_unchanged_after_a_reopen(paused):
    paused.close()
    assert list(map(step_time, open_cast(paused.run_dir).steps)) == TIMES
    resumed = resume_cast(paused.run_dir)
    assert list(map(step_time, resumed.steps)) == TIMES
    resumed.close()


def test_bar_and_usage_show_the_total_work_time(paused):
    work = [step.worked for step in paused.steps]
    frame = paused.usage("socket")
    assert sum(one.ms for one in frame.values) == sum(work) == 300
    assert [row[-2:] for row in frame.rows][-1] == ("0.30 s", "76.0 s")
    assert bar_state(paused.now, Activity())["counts"] == "3 steps · 0.30 s run time"


def test_short_steps_stay_visible_next_to_a_long_pause(paused):
    """The axis is as long as the working time, and every waiting time is shortened to the same width."""
    shown = timeline_state(paused.now, StepRows(), None, busy=False)
    assert shown["span"] == [300, 2]
    assert [row[9] for row in shown["tail"]] == [
        [True, "0.20", "0.20 s", 0, 0, 200, 0, True],
        [True, "0.10", "0.10 s + 46.0 s waited", 200, 0, 300, 1, True],
        [True, "0.00", "0.00 s + 30.0 s waited", 300, 1, 300, 2, True],
    ]


def test_position_on_the_time_axis_does_not_depend_on_the_requested_rows(paused):
    [latest] = StepRows().between(paused.now, 3, 3)
    assert latest[9][3:7] == [300, 1, 300, 2]


def test_time_axis_shrinks_when_a_cast_goes_back(paused):
    rows = StepRows()
    assert rows.span(paused.now) == (300, 2)
    paused.back(1)
    assert rows.span(paused.now) == (200, 0)
    paused.run()
    assert (paused.status, rows.span(paused.now)) == ("failed", (200, 0))


def test_unrecorded_time_is_unknown_rather_than_zero(paused):
    """Journals written without times have no recorded time."""
    paused.close()
    kept = []
    for line in h.lines_of(paused):
        line["data"].pop("worked", None)
        kept.append(json.dumps({name: value for name, value in line.items() if name != "link"}))
    (paused.run_dir / "events.jsonl").write_text("\n".join([*kept, ""]))
    old = open_cast(paused.run_dir)
    assert [step_time(step).work for step in old.steps] == [None, None, None]
    assert step_time(old.steps[1]).words == "at most 46.1 s"
    assert work_time(old.steps) == (None, 3)
    assert old.usage().rows[-1][-1] == "unknown"
    assert old.usage().values[0].ms is None


def test_waiting_for_approval_is_not_work_time(tmp_path, clock):
    asked = ToolCall(id="c1", tool="bash", args={"command": "ls"})

    def careful(turn):
        clock.passes(1)
        return Reply("done") if turn.calls else NeedsApproval((asked,))

    class Careful:
        name = "careful"
        answer = staticmethod(careful)

    cast = h.start(tmp_path, h.one_config(h.agent(tools="coding")), Careful())
    cast.run()
    clock.passes(60)
    cast.approvals.approve()
    assert cast.status in ("ready", "complete")
    assert step_time(cast.steps[0]) == StepTime(2_000, 60_000, 62_000)


def test_time_of_an_interrupted_turn_counts_as_work_time(tmp_path, clock):
    def slow(tries=[]):  # noqa: B006 - one list for all calls
        tries.append(1)
        clock.passes(3)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return "done"

    cast = h.start(tmp_path, h.one_config(), slow)
    with pytest.raises(KeyboardInterrupt):
        cast.run()
    clock.passes(10)
    cast.run()
    assert step_time(cast.steps[0]) == StepTime(6_000, 10_000, 16_000)
