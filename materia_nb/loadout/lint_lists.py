"""Hints about lists that are read through the alias of another list's item (R34)."""

from __future__ import annotations

from materia_nb.jsonvalue import split_path
from materia_nb.loadout.facts import Facts, as_list, as_object, is_text
from materia_nb.loadout.report import Findings

_COMMON = ("item", "currentWorkItem")


def hint_lists(findings: Findings, facts: Facts) -> None:
    """Hint at a list whose alias is gone when its socket is entered from some other socket."""
    alias_of = {id_: alias for id_ in facts.sockets if (alias := _alias(facts, id_)) is not None}
    list_of = {id_: _state_path(facts.items_of(id_) or "") for id_ in facts.sockets}
    assigned = {
        tuple(split_path(target))[:1]
        for raw in [*facts.sockets.values(), *map(facts.materia_of, facts.sockets)]
        for target in as_object(raw.get("assign"))
    }
    before = _before(facts)
    for id_ in alias_of:
        alias = _read_through(alias_of, list_of[id_], id_)
        if alias is None or alias[:1] in assigned:
            continue
        showing = _showing(alias_of, list_of, alias)
        lost = [other for other in before.get(id_, ()) if other not in showing]
        if lost:
            findings.hint(
                "lost-list",
                f"{id_}.foreach" if facts.foreach(id_) is not None else id_,
                f"its list {'.'.join(list_of[id_])} is read through the current item of another list, which is gone "
                f"when it is entered from {', '.join(map(repr, lost))}: then the list is empty",
                "let that socket iterate over the outer list too, or assign the outer item to the state",
            )


def _alias(facts: Facts, id_: str) -> tuple[str, ...] | None:
    """The alias of a socket's iterator, None without one."""
    foreach = facts.foreach(id_)
    if foreach is not None:
        named = foreach.get("as")
        return tuple(split_path(named)) if is_text(named) else ("item",)
    loop = facts.iterating_loop(id_)
    return tuple(split_path(loop.alias())) if loop else None


def _state_path(source: str) -> tuple[str, ...]:
    segments = tuple(split_path(source))
    return segments[1:] if segments[:1] == ("state",) else () if source.startswith("$") else segments


def _read_through(
    alias_of: dict[str, tuple[str, ...]], path: tuple[str, ...], id_: str
) -> tuple[str, ...] | None:
    """The alias that a list is read through, if another socket iterates under it."""
    others = [alias for other, alias in alias_of.items() if other != id_ and alias != alias_of[id_]]
    if others and path[:1] in {(name,) for name in _COMMON}:
        return path[:1]
    return next((alias for alias in others if alias and path[: len(alias)] == alias), None)


def _showing(
    alias_of: dict[str, tuple[str, ...]], list_of: dict[str, tuple[str, ...]], alias: tuple[str, ...]
) -> set[str]:
    """The sockets whose visits show that alias: they iterate under it, or within an item that does."""
    if alias[0] in _COMMON:
        return set(alias_of)
    shown, aliases = {id_ for id_, one in alias_of.items() if one == alias}, {alias}
    while True:
        within = {
            id_ for id_ in alias_of if any(list_of[id_][: len(one)] == one for one in aliases if one)
        } - shown
        if not within:
            return shown
        shown |= within
        aliases |= {alias_of[id_] for id_ in within}


def _before(facts: Facts) -> dict[str, list[str]]:
    """The sockets that lead to each socket, by edges and exits."""
    found: dict[str, list[str]] = {}
    for id_ in facts.sockets:
        for to in facts.targets(id_):
            found.setdefault(to, []).append(id_)
    for loop in facts.loops:
        for route in as_list(loop.raw.get("exits")):
            start, target = as_object(route).get("from"), as_object(route).get("targetSocketId")
            if isinstance(start, str) and isinstance(target, str):
                found.setdefault(target, []).append(start)
    return {to: list(dict.fromkeys(sources)) for to, sources in found.items()}
