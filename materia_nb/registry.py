"""A registry through which lower layers obtain objects of higher layers by name, so that imports point downward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_LOADERS: dict[str, Callable[[], Any]] = {}


def register(name: str, load: Callable[[], Any]) -> None:
    """Register the function that loads an object; the function is called when the object is looked up."""
    _LOADERS[name] = load


def lookup(name: str) -> Any:
    """Return the object registered under a name; raise KeyError if the name is unknown."""
    return _LOADERS[name]()


view_registry: Final[dict[type, Callable[[Any], Any]]] = {}
"""Functions that create the notebook view of a value, by the value's type; modules that define views add entries."""


def mimebundle_from_view(value: object, include: object = None, exclude: object = None) -> dict[str, Any] | None:
    """Return the MIME bundle of the view registered for a value's type, or None if there is no such view.

    Types in layers below the views use this function as their ``_repr_mimebundle_`` method.
    """
    make_view = next((view_registry[kind] for kind in type(value).__mro__ if kind in view_registry), None)
    if make_view is None:
        return None
    bundle: dict[str, Any] = make_view(value)._repr_mimebundle_(include, exclude)
    return bundle
