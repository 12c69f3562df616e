"""The panel of a cast, with a handler for each message from the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt

from materia_nb.cast import Cast
from materia_nb.cast.breakpoint import compile_condition, parse_breakpoint
from materia_nb.cast.cases import SUFFIX
from materia_nb.cast.edits import Approvals
from materia_nb.cast.repairs import changed_definition, requested_folders
from materia_nb.cast.views.compare_view import CompareView
from materia_nb.display.blocks import Block, Line
from materia_nb.display.escape import part
from materia_nb.errors import MateriaError, counted, did_you_mean, needs_one_of
from materia_nb.handoff import item_issues
from materia_nb.insight.compare import ComparedCast
from materia_nb.jsonvalue import JSON, MISSING, get_path, pretty
from materia_nb.loadout.graph import END
from materia_nb.widgets.answering import build_answer, check_text, correctable_output, parse_value
from materia_nb.widgets.base import show_panel
from materia_nb.widgets.cast_parts import PARTS, dock_names, standalone_names
from materia_nb.widgets.cast_slices import StepRows, step_compare_blocks
from materia_nb.widgets.cast_surface import (
    HEIGHT,
    CastSurface,
    apply_typed,
    cast_messages,
    require_current,
    require_idle,
    require_same_cast,
)
from materia_nb.widgets.frontend import ItemRow, ItemRows, LongText, ShortText, WholeNumber, bad_message
from materia_nb.widgets.inspector_tabs import TABS, require_element
from materia_nb.widgets.state_tree import diff_blocks, edited_items, items_to_redo, preview_edit, title_and_context

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.cast.workbench import Workbench
    from materia_nb.widgets.base import Panel
    from materia_nb.widgets.state_tree import EditedItems

_MIN_HEIGHT: Final = 320
_MAX_HEIGHT: Final = 2_000
_MAX_CASTS: Final = 200  # Maximum number of the project's casts that are offered for comparison, latest first.


@dataclass(frozen=True, slots=True)
class NamedElement:
    """A reference to an element of the cast: its kind, and its id or number."""

    kind: ShortText
    id: ShortText


_about_same_cast: Final = cast_messages.guarded(require_same_cast)
_about_current_state: Final = cast_messages.guarded(require_current)
_when_idle: Final = cast_messages.guarded(require_current, require_idle)
_starts: Final = cast_messages.guarded(require_current, apply_typed)
_starts_when_idle: Final = cast_messages.guarded(require_current, require_idle, apply_typed)


class CastPanel(CastSurface):
    """The live panel of a cast. It handles the messages from the page.

    Each message is handled by the method of the same name with a leading underscore.
    """

    # -- running ---------------------------------------------------------------------

    @_starts
    def _step(self) -> None:
        """Run one socket."""
        self.start(self.cast.step)

    @_starts
    def _run(self) -> None:
        """Run the cast until it stops."""
        self.run_until(self.cast.run)

    @_starts
    def _run_to(self, socket: ShortText) -> None:
        """Run the cast until the given socket is next; with ``end``, run to the end of the cast."""
        if socket != END:
            self.cast.graph.find_socket(socket)
        cast = self.cast
        self.run_until(lambda: cast.run(socket))

    @_starts
    def _run_item(self) -> None:
        """Run the cast to the end of the current work item."""
        cast, item = self.cast, self.cast.now.upcoming_item
        self.run_until(lambda: cast.run(lambda cast: cast.now.upcoming_item != item))

    @_starts
    def _retry(self) -> None:
        """Run the failed socket again."""
        self.resolve(self.cast.retry)

    @_starts
    def _retry_turn(self) -> None:
        """Repeat the failed turn."""
        self.resolve(partial(self.cast.retry, turn=True))

    @_starts
    def _retry_limit(self) -> None:
        """Extend the exceeded limit once, and continue the cast."""
        self.resolve(partial(self.cast.retry, limit=True))

    @_starts_when_idle
    def _ask_again(self, *, discard_edits: StrictBool = False) -> None:
        """Undo the answer that exceeded a limit, and ask for a new answer."""
        cast = self.cast

        def ask_again() -> object:
            self._go_back(len(cast.steps) - 1, discard_edits=discard_edits)
            return cast.step()

        self.resolve(ask_again)

    @_starts_when_idle
    def _apply_changes(self) -> None:
        """Update the failed socket's materia to its changed definition in the workbench, and run the socket again."""
        if (redefinition := changed_definition(self.cast.now)) is not None:
            self.cast.edit.redefine(redefinition.materia)
        self.resolve(self.cast.retry)

    @_starts_when_idle
    def _allow_folder(self) -> None:
        """Allow access to the folders outside the project that the cast requested, and run the failed socket again."""
        folders = requested_folders(self.cast.now)
        if not folders:
            raise MateriaError("The cast has not requested access to a folder outside the project.", kind="not_asked")
        self.cast.approvals.allow(*folders)
        self.resolve(self.cast.retry)

    @_starts_when_idle
    def _pin_text(self, socket: ShortText, text: LongText) -> None:
        """Pin the text as the answer of the failed socket, and continue the cast."""
        self.cast.pins.add(socket, text)
        self.resolve(self.cast.retry)

    @_when_idle
    def _by_hand(self, text: LongText) -> None:
        """Answer in place of the agent or process that failed."""
        self.answer(text)

    @_when_idle
    def _skip(self, note: LongText, *, item: StrictBool = False) -> None:
        """Skip the failed socket or its whole work item, and continue the cast; the note gives the reason."""
        self.resolve_now(lambda: self.cast.skip(note, item=item))

    @cast_messages.message
    def _budget(self, budget: ShortText) -> None:
        """Set the token or cost budget of the cast; an empty string removes the budget."""
        self.cast.edit.budget_in_words(budget)

    @_starts_when_idle
    def _raise_budget(self, budget: ShortText) -> None:
        """Replace the exhausted budget, and continue the cast."""
        self.cast.edit.budget_in_words(budget)
        self.resolve(partial(self.cast.retry, limit=True))

    @cast_messages.message
    def _pause(self) -> None:
        """Stop the run: immediately if the running step can be interrupted, otherwise after the step."""
        self.runs.pause()

    @_about_current_state
    def _leave(self) -> None:
        """Continue the cast without waiting for a function that has not returned."""
        self.cast.runner.stop.abandon()

    @_about_same_cast
    def _abort(self) -> None:
        """Abort the cast when the running step has ended."""
        if self.aborting:  # pressed twice
            return
        cast, self.aborting = self.cast, True
        cast.stop()
        self.runs.record_stop_request()

        def abort() -> None:
            try:
                cast.abort()
            finally:
                self.aborting = False

        self.runs.run_in_thread(abort)

    # -- breakpoints -----------------------------------------------------------------

    @cast_messages.message
    def _break(self, breakpoint: JSON) -> None:  # noqa: A002 - the name of the field
        """Set a breakpoint, or remove it if it is set."""
        self.cast.breakpoints.toggle(parse_breakpoint(breakpoint))

    @cast_messages.message
    def _break_where(self, breakpoint: JSON, text: ShortText) -> None:  # noqa: A002 - as above
        """Restrict a breakpoint to its n-th hit or to a condition; an empty string removes the restriction."""
        event_key, text = parse_breakpoint(breakpoint).event_key, text.strip()
        if text and not text.isdecimal():
            compile_condition(text)  # raises if it is malformed
        limit = {"nth": int(text)} if text.isdecimal() else {"where": text} if text else {}
        self.cast.breakpoints.put(parse_breakpoint({**event_key.as_json(), **limit}))

    @cast_messages.message
    def _clear_breaks(self) -> None:
        """Remove all breakpoints."""
        self.cast.breakpoints.clear()

    @cast_messages.message
    def _watch(self, path: ShortText) -> None:
        """Add or remove a breakpoint on changes to the value at a state path."""
        if path in self.cast.breakpoints.paths:
            self.cast.breakpoints.clear(path=path)
        else:
            self.cast.breakpoints.watch(path)

    @cast_messages.message
    def _follow(self, path: ShortText, *, on: StrictBool = True) -> None:
        """Show the value at a state path and its changes in the Watch tab, or hide them."""
        self.watched.follow(path, on=on)
        if on:
            self.dock = "watch"

    # -- navigation ---------------------------------------------------------------------------

    @cast_messages.message
    def _select(self, element: NamedElement | None) -> None:
        """Show an element in the inspector; null shows the current position of the cast."""
        self.select(None if element is None else require_element(self.inspected, element.kind, element.id))

    @cast_messages.message
    def _tab(self, tab: ShortText) -> None:
        """Open a tab of the inspector."""
        needs_one_of(tab, TABS, "The inspector has no such tab.", "bad_message")
        self.tab = tab

    @cast_messages.message
    def _dock(self, dock: ShortText) -> None:
        """Open a tab of the dock."""
        needs_one_of(dock, dock_names(), "The dock has no such tab.", "bad_message")
        self.dock = dock

    @cast_messages.message
    def _look(self, step: WholeNumber, lane: ShortText = "") -> None:
        """Show the cast as it was after a step of the cast or of a lane."""
        self.show_step(step, lane)

    @cast_messages.message
    def _row(self, row: WholeNumber) -> None:
        """Show the cast as it was after the step in a timeline row. Rows are counted from 1, and row 0 is the start."""
        self.show_row(row)

    @cast_messages.message
    def _now(self) -> None:
        """Return from a past step to the current state of the cast."""
        self.show_step(None)

    @cast_messages.message
    def _line(self, line: WholeNumber | None) -> None:
        """Show the steps of an abandoned branch; null shows the steps of the current branch."""
        steps = self.cast.now.line(line)
        self.rows = StepRows(line)
        self.show_step(None if line is None else len(steps))

    @cast_messages.message
    def _lane(self, lane: ShortText) -> None:
        """Show a lane in the inspector so that its questions can be answered; an empty name shows the cast itself."""
        self.cast.now.lane(lane)  # raises if it does not exist
        self.lane, self.tab = lane, "answer"
        self.select(None)

    @cast_messages.message
    def _height(self, by: StrictInt) -> None:
        """Change the height of the panel by a number of pixels."""
        self.height = min(_MAX_HEIGHT, max(_MIN_HEIGHT, self.height + by))
        self.view.remove_class("mnb-grows")
        self.view.layout.height = f"{self.height}px"

    @cast_messages.message
    def _dismiss(self) -> None:
        """Close the notice above the graph."""
        self.notify("")

    @cast_messages.message
    def _show_cast(self, cast: WholeNumber) -> None:
        """Show the original cast or a fork of it."""
        self.show_cast(cast)

    @cast_messages.message
    def _mode(self, mode: Literal["cast", "design"]) -> None:
        """Switch between the cast and the designer."""
        self.set_mode(mode)

    # -- answers ---------------------------------------------------------------------------

    def answer(self, text: str) -> None:
        """Answer the current question of the cast or lane that the inspector shows."""

        def reply() -> None:
            self.cast.reply(text, lane=self.lane or None)
            self.lane = ""  # shows the next lane that asks, if one does

        self.resolve_now(reply)

    @_when_idle
    def _reply(self, text: LongText) -> None:
        """Answer the current question in place of the agent."""
        self.answer(text)

    @_when_idle
    def _verdict(self, satisfied: StrictBool, reason: LongText) -> None:
        """Answer *satisfied* or *not satisfied*, with a reason."""
        self.answer(build_answer(self.inspected, satisfied, reason))

    @_when_idle
    def _items_answer(self, rows: ItemRows, reason: LongText, satisfied: StrictBool | None = None) -> None:
        """Answer for a generator with a table of work items."""
        items, _ = edited_items(rows, (), None)
        self.answer(build_answer(self.inspected, satisfied, reason, items))

    @_starts
    def _refine(self, text: LongText) -> None:
        """Ask the agent to revise its draft."""
        self.resolve(partial(self.cast.refine, text))

    @_starts
    def _finalize(self) -> None:
        """Accept the draft, and request the final result."""
        self.resolve(self.cast.accept)

    @_starts
    def _answer(self, text: LongText) -> None:
        """Answer the question for which an agent has put the cast on hold."""
        approvals = self._take_approvals()
        self.resolve(lambda: approvals.answer(text))

    @_when_idle
    def _decide(self, *, satisfied: StrictBool | None = None, target: ShortText | None = None) -> None:
        """Decide for the agent that has put the cast on hold: set the verdict, or choose the next socket."""
        approvals = self._take_approvals()
        self.resolve_now(lambda: approvals.decide(satisfied=satisfied, target=target))

    @_starts
    def _allow(self, *, always: StrictBool = False) -> None:
        """Approve the pending tool calls; with ``always``, also approve later calls of the same tools."""
        approvals = self._take_approvals()
        calls = approvals.asking or None
        always = always and calls is not None
        self.resolve(lambda: approvals.approve(always=always, calls=calls))

    @_starts
    def _deny(self, reason: LongText) -> None:
        """Deny the pending tool calls."""
        approvals = self._take_approvals()
        calls = approvals.asking or None
        self.resolve(lambda: approvals.deny(reason, calls=calls))

    def _take_approvals(self) -> Approvals:
        """Return the approvals of the inspected lane, and reset the lane so that the next waiting lane is shown."""
        lane, self.lane = self.lane, ""
        return self.cast.approvals.in_lane(lane) if lane else self.cast.approvals

    @cast_messages.message
    def _disallow(self, tool: ShortText) -> None:
        """Stop approving the calls of a tool automatically."""
        self.cast.approvals.disallow(tool)

    @_when_idle
    def _enter(self) -> None:
        """Enter the next socket without running it."""
        self.cast.step(ask=False)

    # -- edits --------------------------------------------------------------------------------

    @_when_idle
    def _edit_prompt(self, layers: dict[str, LongText]) -> None:
        """Change layers of the prompt for this turn only."""
        for name, text in layers.items():
            self.cast.edit.prompt(name, text)

    @_when_idle
    def _edit_output(self, text: LongText, *, discard_edits: StrictBool = False) -> None:
        """Correct the output of the last step, and choose the next socket again."""
        number = len(self.cast.steps)
        self.resolve_now(partial(self.cast.edit.output, text, discard_edits=discard_edits))
        self._show_reapplied_edits(number)

    @_when_idle
    def _set_value(self, path: ShortText, text: LongText, *, as_text: StrictBool = False) -> None:
        """Set a state value. The text is parsed as JSON unless ``as_text`` is true."""
        self.cast.edit.set(path, parse_value(text, as_text=as_text))

    @_when_idle
    def _remove_value(self, path: ShortText) -> None:
        """Remove a value from the state."""
        self.cast.edit.set(path, MISSING)

    @_when_idle
    def _items(self, rows: ItemRows, base: ShortText | None = None, *, abandon: StrictBool = False) -> None:
        """Replace the list of work items; ``base`` is the digest of the list that the user edited."""
        items, origins = self._items_of_rows(rows, base)
        repeated_items, abandon = items_to_redo(rows, origins, abandon=abandon)
        self.cast.edit.items(items, origins, repeat=repeated_items, abandon=abandon)

    def _items_of_rows(self, rows: Sequence[ItemRow], base: str | None) -> EditedItems:
        """Return the items of an edited table, and their original indices if the cast's list has not changed since."""
        return edited_items(rows, self.cast.now.work_items, self.item_lists.get(base or ""))

    @_when_idle
    def _undo(self) -> None:
        """Revert the last edit."""
        self.cast.edit.undo()

    @_when_idle
    def _back(self, step: WholeNumber, *, files: StrictBool = False, discard_edits: StrictBool = False) -> None:
        """Go back to the state after an earlier step; with ``files``, also restore the project files of that step."""
        self.show_step(None)
        self._go_back(step, files=files, discard_edits=discard_edits)

    def _go_back(self, step: int, *, files: bool = False, discard_edits: bool) -> None:
        self.cast.back(step, files=files, discard_edits=discard_edits)
        self._show_reapplied_edits(step)

    def _show_reapplied_edits(self, step: int) -> None:
        if count := sum(edit.step == step for edit in self.cast.now.edits):
            self.notify(f"{counted(count, 'edit')} {'was' if count == 1 else 'were'} applied again.")

    # -- other casts ------------------------------------------------------------------------

    @_when_idle
    def _fork(self, step: WholeNumber | None = None) -> None:
        """Fork the cast from a step, or from its current state."""
        self.show_new_cast(self.cast.fork(step))
        self.tab, self.dock = "answer", "compare"

    @cast_messages.guarded(require_same_cast, require_idle)
    def _again(self) -> None:
        """Start a new cast with the same request, loadout and agents."""
        self.show_new_cast(self.cast.fork(0))

    @cast_messages.message
    def _compare(
        self,
        socket: ShortText | None = None,
        row: WholeNumber | None = None,
        other: WholeNumber | None = None,
        cast: ShortText | None = None,
    ) -> None:
        """Compare two steps or two casts.

        The first step is the step in ``row``, or the latest step of ``socket``. It is compared with the step in row
        ``other``, or by default with the previous visit of the same socket. If ``cast`` is set, the two casts are
        compared instead.
        """
        if cast is None:
            blocks = step_compare_blocks(self.cast.now, self.rows, socket=socket, row=row, other_row=other)
            self.compares = lambda _: blocks
        else:
            self.compares = self._compare_cast(cast)
        self.dock = "compare"

    def _compare_cast(self, id_: str) -> Callable[[Snapshot], Sequence[Block]]:
        """Return a function that takes a snapshot and returns its differences from another cast, as blocks."""
        own_label, other = self._cast_label(self.casts.index(self.cast)), self._comparison_side(id_)
        headline = Line(f"A is {own_label}, B is {other.name}.")
        return lambda now: [headline, *CompareView(now.compared_cast, other).detail_blocks()]

    def _comparison_side(self, id_: str) -> ComparedCast:
        own_casts = {cast.id: cast for cast in self.casts}
        if id_ in own_casts:
            return own_casts[id_].now.compared_cast
        view = None if self._bench is None else self._bench.compare(id_, self.cast)
        if not isinstance(view, CompareView):
            raise bad_message(f"The project has no cast {id_!r}.")
        return view.a

    @cast_messages.message
    def _page(self) -> None:
        """Save the cast as a web page."""
        path = self.cast.export.page(self.cast.now.project / f"{self.cast.id}.html")
        self.notify(f"The page was saved as {path.name} in {path.parent}.")

    @cast_messages.message
    def _keep_test(self) -> None:
        """Save the cast in the project as a test of its loadout."""
        path = self.cast.export.test(self.cast.now.project / f"{self.cast.id}{SUFFIX}")
        self.notify(
            f"The test was saved as {path.name} in {path.parent}. pytest runs the test without calling an agent."
        )

    @cast_messages.message
    def _label(self, text: Annotated[str, Field(max_length=200)]) -> None:
        """Set the name of the cast."""
        self.cast.labels.add(name=text)
        self.notify("The cast was renamed. You can open it by its new name.")

    @cast_messages.message
    def _pin(self, socket: ShortText) -> None:
        """Pin the last answer of a socket, or unpin it."""
        self.cast.graph.find_socket(socket)
        name = self.cast.now.pin_name_of(socket)
        if name is None:
            self.cast.pins.add(socket)
        else:
            self.cast.pins.remove(name)

    # -- questions of the page -------------------------------------------

    @cast_messages.question
    def _rows(self, first: WholeNumber, last: WholeNumber) -> dict[str, Any]:
        """Return the timeline rows from ``first`` to ``last``."""
        return {"rows": self.rows.between(self.cast.now, first, last)}

    @cast_messages.question
    def _find(self, text: ShortText) -> dict[str, Any]:
        """Return the numbers of the timeline rows whose steps contain a search text."""
        return {"rows": self.rows.find(self.cast.now, text)}

    @cast_messages.question
    def _casts(self) -> dict[str, Any]:
        """Return the id and a description of every cast that can be compared with this cast."""
        own_labels = {cast.id: self._cast_label(index) for index, cast in enumerate(self.casts)}
        entries = [] if self._bench is None else list(self._bench.casts())[:_MAX_CASTS]
        other_labels = {entry.id: f"{entry.name or entry.id} · {part(entry.request or '', 60)}" for entry in entries}
        offered = {**own_labels, **other_labels, **own_labels}  # own casts first, with their labels in this panel
        return {"casts": [[id_, description] for id_, description in offered.items() if id_ != self.cast.id]}

    @cast_messages.question
    def _check(self, purpose: Literal["reply", "by_hand", "correction", "value"], text: LongText) -> dict[str, Any]:
        """Validate typed text as an answer, a correction or a state value, and return the problems."""
        return check_text(self.inspected, text, purpose)

    @cast_messages.question
    def _check_items(
        self, rows: ItemRows, base: ShortText | None = None, *, abandon: StrictBool = False
    ) -> dict[str, Any]:
        """Return the problems of an edited list of work items, and the effects of applying the list."""
        items, origins = self._items_of_rows(rows, base)
        issues = [[issue.path, issue.message] for issue in islice(item_issues(items, "workItems"), 100)]
        effects, order = preview_edit(self.cast.now, items, origins, *items_to_redo(rows, origins, abandon=abandon))
        return {"issues": issues, "said": effects, "order": order}

    @cast_messages.question
    def _item_texts(self, base: ShortText, index: WholeNumber) -> dict[str, Any]:
        """Return the complete title and context of a work item; ``base`` is the digest of its list."""
        [item], _ = edited_items([ItemRow(None, None, index)], (), self.item_lists.get(base))
        title, context = title_and_context(item)
        return {"title": title, "context": context}

    @cast_messages.question
    def _last_output(self) -> dict[str, Any]:
        """Return the complete last output so that the page can edit it."""
        return correctable_output(self.inspected) or {}

    @cast_messages.question
    def _value(self, path: list[ShortText]) -> dict[str, Any]:
        """Return the complete value at a state path."""
        value = get_path(dict((self.past or self.cast.now).state), path)
        text = value if isinstance(value, str) else "" if value is MISSING else pretty(value)
        return {"text": text, "as_text": isinstance(value, str)}

    @cast_messages.question
    def _diff(self, a: WholeNumber, b: WholeNumber) -> dict[str, Any]:
        """Return how the state changed between the end of step ``a`` and the end of step ``b``."""
        before, after = (dict(self.cast.at(step).state) for step in (a, b))
        ends = [f"step {step}" if step else "the start" for step in (a, b)]
        return {"blocks": diff_blocks(before, after, f"from {ends[0]} to {ends[1]}")}


def show(
    cast: Cast,
    forked: Callable[[Cast], object] = lambda _: None,
    *,
    bench: Workbench | None = None,
    height: int | None = None,
) -> CastPanel:
    """Create and return the panel of a cast, and close the panels of earlier executions of the same cell.

    Args:
        cast: the cast to show.
        forked: a function that is called with each cast that the user forks in the panel.
        bench: the workbench for designing the loadout of the cast; None disables design mode.
        height: the height in pixels; 600 by default.
    """
    return show_panel("show", lambda: CastPanel(cast, forked, bench=bench, height=height or HEIGHT))


def show_part(cast: Cast, name: str, *, height: int | None = None) -> Panel:
    """Create and return one part of a cast's panel, and close the panels of earlier executions of the same cell.

    Args:
        cast: the cast to show.
        name: the name of the part; see ``PARTS`` in ``cast_parts.py``.
        height: the height in pixels; by default the height of the part.

    Raises:
        MateriaError: there is no part with this name (``unknown_panel``).
    """
    part_names = standalone_names()
    if name not in part_names:
        hint = f"{did_you_mean(name, part_names)} (the panels are {', '.join(part_names)})"
        raise MateriaError(f"The panel {name!r} does not exist.", hint=hint, kind="unknown_panel")
    panel_height = height or PARTS[name].height
    return show_panel(("panel", name), lambda: CastPanel(cast, only_part=name, height=panel_height))
