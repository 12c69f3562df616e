"""Test that every failed model request has a failure kind and a hint, and that no message contains a key."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.agents import ModelAgent
from materia_nb.agents.interface import TextEvent, Usage
from materia_nb.errors import redact
from model_helpers import EventRecorder, agent, failed, turn
from model_server import (
    LONG_S,
    Slow,
    calls,
    completion,
    declined_answer,
    interrupted_answer,
    refuses,
    says,
    serving,
    unstreamed_answer,
)
from provider_stub import StubAnswer, anthropic_stream

CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


FAILURES = {
    "rate_limited": (
        refuses(429, "Slow down", retry_after_ms="1"),
        "rejected the request because of a rate limit",
        "wait",
    ),
    "quota": (refuses(429, "Pay first", error="insufficient_quota"), "no quota or credit", "account"),
    "server": (refuses(500, "Oops"), "reported a server error", "`retry --turn` later"),
    "overloaded": (refuses(503, "Too busy"), "reported a server error", "another model"),
    "bad_key": (refuses(401, "Incorrect API key"), "rejected the key", "environment"),
    "forbidden": (refuses(403, "region not allowed"), "does not allow you to use", "region"),
    "forbidden_key": (refuses(403, "Your API key has no access"), "rejected the key", "environment"),
    "bad_model": (refuses(404, "No such model", error="model_not_found"), "was not found", "name"),
    "context": (
        refuses(400, "This model's maximum context length is 8 tokens", error="context_length_exceeded"),
        "too long for",
        "a larger context",
    ),
    "policy": (
        refuses(400, "Against the content policy", error="content_policy_violation"),
        "refused to",
        "prompt",
    ),
    "filtered": (says("half", finish="content_filter"), "refused to answer", "prompt"),
    "refusal": (declined_answer("I cannot help with that"), "I cannot help with that", "prompt"),
    "bad_request": (refuses(400, "temperature is too high"), "temperature is too high", "settings"),
    "not_json": (
        lambda exchange: exchange.status(200, b"<html>hello</html>"),
        "could not be read",
        "another",
    ),
    "empty": (says("  "), "could not be read: it is empty", "retry --turn"),
    "broken_event": (
        lambda exchange: (exchange.begin(), exchange.send(b"data: {broken\n\n"), exchange.end()),
        "could not be read",
        "another model",
    ),
    "cut_off": (interrupted_answer("so f"), "was lost", "check that the provider is running"),
    "cut_off_quietly": (interrupted_answer("so f", framed=False), "was lost", "check that the provider is running"),
    "error_in_a_200_reply": (
        unstreamed_answer({"error": {"message": "Rate limit exceeded: free tier", "code": 429}}),
        "rejected the request because of a rate limit (2 attempts): Rate limit exceeded: free tier",
        "wait",
    ),
    "error_named_in_a_200_reply": (
        unstreamed_answer({"error": {"message": "Not enough credits", "code": "insufficient_quota"}}),
        "no quota or credit",
        "account",
    ),
    "error_without_a_code": (
        unstreamed_answer({"error": {"message": "It fell over"}}),
        "reported a server error (2 attempts): It fell over",
        "`retry --turn` later",
    ),
    "error_text": (
        unstreamed_answer({"error": "The model is not loaded"}),
        "The model is not loaded",
        "`retry --turn` later",
    ),
    "key_rejected_in_a_200_reply": (
        unstreamed_answer({"error": {"message": "User not found.", "code": 401}}),
        "rejected the key",
        "environment",
    ),
    "other_protocol": (
        unstreamed_answer({"type": "message", "content": [{"type": "text", "text": "hello"}]}),
        "a complete reply instead of a stream, and the reply is not a chat completion",
        "settings",
    ),
    "error_in_stream": (
        lambda exchange: (
            exchange.begin(),
            exchange.event({"content": "so f"}),
            exchange.send(b'data: {"error": {"message": "It fell over", "type": "server_error"}}\n\n'),
        ),
        "It fell over",
        "`retry --turn` later",
    ),
}
KINDS = {
    "quota": "rate_limited",
    "server": "transport",
    "overloaded": "transport",
    "forbidden": "denied",
    "forbidden_key": "bad_key",
    "context": "context_too_long",
    "policy": "refused",
    "filtered": "refused",
    "refusal": "refused",
    "not_json": "malformed",
    "empty": "malformed",
    "broken_event": "malformed",
    "cut_off": "transport",
    "cut_off_quietly": "transport",
    "error_in_stream": "transport",
    "error_in_a_200_reply": "rate_limited",
    "error_named_in_a_200_reply": "rate_limited",
    "error_without_a_code": "transport",
    "error_text": "transport",
    "key_rejected_in_a_200_reply": "bad_key",
    "other_protocol": "bad_request",
}
RETRIED_FAILURES = {
    "error_in_a_200_reply",
    "error_without_a_code",
    "error_text",
    "rate_limited",
    "server",
    "overloaded",
    "cut_off",
    "cut_off_quietly",
    "error_in_stream",
}


@pytest.mark.parametrize("way", FAILURES)
def test_each_model_failure_has_a_kind_a_message_and_a_hint(way):
    answer, what, hint = FAILURES[way]
    recorder = EventRecorder()
    with serving(*[answer] * 4) as server:
        error = failed(agent(server, attempts=2), turn(recorder))
    assert error.kind == KINDS.get(way, way)
    assert what in error.what
    assert hint in error.hint
    assert "\n" not in error.what
    tries = 2 if way in RETRIED_FAILURES else 1
    assert len(server.asked) == tries
    assert len(recorder.notes) == tries - 1
    assert ("(2 attempts)" in error.what) == (tries == 2)


def test_unstreamed_reply_is_accepted(tmp_path):
    recorder = EventRecorder()
    call = {"id": "call-1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    asks = unstreamed_answer(completion({"content": "I look.", "tool_calls": [call]}, "tool_calls"))
    with serving(asks, unstreamed_answer(completion({"content": "<think>so</think>Hello."}))) as server:
        reply = agent(server).answer(turn(recorder, tools="readOnly", project=tmp_path))
        assert server.messages()[-1]["content"] == "(empty)"
    assert (reply.text, reply.thinking, reply.meta["finish"]) == ("Hello.", "so", "stop")
    assert reply.usage == Usage(10, 5, None)
    assert recorder.spent == [Usage(10, 5, None)]
    assert [said.text for said in recorder.of(TextEvent)] == ["I look.", "<think>so</think>Hello."]


def test_truncated_unstreamed_reply_is_marked_as_truncated():
    recorder = EventRecorder()
    with serving(unstreamed_answer(completion({"content": "Hel"}, "length"))) as server:
        reply = agent(server).answer(turn(recorder))
    assert (reply.text, reply.cut) == ("Hel", "its maximum number of tokens")


@pytest.mark.parametrize(
    "body, kind, what",
    [
        (
            {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}},
            "rate_limited",
            "Slow down",
        ),
        ({"type": "message", "content": []}, "bad_request", "the reply is not a chat completion"),
    ],
)
def test_reply_in_another_protocol_raises_one_clear_error(monkeypatch, body, kind, what):
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    with serving(unstreamed_answer(body)) as server:
        error = failed(ModelAgent("anthropic:claude-x", base_url=server.url, attempts=1), turn())
    assert (error.kind, what in error.what) == (kind, True)


@pytest.mark.parametrize(
    "name, value, kind, what",
    [
        ("OPENAI_API_KEY", f"{CANARY}\nmore", "bad_key", "The key in OPENAI_API_KEY begins or ends with a space"),
        ("OPENAI_API_KEY", f"{CANARY} ", "bad_key", "The key in OPENAI_API_KEY begins or ends with a space"),
        ("OPENAI_API_KEY", f"{CANARY}\u0430", "bad_key", "or a character that is not ASCII"),
        (
            "SSL_CERT_FILE",
            "/nowhere.pem",
            "transport",
            "certificates for openai-chat cannot be read: No such file",
        ),
        ("SSL_CERT_FILE", __file__, "transport", "certificates for openai-chat cannot be read"),
        ("ALL_PROXY", "socks5://127.0.0.1:9", "not_installed", "proxy that is set in the environment"),
    ],
)
def test_error_names_the_invalid_environment_variable(monkeypatch, name, value, kind, what):
    monkeypatch.setenv(name, value)
    with serving(says("hi")) as server:
        error = failed(agent(server), turn())
        assert server.asked == []
    assert (error.kind, what in error.what) == (kind, True)
    assert CANARY not in str(error)


def test_unreachable_server_raises_a_clear_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recorder = EventRecorder()
    model_agent = ModelAgent("openai:x", base_url=f"http://127.0.0.1:{port}/v1", attempts=2, first_pause_s=0.001)
    error = failed(model_agent, turn(recorder))
    assert error.kind == "transport"
    assert "could not be reached" in error.what
    assert recorder.notes[0].startswith("no connection to openai:x; trying again in")


def test_model_that_answers_too_slowly_times_out():
    slow = Slow()
    with serving(slow) as server:
        error = failed(agent(server, timeout_s=0.3), turn())
        slow.go_on.set()
    assert error.kind == "agent_timeout"
    assert "timeout_s" in error.hint
    assert len(server.asked) == 1


def test_tokens_of_a_request_that_timed_out_are_unknown():
    release, heard = threading.Event(), EventRecorder()
    with serving(lambda _: release.wait(LONG_S)) as server:
        error = failed(agent(server, timeout_s=0.3, attempts=1), turn(heard))
        release.set()
    assert error.kind == "agent_timeout"
    assert heard.spent == [Usage(None, None)]


def test_anthropic_stream_without_an_end_event_is_retried_as_incomplete(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-stub")
    heard, events = EventRecorder(), anthropic_stream("claude-x", StubAnswer("Half an ans"))

    def answer(exchange, count):
        exchange.begin(framed=False)
        for name, event in events[:count]:
            exchange.send(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())
        exchange.cut()

    with serving(lambda exchange: answer(exchange, 3), lambda exchange: answer(exchange, len(events))) as server:
        url = server.url.removesuffix("/v1")
        model = ModelAgent("anthropic:claude-x", base_url=url, attempts=2, first_pause_s=0.001)
        reply = model.answer(turn(heard))
    assert (reply.text, reply.usage.output) == ("Half an ans", 200)
    assert heard.spent == [Usage(None, None)]
    assert heard.notes[0].startswith("the answer of anthropic:claude-x ended before it was complete; trying again")


# -- trying again ---------------------------------------------------------------------


def test_each_retry_of_a_request_is_reported():
    recorder = EventRecorder()
    with serving(
        refuses(429, "Slow down", retry_after_ms="2"), refuses(500, "Oops"), interrupted_answer("lost"), says("there")
    ) as server:
        reply = agent(server).answer(turn(recorder))
    assert (reply.text, reply.meta["retries"]) == ("there", 3)
    assert [note.partition(" in ")[0] for note in recorder.notes] == [
        "429 from openai:tiny; trying again",
        "500 from openai:tiny; trying again",
        "no connection to openai:tiny; trying again",
    ]
    assert recorder.notes[0].endswith("in 0.002 s (2 of 4)"), "as the provider asked"
    assert [(one.text, one.fresh) for one in recorder.of(TextEvent)] == [("lost", True), ("there", True)]
    assert len({json.dumps(asked) for asked in server.asked}) == 1, "the same is asked again"


def test_provider_client_does_not_retry_by_itself():
    with serving(refuses(500, "Oops"), says("there")) as server:
        assert failed(agent(server, attempts=1), turn()).kind == "transport"
    assert len(server.asked) == 1


def test_retry_after_above_the_limit_fails_the_turn_without_a_retry():
    with serving(refuses(429, "Come back tomorrow", retry_after="86400")) as server:
        error = failed(agent(server), turn())
    assert error.kind == "rate_limited"
    assert len(server.asked) == 1


@pytest.mark.parametrize("has_reason, tries", [("true", 2), ("false", 1)])
def test_provider_can_request_or_forbid_a_retry_with_a_header(has_reason, tries):
    with serving(refuses(500, "Oops", x_should_retry=has_reason), says("there")) as server:
        model_agent = agent(server, attempts=2)
        if tries == 2:
            assert model_agent.answer(turn()).text == "there"
        else:
            failed(model_agent, turn())
    assert len(server.asked) == tries


def test_failed_turn_reports_its_usage(tmp_path):
    recorder = EventRecorder()
    with serving(calls(("ls", {})), refuses(400, "No")) as server:
        failed(agent(server), turn(recorder, tools="readOnly", project=tmp_path))
    assert recorder.spent == [Usage(10, 5, None)]


def test_failed_turn_without_reported_usage_sends_no_usage_event():
    recorder = EventRecorder()
    with serving(refuses(400, "No")) as server:
        failed(agent(server), turn(recorder))
    assert recorder == []


# -- keys -----------------------------------------------------------------------------


def test_keys_are_redacted_in_provider_messages(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with serving(refuses(401, f"Incorrect API key provided: {CANARY}. See your account.")) as server:
        error = failed(agent(server), turn())
    assert "Incorrect API key provided: ***. See" in error.what
    assert CANARY not in str(error) + repr(error)
    assert error.__cause__ is None
    assert server.headers[0]["authorization"] == f"Bearer {CANARY}"


def test_long_message_is_shortened(monkeypatch):
    with serving(refuses(400, "no " * 5000)) as server:
        error = failed(agent(server), turn())
    assert len(error.what) < 500


def test_short_values_are_not_redacted(monkeypatch):
    monkeypatch.setenv("TOY_KEY", "word")
    monkeypatch.setenv("TOY_TOKEN", "word-and-more")
    assert redact("a word and word-and-more") == "a word and ***"


def test_no_file_written_by_a_cast_contains_a_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OTHER_SECRET", CANARY + "-other")
    echo = f"You sent {CANARY} and {CANARY}-other"
    with serving(refuses(500, echo), refuses(401, echo), says("one"), refuses(400, echo)) as server:
        model_agent = agent(server)
        cast = h.start(tmp_path, h.chain_config(2), model_agent)
        assert cast.run() == "failed"
        cast.retry()
        assert cast.run() == "failed"
    assert cast.failure.kind == "bad_request"
    files = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert any(path.name == "events.jsonl" and b"bad_key" in path.read_bytes() for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert CANARY not in repr(model_agent) + repr(vars(model_agent)) + repr(cast.failure)


def test_environment_shown_by_a_tool_contains_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    script = (calls(("bash", {"command": "printenv OPENAI_API_KEY"})), says("done"))
    with serving(*script) as server:
        config = h.config({"Socket-1": h.at("A")}, {"A": h.agent(tools="coding")})
        cast = h.start(tmp_path, config, agent(server))
        cast.approvals.allow("bash")
        assert cast.run() == "complete"
        assert server.messages()[-1]["content"].endswith("***")
    (call,) = cast.steps[0].calls
    assert call.ok
    files = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


def test_model_without_tool_support_is_called_without_tools(tmp_path):
    recorder = EventRecorder()
    no_tools = refuses(400, "'tools' is not supported by this model")
    with serving(no_tools, says("fine")) as server:
        error = failed(agent(server), turn(tools="readOnly"))
        assert error.kind == "bad_request"
        assert "--no-tools" in error.hint
        reply = agent(server, tools=False).answer(turn(recorder, tools="readOnly"))
        assert "tools" not in server.asked[-1]
    assert reply.text == "fine"
    assert recorder.notes == ["openai:tiny is called without the tools of Build"]
