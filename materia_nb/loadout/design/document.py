"""Registry of the operations on designs, and functions that read and replace parts of a document.

A document is the JSON of a loadout as written. Operations do not modify a document. They return a new document that
shares all unchanged parts with the old one, so that unknown fields, spelling and key order are preserved (R28).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Final, TypeVar

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_object, is_number, is_object, without_field
from materia_nb.loadout.check_graph import ID_FORMAT
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import is_socket_id
from materia_nb.loadout.vocabulary import CONDITION_ADVICE, is_condition

DESIGN_KIND = "design"


@dataclass(frozen=True, slots=True)
class DesignChange:
    """The result of an operation on a design.

    Attributes:
        document: the new document.
        summary: a description of the change, which undo and redo display.
        materia: the new definitions of materia that the operation has created or changed, by id; None for a materia
            that it has removed.
        names: the display names of the sockets after the change, by id; empty until the change is applied.
    """

    document: Object
    summary: str
    materia: Mapping[str, Object | None] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on designs.

    Attributes:
        name: the name of the operation.
        function: the function, which takes a document, then the arguments, and returns the change.
        on_materia: True if the function takes the materia definitions of the config after the document.
    """

    name: str
    function: Callable[..., DesignChange]
    on_materia: bool = False

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name, without the document or the materia definitions."""
        all_parameters = list(signature(self.function).parameters.items())
        return dict(all_parameters[2 if self.on_materia else 1 :])

    @property
    def about(self) -> str:
        """A description of the operation: the first line of its docstring, without the part about errors."""
        line = (self.function.__doc__ or "").splitlines()[0]
        return re.split(r"[.;] (?:raise|see) ", line)[0].removesuffix(".")

    def __call__(self, document: Object, definitions: Object, *arguments: Any, **options: Any) -> DesignChange:
        """Run the operation and return the change.

        Raises:
            MateriaError: the operation is not possible, or an argument has the wrong type.
        """
        owners = (document, definitions) if self.on_materia else (document,)
        bound_arguments = signature(self.function).bind(*owners, *arguments, **options)
        for name, parameter in self.parameters.items():
            check_argument(parameter, bound_arguments.arguments.get(name, parameter.default), self.name)
        return self.function(*bound_arguments.args, **bound_arguments.kwargs)


def check_argument(parameter: Parameter, value: object, owner: str) -> None:
    """Raise MateriaError if ``value`` does not have the type of a parameter of the operation ``owner``."""
    type_ = parameter.annotation.removesuffix(" | None")
    has_type, expected_type = _ARGUMENT_TYPES.get(type_, (None, ""))
    if has_type and not has_type(value) and (value is not None or type_ == parameter.annotation):
        message = f"{parameter.name.strip('_')} of {owner} is {brief(value)}, not {expected_type}"
        raise design_error(message, "design", f"use {expected_type}")


def _are_strings(value: object) -> bool:
    if isinstance(value, Collection):
        return not isinstance(value, str) and all(isinstance(entry, str) for entry in value)
    return isinstance(value, Iterable)


def _is_point(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value))


_ARGUMENT_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "str": (lambda value: isinstance(value, str), "a string"),
    "int": (lambda value: is_number(value) and isinstance(value, int), "a whole number"),
    "Iterable[str]": (_are_strings, "a list of strings"),
    "Mapping[str, JSON]": (is_object, "an object"),
    "Mapping[str, tuple[float, float] | None]": (
        lambda value: is_object(value) and all(position is None or _is_point(position) for position in value.values()),
        "an object with a column and a row for each socket",
    ),
}
"""Function that checks an argument, and description of valid arguments, by the annotation of the parameter.

Arguments with any other annotation are checked by the operation.
"""


_Operation = TypeVar("_Operation", bound=Callable[..., DesignChange])
OPERATIONS: Final[dict[str, Operation]] = {}
"""All operations, by name. Fixes and the panel use them, and the methods of :class:`Design` are generated from them."""


def operation(function: _Operation) -> _Operation:
    """Register a function as an operation; its first argument is the document."""
    OPERATIONS[function.__name__] = Operation(function.__name__, function)
    return function


def materia_operation(function: _Operation) -> _Operation:
    """Register a function as an operation; its first arguments are the document and the materia definitions."""
    OPERATIONS[function.__name__] = Operation(function.__name__, function, on_materia=True)
    return function


def design_error(message: str, where: str, hint: str) -> MateriaError:
    """Return an error for an operation that is not possible."""
    return MateriaError(message, where=where, hint=hint, kind=DESIGN_KIND)


def exact_text(value: JSON) -> str:
    """Return a string that differs for two values if their JSON types, contents or key order differ."""
    return json.dumps(value, ensure_ascii=True)


def as_json(value: JSON, where: str) -> JSON:
    """Return a deep copy of ``value``; raise MateriaError if it is not JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        hint = "use only strings, numbers, lists and objects"
        raise design_error(f"the value is not JSON: {error}", where, hint) from error


def with_field(owner: Object, name: str, value: JSON) -> Object:
    """Return a copy of ``owner`` with a field set, or without the field if ``value`` is None or empty."""
    if value is None or value in ([], {}):
        return without_field(owner, name)
    return {**owner, name: value}


def with_value(owner: Object, name: str, field: str, value: JSON, where: str) -> tuple[Object, str]:
    """Return a copy of ``owner`` with a field set, or removed if ``value`` is None, and a summary of the change.

    Args:
        owner: the object.
        name: the name of the object in the summary.
        field: the name of the field.
        value: the new value, or None.
        where: the path of the field for errors.

    Raises:
        MateriaError: the value is not JSON.
    """
    if value is None:
        summary = f"removed {field} from {name}" if field in owner else f"{name} has no {field}"
        return without_field(owner, field), summary
    value = as_json(value, where)
    value_text = f" to {value}" if isinstance(value, str) and len(value) < _MAX_SUMMARY_VALUE else ""
    return {**owner, field: value}, f"set {field} of {name}{value_text}"


_MAX_SUMMARY_VALUE: Final = 40
"""Length below which the summary of a change includes a new string value, in characters."""


def with_renamed_key(owner: Object, old: str, new: str) -> Object:
    """Return a copy of ``owner`` with a key renamed in place."""
    return {new if key == old else key: value for key, value in owner.items()}


def objects_in(document: Object, name: str) -> Object:
    """Return the field ``sockets``, ``loops`` or ``layout`` of a document, or an empty object if the field is missing.

    Raises:
        MateriaError: the value of the field is not an object.
    """
    return _require_object(document.get(name), name)


def list_in(owner: Object, name: str, where: str) -> list[JSON]:
    """Return the list in a field of a socket or loop, or an empty list if the field is missing.

    Raises:
        MateriaError: the value of the field is not a list.
    """
    value = owner.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise design_error(f"{name} is {brief(value)}, not a list", where, "correct the file first")
    return value


def _require_object(value: JSON, where: str) -> Object:
    if value is None:
        return {}
    if not is_object(value):
        raise design_error(f"{where} is {brief(value)}, not an object", where, "correct the file first")
    return value


def _part_in(document: Object, kind: str, id_: str) -> Object:
    parts = objects_in(document, f"{kind}s")
    if id_ not in parts:
        raise design_error(f"the {kind} {id_!r} does not exist", f"{kind}s", did_you_mean(str(id_), parts))
    return _require_object(parts[id_], f"{kind}s.{id_}")


def socket_in(document: Object, id_: str) -> Object:
    """Return a socket as written; raise MateriaError if it does not exist or is not an object."""
    return _part_in(document, "socket", id_)


def with_socket(document: Object, id_: str, socket: Object) -> Object:
    """Return a copy of the document with a socket added or replaced."""
    return {**document, "sockets": {**objects_in(document, "sockets"), id_: socket}}


def loop_in(document: Object, id_: str) -> Object:
    """Return a loop as written; raise MateriaError if it does not exist or is not an object."""
    return _part_in(document, "loop", id_)


def with_loop(document: Object, id_: str, loop: Object) -> Object:
    """Return a copy of the document with a loop added or replaced."""
    return {**document, "loops": {**objects_in(document, "loops"), id_: loop}}


def check_condition(when: JSON, where: str) -> None:
    """Raise MateriaError if ``when`` is not a known condition (R3)."""
    if not is_condition(when):
        raise design_error(f"the condition cannot be {brief(when)}", where, CONDITION_ADVICE)


def check_target(document: Object, to: JSON, where: str, *, end: bool = True) -> None:
    """Raise MateriaError if ``to`` is not an existing socket. If ``end`` is True, ``to`` may also be ``"end"``."""
    known_targets = [*objects_in(document, "sockets"), *([END] if end else [])]
    if to not in known_targets:
        raise design_error(f"the socket {brief(to)} does not exist", where, did_you_mean(str(to), known_targets))


def check_new_id(document: Object, id_: JSON) -> None:
    """Raise MateriaError if ``id_`` is not a valid socket id or already exists (R26)."""
    if not is_socket_id(id_):
        raise design_error(f"{brief(id_)} is not a valid socket id", "sockets", f"use {ID_FORMAT}, but not `end`")
    if id_ in objects_in(document, "sockets"):
        raise design_error(f"the socket {id_!r} already exists", "sockets", "choose another id")


def counts_in_words(*counts: tuple[int, str]) -> str:
    """Return a phrase such as ``, with 2 edges and 1 exit`` that omits counts of 0; "" if all counts are 0."""
    *others, last = [counted(count, noun) for count, noun in counts if count] or [""]
    return f", with {', '.join(others)} and {last}" if others else f", with {last}" if last else ""


# -- references to sockets --------------------------------------------------------------------

_REFERENCES: Final = tuple(
    tuple(path.split("."))
    for path in (
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
"""Paths of all fields of a loadout that contain a socket id, where ``*`` matches every entry.

If a reference is removed, a preceding part of the path that is marked with ``!`` is removed too. For example, an edge
is removed if its ``to`` is removed, and a list is removed if its last entry is removed.
"""
_REMOVED_VALUE: Final = object()


def with_renamed_sockets(document: Object, new: Mapping[str, str]) -> Object:
    """Return a copy of a loadout with sockets renamed, including all references and positions.

    ``new`` maps old ids to new ids. Unchanged parts are shared with the old document.
    """
    changed_document = with_renamed_values(document, _REFERENCES, new)
    for keys in (("sockets",), ("layout", "sockets")):
        changed_document = _change_at_path(changed_document, keys, lambda entries: _with_renamed_keys(entries, new))
    return changed_document


def with_renamed_values(document: Object, paths: Iterable[Sequence[str]], new: Mapping[str, str]) -> Object:
    """Return a copy of a loadout with the names at certain paths replaced.

    Args:
        document: the loadout.
        paths: the paths, such as ``("sockets", "*", "advance", "cursor")``, where ``*`` matches every entry.
        new: the new name for each old name.
    """
    for path in paths:
        document = _change_at_path(document, path, lambda name: new.get(name, name) if isinstance(name, str) else name)
    return document


def without_references(document: Object, is_removed: Callable[[JSON], bool]) -> Object:
    """Return a copy of a loadout without the edges, exits, loop members and other references to certain sockets.

    ``is_removed`` is called with each reference, and returns True to remove it.
    """
    for path in _REFERENCES:
        document = _change_at_path(document, path, lambda name: _REMOVED_VALUE if is_removed(name) else name)
    return document


def without_socket(document: Object, id_: str) -> Object:
    """Return a copy of a loadout without a socket and without the edges, exits and loop members that refer to it.

    A loop that has no other members is removed too.
    """
    document = without_references(document, lambda name: name == id_)
    for keys in (("sockets", id_), ("layout", "sockets", id_)):
        document = _change_at_path(document, keys, lambda _: _REMOVED_VALUE)
    return document


def _with_renamed_keys(entries: JSON, new: Mapping[str, str]) -> JSON:
    if not any(old in as_object(entries) for old in new):
        return entries
    return {new.get(key, key): entry for key, entry in entries.items()}


def _change_at_path(value: JSON, path: Sequence[str], change: Callable[[JSON], JSON], *, marked: bool = False) -> JSON:
    """Apply ``change`` to the values at ``path`` inside ``value``, and return the result.

    If nothing changes, the result is ``value`` itself. If ``marked`` is True and the first part of ``path`` is removed,
    the result is ``_REMOVED_VALUE`` (see :data:`_REFERENCES`).
    """
    if not path:
        return change(value)
    name, rest = path[0].removesuffix("!"), path[1:]
    entries: dict[Any, JSON] = dict(enumerate(value)) if isinstance(value, list) else as_object(value)
    changed_entries = {
        key: _change_at_path(entry, rest, change, marked=path[0].endswith("!"))
        for key, entry in entries.items()
        if name in ("*", key)
    }
    if all(entry is entries[key] for key, entry in changed_entries.items()):
        return value
    remaining_entries = {
        key: entry for key, entry in {**entries, **changed_entries}.items() if entry is not _REMOVED_VALUE
    }
    if marked and (not remaining_entries if name == "*" else name not in remaining_entries):
        return _REMOVED_VALUE
    return [*remaining_entries.values()] if isinstance(value, list) else remaining_entries
