"""A design: a loadout while a person works on it, with undo, a report at any moment, and what is not saved yet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from materia_nb.errors import MateriaError, counted
from materia_nb.jsonvalue import JSON, Object, as_object, same
from materia_nb.loadout.design import edges, sockets  # noqa: F401 - importing them fills the table of operations
from materia_nb.loadout.design.document import (
    DESIGN_KIND,
    OPERATIONS,
    DesignChange,
    as_json,
    design_error,
    exact,
)
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import Fix, FixStep, Problem, Report
from materia_nb.loadout.resolve import build_graph, check_config, sketch_graph
from materia_nb.loadout.topology import parse_loadout


@dataclass(frozen=True, slots=True)
class Home:
    """Where a loadout is saved.

    Attributes:
        path: the file; None for this notebook.
        seen: what the file held when it was read; None when it was not there.
        why: why it is saved here and not where it came from; empty when it came from here.
        below: the loadout as the layers below this place have it: a field of it that is not wanted is saved as
            null, or it would shine through (R33).
        materia: the materia as those layers have them, by id.
    """

    path: Path | None
    seen: str | None = field(default=None, repr=False)
    why: str = ""
    below: Object = field(default_factory=dict, repr=False, compare=False)
    materia: Object = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return "this notebook" if self.path is None else str(self.path)


NOTEBOOK: Final = Home(None)


# -- designs ---------------------------------------------------------------------------------

_MAX_FIXES: Final = 1_000
"""No more are made at once, whatever one fix may bring up for the next."""


class Keep(Protocol):
    """Keeps a draft of a design."""

    def __call__(self, design: Design, /, *, anew: bool) -> str:
        """Keep a design after a step, an undo or a redo, or ``anew`` after more; returns why that could not be."""


class Design:
    """A loadout that is being edited. Any state of it can be held; ``report`` says what is wrong with it.

    Every operation returns what it did in words, or raises MateriaError and changes nothing.

    Args:
        name: the name of the loadout.
        document: the loadout as written; it is never changed in place.
        config: the config around it: its materia, limits and the rest, which the report needs.
        home: where it is kept; a notebook if left out.
    """

    if TYPE_CHECKING:  # its methods are made of the rows of OPERATIONS, below

        def __getattr__(self, operation: str) -> Callable[..., str]: ...

    def __init__(
        self, name: str, document: Object, config: Object | None = None, home: Home = NOTEBOOK
    ) -> None:
        self.name = name
        self.config: Object = config or {}
        self.home = home
        self._steps: list[DesignChange] = [DesignChange(as_json(document, name), "as it was")]
        self._undone: list[DesignChange] = []
        self._base = self._steps[-1]
        self._originals: dict[str, Object | None] = {}
        self._report: tuple[DesignChange, Object, Report] | None = None
        self._graph: tuple[Report, Graph] | None = None
        self.keep: Keep | None = None
        """Keeps a draft of it."""
        self.not_kept = ""
        """Why the last act is not kept as a draft; empty when it is, or nobody keeps it."""

    # -- the document -----------------------------------------------------------------

    @property
    def document(self) -> Object:
        """The loadout as it is now."""
        return self._steps[-1].document

    @property
    def began(self) -> Object:
        """The loadout as it was at first, or as it was saved last."""
        return self._base.document

    @property
    def changed(self) -> bool:
        """Whether there is something that is not saved."""
        return exact(self.document) != exact(self.began) or bool(self.changed_materia)

    @property
    def definitions(self) -> Object:
        """The materia that can be placed, by id, as they are defined now."""
        return self._defined(self._steps[-1])

    @property
    def materia(self) -> tuple[str, ...]:
        """The ids of the materia that can be placed."""
        return tuple(self.definitions)

    @property
    def changed_materia(self) -> dict[str, Object | None]:
        """The definitions that are not saved as they are now, whole, by id; None for one that is not wanted."""
        before, now = self._defined(self._base), self.definitions
        return {id_: now.get(id_) for id_ in self._originals if exact(now.get(id_)) != exact(before.get(id_))}

    def _defined(self, step: DesignChange) -> Object:
        # Of an edited one the config says what it was, or what was saved meanwhile; its original does not move.
        definitions = {**as_object(self.config.get("materia")), **self._originals, **step.materia}
        return {id_: raw for id_, raw in definitions.items() if raw is not None}

    # -- steps --------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """What was done and not undone, in words, oldest first."""
        return tuple(step.words for step in self._steps[1:])

    @property
    def undone(self) -> tuple[str, ...]:
        """What :meth:`redo` would do again, in words, the next one first."""
        return tuple(step.words for step in reversed(self._undone))

    @property
    def now(self) -> DesignChange:
        """The last step; another object after each change, undo and redo."""
        return self._steps[-1]

    def changed_by(self, *steps: FixStep) -> DesignChange:
        """Return what operations would make of it, one after another; raises MateriaError when one cannot be done."""
        document, definitions, words = self.document, self.definitions, []
        materia: dict[str, Object | None] = {}
        for name, arguments, options in steps:
            change = OPERATIONS[name](document, definitions, *arguments, **options)
            document, materia = change.document, {**materia, **change.materia}
            definitions = {id_: raw for id_, raw in {**definitions, **materia}.items() if raw is not None}
            words.append(change.words)
        return DesignChange(document, "; ".join(words), materia)

    def apply(self, change: DesignChange) -> str:
        """Take a change as one step; one that changes nothing is none. Returns its words."""
        known = self.definitions
        edited = {id_: raw for id_, raw in change.materia.items() if exact(raw) != exact(known.get(id_))}
        if exact(change.document) != exact(self.document) or edited:
            for id_ in edited:
                self._originals.setdefault(id_, as_object(self.config.get("materia")).get(id_))
            self._steps.append(replace(change, materia={**self._steps[-1].materia, **edited}))
            self._undone.clear()
            self._kept()
        return change.words

    def take_up(self, steps: Sequence[DesignChange], undone: Sequence[DesignChange] = ()) -> None:
        """Do the steps of a draft on top of what was done; ``undone`` can be done again, the last one first."""
        for step in (*steps, *undone):
            for id_ in step.materia:
                self._originals.setdefault(id_, as_object(self.config.get("materia")).get(id_))
        self._steps += steps
        self._undone[:] = undone
        self._kept(anew=True)

    def _kept(self, *, anew: bool = False) -> None:
        if self.keep is not None:
            self.not_kept = self.keep(self, anew=anew)

    def replace(self, document: Object, words: str) -> str:
        """Put a whole document in place of this one, as one step."""
        return self.apply(DesignChange(as_json(document, self.name), words))

    def reload(self, fresh: Design) -> str:
        """Take the document, config and home of a design that was begun just now, as one step."""
        self.config, self.home = fresh.config, fresh.home
        now = as_object(fresh.config.get("materia"))
        words = self.apply(
            DesignChange(fresh.document, "reloaded", {id_: now.get(id_) for id_ in self._originals})
        )
        self._base = self._steps[-1]
        self._kept(anew=True)
        return words

    def undo(self) -> str:
        """Take the last step back; returns what it was. Raises MateriaError when there is none."""
        if len(self._steps) == 1:
            raise MateriaError("There is nothing to undo.", hint="edit the loadout first", kind=DESIGN_KIND)
        self._undone.append(self._steps.pop())
        self._kept()
        return self._undone[-1].words

    def redo(self) -> str:
        """Do the step again that was undone last; returns what it is. Raises MateriaError when there is none."""
        if not self._undone:
            raise MateriaError("There is nothing to redo.", hint="undo a step first", kind=DESIGN_KIND)
        self._steps.append(self._undone.pop())
        self._kept()
        return self._steps[-1].words

    def saved(self, home: Home = NOTEBOOK) -> None:
        """Note that the document as it is now is kept at ``home``; the steps can still be undone."""
        self._base, self.home = self._steps[-1], home
        self._kept(anew=True)

    @property
    def originals(self) -> dict[str, Object | None]:
        """The materia that were edited, as they were at first; None for one that was not there."""
        return self._originals

    @property
    def unsaved(self) -> tuple[DesignChange, Sequence[DesignChange]]:
        """What was saved last, and the steps since; only the last one where undo led back to before that."""
        place = next((at for at, one in enumerate(self._steps) if one is self._base), None)
        return self._base, self._steps[-1:] if place is None else self._steps[place + 1 :]

    # -- what follows from it -----------------------------------------------------------

    @property
    def whole(self) -> Object:
        """The config with this loadout in it, as it would be cast."""
        return self._whole(self.now)

    def _whole(self, change: DesignChange) -> Object:
        loadouts = {**as_object(self.config.get("loadouts")), self.name: change.document}
        materia = {**self.definitions, **change.materia}
        kept = {id_: raw for id_, raw in materia.items() if raw is not None}
        return {**self.config, "loadouts": loadouts, "materia": kept}

    @property
    def report(self) -> Report:
        """The problems and hints of the loadout as it is now; the same checks as for any other."""
        step = self._steps[-1]
        if self._report is None or self._report[0] is not step or self._report[1] is not self.config:
            self._report = step, self.config, check_config(self.whole, self.name)
        return self._report[2]

    def fixes(self) -> dict[Problem, Fix]:
        """Return what fixes each finding of the report that can be fixed so, suggestions too."""
        tried = {one: self.fix_of(one) for one in (*self.report.problems, *self.report.hints)}
        return {finding: fix for finding, fix in tried.items() if fix is not None}

    def fix_of(self, finding: Problem) -> Fix | None:
        """Return what fixes a problem or hint of the report; None where a person has to choose.

        It is tried out: the finding goes, and no problem comes in its place. Its ``words`` say what will be done.
        """
        now = next((one for one in (*self.report.problems, *self.report.hints) if one == finding), None)
        change = None if now is None or now.fix is None else self._change_of(now.fix)
        if now is None or now.fix is None or change is None:
            return None
        after = check_config(self._whole(change), self.name)
        before, left = (
            {(one.code, one.source) for one in (*report.problems, *report.hints)}
            for report in (self.report, after)
        )
        new = {(one.code, one.source) for one in after.problems} - before
        goes = (finding.code, finding.source) not in left
        return replace(now.fix, words=change.words) if goes and not new else None

    def _change_of(self, fix: Fix) -> DesignChange | None:
        try:
            change = self.changed_by(*fix.steps)
        except MateriaError:
            return None  # what the finding speaks of is not there, or not well formed enough
        return replace(change, words=fix.words or change.words)

    def fix(self, finding: Problem) -> str:
        """Fix a problem or hint of the report, as one step that can be undone; returns what was done in words.

        Raises:
            MateriaError: no one change fixes it.
        """
        fix = self.fix_of(finding)
        change = None if fix is None else self._change_of(fix)
        if change is None:
            raise design_error(f"{finding.code} cannot be fixed without you", finding.source, finding.hint)
        return self.apply(change)

    def fix_all(self) -> list[str]:
        """Fix all that can be fixed in one way only, one after another; returns what was done in words."""
        done: list[str] = []
        while len(done) < _MAX_FIXES:
            findings = (*self.report.problems, *self.report.hints)
            certain = (one for one in findings if one.fix is not None and not one.fix.suggestion)
            finding = next((one for one in certain if self.fix_of(one) is not None), None)
            if finding is None:
                break
            done.append(self.fix(finding))
        return done

    def likely_generator(self, members: Collection[str]) -> str | None:
        """Return the generator socket that a loop of ``members`` would consume: the only one that leads into it."""
        return parse_loadout(self.name, self.document, self.definitions).likely_generator(members)

    def graph(self) -> Graph:
        """What can be drawn of it: the resolved graph, or, while there are problems, all that is well formed."""
        report = self.report
        if self._graph is None or self._graph[0] is not report:
            make = build_graph if report.ok else sketch_graph
            self._graph = report, make(self.whole, self.name)
        return self._graph[1]

    def patch(self) -> list[dict[str, JSON]]:
        """Return the changes since :attr:`began` as a JSON Patch (RFC 6902): few, small operations.

        The order of keys is not part of it, as JSON objects have none.
        """
        return self._patch(self.began, self.document)

    def materia_patch(self) -> list[dict[str, JSON]]:
        """Return what is not saved of the materia as a JSON Patch of the config's ``materia``."""
        ids = self.changed_materia
        before, after = self._defined(self._base), self.definitions
        return self._patch(*({id_: at[id_] for id_ in ids if id_ in at} for at in (before, after)))

    @staticmethod
    def _patch(before: Object, after: Object) -> list[dict[str, JSON]]:
        import jsonpatch

        made: list[dict[str, JSON]] = jsonpatch.make_patch(before, after).patch
        if not same(jsonpatch.apply_patch(before, made), after):
            return [{"op": "replace", "path": "", "value": after}]
        return made

    def __repr__(self) -> str:
        report = self.report
        state = f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}"
        return f"<Design {self.name!r}: {counted(len(self.steps), 'step')}, {state}, {'not saved' if self.changed else 'saved'}{self.not_kept and ', '}{self.not_kept}>"


def _method(name: str) -> Callable[..., str]:
    """Make a method of an operation: it applies to the design's document, as one step that can be undone."""

    @functools.wraps(OPERATIONS[name].function)
    def run(self: Design, /, *arguments: Any, **options: Any) -> str:
        return self.apply(self.changed_by(FixStep(name, arguments, options)))

    return run


for _name in OPERATIONS:
    setattr(Design, _name, _method(_name))
