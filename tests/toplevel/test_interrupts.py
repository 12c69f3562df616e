"""Test that interrupts at any moment neither block a cast nor leave a file handle open."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.platform import HeldInterrupts, Stop, WakingInterrupts

COUNT = 40


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def handles():
    return len(list(Path("/dev/fd").iterdir()))


def test_interrupt_is_delivered_at_the_end_of_the_protected_block():
    done = []

    def act():
        with HeldInterrupts():
            interrupt()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        act()
    assert done


def test_inner_protected_block_sees_an_earlier_interrupt():
    """Otherwise a command would run to its end although its tool was interrupted."""
    counts = []

    def act():
        with HeldInterrupts():
            interrupt()
            with HeldInterrupts() as inner:
                counts.append(inner.count)

    with pytest.raises(KeyboardInterrupt):
        act()
    assert counts == [1]


def test_no_pipe_stays_open_after_a_protected_block():
    def act():
        with WakingInterrupts() as held:
            interrupt()
            assert os.read(held.wake_fd, 9) == b"\0"

    before = handles()
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            act()
    assert handles() == before


def test_stop_event_can_be_set_awaited_and_cleared():
    stop = Stop()
    assert not stop.wait(0.01)
    threading.Timer(0.01, stop.set).start()
    assert stop.wait(30)
    stop.clear()
    assert not stop.is_set()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_randomly_interrupted_casts_can_continue(tmp_path):
    """A separate process interrupts functions, coroutines and processes at random."""
    materia = {"Say": h.agent("Say"), "Wait": h.agent("Wait"), "Run": h.python("print(1)")}
    sockets = {f"Socket-{n}": h.at(("Say", "Wait", "Run")[n % 3], ("always", f"Socket-{n + 1}")) for n in range(1, 9)}
    document = h.config({**sockets, "Socket-9": h.at("Say")}, materia)

    async def wait():
        await asyncio.sleep(0)
        return "waited"

    agents = {"Say": lambda: "said", "Wait": wait}
    h.start(tmp_path, document, agents).run()
    before, pick = handles(), random.Random(1)
    for _ in range(COUNT):
        cast = h.start(tmp_path, document, agents)
        hit = f"sleep {pick.uniform(0, 0.05)}; kill -INT {os.getpid()}"
        with suppress(KeyboardInterrupt):  # it may come while the one who sends it is still being started
            with HeldInterrupts():
                hitter = subprocess.Popen(["sh", "-c", hit])
            while cast.run() != "complete":
                pass
            hitter.wait(30)
        while cast.status != "complete":
            cast.run()
        assert hitter.wait(30) == 0
        opened = open_cast(cast.run_dir)
        assert (opened.runner.session, opened.now.messages) == (cast.runner.session, [])
        cast.close()
    assert handles() <= before
