"""The messages of design mode. Each message is handled by a function, which is called an act.

The parameters of an act are the session and the fields of the message. Their types validate the fields, so an
incomplete message is refused and has no effect. An act returns a description of its change, or None. The operations of
:mod:`materia_nb.loadout.design` are also acts.

A message names the part that it changes and contains the complete typed value, so a delayed message cannot change
another part. A refused value stays in its input field, and the reason is shown next to it. This module does not use
widgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import Parameter
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationInfo, WithJsonSchema

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError, close_match
from materia_nb.jsonvalue import JSON, Object, as_object
from materia_nb.loadout.check_graph import iterate_over_items
from materia_nb.loadout.design.document import (
    OPERATIONS,
    DesignChange,
    design_error,
    exact_text,
    list_in,
    loop_in,
    socket_in,
)
from materia_nb.loadout.design.edges import make_loop, with_exits
from materia_nb.loadout.design.sockets import copied_sockets, new_sockets, place_sockets
from materia_nb.loadout.fields import Model
from materia_nb.loadout.json_schema import read_field
from materia_nb.loadout.models import (
    Consumes,
    EdgeFields,
    ExitRouteFields,
    IteratorFields,
    Loadout,
    LoopFields,
    SocketFields,
    materia_model,
)
from materia_nb.loadout.report import FixStep, do
from materia_nb.loadout.topology import free_name, parse_loadout
from materia_nb.loadout.vocabulary import CONDITIONS, REWORK_CONDITIONS, is_condition, unmatched_verdicts
from materia_nb.utilities.utility_step import with_absolute_paths
from materia_nb.widgets.design_state import DesignQuestion, DesignState, RefusedField, design_messages
from materia_nb.widgets.frontend import ShortText, outdated
from materia_nb.widgets.selection import Kind, Selection, edge_selection, edges_of, members_of, owner_of

_MAX_TYPED_CHARS: Final = 2_000_000


Values: TypeAlias = Mapping[str, Any]
act: Final = design_messages.message


def handle(session: DesignState, kind: str, values: Values) -> str | None:
    """Handle a message, and return a description of the change or None.

    The message is an act, or an operation of :mod:`materia_nb.loadout.design`.

    Raises:
        MateriaError: the message is unknown, a field is missing or has the wrong type, or the change is refused.
    """
    operation = OPERATIONS.get(kind)
    if operation is None or kind in design_messages.messages:
        summary: str | None = design_messages.handle(session, {**values, "kind": kind})
        return summary
    arguments = {
        parameter.name: values.get(name.strip("_"))
        for name, parameter in operation.parameters.items()
        if parameter.default is Parameter.empty or values.get(name.strip("_")) is not None
    }
    return session.design.apply(session.design.combined_change(do(operation.name, **arguments)))


def _read_part(value: object, info: ValidationInfo) -> Selection:
    session: Any = info.context
    part: Selection = session.require_part(value)
    return part


DesignPart: TypeAlias = Annotated[Any, BeforeValidator(_read_part), WithJsonSchema({})]
"""Kind and key of a part of the design; validation returns the existing part."""
FormOwner: TypeAlias = tuple[ShortText, ShortText] | tuple[ShortText, ShortText, ShortText]
"""Kind and key of the object to which a form field belongs: a part of the design, a materia, or the loadout.

The form of a socket's materia adds the id of the socket.
"""
Ids: TypeAlias = list[ShortText]


def _round_coordinate(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)


Coordinate: TypeAlias = Annotated[float, Field(strict=True, ge=-1e4, le=1e4), AfterValidator(_round_coordinate)]
Positions: TypeAlias = dict[ShortText, tuple[Coordinate, Coordinate]]
"""Column and row of each socket."""


# -- selection ------------------------------------------------------------------------------


@act
def pick(session: DesignState, part: JSON = None, *, add: StrictBool = False, keep: StrictBool = False) -> None:
    """Select a part. With ``add``, a socket joins the marked sockets; with ``keep``, the marks do not change."""
    picked_part = session.part_named(part)
    if add and picked_part is not None and picked_part[0] == "socket":
        if not session.marked and session.selected is not None and session.selected[0] == "socket":
            session.marked = [session.selected[1]] if session.selected != picked_part else []
        mark(session, picked_part[1])
    elif not keep:
        session.marked = []
    session.selected = picked_part


@act
def mark(session: DesignState, id_: ShortText) -> None:
    """Mark a socket, or remove its mark."""
    socket_in(session.design.document, id_)
    marked = session.marked
    session.marked = [marked_id for marked_id in marked if marked_id != id_] if id_ in marked else [*marked, id_]


@act
def marquee(session: DesignState, ids: Ids) -> None:
    """Mark the sockets inside the rectangle that the user has drawn."""
    session.marked = [id_ for id_ in as_object(session.design.document.get("sockets")) if id_ in ids]
    if len(session.marked) == 1:
        session.selected = ("socket", session.marked[0])
    elif session.marked:
        session.selected = None


def _selected_sockets(session: DesignState) -> Ids:
    """Return the marked sockets, or else the selected socket, or else the members of the selected loop."""
    kind, key = session.selected or (None, "")
    if session.marked or kind == "socket":
        return list(session.marked) or [key]
    if kind == "loop":
        return members_of(session.design.document, key)
    raise design_error(
        "no socket is selected", "design", "select a socket, or hold Shift and drag a rectangle around sockets"
    )


# -- sockets and materia ----------------------------------------------------------------------


@act
def add(
    session: DesignState,
    materia: ShortText,
    x: Coordinate | None = None,
    y: Coordinate | None = None,
    positions: Positions | None = None,
    *,
    source: ShortText | None = None,
    make: ShortText | None = None,
) -> str | None:
    """Add a socket with the given materia as one step; if the materia does not exist, offer to create it.

    If ``make`` is set, the materia is created too, as an ``agent`` or ``utility``. If ``source`` is set, an edge from
    that socket to the new socket is added too. If a position is set, all other sockets keep their positions.
    """
    design, materia = session.design, materia.strip()
    if make is None and materia not in design.definitions:
        message = {"kind": "add", "x": x, "y": y, "positions": positions, "source": source}
        _offer_to_create(session, materia, message)
        return None
    change = design.combined_change(*_creation(materia, make), do("add_socket", materia))
    [new] = new_sockets(design.document, change.document)
    if x is not None and y is not None:
        positions = {**(positions or {}), new: (x, y)}
        change = replace(change, document=place_sockets(change.document, positions).document)
    edge = () if source is None else (_connection(session, source, new),)
    summary = design.apply(design.combined_change(*edge, after=change))
    session.selected, session.marked = ("socket", new), []
    return summary


def _creation(materia: str, make: str | None) -> tuple[FixStep, ...]:
    """Return the operation that creates a materia if ``make`` is its kind, or no operation if ``make`` is None."""
    return () if make is None else (do("make_materia", materia, make),)


def _offer_to_create(session: DesignState, name: str, message: Values) -> None:
    """Offer to create a missing materia or to use a similar one. Either choice completes ``message``."""
    if not name:
        raise design_error("no materia was specified", "add", "click a materia in the palette, or type its name")
    closest = close_match(name, session.design.definitions)
    similar = () if closest is None else ((f"Use {closest}", {**message, "materia": closest, "value": closest}),)
    new = {**message, "materia": name, "value": name}
    choices = ((f'New {kind} "{shorten(name, 40)}"', {**new, "make": kind}) for kind in ("agent", "utility"))
    session.question = DesignQuestion(f"The materia {shorten(name, 60)!r} does not exist.", (*similar, *choices))


@act
def move(session: DesignState, id_: ShortText, x: Coordinate, y: Coordinate, positions: Positions | None = None) -> str:
    """Move a socket to a column and row; ``positions`` fixes the positions of the other sockets."""
    positions = {**(positions or {}), id_: (x, y)}
    return session.design.apply(replace(place_sockets(session.design.document, positions), summary=f"moved {id_}"))


@act
def tidy(session: DesignState) -> str:
    """Move all cards to the positions that the layout computes."""
    positions = dict.fromkeys(as_object(as_object(session.design.document.get("layout")).get("sockets")))
    if not positions:
        return "nothing to tidy up: all cards already have their automatic positions"
    change = place_sockets(session.design.document, positions)
    return session.design.apply(replace(change, summary="tidied up"))


@act
def delete(session: DesignState, of: DesignPart = None) -> str:
    """Remove the part ``of``, or by default the marked sockets or the selected part."""
    if of is None and session.marked:
        marked_ids, session.marked = session.marked, []
        return session.design.remove_sockets(marked_ids)
    part = of or session.selected
    if part is None:
        raise design_error("nothing is selected", "design", "select a part of the graph, then remove it")
    kind, (owner, index) = part[0], owner_of(part)
    if kind == "socket":
        return session.design.remove_socket(owner)
    if kind == "loop":
        return session.design.delete_loop(owner)
    session.selected = ("socket" if kind == "edge" else "loop", owner)
    if index is None:
        return session.design.set_loop(owner, "exit", None)
    return (session.design.remove_edge if kind == "edge" else session.design.remove_exit)(owner, index)


@act
def copy(session: DesignState) -> str:
    """Copy the marked or selected sockets."""
    ids = _selected_sockets(session)
    session.clipboard = copied_sockets(session.design.document, ids)
    return f"copied {', '.join(ids)}"


@act
def cut(session: DesignState) -> str:
    """Copy the marked or selected sockets, and remove them."""
    ids = _selected_sockets(session)
    copy(session)
    session.marked = []
    return session.design.remove_sockets(ids)


@act
def paste(session: DesignState) -> str:
    """Insert the copied sockets."""
    if session.clipboard is None:
        raise design_error("nothing has been copied", "paste", "select a socket and copy it")
    return _paste(session, session.clipboard)


def _paste(session: DesignState, clip: Object) -> str:
    before = session.design.document
    summary = session.design.paste(clip)
    pasted = new_sockets(before, session.design.document)
    session.marked = pasted if len(pasted) > 1 else []
    session.selected = ("socket", pasted[0]) if len(pasted) == 1 else None
    return summary


@act
def duplicate(session: DesignState) -> str:
    """Insert a copy of the marked or selected sockets without changing the clipboard."""
    return _paste(session, copied_sockets(session.design.document, _selected_sockets(session)))


# -- fields ---------------------------------------------------------------------------------

_MODELS: Final[Mapping[str, type[Model]]] = {
    "socket": SocketFields,
    "loop": LoopFields,
    "edge": EdgeFields,
    "exit": ExitRouteFields,
    "loadout": Loadout,
}
_SOURCES: Final[Mapping[str, type[Model]]] = {"consumes": Consumes, "iterator": IteratorFields}
_ROUTE: Final = {"id": "id_", "from": "source", "targetSocketId": "target"}
"""Names of the fields of an exit, and the corresponding parameters of the operations on exits."""


@act
def set_(
    session: DesignState,
    of: FormOwner,
    field: ShortText,
    value: JSON = None,
    make: ShortText | None = None,
    *,
    everywhere: StrictBool = False,
) -> str | None:
    """Set a field of a part. A refused value stays in its input field, together with the reason.

    If ``make`` is set, the value is the id of a materia that is first created, as an ``agent`` or ``utility``. In the
    form of a socket's materia, the change applies to this socket only, unless ``everywhere`` is set.
    """
    kind, key = of[:2]
    if isinstance(value, str) and len(value) > _MAX_TYPED_CHARS:
        problem = "the value is too long"
        raise design_error(problem, field, f"enter at most {_MAX_TYPED_CHARS:,} characters")
    session.refused.pop((*of, field), None)
    try:
        if kind == "materia":
            return _set_materia_field(session, of, field, value, everywhere=everywhere)
        return _set_field(session, kind, key, field, value, make)
    except MateriaError as error:
        if isinstance(value, str) and session.has_fields(*of):
            why = f"{error.what}; {error.hint}" if error.hint else error.what
            session.refused[*of, field] = RefusedField(value, why)
        raise


def _set_materia_field(session: DesignState, of: FormOwner, field: str, typed: JSON, *, everywhere: bool) -> str:
    """Set a field of a materia. In the form of a socket, a materia with other users is first copied for the socket.

    Raises:
        MateriaError: the value is invalid, or the socket has another materia than the form (``outdated``).
    """
    design, (_, id_, *sockets) = session.design, of
    for socket in sockets:
        id_ = str(socket_in(design.document, socket).get("materia"))
        if of[1] not in (id_, session.copied_from.get(id_)):
            raise outdated("the socket has another materia now", "check the materia, then repeat the change")
    definition = as_object(design.definitions.get(id_))
    value = read_field(materia_model(definition), field, typed)
    is_changed = exact_text(definition.get(field)) != exact_text(value)
    if sockets and is_changed and not everywhere and session.users_of_materia(session.facts, sockets[0]):
        return _change_copy(session, of, id_, field, value)
    return design.apply(design.combined_change(do("set_materia", id_, field, value)))


def _change_copy(session: DesignState, of: FormOwner, original: str, field: str, value: JSON) -> str:
    """Give a socket its own copy of its materia, and set a field of the copy."""
    design, definition = session.design, session.design.definitions[original]
    # The id contains the name of the loadout, so that two loadouts never save different copies under the same id.
    own_name = " ".join(original.removeprefix(f"{design.name}.").split())[:30].strip()
    used_ids = {**as_object(design.config.get("materia")), **design.definitions}
    copy_id = free_name(f"{design.name[:30].strip()}.{own_name}", used_ids)
    steps = [do("copy_materia", of[-1], copy_id)]
    # A command is relative to the folder of the config file that defines it, which does not define the copy (R24).
    command = with_absolute_paths(definition, session.bench.loadouts.config.folders.get(original)).get("command")
    if command != definition.get("command"):
        steps.append(do("set_materia", copy_id, "command", command))
    summary = design.apply(design.combined_change(*steps, do("set_materia", copy_id, field, value)))
    session.copied_from[copy_id] = of[1]
    if any(name == original for name, _ in session.bench.agents.describe()):
        summary += f"; the agent set for {original} does not answer for the copy"
    return summary


def _set_field(session: DesignState, kind: str, key: str, field: str, typed: JSON, make: str | None) -> str:
    if kind in ("socket", "loop") and field == "id":
        return _rename(session, kind, key, str(typed).strip())
    owner, index = key, None
    if kind != "loadout":
        owner, index = owner_of(session.require_part([kind, key]))
    source, _, name = field.partition(".")
    model, name = (_SOURCES[source], name) if kind == "loop" and source in _SOURCES else (_MODELS[kind], field)
    value = read_field(model, name, typed)
    if make is None and kind == "socket" and field == "materia":
        _check_materia(session, owner, value)
    steps = *_creation(str(value), make), _set_operation(kind, owner, index, field, value)
    return session.design.apply(session.design.combined_change(*steps))


def _rename(session: DesignState, kind: str, old: str, new: str) -> str:
    summary = (session.design.rename_socket if kind == "socket" else session.design.rename_loop)(old, new)
    if kind == "socket":
        session.marked = [new if id_ == old else id_ for id_ in session.marked]
    if session.selected == (kind, old):
        session.selected = session.selected[0], new
    return summary


def _set_operation(kind: str, owner: str, index: int | None, field: str, value: JSON) -> FixStep:
    """Return the operation that sets a field of a part."""
    if kind in ("edge", "exit"):
        return _set_edge_operation(kind, owner, index, field, value)
    if (kind, field) == ("loadout", "entry"):
        return do("set_entry", str(value))
    if kind == "loadout":
        return do("set_loadout", field, value)
    source, _, name = field.partition(".")
    if kind == "loop" and name:
        return do("set_source", owner, source, **{{"from": "from_", "as": "as_"}.get(name, name): value})
    return do(f"set_{kind}", owner, field, value)


def _set_edge_operation(kind: str, owner: str, index: int | None, field: str, value: JSON) -> FixStep:
    if index is None:
        raise design_error(
            f"this {kind} has no field {field}", f"{kind} {owner}", f"remove the {kind} and create it again"
        )
    if field == "maxTraversals":
        return do("limit_edge", owner, index, value)
    if value is None:
        where = f"{owner}.edges[{index}]" if kind == "edge" else f"loops.{owner}.exits[{index}]"
        raise design_error(f"an {kind} must have the field {field}", where, f"choose a value, or remove the {kind}")
    return do(f"change_{kind}", owner, index, **{_ROUTE.get(field, field): str(value)})


def _check_materia(session: DesignState, id_: str, named: JSON) -> None:
    """Refuse a materia that does not exist, and offer to create it."""
    if named is None:
        raise design_error("a socket must have a materia", f"{id_}.materia", "choose a materia, or remove the socket")
    if named not in session.design.definitions:
        _offer_to_create(session, named, {"kind": "set", "of": ["socket", id_], "field": "materia"})
        problem = f"the materia {shorten(str(named), 60)!r} does not exist"
        raise design_error(problem, f"{id_}.materia", "choose an existing materia, or create a new materia")


@act
def forget(session: DesignState, of: FormOwner, field: ShortText) -> None:
    """Discard a refused value."""
    session.refused.pop((*of, field), None)


# -- edges, loops and exits -------------------------------------------------------------------


@act
def connect(
    session: DesignState, from_: ShortText, to: ShortText, when: ShortText | None = None, max_traversals: JSON = None
) -> str:
    """Add an edge between two sockets.

    If the connection leaves a loop over a list and no condition or limit is given, an exit is added instead.
    """
    step = _connection(session, from_, to, when, max_traversals)
    kind: Kind = "edge" if step.operation == "add_edge" else "exit"
    design, owner = session.design, step.arguments[0]
    before = edges_of(design.document, kind, owner)
    summary = design.apply(design.combined_change(step))
    after = edges_of(design.document, kind, owner)
    new = (at for at, (old, edge) in enumerate(zip(before, after, strict=False)) if old is not edge)
    session.selected = edge_selection(kind, owner, next(new, len(before)))
    return summary if kind == "edge" else f"{summary}, taken after the last item"


def _connection(
    session: DesignState, source: str, to: str, when: str | None = None, max_traversals: JSON = None
) -> FixStep:
    """Return the operation that connects two sockets; see :func:`connect`."""
    document = session.design.document
    loop = _loop_exited_by(session, source, to) if when is None and not max_traversals else None
    if loop is not None:
        exits = map(as_object, list_in(loop_in(document, loop), "exits", loop))
        used = {exit_.get("condition") for exit_ in exits if exit_.get("from") == source}
        free_condition = next((condition for condition in CONDITIONS if condition not in used), None)
        if free_condition is not None:
            return do("add_exit", loop, source, free_condition, to)
    limit = None if max_traversals in (None, "") else read_field(EdgeFields, "maxTraversals", str(max_traversals))
    condition = when or _likely_condition(edges_of(document, "edge", source))
    return do("add_edge", source, to, condition, max_traversals=limit)


def _likely_condition(edges: list[JSON]) -> str:
    """Return a condition for a new edge that the other edges of the socket do not cover."""
    used = [as_object(edge).get("when") for edge in edges]
    # Conditional edges go before an edge that always matches, so that edge leaves every condition available.
    free = unmatched_verdicts([when for when in used if is_condition(when) and when != "always"]) if used else []
    return next((when for when in free if when in REWORK_CONDITIONS), free[0] if free else "always")


def _loop_exited_by(session: DesignState, source: str, to: str) -> str | None:
    """Return the id of the loop over a list that an edge from ``source`` to ``to`` would leave early, or None."""
    socket = session.facts.sockets.get(source)
    loops = () if socket is None else socket.loops
    return next((loop.id for loop in loops if loop.iterates and to not in loop.members), None)


@act
def when(session: DesignState, of: DesignPart, when: ShortText) -> str | None:
    """Set the condition of an edge or exit."""
    return set_(session, of, "when" if of[0] == "edge" else "condition", when)


@act
def reorder(session: DesignState, of: DesignPart, offset: Literal[-1, 1]) -> str:
    """Move an edge or exit up or down by one position."""
    owner, index = owner_of(of)
    if index is None:
        raise design_error("only edges and exits have an order", "design", "select an edge or an exit")
    summary = (session.design.move_edge if of[0] == "edge" else session.design.move_exit)(owner, index, index + offset)
    session.selected = edge_selection(of[0], owner, index + offset)
    return summary


@act
def turn(session: DesignState, of: DesignPart) -> str:
    """Convert an edge to an exit, or an exit to an edge."""
    owner, index = owner_of(of)
    document = session.design.document
    if of[0] == "edge" and index is not None:
        target = as_object(edges_of(document, "edge", owner)[index]).get("to")
        loop = _loop_exited_by(session, owner, str(target))
        if loop is None:
            where = f"{owner}.edges[{index}]"
            raise design_error("this edge does not leave a loop", where, "select an edge that leads out of a loop")
        summary = session.design.edge_to_exit(owner, index, loop)
        session.selected = edge_selection("exit", loop, len(edges_of(session.design.document, "exit", loop)) - 1)
        return summary
    if of[0] == "exit" and index is not None:
        source = str(as_object(edges_of(document, "exit", owner)[index]).get("from"))
        summary = session.design.exit_to_edge(owner, index)
        session.selected = ("socket", source)
        return summary
    raise design_error("only edges and exits can be converted to each other", "design", "select an edge or an exit")


@act
def loop(session: DesignState, ids: Ids | None = None, *, exits: StrictBool | None = None) -> str | None:
    """Create a loop that runs its sockets for each work item of the generator whose edge enters the loop.

    An edge that leaves the loop skips the remaining items, but an exit does not. If edges leave the loop, the user is
    asked whether to convert them to exits.
    """
    members = _selected_sockets(session) if ids is None else ids
    # A round begins at a socket that an edge from outside leads to.
    sockets = session.facts.sockets
    entered_ids = {target for id_, socket in sockets.items() if id_ not in members for target in socket.targets}
    entry_members = [id_ for id_ in members if id_ in entered_ids][:1]
    source = session.facts.likely_generator(members)
    before = as_object(session.design.document.get("loops"))
    ordered_members = [*entry_members, *(id_ for id_ in members if id_ not in entry_members)]
    change = make_loop(session.design.document, ordered_members, consumes=source)
    [loop_id] = [id_ for id_ in as_object(change.document.get("loops")) if id_ not in before]
    summary = change.summary
    if source is not None:
        summary += f", over the work items of {source}"
        changed_design, new_exits = with_exits(change, loop_id)
        if new_exits and exits is None:
            _ask_for_exits(session, new_exits, {"kind": "loop", "ids": [*members]})
            return None
        if new_exits and exits:
            change = changed_design
            summary += (
                f"; {', '.join(new_exits)} {'are now exits' if len(new_exits) > 1 else 'is now an exit'} of the loop"
            )
    session.marked, session.selected = [], ("loop", loop_id)
    change = replace(change, summary=summary)
    return session.design.apply(session.design.combined_change(*_list_steps(session, loop_id, change), after=change))


def _list_steps(session: DesignState, loop: str, change: DesignChange) -> tuple[FixStep, ...]:
    """Return the steps that make a loop iterate over its items, even if a socket in between passes the items on."""
    facts = parse_loadout(session.design.name, change.document, session.design.definitions)
    fix = next((iterate_over_items(facts, region) for region in facts.loops if region.id == loop), None)
    return () if fix is None else fix.steps


def _ask_for_exits(session: DesignState, edges: list[str], message: Values) -> None:
    has_several_edges = len(edges) > 1
    verb = "lead" if has_several_edges else "leads"
    question = f"{', '.join(edges)} {verb} out of the loop. An exit is taken after the last item, but an edge is taken immediately."
    exit_choice = "Make exits" if has_several_edges else "Make an exit", {**message, "exits": True}
    edge_choice = "Keep the edges" if has_several_edges else "Keep the edge", {**message, "exits": False}
    session.question = DesignQuestion(question, (exit_choice, edge_choice))


@act
def members(session: DesignState, loop: ShortText, ids: Ids | None = None) -> str:
    """Set the members of a loop; by default, the marked sockets become its members."""
    summary = session.design.set_members(loop, session.marked if ids is None else ids)
    session.marked = []
    return summary


@act
def source(session: DesignState, loop: ShortText, source: ShortText | None = None) -> str:
    """Set the source of a loop: the work items of the likely generator, a list in the state, or no source."""
    design, likely = session.design, session.facts.likely_generator(members_of(session.design.document, loop))
    generator = {"from_": likely} if source == "consumes" and likely is not None else {}
    steps = _list_steps(session, loop, design.current_change) if source == "iterator" else ()
    return design.apply(design.combined_change(*(steps or [do("set_source", loop, source or None, **generator)])))


@act
def exit_(session: DesignState, loop: ShortText, from_: ShortText, when: ShortText, to: ShortText) -> str:
    """Add an exit to a loop."""
    index = len(list_in(loop_in(session.design.document, loop), "exits", loop))
    summary = session.design.add_exit(loop, from_, when, to)
    session.selected = edge_selection("exit", loop, index)
    return summary
