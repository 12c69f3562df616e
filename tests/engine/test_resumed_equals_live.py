"""Test that a cast resumed from any prefix of its journal equals the live cast in every field."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents.interface import CallEvent, NeedsApproval, NoteEvent, Reply, ToolCall, Usage, UsageEvent
from materia_nb.cast import open_cast, resume_cast
from materia_nb.engine.events import Output, OutputEdited, from_json
from materia_nb.engine.evolve import evolve
from materia_nb.errors import MateriaError
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.store.catalogue import list_casts
from materia_nb.store.journal import read_journal
from materia_nb.store.reader import read_session
from protocol_helpers import ASK, block, contract, envelope

EXAMPLES = int(os.environ.get("MATERIA_EXAMPLES", "60"))

OUTPUTS = (
    h.YES,
    h.NO,
    json.dumps({"workItems": h.items("a", "b", "c")}),
    '{"workItems": []}',
    '{"context": "ü 🜁"}',
    "not json",
    "x" * 70_000,
    block(contract()),
    block(contract(agent_status__plan_status="NEEDS_INPUT", agent_status__next_action="which one?")),
    block(contract(agent_status__plan_status="APPROVAL_REQUEST", approval_request=ASK)),
    block(contract(agent_status__plan_status="IN_PROGRESS")),
    json.dumps(envelope()),
    json.dumps(envelope(status="BLOCKED", routing__recommendation="ESCALATE")),
)


def document(protocol: str, assign: h.Json | None = None) -> h.Json:
    """Return a loadout with a planner, a loop of worker and checker, a multi-turn end, and a socket of another
    protocol.

    ``assign`` is the assignment of the checker. A target without segments fails the cast after the output of the
    checker (R54).
    """
    config = h.loop_config(limits={"maxNoAdvanceCycles": 1, "repairAttempts": 1})
    sockets = config["loadouts"]["T"]["sockets"]
    sockets["Socket-2"]["finalize"] = True
    sockets["Socket-3"]["assign"] = assign or {}
    sockets["Socket-4"]["edges"] = [{"when": "always", "to": "Socket-5"}]
    sockets["Socket-5"] = h.at(
        "Judge", ("not_satisfied", "Socket-1"), ("failed", "Socket-4"), parse="json", handoff=protocol
    )
    config["materia"] |= {"Tell": h.agent("Tell", multiTurn=True), "Judge": h.agent("Judge")}
    return config


class Anybody:
    """An agent that gives the answer chosen by the test, uses a tool that asks for approval, or fails."""

    name = "anybody"

    def __init__(self) -> None:
        self.text, self.how = "", "answer"

    def answer(self, turn):
        if self.how == "person":
            return None
        if self.how in {"tool", "fail"} and not turn.calls:
            turn.report(NoteEvent("trying again"))
            turn.report(CallEvent(ToolCall(id="1", tool="read", args={"path": "a"}, result="text")))
            turn.report(UsageEvent(Usage(3, 1)))
        if self.how == "fail":
            raise RuntimeError("gone")
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "tool" and "bash" not in turn.allowed and not any(call.decided for call in turn.calls):
            return NeedsApproval((ToolCall(id="2", tool="bash", args={"command": "make"}),))
        return Reply(self.text, Usage(1, 2, 0.5), {"n": 1})


COMMANDS = {
    "step": lambda cast, n: cast.step(),
    "enter": lambda cast, n: cast.step(ask=False),
    "run": lambda cast, n: cast.run(steps=3),
    "reply": lambda cast, n: cast.reply(OUTPUTS[n % len(OUTPUTS)]),
    "refine": lambda cast, n: cast.refine(f"change {n}"),
    "finalize": lambda cast, n: cast.accept(),
    "items": lambda cast, n: cast.edit.items(h.items(*"abcd"[n % 5 :])),
    "again": lambda cast, n: cast.edit.again(n % 3 + 1),
    "abandon": lambda cast, n: cast.edit.abandon(),
    "move": lambda cast, n: cast.edit.items(cast.now.work_items[::-1], abandon=n % 2 == 0),
    "state": lambda cast, n: cast.edit.state({**cast.state, f"k{n % 3}": [n]}),
    "value": lambda cast, n: cast.edit.set("plan.n", n),
    "prompt": lambda cast, n: cast.edit.prompt(("task", "place", "request")[n % 3], f"words {n}"),
    "output": lambda cast, n: cast.edit.output(OUTPUTS[n % len(OUTPUTS)]),
    "undo": lambda cast, n: cast.edit.undo(),
    "back": lambda cast, n: cast.back(n % (len(cast.steps) + 1)),
    "abort": lambda cast, n: cast.abort("" if n % 2 else "enough"),
    "retry": lambda cast, n: cast.retry(),
    "raise_limit": lambda cast, n: cast.retry(limit=True),
    "retry_turn": lambda cast, n: cast.retry(turn=True),
    "skip": lambda cast, n: cast.skip("not now", item=bool(n % 3 == 0)),
    "by hand": lambda cast, n: cast.reply(OUTPUTS[n % len(OUTPUTS)]) if cast.failure else None,
    "approve calls": lambda cast, n: cast.approvals.approve(always=bool(n % 2)),
    "deny calls": lambda cast, n: cast.approvals.deny("no"),
    "allow": lambda cast, n: cast.approvals.allow("bash") if n % 2 else cast.approvals.disallow(),
    "answer": lambda cast, n: cast.approvals.answer("the second one"),
    "approve": lambda cast, n: cast.approvals.approve(),
    "deny": lambda cast, n: cast.approvals.deny("not now"),
    "decide": lambda cast, n: cast.approvals.decide(satisfied=bool(n % 2), target=(None, "Socket-2", "end")[n % 3]),
    "budget": lambda cast, n: cast.edit.budget(n * 3 if n % 4 else None),
    "label": lambda cast, n: cast.labels.add(
        n % 4 or None,
        name=f"n{n}" if n % 3 else "",
        tag=f"t{n % 2}",
        untag="t0" if n % 5 else (),
        note="ü" * (n % 2),
        by="Ana",
    ),
    "unlabel": lambda cast, n: cast.labels.undo(),
}
COMMAND = st.tuples(
    st.sampled_from(["step", "step", "step", "run", *COMMANDS]),
    st.integers(0, 40),
    st.sampled_from(OUTPUTS),
    st.sampled_from(["answer"] * 4 + ["person", "tool", "fail", "interrupt"]),
)


@given(
    protocol=st.sampled_from(list(OWN_PROTOCOLS)),
    assign=st.sampled_from([{}, {}, {"seen": "$.context", "..": "$"}]),
    commands=st.lists(COMMAND, min_size=2, max_size=30),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_journal_of_any_sequence_of_commands_rebuilds_the_session(protocol, assign, commands):
    agent = Anybody()
    with tempfile.TemporaryDirectory() as folder:
        cast = h.watched(Path(folder), document(protocol, assign), agent)
        for name, number, agent.text, agent.how in commands:
            with contextlib.suppress(MateriaError, KeyboardInterrupt):
                COMMANDS[name](cast, number)
        cast.close()
        assert_found_again(session for _, session in cast.seen)
        lines = read_journal(cast.run_dir / "events.jsonl").lines
        folded = list(folds(cast, lines))
        for count, session in dict(cast.seen).items():
            read = read_session(cast.runner.rules, lines[:count], lambda name: (cast.run_dir / name).read_text())
            assert read.session == folded[count - 1] == session, (count, lines[count - 1].type)
            assert (read.messages, read.differences) == ([], [])
        (entry,) = list_casts(cast.run_dir.parent)
        assert (entry.status, entry.steps) == (cast.status, len(cast.steps))
        said = cast.labels.of()
        assert (entry.name, entry.tags, entry.note) == (said.name, said.tags, said.note)
        resumed = resume_cast(cast.run_dir)
        assert resumed.runner.session == cast.runner.session
        resumed.close()


def folds(cast, lines):
    """Yield the session after each line of a journal, computed only by folding events."""
    session = None
    for line in lines:
        event = from_json(line.type, line.data, line.ts)
        if isinstance(event, (Output, OutputEdited)) and event.text is None:
            event = event.replace(text=(cast.run_dir / event.artifact).read_text())
        session = evolve(cast.runner.rules, session, event)
        yield session


def assert_found_again(sessions):
    """Assert that earlier steps still have the states and prompts that they had when they were the latest."""
    had = {}
    for session in sessions:
        for step in session.steps[:-1]:
            asked = step.prompt.text if step.prompt else None
            assert had[step.branch, step.number] == (step.before, step.after, asked)
        if session.steps:
            latest = session.steps[-1]
            asked = latest.prompt.text if latest.prompt else None
            had[latest.branch, latest.number] = (latest.before, latest.after, asked)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_succeeds_in_at_least_one_random_session(name, tmp_path):
    """The property would be vacuous for a command that is always refused."""
    begun_item = [("step", 0, OUTPUTS[2], "answer"), ("enter", 0, "", "answer")]
    ways = {
        "reply": ([("enter", 0, "", "answer")], 2),
        "refine": "draft", "finalize": "draft", "items": "loop", "prompt": ([("enter", 0, "", "answer")], 0),
        "output": ([("step", 0, OUTPUTS[2], "answer")], 3), "undo": "edited", "back": "loop",
        "retry": "failed", "raise_limit": "failed", "retry_turn": "failed", "skip": "failed",
        "by hand": ([("step", 0, "", "fail")], 2), "approve calls": "asks", "deny calls": "asks",
        "answer": "asked", "approve": "consent", "deny": "consent", "decide": "asked",
        "abandon": (begun_item, 0), "again": ([*begun_item, ("abandon", 0, "", "answer")], 0),
        "unlabel": "labelled",
    }  # fmt: skip
    plan = [("step", 0, OUTPUTS[2], "answer")]
    begun = {
        "loop": plan,
        "edited": [*plan, ("value", 1, "", "answer")],
        "failed": [("step", 0, "", "fail")],
        "labelled": [("label", 4, "", "answer")],
        "asks": [("step", 0, "", "tool")],
        "draft": [("step", 0, '{"workItems": []}', "answer"), ("items", 5, "", "answer")],
    }
    how = ways.get(name, "loop")
    before, number = how if isinstance(how, tuple) else (begun.get(how, plan), 1)
    agent = Anybody()
    config = document("agent-contract")
    if how in ("draft", "asked", "consent"):
        config["loadouts"]["T"]["entry"] = "Socket-4" if how == "draft" else "Socket-5"
        text = {"draft": "a draft", "asked": OUTPUTS[8], "consent": OUTPUTS[9]}[how]
        before = [("step", 0, text, "answer")]
    cast = h.start(tmp_path, config, agent)
    for command, n, agent.text, agent.how in before:
        COMMANDS[command](cast, n)
    agent.text, agent.how = OUTPUTS[2], "answer"
    session = cast.runner.session
    COMMANDS[name](cast, number)
    assert cast.runner.session != session
    h.assert_same(open_cast(cast.run_dir), cast)


# -- what was kept in more than one place before ----------------------------------------------


def test_scripted_answers_are_the_same_after_going_back_and_after_a_resume(tmp_path):
    script = {"Socket-1": ["one", "two"], "Socket-2": "x"}
    cast = h.start(tmp_path, h.chain_config(2))
    cast.agents.default = script
    cast.step()
    cast.back(0)
    cast.close()
    resumed = resume_cast(cast.run_dir)
    resumed.agents.default = script
    assert resumed.runner.session.turns == cast.runner.session.turns
    assert resumed.step().output == "one"


def test_approval_survives_a_restart_until_it_is_used(tmp_path):
    config = document("agent-contract")
    config["loadouts"]["T"]["entry"] = "Socket-5"
    cast = h.start(tmp_path, config, lambda: OUTPUTS[9])
    cast.step()
    cast.agents.set("Judge", "person")
    cast.approvals.approve()
    granted = cast.approvals.current
    cast.close()
    seen = []
    resumed = resume_cast(cast.run_dir, h.table({"Judge": lambda turn: seen.append(turn) or OUTPUTS[7]}))
    resumed.step()
    assert granted is not None
    assert seen[0].approval == granted
    assert resumed.approvals.current is None


def test_snapshot_of_an_earlier_step_does_not_change_when_the_cast_continues(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2))
    cast.step()
    past = cast.at(1)
    assert (past.status, past.steps[0].output) == ("waiting", None)
    cast.reply("an answer")
    assert (past.status, past.steps[0].output) == ("waiting", None)
    assert cast.at(1).steps[0].output == "an answer"


@pytest.mark.parametrize("go_back", [lambda cast: cast.back(1), lambda cast: cast.edit.output("corrected")])
@pytest.mark.parametrize("fails", [False, True])
def test_cast_list_shows_the_latest_action_by_a_person(tmp_path, go_back, fails):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "x")
    cast.run(steps=2)
    if fails:
        cast.abort()
        go_back(cast) if cast.status != "aborted" else cast.back(1)
    else:
        cast.run()
        go_back(cast)
    (cast.run_dir / "manifest.json").unlink()
    (entry,) = list_casts(cast.run_dir.parent)
    assert (entry.status, entry.steps) == (cast.status, len(cast.steps))
