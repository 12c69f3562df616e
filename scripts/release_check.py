"""List everything that is missing for a release: ``python scripts/release_check.py``, or ``make release-check``.

``[tool.home]`` in pyproject.toml has the owner and the addresses; ``--write`` copies them to the other files. Without
``--write``, the script lists placeholders and different values, then the third-party files with their licences. It
exits with 1 if anything is missing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import make_front

ROOT: Final = Path(__file__).resolve().parent.parent
PLACEHOLDER: Final = re.compile(r"\.invalid\b|^Materia NB contributors$|^$")
PLACES: Final = (
    ("pyproject.toml", r'^authors = \[\{ name = "(.*)" \}\]', "owner"),
    ("pyproject.toml", r'^Homepage = "(.*)"', "homepage"),
    ("pyproject.toml", r'^Documentation = "(.*)"', "documentation"),
    ("pyproject.toml", r'^Source = "(.*)"', "source"),
    ("pyproject.toml", r'^Issues = "(.*)"', "issues"),
    ("pyproject.toml", r'^Changelog = "(.*)"', "changelog"),
    ("pyproject.toml", r'^pages = "(.*)"', "readme-links"),
    ("pyproject.toml", r'^pictures = "(.*)"', "readme-pictures"),
    ("CITATION.cff", r"^  - name: (.*)", "owner"),
    ("CITATION.cff", r'^url: "(.*)"', "homepage"),
    ("CITATION.cff", r'^repository-code: "(.*)"', "source"),
    ("recipe/recipe.yaml", r"^  homepage: (.*)", "homepage"),
    ("recipe/recipe.yaml", r"^  repository: (.*)", "source"),
    ("recipe/recipe.yaml", r"^  documentation: (.*)", "documentation"),
    ("docs/command-line-and-ci.md", r"^  - repo: (.*)", "source"),
    (".github/workflows/release.yml", r"^          repository-url: (.*)", "index"),
)
"""The places that repeat a value of ``[tool.home]``: the file, the pattern of the line, and the name of the value."""
OUTDATED_STATEMENTS: Final = (
    ("README.md", "isn't on a package index yet", "replace it with `pip install materia-nb`"),
    ("docs/command-line-and-ci.md", "is not on a package index yet", "remove the sentence"),
    ("docs/command-line-and-ci.md", "a placeholder until the first release", "remove the sentence"),
    ("CHANGELOG.md", "Nothing is released yet", "replace Unreleased with the version and the date"),
)
"""Statements that will no longer be true after the first release."""
THIRD_PARTY_FILES: Final = {
    "materia_nb/display/icons.json": ("Lucide icons", "ISC", "materia_nb/display/icons-license.txt"),
}
"""Third-party files in the package: a description, the licence, and the file with the text of the licence."""
_MADE_BY_OTHERS: Final = (".woff", ".woff2", ".ttf", ".otf", ".eot", ".wasm")


def home(root: Path) -> dict[str, Any]:
    """Return the owner and the addresses."""
    read: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["home"]
    return read


def missing(root: Path) -> Iterator[str]:
    """Yield each placeholder, each value that differs from ``[tool.home]``, and each outdated statement."""
    home_values = home(root)
    for name, value in home_values.items():
        if PLACEHOLDER.search(value):
            yield f"pyproject.toml: [tool.home] {name} = {value!r} is a placeholder"
    for path, line, name in PLACES:
        match = re.search(line, (root / path).read_text("utf-8"), re.MULTILINE)
        if match is None or match[1] != home_values[name]:
            yield f"{path}: {match[1] if match else f'no line {line}'} is not the {name} of [tool.home]; run with --write to correct it"
    for path, text, correction in OUTDATED_STATEMENTS:
        if text in (root / path).read_text("utf-8"):
            yield f"{path}: {text!r} will be wrong after the release: {correction}"


def write(root: Path) -> None:
    """Write the owner and the addresses to the files that contain them."""
    home_values = home(root)
    for path, line, name in PLACES:
        file = root / path
        text = file.read_text("utf-8")
        match = re.search(line, text, re.MULTILINE)
        if match is not None:
            file.write_text(text[: match.start(1)] + home_values[name] + text[match.end(1) :], "utf-8")


def licences(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the third-party files and modules that are shipped: path, licence, location of the licence."""
    for path, (component, licence, text) in THIRD_PARTY_FILES.items():
        yield f"{path} ({component})", licence, text if (root / text).is_file() else "MISSING"
    for file in sorted((root / "materia_nb").rglob("*")):
        if file.suffix in _MADE_BY_OTHERS:
            yield str(file.relative_to(root)), "MISSING", "add it to THIRD_PARTY_FILES"
    locked = json.loads((root / "package-lock.json").read_text("utf-8"))["packages"]
    for module in bundled(root):
        yield (
            f"{module} (in the front end's bundle)",
            locked.get(module, {}).get("license", "MISSING"),
            "package-lock.json",
        )


def bundled(root: Path) -> list[str]:
    """Return the npm packages that are part of the front-end bundle, or an empty result without npm."""
    if make_front.get_tools():
        return []
    with tempfile.TemporaryDirectory() as folder:
        meta = Path(folder) / "meta.json"
        entries = [str(make_front.SOURCES / source_name) for source_name in ("index.js", "loader.js")]
        options = [
            "--bundle",
            "--format=esm",
            "--log-level=error",
            f"--metafile={meta}",
            f"--outdir={folder}",
        ]
        esbuild = make_front.TOOLS / ".bin" / "esbuild"
        subprocess.run([esbuild, *entries, *options], check=True, cwd=root)
        inputs = json.loads(meta.read_text("utf-8"))["inputs"]
    packages = (re.match(r".*?(node_modules/(?:@[^/]+/)?[^/]+)/", name) for name in inputs)
    return sorted({match[1] for match in packages if match})


def main() -> int:
    """Check the files, or write them with ``--write``."""
    parser = argparse.ArgumentParser(description="List everything that is missing for a release.")
    parser.add_argument("--write", action="store_true", help="write the values of [tool.home] to all other files")
    if parser.parse_args().write:
        write(ROOT)
    problems = list(missing(ROOT))
    shipped = list(licences(ROOT))
    problems += [
        f"{component}: no licence ({where})" for component, licence, where in shipped if "MISSING" in (licence, where)
    ]
    print("Third-party files in the package:")
    for component, licence, where in shipped:
        print(f"  {component}: {licence}, {where}")
    print(f"Missing before a release: {len(problems)}")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
