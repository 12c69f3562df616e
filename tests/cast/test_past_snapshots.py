"""Test snapshots of a cast as it was after an earlier step, on the current branch or on an abandoned one."""

from __future__ import annotations

import pytest

from materia_nb.cast.views.status import overlay_of, status_lines
from materia_nb.errors import MateriaError


def sockets(steps):
    return [(step.number, step.socket, step.item_key) for step in steps]


def test_snapshot_of_a_past_step_equals_the_cast_at_that_time(cast):
    seen = [
        (
            cast.now.engine,
            overlay_of(cast.now),
            status_lines(cast.now),
            cast.why().title if cast.steps else None,
        )
    ]
    while cast.status != "complete":
        cast.step()
        seen.append((cast.now.engine, overlay_of(cast.now), status_lines(cast.now), cast.why().title))
    for number in range(len(cast.steps)):
        state, marks, lines, why = seen[number]
        past = cast.at(number)
        assert past.engine == state
        assert overlay_of(past) == marks
        assert marks.outputs.keys() == {step.socket for step in cast.steps[:number]}
        assert status_lines(past) == lines
        assert not past.writable
        if number:
            assert past.why().title == why
    assert cast.now.loop_progress != cast.at(1).loop_progress


def test_abandoned_branch_includes_the_steps_shared_with_the_current_branch(cast):
    cast.run(steps=4)
    first = sockets(cast.now.line())
    cast.back(2)
    cast.run(steps=3)
    second = sockets(cast.now.line())
    cast.back(1)
    cast.edit.items([{"title": "other", "context": "now"}])
    cast.run(steps=1)
    assert sockets(cast.now.line(0)) == first
    assert sockets(cast.now.line(1)) == second
    assert sockets(cast.now.line()) == [first[0], (2, "Socket-2", "WI-1")]
    left = cast.at(4, branch=0)
    assert left.steps[-1] is cast.now.abandoned[0][-1]
    assert [item["title"] for item in left.work_items] == ["a", "b", "c"]


def test_snapshot_of_a_missing_step_is_refused(cast):
    cast.run(steps=2)
    with pytest.raises(MateriaError, match="no step 3"):
        cast.at(3)
    with pytest.raises(MateriaError, match="Branch 0 does not exist"):
        cast.at(1, branch=0)


def test_conversation_of_a_past_step_is_available(bench, cast):
    cast.run(steps=2)
    said = [message.role for message in cast.at(2).conversation]
    assert said == ["user", "assistant"]


def test_snapshot_does_not_change_when_the_cast_continues(cast):
    cast.breakpoints.add("Socket-2")
    then = cast.now
    assert (then.status, len(then.steps), len(then.breakpoints)) == ("ready", 0, 1)
    cast.step()
    cast.breakpoints.clear()
    assert (then.status, len(then.steps), len(then.breakpoints)) == ("ready", 0, 1)
    assert (len(cast.now.steps), len(cast.now.breakpoints)) == (1, 0)
    assert not hasattr(then.breakpoints, "add")
