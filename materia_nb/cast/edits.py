"""What a person changes between two steps of a cast, each change one event with its inverse: ``cast.edit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from materia_nb.agents.interface import sound
from materia_nb.cast.overrides import CONFIG, redefined
from materia_nb.cast.runner import Runner, clean, given
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine import decide
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.interrupts import HeldInterrupts
from materia_nb.jsonvalue import JSON, MISSING, json_copy, replaced, split_path, too_deep_to_write


class Edits:
    """The edits of one cast; each is refused while a step runs, and changes nothing then."""

    def __init__(self, cast: Snapshot, runner: Runner) -> None:
        """Edit ``cast`` by its runner."""
        self._cast = cast
        self._runner = runner

    def items(self, items: Sequence[JSON], origins: Sequence[int | None] | None = None) -> None:
        """Replace the work items.

        Cursors, retry counts and follow-up stay with the items that they belong to: a cursor
        stays at its item; when that one is removed the next becomes current.

        Args:
            items: the new list; each item has exactly a title and a context (R9).
            origins: for each item its index in the old list, None for a new one; found by comparing if left out.

        Raises:
            MateriaError: an item breaks a rule (kind ``items``), or a socket works on an item that
                is to be removed, or a step is running (kind ``busy``). Nothing was changed then.
        """
        typed: object = items  # what a person typed need not be what the annotation says
        if not isinstance(typed, list | tuple):
            raise MateriaError(
                "The work items must be a list.", hint="each has title and context", kind="items"
            )
        self._runner.edit(decide.edit_items, json_copy(list(items)), origins)

    def set(self, path: str, value: JSON) -> None:
        """Set one value in the state, or take it away (MISSING); work items are edited as such.

        Args:
            path: dotted, such as ``plan.approved`` or ``workItems.0.title``; objects on the way are made.
            value: what to set.

        Raises:
            MateriaError: the path names nothing (``bad_path``) or leads past the end of a list (``path``),
                or as :meth:`items` and :meth:`state`.
        """
        segments = split_path(path.strip())
        if not segments:
            raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
        before: dict[str, JSON] = dict(self._cast.state)
        if segments[0] == "workItems" and len(segments) > 1:
            before.setdefault("workItems", [])
        if value is not MISSING:
            value = json_copy(value)
        try:
            made = replaced(before, segments, value)
        except RecursionError as error:
            raise too_deep_to_write() from error
        if segments[0] == "workItems" and "workItems" in made:
            self.items(made["workItems"])  # cursors and budgets go with them, each is checked (R9, R13)
        else:
            self.state(made)

    def state(self, data: Mapping[str, JSON]) -> None:
        """Replace the state's data.

        Raises:
            MateriaError: the data is not JSON, or a step is running (kind ``busy``).
        """
        typed: object = data  # what a person typed need not be what the annotation says
        if not isinstance(typed, Mapping):
            raise MateriaError("The state is an object.", hint="give a dict", kind="not_json")
        self._runner.edit(decide.edit_state, json_copy(dict(data)))

    def reword(self, layer: str, text: str) -> Prompt:
        """Change one layer of the prompt that waits, for this turn only; a socket that is next is entered first.

        A turn that failed waits again then: the next step asks it with the new words.

        The prompts of other turns and visits stay as the materia has them. A later change of the state
        asks with the materia's own wording again. Returns the prompt as it is then.

        Args:
            layer: its name, such as ``cast``, ``materia``, ``work item`` or ``return``.
            text: the new text; empty leaves the layer out.

        Raises:
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``), the prompt has no such
                layer (``unknown_layer``), or a step is running (``busy``).
        """
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._runner.begin()
            if self._cast.status == "ready":
                self._runner.enter()
            self._runner.do(decide.edit_prompt, layer, clean(text))
            assert self._runner.session.prompt is not None  # noqa: S101 - it was edited
            return self._runner.session.prompt

    def redefine(self, materia: str, definition: Mapping[str, JSON], owner: Path | None = None) -> None:
        """Take a changed definition of a materia into this cast, which keeps a copy of its loadout otherwise.

        From then on its socket runs, or asks, what the new one says; ``recast`` does so where the cast failed. What
        earlier steps were decided by cannot change under them: only some fields may differ, such as its command.

        Args:
            materia: its id.
            definition: as in a config.
            owner: the directory of its config file, where its scripts are looked for (R24).

        Raises:
            MateriaError: the cast has no such materia (``unknown_materia``), other fields changed or none
                (``redefine``), it is invalid, or a step is running (``busy``). Nothing was changed then.
        """
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._runner.begin()
            files = self._runner.files
            changed = redefined(files, self._cast.rules, materia, definition, owner)
            with HeldInterrupts():  # between any two of these the config and the journal would not agree
                files.replace_json(CONFIG, changed.document)
                try:
                    self._runner.do(decide.redefine, materia, changed.definition, changed.previous)
                except BaseException:
                    files.replace_json(CONFIG, changed.before)
                    raise
                self._cast.rules = self._runner.rules = changed.rules

    def undo(self) -> None:
        """Take the last edit back, as long as no step was made since."""
        self._runner.edit(decide.undo)

    def recommit(self, output: str | Mapping[str, JSON]) -> StepRecord:
        """Correct the output of the last step: it is checked and decided anew, the original is kept.

        An object is taken as JSON, as in ``reply``.

        Raises:
            MateriaError: the corrected output breaks the handoff's rules (kind ``recommit``), or
                the cast has gone on since, or was edited since.
        """
        self._runner.edit(decide.recommit, clean(sound(given(output), "The corrected output").text))
        self._write()
        return self._cast.steps[-1]

    def _write(self) -> None:
        with self._runner.lock():
            self._runner.write_derived()
