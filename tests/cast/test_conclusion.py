"""Test the conclusion of a cast: the summary written by its agents, and the memories that they suggest."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.cast.views.status import status_view
from materia_nb.handoff import protocol
from materia_nb.handoff.base import AgentReport
from protocol_helpers import block, contract

CON = protocol("agent-contract")


def concluded(*contracts):
    return CON.conclusion([AgentReport(f"Agent {n}", value) for n, value in enumerate(contracts, 1)])


def test_contract_section_12_single_summary_is_shown_verbatim():
    told = concluded(contract(user_facing_summary="It is done.\nNothing is left."))
    assert told == ["It is done.", "Nothing is left."]


@pytest.mark.parametrize("summary", [None, "  ", 7])
def test_contract_section_12_key_outputs_replace_a_missing_summary(summary):
    assert concluded(contract(user_facing_summary=summary)) == ["Agent 1: it works"]


def test_contract_section_12_key_outputs_of_several_agents_are_combined():
    first = contract(user_facing_summary="Mine.", evidence_report__key_outputs=["a", {"b": 1}])
    second = contract(user_facing_summary="Yours.", evidence_report__key_outputs=[])
    assert concluded(first, second) == ['Agent 1: a; {"b":1}', "Agent 2: Yours."]


def test_contract_section_12_verification_and_open_work_are_mentioned_once():
    value = contract(
        user_facing_summary="Done.",
        evidence_report__verification={"result": "pass", "method": "tests"},
        evidence_report__cross_layer_impacts=["docs"],
        evidence_report__open_gaps=["speed", None],
    )
    assert concluded(value) == ["Done.", "Verified by: tests", "Impacts elsewhere: docs", "Still open: speed"]
    assert concluded(value, value).count("Still open: speed") == 1


def test_contract_section_12_unfinished_contract_has_no_conclusion():
    assert concluded(contract(agent_status__plan_status="IN_PROGRESS", user_facing_summary="Soon.")) == []


def test_contract_section_12_hostile_fields_never_break_the_conclusion():
    assert concluded(contract(evidence_report=[], user_facing_summary={})) == ["Agent 1: done"]
    assert concluded({}, {"agent_status": 7}) == []


def cast_of(tmp_path, **fields):
    document = h.one_config(parse="json", handoff="agent-contract")
    cast = h.start(tmp_path, document, lambda: block({**contract(), **fields}))
    cast.run()
    return cast


def test_complete_cast_ends_with_the_summary_and_the_suggestions(tmp_path):
    cast = cast_of(tmp_path, user_facing_summary="It is <b>done</b>.", memory_suggestions=["a", "b"])
    assert repr(cast).splitlines()[-2:] == [
        "It is <b>done</b>.",
        "2 suggestions to review; list them with `%materia edit remember`",
    ]
    assert "<b>done" not in status_view(cast.now)._repr_mimebundle_()["text/html"]
    cast.edit.remember(1)
    assert "1 suggestion to review" in repr(open_cast(cast.run_dir))
    cast.edit.remember(2)
    assert "to keep" not in repr(cast)


def test_long_summary_is_truncated_and_names_the_location_of_the_full_text(tmp_path):
    cast = cast_of(tmp_path, user_facing_summary="x" * 5000 + "\ny" * 100)
    assert len(repr(cast)) < 3000
    assert "and 61 more lines; list them with `cast.now.conclusion`" in repr(cast)
    assert len(cast.now.conclusion) == 101


def test_unfinished_cast_and_other_protocols_have_no_conclusion(tmp_path):
    assert h.start(tmp_path, h.one_config(), lambda: "text").now.conclusion == []
    cast = cast_of(tmp_path / "two", user_facing_summary="Done.")
    assert cast.at(0).conclusion == []
