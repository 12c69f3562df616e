"""Test agent contract rules 7, 9 and 10: command approvals, memories, and updates of the project context."""

from __future__ import annotations

import copy
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.errors import MateriaError
from materia_nb.handoff import contract_fields, runtime_rules
from materia_nb.jsonvalue import equal_json
from protocol_helpers import HOSTILE, json_values

ID = "P-" + "0" * 32
COMMAND = {"operation": "push", "exact_content": "git push", "scope": "git", "risk_level": "high"}
HOUR = 3600.0


def sealed(**fields):
    return runtime_rules.seal_request({"approval_id": ID, **COMMAND, **fields}, 0.0)


# -- section 7: consent -------------------------------------------------------------------


def test_contract_section_7_fingerprint_is_the_digest_of_compact_sorted_json():
    expected = hashlib.sha256(b'{"a":[1,true],"b":"\\ud800"}').hexdigest()
    assert runtime_rules.command_fingerprint({"b": "\ud800", "a": [1, True]}) == expected


def test_contract_section_7_approval_allows_one_exact_command_once():
    approval = sealed().approve(5.0)
    assert approval.as_json() == {"approval_id": ID, "exact_content": "git push", "uses": 1}
    for other in ("git push ", "git push --force", "GIT PUSH", ""):
        assert approval.use(other, 6.0) == (False, approval)
    allowed, used = approval.use("git push", 6.0)
    assert allowed
    assert used.as_json()["uses"] == 0
    assert used.use("git push", 6.0) == (False, used)


def test_contract_section_7_approval_expires_after_an_hour():
    approval = sealed().approve(0.0)
    assert approval.use("git push", HOUR - 1)[0]
    allowed, over = approval.use("git push", HOUR)
    assert (allowed, over.status) == (False, "EXPIRED")


def test_contract_section_7_request_expires_after_a_day():
    assert sealed().approve(24 * HOUR) is None
    assert sealed().approve(24 * HOUR - 1)


def test_contract_section_7_request_may_not_change_after_it_was_shown_for_approval():
    one = sealed(rollback="git revert", risk_level=" high ", verification="look")
    assert one.sealed["rollback_hint"] == "git revert"
    assert one.sealed["risk_level"] == "HIGH"
    for field, value in {
        "exact_content": "git push -f",
        "risk_level": "LOW",
        "rollback": None,
        "scope": 1,
    }.items():
        other = sealed(**{"rollback": "git revert", "risk_level": "HIGH", field: value})
        assert other.fingerprint != one.fingerprint
    assert sealed(rollback="git revert", risk_level="high").fingerprint == one.fingerprint


def test_contract_section_7_resumed_agent_reads_the_decision():
    assert "git push" in runtime_rules.answer_note(sealed().approve(0.0))
    assert "Do not run" in runtime_rules.answer_note(None)


# -- section 9: memories ------------------------------------------------------------------


def test_contract_section_9_suggestion_that_is_not_text_is_skipped_with_a_warning():
    found = contract_fields.memorialize_suggestions(
        [
            {"description": 1, "body": ["b"], "slug": None, "type": "Atom"},
            {},
            None,
            {"description": "d", "body": ""},
        ]
    )
    assert found.suggestions == [{"description": "1", "body": "['b']", "type": "Atom"}]
    assert found.warnings == [
        "memorialize_suggestions[1]: missing required field(s) description, body",
        "memorialize_suggestions[2]: not an object",
        "memorialize_suggestions[3]: missing required field(s) body",
    ]
    assert contract_fields.memorialize_suggestions(None) == ([], [])
    assert len(contract_fields.memorialize_suggestions({"a": 1}).warnings) == 1


# -- section 10: merging ------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored, update, expected",
    [
        ([], [], []),
        (["b", "a", "b"], [], ["a", "b"]),
        ([2, 1.0], [1, 3], [1.0, 2, 3]),
        ([True], [False, True], [False, True]),
        ([1, "a"], ["a", True, 1, "b"], [1, "a", True, "b"]),
        ([{"id": 1}], [{"id": True}, {"id": 1.0}], [{"id": 1}, {"id": True}]),
        ([{"name": "x", "l": [2]}], [{"name": "x", "l": [1]}, {"name": "x", "p": 1}], [{"name": "x", "l": [1, 2], "p": 1}]),
        ([{"name": ""}], [{"name": "", "p": 1}], [{"name": "", "p": 1}]),
        ([{"name": 1}], [{"name": 1, "p": 1}], [{"name": 1}, {"name": 1, "p": 1}]),
        ([None], [None, []], [None, []]),
        (1, [1], [1]),
        ({"a": 1}, None, None),
        (None, {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_contract_section_10_values_are_merged_by_type(stored, update, expected):
    before = copy.deepcopy((stored, update))
    merged = runtime_rules.merged_context({"k": stored}, {"k": update})["k"]
    assert equal_json(merged, expected)
    assert (stored, update) == before


def kept(stored, update, merged):
    """Return True if the merge keeps every key of ``stored`` that ``update`` does not replace."""
    if isinstance(stored, dict) and isinstance(update, dict):
        return all(
            key in merged and (key not in update or kept(child, update[key], merged[key]))
            for key, child in stored.items()
        ) and all(equal_json(child, merged[key]) for key, child in stored.items() if key not in update)
    if isinstance(stored, list) and isinstance(update, list):
        named = all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in [*stored, *update])
        if named and stored and update:
            return {one["name"] for one in stored} <= {one["name"] for one in merged}
        return all(any(equal_json(item, other) for other in merged) for item in [*stored, *update])
    return equal_json(merged, update)


objects = st.dictionaries(st.sampled_from("abc") | st.just("name"), json_values, max_size=4)
named = st.lists(st.fixed_dictionaries({"name": st.sampled_from("xy")}, optional={"p": json_values}), max_size=3)
documents = st.dictionaries(st.sampled_from("abc"), json_values | objects | named, max_size=3)


@given(documents, documents)
def test_contract_section_10_merge_keeps_values_that_the_update_does_not_mention(stored, update):
    before = copy.deepcopy((stored, update))
    merged = runtime_rules.merged_context(stored, update)
    assert kept(stored, update, merged)
    assert (stored, update) == before


@given(documents, documents)
def test_contract_section_10_merging_the_same_update_twice_changes_nothing(stored, update):
    """The second merge may still sort a list that the first merge added, and remove its duplicates."""
    twice = runtime_rules.merged_context(runtime_rules.merged_context(stored, update), update)
    assert equal_json(runtime_rules.merged_context(twice, update), twice)


def test_contract_section_10_too_deeply_nested_values_are_refused_and_long_lists_are_merged_quickly():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(MateriaError, match="levels deep"):
        runtime_rules.merged_context(deep, {})
    rows = [{"id": number} for number in range(50_000)]
    assert runtime_rules.merged_context({"r": rows}, {"r": rows})["r"] == rows


def test_contract_section_10_refused_update_does_not_affect_other_updates():
    document = {"stack": {"a": 1}, "infra": {"b": 1}}
    done = runtime_rules.apply_updates(
        document,
        [
            {"contract": "infra", "payload": {"b": 2}},
            {"contract": "stack", "payload": ["x"]},
            {"contract": "stack", "payload": {"c": [1]}},
            {"contract": "stack", "payload": {"c": [0]}},
            {"contract": "Stack", "payload": {}},
            {"contract": "new", "payload": {"d": 1}},
        ],
        ["stack", "new"],
        "developer",
    )
    assert document == {"stack": {"a": 1}, "infra": {"b": 1}}
    assert done.document == {"stack": {"a": 1, "c": [0, 1]}, "infra": {"b": 1}, "new": {"d": 1}}
    assert done.applied == ("stack", "stack", "new")
    assert done.rejected == ("infra", "Stack")
    assert [issue.code for issue in done.issues] == ["UPDATE_CONTRACT_PAYLOAD:stack"]
    assert "developer" in done.warnings[0].message
    assert "new, stack" in done.warnings[0].fix


@pytest.mark.parametrize("clause", HOSTILE)
def test_contract_section_10_hostile_update_without_write_access_changes_nothing(clause):
    document = {"stack": {"a": 1}}
    for given_clause in (clause, [clause], [{"contract": clause, "payload": clause}]):
        assert runtime_rules.apply_updates(document, given_clause, ["other"]).document == document
    runtime_rules.apply_updates(document, [{"contract": "stack", "payload": clause}], ["stack"])


def test_contract_section_10_context_entry_that_is_not_an_object_is_replaced():
    assert runtime_rules.apply_updates({"s": 3}, [{"contract": "s", "payload": {"a": 1}}], ["s"]).document == {
        "s": {"a": 1}
    }
