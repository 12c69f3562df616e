"""The agent that is a program: started once per turn, the prompt on its stdin, the answer read from its stdout."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final, NamedTuple, TypeAlias

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
from materia_nb.engine.conversation import Message
from materia_nb.errors import scrubbed, scrubbed_part, secret_arguments
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.vocabulary import jsonpath_fault
from materia_nb.utilities.process import STDERR_SUMMARY, ProcessResult, run_process, summarize

Paths: TypeAlias = str | Sequence[str]
"""A JSONPath, or several."""


class ProgramAnswer(NamedTuple):
    """What a program answered.

    ``usage`` is None where the program reports none (R56), ``session`` names the conversation in which it can go on,
    and ``error`` says what failed; empty when nothing did. ``unread`` says why there is no answer where no error is reported.
    """

    text: str
    usage: Usage | None = None
    session: str = ""
    error: str = ""
    unread: str = ""


_TOLD: Final = 200
"""How much of what cannot be read is shown."""
_COUNTED: Final = ("input", "output", "cached", "reasoning")
"""What tokens are counted as."""

ReadsStdout: TypeAlias = Callable[[str], ProgramAnswer]
"""Reads the stdout of a program that has ended."""


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """Reads JSON by paths.

    Attributes:
        answer: where the answer is; of several paths the first that finds something, of several values the last. An object
            is taken as JSON text.
        usage: where the tokens are: paths for ``input`` and for ``output``. All that is found is added up, since programs
            count cached and thinking tokens apart; ``cached`` and ``reasoning`` say how many of these there are among them.
        cost: where the cost is, in USD; added up as well.
        session: where the id of the session is.
        error: what is there, and not false, null or empty, only when it failed; a text says how.
        lines: whether each line is a JSON value of its own; the paths then begin at the list of all lines. Lines that are no JSON
            are passed over.

    Raises:
        AgentError: a path is not JSONPath.
    """

    answer: Paths
    usage: Mapping[str, Paths] = field(default_factory=dict)
    cost: Paths = ()
    session: Paths = ()
    error: Paths = ()
    lines: bool = False

    def __post_init__(self) -> None:
        if wrong := set(self.usage) - set(_COUNTED):
            raise AgentError(
                f"usage has no {', '.join(sorted(map(str, wrong)))}",
                hint=f"give paths for {', '.join(_COUNTED)}",
            )
        for paths in (self.answer, *self.usage.values(), self.cost, self.session, self.error):
            for path in _listed(paths):
                if (fault := jsonpath_fault(path)) is not None:
                    raise AgentError(f"{path!r} is not JSONPath: {fault}", hint='such as "$.result"')

    def __call__(self, stdout: str) -> ProgramAnswer:
        """Read it."""
        try:
            value = self._value(stdout)
        except (ValueError, RecursionError) as fault:
            return ProgramAnswer("", unread=f"What it printed is not JSON: {fault}")
        answers = next((found for path in _listed(self.answer) if (found := _find(path, value))), [])
        text = _text(answers[-1]) if answers else ""
        failures = [one for one in self._all(self.error, value) if one]
        paths = {name: self.usage.get(name, ()) for name in _COUNTED}
        tokens = {name: _whole(_sum(self._all(one, value))) for name, one in paths.items()}
        cost = _sum(self._all(self.cost, value))
        used = None
        if cost is not None or any(count is not None for count in tokens.values()):
            used = Usage(cost=cost, **tokens)
        sessions = [one for one in self._all(self.session, value) if isinstance(one, str)]
        error = ""
        if failures:
            error = _text(failures[-1]) if failures[-1] is not True else text or "it reports an error"
        unread = ""
        if not failures and not answers:
            unread = f"There is no answer at {' or '.join(_listed(self.answer))} of what it printed: {stdout[:_TOLD]}"
        return ProgramAnswer(text, used, sessions[0] if sessions else "", error, unread)

    def _value(self, stdout: str) -> JSON:
        if not self.lines:
            whole: JSON = json.loads(stdout)
            return whole
        return [json.loads(line) for line in stdout.splitlines() if line.lstrip().startswith(("{", "["))]

    def _all(self, paths: Paths, value: JSON) -> list[JSON]:
        return [one for path in _listed(paths) for one in _find(path, value)]


def _listed(paths: Paths) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def _find(path: str, value: JSON) -> list[JSON]:
    from jsonpath_ng.ext import parse

    return [match.value for match in parse(path).find(value) if match.value is not None]


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else compact(value)


def _sum(values: Sequence[JSON]) -> float | None:
    """Add numbers up; None when there are none."""
    numbers = [one for one in values if isinstance(one, (int, float)) and not isinstance(one, bool)]
    return sum(numbers) if numbers else None


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


_AIDER_USED: Final = re.compile(
    r"^Tokens: (?P<sent>[\d.,]+[kM]?) sent,.*?(?P<received>[\d.,]+[kM]?) received\.(?: Cost: \$(?P<cost>[\d.,]+) message)?"
)
_UNITS: Final = {"k": 1_000, "M": 1_000_000}


def read_aider(stdout: str) -> ProgramAnswer:
    """Read what aider prints: a banner, the answer, and a line with tokens (rounded, as in 2.4k) and cost a message."""
    lines = stdout.splitlines()
    used = [(place, match) for place, line in enumerate(lines) if (match := _AIDER_USED.match(line))]
    if any(line.startswith("Aider v") for line in lines):
        begin = next(place for place, line in enumerate(lines) if line.startswith("Aider v"))
        begin = next((place for place in range(begin, len(lines)) if not lines[place].strip()), len(lines))
    else:
        begin = 0
    end = used[-1][0] if used else len(lines)
    counted = {place for place, _ in used}
    text = "\n".join(lines[place] for place in range(begin, end) if place not in counted).strip()
    if not used:
        return ProgramAnswer(text)
    costs = [match["cost"] for _, match in used]
    return ProgramAnswer(
        text,
        Usage(
            sum(_count(match["sent"]) for _, match in used),
            sum(_count(match["received"]) for _, match in used),
            None if None in costs else sum(float(cost.replace(",", "")) for cost in costs),
        ),
    )


def _count(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * unit)


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
        asked = turn.prompt if self.goes_on_in(turn) else whole_request(turn)
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

    def _read(self, turn: Turn, result: ProcessResult, stdout: str) -> ProgramAnswer:
        """Read stdout; a program that reports an error has failed, also where it ends as if all were well.

        What it used is told before it fails: unknown where it started and says nothing of it (R56).
        """
        ended = result.started and not (result.timed_out or result.stopped or result.stdout_truncated)
        said = (
            ProgramAnswer(stdout)
            if self.reads is None
            else self.reads(stdout)
            if ended
            else ProgramAnswer("")
        )
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


def whole_request(turn: Turn) -> str:
    """Write a turn as plain text: the prompt alone, or the visit's conversation under role headings."""
    if not turn.conversation:
        return turn.prompt
    said = [*turn.conversation, Message("user", turn.prompt)]
    return "\n\n".join(f"{_HEADINGS[message.role]}\n\n{message.text}" for message in said) + "\n"
