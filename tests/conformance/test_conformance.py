"""Test the comparison of vectors and the command that runs them; the tests of each package run its vectors."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.run import main, run_vector
from vectors import read


def of(name, identity):
    return next(copy.deepcopy(v) for v in read(name) if v["id"] == identity)


def write(folder, *vectors, name="some.jsonl"):
    path = folder / name
    path.write_text("\n".join(v if isinstance(v, str) else json.dumps(v) for v in vectors), encoding="utf-8")
    return str(path)


CAST, HANDOFF = of("cast.jsonl", "loop-retry"), of("handoff.jsonl", "handoff-guarded-missing")
VALIDATE = read("validate.jsonl")[0]


@pytest.mark.parametrize(
    "vector, field, value",
    [
        (CAST, "outcome", "failed"),
        (CAST, "failure", "budget"),
        (CAST, "route", []),
        (CAST, "data", {}),
        (CAST, "cursors", {"workItemIndex": 9}),
        (CAST, "visits", {}),
        (CAST, "edgeTraversals", {}),
        (CAST, "instructions", [["Socket-1", "x"]]),
        (CAST, "followUp", [["Socket-1", None, ["x"]]]),
        (CAST, "unheard of", 1),
        (HANDOFF, "accepted", True),
        (HANDOFF, "error", "not_json"),
        (HANDOFF, "paths", ["$.other"]),
        (HANDOFF, "parsed", {"other": 1}),
        (VALIDATE, "ok", not VALIDATE["expect"]["ok"]),
        (VALIDATE, "problems", [["no-such-code", "nowhere"]]),
    ],
)
def test_failing_conformance_vector_shows_its_difference(vector, field, value):
    broken = {**vector, "expect": {**vector["expect"], field: value}}
    wrong = run_vector(broken)
    assert [difference.split(":")[0] for difference in wrong] == [field]


PROTOCOL_VECTORS = {v["kind"]: v for name in ("agent-contract.jsonl", "envelope.jsonl") for v in read(name)}


@pytest.mark.parametrize(
    "kind, field", [(kind, field) for kind, v in PROTOCOL_VECTORS.items() for field in v["expect"]]
)
@pytest.mark.parametrize("other", ["something else", ["CODE"], {"plan_status": "odd"}, {"satisfied": 1}])
def test_every_field_that_a_protocol_vector_expects_is_compared(kind, field, other):
    vector = PROTOCOL_VECTORS[kind]
    wrong = run_vector({**vector, "expect": {**vector["expect"], field: other}})
    assert [difference.split(":")[0] for difference in wrong] == [field]


def test_issue_codes_are_compared_as_multisets():
    vector = of("agent-contract.jsonl", "ac-068-open-gaps-twice")
    vector["expect"]["errors"] = ["OPEN_GAPS"]
    assert run_vector(vector)
    several = of("envelope.jsonl", "en-276-many-errors")
    several["expect"]["errors"].reverse()
    assert run_vector(several) == []


def test_expected_number_1_does_not_match_the_boolean_true():
    vector = of("handoff.jsonl", "handoff-guarded-true")
    vector["expect"]["parsed"]["satisfied"] = 1
    assert run_vector(vector)


def test_expected_refusal_matches_only_a_refused_config():
    refused = next(v for v in read("cast.jsonl") if v["expect"]["outcome"] == "refused")
    assert run_vector({**refused, "expect": {"outcome": "complete"}})
    assert run_vector({**CAST, "expect": {"outcome": "refused"}})


def test_conformance_command_prints_a_total_for_each_kind(tmp_path, capsys):
    path = write(tmp_path, CAST, "", HANDOFF, of("handoff.jsonl", "handoff-textmode"), VALIDATE)
    assert main([path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "cast: 1 passed, 0 failed",
        "handoff: 2 passed, 0 failed",
        "validate: 1 passed, 0 failed",
    ]


def test_failing_vector_does_not_stop_the_remaining_vectors(tmp_path, capsys):
    wrong = {**HANDOFF, "expect": {"accepted": True}}
    first = write(tmp_path, wrong, {**CAST, "kind": "dance"}, name="a.jsonl")
    second = write(tmp_path, HANDOFF, name="b.jsonl")
    assert main([first, second]) == 1
    out = capsys.readouterr().out
    assert "FAILED handoff handoff-guarded-missing: accepted: expected True" in out
    assert "FAILED dance loop-retry: kind: 'dance'" in out
    assert "handoff: 1 passed, 1 failed" in out
    assert "dance: 0 passed, 1 failed" in out


def test_vector_that_crashes_the_runner_counts_as_one_failure(tmp_path, capsys):
    assert main([write(tmp_path, {**CAST, "replies": 3}, HANDOFF)]) == 1
    assert "handoff: 1 passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        "3",
        "{}",
        '{"kind": "cast", "id": "x"}',
        '{"kind": "cast", "id": "x", "expect": {}}',
        '{"kind": "handoff", "id": "x", "expect": {}, "text": ""}',
        "[" * 100_000,
    ],
)
def test_unusable_input_is_reported_with_its_position(tmp_path, capsys, line):
    assert main([write(tmp_path, HANDOFF, line)]) == 2
    error = capsys.readouterr().err
    assert "some.jsonl:2:" in error


def test_unreadable_and_missing_files_are_errors(tmp_path, capsys):
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert main([str(tmp_path)]) == 2
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    assert main([str(binary)]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "usage" in capsys.readouterr().out


def test_runner_works_in_a_terminal_without_unicode(tmp_path):
    vector = {**HANDOFF, "id": "café…", "expect": {"accepted": True}}
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run.py")), write(tmp_path, vector)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (1, "")
    assert "caf\\xe9" in result.stdout
