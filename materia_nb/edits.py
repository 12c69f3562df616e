"""What a person changes in a cast between its steps. Every change is an event, kept with its inverse.

Files that utilities changed are not part of a cast's state: no edit, undo, way back
or fork touches them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from materia_nb.agents.sound import sound
from materia_nb.engine import edit
from materia_nb.engine import step as engine
from materia_nb.engine.prompt import Prompt, reworded
from materia_nb.engine.replacing import replaced
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, same, split_path
from materia_nb.loadout import build_graph
from materia_nb.steps import Steps
from materia_nb.store.files import to_bytes
from materia_nb.store.fork import fork_files
from materia_nb.store.history import Edit, StepRecord
from materia_nb.store.rundir import branch_suffix, output_name
from materia_nb.utilities.command import beside_config

if TYPE_CHECKING:
    from materia_nb.agents.registry import AgentTable


CONFIG: Final = "config.resolved.json"
REDEFINED: Final = frozenset({"command", "description", "model", "script", "thinking", "timeoutMs", "tools"})
"""The fields of a materia that may change in a running cast: what is run or asked, nothing that decides."""


class Edits(Steps):
    """The part of a cast that edits; ``Cast`` is the class to use."""

    if TYPE_CHECKING:  # what Cast provides

        @classmethod
        def resume(  # noqa: D102
            cls, path: Path, agents: AgentTable | None = None, *, utilities: tuple[Path, ...] = ()
        ) -> Self: ...

    @property
    def edits(self) -> Sequence[Edit]:
        """The changes that a person made and did not undo, in order."""
        return self._history.edits

    @property
    def abandoned(self) -> Sequence[Sequence[StepRecord]]:
        """The steps that were left behind by going back, one branch each."""
        return self._history.abandoned

    def edit_items(self, items: Sequence[JSON], origins: Sequence[int | None] | None = None) -> None:
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
        given: JSON = items  # what a person typed need not be what the annotation says
        if not isinstance(given, list | tuple):
            raise MateriaError(
                "The work items must be a list.", hint="each has title and context", kind="items"
            )
        new = list(items)
        old = self.now.data.get("workItems")
        places = _origins(old if isinstance(old, list) else [], new) if origins is None else list(origins)
        self._edit(
            {**self.now.data, "workItems": new},
            lambda state: edit.edit_items(self.rules, state, new, places),
            origins=places,
        )

    def edit_value(self, path: str, value: JSON) -> None:
        """Set one value in the state, or take it away (MISSING); work items are edited as such.

        Args:
            path: dotted, such as ``plan.approved`` or ``workItems.0.title``; objects on the way are made.
            value: what to set.

        Raises:
            MateriaError: the path names nothing (``bad_path``) or leads past the end of a list (``path``),
                or as :meth:`edit_items` and :meth:`edit_state`.
        """
        segments = split_path(path.strip())
        if not segments:
            raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
        before: dict[str, JSON] = dict(self.now.data)
        if segments[0] == "workItems" and len(segments) > 1:
            before.setdefault("workItems", [])
        made = replaced(before, segments, value)
        if segments[0] == "workItems" and "workItems" in made:
            self.edit_items(made["workItems"])  # cursors and budgets go with them, each is checked (R9, R13)
        else:
            self.edit_state(made)

    def edit_state(self, data: Mapping[str, JSON]) -> None:
        """Replace the state's data; what shows the current item (``item`` and its aliases) is put back.

        Raises:
            MateriaError: the data is not JSON, or a step is running (kind ``busy``).
        """
        self._edit(data, lambda state: edit.edit_data(state, _patched(state, _patch(state.data, data))))

    def _edit(
        self,
        data: Mapping[str, JSON],
        change: Callable[[CastState], CastState],
        origins: Sequence[int | None] | None = None,
    ) -> None:
        self._refuse_while_running()
        with self._hold():
            self._begin()
            before = self.now
            if before.status == "complete":
                raise MateriaError(
                    "The cast is complete.", hint="go back to a step first, or fork it", kind="over"
                )
            patch, inverse = _patch(before.data, data), _patch(data, before.data)
            if not patch:
                return
            after = change(before)
            event: dict[str, JSON] = {
                "patch": patch,
                "inverse": inverse,
                "by": "person",
                "step": before.steps,
            }
            if origins is not None:
                event["origins"] = list(origins)
            prompt = edit.prompt_after(self.rules, after)
            self._commit(
                [("state_edited", event)],
                lambda ts: self._history.edited(
                    Edit(ts, before.steps, tuple(patch), tuple(inverse), before, after), prompt
                ),
            )
            self._told()

    def redefine(self, materia: str, definition: Mapping[str, JSON], owner: Path | None = None) -> None:
        """Take a changed definition of a materia into this cast, which keeps a copy of its loadout otherwise.

        From then on its socket runs, or asks, what the new one says; ``recast`` does so where the cast failed. What
        earlier steps were decided by cannot change under them: only :data:`REDEFINED` may differ.

        Args:
            materia: its id.
            definition: as in a config.
            owner: the directory of its config file, where its scripts are looked for (R24).

        Raises:
            MateriaError: the cast has no such materia (``unknown_materia``), other fields changed or none
                (``redefine``), it is invalid, or a step is running (``busy``). Nothing was changed then.
        """
        self._refuse_while_running()
        with self._hold():
            self._begin()
            before = self._files.read_text(CONFIG)
            document = json.loads(before)
            known = document["materia"]
            if materia not in known:
                raise MateriaError(
                    f"The cast has no materia {materia!r}.",
                    hint=did_you_mean(materia, known),
                    kind="unknown_materia",
                )
            previous = known[materia]
            _check_redefined(materia, previous, definition)
            made = beside_config(definition, owner)
            known[materia] = made
            owners = {m.id: m.owner for s in self.graph.sockets.values() if (m := s.materia).owner}
            rules = Rules(build_graph(document, self.graph.name, owners))
            self._files.replace_json(CONFIG, document)
            event: dict[str, JSON] = {
                "materia": materia,
                "definition": made,
                "previous": previous,
                "by": "person",
                "step": self.now.steps,
            }
            try:
                self._commit([("materia_redefined", event)], lambda _: None)
            except BaseException:
                self._files.replace_json(CONFIG, json.loads(before))
                raise
            self.rules = rules
            self._told()

    def edit_prompt(self, layer: str, text: str) -> Prompt:
        """Change one layer of the prompt that waits, for this turn only; a socket that is next is entered first.

        A turn that failed waits again then: the next step asks it with the new words.

        The prompts of other turns and visits stay as the materia has them. A later change of the state
        asks with the materia's own wording again. Returns the prompt as it is then.

        Args:
            layer: its name, such as ``materia``, ``work item`` or ``return``.
            text: the new text; empty leaves the layer out.

        Raises:
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``), the prompt has no such
                layer (``unknown_layer``), or a step is running (``busy``).
        """
        self._refuse_while_running()
        with self._hold():
            self._begin()
            if self.now.status == "ready":
                self._enter()
            cut_short = self.now.at if self.prompt_cut_short is not None else None
            visit, prompt = cut_short or self._visit(), self._history.prompt
            if prompt is None or self.rules.sockets[visit.socket].socket.is_utility:
                raise MateriaError(
                    f"{visit.socket} is a utility and has no prompt.",
                    hint="edit the state that it reads",
                    kind="not_an_agent",
                )
            if self._history.message is not None:
                raise MateriaError(
                    "What is asked now is your message about the draft.",
                    hint="refine with another message",
                    kind="prompt",
                )
            told = to_bytes(text).decode()
            changed = reworded(prompt, layer, told)
            if cut_short is not None:
                self._reopen()
            if changed == prompt:
                return prompt
            event: dict[str, JSON] = {"layer": layer, "text": told, "by": "person"}
            self._commit(
                [("prompt_edited", {**engine.about(self.rules, visit), **event})],
                lambda _: self._history.reworded(changed),
            )
            self._told()
            return changed

    def undo(self) -> None:
        """Take the last edit back, as long as no step was made since."""
        self._refuse_while_running()
        with self._hold():
            self._begin()
            if not self._history.edits:
                raise MateriaError("There is no edit to undo.", kind="undo")
            if self._history.edits[-1].after is not self.now:
                raise MateriaError(
                    "The cast has gone on since the last edit.",
                    hint="go back to the step before it",
                    kind="undo",
                )
            self._commit([("edit_undone", {})], lambda _: self._history.undone())
            self._told()

    def recommit(self, output: str | Mapping[str, JSON]) -> StepRecord:
        """Correct the output of the last step: it is checked and decided anew, the original is kept.

        An object is taken as JSON, as in ``reply``.

        Raises:
            MateriaError: the corrected output breaks the handoff's rules (kind ``recommit``), or
                the cast has gone on since, or was edited since.
        """
        self._refuse_while_running()
        with self._hold():
            self._begin()
            record = self.steps[-1] if self.steps else None
            if record is None or not record.turns or self.now.status == "waiting":
                raise MateriaError(
                    "There is no completed step to correct.",
                    hint="reply answers a waiting socket",
                    kind="recommit",
                )
            if self._history.edits and self._history.edits[-1].step == self.now.steps:
                raise MateriaError(
                    "The cast was edited since that step.", hint="undo the edit first", kind="recommit"
                )
            given = dict(output) if isinstance(output, Mapping) else output
            told = to_bytes(sound(given, "The corrected output").text).decode()
            step = edit.recommit(self.rules, record.before, self.now, told)
            suffix = f"{branch_suffix(record.branch)}.corrected-{len(record.turns) + 1}.md"
            name = output_name(record.socket, record.visit, record.item_key, suffix)
            self._files.write_text(name, told)
            event: dict[str, JSON] = {"step": record.number, "artifact": name, "by": "person"}
            self._commit(
                [("socket_recommitted", event), *_ending(step)],
                lambda ts: self._history.recommitted(step, told, name, ts),
            )
            self._told()
            self._write_derived()
            return record

    def back_to(self, number: int) -> None:
        """Go on from the state after an earlier step; later steps are kept as an abandoned branch.

        Files that utilities changed since are not changed back. 0 goes back to the start.
        """
        self._refuse_while_running()
        with self._hold():
            self._begin()
            earlier = self._history.start if number == 0 else self.at_step(number).after
            state = edit.back_to(earlier, self.now)
            self._grant = None
            kept = 0 if number == 0 else self.at_step(number).number
            self._commit(
                [("cast_back", {"step": kept, "by": "person"})], lambda _: self._history.back(state, kept)
            )
            self._told()
            self._write_derived()

    def fork(self, number: int | None = None) -> Self:
        """Start another cast from the state after a step, in a directory of its own; this one stays as it is."""
        with self._hold():
            self._begin()
            kept = len(self.steps) if number is None else self.at_step(number).number
            path = fork_files(self._files, kept)
        try:
            made = type(self).resume(path, self.agents, utilities=self._utilities)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # nothing of the fork has happened yet
            raise
        made.stops_as(self._stopping)
        if kept < len(made.steps):
            made.back_to(kept)
        return made

    def _refuse_while_running(self) -> None:
        if self._writer.locked():
            raise MateriaError(
                "A step is running; nothing can be changed before it ends.",
                hint="pause, then edit",
                kind="busy",
            )


def _check_redefined(materia: str, old: JSON, new: Mapping[str, JSON]) -> None:
    """Refuse a definition that is the same, or that earlier steps would have been decided otherwise by."""
    was = old if isinstance(old, dict) else {}
    changed = {
        key for key in {*was, *new} if key not in was or key not in new or not same(was[key], new[key])
    }
    if not changed:
        raise MateriaError(
            f"The cast has this very definition of {materia} already.",
            hint="recast runs it once more; a script is read from its file each time",
            kind="redefine",
        )
    if other := sorted(changed - REDEFINED):
        raise MateriaError(
            f"{materia} differs in {', '.join(other)}, which earlier steps of this cast went by.",
            hint=f"cast anew; into a running cast can be taken: {', '.join(sorted(REDEFINED))}",
            kind="redefine",
        )


def _ending(step: engine.Step) -> list[tuple[str, Mapping[str, JSON]]]:
    return [(event.type, event.data) for event in step.events if event.type == "cast_end"]


def _patch(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> list[dict[str, JSON]]:
    """The JSON Patch (RFC 6902) that makes ``after`` of ``before``."""
    import jsonpatch

    patch: list[dict[str, JSON]] = jsonpatch.make_patch(dict(before), dict(after)).patch
    return patch


def _patched(state: CastState, patch: Sequence[Mapping[str, JSON]]) -> Mapping[str, JSON]:
    import jsonpatch

    data: Mapping[str, JSON] = jsonpatch.apply_patch(dict(state.data), [dict(one) for one in patch])
    return data


def _origins(old: Sequence[JSON], new: Sequence[JSON]) -> list[int | None]:
    """Where each new item stood: equal items first, in order; then those at the same place with the same title."""
    free = dict(enumerate(old))
    found: list[int | None] = []
    for item in new:
        place = next((index for index, known in free.items() if same(known, item)), None)
        found.append(place)
        if place is not None:
            del free[place]
    for index, place in enumerate(found):
        if place is None and index in free and _alike(free[index], new[index]):
            found[index] = index
            del free[index]
    return found


def _alike(a: JSON, b: JSON) -> bool:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return False
    return same(a.get("title"), b.get("title")) or same(a.get("context"), b.get("context"))
