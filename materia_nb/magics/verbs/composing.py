"""Verbs about several casts: link runs loadouts one behind the other, quest works through a board of requests."""

from __future__ import annotations

from typing import Any

from materia_nb.errors import MateriaError
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "link",
    Argument(
        "--from", "an earlier cast, whose context the state gets as previous", "option", completes="cast"
    ),
    Argument(
        "parts",
        "loadouts and materia in their order; loadout:NAME or materia:NAME where a name means both",
        "words",
        required=True,
        completes="part",
    ),
    Argument("request", "what is asked for; or in the cell", "rest"),
    cell="may",
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def link(call: Call) -> Any:
    """Start a cast of loadouts and materia one behind the other; buttons, step or run go on with it."""
    request = str(call.get("request") or "")
    if call.body is not None:
        request = f"{request}\n{call.body.strip()}".strip()
    if not request:
        raise MateriaError(
            "The request is missing.", hint="write it behind --: link A B -- request", kind="usage"
        )
    return call.bench.link(*map(str, call.get("parts")), request=request, from_cast=call.get("from"))
