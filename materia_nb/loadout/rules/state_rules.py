"""Rules about values in the state: reads before writes, and prompts that grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from materia_nb.jsonvalue import as_object, is_text, split_path
from materia_nb.loadout.report import Hint, HintRule, rule
from materia_nb.loadout.topology import LoadoutFacts, SocketFacts
from materia_nb.loadout.vocabulary import RESULTS, WORK_ITEMS

StatePath: TypeAlias = tuple[str, ...]
STATE_RULES: Final[list[HintRule]] = []


@rule(STATE_RULES, "socket", "prompt-grows")
def _prompt_grows(_facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A prompt that contains a whole list, once for each item of the list (R50)."""
    if socket.iterator is None:
        return
    path = _state_path(socket.iterator.items)
    for name in socket.materia.variables:
        read = () if name in ("state", "stateJson") else _state_path(name)
        if name and path and read[:1] != ("item",) and path[: len(read)] == read:
            yield Hint(
                socket.id,
                f"the prompt of {socket.raw.get('materia')!r} contains the whole list {'.'.join(path)} for each item, by "
                f"{{{{{name}}}}}, so the prompts of a cast grow with the square of the list",
                "replace the variable by {{item}}, or remove it, since agents see the titles of the items anyway",
            )
            return


def _state_path(source: str) -> StatePath:
    segments = tuple(split_path(source))
    return segments[1:] if segments[:1] == ("state",) else () if source.startswith("$") else segments


# -- values that are never written -----------------------------------------------------------

_OF_THE_ENGINE: Final = frozenset({"item", "currentWorkItem", "workItem", "previous"})
"""Names in the state that no output writes: the current item, and the result of the previous linked cast."""
_CANONICAL: Final = frozenset({("context",), ("satisfied",), (WORK_ITEMS,)})
"""Paths that the output of a json socket may write without an assignment (R10)."""
_OTHER_HEADS: Final = frozenset({"item", "lastJson", "lastOutput", "request", "stateJson", "itemJson", "cursor"})
_MAX_NAMES: Final = 5


class _Read(NamedTuple):
    """A value that is read from the state.

    Attributes:
        reader_path: the path of the reading part of the config.
        path: the path in the state.
        then: the effect of a missing value.
        shared: True if other loadouts may use the same part of the config and write the value.
    """

    reader_path: str
    path: StatePath
    then: str
    shared: bool = False


@rule(STATE_RULES, "loadout", "never-written")
def _never_written(facts: LoadoutFacts) -> Iterator[Hint]:
    """A variable, an assignment or a list that reads a value that is not written on every path.

    The prompts of materia that other loadouts place too may name what only some of these have.
    """
    entry = facts.entry
    if not isinstance(entry, str) or entry not in facts.sockets:
        return
    targets = _targets(facts)
    anything, by_name = _writers(facts)
    known = _OF_THE_ENGINE | {split_path(alias)[0] for alias in _aliases(facts)}
    writers_of: dict[StatePath, tuple[set[str], dict[str, str | None]]] = {}
    before: dict[str, dict[str, str | None]] = {}
    noted: set[tuple[str, StatePath]] = set()  # several sockets can place the same prompt
    for id_, socket in facts.sockets.items():
        for read in _reads(socket):
            if read.path[0] in known or (read.reader_path, read.path) in noted:
                continue
            if read.path not in writers_of:
                of_name = by_name.get(read.path[0], ())
                writers = anything | {writer for writer, path in of_name if _touches(read.path, path)}
                writers_of[read.path] = writers, _without(entry, targets, writers)
            writers, arrived_from = writers_of[read.path]
            if id_ not in arrived_from or (read.shared and not writers and _placed_elsewhere(facts, socket)):
                continue
            if id_ not in before:
                before[id_] = _without(entry, targets, {id_})
            if writers and not (writers - {id_}) & before[id_].keys():
                continue  # written only after this socket, for its next visit, such as a critic's feedback
            noted.add((read.reader_path, read.path))
            yield _unwritten(read, writers - {id_}, list(_line(arrived_from, id_))[::-1])


def _placed_elsewhere(facts: LoadoutFacts, socket: SocketFacts) -> bool:
    """True if another loadout of the config also places the materia of a socket."""
    materia = socket.raw.get("materia")
    for name, raw in as_object(facts.config.get("loadouts")).items():
        sockets = as_object(as_object(raw).get("sockets")).values() if name != facts.name else ()
        if any(as_object(other).get("materia") == materia for other in sockets):
            return True
    return False


def _unwritten(read: _Read, others: set[str], route: list[str]) -> Hint:
    when = f"on the path {' → '.join(route)}" if others else "on any path"
    advice = "assign the value on a socket before this one, or correct the name"
    if others:
        named = ", ".join(sorted(others)[:_MAX_NAMES])
        verb = "writes" if len(others) == 1 else "write"
        advice = f"assign the value on every path; so far only {named} {verb} it"
    path = ".".join(("state", *read.path))
    return Hint(read.reader_path, f"{path} is not written {when}, so {read.then}", advice)


def _reads(socket: SocketFacts) -> Iterator[_Read]:
    for name in socket.materia.variables:
        if (path := _path(name)) is not None:
            yield _Read(
                f"materia.{socket.materia.id}.prompt",
                path,
                "its place in the prompt is empty",
                shared=True,
            )
    for where, _, source in socket.assignments:
        if isinstance(source, str) and not source.startswith("$") and (path := _path(source)) is not None:
            yield _Read(where, path, "nothing is assigned")
    iterator = socket.iterator
    if iterator and iterator.items and (path := _path(iterator.items)) is not None:
        where = f"{socket.id}.foreach.items" if iterator.loop is None else f"loops.{iterator.loop}"
        loop = next((loop for loop in socket.loops if loop.id == iterator.loop), None)
        if loop is None or loop.members[0] == socket.id:
            yield _Read(where, path, "the list is empty")


def _path(name: str) -> StatePath | None:
    """Return the path in the state that a variable or source reads; None if it reads something else."""
    segments = tuple(split_path(name))
    if segments[:1] == ("state",):
        segments = segments[1:]
    elif name.split(".", maxsplit=1)[0] in _OTHER_HEADS:
        return None
    return segments or None


def _aliases(facts: LoadoutFacts) -> Iterator[str]:
    for socket in facts.sockets.values():
        if socket.foreach is not None and is_text(named := socket.foreach.get("as")) and split_path(named):
            yield named
    for loop in facts.loops:
        if loop.iterates and split_path(loop.alias):
            yield loop.alias


def _writers(facts: LoadoutFacts) -> tuple[set[str], Mapping[str, list[tuple[str, StatePath]]]]:
    """Return the utilities with json output, which may patch anything (R10), and the paths that other sockets may write.

    The paths are grouped by the first name in them.
    """
    anything: set[str] = set()
    by_name: dict[str, list[tuple[str, StatePath]]] = {}
    for id_, socket in facts.sockets.items():
        json = id_ not in facts.texts
        if json and socket.is_utility:
            anything.add(id_)
            continue
        paths = {tuple(split_path(target)) for _, target, _ in socket.assignments}
        if socket.materia.parallel:
            paths.add((RESULTS,))  # written when the lanes join
        for path in paths | (_CANONICAL if json else frozenset()):
            if path:
                by_name.setdefault(path[0], []).append((id_, path))
    return anything, by_name


def _touches(path: StatePath, written: StatePath) -> bool:
    return path[: len(written)] == written or written[: len(path)] == path


def _targets(facts: LoadoutFacts) -> dict[str, list[str]]:
    """Return the sockets that each socket leads to, by its edges and by the exits that start from it."""
    targets = {id_: list(socket.targets) for id_, socket in facts.sockets.items()}
    for loop in facts.loops:
        for exit_ in (*loop.exits, loop.legacy):
            if exit_ and exit_.source in targets and exit_.target in targets:
                targets[str(exit_.source)].append(str(exit_.target))
    return targets


def _without(entry: str, targets: Mapping[str, list[str]], passed: set[str]) -> dict[str, str | None]:
    """Return the sockets reachable from the entry if no path continues after ``passed``, with their predecessors."""
    arrived_from: dict[str, str | None] = {entry: None}
    waiting = deque([entry])
    while waiting:
        at = waiting.popleft()
        for onward in targets[at] if at not in passed else ():
            if onward not in arrived_from:
                arrived_from[onward] = at
                waiting.append(onward)
    return arrived_from


def _line(arrived_from: Mapping[str, str | None], at: str | None) -> Iterator[str]:
    while at is not None:
        yield at
        at = arrived_from[at]
