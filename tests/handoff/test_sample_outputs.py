"""Test answers that a protocol creates itself: for explorations, in place of a person, and from reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from materia_nb.handoff import TurnFacts, protocol
from materia_nb.handoff.base import Issue, SimpleAnswer, Task
from materia_nb.handoff.checks import RefusedAnswer
from materia_nb.handoff.contract_fields import StatusRecord, assignment_of, contract_form
from protocol_helpers import NO_REQUIREMENTS, OTHER_PROTOCOLS, contract

WORK = replace(NO_REQUIREMENTS, work_items=True)
CONTRACT = protocol("agent-contract")
BRIEFING = assignment_of(Task("g", "Socket-1", "T", {"surfaces": ["a", "b"], "writable_sections": ["stack"]}))


def read(name, value, wanted=WORK, **facts):
    return protocol(name).read(value, wanted, TurnFacts(**facts))


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
@pytest.mark.parametrize(
    "outcome, satisfied, count",
    [("done", True, 0), ("done", True, 1), ("done", True, 3), ("again", False, 1), ("again", False, 3)],
)
def test_sample_outputs_have_the_expected_outcome_and_number_of_items(name, count, outcome, satisfied):
    maker = protocol(name)
    read_back = [read(name, maker.write(value)) for value in maker.sample_outputs(outcome, count)]
    good = [one for one in read_back if one.accepted and one.action == "route" and one.satisfied is satisfied]
    assert count in {len(one.work_items) for one in good}
    assert all(one.satisfied is satisfied for one in read_back if one.accepted)


@pytest.mark.parametrize(
    "name, actions", [("envelope", {"pause", "escalate"}), ("agent-contract", {"pause", "escalate"})]
)
def test_sample_outputs_that_hold_a_cast_need_a_person(name, actions):
    maker = protocol(name)
    read_back = [read(name, maker.write(value)) for value in maker.sample_stops()]
    assert {one.action for one in read_back if one.accepted} == actions
    assert not read_back[0].work_items


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
@pytest.mark.parametrize("given", [{}, BRIEFING], ids=["alone", "with others"])
@pytest.mark.parametrize("outcome, satisfied", [("done", True), ("open", True), ("again", False)])
def test_simple_answer_by_a_person_is_accepted_by_every_protocol(name, given, outcome, satisfied):
    if name == "envelope" and outcome == "open":
        satisfied = None  # an envelope may say neither
    facts = {"agent_id": "ab7e4d2", "assignment": given}
    text = protocol(name).write_for_person(
        SimpleAnswer(outcome, findings="as it was seen", reason="why"), TurnFacts(**facts)
    )
    reading = read(name, text, NO_REQUIREMENTS, **facts)
    assert (reading.issues, reading.satisfied, reading.action) == ((), satisfied, "route")
    assert "as it was seen" in reading.context
    assert ("Checked by a person" in text) == (name == "agent-contract")


def test_conclusion_is_the_summary_of_one_agent_or_the_outputs_of_several():
    report = CONTRACT.conclusion
    assert report([("A", contract(user_facing_summary="Line 1\nLine 2"))]) == ["Line 1", "Line 2"]
    other = contract(
        evidence_report__key_outputs=["two", None],
        evidence_report__cross_layer_impacts=["db", None, "db"],
        evidence_report__open_gaps=["later"],
        evidence_report__verification={"result": "pass", "method": "tests", "details": "all of them"},
        user_facing_summary="Not said where there are two.",
    )
    assert report([("A", contract()), ("B", other)]) == [
        "A: it works",
        "B: two",
        "Verified by: tests",
        "Impacts elsewhere: db",
        "Still open: later",
    ]
    nothing = contract(
        evidence_report__key_outputs=[], evidence_report__verification={"result": "pass", "details": "by eye"}
    )
    assert report([("A", nothing), ("B", contract())]) == ["A: done", "B: it works", "Verified by: by eye"]
    assert report([("A", contract(agent_status__plan_status="BLOCKED"))]) == []


def test_permitted_updates_are_merged_and_other_updates_cause_warnings():
    updates = {"update_contracts": [{"contract": name, "payload": {"a": 1}} for name in ("stack", "infra")]}
    learned = CONTRACT.learn(updates, BRIEFING, {"stack": {}, "infra": {}})
    assert (learned.knowledge, learned.warnings) == ({"stack": {"a": 1}, "infra": {}}, ())
    nobody_said = CONTRACT.learn(updates, {}, {"stack": {}})
    assert nobody_said.knowledge == {"stack": {}}
    assert len(nobody_said.warnings) == 2


def test_contract_form_is_followed_by_the_instructions_that_apply_to_the_turn():
    def behind(wanted, **facts):
        return [line.split()[0] for line in contract_form(wanted, TurnFacts(**facts)).splitlines()[4:]]

    assert behind(NO_REQUIREMENTS) == ["APPROVAL_REQUEST:"]
    assert behind(WORK) == ["Each", "APPROVAL_REQUEST:"]
    sections = assignment_of(Task("g", "Socket-1", "T", {"writable_sections": ["stack"]}))
    assert behind(WORK, assignment=sections) == ["update_contracts:", "Each"], "there is no more room"
    asked = StatusRecord("APPROVAL_REQUEST", 0).as_json()
    assert behind(NO_REQUIREMENTS, memory=asked) == [], "only IN_PROGRESS may follow"


def test_suggestions_of_the_contract_form_are_listed_before_other_suggestions():
    value = contract(
        memorialize_suggestions=[{"description": "short", "body": "long", "type": "atom"}, {"body": "no"}],
        memory_suggestions=["by the way"],
    )
    assert CONTRACT.suggestions(value) == [
        ("memory", {"description": "short", "body": "long", "type": "atom"}),
        ("note", {"text": "by the way"}),
    ]


def test_refused_answer_lists_its_issues_up_to_a_limit():
    one = RefusedAnswer("It was not taken.", [Issue("$.a", "It is bad.", "mend it")])
    assert (str(one.where), one.hint, one.kind) == ("$.a", "mend it", "refused_answer")
    issues = [Issue(f"$.a{number}", "It is bad.", "mend it") for number in range(42)]
    lines = str(RefusedAnswer("It was not taken.", issues)).splitlines()
    assert [line for line in lines if "$.a" in line] == [f"  $.a{n}: It is bad. Fix: mend it." for n in range(40)]
    assert lines[-1] == "  and 2 more issues"
    assert "more of this sort" not in str(RefusedAnswer("It was not taken.", issues[:40]))
