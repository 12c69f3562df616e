"""Make an environment with nbgrader on top of this one: ``python scripts/nbgrader_env.py``.

nbgrader puts itself into the menus and the server of the JupyterLab beside it, so it gets a place of its own,
build/nbgrader, which sees the packages of this environment. ``make class`` grades the lessons in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import Final

from oldest_kernel import ROOT, made_for

HOME: Final = ROOT / "build" / "nbgrader"


def python(home: Path = HOME) -> Path | None:
    """Path of the environment's Python; None where it is not there, or was made for another pyproject.toml."""
    path, stamp = home / "bin" / "python", home / "made-for"
    try:
        made = os.access(path, os.X_OK) and stamp.read_text() == made_for()
    except OSError:
        made = False
    return path if made else None


def make(home: Path = HOME) -> bool:
    """Make the environment; whether that went well."""
    venv.create(home, clear=True, with_pip=False)
    [inside] = home.glob("lib/python*/site-packages")
    below = sysconfig.get_paths()["purelib"]
    (inside / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "-qq"]
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile"]
    done = subprocess.run([*pip, *quiet, *extras["nbgrader"]], check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        (home / "made-for").write_text(made_for())
    return done.returncode == 0


def main() -> int:
    """Make the environment unless it is there; the exit code."""
    return 0 if python() is not None or make() else 1


if __name__ == "__main__":
    sys.exit(main())
