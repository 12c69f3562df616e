"""Registry of the handoff protocols, which define the formats in which agents write their outputs."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.base import HandoffProtocol, Issue, Reading, Requirements, TurnFacts
from materia_nb.handoff.checks import requirements_of
from materia_nb.handoff.sparse import item_issues
from materia_nb.loadout.vocabulary import ENTRY_POINT_GROUP, OWN_PROTOCOLS, protocol_names

__all__ = [
    "HandoffProtocol",
    "Issue",
    "Reading",
    "Requirements",
    "TurnFacts",
    "item_issues",
    "protocol",
    "protocol_names",
    "requirements_of",
]

_BUILT_IN: Final = {
    name: EntryPoint(name, f"materia_nb.handoff.{own.implementation}", ENTRY_POINT_GROUP)
    for name, own in OWN_PROTOCOLS.items()
}


@cache
def protocol(name: str) -> HandoffProtocol:
    """Return the handoff protocol with the name ``name``; the protocol is loaded on first use.

    A package registers a protocol with an entry point that refers to an instance, or to a class whose constructor needs
    no arguments. A package cannot replace a built-in protocol.

    Raises:
        MateriaError: no installed package provides the protocol (``unknown_protocol``), several packages provide it, or
            the protocol cannot be loaded, is not a HandoffProtocol or has another name (``broken_protocol``).
    """
    if name in _BUILT_IN:
        return _load(_BUILT_IN[name])
    entries = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if not entries:
        raise MateriaError(
            f"The handoff protocol {name!r} does not exist.",
            hint=did_you_mean(name, protocol_names()),
            kind="unknown_protocol",
        )
    if len({entry.value for entry in entries}) > 1:
        raise _broken_protocol_error(entries, "several packages provide a protocol with this name")
    return _load(entries[0])


def _load(entry: EntryPoint) -> HandoffProtocol:
    try:
        target = entry.load()
        instance = target() if isinstance(target, type) else target
    except Exception as error:
        raise _broken_protocol_error([entry], f"it cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(instance, HandoffProtocol):
        raise _broken_protocol_error([entry], "it is not a materia_nb.handoff.HandoffProtocol")
    if getattr(instance, "name", None) != entry.name:
        raise _broken_protocol_error([entry], f"its name is {getattr(instance, 'name', None)!r}")
    return instance


def _broken_protocol_error(entries: Sequence[EntryPoint], reason: str) -> MateriaError:
    packages = sorted({entry.dist.name for entry in entries if entry.dist})
    return MateriaError(
        f"The handoff protocol {entries[0].name!r} is not usable: {reason}.",
        where=", ".join(sorted({entry.value for entry in entries})),
        hint=f"fix or uninstall {' or '.join(packages) or 'the package that provides it'}",
        kind="broken_protocol",
    )
