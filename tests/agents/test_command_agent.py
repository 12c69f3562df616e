"""Test command agents, which must handle processes as the utility runner does (R23)."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.agents import AgentError, CommandAgent, Message
from materia_nb.agents.command_agent import request_text


def agent(code: str, **more) -> CommandAgent:
    return CommandAgent([sys.executable, "-S", "-c", code], **more)


@pytest.fixture
def turn(tmp_path):
    return h.work_turn(tmp_path, "päint it\n")


ECHO = "import sys; sys.stdout.write('  ' + sys.stdin.read() + '\\n\\n')"


def test_command_receives_the_prompt_and_its_output_is_stripped(turn):
    reply = agent(ECHO).answer(turn)
    assert reply.text == "päint it"
    assert reply.usage is None
    assert (reply.meta["program"], reply.meta["arguments"]) == (Path(sys.executable).name, 3)
    assert reply.meta["seconds"] > 0


def test_later_turns_receive_the_conversation(turn):
    later = dataclasses.replace(
        turn,
        kind="repair",
        prompt="again",
        conversation=(Message("user", "do"), Message("assistant", "done")),
    )
    assert agent(ECHO).answer(later).text == "## User\n\ndo\n\n## Assistant\n\ndone\n\n## User\n\nagain"
    assert request_text(turn) == turn.prompt


def test_command_runs_in_the_project_or_the_configured_directory(turn, tmp_path):
    where = "import os; print(os.getcwd())"
    other = tmp_path / "other"
    other.mkdir()
    assert agent(where).answer(turn).text == str(tmp_path.resolve())
    assert agent(where, cwd=other).answer(turn).text == str(other.resolve())


def test_command_agent_is_named_after_its_program():
    assert CommandAgent(["/usr/bin/pi", "-p"]).name == "pi"
    assert CommandAgent(["pi"], name="my pi").name == "my pi"


def test_program_that_ignores_its_prompt_does_not_block(turn):
    big = dataclasses.replace(turn, prompt="x" * 5_000_000)
    assert agent("print('short')").answer(big).text == "short"


def test_prompt_with_a_lone_surrogate_is_sent(turn):
    assert agent(ECHO).answer(dataclasses.replace(turn, prompt="a\ud800b")).text == "a?b"


@pytest.mark.parametrize(
    "code, more, kind, said",
    [
        (
            "import sys; sys.stderr.write('no\\n key'); sys.exit(4)",
            {},
            "agent_exit",
            "code 4; stderr: no key",
        ),
        ("import os; os.kill(os.getpid(), 9)", {}, "agent_exit", "signal SIGKILL"),
        ("import time; time.sleep(60)", {"timeout_s": 0.3}, "agent_timeout", "longer than 0.3 s"),
        ("import sys; sys.stdout.write('x' * 9_000_000)", {}, "agent_reply_too_long", "8,388,608 bytes"),
    ],
)
def test_each_command_failure_has_its_own_failure_kind(turn, code, more, kind, said):
    with pytest.raises(AgentError, match=said) as caught:
        agent(code, **more).answer(turn)
    assert caught.value.kind == kind
    assert caught.value.where == "Socket-1"


def test_missing_program_raises_a_clear_error(turn):
    with pytest.raises(AgentError, match="no-such-program was not found") as caught:
        CommandAgent(["no-such-program"]).answer(turn)
    assert caught.value.kind == "agent_not_started"


def test_stop_ends_a_running_command(turn):
    stop = threading.Event()
    stop.set()
    with pytest.raises(AgentError) as caught:
        agent("import time; time.sleep(60)").answer(dataclasses.replace(turn, stop=stop))
    assert caught.value.kind == "interrupted"


@pytest.mark.parametrize("argv", ["pi -p", [], ["pi", 5], [None]])
def test_invalid_command_is_refused_immediately(argv):
    with pytest.raises(AgentError, match="is not a command"):
        CommandAgent(argv)


@pytest.mark.parametrize("any_tools", [False, True])
def test_custom_command_cannot_change_files_if_only_reading_is_allowed(tmp_path, any_tools):
    (tmp_path / "page.txt").write_text("a page")
    agent = CommandAgent(["sh", "-c", "echo changed > page.txt; echo done"], any_tools=any_tools)
    turn = h.work_turn(tmp_path, "Read it.", tools="readOnly")
    if any_tools:
        assert agent.answer(turn).text == "done"
        return
    with pytest.raises(
        AgentError, match=r"sh changed files, although the materia .* allows only reading: page\.txt"
    ) as caught:
        agent.answer(turn)
    assert caught.value.kind == "wrote_read_only"
