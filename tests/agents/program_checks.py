"""Test the command presets with the real programs and a stub server instead of models.

``make agents-test`` installs the programs and runs these tests. Pytest does not collect this file by default, because
its name does not begin with ``test_``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace

import pytest

import cast_helpers as h
from materia_nb.agents import AgentError, Message, Turn
from materia_nb.agents.command_agent import PRESETS, preset_agent
from materia_nb.agents.interface import NoteEvent
from provider_stub import LONG_TEXT, TEXT, ProviderStub

MODELS = {"aider": "openai/stub-model", "llm": "stub-model", "opencode": "stub/stub-model", "pi": "stub/stub-model"}
NO_USAGE = ("llm",)
SESSIONS = ("claude", "opencode", "pi")
SILENT_ABOUT_CUTS = ("gemini", "llm")
ONE_REQUEST = {"input": 1000, "output": 200}
TRIES = ["[[write made.txt]]", "[[shell echo made > made.txt]]", "[[shell echo changed > page.txt]]"]
PAGE = {"page.txt": "a page\n"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def stub():
    with ProviderStub() as stub:
        yield stub


@pytest.fixture(params=PRESETS)
def name(request):
    """Return the name of a preset, or skip the test if its program is not installed."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def turn(stub, tmp_path, monkeypatch):
    """Return a function that creates a turn in a new Git repository.

    The settings of every program point to the address of the stub server.
    """
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "page.txt").write_text("a page\n")
    settings = {
        ".codex/config.toml": (
            'model = "stub-model"\nmodel_provider = "stub"\n[model_providers.stub]\nname = "stub"\nwire_api = "responses"\n'
            f'base_url = "{stub.url}/v1"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        ),
        ".config/opencode/opencode.json": {
            "autoupdate": False,
            "model": "stub/stub-model",
            "permission": "allow",
            "provider": {
                "stub": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": f"{stub.url}/v1", "apiKey": "stub-key"},
                    "models": {
                        "stub-model": {"cost": {"input": 1, "output": 2}, "limit": {"context": 99999, "output": 999}}
                    },
                }
            },
        },
        ".pi/agent/models.json": {
            "providers": {
                "stub": {
                    "baseUrl": f"{stub.url}/v1",
                    "apiKey": "stub-key",
                    "api": "openai-completions",
                    "models": [
                        {"id": "stub-model", "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}}
                    ],
                }
            }
        },
        ".llm/extra-openai-models.yaml": f"- model_id: stub-model\n  model_name: stub-model\n  api_base: {stub.url}/v1\n",
        ".claude/settings.json": {"permissions": {"allow": ["Write", "Edit", "Bash"]}},
        ".gemini/settings.json": {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "tools": {"allowed": ["write_file", "run_shell_command"]},
        },
    }
    for path, content in settings.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content if isinstance(content, str) else json.dumps(content))
    for variable in [variable for variable in os.environ if variable.startswith(("XDG_", "CLAUDE", "CODEX", "GEMINI"))]:
        monkeypatch.delenv(variable)
    for variable, value in {
        "HOME": str(home),
        "LLM_USER_PATH": str(home / ".llm"),
        "ANTHROPIC_BASE_URL": stub.url,
        "GOOGLE_GEMINI_BASE_URL": stub.url,
        "OPENAI_API_BASE": f"{stub.url}/v1",
        "ANTHROPIC_API_KEY": "stub-key",
        "GEMINI_API_KEY": "stub-key",
        "OPENAI_API_KEY": "stub-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "PI_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(variable, value)

    def make(prompt: str, tools: str = "coding", **fields) -> Turn:
        return h.work_turn(project, prompt, tools=tools, **fields)

    stub.requests.clear()
    return make


def agent(name):
    return preset_agent(f"command:{name}:{MODELS[name]}" if name in MODELS else f"command:{name}")


def files(turn):
    """Return the contents of the project files by name, without the files that aider creates."""
    return {
        path.name: path.read_text()
        for path in sorted(turn.project.iterdir())
        if path.name != ".git" and ".aider" not in path.name
    }


def test_answer_usage_and_session_are_read_from_the_program_output(name, turn, stub):
    reply = agent(name).answer(turn("Say hello."))
    assert (reply.text, reply.cut) == (TEXT, "")
    assert bool(reply.meta.get("session")) == (name in (*SESSIONS, "codex"))
    if name in NO_USAGE:
        assert reply.usage is None
        return
    calls = sum(bool(request.tools) or name == "aider" for request in stub.requests)
    requests = len(stub.requests) if name == "gemini" else calls  # gemini counts the choice of a model
    assert (reply.usage.input, reply.usage.output) == (1000 * requests, 200 * requests)
    assert (reply.usage.cached, reply.usage.reasoning) == {
        "aider": (None, None),
        "claude": (300, None),
    }.get(name, (300 * requests, 50 * requests))
    assert (reply.usage.cost is None) == (name in ("aider", "codex", "gemini"))


def test_long_answer_is_returned_completely(name, turn):
    assert agent(name).answer(turn("[[long]]")).text == LONG_TEXT


def test_error_is_one_line_with_the_provider_message(name, turn):
    with pytest.raises(AgentError, match="the stub refuses with 400") as caught:
        agent(name).answer(turn("[[refuse 400]]"))
    assert caught.value.kind == "agent_exit"
    assert "\n" not in caught.value.what
    assert len(caught.value.what) < 200


def test_truncated_answer_is_not_treated_as_complete(name, turn):
    if name in ("claude", "codex"):
        with pytest.raises(AgentError, match=r"max(imum|_output_tokens)"):
            agent(name).answer(turn("[[cut]]"))
        return
    reply = agent(name).answer(turn("[[cut]]"))
    assert (reply.text, bool(reply.cut)) == (TEXT[:10], name not in SILENT_ABOUT_CUTS)


@pytest.mark.parametrize("tools", ["none", "readOnly"])
def test_read_only_program_cannot_write_files(name, turn, stub, tools):
    if tools not in PRESETS[name].scopes:
        pytest.skip(f"{name} is refused under {tools}")
    for prompt in TRIES:
        request_turn = turn(prompt, tools)
        agent(name).answer(request_turn)
        assert files(request_turn) == PAGE
        assert tools == "readOnly" or not any(request.tools for request in stub.requests)


def test_program_with_coding_tools_may_write_files(name, turn):
    if name in ("aider", "llm"):
        pytest.skip("aider has a format for edits instead of tools, and llm has no tools")
    request_turn = turn(TRIES[1])
    agent(name).answer(request_turn)
    assert files(request_turn) == PAGE | {"made.txt": "made\n"}


def test_tool_that_claude_refuses_is_noted(turn, tmp_path):
    if shutil.which("claude") is None:
        pytest.skip("claude is not installed")
    (tmp_path / "home" / ".claude" / "settings.json").write_text("{}")
    heard = []
    request_turn = turn("[[write ../outside.txt]]").reporting_to(heard.append)
    agent("claude").answer(request_turn)
    assert not (tmp_path / "outside.txt").exists()
    assert [event.text for event in heard if isinstance(event, NoteEvent)] == [
        "claude was not allowed to use Write for Build"
    ]


def test_later_turn_continues_a_copy_of_the_session(name, turn, stub):
    if name not in SESSIONS:
        pytest.skip(f"{name} does not continue a copy of a session")
    first = agent(name).answer(turn("Remember [[say the first answer]]"))
    said = (Message("user", "Remember"), Message("assistant", first.text))
    later = replace(turn("And now? [[say the second answer]]"), conversation=said, meta=first.meta)
    second = agent(name).answer(later)
    assert second.text == "the second answer"
    assert second.meta["session"] != first.meta["session"]
    assert "the first answer" in stub.requests[-1].text


def test_program_accepts_a_thinking_level(name, turn):
    assert agent(name).answer(turn("Say hello.", thinking="xhigh")).text == TEXT
