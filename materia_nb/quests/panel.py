"""The quest board with buttons: add, put in order, queue again, run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as ui

from materia_nb.cast.views.tables import QUEST_COLUMNS, quest_row, quests_view
from materia_nb.display.escape import html_lines, html_table, html_text, part
from materia_nb.quests import WORDS
from materia_nb.widgets.base import Panel, button, row, runs_of, show_html, show_panel

if TYPE_CHECKING:
    from materia_nb.quests import QuestBoard
    from materia_nb.store.board import Quest

_LONGEST_LABEL = 60


class QuestPanel(Panel):
    """The quests of a project in a table. What runs does so in the background, and the kernel stays free.

    Args:
        board: which.
    """

    interval = 0.2

    def __init__(self, board: QuestBoard) -> None:
        super().__init__("quests")
        self.board = board
        self.runs = runs_of(board)
        self._table, self._status = ui.HTML(), ui.HTML()
        self.quest = ui.Dropdown(description="quest", options=[], layout=ui.Layout(width="420px"))
        self.quest.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.request = ui.Textarea(
            placeholder="what is asked for", rows=2, layout=ui.Layout(width="420px", height="auto")
        )
        self.request.observe(self.guarded(lambda _: self.refresh()), names="value")
        chosen = [("the chosen loadout", None)]
        self.loadout = ui.Dropdown(
            options=[*chosen, *((part(name), name) for name in board.loadouts)],
            layout=ui.Layout(width="200px"),
        )
        self._make_buttons()
        self.put(
            self._table,
            row(self.quest, self.up_button, self.down_button, self.top_button),
            row(self.requeue_button, self.remove_button),
            row(self.request, self.loadout, self.add_button),
            row(self.next_button, self.all_button, self.stop_button),
            self._status,
        )
        self.at_close(board.watch(self.later))
        self.follow_runs(self.runs)
        self.refresh()

    def _make_buttons(self) -> None:
        board, chosen = self.board, self._for_chosen
        self.up_button = button("Up", "run the quest earlier", chosen(lambda id_: board.move(id_, "up")))
        self.down_button = button("Down", "run the quest later", chosen(lambda id_: board.move(id_, "down")))
        self.top_button = button("Top", "run the quest first", chosen(lambda id_: board.move(id_, "top")))
        self.requeue_button = button(
            "Requeue", "cast the quest anew when its turn comes", chosen(board.requeue)
        )
        self.remove_button = button(
            "Remove", "take the quest off the board; its cast stays", chosen(board.remove), style="danger"
        )
        self.add_button = button("Add", "put the request at the end of the board", self.guarded(self._add))
        self.next_button = button(
            "Run next",
            "go on with the quest that waits, else cast the next",
            self._begin(lambda: board.run(1)),
        )
        self.all_button = button(
            "Run all",
            "cast one after another, until a person must act",
            self._begin(board.run),
            style="primary",
        )
        self.stop_button = button(
            "Stop", "stop after, or if it can be stopped within, the step that runs", self.guarded(self._stop)
        )

    def fallback(self) -> tuple[str, str | None]:
        """Return the table as text."""
        return repr(quests_view(self.board.quests)), None

    # -- what a person does -----------------------------------------------------------

    def _for_chosen(self, act: Callable[[str], object]) -> Callable[[Any], None]:
        def run(_: Any) -> None:
            if self.quest.value is not None:
                act(self.quest.value)
            self.refresh()

        return self.guarded(run)

    def _begin(self, act: Callable[[], object]) -> Callable[[Any], None]:
        def begin(_: Any) -> None:
            self.runs.start(act)
            self.refresh()

        return self.guarded(begin)

    def _add(self, _: Any) -> None:
        self.board.add(self.request.value, loadout=self.loadout.value)
        self.request.value = ""
        self.refresh()

    def _stop(self, _: Any) -> None:
        self.board.stop()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring table, choice and buttons up to date."""
        quests, busy = self.board.quests, self.runs.busy_for(self)
        rows = map(quest_row, quests)
        table = html_table(QUEST_COLUMNS, rows, caption="quests, in their order")
        show_html(self._table, table if quests else html_text("no quests yet"))
        self._offer(quests)
        at = next((n for n, one in enumerate(quests) if one.id == self.quest.value), None)
        running = at is not None and quests[at].status == "running"
        for one in (self.up_button, self.top_button):
            one.disabled = not at
        self.down_button.disabled = at is None or at + 1 == len(quests)
        self.remove_button.disabled = at is None or running
        self.requeue_button.disabled = at is None or running or quests[at].status == "pending"
        self.add_button.disabled = not self.request.value.strip()
        left = any(one.status in ("pending", "waiting") for one in quests)
        self.next_button.disabled = self.all_button.disabled = busy or not left
        self.stop_button.disabled = not busy
        outcome = WORDS.get(str(self.runs.outcome), "")
        show_html(self._status, html_lines(["running"] if busy else filter(None, [outcome])))

    def _offer(self, quests: tuple[Quest, ...]) -> None:
        """Offer the quests to choose from; the one that was chosen stays chosen."""
        options = tuple((part(f"{one.id} {one.request}", _LONGEST_LABEL), one.id) for one in quests)
        if self.quest.options == options:
            return
        before = self.quest.value
        self.quest.options = options
        self.quest.value = (
            before if any(id_ == before for _, id_ in options) else (options[0][1] if options else None)
        )


def show_quests(board: QuestBoard) -> QuestPanel:
    """Make the panel of a board; what earlier runs of the same cell showed is closed."""
    return show_panel("quests", lambda: QuestPanel(board))
