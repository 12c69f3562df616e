"""Test the built-in utilities under the names that the reference engine uses (R61)."""

from __future__ import annotations

import subprocess
from contextlib import closing

import pytest

import cast_helpers as h
from materia_nb import Workbench


@pytest.mark.parametrize(
    "params, result",
    [
        ({"text": " as it is\n"}, " as it is\n"),
        ({"text": "this", "output": "not this"}, "this"),
        ({"output": {"satisfied": True}}, '{"satisfied": true}'),
        ({"output": "plain"}, "plain"),
        ({}, ""),
    ],
)
def test_r61_echo_writes_its_text_or_output(tmp_path, params, result):
    cast = h.start(tmp_path, h.one_config({"type": "utility", "utility": "echo", "params": params}))
    assert cast.run() == "complete"
    assert cast.steps[0].output == result


def test_r61_other_built_in_utilities_run_the_scripts_of_the_same_name(tmp_path):
    made = {"type": "utility", "utility": "vcs.detect", "parse": "json"}
    cast = h.start(tmp_path, h.one_config(made))
    assert cast.run() == "complete"
    assert "vcs" in cast.state
    made = {
        "type": "utility",
        "utility": "project.ensureIgnored",
        "parse": "json",
        "params": {"patterns": ["x/"]},
    }
    cast = h.start(tmp_path, h.one_config(made))
    assert cast.run() == "complete"
    assert (tmp_path / ".gitignore").read_text() == "x/\n"


def test_lane_utilities_of_the_reference_engine_use_git_worktrees(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.com"]
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "a@example.com")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "A")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "a@example.com")
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*git, *arguments], check=True)
    utilities = {
        "Spawn-JJ-Workspace": "vcs.spawnJjWorkspace",
        "Integrate-JJ-Workspaces": "vcs.integrateJjWorkspaces",
        "Finalize-JJ-Workspace": "vcs.finalizeJjWorkspace",
    }
    order = ["Spawn-JJ-Workspace", "Build", "Integrate-JJ-Workspaces", "Finalize-JJ-Workspace"]
    config = {
        "loadouts": {
            "Jj": {
                "sockets": {
                    f"Socket-{number}": {"materia": name, "edges": [{"when": "always", "to": target}]}
                    for number, (name, target) in enumerate(
                        zip(order, ["Socket-2", "Socket-3", "Socket-4", "end"], strict=True), start=1
                    )
                }
            }
        },
        "materia": {
            "Build": {"tools": "none", "prompt": "Build."},
            **{name: {"type": "utility", "utility": alias, "parse": "json"} for name, alias in utilities.items()},
        },
    }

    def build(turn):
        assert turn.project != tmp_path
        (turn.project / "built").write_text("by the lane")
        return "built"

    with closing(Workbench(tmp_path)) as bench:
        bench.load(config)
        assert bench.check().ok
        cast = bench.cast("x", agents={"Build": build})
        assert cast.run() == "complete", cast.failure
        notes = [note.text for note in cast.graph.derived if note.source.endswith(".materia")]
    assert (tmp_path / "built").read_text() == "by the lane"
    assert len(notes) == 3
    assert notes[0] == (
        "Socket-1 uses Git worktrees, not the jj workspaces of vcs.spawnJjWorkspace, and needs a Git repository"
    )
    listed = subprocess.run([*git, "worktree", "list"], check=True, capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == 1
