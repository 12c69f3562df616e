"""Test that the documented CI workflow passes for a correct repository and fails for each kind of mistake."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from materia_nb import Workbench
from materia_nb.loadout import read_config, read_text
from materia_nb.loadout.config_files import write_config
from materia_nb.loadout.layers import PROJECT_FILE
from materia_nb.shell.commands import main

ROOT = Path(__file__).parents[2]
LOADOUT = """
activeLoadout: Report
loadouts:
  Report:
    entry: Socket-1
    sockets:
      Socket-1: {materia: Draft, edges: [{when: always, to: Socket-2}]}
      Socket-2:
        materia: Judge
        parse: json
        edges: [{when: satisfied, to: end}, {when: not_satisfied, to: Socket-1, maxTraversals: 3}]
materia:
  Draft: {tools: none, prompt: "Write about {{request}}"}
  Judge: {tools: none, prompt: "Is it good?"}
"""


def workflow():
    """Return the steps of the documented workflow that check loadouts and test cases."""
    page = (ROOT / "docs" / "command-line-and-ci.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(name: loadouts.*?)```", page, re.DOTALL)[1]
    steps = read_text(block, "yaml")["jobs"]["check"]["steps"]
    return [step["run"] for step in steps if "materia " in step.get("run", "") and "pip " not in step["run"]]


@pytest.fixture
def repository(project, monkeypatch):
    """Return a repository with a loadout, and with a test case in which work is sent back once."""
    monkeypatch.chdir(project)
    write_config(project / PROJECT_FILE, read_text(LOADOUT))
    verdicts = iter([False, True])
    wb = Workbench(project)
    cast = wb.cast("rain", agents={"Draft": lambda: "a draft", "Judge": lambda: {"satisfied": next(verdicts)}})
    cast.run()
    cast.export.test(project / "tests" / "once-back", follows=project / PROJECT_FILE)
    wb.close()
    return project


def codes(project):
    """Run the steps of the workflow and return their exit codes."""
    cases = sorted(str(path.relative_to(project)) for path in project.rglob("*.materia-case.json"))
    found = []
    for line in workflow():
        before, pipe, after = line.partition("  #")[0].partition(" | xargs -0 ")
        found.append(main([*shlex.split(after or before)[1:], *(cases if pipe else ())]))
    return found


def change(project, edit):
    config = read_config(project / PROJECT_FILE)
    edit(config["loadouts"]["Report"]["sockets"], config["materia"])
    write_config(project / PROJECT_FILE, config)


def test_sample_repository_passes(repository):
    assert codes(repository) == [0, 0, 0]


def test_case_command_accepts_any_file_name(repository):
    case = repository / "tests" / "once-back.materia-case.json"
    for name in ("Prüfung", "two words", "it's (x)"):
        case.with_name(f"{name}.materia-case.json").write_bytes(case.read_bytes())
    git = ["git", "-c", "core.quotePath=true"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    (line,) = (line for line in workflow() if "git ls-files" in line)
    line = line.replace("xargs -0 materia", f"xargs -0 {shlex.quote(sys.executable)} -m materia_nb")
    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "::error" not in ran.stdout


def test_sample_repository_fails_on_a_broken_edge(repository, capsys):
    change(repository, lambda sockets, _: sockets["Socket-1"]["edges"][0].update(to="Sockt-2"))
    assert codes(repository)[0] == 1
    assert re.search(r"::error file=.pi/pi-materia.json,line=\d+,title=unknown-endpoint", capsys.readouterr().out)


def test_sample_repository_fails_on_a_changed_route(repository, capsys):
    change(repository, lambda sockets, _: sockets["Socket-2"]["edges"][1].update(to="Socket-2"))
    assert codes(repository) == [0, 1, 0]
    assert "::error file=tests/once-back.materia-case.json,line=1,title=failed-case" in capsys.readouterr().out


def test_sample_repository_fails_on_a_cost_above_the_limit(repository, capsys):
    change(repository, lambda _, materia: materia["Draft"].update(prompt="Write it. " * 300_000))
    assert codes(repository) == [0, 0, 1]
    assert "more than 2" in capsys.readouterr().err


def test_pre_commit_hook_checks_the_documented_files():
    hook = read_text((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"), "yaml")[0]
    taken = [".pi/pi-materia.json", "a/b.loadout.yaml", "c.loadout.jsonc", "tests/x.materia-case.json"]
    assert all(re.search(hook["files"], one) for one in taken)
    assert not re.search(hook["files"], "package.json")
    assert shlex.split(hook["entry"]) == ["materia", "check"]
