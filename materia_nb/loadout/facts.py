"""Facts that follow from a raw config; checking, hints and resolving all read them here.

Facts take JSON of any shape and never raise, and so does what is derived of a loadout: its loop regions, exits and advances
(R15), and every place that names a socket, so that one can be called otherwise or taken away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Iterator as Iterating
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeGuard

from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.graph import END, Advance, Derived, ExitRoute, Iterator, Loop
from materia_nb.loadout.vocabulary import CONDITIONS, GUARDS, Condition

WORK_ITEMS: Final = "workItems"
RESULTS: Final = "parallelResults"
"""Where the state has what lanes handed over, once they have come together (P6)."""
WORK_ITEMS_SOURCE: Final = "$.workItems"
_SOCKET_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_SCRIPT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(?:py|mjs)")
CANONICAL_ID: Final = re.compile(r"Socket-[1-9][0-9]*")
SHIPPED_SCRIPTS: Final = (
    "blackbelt-bootstrap.py",
    "blackbelt-maintain.py",
    "commit-sigil.py",
    "detect-vcs.py",
    "echo.py",
    "ensure-ignored.py",
    "git-worktrees.py",
    "mime-bootstrap.py",
    "mime-maintain.py",
)
"""The utility scripts that come with the package (R25)."""

BUILT_IN: Final = {
    "echo": "echo.py",
    "project.ensureIgnored": "ensure-ignored.py",
    "vcs.detect": "detect-vcs.py",
}
"""The scripts under the names of what is built into the reference engine (R61)."""

_REPLACED: Final = {
    "ensureartifactsignored": "Ignore-Artifacts",
    "currentutilityprojectensureignored": "Ignore-Artifacts",
    "detectvcs": "Detect-VCS",
    "currentutilityvcsdetect": "Detect-VCS",
}
LANE_UTILITIES: Final = ("vcs.spawnJjWorkspace", "vcs.integrateJjWorkspaces", "vcs.finalizeJjWorkspace")
"""Built into the reference engine for its streams; no script of ours does what they do."""

TOOL_SCOPES: Final = ("none", "readOnly", "coding")

Object = dict[str, JSON]


def is_object(value: JSON) -> TypeGuard[Object]:
    """Whether ``value`` is a JSON object."""
    return isinstance(value, dict)


def as_object(value: JSON) -> Object:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: JSON) -> list[JSON]:
    """Return ``value`` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def is_text(value: JSON) -> TypeGuard[str]:
    """Whether ``value`` is a string with something other than white space in it."""
    return isinstance(value, str) and bool(value.strip())


def text_or(value: JSON, default: str) -> str:
    """Return ``value`` if it is text that says something, else ``default``."""
    return value if is_text(value) else default


def is_condition(value: JSON) -> TypeGuard[Condition]:
    """Whether ``value`` is a canonical condition (R3)."""
    return isinstance(value, str) and value in CONDITIONS


def is_number(value: JSON) -> TypeGuard[int | float]:
    """Whether ``value`` is a finite number; true and false are not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def whole(value: JSON) -> int | None:
    """Return a whole number (3 and 3.0 are the same JSON number), else None."""
    return int(value) if is_number(value) and value == int(value) else None


def is_socket_id(value: JSON) -> bool:
    """Whether ``value`` may name a socket (R26)."""
    return isinstance(value, str) and value != "end" and _SOCKET_ID.fullmatch(value) is not None


def materia_kind(raw: Object) -> Literal["agent", "utility"]:
    """Tell agents from utilities; without ``type``, something to run makes a utility."""
    kind = raw.get("type")
    if kind is None:
        return "utility" if "command" in raw or "script" in raw else "agent"
    return "utility" if kind == "utility" else "agent"


def materia_group(raw: Object) -> str:
    """Return the heading under which an editor lists a materia: as written, else Utility for a utility, else none."""
    group = raw.get("group")
    if is_text(group):
        return group.strip()
    return "Utility" if materia_kind(raw) == "utility" else ""


def next_socket_id(document: Object) -> str:
    """Return the next canonical id of a loadout: ``Socket-1`` up (R26)."""
    numbers = [int(id_[7:19]) for id_ in as_object(document.get("sockets")) if CANONICAL_ID.fullmatch(id_)]
    return f"Socket-{max(numbers, default=0) + 1}"


def script_file(name: JSON) -> str | None:
    """Return the file that a shipped script's ``name`` means: ``.mjs`` is read as ``.py``; None for no name (R25)."""
    if not isinstance(name, str) or not _SCRIPT_NAME.fullmatch(name):
        return None
    return name.removesuffix(".mjs") + ".py" if name.endswith(".mjs") else name


def replacement(name: JSON) -> str | None:
    """Return the bundled materia that an id or alias of earlier versions means, None when it is none."""
    folded = name.casefold() if isinstance(name, str) else ""
    if folded.startswith("currentutility"):  # such ids were generated, with something behind
        return next((now for old, now in _REPLACED.items() if folded.startswith(old)), None)
    return _REPLACED.get(folded)


def is_parallel(raw: Object) -> bool:
    """Whether a materia is a generator whose items go to streams side by side."""
    return raw.get("generator") is True and (
        raw.get("parallel") is True or raw.get("parallelPlanner") is True
    )


def _camel(name: str) -> str:
    """Return how a config spells a name of ours."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def told_in(assignment: Mapping[str, JSON], name: str) -> JSON:
    """Return the value of a field of an ``assignment``, None when it is not there.

    Names are those of an agent's contract, such as ``acceptance_criteria``; a config may also write acceptanceCriteria.
    """
    return assignment.get(_camel(name), assignment.get(name))


def free_name(wanted: str, taken: Collection[JSON]) -> str:
    """Return ``wanted``, with a number behind it if it is taken."""
    number, made = 1, wanted
    while made in taken:
        number += 1
        made = f"{wanted}-{number}"
    return made


def assigns_work_items(target: str) -> bool:
    """Whether an assignment target is ``workItems`` (empty segments are skipped, R11)."""
    return split_path(target) == [WORK_ITEMS]


@dataclass(slots=True)
class LoopFacts:
    """What a loop region is made of, as far as it is well formed."""

    id: str
    raw: Object
    members: tuple[str, ...]
    consumes: Object | None
    iterator: Object | None
    legacy: Object | None
    """The older form of its exits."""

    @property
    def output(self) -> str:
        """The list that the loop consumes (R12)."""
        return text_or((self.consumes or {}).get("output"), WORK_ITEMS)

    @property
    def iterates(self) -> bool:
        """Whether its members work on items (R1)."""
        return self.consumes is not None or self.iterator is not None

    def cursor(self, socket: str) -> str:
        """Return the cursor that ``socket`` uses in this loop (R13)."""
        if self.iterator is not None:
            return text_or(self.iterator.get("cursor"), f"{socket}Index")
        return text_or((self.consumes or {}).get("cursor"), "workItemIndex")

    def items(self) -> str:
        """Return the source of its list (R12, R15)."""
        return f"state.{self.output}" if self.iterator is None else text_or(self.iterator.get("items"), "")

    def alias(self) -> str:
        """Return the name of the current item (R12)."""
        if self.iterator is not None:
            return text_or(self.iterator.get("as"), "item")
        return text_or((self.consumes or {}).get("as"), "workItem")

    def exits(self) -> Iterating[tuple[int, Object]]:
        """Yield its well-formed exit routes with their places; the older form is none of them."""
        for place, route in enumerate(as_list(self.raw.get("exits"))):
            if is_object(route):
                yield place, route


@dataclass(slots=True)
class Facts:
    """A loadout with its materia, as far as it is well formed. ``loops_of`` maps sockets to their loops.

    ``config`` is the config around it, as far as that is known.
    """

    name: str
    raw: Object
    materia: Object
    config: Object = field(default_factory=dict)
    ids: frozenset[str] = field(init=False)
    sockets: dict[str, Object] = field(init=False)
    loops: list[LoopFacts] = field(init=False)
    loops_of: dict[str, list[LoopFacts]] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = frozenset(as_object(self.raw.get("sockets")))
        self.sockets = {id_: s for id_, s in as_object(self.raw.get("sockets")).items() if is_object(s)}
        self.loops = [
            _loop(id_, raw) for id_, raw in as_object(self.raw.get("loops")).items() if is_object(raw)
        ]
        self.loops_of = {}
        for loop in self.loops:
            for member in loop.members:
                self.loops_of.setdefault(member, []).append(loop)

    @property
    def entry(self) -> JSON:
        """Where a cast starts: as written, else the first socket (R36)."""
        named = self.raw.get("entry")
        return next(iter(as_object(self.raw.get("sockets"))), None) if named is None else named

    def materia_of(self, socket: str) -> Object:
        """Return the definition of the materia placed in ``socket``, empty when there is none."""
        named = self.sockets.get(socket, {}).get("materia")
        return as_object(self.materia.get(named)) if isinstance(named, str) else {}

    def is_utility(self, socket: str) -> bool:
        """Whether a process answers in ``socket``."""
        return materia_kind(self.materia_of(socket)) == "utility"

    def is_generator(self, socket: str) -> bool:
        """Whether ``socket`` produces work items."""
        return self.materia_of(socket).get("generator") is True

    def _owner(self, socket: str) -> Object:
        """Where ``parse`` and ``assign`` take effect: at the materia of a utility, else at the socket (R4)."""
        return self.materia_of(socket) if self.is_utility(socket) else self.sockets.get(socket, {})

    def authored_parse(self, socket: str) -> JSON:
        """Return ``parse`` from where it takes effect."""
        return self._owner(socket).get("parse")

    def assignments(self, socket: str) -> Iterating[tuple[str, str, JSON]]:
        """Yield the assignments from where they take effect: where each is written, its target, its source."""
        owner = f"materia.{self.sockets[socket].get('materia')}" if self.is_utility(socket) else socket
        for target, source in as_object(self._owner(socket).get("assign")).items():
            yield f"{owner}.assign.{target}", target, source

    def gives_text(self, socket: str) -> bool:
        """Whether the output of ``socket`` is taken as text, so that it says no ``satisfied`` (R3, R4)."""
        return not (
            self.is_generator(socket) or self.authored_parse(socket) == "json" or self.made_json(socket)
        )

    def made_json(self, socket: str) -> bool:
        """Whether a guarded legacy exit makes this socket json, by its materia if that is a utility (R15, R58)."""
        if self.authored_parse(socket) is not None:
            return False
        return any(
            self.exits_guarded(one)
            for one in (self.sharing(socket) if self.is_utility(socket) else (socket,))
        )

    def exits_guarded(self, socket: str) -> bool:
        """Whether the legacy exit of a loop leaves from here by a verdict (R15)."""
        exits = ((loop, loop.legacy or {}) for loop in self.loops_of.get(socket, ()))
        return any(
            loop.consumes and legacy.get("from") == socket and legacy.get("when") in GUARDS
            for loop, legacy in exits
        )

    def sharing(self, socket: str) -> list[str]:
        """Return the sockets that place the same materia, this one among them."""
        named = self.sockets[socket].get("materia")
        return [id_ for id_, raw in self.sockets.items() if raw.get("materia") == named]

    def edges(self, socket: str) -> Iterating[tuple[int, Object]]:
        """Yield the well-formed edges of ``socket`` with their places."""
        for place, edge in enumerate(as_list(self.sockets.get(socket, {}).get("edges"))):
            if is_object(edge):
                yield place, edge

    def targets(self, socket: str) -> list[str]:
        """Return where the edges of ``socket`` lead, ``end`` left out."""
        targets = (edge.get("to") for _, edge in self.edges(socket))
        return [to for to in targets if isinstance(to, str) and to in self.sockets]

    def likely_generator(self, members: Collection[str]) -> str | None:
        """Return the generator that a loop of ``members`` would consume: the only one that leads into it."""
        outside = (id_ for id_ in self.sockets if id_ not in members and self.is_generator(id_))
        leading = [id_ for id_ in outside if not set(members).isdisjoint(self.targets(id_))]
        return leading[0] if len(leading) == 1 else None

    def iterating_loop(self, socket: str) -> LoopFacts | None:
        """Return the first loop, in the loadout's order, that gives ``socket`` an item (R1)."""
        return next((loop for loop in self.loops_of.get(socket, ()) if loop.iterates), None)

    def foreach(self, socket: str) -> Object | None:
        """Return the socket's own iterator, if it has one."""
        spec = self.sockets.get(socket, {}).get("foreach")
        return spec if is_object(spec) else None

    def cursor_of(self, socket: str) -> str | None:
        """Return the cursor of the socket's iterator, None without one (R13)."""
        foreach = self.foreach(socket)
        if foreach is not None:
            return text_or(foreach.get("cursor"), f"{socket}Index")
        loop = self.iterating_loop(socket)
        return loop.cursor(socket) if loop else None

    def items_of(self, socket: str) -> str | None:
        """Return the list source of the socket's iterator, None without one."""
        foreach = self.foreach(socket)
        if foreach is not None:
            return text_or(foreach.get("items"), "")
        loop = self.iterating_loop(socket)
        return loop.items() if loop else None

    def advance_cursor(self, socket: str) -> str | None:
        """Return the cursor that the socket's own ``advance`` moves, None when it declares none (R13)."""
        advance = self.sockets.get(socket, {}).get("advance")
        if not is_object(advance):
            return None
        named = advance.get("cursor")
        return named if is_text(named) else self.cursor_of(socket)


def _loop(id_: str, raw: Object) -> LoopFacts:
    members = dict.fromkeys(member for member in as_list(raw.get("sockets")) if isinstance(member, str))
    parts = (raw.get(name) for name in ("consumes", "iterator", "exit"))
    return LoopFacts(id_, raw, tuple(members), *(part if is_object(part) else None for part in parts))


def variables(prompt: str) -> Iterating[tuple[int, int, str]]:
    """Yield where each ``{{name}}`` of a materia prompt begins and ends, and its name, which may be blank (R31).

    Every character is looked at once. The first brace that closes decides: unless it is one of two, nothing
    that was opened before it is a variable.
    """
    place = 0
    while (start := prompt.find("{{", place)) >= 0 and (close := prompt.find("}", start + 2)) >= 0:
        place = close + 1
        if close > start + 2 and prompt.startswith("}", place):
            place += 1
            yield start, place, prompt[start + 2 : close].strip()


def placed_materia(facts: Facts) -> list[str]:
    """Return the ids of the materia that the sockets of a loadout name."""
    named = (socket.get("materia") for socket in facts.sockets.values())
    return [id_ for id_ in named if isinstance(id_, str)]


# -- what is derived of a loadout, as far as it is well formed ---------------------------------


@dataclass(slots=True)
class Derivation:
    """What was derived for a loadout, with a sentence for each fact. ``ids`` are the sockets that ways may lead to.

    ``advancing`` names the loop that each derived advance is of, and ``conflicts`` each socket with two loops that would
    derive different ones (R66).
    """

    facts: Facts
    ids: Collection[str]
    loops: dict[str, Loop] = field(default_factory=dict)
    advances: dict[str, Advance] = field(default_factory=dict)
    advancing: dict[str, str] = field(default_factory=dict)
    conflicts: list[tuple[str, str, str]] = field(default_factory=list)
    json_sources: set[str] = field(default_factory=set)
    sentences: list[Derived] = field(default_factory=list)

    def say(self, source: str, text: str) -> None:
        """Put a derived fact into words for the person who reads the graph."""
        self.sentences.append(Derived(source, text))

    def leads(self, to: JSON) -> TypeGuard[str]:
        """Whether a way may lead there."""
        return isinstance(to, str) and (to == END or to in self.ids)


def derive(facts: Facts, ids: Collection[str] | None = None) -> Derivation:
    """Derive loops, routes and advances of a loadout (R12, R13, R15); what is not well formed is left out."""
    result = Derivation(facts, facts.sockets if ids is None else ids)
    for loop in facts.loops:
        generator = loop.consumes.get("from") if loop.consumes else None
        result.loops[loop.id] = Loop(
            id=loop.id,
            sockets=tuple(member for member in loop.members if member in result.ids),
            generator=generator if isinstance(generator, str) and generator in result.ids else None,
            output=loop.output if loop.consumes else None,
            iterator=_loop_iterator(loop),
            routes=tuple(_routes(result, loop)),
        )
    consumers = [loop for loop in facts.loops if loop.consumes]
    for loop in consumers:
        _derive_from_legacy_exit(result, loop)
    for loop in consumers:
        _derive_from_exits(result, loop)
    return result


def socket_iterator(facts: Facts, id_: str) -> Iterator | None:
    """Return where a socket gets its item: its own ``foreach``, else the first loop that gives one (R1)."""
    foreach = facts.foreach(id_)
    if foreach is not None:
        items, cursor = facts.items_of(id_) or "?", facts.cursor_of(id_) or f"{id_}Index"
        return Iterator(items, text_or(foreach.get("as"), "item"), cursor)
    loop = facts.iterating_loop(id_)
    return None if loop is None else Iterator(loop.items(), loop.alias(), loop.cursor(id_), loop.id)


def combined_condition(conditions: Iterable[Condition]) -> Condition:
    """Return the one condition that all routes share, else always (R15)."""
    distinct = set(conditions)
    return distinct.pop() if len(distinct) == 1 else "always"


def _loop_iterator(loop: LoopFacts) -> Iterator | None:
    """Return what a loop goes over, with the cursor of its first member; None when it goes over nothing."""
    if not loop.iterates:
        return None
    first = loop.members[0] if loop.members else ""
    return Iterator(loop.items(), loop.alias(), loop.cursor(first), loop.id)


def _written_routes(result: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    routes = []
    for place, route in loop.exits():
        source, when, to = (route.get(name) for name in ("from", "condition", "targetSocketId"))
        if isinstance(source, str) and source in result.ids and is_condition(when) and result.leads(to):
            routes.append(ExitRoute(text_or(route.get("id"), f"#{place}"), loop.id, source, when, to))
    return routes


def _legacy_way(result: Derivation, loop: LoopFacts) -> tuple[str, Condition, str] | None:
    """The older form of an exit: from where, when, and where to."""
    source, when, to = ((loop.legacy or {}).get(name) for name in ("from", "when", "to"))
    if isinstance(source, str) and source in result.ids and is_condition(when) and result.leads(to):
        return source, when, to
    return None


def _routes(result: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    routes, legacy = _written_routes(result, loop), _legacy_way(result, loop)
    if legacy is None or legacy[2] == END:
        return routes
    source, when, target = legacy
    route = ExitRoute(f"exit:{source}:{when}", loop.id, source, when, target, derived=True)
    replaced = next((r for r in routes if (r.source, r.condition) == (source, when)), None)
    if replaced is not None and (replaced.id, replaced.target) == (route.id, target):
        return routes
    instead = f", in place of {replaced.id}" if replaced is not None else ""
    result.say(f"loops.{loop.id}.exit", f"{loop.id} is left from {source} to {target} when {when}{instead}")
    return [r for r in routes if r is not replaced] + [route]


def _derive_from_legacy_exit(result: Derivation, loop: LoopFacts) -> None:
    legacy, facts = _legacy_way(result, loop), result.facts
    if legacy is None or legacy[0] not in facts.sockets:
        return
    source, when, _ = legacy
    if when in GUARDS and facts.authored_parse(source) is None and not facts.is_generator(source):
        result.json_sources.update(facts.sharing(source) if facts.is_utility(source) else [source])
        why = f"{source} is parsed as json, because loop {loop.id} is left when it is {when}"
        result.say(f"{source}.parse", why)
    _give_advance(result, loop, source, when)


def _derive_from_exits(result: Derivation, loop: LoopFacts) -> None:
    routes = _written_routes(result, loop)
    if _has_advance(result, loop):
        return
    for source in dict.fromkeys(route.source for route in routes):
        conditions = [route.condition for route in routes if route.source == source]
        _give_advance(result, loop, source, combined_condition(conditions))


def _has_advance(result: Derivation, loop: LoopFacts) -> bool:
    """Whether a member moves the loop's cursor, as written or as derived from a legacy exit."""
    for member in loop.members:
        derived = result.advances.get(member)
        moved = (result.facts.advance_cursor(member), derived.cursor if derived is not None else None)
        if loop.cursor(member) in moved:
            return True
    return False


def _give_advance(result: Derivation, loop: LoopFacts, source: str, when: Condition) -> None:
    """Let a socket move on by an exit, unless it says itself how it moves on, or another exit does."""
    if is_object(result.facts.sockets.get(source, {}).get("advance")):
        return
    advance = Advance(loop.cursor(source), loop.items(), when, derived=True)
    if source in result.advances:
        if advance != result.advances[source]:
            result.conflicts.append((source, result.advancing[source], loop.id))
        return
    result.advances[source], result.advancing[source] = advance, loop.id
    moment = "each time it completes" if when == "always" else f"when it is {when}"
    result.say(
        f"{source}.advance",
        f"{source} moves {advance.cursor} over {advance.items} {moment} (exit of loop {loop.id})",
    )


def socket_advance(result: Derivation, id_: str) -> Advance | None:
    """Return how a socket moves on: as written, with what it takes from its iterator, or as derived (R14)."""
    facts = result.facts
    raw: JSON = facts.sockets.get(id_, {}).get("advance")
    if not is_object(raw):
        return result.advances.get(id_)
    cursor, when = facts.advance_cursor(id_) or "?", raw.get("when")
    items = raw["items"] if is_text(raw.get("items")) else facts.items_of(id_) or "?"
    missing = [name for name in ("cursor", "items") if raw.get(name) is None]
    if missing:
        names = " and ".join(missing)
        why = f"{id_} takes the {names} of its advance from its iterator ({cursor}, {items})"
        result.say(f"{id_}.advance", why)
    return Advance(cursor, items, when if is_condition(when) else "always")


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
