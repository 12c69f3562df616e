"""What is here and works: software, keys, programs, folders, config, and who answers. Nothing goes over the network."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal, TypeAlias

from materia_nb.agents.command_agent import COMMAND_PREFIX, PRESETS
from materia_nb.agents.interface import Agent, TellsReadiness, name_of
from materia_nb.agents.notebook_agents import PersonAgent
from materia_nb.agents.tools import MoreTools, choose_tools
from materia_nb.agents.tools.more_tools import is_known
from materia_nb.cast.library import utility_folders
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Table
from materia_nb.display.text import WIDTH, table
from materia_nb.errors import MateriaError, counted
from materia_nb.loadout.graph import Graph, Materia, Socket
from materia_nb.loadout.layers import Layer, pi_profile_directory, profile_directory
from materia_nb.platform import PROCESSES, THREADS, Stop
from materia_nb.utilities import utility_step
from materia_nb.utilities.process import ProcessResult, run_process, summarize

__all__ = ["Checkup", "Finding", "Status", "checkup"]


Status: TypeAlias = Literal["ok", "missing", "hint", "optional"]
"""``missing``: something is not there that is needed; ``hint``: it is there, and yet something should be known;
``optional``: it is not there, and only some want it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        area: what it belongs to: software, keys, programs, folders, scripts, config, agents.
        what: its name.
        status: how it stands.
        found: what was found, in a few words.
        todo: what to do about it; empty when nothing is to be done.
    """

    area: str
    what: str
    status: Status
    found: str
    todo: str = ""


_PROVIDERS: Final = "ANTHROPIC DEEPSEEK GEMINI GOOGLE GROQ MISTRAL OPENAI OPENROUTER"
KEYS: Final = tuple(f"{one}_API_KEY" for one in _PROVIDERS.split())
"""Environment variables that hold the keys of model providers; others that end in ``_API_KEY`` are told when set."""

VERSION_TIMEOUT_S: Final = 10.0
"""How long a program may take to say its version, in seconds."""

_LAB: Final = 'pip install "materia-nb[lab]"'
_PACKAGES: Final = (
    ("materia-nb", "pip install materia-nb"),
    ("ipykernel", _LAB),
    ("jupyterlab", f"{_LAB}, unless JupyterLab runs from another environment"),
    ("ipywidgets", "pip install ipywidgets"),
    ("ipycytoscape", "pip install ipycytoscape"),
    ("anywidget", "pip install anywidget"),
    ("pydantic-ai-slim", 'for language models: pip install "materia-nb[models]"'),
)
_OPTIONAL: Final = frozenset({"ipykernel", "jupyterlab", "pydantic-ai-slim"})
_VERSION_CONTROL: Final = (
    ("git", "install git; some loadouts commit with it or with jj"),
    ("jj", "install Jujutsu (jj), where loadouts are to use it"),
)
_SHOWN: Final = 60


def packages() -> Iterator[Finding]:
    """Look for Python and the packages that matter in a notebook, with their versions."""
    yield Finding("software", "Python", "ok", platform.python_version())
    for name, todo in _PACKAGES:
        try:
            yield Finding("software", name, "ok", version(name))
        except PackageNotFoundError:
            status: Status = "optional" if name in _OPTIONAL else "missing"
            yield Finding("software", name, status, "not installed", todo)


def keys(environment: Mapping[str, str]) -> Finding:
    """Tell which keys of model providers are set, by name; a value is never looked at but for being empty."""
    known = [name for name in environment if name in KEYS or name.endswith("_API_KEY")]
    present = sorted(name for name in known if environment[name].strip())
    if present:
        return Finding("keys", "in the environment", "ok", f"set: {', '.join(present)}")
    todo = f"for models of a provider, set its key where Jupyter is started: {', '.join(KEYS)}"
    return Finding("keys", "in the environment", "hint", "none is set", todo)


def programs(project: Path) -> list[Finding]:
    """Look for version control and for the programs of the command presets, and ask those that are there for their versions.

    They are asked at the same time, each for at most :data:`VERSION_TIMEOUT_S` seconds.

    Raises:
        KeyboardInterrupt: interrupted; no program is left running.
    """
    asked: list[tuple[str, str, Sequence[str], str]] = [
        ("version control", name, (name, "--version"), todo) for name, todo in _VERSION_CONTROL
    ]
    asked += [
        ("agents' programs", f"{COMMAND_PREFIX}{one.name}", one.version, f"{one.about}, by {one.project}")
        for one in PRESETS.values()
    ]
    stop = Stop()
    if not (THREADS and PROCESSES):
        return [_program(area, what, None, todo) for area, what, _, todo in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        running = [pool.submit(_version, argv, project, stop) for _, _, argv, _ in asked]
        try:
            results = [one.result() for one in running]
        finally:
            stop.set()
    return [_program(area, what, result, todo) for (area, what, _, todo), result in zip(asked, results, strict=True)]


def _version(argv: Sequence[str], project: Path, stop: threading.Event) -> ProcessResult | None:
    program = shutil.which(argv[0])
    if program is None:
        return None
    given, most = [program, *argv[1:]], 10_000
    return run_process(given, stdin=b"", cwd=project, timeout_s=VERSION_TIMEOUT_S, keep_bytes=most, stop=stop)


def _program(area: str, what: str, result: ProcessResult | None, todo: str) -> Finding:
    if result is None:
        return Finding(area, what, "optional", "not installed", todo)
    if result.ok:
        return Finding(area, what, "ok", _told(result))
    why = result.start_error or f"asked for its version it ended with {result.ending}"
    if result.timed_out:
        why = f"it did not say its version within {VERSION_TIMEOUT_S:g} s"
    found = summarize(f"there, but {why}", 2 * _SHOWN)
    return Finding(area, what, "hint", found, f"try {result.argv[0]} in a terminal")


def _told(result: ProcessResult) -> str:
    """The line with the version; some programs write warnings in front of it."""
    lines = [line for line in result.stdout.decode(errors="replace").splitlines() if line.strip()]
    lines = lines or result.stderr.decode(errors="replace").splitlines() or [""]
    line = next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])
    return summarize(line, _SHOWN) or "installed"


def folders(named: Iterable[tuple[str, Path]]) -> Iterator[Finding]:
    """Try whether folders can be written; one that is not there yet is tried where it would be made."""
    for what, folder in named:
        there = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
        try:
            with tempfile.TemporaryFile(dir=there):
                made = "" if there == folder else ", made when it is first used"
                yield Finding("folders", what, "ok", f"{folder}{made}")
        except OSError as error:
            found = f"{folder} cannot be written: {error.strerror or error}"
            yield Finding("folders", what, "missing", found, f"look at {there}")


def shipped(folders: Iterable[Path], pi_profile: Path | None) -> Iterator[Finding]:
    """Tell how the profile's copies of the shipped utility scripts stand, and what a Pi profile has."""
    todo = {
        "changed": "it is run as it is; remove it to get the shipped one",
        "of another version": "the next load of a loadout that uses it replaces it",
        "set aside": "it is not run: the new one beside it is; change that one, and remove this",
    }
    for copy in (copy for folder in folders for copy in utility_step.copies(folder)):
        fine, found = copy.status in ("as shipped", "not there"), f"{copy.status}: {copy.path}"
        said = "" if fine else todo.get(copy.status, "")
        yield Finding("scripts", copy.script, "ok" if fine else "hint", found, said)
    if pi_profile is not None and (foreign := utility_step.foreign_scripts(pi_profile)):
        found = f"{len(foreign)} scripts for Node, which are not run here: {', '.join(foreign)}"
        yield Finding("scripts", "Pi profile", "ok", summarize(found, 200))


def config(wb: Workbench) -> Iterator[Finding]:
    """Look at the layers of the config and at the chosen loadout with its agents."""
    try:
        layers, name = wb.loadouts.config.layers, wb.loadouts.chosen
    except MateriaError as error:
        yield Finding("config", "the layers", "missing", error.what, error.hint or "")
        return
    yield from (_layer(layer) for layer in layers)
    if name is None:
        todo = "load FILE, or define one in a cell"
        yield Finding("config", "the loadout", "missing", "there is none", todo)
        return
    try:
        graph = wb.graph()
    except MateriaError as error:
        todo = "%materia check shows what is wrong"
        yield Finding("config", f"loadout {name}", "missing", error.what, todo)
        return
    hints = len(wb.check(name).hints)
    found = counted(len(graph.sockets), "socket") + (f", {counted(hints, 'hint')}" if hints else "")
    yield Finding("config", f"loadout {name}", "ok", found, "%materia check shows the hints" if hints else "")
    yield from agents(wb, graph)


def _layer(layer: Layer) -> Finding:
    if (fault := layer.fault) is not None:
        return Finding("config", str(layer), "missing", f"left out: {fault.what}", fault.hint or "")
    found = f"{counted(len(layer.loadouts), 'loadout')}, {len(layer.materia)} materia"
    return Finding("config", str(layer), "ok", found)


def agents(wb: Workbench, graph: Graph) -> Iterator[Finding]:
    """Say for each agent of a loadout who answers, and what speaks against it."""
    for socket in graph.sockets.values():
        if not socket.is_utility:
            more = MoreTools(wb.agents.tools, graph.mcp_servers)
            yield _agent(socket, wb.agents.for_turn(socket.id, socket.materia.id), wb.project, more)


def _agent(socket: Socket, agent: Agent, project: Path, more: MoreTools) -> Finding:
    materia = socket.materia
    what, who = f"{socket.id} ({materia.label})", f"answered by {name_of(agent)}"
    trouble = agent.not_ready(materia.model, project) if isinstance(agent, TellsReadiness) else None
    if trouble is not None:
        return Finding("agents", what, "missing", f"{who}: {trouble.what}", trouble.hint or "")
    if isinstance(agent, PersonAgent) and materia.model is not None:
        todo = f"to let a model or a program answer: %materia agent {_named(materia)} WHO"
        return Finding("agents", what, "hint", f"{who}, though it asks for the model {materia.model}", todo)
    if unknown := [name for name in choose_tools(materia.tools)[1] if not is_known(name, more)]:
        todo = "there are no such tools; a model that answers does without"
        return Finding("agents", what, "hint", f"{who}; unknown tools: {', '.join(unknown)}", todo)
    return Finding("agents", what, "ok", who)


def _named(materia: Materia) -> str:
    return f'"{materia.id}"' if " " in materia.id else materia.id


_HEADERS = ("", "about", "what", "found", "what to do")


class Checkup(Table):
    """The findings as a table, all that is optional and not there in one row; ``findings`` are the values to work with."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        self._shown = [one for one in findings if one.status != "optional"]
        if absent := [one for one in findings if one.status == "optional"]:
            self._shown.append(_together(absent))
        super().__init__(_HEADERS, [(f.status, f.area, f.what, f.found, f.todo) for f in self._shown])

    def as_text(self, width: int = WIDTH) -> str:
        """Write the table with what is to be done below it, since advice is long."""
        rows = [row[:-1] for row in self.rows]
        advice = [f"{f.what}: {f.todo}" for f in self._shown if f.todo]
        return "\n".join([table(rows, self.headers[:-1], width=width), *(["", *advice] if advice else [])])


def _together(absent: Sequence[Finding]) -> Finding:
    """One finding of those that are not there and that only some want."""
    names = ", ".join(one.what for one in absent)
    todo = (
        "nothing, unless you want one: git and jj are for loadouts that commit, the others answer as agents "
        '(%materia help agent; pip install "materia-nb[models]" for language models)'
    )
    return Finding("more", "not installed", "optional", names, todo)


def checkup(wb: Workbench) -> Checkup:
    """Look at everything that a cast from this workbench needs.

    Args:
        wb: whose project, config and agents are looked at; nothing of it is changed.

    Raises:
        KeyboardInterrupt: interrupted; no program is left running.
    """
    return Checkup([
        *packages(),
        keys(os.environ),
        *programs(wb.project),
        *folders(_folders(wb)),
        *shipped(utility_folders(), pi_profile_directory(os.environ)),
        *config(wb),
    ])  # fmt: skip


def _folders(wb: Workbench) -> list[tuple[str, Path]]:
    profile = profile_directory(os.environ)
    found = [] if profile is None else [("the user's profile", profile)]
    with contextlib.suppress(MateriaError):  # a config that cannot be read is told as such
        found.append(("run directories", wb.casts.root))
    return found
