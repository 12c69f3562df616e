"""Which edge or exit is taken after a visit (:func:`choose_edge`), and the decision that every transition records.

How often an edge may be taken is counted in :mod:`.limits`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import Failure, ItemId, Visit
from materia_nb.handoff.base import Issue, Reading
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END, Edge, ExitRoute
from materia_nb.loadout.vocabulary import TAKEN, WITHOUT_OUTPUT, Condition, Result, described

By: TypeAlias = Literal[
    "edge",
    "exit",
    "implied end",
    "empty loop",
    "repair",
    "draft",
    "finalize",
    "failure",
    "budget",
    "reissue",
    "pause",
    "escalate",
    "detour",
    "return",
    "person",
    "recording",
]
"""Reason for the target of a step."""


class Look(NamedTuple):
    """One edge or exit route that was checked, in order, and whether it matched."""

    kind: Literal["edge", "exit"]
    when: Condition
    to: str
    matched: bool
    place: int | None = None
    route: str | None = None
    used: int | None = None
    limit: int | None = None

    def reason(self, result: Result) -> str:
        """Return why the edge matched or not for this result of a visit, in words."""
        condition = described(self.when)
        if not condition.whatever or result not in TAKEN:
            return f"{result.words}; {self.when} needs {condition.asked}"
        if self.matched:
            return f"{self.when} matches"
        return f"{self.when} would match, but a guarded exit goes first"


class Choice(NamedTuple):
    """The target of a step, what chose it, every edge or exit that was checked, and the chosen one with its use and limit."""

    target: str
    by: By
    looks: tuple[Look, ...] = ()
    edge: Edge | None = None
    route: ExitRoute | None = None
    used: int = 0
    limit: int | None = None


def choose_edge(rules: SocketRules, result: Result, exhausted: bool) -> Choice | None:
    """Return the edge or exit to take after a visit; None if the cast must stop, since no edge waits for such a failure.

    Everybody who asks where a visit leads calls this: the running cast, ``why``, and through the engine ``explore`` and
    ``odds``.

    Args:
        rules: the socket that was visited.
        result: what happened to the visit.
        exhausted: True if its ``advance`` came to the end of the list, so that the loop is left.
    """
    if exhausted:
        return _choose_exit(rules.exits, result)
    return _choose_first_match(rules.socket.edges, result)


@lru_cache(maxsize=4096)  # so that steps of a long cast share the records of what was checked
def _choose_first_match(edges: tuple[Edge, ...], result: Result) -> Choice | None:
    """Choose the first edge that matches; without one an output ends the cast (R3), and a failure stops it."""
    looks: list[Look] = []
    for edge in edges:
        matched = described(edge.when).holds(result)
        looks.append(Look("edge", edge.when, edge.to, matched, edge.place, used=0))
        if matched:
            return Choice(edge.to, "edge", tuple(looks), edge)
    return Choice(END, "implied end", tuple(looks)) if result in TAKEN else None


@lru_cache(maxsize=4096)
def _choose_exit(routes: tuple[ExitRoute, ...], result: Result) -> Choice:
    """Choose the exit whose guard matches, else an ``always`` exit, else the end (R16)."""
    matching = [route for route in routes if described(route.condition).holds(result)]
    guarded = [route for route in matching if not described(route.condition).whatever]
    chosen = next(iter(guarded or matching), None)
    looks = tuple(
        Look("exit", route.condition, route.target, route is chosen, route=route.edge_id) for route in routes
    )
    if chosen is None:
        return Choice(END, "implied end", looks)
    return Choice(chosen.target, "exit", looks, route=chosen)


def awaited_failures(rules: SocketRules) -> dict[Result, Result]:
    """Return each failure of a visit that an edge of the socket waits for, with the first failure that takes that edge."""
    first_of_edge: dict[Edge | None, Result] = {}
    awaited: dict[Result, Result] = {}
    for result in WITHOUT_OUTPUT:
        refusable = result is not Result.REFUSED or rules.wanted.parse != "text"  # any text is accepted
        if refusable and (choice := choose_edge(rules, result, exhausted=False)) is not None:
            awaited[result] = first_of_edge.setdefault(choice.edge, result)
    return awaited


class AdvanceFact(NamedTuple):
    """What ``advance`` did: moved or not, from where to where, and how long the list is (R14)."""

    when: str
    moved: bool
    cursor: str
    before: int
    after: int
    length: int
    exhausted: bool
    derived: bool


class Assigned(NamedTuple):
    """One assignment: its target, its source, and whether the source was there (R11)."""

    target: str
    source: str
    found: bool


class Applied(NamedTuple):
    """What an accepted output did before the way on was chosen: assignments, advance; what was odd about what it taught."""

    assigned: tuple[Assigned, ...] = ()
    advance: AdvanceFact | None = None
    warnings: tuple[Issue, ...] = ()


NOTHING_APPLIED: Final = Applied()
NO_READING: Final = Reading(None)


class Passed(NamedTuple):
    """A socket that was skipped, since its list had no item left at the cursor (R16).

    ``loop`` is None for a socket's own ``foreach``, ``entries`` the length of its list, and ``route`` the exit that led on,
    None when there was none.
    """

    socket: str
    loop: str | None
    entries: int
    route: str | None
    target: str

    @property
    def empty(self) -> bool:
        """True if the list had no entry (R67)."""
        return self.entries == 0


class Decision(NamedTuple):
    """Decision at the end of a step.

    ``by`` says what chose the target: an edge, a loop exit, the implied end, an empty
    loop, a turn that is still owed (repair, draft, finalize, reissue), a person who is waited for (pause,
    escalate) or who has chosen, a detour and its way back, the recording of a cast that is not rebuilt, or a failure. ``at`` is the visit that ended, None on the
    way in, ``reading`` the reading of its outputs output, and ``result`` what happened to it. ``done`` tells whether its item advanced, and ``exhausted``
    whether its list came to its end.
    """

    step: int
    by: By
    target: str | None
    at: Visit | None = None
    reading: Reading = NO_READING
    result: Result = Result.NOTHING
    applied: Applied = NOTHING_APPLIED
    looks: tuple[Look, ...] = ()
    passed: tuple[Passed, ...] = ()
    failure: Failure | None = None
    done: bool = False
    exhausted: bool = False

    @property
    def socket(self) -> str | None:
        """The socket that was visited."""
        return self.at.socket if self.at else None

    @property
    def visit(self) -> int | None:
        """Number of the visit of this socket, from 1."""
        return self.at.visit if self.at else None

    @property
    def item(self) -> ItemId | None:
        """The item of the visit."""
        return self.at.item.id if self.at and self.at.item else None

    @property
    def item_key(self) -> str | None:
        """The key of that item."""
        return self.at.item.key if self.at and self.at.item else None

    @property
    def item_label(self) -> str | None:
        """Label of the item of the visit."""
        return self.at.item.label if self.at and self.at.item else None

    @property
    def satisfied(self) -> bool | None:
        """What the output said of ``satisfied``, or a person for it; None where nobody said."""
        return self.result.satisfied

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the output, such as prose around its object."""
        return self.reading.notes

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Issues for which the output was refused."""
        return self.reading.issues

    @property
    def reason(self) -> str:
        """Reason of an output that asks for something other than a route."""
        return self.reading.reason

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """What was odd about the output, and about what it taught."""
        return self.reading.warnings + self.applied.warnings

    @property
    def assigned(self) -> tuple[Assigned, ...]:
        """Assignments to the state."""
        return self.applied.assigned

    @property
    def advance(self) -> AdvanceFact | None:
        """Movement of the cursor."""
        return self.applied.advance

    @property
    def skipped_sockets(self) -> tuple[str, ...]:
        """The sockets that were skipped on the way in."""
        return tuple(skipped.socket for skipped in self.passed)

    @property
    def chosen(self) -> Look | None:
        """The edge or exit that was taken, if one was."""
        return next((look for look in self.looks if look.matched), None)


def decision_of(
    visit: Visit | None,
    by: By,
    target: str | None,
    reading: Reading | None = None,
    applied: Applied = NOTHING_APPLIED,
    *,
    result: Result | None = None,
) -> Decision:
    """Record how a visit ended without a way on; ``result`` is what happened where that is not what its output says."""
    known_reading = reading or NO_READING
    step = 0 if visit is None else visit.step
    if result is None:
        result = Result.FAILED if reading is None and by == "failure" else known_reading.result
    return Decision(step, by, target, visit, known_reading, result, applied)


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """The fields that say which visit an event is about, as the reference names them."""
    socket_rules, item = rules.sockets[visit.socket], visit.item
    if item is None:
        return socket_rules.about
    return {
        **socket_rules.about,
        "itemKey": item.key,
        "itemLabel": item.label,
        "itemLabelShort": short(item.label),
    }


@lru_cache(maxsize=4096)
def short(label: str, max_chars: int = 60) -> str:
    """A label on one line, at most ``most`` characters."""
    line = " ".join(label.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
