"""Test the panel of a cast by sending the messages of its front end, without a browser or a kernel."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from ipywidgets.widgets.widget import _instances as live

import cast_helpers as h
import materia_nb
from builders import at
from magics_helpers import cell, line, new_shell
from materia_nb import Workbench
from materia_nb.agents import Reply, Usage
from materia_nb.agents.interface import AgentError, NeedsApproval, NoteEvent, TextEvent, ToolCall
from materia_nb.cast import open_cast
from materia_nb.cast.repairs import FAILURE_KINDS
from materia_nb.errors import MateriaError
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.widgets import cast_panel as panels
from materia_nb.widgets.base import runs_of
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.inspector_tabs import Element
from panel_helpers import from_page
from protocol_helpers import ASK, report
from stream_helpers import stream_agents, streams_config

PLAIN = ("apply_changes", "retry_turn", "retry_limit")
ENGINE = {
    "invalid_output", "repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted", "assignment",
    "budget", "aborted",
}  # fmt: skip
SENT = {
    "retry": ("retry", {}),
    "retry_turn": ("retry_turn", {}),
    "answer": ("by_hand", {"text": "mine"}),
    "pin": ("pin_text", {"socket": "Socket-1", "text": "mine"}),
    "skip": ("skip", {"note": "not today"}),
}
HOSTILE = "<img src=x onerror=window.__owned=1>"


@pytest.fixture
def make():
    """Return a function that creates panels, which are closed after the test."""
    made = []

    def one(cast, **options):
        made.append(CastPanel(cast, **options))
        return made[-1]

    yield one
    for panel in made:
        panel.close()


def say(panel, kind, **values):
    """Send a message as the front end does, and return the resulting notice."""
    panel.guarded(panel.on_message)(from_page(panel, kind, **values))
    return panel.front.surface["notice"].get("words", "")


def stop_at(panel, element, **values):
    """Set a breakpoint at an element of the canvas, as its context menu does."""
    panel.graph.guarded(panel.graph.on_message)({"kind": "break", "element": element, **values})


def done(panel):
    assert runs_of(panel.cast).wait(30)
    panel.refresh()


def content(panel, tab):
    assert say(panel, "tab", tab=tab) == ""
    return panel.front.inspector["content"]


def repetitions(panel):
    """Return the message of each action in the menu *Again*, by its label."""
    return {action["words"]: action["message"] for action in panel.front.bar["again"]}


def titles(cast):
    return [item["title"] for item in cast.now.work_items]


class Held:
    """An agent that waits until the test releases its answer, so that a test can act during a step."""

    def __init__(self, output):
        self.begun, self.go_on, self._output = threading.Event(), threading.Event(), output

    def answer(self):
        self.begun.set()
        self.go_on.wait(30)
        return self._output


# -- going on -----------------------------------------------------------------------------------


def test_messages_from_the_page_run_the_cast(cast, make):
    panel = make(cast)
    assert panel.front.bar["words"] == "ready · Plan is next"
    say(panel, "step")
    done(panel)
    assert len(cast.steps) == 1
    say(panel, "run_to", socket="Socket-4")
    done(panel)
    assert cast.now.next_socket == "Socket-4"
    stop_at(panel, "n:Socket-5")
    assert [one["words"] for one in panel.front.bar["breaks"]] == ["before Narrate"]
    say(panel, "run")
    done(panel)
    assert (panel.front.bar["tone"], panel.front.bar["words"]) == ("breakpoint", "Breakpoint: Narrate")
    say(panel, "break", breakpoint={"kind": "before", "socket": "Socket-5"})
    assert panel.front.bar["breaks"] == []
    assert panel.front.bar["tone"] == "ready"
    say(panel, "run")
    done(panel)
    assert panel.front.bar["tone"] == "done"
    assert not panel.front.bar["can"]["run"]


def test_second_click_during_a_step_is_refused_with_a_reason(bench, cast, make):
    held = Held({"workItems": h.items("a")})
    bench.agent("Plan", held.answer)
    panel = make(cast)
    say(panel, "step")
    assert held.begun.wait(30)
    panel.refresh()
    assert panel.front.bar["tone"] == "working"
    assert panel.front.bar["since"] is not None
    assert "A step is running" in say(panel, "run")
    assert panel.front.bar["can"]["pause"]
    assert not panel.front.bar["can"]["run"]
    held.go_on.set()
    done(panel)
    assert len(cast.steps) == 1


def test_click_on_step_for_an_outdated_state_has_no_effect(cast, make):
    panel = make(cast)
    for _ in range(3):
        shown = panel.front.surface["identity"]
        assert say(panel, "step") == ""
        assert "Nothing was done" in say(panel, "step", identity=shown)
        assert panel.front.surface["notice"]["tone"] == "fine", "a press that came too late is no error"
        done(panel)
    assert [socket for socket, *_ in cast.route] == ["Socket-1", "Socket-2", "Socket-3"]


def manifest(cast):
    return json.loads((cast.run_dir / "manifest.json").read_text())


def test_step_is_shown_before_its_files_are_written(cast, make, monkeypatch):
    panel, shown, write = make(cast), [], cast.runner.write_derived
    begun, go_on = threading.Event(), threading.Event()

    def write_slowly():
        shown.append(panel.front.bar["words"])
        begun.set()
        go_on.wait(30)
        write()

    monkeypatch.setattr(cast.runner, "write_derived", write_slowly)
    say(panel, "step")
    assert begun.wait(30)
    assert shown == ["ready · Build is next"]
    assert panel.front.bar["can"]["run"]
    assert not (cast.run_dir / "manifest.json").exists()
    assert not runs_of(cast).busy
    cast.runner.refuse_while_running()  # an edit would wait
    assert say(panel, "step") == ""
    assert len(cast.steps) == 1, "the next step begins when the files are there"
    go_on.set()
    done(panel)
    assert manifest(cast)["steps"] == len(cast.steps) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_files_are_written_even_if_a_panel_raises_an_error_at_the_end_of_a_step(cast, make):
    panel = make(cast)
    runs_of(cast).watch(lambda runs: 1 / runs.running)
    say(panel, "step")
    assert runs_of(cast).wait(30)
    assert manifest(cast)["steps"] == 1


def test_files_that_cannot_be_written_after_a_step_are_reported(cast, make, monkeypatch):
    panel = make(cast)

    def fail():
        raise MateriaError("The disk is full.")

    monkeypatch.setattr(cast.runner, "write_derived", fail)
    say(panel, "step")
    done(panel)
    assert panel.front.surface["notice"] == {"words": "The disk is full.", "tone": "bad"}
    assert panel.front.bar["words"] == "ready · Build is next"


def test_pause_and_abort_are_shown_immediately_with_their_duration(bench, cast, make):
    held = Held("built")
    bench.agent("Build", held.answer)
    panel = make(cast)
    say(panel, "run")
    assert held.begun.wait(30)
    say(panel, "pause")
    assert panel.front.bar["words"].startswith("Pausing: Build")
    say(panel, "abort")
    assert panel.front.bar["words"].startswith("Aborting: Build")
    assert panel.front.bar["since"] is not None
    assert not panel.front.bar["can"]["abort"], "a second press has nothing to do"
    say(panel, "abort")
    held.go_on.set()
    done(panel)
    assert cast.status == "aborted"
    assert panel.front.bar["stopped"]
    say(panel, "retry")
    done(panel)
    assert cast.status in ("ready", "waiting")


def test_function_that_does_not_return_can_be_abandoned(bench, cast, make):
    held = Held("too late")
    bench.agent("Build", held.answer)
    panel = make(cast)
    say(panel, "run")
    assert held.begun.wait(30)
    assert not panel.front.bar["can"]["leave"]
    say(panel, "abort")
    assert panel.front.bar["can"]["leave"]
    say(panel, "leave")
    done(panel)
    assert cast.status == "aborted"
    bench.agent("Build", lambda: "built")
    assert cast.retry().output == "built"
    held.go_on.set()
    cast.run()
    assert {step.output for step in cast.steps if step.socket == "Socket-2"} == {"built"}


def test_pending_input_is_applied_before_a_run(bench, cast, make):
    panel = make(cast)
    say(panel, "step", first=[{"kind": "edit_prompt", "layers": {"task": "Plan it in another way"}}])
    done(panel)
    assert "another way" in cast.steps[0].prompt.text
    assert len(cast.steps) == 1
    blank = [{"kind": "items", "rows": [[" ", "b", 0]], "base": panel.front.items["base"]}]
    assert "must not be blank" in say(panel, "step", first=blank)
    assert not runs_of(cast).busy
    assert len(cast.steps) == 1


def test_run_to_the_end_button_stops_before_the_cast_ends(cast, make):
    panel = make(cast)
    assert say(panel, "run_to", socket="end") == ""
    done(panel)
    assert (cast.status, cast.now.next_socket) == ("ready", "end")


def test_panel_is_busy_while_its_cast_is_changed(cast, make):
    panel, runs = make(cast), runs_of(cast)
    assert not runs.busy_for(panel)
    with cast.runner.lock(), cast.runner.change():
        assert runs.busy_for(panel)
    assert not runs.busy_for(panel)


def test_exception_during_a_run_is_shown_in_the_panel(cast, make):
    panel = make(cast)

    def breaks(_):
        raise ValueError(HOSTILE)

    panel.run_until(lambda: cast.run(breaks))
    done(panel)
    assert panel.front.surface["notice"] == {"words": f"ValueError: {HOSTILE}", "tone": "bad"}
    assert say(panel, "dismiss") == ""


def test_tokens_and_cost_are_shown_with_the_budget(bench, cast, make):
    bench.agent("Build", lambda: Reply("built", Usage(10, 5, 0.25)))
    panel = make(cast)
    say(panel, "budget", budget="20")
    cast.run(steps=2)
    panel.refresh()
    bar = panel.front.bar
    assert (bar["tokens"], bar["most"], bar["warn"], bar["cost"]) == (15, 20, True, 0.25)
    assert "is not a budget" in say(panel, "budget", budget="many")


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {"kind": "nope"},
        {"kind": HOSTILE},
        {"kind": "run_to"},
        {"kind": "run_to", "socket": HOSTILE},
        {"kind": "select", "element": {"kind": "socket", "id": 3}},
        {"kind": "look", "step": -1},
        {"kind": "look", "step": 99},
        {"kind": "tab", "tab": HOSTILE},
        {"kind": "items", "rows": [["only"]]},
        {"kind": "set_value", "path": "a", "text": "{oops"},
        {"kind": "edit_prompt", "layers": []},
        {"kind": "allow", "identity": 1},
        {"kind": "show_cast", "cast": 7},
        {"kind": "__init__"},
    ],
)
def test_invalid_message_changes_nothing_and_is_explained(cast, make, message, caplog):
    panel = make(cast)
    before = cast.runner.session
    panel.guarded(panel.on_message)(message)
    assert panel.front.surface["notice"]["tone"] == "bad"
    assert cast.runner.session is before
    assert not caplog.records, "an error of ours is told, not logged"


def test_long_item_is_fetched_completely_and_survives_edits_to_other_items(bench, cast, make):
    context = "about it: " + "x" * 30_000
    bench.agent("Plan", lambda: {"workItems": [{"title": "a", "context": context}, *h.items("b")]})
    panel = make(cast)
    say(panel, "step")
    done(panel)
    [title, shown, *lengths], base = panel.front.items["items"][0], panel.front.items["base"]
    assert (title, shown, lengths) == ("a", context[:1_000], [0, len(context)])
    assert context not in json.dumps(panel.front.get_state(), default=str)
    answers = []
    panel.front.send = lambda content, buffers=None: answers.append(content)
    say(panel, "item_texts", base=base, index=0, token="t")
    assert answers == [{"kind": "item_texts", "token": "t", "title": "a", "context": context}]
    rows = [["b", "about b", 1], ["a", None, 0]]
    say(panel, "check_items", rows=rows, base=base, token="t")
    assert answers[-1]["issues"] == []
    cast.edit.set("note", 1)
    panel.refresh()
    assert say(panel, "items", rows=rows, base=base) == ""
    assert cast.now.work_items == [*h.items("b"), {"title": "a", "context": context}]
    before = cast.runner.session
    assert "no longer available" in say(panel, "items", rows=[["a", None, 0]], base="of another kernel")
    assert "Nothing was done" in say(panel, "item_texts", base="of another kernel", index=0, token="t")
    assert cast.runner.session is before


# -- answers ----------------------------------------------------------------------------------------


def test_verdict_buttons_show_their_targets_and_answer(bench, cast, make):
    bench.agent("Eval", "person")
    panel = make(cast)
    cast.run()
    panel.refresh()
    assert (panel.front.bar["tone"], panel.front.bar["words"]) == ("wants", "Your turn: Eval")
    form = content(panel, "answer")["form"]
    assert form["previous"]["text"] == "built a"
    assert form["verdict"] == {"yes": "Maintain", "no": "Build (1st of 3 times)"}
    assert not form["text"]
    say(panel, "verdict", satisfied=False, reason="a heading lacks its paragraph")
    assert cast.now.next_socket == "Socket-2"
    assert cast.now.engine.rework_reasons[-1].reason == "a heading lacks its paragraph"


def test_question_opens_the_answer_tab_once_unless_a_past_step_is_displayed(bench, cast, make):
    bench.agent("Eval", "person")
    panel, reader = make(cast), make(open_cast(cast.run_dir))
    say(panel, "tab", tab="state")
    say(reader, "tab", tab="state")
    say(panel, "run")
    done(panel)
    assert panel.front.inspector["tab"] == "answer"
    assert panel.front.inspector["tabs"][0] == ["answer", "Answer", True]
    reader.refresh()
    assert reader.front.bar["words"].startswith("waiting at Eval")
    assert (reader.front.inspector["tab"], reader.front.inspector["tabs"][0][2]) == ("state", False)
    say(panel, "tab", tab="state")
    assert panel.front.inspector["tab"] == "state", "the same question lets the user look elsewhere"
    say(panel, "look", step=1)
    cast.reply(h.NO)
    assert cast.run() == "person"
    panel.refresh()
    assert panel.front.inspector["tab"] == "state"


def test_answer_form_is_highlighted_only_if_a_person_is_asked(bench, cast, make):
    panel = make(cast)
    say(panel, "enter")
    assert not content(panel, "answer")["form"]["person"]
    bench.agent("Plan", "person")
    panel.refresh()
    assert content(panel, "answer")["form"]["person"]


def test_answer_is_checked_while_typing_without_sending(bench, cast, make, monkeypatch):
    bench.agent("Eval", "person")
    panel = make(cast)
    cast.run()
    told = []
    monkeypatch.setattr(panel.front, "answer", lambda kind, token, values: told.append((kind, token, values)))
    say(panel, "check", purpose="reply", text="{satisfied: true}", token="a")
    say(panel, "check", purpose="reply", text='{"satisfied": true}', token="b")
    assert told[0][2]["fine"] is False
    assert "double quotes" in told[0][2]["advice"]
    assert told[1] == ("check", "b", {"issues": [], "advice": "", "fine": True})
    assert cast.now.waiting_at is not None


def test_generator_is_answered_with_a_table(bench, cast, make):
    bench.agent("Plan", "person")
    panel = make(cast)
    say(panel, "enter")
    assert content(panel, "answer")["form"]["items"]
    assert content(panel, "answer")["form"]["verdict"] is None
    say(
        panel,
        "items_answer",
        rows=[["a", "about a", None], ["b", "about b", None]],
        reason="",
        satisfied=None,
    )
    assert titles(cast) == ["a", "b"]


@pytest.mark.parametrize("name", OWN_PROTOCOLS)
@pytest.mark.parametrize("reason", ["", " \n", 'a fence ``` and a "quote"\nin two lines'])
def test_buttons_and_table_answer_in_the_protocol_of_the_socket(tmp_path, make, name, reason):
    document = h.loop_config()
    document["loadouts"]["T"]["handoff"] = name
    cast = h.start(tmp_path, document, {"Build": lambda: "built", "Plan": "person", "Check": "person"})
    panel = make(cast)
    say(panel, "enter")
    assert content(panel, "answer")["form"]["items"]
    rows = [["a", "about a", None], ["b", "about b", None]]
    assert say(panel, "items_answer", rows=rows, reason="", satisfied=None) == ""
    assert titles(cast) == ["a", "b"]
    assert all(f"about {item['title']}" in item["context"] for item in cast.now.work_items)
    for satisfied in (False, True):
        cast.run()
        assert content(panel, "answer")["form"]["verdict"]["yes"] == "Build"
        assert say(panel, "verdict", satisfied=satisfied, reason=reason) == ""
        assert cast.steps[-1].decision.satisfied is satisfied
    assert cast.now.next_socket == "Socket-2"
    assert all(line.strip() in cast.state.get("context", "") for line in reason.splitlines())


def test_contract_with_consolidation_can_be_answered_by_button(tmp_path, make):
    assignment = {"surfaces": ["api", "web"]}
    document = h.loop_config()
    document["loadouts"]["T"]["sockets"]["Socket-3"] |= {
        "handoff": "agent-contract",
        "assignment": assignment,
    }
    cast = h.start(tmp_path, document, {**h.loop_agents(1), "Check": "person"})
    cast.run()
    panel = make(cast)
    assert say(panel, "verdict", satisfied=True, reason="fine") == ""
    assert "owned_here" in cast.steps[-1].output
    assert cast.steps[-1].decision.satisfied is True


def test_verdict_button_of_an_edge_over_its_limit_shows_that_the_cast_stops(tmp_path, make):
    document = h.loop_config()
    document["loadouts"]["T"]["handoff"] = "envelope"
    check = document["loadouts"]["T"]["sockets"]["Socket-3"]
    next(edge for edge in check["edges"] if edge["when"] == "not_satisfied")["maxTraversals"] = 1
    cast = h.start(tmp_path, document, {"Plan": "person", "Build": lambda: "built", "Check": "person"})
    panel = make(cast)
    say(panel, "enter")
    say(panel, "items_answer", rows=[["a", "about a", None]], reason="", satisfied=None)
    for leads in ("Build (1st of 1 times)", "a pause for your decision"):
        cast.run()
        assert content(panel, "answer")["form"]["verdict"] == {"yes": "Tell", "no": leads}
        assert say(panel, "verdict", satisfied=False, reason="not yet") == ""
    assert cast.status == "held"
    assert "The loop has used" in str(content(panel, "answer"))


def test_text_socket_has_no_verdict_buttons(bench, cast, make):
    bench.agent("Build", "person")
    panel = make(cast)
    cast.run()
    form = content(panel, "answer")["form"]
    assert (form["text"], form["verdict"], form["items"]) == (True, None, False)
    say(panel, "reply", text="built")
    assert cast.now.next_socket == "Socket-3"


def test_draft_can_be_refined_and_accepted(bench, make):
    bench.load(
        {
            "activeLoadout": "Talk",
            "loadouts": {"Talk": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "M"}}}},
            "materia": {"M": {"tools": "none", "prompt": "p", "multiTurn": True}},
        }
    )
    bench.agent("M", lambda turn: f"{turn.kind} of {turn.prompt[-5:]}")
    cast = bench.cast("talk")
    panel = make(cast)
    say(panel, "step")
    done(panel)
    assert panel.front.bar["words"] == "Your turn: draft of M"
    say(panel, "refine", text="make it short")
    done(panel)
    assert content(panel, "answer")["form"]["previous"]["text"] == "refine of short"
    say(panel, "finalize")
    done(panel)
    assert cast.now.next_socket == "end"


class Asks:
    """An agent that gives a reason, asks for approval to run a command, and reports the decision."""

    name = "asks"

    def answer(self, turn):
        decided = [call for call in turn.calls if call.decided]
        if not decided and "bash" not in turn.allowed:
            return NeedsApproval(
                (ToolCall(id="1", tool="bash", args={"command": f"echo {HOSTILE}"}, said="I will look."),)
            )
        return Reply(decided[0].result or "ran" if decided else "ran unasked")


def test_command_waits_for_approval_with_the_reason_of_the_model(tmp_path, make):
    cast = h.start(tmp_path, h.chain_config(1), Asks())
    panel = make(cast)
    say(panel, "tab", tab="state")
    say(panel, "step")
    done(panel)
    assert panel.front.inspector["tab"] == "answer", "what waits for a person is what they see"
    asks = panel.front.inspector["content"]["asks"]
    assert asks["said"] == "I will look."
    assert HOSTILE in json.dumps(asks["blocks"])
    assert panel.front.bar["asks"]["whole"]
    say(panel, "allow")
    done(panel)
    assert cast.steps[0].output == "ran"
    assert not cast.approvals.allowed


def test_denial_reason_reaches_the_agent_and_always_allow_covers_one_cast(tmp_path, make):
    cast = h.start(tmp_path, h.chain_config(2), Asks())
    panel = make(cast)
    say(panel, "step")
    done(panel)
    say(panel, "deny", reason="too risky")
    done(panel)
    assert "too risky" in cast.steps[0].output
    say(panel, "step")
    done(panel)
    say(panel, "allow", always=True)
    done(panel)
    assert cast.approvals.allowed == {"bash"}
    say(panel, "disallow", tool="bash")
    assert not cast.approvals.allowed


def test_text_calls_and_notes_are_shown_while_the_agent_works(tmp_path, make):
    told, go_on = threading.Event(), threading.Event()

    class Talks:
        name = "talks"

        def answer(self, turn):
            turn.report(NoteEvent("asked again after 429"))
            turn.report(TextEvent("thinking about it"))
            told.set()
            go_on.wait(30)
            return Reply("done")

    cast = h.start(tmp_path, h.chain_config(1), Talks())
    panel = make(cast)
    say(panel, "step")
    assert told.wait(30)
    panel.refresh()
    shown = content(panel, "answer")["live"]
    assert shown["words"] == "thinking about it"
    assert shown["notes"] == ["asked again after 429"]
    go_on.set()
    done(panel)
    assert content(panel, "answer")["live"].get("words", "") == ""


def test_each_new_failure_opens_the_answer_tab_even_if_the_panel_was_not_redrawn(tmp_path, make):
    def fails(turn):
        raise ValueError("no")

    cast = h.start(tmp_path, h.one_config(), {"M": fails})
    panel = make(cast)
    panel.draw = lambda: None  # no timer draws while the cast runs
    for _ in range(2):
        cast.run() if cast.status == "ready" else cast.retry()
        assert cast.status == "failed"
        CastPanel.draw(panel)
        assert panel.tab == "answer"
        panel.tab = "why"
        CastPanel.draw(panel)
        assert panel.tab == "why", "the same failure lets the user look elsewhere"


def test_failure_is_shown_first_with_its_actions(tmp_path, make):
    tries = []

    class Breaks:
        name = "breaks"

        def answer(self, turn):
            tries.append(turn.prompt)
            if len(tries) == 1:
                raise AgentError("no line")
            return Reply("done")

    cast = h.start(tmp_path, h.chain_config(1), Breaks())
    panel = make(cast)
    say(panel, "step")
    done(panel)
    assert panel.front.bar["tone"] == "failed"
    shown = content(panel, "answer")
    told = shown["failed"]["blocks"]
    assert told[0]["tone"] == "bad"
    assert told[0]["text"].endswith(" failed")
    assert "no line" in told[2]["text"]
    assert shown["failed"]["main"] == "retry_turn", "no action of the inspector is the main one"
    assert {"retry_turn", "retry"}.isdisjoint(offer["name"] for offer in shown["failed"]["offers"])
    again = repetitions(panel)
    assert list(again) == ["Retry this turn", "Retry", "Fork", "Cast again"]
    assert again["Retry this turn"] == {"kind": "retry_turn"}
    say(panel, "retry")
    done(panel)
    assert len(tries) == 2


def test_failed_process_is_shown_with_output_and_command(tmp_path, make):
    code = "import sys; print('so far'); sys.exit('no disk')"
    cast = h.start(tmp_path, h.one_config(h.python(code)))
    panel = make(cast)
    say(panel, "step")
    done(panel)
    failed = content(panel, "answer")["failed"]
    assert failed["blocks"][0]["text"].endswith("exited with code 1")
    assert failed["blocks"][-1]["text"] == "no disk"
    assert [one["title"] for one in failed["more"]] == ["stdout", "command, and where its output is saved"]


def test_files_of_a_failure_are_links_if_the_notebook_path_is_known(tmp_path, make, monkeypatch):
    (tmp_path / "my table.csv").write_text("x")
    (tmp_path / "a.py").write_text("x")

    class Breaks:
        name = "breaks"

        def answer(self, turn):
            inside = f'"my table.csv", {tmp_path}/a.py:3. <b>a.py</b> /etc/passwd none.py \0 .. {"x" * 9000}.py'
            raise AgentError(inside)

    cast = h.start(tmp_path, h.chain_config(1), Breaks())
    panel = make(cast)
    say(panel, "step")
    done(panel)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    say(panel, "now")
    assert content(panel, "answer")["failed"]["files"] == {}
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "books" / "a.ipynb"))
    panel = make(cast)
    found = content(panel, "answer")["failed"]["files"]
    outside = found.pop("/etc/passwd")
    assert outside.startswith("../"), "it is the front end that knows where the server's folder begins"
    own_frames = [path for path in found if path.startswith(str(Path(materia_nb.__file__).parent))]
    assert own_frames
    assert found.pop(__file__).endswith("test_cast_panel.py"), "the file of the agent, from its traceback"
    assert {path: link for path, link in found.items() if path not in own_frames} == {
        "my table.csv": "../my table.csv",
        f"{tmp_path}/a.py": "../a.py",
        "a.py": "../a.py",
    }


def test_selecting_an_edge_while_a_past_step_is_displayed_returns_to_the_present(cast, make):
    cast.run(steps=2)
    panel = make(cast)
    for element, stays in (
        ({"kind": "socket", "id": "Socket-1"}, True),
        (None, True),
        ({"kind": "edge", "id": "edge:0:Socket-1"}, False),
    ):
        panel.show_step(1)
        assert say(panel, "select", element=element) == ""
        assert (panel.past is not None) == stays, element
    assert panel.front.surface["selected"] == {"kind": "edge", "id": "edge:0:Socket-1"}
    panel.show_row(0)
    assert len(panel.past.steps) == 0
    panel.show_row(2)
    assert len(panel.past.steps) == 2
    panel.select(Element("step", "1"))
    assert (len(panel.past.steps), panel.selected.kind) == (1, "edge")


def test_output_can_be_corrected_and_earlier_edits_are_kept(cast, make):
    cast.run(steps=3)
    assert cast.now.next_socket == "Socket-2"
    panel = make(cast)
    correct = content(panel, "answer")["correct"]
    assert correct["text"] == cast.steps[-1].output
    say(panel, "set_value", path="note", text="x", as_text=True)
    assert say(panel, "edit_output", text='{"satisfied": true}') == "1 edit was applied again."
    assert cast.state["note"] == "x"
    assert cast.now.next_socket == "Socket-4"
    assert [turn.mode for turn in cast.steps[-1].turns] == ["work", "correction"]


def test_output_of_an_earlier_step_can_be_edited_in_a_fork(bench, cast, make):
    cast.run(steps=4)
    panel = make(cast)
    say(panel, "look", step=3)
    offer = content(panel, "output")["blocks"][0]
    assert (offer["words"], offer["kind"], offer["values"]) == ("Edit in a fork", "fork", {"step": 3})
    assert say(panel, offer["kind"], **offer["values"]) == ""
    assert panel.front.inspector["content"]["correct"]["words"] == "Edit the output of step 3"
    say(panel, "edit_output", text=h.YES)
    assert (panel.cast.now.next_socket, cast.steps[2].decision.target) == ("Socket-4", "Socket-2")
    assert any("first differ in step 3" in block.get("text", "") for block in panel.front.compare["blocks"])
    say(panel, "back", step=1)
    say(panel, "line", line=0)
    assert content(panel, "output")["blocks"][0]["is"] != "action", "an abandoned branch cannot be forked"


def test_prompt_can_be_edited_for_the_current_turn(cast, make):
    panel = make(cast)
    layers = {layer["name"]: layer["text"] for layer in content(panel, "prompt")["layers"]}
    assert "task" in layers
    assert panel.front.inspector["content"]["edit"]
    say(panel, "edit_prompt", layers={"task": "Plan in two words"})
    assert cast.now.waiting_at is not None
    assert {one["name"]: one["text"] for one in content(panel, "prompt")["layers"]}["task"] == "Plan in two words"


# -- looking ------------------------------------------------------------------------------------------


def test_inspector_shows_the_selected_element(cast, make):
    cast.run(steps=3)
    panel = make(cast)
    say(panel, "select", element={"kind": "socket", "id": "Socket-4"})
    assert panel.front.inspector["title"]["name"] == "Maintain"
    assert not panel.front.inspector["title"]["present"]
    assert panel.front.surface["selected"] == {"kind": "socket", "id": "Socket-4"}
    for kind, key, words in (
        ("loop", "items", "loop items"),
        ("item", "2", "b"),
        ("edge", "edge:1:Socket-3", "Eval → Build"),
    ):
        say(panel, "select", element={"kind": kind, "id": key})
        assert panel.front.inspector["title"]["name"] == words
        assert panel.front.inspector["content"]["blocks"]
    say(panel, "select", element=None)
    assert panel.front.inspector["title"]["present"]


def test_click_on_the_graph_selects_the_element(cast, make):
    panel = make(cast)
    panel.graph.select("socket", "Socket-3")
    assert panel.front.surface["selected"] == {"kind": "socket", "id": "Socket-3"}


def test_panel_can_show_an_earlier_step_and_return_to_the_present(cast, make):
    cast.run(steps=3)
    panel = make(cast)
    say(panel, "look", step=1)
    assert panel.front.timeline["at"] == 1
    assert panel.front.inspector["title"]["chips"][0] == "step 1 · visit 1"
    assert [node["name"] for node in content(panel, "state")["nodes"]] == ["workItems"]
    assert not panel.front.inspector["content"]["edit"]
    say(panel, "step")
    done(panel)
    assert panel.front.timeline["at"] is None, "who goes on sees the present"


def test_going_back_keeps_the_abandoned_branch_visible(cast, make):
    cast.run(steps=4)
    panel = make(cast)
    say(panel, "look", step=2)
    say(panel, "back", step=2)
    assert len(cast.steps) == 2
    assert panel.front.timeline["at"] is None
    assert [words for _, words in panel.front.timeline["lines"]] == [
        "current branch",
        "branch 1: abandoned after step 2",
    ]
    say(panel, "line", line=0)
    assert panel.front.timeline["total"] == 4
    say(panel, "line", line=None)
    assert panel.front.timeline["total"] == 2


def test_fork_is_shown_in_place_with_its_comparison(bench, cast, make):
    made = []
    cast.run(steps=3)
    panel = make(cast, forked=made.append)
    say(panel, "fork", step=2)
    assert panel.cast is made[0]
    assert panel.front.surface["cast"] == 1
    assert panel.front.surface["dock"] == "compare"
    pairs, *_ = [block["rows"] for block in panel.front.compare["blocks"] if block["is"] == "table"]
    assert [row[-1] for row in pairs] == ["", "", "only in A"]
    say(panel, "step")
    done(panel)
    assert (len(made[0].steps), len(cast.steps)) == (3, 3)
    say(panel, "show_cast", cast=0)
    assert panel.cast is cast
    made[0].close()


def test_runs_stop_when_a_watched_path_changes(cast, make):
    panel = make(cast)
    say(panel, "watch", path="workItems")
    say(panel, "run")
    done(panel)
    assert panel.front.bar["tone"] == "breakpoint"
    assert "state.workItems" in panel.front.bar["detail"]
    say(panel, "break", breakpoint=panel.front.bar["breaks"][0]["breakpoint"])
    assert not cast.breakpoints.paths


def test_breakpoint_of_each_kind_can_be_set_shown_and_removed(cast, make):
    panel = make(cast)
    breaks = lambda: [one["words"] for one in panel.front.bar["breaks"]]  # noqa: E731
    stop_at(panel, "n:Socket-3", after=True)
    stop_at(panel, "e:edge:1:Socket-3")
    assert breaks() == ["after Eval", "Eval → Build (edge 2)"]
    say(panel, "run")
    done(panel)
    assert panel.front.bar["detail"] == "after Eval; Eval → Build (edge 2)"
    say(panel, "select", element={"kind": "edge", "id": "edge:1:Socket-3"})
    (stop,) = panel.front.inspector["title"]["stops"]
    assert stop == ["Eval → Build (edge 2)", {"kind": "edge", "socket": "Socket-3", "edge": 2}, True]
    say(panel, "break", breakpoint=stop[1])
    stop_at(panel, "n:Socket-3")
    assert breaks() == [], "what a part of the graph has is taken away"
    say(panel, "select", element={"kind": "socket", "id": "Socket-3"})
    stops = panel.front.inspector["title"]["stops"]
    assert [(words, there) for words, _, there in stops] == [
        ("before Eval", False),
        ("after Eval", False),
        ("refused output of Eval", False),
        ("Eval not satisfied", False),
        ("empty answer of Eval", False),
        ("Eval repeats its output", False),
    ]
    say(panel, "break", breakpoint=stops[3][1])
    assert breaks() == ["Eval not satisfied"]
    for hostile in ({"kind": "before", "socket": "x"}, {"kind": "edge"}, [], "before"):
        assert say(panel, "break", breakpoint=hostile)
    stop_at(panel, "l:gone")
    assert breaks() == ["Eval not satisfied"]


def test_run_stopped_at_a_refused_output_reports_a_breakpoint(bench, make):
    replies = iter(["no JSON", {"satisfied": True}])
    bench.agent("Maintain", lambda: next(replies))
    cast = bench.cast("x")
    cast.breakpoints.add("Socket-4", kind="refused")
    panel = make(cast)
    say(panel, "run")
    done(panel)
    assert (panel.front.bar["tone"], panel.front.bar["detail"]) == (
        "breakpoint",
        "refused output of Maintain",
    )
    say(panel, "step")
    done(panel)
    assert cast.status == "ready"


# -- all together ----------------------------------------------------------------------------------------


def test_panel_has_few_widgets_and_closing_frees_them(cast):
    cast.run(steps=1)
    before = len(live)
    panel = CastPanel(cast)
    assert len(live) - before <= 150
    panel.close()
    assert len(live) == before
    for name in panels.PARTS:
        CastPanel(cast, only_part=name).close()
        assert len(live) == before, name


def test_showing_a_panel_again_closes_the_earlier_panel(cast):
    first = panels.show(cast)
    count = len(live)
    for _ in range(3):
        last = panels.show(cast)
    assert first.closed
    assert len(live) == count
    last.close()


def test_page_update_is_one_message_and_an_unchanged_page_sends_none(cast, make, monkeypatch):
    panel = make(cast)
    sent = []
    monkeypatch.setattr(panel.front, "_send", lambda message, buffers=None: sent.append(message))
    cast.step()
    panel.refresh()
    assert [one["method"] for one in sent] == ["update"]
    panel.refresh()
    assert len(sent) == 1


def test_reader_without_widgets_sees_the_status(bench, cast, make):
    bench.agent("Plan", "person")
    panel = make(cast)
    cast.step()
    bundle = panel._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "waiting: Plan" in bundle["text/plain"]


def test_hostile_text_is_sent_as_text(project, make):
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
                "P": {"label": "\u202eevil\x00", "tools": "none", "prompt": f"{HOSTILE} {{{{lastOutput}}}}"},
            },
        }
    )
    bench.agent("M", lambda: {"workItems": [h.item(HOSTILE)], "context": HOSTILE})
    bench.agent("P", "person")
    cast = bench.cast(HOSTILE)
    cast.run()
    panel = make(cast)
    cast.edit.state({**cast.state, "\u202e": "\x1b[31m"})
    for tab in ("answer", "why", "state", "calls", "about"):  # a prompt can be edited, so it is as it is
        shown = content(panel, tab)
        for node in shown.get("nodes", ()):
            del node["path"]  # only sent back, never shown
        serialized = json.dumps(shown)
        assert "\\u202e" not in serialized, tab
        assert "\\u001b" not in serialized, tab
    assert "\\u202e" not in json.dumps([panel.front.bar, panel.front.timeline, panel.front.surface])
    bench.close()


def test_show_and_panel_verbs_open_panels(project, monkeypatch):
    monkeypatch.chdir(project)
    shell = new_shell()

    def run(text):
        return shell.run_line_magic("materia", text)

    run("use Ask")
    run("cast hello")
    panel = run("show")
    assert isinstance(panel, CastPanel)
    assert panel.front.bar["modes"] == ["cast", "design"]
    alone = run("show items")
    assert alone.front.surface["alone"] == "items"
    assert run("show items") is not alone
    assert alone.closed
    with pytest.raises(MateriaError, match="panel 'item' does not exist") as raised:
        run("show item")
    assert "items" in raised.value.hint


def test_every_panel_is_exported_by_the_package():
    from materia_nb import widgets

    for name in widgets.__all__:
        assert getattr(widgets, name).__name__ == name


# -- failures ------------------------------------------------------------------------------------------


FAILS = {
    "raised": RuntimeError("gone"),
    **{
        kind: AgentError("gone", kind=kind)
        for kind in FAILURE_KINDS
        if not kind.startswith("utility") and kind not in ENGINE
    },
}


@pytest.mark.parametrize("kind", FAILS)
def test_each_offered_action_recovers_from_any_failure_of_an_agent(tmp_path, make, kind):
    offered = ["retry"]
    while offered:
        act = offered.pop(0)
        tries = []

        def answer(tries=tries):
            tries.append(1)
            if len(tries) == 1:
                raise FAILS[kind]
            return "done"

        cast = h.start(tmp_path / act, h.chain_config(1), answer)
        panel = make(cast)
        say(panel, "run")
        done(panel)
        shown = content(panel, "answer")["failed"]
        assert shown["blocks"][0]["tone"] == "bad"
        if act == "retry":
            offered = [offer["name"] for offer in shown["offers"] if offer["name"] not in ("retry", "edit_prompt")]
            assert offered == [name for name in (*PLAIN, "answer", "pin", "skip") if name in offered]
        say(panel, *SENT[act][:1], **SENT[act][1])
        done(panel)
        assert panel.front.bar["tone"] != "failed", (kind, act)
        say(panel, "run")
        done(panel)
        assert panel.front.bar["tone"] == "done", (kind, act)
        h.assert_same(open_cast(cast.run_dir), cast)
        cast.close()


def test_panel_shows_changes_made_by_a_cell(make, shell):
    cell(shell, "define loadout L", loadout("raise SystemExit(3)"))
    cast = line(shell, "cast x")
    cast.run()
    panel = make(cast)
    assert "apply_changes" not in [offer["name"] for offer in content(panel, "answer")["failed"]["offers"]]
    cell(shell, "define loadout L", loadout("print('{}')"))
    shell.events.trigger("post_run_cell", None)
    panel.refresh()
    shown = content(panel, "answer")["failed"]
    assert shown["offers"][0] == {
        "name": "apply_changes",
        "words": "Apply the changed Count and retry",
        "does": "this cast uses the new definition from now on",
    }
    (change,) = [block for block in shown["blocks"] if block["is"] == "diff"]
    assert ["+", "    \"print('{}')\""] in change["rows"]
    say(panel, "apply_changes")
    done(panel)
    assert cast.run() == "complete"
    assert [one["type"] for one in h.lines_of(cast)].count("materia_redefined") == 1


def loadout(code):
    sockets = {"Socket-1": {"materia": "Count"}}
    materia = {"Count": h.python(code, parse="json")}
    return json.dumps({"entry": "Socket-1", "sockets": sockets, "materia": materia})


def test_panel_of_a_complete_cast_shows_the_result_and_next_actions(cast, make):
    cast.run()
    panel = make(cast)
    shown = content(panel, "answer")
    assert shown["top"][0]["text"].startswith("Complete")
    assert shown["top"][2] == {"is": "pre", "text": "The handoff of Narrate."} or shown["top"][2]["is"] == "pre"
    assert [one["kind"] for one in shown["next"]] == ["compare", "label", "keep_test", "page"]
    assert repetitions(panel) == {"Cast again": {"kind": "again"}, "Fork": {"kind": "fork", "step": None}}
    assert ".html" in say(panel, "page")
    assert (cast.now.project / f"{cast.id}.html").is_file()
    say(panel, "label", text="the first")
    assert cast.labels.of().name == "the first"
    say(panel, "again")
    again = panel.cast
    assert (again.now.request, again.status, len(again.steps)) == (cast.now.request, "ready", 0)
    assert again.run() == "complete", "the same agents answer"


def test_step_button_is_disabled_with_a_reason_while_a_person_is_asked(bench, cast, make):
    bench.agent("Plan", "person")
    cast.agents.set("Plan", "person")
    panel = make(cast)
    say(panel, "step")
    done(panel)
    assert panel.front.bar["tone"] == "wants"
    assert not panel.front.bar["can"]["run"]
    assert "your turn" in panel.front.bar["why"]


def test_waiting_badge_selects_the_waiting_socket(bench, cast, make):
    cast.run(steps=2)
    cast.agents.set("Eval", "person")
    panel = make(cast)
    say(panel, "step")
    done(panel)
    say(panel, "select", element={"kind": "edge", "id": "edge:1:Socket-3"})
    assert panel.front.inspector["title"]["name"] == "Eval → Build"
    say(panel, "look", step=1)
    say(panel, "tab", tab="state")
    assert panel.front.timeline["at"] == 1
    for kind, values in (("tab", {"tab": "answer"}), ("now", {}), ("select", {"element": None})):
        assert say(panel, kind, **values) == ""
    assert panel.front.timeline["at"] is None
    assert panel.front.surface["selected"] is None
    title = panel.front.inspector["title"]
    assert (title["present"], title["name"], panel.front.inspector["tab"]) == (True, "Eval", "answer")


def test_unfinished_fork_has_no_difference_from_its_cast(cast, make):
    cast.run(steps=4)
    panel = make(cast)
    say(panel, "fork", step=2)
    say(panel, "dock", dock="compare")
    who, stands, *_ = (block.get("text") for block in panel.front.compare["blocks"])
    assert who == "A is the original, B is fork 1."
    assert stands == "B ends after step 2. Up to that point, A and B do not differ. A continues."


def test_visits_and_steps_can_be_compared(make, bench, cast):
    cast.run()
    panel = make(cast, bench=bench)
    twice = [step.number for step in cast.steps if step.socket == "Socket-2" and step.item_key == "WI-1"]
    assert say(panel, "compare", row=twice[1]) == ""
    assert panel.front.surface["dock"] == "compare"
    assert ["compare", "Compare"] in panel.front.surface["tabs"]
    which, *_ = (block.get("text") for block in panel.front.compare["blocks"])
    assert which == f"A is step {twice[0]}, B is step {twice[1]}."
    assert "reasons" in [one["title"] for one in panel.front.compare["blocks"] if one["is"] == "fold"]
    say(panel, "compare", row=3, other=1)
    assert panel.front.compare["blocks"][0]["text"] == "A is step 1, B is step 3."
    assert "The socket of step 1 was not visited before" in say(panel, "compare", row=1)
    assert "There is no step 99" in say(panel, "compare", row=99)


def test_casts_of_a_project_can_be_compared(make, bench, cast):
    other = bench.cast("another", loadout=cast.graph.name)
    cast.run(steps=2)
    panel = make(cast, bench=bench)
    answered = []
    panel.front.answer = lambda kind, token, values: answered.append(values)
    say(panel, "casts", token="t")
    [offered] = [one["casts"] for one in answered]
    assert other.id in [name for name, _ in offered]
    assert cast.id not in [name for name, _ in offered]
    say(panel, "compare", cast=other.id)
    assert panel.front.compare["blocks"][0]["text"] == f"A is this cast, B is {other.id}."
    assert "Up to that point, A and B do not differ" in panel.front.compare["blocks"][1]["text"]
    assert "cannot be compared" in say(panel, "compare", cast="Plan-Build-Eval")
    say(panel, "step")
    done(panel)
    other.close()


def test_timeline_rows_mark_failed_skipped_and_manual_steps(tmp_path, make):
    def breaks():
        raise AgentError("the line is dead", kind="transport")

    cast = h.start(tmp_path, h.chain_config(2), breaks)
    cast.run()
    panel = make(cast)
    assert panel.front.timeline["tail"][0][4] == "the line is dead"
    assert panel.front.timeline["tail"][0][6] == "failed: could not be reached", "in words, as its headline"
    say(panel, "skip", note="not today")
    assert panel.front.timeline["tail"][0][4] == "skipped: not today"
    cast.run()
    panel.refresh()
    say(panel, "by_hand", text="mine")
    assert panel.front.timeline["tail"][1][4] == "mine"
    assert "by hand" in panel.front.timeline["tail"][1][-1]


def test_status_bar_names_failed_lanes_while_another_lane_waits(make, tmp_path):
    def build(lane):
        if lane == "api":
            raise RuntimeError("no room")
        return "built"

    agents = stream_agents(Build=build)
    del agents["Check"]
    panel = make(h.start(tmp_path, streams_config(), agents))
    panel.cast.run()
    panel.refresh()
    assert panel.front.bar["words"] == "Your turn: ui · Check (1 lane failed)"


def test_each_waiting_lane_can_be_answered(make, tmp_path):
    agents = stream_agents()
    del agents["Check"]
    panel = make(h.start(tmp_path, streams_config(), agents))
    assert not [tab for tab in panel.front.surface["tabs"] if tab[0] == "lanes"]
    panel.cast.run()
    panel.refresh()
    assert panel.front.bar["words"] == "Your turn: ui · Check"
    assert not panel.front.bar["can"]["run"], "nobody else can go on"
    assert ["lanes", "Lanes 2"] in panel.front.surface["tabs"]
    assert "built Part 2" in json.dumps(panel.front.inspector)
    assert "no lane 'nobody'" in say(panel, "lane", lane="nobody")
    assert say(panel, "lane", lane="api") == ""
    assert "built Part 1" in json.dumps(panel.front.inspector)
    assert say(panel, "verdict", satisfied=True, reason="good") == ""
    assert {name: lane.done for name, lane in panel.cast.now.lanes.items()} == {"ui": 0, "api": 1}
    assert panel.lane == "ui"
    for _ in range(2):
        say(panel, "verdict", satisfied=True, reason="good")
        panel.cast.run()
        panel.refresh()
    assert panel.cast.status == "complete"
    assert panel.lane == ""


# -- a debugger's hands ---------------------------------------------------------------------------


@pytest.fixture
def looped(tmp_path, make):
    """Return a panel whose cast has two items; the first check is not satisfied and sends the work back."""
    return make(h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=(1,))))


def test_run_continues_to_the_end_of_the_item(looped):
    say(looped, "run_item")
    done(looped)
    assert [step.socket[-1] for step in looped.cast.steps] == ["1"], "until the first item begins"
    say(looped, "run_item")
    done(looped)
    assert [step.socket[-1] for step in looped.cast.steps] == list("12323"), "sent back once, and done"
    say(looped, "run_item")
    done(looped)
    assert "".join(step.socket[-1] for step in looped.cast.steps).startswith("1232323")


def test_breakpoint_is_reported_when_reached(looped):
    one = {"kind": "before", "socket": "Socket-2"}
    assert say(looped, "break_where", breakpoint=one, text="2") == ""
    say(looped, "run")
    done(looped)
    assert len(looped.cast.steps) == 3
    (stop,) = looped.cast.breakpoints
    assert say(looped, "break_where", breakpoint=stop.as_json(), text="steps > 4") == ""
    (stop,) = looped.cast.breakpoints
    assert stop.words() == "before Socket-2, where steps > 4", "it takes the place of the one that was there"
    assert "condition is invalid" in say(looped, "break_where", breakpoint=one, text="cast.abort()")
    assert list(looped.cast.breakpoints) == [stop]
    assert say(looped, "break_where", breakpoint=one, text=" ") == ""
    assert [one.words() for one in looped.cast.breakpoints] == ["before Socket-2"]


def test_watched_paths_show_the_step_that_changed_them(looped):
    assert "path" in say(looped, "follow", path=" . ")
    assert say(looped, "follow", path="state.currentWorkItem.title") == ""
    say(looped, "run")
    done(looped)
    (watched,) = looped.front.watch["watched"]
    assert (watched["path"], watched["mine"], watched["stops"]) == ("currentWorkItem.title", True, False)
    changed = [
        step.number
        for step in looped.cast.steps
        if (step.before.data.get("currentWorkItem") or {}).get("title")
        != (step.after.data.get("currentWorkItem") or {}).get("title")
    ]
    assert [row[0] for row in watched["rows"]] == changed[::-1]
    assert watched["changes"] == len(changed) > 0
    say(looped, "look", step=0)
    assert looped.front.watch["watched"][0]["now"] == "not set"
    say(looped, "back", step=2)
    done(looped)
    after = looped.front.watch["watched"][0]
    assert all(row[0] <= 2 for row in after["rows"]), "what was taken back is not told"
    say(looped, "watch", path="currentWorkItem.title")
    say(looped, "follow", path="currentWorkItem.title", on=False)
    (still,) = looped.front.watch["watched"]
    assert (still["stops"], still["mine"]) == (True, False), "what stops runs is told while it does"


def test_socket_can_be_compared_with_its_last_visit(looped):
    assert "No step has visited this socket" in say(looped, "compare", socket="Socket-3")
    say(looped, "run")
    done(looped)
    assert say(looped, "compare", socket="Socket-2") == ""
    assert "B is step 6" in str(looped.front.compare)


def test_complete_cast_shows_its_usage_and_can_be_saved_as_a_test(looped):
    say(looped, "run")
    done(looped)
    content = looped.front.inspector["content"]
    facts = next(one for one in content["top"] if one["is"] == "facts")
    said = dict(facts["rows"])
    assert said["run time"].startswith("agents ")
    assert said["waited"] == "never"
    assert said["tokens"] == said["cost"] == "unknown", "nobody reported them: that is not zero"
    assert "pytest runs the test" in say(looped, "keep_test")
    (kept,) = looped.cast.now.project.glob("*.materia-case.json")
    assert json.loads(kept.read_text())["expect"]["ends"] == "complete"


# -- lanes, and folders ------------------------------------------------------------------------

OUT = """import json, sys
given = json.load(sys.stdin)
print(json.dumps({"scopeTransition": {"kind": "replace", "scope": {"id": "side", "cwd": given["params"]["cwd"]}}}))
"""


def test_lane_can_be_allowed_to_work_outside_the_project(tmp_path, make):
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    config = streams_config()
    config["materia"]["Setup"] = {
        **h.python(OUT, parse="json", params={"cwd": str(outside)}),
        "parallelSafe": True,
    }
    panel = make(h.start(project, config, stream_agents()))
    say(panel, "run")
    done(panel)
    shown = content(panel, "answer")["failed"]
    assert (shown["main"], [offer["name"] for offer in shown["offers"]]) == ("allow_folder", ["allow_folder"])
    assert list(repetitions(panel)) == ["Retry", "Fork", "Cast again"]
    assert str(outside) in shown["offers"][0]["does"]
    say(panel, "allow_folder")
    done(panel)
    say(panel, "run")
    done(panel)
    assert panel.cast.status == "complete"


def test_answer_is_sent_to_the_selected_lane(tmp_path, make):
    def check(last, lane):
        return json.dumps({"satisfied": True, "context": f"{last} in {lane}"})

    agents = stream_agents(Check=check)
    del agents["Build"]
    panel = make(h.start(tmp_path, streams_config(), agents))
    say(panel, "run")
    done(panel)
    lanes = panel.cast.now.lanes
    assert [name for name, lane in lanes.items() if lane.waits_for_person] == ["ui", "api"]
    assert panel.lane == "ui"
    say(panel, "lane", lane="api")
    assert panel.front.inspector["title"]["chips"][0] == "lane api"
    say(panel, "reply", text="built by me")
    done(panel)  # the run goes on, and nothing of the lane is left to be asked for
    assert panel.lane == "ui"
    assert panel.cast.now.lanes["api"].now.steps[1].output == "built by me"
    assert panel.front.items["lanes"] == {"0": "ui, running", "1": "api, accepted", "2": "ui, running"}
    assert panel.front.items["frozen"]
    assert panel.front.timeline["lanes"][0]["lanes"] == ["", "ui", "api"]


def one_who_judges(tmp_path, make):
    panel = make(h.start(tmp_path, h.loop_config(), h.loop_agents(2) | {"Check": "person"}))
    say(panel, "run")
    done(panel)
    assert panel.cast.now.waiting_at.socket == "Socket-3"
    return panel


def test_run_continues_after_its_question_is_answered(tmp_path, make):
    panel = one_who_judges(tmp_path, make)
    say(panel, "verdict", satisfied=True, reason="")
    done(panel)
    assert (panel.cast.now.waiting_at.socket, panel.cast.now.waiting_at.visit) == ("Socket-3", 2)
    say(panel, "verdict", satisfied=True, reason="")
    done(panel)
    assert panel.cast.status == "complete"


def test_interrupted_run_is_not_continued_after_another_action(tmp_path, make):
    panel = one_who_judges(tmp_path, make)
    panel.cast.back(1)
    panel.refresh()
    say(panel, "step")
    done(panel)
    say(panel, "step")
    done(panel)
    assert panel.cast.now.waiting_at.socket == "Socket-3"
    say(panel, "verdict", satisfied=True, reason="")
    done(panel)
    assert panel.cast.status == "ready"


def test_run_continues_after_a_failure_is_fixed(tmp_path, make):
    fails = iter([True])

    def check():
        if next(fails, False):
            raise RuntimeError("no judge")
        return h.YES

    panel = make(h.start(tmp_path, h.loop_config(), h.loop_agents(2) | {"Check": check}))
    say(panel, "run")
    done(panel)
    assert panel.cast.status == "failed"
    say(panel, "retry")
    done(panel)
    assert panel.cast.status == "complete"


@pytest.fixture
def stopped_by_a_limit(tmp_path, make):
    """Return a panel whose cast was stopped by a limit after its check refused the work twice."""
    verdicts = iter([h.NO, h.NO, h.YES, h.YES])
    document = h.loop_config()
    document["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1]["maxTraversals"] = 1
    panel = make(h.start(tmp_path, document, h.loop_agents(2) | {"Check": lambda: next(verdicts)}))
    say(panel, "run")
    done(panel)
    assert panel.cast.failure.kind == "edge_traversals_exhausted"
    return panel


def test_run_continues_after_the_output_that_stopped_it_is_corrected(stopped_by_a_limit):
    panel = stopped_by_a_limit
    say(panel, "edit_output", text=h.YES)
    done(panel)
    assert panel.cast.status == "complete"


def test_answer_that_reached_a_limit_can_be_requested_again(stopped_by_a_limit):
    panel = stopped_by_a_limit
    message = content(panel, "answer")["failed"]["blocks"][2]["text"]
    assert message == "Check may send Part 1 to Build 1 time. Last reason: “once more”"
    labels = ["Retry with 1 more allowed", "Discard the last answer and ask again", "Fork", "Cast again"]
    assert list(repetitions(panel)) == labels
    with pytest.raises(MateriaError, match="has answered"):
        panel.cast.retry()
    before = len(panel.cast.steps)
    say(panel, "ask_again")
    done(panel)
    assert panel.cast.status == "complete"
    assert [step.socket for step in panel.cast.steps[before - 1 : before]] == ["Socket-3"]
    assert len(panel.cast.now.abandoned) == 1


def checked_in_lanes(tmp_path):
    """Return a cast whose lanes each wait for approval of ASK, and the turns of the checks."""
    config, told, asked = streams_config(), [], set()
    config["loadouts"]["T"]["sockets"]["Socket-4"]["handoff"] = "agent-contract"

    replies = {lane: iter(["IN_PROGRESS", "COMPLETE"]) for lane in ("ui", "api")}

    def check(turn):
        told.append((turn.lane, turn.approval is not None, turn.prompt))
        if turn.lane not in asked:
            asked.add(turn.lane)
            return report("APPROVAL_REQUEST", approval_request=ASK)
        return report(next(replies[turn.lane], "COMPLETE"))

    cast = h.start(tmp_path, config, stream_agents({"ui": [0], "api": [1]}, Check=check))
    assert cast.run() == "person"
    return cast, told


GIVEN = {
    "allow": ({}, True, ""),
    "deny": ({"reason": "not on a Friday"}, False, "not on a Friday"),
    "answer": ({"text": "Leave it."}, False, "Leave it."),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_held_lane_is_answered_and_continues(tmp_path, make, kind):
    values, granted, words = GIVEN[kind]
    cast, told = checked_in_lanes(tmp_path)
    panel = make(cast)
    questions = []
    for lane in ("api", "ui"):
        say(panel, "lane", lane=lane)
        assert content(panel, "answer")["asks"]["is"] == "hold"
        questions.append(panel.front.surface["identity"])
        say(panel, kind, **values)
        done(panel)
        assert told[-2][:2] == (lane, granted)
        assert words in told[-2][2]
        assert cast.now.lanes[lane].now.latest.reading.satisfied, "its agent goes on without a run"
    assert questions[0] != questions[1], "what is clicked for one lane can never go to another"
    say(panel, "run")
    done(panel)
    assert cast.status == "complete"


@pytest.mark.parametrize("way", [{"satisfied": True}, {"satisfied": False}, {"target": "Socket-3"}])
def test_person_can_decide_for_a_held_lane(tmp_path, make, way):
    cast, told = checked_in_lanes(tmp_path)
    panel = make(cast)
    for lane in ("ui", "api"):
        say(panel, "lane", lane=lane)
        other = {"ui": "api", "api": "ui"}[lane]
        before = cast.now.lanes[other].now.session
        say(panel, "decide", **way)
        assert cast.now.lanes[lane].now.held is None
        assert cast.now.lanes[other].now.session is before
    assert len(told) == 2, "the agents are not asked once more"
    say(panel, "run")
    done(panel)
    assert cast.status == "complete"
    again = "satisfied" not in way or not way["satisfied"]
    assert [lane.now.latest.visit for lane in cast.now.lanes.values()] == [1 + again] * 2


def test_tool_calls_are_approved_and_denied_per_lane(tmp_path, make):
    class Builder(Asks):
        def answer(self, turn):
            decided = [call for call in turn.calls if call.decided]
            if decided or "bash" in turn.allowed:
                return Reply(f"{turn.lane}: {decided[0].decided if decided else 'unasked'}")
            return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "true"}),))

    streams = {"ui": [0], "api": [1], "docs": [2, 3]}
    cast = h.start(tmp_path, streams_config(3), stream_agents(streams, Build=Builder()))
    panel = make(cast)
    say(panel, "run")
    done(panel)
    ways = {"ui": ("allow", {}), "api": ("deny", {"reason": "no"}), "docs": ("allow", {"always": True})}
    seen = None
    for lane, (kind, values) in ways.items():
        say(panel, "lane", lane=lane)
        if seen is not None:
            assert "Nothing was done" in say(panel, kind, identity=seen, **values)
        seen = panel.front.surface["identity"]
        say(panel, kind, **values)
        done(panel)
    built = {name: lane.now.steps.at(3).output for name, lane in cast.now.lanes.items()}
    assert built == {"ui": "ui: once", "api": "api: denied", "docs": "docs: always"}
    assert cast.status == "complete", "the run goes on that stopped for them"


# -- the rows of the timeline ---------------------------------------------------------------------


def in_timeline(panel):
    return [(row[0], row[1], row[2], (row[3] or [""])[0]) for row in panel.front.timeline["tail"]]


def test_steps_of_lanes_are_rows_of_the_timeline(tmp_path, make):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    panel = make(cast)
    say(panel, "run")
    done(panel)
    rows = in_timeline(panel)
    assert [row[:3] for row in rows[:3]] == [(1, "", "Plan"), (2, "ui", "Setup"), (3, "ui", "Build")]
    assert rows[-1][:3] == (2, "", "Tell")
    assert len(rows) == panel.front.timeline["total"] == len(cast.now.all_steps)
    assert panel.front.timeline["axis"] == 1
    for number, (step, lane, socket, item) in enumerate(rows, start=1):
        assert say(panel, "row", row=number) == ""
        assert panel.front.timeline["at"] == number
        back = None if lane else {"kind": "back", "step": step}
        assert repetitions(panel).get("Go back to here") == back
        latest = panel.past.latest
        assert (latest.number, latest.lane, latest.item_key or "") == (step, lane, item)
        assert cast.graph.sockets[latest.socket].materia.id == socket
    assert "There is no step 99" in say(panel, "row", row=99)
    say(panel, "row", row=0)
    assert panel.front.timeline["at"] == 0


def test_rows_of_lanes_can_be_searched_and_compared(tmp_path, make):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    panel = make(cast)
    say(panel, "run")
    done(panel)
    rows = in_timeline(panel)
    lanes = [rows[row - 1][1] for row in panel.rows.find(cast.now, "API")]
    assert lanes == ["", "api", "api", "api"], "the plan, which names it, and its steps"
    builds = [row for row, (_, lane, socket, _) in enumerate(rows, start=1) if (lane, socket) == ("ui", "Build")]
    assert say(panel, "compare", row=builds[1]) == ""
    assert panel.compares(cast.now)[0].text == "A is step 3 of lane ui, B is step 5 of lane ui."
    other = next(row for row, one in enumerate(rows, start=1) if one[1:3] == ("api", "Build"))
    assert "was not visited before" in say(panel, "compare", row=other), "other lanes are not its past"
    assert say(panel, "compare", row=other, other=builds[0]) == ""
    assert panel.compares(cast.now)[0].text == "A is step 3 of lane ui, B is step 3 of lane api."


def test_lanes_of_an_earlier_plan_can_be_shown(tmp_path, make):
    config = streams_config(1)
    exits = config["loadouts"]["T"]["loops"]["L"]["exits"][0]
    config["loadouts"]["T"]["sockets"]["Socket-6"] = at(
        "Judge", ("not_satisfied", "Socket-1", 2), ("always", "Socket-5"), parse="json"
    )
    config["materia"]["Judge"] = h.agent("Judge")
    exits["targetSocketId"] = "Socket-6"
    says = iter([False, True])
    cast = h.start(tmp_path, config, stream_agents(Judge=lambda: json.dumps({"satisfied": next(says)})))
    panel = make(cast)
    say(panel, "run")
    done(panel)
    assert cast.status == "complete"
    rows = in_timeline(panel)
    builds = [row for row, one in enumerate(rows, start=1) if one[1:3] == ("api", "Build")]
    assert [cast.now.session.loop_count, len(builds)] == [2, 2]
    for row in builds:
        say(panel, "row", row=row)
        assert panel.front.timeline["at"] == row
    assert builds[0] < panel.front.timeline["axis"] < builds[1]


def test_running_lane_and_the_reason_for_a_delayed_stop_are_shown(tmp_path, make):
    begun, may = threading.Event(), threading.Event()

    def build(lane):
        if lane == "api":
            begun.set()
            assert may.wait(30)
        return f"built in {lane}"

    cast = h.start(tmp_path, streams_config(1), stream_agents({"ui": [0], "api": [1]}, Build=build))
    panel = make(cast)
    say(panel, "run")
    assert begun.wait(30)
    panel.refresh()
    assert panel.front.bar["words"] == "1 lane running"
    assert panel.front.inspector["title"]["name"] == "Build"
    assert panel.front.inspector["title"]["chips"][0] == "lane api"
    assert panel.lane == "", "nobody has picked it"
    say(panel, "pause")
    panel.refresh()
    assert panel.front.bar["words"] == "Pausing: api · Build"
    may.set()
    done(panel)
    assert cast.now.lanes["ui"].status == "accepted"


def test_requesting_an_answer_again_keeps_item_edits(stopped_by_a_limit):
    panel = stopped_by_a_limit
    cast = panel.cast
    first, second = cast.now.work_items
    cast.edit.items([{**first, "context": "changed"}, second])
    panel.refresh()
    say(panel, "ask_again")
    done(panel)
    assert cast.now.work_items[0]["context"] == "changed"
    assert panel.front.surface["notice"]["words"] == "1 edit was applied again."


def test_user_can_continue_by_dropping_conflicting_edits(tmp_path, make):
    panel = make(h.start(tmp_path, h.loop_config(), h.loop_agents(2) | {"Check": lambda: h.YES}))
    cast = panel.cast
    cast.step()
    cast.edit.items(list(reversed(cast.now.work_items)))
    panel.refresh()
    say(panel, "back", step=0)
    notice = panel.front.surface["notice"]
    assert "your edit of the work items after step 1 cannot be applied" in notice["words"]
    assert notice["without_edits"] == {"kind": "back", "step": 0, "discard_edits": True}
    assert len(cast.steps) == 1
    kind, fields = notice["without_edits"]["kind"], dict(notice["without_edits"])
    del fields["kind"]
    say(panel, kind, **fields)
    assert not cast.steps
