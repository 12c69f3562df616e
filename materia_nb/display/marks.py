"""What of a cast is laid over the picture of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

Route: TypeAlias = tuple[str, int | str]
"""A route taken: its source socket, and the edge's place, an exit route's ``edge_id``, or ``"end"``."""


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Marks:
    """An overlay for one moment of a cast; ``Marks()`` shows a bare loadout.

    Args:
        current: id of the socket that the cast is at.
        waiting: whether it waits there for an answer.
        working: whether somebody is at work on that answer now, as far as whoever draws it knows.
        held: whether its agent holds the cast there until a person has spoken.
        failed: id of the socket at which the cast failed.
        visits: visits so far by socket id.
        traversals: traversals so far by ``"A->B"`` (R21).
        last_route: the route taken last.
        progress: items done and in all, by loop id.
        breakpoints: ids of sockets with a breakpoint.
        remarks: codes of the remarks on a complete cast by socket id (R45).
        budgets: traversals used and allowed, by (socket id, place), of the edges that are counted now (R18).
        in_item: whether these are counted for the current item.
        answers: who answers, in a word or two, by socket id; a process needs no word.
        pins: what sockets are pinned to, by socket id (R40); goes before ``answers``.
        only: of two that are compared the one, A or B, that alone has or visited a socket, by socket id; ``both``
            where the socket itself differs.
        only_routes: the same of edges and exits.
        never: the routes that no cast takes.
        unreached: ids of sockets that no cast visits.
    """

    current: str | None = None
    waiting: bool = False
    working: bool = False
    held: bool = False
    failed: str | None = None
    visits: Mapping[str, int] = field(default_factory=_nothing)
    traversals: Mapping[str, int] = field(default_factory=_nothing)
    last_route: Route | None = None
    progress: Mapping[str, tuple[int, int]] = field(default_factory=_nothing)
    breakpoints: frozenset[str] = frozenset()
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    budgets: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=_nothing)
    in_item: bool = False
    answers: Mapping[str, str] = field(default_factory=_nothing)
    pins: Mapping[str, str] = field(default_factory=_nothing)
    only: Mapping[str, str] = field(default_factory=_nothing)
    only_routes: Mapping[Route, str] = field(default_factory=_nothing)
    never: frozenset[Route] = frozenset()
    unreached: frozenset[str] = frozenset()
