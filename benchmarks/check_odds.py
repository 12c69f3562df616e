"""Check explore and odds with many random loadouts: ``PYTHONPATH=tests/helpers python benchmarks/check_odds.py``.

Three claims are checked. Events that explore reports as impossible never occur in simulations. Every witness leads to
its event when it is cast. Exact odds and simulations agree within the statistical error. The tests check the same
claims with smaller numbers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from typing import Any

from table import show

from materia_nb import Workbench
from materia_nb.insight.explore import Exploration
from materia_nb.insight.odds import simulate_casts
from materia_nb.loadout import LoadoutError, build_graph
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS

SIMULATIONS_PER_LOADOUT = 20
"""Number of simulations for each random loadout."""
MAX_STATES = 2_000
"""Maximum number of states of a random loadout. Explore could not visit all states of a larger loadout."""


def check_impossible_events(simulations: int) -> None:
    """Simulate random loadouts, and raise an error if an event occurs that explore reports as impossible."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from drawn_loadouts import loadouts

    counts = dict.fromkeys(("simulations", "loadouts", "with other protocols", "left out", "witnesses"), 0)
    begin = time.perf_counter()
    loadout_count = simulations // SIMULATIONS_PER_LOADOUT + 1
    folder = Path(tempfile.mkdtemp(prefix="check-odds-"))

    @settings(
        max_examples=loadout_count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(loadouts(), st.integers(0, 2), st.integers(0, 2**32))
    def one(document: dict[str, Any], items: int, number: int) -> None:
        mixed = _set_random_protocols(document["loadouts"]["T"], Random(number))
        try:
            graph = build_graph(document)
        except LoadoutError:
            return
        explored = Exploration(graph, range(3), MAX_STATES)
        if not explored.complete_search:
            counts["left out"] += 1
            return
        counts["loadouts"] += 1
        counts["with other protocols"] += mixed
        simulation = simulate_casts(graph, SIMULATIONS_PER_LOADOUT, Random(number).uniform(0.2, 0.9), items, number)
        counts["simulations"] += SIMULATIONS_PER_LOADOUT
        impossible = {*explored.never, *explored.unreached}
        happened = {*simulation.edge_uses, *(socket for socket, often in simulation.visits.items() if often)}
        max_turns = explored.most_turns(items)
        if impossible & happened or not set(simulation.ends) <= set(explored.ends):
            raise AssertionError(
                f"an impossible event happened: {impossible & happened}, {simulation.ends}\n{document}"
            )
        if max_turns is not None and max(simulation.turns) > max_turns:
            raise AssertionError(
                f"{max(simulation.turns)} turns, although explore reported a maximum of {max_turns}\n{document}"
            )
        counts["witnesses"] += _cast_witnesses(explored, document, folder / str(counts["loadouts"]))

    for number in count(1):  # some drawn loadouts have problems, so one round may not be enough
        seed(number)(one)()
        if counts["simulations"] >= simulations:
            break
    rows = [[name, f"{number:,}"] for name, number in counts.items() if number]
    show(["no impossible event happened in", ""], [*rows, ["seconds", f"{time.perf_counter() - begin:.0f}"]])


def _set_random_protocols(loadout: dict[str, Any], random: Random) -> bool:
    """Set random protocols in a loadout and some of its sockets. Return True if any protocol is not sparse."""
    loadout["handoff"] = random.choice(list(OWN_PROTOCOLS))
    for socket in loadout["sockets"].values() if random.random() < 0.5 else ():
        if random.random() < 0.5:
            socket["handoff"] = random.choice(list(OWN_PROTOCOLS))
    protocols = {
        loadout["handoff"],
        *(socket.get("handoff", "sparse") for socket in loadout["sockets"].values()),
    }
    return protocols != {"sparse"}


def _cast_witnesses(explored: Exploration, document: dict[str, Any], folder: Path) -> int:
    """Cast every witness of a loadout on disk, and raise an error if its event does not happen."""
    folder.mkdir(parents=True)
    wb = Workbench(folder, bundled=False)
    wb.load(document)
    edges = [(id_, n + 1) for id_, socket in explored.graph.sockets.items() for n in range(len(socket.edges))]
    events = [*explored.ends, *(event for event in (*explored.graph.sockets, *edges) if explored.can(event))]
    for event in events:
        witness = explored.witness(event)
        cast = wb.cast("r", agents={"*": witness.answers}, pins=witness.pins)
        while cast.status in {"ready", "waiting"}:
            if cast.run() == "person" and cast.status != "held":
                cast.accept()
        ends = cast.failure.kind if cast.failure else cast.status
        if tuple(socket for socket, *_ in cast.route) != witness.route or ends != witness.end:
            raise AssertionError(
                f"the witness of {event} took the route {cast.route} and ended with {ends}\n{document}"
            )
        cast.close()
    wb.close()
    return len(events)


def check_agreement(simulations: int, names: Sequence[str]) -> None:
    """Simulate bundled loadouts and print the frequencies next to the exact odds."""
    wb = Workbench(tempfile.mkdtemp(prefix="check-odds-"))
    rows, worst = [], 0.0
    for name in names:
        begin = time.perf_counter()
        odds = wb.explore(name, (3,)).odds(0.7, 3)
        simulation = wb.simulate(name, simulations, 0.7, 3, seed=1)
        seconds = time.perf_counter() - begin
        error = max(pstdev(simulation.turns), 1e-9) / sqrt(simulation.n)
        errors = [abs(fmean(simulation.turns) - odds.turns) / error if pstdev(simulation.turns) else 0.0]
        for end in {*odds.ends, *simulation.ends}:
            chance, share = odds.ends.get(end, 0.0), simulation.ends.get(end, 0) / simulation.n
            spread = sqrt(chance * (1 - chance) / simulation.n)
            errors.append(
                abs(share - chance) / spread if spread > 1e-12 else 0.0 if abs(share - chance) < 1e-9 else 1e9
            )
        worst = max(worst, *errors)
        rows.append(
            [
                name,
                f"{simulation.ends.get('complete', 0) / simulation.n:.5f}",
                f"{odds.ends.get('complete', 0.0):.5f}",
                f"{fmean(simulation.turns):.4f}",
                f"{odds.turns:.4f}",
                f"{max(errors):.2f}",
                f"{seconds:.0f}",
            ]
        )
    print(f"\nExact odds compared with {simulations:,} simulations each, satisfied 0.7, lists of three\n")
    show(["loadout", "complete", "exactly", "turns", "exactly", "errors off", "seconds"], rows)
    if worst > 5:
        sys.exit("they do not agree")


def main() -> None:
    """Run the selected checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--random", type=int, default=10_000, help="simulations of random loadouts")
    parser.add_argument("--each", type=int, default=100_000, help="simulations of each named loadout")
    parser.add_argument("loadouts", nargs="*", default=["Plan-Build-Eval", "Teach-Rework", "Blackbelt"])
    arguments = parser.parse_args()
    if arguments.random:
        check_impossible_events(arguments.random)
    if arguments.each:
        check_agreement(arguments.each, arguments.loadouts)


if __name__ == "__main__":
    main()
