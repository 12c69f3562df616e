"""An agent that is any program which reads a prompt on stdin and answers on stdout."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Final

from materia_nb.agents.interface import (
    ENDLESS,
    TIMEOUT_S,
    AgentError,
    Reply,
    Spent,
    Turn,
    Usage,
    part_thinking,
)
from materia_nb.agents.program_output import Answered, JsonOutput, Paths, ReadsStdout
from materia_nb.engine.conversation import Message
from materia_nb.errors import scrubbed, scrubbed_part, secret_arguments
from materia_nb.jsonvalue import JSON
from materia_nb.utilities.process import STDERR_SUMMARY, ProcessResult, run_process, summarize

_LONGEST_REPLY: Final = 8 * 1024 * 1024
"""The longest answer taken from a program, in bytes."""

_LONGER: Final = "give the agent a longer timeout_s"

_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What a program may name its session; the name is an argument later, and must not be read as an option."""

_HEADINGS: Final = {"user": "## User", "assistant": "## Assistant"}


class CommandAgent:
    """Runs a program for each turn, with the guarantees of the utility runner (R23).

    Args:
        argv: the program and its arguments, as in ``["pi", "-p"]``; no shell is involved.
        timeout_s: seconds until a turn is given up; None for no limit.
        cwd: where to run it; None for the project directory.
        name: what the agent is called where it is shown; the program's name if not given.
        answer: for a program that prints JSON, the JSONPath of its answer; what it prints is the answer if left out.
        usage: paths of its tokens, for ``input`` and ``output``, of which some are ``cached`` and ``reasoning``; unknown if left
            out (R56).
        cost: the path of its cost in USD.
        error: a path at which something is only when it failed.
        lines: whether it prints one JSON value a line; paths then begin at the list of them. See :class:`JsonOutput`.

    Raises:
        AgentError: ``argv`` is not a list of strings, or a path is not JSONPath.
    """

    def __init__(  # noqa: PLR0913 - the paths of what a program prints, by name
        self,
        argv: Sequence[str],
        timeout_s: float | None = TIMEOUT_S,
        cwd: Path | None = None,
        *,
        name: str | None = None,
        answer: Paths | None = None,
        usage: Mapping[str, Paths] | None = None,
        cost: Paths = (),
        error: Paths = (),
        lines: bool = False,
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
        self.reads: ReadsStdout | None = None
        if answer is not None:
            self.reads = JsonOutput(answer, usage or {}, cost, error=error, lines=lines)
        elif usage or cost or error:
            raise AgentError(
                "Tokens, cost and errors are read from JSON, so the answer must be too",
                hint='give its path: answer="$.result"',
            )

    def command(self, turn: Turn) -> tuple[str, ...]:  # noqa: ARG002 - for those whose command depends on it
        """Return the program and its arguments for a turn."""
        return self.argv

    @contextmanager
    def called(self, turn: Turn) -> Iterator[tuple[str, ...]]:
        """Give the command for a turn, for as long as it runs."""
        yield self.command(turn)

    def answer(self, turn: Turn) -> Reply:
        """Run the program on the prompt, or on the conversation of this visit when there was one.

        Raises:
            AgentError: kinds ``agent_not_started``, ``agent_timeout``, ``agent_exit``,
                ``agent_reply_too_long``, and ``interrupted`` when the cast is stopped.
            KeyboardInterrupt: interrupted; the program has ended.
        """
        asked = turn.prompt if self.goes_on_in(turn) else as_text(turn)
        with self.called(turn) as argv:
            result = run_process(
                argv,
                stdin=asked.encode(errors="replace"),
                cwd=self.cwd or turn.project,
                timeout_s=self.timeout_s,
                keep_bytes=_LONGEST_REPLY,
                stop=turn.stop,
            )
        stdout = scrubbed(result.stdout.decode(errors="replace").strip(), *secret_arguments(argv))
        said = self._read(turn, result, stdout)
        parted = part_thinking(said.text)
        meta: dict[str, JSON] = {
            "program": _program(argv),
            "arguments": len(argv) - 1,
            "seconds": round(result.seconds, 6),
        }
        if said.session:
            meta["session"] = said.session
        return Reply(
            parted.text, said.usage, meta=meta, thinking=parted.thinking, cut="" if parted.ended else ENDLESS
        )

    def goes_on_in(self, turn: Turn) -> str:
        """Return the session of the answer before in the same conversation; empty when it was another program's."""
        session = turn.meta.get("session") if turn.meta.get("program") == _program(self.argv) else None
        return session if isinstance(session, str) and _SESSION.fullmatch(session) else ""

    def _read(self, turn: Turn, result: ProcessResult, stdout: str) -> Answered:
        """Read stdout; a program that reports an error has failed, also where it ends as if all were well.

        What it used is told before it fails: unknown where it started and says nothing of it (R56).
        """
        ended = result.started and not (result.timed_out or result.stopped or result.stdout_truncated)
        said = Answered(stdout) if self.reads is None else self.reads(stdout) if ended else Answered("")
        failed = not ended or result.code != 0 or said.error or said.unread
        if failed and result.started:
            turn.tell(Spent(said.usage or Usage(None, None)))
        if said.error:
            raise AgentError(
                f"Command {_program(result.argv)} failed: {said.error[:STDERR_SUMMARY]}",
                where=turn.socket_id,
                hint="retry begins a new session" if self.goes_on_in(turn) else None,
                kind="agent_exit",
            )
        self._check(turn, result)  # how it ended says more than what could not be read
        if said.unread:
            raise AgentError(
                f"Command {_program(result.argv)}: {said.unread}",
                where=turn.socket_id,
                hint="does the program print what its version documents? CommandAgent reads others, or plain text",
                kind="malformed",
            )
        return said

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
        ended, limit = result.ending, self.timeout_s or 0
        missing = "is it installed? %materia doctor tells which known ones are"
        ways = (
            (not result.started, "agent_not_started", f"could not be started: {result.start_error}", missing),
            (result.timed_out, "agent_timeout", f"took longer than {limit:g} s and was ended ({ended})", _LONGER),
            (result.stopped, "interrupted", f"was interrupted ({ended})", None),
            (result.code != 0, "agent_exit", f"ended with {ended}", None),
            (result.stdout_truncated, "agent_reply_too_long", f"answered with more than {_LONGEST_REPLY} bytes", None),
        )  # fmt: skip
        found = next((one for one in ways if one[0]), None)
        if found is None:
            return
        _, kind, how, hint = found
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
