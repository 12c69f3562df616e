"""The panel of the quest board, tested with simulated clicks, without a browser or a kernel."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from ipywidgets import HTML
from ipywidgets.widgets.widget import _instances as live

from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.quests.panel import QuestPanel
from materia_nb.widgets.base import runs_of, widgets_in

HOSTILE = "<img src=x onerror=window.__owned=1>"


@pytest.fixture
def wb(project):
    made = Workbench(project)
    made.use("Ask")
    made.agent("Answer", lambda turn: f"answered {turn.request}")
    yield made
    made.close()


@pytest.fixture
def panel(wb):
    for request in ("one", "two", "three"):
        wb.quests.add(request)
    made = QuestPanel(wb.quests)
    yield made
    made.close()


class Clock:
    """A clock that replaces the clock of the panel."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("materia_nb.quests.panel.monotonic", clock)
    return clock


@pytest.fixture
def press(clock):
    """Click a button after it has been readable, or some milliseconds after the previous click."""

    def press(button, after_ms=5000):
        clock.seconds += after_ms / 1000
        button.click()

    return press


def shown_html(panel):
    return "\n".join(widget.value for widget in widgets_in(panel.view) if isinstance(widget, HTML))


def order(panel):
    return [quest.request for quest in panel.board.quests]


def statuses(panel):
    return [quest.status for quest in panel.board.quests]


def ran(panel):
    assert runs_of(panel.board).wait(30)
    panel.refresh()


def test_buttons_reorder_quests(panel, press):
    assert panel.quest.value == "Q-1"
    assert panel.up_button.disabled
    press(panel.down_button)
    assert order(panel) == ["two", "one", "three"]
    assert panel.quest.value == "Q-1", "the quest stays chosen where it went"
    panel.quest.value = "Q-3"
    assert panel.down_button.disabled
    press(panel.top_button)
    panel.quest.value = "Q-1"
    press(panel.up_button)
    assert order(panel) == ["three", "one", "two"]
    places = [shown_html(panel).index(word) for word in ("three", "one", "two")]
    assert places == sorted(places)
    press(panel.remove_button)
    assert order(panel) == ["three", "two"]
    assert panel.quest.value is None, "the second click of a double click must not remove another quest"


def test_a_late_click_on_a_button_of_another_quest_is_refused(panel, press):
    late = panel.remove_button
    panel.quest.value = "Q-2"
    press(late)
    assert order(panel) == ["two", "three"], "the button still names the quest that it was shown for"
    press(late)
    assert order(panel) == ["two", "three"]
    assert "has changed since the board was shown" in panel.notice.value


DOUBLE_CLICKS = [80, 200, 350, 500]
"""Milliseconds between the two clicks."""


@pytest.mark.parametrize("after_ms", DOUBLE_CLICKS)
@pytest.mark.parametrize("name", ["up", "down", "top", "requeue", "remove"])
def test_a_double_click_on_a_quest_button_acts_once(panel, press, wb, name, after_ms):
    board = panel.board
    board.add("four")
    board.add("five")
    board.run(1)
    panel.quest.value = "Q-3" if name != "requeue" else "Q-1"
    panel.refresh()
    press(getattr(panel, f"{name}_button"))
    order_after_one, statuses_after_one = order(panel), statuses(panel)
    press(getattr(panel, f"{name}_button"), after_ms)
    assert (order(panel), statuses(panel)) == (order_after_one, statuses_after_one)
    assert panel.notice.value == ""


@pytest.mark.parametrize("after_ms", DOUBLE_CLICKS)
def test_second_click_does_not_run_the_next_quest(panel, press, after_ms):
    press(panel.next_button)
    ran(panel)
    press(panel.next_button, after_ms)
    ran(panel)
    assert statuses(panel) == ["done", "pending", "pending"]
    press(panel.next_button)
    ran(panel)
    assert statuses(panel) == ["done", "done", "pending"]


@pytest.mark.parametrize("after_ms", DOUBLE_CLICKS)
def test_click_on_buttons_that_have_just_changed_has_no_effect(panel, press, after_ms):
    panel.quest.value = "Q-2"
    press(panel.remove_button, after_ms)
    panel.board.move("Q-3", "top")
    panel.refresh()
    press(panel.all_button, after_ms)
    ran(panel)
    assert statuses(panel) == ["pending"] * 3


def test_error_of_the_first_click_is_kept_when_the_second_click_is_ignored(panel, press):
    press(panel.up_button)
    panel.board.path.write_text("{")
    press(panel.down_button)
    press(panel.down_button, 200)
    assert "not a quest board" in panel.notice.value


def test_a_double_click_adds_one_quest(panel, press):
    panel.request.value = "four"
    press(panel.add_button)
    press(panel.add_button, 200)
    assert order(panel) == ["one", "two", "three", "four"]
    assert panel.notice.value == ""


def test_run_button_is_refused_if_another_quest_is_next(panel, press):
    late = panel.next_button
    panel.board.move("Q-3", "top")
    panel.refresh()
    press(late)
    ran(panel)
    assert statuses(panel) == ["pending"] * 3
    assert "has changed since the board was shown" in panel.notice.value
    press(panel.next_button)
    ran(panel)
    assert statuses(panel) == ["done", "pending", "pending"]
    assert order(panel)[0] == "three"


def test_late_requeue_click_does_not_requeue_a_quest_again(panel, wb, press):
    press(panel.next_button)
    ran(panel)
    panel.quest.value = "Q-1"
    late = panel.requeue_button
    wb.quests.requeue("Q-1")
    wb.quests.run(1)
    cast = wb.quests.find("Q-1").cast
    press(late)
    assert wb.quests.find("Q-1").cast == cast, "its new cast is kept"
    assert "has changed since the board was shown" in panel.notice.value


def test_quest_panel_adds_quests(panel, press):
    assert panel.add_button.disabled
    panel.request.value = "four"
    panel.loadout.value = "Hello-Utility"
    assert not panel.add_button.disabled
    press(panel.add_button)
    assert order(panel)[-1] == "four"
    assert panel.board.quests[-1].loadout == "Hello-Utility"
    assert panel.request.value == ""
    assert "four" in shown_html(panel)


def test_quest_panel_is_updated_during_a_background_run(panel, wb, press):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return "ok"

    wb.agent("Answer", slow)
    press(panel.next_button)
    assert begun.wait(30)
    panel.refresh()
    assert panel.all_button.disabled
    assert panel.remove_button.disabled
    assert not panel.stop_button.disabled
    assert "running" in shown_html(panel)
    with pytest.raises(MateriaError, match="A step is running"):
        runs_of(panel.board).start(panel.board.run)
    panel.request.value = "meanwhile"
    press(panel.add_button)
    assert order(panel)[-1] == "meanwhile"
    go_on.set()
    ran(panel)
    assert statuses(panel) == ["done", "pending", "pending", "pending"]
    press(panel.all_button)
    ran(panel)
    assert statuses(panel) == ["done"] * 4
    assert panel.all_button.disabled
    assert "No quest is left" in shown_html(panel)
    panel.quest.value = "Q-1"
    press(panel.requeue_button)
    assert statuses(panel)[0] == "pending"
    assert not panel.all_button.disabled


def test_waiting_cast_becomes_the_current_cast(panel, wb, press):
    wb.agent("Answer", "person")
    press(panel.all_button)
    ran(panel)
    assert "The cast waits for a person" in shown_html(panel)
    assert statuses(panel) == ["waiting", "pending", "pending"]
    assert wb.current.id == panel.board.quests[0].cast
    wb.current.reply("here")
    wb.agent("Answer", lambda: "ok")
    press(panel.all_button)
    ran(panel)
    assert statuses(panel) == ["done"] * 3


def test_quest_panel_stops_a_run(panel, wb, press):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return "ok"

    wb.agent("Answer", slow)
    press(panel.all_button)
    assert begun.wait(30)
    panel.refresh()
    press(panel.stop_button)
    go_on.set()
    ran(panel)
    assert statuses(panel) == ["waiting", "pending", "pending"]
    assert "The run was stopped" in shown_html(panel)


def test_quest_panel_shows_failures(panel, press):
    panel.board.path.write_text("{")
    panel.refresh()
    assert "not a quest board" in panel.notice.value
    panel.request.value = "x"
    press(panel.add_button)
    assert panel.board.path.read_text() == "{"
    panel.board.path.unlink()
    press(panel.all_button)
    ran(panel)
    assert "No quests yet" in shown_html(panel)


def test_quest_panel_shows_an_error_of_a_run(panel, wb, press):
    wb.loadouts.define("Bad", {"entry": "X", "sockets": {}})
    wb.use("Bad")
    press(panel.all_button)
    ran(panel)
    assert "Bad" in panel.notice.value
    assert statuses(panel) == ["pending"] * 3


def test_hostile_text_is_escaped(panel, wb, press):
    wb.agent("Answer", lambda: 1 / len(HOSTILE * 0))
    wb.quests.add(HOSTILE)
    wb.quests.move(4, "top")
    press(panel.all_button)
    ran(panel)
    panel.fail(ValueError(HOSTILE))
    assert "&lt;img" in shown_html(panel)
    assert "<img" not in shown_html(panel)


def test_closing_a_quest_panel_removes_its_widgets_and_listeners(wb):
    wb.quests.add("one")
    before = set(live)
    made = QuestPanel(wb.quests)
    made.refresh()
    pages = [one for one in widgets_in(made.view) if isinstance(one, HTML)]
    assert any("one" in page.value for page in pages)
    made.close()
    assert set(live) == before
    wb.quests.add("two")
    assert not any("two" in page.value for page in pages)
    kept = weakref.ref(made)
    del made
    gc.collect()
    assert kept() is None, "the board watches it no more"


def test_quest_verb_shows_and_replaces_the_panel(wb):
    shell = new_shell(wb)
    wb.quests.add("one")
    first = shell.run_line_magic("materia", "quest")
    assert isinstance(first, QuestPanel)
    assert "Q-1" in first._repr_mimebundle_()["text/plain"]
    second = shell.run_line_magic("materia", "quest")
    assert first.closed
    second.close()
