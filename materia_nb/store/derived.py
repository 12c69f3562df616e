"""Files that follow from the journal: prompts, parsed outputs, manifest and usage, written beside the way of the steps (R29, R30, R43)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from materia_nb.engine.routing import short
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import Session, StepRecord, branch_suffix, context_name, output_name
from materia_nb.engine.state import Usage
from materia_nb.jsonvalue import JSON
from materia_nb.platform import Handle, call_later
from materia_nb.store.files import DiskError, json_bytes
from materia_nb.store.rundir import RunDir

_SOON_S: Final = 0.5
_AT_ONCE: Final = 500
"""How many entries of a manifest are written at once."""


class ArtifactWriter:
    """Writes the artifacts of one cast: all when it pauses, those of finished steps soon after them.

    A session is a frozen value, so a thread of its own can write what follows from it while the cast goes on.
    """

    def __init__(self, files: RunDir, rules: Rules) -> None:
        self._files, self._rules = files, rules
        self._lock = threading.Lock()
        self._since = 0
        self._session: Session | None = None
        self._timer: Handle | None = None

    def soon(self, session: Session) -> None:
        """Write the steps of ``session`` within a second."""
        self._session = session
        if self._timer is None:
            self._timer = call_later(_SOON_S, self._write_steps)

    def now(self, session: Session) -> None:
        """Write everything that follows from ``session``, manifest and usage too."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        with self._lock:
            self._since = write(self._files, self._rules, session, self._since)

    def _write_steps(self) -> None:
        self._timer, session = None, self._session
        if session is not None:
            # A disk that refuses is told when the cast pauses, and everything is written then.
            with self._lock, suppress(DiskError):
                self._since = write_steps(self._files, self._rules, session.steps, self._since)

    def stop(self) -> None:
        """Write nothing more."""
        if self._timer is not None:
            self._timer.cancel()


def write(files: RunDir, rules: Rules, session: Session, since: int) -> int:
    """Write the files of the steps from index ``since`` on, then manifest and usage.

    Returns the index to go on from: that of the first step that may still change.
    """
    since = write_steps(files, rules, session.steps, since)
    files.replace("manifest.json", manifest(files.path.name, rules, session, files.journal_bytes()))
    files.replace_json("usage.json", usage_report(rules, session))
    return since


def write_steps(files: RunDir, rules: Rules, steps: Sequence[StepRecord], since: int) -> int:
    """Write the files of the steps from index ``since`` on; returns the index to go on from."""
    for step in steps[since:]:
        _write_step(files, rules, step)
    return max(len(steps) - 1, 0)


def is_current(files: RunDir, session: Session) -> bool:
    """Whether the files were written when the journal was as long as it is now."""
    try:
        head, entries, _ = (files.path / "manifest.json").read_bytes().partition(b',\n  "entries"')
        found = json.loads(head + b"\n}" if entries else head)
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or found.get("journalBytes") != files.journal_bytes():
        return False
    outputs = (turn.artifact for step in session.steps for turn in step.turns if turn.artifact)
    return all(files.has(name) for name in outputs)


def _write_step(files: RunDir, rules: Rules, step: StepRecord) -> None:
    materia = rules.sockets[step.socket].socket.materia
    if step.prompt is not None:
        head = [
            "# Prompt",
            "",
            f"cast: {files.path.name}",
            f"socket: {step.socket}",
            f"materia: {materia.id}",
            f"item: {short(step.item_label) if step.item_label else '-'}",
            f"visit: {step.visit}",
        ]
        body = [part for layer in step.prompt.layers for part in ("", f"## {layer.heading}", "", layer.brief)]
        files.write_text(
            context_name(step.socket, step.visit, step.item_key, step.branch), "\n".join([*head, *body, ""])
        )
    for turn in step.turns:
        if turn.artifact is not None:
            files.write_text(turn.artifact, turn.text)
    reading = step.reading
    if reading is not None and reading.accepted and rules.sockets[step.socket].wanted.parse == "json":
        files.write_json(
            output_name(step.socket, step.visit, None, f"{branch_suffix(step.branch)}.json"), reading.value
        )


def manifest(cast_id: str, rules: Rules, session: Session, journal_bytes: int = 0) -> Iterator[bytes]:
    """Yield what lists what the cast left behind, an artifact a line, with how it stood when its journal had ``journal_bytes``."""
    state = session.state
    head: dict[str, JSON] = {
        "castId": cast_id,
        "request": state.request,
        "loadout": rules.graph.name,
        "status": state.status,
        "steps": len(session.steps),
        "journalBytes": journal_bytes,
        "next": state.next,
        "cursors": dict(state.cursors),
        "visits": dict(state.visits),
        "edgeTraversals": dict(state.traversals),
    }
    if state.failure is not None:
        head["failure"] = {"kind": state.failure.kind, "message": state.failure.message}
    yield json_bytes(head, indent=2).removesuffix(b"\n}") + b',\n  "entries": ['
    between, entries = b"\n    ", _entries(rules, session)
    while block := [json_bytes(entry) for entry in islice(entries, _AT_ONCE)]:
        yield between + b",\n    ".join(block)
        between = b",\n    "
    yield b"\n  ]\n}\n"


def _entries(rules: Rules, session: Session) -> Iterator[dict[str, JSON]]:
    for step in session.steps:
        here = rules.sockets[step.socket]
        materia = here.socket.materia
        about: dict[str, JSON] = {"socket": step.socket, "materia": materia.id, "materiaLabel": materia.label}
        if step.item_key is not None:
            about |= {"itemKey": step.item_key, "itemLabel": step.item_label}
        about["visit"] = step.visit
        if step.prompt is not None:
            artifact = context_name(step.socket, step.visit, step.item_key, step.branch)
            yield {**about, "kind": "context", "artifact": artifact, "timestamp": step.started}
        for turn in step.turns:
            kind = _kind(here, turn.mode)
            yield {**about, "kind": kind, "artifact": turn.artifact, "timestamp": step.ended}


def _kind(here: SocketRules, mode: str) -> str:
    if mode == "draft":
        return "socket_refinement"
    return "socket_work" if mode in here.works else "socket_output"


def usage_report(rules: Rules, session: Session) -> dict[str, JSON]:
    """Add up tokens and cost: in all, by socket, by materia and by item."""
    groups: dict[str, dict[str, Usage]] = {"bySocket": {}, "byMateria": {}, "byTask": {}}
    for step in session.steps:
        keys = {
            "bySocket": step.socket,
            "byMateria": rules.sockets[step.socket].socket.materia.id,
            "byTask": step.item_key,
        }
        for used in (*(turn.usage for turn in step.turns if turn.usage), *step.spent):
            for group, key in keys.items():
                if key is not None:
                    groups[group][key] = groups[group].get(key, Usage()).plus(used)
    total = session.state.usage
    report: dict[str, Any] = {
        "tokens": {"input": total.input, "output": total.output, "total": total.tokens},
        "cost": {"total": total.cost},
    }
    for group, found in groups.items():
        report[group] = {key: _usage(usage) for key, usage in found.items()}
    return report


def _usage(usage: Usage) -> Mapping[str, JSON]:
    return {"input": usage.input, "output": usage.output, "total": usage.tokens, "cost": usage.cost}
