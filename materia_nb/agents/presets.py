"""Coding agents and other programs that are known by name: how each is run, and how its stdout is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from materia_nb.agents.command_agent import CommandAgent, JsonOutput, ReadsStdout, read_aider
from materia_nb.agents.interface import TIMEOUT_S, AgentError, Turn
from materia_nb.errors import did_you_mean
from materia_nb.file_io import read_own_table, replace_file
from materia_nb.jsonvalue import compact, thawed

COMMAND_PREFIX: Final = "command:"
"""What the name of a preset begins with where agents are set: ``command:claude``."""

_MODEL: Final = "{model}"
_SCHEMA_FILE: Final = "{schema_file}"
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}")


@dataclass(frozen=True, slots=True)
class Preset:
    """One program, as ``presets.toml`` describes it.

    Attributes:
        name: its name behind ``command:``.
        about: what it is, in a few words.
        project: whose it is, to find it by.
        argv: the program and its arguments in the mode that reads stdin, answers on stdout and ends;
            ``model`` goes in front of the last ``trailing`` of them.
        model: the arguments that choose a model, where ``{model}`` stands for its name.
        trailing: how many arguments must stay behind all others.
        needs_model: whether it cannot run without a model.
        reads: how its stdout is read; None for plain text.
        looking: arguments with which it changes nothing, for agents whose ``tools`` do not let them.
        changing: those with which it may change files, for ``tools`` that let them.
        schema: the arguments that hand over the JSON Schema of the answer, where ``{schema}`` stands for it, or ``{schema_file}``
            for a file that holds it.
        resume: the arguments that go on from an earlier answer without changing what was said there, where ``{session}`` stands
            for its session.
    """

    name: str
    about: str
    project: str
    argv: tuple[str, ...]
    model: tuple[str, ...] = ("--model", _MODEL)
    trailing: int = 0
    needs_model: bool = False
    reads: ReadsStdout | None = None
    looking: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()

    @property
    def version(self) -> tuple[str, ...]:
        """How the program is asked for its version; it answers without a network."""
        return (self.argv[0], "--version")

    def command(self, model: str | None, *more: str) -> tuple[str, ...]:
        """Return the command for a model, or for the program's own choice, with ``more`` arguments.

        Raises:
            AgentError: it needs a model (``no_model``), or the text cannot be a model's name (``bad_model``).
        """
        if model is None and self.needs_model:
            raise AgentError(
                f"{COMMAND_PREFIX}{self.name} needs a model, and none is given",
                hint=f"write {COMMAND_PREFIX}{self.name}:MODEL, or model in the materia",
                kind="no_model",
            )
        # The name may come from a loadout of someone else: it must not be read as an option.
        if model is not None and not _MODEL_NAME.fullmatch(model):
            raise AgentError(
                f"{model[:80]!r} is not the name of a model",
                hint="a name begins with a letter or digit and has no blanks",
                kind="bad_model",
            )
        at = len(self.argv) - self.trailing
        chosen = tuple(part.replace(_MODEL, model) for part in self.model) if model else ()
        return (*self.argv[:at], *chosen, *more, *self.argv[at:])

    def for_turn(self, turn: Turn, model: str | None, session: str) -> tuple[str, ...]:
        """Return the command for a turn: its tools, its schema, and the session in which it goes on."""
        changes = turn.tools == "coding" or bool({"edit", "write", "bash"}.intersection(_names(turn.tools)))
        more = list(self.changing if changes else self.looking)
        if turn.schema is not None:
            more += (part.replace("{schema}", compact(thawed(turn.schema))) for part in self.schema)
        if session:
            more += (part.replace("{session}", session) for part in self.resume)
        return self.command(model, *more)


def _names(tools: str | tuple[str, ...]) -> tuple[str, ...]:
    return (tools,) if isinstance(tools, str) else tools


def _preset(name: str, given: Mapping[str, Any]) -> Preset:
    facts = _in_tuples(given)
    reads = facts.get("reads")
    if reads is not None:
        facts["reads"] = _READERS[reads] if isinstance(reads, str) else JsonOutput(**reads)
    return Preset(name, **facts)


def _in_tuples(given: Any) -> Any:
    if isinstance(given, dict):
        return {key: _in_tuples(one) for key, one in given.items()}
    return tuple(given) if isinstance(given, list) else given


_READERS: Final[Mapping[str, ReadsStdout]] = {"aider": read_aider}
"""What reads stdout that is no JSON, by the names that the table has for it."""
_TABLE: Final = read_own_table(__file__, "presets.toml")
PRESETS: Final[Mapping[str, Preset]] = {name: _preset(name, given) for name, given in _TABLE.items()}
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
        name = f"{COMMAND_PREFIX}{preset.name}" + (f":{model}" if model else "")
        super().__init__(preset.command(model) if model else preset.argv, timeout_s, name=name)
        self.preset, self.model = preset, model
        self.reads = preset.reads

    def command(self, turn: Turn) -> tuple[str, ...]:
        """Return the command for a turn: its model, its tools, and what else the program takes."""
        return self.preset.for_turn(turn, self.model or turn.model, self.goes_on_in(turn))

    @contextmanager
    def called(self, turn: Turn) -> Iterator[tuple[str, ...]]:
        """Give the command for a turn; the file that holds its schema is there for as long as it runs."""
        argv = self.command(turn)
        if _SCHEMA_FILE not in argv:
            yield argv
            return
        with TemporaryDirectory() as folder:
            path = Path(folder) / "schema.json"
            replace_file(path, compact(thawed(turn.schema)).encode())
            yield tuple(str(path) if part == _SCHEMA_FILE else part for part in argv)

    def price_names(self, model: str | None) -> tuple[str, ...]:
        """Return by what a config may have its price: with its model, or without."""
        name, wanted = f"{COMMAND_PREFIX}{self.preset.name}", self.model or model
        return (f"{name}:{wanted}", name) if wanted else (name,)

    def goes_on_in(self, turn: Turn) -> str:
        """Return the session of the answer before in the same conversation, if the program can go on from there."""
        return super().goes_on_in(turn) if self.preset.resume else ""

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
    name, _, model = text.removeprefix(COMMAND_PREFIX).partition(":")
    preset = PRESETS.get(name)
    if preset is None:
        raise AgentError(
            f"There is no command preset {name!r}; there are {', '.join(PRESETS)}",
            hint=f"{did_you_mean(name, PRESETS)}; for any other program: command my-agent --print, in Python ['my-agent', '--print']",
            kind="unknown_preset",
        )
    return PresetAgent(preset, model or None)
