"""Plant faults in the engine, one at a time, and count the faults that the tests with the second engine find.

``make bench-faults`` runs tests/insight/test_second_engine.py for each fault in a copy of the package, until the first
failure. It exits with 1 if fewer than 28 of the 30 faults are found, or if the tests fail without a fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
TESTS: Final = "tests/insight/test_second_engine.py"
REQUIRED: Final = 28


class Fault(NamedTuple):
    """A planted fault: a text in a module, and the faulty text that replaces it."""

    rule: str
    module: str
    text: str
    replacement: str


ROUTING, COMPLETING, ENTERING = "engine/routing.py", "engine/completing.py", "engine/entering.py"
RULES, DERIVED, CONDITIONS = "engine/rules.py", "loadout/items.py", "loadout/vocabulary.py"
FAULTS: Final = (
    Fault("the last matching edge is taken", ROUTING, "for edge in edges:\n", "for edge in reversed(edges):\n"),
    Fault("an edge is never taken by its first match alone", ROUTING, "if matched:\n            return Choice(edge.to,", "if matched and edge is edges[-1]:\n            return Choice(edge.to,"),
    Fault("exits are never taken", ROUTING, "    if exhausted:\n", "    if False:\n"),
    Fault("exits are taken at any time", ROUTING, "    if exhausted:\n", "    if exhausted or rules.exits:\n"),
    Fault("the first matching exit is taken, guarded or not", ROUTING, "iter(conditional or matching)", "iter(matching)"),
    Fault("guarded exits are ignored", ROUTING, "iter(conditional or matching)", "iter(r for r in matching if r not in conditional)"),
    Fault("without an exit the cast continues along an edge", ROUTING, "        return _choose_exit(rules.exits, result)", "        choice = _choose_exit(rules.exits, result)\n        return _choose_first_match(rules.socket.edges, result) if choice.route is None else choice"),
    Fault("limits inside items count over the entire cast", ROUTING, "    if item is None:\n        used", "    if True:\n        used"),
    Fault("an edge's own limit is ignored outside items", ROUTING, "max_edge_traversals if limit is None else limit", "max_edge_traversals"),
    Fault("edges outside items have no limit", ROUTING, "max_edge_traversals if limit is None else limit", "max_edge_traversals * 99 if limit is None else limit"),
    Fault("a limit allows one additional traversal", ROUTING, "if used < limit:\n        return None\n    granted", "if used <= limit:\n        return None\n    granted"),
    Fault("a limit allows one traversal too few", ROUTING, "if used < limit:\n        return None\n    granted", "if used + 1 < limit:\n        return None\n    granted"),
    Fault("every round counts as a cycle", ROUTING, "counted = state.bounded_at < step", "counted = True"),
    Fault("no round counts as a cycle", ROUTING, "counted = state.bounded_at < step", "counted = False"),
    Fault("a cycle does not shorten the path", ROUTING, "(*path[:index], (socket, visit_step))", "(*path, (socket, visit_step))"),
    Fault("traversals are not added up", ROUTING, "FrozenDict({**draft.counts, edge_id: used + 1})", "FrozenDict({**draft.counts, edge_id: 1})"),
    Fault("a new plan does not reset the cursor", COMPLETING, "name: 0 if name in cursors else at for", "name: at for"),
    Fault("a new plan keeps the records of the items", COMPLETING, "forget_items(draft, lambda item: is_iterated_by(item, cursors))", "forget_items(draft, lambda item: False)"),
    Fault("every output advances", COMPLETING, "if not CONDITION_SPECS[advance.when].matches(result):", "if False:"),
    Fault("the last item is never reached", COMPLETING, "length, after >= length, advance", "length, after > length, advance"),
    Fault("the list is exhausted one item early", COMPLETING, "length, after >= length, advance", "length, after >= length - 1, advance"),
    Fault("an exhausted list does not leave the loop", COMPLETING, "draft, visit.item), advance.exhausted", "draft, visit.item), False"),
    Fault("a failure follows the edges for not_satisfied", COMPLETING, 'outcome = PendingRoute(result, "", failure', 'outcome = PendingRoute(Result.NO, "", failure'),
    Fault("one cycle too few is allowed", ENTERING, "if record.cycles > limit:", "if record.cycles >= limit:"),
    Fault("an empty loop ends the cast", ENTERING, "route.target if route else END", "END"),
    Fault("an empty loop takes the first exit of any condition", RULES, 'if route.condition == "always"]', "]"),
    Fault("an empty loop prefers the exits of other sockets", RULES, "(own or routes)[0]", "(routes or own)[0]"),
    Fault("exits of different conditions derive an advance when satisfied", DERIVED, 'len(unique_conditions) == 1 else "always"', 'len(unique_conditions) == 1 else "satisfied"'),
    Fault("exits with one condition derive an unconditional advance", DERIVED, "unique_conditions.pop() if len(unique_conditions) == 1", '"always" if len(unique_conditions) == 1'),
    Fault("failures match every condition", CONDITIONS, "(Result.FAILED in self.needs and result.is_silent)", "result.is_silent"),
)  # fmt: skip


def tests_fail(copy: Path) -> bool:
    """Return True if the tests fail in the copy of the package."""
    paths = [copy, copy / "tests", copy / "tests/helpers", copy / "tests/quick", copy / "scripts"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "CI": "1"}
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval"]
    command = [sys.executable, "-m", "pytest", *options, "-o", "addopts=", TESTS]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest exited with code {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.returncode == 1


def main() -> int:
    """Plant each fault, print whether it is found, and return the exit code."""
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("materia_nb", "tests", "scripts"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if tests_fail(copy):
            print("The tests fail without a fault.")
            return 1
        for fault in FAULTS:
            path = copy / "materia_nb" / fault.module
            source = path.read_text(encoding="utf-8")
            if source.count(fault.text) != 1:
                count = source.count(fault.text)
                sys.exit(f"{fault.module} contains this text {count} times: {fault.text!r}. Correct FAULTS.")
            path.write_text(source.replace(fault.text, fault.replacement), encoding="utf-8")
            is_found = tests_fail(copy)
            path.write_text(source, encoding="utf-8")
            found += is_found
            print(f"{'found ' if is_found else 'MISSED'} {fault.rule}", flush=True)
    print(f"{found} of {len(FAULTS)} planted faults found; {REQUIRED} required")
    return int(found < REQUIRED)


if __name__ == "__main__":
    sys.exit(main())
