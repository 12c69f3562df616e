"""Files beside the journal: evidence that outputs name, envelopes for other tools, what a project keeps across casts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final

from materia_nb.engine.entering import learned_from, turn_facts
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState, Visit
from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain, replace_file
from materia_nb.handoff.capabilities import NamesArtifacts, names
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk, json_bytes, locked
from materia_nb.store.rundir import RunDir

_LONGEST: Final = 1_000


def find_evidence(text: str, folders: Iterable[Path]) -> Path | None:
    """Return the file or folder that ``text`` names in the first of ``folders`` that holds it.

    Args:
        text: a path, relative to one of the folders or absolute.
        folders: where to look.

    Returns:
        The resolved path, links followed; None when there is nothing, or it lies outside of its folder.
    """
    if not text.strip() or len(text) > _LONGEST:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            found = (root / text.strip()).resolve()
            if found.is_relative_to(root) and found.exists():
                return found
        except (OSError, ValueError, RuntimeError):
            continue  # no path at all: a null character, a name too long, links in a circle
    return None


def missing_evidence(
    naming: NamesArtifacts, reading: Reading | None, project: Path, run_dir: Path
) -> list[str]:
    """Return the files that an accepted output says were made and that are not there (envelope rules, section 3).

    What lies outside of the project and the run directory is not looked at, unless it is named by an
    absolute path; addresses are no files.
    """
    if reading is None or not reading.accepted or not isinstance(reading.value, dict):
        return []
    named = dict.fromkeys(naming.artifacts(reading.value))
    return [text for text in named if text.strip() and not _is_there(text.strip(), project, run_dir)]


def _is_there(text: str, project: Path, run_dir: Path) -> bool:
    if "://" in text or find_evidence(text, (project, run_dir)) is not None:
        return True
    try:
        return Path(text).is_absolute() and Path(text).exists()
    except (OSError, ValueError):
        return False


def file_within(text: str, project: Path, run_dir: Path) -> str | None:
    """Return the path, relative to the project, of a file that ``text`` names in the project or the run directory.

    None when it is no file, or lies where no link from the project reaches.
    """
    found = find_evidence(text, (project, run_dir))
    root = project.resolve()
    if found is None or not found.is_file() or not found.is_relative_to(root):
        return None
    return found.relative_to(root).as_posix()


def keep_beside(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write what follows from the latest output for others: its envelope, and what it taught about the project.

    Args:
        run_dir: the cast's directory.
        rules: what the cast runs by.
        session: the cast with that output.
        visit: the visit that gave it.
        before: the state that it came in.

    Raises:
        MateriaError: a file cannot be written, or what is kept about the project is damaged.
    """
    keep_envelope(run_dir, rules, session, visit, before)
    reading = _reading_of(session, before)
    if session.state.knowledge is not before.knowledge and reading is not None:
        here = rules.sockets[visit.socket]
        change_context(
            run_dir.parent,
            lambda stored: learned_from(rules, here, before, reading.value, stored).knowledge,
        )


def _reading_of(session: Session, before: CastState) -> Reading | None:
    return session.steps[-1].reading or (before.hold.reading if before.hold else None)


def keep_envelope(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write the envelope of the latest output: as a draft until its socket is completed, then under its final name.

    Nothing is written where the protocol files none, or where there is no object in the output. The arguments are
    those of :func:`keep_beside`.
    """
    here = rules.sockets[visit.socket]
    reading = _reading_of(session, before)
    if here.filing is None or reading is None or not isinstance(reading.value, dict):
        return
    facts = turn_facts(rules, here, before, visit)
    ended, state = session.steps[-1].ended or 0, session.state
    timestamp = datetime.fromtimestamp(ended / 1000, UTC).isoformat(timespec="milliseconds")
    value = here.filing.filed(reading.value, {**facts.meta, "timestamp": timestamp})
    step = step_names(tuple(rules.sockets))[visit.socket]
    flow, agent = _safe(facts.meta["flow_key"]), _safe(facts.meta["agent_key"])
    final, draft = map(Path, names(str(run_dir), flow, step, agent))
    RunDir(run_dir).check_inside(draft.parent.relative_to(run_dir).as_posix())
    with disk(draft, "write the envelope"):
        draft.parent.mkdir(parents=True, exist_ok=True)
        replace_file(draft, json_bytes(value, indent=2))
        if state.at != visit or state.status in ("ready", "complete"):
            draft.replace(final)


@lru_cache(maxsize=8)
def step_names(sockets: tuple[str, ...]) -> Mapping[str, str]:
    """Return what each socket is called in a file name, where a hyphen would end it: no two the same.

    An id that can stand as it is stands so; in another one every such sign is written ``_``, and what
    would be another socket's name gets a number.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for socket in sorted(sockets, key=lambda one: _step(one) != one):
        wanted = _step(socket)
        more = (f"{wanted}_{number}" for number in count(2))
        name = wanted
        while name.casefold() in taken:
            name = next(more)
        found[socket] = name
        taken.add(name.casefold())  # some file systems do not tell A from a
    return found


def _step(socket: str) -> str:
    return _safe(socket).replace("-", "_")


def _safe(text: str) -> str:
    kept = "".join(
        char if char.isalnum() or char in "_-" else "_" for char in text.encode("ascii", "replace").decode()
    )
    return kept[:100] or "_"


CONTEXT_FILE: Final = "project-context.json"


def read_context(root: Path) -> dict[str, JSON]:
    """Return the document of a project, section by section; empty when there is none.

    Args:
        root: the directory that run directories are made in.

    Raises:
        MateriaError: it is not a JSON object (``bad_context``), or cannot be read.
    """
    path = root / CONTEXT_FILE
    with disk(path, "read what is kept about the project"):
        try:
            text = read_plain(path)
        except FileNotFoundError:
            return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MateriaError(
            "What is kept about the project is no JSON object.",
            where=str(path),
            hint="mend the file, or move it away to begin anew",
            kind="bad_context",
        )
    return found


def change_context(root: Path, change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]]) -> None:
    """Read the document, change it and write it, as one transaction among all processes.

    Raises:
        MateriaError: as :func:`read_context`, or it cannot be written; then it is as it was.
    """
    path = root / CONTEXT_FILE
    with locked(path.with_suffix(".lock"), "lock what is kept about the project"):
        before = read_context(root)
        after = change(before)
        if after != before:
            with disk(path, "write what is kept about the project"):
                replace_file(path, json_bytes(dict(after), indent=2))
