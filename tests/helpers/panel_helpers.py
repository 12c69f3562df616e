"""Send messages to panels in the same manner as the page in the browser."""

from __future__ import annotations

from typing import Any


def from_page(panel: Any, kind: str, **values: Any) -> dict[str, Any]:
    """Return a message from a page, with the identity of the snapshot that the page displays."""
    return {"kind": kind, "identity": panel.front.surface["identity"], **values}


def from_list(panel: Any, kind: str, **values: Any) -> dict[str, Any]:
    """Return a message from the list of casts; a message about a cast has the identity that the list displays."""
    identities = {row[0]: row[-1] for row in panel.front.casts["rows"]}
    if "a" in values:
        return {"kind": kind, "identities": [identities.get(values[name], "") for name in "ab"], **values}
    if "cast" in values and kind != "select":
        return {"kind": kind, "identity": identities.get(values["cast"], ""), **values}
    return {"kind": kind, **values}
