"""Test agents with tools: calls, cost and notes are recorded, and calls that need approval wait for a person."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.agents.interface import (
    AgentError,
    CallEvent,
    NeedsApproval,
    NoteEvent,
    Reply,
    TextEvent,
    ToolCall,
    Usage,
    UsageEvent,
)
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError

READ = ToolCall(id="1.1", tool="read", args={"path": "a.txt"}, said="let me look", result="text of a")
MAKE = ToolCall(id="2.1", tool="bash", args={"command": "make"}, round=2)


class Toolsmith:
    """An agent that reads a file, asks to run a command, and then answers with the decision."""

    name = "toolsmith"

    def __init__(self, *, fail: bool = False):
        self.turns = []
        self.fail = fail

    def answer(self, turn):
        self.turns.append(turn)
        if not turn.calls:
            turn.report(NoteEvent("429 from the server; trying again in 1 s (1 of 3)"))
            turn.report(CallEvent(READ))
        if self.fail:
            self.fail = False
            turn.report(UsageEvent(Usage(10, 1)))
            raise AgentError("The server is gone", kind="transport", hint="resend")
        calls = {call.id: call for call in turn.calls}
        if (make := calls.get("2.1")) is None:
            if "bash" not in turn.allowed:
                turn.report(UsageEvent(Usage(5, 2, 0.5)))
                return NeedsApproval((MAKE,))
            make = MAKE
        if make.result is None:
            make = ToolCall(id=make.id, tool="bash", args=make.args, round=2, result="made", decided=make.decided)
            turn.report(CallEvent(make))
        return Reply(make.result, Usage(3, 1))


def start(tmp_path, agent, sockets=1):
    return h.start(tmp_path, h.chain_config(sockets), agent)


def events(cast, *types):
    lines = (cast.run_dir / "events.jsonl").read_text().splitlines()
    return [line["data"] for line in map(json.loads, lines) if line["type"] in types]


def spent_by_turn(cast):
    return [[[used[:3] for used in turn.spent] for turn in step.turns] for step in cast.steps]


def reopened(cast):
    """Reopen the cast from its journal and assert that all data about tool calls is unchanged."""
    other = open_cast(cast.run_dir)
    h.assert_same(other, cast)
    assert other.approvals.asking == cast.approvals.asking
    assert other.now.calls == cast.now.calls
    assert other.approvals.allowed == cast.approvals.allowed
    assert [step.calls for step in other.steps] == [step.calls for step in cast.steps]
    assert [step.notes for step in other.steps] == [step.notes for step in cast.steps]
    assert [[turn.calls for turn in step.turns] for step in other.steps] == [
        [turn.calls for turn in step.turns] for step in cast.steps
    ]
    assert other.now.engine.usage == cast.now.engine.usage
    assert spent_by_turn(other) == spent_by_turn(cast)
    return other


def test_tool_call_with_side_effects_waits_for_approval(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    assert cast.run() == "person"
    assert cast.approvals.asking == (MAKE,)
    assert cast.now.calls == (READ,)
    assert cast.run() == "person", "nothing is asked again before the person has decided"
    assert len(agent.turns) == 1
    reopened(cast)
    assert cast.approvals.approve().output == "made"
    assert agent.turns[1].calls[0] == READ
    assert agent.turns[1].calls[1].decided == "once"
    assert cast.run() == "complete"
    assert [call.decided for call in cast.steps[0].turns[0].calls] == [None, "once"]
    assert cast.now.engine.usage[:5] == (8, 3, 0.5, 0, 1)
    assert cast.now.usage_report["bySocket"]["Socket-1"]["total"] == 11
    assert spent_by_turn(cast) == [[[(5, 2, 0.5)]]], "what asking cost belongs to the turn that was answered"
    assert not cast.approvals.asking
    assert not cast.now.calls
    reopened(cast)


def test_cast_lists_its_waiting_calls(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    assert "is asking for approval to run bash" in str(cast)


def test_denied_call_is_reported_with_the_reason_and_never_run(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    cast.run()
    step = cast.approvals.deny("not on a Friday")
    assert step.output == "The person did not allow this call. Reason: not on a Friday"
    (call,) = [call for call in agent.turns[1].calls if call.tool == "bash"]
    assert (call.decided, call.ok) == ("denied", False)
    assert [line["call"]["decided"] for line in events(cast, "tool_call")] == [None, "denied"]
    reopened(cast)


def test_always_allowed_tool_needs_no_approval_for_the_rest_of_the_cast(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent, sockets=2)
    cast.run()
    cast.approvals.approve(always=True)
    assert cast.run() == "complete"
    assert cast.approvals.allowed == {"bash"}
    assert len(agent.turns) == 3
    reopened(cast)
    other = start(tmp_path, Toolsmith())
    assert other.run() == "person"


def test_allowed_tool_needs_no_approval_until_it_is_disallowed(tmp_path):
    cast = start(tmp_path, Toolsmith(), sockets=2)
    cast.approvals.allow("bash", "edit")
    cast.step()
    assert cast.steps[0].output == "made"
    cast.approvals.disallow("bash")
    assert cast.approvals.allowed == {"edit"}
    assert cast.run() == "person"
    cast.approvals.disallow()
    assert not cast.approvals.allowed
    with pytest.raises(MateriaError, match=r"'bsh' is not a tool that can need approval\.\n.*bash"):
        cast.approvals.allow("bsh")
    assert not cast.approvals.allowed
    reopened(cast)


def test_resumed_cast_keeps_its_waiting_calls(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    cast.close()
    agent = Toolsmith()
    resumed = resume_cast(cast.run_dir, h.table(agent))
    assert resumed.approvals.asking == (MAKE,)
    assert resumed.approvals.approve().output == "made"
    assert agent.turns[0].calls[0].result == "text of a", "what was read is not read again"


def test_person_can_answer_instead_of_the_agent(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    cast.reply("done by hand")
    assert cast.steps[0].turns[0].calls == (READ,)
    assert not cast.approvals.asking
    with pytest.raises(MateriaError, match="Nothing is waiting for approval"):
        cast.approvals.approve()
    reopened(cast)


def test_retried_turn_keeps_its_tool_calls(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    assert cast.run() == "failed"
    assert cast.failure.kind == "transport"
    assert cast.now.usage.tokens == 11, "what the failed turn cost is counted"
    reopened(cast)
    cast.approvals.allow("bash")
    assert cast.retry(turn=True).output == "made"
    assert agent.turns[1].calls == (READ,)
    assert cast.steps[0].notes == ("429 from the server; trying again in 1 s (1 of 3)",)
    assert cast.now.usage.tokens == 15
    reopened(cast)
    with pytest.raises(MateriaError, match="not failed"):
        cast.retry(turn=True)


def test_retry_restarts_the_visit_and_still_shows_its_earlier_calls(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    cast.run()
    cast.retry()
    assert agent.turns[1].calls == ()
    assert cast.steps[0].calls == (READ, READ)
    assert cast.now.calls == (READ,)
    reopened(cast)


def test_prompt_of_a_failed_turn_can_be_edited_and_sent_again(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    cast.run()
    cast.edit.prompt("task", "in other words")
    assert cast.status == "waiting"
    cast.approvals.allow("bash")
    cast.step()
    assert agent.turns[1].prompt.endswith("in other words")
    reopened(cast)


def test_failed_utility_cannot_be_retried_as_an_agent_turn(tmp_path):
    config = h.config({"Socket-1": h.at("U")}, {"U": h.python("raise SystemExit(3)")})
    cast = h.start(tmp_path, config)
    cast.run()
    with pytest.raises(MateriaError, match="No agent turn was interrupted"):
        cast.retry(turn=True)


def test_turn_can_be_repeated_after_an_abort(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    cast.run()
    cast.abort()
    assert cast.retry(turn=True).output is None, "the call still waits for approval"
    assert cast.approvals.asking == (MAKE,)
    reopened(cast)


def test_streamed_text_is_sent_to_listeners_and_not_stored(tmp_path):
    heard = []

    class Talker:
        name = "talker"

        def answer(self, turn):
            for text in ("on", "ce", " more"):
                turn.report(TextEvent(text))
            turn.report(TextEvent("again", fresh=True))
            self.report = turn.report
            return Reply("again")

    agent = Talker()
    cast = start(tmp_path, agent)
    stop = cast.follow.text(lambda: heard.append(cast.now.partial_answer))
    cast.step()
    assert heard == ["on", "once", "once more", "again", ""]
    assert cast.now.partial_answer == ""
    agent.report(CallEvent(READ))
    assert not cast.steps[0].calls, "a turn that is over can report nothing any more"
    stop()
    assert "once more" not in (cast.run_dir / "events.jsonl").read_text()


def test_turn_interrupted_between_calls_does_not_repeat_finished_calls(tmp_path):
    class Slow(Toolsmith):
        def answer(self, turn):
            if not turn.calls:
                turn.report(CallEvent(READ))
                raise KeyboardInterrupt
            return super().answer(turn)

    cast = start(tmp_path, Slow())
    with pytest.raises(KeyboardInterrupt):
        cast.step()
    assert cast.now.calls == (READ,)
    cast.approvals.allow("bash")
    assert cast.step().output == "made"
    assert [call.id for call in cast.steps[0].calls] == ["1.1", "2.1"]
    reopened(cast)


def test_tool_calls_are_in_the_conversation_of_the_next_turn(tmp_path):
    class Sloppy(Toolsmith):
        def answer(self, turn):
            if turn.kind == "work":
                turn.report(CallEvent(READ))
                return Reply("no JSON")
            self.turns.append(turn)
            return Reply('{"satisfied": true}')

    agent = Sloppy()
    config = h.config({"Socket-1": h.at("A", ("satisfied", "end"), parse="json")}, {"A": h.agent(tools="readOnly")})
    cast = h.start(tmp_path, config, agent)
    cast.run()
    said = agent.turns[0].conversation
    assert [message.role for message in said] == ["user", "assistant"]
    assert said[1].calls == (READ,)
    reopened(cast)


# -- leave is for what was shown, once, here ------------------------------------------------


def test_call_that_was_started_is_not_run_again_after_a_crash(tmp_path):
    ran = []

    class Cut(Toolsmith):
        def answer(self, turn):
            (call,) = [one for one in turn.calls if one.id == "2.1"] or [None]
            if call is not None and call.decided and call.result is None:
                begun = ToolCall(id="2.1", tool="bash", args=call.args, round=2, result="cut", ok=False, decided="once")
                turn.report(CallEvent(begun))
                ran.append(call)
                raise KeyboardInterrupt
            return super().answer(turn)

    cast = start(tmp_path, Cut())
    cast.run()
    with pytest.raises(KeyboardInterrupt):
        cast.approvals.approve()
    reopened(cast)
    assert cast.step().output == "cut"
    assert len(ran) == 1
    assert [call.id for call in cast.steps[0].calls] == ["1.1", "2.1"]
    reopened(cast)


def test_result_of_a_tool_call_replaces_the_entry_for_its_start(tmp_path):
    class Twice:
        name = "twice"

        def answer(self, turn):
            turn.report(CallEvent(ToolCall(id="1", tool="write", result="begun", ok=False)))
            turn.report(CallEvent(READ))
            turn.report(CallEvent(ToolCall(id="1", tool="write", result="written")))
            return Reply("done")

    cast = start(tmp_path, Twice())
    cast.step()
    assert [(call.id, call.result) for call in cast.steps[0].calls] == [
        ("1", "written"),
        ("1.1", "text of a"),
    ]
    reopened(cast)


def test_approval_covers_only_the_calls_that_were_displayed(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    other = ToolCall(id="2.1", tool="bash", args={"command": "make clean"}, round=2)
    with pytest.raises(MateriaError, match="Other tool calls are now waiting"):
        cast.approvals.approve(calls=(other,))
    with pytest.raises(MateriaError, match="Other tool calls are now waiting"):
        cast.approvals.deny(calls=())
    assert cast.approvals.approve(calls=(MAKE,)).output == "made"


def test_refused_approval_does_not_approve_any_call(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    cast.abort()
    with pytest.raises(MateriaError, match="No socket is waiting"):
        cast.approvals.approve(always=True)
    assert not cast.approvals.allowed


def test_draft_cannot_be_refined_while_calls_wait(tmp_path):
    class Drafts(Toolsmith):
        def answer(self, turn):
            return Reply("draft") if turn.kind == "work" else super().answer(turn)

    config = h.config({"Socket-1": h.at("A")}, {"A": h.agent(multiTurn=True)})
    cast = h.start(tmp_path, config, Drafts())
    cast.run()
    cast.refine("first wish")
    assert cast.approvals.asking
    for act in (lambda: cast.refine("second wish"), cast.accept):
        with pytest.raises(MateriaError, match="are waiting for your approval"):
            act()
    assert cast.approvals.approve().output == "made"
    assert "first wish" in [message.text for message in cast.now.conversation]
    reopened(cast)


def test_refused_prompt_edit_leaves_the_cast_failed(tmp_path):
    cast = start(tmp_path, Toolsmith(fail=True))
    cast.run()
    with pytest.raises(MateriaError, match="no part"):
        cast.edit.prompt("nonsense", "x")
    assert cast.status == "failed"
    reopened(cast)


def test_refused_approval_does_not_cancel_a_requested_stop(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.stop()
    with pytest.raises(MateriaError, match="Nothing is waiting for approval"):
        cast.approvals.approve()
    assert cast.now.live.stop_requested


def test_listener_that_removes_itself_and_fails_does_not_fail_the_step(tmp_path):
    class Talker:
        name = "talker"

        def answer(self, turn):
            turn.report(TextEvent("x"))
            return Reply("said")

    cast = start(tmp_path, Talker())

    def leave():
        stop()
        raise RuntimeError("gone")

    stop = cast.follow.text(leave)
    assert cast.step().output == "said"
    assert "gone" in cast.runner.messages[-1]


# -- what is told ------------------------------------------------------------------------------


def test_failure_is_cleared_when_the_turn_is_repeated(tmp_path):
    cast = start(tmp_path, Toolsmith(fail=True))
    cast.run()
    assert "The cast stopped: " in str(cast.why())
    assert cast.now.notes == ("429 from the server; trying again in 1 s (1 of 3)",)
    cast.retry(turn=True)
    assert cast.approvals.asking
    assert "is asked again" in str(cast.why())
    assert "transport" not in str(cast.why())
    assert not cast.now.notes
    assert cast.steps[0].notes, "it is kept all the same"
    assert reopened(cast).now.notes == cast.now.notes


def test_retry_continues_with_the_edited_prompt(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    cast.run()
    cast.approvals.allow("bash")
    cast.edit.prompt("task", "in other words")
    assert cast.retry(turn=True).output == "made"
    assert agent.turns[1].prompt.endswith("in other words")
