"""Test the ``event`` field of sparse outputs: in the journal, in lists, and after a replay (R39)."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError

NOTE = {"type": "note", "severity": "warning", "message": "m", "source": "s", "payload": {"a": [1]}}


def told(cast):
    return [
        (line["data"]["sequence"], line["data"]["event"])
        for line in h.lines_of(cast)
        if line["type"] == "materia_event"
    ]


def loop_of_events(tmp_path):
    """Return a cast with a utility generator that reports an event, and two items whose checks report one event each."""
    document = h.loop_config()
    plan = {"workItems": h.items("a", "b"), "event": [{"type": "planned", "severity": "debug"}]}
    code = f"import sys;sys.stdin.read();print({json.dumps(json.dumps(plan))})"
    document["materia"]["Plan"] = h.python(code, parse="json", generator=True)
    checked = json.dumps({"satisfied": True, "event": [{**NOTE, "type": "checked"}]})
    return h.start(tmp_path, document, {"Check": lambda: checked, "Build": lambda: "b", "Tell": lambda: "t"})


def test_r39_side_events_are_numbered_in_the_journal_with_socket_visit_and_item(tmp_path):
    cast = loop_of_events(tmp_path)
    assert cast.run() == "complete"
    lines = [line["data"] for line in h.lines_of(cast) if line["type"] == "materia_event"]
    assert [(one["sequence"], one["socket"], one["visit"], one.get("itemKey")) for one in lines] == [
        (1, "Socket-1", 1, None),
        (2, "Socket-3", 1, "WI-1"),
        (3, "Socket-3", 2, "WI-2"),
    ]
    assert lines[1]["event"] == {**NOTE, "type": "checked"}


def test_r39_side_events_are_stored_only_in_the_raw_output(tmp_path):
    cast = loop_of_events(tmp_path)
    cast.run()
    base = cast.run_dir / "sockets/Socket-1"
    assert "event" not in json.loads((base / "1.json").read_text())
    assert "event" in json.loads((base / "1.md").read_text())
    assert "event" not in cast.steps.at(1).after.last_json


def test_r39_side_events_can_be_listed_and_filtered(tmp_path):
    cast = loop_of_events(tmp_path)
    cast.run()
    assert [event.type for event in cast.steps.events()] == ["planned", "checked", "checked"]
    assert [event.step for event in cast.steps.events(severity="info")] == [3, 5]
    assert len(cast.steps.events(type="planned")) == len(cast.steps.events(socket="Socket-1")) == 1
    assert cast.steps.events(socket="Socket-3")[0].payload == {"a": [1]}
    assert "warning" in repr(cast.steps.events())
    for wrong in ({"severity": "loud"}, {"socket": "Socket-9"}):
        with pytest.raises(MateriaError):
            cast.steps.events(**wrong)


def test_r39_side_events_are_rebuilt_by_replay_and_resume(tmp_path):
    cast = loop_of_events(tmp_path)
    cast.run()
    cast.close()
    opened = open_cast(cast.run_dir)
    assert opened.steps.events().values == cast.steps.events().values
    assert opened.now.differences == ()


def test_r53_events_in_a_refused_output_are_marked_as_refused(tmp_path):
    answers = iter([{"event": [NOTE], "other": 1}, {"event": [{"type": "taken"}]}])
    cast = h.start(tmp_path, h.one_config(parse="json"), lambda: next(answers))
    assert cast.run() == "complete"
    assert told(cast) == [(1, NOTE), (2, {"type": "taken"})]
    marks = [line["data"].get("refused") for line in h.lines_of(cast) if line["type"] == "materia_event"]
    assert marks == [True, None]
    assert [(event.type, event.refused) for event in cast.steps.events()] == [("note", True), ("taken", False)]
    assert "note (output refused)" in repr(cast.steps.events())
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize("answer", [{"event": [NOTE], "other": 1}, {"event": [NOTE], "workItems": 3}])
def test_r53_events_in_an_output_that_reports_a_failure_are_marked_as_refused(tmp_path, answer):
    cast = h.start(tmp_path, h.one_config(parse="json"), lambda: answer)
    assert cast.run() == "failed"
    assert told(cast)[0] == (1, NOTE)
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r53_events_in_a_refused_answer_from_a_person_are_dropped(tmp_path):
    cast = h.start(tmp_path, h.one_config(parse="json"))
    cast.run()
    with pytest.raises(MateriaError):
        cast.reply({"event": [NOTE], "other": 1})
    assert told(cast) == []


def test_r39_invalid_event_from_a_utility_fails_the_cast(tmp_path):
    cast = h.start(tmp_path, h.one_config(h.python("print('{\"event\": [{}]}')", parse="json")))
    assert cast.run() == "failed"
    assert cast.failure.kind == "invalid_output"


def test_r39_side_events_come_from_the_final_result_not_from_drafts(tmp_path):
    cast = h.start(tmp_path, h.one_config(h.agent(multiTurn=True), parse="json"))
    cast.run()
    cast.reply({"event": [NOTE]})
    cast.accept()
    assert told(cast) == []
    cast.reply({"event": [NOTE]})
    assert told(cast) == [(1, NOTE)]


def test_r39_side_events_in_a_correction_replace_those_in_the_output(tmp_path):
    cast = h.start(tmp_path, h.one_config(parse="json"), lambda: {"event": [NOTE]})
    cast.step()
    cast.edit.output({"event": [{"type": "other"}, {"type": "third"}]})
    assert [number for number, _ in told(cast)] == [1, 2, 3]
    assert [(event.sequence, event.type) for event in cast.steps.events()] == [(2, "other"), (3, "third")]
    cast.back(0, discard_edits=True)
    cast.step()
    assert [event.sequence for event in cast.steps.events()] == [4]
    assert open_cast(cast.run_dir).steps.events().values == cast.steps.events().values
