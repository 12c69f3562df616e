"""``make bench-awaited``: how late a hundred casts are that one event loop awaits, and how late the loop is itself."""

from __future__ import annotations

import asyncio
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


async def measure(wb: Workbench, seconds: float) -> tuple[list[float], list[float]]:
    """Cast with agents that take about so long; return how late each turn was asked, and how late the loop woke up."""
    replies = {
        "Socket-1": work.plan(ITEMS),
        "Socket-2": work.BUILT,
        "Socket-3": work.VERDICT,
        "Socket-4": work.NOTED,
    }
    answered: dict[str, float] = {}
    turns: list[float] = []
    loops: list[float] = []

    async def answer(turn: Turn) -> str:
        begun = time.perf_counter()
        if turn.cast_id in answered:
            turns.append(begun - answered[turn.cast_id])
        await asyncio.sleep(seconds * random.uniform(0.3, 1.7))
        answered[turn.cast_id] = time.perf_counter()
        return replies[turn.socket_id]

    async def wake_up() -> None:
        while True:
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            loops.append(time.perf_counter() - due)

    casts = [wb.cast(f"number {n}", loadout="Bench", agents={"*": answer}) for n in range(CASTS)]
    waking = asyncio.create_task(wake_up())
    ends = await asyncio.gather(*(cast.arun() for cast in casts))
    waking.cancel()
    if set(ends) != {"complete"}:
        sys.exit(f"casts ended as {set(ends)}")
    return turns, loops


def show(what: str, late: list[float]) -> None:
    """Print the median, the 99th of a hundred, the longest, and how many were later than they may be."""
    late.sort()
    at = [late[len(late) // 2], late[len(late) * 99 // 100], late[-1]]
    over = sum(one > LATE_S for one in late)
    numbers = "  ".join(f"{one * 1e3:8.1f}" for one in at)
    print(f"{what:<28}{numbers}   {over} of {len(late)} over {LATE_S * 1e3:.0f} ms")


def main() -> None:
    """Measure in a project of its own."""
    with tempfile.TemporaryDirectory() as folder, Workbench(Path(folder)) as wb:
        document = work.document()
        wb.loadouts.define("Bench", {**document["loadouts"]["Bench"], "materia": document["materia"]})
        turns, loops = asyncio.run(measure(wb, 0.5))
        print(f"{CASTS} casts in one event loop: ms late    median        99 %   longest")
        show("a turn, after the last one", turns)
        show("the loop", loops)


if __name__ == "__main__":
    main()
