"""Test replaying the recorded answers of a cast in another loadout: differences and missing answers."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cast_helpers as h
import materia_nb.insight.compare
from builders import asks, at, config, edge, exit_route, loop
from cast_helpers import items, loop_agents, loop_config, start
from drawn_loadouts import answer, loadouts, rules_of
from magics_helpers import cell, line, run, text
from materia_nb.cast import open_cast
from materia_nb.cast.cases import read_case
from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.evolve import fold, session_at
from materia_nb.errors import MateriaError
from materia_nb.insight.compare import ComparedCast, step_route
from materia_nb.insight.replay import replay_answers, replay_end
from materia_nb.loadout import build_graph

REPLAYED = int(os.environ.get("MATERIA_NB_REPLAYED", "25"))
"""Number of random loadouts whose casts are replayed in a changed loadout; an environment variable sets it."""


@pytest.fixture
def done(bench):
    cast = bench.cast("replay me")
    cast.run()
    return cast


def changed(bench, change):
    """Return the config of Plan-Build-Eval after ``change`` was applied to it."""
    document = json.loads(json.dumps(dict(bench.loadouts.config.document)))
    change(document["loadouts"]["Plan-Build-Eval"]["sockets"], document["materia"])
    return build_graph(document, "Plan-Build-Eval")


def back_to_plan(sockets, materia):
    sockets["Socket-3"]["edges"][1]["to"] = "Socket-1"


def no_retry(sockets, materia):
    sockets["Socket-3"]["edges"] = [{"when": "always", "to": "Socket-4"}]


def test_replay_in_the_same_loadout_takes_the_same_route(bench, done):
    repeated = done.replay(bench.graph())
    assert not repeated
    assert repeated.first is None
    assert (repeated.needs, repeated.ends, repeated.changed_prompts) == (None, "complete", ())
    assert repeated.route == done.route


def test_replay_in_a_loadout_without_an_edge_uses_the_recorded_answers(bench, done):
    repeated = done.replay(changed(bench, no_retry))
    assert (repeated.first.step, repeated.first.a, repeated.first.b) == (3, "Socket-2", "Socket-4")
    edges = 'edge 1 is "satisfied to Maintain" in A, "always to Maintain" in B'
    assert f"The loadouts define this socket differently: {edges}" in repeated.first.why
    assert repeated.ends == "complete"
    assert len(repeated.route) == len(done.route) - 2
    assert dict(repeated.replayed.session.state.data)["workItems"] == items("a", "b", "c")


def test_replay_reports_which_answer_is_missing(bench, done):
    repeated = done.replay(changed(bench, back_to_plan))
    assert (repeated.first.step, repeated.first.b) == (3, "Socket-1")
    assert (repeated.needs.socket, repeated.needs.visit, repeated.needs.item_key) == ("Socket-1", 2, None)
    assert "only 1 time" in repeated.needs.why
    assert repeated.ends == "needs"


def played(rules, rng):
    """Return a cast in memory with random answers and at most 60 turns, in which people accept every request."""
    session = session_at(entering.begin(rules, "r"))
    for _ in range(60):
        if session.state.status == "ready":
            session = fold(rules, session, decide.enter(rules, session, 0))
        if session.state.status != "waiting":
            break
        if session.mode == "draft" and session.state.at.drafts:
            session = fold(rules, session, decide.finalize(rules, session, 0))
        here = rules.sockets[session.state.at.socket]
        session = fold(rules, session, decide.answer(rules, session, Answer(answer(rng, here)), 0))
    return ComparedCast("", rules, session)


def replayed_with(tmp_path, document, changed_document, agents):
    cast = start(tmp_path, document, agents)
    cast.run()
    return cast, cast.replay(build_graph(changed_document))


def test_replay_that_continues_after_the_recorded_end_counts_as_a_difference(tmp_path):
    """The exit of an empty loop led to the end; in the changed loadout, it leads to a socket that needs an answer."""
    before, after = (
        config(
            {
                "Plan": asks(edge("Do"), materia="G"),
                "Do": asks(edge("Do", "not_satisfied"), edge("Do")),
                **more,
            },
            {"L": loop("Do", exits=[exit_route("Do", "always", to)])},
        )
        for to, more in (("end", {}), ("Tell", {"Tell": at("P")}))
    )
    cast, again = replayed_with(tmp_path, before, after, {"G": lambda: {"workItems": []}})
    assert cast.status == "complete"
    assert (again.ends, again.needs.socket) == ("needs", "Tell")
    assert again
    assert (again.first.step, again.first.why) == (1, "A is complete now, but B continued with Tell P.")
    assert "The replay takes another route from step 1." in repr(again)


def test_replay_reports_a_different_reason_for_the_same_route(tmp_path):
    """Without its edge to the end, the socket leads to the implied end (R3)."""
    before, after = (config({"Do": at("P", *edges)}) for edges in ([edge("end")], []))
    _, again = replayed_with(tmp_path, before, after, {"P": lambda: "done"})
    assert not again
    assert (again.first, again.other_difference.step, again.other_difference.aspects) == (None, 1, ("route",))
    assert "The replay takes the same route.\nOn this route, step 1 differs." in repr(again)


def test_replay_reports_a_different_state_on_the_same_route(tmp_path):
    before, after = (
        config({"Do": asks(edge("Tell"), assign={target: "$.x"}), "Tell": at("P")}) for target in ("one", "other")
    )
    _, again = replayed_with(
        tmp_path, before, after, {"P": lambda turn: {"x": 1} if turn.socket_id == "Do" else "told"}
    )
    assert not again
    assert again.other_difference.aspects == ("state",)
    assert "The values assigned to the state differ" in again.other_difference.why


def test_replay_of_a_failed_agent_takes_the_same_route(tmp_path):
    def breaks(turn):
        if turn.socket_id == "Tell":
            raise RuntimeError("gone")
        return "done"

    document = config({"Do": at("P", edge("Tell")), "Tell": at("P")})
    cast, again = replayed_with(tmp_path, document, document, {"P": breaks})
    assert cast.failure.kind == "agent_error"
    assert not again
    assert again.needs.socket == "Tell"


def test_replay_repeats_a_failure_that_an_edge_handles(tmp_path):
    def breaks_once(turn):
        if turn.socket_id == "Do" and turn.visit == 1:
            raise RuntimeError("gone")
        return "done"

    sockets = {"Do": at("P", edge("Fix", "failed"), edge("end")), "Fix": at("P", edge("Do"))}
    cast, again = replayed_with(tmp_path, config(sockets), config(sockets), {"P": breaks_once})
    assert [socket for socket, *_ in cast.route] == ["Do", "Fix", "Do"]
    assert not again
    assert (again.needs, again.ends) == (None, "complete")
    assert "gone" in again.replayed.session.state.data["context"]
    case = read_case(cast.export.test(tmp_path / "failure"))
    assert case.check() == []
    del case.fields["config"]["loadouts"]["T"]["sockets"]["Do"]["edges"][0]
    assert "Expected end: complete. Actual end: failed." in case.check()


def test_replay_repeats_a_failure_after_the_first_turn_of_a_visit(tmp_path):
    def breaks_at_the_handoff(turn):
        if turn.kind == "finalize" and turn.visit == 1:
            raise RuntimeError("gone")
        return {"satisfied": True}

    document = config({"Do": asks(edge("Do", "failed", most=1), edge("end"), finalize=True)})
    cast, again = replayed_with(tmp_path, document, document, {"P": breaks_at_the_handoff})
    assert [len(step.turns) for step in cast.steps] == [1, 2]
    assert (bool(again), again.needs, again.ends) == (False, None, "complete")


@settings(max_examples=REPLAYED, deadline=None)
@given(document=loadouts(), rng=st.randoms(use_true_random=False), data=st.data())
def test_replay_counts_as_different_if_and_only_if_its_route_or_end_differs(document, rng, data):
    """The result of a replay is truthy exactly if its route or its end differs."""
    original = played(rules_of(document), rng)
    changed = json.loads(json.dumps(document))
    sockets = changed["loadouts"]["T"]["sockets"]
    source = data.draw(st.sampled_from(sorted(sockets)))
    exits = changed["loadouts"]["T"]["loops"]["L"]["exits"]
    ways = [*sockets[source]["edges"], *exits]
    assume(ways)
    way = data.draw(st.sampled_from(ways))
    way["targetSocketId" if way in exits else "to"] = data.draw(st.sampled_from([*sorted(sockets), "end"]))
    again = replay_answers(original, rules_of(changed))
    if original.session.state.status == "complete" and again.needs:
        assert again
        assert again.first is not None
    ones, others = ([step_route(step) for step in side.session.steps] for side in (original, again.replayed))
    if again.needs is None:
        ended = [replay_end(side.session, None) for side in (original, again.replayed)]
        assert bool(again) == (ones != others or ended[0] != ended[1])


def test_replay_reports_changed_prompts_on_the_same_route(bench, done):
    def reword(sockets, materia):
        materia["Build"]["prompt"] = "Otherwise."

    repeated = done.replay(changed(bench, reword))
    assert not repeated
    assert repeated.changed_prompts == (2, 4, 7, 10)


def test_replay_does_not_change_the_cast_on_disk(bench, done):
    before = (done.run_dir / "events.jsonl").read_bytes()
    done.replay(changed(bench, no_retry))
    assert (done.run_dir / "events.jsonl").read_bytes() == before
    assert done.status == "complete"


def test_replay_of_a_running_cast_needs_its_next_answer(bench, cast):
    cast.run(steps=3)
    repeated = cast.replay(bench.graph())
    assert repeated.first is None
    assert repeated.needs.socket == "Socket-2"
    assert len(repeated.route) == 4


def test_replay_reapplies_edits(bench, cast):
    cast.run(steps=1)
    cast.edit.items(items("other"))
    cast.run()
    repeated = cast.replay(bench.graph())
    assert not repeated
    assert repeated.left_out == ()
    assert repeated.route == cast.route


def test_replay_uses_corrected_answers(bench, cast):
    cast.run(steps=3)
    cast.edit.output({"satisfied": True, "context": "good"})
    cast.run()
    assert cast.replay(bench.graph()).route == cast.route


def test_replay_of_many_casts_lists_changed_routes(bench, done):
    bench.agent("Eval", lambda: {"satisfied": True})
    good = bench.cast("another")
    good.run()
    replay_result = bench.casts.replay(changed(bench, no_retry), [done, good.id])
    assert [one.original.name for one in replay_result.differing] == [done.id]
    assert "same" in repr(replay_result)
    assert len(bench.casts.replay()) == 2
    assert bench.casts.replay().differing == []


def test_replay_of_many_casts_lists_a_missing_cast(bench, done):
    replay_result = bench.casts.replay(casts=[done, "no-such-cast"])
    assert len(replay_result.values) == 1
    assert replay_result.problems[0][0] == "no-such-cast"


def test_invalid_loadout_is_refused(done):
    with pytest.raises(MateriaError, match="The loadout must be a graph or a config, not a value of type int"):
        done.replay(3)
    with pytest.raises(MateriaError, match="The loadout must be a graph or a config, not a value of type str"):
        done.replay("Plan-Build-Eval")


@settings(max_examples=25)
@given(refused=st.lists(st.integers(1, 6), max_size=4), count=st.integers(0, 3))
def test_replay_in_the_same_loadout_never_differs(tmp_path_factory, refused, count):
    cast = start(tmp_path_factory.mktemp("r"), loop_config(), loop_agents(count, refused))
    cast.run()
    repeated = cast.replay(cast.graph)
    assert not repeated, repeated.first
    assert repeated.route == cast.route


def test_replay_verb_replays_the_current_cast_or_all_casts(shell, bench):
    shell.user_ns["wb"] = bench
    line(shell, "cast x")
    run(shell, "%materia run")
    assert "The replay takes the same route, with the same results." in text(run(shell, "%materia replay"))
    body = json.loads(json.dumps(bench.loadouts.config.document["loadouts"]["Plan-Build-Eval"]))
    no_retry(body["sockets"], {})
    cell(shell, "define loadout Plan-Build-Eval", json.dumps(body))
    assert "another route from step 3" in text(run(shell, "%materia replay Plan-Build-Eval"))
    assert "different" in text(run(shell, "%materia replay --all"))


def test_continued_replay_is_a_resumable_cast_of_the_other_loadout(bench, done):
    other = changed(bench, back_to_plan)
    replay_result = done.replay(other)
    bench.agent("Plan", lambda: {"workItems": items("d")})
    onward = replay_result.continue_cast()
    try:
        assert (onward.status, onward.now.waiting_at.socket) == ("waiting", replay_result.needs.socket)
        assert onward.route == replay_result.route
        assert onward.graph == other
        h.assert_same(open_cast(onward.run_dir), onward)
        begun = json.loads((onward.run_dir / "events.jsonl").read_text().splitlines()[0])["data"]
        assert begun["forkedFrom"]["cast"] == done.id
        onward.run()
        assert onward.status == "complete"
        assert onward.now.work_items == items("d")
    finally:
        onward.close()
    assert (done.status, len(open_cast(onward.run_dir).steps)) == ("complete", len(onward.steps))


def test_continued_replay_keeps_edits_corrections_and_raised_limits(tmp_path):
    config = loop_config(limits={"maxEdgeTraversals": 1})
    config["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1]["maxTraversals"] = 1
    cast = start(tmp_path, config, loop_agents(2, refuse=(1, 2)))
    cast.run(steps=1)
    cast.edit.items(items("x", "y"))
    cast.edit.budget(100_000)
    cast.run()
    assert cast.failure.kind == "edge_traversals_exhausted"
    cast.retry(limit=True)
    cast.run()
    replay_result = cast.replay(build_graph(config))
    assert not replay_result
    assert replay_result.left_out == ()
    onward = replay_result.continue_cast()
    h.assert_same(open_cast(onward.run_dir), onward)
    assert (onward.status, onward.route, onward.now.engine.budget.max_tokens) == (
        "complete",
        cast.route,
        100_000,
    )
    assert not bool(materia_nb.insight.compare.Comparison(cast.now.compared_cast, onward.now.compared_cast))
    onward.close()
    cast.close()


def test_continued_replay_keeps_pins(tmp_path):
    cast = start(tmp_path, loop_config(), loop_agents(1))
    cast.pins.add("Socket-4", "pinned words")
    cast.run(steps=2)
    onward = cast.replay(build_graph(loop_config())).continue_cast()
    onward.run()
    assert onward.steps[-1].pinned is not None
    assert onward.steps[-1].output == "pinned words"
    onward.close()
    cast.close()


def test_replay_verb_can_continue_the_cast_in_another_loadout(shell):
    line(shell, "use Plan-Build-Eval")
    run(shell, "%materia agent * person")
    line(shell, "cast go on")
    line(shell, "step")
    first = shell.user_ns["wb"].current
    shown_text = text(line(shell, "replay Full-Auto --continue"))
    second = shell.user_ns["wb"].current
    assert second.id != first.id
    assert second.graph.name == "Full-Auto"
    assert "Full-Auto: " in shown_text


def test_continued_replay_keeps_long_outputs(tmp_path):
    cast = start(tmp_path, loop_config(), loop_agents(1, long="ü" * 40_000))
    cast.run()
    onward = cast.replay(build_graph(loop_config())).continue_cast()
    assert [step.output for step in onward.steps] == [step.output for step in cast.steps]
    h.assert_same(open_cast(onward.run_dir), onward)
    onward.close()
    cast.close()
