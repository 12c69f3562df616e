"""Every place where a loadout names a socket, so that one can be called otherwise or taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Object, as_object

_PLACES: Final = tuple(
    tuple(place.split("."))
    for place in (
        "entry",
        "sockets.*.edges!.*!.to",
        "sockets.*.advance.done",
        "sockets.*.foreach.done",
        "loops!.*!.sockets!.*",
        "loops.*.consumes.from",
        "loops.*.consumes.done",
        "loops.*.iterator.done",
        "loops.*.exit!.from",
        "loops.*.exit!.to",
        "loops.*.exits!.*!.from",
        "loops.*.exits!.*!.targetSocketId",
    )
)
"""``*`` is each entry. What is marked with ``!`` goes with what follows it: an edge with its ``to``, a list with its last entry."""
_GONE: Final = object()


def with_names(document: Object, new: Mapping[str, str]) -> Object:
    """Return a loadout in which sockets are called otherwise: wherever they are named, in ``sockets`` and in its layout.

    What names none of them is shared with the old document.
    """
    changed = renamed_at(document, _PLACES, new)
    for keys in (("sockets",), ("layout", "sockets")):
        changed = _changed(changed, keys, lambda entries: _with_keys(entries, new))
    return changed


def renamed_at(document: Object, places: Iterable[Sequence[str]], new: Mapping[str, str]) -> Object:
    """Return a loadout with the names at some places changed, such as ``("sockets", "*", "advance", "cursor")``."""
    for place in places:
        document = _changed(
            document, place, lambda name: new.get(name, name) if isinstance(name, str) else name
        )
    return document


def without_socket(document: Object, id_: str) -> Object:
    """Return a loadout without a socket and without what named it: edges to it, exits from and to it, its place in loops.

    A loop that has no member left goes too.
    """
    for place in _PLACES:
        document = _changed(document, place, lambda name: _GONE if name == id_ else name)
    for keys in (("sockets", id_), ("layout", "sockets", id_)):
        document = _changed(document, keys, lambda _: _GONE)
    return document


def _with_keys(entries: JSON, new: Mapping[str, str]) -> JSON:
    if not any(old in as_object(entries) for old in new):
        return entries
    return {new.get(key, key): one for key, one in entries.items()}


def _changed(
    value: JSON, place: Sequence[str], change: Callable[[JSON], JSON], *, marked: bool = False
) -> JSON:
    """Return ``value`` with what stands at ``place`` changed; the same object when nothing is.

    ``marked`` says that ``value`` goes with what follows it; see the table above.
    """
    if not place:
        return change(value)
    name, rest = place[0].removesuffix("!"), place[1:]
    entries: dict[Any, JSON] = dict(enumerate(value)) if isinstance(value, list) else as_object(value)
    made = {
        key: _changed(one, rest, change, marked=place[0].endswith("!"))
        for key, one in entries.items()
        if name in ("*", key)
    }
    if all(one is entries[key] for key, one in made.items()):
        return value
    left = {key: one for key, one in {**entries, **made}.items() if one is not _GONE}
    if marked and (not left if name == "*" else name not in left):
        return _GONE
    return [*left.values()] if isinstance(value, list) else left
