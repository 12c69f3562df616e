"""Finding the contract block in a reply (agent contract rules, section 2)."""

from __future__ import annotations

import re
from typing import Final

from materia_nb.handoff.jsontext import NotJson, too_deep, wide_json, without_infinities
from materia_nb.jsonvalue import JSON

TAG: Final = "agent_contract_handoff"

_OPENING: Final = f"```{TAG}"
_SPACE = re.compile(r"\s*")


def find(text: str) -> dict[str, JSON] | None:
    """Return the object in the first block that bears the tag; None when there is none.

    Only the first block counts: a malformed one is the same as none. The time is linear
    in the length of the text.
    """
    body = _body(text)
    if body is None:
        return None
    try:
        value = wide_json(body)[0]
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def usable(value: JSON) -> dict[str, JSON] | None:
    """Return a value that is a contract already; None for anything that a block could not hold."""
    return value if isinstance(value, dict) and not too_deep(value) else None


def kept(contract: dict[str, JSON] | None) -> JSON:
    """Return the contract as it is recorded: null in place of numbers that JSON cannot hold."""
    return without_infinities(contract)


def _body(text: str) -> str | None:
    """What follows the last line end of the white space behind the tag, up to the next three backticks."""
    position = text.find(_OPENING)
    while position >= 0:
        start = position + len(_OPENING)
        space = _SPACE.match(text, start)
        end = space.end() if space else start
        line_end = text.rfind("\n", start, end)
        if line_end >= 0:
            close = text.find("```", line_end)
            return text[line_end + 1 : close] if close >= 0 else None
        position = text.find(_OPENING, end)
    return None
