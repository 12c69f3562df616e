"""Run the work of the benchmarks with this project: the engine in memory, and casts with all files on disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import work

from materia_nb import Workbench
from materia_nb.agents import AgentTable, Reply, Turn
from materia_nb.cast import Cast, Plan, resume_cast, start_cast
from materia_nb.engine import entering, outputs
from materia_nb.engine.rules import Rules
from materia_nb.loadout import build_graph
from materia_nb.store.rundir import JournalEnd


def in_memory(items: int) -> tuple[int, float]:
    """Run the pure engine, and return the number of visits and the duration in seconds."""
    rules = Rules(build_graph(work.document()))
    replies = {
        "Socket-1": work.plan(items),
        "Socket-2": work.BUILT,
        "Socket-3": work.VERDICT,
        "Socket-4": work.NOTED,
    }
    begin = time.perf_counter()
    state = entering.begin(rules, "go")
    while True:
        entered = entering.enter(rules, state)
        if entered.state.at is None or entered.state.status != "waiting":
            break
        state = outputs.output(rules, entered.state, replies[entered.state.at.socket], None, entered.prompt).state
    return entered.state.steps, time.perf_counter() - begin


class _Worker:
    name = "bench"
    is_immediate = True  # it answers from a dict, as a script or a recording does

    def __init__(self, items: int) -> None:
        self.plan = Reply(work.plan(items))
        self.replies = {
            "Socket-2": Reply(work.BUILT),
            "Socket-3": Reply(work.VERDICT),
            "Socket-4": Reply(work.NOTED),
        }

    def answer(self, turn: Turn) -> Reply:
        return self.replies.get(turn.socket_id, self.plan)


class _NullWriter:
    """An artifact writer that writes nothing."""

    def schedule_write(self, _: object) -> None:
        """Do nothing."""

    def has_written(self, _: object) -> bool:
        """Return True, because no write is ever pending."""
        return True

    def stop(self) -> None:
        """Do nothing."""


_ROOT = tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd())


def folder() -> Path:
    """Return a temporary directory. It is deleted at the end of the process, because deleting slows later writes."""
    return Path(tempfile.mkdtemp(dir=_ROOT.name))


class Run(NamedTuple):
    """A cast that was run on disk, with its measurements.

    Attributes:
        seconds: duration of the run, until everything that a crash must not lose is on disk.
        derived_seconds: duration of writing the derived files (prompts, parsed outputs, manifest, usage) at the end, in
            seconds.
        journal_bytes: size of the journal in bytes.
        other_bytes: size of all files except the outputs, in bytes.
    """

    path: Path
    visits: int
    seconds: float
    derived_seconds: float
    journal_bytes: int
    other_bytes: int


def new_cast(items: int) -> Cast:
    """Return a new cast on disk that has not taken a step."""
    cast_folder = folder()
    plan = Plan(build_graph(work.document()), work.document(), "bench", cast_folder, cast_folder)
    return start_cast(plan, "go", AgentTable(_Worker(items)))


def run_durable(items: int) -> Run:
    """Run a cast on disk, and return it with its measurements."""
    cast = new_cast(items)
    # The derived files are written and timed separately, so the cast must not write them itself.
    runner = cast.runner
    writer, runner._artifacts = runner._artifacts, _NullWriter()  # type: ignore[assignment]  # noqa: SLF001
    begin = time.perf_counter()
    cast.run()
    ran = time.perf_counter() - begin
    # With another end, the next resume would treat these files as the files of another journal.
    journal_end = runner.journal.end if runner.journal else JournalEnd()
    begin = time.perf_counter()
    writer.write_all(runner.session, journal_end)
    derived = time.perf_counter() - begin
    if cast.status != "complete":
        raise RuntimeError(f"the benchmark's cast is {cast.status}: {cast.failure}")
    outputs = sum(len(turn.text.encode()) for step in cast.steps for turn in step.turns)
    files = [path for path in cast.run_dir.rglob("*") if path.is_file()]
    on_disk = sum(path.stat().st_size for path in files)
    journal = (cast.run_dir / "events.jsonl").stat().st_size
    cast.close()
    return Run(cast.run_dir, len(cast.steps), ran, derived, journal, on_disk - outputs)


def run_complete(items: int) -> tuple[int, float, Path]:
    """Run a cast with function agents, as in a notebook, until its last file is closed.

    Returns:
        The number of visits, the seconds and the run directory.
    """
    wb = Workbench(folder())
    wb.load(work.document())
    replies = {"Plan": work.plan(items), "Build": work.BUILT, "Eval": work.VERDICT, "Maintain": work.NOTED}
    wb.agent("*", lambda turn: replies[turn.materia_id])
    begin = time.perf_counter()
    cast = wb.cast("go")
    cast.run()
    cast.close()
    seconds = time.perf_counter() - begin
    if cast.status != "complete":
        raise RuntimeError(f"the benchmark's cast is {cast.status}: {cast.failure}")
    return len(cast.steps), seconds, cast.run_dir


def time_resume(run: Run) -> float:
    """Resume a finished cast, and return the duration in seconds."""
    begin = time.perf_counter()
    cast = resume_cast(run.path)
    seconds = time.perf_counter() - begin
    if len(cast.steps) != run.visits:
        raise RuntimeError(f"{len(cast.steps)} of {run.visits} visits were restored")
    cast.close()
    return seconds


def peak_memory(items: int) -> tuple[float, float]:
    """Run a cast in its own process, and return the memory before the cast and at its peak, in megabytes."""
    before = _read_peak_memory()
    new_cast(items).run()
    return before, _read_peak_memory()


def _read_peak_memory() -> float:
    """Return the peak memory in megabytes from /proc, because ``resource`` includes the parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
