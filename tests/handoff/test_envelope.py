"""Test the envelope rules by section: finding, validation, routing, requests, fallback and file names."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from builders import edge, requirements_for
from materia_nb.errors import MateriaError
from materia_nb.handoff import TurnFacts, protocol, runtime_rules
from materia_nb.handoff import envelope_protocol as env
from materia_nb.handoff.base import SimpleAnswer
from materia_nb.handoff.checks import MAX_ISSUES
from materia_nb.handoff.jsontext import NO_REASON
from protocol_helpers import ABSENT, ENVELOPE, HOSTILE, KERNEL, NO_REQUIREMENTS, envelope, paths_of, with_changes

ENV = protocol("envelope")


def read(value, shape=NO_REQUIREMENTS, **facts):
    text = value if isinstance(value, str) else json.dumps(value)
    return ENV.read(text, shape, TurnFacts(**facts))


def codes(issues):
    return sorted(issue.code for issue in issues)


def errors(value, **facts):
    reading = read(value, **facts)
    assert reading.accepted == (not reading.issues)
    return codes(reading.issues)


# -- section 2: finding -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'prose {"a": 1} prose',
        '```json\n{"a": 1}\n``` and ```json\n{"a": 2}\n```',
        '```\n{"b": 2}\n```\n```json\n{"a": 1}\n```',
        '```json {"a": 1}',
        '```yaml\n{"a": 1}\n```',
        '```jsonc\n{"a": 1}\n```',
        '// note\n{"a": 1}',
        '\ufeff{"a": 1}',
        '{"a": 2, "a": 1}',
    ],
)
def test_envelope_section_2_envelope_is_found_in_surrounding_text(text):
    assert env.envelope_in(text) == ({"a": 1}, None)


@pytest.mark.parametrize(
    "text, code",
    [
        ("", "ENVELOPE_MISSING"),
        (" \n\t", "ENVELOPE_MISSING"),
        ("no", "ENVELOPE_NOT_JSON"),
        ("}{", "ENVELOPE_NOT_JSON"),
        ('{"a": 1} {"b": 2}', "ENVELOPE_NOT_JSON"),
        ('{"a": NaN}', "ENVELOPE_NOT_JSON"),
        ('```json\n{"a": 1,}\n```\n{"b": 1}', "ENVELOPE_NOT_JSON"),
        ("```json\n```", "ENVELOPE_NOT_JSON"),
        ("null", "ENVELOPE_NOT_OBJECT"),
        ('[{"a": 1}]', "ENVELOPE_NOT_OBJECT"),
        ('{"a": ' + "9" * 5000 + "}", "ENVELOPE_NOT_JSON"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "ENVELOPE_NOT_JSON"),
    ],
)
def test_envelope_section_2_reply_without_a_json_object_is_refused(text, code):
    value, issue = env.envelope_in(text)
    assert (value, issue.code) == (None, code)


def test_envelope_section_2_infinite_numbers_become_null():
    value = read(json.dumps(ENVELOPE)[:-1] + ', "a": 1e400, "b": [1, -1e400], "c": ' + "9" * 1000 + "}").value
    assert value == {**ENVELOPE, "a": None, "b": [1, None], "c": int("9" * 1000)}


def test_envelope_section_2_file_must_contain_only_the_envelope():
    assert env.envelope_in(' {"a": 1}\n', file=True) == ({"a": 1}, None)
    for text in ('x {"a": 1}', '```json\n{"a": 1}\n```', '{"a": 1} {'):
        assert env.envelope_in(text, file=True)[1].code == "ENVELOPE_NOT_JSON"


# -- section 3: checking ------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"status": None}, ["STATUS"]),
        ({"status": " "}, ["STATUS:"]),
        ({"status": "DONE", "summary__evidence": {}, "concerns": []}, ["EVIDENCE_POINTERS_REQUIRED", "STATUS:DONE"]),
        ({"status": None, "summary__evidence": [], "concerns": []}, ["EVIDENCE_POINTERS_REQUIRED", "STATUS", "TYPE:summary.evidence"]),
        ({"status": "DONE", "summary": {}}, ["STATUS:DONE", "SUMMARY_CONTENT"]),
        ({"summary__what_i_did": 5, "summary__what_i_found": None}, ["TYPE:summary.what_i_did"]),
        ({"status": "PARTIAL"}, ["STATUS:PARTIAL"]),
        ({"status": 7}, ["TYPE:status"]),
        ({"summary": None}, ["SUMMARY"]),
        ({"summary__what_i_did": " ", "summary__what_i_found": None}, ["SUMMARY_CONTENT"]),
        ({"summary__what_i_did": 5}, ["TYPE:summary.what_i_did"]),
        ({"summary__key_decisions": {}}, ["TYPE:summary.key_decisions"]),
        ({"summary__evidence__commands_run": [1]}, ["TYPE:summary.evidence.commands_run[0]"]),
        ({"routing": None}, ["ROUTING"]),
        ({"routing": {}}, ["RECOMMENDATION", "ROUTING_REASON"]),
        ({"routing__reason": 3}, ["TYPE:routing.reason"]),
        ({"routing__recommendation": ["LOOP"]}, ["TYPE:routing.recommendation"]),
        ({"routing__next_step_suggestion": 3}, ["TYPE:routing.next_step_suggestion"]),
        ({"concerns": {}}, ["TYPE:concerns"]),
        ({"concerns": [None]}, ["TYPE:concerns[0]"]),
        ({"concerns__0__severity": " "}, ["CONCERN:0.severity"]),
        ({"concerns__0__severity": 1}, ["TYPE:concerns[0].severity"]),
        ({"concerns__0__description": "\n"}, ["CONCERN:0.description"]),
        ({"concerns__0__location": 1}, ["TYPE:concerns[0].location"]),
        ({"assumptions": [{}]}, ["ASSUMPTION:0.assumption", "ASSUMPTION:0.impact_if_wrong", "ASSUMPTION:0.why"]),
        ({"meta": []}, ["TYPE:meta"]),
        ({"meta": {"step_id": 1}}, ["TYPE:meta.step_id"]),
    ],
)  # fmt: skip
def test_envelope_section_3_each_kind_of_fault_has_its_own_issue_code(changes, expected):
    assert errors(envelope(**{"meta": {}, **changes} if "meta" in changes else changes)) == expected


def test_envelope_section_3_every_issue_has_path_message_and_fix():
    for issue in read({"concerns": [{"severity": "x"}], "routing": {}}).issues:
        assert issue.path.startswith("$.")
        assert issue.message.endswith(".")
        assert issue.fix


@pytest.mark.parametrize(
    "evidence, concerns, enough",
    [
        ({}, [], False),
        ({"artifacts_produced": [" "], "commands_run": [""]}, [], False),
        ({"measurements": {"n": None, "m": " "}}, [], False),
        ({"measurements": {"n": 0}}, [], True),
        ({"commands_run": ["ls"]}, [], True),
        ({}, ENVELOPE["concerns"], True),
    ],
)
def test_envelope_section_3_evidence_is_required(evidence, concerns, enough):
    value = envelope(summary__evidence=evidence, concerns=concerns)
    assert errors(value) == ([] if enough else ["EVIDENCE_POINTERS_REQUIRED"])
    blocked = read({**value, "status": "BLOCKED"})
    assert blocked.accepted
    assert ("EVIDENCE_POINTERS_REQUIRED" in codes(blocked.warnings)) is not enough
    fragment = env.read_envelope(value, NO_REQUIREMENTS, profile="fragment")
    assert fragment.accepted


@pytest.mark.parametrize("given, value", [("YES", True), ("true", True), (" no ", False), ("False", False)])
def test_envelope_section_3_boolean_written_as_a_word_causes_a_warning(given, value):
    reading = read(envelope(routing__can_further_iteration_help=given))
    assert "CAN_FURTHER_ITERATION_HELP_COERCED" in codes(reading.warnings)
    assert reading.value["routing"]["can_further_iteration_help"] is value


def test_envelope_section_3_words_are_normalized_and_unknown_fields_are_kept():
    reading = read(
        envelope(status=" verified", routing__recommendation="Continue", concerns__0__severity="low", odd=[1])
    )
    assert codes(reading.warnings) == [
        "RECOMMENDATION_NORMALIZED",
        "SEVERITY_NORMALIZED",
        "STATUS_NORMALIZED",
    ]
    assert reading.value == {**ENVELOPE, "odd": [1]}


def test_envelope_section_3_missing_meta_is_filled_in_and_wrong_meta_is_refused():
    assert read(ENVELOPE, meta=KERNEL).value["meta"] == KERNEL
    assert read(envelope(meta={"flow_key": " "}), meta=KERNEL).value["meta"] == KERNEL
    assert "meta" not in read(ENVELOPE).value
    foreign = read(envelope(meta={"agent_key": "other"}, status="odd"), meta=KERNEL)
    assert codes(foreign.issues) == ["META_MISMATCH:agent_key", "STATUS:odd"]
    assert (foreign.accepted, foreign.action, foreign.satisfied) == (False, "reject", None)
    assert read(envelope(meta={"agent_key": "other"})).accepted  # not known: nothing to compare with
    on_disk = env.read_envelope(
        envelope(meta={"step_id": "s1"}), NO_REQUIREMENTS, TurnFacts(meta=KERNEL), channel="file"
    )
    assert codes(on_disk.issues) == ["META:agent_key", "META:flow_key", "META:timestamp"]
    assert env.read_envelope(ENVELOPE, NO_REQUIREMENTS, channel="file", profile="fragment").accepted


@pytest.mark.parametrize(
    "text, fine",
    [
        ("2026-01-01", True),
        ("2026-01-01T10:00:00Z", True),
        ("2026-01-01T10:00:00.5+02:00", True),
        ("2026-01-01 10:00:00", False),
        ("2026-13-01", False),
        ("2026-01-01T00:00:00+00:00Z", False),
        ("\ud800", False),
    ],
)
def test_envelope_section_3_time_not_in_iso_8601_causes_a_warning(text, fine):
    reading = read(envelope(meta={"timestamp": text}))
    assert reading.accepted
    assert codes(reading.warnings) == ([] if fine else ["TIMESTAMP_NOT_ISO8601"])


def test_envelope_section_3_number_of_issues_is_limited():
    text = json.dumps(envelope(concerns=["@"])).replace('"@"', ",".join(["{}"] * 33_000))
    reading = read(text)
    assert len(reading.issues) == MAX_ISSUES
    assert reading.issues[0].code == "CONCERN:0.severity"
    assert read(envelope(concerns=[{"severity": "low"}] * 2000)).issues[-1].code.startswith("CONCERN:499.")


@pytest.mark.parametrize("path", paths_of(ENVELOPE))
def test_envelope_section_3_hostile_value_in_any_field_never_raises(path):
    for value in HOSTILE:
        reading = env.read_envelope(with_changes(ENVELOPE, {path: value}), NO_REQUIREMENTS, TurnFacts(meta=KERNEL))
        assert all(issue.code for issue in (*reading.issues, *reading.warnings))
        assert reading.accepted or reading.action in ("reissue", "reject")
    without = with_changes(ENVELOPE, {path: ABSENT}) if not path[-1].isdigit() else ENVELOPE
    env.read_envelope(without, NO_REQUIREMENTS)


# -- sections 4 and 8: projecting ---------------------------------------------------------


def test_envelope_section_4_loop_request_escalates_when_the_edge_limit_is_reached():
    loop = envelope(status="UNVERIFIED", routing__recommendation="LOOP")
    assert read(loop, rounds=2, max_rounds=3).satisfied is False
    capped = read(loop, rounds=1, max_rounds=1)
    assert (capped.satisfied, capped.action) == (None, "escalate")
    assert "1 of 1" in capped.reason
    assert codes(capped.warnings) == ["CAN_FURTHER_ITERATION_HELP_MISSING", "LOOP_CAP_REACHED"]
    helpless = read(envelope(**{**_loop(), "routing__can_further_iteration_help": False}), rounds=9)
    assert codes(helpless.warnings) == ["STATUS_RECOMMENDATION_CONFLICT:UNVERIFIED+LOOP"]


def _loop():
    return {"status": "UNVERIFIED", "routing__recommendation": "LOOP"}


def test_envelope_section_8_detour_must_name_a_socket_of_the_loadout():
    value = envelope(routing__recommendation="DETOUR", routing__next_step_suggestion=" Socket-9 ")
    detour = read(value, sockets=frozenset({"Socket-9"}))
    assert (detour.satisfied, detour.action, detour.target) == (True, "detour", "Socket-9")
    assert read(value).action == "detour"
    nowhere = read(value, sockets=frozenset({"Socket-1"}))
    assert (nowhere.satisfied, nowhere.action, nowhere.target) == (True, "escalate", None)
    assert codes(nowhere.warnings) == ["DETOUR_WITHOUT_TARGET"]


def test_envelope_section_8_blocked_envelope_asks_a_person_for_help():
    reading = read(envelope(status="BLOCKED", routing__recommendation="ESCALATE", routing__reason="no key"))
    assert (reading.action, reading.needs, reading.reason) == ("pause", "help", "no key")


def test_envelope_section_8_guarded_review_without_a_verdict_is_not_satisfied():
    value = envelope(status="UNVERIFIED")
    guarded = requirements_for(
        {"parse": "json", "edges": [edge("end", "satisfied"), edge("Socket-1", "not_satisfied")]}
    )
    mixed = requirements_for({"parse": "json", "edges": [edge("end", "satisfied"), edge("end")]})
    assert read(value, guarded).satisfied is False
    assert read(value, mixed).satisfied is None
    assert read(value, requirements_for({"parse": "json"})).satisfied is None
    escalated = read(envelope(status="UNVERIFIED", routing__recommendation="ESCALATE"), guarded)
    assert (escalated.satisfied, escalated.action) == (None, "escalate")


def test_envelope_section_8_context_has_a_line_for_each_field():
    assert read(ENVELOPE).context.splitlines() == [
        "VERIFIED",
        "Done: did it",
        "Found: found it",
        "Concern LOW a.py:1: slow. Recommended: cache",
        "Assumption: utf-8. Why: usual. If wrong: garbled",
        "Decided: keep it",
        "Artifacts: a.py",
        "Commands: pytest",
        "Measurements: n=3",
    ]
    accepted = read(envelope(status="UNVERIFIED", routing__can_further_iteration_help=False))
    assert "verified=false" in accepted.context
    decided = read(envelope(summary__key_decisions=["utf-8 only", "no cache"]))
    assert "Decided: utf-8 only; no cache" in decided.context.splitlines()
    many = read(envelope(summary__evidence__artifacts_produced=[f"{n}.py" for n in range(100)]))
    assert "Artifacts: 0.py; 1.py;" in many.context
    assert many.context.count(".py") == 21  # twenty, and the place of the concern
    assert "and 80 more" in many.context


def test_envelope_section_8_concerns_become_work_items_only_in_a_generator():
    assert read(ENVELOPE).work_items is None
    generator = requirements_for({"parse": "json", "assign": {"workItems": "$.workItems"}}, generator=True)
    assert read(ENVELOPE, generator).work_items == [
        {"title": "slow", "context": "severity: LOW\nlocation: a.py:1\nrecommendation: cache"}
    ]
    assert read(envelope(concerns=[]), generator).work_items == []


def test_r8_assigned_source_must_exist_in_the_output():
    shape = requirements_for({"parse": "json", "assign": {"a": "$.summary.what_i_did", "b": "$.extra"}})
    (issue,) = read(ENVELOPE, shape).issues
    assert issue.path == "$.extra"
    assert read({**ENVELOPE, "extra": None}, shape).accepted


def test_text_sockets_accept_any_output():
    shape = requirements_for({})
    assert ENV.read(" hi ", shape).value == "hi"
    assert ENV.ask(shape) == ""


# -- section 5: asking, asking again, giving up -------------------------------------------


def test_envelope_section_5_prompt_names_all_statuses_and_fields_of_an_envelope():
    answer = ENV.ask(NO_REQUIREMENTS)
    for word in (
        "VERIFIED", "UNVERIFIED", "BLOCKED", "what_i_did", "what_i_found", "key_decisions", "artifacts_produced",
        "commands_run", "measurements", "severity", "CONTINUE", "LOOP", "DETOUR", "ESCALATE",
    ):  # fmt: skip
        assert word in answer
    assert "work item" not in answer
    assert "work item" in ENV.ask(
        requirements_for({"parse": "json", "assign": {"workItems": "$.workItems"}}, generator=True)
    )


@pytest.mark.parametrize("reason", ["looked at it", ""])
def test_decision_by_a_person_is_a_valid_envelope_with_or_without_a_reason(reason):
    written = ENV.write_for_person(SimpleAnswer("done", findings=reason), TurnFacts())
    reading = read(written, meta=KERNEL)
    assert reading.accepted
    assert reading.satisfied is True
    assert reading.value["summary"]["what_i_found"] == (reason or NO_REASON)


def test_envelope_section_5_fallback_envelope_is_used_after_the_third_refusal():
    tries = [read("no", refused=refused, meta=KERNEL, changed_files=("a.py",)) for refused in range(3)]
    assert [reading.action for reading in tries] == ["reissue", "reissue", "escalate"]
    last = tries[-1]
    assert not last.accepted
    assert (codes(last.issues), codes(last.warnings)) == (["FINALIZATION_FAILED"], ["FALLBACK_ENVELOPE"])
    assert last.satisfied is None
    assert last.value["_envelope_source"] == "fallback"
    assert last.value["meta"] == KERNEL
    assert last.value["summary"]["evidence"]["artifacts_produced"] == ["a.py"]
    read_back = env.read_envelope(last.value, NO_REQUIREMENTS, TurnFacts(meta=KERNEL), channel="file")
    assert (read_back.accepted, read_back.action) == (True, "escalate")
    assert "ENVELOPE_NOT_JSON" in last.reason


# -- section 6: file names ----------------------------------------------------------------


def test_envelope_section_6_file_name_consists_of_step_id_and_agent_key():
    names = runtime_rules.envelope_files("RUN/", "build", "s_1", "code-critic")
    assert names == (
        "RUN/build/handoffs/s_1-code-critic.json",
        "RUN/build/handoffs/s_1-code-critic.draft.json",
    )
    assert runtime_rules.envelope_files("", "f", "s", "a").final == "f/handoffs/s-a.json"
    assert runtime_rules.envelope_files("/", "f", "s", "a").final == "/f/handoffs/s-a.json"


@pytest.mark.parametrize(
    "field, value",
    [
        ("flow", "../up"),
        ("flow", ".."),
        ("flow", "."),
        ("flow", ""),
        ("step_id", "a/b"),
        ("step_id", "a\\b"),
        ("step_id", "Socket-1"),
        ("step_id", " "),
        ("step_id", "a\x00b"),
        ("agent_key", "a\nb"),
        ("agent_key", "\ud800"),
        ("agent_key", "x" * 300),
        ("agent_key", "critic.draft"),
    ],
)
def test_envelope_section_6_file_name_that_leads_to_another_folder_is_refused(field, value):
    parts = {"flow": "f", "step_id": "s", "agent_key": "a", field: value}
    with pytest.raises(MateriaError) as error:
        runtime_rules.envelope_files("RUN", **parts)
    assert (error.value.where, error.value.kind) == (f"PATH_UNSAFE:{field}", "path_unsafe")


@pytest.mark.parametrize(
    "named, target",
    [
        ("Socket-2", "Socket-2"),
        ("Secure", "Socket-2"),
        ("Make it safe", "Socket-2"),
        ("Twice", None),
        ("x", None),
    ],
)
def test_r51_detour_names_a_socket_or_a_materia_that_only_one_socket_uses(tmp_path, named, target):
    twice = h.agent("Twice")
    document = h.config(
        {
            "Socket-1": h.at("Ask", parse="json", handoff="envelope"),
            "Socket-2": h.at("Secure"),
            "Socket-3": h.at("Twice"),
            "Socket-4": h.at("Twice"),
        },
        {"Ask": h.agent(), "Secure": h.agent(label="Make it safe"), "Twice": twice},
    )
    wish = {"recommendation": "DETOUR", "reason": "first", "next_step_suggestion": named}
    cast = h.start(tmp_path, document, lambda: json.dumps(envelope(routing=wish)))
    cast.step()
    assert cast.now.next_socket == target
    if target is None:
        assert cast.status == "held"
        assert repr(named) in cast.now.engine.hold.reason
        assert any(repr(named) in warning.message for warning in cast.steps[0].reading.warnings)
