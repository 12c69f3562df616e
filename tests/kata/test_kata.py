"""Apply typical changes to a copy of the package, and check all expected effects of each change.

Each change is a script in this folder. Its ``EDITS`` are the replacements in each file. When the script runs, it checks
the effects of the change. All changes are made in the same copy.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import builders
import materia_nb

HERE = Path(__file__).parent
KATA = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.stem != Path(__file__).stem}
EDITS = {name: runpy.run_path(str(path))["EDITS"] for name, path in KATA.items()}
PAGE = HERE.parents[1] / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return the folder of a copy of the package with all changes applied."""
    folder = tmp_path_factory.mktemp("kata")
    package = folder / "materia_nb"
    unneeded = shutil.ignore_patterns("__pycache__", "gallery", "cheatsheet")
    shutil.copytree(Path(materia_nb.__file__).parent, package, ignore=unneeded)
    for edits in EDITS.values():
        for file, (before, after) in edits.items():
            source = (package / file).read_text("utf-8")
            (package / file).write_text(source.replace(before, after), "utf-8")
    return folder


@pytest.mark.parametrize("name", KATA)
def test_kata_changes_need_only_the_listed_files(copy, name):
    for file, (before, _) in EDITS[name].items():
        source = (Path(materia_nb.__file__).parent / file).read_text("utf-8")
        assert source.count(before) == 1, f"{file} has changed; update this kata's EDITS to match"
    paths = os.pathsep.join((str(copy), str(Path(builders.__file__).parent)))
    result = subprocess.run(
        [sys.executable, str(KATA[name])],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_architecture_page_lists_the_files_of_each_kata():
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name: re.findall(r"`([^`]+)`", files) for name, files in rows} == {
        name: list(edits) for name, edits in EDITS.items()
    }
