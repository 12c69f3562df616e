"""Compare the speed of casts with other implementations of the same work, in the same run: ``make bench``."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ours
import peers
from table import show

from materia_nb import Workbench
from materia_nb.cast import Cast, start_cast
from materia_nb.store.file_snapshots import FileSnapshots

SIZES = (10, 100, 1_000, 10_000)
MAX_BURR_ITEMS = 1_000
"""Maximum number of items for burr. It becomes slower in long runs and would need hours for 10,000 items."""


def per_visit(contender: Callable[[int], tuple[int, float]], items: int, min_seconds: float = 0.4) -> float:
    """Return the median time per visit in microseconds over at least three runs that take at least ``min_seconds``."""
    timings: list[float] = []
    spent = 0.0
    while spent < min_seconds or len(timings) < (3 if items <= 1_000 else 1):
        visits, seconds = contender(items)
        timings.append(seconds / visits * 1e6)
        spent += seconds
    return statistics.median(timings)


def rate(micros: float) -> str:
    """Convert microseconds per visit to visits per second."""
    return f"{1e6 / micros:,.0f}"


def visits() -> None:
    """Compare the time of visits in memory and on disk."""
    print("Visits per second (plan, then build, evaluate and maintain for each item)\n")
    memory: dict[int, dict[str, float]] = {}
    disk: dict[int, dict[str, float]] = {}
    size: dict[int, tuple[float, float | None]] = {}
    back: list[list[str]] = []
    for items in SIZES:
        memory[items] = {
            "materia_nb": per_visit(ours.in_memory, items),
            "bare loop": per_visit(peers.bare_loop, items),
            "transitions": per_visit(peers.transitions_machine, items),
        }
        # The two measurements alternate, so that a busy disk slows both.
        pairs = [(ours.run_durable(items), peers.bare_writes(items)) for _ in range(_rounds(items))]
        runs = [mine for mine, _ in pairs]
        lines = [peers.bare_line(run.visits, run.journal_bytes // run.visits) / run.visits for run in runs]
        disk[items] = {
            "materia_nb": statistics.median(run.seconds / run.visits for run in runs) * 1e6,
            "derived": statistics.median(run.derived_seconds / run.visits for run in runs) * 1e6,
            "bare writes": statistics.median(seconds / count for _, (count, seconds) in pairs) * 1e6,
            "bare line": statistics.median(lines) * 1e6,
            "ratio": statistics.median(
                mine.seconds / mine.visits / (seconds / count) for mine, (count, seconds) in pairs
            ),
        }
        back.append([f"{items:,}", *_resumed(runs)])
        burr_bytes = None
        if items <= MAX_BURR_ITEMS:
            memory[items]["burr"] = per_visit(lambda n: peers.burr_machine(n, tracked=False)[:2], items, 0)
            count, seconds, on_disk = peers.burr_machine(items, tracked=True)
            disk[items]["burr"] = seconds / count * 1e6
            burr_bytes = on_disk / count
        size[items] = (runs[0].other_bytes / runs[0].visits, burr_bytes)
    _memory_table(memory)
    _disk_table(disk)
    print("Bytes on disk per visit, excluding the outputs\n")
    show(
        ["items", "materia_nb", "burr tracker"],
        [
            [f"{items:,}", f"{mine:,.0f}", "-" if theirs is None else f"{theirs:,.0f}"]
            for items, (mine, theirs) in size.items()
        ],
    )

    print("\nTime to resume from the journal, relative to running the same cast\n")
    show(["items", "cast s", "resume s", "resume / cast"], back)
    print("  goal: at most 1\n")


def whole() -> None:
    """Compare a complete cast, run as a user runs it, with only writing its files."""
    print("A complete cast through Workbench with function agents, until the last file is closed\n")
    rows = []
    for items in SIZES[:3]:
        ratios = []
        for _ in range(min(_rounds(items), 7)):
            (visits_, seconds, run_dir), (count, bare) = ours.run_complete(items), peers.bare_writes(items)
            ratios.append((seconds / visits_, bare / count, peers.same_files(run_dir) / visits_))
        mine, theirs, same = (statistics.median(each[which] for each in ratios) for which in (0, 1, 2))
        of_bare = statistics.median(a / b for a, b, _ in ratios)
        of_same = statistics.median(a / c for a, _, c in ratios)
        speeds = (rate(cost * 1e6) for cost in (mine, theirs, same))
        rows.append([f"{items:,}", *speeds, f"{of_bare:.2f}", f"{of_same:.2f}"])
    show(
        [
            "items",
            "visits a second",
            "bare writes",
            "its own files",
            "cost / bare writes",
            "cost / its own files",
        ],
        rows,
    )
    print("  bare writes: one artifact file and one flushed line; its own files: rewriting the files of the cast")
    print("  goal: cost / bare writes at most 2\n")


def _resumed(runs: list[ours.Run]) -> list[str]:
    pairs = [(run.seconds, ours.time_resume(run)) for run in runs[:5]]
    cast, back = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
    return [f"{cast:.3f}", f"{back:.3f}", f"{statistics.median(b / a for a, b in pairs):.2f}"]


def memory() -> None:
    """Print the memory of casts of different lengths, each measured in its own process."""
    print("\nMemory in megabytes (peak of a process that runs one cast and writes its derived files)\n")
    rows = []
    for items in SIZES[1:]:
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import ours; print(*ours.peak_memory({items}))"
        before, peak = map(float, subprocess.check_output([sys.executable, "-c", code]).split())
        rows.append([f"{items:,}", f"{before:.0f}", f"{peak:.0f}"])
    show(["items", "before", "at most"], rows)
    print("  goal: at most 120 for 10,000 items\n")


def panel() -> None:
    """Print the additional cost of a step while the panel of the cast is displayed."""
    print("\nA step of a cast of 20 items while its panel is displayed (no browser): cost of the panel\n")
    cast = ours.new_cast(20)
    cast.step()
    plain = _step(cast)
    view = cast.show()
    _step(cast)  # the first steps load and create objects that later steps reuse
    panel_cost = _step(cast)
    rows = [
        ["a step", f"{plain[0]:,}", f"{plain[1]:.2f}"],
        ["with the panel", f"{panel_cost[0]:,}", f"{panel_cost[1]:.2f}"],
    ]
    show(["", "calls", "ms"], rows)
    del view
    cast.close()


def _step(cast: Cast) -> tuple[int, float]:
    """Take three steps and wait for their effects. Return the Python calls and CPU milliseconds per step."""
    calls = 0

    def count_call(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    begin = time.process_time()
    for _ in range(3):
        cast.step()
    _settle()
    cpu_seconds = time.process_time() - begin
    threading.setprofile(count_call)
    sys.setprofile(count_call)
    for _ in range(3):
        cast.step()
    _settle()
    sys.setprofile(None)
    threading.setprofile(None)
    return calls // 3, cpu_seconds / 3 * 1e3


def _settle() -> None:
    """Wait for the timers that a step started."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


def _rounds(items: int) -> int:
    return {10: 40, 100: 15, 1_000: 5}.get(items, 2)


def _memory_table(megabytes: dict[int, dict[str, float]]) -> None:
    print("In memory\n")
    flat = megabytes[100]["materia_nb"]
    rows = [
        [
            f"{items:,}",
            *(rate(row[name]) if name in row else "-" for name in ("materia_nb", "bare loop", "transitions", "burr")),
            f"{row['transitions'] / row['materia_nb']:.2f}",
            f"{row['materia_nb'] / flat:.2f}",
        ]
        for items, row in megabytes.items()
    ]
    show(
        [
            "items",
            "materia_nb",
            "bare loop",
            "transitions",
            "burr",
            "speed / transitions",
            "cost / cost at 100",
        ],
        rows,
    )
    print("  goal: speed / transitions at least 0.6; cost at 10,000 at most 1.2 times that at 100\n")


def _disk_table(kilobytes: dict[int, dict[str, float]]) -> None:
    print("Durable: every step on disk before the next begins\n")
    flat = kilobytes[100]["materia_nb"]
    rows = [
        [
            f"{items:,}",
            *(rate(row[name]) if name in row else "-" for name in ("materia_nb", "bare writes", "bare line", "burr")),
            f"{row['ratio']:.2f}",
            f"{row['materia_nb'] / flat:.2f}",
            f"{row['derived']:,.0f} us",
        ]
        for items, row in kilobytes.items()
    ]
    show(
        [
            "items",
            "materia_nb",
            "bare writes",
            "bare line",
            "burr tracker",
            "cost / bare writes",
            "cost / cost at 100",
            "derived files",
        ],
        rows,
    )
    print("  bare writes: one artifact file and one flushed line; bare line: one line as long as ours")
    print("  goal: cost / bare writes at most 1.2; cost at 10,000 at most 1.2 times that at 100")
    print("  derived files (prompts, parsed outputs, manifest, usage) are written once, when the cast ends\n")


def imports() -> None:
    """Print the cost of importing the package."""
    print("\nImport time, in seconds of processor time (median of 7)\n")
    rows = [
        [module, f"{_import_time(module):.3f}"]
        for module in ("materia_nb", "materia_nb.magics.magic", "ipywidgets", "pydantic")
    ]
    show(["import", "seconds"], rows)
    print("  goal: import materia_nb in under 0.1, the magics in under 0.35\n")


def _import_time(module: str) -> float:
    code = f"import time; begin = time.process_time(); import {module}; print(time.process_time() - begin)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]
    return statistics.median(runs)


def utility() -> None:
    """Compare a utility's step with running the same process directly."""
    from materia_nb.cast import Plan
    from materia_nb.loadout import build_graph

    print("A utility step, relative to subprocess.run of the same command\n")
    rows = []
    for name, command in {
        "true": ["true"],
        "python3 -c": [sys.executable, "-c", "import sys; sys.stdin.read(); print('{}')"],
    }.items():
        document = {
            "loadouts": {"U": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "U"}}}},
            "materia": {"U": {"type": "utility", "command": command, "parse": "text"}},
        }
        graph = build_graph(document)
        bare, step = [], []
        cast_folder = ours.folder()
        stdin_text = json.dumps({"cwd": str(cast_folder), "state": {}}).encode()
        for _ in range(40):
            begin = time.perf_counter()
            subprocess.run(command, input=stdin_text, capture_output=True, check=False, cwd=cast_folder)
            bare.append(time.perf_counter() - begin)
            cast = start_cast(Plan(graph, document, "bench", cast_folder, cast_folder), "go")
            begin = time.perf_counter()
            cast.step()
            step.append(time.perf_counter() - begin)
            cast.close()
        plain, ours_ = statistics.median(bare) * 1e3, statistics.median(step) * 1e3
        rows.append([name, f"{plain:.2f}", f"{ours_:.2f}", f"{ours_ / plain:.2f}"])
    show(["command", "bare ms", "step ms", "ratio"], rows)
    print("  goal: at most 1.3")


def insight() -> None:
    """Measure explore for each bundled loadout, and one simulation."""
    print("Exploration before a cast: every route of each bundled loadout, with lists of 0 to 3 items\n")
    wb, rows = Workbench(ours.folder()), []
    for name in wb.loadouts:
        begin = time.perf_counter()
        explored = wb.explore(name)
        rows.append([name, f"{explored.states:,}", f"{time.perf_counter() - begin:.2f}"])
    show(["loadout", "states", "seconds"], rows)
    print("  goal: each under one second\n")
    begin = time.perf_counter()
    wb.simulate("Plan-Build-Eval", CASTS, 0.7, seed=2)
    speed = CASTS / (time.perf_counter() - begin)
    print(f"Simulations of Plan-Build-Eval with lists of three: {speed:,.0f} casts per second on one core\n")


CASTS = 10_000
"""Number of simulated casts."""


def kept() -> None:
    """Measure the CPU time of file snapshots per step, including Git, in projects of different sizes.

    The goal is 100 ms for 10,000 files.
    """
    print("\nFile snapshots of a project (processor milliseconds per step, by number of changed files)\n")
    rows = []
    for files in (100, 1_000, 10_000):
        project = ours.folder() / f"{files} files"
        paths = [project / f"d{number // 100}" / f"f{number}.py" for number in range(files)]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"x = '{path}'\n" * 20)
        keeper = FileSnapshots(project, ours.folder() / f"casts of {files}", "bench")
        start_ms = _processor_ms()
        commit = keeper.take(None).commit
        row = [f"{files:,}", f"{_processor_ms() - start_ms:,.0f}"]
        time.sleep(2)  # Git reads files again that were written just before a commit
        for changed in (0, 1, 10, 100):
            spent = []
            for turn in range(6):
                for path in paths[:changed]:
                    path.write_text(f"y = '{path} {turn} {changed}'\n" * 20)
                start_ms = _processor_ms()
                commit = keeper.take(commit).commit
                spent.append(_processor_ms() - start_ms)
            row.append(f"{statistics.median(spent):,.0f}")
        rows.append(row)
    show(["files", "at the start", "none", "1", "10", "100"], rows)


def _processor_ms() -> float:
    return sum(os.times()[:4]) * 1e3


def main() -> None:
    """Run the selected benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts: dict[str, Callable[[], None]] = {
        "whole": whole,
        "visits": visits,
        "memory": memory,
        "panel": panel,
        "import": imports,
        "utility": utility,
        "insight": insight,
        "kept": kept,
    }
    parser.add_argument("part", nargs="*", choices=[*parts, []], help="the benchmarks to run")
    for part in parser.parse_args().part or parts:
        parts[part]()


if __name__ == "__main__":
    main()
