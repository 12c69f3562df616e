"""Test the next action of a session, and the names of its files."""

from __future__ import annotations

import pytest

from builders import Folded, agent, asks, at, config, edge, say, utility
from materia_nb.agents.interface import ToolCall
from materia_nb.engine import approvals, decide, outputs
from materia_nb.engine import events as ev
from materia_nb.engine.events import SocketComplete, SocketHeld, SocketRefused
from materia_nb.engine.session import StepFiles, Steps, files_after, name_of_correction, name_of_output
from materia_nb.engine.state import CastState, Draft, Failure
from materia_nb.errors import MateriaError

CHAIN = config({"A": at("P", edge("B")), "B": at("T")})
DRAFTS = config({"A": asks(materia="M")})


def test_socket_is_entered_before_its_agent_or_utility_runs():
    cast = Folded(CHAIN)
    assert cast.due == ["enter"]
    assert cast.do(decide.enter).due == ["agent"]
    assert cast.answers("a").due == ["enter"]
    assert cast.do(decide.enter).due == ["utility"]
    assert cast.answers("b").due == ["enter"]
    assert cast.do(decide.enter).due == []


def test_pending_action_after_a_draft_is_a_decision_by_a_person():
    cast = Folded(DRAFTS).do(decide.enter)
    assert cast.due == ["agent"], "nothing has been drafted"
    cast.answers("a draft")
    assert cast.due == ["person"]
    assert cast.do(decide.refine, "shorter").due == ["agent"]
    cast.answers("a shorter draft")
    assert cast.do(decide.finalize).due == ["agent"]


def test_undecided_tool_calls_wait_for_a_person():
    cast = Folded(CHAIN).do(decide.enter)
    cast.do(
        decide.record_in_turn, ev.ToolAsked(calls=(ToolCall(id="1", tool="bash", args={"command": "make"}),), worked=3)
    )
    assert cast.due == ["person"]
    assert cast.session.steps[-1].worked == 3
    assert cast.do(approvals.decide_calls, "once", "", None).due == ["agent"]


def test_held_cast_waits_for_a_person_and_stopped_cast_has_no_pending_action():
    cast = Folded(CHAIN).do(decide.enter).do(decide.abort, "enough")
    assert cast.due == []


def test_artifact_name_contains_visit_and_outcome():
    cast = Folded(CHAIN).do(decide.enter)
    assert name_of_output(cast.session, SocketComplete) == "sockets/A/1.md"
    assert name_of_output(cast.session, SocketHeld) == "sockets/A/1.held-1.md"
    assert name_of_output(cast.session, SocketRefused) == "sockets/A/1.refused-1.md"
    cast.answers("a")
    assert name_of_correction(cast.session) == "sockets/A/1.corrected-2.md"
    cast.do(decide.back_to, 0).do(decide.enter)
    assert name_of_output(cast.session, SocketComplete) == "sockets/A/1.branch-1.md"


def test_accepted_output_of_a_failed_step_is_not_overwritten():
    document = config({"A": asks(edge("B", "satisfied"), assign={"..": "$"}), "B": at("P")})
    cast = Folded(document).answers(say(satisfied=True))
    assert cast.state.failure.kind == "assignment"
    cast.do(decide.retry)
    assert name_of_output(cast.session, SocketComplete) == "sockets/A/1.again-2.md"


def test_earlier_step_sequence_does_not_contain_later_steps():
    cast = Folded(CHAIN).answers("a")
    before = cast.session.steps
    cast.answers("b")
    after = cast.session.steps
    assert (len(before), len(after)) == (1, 2)
    assert (after.latest, after.previous) == (after[1], after[0])
    assert before.to(0) == Steps()
    with pytest.raises(IndexError):
        before[1]
    with pytest.raises(MateriaError, match="cannot be changed"):
        before.latest = after.latest


def test_saved_files_of_a_step_are_found_by_its_number():
    session = Folded(CHAIN).session._replace(files="now")
    assert [files_after(session, number) for number in (0, 1)] == ["now", "now"], "nothing ran yet"
    first, second = Folded(CHAIN).answers("a", "b").session.steps
    steps = Steps().with_step(first._replace(files=StepFiles("start", "one"))).with_step(second._replace(files=None))
    assert [files_after(session._replace(steps=steps), number) for number in (0, 1, 2)] == [
        "start",
        "one",
        None,
    ]


def test_two_continuations_of_the_same_steps_stay_separate():
    cast = Folded(CHAIN).answers("a")
    start = cast.session
    one = cast.answers("b").session.steps
    cast.session = start
    other = cast.answers("c").session.steps
    assert (one[1].output, other[1].output) == ("b", "c")
    assert one[0] is other[0]


def test_step_records_its_target():
    cast = Folded(config({"A": at("Q")}, materia={"Q": agent()})).do(decide.enter)
    assert repr(cast.session.steps[-1]) == "<step 1: Q, visit 1>"
    failed = cast.do(decide.fail, Failure("agent_error", "gone", "A"), 5)
    assert (failed.state.status, failed.session.steps[-1].worked) == ("failed", 5)


@pytest.mark.parametrize(
    "assign, shown",
    [({"said": "$.text"}, "as prose"), ({"why": "$.context"}, None), ({"said": "$.gone"}, None), ({}, None)],
)
def test_r62_step_shows_the_assigned_text_instead_of_the_output(assign, shown):
    made = utility(assign={key: value for key, value in assign.items() if value != "$.gone"})
    cast = Folded(config({"A": at("V")}, materia={"V": made})).answers(say(text="as prose", context="why"))
    step = cast.session.steps[-1]
    assert step.shown == (shown or step.output)
    assert step.output == say(text="as prose", context="why")


@pytest.mark.parametrize(
    "status, hint",
    [
        ("ready", "continue the cast with `step` or `run`"),
        ("waiting", "continue the cast with `step`, or answer yourself with `reply`"),
    ],
)
def test_decision_and_answer_are_refused_if_the_cast_is_not_held(status, hint):
    cast = Folded(CHAIN)
    if status == "waiting":
        cast.do(decide.enter)
    prompt = cast.session.prompt
    for command in (
        lambda: outputs.complete_held_output(cast.rules, cast.state, satisfied=True),
        lambda: outputs.resume_after_answer(cast.rules, cast.state, "yes", prompt),
    ):
        with pytest.raises(MateriaError, match=f"The cast is {status}; nothing is waiting") as caught:
            command()
        assert (caught.value.kind, caught.value.hint) == ("not_held", hint)


def test_mutable_session_draft_has_every_field_of_a_session():
    state = CastState(*(f"value of {name}" for name in CastState._fields))
    draft = Draft(state)
    assert {name: getattr(draft, name) for name in CastState._fields} == state._asdict()
    assert draft.freeze() == state
