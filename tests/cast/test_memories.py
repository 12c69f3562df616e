"""Test memories that agents suggest and only people accept, and evidence files that may not exist."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.cast.views.step_views import HandoffView
from materia_nb.errors import MateriaError
from materia_nb.handoff import protocol
from materia_nb.store.rundir import change_context, missing_evidence, read_context
from protocol_helpers import assert_same_when_opened, block, contract, envelope, report, start

ATOM = {"description": "Port", "body": "It listens on 8080.", "type": "atom"}


def suggesting(tmp_path, *replies, notes=("The build needs an hour.",)):
    last = {**contract(), "memorialize_suggestions": [ATOM, {"body": "?"}], "memory_suggestions": list(notes)}
    cast = start(tmp_path, "agent-contract", [*replies, block(last)])
    cast.run()
    return cast


def test_suggestions_are_listed_but_not_stored_automatically(tmp_path):
    cast = suggesting(tmp_path)
    first, second = cast.now.suggestions
    assert (first.number, first.step, first.kind, first.fields, first.is_kept) == (1, 2, "memory", ATOM, False)
    assert (second.kind, second.fields) == ("note", {"text": "The build needs an hour."})
    assert read_context(cast.run_dir.parent) == {}
    assert "suggestion_kept" not in h.types_of(cast)


def test_accepted_suggestion_is_stored_once_and_shown_to_later_casts(tmp_path):
    cast = suggesting(tmp_path)
    change_context(cast.run_dir.parent, lambda _: {"stack": {"a": 1}})
    assert cast.edit.remember(2).is_kept
    assert [suggestion.is_kept for suggestion in cast.now.suggestions] == [False, True]
    cast.edit.remember(2)
    cast.edit.remember(1)
    kept = {
        "stack": {"a": 1},
        "memory": [{"kind": "note", "text": "The build needs an hour."}, {"kind": "memory", **ATOM}],
    }
    assert read_context(cast.run_dir.parent) == kept
    assert h.types_of(cast).count("suggestion_kept") == 2
    other = assert_same_when_opened(cast)
    assert other.now.suggestions == cast.now.suggestions
    with pytest.raises(MateriaError, match="open read-only"):
        other.edit.remember(1)
    later = suggesting(tmp_path)
    assert later.now.engine.knowledge == kept
    later.edit.remember(2)
    assert read_context(cast.run_dir.parent) == kept, "the same thing is kept once"


def test_invalid_suggestion_number_is_an_error(tmp_path):
    cast = suggesting(tmp_path)
    for number in (0, 3, -1, True, "1"):
        with pytest.raises(MateriaError, match="the cast has 2"):
            cast.edit.remember(number)
    assert read_context(cast.run_dir.parent) == {}


def test_memory_section_that_is_not_a_list_is_left_unchanged(tmp_path):
    cast = suggesting(tmp_path)
    change_context(cast.run_dir.parent, lambda _: {"memory": {"a": 1}})
    with pytest.raises(MateriaError, match="is not a list"):
        cast.edit.remember(1)
    assert not cast.now.suggestions[0].is_kept
    assert "suggestion_kept" not in h.types_of(cast)
    assert read_context(cast.run_dir.parent) == {"memory": {"a": 1}}


def test_duplicate_suggestions_are_listed_once_and_refused_suggestions_are_omitted(tmp_path):
    said = {"memory_suggestions": ["The build needs an hour."]}
    going = block({**contract(agent_status__plan_status="IN_PROGRESS"), **said})
    refused = block({**contract(agent_status__plan_status="DONE"), "memory_suggestions": ["no"]})
    cast = suggesting(tmp_path, going, refused)
    assert [suggestion.fields.get("text", "") for suggestion in cast.now.suggestions] == [
        "The build needs an hour.",
        "",
    ]
    assert start(tmp_path / "none", "envelope", []).now.suggestions == []


def test_going_back_removes_suggestions_but_not_stored_memories(tmp_path):
    cast = suggesting(tmp_path)
    cast.edit.remember(1)
    cast.back(1)
    assert cast.now.suggestions == []
    assert len(read_context(cast.run_dir.parent)["memory"]) == 1
    assert_same_when_opened(cast)


# -- files that are not there ----------------------------------------------------------------


def claiming(tmp_path, *artifacts, **changes):
    said = json.dumps(envelope(summary__evidence={"artifacts_produced": list(artifacts)}, **changes))
    cast = start(tmp_path, "envelope", [said])
    cast.run()
    return cast


def test_missing_evidence_files_are_reported_but_do_not_stop_the_cast(tmp_path):
    (tmp_path / "made.py").write_text("x")
    cast = claiming(tmp_path, "made.py", "gone.py", "gone.py", "../made.py", "https://example.org/x")
    assert cast.status == "complete"
    assert cast.steps[1].missing == ("gone.py", "../made.py")
    event = next(line["data"] for line in h.lines_of(cast) if line["type"] == "evidence_missing")
    assert (event["socket"], event["visit"], event["paths"]) == ("Check", 1, ["gone.py", "../made.py"])
    text = repr(HandoffView(cast.now, cast.steps[1]))
    assert "reported as created, but missing on disk: gone.py" in text
    assert "but missing on disk: gone.py" in HandoffView(cast.now, cast.steps[1])._repr_mimebundle_()["text/html"]
    assert assert_same_when_opened(cast).steps[1].missing == cast.steps[1].missing
    (tmp_path / "gone.py").write_text("x")
    assert open_cast(cast.run_dir).steps[1].missing == ("gone.py", "../made.py"), "as it was then"


def test_existing_evidence_files_are_not_reported_as_missing(tmp_path):
    (tmp_path / "made").mkdir()
    cast = claiming(tmp_path, "made", str(tmp_path / "made"))
    assert cast.steps[1].missing == ()
    assert "evidence_missing" not in h.types_of(cast)
    cast = start(tmp_path / "contract", "agent-contract", [report("COMPLETE")])
    cast.run()
    assert "evidence_missing" not in h.types_of(cast)


def test_status_of_a_held_cast_reports_missing_evidence_files(tmp_path):
    cast = claiming(tmp_path, "<b>", status="BLOCKED")
    assert cast.status == "held"
    assert "reported as created, but missing on disk: <b>" in repr(cast)
    assert assert_same_when_opened(cast).status == "held"
    cast.edit.output(json.dumps(envelope(summary__evidence={"commands_run": ["x"]})))
    assert cast.steps[1].missing == ()
    assert_same_when_opened(cast)


@pytest.mark.parametrize("text", ["\0", "n" * 5000, "\ud800", "/" + "n" * 5000, "x\0y"])
def test_invalid_evidence_path_is_reported_as_missing(tmp_path, text):
    cast = claiming(tmp_path, "x")
    reading = cast.steps[1].reading
    value = envelope(summary__evidence={"artifacts_produced": [text, "  "]})
    assert missing_evidence(protocol("envelope"), reading.__class__(value), tmp_path, cast.run_dir) == [text]
    assert missing_evidence(protocol("envelope"), None, tmp_path, cast.run_dir) == []
    assert missing_evidence(protocol("envelope"), reading.__class__(value, "contract"), tmp_path, cast.run_dir) == []
