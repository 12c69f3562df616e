"""Provide envelopes, contracts, casts and malformed values for the tests of the handoff protocols."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.handoff import Requirements
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, OWN_PROTOCOLS

JSONObject = dict[str, Any]

OTHER_PROTOCOLS = [name for name in OWN_PROTOCOLS if name != DEFAULT_HANDOFF]
"""All protocols of this package except the default protocol."""

KERNEL = {
    "step_id": "s1",
    "flow_key": "build",
    "agent_key": "critic",
    "timestamp": "2026-01-01T00:00:00+00:00",
}
NO_REQUIREMENTS = Requirements("json", False, None, False, True, frozenset(), ())

ENVELOPE: JSONObject = {
    "status": "VERIFIED",
    "summary": {
        "what_i_did": "did it",
        "what_i_found": "found it",
        "key_decisions": ["keep it"],
        "evidence": {"artifacts_produced": ["a.py"], "commands_run": ["pytest"], "measurements": {"n": 3}},
    },
    "concerns": [{"severity": "LOW", "description": "slow", "location": "a.py:1", "recommendation": "cache"}],
    "assumptions": [{"assumption": "utf-8", "why": "usual", "impact_if_wrong": "garbled"}],
    "routing": {"recommendation": "CONTINUE", "reason": "all done"},
}

CONTRACT: JSONObject = {
    "agent_status": {
        "plan_status": "COMPLETE",
        "agent_id": "ab7e4d2",
        "pending_steps": [],
        "next_action": "review it",
    },
    "evidence_report": {
        "patterns_checked": [],
        "files_checked": [],
        "commands_run": [],
        "key_outputs": ["it works"],
        "verbatim_outputs": [],
        "cross_layer_impacts": [],
        "open_gaps": [],
        "verification": {"result": "pass"},
    },
    "consolidation_report": None,
    "approval_request": None,
}

ABSENT = object()
"""Marks a field that :func:`with_changes` removes."""


def with_changes(value: JSONObject, changes: JSONObject) -> JSONObject:
    """Return a copy of a value in which the specified dotted paths are set or removed."""
    copied_document = copy.deepcopy(value)
    for path, new in changes.items():
        *owners, last = path.split(".")
        node: Any = copied_document
        for name in owners:
            node = node[int(name)] if isinstance(node, list) else node[name]
        if new is ABSENT:
            del node[last]
        else:
            node[int(last) if isinstance(node, list) else last] = new
    return copied_document


def envelope(**changes: Any) -> JSONObject:
    """Return an envelope with changed fields; the keyword ``summary__evidence`` stands for the path
    ``summary.evidence``.
    """
    return with_changes(ENVELOPE, {path.replace("__", "."): new for path, new in changes.items()})


def contract(**changes: Any) -> JSONObject:
    """Return a contract with changed fields; paths are written as for :func:`envelope`."""
    return with_changes(CONTRACT, {path.replace("__", "."): new for path, new in changes.items()})


def block(value: Any) -> str:
    """Return a reply that ends with a contract block."""
    body = value if isinstance(value, str) else json.dumps(value)
    return f"I did it.\n\n```agent_contract_handoff\n{body}\n```\n"


def paths_of(value: Any, path: str = "") -> list[str]:
    """Return the path of every value inside a value, including objects and lists."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, child in children:
        here = f"{path}.{key}" if path else str(key)
        found += [here, *paths_of(child, here)]
    return found


HOSTILE = [
    None, True, False, 0, -1, 1.5, 10**400, float("inf"), "", " ", "x", "\ud800", "\x00", "<script>", "../..",
    [], [None], [[]], ["x", 3, {}], {}, {"a": None}, {"status": {}}, [{"name": ["x"]}], {"": [{"": ""}]},
]  # fmt: skip

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)

NASTY_UNITS = [
    "[", "{", '{"a":', '{"a":[', "}", "]", '"', "\\", '\\"', "```", "```json", "```json\n", "``` ", "`",
    "```agent_contract_handoff", "```agent_contract_handoff\n", "```agent_contract_handoff ", "\n", "\r\n", " \n",
    "```agent_contract_handoff\n{", "9", "-", "\u2028", "\x1c", "\ud800", "{}", '{"a":1}', "```\n{}\n```\n",
]  # fmt: skip
"""Texts that are repeated to create replies of one megabyte that are difficult to parse."""

ASK = {
    "operation": "delete the build folder",
    "exact_content": "rm -rf build",
    "scope": "build/",
    "risk_level": "high",
    "rollback": "make build",
    "verification": "build is gone",
    "approval_id": "P-" + "0123456789abcdef" * 2,
}


def report(status, **more):
    """Return a reply whose contract has the specified plan status."""
    return block(contract(agent_status__plan_status=status, **more))


def start(tmp_path, protocol, replies, **sockets):
    """Start a cast of Work, Check (in the protocol under test) and Done; Check sends work back, and Fix is a detour."""
    document = h.config(
        {
            "Work": h.at("M", ("always", "Check")),
            "Check": h.at(
                "M",
                ("satisfied", "Done"),
                ("not_satisfied", "Work", 2),
                parse="json",
                handoff=protocol,
            ),
            "Fix": h.at("M", ("always", "Done")),
            "Done": h.at("M"),
            **sockets,
        },
        {"M": h.agent("Do {{request}}")},
    )
    return h.start(tmp_path, document, {"Check": {"Check": replies}, "M": lambda: "fine"})


def assert_same_when_opened(cast):
    """Open the cast again from its journal and assert that nothing has changed."""
    other = open_cast(cast.run_dir)
    assert other.now.engine == cast.now.engine
    assert [step.socket for step in other.steps] == [step.socket for step in cast.steps]
    assert other.now.differences == ()
    assert other.now.messages == []
    return other


def cast_asking_for_approval(tmp_path, *then):
    """Return a cast whose check asks for approval of ASK and then answers ``then``, and the list of its turns."""
    seen = []
    replies = iter([report("APPROVAL_REQUEST", approval_request=ASK), *then])

    def agent(turn):
        seen.append(turn)
        return next(replies)

    cast = start(tmp_path, "agent-contract", [])
    cast.agents.set("Check", agent)
    cast.run()
    return cast, seen
