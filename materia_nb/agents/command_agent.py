"""Command agents start a program for each turn, send it the prompt on stdin and read the answer from stdout.

Presets such as ``command:claude`` define the command line of a known coding agent and the format of its output.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.agents.interface import (
    THINKING_LEVELS,
    TIMEOUT_S,
    TOKEN_KINDS,
    AgentError,
    NoteEvent,
    Reply,
    Turn,
    Usage,
    UsageEvent,
)
from materia_nb.agents.tools.search import SKIPPED_FOLDERS
from materia_nb.engine.conversation import Message
from materia_nb.errors import did_you_mean, redact, redact_excerpt, secret_arguments
from materia_nb.file_io import read_package_toml, replace_file
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import JSON, compact, json_or_none, thawed
from materia_nb.loadout.vocabulary import jsonpath_fault
from materia_nb.utilities.process import STDERR_CHARS, Capture, ProcessResult, run_process, summarize

Paths: TypeAlias = str | Sequence[str]
"""One or more JSONPath expressions."""


class ProgramAnswer(NamedTuple):
    """The parsed output of a program that ran as an agent.

    Attributes:
        text: the text of the answer.
        usage: the token counts and the cost, or None if the program does not report them (R56).
        session: the id of the conversation that the program can continue, or "".
        error: the error message that the program reported, or "".
        no_answer: the reason why the output contains no answer although the program reported no error, or "".
        cut: the limit at which the answer was cut off, or "" if the answer is complete (R52).
        denied: the names of the tools that the program tried to use but was not allowed to use.
    """

    text: str
    usage: Usage | None = None
    session: str = ""
    error: str = ""
    no_answer: str = ""
    cut: str = ""
    denied: tuple[str, ...] = ()


_MAX_SHOWN_CHARS: Final = 200  # Maximum length, in characters, of the excerpt of unreadable output in a message.
_CUT_LIMIT: Final = "its maximum number of tokens"
_CUT_REASONS: Final = frozenset({"length", "max_tokens"})
"""Finish reasons which mean that an answer reached the maximum number of tokens."""

OutputParser: TypeAlias = Callable[[str], ProgramAnswer]
"""A function that parses the complete stdout of a program."""


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """Extracts the answer, usage and errors from the JSON output of a program, with JSONPath expressions.

    Attributes:
        answer: the paths of the answer. The last match of the first path that matches is used; an object is converted
            to JSON text.
        usage: the paths of the token counts, by kind: ``input``, ``output``, ``cached`` and ``reasoning``. All matches
            of a kind are added. ``cached`` must be part of ``input``, and ``reasoning`` must be part of ``output``. If
            a program counts them separately, list their paths under ``input`` or ``output`` as well.
        usage_at: the common prefix of the usage paths, such as ``$.usage``; if it is empty, the usage paths are
            complete.
        cost: the paths of the cost in US dollars. All matches are added.
        session: the paths of the session id.
        error: the paths of a value that is false, null or empty unless the program failed; a string describes the
            failure. With ``lines``, an error before the last answer is ignored, because the program has recovered from
            it.
        finish: the paths of the finish reason. If the last match is ``length`` or ``max_tokens``, the answer was cut
            off.
        denied: the paths of the names of the tools that the program was not allowed to use.
        lines: True if each line of the output is a separate JSON value. The paths then apply to the list of all lines;
            lines that are not JSON are skipped.
        skip_lines: the prefix of lines that are discarded while the program runs, such as partial answers that would
            exceed the maximum length of the output.

    Raises:
        AgentError: a path is not a valid JSONPath expression.
    """

    answer: Paths
    usage: Mapping[str, Paths] = field(default_factory=dict)
    cost: Paths = ()
    session: Paths = ()
    error: Paths = ()
    finish: Paths = ()
    denied: Paths = ()
    lines: bool = False
    skip_lines: str = ""
    usage_at: str = ""

    def __post_init__(self) -> None:
        if unknown_kinds := set(self.usage) - set(TOKEN_KINDS):
            message = f"Unknown kinds of usage in the usage paths: {', '.join(sorted(map(str, unknown_kinds)))}"
            raise AgentError(message, hint=f"use only the names {', '.join(TOKEN_KINDS)}")
        groups = (self.answer, self.cost, self.session, self.error, self.finish, self.denied)
        for path in (path for paths in (*groups, *map(self._usage_paths, self.usage)) for path in _as_tuple(paths)):
            if (fault := jsonpath_fault(path)) is not None:
                raise AgentError(f"{path!r} is not a valid JSONPath: {fault}", hint='write a path like "$.result"')

    def __call__(self, stdout: str) -> ProgramAnswer:
        """Parse the complete stdout of the program."""
        try:
            value = self._parse_json(stdout)
        except (ValueError, RecursionError) as fault:
            return ProgramAnswer("", no_answer=f"the output is not JSON: {fault}")
        answers = next((matches for path in _as_tuple(self.answer) if (matches := _matches(path, value))), [])
        text = as_text(answers[-1]) if answers else ""
        lines_from_answer = value[self._answer_line(value) :] if self.lines else value
        failures = [failure for failure in _all_matches(self.error, lines_from_answer) if failure]
        token_sums = {name: _sum_numbers(_all_matches(self._usage_paths(name), value)) for name in TOKEN_KINDS}
        tokens = {name: None if count is None else int(count) for name, count in token_sums.items()}
        cost = _sum_numbers(_all_matches(self.cost, value))
        has_usage = any(count is not None for count in (cost, *tokens.values()))
        sessions = (session for session in _all_matches(self.session, value) if isinstance(session, str))
        cut_reason = _CUT_LIMIT if _CUT_REASONS.intersection(map(str, _all_matches(self.finish, value)[-1:])) else ""
        usage = Usage(cost=cost, **tokens) if has_usage else None
        denied = tuple(dict.fromkeys(map(as_text, _all_matches(self.denied, value))))
        answer = ProgramAnswer(text, usage, next(sessions, ""), cut=cut_reason, denied=denied)
        if failures:
            message = text or "it reported an unknown error" if failures[-1] is True else as_text(failures[-1])
            return answer._replace(error=message)
        if answers:
            return answer
        where = " or ".join(_as_tuple(self.answer))
        return answer._replace(no_answer=f"the output has no answer at {where}: {stdout[:_MAX_SHOWN_CHARS]}")

    def _usage_paths(self, kind: str) -> tuple[str, ...]:
        prefix = f"{self.usage_at}." if self.usage_at else ""
        return tuple(prefix + path for path in _as_tuple(self.usage.get(kind, ())))

    def _parse_json(self, stdout: str) -> JSON:
        if not self.lines:
            value: JSON = json.loads(stdout)
            return value
        return [json.loads(line) for line in stdout.splitlines() if line.lstrip().startswith(("{", "["))]

    def _answer_line(self, lines: Sequence[JSON]) -> int:
        """Return the index of the last line that contains an answer, or 0 if no line contains one."""
        numbers = reversed(range(len(lines)))
        return next((number for number in numbers if _all_matches(self.answer, [lines[number]])), 0)


def _as_tuple(paths: Paths) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def _matches(path: str, value: JSON) -> list[JSON]:
    return [match.value for match in _compile_jsonpath(path).find(value) if match.value is not None]


@cache
def _compile_jsonpath(path: str) -> Any:
    from jsonpath_ng.ext import parse

    return parse(path)


def _all_matches(paths: Paths, value: JSON) -> list[JSON]:
    return [match for path in _as_tuple(paths) for match in _matches(path, value)]


def _sum_numbers(values: Sequence[JSON]) -> float | None:
    """Return the sum of all numbers in ``values``, or None if it contains no numbers. Other values are ignored."""
    numbers = [number for number in values if isinstance(number, (int, float)) and not isinstance(number, bool)]
    return sum(numbers) if numbers else None


_AIDER_USAGE: Final = re.compile(
    r"^Tokens: (?P<sent>[\d.,]+[kM]?) sent,.*?(?P<received>[\d.,]+[kM]?) received\.(?: Cost: \$(?P<cost>[\d.,]+) message)?.*",
    re.MULTILINE,
)
_TOKEN_UNITS: Final = {"k": 1_000, "M": 1_000_000}


def read_aider(stdout: str) -> ProgramAnswer:
    """Parse the output of aider: a banner, the answer, and lines with the cost and rounded token counts like 2.4k."""
    banner = re.search(r"^Aider v.*?\n\s*\n", stdout, re.MULTILINE | re.DOTALL)
    output = stdout[banner.end() if banner else 0 :]
    limit_match = re.search(r"^Model .* has hit a token limit!", output, re.MULTILINE)
    if limit_match and not _AIDER_USAGE.search(output, limit_match.end()):  # else the answer quotes such a line
        return ProgramAnswer(output[: limit_match.start()].strip(), cut=_CUT_LIMIT)
    usage_matches = list(_AIDER_USAGE.finditer(output))
    text = _AIDER_USAGE.sub("", output[: usage_matches[-1].end()] if usage_matches else output).strip()
    if not usage_matches:
        return ProgramAnswer("", error=text) if text.startswith("litellm.") else ProgramAnswer(text)
    tokens_in, tokens_out = (sum(_parse_count(match[name]) for match in usage_matches) for name in ("sent", "received"))
    costs = [match["cost"] for match in usage_matches]
    total = None if None in costs else sum(float(cost.replace(",", "")) for cost in costs)
    return ProgramAnswer(text, Usage(tokens_in, tokens_out, total))


def _parse_count(text: str) -> int:
    unit = _TOKEN_UNITS.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * unit)


_MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # Maximum size of a program's output, in bytes.

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Pattern of a valid session id. The id becomes a command-line argument, so it must not look like an option."""


class CommandAgent:
    """Runs a program for each turn, with the same guarantees as a utility process (R23).

    Args:
        argv: the program and its arguments, such as ``["pi", "-p"]``. The command is not run in a shell.
        timeout_s: the time limit of a turn, in seconds, or None for no limit.
        cwd: the working directory of the program; defaults to the project directory.
        name: the display name of the agent; defaults to the name of the program.
        parse: a function that parses the program's output, such as a :class:`JsonOutput`. By default, all of stdout is
            the answer, and the token counts and the cost are unknown (R56).
        any_tools: True if the program may change files regardless of the tools of the materia (R73).

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
        parse: OutputParser | None = None,
        any_tools: bool = False,
    ) -> None:
        if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
            hint = 'pass a list of strings, the program and its arguments, such as ["pi", "-p"]'
            raise AgentError(f"{argv!r} is not a command", hint=hint)
        self.argv = tuple(argv)
        self.timeout_s = timeout_s
        self.cwd = cwd
        self.name = name or PurePath(self.argv[0]).name
        self.parse, self.any_tools = parse, any_tools

    def command(self, turn: Turn) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses whose command depends on the turn
        """Return the program and its arguments for a turn."""
        return self.argv

    def environment(self, turn: Turn) -> Mapping[str, str]:  # noqa: ARG002 - as for command
        """Return the environment variables that are added for the program."""
        return {}

    @contextmanager
    def _complete_command(self, turn: Turn) -> Iterator[tuple[str, ...]]:
        """Yield the complete command for a turn. A schema file that the command needs exists while the block runs."""
        argv = self.command(turn)
        if _SCHEMA_FILE not in argv:
            yield argv
            return
        with TemporaryDirectory() as folder:
            path = Path(folder) / "schema.json"
            replace_file(path, compact(thawed(turn.schema)).encode())
            yield tuple(str(path) if part == _SCHEMA_FILE else part for part in argv)

    def answer(self, turn: Turn) -> Reply:
        """Run the program with the prompt on its stdin and return its answer.

        In later turns of a visit, the prompt includes the whole conversation, unless the program resumes its own
        session. If the materia allows only reading, the method then checks that no file has changed. This check is
        skipped in lanes, because other lanes may change the same folder.

        Raises:
            AgentError: kinds ``agent_not_started``, ``agent_timeout``, ``agent_exit``, ``agent_reply_too_long``,
                ``wrote_read_only`` if files in the project changed although the program may only read (R73), and
                ``interrupted`` if the cast is stopped.
            KeyboardInterrupt: the user interrupted the call, and the program has ended.
        """
        if _required_scope(turn.tools) == "coding" or self.any_tools or turn.lane:
            return self._run(turn)
        casts_dir = Path(turn.more_tools.run_dir).parent
        old_stamps = _file_stamps(turn.project, casts_dir)
        try:
            reply = self._run(turn)
        except AgentError as error:
            self._require_unchanged(turn, old_stamps, casts_dir, error)
            raise
        self._require_unchanged(turn, old_stamps, casts_dir, reply)
        return reply

    def _require_unchanged(
        self, turn: Turn, old_stamps: Mapping[str, tuple[int, int]], casts_dir: Path, outcome: Reply | AgentError
    ) -> None:
        """Raise AgentError (``wrote_read_only``) if files have changed; the usage of a reply is reported first."""
        new_stamps = _file_stamps(turn.project, casts_dir)
        changed = sorted(path for path in {*old_stamps, *new_stamps} if old_stamps.get(path) != new_stamps.get(path))
        if not changed:
            return
        if isinstance(outcome, Reply):
            turn.report(UsageEvent(outcome.usage or Usage(None, None)))
        names = summarize(", ".join(changed), _MAX_FILE_NAMES_CHARS)
        message = f"{self.argv[0]} changed files, although the materia {turn.materia_id} allows only reading: {names}"
        hint = "use `back N --files` or version control to restore the files, then run `retry`"
        cause = outcome if isinstance(outcome, AgentError) else None
        raise AgentError(message, where=turn.socket_id, hint=hint, kind="wrote_read_only") from cause

    def _run(self, turn: Turn) -> Reply:
        request = turn.prompt if self.session_to_resume(turn) else request_text(turn)
        with self._complete_command(turn) as argv:
            result = run_process(
                argv,
                stdin=request.encode(errors="replace"),
                cwd=self.cwd or turn.project,
                timeout_s=self.timeout_s,
                capture=Capture(_MAX_REPLY_BYTES, skip_lines=getattr(self.parse, "skip_lines", "").encode()),
                env=self.environment(turn),
                stop=turn.stop,
            )
        stdout = redact(result.stdout.decode(errors="replace").strip(), *secret_arguments(argv))
        answer = self._parse_output(turn, result, stdout)
        if answer.denied:
            names = summarize(", ".join(answer.denied), _MAX_SHOWN_CHARS)
            turn.report(NoteEvent(f"{_program_name(argv)} was not allowed to use {names} for {turn.materia_label}"))
        meta = {"program": _program_name(argv), "arguments": len(argv) - 1, "seconds": round(result.seconds, 6)}
        session = {"session": answer.session} if answer.session else {}
        return Reply(answer.text, answer.usage, meta=meta | session, cut=answer.cut)

    def session_to_resume(self, turn: Turn) -> str:
        """Return the session id of the conversation's previous answer, or "" if another program wrote that answer."""
        session = turn.meta.get("session") if turn.meta.get("program") == _program_name(self.argv) else None
        return session if isinstance(session, str) and _SESSION_ID.fullmatch(session) else ""

    def _parse_output(self, turn: Turn, result: ProcessResult, stdout: str) -> ProgramAnswer:
        """Parse the output of the program.

        A program that reports an error has failed, even if its exit code is 0. The usage of a failed turn is reported
        before the error is raised. The usage is unknown if the program does not report it (R56).

        Raises:
            AgentError: the program failed, or its output contains no answer.
        """
        is_complete = result.started and not (result.timed_out or result.stopped or result.stdout_truncated)
        answer = ProgramAnswer(stdout if self.parse is None else "")
        if self.parse is not None and is_complete:
            answer = self.parse(stdout)
            if not stdout:
                stderr = redact(result.stderr.decode(errors="replace"), *secret_arguments(result.argv))
                error_report = self.parse(_json_at_end(stderr))
                answer = error_report if error_report.error else answer
        failed = not is_complete or result.code != 0 or answer.error or answer.no_answer
        if failed and result.started:
            turn.report(UsageEvent(answer.usage or Usage(None, None)))
        name, where = f"Command {_program_name(result.argv)}", turn.socket_id
        if answer.error:
            hint = "run `retry`, which starts a new session" if self.session_to_resume(turn) else None
            message = f"{name} failed: {summarize(plain_error_message(redact(answer.error)), STDERR_CHARS)}"
            raise AgentError(message, where=where, hint=hint, kind="agent_exit")
        self._check_exit(turn, result)  # the exit status explains more than the unreadable output
        if answer.no_answer:
            hint = "run the program in a terminal, then change the argument `parse` of `CommandAgent` to fit its output"
            raise AgentError(f"{name}: {answer.no_answer}", where=where, hint=hint, kind="malformed")
        return answer

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:  # noqa: ARG002 - some need the model
        """Return an error if the program is not installed, or None if it can be started in ``project``."""
        program = self.argv[0]
        where = str((self.cwd or project) / program) if "/" in program else program
        if shutil.which(where) is not None:
            return None
        hint = "install the program, or choose another agent"
        return AgentError(f"The program {program} is not installed", hint=hint, kind="agent_not_started")

    def __repr__(self) -> str:
        return f"CommandAgent({self.name!r})"

    def _check_exit(self, turn: Turn, result: ProcessResult) -> None:
        failure = result.failure("agent", f"{self.timeout_s or 0:g} s")
        if failure is None and result.stdout_truncated:
            failure = "agent_reply_too_long", f"returned an answer of more than {_MAX_REPLY_BYTES:,} bytes"
        if failure is None:
            return
        kind, description = failure
        stderr, secrets = result.stderr.decode(errors="replace"), secret_arguments(result.argv)
        summary = summarize(redact_excerpt(stderr, *secrets, end=result.stderr_truncated), STDERR_CHARS)
        message = f"Command {_program_name(result.argv)} {description}" + (f"; stderr: {summary}" if summary else "")
        raise AgentError(message, where=turn.socket_id, hint=_FAILURE_HINTS.get(kind), kind=kind)


_FAILURE_HINTS: Final = {
    "agent_not_started": "install the program; `%materia doctor` lists the known programs that are installed",
    "agent_timeout": "increase `timeout_s` of the agent",
}  # Hints for program failures, by kind of failure.


def _json_at_end(stderr: str) -> str:
    """Return the JSON object at the end of stderr, or an empty string. Some programs report errors there."""
    match = re.search(r"^\{\n.*\}\s*\Z", stderr, re.MULTILINE | re.DOTALL)
    return match[0] if match else ""


def plain_error_message(text: str) -> str:
    """If an error message ends with JSON that contains a message, replace the JSON with this message."""
    start, brace, json_tail = text.partition("{")
    match json_or_none(brace + json_tail):
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            return start + message
    return text


def _program_name(argv: Sequence[str]) -> str:
    return PurePath(argv[0]).name


def request_text(turn: Turn) -> str:
    """Return the prompt of a turn, or the whole conversation with role headings if there are earlier messages."""
    if not turn.conversation:
        return turn.prompt
    messages = [*turn.conversation, Message("user", turn.prompt)]
    return "\n\n".join(f"## {message.role.title()}\n\n{message.text}" for message in messages) + "\n"


COMMAND_PREFIX: Final = "command:"
"""Prefix that marks the name of an agent as the name of a preset, as in ``command:claude``."""
ANY_TOOLS_SUFFIX: Final = "+tools"
"""Suffix of a preset whose program may also use tools that the materia does not list (``command:opencode+tools``)."""

_SCHEMA_FILE: Final = "{schema_file}"
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}")
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.*-]{0,99}")


def _nearest_level(thinking: str | None, levels: Sequence[str]) -> str | None:
    """Return the closest level that a program supports, or None to use the default level of the program."""
    level = "off" if thinking == "none" else thinking
    if level not in THINKING_LEVELS or not levels:
        return None
    return min(levels, key=lambda other: abs(THINKING_LEVELS.index(other) - THINKING_LEVELS.index(level)))


class ScopeOptions(NamedTuple):
    """Arguments and environment variables that restrict a program to one scope of tools."""

    args: Sequence[str] = ()
    env: Mapping[str, str] = {}


_ScopeName: TypeAlias = Literal["none", "readOnly", "coding"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A program that can run as an agent, as described in ``presets.toml``.

    Attributes:
        name: the name of the preset, which follows ``command:`` in the name of an agent.
        about: a short description of the program, with the project or vendor that develops it.
        tested: the version of the program that the preset was tested with.
        argv: the program and the arguments with which it reads stdin, writes the answer to stdout and exits.
        parse: the parser of stdout, or None if stdout is plain text.
        env: the environment variables that are added for the program.
        scopes: the options for each scope of tools. The scopes ``none`` and ``readOnly`` are listed only if a test has
            shown that the program stays within them when it gets these options (R73).
        tools: the arguments that pass a list of tool names. The list replaces ``{tools}``. If there are no such
            arguments, the options of the scope are used instead.
        levels: the thinking levels that the program supports.
        thinking: the arguments that set the thinking level. The level replaces ``{thinking}``.
        schema: the arguments that pass the JSON Schema of the answer. The schema replaces ``{schema}``, and the path of
            a file that contains the schema replaces ``{schema_file}``.
        resume: the arguments that continue a copy of an earlier session. The session id replaces ``{session}``.
    """

    name: str
    about: str
    tested: str
    argv: Sequence[str]
    scopes: Mapping[_ScopeName, ScopeOptions]
    parse: OutputParser | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    tools: Sequence[str] = ()
    levels: Sequence[str] = ()
    thinking: Sequence[str] = ()
    schema: Sequence[str] = ()
    resume: Sequence[str] = ()

    def command(self, model: str | None, *extra_args: str) -> tuple[str, ...]:
        """Return the command line for ``model``, or for the program's default model, followed by ``extra_args``.

        Raises:
            AgentError: kind ``bad_model``: ``model`` cannot be the name of a model.
        """
        # The name may come from a foreign loadout: the program must not read it as an option.
        if model is not None and not _MODEL_NAME.fullmatch(model):
            hint = "a model name begins with a letter or digit and contains no spaces"
            raise AgentError(f"{model[:80]!r} is not the name of a model", hint=hint, kind="bad_model")
        return (*self.argv, *(("--model", model) if model else ()), *extra_args)


def _required_scope(tools: str | tuple[str, ...]) -> _ScopeName:
    """Return the smallest tool scope that includes all tools of a materia, for a program with built-in tools."""
    names = {tools} if isinstance(tools, str) else {*tools}
    if not names or names == {"none"}:
        return "none"
    return "readOnly" if names.isdisjoint({"coding", "edit", "write", "bash"}) else "coding"


def _parse_preset(name: str, row: Mapping[str, Any]) -> Preset:
    parse: OutputParser | None = JsonOutput(**row["parse"]) if "parse" in row else None
    scopes = {scope: ScopeOptions(**options) for scope, options in row["scopes"].items()}
    return Preset(name, **{**row, "scopes": scopes, "parse": read_aider if name == "aider" else parse})


_PRESET_ROWS: Final = read_package_toml(__file__, "presets.toml")
PRESETS: Final[Mapping[str, Preset]] = {name: _parse_preset(name, row) for name, row in _PRESET_ROWS.items()}
"""All presets, by name."""


class PresetAgent(CommandAgent):
    """Runs the program of a preset with the model of the agent or, if the agent has none, the model of the materia.

    Args:
        preset: the preset that describes the program.
        model: the model to use for every materia. By default, the agent uses the model of each materia, or else the
            default model of the program.
        timeout_s: the time limit of a turn, in seconds, or None for no limit.
        any_tools: True if the program may use its own tools when it cannot be restricted to the tools of a materia
            (R73).

    Raises:
        AgentError: kind ``bad_model``: ``model`` cannot be the name of a model.
    """

    def __init__(
        self, preset: Preset, model: str | None = None, timeout_s: float | None = TIMEOUT_S, *, any_tools: bool = False
    ) -> None:
        name = f"{COMMAND_PREFIX}{preset.name}{ANY_TOOLS_SUFFIX * any_tools}" + (f":{model}" if model else "")
        argv = preset.command(model) if model else preset.argv
        super().__init__(argv, timeout_s, name=name, parse=preset.parse, any_tools=any_tools)
        self.preset, self.model = preset, model

    def command(self, turn: Turn) -> tuple[str, ...]:
        """Return the command line for a turn, with its model, tools, thinking level, schema and session.

        Raises:
            AgentError: kind ``tools_not_held``: the program cannot be restricted to the ``tools`` of the materia (R73).
        """
        preset, tools = self.preset, turn.tools
        extra_args = [*self._scope_options(turn).args]
        if preset.tools and isinstance(tools, tuple) and all(map(_TOOL_NAME.fullmatch, tools)) and tools:
            extra_args = [part.replace("{tools}", ",".join(tools)) for part in preset.tools]
        if (level := _nearest_level(turn.thinking, preset.levels)) is not None:
            extra_args += (part.replace("{thinking}", level) for part in preset.thinking)
        if turn.schema is not None:
            extra_args += (part.replace("{schema}", compact(thawed(turn.schema))) for part in preset.schema)
        if session := self.session_to_resume(turn):
            extra_args += (part.replace("{session}", session) for part in preset.resume)
        return preset.command(self.model or turn.model, *extra_args)

    def environment(self, turn: Turn) -> Mapping[str, str]:
        """Return the environment variables of the preset and of the scope of tools."""
        return {**self.preset.env, **self._scope_options(turn).env}

    def _scope_options(self, turn: Turn) -> ScopeOptions:
        scope, preset = _required_scope(turn.tools), self.preset
        if scope in preset.scopes:
            return preset.scopes[scope]
        if scope != "coding" and not self.any_tools:
            message = f"{self.argv[0]} cannot be limited to the tools of {turn.materia_id} (tools: {scope}); it could use its own tools"
            hint = f"use `command:claude` or `command:pi`, or use `{COMMAND_PREFIX}{preset.name}{ANY_TOOLS_SUFFIX}` to allow its own tools"
            raise AgentError(message, where=turn.socket_id, hint=hint, kind="tools_not_held")
        return preset.scopes.get("readOnly", ScopeOptions())

    def price_names(self, model: str | None) -> tuple[str, ...]:
        """Return the names under which a config may list the agent's price: first with the model, then without it."""
        name, model = f"{COMMAND_PREFIX}{self.preset.name}", self.model or model
        return (f"{name}:{model}", name) if model else (name,)

    def session_to_resume(self, turn: Turn) -> str:
        """Return the session id of the conversation's previous answer, or "" if the program cannot continue it."""
        return super().session_to_resume(turn) if self.preset.resume else ""

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:
        """Return an error if the program cannot be started with ``model``, or None if it can."""
        try:
            self.preset.command(self.model or model)
        except AgentError as error:
            return error
        return super().not_ready(model, project)


_MAX_FILE_NAMES_CHARS: Final = 500  # Maximum total length, in characters, of the names of changed files in a message.


def _file_stamps(project: Path, casts_dir: Path) -> dict[str, tuple[int, int]]:
    """Return the modification time and the size of each file in a project.

    Notebooks are skipped, because Jupyter can save a notebook at any time. Caches, version control directories and the
    directory ``casts_dir``, which contains the run directories, are also skipped.
    """
    stamps = {}
    for folder, folders, files in os.walk(project):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and Path(folder, name) != casts_dir]
        for path in (Path(folder, name) for name in files if not name.endswith(".ipynb")):
            with suppress(OSError):  # removed meanwhile
                status = path.lstat()
                stamps[str(path.relative_to(project))] = (status.st_mtime_ns, status.st_size)
    return stamps


def preset_agent(text: str) -> PresetAgent:
    """Return the agent with a name such as ``command:NAME``, ``command:NAME:MODEL`` or ``command:NAME+tools``.

    Raises:
        AgentError: kind ``unknown_preset``: the preset does not exist; the message lists all presets.
    """
    name, _, model = text.removeprefix(COMMAND_PREFIX).partition(":")
    any_tools = name.endswith(ANY_TOOLS_SUFFIX)
    name = name.removesuffix(ANY_TOOLS_SUFFIX)
    preset = PRESETS.get(name)
    if preset is None:
        message = f"The command preset {name!r} does not exist; the presets are {', '.join(PRESETS)}"
        hint = f"{did_you_mean(name, PRESETS)}; for another program, write `command my-agent --print`, or `['my-agent', '--print']` in Python"
        raise AgentError(message, hint=hint, kind="unknown_preset")
    return PresetAgent(preset, model or None, any_tools=any_tools)
