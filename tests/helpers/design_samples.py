"""Helpers for the tests of designs."""

from __future__ import annotations

import json
from typing import Any

from loadout_samples import json_values as any_values
from loadout_samples import valid_configs


def plainly(value: Any) -> str:
    """Return a value as it is after writing it to a file and reading it; raise ValueError for NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def is_plain(value: Any) -> bool:
    """Return True if a file can contain the value unchanged: no NaN, and no half of a surrogate pair."""
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
"""Configs that a file can contain. The notes of sockets are left out, because they may be any value, such as NaN."""
