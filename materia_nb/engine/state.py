"""The immutable state of a cast between two steps, and the pins and labels that a person set."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.base import BASE, Issue, Needs, Reading, Scope
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, copied_by_position, frozen
from materia_nb.loadout.graph import Budget, Iterator
from materia_nb.loadout.vocabulary import Result

_N = TypeVar("_N", int, float)

Place: TypeAlias = tuple[str, int]
"""A position in a list: the cursor of the list, and an index."""

ItemId: TypeAlias = tuple[str, int, tuple[Place, ...]]
"""Identity of an item: its cursor, its index, and the places of its outer items, outermost first (R34)."""

EdgeId: TypeAlias = tuple[str, int]
"""Identity of an edge: its socket and its index among the edges of that socket (R18)."""

Status: TypeAlias = Literal["ready", "waiting", "held", "complete", "failed", "aborted"]
"""Status of a cast. ``ready``: ``next`` is the socket to enter. ``waiting``: the visit ``at`` needs an output.

``held``: a person must decide.
"""

Mode: TypeAlias = Literal["work", "draft", "final", "repair", "resume"]
"""Purpose of the pending turn.

``draft`` is used by multi-turn sockets. ``final`` asks for the handoff after drafts, or after the work of a socket
with ``finalize``. ``resume`` continues work that the agent or a person's answer interrupted.
"""


NOTHING: Final[Mapping[Any, Any]] = FrozenDict()
"""A shared empty mapping, which is immutable."""


class Item(NamedTuple):
    """The current item of a visit (R12, R13). ``id`` identifies the item within the cast."""

    value: JSON
    key: str
    label: str
    id: ItemId
    loop: str | None

    @property
    def cursor(self) -> str:
        """The cursor of the item's list."""
        return self.id[0]

    @property
    def position(self) -> int:
        """The index of the item in its list."""
        return self.id[1]

    @property
    def outer(self) -> tuple[Place, ...]:
        """The places of the outer items, outermost first (R34)."""
        return self.id[2]


class Walk(NamedTuple):
    """The iteration of a socket over a list: the path of the list in the state, and the paths that show the item (R12).

    ``numbered`` is True if the keys of the items are ``WI-<n>``; otherwise they are ``<index>`` (R13).
    """

    iterator: Iterator
    list_path: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    numbered: bool


class ShownItem(NamedTuple):
    """An item that is visible in the state's data, and the objects that were created to contain it (R12)."""

    walk: Walk
    item: Item
    created: tuple[tuple[str, ...], ...] = ()


class ItemRecord(NamedTuple):
    """The record of an item in progress: the number of uses of each edge, and the path through the sockets (R18)."""

    used: Mapping[EdgeId, int] = NOTHING
    path: tuple[tuple[str, int], ...] = ()
    cycles: int = 0


NEW_ITEM: Final = ItemRecord()
"""The record of an item that no socket has visited."""


class Visit(NamedTuple):
    """One visit of a socket: ``step`` numbers it within the cast, from 1.

    ``memory`` is data that the handoff protocol stores for the next output of this socket. ``approval`` is a person's
    approval of one exact command, until the approval is used, revoked or expired (R44). ``changed`` are the files that
    changed during the visit, if the protocol needs them.
    """

    socket: str
    visit: int
    step: int
    item: Item | None
    mode: Mode = "work"
    turn: int = 0
    repairs: int = 0
    drafts: int = 0
    memory: JSON = None
    approval: Approval | None = None
    changed: tuple[str, ...] = ()


class FollowUp(NamedTuple):
    """The reason why a socket sent work back along a ``not_satisfied`` edge, for the target of the edge (R22).

    The reason is ``settled`` when the socket has accepted the item. The agent then no longer receives it (R50).
    """

    source: str
    label: str
    target: str
    item: ItemId | None
    item_label: str | None
    reason: str
    step: int = 0
    settled: bool = False


class Handoff(NamedTuple):
    """The text that an output passed on as ``context`` (R10), with its socket, item, step and result."""

    socket: str
    label: str
    item: ItemId | None
    key: str | None
    step: int
    result: Result
    text: str

    @property
    def satisfied(self) -> bool | None:
        """Verdict of the output, or None."""
        return self.result.satisfied

    @property
    def line(self) -> str:
        """The entry as written in ``state.context``."""
        return f"[{self.socket} {self.label}] {self.text}"


class Handoffs(NamedTuple):
    """The records of handoffs, and the text in ``state.context`` that is made from them (R50)."""

    entries: tuple[Handoff, ...] = ()
    text: str = ""


class Answered(NamedTuple):
    """Last answer of a socket for an item: its text and, for JSON, the parsed object."""

    step: int
    text: str
    value: JSON = None


class Failure(NamedTuple):
    """Failure that stopped a cast.

    ``blocked`` is the target at which the cast continues after the limit is raised, if any. ``allow`` is a key of
    ``CastState.extra`` and the amount by which the limit is then raised. ``refused`` has the issues and the text of
    the last refused answer. ``again`` is True if a turn was interrupted and can be retried. ``undo`` is the cursor
    that the failed visit moved; a retry moves it back (R48).
    """

    kind: str
    message: str
    socket: str | None = None
    hint: str | None = None
    blocked: str | None = None
    allow: tuple[tuple[object, ...], int] | None = None
    refused: tuple[tuple[Issue, ...], str] | None = None
    again: bool = False
    undo: str | None = None


def known_sum(first: _N | None, other: _N | None) -> _N | None:
    """Add the known numbers. None is an unknown number; the sum is None if all numbers are unknown (R56)."""
    if first is None or other is None:
        return first or other or None
    return first + other


class Usage(NamedTuple):
    """Tokens and cost of one or several turns (R20). None means that the number was not reported (R56).

    In a sum, ``uncounted`` and ``unpriced`` are the numbers of turns without reported tokens or cost. ``cached`` are
    the input tokens that came from a cache, and ``reasoning`` the output tokens of thinking, if reported. The usage of
    a cast also has the number of agent ``turns``, the time ``worked`` by agents and processes in milliseconds, and the
    number of ``untimed`` turns.
    """

    input: int | None = 0
    output: int | None = 0
    cost: float | None = 0.0
    uncounted: int = 0
    unpriced: int = 0
    cached: int | None = None
    reasoning: int | None = None
    turns: int = 0
    worked: int = 0
    untimed: int = 0

    @property
    def tokens(self) -> int | None:
        """Sum of input and output tokens, which the budget counts."""
        return known_sum(self.input, self.output)

    def plus(self, *others: Usage) -> Usage:
        """Return the sum of this and other usages."""
        added: list[Any] = list(self)
        for other in others:
            added = [a or b or None if a is None or b is None else a + b for a, b in zip(added, other, strict=True)]
        for usage in (self, *others):  # as in :attr:`without_tokens` and :attr:`without_cost`, but faster
            added[3] += not usage.uncounted and not (usage.input or usage.output) and None in usage[:2]
            added[4] += not usage.unpriced and usage.cost is None
        return Usage(*added)

    def less(self, before: Usage) -> Usage:
        """Return this usage minus an earlier usage."""
        left: list[Any] = [None if used is None else used - (was or 0) for used, was in zip(self, before, strict=True)]
        left[3:5] = self.without_tokens - before.without_tokens, self.without_cost - before.without_cost
        return Usage(*left)

    @property
    def without_tokens(self) -> int:
        """Number of turns without known tokens."""
        return self.uncounted or int(self.tokens is None)

    @property
    def without_cost(self) -> int:
        """Number of turns without known cost."""
        return self.unpriced or int(self.cost is None)

    @property
    def seconds(self) -> float | None:
        """Working time in seconds; None if unknown for every turn."""
        return None if self.untimed and not self.worked else self.worked / 1000

    @property
    def tokens_words(self) -> str:
        """The tokens in words, with the number of turns whose tokens are unknown."""
        return in_words(None if self.tokens is None else f"{self.tokens:,}", self.without_tokens)

    @property
    def cost_words(self) -> str:
        """The cost in words, with the number of turns whose cost is unknown."""
        return in_words(None if self.cost is None else f"{self.cost:.4f} USD", self.without_cost)

    def as_json(self) -> dict[str, JSON]:
        """Return the usage of one turn as JSON, for the journal; null means unknown."""
        fields: dict[str, JSON] = {"input": self.input, "output": self.output, "cost": self.cost}
        if self.cached is not None or self.reasoning is not None:
            fields |= self.apart()
        return fields

    @classmethod
    def read(cls, value: JSON) -> Usage:
        """Read the usage that an output reports. A field that is not a number counts as unknown (R56).

        Raises:
            ValueError: the value is not an object, or a number in it is not finite.
        """
        if not isinstance(value, dict):
            raise ValueError(value)  # noqa: TRY004 - one kind of error for all
        names = ("cost", "input", "output", "cached", "reasoning")
        cost, *counts = [number if type(number := value.get(name)) in (int, float) else None for name in names]
        try:
            tokens = [None if count is None else int(count) for count in counts]
            paid = None if cost is None else float(cost)
        except OverflowError as error:  # not finite
            raise ValueError(value) from error
        usage = cls(tokens[0], tokens[1], paid, cached=tokens[2], reasoning=tokens[3])
        return UNREPORTED if usage == UNREPORTED else usage  # shared, because every step stores its usage

    def apart(self) -> dict[str, JSON]:
        """Return the reported numbers of ``cached`` and ``reasoning`` tokens, by name."""
        fields = {"cached": self.cached, "reasoning": self.reasoning}
        return {name: count for name, count in fields.items() if count is not None}

    @property
    def apart_words(self) -> str:
        """The cached and reasoning tokens in words, such as ``800 cached, 120 reasoning``; empty if not reported."""
        return ", ".join(f"{count:,} {name}" for name, count in self.apart().items())


UNREPORTED: Final = Usage(None, None, None)
"""The usage of a turn whose agent reported no usage."""


def at_work(milliseconds: int | None, usage: Usage | None = None, *, turns: int = 0) -> Usage:
    """Return ``usage`` with the number of agent turns and their working time.

    None for ``milliseconds`` means that the time is unknown.
    """
    return Usage(*(usage or Usage())[:-3], turns, milliseconds or 0, int(milliseconds is None))


Unit: TypeAlias = Literal["tokens", "usd", "seconds", "turns"]
"""Unit of a limit in a budget: tokens, known cost, working time or agent turns."""


class Bound(NamedTuple):
    """One kind of limit in a budget (R20).

    Attributes:
        of: the name of the counted quantity in events and tables.
        unit: the unit to write after a number.
        field: the field in the budget and in events.
        key: the field in a config.
        form: the format string of a number.
        counts: the limited attribute of :class:`Usage`.
        uncounted: the attribute of :class:`Usage` with the number of turns without a known value; None if the value is
            always known.
    """

    of: str
    unit: str
    field: str
    key: str
    form: str
    counts: str
    uncounted: str | None

    @property
    def whole(self) -> bool:
        """True if the amount is an integer."""
        return self.of in ("tokens", "turns")

    def most(self, budget: Budget) -> float | None:
        """Return the maximum of this kind in a budget, or None without a limit."""
        return getattr(budget, self.field)  # type: ignore[no-any-return]

    def used(self, usage: Usage) -> float | None:
        """Return the used amount, or None if the amount is unknown."""
        return getattr(usage, self.counts)  # type: ignore[no-any-return]

    def missing(self, usage: Usage) -> int:
        """Return the number of turns without a known amount."""
        return getattr(usage, self.uncounted) if self.uncounted else 0

    def reached(self, usage: Usage, budget: Budget, percent: float = 100) -> bool:
        """Return True if the known use is at least ``percent`` of the maximum."""
        maximum = self.most(budget)
        return maximum is not None and (self.used(usage) or 0) * 100 >= maximum * percent

    def so_far(self, usage: Usage, maximum: float | None = None) -> str:
        """Return the use in words, with the maximum, if given, and the number of turns whose use is unknown (R56)."""
        used, total = self.used(usage), "" if maximum is None else f" of {self.form.format(maximum)}"
        unit = "" if self.unit == self.of else f" {self.unit}"
        if used is None:
            return f"unknown{total}{unit if total else ''}"
        return in_words(f"{self.form.format(used)}{total}{unit}", self.missing(usage))


BOUNDS: Final = (
    Bound("tokens", "tokens", "max_tokens", "maxTokens", "{:,}", "tokens", "without_tokens"),
    Bound("cost", "USD", "max_cost_usd", "maxCostUsd", "{:,.4f}", "cost", "without_cost"),
    Bound("seconds", "seconds", "max_seconds", "maxSeconds", "{:,.1f}", "seconds", "untimed"),
    Bound("turns", "turns", "max_turns", "maxTurns", "{:,}", "turns", None),
)
"""The kinds of limits that a budget can have."""


_MAXIMA: Final = operator.attrgetter(*(bound.field for bound in BOUNDS))
_NO_MAXIMA: Final = (None,) * len(BOUNDS)


def limited(budget: Budget) -> bool:
    """True if the budget has at least one limit."""
    return _MAXIMA(budget) != _NO_MAXIMA


def in_words(known: str | None, missing: int) -> str:
    """Return a known amount in words, with the number of turns for which it is unknown (R56)."""
    if known is None:
        return "unknown"
    return f"{known}, unknown of {counted(missing, 'turn')}" if missing else known


class Blind(NamedTuple):
    """A kind of usage that a budget could not count, and the socket and step where this first happened (R56)."""

    of: str
    socket: str
    step: int


class OfLane(NamedTuple):
    """The data of a lane: its name, the indexes of its items in order, its cursor and its sockets.

    In the lane, the cursor moves from one of these indexes to the next. After the last index it moves to the end of the
    list.
    """

    name: str
    indexes: tuple[int, ...]
    cursor: str
    sockets: frozenset[str]


class Unrouted(NamedTuple):
    """A completed socket whose next socket has not been chosen, because the budget stopped the cast.

    ``advanced`` is the item that ``advance`` completed, or None. ``target`` is the socket that a person chose, and
    ``detour`` the socket that the output asks to run first.
    """

    result: Result
    text: str
    context: str | None
    exhausted: bool
    advanced: ItemId | None
    target: str | None = None
    detour: str | None = None


class Hold(NamedTuple):
    """An output that waits for a person.

    Attributes:
        action: ``pause`` if the agent waits for a person's answer; ``escalate`` if a person must decide for the agent.
        reason: the reason, as text for a person.
        needs: what a paused agent needs: approval of a command, a direction, an answer, or help.
        text: the output.
        reading: the reading of the output, which is applied after a person's decision.
    """

    action: Literal["pause", "escalate"]
    reason: str
    needs: Needs | None
    text: str
    reading: Reading


@copied_by_position
class CastState(NamedTuple):
    """The state of a cast at one moment.

    Attributes:
        data: the JSON state that sockets share.
        counts: uses of edges outside items; the record of an item has the uses inside the item.
        bounded_at: the step at which an edge with ``maxTraversals`` was last chosen.
        shown: the items that ``data`` shows, outermost first: the outer items and the current item (R12, R34).
        within: for the cursor of a nested list, the outer items of its last walk (R34).
        trail: the last entered sockets, in order.
        blind: the kinds of usage that the budget could not count (R56).
        side_event_count: number of side events of the outputs so far (R39).
        handoffs: the records of ``data["context"]``; ``answers`` has the last answers of sockets to which work is
        sent back.
        changed: descriptions of a person's changes since the last output.
        last_step: the step of ``last_output``; ``last_result`` is its result.
        last_socket: the socket of ``last_output``; ``last_artifact`` is its artifact, if known.
        hold: the held output.
        detours: the sockets to return to after the current detours, the innermost last.
        knowledge: the project's knowledge in this cast, by section.
        extra: amounts by which limits were raised: ("edge", socket, place, item) or ("repair", step) or ("cycles", item).
        scope: the working directory of utilities and agents (P8).
        lane: the lane of the state; None for the cast itself.
        joined: the items that accepted lanes worked on.
        passed: the unfinished items that their cursor has passed; True for an item that was entered and then
        abandoned (R46).
    """

    request: str
    data: Mapping[str, JSON] = NOTHING
    cursors: Mapping[str, int] = NOTHING
    visits: Mapping[str, int] = NOTHING
    traversals: Mapping[str, int] = NOTHING
    counts: Mapping[EdgeId, int] = NOTHING
    items: Mapping[ItemId, ItemRecord] = NOTHING
    follow_up: tuple[FollowUp, ...] = ()
    steps: int = 0
    bounded_at: int = 0
    last_output: str | None = None
    last_json: JSON = MISSING
    last_socket: str | None = None
    last_artifact: str | None = None
    usage: Usage = Usage()
    warned: bool = False
    blind: tuple[Blind, ...] = ()
    budget: Budget = Budget()
    extra: Mapping[tuple[object, ...], int] = NOTHING
    status: Status = "ready"
    next: str | None = None
    at: Visit | None = None
    shown: tuple[ShownItem, ...] = ()
    within: Mapping[str, tuple[Place, ...]] = NOTHING
    trail: tuple[str, ...] = ()
    side_event_count: int = 0
    unrouted: Unrouted | None = None
    failure: Failure | None = None
    hold: Hold | None = None
    detours: tuple[str, ...] = ()
    knowledge: Mapping[str, JSON] = NOTHING
    passed: Mapping[ItemId, bool] = NOTHING
    handoffs: Handoffs = Handoffs()
    answers: Mapping[tuple[str, ItemId | None], Answered] = NOTHING
    changed: tuple[str, ...] = ()
    last_step: int = 0
    last_result: Result = Result.NOTHING
    scope: Scope = BASE
    lane: OfLane | None = None
    joined: frozenset[ItemId] = frozenset()

    @property
    def waiting_at(self) -> Visit | None:
        """The visit that waits for an output, or None."""
        return self.at if self.status == "waiting" else None

    @property
    def stands(self) -> str:
        """The status as a phrase to put after "the cast", such as ``has failed`` or ``is complete``."""
        return {"failed": "has failed", "aborted": "was aborted"}.get(self.status, f"is {self.status}")


NEXT: Final[Mapping[Status, str]] = {
    "ready": "continue it with step or run",
    "waiting": "continue it with step, or answer yourself with reply",
    "complete": "continue from an earlier step with back STEP or fork STEP",
    "failed": "continue it with retry",
    "aborted": "continue it with retry",
    "held": "answer, decide, or approve first",
}
"""Hint for continuing a cast, by the status of the cast."""


def waiting_visit(state: CastState) -> Visit:
    """Return the visit that waits for an output, or raise MateriaError (``not_waiting``)."""
    visit = state.at
    if visit is None or state.status != "waiting":
        raise MateriaError(
            f"No socket is waiting for an answer; the cast {state.stands}.",
            hint=NEXT[state.status],
            kind="not_waiting",
        )
    return visit


def held_visit(state: CastState) -> Visit:
    """Return the visit that holds the cast, or raise MateriaError (``not_held``)."""
    if state.status != "held" or state.at is None or state.hold is None:
        raise MateriaError(
            f"The cast {state.stands}; nothing is waiting for a decision.",
            hint=NEXT[state.status],
            kind="not_held",
        )
    return state.at


class Past(Protocol):
    """An object that returns the states around earlier steps, see :mod:`materia_nb.engine.outputs`."""

    lane: OfLane | None

    def before(self, number: int) -> CastState:
        """Return the state from which step ``number`` was entered."""

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""


class Draft:
    """A mutable copy of a state, with the fields of :class:`CastState`, for one transition.

    A draft is used only in the transition that created it. The values of the fields are shared with earlier states,
    so they are replaced and never modified (R47). ``artifact`` is the artifact of the applied output.
    """

    __slots__ = (*CastState._fields, "artifact")

    def __init__(self, state: CastState, artifact: str | None = None) -> None:
        """Copy the fields of ``state``."""
        (
            self.request,
            self.data,
            self.cursors,
            self.visits,
            self.traversals,
            self.counts,
            self.items,
            self.follow_up,
            self.steps,
            self.bounded_at,
            self.last_output,
            self.last_json,
            self.last_socket,
            self.last_artifact,
            self.usage,
            self.warned,
            self.blind,
            self.budget,
            self.extra,
            self.status,
            self.next,
            self.at,
            self.shown,
            self.within,
            self.trail,
            self.side_event_count,
            self.unrouted,
            self.failure,
            self.hold,
            self.detours,
            self.knowledge,
            self.passed,
            self.handoffs,
            self.answers,
            self.changed,
            self.last_step,
            self.last_result,
            self.scope,
            self.lane,
            self.joined,
        ) = state
        self.artifact = artifact

    def done(self) -> CastState:
        """Return the changed state as an immutable state."""
        return tuple.__new__(CastState, _all_fields(self))


_all_fields = operator.attrgetter(*CastState._fields)


StateView: TypeAlias = CastState | Draft
"""A state or a draft of a state, for functions that only read."""


_PinKind: TypeAlias = Literal["text", "visits", "function"]

_KINDS: Final[Mapping[JSON, _PinKind]] = {"text": "text", "visits": "visits", "function": "function"}


@dataclass(frozen=True, slots=True)
class Pin:
    """An answer that a person chose for a socket or materia.

    The journal contains the whole pin, so resumed casts and forks have the pin too.

    Attributes:
        kind: ``text`` for all visits, a text for each of the ``visits``, or a ``function``, of which the journal has
        only the name.
        words: a description of the answer, for a person.
        text: the answer of every visit, for the kind ``text``.
        visits: the answers by socket and number of the visit, for the kind ``visits``.
    """

    kind: _PinKind
    words: str
    text: str = ""
    visits: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NOTHING)

    def answer(self, socket: str, visit: int) -> str | None:
        """Return the answer for a visit, or None."""
        return self.text if self.kind == "text" else self.visits.get(socket, {}).get(str(visit))

    def as_json(self) -> dict[str, JSON]:
        """Return the pin as JSON, for the journal."""
        fields: dict[str, JSON] = {"kind": self.kind, "to": self.words}
        if self.kind == "text":
            fields["text"] = self.text
        if self.kind == "visits":
            fields["visits"] = {socket: dict(texts) for socket, texts in self.visits.items()}
        return fields

    @classmethod
    def read(cls, data: Mapping[str, JSON]) -> Self | None:
        """Read the output of :meth:`as_json`; return None for any other value."""
        description, text, visits = data.get("to"), data.get("text", ""), frozen(data.get("visits", {}))
        kind = next((known for name, known in _KINDS.items() if name == data.get("kind")), None)
        if kind is None or not isinstance(description, str) or not isinstance(text, str):
            return None
        if not isinstance(visits, dict) or not all(_is_text_mapping(texts) for texts in visits.values()):
            return None
        return cls(kind, description, text, visits)


def _is_text_mapping(value: JSON) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


LabelKey: TypeAlias = tuple[int, int]
"""Key of a step's label: the branch and the number of the step, because step numbers repeat after going back."""

WHOLE_CAST: Final[LabelKey] = (0, 0)
"""Key of the label of the cast itself."""

_LISTED_NOTE_CHARS: Final = 200  # every later line of the journal repeats it, for the list of casts


class Label(NamedTuple):
    """The label of a cast or step: name, tags, note and verdict. All of them may be empty."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    by: str = ""

    @property
    def empty(self) -> bool:
        """True if name, tags, note and verdict are empty."""
        return not (self.name or self.tags or self.note or self.verdict)

    @property
    def words(self) -> str:
        """The label in one line."""
        parts = [
            self.name and f"named {self.name}",
            self.verdict and f"judged {self.verdict}",
            self.tags and f"tagged {', '.join(self.tags)}",
            self.note and f"note: {' '.join(self.note.split())}",
        ]
        text = "; ".join(str(part) for part in parts if part)
        return f"{text} (by {self.by})" if self.by not in ("", "person") else text

    def listed(self) -> dict[str, JSON]:
        """Return the label as JSON for the list of casts."""
        note = self.note[:_LISTED_NOTE_CHARS]
        fields: dict[str, JSON] = {
            "name": self.name,
            "tags": list(self.tags),
            "verdict": self.verdict,
            "note": note,
        }
        return {key: value for key, value in fields.items() if value}


def as_listed(listed: object) -> Label:
    """Read the output of :meth:`Label.listed`; invalid fields are ignored."""
    fields: Mapping[str, JSON] = listed if isinstance(listed, dict) else {}
    texts = {key: value for key in ("name", "note", "verdict") if isinstance(value := fields.get(key), str)}
    tags = fields.get("tags")
    return Label(**texts, tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ())
