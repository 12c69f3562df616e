"""Names of the files in which outputs are kept for other tools, built and read back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Issue

MISSING_ENVELOPE: Final = Issue("$", "There is no envelope.", "return one JSON object", "ENVELOPE_MISSING")
_FINAL: Final = ".json"
_DRAFT: Final = ".draft.json"
_MOST_BYTES: Final = 200
"""How long a part may be: two of them and the ending fit into one file name."""


class Names(NamedTuple):
    """The paths of one step's envelope, and of its draft while the step is worked on."""

    final: str
    draft: str


class Step(NamedTuple):
    """What a file name says: the step, the agent, and whether it is a draft."""

    step_id: str
    agent_key: str
    draft: bool


class Lookup(NamedTuple):
    """The path of an envelope, or why there is none."""

    path: str | None
    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()


def names(run_base: str, flow: str, step_id: str, agent_key: str) -> Names:
    """Return ``<run_base>/<flow>/handoffs/<step_id>-<agent_key>.json`` and the name of its draft.

    Raises MateriaError (kind ``path_unsafe``, where ``PATH_UNSAFE:<field>``) for a part that
    could lead elsewhere or could not be read back.
    """
    for field, part in (("flow", flow), ("step_id", step_id), ("agent_key", agent_key)):
        _require(field, part)
    base = f"{run_base.rstrip('/')}/" if run_base.strip("/") else run_base[:1]
    stem = f"{base}{flow}/handoffs/{step_id}-{agent_key}"
    return Names(stem + _FINAL, stem + _DRAFT)


def parse_name(filename: str) -> Step:
    """Read a file name: the first hyphen ends the step id, which has none.

    Raises MateriaError (kind ``path_unsafe``) for a name that :func:`names` cannot have made.
    """
    stem = filename.removesuffix(_DRAFT)
    draft = stem != filename
    stem = stem if draft else filename.removesuffix(_FINAL)
    if stem == filename:
        raise _unsafe("filename", filename, "does not end with .json")
    step_id, _, agent_key = stem.partition("-")
    _require("step_id", step_id)
    _require("agent_key", agent_key)
    return Step(step_id, agent_key, draft)


def look_for(files: Collection[str], flow: str, step_id: str, agent_key: str, run_base: str = "") -> Lookup:
    """Find a step's envelope among ``files``; a draft alone is a turn that is not finished."""
    final, draft = names(run_base, flow, step_id, agent_key)
    if final in files:
        return Lookup(final)
    if draft not in files:
        return Lookup(None, (MISSING_ENVELOPE,))
    lone = Issue("$", "There is a draft only: the turn was not finished.", "finish the turn", "DRAFT_PRESENT")
    return Lookup(None, (MISSING_ENVELOPE,), (lone,))


def _require(field: str, part: str) -> None:
    why = _why_unsafe(field, part)
    if why:
        raise _unsafe(field, part, why)


def _why_unsafe(field: str, part: str) -> str | None:
    if not part.strip():
        return "is empty"
    if any(mark in part for mark in "/\\") or ".." in part or part == ".":
        return "leads to another folder"
    if not part.isprintable() or len(part.encode("utf-8", "replace")) > _MOST_BYTES:
        return "cannot be part of a file name"
    if field == "step_id" and "-" in part:
        return "has a hyphen, which ends a step id in a file name"
    if field == "agent_key" and part.endswith(".draft"):
        return "would name a draft"
    return None


def _unsafe(field: str, part: str, why: str) -> MateriaError:
    return MateriaError(
        f"The {field} {part[:80]!r} {why}.",
        where=f"PATH_UNSAFE:{field}",
        hint="use letters, digits and _",
        kind="path_unsafe",
    )
