"""Check the packages, keys, programs, folders, config and agents that a cast needs, without network access."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal, TypeAlias

from materia_nb.agents.command_agent import COMMAND_PREFIX, PRESETS
from materia_nb.agents.interface import Agent, name_of, readiness_problem
from materia_nb.agents.notebook_agents import PersonAgent
from materia_nb.agents.tools import MoreTools, choose_tools
from materia_nb.agents.tools.more_tools import is_known_tool
from materia_nb.cast.library import utility_folders
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Table
from materia_nb.display.text import WIDTH, table
from materia_nb.errors import MateriaError, counted
from materia_nb.loadout.graph import Graph, Socket
from materia_nb.loadout.layers import profile_directory
from materia_nb.platform import CAN_START_PROCESSES, CAN_START_THREADS, Stop
from materia_nb.utilities import utility_step
from materia_nb.utilities.process import Capture, ProcessResult, run_process, summarize

__all__ = ["Checkup", "Finding", "Status", "checkup"]


Status: TypeAlias = Literal["ok", "missing", "hint", "optional"]
"""``ok``; ``missing``: a required part is unavailable; ``hint``: a part is limited; ``optional``: not installed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the checkup table.

    Attributes:
        area: the area of the check: software, keys, version control, agents' programs, folders, scripts, config or
            agents.
        name: the name of the checked part.
        status: the status of the part.
        details: the version, the location, or a short description of the problem.
        advice: instructions for fixing the problem, or "" if nothing needs to be fixed.
    """

    area: str
    name: str
    status: Status
    details: str
    advice: str = ""


API_KEY_VARIABLES: Final = tuple(
    f"{provider}_API_KEY"
    for provider in ("ANTHROPIC", "DEEPSEEK", "GEMINI", "GOOGLE", "GROQ", "MISTRAL", "OPENAI", "OPENROUTER")
)
"""Environment variables that the checkup suggests for API keys; it lists every ``*_API_KEY`` that is set."""
VERSION_TIMEOUT_S: Final = 10.0
"""Time limit for a program to print its version, in seconds."""

_MAX_VERSION_BYTES: Final = 10_000
_MAX_VERSION_CHARS: Final = 60
_INSTALL_LAB: Final = 'pip install "materia-nb[lab]"'
_PACKAGES: Final = (
    ("materia-nb", "pip install materia-nb"),
    ("ipykernel", _INSTALL_LAB),
    ("jupyterlab", f"{_INSTALL_LAB}, unless JupyterLab runs from another environment"),
    ("ipywidgets", "pip install ipywidgets"),
    ("ipycytoscape", "pip install ipycytoscape"),
    ("anywidget", "pip install anywidget"),
    ("pydantic-ai-slim", 'for language models: pip install "materia-nb[models]"'),
)
_EXTRAS: Final = frozenset({"ipykernel", "jupyterlab", "pydantic-ai-slim"})
_PROGRAMS: Final = (
    ("version control", "git", "git", "install git; some loadouts commit with git or with jj", ""),
    ("version control", "jj", "jj", "install Jujutsu (jj) if your loadouts use it", ""),
    *(
        ("agents' programs", f"{COMMAND_PREFIX}{preset.name}", preset.argv[0], preset.about, preset.tested)
        for preset in PRESETS.values()
    ),
)  # The optional programs: area, name, program, advice, and the tested version or "".


def check_packages() -> Iterator[Finding]:
    """Yield a finding with the version of Python and of each package that a notebook needs."""
    yield Finding("software", "Python", "ok", platform.python_version())
    for name, advice in _PACKAGES:
        try:
            yield Finding("software", name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding("software", name, "optional" if name in _EXTRAS else "missing", "not installed", advice)


def check_keys(environment: Mapping[str, str]) -> Finding:
    """Return a finding with the names of the ``*_API_KEY`` environment variables that are set and not blank."""
    names = sorted(name for name, value in environment.items() if name.endswith("_API_KEY") and value.strip())
    if names:
        return Finding("keys", "in the environment", "ok", f"set: {', '.join(names)}")
    advice = f"to use a provider's models, set its API key in Jupyter's environment: {', '.join(API_KEY_VARIABLES)}"
    return Finding("keys", "in the environment", "hint", "no key is set", advice)


def check_programs(project: Path) -> list[Finding]:
    """Return findings with the versions of git, jj and the programs of the command presets, run in parallel.

    Raises:
        KeyboardInterrupt: the checkup was interrupted; all programs that it started have been ended.
    """
    results: list[ProcessResult | None] = [None] * len(_PROGRAMS)
    if CAN_START_THREADS and CAN_START_PROCESSES:
        stop = Stop()
        with ThreadPoolExecutor(len(_PROGRAMS)) as pool:
            try:
                results = list(pool.map(lambda row: _run_version(row[2], project, stop), _PROGRAMS))
            finally:
                stop.set()
    return [
        _program_finding(area, name, result, advice, tested)
        for (area, name, _, advice, tested), result in zip(_PROGRAMS, results, strict=True)
    ]


def _run_version(program: str, project: Path, stop: Stop) -> ProcessResult | None:
    path = shutil.which(program)
    if path is None:
        return None
    command, limit = [path, "--version"], VERSION_TIMEOUT_S
    return run_process(command, stdin=b"", cwd=project, timeout_s=limit, capture=Capture(_MAX_VERSION_BYTES), stop=stop)


def _program_finding(area: str, name: str, result: ProcessResult | None, advice: str, tested: str) -> Finding:
    if result is None:
        return Finding(area, name, "optional", "not installed", advice)
    if result.ok:
        line = _version_line(result)
        installed, known = _version_numbers(line), _version_numbers(tested)
        if known and installed > known:
            warning = f"the preset was tested with {tested}; check the first answers and their usage"
            return Finding(area, name, "hint", f"{line}, newer than the tested version", warning)
        return Finding(area, name, "ok", f"{line}, the tested version" if known and installed == known else line)
    problem = result.start_error or f"its version command failed ({result.ending})"
    if result.timed_out:
        problem = f"it did not print its version within {VERSION_TIMEOUT_S:g} s"
    details = summarize(f"installed, but {problem}", 2 * _MAX_VERSION_CHARS)
    return Finding(area, name, "hint", details, f"try {result.argv[0]} in a terminal")


def _version_line(result: ProcessResult) -> str:
    """Return the first output line that contains a version number, since some programs print warnings first."""
    lines = [line for line in result.stdout.decode(errors="replace").splitlines() if line.strip()]
    lines = lines or result.stderr.decode(errors="replace").splitlines() or [""]
    line = next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])
    return summarize(line, _MAX_VERSION_CHARS) or "installed"


def _version_numbers(text: str) -> list[int]:
    match = re.search(r"\d+(\.\d+)+", text)
    return list(map(int, match[0].split("."))) if match else []


def check_folders(folder_by_name: Iterable[tuple[str, Path]]) -> Iterator[Finding]:
    """Yield a finding about write access to each folder or, if it does not exist, to its nearest existing parent."""
    for name, folder in folder_by_name:
        existing = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
        try:
            with tempfile.TemporaryFile(dir=existing):
                suffix = "" if existing == folder else ", created when it is first used"
                yield Finding("folders", name, "ok", f"{folder}{suffix}")
        except OSError as error:
            problem = f"{folder} cannot be written: {error.strerror or error}"
            yield Finding("folders", name, "missing", problem, f"check the permissions of {existing}")


_SCRIPT_ADVICE: Final = {
    "changed": "the changed script runs; remove the file to use the shipped script",
    "of another version": "the file is replaced when a loadout that uses it is next loaded",
    "set aside": "the new script next to it runs instead; move your changes there, and remove this file",
}


def check_scripts(folders: Iterable[Path]) -> Iterator[Finding]:
    """Yield a finding about each copy of a shipped utility script in the profile."""
    for copy in (copy for folder in folders for copy in utility_step.list_copies(folder)):
        advice = _SCRIPT_ADVICE.get(copy.status, "")
        yield Finding("scripts", copy.script, "hint" if advice else "ok", f"{copy.status}: {copy.path}", advice)


def check_loadout_config(wb: Workbench) -> Iterator[Finding]:
    """Yield findings about the config layers, the selected loadout and its agents."""
    try:
        layers, name = wb.loadouts.config.layers, wb.loadouts.chosen
    except MateriaError as error:
        yield Finding("config", "the layers", "missing", error.what, error.hint or "")
        return
    for layer in layers:
        if layer.fault is not None:
            yield Finding("config", str(layer), "missing", f"ignored: {layer.fault.what}", layer.fault.hint or "")
        else:
            details = f"{counted(len(layer.loadouts), 'loadout')}, {len(layer.materia)} materia"
            yield Finding("config", str(layer), "ok", details)
    if name is None:
        advice = "use `%materia use NAME` to choose a loadout, or `%materia load FILE` to load a file"
        yield Finding("config", "the loadout", "missing", "no loadout is chosen", advice)
        return
    try:
        graph = wb.graph()
    except MateriaError as error:
        yield Finding("config", f"loadout {name}", "missing", error.what, "use `%materia check` to list the problems")
        return
    hints = len(wb.check(name).hints)
    details = counted(len(graph.sockets), "socket") + (f", {counted(hints, 'hint')}" if hints else "")
    yield Finding("config", f"loadout {name}", "ok", details, "use `%materia check` to list the hints" if hints else "")
    yield from check_agents(wb, graph)


def check_agents(wb: Workbench, graph: Graph) -> Iterator[Finding]:
    """Yield a finding about the agent of each socket, with the reason if this agent would fail."""
    tools = MoreTools(wb.agents.tools, graph.mcp_servers)
    for socket in graph.sockets.values():
        if not socket.is_utility:
            yield _agent_finding(socket, wb.agents.for_turn(socket.id, socket.materia.id), wb.project, tools)


def _agent_finding(socket: Socket, agent: Agent, project: Path, tools: MoreTools) -> Finding:
    materia = socket.materia
    name, details = f"{socket.id} ({materia.label})", f"answered by {name_of(agent)}"
    problem = readiness_problem(agent, materia.model, project)
    if problem is not None:
        return Finding("agents", name, "missing", f"{details}: {problem.what}", problem.hint or "")
    if isinstance(agent, PersonAgent) and materia.model is not None:
        materia_name = f'"{materia.id}"' if " " in materia.id else materia.id
        advice = f"use `%materia agent {materia_name} WHO` to let a model or a program answer"
        return Finding("agents", name, "hint", f"{details}, but the materia names model {materia.model}", advice)
    if unknown := [tool for tool in choose_tools(materia.tools)[1] if not is_known_tool(tool, tools)]:
        advice = "correct the names in `tools` of the materia; a model cannot use unknown tools"
        return Finding("agents", name, "hint", f"{details}; unknown tools: {', '.join(unknown)}", advice)
    return Finding("agents", name, "ok", details)


_HEADERS: Final = ("", "about", "part", "status", "what to do")


class Checkup(Table):
    """A table of all findings. Optional parts that are not installed share one row."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        self._shown = [finding for finding in findings if finding.status != "optional"]
        if names := ", ".join(finding.name for finding in findings if finding.status == "optional"):
            self._shown.append(Finding("more", "not installed", "optional", names, _OPTIONAL_ADVICE))
        super().__init__(_HEADERS, [(f.status, f.area, f.name, f.details, f.advice) for f in self._shown])

    def as_text(self, width: int = WIDTH) -> str:
        """Return the table as text, followed by the advice, which is too long for a table column."""
        rows = [row[:-1] for row in self.rows]
        advice = [f"{finding.name}: {finding.advice}" for finding in self._shown if finding.advice]
        return "\n".join([table(rows, self.headers[:-1], width=width), *(["", *advice] if advice else [])])


_OPTIONAL_ADVICE: Final = (
    "optional: git and jj are for loadouts that commit; the other programs can answer as agents "
    '(%materia help agent; pip install "materia-nb[models]" for language models)'
)


def checkup(wb: Workbench) -> Checkup:
    """Check everything that a cast of this workbench may need, without changing anything.

    Raises:
        KeyboardInterrupt: the checkup was interrupted; all programs that it started have been ended.
    """
    named_folders = []
    if (profile := profile_directory(os.environ)) is not None:
        named_folders.append(("the user's profile", profile))
    with contextlib.suppress(MateriaError):  # the findings on the config contain the error
        named_folders.append(("run directories", wb.casts.root))
    return Checkup(
        [
            *check_packages(),
            check_keys(os.environ),
            *check_programs(wb.project),
            *check_folders(named_folders),
            *check_scripts(utility_folders()),
            *check_loadout_config(wb),
        ]
    )
