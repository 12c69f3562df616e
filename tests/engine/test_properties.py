"""Whatever the loadout and whatever is answered: pure, bounded, and true to its decisions."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import chain

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from builders import asks, at, config, edge, exit_route, utility
from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import Failure, Usage
from materia_nb.errors import MateriaError
from materia_nb.insight.why import explain
from materia_nb.loadout import LoadoutError, build_graph

ROWS = 3
"""The longest list that an answer gives."""

CONDITIONS = ["satisfied", "not_satisfied", "always"]
most = st.none() | st.integers(1, 3)


@st.composite
def edges(draw, targets):
    """Edges in an order that is allowed: nothing behind an always edge."""
    whens = draw(st.lists(st.sampled_from(CONDITIONS[:2]), max_size=2))
    whens += draw(st.sampled_from([["always"], ["always"], []]))
    return [edge(draw(st.sampled_from(targets)), when, draw(most)) for when in whens]


@st.composite
def loadouts(draw):
    """A plan, a loop over its items (a ring and random edges), sockets outside, a foreach, random exits."""
    members = [f"In{n}" for n in range(draw(st.integers(1, 3)))]
    outside = [f"Out{n}" for n in range(draw(st.integers(1, 3)))]
    everywhere = [*members, "Plan", *outside, *members, *outside, "end"]
    sockets = {
        "Plan": at("UG" if draw(st.booleans()) else "G", edge(members[0], most=draw(most)), parse="json")
    }
    for name, following in zip(members, [*members[1:], members[0]], strict=True):
        extra = [e for e in draw(edges([*members, *outside])) if e["when"] != "always"]
        sockets[name] = asks(*extra, edge(following, most=draw(most)), materia=draw(st.sampled_from("PPUM")))
    for name in outside:
        materia = draw(st.sampled_from(["P", "P", "U", "T", "M"]))
        sockets[name] = at(materia, *draw(edges(everywhere)), parse=draw(st.sampled_from(["json", "text"])))
        if draw(st.booleans()):
            sockets[name]["assign"] = draw(
                st.dictionaries(
                    st.sampled_from(["a", "a.b", "rows"]),
                    st.sampled_from(["state", "item", "$", "lastOutput"]),
                )
            )
    if draw(st.booleans()):
        name = draw(st.sampled_from(outside))
        sockets[name]["foreach"] = {
            "items": "state.rows",
            "as": draw(st.sampled_from(["item", "a.row", "workItem"])),
        }
        if draw(st.booleans()):
            sockets[name]["advance"] = {"when": draw(st.sampled_from(CONDITIONS))}
    routes = draw(
        st.lists(
            st.tuples(st.sampled_from(members), st.sampled_from(CONDITIONS)),
            unique=True,
            min_size=draw(st.sampled_from([1, 1, 0])),
            max_size=3,
        )
    )
    exits = [exit_route(source, when, draw(st.sampled_from(everywhere))) for source, when in routes]
    loops = {"L": {"sockets": members, "consumes": {"from": "Plan"}, "exits": exits}}
    limits = {
        "maxEdgeTraversals": draw(st.sampled_from([5, 1, 2, 3, 8])),
        "maxNoAdvanceCycles": draw(st.integers(1, 3)),
        "repairAttempts": draw(st.integers(0, 2)),
    }
    budget = {"maxTokens": draw(st.integers(0, 200))} if draw(st.integers(0, 9)) == 7 else {}
    entry = draw(st.sampled_from(["Plan", "Plan", "Plan", outside[0]]))
    return config(sockets, loops, entry=entry, materia={"U": utility()}, limits=limits, budget=budget)


def rules_of(document):
    try:
        return Rules(build_graph(document))
    except LoadoutError:
        assume(False)


def most_steps(graph):
    """How many steps a cast can take when nobody revives it, generously.

    Outside items every edge is counted. Each time the plan completes there are at most
    ROWS new items; a foreach has ROWS in all. Within one item, each counted cycle is one
    of ``max_no_advance_cycles``, and one use of a bounded edge excuses at most one cycle
    a socket; a cycle is at most all sockets long.
    """
    every = [e for socket in graph.sockets.values() for e in socket.edges]
    outside = sum(max(graph.limits.max_edge_traversals, e.max_traversals or 0) + 1 for e in every)
    bounded = sum(e.max_traversals + 1 for e in every if e.max_traversals)
    size = len(graph.sockets)
    lives = ROWS * (outside + 2) + ROWS * size
    each = size * (graph.limits.max_no_advance_cycles + 2 + size * (bounded + outside + 1))
    return outside + 2 + lives * each


def answer(rng, here):
    """Something a socket might say: mostly fit for it, now and then not."""
    if rng.random() < 0.03:
        return rng.choice(
            ["", "no", "{", '{"a": {"satisfied": true}', "[]", '{"satisfied": 1}', '{"odd": 1}']
        )
    value = {}
    if here.wanted.why_satisfied or rng.random() < 0.5:
        value["satisfied"] = rng.random() < 0.5
    if rng.random() < 0.3:
        value["context"] = rng.choice(["why", "x" * 950, " "])
    if here.wanted.work_items or rng.random() < 0.05:
        value["workItems"] = [
            {"title": f"t{n}", "context": "c"} for n in range(rng.choice([0, 1, 2, ROWS, ROWS]))
        ]
    if here.socket.is_utility and rng.random() < 0.4:
        value["state"] = {"rows": [None] * rng.choice([0, 1, ROWS]), "a": rng.choice([1, [], {"b": 2}])}
    return json.dumps(value)


def transition(rng, rules, state, prompt):
    """The next transition of a cast, as a function that can be called twice."""
    if state.status == "ready":
        return lambda: engine.enter(rules, state)
    visit = state.at
    if state.status == "waiting":
        if visit.mode == "draft" and visit.drafts:
            return lambda: engine.finalize(rules, state, prompt)
        if rng.random() < 0.005:
            return lambda: engine.fail(state, Failure("outside", "it broke", visit.socket))
        text = answer(rng, rules.sockets[visit.socket])
        usage = Usage(rng.randint(0, 9), 1) if rng.random() < 0.5 else None
        return lambda: engine.output(rules, state, text, usage, prompt)
    if state.failure.kind == "budget":
        more = engine.set_budget(state, state.usage.tokens + rng.randint(1, 50))
        return lambda: engine.revive(rules, more)
    again = rng.choice([engine.recast, engine.revive])
    return lambda: again(rules, state)


def run(rules, seed, revivals=0):
    """Run to the end, and yield every (state before, step)."""
    rng = random.Random(f"{seed} {rules.graph}")
    state, prompt = engine.begin(rules, "r"), None
    while state.status != "complete":
        if state.status == "failed":
            if not revivals:
                return
            revivals -= 1
        make = transition(rng, rules, state, prompt)
        before = repr(state)
        step = make()
        assert repr(state) == before, "a transition changed the state that it was given"
        assert make() == step, "the same inputs gave something else"
        yield state, step
        state, prompt = step.state, step.prompt or prompt


seeds = st.integers(0, 2**32)


def casts(rules, seed, revivals=0):
    """Several casts of one loadout; drawing a loadout takes longer than running it."""
    return [run(rules, f"{seed} {lap}", revivals) for lap in range(5)]


@given(loadouts(), seeds)
def test_r18_every_cast_ends(document, seed):
    rules = rules_of(document)
    limit = most_steps(rules.graph)
    for cast in casts(rules, seed):
        for _, step in cast:
            assert step.state.steps <= limit
        event(step.state.failure.kind if step.state.failure else step.state.status)


@given(loadouts(), seeds)
def test_counts_and_routes_are_what_the_decisions_say(document, seed):
    rules = rules_of(document)
    for cast in casts(rules, seed, revivals=3):
        counts_agree(cast)


def counts_agree(cast):
    visited, travelled, decided = Counter(), Counter(), None
    for before, step in cast:
        after = step.state
        if before.status == "ready" and after.status != "failed":
            passed = step.decision.passed_over if step.decision else ()
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
def test_everything_can_be_explained(document, seed):
    rules = rules_of(document)
    entry = None
    for before, step in run(rules, seed, revivals=2):
        if before.status == "ready":
            entry = step.decision
        told = explain(rules, "title", step.decision, step.state, entry)
        assert len(told.lines) >= 1
        decision = step.decision
        if decision and decision.target and decision.by not in {"draft", "failure"}:
            assert decision.target in str(told)
        if decision and decision.failure:
            assert decision.failure.message in str(told)


@given(loadouts(), seeds)
def test_nothing_lingers_that_grows_with_the_cast(document, seed):
    """The books hold the current items only, and follow-up is bounded by items and targets."""
    rules = rules_of(document)
    for _, step in chain(*casts(rules, seed)):
        state = step.state
        assert len(state.items) <= len(state.cursors)
        if state.pending is None:  # a budget that stops the cast leaves the books open until it is revived
            assert all(index >= state.cursors[cursor] or index == 0 for cursor, index, _ in state.items)
        per = Counter((entry.item, entry.target) for entry in state.follow_up)
        assert all(count <= 5 for count in per.values())
        if step.prompt:
            assert sum(map(len, step.prompt.reasons)) <= 2400


@given(loadouts(), seeds, st.integers(0, 40))
def test_aborting_anywhere_can_be_taken_back(document, seed, when):
    rules = rules_of(document)
    for number, (before, _) in enumerate(run(rules, seed)):
        if number == when and before.status in {"ready", "waiting"}:
            stopped = engine.abort(before, "enough").state
            again = engine.revive(rules, stopped).state
            assert (again.status, again.next, again.data) == (before.status, before.next, before.data)
            return


@given(loadouts(), st.sampled_from(["complete", "failed", "aborted", "waiting", "ready"]))
def test_a_transition_that_does_not_fit_is_one_clear_error(document, status):
    rules = rules_of(document)
    state = engine.begin(rules, "r")._replace(status=status)
    fitting = {"ready": {"enter"}, "failed": {"recast", "revive"}, "aborted": {"recast", "revive"}}.get(
        status, set()
    )
    calls = {
        "enter": lambda: engine.enter(rules, state),
        "output": lambda: engine.output(rules, state, "x"),
        "fail": lambda: engine.fail(state, Failure("k", "m")),
        "recast": lambda: engine.recast(rules, state),
        "revive": lambda: engine.revive(rules, state),
    }
    for name, call in calls.items():
        if name not in fitting:
            with pytest.raises(MateriaError):
                call()
        else:
            assert call().state is not None
