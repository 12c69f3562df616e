"""Sending messages to panels as their page does."""

from __future__ import annotations

from typing import Any


def from_page(panel: Any, kind: str, **values: Any) -> dict[str, Any]:
    """Return a message of a page: it brings the identity of the frame that the page shows."""
    return {"kind": kind, "seen": panel.front.surface["seen"], **values}
