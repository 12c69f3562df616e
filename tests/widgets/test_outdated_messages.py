"""Test that a page message takes effect once and only on the state that the page displayed."""

from __future__ import annotations

import pytest

import cast_helpers as h
import cast_scenes
from materia_nb.agents.interface import CallEvent, NeedsApproval, Reply, ToolCall
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.cast_slices import identity
from materia_nb.widgets.cast_surface import cast_messages
from materia_nb.widgets.frontend import parameters_of
from panel_helpers import from_page

VIEWS = {
    "select", "tab", "dock", "look", "row", "now", "line", "lane", "height", "dismiss", "compare", "show_cast", "mode", "follow"
}  # fmt: skip
"""Messages that change only the display of the panel and nothing in the cast."""
SETTINGS = {
    "pause", "budget", "break", "break_where", "clear_breaks", "watch", "disallow", "label", "pin", "page", "keep_test"
}  # fmt: skip
"""Messages whose effect does not depend on the state of the cast, because they are complete or only write a file."""

PLAN = [["A", "x"]]
VALUES = {
    "run_to": {"socket": "end"},
    "by_hand": {"text": h.YES},
    "pin_text": {"socket": "Socket-1", "text": h.YES},
    "skip": {"note": "not today"},
    "raise_budget": {"budget": "99999"},
    "reply": {"text": "mine"},
    "verdict": {"satisfied": True, "reason": ""},
    "items_answer": {"rows": PLAN, "reason": ""},
    "refine": {"text": "shorter"},
    "answer": {"text": "continue"},
    "decide": {"satisfied": True},
    "deny": {"reason": "no"},
    "edit_prompt": {"layers": {"task": "another"}},
    "edit_output": {"text": h.YES},
    "set_value": {"path": "note", "text": "1"},
    "remove_value": {"path": "workItems"},
    "items": {"rows": PLAN},
    "back": {"step": 0},
}
SCENES = {
    "step": cast_scenes.after_a_step,
    "run": cast_scenes.after_a_step,
    "run_to": cast_scenes.after_a_step,
    "run_item": cast_scenes.after_a_step,
    "retry": cast_scenes.in_a_mess,
    "retry_turn": cast_scenes.out_of_reach,
    "retry_limit": cast_scenes.out_of_turns,
    "by_hand": cast_scenes.in_a_mess,
    "pin_text": cast_scenes.failing_utility,
    "skip": cast_scenes.in_a_mess,
    "raise_budget": cast_scenes.over_budget,
    "reply": cast_scenes.with_a_tool,
    "items_answer": cast_scenes.by_a_person,
    "verdict": cast_scenes.in_lanes,
    "refine": cast_scenes.with_a_draft,
    "finalize": cast_scenes.with_a_draft,
    "answer": cast_scenes.held,
    "decide": cast_scenes.held,
    "allow": cast_scenes.with_a_tool,
    "deny": cast_scenes.with_a_tool,
    "enter": cast_scenes.after_a_step,
    "edit_prompt": cast_scenes.after_a_step,
    "edit_output": cast_scenes.in_a_mess,
    "set_value": cast_scenes.after_a_step,
    "remove_value": cast_scenes.after_a_step,
    "items": cast_scenes.after_a_step,
    "back": cast_scenes.come_to_its_end,
    "fork": cast_scenes.come_to_its_end,
    "again": cast_scenes.come_to_its_end,
}
"""Scenes in which each message is possible, by message; other messages need more than a stopped cast."""
ACTING = [
    kind
    for kind, message in cast_messages.messages.items()
    if any("identity" in parameters_of(guard) for guard in message.guards)
]


@pytest.fixture
def panel(tmp_path):
    """Return a function that creates panels of casts, which are closed after the test."""
    made = []

    def make(cast):
        made.append(CastPanel(cast))
        return made[-1]

    yield make
    for one in made:
        for cast in one.casts:
            cast.close()
        one.close()


def send(panel, message):
    panel.guarded(panel.on_message)(message)
    assert panel.runs.wait(30)
    panel.refresh()
    return panel.front.surface["notice"].get("words", "")


def assert_refused(panel, message):
    before = panel.cast.runner.session
    panel.guarded(panel.on_message)(message)
    assert panel.front.surface["notice"]["words"].startswith("Nothing was done")
    assert panel.front.surface["notice"]["tone"] == "fine"
    assert not panel.runs.busy
    assert panel.cast.runner.session is before


def test_every_message_that_changes_a_cast_must_identify_the_displayed_state(tmp_path, panel):
    messages = cast_messages.messages
    quiet = VIEWS | SETTINGS | {kind for kind, message in messages.items() if message.is_question}
    assert set(ACTING) == set(messages) - quiet
    cast_panel = panel(cast_scenes.after_a_step(tmp_path))
    for kind in ACTING:
        with pytest.raises(MateriaError, match="identity"):
            cast_panel.on_message({"kind": kind, **VALUES.get(kind, {})})


@pytest.mark.parametrize("kind", SCENES)
def test_message_that_is_sent_twice_takes_effect_once(tmp_path, panel, kind):
    cast_panel = panel(SCENES[kind](tmp_path))
    message = from_page(cast_panel, kind, **VALUES.get(kind, {}))
    before = cast_panel.cast
    session = before.runner.session
    assert "Nothing was done" not in send(cast_panel, message)
    assert before.runner.session is not session or cast_panel.cast is not before, "it did something"
    assert_refused(cast_panel, message)


@pytest.mark.parametrize("kind", [kind for kind in ACTING if kind not in ("abort", "again")])
def test_messages_about_an_abandoned_branch_are_refused(tmp_path, panel, kind):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2))
    cast.run(steps=4)
    cast_panel = panel(cast)
    message = from_page(cast_panel, kind, **VALUES.get(kind, {}))
    cast.back(2)
    cast.run(steps=2)
    assert len(cast.steps) == 4, "as many steps as were shown"
    cast_panel.refresh()
    assert_refused(cast_panel, message)


def test_action_from_an_outdated_second_display_is_refused(tmp_path, panel):
    cast = cast_scenes.by_a_person(tmp_path)
    first, second = panel(cast), panel(cast)
    behind = from_page(second, "reply", text=h.YES)
    send(first, from_page(first, "items_answer", rows=PLAN, reason=""))
    cast.run()
    assert cast.status == "waiting"
    assert_refused(second, behind)


def test_action_for_another_cast_is_refused(tmp_path, panel):
    cast_panel = panel(cast_scenes.come_to_its_end(tmp_path))
    messages = [from_page(cast_panel, kind) for kind in ("abort", "again", "step")]
    send(cast_panel, from_page(cast_panel, "fork", step=2))
    for message in messages:
        assert_refused(cast_panel, message)


class Smith:
    """An agent whose tool calls are numbered from 0 in each answer, as some model servers do."""

    name = "smith"

    def __init__(self, *commands):
        self.commands, self.ran, self.visits = commands, [], 0

    def answer(self, turn):
        if not turn.calls:
            self.visits += 1
        done = [call for call in turn.calls if call.result is not None]
        for call in turn.calls:
            if call.result is None:
                self.ran.append((call.args["command"], call.decided))
                done.append(ToolCall(id=call.id, tool="bash", args=call.args, round=call.round, result="done"))
                turn.report(CallEvent(done[-1]))
        number = self.visits - 1 + len(done)
        if number < len(self.commands) and len(done) < len(self.commands) - self.visits + 1:
            args = {"command": self.commands[number]}
            return NeedsApproval((ToolCall(id=f"call_{len(done)}", tool="bash", args=args, round=len(done) + 1),))
        return Reply("x")


def test_approval_covers_only_the_shown_command(tmp_path, panel):
    smith = Smith("ls", "rm -rf build")
    cast = h.start(tmp_path, h.chain_config(2), smith)
    cast.run()
    cast_panel = panel(cast)
    assert cast_panel.front.bar["asks"]["words"] == "bash ls"
    messages = [
        from_page(cast_panel, "allow"),
        from_page(cast_panel, "allow", always=True),
        from_page(cast_panel, "deny", reason=""),
    ]
    cast.back(0)
    cast.run()
    for message in messages:
        assert_refused(cast_panel, message)
    assert cast.approvals.asking[0].args == {"command": "rm -rf build"}
    assert smith.ran == []


def test_approval_of_a_command_does_not_cover_a_repeated_request(tmp_path, panel):
    smith = Smith("cat a.txt", "cat a.txt", "cat a.txt")
    cast = h.start(tmp_path, h.chain_config(1), smith)
    cast.run()
    cast_panel = panel(cast)
    message = from_page(cast_panel, "allow")
    send(cast_panel, message)
    assert cast_panel.front.bar["asks"]["words"] == "bash cat a.txt", "the second one"
    assert_refused(cast_panel, message)
    assert len(smith.ran) == 1


def test_action_stays_valid_if_a_name_or_breakpoint_is_added(tmp_path, panel):
    cast = cast_scenes.by_a_person(tmp_path)
    cast_panel = panel(cast)
    before = identity(cast.now)
    cast.labels.add(name="breakfast")
    cast.breakpoints.watch("plan")
    assert identity(cast.now) == before
    assert "Nothing was done" not in send(cast_panel, from_page(cast_panel, "items_answer", rows=PLAN, reason=""))


def test_identity_of_a_displayed_state_survives_restarts_and_differs_in_a_fork(tmp_path):
    cast = cast_scenes.held(tmp_path)
    fork = cast.fork()
    before = identity(cast.now)
    assert identity(fork.now) != before
    cast.close()
    assert identity(open_cast(cast.run_dir).now) == before
    fork.close()
