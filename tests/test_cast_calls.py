"""Agents that use tools: what they call, spend and note is journaled, and what needs leave waits for a person."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.agents.base import AgentError, Asking, Called, Noted, Reply, Said, Spent, ToolCall, Usage
from materia_nb.cast import Cast
from materia_nb.errors import MateriaError

READ = ToolCall(id="1.1", tool="read", args={"path": "a.txt"}, said="let me look", result="text of a")
MAKE = ToolCall(id="2.1", tool="bash", args={"command": "make"}, round=2)


class Toolsmith:
    """Reads, then wants to run a command, then answers with what it was let do."""

    name = "toolsmith"

    def __init__(self, *, fail: bool = False):
        self.turns = []
        self.fail = fail

    def answer(self, turn):
        self.turns.append(turn)
        if not turn.calls:
            turn.tell(Noted("429 from the server; trying again in 1 s (1 of 3)"))
            turn.tell(Called(READ))
        if self.fail:
            self.fail = False
            turn.tell(Spent(Usage(10, 1)))
            raise AgentError("The server is gone", kind="transport", hint="resend")
        calls = {call.id: call for call in turn.calls}
        if (make := calls.get("2.1")) is None:
            if "bash" not in turn.allowed:
                turn.tell(Spent(Usage(5, 2, 0.5)))
                return Asking((MAKE,))
            make = MAKE
        if make.result is None:
            make = ToolCall(
                id=make.id, tool="bash", args=make.args, round=2, result="made", decided=make.decided
            )
            turn.tell(Called(make))
        return Reply(make.result, Usage(3, 1))


def start(tmp_path, agent, sockets=1):
    return h.start(tmp_path, h.chain_config(sockets), agent)


def events(cast, *types):
    lines = (cast.run_dir / "events.jsonl").read_text().splitlines()
    return [line["data"] for line in map(json.loads, lines) if line["type"] in types]


def spent_by_turn(cast):
    return [[turn.spent for turn in step.turns] for step in cast.steps]


def reopened(cast):
    """The cast as its journal has it; it must be the same in everything that tools leave."""
    other = Cast.open(cast.run_dir)
    h.assert_same(other, cast)
    assert other.asking == cast.asking
    assert other.calls == cast.calls
    assert other.allowed == cast.allowed
    assert [step.calls for step in other.steps] == [step.calls for step in cast.steps]
    assert [step.notes for step in other.steps] == [step.notes for step in cast.steps]
    assert [[turn.calls for turn in step.turns] for step in other.steps] == [
        [turn.calls for turn in step.turns] for step in cast.steps
    ]
    assert other.now.usage == cast.now.usage
    assert spent_by_turn(other) == spent_by_turn(cast)
    return other


def test_a_call_that_changes_something_waits_for_leave(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    assert cast.run() == "person"
    assert cast.asking == (MAKE,)
    assert cast.calls == (READ,)
    assert cast.run() == "person", "nothing is asked again before the person has decided"
    assert len(agent.turns) == 1
    reopened(cast)
    assert cast.permit().output == "made"
    assert agent.turns[1].calls[0] == READ
    assert agent.turns[1].calls[1].decided == "once"
    assert cast.run() == "complete"
    assert [call.decided for call in cast.steps[0].turns[0].calls] == [None, "once"]
    assert cast.now.usage == (8, 3, 0.5)
    assert cast.usage["bySocket"]["Socket-1"]["total"] == 11
    assert spent_by_turn(cast) == [[((5, 2, 0.5),)]], "what asking cost belongs to the turn that was answered"
    assert not cast.asking
    assert not cast.calls
    reopened(cast)


def test_a_denied_call_is_told_with_the_reason_and_never_run(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    cast.run()
    step = cast.forbid("not on a Friday")
    assert step.output == "The person did not allow this call. The reason: not on a Friday"
    (call,) = [call for call in agent.turns[1].calls if call.tool == "bash"]
    assert (call.decided, call.ok) == ("denied", False)
    assert [line["call"]["decided"] for line in events(cast, "tool_call")] == [None, "denied"]
    reopened(cast)


def test_always_holds_for_the_rest_of_the_cast_and_no_longer(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent, sockets=2)
    cast.run()
    cast.permit(always=True)
    assert cast.run() == "complete"
    assert cast.allowed == {"bash"}
    assert len(agent.turns) == 3
    reopened(cast)
    other = start(tmp_path, Toolsmith())
    assert other.run() == "person"


def test_what_is_allowed_need_not_ask_and_asks_again_when_taken_back(tmp_path):
    cast = start(tmp_path, Toolsmith(), sockets=2)
    cast.allow("bash", "edit")
    cast.step()
    assert cast.steps[0].output == "made"
    cast.disallow("bash")
    assert cast.allowed == {"edit"}
    assert cast.run() == "person"
    cast.disallow()
    assert not cast.allowed
    with pytest.raises(MateriaError, match=r"'bsh' is not a tool that asks.*\n.*bash"):
        cast.allow("bsh")
    assert not cast.allowed
    reopened(cast)


def test_a_resumed_cast_knows_what_is_asked_and_goes_on(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    cast.close()
    agent = Toolsmith()
    again = Cast.resume(cast.run_dir, h.table(agent))
    assert again.asking == (MAKE,)
    assert again.permit().output == "made"
    assert agent.turns[0].calls[0].result == "text of a", "what was read is not read again"


def test_a_person_can_answer_in_its_place(tmp_path):
    cast = start(tmp_path, Toolsmith())
    cast.run()
    cast.reply("done by hand")
    assert cast.steps[0].turns[0].calls == (READ,)
    assert not cast.asking
    with pytest.raises(MateriaError, match="No tool call waits"):
        cast.permit()
    reopened(cast)


def test_a_failed_turn_is_sent_again_with_its_calls(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    assert cast.run() == "failed"
    assert cast.failure.kind == "transport"
    assert cast.now.usage.tokens == 11, "what the failed turn cost is counted"
    reopened(cast)
    cast.allow("bash")
    assert cast.resend().output == "made"
    assert agent.turns[1].calls == (READ,)
    assert cast.steps[0].notes == ["429 from the server; trying again in 1 s (1 of 3)"]
    assert cast.now.usage.tokens == 15
    reopened(cast)
    with pytest.raises(MateriaError, match="not failed"):
        cast.resend()


def test_recast_begins_the_visit_anew_and_keeps_the_lost_calls(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    cast.run()
    cast.recast()
    assert agent.turns[1].calls == ()
    assert cast.steps[0].calls == [READ, READ]
    assert cast.calls == (READ,)
    reopened(cast)


def test_a_failed_turn_can_be_reworded_and_sent(tmp_path):
    agent = Toolsmith(fail=True)
    cast = start(tmp_path, agent)
    cast.run()
    cast.edit_prompt("materia", "in other words")
    assert cast.status == "waiting"
    cast.allow("bash")
    cast.step()
    assert agent.turns[1].prompt.strip().startswith("in other words")
    reopened(cast)


def test_a_utility_cannot_be_sent_again(tmp_path):
    config = h.config({"Socket-1": h.at("U")}, {"U": h.python("raise SystemExit(3)")})
    cast = h.start(tmp_path, config)
    cast.run()
    with pytest.raises(MateriaError, match="no turn to send again"):
        cast.resend()


def test_an_aborted_turn_is_sent_again(tmp_path):
    agent = Toolsmith()
    cast = start(tmp_path, agent)
    cast.run()
    cast.abort()
    assert cast.resend().output is None, "the call still waits for leave"
    assert cast.asking == (MAKE,)
    reopened(cast)


def test_what_is_said_while_it_comes_is_heard_and_not_kept(tmp_path):
    heard = []

    class Talker:
        name = "talker"

        def answer(self, turn):
            for text in ("on", "ce", " more"):
                turn.tell(Said(text))
            turn.tell(Said("again", fresh=True))
            self.tell = turn.tell
            return Reply("again")

    agent = Talker()
    cast = start(tmp_path, agent)
    stop = cast.listen(lambda: heard.append(cast.saying))
    cast.step()
    assert heard == ["on", "once", "once more", "again", ""]
    assert cast.saying == ""
    agent.tell(Called(READ))
    assert not cast.steps[0].calls, "a turn that is over can tell nothing any more"
    stop()
    assert "once more" not in (cast.run_dir / "events.jsonl").read_text()


def test_an_interrupt_between_calls_goes_on_from_them(tmp_path):
    class Slow(Toolsmith):
        def answer(self, turn):
            if not turn.calls:
                turn.tell(Called(READ))
                raise KeyboardInterrupt
            return super().answer(turn)

    cast = start(tmp_path, Slow())
    with pytest.raises(KeyboardInterrupt):
        cast.step()
    assert cast.calls == (READ,)
    cast.allow("bash")
    assert cast.step().output == "made"
    assert [call.id for call in cast.steps[0].calls] == ["1.1", "2.1"]
    reopened(cast)


def test_calls_stand_in_the_conversation_of_the_next_turn(tmp_path):
    class Sloppy(Toolsmith):
        def answer(self, turn):
            if turn.kind == "work":
                turn.tell(Called(READ))
                return Reply("no JSON")
            self.turns.append(turn)
            return Reply('{"satisfied": true}')

    agent = Sloppy()
    config = h.config(
        {"Socket-1": h.at("A", ("satisfied", "end"), parse="json")}, {"A": h.agent(tools="readOnly")}
    )
    cast = h.start(tmp_path, config, agent)
    cast.run()
    said = agent.turns[0].conversation
    assert [message.role for message in said] == ["user", "assistant"]
    assert said[1].calls == (READ,)
    reopened(cast)
