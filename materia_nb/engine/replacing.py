"""Setting or taking away one value at a path, as a person does: lists stay lists, and a typo is told."""

from __future__ import annotations

from collections.abc import Mapping

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, MISSING


def replaced(value: JSON, segments: list[str], new: JSON) -> JSON:
    """Return ``value`` with ``new`` at a path, or without it when ``new`` is MISSING.

    Lists stay lists: a number within them replaces an element, the one behind the last adds one.

    Raises:
        MateriaError: the path leads through something that has no parts, or past the end of a list (``path``).
    """
    name, rest = segments[0], segments[1:]
    if isinstance(value, list):
        return _in_list(value, name, rest, new)
    if not isinstance(value, dict):
        raise MateriaError(
            f"There is nothing inside {value!r:.80}.", where=name, hint="set the whole value", kind="path"
        )
    if rest:
        if name not in value and new is MISSING:
            raise _nothing_at(name, value)
        return {**value, name: replaced(value.get(name, {}), rest, new)}
    if new is MISSING:
        if name not in value:
            raise _nothing_at(name, value)
        return {key: child for key, child in value.items() if key != name}
    return {**value, name: new}


def _in_list(value: list[JSON], name: str, rest: list[str], new: JSON) -> list[JSON]:
    place = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
    adds = not rest and new is not MISSING
    if not 0 <= place < len(value) + adds:
        raise MateriaError(
            f"The list has no element {name!r}.",
            hint=f"its elements are numbered from 0; there are {len(value)}",
            kind="path",
        )
    head, tail = value[:place], value[place + 1 :]
    if rest:
        return [*head, replaced(value[place], rest, new), *tail]
    return [*head, *tail] if new is MISSING else [*head, new, *tail]


def _nothing_at(name: str, value: Mapping[str, JSON]) -> MateriaError:
    return MateriaError(f"There is nothing at {name!r}.", hint=did_you_mean(name, value), kind="path")
