"""Define the immutable state of a cast between two steps, and the pins and labels that a person sets."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar, get_args

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.base import BASE, Issue, Needs, Reading, Scope
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, as_list, as_object, frozen
from materia_nb.loadout.graph import Budget, Iterator
from materia_nb.loadout.vocabulary import Result

_N = TypeVar("_N", int, float)

Position: TypeAlias = tuple[str, int]
"""A position in a list: the name of the list's cursor, and an index."""

ItemId: TypeAlias = tuple[str, int, tuple[Position, ...]]
"""Identity of an item: its cursor, its index, and the positions of its outer items, outermost first (R34)."""

EdgeId: TypeAlias = tuple[str, int]
"""Identity of an edge: its source socket and its index among the edges of this socket (R18)."""

Status: TypeAlias = Literal["ready", "waiting", "held", "complete", "failed", "aborted"]
"""Status of a cast. ``ready``: the socket ``next`` can be entered. ``waiting``: the visit ``at`` needs an output.

``held``: a person must decide.
"""

Mode: TypeAlias = Literal["work", "draft", "final", "repair", "resume"]
"""Purpose of the pending turn.

``draft``: write a draft in a multi-turn socket. ``final``: return the handoff, after drafts or after the work of a
socket with ``finalize``. ``resume``: continue unfinished work, or continue after a person's answer.
"""


NOTHING: Final[Mapping[Any, Any]] = FrozenDict()
"""An immutable empty mapping that all states share."""


class Item(NamedTuple):
    """The current work item of a visit (R12, R13); ``id`` identifies the item within the cast."""

    value: JSON
    key: str
    label: str
    id: ItemId
    loop: str | None

    @property
    def cursor(self) -> str:
        """Name of the cursor over the item's list."""
        return self.id[0]

    @property
    def position(self) -> int:
        """Index of the item in its list."""
        return self.id[1]

    @property
    def outer(self) -> tuple[Position, ...]:
        """Positions of the outer items, outermost first (R34)."""
        return self.id[2]


class Iteration(NamedTuple):
    """The iteration of a socket over a list in the state (R12).

    Attributes:
        iterator: the ``foreach`` or loop field that defines the iteration.
        list_path: the path of the list in the state.
        paths: the paths in the state at which the current item is visible.
        numbered: True if the items have the keys ``WI-<n>``; False if their keys are their indexes (R13).
    """

    iterator: Iterator
    list_path: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    numbered: bool


class ShownItem(NamedTuple):
    """An item that is visible in the state, and the paths of the objects that were created to hold it (R12)."""

    iteration: Iteration
    item: Item
    created: tuple[tuple[str, ...], ...] = ()


class ItemRecord(NamedTuple):
    """Progress of an item (R18).

    Attributes:
        used: the number of uses of each edge.
        path: the visited sockets, each with the step of its last visit.
        cycles: the number of completed cycles in which the cursor did not advance.
    """

    used: Mapping[EdgeId, int] = NOTHING
    path: tuple[tuple[str, int], ...] = ()
    cycles: int = 0


NEW_ITEM: Final = ItemRecord()
"""The initial record of an item that no socket has visited."""


class Visit(NamedTuple):
    """One visit of a socket.

    Attributes:
        socket: the visited socket.
        visit: the number of this visit among the visits of the socket, starting at 1.
        step: the number of this visit within the cast, starting at 1.
        item: the current item, or None outside a loop.
        mode: the purpose of the pending turn.
        turn: the number of turns so far.
        repairs: the number of repair turns so far.
        drafts: the number of drafts so far.
        memory: JSON data that the handoff protocol stores for the next output of this socket.
        approval: a person's approval of one exact command, until it is used, revoked or expired (R44).
        changed: the files that changed during the visit, if the protocol needs them.
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


class ReworkReason(NamedTuple):
    """The reason why a socket sent work back along a ``not_satisfied`` edge, for the target socket of the edge (R22).

    ``settled`` is True after the sending socket has accepted the item; the agent then no longer receives the reason
    (R50).
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
    """The text that an output passed on as ``context`` (R10), with the output's socket, item, step and result."""

    socket: str
    label: str
    item: ItemId | None
    key: str | None
    step: int
    result: Result
    text: str

    @property
    def satisfied(self) -> bool | None:
        """The verdict of the output, or None if the output has no verdict."""
        return self.result.satisfied

    @property
    def line(self) -> str:
        """The line that represents this handoff in ``state.context``."""
        return f"[{self.socket} {self.label}] {self.text}"


class Handoffs(NamedTuple):
    """The records of handoffs, and the text of ``state.context`` that is generated from these records (R50)."""

    entries: tuple[Handoff, ...] = ()
    text: str = ""


class LastAnswer(NamedTuple):
    """The last answer of a socket for an item: its text and, if the text is JSON, the parsed object."""

    step: int
    text: str
    value: JSON = None


class Failure(NamedTuple):
    """A failure that stopped a cast.

    Attributes:
        kind: the name by which programs can identify the failure.
        message: a sentence that describes the failure.
        socket: the socket at which the cast stopped.
        hint: instructions for fixing the failure.
        blocked: the target at which the cast continues after the exhausted limit is raised.
        allow: the key of the exhausted limit in ``CastState.extra``, and the amount by which the limit is raised.
        refused: the issues and the text of the last refused answer.
        again: True if the failure interrupted a turn that can be retried.
        undo: the cursor that the failed visit advanced; a retry moves the cursor back (R48).
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
    """Add the known numbers; None means unknown, and the sum is None if both numbers are unknown (R56)."""
    if first is None or other is None:
        return first or other or None
    return first + other


class Usage(NamedTuple):
    """Tokens and cost of one or more turns (R20); None means that the agent did not report the number (R56).

    Attributes:
        input: the number of input tokens.
        output: the number of output tokens.
        cost: the cost in US dollars.
        uncounted: the number of turns without reported tokens, if the usage is a sum.
        unpriced: the number of turns without a reported cost, if the usage is a sum.
        cached: the number of input tokens read from a cache, if reported.
        reasoning: the number of output tokens used for thinking, if reported.
        turns: the number of agent turns of a cast.
        worked: the working time of the agents and processes of a cast, in milliseconds.
        untimed: the number of turns of a cast whose working time is unknown.
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
        """Sum of the input and output tokens, which a token budget limits."""
        return known_sum(self.input, self.output)

    def plus(self, *others: Usage) -> Usage:
        """Return the sum of this usage and the other usages."""
        sums: list[Any] = list(self)
        for other in others:
            sums = [a or b or None if a is None or b is None else a + b for a, b in zip(sums, other, strict=True)]
        for usage in (self, *others):  # as in :attr:`without_tokens` and :attr:`without_cost`, but faster
            sums[3] += not usage.uncounted and not (usage.input or usage.output) and None in usage[:2]
            sums[4] += not usage.unpriced and usage.cost is None
        return Usage(*sums)

    def minus(self, before: Usage) -> Usage:
        """Return this usage minus an earlier usage."""
        left: list[Any] = [None if used is None else used - (was or 0) for used, was in zip(self, before, strict=True)]
        left[3:5] = self.without_tokens - before.without_tokens, self.without_cost - before.without_cost
        return Usage(*left)

    @property
    def without_tokens(self) -> int:
        """Number of turns whose tokens are unknown."""
        return self.uncounted or int(self.tokens is None)

    @property
    def without_cost(self) -> int:
        """Number of turns whose cost is unknown."""
        return self.unpriced or int(self.cost is None)

    @property
    def seconds(self) -> float | None:
        """Working time in seconds, or None if the time of every turn is unknown."""
        return None if self.untimed and not self.worked else self.worked / 1000

    @property
    def tokens_text(self) -> str:
        """Number of tokens as a phrase, including the number of turns whose tokens are unknown."""
        return phrase_with_unknown(None if self.tokens is None else f"{self.tokens:,}", self.without_tokens)

    @property
    def cost_text(self) -> str:
        """Cost as a phrase, including the number of turns whose cost is unknown."""
        return phrase_with_unknown(None if self.cost is None else f"{self.cost:.4f} USD", self.without_cost)

    def as_json(self) -> dict[str, JSON]:
        """Return the usage of one turn as a JSON object for the journal; null means unknown."""
        fields: dict[str, JSON] = {"input": self.input, "output": self.output, "cost": self.cost}
        if self.cached is not None or self.reasoning is not None:
            fields |= self.token_details()
        return fields

    @classmethod
    def read(cls, value: JSON) -> Usage:
        """Parse the usage that an output reports; a field that is not a number counts as unknown (R56).

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

    def token_details(self) -> dict[str, JSON]:
        """Return the numbers of cached and reasoning tokens that the agent reported, by name."""
        fields = {"cached": self.cached, "reasoning": self.reasoning}
        return {name: count for name, count in fields.items() if count is not None}

    @property
    def token_details_text(self) -> str:
        """Cached and reasoning tokens as a phrase, such as ``800 cached, 120 reasoning``; empty if not reported."""
        return ", ".join(f"{count:,} {name}" for name, count in self.token_details().items())


UNREPORTED: Final = Usage(None, None, None)
"""The usage of a turn whose agent did not report any usage."""


def with_working_time(milliseconds: int | None, usage: Usage | None = None, *, turns: int = 0) -> Usage:
    """Return ``usage`` with the number of agent turns and their working time.

    Args:
        milliseconds: the working time in milliseconds, or None if it is unknown.
        usage: the tokens and cost of the turns; defaults to zero.
        turns: the number of agent turns.
    """
    return Usage(*(usage or Usage())[:-3], turns, milliseconds or 0, int(milliseconds is None))


Unit: TypeAlias = Literal["tokens", "usd", "seconds", "turns"]
"""Unit of a budget limit: tokens, known cost in US dollars, seconds of working time, or agent turns."""


class Bound(NamedTuple):
    """A kind of budget limit (R20).

    Attributes:
        quantity: the name of the limited quantity in events and tables.
        unit: the unit that is written after an amount.
        field: the name of the limit's attribute in a budget and in events.
        key: the name of the limit's field in a config.
        number_format: the format string for an amount.
        attribute: the attribute of :class:`Usage` that is limited.
        unknown_attribute: the attribute of :class:`Usage` that counts the turns whose amount is unknown; None if the amount is
            always known.
    """

    quantity: str
    unit: str
    field: str
    key: str
    number_format: str
    attribute: str
    unknown_attribute: str | None

    @property
    def name(self) -> str:
        """The name of the limited quantity with its unit, such as ``cost in US dollars``."""
        return self.quantity if self.quantity == self.unit else f"{self.quantity} in {self.unit}"

    @property
    def is_integer(self) -> bool:
        """True if amounts of this quantity are integers."""
        return self.quantity in ("tokens", "turns")

    def maximum(self, budget: Budget) -> float | None:
        """Return the maximum that the budget sets for this quantity, or None if the quantity is not limited."""
        return getattr(budget, self.field)  # type: ignore[no-any-return]

    def used(self, usage: Usage) -> float | None:
        """Return the amount that ``usage`` contains, or None if the amount is unknown."""
        return getattr(usage, self.attribute)  # type: ignore[no-any-return]

    def unknown_turns(self, usage: Usage) -> int:
        """Return the number of turns whose amount is unknown."""
        return getattr(usage, self.unknown_attribute) if self.unknown_attribute else 0

    def is_reached(self, usage: Usage, budget: Budget, percent: float = 100) -> bool:
        """Return True if the known amount is at least ``percent`` percent of the maximum in the budget."""
        maximum = self.maximum(budget)
        return maximum is not None and (self.used(usage) or 0) * 100 >= maximum * percent

    def amount_phrase(self, usage: Usage, maximum: float | None = None) -> str:
        """Return a phrase with the used amount, the maximum, and the number of turns whose amount is unknown (R56)."""
        used, total = self.used(usage), "" if maximum is None else f" of {self.number_format.format(maximum)}"
        unit = "" if self.unit == self.quantity else f" {self.unit}"
        if used is None:
            return f"unknown{total}{unit if total else ''}"
        return phrase_with_unknown(f"{self.number_format.format(used)}{total}{unit}", self.unknown_turns(usage))


BOUNDS: Final = (
    Bound("tokens", "tokens", "max_tokens", "maxTokens", "{:,}", "tokens", "without_tokens"),
    Bound("cost", "USD", "max_cost_usd", "maxCostUsd", "{:,.4f}", "cost", "without_cost"),
    Bound("seconds", "seconds", "max_seconds", "maxSeconds", "{:,.1f}", "seconds", "untimed"),
    Bound("turns", "turns", "max_turns", "maxTurns", "{:,}", "turns", None),
)
"""The kinds of limits that a budget can set."""


_MAXIMA: Final = operator.attrgetter(*(bound.field for bound in BOUNDS))
_NO_MAXIMA: Final = (None,) * len(BOUNDS)


def has_limits(budget: Budget) -> bool:
    """Return True if the budget sets at least one limit."""
    return _MAXIMA(budget) != _NO_MAXIMA


def phrase_with_unknown(known: str | None, missing: int) -> str:
    """Return a phrase with a known amount and the number of turns for which the amount is unknown (R56)."""
    if known is None:
        return "unknown"
    return f"{known}, not counting {counted(missing, 'turn')} with unknown usage" if missing else known


class UncountedQuantity(NamedTuple):
    """A quantity that the budget cannot count, with the first socket and step whose amount is unknown (R56)."""

    quantity: str
    socket: str
    step: int


class LaneScope(NamedTuple):
    """The scope of a lane: its name, the indexes of its items in order, its cursor and its sockets.

    Within the lane, the cursor moves from each of these indexes to the next, and after the last index to the end of the
    list.
    """

    name: str
    indexes: tuple[int, ...]
    cursor: str
    sockets: frozenset[str]


class PendingRoute(NamedTuple):
    """The result of a visit whose next socket has not been chosen yet; it is stored if the budget stops the cast first.

    ``advanced`` is the item that ``advance`` completed, or None. ``target`` is the next socket that a person chose, and
    ``detour`` is the socket that the output asks to run first.
    """

    result: Result
    text: str
    context: str | None
    exhausted: bool
    advanced: ItemId | None
    target: str | None = None
    detour: str | None = None


class Hold(NamedTuple):
    """An output awaiting a person's decision.

    Attributes:
        action: ``pause`` if the agent needs a person's answer, or ``escalate`` if a person must decide for the
            agent.
        reason: the reason for the hold, for display to a person.
        needs: the contribution that a paused agent needs: approval of a command, a direction, an answer, or help.
        text: the output.
        reading: the parsed output, which is applied after the person has decided.
    """

    action: Literal["pause", "escalate"]
    reason: str
    needs: Needs | None
    text: str
    reading: Reading


class CastState(NamedTuple):
    """The complete state of a cast between two transitions.

    Attributes:
        data: the JSON state that all sockets share.
        counts: the number of uses of each edge outside items; uses inside an item are counted in the item's record.
        bounded_at: the last step at which an edge with ``maxTraversals`` was chosen.
        shown: the items that are visible in ``data``: the outer items, outermost first, and the current item (R12,
            R34).
        nesting: the outer items of the last iteration over each nested list, by the cursor of the list (R34).
        trail: the last sockets that were entered, in order.
        uncounted_quantities: the quantities that the budget could not count (R56).
        side_event_count: the number of side events in all outputs so far (R39).
        handoffs: the records from which ``data["context"]`` is generated.
        answers: the last answer of each socket to which work can be sent back.
        changed: descriptions of the edits that a person made since the last output.
        last_step: the step that returned ``last_output``; ``last_result`` is the result of this step.
        last_socket: the socket that returned ``last_output``; ``last_artifact`` is the artifact, if known.
        hold: the output that is on hold, if any.
        detours: the sockets to which the cast returns after its current detours, the innermost last.
        knowledge: the project's knowledge in this cast, by section.
        extra: the amounts by which limits were raised, by key: ("edge", socket, index, item), ("repair", step) or
            ("cycles", item).
        scope: the working directory of utilities and agents (P8).
        lane: the lane that the state belongs to, or None for the cast itself.
        joined_items: the items that the accepted lanes completed.
        passed_items: the unfinished items that are before their cursor, each mapped to True if the item was entered and
            then abandoned (R46).
    """

    request: str
    data: Mapping[str, JSON] = NOTHING
    cursors: Mapping[str, int] = NOTHING
    visits: Mapping[str, int] = NOTHING
    traversals: Mapping[str, int] = NOTHING
    counts: Mapping[EdgeId, int] = NOTHING
    items: Mapping[ItemId, ItemRecord] = NOTHING
    rework_reasons: tuple[ReworkReason, ...] = ()
    steps: int = 0
    bounded_at: int = 0
    last_output: str | None = None
    last_json: JSON = MISSING
    last_socket: str | None = None
    last_artifact: str | None = None
    usage: Usage = Usage()
    warned: bool = False
    uncounted_quantities: tuple[UncountedQuantity, ...] = ()
    budget: Budget = Budget()
    extra: Mapping[tuple[object, ...], int] = NOTHING
    status: Status = "ready"
    next: str | None = None
    at: Visit | None = None
    shown: tuple[ShownItem, ...] = ()
    nesting: Mapping[str, tuple[Position, ...]] = NOTHING
    trail: tuple[str, ...] = ()
    side_event_count: int = 0
    pending_route: PendingRoute | None = None
    failure: Failure | None = None
    hold: Hold | None = None
    detours: tuple[str, ...] = ()
    knowledge: Mapping[str, JSON] = NOTHING
    passed_items: Mapping[ItemId, bool] = NOTHING
    handoffs: Handoffs = Handoffs()
    answers: Mapping[tuple[str, ItemId | None], LastAnswer] = NOTHING
    changed: tuple[str, ...] = ()
    last_step: int = 0
    last_result: Result = Result.NOTHING
    scope: Scope = BASE
    lane: LaneScope | None = None
    joined_items: frozenset[ItemId] = frozenset()

    @property
    def waiting_at(self) -> Visit | None:
        """The visit that is waiting for an output, or None if the cast is not waiting."""
        return self.at if self.status == "waiting" else None

    @property
    def status_phrase(self) -> str:
        """The status as a phrase that follows "the cast", such as ``has failed`` or ``is complete``."""
        return {"failed": "has failed", "aborted": "was aborted"}.get(self.status, f"is {self.status}")


CONTINUATION_HINTS: Final[Mapping[Status, str]] = {
    "ready": "continue the cast with `step` or `run`",
    "waiting": "continue the cast with `step`, or answer yourself with `reply`",
    "complete": "continue from an earlier step with `back STEP` or `fork STEP`",
    "failed": "continue the cast with `retry`",
    "aborted": "continue the cast with `retry`",
    "held": "answer the agent, decide for the agent, or approve its command first",
}
"""The hint for continuing a cast, by the status of the cast."""


def waiting_visit(state: CastState) -> Visit:
    """Return the visit that is waiting for an output; raise MateriaError (``not_waiting``) if no visit is waiting."""
    visit = state.at
    if visit is None or state.status != "waiting":
        raise MateriaError(
            f"No socket is waiting for an answer; the cast {state.status_phrase}.",
            hint=CONTINUATION_HINTS[state.status],
            kind="not_waiting",
        )
    return visit


def held_visit(state: CastState) -> Visit:
    """Return the visit that put the cast on hold; raise MateriaError (``not_held``) if the cast is not on hold."""
    if state.status != "held" or state.at is None or state.hold is None:
        raise MateriaError(
            f"The cast {state.status_phrase}; nothing is waiting for a decision.",
            hint=CONTINUATION_HINTS[state.status],
            kind="not_held",
        )
    return state.at


class Past(Protocol):
    """An object that recomputes the states before and after earlier steps; see :mod:`materia_nb.engine.outputs`."""

    lane: LaneScope | None

    def before(self, number: int) -> CastState:
        """Return the state before step ``number`` entered its socket."""

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""


class Draft:
    """A mutable copy of a :class:`CastState`, used by a single transition.

    Only the transition that created a draft uses it. The values of the fields are shared with earlier states, so code
    must replace these values and never modify them (R47). ``artifact`` is the artifact of the output that the
    transition applies.
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
            self.rework_reasons,
            self.steps,
            self.bounded_at,
            self.last_output,
            self.last_json,
            self.last_socket,
            self.last_artifact,
            self.usage,
            self.warned,
            self.uncounted_quantities,
            self.budget,
            self.extra,
            self.status,
            self.next,
            self.at,
            self.shown,
            self.nesting,
            self.trail,
            self.side_event_count,
            self.pending_route,
            self.failure,
            self.hold,
            self.detours,
            self.knowledge,
            self.passed_items,
            self.handoffs,
            self.answers,
            self.changed,
            self.last_step,
            self.last_result,
            self.scope,
            self.lane,
            self.joined_items,
        ) = state
        self.artifact = artifact

    def freeze(self) -> CastState:
        """Return the draft as an immutable state."""
        return tuple.__new__(CastState, _all_fields(self))


_all_fields = operator.attrgetter(*CastState._fields)


StateView: TypeAlias = CastState | Draft
"""A state or a draft, as a parameter type for functions that only read it."""


_PinKind: TypeAlias = Literal["text", "visits", "function"]


@dataclass(frozen=True, slots=True)
class Pin:
    """An answer that a person fixed in advance for a socket or materia.

    The journal contains the complete pin, so resumed casts and forks use the pin too.

    Attributes:
        kind: ``text`` if every visit gets the same answer, ``visits`` if the answers are listed by visit, or
            ``function`` if a function answers; the journal contains only the name of a function.
        words: a description of the pinned answer for a person.
        text: the answer for every visit, if the kind is ``text``.
        visits: the answers by socket and visit number, if the kind is ``visits``.
    """

    kind: _PinKind
    words: str
    text: str = ""
    visits: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NOTHING)

    def answer(self, socket: str, visit: int) -> str | None:
        """Return the pinned answer for a visit, or None if the pin has no answer for this visit."""
        return self.text if self.kind == "text" else self.visits.get(socket, {}).get(str(visit))

    def as_json(self) -> dict[str, JSON]:
        """Return the pin as a JSON object for the journal."""
        fields: dict[str, JSON] = {"kind": self.kind, "to": self.words}
        if self.kind == "text":
            fields["text"] = self.text
        if self.kind == "visits":
            fields["visits"] = {socket: dict(texts) for socket, texts in self.visits.items()}
        return fields

    @classmethod
    def read(cls, data: Mapping[str, JSON]) -> Self | None:
        """Parse a pin that :meth:`as_json` returned; return None if the data is not a valid pin."""
        description, text, visits = data.get("to"), data.get("text", ""), frozen(data.get("visits", {}))
        kind = next((known for known in get_args(_PinKind) if known == data.get("kind")), None)
        if kind is None or not isinstance(description, str) or not isinstance(text, str):
            return None
        if not isinstance(visits, dict) or not all(_is_text_mapping(texts) for texts in visits.values()):
            return None
        return cls(kind, description, text, visits)


def _is_text_mapping(value: JSON) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


LabelKey: TypeAlias = tuple[int, int]
"""Key of a step's label: the branch and the step number, because step numbers are reused after going back."""

WHOLE_CAST: Final[LabelKey] = (0, 0)
"""Key of the label of the cast itself."""

_LISTED_NOTE_CHARS: Final = 200  # every later line of the journal repeats it, for the list of casts


class Label(NamedTuple):
    """The label of a cast or step: a name, tags, a note and a verdict, each of which may be empty."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    by: str = ""

    @property
    def empty(self) -> bool:
        """True if the name, tags, note and verdict are all empty."""
        return not (self.name or self.tags or self.note or self.verdict)

    @property
    def words(self) -> str:
        """The label as a phrase on one line."""
        parts = [
            self.name and f"named {self.name}",
            self.verdict and f"judged {self.verdict}",
            self.tags and f"tagged {', '.join(self.tags)}",
            self.note and f"note: {' '.join(self.note.split())}",
        ]
        text = "; ".join(str(part) for part in parts if part)
        return f"{text} (by {self.by})" if self.by not in ("", "person") else text

    def summary_json(self) -> dict[str, JSON]:
        """Return the label as a JSON object for the list of casts, with the note shortened."""
        note = self.note[:_LISTED_NOTE_CHARS]
        fields: dict[str, JSON] = {"name": self.name, "tags": list(self.tags), "verdict": self.verdict, "note": note}
        return {key: value for key, value in fields.items() if value}


def label_from_summary(summary_json: object) -> Label:
    """Parse a label that :meth:`Label.summary_json` returned, ignoring invalid fields."""
    fields = as_object(summary_json)
    texts = {key: value for key in ("name", "note", "verdict") if isinstance(value := fields.get(key), str)}
    return Label(**texts, tags=tuple(tag for tag in as_list(fields.get("tags")) if isinstance(tag, str)))
