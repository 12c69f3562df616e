"""Build the wheel and the source distribution, and environments that contain nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "1700000000"
OURS = {"PYTHONPATH", "PYTHONHOME", "MATERIA_CONFIG", "MATERIA_PROFILE_DIR", "JUPYTER_PATH", "VIRTUAL_ENV"}


class Built(NamedTuple):
    """The built wheel and source distribution."""

    sdist: Path
    wheel: Path


def build(source: Path, out: Path, epoch: str = EPOCH) -> Built:
    """Build the source distribution, and then the wheel from it, with the installed hatchling."""
    run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)],
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
    )
    [sdist], [wheel] = out.glob("*.tar.gz"), out.glob("*.whl")
    return Built(sdist, wheel)


def run(command: list[str], **more) -> str:
    """Return the output of a command; fail the test if the command fails."""
    done = attempt(command, **more)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}"
    return done.stdout


def attempt(command: list[str], **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )


class NewUser:
    """A user with a wheel, an empty folder and a new environment, but without a copy of the repository."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        made = folder / "environment"
        run([python, "-m", "venv", str(made)])
        self.bin = made / "bin"
        kept = {name: value for name, value in os.environ.items() if name not in OURS}
        self.variables = kept | {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
            "JUPYTER_DATA_DIR": str(folder / "jupyter-data"),
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip"),
            "PIP_NO_COMPILE": "1",  # compiling all files is slow; Python compiles imported modules anyway
            "PIP_NO_INPUT": "1",
        }

    def run(self, *command: str) -> str:
        return run(list(command), cwd=self.home, env=self.variables)

    def attempt(self, *command: str) -> subprocess.CompletedProcess[str]:
        return attempt(list(command), cwd=self.home, env=self.variables)

    def python(self, code: str) -> str:
        return self.run("python", "-c", code).strip()

    def install(self, wheel: Path, extra: str = "") -> None:
        """Install the wheel with an extra; skip the test if no package index can be reached, except in CI."""
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        done = self.attempt("python", "-m", "pip", "install", "-q", wanted)
        small = ["python", "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0"]
        if done.returncode and not os.environ.get("CI") and self.attempt(*small, "pathspec").returncode:
            pytest.skip("the package index cannot be reached")
        assert done.returncode == 0, done.stdout[-4000:]


def pythons() -> dict[str, str]:
    """Return the supported Python interpreters on this machine by version, found on PATH, in pyenv and in uv."""
    kept = [Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python"]
    found = {}
    for minor in range(11, 15):
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *(path for folder in kept for path in folder.glob(f"*/bin/{name}"))]
        for path in map(str, filter(None, candidates)):
            # A shim of pyenv can exist for a version that is not installed.
            if attempt([path, "-c", "import venv, ensurepip"]).returncode == 0:
                found[f"3.{minor}"] = path
                break
    return found
