"""Test sockets with ``finalize``: the agent works first and is asked for its handoff in a separate turn."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from builders import YES, Play, asks, at, config, edge, say
from materia_nb.agents.interface import AgentError, Reply, Turn, Usage
from materia_nb.agents.notebook_agents import RecordedAgent, RecordedTurn
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.step_views import HandoffView, prompt_view
from materia_nb.engine.entering import agent_id
from materia_nb.engine.prompt import WORK_IS_OVER
from materia_nb.loadout import build_graph
from materia_nb.loadout.resolve import check_config
from model_helpers import agent as model_agent
from model_server import says, serving
from protocol_helpers import block, contract, envelope

FIRST = {"Work": asks(edge("Next", "satisfied"), finalize=True), "Next": at("P")}


def event_types(step):
    return [event.type for event in step.events]


def names(prompt):
    return [part.name for part in prompt.parts if part.text]


# -- the engine ------------------------------------------------------------------------------


def test_first_prompt_does_not_ask_for_the_output_form_if_finalize_is_set():
    play = Play(config(FIRST))
    assert (play.visit.mode, names(play.prompt)) == ("work", ["request", "place", "task", "return"])
    assert "satisfied" not in play.prompt.text
    assert "in any form" in play.prompt.text


@pytest.mark.parametrize("work", ["I did it.", YES, "", "{broken"])
def test_handoff_is_requested_after_any_answer_to_the_work_turn(work):
    play = Play(config(FIRST))
    step = play.answer(work, 5)
    assert event_types(step) == ["socket_worked"]
    assert step.reading is None
    assert (play.at, play.visit.mode, play.visit.turn, play.decision.by) == ("Work", "final", 1, "finalize")
    assert names(play.prompt) == ["finalize", "return"]
    assert play.prompt.parts[0].text == WORK_IS_OVER
    assert "satisfied" in play.prompt.parts[1].text
    assert play.data == {}
    assert play.state.last_output is None, "work is not an output that others see"
    assert play.answer(YES, 7).state.next == "Next"
    assert play.state.usage.input == 12, "both turns count (R20)"


def test_r19_only_the_handoff_is_repaired():
    play = Play(config(FIRST), "work")
    play.go("no json")
    assert (play.visit.mode, names(play.prompt)) == ("repair", ["repair", "return"])
    assert play.go(say(satisfied=True)).at == "Next"
    play = Play(config(FIRST), "work", "no json")
    assert play.go("again none").at == "repair_exhausted"
    assert names(play.raise_limit().prompt) == ["repair", "return"]
    assert play.go(YES).at == "Next"


def test_retry_begins_with_the_work_turn():
    play = Play(config(FIRST), "work", "no json", "none")
    assert names(play.retry().prompt) == ["request", "place", "task", "return"]
    assert play.visit.mode == "work"
    assert play.go("work again").visit.mode == "final"


@pytest.mark.parametrize(
    "socket, materia",
    [
        (asks(finalize=False), None),
        (at("P", finalize=True), None),
        (at("U", finalize=True), None),
        (asks(materia="M", finalize=True), None),
    ],
    ids=["false", "text", "utility", "multi-turn"],
)
def test_finalize_field_is_ignored_for_sockets_that_do_not_support_it(socket, materia):
    graph = build_graph(config({"A": socket}))
    assert graph.sockets["A"].finalize is False


def test_finalize_field_of_a_loadout_applies_to_all_its_agents():
    document = config({
        "A": at("P", edge("B")),
        "B": at("P", edge("C"), parse="text"),
        "C": asks(edge("D"), finalize=False),
        "D": at("U", edge("E")),
        "E": at("M"),
    })  # fmt: skip
    document["loadouts"]["T"] |= {"finalize": True, "handoff": "envelope"}
    graph = build_graph(document)
    assert [socket.finalize for socket in graph.sockets.values()] == [True, False, False, False, False]
    assert [socket.parse for socket in graph.sockets.values()][:3] == ["json", "text", "json"]
    assert "not-finalized" not in {hint.code for hint in check_config(document, "T").hints}


def test_generator_can_have_a_finalize_field():
    play = Play(config({"A": asks(edge("B"), materia="G", finalize=True), "B": at("P")}), "planning")
    assert play.visit.mode == "final"
    assert play.go(say(workItems=[])).at == "B"


# -- the config ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["yes", 1, [], {}])
def test_finalize_field_must_be_a_boolean(value):
    found = check_config(config({"A": asks(finalize=value)}), "T").problems
    assert [(one.code, one.source) for one in found] == [("invalid-socket", "A.finalize")]


@pytest.mark.parametrize(
    "socket, why",
    [
        (at("P", finalize=True), "is text"),
        (at("U", finalize=True), "utility"),
        (asks(materia="M", finalize=True), "drafts"),
    ],
)
def test_ignored_finalize_field_gets_a_hint(socket, why):
    report = check_config(config({"Socket-1": socket}), "T")
    assert report.ok
    found = [hint for hint in report.hints if hint.source == "Socket-1.finalize"]
    assert [one.code for one in found] == ["no-effect"]
    assert why in found[0].message


def test_finalize_field_that_has_an_effect_gets_no_hint():
    for socket in (asks(finalize=True), asks(materia="G", finalize=True), at("P", finalize=False)):
        hints = check_config(config({"Socket-1": socket}), "T").hints
        assert [hint for hint in hints if "finalize" in hint.source] == []


# -- a cast ----------------------------------------------------------------------------------

ONE = {"parse": "json", "finalize": True}
DONE = '{"context": "done"}'


def scripted(*replies):
    """Return an agent that records its turns and gives the answers in order; an exception is raised instead of
    returned.
    """
    left, turns = list(replies), []

    def agent(turn: Turn):
        turns.append(turn)
        reply = left.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return Reply(reply, Usage(10, 1))

    agent.turns = turns
    return agent


def test_work_and_handoff_turns_are_stored_and_counted(tmp_path):
    agent = scripted("the work", DONE)
    cast = h.start(tmp_path, h.one_config(**ONE, assign={"found": "$.context"}), agent)
    assert cast.run() == "complete"
    first, second = agent.turns
    assert (first.kind, second.kind) == ("work", "finalize")
    assert first.required_fields is None, "nothing that enforces a schema may enforce it on the work"
    assert first.schema is None
    assert "context" in second.required_fields
    assert second.schema is not None
    assert cast.state["found"] == "done"
    assert [one.text for one in second.conversation] == [first.prompt, "the work"]
    assert [(turn.mode, turn.text) for turn in cast.steps[0].turns] == [("work", "the work"), ("final", DONE)]
    worked = next(line["data"] for line in h.lines_of(cast) if line["type"] == "socket_worked")
    assert worked["artifact"] == "sockets/Socket-1/1.work-1.md"
    assert (cast.run_dir / worked["artifact"]).read_text() == "the work"
    assert (cast.run_dir / "sockets/Socket-1/1.md").read_text() == DONE
    assert worked["usage"]["input"] == 10
    usage = json.loads((cast.run_dir / "usage.json").read_text())
    assert usage["bySocket"]["Socket-1"]["total"] == 22
    entries = json.loads((cast.run_dir / "manifest.json").read_text())["entries"]
    assert [entry["kind"] for entry in entries] == ["socket_work", "socket_output"]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_person_answers_work_and_handoff_turns(tmp_path):
    cast = h.start(tmp_path, h.one_config(**ONE))
    cast.run()
    cast.reply("I did it")
    assert cast.status == "waiting"
    assert "must still give its final result" in repr(status_view(cast.now))
    assert names(cast.now.prompt) == ["finalize", "return"]
    cast.reply(DONE)
    assert cast.run() == "complete"


def test_only_the_handoff_is_requested_after_a_crash_between_the_turns(tmp_path):
    agent = scripted("the work", KeyboardInterrupt())
    cast = h.start(tmp_path, h.one_config(**ONE), agent)
    with pytest.raises(KeyboardInterrupt):
        cast.run()
    copy = h.prefix(cast.run_dir, len(h.lines_of(cast)), tmp_path / "killed")
    cast.close()
    second = scripted(DONE)
    resumed = resume_cast(copy, h.table(second))
    assert resumed.run() == "complete"
    (turn,) = second.turns
    assert (turn.kind, turn.prompt) == ("finalize", agent.turns[1].prompt)
    assert turn.conversation == agent.turns[1].conversation
    assert turn.conversation[1].text == "the work"


@pytest.mark.parametrize("broken", [("work", AgentError("x")), ("work", "no json", AgentError("x"))])
def test_retry_after_the_work_turn_requests_only_the_handoff(tmp_path, broken):
    agent = scripted(*broken, DONE)
    cast = h.start(tmp_path, h.one_config(**ONE), agent)
    assert cast.run() == "failed"
    cast.retry(limit=True)
    assert cast.run() == "complete"
    failed, continued = agent.turns[-2:]
    assert (continued.kind, continued.prompt, continued.conversation) == (
        failed.kind,
        failed.prompt,
        failed.conversation,
    )
    h.assert_same(open_cast(cast.run_dir), cast)


def test_retry_after_exhausted_repairs_continues_the_conversation(tmp_path):
    agent = scripted("work", "bad 1", "bad 2", DONE)
    cast = h.start(tmp_path, h.one_config(**ONE), agent)
    cast.run()
    assert cast.failure.kind == "repair_exhausted"
    cast.retry(limit=True)
    assert cast.run() == "complete"
    assert [one.text for one in agent.turns[-1].conversation if one.role == "assistant"] == [
        "work",
        "bad 1",
        "bad 2",
    ]
    assert "bad 2" in agent.turns[-1].prompt
    h.assert_same(open_cast(cast.run_dir), cast)


def test_correction_replaces_the_handoff_but_not_the_work_answer(tmp_path):
    document = h.config(
        {"Socket-1": h.at("M", ("satisfied", "Socket-2"), **ONE), "Socket-2": h.at("M")}, {"M": h.agent()}
    )
    cast = h.start(tmp_path, document, scripted("work", h.NO))
    cast.step()
    assert cast.now.engine.next == "end"
    cast.edit.output(h.YES)
    assert cast.now.engine.next == "Socket-2"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_recording_of_an_engine_without_handoff_turns_can_be_opened(tmp_path):
    """An engine that does not know the field treats the first answer as the handoff."""
    cast = h.start(tmp_path, h.one_config(parse="json"), scripted(DONE))
    cast.run()
    path = cast.run_dir / "config.resolved.json"
    document = json.loads(path.read_text())
    document["loadouts"]["T"]["sockets"]["Socket-1"]["finalize"] = True
    path.write_text(json.dumps(document))
    opened = open_cast(cast.run_dir)
    assert (opened.status, opened.now.differences) == ("complete", ())
    assert opened.state == cast.state


def test_recorded_agent_answers_the_work_turn_and_the_handoff_turn(tmp_path):
    again = RecordedAgent({("Socket-1", 1): [RecordedTurn(Reply(text)) for text in ("the work", DONE)]})
    cast = h.start(tmp_path, h.one_config(**ONE), again)
    assert cast.run() == "complete"


def test_prompt_and_answer_of_each_turn_are_shown(tmp_path):
    cast = h.start(tmp_path, h.one_config(**ONE), scripted("the <b>work</b>", DONE))
    cast.run()
    step = cast.steps[0]
    output = repr(prompt_view(step, step.prompt))
    assert "turn 2, final\n" in output
    assert WORK_IS_OVER in output
    handoff = HandoffView(cast.now, step)
    assert "turn 1: work\n    10 tokens in, 1 out\n    the <b>work</b>" in repr(handoff)
    assert "&lt;b&gt;work" in handoff._repr_mimebundle_()["text/html"]


# -- the other protocols ---------------------------------------------------------------------


def test_envelope_is_requested_in_a_turn_after_the_work(tmp_path):
    good = json.dumps(envelope(summary__evidence__artifacts_produced=[]))
    agent = scripted("worked", "no envelope", good)
    cast = h.start(tmp_path, h.one_config(**ONE, handoff="envelope"), agent)
    assert cast.run() == "complete"
    assert [turn.kind for turn in agent.turns] == ["work", "finalize", "repair"]
    assert "VERIFIED" not in agent.turns[0].prompt
    assert "VERIFIED" in agent.turns[1].prompt


def test_agent_with_an_unfinished_contract_continues_before_the_contract_is_requested_again(tmp_path):
    """The agent continues its work and is then asked for its handoff in another separate turn."""
    me = {"agent_status__agent_id": agent_id("the widget", "Socket-1")}
    on = contract(**me, agent_status__plan_status="IN_PROGRESS", evidence_report__verification={"result": "fail"})
    agent = scripted("part one", block(on), "part two", block(contract(**me)))
    cast = h.start(tmp_path, h.one_config(**ONE, handoff="agent-contract"), agent)
    assert cast.run() == "complete"
    assert "agent_status" not in agent.turns[0].prompt
    assert [turn.kind for turn in agent.turns] == ["work", "finalize", "resume", "finalize"]
    assert "agent_status" not in agent.turns[2].prompt
    h.assert_same(open_cast(cast.run_dir), cast)


# -- a language model ------------------------------------------------------------------------


def test_schema_is_enforced_only_in_the_handoff_turn(tmp_path):
    pytest.importorskip("pydantic_ai")
    with serving(says("I did it", tokens=(10, 1)), says(h.YES, tokens=(20, 2))) as server:
        document = h.one_config(h.agent(), edges=[{"when": "satisfied", "to": "end"}], **ONE)
        cast = h.start(tmp_path, document, model_agent(server))
        assert cast.run() == "complete"
    work, handoff = server.asked
    assert "response_format" not in work
    assert handoff["response_format"]["type"] == "json_schema"
    assert [message["role"] for message in handoff["messages"]] == ["user", "assistant", "user"]
    assert handoff["messages"][1]["content"] == "I did it"
    assert cast.now.usage.tokens == 33
