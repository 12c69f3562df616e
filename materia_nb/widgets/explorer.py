"""The panel with all casts of a project. The user can search, sort, open, compare, name and delete casts.

A summary of the selected cast is shown below the list: its final output or failure, and its last steps. Because the
list may be long, the page first receives only some rows, and requests more while the user scrolls. The casts are read
in the background, latest first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, StrictBool
from traitlets import Dict, Unicode

from materia_nb.cast import Cast
from materia_nb.cast.formatting import casts_view, describe_failure, format_cost, relative_time, search_casts
from materia_nb.cast.views.compare_view import CompareView
from materia_nb.display.blocks import Block, Code, Heading, Line, Table, blocks_as_text, clip_plain
from materia_nb.display.escape import part
from materia_nb.errors import MateriaError, counted, plain
from materia_nb.handoff.jsontext import agent_object
from materia_nb.platform import start_thread
from materia_nb.store.catalogue import CastEntry, Catalogue, cast_entry, last_events
from materia_nb.store.files import lock_owner
from materia_nb.store.rundir import RunDir
from materia_nb.widgets.base import Panel, show_panel
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.frontend import FrontendWidget, MessageRegistry, ShortText, Token, WholeNumber, outdated
from materia_nb.widgets.state_tree import json_digest

if TYPE_CHECKING:
    from materia_nb.cast.project_casts import Casts

INITIAL_ROWS: Final = 60
"""Number of rows that the page receives initially."""
_MAX_REQUESTED_ROWS: Final = 400
_MAX_RECORDED_ROWS: Final = 100
_READ_DELAY_S: Final = 0.08
"""Delay before the selected cast is read, in seconds, so that moving through the list stays fast."""
_LAST_STEPS: Final = 6
_STATUS_LABELS: Final[Mapping[str, tuple[str, str, str]]] = {
    "waiting": ("wants", "your turn", "it needs an answer, or an agent was interrupted: open the cast for details"),
    "held": ("wants", "your turn", "an agent has a question: open the cast to read it"),
    "failed": ("failed", "failed", ""),
    "broken": ("failed", "broken", ""),
    "ready": ("paused", "paused", "nothing is pending; resume it to continue"),
    "aborted": ("aborted", "aborted", ""),
    "complete": ("done", "complete", ""),
}  # Colour tone, label and tooltip of each status, in sorting order.
_STATUS_ORDER: Final = tuple(_STATUS_LABELS)


class CastsFront(FrontendWidget):
    """The widget that draws the list of casts and the summary of the selected cast."""

    view = Unicode("casts").tag(sync=True)
    casts = Dict().tag(sync=True)
    glance = Dict().tag(sync=True)


class Query(NamedTuple):
    """The filter and sort order of the list."""

    text: str = ""
    only: str = "all"
    by: str = "when"
    down: bool = True


def _require_shown(panel: CastExplorer, cast: ShortText, identity: Token) -> None:
    panel.require_shown(cast, identity)


def _require_both_shown(panel: CastExplorer, a: ShortText, b: ShortText, identities: tuple[Token, Token]) -> None:
    for id_, identity in zip((a, b), identities, strict=True):
        panel.require_shown(id_, identity)


casts_messages: Final = MessageRegistry("ToCasts", "Messages to the panel of all casts.")
_about_cast: Final = casts_messages.guarded(_require_shown)


class CastExplorer(Panel):
    """The panel with the list of all casts of a project.

    Args:
        casts: the casts of a workbench.
    """

    interval = 0.1

    def __init__(self, casts: Casts) -> None:
        super().__init__("the casts of this project")
        self._casts = casts
        self._catalogue = Catalogue(casts.root)
        self._entries: list[CastEntry] = []
        self._shown: list[CastEntry] = []
        self._order = self._total = 0
        self._query = Query()
        self._is_reading = self._needs_reread = self._is_reread_scheduled = False
        self._shown_notice: Mapping[str, Any] = {}
        self._selected_id = ""
        self._compared: list[Block] = []
        self._summarized_entry: CastEntry | None = None
        self._open_panel: CastPanel | None = None
        self.front = CastsFront()
        self.front.on_msg(self.guarded(lambda _, content, __: self.on_message(content)))
        self.set_widgets(self.front)
        self.call_after_cells(self.read)
        self.on_close(self._close_cast)
        self.refresh()
        self.read()

    # -- reading the list ------------------------------------------------------------------

    def read(self) -> None:
        """Read the list of casts in the background; if it is already being read, read it again afterwards."""
        if self._is_reading:
            self._needs_reread = True
            return
        self._is_reading, self._needs_reread = True, False
        self._reader = start_thread(self._read, "materia-casts")

    def wait(self, timeout: float | None = None) -> None:
        """Wait at most ``timeout`` seconds until the list has been read. Do not call this method in a callback."""
        while self._is_reading:
            self._reader.join(timeout)

    def _read(self) -> None:
        try:
            for self._entries, self._total in self._catalogue.read():  # noqa: B020 - the entries read so far
                if self.closed:
                    return
                self.schedule_refresh()
        except Exception as error:  # noqa: BLE001 - a thread can report errors only through the panel
            self.show_error(error)
        finally:
            self._is_reading = False
            self.schedule_refresh()
            if self._needs_reread:
                self.read()

    def _reread(self, path: object) -> None:
        """Read one cast again after this panel has changed it."""
        self._is_reread_scheduled = False
        self._entries = [cast_entry(entry.path) if entry.path == path else entry for entry in self._entries]
        self.schedule_refresh()

    def _list_rows(self, entries: Sequence[CastEntry]) -> list[list[Any]]:
        now = time.time()
        return [list_row(entry, now, self._writer(entry)) for entry in entries]

    def _writer(self, entry: CastEntry) -> str | None:
        """Return the writer of a cast: "" for this kernel, the owner of the lock for another process, or else None."""
        cast = self._casts.find_open_cast(entry.path)
        if cast is not None:
            return "" if cast.runner.busy() else None
        return lock_owner(entry.path)

    def require_shown(self, id_: str, identity: str) -> None:
        """Refuse a message about a cast that has changed on disk since the list showed it (R70).

        Raises:
            MateriaError: the cast has changed (``outdated``).
        """
        entry = self._entry(id_)
        if entry is None or identity == identity_of(cast_entry(entry.path), self._writer(entry)):
            return
        self.read()
        problem = f"the cast {id_} has changed since this list showed it"
        raise outdated(problem, "check the updated row, then click again")

    # -- user actions -----------------------------------------------------------------

    def on_message(self, content: object) -> None:
        """Handle a message from the page.

        Raises:
            MateriaError: the message is unknown or malformed (``bad_message``), or the request is refused.
        """
        if casts_messages.handle(self, content) is None:  # a question changes nothing
            self.refresh()

    @casts_messages.message
    def _look(
        self,
        text: ShortText = "",
        only: Literal["all", "waits", "failed", "tagged"] = "all",
        by: Literal["state", "request", "loadout", "when", "steps", "cost"] = "when",
        *,
        down: StrictBool = True,
    ) -> None:
        """Filter the list by text and status, and sort it by a column."""
        self._query = Query(text, only, by, down)

    @casts_messages.message
    def _refresh(self) -> None:
        """Read the list of casts again."""
        self.read()

    @casts_messages.message
    def _select(self, cast: ShortText) -> None:
        """Select the cast with this id."""
        self._selected_id = cast

    @_about_cast
    def _open(self, cast: ShortText) -> None:
        """Show a cast below the list, read-only."""
        self._show_below(cast, self._casts.open(cast))

    @_about_cast
    def _resume(self, cast: ShortText) -> None:
        """Open a cast below the list so that the user can continue it."""
        self._show_below(cast, self._casts.resume(cast))

    def _show_below(self, id_: str, cast: Cast) -> None:
        self._close_cast()
        self._selected_id = id_
        self._open_panel = CastPanel(cast, self._casts.make_current, bench=self._casts.bench)
        path = cast.run_dir
        self._open_panel.on_close(cast.follow.changes(lambda _: self._reread_later(path)))
        self.set_widgets(self.front, self._open_panel.view)

    def _reread_later(self, path: object) -> None:
        if not self._is_reread_scheduled:
            self._is_reread_scheduled = True
            self.call_after(0.5, lambda: self._reread(path))

    @_about_cast
    def _fork(self, cast: ShortText) -> None:
        """Fork a cast at its current state, and show the fork below the list."""
        entry = self._entry(cast)
        fork = self._casts.make_current(self._casts.load(entry.path if entry is not None else cast).fork())
        self._show_below(fork.id, fork)
        self.read()

    @casts_messages.guarded(_require_both_shown)
    def _compare(self, a: ShortText, b: ShortText) -> None:
        """Show the differences between two casts below the list."""
        self._close_cast()
        view = self._casts.compare(a, b)
        self._compared = [Heading(clip_plain(f"A is {self._name(a)}, B is {self._name(b)}", 400))]
        if isinstance(view, CompareView):
            self._compared += view.detail_blocks()

    def _entry(self, id_: str) -> CastEntry | None:
        return next((entry for entry in self._entries if entry.id == id_), None)

    def _name(self, id_: str) -> str:
        entry = self._entry(id_)
        return plain(entry.name or f"{entry.request} ({id_})") if entry is not None else id_

    @_about_cast
    def _label(self, cast: ShortText, text: Annotated[str, Field(max_length=200)]) -> None:
        """Set the name and tags of a cast; words that begin with ``#`` become tags."""
        words_and_tags = text.split()
        tags = [word.removeprefix("#") for word in words_and_tags if word.startswith("#") and len(word) > 1]
        name = " ".join(word for word in words_and_tags if not word.startswith("#"))
        self._casts.label(cast, tag=tags, name=name or None)
        self.read()

    @_about_cast
    def _delete(self, cast: ShortText) -> None:
        """Delete a cast; the page has already asked for confirmation."""
        if self._open_panel is not None and self._open_panel.cast.id == cast:
            open_cast = self._open_panel.cast
            self._open_panel.runs.refuse_while_busy()
            self._close_cast()
            open_cast.close()
        self._casts.delete(cast, yes=True)
        self._entries = [entry for entry in self._entries if entry.id != cast]
        self._total = len(self._entries)
        self.notify(f"Deleted {cast}.")

    @casts_messages.message
    def _close_selected(self) -> None:
        """Close the cast or comparison below the list."""
        self._close_cast()

    @casts_messages.message
    def _dismiss(self) -> None:
        """Close the notice above the list."""
        self.notify("")

    @casts_messages.question
    def _rows(self, order: WholeNumber, first: WholeNumber, last: WholeNumber) -> dict[str, Any]:
        """Return the rows from ``first`` to ``last`` if ``order`` is still the number of the current sort order."""
        last = min(last, first + _MAX_REQUESTED_ROWS)
        rows = self._list_rows(self._shown[first:last]) if order == self._order else []
        return {"order": self._order, "first": first, "rows": rows}

    def _close_cast(self) -> None:
        """Close the cast or comparison below the list."""
        self._compared = []
        if self._open_panel is not None:
            self._open_panel.close()
            self._open_panel = None
            self.set_widgets(self.front)

    # -- drawing ------------------------------------------------------------------------------

    def show_notice(self, notice: Mapping[str, Any]) -> None:
        """Show a notice above the list; an empty mapping removes the notice."""
        self._shown_notice = notice
        if not self.closed and self.front.casts:
            self.front.casts = {**self.front.casts, "notice": notice}

    def draw(self) -> None:
        """Send the current list to the page."""
        query = self._query
        matches = search_casts(self._entries, query.text)
        listed = sort_entries([entry for entry in matches if _has_status(entry, query.only)], query.by, down=query.down)
        if not self._selected_id and listed:
            self._selected_id = listed[0].id
        if listed != self._shown:
            self._order, self._shown = self._order + 1, listed
        selected_index = next((index for index, entry in enumerate(listed) if entry.id == self._selected_id), None)
        selected_entry = None if selected_index is None else listed[selected_index]
        if selected_entry is not self._summarized_entry and self._open_panel is None:
            self._summarized_entry = selected_entry
            self.call_after(_READ_DELAY_S, self._read_selected)
        open_cast_id = "" if self._open_panel is None else self._open_panel.cast.id
        reading_text = f"reading {len(self._entries):,} of {self._total:,}"
        self.front.casts = {
            **query._asdict(),
            "order": self._order,
            "total": len(listed),
            "rows": self._list_rows(listed[:INITIAL_ROWS]),
            "counts": {name: sum(_has_status(entry, name) for entry in matches) for name in ("all", *_STATUS_FILTERS)},
            "reading": reading_text if self._is_reading and len(self._entries) < self._total else "",
            "cost": _total_cost_text(listed),
            "at": selected_index,
            "picked": None if selected_entry is None else self._entry_commands(selected_entry),
            "below": open_cast_id,
            "compared": [block.as_json() for block in self._compared],
            "notice": self._shown_notice,
        }

    def _entry_commands(self, entry: CastEntry) -> dict[str, Any]:
        """Return the commands that are possible on a cast, and the reason if the cast cannot be resumed."""
        readable = entry.status != "broken"
        recorded_text = "another engine recorded the cast: open it, or continue in a fork"
        return {
            "id": entry.id,
            "identity": identity_of(entry, self._writer(entry)),
            "words": clip_plain(plain(entry.name or entry.request or entry.id), 120),
            "name": entry.name,
            "whole": readable,
            "resumes": readable and entry.ours and entry.status != "complete",
            "forks": readable,
            "why": "the cast is complete" if entry.status == "complete" else recorded_text,
        }

    def _read_selected(self) -> None:
        """Read the selected cast, and show its summary below the list."""
        entry = self._summarized_entry
        if entry is None:
            return
        try:
            summary = summarize_cast(entry)
        except OSError as error:
            summary = [Line(f"The journal cannot be read: {error.strerror}.", "bad")], []
        self.front.glance = {"id": entry.id, "sides": [[block.as_json() for block in side] for side in summary]}

    def fallback(self) -> tuple[str, str | None]:
        """Return the list of casts as text."""
        hidden_count = len(self._entries) - _MAX_RECORDED_ROWS
        text = blocks_as_text([casts_view(self._entries[:_MAX_RECORDED_ROWS])])
        return text + (f"\n... and {counted(hidden_count, 'more cast')}" if hidden_count > 0 else ""), None


_STATUS_FILTERS: Final[Mapping[str, Any]] = {
    "waits": lambda entry: entry.status in ("waiting", "held"),
    "failed": lambda entry: entry.status in ("failed", "broken"),
    "tagged": lambda entry: bool(entry.tags),
}


def _has_status(entry: CastEntry, only: str) -> bool:
    return only == "all" or bool(_STATUS_FILTERS[only](entry))


def summarize_cast(entry: CastEntry) -> tuple[list[Block], list[Block]]:
    """Return a summary of a cast: blocks about its outcome or status, and blocks about its last steps.

    Only the end of the journal is read, so the summary of a long cast takes no longer than the summary of a short cast.

    Raises:
        OSError: the journal cannot be read.
    """
    steps: dict[int, dict[str, Any]] = {}  # by number: its latest output
    names: dict[str, str] = {}
    last: dict[str, Any] = {}
    for event in last_events(entry.path):
        last = dict(event.data)
        numbers = (event.steps, last.get("step"), len(steps) + 1)  # a recording may contain any value
        number = next(number for number in numbers if isinstance(number, int))
        if event.type == "cast_back":
            steps = {step: output for step, output in steps.items() if step <= number}
        elif "text" in last or "artifact" in last:
            steps[number] = last
        if "materiaLabel" in last:
            names[str(last.get("socket"))] = part(str(last["materiaLabel"]), 40)
    rows, text = [], ""
    for step, data in list(steps.items())[-_LAST_STEPS:]:
        socket_name, text = names.get(str(data.get("socket")), ""), _output_text(entry, data)
        rows.append((str(step), socket_name, part(str(data.get("itemLabel") or ""), 30), part(text, 120)))
    blocks = _outcome_text(entry, last, names)
    if entry.status == "complete" and rows:
        heading = Heading(f"final output · {rows[-1][1]}, step {rows[-1][0]}", small=True)
        blocks += [heading, Code(clip_plain(text, 4_000))]
    warnings = last.get("warnings") if entry.warnings else None
    for warning in warnings[:_LAST_STEPS] if isinstance(warnings, list) else ():
        message = warning.get("message") if isinstance(warning, dict) else warning
        blocks.append(Line(clip_plain(str(message), 600), "warn"))
    return blocks, [Heading("last steps", small=True), Table(("step", "who", "item", "output"), rows, "no steps yet")]


def _outcome_text(entry: CastEntry, last: Mapping[str, Any], names: Mapping[str, str]) -> list[Block]:
    """Return the outcome of a cast, or the reason why it has stopped, based on its last event."""
    socket_name = names.get(str(last.get("socket")), "The cast")
    if entry.status == "complete":
        steps = "" if entry.steps is None else f", after {counted(entry.steps, 'step')}"
        warning_suffix = ", with warnings" if entry.warnings else ""
        return [Heading(f"Complete{warning_suffix}{steps}", tone="warn" if warning_suffix else "good")]
    if entry.status in ("failed", "broken", "aborted"):
        outcome = "was aborted" if entry.status == "aborted" else describe_failure(str(last.get("kind")))
        why = clip_plain(str(last.get("error") or entry.problem or ""), 2_000)
        return [Heading(f"{socket_name} {outcome}", tone="bad"), Line(why)]
    if entry.status == "ready":
        target = str(last.get("next") or "")
        return [Line(f"paused, next: {part(names.get(target, target), 60)}" if target else "paused")]
    reason = clip_plain(str(last.get("reason") or ""), 600)
    return [Line(f"{socket_name} asks: {reason}" if reason else f"{socket_name} has not answered yet")]


def _output_text(entry: CastEntry, output: Mapping[str, Any]) -> str:
    """Return the verdict and context from the output of a step, or the whole output if it has no verdict."""
    text, value = output.get("text"), {}
    try:
        text = text if isinstance(text, str) else RunDir(entry.path).read_text(str(output.get("artifact")))
        value = agent_object(text).value if output.get("parsed") else {}
    except (MateriaError, ValueError):  # no stored output or invalid JSON: show the recorded text
        text = str(text or "")
    if not isinstance(satisfied := value.get("satisfied"), bool):
        return plain(text)
    return plain(f"{'✓' if satisfied else '✗'} {value.get('context') or ''}".strip())


def sort_entries(entries: Sequence[CastEntry], by: str, *, down: bool) -> list[CastEntry]:
    """Sort casts by a column; the sort is stable."""
    keys: Mapping[str, Any] = {
        "state": lambda entry: -_STATUS_ORDER.index(entry.status),
        "request": lambda entry: (entry.name or entry.request or "").casefold(),
        "loadout": lambda entry: (entry.loadout or "").casefold(),
        "when": lambda entry: entry.started or 0,
        "steps": lambda entry: -1 if entry.steps is None else entry.steps,
        "cost": lambda entry: -1 if entry.cost is None else entry.cost,
    }
    return sorted(entries, key=keys[by], reverse=down)


def identity_of(entry: CastEntry, writer: str | None) -> str:
    """Return the identity of a listed cast (R69).

    The identity changes with the journal, except while a process writes to the cast.
    """
    state = [entry.status, entry.steps, entry.last_event] if writer is None else []
    return json_digest([str(entry.path), state])


def list_row(entry: CastEntry, now: float, writer: str | None = None) -> list[Any]:
    """Return the row of a cast in the list.

    Args:
        entry: the cast.
        now: the current time, in seconds since the epoch.
        writer: who is writing to the cast: "" for this kernel, the owner of the lock for another process, or None.

    Returns:
        The id; the colour tone, label and tooltip of the status; the name, request, tags and loadout; a description of
            the start time and its tooltip; the number of steps; the warnings; the cost; the identity.
    """
    tone, word, detail = _STATUS_LABELS[entry.status]
    if writer == "":
        tone, word, detail = "working", "running", "a step is running in this kernel"
    elif writer is not None:
        detail = f"open elsewhere: {writer}"
    elif entry.status == "broken":
        detail = entry.problem or ""
    warnings = ", ".join(entry.warnings) or entry.failure or (f"open in {writer}" if writer else "")
    started, written = relative_time(entry.started, now), relative_time(entry.last_event, now)
    return [
        entry.id,
        [tone, word, clip_plain(plain(detail), 300)],
        plain(entry.name),
        plain(entry.request or ""),
        [plain(tag) for tag in entry.tags],
        plain(entry.loadout or ""),
        [started, f"started {started}, last written {written}" if started else "not known"],
        "" if entry.steps is None else str(entry.steps),
        clip_plain(plain(warnings), 200),
        format_cost(entry.cost, entry.unpriced),
        identity_of(entry, writer),
    ]


def _total_cost_text(entries: Sequence[CastEntry]) -> str:
    costs = [entry.cost for entry in entries if entry.cost is not None]
    unknown = len(entries) - len(costs) + sum(bool(entry.unpriced) for entry in entries if entry.cost is not None)
    return f"{'at least ' if unknown else ''}${sum(costs):.2f} in total" if any(costs) else ""


def show_casts(casts: Casts) -> CastExplorer:
    """Create and return the panel of all casts, and close the panels of earlier executions of the same cell."""
    return show_panel("casts", lambda: CastExplorer(casts))
