"""The grid of a sweep: which loadout is cast with which request, which agents, and how often; and what tells casts apart.

What can be seen of an agent tells it from one that may answer otherwise, and what of it cannot be seen is said.
"""

from __future__ import annotations

import dis
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

from materia_nb.cast import Prepared
from materia_nb.engine.routing import short
from materia_nb.errors import usage_error
from materia_nb.jsonvalue import JSON

_EVERYONE: Final = "*"
_AS_SET: Final = "as set"
"""What the agents are called that are set anyway."""
_NAME_CHARS: Final = 40


class Setting(NamedTuple):
    """Who answers in some of the casts: a label, and agents by socket or materia."""

    label: str
    agents: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class GridPlace:
    """One cast of the grid.

    Attributes:
        loadout: the loadout's name.
        request: what the request is called: its name, or its beginning.
        agents: the label of the agents.
        repeat: which of the casts that are alike, from 1.
        text: the request.
        prepared: what it is started from; the plan's ``root`` is a directory of this cast alone.
        allow: tools of agents that need not ask.
        key: what tells it from every cast that could come out otherwise.
        unseen: the parts of its agents of which cannot be seen whether they changed: it is never taken for another.
    """

    loadout: str
    request: str
    agents: str
    repeat: int
    text: str
    prepared: Prepared
    allow: tuple[str, ...]
    key: str
    unseen: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[object, ...]:
        """The agents and functions that answer, as they were given."""
        _, table, pins = self.prepared
        names = [line.name for line in table.describe() if line.name is not None]
        agents = [table.default, *(table.for_turn(name, "") for name in names)]
        return (*map(as_given, agents), *(pin.function for pin in pins.values()))

    @property
    def axes(self) -> tuple[str, str, str, int]:
        """Where it is in the grid."""
        return self.loadout, self.request, self.agents, self.repeat

    def known_as(self, key: str) -> Self:
        """Return it under another key, in the directory of that."""
        plan = self.prepared.plan
        moved = self.prepared._replace(plan=replace(plan, root=plan.root.with_name(key)))
        return replace(self, key=key, prepared=moved)


def places_of(
    loadouts: Sequence[str],
    requests: str | Sequence[str] | Mapping[str, str],
    agents: object,
    repeat: int,
    allow: tuple[str, ...],
    *,
    known: Callable[[str], bool],
    prepare: Callable[[str, Mapping[str, Any] | None], Prepared],
    folder: Path,
) -> list[GridPlace]:
    """Return all casts of a sweep.

    Args:
        loadouts: their names.
        requests: what is asked for, or a dict of names to that.
        agents: who answers; see :func:`settings`.
        repeat: how often each is cast.
        allow: tools of agents that need not ask.
        known: whether a name is that of a socket or materia.
        prepare: tells what the casts of a loadout with some agents are started from.
        folder: where the casts are kept.

    Raises:
        MateriaError: it is not a grid (``usage``).
    """
    if repeat < 1 or not loadouts:
        raise usage_error("A sweep needs loadouts, and casts of them.", "repeat from 1")
    asked, chosen = _named_requests(requests), settings(agents, known)
    found = []
    for name, setting in product(dict.fromkeys(loadouts), chosen):
        prepared = prepare(name, setting.agents)
        apart = _told_apart(prepared)
        for (called, text), number in product(asked.items(), range(1, repeat + 1)):
            anew = [uuid4().hex] if apart.unseen else []
            key = digest([apart.key, setting.label, called, text, list(allow), number, *anew])
            plan = prepared.plan
            here = prepared._replace(plan=replace(plan, root=folder / "casts" / key, apart=plan.root))
            found.append(GridPlace(name, called, setting.label, number, text, here, allow, key, apart.unseen))
    return found


def _named_requests(given: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return requests by name: as they were named, else by their first line, numbered where that is not enough.

    Raises:
        MateriaError: there is none, or one is not text (``usage``).
    """
    texts = (
        [given] if isinstance(given, str) else list(given.values() if isinstance(given, Mapping) else given)
    )
    if not texts or not all(isinstance(one, str) for one in texts):
        raise usage_error(
            "A sweep needs requests, as texts.", 'requests=["...", "..."], or a dict of names to texts'
        )
    if isinstance(given, Mapping):
        return {str(name): text for name, text in given.items()}
    found: dict[str, str] = {}
    for text in texts:
        name = short(text, _NAME_CHARS)
        if found.get(name, text) != text:
            name = f"{name} ({len(found) + 1})"
        found[name] = text
    return found


def settings(given: object, known: Callable[[str], bool]) -> list[Setting]:
    """Return who is to answer: each of a list, each of a dict of labels, or one.

    A dict whose keys are sockets, materia or ``*`` is one setting, as in ``wb.cast(agents=...)``; with other keys,
    which are labels, each value is one.

    Raises:
        MateriaError: two have the same name, or keys are of both kinds (``usage``).
    """
    if given is None:
        return [Setting(_AS_SET, None)]
    if isinstance(given, Mapping):
        names = [key for key in given if key == _EVERYONE or known(str(key))]
        if len(names) == len(given) and names:
            return [Setting(_label(given), given)]
        if names:
            raise usage_error(
                f"Of the keys of agents some are sockets or materia ({', '.join(map(str, names))}), others are not.",
                '{"label": {"Plan": ...}, ...} sweeps over agents, {"Plan": ..., "*": ...} is one choice of them',
            )
        found = [Setting(str(label), _for_everyone(one, known)) for label, one in given.items()]
    else:
        many = list(given) if isinstance(given, list | tuple) else [given]
        found = [Setting(_label(one), _for_everyone(one, known)) for one in many]
    labels = [one.label for one in found]
    if not found or len(set(labels)) < len(labels):
        raise usage_error(
            "Two choices of agents have the same name." if found else "There are no agents to choose from.",
            'name them: agents={"one": ..., "other": ...}',
        )
    return found


def _for_everyone(given: object, known: Callable[[str], bool]) -> Mapping[str, object] | None:
    if given is None:
        return None
    if isinstance(given, Mapping) and all(key == _EVERYONE or known(str(key)) for key in given):
        return {str(key): agent for key, agent in given.items()}
    return {_EVERYONE: given}


def _label(given: object) -> str:
    if given is None:
        return _AS_SET
    if isinstance(given, Mapping):
        return ", ".join(
            _label(agent) if key == _EVERYONE and len(given) == 1 else f"{key}: {_label(agent)}"
            for key, agent in given.items()
        )
    if isinstance(given, str):
        return given
    if isinstance(given, list | tuple):
        return " ".join(map(str, given))
    return str(getattr(given, "name", None) or getattr(given, "__name__", None) or type(given).__name__)


def as_given(agent: object) -> object:
    """Return the object that an agent was made of: the function, or the object of a method."""
    function = getattr(agent, "function", agent)
    return getattr(function, "__self__", function)


def _told_apart(prepared: Prepared) -> Seen:
    """Return what tells the casts that are started so from others: loadout, agents and pins."""
    plan, table, pins = prepared
    names = [one.name for one in table.describe() if one.name is not None]
    looked = [seen(table.for_turn(name, ""), name) for name in names]
    looked += [seen(table.default, _EVERYONE), *(seen(one.function, name) for name, one in pins.items())]
    pinned: JSON = [[name, one.pin.as_json()] for name, one in pins.items()]
    key = digest([dict(plan.document), names, [one.key for one in looked], pinned])
    return Seen(key, tuple(words for one in looked for words in one.unseen))


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
