"""The handoff protocols by name: our own, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.protocol import HandoffProtocol
from materia_nb.loadout.protocol_names import GROUP, protocol_names

_OWN: Final = {
    name: EntryPoint(name, f"materia_nb.handoff.{place}", GROUP)
    for name, place in (
        ("sparse", "sparse:SparseProtocol"),
        ("envelope", "envelope:EnvelopeProtocol"),
        ("agent-contract", "contract:ContractProtocol"),
    )
}


@cache
def protocol(name: str) -> HandoffProtocol:
    """Return the protocol of that name, loading it on first use.

    An entry point names a class, made without arguments, or a ready object. The names of
    our own protocols cannot be taken.
    Raises MateriaError: kind ``unknown_protocol`` when nobody offers the name, kind
    ``broken_protocol`` when what is offered cannot be loaded, is no protocol, or when two
    packages offer the name.
    """
    if name in _OWN:
        return _load(_OWN[name])
    offers = list(entry_points(group=GROUP, name=name))
    if not offers:
        raise MateriaError(
            f"There is no handoff protocol {name!r}.",
            hint=did_you_mean(name, protocol_names()),
            kind="unknown_protocol",
        )
    if len({entry.value for entry in offers}) > 1:
        raise _broken(offers, "several packages offer it")
    return _load(offers[0])


def _load(entry: EntryPoint) -> HandoffProtocol:
    try:
        found = entry.load()
        made = found() if isinstance(found, type) else found
    except Exception as error:
        raise _broken([entry], f"it cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "read", None)) or not callable(getattr(made, "ask", None)):
        raise _broken([entry], "it has no read or no ask")
    if getattr(made, "name", None) != entry.name:
        raise _broken([entry], f"it calls itself {getattr(made, 'name', None)!r}")
    return cast("HandoffProtocol", made)


def _broken(offers: Sequence[EntryPoint], why: str) -> MateriaError:
    packages = sorted({entry.dist.name for entry in offers if entry.dist})
    return MateriaError(
        f"The handoff protocol {offers[0].name!r} is not usable: {why}.",
        where=", ".join(sorted({entry.value for entry in offers})),
        hint=f"correct or uninstall {' or '.join(packages) or 'the package that offers it'}",
        kind="broken_protocol",
    )
