"""Ignore-Artifacts: adds missing patterns to an ignore file, so that what casts leave behind is not committed.

stdin   {"cwd": ..., "params": {"file": ".gitignore", "patterns": [".pi/pi-materia/"]}}
stdout  {"state": {"artifactIgnore": {"ok", "file", "changed", "added", "unchanged"}}}

The file lies in the project, also when that is part of a bigger repository: a pattern with a slash
counts from where its file lies. What is in the file stays byte for byte; a pattern that stands there
already is not added again; new lines end as the last line does. The file is replaced as a whole, or
not touched. When it cannot be written the utility fails, with "ok": false and "error".
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

KEY = "artifactIgnore"


class Refused(Exception):
    """The file is not to be written, and why."""


def main() -> int:
    """Read the input, add what is missing, tell; the exit code."""
    given = json.load(sys.stdin.buffer)
    params = given.get("params") or {}
    named = params.get("file", ".gitignore")
    try:
        told = ensure(Path(given["cwd"]), named, params.get("patterns", [".pi/pi-materia/"]))
    except (Refused, OSError, ValueError) as error:
        why = f"{named}: {getattr(error, 'strerror', None) or error}"
        print(f"Ignore-Artifacts: {why}", file=sys.stderr)
        print(json.dumps({"state": {KEY: {"ok": False, "file": str(named), "error": why}}}))
        return 1
    print(json.dumps({"state": {KEY: told}}))
    return 0


def ensure(project: Path, named: Any, patterns: Any) -> dict[str, Any]:
    """Make sure that every pattern is in the file, and say what was added."""
    if not isinstance(named, str) or not named:
        raise Refused('params.file is a path, such as ".gitignore"')
    if not isinstance(patterns, list) or not all(is_pattern(one) for one in patterns):
        raise Refused("params.patterns is a list of patterns, each one line")
    path = target(project, named)
    if (project / named).is_symlink():
        print("Ignore-Artifacts: Git does not read an ignore file that is a symbolic link", file=sys.stderr)
    content = path.read_bytes() if path.exists() else b""
    there = lines_of(content)
    wanted = list(dict.fromkeys(one.strip() for one in patterns))
    added = [one for one in wanted if one.encode() not in there]
    if added:
        replace(path, content + addition(content, added))
    return {
        "ok": True,
        "file": str(path),
        "changed": bool(added),
        "added": added,
        "unchanged": [one for one in wanted if one not in added],
    }


def is_pattern(value: Any) -> bool:
    """Whether a value can stand on a line of an ignore file."""
    return isinstance(value, str) and bool(value.strip()) and not set(value) & set("\r\n\0")


def target(project: Path, named: str) -> Path:
    """Find the file to write, behind symbolic links; it must lie in the repository of the project."""
    path = Path(os.path.realpath(project / named))
    root = Path(os.path.realpath(project))
    for folder in (root, *root.parents):
        if (folder / ".git").exists() or (folder / ".jj").exists():
            root = folder
            break
    if not path.is_relative_to(root):
        raise Refused(f"leads to {path}, outside of {root}; name a file inside it")
    return path


def lines_of(content: bytes) -> set[bytes]:
    """Return the lines as Git reads them: without a byte-order mark, line ends and trailing spaces."""
    return {line.rstrip(b"\r").rstrip(b" ") for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")}


def addition(content: bytes, patterns: list[str]) -> bytes:
    """Return what to append, with line ends as the last line of the file has them."""
    end = b"\r\n" if content[: content.rfind(b"\n") + 1].endswith(b"\r\n") else b"\n"
    before = end if content and not content.endswith(b"\n") else b""
    return before + b"".join(one.encode() + end for one in patterns)


def replace(path: Path, content: bytes) -> None:
    """Write beside the file and move over it; its permissions stay."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # Moving over a file asks only its directory, so what its owner says of it is looked at here.
    if mode is not None and (not mode & 0o222 or not os.access(path, os.W_OK)):
        raise Refused("is read-only; make it writable, or add the patterns yourself")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


if __name__ == "__main__":
    sys.exit(main())
