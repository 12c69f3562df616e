"""Ignore-Artifacts: adds missing patterns to an ignore file, so that the files of casts are not committed.

stdin   {"cwd": ..., "params": {"file": ".gitignore", "patterns": [".pi/pi-materia/"]}}
stdout  {"state": {"artifactIgnore": {"ok", "file", "changed", "added", "unchanged"}}}

The ignore file is in the project directory, even if the project is a folder of a larger repository, because a pattern
that contains a slash is relative to its file. Existing lines are not changed, and existing patterns are not added
again. New lines have the same line ending as the last line. The file is replaced atomically. If the file cannot be
written, the utility fails, "ok" is false, and "error" is the reason.
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


class Refused(Exception):
    """Raised if the ignore file must not be written; the message is the reason."""


def main() -> int:
    """Add the missing patterns, print the result, and return the exit code."""
    document = json.load(sys.stdin.buffer)
    params = document.get("params") or {}
    name = params.get("file", ".gitignore")
    try:
        result = ensure(Path(document["cwd"]), name, params.get("patterns", [".pi/pi-materia/"]))
    except (Refused, OSError, ValueError) as error:
        message = f"{name}: {getattr(error, 'strerror', None) or error}"
        print(f"Ignore-Artifacts: {message}", file=sys.stderr)
        result = {"ok": False, "file": str(name), "error": message}
    print(json.dumps({"state": {"artifactIgnore": result}}))
    return 0 if result["ok"] else 1


def ensure(project: Path, name: Any, patterns: Any) -> dict[str, Any]:
    """Add the missing patterns to the ignore file, and return the fields of ``state.artifactIgnore``.

    Raises Refused if the file must not be written or a parameter is invalid.
    """
    if not isinstance(name, str) or not name:
        raise Refused('`params.file` must be a path, such as ".gitignore"')
    if not isinstance(patterns, list) or not all(map(is_pattern, patterns)):
        raise Refused("`params.patterns` must be a list of patterns without line breaks")
    path = target(project, name)
    if (project / name).is_symlink():
        print("Ignore-Artifacts: Git does not read an ignore file that is a symbolic link", file=sys.stderr)
    content = path.read_bytes() if path.exists() else b""
    lines = lines_of(content)
    unique_patterns = list(dict.fromkeys(pattern.strip() for pattern in patterns))
    added_patterns = [pattern for pattern in unique_patterns if pattern.encode() not in lines]
    if added_patterns:
        replace(path, content + addition(content, added_patterns))
    return {
        "ok": True,
        "file": str(path),
        "changed": bool(added_patterns),
        "added": added_patterns,
        "unchanged": [pattern for pattern in unique_patterns if pattern not in added_patterns],
    }


def is_pattern(value: Any) -> bool:
    """Return True if a value is a string that can be a line of an ignore file."""
    return isinstance(value, str) and bool(value.strip()) and not set(value) & set("\r\n\0")


def target(project: Path, name: str) -> Path:
    """Return the resolved path of the ignore file; raises Refused if it is outside the repository of the project."""
    path = Path(os.path.realpath(project / name))
    root = Path(os.path.realpath(project))
    for folder in (root, *root.parents):
        if (folder / ".git").exists() or (folder / ".jj").exists():
            root = folder
            break
    if not path.is_relative_to(root):
        raise Refused(f"leads to {path}, which is outside {root}; use a file inside it")
    return path


def lines_of(content: bytes) -> set[bytes]:
    """Return the lines of an ignore file as Git reads them: a byte-order mark and trailing spaces are ignored."""
    return {line.rstrip(b"\r").rstrip(b" ") for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")}


def addition(content: bytes, patterns: list[str]) -> bytes:
    """Return the lines to append to the file, with the same line ending as the last line of the file."""
    end = b"\r\n" if content[: content.rfind(b"\n") + 1].endswith(b"\r\n") else b"\n"
    before = end if content and not content.endswith(b"\n") else b""
    return before + b"".join(pattern.encode() + end for pattern in patterns)


def replace(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically and preserve its permissions; raises Refused if it is read-only."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # Replacing a file requires write permission only for its directory, so the file itself is checked here.
    if mode is not None and (not mode & 0o222 or not os.access(path, os.W_OK)):
        raise Refused("is read-only; make it writable, or add the patterns yourself")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


if __name__ == "__main__":
    sys.exit(main())
