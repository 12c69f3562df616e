"""What a cast tells the next one: its request, how it ended, and what it found, cut to a stated size."""

from __future__ import annotations

from typing import Final

from materia_nb.engine.state import CastState
from materia_nb.jsonvalue import JSON

PREVIOUS: Final = "previous"
"""The name in the state under which a cast finds what an earlier one tells it."""

LONGEST_REQUEST: Final = 2_000
LONGEST_OUTPUT: Final = 4_000
LONGEST_CONTEXT: Final = 4_000
MOST_TITLES: Final = 50
LONGEST_TITLE: Final = 200
"""Characters, and titles of work items, that are handed on at most."""


def told_to_the_next(state: CastState, cast_id: str, loadout: str) -> dict[str, JSON]:
    """Return what ``state`` tells a later cast.

    Of the output the beginning is kept, of the context the end, since its latest entries are there.

    Args:
        state: where the earlier cast stands.
        cast_id: its id.
        loadout: the name of its loadout.
    """
    told: dict[str, JSON] = {
        "cast": cast_id,
        "loadout": loadout,
        "status": state.status,
        "request": _beginning(state.request, LONGEST_REQUEST),
    }
    if state.last_output:
        told["lastOutput"] = _beginning(state.last_output, LONGEST_OUTPUT)
    context = state.data.get("context")
    if isinstance(context, str) and context.strip():
        cut = len(context) > LONGEST_CONTEXT
        told["context"] = "…" + context[1 - LONGEST_CONTEXT :] if cut else context
    items = state.data.get("workItems")
    if isinstance(items, list) and items:
        titles = [item.get("title") for item in items[:MOST_TITLES] if isinstance(item, dict)]
        told["workItems"] = [_beginning(title, LONGEST_TITLE) for title in titles if isinstance(title, str)]
    return told


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
