"""Test that the published wheel is complete and reproducible and contains nothing else."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import zipfile
from importlib.util import find_spec

import pytest

from wheel_helpers import ROOT, Built, build, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("hatchling"), reason="the extra release is not installed"),
]
NEVER = re.compile(r"\.(pyc|ipynb_checkpoints|venv|git)\b|/\.pi/|__pycache__|/build/|/dist/")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    return build(ROOT, tmp_path_factory.mktemp("built"))


def in_wheel(built: Built) -> set[str]:
    with zipfile.ZipFile(built.wheel) as file:
        return set(file.namelist())


def in_sdist(built: Built) -> set[str]:
    with tarfile.open(built.sdist) as file:
        return {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}


def sources(folder: str) -> set[str]:
    """Return the files of a repository folder, without files that runs and tests leave behind."""
    paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path for path in paths if not NEVER.search(path)}


def test_wheel_contains_package_and_notebooks_once(built):
    package = {name for name in in_wheel(built) if ".dist-info/" not in name}
    notebooks = {f"materia_nb/{path}" for path in sources("notebooks")}
    assert "materia_nb/notebooks/01-edges.ipynb" in notebooks
    assert package == sources("materia_nb") - sources("materia_nb/widgets/front") | notebooks


def test_source_distribution_can_be_tested_and_rebuilt(built):
    names = in_sdist(built)
    for folder in ("materia_nb", "tests", "docs", "notebooks", "scripts", "binder", "recipe"):
        assert sources(folder) - names == set()
    assert {
        "pyproject.toml",
        "package-lock.json",
        "hatch_build.py",
        "LICENSE",
        "README.md",
        "CITATION.cff",
    } <= names
    assert [name for name in names if NEVER.search(name)] == []


def test_package_index_accepts_both_distributions(built):
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)])
    run(
        [
            sys.executable,
            "-m",
            "check_wheel_contents",
            "--config",
            str(ROOT / "pyproject.toml"),
            str(built.wheel),
        ]
    )


def test_builds_are_reproducible(built, tmp_path):
    copy = tmp_path / "elsewhere"
    with tarfile.open(built.sdist) as file:
        file.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.glob("materia_nb-*")
    shutil.move(unpacked, copy)
    (copy / "PKG-INFO").unlink()
    left = copy / "notebooks" / ".pi" / "pi-materia" / "a-cast" / "events.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text("somebody tried a notebook")
    again = build(copy, tmp_path / "again")
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.read_bytes() == built.sdist.read_bytes()
