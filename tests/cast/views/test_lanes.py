"""What is said of the lanes of a cast: a row each, an axis of time, why, and marks on the graph."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.cast.breakpoint import breakpoint_of
from materia_nb.cast.views.lanes import lanes_blocks
from materia_nb.cast.views.status import marks_of, status_lines
from materia_nb.display.blocks import Picture, html_of, text_of
from materia_nb.errors import MateriaError
from stream_helpers import stream_agents, streams_config

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def waiting(tmp_path):
    """Two lanes, both of which wait for a person to check."""
    agents = stream_agents({"ui": [2, 0], HOSTILE: [1]})
    del agents["Check"]
    cast = h.start(tmp_path, streams_config(), agents)
    assert cast.run() == "person"
    return cast


def test_a_row_says_where_a_lane_is_and_how_far(waiting):
    said = text_of(lanes_blocks(waiting.now))
    assert "2 lanes, 2 at once; 0 at the barrier" in said
    row = next(line for line in said.splitlines() if line.startswith("ui "))
    assert row.split("  ")[0] == "ui"
    assert all(words in row for words in ("running", "Check, waits for you", "Part 2", "0/2"))
    assert "lane ui: running, at Socket-4, waits for you, 0 of 2 items done" in status_lines(waiting.now)


def test_lanes_stand_on_the_cards_of_the_graph_and_count_there(waiting):
    marks = marks_of(waiting.now)
    assert marks.lanes == {"Socket-4": ("ui", HOSTILE)}
    assert marks.visits["Socket-2"] == 2
    assert marks.current is None
    assert marks.progress["L"] == (0, 3)
    assert marks.outputs.keys() == {
        "Socket-1",
        "Socket-2",
        "Socket-3",
    }  # what the lanes did too; nobody has checked
    assert marks.outputs["Socket-1"] == "3 items: Part 0, Part 1, Part 2"


def test_every_lane_is_a_row_of_the_axis_and_its_name_is_harmless(waiting):
    picture = next(one for one in lanes_blocks(waiting.now) if isinstance(one, Picture))
    assert "<title>Build 3: " in picture.svg
    assert "<title>Build 2: " in picture.svg
    assert "<img" not in picture.svg + html_of(lanes_blocks(waiting.now))


def test_a_lane_that_failed_says_why(tmp_path):
    def build(item):
        if item["title"] == "Part 1":
            raise ValueError("no room")
        return "built"

    cast = h.start(tmp_path, streams_config(), stream_agents(Build=build))
    cast.run()
    said = text_of(lanes_blocks(cast.now))
    assert "no room" in said
    assert "the cast failed at the barrier" in said


def test_why_names_the_lane(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.run()
    step = cast.now.lanes["ui"].now.steps[-1]
    assert cast.why(step.number, lane="ui").title.endswith("in lane ui")
    assert marks_of(cast.now).lanes == {}
    assert marks_of(cast.now).visits == {
        "Socket-1": 1,
        "Socket-2": 2,
        "Socket-3": 3,
        "Socket-4": 3,
        "Socket-5": 1,
    }
    with pytest.raises(MateriaError) as caught:
        cast.why(lane="iu")
    assert "ui" in caught.value.hint
    assert text_of(lanes_blocks(h.start(tmp_path / "none", h.one_config()).now)).startswith(
        "The cast has handed no"
    )


def test_a_breakpoint_may_name_a_lane_and_is_kept_so(tmp_path):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    cast.breakpoints.add("Socket-4", lane="api")
    (one,) = cast.breakpoints
    assert one.words() == "before Socket-4 in lane api"
    assert breakpoint_of(one.as_json()) == one
    assert cast.run() == "breakpoint"
    assert {name: lane.now.next_socket for name, lane in cast.now.lanes.items()} == {
        "ui": None,
        "api": "Socket-4",
    }
    cast.breakpoints.clear("Socket-4")
    assert cast.run() == "complete"
