"""Change a package at random places, one at a time, and check that its tests fail (mutation testing).

``python scripts/mutate.py store --count 30`` makes thirty small mutations in a copy of ``materia_nb/store``. A mutation
inverts a comparison, an ``and``, a ``not`` or a condition, changes a number, or removes a statement. For each mutation,
the tests in ``tests/store`` run until the first failure. The tests that call the mutated function run first, the
fastest first. The other tests in the files of these tests follow, and then all tests that start a process. Mutations without a failure
are printed: either a test is missing, or the line has no effect. The same seed gives the same mutations.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "materia_nb"
IGNORED: Final = shutil.ignore_patterns(".*", "build", "dist", "__pycache__")
PAIRS: Final = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
)
OPPOSITE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {**dict(PAIRS), **{b: a for a, b in PAIRS}}
OPTIONS: Final = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:nbval", "-o", "timeout=0"]
NO_TESTS: Final = {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED}
TIMEOUT_FACTOR: Final = 10
"""Time limit of a run, as a multiple of the time without a mutation. The limit stops endless loops."""


class Mutation(NamedTuple):
    """A mutation: a node of a file and its replacement."""

    path: Path
    node: ast.expr | ast.stmt
    replacement: str

    def __str__(self) -> str:
        old = " ".join(ast.unparse(self.node).split())
        return f"{self.path}:{self.node.lineno}: {old[:90]}  ->  {self.replacement[:90]}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the mutation applied."""
        lines = text.encode().splitlines(keepends=True)  # columns are counted in bytes
        start = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        end = sum(map(len, lines[: (self.node.end_lineno or 0) - 1])) + (self.node.end_col_offset or 0)
        data = b"".join(lines)
        return (data[:start] + self.replacement.encode() + data[end:]).decode()


def mutations_of(path: Path, source: str) -> Iterator[Mutation]:
    """Yield every possible mutation of a file."""
    for node in _executed_nodes(ast.parse(source)):
        match node:
            case ast.Compare(left, [operator], [right]) if type(operator) in OPPOSITE:
                turned = ast.Compare(left, [OPPOSITE[type(operator)]()], [right])
                yield Mutation(path, node, f"({ast.unparse(turned)})")
            case ast.BoolOp(operator, values):
                other = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield Mutation(path, node, f"({ast.unparse(ast.BoolOp(other, values))})")
            case ast.UnaryOp(ast.Not(), operand):
                yield Mutation(path, node, f"({ast.unparse(operand)})")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield Mutation(path, test, f"(not ({ast.unparse(test)}))")
            case ast.Constant(bool(value)):
                yield Mutation(path, node, str(not value))
            case ast.Constant(int(value)):
                yield Mutation(path, node, str(value + 1))
            case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
                yield Mutation(path, node, "pass")


def _executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the executed nodes that can be mutated. F-strings are skipped, because their positions are wrong."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Assert):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            yield child
            yield from _executed_nodes(child)


# -- a plugin of pytest, in the copy: what each test calls, and in which order tests run ------------

CALLS_FILE_VARIABLE: Final = "MUTATE_CALLED"
"""Environment variable with the path of the file in which the calls of each test are recorded."""
TESTS_FILE_VARIABLE: Final = "MUTATE_WANTED"
"""Environment variable with the path of the file that lists the tests to run, in order."""
_STARTED: Final = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec")


class Calls(NamedTuple):
    """The functions that a test calls, as ``file:first line``, its duration, and whether it starts a process."""

    functions: list[str]
    seconds: float
    starts: bool


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record the calls of a test if this was requested. Calls in other processes are not recorded."""
    if CALLS_FILE_VARIABLE not in os.environ:
        return (yield)
    called: set[str] = set()
    started = len(_processes)
    inside = f"{os.sep}{PACKAGE}{os.sep}"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and inside in frame.f_code.co_filename:
            _, _, path = frame.f_code.co_filename.rpartition(inside)
            called.add(f"{PACKAGE}{os.sep}{path}:{frame.f_code.co_firstlineno}")

    start_time = time.perf_counter()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        with Path(os.environ[CALLS_FILE_VARIABLE]).open("a") as file:
            seconds = time.perf_counter() - start_time
            file.write(json.dumps([item.nodeid, sorted(called), seconds, len(_processes) > started]) + "\n")


def pytest_configure() -> None:
    """Record each process that a test starts."""
    if CALLS_FILE_VARIABLE in os.environ:
        sys.addaudithook(lambda event, _: _processes.append(event) if event in _STARTED else None)


_processes: Final[list[str]] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run only the requested tests, in the requested order."""
    if TESTS_FILE_VARIABLE in os.environ:
        order = {name: n for n, name in enumerate(json.loads(Path(os.environ[TESTS_FILE_VARIABLE]).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def tests_for_mutation(mutation: Mutation, source: str, calls: dict[str, Calls]) -> list[str]:
    """Return the tests that may detect a mutation: first the tests that call its function, the fastest first."""
    enclosing_lines = [
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= mutation.node.lineno <= (node.end_lineno or 0)
    ]
    if not enclosing_lines:
        return list(calls)
    function = f"{mutation.path}:{max(enclosing_lines)}"
    by_time = sorted(calls, key=lambda name: calls[name].seconds)
    calling = [name for name in by_time if function in calls[name].functions]
    files = {name.partition("::")[0] for name in calling}
    neighbours = (name for name in by_time if name.partition("::")[0] in files or calls[name].starts)
    return list(dict.fromkeys((*calling, *neighbours)))


# -- runs -----------------------------------------------------------------------------------------


def first_failure(copy: Path, tests: str, more: Mapping[str, str], seconds: float | None = None) -> str:
    """Run the tests in the copy until the first failure. Return the name of the failed test, or "" if all pass."""
    command = [sys.executable, "-m", "pytest", "-p", "mutate", *OPTIONS, tests]
    paths = f"{copy}{os.pathsep}{copy / 'scripts'}"
    same = {"CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}  # hypothesis tries the same examples in each run
    environment = {**os.environ, "PYTHONPATH": paths, **same, **more}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds:.0f} s"
    if done.returncode == 0:
        return ""
    if done.returncode in NO_TESTS:
        sys.exit(f"pytest exited with code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    lines = (line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR")))
    return next(lines, f"pytest exited with code {done.returncode}")


def main() -> int:
    """Run the tests with each mutation, and print the results. Return 1 if the tests fail without a mutation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", help="a folder in materia_nb, such as store or cast/views")
    parser.add_argument("--count", type=int, default=30, help="number of mutations")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choice")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(ROOT, Path(folder) / "copy", symlinks=True, ignore=IGNORED))
        tests = f"tests/{arguments.package}"
        record = Path(folder) / "called.jsonl"
        start_time = time.monotonic()
        if failed := first_failure(copy, tests, {CALLS_FILE_VARIABLE: str(record)}):
            print(f"The tests fail even without a mutation: {failed}")
            return 1
        time_limit = TIMEOUT_FACTOR * (time.monotonic() - start_time)
        lines = map(json.loads, record.read_text().splitlines())
        calls = {name: Calls(*known) for name, *known in lines}
        tests_file = Path(folder) / "wanted.json"
        files = sorted((copy / PACKAGE / arguments.package).rglob("*.py"))
        known = [mutation for path in files for mutation in mutations_of(path.relative_to(copy), path.read_text())]
        chosen = random.Random(arguments.seed).sample(known, min(arguments.count, len(known)))  # noqa: S311 - which ones is not a secret
        caught = 0
        for mutation in chosen:
            path = copy / mutation.path
            source = path.read_text()
            path.write_text(mutation.applied(source))
            tests_file.write_text(json.dumps(selected_tests := tests_for_mutation(mutation, source, calls)))
            failed = (
                first_failure(copy, tests, {TESTS_FILE_VARIABLE: str(tests_file)}, time_limit) if selected_tests else ""
            )
            path.write_text(source)
            caught += bool(failed)
            print(f"{'caught  ' if failed else 'SURVIVED'} {mutation}{f'  ({failed})' if failed else ''}", flush=True)
        print(f"{caught} of {len(chosen)} caught")
    return 0


if __name__ == "__main__":
    sys.exit(main())
