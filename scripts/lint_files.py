"""Report code that opens files without ``materia_nb/file_io.py``, and exit with 1 if there is any.

Only that module opens files: it never blocks on a pipe, never follows an unexpected link, and never leaves a partially
written file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "materia_nb"
EXEMPT = {
    "file_io.py": "opens files for all other modules",
    "agents/tools/sandbox.py": "tools of models open each folder in turn and keep it open, so that no link leads outside the project",
    "agents/tools/search.py": "opens folders in the same way as sandbox.py",
    "widgets/frontend.py": "the front end is read as a resource of the package (Traversable)",
    "utilities/shipped": "separate programs that import no module of the package",
}
"""Files and folders that may open files directly, with the reason for each."""
FUNCTIONS = {
    "open", "io.open", "os.open", "os.fdopen", "os.truncate", "os.mkfifo",
    "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree",
}  # fmt: skip
METHODS = {"read_bytes", "write_bytes", "write_text"}
AMBIGUOUS_METHODS = {"open", "read_text"}
"""Names of path methods that other classes also have."""

NOT_FILES = {"guess.open", "sealed(found['seal']).open"}
"""Calls that are named like a path method but do not open a file, such as opening a sealed prediction."""


def file_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each call that opens or may open a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FUNCTIONS:
            yield node.lineno, name
        elif isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in METHODS or (method in AMBIGUOUS_METHODS and _looks_like_path_method(method, node)):
                yield node.lineno, name


def _looks_like_path_method(method: str, call: ast.Call) -> bool:
    """Return True if a call looks like a path method: it has a mode or an encoding, or reads text without arguments."""
    if any(keyword.arg in ("mode", "encoding", "errors") for keyword in call.keywords):
        return True
    first = call.args[0] if call.args else None
    if first is None:
        return method == "read_text" or ast.unparse(call.func) not in NOT_FILES
    mode = first.value if isinstance(first, ast.Constant) else None
    return isinstance(mode, str) and bool(mode) and set(mode) <= set("rwxabt+")


def problems(package: Path = PACKAGE) -> list[str]:
    """Return a message for each call outside ``file_io.py`` that opens a file."""
    problem_lines = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name in EXEMPT or any(name.startswith(f"{folder}/") for folder in EXEMPT):
            continue
        problem_lines += [
            f"{path}:{line}: {call}(...): read and write files through materia_nb/file_io.py instead"
            for line, call in file_calls(ast.parse(path.read_text(encoding="utf-8")))
        ]
    return problem_lines


if __name__ == "__main__":
    problem_lines = problems()
    sys.stdout.write("".join(f"{line}\n" for line in problem_lines))
    sys.exit(bool(problem_lines))
