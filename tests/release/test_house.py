"""Test that the package stays within its size limits, which may only be lowered."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "materia_nb"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

LIMITS = {
    "files": 190,
    "lines of code": 53_925,  # Python, TOML and JavaScript together
    "lines of code in one module": 450,
    "public names that stand for two things": 38,
}
STORED_RECORDS = 600_000
"""Maximum size of tests/data/shown, in bytes; people must review these files whenever they change."""


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of code lines, without comments and docstrings."""
    docstrings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in LAYOUT]
    return len({line for span in spans for line in span} - docstrings)


def table_lines(text: str) -> int:
    """Return the number of lines of a TOML file, without blank lines and comments."""
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())


def script_lines() -> int:
    """Return the number of JavaScript lines of the front end, without the generated bundles."""
    scripts = [path for path in PACKAGE.rglob("*.js") if "bundle" not in path.parts]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in scripts)


def public_names(tree: ast.Module) -> set[str]:
    """Return the public functions, classes and constants of a module."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def test_package_size_stays_within_its_limits():
    texts = [path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    lines = [code_lines(text, tree) for text, tree in zip(texts, trees, strict=True)]
    tables = [table_lines(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.toml")]
    total = sum(lines) + sum(tables) + script_lines()
    offered = Counter(name for tree in trees for name in public_names(tree))
    doubled = sorted(name for name, count in offered.items() if count > 1)
    measured = dict(zip(LIMITS, (len(texts), total, max(lines), len(doubled)), strict=True))
    grown = {limit: count for limit, count in measured.items() if count > LIMITS[limit]}
    assert not grown, f"make the package smaller; public names that stand for two things: {', '.join(doubled)}"


def test_stored_records_stay_small_enough_to_be_reviewed():
    assert sum(path.stat().st_size for path in (ROOT / "tests/data/shown").iterdir()) <= STORED_RECORDS


def test_docstrings_and_comments_are_not_counted():
    text = '"""Say."""\n\n# why\ndef f():\n    """Do."""\n    return """a\nb"""\n'
    assert code_lines(text, ast.parse(text)) == 3


def imported(tree: ast.Module) -> set[str]:
    """Return the modules and members that a module imports anywhere, including imports for type checking."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= {name.name for name in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                names |= {module, *(f"{module}.{one.name}" for one in node.names)}
    return names


def test_modules_have_no_import_cycles():
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    needs = {}
    for name, path in modules.items():
        wanted = imported(ast.parse(path.read_text(encoding="utf-8"))) & modules.keys() - {name}
        # An import of a module from a package depends on that module, not on the package.
        packages = {parent for one in wanted if (parent := one.rpartition(".")[0]) in wanted}
        needs[name] = wanted - packages
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the cycle
