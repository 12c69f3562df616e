"""Test agents that are Python functions or coroutines."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import os
import signal
import threading
from pathlib import Path

import pytest

from materia_nb.agents import (
    AgentError,
    AgentTable,
    FunctionAgent,
    Message,
    PersonAgent,
    Reply,
    Turn,
    Usage,
    agent_from,
)
from materia_nb.agents.background import SHARED_LOOP
from materia_nb.platform import Stop

TURN = Turn(
    socket_id="Socket-1",
    materia_id="Build",
    materia_label="Build",
    visit=2,
    kind="repair",
    prompt="again",
    conversation=(Message("user", "do it"), Message("assistant", "no")),
    request="ship",
    item={"title": "Outline"},
    state={"n": 3},
)


def ask(function, turn=TURN) -> str:
    return FunctionAgent(function).answer(turn).text


class TestFunctionArguments:
    @pytest.mark.parametrize(
        "function, answer",
        [
            (lambda: "nothing", "nothing"),
            (lambda prompt: prompt, "again"),
            (lambda turn: turn.kind, "repair"),
            (lambda anything: anything.prompt, "again"),
            (lambda t, /: t.prompt, "again"),
            (lambda prompt, visit, request: f"{prompt} {visit} {request}", "again 2 ship"),
            (lambda turn, prompt: turn.prompt + prompt, "againagain"),
            (lambda *, prompt: prompt, "again"),
            (lambda prompt, model="mine": model, "mine"),
            (lambda prompt, *rest, **more: f"{rest}{more}", "(){}"),
            (lambda item: item["title"], "Outline"),
            (lambda item, state: f"{item['title']} {state['n']}", "Outline 3"),
            (lambda last, handoffs, parts: f"{last}{handoffs}{parts}", "None()()"),
            (functools.partial(lambda greeting, prompt: greeting + prompt, "hi "), "hi again"),
        ],
    )
    def test_function_receives_only_the_parameters_that_it_names(self, function, answer):
        assert ask(function) == answer

    def test_methods_and_callable_objects_can_be_agents(self):
        class Builder:
            def build(self, prompt):
                return prompt

            def __call__(self, turn):
                return turn.kind

        assert ask(Builder().build) == "again"
        assert ask(Builder()) == "repair"
        assert FunctionAgent(Builder()).name == "Builder"

    def test_unknown_parameters_are_refused_immediately(self):
        with pytest.raises(AgentError, match="has parameters that are not fields of a turn: colour"):
            FunctionAgent(lambda prompt, colour: "x", name="paint")

    @pytest.mark.parametrize("function", [lambda reqest: "", lambda items: "", lambda staet: ""])
    def test_single_parameter_with_a_misspelled_field_is_refused(self, function):
        with pytest.raises(AgentError, match="not fields of a turn") as caught:
            FunctionAgent(function)
        assert "did you mean" in caught.value.hint

    @pytest.mark.parametrize(
        "function", [lambda t: t.prompt, lambda stage: stage.prompt, lambda the_turn: the_turn.prompt]
    )
    def test_single_parameter_receives_the_turn_whatever_its_name(self, function):
        assert ask(function) == "again"

    def test_misspelled_parameter_error_lists_the_fields_of_a_turn(self):
        with pytest.raises(AgentError, match="not fields of a turn: itme") as caught:
            FunctionAgent(lambda itme, state: "x")
        assert "did you mean item? the fields of a turn are: socket_id" in str(caught.value.hint)
        with pytest.raises(
            AgentError, match=r"a turn has no itme; did you mean item\? the fields of a turn are: socket_id"
        ):
            ask(lambda turn: turn.itme)
        assert not hasattr(TURN, "colour")


class TestFunctionResults:
    def test_dict_reply_is_encoded_as_json(self):
        assert ask(lambda: {"satisfied": True, "context": "é"}) == '{"satisfied":true,"context":"é"}'

    def test_reply_object_is_returned_unchanged(self):
        reply = Reply("x", Usage(1, 2), {"model": "m"})
        assert FunctionAgent(lambda: reply).answer(TURN) is reply

    @pytest.mark.parametrize(
        "value, said",
        [(None, "is a return statement missing"), (5, "returned int"), ([1], "returned list"), ({"a": {1}}, "JSON")],
    )
    def test_agent_result_of_an_unsupported_type_is_refused(self, value, said):
        with pytest.raises(AgentError, match=said):
            ask(lambda: value)


def broken(prompt):
    raise ZeroDivisionError(prompt)


async def broken_later(prompt):
    await asyncio.sleep(0)
    raise ZeroDivisionError(prompt)


class TestFunctionFailures:
    def test_name_of_a_known_program_suggests_its_preset(self):
        with pytest.raises(AgentError) as caught:
            agent_from("claude")
        assert caught.value.hint == "did you mean 'command:claude'?"

    @pytest.mark.parametrize("function", [broken, broken_later])
    def test_exception_names_the_function_file_and_line(self, function):
        with pytest.raises(AgentError, match=f"Function {function.__name__} failed") as caught:
            ask(function)
        error = caught.value
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert "ZeroDivisionError: again" in error.what
        file, line = str(error.where).rsplit(":", 1)
        assert Path(file) == Path(__file__)
        assert "raise ZeroDivisionError" in Path(__file__).read_text().splitlines()[int(line) - 1]

    def test_error_raised_inside_a_library_points_at_the_agent_function(self):
        def careless():
            return int("x" * 3) or asyncio.run(None)

        with pytest.raises(AgentError) as caught:
            ask(careless)
        assert str(caught.value.where).startswith(__file__)

    def test_builtin_function_can_be_an_agent(self):
        with pytest.raises(AgentError, match="Function len failed"):
            ask(len)

    def test_materia_errors_from_a_function_are_raised_unchanged(self):
        def refuse():
            raise AgentError("no key", kind="no_key")

        with pytest.raises(AgentError, match="no key") as caught:
            ask(refuse)
        assert caught.value.kind == "no_key"

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_interrupt_and_exit_from_a_function_are_raised_unchanged(self, error):
        def leave():
            raise error

        with pytest.raises(error):
            ask(leave)


async def slow_echo(prompt):
    await asyncio.sleep(0.001)
    return prompt


class TestCoroutineAgents:
    def test_coroutine_agent_works_without_an_event_loop(self):
        assert ask(slow_echo) == "again"

    def test_coroutine_agent_works_inside_a_running_event_loop(self):
        """Jupyter runs every cell inside a running event loop."""

        async def cell():
            return ask(slow_echo)

        assert asyncio.run(cell()) == "again"

    def test_coroutine_agent_works_from_another_thread(self):
        found = []
        worker = threading.Thread(target=lambda: found.append(ask(slow_echo)))
        worker.start()
        worker.join(10)
        assert found == ["again"]

    def test_objects_partials_and_lambdas_may_return_coroutines(self):
        assert ask(functools.partial(slow_echo)) == "again"
        assert ask(lambda prompt: slow_echo(prompt + "!")) == "again!"

    def test_event_loop_is_reused_for_the_next_turn(self):
        """A client that is bound to an event loop can therefore be reused in later turns."""
        loops = []

        async def note():
            loops.append(asyncio.get_running_loop())
            return "x"

        ask(note)
        ask(note)
        assert loops[0] is loops[1]

    def test_agent_can_await_another_agent(self):
        async def outer():
            return "outer " + ask(slow_echo)

        assert ask(outer) == "outer again"

    def test_agent_sees_the_context_variables_of_its_caller(self):
        variable = contextvars.ContextVar("variable")
        variable.set("mine")

        async def read():
            return variable.get()

        assert ask(read) == "mine"

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_event_loop_is_usable_after_a_call_that_raised_an_error(self, error):
        async def leave():
            raise error

        with pytest.raises(AgentError, match=error.__name__):
            ask(leave)
        assert ask(slow_echo) == "again"

    def test_timeout_inside_an_agent_is_an_ordinary_failure(self):
        async def late():
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)

        with pytest.raises(AgentError, match="TimeoutError"):
            ask(late)

    def test_stop_cancels_the_coroutine_and_waits_for_its_cleanup(self):
        stop, cleaned = threading.Event(), threading.Event()

        async def long():
            stop.set()
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.set()

        turn = Turn(socket_id="S", materia_id="M", materia_label="M", visit=1, kind="work", prompt="", stop=stop)
        with pytest.raises(AgentError) as caught:
            ask(long, turn)
        assert caught.value.kind == "interrupted"
        assert cleaned.is_set()

    def test_interrupt_cancels_the_coroutine_and_waits_for_its_cleanup(self):
        cleaned = threading.Event()

        async def long():
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.set()

        with pytest.raises(KeyboardInterrupt):
            ask(long)
        assert cleaned.is_set()

    def test_closed_event_loop_is_replaced(self):
        ask(slow_echo)
        SHARED_LOOP.close()
        assert ask(slow_echo) == "again"


class TestAbandonedFunctionCalls:
    """Test that a user can abandon a call to a function that does not return."""

    def ask_in_a_thread(self, function, turn):
        came = []

        def run():
            try:
                came.append(FunctionAgent(function).answer(turn).text)
            except Exception as error:  # noqa: BLE001 - given to the test
                came.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread, came

    def test_blocking_agent_returns_its_answers_and_raises_its_errors(self):
        turn = dataclasses.replace(TURN, stop=Stop())
        thread, came = self.ask_in_a_thread(lambda prompt: prompt, turn)
        thread.join(30)
        assert came == ["again"]
        thread, came = self.ask_in_a_thread(lambda: {}["no"], turn)
        thread.join(30)
        assert isinstance(came[0].__cause__, KeyError)

    def test_late_answer_of_an_abandoned_blocking_agent_is_ignored(self):
        begun, go_on, over, events = (threading.Event(), threading.Event(), threading.Event(), [])

        def held(turn):
            begun.set()
            go_on.wait(30)
            turn.report("late")
            over.set()
            return "late"

        stop = Stop()
        thread, came = self.ask_in_a_thread(held, dataclasses.replace(TURN, stop=stop, report=events.append))
        assert begun.wait(30)
        stop.set()
        assert not came, "a stop alone waits for it"
        stop.abandon()
        thread.join(30)
        assert came[0].kind == "interrupted"
        go_on.set()
        assert over.wait(30)
        assert events == []
        stop.clear()
        assert not stop.must_abandon


class Asynchronous:
    name = "my own"

    async def answer(self, turn):
        await asyncio.sleep(0)
        turn.report("told")
        return Reply(f"{turn.prompt} from {asyncio.get_running_loop() is not None}")


def test_answer_method_may_be_a_coroutine():
    events = []
    agent = agent_from(Asynchronous())
    turn = dataclasses.replace(
        TURN, report=lambda told: events.append((told, threading.current_thread() is threading.main_thread()))
    )
    assert (agent.name, agent.answer(turn).text) == ("my own", "again from True")
    assert events == [("told", True)]


def test_agent_table_accepts_item_assignment():
    table = AgentTable()
    table["Write"] = lambda: "written"
    assert isinstance(table.for_turn("Socket-1", "Write"), FunctionAgent)
    assert isinstance(table.for_turn("Socket-2", "Read"), PersonAgent)
