"""Create a second, small environment with the oldest ipykernel that pyproject.toml allows.

``make test`` runs ``python scripts/oldest_kernel.py`` before the tests. If the packages cannot be installed, the script
fails in CI; elsewhere it reports that the tests on that kernel will be skipped. The environment contains only ipykernel
and this package.
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
    """Return the environment's Python, or None if it is missing or was installed for another pyproject.toml."""
    path, stamp = home / "bin" / "python", home / "made-for"
    try:
        is_current = os.access(path, os.X_OK) and stamp.read_text() == environment_key()
    except OSError:
        is_current = False
    return path if is_current else None


def oldest_version(project: Mapping[str, Any] | None = None) -> str:
    """Return the oldest version of ipykernel that pyproject.toml allows, such as ``6.29``."""
    if project is None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lab = project["optional-dependencies"]["lab"]
    [requirement] = [requirement_line for requirement_line in lab if requirement_line.startswith("ipykernel>=")]
    return str(requirement).removeprefix("ipykernel>=").partition(",")[0]


def environment_key() -> str:
    """Return a digest of pyproject.toml, the path of this checkout and the version of this Python."""
    project = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(project + f"{ROOT} {sys.version}".encode()).hexdigest()


def make(home: Path = HOME) -> bool:
    """Create the environment, and return True on success."""
    log(f"Creating {home.name} with ipykernel {oldest_version()}")
    # This environment's pip installs into the other, because installing pip there takes longer.
    venv.create(home, clear=True, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "-qq"]
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile"]
    packages = [f"ipykernel=={oldest_version()}", "--editable", str(ROOT)]
    done = subprocess.run([*pip, *quiet, *packages], check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        (home / "made-for").write_text(environment_key())
    return done.returncode == 0


def main() -> int:
    """Find or create the environment. Return 1 if there is none in CI."""
    if python() is not None or make():
        return 0
    log("The environment could not be created (see pip's message above). The tests on the oldest kernel are SKIPPED.")
    return 1 if os.environ.get("CI") else 0


def log(text: str) -> None:
    """Print a message to stderr."""
    print(f"oldest_kernel: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
