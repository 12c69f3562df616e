"""Command agents: a program is started for each turn, reads the prompt from stdin and writes the answer to stdout.

Presets such as ``command:claude`` define how a known coding agent is started and how its output is read.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.agents.interface import TIMEOUT_S, AgentError, Reply, Spent, Turn, Usage
from materia_nb.engine.conversation import Message
from materia_nb.errors import did_you_mean, scrubbed, scrubbed_part, secret_arguments
from materia_nb.file_io import read_package_toml, replace_file
from materia_nb.jsonvalue import JSON, compact, thawed
from materia_nb.loadout.vocabulary import jsonpath_fault
from materia_nb.utilities.process import STDERR_SUMMARY, ProcessResult, run_process, summarize

Paths: TypeAlias = str | Sequence[str]
"""A JSONPath, or several JSONPaths."""


class ProgramAnswer(NamedTuple):
    """The parsed output of a command agent: text, usage, session and error.

    ``usage`` is None if the program does not report it (R56). ``session`` names the conversation that the program can continue.
    ``error`` describes the failure, or is empty. ``unread`` is the reason for a missing answer without a reported error.
    """

    text: str
    usage: Usage | None = None
    session: str = ""
    error: str = ""
    unread: str = ""


_SHOWN_CHARS: Final = 200
"""Maximum length of unreadable output in a message, in characters."""
_TOKEN_KINDS: Final = ("input", "output", "cached", "reasoning")
"""The kinds of tokens that a usage counts."""

ReadsStdout: TypeAlias = Callable[[str], ProgramAnswer]
"""Reads the stdout of a program that has ended."""


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """Reads the JSON output of a program by JSONPath.

    Attributes:
        answer: paths of the answer. The first path with a match counts, and its last value; an object becomes JSON text.
        usage: paths of the token counts, by kind: ``input``, ``output``, ``cached`` and ``reasoning``. All matches of a kind
            are added up. ``cached`` must be part of ``input``, and ``reasoning`` part of ``output``: if a program counts
            them separately, list their paths under ``input`` or ``output``, too.
        cost: paths of the cost in USD; all matches are added up.
        session: paths of the session id.
        error: paths of a value that is not false, null or empty only after a failure; a text describes the failure.
        lines: True if each line is a separate JSON value; the paths then start at the list of all lines. Lines that are
            not JSON are skipped.

    Raises:
        AgentError: a path is not valid JSONPath.
    """

    answer: Paths
    usage: Mapping[str, Paths] = field(default_factory=dict)
    cost: Paths = ()
    session: Paths = ()
    error: Paths = ()
    lines: bool = False

    def __post_init__(self) -> None:
        if wrong := set(self.usage) - set(_TOKEN_KINDS):
            raise AgentError(
                f"usage cannot contain {', '.join(sorted(map(str, wrong)))}",
                hint=f"give paths for {', '.join(_TOKEN_KINDS)}",
            )
        for paths in (self.answer, *self.usage.values(), self.cost, self.session, self.error):
            for path in _as_tuple(paths):
                if (fault := jsonpath_fault(path)) is not None:
                    raise AgentError(f"{path!r} is not JSONPath: {fault}", hint='such as "$.result"')

    def __call__(self, stdout: str) -> ProgramAnswer:
        """Return the parsed output of the program."""
        try:
            value = self._value(stdout)
        except (ValueError, RecursionError) as fault:
            return ProgramAnswer("", unread=f"the output is not JSON: {fault}")
        answers = next((matches for path in _as_tuple(self.answer) if (matches := _matches(path, value))), [])
        text = _as_text(answers[-1]) if answers else ""
        failures = [failure for failure in _all_matches(self.error, value) if failure]
        sums = {name: _sum(_all_matches(self.usage.get(name, ()), value)) for name in _TOKEN_KINDS}
        tokens = {name: None if count is None else int(count) for name, count in sums.items()}
        cost = _sum(_all_matches(self.cost, value))
        known = any(count is not None for count in (cost, *tokens.values()))
        sessions = (session for session in _all_matches(self.session, value) if isinstance(session, str))
        answer = ProgramAnswer(text, Usage(cost=cost, **tokens) if known else None, next(sessions, ""))
        if failures:
            message = text or "it reports an error" if failures[-1] is True else _as_text(failures[-1])
            return answer._replace(error=message)
        if answers:
            return answer
        where = " or ".join(_as_tuple(self.answer))
        return answer._replace(unread=f"the output has no answer at {where}: {stdout[:_SHOWN_CHARS]}")

    def _value(self, stdout: str) -> JSON:
        if not self.lines:
            value: JSON = json.loads(stdout)
            return value
        return [json.loads(line) for line in stdout.splitlines() if line.lstrip().startswith(("{", "["))]


def _as_tuple(paths: Paths) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def _matches(path: str, value: JSON) -> list[JSON]:
    from jsonpath_ng.ext import parse

    return [match.value for match in parse(path).find(value) if match.value is not None]


def _all_matches(paths: Paths, value: JSON) -> list[JSON]:
    return [match for path in _as_tuple(paths) for match in _matches(path, value)]


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else compact(value)


def _sum(values: Sequence[JSON]) -> float | None:
    """Return the sum of the numbers, or None if there are none."""
    numbers = [number for number in values if isinstance(number, (int, float)) and not isinstance(number, bool)]
    return sum(numbers) if numbers else None


_AIDER_USED: Final = re.compile(
    r"^Tokens: (?P<sent>[\d.,]+[kM]?) sent,.*?(?P<received>[\d.,]+[kM]?) received\.(?: Cost: \$(?P<cost>[\d.,]+) message)?"
)
_UNITS: Final = {"k": 1_000, "M": 1_000_000}


def read_aider(stdout: str) -> ProgramAnswer:
    """Parse the output of aider: a banner, the answer, and lines with rounded tokens, such as 2.4k, and the cost."""
    lines = stdout.splitlines()
    used = [(number, match) for number, line in enumerate(lines) if (match := _AIDER_USED.match(line))]
    begin, end = 0, used[-1][0] if used else len(lines)
    if (banner := next((number for number, line in enumerate(lines) if line.startswith("Aider v")), None)) is not None:
        begin = next((number for number in range(banner, len(lines)) if not lines[number].strip()), len(lines))
    counted = {number for number, _ in used}
    text = "\n".join(lines[number] for number in range(begin, end) if number not in counted).strip()
    if not used:
        return ProgramAnswer(text)
    sent, received = (sum(_count(match[name]) for _, match in used) for name in ("sent", "received"))
    costs = [match["cost"] for _, match in used]
    total = None if None in costs else sum(float(cost.replace(",", "")) for cost in costs)
    return ProgramAnswer(text, Usage(sent, received, total))


def _count(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * unit)


_MAX_REPLY_BYTES: Final = 8 * 1024 * 1024
"""Maximum length of a program's answer, in bytes."""

_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""A valid session name. It becomes an argument later, so it must not look like an option."""


class CommandAgent:
    """Runs a program for each turn, with the guarantees of the utility runner (R23).

    Args:
        argv: the program and its arguments, as in ``["pi", "-p"]``; no shell is involved.
        timeout_s: time limit of a turn, in seconds; None for no limit.
        cwd: the working directory of the program; None for the project directory.
        name: the display name of the agent; the program's name if not given.
        reads: parses the program's output, such as a :class:`JsonOutput`. If left out, the whole text is the answer, and tokens
            and cost are unknown (R56).

    Raises:
        AgentError: ``argv`` is not a list of strings.
    """

    def __init__(
        self,
        argv: Sequence[str],
        timeout_s: float | None = TIMEOUT_S,
        cwd: Path | None = None,
        *,
        name: str | None = None,
        reads: ReadsStdout | None = None,
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
        self.reads = reads

    def command(self, turn: Turn) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses whose command depends on the turn
        """Return the program and its arguments for a turn."""
        return self.argv

    @contextmanager
    def _complete_command(self, turn: Turn) -> Iterator[tuple[str, ...]]:
        """Yield the command for a turn; the file with the answer's schema exists until the program has ended."""
        argv = self.command(turn)
        if _SCHEMA_FILE not in argv:
            yield argv
            return
        with TemporaryDirectory() as folder:
            path = Path(folder) / "schema.json"
            replace_file(path, compact(thawed(turn.schema)).encode())
            yield tuple(str(path) if part == _SCHEMA_FILE else part for part in argv)

    def answer(self, turn: Turn) -> Reply:
        """Run the program on the prompt, or on the whole conversation of this visit if the visit had earlier turns.

        Raises:
            AgentError: kinds ``agent_not_started``, ``agent_timeout``, ``agent_exit``,
                ``agent_reply_too_long``, and ``interrupted`` when the cast is stopped.
            KeyboardInterrupt: interrupted; the program has ended.
        """
        request = turn.prompt if self.goes_on_in(turn) else whole_request(turn)
        with self._complete_command(turn) as argv:
            result = run_process(
                argv,
                stdin=request.encode(errors="replace"),
                cwd=self.cwd or turn.project,
                timeout_s=self.timeout_s,
                keep_bytes=_MAX_REPLY_BYTES,
                stop=turn.stop,
            )
        stdout = scrubbed(result.stdout.decode(errors="replace").strip(), *secret_arguments(argv))
        answer = self._read(turn, result, stdout)
        meta = {"program": _program(argv), "arguments": len(argv) - 1, "seconds": round(result.seconds, 6)}
        return Reply(answer.text, answer.usage, meta=meta | ({"session": answer.session} if answer.session else {}))

    def goes_on_in(self, turn: Turn) -> str:
        """Return the session of the previous answer in the conversation, or "" if another program gave that answer."""
        session = turn.meta.get("session") if turn.meta.get("program") == _program(self.argv) else None
        return session if isinstance(session, str) and _SESSION.fullmatch(session) else ""

    def _read(self, turn: Turn, result: ProcessResult, stdout: str) -> ProgramAnswer:
        """Parse stdout. A program that reports an error has failed, even if it exits with 0.

        The usage is reported before the error is raised; it is unknown if the program started and reports no usage (R56).
        """
        ended = result.started and not (result.timed_out or result.stopped or result.stdout_truncated)
        answer = ProgramAnswer(stdout if self.reads is None else "")
        if self.reads is not None and ended:
            answer = self.reads(stdout)
        failed = not ended or result.code != 0 or answer.error or answer.unread
        if failed and result.started:
            turn.tell(Spent(answer.usage or Usage(None, None)))
        name, where = f"Command {_program(result.argv)}", turn.socket_id
        if answer.error:
            hint = "start a new session with retry" if self.goes_on_in(turn) else None
            message = f"{name} failed: {answer.error[:STDERR_SUMMARY]}"
            raise AgentError(message, where=where, hint=hint, kind="agent_exit")
        self._check(turn, result)  # the exit status explains more than the unreadable output
        if answer.unread:
            hint = "run the program in a terminal to see its output; CommandAgent reads other formats, or plain text"
            raise AgentError(f"{name}: {answer.unread}", where=where, hint=hint, kind="malformed")
        return answer

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:  # noqa: ARG002 - some need the model
        """Return the error if the program cannot be started in ``project``, or None if the program exists."""
        program = self.argv[0]
        where = str((self.cwd or project) / program) if "/" in program else program
        if shutil.which(where) is not None:
            return None
        return AgentError(
            f"{program} is not installed", hint="install it, or choose another agent", kind="agent_not_started"
        )

    def __repr__(self) -> str:
        return f"CommandAgent({self.name!r})"

    def _check(self, turn: Turn, result: ProcessResult) -> None:
        ended, limit = result.ending, self.timeout_s or 0
        missing = "install it; %materia doctor lists the known programs that are installed"
        longer = "give the agent a longer timeout_s"
        outcomes = (
            (not result.started, "agent_not_started", f"could not be started: {result.start_error}", missing),
            (result.timed_out, "agent_timeout", f"took longer than {limit:g} s and was ended ({ended})", longer),
            (result.stopped, "interrupted", f"was interrupted ({ended})", None),
            (result.code != 0, "agent_exit", f"ended with {ended}", None),
            (result.stdout_truncated, "agent_reply_too_long", f"answered with more than {_MAX_REPLY_BYTES} bytes", None),
        )  # fmt: skip
        outcome = next((outcome for outcome in outcomes if outcome[0]), None)
        if outcome is None:
            return
        _, kind, how, hint = outcome
        stderr, secrets = result.stderr.decode(errors="replace"), secret_arguments(result.argv)
        summary = summarize(scrubbed_part(stderr, *secrets, end=result.stderr_truncated), STDERR_SUMMARY)
        message = f"Command {_program(result.argv)} {how}" + (f"; stderr: {summary}" if summary else "")
        raise AgentError(message, where=turn.socket_id, hint=hint, kind=kind)


def _program(argv: Sequence[str]) -> str:
    """Return the name of a command's program; its arguments may hold keys."""
    return PurePath(argv[0]).name


def whole_request(turn: Turn) -> str:
    """Write a turn as plain text: the prompt alone, or the visit's conversation under role headings."""
    if not turn.conversation:
        return turn.prompt
    messages = [*turn.conversation, Message("user", turn.prompt)]
    return "\n\n".join(f"## {message.role.title()}\n\n{message.text}" for message in messages) + "\n"


COMMAND_PREFIX: Final = "command:"
"""The prefix of a preset name in the setting of an agent, as in ``command:claude``."""
ANY_TOOLS: Final = "+tools"
"""The suffix of a preset that may use its own tools regardless of the materia's tools, as in
``command:opencode+tools``."""

_SCHEMA_FILE: Final = "{schema_file}"
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}")


@dataclass(frozen=True, slots=True)
class Preset:
    """One program, as ``presets.toml`` describes it.

    Attributes:
        name: its name behind ``command:``.
        about: a description of the program in a few words.
        project: the project or vendor that makes the program.
        argv: the program and its arguments in the mode that reads stdin, answers on stdout and ends;
            ``--model`` is inserted before the last ``trailing`` arguments.
        trailing: the number of arguments that must come last.
        reads: the parser of its stdout; None for plain text.
        nothing: arguments that disable all tools, for ``tools: none``; ``looking`` if left out.
        looking: arguments that prevent changes, for ``tools`` that only read.
        holds: the scopes, ``none`` or ``readOnly``, that the real program was seen to respect with these arguments (R73).
        changing: arguments that allow changes to files, for ``tools`` that allow them.
        schema: arguments that pass the JSON Schema of the answer, where ``{schema}`` stands for the schema, or
            ``{schema_file}`` for a file with the schema.
        resume: arguments that continue after an earlier answer without changing the earlier session, where ``{session}``
            stands for that session.
    """

    name: str
    about: str
    project: str
    argv: Sequence[str]
    trailing: int = 0
    reads: ReadsStdout | None = None
    nothing: Sequence[str] | None = None
    looking: Sequence[str] = ()
    changing: Sequence[str] = ()
    holds: Sequence[str] = ()
    schema: Sequence[str] = ()
    resume: Sequence[str] = ()

    @property
    def version(self) -> tuple[str, ...]:
        """The command that prints the version of the program without using the network."""
        return (self.argv[0], "--version")

    def command(self, model: str | None, *more: str) -> tuple[str, ...]:
        """Return the command for a model, or for the program's own choice, with ``more`` arguments.

        Raises:
            AgentError: the text cannot be the name of a model (``bad_model``).
        """
        # The name may come from a foreign loadout: the program must not read it as an option.
        if model is not None and not _MODEL_NAME.fullmatch(model):
            raise AgentError(
                f"{model[:80]!r} is not the name of a model",
                hint="a model name begins with a letter or digit and contains no spaces",
                kind="bad_model",
            )
        at = len(self.argv) - self.trailing
        chosen = ("--model", model) if model else ()
        return (*self.argv[:at], *chosen, *more, *self.argv[at:])


def _scope_of(tools: str | tuple[str, ...]) -> Literal["none", "readOnly", "coding"]:
    """Return the scope that corresponds to a materia's tools, for a program that has its own tools."""
    names = {tools} if isinstance(tools, str) else {*tools}
    if not names or names == {"none"}:
        return "none"
    return "readOnly" if names.isdisjoint({"coding", "edit", "write", "bash"}) else "coding"


def _preset(name: str, row: Mapping[str, Any]) -> Preset:
    reads: ReadsStdout | None = JsonOutput(**row["reads"]) if "reads" in row else None
    return Preset(name, **{**row, "reads": read_aider if name == "aider" else reads})


_TABLE: Final = read_package_toml(__file__, "presets.toml")
PRESETS: Final[Mapping[str, Preset]] = {name: _preset(name, row) for name, row in _TABLE.items()}
"""The presets by name."""


class PresetAgent(CommandAgent):
    """Runs the program of a preset with the agent's own model or, if it has none, the materia's model.

    Args:
        preset: the preset of the program.
        model: the model to use for every materia; None uses the materia's model, or else the program's default.
        timeout_s: as for :class:`CommandAgent`.
        any_tools: True if the program may use its own tools when it cannot be limited to the tools of a materia (R73).

    Raises:
        AgentError: ``model`` cannot be the name of a model (``bad_model``).
    """

    def __init__(
        self,
        preset: Preset,
        model: str | None = None,
        timeout_s: float | None = TIMEOUT_S,
        *,
        any_tools: bool = False,
    ) -> None:
        name = f"{COMMAND_PREFIX}{preset.name}{ANY_TOOLS * any_tools}" + (f":{model}" if model else "")
        super().__init__(preset.command(model) if model else preset.argv, timeout_s, name=name, reads=preset.reads)
        self.preset, self.model, self.any_tools = preset, model, any_tools

    def command(self, turn: Turn) -> tuple[str, ...]:
        """Return the command for a turn, with its model, tools, schema and session.

        Raises:
            AgentError: the program cannot be limited to the materia's ``tools`` (``tools_not_held``, R73).
        """
        preset, scope = self.preset, _scope_of(turn.tools)
        if scope not in ("coding", *preset.holds) and not self.any_tools:
            raise AgentError(
                f"{self.argv[0]} cannot be held to `tools: {scope}` of {turn.materia_id}: it could use its own tools",
                where=turn.socket_id,
                hint=f"use command:claude or command:pi, or allow it by name with {COMMAND_PREFIX}{preset.name}{ANY_TOOLS}",
                kind="tools_not_held",
            )
        nothing = preset.looking if preset.nothing is None else preset.nothing
        more = [*{"coding": preset.changing, "readOnly": preset.looking, "none": nothing}[scope]]
        if turn.schema is not None:
            more += (part.replace("{schema}", compact(thawed(turn.schema))) for part in preset.schema)
        if session := self.goes_on_in(turn):
            more += (part.replace("{session}", session) for part in preset.resume)
        return preset.command(self.model or turn.model, *more)

    def price_names(self, model: str | None) -> tuple[str, ...]:
        """Return the names under which a config may list the agent's price: with the model and without the model."""
        name, model = f"{COMMAND_PREFIX}{self.preset.name}", self.model or model
        return (f"{name}:{model}", name) if model else (name,)

    def goes_on_in(self, turn: Turn) -> str:
        """Return the session of the previous answer in the same conversation, if the program can continue it."""
        return super().goes_on_in(turn) if self.preset.resume else ""

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:
        """Return the error if the program cannot be started with a model, or None if the program exists."""
        try:
            self.preset.command(self.model or model)
        except AgentError as error:
            return error
        return super().not_ready(model, project)


def preset_agent(text: str) -> PresetAgent:
    """Return the agent for ``command:NAME``, ``command:NAME:MODEL`` or, with any tools, ``command:NAME+tools``.

    Raises:
        AgentError: there is no such preset (``unknown_preset``); the message lists them.
    """
    name, _, model = text.removeprefix(COMMAND_PREFIX).partition(":")
    any_tools = name.endswith(ANY_TOOLS)
    name = name.removesuffix(ANY_TOOLS)
    preset = PRESETS.get(name)
    if preset is None:
        raise AgentError(
            f"The command preset {name!r} does not exist; the presets are {', '.join(PRESETS)}",
            hint=f"{did_you_mean(name, PRESETS)}; for another program, write command my-agent --print, or ['my-agent', '--print'] in Python",
            kind="unknown_preset",
        )
    return PresetAgent(preset, model or None, any_tools=any_tools)
