"""Test asking one turn several times in parallel; the cast does not change until one answer is accepted."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from builders import asks, at, config, edge
from magics_helpers import run, text
from materia_nb import Workbench
from materia_nb.agents import CallEvent, NeedsApproval, Reply, ToolCall, Usage, UsageEvent
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError


class Counting:
    """An agent that gives a different answer each time; its second answer is not JSON."""

    name = "counting"

    def __init__(self):
        self.prompts = []

    def answer(self, turn):
        self.prompts.append(turn.prompt)
        count = len(self.prompts)
        said = "not json" if count == 2 else json.dumps({"satisfied": count % 2 == 1, "context": f"try {count}"})
        return Reply(said, usage=Usage(10 * count, 1, 0.5))


@pytest.fixture
def at_eval(cast):
    cast.run(until="Socket-3")
    return cast


def test_attempts_are_shown_side_by_side_with_cost_validity_and_next_socket(at_eval):
    tried = at_eval.attempt("Socket-3", n=3, agents=[Counting()])
    assert [(one.valid, one.to) for one in tried] == [(True, "Socket-4"), (False, None), (True, "Socket-4")]
    assert [one.usage.tokens for one in tried] == [11, 21, 31]
    assert tried.usage.cost == 1.5
    assert tried[1].issues
    output = repr(tried)
    assert "2 answers would be accepted" in output
    assert tried[0].leads == "Maintain (a)"
    assert "Attempt 2 was refused" in output


def test_attempts_do_not_change_the_cast_until_one_is_accepted(at_eval, monkeypatch):
    before, files = at_eval.runner.session, h.lines_of(at_eval)
    at_eval.attempt(n=2, agents=[Counting()], prompts=["Judge {{item.title}} again", None])
    assert at_eval.runner.session is before
    assert h.lines_of(at_eval) == files
    assert at_eval.status == "ready"


def test_accepted_attempt_is_recorded_with_its_agent_and_the_number_of_attempts(at_eval):
    tried = at_eval.attempt("Socket-3", n=3, agents=[Counting()])
    step = tried.take(3)
    assert at_eval.steps[-1] == step
    assert step.decision.target == "Socket-4"
    assert json.loads(step.output)["context"] == "try 3"
    assert step.turns[-1].meta["attempt"] == {"number": 3, "of": 3, "agent": "counting"}
    assert at_eval.now.usage.tokens == 31  # what the others cost is not a cost of the cast
    h.assert_same(open_cast(at_eval.run_dir), at_eval)
    at_eval.run(steps=1)
    assert at_eval.steps[-1].socket == "Socket-4"


def test_edited_prompt_of_an_attempt_is_expanded_and_recorded(at_eval):
    agent = Counting()
    tried = at_eval.attempt(agents=[agent], prompts=["Is {{item.title}} good?", {"return": "Only JSON."}])
    assert "Is a good?" in agent.prompts[0]
    assert "Only JSON." in agent.prompts[1]
    assert [one.wording for one in tried] == [1, 2]
    tried.take(1)
    assert "Is a good?" in at_eval.steps[-1].prompt.text
    assert "prompt_edited" in h.types_of(at_eval)


def test_attempt_cannot_be_accepted_once_its_turn_is_over(at_eval):
    tried = at_eval.attempt(n=1, agents=[Counting()])
    at_eval.edit.set("note", "changed since")
    at_eval.step()
    with pytest.raises(MateriaError, match="no longer waiting"):
        tried.take(1)


@pytest.mark.parametrize("number", [0, 4, -1, "1", True])
def test_attempts_are_numbered_from_1(at_eval, number):
    tried = at_eval.attempt(n=3, agents=[Counting()])
    with pytest.raises(MateriaError, match="does not exist"):
        tried.take(number)


def test_invalid_attempt_cannot_be_accepted(at_eval):
    tried = at_eval.attempt(n=2, agents=[Counting()])
    with pytest.raises(MateriaError, match="no acceptable answer"):
        tried.take(2)
    assert at_eval.status == "ready"


def test_any_attempt_can_be_pinned(at_eval):
    tried = at_eval.attempt(n=3, agents=[Counting()])
    pin = tried.pin(3)
    assert pin.words == "attempt 3 of 3, by counting"
    at_eval.step()
    assert json.loads(at_eval.steps[-1].output)["context"] == "try 3"


def test_failed_attempts_are_listed_and_people_are_not_asked(at_eval):
    def broken():
        raise ValueError("no luck")

    tried = at_eval.attempt(agents=[broken, "person", lambda: {"satisfied": False}])
    assert "no luck" in tried[0].error
    assert "person" in tried[1].error
    assert [one.valid for one in tried] == [False, False, True]
    assert tried[2].leads == "Build (a)"


def test_attempt_that_would_fail_the_cast_shows_the_failure_instead_of_a_target(tmp_path):
    wb = Workbench(tmp_path, bundled=False)
    wb.load(config({"A": asks(edge("A", "not_satisfied", 1))}))
    cast = wb.cast("r", agents={"*": lambda: {"satisfied": False}})
    cast.run(steps=1)
    (one,) = cast.attempt()
    assert (one.valid, one.to, one.leads) == (True, None, "fails: took the same edge too often")
    wb.close()


def test_attempts_never_run_tools_with_side_effects_without_approval(at_eval):
    call = ToolCall(id="1", tool="write", args={"path": "x"})
    given = []

    class Writer:
        name = "writer"

        def answer(self, turn):
            given.append(turn.allowed)
            turn.report(CallEvent(ToolCall(id="0", tool="read", args={"path": "y"}, result="z")))
            turn.report(UsageEvent(Usage(5, 0)))
            return NeedsApproval((call,))

    at_eval.approvals.allow("write")
    (one,) = at_eval.attempt(agents=[Writer()])
    assert given == [frozenset()]
    assert (one.valid, one.leads, one.calls, one.usage.tokens) == (False, "is asking for approval of write", 1, 5)


def test_attempt_consists_of_the_work_turn_and_the_handoff_turn(tmp_path):
    wb = Workbench(tmp_path, bundled=False)
    wb.load(config({"A": asks(edge("B", "satisfied"), finalize=True), "B": at("P")}))
    cast = wb.cast("r")

    def worker(turn):
        if turn.kind == "work":
            turn.report(CallEvent(ToolCall(id="0", tool="read", args={"path": "y"}, result="z")))
            return "done"
        return {"satisfied": True}

    tried = cast.attempt("A", agents=[worker])
    assert (tried[0].turns, tried[0].to) == (2, "B")
    step = tried.take(1)
    assert [turn.mode for turn in step.turns] == ["work", "final"]
    assert len(step.calls) == 1
    wb.close()


@pytest.mark.parametrize(
    "socket, told", [("Socket-4", "is waiting, not"), ("Socket-33", "no socket"), ("Socket-3", None)]
)
def test_only_the_waiting_turn_accepts_attempts(at_eval, socket, told):
    if told is None:
        at_eval.run()
        told = "complete"
    with pytest.raises(MateriaError, match=told):
        at_eval.attempt(socket)


def test_attempts_are_refused_while_a_draft_waits(tmp_path):
    wb = Workbench(tmp_path, bundled=False)
    wb.load(config({"A": at("M")}))
    cast = wb.cast("r", agents={"*": lambda: "a draft"})
    assert cast.attempt()[0].leads == "a draft is waiting for a decision"
    cast.run()
    with pytest.raises(MateriaError, match="person must decide first"):
        cast.attempt()
    wb.close()


def test_interrupt_keeps_finished_attempts(at_eval):
    asked = []

    def once():
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"satisfied": True}

    with pytest.raises(KeyboardInterrupt):
        at_eval.attempt(n=3, agents=[once])
    assert len(at_eval.now.attempts) == 1
    at_eval.now.attempts.take(1)
    assert at_eval.steps[-1].socket == "Socket-3"


def test_parallel_and_sequential_attempts_return_equal_rows(at_eval):
    tried = at_eval.attempt(n=4, agents=[lambda: {"satisfied": True}], at_once=4)
    assert [one.number for one in tried] == [1, 2, 3, 4]
    assert all(one.to == "Socket-4" for one in tried)


def test_hostile_answer_is_shown_as_text(at_eval):
    bundle = at_eval.attempt(agents=[lambda: "<script>alert(1)</script>"])._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"]
    pytest.importorskip("pandas")
    assert list(at_eval.now.attempts.frame()["valid"]) == [False]


def test_attempt_verb_runs_and_accepts_attempts(shell):
    run(shell, "%materia use Ask")
    run(shell, "%materia cast greet")
    shell.user_ns["agents"] = [lambda: "hello", lambda: "good day"]
    output = text(run(shell, "%materia attempt --agents $agents"))
    assert "asked 2 times" in output
    run(shell, "%materia attempt --take 2")
    assert shell.user_ns["wb"].current.steps[-1].output == "good day"
