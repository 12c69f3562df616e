"""The side channel ``event``: what an output tells beside its handoff (R39)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON

SEVERITIES: Final = ("debug", "info", "warning", "error", "critical")
"""How grave an event may be, the gravest last; one that does not say so is ``info``."""

_TEXTS: Final = ("message", "source")
_FIELDS: Final = ("type", "severity", *_TEXTS, "payload")


class SideChannel(NamedTuple):
    """An output without its ``event`` field, the events in it, and what is wrong with these."""

    value: dict[str, JSON]
    events: tuple[dict[str, JSON], ...] = ()
    issues: tuple[Issue, ...] = ()


def take_events(value: dict[str, JSON]) -> SideChannel:
    """Take the top-level ``event`` out of an object; whoever reads on sees nothing of it."""
    if "event" not in value:
        return SideChannel(value)
    rest = {name: child for name, child in value.items() if name != "event"}
    given = value["event"]
    if not isinstance(given, list):
        issue = Issue("$.event", "event must be an array of events.", "write [] around it, or leave it out")
        return SideChannel(rest, (), (issue,))
    issues = tuple(issue for place, one in enumerate(given) for issue in _issues(f"$.event[{place}]", one))
    return SideChannel(rest, () if issues else tuple(given), issues)


def _issues(path: str, event: JSON) -> Iterator[Issue]:
    if not isinstance(event, dict):
        yield Issue(path, "An event must be an object.", 'write {"type": "...", "message": "..."}')
        return
    kind = event.get("type")
    if not isinstance(kind, str) or not kind.strip():
        yield Issue(f"{path}.type", "The type of an event must be a string that is not blank.", "name it")
    severity = event.get("severity", "info")
    if not isinstance(severity, str) or severity not in SEVERITIES:
        fix = f"write one of {', '.join(SEVERITIES)}, or leave it out"
        yield Issue(f"{path}.severity", "There is no such severity.", fix)
    for name in _TEXTS:
        if not isinstance(event.get(name, ""), str):
            yield Issue(f"{path}.{name}", f"The {name} of an event must be a string.", "write plain text")
    for name in event:
        if name not in _FIELDS:
            fix = "put it into payload, which may be anything"
            yield Issue(f"{path}.{name}", f"An event has {', '.join(_FIELDS)} and no other field.", fix)
