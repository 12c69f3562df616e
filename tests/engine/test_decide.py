"""Test the events that each command returns, and the conditions under which it is refused."""

from __future__ import annotations

from math import inf, nan

import pytest

import protocol_helpers as ph
from builders import YES, Folded, asks, at, config, edge, items, retry_loop, say
from materia_nb.agents.interface import ToolCall
from materia_nb.engine import approvals, decide
from materia_nb.engine import events as ev
from materia_nb.engine.state import Failure, Label, Pin
from materia_nb.errors import MateriaError
from materia_nb.handoff.runtime_rules import request_of, seal_request
from materia_nb.loadout.graph import Budget

CHAIN = config({"A": at("P", edge("B")), "B": at("P")})
FIRST = ToolCall(id="1", tool="bash", args={"command": "make"})
SECOND = ToolCall(id="2", tool="write", args={"path": "a"})


def refused(cast, command, *given):
    """Return the kind of the error that refuses a command, and assert that the session has not changed."""
    before = cast.session
    with pytest.raises(MateriaError) as caught:
        cast.do(command, *given)
    assert cast.session is before
    return caught.value.kind


@pytest.fixture
def asking():
    return (
        Folded(CHAIN)
        .do(decide.enter)
        .do(
            decide.record_in_turn,
            ev.ToolAsked(
                calls=(
                    FIRST,
                    SECOND,
                ),
                worked=0,
            ),
        )
    )


def test_every_event_of_a_command_has_the_time_of_the_command(asking):
    made = approvals.decide_calls(asking.rules, asking.session, "denied", "", None, 42)
    assert [(one.type, one.ts) for one in made] == [
        ("tool_decided", 42),
        ("tool_call", 42),
        ("tool_call", 42),
    ]
    ended = decide.fail(asking.rules, asking.session, Failure("agent_error", "x", "A"), 3, 43)
    assert [(one.ts, one.worked) for one in ended] == [(43, 3)]


def test_approved_calls_wait_to_run_and_denied_calls_are_answered(asking):
    approved = asking.do(approvals.decide_calls, "once", "", (FIRST, SECOND))
    assert [call.decided for call in approved.session.open_calls] == ["once", "once"]
    assert approved.session.allowed == frozenset()
    denied = Folded(CHAIN).do(decide.enter).do(decide.record_in_turn, ev.ToolAsked(calls=(FIRST,), worked=0))
    denied.do(approvals.decide_calls, "denied", "too slow", None)
    assert denied.session.open_calls == ()
    (call,) = denied.session.calls
    assert (call.ok, call.result) == (False, "The person did not allow this call. Reason: too slow")


def test_allowing_a_tool_for_the_cast_also_allows_its_later_calls(asking):
    asking.do(approvals.decide_calls, "always", "", None)
    assert asking.session.allowed == {"bash", "write"}
    assert asking.types[-1] == "tools_allowed"


def test_decision_about_tool_calls_that_are_not_pending_is_refused(asking):
    assert refused(asking, approvals.decide_calls, "once", "", (FIRST,)) == "not_asked"
    assert refused(Folded(CHAIN).do(decide.enter), approvals.decide_calls, "once", "", None) == "not_asked"
    assert refused(asking, decide.finalize) == "asking"


def test_resume_revokes_allowed_tools_and_decisions_about_calls(asking):
    asking.do(approvals.decide_calls, "always", "", None).do(approvals.ask_again)
    assert asking.session.allowed == frozenset()
    assert [call.decided for call in asking.session.open_calls] == [None, None]
    assert approvals.ask_again(asking.rules, Folded(CHAIN).session, 0) == ()


def test_error_names_unknown_tools():
    assert approvals.known_tools(Folded(CHAIN).rules, ["all"]) == set(approvals.TOOLS_NEEDING_APPROVAL)
    with pytest.raises(MateriaError, match="did you mean 'bash'"):
        approvals.known_tools(Folded(CHAIN).rules, ["bsh"])


def test_only_drafts_can_be_refined_and_only_with_a_message():
    draft = Folded(config({"A": asks(materia="M")})).do(decide.enter)
    assert refused(draft, decide.refine, "shorter") == "no_draft"
    draft.answers("a draft").do(decide.refine, "shorter")
    assert draft.session.next_message == "shorter"
    assert refused(Folded(CHAIN), decide.refine, "shorter") == "not_waiting"


def held(**changes):
    sockets = {"A": at("P", edge("B"), parse="json", handoff="agent-contract"), "B": at("P")}
    return Folded(config(sockets)).answers(ph.block(ph.contract(**changes)))


def test_agent_question_requires_an_answer_that_is_not_blank():
    cast = held(agent_status__plan_status="NEEDS_INPUT", agent_status__next_action="which one?")
    assert (cast.state.status, cast.due) == ("held", ["person"])
    assert refused(cast, approvals.answer_hold, "  ") == "usage"
    cast.do(approvals.answer_hold, "the second one")
    resumed = next(part.text for part in cast.session.prompt.parts if part.name == "resume")
    assert "which one?" in resumed
    assert "the second one" in resumed


def test_resumed_agent_is_reminded_of_its_question():
    cast = held(agent_status__plan_status="IN_PROGRESS", agent_status__next_action="WAIT FOR THE BUILD")
    (part,) = [one for one in cast.session.prompt.parts if one.name == "resume"]
    assert cast.types[-1] == "socket_continued"
    assert "WAIT FOR THE BUILD" in part.text


def test_person_can_decide_instead_of_the_agent():
    cast = held(agent_status__plan_status="NEEDS_INPUT", agent_status__next_action="which one?")
    cast.do(approvals.decide_hold, True, None)
    assert (cast.state.next, cast.types[-1]) == ("B", "hold_decided")
    assert refused(cast, approvals.decide_hold, True, None) == "not_held"


@pytest.mark.parametrize("granted", [True, False])
def test_approval_covers_one_exact_command_for_an_hour(granted):
    cast = held(agent_status__plan_status="APPROVAL_REQUEST", approval_request=ph.ASK)
    approval = seal_request(request_of(cast.state.hold.reading.value), 0.0)
    if granted:
        cast.do(approvals.approve, approval, ts=1000)
        assert (cast.state.at.approval.exact_content, cast.state.at.approval.expires_at) == ("rm -rf build", 3601.0)
    else:
        cast.do(approvals.deny, approval, "too risky")
        assert cast.state.at.approval is None
        assert "too risky" in cast.session.prompt.text
    assert (cast.events[-1].granted, cast.events[-1].fingerprint) == (granted, approval.fingerprint)


def test_approval_request_expires():
    cast = held(agent_status__plan_status="APPROVAL_REQUEST", approval_request=ph.ASK)
    approval = seal_request(request_of(cast.state.hold.reading.value), 0.0)
    with pytest.raises(MateriaError, match="expired"):
        cast.do(approvals.approve, approval, ts=25 * 3600 * 1000)


def test_cast_end_event_lists_the_warnings():
    document = config({"A": asks(edge("B", "not_satisfied")), "B": at("P")})
    cast = Folded(document).answers(say(satisfied=True)).do(decide.enter)
    end = cast.events[-1]
    assert (end.ok, end.step) == (True, 1)
    assert [warning["code"] for warning in end.warnings] == ["no-edge-matched"]


def test_missing_file_named_in_an_output_is_recorded_after_the_output():
    cast = Folded(CHAIN).do(decide.enter)
    made = decide.answer(cast.rules, cast.session, decide.Answer("done"), 7)
    output, lacking = decide.with_missing_evidence(made, ("a.py",))
    assert (output.type, lacking.type, lacking.paths, lacking.ts) == (
        "socket_complete",
        "evidence_missing",
        ("a.py",),
        7,
    )


def test_skipping_a_visit_requires_a_note_and_reports_the_next_socket():
    cast = Folded(CHAIN).do(decide.enter).do(decide.fail, Failure("agent_error", "x", "A"), 0)
    assert refused(cast, decide.skip, " ") == "usage"
    cast.do(decide.skip, "not now")
    assert (cast.events[-1].next, cast.session.steps[-1].skipped) == ("B", "not now")


def test_item_at_which_the_cast_stopped_can_be_skipped():
    cast = Folded(retry_loop()).answers(items("a", "b")).do(decide.enter)
    cast.do(decide.fail, Failure("agent_error", "x", "Build"), 0).do(decide.skip_item, "too hard")
    assert [event.type for event in cast.events[-2:]] == [ev.StateEdited.type, ev.SocketSkipped.type]
    assert cast.do(decide.enter).state.at.item.key == "WI-2"
    plain = Folded(CHAIN).do(decide.enter).do(decide.fail, Failure("agent_error", "x", "A"), 0)
    assert refused(plain, decide.skip_item, "too hard") == "no_item"
    going_on = Folded(retry_loop()).answers(items("a")).do(decide.enter)
    assert refused(going_on, decide.skip_item, "too hard") == "not_stopped"
    behind = Folded(retry_loop()).answers(items("a"), "built", YES).do(decide.enter)
    behind.do(decide.fail, Failure("agent_error", "x", "Tell"), 0)
    assert refused(behind, decide.skip_item, "too hard") == "no_item"


def test_editing_the_prompt_of_an_interrupted_turn_retries_the_turn():
    cast = Folded(CHAIN).do(decide.enter)
    cast.do(decide.edit_prompt, "task", "do it well")
    assert cast.session.prompt.instruction == "do it well"
    assert decide.edit_prompt(cast.rules, cast.session, "task", "do it well", 0) == ()
    cast.do(decide.fail, Failure("agent_error", "x", "A"), 0).do(decide.edit_prompt, "task", "better")
    assert (cast.state.status, cast.types[-2:]) == ("waiting", ["turn_resent", "prompt_edited"])
    utility = Folded(config({"A": at("T")})).do(decide.enter)
    assert refused(utility, decide.edit_prompt, "task", "x") == "not_an_agent"


def test_edit_can_be_undone_until_the_next_step():
    cast = Folded(CHAIN).answers("a")
    assert refused(cast, decide.undo) == "undo"
    before = cast.state
    cast.do(decide.edit_state, {"x": 1}, {})
    assert cast.do(decide.undo).state == before
    cast.do(decide.edit_state, {"x": 1}, {}).do(decide.enter)
    assert refused(cast, decide.undo) == "undo"
    assert decide.edit_state(cast.rules, cast.session, cast.state.data, {}, 0) == ()


def test_r71_only_the_last_output_can_be_corrected_and_later_edits_are_kept():
    cast = Folded(CHAIN)
    assert refused(cast, decide.edit_output, "x") == "edit_output"
    cast.answers("a")
    cast.do(decide.edit_output, "better")
    assert (cast.session.steps[-1].output, cast.state.last_output) == ("better", "better")
    cast.do(decide.edit_state, {"x": 1}, {})
    cast.do(decide.edit_output, "best")
    assert (cast.session.steps[-1].output, cast.state.data["x"]) == ("best", 1)
    assert refused(cast.do(decide.enter), decide.edit_output, "x") == "edit_output"


@pytest.mark.parametrize(
    "most",
    [
        *({"max_tokens": most} for most in (-1, True, 1.5)),
        *({"max_cost_usd": most} for most in (-0.1, "1", inf)),
        *({"max_seconds": most} for most in (-1, "60", nan)),
        *({"max_turns": most} for most in (-1, 2.5)),
    ],
)
def test_budget_must_not_be_negative(most):
    assert refused(Folded(CHAIN), decide.set_budget, Budget(**most)) == "bad_budget"


def test_completed_cast_cannot_be_edited():
    assert refused(Folded(CHAIN).answers("a", "b").do(decide.enter), decide.edit_state, {}, {}) == "over"


def test_decision_by_a_person_is_recorded_with_its_time():
    cast = Folded(CHAIN).answers("a")
    cast.do(decide.record, ev.Pinned(name="B", **Pin("text", "a text", "b").as_json()), ts=5)
    assert cast.session.pins == {"B": Pin("text", "a text", "b")}
    assert cast.do(decide.record, ev.Unpinned(name="B"), ts=6).session.pins == {}
    cast.do(decide.record, ev.SuggestionKept(step=1, suggestion={"text": "x"}), ts=7)
    cast.do(
        decide.record,
        ev.MateriaRedefined(materia="P", definition={"prompt": "new"}, previous={"prompt": "p"}, step=1),
        ts=8,
    )
    assert [event.ts for event in cast.events[-4:]] == [5, 6, 7, 8]
    assert (cast.events[-1].step, cast.events[-1].previous) == (1, {"prompt": "p"})


def test_labels_can_be_added_and_removed_but_not_repeated():
    cast = Folded(CHAIN).answers("a")
    assert refused(cast, decide.unlabel, "Ana") == "undo"
    cast.do(decide.label, (0, 1), Label(note="good", by="Ana"))
    assert decide.label(cast.rules, cast.session, (0, 1), Label(note="good", by="Ben"), 0) == ()
    cast.do(decide.unlabel, "Ben")
    assert cast.session.labels == {}


def test_invalid_manual_answer_is_refused_before_it_is_recorded():
    cast = Folded(config({"A": asks(edge("B", "satisfied")), "B": at("P")})).do(decide.enter)
    with pytest.raises(MateriaError, match="is still waiting"):
        decide.check_reply(cast.rules, cast.session, "not json")
    decide.check_reply(cast.rules, cast.session, say(satisfied=True))
