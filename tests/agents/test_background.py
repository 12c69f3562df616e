"""Test that events reported on an event loop reach the waiting thread completely and in order."""

from __future__ import annotations

import asyncio
import threading

import pytest

from materia_nb.agents.background import BackgroundLoop, EventLoopInbox
from materia_nb.agents.interface import AgentError


@pytest.fixture
def loop():
    made = BackgroundLoop()
    yield made
    made.close()


def test_notifications_are_delivered_in_order_before_the_result(loop):
    events = []
    inbox = EventLoopInbox(lambda thing: events.append((thing, threading.get_ident())))

    async def report_events():
        for number in range(50):
            inbox.add(number)
            await asyncio.sleep(0)
        return "done"

    assert loop.run(report_events(), inbox=inbox) == "done"
    assert events == [(number, threading.get_ident()) for number in range(50)]


def test_notifications_sent_before_a_failure_are_delivered(loop):
    events = []
    inbox = EventLoopInbox(events.append)

    async def report_events():
        inbox.add("last words")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        loop.run(report_events(), inbox=inbox)
    assert events == ["last words"]


def test_exception_in_a_listener_ends_the_call(loop):
    ended = threading.Event()

    def take(_):
        raise OSError("the disk is full")

    inbox = EventLoopInbox(take)

    async def report_events():
        try:
            inbox.add("something")
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(OSError, match="disk is full"):
        loop.run(report_events(), inbox=inbox)
    assert ended.is_set()


def test_stop_request_takes_effect_during_many_notifications(loop):
    stop = threading.Event()
    inbox = EventLoopInbox(lambda _: stop.set())

    async def report_events():
        while True:
            inbox.add("and")
            await asyncio.sleep(0)

    with pytest.raises(AgentError) as caught:
        loop.run(report_events(), stop, inbox)
    assert caught.value.kind == "interrupted"
