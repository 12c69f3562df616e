"""Test recordings: a cast is repeated offline from the answers in a file, with the same result."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents.interface import AgentError, CallEvent, NeedsApproval, Reply, ToolCall, Usage, UsageEvent
from materia_nb.cast import open_cast
from materia_nb.cast.exports import RECORDING_FORMAT, agent_from_recording, recording_of
from materia_nb.errors import MateriaError

READ = ToolCall(id="1.1", tool="read", args={"path": "a"}, result="text")


class Model:
    """An agent that repairs its first plan, reads a file before it builds, and sends the first build back once."""

    name = "model"

    def __init__(self):
        self.turns = 0

    def answer(self, turn):
        self.turns += 1
        usage = Usage(10, 5, 0.25)
        if turn.materia_id == "Plan":
            good = json.dumps({"workItems": h.items("a", "b")})
            return Reply(good if turn.kind == "repair" else "no plan", usage, {"model": "m-1"})
        if turn.materia_id == "Build" and not turn.calls:
            turn.report(CallEvent(READ))
        return Reply(h.NO if turn.materia_id == "Check" and turn.visit == 1 else h.YES, usage)


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path)
    bench.load(h.loop_config())
    yield bench
    bench.close()


def compared(cast):
    return [
        (step.socket, step.visit, step.item_key, [(turn.mode, turn.text, turn.calls) for turn in step.turns])
        for step in cast.steps
    ]


def test_recording_reproduces_its_cast(wb, tmp_path):
    first = wb.cast("do it", agents={"*": Model()})
    assert first.run() == "complete"
    path = first.export.recording(tmp_path / "recordings" / "one.json")
    second_cast = wb.cast("do it", agents={"*": f"recorded:{path.relative_to(tmp_path)}"})
    assert second_cast.run() == "complete"
    assert compared(second_cast) == compared(first)
    assert second_cast.state == first.state
    assert second_cast.now.engine.usage[:8] == first.now.engine.usage[:8]
    assert second_cast.steps[0].turns[1].meta == {"model": "m-1", "recorded": True}
    h.assert_same(open_cast(second_cast.run_dir), second_cast)


def test_cast_on_disk_can_be_used_as_a_recording(wb):
    first = wb.cast("do it", agents={"*": Model()})
    first.run()
    second_cast = wb.cast("do it", agents={"*": f"recorded:{first.id}"})
    assert second_cast.run() == "complete"
    assert compared(second_cast) == compared(first)


def test_recording_contains_no_details_about_the_machine(wb, tmp_path):
    first = wb.cast("do it", agents={"*": Model()})
    first.run()
    text = first.export.recording(tmp_path / "one.json").read_text()
    assert str(tmp_path) not in text
    assert first.id not in text
    assert recording_of(first.now)["format"] == RECORDING_FORMAT


def test_recorded_approvals_are_not_requested_again(wb, tmp_path):
    call = ToolCall(id="1.1", tool="bash", args={"command": "make"})

    class Asks(Model):
        def answer(self, turn):
            if turn.materia_id == "Build" and not turn.calls:
                return NeedsApproval((call,))
            if turn.calls and turn.calls[0].result is None:
                done = ToolCall(id="1.1", tool="bash", args=call.args, result="made", decided="once")
                turn.report(CallEvent(done))
            return super().answer(turn)

    first = wb.cast("do it", agents={"*": Asks()})
    while first.run() == "person":
        first.approvals.approve()
    second_cast = wb.cast("do it", agents={"*": f"recorded:{first.id}"})
    assert second_cast.run() == "complete"
    assert compared(second_cast) == compared(first)


class Lines:
    """An agent that gives one line per turn for ten tokens; None makes the turn fail and cost three tokens."""

    name = "lines"

    def __init__(self, *lines):
        self.lines = list(lines)

    def answer(self, turn):
        line = self.lines.pop(0)
        if line is None:
            turn.report(UsageEvent(Usage(2, 1, 0.5)))
            raise AgentError("gone", kind="transport")
        return Reply(line, Usage(10, 0, 0.0))


def said(cast):
    return [(turn.mode, turn.text) for turn in cast.steps[0].turns]


def same_again(cast, tmp_path, *, most=None):
    """Return a new cast that is answered from the recording of ``cast``; ``most`` is its token budget."""
    agent = agent_from_recording(json.loads(json.dumps(recording_of(cast.now))), "recording")
    second_cast = h.start(tmp_path / "again", cast_config(cast), agent)
    if most is not None:
        second_cast.edit.budget(most)
    return second_cast


def cast_config(cast):
    return json.loads((cast.run_dir / "config.resolved.json").read_text())


DONE = '{"context": "done"}'
HANDED_OVER = {"finalize": True, "parse": "json"}


def test_usage_recorded_before_an_answer_is_counted_in_a_replay(tmp_path):
    first = h.start(tmp_path, h.chain_config(2), Lines(None, "one", None, "two"))
    for _ in range(2):
        assert first.run() == "failed"
        first.retry(turn=True)
    assert first.run() == "complete"
    assert first.now.engine.usage[:3] == (24, 2, 1.0)
    repeated = same_again(first, tmp_path)
    assert repeated.run() == "complete"
    assert repeated.now.engine.usage[:8] == first.now.engine.usage[:8]
    assert [[one[:3] for one in turn.spent] for step in repeated.steps for turn in step.turns] == [[(2, 1, 0.5)]] * 2
    over = same_again(first, tmp_path, most=12)
    assert over.run() == "failed"
    assert over.failure.kind == "budget"
    h.assert_same(open_cast(repeated.run_dir), repeated)


def test_replay_uses_only_the_turns_after_a_retry(tmp_path):
    first = h.start(tmp_path, h.one_config(**HANDED_OVER), Lines("work one", None, "work two", DONE))
    assert first.run() == "failed"
    first.retry()
    assert first.run() == "complete"
    repeated = same_again(first, tmp_path)
    assert repeated.run() == "complete"
    assert said(repeated) == [("work", "work two"), ("final", DONE)]
    assert repeated.now.engine.usage[:7] == first.now.engine.usage[:7], "what the turns before cost is counted"
    opened = open_cast(first.run_dir)
    assert recording_of(opened.now) == recording_of(first.now)


def test_drafts_before_a_retry_are_not_the_final_answer(tmp_path):
    first = h.start(tmp_path, h.one_config(h.agent(multiTurn=True)), Lines("a", "b", "c", "THE FINAL"))
    first.run()
    first.abort()
    first.retry()
    first.refine("once more")
    first.accept()
    repeated = same_again(first, tmp_path)
    repeated.run()
    repeated.refine("once more")
    repeated.accept()
    assert said(repeated) == [("draft", "b"), ("draft", "c"), ("final", "THE FINAL")]


def test_replay_of_a_draft_that_is_accepted_early_continues_with_the_final_answer(tmp_path):
    first = h.start(tmp_path, h.one_config(h.agent(multiTurn=True)), Lines("a", "b", "THE FINAL"))
    first.run()
    first.refine("once more")
    first.accept()
    repeated = same_again(first, tmp_path)
    repeated.run()
    repeated.accept()
    assert said(repeated) == [("draft", "a"), ("final", "THE FINAL")]


def test_replayed_cast_can_be_retried(tmp_path):
    first = h.start(tmp_path, h.one_config(h.agent(multiTurn=True)), Lines("a", "b", "c", "THE FINAL"))
    first.run()
    for wish in ("more", "still more"):
        first.refine(wish)
    first.accept()
    repeated = same_again(first, tmp_path)
    repeated.run()
    repeated.abort()
    repeated.retry()
    for wish in ("more", "still more"):
        repeated.refine(wish)
    repeated.accept()
    assert [text for _, text in said(repeated)] == ["a", "a", "b", "c", "THE FINAL"]


def test_repairs_allowed_by_a_retry_are_replayed(tmp_path):
    tries = ["no", "still no", "no again", DONE]
    config = h.one_config(parse="json")
    first = h.start(tmp_path, config, Lines(*tries))

    def go_on(cast):
        cast.run()
        while cast.status == "failed":
            cast.retry(limit=True)
        cast.run()

    go_on(first)
    assert [text for _, text in said(first)] == tries
    repeated = same_again(first, tmp_path)
    go_on(repeated)
    assert said(repeated) == said(first)


def test_recording_omits_the_commands_and_paths_of_agents(tmp_path):
    class Tells(Lines):
        def answer(self, turn):
            told = {"model": "m", "provider": "p", "finish": "stop"}
            return Reply("x", None, {**told, "command": ["--api-key", "sk-1"], "cwd": str(tmp_path)})

    cast = h.start(tmp_path, h.one_config(), Tells())
    cast.run()
    (turn,) = recording_of(cast.now)["turns"]
    assert turn["meta"] == {"model": "m", "provider": "p", "finish": "stop"}


@pytest.mark.parametrize(
    "content, told",
    [
        (None, "The recording cannot be read"),
        ("{", "This is not a recording: it is not JSON"),
        ("[]", "This is not a recording: its format is not"),
        ('{"format": "materia-nb recording 1"}', r"turns\[0\]"),
        ('{"format": "materia-nb recording 1", "turns": [{"text": "x"}]}', "has no socket or visit"),
    ],
)
def test_invalid_recording_is_refused(wb, tmp_path, content, told):
    if content is not None:
        (tmp_path / "one.json").write_text(content)
    with pytest.raises(MateriaError, match=told):
        wb.agent("*", "recorded:one.json")
