"""Rules about what is read from the state: lists through another's item (R34), values that nothing has written (R10-R12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from materia_nb.jsonvalue import split_path
from materia_nb.loadout.facts import (
    RESULTS,
    WORK_ITEMS,
    Facts,
    as_object,
    is_object,
    is_parallel,
    is_text,
    placed_materia,
    text_or,
    variables,
)
from materia_nb.loadout.regions import turned
from materia_nb.loadout.report import Hint, HintRule, rule
from materia_nb.loadout.rules.way_rules import StatePath

STATE_RULES: Final[list[HintRule]] = []
_COMMON: Final = ("item", "currentWorkItem")


@rule(STATE_RULES, "loadout", "lost-list")
def _lost_list(facts: Facts) -> Iterator[Hint]:
    """A list read through the alias of another list's item, entered from where that item is gone."""
    alias_of = {id_: alias for id_ in facts.sockets if (alias := _alias(facts, id_)) is not None}
    list_of = {id_: _state_path(facts.items_of(id_) or "") for id_ in facts.sockets}
    assigned = {
        tuple(split_path(target))[:1]
        for raw in [*facts.sockets.values(), *map(facts.materia_of, facts.sockets)]
        for target in as_object(raw.get("assign"))
    }
    before = turned(_ways(facts))
    for id_ in alias_of:
        alias = _read_through(alias_of, list_of[id_], id_)
        if alias is None or alias[:1] in assigned:
            continue
        showing = _showing(alias_of, list_of, alias)
        lost = [other for other in facts.sockets if other in before[id_] and other not in showing]
        if lost:
            yield Hint(
                f"{id_}.foreach" if facts.foreach(id_) is not None else id_,
                f"its list {'.'.join(list_of[id_])} is read through the current item of another list, which is gone "
                f"when it is entered from {', '.join(map(repr, lost))}: then the list is empty",
                "let that socket iterate over the outer list too, or assign the outer item to the state",
            )


@rule(STATE_RULES, "socket", "prompt-grows")
def _prompt_grows(facts: Facts, id_: str) -> Iterator[Hint]:
    """A prompt that holds a whole list, once for each of its items (R50)."""
    items, prompt = facts.items_of(id_), facts.materia_of(id_).get("prompt")
    if items is None or facts.is_utility(id_) or not isinstance(prompt, str):
        return
    path = _state_path(items)
    for name in dict.fromkeys(name for _, _, name in variables(prompt)):
        read = () if name in ("state", "stateJson") else _state_path(name)
        if name and path and read[:1] != ("item",) and path[: len(read)] == read:
            yield Hint(
                id_,
                f"the prompt of {facts.sockets[id_].get('materia')!r} holds all of {'.'.join(path)} by "
                f"{{{{{name}}}}}, once for each of its items: the prompts of a cast grow with the square of the list",
                "leave it out or write {{item}}: the agent is told the titles around its item anyway",
            )
            return


def _alias(facts: Facts, id_: str) -> StatePath | None:
    """The alias of a socket's iterator, None without one."""
    foreach = facts.foreach(id_)
    if foreach is not None:
        return tuple(split_path(text_or(foreach.get("as"), "item")))
    loop = facts.iterating_loop(id_)
    return tuple(split_path(loop.alias())) if loop else None


def _state_path(source: str) -> StatePath:
    segments = tuple(split_path(source))
    return segments[1:] if segments[:1] == ("state",) else () if source.startswith("$") else segments


def _read_through(alias_of: dict[str, StatePath], path: StatePath, id_: str) -> StatePath | None:
    """The alias that a list is read through, if another socket iterates under it."""
    others = [alias for other, alias in alias_of.items() if other != id_ and alias != alias_of[id_]]
    if others and path[:1] in {(name,) for name in _COMMON}:
        return path[:1]
    return next((alias for alias in others if alias and path[: len(alias)] == alias), None)


def _showing(alias_of: dict[str, StatePath], list_of: dict[str, StatePath], alias: StatePath) -> set[str]:
    """The sockets whose visits show that alias: they iterate under it, or within an item that does."""
    if alias[0] in _COMMON:
        return set(alias_of)
    showing, aliases = {id_ for id_, one in alias_of.items() if one == alias}, {alias}
    while True:
        within = {
            id_ for id_ in alias_of if any(list_of[id_][: len(one)] == one for one in aliases if one)
        } - showing
        if not within:
            return showing
        showing |= within
        aliases |= {alias_of[id_] for id_ in within}


# -- values that nothing has written ---------------------------------------------------------

_OF_THE_ENGINE: Final = frozenset({"item", "currentWorkItem", "workItem", "previous"})
"""Names in the state that no output writes: the current item, and what came before a linked cast."""
_CANONICAL: Final = frozenset({("context",), ("satisfied",), (WORK_ITEMS,)})
"""What the output of a json socket may put into the state by itself (R10)."""
_OTHER_HEADS: Final = frozenset(
    {"item", "lastJson", "lastOutput", "request", "stateJson", "itemJson", "cursor"}
)
_NAMED: Final = 5


class _Read(NamedTuple):
    """Something that is read from the state: where that is said, which path, what happens without it.

    ``shared`` says that other loadouts may say it too, and know what this one does not.
    """

    where: str
    path: StatePath
    then: str
    shared: bool = False


@rule(STATE_RULES, "loadout", "never-written")
def _never_written(facts: Facts) -> Iterator[Hint]:
    """A variable, an assignment or a list that reads what nothing has written on some way.

    The prompts of materia that other loadouts place too may name what only some of these have.
    """
    entry = facts.entry
    if not isinstance(entry, str) or entry not in facts.sockets:
        return
    ways = _ways(facts)
    anything, by_name = _writers(facts)
    known = _OF_THE_ENGINE | {split_path(name)[0] for name in _aliases(facts)}
    past: dict[StatePath, tuple[set[str], dict[str, str | None]]] = {}
    before: dict[str, dict[str, str | None]] = {}
    noted: set[tuple[str, StatePath]] = set()  # a prompt may be placed several times
    for id_ in facts.sockets:
        for read in _reads(facts, id_):
            if read.path[0] in known or (read.where, read.path) in noted:
                continue
            if read.path not in past:
                touching = {one for one, path in by_name.get(read.path[0], ()) if _touches(read.path, path)}
                writers = anything | touching
                past[read.path] = writers, _without(entry, ways, writers)
            writers, came = past[read.path]
            if id_ not in came or (read.shared and not writers and _placed_elsewhere(facts, id_)):
                continue
            if id_ not in before:
                before[id_] = _without(entry, ways, {id_})
            if writers and not (writers - {id_}) & before[id_].keys():
                continue  # all that is read is written behind the reader, who has it in the next round: a critic's words
            noted.add((read.where, read.path))
            yield _unwritten(read, writers - {id_}, list(_line(came, id_))[::-1])


def _placed_elsewhere(facts: Facts, id_: str) -> bool:
    """Whether another loadout of the config places the materia of a socket too."""
    materia, others = facts.sockets[id_].get("materia"), as_object(facts.config.get("loadouts")).items()
    return any(
        materia in placed_materia(Facts(name, raw, facts.materia))
        for name, raw in others
        if is_object(raw) and name != facts.name
    )


def _unwritten(read: _Read, others: set[str], way: list[str]) -> Hint:
    when = f"when a cast comes here by {' → '.join(way)}" if others else "by any way"
    advice = "assign it where it is made known, or mend the name"
    if others:
        named = ", ".join(sorted(others)[:_NAMED])
        verb = "writes" if len(others) == 1 else "write"
        advice = f"{named} {verb} it; lead every way through there, or write it before"
    path = ".".join(("state", *read.path))
    return Hint(read.where, f"nothing has written {path} {when}: {read.then}", advice)


def _reads(facts: Facts, id_: str) -> Iterator[_Read]:
    raw, materia = facts.sockets[id_], facts.materia_of(id_)
    prompt = materia.get("prompt")
    if not facts.is_utility(id_) and isinstance(prompt, str):
        for name in dict.fromkeys(name for _, _, name in variables(prompt)):
            if (path := _path(name)) is not None:
                yield _Read(
                    f"materia.{raw.get('materia')}.prompt",
                    path,
                    "the prompt then holds nothing there",
                    shared=True,
                )
    for here, _, source in facts.assignments(id_):
        if isinstance(source, str) and not source.startswith("$") and (path := _path(source)) is not None:
            yield _Read(here, path, "then nothing is assigned")
    foreach = facts.foreach(id_)
    loop = None if foreach is not None else facts.iterating_loop(id_)
    items = facts.items_of(id_)
    if items and (path := _path(items)) is not None and (loop is None or loop.members[0] == id_):
        where = f"{id_}.foreach.items" if loop is None else f"loops.{loop.id}"
        yield _Read(where, path, "the list is empty then, and nothing is done")


def _path(name: str) -> StatePath | None:
    """The path of the state that a variable or source reads; None when it reads something else."""
    segments = tuple(split_path(name))
    if segments[:1] == ("state",):
        segments = segments[1:]
    elif name.split(".", maxsplit=1)[0] in _OTHER_HEADS:
        return None
    return segments or None


def _aliases(facts: Facts) -> Iterator[str]:
    for id_ in facts.sockets:
        foreach = facts.foreach(id_)
        if foreach is not None and is_text(named := foreach.get("as")) and split_path(named):
            yield named
    for loop in facts.loops:
        if loop.iterates and split_path(loop.alias()):
            yield loop.alias()


def _writers(facts: Facts) -> tuple[set[str], Mapping[str, list[tuple[str, StatePath]]]]:
    """The utilities with json output, which may patch anything (R10), and what each other socket may write, by its name."""
    anything: set[str] = set()
    by_name: dict[str, list[tuple[str, StatePath]]] = {}
    for id_ in facts.sockets:
        json = not facts.gives_text(id_)
        if json and facts.is_utility(id_):
            anything.add(id_)
            continue
        paths = {tuple(split_path(target)) for _, target, _ in facts.assignments(id_)}
        if is_parallel(facts.materia_of(id_)):
            paths.add((RESULTS,))  # by the time that its lanes have come together
        for path in paths | (_CANONICAL if json else frozenset()):
            if path:
                by_name.setdefault(path[0], []).append((id_, path))
    return anything, by_name


def _touches(path: StatePath, written: StatePath) -> bool:
    return path[: len(written)] == written or written[: len(path)] == path


def _ways(facts: Facts) -> dict[str, list[str]]:
    """Where each socket leads when it has worked: by its edges, and by the exits that start from it."""
    onward = {id_: facts.targets(id_) for id_ in facts.sockets}
    for loop in facts.loops:
        legacy = loop.legacy or {}
        pairs = [(route.get("from"), route.get("targetSocketId")) for _, route in loop.exits()]
        for source, to in [*pairs, (legacy.get("from"), legacy.get("to"))]:
            if isinstance(source, str) and source in onward and isinstance(to, str) and to in onward:
                onward[source].append(to)
    return onward


def _without(entry: str, ways: Mapping[str, list[str]], passed: set[str]) -> dict[str, str | None]:
    """The sockets that a cast can come to before any of ``passed`` has worked, each with the one that led there."""
    came: dict[str, str | None] = {entry: None}
    waiting = deque([entry])
    while waiting:
        at = waiting.popleft()
        for onward in ways[at] if at not in passed else ():
            if onward not in came:
                came[onward] = at
                waiting.append(onward)
    return came


def _line(came: Mapping[str, str | None], at: str | None) -> Iterator[str]:
    while at is not None:
        yield at
        at = came[at]
