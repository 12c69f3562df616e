"""The tools for files and the shell. Only ``write``, ``edit`` and ``bash`` can change something.

All calls go through :class:`Toolbox`, which validates arguments, limits the length of results, redacts keys, and
returns every error as a result.

Files are replaced atomically. A shell command is not confined to the project: it starts in the project directory with
the environment of the kernel, and it can do everything that the user of the kernel can do. Therefore each command needs
approval, and this module does not try to distinguish safe commands from unsafe ones.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, chain, islice, repeat
from pathlib import Path
from typing import BinaryIO, Final

from materia_nb.agents.tools import (
    DEFAULT_LINES,
    MAX_RESULT_CHARS,
    SHELL_TIMEOUT_S,
    TOOLS,
    Refused,
    Tool,
    ToolResult,
    check_arguments,
    cut_middle,
    escape_controls,
    safe_name,
    search,
)
from materia_nb.agents.tools.sandbox import OpenPath, Workspace, open_path
from materia_nb.agents.tools.search import BLOCK
from materia_nb.errors import did_you_mean, redact, redact_excerpt
from materia_nb.file_io import replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.platform import HeldInterrupts
from materia_nb.utilities.process import Capture, ProcessResult, run_process

MAX_SCANNED_BYTES: Final = 64 * 1024 * 1024
"""Maximum number of bytes that are read to find lines in a file."""

_MAX_LINE_CHARS: Final = 2_000
_MAX_ENTRIES: Final = 20_000
_MAX_LISTED_CHARS: Final = MAX_RESULT_CHARS - 500  # leaves room for the notes


def read(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """Return lines of a text file, limited by the arguments and by the maximum length of a result."""
    offset, limit = args.get("offset", 1), args.get("limit", DEFAULT_LINES)
    with open_path(workspace, args["path"]) as target, target.open_file() as file:
        lines: list[str] = []
        chars_left, scanned_bytes, number = _MAX_LISTED_CHARS, 0, 0
        for line_start, size in _read_lines(file):
            workspace.check_stopped()
            number += 1
            scanned_bytes += size
            if b"\0" in line_start:
                raise binary_error(target, os.fstat(file.fileno()).st_size)
            if number >= offset:
                lines.append(_format_line(line_start, size))
                chars_left -= len(lines[-1]) + 1
            if len(lines) == limit or chars_left < 0 or scanned_bytes >= MAX_SCANNED_BYTES:
                break
        if chars_left < 0 and len(lines) > 1:
            lines.pop()
        has_more = bool(file.read(1))
    if not lines:
        raise Refused(_offset_problem(target, offset, number, has_more=has_more))
    last = offset + len(lines) - 1
    if last < number or has_more:
        lines.append(f"(lines {offset:,}-{last:,}; continue with offset {last + 1})")
    elif offset > 1:
        lines.append(f"(lines {offset:,}-{last:,}; the file ends here)")
    return ToolResult("\n".join(lines), ok=True)


def ls(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """List the entries of a directory, sorted by name."""
    with (
        open_path(workspace, args.get("path") or ".") as target,
        target.open_folder() as folder,
        os.scandir(folder) as entries,
    ):
        listed = sorted(islice(entries, _MAX_ENTRIES + 1), key=lambda entry: entry.name)
        lines = [_entry_line(entry, folder) for entry in listed[:_MAX_ENTRIES]]
    fitting_count = sum(size <= _MAX_LISTED_CHARS for size in accumulate(len(line) + 1 for line in lines))
    omitted = f"{len(listed) - fitting_count:,}" if len(listed) <= _MAX_ENTRIES else "many"
    note = [f"(and {omitted} more; use find to list names that match a pattern)"] if fitting_count < len(listed) else []
    return ToolResult("\n".join([*lines[:fitting_count], *note]) or "(empty)", ok=True)


def binary_error(target: OpenPath, size: int) -> Refused:
    """Return the error for a file that contains binary data instead of text."""
    return Refused(f"{target.display_path} is binary ({size:,} bytes): it contains NUL bytes.")


def _read_lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield the first block of each line in a file, together with the length of the whole line in bytes."""
    while line_start := file.readline(BLOCK):
        size, last = len(line_start), line_start
        while not last.endswith(b"\n") and size < MAX_SCANNED_BYTES and (last := file.readline(BLOCK)):
            size += len(last)
        yield line_start, size


def _format_line(line_start: bytes, size: int) -> str:
    line = escape_controls(re.sub(rb"\r?\n\Z", b"", line_start).decode(errors="surrogateescape"))
    if len(line) <= _MAX_LINE_CHARS and size == len(line_start):
        return line
    line = redact_excerpt(line, end=True)[:_MAX_LINE_CHARS]
    return f"{line}… [a line of {size:,} bytes; the rest is omitted]"


def _offset_problem(target: OpenPath, offset: int, total: int, *, has_more: bool) -> str:
    if not total:
        return f"{target.display_path} is empty."
    if has_more:
        return f"Line {offset:,} of {target.display_path} is more than {MAX_SCANNED_BYTES:,} bytes into the file. Use grep to search there."
    return f"{target.display_path} has only {total:,} lines; line {offset:,} does not exist."


def _entry_line(entry: os.DirEntry[str], folder_fd: int) -> str:
    try:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{safe_name(entry.name)} -> {safe_name(os.readlink(entry.name, dir_fd=folder_fd))}"
    except OSError:
        return f"{safe_name(entry.name)} (cannot be read)"
    if stat.S_ISDIR(status.st_mode):
        return safe_name(entry.name) + "/"
    kind = f"{status.st_size:,} bytes" if stat.S_ISREG(status.st_mode) else "not a plain file"
    return f"{safe_name(entry.name)} ({kind})"


SEARCH_TIMEOUT_S: Final = 20
"""Time limit of a search, in seconds."""

_SEARCH_PROGRAM: Final = [sys.executable or "python3", "-I", "-S", str(Path(search.__file__).resolve())]
"""The search command. Python runs isolated, so that neither the project nor the environment can affect its imports."""

_LINE: Final = re.compile(r"^(?P<at>.*?:\d+: …?)(?P<text>.*?)(?P<more>…?)$", re.MULTILINE)


def find(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """List the files and directories whose names match a pattern."""
    if args["pattern"].startswith("/") or ".." in args["pattern"].split("/"):
        raise Refused(
            "The pattern is matched against paths below the directory. It must not start with / or contain `..`."
        )
    return _search(workspace, args, pattern=None, glob=args["pattern"])


def grep(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """List the lines that match a regular expression."""
    return _search(workspace, args, pattern=args["pattern"], glob=args.get("glob") or None)


def _search(workspace: Workspace, args: Mapping[str, JSON], *, pattern: str | None, glob: str | None) -> ToolResult:
    with open_path(workspace, args.get("path") or ".") as target:
        if target.is_folder:
            parts, single_file, status = target.parts, None, target.status
        else:
            if pattern is None:
                raise Refused(f"{target.display_path} is not a directory.")
            target.open_file().close()  # raises an error if the path is not a regular file
            parts, single_file, status = target.parts[:-1], target.name, os.fstat(target.folder)
    if status is None:
        raise AssertionError("a path opened for reading has a status")
    request = {
        "pattern": pattern,
        "ignore_case": args.get("ignore_case", False),
        "glob": glob,
        "only": single_file,
        "prefix": "/".join(parts),
        "room": _MAX_LISTED_CHARS,
        # The process enters its directory by path; device and inode show whether it is still the same directory.
        "folder": [status.st_dev, status.st_ino],
    }
    process = run_process(
        _SEARCH_PROGRAM,
        stdin=json.dumps(request).encode(),
        cwd=workspace.path.joinpath(*parts),
        timeout_s=SEARCH_TIMEOUT_S,
        stop=workspace.stop,
    )
    output = escape_controls(process.stdout.decode(errors="surrogateescape")).rstrip("\n")
    if pattern is not None:
        output = _LINE.sub(_redacted_line, output)
    problem = _search_problem(process)
    return ToolResult("\n".join(filter(None, [output, problem])), ok=not problem)


def _redacted_line(line: re.Match[str]) -> str:
    """Return a search result with keys redacted, including keys that are cut off at either end of the excerpt."""
    return line["at"] + redact_excerpt(line["text"], start=True, end=True) + line["more"]


def _search_problem(process: ProcessResult) -> str:
    """Return the reason why a search did not complete, or an empty string if it completed."""
    if process.ok:
        return ""
    if process.stopped:
        return "The cast was stopped."
    if process.timed_out:
        return f"(stopped after {SEARCH_TIMEOUT_S} s: use a simpler pattern or a narrower path)"
    message = safe_name(process.stderr.decode(errors="replace"))
    messages = {
        search.FOLDER_REPLACED: "The directory was replaced during the search; nothing was searched.",
        search.BAD_PATTERN: f"The pattern is not a regular expression: {message} (write \\ before a character to match it literally).",
    }
    return messages.get(process.code or 0, f"The search failed ({process.start_error or process.ending}): {message}")


MAX_WRITTEN_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of a file that ``write`` or ``edit`` can create, in bytes."""


def write(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """Write a file and create its missing parent directories."""
    text = args["content"]
    data = _encode(text, "content")
    if args["path"].endswith("/"):
        raise Refused("The path ends with a slash. Name a file; missing directories are created.")
    with open_path(workspace, args["path"], "make") as target:
        _check_target(target)
        old_size = "new" if target.status is None else f"{target.status.st_size:,} bytes before"
        if target.status is not None:
            data = _encode(_match_file_format(target, text), "content")
        replace_file(target.name, data, sync=True, folder=target.folder)
        return ToolResult(f"Wrote {target.display_path}: {len(data):,} bytes ({old_size}).", ok=True)


def _match_file_format(target: OpenPath, text: str) -> str:
    """Return the text with the byte order mark and the line endings of the file that it replaces."""
    with target.open_file() as file:
        old_content = file.read(MAX_WRITTEN_BYTES)
    if b"\0" in old_content:
        return text
    if old_content.startswith(codecs.BOM_UTF8) and not text.startswith("\ufeff"):
        text = "\ufeff" + text
    uses_crlf = old_content.count(b"\r\n") == old_content.count(b"\n") > 0
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if uses_crlf else text


def edit(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """Replace text that occurs exactly once in a file, or all of its occurrences if ``all`` is true."""
    old, new = args["old"], args["new"]
    if not old:
        raise Refused("`old` is empty: pass the text to replace, or create the file with write.")
    with open_path(workspace, args["path"], "change") as target:
        _check_target(target)
        text, pattern = _read_text(target), _with_any_line_endings(old)
        first_match, count = pattern.search(text), len(pattern.findall(text))
        if first_match is None:
            raise Refused(
                f"`old` does not occur in {target.display_path}: read the file again; every character and every space must match."
            )
        # If occurrences overlap, it is also unclear which text to replace.
        if pattern.search(text, first_match.start() + 1) and not args.get("all"):
            raise Refused(
                f"`old` occurs {max(count, 2):,} times in {target.display_path}: include more of the surrounding lines, "
                "or set `all` to true."
            )
        if len(text) + count * (len(new) - len(old)) > MAX_WRITTEN_BYTES:
            raise Refused(f"The file would have more than {MAX_WRITTEN_BYTES:,} characters.")
        new_text = pattern.sub(partial(_with_line_endings_of, new), text)
        if new_text == text:
            raise Refused("`old` and `new` are the same, so there is nothing to change.")
        replace_file(target.name, _encode(new_text, "new"), sync=True, folder=target.folder)
        occurrences = "" if count == 1 else f" in {count:,} places"
        return ToolResult(f"Changed {target.display_path}{occurrences}.", ok=True)


def _with_any_line_endings(text: str) -> re.Pattern[str]:
    """Return a pattern that matches ``text`` with LF or CR LF line endings."""
    lines = text.replace("\r\n", "\n").split("\n")
    # A match neither begins nor ends between CR and LF.
    return re.compile(r"(?:\r\n|(?<!\r)\n)".join(map(re.escape, lines)) + r"(?!(?<=\r)\n)")


def _with_line_endings_of(new: str, old: re.Match[str]) -> str:
    """Return ``new`` with the line endings of ``old``, line by line.

    Additional lines get the last line ending of ``old`` or, if ``old`` has none, the line ending of the surrounding
    lines.
    """
    file = old.string
    next_line_end = file.find("\n", old.end())
    line_end = next_line_end if next_line_end >= 0 else file.rfind("\n")
    line_endings = re.findall(r"\r?\n", old[0]) or ["\r\n" if file.startswith("\r\n", line_end - 1) else "\n"]
    endings = chain(line_endings, repeat(line_endings[-1]))
    return re.sub(r"\r?\n", lambda ending: max(ending[0], next(endings), key=len), new)


def _check_target(target: OpenPath) -> None:
    """Raise Refused if the target is a directory, is not a regular file, or is write-protected."""
    if target.name == "." or target.is_folder:
        raise Refused(f"{target.display_path} is a directory, not a file.")
    if target.status is None:
        return
    if not stat.S_ISREG(target.status.st_mode):
        raise Refused(f"{target.display_path} is not a plain file.")
    if not target.status.st_mode & 0o222:
        # Replacing a file needs write permission for its directory only.
        raise Refused(f"{target.display_path} is write-protected.")


def _read_text(target: OpenPath) -> str:
    with target.open_file() as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MAX_WRITTEN_BYTES + 1)
    if len(data) > MAX_WRITTEN_BYTES:
        raise Refused(f"{target.display_path} has {size:,} bytes; files up to {MAX_WRITTEN_BYTES:,} can be edited.")
    if b"\0" in data:
        raise binary_error(target, size)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{target.display_path} is not UTF-8 (byte {error.start:,}), so it cannot be edited.") from None


def _encode(text: str, name: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"{name} has half of a surrogate pair (character {error.start:,}), which UTF-8 cannot encode."
        ) from None
    if len(data) > MAX_WRITTEN_BYTES:
        raise Refused(f"The file would have {len(data):,} bytes; at most {MAX_WRITTEN_BYTES:,} are written.")
    return data


MAX_SHELL_OUTPUT_BYTES: Final = MAX_RESULT_CHARS // 4 - 100
"""Maximum number of bytes that are captured at the beginning and at the end of a command's output."""


def bash(workspace: Workspace, args: Mapping[str, JSON]) -> ToolResult:
    """Run a command with bash, or with sh if bash is not installed."""
    seconds = args.get("timeout_s", SHELL_TIMEOUT_S)
    process = run_process(
        # -- since a command may begin with a hyphen
        [shutil.which("bash") or "sh", "-c", "--", args["command"]],
        stdin=b"",
        cwd=workspace.path,
        timeout_s=seconds,
        capture=Capture(MAX_SHELL_OUTPUT_BYTES, MAX_SHELL_OUTPUT_BYTES),
        stop=workspace.stop,
    )
    parts = [
        _describe_exit(process, seconds),
        _format_output("stdout", process.stdout, process.stdout_end, process.stdout_bytes),
        _format_output("stderr", process.stderr, process.stderr_tail, process.stderr_bytes),
    ]
    return ToolResult("\n".join(filter(None, parts)), ok=process.ok)


def _describe_exit(process: ProcessResult, seconds: float) -> str:
    if not process.started:
        return f"The command could not be started: {process.start_error}."
    if process.timed_out:
        return f"The command took longer than {seconds:g} s and was stopped, with every process that it started."
    if process.stopped:
        return "The cast and the command were stopped."
    return f"exit code {process.code}" if process.signal is None else f"ended by {process.signal}"


def _format_output(name: str, first_bytes: bytes, last_bytes: bytes, size: int) -> str:
    if not size:
        return ""
    if omitted_bytes := size - len(first_bytes) - len(last_bytes):
        first_text = redact_excerpt(first_bytes.decode(errors="replace"), end=True)
        last_text = redact_excerpt(last_bytes.decode(errors="replace"), start=True)
        text = f"{first_text}\n[... {omitted_bytes:,} bytes left out ...]\n{last_text}"
    else:
        text = (first_bytes + last_bytes).decode(errors="replace")
    return f"{name}:\n{escape_controls(text).rstrip()}"


# -- the toolbox ---------------------------------------------------------------------------------

_RUNNERS: Final = {tool.__name__: tool for tool in (read, grep, find, ls, bash, edit, write)}


class Toolbox:
    """Runs tools in a project.

    The caller decides which tools a model may use and which calls need approval; see
    :func:`~materia_nb.agents.tools.choose_tools` and ``Tool.has_side_effects``.

    Args:
        project: the directory to which the file tools are restricted, and in which commands start.
        stop: an event that stops a running call when it is set.
        more: additional tools, each with its ``run`` function.
    """

    def __init__(self, project: Path, stop: threading.Event | None = None, more: Iterable[Tool] = ()) -> None:
        self._workspace = Workspace(project, stop)
        self._other_tools = {tool.name: tool.run for tool in more if tool.run is not None}
        # A model can request several edits of a file at once; each edit must see the result of the previous edit.
        self._file_lock = threading.Lock()

    def call(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        """Run a tool and return its result. This method may be called from several threads.

        If the call is refused or fails, the result's ``ok`` is False, and its text is the reason.

        Raises:
            KeyboardInterrupt: the user interrupted the call. All its processes have ended, and no file is incomplete.
        """
        run_tool = self._other_tools.get(name)
        # Other tools can be interrupted. The project tools hold interrupts, so that they close all files.
        with HeldInterrupts() if run_tool is None else nullcontext():
            try:
                result = self._run(name, args) if run_tool is None else run_tool(args, self._workspace.stop)
            except (Refused, OSError) as error:
                result = ToolResult(str(error), ok=False)
            # Remove keys before shortening the text; otherwise half of a key could remain.
            return ToolResult(cut_middle(redact(escape_controls(result.text))), ok=result.ok)

    def _run(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        if name not in TOOLS:
            raise Refused(f"The tool {safe_name(name)!r} does not exist: {did_you_mean(name, TOOLS)}")
        arguments = check_arguments(TOOLS[name], args)
        self._workspace.check_stopped()
        with self._file_lock if name in ("edit", "write") else nullcontext():
            return _RUNNERS[name](self._workspace, arguments)
