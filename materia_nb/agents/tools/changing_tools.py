"""The tools that change something: ``write`` and ``edit`` for files, and ``bash``, which runs commands.

A file is replaced whole or stays as it was. A command is not confined: it can do whatever the person who started it
can. It starts in the project directory, with the environment of the kernel, and neither keeps to the one
nor hides the other. That is why each command needs a person's leave, and why nothing here tries to
tell good commands from bad ones.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
from collections.abc import Mapping
from typing import Final

from materia_nb.agents.tools.confine import Place, Work, reach
from materia_nb.agents.tools.reading_tools import binary
from materia_nb.agents.tools.tool import MOST_TEXT, SHELL_SECONDS, Refused, ToolResult, readable
from materia_nb.errors import alike, scrubbed, scrubbed_part
from materia_nb.file_io import replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.utilities.process import ProcessResult, run_process

MOST_BYTES: Final = 8 * 1024 * 1024
"""The largest file that is written or edited."""

_DIFF_LINES: Final = 400  # comparing takes the square of it
_DIFF_SHOWN: Final = 6_000
_CONTEXT: Final = 3


def write(work: Work, args: Mapping[str, JSON]) -> ToolResult:
    """Write a file, and the directories that are missing on the way to it."""
    data = _encoded(args["content"], "content")
    if args["path"].endswith("/"):
        raise Refused("The path ends with a slash: name the file; directories on the way to it are made.")
    with reach(work.root, args["path"], "make") as place:
        _check_target(place)
        before = "new" if place.status is None else f"{place.status.st_size:,} bytes before"
        replace_file(place.name, data, sync=True, folder=place.folder)
        return ToolResult(f"{place.shown} is written: {len(data):,} bytes ({before}).", ok=True)


def edit(work: Work, args: Mapping[str, JSON]) -> ToolResult:
    """Replace a text in a file that must occur once, or with ``all`` wherever it occurs."""
    with reach(work.root, args["path"], "change") as place:
        _check_target(place)
        text = _text_of(place)
        # In a file that has only CR LF a model need not know it; one that has both is taken as it is.
        crlf = text.count("\r\n") == text.count("\n") > 0
        old, new, before = (_plain(each, crlf=crlf) for each in (args["old"], args["new"], text))
        count = _count(before, old, place)
        if count > 1 and not args.get("all"):
            raise Refused(
                f"old occurs {count:,} times in {place.shown}: give more of the lines around the one that is meant, "
                "or all: true."
            )
        if old == new:
            raise Refused("old and new are the same: nothing to change.")
        if len(before) + before.count(old) * (len(new) - len(old)) > MOST_BYTES:
            raise Refused(f"The file would have more than {MOST_BYTES:,} characters.")
        after = before.replace(old, new)
        data = _encoded(after.replace("\n", "\r\n") if crlf else after, "new")
        replace_file(place.name, data, sync=True, folder=place.folder)
        times = "" if count == 1 else f" in {before.count(old):,} places"
        return ToolResult(f"{place.shown} is changed{times}.\n{_difference(before, after)}", ok=True)


def _check_target(place: Place) -> None:
    """Refuse what must not, or cannot, be replaced by a file."""
    if place.name == "." or place.is_folder:
        raise Refused(f"{place.shown} is a directory, not a file.")
    if place.status is None:
        return
    if not stat.S_ISREG(place.status.st_mode):
        raise Refused(f"{place.shown} is no plain file.")
    if not place.status.st_mode & 0o222:
        # Replacing needs no leave from the file itself, only from its directory.
        raise Refused(f"{place.shown} is write-protected.")


def _text_of(place: Place) -> str:
    with place.open_file() as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Refused(f"{place.shown} has {size:,} bytes; files up to {MOST_BYTES:,} can be edited.")
    if b"\0" in data:
        raise binary(place, size)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            f"{place.shown} is not UTF-8 (byte {error.start:,}), so it cannot be edited without harm."
        ) from None


def _plain(text: str, *, crlf: bool) -> str:
    return text.replace("\r\n", "\n") if crlf else text


def _count(text: str, old: str, place: Place) -> int:
    """Count where ``old`` begins, also inside another occurrence; from the second on the count may be a few less."""
    if not old:
        raise Refused("old is empty: give the text to replace; write makes a new file.")
    count = text.count(old)
    if not count:
        raise Refused(
            f"old does not occur in {place.shown}: read it again, every sign and every space counts."
        )
    overlaps = text.find(old, text.find(old) + 1) >= 0
    return max(count, 2) if overlaps else count


def _encoded(text: str, name: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"{name} has half of a surrogate pair (character {error.start:,}), which UTF-8 has not."
        ) from None
    if len(data) > MOST_BYTES:
        raise Refused(f"The file would have {len(data):,} bytes; at most {MOST_BYTES:,} are written.")
    return data


def _difference(before: str, after: str) -> str:
    """Show what changed as a unified diff, if it is small."""
    old, new = before.split("\n"), after.split("\n")
    start = alike(old, new)
    end = alike(old[start:][::-1], new[start:][::-1])
    first = max(0, start - _CONTEXT)
    last = max(0, end - _CONTEXT)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) > _DIFF_LINES:
        return f"(the difference is left out: {len(old):,} lines before, {len(new):,} after)"
    _, _, *lines = difflib.unified_diff(old, new, lineterm="", n=_CONTEXT)
    lines = [_moved(line, first) if line.startswith("@@") else line for line in lines]
    shown = scrubbed(readable("\n".join(lines)))
    return (
        shown
        if len(shown) <= _DIFF_SHOWN
        else shown[:_DIFF_SHOWN] + "… (the rest of the difference is left out)"
    )


def _moved(header: str, lines: int) -> str:
    """Count the lines that a ``@@`` header names from the beginning of the file."""
    return re.sub(r"([-+])(\d+)", lambda match: f"{match[1]}{int(match[2]) + lines}", header)


KEPT: Final = MOST_TEXT // 4 - 100
"""How much is kept of the beginning and of the end of each output, in bytes."""


def bash(work: Work, args: Mapping[str, JSON]) -> ToolResult:
    """Run a command with bash, or with sh where there is no bash."""
    seconds = args.get("timeout_s", SHELL_SECONDS)
    ended = run_process(
        # -- since a command may begin with a hyphen
        [shutil.which("bash") or "sh", "-c", "--", args["command"]],
        stdin=b"",
        cwd=work.root.path,
        timeout_s=seconds,
        keep_bytes=KEPT,
        keep_end=KEPT,
        stop=work.stop,
    )
    parts = [
        _ending(ended, seconds),
        _output("stdout", ended.stdout, ended.stdout_end, ended.stdout_bytes),
        _output("stderr", ended.stderr, ended.stderr_end, ended.stderr_bytes),
    ]
    return ToolResult("\n".join(filter(None, parts)), ok=ended.ok)


def _ending(ended: ProcessResult, seconds: float) -> str:
    if not ended.started:
        return f"The command could not be started: {ended.start_error}."
    if ended.timed_out:
        return f"The command took longer than {seconds:g} s and was ended, with all that it had started."
    if ended.stopped:
        return "The cast was stopped, and the command with it."
    return f"exit code {ended.code}" if ended.signal is None else f"ended by {ended.signal}"


def _output(name: str, start: bytes, end: bytes, size: int) -> str:
    if not size:
        return ""
    if left := size - len(start) - len(end):
        first = scrubbed_part(start.decode(errors="replace"), end=True)
        last = scrubbed_part(end.decode(errors="replace"), start=True)
        text = f"{first}\n[... {left:,} bytes left out ...]\n{last}"
    else:
        text = (start + end).decode(errors="replace")
    return f"{name}:\n{readable(text).rstrip()}"
