"""Test model agents: replies, streaming, tools, approvals, structured output and interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import pytest

import cast_helpers as h
from materia_nb.agents import ModelAgent, agent_from
from materia_nb.agents import model_requests as requests
from materia_nb.agents.interface import (
    AgentError,
    CallEvent,
    Message,
    NeedsApproval,
    TextEvent,
    ToolCall,
    Usage,
    UsageEvent,
)
from materia_nb.agents.model_agent import ready_models
from materia_nb.agents.model_turn import INVALID_ARGUMENTS, MAX_ARGUMENTS_CHARS, MAX_CALLS, ToolCalls
from materia_nb.agents.tools import choose_tools
from materia_nb.cast import open_cast
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.platform import Stop
from model_helpers import EventRecorder, agent, failed, turn
from model_server import LONG_S, Slow, calls, refuses, says, serving

SCHEMA = {
    "type": "object",
    "properties": {"satisfied": {"type": "boolean"}, "context": {"type": "string"}},
    "required": ["satisfied", "context"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def call(number: int, tool: str, result: str | None = None, **fields) -> ToolCall:
    return ToolCall(id=f"c{number}", tool=tool, result=result, **fields)


# -- replies --------------------------------------------------------------------------


def test_reply_has_text_token_counts_and_origin():
    with serving(says("Hel", "lo", tokens=(11, 7))) as server:
        reply = agent(server).answer(turn())
    assert reply.text == "Hello"
    assert reply.usage == Usage(11, 7, None)  # nobody knows what a tiny model costs
    seconds = reply.meta["seconds"]
    assert 0 < seconds < LONG_S
    assert reply.meta == {
        "model": "tiny-2024-08-06",
        "provider": "openai",
        "finish": "stop",
        "seconds": seconds,
        "rounds": 0,
        "retries": 0,
    }
    assert server.asked[0]["messages"] == [{"role": "user", "content": "Build it"}]
    assert "response_format" not in server.asked[0]
    assert "tools" not in server.asked[0]


def test_streamed_text_is_reported_on_the_calling_thread():
    events, threads = EventRecorder(), set()

    def report(thing):
        events.append(thing)
        threads.add(threading.get_ident())

    with serving(says("a", "b", "c")) as server:
        agent(server).answer(turn(report=report))
    assert events == [TextEvent("a", fresh=True), TextEvent("b"), TextEvent("c")]
    assert threads == {threading.get_ident()}


def test_text_is_reported_before_the_answer_is_complete():
    slow = Slow(("first",))
    told = threading.Event()
    with serving(slow) as server:

        def report(_):
            told.set()
            slow.go_on.set()  # the server ends the answer only after this

        assert agent(server).answer(turn(report=report)).text == "first"
    assert told.is_set()


def test_reply_of_a_known_model_has_a_price():
    with serving(says("x", tokens=(1_000_000, 0))) as server:
        reply = ModelAgent("openai:gpt-4o", base_url=server.url).answer(turn())
    assert reply.usage == Usage(1_000_000, 0, 2.5)


def test_missing_token_counts_are_unknown():
    with serving(says("x", tokens=None)) as server:
        assert agent(server).answer(turn()).usage is None


def test_settings_and_thinking_level_are_sent_to_the_server():
    with serving(says("x"), says("x")) as server:
        model_agent = ModelAgent("openai:gpt-5", base_url=server.url, settings={"max_tokens": 9, "seed": 3})
        model_agent.answer(turn(thinking="low"))
        model_agent.answer(turn(thinking="off"))
    assert server.asked[0]["max_completion_tokens"] == 9
    assert server.asked[0]["seed"] == 3
    assert server.asked[0]["reasoning_effort"] == "low"
    assert server.asked[1]["reasoning_effort"] in ("none", "minimal")


def test_unknown_thinking_level_is_reported_and_ignored():
    events = EventRecorder()
    with serving(says("x")) as server:
        agent(server).answer(turn(events, thinking="hihg"))
    assert events.notes == ["The thinking level 'hihg' does not exist; did you mean 'high'?"]
    assert "reasoning_effort" not in server.asked[0]


def test_answer_that_reaches_the_token_limit_is_reported_as_truncated():
    events = EventRecorder()
    with serving(says("half an ans", finish="length")) as server:
        reply = agent(server).answer(turn(events))
    assert (reply.text, reply.meta["finish"]) == ("half an ans", "length")
    assert "cut off at its maximum number of tokens" in events.notes[0]


def test_thinking_is_disabled_when_a_turn_resumes_after_tool_calls(monkeypatch, tmp_path):
    """Anthropic refuses tool calls of an earlier turn if their thinking is missing while thinking is enabled."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-of-your-business")
    fields = {"tools": "readOnly", "thinking": "high", "project": tmp_path}
    with serving(refuses(400, "so far"), refuses(400, "so far")) as server:
        model_agent = ModelAgent("anthropic:claude-sonnet-5-5", base_url=server.url.removesuffix("/v1"))
        failed(model_agent, turn(**fields))
        failed(model_agent, turn(calls=(call(1, "ls", "a"),), **fields))
    assert server.asked[0]["thinking"]["type"] == "adaptive"
    assert server.asked[1].get("thinking", {}).get("type") != "adaptive"
    assert [one["type"] for one in server.asked[1]["messages"][1]["content"]] == ["tool_use"]


# -- which model ----------------------------------------------------------------------


def test_agent_falls_back_to_the_model_of_its_materia():
    with serving(says("x"), says("x")) as server:
        agent(server).answer(turn(model="openai:other"))
        ModelAgent(base_url=server.url).answer(turn(model="openai:other"))
    assert [asked["model"] for asked in server.asked] == ["tiny", "other"]


def test_missing_model_error_explains_where_to_set_a_model():
    error = failed(ModelAgent(), turn())
    assert (error.kind, error.where) == ("no_model", "Socket-1")
    assert "provider:model" in error.hint


@pytest.mark.parametrize(
    "name, what, hint",
    [
        ("opnai:gpt-5", "provider 'opnai' does not exist", "did you mean 'openai'?"),
        ("openai:", "is not the name of a model", "provider:model"),
        (":x", "is not the name of a model", "provider:model"),
        ("gpt-5", "is not the name of a model", "provider:model"),
    ],
)
def test_invalid_model_name_is_refused_immediately(name, what, hint):
    with pytest.raises(AgentError, match=what) as caught:
        ModelAgent(name)
    assert caught.value.kind == "bad_model"
    assert hint in caught.value.hint


def test_base_url_must_be_a_url():
    with pytest.raises(AgentError, match="base URL"):
        ModelAgent("openai:x", base_url="localhost:8080")


@pytest.mark.parametrize("name, variable", [("openai:gpt-5", "OPENAI_API_KEY"), ("anthropic:c", "ANTHROPIC_API_KEY")])
def test_missing_key_error_names_the_variable(monkeypatch, name, variable):
    monkeypatch.delenv(variable, raising=False)
    error = failed(ModelAgent(name), turn())
    assert error.kind == "no_key"
    assert variable in error.what
    assert variable in error.hint


def test_key_is_read_from_the_named_variable(monkeypatch):
    with serving(says("x"), says("x"), says("x")) as server:
        agent(server).answer(turn())
        monkeypatch.setenv("OPENAI_API_KEY", "own-key")
        agent(server).answer(turn())
        monkeypatch.setenv("MY_KEY", "my-key")
        agent(server, key_env="MY_KEY").answer(turn())
        monkeypatch.delenv("MY_KEY")
        error = failed(agent(server, key_env="MY_KEY"), turn())
    sent = [headers["authorization"].removeprefix("Bearer ") for headers in server.headers]
    assert sent == ["none", "own-key", "my-key"]
    assert (error.kind, "MY_KEY" in error.what) == ("no_key", True)


def test_base_url_is_read_from_the_environment(monkeypatch):
    with serving(says("from there")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert ModelAgent("openai:tiny").answer(turn()).text == "from there"


def test_secrets_in_a_url_are_hidden():
    model_agent = ModelAgent("openai:x", base_url="http://me:pass@127.0.0.1:9/v1?token=abc")
    assert repr(model_agent) == "ModelAgent('openai:x')"


def test_model_names_become_model_agents():
    from pydantic_ai.models.test import TestModel

    assert agent_from("openai:x").name == "openai:x"
    assert agent_from("model").model is None
    assert agent_from(TestModel(custom_output_text="hi")).answer(turn()).text == "hi"
    with pytest.raises(AgentError, match="does not exist"):
        agent_from("nobody:x")
    with pytest.raises(AgentError, match="is not an agent"):
        agent_from("gpt-5")


def test_missing_library_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("materia_nb.agents.model_agent.find_spec", lambda _: None)
    with pytest.raises(AgentError) as caught:
        ModelAgent("openai:x")
    assert caught.value.kind == "not_installed"
    assert caught.value.hint == 'pip install "materia-nb[models]"'


# -- the conversation -----------------------------------------------------------------


def test_conversation_contains_the_tool_calls_of_each_answer():
    before = (
        Message("user", "Look"),
        Message(
            "assistant",
            "It is short.",
            (
                call(1, "read", "text", args={"path": "a"}, round=1, said="I look."),
                call(2, "ls", "b", round=1),
                call(3, "read", "no such file", ok=False, round=2),
            ),
        ),
        Message("user", "Once more"),
        Message("assistant", "Yes."),
    )
    with serving(says("ok")) as server:
        agent(server).answer(turn(conversation=before, tools="readOnly"))
    messages = server.messages()
    assert [one["role"] for one in messages] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert messages[1]["content"] == "I look."
    asked = [(one["id"], one["function"]["name"]) for one in messages[1]["tool_calls"]]
    assert asked == [("c1", "read"), ("c2", "ls")]
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {"path": "a"}
    assert (messages[2]["tool_call_id"], messages[2]["content"]) == ("c1", "text")
    assert "no such file" in messages[5]["content"]
    assert (messages[6]["content"], messages[9]["content"]) == ("It is short.", "Build it")


# -- tools ----------------------------------------------------------------------------


def test_tools_of_the_materia_run_and_are_reported(tmp_path):
    (tmp_path / "a.txt").write_text("what it says")
    events = EventRecorder()
    with serving(calls(("read", {"path": "a.txt"}), said="I look."), says("done", tokens=(20, 1))) as server:
        reply = agent(server).answer(turn(events, tools="readOnly", project=tmp_path))
    (done,) = events.calls
    assert (done.tool, done.args, done.ok, done.round, done.said) == (
        "read",
        {"path": "a.txt"},
        True,
        1,
        "I look.",
    )
    assert "what it says" in done.result
    assert done.seconds > 0
    assert reply.usage == Usage(20, 1, None)
    assert events.spent == [Usage(10, 5, None)]
    assert (reply.text, reply.meta["rounds"]) == ("done", 1)
    assert [tool["function"]["name"] for tool in server.asked[0]["tools"]] == ["read", "grep", "find", "ls"]
    assert [message["role"] for message in server.messages()] == ["user", "assistant", "tool"]
    assert [type(event) for event in events] == [TextEvent, UsageEvent, CallEvent, TextEvent]
    assert events[3].fresh


def test_calls_of_one_answer_belong_to_the_same_round(tmp_path):
    events = EventRecorder()
    with serving(calls(("ls", {}), ("find", {"pattern": "*"})), calls(("ls", {})), says("done")) as server:
        agent(server).answer(turn(events, tools="readOnly", project=tmp_path))
    assert [(one.tool, one.round) for one in events.calls] == [("ls", 1), ("find", 1), ("ls", 2)]


def test_duplicate_call_id_is_replaced(tmp_path):
    events = EventRecorder()
    with serving(calls(("ls", {}), ids=["x"]), calls(("ls", {}), ids=["x"]), says("done")) as server:
        agent(server).answer(turn(events, tools="readOnly", project=tmp_path))
    assert [one.id for one in events.calls] == ["x", "x-2"]
    messages = server.messages()
    assert [one["tool_calls"][0]["id"] for one in messages if one.get("tool_calls")] == ["x", "x-2"]
    assert [one["tool_call_id"] for one in messages if one["role"] == "tool"] == ["x", "x-2"]


@pytest.mark.parametrize(
    "asked, told",
    [
        (("raed", {"path": "a"}), "The tool 'raed' does not exist: did you mean 'read'"),
        (
            ("bash", {"command": "touch made"}),
            "The tool 'bash' does not exist",
        ),  # there is one, but not for this materia
        (("read", '{"path": '), "must be a JSON object"),
        (("read", "[1]"), "must be a JSON object"),
        (("read", '{"path": NaN}'), "must be a JSON object"),
        (("read", {"path": "../../etc/passwd"}), "out of the project"),
        (("read", {"pth": "a"}), "path"),
    ],
)
def test_invalid_tool_call_returns_its_error_to_the_model(tmp_path, asked, told):
    events = EventRecorder()
    with serving(calls(asked), says("sorry")) as server:
        assert agent(server).answer(turn(events, tools="readOnly", project=tmp_path)).text == "sorry"
    (done,) = events.calls
    assert not done.ok
    assert told in done.result
    assert not (tmp_path / "made").exists()
    assert told in server.messages()[-1]["content"]


def test_unknown_tool_is_reported_once_and_other_tools_are_offered(tmp_path):
    events = EventRecorder()
    with serving(calls(("ls", {})), says("x")) as server:
        agent(server).answer(turn(events, tools=("raed", "ls"), project=tmp_path))
    assert events.notes == ["Build names unknown tools: raed; did you mean 'read'?"]
    assert [tool["function"]["name"] for tool in server.asked[0]["tools"]] == ["ls"]


def test_endless_tool_calls_are_stopped(tmp_path):
    events = EventRecorder()
    with serving(*[calls(("ls", {})) for _ in range(4)]) as server:
        model_agent = agent(server)
        model_agent.max_rounds = 3
        error = failed(model_agent, turn(events, tools="readOnly", project=tmp_path))
    assert error.kind == "too_many_calls"
    assert len(events.calls) == 3
    assert events.spent == [Usage(10, 5, None)] * 4


def test_retried_turn_may_use_the_maximum_number_of_tool_rounds_again(tmp_path):
    events = EventRecorder()
    with serving(*[calls(("ls", {})) for _ in range(5)], says("done")) as server:
        model_agent = agent(server)
        model_agent.max_rounds = 2
        assert failed(model_agent, turn(events, tools="readOnly", project=tmp_path)).kind == "too_many_calls"
        again = turn(events, tools="readOnly", project=tmp_path, calls=tuple(events.calls))
        assert model_agent.answer(again).text == "done"
    assert [one.round for one in events.calls] == [1, 2, 3, 4]


def test_usage_of_an_answer_is_reported_before_its_tools_run(tmp_path):
    told = []

    def report(one):
        told.append(one)
        if isinstance(one, CallEvent):
            raise SystemExit  # as if the process were ended

    with serving(calls(("ls", {}))) as server, pytest.raises(SystemExit):
        agent(server).answer(turn(report=report, tools="readOnly", project=tmp_path))
    assert [type(one) for one in told] == [UsageEvent, CallEvent]
    assert told[0].usage == Usage(10, 5, None)


# -- too much -------------------------------------------------------------------------


def _thinks(exchange):
    exchange.begin()
    for _ in range(30):
        exchange.event({"reasoning_content": "y" * 50})
    exchange.end()


@pytest.mark.parametrize("answer", [says(*["x" * 50] * 30), calls(("read", {"path": "z" * 1500})), _thinks])
def test_overlong_answer_fails_the_turn(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(requests, "MAX_ANSWER_CHARS", 1_000)
    events = EventRecorder()
    with serving(answer, says("x" * 1_000)) as server:
        model_agent = agent(server)
        error = failed(model_agent, turn(events, tools="readOnly", project=tmp_path))
        assert len(server.asked) == 1, "it is not tried again"
        assert model_agent.answer(turn()).text == "x" * 1_000
    assert error.kind == "agent_reply_too_long"
    assert len("".join(events.said)) <= 1_000
    assert events.calls == []


def test_tool_calls_beyond_the_limit_per_answer_do_not_run(tmp_path):
    events = EventRecorder()
    many = calls(*[("ls", {})] * (MAX_CALLS + 20))
    with serving(many, says("x"), calls(*[("ls", {})] * MAX_CALLS), says("x")) as server:
        agent(server).answer(turn(events, tools="readOnly", project=tmp_path))
        last = events.calls[0]
        assert (last.ok, "has 84 calls" in last.result, "were not run" in last.result) == (
            False,
            True,
            True,
        )
        assert [one.ok for one in events.calls[1:]] == [True] * MAX_CALLS
        messages = server.messages()
        assert len(messages[-MAX_CALLS - 2]["tool_calls"]) == MAX_CALLS + 1
        assert last.result in messages[-1]["content"]
        just = EventRecorder()
        agent(server).answer(turn(just, tools="readOnly", project=tmp_path))
    assert [one.ok for one in just.calls] == [True] * MAX_CALLS


def test_tool_call_with_overlong_arguments_is_neither_run_nor_stored(tmp_path):
    events = EventRecorder()
    content = "z" * MAX_ARGUMENTS_CHARS
    with serving(calls(("write", {"path": "a", "content": content})), says("x")) as server:
        agent(server).answer(turn(events, tools="coding", project=tmp_path, allowed=frozenset({"write"})))
        assert len(json.dumps(server.asked[-1])) < 10_000
    (call,) = events.calls
    assert (call.ok, "at most 1,048,576 characters" in call.result) == (False, True)
    assert (list(call.args), len(call.args[INVALID_ARGUMENTS]) < 2_000) == ([INVALID_ARGUMENTS], True)
    assert list(tmp_path.iterdir()) == []


# -- leave ----------------------------------------------------------------------------


def test_tool_call_with_side_effects_waits_for_approval_while_other_calls_run(tmp_path):
    events = EventRecorder()
    script = (calls(("bash", {"command": "touch made"}), ("ls", {}), said="Both."), says("done"))
    with serving(*script) as server:
        model_agent = agent(server)
        asking = model_agent.answer(turn(events, tools="coding", project=tmp_path))
        assert isinstance(asking, NeedsApproval)
        (expected,) = asking.calls
        assert (expected.tool, expected.args, expected.result) == ("bash", {"command": "touch made"}, None)
        assert [one.tool for one in events.calls] == ["ls"]
        assert events.spent == [Usage(10, 5, None)]
        assert not (tmp_path / "made").exists()
        assert len(server.asked) == 1

        decided = ToolCall(**{**_fields(expected), "decided": "once"})
        again = EventRecorder()
        reply = model_agent.answer(turn(again, tools="coding", project=tmp_path, calls=(*events.calls, decided)))
    assert (tmp_path / "made").exists()
    assert reply.text == "done"
    assert reply.usage == Usage(10, 5, None), "what was told as spent does not count twice"
    assert [(one.tool, one.decided, one.ok, one.round) for one in again.calls] == [("bash", "once", True, 1)]
    messages = server.messages()
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1]["content"] == "Both."
    assert {one["id"] for one in messages[1]["tool_calls"]} == {expected.id, events.calls[0].id}


def _fields(one: ToolCall) -> dict:
    return {name: getattr(one, name) for name in one.__slots__}


def test_denied_call_and_its_reason_are_reported_to_the_model(tmp_path):
    events = EventRecorder()
    denied = call(1, "bash", decided="denied", args={"command": "touch made"})
    reasoned = call(2, "bash", "Not on a Sunday.", decided="denied", args={"command": "touch made"}, ok=False)
    with serving(says("then not")) as server:
        reply = agent(server).answer(turn(events, tools="coding", project=tmp_path, calls=(denied, reasoned)))
    assert reply.text == "then not"
    assert not (tmp_path / "made").exists()
    assert [(one.id, one.ok) for one in events.calls] == [("c1", False)]
    results = [message["content"] for message in server.messages() if message["role"] == "tool"]
    assert "denied this call" in results[0]
    assert "Not on a Sunday." in results[1]


def test_allowed_tool_runs_without_approval(tmp_path):
    with serving(calls(("bash", {"command": "touch made"})), says("done")) as server:
        reply = agent(server).answer(
            turn(EventRecorder(), tools="coding", project=tmp_path, allowed=frozenset({"bash"}))
        )
    assert reply.text == "done"
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "tool, args",
    [
        ("bash", {"command": "touch m\u0430de"}),
        ("bash", {"command": "touch\u00a0made"}),
        ("write", {"path": "ma\u200bde", "content": ""}),
        ("edit", {"path": "m\uff41de", "old": "a", "new": "b"}),
    ],
)
def test_deceptive_command_or_path_needs_approval_even_if_its_tool_is_allowed(tmp_path, tool, args):
    with serving(calls((tool, args))) as server:
        asking = agent(server).answer(
            turn(EventRecorder(), tools="coding", project=tmp_path, allowed=frozenset({"bash", "edit", "write"}))
        )
    assert isinstance(asking, NeedsApproval)
    assert [call.args for call in asking.calls] == [args]
    assert list(tmp_path.iterdir()) == []


def test_allowed_write_may_have_unusual_unicode_in_its_path_and_content(tmp_path):
    call = ("write", {"path": "файл.txt", "content": "\U0001f469\u200d\U0001f4bb"})
    with serving(calls(call), says("done")) as server:
        model_agent = agent(server)
        reply = model_agent.answer(
            turn(EventRecorder(), tools="coding", project=tmp_path, allowed=frozenset({"write"}))
        )
    assert reply.text == "done"
    assert (tmp_path / "файл.txt").exists()


def test_approval_permits_exactly_one_run_of_its_command(tmp_path):
    command = "echo x >> made"
    approval = Approval("P-" + "0" * 32, command, 2.0**60)
    events = EventRecorder()
    script = (calls(("bash", {"command": command})), calls(("bash", {"command": command})))
    with serving(*script) as server:
        model_agent = agent(server)
        fields = {"tools": "coding", "project": tmp_path, "approval": approval}
        asking = model_agent.answer(turn(events, **fields))
        assert isinstance(asking, NeedsApproval)
        assert (tmp_path / "made").read_text() == "x\n"
        # Going on with the same turn does not bring the approval back.
        assert isinstance(
            model_agent.answer(turn(EventRecorder(), calls=(*events.calls, *asking.calls), **fields)), NeedsApproval
        )
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.parametrize("set_back", [10.0, 86_400.0])
def test_setting_the_clock_back_does_not_extend_an_approval(tmp_path, monkeypatch, set_back):
    wall, steady = [1_700_000_000.0], [50.0]
    approval = Approval("P-" + "0" * 32, "touch made", wall[0] + 3600)
    clocks = SimpleNamespace(time=lambda: wall[0], monotonic=lambda: steady[0], perf_counter=perf_counter)
    monkeypatch.setattr("materia_nb.agents.model_turn.time", clocks)  # processes keep their own
    wall[0] -= set_back  # between the consent and the turn
    call = ToolCall(id="1", tool="bash", args={"command": "touch made"})
    fields = {"tools": "coding", "project": tmp_path, "approval": approval}
    for seconds, may_run in ((3599.0, True), (3600.0, False)):
        calls_of_turn = ToolCalls(
            turn(EventRecorder(), **fields), {tool.name: tool for tool in choose_tools("coding")[0]}, Stop()
        )
        wall[0] -= set_back
        steady[0] += seconds
        done, pending = calls_of_turn.run_calls([call])
        assert (bool(done), bool(pending)) == (may_run, not may_run)


@pytest.mark.parametrize("other", ["echo x >> made ", "echo y >> made", ""])
def test_approval_does_not_cover_a_different_command(tmp_path, other):
    approval = Approval("P-" + "0" * 32, "echo x >> made", 2.0**60)
    with serving(calls(("bash", {"command": other}))) as server:
        answer = agent(server).answer(turn(EventRecorder(), tools="coding", project=tmp_path, approval=approval))
    assert isinstance(answer, NeedsApproval)
    assert not (tmp_path / "made").exists()


def test_interrupted_turn_does_not_repeat_finished_tool_calls(tmp_path):
    events = EventRecorder()
    before = (call(1, "ls", "a", round=1), call(2, "ls", "b", round=2))
    with serving(calls(("ls", {})), says("done")) as server:
        reply = agent(server).answer(turn(events, tools="readOnly", project=tmp_path, calls=before))
    assert [(one.tool, one.round) for one in events.calls] == [("ls", 3)]
    assert reply.meta["rounds"] == 3
    assert [message["role"] for message in server.messages(0)] == ["user", "assistant", "tool", "assistant", "tool"]


# -- the form of the answer -----------------------------------------------------------


def test_schema_is_sent_to_a_provider_that_supports_schemas(tmp_path):
    with serving(says('{"satisfied": true, "context": ""}'), calls(("ls", {})), says("{}")) as server:
        agent(server).answer(turn(schema=SCHEMA))
        agent(server).answer(turn(EventRecorder(), schema=SCHEMA, tools="readOnly", project=tmp_path))
    given = server.asked[0]["response_format"]
    assert given["type"] == "json_schema"
    assert given["json_schema"]["schema"] == SCHEMA
    assert given["json_schema"]["strict"] is True
    assert server.asked[1]["response_format"] == given
    assert server.asked[0]["messages"] == [{"role": "user", "content": "Build it"}], "nothing is said twice"


def test_structured_output_is_the_reply():
    """The client library does not validate the answer; the handoff rules do (R5 to R9)."""
    with serving(says("no JSON at all")) as server:
        assert agent(server).answer(turn(schema=SCHEMA)).text == "no JSON at all"


def test_schema_with_a_field_of_any_type_is_sent_as_not_strict():
    free = {
        **SCHEMA,
        "properties": {**SCHEMA["properties"], "plan": {}},
        "required": [*SCHEMA["required"], "plan"],
    }
    with serving(says("{}")) as server:
        agent(server).answer(turn(schema=free))
    assert server.asked[0]["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize("native", [True, False])
def test_schema_is_sent_only_to_models_that_support_schemas(native):
    from pydantic_ai.models.function import FunctionModel

    seen = []

    async def answer(messages, info):
        seen.append(info)
        yield "{}"

    model = FunctionModel(stream_function=answer, profile={"supports_json_schema_output": native})
    assert ModelAgent(model).answer(turn(schema=SCHEMA)).text == "{}"
    form = seen[0].model_request_parameters
    assert form.output_mode == ("native" if native else "text")
    assert (form.output_object is not None) is native


def test_schema_incompatible_with_tools_is_omitted(tmp_path):
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models.function import FunctionModel

    seen = []

    class Choosy(FunctionModel):
        def prepare_request(self, settings, parameters):
            if parameters.output_mode == "native" and parameters.function_tools:
                raise UserError("not both")
            return super().prepare_request(settings, parameters)

    async def answer(messages, info):
        seen.append(info.model_request_parameters.output_mode)
        yield "{}"

    model_agent = ModelAgent(Choosy(stream_function=answer, profile={"supports_json_schema_output": True}))
    model_agent.answer(turn(schema=SCHEMA))
    model_agent.answer(turn(schema=SCHEMA, tools="readOnly"))
    assert seen == ["native", "text"]


# -- interrupts -----------------------------------------------------------------------


def test_stop_cancels_the_request_and_reports_usage():
    slow, stop = Slow(), threading.Event()
    events = EventRecorder()

    def report(thing):
        events.append(thing)
        stop.set()

    with serving(slow) as server:
        error = failed(agent(server), turn(report=report, stop=stop))
        assert slow.gone.wait(LONG_S), "the connection is closed"
    assert error.kind == "interrupted"
    assert events.said == ["so far"]


def test_stop_interrupts_the_wait_before_a_retry():
    stop, events = threading.Event(), EventRecorder()

    def report(thing):
        events.append(thing)
        stop.set()

    with serving(refuses(503, "down", retry_after="300")) as server:
        error = failed(agent(server), turn(report=report, stop=stop))
    assert error.kind == "interrupted"
    assert events.notes == ["503 from openai:tiny; trying again in 3e+02 s (2 of 4)"]


def test_stop_ends_a_running_command(tmp_path):
    stop, events = threading.Event(), EventRecorder()
    command = "echo $$ > pid; exec sleep 600"

    def watch():
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            if stop.wait(0.01):
                return
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    with serving(calls(("bash", {"command": command}))) as server:
        error = failed(
            agent(server),
            turn(events, tools="coding", project=tmp_path, stop=stop, allowed=frozenset({"bash"})),
        )
    assert error.kind == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    (done,) = events.calls
    assert not done.ok
    assert "it may have run in part" in done.result
    assert events.spent == [Usage(10, 5, None)]


CHILD = """
import sys
sys.path.insert(0, "tests/helpers")
from model_helpers import turn
from materia_nb.agents import ModelAgent
def report(thing):
    print("told", type(thing).__name__, flush=True)
try:
    ModelAgent("openai:tiny", base_url=sys.argv[1]).answer(turn(report=report))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_interrupt_during_a_stream_cancels_the_request():
    slow = Slow()
    root = Path(__file__).parents[2]
    with serving(slow) as server:
        child = subprocess.Popen([sys.executable, "-c", CHILD, server.url], cwd=root, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == "told TextEvent\n"
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=LONG_S)
        finally:
            child.kill()
        assert out == "told UsageEvent\ninterrupted\n", "what it cost is not known, and counted as that (R56)"
        assert child.returncode == 0
        assert slow.gone.wait(LONG_S)


def test_model_agent_works_inside_a_running_event_loop():
    import asyncio

    async def cell():
        return agent(server).answer(turn()).text

    with serving(says("from a cell")) as server:
        assert asyncio.run(cell()) == "from a cell"


def test_function_agent_can_ask_a_model():
    with serving(says("inner")) as server:
        inner = agent(server)

        async def outer(turn):
            return "outer " + inner.answer(turn).text

        assert agent_from(outer).answer(turn()).text == "outer inner"


# -- casts ----------------------------------------------------------------------------


def test_model_answers_a_cast_and_repairs_a_refused_answer(tmp_path):
    """The repair turn continues the same conversation (R19)."""
    plan = json.dumps({"workItems": h.items("one"), "context": "planned"})
    with serving(says("I shall plan."), says(plan), says("built"), says(h.YES), says("told")) as server:
        cast = h.start(tmp_path, h.loop_config(), agent(server))
        assert cast.run() == "complete", cast.failure
    assert [message["role"] for message in server.messages(1)] == ["user", "assistant", "user"]
    assert server.messages(1)[1]["content"] == "I shall plan."
    formats = ["response_format" in asked for asked in server.asked]
    assert formats == [True, True, False, True, False]
    properties = server.asked[0]["response_format"]["json_schema"]["schema"]["properties"]
    assert list(properties) == ["workItems", "context"]
    assert properties["workItems"]["items"]["additionalProperties"] is False
    assert cast.now.usage.tokens == 5 * 15


def test_schema_is_sent_when_the_final_result_is_requested_but_not_for_drafts(tmp_path):
    document = h.config(
        {"Socket-1": h.at("Plan", ("satisfied", "end"), parse="json")},
        {"Plan": h.agent("Plan {{request}}", multiTurn=True)},
    )
    with serving(says("How about this?"), says("Or that?"), says(h.YES)) as server:
        cast = h.start(tmp_path, document, agent(server))
        cast.step()
        cast.refine("Rather not")
        cast.accept()
    assert ["response_format" in asked for asked in server.asked] == [False, False, True]


def test_model_failure_fails_the_cast_and_a_retry_continues(tmp_path):
    with serving(refuses(401, "Wrong key"), says("one"), says("two")) as server:
        cast = h.start(tmp_path, h.chain_config(2), agent(server))
        assert cast.run() == "failed"
        assert cast.failure.kind == "bad_key"
        cast.retry(turn=True)
        assert cast.run() == "complete"
    assert server.asked[0] == server.asked[1]


def test_cast_waits_for_approval_and_continues_after_the_decision(tmp_path):
    document = h.config({"Socket-1": h.at("Build")}, {"Build": h.agent("Build", tools="coding")})
    script = (
        calls(("ls", {}), ("bash", {"command": "echo one >> made"})),
        calls(("bash", {"command": "echo two >> made"})),
        calls(("write", {"path": "a.txt", "content": "x"})),
        says("done"),
    )
    with serving(*script) as server:
        cast = h.start(tmp_path, document, agent(server))
        cast.run()
        assert [one.tool for one in cast.approvals.asking] == ["bash"]
        assert not (tmp_path / "made").exists()
        cast.approvals.approve()
        assert (tmp_path / "made").read_text() == "one\n"
        cast.approvals.deny("once is enough")
        assert (tmp_path / "made").read_text() == "one\n"
        assert [one.tool for one in cast.approvals.asking] == ["write"]
        cast.approvals.approve(always=True)
        assert cast.run() == "complete", cast.failure
    assert (tmp_path / "a.txt").read_text() == "x"
    results = [message["content"] for message in server.messages() if message["role"] == "tool"]
    assert "once is enough" in results[2]
    assert cast.now.usage.tokens == 4 * 15, "each request counts once"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_retried_turn_does_not_repeat_finished_tool_calls(tmp_path):
    document = h.config({"Socket-1": h.at("Build")}, {"Build": h.agent("Build", tools="coding")})
    script = (calls(("bash", {"command": "echo x >> made"})), refuses(401, "Wrong key"), says("done"))
    with serving(*script) as server:
        cast = h.start(tmp_path, document, agent(server))
        cast.approvals.allow("bash")
        assert cast.run() == "failed"
        cast.retry(turn=True)
        assert cast.run() == "complete"
    assert (tmp_path / "made").read_text() == "x\n", "the command ran once"
    assert [message["role"] for message in server.messages()] == ["user", "assistant", "tool"]
    assert cast.now.usage.tokens == 2 * 15


def test_error_for_a_misspelled_model_name_suggests_the_correct_name():
    for name in ("openai/gpt-5", "model:openai/gpt-5"):
        with pytest.raises(AgentError) as told:
            agent_from(name)
        assert "did you mean 'openai:gpt-5'?" in str(told.value)
    with pytest.raises(AgentError, match="'bin/agent' is not an agent") as told:
        agent_from("bin/agent")
    assert "did you mean" not in str(told.value)
    with pytest.raises(AgentError, match=r"choose one of: .*openai.*openrouter"):
        agent_from("zzzzzz:gpt-5")


def test_only_models_of_configured_providers_are_offered(monkeypatch):
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    assert ready_models() == ()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    found = ready_models()
    assert found
    assert not [name for name in found if not name.startswith("openai")]
