"""``make bench-awaited``: measure the delay of turns in a hundred concurrent casts, and the overhead of lanes."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import work

from materia_nb import Workbench
from materia_nb.agents import Turn

CASTS, ITEMS = 100, 3
LATE_S = 0.05


async def measure(wb: Workbench, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Run casts whose agents take about the given time; return the delays of turns and of event loop wake-ups.

    A third list has the wake-up delays without the time in which the processor worked for other processes.
    """
    replies = {
        "Socket-1": work.plan(ITEMS),
        "Socket-2": work.BUILT,
        "Socket-3": work.VERDICT,
        "Socket-4": work.NOTED,
    }
    answered: dict[str, float] = {}
    turns: list[float] = []
    loops: list[float] = []
    own: list[float] = []

    async def answer(turn: Turn) -> str:
        start_time = time.perf_counter()
        if turn.cast_id in answered:
            turns.append(start_time - answered[turn.cast_id])
        await asyncio.sleep(seconds * random.uniform(0.3, 1.7))
        answered[turn.cast_id] = time.perf_counter()
        return replies[turn.socket_id]

    async def wake_up() -> None:
        while True:
            due, worked = time.perf_counter() + 0.01, time.process_time()
            await asyncio.sleep(0.01)
            loops.append(time.perf_counter() - due)
            own.append(min(loops[-1], time.process_time() - worked))

    casts = [wb.cast(f"number {n}", loadout="Bench", agents={"*": answer}) for n in range(CASTS)]
    waking = asyncio.create_task(wake_up())
    ends = await asyncio.gather(*(cast.arun() for cast in casts))
    waking.cancel()
    if set(ends) != {"complete"}:
        sys.exit(f"casts ended as {set(ends)}")
    return turns, loops, own


def measure_lanes(wb: Workbench, count: int, items: int, seconds: float) -> float:
    """Run a plan of timed items in parallel lanes, and return the duration divided by the ideal duration."""
    plan = {
        "workItems": [{"title": f"item {n}", "context": "as asked"} for n in range(items)],
        "parallelSchedule": {
            "version": 1,
            "streams": [{"name": f"lane {n}", "workItemIndexes": list(range(n, items, count))} for n in range(count)],
        },
    }
    wb.loadouts.define(
        "Lanes",
        {
            "sockets": {
                "Socket-1": {"materia": "Items", "edges": [{"when": "always", "to": "Socket-2"}]},
                "Socket-2": {
                    "materia": "Make",
                    "edges": [{"when": "always", "to": "Socket-2"}],
                    "advance": {},
                },
            },
            "loops": {
                "L": {
                    "sockets": ["Socket-2"],
                    "consumes": {"from": "Socket-1"},
                    "parallel": {"maxConcurrency": count},
                }
            },
            "materia": {
                "Items": {"tools": "none", "prompt": "plan", "generator": True, "parallel": True},
                "Make": {"tools": "none", "prompt": "make", "parallelSafe": True},
            },
        },
    )

    def make() -> str:
        time.sleep(seconds)
        return "made"

    cast = wb.cast("lanes", loadout="Lanes", agents={"Items": lambda: plan, "Make": make})
    start_time = time.perf_counter()
    if cast.run() != "complete":
        sys.exit(f"the cast in lanes: {cast.failure}")
    return (time.perf_counter() - start_time) / (seconds * -(-items // count))


def show(title: str, delays: list[float]) -> None:
    """Print the median, the 99th percentile, the maximum, and the number of values above the limit."""
    delays.sort()
    at = [delays[len(delays) // 2], delays[len(delays) * 99 // 100], delays[-1]]
    over = sum(delay > LATE_S for delay in delays)
    numbers = "  ".join(f"{delay * 1e3:8.1f}" for delay in at)
    print(f"{title:<28}{numbers}   {over} of {len(delays)} over {LATE_S * 1e3:.0f} ms")


def main() -> None:
    """Run the measurements in a temporary project."""
    with tempfile.TemporaryDirectory() as folder, Workbench(Path(folder)) as wb:
        document = work.document()
        wb.loadouts.define("Bench", {**document["loadouts"]["Bench"], "materia": document["materia"]})
        gc.collect()
        gc.freeze()  # see docs/in-a-program.md: a full collection would examine every imported module
        turns, loops, own = asyncio.run(measure(wb, 0.5))
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        print(f"{CASTS} casts in one event loop: delay in ms    median        99 %   longest")
        show("a turn, after the last one", turns)
        show("the loop", loops)
        show("  by these casts at most", own)
        print(f"20 items of 1 s in 4 lanes: {measure_lanes(wb, 4, 20, 1.0):.3f} times the ideal, at most 1.1")


if __name__ == "__main__":
    main()
