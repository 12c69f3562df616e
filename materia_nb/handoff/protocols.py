"""The handoff protocols by name, and turning a handoff of one format into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, NamedTuple, Protocol, cast

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.common import Gist
from materia_nb.handoff.jsontext import MAX_DEPTH, too_deep
from materia_nb.handoff.protocol import HandoffProtocol
from materia_nb.jsonvalue import JSON, MISSING, get_path, same
from materia_nb.loadout.vocabulary import GROUP, protocol_names

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


class Translated(NamedTuple):
    """A handoff in another format.

    Attributes:
        value: the object; like any output, it is valid only once its protocol has read it.
        lost: the paths of the original that do not come back when ``value`` is turned back.
    """

    value: dict[str, JSON]
    lost: list[str]


class Translatable(Protocol):
    """A protocol whose handoffs can be turned into others: two functions, for every other format."""

    def to_gist(self, value: Mapping[str, JSON]) -> Gist:
        """Return what a handoff says; never raises, whatever its fields hold."""
        ...

    def from_gist(self, gist: Gist) -> dict[str, JSON]:
        """Write a gist as a handoff of this format, claiming nothing that the gist does not say."""
        ...


def translate(value: Mapping[str, JSON], *, frm: str, to: str) -> Translated:
    """Turn a handoff of the protocol ``frm`` into one of the protocol ``to``.

    Raises:
        MateriaError: kind ``not_an_object`` for anything but an object of bearable depth;
            ``unknown_protocol`` or ``broken_protocol``; ``not_translatable`` for a protocol that
            has no gist.
    """
    if not isinstance(value, dict) or too_deep(value):
        raise MateriaError(
            f"Only an object of at most {MAX_DEPTH} levels can be translated.",
            hint="read the text with its protocol first and translate what that gives (value)",
            kind="not_an_object",
        )
    source, target = _translatable(frm), _translatable(to)
    if frm == to:
        return Translated(value, [])
    made = target.from_gist(source.to_gist(value))
    back = source.from_gist(target.to_gist(made))
    lost = [path for path in _leaves(value, ()) if not same(_at(value, path), _at(back, path))]
    return Translated(made, ["$." + ".".join(path) for path in lost])


def _translatable(name: str) -> Translatable:
    found = protocol(name)
    if not callable(getattr(found, "to_gist", None)) or not callable(getattr(found, "from_gist", None)):
        raise MateriaError(
            f"Handoffs of the protocol {name!r} cannot be translated.",
            hint="the protocol needs the methods to_gist and from_gist",
            kind="not_translatable",
        )
    return cast("Translatable", found)


def _leaves(value: JSON, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of everything that says something: what is empty cannot be lost."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _leaves(child, (*path, str(index)))
    elif value is not None and value != "":
        yield path


def _at(value: JSON, path: tuple[str, ...]) -> JSON:
    found = get_path(value, list(path))
    return None if found is MISSING else found
