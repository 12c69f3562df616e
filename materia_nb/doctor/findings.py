"""What a check of the surroundings finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "missing", "hint"]
"""``missing``: something is not there that may be needed; ``hint``: it is there, and yet something should be known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        area: what it belongs to: software, keys, programs, folders, scripts, config, agents.
        what: its name.
        status: how it stands.
        found: what was found, in a few words.
        todo: what to do about it; empty when nothing is to be done.
    """

    area: str
    what: str
    status: Status
    found: str
    todo: str = ""
