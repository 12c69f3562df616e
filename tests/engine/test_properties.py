"""Test properties of random loadouts and answers: transitions are pure, bounded and consistent with decisions."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from drawn_loadouts import ROWS, answer, loadouts, rules_of
from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.state import Failure, Usage
from materia_nb.errors import MateriaError
from materia_nb.insight.why import explain
from materia_nb.loadout.graph import END


def most_steps(graph):
    """Return an upper bound on the steps of a cast without retries.

    Outside items, every edge is counted. Each completed plan yields at most ROWS new items, and a foreach has ROWS
    items in total. Within one item, each counted cycle uses one of ``max_no_advance_cycles``. Each use of a limited
    edge exempts at most one cycle per socket from counting. A cycle is at most as long as the number of sockets.
    """
    every = [e for socket in graph.sockets.values() for e in socket.edges]
    outside = sum(max(graph.limits.max_edge_traversals, e.max_traversals or 0) + 1 for e in every)
    bounded = sum(e.max_traversals + 1 for e in every if e.max_traversals)
    size = len(graph.sockets)
    lives = ROWS * (outside + 2) + ROWS * size
    each = size * (graph.limits.max_no_advance_cycles + 2 + size * (bounded + outside + 1))
    return outside + 2 + lives * each


def transition(rng, rules, state, prompt):
    """Return the next transition of a cast as a function that can be called twice."""
    if state.status == "ready":
        return lambda: entering.enter(rules, state)
    visit = state.at
    if state.status == "waiting":
        if visit.mode == "draft" and visit.drafts:
            return lambda: outputs.finalize(rules, state, prompt)
        awaited = rules.sockets[visit.socket].routes_failures
        if rng.random() < (0.2 if awaited else 0.005):
            return lambda: recovery.fail(rules, state, Failure("outside", "it broke", visit.socket))
        text = answer(rng, rules.sockets[visit.socket])
        usage = Usage(rng.randint(0, 9), 1) if rng.random() < 0.5 else None
        return lambda: outputs.output(rules, state, text, usage, prompt)
    if state.failure.kind == "budget":
        more = recovery.set_budget(state, max_tokens=state.usage.tokens + rng.randint(1, 50))
        return lambda: recovery.raise_limit(rules, more)
    again = rng.choice([recovery.retry, recovery.raise_limit])
    return lambda: again(rules, state)


def run(rules, seed, revivals=0, *, twice=False):
    """Run a cast to its end and yield each (state before, step); if ``twice`` is set, compute each step twice."""
    rng = random.Random(f"{seed} {rules.graph}")
    state, prompt = entering.begin(rules, "r"), None
    while state.status != "complete":
        if state.status == "failed":
            if not revivals:
                return
            revivals -= 1
        make = transition(rng, rules, state, prompt)
        before = repr(state) if twice else ""
        step = make()
        if twice:
            assert repr(state) == before, "a transition changed the state that it was given"
            assert make() == step, "the same inputs gave something else"
        yield state, step
        state, prompt = step.state, step.prompt or prompt


seeds = st.integers(0, 2**32)


def casts(rules, seed, revivals=0):
    """Run several casts of one loadout, because generating a loadout takes longer than running it."""
    return [run(rules, f"{seed} {lap}", revivals) for lap in range(5)]


@given(loadouts(), seeds)
def test_session_transitions_have_no_side_effects(document, seed):
    for _ in run(rules_of(document), seed, revivals=2, twice=True):
        pass


@given(loadouts(), seeds)
def test_r18_every_cast_ends(document, seed):
    rules = rules_of(document)
    limit = most_steps(rules.graph)
    for cast in casts(rules, seed):
        for _, step in cast:
            assert step.state.steps <= limit
        event(step.state.failure.kind if step.state.failure else step.state.status)


@given(loadouts(), seeds)
def test_counts_and_routes_agree_with_the_recorded_decisions(document, seed):
    rules = rules_of(document)
    for cast in casts(rules, seed, revivals=3):
        counts_agree(cast)


def counts_agree(cast):
    visited, travelled, decided = Counter(), Counter(), None
    for before, step in cast:
        after = step.state
        if before.status == "ready" and after.status != "failed":
            passed = step.decision.skipped_sockets if step.decision else ()
            entered = after.at.socket if after.status == "waiting" else "end"
            if decided is not None and before.next == decided.target:
                assert (passed[0] if passed else entered) == decided.target
            assert len(set(passed)) == len(passed)
        if before.status == "ready" and after.status == "waiting":
            visited[after.at.socket] += 1
        decision = step.decision
        if decision and before.status != "ready":
            decided = decision
            chosen = decision.chosen
            if chosen and chosen.kind == "edge":
                travelled[f"{decision.socket}->{chosen.to}"] += 1
            if chosen and decision.by in {"edge", "exit"}:
                assert chosen.to == decision.target == after.next
        assert dict(after.visits) == visited
        assert sum(visited.values()) == after.steps
        assert dict(after.traversals) == travelled


@given(loadouts(), seeds)
def test_every_step_can_be_explained(document, seed):
    rules = rules_of(document)
    entry = None
    for before, step in run(rules, seed, revivals=2):
        if before.status == "ready":
            entry = step.decision
        told = explain(rules, "title", step.decision, step.state, entry)
        assert len(told.lines) >= 1
        decision = step.decision
        if decision and decision.target and decision.by not in {"draft", "failure"}:
            assert {**rules.graph.names, END: END}[decision.target] in str(told)
        if decision and decision.failure:
            assert decision.failure.message in str(told)


@given(loadouts(), seeds)
def test_session_data_does_not_grow_with_the_length_of_the_cast(document, seed):
    """Only current items are tracked, and the number of follow-ups is limited by items and targets."""
    rules = rules_of(document)
    for _, step in chain(*casts(rules, seed)):
        state = step.state
        assert len(state.items) <= len(state.cursors)
        if state.pending_route is None:  # a budget that stops the cast leaves the books open until the budget is raised
            assert all(index >= state.cursors[cursor] or index == 0 for cursor, index, _ in state.items)
        per = Counter((entry.item, entry.target) for entry in state.rework_reasons)
        assert all(count <= 5 for count in per.values())
        if step.prompt:
            assert sum(map(len, step.prompt.reasons)) <= 2400


@given(loadouts(), seeds, st.integers(0, 40))
def test_cast_can_continue_after_an_abort_at_any_step(document, seed, when):
    rules = rules_of(document)
    for number, (before, _) in enumerate(run(rules, seed)):
        if number == when and before.status in {"ready", "waiting"}:
            stopped = recovery.abort(before, "enough").state
            again = recovery.raise_limit(rules, stopped).state
            assert (again.status, again.next, again.data) == (before.status, before.next, before.data)
            return


@given(loadouts(), st.sampled_from(["complete", "failed", "aborted", "waiting", "ready"]))
def test_invalid_transition_raises_one_clear_error(document, status):
    rules = rules_of(document)
    state = entering.begin(rules, "r")._replace(status=status)
    fitting = {"ready": {"enter"}, "failed": {"retry", "raise_limit"}, "aborted": {"retry", "raise_limit"}}.get(
        status, set()
    )
    calls = {
        "enter": lambda: entering.enter(rules, state),
        "output": lambda: outputs.output(rules, state, "x"),
        "fail": lambda: recovery.fail(rules, state, Failure("k", "m")),
        "retry": lambda: recovery.retry(rules, state),
        "raise_limit": lambda: recovery.raise_limit(rules, state),
    }
    for name, call in calls.items():
        if name not in fitting:
            with pytest.raises(MateriaError):
                call()
        else:
            assert call().state is not None
