"""Refuse what opens files past ``materia_nb/file_io.py``: ``python scripts/lint_files.py``; exits with 1 if anything does.

There alone a file is opened, so that a pipe is never waited for, no link is followed unasked, and nobody meets half a file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "materia_nb"
EXCEPT = {
    "file_io.py": "the doors",
    "agents/tools/sandbox.py": "tools of models walk folder by folder, each held open, so that no link leads out",
    "agents/tools/search.py": "as confine.py",
    "widgets/frontend.py": "the front end is read as a resource of the package (Traversable)",
    "utilities/shipped": "programs of their own, which import nothing of the package",
}
"""Files and folders that may, and why."""
FUNCTIONS = {
    "open", "io.open", "os.open", "os.fdopen", "os.truncate", "os.mkfifo",
    "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree",
}  # fmt: skip
METHODS = {"read_bytes", "write_bytes", "write_text"}
OF_PATHS = {"open", "read_text"}
"""Methods of paths whose names others have as well."""

OTHERS = {"guess.open", "sealed(found['seal']).open"}
"""Calls of such a name that open no file: seals of predictions."""


def found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that opens a file, or may."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FUNCTIONS:
            yield node.lineno, name
        elif isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in METHODS or (method in OF_PATHS and _as_of_a_path(method, node)):
                yield node.lineno, name


def _as_of_a_path(method: str, call: ast.Call) -> bool:
    """Whether a call looks like that of a path's method: with a mode or an encoding, or reading text with nothing."""
    if any(keyword.arg in ("mode", "encoding", "errors") for keyword in call.keywords):
        return True
    first = call.args[0] if call.args else None
    if first is None:
        return method == "read_text" or ast.unparse(call.func) not in OTHERS
    mode = first.value if isinstance(first, ast.Constant) else None
    return isinstance(mode, str) and bool(mode) and set(mode) <= set("rwxabt+")


def problems(package: Path = PACKAGE) -> list[str]:
    """Return what opens files elsewhere, a line each."""
    problem_lines = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name in EXCEPT or any(name.startswith(f"{folder}/") for folder in EXCEPT):
            continue
        problem_lines += [
            f"{path}:{line}: {call}(...): read and write through materia_nb/file_io.py"
            for line, call in found(ast.parse(path.read_text(encoding="utf-8")))
        ]
    return problem_lines


if __name__ == "__main__":
    problem_lines = problems()
    sys.stdout.write("".join(f"{line}\n" for line in problem_lines))
    sys.exit(bool(problem_lines))
