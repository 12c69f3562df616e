"""The work items as a table: edit, add, remove, move, duplicate; applied as one change (R9, R13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.engine import step as engine
from materia_nb.engine.edit import WORK_ITEMS, edit_items
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Item
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import same
from materia_nb.tables import items_view
from materia_nb.widgets.base import Panel, show_html, widgets_in
from materia_nb.widgets.controls import button, issues_html, row, show_if
from materia_nb.widgets.rows import Row, Rows
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast

PAGE_ROWS: Final = 15
_COLUMNS: Final = (
    "minmax(64px, max-content) minmax(90px, 2fr) minmax(120px, 3fr) minmax(min-content, max-content)"
)
_SOUND: Final = {"title": "sound", "context": "sound"}
_STALE: Final = (
    "The cast changed the work items meanwhile. Your edits are kept: "
    "Apply puts your list in place of theirs, Revert shows theirs."
)


class ItemsPanel(Panel):
    """A table of the cast's work items that can be edited between steps.

    Nothing is changed before Apply, which is one event in the journal; Undo takes that back.
    """

    interval = 0.1

    def __init__(self, cast: Cast) -> None:
        super().__init__("work items")
        self.cast = cast
        self.rows = Rows(cast.work_items)
        self.page = 0
        self.stale = False
        self._fill = True
        self._slots: list[_Slot] = []
        head = [ui.Label(value=word) for word in ("item", "title", "context", "")]
        self._head = head
        self._grid = ui.GridBox(
            head, layout=ui.Layout(grid_template_columns=_COLUMNS, width="100%", align_items="flex-start")
        )
        self._state = ui.HTML()
        self._issues = ui.HTML()
        self.add_button = button("Add", "add a work item at the end", self.guarded(self._add))
        self.apply_button = button(
            "Apply", "put this list into the cast", self.guarded(self._apply), style="primary"
        )
        self.undo_button = button("Undo", "take the last edit of the cast back", self.guarded(self._undo))
        self.revert_button = button(
            "Revert", "forget these edits, show the cast's items", self.guarded(self._revert)
        )
        self.back_button = button("<", "the page before", self.guarded(lambda _: self._turn(-1)))
        self.on_button = button(">", "the next page", self.guarded(lambda _: self._turn(1)))
        self._page_words = ui.Label()
        self._pages = row(self.back_button, self._page_words, self.on_button)
        actions = row(
            self.add_button, self.apply_button, self.undo_button, self.revert_button, self._pages, self._state
        )
        self.put(self._grid, self.above_notice(actions), self._issues)
        self.follow(cast)
        self.at_close(runs_of(cast).watch(lambda _: self.later()))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the items as a table of text."""
        return repr(items_view(self.cast)), None

    # -- what a person does -----------------------------------------------------------

    def _add(self, _: Any) -> None:
        self._change(self.rows.add)
        self._show_row(len(self.rows) - 1)

    def remove(self, slot: int) -> None:
        """Remove the item in a row of this page; the first row is 0."""
        self._change(lambda: self.rows.remove(self._place(slot)))

    def duplicate(self, slot: int) -> None:
        """Put a copy behind the item in a row of this page."""
        place = self._place(slot)
        self._change(lambda: self.rows.duplicate(place))
        self._show_row(place + 1)

    def move(self, slot: int, by: int) -> None:
        """Move the item in a row of this page up (-1) or down (1)."""
        place = self._place(slot)
        self._change(lambda: self.rows.move(place, by))
        self._show_row(min(max(place + by, 0), len(self.rows) - 1))

    def typed(self, slot: int, field: str, text: str) -> None:
        """Take what was typed into ``title`` or ``context`` of a row of this page."""
        place = self._place(slot)
        if place < len(self.rows):
            with self._drawing:
                setattr(self.rows.rows[place], field, text)
            self.refresh()

    def _apply(self, _: Any) -> None:
        runs_of(self.cast).refuse_while_busy()
        rows = self.rows
        # Rows that were read from another list do not know their places in this one.
        known = same(self.cast.work_items, rows.base)
        self.cast.edit_items(rows.items, rows.origins if known else None)
        self._read()

    def _undo(self, _: Any) -> None:
        runs_of(self.cast).refuse_while_busy()
        self.cast.undo()
        self.refresh()

    def _revert(self, _: Any) -> None:
        self._read()

    def _read(self) -> None:
        with self._drawing:
            self.rows, self.stale, self._fill = Rows(self.cast.work_items), False, True
        self.refresh()

    def _change(self, act: Callable[[], object]) -> None:
        with self._drawing:
            act()
            self._fill = True
        self.refresh()

    def _turn(self, by: int) -> None:
        self.page += by
        self._change(lambda: None)

    def _show_row(self, place: int) -> None:
        if place // PAGE_ROWS != self.page:
            self.page = place // PAGE_ROWS
            self._change(lambda: None)

    def _place(self, slot: int) -> int:
        return self.page * PAGE_ROWS + slot

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring marks, issues and buttons up to date; the fields only when the rows are others than shown."""
        items = self.cast.work_items
        if same(items, self.rows.base):
            self.stale = False
        elif self.rows.changed and not same(items, self.rows.items):
            self.stale = True
        else:
            self.rows, self.stale, self._fill = Rows(items), False, True
        if self._fill:
            self._draw_rows()
            self._fill = False
        self._draw_marks()
        self._draw_actions()

    def _draw_rows(self) -> None:
        last = max(0, (len(self.rows) - 1) // PAGE_ROWS)
        self.page = min(max(self.page, 0), last)
        shown = self.rows.rows[self.page * PAGE_ROWS : (self.page + 1) * PAGE_ROWS]
        while len(self._slots) < len(shown):
            self._slots.append(_Slot(self, len(self._slots)))
            self.at_close(self._slots[-1].close)
        for slot, one in zip(self._slots, shown, strict=False):
            slot.title.value, slot.context.value = one.title, one.context
        wanted = [*self._head, *(w for slot in self._slots[: len(shown)] for w in slot.widgets)]
        if len(self._grid.children) != len(wanted):
            self._grid.children = wanted
        show_if(self._pages, last > 0)
        self._page_words.value = f"page {self.page + 1} of {last + 1}"
        self.back_button.disabled, self.on_button.disabled = self.page == 0, self.page == last

    def _draw_marks(self) -> None:
        done, _ = _progress(self.cast.rules, self.cast.now)
        then, current = _progress(self.cast.rules, self._applied())
        first = self.page * PAGE_ROWS
        for place, one in enumerate(self.rows.rows[first : first + PAGE_ROWS], first):
            stands = _stands(one, place, done, then, current)
            self._slots[place - first].mark.value = f"WI-{place + 1} {stands}"
            slot = self._slots[place - first]
            slot.up.disabled, slot.down.disabled = place == 0, place == len(self.rows) - 1

    def _applied(self) -> CastState:
        """The state as it would be after Apply, with items that nothing is wrong with; the present if it is refused."""
        if self.stale or not self.rows.changed:
            return self.cast.now
        try:
            return edit_items(
                self.cast.rules, self.cast.now, [_SOUND for _ in self.rows.rows], self.rows.origins
            )
        except MateriaError:
            return self.cast.now

    def _draw_actions(self) -> None:
        issues, told, changed = self.rows.issues, self.rows.told, self.rows.changed
        busy = runs_of(self.cast).busy_for(self)
        self.apply_button.disabled = bool(issues) or busy or not (changed or self.stale)
        self.revert_button.disabled = not (changed or self.stale)
        edits = self.cast.edits
        self.undo_button.disabled = busy or not edits or edits[-1].after is not self.cast.now
        show_html(self._issues, issues_html(told if changed else (), ""))
        words = f"{len(self.rows)} items" if len(self.rows) != 1 else "1 item"
        if self.stale:
            words = _STALE
        elif issues and changed:
            words += f": {'mend the issues' if told else 'write the new item'}, then apply"
        elif changed and busy:
            words += ": a step is running; it can be applied when that has ended, or pause"
        elif changed:
            words += ", changed, not applied yet"
        show_html(self._state, words)


class _Slot:
    """The widgets of one row of a page; they are kept, and show whatever row is there."""

    def __init__(self, panel: ItemsPanel, place: int) -> None:
        self.mark = ui.Label()
        auto = ui.Layout(width="auto", margin="1px")
        self.title = ui.Text(placeholder="title: what is to be done", layout=auto)
        self.context = ui.Textarea(
            placeholder="context: all that is needed to do it",
            rows=2,
            layout=ui.Layout(width="auto", margin="1px"),
        )
        for field, widget in (("title", self.title), ("context", self.context)):
            widget.observe(panel.guarded(_typing(panel, place, field)), names="value")
        acts: list[tuple[str, str, Callable[[Any], None]]] = [
            ("↑", "move up", lambda _: panel.move(place, -1)),
            ("↓", "move down", lambda _: panel.move(place, 1)),
            ("copy", "duplicate this item", lambda _: panel.duplicate(place)),
            ("remove", "remove this item", lambda _: panel.remove(place)),
        ]
        self.up, self.down, self.copy, self.away = (
            button(words, what, panel.guarded(act)) for words, what, act in acts
        )
        self.buttons = row(self.up, self.down, self.copy, self.away)
        self.widgets = (self.mark, self.title, self.context, self.buttons)

    def close(self) -> None:
        """Close its widgets; those of a row that is not shown would not be found among the panel's."""
        for widget in self.widgets:
            for one in list(widgets_in(widget)):
                one.close()


def _stands(one: Row, place: int, done: int, then: int, current: int | None) -> str:
    """How a row stands: ``done`` counts the items that are done now, ``then`` those behind the cursor after Apply."""
    new = one.origin is None
    if place == current:
        return "new, current" if new else "current"
    if place >= then:
        return "new" if new else "open"
    return "done" if one.origin is not None and one.origin < done else "passed over"


def _upcoming(rules: Rules, state: CastState) -> Item | None:
    """The item that is worked on, or that the next socket would work on; None outside items."""
    if state.status == "ready" and state.next is not None:
        state = engine.enter(rules, state).state
    return state.at.item if state.status in ("waiting", "held") and state.at is not None else None


def _progress(rules: Rules, state: CastState) -> tuple[int, int | None]:
    """How many work items are done, and which one is worked on or comes next."""
    loops = [loop.iterator for loop in rules.graph.loops.values() if loop.iterator is not None]
    done = [state.cursors.get(one.cursor, 0) for one in loops if one.items == WORK_ITEMS]
    item = _upcoming(rules, state)
    current = item.position if item is not None and item.key == f"WI-{item.position + 1}" else None
    return max(done, default=0), current


def _typing(panel: ItemsPanel, place: int, field: str) -> Callable[[Any], None]:
    return lambda change: panel.typed(place, field, change["new"])
