"""Run shipped utility scripts, and create real Git repositories for their tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from materia_nb.utilities.utility_step import PACKAGED_FOLDER

# Nobody's settings but the test's own.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
}


class ScriptResult(NamedTuple):
    """The exit code and the output of a script."""

    code: int
    answer: Any
    stderr: str


def run_script(name: str, cwd: Path, *, env: dict[str, str] | None = None, **given: Any) -> ScriptResult:
    """Run a shipped script in ``cwd`` as the utility runner does, with ``given`` added to its input."""
    document = {"cwd": str(cwd), "params": {}, "state": {}, "item": None, **given}
    result = subprocess.run(
        [
            sys.executable,
            "-S",
            str(PACKAGED_FOLDER / name),
        ],  # without site packages, which scripts must not need; this also starts faster
        input=json.dumps(document).encode(),
        cwd=cwd,
        env={**os.environ, **GIT, **(env or {})},
        capture_output=True,
        check=False,
    )
    stderr = result.stderr.decode()
    assert "Traceback" not in stderr, stderr
    return ScriptResult(result.returncode, json.loads(result.stdout) if result.stdout else None, stderr)


def git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **GIT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def repository(folder: Path, *options: str) -> Path:
    """Create a real Git repository with one commit on the branch ``main``, or without commits if it is bare."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main", *options)
    if "--bare" not in options:
        (folder / "README").write_text("here\n")
        git(folder, "add", "README")
        git(folder, "commit", "--quiet", "-m", "begin")
    return folder


def is_ignored(folder: Path, path: str) -> bool:
    """Return True if Git ignores a path."""
    result = subprocess.run(
        ["git", "check-ignore", "--quiet", path], cwd=folder, env={**os.environ, **GIT}, check=False
    )
    return result.returncode == 0


class StandIn:
    """A strict replacement for jj on PATH; see tests/data/jj_stand_in.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        program = folder / "jj"
        source = Path(__file__).parents[1] / "data" / "jj_stand_in.py"
        program.write_text(f"#!{sys.executable} -IS\n{source.read_text()}")
        program.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        """Return an environment whose PATH contains only the stand-in."""
        return {"PATH": str(self.folder), "JJ_LOG": str(self._log)}

    def calls(self) -> list[list[str]]:
        """Return the calls since this method was last called."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    @staticmethod
    def repo(root: Path) -> Any:
        """Return the content of the repository in ``root``."""
        return json.loads((root / ".jj" / "store.json").read_text())
