"""Test the agent contract rules by section: the block, its fields, repairs, statuses and routes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from builders import requirements_for
from materia_nb.handoff import TurnFacts, contract_fields, contract_protocol, protocol
from materia_nb.handoff.base import Task
from protocol_helpers import ABSENT, CONTRACT, HOSTILE, NO_REQUIREMENTS, block, contract, paths_of, with_changes

CON = protocol("agent-contract")
SECTIONS = ("project_knowledge", "surface_routing", "agent_contract_handoff", "write_permissions", "metadata")
REQUEST = {
    "operation": "push",
    "exact_content": "git push",
    "scope": "origin",
    "risk_level": "LOW",
    "rollback": "r",
    "verification": "v",
}
GENERATOR = {"parse": "json", "assign": {"workItems": "$.workItems"}}


def read(value, shape=NO_REQUIREMENTS, **facts):
    text = value if isinstance(value, str) else block(value)
    return CON.read(text, shape, TurnFacts(**{"agent_id": "a1b2c3d4e5", **facts}))


def codes(issues):
    return sorted(issue.code for issue in issues)


def errors(value, **facts):
    return codes(read(value, **facts).issues)


def warnings(value, **facts):
    reading = read(value, **facts)
    return codes(reading.warnings)


# -- section 2: the block -----------------------------------------------------------------

MISSING = ["AGENT_ID", "AGENT_STATUS", "NEXT_ACTION", "PENDING_STEPS", "PLAN_STATUS"]


@pytest.mark.parametrize(
    "text",
    [
        '```agent_contract_handoff\n{"a": 1}```',
        '```agent_contract_handoff \t\n\n {"a": 1}\n```',
        '````agent_contract_handoff\r\n{"a": 1}\r\n````',
        '```agent_contract_handoff x```agent_contract_handoff\n{"a": 1}```',
        '```agent_contract_handoff\u2003\n{"a": 1}```',
        '```agent_contract_handoff\n\x0c\n{"a": 1}```',
        '```agent_contract_handoff\n{"a": 2, "a": 1}```',
        '```agent_contract_handoff\n{"a": 1}```\n```agent_contract_handoff\n{"a": 2}```',
    ],
)
def test_contract_section_2_first_block_with_the_tag_is_the_contract(text):
    assert contract_fields.contract_in(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"a": 1}',
        '```agent_contract_handoff {"a": 1}\n```',
        '```agent_contract_handoff\n{"a": 1}',
        "```agent_contract_handoff\n```",
        "```agent_contract_handoff\n[1]```",
        '```agent_contract_handoff\n"x"```',
        '```agent_contract_handoff\n{"a": "```"}```',
        '```agent_contract_handoff\n{"a": NaN}```',
        '```agent_contract_handoff\n{bad```\n```agent_contract_handoff\n{"a": 1}```',
        '```Agent_contract_handoff\n{"a": 1}```',
    ],
)
def test_contract_section_2_reply_without_a_well_formed_block_has_no_contract(text):
    assert contract_fields.contract_in(text) is None
    reading = read(text)
    assert codes(reading.issues) == MISSING
    assert (reading.accepted, reading.error, reading.value, reading.action) == (
        False,
        "not_json",
        None,
        "reissue",
    )


def test_contract_section_2_backticks_in_a_contract_are_escaped():
    assert contract_fields.contract_in('```agent_contract_handoff\n{"a": "\\u0060\\u0060\\u0060"}```') == {"a": "```"}


def test_contract_section_2_too_deeply_nested_contract_object_is_refused():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert (
        codes(contract_protocol.examine_contract({**CONTRACT, "deep": deep}, NO_REQUIREMENTS).reading.issues) == MISSING
    )


# -- sections 3 to 8: fields --------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"agent_status__plan_status": ""}, ["PLAN_STATUS"]),
        ({"agent_status__plan_status": "complete."}, []),
        ({"agent_status__plan_status": "Complete ,"}, []),
        ({"agent_status__plan_status": ["COMPLETE"]}, ["PLAN_STATUS:['COMPLETE']"]),
        ({"agent_status__agent_id": ""}, ["AGENT_ID"]),
        ({"agent_status__agent_id": "ab7e4d2\n"}, ["AGENT_ID:ab7e4d2\n"]),
        ({"agent_status__agent_id": 12345}, ["AGENT_ID:12345"]),
        ({"agent_status__pending_steps": {}}, []),
        ({"agent_status__next_action": None}, ["NEXT_ACTION"]),
        ({"evidence_report__open_gaps": None}, []),
        ({"evidence_report__open_gaps": ABSENT}, ["OPEN_GAPS"]),
        ({"evidence_report__verification": {}}, ["VERIFICATION_RESULT_MUST_BE_PASS"]),
        ({"evidence_report__verification": {"result": " PASS "}}, []),
        ({"evidence_report__verification": []}, ["VERIFICATION_RESULT_REQUIRED_FOR_COMPLETE"]),
        ({"approval_request": "please"}, []),
        ({"consolidation_report": "none"}, []),
    ],
)
def test_contract_sections_3_to_5_each_kind_of_fault_has_its_own_issue_code(changes, expected):
    assert errors(contract(**changes)) == expected


def test_contract_section_4_faults_determine_the_repair_tier_and_the_repairing_agent():
    def seen(value, agent_id):
        checked = contract_protocol.examine_contract(value, NO_REQUIREMENTS, TurnFacts(agent_id=agent_id)).checked
        return checked.tier, checked.repair

    same, nobody = "resume_same_agent_contract_repair", "escalate_contract_repair"
    bad = contract(agent_status__pending_steps=None)
    anonymous = with_changes(bad, {"agent_status.agent_id": "me"})
    assert seen(CONTRACT, "") == ("ok", "none")
    assert seen(bad, "") == ("repair", same)
    assert seen(anonymous, "a12345") == ("repair", same)
    assert seen(anonymous, "worker-1") == ("repair", nobody)
    assert seen(None, "") == ("reissue", nobody)
    assert seen(contract(agent_status__plan_status="odd"), "") == ("reissue", same)
    assert read(anonymous, agent_id="").action == "escalate"


def test_contract_section_4_person_is_asked_after_two_repairs():
    assert [read("no", refused=n).action for n in range(4)] == ["reissue", "reissue", "escalate", "escalate"]


@pytest.mark.parametrize(
    "commands, outputs, told",
    [
        (["pytest"], [], True),
        (["pytest"], ["N/A.", "No output", " - ", "not available"], True),
        (["pytest"], [{"output": "none"}], True),
        (["pytest"], ["3 passed"], False),
        ([{"command": "ls", "result": "ok"}], [{"content": "a.py"}], False),
        (["none", " ", "Skipped: ls", "ls (not executed)", 3, None], [], False),
        ("pytest", [], False),
    ],
)
def test_contract_section_4_command_without_output_causes_a_warning(commands, outputs, told):
    value = contract(evidence_report__commands_run=commands, evidence_report__verbatim_outputs=outputs)
    assert warnings(value) == (["verbatim_outputs_missing"] if told else [])
    assert read(value).accepted


FULL = {
    "ownership_assessment": "owned_here",
    "confirmed_findings": ["f"],
    "suspected_findings": "s",
    "conflicts": ["none"],
    "open_gaps": ["g"],
    "next_best_agent": "developer",
}


def told(**assignment):
    """Return the prompt for the agent of a socket with the specified assignment."""
    return contract_fields.assignment_of(Task("g", "Socket-1", "T", assignment))


@pytest.mark.parametrize(
    "given, demanded",
    [
        ({}, False),
        ({"agent_contract_handoff": {"cross_check_required": 1}}, True),
        ({"agent_contract_handoff": "yes"}, False),
        ({"surface_routing": {"multi_surface": "false"}}, True),
        ({"surface_routing": [], "agent_contract_handoff": None}, False),
        (told(surfaces=["a", "b"]), True),
        (told(primary=False), True),
        (told(surfaces=["a"]), False),
    ],
)
def test_contract_section_6_assignment_can_require_a_consolidation_report(given, demanded):
    assert contract_fields.consolidation_required(given) is demanded
    assert ("CONSOLIDATION_REPORT" in errors(CONTRACT, assignment=given)) is demanded
    assert errors(contract(consolidation_report=FULL), assignment=given) == []


def test_contract_section_6_empty_fields_of_a_consolidation_report_are_missing():
    assert errors(contract(consolidation_report={**FULL, "conflicts": [], "next_best_agent": ""})) == [
        "CONFLICTS",
        "NEXT_BEST_AGENT",
    ]
    assert errors(contract(consolidation_report={**FULL, "ownership_assessment": ["owned_here"]})) == [
        "OWNERSHIP_ASSESSMENT:['owned_here']"
    ]


def test_contract_section_7_missing_fields_of_an_approval_request_are_reported():
    request = {"operation": "push", "rollback": "", "verification": None, "risk_level": " high"}
    asked = contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=request)
    assert errors(asked) == ["APPROVAL_REQUEST_ROLLBACK", "APPROVAL_REQUEST_VERIFICATION"]
    assert warnings(asked) == [
        "APPROVAL_REQUEST_FIELD_MISSING:exact_content",
        "APPROVAL_REQUEST_FIELD_MISSING:scope",
    ]


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"iteration": None}, None),
        ({"iteration": True, "max_iterations": 2}, (1, 2, None, None)),
        ({"iteration": 1, "max_iterations": "many"}, None),
        ({"iteration": 1e400}, None),
        ({"iteration": 1, "metric": 10**400, "threshold": 1}, (1, None, None, None)),
        ({"iteration": 1, "metric": "nan", "threshold": 1}, (1, None, None, None)),
        ({"iteration": 1.9, "metric": 1, "threshold": "1e400"}, (1, None, 1.0, math.inf)),
    ],
)
def test_contract_section_8_invalid_numbers_in_the_loop_state_are_ignored(given, expected):
    loop = contract_fields.Contract({"loop_state": given}).loop_state
    assert (loop and (loop.iteration, loop.max_iterations, loop.metric, loop.threshold)) == expected


def test_contract_section_8_unfinished_loop_state_causes_no_repair():
    loop = {"iteration": 1, "max_iterations": 2, "metric": 0, "threshold": 0.5}
    reading = read(contract(loop_state=loop), memory={"plan_status": "IN_PROGRESS", "in_progress": 1})
    assert codes(reading.issues) == ["LOOP_STATE_INCOMPLETE:iteration=1<max=2,metric=0.0<threshold=0.5"]
    assert (reading.accepted, reading.satisfied, reading.action) == (True, False, "route")
    assert reading.memory == {"plan_status": "IN_PROGRESS", "in_progress": 1}
    assert CON.status_sections([reading]) == [], "its status is not recorded, so the way of the visit does not have it"
    (section,) = CON.status_sections([reading, read(CONTRACT)])
    assert section.lines[0].startswith("COMPLETE (may be followed by ")
    assert read(contract(loop_state=loop, agent_status__pending_steps=None)).action == "reissue"


@pytest.mark.parametrize("path", paths_of(CONTRACT))
def test_contract_section_3_hostile_value_in_any_field_never_raises(path):
    for value in HOSTILE:
        reading = contract_protocol.examine_contract(with_changes(CONTRACT, {path: value}), NO_REQUIREMENTS).reading
        assert all(issue.code for issue in (*reading.issues, *reading.warnings))
        assert reading.accepted or reading.action in ("reissue", "escalate")


@pytest.mark.parametrize(
    "name",
    [
        "consolidation_report", "approval_request", "loop_state", "user_facing_summary", "memorialize_suggestions",
        "memory_suggestions", "update_contracts", "rollback_executed", "context_consumption",
    ],
)  # fmt: skip
def test_contract_section_3_hostile_values_in_optional_fields_never_raise(name):
    given = {"write_permissions": {"writable_sections": ["stack"]}}
    for value in HOSTILE:
        for held in (
            value,
            [value],
            {name: value},
            {"iteration": value},
            {"contract": value, "payload": value},
        ):
            reading = contract_protocol.examine_contract(
                {**CONTRACT, name: held}, NO_REQUIREMENTS, TurnFacts(assignment=given)
            ).reading
            assert all(issue.code for issue in (*reading.issues, *reading.warnings))
            contract_fields.Contract({name: held})


@pytest.mark.parametrize("given", [*HOSTILE, {"write_permissions": {"writable_sections": [None, {}]}}])
def test_contract_section_1_hostile_values_in_an_assignment_never_raise(given):
    for section in SECTIONS:
        contract_protocol.examine_contract(CONTRACT, NO_REQUIREMENTS, TurnFacts(assignment={section: given}))
    contract_protocol.examine_contract(CONTRACT, NO_REQUIREMENTS, TurnFacts(assignment=given))


def test_contract_section_1_assignment_has_five_sections():
    given = told(goal="g", writable_sections=["stack"])
    assert tuple(given) == SECTIONS
    assert contract_fields.writable_sections(given) == ["stack"]
    assert contract_fields.writable_sections({}) is None
    assert json.loads(json.dumps(given)) == given


def test_contract_section_10_update_without_write_access_causes_a_warning():
    update = [{"contract": "stack", "payload": {}}, {"contract": "infra", "payload": {}}, "x"]
    given = told(writable_sections=["stack"])
    assert warnings(contract(update_contracts=update), assignment=given) == ["UPDATE_CONTRACT_REJECTED:infra"]
    assert warnings(contract(update_contracts=update)) == []


def test_contract_section_3_all_fields_of_a_contract_are_read():
    output = contract_fields.Contract(
        contract(
            user_facing_summary=" Short. ",
            memory_suggestions=["a", None, 3, {"b": 1}],
            memorialize_suggestions=[{"description": "d", "body": "b"}],
            update_contracts=[{"contract": "stack", "payload": {"a": 1}}, {"contract": "x"}],
            context_consumption={"tokens_used": "12", "pct_window": "1e400"},
            loop_state={"iteration": 1},
            evidence_report__open_gaps="one",
        )
    )
    assert (output.plan_status, output.agent_id, output.next_action) == ("COMPLETE", "ab7e4d2", "review it")
    assert output.evidence["open_gaps"] == ["one"]
    assert output.verification == {"result": "pass"}
    assert (output.user_facing_summary, output.memory_suggestions) == ("Short.", ["a", "3", "{'b': 1}"])
    assert output.memorialize_suggestions.suggestions == [{"description": "d", "body": "b"}]
    assert output.update_contracts == [("stack", {"a": 1})]
    assert output.context_consumption == {"tokens_used": 12, "pct_window": None}
    assert (output.loop_state.iteration, output.rollback_executed) == (1, contract_fields.ABSENT)
    assert contract_fields.Contract({}).plan_status == ""


def test_contract_section_1_assignment_names_session_provider_and_role():
    task = Task("g", "ab7e4d2", "T", {"primary": False}, {}, session="2026", provider="openai")
    given = CON.assignment(task)
    assert given["metadata"] == {"session_id": "2026", "provider": "openai", "contract_version": "1"}
    assert given["surface_routing"]["role"] == "assisting"
    assert CON.assignment(Task("g", "ab7e4d2", "T"))["surface_routing"]["role"] == "primary"


# -- section 11: the state machine --------------------------------------------------------


def test_contract_section_11_refused_turn_does_not_change_the_status_history():
    at_work = contract(agent_status__plan_status="IN_PROGRESS")
    memory, actions = None, []
    for value in (at_work, "no block", at_work, at_work, CONTRACT, CONTRACT, at_work):
        reading = read(value, memory=memory)
        memory = reading.memory
        actions.append((reading.action, memory and (memory["plan_status"], memory["in_progress"])))
    assert actions == [
        ("reissue", ("IN_PROGRESS", 1)),
        ("reissue", ("IN_PROGRESS", 1)),
        ("reissue", ("IN_PROGRESS", 2)),
        ("escalate", ("IN_PROGRESS", 2)),
        ("route", ("COMPLETE", 0)),
        ("reject", ("COMPLETE", 0)),
        ("reissue", ("IN_PROGRESS", 1)),
    ]


def test_contract_section_11_illegal_status_error_names_the_legal_statuses():
    reading = read(CONTRACT, memory={"plan_status": "BLOCKED"})
    assert (codes(reading.issues), reading.action) == (["ILLEGAL_TRANSITION:BLOCKED->COMPLETE"], "reject")
    assert "IN_PROGRESS" in reading.reason


def test_contract_section_11_illegal_status_is_reported_with_all_other_issues():
    value = contract(evidence_report__open_gaps=ABSENT)
    reading = read(value, memory={"plan_status": "BLOCKED"})
    assert codes(reading.issues) == ["ILLEGAL_TRANSITION:BLOCKED->COMPLETE", "OPEN_GAPS"]
    assert reading.action == "reissue"
    assert codes(read(contract(agent_status__plan_status="ODD"), memory={"plan_status": "BLOCKED"}).issues) == [
        "PLAN_STATUS:ODD"
    ]


@pytest.mark.parametrize("memory", [*HOSTILE, {"plan_status": "odd"}, {"plan_status": "COMPLETE", "in_progress": "x"}])
def test_contract_section_11_stored_status_in_an_unknown_format_is_ignored(memory):
    assert contract_fields.restore_status(memory) in (
        contract_fields.StatusRecord(),
        contract_fields.StatusRecord("COMPLETE"),
    )


# -- section 14: where it leads -----------------------------------------------------------


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"agent_status__plan_status": "BLOCKED", "evidence_report__open_gaps": ["no key"]},
         (None, "escalate", None, "The agent is blocked; no key")),
        ({"agent_status__plan_status": "NEEDS_INPUT", "agent_status__next_action": "A or B"},
         (None, "pause", "question", "A or B")),
        ({"agent_status__plan_status": "IN_PROGRESS", "evidence_report__verification": {"result": "fail"}},
         (False, "route", None, "")),
        ({"agent_status__plan_status": "IN_PROGRESS", "loop_state": {"iteration": 1}}, (False, "route", None, "")),
        ({"consolidation_report": {**FULL, "ownership_assessment": "not_my_surface"}}, (False, "route", None, "")),
        ({"consolidation_report": {**FULL, "ownership_assessment": "cross_surface_dependency"}},
         (True, "route", None, "")),
    ],
)  # fmt: skip
def test_contract_section_14_status_determines_verdict_and_action(changes, expected):
    reading = read(contract(**changes))
    assert (reading.satisfied, reading.action, reading.needs, reading.reason) == expected


@pytest.mark.parametrize(
    "approval_id, needs",
    [
        ("P-" + "0" * 32, "approval"),
        (None, "direction"),
        ("", "direction"),
        ("X", "direction"),
        ("P-" + "0" * 31, "direction"),
        (7, "direction"),
    ],
)
def test_contract_section_14_request_waits_for_approval_or_an_instruction(approval_id, needs):
    request = {"exact_content": "git push", "rollback": "r", "verification": "v", "approval_id": approval_id}
    reading = read(contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=request))
    assert (reading.action, reading.needs) == ("pause", needs)
    assert "git push" in reading.reason


def test_r44_malformed_approval_id_counts_as_missing():
    request = {**REQUEST, "approval_id": "X"}
    asked = contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=request)
    assert warnings(asked) == ["APPROVAL_ID_MALFORMED:X"]
    assert read(asked).accepted


@pytest.mark.parametrize("command", ["  ", 7, ["git push"]])
def test_r44_request_without_an_exact_command_cannot_be_approved(command):
    request = {**REQUEST, "approval_id": "P-" + "0" * 32, "exact_content": command}
    asked = contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=request)
    assert warnings(asked) == ["APPROVAL_WITHOUT_COMMAND"]
    assert read(asked).needs == "direction"


def test_r44_reason_shown_to_a_person_mentions_an_invented_approval_id():
    request = {**REQUEST, "approval_id": "P-" + "0" * 32}
    asked = contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=request)
    assert "the agent made up the id P-000" in read(asked).reason


def test_contract_section_14_context_has_the_fields_for_the_next_agent():
    value = contract(
        user_facing_summary=" Short. ",
        evidence_report__cross_layer_impacts=["docs"],
        evidence_report__open_gaps=["gap\nmore", "g"],
        consolidation_report={**FULL, "ownership_assessment": "cross_surface_dependency"},
        evidence_report__commands_run=["ls"],
    )
    assert read(value).context.splitlines() == [
        "COMPLETE",
        "Summary: Short.",
        "Key outputs: it works",
        "Impacts elsewhere: docs",
        "Open gaps: gap more; g",
        "Ownership: cross_surface_dependency",
        "Next best agent: developer",
        "Warnings: Commands were run, but no output is quoted.",
    ]


def test_contract_section_14_open_gaps_become_work_items_only_in_a_generator():
    value = contract(evidence_report__open_gaps=["first\nhow", "second", {"third": 1}, " ", None])
    assert read(value).work_items is None
    assert read(value, requirements_for(GENERATOR, generator=True)).work_items == [
        {"title": "first", "context": "how"},
        {"title": "second", "context": "second"},
        {"title": '{"third":1}', "context": '{"third":1}'},
    ]
    both = with_changes(value, {"consolidation_report": {**FULL, "open_gaps": ["second", "third", "None."]}})
    titles = [item["title"] for item in read(both, requirements_for(GENERATOR, generator=True)).work_items]
    assert titles == ["first", "second", '{"third":1}', "third"]
    helped = with_changes(value, {"consolidation_report": FULL})
    assert (
        read(helped, requirements_for(GENERATOR, generator=True)).work_items[0]["context"]
        == "how\nNext best agent: developer"
    )


def test_contract_section_14_parsed_contract_with_oversized_numbers_is_valid_json():
    reading = read(block(json.dumps(CONTRACT)[:-1] + ', "x": [1e400, 1]}'))
    assert reading.value["x"] == [None, 1]


def test_contract_form_contains_every_list_and_every_status():
    answer = CON.ask(NO_REQUIREMENTS)
    for name in (
        *contract_fields.PLAN_STATUSES,
        *contract_fields.EVIDENCE,
        "agent_id",
        "pending_steps",
        "rollback",
    ):
        assert name in answer
    assert "work item" in CON.ask(requirements_for(GENERATOR, generator=True))
    assert CON.ask(requirements_for({})) == ""


def test_text_sockets_accept_any_output():
    assert CON.read(" hi ", requirements_for({})).value == "hi"


OWN_ID = CONTRACT["agent_status"]["agent_id"]


def test_contract_section_9_malformed_suggestion_is_skipped_with_a_warning():
    given = [{"description": "d", "body": "b", "type": "weird"}, {"description": "x"}, 3]
    reading = read(contract(memorialize_suggestions=given), agent_id=OWN_ID)
    assert reading.accepted
    assert [note.split(":")[0] for note in reading.notes] == [f"memorialize_suggestions[{place}]" for place in range(3)]
    assert read(contract(memorialize_suggestions=[]), agent_id=OWN_ID).notes == ()


def test_contract_with_a_wrong_agent_id_is_accepted_with_a_note():
    noted = read(CONTRACT, agent_id="a1b2c3d4e5")
    assert noted.notes == (f"agent_status.agent_id is {OWN_ID}, but the id of the agent is a1b2c3d4e5",)
    assert noted._replace(notes=()) == read(CONTRACT, agent_id=OWN_ID)
    assert read(CONTRACT, agent_id="").notes == (), "what was given is not known"
    assert read("no contract", agent_id="a1b2c3d4e5").notes == ()


@pytest.mark.parametrize("sends_back, action, satisfied", [(True, "route", False), (False, "reissue", None)])
def test_unfinished_work_is_sent_back_or_continued(sends_back, action, satisfied):
    failing = contract(agent_status__plan_status="IN_PROGRESS", evidence_report__verification={"result": "fail"})
    shape = replace(NO_REQUIREMENTS, sends_back=sends_back)
    reading = CON.read(block(failing), shape)
    assert (reading.action, reading.satisfied, reading.accepted) == (action, satisfied, True)
    finished = CON.read(block(contract()), shape)
    assert (finished.action, finished.satisfied) == ("route", True)
