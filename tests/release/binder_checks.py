"""Test that an environment built from binder/, as repo2docker builds it, runs the quickstart (``make binder``).

Not part of the test suite, because it takes a minute and downloads packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (ROOT / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
QUICKSTART = Path("notebooks/00-quickstart.ipynb")


class Environment:
    """A copy of the repository with its own environment, in which commands run as in repo2docker."""

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
            "PIP_NO_COMPILE": "1",  # compiling all files is slow; Python compiles imported modules anyway
        }
        self.run(python_to_use(), "-m", "venv", str(made))

    def run(self, *command: str) -> str:
        """Return the output of a command; fail the test if the command fails."""
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

    def can_download(self) -> bool:
        """Return True if packages can be downloaded; the method tries a small package that postBuild needs."""
        place = self.repository / "build" / "asked"
        pip = ["python", "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0"]
        return self.attempt(*pip, "-d", str(place), "hatchling").returncode == 0


def python_to_use() -> str:
    """Return the Python version of runtime.txt if it is installed, otherwise the version that runs the tests."""
    named = shutil.which(f"python{PYTHON}")
    works = named and subprocess.run([named, "--version"], capture_output=True, check=False).returncode == 0
    return named if named and works else sys.executable


@pytest.mark.timeout(400)
def test_quickstart_runs_in_a_new_environment(tmp_path):
    fresh = Environment(tmp_path)
    install = ["python", "-m", "pip", "install", "-q", "-r", "binder/requirements.txt"]
    done = fresh.attempt(*install)
    if done.returncode and not os.environ.get("CI") and not fresh.can_download():
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stdout[-4000:]
    fresh.run("./binder/postBuild")

    fresh.run("python", "-m", "pip", "check")
    where = "import materia_nb, pathlib; print(pathlib.Path(materia_nb.__file__).parent)"
    # -P: import the installed package, not the package in the current folder.
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
