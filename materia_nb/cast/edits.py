"""Methods that change a cast between two steps: ``cast.edit``, ``cast.labels``, ``cast.approvals`` and ``cast.pins``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, NamedTuple

from materia_nb.agents.interface import Agent, name_of, validate_reply
from materia_nb.agents.notebook_agents import FunctionAgent, RecordedAgent, require_name
from materia_nb.cast.breakpoint import parse_amount, path_segments
from materia_nb.cast.repairs import CHANGEABLE, redefinition
from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import ApprovalRequests, Snapshot, snapshot_of
from materia_nb.cast.work import Work, clean, copy_answer, redacted
from materia_nb.display.blocks import Block, Displayable, Table
from materia_nb.engine import approvals, decide
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.edit import changed_label
from materia_nb.engine.events import Events
from materia_nb.engine.item_edits import IN_PROGRESS, list_edits_within
from materia_nb.engine.items import item_label
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import BOUNDS, WHOLE_CAST, Bound, Label, Pin, held_visit
from materia_nb.errors import MateriaError, did_you_mean, needs_one_of
from materia_nb.handoff.runtime_rules import ApprovalRequest
from materia_nb.insight.why import Suggestion, suggestion_at, with_memory_entry
from materia_nb.jsonvalue import JSON, MISSING, as_object, json_copy, nested_too_deeply, with_value_at
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import Graph
from materia_nb.platform import HeldInterrupts
from materia_nb.store.files import DiskError, to_bytes
from materia_nb.store.opening import CONFIG, with_definition
from materia_nb.store.rundir import change_context
from materia_nb.utilities.utility_step import with_absolute_paths


def budget_limit(text: str) -> tuple[Bound, float]:
    """Parse a budget limit such as ``20000`` (tokens), ``$1``, ``2.50 USD``, ``60 seconds`` or ``10 turns``.

    Returns:
        The kind of limit and its value.

    Raises:
        MateriaError: the string is not a budget limit (``bad_budget``).
    """
    amount = text.strip().lower().replace(",", "").replace("_", "")
    with_unit = f"{amount} tokens" if amount.isascii() and amount.isdigit() else amount
    number, unit = parse_amount(f"{amount[1:]} usd" if amount.startswith("$") else with_unit)
    for bound in BOUNDS if amount[:1].isdigit() or amount.startswith("$") else ():
        if unit == bound.unit.lower() and not (bound.is_integer and number % 1):
            return bound, int(number) if bound.is_integer else number
    raise MateriaError(
        f"{text[:40]!r} is not a budget.",
        hint="write 20000 for tokens, 2.50 USD for a cost, 60 seconds, 10 turns, or none",
        kind="bad_budget",
    )


class PartOfCast:
    """Base class of objects whose methods act on one cast."""

    def __init__(self, runner: Runner) -> None:
        """Create the object for the cast that ``runner`` runs."""
        self._runner = runner


class Edits(PartOfCast):
    """Methods that edit one cast. While a step is running, an edit is refused and changes nothing."""

    def __repr__(self) -> str:
        return f"<edits of {self._runner.run_dir.path.name}: {len(self._runner.session.edits)}>"

    def items(
        self,
        items: Sequence[JSON],
        origins: Sequence[int | None] | None = None,
        *,
        repeat: Iterable[int] = (),
        abandon: bool = False,
    ) -> tuple[str, ...]:
        """Replace the list of work items. Each known item keeps its progress, retries and follow-up items (R46).

        The new list is sorted for the current loop: completed items come first, followed by the current item and then
        by the open items in the given order. Each open item is entered exactly once::

            cast.edit.items([last, *others])        # run the last item first
            cast.edit.items(all_but_this, abandon=True)  # give up the current item

        Args:
            items: the new list; each item must have exactly a title and a context (R9).
            origins: the index of each item in the old list, or None for a new item. By default, an item is matched with
                an equal item, or else with an item that has the same title; all other items are new.
            repeat: the indices, in the old list, of completed or skipped items to run again before the other open
                items, with new retries and follow-up items.
            abandon: True to abandon the current item. It stays in the list as a skipped item, and the cast continues
                with the next item at the entry socket of the loop.

        Returns:
            Sentences about items that were moved or are repeated. The journal also stores these sentences.

        Raises:
            MateriaError: an item violates a rule or the indices are invalid (``items``), the current item would be
                removed (``working``), or a step is running (``busy``). Nothing is changed in these cases.
        """
        raw_items: object = items  # values from a notebook need not fit the annotation
        if not isinstance(raw_items, list | tuple):
            raise MateriaError(
                "The work items must be a list.", hint="give each item a title and a context", kind="items"
            )
        command = partial(decide.edit_items, again=tuple(repeat), abandon=abandon)
        return self._edit(command, json_copy(list(items)), origins)

    def again(self, *items: int | str) -> tuple[str, ...]:
        """Reopen completed or skipped items, so that they run again before the other open items.

        Args:
            items: the position in the list (counting from 1), the key (such as ``WI-2``) or the title of each item.

        Raises:
            MateriaError: an item does not exist or its title is not unique (``no_item``); otherwise the errors of
                :meth:`items`.
        """
        work_items = self._runner.snapshot().work_items
        return self.items(work_items, range(len(work_items)), repeat=[_item_index(work_items, item) for item in items])

    def abandon(self) -> tuple[str, ...]:
        """Abandon the current work item and continue with the next one; see :meth:`items`.

        Raises:
            MateriaError: there is no current item (``no_item``); otherwise the errors of :meth:`items`.
        """
        snapshot = self._runner.snapshot()
        if IN_PROGRESS not in snapshot.item_statuses:
            raise MateriaError(
                "There is no current work item to abandon.",
                hint="remove an open item from the list with `edit items`",
                kind="no_item",
            )
        return self.items(snapshot.work_items, range(len(snapshot.work_items)), abandon=True)

    def _edit(self, command: Callable[..., Events], *arguments: object) -> tuple[str, ...]:
        before = self._runner.session.edits
        self._runner.edit(command, *arguments)
        after = self._runner.session.edits
        return after[-1].messages if len(after) > len(before) else ()

    def set(self, path: str, value: JSON) -> tuple[str, ...]:
        """Set a single value in the state, or remove it. Changes to work items follow the rules of :meth:`items`.

        Args:
            path: the dotted path of the value, such as ``plan.approved`` or ``workItems.0.title``; missing objects are
                created.
            value: the JSON value, or MISSING to remove the value.

        Returns:
            Sentences about items that were moved or are repeated.

        Raises:
            MateriaError: the path is empty (``bad_path``) or contains an index after the end of a list (``path``);
                otherwise the errors of :meth:`items` and :meth:`state`.
        """
        segments = path_segments(path)
        before: dict[str, JSON] = dict(self._runner.session.state.data)
        if segments[0] == "workItems" and len(segments) > 1:
            before.setdefault("workItems", [])
        if value is not MISSING:
            value = json_copy(value)
        try:
            new_data = with_value_at(before, segments, value)
        except RecursionError as error:
            raise nested_too_deeply() from error
        list_edits = list_edits_within(self._runner.rules, before, segments, removed=value is MISSING)
        if segments[0] == "workItems" and "workItems" in new_data:
            old_items = list_edits.get("workItems")
            return self.items(new_data["workItems"], old_items and old_items.origins)  # checks each item (R9)
        return self._edit(decide.edit_state, new_data, list_edits)

    def state(self, data: Mapping[str, JSON]) -> tuple[str, ...]:
        """Replace the whole state.

        The lists of work items are sorted as in :meth:`items`, which also describes the returned sentences.

        Raises:
            MateriaError: the data is not JSON, the current item would be removed (``working``), or a step is running
                (``busy``).
        """
        raw_data: object = data
        if not isinstance(raw_data, Mapping):
            raise MateriaError("The state must be an object.", hint="pass a dict", kind="not_json")
        return self._edit(decide.edit_state, json_copy(dict(data)), {})

    def prompt(self, part: str, text: str) -> Prompt:
        """Replace one layer of the waiting prompt for this turn only, and return the edited prompt.

        If no prompt is waiting yet, the cast enters the next socket. A failed turn waits again, and the next step sends
        the new text. Other turns and visits keep the prompt of the materia. If the state is changed later, this turn
        gets its original prompt again.

        Args:
            part: the name of the prompt layer, such as ``request``, ``task``, ``item`` or ``return``.
            text: the new text; "" removes the layer.

        Raises:
            MateriaError: no agent waits for an answer (``not_waiting``, ``not_an_agent``), the prompt has no such layer
                (``unknown_part``), or a step is running (``busy``).
        """
        self._runner.refuse_while_running()
        with self._runner.lock(), self._runner.change():
            if self._runner.session.state.status == "ready":
                self._runner.enter()
            self._runner.run_command(decide.edit_prompt, part, clean(text))
            assert self._runner.session.prompt is not None  # noqa: S101 - its prompt was edited
            return self._runner.session.prompt

    def redefine(
        self, materia: str, definition: Mapping[str, JSON] | None = None, config_folder: Path | None = None
    ) -> None:
        """Use the changed command, script, timeout, model or tools of a materia in this cast, from the next retry on.

        Fields on which earlier steps depend must not change.

        Args:
            materia: the id of the materia.
            definition: the new definition in config format; by default the current definition in the workbench.
            config_folder: the directory of the config file, in which the scripts of the materia are looked up (R24).

        Raises:
            MateriaError: the cast has no such materia (``unknown_materia``), other fields or no fields have changed
                (``redefine``), the definition is invalid, or a step is running (``busy``). Nothing is changed in these
                cases.
        """
        if definition is None:
            definitions, config_folders = self._runner.definitions() if self._runner.definitions else ({}, {})
            needs_one_of(materia, definitions, f"The materia {materia!r} does not exist.", "unknown_materia")
            definition, config_folder = definitions[materia], config_folders.get(materia)
        self._runner.refuse_while_running()
        with self._runner.lock(), self._runner.change():
            run_dir = self._runner.run_dir
            before = json.loads(run_dir.read_text(CONFIG))
            after, rules = _redefine(before, self._runner.rules, materia, definition, config_folder)
            current, previous = (document["materia"][materia] for document in (after, before))
            with HeldInterrupts():  # an interrupt between these lines would leave rules that do not match the journal
                event = ev.MateriaRedefined(
                    materia=materia, definition=current, previous=previous, step=self._runner.session.state.steps
                )
                self._runner.run_command(decide.record, event)
                self._runner.rules = rules
                try:
                    run_dir.write_json(CONFIG, after)
                except DiskError as error:  # the journal has the new definition, so nothing is lost
                    self._runner.messages.append(" ".join(str(error).split()))

    def undo(self) -> None:
        """Undo the latest edit, if no step has been completed since the edit."""
        self._runner.edit(decide.undo)

    def output(self, output: str | Mapping[str, JSON], *, discard_edits: bool = False) -> StepRecord:
        """Replace the output of the latest step, validate it, and choose the next socket again.

        The journal keeps the original output. Your edits since the start of the step are applied again.

        Args:
            output: the corrected output; an object is converted to the handoff format of the socket, as in ``reply``.
            discard_edits: True to discard the edits that were made since the start of the step.

        Raises:
            MateriaError: the corrected output violates the handoff rules (``edit_output``), the cast has already
                continued, or an edit cannot be applied to the corrected state (``edits_lost``).
        """
        steps = self._runner.session.steps
        write = self._runner.rules.sockets[steps[-1].socket].write if steps else None
        text = clean(validate_reply(copy_answer(output), "The corrected output", write).text)
        self._runner.edit(partial(decide.edit_output, discard_edits=discard_edits), text)
        self._runner.write_now()
        return self._runner.session.steps[-1]

    def budget(
        self,
        max_tokens: int | EllipsisType | None = ...,
        *,
        max_cost_usd: float | EllipsisType | None = ...,
        max_seconds: float | EllipsisType | None = ...,
        max_turns: int | EllipsisType | None = ...,
    ) -> None:
        """Change limits of the budget of this cast (R20). None removes a limit; limits that are omitted do not change."""
        limits = zip(BOUNDS, (max_tokens, max_cost_usd, max_seconds, max_turns), strict=True)
        self._set_budget({bound.field: limit for bound, limit in limits if limit is not ...})

    def _set_budget(self, limits: Mapping[str, Any]) -> None:
        with self._runner.lock(), self._runner.change():
            self._runner.run_command(decide.set_budget, replace(self._runner.session.state.budget, **limits))

    def budget_in_words(self, text: str) -> None:
        """Change one limit of the budget.

        Args:
            text: the limit, such as ``2.50 USD`` or ``60 seconds``; ``none`` removes all limits.

        Raises:
            MateriaError: the string is not a budget limit (``bad_budget``).
        """
        if text.strip().lower() in ("", "none"):
            self._set_budget(dict.fromkeys(bound.field for bound in BOUNDS))
        else:
            bound, limit = budget_limit(text)
            self._set_budget({bound.field: limit})

    def remember(self, number: int) -> Suggestion:
        """Add a suggestion to the project's knowledge, which is part of the prompts of later casts.

        Args:
            number: the number of the suggestion in ``cast.now.suggestions``, counting from 1.

        Raises:
            MateriaError: the suggestion does not exist (``no_suggestion``), the file cannot be written, or the section
                of the file for this suggestion is not a list (``bad_context``).
        """
        with self._runner.lock(), self._runner.change():
            suggestion = suggestion_at(self._runner.snapshot().suggestions, number)
            if not suggestion.is_kept:
                # The document comes first: a suggestion saved twice is harmless, a journal entry without it is not.
                change_context(self._runner.run_dir.path.parent, lambda old: with_memory_entry(old, suggestion.entry))
                event = ev.SuggestionKept(step=suggestion.step, suggestion=suggestion.entry)
                self._runner.run_command(decide.record, event)
            return suggestion._replace(is_kept=True)


class Labels(PartOfCast, Displayable):
    """The labels of a cast and its steps. Labels do not affect how the cast runs."""

    def __repr__(self) -> str:
        return f"<labels of {self._runner.run_dir.path.name}: {len(self._runner.session.labels)}>"

    def _blocks(self) -> list[Block]:
        snapshot = self._runner.snapshot()
        labels = [("the cast", self.of())] + [(step.title, snapshot.label_of(step)) for step in snapshot.steps]
        rows = [(title, label.words) for title, label in labels if not label.empty]
        return [Table(("of", "label"), rows, "no labels")]

    def of(self, step: StepRecord | int | None = None) -> Label:
        """Return the label of a step, by default of the cast, with ``name``, ``tags``, ``note``, ``verdict`` and ``by``.

        Raises:
            MateriaError: the step does not exist (``no_step``).
        """
        return self._runner.snapshot().label_of(step)

    def add(
        self,
        step: int | None = None,
        *,
        name: str | None = None,
        tag: str | Iterable[str] = (),
        untag: str | Iterable[str] = (),
        note: str | None = None,
        verdict: str | None = None,
        by: str = "person",
    ) -> Label:
        """Change the label of the cast or of one of its steps, and return the label.

        ``wb.casts(tag=...)`` finds casts by their labels::

            cast.labels.add(name="first-good-one", tag="rain, short", verdict="good")
            cast.labels.add(3, note="It should have asked.", verdict="bad", by="Ana")

        The name of a cast can be used instead of its id. Omitted fields do not change; ``""`` removes a name, a note or
        a verdict.

        Args:
            step: the number of a step; by default the label of the cast itself is changed.
            name: the name; it need not be unique.
            tag: the tags to add; a string is split at commas and spaces.
            untag: the tags to remove.
            note: a note in free text.
            verdict: the verdict: ``good``, ``bad`` or ``unsure``.
            by: the name of the person who sets the label.

        Raises:
            MateriaError: a value is invalid (``bad_label``), the step does not exist (``no_step``), or the cast is open
                read-only (``read_only``).
        """
        with self._runner.lock(), self._runner.change():
            record = None if step is None else self._runner.snapshot().steps.at(step)
            changes = {"name": name, "note": note, "verdict": verdict}
            texts = {key: None if text is None else redacted(str(text)) for key, text in changes.items()}
            label = changed_label(self.of(record), tag=tag, untag=untag, by=by, **texts)
            key = WHOLE_CAST if record is None else (record.branch, record.number)
            self._runner.run_command(decide.label, key, label)
            return label

    def undo(self, *, by: str = "person") -> None:
        """Undo the latest change to a label; raises MateriaError (``undo``) if no label was changed."""
        self._runner.edit(decide.unlabel, by, while_running=True)


def _item_index(items: Sequence[JSON], reference: int | str) -> int:
    """Return the index of a work item that is identified by its position (counting from 1), its key or its title.

    Raises:
        MateriaError: the item does not exist or its title is not unique (``no_item``).
    """
    titles = [item_label(item, "") for item in items]
    matches = [index for index, title in enumerate(titles) if title == reference]
    number = str(reference).upper().removeprefix("WI-")
    if not matches and number.isdecimal() and 0 < int(number) <= len(items):
        return int(number) - 1
    if len(matches) != 1:
        problem = f"No work item has the number, key or title {reference!r}."
        if matches:
            problem = f"{len(matches)} work items have the title {reference!r}."
        hint = f"use its position (counting from 1), its key, such as WI-2, or its title; {did_you_mean(str(reference), titles)}"
        raise MateriaError(problem, hint=hint, kind="no_item")
    return matches[0]


def _redefine(
    document: JSON, rules: Rules, materia: str, definition: Mapping[str, JSON], config_folder: Path | None
) -> tuple[JSON, Rules]:
    """Replace the definition of a materia in the config of a cast, and return the config and its rules.

    Raises:
        MateriaError: the new definition is refused, see :meth:`Edits.redefine`.
    """
    definitions = document["materia"]
    needs_one_of(materia, definitions, f"The cast has no materia {materia!r}.", "unknown_materia")
    differences = redefinition(as_object(definitions[materia]), definition, materia, config_folder)
    if differences is None:
        raise MateriaError(
            f"The cast already has this definition of {materia}.",
            hint="use `retry` to run it again; a script is read from its file each time",
            kind="redefine",
        )
    if differences.fixed_fields:
        raise MateriaError(
            f"{materia} differs in {', '.join(differences.fixed_fields)}, which earlier steps of this cast depend on.",
            hint=f"start a new cast; a running cast accepts changes only in these fields: {', '.join(sorted(CHANGEABLE))}",
            kind="redefine",
        )
    document = with_definition(document, materia, with_absolute_paths(definition, config_folder))
    config_folders = {m.id: m.folder for s in rules.graph.sockets.values() if (m := s.materia).folder}
    return document, Rules(build_graph(document, rules.graph.name, config_folders), rules.session)


class Approvals(ApprovalRequests):
    """The requests in which agents of a cast ask for a decision, and the methods that answer them."""

    def __init__(self, runner: Runner, lane: str | None = None) -> None:
        """Create the approvals of a lane, by default of the only lane that has a request, or else of the cast."""
        asking_lanes = [] if lane is not None else runner.lanes_waiting_for_person
        name = lane if lane is not None else asking_lanes[0] if len(asking_lanes) == 1 else None
        if name is None:
            super().__init__(runner.snapshot)
            self._work: Work = runner
        else:
            super().__init__(lambda: runner.snapshot().lanes[name].now)
            self._work = runner.work_of_lane(name)
        self._runner = runner

    def in_lane(self, name: str) -> Approvals:
        """Return the approvals of one lane, as in ``cast.approvals.in_lane("ui").approve()``.

        Raises:
            MateriaError: the lane is not running (``unknown_lane``).
        """
        return Approvals(self._runner, name)

    def _ask(self, command: Callable[..., Events], *arguments: object) -> StepRecord:
        return self._runner.run_command_and_ask(self._work, command, *arguments)

    def allow(self, *tools: str) -> None:
        """Allow tools to run without approval in this cast.

        Args:
            tools: the names of tools, such as ``bash``, ``edit``, ``write`` or ``server.tool``.

        Raises:
            MateriaError: a name does not belong to a tool that needs approval (``unknown_tool``).
        """
        with self._runner.lock(), self._runner.change():
            self._runner.run_command(approvals.allow, self.allowed | approvals.known_tools(self._runner.rules, tools))

    def disallow(self, *tools: str) -> None:
        """Require approval again for the named tools, by default for all tools."""
        with self._runner.lock(), self._runner.change():
            removed = approvals.known_tools(self._runner.rules, tools) if tools else self.allowed
            self._runner.run_command(approvals.allow, self.allowed - removed)

    def answer(self, text: str) -> StepRecord:
        """Answer the agent that put the cast on hold. The agent then continues in the same conversation.

        Raises:
            MateriaError: the cast is not on hold (``not_held``), or the answer is blank.
        """
        self._needs_lane()
        return self._ask(approvals.answer_hold, clean(text))

    def approve(
        self, *, always: bool = False, calls: Sequence[ToolCall] | None = None, lane: str | None = None
    ) -> StepRecord:
        """Approve the requested tool calls or the requested command, and let the agent continue.

        The approval of a command is valid for a single use, and expires.

        Args:
            always: True to also approve all later calls of the same tools in this cast.
            calls: the tool calls that you have reviewed; if other calls are waiting by now, nothing is approved.
            lane: the name of the lane with the request, which is required if there are several.

        Raises:
            MateriaError: nothing is waiting for approval, or the waiting calls differ from ``calls`` (``not_asked``),
                the request has expired (``approval``), or several lanes have a request (``which_lane``).
        """
        if lane is not None:
            return self.in_lane(lane).approve(always=always, calls=calls)
        self._needs_lane()
        if self.asking or always or calls is not None:
            return self._ask(approvals.decide_calls, "always" if always else "once", "", calls)
        return self._ask(approvals.approve, self._require_request())

    def deny(self, reason: str = "", *, calls: Sequence[ToolCall] | None = None, lane: str | None = None) -> StepRecord:
        """Deny the requested tool calls or the requested command, and let the agent continue.

        Args:
            reason: the reason, which the agent receives.
            calls: the tool calls that you have reviewed; if other calls are waiting by now, nothing is denied.
            lane: the name of the lane with the request, which is required if there are several.
        """
        if lane is not None:
            return self.in_lane(lane).deny(reason, calls=calls)
        self._needs_lane()
        if self.asking or calls is not None:
            return self._ask(approvals.decide_calls, "denied", clean(reason), calls)
        return self._ask(approvals.deny, self._require_request(), clean(reason))

    def _needs_lane(self) -> None:
        if self._work is self._runner and self._runner.lanes_waiting_for_person:
            self._runner.work_of_lane(None)  # raises an error if several lanes ask

    def _require_request(self) -> ApprovalRequest:
        if (request := self.request) is not None:
            return request
        message = f"Nothing is waiting for approval; the cast {self.cast.engine.status_phrase}."
        hint = "use `allow` to let a tool run without approval"
        if (hold := self.cast.held) is not None:
            message = f"The agent asks for {hold.needs or 'a decision'}, not for approval of a command."
            hint = "use `reply` to answer, or use `accept` to accept its output"
        raise MateriaError(message, hint=hint, kind="not_asked")

    def decide(self, *, satisfied: bool | None = None, target: str | None = None) -> StepRecord:
        """Accept the output that put the cast on hold, and continue the cast.

        Args:
            satisfied: the verdict; by default the verdict in the output.
            target: the id of the socket at which to continue, or ``end``; by default the socket's edges determine it.

        Raises:
            MateriaError: the cast is not on hold (``not_held``), or the socket does not exist.
        """
        self._needs_lane()
        with self._runner.lock(), self._runner.change():
            self._runner.stop.clear()
            before, visit = self._work.session.state, held_visit(self._work.session.state)
            self._work.run_command(approvals.decide_hold, satisfied, target)
            self._work.write_side_files(visit, before)
            self._runner.write_derived()
            return self._work.session.steps[-1]


_FORMS: Final = "a string, a dict (sent as JSON), a function, or an earlier cast; omit it to pin the latest output"


class PinnedAnswer(NamedTuple):
    """A pinned answer, together with the function that computes it, if there is one."""

    pin: Pin
    function: Agent | None = None


def resolve_pin(cast: Snapshot | None, name: str, to: object = None, visit: int | None = None) -> PinnedAnswer:
    """Return the pin for a value, or for the latest output in the cast if there is no value.

    Args:
        cast: the current cast, or None.
        name: the id of the socket or materia to pin.
        to: the answer to pin: a string, a mapping, a function, a recording or an earlier cast; None for the latest
            output.
        visit: the number of the visit whose output is pinned; by default the latest visit.

    Raises:
        MateriaError: the value cannot be pinned (``bad_pin``), or there is no output to pin (``no_output``).
    """
    if (other := snapshot_of(to)) is not None:
        return PinnedAnswer(_pin_from_cast(other, name, visit, f"the cast {other.id}"))
    if isinstance(to, RecordedAgent):
        return PinnedAnswer(_recorded_pin(to, name, cast))
    if to is None and cast is not None:
        return PinnedAnswer(_pin_from_cast(cast, name, visit))
    if visit is None and isinstance(to, str | Mapping):
        value = dict(to) if isinstance(to, Mapping) else to
        return PinnedAnswer(Pin("text", "a text", to_bytes(validate_reply(value, "The pin").text).decode()))
    if visit is None and callable(to) and not isinstance(to, type):
        function = FunctionAgent(to)
        return PinnedAnswer(Pin("function", f"the function {function.name}"), function)
    subject = "nothing" if to is None else f"a value of type {type(to).__name__}"
    visits = "" if visit is None else "; only the outputs of a cast have visits"
    message = f"{name} cannot be pinned to {subject}{visits}."
    raise MateriaError(message, where=name, hint=f"use {_FORMS}", kind="bad_pin")


def _pin_from_cast(cast: Snapshot, name: str, visit: int | None, origin: str = "") -> Pin:
    """Return a pin with the outputs of a socket or materia in a cast.

    With ``visit``, the pin contains only the output of that visit. Otherwise, the pin contains the outputs of all
    visits if ``origin`` describes another cast, or else the latest output in the current cast.
    """
    steps: list[StepRecord] = []
    for line in (cast.steps, *reversed(cast.abandoned)):  # outputs on abandoned branches count too
        steps = steps or [
            step
            for step in line
            if _has_name(cast.graph, step.socket, name) and _was_accepted(step) and visit in (None, step.visit)
        ]
    if not steps:
        subject = f"{name}{'' if visit is None else f', visit {visit},'} has no output"
        raise MateriaError(
            f"{subject} in {origin or 'this cast'} that could be pinned.",
            where=name,
            hint=f"use `step` first, or pin {_FORMS}",
            kind="no_output",
        )
    if origin and visit is None:
        return Pin("visits", origin, visits=_by_visit((step.socket, step.visit, step.output or "") for step in steps))
    last = steps[-1]
    label = f"step {last.number} of {origin}" if origin else f"its output in step {last.number}"
    return Pin("text", label, last.output or "")


def _by_visit(outputs: Iterable[tuple[str, int, str]]) -> dict[str, dict[str, str]]:
    """Group outputs by socket and then by visit number."""
    by_socket: dict[str, dict[str, str]] = {}
    for socket, visit, text in outputs:
        by_socket.setdefault(socket, {})[str(visit)] = text
    return by_socket


def _recorded_pin(agent: RecordedAgent, name: str, cast: Snapshot | None) -> Pin:
    texts = ((*key, text) for key, text in agent.outputs.items() if cast is None or _has_name(cast.graph, key[0], name))
    outputs = _by_visit(texts)
    if not outputs:
        raise MateriaError(
            f"{name} has no output in {name_of(agent)}.",
            where=name,
            hint="name a cast (recorded:ID) to pin a utility; a recording contains only the outputs of agents",
            kind="no_output",
        )
    return Pin("visits", f"the recording {name_of(agent)}", visits=outputs)


def _has_name(graph: Graph, socket: str, name: str) -> bool:
    """Return True if ``name`` is the id of a socket or of the materia at that socket."""
    graph_socket = graph.sockets.get(socket)
    return name == socket or (graph_socket is not None and graph_socket.materia.id == name)


def _was_accepted(step: StepRecord) -> bool:
    return step.output is not None and step.decision is not None and not step.decision.issues


def require_pinned(name: str, pinned: Iterable[str]) -> None:
    """Raise MateriaError (``not_pinned``) if the socket or materia ``name`` is not pinned."""
    if name not in (names := list(pinned)):
        raise MateriaError(
            f"{name} is not pinned.",
            hint=did_you_mean(name, names) if names else "nothing is pinned",
            kind="not_pinned",
        )


class Pins(PartOfCast, Mapping[str, Pin]):
    """The pinned answers of a cast: a mapping from sockets and materia to pins, with methods to change it."""

    def __getitem__(self, name: str) -> Pin:
        return self._runner.session.pins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runner.session.pins)

    def __len__(self) -> int:
        return len(self._runner.session.pins)

    def __repr__(self) -> str:
        return repr(dict(self))

    def add(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Pin a socket, or all sockets of a materia, to an answer, from the next step on.

        If a utility is pinned, no process is started, and a pinned string is read as its stdout. Pins are kept when a
        cast is resumed or forked, but a pinned function is lost when its kernel ends, and the cast then stops before
        the socket::

            cast.pins.add("Detect-VCS", {"state": {"vcs": "git"}})
            cast.pins.add("Socket-3")  # pin its latest output

        Args:
            name: the id of a socket or materia; the pin of a socket overrides the pin of its materia.
            to: the answer: a string, a dict (sent as JSON), a function that receives the turn, or an earlier cast,
                whose outputs are used visit by visit; by default the latest output of the socket.
            visit: the number of the visit whose output to use, in this cast or in the cast ``to``.

        Returns:
            The pin that was added.

        Raises:
            MateriaError: the socket or materia does not exist (``unknown_materia``), it has no such output
                (``no_output``), or ``to`` is not a valid answer (``bad_pin``).
        """
        answer = resolve_pin(self._runner.snapshot(), name, to, visit)
        self.put(name, answer)
        return answer.pin

    def put(self, name: str, chosen: PinnedAnswer) -> None:
        """Add the pin that ``resolve_pin`` returned for a socket or materia."""
        runner = self._runner
        require_name(runner.rules.graph, name)
        with runner.lock(), runner.change():
            runner.functions.pop(name, None)
            if chosen.function is not None:
                runner.functions[name] = chosen.function
            runner.run_command(decide.record, ev.Pinned(name=name, **chosen.pin.as_json()))

    def remove(self, name: str) -> None:
        """Remove the pin of a socket or materia.

        Raises:
            MateriaError: the socket or materia is not pinned (``not_pinned``).
        """
        require_pinned(name, self)
        runner = self._runner
        with runner.lock(), runner.change():
            runner.run_command(decide.record, ev.Unpinned(name=name))
            runner.functions.pop(name, None)
