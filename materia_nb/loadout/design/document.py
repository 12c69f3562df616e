"""What the operations on a design share: their table, looking parts up and putting them back.

A document is a raw loadout as written. It is never changed in place: an operation returns a new one that shares
every untouched part with the old, so unknown fields, spelling and the order of keys survive (R28).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Final, TypeVar

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_object, is_number, is_object
from materia_nb.loadout.check_graph import ID_FORM
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import is_socket_id
from materia_nb.loadout.vocabulary import CONDITION_ADVICE, is_condition

DESIGN_KIND = "design"


@dataclass(frozen=True, slots=True)
class DesignChange:
    """What an operation makes of a document, and what it did in words.

    ``materia`` are the definitions that it changes or makes, whole, by id; None stands for one that is not there.
    """

    document: Object
    words: str
    materia: Mapping[str, Object | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be done to a design: a function of its document, and of the definitions of its materia if it needs them."""

    name: str
    function: Callable[..., DesignChange]
    on_materia: bool = False

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What it is given beside the design, by name."""
        named = list(signature(self.function).parameters.items())
        return dict(named[2 if self.on_materia else 1 :])

    @property
    def about(self) -> str:
        """What it does, in one line: that of its docstring, without what it raises."""
        line = (self.function.__doc__ or "").splitlines()[0]
        return re.split(r"[.;] (?:[Rr]aises|see) ", line)[0].removesuffix(".")

    def __call__(
        self, document: Object, definitions: Object, *arguments: Any, **options: Any
    ) -> DesignChange:
        """Return what it makes of a document; raises MateriaError when it cannot be done, or an argument has a wrong type."""
        owners = (document, definitions) if self.on_materia else (document,)
        bound = signature(self.function).bind(*owners, *arguments, **options)
        for name, parameter in self.parameters.items():
            check_argument(parameter, bound.arguments.get(name, parameter.default), self.name)
        return self.function(*bound.args, **bound.kwargs)


def check_argument(parameter: Parameter, value: object, owner: str) -> None:
    """Raise MateriaError when a value does not fit the type of a parameter of an operation or act; ``owner`` is its name."""
    type_ = parameter.annotation.removesuffix(" | None")
    fits, words = _ARGUMENT_TYPES.get(type_, (None, ""))
    if fits and not fits(value) and (value is not None or type_ == parameter.annotation):
        what = f"{parameter.name.strip('_')} of {owner} is {brief(value)}, not {words}"
        raise design_error(what, "design", f"give {words}")


def _are_texts(value: object) -> bool:
    if isinstance(value, Collection):
        return not isinstance(value, str) and all(isinstance(one, str) for one in value)
    return isinstance(value, Iterable)


def _is_spot(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value))


_ARGUMENT_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "int": (lambda value: is_number(value) and isinstance(value, int), "a whole number"),
    "Iterable[str]": (_are_texts, "a list of texts"),
    "Mapping[str, JSON]": (is_object, "an object"),
    "tuple[float, float]": (_is_spot, "a column and a row"),
    "Mapping[str, tuple[float, float] | None]": (
        lambda value: is_object(value) and all(one is None or _is_spot(one) for one in value.values()),
        "an object with a column and a row for each socket",
    ),
}
"""Check of an argument and what it must be in words, by the parameter's type; an argument of another type is checked by its operation."""


_Operation = TypeVar("_Operation", bound=Callable[..., DesignChange])
OPERATIONS: Final[dict[str, Operation]] = {}
"""Every operation by its name. Methods of designs, steps of fixes and messages of the panel are made from these rows."""


def operation(function: _Operation) -> _Operation:
    """Make an operation of a function of a document."""
    OPERATIONS[function.__name__] = Operation(function.__name__, function)
    return function


def materia_operation(function: _Operation) -> _Operation:
    """Make an operation of a function of a document and of the definitions of the materia."""
    OPERATIONS[function.__name__] = Operation(function.__name__, function, on_materia=True)
    return function


def design_error(what: str, where: str, hint: str) -> MateriaError:
    """Make the error of an operation that cannot be done; nothing was changed."""
    return MateriaError(what, where=where, hint=hint, kind=DESIGN_KIND)


def exact(value: JSON) -> str:
    """Write a value so that two texts are equal only if value, spelling and order of keys are."""
    return json.dumps(value, ensure_ascii=True)


def as_json(value: JSON, where: str) -> JSON:
    """Return a copy of ``value`` that nobody else holds; raises MateriaError when it is not JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise design_error(
            f"this is not JSON: {error}", where, "give text, numbers, lists and objects"
        ) from error


def with_field(owner: Object, name: str, value: JSON) -> Object:
    """Return ``owner`` with a field set; None, an empty list or an empty object takes it away."""
    if value is None or value in ([], {}):
        return without(owner, name)
    return {**owner, name: value}


def without(owner: Object, name: str) -> Object:
    """Return ``owner`` without a field."""
    return {key: value for key, value in owner.items() if key != name}


def renamed(owner: Object, old: str, new: str) -> Object:
    """Return ``owner`` with one key spelled anew, in its place."""
    return {new if key == old else key: value for key, value in owner.items()}


def objects_in(document: Object, name: str) -> Object:
    """Return ``sockets``, ``loops`` or ``layout`` of a document; one that is absent is empty.

    Raises:
        MateriaError: it is there and no object, so nothing can be put into it.
    """
    return _object(document.get(name), name)


def list_in(owner: Object, name: str, where: str) -> list[JSON]:
    """Return a list of a socket or loop, empty when it is absent; raises MateriaError when it is none."""
    value = owner.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise design_error(f"{name} is {brief(value)}, not a list", where, "correct it in the file first")
    return value


def _object(value: JSON, where: str) -> Object:
    if value is None:
        return {}
    if not is_object(value):
        raise design_error(f"{where} is {brief(value)}, not an object", where, "correct it in the file first")
    return value


def _part_in(document: Object, kind: str, id_: str) -> Object:
    parts = objects_in(document, f"{kind}s")
    if id_ not in parts:
        raise design_error(f"there is no {kind} {id_!r}", f"{kind}s", did_you_mean(str(id_), parts))
    return _object(parts[id_], f"{kind}s.{id_}")


def socket_in(document: Object, id_: str) -> Object:
    """Return a socket; raises MateriaError when there is no such socket or it is not an object."""
    return _part_in(document, "socket", id_)


def with_socket(document: Object, id_: str, socket: Object) -> Object:
    """Return the document with a socket put in."""
    return {**document, "sockets": {**objects_in(document, "sockets"), id_: socket}}


def loop_in(document: Object, id_: str) -> Object:
    """Return a loop; raises MateriaError when there is no such loop or it is not an object."""
    return _part_in(document, "loop", id_)


def with_loop(document: Object, id_: str, loop: Object) -> Object:
    """Return the document with a loop put in."""
    return {**document, "loops": {**objects_in(document, "loops"), id_: loop}}


def check_when(when: JSON, where: str) -> None:
    """Raise MateriaError when a condition is not canonical (R3)."""
    if not is_condition(when):
        raise design_error(f"the condition is {brief(when)}", where, CONDITION_ADVICE)


def check_target(document: Object, to: JSON, where: str, *, end: bool = True) -> None:
    """Raise MateriaError when a reference leads neither to a socket nor, where allowed, to ``end``."""
    known = [*objects_in(document, "sockets"), *([END] if end else [])]
    if to not in known:
        raise design_error(f"there is no socket {brief(to)}", where, did_you_mean(str(to), known))


def check_new_id(document: Object, id_: JSON) -> None:
    """Raise MateriaError when a socket cannot be called so, or another one is (R26)."""
    if not is_socket_id(id_):
        raise design_error(
            f"{brief(id_)} cannot be the id of a socket", "sockets", f"use {ID_FORM}; end is reserved"
        )
    if id_ in objects_in(document, "sockets"):
        raise design_error(f"there is a socket {id_!r} already", "sockets", "choose another id")


def counted_words(*counts: tuple[int, str]) -> str:
    """Put what goes with something into words: ``, with 2 edges and 1 exit``; empty when nothing does."""
    counted_nouns = [counted(count, noun) for count, noun in counts if count]
    if not counted_nouns:
        return ""
    return f", with {' and '.join([', '.join(counted_nouns[:-1]), counted_nouns[-1]] if len(counted_nouns) > 1 else counted_nouns)}"


# -- references to sockets --------------------------------------------------------------------

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
