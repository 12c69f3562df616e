"""Test that the ladder of small models counts correctly, with a scripted server instead of the models."""

from __future__ import annotations

import json

import ladder
from local_model import Served
from model_server import refuses, says, serving

PLAN = json.dumps({"workItems": [{"title": "Bake", "context": "At 220 degrees."}], "context": "x"})
COPIED = PLAN.replace("Bake", "<what to do>")
LONG = "This model's maximum context length is 4096 tokens."
REQUESTS = ("bread", "tides", "tyres")


def test_model_benchmark_counts_accepted_answers_repairs_copied_forms_and_overflows(tmp_path):
    """Of three requests, one is answered immediately, one after a copy of the form, and one does not fit into the
    context.
    """
    answers = [says(PLAN), says(COPIED), says(PLAN), refuses(400, LONG, error="context_length_exceeded")]
    with serving(*answers) as server:
        found = next(ladder.cast_requests(Served(server.url, "tiny"), tmp_path, REQUESTS))
    assert found == ladder.ProtocolResult("sparse", "md", 3, 2, 1, 2, 1, 1, 1, 0, 30, 15)
    header, rule, row = ladder.table([found])
    assert header.count("|") == rule.count("|") == row.count("|") == len(found) + 1
    assert row.startswith("| sparse | md | 3 | 2 | 1 | 2 |")


def test_model_benchmark_measures_each_protocol_with_each_prompt_format(tmp_path):
    with serving(*[says("x")] * 200) as server:
        results = list(ladder.cast_requests(Served(server.url, "tiny"), tmp_path, ("bread",)))
        texts = [body["messages"][0]["content"] for body in server.asked]
    assert [(result.protocol, result.form) for result in results] == [
        (protocol, form) for protocol in ladder.PROTOCOLS for form in ladder.FORMS
    ]
    assert all((one.fitting, one.last) == (0, 0) and one.repairs for one in results)
    assert any(text.startswith("## Request") for text in texts)
    assert any(text.startswith("Request:") for text in texts)
