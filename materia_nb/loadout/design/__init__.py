"""Editable loadouts, with undo and redo, a report of problems, automatic fixes, and unsaved changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from materia_nb.errors import MateriaError, counted
from materia_nb.jsonvalue import JSON, Object, as_object, equal_json, text_or, without_field
from materia_nb.loadout.design import edges, sockets  # noqa: F401 - importing them fills the table of operations
from materia_nb.loadout.design.document import DESIGN_KIND, OPERATIONS, DesignChange, as_json, design_error, exact_text
from materia_nb.loadout.graph import Graph, display_names, with_names
from materia_nb.loadout.items import implied_advances
from materia_nb.loadout.report import Fix, FixStep, Problem, Report
from materia_nb.loadout.resolve import build_graph, check_config, sketch_graph
from materia_nb.loadout.topology import parse_loadout


@dataclass(frozen=True, slots=True)
class Home:
    """The file or notebook in which a design is saved.

    Attributes:
        path: the path of the file; None if the design is saved in the current notebook.
        text_read: the text of the file when it was last read; None if the file did not exist.
        reason: the reason why the design is not saved in the file from which it was read; "" if it is saved there.
        below: the definition of the loadout in the lower config layers. A field that the design removes is saved as
            null, because otherwise the value in the lower layers would apply (R33).
        materia: the materia definitions in the lower config layers, by id.
    """

    path: Path | None
    text_read: str | None = field(default=None, repr=False)
    reason: str = ""
    below: Object = field(default_factory=dict, repr=False, compare=False)
    materia: Object = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return "this notebook" if self.path is None else str(self.path)


NOTEBOOK: Final = Home(None)


# -- designs ---------------------------------------------------------------------------------

_MAX_FIXES: Final = 1_000
"""Maximum number of fixes that :meth:`Design.fix_all` applies, since a fix can cause a new problem."""


class DraftSaver(Protocol):
    """A function that stores the unsaved changes to a design as a draft."""

    def __call__(self, design: Design, /, *, complete: bool) -> str:
        """Store the latest change, or all changes if ``complete`` is True. Return "" or an error message."""


class Design:
    """A loadout that is being edited. It may be invalid at any time; :attr:`report` lists its problems.

    Every operation returns a summary of its change. An operation that fails raises MateriaError and changes nothing.

    Args:
        name: the name of the loadout.
        document: the loadout as written, which is not modified.
        config: the config that contains the loadout, its materia and other settings; it is needed for the report.
        home: the file in which the design is saved; defaults to the current notebook.
    """

    if TYPE_CHECKING:  # the methods are created from OPERATIONS below

        def __getattr__(self, operation: str) -> Callable[..., str]: ...

    def __init__(self, name: str, document: Object, config: Object | None = None, home: Home = NOTEBOOK) -> None:
        self.name = name
        self.config: Object = config or {}
        self.home = home
        self.originals: dict[str, Object | None] = {}
        """Original definition of each edited materia, by id; None for a new materia."""
        self.saved_change = self._with_names(DesignChange(as_json(document, name), "original"))
        """The last saved change; if no change has been saved, the loadout as it was opened."""
        self._steps: list[DesignChange] = [self.saved_change]
        self._undone: list[DesignChange] = []
        self._report: tuple[DesignChange, Object, Report] | None = None
        self._graph: tuple[Report, Graph] | None = None
        self.save_draft: DraftSaver | None = None
        """Function that stores a draft after each change, or None."""
        self.draft_error = ""
        """Reason why the latest draft could not be stored, or ""."""

    # -- the document -----------------------------------------------------------------

    @property
    def document(self) -> Object:
        """The current loadout, including unsaved changes."""
        return self._steps[-1].document

    @property
    def changed(self) -> bool:
        """True if there are unsaved changes."""
        return exact_text(self.document) != exact_text(self.saved_change.document) or bool(self.changed_materia)

    @property
    def definitions(self) -> Object:
        """The current definitions of all materia in the config, by id, including unsaved changes.

        A socket can place any of these materia.
        """
        return self._definitions_after(self._steps[-1])

    @property
    def changed_materia(self) -> dict[str, Object | None]:
        """The definitions of the materia that have unsaved changes, by id; None for a removed materia."""
        before, now = self._definitions_after(self.saved_change), self.definitions
        return {id_: now.get(id_) for id_ in self.originals if exact_text(now.get(id_)) != exact_text(before.get(id_))}

    def _definitions_after(self, step: DesignChange) -> Object:
        # The config may already contain a saved version of an edited materia, so the original is used.
        definitions = {**as_object(self.config.get("materia")), **self.originals, **step.materia}
        return {id_: raw for id_, raw in definitions.items() if raw is not None}

    # -- steps --------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """The summaries of the changes that :meth:`undo` can undo, oldest first."""
        return tuple(step.summary for step in self._steps[1:])

    def named_steps(self, limit: int) -> tuple[list[str], list[str]]:
        """Return the summaries of the last :attr:`steps` and of the next steps to redo, with names instead of socket ids.

        Args:
            limit: the maximum length of each list.
        """
        done, undone = self._steps[-limit - 1 :], self._undone[: -limit - 1 : -1]
        pairs = pairwise((*done, *undone))
        texts = [with_names(after.summary, {**before.names, **after.names}) for before, after in pairs]
        return texts[: len(done) - 1], texts[len(done) - 1 :]

    def _with_names(self, change: DesignChange) -> DesignChange:
        definitions = self._definitions_after(change)
        placed = as_object(change.document.get("sockets")).items()
        materia = {id_: str(as_object(raw).get("materia", id_)) for id_, raw in placed}
        labels = {id_: text_or(as_object(definitions.get(m)).get("label"), m) for id_, m in materia.items()}
        return replace(change, names=display_names(labels))

    @property
    def current_change(self) -> DesignChange:
        """The change that produced the current document. It is a different object after every change, undo and redo."""
        return self._steps[-1]

    def combined_change(self, *steps: FixStep, after: DesignChange | None = None) -> DesignChange:
        """Return the combined change of several operations, without applying it.

        The operations start from the change ``after`` or, if it is None, from the current document.

        Raises:
            MateriaError: an operation is not possible.
        """
        change = after or DesignChange(self.document, "")
        change = replace(change, materia={**self.current_change.materia, **change.materia})
        for name, arguments, options in steps:
            definitions = self._definitions_after(change)
            result = OPERATIONS[name](change.document, definitions, *arguments, **options)
            summary = "; ".join(filter(None, (change.summary, result.summary)))
            change = DesignChange(result.document, summary, {**change.materia, **result.materia})
        return change

    def apply(self, change: DesignChange) -> str:
        """Apply a change as one undoable step and return its summary.

        If the change has no effect, no step is added.
        """
        change, known = self._with_current_advances(change), self.definitions
        edited = {id_: raw for id_, raw in change.materia.items() if exact_text(raw) != exact_text(known.get(id_))}
        if exact_text(change.document) != exact_text(self.document) or edited:
            for id_ in edited:
                self.originals.setdefault(id_, as_object(self.config.get("materia")).get(id_))
            self._steps.append(self._with_names(replace(change, materia={**self._steps[-1].materia, **edited})))
            self._undone.clear()
            self._save_draft()
        return change.summary

    def _with_current_advances(self, change: DesignChange) -> DesignChange:
        """Return the change without the explicit advances that the old loops imply, if the change affects loops.

        Advances are then derived from the changed loops, and may differ.
        """
        if change.document.get("loops") == self.document.get("loops"):
            return change
        advances = implied_advances(parse_loadout(self.name, self.document, self.definitions))
        raw = as_object(change.document.get("sockets"))
        ids = [id_ for id_, advance in advances.items() if as_object(raw.get(id_)).get("advance") == advance]
        current_sockets = {**raw, **{id_: without_field(raw[id_], "advance") for id_ in ids}}
        return replace(change, document={**change.document, "sockets": current_sockets}) if ids else change

    def restore_draft(self, steps: Sequence[DesignChange], undone: Sequence[DesignChange] = ()) -> None:
        """Apply the changes in a stored draft.

        Args:
            steps: the changes, which can be undone.
            undone: the changes that had been undone and can be redone; the last change is redone first.
        """
        for step in (*steps, *undone):
            for id_ in step.materia:
                self.originals.setdefault(id_, as_object(self.config.get("materia")).get(id_))
        self._steps += map(self._with_names, steps)
        self._undone[:] = map(self._with_names, undone)
        self._save_draft(complete=True)

    def _save_draft(self, *, complete: bool = False) -> None:
        if self.save_draft is not None:
            self.draft_error = self.save_draft(self, complete=complete)

    def replace(self, document: Object, summary: str) -> str:
        """Replace the whole document as one undoable step, and return ``summary``."""
        return self.apply(DesignChange(as_json(document, self.name), summary))

    def reload(self, reopened: Design) -> str:
        """Replace the design with its saved version as one undoable step, and return the summary.

        Args:
            reopened: a design that was opened from the current version of the file.
        """
        self.config, self.home = reopened.config, reopened.home
        definitions = as_object(reopened.config.get("materia"))
        summary = self.apply(
            DesignChange(reopened.document, "reloaded", {id_: definitions.get(id_) for id_ in self.originals})
        )
        self.saved_change = self._steps[-1]
        self._save_draft(complete=True)
        return summary

    def undo(self) -> str:
        """Undo the latest change and return its summary; raise MateriaError if there is nothing to undo."""
        if len(self._steps) == 1:
            raise MateriaError("There is nothing to undo.", hint="edit the loadout first", kind=DESIGN_KIND)
        self._undone.append(self._steps.pop())
        self._save_draft()
        return self._undone[-1].summary

    def redo(self) -> str:
        """Redo the most recently undone change, and return its summary.

        Raises:
            MateriaError: there is nothing to redo.
        """
        if not self._undone:
            raise MateriaError("There is nothing to redo.", hint="undo a step first", kind=DESIGN_KIND)
        self._steps.append(self._undone.pop())
        self._save_draft()
        return self._steps[-1].summary

    def mark_saved(self, home: Home | None = None) -> None:
        """Record that the current document has been saved at ``home``, by default in the notebook.

        Its changes can still be undone.
        """
        self.saved_change, self.home = self._steps[-1], home or replace(NOTEBOOK, materia=self.home.materia)
        self._save_draft(complete=True)

    @property
    def unsaved_steps(self) -> Sequence[DesignChange]:
        """The changes after :attr:`saved_change`; only the latest change if the saved change has been undone."""
        saved = next((number for number, step in enumerate(self._steps) if step is self.saved_change), None)
        return self._steps[-1:] if saved is None else self._steps[saved + 1 :]

    # -- derived values ----------------------------------------------------------------

    @property
    def full_config(self) -> Object:
        """The config that a cast would use, including the unsaved changes to the loadout and to its materia."""
        return self._config_after(self.current_change)

    @property
    def saved_config(self) -> Object:
        """The config with the loadout and its materia as they were last saved, or as they were opened."""
        return self._config_after(self.saved_change)

    def _config_after(self, change: DesignChange) -> Object:
        loadouts = {**as_object(self.config.get("loadouts")), self.name: change.document}
        return {**self.config, "loadouts": loadouts, "materia": self._definitions_after(change)}

    @property
    def report(self) -> Report:
        """The problems and hints about the current loadout."""
        step = self._steps[-1]
        if self._report is None or self._report[0] is not step or self._report[1] is not self.config:
            self._report = step, self.config, check_config(self.full_config, self.name)
        return self._report[2]

    def fixes(self) -> dict[Problem, Fix]:
        """Return the tested fix of each problem and hint that has one, including fixes that a person must confirm."""
        fixes = {finding: self.fix_of(finding) for finding in (*self.report.problems, *self.report.hints)}
        return {finding: fix for finding, fix in fixes.items() if fix is not None}

    def fix_of(self, finding: Problem) -> Fix | None:
        """Return the tested fix for a problem or hint in the report, or None.

        A fix is returned only if it solves the problem and causes no new problem. Its ``summary`` describes the change.
        """
        fix = next((now.fix for now in (*self.report.problems, *self.report.hints) if now == finding), None)
        if fix is None:
            return None
        try:
            change = self.combined_change(*fix.steps)
        except MateriaError:
            return None  # a part that the fix changes does not exist or is not well formed
        new_report = check_config(self._config_after(change), self.name)
        known = {(entry.code, entry.source) for entry in (*self.report.problems, *self.report.hints)}
        new = {(entry.code, entry.source) for entry in new_report.problems} - known
        remaining = {(entry.code, entry.source) for entry in (*new_report.problems, *new_report.hints)}
        is_fixed = (finding.code, finding.source) not in remaining
        return replace(fix, summary=change.summary) if is_fixed and not new else None

    def fix(self, finding: Problem) -> str:
        """Apply the fix for a problem or hint in the report as one undoable step, and return the summary of the change.

        Raises:
            MateriaError: the problem or hint has no fix.
        """
        fix = self.fix_of(finding)
        if fix is None:
            raise design_error(f"{finding.code} has no automatic fix", finding.source, finding.hint)
        return self.apply(self.combined_change(*fix.steps))

    def fix_all(self) -> list[str]:
        """Apply all fixes that need no confirmation, and return the summaries of their changes."""
        summaries: list[str] = []
        while len(summaries) < _MAX_FIXES:
            findings = (*self.report.problems, *self.report.hints)
            fixable = [entry for entry in findings if entry.fix is not None and not entry.fix.suggestion]
            finding = next((entry for entry in fixable if self.fix_of(entry) is not None), None)
            if finding is None:
                break
            summaries.append(self.fix(finding))
        return summaries

    def graph(self) -> Graph:
        """Return the resolved graph of the loadout, or a graph of its well-formed parts if it has problems."""
        report = self.report
        if self._graph is None or self._graph[0] is not report:
            make = build_graph if report.ok else sketch_graph
            self._graph = report, make(self.full_config, self.name)
        return self._graph[1]

    def patch(self) -> list[dict[str, JSON]]:
        """Return the unsaved changes to the loadout as a JSON Patch (RFC 6902).

        Changes in the order of keys are not included, because JSON objects are unordered.
        """
        return self._patch(self.saved_change.document, self.document)

    def materia_patch(self) -> list[dict[str, JSON]]:
        """Return the unsaved changes to the materia as a JSON Patch for the field ``materia`` of the config."""
        ids = self.changed_materia
        before, after = self._definitions_after(self.saved_change), self.definitions
        return self._patch(*({id_: positions[id_] for id_ in ids if id_ in positions} for positions in (before, after)))

    @staticmethod
    def _patch(before: Object, after: Object) -> list[dict[str, JSON]]:
        import jsonpatch

        patch: list[dict[str, JSON]] = jsonpatch.make_patch(before, after).patch
        if not equal_json(jsonpatch.apply_patch(before, patch), after):
            return [{"op": "replace", "path": "", "value": after}]
        return patch

    def __repr__(self) -> str:
        report = self.report
        state = f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}"
        return f"<Design {self.name!r}: {counted(len(self.steps), 'step')}, {state}, {'not saved' if self.changed else 'saved'}{self.draft_error and ', '}{self.draft_error}>"


def _method(name: str) -> Callable[..., str]:
    """Return a method of :class:`Design` that applies an operation as one undoable step."""

    @functools.wraps(OPERATIONS[name].function)
    def run(self: Design, /, *arguments: Any, **options: Any) -> str:
        return self.apply(self.combined_change(FixStep(name, arguments, options)))

    return run


for _name in OPERATIONS:
    setattr(Design, _name, _method(_name))
