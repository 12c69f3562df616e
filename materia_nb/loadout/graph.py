"""Data classes for a resolved loadout: its sockets, edges and loops, including all derived values.

``resolve.build_graph`` creates a :class:`Graph` from a validated config. The engine runs this graph, which is immutable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from materia_nb.errors import needs_one_of
from materia_nb.jsonvalue import JSON, FrozenDict
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, Condition
from materia_nb.registry import mimebundle_from_view

END: Final = "end"
_NAME_CHARS: Final = 60
DEFAULT_TIMEOUT_MS: Final = 30_000
"""Default timeout of a utility, in milliseconds (R23)."""
DEFAULT_LANES: Final = 2
"""Default number of lanes that run at the same time."""
Route: TypeAlias = tuple[str, int | str]
"""An edge or exit: the id of its source socket, followed by the edge index, the exit id, or ``"end"``."""
_ItemDetail: TypeAlias = Literal["whole", "titles", "none"]


@dataclass(frozen=True, slots=True)
class CastContext:
    """The parts of a cast that an agent sees in addition to its own prompt (R50).

    Attributes:
        request: True to show the request of the cast.
        position: True to show the position in the loadout and the changes that a person has made.
        items: the form in which work items are listed: complete, only by title, or not at all.
        state: True to show the whole state, or a tuple of the state paths to show.
        handoffs: True to show earlier handoffs up to the default limit, or the maximum number of characters to show.
        previous: True to show the previous output in the cast and the previous answer of the same agent.
    """

    request: bool = True
    position: bool = True
    items: _ItemDetail = "whole"
    state: bool | tuple[str, ...] = True
    handoffs: bool | int = True
    previous: bool = True


_NONE: Final = CastContext(request=False, position=False, items="none", state=False, handoffs=False, previous=False)
CAST_CONTEXTS: Final[Mapping[str, CastContext]] = {
    "full": CastContext(),
    "request": replace(_NONE, request=True),
    "none": _NONE,
}
"""The named values of ``castContext`` and the contexts that they select; the first name is the default."""
PromptForm: TypeAlias = Literal["md", "plain"]
PROMPT_FORMS: Final[tuple[PromptForm, ...]] = get_args(PromptForm)
"""The values of ``promptForm`` (R50): Markdown headings and code fences, or plain headings and blank lines."""
ITEM_CONTEXTS: Final[tuple[_ItemDetail, ...]] = get_args(_ItemDetail)


def parse_cast_context(value: JSON) -> CastContext:
    """Return the context that a ``castContext`` value selects; an object overrides individual parts of ``full``."""
    if not isinstance(value, Mapping):
        return CAST_CONTEXTS.get(value, CAST_CONTEXTS["full"]) if isinstance(value, str) else CastContext()
    parts = {name: value[name] for name in CastContext.__slots__ if name in value}
    if isinstance(parts.get("state"), list):
        parts["state"] = tuple(parts["state"])
    return CastContext(**parts)


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between sockets, identified by ``index``, the position in its source socket's list of edges (R18)."""

    when: Condition
    to: str
    index: int
    max_traversals: int | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """An advance, which moves a cursor to the next item of a list after a visit (R14).

    Attributes:
        cursor: the name of the cursor.
        items: the source of the list.
        when: the condition that the result of the visit must match.
        derived: True if the advance is derived from a loop exit rather than written in the loadout.
    """

    cursor: str
    items: str
    when: Condition = "always"
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Iterator:
    """The iteration of a socket over a list, which determines the current item (R12, R13).

    Attributes:
        items: the source of the list.
        alias: the name of the current item in the state.
        cursor: the name of the cursor.
        loop: the id of the loop that defines the iteration; None for the socket's own ``foreach``.
    """

    items: str
    alias: str
    cursor: str
    loop: str | None = None

    @property
    def has_work_item_keys(self) -> bool:
        """True if the items have keys such as ``WI-2``, and False if their keys are plain indexes (R13)."""
        return self.alias == "workItem" or self.items == "state.workItems"


@dataclass(frozen=True, slots=True)
class ExitRoute:
    """A loop exit, which is taken after the last item of the list (R16)."""

    id: str
    loop: str
    source: str
    condition: Condition
    target: str
    derived: bool = False

    @property
    def edge_id(self) -> str:
        """The id under which recorded decisions and drawings refer to this exit."""
        return f"loop-exit:{self.loop}:{self.id}"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop region.

    Attributes:
        id: the id of the loop.
        sockets: the ids of the members.
        generator: the socket whose work items the loop processes; None if the loop has no ``consumes``.
        output: the name of the generator's list; None if the loop has no ``consumes``.
        iterator: the iteration of the first member; None if the loop does not process a list.
        routes: the exits of the loop.
    """

    id: str
    sockets: tuple[str, ...]
    generator: str | None
    output: str | None
    iterator: Iterator | None
    routes: tuple[ExitRoute, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """The sockets that process the items of a parallel generator in several lanes, one stream of items per lane.

    Attributes:
        generator: the parallel generator.
        prelude: the sockets that each lane runs once before it enters the loop.
        loop: the id of the loop that each lane runs.
        members: the members of this loop.
        first: the socket at which each lane starts.
        exit: the socket at which the cast continues after all lanes have finished, or the end.
        max_concurrency: the maximum number of lanes that run at the same time.
    """

    generator: str
    prelude: tuple[str, ...]
    loop: str
    members: tuple[str, ...]
    first: str
    exit: str
    max_concurrency: int

    @property
    def sockets(self) -> tuple[str, ...]:
        """The sockets that a lane can visit: the prelude, followed by the members of the loop."""
        return self.prelude + self.members


@dataclass(frozen=True, slots=True)
class Materia:
    """A reusable behaviour of an agent or a utility.

    Attributes that are not listed here are fields of the materia in the config.

    Attributes:
        folder: the directory of the config file that contains the definition; None if the definition has no file.
        raw: the definition as written in the config.
        group: the heading under which an editor lists the materia, or "".
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
    folder: Path | None = None
    raw: Mapping[str, JSON] = field(default_factory=dict, compare=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class Socket:
    """A materia placed in the graph. Every attribute has its effective value, which may be derived.

    Attributes:
        id: the id of the socket.
        materia: the materia that the socket places.
        parse: the format of the output.
        assign: the assignments to the state, in order, as pairs of target and source.
        edges: the edges to the next socket, in order.
        advance: the advance to the next item, or None.
        iterator: the iteration over a list, or None.
        loops: the ids of the loops that the socket is a member of, in the order of the loadout.
        handoff: the name of the handoff protocol that the agent follows.
        parse_derived: True if ``parse`` is derived from a loop exit.
        finalize: True if the agent works first and then returns its handoff in a separate turn.
        cast_context: the parts of the cast that the agent sees (R50).
        prompt_form: the format of the prompt (R50); None selects the default of the model.
        assignment: the task description that some protocols include in the prompt.
        layout: the position of the socket in drawings, or None.
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
    """True if a process produces the output of this socket, and False if an agent produces it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_utility", self.materia.kind == "utility")

    @property
    def is_generator(self) -> bool:
        """True if the output of the socket contains work items for a loop."""
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
    """The maximum usage of a cast (R20). A maximum of None means that the usage is unlimited."""

    max_tokens: int | None = None
    warn_at_percent: float = 75
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    max_turns: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model in US dollars per million tokens. ``cached`` is the price of cached input tokens."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, sent: int | None, received: int | None, cached: int | None = None) -> float | None:
        """Return the cost of a request in US dollars, or None if a number of tokens is unknown (R56).

        Args:
            sent: the number of input tokens, including cached tokens.
            received: the number of output tokens.
            cached: the number of cached input tokens.
        """
        if sent is None or received is None:
            return None
        from_cache = min(cached or 0, sent)
        cached_input_price = self.input if self.cached is None else self.cached
        return ((sent - from_cache) * self.input + from_cache * cached_input_price + received * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """A value that the loadout does not contain but implies (R15): its path, and a sentence that describes it."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A resolved loadout, which a cast can run.

    Attributes:
        name: the name of the loadout.
        entry: the id of the socket where a cast starts.
        sockets: the sockets by id.
        loops: the loops by id.
        limits: the limits of a cast.
        budget: the maximum usage of a cast.
        derived: the values that the loadout implies, each with a description.
        consumers: the ids of the loops that process the items of each generator, by generator.
        document: the config, reduced to this loadout and its materia. Each cast stores this document. It is empty if
            the graph is only drawn.
        keep_thinking: True if the thinking of agents is stored (R49).
        regions: the sockets that run in lanes, by parallel generator.
        prices: the prices in the config, by ``provider:model`` or by the name of another agent.
        mcp_servers: the MCP servers in the config, by name.
        names: the display name of each socket: the label of its materia, preceded by the id of the socket if the label
            is not unique.
    """

    name: str
    entry: str
    sockets: Mapping[str, Socket]
    loops: Mapping[str, Loop]
    limits: Limits = Limits()
    budget: Budget = Budget()
    derived: tuple[DerivedValue, ...] = ()
    consumers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    document: Mapping[str, JSON] = field(default_factory=dict, compare=False, repr=False)
    keep_thinking: bool = True
    regions: Mapping[str, Region] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    mcp_servers: Mapping[str, JSON] = field(default_factory=dict)
    names: Mapping[str, str] = field(init=False, compare=False, repr=False)

    _repr_mimebundle_ = mimebundle_from_view

    def __post_init__(self) -> None:
        labels = {id_: socket.materia.label for id_, socket in self.sockets.items()}
        object.__setattr__(self, "names", FrozenDict(display_names(labels)))

    def price(self, names: Iterable[str]) -> Price | None:
        """Return the price that the config sets for an agent, or None.

        Args:
            names: the names of the agent, in order of preference. The first name that has a price is used.
        """
        return next((self.prices[name] for name in names if name in self.prices), None)

    def find_socket(self, name: str) -> str:
        """Return the id of the socket with this id or display name.

        Raises:
            MateriaError: the loadout has no such socket (``unknown_socket``).
        """
        ids = {self.names[id_]: id_ for id_ in self.sockets} | {id_: id_ for id_ in self.sockets}
        needs_one_of(name, ids, f"The loadout {self.name!r} has no socket {name!r}.", "unknown_socket")
        return ids[name]

    def list_names(self, ids: Iterable[str]) -> str:
        """Return the display names of sockets, separated by commas."""
        return ", ".join(self.names[id_] for id_ in ids)


def display_names(materia_labels: Mapping[str, str]) -> dict[str, str]:
    """Return the display name of the end and of each socket, by id; see :attr:`Graph.names`.

    Args:
        materia_labels: the label of the materia of each socket, by socket id.
    """
    labels = {id_: " ".join(label.split())[:_NAME_CHARS] or id_ for id_, label in materia_labels.items()}
    count = Counter([*labels.values(), *(id_ for id_, label in labels.items() if label != id_)])
    names = {id_: label if count[label] == 1 else f"{id_} {label}" for id_, label in labels.items()}
    return {**names, END: "the end"}


def shared_names(a: Graph, b: Graph) -> dict[str, str]:
    """Return the display names of the sockets of two loadouts, by id. A socket in both gets its name from ``a``."""
    return display_names({id_: socket.materia.label for id_, socket in {**b.sockets, **a.sockets}.items()})


_SOCKET_OR_CONDITION: Final = re.compile(
    r"""(?<![\w.:"`-])(?:('?)(Socket-[1-9]\d*)\1(?!:\S|[\w"`-])(?: \(([^()]+)\))?|not_satisfied(?![\w"`]))"""
)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a message with names instead of socket ids, and ``not satisfied`` instead of ``not_satisfied``.

    Only canonical ids are replaced, because any other id could be an ordinary word. Ids in double quotes
    do not change, because they belong to JSON. A materia in parentheses after an id is omitted if the name of the
    socket already ends with this materia.

    Args:
        text: the message.
        names: the display name of each socket, by id.
    """

    def replacement(match: re.Match[str]) -> str:
        name, note = names.get(match[2] or ""), (match[3] or "").replace("_", " ")
        if name is None:
            return match[0].replace("_", " ")
        return f"{name} ({note})" if note and not name.endswith(note) else name

    return _SOCKET_OR_CONDITION.sub(replacement, text)
