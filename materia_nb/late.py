"""What a lower layer asks for by name and a higher one gives, so that nothing low knows where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_LOAD: dict[str, Callable[[], Any]] = {}


def register(what: str, load: Callable[[], Any]) -> None:
    """Say how something is loaded; it is loaded when it is asked for."""
    _LOAD[what] = load


def late(what: str) -> Any:
    """Return what was registered under that name; raises KeyError for a name that nobody registered."""
    return _LOAD[what]()


VIEWS: Final[dict[type, Callable[[Any], Any]]] = {}
"""What makes the view that a value shows in a notebook, by its type; the modules that have views fill it in."""


def shown_by_its_view(value: object, include: object = None, exclude: object = None) -> dict[str, Any] | None:
    """Be the ``_repr_mimebundle_`` of a type below all views: that of its view, or None, for its text alone."""
    view = next((VIEWS[kind] for kind in type(value).__mro__ if kind in VIEWS), None)
    shown: dict[str, Any] | None = None if view is None else view(value)._repr_mimebundle_(include, exclude)
    return shown
