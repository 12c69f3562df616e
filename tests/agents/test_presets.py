"""Test the command presets with stand-ins for the known programs; each stand-in prints its arguments."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

import cast_helpers as h
from magics_helpers import new_shell
from materia_nb.agents import AgentError, agent_from
from materia_nb.agents.command_agent import PRESETS, PresetAgent, preset_agent
from materia_nb.magics.magic import next_words

PRINT_ARGUMENTS = "import json, sys; print(json.dumps({'args': sys.argv[1:], 'stdin': sys.stdin.read()}))"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put stand-ins for all known programs on PATH, and remove all other directories from it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for preset in PRESETS.values():
        program = folder / preset.argv[0]
        program.write_text(f"#!{sys.executable} -S\n{PRINT_ARGUMENTS}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def turn(tmp_path):
    return h.work_turn(tmp_path, "build it", tools="coding")


def ask_stand_in(text, turn):
    """Send a turn to a stand-in and return the arguments that it prints."""
    agent = agent_from(text)
    agent.parse = None
    return json.loads(agent.answer(turn).text)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_sends_the_prompt_on_stdin_and_the_model_as_an_argument(programs, turn, name):
    told = ask_stand_in(f"command:{name}:some/model:8b", turn)
    assert told["stdin"] == "build it"
    assert "some/model:8b" in told["args"]
    assert "build it" not in told["args"]
    assert "{model}" not in told["args"]
    assert ask_stand_in(f"command:{name}", turn)["args"] == list(preset_agent(f"command:{name}").command(turn)[1:])


@pytest.mark.parametrize(
    "name, args",
    [
        ("claude", ["-p", "--output-format", "json", "--model", "m", "--permission-mode", "acceptEdits"]),
        (
            "codex",
            ["exec", "--json", "--model", "m", "--sandbox", "workspace-write"],
        ),
        ("gemini", ["--skip-trust", "--output-format", "json", "--model", "m", "--approval-mode", "auto_edit"]),
        ("llm", ["--model", "m"]),
        ("opencode", ["run", "--format", "json", "--model", "m", "--agent", "build"]),
        ("pi", ["-p", "--mode", "json", "--model", "m", "--tools", "read,bash,edit,write,grep,find,ls"]),
    ],
)
def test_preset_inserts_the_model_argument_in_the_right_position(programs, turn, name, args):
    assert ask_stand_in(f"command:{name}", dataclasses.replace(turn, model="m"))["args"] == args


def test_model_of_the_agent_takes_precedence_over_the_model_of_the_materia(programs, turn):
    asked = dataclasses.replace(turn, model="theirs")
    assert ask_stand_in("command:llm:mine", asked)["args"][1] == "mine"
    assert ask_stand_in("command:llm", asked)["args"][1] == "theirs"


def test_reply_records_the_program_and_its_number_of_arguments(programs, turn):
    reply = agent_from("command:llm:mine").answer(turn)
    assert (reply.meta["program"], reply.meta["arguments"]) == ("llm", 2)


@pytest.mark.parametrize("model", ["--dangerously-skip-permissions", "-x", "a b", "a\nb", "", "a" * 201, "$(x)"])
def test_model_name_that_looks_like_an_option_is_refused(programs, turn, model):
    """A loadout from an untrusted source must not be able to add options to a command."""
    asked = dataclasses.replace(turn, model=model or "\t")
    with pytest.raises(AgentError, match="not the name of a model") as caught:
        agent_from("command:claude").answer(asked)
    assert caught.value.kind == "bad_model"


def test_invalid_model_is_refused_when_it_is_set():
    with pytest.raises(AgentError, match="not the name of a model"):
        agent_from("command:claude:--yes")


def test_unknown_preset_error_suggests_the_nearest_preset_and_lists_all_presets():
    with pytest.raises(AgentError) as caught:
        preset_agent("command:cluade")
    assert caught.value.kind == "unknown_preset"
    assert "did you mean 'claude'?" in caught.value.hint
    assert all(name in caught.value.what for name in PRESETS)


def test_preset_name_is_split_into_program_and_model():
    assert preset_agent("command:claude").name == "command:claude"
    assert preset_agent("command:llm:llama3:8b").name == "command:llm:llama3:8b"
    assert preset_agent("command:llm:llama3:8b").model == "llama3:8b"


def test_missing_preset_program_is_reported(turn, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentError, match="claude was not found") as caught:
        agent_from("command:claude").answer(turn)
    assert caught.value.kind == "agent_not_started"


def test_agent_verb_accepts_and_completes_presets(project, monkeypatch):
    monkeypatch.chdir(project)
    shell = new_shell()
    shell.run_line_magic("materia", "agent * command:pi:small")
    wb = shell.user_ns["wb"]
    assert isinstance(wb.agents.default, PresetAgent)
    assert wb.agents.default.model == "small"
    with pytest.raises(AgentError, match="command preset"):
        shell.run_line_magic("materia", "agent * command:cluade")
    assert {"person", "command:claude"} <= set(next_words(lambda: wb, ["agent", "Build"]))
    wb.close()


def test_documentation_lists_every_preset():
    page = (Path(__file__).parents[2] / "docs" / "agents-and-models.md").read_text()
    for preset in PRESETS.values():
        command = " ".join(preset.argv)
        row = f"| `command:{preset.name}` | {preset.about} | {preset.tested} | `{command}` |"
        assert row in page
