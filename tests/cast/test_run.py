"""Test stepping and running a cast, and the conditions at which a run stops."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.agents import Reply
from materia_nb.cast import Cast, open_cast
from materia_nb.engine.events import CastEnd, Event, SocketComplete
from materia_nb.errors import MateriaError

NOT_CASTABLE = Path(__file__).parents[1] / "data" / "recorded-casts" / "not-castable-legacy-exit"


@pytest.fixture
def cast(tmp_path):
    return h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[2]))


def test_step_runs_one_socket(cast):
    assert cast.now.next_socket == "Socket-1"
    record = cast.step()
    assert record is cast.steps[-1]
    assert (record.socket, record.visit, record.number) == ("Socket-1", 1, 1)
    assert cast.status == "ready"
    assert cast.now.next_socket == "Socket-2"
    assert [item["title"] for item in cast.now.work_items] == ["Part 1", "Part 2"]


def test_complete_cast_cannot_be_run_again(cast):
    assert cast.run() == "complete"
    assert [visit[0][-1] + (visit[2] or "") for visit in cast.route] == [
        "1", "2WI-1", "3WI-1", "2WI-2", "3WI-2", "2WI-2", "3WI-2", "4",
    ]  # fmt: skip
    assert cast.now.next_socket is None
    before = h.facts(cast), (cast.run_dir / "events.jsonl").read_bytes()
    for go_on in (cast.run, cast.step, cast.abort, lambda: cast.run("Socket-2")):
        with pytest.raises(MateriaError, match="The cast is complete"):
            go_on()
    for go_on in (cast.retry, lambda: cast.retry(limit=True)):
        with pytest.raises(MateriaError, match="complete, not failed or aborted"):
            go_on()
    assert (h.facts(cast), (cast.run_dir / "events.jsonl").read_bytes()) == before


def test_run_stops_after_the_given_number_of_steps(cast):
    assert cast.run(steps=0) == "steps"
    assert cast.run(steps=3) == "steps"
    assert len(cast.steps) == 3


def test_run_until_a_socket_stops_before_each_of_its_visits(cast):
    stops = []
    while cast.run(until="Socket-3") == "until":
        stops.append(len(cast.steps))
    assert stops == [2, 4, 6]


def test_run_stops_before_the_end(cast):
    assert cast.run(until="end") == "until"
    assert cast.now.next_socket == "end"
    assert cast.step() is None
    assert cast.status == "complete"


def test_run_stops_when_a_condition_is_true(cast):
    assert cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1) == "until"
    assert cast.route[-1][:3] == ("Socket-3", 1, "WI-1")
    assert cast.run(until=lambda _: True) == "until"  # looked at before the first step too
    assert len(cast.steps) == 3


def test_error_for_an_unknown_socket_suggests_the_nearest_name(cast):
    for ask in (lambda: cast.run(until="Socket-33"), lambda: cast.breakpoints.add("Sockt-3")):
        with pytest.raises(MateriaError) as caught:
            ask()
        assert "Socket-3" in caught.value.hint


def test_socket_can_be_named_by_its_materia_in_runs_and_breakpoints(cast):
    name = cast.graph.names["Socket-3"]
    assert name != "Socket-3"
    assert cast.run(until=name) == "until"
    assert cast.now.next_socket == "Socket-3"
    cast.breakpoints.add(name)
    cast.breakpoints.every(5, "turns", socket=name)
    assert {breakpoint_.socket for breakpoint_ in cast.breakpoints} == {"Socket-3"}
    assert cast.run() == "breakpoint"
    assert cast.now.next_socket == "Socket-3"
    cast.breakpoints.clear(name)
    assert list(cast.breakpoints) == []


def test_breakpoint_does_not_stop_a_run_that_starts_at_it(cast):
    cast.breakpoints.add("Socket-2")
    assert cast.run() == "breakpoint"
    assert len(cast.steps) == 1
    assert cast.run() == "breakpoint"
    assert len(cast.steps) == 3
    cast.breakpoints.add("Socket-2", 'visits["Socket-3"] == 2')
    assert cast.run() == "breakpoint"
    assert len(cast.steps) == 5
    cast.breakpoints.clear()
    assert cast.run() == "complete"


def test_breakpoint_at_the_entry_does_not_stop_the_first_run(tmp_path):
    cast = h.start(tmp_path, h.chain_config(), lambda: "x")
    cast.breakpoints.add("Socket-1")
    assert cast.run() == "complete"


def test_breakpoint_after_an_empty_loop_is_reached(tmp_path):
    document = h.loop_config()
    document["loadouts"]["T"]["loops"]["L"]["exits"][0]["condition"] = "always"
    cast = h.start(tmp_path, document, h.loop_agents(0))
    cast.breakpoints.add("Socket-4")
    assert cast.run() == "breakpoint"
    assert cast.now.next_socket == "Socket-4"
    assert cast.run() == "complete"
    assert [visit[0] for visit in cast.route] == ["Socket-1", "Socket-4"]


def test_exception_in_a_run_condition_stops_the_run(cast):
    with pytest.raises(ZeroDivisionError):
        cast.run(until=lambda cast: len(cast.steps) == 2 and 1 / 0)
    assert len(cast.steps) == 2
    assert (cast.run_dir / "manifest.json").exists()
    assert cast.run() == "complete"


def test_run_stops_before_a_person(tmp_path):
    cast = h.start(tmp_path, h.chain_config(), {"Socket-1": lambda: "one"})
    assert cast.run() == "person"
    assert cast.now.waiting_at.socket == "Socket-2"
    assert cast.run() == "person"  # asked again, still nobody there
    assert len(cast.steps) == 2
    cast.reply("two")
    assert cast.run() == "person"
    cast.reply("three")
    assert cast.run() == "complete"


def test_stop_event_ends_a_run_between_steps(cast):
    cast.follow.changes(lambda c: c.stop() if len(c.steps) == 4 and c.status == "ready" else None)
    assert cast.run() == "stopped"
    assert len(cast.steps) == 4
    assert cast.status == "ready"


def test_requested_stop_does_not_affect_the_next_step(cast):
    cast.stop()
    assert cast.step().socket == "Socket-1"


def test_stop_while_an_agent_runs_leaves_the_socket_waiting(tmp_path):
    started, release = threading.Event(), threading.Event()

    async def slow():
        started.set()
        while not release.is_set():
            import asyncio

            await asyncio.sleep(0.005)
        return "late"

    cast = h.start(tmp_path, h.chain_config(1), slow)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(cast.run()))
    thread.start()
    assert started.wait(60)
    cast.stop()
    thread.join(60)
    assert ended == ["stopped"]
    assert cast.status == "waiting"
    release.set()
    assert cast.run() == "complete"
    assert cast.steps[0].output == "late"
    assert len(cast.steps) == 1


def test_abort_from_another_thread_ends_the_running_step(tmp_path):
    started = threading.Event()
    document = h.one_config(h.python("import time, sys; print(1, flush=True); time.sleep(600)", parse="text"))
    cast = h.start(tmp_path, document)
    cast.follow.changes(lambda c: started.set() if c.status == "waiting" else None)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(cast.run()))
    thread.start()
    assert started.wait(60)
    cast.abort("enough")
    thread.join(60)
    assert cast.status == "aborted"
    assert ended[0] in {"aborted", "stopped"}
    assert cast.failure.message == "enough"
    with pytest.raises(MateriaError, match="enough"):
        cast.run()


def test_steps_from_several_threads_run_one_after_another(tmp_path):
    cast = h.start(tmp_path, h.chain_config(20), lambda: "x")
    wrong = []

    def some():
        for _ in range(5):
            try:
                cast.step()
            except MateriaError as error:
                wrong.append(error)

    threads = [threading.Thread(target=some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert [visit[0] for visit in cast.route] == [f"Socket-{n}" for n in range(1, 21)]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_opened_cast_is_read_only(cast):
    cast.run(steps=2)
    cast.pins.add("Socket-3", "pinned")
    opened = open_cast(cast.run_dir)
    edit, labels, pins, approvals = opened.edit, opened.labels, opened.pins, opened.approvals
    calls = (
        *(opened.step, opened.run, opened.abort, opened.retry, edit.undo, edit.abandon),
        *(labels.undo, approvals.disallow, lambda: opened.reply("x"), lambda: opened.refine("x")),
        *(lambda: opened.back(1), lambda: opened.skip("x"), lambda: edit.budget(1), lambda: edit.set("a", 1)),
        *(lambda: edit.items([]), lambda: edit.state({}), lambda: edit.prompt("task", "x")),
        *(lambda: edit.output("x"), lambda: edit.redefine("Build", {"prompt": "x"})),
        *(lambda: edit.remember(1), lambda: labels.add(1, note="n"), lambda: pins.add("Socket-2", "x")),
        *(lambda: approvals.allow("bash"), lambda: approvals.answer("yes")),
        *(lambda: approvals.decide(satisfied=True), lambda: pins.remove("Socket-3")),
    )
    for call in calls:
        with pytest.raises(MateriaError, match="open read-only") as caught:
            call()
        assert caught.value.kind == "read_only"
    assert not opened.now.writable


@pytest.mark.parametrize("code, status", [("print('out')", "complete"), ("raise SystemExit(3)", "failed")])
def test_details_of_a_process_are_stored_with_its_output(tmp_path, code, status):
    cast = h.start(tmp_path, h.one_config(h.python(code)), {})
    assert cast.run() == status
    record = json.loads((cast.run_dir / "sockets" / "Socket-1" / "1.command.json").read_text())
    assert (record["code"], record["command"][-1]) == (0 if status == "complete" else 3, code)
    assert (cast.run_dir / record["stdoutArtifact"]).is_file()
    cast.close()


@pytest.mark.parametrize("most", [-1, 1.5, "10", True])
def test_r20_budget_must_be_an_integer(cast, most):
    with pytest.raises(MateriaError, match="whole number of tokens"):
        cast.edit.budget(most)
    assert h.types_of(cast) == ["cast_start"]


def test_steps_are_addressed_by_number(cast):
    with pytest.raises(MateriaError, match="no step yet"):
        cast.why()
    cast.run()
    assert cast.steps.at(1) is cast.steps[0]
    assert cast.steps.at(-1) is cast.steps[-1]
    for number in (0, 9, -9):
        with pytest.raises(MateriaError, match=f"no step {number}; the cast has 8 steps"):
            cast.steps.at(number)


def test_run_stops_after_a_watched_path_changes(cast):
    cast.breakpoints.watch("context")
    cast.breakpoints.watch(" workItems.5 ")
    assert cast.run() == "breakpoint"
    assert [one.path for one in cast.now.breakpoints_hit] == ["context"]
    assert cast.steps[-1].socket == "Socket-3"
    assert cast.run(steps=1) == "steps", "the run does not stop where it starts"
    cast.breakpoints.clear(path="context")
    assert cast.run() == "complete"
    assert cast.now.breakpoints_hit == []
    with pytest.raises(MateriaError, match="path is empty"):
        cast.breakpoints.watch(" .. ")


def test_added_and_removed_values_count_as_changes(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2))
    cast.breakpoints.watch("currentWorkItem")
    cast.breakpoints.watch("workItems")
    assert cast.run() == "breakpoint"
    assert (cast.steps[-1].socket, cast.now.breakpoints_hit[0].path) == ("Socket-1", "workItems")
    assert cast.run() == "breakpoint"
    assert (cast.steps[-1].socket, cast.now.breakpoints_hit[0].path) == ("Socket-2", "currentWorkItem")


def test_step_can_stop_before_the_agent_of_its_socket_is_called(cast):
    cast.step()
    record = cast.step(ask=False)
    assert record == cast.steps[-1]
    assert cast.now.prompt.instruction == "Build Part 1"
    assert cast.status == "waiting"
    assert cast.step(ask=False) == record, "a second time it stays there"
    assert cast.step() is cast.steps[-1]
    assert record.output is None, "what was seen before stays as it was"
    assert cast.status == "ready"
    cast.run()
    with pytest.raises(MateriaError, match="The cast is complete"):
        cast.step(ask=False)


def test_listeners_are_notified_after_the_journal_write(cast):
    told, ends, broken = [], [], []

    def reads(event):
        told.append(event.type)
        assert h.types_of(cast).count(event.type) >= told.count(event.type), "it is written before it is told"

    def breaks(event):
        broken.append(event)
        raise ValueError("no more")

    before = len(h.types_of(cast))
    cast.follow.events(Event, reads)
    stop = cast.follow.events(CastEnd, ends.append)
    cast.follow.events(SocketComplete, breaks)
    cast.run()
    cast.close()
    assert told == h.types_of(cast)[before:], "all of them, in the order of the journal"
    assert [(end.ok, type(end)) for end in ends] == [(True, CastEnd)]
    assert len(broken) == 1
    assert any(
        "callback for the events of the cast raised an error and was removed: ValueError: no more" in message
        for message in cast.now.messages
    )
    stop()
    assert len(cast.runner.followers._functions["events"]) == 1


@pytest.mark.parametrize("is_immediate", [True, False])
def test_answer_is_on_disk_before_the_next_agent_is_called(tmp_path, is_immediate):
    kept = []

    class Prepared:
        name = "prepared"

        def answer(self, turn):
            (journal,) = tmp_path.rglob("events.jsonl")
            kept.append(journal.read_text().count('"socket_complete"'))
            plan = {"workItems": [{"title": "One", "context": "it"}, {"title": "Two", "context": "it"}]}
            return Reply(json.dumps(plan if turn.materia_id == "Plan" else {"satisfied": True}))

    agent = Prepared()
    agent.is_immediate = is_immediate
    assert h.start(tmp_path, h.loop_config(), agent).run() == "complete"
    assert kept == list(range(6))


@pytest.mark.parametrize(
    "act",
    [
        Cast.step,
        Cast.fork,
        Cast.retry,
        lambda cast: cast.edit.undo(),
        lambda cast: cast.edit.set("a", 1),
        lambda cast: cast.blame("a"),
        lambda cast: cast.replay(h.one_config()),
        lambda cast: cast.back(0),
        lambda cast: cast.export.test("a"),
    ],
    ids=["step", "fork", "retry", "undo", "edit", "blame", "replay", "back", "test"],
)
def test_cast_with_an_invalid_loadout_refuses_to_continue(act):
    with pytest.raises(MateriaError, match=r"cannot be cast by this engine.*Socket-9\.parse") as caught:
        act(open_cast(NOT_CASTABLE))
    assert caught.value.kind == "not_castable"
