"""Test a cast with a model, a real MCP server and stand-ins for coding agents: approval, crash, cost and resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cast_helpers as h
import team_caster
from materia_nb.agents import AgentTable, RecordedAgent
from materia_nb.cast import open_cast, resume_cast, start_cast
from materia_nb.cast.exports import agent_from_recording, recording_of
from model_server import calls, says, serving

PRINTED = Path(__file__).parents[1] / "data" / "programs"
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Install stand-ins that print the output of each program; codex first kills the kernel to simulate a crash."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in team_caster.PROGRAMS:
        crash = "if not asked: os.kill(os.getppid(), 9)\n" if name == "codex" else ""
        (folder / name).write_text(
            f"#!{sys.executable} -S\nimport os, sys\n"
            f"log = {str(folder / name)!r} + '.asked'\n"
            "asked = os.path.exists(log)\n"
            "with open(log, 'a') as file: file.write('x')\n"
            f"{crash}print(open({str(PRINTED / name)!r} + '.txt').read())\n"
        )
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return lambda: {name: len((folder / f"{name}.asked").read_text()) for name in team_caster.PROGRAMS}


def test_cast_with_mixed_agents_survives_approvals_a_crash_and_a_budget_stop(tmp_path, programs):
    script = (calls(("time_convert_time", NOON)), says("At nine in Tokyo."), says("All is done."))
    with serving(*script) as server:
        killed = subprocess.run(
            [sys.executable, team_caster.__file__, server.url, str(tmp_path)],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        [run_dir] = (tmp_path / "casts").glob("*/")

        cast = resume_cast(run_dir, team_caster.agents(server.url))
        [plan] = cast.steps[0].turns
        assert [(call.tool, call.decided, call.ok) for call in plan.calls] == [("time.convert_time", "once", True)]
        assert "21:00:00+09:00" in plan.calls[0].result
        assert cast.steps[1].output == "The page is written."
        assert (cast.status, cast.now.waiting_at.socket) == ("waiting", "Socket-3"), "it was killed while codex worked"

        assert cast.run() == "failed"
        assert (cast.failure.kind, cast.now.usage.cost) == ("budget", pytest.approx(0.0412 + 0.0035))
        cast.edit.budget(max_cost_usd=1.0)
        cast.retry(limit=True)
        assert cast.run() == "complete", cast.failure
        assert cast.steps[-1].output == "All is done."
        assert len(server.asked) == 3, "no model was asked twice"
    assert programs() == {name: 2 if name == "codex" else 1 for name in team_caster.PROGRAMS}
    used = cast.now.usage
    assert used.cost == pytest.approx(0.0412 + 0.0035 + 0.0073)
    assert used.unpriced == 5, "codex, gemini and three answers of the model: unknown, not zero"
    h.assert_same(open_cast(run_dir), cast)

    again = start_cast(
        h.plan(tmp_path / "again", team_caster.document() | {"budget": {}}),
        "the widget",
        AgentTable(agent_from_recording(recording_of(cast.now), "recorded")),
    )
    assert isinstance(again.agents.default, RecordedAgent)
    assert again.run() == "complete"
    assert again.steps[0].turns[0].calls[0].result == plan.calls[0].result
    assert [step.output for step in again.steps] == [one.output for one in cast.steps]
    assert programs()["claude"] == 1, "a recording runs nothing"
    assert json.loads((run_dir / "config.resolved.json").read_text())["mcpServers"]
