"""Test the schedule of a parallel generator: all issues are reported with paths, and nothing is corrected."""

from __future__ import annotations

import json

import pytest

from loadout_samples import AGENT, edge
from materia_nb.handoff import protocol, requirements_of
from materia_nb.handoff.checks import MAX_FORM_CHARS, MAX_SHORT_FORM_CHARS
from materia_nb.handoff.runtime_rules import Stream, streams_of
from materia_nb.loadout import build_graph

AT = "$.parallelSchedule"


def wanted(**materia):
    """Return the requirements for the generator of a loop with one socket."""
    document = {
        "loadouts": {
            "T": {
                "sockets": {
                    "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
                    "Socket-2": {"materia": "P", "edges": [edge("Socket-2")], "advance": {}},
                },
                "loops": {"L": {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1"}}},
            }
        },
        "materia": {
            "G": {**AGENT, "generator": True, "parallel": True, **materia},
            "P": {**AGENT, "parallelSafe": True},
        },
    }
    return requirements_of(build_graph(document).sockets["Socket-1"])


def stream(name, *indexes):
    return {"name": name, "workItemIndexes": list(indexes)}


def read(schedule=..., count=3, **materia):
    value = {"workItems": [{"title": f"t{n}", "context": "c"} for n in range(count)]}
    if schedule is not ...:
        value["parallelSchedule"] = schedule
    return protocol("sparse").read(json.dumps(value), wanted(**materia))


def paths(reading):
    return [issue.path for issue in reading.issues]


def test_streams_and_their_item_indexes_keep_their_order():
    reading = read({"version": 1, "streams": [stream("b", 2, 0), stream("a", 1)]})
    assert reading.accepted
    assert streams_of(reading.value["parallelSchedule"]) == (Stream("b", (2, 0)), Stream("a", (1,)))


def test_empty_item_list_needs_no_streams():
    assert read({"version": 1, "streams": []}, count=0).accepted
    assert paths(read({"version": 1, "streams": [stream("a", 0)]}, count=0)) == [f"{AT}.streams.0.workItemIndexes.0"]


@pytest.mark.parametrize(
    "schedule, at",
    [
        (..., [AT]),
        (None, [AT]),
        ([], [AT]),
        ({"streams": [stream("a", 0, 1, 2)]}, [f"{AT}.version"]),
        ({"version": 2, "streams": [stream("a", 0, 1, 2)]}, [f"{AT}.version"]),
        ({"version": True, "streams": [stream("a", 0, 1, 2)]}, [f"{AT}.version"]),
        ({"version": 1}, [f"{AT}.streams"]),
        ({"version": 1, "streams": []}, [f"{AT}.streams"]),
        ({"version": 1, "streams": ["a"]}, [f"{AT}.streams.0", f"{AT}.streams"]),
        ({"version": 1, "streams": [stream("a", 0, 1)]}, [f"{AT}.streams"]),
        ({"version": 1, "streams": [stream(" ", 0, 1, 2)]}, [f"{AT}.streams.0.name"]),
        ({"version": 1, "streams": [stream(4, 0, 1, 2)]}, [f"{AT}.streams.0.name"]),
        ({"version": 1, "streams": [stream("a", 0, 1), stream(" a ", 2)]}, [f"{AT}.streams.1.name"]),
        ({"version": 1, "streams": [stream("a", 0, 1, 2), stream("b")]}, [f"{AT}.streams.1.workItemIndexes"]),
        (
            {"version": 1, "streams": [stream("a", 0, 1, 2, 2, 3, -1, "x", True, 1.5)]},
            [f"{AT}.streams.0.workItemIndexes.{n}" for n in (3, 4, 5, 6, 7, 8)],
        ),
        ({"version": 1, "streams": [{**stream("a", 0, 1, 2), "why": "x"}]}, [f"{AT}.streams.0.why"]),
        (
            {"version": 3, "streams": [stream("", 0), stream("b", 0, 7)]},
            [
                f"{AT}.version",
                f"{AT}.streams.0.name",
                f"{AT}.streams.1.workItemIndexes.0",
                f"{AT}.streams.1.workItemIndexes.1",
                f"{AT}.streams",
            ],
        ),
    ],
)
def test_every_schedule_issue_has_its_path(schedule, at):
    reading = read(schedule)
    assert reading.error == "contract"
    assert paths(reading) == at


def test_schedule_of_a_utility_is_also_checked():
    reading = read({"version": 1, "streams": []}, type="utility", command=["true"], parse="json")
    assert paths(reading) == [f"{AT}.streams"]


def test_only_a_parallel_generator_may_return_a_schedule():
    assert paths(read({"version": 1, "streams": []}, count=0, parallel=False)) == [AT]
    assert read(count=1, parallel=False).accepted


def test_generator_with_the_legacy_name_parallel_planner_requires_a_schedule():
    assert wanted(parallel=False, parallelPlanner=True).streams


def test_schedule_form_explains_a_good_schedule():
    sparse, needs = protocol("sparse"), wanted()
    answer = sparse.ask(needs)
    assert '"parallelSchedule": {"version": 1, "streams": [{"name": ' in answer
    assert "same files" in answer
    assert "fewer streams" in answer
    assert len(answer) <= MAX_FORM_CHARS
    assert len(sparse.form(needs, short=True)) <= MAX_SHORT_FORM_CHARS
    assert "parallelSchedule" in sparse.schema(needs)["required"]
    assert "parallelSchedule" not in sparse.ask(wanted(parallel=False))
    copied = json.dumps(
        {
            "workItems": [],
            "parallelSchedule": {"version": 1, "streams": [stream("<name>", 0)]},
        }
    )
    assert any("form" in issue.message or issue.code == "form_words" for issue in sparse.read(copied, needs).issues)
