"""Count how often saved tests, explore, odds and replays agree with a second engine: ``make bench-agreement``.

The second engine (tests/helpers/second_engine.py) was written from docs/rules.md alone. It decides for random edits of
random loadouts whether casts can behave differently. The saved tests of the original loadout must then fail, and pass
otherwise. The comparisons of tests/insight/test_second_engine.py are repeated and counted. The program exits with 1 if a
comparison differs, or if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

os.environ["MATERIA_NB_MUTANTS"] = "all"  # read by test_mutants when it is imported

import test_mutants
import test_second_engine as comparisons
from table import show

from materia_nb.cast.cases import read_case
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.loadout import build_graph
from second_engine import SecondEngine, length_of_shortest_difference

EDITS: Final = 8
"""Number of random edits of each random loadout."""
MIN_DETECTED, MAX_FALSE_ALARMS = 0.99, 0.01
COMPARED: Final[dict[str, Callable[[int], None]]] = {
    "casts: route and end": comparisons.test_random_casts_take_the_same_route_to_the_same_end,
    "explore and odds": comparisons.test_explore_and_odds_agree_with_the_enumeration_of_all_casts,
    "distributions": comparisons.test_distributions_agree_with_the_enumeration_of_all_casts,
    "witness without and since": comparisons.test_example_run_that_avoids_an_event_exists_if_a_cast_can_avoid_it,
    "replays": comparisons.test_replay_in_a_changed_loadout_agrees_with_the_second_engine,
    "changes of behaviour": comparisons.test_changes_of_behaviour_agree_with_all_casts_of_both_loadouts,
}


def check_known_loadouts(max_states: int) -> bool:
    """Print the mutation score of the saved tests of the gallery, and return True if it reaches the goal."""
    print("Saved tests of the gallery: one edge or exit is removed, or its target, condition or limit is changed\n")
    rows, whole, detected = [], 0, 0
    for name, sample in test_mutants.SAMPLES.items():
        document = json.loads(json.dumps(sample))
        document.setdefault("activeLoadout", next(iter(document["loadouts"])))
        if not ExploreView(build_graph(document), range(3), max_states).complete_search:
            continue
        with tempfile.TemporaryDirectory() as folder:
            count, noticed, *_ = test_mutants.score(document, Path(folder))
        whole, detected = whole + count, detected + noticed
        rows.append([name, f"{count:,}", f"{noticed:,}"])
    show(["loadout", "changes of behaviour", "detected"], [*rows, ["all", f"{whole:,}", f"{detected:,}"]])
    print(f"  mutation score {detected / whole:.1%}; goal: at least {MIN_DETECTED:.0%}\n")
    return detected >= MIN_DETECTED * whole


def check_random_loadouts(loadouts: int) -> bool:
    """Print how many random edits the saved tests of random loadouts detect, and return True if the goals are reached."""
    outcomes: Counter[tuple[bool, bool]] = Counter()
    for seed in range(loadouts):
        document, count, random = comparisons.document_of(seed), seed % 3, Random(seed)
        view = ExploreView(build_graph(document), count, comparisons.MAX_STATES)
        if not view.complete_search:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "edited.json"
            file.write_text(json.dumps(document))
            cases = [read_case(path) for path in view.save_tests(Path(folder) / "cases", follows=file)]
            for _ in range(EDITS):
                other = comparisons.edited(document, random)
                engines = SecondEngine(document), SecondEngine(other)
                is_changed = length_of_shortest_difference(*engines, count) is not None
                file.write_text(json.dumps(other))
                outcomes[is_changed, any(case.check() for case in cases)] += 1
    changed, unchanged = (outcomes[kind, True] + outcomes[kind, False] for kind in (True, False))
    detected, alarms = outcomes[True, True], outcomes[False, True]
    print(f"Saved tests of {loadouts:,} random loadouts, each with {EDITS} random edits\n")
    rows = [
        ["change the behaviour", f"{changed:,}", f"{detected:,}"],
        ["change nothing", f"{unchanged:,}", f"{alarms:,}"],
    ]
    show(["edits that", "number", "failed a test"], rows)
    print(f"  mutation score {detected / changed:.1%}; goal: at least {MIN_DETECTED:.0%}")
    print(f"  false alarms {alarms / unchanged:.1%}; goal: at most {MAX_FALSE_ALARMS:.0%}\n")
    return detected >= MIN_DETECTED * changed and alarms <= MAX_FALSE_ALARMS * unchanged


def compare_with_second_engine(parts: int) -> bool:
    """Repeat the comparisons with the second engine, print their number, and return True if none differs."""
    rows, all_agree = [], True
    for name, compare in COMPARED.items():
        comparisons.compared.clear()
        different = ""
        for part in range(parts):
            try:
                compare(part)
            except AssertionError as error:
                different, all_agree = f"seed {error}".splitlines()[0], False
        counts = comparisons.compared
        rows.append([name, f"{counts['loadouts']:,}", f"{counts['values']:,}", different or "0"])
    print("Comparisons with the second engine\n")
    show(["", "loadouts", "values", "different"], rows)
    return all_agree


def main() -> int:
    """Run all checks, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--random", type=int, default=200, help="number of random loadouts whose saved tests are checked"
    )
    parser.add_argument("--states", type=int, default=200, help="maximum number of states of a loadout of the gallery")
    parser.add_argument("--parts", type=int, default=5, choices=range(1, 6), help="parts of the comparisons, of five")
    arguments = parser.parse_args()
    start_time = time.perf_counter()
    passed = [
        check_known_loadouts(arguments.states),
        check_random_loadouts(arguments.random),
        compare_with_second_engine(arguments.parts),
    ]
    print(f"\n{time.perf_counter() - start_time:.0f} seconds")
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
