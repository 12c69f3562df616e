"""The resolved form of a loadout that the engine runs: its sockets, edges and loops with all derived facts.

A :class:`Graph` is built once from a validated config (see ``resolve``) and never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from materia_nb.errors import needs_one_of
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, Condition
from materia_nb.registry import mimebundle_from_view

END: Final = "end"
_NAME_CHARS: Final = 60
DEFAULT_TIMEOUT_MS: Final = 30_000
"""Default timeout of a utility, in milliseconds (R23)."""
DEFAULT_LANES: Final = 2
"""Default number of lanes that run at the same time."""
Route: TypeAlias = tuple[str, int | str]
"""An edge or exit as a pair: its source socket, and an edge's index, an exit's ``edge_id``, or ``"end"``."""
_ItemDetail: TypeAlias = Literal["whole", "titles", "none"]


@dataclass(frozen=True, slots=True)
class CastContext:
    """The parts of the cast that an agent sees besides its own prompt (R50).

    ``place`` shows the position in the loadout and the changes made by a person. ``items`` selects the detail of the
    list of work items. ``state`` shows the whole state or only the named paths. ``handoffs`` shows earlier handoffs, up
    to the default limit or up to a number of characters. ``previous`` shows the preceding output and the
    agent's own previous answer.
    """

    request: bool = True
    place: bool = True
    items: _ItemDetail = "whole"
    state: bool | tuple[str, ...] = True
    handoffs: bool | int = True
    previous: bool = True


_NOTHING: Final = CastContext(request=False, place=False, items="none", state=False, handoffs=False, previous=False)
CAST_CONTEXTS: Final[Mapping[str, CastContext]] = {
    "full": CastContext(),
    "request": replace(_NOTHING, request=True),
    "none": _NOTHING,
}
"""The words allowed as ``castContext``, with their meanings; the first is the default."""
PromptForm: TypeAlias = Literal["md", "plain"]
PROMPT_FORMS: Final[tuple[PromptForm, ...]] = get_args(PromptForm)
"""The allowed forms of a prompt (R50): headings and fences, or plain names and blank lines."""
ITEM_CONTEXTS: Final[tuple[_ItemDetail, ...]] = get_args(_ItemDetail)


def cast_context(written: JSON) -> CastContext:
    """Return the parts of a cast that a ``castContext`` selects; an object removes parts of ``full``."""
    if not isinstance(written, Mapping):
        return CAST_CONTEXTS.get(written, CAST_CONTEXTS["full"]) if isinstance(written, str) else CastContext()
    parts = {name: written[name] for name in CastContext.__slots__ if name in written}
    if isinstance(parts.get("state"), list):
        parts["state"] = tuple(parts["state"])
    return CastContext(**parts)


@dataclass(frozen=True, slots=True)
class Edge:
    """An ordinary edge. ``place`` is its index among its socket's edges, which is its identity (R18)."""

    when: Condition
    to: str
    place: int
    max_traversals: int | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """A step of ``cursor`` to the next item of the list at ``items``, taken if ``when`` matches the result (R14)."""

    cursor: str
    items: str
    when: Condition = "always"
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Iterator:
    """The source of the current item of a socket: list, alias, cursor, and the loop that defines them (R12, R13).

    ``loop`` is None for a socket's own ``foreach``.
    """

    items: str
    alias: str
    cursor: str
    loop: str | None = None

    @property
    def numbered_as_work_items(self) -> bool:
        """True if item keys are ``WI-<n>`` rather than ``<index>`` (R13)."""
        return self.alias == "workItem" or self.items == "state.workItems"


@dataclass(frozen=True, slots=True)
class ExitRoute:
    """An exit of a loop, taken once its list is exhausted (R16)."""

    id: str
    loop: str
    source: str
    condition: Condition
    target: str
    derived: bool = False

    @property
    def edge_id(self) -> str:
        """The stable id of the edge that is drawn for this exit."""
        return f"loop-exit:{self.loop}:{self.id}"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop region. ``generator`` is the socket whose items the loop consumes, or None without ``consumes``."""

    id: str
    sockets: tuple[str, ...]
    generator: str | None
    output: str | None
    iterator: Iterator | None
    routes: tuple[ExitRoute, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """The sockets that process the items of a parallel generator in lanes, where each lane gets a stream of items.

    ``prelude`` are the sockets that a lane runs once before the ``members`` of the ``loop``. ``exit`` is the socket at
    which the cast continues after the join. ``at_once`` is the maximum number of lanes that run at the same time.
    """

    generator: str
    prelude: tuple[str, ...]
    loop: str
    members: tuple[str, ...]
    first: str
    exit: str
    at_once: int

    @property
    def sockets(self) -> tuple[str, ...]:
        """The sockets that the lanes visit."""
        return self.prelude + self.members


@dataclass(frozen=True, slots=True)
class Materia:
    """A reusable behaviour.

    ``raw`` is the definition as written, ``owner`` is the directory of its config file, and ``group`` is the
    heading under which an editor lists the materia, or empty.
    """

    id: str
    label: str
    kind: Literal["agent", "utility"]
    prompt: str = ""
    generator: bool = False
    parallel: bool = False
    multi_turn: bool = False
    tools: str | tuple[str, ...] = "none"
    model: str | None = None
    thinking: str | None = None
    command: tuple[str, ...] = ()
    script: Mapping[str, JSON] | None = None
    params: Mapping[str, JSON] = field(default_factory=dict)
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    owner: Path | None = None
    raw: Mapping[str, JSON] = field(default_factory=dict, compare=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class Socket:
    """A materia placed in the graph, with parse, assignments, advance and iterator as they take effect.

    ``assign`` is ordered (target, source) pairs. ``loops`` are the ids of the loops that list the socket,
    in the loadout's order. ``handoff`` is the name of the protocol of its agent. ``assignment`` is the
    task description that some protocols give the agent. ``finalize`` is True if the agent works
    first and is asked for its handoff in a separate turn. ``cast_context`` selects the parts of the
    cast that its agent sees, and ``prompt_form`` is the form of its prompt (R50).
    """

    id: str
    materia: Materia
    parse: Literal["json", "text"]
    assign: tuple[tuple[str, str], ...]
    edges: tuple[Edge, ...]
    advance: Advance | None
    iterator: Iterator | None
    loops: tuple[str, ...]
    handoff: str = DEFAULT_HANDOFF
    parse_derived: bool = False
    finalize: bool = False
    cast_context: CastContext = CastContext()
    prompt_form: PromptForm | None = None
    assignment: Mapping[str, JSON] = field(default_factory=dict, compare=False)
    layout: Mapping[str, JSON] | None = field(default=None, compare=False)
    is_utility: bool = field(init=False, repr=False, compare=False)
    """True if a process produces the output of this socket, False if an agent does."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_utility", self.materia.kind == "utility")

    @property
    def is_generator(self) -> bool:
        """True if the socket produces work items for loops."""
        return self.materia.generator


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a cast (R18, R19, R50)."""

    repair_attempts: int = 1
    max_no_advance_cycles: int = 3
    max_edge_traversals: int = 25
    prompt_characters: int = 60_000


MIN_PROMPT_CHARACTERS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum usage of a cast (R20); None means no maximum."""

    max_tokens: int | None = None
    warn_at_percent: float = 75
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    max_turns: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens of a model, in US dollars. ``cached`` applies to input tokens from a cache."""

    input: float
    output: float
    cached: float | None = None

    def of(self, sent: int | None, received: int | None, cached: int | None = None) -> float | None:
        """Return the cost of the tokens in US dollars, or None if the number of tokens is not known (R56)."""
        if sent is None or received is None:
            return None
        from_cache = min(cached or 0, sent)
        cached_price = self.input if self.cached is None else self.cached
        return ((sent - from_cache) * self.input + from_cache * cached_price + received * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived fact (R15): its path in the loadout, and a sentence that describes the fact."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Graph:
    """One runnable loadout.

    ``consumers`` maps a generator socket to the loops that consume its items. ``regions`` maps a parallel generator to
    the region of its lanes. ``document`` is the original config, reduced to this loadout and its materia, as a cast
    stores it; it is empty if the graph is only drawn. ``keep_thinking`` is True if agents' thinking is stored (R49).
    ``prices`` are the prices in the config, by the name of an agent (:meth:`price`).
    ``mcp_servers`` are the servers in the config whose tools an agent may name. ``names`` are the names that people
    read: for a socket, the label of its materia, after its id if another socket has that label or id.
    """

    name: str
    entry: str
    sockets: Mapping[str, Socket]
    loops: Mapping[str, Loop]
    limits: Limits = Limits()
    budget: Budget = Budget()
    derived: tuple[Derived, ...] = ()
    consumers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    document: Mapping[str, JSON] = field(default_factory=dict, compare=False, repr=False)
    keep_thinking: bool = True
    regions: Mapping[str, Region] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    mcp_servers: Mapping[str, JSON] = field(default_factory=dict)
    names: Mapping[str, str] = field(init=False, compare=False, repr=False)

    _repr_mimebundle_ = mimebundle_from_view

    def __post_init__(self) -> None:
        """Compute the names of the sockets."""
        object.__setattr__(self, "names", _socket_names(self.sockets))

    def price(self, names: Iterable[str]) -> Price | None:
        """Return the price that the config sets for the first of an agent's ``names`` that has a price, or None."""
        return next((self.prices[name] for name in names if name in self.prices), None)

    def require_socket(self, id_: str) -> None:
        """Raise MateriaError (``unknown_socket``) unless the loadout has a socket with this id."""
        message = f"The loadout {self.name!r} has no socket {id_!r}."
        needs_one_of(id_, self.sockets, message, "unknown_socket")


def _socket_names(sockets: Mapping[str, Socket]) -> dict[str, str]:
    labels = {id_: " ".join(socket.materia.label.split())[:_NAME_CHARS] or id_ for id_, socket in sockets.items()}
    count = Counter([*labels.values(), *(id_ for id_, label in labels.items() if label != id_)])
    names = {id_: label if count[label] == 1 else f"{id_} {label}" for id_, label in labels.items()}
    return {**names, END: "the end"}
