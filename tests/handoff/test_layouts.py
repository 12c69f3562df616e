"""Test the sections in which an envelope and a contract are displayed: ordered, not repeated and not empty."""

from __future__ import annotations

import pytest

from materia_nb.handoff import protocol
from materia_nb.handoff.base import Pointer
from protocol_helpers import CONTRACT, ENVELOPE, HOSTILE, contract, envelope, paths_of, with_changes

LAYOUTS = {"envelope": ENVELOPE, "agent-contract": CONTRACT}


def shown(name, value, files=()):
    """Return the sections by title, with existing files replaced by their paths."""
    protocol_ = protocol(name)
    found = protocol_.layout(value, lambda text: f"/there/{text}" if text in files else None)
    return {one.title: (one.headers, one.rows, one.lines) for one in found}


def test_envelope_is_shown_with_its_worst_concern_first_and_existing_files():
    concern = ENVELOPE["concerns"][0]
    value = envelope(
        concerns=[
            concern,
            {**concern, "severity": "HIGH", "location": "b.py:4-7"},
            {**concern, "severity": "MEDIUM"},
        ],
        routing={
            "recommendation": "LOOP",
            "can_further_iteration_help": True,
            "reason": "all done",
            "next_step_suggestion": "Socket-2",
        },
    )
    assert shown("envelope", value, files=["a.py", "b.py"]) == {
        "envelope": (
            (),
            (
                ("status", "VERIFIED"),
                ("done", "did it"),
                ("found", "found it"),
                ("decided", "keep it"),
                ("recommends", "LOOP"),
                ("because", "all done"),
                ("another round helps", "yes"),
                ("suggests", "Socket-2"),
            ),
            (),
        ),
        "concerns": (
            ("severity", "concern", "location", "recommendation"),
            (
                ("!!! HIGH", "slow", Pointer("b.py:4-7", "/there/b.py"), "cache"),
                ("!! MEDIUM", "slow", Pointer("a.py:1", "/there/a.py"), "cache"),
                ("! LOW", "slow", Pointer("a.py:1", "/there/a.py"), "cache"),
            ),
            (),
        ),
        "evidence": (
            ("kind", "pointer"),
            (("file", Pointer("a.py", "/there/a.py")), ("command", "pytest"), ("measured", "n = 3")),
            (),
        ),
        "assumptions": (
            ("assumption", "why", "if wrong"),
            (("utf-8", "usual", "garbled"),),
            (),
        ),
    }


@pytest.mark.parametrize("can_help, words", [(True, ["yes"]), (False, ["no"]), (None, [])])
def test_layout_shows_whether_another_round_would_help_if_this_is_known(can_help, words):
    routing = {"recommendation": "LOOP", "reason": "r"}
    value = envelope(routing=routing if can_help is None else {**routing, "can_further_iteration_help": can_help})
    _, rows, _ = shown("envelope", value)["envelope"]
    assert [text for name, text in rows if name == "another round helps"] == words


def test_empty_parts_of_an_envelope_are_hidden():
    bare = {
        "status": "VERIFIED",
        "summary": {"what_i_did": None, "evidence": {}},
        "concerns": [],
        "assumptions": [],
    }
    assert shown("envelope", bare) == {"envelope": ((), (("status", "VERIFIED"),), ())}
    meta = {"step_id": "s1", "agent_key": "critic", "tokens": 3, "flow_key": None}
    _, rows, _ = shown("envelope", {**bare, "meta": meta})["meta"]
    assert sorted(rows) == [("agent_key", "critic"), ("step_id", "s1")]
    assert list(shown("envelope", {**bare, "meta": {"other": 1}})) == ["envelope"]


def test_contract_is_shown_with_its_steps_requests_and_suggestions():
    value = contract(
        agent_status__pending_steps=["write", "test"],
        evidence_report__files_checked=["a.py"],
        consolidation_report={"ownership_assessment": "mine", "open_gaps": ["one", "two"]},
        approval_request={"operation": "push", "exact_content": "git push"},
    )
    found = shown("agent-contract", value, files=["a.py"])
    assert list(found) == ["contract", "verification", "approval request", "consolidation", "evidence"]
    assert found["contract"][1] == (
        ("status", "COMPLETE"),
        ("pending", "write"),
        ("pending", "test"),
        ("next", "review it"),
    )
    assert found["verification"][1] == (("result", "pass"),)
    assert found["approval request"][1] == (("operation", "push"), ("exact_content", "git push"))
    assert [row for row in found["consolidation"][1] if row[0] == "open_gaps"] == [
        ("open_gaps", "one"),
        ("open_gaps", "two"),
    ]
    headers, rows, lines = found["evidence"]
    assert headers == ("list", "entry")
    assert rows == (("files_checked", Pointer("a.py", "/there/a.py")), ("key_outputs", "it works"))
    assert lines == ("empty: patterns_checked, commands_run, verbatim_outputs, cross_layer_impacts, open_gaps",)


def test_empty_evidence_lists_are_reported_by_name():
    lists = [name for name, given in CONTRACT["evidence_report"].items() if isinstance(given, list) and not given]
    full = contract(**{f"evidence_report__{name}": ["x"] for name in lists})
    assert shown("agent-contract", full)["evidence"][2] == ()
    assert shown("agent-contract", contract(evidence_report__key_outputs=[]))["evidence"][:2] == ((), ())


def test_headline_of_a_contract_shows_its_loop_its_rollback_and_its_usage():
    value = contract(
        loop_state={
            "iteration": 2,
            "max_iterations": 5,
            "metric": 0.4,
            "threshold": 0.8,
            "best_metric": 0.4,
            "status": "looping",
        },
        rollback_executed=True,
        context_consumption={"tokens_used": 900, "pct_window": None},
        user_facing_summary="It is nearly done.",
    )
    _, rows, _ = shown("agent-contract", value)["contract"]
    assert rows[1:2] == (("summary", "It is nearly done."),)
    assert {name: text for name, text in rows if name in {"round", "metric", "rollback", "tokens used"}} == {
        "round": "2 of 5",
        "metric": "0.4, threshold 0.8",
        "rollback": "True",
        "tokens used": "900",
    }
    assert "window used" not in dict(rows)


def test_memory_suggestions_are_shown():
    value = contract(
        memorialize_suggestions=[{"description": "short", "body": "long"}], memory_suggestions=["by the way"]
    )
    headers, rows, _ = shown("agent-contract", value)["suggestions to remember"]
    assert headers == ("suggestion", "details")
    assert rows == (("short", "long"), ("by the way", ""))
    assert "suggestions to remember" not in shown("agent-contract", CONTRACT)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_of_hostile_values_in_any_field_never_raises(name):
    for path in paths_of(LAYOUTS[name]):
        for hostile in HOSTILE:
            titles = list(shown(name, with_changes(LAYOUTS[name], {path: hostile})))
            assert len(titles) == len(set(titles))
            assert titles[0] == ("envelope" if name == "envelope" else "contract")
