"""Events as the journal has them: the fields of each as JSON, written and read (R29)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from materia_nb.engine.conversation import ToolCall, call_from
from materia_nb.engine.events import ABOUT, EVENTS, Event
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON


class _Form(NamedTuple):
    """How the values of one kind of field are written and read; ``read`` raises ValueError."""

    write: Callable[[Any], JSON]
    read: Callable[[JSON], Any]


def _same(value: Any) -> Any:
    return value


def _is(*types: type) -> Callable[[JSON], Any]:
    def read(value: JSON) -> Any:
        if isinstance(value, bool) and bool not in types:
            raise ValueError(value)
        if not isinstance(value, types):
            raise ValueError(value)  # noqa: TRY004 - one kind of error for all forms
        return value

    return read


def _each(one: Callable[[JSON], Any]) -> Callable[[JSON], Any]:
    def read(value: JSON) -> Any:
        if not isinstance(value, list):
            raise ValueError(value)  # noqa: TRY004
        return tuple(one(item) for item in value)

    return read


def _call(value: JSON) -> ToolCall:
    call = call_from(value)
    if call is None:
        raise ValueError(value)
    return call


def usage_from(value: JSON) -> Usage:
    """Read the usage of an output; what is not a number is not known (R56). Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(value)  # noqa: TRY004 - one kind of error for all
    given = [value.get(name) for name in ("cost", "input", "output", "cached", "reasoning")]
    cost, *counts = [n if isinstance(n, (int, float)) and not isinstance(n, bool) else None for n in given]
    try:
        tokens = [None if n is None else int(n) for n in counts]
        paid = None if cost is None else float(cost)
        return Usage(tokens[0], tokens[1], paid, cached=tokens[2], reasoning=tokens[3])
    except OverflowError as error:  # not finite
        raise ValueError(value) from error


def _one_of(*words: str) -> _Form:
    def read(value: JSON) -> Any:
        if value not in words:
            raise ValueError(value)
        return value

    return _Form(_same, read)


def _place(value: JSON) -> int | None:
    return None if value is None else int(_is(int)(value))


_FORMS: Final[Mapping[str, _Form]] = {
    "str": _Form(_same, _is(str)),
    "int": _Form(_same, _is(int)),
    "float": _Form(_same, _is(int, float)),
    "bool": _Form(_same, _is(bool)),
    "JSON": _Form(_same, _same),
    "Mapping[str, JSON]": _Form(dict, _is(dict)),
    "tuple[str, ...]": _Form(list, _each(_is(str))),
    "tuple[int | None, ...]": _Form(list, _each(_place)),
    "tuple[Mapping[str, JSON], ...]": _Form(list, _each(_is(dict))),
    "ToolCall": _Form(lambda call: call.as_json(), _call),
    "tuple[ToolCall, ...]": _Form(lambda calls: [call.as_json() for call in calls], _each(_call)),
    "Usage": _Form(Usage.as_json, usage_from),
    "Decided": _one_of("once", "always", "denied"),
    "LaneEnd": _one_of("accepted", "failed", "interrupted"),
}


class Field(NamedTuple):
    """One field of an event in the journal."""

    name: str
    key: str
    form: _Form
    default: Any


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def fields(event: type[Event]) -> tuple[Field, ...]:
    """Return the fields of an event as the journal has them, but ``ts``, ``transition`` and those of ``about``."""
    return _FIELDS[event]


def _fields(event: type[Event]) -> tuple[Field, ...]:
    return tuple(
        Field(one.name, _camel(one.name), _FORMS[str(one.type).removesuffix(" | None")], _default(one))
        for one in dataclasses.fields(event)
        if one.name not in ("ts", "about", "transition")
    )


def _default(one: dataclasses.Field[Any]) -> Any:
    if one.default_factory is not dataclasses.MISSING:
        return one.default_factory()
    return one.default


_FIELDS: Final = {event: _fields(event) for event in EVENTS.values()}
_LEFT_OUT: Final = frozenset({"changed_files", "process", "session", "lane"})
"""Fields that most events have no use for: they are left out when they are empty."""
_ABOUT: Final = frozenset(
    event for event in EVENTS.values() if any(one.name == "about" for one in dataclasses.fields(event))
)


def to_json(event: Event) -> dict[str, JSON]:
    """Return the data of an event as the journal has them."""
    kind = type(event)
    data: dict[str, JSON] = dict(event.about) if kind in _ABOUT else {}  # type: ignore[attr-defined]
    given = event.__dict__
    for name, key, form, _ in _FIELDS[kind]:
        value = given[name]
        if value is None or (not value and (value == {} or (name in _LEFT_OUT and value in ((), "")))):
            continue
        data[key] = value if form.write is _same else form.write(value)
    return data


def from_json(kind: str, data: Mapping[str, JSON], ts: int = 0, *, lenient: bool = False) -> Event | None:
    """Read an event; None when its type is unknown.

    Args:
        kind: its type.
        data: its fields, as the journal has them.
        ts: when.
        lenient: whether a field of the wrong type counts as not said.

    Raises:
        MateriaError: a field that must be there is missing, or one is of the wrong type (``damaged_journal``).
    """
    event = EVENTS.get(kind)
    if event is None:
        return None
    given: dict[str, Any] = {"ts": ts}
    if event in _ABOUT:
        given["about"] = {key: data[key] for key in ABOUT if key in data}
    for name, key, form, default in _FIELDS[event]:
        value = data.get(key)
        if value is None:
            if default is dataclasses.MISSING:
                raise _damaged(kind, key, "is missing")
            continue
        try:
            given[name] = form.read(value)
        except ValueError:
            if not lenient or default is dataclasses.MISSING:
                raise _damaged(kind, key, "is of the wrong type") from None
    return event(**given)


def _damaged(kind: str, key: str, why: str) -> MateriaError:
    return MateriaError(
        f"The journal is damaged: the field {key!r} of an event {kind!r} {why}.",
        hint="restore the file, or cut it off before that line to go on from there",
        kind="damaged_journal",
    )
