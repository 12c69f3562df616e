"""Which names of sockets and materia there are, and what is said of one that is not, or that stands for a process."""

from __future__ import annotations

from collections.abc import Iterable

from materia_nb.errors import MateriaError, did_you_mean, needs_one_of
from materia_nb.loadout.graph import Graph


def names_of(graph: Graph) -> set[str]:
    """The names that can be pinned, or answered by an agent: sockets and the materia placed in them."""
    return {*graph.sockets, *(socket.materia.id for socket in graph.sockets.values())}


def needs_name(graph: Graph, name: str) -> None:
    """Raise MateriaError (``unknown_materia``) unless a loadout has a socket or materia of that name."""
    what = f"The loadout {graph.name} has no socket or materia {name!r}."
    needs_one_of(name, names_of(graph), what, "unknown_materia")


def unknown(name: str, known: Iterable[str]) -> MateriaError:
    """Return the error for an agent of a name that no socket or materia has."""
    return MateriaError(
        f"There is no materia or socket {name!r}.",
        hint=did_you_mean(name, known) + " (* is everyone)",
        kind="unknown_materia",
    )


def no_agent(name: str, what: str) -> MateriaError:
    """Return the error for an agent of a utility, which would be ignored."""
    return MateriaError(
        f"{what} is a utility: a process answers there, so no agent can be set for it.",
        where=name,
        hint=f"pin it, and no process is started: wb.pin({name!r}, ...), or pins={{{name!r}: ...}} for one cast",
        kind="not_an_agent",
    )


def utilities_of(graph: Graph) -> dict[str, str]:
    """The names in a loadout where a process answers, each in words: sockets, and the materia placed in them."""
    found = [socket for socket in graph.sockets.values() if socket.is_utility]
    return {one.materia.id: one.materia.id for one in found} | {
        one.id: f"{one.id} ({one.materia.label})" for one in found
    }


def needs_agent(graph: Graph, name: str) -> None:
    """Raise MateriaError unless agents answer what a loadout calls so (``unknown_materia``, ``not_an_agent``)."""
    if name not in (known := names_of(graph)):
        raise unknown(name, known)
    if (what := utilities_of(graph).get(name)) is not None:
        raise no_agent(name, what)
