"""Test shell commands of models as real processes: their output, their end, and that no process remains."""

from __future__ import annotations

import shlex
import sys
import textwrap
import threading

import pytest

from materia_nb.agents.tools import MAX_RESULT_CHARS, file_tools
from materia_nb.agents.tools.file_tools import Toolbox
from process_helpers import STUBBORN_PAIR, assert_gone, pids_in

PAIR = shlex.join([sys.executable, "-S", "-E", "-c", textwrap.dedent(STUBBORN_PAIR)])


@pytest.fixture
def box(project):
    return Toolbox(project)


def run(box, command, **more):
    result = box.call("bash", {"command": command, **more})
    return result.ok, result.text


def test_shell_returns_output_and_exit_code(box):
    assert run(box, "echo one; echo two >&2") == (True, "exit code 0\nstdout:\none\nstderr:\ntwo")
    assert run(box, "echo one; exit 3") == (False, "exit code 3\nstdout:\none")
    assert run(box, "true") == (True, "exit code 0")
    assert run(box, "") == (True, "exit code 0")


def test_shell_runs_in_the_project_directory_with_empty_stdin(box, project):
    assert run(box, "pwd -P; wc -c | tr -d ' '") == (True, f"exit code 0\nstdout:\n{project.resolve()}\n0")


def test_command_that_looks_like_an_option_is_run(box):
    ok, text = run(box, "--version")
    assert not ok
    assert "not found" in text


def test_shell_is_bash_if_installed_and_sh_otherwise(box, monkeypatch):
    assert run(box, "echo $0")[1].endswith("bash")
    monkeypatch.setattr(file_tools.shutil, "which", lambda _: None)
    assert run(box, "echo $0")[1].endswith("\nsh")
    assert run(box, "-x 2> /dev/null; echo still") == (True, "exit code 0\nstdout:\nstill")


def test_control_characters_are_escaped(box):
    assert run(box, r"printf 'a\tb\r\n\033[31m\0\377'") == (
        True,
        "exit code 0\nstdout:\na\tb\n\\x1b[31m\\x00\ufffd",
    )


def test_result_names_the_signal_that_ended_the_command(box):
    assert run(box, "kill -9 $$") == (False, "ended by SIGKILL")


@pytest.mark.parametrize("command", ["\0", "\ud800", "true " + "x" * 4_000_000], ids=["NUL", "half a pair", "too long"])
def test_command_that_cannot_be_started_is_reported(box, command):
    ok, text = run(box, command)
    assert not ok
    assert text.startswith("The command could not be started: ")


def test_long_output_is_truncated_in_the_middle(box):
    ok, text = run(box, "seq 1000000; seq 1000000 >&2")
    assert ok
    assert len(text) <= MAX_RESULT_CHARS
    for part in text.partition("stdout:\n")[2].split("\nstderr:\n"):
        start, _, rest = part.partition("\n[... ")
        left, _, end = rest.partition(" bytes left out ...]\n")
        assert start.startswith("1\n2\n3\n")
        assert end.endswith("\n999999\n1000000")
        whole = sum(len(str(n)) + 1 for n in range(1, 1_000_001))
        assert len(start) + len(end) + 1 + int(left.replace(",", "")) == whole


def test_endless_output_is_stopped(box):
    ok, text = run(box, "yes", timeout_s=0.5)
    assert not ok
    assert text.startswith(
        "The command took longer than 0.5 s and was stopped, with every process that it started.\nstdout:\ny"
    )
    assert len(text) <= MAX_RESULT_CHARS


def test_process_tree_is_killed_at_the_timeout(box, project):
    ok, text = run(box, f"{PAIR} & echo begun; wait", timeout_s=1.5)
    assert not ok
    assert "begun" in text
    assert_gone(*pids_in(project / "pids", 2))


def test_process_tree_is_killed_when_the_cast_is_stopped(project):
    stop, results = threading.Event(), []
    box = Toolbox(project, stop)
    worker = threading.Thread(target=lambda: results.append(run(box, f"{PAIR} & echo begun; wait")))
    worker.start()
    pids = pids_in(project / "pids", 2)
    stop.set()
    worker.join(10)
    assert results == [(False, "The cast and the command were stopped.\nstdout:\nbegun")]
    assert_gone(*pids)


def test_background_processes_end_with_the_command(box, project):
    """The command waits for the id of the background process, which proves that the process was started."""
    ok, _ = run(box, "sh -c 'echo $$ > pids; exec sleep 60' & while [ ! -s pids ]; do :; done")
    assert ok
    assert_gone(*pids_in(project / "pids"))
