"""The grid of a sweep: the combinations of loadouts, requests and agents, and fingerprints that identify their casts.

A fingerprint covers all parts of an agent that can be read and compared. The other parts, such as connections, are
opaque.
"""

from __future__ import annotations

import dis
import hashlib
import json
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import is_
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, Self, TypeAlias
from uuid import uuid4

from materia_nb.cast import Prepared
from materia_nb.engine.routing import short_label
from materia_nb.errors import usage_error
from materia_nb.jsonvalue import JSON

_ALL_SOCKETS: Final = "*"
_WORKBENCH_AGENTS: Final = "as set"  # Label for the agents of the workbench, which a sweep uses by default.
_NAME_CHARS: Final = 40


Axes: TypeAlias = tuple[str, str, str, int]
"""The position of a cast in the grid: its loadout, request, agents and repeat."""


class AgentChoice(NamedTuple):
    """A label and the agents of a cast, by socket or materia. None selects the agents of the workbench."""

    label: str
    agents: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cast of the grid.

    Attributes:
        loadout: the name of the loadout.
        request: the name of the request, or the beginning of its text.
        agents: the label of the agents.
        repeat: the number of this cast among otherwise identical casts, starting at 1.
        text: the text of the request.
        prepared: the plan, agents and pins of the cast. The ``root`` of the plan is a directory that only this cast
            uses.
        allow: the tools that agents may use without approval.
        key: the key that identifies the cast in the file of rows. Casts that could have different outcomes have
            different keys.
        opaque: descriptions of the parts of the agents in which changes cannot be detected. A cast with opaque
            parts is never reused.
    """

    loadout: str
    request: str
    agents: str
    repeat: int
    text: str
    prepared: Prepared
    allow: tuple[str, ...]
    key: str
    opaque: tuple[str, ...] = ()

    @property
    def agent_objects(self) -> list[object]:
        """The agents of the cast, and the functions that its pins call."""
        _, table, pins = self.prepared
        names = [line.name for line in table.describe() if line.name is not None]
        agents = [table.default, *(table.for_turn(name, "") for name in names)]
        return [*agents, *(pin.function for pin in pins.values())]

    @property
    def axes(self) -> Axes:
        """The position of the cell in the grid: its loadout, request, agents and repeat."""
        return self.loadout, self.request, self.agents, self.repeat

    def with_key(self, key: str) -> Self:
        """Return a copy of the cell with a different key and the directory that belongs to that key."""
        plan = self.prepared.plan
        prepared = self.prepared._replace(plan=replace(plan, root=plan.root.with_name(key)))
        return replace(self, key=key, prepared=prepared)


def grid_cells(
    loadouts: Sequence[str],
    requests: str | Sequence[str] | Mapping[str, str],
    agents: object,
    repeat: int,
    allow: tuple[str, ...],
    *,
    is_known: Callable[[str], bool],
    prepare: Callable[[str, Mapping[str, Any] | None], Prepared],
    folder: Path,
) -> list[GridCell]:
    """Return a grid cell for each cast of a sweep.

    Args:
        loadouts: the names of the loadouts.
        requests: the requests, or a dict from names to requests.
        agents: the choices of agents; see :func:`agent_choices`.
        repeat: the number of casts of each combination.
        allow: the tools that agents may use without approval.
        is_known: a predicate that returns True if a name is a socket or materia.
        prepare: a function that returns the plan, agents and pins for a loadout and a choice of agents.
        folder: the directory of the sweep.

    Raises:
        MateriaError: kind ``usage``: the grid is empty or ambiguous.
    """
    if repeat < 1 or not loadouts:
        raise usage_error("A sweep needs at least one loadout and one repeat.", "set repeat to 1 or more")
    texts, choices = _named_requests(requests), agent_choices(agents, is_known)
    cells = []
    for loadout, choice in product(dict.fromkeys(loadouts), choices):
        prepared = prepare(loadout, choice.agents)
        plan, common = prepared.plan, _cast_fingerprint(prepared)
        for (request, text), number in product(texts.items(), range(1, repeat + 1)):
            unique_parts = [uuid4().hex] if common.opaque else []
            key = digest([common.key, choice.label, request, text, list(allow), number, *unique_parts])
            isolated = prepared._replace(plan=replace(plan, root=folder / "casts" / key, work_root=plan.root))
            cell = GridCell(loadout, request, choice.label, number, text, isolated, allow, key, common.opaque)
            cells.append(cell)
    return cells


def _named_requests(requests: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return requests by name. The default name is the first line of the request, with a number if it is not unique.

    Raises:
        MateriaError: kind ``usage``: there are no requests, or a request is not a string.
    """
    if isinstance(requests, str):
        requests = [requests]
    texts = list(requests.values() if isinstance(requests, Mapping) else requests)
    if not texts or not all(isinstance(text, str) for text in texts):
        hint = 'pass requests=["...", "..."], or a dict from names to requests'
        raise usage_error("A sweep needs requests, each of them a string.", hint)
    if isinstance(requests, Mapping):
        return {str(name): text for name, text in requests.items()}
    text_by_name: dict[str, str] = {}
    for text in texts:
        name = short_label(text, _NAME_CHARS)
        if text_by_name.get(name, text) != text:
            name = f"{name} ({len(text_by_name) + 1})"
        text_by_name[name] = text
    return text_by_name


def agent_choices(agents: object, is_known: Callable[[str], bool]) -> list[AgentChoice]:
    """Return the choices of agents, each with its label.

    Each entry of a list is one choice. A dict whose keys are sockets, materia or ``*`` is also one choice, as in
    ``wb.cast(agents=...)``, even if only one key is of this kind. In any other dict, the keys are labels and the
    values are choices. Names in a choice are checked when its casts are prepared.

    Raises:
        MateriaError: kind ``usage``: two choices have the same label, or there are none.
    """
    if agents is None:
        return [AgentChoice(_WORKBENCH_AGENTS, None)]
    if isinstance(agents, Mapping):
        if any(is_known(str(key)) for key in agents):
            return [AgentChoice(_label(agents), agents)]
        choices = [AgentChoice(str(label), _agent_mapping(agent)) for label, agent in agents.items()]
    else:
        entries = list(agents) if isinstance(agents, list | tuple) else [agents]
        choices = [AgentChoice(_label(agent), _agent_mapping(agent)) for agent in entries]
    if not choices:
        raise usage_error("The argument agents is empty.", "omit the argument to use the agents of the workbench")
    if len({choice.label for choice in choices}) < len(choices):
        hint = 'label the choices: {"first": ..., "second": ...}'
        raise usage_error("Two choices of agents have the same name.", hint)
    return choices


def _agent_mapping(agent: object) -> Mapping[str, object] | None:
    if isinstance(agent, Mapping):
        return {str(key): value for key, value in agent.items()}
    return None if agent is None else {_ALL_SOCKETS: agent}


def _label(agent: object) -> str:
    if agent is None:
        return _WORKBENCH_AGENTS
    if isinstance(agent, Mapping):
        if agent.keys() == {_ALL_SOCKETS}:
            return _label(agent[_ALL_SOCKETS])
        return ", ".join(f"{key}: {_label(value)}" for key, value in agent.items())
    if isinstance(agent, str):
        return agent
    if isinstance(agent, list | tuple):
        return " ".join(map(str, agent))
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", None) or type(agent).__name__)


class AgentMemory:
    """Records the agents that were used in this kernel, each with the first key of its cast.

    An agent that counts its calls has a different fingerprint after each call. Its earlier casts are still found,
    because the first key of the agent object is used. Another object with the same state does not get this key.
    """

    def __init__(self) -> None:
        self._first_keys: dict[str, tuple[str, list[weakref.ref[Any]]]] = {}

    def first_key(self, key: str, agents: Iterable[object]) -> str:
        """Return the first key of these agent objects, or ``key`` if they have not been recorded."""
        first, refs = self._first_keys.get(key, (key, []))
        sources = [_source(agent) for agent in agents]
        is_same = len(refs) == len(sources) and all(map(is_, (ref() for ref in refs), sources))
        return first if is_same else key

    def remember(self, key: str, first_key: str, agents: Iterable[object]) -> None:
        """Record the first key of agents whose current key is ``key``."""
        if key != first_key:
            with suppress(TypeError):  # an object without weak references is never recognized
                self._first_keys[key] = first_key, [weakref.ref(_source(agent)) for agent in agents]


def _source(agent: object) -> object:
    """Return the object that contains the state of an agent: its function, or the instance of a bound method."""
    function = getattr(agent, "function", agent)
    return getattr(function, "__self__", function)


# -- fingerprints ----------------------------------------------------------------------------


class Fingerprint(NamedTuple):
    """The fingerprint of a value, such as an agent.

    Attributes:
        key: the key of the value. Two values have the same key if all their readable parts are equal, even in different
            kernels.
        opaque: descriptions of the unreadable parts, such as a connection, a lock or a generator.
    """

    key: str
    opaque: tuple[str, ...] = ()


_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_SCALAR_TYPES: Final = (type(None), bool, int, float, str)
_PACKAGE: Final = __name__.partition(".")[0]


def digest(value: JSON) -> str:
    """Return a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _cast_fingerprint(prepared: Prepared) -> Fingerprint:
    """Return the fingerprint of the loadout, agents and pins of a cast."""
    plan, table, pins = prepared
    names = [entry.name for entry in table.describe() if entry.name is not None]
    parts = [fingerprint_of(table.for_turn(name, ""), name) for name in names]
    parts += [fingerprint_of(table.default, _ALL_SOCKETS)]
    parts += [fingerprint_of(pin.function, name) for name, pin in pins.items()]
    pinned: JSON = [[name, pin.pin.as_json()] for name, pin in pins.items()]
    key = digest([dict(plan.document), names, [part.key for part in parts], pinned])
    return Fingerprint(key, tuple(text for part in parts for text in part.opaque))


def fingerprint_of(value: object, name: str) -> Fingerprint:
    """Return the fingerprint of a value and all its parts.

    The parts of a function are its code, defaults and closure, and the globals that it uses, including other functions.
    Of the user's modules, only the attributes that the function uses are included. The parts of an object are its class
    and its state, as ``copy`` and ``pickle`` read it; define ``__getstate__`` to restrict the state. Installed code is
    identified only by its name.

    Args:
        value: the value.
        name: the name of the value in descriptions of opaque parts.
    """
    builder = _FingerprintBuilder()
    return Fingerprint(digest(builder.key(value, name)), tuple(dict.fromkeys(builder.opaque)))


class _FingerprintBuilder:
    def __init__(self) -> None:
        self.opaque: list[str] = []
        self._path: list[int] = []
        self._known: dict[int, tuple[object, JSON]] = {}  # keeps the value alive, so that its id is not reused

    def key(self, value: Any, where: str) -> JSON:
        """Return the key of a value. The key of a compound value is a digest of limited length."""
        if type(value) in _SCALAR_TYPES:
            return [type(value).__name__, repr(value)]
        if id(value) in self._path:
            return ["cycle", self._path.index(id(value))]
        if id(value) not in self._known:
            self._path.append(id(value))
            try:
                self._known[id(value)] = value, digest(self._compound(value, where))
            finally:
                self._path.pop()
        return self._known[id(value)][1]

    def _compound(self, value: Any, where: str) -> JSON:
        if type(value) is dict:
            pairs = [[self.key(key, where), self.key(item, f"{where}.{key}")] for key, item in value.items()]
            return ["dict", *sorted(pairs, key=digest)]
        if type(value) in (list, tuple):
            return [type(value).__name__, *(self.key(item, f"{where}[{n}]") for n, item in enumerate(value))]
        if type(value) in (set, frozenset):
            return [type(value).__name__, *sorted((self.key(item, where) for item in value), key=digest)]
        readers: tuple[tuple[Any, Callable[[Any, str], JSON]], ...] = (
            (bytes | bytearray, lambda data, _: ["bytes", data.hex()]),
            (FunctionType, self._function),
            (
                MethodType,
                lambda method, _: ["method", self.key(method.__self__, where), self.key(method.__func__, where)],
            ),
            (CodeType, self._code),
            (ModuleType, lambda module, _: ["module", module.__name__]),
            (type, self._class),
        )
        return next((read for kind, read in readers if isinstance(value, kind)), self._object)(value, where)

    def _function(self, function: FunctionType, where: str) -> JSON:
        code, installed = function.__code__, _is_installed(function.__module__)
        attributes = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
        fixed = [self.key(part, where) for part in (function.__defaults__, function.__kwdefaults__, attributes)]
        variables = dict(_closure(function))
        if not installed:
            namespace = function.__globals__
            variables |= {name: namespace[name] for name in _globals(code) if name in namespace}
        used = [[name, self._variable(value, code, f"{where}.{name}")] for name, value in sorted(variables.items())]
        name = [function.__module__, function.__qualname__] if installed else function.__name__
        return ["function", name, fixed, used, None if installed else self._code(code, where)]

    def _variable(self, value: Any, code: CodeType, where: str) -> JSON:
        """Return the key of a variable of ``code``. Only the attributes of user modules that ``code`` uses are read."""
        if not isinstance(value, ModuleType) or _is_installed(value.__name__):
            return self.key(value, where)
        names = sorted({name for part in _codes(code) for name in part.co_names} & set(vars(value)))
        return [value.__name__, [[name, self.key(getattr(value, name), f"{where}.{name}")] for name in names]]

    def _code(self, code: CodeType, where: str) -> JSON:
        """Return the key of a code object, independent of its position in the file."""
        constants = [self.key(constant, where) for constant in code.co_consts]
        return [code.co_code.hex(), list(code.co_names), constants]

    def _class(self, class_: type, where: str) -> JSON:
        name = [class_.__module__, class_.__qualname__]
        if _is_installed(class_.__module__):
            return ["class", *name]
        members = [[key, self.key(value, f"{where}.{key}")] for key, value in _members(class_)]
        bases = [self.key(base, where) for base in class_.__bases__]
        fields = _ADDRESS.sub("", str(vars(class_).get("__annotations__", "")))
        return ["class", *name, bases, members, fields]

    def _object(self, value: Any, where: str) -> JSON:
        inner = value.func if isinstance(value, cached_property) else getattr(value, "__wrapped__", None)
        if isinstance(value, property):
            return ["property", *(self.key(part, where) for part in (value.fget, value.fset, value.fdel))]
        if isinstance(value, staticmethod | classmethod | cached_property) or (
            inner is not None and not hasattr(value, "__dict__")
        ):
            return [type(value).__name__, self.key(inner, where)]
        try:
            reduced = value.__reduce_ex__(4)
            parts: list[Any] = [reduced] if isinstance(reduced, str) else list(reduced[:3])
            if not isinstance(reduced, str):
                parts += [list(items) for items in reduced[3:5] if items is not None]
        except Exception:  # noqa: BLE001 - objects that cannot be copied raise various errors
            self.opaque.append(f"{where} is a {type(value).__name__}")
            return ["opaque"]
        names = [where, where, where, f"{where} item", f"{where} entry"]
        state = [self.key(part, name) for part, name in zip(parts, names, strict=False)]
        return ["object", state, None if inner is None else self.key(inner, where)]


def _closure(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # the variable has no value yet
            yield name, cell.cell_contents


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals(code: CodeType) -> set[str]:
    return {
        str(instruction.argval)
        for inner in _codes(code)
        for instruction in dis.get_instructions(inner)
        if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}
    }


def _members(class_: type) -> Iterator[tuple[str, object]]:
    """Yield the attributes that the body of a class defines, excluding those that Python adds to every class."""
    attributes: Mapping[str, object] = vars(class_)
    for name, value in sorted(attributes.items()):
        is_code = isinstance(value, Callable | property | staticmethod | classmethod)  # type: ignore[arg-type]
        is_added = name.startswith("__") and not is_code
        is_descriptor = isinstance(value, MemberDescriptorType | GetSetDescriptorType)
        if not is_added and not is_descriptor and name != "_abc_impl":
            yield name, value


def _is_installed(module: str | None) -> bool:
    """Return True if a module is part of Python or of an installed package, so that its name identifies it."""
    top = (module or "").partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == _PACKAGE:
        return True
    path = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path
