"""Turning a handoff of one format into another, and saying what the other cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol, cast

from materia_nb.errors import MateriaError
from materia_nb.handoff.gist import Gist
from materia_nb.handoff.jsontext import MAX_DEPTH, too_deep
from materia_nb.handoff.registry import protocol
from materia_nb.jsonvalue import JSON, MISSING, get_path, same


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
