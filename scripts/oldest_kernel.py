"""Make a second, small environment whose kernel is the oldest ipykernel that pyproject.toml allows.

``python scripts/oldest_kernel.py`` is what ``make test`` runs before the tests. Where the packages cannot be
had it ends with an error if CI is set; elsewhere the tests on that kernel are skipped, and it says so. It holds
what a kernel needs and no more: ipykernel, and this package as its users install it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / "build" / "oldest-kernel"


def python(home: Path = HOME) -> Path | None:
    """Path of the environment's Python; None where it is not there, or was made for another pyproject.toml."""
    path, stamp = home / "bin" / "python", home / "made-for"
    try:
        is_current = os.access(path, os.X_OK) and stamp.read_text() == made_for()
    except OSError:
        is_current = False
    return path if is_current else None


def oldest(project: Mapping[str, Any] | None = None) -> str:
    """Version of the oldest ipykernel that is allowed, as pyproject.toml writes it: ``6.29``."""
    if project is None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lab = project["optional-dependencies"]["lab"]
    [requirement] = [requirement_line for requirement_line in lab if requirement_line.startswith("ipykernel>=")]
    return str(requirement).removeprefix("ipykernel>=").partition(",")[0]


def made_for() -> str:
    """What an environment is good for: this pyproject.toml, this checkout, this Python."""
    project = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(project + f"{ROOT} {sys.version}".encode()).hexdigest()


def make(home: Path = HOME) -> bool:
    """Make the environment; whether that went well."""
    say(f"Making {home.name} with ipykernel {oldest()}")
    # The pip of this environment installs into that one: it would take longer to give it one of its own.
    venv.create(home, clear=True, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "-qq"]
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile"]
    packages = [f"ipykernel=={oldest()}", "--editable", str(ROOT)]
    done = subprocess.run([*pip, *quiet, *packages], check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        (home / "made-for").write_text(made_for())
    return done.returncode == 0


def main() -> int:
    """Find or make it; 1 where CI needs it and it cannot be had."""
    if python() is not None or make():
        return 0
    say("pip's message above says why not: the tests on the oldest kernel are SKIPPED")
    return 1 if os.environ.get("CI") else 0


def say(text: str) -> None:
    """Tell it at once, apart from what the commands print."""
    print(f"oldest_kernel: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
