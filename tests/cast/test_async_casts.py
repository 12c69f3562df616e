"""Test that awaited casts do not block the event loop, and that cancelling one has the effect of an interrupt."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial, wraps

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from model_server import LONG_S
from stream_helpers import stream_agents, streams_config


def coroutines(agents):
    """Return coroutine functions with the behaviour of the specified agents."""

    def one(function):
        @wraps(function)
        async def answer(*given, **named):
            await asyncio.sleep(0)
            return function(*given, **named)

        return answer

    return {name: one(function) for name, function in agents.items()}


async def ended(task):
    with pytest.raises(asyncio.CancelledError):
        await task


def test_awaited_cast_takes_the_same_route_as_a_blocking_cast(tmp_path):
    blocking = h.start(tmp_path / "one", h.loop_config(), h.loop_agents(2, refuse=[2]))
    awaited = h.start(tmp_path / "two", h.loop_config(), coroutines(h.loop_agents(2, refuse=[2])))
    assert blocking.run() == asyncio.run(awaited.arun()) == "complete"
    assert awaited.route == blocking.route
    assert [step.output for step in awaited.steps] == [step.output for step in blocking.steps]


def test_coroutines_run_concurrently_on_the_awaiting_event_loop(tmp_path):
    count, loops, together = 8, set(), asyncio.Barrier(8)

    async def answer():
        loops.add(asyncio.get_running_loop())
        await together.wait()  # nobody passes before each cast has asked its agent
        return "text"

    async def all_at_once():
        casts = [h.start(tmp_path / str(n), h.chain_config(2), answer) for n in range(count)]
        ends = await asyncio.gather(*(cast.arun() for cast in casts))
        return set(ends), asyncio.get_running_loop()

    ends, loop = asyncio.run(all_at_once())
    assert (ends, loops) == ({"complete"}, {loop})


def test_event_loop_continues_while_a_function_blocks(tmp_path):
    async def from_the_loop():
        return "the loop was there"

    async def both():
        loop = asyncio.get_running_loop()
        blocks = lambda: asyncio.run_coroutine_threadsafe(from_the_loop(), loop).result(LONG_S)  # noqa: E731
        cast = h.start(tmp_path, h.one_config(), blocks)
        return await cast.arun(), cast.steps[-1].output

    assert asyncio.run(both()) == ("complete", "the loop was there")


def test_cancelled_cast_has_a_complete_journal_and_can_continue(tmp_path):
    asked, cleaned_up = asyncio.Event(), []

    async def never():
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append(True)

    async def cancelled():
        cast = h.start(tmp_path, h.chain_config(2), {"Socket-1": lambda: "one", "Socket-2": never})
        going = asyncio.create_task(cast.arun())
        await asked.wait()
        going.cancel()
        await ended(going)
        return cast

    cast = asyncio.run(cancelled())
    assert (cleaned_up, cast.status, cast.runner.busy()) == ([True], "waiting", False)
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(lambda: "two"))
    assert asyncio.run(resumed.arun()) == "complete"
    assert [step.output for step in resumed.steps] == ["one", "two"]


def test_run_cancelled_before_it_begins_stops_and_leaves_the_cast_unfinished(tmp_path):
    async def at_once():
        cast = h.start(tmp_path, h.one_config(), asyncio.Event().wait)
        going = asyncio.create_task(cast.arun())
        with cast.runner.lock():  # the thread waits here, and a run begins by taking back an earlier stop
            await asyncio.sleep(0)
            going.cancel()
            await asyncio.sleep(0)
        await ended(going)
        return cast

    assert asyncio.run(at_once()).status in ("ready", "waiting")


def test_late_answer_of_an_abandoned_function_is_ignored(tmp_path):
    asked, free, answered = asyncio.Event(), threading.Event(), threading.Event()

    async def cancelled():
        loop = asyncio.get_running_loop()

        def slow():
            loop.call_soon_threadsafe(asked.set)
            free.wait(LONG_S)
            answered.set()
            return "too late"

        cast = h.start(tmp_path, h.one_config(), slow)
        going = asyncio.create_task(cast.arun())
        await asked.wait()
        going.cancel()
        await ended(going)
        return cast

    cast = asyncio.run(cancelled())
    free.set()
    assert answered.wait(LONG_S)
    assert cast.status == "waiting"
    cast.agents.set("*", lambda: "in time")
    assert (cast.run(), cast.steps[-1].output) == ("complete", "in time")


def test_stream_yields_each_step_on_demand(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), coroutines(h.loop_agents(2)))

    async def sockets(**until):
        return [(step.socket, len(cast.steps)) async for step in cast.astream(**until)]

    assert asyncio.run(sockets(until="Socket-3")) == [("Socket-1", 1), ("Socket-2", 2)]
    assert asyncio.run(sockets(steps=1)) == [("Socket-3", 3)]
    assert [socket for socket, _ in asyncio.run(sockets())] == ["Socket-2", "Socket-3", "Socket-4"]
    assert cast.status == "complete"
    with pytest.raises(MateriaError, match="The cast is complete"):
        asyncio.run(sockets())


def test_stream_yields_steps_of_lanes(tmp_path):
    cast = h.start(tmp_path, streams_config(), stream_agents())

    async def made():
        return [step async for step in cast.astream()]

    steps = asyncio.run(made())
    assert (steps[0].socket, steps[-1].socket) == ("Socket-1", "Socket-5")
    assert Counter(step.before.lane.name for step in steps[1:-1]) == {"ui": 5, "api": 3}


def test_stream_yields_a_step_of_a_lane_while_other_lanes_work(tmp_path):
    async def made():
        over, seen = asyncio.Event(), []

        async def build(lane, item):
            if lane == "ui":
                await over.wait()
            return f"built {item['title']}"

        cast = h.start(tmp_path, streams_config(), stream_agents(Build=build))
        async with asyncio.timeout(LONG_S):
            async for step in cast.astream():
                seen.append((step.before.lane.name if step.before.lane else "", step.socket))
                if seen[-1] == ("api", "Socket-4"):
                    over.set()
        return cast.status, seen

    status, seen = asyncio.run(made())
    assert status == "complete"
    assert seen.index(("api", "Socket-4")) < seen.index(("ui", "Socket-3"))


def test_leaving_a_stream_cancels_pending_calls_of_lanes(tmp_path):
    async def left():
        ended, asked = [], asyncio.Event()

        async def build(lane):
            try:
                if lane == "ui":
                    asked.set()
                    await asyncio.Event().wait()
                await asked.wait()
                return "built"
            finally:
                ended.append(lane)

        cast = h.start(tmp_path, streams_config(), stream_agents(Build=build))
        steps = cast.astream()
        async for step in steps:
            if step.socket == "Socket-4":
                break
        await steps.aclose()
        return cast, ended

    cast, ended = asyncio.run(left())
    assert (sorted(ended), cast.runner.busy()) == (["api", "ui"], False)
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.agents.set("Build", lambda: "built")
    assert cast.run() == "complete"


def test_closing_a_stream_writes_all_files_and_the_cast_can_continue(tmp_path):
    cast = h.start(tmp_path, h.chain_config(3), lambda: "text")

    async def first():
        steps = cast.astream()
        step = await anext(steps)
        await steps.aclose()
        return step.number

    assert asyncio.run(first()) == 1
    assert '"Socket-1"' in (cast.run_dir / "manifest.json").read_text()
    assert asyncio.run(cast.arun()) == "complete"


def test_awaited_cast_reports_failures_and_waiting_like_a_blocking_cast(tmp_path):
    async def fails():
        raise ValueError("no")

    failing = h.start(tmp_path / "one", h.one_config(), fails)
    assert (asyncio.run(failing.arun()), failing.failure.kind) == ("failed", "agent_error")
    waiting = h.start(tmp_path / "two", h.one_config())
    assert asyncio.run(waiting.arun()) == "person"
    waiting.reply("text")
    assert asyncio.run(waiting.arun()) == "complete"
    with pytest.raises(MateriaError) as caught:
        asyncio.run(h.start(tmp_path / "three", h.one_config()).arun("Sockt-1"))
    assert "Socket-1" in caught.value.hint


def test_agent_may_await_or_run_another_cast(tmp_path):
    inner = [h.start(tmp_path / str(n), h.one_config(), coroutines({"M": lambda: "deep"})) for n in range(2)]

    async def asks(run):
        end = run() if run == inner[0].run else await run()
        return f"{end}"

    for cast, run in zip(inner, (inner[0].run, inner[1].arun), strict=True):
        outer = h.start(tmp_path / f"{run.__name__}", h.one_config(), partial(asks, run))
        assert (asyncio.run(outer.arun()), outer.steps[-1].output) == ("complete", "complete")
        assert cast.steps[-1].output == "deep"


@pytest.mark.parametrize("how", ["step", "arun"])
def test_agent_cannot_continue_the_cast_that_awaits_it(tmp_path, how):
    async def asks():
        return str(cast.step() if how == "step" else await cast.arun())

    cast = h.start(tmp_path, h.one_config(), asks)
    assert asyncio.run(cast.arun()) == "failed"
    assert "A step of this cast is running" in cast.failure.message


def test_agent_of_a_lane_cannot_continue_the_cast(tmp_path):
    asked = threading.Event()  # it goes on with it once the run has been given steps of the other lane

    def build(lane):
        if lane == "ui":
            asked.wait(LONG_S)
            cast.step()
        return "built"

    def check(lane):
        asked.set()
        return {"satisfied": True}

    cast = h.start(tmp_path, streams_config(), stream_agents(Build=build, Check=check))
    assert cast.run() == "failed"
    assert "A step of this cast is running" in cast.failure.message


@pytest.mark.parametrize("how", ["with", "async with"])
def test_cast_is_closed_at_the_end_of_its_with_block(tmp_path, how):
    async def block():
        async with h.start(tmp_path, h.one_config(), lambda: "text") as cast:
            await cast.arun(steps=0)
            return cast

    if how == "with":
        with h.start(tmp_path, h.one_config(), lambda: "text") as cast:
            cast.run(steps=0)
    else:
        cast = asyncio.run(block())
    with pytest.raises(MateriaError, match="open read-only"):
        cast.step()
    resume_cast(cast.run_dir, h.table(lambda: "text")).close()  # nobody holds its lock
