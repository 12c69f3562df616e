"""The sparse handoff and its gist."""

from __future__ import annotations

from collections.abc import Mapping

from materia_nb.handoff.gist import Gist, Outcome, Piece, joined, parted
from materia_nb.jsonvalue import JSON


def to_gist(value: Mapping[str, JSON]) -> Gist:
    """Return what a sparse handoff says; fields of the wrong type say nothing."""
    satisfied, context, items = value.get("satisfied"), value.get("context"), value.get("workItems")
    outcome: Outcome = "done" if satisfied is True else "again" if satisfied is False else "open"
    did, found = parted(context) if isinstance(context, str) else ("", "")
    pieces = tuple(
        Piece(item["title"], item["context"])
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict)
        and isinstance(item.get("title"), str)
        and isinstance(item.get("context"), str)
    )
    return Gist(outcome, did, found, pieces)


def from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as a sparse handoff, without the fields that have nothing to say."""
    value: dict[str, JSON] = {}
    if gist.outcome in ("done", "accepted", "again"):
        value["satisfied"] = gist.outcome != "again"
    context = joined(gist.did, gist.found)
    if context:
        value["context"] = context
    if gist.pieces:
        value["workItems"] = [piece._asdict() for piece in gist.pieces]
    return value
