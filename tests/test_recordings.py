"""Recordings: a cast is answered again from a file, offline and the same way."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents.base import Asking, Called, Reply, ToolCall, Usage
from materia_nb.cast import Cast
from materia_nb.errors import MateriaError
from materia_nb.recordings import FORMAT, recording_of

READ = ToolCall(id="1.1", tool="read", args={"path": "a"}, result="text")


class Model:
    """Repairs its first plan, reads before it builds, and sends the first build back once."""

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
            turn.tell(Called(READ))
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


def test_a_recording_answers_a_cast_as_it_was(wb, tmp_path):
    first = wb.cast("do it", agents={"*": Model()})
    assert first.run() == "complete"
    path = first.save_recording(tmp_path / "recordings" / "one.json")
    again = wb.cast("do it", agents={"*": f"recorded:{path.relative_to(tmp_path)}"})
    assert again.run() == "complete"
    assert compared(again) == compared(first)
    assert again.state == first.state
    assert again.now.usage == first.now.usage
    assert again.steps[0].turns[1].meta == {"model": "m-1", "recorded": True}
    h.assert_same(Cast.open(again.run_dir), again)


def test_a_cast_on_disk_is_a_recording_too(wb):
    first = wb.cast("do it", agents={"*": Model()})
    first.run()
    again = wb.cast("do it", agents={"*": f"recorded:{first.id}"})
    assert again.run() == "complete"
    assert compared(again) == compared(first)


def test_a_recording_tells_nothing_of_the_machine(wb, tmp_path):
    first = wb.cast("do it", agents={"*": Model()})
    first.run()
    text = first.save_recording(tmp_path / "one.json").read_text()
    assert str(tmp_path) not in text
    assert first.id not in text
    assert recording_of(first)["format"] == FORMAT


def test_calls_that_were_allowed_then_are_not_asked_for_again(wb, tmp_path):
    call = ToolCall(id="1.1", tool="bash", args={"command": "make"})

    class Asks(Model):
        def answer(self, turn):
            if turn.materia_id == "Build" and not turn.calls:
                return Asking((call,))
            if turn.calls and turn.calls[0].result is None:
                done = ToolCall(id="1.1", tool="bash", args=call.args, result="made", decided="once")
                turn.tell(Called(done))
            return super().answer(turn)

    first = wb.cast("do it", agents={"*": Asks()})
    while first.run() == "person":
        first.permit()
    again = wb.cast("do it", agents={"*": f"recorded:{first.id}"})
    assert again.run() == "complete"
    assert compared(again) == compared(first)


@pytest.mark.parametrize(
    "content, told",
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "format"),
        ('{"format": "materia-nb recording 1"}', r"turns\[0\]"),
        ('{"format": "materia-nb recording 1", "turns": [{"text": "x"}]}', "which visit"),
    ],
)
def test_what_is_no_recording_is_refused(wb, tmp_path, content, told):
    if content is not None:
        (tmp_path / "one.json").write_text(content)
    with pytest.raises(MateriaError, match=told):
        wb.agent("*", "recorded:one.json")
