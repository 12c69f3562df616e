"""A design: a loadout while a person works on it, with undo, a report at any moment, and what is not saved yet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Concatenate, Final, ParamSpec

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout.design import edges, exits, loops, sockets
from materia_nb.loadout.design.change import KIND, Change, as_json, written
from materia_nb.loadout.design.home import NOTEBOOK, Home
from materia_nb.loadout.design.picture import picture
from materia_nb.loadout.facts import Facts, Object, as_object
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import Report
from materia_nb.loadout.validate import check_config

P = ParamSpec("P")


def _does(operation: Callable[Concatenate[Object, P], Change]) -> Callable[Concatenate[Design, P], str]:
    """Make a method of an operation: it applies to the design's document, as one step that can be undone."""

    @functools.wraps(operation)
    def run(self: Design, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return self.apply(operation(self.document, *args, **kwargs))

    return run


class Design:
    """A loadout that is being edited. Any state of it can be held; ``report`` says what is wrong with it.

    Every operation returns what it did in words, or raises MateriaError and changes nothing.

    Args:
        name: the name of the loadout.
        document: the loadout as written; it is never changed in place.
        config: the config around it: its materia, limits and the rest, which the report needs.
        home: where it is kept; a notebook if left out.
    """

    add_socket: Final = _does(sockets.add_socket)
    rename_socket: Final = _does(sockets.rename_socket)
    remove_socket: Final = _does(sockets.remove_socket)
    set_socket: Final = _does(sockets.set_socket)
    place_socket: Final = _does(sockets.place_socket)
    set_entry: Final = _does(sockets.set_entry)
    set_loadout: Final = _does(sockets.set_loadout)
    add_edge: Final = _does(edges.add_edge)
    change_edge: Final = _does(edges.change_edge)
    limit_edge: Final = _does(edges.limit_edge)
    move_edge: Final = _does(edges.move_edge)
    remove_edge: Final = _does(edges.remove_edge)
    make_loop: Final = _does(loops.make_loop)
    rename_loop: Final = _does(loops.rename_loop)
    set_members: Final = _does(loops.set_members)
    set_source: Final = _does(loops.set_source)
    set_loop: Final = _does(loops.set_loop)
    delete_loop: Final = _does(loops.delete_loop)
    add_exit: Final = _does(exits.add_exit)
    change_exit: Final = _does(exits.change_exit)
    move_exit: Final = _does(exits.move_exit)
    remove_exit: Final = _does(exits.remove_exit)

    def __init__(
        self, name: str, document: Object, config: Object | None = None, home: Home = NOTEBOOK
    ) -> None:
        self.name = name
        self.config: Object = config or {}
        self.home = home
        self._steps: list[Change] = [Change(as_json(document, name), "as it was")]
        self._undone: list[Change] = []
        self._base = self.document
        self._report: tuple[Object, Object, Report] | None = None

    # -- the document -----------------------------------------------------------------

    @property
    def document(self) -> Object:
        """The loadout as it is now."""
        return self._steps[-1].document

    @property
    def began(self) -> Object:
        """The loadout as it was at first, or as it was saved last."""
        return self._base

    @property
    def changed(self) -> bool:
        """Whether there is something that is not saved."""
        return written(self.document) != written(self._base)

    @property
    def materia(self) -> tuple[str, ...]:
        """The ids of the materia that can be placed."""
        return tuple(as_object(self.config.get("materia")))

    # -- steps --------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """What was done and not undone, in words, oldest first."""
        return tuple(step.words for step in self._steps[1:])

    @property
    def undone(self) -> tuple[str, ...]:
        """What :meth:`redo` would do again, in words, the next one first."""
        return tuple(step.words for step in reversed(self._undone))

    def apply(self, change: Change) -> str:
        """Take a change as one step; one that changes nothing is none. Returns its words."""
        if written(change.document) != written(self.document):
            self._steps.append(change)
            self._undone.clear()
        return change.words

    def replace(self, document: Object, words: str) -> str:
        """Put a whole document in place of this one, as one step."""
        return self.apply(Change(as_json(document, self.name), words))

    def reload(self, fresh: Design) -> str:
        """Take the document, config and home of a design that was begun just now, as one step."""
        self.config, self.home = fresh.config, fresh.home
        words = self.replace(fresh.document, "reloaded")
        self._base = self.document
        return words

    def undo(self) -> str:
        """Take the last step back; returns what it was. Raises MateriaError when there is none."""
        if len(self._steps) == 1:
            raise MateriaError("There is nothing to undo.", hint="edit the loadout first", kind=KIND)
        self._undone.append(self._steps.pop())
        return self._undone[-1].words

    def redo(self) -> str:
        """Do the step again that was undone last; returns what it is. Raises MateriaError when there is none."""
        if not self._undone:
            raise MateriaError("There is nothing to do again.", hint="undo a step first", kind=KIND)
        self._steps.append(self._undone.pop())
        return self._steps[-1].words

    def saved(self, home: Home = NOTEBOOK) -> None:
        """Note that the document as it is now is kept at ``home``; the steps can still be undone."""
        self._base, self.home = self.document, home

    # -- what follows from it -----------------------------------------------------------

    @property
    def whole(self) -> Object:
        """The config with this loadout in it, as it would be cast."""
        loadouts = {**as_object(self.config.get("loadouts")), self.name: self.document}
        return {**self.config, "loadouts": loadouts}

    @property
    def report(self) -> Report:
        """The problems and hints of the loadout as it is now; the same checks as for any other."""
        if self._report is None or self._report[0] is not self.document or self._report[1] is not self.config:
            self._report = self.document, self.config, check_config(self.whole, self.name)
        return self._report[2]

    def likely_generator(self, members: Iterable[str]) -> str | None:
        """Return the generator socket that a loop of ``members`` would consume: the only one that leads into it."""
        facts, inside = Facts(self.name, self.document, as_object(self.config.get("materia"))), set(members)
        found = [
            id_
            for id_ in facts.sockets
            if facts.is_generator(id_) and id_ not in inside and inside.intersection(facts.targets(id_))
        ]
        return found[0] if len(found) == 1 else None

    def graph(self) -> Graph:
        """What can be drawn of it: the resolved graph, or, while there are problems, all that is well formed."""
        return picture(self.whole, self.name, self.report)

    def patch(self) -> list[dict[str, JSON]]:
        """Return the changes since :attr:`began` as a JSON Patch (RFC 6902): few, small operations.

        The order of keys is no part of it, as JSON objects have none.
        """
        import jsonpatch

        before, after = self._base, self.document
        made: list[dict[str, JSON]] = jsonpatch.make_patch(before, after).patch
        if not same(jsonpatch.apply_patch(before, made), after):
            return [{"op": "replace", "path": "", "value": after}]
        return made

    def __repr__(self) -> str:
        found = self.report
        state = f"{len(found.problems)} problems, {len(found.hints)} hints"
        return f"<Design {self.name!r}: {len(self.steps)} steps, {state}, {'not saved' if self.changed else 'saved'}>"
