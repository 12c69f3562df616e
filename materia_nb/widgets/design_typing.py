"""Taking what was typed into a field of a form, for the part that it was typed at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from materia_nb.display.escape import shorten
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import refused
from materia_nb.loadout.design.forms import read_field
from materia_nb.loadout.design.sockets import materia_model
from materia_nb.loadout.facts import as_object
from materia_nb.loadout.models import Consumes, Iterator, Loadout
from materia_nb.loadout.models_graph import Edge, ExitRoute, Loop, Socket
from materia_nb.widgets.design_parts import owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from materia_nb.loadout.design import Design
    from materia_nb.widgets.picks import Pick


class FormsOwner(Protocol):
    """What is edited, and what is selected of it."""

    design: Design
    marked: list[str]
    selected: Pick | None

    def pick(self, given: object) -> Pick | None:
        """Return the part that a message is about."""

    def ask_to_make(self, name: str, again: Mapping[str, Any]) -> None:
        """Ask whether a materia that there is not is to be made; ``again`` is then done once more."""


def set_field(session: FormsOwner, kind: str, key: str, field: str, typed: JSON) -> str | None:
    """Give a field of a part the value that was typed; returns what was done in words.

    Raises:
        MateriaError: there is no such part or field, or it cannot have this value.
    """
    design = session.design
    if kind == "materia":
        model = materia_model(as_object(design.definitions.get(key)))
        return design.set_materia(key, field, read_field(model, field, typed))
    if kind == "loadout":
        return _set_loadout(session, field, typed)
    pick = session.pick([kind, key])
    if pick is None:
        raise refused("it is not said what this is about", "design", "reload the page")
    if kind == "socket":
        return _set_socket(session, key, field, typed)
    if kind == "loop":
        return _set_loop(session, key, field, typed)
    owner, place = owner_of(pick)
    if kind == "edge" and place is not None:
        return _set_edge(session, owner, place, field, typed)
    if kind == "exit" and place is not None:
        return _set_exit(session, owner, place, field, typed)
    raise refused("this has no such field", f"{kind} {key}", "remove it and make it anew")


def _set_loadout(session: FormsOwner, field: str, typed: JSON) -> str:
    value = read_field(Loadout, field, typed)
    if field == "entry":
        return session.design.set_entry(str(value))
    return session.design.set_loadout(field, value)


def _set_socket(session: FormsOwner, id_: str, field: str, typed: JSON) -> str | None:
    if field == "id":
        new = str(typed).strip()
        words = session.design.rename_socket(id_, new)
        session.marked = [new if one == id_ else one for one in session.marked]
        if session.selected == ("socket", id_):
            session.selected = ("socket", new)
        return words
    value = read_field(Socket, field, typed)
    if field == "materia" and value not in session.design.definitions:
        if value is None:
            raise refused("a socket has a materia", f"{id_}.materia", "name one, or remove the socket")
        session.ask_to_make(value, {"kind": "set", "of": ["socket", id_], "field": "materia"})
        raise refused(
            f"there is no materia {shorten(str(value), 60)!r}", f"{id_}.materia", "choose one, or make it"
        )
    return session.design.set_socket(id_, field, value)


def _set_edge(session: FormsOwner, source: str, place: int, field: str, typed: JSON) -> str:
    value = read_field(Edge, field, typed)
    if field == "maxTraversals":
        return session.design.limit_edge(source, place, value)
    if value is None:
        raise refused(f"an edge needs {field}", f"{source}.edges[{place}]", "choose one, or remove the edge")
    return session.design.change_edge(source, place, **{"when" if field == "when" else "to": str(value)})


def _set_exit(session: FormsOwner, loop: str, place: int, field: str, typed: JSON) -> str:
    value = read_field(ExitRoute, field, typed)
    names = {"id": "id_", "from": "source", "condition": "condition", "targetSocketId": "target"}
    if value is None:
        raise refused(
            f"an exit needs {field}", f"loops.{loop}.exits[{place}]", "choose one, or remove the exit"
        )
    return session.design.change_exit(loop, place, **{names[field]: str(value)})


def _set_loop(session: FormsOwner, loop: str, field: str, typed: JSON) -> str:
    if field == "id":
        new = str(typed).strip()
        words = session.design.rename_loop(loop, new)
        if session.selected == ("loop", loop):
            session.selected = ("loop", new)
        return words
    for source, model in (("consumes", Consumes), ("iterator", Iterator)):
        if field.startswith(f"{source}."):
            name = field.removeprefix(f"{source}.")
            value = read_field(model, name, typed)
            given: dict[str, Any] = {{"from": "from_", "as": "as_"}.get(name, name): value}
            return session.design.set_source(loop, source, **given)  # type: ignore[arg-type]
    return session.design.set_loop(loop, field, read_field(Loop, field, typed))
