"""Our engine alone, and our casts with everything on disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import work

from materia_nb.agents import AgentTable, Reply, Turn
from materia_nb.cast import Plan, start_cast
from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.loadout import build_graph


def in_memory(items: int) -> tuple[int, float]:
    """Run the pure engine; returns visits and seconds."""
    rules = Rules(build_graph(work.document()))
    replies = {
        "Socket-1": work.plan(items),
        "Socket-2": work.BUILT,
        "Socket-3": work.VERDICT,
        "Socket-4": work.NOTED,
    }
    begin = time.perf_counter()
    state = engine.begin(rules, "go")
    while True:
        entered = engine.enter(rules, state)
        if entered.state.at is None or entered.state.status != "waiting":
            break
        state = engine.output(
            rules, entered.state, replies[entered.state.at.socket], None, entered.prompt
        ).state
    return entered.state.steps, time.perf_counter() - begin


class _Worker:
    name = "bench"
    at_once = True  # it answers from a dict, as a script or a recording does

    def __init__(self, items: int) -> None:
        self.plan = Reply(work.plan(items))
        self.replies = {
            "Socket-2": Reply(work.BUILT),
            "Socket-3": Reply(work.VERDICT),
            "Socket-4": Reply(work.NOTED),
        }

    def answer(self, turn: Turn) -> Reply:
        return self.replies.get(turn.socket_id, self.plan)


class _Nothing:
    """Writes no artifact."""

    def soon(self, _: object) -> None:
        """Not now."""

    now = soon

    def stop(self) -> None:
        """There is nothing to stop."""


_ROOT = tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd())


def folder() -> Path:
    """A directory of its own. All of them go at the end: deleting many files slows the writes that follow."""
    return Path(tempfile.mkdtemp(dir=_ROOT.name))


def durable(items: int) -> tuple[int, float, float, int]:
    """Run a cast on disk; returns visits, seconds of the run, seconds for derived files, bytes beside outputs.

    The run is what must be on disk for a crash to lose nothing; the derived files
    (prompts, parsed outputs, manifest, usage) are written when the cast ends.
    """
    place = folder()
    plan = Plan(build_graph(work.document()), work.document(), "bench", place, place)
    cast = start_cast(plan, "go", AgentTable(_Worker(items)))
    # What follows from the journal is timed apart, so the cast is kept from writing it by itself.
    runner = cast.runner
    writer, runner._artifacts = runner._artifacts, _Nothing()  # type: ignore[assignment]  # noqa: SLF001
    begin = time.perf_counter()
    cast.run()
    ran = time.perf_counter() - begin
    begin = time.perf_counter()
    writer.now(cast.runner.session)
    derived = time.perf_counter() - begin
    if cast.status != "complete":
        raise RuntimeError(f"the benchmark's cast is {cast.status}: {cast.failure}")
    outputs = sum(len(turn.text.encode()) for step in cast.steps for turn in step.turns)
    on_disk = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    cast.close()
    return len(cast.steps), ran, derived, on_disk - outputs
