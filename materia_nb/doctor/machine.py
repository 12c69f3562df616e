"""What is installed here: Python and its packages, keys in the environment, programs, folders that can be written."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from materia_nb.agents.presets import PREFIX, PRESETS
from materia_nb.doctor.findings import Finding, Status
from materia_nb.interrupts import Stop
from materia_nb.utilities import scripts
from materia_nb.utilities.process import ProcessResult, run_process, summarize

KEYS: Final = (
    "ANTHROPIC_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
)
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
    ("pydantic-ai-slim", 'for language models: pip install "materia-nb[models]"'),
)
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
            yield Finding("software", name, "missing", "not installed", todo)


def keys(environment: Mapping[str, str]) -> Finding:
    """Tell which keys of model providers are set, by name; a value is never looked at but for being empty."""
    known = [name for name in environment if name in KEYS or name.endswith("_API_KEY")]
    present = sorted(name for name in known if environment[name].strip())
    if present:
        return Finding("keys", "in the environment", "ok", f"set: {', '.join(present)}")
    return Finding(
        "keys",
        "in the environment",
        "hint",
        "none is set",
        f"for models of a provider, set its key where Jupyter is started: {', '.join(KEYS)}",
    )


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
        (
            "agents' programs",
            f"{PREFIX}{preset.name}",
            preset.version,
            f"if you want it: {preset.about}, by {preset.project}",
        )
        for preset in PRESETS.values()
    ]
    stop = Stop()
    with ThreadPoolExecutor(len(asked)) as pool:
        running = [pool.submit(_version, argv, project, stop) for _, _, argv, _ in asked]
        try:
            results = [one.result() for one in running]
        finally:
            stop.set()
    return [
        _program(area, what, result, todo)
        for (area, what, _, todo), result in zip(asked, results, strict=True)
    ]


def _version(argv: Sequence[str], project: Path, stop: threading.Event) -> ProcessResult | None:
    program = shutil.which(argv[0])
    if program is None:
        return None
    return run_process(
        [program, *argv[1:]],
        stdin=b"",
        cwd=project,
        timeout_s=VERSION_TIMEOUT_S,
        keep_bytes=10_000,
        stop=stop,
    )


def _program(area: str, what: str, result: ProcessResult | None, todo: str) -> Finding:
    if result is None:
        return Finding(area, what, "missing", "not installed", todo)
    if result.ok:
        return Finding(area, what, "ok", _told(result))
    if not result.started:
        why = result.start_error or "it could not be started"
    elif result.timed_out:
        why = f"it did not say its version within {VERSION_TIMEOUT_S:g} s"
    else:
        why = f"asked for its version it ended with {result.ending}"
    return Finding(
        area, what, "hint", summarize(f"there, but {why}", 2 * _SHOWN), f"try {result.argv[0]} in a terminal"
    )


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
            why = error.strerror or str(error)
            yield Finding(
                "folders", what, "missing", f"{folder} cannot be written: {why}", f"look at {there}"
            )


def shipped(folder: Path, pi_profile: Path | None) -> Iterator[Finding]:
    """Tell how the profile's copies of the shipped utility scripts stand, and what a Pi profile has."""
    todo = {
        "changed": "it is run as it is; remove it to get the shipped one",
        "of another version": "the next load of a loadout that uses it replaces it",
        "not there": "the first load of a loadout that uses it makes the copy",
    }
    for copy in scripts.copies(folder):
        status: Status = "ok" if copy.stands in ("as shipped", "not there") else "hint"
        found = f"{copy.stands}: {copy.path}"
        yield Finding(
            "scripts", copy.script, status, found, todo.get(copy.stands, "") if status != "ok" else ""
        )
    if pi_profile is not None and (foreign := scripts.foreign_scripts(pi_profile)):
        found = f"{len(foreign)} scripts for Node, which are not run here: {', '.join(foreign)}"
        yield Finding("scripts", "Pi profile", "ok", summarize(found, 200))
