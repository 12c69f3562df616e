"""Verbs about what agents suggest to remember: suggestions, remember."""

from __future__ import annotations

from typing import Any

from materia_nb.cast.accepted import Suggestion
from materia_nb.display.escape import shorten
from materia_nb.magics.registry import Argument, Call, verb
from materia_nb.views import Table


def _view(suggestions: list[Suggestion]) -> Table:
    rows = []
    for one in suggestions:
        title = one.fields.get("description") or one.fields.get("text", "")
        body = one.fields.get("body", "")
        kept = "kept" if one.kept else ""
        rows.append((str(one.number), str(one.step), one.kind, shorten(title, 120), shorten(body, 200), kept))
    return Table(("", "step", "kind", "what", "in full", "kept"), rows, "no suggestions")


@verb("suggestions")
def suggestions(call: Call) -> Any:
    """List what the agents of the cast suggest to remember; nothing of it is kept by itself."""
    return _view(call.bench.current.suggestions)


@verb(
    "remember",
    Argument("number", "the number of a suggestion", required=True, whole=True),
    example="%materia remember 2",
)
def remember(call: Call) -> Any:
    """Keep a suggestion in what is known about the project."""
    current = call.bench.current
    current.remember(call.get("number"))
    return _view(current.suggestions)
