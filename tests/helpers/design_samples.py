"""Provide configs and helpers for the tests of designs."""

from __future__ import annotations

import json
from typing import Any

from loadout_samples import json_values as any_values
from loadout_samples import valid_configs


def plainly(value: Any) -> str:
    """Return a value as it is after writing it to a JSON file and reading it; raise ValueError for NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def is_plain(value: Any) -> bool:
    """Return True if a JSON file can store the value unchanged: it contains neither NaN nor a lone surrogate."""
    try:
        plainly(value).encode()
    except ValueError:
        return False
    return True


json_values = any_values.filter(is_plain)


def _without_notes(document: Any) -> Any:
    for loadout in document["loadouts"].values():
        for socket in loadout["sockets"].values():
            socket.pop("note", None)
    return document


plain_configs = valid_configs().map(_without_notes).filter(is_plain)
"""Strategy for configs that a JSON file can store; socket notes are omitted, because they may contain NaN."""
