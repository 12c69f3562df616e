"""Test that only the evolve module creates sessions, and that it refuses impossible events."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

import cast_helpers as h
from builders import Folded, asks, at, config, edge, items, retry_loop, say
from materia_nb.cast import open_cast, resume_cast
from materia_nb.engine import decide, evolve
from materia_nb.engine import events as ev
from materia_nb.engine.events import ImpossibleEvent, from_json, to_json
from materia_nb.engine.session import Session
from materia_nb.engine.state import Failure, Pin

FOLDING = {"materia_nb.engine.evolve", "materia_nb.engine.edit", "materia_nb.engine.session", "collections"}
CHAIN = config({"A": at("P", edge("B")), "B": at("P")})


def again(cast):
    """Return the session computed from the events of a cast after they were written and read."""
    events = [from_json(event.type, to_json(event), event.ts) for event in cast.events]
    assert all(one.transition is None for one in events)
    return evolve.fold(cast.rules, evolve.begin_session(cast.rules, events[0]), events[1:])


@pytest.fixture
def only_the_fold(monkeypatch):
    """Fail the test if code other than ``evolve`` creates or changes a session."""
    made = []

    def guarded(function):
        def call(*args, **kwargs):
            module = sys._getframe(1).f_globals["__name__"]
            made.append(module)
            assert module in FOLDING, module
            return function(*args, **kwargs)

        return call

    new, changed = Session.__new__, Session._replace
    monkeypatch.setattr(Session, "__new__", guarded(new))
    monkeypatch.setattr(Session, "_replace", guarded(changed))
    return made


def test_only_the_evolve_module_creates_sessions(tmp_path, only_the_fold):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[1]))
    cast.run(steps=3)
    cast.edit.set("plan.n", 1)
    cast.back(2)
    cast.run(steps=2)
    cast.abort("enough")
    cast.retry()
    cast.run(until="Socket-3")
    cast.attempt()
    cast.run()
    fork = cast.fork(2)
    fork.run()
    assert cast.at(1).session.steps
    cast.close()
    fork.close()
    open_cast(cast.run_dir)
    resume_cast(cast.run_dir).close()
    cast.replay(cast.runner.rules.graph).continue_cast().close()
    assert len(only_the_fold) > 100


def test_session_rebuilt_from_stored_transitions_equals_the_computed_session():
    cast = Folded(retry_loop()).answers(items("a", "b"), "built", say(satisfied=False), "again", say(satisfied=True))
    assert again(cast) == cast.session
    assert cast.events[-1].transition is not None


def test_stored_transition_is_used_only_for_the_state_it_was_computed_from():
    cast = Folded(CHAIN)
    (entered,) = decide.enter(cast.rules, cast.session, 0)
    other = Folded(CHAIN, request="another")
    session = evolve.evolve(other.rules, other.session, entered)
    assert session.state.request == "another"


@pytest.mark.parametrize(
    "event, why",
    [
        (ev.SocketStart(about={"socket": "B"}, visit=1), "enters B"),
        (ev.SocketStart(about={"socket": "A"}, visit=2), "enters A"),
        (ev.SocketComplete(about={"socket": "A"}, text="x"), "no visit of this socket is waiting for an output"),
        (ev.SocketComplete(about={"socket": "A"}), "text of the output is missing"),
        (ev.CastEnd(ok=True), "the cast is waiting"),
        (ev.SocketFailed(about={"socket": "A"}, kind="agent_error", error="x"), "no visit of this socket is waiting"),
        (ev.StreamsStarted(loop="L", streams=(), limit=1), "does not enter the loop L next"),
        (ev.CastBack(step=1), "step 1 does not exist"),
        (ev.CastBack(step=-1), "step -1 does not exist"),
        (ev.EditUndone(), "no edit"),
        (ev.PromptEdited(part="task", text="x"), "no prompt"),
        (ev.Labelled(step=1, name="x"), "step 1 does not exist"),
        (ev.Labelled(undoes=True), "no change of this label can be undone"),
        (ev.OutputEdited(text="x"), "the step or its text is missing"),
        (ev.Pinned(name="A", kind="nothing", to="x"), "the pin is invalid"),
    ],
)
def test_event_that_cannot_occur_in_the_current_session_is_refused(event, why):
    cast = Folded(CHAIN)
    with pytest.raises(ImpossibleEvent, match=why) as caught:
        evolve.evolve(cast.rules, cast.session, event)
    assert caught.value.kind == "damaged_journal"


@pytest.mark.parametrize(
    "event, why",
    [
        (ev.SocketStart(about={"socket": "A"}, visit=1), "the cast is waiting"),
        (ev.SocketComplete(about={"socket": "B"}, text="x"), "no visit of this socket is waiting for an output"),
        (ev.SocketFailed(about={"socket": "B"}, kind="agent_error", error="x"), "no visit of this socket is waiting"),
        (ev.OutputEdited(), "the step or its text is missing"),
        (ev.Labelled(step=2, name="x"), "step 2 does not exist"),
        (ev.CastBack(step=2), "step 2 does not exist"),
    ],
)
def test_event_about_a_visit_that_is_not_waiting_is_refused(event, why):
    cast = Folded(CHAIN).do(decide.enter)
    with pytest.raises(ImpossibleEvent, match=why):
        evolve.evolve(cast.rules, cast.session, event)


def test_output_that_contradicts_the_type_of_its_event_is_refused():
    cast = Folded(config({"A": asks(edge("B", "satisfied")), "B": at("P")})).do(decide.enter)
    about = {"socket": "A"}
    with pytest.raises(ImpossibleEvent, match="must be recorded as same_socket_recovery_start"):
        evolve.evolve(cast.rules, cast.session, ev.SocketComplete(about=about, text="not json"))
    with pytest.raises(ImpossibleEvent, match="must be recorded as socket_complete"):
        evolve.evolve(cast.rules, cast.session, ev.SocketHeld(about=about, text=say(satisfied=True)))


def test_end_event_of_a_running_cast_is_refused():
    cast = Folded(CHAIN).do(decide.enter)
    for event in (ev.CastEnd(ok=True), ev.CastEnd(ok=False)):
        with pytest.raises(ImpossibleEvent, match="the cast is waiting"):
            evolve.evolve(cast.rules, cast.session, event)
    over = cast.answers("a", "b").do(decide.enter)
    with pytest.raises(ImpossibleEvent, match="the cast is complete"):
        evolve.evolve(over.rules, over.session, ev.CastEnd(ok=False, kind="budget"))


def test_session_after_an_earlier_step_contains_no_later_steps():
    cast = Folded(CHAIN)
    fresh = evolve.session_after(cast.rules, cast.session, cast.session.steps)
    assert (fresh.state, fresh.pins) == (cast.session.start, {})
    cast.do(lambda *_: (ev.FilesKept(step=0, by="start", commit="before", ts=0),))
    cast.answers("a")
    cast.do(lambda *_: (ev.FilesKept(step=1, by="step", commit="after", changed=("x",), ts=0),))
    pin = Pin("text", "a text", "b")
    cast.do(decide.record, ev.Pinned(name="B", **pin.as_json())).answers("b")
    then = [evolve.session_after(cast.rules, cast.session, cast.session.steps.to(n)) for n in range(3)]
    assert [one.pins for one in then] == [{}, {}, {"B": pin}]
    assert [one.files for one in then] == ["before", "after", "after"]
    assert [one.state.status for one in then] == ["ready"] * 3
    assert then[0].state == cast.session.start


def test_refused_output_stays_refused_when_rules_change():
    cast = Folded(config({"A": asks(edge("B", "satisfied")), "B": at("P")})).do(decide.enter)
    event = ev.RecoveryStart(about={"socket": "A"}, text=say(satisfied=True), error="it was too long")
    turn = evolve.evolve(cast.rules, cast.session, event).steps[-1].turns[-1]
    assert not turn.reading.accepted
    assert [issue.message for issue in turn.reading.issues] == ["it was too long"]


def test_work_time_is_unknown_if_the_time_of_one_turn_is_unknown():
    cast = Folded(config({"A": asks(materia="M")})).do(decide.enter)
    cast.do(decide.answer, decide.Answer("a draft", worked=40)).do(decide.refine, "again")
    cast.do(decide.answer, decide.Answer("another", worked=2))
    assert cast.session.steps[-1].worked == 42
    cast.do(decide.refine, "again").do(decide.answer, decide.Answer("a third"))
    assert cast.session.steps[-1].worked is None


def test_outputs_of_utilities_are_not_counted_as_turns():
    cast = Folded(config({"A": at("P", edge("B")), "B": at("U")})).answers("a")
    turns = cast.session.turns
    assert turns == {"A": 1, "materia P": 1}
    cast.answers("{}")
    assert cast.session.steps[-1].socket == "B"
    assert cast.session.turns is turns, "the counts are not copied"


def test_tool_result_replaces_its_pending_call():
    from materia_nb.agents.interface import ToolCall

    call = ToolCall(id="1", tool="bash", args={"command": "make"})
    cast = Folded(CHAIN).do(decide.enter)
    cast.do(decide.record_in_turn, ev.ToolCalled(call=call)).do(
        decide.record_in_turn, ev.ToolCalled(call=ToolCall(id="2", tool="read", args={}))
    )
    cast.do(decide.record_in_turn, ev.ToolCalled(call=replace(call, result="done")))
    assert [one.result for one in cast.session.calls] == ["done", None]
    cast.do(decide.fail, Failure("agent_error", "gone", "A"), 0).do(decide.retry)
    cast.do(decide.record_in_turn, ev.ToolCalled(call=call))
    assert [one.result for one in cast.session.steps[-1].calls] == ["done", None, None], "the visit keeps both turns"


def test_conversation_continues_after_a_raised_limit_but_restarts_after_a_retry():
    cast = Folded(config({"A": asks(edge("B", "satisfied")), "B": at("P")}, limits={"repairAttempts": 0}))
    cast.answers("bad").do(decide.raise_limit)
    assert (cast.session.steps[-1].turns_before_retry, cast.session.steps[-1].attempts) == (0, 2)
    cast.answers("bad").do(decide.retry)
    assert (cast.session.steps[-1].turns_before_retry, cast.session.steps[-1].attempts) == (2, 3)
    assert cast.session.earlier_turns == (), "the conversation begins anew"


def test_cast_can_be_rebuilt_after_a_person_has_answered_for_a_failed_visit():
    cast = Folded(CHAIN).do(decide.enter).do(decide.fail, Failure("agent_error", "gone", "A", "try"), 7)
    assert (cast.state.status, cast.state.failure.hint) == ("failed", "try")
    cast.do(decide.answer_by_hand).answers("by hand")
    assert cast.state.next == "B"
    assert again(cast) == cast.session
