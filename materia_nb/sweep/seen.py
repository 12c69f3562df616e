"""What can be seen of an agent: what tells it from one that may answer otherwise, and what of it cannot be seen."""

from __future__ import annotations

import dis
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from materia_nb.jsonvalue import JSON

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN: Final = (type(None), bool, int, float, str)
_OURS: Final = __name__.partition(".")[0]


class Seen(NamedTuple):
    """What is seen of a value.

    Attributes:
        key: the same for values that are the same as far as can be seen, also in another kernel.
        unseen: the parts that have no such key, in words: a connection, a lock, a generator.
    """

    key: str
    unseen: tuple[str, ...] = ()


def digest(value: JSON) -> str:
    """Return a short name of a value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def seen(given: object, called: str) -> Seen:
    """Look at a value and all that it is made of.

    Of a function that is its code, its defaults, what it closes over, and the globals that it names: functions in
    turn, modules of one's own by the names that are read of them. Of an object it is its class and its state, as
    ``copy`` and ``pickle`` see it: ``__getstate__`` says what counts. What is installed counts by its name alone.

    Args:
        given: the value.
        called: its name in words.
    """
    look = _Look()
    return Seen(digest(look.at(given, called)), tuple(dict.fromkeys(look.unseen)))


class _Look:
    def __init__(self) -> None:
        self.unseen: list[str] = []
        self._path: list[int] = []
        self._known: dict[int, tuple[object, JSON]] = {}  # with the value, so that no other takes its id

    def at(self, given: Any, where: str) -> JSON:
        """Return the key of a value; of what is made of others a digest, so that it does not grow."""
        if type(given) in _PLAIN:
            return [type(given).__name__, repr(given)]
        if id(given) in self._path:
            return ["round", self._path.index(id(given))]
        if id(given) not in self._known:
            self._path.append(id(given))
            try:
                self._known[id(given)] = given, digest(self._made(given, where))
            finally:
                self._path.pop()
        return self._known[id(given)][1]

    def _made(self, given: Any, where: str) -> JSON:
        if type(given) is dict:
            pairs = [[self.at(key, where), self.at(one, f"{where}.{key}")] for key, one in given.items()]
            return ["dict", *sorted(pairs, key=digest)]
        if type(given) in (list, tuple):
            return [type(given).__name__, *(self.at(one, f"{where}[{n}]") for n, one in enumerate(given))]
        if type(given) in (set, frozenset):
            return [type(given).__name__, *sorted((self.at(one, where) for one in given), key=digest)]
        makers: tuple[tuple[Any, Callable[[Any, str], JSON]], ...] = (
            (bytes | bytearray, lambda one, _: ["bytes", one.hex()]),
            (FunctionType, self._function),
            (MethodType, lambda one, at: ["method", self.at(one.__self__, at), self.at(one.__func__, at)]),
            (CodeType, self._code),
            (ModuleType, lambda one, _: ["module", one.__name__]),
            (type, self._class),
        )
        make = next((make for kind, make in makers if isinstance(given, kind)), self._object)
        return make(given, where)

    def _function(self, given: FunctionType, where: str) -> JSON:
        code, ours = given.__code__, not _installed(given.__module__)
        attributes = {name: one for name, one in vars(given).items() if name != "__wrapped__"}
        kept = [self.at(one, where) for one in (given.__defaults__, given.__kwdefaults__, attributes)]
        read = dict(_closed_over(given))
        if ours:
            read |= {name: given.__globals__[name] for name in _globals(code) if name in given.__globals__}
        inside = [[name, self._read(one, code, f"{where}.{name}")] for name, one in sorted(read.items())]
        name = given.__name__ if ours else [given.__module__, given.__qualname__]
        return ["function", name, kept, inside, self._code(code, where) if ours else None]

    def _read(self, given: Any, code: CodeType, where: str) -> JSON:
        """What some code reads of what is not its own; of a module the names that it may read there."""
        if not isinstance(given, ModuleType) or _installed(given.__name__):
            return self.at(given, where)
        names = sorted({name for one in _codes(code) for name in one.co_names} & set(vars(given)))
        return [given.__name__, [[name, self.at(getattr(given, name), f"{where}.{name}")] for name in names]]

    def _code(self, code: CodeType, where: str) -> JSON:
        """The code of a function without the place where it stands."""
        constants = [self.at(one, where) for one in code.co_consts]
        return [code.co_code.hex(), list(code.co_names), constants]

    def _class(self, given: type, where: str) -> JSON:
        name = [given.__module__, given.__qualname__]
        if _installed(given.__module__):
            return ["class", *name]
        members = [[key, self.at(one, f"{where}.{key}")] for key, one in _members(given)]
        bases = [self.at(one, where) for one in given.__bases__]
        fields = _ADDRESS.sub("", str(vars(given).get("__annotations__", "")))
        return ["class", *name, bases, members, fields]

    def _object(self, given: Any, where: str) -> JSON:
        inner = given.func if isinstance(given, cached_property) else getattr(given, "__wrapped__", None)
        if isinstance(given, property):
            return ["property", *(self.at(one, where) for one in (given.fget, given.fset, given.fdel))]
        if isinstance(given, staticmethod | classmethod | cached_property) or (
            inner is not None and not hasattr(given, "__dict__")
        ):
            return [type(given).__name__, self.at(inner, where)]
        try:
            made = given.__reduce_ex__(4)
            parts: list[Any] = [made] if isinstance(made, str) else list(made[:3])
            parts += [list(one) for one in ([] if isinstance(made, str) else made[3:5]) if one is not None]
        except Exception:  # noqa: BLE001 - what it is that cannot be copied has no one type
            self.unseen.append(f"{where} is a {type(given).__name__}")
            return ["unseen"]
        called = [where, where, where, f"{where} item", f"{where} entry"]
        kept = [self.at(part, name) for part, name in zip(parts, called, strict=False)]
        return ["object", kept, None if inner is None else self.at(inner, where)]


def _closed_over(given: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(given.__code__.co_freevars, given.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing is in it yet
            continue


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _globals(code: CodeType) -> set[str]:
    return {
        str(one.argval)
        for inner in _codes(code)
        for one in dis.get_instructions(inner)
        if one.opname in {"LOAD_GLOBAL", "LOAD_NAME"}
    }


def _members(given: type) -> Iterator[tuple[str, object]]:
    """What is written in a class; not what Python keeps there for itself."""
    whole: Mapping[str, object] = vars(given)
    for name, one in sorted(whole.items()):
        own = isinstance(one, Callable | property | staticmethod | classmethod)  # type: ignore[arg-type]
        kept = name.startswith("__") and not own
        if (
            not kept
            and name != "_abc_impl"
            and not isinstance(one, MemberDescriptorType | GetSetDescriptorType)
        ):
            yield name, one


def _installed(module: str | None) -> bool:
    """Whether a module comes with Python, a package or us, so that its name says what it is."""
    top = (module or "").partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == _OURS:
        return True
    where = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" in where or "dist-packages" in where
