"""Test reading answers, token counts, cost and sessions from the output of programs.

The files in ``tests/data/programs`` have the format of real outputs, which ``make agents-test`` verifies.
"""

from __future__ import annotations

import dataclasses
import json
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents import AgentError, CommandAgent, Message
from materia_nb.agents.command_agent import PRESETS, JsonOutput, ProgramAnswer, preset_agent, read_aider
from materia_nb.agents.interface import Usage, UsageEvent

DATA = Path(__file__).parents[1] / "data" / "programs"
USED = {
    "aider": Usage(2400, 33, 0.0073),
    "claude": Usage(12 + 4300 + 18100, 431, 0.0412, 18100),
    "codex": Usage(24763, 122, None, 24448),
    "gemini": Usage(2000 + 4 + 500, 30 + 100 + 7, None, 1500, 100),
    "opencode": Usage(700 + 200 + 100 + 900, 40 + 10 + 9, 0.0035, 200 + 900, 10),
    "pi": Usage(700 + 300, 200, 0.00113, 300, 50),
}
SESSIONS = {
    "claude": "5f0c9a52-7d61-4f5e-9a53-0c1c2f1b7e11",
    "codex": "019a7c10-2b44-7aa1-9a0f-3a53d0c1e001",
    "opencode": "ses_44f9562d4ffe",
    "pi": "01a223b6-8643-7722-8f53-ad8788d2a237",
}


def printed(name):
    return (DATA / f"{name}.txt").read_text()


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put a program on PATH that prints the specified text and records its arguments."""

    def make(name, text, code=0, stderr=""):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.out").write_text(text)
        program = folder / name
        program.write_text(
            f"#!{sys.executable} -S\nimport json, sys\n"
            f"with open({str(folder / name)!r} + '.calls', 'a') as file:\n"
            "    file.write(json.dumps([sys.argv[1:], sys.stdin.read()]) + '\\n')\n"
            f"print(open({str(folder / name)!r} + '.out').read())\nsys.stderr.write({stderr!r})\nsys.exit({code})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder))
        return lambda: [json.loads(line) for line in (folder / f"{name}.calls").read_text().splitlines()]

    return make


@pytest.fixture
def turn(tmp_path):
    return h.work_turn(tmp_path, "write the page", tools="coding")


class TestPresetOutput:
    @pytest.mark.parametrize("name", USED)
    def test_answer_tokens_cost_and_session_are_read_from_the_output(self, name):
        said = PRESETS[name].parse(printed(name))
        assert (said.text, said.session, said.error) == ("The page is written.", SESSIONS.get(name, ""), "")
        assert said.usage.cost == (USED[name].cost and pytest.approx(USED[name].cost))
        assert said.usage == replace(USED[name], cost=said.usage.cost)

    @pytest.mark.parametrize(
        "name, message",
        [
            ("claude", "Credit balance is too low"),
            ("codex", "stream disconnected before completion"),
            ("gemini", "Quota exceeded"),
            ("opencode", "opencode failed: no key"),
            ("pi", "pi failed: 400: the stub refuses with 400"),
            ("aider", "aider failed: litellm.AuthenticationError: .* the stub refuses with 401 The API provider"),
        ],
    )
    @pytest.mark.parametrize("code", [0, 1])
    def test_reported_error_is_a_failure_whatever_the_exit_code(self, name, message, code, stand_in, turn):
        stand_in(name, printed(f"{name}-failed"), code)
        heard = []
        with pytest.raises(AgentError, match=message) as caught:
            preset_agent(f"command:{name}").answer(turn.reporting_to(heard.append))
        assert caught.value.kind == "agent_exit"
        known = {"claude": Usage(9, 0, 0.001, 0), "pi": Usage(0, 0, 0, 0)}
        assert heard == [UsageEvent(known.get(name, Usage(None, None)))]

    def test_error_on_stderr_is_reported_in_one_line_with_the_provider_message(self, stand_in, turn):
        stand_in("gemini", "", 144, stderr=printed("gemini-stderr"))
        with pytest.raises(AgentError) as caught:
            preset_agent("command:gemini").answer(turn)
        assert caught.value.what == "Command gemini failed: the stub refuses with 400"

    @pytest.mark.parametrize("name", ["aider", "opencode", "pi"])
    def test_truncated_answer_of_a_program_is_marked_as_truncated(self, name, stand_in, turn):
        text = {
            "aider": lambda: printed("aider-cut"),
            "opencode": lambda: printed("opencode").replace('"reason":"stop"', '"reason":"length"'),
            "pi": lambda: printed("pi").replace('"stopReason":"stop"', '"stopReason":"length"'),
        }[name]()
        stand_in(name, text)
        reply = preset_agent(f"command:{name}").answer(turn)
        assert (reply.text, reply.cut) == (
            "The page i" if name == "aider" else "The page is written.",
            "its maximum number of tokens",
        )

    def test_error_that_the_program_recovered_from_is_ignored(self, stand_in, turn):
        stand_in("pi", printed("pi-failed") + printed("pi"))
        assert preset_agent("command:pi").answer(turn).text == "The page is written."

    def test_large_partial_answers_of_pi_do_not_hide_its_final_answer(self, stand_in, turn):
        update = json.dumps({"type": "message_update", "text": "x" * 20_000}, separators=(",", ":")) + "\n"
        stand_in("pi", printed("pi").replace('{"type":"turn_end"', update * 1_000 + '{"type":"turn_end"'))
        assert preset_agent("command:pi").answer(turn).text == "The page is written."

    @pytest.mark.parametrize(
        "printed, used",
        [
            (
                '{"subtype": "error_max_turns", "total_cost_usd": 0.2, "usage": {"input_tokens": 5, "output_tokens": 6}}',
                Usage(5, 6, 0.2),
            ),
            ("plain text", Usage(None, None)),
        ],
    )
    def test_failed_turn_reports_its_usage_or_that_its_usage_is_unknown(self, printed, used, stand_in, turn):
        stand_in("claude", printed)
        heard = []
        with pytest.raises(AgentError, match=r"error_max_turns|not JSON") as caught:
            preset_agent("command:claude").answer(turn.reporting_to(heard.append))
        assert caught.value.kind == "malformed"
        assert heard == [UsageEvent(used)]

    def test_usage_totals_of_a_cast_are_the_sums_of_all_programs(self, stand_in, tmp_path):
        for name in USED:
            stand_in(name, printed(name))
        sockets = {
            f"Socket-{n}": {"materia": "Say", "edges": [{"when": "always", "to": f"Socket-{n + 1}"}]}
            for n in range(1, len(USED))
        }
        sockets[f"Socket-{len(USED)}"] = {"materia": "Say"}
        config = {
            "materia": {"Say": {"prompt": "Say it.", "tools": "coding"}},
            "loadouts": {"All": {"entry": "Socket-1", "sockets": sockets}},
        }
        (tmp_path / "loadout.json").write_text(json.dumps(config))
        wb = Workbench(tmp_path)
        wb.load(tmp_path / "loadout.json")
        agents = {f"Socket-{n}": f"command:{name}" for n, name in enumerate(USED, 1)}
        cast = wb.cast("a page", agents=agents)
        assert cast.run() == "complete"
        used = cast.now.usage
        assert (used.input, used.output) == (
            sum(u.input for u in USED.values()),
            sum(u.output for u in USED.values()),
        )
        assert round(used.cost, 5) == round(0.0073 + 0.0412 + 0.0035 + 0.00113, 5)
        assert (used.uncounted, used.unpriced) == (0, 2), "codex and gemini report no cost: unknown, not zero"
        wb.close()


class TestProgramArguments:
    @pytest.mark.parametrize(
        "tools, scope",
        [("none", "none"), ((), "none"), ("readOnly", "readOnly"), (("read", "grep"), "readOnly")],
    )
    @pytest.mark.parametrize("name", PRESETS)
    def test_program_that_cannot_enforce_tool_limits_is_refused_unless_allowed(self, name, tools, scope, turn):
        preset, turn = PRESETS[name], dataclasses.replace(turn, tools=tools, model="small")
        allowed = preset_agent(f"command:{name}+tools")
        if scope in preset.scopes:
            agent = preset_agent(f"command:{name}")
            assert agent.command(turn) == allowed.command(turn)
            assert agent.environment(turn) == {**preset.env, **preset.scopes[scope].env}
            assert set(preset.scopes[scope].args) <= set(agent.command(turn)) or name == "pi"
            return
        assert set(preset.scopes["readOnly"].args) <= set(allowed.command(turn))
        with pytest.raises(AgentError, match=f"cannot be limited to the tools of Build \\(tools: {scope}\\)") as caught:
            preset_agent(f"command:{name}").command(turn)
        assert caught.value.kind == "tools_not_held"
        assert f"command:{name}+tools" in caught.value.hint

    def test_refused_program_is_not_started(self, tmp_path, monkeypatch):
        program = tmp_path / "codex"
        program.write_text(f"#!{sys.executable} -S\nopen({str(tmp_path / 'made.txt')!r}, 'w')\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        cast = h.start(tmp_path / "p", h.chain_config(1), preset_agent("command:codex"))
        assert cast.run() == "failed"
        assert cast.failure.kind == "tools_not_held"
        assert not (tmp_path / "made.txt").exists()
        second_cast = h.start(tmp_path / "q", h.chain_config(1), preset_agent("command:codex+tools"))
        second_cast.run()
        assert (tmp_path / "made.txt").exists()

    @pytest.mark.parametrize("preset, lane", [("claude", ""), ("claude+tools", ""), ("claude", "docs")])
    def test_file_change_by_a_read_only_program_fails_the_turn(self, preset, lane, tmp_path, stand_in, turn):
        stand_in("claude", printed("claude"))
        writes = "\nfor name in ('b/new.txt', 'old.txt', 'lesson.ipynb', '.git/index'): open(name, 'w').write('more')\n"
        writes += "__import__('os').remove('gone.txt')\n"
        program = tmp_path / "bin" / "claude"
        program.write_text(program.read_text().replace("\nprint(", f"{writes}print("))
        project = tmp_path / "project"
        for name in ("b/", ".git/", "old.txt", "gone.txt", "same.txt"):
            path = project / name
            path.mkdir(parents=True) if name.endswith("/") else path.write_text("as it was")
        turn, heard = dataclasses.replace(turn, tools="readOnly", project=project, lane=lane), []
        agent = preset_agent(f"command:{preset}")
        if lane or agent.any_tools:
            assert agent.answer(turn).text == "The page is written."
            return
        with pytest.raises(AgentError, match="only read") as caught:
            agent.answer(turn.reporting_to(heard.append))
        assert caught.value.what.endswith(
            "although the materia Build allows only reading: b/new.txt, gone.txt, old.txt"
        )
        assert caught.value.kind == "wrote_read_only"
        assert "back N --files" in caught.value.hint
        assert [spent.usage for spent in heard] == [agent.parse(printed("claude")).usage]

    def test_tools_denied_to_a_program_are_noted(self, stand_in, turn):
        heard, denials = [], [{"tool_name": "Bash", "tool_input": {}}, {"tool_name": "Bash"}, {"tool_name": "Write"}]
        stand_in("claude", json.dumps({**json.loads(printed("claude")), "permission_denials": denials}))
        turn = dataclasses.replace(turn, tools="coding").reporting_to(heard.append)
        preset_agent("command:claude").answer(turn)
        assert [event.text for event in heard] == ["claude was not allowed to use Bash, Write for Build"]

    def test_file_written_by_a_failed_read_only_program_is_reported(self, tmp_path, stand_in, turn):
        stand_in("claude", printed("claude"))
        program, project = tmp_path / "bin" / "claude", tmp_path / "project"
        project.mkdir()
        program.write_text(f"#!{sys.executable} -S\nopen('new.txt', 'w')\nraise SystemExit('out of tokens')\n")
        with pytest.raises(AgentError, match=r"allows only reading: new\.txt") as caught:
            preset_agent("command:claude").answer(dataclasses.replace(turn, tools="readOnly", project=project))
        assert caught.value.kind == "wrote_read_only"
        assert "out of tokens" in str(caught.value.__cause__)

    @pytest.mark.parametrize(
        "name, level, arguments",
        [
            ("claude", "minimal", ["--effort", "low"]),
            ("claude", "max", ["--effort", "max"]),
            ("codex", "max", ["--config", "model_reasoning_effort=xhigh"]),
            ("pi", "none", ["--thinking", "off"]),
            ("aider", "xhigh", ["--reasoning-effort", "high"]),
            ("claude", "on", []),
            ("claude", "--dangerous", []),
            ("gemini", "high", []),
        ],
    )
    def test_program_receives_the_nearest_thinking_level_that_it_supports(self, name, level, arguments, turn):
        plain = preset_agent(f"command:{name}").command(turn)
        command = preset_agent(f"command:{name}").command(dataclasses.replace(turn, thinking=level))
        assert [argument for argument in command if argument not in plain] == arguments

    @pytest.mark.parametrize(
        "tools, argument",
        [
            (("read", "my_tool"), "read,my_tool,mcp__none"),
            (("read", "--approve"), "read,grep,find,ls,mcp__none"),
            ((), "mcp__none"),
        ],
    )
    def test_pi_receives_exactly_the_tools_that_the_materia_names(self, tools, argument, turn):
        command = preset_agent("command:pi").command(dataclasses.replace(turn, tools=tools))
        assert command[command.index("--tools") + 1] == argument

    @pytest.mark.parametrize("tools", ["coding", ("read", "edit"), ("bash",)])
    def test_tools_that_change_files_enable_the_edit_options_of_the_program(self, tools, turn):
        turn = dataclasses.replace(turn, tools=tools)
        assert preset_agent("command:claude").command(turn)[-2:] == ("--permission-mode", "acceptEdits")
        assert preset_agent("command:codex").command(turn) == (
            *("codex", "exec", "--json", "--sandbox", "workspace-write"),
        )

    def test_schema_is_passed_to_the_program(self, turn):
        schema = {"type": "object", "properties": {"satisfied": {"type": "boolean"}}}
        command = preset_agent("command:claude").command(dataclasses.replace(turn, schema=schema))
        assert json.loads(command[command.index("--json-schema") + 1]) == schema

    def test_schema_file_exists_while_the_program_runs(self, stand_in, turn, tmp_path):
        stand_in("codex", "")
        program = tmp_path / "bin" / "codex"
        program.write_text(
            f"#!{sys.executable} -S\nimport json, sys\n"
            "path = sys.argv[sys.argv.index('--output-schema') + 1]\n"
            "item = {'type': 'agent_message', 'text': path + ' ' + open(path).read()}\n"
            "print(json.dumps({'type': 'item.completed', 'item': item}))\n"
        )
        reply = preset_agent("command:codex").answer(dataclasses.replace(turn, schema={"type": "object"}))
        path, schema = reply.text.split(" ", 1)
        assert json.loads(schema) == {"type": "object"}
        assert not Path(path).exists()

    def test_object_that_matches_the_schema_becomes_the_answer(self):
        said = PRESETS["claude"].parse('{"result": "Done.", "structured_output": {"satisfied": true}}')
        assert said.text == '{"satisfied":true}'

    @pytest.mark.parametrize("name, option", [("claude", "--resume"), ("opencode", "--session"), ("pi", "--fork")])
    def test_later_turn_continues_the_session_with_the_new_prompt_only(self, name, option, stand_in, turn):
        calls = stand_in(name, printed(name))
        agent = preset_agent(f"command:{name}")
        first = agent.answer(turn)
        later = dataclasses.replace(
            turn,
            kind="repair",
            prompt="as JSON",
            conversation=(Message("user", turn.prompt), Message("assistant", first.text)),
            meta=first.meta,
        )
        agent.answer(later)
        (_, asked), (arguments, messages) = calls()
        assert (asked, messages) == ("write the page", "as JSON")
        assert arguments[arguments.index(option) + 1] == SESSIONS[name]

    @pytest.mark.parametrize(
        "meta", [{}, {"program": "codex", "session": "abc"}, {"program": "claude", "session": "--dangerous"}]
    )
    def test_session_of_another_program_is_not_used(self, meta, stand_in, turn):
        calls = stand_in("claude", printed("claude"))
        later = dataclasses.replace(
            turn,
            prompt="again",
            conversation=(Message("user", "do"), Message("assistant", "done")),
            meta=meta,
        )
        preset_agent("command:claude").answer(later)
        ((arguments, messages),) = calls()
        assert "--resume" not in arguments
        assert messages.startswith("## User\n\ndo")

    def test_session_survives_a_resume(self, stand_in, tmp_path):
        calls = stand_in("claude", printed("claude"))
        config = {
            "materia": {"Judge": {"prompt": "Judge.", "tools": "none", "multiTurn": True}},
            "loadouts": {"One": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Judge"}}}},
        }
        project = tmp_path / "project"
        project.mkdir()
        (project / "loadout.json").write_text(json.dumps(config))
        wb = Workbench(project)
        wb.load(project / "loadout.json")
        cast = wb.cast("a page", agents={"*": "command:claude"})
        cast.run()
        cast.close()
        resumed = wb.resume(cast.id)
        resumed.agents.set("*", "command:claude")
        resumed.refine("shorter")
        assert [SESSIONS["claude"] in arguments for arguments, _ in calls()] == [False, True]
        assert calls()[1][1] == "shorter"
        wb.close()


PRINTED = '{"out": {"said": "Fine."}, "n": {"in": 3, "out": 4}, "usd": 0.25, "bad": null}'
PATHS = {"usage": {"input": "$.n.in", "output": "$.n.out"}, "cost": "$.usd", "error": "$.bad"}


class TestCustomProgramOutput:
    def agent(self, text, **paths):
        return CommandAgent([sys.executable, "-S", "-c", f"print({text!r})"], parse=JsonOutput(**paths))

    def test_output_fields_are_read_through_the_configured_paths(self, turn):
        reply = self.agent(PRINTED, answer="$.out.said", **PATHS).answer(turn)
        assert (reply.text, reply.usage) == ("Fine.", Usage(3, 4, 0.25))

    def test_unreported_usage_is_unknown(self, turn):
        assert self.agent('{"a": 1}', answer="$.a", **PATHS).answer(turn).usage is None
        assert self.agent('{"a": 1, "usd": 2}', answer="$.a", **PATHS).answer(turn).usage == Usage(None, None, 2)

    @pytest.mark.parametrize(
        "text, said",
        [("plain text", "is not JSON"), ('{"other": 1}', "no answer at \\$.a"), ("", "is not JSON")],
    )
    def test_unreadable_output_raises_a_clear_error(self, turn, text, said):
        with pytest.raises(AgentError, match=said) as caught:
            self.agent(text, answer="$.a").answer(turn)
        assert caught.value.kind == "malformed"

    def test_json_on_stderr_is_read_only_as_an_error_and_redacted(self, turn):
        def agent(report):
            code = f"import sys; sys.stderr.write({report!r})"
            argv = [sys.executable, "-S", "-c", code, "--api-key", "hunter2secret"]
            return CommandAgent(argv, parse=JsonOutput("$.result", error="$.error"))

        with pytest.raises(AgentError) as caught:
            agent('{\n"result": "a line of a log"}').answer(turn)
        assert caught.value.kind == "malformed"
        with pytest.raises(AgentError, match="bad key") as caught:
            agent('{\n"error": "bad key hunter2secret"}').answer(turn)
        assert "hunter2secret" not in str(caught.value)

    def test_nonzero_exit_status_takes_precedence_over_the_output(self, turn):
        agent = CommandAgent(
            [sys.executable, "-S", "-c", "import sys; sys.exit('no key')"], parse=JsonOutput("$.result")
        )
        with pytest.raises(AgentError, match="no key") as caught:
            agent.answer(turn)
        assert caught.value.kind == "agent_exit"

    @pytest.mark.parametrize(
        "paths, said",
        [
            ({"answer": "$["}, "is not a valid JSONPath"),
            ({"answer": "$.a", "usage": {"tokens": "$.n"}}, "Unknown kinds of usage in the usage paths: tokens"),
        ],
    )
    def test_invalid_output_path_is_refused_immediately(self, paths, said):
        with pytest.raises(AgentError, match=said):
            JsonOutput(**paths)

    def test_lines_that_are_not_json_are_skipped(self):
        read = JsonOutput("$[*].text", lines=True)
        assert read('warming up\n{"text": "a"}\n\n{"text": "b"}\n') == ProgramAnswer("b")


class TestAiderOutput:
    def test_usage_of_several_requests_is_summed(self):
        said = read_aider(
            "Tokens: 1.2k sent, 3.4k cache hit, 20 received. Cost: $0.01 message, $0.01 session.\nIt is.\n"
            "Tokens: 1,200 sent, 5 received. Cost: $0.02 message, $0.03 session.\n"
        )
        assert said.text == "It is."
        assert said.usage == Usage(2400, 25, pytest.approx(0.03))

    def test_aider_cost_is_unknown_if_it_reports_no_price(self):
        assert read_aider("Yes.\nTokens: 2.4k sent, 33 received.\n").usage == Usage(2400, 33, None)
        assert read_aider("Yes.\n") == ProgramAnswer("Yes.")

    def test_aider_answer_that_quotes_the_limit_message_is_not_truncated(self):
        quote = "The log says:\nModel foo has hit a token limit!\nSo ask again.\n"
        answer = read_aider(f"{quote}Tokens: 2.4k sent, 33 received.\n")
        assert answer == ProgramAnswer(quote.strip(), Usage(2400, 33, None))
        assert read_aider("It says: Model foo has hit a token limit!\n").cut == ""
