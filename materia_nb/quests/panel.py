"""The panel of the quest board, with buttons to add, move, requeue and run quests."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.cast.views.tables import QUEST_COLUMNS, quest_row, quests_view
from materia_nb.display.escape import html_lines, html_table, html_text, part
from materia_nb.quests import STOP_MESSAGES, next_quest, run_state
from materia_nb.widgets.base import Panel, button, row, runs_of, show_html, show_panel

if TYPE_CHECKING:
    from materia_nb.quests import QuestBoard
    from materia_nb.store.design_autosave import Quest

_MAX_LABEL_CHARS: Final = 60
_CLICK_DELAY_S: Final = 0.6
"""Time for which buttons ignore clicks after a click or a change of the quest, in seconds."""


class _ButtonRow:
    """A row of buttons for one quest, as it was displayed when the buttons were created.

    When the quest changes, new buttons replace the old buttons. The old buttons still exist until the next change: a
    late click on an old button is refused as ``outdated`` instead of acting on another quest. The second click of a
    double click is ignored, also on a replaced button.
    """

    def __init__(self, make: Callable[[Quest | None], list[ui.Button]]) -> None:
        self.view = row()
        self._make = make
        self._earlier: tuple[ui.Button, ...] = ()
        self._subject: object = ...
        self._inert_until = 0.0

    def button(self, label: str, tooltip: str, act: Callable[[Any], None], *, style: str = "") -> ui.Button:
        """Return a button that ignores clicks for a short time after a change of the row."""

        def click(event: Any) -> None:
            if monotonic() >= self._inert_until:
                act(event)
                self._inert_until = monotonic() + _CLICK_DELAY_S

        return button(label, tooltip, click, style=style)

    def show(self, quest: Quest | None) -> None:
        """Replace the buttons if they were created for another quest or another status of the quest."""
        subject = None if quest is None else run_state(quest)
        if subject != self._subject:
            self.close_earlier()
            self._earlier, self.view.children = self.view.children, self._make(quest)
            if self._subject is not ...:
                self._inert_until = monotonic() + _CLICK_DELAY_S
            self._subject = subject

    def close_earlier(self) -> None:
        for earlier in self._earlier:
            earlier.close()
        self._earlier = ()


class QuestPanel(Panel):
    """A panel with the quests of a project in a table. Quests run in the background, so the kernel stays free.

    Args:
        board: the board.
    """

    interval = 0.2

    def __init__(self, board: QuestBoard) -> None:
        super().__init__("quests")
        self.board = board
        self.runs = runs_of(board)
        self._table, self._status = ui.HTML(), ui.HTML()
        self.quest = ui.Dropdown(description="quest", options=[], layout=ui.Layout(width="420px"))
        self.quest.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.request = ui.Textarea(placeholder="request", rows=2, layout=ui.Layout(width="420px", height="auto"))
        self.request.observe(self.guarded(lambda _: self.refresh()), names="value")
        names = [("the chosen loadout", None), *((part(name), name) for name in board.loadouts)]
        self.loadout = ui.Dropdown(options=names, layout=ui.Layout(width="200px"))
        self.add_button = button("Add", "Add the request at the end of the board", self.guarded(self._add))
        stop = self.guarded(lambda _: board.stop())
        self.stop_button = button("Stop", "Stop during the current step if possible, or else after the step", stop)
        self._quest_buttons = _ButtonRow(self._make_quest_buttons)
        self._run_buttons = _ButtonRow(self._make_run_buttons)
        self.put(
            self._table,
            self.quest,
            self._quest_buttons.view,
            row(self.request, self.loadout, self.add_button),
            row(self._run_buttons.view, self.stop_button),
            self._status,
        )
        for buttons in (self._quest_buttons, self._run_buttons):
            self.at_close(buttons.close_earlier)
        self.at_close(board.watch(self.later))
        self.follow_runs(self.runs)
        self.refresh()

    def _make_quest_buttons(self, quest: Quest | None) -> list[ui.Button]:
        """Return the buttons for the selected quest."""
        board, make = self.board, self._quest_buttons.button

        def acting(act: Callable[[Quest], object]) -> Callable[[Any], None]:
            def run(_: Any) -> None:
                if quest is not None:
                    act(quest)
                self.refresh()

            return self.guarded(run)

        self.up_button = make("Up", "Move the quest up", acting(lambda quest: board.move(quest, "up")))
        self.down_button = make("Down", "Move the quest down", acting(lambda quest: board.move(quest, "down")))
        self.top_button = make("Top", "Move the quest to the top", acting(lambda quest: board.move(quest, "top")))
        self.requeue_button = make("Requeue", "Cast the quest again when its turn comes", acting(board.requeue))
        self.remove_button = make("Remove", "Remove the quest, but keep its cast", acting(board.remove), style="danger")
        return [self.up_button, self.down_button, self.top_button, self.requeue_button, self.remove_button]

    def _make_run_buttons(self, first: Quest | None) -> list[ui.Button]:
        """Return the buttons that run the board.

        The run starts with ``first``, the quest that is displayed as the next quest.
        """
        make = self._run_buttons.button

        def running(count: int | None) -> Callable[[Any], None]:
            def start(_: Any) -> None:
                self.runs.start(lambda: self.board.run(count, first=first))
                self.refresh()

            return self.guarded(start)

        self.next_button = make("Run next", "Continue the waiting quest, or cast the next quest", running(1))
        self.all_button = make(
            "Run all", "Cast one quest after another until a person must act", running(None), style="primary"
        )
        return [self.next_button, self.all_button]

    def fallback(self) -> tuple[str, str | None]:
        """Return the board as a text table."""
        return repr(quests_view(self.board.quests)), None

    def _add(self, _: Any) -> None:
        if self.request.value.strip():  # the field is empty at the second click of a double click
            self.board.add(self.request.value, loadout=self.loadout.value)
            self.request.value = ""
            self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Update the table, the selection and the buttons."""
        quests, is_busy = self.board.quests, self.runs.busy_for(self)
        table = html_table(QUEST_COLUMNS, map(quest_row, quests), caption="quests, in order")
        show_html(self._table, table if quests else html_text("No quests yet. Write a request and press Add."))
        self._offer(quests)
        index = next((index for index, quest in enumerate(quests) if quest.id == self.quest.value), None)
        chosen = None if index is None else quests[index]
        self._quest_buttons.show(chosen)
        self._run_buttons.show(next_quest(quests))
        is_running = chosen is not None and chosen.status == "running"
        self.up_button.disabled = self.top_button.disabled = not index
        self.down_button.disabled = index is None or index + 1 == len(quests)
        self.remove_button.disabled = chosen is None or is_running
        self.requeue_button.disabled = chosen is None or is_running or chosen.status == "pending"
        self.add_button.disabled = not self.request.value.strip()
        self.next_button.disabled = self.all_button.disabled = is_busy or next_quest(quests) is None
        self.stop_button.disabled = not is_busy
        outcome = STOP_MESSAGES.get(str(self.runs.outcome), "")
        show_html(self._status, html_lines(["running"] if is_busy else filter(None, [outcome])))

    def _offer(self, quests: tuple[Quest, ...]) -> None:
        """Update the list of quests to select from, and keep the selection.

        If the selected quest was removed, no quest is selected, so that a second click does not act on another quest.
        """
        options = tuple((part(f"{quest.id} {quest.request}", _MAX_LABEL_CHARS), quest.id) for quest in quests)
        if self.quest.options == options:
            return
        chosen, is_first = self.quest.value, not self.quest.options
        ids = [quest.id for quest in quests]
        self.quest.options = options
        self.quest.value = chosen if chosen in ids else ids[0] if is_first and ids else None


def show_quests(board: QuestBoard) -> QuestPanel:
    """Show the panel of a board; close the panel that an earlier run of the same cell showed."""
    return show_panel("quests", lambda: QuestPanel(board))
