"""Test read-only casts, which follow the journal of another process and can be continued in a fork."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast import open_cast
from materia_nb.cast.views.status import status_lines
from materia_nb.display.blocks import blocks_as_text
from materia_nb.errors import MateriaError
from materia_nb.widgets.answering import answer_state
from materia_nb.widgets.base import Activity
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.cast_slices import pill
from materia_nb.widgets.inspector_tabs import inspector_state
from other_kernel import OtherKernel

IDLE = Activity()
RECORDED = Path(__file__).parents[1] / "data" / "recorded-casts"


@pytest.fixture
def other(tmp_path):
    kernel = OtherKernel(tmp_path)
    yield kernel
    kernel.process.kill()
    kernel.process.wait()


@pytest.fixture
def recorded(tmp_path):
    """Return a copy of a recording with only its first lines, and a function that appends the next lines."""
    path = tmp_path / "casts" / "loop-retry"
    shutil.copytree(RECORDED / "loop-retry", path)
    journal = path / "events.jsonl"
    lines = journal.read_text().splitlines(keepends=True)

    def write(count: int, cut: int = 0) -> None:
        text = "".join(lines[:count])
        journal.write_text(text[: len(text) - cut])

    write(len(lines) // 2)
    return path, len(lines), write


def test_read_only_cast_shows_that_another_kernel_fails_and_retries(other):
    cast = open_cast(other.run_dir)
    assert pill(cast.now, IDLE).label == f"ready at Socket-1 M · run by process {other.process.pid}"
    assert other.does("step") == "ready"
    assert [step.output for step in cast.steps] == ["by Socket-1"]
    assert other.does("step") == "ready"
    assert other.does("step") == "failed"
    assert (cast.status, cast.failure.kind) == ("failed", "agent_error")
    assert pill(cast.now, IDLE).label == "failed · read-only"
    assert other.does("retry") == "complete"
    assert (cast.status, cast.steps[-1].output) == ("complete", "by Socket-3")
    other.ends()
    assert cast.now.live.writer is None


def test_hint_suggests_a_resume_only_if_no_other_program_has_the_cast_open(other):
    cast = open_cast(other.run_dir)
    with pytest.raises(MateriaError, match=r"cast\.fork\(\)"):
        cast.step()
    other.ends()
    with pytest.raises(MateriaError, match="resume the cast"):
        cast.step()


def test_followers_are_notified_of_changes_made_by_another_kernel(other):
    cast, seen = open_cast(other.run_dir), []
    cast.follow.changes(lambda changed: seen.append(len(changed.steps)))
    cast.runner.refresh()
    assert seen == [], "nothing has changed yet"
    other.does("step")
    cast.runner.refresh()
    cast.runner.refresh()
    assert seen == [1]


def test_panel_of_a_read_only_cast_is_redrawn_automatically(other):
    cast, drawn = open_cast(other.run_dir), threading.Event()
    panel = CastPanel(cast)
    panel.front.observe(lambda change: drawn.set() if change.new["total"] == 1 else None, "timeline")
    assert panel.front.timeline["total"] == 0
    other.does("step")
    assert drawn.wait(10)
    assert panel.front.bar["can"]["run"] is False
    panel.close()


def test_cast_of_the_reference_engine_is_followed_to_its_end(recorded):
    path, count, write = recorded
    cast = open_cast(path)
    before = len(cast.steps)
    assert "read-only" in pill(cast.now, IDLE).label, "nobody knows yet whether it still runs"
    write(count - 2)
    assert len(cast.steps) > before
    assert pill(cast.now, IDLE).label.endswith("run by pi-materia")
    write(count)
    assert cast.status == "complete"
    h.assert_same(cast, open_cast(path))
    assert cast.route == open_cast(RECORDED / "loop-retry").route


def test_status_of_a_failed_cast_of_the_reference_engine_suggests_a_copy():
    cast = open_cast(RECORDED / "limit-maxtrav-exceeded")
    assert status_lines(cast.now)[-1] == "to continue: use `cast.fork()` to continue in a copy of the cast"


def test_panel_shows_the_working_agent_and_a_recorded_interruption_of_pi_materia(recorded):
    path, _, _ = recorded
    cast = open_cast(path)
    journal = path / "events.jsonl"
    started = [line for line in journal.read_text().splitlines() if '"socket_start"' in line]
    lines = journal.read_text().splitlines()
    lines = lines[: lines.index(started[1]) + 1]
    data = {"socket": json.loads(started[1])["data"]["socket"], "error": "500: the provider is\ndown"}
    interruption = {"ts": 1, "type": "inference_interruption", "data": data}
    journal.write_text("\n".join([*lines, json.dumps(interruption)]) + "\n")
    assert pill(cast.now, IDLE).since == cast.now.latest.started
    assert status_lines(cast.now)[-1].endswith(" is working; the cast is run by pi-materia")
    answer = blocks_as_text(answer_state(cast.now, busy=False)["top"])
    name = cast.now.names[data["socket"]]
    assert f"{name} is working on Task 1 in pi-materia." in answer
    assert "You can use `cast.fork()` to continue in a copy of the cast." in answer
    notes = blocks_as_text(answer_state(cast.now, busy=False)["blocks"])
    assert f"{data['socket']}: the agent was interrupted: 500: the provider is down." in notes
    inspector = inspector_state(cast.now, None, None, "answer", busy=False)
    assert "agent" in inspector["title"]["chips"]
    assert "you" not in inspector["title"]["chips"]


def test_partial_journal_line_is_ignored_until_it_is_complete(recorded):
    path, count, write = recorded
    cast = open_cast(path)
    steps = len(cast.steps)
    write(count, cut=20)
    assert len(cast.steps) >= steps
    assert cast.status != "complete"
    write(count)
    assert cast.status == "complete"


def test_read_only_cast_keeps_its_state_when_its_directory_disappears(recorded):
    path, _, _ = recorded
    cast = open_cast(path)
    steps = len(cast.steps)
    shutil.rmtree(path)
    assert len(cast.steps) == steps


@pytest.mark.parametrize("step", [None, 0, 1])
def test_fork_of_a_cast_in_another_kernel_continues_from_any_step(other, step):
    other.does("step")
    other.does("step")
    before = (other.run_dir / "events.jsonl").read_bytes()
    source = open_cast(other.run_dir, h.table({"M": lambda: "from here"}))
    fork = source.fork(step)
    assert len(fork.steps) == (2 if step is None else step)
    assert fork.run() == "complete"
    assert fork.steps[-1].output == "from here"
    assert (other.run_dir / "events.jsonl").read_bytes() == before
    fork.close()


@pytest.mark.parametrize("step", [None, 0, 3])
def test_fork_of_a_cast_of_the_reference_engine_continues_from_any_step(recorded, step):
    path, _, _ = recorded
    source = open_cast(path)
    fork = source.fork(step)
    assert len(fork.steps) == (len(source.steps) if step is None else step)
    assert fork.now.writable
    assert (
        json.loads((fork.run_dir / "events.jsonl").read_text().splitlines()[0])["data"]["forkedFrom"]["cast"]
        == source.id
    )
    fork.close()


def test_workbench_opens_and_forks_a_cast_that_runs_in_another_kernel(other, tmp_path):
    with Workbench(tmp_path / "project") as bench:
        bench.agent("*", lambda: "mine")
        source = bench.open(other.run_dir)
        other.does("step")
        assert len(source.steps) == 1
        fork = source.fork()
        assert fork.run() == "complete"
        assert [step.output for step in fork.steps] == ["by Socket-1", "mine", "mine"]
        fork.close()


def test_snapshot_of_a_running_cast_does_not_wait_for_a_lock(tmp_path):
    """Otherwise a panel that waits for a step and a step that waits for the panel would deadlock."""
    cast = h.start(tmp_path, h.chain_config(1))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with cast.runner.recording:
            held.set()
            release.wait(30)

    threads = [threading.Thread(target=hold), threading.Thread(target=lambda: cast.now)]
    threads[0].start()
    assert held.wait(30)
    threads[1].start()
    threads[1].join(10)
    waits = threads[1].is_alive()
    release.set()
    for thread in threads:
        thread.join()
    assert not waits
    cast.close()
