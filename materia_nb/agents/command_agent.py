"""An agent that is any program which reads a prompt on stdin and answers on stdout; coding agents known by name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from materia_nb.agents.interface import TIMEOUT_S, AgentError, Reply, Turn
from materia_nb.agents.thinking import ENDLESS, part_thinking
from materia_nb.engine.conversation import Message
from materia_nb.errors import did_you_mean
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
        timeout_s: float | None = TIMEOUT_S,
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
        said = part_thinking(
            scrubbed(result.stdout.decode(errors="replace").strip(), *secret_arguments(argv))
        )
        return Reply(
            said.text,
            meta={"program": _program(argv), "arguments": len(argv) - 1, "seconds": round(result.seconds, 6)},
            thinking=said.thinking,
            cut="" if said.ended else ENDLESS,
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


PREFIX: Final = "command:"
"""What the name of a preset begins with where agents are set: ``command:claude``."""

_MODEL: Final = "{model}"
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}")


@dataclass(frozen=True, slots=True)
class Preset:
    """One program.

    Attributes:
        name: what it is called behind ``command:``.
        about: what it is, in a few words.
        project: whose it is, to find it by.
        argv: the program and its arguments in the mode that reads stdin, answers on stdout and ends;
            ``model`` goes in front of the last ``trailing`` of them.
        model: the arguments that choose a model, where ``{model}`` stands for its name.
        trailing: how many arguments must stay behind those of the model.
        needs_model: whether it cannot run without a model.
    """

    name: str
    about: str
    project: str
    argv: tuple[str, ...]
    model: tuple[str, ...] = ("--model", _MODEL)
    trailing: int = 0
    needs_model: bool = False

    @property
    def version(self) -> tuple[str, ...]:
        """How the program is asked for its version; it answers without a network."""
        return (self.argv[0], "--version")

    def command(self, model: str | None) -> tuple[str, ...]:
        """Return the command for a model, or for the program's own choice.

        Raises:
            AgentError: it needs a model (``no_model``), or the text cannot be a model's name (``bad_model``).
        """
        if model is None:
            if self.needs_model:
                raise AgentError(
                    f"{PREFIX}{self.name} needs a model, and none is given",
                    hint=f"write {PREFIX}{self.name}:MODEL, or model in the materia",
                    kind="no_model",
                )
            return self.argv
        # The name may come from a loadout of someone else: it must not be read as an option.
        if not _MODEL_NAME.fullmatch(model):
            raise AgentError(
                f"{model[:80]!r} is not the name of a model",
                hint="a name begins with a letter or digit and has no blanks",
                kind="bad_model",
            )
        at = len(self.argv) - self.trailing
        chosen = tuple(part.replace(_MODEL, model) for part in self.model)
        return (*self.argv[:at], *chosen, *self.argv[at:])


PRESETS: Final[Mapping[str, Preset]] = {
    preset.name: preset
    for preset in (
        Preset("claude", "Claude Code", "Anthropic", ("claude", "-p")),
        Preset("codex", "Codex CLI", "OpenAI", ("codex", "exec", "-"), trailing=1),
        Preset("gemini", "Gemini CLI", "Google", ("gemini",)),
        Preset(
            "goose",
            "goose",
            "Agentic AI Foundation, formerly Block",
            ("goose", "run", "--quiet", "--no-session", "-i", "-"),
            trailing=2,
        ),
        Preset("llm", "LLM, models from the command line (no tools)", "Simon Willison", ("llm",)),
        Preset(
            "ollama",
            "Ollama, models on this machine (no tools)",
            "Ollama",
            ("ollama", "run", "--hidethinking"),
            model=(_MODEL,),
            needs_model=True,
        ),
        Preset("opencode", "OpenCode; a model is PROVIDER/NAME", "Anomaly", ("opencode", "run")),
        Preset("pi", "Pi", "Earendil Works", ("pi", "-p")),
    )
}
"""The presets by name."""


class PresetAgent(CommandAgent):
    """Runs the program of a preset, with a model of its own or else the one that the materia asks for.

    Args:
        preset: which program.
        model: the model, whatever a materia asks for; None takes the materia's, or else the program's own.
        timeout_s: as for :class:`CommandAgent`.

    Raises:
        AgentError: ``model`` cannot be the name of a model (``bad_model``).
    """

    def __init__(self, preset: Preset, model: str | None = None, timeout_s: float | None = TIMEOUT_S) -> None:
        name = f"{PREFIX}{preset.name}" + (f":{model}" if model else "")
        super().__init__(preset.command(model) if model else preset.argv, timeout_s, name=name)
        self.preset, self.model = preset, model

    def command(self, turn: Turn) -> tuple[str, ...]:
        """Return the command for the model of a turn."""
        return self.preset.command(self.model or turn.model)

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:
        """Return why the program could not be started with a model, None when it is there."""
        try:
            self.preset.command(self.model or model)
        except AgentError as error:
            return error
        return super().not_ready(model, project)


def preset_agent(text: str) -> PresetAgent:
    """Make the agent that ``command:NAME`` or ``command:NAME:MODEL`` stands for.

    Raises:
        AgentError: there is no such preset (``unknown_preset``); the message lists them.
    """
    name, _, model = text.removeprefix(PREFIX).partition(":")
    preset = PRESETS.get(name)
    if preset is None:
        raise AgentError(
            f"There is no command preset {name!r}; there are {', '.join(PRESETS)}",
            hint=f"{did_you_mean(name, PRESETS)} Any other program is a list, as in ['my-agent', '--print']",
            kind="unknown_preset",
        )
    return PresetAgent(preset, model or None)
