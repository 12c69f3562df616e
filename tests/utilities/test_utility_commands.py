"""Test how the program or script of a utility is found (R24, R25)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from builders import resolved_materia
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import Materia
from materia_nb.utilities.utility_step import INTERPRETERS, resolve_command


def utility(command: list[str] | None = None, folder: Path | None = None, script: Any = None) -> Materia:
    return resolved_materia(command=tuple(command or ()), script=script, folder=folder)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/x.py", "tool"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("interpreter", [*sorted(INTERPRETERS), "/usr/bin/python3"])
def test_script_next_to_the_config_is_found_after_an_interpreter(config, interpreter):
    assert resolve_command(utility([interpreter, "scripts/x.py", "scripts/x.py"], config)) == [
        interpreter,
        str(config / "scripts/x.py"),
        "scripts/x.py",
    ]


@pytest.mark.parametrize(
    "before", [["python3", "-u"], ["python3", "-I", "-B"], ["deno", "run", "--allow-read"], ["bun", "run"]]
)
def test_options_before_the_script_are_skipped(config, before):
    assert resolve_command(utility([*before, "scripts/x.py"], config)) == [
        *before,
        str(config / "scripts/x.py"),
    ]


@pytest.mark.parametrize("name", ["tool", "./tool", "scripts/../tool"])
def test_program_next_to_the_config_is_found(config, name):
    found, argument = resolve_command(utility([name, "a"], config))
    assert Path(found).is_absolute()
    assert Path(found).samefile(config / "tool")
    assert argument == "a"


@pytest.mark.parametrize(
    "command",
    [
        ["python3", "scripts/missing.py"],
        ["python3", "-c", "scripts/x.py"],
        ["python3", "-c", "print('" + "x" * 5000 + "')"],
        ["python3", "-m", "tool"],
        ["node", "-p", "tool"],
        ["bash", "-c", "tool"],
        ["python3", "-", "tool"],
        ["python3", "a\0b"],
        ["python3"],
        ["scripts"],
        ["make", "scripts/x.py"],
        ["missing", "scripts/x.py"],
    ],
)
def test_commands_without_a_local_script_are_unchanged(config, command):
    assert resolve_command(utility(command, config)) == command


def test_absolute_paths_and_configs_without_a_file_are_unchanged(config):
    absolute = ["python3", str(config / "scripts/x.py")]
    assert resolve_command(utility(absolute, config)) == absolute
    assert resolve_command(utility(["python3", "scripts/x.py"])) == ["python3", "scripts/x.py"]


@pytest.mark.parametrize("name", ["mime-bootstrap", "mime-maintain"])
def test_git_scripts_of_the_reference_engine_run_as_tasks_of_the_git_script(name):
    command = resolve_command(utility(script={"kind": "shippedUtility", "name": f"{name}.mjs", "runtime": "node"}))
    assert command[1].endswith("shipped/git-tasks.py")


@pytest.mark.parametrize("name", ["detect-vcs.py", "detect-vcs.mjs"])
def test_shipped_script_is_run_with_the_current_python(tmp_path, name):
    for directory in ("profile", "shipped"):
        (tmp_path / directory).mkdir()
    (tmp_path / "shipped/detect-vcs.py").write_text("")
    where = [tmp_path / "profile", tmp_path / "missing", tmp_path / "shipped"]
    script = {"kind": "shippedUtility", "name": name, "runtime": "node"}
    assert resolve_command(utility(script=script), utilities=where) == [
        sys.executable,
        str(tmp_path / "shipped/detect-vcs.py"),
    ]
    (tmp_path / "profile/detect-vcs.py").write_text("")
    assert resolve_command(utility(script=script), utilities=where)[1] == str(tmp_path / "profile/detect-vcs.py")


def test_command_takes_precedence_over_script(tmp_path):
    assert resolve_command(utility(["x"], script={"kind": "shippedUtility", "name": "y.py"})) == ["x"]


def test_missing_shipped_script_error_suggests_a_similar_name(tmp_path):
    (tmp_path / "detect-vcs.py").write_text("")
    with pytest.raises(MateriaError, match=r"detect-vsc\.py.*\n.*\n.*did you mean 'detect-vcs\.py'") as caught:
        resolve_command(utility(script={"kind": "shippedUtility", "name": "detect-vsc.mjs"}), utilities=[tmp_path])
    assert caught.value.kind == "utility_not_started"


@pytest.mark.parametrize(
    "script",
    [
        {"kind": "other", "name": "a.py"},
        {"kind": "shippedUtility", "name": "../a.py"},
        {"kind": "shippedUtility", "name": "/a.py"},
        {"kind": "shippedUtility", "name": "a.sh"},
        {"kind": "shippedUtility", "name": 5},
        {"kind": "shippedUtility"},
        None,
    ],
)
def test_invalid_scripts_are_refused(tmp_path, script):
    directory = tmp_path / "inside"
    directory.mkdir()
    (tmp_path / "a.py").write_text("")
    with pytest.raises(MateriaError) as caught:
        resolve_command(utility(script=script), utilities=[directory])
    assert caught.value.kind == "utility_not_started"
