"""An agent that is any program which reads a prompt on stdin and answers on stdout."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from materia_nb.agents.base import AgentError, Message, Reply, Turn
from materia_nb.secrets import scrubbed, scrubbed_part, secret_arguments
from materia_nb.utilities.process import STDERR_SUMMARY, ProcessResult, run_process, summarize

LONGEST_REPLY: Final = 8 * 1024 * 1024
"""The longest answer taken from a program, in bytes."""

_HEADINGS: Final = {"user": "## User", "assistant": "## Assistant"}


class CommandAgent:
    """Runs a program for each turn, with the guarantees of the utility runner (R23).

    Args:
        argv: the program and its arguments, as in ``["pi", "-p"]``; no shell is involved.
        timeout_s: seconds until a turn is given up; None for no limit.
        cwd: where to run it; None for the project directory.
        name: what the agent is called where it is shown; the program's name if not given.

    Raises:
        AgentError: ``argv`` is not a list of strings.
    """

    def __init__(
        self,
        argv: Sequence[str],
        timeout_s: float | None = 600,
        cwd: Path | None = None,
        *,
        name: str | None = None,
    ) -> None:
        if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
            raise AgentError(
                f"{argv!r} is not a command",
                hint='a command is a list of strings, a program and its arguments: ["pi", "-p"]',
            )
        self.argv = tuple(argv)
        self.timeout_s = timeout_s
        self.cwd = cwd
        self.name = name or PurePath(self.argv[0]).name

    def command(self, turn: Turn) -> tuple[str, ...]:  # noqa: ARG002 - for those whose command depends on it
        """Return the program and its arguments for a turn."""
        return self.argv

    def answer(self, turn: Turn) -> Reply:
        """Run the program on the prompt, or on the conversation of this visit when there was one.

        Raises:
            AgentError: kinds ``agent_not_started``, ``agent_timeout``, ``agent_exit``,
                ``agent_reply_too_long``, and ``interrupted`` when the cast is stopped.
            KeyboardInterrupt: interrupted; the program has ended.
        """
        argv = self.command(turn)
        result = run_process(
            argv,
            stdin=as_text(turn).encode(errors="replace"),
            cwd=self.cwd or turn.project,
            timeout_s=self.timeout_s,
            keep_bytes=LONGEST_REPLY,
            stop=turn.stop,
        )
        self._check(turn, result)
        return Reply(
            scrubbed(result.stdout.decode(errors="replace").strip(), *secret_arguments(argv)),
            meta={"program": _program(argv), "arguments": len(argv) - 1, "seconds": round(result.seconds, 6)},
        )

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:  # noqa: ARG002 - some need the model
        """Return why the program could not be started, None when it is there; ``project`` is where it would run."""
        program = self.argv[0]
        where = str((self.cwd or project) / program) if "/" in program else program
        if shutil.which(where) is not None:
            return None
        return AgentError(f"{program} is not there", hint="install it", kind="agent_not_started")

    def __repr__(self) -> str:
        return f"CommandAgent({self.name!r})"

    def _check(self, turn: Turn, result: ProcessResult) -> None:
        hint = None
        if not result.started:
            kind, how, hint = (
                "agent_not_started",
                f"could not be started: {result.start_error}",
                "is it installed? %materia doctor tells which known ones are",
            )
        elif result.timed_out:
            kind, how = (
                "agent_timeout",
                f"took longer than {self.timeout_s:g} s and was ended ({result.ending})",
            )
            hint = "give the agent a longer timeout_s"
        elif result.stopped:
            kind, how = "interrupted", f"was interrupted ({result.ending})"
        elif result.code != 0:
            kind, how = "agent_exit", f"ended with {result.ending}"
        elif result.stdout_truncated:
            kind, how = "agent_reply_too_long", f"answered with more than {LONGEST_REPLY} bytes"
        else:
            return
        said = summarize(
            scrubbed_part(
                result.stderr.decode(errors="replace"),
                *secret_arguments(result.argv),
                end=result.stderr_truncated,
            ),
            STDERR_SUMMARY,
        )
        raise AgentError(
            f"Command {_program(result.argv)} {how}" + (f"; stderr: {said}" if said else ""),
            where=turn.socket_id,
            hint=hint,
            kind=kind,
        )


def _program(argv: Sequence[str]) -> str:
    """Return what is told of a command: not its arguments, which may hold keys."""
    return PurePath(argv[0]).name


def as_text(turn: Turn) -> str:
    """Write a turn as plain text: the prompt alone, or the visit's conversation under role headings."""
    if not turn.conversation:
        return turn.prompt
    said = [*turn.conversation, Message("user", turn.prompt)]
    return "\n\n".join(f"{_HEADINGS[message.role]}\n\n{message.text}" for message in said) + "\n"
