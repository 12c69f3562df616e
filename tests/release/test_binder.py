"""binder/ is as repo2docker reads it, and an environment made from these files runs the quickstart."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KNOWN_PYTHONS = [f"3.{minor}" for minor in range(5, 15)]  # those that repo2docker of April 2026 has
QUICKSTART = Path("notebooks/00-quickstart.ipynb")
NOT_OURS = {"notebook"}
"""Pinned although we do not ask for it: Binder brings one, and it has to fit the JupyterLab that is pinned."""


def pins() -> dict[str, Requirement]:
    lines = (
        line.partition("#")[0].strip() for line in (BINDER / "requirements.txt").read_text().splitlines()
    )
    found = [Requirement(line) for line in lines if line]
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def python_of_binder() -> str:
    match = re.fullmatch(r"python-(3\.\d+)\n", (BINDER / "runtime.txt").read_text())
    assert match, "runtime.txt is one line: python-3.x"
    return match[1]


# -- the files ------------------------------------------------------------------------


def test_only_files_that_are_read_are_there():
    """An environment.yml, a Pipfile or a Dockerfile would be read in place of requirements.txt; .binder is an error."""
    assert {path.name for path in BINDER.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}
    assert not (ROOT / ".binder").exists()


def test_the_python_is_one_that_both_sides_know():
    assert python_of_binder() in KNOWN_PYTHONS
    assert f"{python_of_binder()}.0" in SpecifierSet(PROJECT["requires-python"])


def test_post_build_is_a_program_that_stops_at_the_first_failure():
    path = BINDER / "postBuild"
    lines = path.read_text().splitlines()
    assert os.access(path, os.X_OK)
    assert lines[0] == "#!/usr/bin/env bash"
    commands = [line for line in lines if not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"


def test_every_dependency_is_pinned_within_its_range():
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
    wanted = {one.name: one.specifier for one in map(Requirement, asked)}
    assert set(pins()) - NOT_OURS == set(wanted)
    for name, pin in pins().items():
        [exactly] = pin.specifier
        assert exactly.operator == "==", name
        assert exactly.version in wanted.get(name, SpecifierSet()), name


# -- what they make -------------------------------------------------------------------


class Environment:
    """A copy of the repository with an environment of its own, in which commands run as repo2docker runs them."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "repository"
        leave = shutil.ignore_patterns(".*", "build", "dist", "__pycache__")
        shutil.copytree(ROOT, self.repository, ignore=leave)
        made = folder / "environment"
        ours = {"PYTHONPATH", "PYTHONHOME", "MATERIA_CONFIG", "JUPYTER_PATH"}
        self.variables = {name: value for name, value in os.environ.items() if name not in ours} | {
            "VIRTUAL_ENV": str(made),
            "PATH": f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
            "JUPYTER_DATA_DIR": str(folder / "jupyter-data"),
            "IPYTHONDIR": str(folder / "ipython"),
            "PIP_NO_INPUT": "1",
            "PIP_NO_COMPILE": "1",  # the same files, sooner: Python compiles what is imported
        }
        self.run(python_to_use(), "-m", "venv", str(made))

    def run(self, *command: str) -> str:
        """What a command prints; the test fails where the command does."""
        done = self.attempt(*command)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}"
        return done.stdout

    def attempt(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.repository,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def has_an_index(self) -> bool:
        """Whether packages can be had at all, asked with one that is small and that postBuild needs."""
        place = self.repository / "build" / "asked"
        pip = ["python", "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0"]
        return self.attempt(*pip, "-d", str(place), "hatchling").returncode == 0


def python_to_use() -> str:
    """The Python that runtime.txt names where it is to be had, and else the one that runs the tests."""
    named = shutil.which(f"python{python_of_binder()}")
    works = named and subprocess.run([named, "--version"], capture_output=True, check=False).returncode == 0
    return named if named and works else sys.executable


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_fresh_environment_runs_the_quickstart(tmp_path):
    fresh = Environment(tmp_path)
    install = ["python", "-m", "pip", "install", "-q", "-r", "binder/requirements.txt"]
    done = fresh.attempt(*install)
    if done.returncode and not os.environ.get("CI") and not fresh.has_an_index():
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stdout[-4000:]
    fresh.run("./binder/postBuild")

    fresh.run("python", "-m", "pip", "check")
    where = "import materia_nb, pathlib; print(pathlib.Path(materia_nb.__file__).parent)"
    # -P: not from the folder where it stands, but as it was installed.
    assert Path(fresh.run("python", "-P", "-c", where).strip()).is_relative_to(tmp_path / "environment")
    fresh.run("jupyter", "execute", "--inplace", str(QUICKSTART))

    cells = json.loads((fresh.repository / QUICKSTART).read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    errors = {cell["id"] for cell in code for out in cell["outputs"] if out["output_type"] == "error"}
    on_purpose = {cell["id"] for cell in code if "raises-exception" in cell["metadata"].get("tags", ())}
    assert errors == on_purpose
    casts = list((fresh.repository / "notebooks" / ".pi" / "pi-materia").glob("*/events.jsonl"))
    assert casts, "the notebook casts"
    extensions = fresh.run("jupyter", "labextension", "list")
    for name in ("anywidget", "jupyter-cytoscape", "@jupyter-widgets/jupyterlab-manager"):
        assert re.search(rf"{re.escape(name)} v\S+ .*enabled.*OK", extensions), extensions
