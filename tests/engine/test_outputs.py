"""Test that the states of simple steps are recomputed instead of stored, with equal results."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections import Counter
from itertools import pairwise

import pytest

import cast_helpers as h
from builders import Folded, at, config, edge
from materia_nb.cast import open_cast, resume_cast
from materia_nb.engine import decide
from materia_nb.engine import events as ev
from materia_nb.engine.decide import Answer
from materia_nb.engine.evolve import fold
from materia_nb.engine.outputs import MAX_STEPS, PastStates
from materia_nb.engine.state import Usage

TITLES = [f"item {number}" for number in range(MAX_STEPS)]


def answers(turn):
    if turn.socket_id == "Socket-1":
        return json.dumps({"workItems": h.items(*TITLES)})
    return json.dumps({"satisfied": True, "context": f"Number {turn.visit} is done."})


def told(step):
    return step.before, step.after, step.prompt.text, step.prompt.reasons


@pytest.fixture
def long(tmp_path):
    """Return a cast that is longer than the state cache, and a copy of each step taken when it was the latest."""
    cast = h.start(tmp_path, h.loop_config(), answers)
    had = []
    while cast.status != "complete":
        cast.step()
        had.append(told(cast.runner.session.steps[-1]))
    return cast, had[: len(cast.steps)]


def test_states_and_prompts_are_recomputed_from_outputs(long):
    cast, had = long
    steps = cast.runner.session.steps
    assert len(steps) > 2 * MAX_STEPS
    assert all(isinstance(step.states, PastStates) for step in steps[:-1])
    assert [told(step) for step in steps] == had


def kept_of(items):
    """Return the memory, in bytes, kept by a cast whose handoff has nine thousand characters for each item."""
    cast = Folded(h.loop_config())
    gc.collect()
    tracemalloc.start()
    cast.answers({"workItems": h.items(*map(str, range(items)))})
    for number in range(items):
        cast.answers("built", {"satisfied": True, "context": f"{number:9000}"})
        cast.events.clear()
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(cast.state.data["context"]) > 9000 * items
    return kept


def test_states_share_the_list_of_handoffs():
    assert kept_of(320) < 2.5 * kept_of(160)


def read_of(tmp_path, count):
    """Return a reopened cast with large handoffs and a missing plan, and the memory that it keeps, in bytes."""

    def handing_on(turn):
        if turn.socket_id == "Socket-1":
            return " " * 70_000 + json.dumps({"workItems": h.items(*map(str, range(count)))})
        return json.dumps({"satisfied": True, "context": f"{turn.visit:9000}"})

    cast = h.start(tmp_path, h.loop_config(), handing_on)
    cast.run()
    cast.close()
    (cast.run_dir / "sockets/Socket-1/1.md").unlink()
    gc.collect()
    tracemalloc.start()
    opened = open_cast(cast.run_dir)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert opened.route == cast.route
    return opened, kept


def test_memory_for_handoffs_grows_linearly_even_if_an_output_is_missing(tmp_path):
    short, kept = read_of(tmp_path / "short", 40)
    opened, kept_of_more = read_of(tmp_path / "long", 80)
    assert kept_of_more < 2.8 * kept
    steps = opened.runner.session.steps
    for step in (*steps[3:40], *short.runner.session.steps[3:40]):
        done = (step.number - 1) // 2
        assert len(step.after.handoffs.entries) == done
        assert step.after.data["context"] == step.after.handoffs.text
    for step, later in pairwise(steps[3:40]):
        assert step.after == later.before


def test_reading_a_state_recomputes_a_limited_number_of_steps(long):
    cast, _ = long
    found = [step.states for step in cast.runner.session.steps if isinstance(step.states, PastStates)]
    runs = Counter(id(states) for states in found)
    assert max(runs.values()) == MAX_STEPS
    assert len(runs) == -(-len(found) // MAX_STEPS)


def test_states_after_different_answers_in_the_same_step_are_stored_separately():
    cast = Folded(config({"A": at("P", edge("B")), "B": at("P", edge("C")), "C": at("P")})).answers("a")
    start = cast.session
    lines = []
    for answer in ("b", "c", "b"):
        cast.session = start
        lines.append(cast.answers(answer).session.steps)
    assert [line[1].after.last_output for line in lines] == ["b", "c", "b"]
    assert lines[0][1].states is lines[0][0].states
    assert lines[1][1].states is not lines[0][1].states
    assert [line[0].after for line in lines] == [start.state] * 3


def test_states_can_be_read_in_any_order(long):
    cast, had = long
    cast.close()
    steps = resume_cast(cast.run_dir).runner.session.steps
    for number in (MAX_STEPS + 3, 1, 2 * MAX_STEPS, MAX_STEPS - 1, MAX_STEPS):
        assert told(steps[number]) == had[number]


def test_another_branch_can_continue_from_a_state_that_was_not_stored(long):
    cast, had = long
    cast.back(MAX_STEPS + 5)
    used = cast.now.usage  # what was used stays used (R20)
    assert cast.now.engine == had[MAX_STEPS + 4][1]._replace(usage=used)
    cast.step()
    cast.step()
    assert [told(step) for step in cast.runner.session.steps[:-2]] == had[: MAX_STEPS + 5]
    assert [told(step) for step in cast.now.abandoned[0]] == had[MAX_STEPS + 5 :]


@pytest.mark.parametrize(
    "touch",
    [
        lambda cast: cast.edit.set("note", "mine"),
        lambda cast: cast.edit.budget(10_000),
        lambda cast: cast.approvals.allow("bash") or cast.edit.set("note", 1) or cast.edit.undo(),
    ],
    ids=["edit", "budget", "undo"],
)
def test_edit_made_while_a_socket_waits_is_included_in_its_state(tmp_path, touch):
    cast = h.start(tmp_path, h.loop_config(), answers)
    cast.step()
    cast.step(ask=False)
    touch(cast)
    cast.step()
    kept = told(cast.runner.session.steps[-1])
    cast.step()
    cast.step()
    assert told(cast.runner.session.steps[1]) == kept
    assert kept[0] == cast.runner.session.steps[0].after


def test_usage_reported_before_an_answer_is_kept():
    chain = config({name: at("P", edge(after)) for name, after in zip("ABC", "BCA", strict=True)})
    cast = Folded(chain).do(decide.enter).do(decide.record_in_turn, ev.TurnSpent(usage=Usage(7, 7, 0.5))).answers("a")
    kept = cast.state
    cast.answers("b", "c")
    assert (cast.session.steps[0].after, kept.usage.cost) == (kept, 0.6)


def test_two_alternative_answers_lead_to_separate_states(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), answers)
    cast.run(steps=3)
    rules, session = cast.runner.rules, cast.runner.session
    asked = fold(rules, session, decide.enter(rules, session, 0))
    lines, had = [asked, asked], [[], []]
    for text in (h.YES, h.NO), (h.NO, h.YES), (h.YES, h.YES):
        for place, said in enumerate(text):
            answered = fold(rules, lines[place], decide.answer(rules, lines[place], Answer(said), 0))
            had[place].append(told(answered.steps[-1]))
            lines[place] = fold(rules, answered, decide.enter(rules, answered, 0))
    for line, kept in zip(lines, had, strict=True):
        assert [told(step) for step in line.steps[3:-1]] == kept
    assert had[0] != had[1]
    assert [told(step) for step in lines[0].steps[:3]] == [told(step) for step in session.steps]
