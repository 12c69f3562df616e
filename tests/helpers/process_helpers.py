"""Start real processes that report their ids, and wait until processes run or have ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN_CASES = (
    sys.executable,
    "-m",
    "pytest",
    "-p",
    "materia_nb.pytest_plugin",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:nbval",
)
"""The command that runs saved test cases with pytest, without nbval, which takes long to load."""


def wait_for(condition, seconds: float = 5):
    """Poll until the condition is true and return its value; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    pytest.fail(f"did not happen within {seconds} s")


def is_running(pid: int) -> bool:
    """Return True if a process is running; a zombie does not count as running."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith("Z")


def pids_in(path: Path, count: int = 1) -> list[int]:
    def read():
        words = path.read_text().split() if path.exists() else []
        return words if len(words) >= count else None

    return [int(word) for word in wait_for(read)]


def assert_gone(*pids: int) -> None:
    for pid in pids:
        wait_for(lambda pid=pid: not is_running(pid))


# A child and a grandchild of its group that ignore SIGTERM, once both have told their numbers.
STUBBORN_PAIR = """
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pid = os.fork()
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(60)
"""


# One that does as it is told.
SLEEPER = """
    import os, time
    with open("pids", "w") as file: file.write(str(os.getpid()))
    time.sleep(60)
"""
