"""Models of what a loadout is made of: sockets, edges, iterators and loop regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import ConfigDict

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import WORK_ITEMS
from materia_nb.loadout.fields import (
    ASSIGN,
    CONTEXT_SHAPE,
    AnyKey,
    AnyText,
    AssignedSource,
    ContextValue,
    CountFromOne,
    Flag,
    Model,
    Name,
    Parse,
    PromptFormWord,
    Reference,
    SomeText,
    SourceText,
    Texts,
    When,
    WhenOutput,
    known,
    word_of,
)
from materia_nb.loadout.report import INVALID_CONDITION, INVALID_EDGE, INVALID_LOOP, INVALID_SOCKET
from materia_nb.loadout.vocabulary import (
    CONDITIONS,
    DEFAULT_HANDOFF,
    OF_OUTPUTS,
    OWN_PROTOCOLS,
    Condition,
    in_words,
)

_OTHER_LIST: Final = 'write "workItems" or leave it out; for another list use iterator {"items": "state...."}'
_TELLING: Final = ", ".join(f"`{name}`" for name, one in OWN_PROTOCOLS.items() if one.tells_the_task)


def _condition(
    description: str,
    *rules: str,
    required: bool = True,
    words: Sequence[Condition] = OF_OUTPUTS,
    **facts: Any,
) -> Any:
    """Describe a field that takes a condition."""
    missing = "the condition is missing"
    facts = {"required": required, "code": INVALID_CONDITION, "missing": missing, **facts}
    return known(description, in_words(words), *rules, **facts)


def _done(description: str) -> Any:
    """Describe a field that says where to go after the last item, which only the exits of a loop say now."""
    return known(description, "socket id or end", "R14", ignored="a loop is left by its exits")


class EdgeFields(Model):
    """An ordinary way from a socket to the next. Edges are tried in order; the first that matches is taken."""

    words = "an edge"
    example = '{"when": "always", "to": "Socket-2"}'
    code = INVALID_EDGE

    when: When = _condition(
        "When it matches: `always`, when the parsed output has `satisfied` true or false, or `failed`, when there is "
        "no output because the agent or the process failed or its output was finally refused. Required.",
        "R3",
        words=CONDITIONS,
        first=1,
    )
    to: Reference | None = known(
        "The socket that comes next, or `end`. Required.", "socket id or end", "R26", first=2, needed=True
    )
    max_traversals: CountFromOne = known(
        "How often it may be taken for one work item (outside items: in the whole cast). Exceeding it fails the cast.",
        "whole number from 1 up",
        "R18",
        first=3,
        label="at most",
        unit="times for each item",
    )


class AdvanceFields(Model):
    """Moves a cursor to the next item once the socket completes."""

    words = "an advance"
    example = '{"when": "satisfied"}'
    code = INVALID_SOCKET

    cursor: SomeText | None = known(
        "The cursor to move; left out, that of the socket's iterator.", "name", "R13", "R14"
    )
    items: SourceText | None = known(
        "The list that the cursor runs over; left out, that of the socket's iterator.",
        "source",
        "R13",
        "R14",
    )
    when: WhenOutput = _condition("When to move; left out, always.", "R14", required=False)
    done: Reference | None = _done(
        "Where older loadouts went after the last item. It must exist; loops are left by their exits instead."
    )


class Foreach(Model):
    """Gives a socket one item of a list at a time."""

    words = "a foreach"
    example = '{"items": "state.rows"}'
    code = INVALID_SOCKET

    items: SourceText = known(
        "The list, such as `state.rows`. Required; anything else counts as empty.",
        "source",
        "R12",
        required=True,
        write='name the list, such as "state.rows"',
        first=1,
        label="list",
    )
    as_: Name | None = known(
        "The name of the current item in the state; left out, `item`.",
        "name",
        "R12",
        name="as",
        first=2,
        label="item is called",
    )
    cursor: Name | None = known("The cursor; left out, `<socket id>Index`.", "name", "R13", first=3)
    done: Reference | None = _done("Where older loadouts went after the last item. It must exist.")


class IteratorFields(Foreach):
    """Gives all members of a loop the items of a list that no generator made."""

    words = "an iterator"
    code = INVALID_LOOP


class Consumes(Model):
    """Gives all members of a loop the work items of a generator."""

    words = "consumes"
    example = '{"from": "Socket-1"}'
    code = INVALID_LOOP

    from_: Reference | None = known(
        "The generator socket. It is not a member, and exactly one of its edges leads into the loop. Required.",
        "socket id",
        "R27",
        name="from",
        needed=True,
        first=1,
    )
    output: Annotated[str, word_of((WORK_ITEMS,))] = known(
        "The list that it passes on; left out, `workItems`.", "workItems", "R12", write=_OTHER_LIST
    )
    as_: Name | None = known(
        "The name of the current item in the state; left out, `workItem`.",
        "name",
        "R12",
        name="as",
        first=2,
        label="item is called",
    )
    cursor: Name | None = known(
        "The cursor; left out, `workItemIndex`. Two loops over one generator need different ones.",
        "name",
        "R13",
        "R27",
    )
    done: Reference | None = _done("Where older loadouts went after the last item. It must exist.")


class LegacyExit(Model):
    """The older form of a way out of a loop; `exits` says the same and more."""

    words = "an exit"
    example = '{"from": "Socket-3", "when": "satisfied", "to": "end"}'
    code = INVALID_LOOP

    from_: Reference | None = known(
        "The member that decides. Required.", "socket id", "R15", name="from", needed=True
    )
    when: WhenOutput = _condition("When the item is done and the cursor moves. Required.", "R15")
    to: Reference | None = known(
        "Where to go after the last item. Required.", "socket id or end", "R15", needed=True
    )


class ExitRouteFields(Model):
    """A way out of a loop, taken once its list is exhausted."""

    words = "an exit route"
    example = '{"id": "...", "from": "...", "condition": "...", "targetSocketId": "..."}'
    code = INVALID_LOOP

    id: SomeText = known(
        "A name that is unique in the loop. Required.",
        "text",
        "R26",
        required=True,
        write="write an id that is unique in this loop",
        first=4,
    )
    from_: Reference | None = known(
        "The member that exhausts the list. Required.", "socket id", "R16", name="from", first=2, needed=True
    )
    condition: WhenOutput = _condition(
        "When it is taken: the last output's `satisfied`, or always. Required; one route for each source and condition.",
        "R16",
        "R27",
        first=1,
        label="when",
    )
    target_socket_id: Reference | None = known(
        "Where it leads. Required.", "socket id or end", "R27", first=3, label="to", needed=True
    )


class Parallel(Model):
    """How many lanes run at once."""

    words = "a parallel"
    example = '{"maxConcurrency": 4}'
    code = INVALID_LOOP

    max_concurrency: CountFromOne | None = known(
        "How many lanes run at once; the others wait in the order of the schedule.",
        "whole number from 1 up",
        first=1,
        label="lanes at once",
    )


class LoopFields(Model):
    """A region of sockets that work on one item after another."""

    words = "a loop"
    example = '{"sockets": [...], ...}'
    code = INVALID_LOOP

    sockets: list[Reference] = known(
        "The members, which form a cycle by their edges. Required.",
        "list of socket ids",
        "R27",
        required=True,
        least=1,
        missing="the loop lists no sockets",
        write='list its members: ["Socket-2", "Socket-3"]',
        apart=True,
    )
    consumes: Consumes | None = known(
        "The generator whose work items it iterates over.", "object", "R12", "R27", apart=True
    )
    iterator: IteratorFields | None = known("Another list to iterate over.", "object", "R12", apart=True)
    exits: list[ExitRouteFields] = known(
        "The ways out. If no member advances, the sources of these routes derive an advance.",
        "list of objects",
        "R15",
        "R16",
        write="write a list of routes: [{ ... }]",
        apart=True,
    )
    exit: LegacyExit | None = known(
        "The older form of `exits`, which also sets an advance.", "object", "R15", apart=True
    )
    label: JSON = known("A name for people.", "text")
    parallel: Parallel | None = known(
        "Settings for its lanes, if its generator is `parallel`; left out, the config's `parallelism`.",
        "object",
        apart=True,
    )


class SocketLimits(Model):
    """Bounds that other versions kept for each socket."""

    words = "the limits of a socket"
    code = INVALID_SOCKET

    max_visits: JSON = known(
        "Visits of this socket.",
        "whole number",
        "R21",
        ignored="visits are counted and shown, never enforced",
    )
    max_edge_traversals: JSON = known(
        "Traversals from this socket.", "whole number", "R21", ignored="write maxTraversals on an edge"
    )
    max_output_bytes: JSON = known("Size of an output.", "whole number", ignored="outputs are kept whole")


class Assignment(Model):
    """What an agent is told of its task, by protocols that hand it an envelope before its turn."""

    words = "an assignment"
    example = '{"goal": "..."}'
    code = INVALID_SOCKET

    # A contract spells them acceptance_criteria, and so may a config.
    model_config = ConfigDict(populate_by_name=True)

    goal: AnyText | None = known("The goal of the turn; if left out, it is in the prompt.", "text")
    acceptance_criteria: Texts | None = known("Conditions that must hold at the end.", "list of texts")
    scope: AnyText | None = known("What it may change.", "text")
    surfaces: Texts | None = known(
        "The parts of the project that it concerns; if there are several, it must consolidate.",
        "list of texts",
    )
    adjacent_agents: Texts | None = known("The agents that work on other parts.", "list of texts")
    primary: Flag | None = known(
        "false if it assists: it must then report its findings for consolidation.", "true or false"
    )
    writable_sections: Texts | None = known(
        "Sections of the project context that it may update.", "list of texts"
    )
    readable_sections: Texts | None = known("Sections that it sees; left out, all.", "list of texts")


class SocketFields(Model):
    """A materia placed in the graph."""

    words = "a socket"
    example = '{"materia": "..."}'
    code = INVALID_SOCKET

    materia: Reference | None = known(
        "The materia used here. Required.", "materia id", "R26", first=1, needed=True
    )
    parse: Parse = known(
        "How the output of an agent is read: `json` or `text` (the default). A utility's is on its materia; "
        "a generator's is always json.",
        "json or text",
        "R4",
        first=3,
        label="output",
    )
    assign: dict[AnyKey, AssignedSource] | None = known(
        "What is saved in the state, in order: dotted target -> source (`$.plan`, `$`, `state.x`, `item.x`, "
        "`lastJson.x`, `lastOutput`, or JSONPath). A utility's is on its materia.",
        "object of sources",
        "R4",
        "R11",
        write=ASSIGN,
    )
    edges: list[EdgeFields] | None = known(
        "Where to go next, in order; without a match the cast ends.",
        "list of objects",
        "R3",
        write='write a list: [{"when": "always", "to": "Socket-2"}]',
        apart=True,
    )
    advance: AdvanceFields | None = known("How the socket moves on to the next item.", "object", "R14")
    foreach: Foreach | None = known(
        "Its own list to iterate over; it takes precedence over the loop's.", "object", "R1", "R12"
    )
    handoff: SomeText = known(
        f"The protocol of the agent here; left out, the loadout's, else `{DEFAULT_HANDOFF}`.",
        "name of a protocol",
    )
    assignment: Assignment | None = known(
        f"The agent's task, for protocols that include it in the prompt ({_TELLING}).", "object"
    )
    finalize: Flag | None = known(
        "Whether the agent first works, answering in any form, and is then asked for its handoff, in a separate turn "
        "of the same conversation. For agents whose output is json.",
        "true or false",
        label="hands over apart",
    )
    cast_context: ContextValue | None = known(
        "What its agent sees of the cast besides its own prompt: everything (`full`), only the `request`, `none`, or an object "
        "of `request`, `items`, `state`, `handoffs`, `previous`; left out, the materia's, else the loadout's, else the "
        "config's, else `full`.",
        CONTEXT_SHAPE,
        "R50",
        first=4,
        label="context",
    )
    prompt_form: PromptFormWord | None = known(
        "How its prompt is written: headings and fences (`md`), or plain names and blank lines (`plain`); left out, as "
        "in the profile of its model, else `md`.",
        "md or plain",
        "R50",
    )
    limits: SocketLimits | None = known(
        "Bounds of other versions; accepted and ignored.", "object", "R21", apart=True
    )
    layout: JSON = known(
        "Where it is drawn; the loadout's layout comes first.", "object with x and y", apart=True
    )
    socket_kind: JSON = known("Kept for the reference's editor.", "entry or normal")
    empty: JSON = known("Kept for the reference's editor.", "true or false")
    label: JSON = known("A name for people.", "text", first=2)


class Loadout(Model):
    """A workflow: sockets, the edges between them, and loop regions."""

    words = "a loadout"
    example = '{"entry": "Socket-1", "sockets": { ... }}'

    entry: Reference | None = known(
        "The socket where a cast starts; left out, the first.", "socket id", "R26", "R36", first=3
    )
    sockets: dict[AnyKey, SocketFields] = known(
        "Socket id -> socket. `Socket-1`, `Socket-2`, ... are the canonical ids. Required.",
        "object",
        "R26",
        required=True,
        least=1,
        code=INVALID_SOCKET,
        bare=True,
        missing="the loadout has no sockets",
        write='write {"Socket-1": {"materia": "..."}, ...}',
        apart=True,
    )
    loops: dict[AnyKey, LoopFields] | None = known(
        "Loop id -> loop region.",
        "object",
        "R15",
        "R27",
        code=INVALID_LOOP,
        write='write an object: {"name": {"sockets": [...]}}',
        apart=True,
    )
    handoff: SomeText = known(
        f"The protocol of its agents; left out, `{DEFAULT_HANDOFF}`.", "name of a protocol", first=5
    )
    cast_context: ContextValue | None = known(
        "What its agents see of the cast, unless their socket or materia sets it; left out, the config's.",
        CONTEXT_SHAPE,
        "R50",
        first=4,
        label="context",
    )
    origin_default_id: JSON = known("Kept for the reference's editor.", "text")
    layout: JSON = known("Where its sockets are drawn.", "object", apart=True)
    description: JSON = known("What it is for.", "text", first=1)
    label: JSON = known("A name for people.", "text", first=2)
    id: JSON = known("Kept for the reference's editor.", "text")
    source: JSON = known("Kept for the reference's editor.", "text")
    lock_state: JSON = known("Kept for the reference's editor.", "locked or unlocked")
    catalog_origin: JSON = known("Kept for the reference's editor.", "object")
