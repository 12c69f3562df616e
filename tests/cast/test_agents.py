"""Test agents of every kind: people, agents that raise or return invalid values, and agents that use their own cast."""

from __future__ import annotations

import gc
import warnings

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents.interface import AgentError, Reply, Usage
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import RefusedAnswer


class Foreign:
    """An agent of another package that returns the given value, or raises it if it is an exception."""

    name = "foreign"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.turns = []

    def answer(self, turn):
        self.turns.append(turn)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.mark.parametrize(
    "error, kind, told",
    [
        (RuntimeError("no network"), "agent_error", "RuntimeError: no network"),
        (
            AgentError("The model is gone", kind="agent_timeout", hint="wait"),
            "agent_timeout",
            "The model is gone",
        ),
        (MateriaError("Some other thing"), "agent_error", "Some other thing"),
        (ValueError(), "agent_error", "with ValueError"),
        (RecursionError("deep"), "agent_error", "RecursionError"),
        (UnicodeError("\ud800 half"), "agent_error", "half"),
    ],
)
def test_any_exception_of_an_agent_fails_the_cast_and_retry_calls_it_again(tmp_path, error, kind, told):
    cast = h.start(tmp_path, h.chain_config(2), Foreign(error, "one", "two"))
    assert cast.run() == "failed"
    assert cast.failure.kind == kind
    assert told in cast.failure.message
    h.assert_same(open_cast(cast.run_dir), cast)
    assert cast.retry().output == "one"
    assert cast.run() == "complete"
    assert [visit[:2] for visit in cast.route] == [("Socket-1", 1), ("Socket-2", 1)]
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_interrupted_socket_still_waits_for_its_answer(tmp_path, error):
    agent = Foreign("one", error, "two")
    cast = h.start(tmp_path, h.chain_config(2), agent)
    with pytest.raises(type(error)):
        cast.run()
    assert cast.status == "waiting"
    assert cast.now.waiting_at.socket == "Socket-2"
    h.assert_same(open_cast(cast.run_dir), cast)
    assert cast.run() == "complete"
    assert [turn.socket_id for turn in agent.turns] == ["Socket-1", "Socket-2", "Socket-2"]
    assert len(cast.steps) == 2


@pytest.mark.parametrize(
    "answer",
    [
        42,
        b"bytes",
        Reply(None),
        Reply("x", Usage("many", 1)),
        Reply("x", Usage(-5, 1)),
        Reply("x", Usage(1, 1, float("nan"))),
        Reply("x", "usage"),
        Reply("x", meta={"set": {1}}),
        Reply("x", meta={"n": float("inf")}),
        Reply("x", meta=7),
    ],
)
def test_invalid_reply_fails_the_cast_without_damaging_the_journal(tmp_path, answer):
    cast = h.start(tmp_path, h.chain_config(1), Foreign(answer, "fine"))
    assert cast.run() == "failed"
    assert cast.failure.kind == "agent_error"
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.retry()
    assert cast.run() == "complete"


def test_agent_reply_may_be_text_or_an_object(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), Foreign("text", {"a": 1}))
    assert cast.run() == "complete"
    assert [step.output for step in cast.steps] == ["text", '{"a":1}']


def test_usage_and_metadata_are_stored(tmp_path):
    reply = Reply("x", Usage(True, 2, None), {"model": "m\ud800"})
    cast = h.start(tmp_path, h.chain_config(1), Foreign(reply))
    cast.run()
    assert cast.now.engine.usage[:5] == (1, 2, None, 0, 1)
    done = h.lines_of(cast)[2]["data"]
    assert done["usage"] == {"input": 1, "output": 2, "cost": None}
    assert done["meta"] == {"model": "m\ud800"}
    h.assert_same(open_cast(cast.run_dir), cast)


def test_lone_surrogates_are_replaced_both_in_memory_and_on_disk(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "a\ud800b")
    cast.run()
    assert cast.steps[0].output == "a\ufffdb"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r42_malformed_answer_from_a_person_is_refused_and_the_socket_waits(tmp_path):
    cast = h.start(tmp_path, h.one_config(parse="json", assign={"plan": "$.plan"}))
    assert cast.run() == "person"
    before, now = h.types_of(cast), cast.now.engine
    with pytest.raises(RefusedAnswer) as raised:
        cast.reply({"plan": 1, "context": 3, "other": 4})
    assert [issue.path for issue in raised.value.issues] == ["$.other", "$.context"]
    assert raised.value.kind == "refused_answer"
    assert all(issue.fix in str(raised.value) for issue in raised.value.issues)
    assert (h.types_of(cast), cast.now.engine, cast.steps[0].turns) == (before, now, ())
    cast.reply({"plan": 1})
    assert (cast.run(), cast.steps[0].turns[0].mode) == ("complete", "work")
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r42_refused_answer_from_a_person_does_not_use_up_a_repair(tmp_path):
    cast = h.start(tmp_path, h.one_config(parse="json"), h.Until("not json"))
    assert cast.run() == "person"
    assert (cast.now.waiting_at.mode, cast.now.waiting_at.repairs) == ("repair", 1)
    with pytest.raises(RefusedAnswer, match="answer was refused"):
        cast.reply("still not json")
    assert cast.now.waiting_at.repairs == 1
    cast.reply("{}")
    assert cast.run() == "complete"


def test_r42_recorded_refusal_is_kept_when_the_answer_becomes_valid(tmp_path):
    cast = h.start(tmp_path, h.one_config(parse="json"), h.Until("not json"))
    cast.run()
    cast.close()
    name = cast.steps[0].turns[0].artifact
    (cast.run_dir / name).write_text('{"context": "taken by now"}')  # as if the rules had become milder
    resumed = resume_cast(cast.run_dir)
    assert (resumed.status, resumed.now.waiting_at.repairs) == ("waiting", 1)
    resumed.reply({"context": "c"})
    assert resumed.run() == "complete"
    assert resumed.now.differences == ()


@pytest.mark.parametrize("fields", [{"multiTurn": True}, {}])
def test_r42_only_the_final_result_is_validated_and_not_the_drafts(tmp_path, fields):
    cast = h.start(tmp_path, h.one_config(h.agent(**fields), parse="json"))
    cast.run()
    if fields:
        cast.reply("a draft")
        cast.accept()
    with pytest.raises(RefusedAnswer):
        cast.reply("no json")
    cast.reply("{}")
    assert cast.run() == "complete"


def test_reply_passed_to_a_step_answers_an_agent_but_not_a_utility(tmp_path):
    document = h.config(
        {"Socket-1": h.at("M", ("always", "Socket-2")), "Socket-2": h.at("U")},
        {"M": h.agent(), "U": h.python("print(1)", parse="text")},
    )
    cast = h.start(tmp_path, document)
    cast.reply("hello")
    with pytest.raises(MateriaError, match="U is a utility"):
        cast.reply("x")
    assert cast.run() == "complete"


@pytest.mark.parametrize("answer", [None, 3, {"x": {1}}, ["a"]])
def test_invalid_reply_changes_nothing(tmp_path, answer):
    cast = h.start(tmp_path, h.chain_config(1))
    cast.run()
    before = h.types_of(cast)
    with pytest.raises(AgentError):
        cast.reply(answer)
    assert h.types_of(cast) == before
    assert cast.status == "waiting"


def test_agent_cannot_continue_its_own_cast(tmp_path):
    told = []

    def agent():
        for call in (cast.step, cast.run, lambda: cast.reply("x"), cast.close):
            with pytest.raises(MateriaError, match="A step of this cast is running") as caught:
                call()
            told.append(caught.value.kind)
        return "fine"

    cast = h.start(tmp_path, h.chain_config(1), agent)
    assert cast.run() == "complete"
    assert told == ["busy"] * 4
    assert cast.steps[0].output == "fine"


def test_failing_listeners_are_removed(tmp_path):
    seen, calls = [], []

    def bad(cast):
        calls.append(cast.status)
        raise RuntimeError("comm closed")

    def stepping(cast):
        cast.step()

    cast = h.start(tmp_path, h.chain_config(2), lambda: "x")
    cast.follow.changes(bad)
    cast.follow.changes(stepping)
    unwatch = cast.follow.changes(lambda c: seen.append((c.status, len(c.steps))))
    assert cast.run() == "complete"
    assert len(calls) == 1
    assert [m for m in cast.now.messages if "RuntimeError: comm closed" in m]
    assert [m for m in cast.now.messages if "A step of this cast is running" in m]
    assert seen == [("waiting", 1), ("ready", 1), ("waiting", 2), ("ready", 2), ("complete", 2)]
    unwatch()
    unwatch()


def test_agents_cannot_change_their_turn(tmp_path):
    def meddle(turn):
        if turn.required_fields:
            turn.required_fields.clear()
        with pytest.raises(AttributeError):
            turn.prompt = "other"
        return {"workItems": h.items("a")}

    document = h.loop_config()
    cast = h.start(tmp_path, document, {"Plan": meddle})
    cast.step()
    second_cast = h.start(
        tmp_path,
        document,
        {"Plan": lambda required_fields: {"workItems": h.items("a"), "context": str(required_fields)}},
    )
    second_cast.step()
    assert "workItems" in second_cast.state["context"]


def test_conversation_contains_prompts_and_answers(tmp_path):
    heard = []

    def agent(turn):
        heard.append((turn.kind, turn.prompt, [m.text for m in turn.conversation], turn.index))
        return f"answer {len(heard)}" if turn.kind != "finalize" else '{"context": "done"}'

    cast = h.start(tmp_path, h.one_config(h.agent("Draft it", multiTurn=True), parse="json"), agent)
    assert cast.run() == "person"
    cast.refine("shorter")
    assert [m.text for m in cast.now.conversation][2:] == ["shorter", "answer 2"]
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.accept()
    assert cast.run() == "complete"
    kinds, prompts, said, indexes = zip(*heard, strict=True)
    assert kinds == ("work", "refine", "finalize")
    assert prompts[1] == "shorter"
    assert said[2] == [prompts[0], "answer 1", "shorter", "answer 2"]
    assert indexes == (0, 1, 2)
    assert [turn.message for turn in cast.steps[0].turns] == [None, "shorter", None]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_interrupted_refinement_is_requested_again_unchanged(tmp_path):
    agent = Foreign("draft", KeyboardInterrupt(), "better")
    cast = h.start(tmp_path, h.one_config(h.agent("Draft", multiTurn=True)), agent)
    cast.run()
    with pytest.raises(KeyboardInterrupt):
        cast.refine("shorter")
    cast.close()
    cast = resume_cast(cast.run_dir, h.table(agent))
    cast.step()
    assert agent.turns[-1].prompt == "shorter"
    assert [m.text for m in cast.now.conversation] == [cast.now.prompt.text, "draft", "shorter", "better"]


def test_only_a_draft_can_be_refined_or_finalized(tmp_path):
    cast = h.start(tmp_path, h.chain_config(1))
    cast.run()
    with pytest.raises(MateriaError, match="no draft to refine"):
        cast.refine("x")
    with pytest.raises(MateriaError, match="not a multi-turn socket"):
        cast.accept()
    draft = h.start(tmp_path, h.one_config(h.agent("Draft", multiTurn=True)))
    draft.run()
    with pytest.raises(MateriaError, match="no draft"):
        draft.accept()
    assert h.types_of(draft) == ["cast_start", "socket_start"]


def test_retrying_a_failed_refinement_keeps_earlier_drafts(tmp_path):
    """An artifact that the journal names must never be overwritten."""
    agent = Foreign("first", RuntimeError("x"), "second", "third")
    cast = h.start(tmp_path, h.one_config(h.agent("Draft", multiTurn=True)), agent)
    cast.run()
    cast.refine("other")
    assert cast.status == "failed"
    cast.retry()
    cast.refine("again")
    texts = [turn.text for turn in cast.steps[0].turns]
    assert texts == ["first", "second", "third"]
    assert len({turn.artifact for turn in cast.steps[0].turns}) == 3
    h.assert_same(open_cast(cast.run_dir), cast)


def test_garbage_collecting_a_cast_releases_its_lock(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cast = h.start(tmp_path, h.chain_config(2), lambda: "x")
        path = cast.run_dir
        cast.run(steps=1)
        del cast
        gc.collect()
        resumed = resume_cast(path, h.table(lambda: "x"))
    assert resumed.run() == "complete"


def test_invalid_agent_is_refused_with_one_clear_error(tmp_path):
    bench = Workbench(tmp_path)
    bench.load(h.loop_config())
    with pytest.raises(MateriaError, match="A value of type int is not an agent") as caught:
        bench.agent("Build", 42)
    assert "use a function" in caught.value.hint
