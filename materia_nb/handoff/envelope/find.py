"""Finding the envelope in a reply (envelope rules, section 2)."""

from __future__ import annotations

from typing import Final

from materia_nb.handoff.jsontext import NotJson, too_deep, wide_json
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON

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
