"""The live panels, driven as a person does: values set, buttons clicked. No browser, no kernel."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets.widgets.widget import _instances as live

import materia_nb
from cast_helpers import item
from materia_nb import Workbench
from materia_nb.engine.replacing import replaced
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import MISSING, same
from materia_nb.widgets import bench as panels
from materia_nb.widgets.base import widgets_in
from materia_nb.widgets.bench import CastPanel
from materia_nb.widgets.handoff import HandoffPanel
from materia_nb.widgets.items import PAGE_ROWS, ItemsPanel
from materia_nb.widgets.paths import differences, paths_in
from materia_nb.widgets.reply import ReplyPanel
from materia_nb.widgets.rows import Rows
from materia_nb.widgets.runs import runs_of
from materia_nb.widgets.state import StatePanel
from materia_nb.widgets.timeline import TimelinePanel
from materia_nb.widgets.toolbar import ToolbarPanel

HOSTILE = "<img src=x onerror=window.__owned=1>"


@pytest.fixture
def make():
    """Make a panel that is closed at the end."""
    made = []

    def one(panel, *args, **kwargs):
        made.append(panel(*args, **kwargs))
        return made[-1]

    yield one
    for panel in made:
        panel.close()


def titles(cast):
    return [one["title"] for one in cast.work_items]


def done(cast):
    assert runs_of(cast).wait(30)


class Held:
    """An agent that answers when it is told to go on, so that a test can act while a step runs."""

    def __init__(self, output):
        self.begun, self.go_on, self._output = threading.Event(), threading.Event(), output

    def answer(self):
        self.begun.set()
        self.go_on.wait(30)
        return self._output


# -- items ----------------------------------------------------------------------------------


@pytest.fixture
def table(cast, make):
    cast.run(steps=1)
    return make(ItemsPanel, cast)


def shown(table):
    count = min(PAGE_ROWS, len(table.rows) - table.page * PAGE_ROWS)
    return [slot.title.value for slot in table._slots[:count]]


def test_an_item_is_edited_and_the_route_uses_it(cast, table):
    assert shown(table) == ["a", "b", "c"]
    assert table.apply_button.disabled
    table._slots[1].title.value = "better"
    assert not table.apply_button.disabled
    assert titles(cast) == ["a", "b", "c"], "nothing changes before Apply"
    table.apply_button.click()
    assert titles(cast) == ["a", "better", "c"]
    assert len(cast.edits) == 1
    assert table.apply_button.disabled
    cast.run()
    assert "better" in [label for socket, _, _, label in cast.route if socket == "Socket-2"]


def test_add_remove_move_and_copy_are_one_event_and_undone_as_one(cast, table):
    before = cast.work_items
    table._slots[0].down.click()
    assert shown(table) == ["b", "a", "c"]
    table._slots[2].away.click()
    table._slots[0].copy.click()
    assert shown(table) == ["b", "b", "a"]
    table.add_button.click()
    table._slots[3].title.value, table._slots[3].context.value = "new", "all of it"
    table.apply_button.click()
    assert titles(cast) == ["b", "b", "a", "new"]
    assert len(cast.edits) == 1
    table.undo_button.click()
    assert cast.work_items == before
    assert shown(table) == ["a", "b", "c"]


def test_r9_rules_are_checked_as_one_types(cast, table):
    table._slots[0].title.value = "  "
    assert table.apply_button.disabled
    assert "workItems.0.title" in table._issues.value
    assert "must not be blank" in table._issues.value
    table._slots[0].title.value = "said"
    assert table._issues.value == "" or "blank" not in table._issues.value
    assert not table.apply_button.disabled
    table.add_button.click()
    assert table.apply_button.disabled
    table.revert_button.click()
    assert shown(table) == ["a", "b", "c"]
    assert titles(cast) == ["a", "b", "c"]


def test_r13_the_cursor_follows_its_item_when_it_is_renamed_and_moved(cast, table):
    cast.run(until=lambda c: c.now.cursors.get("workItemIndex") == 1)
    table.refresh()
    assert [slot.mark.value for slot in table._slots] == ["WI-1 done", "WI-2 current", "WI-3 open"]
    table._slots[1].title.value, table._slots[1].context.value = "other", "entirely"
    table._slots[1].down.click()
    assert [slot.mark.value for slot in table._slots] == ["WI-1 done", "WI-2 passed over", "WI-3 current"]
    table.apply_button.click()
    assert cast.now.cursors["workItemIndex"] == 2


def marks(table):
    return [slot.mark.value for slot in table._slots[: len(table.rows)]]


def test_the_marks_show_what_apply_will_make_current(cast, table):
    cast.run(until=lambda c: c.now.cursors.get("workItemIndex") == 1)
    table._slots[1].away.click()
    assert marks(table) == ["WI-1 done", "WI-2 current"], "the next item takes the place of the current one"
    table.apply_button.click()
    assert cast.upcoming_item.position == 1
    table.undo_button.click()
    table.add_button.click()
    for place in (3, 2, 1):
        table._slots[place].up.click()
    assert marks(table) == ["WI-1 passed over", "WI-2 done", "WI-3 current", "WI-4 open"]


def test_a_new_item_is_not_complained_of_before_something_is_typed(table):
    table.add_button.click()
    assert table._issues.value == ""
    assert table.apply_button.disabled
    assert "write the new item" in table._state.value
    table._slots[3].title.value = "a title"
    assert "workItems.3.context" in table._issues.value
    assert "mend" in table._state.value


def test_edits_are_kept_when_the_cast_changes_under_them(cast, table):
    table._slots[0].title.value = "mine"
    cast.edit_items([item("theirs")])
    table.refresh()
    assert "kept" in table._state.value
    assert shown(table) == ["mine", "b", "c"]
    table.apply_button.click()
    assert titles(cast) == ["mine", "b", "c"]
    cast.edit_items([item("theirs")])
    table.refresh()
    assert shown(table) == ["theirs"], "nothing was edited here, so the table follows"


def test_more_than_a_page(cast, table):
    cast.edit_items([item(f"n{n}") for n in range(40)])
    table.refresh()
    assert shown(table) == [f"n{n}" for n in range(PAGE_ROWS)]
    before = len(live)
    table.on_button.click()
    table.on_button.click()
    assert shown(table) == [f"n{n}" for n in range(30, 40)]
    table._slots[9].title.value = "last"
    table.add_button.click()
    assert table._slots[10].title.value == ""
    table.back_button.click()
    table._slots[0].down.click()
    assert shown(table)[:2] == ["n16", "n15"]
    assert len(live) == before, "rows are used again"
    table.revert_button.click()
    table.on_button.click()
    assert shown(table)[9] == "n39"


def test_editing_is_refused_with_the_reason_while_a_step_runs(bench, cast, table):
    held = Held("built")
    bench.agent("Build", held.answer)
    table._slots[0].title.value = "changed"
    runs_of(cast).start("Step", cast.step)
    assert held.begun.wait(30)
    table.refresh()
    assert table.apply_button.disabled
    table.guarded(table._apply)(None)
    assert "A step is running" in table.notice.value
    assert titles(cast) == ["a", "b", "c"]
    held.go_on.set()
    done(cast)
    table.refresh()
    assert not table.apply_button.disabled


ACTS = st.lists(st.tuples(st.sampled_from(["add", "remove", "up", "down", "copy"]), st.integers(0, 5)))


@given(st.integers(0, 5), ACTS)
def test_rows_know_where_they_came_from(count, acts):
    rows = Rows([item(str(n)) for n in range(count)])
    for act, at in acts:
        place = at % len(rows) if len(rows) else 0
        if act == "add":
            rows.add()
        elif not len(rows):
            continue
        elif act == "copy":
            rows.duplicate(place)
        elif act == "remove":
            rows.remove(place)
        else:
            rows.move(place, -1 if act == "up" else 1)
    known = [origin for origin in rows.origins if origin is not None]
    assert len(set(known)) == len(known)
    for origin, one in zip(rows.origins, rows.items, strict=True):
        assert origin is None or one["title"] == str(origin)


# -- state ----------------------------------------------------------------------------------


def test_a_value_in_the_state_is_changed_and_undone(cast, make):
    cast.run(steps=1)
    panel = make(StatePanel, cast)
    assert "workItems" in panel._changes.value
    panel.path.value = "workItems.1.title"
    assert panel.value.value == '"b"'
    panel.value.value = "{oops"
    assert panel.apply_button.disabled
    assert "Not JSON" in panel._told.value
    panel.value.value = '"z"'
    panel.apply_button.click()
    assert titles(cast) == ["a", "z", "c"]
    panel.undo_button.click()
    assert titles(cast) == ["a", "b", "c"]
    panel.path.value, panel.value.value = "flags.ready", "true"
    panel.apply_button.click()
    assert cast.state["flags"] == {"ready": True}
    panel.remove_button.click()
    assert cast.state["flags"] == {}


def test_r9_the_state_panel_does_not_break_the_work_items(cast, make):
    cast.run(steps=1)
    panel = make(StatePanel, cast)
    panel.path.value, panel.value.value = "workItems.0.title", '" "'
    panel.apply_button.click()
    assert "must not be blank" in panel.notice.value
    assert titles(cast) == ["a", "b", "c"]


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("xyz", min_size=1), JSONS, max_size=3), JSONS, st.data())
def test_a_path_is_set_where_it_is_and_nowhere_else(value, new, data):
    paths = paths_in(value)
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    made = replaced(value, path.split("."), new)
    for one in differences(value, made):
        assert one.path == path or one.path.startswith(f"{path}.")
    assert same(replaced(made, path.split("."), new), made)


def test_what_was_added_changed_and_removed():
    found = differences({"a": 1, "b": [1, 2], "c": 0}, {"a": True, "b": [1, 3, 4], "d": None})
    assert [(one.path, one.what) for one in found] == [
        ("a", "changed"),
        ("b.1", "changed"),
        ("b.2", "added"),
        ("c", "removed"),
        ("d", "added"),
    ]


@pytest.mark.parametrize("path", ["list.7", "list.x", "text.inside", "nothing"])
def test_a_path_that_leads_nowhere_is_refused(path):
    with pytest.raises(MateriaError):
        replaced({"list": [1], "text": "t"}, path.split("."), MISSING)


# -- handoff --------------------------------------------------------------------------------


def test_a_handoff_is_corrected_and_the_route_changes(cast, make):
    cast.run(steps=3)
    assert cast.next_socket == "Socket-2"
    panel = make(HandoffPanel, cast)
    assert "not yet" in panel._handoff.value
    assert panel.recommit_button.disabled
    panel.text.value = "{}"
    assert panel.recommit_button.disabled
    assert "$.satisfied" in panel._told.value
    panel.text.value = '{"satisfied": true}'
    panel.recommit_button.click()
    assert panel.notice.value == ""
    assert cast.next_socket == "Socket-4"
    assert [turn.mode for turn in cast.steps[-1].turns] == ["work", "correction"]
    assert "correction" in panel._handoff.value


def test_an_earlier_step_is_looked_at(cast, make):
    cast.run(steps=2)
    panel = make(HandoffPanel, cast)
    assert "built a" in panel._handoff.value
    panel.choice.value = 1
    assert "workItems" in panel._handoff.value
    assert panel._edit.layout.display == "none", "only the latest is corrected"
    cast.step()
    panel.refresh()
    assert panel.choice.value == 1


# -- reply ----------------------------------------------------------------------------------


def test_a_person_answers_with_what_is_wrong_shown_first(bench, cast, make):
    bench.agent("Eval", "person")
    cast.run()
    panel = make(ReplyPanel, cast)
    assert "satisfied" in panel._wanted.value
    assert "built a" in panel._prompt.value
    assert panel.send_button.disabled
    panel.text.value = "no json"
    assert panel.send_button.disabled
    assert "one JSON object" in panel._told.value
    panel.text.value = '{"satisfied": true}'
    panel.send_button.click()
    assert panel.notice.value == ""
    assert cast.steps[-1].decision.target == "Socket-4"
    assert panel.text.value == "" or panel._answer.layout.display == "none"


def test_a_draft_is_refined_and_accepted(bench, make):
    bench.load(
        {
            "activeLoadout": "Talk",
            "loadouts": {"Talk": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "M"}}}},
            "materia": {"M": {"tools": "none", "prompt": "p", "multiTurn": True}},
        }
    )
    bench.agent("M", lambda turn: f"{turn.kind} of {turn.prompt[-5:]}")
    cast = bench.cast("talk")
    cast.step()
    panel = make(ReplyPanel, cast)
    assert panel._turns.layout.display is None
    panel.message.value = "make it short"
    panel.refine_button.click()
    done(cast)
    panel.refresh()
    assert "refine of short" in panel._prompt.value
    panel.continue_button.click()
    done(cast)
    assert cast.next_socket == "end"


# -- toolbar --------------------------------------------------------------------------------


def test_a_cast_is_gone_through_with_buttons(cast, make):
    panel = make(ToolbarPanel, cast)
    panel.step_button.click()
    done(cast)
    assert len(cast.steps) == 1
    panel.socket.value = "Socket-4"
    panel.refresh()
    panel.to_button.click()
    done(cast)
    assert cast.next_socket == "Socket-4"
    panel.refresh()
    panel.socket.value = "Socket-5"
    panel.break_button.click()
    assert set(cast.breakpoints) == {"Socket-5"}
    assert "Socket-5" in panel._stops.value
    panel.break_button.click()
    assert cast.breakpoints == {}
    panel.socket.value = "Socket-55"
    panel.break_button.click()
    assert "has no socket" in panel.notice.value
    panel.socket.value = "Socket-5"
    panel.break_button.click()
    panel.run_button.click()
    done(cast)
    panel.refresh()
    assert cast.next_socket == "Socket-5"
    assert "breakpoint" in panel._status.value
    assert panel.progress["items"].value == 3
    panel.run_button.click()
    done(cast)
    panel.refresh()
    assert cast.status == "complete"
    assert panel.step_button.disabled
    assert panel.run_button.disabled


def test_two_buttons_at_once_do_one_thing(bench, cast, make):
    held = Held({"workItems": [item("a"), item("b")]})
    bench.agent("Plan", held.answer)
    panel = make(ToolbarPanel, cast)
    panel.step_button.click()
    assert held.begun.wait(30)
    assert panel.step_button.disabled
    panel.run_button.click()  # a click that was on its way when the buttons were greyed out
    assert "A step is running" in panel.notice.value
    assert not panel.pause_button.disabled
    held.go_on.set()
    done(cast)
    assert len(cast.steps) == 1


def test_a_run_is_paused_between_steps_and_goes_on(bench, cast, make):
    held = Held("built")
    bench.agent("Build", held.answer)
    panel = make(ToolbarPanel, cast)
    panel.run_button.click()
    assert held.begun.wait(30)
    panel.refresh()
    panel.pause_button.click()
    held.go_on.set()
    done(cast)
    panel.refresh()
    assert cast.route[-1][0] == "Socket-2"
    assert "paused" in panel._status.value
    panel.run_button.click()
    done(cast)
    assert cast.status == "complete"


def test_abort_ends_a_running_cast_and_recast_goes_on(bench, cast, make):
    held = Held({"workItems": [item("a")]})
    bench.agent("Plan", held.answer)
    panel = make(ToolbarPanel, cast)
    panel.run_button.click()
    assert held.begun.wait(30)
    panel.abort_button.click()
    held.go_on.set()
    done(cast)
    panel.refresh()
    assert cast.status == "aborted"
    assert not panel.recast_button.disabled
    panel.recast_button.click()
    done(cast)
    assert cast.status in ("ready", "waiting")


def test_an_error_in_a_run_appears_under_the_panel(cast, make):
    panel = make(ToolbarPanel, cast)

    def breaks(_):
        raise ValueError(HOSTILE)

    cast.break_at("Socket-2", breaks)
    panel.run_button.click()
    done(cast)
    assert "ValueError" in panel.notice.value
    assert HOSTILE not in panel.notice.value


def test_buttons_come_back_when_a_step_of_a_cell_has_ended(cast, make):
    held = Held("built")
    cast.agents.set("Build", held.answer)
    cast.run(steps=1)
    panel = make(ToolbarPanel, cast)
    enabled = threading.Event()
    step = threading.Thread(target=cast.step)
    step.start()
    assert held.begun.wait(10)
    panel.refresh()
    assert panel.run_button.disabled
    panel.run_button.observe(lambda change: change["new"] or enabled.set(), names="disabled")
    held.go_on.set()
    step.join()
    assert enabled.wait(10), "nothing told the panel that the step has ended"


def test_a_person_stops_the_run(bench, cast, make):
    bench.agent("Build", "person")
    panel = make(ToolbarPanel, cast)
    panel.run_button.click()
    done(cast)
    panel.refresh()
    assert cast.waiting_at.socket == "Socket-2"
    assert "a person must answer" in panel._status.value


def test_the_budget_is_a_bar(bench, cast, make):
    from materia_nb.agents import Reply, Usage

    bench.agent("Build", lambda turn: Reply("built", Usage(10, 5)))
    panel = make(ToolbarPanel, cast)
    assert panel.tokens.layout.display == "none"
    cast.set_budget(20)
    cast.run(steps=2)
    panel.refresh()
    assert (panel.tokens.value, panel.tokens.max, panel.tokens.bar_style) == (15, 20, "warning")
    assert panel._token_words.value == "tokens: 15 of 20"


# -- all together ------------------------------------------------------------------------------


def test_showing_again_does_not_leave_widgets_behind(cast):
    cast.run(steps=1)
    first = panels.show(cast)
    count = len(live)
    for _ in range(3):
        last = panels.show(cast)
    assert first.closed
    assert len(live) == count
    names = {name: panels.show_one(cast, name) for name in panels.PANELS}
    count = len(live)
    again = {name: panels.show_one(cast, name) for name in panels.PANELS}
    assert len(live) == count
    for panel in [last, *names.values(), *again.values()]:
        panel.close()


def test_closing_gives_every_widget_back(cast):
    cast.run(steps=1)
    before = len(live)
    for name in panels.PANELS:
        panels.PANELS[name](cast).close()
        assert len(live) == before, name
    CastPanel(cast).close()
    assert len(live) == before


def test_the_whole_has_a_fallback_and_says_who_is_waited_for(bench, cast, make):
    bench.agent("Plan", "person")
    panel = make(CastPanel, cast)
    cast.step()
    panel.refresh()
    assert "reply (waiting)" in panel.tabs.titles
    shown = panel._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert "waiting: Socket-1" in shown["text/plain"]


def test_a_socket_selected_in_the_graph_is_where_run_to_stops(cast, make):
    panel = make(CastPanel, cast)
    panel.graph.select("socket", "Socket-4")
    panel.toolbar.to_button.click()
    done(cast)
    assert cast.next_socket == "Socket-4"


def test_every_panel_can_be_imported_from_one_place():
    from materia_nb import widgets

    for name in widgets.__all__:
        assert getattr(widgets, name).__name__ == name


def test_hostile_text_is_text_in_every_panel(project, make):
    from materia_nb.widgets.base import widgets_in

    bench = Workbench(project)
    bench.load(
        {
            "activeLoadout": HOSTILE,
            "loadouts": {
                HOSTILE: {
                    "entry": "Socket-1",
                    "sockets": {
                        "Socket-1": {"materia": "M", "edges": [{"when": "always", "to": "Socket-2"}]},
                        "Socket-2": {"materia": "P"},
                    },
                }
            },
            "materia": {
                "M": {"label": HOSTILE, "tools": "none", "prompt": HOSTILE, "generator": True},
                "P": {"label": HOSTILE, "tools": "none", "prompt": f"{HOSTILE} {{{{lastOutput}}}}"},
            },
        }
    )
    bench.agent("M", lambda: {"workItems": [item(HOSTILE)], "context": HOSTILE})
    bench.agent("P", "person")
    cast = bench.cast(HOSTILE)
    cast.run()
    panel = make(CastPanel, cast)
    cast.edit_state({**cast.state, HOSTILE: HOSTILE})
    for one in (panel.toolbar, panel.items, panel.state, panel.handoff, panel.reply):
        one.fail(ValueError(HOSTILE))
        one.refresh()
    pages = [w.value for w in widgets_in(panel.view) if type(w).__name__ in ("HTML", "HTMLMath")]
    assert any("&lt;img" in page for page in pages)
    assert not any("<img" in page for page in pages)
    bench.close()


def test_the_verbs_show_and_panel(project, monkeypatch):
    monkeypatch.chdir(project)
    shell = InteractiveShell()
    materia_nb.load_ipython_extension(shell)

    def run(text):
        return shell.run_line_magic("materia", text)

    run("use Ask")
    run("cast hello")
    panel = run("show")
    assert isinstance(panel, CastPanel)
    alone = run("panel items")
    assert isinstance(alone, ItemsPanel)
    assert isinstance(run("panel items"), ItemsPanel)
    assert alone.closed
    with pytest.raises(MateriaError, match="no panel 'item'") as raised:
        run("panel item")
    assert "items" in raised.value.hint
    shell.user_ns["wb"].close()


def test_the_prompt_is_shown_before_it_is_asked_and_reworded_for_this_turn(cast, make):
    cast.step()
    panel = make(ReplyPanel, cast)
    assert panel.enter_button.layout.display is None
    panel.enter_button.click()
    assert cast.status == "waiting"
    assert panel.enter_button.layout.display == "none"
    wording = panel.wording
    assert wording.view.layout.display is None
    assert wording.apply_button.disabled
    assert wording._titled["repair"].layout.display == "none"
    wording.fields["materia"].value = f"Otherwise {HOSTILE}"
    wording.revert_button.click()
    assert "Otherwise" not in wording.fields["materia"].value
    wording.fields["materia"].value = f"Otherwise {HOSTILE}"
    wording.apply_button.click()
    assert cast.prompt.instruction == f"Otherwise {HOSTILE}"
    panel.refresh()
    assert HOSTILE not in panel._prompt.value
    assert "Otherwise" in panel._prompt.value
    assert wording.apply_button.disabled
    cast.run()
    panel.refresh()
    assert wording.view.layout.display == "none"


def test_every_layer_can_be_reworded_also_that_of_a_handoff_asked_for_later(bench, make):
    sockets = {"Socket-1": {"materia": "M", "parse": "json", "finalize": True}}
    bench.load(
        {
            "loadouts": {"Work": {"entry": "Socket-1", "sockets": sockets}},
            "materia": {"M": {"tools": "none", "prompt": "p"}},
        }
    )
    cast = bench.cast("it", loadout="Work")
    cast.enter()
    fields = make(ReplyPanel, cast).wording.fields
    assert fields["cast"].value.startswith("The request:\nit")
    cast.reply("the work")
    assert [layer.name for layer in cast.prompt.layers] == ["finalize", "return"]
    assert make(ReplyPanel, cast).wording.fields["finalize"].value


def test_runs_stop_when_a_watched_path_changes(cast, make):
    panel = make(CastPanel, cast)
    state, toolbar = panel.state, panel.toolbar
    assert state.watch_button.disabled
    state.path.value = "context"
    state.watch_button.click()
    assert "state.context" in state._watched.value
    toolbar.run_button.click()
    done(cast)
    toolbar.refresh()
    assert "a step changed state.context" in toolbar._status.value
    assert cast.steps[-1].socket == "Socket-3"
    state.clear_button.click()
    assert cast.watchpoints == {}
    assert state.clear_button.layout.display == "none"


# -- timeline -------------------------------------------------------------------------------


def moments(panel):
    return [re.sub(r" · [\d.]+ s", "", words) for words, _ in panel.steps.named]


def test_the_timeline_lists_every_step_and_shows_the_cast_as_it_was(cast, make):
    cast.run(steps=4)
    panel = make(CastPanel, cast)
    timeline = panel.timeline
    assert moments(timeline) == [
        "start",
        "1 · Socket-1 Plan → Socket-2",
        "2 · Socket-2 Build · WI-1 a → Socket-3",
        "3 · Socket-3 Eval · WI-1 a → Socket-2",
        "4 · Socket-2 Build · WI-1 a → Socket-3",
        "now",
    ]
    timeline.steps.list.value = (None, 1)
    assert "as it was after step 1" in timeline._moment.value
    assert panel.graph.marks.current == "Socket-2"
    assert panel.graph.selected == ("edge", "edge:0:Socket-1")
    assert "state, as it was" in panel.state._tree.value
    assert "built a" not in panel.state._tree.value
    assert "Handoff of step 1" in panel.handoff._handoff.value
    assert panel.state.apply_button.disabled
    timeline.steps.next.click()
    assert timeline.chosen == (None, 2)
    assert "Handoff of step 2" in panel.handoff._handoff.value
    panel.toolbar.step_button.click()
    done(cast)
    assert timeline.chosen == (None, -1), "going on shows the present"
    assert panel.graph.past is None


def test_choosing_a_handoff_shows_its_way_in_the_graph(cast, make):
    cast.run()
    panel = make(CastPanel, cast)
    panel.handoff.choice.value = 2
    assert panel.graph.selected == ("edge", "edge:0:Socket-2")
    left = next(step for step in cast.steps if step.decision.by == "exit")
    panel.handoff.choice.value = left.number
    assert panel.graph.selected == ("exit", left.decision.chosen.route)
    panel.handoff.choice.value = len(cast.steps)
    assert panel.graph.selected == ("edge", f"implied:{cast.steps[-1].socket}")
    assert "It was taken." in panel.graph._details.value


def test_looking_back_says_which_panels_show_the_present(cast, make):
    cast.run(steps=3)
    panel = make(CastPanel, cast)
    assert panel._looking_back.layout.display == "none"
    panel.timeline.select((None, 1))
    assert panel._looking_back.layout.display != "none"
    assert "as it was after step 1" in panel._then.value
    assert "items and reply are of the present" in panel._then.value
    panel.timeline.select((None, 0))
    assert "as it was at the start" in panel._then.value
    panel.now_button.click()
    assert panel._looking_back.layout.display == "none"
    assert panel.graph.past is None


def test_a_timeline_alone_shows_the_moment_itself(cast, make):
    cast.run(steps=4)
    timeline = make(panels.PANELS["timeline"], cast)
    timeline.select((None, 2))
    views = timeline._views
    assert "▶" in views["graph"].value
    assert "Handoff of step 2" in views["handoff"].value
    assert "workItems" in views["state"].value
    timeline.select((None, 1))
    assert "Handoff of step 1" in views["handoff"].value


def test_the_timeline_is_filtered_by_socket_and_item(cast, make):
    cast.run()
    timeline = make(CastPanel, cast).timeline
    timeline.filter.value = "Socket-3"
    assert all(" · Socket-3 " in words for words in moments(timeline)[:-1])
    timeline.filter.value = "WI-2"
    assert moments(timeline)
    assert all("WI-2" in words for words in moments(timeline)[:-1])
    timeline.filter.value = "no such thing"
    assert moments(timeline) == ["now"]
    assert "Socket-3" in timeline.filter.options
    assert "WI-2 b" in timeline.filter.options


def test_back_to_a_step_leaves_a_branch_that_can_be_looked_at(cast, make):
    cast.run(steps=5)
    panel = make(CastPanel, cast)
    timeline = panel.timeline
    assert timeline.back_button.disabled
    timeline.select((None, 2))
    assert not timeline.back_button.disabled
    timeline.back_button.click()
    assert len(cast.steps) == 2
    assert timeline.chosen == (None, -1)
    assert timeline.line.layout.display is None
    timeline.line.value = 0
    assert timeline.chosen == (0, 5)
    assert [words.split(" · ")[0] for words in moments(timeline)] == ["start", *"12345", "now"]
    assert "abandoned branch 1" in timeline._moment.value
    assert timeline.back_button.disabled
    assert timeline.fork_button.disabled
    timeline.now_button.click()
    assert panel.graph.past is None
    assert cast.edits == ()


def test_a_fork_is_shown_below_and_told(bench, cast, make):
    cast.run(steps=5)
    panel = make(CastPanel, cast, bench.take)
    panel.timeline.select((None, 3))
    panel.timeline.fork_button.click()
    assert bench.current is not cast
    assert [step.socket for step in bench.current.steps] == [step.socket for step in cast.steps[:3]]
    assert len(cast.steps) == 5
    assert len(panel._forks.children) == 2
    assert bench.current.id in panel._forks.children[0].value
    bench.current.close()


def test_a_waiting_step_cannot_be_gone_back_to(cast, make):
    cast.agents.set("Build", "person")
    cast.run()
    timeline = make(CastPanel, cast).timeline
    timeline.select((None, 2))
    assert cast.status == "waiting"
    assert timeline.back_button.disabled
    assert timeline.fork_button.disabled


def test_a_timeline_of_many_steps_is_cut_and_the_filter_finds_the_rest(monkeypatch, cast, make):
    monkeypatch.setattr("materia_nb.widgets.timeline.MOST_STEPS", 3)
    cast.run(steps=6)
    timeline = make(CastPanel, cast).timeline
    assert moments(timeline)[0].startswith("… 3 earlier steps")
    assert len(moments(timeline)) == 5
    timeline.filter.value = "Socket-1"
    assert moments(timeline)[0].startswith("1 · Socket-1")


def test_hostile_text_stays_text_in_the_timeline(bench, make):
    bench.agent("Plan", lambda: {"workItems": [{"title": HOSTILE, "context": HOSTILE}]})
    cast = bench.cast(HOSTILE)
    cast.run(steps=3)
    timeline = make(CastPanel, cast).timeline
    timeline.select((None, 3))
    assert "<img" not in timeline._why.value + timeline._moment.value


# -- where it says what went wrong ----------------------------------------------------------


@pytest.mark.parametrize(
    "panel, name",
    [
        (ToolbarPanel, "step_button"),
        (ItemsPanel, "apply_button"),
        (StatePanel, "apply_button"),
        (TimelinePanel, "back_button"),
        (ReplyPanel, "send_button"),
        (ReplyPanel, "enter_button"),
    ],
)
def test_an_error_stands_right_under_the_buttons(cast, make, panel, name):
    one = make(panel, cast)
    pressed = getattr(one, name)
    over = [
        box.children[-2] for box in widgets_in(one.view) if one.notice in getattr(box, "children", ())[1:]
    ]
    assert any(pressed in widgets_in(buttons) for buttons in over)
    assert one.notice is not one.view.children[-1]


def test_an_empty_request_is_pointed_out_until_the_first_step(bench, cast, make):
    assert "request is empty" not in make(ToolbarPanel, cast)._status.value
    empty = bench.cast("")
    toolbar = make(ToolbarPanel, empty)
    assert "request is empty" in toolbar._status.value
    assert "%materia cast" in toolbar._status.value
    empty.run(steps=1)
    toolbar.refresh()
    assert "request is empty" not in toolbar._status.value


def test_nearly_right_json_is_told_what_to_change(cast, make):
    cast.enter()
    reply, state = make(ReplyPanel, cast), make(StatePanel, cast)
    reply.text.value = '{"workItems": [],}'
    assert reply.send_button.disabled
    assert "take away the comma in front of }" in reply._told.value
    reply.text.value = "I do not know."
    assert "Not JSON yet" not in reply._told.value
    state.path.value, state.value.value = "done", "True"
    assert "write true for True" in state._told.value
    assert state.apply_button.disabled


def test_the_boxes_to_reword_a_prompt_are_as_high_as_what_is_in_them(cast, make):
    cast.enter()
    wording = make(ReplyPanel, cast).wording
    filled = [field for field in wording.fields.values() if field.value]
    assert all(4 <= field.rows <= 20 for field in filled)
    longest = max(filled, key=lambda field: len(field.value))
    assert longest.rows > 4


def test_r39_the_timeline_marks_the_steps_whose_outputs_told_events(bench, make):
    told = [{"type": "a"}, {"type": "b", "severity": "error"}]
    cast = bench.cast("x", agents={"Plan": lambda: {"workItems": [], "event": told}})
    cast.run()
    timeline = make(CastPanel, cast).timeline
    assert "2 events (error)" in moments(timeline)[1]


def test_what_an_abort_waits_for_is_told_and_a_second_press_does_no_harm(bench, cast, make):
    held = Held({"workItems": [item("a")]})
    bench.agent("Plan", held.answer)
    panel = make(ToolbarPanel, cast)
    panel.run_button.click()
    assert held.begun.wait(30)
    panel.abort_button.click()
    panel.abort_button.click()
    told = re.escape("aborting, waits for the function answer of Socket-1 to return (0 s)")
    assert re.search(told.replace("0", r"\d+"), panel._status.value)
    assert "stopping, waits for the function answer of Socket-1" in repr(cast)
    held.go_on.set()
    done(cast)
    panel.refresh()
    assert (cast.status, panel.notice.value) == ("aborted", "")
    assert cast.stopping is None
