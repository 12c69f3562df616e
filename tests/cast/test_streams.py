"""Test casts with lanes: fork, join, failures, retries, people who answer, and budgets."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, Reply, ToolCall, Usage
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.exports import agent_from_recording, recording_of
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import RefusedAnswer
from materia_nb.loadout import build_graph
from materia_nb.store.catalogue import list_casts
from stream_helpers import TWO, plan_of, stream_agents, streams_config


def run(tmp_path, config=None, **agents):
    cast = h.start(tmp_path, config or streams_config(), stream_agents(**agents))
    cast.run()
    return cast


def visits(cast, lane):
    return [(step.socket, step.item_key) for step in cast.now.lanes[lane].now.steps]


def test_each_lane_runs_its_setup_once_and_its_items_in_order(tmp_path):
    cast = run(tmp_path)
    assert cast.status == "complete"
    assert visits(cast, "ui") == [
        ("Socket-2", None),
        ("Socket-3", "WI-3"),
        ("Socket-4", "WI-3"),
        ("Socket-3", "WI-1"),
        ("Socket-4", "WI-1"),
    ]
    assert visits(cast, "api") == [("Socket-2", None), ("Socket-3", "WI-2"), ("Socket-4", "WI-2")]
    assert [step.socket for step in cast.steps] == ["Socket-1", "Socket-5"]


def test_state_after_the_join_contains_the_results_of_the_lanes(tmp_path):
    cast = run(tmp_path)
    before, after = dict(cast.at(1).state), dict(cast.state)
    results = after.pop("parallelResults")
    assert after == before
    assert [result["name"] for result in results] == ["ui", "api"]
    ui = results[0]
    assert ui["workItemIndexes"] == [2, 0]
    assert [output["context"] for output in ui["outputs"]] == ["checked built Part 2", "checked built Part 0"]
    assert ui["context"] == "[Socket-4 Check] checked built Part 2\n\n[Socket-4 Check] checked built Part 0"
    assert ui["exports"] == {}


def test_journal_lines_name_their_lane_and_rebuild_the_cast(tmp_path):
    cast = run(tmp_path)
    lines = h.lines_of(cast)
    types = [line["type"] for line in lines]
    assert types[3:4] == ["streams_started"]
    assert types.count("lane_started") == types.count("lane_ended") == 2
    inside = [line for line in lines if line["type"] == "socket_start" and "lane" in line["data"]]
    assert len(inside) == 8
    assert types.index("streams_joined") > max(n for n, one in enumerate(types) if one == "lane_ended")
    h.assert_same(open_cast(cast.run_dir), cast)
    path = cast.run_dir / "parallel" / "L" / "lanes" / "ui" / "sockets" / "Socket-3"
    assert (path / "2-WI-1.md").read_text() == "built Part 0"


def test_empty_plan_continues_at_the_exit(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents({}))
    cast.run()
    assert [step.socket for step in cast.steps] == ["Socket-1", "Socket-5"]
    assert cast.state["parallelResults"] == []


# -- the three complaints that users of branches have ------------------------------------------


def test_lane_does_not_see_the_context_of_other_lanes(tmp_path):
    told = {}
    cast = run(
        tmp_path,
        Build=lambda lane, prompt, state: told.setdefault(lane, []).append((prompt, state)) or f"of {lane}",
    )
    assert cast.status == "complete"
    for lane, other in (("ui", "api"), ("api", "ui")):
        assert not [one for one in told[lane] if f"of {other}" in str(one) or f"for {other}" in str(one)]
    assert "of ui" in told["ui"][1][0]


def test_all_lanes_begin_from_the_same_state(tmp_path):
    begun = []
    run(tmp_path, Setup=lambda state, last: begun.append((dict(state), last)) or "ready")
    assert begun[0] == begun[1]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_each_item_is_processed_once(tmp_path, limit):
    streams = {"a": [3, 1], "b": [0], "c": [2, 5, 4]}
    built = []
    cast = h.start(
        tmp_path,
        streams_config(limit),
        stream_agents(streams, Build=lambda item_key: built.append(item_key) or "built"),
    )
    cast.run()
    assert sorted(built) == [f"WI-{n}" for n in range(1, 7)]
    assert cast.now.warnings == ()
    assert cast.now.item_statuses == ["done"] * 6


# -- at once -------------------------------------------------------------------------------


def test_configured_number_of_lanes_runs_in_parallel(tmp_path):
    both = threading.Barrier(2, timeout=20)
    run(tmp_path, streams_config(2), Setup=lambda: str(both.wait()))


def test_coroutines_of_lanes_run_on_the_event_loop_of_the_caller(tmp_path):
    loops, both = set(), {"ui": asyncio.Event(), "api": asyncio.Event()}

    async def setup(lane):
        loops.add(asyncio.get_running_loop())
        both[lane].set()
        for one in both.values():  # each waits for the other
            await one.wait()
        return "ready"

    async def main():
        cast = h.start(tmp_path, streams_config(2), stream_agents(Setup=setup))
        assert await asyncio.wait_for(cast.arun(), 30) == "complete"
        assert loops == {asyncio.get_running_loop()}

    asyncio.run(main())


def test_parallel_lanes_stay_within_the_limit(tmp_path):
    streams, now, most = {name: [n] for n, name in enumerate("abcde")}, set(), []

    def setup(lane):
        now.add(lane)
        most.append(len(now))
        now.discard(lane)
        return "ready"

    cast = h.start(tmp_path, streams_config(1), stream_agents(streams, Setup=setup))
    cast.run()
    assert set(most) == {1}
    started = [line["data"]["lane"] for line in h.lines_of(cast) if line["type"] == "lane_started"]
    assert started == list("abcde")


def test_utilities_in_lanes_receive_the_name_of_their_lane(tmp_path):
    code = "import sys, json; d = json.load(sys.stdin); sys.stdout.write(d['lane'] + d['itemKey'])"
    cast = run(tmp_path, streams_config(build=h.python(code, parallelSafe=True)))
    assert cast.status == "complete", cast.failure
    assert [step.output for step in cast.now.lanes["ui"].now.steps if step.socket == "Socket-3"] == [
        "uiWI-3",
        "uiWI-1",
    ]
    assert (cast.run_dir / "parallel/L/lanes/ui/sockets/Socket-3/1.input.json").exists()


# -- failing, stopping and going on ---------------------------------------------------------


def failing(times):
    """Return a builder that fails the specified number of times for the item of lane api."""
    left = [times]

    def build(item, lane):
        if lane == "api" and left[0]:
            left[0] -= 1
            raise RuntimeError("no luck")
        return f"built {item['title']}"

    return build


def test_failed_lane_fails_the_cast_after_the_other_lanes_finish(tmp_path):
    cast = run(tmp_path, Build=failing(1))
    assert (cast.status, cast.failure.kind) == ("failed", "stream_failed")
    assert "api" in cast.failure.message
    assert "no luck" in cast.failure.message
    assert {name: lane.status for name, lane in cast.now.lanes.items()} == {
        "ui": "accepted",
        "api": "failed",
    }
    assert "parallelResults" not in cast.state
    assert dict(cast.state) == dict(cast.at(1).state)
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize("how", [{}, {"limit": True}, {"turn": True}])
def test_retry_continues_failed_lanes_without_a_new_plan(tmp_path, how):
    planned = []
    cast = run(tmp_path, Plan=lambda: planned.append(1) or plan_of(TWO), Build=failing(1))
    before = cast.now.lanes["ui"].now.steps
    cast.retry(**how)
    cast.run()
    assert cast.status == "complete"
    assert len(planned) == 1
    assert [line["data"]["lane"] for line in h.lines_of(cast) if line["type"] == "lane_started"][2:] == ["api"]
    assert cast.now.lanes["ui"].now.steps == before
    h.assert_same(open_cast(cast.run_dir), cast)


def test_person_can_answer_for_a_failed_lane(tmp_path):
    def check(lane):
        if lane == "api":
            raise RuntimeError("no luck")
        return h.YES

    cast = run(tmp_path, Check=check)
    with pytest.raises(RefusedAnswer):
        cast.reply("prose")
    with pytest.raises(MateriaError, match="'ui' is accepted"):
        cast.reply(h.YES, lane="ui")
    with pytest.raises(MateriaError, match="stopped in its lanes"):
        cast.skip("not now")
    assert cast.status == "failed", "nothing was recorded of these"
    step = cast.reply(h.YES)
    assert (step.lane, step.by_hand, cast.status) == ("api", True, "ready")
    h.assert_same(open_cast(cast.run_dir), cast)
    assert cast.run() == "complete"


def test_failed_lanes_are_answered_by_name(tmp_path):
    def build():
        raise RuntimeError("no luck")

    cast = run(tmp_path, Build=build)
    with pytest.raises(MateriaError, match="Several lanes are waiting"):
        cast.reply("mine")
    cast.reply("mine", lane="api")
    assert cast.run() == "failed"
    assert {name: lane.status for name, lane in cast.now.lanes.items()} == {
        "ui": "failed",
        "api": "accepted",
    }
    h.assert_same(open_cast(cast.run_dir), cast)


def test_person_can_answer_for_a_lane_of_an_aborted_cast(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents(Check="person"))
    cast.run()
    cast.abort("enough")
    assert cast.reply(h.YES, lane="api").lane == "api"
    assert {name: lane.status for name, lane in cast.now.lanes.items()} == {
        "ui": "waiting",
        "api": "waiting",
    }
    cast.run()
    assert cast.now.lanes["api"].status == "accepted"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_abort_interrupts_all_lanes_and_retry_continues(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.run(steps=3)
    cast.abort("enough")
    assert cast.status == "aborted"
    assert {lane.status for lane in cast.now.lanes.values()} == {"interrupted"}
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(stream_agents()))
    resumed.retry()
    resumed.run()
    assert resumed.status == "complete"
    assert [lane_result["name"] for lane_result in resumed.state["parallelResults"]] == ["ui", "api"]


def test_budget_counts_all_lanes_together_and_stops_them(tmp_path):
    config = streams_config(1, budget={"maxTokens": 50})
    cast = run(tmp_path, config, Build=lambda: Reply("built", Usage(15, 5)))
    assert (cast.status, cast.failure.kind) == ("failed", "budget")
    assert cast.now.usage.tokens == 60
    assert {name: lane.status for name, lane in cast.now.lanes.items()} == {
        "ui": "accepted",
        "api": "interrupted",
    }
    types = h.types_of(cast)
    assert types.count("budget_warning") == types.count("budget_limit") == 1
    with pytest.raises(MateriaError, match="still used up"):
        cast.retry()
    cast.edit.budget(1000)
    cast.retry()
    cast.run()
    assert cast.status == "complete"
    assert cast.now.usage.tokens == 60
    h.assert_same(open_cast(cast.run_dir), cast)


def test_turns_of_all_lanes_count_towards_the_turn_budget(tmp_path):
    whole = run(tmp_path / "whole", streams_config(1))
    most = whole.now.usage.turns - 1
    cast = run(tmp_path / "bounded", streams_config(1, budget={"maxTurns": most}))
    assert (whole.status, cast.failure.kind, cast.now.usage.turns) == ("complete", "budget", most)
    assert sum(lane.now.usage.turns for lane in cast.now.lanes.values()) < most
    cast.edit.budget(max_turns=most + 2)
    cast.retry()
    cast.run()
    assert (cast.status, cast.now.usage.turns) == ("complete", most + 1)


def test_interrupted_lanes_wait_and_the_next_run_continues(tmp_path):
    def setup(lane):
        if lane == "ui" and not seen:
            cast.stop()
            seen.append(cast.runner.stopping)
        return "ready"

    seen = []
    cast = h.start(tmp_path, streams_config(), stream_agents(Setup=setup))
    assert cast.run() == "stopped"
    assert "the function setup of Setup" in seen[0]
    assert seen[0].endswith(" to return (0 s)")
    assert cast.status == "ready"
    assert cast.run() == "complete"


def test_lane_that_leaves_the_loop_early_fails(tmp_path):
    config = streams_config()
    config["loadouts"]["T"]["sockets"]["Socket-4"]["edges"] = [
        {"when": "satisfied", "to": "end"},
        {"when": "not_satisfied", "to": "Socket-3"},
    ]
    cast = run(tmp_path, config)
    assert cast.failure.kind == "stream_failed"
    assert cast.now.lanes["ui"].status == "failed"
    assert "1 item left" in cast.now.lanes["ui"].error


# -- persons -----------------------------------------------------------------------------------


def test_running_lane_does_not_wait_for_other_lanes(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents(Check="person"))
    cast.run()
    cast.reply(h.YES, lane="ui")
    assert cast.reply(h.YES).lane == "api", "the other one has only to enter its next socket"


def test_person_answers_in_a_lane_while_other_lanes_run(tmp_path):
    config = streams_config()
    cast = h.start(tmp_path, config, stream_agents(Check="person"))
    assert cast.run() == "person"
    assert [lane.now.waiting_at.socket for lane in cast.now.lanes.values()] == ["Socket-4", "Socket-4"]
    with pytest.raises(MateriaError, match="Several lanes are waiting"):
        cast.reply(h.YES)
    cast.reply(h.YES, lane="api")
    assert cast.run() == "person"
    assert cast.now.lanes["api"].status == "accepted"
    cast.reply(h.YES)  # only one lane waits
    cast.run()
    cast.reply(h.YES)
    assert cast.run() == "complete"


class AsksFirst:
    """An agent that asks for approval of a command in lane api, and answers after the approval."""

    name = "asks"

    def answer(self, turn):
        if turn.lane == "api" and "bash" not in turn.allowed and not any(call.decided for call in turn.calls):
            return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "make"}),))
        return Reply(f"built by {turn.lane}")


@pytest.mark.parametrize("always", [False, True])
def test_lane_waits_for_approval_while_other_lanes_finish(tmp_path, always):
    cast = h.start(tmp_path, streams_config(), stream_agents(Build=AsksFirst()))
    assert cast.run() == "person"
    assert cast.now.lanes["ui"].status == "accepted"
    assert [call.args for call in cast.approvals.asking] == [{"command": "make"}]
    cast.close()
    cast = resume_cast(cast.run_dir, h.table(stream_agents(Build=AsksFirst())))
    step = cast.approvals.in_lane("api").approve(always=always)
    assert (step.lane, step.output) == ("api", "built by api"), "its agent goes on"
    assert cast.run() == "complete"
    assert cast.approvals.tools["bash"] is always
    h.assert_same(open_cast(cast.run_dir), cast)


def test_single_step_runs_one_socket_of_each_lane(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.step()
    cast.step()
    assert [len(lane.now.steps) for lane in cast.now.lanes.values()] == [1, 1]
    cast.step()
    assert [len(lane.now.steps) for lane in cast.now.lanes.values()] == [2, 2]


def test_breakpoint_stops_all_lanes(tmp_path):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    cast.breakpoints.add("Socket-4")
    assert cast.run() == "breakpoint"
    assert cast.now.lanes["ui"].now.next_socket == "Socket-4"
    assert cast.now.lanes["api"].status == "waiting"


# -- what a person changes -----------------------------------------------------------------------


def test_state_of_running_lanes_cannot_be_edited(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.run(steps=2)
    for change in (lambda: cast.edit.set("x", 1), lambda: cast.edit.output(plan_of(TWO))):
        with pytest.raises(MateriaError, match="back 1"):
            change()
    cast.back(1)
    cast.edit.set("x", 1)
    cast.run()
    assert cast.status == "complete"
    assert cast.state["x"] == 1
    h.assert_same(open_cast(cast.run_dir), cast)


def test_schedule_is_refused_if_the_work_items_no_longer_match(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())
    cast.step()
    cast.edit.items(h.items("only one"))
    with pytest.raises(MateriaError, match="does not match"):
        cast.step()
    cast.edit.undo()
    cast.run()
    assert cast.status == "complete"


def test_schedule_with_issues_is_repaired_before_any_lane_starts(tmp_path):
    answers = [plan_of({"ui": [0, 1], "api": [1]}), plan_of(TWO)]
    cast = run(tmp_path, Plan=lambda: answers.pop(0))
    assert cast.status == "complete"
    assert len(cast.steps[0].turns) == 2
    assert "parallelSchedule.streams" in cast.steps[0].turns[1].prompt.text


def test_each_scripted_reply_answers_one_turn_of_one_lane(tmp_path):
    cast = run(tmp_path, Build={"Socket-3": ["one", "two", "three"]})
    texts = [step.output for lane in cast.now.lanes.values() for step in lane.now.steps if step.socket == "Socket-3"]
    assert sorted(texts) == ["one", "three", "two"]


def test_lanes_of_a_second_plan_have_their_own_files(tmp_path):
    config = streams_config()
    config["loadouts"]["T"]["sockets"]["Socket-5"] = h.at("Judge", ("not_satisfied", "Socket-1", 1), parse="json")
    config["materia"]["Judge"] = h.agent("Judge")
    answers = [h.NO, h.YES]
    cast = run(tmp_path, config, Judge=lambda: answers.pop(0))
    assert cast.status == "complete"
    assert len(cast.runner.session.streams) == 2
    assert (cast.run_dir / "parallel/L.2/lanes/api/sockets/Socket-2/1.md").exists()
    h.assert_same(open_cast(cast.run_dir), cast)


def test_status_of_an_item_reflects_the_progress_of_its_lane(tmp_path):
    cast = h.start(tmp_path, streams_config(1), stream_agents())
    assert cast.run(steps=4) == "steps"
    assert [lane.status for lane in cast.now.lanes.values()] == ["running", "waiting"]
    assert cast.now.item_statuses == ["open", "open", "done"]
    cast.step()
    assert cast.now.item_statuses == ["being worked on", "open", "done"]


def test_warnings_of_lanes_are_reported(tmp_path):
    config = streams_config()
    sockets = config["loadouts"]["T"]["sockets"]
    sockets["Socket-4"] |= {"edges": [{"when": "always", "to": "Socket-3"}], "advance": {}}
    cast = run(tmp_path, config, Check=lambda: h.NO)
    found = [warning for warning in cast.now.warnings if warning.code == "unanswered-verdict"]
    assert cast.status == "complete"
    assert len(found) == 3
    assert "in lane" in found[0].message


def test_recording_of_a_cast_with_lanes_reproduces_it(tmp_path):
    cast = run(tmp_path, Build=lambda lane: f"of {lane}")
    recording = agent_from_recording(recording_of(cast.now), "then")
    second_cast = h.start(tmp_path / "again", streams_config(), recording)
    second_cast.run()
    assert second_cast.state == cast.state


def test_recorded_answers_are_replayed_in_lanes(tmp_path):
    cast = run(tmp_path, Build=failing(0))
    assert not cast.replay(cast.graph)
    assert cast.export.test(tmp_path / "whole").exists()  # which is refused unless its answers lead the same way
    other = streams_config()
    other["loadouts"]["T"]["loops"]["L"]["exits"][0]["targetSocketId"] = "end"
    assert cast.replay(build_graph(other))


def test_every_usage_total_includes_the_lanes(tmp_path):
    cast = run(tmp_path, Build=lambda: Reply("built", Usage(3, 1)))
    usage = json.loads((cast.run_dir / "usage.json").read_text())
    assert usage["bySocket"]["Socket-3"]["total"] == 12
    assert usage["tokens"]["total"] == 12
    assert sum(row.usage.tokens or 0 for row in cast.usage("item")) == 12


def test_cast_list_counts_steps_of_lanes(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents(Build=lambda: Reply("built", Usage(3, 1, 0.25))))
    for _ in range(4):
        cast.step()
    cast.export.derived_files()
    (entry,) = list_casts(cast.run_dir.parent)
    assert entry.steps == len(cast.now.all_steps) > len(cast.steps)
    assert entry.cost == 0.25 * sum(step.socket == "Socket-3" for step in cast.now.all_steps)
    (cast.run_dir / "manifest.json").unlink()
    (entry,) = list_casts(cast.run_dir.parent)
    assert entry.steps is None  # what lanes did stands all over the journal


def test_usage_of_lanes_survives_going_back(tmp_path):
    cast = run(tmp_path, Build=lambda: Reply("built", Usage(3, 1)))
    cast.back(0)
    assert [(row.of, row.left.tokens) for row in cast.usage() if row.usage.tokens] == [(("Socket-3",), 12)]
    cast.run()
    assert sum(row.usage.tokens or 0 for row in cast.usage()) == 24


def test_usage_of_joined_and_abandoned_lanes_counts_towards_a_soft_limit(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents(Build=lambda: Reply("built", Usage(3, 1))))
    cast.breakpoints.every(10, "tokens")
    assert cast.run() == "breakpoint", "three items, 4 tokens each"
    assert (cast.status, len(cast.steps)) == ("ready", 2)
    cast.back(0)
    cast.breakpoints.clear()
    cast.breakpoints.every(20, "tokens")
    assert cast.run() == "breakpoint", "12 of before and 12 more"
    assert (cast.status, len(cast.steps)) == ("ready", 2)


def test_unknown_lane_is_refused(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "text")
    cast.step()
    before = cast.steps
    for act in (lambda: cast.reply("an answer", lane="ui"), lambda: cast.accept(lane="ui")):
        with pytest.raises(MateriaError, match="The lane 'ui' is not running") as caught:
            act()
        assert "leave out the lane" in caught.value.hint
    assert cast.steps == before
