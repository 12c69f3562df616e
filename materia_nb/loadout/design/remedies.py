"""What mends a finding by itself: the one change that its hint speaks of, where there is one and it is safe.

A remedy is offered only if the finding is gone with it and nothing that stops a cast has come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from materia_nb.errors import MateriaError, close_match
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design import edges, exits, loops, sockets
from materia_nb.loadout.design.change import Change, loop_in
from materia_nb.loadout.design.draft import Design
from materia_nb.loadout.design.materia import set_materia
from materia_nb.loadout.design.mending import mend
from materia_nb.loadout.facts import Facts, Object, as_list, as_object, is_condition, is_text, replacement
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import (
    INVALID_CONDITION,
    INVALID_GENERATOR,
    INVALID_LOOP,
    INVALID_SOCKET_ID,
    MISSING_ENDPOINT,
    UNKNOWN_ENDPOINT,
    UNKNOWN_MATERIA,
    UNREACHABLE_EDGE,
    Problem,
)

_EDGE: Final = re.compile(r"(?P<socket>.+)\.edges\[(?P<place>\d+)\](?:\.(?P<field>\w+))?")
_EXIT: Final = re.compile(r"loops\.(?P<loop>.+)\.exits\[(?P<place>\d+)\](?:\.(?P<field>\w+))?")
_LOOP: Final = re.compile(
    r"loops\.(?P<loop>.+?)\.(?P<field>sockets|consumes|iterator|exits)(?P<rest>[.\[].*)?"
)


class Remedy(NamedTuple):
    """What would mend a finding: in words that stand on a button, and the change itself."""

    words: str
    change: Change


class _Case(NamedTuple):
    design: Design
    facts: Facts
    problem: Problem

    @property
    def document(self) -> Object:
        return self.design.document

    @property
    def here(self) -> str:
        return self.problem.source


def remedy_of(design: Design, problem: Problem) -> Remedy | None:
    """Return what mends a finding of a design, None where a person has to choose. Never raises."""
    make = _REMEDIES.get(problem.code)
    if make is None:
        change = mend(design.document, problem, design.definitions)
        return None if change is None else Remedy(change.words, change)
    case = _Case(design, Facts(design.name, design.document, design.definitions), problem)
    try:
        found = make(case)
    except (MateriaError, LookupError, ValueError, TypeError):
        return None  # what the hint speaks of is not well formed enough
    return found if found is not None and _is_safe(design, problem, found.change) else None


def _is_safe(design: Design, problem: Problem, change: Change) -> bool:
    after = Design(
        design.name, change.document, {**design.whole, "materia": {**design.definitions, **change.materia}}
    )
    before = {(one.code, one.source) for one in design.report.problems}
    left = {(one.code, one.source) for one in (*after.report.problems, *after.report.hints)}
    new = {(one.code, one.source) for one in after.report.problems} - before
    return (problem.code, problem.source) not in left and not new


def _edge_at(case: _Case) -> tuple[str, int, Object]:
    found = _EDGE.fullmatch(case.here)
    if found is None:
        raise ValueError(case.here)
    socket, place = found["socket"], int(found["place"])
    return socket, place, edges.edge_in(case.document, socket, place)


def _loop_at(case: _Case) -> str:
    found = _LOOP.fullmatch(case.here)
    name = found["loop"] if found else case.here.removeprefix("loops.")
    loop_in(case.document, name)
    return name


def _members(case: _Case, loop: str) -> list[str]:
    return [one for one in as_list(loop_in(case.document, loop).get("sockets")) if isinstance(one, str)]


def _near(wrong: JSON, known: Iterable[str]) -> str | None:
    return close_match(wrong, known) if is_text(wrong) else None


# -- one function for each code ---------------------------------------------------------


def _read_json(case: _Case) -> Remedy | None:
    head = case.here.split(".edges[")[0].removesuffix(".advance.when")
    if (found := _EXIT.fullmatch(case.here)) is not None:
        head = str(exits.exit_in(case.document, found["loop"], int(found["place"])).get("from"))
    if case.facts.is_utility(head):
        id_ = str(case.facts.sockets[head]["materia"])
        change = set_materia(case.document, case.design.definitions, id_, "parse", "json")
        return Remedy(f"Read the output of {id_} as JSON", change)
    return Remedy(
        f"Read the output of {head} as JSON", sockets.set_socket(case.document, head, "parse", "json")
    )


def _entry(case: _Case) -> Remedy | None:
    return Remedy(f"Start at {case.facts.entry}", sockets.set_entry(case.document, str(case.facts.entry)))


def _renumber(case: _Case) -> Remedy | None:
    if not case.here.startswith("sockets."):
        return _endpoint(case)
    old = case.here.removeprefix("sockets.")
    new = sockets.next_socket_id(case.document)
    changed = sockets.rename_socket(case.document, old, new).document
    if not as_object(as_object(changed["sockets"])[new]).get("label"):
        changed = sockets.set_socket(changed, new, "label", old).document
    return Remedy(
        f"Call it {new}, labelled {old}", Change(changed, f"renamed {old} to {new}, with its label")
    )


def _endpoint(case: _Case) -> Remedy | None:
    ids = list(case.facts.ids)
    if _EDGE.fullmatch(case.here):
        socket, place, edge = _edge_at(case)
        near = _near(edge.get("to"), [*ids, END])
        if near is not None:
            return Remedy(f"Lead it to {near}", edges.change_edge(case.document, socket, place, to=near))
        return Remedy("Remove the edge", edges.remove_edge(case.document, socket, place))
    if (found := _EXIT.fullmatch(case.here)) is not None:
        loop, place = found["loop"], int(found["place"])
        return Remedy("Remove the exit", exits.remove_exit(case.document, loop, place))
    if case.here == "entry" and (first := next(iter(case.facts.sockets), None)) is not None:
        return Remedy(f"Start at {first}", sockets.set_entry(case.document, first))
    if case.here.endswith(".consumes.from"):
        loop = _loop_at(case)
        generator = case.design.likely_generator(_members(case, loop))
        if generator is not None:
            change = loops.set_source(case.document, loop, "consumes", from_=generator)
            return Remedy(f"Go over the items of {generator}", change)
    return None


def _condition(case: _Case) -> Remedy | None:
    if not _EDGE.fullmatch(case.here):
        return None
    socket, place, edge = _edge_at(case)
    near = _near(edge.get("when"), ["always", "satisfied", "not_satisfied"]) or "always"
    return Remedy(f"Make it {near}", edges.change_edge(case.document, socket, place, when=near))


def _unreachable_edge(case: _Case) -> Remedy | None:
    socket, place, edge = _edge_at(case)
    found = [one for _, one in case.facts.edges(socket)]
    first = next(at for at, one in enumerate(found) if one.get("when") == "always")
    if edge.get("when") == "always":
        return Remedy("Remove it", edges.remove_edge(case.document, socket, place))
    return Remedy("Look at it first", edges.move_edge(case.document, socket, place, first))


def _materia(case: _Case) -> Remedy | None:
    id_ = case.here.removesuffix(".materia")
    named = case.facts.sockets[id_].get("materia")
    meant = replacement(named) or _near(named, case.design.materia)
    if meant not in case.design.definitions:
        return None
    return Remedy(f"Place {meant}", sockets.set_socket(case.document, id_, "materia", meant))


def _generator(case: _Case) -> Remedy | None:
    if not case.here.endswith(".parse"):
        return None
    return Remedy(
        "Remove parse", sockets.set_socket(case.document, case.here.removesuffix(".parse"), "parse", None)
    )


def _loop_problem(case: _Case) -> Remedy | None:
    loop = _loop_at(case)
    members, spec = _members(case, loop), as_object(loop_in(case.document, loop).get("consumes"))
    if case.here.endswith(".consumes.cursor"):
        cursor = f"{loop}Index"
        return Remedy(
            f"Call its cursor {cursor}", loops.set_source(case.document, loop, "consumes", cursor=cursor)
        )
    if case.here.endswith(".sockets") and len(members) > 0:
        change = edges.add_edge(case.document, members[-1], members[0])
        return Remedy(f"Lead {members[-1]} back to {members[0]}", change)
    if case.here.endswith((".consumes", ".consumes.from")):
        likely = case.design.likely_generator(members)
        source = spec.get("from")
        if likely is not None and likely != source:
            change = loops.set_source(case.document, loop, "consumes", from_=likely)
            return Remedy(f"Go over the items of {likely}", change)
        if isinstance(source, str) and case.facts.is_generator(source) and source not in members:
            return Remedy(f"Lead {source} into it", edges.add_edge(case.document, source, members[0]))
    return None


def _never_advances(case: _Case) -> Remedy | None:
    if not case.here.endswith(".foreach"):
        return None
    id_ = case.here.removesuffix(".foreach")
    when = "always" if case.facts.gives_text(id_) else "satisfied"
    change = sockets.set_socket(case.document, id_, "advance", {"when": when})
    return Remedy(f"Move on when {when}", change)


def _members_once(case: _Case) -> Remedy | None:
    loop = _loop_at(case)
    return Remedy("List it once", loops.set_members(case.document, loop, _members(case, loop)))


def _cursor_for_all(case: _Case) -> Remedy | None:
    loop = _loop_at(case)
    cursor = f"{loop}Index"
    return Remedy(
        f"One cursor for all: {cursor}", loops.set_source(case.document, loop, "iterator", cursor=cursor)
    )


def _one_item(case: _Case) -> Remedy | None:
    id_ = case.here.removesuffix(".edges")
    loop = next(one for one in case.facts.loops_of[id_] if one.iterates)
    when = as_object(case.facts.sockets[id_].get("advance")).get("when")
    if not is_condition(when):
        routes = [as_object(one) for one in as_list(loop.raw.get("exits"))]
        when = next(one["condition"] for one in routes if one.get("from") == id_)
    to = loop.members[0]
    return Remedy(f"{when} → {to}", edges.add_edge(case.document, id_, to, when))


def _lone_guard(case: _Case) -> Remedy | None:
    id_ = case.here.removesuffix(".edges")
    found = {edge.get("when") for _, edge in case.facts.edges(id_)}
    missing = "not_satisfied" if "satisfied" in found else "satisfied"
    return Remedy(f"{missing} → end", edges.add_edge(case.document, id_, END, missing))


def _late_retry(case: _Case) -> Remedy | None:
    socket, _, _ = _edge_at(case)
    return Remedy(
        "Move on when satisfied",
        sockets.set_socket(case.document, socket, "advance", {"when": "satisfied"}),
    )


def _leaves_loop(case: _Case) -> Remedy | None:
    socket, place, edge = _edge_at(case)
    loop = next(one for one in case.facts.loops_of[socket] if one.iterates)
    change = as_exit(case.document, socket, place, loop.id)
    return Remedy(f"Make it an exit of {loop.id}", change) if edge else None


def as_exit(document: Object, socket: str, place: int, loop: str) -> Change:
    """Make an exit route of an edge: out of the loop once its list is done, and not before.

    Raises:
        MateriaError: there is such an exit already, or no such edge or loop.
    """
    edge = edges.edge_in(document, socket, place)
    without = edges.remove_edge(document, socket, place).document
    made = exits.add_exit(without, loop, socket, str(edge.get("when")), str(edge.get("to")))
    return Change(made.document, f"edge {place + 1} of {socket} is an exit of loop {loop} now")


def as_edge(document: Object, loop: str, place: int) -> Change:
    """Make a plain edge of an exit route: it leaves the loop at any item; raises MateriaError when there is none."""
    route = exits.exit_in(document, loop, place)
    without = exits.remove_exit(document, loop, place).document
    source, when, to = (str(route.get(name)) for name in ("from", "condition", "targetSocketId"))
    made = edges.add_edge(without, source, to, when)
    return Change(made.document, f"exit {place + 1} of loop {loop} is an edge of {source} now")


def _empty_list(case: _Case) -> Remedy | None:
    loop = _loop_at(case)
    routes = [as_object(one) for one in as_list(loop_in(case.document, loop).get("exits"))]
    first = routes[0]
    source, how, to = str(first["from"]), first["condition"], str(first["targetSocketId"])
    changed = case.document
    if "advance" not in as_object(case.facts.sockets[source]):
        changed = sockets.set_socket(changed, source, "advance", {"when": how}).document
    change = exits.add_exit(changed, loop, source, "always", to)
    return Remedy(f"always → {to} too", change)


def _exhausted(case: _Case) -> Remedy | None:
    loop = _loop_at(case)
    source = case.problem.message.split("'")[1]
    changed, words = case.document, []
    for when in ("satisfied", "not_satisfied"):
        if f" {when}" in case.problem.message.split(" when it is ")[1].split(",")[0].replace("or ", " "):
            changed = exits.add_exit(changed, loop, source, when, END).document
            words.append(when)
    return Remedy(f"{' and '.join(words)} → end", Change(changed, f"added exits of {source} to end"))


def _idle_route(case: _Case) -> Remedy | None:
    found = _EXIT.fullmatch(case.here)
    wanted = re.search(r"wait for (\w+)", case.problem.hint)
    if found is None or wanted is None:
        return None
    change = exits.change_exit(case.document, found["loop"], int(found["place"]), condition=wanted[1])
    return Remedy(f"Wait for {wanted[1]}", change)


def _no_effect(case: _Case) -> Remedy | None:
    id_, _, field = case.here.rpartition(".")
    if field not in ("parse", "assign") or id_ not in case.facts.sockets:
        return None
    return Remedy(f"Remove {field} here", sockets.set_socket(case.document, id_, field, None))


def _told_nothing(case: _Case) -> Remedy | None:
    id_ = case.here.removesuffix(".castContext")
    return Remedy("Tell it the request", sockets.set_socket(case.document, id_, "castContext", "request"))


_REMEDIES: Final[dict[str, Callable[[_Case], Remedy | None]]] = {
    MISSING_ENDPOINT: _endpoint,
    UNKNOWN_ENDPOINT: _endpoint,
    INVALID_SOCKET_ID: _renumber,
    INVALID_CONDITION: _condition,
    UNREACHABLE_EDGE: _unreachable_edge,
    UNKNOWN_MATERIA: _materia,
    INVALID_GENERATOR: _generator,
    INVALID_LOOP: _loop_problem,
    "cursor-for-each": _cursor_for_all,
    "duplicate-member": _members_once,
    "empty-list-ends": _empty_list,
    "exhausted-unmatched": _exhausted,
    "guard-on-text": _read_json,
    "idle-route": _idle_route,
    "late-retry": _late_retry,
    "leaves-loop": _leaves_loop,
    "lone-guard": _lone_guard,
    "missing-entry": _entry,
    "never-advances": _never_advances,
    "no-effect": _no_effect,
    "one-item": _one_item,
    "socket-id": _renumber,
    "told-nothing": _told_nothing,
}
