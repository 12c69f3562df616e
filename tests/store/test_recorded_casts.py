"""Test opening recordings of the reference engine: the route is rebuilt, and differences are explained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.status import cast_view, status_view, steps_view
from materia_nb.cast.views.step_views import cast_page_html, step_view
from materia_nb.errors import MateriaError
from materia_nb.widgets.cast_panel import CastPanel

RECORDED = Path(__file__).parents[1] / "data" / "recorded-casts"
NAMES = sorted(path.name for path in RECORDED.iterdir() if path.is_dir() and not path.name.startswith("not-castable"))
DIFFER = {"limit-total-thirty-retry"}


def starts(path: Path) -> list[tuple]:
    about = [line["data"] for line in h.lines_of(path) if line["type"] == "socket_start"]
    return [(d["socket"], d["visit"], d.get("itemKey"), d.get("itemLabel")) for d in about]


@pytest.fixture
def copied(tmp_path):
    def copy(name: str) -> Path:
        return Path(shutil.copytree(RECORDED / name, tmp_path / name))

    return copy


def edit(path: Path, change) -> None:
    """Rewrite the journal after ``change`` has modified its list of events."""
    lines = h.lines_of(path)
    lines = change(lines) or lines
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def replace_output(path: Path, text: str) -> None:
    assert path.exists()
    path.write_text(text)


@pytest.mark.parametrize("name", NAMES)
def test_opened_recording_has_its_route_state_and_outcome(name):
    before = {path: path.stat().st_mtime_ns for path in (RECORDED / name).rglob("*")}
    cast = open_cast(RECORDED / name)
    assert cast.route == starts(RECORDED / name)
    end = h.lines_of(RECORDED / name)[-1]["data"]
    assert cast.status == ("complete" if end["ok"] else "failed")
    assert bool(cast.now.differences) == (name in DIFFER)
    assert cast.now.request == "ship the widget"
    for step in cast.steps:
        parsed = RECORDED / name / "sockets" / step.socket / f"{step.visit}.json"
        if parsed.exists() and step.reading is not None:
            assert step.reading.value == json.loads(parsed.read_text())
    with pytest.raises(MateriaError, match="recorded by another engine") as caught:
        resume_cast(RECORDED / name)
    assert caught.value.kind == "not_ours"
    assert {path: path.stat().st_mtime_ns for path in (RECORDED / name).rglob("*")} == before, "nothing is written"


@pytest.mark.parametrize("name", NAMES)
def test_recording_of_a_running_cast_shows_its_current_state(name, copied):
    """A journal that is truncated at any step shows its steps and reports no additional differences."""
    path = copied(name)
    content = h.lines_of(path)
    whole = open_cast(RECORDED / name)
    for count in range(1, len(content)):
        (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in content[:count]))
        cast = open_cast(path)
        assert cast.route == starts(path)
        assert cast.now.differences == ()
        assert cast.status in {"ready", "waiting", "failed"}
        # a limit may fail our cast when the socket completes, before the recording says so
        assert cast.status != "failed" or whole.status == "failed"


def test_limit_counted_differently_by_an_older_version_is_explained():
    """This engine counts maxTraversals per item (R18), and the older version counted over the entire cast."""
    cast = open_cast(RECORDED / "limit-total-thirty-retry")
    (difference,) = cast.now.differences
    assert difference.step == 9
    assert "Materia edge traversal limit exceeded for Socket-3->Socket-2 (4/2)" in difference.recorded
    assert difference.ours == "continues to Socket-2"
    assert "counts the uses of this edge in the whole cast (4 of 2 so far)" in difference.why
    assert "counts the uses for each item" in difference.why
    assert cast.failure.message.startswith("Materia edge traversal limit exceeded")


def test_drafts_and_final_result_of_a_recording_are_read():
    cast = open_cast(RECORDED / "mt-json-refine")
    assert [turn.mode for turn in cast.steps[0].turns] == ["draft", "draft", "final"]
    assert cast.steps[0].turns[2].reading.accepted


def test_refused_answer_missing_from_a_recording_is_mentioned():
    cast = open_cast(RECORDED / "parse-repair-then-ok")
    (message,) = cast.now.messages
    assert message.startswith(
        "Step 1: an answer was refused, and the agent was called again; the recording does not contain this answer"
    )


@pytest.mark.parametrize("name", ["parse-repair-then-ok", "not-castable-legacy-exit"])
def test_r59_failed_turn_is_shown(name, copied):
    path = copied(name)

    def fail(lines):
        begun = next(line for line in lines if line["type"] == "same_socket_recovery_start")
        begun["data"] |= {
            "error": "Pi agent turn failed for socket: bash command timed out",
            "recoveryKind": "turn",
        }
        del begun["data"]["validationKind"]

    edit(path, fail)
    message = open_cast(path).now.messages
    matching_messages = [
        one for one in message if "a turn failed, and the agent was called again (Pi agent turn failed" in one
    ]
    assert len(matching_messages) == 1
    assert len([one for one in message if "was refused" in one]) == (0 if name == "parse-repair-then-ok" else 3)


def test_r59_cast_ended_by_a_failed_turn_has_an_agent_failure(copied):
    path = copied("parse-repair-then-ok")

    def fail(lines):
        place = next(n for n, line in enumerate(lines) if line["type"] == "same_socket_recovery_retry")
        error = "Pi agent turn failed: context window exceeded"
        gone = {**lines[place - 1]["data"], "error": error}
        del gone["validationKind"]
        end = {"ok": False, "error": error}
        return [
            *lines[: place + 1],
            {"ts": lines[place]["ts"], "type": "same_socket_recovery_exhausted", "data": gone},
            {"ts": lines[place]["ts"], "type": "cast_end", "data": end},
        ]

    edit(path, fail)
    cast = open_cast(path)
    assert (cast.status, cast.failure.kind) == ("failed", "agent_error")
    assert cast.now.differences == ()
    assert cast.route == starts(path)


@pytest.mark.parametrize(
    "name", ["loop-retry", "parse-repair-then-ok", "util-exit-nonzero", "not-castable-legacy-exit"]
)
def test_r59_recorded_steps_outside_loops_have_the_quest_as_their_item(name, copied):
    path = copied(name)
    quest = {"id": "quest-1", "title": "Ship it"}

    def as_quest(lines):
        for line in lines:
            if line["type"] == "cast_start":
                line["data"]["quest"] = quest
            elif line["type"] == "socket_start" and "itemKey" not in line["data"]:
                line["data"] |= {"itemKey": quest["id"], "itemLabel": quest["title"]}

    before = open_cast(path)
    edit(path, as_quest)
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert ("quest-1", "Ship it") in {(step.item_key, step.item_label) for step in cast.steps}
    assert (cast.status, cast.now.differences) == (before.status, before.now.differences)


def test_changed_verdict_is_reported_as_a_difference_at_its_step(copied):
    path = copied("loop-retry")
    verdicts = [line["data"] for line in h.lines_of(path) if line["type"] == "socket_complete"]
    third = next(n for n, data in enumerate(verdicts, 1) if data["socket"] == "Socket-3")
    before = json.loads((path / verdicts[third - 1]["artifact"]).read_text())
    replace_output(path / verdicts[third - 1]["artifact"], json.dumps({**before, "satisfied": not before["satisfied"]}))
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert cast.status == "complete"
    assert cast.now.differences[0].step in {third, third + 1}
    assert cast.now.differences[0].why


def test_loop_continued_after_its_end_is_reported_as_a_difference(copied):
    """One output is changed so that its list is shorter, and this engine would therefore leave the loop earlier."""
    path = copied("loop-three-members")
    generator = next(line["data"] for line in h.lines_of(path) if line["type"] == "socket_complete")
    plan = json.loads((path / generator["artifact"]).read_text())
    replace_output(path / generator["artifact"], json.dumps({"workItems": plan["workItems"][:1]}))
    cast = open_cast(path)
    assert cast.route == starts(path)
    first = cast.now.differences[0]
    left = [visit[2] for visit in cast.route].index("WI-2")
    assert first.step == left  # the step that exhausts our list
    assert "went to" in first.recorded


def test_refused_recorded_output_is_shown_with_its_issues(copied):
    path = copied("gen-to-gen-util-passthrough")
    outputs = [line["data"]["artifact"] for line in h.lines_of(path) if line["type"] == "socket_complete"]
    replace_output(path / outputs[1], '{"workItems": "none"}')
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert cast.now.differences[0].step == 2
    assert "workItems" in cast.now.differences[0].why
    assert cast.status == "complete"


def test_engine_and_recording_take_the_same_route_again_after_a_repeated_item(copied):
    """The recording repeats its second item; after that, both engines take the same route again."""
    path = copied("foreach-advance")

    def skip(lines):
        for line in lines:
            if line["data"].get("itemKey") == "1" and line["type"] == "socket_start":
                line["data"]["itemKey"] = "2"

    edit(path, skip)
    cast = open_cast(path)
    assert cast.route[2][:3] == ("Socket-2", 2, "2")
    first = cast.now.differences[0]
    assert (first.step, first.recorded, first.ours) == (3, "took item 2", "takes item 1")
    assert cast.steps[2].after.at.item.key == "2"  # its state is that of the recorded way, also once it lies behind
    assert "cursor" in first.why


@pytest.mark.parametrize("name", NAMES)
def test_events_and_fields_from_later_versions_are_skipped(name, copied):
    path = copied(name)
    config = json.loads((path / "config.resolved.json").read_text())
    config |= {
        "parallel": {"lanes": 2},
        "eventing": {"enabled": True},
        "limits": {**config["limits"], "new": 1},
    }
    config["loadouts"] = {"Other": {"entry": "Nowhere", "sockets": {}}, **config["loadouts"], "Bad": []}
    config["activeLoadout"] = "Other"
    (path / "config.resolved.json").write_text(json.dumps(config))

    def more(lines):
        for at in range(len(lines), 0, -1):
            lines.insert(at, {"ts": 1, "type": "lifecycle_event", "data": {"socket": "Socket-9", "n": at}})
            lines[at - 1]["extra"] = {"id": at}
        lines[0]["data"]["socketDetails"] = [{"id": "Socket-1"}]

    edit(path, more)
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert bool(cast.now.differences) == (name in DIFFER)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_config_without_defaults_is_read(name, copied):
    path = copied(name)
    config = json.loads((path / "config.resolved.json").read_text())
    for field in ("artifactDir", "budget", "limits", "activeLoadout", "compaction"):
        config.pop(field, None)
    (path / "config.resolved.json").write_text(json.dumps(config))
    edit(path, lambda lines: lines[0]["data"].pop("loadout") and None)
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert bool(cast.now.differences) == (name in DIFFER)


def test_loadout_is_read_from_the_journal(copied):
    path = copied("loop-retry")
    config = json.loads((path / "config.resolved.json").read_text())
    del config["loadouts"]["T"]
    (path / "config.resolved.json").write_text(json.dumps(config))
    cast = open_cast(path)
    assert (cast.route, cast.now.differences) == (starts(path), ())


def test_r39_recording_with_events_in_outputs_opens_without_differences(copied):
    path = copied("loop-retry")
    before = len(open_cast(path).now.differences)
    output = path / "sockets/Socket-3/2-WI-1.md"
    output.write_text('{"satisfied": true, "event": [{"type": "tests", "severity": "error"}]}')
    opened = open_cast(path)
    assert len(opened.now.differences) == before
    assert [(event.socket, event.visit, event.item_key, event.type) for event in opened.steps.events()] == [
        ("Socket-3", 2, "WI-1", "tests")
    ]


NOT_CASTABLE = RECORDED / "not-castable-legacy-exit"


def test_recorded_cast_is_shown_even_if_its_loadout_cannot_be_cast():
    """The view shows the recorded steps, their outputs, the end of the cast, and the problems of the loadout (R41)."""
    cast = open_cast(NOT_CASTABLE)
    assert cast.route == starts(NOT_CASTABLE)
    assert cast.status == "failed"
    assert "Socket-9.parse" in cast.now.problems[0]
    assert any("Socket-9.parse" in message for message in cast.now.messages)
    output = NOT_CASTABLE / "sockets" / "Socket-3" / "2-WI-2.md"
    assert cast.steps.at(5).output == output.read_text()


def test_resume_of_a_recording_whose_loadout_cannot_be_cast_states_the_reason(tmp_path):
    """The config was changed, or a later version of the package has more checks (R41)."""
    cast = h.start(tmp_path, h.one_config(), lambda: "done")
    cast.run()
    cast.close()
    config = cast.run_dir / "config.resolved.json"
    config.write_text(config.read_text().replace('"prompt"', '"promt"'))
    with pytest.raises(MateriaError, match="cannot be cast"):
        resume_cast(cast.run_dir)
    opened = open_cast(cast.run_dir)
    assert [step.output for step in opened.steps] == ["done"]


def test_every_view_of_a_recording_whose_loadout_cannot_be_cast_can_be_shown():
    cast = open_cast(NOT_CASTABLE)
    for view in (cast_view(cast.now), status_view(cast.now), step_view(cast.now), steps_view(cast.now)):
        assert repr(view)
        assert view._repr_mimebundle_()
    assert "Socket-9" in cast_page_html(cast.now)
    panel = CastPanel(cast)
    assert not panel.front.surface["notice"]
    panel.close()


@pytest.mark.parametrize("config", ["{}", "[]", '{"loadouts": {"T": {"sockets": [], "loops": {"L": 3}}}}'])
def test_recorded_steps_are_shown_with_any_config(config, copied):
    """Sockets that occur only in the journal are drawn as well (R41)."""
    path = copied("not-castable-legacy-exit")
    (path / "config.resolved.json").write_text(config)
    edit(path, lambda lines: [{**line, "data": {**line["data"], "pipeline": None}} for line in lines])
    cast = open_cast(path)
    assert cast.route == starts(path)
    assert repr(cast_view(cast.now))
