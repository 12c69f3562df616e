"""Test agents for people, scripts and recordings, and the table that selects an agent."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materia_nb.agents import (
    Agent,
    AgentError,
    AgentTable,
    CommandAgent,
    FunctionAgent,
    PersonAgent,
    RecordedAgent,
    Reply,
    ScriptedAgent,
    Turn,
    Usage,
    agent_from,
)
from materia_nb.agents.notebook_agents import RecordedTurn


def turn(socket="Socket-1", materia="Build", **more) -> Turn:
    given = {"materia_label": materia, "visit": 1, "kind": "work", "prompt": "do it", **more}
    return Turn(socket_id=socket, materia_id=materia, **given)


def test_person_agent_waits_for_a_person_to_answer():
    assert PersonAgent().answer(turn()) is None


def test_every_prepared_agent_implements_the_agent_protocol():
    agents = [
        PersonAgent(),
        ScriptedAgent({}),
        RecordedAgent({}),
        CommandAgent(["x"]),
        FunctionAgent(str.upper),
    ]
    assert all(isinstance(agent, Agent) and agent.name for agent in agents)


def test_agents_can_be_pickled():
    for agent in (PersonAgent(), ScriptedAgent({"a": "b"}), CommandAgent(["x"]), FunctionAgent(json.dumps)):
        assert pickle.loads(pickle.dumps(agent)).name == agent.name  # noqa: S301 - our own bytes


class TestScriptedAgent:
    def test_script_answers_the_nth_turn_with_the_nth_reply(self):
        agent = ScriptedAgent({"Socket-1": ["one", {"workItems": []}]})
        assert agent.answer(turn(index=1)).text == '{"workItems":[]}'
        assert agent.answer(turn(index=0, materia_index=7, visit=9)).text == "one"

    def test_script_of_a_materia_is_shared_by_all_sockets_that_use_the_materia(self):
        agent = ScriptedAgent({"Build": ["one", "two"]})
        assert agent.answer(turn("Socket-4", index=0, materia_index=1)).text == "two"

    def test_script_of_a_socket_takes_precedence_over_the_script_of_its_materia(self):
        agent = ScriptedAgent({"Build": ["materia"], "Socket-1": ["socket"]})
        assert agent.answer(turn()).text == "socket"
        assert agent.answer(turn("Socket-2")).text == "materia"

    def test_scripted_replies_may_report_usage(self):
        usage = {"input": 50, "output": 2, "cost": 0.5}
        agent = ScriptedAgent({"Socket-1": [{"text": "a", "usage": usage}, {"user": "more", "text": "b"}]})
        assert agent.answer(turn()) == Reply("a", Usage(50, 2, 0.5))
        assert agent.answer(turn(index=1)) == Reply("b")

    def test_scripted_object_with_text_and_unknown_fields_is_treated_as_an_output(self):
        output = {"text": "x", "context": "y"}
        assert json.loads(ScriptedAgent({"Socket-1": [output]}).answer(turn()).text) == output

    def test_single_scripted_reply_can_be_given_without_a_list(self):
        assert ScriptedAgent({"Socket-1": "a"}).answer(turn()).text == "a"
        assert ScriptedAgent({"Socket-1": {"satisfied": True}}).answer(turn()).text == '{"satisfied":true}'

    def test_exhausted_script_error_names_the_socket_and_the_number_of_replies(self):
        with pytest.raises(AgentError, match=r"Turn 3 of Socket-1 .* the script has only 2") as caught:
            ScriptedAgent({"Socket-1": ["a", "b"]}).answer(turn(index=2))
        assert caught.value.kind == "scripted_exhausted"

    def test_socket_that_is_missing_from_a_script_raises_an_error(self):
        with pytest.raises(AgentError, match="choose one of: Socket-2") as caught:
            ScriptedAgent({"Socket-2": ["a"]}).answer(turn())
        assert caught.value.kind == "scripted_exhausted"

    @pytest.mark.parametrize(
        "reply",
        [5, None, ["nested"], {"a": {1}}, {"text": "a", "usage": 5}, {"text": "a", "usage": {"input": "1"}}],
    )
    def test_invalid_reply_in_a_script_is_refused_immediately(self, reply):
        with pytest.raises(AgentError, match="Reply 2 of 'Socket-1'"):
            ScriptedAgent({"Socket-1": ["fine", reply]})

    @settings(max_examples=30)
    @given(st.lists(st.text(max_size=5), min_size=1, max_size=5), st.data())
    def test_scripted_reply_depends_only_on_the_index_of_the_turn(self, replies, data):
        """A resumed cast creates a new agent, which must give the same answer."""
        index = data.draw(st.integers(0, len(replies) - 1))
        used = ScriptedAgent({"Socket-1": replies})
        for other in range(index):
            used.answer(turn(index=other))
        assert used.answer(turn(index=index)) == ScriptedAgent({"Socket-1": replies}).answer(turn(index=index))


class TestRecordedAgent:
    def test_recorded_agent_returns_the_recorded_answer_for_each_turn(self):
        turns = {"broken": None, "repaired": Usage(1, 2)}
        agent = RecordedAgent({("Socket-1", 2): [RecordedTurn(Reply(text, usage)) for text, usage in turns.items()]})
        assert agent.answer(turn(visit=2)).text == "broken"
        assert agent.answer(turn(visit=2, turn_of_visit=1)) == Reply("repaired", Usage(1, 2))

    @pytest.mark.parametrize(
        "asked, said",
        [
            (turn("Socket-9"), "no replies for visit 1 of Socket-9"),
            (turn(visit=3), "no replies for visit 3 of Socket-1; its last recorded visit is 2"),
            (
                turn(visit=2, turn_of_visit=1),
                r"Visit 2 of Socket-1 has 1 recorded replies, but none for turn 2 \(work\)",
            ),
        ],
    )
    def test_recorded_agent_raises_an_error_for_a_turn_that_was_not_recorded(self, asked, said):
        with pytest.raises(AgentError, match=said) as caught:
            RecordedAgent({("Socket-1", 2): [RecordedTurn(Reply("a"))]}).answer(asked)
        assert caught.value.kind == "recorded_exhausted"


class TestAgentTable:
    def test_agents_are_chosen_by_socket_then_materia_then_default(self):
        table = AgentTable()
        materia = table.set("Build", {"Build": "x"})
        assert table.for_turn("Socket-1", "Build") is materia
        socket = table.set("Socket-1", lambda turn: "y")
        assert table.for_turn("Socket-1", "Build") is socket
        assert table.for_turn("Socket-2", "Build") is materia
        assert isinstance(table.for_turn("Socket-2", "Plan"), PersonAgent)

    def test_default_agent_can_be_changed_and_agents_can_be_removed(self):
        table = AgentTable({"Build": ["a"]})
        table.set("Socket-1", "person")
        table.default = ["pi", "-p"]
        table.remove("Socket-1")
        table.remove("never set")
        assert table.for_turn("Socket-1", "Build").name == "pi"

    def test_describe_lists_the_default_agent_last(self):
        table = AgentTable()
        table.set("Build", {"Build": "x"})
        table.set("Bulid", "person")
        assert table.describe() == [("Build", "script"), ("Bulid", "person"), (None, "person")]

    def test_changes_to_a_copied_agent_table_do_not_affect_the_original(self):
        table = AgentTable()
        other = table.copy()
        other.set("Build", {"Build": "x"})
        other.default = ["pi"]
        assert isinstance(table.for_turn("Socket-1", "Build"), PersonAgent)
        assert isinstance(table.default, PersonAgent)

    def test_agent_with_an_empty_name_is_refused(self):
        with pytest.raises(AgentError):
            AgentTable().set("", "person")


class TestAgentConversion:
    @pytest.mark.parametrize("texts", [["the first answer", "b"], ('{"satisfied": true}',), ["one\ntwo " * 99]])
    def test_list_that_does_not_start_with_a_program_is_refused(self, texts):
        with pytest.raises(AgentError, match="is not a program") as caught:
            agent_from(texts)
        assert "replies by socket" in caught.value.hint
        assert len(caught.value.what.splitlines()) == 1
        assert len(caught.value.what) < 120

    def test_agents_are_created_from_names_scripts_functions_and_commands(self):
        agent = PersonAgent()
        assert agent_from(agent) is agent
        assert isinstance(agent_from("person"), PersonAgent)
        assert isinstance(agent_from({"Build": ["x"]}), ScriptedAgent)
        assert isinstance(agent_from(lambda turn: "x"), FunctionAgent)
        made = agent_from(["pi", "-p"])
        assert isinstance(made, CommandAgent)
        assert made.argv == ("pi", "-p")

    def test_string_is_not_run_as_a_command(self):
        with pytest.raises(AgentError, match=r"\['pi', '-p'\]"):
            agent_from("pi -p")

    @pytest.mark.parametrize("value", [None, 5, [], [1], PersonAgent, int, ("a", 2)])
    def test_agent_result_of_an_unsupported_type_is_refused(self, value):
        with pytest.raises(AgentError, match="is not a"):
            agent_from(value)
