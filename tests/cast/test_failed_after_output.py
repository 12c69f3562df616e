"""Test casts that fail after an accepted output: failures reported by a utility (R48) and failing assignments (R54)."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.repairs import offered_actions

PUSH = {"ok": False, "error": "no remote"}


def reporting(said, *edges, **fields):
    """Return a utility that prints ``said``, followed by a text agent."""
    return h.config(
        {"Socket-1": h.at("Push", *edges), "Socket-2": h.at("Tell")},
        {
            "Push": h.python(f"print({json.dumps(json.dumps(said))})", parse="json", **fields),
            "Tell": h.agent(),
        },
    )


def cast_of(tmp_path, said, *edges, **fields):
    return h.start(tmp_path, reporting(said, *edges, **fields), lambda: "told")


def kinds(cast):
    return [line["type"] for line in h.lines_of(cast)]


ALWAYS = ("always", "Socket-2")


def test_r48_utility_that_reports_its_own_failure_fails_the_cast(tmp_path):
    cast = cast_of(tmp_path, {"satisfied": False, "context": "pushing", "state": {"push": PUSH}}, ALWAYS)
    assert cast.run() == "failed"
    assert (cast.failure.kind, cast.failure.message) == ("utility_failed", "no remote")
    assert "state.push" in cast.failure.hint
    assert cast.state["push"] == PUSH
    assert cast.state["context"] == "[Socket-1 Push] pushing"
    assert kinds(cast)[-2:] == ["socket_complete", "cast_end"]
    assert cast.now.engine.traversals == {}
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize(
    "said, message",
    [
        ({"context": "c", "state": {"a": {"ok": False, "message": "m"}}}, "c"),
        ({"context": " ", "state": {"a": {"ok": False, "error": "", "message": "m"}}}, "m"),
        (
            {"state": {"fine": {"ok": True}, "b": {"ok": False, "error": 5}}},
            "state.b has `ok: false` but no error message",
        ),
    ],
)
def test_r48_failure_message_combines_the_error_context_and_message_fields(tmp_path, said, message):
    cast = cast_of(tmp_path, {"satisfied": False, **said}, ALWAYS)
    cast.run()
    assert (cast.failure.kind, cast.failure.message) == ("utility_failed", message)


@pytest.mark.parametrize(
    "said",
    [
        {"satisfied": True, "state": {"push": PUSH}},
        {"state": {"push": PUSH}},
        {"satisfied": False, "state": {"push": {"ok": True}}},
        {"satisfied": False, "state": {"push": {"ok": None}, "ok": False}},
        {"satisfied": False, "push": PUSH},
    ],
)
def test_r48_cast_continues_after_an_output_that_reports_no_failure(tmp_path, said):
    assert cast_of(tmp_path, said, ALWAYS).run() == "complete"


def test_r48_not_satisfied_edge_handles_a_failure_reported_by_a_utility(tmp_path):
    said = {"satisfied": False, "state": {"push": PUSH}}
    cast = cast_of(tmp_path, said, ("satisfied", "end"), ("not_satisfied", "Socket-2"))
    assert cast.run() == "complete"
    assert [step.socket for step in cast.steps] == ["Socket-1", "Socket-2"]


def looping(exit_when, edge="always"):
    document = h.loop_config()
    code = """import json, sys; at = json.load(sys.stdin)["cursor"]["index"]
print(json.dumps({"satisfied": False, "state": {"seen": {"ok": False, "error": f"at {at}"}}}))"""
    document["materia"]["Check"] = h.python(code, parse="json")
    loadout = document["loadouts"]["T"]
    loadout["sockets"]["Socket-3"] = h.at("Check", (edge, "Socket-2"))
    loadout["loops"]["L"]["exits"][0]["condition"] = exit_when
    return document


def looped(tmp_path, exit_when):
    plan = json.dumps({"workItems": h.items("a", "b")})
    return h.start(tmp_path, looping(exit_when), {"Plan": lambda: plan, "Build": lambda: "b", "Tell": lambda: "t"})


def test_r48_not_satisfied_exit_handles_a_failure_reported_by_a_utility(tmp_path):
    cast = looped(tmp_path, "not_satisfied")
    assert cast.run() == "complete"
    assert cast.steps[-1].socket == "Socket-4"


@pytest.mark.parametrize("again", [{}, {"limit": True}])
def test_r48_retry_repeats_the_visit_for_the_same_item(tmp_path, again):
    cast = looped(tmp_path, "always")
    assert cast.run() == "failed"
    assert (cast.failure.kind, cast.failure.message) == ("utility_failed", "at 0")
    assert cast.now.engine.cursors == {"workItemIndex": 1}
    cast.pins.add("Check", {"satisfied": True})
    cast.retry(**again)
    assert cast.run() == "complete"
    assert [(step.socket, step.item_key) for step in cast.steps] == [
        ("Socket-1", None), ("Socket-2", "WI-1"), ("Socket-3", "WI-1"),
        ("Socket-2", "WI-2"), ("Socket-3", "WI-2"), ("Socket-4", None),
    ]  # fmt: skip
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r48_reported_failure_is_shown_after_the_exhausted_budget_is_raised(tmp_path):
    made = reporting({"satisfied": False, "state": {"push": PUSH}}, ALWAYS)
    cast = h.start(tmp_path, {**made, "budget": {"maxTokens": 0}})
    cast.run()
    assert cast.failure.kind == "budget"
    cast.edit.budget(None)
    cast.retry(limit=True)
    assert (cast.status, cast.failure.kind) == ("failed", "utility_failed")
    h.assert_same(open_cast(cast.run_dir), cast)


# -- R54 -----------------------------------------------------------------------------------


def unassignable(tmp_path, answer='{"context": "fine"}'):
    return h.start(tmp_path, h.one_config(parse="json", assign={"..": "$"}), lambda: answer)


def test_r54_output_is_accepted_and_the_failure_is_a_separate_event(tmp_path):
    cast = unassignable(tmp_path)
    assert cast.run() == "failed"
    assert cast.failure.kind == "assignment"
    lines = h.lines_of(cast)
    assert [line["type"] for line in lines[-3:]] == ["socket_complete", "assignment_failed", "cast_end"]
    assert lines[-3]["data"]["artifact"] == "sockets/Socket-1/1.md"
    assert lines[-2]["data"]["error"] == cast.failure.message
    cast.close()
    assert (cast.run_dir / "sockets/Socket-1/1.md").read_text() == '{"context": "fine"}'
    assert json.loads((cast.run_dir / "sockets/Socket-1/1.json").read_text()) == {"context": "fine"}


def test_r54_reopened_cast_equals_the_live_cast(tmp_path):
    cast = unassignable(tmp_path)
    cast.run()
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(lambda: '{"context": "again"}'))
    assert resumed.runner.session == cast.runner.session
    assert resumed.now.engine.last_artifact == "sockets/Socket-1/1.md"


def test_r54_retry_that_would_fail_again_is_not_offered(tmp_path):
    cast = unassignable(tmp_path)
    cast.run()
    assert [action.name for action in offered_actions(cast.now)] == ["skip"]
    cast.retry()
    assert (cast.status, cast.failure.kind) == ("failed", "assignment")
    cast.skip("assigned to nothing")
    assert cast.run() == "complete"


def test_r54_second_output_of_a_visit_does_not_overwrite_the_first(tmp_path):
    answers = iter([json.dumps({"context": "x" * 70_000}), '{"context": "short"}'])
    cast = h.start(tmp_path, h.one_config(parse="json", assign={"..": "$"}), lambda: next(answers))
    cast.run()
    cast.retry()
    cast.close()
    assert [turn.artifact for turn in cast.steps[-1].turns] == [
        "sockets/Socket-1/1.md",
        "sockets/Socket-1/1.again-2.md",
    ]
    h.assert_same(open_cast(cast.run_dir), cast)
