"""What a lower layer asks for by name and a higher one gives, so that nothing low knows where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LOAD: dict[str, Callable[[], Any]] = {}


def register(what: str, load: Callable[[], Any]) -> None:
    """Say how something is loaded; it is loaded when it is asked for."""
    _LOAD[what] = load


def late(what: str) -> Any:
    """Return what was registered under that name; raises KeyError for a name that nobody registered."""
    return _LOAD[what]()
