"""The state of a cast between two steps, as immutable values; pins and labels that a person set."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.base import BASE, Issue, Needs, Reading, Scope
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, frozen
from materia_nb.loadout.graph import Budget, Iterator
from materia_nb.loadout.vocabulary import Result

_N = TypeVar("_N", int, float)

Place: TypeAlias = tuple[str, int]
"""A place in a list: the cursor that walks it, and an index."""

ItemId: TypeAlias = tuple[str, int, tuple[Place, ...]]
"""Identity of an item: its cursor, its index, and the places of its outer items, outermost first (R34)."""

EdgeId: TypeAlias = tuple[str, int]
"""Identity of an edge: its socket and its index among the edges of that socket (R18)."""

Status: TypeAlias = Literal["ready", "waiting", "held", "complete", "failed", "aborted"]
"""``ready``: ``next`` is to be entered; ``waiting``: the socket at ``at`` owes an output; ``held``: a person decides."""

Mode: TypeAlias = Literal["work", "draft", "final", "repair", "resume"]
"""Purpose of the pending turn.

``draft`` belongs to multi-turn sockets. ``final`` asks for the handoff, where something else came first:
accepted drafts, or the work of a socket with ``finalize``. ``resume`` goes on with work that was interrupted: by its agent, or by a person's answer.
"""


NOTHING: Final[Mapping[Any, Any]] = FrozenDict()
"""An empty mapping, which is shared and stays empty."""


class Item(NamedTuple):
    """The current item of a visit (R12, R13); ``id`` is its identity among the items of the cast."""

    value: JSON
    key: str
    label: str
    id: ItemId
    loop: str | None

    @property
    def cursor(self) -> str:
        """The cursor that walks its list."""
        return self.id[0]

    @property
    def position(self) -> int:
        """Its index in that list."""
        return self.id[1]

    @property
    def outer(self) -> tuple[Place, ...]:
        """The places of the items that it lies within, the outermost first (R34)."""
        return self.id[2]


class Walk(NamedTuple):
    """Walk of a socket over its list: the state path of the list, and the paths that show its item (R12).

    ``numbered`` says that the keys of its items are ``WI-<n>`` rather than ``<index>`` (R13).
    """

    iterator: Iterator
    list_path: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    numbered: bool


class ShownItem(NamedTuple):
    """An item that the data shows, and the objects that were created to hold its paths (R12)."""

    walk: Walk
    item: Item
    created: tuple[tuple[str, ...], ...] = ()


class ItemRecord(NamedTuple):
    """Record of an item in progress: its edge uses and its path (R18)."""

    used: Mapping[EdgeId, int] = NOTHING
    path: tuple[tuple[str, int], ...] = ()
    cycles: int = 0


NEW_ITEM: Final = ItemRecord()
"""The record of an item that nothing was done with yet."""


class Visit(NamedTuple):
    """One visit of a socket: ``step`` numbers it within the cast, from 1.

    ``memory`` is what its handoff protocol wants to be given back with the next output, and ``approval`` a
    person's approval of one exact command, until it is used, revoked or expired (R44).
    ``changed`` are the files that changed since the visit began, where its protocol wants to know.
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
    """Reason why a socket was left by a ``not_satisfied`` edge, for the target of the edge (R22).

    It is ``settled`` once that socket is satisfied with the item: the agent is not told it any more (R50).
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
    """Text that one output handed on as ``context`` (R10), with its socket, item, step and result."""

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
        """Entry as written in ``state.context``."""
        return f"[{self.socket} {self.label}] {self.text}"


class Handoffs(NamedTuple):
    """Records of handoffs, and the text of ``state.context`` that they produce (R50)."""

    entries: tuple[Handoff, ...] = ()
    text: str = ""


class Answered(NamedTuple):
    """Last answer of a socket for an item: its text and, for JSON, the parsed object."""

    step: int
    text: str
    value: JSON = None


class Failure(NamedTuple):
    """Failure that stopped a cast.

    ``blocked`` is the target that a revived cast goes on to, where there is one, and
    ``allow`` the allowance (a key of ``CastState.extra``) and how much of it reviving grants.
    ``refused`` keeps the issues and the text of an answer that was the last to be refused.
    ``again`` says that a turn was cut short, so that the same one can be asked again. ``undo`` is the cursor
    that the failed visit moved, which running it again moves back (R48).
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
    """Add the known numbers; None is unknown, and a sum of unknown numbers is unknown (R56)."""
    if first is None or other is None:
        return first or other or None
    return first + other


class Usage(NamedTuple):
    """Tokens and cost of a turn, or added up (R20); None is what nobody reported (R56).

    In a sum ``uncounted`` and ``unpriced`` count the turns whose tokens, or cost, nobody reported: they are not in it.
    ``cached`` is how much of ``input`` came from a cache, ``reasoning`` how much of ``output`` was thought: a sum has what
    was reported, which many never do. What a cast has used in all also has the ``turns`` that agents had and for how many
    milliseconds they and processes ``worked``, with how often that is unknown, ``untimed``.
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
        """Add what others used."""
        added: list[Any] = list(self)
        for other in others:
            for index, more in enumerate(other):
                known = added[index]
                added[index] = known or more or None if known is None or more is None else known + more
        for usage in (
            self,
            *others,
        ):  # as :attr:`without_tokens` and :attr:`without_cost` have it, for each visit of a cast
            added[3] += not usage.uncounted and not (usage.input or usage.output) and None in usage[:2]
            added[4] += not usage.unpriced and usage.cost is None
        return Usage(*added)

    def less(self, before: Usage) -> Usage:
        """Subtract earlier usage."""
        left: list[Any] = [None if used is None else used - (was or 0) for used, was in zip(self, before, strict=True)]
        left[3:5] = self.without_tokens - before.without_tokens, self.without_cost - before.without_cost
        return Usage(*left)

    @property
    def without_tokens(self) -> int:
        """Of how many turns the tokens are not known."""
        return self.uncounted or int(self.tokens is None)

    @property
    def without_cost(self) -> int:
        """Of how many turns the cost is not known."""
        return self.unpriced or int(self.cost is None)

    @property
    def seconds(self) -> float | None:
        """The time at work; None where it is not known of any turn."""
        return None if self.untimed and not self.worked else self.worked / 1000

    @property
    def tokens_words(self) -> str:
        """The tokens in words, with the turns that they are not known of."""
        return in_words(None if self.tokens is None else f"{self.tokens:,}", self.without_tokens)

    @property
    def cost_words(self) -> str:
        """The cost in words, with the turns that it is not known of."""
        return in_words(None if self.cost is None else f"{self.cost:.4f} USD", self.without_cost)

    def as_json(self) -> dict[str, JSON]:
        """Return what one turn used, as the journal keeps it; null is unknown."""
        fields: dict[str, JSON] = {"input": self.input, "output": self.output, "cost": self.cost}
        if self.cached is not None or self.reasoning is not None:
            fields |= self.apart()
        return fields

    @classmethod
    def read(cls, value: JSON) -> Usage:
        """Read the usage of an output; a field that is not a number is unknown (R56). Raises ValueError."""
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
        return UNREPORTED if usage == UNREPORTED else usage  # one for all, since every step keeps its own

    def apart(self) -> dict[str, JSON]:
        """Return the tokens that are told apart, as far as anybody reported them: ``cached``, ``reasoning``."""
        fields = {"cached": self.cached, "reasoning": self.reasoning}
        return {name: count for name, count in fields.items() if count is not None}

    @property
    def apart_words(self) -> str:
        """The same in words, as ``800 cached, 120 reasoning``; empty when nobody reported any."""
        return ", ".join(f"{count:,} {name}" for name, count in self.apart().items())


UNREPORTED: Final = Usage(None, None, None)
"""Usage of a turn whose agent reported none."""


def at_work(milliseconds: int | None, usage: Usage | None = None, *, turns: int = 0) -> Usage:
    """Return the usage of ``turns`` agent turns, with their working time."""
    return Usage(*(usage or Usage())[:-3], turns, milliseconds or 0, int(milliseconds is None))


Unit: TypeAlias = Literal["tokens", "usd", "seconds", "turns"]
"""Unit of a limit: tokens, known cost, working time, agent turns."""


class Bound(NamedTuple):
    """One maximum that a budget may have (R20).

    Attributes:
        of: what it counts, as events and tables call it.
        unit: the same as a person writes it behind a number, and as it is said.
        field: the field of the budget, and of the events that tell it.
        key: the same in a config.
        form: how a number of it is written.
        counts: what of :class:`Usage` it bounds, as far as that is known.
        uncounted: what of it says of how many turns that is not known; None where it always is.
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
        """Return the maximum, or None without a limit."""
        return getattr(budget, self.field)  # type: ignore[no-any-return]

    def used(self, usage: Usage) -> float | None:
        """Return how much is used, None where that is unknown."""
        return getattr(usage, self.counts)  # type: ignore[no-any-return]

    def missing(self, usage: Usage) -> int:
        """Return of how many turns it is unknown."""
        return getattr(usage, self.uncounted) if self.uncounted else 0

    def reached(self, usage: Usage, budget: Budget, percent: float = 100) -> bool:
        """Return True if the known use has reached ``percent`` of the maximum."""
        maximum = self.most(budget)
        return maximum is not None and (self.used(usage) or 0) * 100 >= maximum * percent

    def so_far(self, usage: Usage, maximum: float | None = None) -> str:
        """Return the use in words, with the maximum if given and the number of turns with unknown use (R56)."""
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
"""Maxima that a budget may have."""


_MAXIMA: Final = operator.attrgetter(*(bound.field for bound in BOUNDS))
_NO_MAXIMA: Final = (None,) * len(BOUNDS)


def limited(budget: Budget) -> bool:
    """True if the budget has a maximum."""
    return _MAXIMA(budget) != _NO_MAXIMA


def in_words(known: str | None, missing: int) -> str:
    """Return a known amount in words, with the number of turns for which it is unknown (R56)."""
    if known is None:
        return "unknown"
    return f"{known}, unknown of {counted(missing, 'turn')}" if missing else known


class Blind(NamedTuple):
    """Usage that a budget could not count, by the name in :class:`Bound`, and where this first happened (R56)."""

    of: str
    socket: str
    step: int


class OfLane(NamedTuple):
    """State that exists only in a lane: its name, item indexes in order, cursor and sockets.

    Inside, the cursor goes from one of these indexes to the next, and behind the last one to the end of the whole list.
    """

    name: str
    indexes: tuple[int, ...]
    cursor: str
    sockets: frozenset[str]


class Unrouted(NamedTuple):
    """A completed socket whose way on is not chosen yet; the state keeps it when the budget stops the cast there.

    ``advanced`` is the item that ``advance`` moved on from, None when it did not move; ``target``
    what a person chose, and ``detour`` what the output wants done first.
    """

    result: Result
    text: str
    context: str | None
    exhausted: bool
    advanced: ItemId | None
    target: str | None = None
    detour: str | None = None


class Hold(NamedTuple):
    """Reason why a socket that has answered waits for a person.

    Attributes:
        action: ``pause``: the agent waits for a person; ``escalate``: a person must decide for it.
        reason: why, in words.
        needs: what a pause waits for: approval of a command, a direction, an answer, or help.
        text: the output.
        reading: what was made of it; it is applied when a person has decided.
    """

    action: Literal["pause", "escalate"]
    reason: str
    needs: Needs | None
    text: str
    reading: Reading


class CastState(NamedTuple):
    """The whole state of a cast after some step.

    Attributes:
        data: the JSON state that sockets share.
        counts: uses of edges outside items; of edges inside an item its record keeps them.
        bounded_at: the step at which an edge with ``maxTraversals`` was last chosen.
        shown: the current item and those that it lies within, the outermost first, as ``data`` shows them (R12, R34).
        within: for the cursor of a nested list, the outer items that it was last walked for (R34).
        trail: the sockets entered last, in order.
        blind: what the budget could not count, each told once (R56).
        side_event_count: number of side events of the outputs so far (R39).
        handoffs: the records behind ``data["context"]``; ``answers`` the last ones of sockets that work is sent back to.
        changed: what a person changed since the last output, in words.
        last_step: the step that ``last_output`` is of; ``last_result`` what it said.
        last_socket: the socket that ``last_output`` is of; ``last_artifact`` where it is kept, once that is known.
        hold: what a held cast waits for.
        detours: where to come back to after each detour that is under way, the innermost last.
        knowledge: what is kept about the project, by section, as this cast knows it.
        extra: allowance added by reviving: ("edge", socket, place, item) or ("repair", step) or ("cycles", item).
        scope: where utilities and agents work (P8).
        lane: which lane it is the state of; None for the cast itself.
        joined: the items that lanes worked on, all of which were accepted.
        passed: the items behind their cursor that were not worked off, and whether each was entered and then abandoned (R46).
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
        """The visit that owes an output, None when no socket is entered."""
        return self.at if self.status == "waiting" else None

    @property
    def stands(self) -> str:
        """Status as a predicate of "the cast": ``has failed``, ``is complete``."""
        return {"failed": "has failed", "aborted": "was aborted"}.get(self.status, f"is {self.status}")


NEXT: Final[Mapping[Status, str]] = {
    "ready": "continue it with step or run",
    "waiting": "ask its agent with step, or answer yourself with reply",
    "complete": "continue from an earlier step with back STEP or fork STEP",
    "failed": "continue it with retry",
    "aborted": "continue it with retry",
    "held": "answer, decide, or approve first",
}
"""Hint for continuing a cast, by its status."""


def waiting_visit(state: CastState) -> Visit:
    """Return the visit that owes an output, or raise MateriaError (``not_waiting``)."""
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
    """Source of the states around earlier steps, see :mod:`materia_nb.engine.outputs`."""

    lane: OfLane | None

    def before(self, number: int) -> CastState:
        """Return the state that step ``number`` was entered from."""

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""


class Draft:
    """A state while a transition works on it: the fields of :class:`CastState`, to be set.

    It never leaves the transition that made it. Setting a field replaces a value; the values themselves
    can only be read, since earlier states share them and a person may hold them (R47). ``artifact`` says where the
    output that is applied is kept.
    """

    request: str
    data: Mapping[str, JSON]
    cursors: Mapping[str, int]
    visits: Mapping[str, int]
    traversals: Mapping[str, int]
    counts: Mapping[EdgeId, int]
    items: Mapping[ItemId, ItemRecord]
    follow_up: tuple[FollowUp, ...]
    steps: int
    bounded_at: int
    last_output: str | None
    last_json: JSON
    last_socket: str | None
    last_artifact: str | None
    usage: Usage
    warned: bool
    blind: tuple[Blind, ...]
    budget: Budget
    extra: Mapping[tuple[object, ...], int]
    status: Status
    next: str | None
    at: Visit | None
    shown: tuple[ShownItem, ...]
    within: Mapping[str, tuple[Place, ...]]
    trail: tuple[str, ...]
    side_event_count: int
    unrouted: Unrouted | None
    failure: Failure | None
    hold: Hold | None
    detours: tuple[str, ...]
    knowledge: Mapping[str, JSON]
    passed: Mapping[ItemId, bool]
    handoffs: Handoffs
    answers: Mapping[tuple[str, ItemId | None], Answered]
    changed: tuple[str, ...]
    last_step: int
    last_result: Result
    scope: Scope
    lane: OfLane | None
    joined: frozenset[ItemId]
    artifact: str | None

    def __init__(self, state: CastState, artifact: str | None = None) -> None:
        """Start from ``state``."""
        self.__dict__.update(zip(CastState._fields, state, strict=True))
        self.artifact = artifact

    def done(self) -> CastState:
        """Return the finished state."""
        return tuple.__new__(CastState, _in_order(self))


_in_order = operator.attrgetter(*CastState._fields)


StateView: TypeAlias = CastState | Draft
"""A state to read from, finished or in the making."""


_PinKind: TypeAlias = Literal["text", "visits", "function"]

_KINDS: Final[Mapping[JSON, _PinKind]] = {"text": "text", "visits": "visits", "function": "function"}


@dataclass(frozen=True, slots=True)
class Pin:
    """A chosen answer, as data: the journal keeps it whole, so that a resumed cast or a fork has it too.

    Attributes:
        kind: one text for every visit; a text for each visit; or a function, which the journal can only name.
        words: what it is pinned to, for a person.
        text: the answer of every visit, when it is one text.
        visits: the answers by socket and number of the visit, when there is one for each.
    """

    kind: _PinKind
    words: str
    text: str = ""
    visits: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NOTHING)

    def answer(self, socket: str, visit: int) -> str | None:
        """Return the answer of a visit; None when it has none for it."""
        return self.text if self.kind == "text" else self.visits.get(socket, {}).get(str(visit))

    def as_json(self) -> dict[str, JSON]:
        """Return it as the journal keeps it."""
        fields: dict[str, JSON] = {"kind": self.kind, "to": self.words}
        if self.kind == "text":
            fields["text"] = self.text
        if self.kind == "visits":
            fields["visits"] = {socket: dict(texts) for socket, texts in self.visits.items()}
        return fields

    @classmethod
    def read(cls, data: Mapping[str, JSON]) -> Self | None:
        """Read what :meth:`as_json` gave; None when it is nothing of the kind."""
        description, text, visits = data.get("to"), data.get("text", ""), frozen(data.get("visits", {}))
        kind = next((known for name, known in _KINDS.items() if name == data.get("kind")), None)
        if kind is None or not isinstance(description, str) or not isinstance(text, str):
            return None
        if not isinstance(visits, dict) or not all(_texts(texts) for texts in visits.values()):
            return None
        return cls(kind, description, text, visits)


def _texts(value: JSON) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


LabelKey: TypeAlias = tuple[int, int]
"""Key of a label: the branch and number of a step, since numbers repeat after going back."""

WHOLE_CAST: Final[LabelKey] = (0, 0)
"""Key of the label of the cast itself."""

_LISTED_NOTE_CHARS: Final = 200  # every later line of the journal repeats it, for the list of casts


class Label(NamedTuple):
    """Label of one cast or step; may be empty."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    by: str = ""

    @property
    def empty(self) -> bool:
        """True if every field but ``by`` is empty."""
        return not (self.name or self.tags or self.note or self.verdict)

    @property
    def words(self) -> str:
        """All of it in a line."""
        parts = [
            self.name and f"named {self.name}",
            self.verdict and f"judged {self.verdict}",
            self.tags and f"tagged {', '.join(self.tags)}",
            self.note and f"note: {' '.join(self.note.split())}",
        ]
        text = "; ".join(str(part) for part in parts if part)
        return f"{text} (by {self.by})" if self.by not in ("", "person") else text

    def listed(self) -> dict[str, JSON]:
        """Return the fields for the list of casts."""
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
