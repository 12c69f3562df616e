"""The panels of tool calls and of an agent at work, driven as a person does: no browser, no kernel."""

from __future__ import annotations

import threading

import pytest

import cast_helpers as h
from materia_nb.agents.base import AgentError, Asking, Called, Noted, Reply, Said, ToolCall
from materia_nb.widgets.bench import CastPanel
from materia_nb.widgets.runs import runs_of

HOSTILE = "<img src=x onerror=window.__owned=1>"
MAKE = ToolCall(id="1.1", tool="bash", args={"command": f"echo {HOSTILE}"}, said=HOSTILE)
READ = ToolCall(id="0.1", tool="read", args={"path": HOSTILE}, result=HOSTILE)


class Asks:
    """Reads, asks for leave to run a command, and says what became of that."""

    name = "asks"

    def answer(self, turn):
        decided = [call for call in turn.calls if call.decided]
        if not decided and "bash" not in turn.allowed:
            turn.tell(Called(READ))
            return Asking((MAKE,))
        return Reply(decided[0].result or "ran" if decided else "ran unasked")


@pytest.fixture
def panel_of(tmp_path):
    made = []

    def make(agent, sockets=1):
        cast = h.start(tmp_path, h.chain_config(sockets), agent)
        made.append(CastPanel(cast))
        return cast, made[-1]

    yield make
    for panel in made:
        panel.close()


def press(panel, button):
    button.click()
    runs_of(panel.cast).wait()
    panel.refresh()
    panel.reply.refresh()


def texts(panel):
    return "".join(
        widget.value for widget in (panel.leave._calls, panel.working._doing) if isinstance(widget.value, str)
    )


def test_the_whole_command_is_shown_and_allowed_once(panel_of):
    cast, panel = panel_of(Asks())
    assert panel.reply.leave.view.layout.display == "none"
    press(panel, panel.toolbar.step_button)
    leave = panel.reply.leave
    assert leave.view.layout.display is None
    assert panel.tabs.titles[2] == "reply (waiting)"
    shown = texts(panel.reply)
    assert "echo &lt;img" in shown
    assert "<img" not in shown
    press(panel, leave.once_button)
    assert cast.steps[0].output == "ran"
    assert leave.view.layout.display == "none"
    assert not cast.allowed


def test_always_and_the_reason_of_a_refusal(panel_of):
    cast, panel = panel_of(Asks(), sockets=2)
    press(panel, panel.toolbar.step_button)
    panel.reply.leave.reason.value = "too risky"
    press(panel, panel.reply.leave.deny_button)
    assert "too risky" in cast.steps[0].output
    assert panel.reply.leave.reason.value == ""
    press(panel, panel.toolbar.step_button)
    press(panel, panel.reply.leave.always_button)
    assert cast.allowed == {"bash"}
    assert cast.steps[1].output == "ran"


def test_words_calls_and_notes_show_while_the_agent_works(panel_of):
    go, seen = threading.Event(), threading.Event()

    class Talks:
        name = "talks"

        def answer(self, turn):
            turn.tell(Noted("trying again in 1 s"))
            turn.tell(Called(READ))
            turn.tell(Said(f"I think {HOSTILE}"))
            seen.set()
            assert go.wait(30)
            return Reply("done")

    cast, panel = panel_of(Talks())
    panel.toolbar.step_button.click()
    assert seen.wait(30)
    working = panel.reply.working
    working.refresh()
    shown = working._doing.value
    assert "I think &lt;img" in shown
    assert "<img" not in shown
    assert "trying again in 1 s" in shown
    go.set()
    runs_of(cast).wait()
    working.refresh()
    assert working._doing.value == ""
    assert "read" in repr(panel.handoff.fallback()[0])


def test_a_failed_turn_is_reworded_and_sent_with_buttons(panel_of):
    class Fails:
        name = "fails"

        def __init__(self):
            self.prompts = []

        def answer(self, turn):
            self.prompts.append(turn.prompt)
            if len(self.prompts) < 3:
                raise AgentError("gone", kind="transport")
            return Reply("done")

    agent = Fails()
    cast, panel = panel_of(agent)
    press(panel, panel.toolbar.step_button)
    panel.toolbar.refresh()
    assert panel.toolbar.resend_button.layout.display is None
    press(panel, panel.toolbar.resend_button)
    assert cast.status == "failed"
    wording = panel.reply.wording
    wording.refresh()
    wording.fields["materia"].value = "in other words"
    wording.apply_button.click()
    assert cast.status == "waiting"
    press(panel, panel.toolbar.step_button)
    assert cast.steps[0].output == "done"
    assert "\n\nin other words" in agent.prompts[2]
    panel.toolbar.refresh()
    assert panel.toolbar.resend_button.layout.display == "none"
