"""What a socket's output must be, derived from its place in the graph and nothing else (R4, R7, R8, R9, R11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, MISSING, get_path
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.vocabulary import GUARDS, OF_OUTPUTS, SENDING_BACK, SIMPLE, Condition

_FIRST_FIELD = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


@lru_cache(maxsize=1024)
def reader(source: str) -> Callable[[JSON], JSON]:
    """Return a function that reads ``source`` from a parsed output; it gives MISSING where nothing is there.

    ``$`` and dotted paths such as ``$.a.b.0`` are read directly. Anything else is
    full JSONPath: one match gives the value, several give a list (R11).
    Raises MateriaError (kind ``assignment``) for an expression that is not JSONPath.
    """
    if SIMPLE.fullmatch(source):
        segments = source.split(".")[1:]
        return lambda value: get_path(value, segments)
    from jsonpath_ng.ext import parse

    try:
        expression = parse(source)
    except Exception as error:  # the library raises several unrelated types, bare Exception among them
        raise MateriaError(
            f"{source!r} is not a JSONPath expression: {error}",
            hint="write $, a dotted path such as $.plan.name, or full JSONPath such as $.items[*].title",
            kind="assignment",
        ) from error

    def read(value: JSON) -> JSON:
        try:
            matches = [match.value for match in expression.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return MISSING
        if not matches:
            return MISSING
        return matches[0] if len(matches) == 1 else matches

    return read


def first_field(source: str) -> str | None:
    """Name the top-level field that a ``$`` source opens for agents (R8); ``$`` itself opens none."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)


CANONICAL = ("workItems", "satisfied", "context")
SCHEDULE: Final = "parallelSchedule"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the next output of a socket must hold.

    Attributes:
        parse: ``text`` accepts anything; everything below concerns ``json`` only.
        utility: whether a process answers, which may add fields of its own (R8).
        why_satisfied: why ``satisfied`` must be there, in words; None when it need not be (R7).
        work_items: whether ``workItems`` must be there (a generator).
        streams: whether ``parallelSchedule`` must be there, which hands the items to streams (a parallel generator).
        check_items: whether each work item must be exactly a title and a context (R9).
        fields: top-level fields that an agent may use.
        sources: the ``$`` sources that must exist in the output, with the assignment target of each (R8).
        only_guarded: whether the socket has edges for outputs and every one of them asks for a verdict.
        sends_back: whether an edge says where work goes that was not good enough.
    """

    parse: Literal["json", "text"]
    utility: bool
    why_satisfied: str | None
    work_items: bool
    check_items: bool
    fields: frozenset[str]
    sources: tuple[tuple[str, str], ...]
    only_guarded: bool = False
    sends_back: bool = True
    streams: bool = False


def requirements(socket: Socket) -> Requirements:
    """Derive what ``socket`` must return from its edges, advance, assignments and materia."""
    followed = [edge.when for edge in socket.edges if edge.when in OF_OUTPUTS]
    sources = tuple((target, source) for target, source in socket.assign if source.startswith("$"))
    return Requirements(
        parse=socket.parse,
        utility=socket.is_utility,
        why_satisfied=_why_satisfied(socket, followed),
        work_items=socket.is_generator,
        check_items=not socket.is_utility or socket.is_generator,
        streams=socket.materia.parallel,
        fields=frozenset((*CANONICAL, *([SCHEDULE] if socket.materia.parallel else [])))
        | {name for _, source in sources if (name := first_field(source))},
        sources=sources,
        sends_back=any(edge.when in SENDING_BACK for edge in socket.edges),
        only_guarded=bool(followed) and all(when in GUARDS for when in followed),
    )


def _why_satisfied(socket: Socket, followed: Sequence[Condition]) -> str | None:
    """Say why ``satisfied`` must be there; ``followed`` are the conditions of the edges that an output can take."""
    guards = [when for when in followed if when in GUARDS]
    advance_guarded = socket.advance is not None and socket.advance.when in GUARDS
    if socket.is_utility and len(guards) < len(followed):
        guards, advance_guarded = [], False
    if guards:
        return "edges of this socket depend on it"
    if advance_guarded:
        return "going on to the next item depends on it"
    if not socket.is_utility and any(first_field(source) == "satisfied" for _, source in socket.assign):
        return "an assignment reads it"
    return None
