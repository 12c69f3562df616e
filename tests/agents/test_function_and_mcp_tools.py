"""Test Python functions and MCP servers, over stdio and HTTP, as tools of a model agent."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents import AgentError, AgentTable, NeedsApproval
from materia_nb.agents.tools import MAX_RESULT_CHARS, MoreTools, choose_tools, more_tools
from materia_nb.agents.tools.file_tools import Toolbox
from materia_nb.agents.tools.more_tools import ToolFinder, close_servers, function_tool
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.loadout import check_config
from materia_nb.platform import Stop
from mcp_stand_in import over_http
from model_helpers import EventRecorder, agent, turn
from model_server import calls, says, serving

STAND_IN = str(Path(__file__).parent.parent / "helpers" / "mcp_stand_in.py")
SPEC = {"command": sys.executable, "args": ["-S", STAND_IN]}
TIME = {
    "command": str(Path(sys.executable).with_name("mcp-server-time")),
    "args": ["--local-timezone", "UTC"],
}


@pytest.fixture(autouse=True)
def _ended():
    yield
    close_servers()


def found(tmp_path, spec, *names, stop=None):
    finder = ToolFinder(MoreTools(servers={"own": spec}), tmp_path, "cast", stop)
    tools, unknown = choose_tools(names or ("own.*",), finder)
    assert not unknown
    return Toolbox(tmp_path, stop, tools), {tool.name: tool for tool in tools}


# -- functions ------------------------------------------------------------------------


def price(part: str, count: Annotated[int, Field(ge=1, description="how many")] = 1) -> dict[str, float]:
    """Return the price of parts, in euros."""
    if part == "gold":
        raise LookupError("no gold")
    return {"euros": 2.5 * count}


def test_function_tool_is_described_by_its_signature_and_docstring():
    tool = function_tool(price)
    assert (tool.name, tool.description, tool.has_side_effects, tool.preapproved) == (
        "price",
        "Return the price of parts, in euros.",
        True,
        True,
    )
    assert tool.parameters["required"] == ["part"]
    assert tool.parameters["properties"]["part"]["type"] == "string"
    assert tool.parameters["properties"]["count"]["description"] == "how many"
    assert tool.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    "args, ok, said",
    [
        ({"part": "bulb", "count": 3}, True, '{"euros":7.5}'),
        ({"part": "bulb", "count": 0}, False, "count"),
        ({"count": 1}, False, "part"),
        ({"part": "bulb", "more": 1}, False, "more"),
        ({"part": "gold"}, False, "LookupError: no gold"),
    ],
)
def test_argument_errors_are_passed_to_the_model(tmp_path, args, ok, said):
    result = Toolbox(tmp_path, more=[function_tool(price)]).call("price", args)
    assert result.ok is ok
    assert said in result.text


def test_function_tool_may_have_keyword_only_and_underscore_parameters(tmp_path):
    async def where(schema: Literal["a", "b"], *, _under: int = 2, copy: list[str] | None = None) -> str:
        return f"{schema} {_under} {copy}\x1b[31m"

    box = Toolbox(tmp_path, more=[function_tool(where, name="other")])
    assert box.call("other", {"schema": "a", "copy": ["x"]}).text == "a 2 ['x']\\x1b[31m"


@pytest.mark.parametrize(
    "function, name",
    [(price, "bash"), (price, "two words"), (lambda *parts: "", "many"), (lambda x: "", "coding")],
)
def test_invalid_tool_is_refused_immediately(function, name):
    with pytest.raises(AgentError) as error:
        function_tool(function, name=name)
    assert error.value.kind == "bad_tool"


def test_parameter_type_that_json_cannot_represent_is_refused():
    def odd(thread: threading.Thread) -> str:
        return ""

    with pytest.raises(AgentError, match="cannot be a tool"):
        function_tool(odd)


def test_function_tool_is_called_and_recorded(tmp_path):
    document = h.config({"Socket-1": h.at("Build")}, {"Build": h.agent("Build", tools=["price", "ask_me"])})
    wb = Workbench(tmp_path, bundled=False)
    wb.load(document)
    asked = []
    wb.tool(price)

    @wb.tool(name="ask_me", ask=True)
    def question(text: str) -> str:
        asked.append(text)
        return "yes"

    script = (
        calls(("price", {"part": "bulb"}), ("ask_me", {"text": "is it?"})),
        says("done"),
    )
    with serving(*script) as server:
        wb.agent("Build", agent(server))
        cast = wb.cast("light")
        cast.run()
        assert [tool["function"]["name"] for tool in server.asked[0]["tools"]] == ["price", "ask_me"]
        assert [one.tool for one in cast.approvals.asking] == ["ask_me"]
        assert not asked
        cast.approvals.allow("ask_me")
        cast.approvals.approve()
        assert cast.status == "ready"
        assert cast.run() == "complete"
    told = [message["content"] for message in server.messages() if message["role"] == "tool"]
    assert told == ['{"euros":2.5}', "yes"]
    second_cast = wb.cast("light", agents={"Build": f"recorded:{cast.id}"})
    assert second_cast.run() == "complete"
    assert asked == ["is it?"], "a recording runs nothing"
    assert [call.tool for call in second_cast.steps[0].turns[0].calls] == ["price", "ask_me"]
    wb.close()


# -- servers --------------------------------------------------------------------------


def test_mcp_server_answers_a_model(tmp_path):
    events = EventRecorder()
    more = MoreTools(servers={"time": {**TIME, "allow": ["convert_time"]}})
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    with serving(calls(("time_convert_time", noon)), says("At nine.")) as server:
        reply = agent(server).answer(turn(events, tools=("time.*",), project=tmp_path, more_tools=more))
    (done,) = events.calls
    assert (done.tool, done.ok) == ("time.convert_time", True)
    assert "21:00:00+09:00" in done.result
    assert {tool["function"]["name"] for tool in server.asked[0]["tools"]} == {
        "time_get_current_time",
        "time_convert_time",
    }
    assert reply.text == "At nine."
    assert not events.notes


def test_mcp_tool_with_an_invalid_name_is_skipped_with_a_note(tmp_path):
    events = EventRecorder()
    with serving(says("done")) as server:
        agent(server).answer(
            turn(events, tools=("own.*",), project=tmp_path, more_tools=MoreTools(servers={"own": SPEC}))
        )
    assert events.notes == ["the tool two words of own is skipped: its name is not a valid tool name"]
    assert len(server.asked[0]["tools"]) == 8


def test_mcp_calls_need_approval_unless_the_config_allows_the_tool(tmp_path):
    more = MoreTools(servers={"own": {**SPEC, "allow": ["count"]}})
    events = EventRecorder()
    args = {"path": str(tmp_path / "made"), "text": "x"}
    names = ("own.count", "own.append")
    with serving(calls(("own_count", {}), ("own_append", args)), says("done")) as server:
        model_agent = agent(server)
        asking = model_agent.answer(turn(events, tools=names, project=tmp_path, more_tools=more))
    assert isinstance(asking, NeedsApproval)
    assert [call.tool for call in asking.calls] == ["own.append"]
    assert [(one.tool, one.result) for one in events.calls] == [("own.count", "now 1")]
    assert not (tmp_path / "made").exists()


def test_server_results_are_shortened_and_escaped(tmp_path):
    box, tools = found(tmp_path, SPEC)
    assert len(tools) == 8
    much = box.call("own.much", {})
    assert len(much.text) <= MAX_RESULT_CHARS
    assert much.text.startswith("\\x1b[31mxxx")
    assert "left out" in much.text
    assert much.text.endswith("end")
    assert box.call("own.picture", {}).text == "[image/png, 4 characters of base64, not shown]"
    failed = box.call("own.fail", {})
    assert (failed.ok, "no such thing" in failed.text) == (False, True)
    wrong = box.call("own.count", {"to": "many"})
    assert not wrong.ok


def test_mcp_server_runs_until_its_cast_ends_and_is_restarted_if_it_stops(tmp_path):
    box, _ = found(tmp_path, SPEC)
    assert [box.call("own.count", {}).text for _ in range(2)] == ["now 1", "now 2"]
    other, _ = found(tmp_path, SPEC, "own.count")
    assert other.call("own.count", {}).text == "now 3"
    gone = box.call("own.leave", {})
    assert (gone.ok, "has ended" in gone.text) == (False, True)
    assert box.call("own.count", {}).text == "now 1"
    close_servers("another cast")
    assert box.call("own.count", {}).text == "now 2"
    close_servers("cast")
    assert box.call("own.count", {}).text == "now 1"


def test_server_receives_only_its_configured_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_WORD", "opensesame9")
    monkeypatch.setenv("OTHER_WORD", "plain")
    box, _ = found(tmp_path, {**SPEC, "env": {"WORD": "${SERVICE_WORD}"}})
    assert box.call("own.environment", {"name": "OTHER_WORD"}).text == f"None in {tmp_path}"
    told = box.call("own.environment", {"name": "WORD"}).text
    assert told == f"*** in {tmp_path}", "it was given, and is cut out of the result"


@pytest.mark.parametrize(
    "spec, said",
    [
        ({"command": "no-such-program-at-all"}, "No such file"),
        ({"command": sys.executable, "args": ["-c", "import sys; sys.exit('bad license')"]}, "bad license"),
        ({**SPEC, "env": {"X": "${NOT_THERE_AT_ALL}"}}, "NOT_THERE_AT_ALL is not set"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be used"),
    ],
)
def test_unusable_server_fails_the_turn_and_the_error_names_the_server(tmp_path, spec, said):
    more = MoreTools(servers={"own": spec})
    with pytest.raises(AgentError, match=said) as error, serving() as server:
        agent(server).answer(turn(tools=("own.count",), project=tmp_path, more_tools=more))
    assert (error.value.kind, error.value.where) == ("tool_server", "mcpServers.own")


def test_unresponsive_mcp_server_times_out(tmp_path, monkeypatch):
    monkeypatch.setattr(more_tools, "CONNECT_TIMEOUT_S", 0.2)
    with pytest.raises(AgentError, match=r"did not respond within 0\.2 s"):
        found(tmp_path, {"command": "sleep", "args": ["60"]})


def test_missing_library_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(more_tools, "find_spec", lambda _: None)
    with pytest.raises(AgentError) as error:
        found(tmp_path, SPEC)
    assert error.value.kind == "not_installed"


def test_stop_cancels_a_server_call(tmp_path):
    stop, results, begun = Stop(), [], tmp_path / "begun"
    box, _ = found(tmp_path, SPEC, stop=stop)

    def call():
        try:
            box.call("own.wait", {"path": str(begun)})
        except AgentError as error:
            results.append(error.kind)

    worker = threading.Thread(target=call)
    worker.start()
    while not begun.exists() or not begun.read_text():
        worker.join(0.01)
    stop.set()
    worker.join(10)
    assert results == ["interrupted"]
    close_servers()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_mcp_server_can_be_reached_over_http(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_WORD", "opensesame9")
    with over_http() as (url, words):
        box, _ = found(tmp_path, {"url": url, "headers": {"X-Word": "${SERVICE_WORD}"}}, "own.environment")
        assert box.call("own.environment", {"name": "NONE"}).text == f"None in {Path.cwd()}"
        close_servers()
    assert set(words) == {"opensesame9"}


# -- in a cast ------------------------------------------------------------------------


def test_call_is_journalled_before_it_runs_and_is_not_repeated_after_a_resume(tmp_path):
    made = tmp_path / "made"
    document = h.config(
        {"Socket-1": h.at("Build")},
        {"Build": h.agent("Build", tools=["own.append"])},
        mcpServers={"own": SPEC},
    )
    script = (calls(("own_append", {"path": str(made), "text": "once"})), says("done"))
    with serving(*script) as server:
        cast = h.start(tmp_path, document, agent(server))
        cast.run()
        assert [one.tool for one in cast.approvals.asking] == ["own.append"]
        cast.close()
        with pytest.raises(MateriaError):
            open_cast(cast.run_dir).approvals.allow("own.append")
        cast = resume_cast(cast.run_dir, AgentTable(agent(server)))
        cast.approvals.approve(always=True)
        assert cast.approvals.tools["own.append"]
        assert cast.run() == "complete", cast.failure
    assert made.read_text() == "once\n"
    types = [line["type"] for line in h.lines_of(cast) if line["type"].startswith("tool_")]
    assert types[-2:] == ["tool_call", "tool_call"], "before it ran, and what it gave"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_ending_a_cast_does_not_stop_the_servers_of_another_cast(tmp_path):
    document = h.config(
        {"Socket-1": h.at("Build")},
        {"Build": h.agent("Build", tools=["own.count", "own.append"])},
        mcpServers={"own": {**SPEC, "allow": ["count"]}},
    )
    append = calls(("own_append", {"path": str(tmp_path / "made"), "text": "x"}))
    count = calls(("own_count", {}))
    with serving(count, append, count, says("done")) as server:
        cast = h.start(tmp_path / "a", document, agent(server))
        cast.run()
        other = h.start(tmp_path / "b", h.one_config(), "person")
        other.close()
        same_id = other.run_dir.rename(other.run_dir.with_name(cast.run_dir.name))
        resume_cast(same_id).close()
        cast.approvals.approve()
        assert cast.run() == "complete", cast.failure
    answers = [call.result for call in cast.steps.at(1).turns[0].calls if call.tool == "own.count"]
    assert answers == ["now 1", "now 2"]


def test_allow_accepts_only_tools_of_the_materia(tmp_path):
    document = h.config({"Socket-1": h.at("Build")}, {"Build": h.agent("Build", tools=["own.*", "read"])})
    cast = h.start(tmp_path, document, "person")
    cast.approvals.allow("own.append")
    assert cast.approvals.allowed == {"own.append"}
    for name in ("other.append", "read"):
        with pytest.raises(MateriaError, match="is not a tool that can need approval"):
            cast.approvals.allow(name)


@pytest.mark.parametrize(
    "server, at",
    [
        ({"args": []}, "mcpServers.own"),
        ({"command": "a", "url": "http://b"}, "mcpServers.own"),
        ({"command": "a", "env": {"X": 1}}, "mcpServers.own.env"),
        ({"command": ["a"]}, "mcpServers.own.command"),
        ("npx", "mcpServers.own"),
    ],
)
def test_mcp_server_config_is_validated(server, at):
    document = h.config({"Socket-1": h.at("Build")}, {"Build": h.agent("Build")}, mcpServers={"own": server})
    assert [problem.source for problem in check_config(document).problems] == [at]
