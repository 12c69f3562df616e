"""Test the program ``materia``, whose commands are the verbs of ``%materia`` with the same options and a few others."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tqdm

from magics_helpers import ASK
from materia_nb import Workbench, __version__
from materia_nb.loadout import read_text
from materia_nb.loadout.config_files import write_config
from materia_nb.loadout.layers import PROJECT_FILE
from materia_nb.magics.registry import SHELL, VERBS
from materia_nb.shell import terminal
from materia_nb.shell.commands import COMMANDS, main
from process_helpers import is_running, wait_for

WITH_PROCESS = {
    "activeLoadout": "Both",
    "loadouts": {
        "Both": {
            "entry": "Socket-1",
            "sockets": {
                "Socket-1": {"materia": "Say", "edges": [{"when": "always", "to": "Socket-2"}]},
                "Socket-2": {"materia": "Run"},
            },
        }
    },
    "materia": {
        "Say": {"tools": "none", "prompt": "Say it", "model": "openai:gpt-4o"},
        "Run": {"type": "utility", "command": ["python3", "-c", "print(1)"], "parse": "text"},
    },
}


@pytest.fixture
def bench(project, monkeypatch):
    """Return a project with the loadout ASK, which is the working directory of the program."""
    monkeypatch.chdir(project)
    wb = Workbench(project)
    document = read_text(ASK)
    materia = document.pop("materia")
    write_config(project / PROJECT_FILE, {"loadouts": {"Asks": document}, "materia": materia})
    return wb


def materia(capsys, *arguments):
    """Return a function that runs a command and returns its exit code, stdout and stderr."""
    code = main([str(argument) for argument in arguments])
    result = capsys.readouterr()
    return code, result.out, result.err


def test_every_verb_is_listed_once_for_the_terminal():
    listed = [name for names in SHELL.values() for name in names]
    assert sorted(listed) == sorted(VERBS), "words.toml [shell] lists every verb once"


@pytest.mark.parametrize("name", [name for given, names in SHELL.items() if given != "notebook" for name in names])
def test_command_has_options_and_help_of_its_verb(name):
    verb, command = VERBS[name], COMMANDS[name]
    assert set(verb.options) <= set(command.options)
    assert verb.summary in command.summary


def test_missing_command_shows_the_first_commands(capsys):
    code, out, _ = materia(capsys)
    assert code == 0
    for command in ("lessons DIR", "list loadouts", "check FILE", "run REQUEST", "steps", "--help"):
        assert f"  materia {command}" in out or f"\nmateria {command}" in out
    assert "00-quickstart" in out


def test_help_lists_every_command(capsys):
    code, out, _ = materia(capsys, "--help")
    assert code == 0
    assert all(f"  {name} " in out for name in ("check", "explore", "lessons", "list", "schema"))
    assert materia(capsys, "--version")[:2] == (0, f"{__version__}\n")


def test_help_of_a_command_names_its_options_but_no_magics(capsys):
    texts = [materia(capsys, *words)[1] for words in (["help", "list", "casts"], ["list", "casts", "--help"])]
    assert texts[0] == texts[1]
    assert "materia list casts [--name NAME]" in texts[0]
    assert "--project" in texts[0]
    assert "%materia" not in texts[0]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["lesons"], "did you mean 'lessons'?"),
        (["check", "--nope"], "option --nope does not exist"),
        (["run", "-n", "3"], "option -n does not exist"),
        (["explore", "--items"], "needs a value"),
        (["explore", "Asks", "--items", "x"], "range of list lengths"),
        (["step", "many"], "must be a whole number"),
        (["run", "hi", "--agent", "Judge"], "write `--agent NAME=AGENT`"),
        (["compare"], "A is missing"),
        (["status", "--project", "nowhere"], "directory nowhere does not exist"),
        (["edit", "prompt", "task"], "--body FILE"),
        (["edit", "items", "--body", "nowhere"], "cannot be read"),
    ],
)
def test_invalid_usage_exits_with_code_2(arguments, expected, bench, capsys):
    code, _, err = materia(capsys, *arguments)
    assert code == 2
    assert expected in err


def test_cast_can_be_run_answered_shown_and_exported(bench, capsys, project):
    code, out, _ = materia(capsys, "run", "a", "page", "--loadout", "Asks")
    assert code == 4, "it waits for somebody, and nobody is there"
    assert "needs an answer" in out
    code, _, err = materia(capsys, "reply", '{"satisfied": 3}')
    assert code == 1
    assert "satisfied" in err
    assert materia(capsys, "reply", '{"satisfied": true}')[0] == 0
    code, out, _ = materia(capsys, "run", "--agent", f"*=command {sys.executable} -c print(5)")
    assert code == 0
    assert "complete after 2 steps" in out
    assert "So edge 1 (✓) leads to Teller." in materia(capsys, "why", "1")[1]
    assert materia(capsys, "why", "-1")[0] == 0, "a negative number is not an option"
    assert materia(capsys, "doctor", "-1")[1].startswith("The journal is intact up to")
    assert materia(capsys, "status", "--cast", "-1")[0] == 0
    assert materia(capsys, "label", "mine", "--verdict", "good")[0] == 0
    assert materia(capsys, "status", "--cast", "mine")[0] == 0
    code, out, _ = materia(capsys, "list", "casts", "--json")
    assert (code, [one["name"] for one in json.loads(out)["value"]]) == (0, ["mine"])
    assert materia(capsys, "export", "page", "here.html")[0] == 0
    assert (project / "here.html").is_file()


def test_play_command_writes_a_page(bench, capsys, tmp_path):
    page = tmp_path / "play.html"
    code, out, _ = materia(capsys, "play", "Plan-Build-Eval", str(page), "--items", "2")
    assert (code, out.strip()) == (0, f"Open this page to play Plan-Build-Eval: {page}")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_unfinished_cast_names_the_agents_for_the_next_command(bench, capsys):
    failing = f"Judge=command {sys.executable} -c 1/0"
    out = materia(capsys, "run", "x", "--loadout", "Asks", "--agent", failing)[1]
    again = f"Continue with `materia retry --agent '{failing}'`."
    assert out.rstrip().endswith(f"A command uses only the agents that it names. {again}")
    out = materia(capsys, "status")[1]
    assert "Continue with `materia retry --agent '*=AGENT'`." in out
    assert "Continue with `materia run --agent '*=AGENT'`." in materia(capsys, "retry")[1]
    out = materia(capsys, "reply", '{"satisfied": true}')[1]
    assert "Continue with `materia run" in out
    out = materia(capsys, "run", "--agent", f"*=command {sys.executable} -c print(5)")[1]
    assert "complete after" in out
    assert "A command uses only" not in out


@pytest.mark.parametrize("words", [["Asks", "--strict", "--format", "json"], ["--format=json", "Asks", "--strict"]])
def test_options_of_check_can_follow_a_name(words, bench, capsys):
    code, out, _ = materia(capsys, "check", *words)
    assert (code, json.loads(out)["checked"]) == (0, ["Asks"])


def test_unknown_command_gets_a_suggestion(bench, capsys):
    code, _, problem = materia(capsys, "autofix", "Asks")
    assert (code, "check --fix" in problem) == (2, True)


def test_json_contains_the_status_of_the_cast(bench, capsys):
    code, out, _ = materia(capsys, "run", "a page", "--loadout", "Asks", "--json")
    result = json.loads(out)
    assert (code, result["ok"], result["cast"]["status"], result["cast"]["next"]) == (
        4,
        False,
        "waiting",
        "Socket-1",
    )
    code, out, _ = materia(capsys, "explore", "odds", "Asks", "--satisfied", "0.7", "--json")
    assert json.loads(out)["value"]["ends"] == {"complete": 1.0}
    code, out, _ = materia(capsys, "why", "9", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (1, "no_step")


FAILING = ["run", "x", "--loadout", "Asks", "--agent", "*=command no-such-program-here"]


def test_exit_codes_distinguish_problems_invalid_usage_failure_and_waiting(bench):
    lines = {
        0: ["check", "Asks"],
        1: ["estimate", "Asks", "--most", "10"],
        2: ["run", "x", "--loadout", "Nowhere"],
        3: FAILING,
        4: ["run", "x", "--loadout", "Asks"],
    }
    ran = {code: run_program(*words, stdin=subprocess.DEVNULL) for code, words in lines.items()}
    assert {code: process.returncode for code, process in ran.items()} == {code: code for code in lines}
    raised = [run_program(*words, "--raise", stdin=subprocess.DEVNULL) for words in (FAILING, lines[4])]
    assert [process.returncode for process in raised] == [3, 4]
    assert b"no-such-program-here" in raised[0].stderr
    assert b"is waiting for a person" in raised[1].stderr


@pytest.mark.parametrize("agent", ["*=command:no-such-preset", "*=opnai:gpt", "Nobody=person"])
def test_unknown_agent_is_reported_as_invalid_usage(agent, bench, capsys):
    assert materia(capsys, "run", "x", "--loadout", "Asks", "--agent", agent)[0] == 2


def test_command_that_does_not_run_the_cast_succeeds_after_a_failure(bench, capsys):
    assert materia(capsys, *FAILING)[0] == 3
    assert materia(capsys, "label", "broken")[0] == 0
    assert materia(capsys, "status")[0] == 0


def test_interrupted_command_exits_with_code_130(bench, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "findings_of", lambda *_, **__: interrupt())
    code, _, problem = materia(capsys, "check")
    assert (code, "interrupted" in problem) == (130, True)


def test_cell_body_is_read_from_a_file(bench, capsys, project):
    materia(capsys, "cast", "a page", "--loadout", "Asks")
    (project / "items.yaml").write_text("- {title: One, context: first}\n")
    assert materia(capsys, "edit", "items", "--body", "items.yaml")[0] == 0
    assert "One" in materia(capsys, "state", "workItems")[1]


def test_comparison_of_different_casts_exits_with_code_1(bench, capsys):
    materia(capsys, "cast", "one", "--loadout", "Asks")
    assert materia(capsys, "compare", "-1", "-1")[0] == 0
    assert materia(capsys, "compare", "Asks", "Full-Auto")[0] == 1


def test_estimate_that_is_unknown_or_above_the_limit_exits_with_code_1(bench, capsys):
    assert materia(capsys, "estimate", "Asks", "--most", "100000")[0] == 0
    code, _, err = materia(capsys, "estimate", "Asks", "--most", "10")
    assert (code, "more than 10" in err) == (1, True)
    code, _, err = materia(capsys, "estimate", "Asks", "--most", "100 USD")
    assert (code, "is unknown" in err) == (1, True)


def test_project_loadout_is_the_default(bench, capsys, project):
    assert materia(capsys, "estimate")[1].startswith("Asks: ")
    assert materia(capsys, "estimate", "--most", "1 turns")[0] == 1
    config = project / ".pi" / "pi-materia.json"
    document = json.loads(config.read_text())
    config.write_text(json.dumps(document | {"activeLoadout": "Ask"}))
    assert materia(capsys, "estimate")[1].startswith("Ask: ")


def test_terminal_asks_until_the_answer_is_valid(bench, capsys, monkeypatch):
    typed = iter(['{"satisfied": 3}', ".", '{"satisfied": true}', ".", "two", "lines", "."])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr(terminal, "can_ask", lambda *, as_json: True)
    code, out, err = materia(capsys, "run", "x", "--loadout", "Asks")
    assert code == 0
    assert "complete" in out
    assert "satisfied must be" in err
    assert bench.open("-1").steps[-1].output == "two\nlines"


@pytest.mark.parametrize("typed, decision", [(["maybe", "always"], "always"), (["yes"], "once"), ([""], "denied")])
def test_terminal_asks_for_approval_until_the_answer_is_valid(typed, decision, monkeypatch):
    decisions = []
    approvals = SimpleNamespace(
        approve=lambda *, always: decisions.append("always" if always else "once"),
        deny=lambda reason: decisions.append("denied"),
    )
    answers = iter(typed)
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    terminal._ask_approval(SimpleNamespace(approvals=approvals))
    assert (decisions, list(answers)) == ([decision], [])


def test_end_of_input_leaves_the_cast_waiting(bench, capsys, monkeypatch):
    def ended(_):
        raise EOFError

    monkeypatch.setattr("builtins.input", ended)
    monkeypatch.setattr("materia_nb.shell.terminal.can_ask", lambda *, as_json: True)
    assert materia(capsys, "run", "x", "--loadout", "Asks")[0] == 4
    assert bench.open("-1").status == "waiting"


# -- what tests cannot do --------------------------------------------------------------

WATCHED = """
import sys
REFUSED = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "socket.connect", "socket.getaddrinfo"}
def refuse(event, _):
    if event in REFUSED:
        raise SystemExit(f"it tried {event}")
from materia_nb.shell.commands import main
sys.addaudithook(refuse)
codes = [int(main(line.split())) for line in sys.stdin.read().splitlines()]
print(codes)
"""


def test_verbs_that_only_check_start_no_processes_and_call_no_agents(project):
    (project / "both.json").write_text(json.dumps(WITH_PROCESS))
    arguments = {"play": "both.json play.html", "explore changes": "Both Both --file both.json"}
    arguments["explore worth"] = "Plan-Build-Eval --writer 0.7 --critics Eval=0.8/0.1"
    lines = [f"{name} {arguments.get(name, 'both.json')}" for name in SHELL["tests"]]
    assert len(lines) >= 6
    expected = run_watched(project, lines)
    assert expected.stdout.splitlines()[-1] == str([0] * len(lines)), expected.stderr


def test_test_helper_detects_started_processes(project):
    config = {
        **WITH_PROCESS,
        "loadouts": {"Both": {"entry": "Socket-2", "sockets": {"Socket-2": {"materia": "Run"}}}},
    }
    (project / "both.json").write_text(json.dumps(config))
    expected = run_watched(project, ["run x --file both.json"])
    assert "it tried" in expected.stderr + expected.stdout


def run_watched(project, lines):
    return subprocess.run(
        [sys.executable, "-c", WATCHED],
        input="\n".join(lines),
        cwd=project,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": "sk-not-a-key"},
    )


@pytest.mark.parametrize("door", ["agent", "agents", "casts", "cast", "run", "quests", "sweep", "pin"])
def test_workbench_for_checks_has_no_agents_or_casts(door, project):
    from materia_nb.cast.workbench import DryBench

    assert not hasattr(DryBench(project), door)


# -- JSON, of every verb ---------------------------------------------------------------

SAID = {
    "blame": "blame satisfied", "compare": "compare -1 -1", "export page": "export page p.html",
    "export recording": "export recording r.json", "handoff": "handoff 1", "prompt": "prompt 1", "why": "why 1",
    "steps ask": "steps ask $.satisfied", "break": "break Socket-1", "label": "label kept", "back": "back 1",
    "edit budget": "edit budget 100", "edit items": "edit items --body items.yaml", "edit set": "edit set mood 1",
    "edit output": "edit output {}", "edit redefine": "edit redefine Judge",
    "edit remember": "edit remember Judge", "edit prompt": "edit prompt task Say.", "fork": "fork 1",
    "refine": "refine shorter", "reply": "reply x", "skip": "skip why", "cast": "cast rain", "copy": "copy Ask Mine",
    "delete": "delete -1 --yes", "link": "link Asks Ask -- go", "quest add": "quest add rain", "quest move": "quest move 1 top",
    "quest remove": "quest remove 1", "quest requeue": "quest requeue 1", "sweep": "sweep rain", "check": "check Asks",
    "estimate": "estimate Asks", "explore": "explore Asks", "explore odds": "explore odds Asks",
    "explore changes": "explore changes Asks Ask", "explore prompts": "explore prompts Asks", "explore simulate": "explore simulate Asks --n 10",
    "explore worth": "explore worth Plan-Build-Eval --writer 0.7 --critics Eval=0.8/0.1",
    "play": "play Asks play.html",
}  # fmt: skip
"""Command lines for the verbs that need arguments."""
REFUSED = {
    "accept", "approve", "deny", "edit output", "edit redefine", "edit remember", "edit prompt", "edit undo", "quest move",
    "quest remove", "quest requeue", "refine", "retry", "skip",
}  # fmt: skip
"""Verbs that are refused in this test because its cast has nothing to which they apply."""


@pytest.mark.parametrize(
    "name",
    [name for given, names in SHELL.items() if given != "notebook" for name in names],
)
def test_json_of_every_verb_agrees_with_its_exit_code(name, bench, capsys, project, monkeypatch):
    # The tests have loaded the modules of a kernel, with which tqdm would draw widgets.
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)
    bench.cast("rain", agents={"*": lambda: {"satisfied": True}}, loadout="Asks").run(steps=1)
    bench.close()
    (project / "items.yaml").write_text("- {title: One, context: first}\n")
    words = SAID.get(name, name).split()
    code, out, err = materia(capsys, *name.split(), "--json", *words[len(name.split()) :])
    result = json.loads(out)
    assert result["ok"] == (code == 0), err
    assert " at 0x" not in out, "an object of Python, which means nothing in JSON"
    assert ("error" in result) == (name in REFUSED), result


def test_comparison_fails_for_changed_behaviour_and_succeeds_for_equal_behaviour(project, capsys):
    """The exit codes are those of ``compare``."""
    assert materia(capsys, "explore", "changes", "Ask", "Ask")[0] == 0
    code, out, _ = materia(capsys, "explore", "changes", "Plan-Build-Eval", "Full-Auto")
    assert code == 1
    assert "A continues at" in out


def test_json_contains_the_data_of_a_cast(bench, capsys):
    bench.cast("rain", agents={"*": lambda: {"satisfied": True}}, loadout="Asks").run(steps=1)
    bench.close()

    def result(*words):
        return json.loads(materia(capsys, *words, "--json")[1])

    cast = result("status")["cast"]
    assert (cast["route"], json.loads(cast["output"])) == (["Socket-1"], {"satisfied": True})
    (step,) = result("steps")["value"]
    assert step == result("handoff", "1")["value"]
    assert (step["handoff"], step["next"], type(step["seconds"])) == ({"satisfied": True}, "Socket-2", float)
    assert result("usage")["value"][0]["usage"]["input"] is None, "unknown, not 0"
    assert result("replay")["value"][0]["route"] == "same"
    assert result("explore", "Asks")["value"]["ends"] == {"complete": []}


@pytest.mark.parametrize("line", ["steps ask", "why --nope", "nosuch", "list", "sweep"])
def test_invalid_usage_is_reported_as_json(line, bench, capsys):
    code, out, _ = materia(capsys, *line.split(), "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "usage")


def run_program(*arguments, **options):
    """Run the program in a separate process."""
    command = [sys.executable, "-m", "materia_nb", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, **{"stdout": subprocess.PIPE} | options)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp437", "gbk", "ascii"])
def test_non_utf8_output_replaces_unencodable_characters(encoding, bench):
    ran = run_program("grid", "Asks", env={**os.environ, "PYTHONIOENCODING": encoding})
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"Socket-1" in ran.stdout


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_escapes_unencodable_characters(encoding, bench):
    name = b"\xff\xe2\x94\x80"  # half a surrogate, and a line
    ran = run_program("grid", name, "--json", env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"})
    assert ran.returncode == 2
    assert "\u2500" in json.loads(ran.stdout.decode(encoding))["error"]["what"]


@pytest.mark.parametrize(
    "words",
    [["grid", "Asks"], ["grid", "Asks", "--json"], ["grid", "None", "--json"], ["check"], ["--help"], ["-V"]],
)
def test_full_disk_is_reported_in_one_line(words, bench):
    with Path("/dev/full").open("wb") as full:
        ran = run_program(*words, stdout=full)
    assert (ran.returncode, ran.stderr) == (1, b"The output could not be written: No space left on device.\n")


@pytest.mark.parametrize("words", ["resume -1", "define loadout T", "use Ask"])
def test_notebook_command_in_a_terminal_names_its_replacement(words, capsys):
    assert main(words.split()) == 2
    complaint = capsys.readouterr().err
    assert f"{words.split()[0]} works only in a notebook" in complaint
    assert "--file" in complaint
    assert "--cast" in complaint


def start_with_slow_agent(project, number, disposition):
    """Start a cast whose agent answers once the file ``finish`` exists beside the project; return the process and agent id.

    The program starts with the given disposition of a signal, whatever started the tests.
    """
    lines = ["import os, time", "open('../pid', 'w').write(str(os.getpid()))", "os.rename('../pid', '../started')"]
    lines += ["while not os.path.exists('../finish'): time.sleep(0.01)", "print('done')"]
    (project / "agent.py").write_text("\n".join(lines))
    agent = f"*=command {sys.executable} {project / 'agent.py'}"
    start = f"import signal, sys; signal.signal({number:d}, signal.{disposition})"
    start += "; from materia_nb.shell.commands import main; sys.exit(main())"
    words = [sys.executable, "-c", start, "run", "a page", "--loadout", "Ask", "--agent", agent]
    process = subprocess.Popen(words, cwd=project, stderr=subprocess.PIPE, text=True)
    wait_for((project.parent / "started").exists, 30)
    return process, int((project.parent / "started").read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stopped_command_ends_its_agents_first(project, number):
    """CI systems send SIGTERM, and a closed terminal SIGHUP; a program that edits files must not go on alone."""
    process, agent = start_with_slow_agent(project, number, "SIG_DFL")
    process.send_signal(number)
    _, problem = process.communicate(timeout=30)
    assert (process.returncode, "interrupted" in problem) == (130, True)
    assert not is_running(agent)


def test_command_started_with_nohup_continues_after_its_terminal_is_closed(project):
    process, _ = start_with_slow_agent(project, signal.SIGHUP, "SIG_IGN")
    process.send_signal(signal.SIGHUP)
    (project.parent / "finish").touch()
    _, problem = process.communicate(timeout=30)
    assert process.returncode == 0, problem


def test_git_diff_shows_what_a_commit_changes_in_casts(bench, monkeypatch, tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    (tmp_path / "materia").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m materia_nb "$@"\n')
    (tmp_path / "materia").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    document = json.loads(json.dumps(WITH_PROCESS))
    git("init", "-q")
    Path(".gitattributes").write_text("*.loadout.json diff=materia\n")
    git("config", "diff.materia.command", documented_driver())
    write_config("both.loadout.json", document)
    git("add", ".")
    git("commit", "-q", "-m", "Add a loadout")
    write_config("both.loadout.json", {**document, "description": "Not a change of casts"})
    assert "Every cast takes the same route" in git("diff")
    document["loadouts"]["Both"]["sockets"]["Socket-1"]["edges"][0]["to"] = "end"
    write_config("both.loadout.json", document)
    assert "A continues at" in git("diff")


def documented_driver():
    """Return the setting of Git's diff driver that the documentation recommends."""
    text = (Path(__file__).parents[2] / "docs/compare-and-test.md").read_text(encoding="utf-8")
    return re.search(r"git config diff\.materia\.command '(.*)'", text)[1]
