"""Test that each kind of failure offers actions, and that each action continues the cast and is recorded."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest

import cast_helpers as h
import materia_nb
from magics_helpers import cell, line, text
from materia_nb.agents.interface import AgentError
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.formatting import describe_failure
from materia_nb.cast.repairs import ACTIONS, FAILURE_KINDS, OTHER, changed_definition, offered_actions
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import RefusedAnswer
from materia_nb.utilities.process import ProcessResult

SOURCE = Path(materia_nb.__file__).parent
NO_FAILURE = {"interrupted", "pin_gone"}
"""Failure kinds of agents and processes that leave the turn waiting and do not fail the cast."""
ENDINGS = [
    ProcessResult((), started=False),
    ProcessResult((), timed_out=True),
    ProcessResult((), stopped=True),
    ProcessResult((), code=1),
]
"""Results of processes that fail a step."""


def kinds_in_the_code() -> set[str]:
    """Return the failure kinds that the engine, processes and agents can produce, as found in the source code."""
    asking = tomllib.loads((SOURCE / "agents" / "failures.toml").read_text("utf-8"))
    failures = [ending.failure(who, "1 s") for ending in ENDINGS for who in ("utility", "agent")]
    found = {"aborted", *(kind for kind, _ in failures), *(row["kind"] for row in asking.values())}
    for path in [one for part in ("engine", "agents", "utilities") for one in (SOURCE / part).rglob("*.py")]:
        if "shipped" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in ("Failure", "Kind", "UtilityFailure"):
                    found |= texts(node.args[:1])
                if name == "AgentError":
                    found |= texts(keyword.value for keyword in node.keywords if keyword.arg == "kind")
    return found - NO_FAILURE - {""}


def texts(nodes) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_failure_kind_in_the_code_is_listed_in_the_failures_table():
    known = kinds_in_the_code()
    assert {"utility_exit", "repair_exhausted", "rate_limited", "agent_error", "no_key", "budget"} <= known
    assert known - set(FAILURE_KINDS) == set()


def test_every_failure_kind_offers_existing_actions():
    for kind in (*FAILURE_KINDS.values(), OTHER):
        assert kind.acts
        assert set(kind.acts) <= set(ACTIONS)


UTILITY = h.config(
    {"Socket-1": h.at("Count", ("always", "Socket-2")), "Socket-2": h.at("Tell")},
    {"Count": h.python("raise SystemExit(3)", parse="json"), "Tell": h.agent("Tell {{state.n}}")},
)


def test_status_and_steps_use_the_description_of_a_failure(shell, tmp_path):
    define = json.dumps({"entry": "Count", "sockets": {"Count": {"materia": "Count"}},
                         "materia": {"Count": h.python("raise SystemExit(3)", parse="json")}})  # fmt: skip
    cell(shell, "define loadout Report", define)
    line(shell, "cast how many")
    line(shell, "run")
    assert "Count ended with an error: " in text(line(shell, "status"))
    assert line(shell, "steps").rows[0][5] == "failed: ended with an error"
    assert not any("utility_exit" in text(line(shell, verb)) for verb in ("status", "steps"))


def test_unknown_failure_kind_has_a_generic_description():
    assert [describe_failure(kind) for kind in ("quota", "budget")] == ["failed", "used up the budget"]


@pytest.fixture
def failed(tmp_path):
    """Return a cast whose first socket, a utility, has failed."""
    cast = h.start(tmp_path, UTILITY, {"Tell": lambda: "told"})
    assert cast.run() == "failed"
    return cast


def names(cast, changed=None):
    return [action.name for action in offered_actions(cast.now, changed)]


def test_manual_answer_for_a_utility_is_treated_as_stdout(failed):
    assert names(failed) == ["retry", "answer", "pin", "skip"]
    step = failed.reply({"state": {"n": 4}, "context": "counted by hand"})
    assert failed.state["n"] == 4  # R10: the patch of a utility, which an agent's answer would not be
    assert (step.output, step.by_hand, step.number) == (
        '{"state":{"n":4},"context":"counted by hand"}',
        True,
        1,
    )
    assert "A person answered the socket after the failure" in str(failed.why(1))
    assert h.types_of(failed)[-2:] == ["answered_by_hand", "socket_complete"]
    assert h.lines_of(failed)[-1]["data"]["by"] == "person"
    assert failed.run() == "complete"
    h.assert_same(open_cast(failed.run_dir), failed)


def test_invalid_manual_answer_is_not_recorded(failed):
    before = (failed.run_dir / "events.jsonl").read_bytes()
    with pytest.raises(RefusedAnswer):
        failed.reply("no JSON")
    assert failed.status == "failed"
    assert (failed.run_dir / "events.jsonl").read_bytes() == before


def test_retry_of_a_failed_utility_uses_a_new_pin(failed):
    failed.pins.add("Socket-1", {"state": {"n": 5}})
    failed.retry()
    assert failed.state["n"] == 5
    assert failed.run() == "complete"


def test_failed_step_can_be_skipped(failed):
    step = failed.skip("the counter is down")
    assert (step.skipped, step.output, failed.now.next_socket) == ("the counter is down", None, "Socket-2")
    assert "n" not in failed.state
    assert "A person skipped the socket: the counter is down" in str(failed.why(1))
    (event,) = [one for one in h.lines_of(failed) if one["type"] == "socket_skipped"]
    assert (event["data"]["note"], event["data"]["next"]) == ("the counter is down", "Socket-2")
    assert failed.run() == "complete"
    h.assert_same(open_cast(failed.run_dir), failed)


def test_skipping_requires_a_note_and_an_unanswered_socket(failed, tmp_path):
    with pytest.raises(MateriaError, match="note"):
        failed.skip("  ")
    failed.skip("down")
    with pytest.raises(MateriaError, match="not failed"):
        failed.skip("down")
    with pytest.raises(MateriaError, match="it needs no answer"):
        over_budget(tmp_path).skip("too dear")


def over_budget(tmp_path):
    from materia_nb.agents import Reply, Usage

    cast = h.start(tmp_path / "b", h.chain_config(2) | {"budget": {"maxTokens": 5}}, lambda: Reply("x", Usage(5, 5)))
    assert cast.run() == "failed"
    return cast


def test_cast_can_be_retried_after_its_budget_is_raised(tmp_path):
    cast = over_budget(tmp_path)
    assert names(cast) == ["budget"]
    cast.edit.budget(None)
    assert "retry_limit" in names(cast)
    cast.retry(limit=True)
    assert len(cast.steps) == 2


def test_person_can_answer_for_a_failed_agent(tmp_path):
    def breaks():
        raise AgentError("the line is dead", kind="transport")

    cast = h.start(tmp_path, h.loop_config(), {"Plan": breaks})
    assert cast.run() == "failed"
    assert names(cast) == ["retry_turn", "retry", "edit_prompt", "answer", "pin", "skip"]
    step = cast.reply({"workItems": h.items("a")})
    assert step.by_hand
    assert cast.now.work_items == h.items("a")


def test_manual_answer_for_a_failed_agent_with_drafts_is_its_final_result(tmp_path):
    config = h.one_config(h.agent("Tell", multiTurn=True, generator=True), parse="json")

    def breaks():
        raise RuntimeError("gone")

    cast = h.start(tmp_path, config, breaks)
    assert cast.run() == "failed"
    with pytest.raises(RefusedAnswer):
        cast.reply("a draft")
    cast.reply({"workItems": []})
    assert cast.status == "ready"


def test_person_can_answer_after_refused_answers(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), {"Plan": lambda: "prose"})
    assert cast.run() == "failed"
    assert cast.failure.kind == "repair_exhausted"
    assert names(cast) == ["retry_limit", "retry", "answer", "pin", "skip"]
    cast.reply({"workItems": h.items("a")})
    assert [turn.by for turn in cast.steps[-1].turns] == [None, None, "person"]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_exceeded_limit_offers_retry_and_correction(tmp_path):
    config = h.loop_config(limits={"maxNoAdvanceCycles": 1})
    config["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1].pop("maxTraversals")
    agents = {**h.loop_agents(1), "Check": lambda: h.NO}
    cast = h.start(tmp_path, config, agents)
    assert cast.run() == "failed"
    assert cast.failure.kind == "no_advance_cycles_exhausted"
    assert names(cast) == ["retry_limit", "correct", "skip_item"]
    cast.edit.output(h.YES)
    cast.agents.set("Check", lambda: h.YES)
    assert cast.run() == "complete"


def test_person_can_answer_in_an_aborted_cast(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2))
    cast.step()
    cast.abort()
    assert "answer" in names(cast)
    assert cast.reply("mine").by_hand


def test_changed_materia_is_offered_together_with_its_diff(shell):
    bad, good = (h.python(code, parse="json") for code in ("raise SystemExit(3)", "print('{}')"))
    cell(shell, "define loadout L", loadout(bad))
    cast = line(shell, "cast x")
    assert cast.run() == "failed"
    assert changed_definition(cast.now) is None
    output = text(line(shell, "status"))
    offered = "- `retry`\n  - `reply ANSWER`\n  - `pin Socket-1 ANSWER`, then `retry`\n  - `skip NOTE`\n"
    assert f"ways to continue (choose one):\n  {offered}" in output
    cell(shell, "define loadout L", loadout(good))
    changed = changed_definition(cast.now)
    assert changed is not None
    assert ("-", '    "raise SystemExit(3)"') in changed.lines
    assert ("+", "    \"print('{}')\"") in changed.lines
    assert names(cast, changed)[0] == "apply_changes"
    output = text(line(shell, "status"))
    assert "The definition of Count has changed since the cast was started:" in output
    assert f"ways to continue (choose one):\n  - `edit redefine Count`, then `retry`\n  {offered}" in output
    line(shell, "edit redefine Count")
    assert changed_definition(cast.now) is None
    line(shell, "retry")
    assert cast.run() == "complete"


def test_changes_that_would_affect_earlier_steps_are_reported_but_not_offered(shell):
    cell(shell, "define loadout L", loadout(h.python("raise SystemExit(3)", parse="json")))
    cast = line(shell, "cast x")
    assert cast.run() == "failed"
    cell(shell, "define loadout L", loadout(h.python("print(1)", parse="text")))
    changed = changed_definition(cast.now)
    assert changed.fixed_fields == ("parse",)
    assert "apply_changes" not in names(cast, changed)
    assert "(also in parse, so only a new cast can use it)" in text(line(shell, "status"))


def loadout(materia):
    sockets = {"Socket-1": {"materia": "Count"}}
    return json.dumps({"entry": "Socket-1", "sockets": sockets, "materia": {"Count": materia}})


def test_failed_cast_can_be_completed_with_the_repair_verbs(shell):
    cell(shell, "define loadout L", loadout(h.python("raise SystemExit(3)", parse="json")))
    for verb in ('reply {"state": {"n": 1}}', "skip not today"):
        cast = line(shell, "cast x")
        assert cast.run() == "failed"
        line(shell, verb)
        assert cast.run() == "complete"


def test_skipped_step_survives_a_resume(failed):
    failed.skip("down")
    failed.close()
    resumed = resume_cast(failed.run_dir, h.table({"Tell": lambda: "told"}))
    assert resumed.steps[0].skipped == "down"
    assert resumed.run() == "complete"
    forked = resumed.fork(1)
    assert forked.steps[0].skipped == "down"


def test_skipped_item_keeps_its_note_and_the_next_item_begins(tmp_path):
    tries = []

    def build():
        tries.append(1)
        if len(tries) == 2:
            raise AgentError("gone", kind="transport")
        return "built"

    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(3), "Build": build})
    assert cast.run() == "failed"
    assert "skip_item" in names(cast)
    step = cast.skip("nobody needs it", item=True)
    assert (step.skipped, cast.now.item_statuses) == ("nobody needs it", ["done", "skipped", "open"])
    assert "A person skipped the socket: nobody needs it" in str(cast.why(step.number))
    h.assert_same(open_cast(cast.run_dir), cast)
    assert cast.run() == "complete"
    assert [one.item_key for one in cast.steps if one.socket == "Socket-2"] == ["WI-1", "WI-2", "WI-3"]


def test_item_that_reached_the_cycle_limit_can_be_skipped(tmp_path):
    config = h.loop_config(limits={"maxNoAdvanceCycles": 1})
    config["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1].pop("maxTraversals")
    says = iter([h.NO, h.NO, h.YES])
    cast = h.start(tmp_path, config, {**h.loop_agents(2), "Check": lambda: next(says)})
    assert cast.run() == "failed"
    cast.skip("it will not get better", item=True)
    assert cast.run() == "complete"


def test_only_the_current_item_can_be_skipped(failed):
    assert "skip_item" not in names(failed)
    with pytest.raises(MateriaError, match="work item"):
        failed.skip("why not", item=True)
