"""One door to all tools: arguments checked, results bounded and without keys, nothing raised for what a model asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from materia_nb.agents.tools.arguments import checked
from materia_nb.agents.tools.catalogue import TOOLS
from materia_nb.agents.tools.finding import find, grep
from materia_nb.agents.tools.place import Root
from materia_nb.agents.tools.reading import ls, read
from materia_nb.agents.tools.shell import bash
from materia_nb.agents.tools.tool import Refused, ToolResult, bounded, named, readable
from materia_nb.agents.tools.work import Work
from materia_nb.agents.tools.writing import edit, write
from materia_nb.errors import did_you_mean
from materia_nb.interrupts import HeldInterrupts
from materia_nb.jsonvalue import JSON
from materia_nb.secrets import scrubbed

_Run: TypeAlias = Callable[[Work, Mapping[str, JSON]], ToolResult]

_RUN: Final[dict[str, _Run]] = {
    "read": read,
    "grep": grep,
    "find": find,
    "ls": ls,
    "bash": bash,
    "edit": edit,
    "write": write,
}


class Toolbox:
    """The tools, at work in one project.

    Which of them a model may use, and whether it needs leave, is for the caller to decide: see
    :func:`~materia_nb.agents.tools.choose_tools` and ``Tool.changes``.

    Args:
        project: the directory that the tools for files stay inside, and commands start in.
        stop: ends a call when set.
    """

    def __init__(self, project: Path, stop: threading.Event | None = None) -> None:
        self._work = Work(Root(project), stop)
        # A model can ask for several edits of a file at once: each must see what the one before left.
        self._files = threading.Lock()

    def call(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        """Run a tool and wait for it. May be called from several threads.

        What cannot be done, for whatever reason in the name or the arguments, is a result that is not
        ``ok`` and says why.

        Raises:
            KeyboardInterrupt: interrupted; nothing is left running or half-written.
        """
        with (
            HeldInterrupts()
        ):  # nothing that a tool has opened may stay open; one that runs a process ends it
            try:
                result = self._run(name, args)
            except (Refused, OSError) as error:
                result = ToolResult(readable(str(error)), ok=False)
            # Before it is cut: of a key that was cut in two a half would stay.
            return ToolResult(bounded(scrubbed(result.text)), ok=result.ok)

    def _run(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        if name not in TOOLS:
            raise Refused(f"There is no tool {named(name)!r}: {did_you_mean(name, TOOLS)}")
        given = checked(TOOLS[name], args)
        self._work.go_on()
        with self._files if name in ("edit", "write") else nullcontext():
            return _RUN[name](self._work, given)
