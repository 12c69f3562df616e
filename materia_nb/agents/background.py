"""One event loop in a thread of its own, for agents that are coroutines."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from materia_nb.agents.base import AgentError

T = TypeVar("T")

_LOOK_S: Final = 0.1  # how often a waiting caller looks for a stop
_CANCEL_S: Final = 1.0  # how long a cancelled coroutine may take to clean up


def _ignore(_: object) -> None:
    """Take what is told when nobody listens."""


class Inbox(Generic[T]):
    """Brings what an awaitable tells on the loop to the thread that waits for it.

    Args:
        take: is called there with each thing told, in order.
    """

    def __init__(self, take: Callable[[T], None]) -> None:
        self._take = take
        self._told: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()

    def tell(self, thing: T) -> None:
        """Tell something; from any thread."""
        self._told.put((thing,))

    def wake(self) -> None:
        """Let the waiting thread look up although nothing was told."""
        self._told.put(None)

    def empty(self, timeout_s: float = 0.0) -> None:
        """Pass on what was told, after waiting a while for the first of it."""
        try:
            waiting = [self._told.get(block=bool(timeout_s), timeout=timeout_s or None)]
        except queue.Empty:
            return
        # Not until nothing is left: whoever tells without end must not keep the caller here.
        waiting += [self._told.get() for _ in range(self._told.qsize())]
        for told in waiting:
            if told is not None:
                self._take(told[0])


class BackgroundLoop:
    """Runs awaitables in its own thread, so that it does not matter whether the caller's has a loop.

    A notebook's own loop is running while a cell does, and cannot be entered again. The loop stays
    for all turns, so that clients which belong to a loop (connection pools) can be kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(
        self, awaitable: Awaitable[T], stop: threading.Event | None = None, inbox: Inbox[Any] | None = None
    ) -> T:
        """Wait for an awaitable and return its result, or raise what it raises.

        What is told to ``inbox`` meanwhile is passed on in the calling thread, all of it before this returns.

        Raises:
            AgentError: kind ``interrupted``: ``stop`` was set; the awaitable was cancelled.
            KeyboardInterrupt: the awaitable was cancelled.
        """
        loop = self._running()
        if threading.current_thread() is self._thread:
            # An agent that waits for another agent: this loop is busy until that one has answered.
            inner = BackgroundLoop()
            try:
                return inner.run(awaitable, stop, inbox)
            finally:
                inner.close()
        call = _Call(awaitable)
        inbox = inbox or Inbox(_ignore)
        stopped = False
        try:
            # Inside, since an interrupt can arrive as soon as the call has begun.
            future = asyncio.run_coroutine_threadsafe(call.run(), loop)
            future.add_done_callback(lambda _: inbox.wake())
            while not stopped and not future.done():
                inbox.empty(_LOOK_S)
                stopped = stop is not None and stop.is_set() and not future.done()
        finally:
            if not call.finished.is_set():
                loop.call_soon_threadsafe(call.cancel)
                call.finished.wait(_CANCEL_S)
        inbox.empty()
        if stopped:
            raise AgentError("The agent was interrupted", kind="interrupted")
        return future.result()

    def close(self) -> None:
        """End the thread and its loop."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CANCEL_S)
            if not self._thread.is_alive():
                self._loop.close()
        self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # Not alive: never started, or left behind in the parent of a forked process.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="materia-agents", daemon=True
                )
                self._thread.start()
            return self._loop


class _Call(Generic[T]):
    """One awaitable on the loop, which can be given up at any moment, also before it begins."""

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self.finished = threading.Event()
        self._awaitable = awaitable
        self._task: asyncio.Task[Any] | None = None
        self._given_up = False

    async def run(self) -> T:
        try:
            self._task = asyncio.current_task()
            if self._given_up:
                raise AgentError("The agent was interrupted", kind="interrupted")
            return await self._awaitable
        except (KeyboardInterrupt, SystemExit) as error:  # either would end the loop for everyone
            raise AgentError(f"The agent raised {type(error).__name__}") from error
        finally:
            self.finished.set()

    def cancel(self) -> None:
        """Give up; to be called in the loop's thread."""
        self._given_up = True
        if self._task is not None:
            self._task.cancel()


SHARED: Final[BackgroundLoop] = BackgroundLoop()
"""The loop that all function agents share. It starts with the first coroutine."""


def run_awaitable(awaitable: Awaitable[Any], stop: threading.Event | None = None) -> Any:
    """Wait for an awaitable on the shared loop, see :meth:`BackgroundLoop.run`."""
    return SHARED.run(awaitable, stop)
