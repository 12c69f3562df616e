"""Known coding-agent programs as data: how each takes a prompt on stdin, and how it is told which model to use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from materia_nb.agents.base import AgentError, Turn
from materia_nb.agents.command_agent import CommandAgent
from materia_nb.errors import did_you_mean

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
            ("ollama", "run"),
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

    def __init__(self, preset: Preset, model: str | None = None, timeout_s: float | None = 600) -> None:
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
