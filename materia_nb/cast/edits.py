"""What a person changes, says, allows and pins between two steps, each one event: ``cast.edit``, ``cast.labels``, ``cast.approvals``, ``cast.pins``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, NamedTuple

from materia_nb.agents.function_agent import FunctionAgent
from materia_nb.agents.interface import Agent, name_of, validate_reply
from materia_nb.agents.notebook_agents import RecordedAgent, needs_name
from materia_nb.cast.breakpoint import amount_of, path_segments
from materia_nb.cast.repairs import REDEFINED, redefinition
from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import ApprovalsNow, Snapshot, snapshot_of
from materia_nb.cast.work import Work, clean, given, redacted
from materia_nb.display.blocks import Block, Shown, Table
from materia_nb.engine import approvals, decide
from materia_nb.engine.conversation import WHOLE_CAST, Label, ToolCall, relabelled
from materia_nb.engine.events import Events
from materia_nb.engine.item_edits import WORKED_ON, within_lists
from materia_nb.engine.items import item_label
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import BOUNDS, Bound, Pin
from materia_nb.errors import MateriaError, did_you_mean, needs_one_of
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.insight.why import Suggestion, suggestion_at, with_memory_entry
from materia_nb.jsonvalue import JSON, MISSING, json_copy, nested_too_deeply, replaced
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import Graph
from materia_nb.platform import HeldInterrupts
from materia_nb.store.files import DiskError, to_bytes
from materia_nb.store.opening import CONFIG, with_definition
from materia_nb.store.rundir import change_context
from materia_nb.utilities.utility_step import with_absolute_paths


def most_of(words: str) -> tuple[Bound, float]:
    """Read a maximum as a person writes it: ``20000`` tokens, a cost, ``2.50 USD``, ``60 seconds``, ``10 turns``.

    Raises:
        MateriaError: it is none of these (``bad_budget``).
    """
    amount = words.strip().lower().replace(",", "").replace("_", "")
    with_unit = f"{amount} tokens" if amount.isascii() and amount.isdigit() else amount
    number, unit = amount_of(f"{amount[1:]} usd" if amount.startswith("$") else with_unit)
    for bound in BOUNDS if amount[:1].isdigit() or amount.startswith("$") else ():
        if unit == bound.unit.lower() and not (bound.whole and number % 1):
            return bound, int(number) if bound.whole else number
    raise MateriaError(
        f"{words[:40]!r} is not a budget.",
        hint="write 20000 for tokens, 2.50 USD for a cost, 60 seconds, 10 turns, or none",
        kind="bad_budget",
    )


class Edits:
    """The edits of one cast; each is refused while a step runs, and changes nothing then."""

    def __init__(self, runner: Runner) -> None:
        """Edit the cast that ``runner`` runs."""
        self._runner = runner

    def __repr__(self) -> str:
        return f"<edits of {self._runner.files.path.name}: {len(self._runner.session.edits)}>"

    def items(
        self,
        items: Sequence[JSON],
        origins: Sequence[int | None] | None = None,
        *,
        again: Iterable[int] = (),
        abandon: bool = False,
    ) -> tuple[str, ...]:
        """Replace the work items; each keeps what was done to it (R46).

        The list is laid out for the loop that the cast is in: items that are done come first, in their order, then
        the one being worked on, then the open ones in the order given. So an item put before the next one is the next
        one, and each open item that is left is entered exactly once. Retry counts and follow-up go with their items::

            cast.edit.items([last, *others])        # the last one first
            cast.edit.items(all_but_this, abandon=True)  # give up what is being worked on

        Returns what a person should know of it, in sentences: what was moved, what is worked on again. They are in the
        journal too (``cast.now.edits[-1].said``).

        Args:
            items: the new list; each item has exactly a title and a context (R9).
            origins: for each item its index in the old list, None for a new one. Left out, it is an item that is equal,
                else one with an equal title, else it is new.
            again: indices in the old list of items that are done or skipped and are to be worked on again: the
                first of the open ones, with retries and follow-up afresh.
            abandon: whether to give up the item being worked on. In the list it stays as skipped. The cast goes on
                with the next item at the socket by which the loop is entered.

        Raises:
            MateriaError: an item breaks a rule, or the places do not fit (kind ``items``); an item that is being worked
                on would be taken away (``working``); a step is running (``busy``). Nothing was changed then.
        """
        typed: object = items  # what a person typed need not be what the annotation says
        if not isinstance(typed, list | tuple):
            raise MateriaError("The work items must be a list.", hint="each has title and context", kind="items")
        command = partial(decide.edit_items, again=tuple(again), abandon=abandon)
        return self._said(command, json_copy(list(items)), origins)

    def again(self, *items: int | str) -> tuple[str, ...]:
        """Have items that are done, or were skipped, worked on again: the first of the open ones, from the start.

        Args:
            items: the number in the list, from 1, the key (``WI-2``) or the title of each.

        Raises:
            MateriaError: there is no such item, or several are called so (``no_item``), or as :meth:`items`.
        """
        listed = self._runner.snapshot().work_items
        return self.items(listed, range(len(listed)), again=[_place(listed, item) for item in items])

    def abandon(self) -> tuple[str, ...]:
        """Give up the item being worked on and go on with the next; it stays in the list as skipped, see :meth:`items`.

        Raises:
            MateriaError: no item is being worked on (``no_item``), or as :meth:`items`.
        """
        now = self._runner.snapshot()
        if WORKED_ON not in now.standings:
            raise MateriaError(
                "No work item is being worked on, so none can be abandoned.",
                hint="an open item can be taken out of the list",
                kind="no_item",
            )
        return self.items(now.work_items, range(len(now.work_items)), abandon=True)

    def _said(self, command: Callable[..., Events], *arguments: object) -> tuple[str, ...]:
        before = self._runner.session.edits
        self._runner.edit(command, *arguments)
        after = self._runner.session.edits
        return after[-1].said if len(after) > len(before) else ()

    def set(self, path: str, value: JSON) -> tuple[str, ...]:
        """Set one value in the state, or take it away (MISSING); lists that are gone over are edited as in :meth:`items`.

        Args:
            path: dotted, such as ``plan.approved`` or ``workItems.0.title``; objects on the way are made.
            value: what to set.

        Raises:
            MateriaError: the path is empty (``bad_path``) or leads past the end of a list (``path``),
                or as :meth:`items` and :meth:`state`.
        """
        segments = path_segments(path)
        before: dict[str, JSON] = dict(self._runner.session.state.data)
        if segments[0] == "workItems" and len(segments) > 1:
            before.setdefault("workItems", [])
        if value is not MISSING:
            value = json_copy(value)
        try:
            changed = replaced(before, segments, value)
        except RecursionError as error:
            raise nested_too_deeply() from error
        list_edits = within_lists(self._runner.rules, before, segments, removed=value is MISSING)
        if segments[0] == "workItems" and "workItems" in changed:
            known = list_edits.get("workItems")
            return self.items(changed["workItems"], known and known.origins)  # each is checked (R9)
        return self._said(decide.edit_state, changed, list_edits)

    def state(self, data: Mapping[str, JSON]) -> tuple[str, ...]:
        """Replace the state's data; lists that are gone over are laid out as in :meth:`items`, which says what it returns.

        Raises:
            MateriaError: the data is not JSON, an item that is being worked on would be taken away (``working``), or a
                step is running (``busy``).
        """
        typed: object = data  # what a person typed need not be what the annotation says
        if not isinstance(typed, Mapping):
            raise MateriaError("The state is an object.", hint="give a dict", kind="not_json")
        return self._said(decide.edit_state, json_copy(dict(data)), {})

    def prompt(self, part: str, text: str) -> Prompt:
        """Change one part of the prompt that waits, for this turn only; a socket that is next is entered first.

        A turn that failed waits again then: the next step asks it with the new words.

        The prompts of other turns and visits stay as the materia has them. A later change of the state
        asks with the materia's own wording again. Returns the prompt as it is then.

        Args:
            part: its name, such as ``request``, ``task``, ``item`` or ``return``.
            text: the new text; empty leaves the part out.

        Raises:
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``), the prompt has no such
                part (``unknown_part``), or a step is running (``busy``).
        """
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._runner.begin()
            if self._runner.session.state.status == "ready":
                self._runner.enter()
            self._runner.run_command(decide.edit_prompt, part, clean(text))
            assert self._runner.session.prompt is not None  # noqa: S101 - it was edited
            return self._runner.session.prompt

    def redefine(self, materia: str, definition: Mapping[str, JSON] | None = None, owner: Path | None = None) -> None:
        """Apply a materia's changed command, script, timeout, model or tools to the running cast; retry then uses it.

        A cast keeps a copy of its loadout otherwise. From then on its socket runs, or asks, what the new one says. What
        earlier steps were decided by cannot change under them: only some fields may differ, such as its command.

        Args:
            materia: its name.
            definition: as in a config; what the workbench has now, in files and cells, if left out.
            owner: the directory of its config file, where its scripts are looked for (R24).

        Raises:
            MateriaError: the cast has no such materia (``unknown_materia``), other fields changed or none
                (``redefine``), it is invalid, or a step is running (``busy``). Nothing was changed then.
        """
        if definition is None:
            known, owners = self._runner.definitions() if self._runner.definitions else ({}, {})
            needs_one_of(materia, known, f"There is no materia {materia!r}.", "unknown_materia")
            definition, owner = known[materia], owners.get(materia)
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._runner.begin()
            files = self._runner.files
            before = json.loads(files.text_of(CONFIG))
            after, rules = _redefined(before, self._runner.rules, materia, definition, owner)
            current, previous = (document["materia"][materia] for document in (after, before))
            with HeldInterrupts():  # between any two of these the rules and the journal would not agree
                self._runner.run_command(decide.redefine, materia, current, previous)
                self._runner.rules = rules
                try:
                    files.write_json(CONFIG, after)
                except DiskError as error:  # the journal has it, so nothing is lost
                    self._runner.messages.append(" ".join(str(error).split()))

    def undo(self) -> None:
        """Undo the last edit, as long as no step was made since."""
        self._runner.edit(decide.undo)

    def output(self, output: str | Mapping[str, JSON], *, discard_edits: bool = False) -> StepRecord:
        """Correct the output of the last step; it is checked and decided again, and the original is kept.

        Your edits since that step began are applied again.

        Args:
            output: the corrected output; an object is written as the socket hands over, as in ``reply``.
            discard_edits: whether to continue without the edits made since that step began.

        Raises:
            MateriaError: the corrected output breaks the handoff's rules (kind ``recommit``), the cast has gone on since,
                or an edit does not fit the corrected state (``edits_lost``).
        """
        steps = self._runner.session.steps
        write = self._runner.rules.sockets[steps[-1].socket].write if steps else None
        text = clean(validate_reply(given(output), "The corrected output", write).text)
        self._runner.edit(partial(decide.recommit, discard_edits=discard_edits), text)
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
        """Change the budget of this cast only; None takes a maximum away, one that is not given stays (R20)."""
        limits: dict[str, Any] = {
            "max_tokens": max_tokens,
            "max_cost_usd": max_cost_usd,
            "max_seconds": max_seconds,
            "max_turns": max_turns,
        }
        self._set_budget(**{field: limit for field, limit in limits.items() if limit is not ...})

    def _set_budget(self, **limits: Any) -> None:
        with self._runner.lock():
            self._runner.begin()
            self._runner.run_command(decide.set_budget, replace(self._runner.session.state.budget, **limits))

    def budget_in_words(self, words: str) -> None:
        """Change the budget as a person writes it: ``20000`` tokens, ``2.50 USD``, ``60 seconds``, ``10 turns``, or ``none`` at all.

        Raises:
            MateriaError: it is none of these (``bad_budget``).
        """
        if words.strip().lower() in ("", "none"):
            self._set_budget(**{one.field: None for one in BOUNDS})
        else:
            bound, limit = most_of(words)
            self._set_budget(**{bound.field: limit})

    def remember(self, number: int) -> Suggestion:
        """Keep a suggestion in what is known about the project; later casts are told of it.

        Raises:
            MateriaError: there is no such suggestion (``no_suggestion``), it cannot be written, or the
                section of the document that it goes to is not a list (``bad_context``).
        """
        with self._runner.lock():
            self._runner.begin()
            chosen = suggestion_at(self._runner.snapshot().suggestions, number)
            if not chosen.kept:
                # The document first: keeping the same thing twice does nothing, while a journal that says it
                # is kept when it is not would lose it.
                change_context(self._runner.files.path.parent, lambda stored: with_memory_entry(stored, chosen.entry))
                self._runner.run_command(decide.remember, chosen.step, chosen.entry)
            return chosen._replace(kept=True)


class Labels(Shown):
    """What people say of one cast and of its steps; it changes nothing of what the cast does."""

    def __init__(self, runner: Runner) -> None:
        """Label the cast that ``runner`` runs."""
        self._runner = runner

    def __repr__(self) -> str:
        return f"<labels of {self._runner.files.path.name}: {len(self._runner.session.labels)}>"

    def _blocks(self) -> list[Block]:
        snapshot = self._runner.snapshot()
        labels = [("the cast", self.of())] + [(step.title, snapshot.label_of(step)) for step in snapshot.steps]
        rows = [(title, label.words) for title, label in labels if not label.empty]
        return [Table(("of", "what people say"), rows, "no labels")]

    def of(self, step: StepRecord | int | None = None) -> Label:
        """Return what is said of a step, or of the cast itself: ``name``, ``tags``, ``note``, ``verdict``, ``by``.

        Raises:
            MateriaError: there is no such step (``no_step``).
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
        """Say something of the cast, or of one of its steps.

        ``wb.casts(tag=...)`` finds casts by it::

            cast.labels.add(name="first-good-one", tag="rain, short", verdict="good")
            cast.labels.add(3, note="It should have asked.", verdict="bad", by="Ana")

        A cast's name can stand wherever its id can. What is left out stays as
        it is; ``""`` takes a name, a note or a verdict away.

        Args:
            step: the number of a step; the cast itself if left out.
            name: its name; several may be called the same.
            tag: tags to add; a text is split at commas and spaces.
            untag: tags to remove.
            note: any text.
            verdict: ``good``, ``bad`` or ``unsure``.
            by: who says it.

        Raises:
            MateriaError: one of them cannot be that (``bad_label``), there is no such step (``no_step``), or the cast
                was opened to be looked at (``read_only``).
        """
        with self._runner.lock():
            self._runner.begin()
            record = None if step is None else self._runner.snapshot().steps.at(step)
            changes = {"name": name, "note": note, "verdict": verdict}
            texts = {key: None if text is None else redacted(str(text)) for key, text in changes.items()}
            label = relabelled(self.of(record), tag=tag, untag=untag, by=by, **texts)
            key = WHOLE_CAST if record is None else (record.branch, record.number)
            self._runner.run_command(decide.label, key, label)
            return label

    def undo(self, *, by: str = "person") -> None:
        """Take the last change of what is said of the cast and its steps back; raises MateriaError (``undo``) without one."""
        self._runner.edit(decide.unlabel, by, while_running=True)


def _place(items: Sequence[JSON], reference: int | str) -> int:
    """Return the index of the item that a number, a key or a title means."""
    titles = [item_label(item, "") for item in items]
    matches = [index for index, title in enumerate(titles) if title == reference]
    number = str(reference).upper().removeprefix("WI-")
    if not matches and number.isdecimal() and 0 < int(number) <= len(items):
        return int(number) - 1
    if len(matches) != 1:
        raise MateriaError(
            f"{len(matches) or 'No'} work item{'s' * (len(matches) > 1)} {'are' if len(matches) > 1 else 'is'} called {reference!r}.",
            hint=f"the number from 1, the key such as WI-2, or the title of one; {did_you_mean(str(reference), titles)}",
            kind="no_item",
        )
    return matches[0]


def _redefined(
    document: JSON, rules: Rules, materia: str, definition: Mapping[str, JSON], owner: Path | None
) -> tuple[JSON, Rules]:
    """Return the config of a cast with another definition of a materia, and what it runs by then.

    Raises:
        MateriaError: as :meth:`Edits.redefine` says.
    """
    known = document["materia"]
    needs_one_of(materia, known, f"The cast has no materia {materia!r}.", "unknown_materia")
    _check(materia, known[materia], definition, owner)
    document = with_definition(document, materia, with_absolute_paths(definition, owner))
    owners = {m.id: m.owner for s in rules.graph.sockets.values() if (m := s.materia).owner}
    return document, Rules(build_graph(document, rules.graph.name, owners), rules.session)


def _check(materia: str, old: JSON, new: Mapping[str, JSON], owner: Path | None) -> None:
    """Refuse a definition that is the same, or that earlier steps would have been decided otherwise by."""
    differences = redefinition(old if isinstance(old, dict) else {}, new, materia, owner)
    if differences is None:
        raise MateriaError(
            f"The cast has this very definition of {materia} already.",
            hint="retry runs it again; a script is read from its file each time",
            kind="redefine",
        )
    if differences.kept:
        raise MateriaError(
            f"{materia} differs in {', '.join(differences.kept)}, which earlier steps of this cast went by.",
            hint=f"start a new cast; a running cast accepts only changes of: {', '.join(sorted(REDEFINED))}",
            kind="redefine",
        )


class Approvals(ApprovalsNow):
    """What waits for a person in one cast, and the commands that answer it."""

    def __init__(self, runner: Runner, lane: str | None = None) -> None:
        """Answer for the cast that ``runner`` runs, or for a lane of it: without its name the one that asks, if one alone does."""
        asks = [] if lane is not None else runner.lanes_that_ask
        name = lane if lane is not None else asks[0] if len(asks) == 1 else None
        if name is None:
            super().__init__(runner.snapshot)
            self._work: Work = runner
        else:
            super().__init__(lambda: runner.snapshot().lanes[name].now)
            self._work = runner.lane_meant(name)
        self._runner = runner

    def in_lane(self, name: str) -> Approvals:
        """Return the same for a lane: ``cast.approvals.in_lane("ui").approve()``.

        Raises:
            MateriaError: no such lane is at work (``unknown_lane``).
        """
        return Approvals(self._runner, name)

    def _ask(self, command: Callable[..., Events], *arguments: object) -> StepRecord:
        self._runner.and_ask(self._work, command, *arguments)
        return self._work.session.steps[-1]

    def allow(self, *tools: str) -> None:
        """Let these tools (``bash``, ``edit``, ``write``, ``server.tool``) run without asking, in this cast only.

        Raises:
            MateriaError: a name is not that of a tool which asks (``unknown_tool``).
        """
        with self._runner.lock():
            self._runner.begin()
            self._runner.run_command(approvals.allow, self.allowed | approvals.known_tools(self._runner.rules, tools))

    def disallow(self, *tools: str) -> None:
        """Let these tools ask again; all of them if none is named."""
        with self._runner.lock():
            self._runner.begin()
            removed = approvals.known_tools(self._runner.rules, tools) if tools else self.allowed
            self._runner.run_command(approvals.allow, self.allowed - removed)

    def answer(self, text: str) -> StepRecord:
        """Answer the agent that holds the cast; it goes on in the same conversation.

        Raises:
            MateriaError: the cast is not held (``not_held``), or the answer is blank.
        """
        self._needs_lane()
        return self._ask(approvals.answer_hold, clean(text))

    def approve(
        self, *, always: bool = False, calls: Sequence[ToolCall] | None = None, lane: str | None = None
    ) -> StepRecord:
        """Approve what an agent asks a person for, and let it go on: tool calls, or one exact command.

        Consent to a command is for one use and expires.

        Args:
            always: whether later calls of the same tools need no approval in this cast.
            calls: the tool calls that were looked at; if others wait by now, they are not approved.
            lane: the asking lane, if there are several.

        Raises:
            MateriaError: nothing waits for approval, or other calls than ``calls`` (``not_asked``),
                or the request has expired (``approval``). Several lanes ask (``which_lane``).
        """
        if lane is not None:
            return self.in_lane(lane).approve(always=always, calls=calls)
        self._needs_lane()
        if self.asking or always or calls is not None:
            return self._ask(approvals.decide_calls, "always" if always else "once", "", calls)
        return self._ask(approvals.approve, self._asked())

    def deny(self, reason: str = "", *, calls: Sequence[ToolCall] | None = None, lane: str | None = None) -> StepRecord:
        """Refuse the tool calls, or the command, that the agent asks approval for; it continues without.

        Args:
            reason: why, for the agent.
            calls: as for :meth:`approve`.
            lane: the asking lane, if there are several.
        """
        if lane is not None:
            return self.in_lane(lane).deny(reason, calls=calls)
        self._needs_lane()
        if self.asking or calls is not None:
            return self._ask(approvals.decide_calls, "denied", clean(reason), calls)
        return self._ask(approvals.deny, self._asked(), clean(reason))

    def _needs_lane(self) -> None:
        if self._work is self._runner and self._runner.lanes_that_ask:
            self._runner.lane_meant(None)  # which says that several ask

    def _asked(self) -> Approval:
        if self.cast.held is None:
            raise MateriaError(
                f"Nothing waits for approval; the cast {self.cast.engine.stands}.",
                hint="allow lets a tool run without asking",
                kind="not_asked",
            )
        approval = self.request
        if approval is None:
            needs = self.cast.held.needs or "a decision"
            raise MateriaError(
                f"The agent does not ask for consent to a command but for {needs}.",
                hint="reply, or accept its output",
                kind="not_asked",
            )
        return approval

    def decide(self, *, satisfied: bool | None = None, target: str | None = None) -> StepRecord:
        """Decide in the place of the agent that holds the cast: its output is taken and the cast goes on.

        Args:
            satisfied: what counts as the output's word; as the output says itself if left out.
            target: the socket to go on to (``end`` for the end), whatever the edges say.

        Raises:
            MateriaError: the cast is not held (``not_held``), or there is no such socket.
        """
        self._needs_lane()
        with self._runner.lock():
            self._runner.begin()
            self._runner.stop.clear()
            before, visit = self._work.session.state, decide.held(self._work.session)
            self._work.run_command(approvals.decide_hold, satisfied, target)
            self._work.write_side_files(visit, before)
            self._runner.write_derived()
            return self._work.session.steps[-1]


_FORMS: Final = "a text, a dict (sent as JSON), a function, or an earlier cast; nothing for its own latest output"


class Chosen(NamedTuple):
    """A pin, and the function behind it if it is pinned to one."""

    pin: Pin
    function: Agent | None = None


def choose(cast: Snapshot | None, name: str, to: object = None, visit: int | None = None) -> Chosen:
    """Make a pin of what a person gave; ``cast`` is where it is looked for when they gave nothing."""
    if (other := snapshot_of(to)) is not None:
        return Chosen(_said_in(other, name, visit, f"the cast {other.id}"))
    if isinstance(to, RecordedAgent):
        return Chosen(_recorded(to, name, cast))
    if to is None and cast is not None:
        return Chosen(_said_in(cast, name, visit))
    if visit is None and isinstance(to, str | Mapping):
        value = dict(to) if isinstance(to, Mapping) else to
        return Chosen(Pin("text", "a text", to_bytes(validate_reply(value, "The pin").text).decode()))
    if visit is None and callable(to) and not isinstance(to, type):
        function = FunctionAgent(to)
        return Chosen(Pin("function", f"the function {function.name}"), function)
    subject = "Nothing" if to is None else f"A value of type {type(to).__name__}"
    if visit is not None:
        subject = f"{subject} that has visits"
    raise MateriaError(f"{subject} was given to pin {name} to.", where=name, hint=f"give {_FORMS}", kind="bad_pin")


def _said_in(cast: Snapshot, name: str, visit: int | None, whose: str = "") -> Pin:
    """Make a pin of what a socket or materia said in a cast: of one visit, else its latest, or all of another cast."""
    steps: list[StepRecord] = []
    for line in (cast.steps, *reversed(cast.abandoned)):  # what was left behind was said all the same
        steps = steps or [
            step
            for step in line
            if _is(cast.graph, step.socket, name) and _counts(step) and visit in (None, step.visit)
        ]
    if not steps:
        subject = f"{name}{'' if visit is None else f', visit {visit},'} has no output"
        raise MateriaError(
            f"{subject} in {whose or 'this cast'} that could be pinned.",
            where=name,
            hint=f"step first, or pin {_FORMS}",
            kind="no_output",
        )
    if whose and visit is None:
        outputs: dict[str, dict[str, str]] = {}
        for step in steps:
            outputs.setdefault(step.socket, {})[str(step.visit)] = step.output or ""
        return Pin("visits", whose, visits=outputs)
    last = steps[-1]
    return Pin(
        "text",
        f"step {last.number} of {whose}" if whose else f"its output of step {last.number}",
        last.output or "",
    )


def _recorded(agent: RecordedAgent, name: str, cast: Snapshot | None) -> Pin:
    outputs: dict[str, dict[str, str]] = {}
    for (socket, visit), text in agent.outputs.items():
        if cast is None or _is(cast.graph, socket, name):
            outputs.setdefault(socket, {})[str(visit)] = text
    if not outputs:
        raise MateriaError(
            f"{name} has no output in {name_of(agent)}.",
            where=name,
            hint="a recording holds what agents said; a cast (recorded:ID) has the outputs of utilities too",
            kind="no_output",
        )
    return Pin("visits", f"the recording {name_of(agent)}", visits=outputs)


def _is(graph: Graph, socket: str, name: str) -> bool:
    """Whether ``name`` is a socket or the materia placed there."""
    placed = graph.sockets.get(socket)
    return name == socket or (placed is not None and placed.materia.id == name)


def _counts(step: StepRecord) -> bool:
    """Whether a step has an output that was taken."""
    return step.output is not None and step.decision is not None and not step.decision.issues


def needs_pinned(name: str, pinned: Iterable[str]) -> None:
    """Raise MateriaError (``not_pinned``) unless a name is pinned."""
    if name not in (known := list(pinned)):
        raise MateriaError(
            f"{name} is not pinned.",
            hint=did_you_mean(name, known) if known else "nothing is pinned",
            kind="not_pinned",
        )


class Pins(Mapping[str, Pin]):
    """What answers in the place of sockets and materia of one cast, by their names: a mapping, and what changes it."""

    def __init__(self, runner: Runner) -> None:
        """Tell of the cast that ``runner`` runs."""
        self._runner = runner

    def __getitem__(self, name: str) -> Pin:
        return self._runner.session.pins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runner.session.pins)

    def __len__(self) -> int:
        return len(self._runner.session.pins)

    def __repr__(self) -> str:
        return repr(dict(self))

    def add(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Let what you choose answer a socket, or a materia wherever it is placed, from the next step on.

        A pinned utility starts no process: the text is read as its stdout would be. What is pinned stays
        when the cast is resumed or forked; a function is gone with its kernel, and the cast then
        stops in front of its socket rather than let anything else answer::

            cast.pins.add("Detect-VCS", {"state": {"vcs": "git"}})
            cast.pins.add("Socket-3")  # what it said last

        Args:
            name: a socket, or a materia; the socket's pin goes first.
            to: a text, a dict (sent as JSON), a function of the turn, or an earlier cast, which answers
                visit by visit; left out, the socket's own latest output.
            visit: the visit whose output to use, of this cast or of the cast given.

        Raises:
            MateriaError: there is no such socket or materia (``unknown_materia``), it has no such output
                (``no_output``), or ``to`` is nothing that can be pinned to (``bad_pin``).
        """
        chosen = choose(self._runner.snapshot(), name, to, visit)
        self.put(name, chosen)
        return chosen.pin

    def put(self, name: str, chosen: Chosen) -> None:
        """Pin what was chosen before; see :meth:`add`."""
        runner = self._runner
        needs_name(runner.rules.graph, name)
        with runner.lock():
            runner.begin()
            runner.functions.pop(name, None)
            if chosen.function is not None:
                runner.functions[name] = chosen.function
            runner.run_command(decide.pin, name, chosen.pin)

    def remove(self, name: str) -> None:
        """Let a socket or materia be answered as if it had never been pinned.

        Raises:
            MateriaError: it is not pinned (``not_pinned``).
        """
        needs_pinned(name, self)
        runner = self._runner
        with runner.lock():
            runner.begin()
            runner.run_command(decide.unpin, name)
            runner.functions.pop(name, None)
