"""Create or update the virtual environment of this checkout: ``bootstrap.py EXTRA...``.

It runs before anything is installed, so it uses only the standard library. A stamp in the environment holds the hash of
pyproject.toml and the installed extras. If the stamp is current, the script ends within milliseconds, so every make target runs it first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".materia-nb.json"


def main(extras_wanted: list[str]) -> int:
    """Install the extras unless the stamp lists them, and return the exit code."""
    project = (ROOT / "pyproject.toml").read_bytes()
    extras = with_implied(extras_wanted, tomllib.loads(project.decode())["project"])
    key = hashlib.sha256(project + str(ROOT).encode()).hexdigest()
    present = installed_extras(key)
    if extras <= present and environment_works():
        return 0
    if not environment_works():
        log(f"Creating {VENV.name} with Python {sys.version.split()[0]}")
        try:
            venv.create(VENV, clear=True, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            log(f"Cannot create {VENV}: {error}. On Debian and Ubuntu: apt-get install python3-venv")
            return 1
    names = ",".join(sorted(extras))
    log(f"Installing materia-nb[{names}] into {VENV.name} (the first time takes a minute or two)")
    pip = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run([*pip, "--editable", f"{ROOT}[{names}]"], check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        log("The installation failed. pip's message above states the reason.")
        return done.returncode
    STAMP.write_text(json.dumps({"key": key, "extras": sorted(extras | present)}))
    return 0


def with_implied(extras: list[str], project: dict[str, object]) -> set[str]:
    """Return the given extras and every extra that they include. For example, ``test`` includes ``lab``."""
    table = project["optional-dependencies"]
    if not isinstance(table, dict) or (unknown := set(extras) - set(table)):
        sys.exit(f"bootstrap: pyproject.toml does not define these extras: {', '.join(sorted(unknown))}")
    all_extras: set[str] = set()
    todo = list(extras)
    while todo:
        extra = todo.pop()
        if extra not in all_extras:
            all_extras.add(extra)
            own = rf"{re.escape(str(project['name']))}\[(.*)\]"
            for requirement in table[extra]:
                if match := re.fullmatch(own, requirement):
                    todo += match[1].split(",")
    return all_extras


def installed_extras(key: str) -> set[str]:
    """Return the extras that are installed for the current pyproject.toml."""
    try:
        stamp = json.loads(STAMP.read_text())
        return set(stamp["extras"]) if stamp["key"] == key else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def environment_works() -> bool:
    """Return True if the environment's Python starts. It fails if its base Python was removed or upgraded."""
    if not os.access(PYTHON, os.X_OK):
        return False
    code = "import sys, importlib.util as i; sys.exit(sys.version_info < (3, 11) or not i.find_spec('pip'))"
    return subprocess.run([PYTHON, "-c", code], check=False, capture_output=True).returncode == 0


def log(text: str) -> None:
    """Print a progress message to stderr."""
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
