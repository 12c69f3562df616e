"""Test that hints about handoff protocols are given where they apply, and that a clean loadout has none."""

from __future__ import annotations

import pytest

from loadout_samples import config, edge
from materia_nb.handoff.base import Task
from materia_nb.handoff.contract_fields import assignment_of
from materia_nb.loadout import check_config


def report(document, loadout=None):
    found = check_config(document, loadout)
    assert found.ok, str(found)
    return [hint for hint in found.hints if hint.code not in ("unused-materia", "not-finalized")]


def hints(document):
    return {(hint.code, hint.source) for hint in report(document)}


def single_socket(materia="P", **fields):
    return config({"Socket-1": {"materia": materia, **fields}})


def test_clean_loadout_has_no_hints():
    assert hints(single_socket(parse="json", handoff="envelope")) == set()
    assert hints(single_socket(parse="json", handoff="sparse", assign={"a": "$.anything"})) == set()
    assert hints(single_socket(handoff="agent-contract", parse="json", assignment={"goal": "g"})) == set()
    assert hints(single_socket("U", handoff="sparse")) == set()


@pytest.mark.parametrize("place, source", [("loadout", "handoff"), ("socket", "Socket-1.handoff")])
def test_unknown_protocol_suggests_the_nearest_name(place, source):
    # What nobody here knows may do anything: nothing else is said of it.
    document = single_socket(parse="json", assignment={"goal": "g"}, assign={"a": "$.anything"})
    loadout = document["loadouts"]["T"]
    (loadout if place == "loadout" else loadout["sockets"]["Socket-1"])["handoff"] = "envelop"
    (found,) = report(document)
    assert (found.code, found.source) == ("unknown-protocol", source)
    assert "'envelop'" in found.message
    assert found.hint == "did you mean 'envelope'?"


@pytest.mark.parametrize(
    "document, source",
    [
        (single_socket("U", handoff="envelope"), "Socket-1.handoff"),
        (single_socket("U", assignment={"goal": "g"}), "Socket-1.assignment"),
        (single_socket(handoff="envelope"), "Socket-1.handoff"),
        (single_socket(parse="json", handoff="envelope", assignment={"goal": "g"}), "Socket-1.assignment"),
        (single_socket(parse="json", assignment={"goal": "g"}), "Socket-1.assignment"),
    ],
)
def test_fields_ignored_by_a_protocol_get_a_hint(document, source):
    assert hints(document) == {("no-effect", source)}


def test_guarded_text_edges_get_a_hint_for_every_protocol():
    hint_codes = hints(single_socket(handoff="envelope", edges=[edge("end", "satisfied")]))
    assert hint_codes == {("guard-on-text", "Socket-1.edges[0].when"), ("no-effect", "Socket-1.handoff")}


@pytest.mark.parametrize(
    "name, source",
    [
        ("envelope", "$.satisfied"),
        ("envelope", "$.workItems[0].title"),
        ("agent-contract", "$.context"),
        ("agent-contract", "$.summary.what_i_did"),
    ],
)
def test_assignment_from_a_missing_protocol_field_gets_a_hint(name, source):
    found = report(single_socket(parse="json", handoff=name, assign={"a": source, "b": "$", "c": "lastOutput"}))
    assert [(hint.code, hint.source) for hint in found] == [("not-in-protocol", "Socket-1.assign.a")]
    assert source.split(".")[1].partition("[")[0] in found[0].message


@pytest.mark.parametrize("name", ["sparse", "envelope"])
@pytest.mark.parametrize("source", ["$..name", "$.*", "$[0]"])
def test_assignment_without_a_field_gets_a_hint(name, source):
    (hint,) = report(single_socket(parse="json", handoff=name, assign={"a": source}))
    assert (hint.code, hint.source) == ("not-in-protocol", "Socket-1.assign.a")
    assert (
        hints(single_socket(parse="json", handoff="sparse", assign={"a": "$.plan..name", "b": "$['c d'].e"})) == set()
    )


@pytest.mark.parametrize(
    "name, source",
    [("envelope", "$.status"), ("envelope", "$.summary.evidence"), ("agent-contract", "$.loop_state.metric")],
)
def test_assignment_from_a_protocol_field_gets_no_hint(name, source):
    assert hints(single_socket(parse="json", handoff=name, assign={"a": source})) == set()


@pytest.mark.parametrize("value", [None, 3, "", "  ", [], {}, "<b>", "\ud800"])
def test_protocol_hints_never_raise_on_malformed_loadouts(value):
    for field in ("handoff", "assignment", "assign", "parse"):
        check_config(single_socket(**{field: value}))
        document = single_socket()
        document["loadouts"]["T"]["handoff"] = value
        check_config(document)


def test_assignment_problems_name_fields_in_snake_case_and_camel_case():
    given = {"acceptance_criteria": ["x"], "writableSections": ["y"], "gaol": "z"}
    document = single_socket(handoff="agent-contract", parse="json", assignment=given)
    assert hints(document) == {("unknown-field", "Socket-1.assignment.gaol")}
    wrong = single_socket(assignment={"acceptance_criteria": "x", "primary": "no", "scope": ["a"], "surfaces": ["b"]})
    found = {problem.source for problem in check_config(wrong).problems}
    assert found == {f"Socket-1.assignment.{name}" for name in ("acceptance_criteria", "primary", "scope")}


@pytest.mark.parametrize("spelling", ["writable_sections", "writableSections"])
def test_agent_receives_assignment_fields_in_snake_case_and_camel_case(spelling):
    told = assignment_of(Task("g", "Socket-1", "T", {spelling: ["stack"]}))
    assert told["write_permissions"]["writable_sections"] == ["stack"]


def test_envelope_agent_without_a_finalize_setting_gets_a_hint():
    document = single_socket(parse="json", handoff="envelope")
    assert [hint.source for hint in check_config(document).hints if hint.code == "not-finalized"] == [
        "Socket-1.finalize"
    ]
    for said in (True, False):
        document = single_socket(parse="json", handoff="envelope", finalize=said)
        assert not [hint for hint in check_config(document).hints if hint.code == "not-finalized"]


def test_text_socket_in_an_envelope_loadout_gets_a_hint():
    document = single_socket()
    document["loadouts"]["T"]["handoff"] = "envelope"
    assert hints(document) == {("text-handoff", "Socket-1.parse")}
    document["loadouts"]["T"]["sockets"]["Socket-1"]["handoff"] = "sparse"
    assert hints(document) == set()
