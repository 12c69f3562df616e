"""The tool that runs commands. It is not confined: a command can do whatever the person who started it can.

It starts in the project directory, with the environment of the kernel, and neither keeps to the one
nor hides the other. That is why each command needs a person's leave, and why nothing here tries to
tell good commands from bad ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Final

from materia_nb.agents.tools.confine import Work
from materia_nb.agents.tools.tool import MOST_TEXT, SHELL_SECONDS, ToolResult, readable
from materia_nb.jsonvalue import JSON
from materia_nb.secrets import scrubbed_part
from materia_nb.utilities.process import ProcessResult, run_process

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
