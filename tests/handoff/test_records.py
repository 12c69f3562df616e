"""Store the parts of the form and the answers that each protocol creates."""

from __future__ import annotations

import copy
import itertools
import json

import pytest

from builders import asks, edge, requirements_for
from materia_nb.errors import MateriaError
from materia_nb.handoff import TurnFacts, protocol
from materia_nb.handoff.jsontext import list_line
from materia_nb.handoff.runtime_rules import envelope_files
from materia_nb.handoff.sparse import MAX_EXPORT_BYTES
from protocol_helpers import ASK, CONTRACT, ENVELOPE
from records import check_record

SPARSE = {
    "satisfied": False,
    "context": "found it",
    "workItems": [{"title": "slow", "context": "cache"}, {"title": "bad", "context": "bad"}],
    "event": [{"type": "seen", "severity": "info", "message": "so", "source": "me", "payload": {"a": 1}}],
    "scopeTransition": {
        "kind": "replace",
        "scope": {"id": "side", "cwd": "x", "exports": {"a": {"producer": "p", "value": 1}}},
    },
}
FULL = copy.deepcopy(CONTRACT)
FULL["evidence_report"] |= {"commands_run": ["make"], "files_checked": ["a.py"], "open_gaps": ["none yet"]}
FULL["approval_request"] = ASK
SAMPLES = {"sparse": SPARSE, "envelope": ENVELOPE, "agent-contract": FULL}
SOCKETS = (
    asks(),
    asks(edge("end", "satisfied"), edge("Socket-2", "not_satisfied")),
    asks(edge("end"), assign={"x": "$.plan.name", "y": "$.summary"}),
    {"parse": "text"},
    asks(edge("Socket-2"), materia="G"),
)
FACTS = (
    TurnFacts(),
    TurnFacts(meta={"step_id": "s1", "agent_key": "me"}, agent_id="ab7e4d2", refused=1, rounds=2),
    TurnFacts(refused=2, rounds=3, sockets=frozenset({"Socket-1", "Socket-2"}), names={"Plan": "Socket-1"}),
    TurnFacts(assignment={"write_permissions": {"writable_sections": ["notes"]}}, changed_files=("a.py",)),
)


def needs(name, socket):
    generator = socket.get("materia") == "G"
    return requirements_for({**socket, "handoff": name}, generator=generator)


def test_form_of_each_protocol_matches_the_snapshot():
    def lines():
        for name, socket, facts in itertools.product(SAMPLES, SOCKETS, FACTS):
            one, given = protocol(name), needs(name, socket)
            yield from (f"{name} {line}" for line in one.ask(given).splitlines())
            form = getattr(one, "form", None)
            for short in (False, True) if form else ():
                yield from (f"{name} {short} {line}" for line in form(given, facts, short=short).splitlines())

    check_record("asked", lines())


@pytest.mark.parametrize(
    "entries, line",
    [
        ([], []),
        ([" "], []),
        (["a", " ", "b  c"], ["T: a; b c"]),
        (["x"] * 20, ["T: " + "; ".join(["x"] * 20)]),
        (["x"] * 21, ["T: " + "; ".join(["x"] * 20) + " and 1 more"]),
    ],
)
def test_handoff_line_lists_at_most_twenty_entries_and_counts_the_rest(entries, line):
    assert list(list_line("T", entries)) == line


def test_each_part_of_a_file_name_has_at_most_two_hundred_bytes():
    assert envelope_files("", "f", "s", "ü" * 100).final == f"f/handoffs/s-{'ü' * 100}.json"
    with pytest.raises(MateriaError, match="cannot be part of a file name"):
        envelope_files("", "f", "s", "ü" * 100 + "x")


def test_total_size_of_exports_is_limited_to_256_kib():
    around = len('{"producer":"p","value":""}')
    most = [{"producer": "p", "value": "x" * (MAX_EXPORT_BYTES - around)}] * 4
    given = [
        most,
        [*most[1:], {**most[0], "value": most[0]["value"][:-around]}, {"producer": "p", "value": "x"}],
    ]
    for exports, fits in zip(given, (True, False), strict=True):
        scope = {"id": "a", "cwd": "b", "exports": {str(n): one for n, one in enumerate(exports)}}
        text = json.dumps({"scopeTransition": {"kind": "replace", "scope": scope}})
        utility = requirements_for({}, materia={"type": "utility", "command": ["true"], "parse": "json"})
        assert (protocol("sparse").read(text, utility).issues == ()) is fits
