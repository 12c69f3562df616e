"""Test the views of lanes: rows, time axis, explanations, and marks on the graph."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

import cast_helpers as h
from materia_nb.cast.breakpoint import parse_breakpoint
from materia_nb.cast.repairs import offered_actions
from materia_nb.cast.views.status import overlay_of, status_lines, steps_view
from materia_nb.cast.views.step_views import HandoffView, cast_page_html, lanes_blocks, step_view, time_axis
from materia_nb.cast.views.tables import items_table, items_view
from materia_nb.display.blocks import blocks_as_html, blocks_as_text
from materia_nb.display.graph_parts import state_label
from materia_nb.errors import MateriaError
from stream_helpers import stream_agents, streams_config

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def waiting(tmp_path):
    """Return a cast with two lanes that both wait for the check of a person."""
    agents = stream_agents({"ui": [2, 0], HOSTILE: [1]})
    del agents["Check"]
    cast = h.start(tmp_path, streams_config(), agents)
    assert cast.run() == "person"
    return cast


def test_lane_row_shows_its_socket_and_progress(waiting):
    text = blocks_as_text(lanes_blocks(waiting.now))
    assert "2 lanes, at most 2 in parallel; 0 at the join" in text
    row = next(line for line in text.splitlines() if line.startswith("ui "))
    assert row.split("  ")[0] == "ui"
    assert all(words in row for words in ("running", "Check, waiting for you", "Part 2", "0/2"))
    assert "lane ui: running, at Check, waiting for you, 0 of 2 items done" in status_lines(waiting.now)


def test_graph_cards_show_and_count_the_lanes_at_each_socket(waiting):
    marks = overlay_of(waiting.now)
    assert marks.lanes == {"Socket-4": ("ui", HOSTILE)}
    assert marks.visits["Socket-2"] == 2
    assert marks.current is None
    assert marks.progress["L"] == (0, 3)
    assert overlay_of(waiting.now.lanes["ui"].now).progress["L"] == (0, 2), "a lane has items of its own"
    assert marks.outputs.keys() == {
        "Socket-1",
        "Socket-2",
        "Socket-3",
    }  # what the lanes did too; nobody has checked
    assert marks.outputs["Socket-1"] == "3 items: Part 0, Part 1, Part 2"
    waiting.abort()
    assert overlay_of(waiting.now).lanes == marks.lanes, "there they go on"


def test_graph_after_the_join_does_not_depend_on_lane_speed(tmp_path):
    built = threading.Event()

    def set_up(lane):
        if lane == "ui":
            assert built.wait(30)
        return "ready"

    def check():
        built.set()
        return json.dumps({"satisfied": True})

    agents = stream_agents({"ui": [0], "api": [1]}, Setup=set_up, Build=lambda lane: f"built in {lane}", Check=check)
    cast = h.start(tmp_path, streams_config(), agents)
    assert cast.run() == "complete"
    ui, api = (lane.now.steps.at(3) for lane in cast.now.lanes.values())
    assert (ui.socket, api.socket) == ("Socket-3", "Socket-3")
    assert ui.started >= api.ended, "it was the last in time"
    assert overlay_of(cast.now).outputs["Socket-3"] == "built in api", "the last one of the schedule"


def test_time_axis_has_a_row_for_each_lane_with_an_escaped_name(waiting):
    axis = time_axis(waiting.now)
    assert [name for name, _ in axis.rows] == ["cast", "ui", HOSTILE]
    assert list(axis.lanes) == ["", "ui", HOSTILE]
    assert [(kind, words, step) for _, _, kind, words, _, step in axis.rows[1][1]] == [
        ("work", "Setup", 2),
        ("work", "Build 3", 3),
        ("wait", "Check 3, waiting for you", 4),
    ]
    assert axis.rows[2][1][1][4].startswith("Build 2: ")
    assert "<img" not in blocks_as_html(lanes_blocks(waiting.now)) + cast_page_html(waiting.now)


def test_bars_of_all_lanes_share_one_time_axis_with_shortened_idle_time(tmp_path, monkeypatch):
    at = [1_000_000]
    monkeypatch.setattr("materia_nb.cast.work.time.time_ns", lambda: at[0] * 1_000_000)

    def build(item):
        at[0] += 2_000
        return "built"

    agents = stream_agents(Build=build)
    del agents["Check"]
    cast = h.start(tmp_path, streams_config(1), agents)
    cast.run()
    at[0] += 3_600_000  # an hour until the person answers
    cast.reply('{"satisfied": true, "context": "good"}', lane="ui")
    cast.run()
    axis = time_axis(cast.now)
    ends = [left + wide for _, bars in axis.rows for left, wide, *_ in bars]
    assert max(ends) <= 1.0001
    bars = {words: (left, wide, kind) for _, row in axis.rows for left, wide, kind, words, *_ in row}
    waited = bars["Check 3, waited"]
    assert waited[2] == "wait"
    assert 0.01 < waited[1] < 0.4  # an hour, folded, in which the other lane worked for two of six seconds
    assert bars["Build 3"][1] == pytest.approx(bars["Build 1"][1], rel=0.05)
    assert "elapsed" in axis.summary


def test_failed_lane_shows_its_reason(tmp_path):
    def build(item):
        if item["title"] == "Part 1":
            raise ValueError("no room")
        return "built"

    cast = h.start(tmp_path, streams_config(), stream_agents(Build=build))
    cast.run()
    text = blocks_as_text(lanes_blocks(cast.now))
    assert "no room" in text
    assert "the cast failed at the join" in text


def test_why_names_the_lane_of_a_step(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.run()
    step = cast.now.lanes["ui"].now.steps[-1]
    assert cast.why(step.number, lane="ui").title.endswith("in lane ui")
    assert overlay_of(cast.now).lanes == {}
    assert overlay_of(cast.now).visits == {
        "Socket-1": 1,
        "Socket-2": 2,
        "Socket-3": 3,
        "Socket-4": 3,
        "Socket-5": 1,
    }
    with pytest.raises(MateriaError) as caught:
        cast.why(lane="iu")
    assert "ui" in caught.value.hint
    assert blocks_as_text(lanes_blocks(h.start(tmp_path / "none", h.one_config()).now)).startswith(
        "The cast has not distributed"
    )


def test_breakpoint_can_be_set_for_one_lane(tmp_path):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    cast.breakpoints.add("Socket-4", lane="api")
    (one,) = cast.breakpoints
    assert one.words() == "before Socket-4 in lane api"
    assert parse_breakpoint(one.as_json()) == one
    assert cast.run() == "breakpoint"
    assert {name: lane.now.next_socket for name, lane in cast.now.lanes.items()} == {
        "ui": None,
        "api": "Socket-4",
    }
    cast.breakpoints.clear("Socket-4")
    assert cast.run() == "complete"


# -- nothing is left out in silence ------------------------------------------------------------


@pytest.fixture
def done(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    assert cast.run() == "complete"
    return cast


def test_steps_in_lanes_are_counted_and_shown_with_their_lane(done):
    now = done.now
    assert status_lines(now)[0].startswith("T: complete after 2 steps, 8 in lanes")
    assert [(step.number, step.lane) for step in now.all_steps] == [
        (1, ""),
        *((number, "ui") for number in range(2, 7)),
        *((number, "api") for number in range(2, 5)),
        (2, ""),
    ]
    assert steps_view(now).headers[:3] == ("step", "lane", "socket")
    assert "8 more steps in lanes: see `cast.now.all_steps`" in repr(done.steps)
    assert "lane" not in steps_view(done.at(1)).headers
    assert "more" not in repr(done.at(1).steps)


def test_questions_and_events_name_their_lane(tmp_path):
    def check(last):
        event = [{"type": "seen", "message": str(last)}]
        return json.dumps({"satisfied": True, "context": "fine", "event": event})

    cast = h.start(tmp_path, streams_config(), stream_agents(Check=check))
    cast.run()
    found = cast.now.all_steps.ask("$.context")
    assert [(one.lane, one.item, one.value) for one in found] == [
        ("ui", "WI-3", "fine"),
        ("ui", "WI-1", "fine"),
        ("api", "WI-2", "fine"),
    ]
    told = cast.now.all_steps.events()
    assert [(one.lane, one.sequence) for one in told] == [("ui", 1), ("ui", 2), ("api", 1)]
    assert told.headers[:2] == ("event", "lane")


def test_item_table_shows_the_lane_of_each_item(done, waiting, tmp_path):
    assert [row[1:2] + row[4:] for row in items_table(waiting.now).rows] == [
        ("open", "ui, running"),
        ("being worked on", f"{HOSTILE}, running"),
        ("being worked on", "ui, running"),
    ]
    assert [row[4] for row in items_table(done.now).rows] == ["ui, accepted", "api, accepted", "ui, accepted"]
    joined = h.start(tmp_path / "joined", streams_config(), stream_agents())
    joined.run("Socket-5")
    assert set(joined.now.lane_of_item) == {0, 1, 2}
    joined.edit.items([])
    assert joined.now.lane_of_item == {}
    assert "<img" not in items_view(waiting.now).as_html()


def test_blame_names_the_lanes_as_the_source_of_their_joined_results(done):
    (one,) = done.blame("parallelResults.0.name")
    assert (one.step, one.socket, one.rule, one.after) == (1, None, "P6", "ui")
    assert "the lanes" in repr(done.blame("parallelResults"))


def test_lanes_offer_only_repairs_that_are_possible(tmp_path):
    def build(item):
        if item["title"] == "Part 1":
            raise ValueError("no room")
        return "built"

    cast = h.start(tmp_path, streams_config(), stream_agents(Build=build))
    cast.run()
    assert [action.name for action in offered_actions(cast.now)] == ["retry"]
    assert cast.now.failed_at == ("Socket-3", "api")
    marks = overlay_of(cast.now)
    assert (marks.failed, marks.lanes_failed) == ("Socket-3", {"Socket-3": ("api",)})
    assert state_label("Socket-3", replace(marks, failed=None)) == "⚠ 1 lane failed", "while others go on"
    second_cast = h.start(
        tmp_path / "again", streams_config(), stream_agents(Check=lambda: json.dumps({"satisfied": False}))
    )
    second_cast.run()
    assert [one.name for one in offered_actions(second_cast.now)] == ["retry_limit", "retry"]


def test_verbs_accept_the_name_of_a_lane(done):
    now = done.now
    step = now.lanes["ui"].now.steps.at(4)
    assert HandoffView(now, step).title == "Handoff of step 4: Check, visit 1, item Part 2 in lane ui"
    assert step_view(now, lane="ui").title.endswith("in lane ui")
    assert "<img" not in cast_page_html(now)
