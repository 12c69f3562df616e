"""Finding the envelope in a reply (section 2), its final form, and the names of its files (section 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.envelope.envelope_check import META, Envelope
from materia_nb.handoff.jsontext import NotJson, too_deep, wide_json
from materia_nb.handoff.protocol import Issue, TurnFacts
from materia_nb.jsonvalue import JSON, set_path

MISSING_ENVELOPE: Final = Issue("$", "There is no envelope.", "return one JSON object", "ENVELOPE_MISSING")


def not_object(value: JSON) -> Issue | None:
    """Return the issue of a value that is no object, or no JSON; None for an object."""
    if isinstance(value, dict):
        return _not_json(NotJson("it is nested too deeply")) if too_deep(value) else None
    return Issue(
        "$", "The envelope is not a JSON object.", "return one JSON object, no array", "ENVELOPE_NOT_OBJECT"
    )


def find(text: str, *, file: bool = False) -> tuple[JSON, Issue | None]:
    """Return the envelope of a reply and no issue, or None and why there is none.

    A fence tagged json is preferred over an earlier plain one; what surrounds one object
    is dropped. ``file``: the text is a whole file, which must be the object itself.
    The time is linear in the length of the text.
    """
    if not text.strip():
        return None, MISSING_ENVELOPE
    taken = text.strip() if file else _taken(text)
    try:
        value = wide_json(taken)[0]
    except NotJson as error:
        start, end = taken.find("{"), taken.rfind("}")
        if file or not 0 <= start < end:
            return None, _not_json(error)
        try:
            value = wide_json(taken[start : end + 1])[0]
        except NotJson as again:
            return None, _not_json(again)
    issue = not_object(value)
    return (None, issue) if issue else (value, None)


def _not_json(error: NotJson) -> Issue:
    return Issue(
        "$", f"The envelope is not JSON: {error}.", "return only the JSON object", "ENVELOPE_NOT_JSON"
    )


def _taken(text: str) -> str:
    """The part of the text that should be the object: up to the end where no backticks close it."""
    for opening in ("```json", "```"):
        start = text.find(opening)
        if start >= 0:
            start += len(opening)
            end = text.find("```", start)
            return text[start : end if end >= 0 else len(text)].strip()
    return text.strip()


MOST_TRIES: Final = 3
"""How often an envelope is asked for in a turn, the first time included."""


def with_meta(value: Mapping[str, JSON], known: Mapping[str, str]) -> dict[str, JSON]:
    """Return the envelope with the meta fields that it lacks and the runtime knows."""
    given = value.get("meta")
    meta: dict[str, JSON] = dict(given) if isinstance(given, dict) else {}
    for name in META:
        if known.get(name) and not (isinstance(meta.get(name), str) and meta[name].strip()):
            meta[name] = known[name]
    return {**value, "meta": meta} if meta else dict(value)


def finished(value: Mapping[str, JSON], envelope: Envelope, known: Mapping[str, str]) -> dict[str, JSON]:
    """Return a valid envelope as it is kept: unknown fields too, words in upper case, meta filled in."""
    done = with_meta(value, known)
    done = set_path(done, ["status"], envelope.status)
    done = set_path(done, ["routing", "recommendation"], envelope.recommendation)
    if envelope.can_help is not None:
        done = set_path(done, ["routing", "can_further_iteration_help"], envelope.can_help)
    if envelope.concerns:
        done["concerns"] = [
            {**given, "severity": concern.severity}
            for given, concern in zip(value["concerns"], envelope.concerns, strict=True)
        ]
    return done


def fallback(facts: TurnFacts, issues: Sequence[Issue]) -> dict[str, JSON]:
    """Return the envelope that stands in for one that could not be had: it claims nothing.

    Its evidence is what the runtime itself saw change during the turn.
    """
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    return with_meta(
        {
            "status": "UNVERIFIED",
            "summary": {
                "what_i_did": None,
                "what_i_found": f"No valid envelope was given in {counted(facts.refused + 1, 'try', 'tries')}: {codes}.",
                "key_decisions": [],
                "evidence": {
                    "artifacts_produced": list(facts.changed_files),
                    "commands_run": [],
                    "measurements": {},
                },
            },
            "concerns": [],
            "assumptions": [],
            "routing": {
                "recommendation": "ESCALATE",
                "reason": "The step has no envelope of its own; a person must see what was done.",
            },
            "_envelope_source": "fallback",
        },
        facts.meta,
    )


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
