"""The panel of the quest board, driven as a person does: no browser, no kernel."""

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


def told(panel):
    """What the panel shows a person as HTML."""
    return "\n".join(one.value for one in widgets_in(panel.view) if isinstance(one, HTML))


def order(panel):
    return [quest.request for quest in panel.board.quests]


def statuses(panel):
    return [quest.status for quest in panel.board.quests]


def ran(panel):
    assert runs_of(panel.board).wait(30)
    panel.refresh()


def test_quests_are_put_in_order_by_buttons(panel):
    assert panel.quest.value == "Q-1"
    assert panel.up_button.disabled
    panel.down_button.click()
    assert order(panel) == ["two", "one", "three"]
    assert panel.quest.value == "Q-1", "the quest stays chosen where it went"
    panel.quest.value = "Q-3"
    assert panel.down_button.disabled
    panel.top_button.click()
    panel.quest.value = "Q-1"
    panel.up_button.click()
    assert order(panel) == ["three", "one", "two"]
    places = [told(panel).index(word) for word in ("three", "one", "two")]
    assert places == sorted(places)
    panel.remove_button.click()
    assert order(panel) == ["three", "two"]
    assert panel.quest.value is None, "the second click of a double click must not remove another quest"


def test_a_late_click_on_a_button_of_another_quest_is_refused(panel):
    late = panel.remove_button
    panel.quest.value = "Q-2"
    late.click()
    assert order(panel) == ["two", "three"], "the button still names the quest that it was shown for"
    late.click()
    assert order(panel) == ["two", "three"]
    assert "has changed since this was shown" in panel.notice.value


def test_a_run_that_was_shown_for_another_next_quest_is_refused(panel):
    late = panel.next_button
    panel.board.move("Q-3", "top")
    panel.refresh()
    late.click()
    ran(panel)
    assert statuses(panel) == ["pending"] * 3
    assert "has changed since this was shown" in panel.notice.value
    panel.next_button.click()
    ran(panel)
    assert statuses(panel) == ["done", "pending", "pending"]
    assert order(panel)[0] == "three"


def test_a_quest_that_was_requeued_elsewhere_is_not_requeued_again(panel, wb):
    panel.next_button.click()
    ran(panel)
    panel.quest.value = "Q-1"
    late = panel.requeue_button
    wb.quests.requeue("Q-1")
    wb.quests.run(1)
    cast = wb.quests.find("Q-1").cast
    late.click()
    assert wb.quests.find("Q-1").cast == cast, "its new cast is kept"
    assert "has changed since this was shown" in panel.notice.value


def test_adding(panel):
    assert panel.add_button.disabled
    panel.request.value = "four"
    panel.loadout.value = "Hello-Utility"
    assert not panel.add_button.disabled
    panel.add_button.click()
    assert order(panel)[-1] == "four"
    assert panel.board.quests[-1].loadout == "Hello-Utility"
    assert panel.request.value == ""
    assert "four" in told(panel)


def test_running_goes_on_in_the_background_and_the_panel_follows(panel, wb):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return "ok"

    wb.agent("Answer", slow)
    panel.next_button.click()
    assert begun.wait(30)
    panel.refresh()
    assert panel.all_button.disabled
    assert panel.remove_button.disabled
    assert not panel.stop_button.disabled
    assert "running" in told(panel)
    with pytest.raises(MateriaError, match="A step is running"):
        runs_of(panel.board).start(panel.board.run)
    panel.request.value = "meanwhile"
    panel.add_button.click()
    assert order(panel)[-1] == "meanwhile"
    go_on.set()
    ran(panel)
    assert statuses(panel) == ["done", "pending", "pending", "pending"]
    panel.all_button.click()
    ran(panel)
    assert statuses(panel) == ["done"] * 4
    assert panel.all_button.disabled
    assert "No quest is left" in told(panel)
    panel.quest.value = "Q-1"
    panel.requeue_button.click()
    assert statuses(panel)[0] == "pending"
    assert not panel.all_button.disabled


def test_a_person_is_waited_for_and_the_cast_is_the_current_one(panel, wb):
    wb.agent("Answer", "person")
    panel.all_button.click()
    ran(panel)
    assert "A person must act" in told(panel)
    assert statuses(panel) == ["waiting", "pending", "pending"]
    assert wb.current.id == panel.board.quests[0].cast
    wb.current.reply("here")
    wb.agent("Answer", lambda: "ok")
    panel.all_button.click()
    ran(panel)
    assert statuses(panel) == ["done"] * 3


def test_stop(panel, wb):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return "ok"

    wb.agent("Answer", slow)
    panel.all_button.click()
    assert begun.wait(30)
    panel.refresh()
    panel.stop_button.click()
    go_on.set()
    ran(panel)
    assert statuses(panel) == ["waiting", "pending", "pending"]
    assert "Stopped" in told(panel)


def test_what_fails_is_told_in_the_panel(panel):
    panel.board.path.write_text("{")
    panel.refresh()
    assert "not a quest board" in panel.notice.value
    panel.request.value = "x"
    panel.add_button.click()
    assert panel.board.path.read_text() == "{"
    panel.board.path.unlink()
    panel.all_button.click()
    ran(panel)
    assert "No quests yet" in told(panel)


def test_an_error_of_a_run_is_told(panel, wb):
    wb.loadouts.define("Bad", {"entry": "X", "sockets": {}})
    wb.use("Bad")
    panel.all_button.click()
    ran(panel)
    assert "Bad" in panel.notice.value
    assert statuses(panel) == ["pending"] * 3


def test_hostile_text_is_escaped(panel, wb):
    wb.agent("Answer", lambda: 1 / len(HOSTILE * 0))
    wb.quests.add(HOSTILE)
    wb.quests.move(4, "top")
    panel.all_button.click()
    ran(panel)
    panel.fail(ValueError(HOSTILE))
    assert "&lt;img" in told(panel)
    assert "<img" not in told(panel)


def test_nothing_is_left_behind_when_it_is_closed(wb):
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


def test_the_verb_alone_shows_it_and_again_replaces_it(wb):
    shell = new_shell(wb)
    wb.quests.add("one")
    first = shell.run_line_magic("materia", "quest")
    assert isinstance(first, QuestPanel)
    assert "Q-1" in first._repr_mimebundle_()["text/plain"]
    second = shell.run_line_magic("materia", "quest")
    assert first.closed
    second.close()
