"""Test held casts, in which an agent requests another turn, a decision or a detour before its output is routed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents.interface import CallEvent, ToolCall
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.status import overlay_of
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError
from materia_nb.handoff.runtime_rules import envelope_files
from materia_nb.store.rundir import step_names
from protocol_helpers import (
    ASK,
    assert_same_when_opened,
    block,
    cast_asking_for_approval,
    contract,
    envelope,
    report,
    start,
)


def say(status, recommendation, suggestion=None, **more):
    routing = {"recommendation": recommendation, "reason": f"because {recommendation}"}
    if suggestion is not None:
        routing["next_step_suggestion"] = suggestion
    return json.dumps(envelope(status=status, routing=routing, **more))


def sockets(cast):
    return [step.socket for step in cast.steps]


# -- the envelope --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, then",
    [(say("VERIFIED", "CONTINUE"), "Done"), (say("UNVERIFIED", "LOOP"), "Work")],
)
def test_status_of_the_envelope_determines_the_route(tmp_path, given, then):
    cast = start(tmp_path, "envelope", [given])
    cast.run(steps=2)
    assert cast.now.next_socket == then
    assert "reason" not in cast.state
    assert cast.state["context"].startswith("[Check M] ")
    assert_same_when_opened(cast)


def test_blocked_envelope_holds_the_cast_until_a_person_answers(tmp_path):
    cast = start(tmp_path, "envelope", [say("BLOCKED", "ESCALATE"), say("VERIFIED", "CONTINUE")])
    assert cast.run() == "person"
    assert cast.status == "held"
    assert (cast.now.held.action, cast.now.held.needs, cast.now.held.reason) == (
        "pause",
        "help",
        "because ESCALATE",
    )
    assert "‖ held" in graph_text(cast.graph, overlay_of(cast.now))
    assert "context" not in cast.state, "nothing is applied before a person has spoken"
    for go_on in (cast.step, cast.run):
        with pytest.raises(MateriaError, match="held \\(pause\\): because ESCALATE"):
            go_on()
    assert_same_when_opened(cast)
    record = cast.reply("The key is in the drawer.")
    assert [turn.mode for turn in record.turns] == ["work", "resume"]
    assert record.turns[1].prompt.parts[0].text == "The person answers:\nThe key is in the drawer."
    assert [message.role for message in cast.now.conversation] == ["user", "assistant"] * 2
    assert cast.run() == "complete"
    assert sockets(cast) == ["Work", "Check", "Done"]
    assert cast.now.engine.visits["Check"] == 1, "it was one visit"
    assert_same_when_opened(cast)


def test_escalation_is_decided_by_a_person(tmp_path):
    critic = say("UNVERIFIED", "LOOP", routing__can_further_iteration_help=False)
    for decision, then in [
        ("satisfied", "Done"),
        ("not_satisfied", "Work"),
        ("Fix", "Fix"),
        ("end", "end"),
    ]:
        cast = start(tmp_path / then, "envelope", [critic])
        cast.run()
        assert cast.now.held.action == "escalate"
        assert "would not help" in cast.now.held.reason
        assert "would not help" in "\n".join(cast.why().lines)
        cast.accept(decision)
        assert cast.now.next_socket == then
        assert cast.state["context"].startswith("[Check M] ")
        assert cast.steps[-1].decision.by == ("edge" if "satisfied" in decision else "person")
        assert_same_when_opened(cast)
    with pytest.raises(MateriaError, match="nothing is waiting for a decision"):
        cast.accept("satisfied")
    with pytest.raises(MateriaError, match="nothing is waiting for a decision"):
        cast.approvals.answer("x")


def test_escalation_cannot_be_decided_with_an_invalid_answer(tmp_path):
    cast = start(tmp_path, "envelope", [say("UNVERIFIED", "ESCALATE")])
    cast.run()
    with pytest.raises(MateriaError, match="no socket 'Donne'"):
        cast.accept("Donne")
    assert cast.status == "held"
    with pytest.raises(MateriaError, match="blank"):
        cast.reply("  ")
    with pytest.raises(MateriaError, match="not for approval of a command"):
        cast.approvals.approve()
    with pytest.raises(MateriaError, match="every edge of Check M needs a verdict"):
        cast.accept()
    assert cast.status == "held"


def test_envelope_loop_is_limited_by_its_edge(tmp_path):
    """The limit is set by the edge and not by the envelope (envelope rules, section 4)."""
    cast = start(tmp_path, "envelope", [say("UNVERIFIED", "LOOP")] * 3)
    cast.run()
    assert sockets(cast) == ["Work", "Check"] * 3
    assert cast.now.held.action == "escalate"
    assert "2 of 2 rounds" in cast.now.held.reason


def test_cast_goes_on_to_the_original_target_after_a_detour_from_finished_work(tmp_path):
    cast = start(tmp_path, "envelope", [say("VERIFIED", "DETOUR", "Fix")])
    cast.run()
    assert sockets(cast) == ["Work", "Check", "Fix", "Done"]
    assert [step.decision.by for step in cast.steps] == ["edge", "detour", "return", "implied end"]
    assert cast.now.engine.detours == ()
    assert "asks for Fix M to run first" in "\n".join(cast.why(2).lines)
    assert "returns to Done M" in "\n".join(cast.why(3).lines)
    assert_same_when_opened(cast)


def test_cast_returns_to_the_unfinished_socket_after_a_detour(tmp_path):
    cast = start(tmp_path, "envelope", [say("UNVERIFIED", "DETOUR", "Fix"), say("VERIFIED", "CONTINUE")])
    cast.run()
    assert sockets(cast) == ["Work", "Check", "Fix", "Check", "Done"]
    assert cast.now.engine.detours == ()
    assert_same_when_opened(cast)


def test_endless_detour_is_stopped_by_the_edge_limit(tmp_path):
    cast = start(tmp_path, "envelope", [say("UNVERIFIED", "DETOUR", "Fix")] * 30)
    assert cast.run() == "failed"
    assert cast.failure.kind == "edge_traversals_exhausted"
    assert "detour from Check M to Fix M" in cast.failure.message
    assert cast.now.engine.counts["detour:Check->Fix", 0] == 26
    cast.retry(limit=True)
    assert cast.now.next_socket in ("Check", "Fix")
    assert_same_when_opened(cast)


def test_detour_to_an_unknown_socket_escalates(tmp_path):
    cast = start(tmp_path, "envelope", [say("VERIFIED", "DETOUR", "Nowhere")])
    cast.run()
    assert cast.now.held.action == "escalate"


def test_three_invalid_envelopes_escalate(tmp_path):
    """After three refused attempts, the fallback envelope is used (envelope rules, section 5)."""
    cast = start(tmp_path, "envelope", ["no", "no {", '{"status": "DONE"}'])
    cast.run()
    assert cast.now.held.action == "escalate"
    assert [turn.mode for turn in cast.steps[-1].turns] == ["work", "repair", "repair"]
    assert cast.now.held.reading.value["_envelope_source"] == "fallback"
    assert_same_when_opened(cast)
    cast.approvals.decide(satisfied=False)
    assert cast.now.next_socket == "Work"
    assert cast.now.engine.last_json["_envelope_source"] == "fallback"
    assert_same_when_opened(cast)


def test_fallback_envelope_names_files_changed_by_the_agent(tmp_path):
    """The runtime itself determines which files changed in all turns of the visit (envelope rules, section 5)."""
    (tmp_path / "old.txt").write_text("before")
    made = iter(["made.txt", "old.txt", "later.txt"])

    def agent():
        (tmp_path / next(made)).write_text("by the agent")
        return "no envelope"

    cast = start(tmp_path, "envelope", [])
    cast.agents.set("Check", agent)
    cast.run()
    evidence = cast.now.held.reading.value["summary"]["evidence"]
    assert evidence["artifacts_produced"] == ["made.txt", "old.txt", "later.txt"]
    assert_same_when_opened(cast)


def test_file_changes_during_a_hold_are_not_attributed_to_the_agent(tmp_path):
    replies = [say("BLOCKED", "ESCALATE"), "no", "no", "no"]
    cast = start(tmp_path, "envelope", replies)
    cast.run()
    (tmp_path / "mine.txt").write_text("by the person")
    cast.approvals.answer("go on")
    assert cast.now.held.reading.value["summary"]["evidence"]["artifacts_produced"] == []


def test_file_changes_are_tracked_only_if_a_protocol_needs_them(tmp_path, monkeypatch):
    monkeypatch.setattr("materia_nb.cast.work.read_file_stamps", lambda *_: 1 / 0)
    assert start(tmp_path, "sparse", ['{"satisfied": true}']).run() == "complete"


def test_envelope_with_wrong_meta_is_refused_and_requested_again(tmp_path):
    wrong = say("VERIFIED", "CONTINUE", meta={"step_id": "elsewhere"})
    cast = start(tmp_path, "envelope", [wrong, say("VERIFIED", "CONTINUE")])
    assert cast.run() == "complete"
    turns = cast.steps[1].turns
    assert [issue.code for issue in turns[0].reading.issues] == ["META_MISMATCH:step_id"]
    assert "META_MISMATCH:step_id" in turns[1].prompt.text
    cast = start(tmp_path / "always", "envelope", [wrong] * 3)
    cast.run()
    assert cast.now.held.action == "escalate"


def test_envelope_may_give_its_socket_id_as_step_id(tmp_path):
    named = say("VERIFIED", "CONTINUE", meta={"step_id": "Socket-1"})
    document = h.one_config(parse="json", handoff="envelope")
    cast = h.start(tmp_path, document, lambda: named)
    assert cast.run() == "complete"
    folder = cast.run_dir / "T" / "handoffs"
    assert [path.name for path in folder.iterdir()] == ["Socket_1-M.json"]
    assert json.loads((folder / "Socket_1-M.json").read_text())["meta"]["step_id"] == "Socket-1"


def test_envelope_file_missing_after_a_crash_is_written_on_resume(tmp_path):
    here = {"parse": "json", "handoff": "envelope"}
    document = h.config({"A": h.at("M", ("always", "B"), **here), "B": h.at("M", **here)}, {"M": h.agent()})
    cast = h.start(tmp_path, document, lambda: say("VERIFIED", "CONTINUE"))
    cast.step()
    cast.close()
    [path] = cast.run_dir.glob("T/handoffs/*")
    content = path.read_bytes()
    path.unlink()
    (cast.run_dir / "manifest.json").unlink(missing_ok=True)
    resumed = resume_cast(cast.run_dir)
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert resumed.now.messages == []
    resumed.close()


def test_ids_that_differ_only_by_a_hyphen_have_separate_files(tmp_path):
    here = {"parse": "json", "handoff": "envelope"}
    document = h.config({"A-1": h.at("M", ("always", "A_1"), **here), "A_1": h.at("M", **here)}, {"M": h.agent()})
    cast = h.start(tmp_path, document, lambda: say("VERIFIED", "CONTINUE"))
    assert cast.run() == "complete"
    told = {path.name: json.loads(path.read_text())["meta"]["step_id"] for path in cast.run_dir.glob("T/*/*")}
    assert told == {"A_1-M.json": "A_1", "A_1_2-M.json": "A-1"}


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,4}", fullmatch=True), unique=True, max_size=6))
def test_file_names_of_steps_are_unique_and_valid(sockets):
    found = step_names(tuple(sockets))
    assert len({name.casefold() for name in found.values()}) == len(sockets)
    assert all(envelope_files("", "T", name, "M").final == f"T/handoffs/{name}-M.json" for name in found.values())


# -- the agent contract --------------------------------------------------------------------


def test_agent_that_reports_in_progress_continues_its_conversation_up_to_a_limit(tmp_path):
    """A third consecutive IN_PROGRESS is refused (agent contract rules, section 11)."""
    cast = start(tmp_path, "agent-contract", [report("IN_PROGRESS"), report("COMPLETE")])
    assert cast.run() == "complete"
    assert [turn.mode for turn in cast.steps[1].turns] == ["work", "resume"]
    assert_same_when_opened(cast)
    cast = start(tmp_path / "stall", "agent-contract", [report("IN_PROGRESS")] * 3)
    cast.run()
    assert cast.now.held.action == "escalate"
    assert "3 times in a row" in cast.now.held.reason


def test_status_needs_input_asks_a_person_and_must_be_followed_by_in_progress(tmp_path):
    cast = start(
        tmp_path,
        "agent-contract",
        [report("NEEDS_INPUT"), report("COMPLETE"), report("IN_PROGRESS"), report("COMPLETE")],
    )
    cast.run()
    assert (cast.now.held.action, cast.now.held.needs) == ("pause", "question")
    cast.approvals.answer("The second.")
    turns = cast.steps[-1].turns
    assert [issue.code for issue in turns[1].reading.issues] == ["ILLEGAL_TRANSITION:NEEDS_INPUT->COMPLETE"]
    assert cast.run() == "complete"
    assert len(turns) == 4
    assert_same_when_opened(cast)


def test_approval_covers_one_exact_command_in_one_turn(tmp_path):
    cast, seen = cast_asking_for_approval(tmp_path, report("IN_PROGRESS"), report("COMPLETE"))
    request = cast.approvals.request
    assert request.sealed["exact_content"] == "rm -rf build"
    assert seen[0].approval is None
    cast.approvals.approve()
    approval = seen[1].approval
    assert approval.exact_content == "rm -rf build"
    assert "rm -rf build" in seen[1].prompt
    allowed, used = approval.use("rm -rf build", approval.expires_at - 1)
    assert allowed
    assert not used.use("rm -rf build", approval.expires_at - 1)[0]
    assert not approval.use("rm -rf /", approval.expires_at - 1)[0]
    assert not approval.use("rm -rf build", approval.expires_at)[0]
    assert seen[2].approval is None, "it ended with the turn"
    assert cast.run() == "complete"
    assert cast.approvals.request is None
    events = [json.loads(line) for line in (cast.run_dir / "events.jsonl").read_text().splitlines()]
    answered = next(event["data"] for event in events if event["type"] == "approval_answered")
    assert answered["granted"] is True
    assert answered["fingerprint"] == request.fingerprint
    assert answered["exactContent"] == "rm -rf build"
    assert_same_when_opened(cast)


def cut_off_after_consent(tmp_path):
    """Return a cast whose agent failed immediately after the approval and must be asked again."""

    def lost(turn):
        if turn.approval is None:
            return report("APPROVAL_REQUEST", approval_request=ASK)
        raise KeyboardInterrupt

    cast = start(tmp_path, "agent-contract", [])
    cast.agents.set("Check", lost)
    cast.run()
    with pytest.raises(KeyboardInterrupt):
        cast.approvals.approve()
    cast.close()
    return cast


def test_r44_approval_survives_a_resume(tmp_path):
    cast = cut_off_after_consent(tmp_path)
    seen = []
    resumed = resume_cast(cast.run_dir, h.table(lambda turn: seen.append(turn) or report("IN_PROGRESS")))
    assert resumed.now.engine == cast.now.engine
    assert resumed.approvals.current == cast.approvals.current
    assert "may run this command once: rm -rf build" in repr(resumed)
    resumed.step()
    assert seen[0].approval == cast.approvals.current
    assert seen[1].approval is None, "it ended with the turn"


def test_r44_used_approval_does_not_return(tmp_path):
    cast = cut_off_after_consent(tmp_path)
    resumed = resume_cast(cast.run_dir, h.table(None))
    call = ToolCall(id="1", tool="bash", args={"command": "rm -rf build"}, result="done")

    def used(turn):
        turn.report(CallEvent(call))
        raise KeyboardInterrupt

    resumed.agents.set("Check", used)
    with pytest.raises(KeyboardInterrupt):
        resumed.step()
    assert resumed.approvals.current is None
    resumed.close()
    assert resume_cast(cast.run_dir).approvals.current is None


def test_r44_approval_expires_and_does_not_survive_an_abort_or_a_fork(tmp_path, monkeypatch):
    cast = resume_cast(cut_off_after_consent(tmp_path).run_dir)
    assert cast.fork().approvals.current is None
    with monkeypatch.context() as later:
        later.setattr("materia_nb.cast.snapshot.time.time", lambda: cast.steps[-1].started / 1000 + 2 * 3600)
        assert cast.approvals.current is None
    cast.abort()
    assert cast.now.engine.at.approval is None
    assert_same_when_opened(cast)


@pytest.mark.parametrize("approval_id", ["X", "P-123"])
def test_r44_request_with_a_malformed_id_needs_an_instruction_from_a_person(tmp_path, approval_id):
    asked = report("APPROVAL_REQUEST", approval_request={**ASK, "approval_id": approval_id})
    cast = start(tmp_path, "agent-contract", [asked, report("IN_PROGRESS"), report("COMPLETE")])
    cast.run()
    assert (cast.now.held.needs, cast.approvals.request) == ("direction", None)
    assert "reply with a direction" in repr(cast)
    cast.approvals.answer("Leave it.")
    assert cast.run() == "complete"


def test_denial_is_passed_on_with_its_reason(tmp_path):
    cast, seen = cast_asking_for_approval(
        tmp_path, report("IN_PROGRESS"), report("BLOCKED", evidence_report__open_gaps=["no leave"])
    )
    cast.approvals.deny("not on a Friday")
    assert seen[1].approval is None
    assert "The command is not approved" in seen[1].prompt
    assert "not on a Friday" in seen[1].prompt
    assert cast.now.held.action == "escalate"
    assert "no leave" in cast.now.held.reason
    assert_same_when_opened(cast)


def test_approval_request_cannot_be_approved_after_a_day(tmp_path, monkeypatch):
    cast, _ = cast_asking_for_approval(tmp_path)
    day_later = cast.steps[-1].ended + 24 * 3_600_000
    monkeypatch.setattr("materia_nb.cast.runner.now", lambda: day_later)
    with pytest.raises(MateriaError, match="expired"):
        cast.approvals.approve()
    assert cast.status == "held"


def test_socket_with_unfinished_work_runs_again_if_it_has_no_not_satisfied_edge(tmp_path):
    """Without a ``not_satisfied`` edge, the socket itself runs again (agent contract rules, section 14)."""
    failing = contract(agent_status__plan_status="IN_PROGRESS", evidence_report__verification={"result": "fail"})
    cast = start(
        tmp_path,
        "agent-contract",
        [block(failing), report("COMPLETE")],
        Check=h.at("M", ("satisfied", "Done"), parse="json", handoff="agent-contract"),
    )
    assert cast.run() == "complete"
    assert [turn.mode for turn in cast.steps[1].turns] == ["work", "resume"]
    cast = start(tmp_path / "back", "agent-contract", [block(failing), report("COMPLETE")])
    cast.run(steps=2)
    assert cast.now.next_socket == "Work"


# -- what agents are given and keep ----------------------------------------------------------


def update(name, payload):
    return block({**contract(), "update_contracts": [{"contract": name, "payload": payload}]})


def informed(tmp_path, reply, **assignment):
    seen = []

    def agent(turn):
        seen.append(turn.prompt)
        return reply

    cast = start(
        tmp_path,
        "agent-contract",
        [],
        Check=h.at("M", parse="json", handoff="agent-contract", assignment=assignment),
    )
    cast.agents.set("Check", agent)
    return cast, seen


def test_agent_receives_its_id_task_and_project_context(tmp_path):
    cast, seen = informed(
        tmp_path,
        update("stack", {"language": "Python", "tools": ["pytest"]}),
        goal="Find out",
        acceptanceCriteria=["all named"],
        writableSections=["stack"],
        surfaces=["code"],
    )
    cast.run()
    parts = {part.name: part.text for part in cast.steps[1].prompt.parts if part.text}
    assert list(parts) == ["place", "previous", "task", "given", "return"]
    told = json.loads(parts["given"].strip("`"))
    assert told["agent_contract_handoff"]["goal"] == "Find out"
    assert told["agent_contract_handoff"]["acceptance_criteria"] == ["all named"]
    assert told["surface_routing"]["surfaces"] == ["code"]
    assert told["write_permissions"]["writable_sections"] == ["stack"]
    assert told["agent_id"].startswith("a")
    assert told["project_knowledge"] == {}
    assert told["metadata"]["session_id"] == cast.id
    assert open_cast(cast.run_dir).steps[1].prompt == cast.steps[1].prompt
    assert cast.now.engine.knowledge == {"stack": {"language": "Python", "tools": ["pytest"]}}
    assert_same_when_opened(cast)
    stored = json.loads((tmp_path / "casts" / "project-context.json").read_text())
    assert stored == cast.now.engine.knowledge

    later, seen = informed(tmp_path, update("stack", {"tools": ["mypy"]}), writableSections=["stack"])
    later.run()
    assert '"language": "Python"' in seen[0]
    assert later.now.engine.knowledge["stack"]["tools"] == ["mypy", "pytest"]
    assert_same_when_opened(later)
    stored = json.loads((tmp_path / "casts" / "project-context.json").read_text())
    assert stored["stack"] == {"language": "Python", "tools": ["mypy", "pytest"]}


def test_update_of_a_protected_section_is_refused_with_a_note(tmp_path):
    cast, _ = informed(tmp_path, update("secrets", {"a": 1}), writableSections=["stack"])
    cast.run()
    assert cast.status == "complete"
    assert cast.now.engine.knowledge == {}
    assert not (tmp_path / "casts" / "project-context.json").exists()
    assert "\n".join(cast.why(2).lines).count("has no write access to the contract 'secrets'") == 1


def test_damaged_project_context_raises_one_clear_error(tmp_path):
    (tmp_path / "casts").mkdir()
    (tmp_path / "casts" / "project-context.json").write_text("[1]")
    with pytest.raises(MateriaError, match="not a JSON object"):
        informed(tmp_path, "")
    assert [path.name for path in (tmp_path / "casts").iterdir()] == ["project-context.json"]


def test_damaged_project_context_does_not_stop_the_cast(tmp_path):
    cast, _ = informed(tmp_path, update("stack", {"a": 1}), writableSections=["stack"])
    (tmp_path / "casts" / "project-context.json").write_text("{")
    cast.run()
    assert cast.status == "complete"
    assert any("not a JSON object" in message for message in cast.runner.messages)
    assert (tmp_path / "casts" / "project-context.json").read_text() == "{"


def test_envelope_file_is_a_draft_until_its_socket_is_completed(tmp_path):
    """See envelope rules, section 6."""
    cast = start(tmp_path, "envelope", [say("BLOCKED", "ESCALATE"), say("VERIFIED", "CONTINUE")])
    cast.run()
    folder = cast.run_dir / "T" / "handoffs"
    assert [path.name for path in folder.iterdir()] == ["Check-M.draft.json"]
    draft = json.loads((folder / "Check-M.draft.json").read_text())
    assert draft["status"] == "BLOCKED"
    assert draft["meta"]["step_id"] == "Check"
    assert draft["meta"]["timestamp"].endswith("+00:00")
    cast.approvals.answer("go on")
    assert [path.name for path in folder.iterdir()] == ["Check-M.json"]
    assert json.loads((folder / "Check-M.json").read_text())["status"] == "VERIFIED"


# -- what a person can do beside that --------------------------------------------------------


def test_held_cast_can_be_resumed_in_another_process(tmp_path):
    cast = start(tmp_path, "agent-contract", [report("NEEDS_INPUT")])
    cast.run()
    path, now = cast.run_dir, cast.now.engine
    cast.close()
    other = resume_cast(path, h.table({"M": lambda: "fine", "Check": lambda: report("IN_PROGRESS")}))
    assert other.now.engine == now
    other.agents.set("Check", iter_agent(report("IN_PROGRESS"), report("COMPLETE")))
    other.approvals.answer("Yes.")
    assert other.run() == "complete"
    other.close()


def iter_agent(*replies):
    left = iter(replies)
    return lambda: next(left)


def test_output_of_a_held_socket_can_be_corrected(tmp_path):
    cast = start(tmp_path, "envelope", [say("BLOCKED", "ESCALATE")])
    cast.run()
    cast.edit.output(say("VERIFIED", "CONTINUE"))
    assert cast.now.next_socket == "Done"
    assert_same_when_opened(cast)
    cast.back(1, discard_edits=True)
    assert cast.now.held is None


def test_retry_after_aborting_a_held_cast_calls_the_agent_again(tmp_path):
    cast = start(tmp_path, "envelope", [say("BLOCKED", "ESCALATE"), say("VERIFIED", "CONTINUE")])
    cast.run()
    cast.abort()
    assert cast.status == "aborted"
    assert cast.now.held is None
    cast.retry()
    assert cast.run() == "complete"
    assert cast.now.engine.visits["Check"] == 1
    assert_same_when_opened(cast)


def test_target_chosen_by_a_person_is_taken_after_a_budget_stop_and_a_retry(tmp_path):
    cast = start(tmp_path, "envelope", [{"text": say("UNVERIFIED", "ESCALATE"), "usage": {"input": 9, "output": 1}}])
    cast.edit.budget(5)
    cast.run()
    assert cast.status == "held"
    cast.approvals.decide(target="Fix")
    assert cast.failure.kind == "budget"
    cast.edit.budget(None)
    cast.retry(limit=True)
    assert "Fix" in sockets(cast)
    assert_same_when_opened(cast)


def test_r46_item_of_a_held_socket_stays_before_open_items(tmp_path):
    document = h.loop_config()
    check = document["loadouts"]["T"]["sockets"]["Socket-3"]
    check["handoff"] = "envelope"
    agents = h.loop_agents(2) | {"Check": {"Check": [say("BLOCKED", "ESCALATE"), say("VERIFIED", "CONTINUE")]}}
    cast = h.start(tmp_path, document, agents)
    cast.run()
    first, second = cast.now.work_items
    assert cast.status == "held"
    with pytest.raises(MateriaError, match="being worked on at Check, so it cannot be removed"):
        cast.edit.items([second])
    cast.edit.items([{"title": "before", "context": "it"}, first, second])
    assert [item["title"] for item in cast.now.work_items] == [first["title"], "before", second["title"]]
    assert cast.now.engine.at.item.key == "WI-1"
    assert cast.state["workItem"] == first
    cast.approvals.decide(satisfied=True)
    assert cast.now.engine.cursors["workItemIndex"] == 1
    assert_same_when_opened(cast)


# -- objects as answers --------------------------------------------------------------------


@pytest.mark.parametrize(
    "protocol, given",
    [
        ("sparse", {"satisfied": True, "context": "`a`"}),
        ("envelope", envelope()),
        ("agent-contract", contract()),
    ],
)
def test_answer_given_as_an_object_is_encoded_for_the_protocol_of_its_socket(tmp_path, protocol, given):
    for who, agent in (("function", lambda: given), ("script", {"Check": [given]}), ("person", "person")):
        cast = start(tmp_path / who, protocol, [])
        cast.agents.set("Check", agent)
        cast.run(until="Check")
        step = cast.reply(given) if who == "person" else cast.step()
        assert (cast.now.next_socket, step.decision.satisfied) == ("Done", True)
        assert step.reading.value.items() >= given.items()
        assert cast.edit.output(given).output == step.output
        assert_same_when_opened(cast)
