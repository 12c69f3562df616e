"""The state as a tree, what the last step changed in it, and changing one value."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.html import Html, html_join, html_json, html_table
from materia_nb.handoff import NotJson, strict_json
from materia_nb.jsonvalue import JSON, MISSING, compact, get_path, pretty, split_path
from materia_nb.views import JsonView, marks_of
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, heading, lines_html, row, show_if
from materia_nb.widgets.jsonhelp import json_advice
from materia_nb.widgets.paths import differences, paths_in
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot

_MOST_CHANGES: Final = 60
_VALUE_CHARS: Final = 300


class StatePanel(Panel):
    """The state of a cast, to look at and to change between steps, one value at a time."""

    interval = 0.2

    def __init__(self, cast: Cast) -> None:
        super().__init__("state")
        self.cast = cast
        self._seen: object = None
        self._tree, self._changes, self._limits, self._told = ui.HTML(), ui.HTML(), ui.HTML(), ui.HTML()
        self.path = ui.Combobox(
            placeholder="path, such as workItems.0.title",
            ensure_option=False,
            continuous_update=False,
            layout=ui.Layout(width="320px"),
        )
        self.path.observe(self.guarded(self._chosen), names="value")
        self.value = ui.Textarea(
            placeholder='the value as JSON: "text", 3, true, [...]', rows=4, layout=ui.Layout(width="auto")
        )
        self.value.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.apply_button = button(
            "Apply", "set this value in the state", self.guarded(self._apply), style="primary"
        )
        self.remove_button = button("Remove", "take this path out of the state", self.guarded(self._remove))
        self.undo_button = button("Undo", "take the last edit of the cast back", self.guarded(self._undo))
        self.watch_button = button(
            "Stop on change", "runs stop behind a step that changes this path", self.guarded(self._watch)
        )
        self.clear_button = button(
            "Watch nothing", "runs stop on no change any more", self.guarded(self._watch_nothing)
        )
        self._watched = ui.HTML()
        edit = ui.VBox(
            [
                self.above_notice(
                    row(self.path, self.apply_button, self.remove_button, self.undo_button, self.watch_button)
                ),
                self.value,
                self._told,
                row(self._watched, self.clear_button),
            ]
        )
        self.put(self._changes, self._tree, edit, self._limits)
        self.follow(cast)
        self.at_close(runs_of(cast).watch(lambda _: self.later()))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the state as text."""
        return repr(JsonView("state", dict(self.cast.state))), None

    # -- what a person does -----------------------------------------------------------

    def _chosen(self, change: Any) -> None:
        found = get_path(dict(self.cast.state), split_path(change["new"]))
        if change["new"] and found is not MISSING:
            self.value.value = pretty(found)
        self.refresh()

    def _apply(self, _: Any) -> None:
        self._set(strict_json(self.value.value)[0])

    def _remove(self, _: Any) -> None:
        self._set(MISSING)

    def _set(self, value: JSON) -> None:
        runs_of(self.cast).refuse_while_busy()
        self.cast.edit_value(self.path.value, value)
        self.refresh()

    def _watch(self, _: Any) -> None:
        self.cast.break_on(self.path.value)
        self.refresh()

    def _watch_nothing(self, _: Any) -> None:
        for path in tuple(self.cast.watchpoints):
            self.cast.clear_breaks(path=path)
        self.refresh()

    def _undo(self, _: Any) -> None:
        runs_of(self.cast).refuse_while_busy()
        self.cast.undo()
        self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring tree, changes and buttons up to date; what a person typed stays."""
        cast, shown = self.cast, self.past or self.cast
        now = shown.now
        if self._seen is not now:
            self._seen = now
            data = dict(now.data)
            title = "state" if self.past is None else "state, as it was"
            show_html(self._tree, html_join([heading(title), html_json(data, 1)]))
            show_html(self._changes, _changes_html(shown))
            show_html(self._limits, _limits_html(shown))
            self.path.options = tuple(paths_in(data))
        trouble = self._trouble()
        show_html(self._told, trouble)
        busy = self.past is not None or runs_of(cast).busy_for(self)
        edits, path = cast.edits, split_path(self.path.value)
        watched = [f"state.{path}" for path in cast.watchpoints]
        show_html(self._watched, lines_html([f"runs stop when a step changes {', '.join(watched)}"]))
        show_if(self._watched, bool(watched))
        show_if(self.clear_button, bool(watched))
        self.watch_button.disabled = not path
        self.apply_button.disabled = bool(trouble) or busy or not path or not self.value.value.strip()
        self.remove_button.disabled = busy or get_path(dict(now.data), path) is MISSING or not path
        self.undo_button.disabled = busy or not edits or edits[-1].after is not now

    def _trouble(self) -> str:
        if not self.value.value.strip():
            return ""
        try:
            strict_json(self.value.value)
        except NotJson as error:
            return f"Not JSON: {json_advice(self.value.value) or error}."
        return ""


def _changes_html(cast: Snapshot) -> Html:
    if not cast.steps:
        return lines_html(["No step has changed the state yet."])
    last = cast.steps[-1]
    found = list(islice(differences(last.before.data, last.after.data), _MOST_CHANGES + 1))
    title = f"step {last.number} ({last.socket}) changed"
    if not found:
        return html_join([heading(title), lines_html(["nothing"])])
    rows = [(one.path, one.what, _text(one.before), _text(one.after)) for one in found[:_MOST_CHANGES]]
    if len(found) > _MOST_CHANGES:
        rows.append(("…", "more", "", ""))
    return html_join([heading(title), html_table(("path", "", "before", "after"), rows)])


def _text(value: JSON) -> str:
    if value is MISSING:
        return ""
    text = compact(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}… ({len(text)} characters)"


def _limits_html(cast: Snapshot) -> Html:
    now, limits = cast.now, cast.graph.limits
    rows = [(f"cursor {name}", str(place), "") for name, place in now.cursors.items()]
    rows += [
        (f"edge {place + 1} of {socket}", str(used), str(limit))
        for (socket, place), (used, limit) in marks_of(cast).budgets.items()
    ]
    most = now.budget.max_tokens
    rows.append(("tokens", str(now.usage.tokens), "no limit" if most is None else str(most)))
    rows.append(("repairs of one visit", str(now.at.repairs) if now.at else "", str(limits.repair_attempts)))
    rows.append(("cycles without advance", "", str(limits.max_no_advance_cycles)))
    return html_join([heading("cursors and limits"), html_table(("", "now", "limit"), rows)])
