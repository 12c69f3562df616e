"""Translating handoffs: what comes back, what is lost, and that nothing is lost in silence."""

from __future__ import annotations

import sys
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.errors import MateriaError
from materia_nb.handoff import contract_protocol, protocol, translate
from materia_nb.handoff import envelope_protocol as env
from materia_nb.jsonvalue import MISSING, get_path, same
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from protocol_helpers import (
    CONTRACT,
    ENVELOPE,
    FREE,
    HOSTILE,
    OTHERS,
    changed,
    contract,
    envelope,
    json_values,
    paths_of,
)

SPARSE = {
    "satisfied": False,
    "context": "found it",
    "workItems": [{"title": "slow", "context": "cache"}, {"title": "bad", "context": "bad"}],
}
SAMPLES = {"sparse": SPARSE, "envelope": ENVELOPE, "agent-contract": CONTRACT}
PAIRS = list(permutations(SAMPLES, 2))


def test_each_of_our_protocols_has_a_sample():
    assert list(SAMPLES) == list(OWN_PROTOCOLS)


def test_a_sparse_handoff_comes_back_whole_from_both():
    for to in OTHERS:
        for satisfied in ({}, {"satisfied": True}, {"satisfied": False}):
            value = {"context": SPARSE["context"], "workItems": SPARSE["workItems"], **satisfied}
            made, lost = translate(value, frm="sparse", to=to)
            assert lost == []
            assert translate(made, frm=to, to="sparse") == (value, [])


@pytest.mark.parametrize("empty", ["", None])
def test_what_says_nothing_is_not_lost(empty):
    _, lost = translate({"satisfied": True, "context": empty}, frm="sparse", to="envelope")
    assert lost == []


def test_what_an_envelope_and_a_contract_both_hold_comes_back():
    value = envelope(meta={"agent_key": "ab7e4d2"})
    made, lost = translate(value, frm="envelope", to="agent-contract")
    assert lost == [
        "$.summary.key_decisions.0",
        "$.summary.evidence.artifacts_produced.0",
        "$.summary.evidence.measurements.n",
        "$.assumptions.0.assumption",
        "$.assumptions.0.why",
        "$.assumptions.0.impact_if_wrong",
    ]
    assert made["agent_status"]["plan_status"] == "COMPLETE"
    assert made["evidence_report"]["open_gaps"] == [
        "slow\nseverity: LOW\nlocation: a.py:1\nrecommendation: cache"
    ]
    assert contract_protocol.examine(made, FREE).reading.accepted


def test_what_a_contract_and_an_envelope_both_hold_comes_back():
    value = contract(
        evidence_report__commands_run=["ls", {"command": "pytest", "result": "ok"}],
        evidence_report__open_gaps=["gap", "slow\ncache it"],
        evidence_report__files_checked=["a.py"],
        user_facing_summary="Short.",
    )
    made, lost = translate(value, frm="agent-contract", to="envelope")
    assert lost == [
        "$.evidence_report.files_checked.0",
        "$.evidence_report.commands_run.1.command",
        "$.evidence_report.commands_run.1.result",
    ]
    assert made["summary"]["evidence"]["commands_run"] == ["ls", "pytest"]
    assert env.read_object(made, FREE).accepted


@pytest.mark.parametrize(
    "changes, satisfied, status",
    [
        ({}, True, "COMPLETE"),
        ({"status": "UNVERIFIED"}, None, "IN_PROGRESS"),
        ({"status": "UNVERIFIED", "routing__can_further_iteration_help": False}, True, "IN_PROGRESS"),
        ({"status": "UNVERIFIED", "routing__recommendation": "LOOP"}, False, "IN_PROGRESS"),
        ({"status": "UNVERIFIED", "routing__recommendation": "ESCALATE"}, None, "BLOCKED"),
        ({"status": "BLOCKED"}, None, "BLOCKED"),
    ],
)
def test_what_was_not_verified_is_never_said_to_have_passed(changes, satisfied, status):
    value = envelope(**changes)
    assert translate(value, frm="envelope", to="sparse").value.get("satisfied") is satisfied
    made = translate(value, frm="envelope", to="agent-contract").value
    assert made["agent_status"]["plan_status"] == status
    assert (fields_of(made).get("verification") == {"result": "pass"}) is (status == "COMPLETE")


def fields_of(value):
    return value["evidence_report"]


@pytest.mark.parametrize("status", ["APPROVAL_REQUEST", "NEEDS_INPUT", "BLOCKED"])
def test_a_contract_that_waits_is_blocked_as_an_envelope_and_says_what_was_lost(status):
    made, lost = translate(contract(agent_status__plan_status=status), frm="agent-contract", to="envelope")
    assert made["status"] == "BLOCKED"
    assert ("$.agent_status.plan_status" in lost) is (status != "BLOCKED")


def others(name):
    """Our own protocols beside one of them."""
    return [other for other in OWN_PROTOCOLS if other != name]


def at(value, path):
    return get_path(value, path.removeprefix("$.").split("."))


def says_something(value):
    return not isinstance(value, (dict, list)) and value is not None and value != ""


def check_nothing_lost_in_silence(value, frm, to):
    made, lost = translate(value, frm=frm, to=to)
    back = translate(made, frm=to, to=frm).value
    for path in paths_of(value):
        leaf = at(value, path)
        if leaf is not MISSING and says_something(leaf) and f"$.{path}" not in lost:
            assert same(leaf, at(back, path)), path


@pytest.mark.parametrize("frm, to", PAIRS)
def test_there_and_back_keeps_all_that_is_not_listed_as_lost(frm, to):
    check_nothing_lost_in_silence(SAMPLES[frm], frm, to)


texts = st.text(alphabet="ab \n:", max_size=6) | st.sampled_from(
    ["Done: x", "Done: x\nFound: y", "severity: LOW"]
)
filled = texts.filter(str.strip)
single = st.text(alphabet="abc :", min_size=1, max_size=6)
sparse_values = st.fixed_dictionaries(
    {},
    optional={
        "satisfied": st.booleans(),
        "context": texts,
        "workItems": st.lists(st.fixed_dictionaries({"title": filled, "context": filled}), max_size=2),
    },
)
envelope_values = st.builds(
    lambda did, found, concerns, route, commands: envelope(
        summary__what_i_did=did,
        summary__what_i_found=found,
        summary__evidence__commands_run=commands,
        concerns=concerns,
        **route,
    ),
    texts,
    texts,
    st.lists(
        st.fixed_dictionaries(
            {
                "severity": st.sampled_from(["HIGH", "MEDIUM", "LOW"]),
                "description": filled,
                "recommendation": filled,
            },
            optional={"location": texts},
        ),
        max_size=2,
    ),
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(["VERIFIED", "UNVERIFIED", "BLOCKED"]),
            "routing__recommendation": st.sampled_from(["CONTINUE", "LOOP", "DETOUR", "ESCALATE"]),
            "routing__can_further_iteration_help": st.none() | st.booleans(),
        }
    ),
    st.lists(texts, max_size=2),
)
contract_values = st.builds(
    lambda status, gaps, outputs, result, summary: contract(
        agent_status__plan_status=status,
        evidence_report__open_gaps=gaps,
        evidence_report__key_outputs=outputs,
        evidence_report__verification={"result": result},
        user_facing_summary=summary,
    ),
    st.sampled_from(["COMPLETE", "IN_PROGRESS", "BLOCKED", "NEEDS_INPUT", "APPROVAL_REQUEST", "odd"]),
    st.lists(texts, max_size=2),
    st.lists(texts, max_size=2),
    st.sampled_from(["pass", "fail"]),
    texts,
)


@pytest.mark.parametrize("to", others("sparse"))
@given(value=sparse_values)
def test_sparse_there_and_back(to, value):
    check_nothing_lost_in_silence(value, "sparse", to)


@pytest.mark.parametrize("to", others("envelope"))
@given(value=envelope_values)
def test_envelope_there_and_back(to, value):
    check_nothing_lost_in_silence(value, "envelope", to)


@pytest.mark.parametrize("to", others("agent-contract"))
@given(value=contract_values)
def test_contract_there_and_back(to, value):
    check_nothing_lost_in_silence(value, "agent-contract", to)


@given(
    st.lists(st.fixed_dictionaries({"title": single, "context": single}), max_size=3),
    st.booleans() | st.none(),
)
def test_plain_work_and_verdicts_are_never_lost(pieces, satisfied):
    """What all of them can hold comes back: the verdict, and work with a one-line title and plain words."""
    value = {"workItems": pieces} if satisfied is None else {"workItems": pieces, "satisfied": satisfied}
    for to in OTHERS:
        kept = [path for path in translate(value, frm="sparse", to=to).lost if "workItems" not in path]
        assert kept == []
    solid = {**value, "workItems": [piece for piece in pieces if all(map(str.strip, piece.values()))]}
    for to in OTHERS:
        assert translate(solid, frm="sparse", to=to).lost == []


@pytest.mark.parametrize("frm, to", PAIRS)
def test_hostile_values_in_any_field_are_lost_and_never_raise(frm, to):
    for path in paths_of(SAMPLES[frm]):
        for value in HOSTILE:
            check_nothing_lost_in_silence(changed(SAMPLES[frm], {path: value}), frm, to)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=3), st.sampled_from(PAIRS))
def test_any_object_can_be_translated(value, pair):
    made, _ = translate(value, frm=pair[0], to=pair[1])
    assert isinstance(made, dict)


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_only_objects_are_translated(value):
    with pytest.raises(MateriaError, match="Only an object"):
        translate(value, frm="sparse", to="envelope")


def test_objects_too_deep_are_refused_and_the_same_format_is_a_copy_of_nothing():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(MateriaError, match="levels"):
        translate(deep, frm="sparse", to="envelope")
    assert translate(SPARSE, frm="sparse", to="sparse") == (SPARSE, [])


def test_a_protocol_without_a_gist_is_told(monkeypatch):
    class Mute:
        name = "mute"

    module = sys.modules["materia_nb.handoff.protocol"]  # a function has the same name in the package
    monkeypatch.setattr(module, "protocol", lambda name: Mute() if name == "mute" else protocol(name))
    with pytest.raises(MateriaError, match="cannot be translated") as error:
        translate(SPARSE, frm="sparse", to="mute")
    assert error.value.kind == "not_translatable"
