"""Event loops that run coroutine agents: a loop in a background thread, or the loop of the cast's caller."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import closing
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, Generic, TypeVar

from materia_nb import platform
from materia_nb.agents.interface import AgentError, ignore_event
from materia_nb.errors import log_unhandled_error
from materia_nb.platform import HeldInterrupts, Stop

T = TypeVar("T")

_POLL_S: Final = 0.1  # how often a waiting caller looks for a stop
_CANCEL_S: Final = 1.0  # how long a cancelled coroutine may take to clean up


def run_abandonable(work: Callable[[], T], stop: threading.Event | None) -> T:
    """Run ``work`` in a separate thread and return its result, so that a :class:`Stop` can abandon the work.

    ``work`` runs in the current thread if that is the main thread, where Ctrl-C can interrupt it. It also runs in the
    current thread if ``stop`` is not a :class:`Stop`, and on platforms without threads.

    Raises:
        AgentError: kind ``interrupted``: the work was abandoned, and its result will be discarded.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main or not isinstance(stop, Stop) or not platform.CAN_START_THREADS:
        return work()
    future: Future[T] = Future()
    platform.start_thread(partial(_complete, future, work), "materia-function")
    while not wait([future], _POLL_S).done:
        if stop.must_abandon:
            raise AgentError("The agent call was abandoned.", kind="interrupted")
    return future.result()


def _complete(future: Future[T], work: Callable[[], T]) -> None:
    """Call ``work``, and store its result or exception in ``future``."""
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for the future
        future.set_exception(error)


class EventLoopInbox(Generic[T]):
    """Passes events from an event loop to the thread that waits for the result of an awaitable.

    Args:
        on_event: the function that the waiting thread calls with each event, in order.
    """

    def __init__(self, on_event: Callable[[T], None]) -> None:
        self._on_event = on_event
        self._events: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()

    def add(self, event: T) -> None:
        """Add an event to the queue. This method may be called from any thread."""
        self._events.put((event,))

    def wake(self) -> None:
        """Wake the waiting thread without sending an event."""
        self._events.put(None)

    def deliver(self, timeout_s: float = 0.0) -> None:
        """Call ``on_event`` with each queued event, after waiting at most ``timeout_s`` seconds for the first event."""
        try:
            entries = [self._events.get(block=bool(timeout_s), timeout=timeout_s or None)]
        except queue.Empty:
            return
        # Don't repeat until the queue is empty: an endless sender must not block the caller.
        entries += [self._events.get() for _ in range(self._events.qsize())]
        for entry in entries:
            if entry is not None:
                self._on_event(entry[0])


class BackgroundLoop:
    """Runs awaitables in a separate thread, even if an event loop is already running in the caller's thread.

    While a notebook cell runs, the event loop of the notebook is running too, so it cannot run another awaitable to
    completion. The background loop stays open for all turns, so that clients bound to a loop, such as connection pools,
    can be reused.

    Args:
        running: the event loop of the calling thread, which is used instead of a new loop in a separate thread; None to
            start a new loop.
    """

    def __init__(self, running: asyncio.AbstractEventLoop | None = None) -> None:
        self._lock = threading.Lock()
        self._loop = running
        self._thread: platform.BackgroundWork | None = threading.current_thread() if running else None

    def run(
        self, awaitable: Awaitable[T], stop: threading.Event | None = None, inbox: EventLoopInbox[Any] | None = None
    ) -> T:
        """Wait for an awaitable and return its result, or raise its exception.

        The calling thread delivers the events of ``inbox`` while it waits. All events have been delivered when this
        method returns.

        Raises:
            AgentError: kind ``interrupted``: ``stop`` was set, and the awaitable was cancelled.
            KeyboardInterrupt: the user interrupted the call, and the awaitable was cancelled.
        """
        inbox = inbox or EventLoopInbox(ignore_event)
        if not platform.CAN_START_THREADS:
            return _run_inline(awaitable, stop, inbox)
        loop = self._running_loop()
        if threading.current_thread() is self._thread:
            # An agent waits for another agent: this loop is busy until the other agent has answered.
            with closing(BackgroundLoop()) as inner_loop:
                return inner_loop.run(awaitable, stop, inbox)
        call = _Call(awaitable, inbox.wake)
        is_stopped = False
        try:
            # Inside the try block, since an interrupt can arrive as soon as the call has begun.
            loop.call_soon_threadsafe(call.begin)
            while not is_stopped and not call.finished.is_set():
                inbox.deliver(_POLL_S)
                is_stopped = stop is not None and stop.is_set() and not call.finished.is_set()
        finally:
            if not call.finished.is_set():
                loop.call_soon_threadsafe(call.cancel)
                call.finished.wait(_CANCEL_S)
        inbox.deliver()
        if is_stopped:
            raise AgentError("The agent was interrupted", kind="interrupted")
        return call.result()

    def close(self) -> None:
        """Stop the event loop and its thread."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CANCEL_S)
            if not self._thread.is_alive():
                self._loop.close()
        self._loop = self._thread = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock, HeldInterrupts():
            # A dead thread was never started, or belongs to the parent of a forked process.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(log_unhandled_error)
                self._thread = platform.start_thread(self._loop.run_forever, "materia-agents")
            return self._loop


def _run_inline(awaitable: Awaitable[T], stop: threading.Event | None, inbox: EventLoopInbox[Any]) -> T:
    """Run an awaitable to completion in a kernel that has no threads; no other task runs in the meantime.

    The awaitable can compute, but it cannot wait for a timer, the network or another task.
    """

    async def await_result() -> T:
        return await awaitable

    coroutine = await_result()
    try:
        while coroutine.send(None) is None:  # a bare yield, as of asyncio.sleep(0): nothing is waited for
            inbox.deliver()
            if stop is not None and stop.is_set():
                raise AgentError("The agent was interrupted", kind="interrupted")
    except StopIteration as done:
        inbox.deliver()
        value: T = done.value
        return value
    finally:
        coroutine.close()
    raise AgentError(
        "The agent cannot wait for a timer, the network or another task, because this kernel has no threads",
        hint="use an agent that is not async, or a kernel outside the browser",
    )


class _Call(Generic[T]):
    """Runs an awaitable on an event loop; the call can be cancelled at any time, even before it begins.

    The caller and the loop share no lock, not even the lock of a future. If an interrupted caller failed to release a
    shared lock, every later call would wait for it forever.

    Args:
        awaitable: the awaitable to run.
        on_done: the function that the loop's thread calls when the awaitable has ended.
    """

    def __init__(self, awaitable: Awaitable[T], on_done: Callable[[], None]) -> None:
        self.finished = Stop()
        self._awaitable = awaitable
        self._on_done = on_done
        self._task: asyncio.Task[None] | None = None
        self._value: list[T] = []
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start the call. This method and :meth:`cancel` must be called in the thread of the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._handle_end)

    def cancel(self) -> None:
        """Cancel the awaitable, even if it has not begun."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._close_coroutine()

    def result(self) -> T:
        """Return the result of the awaitable, or raise the exception that it raised."""
        if self._error is not None:
            raise self._error
        return self._value[0]

    async def _run(self) -> None:
        try:
            self._value.append(await self._awaitable)
        except (KeyboardInterrupt, SystemExit) as error:  # either exception would end the loop for all calls
            self._error = AgentError(f"The agent raised {type(error).__name__}")
            self._error.__cause__ = error
        except Exception as error:  # noqa: BLE001 - other people's code; result raises it
            self._error = error

    def _handle_end(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            self._error = AgentError("The agent cancelled itself")
        elif (error := task.exception()) is not None:
            self._error = error
        self._close_coroutine()
        self.finished.set()
        self._on_done()

    def _close_coroutine(self) -> None:
        if inspect.iscoroutine(self._awaitable):
            self._awaitable.close()  # otherwise Python warns about a coroutine that was never awaited


SHARED_LOOP: Final[BackgroundLoop] = BackgroundLoop()
"""The event loop that all function agents share; it starts when the first coroutine runs."""

CALLER_LOOP: Final[ContextVar[BackgroundLoop]] = ContextVar("CALLER_LOOP", default=SHARED_LOOP)
"""The event loop for function agents: the loop of the task that awaits the cast, or else :data:`SHARED_LOOP`."""


class _ThreadStarter:
    """Starts threads from a background thread, so that the caller does not have to wait until they have started.

    Requests are passed through a queue instead of an event loop. Waking an event loop writes to a socket, which
    releases the interpreter lock; the caller's loop would then compete for that lock with up to a hundred casts.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._thread: platform.BackgroundWork | None = None

    def start(self, action: Callable[[], object], name: str) -> None:
        """Start a thread that calls ``action`` in the context of the caller."""
        if not platform.CAN_START_THREADS:
            platform.start_thread(action, name)
            return
        if self._thread is None or not self._thread.is_alive():  # not yet, or left in the parent of a fork
            actions = self._requests = queue.SimpleQueue()
            self._thread = platform.start_thread(partial(_run_queue, actions), "materia-starts")
        self._requests.put(partial(copy_context().run, platform.start_thread, action, name))


def _run_queue(actions: queue.SimpleQueue[Callable[[], object]]) -> None:
    while True:
        actions.get()()


_THREAD_STARTER: Final = _ThreadStarter()


class _Waker:
    """Wakes an event loop at regular intervals while casts are awaited on it.

    The event loop of a kernel notices an interrupt only when it wakes.
    """

    def __init__(self) -> None:
        self._active_count = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._active_count += 1
        if self._active_count == 1:
            self._wake()

    def __exit__(self, *_: object) -> None:
        self._active_count -= 1
        if not self._active_count and self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_POLL_S, self._wake)


_WAKERS: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waker]] = weakref.WeakKeyDictionary()


async def run_in_thread(work: Callable[[], T], stop: Stop) -> T:
    """Run blocking work in a thread, so that the current event loop can run coroutine agents in the meantime.

    Raises:
        asyncio.CancelledError: the call was cancelled. Before the error is raised, ``stop`` is set and the thread ends.
    """
    future: Future[T] = Future()
    loop = asyncio.get_running_loop()
    caller_loop = BackgroundLoop(loop)

    def run() -> None:
        CALLER_LOOP.set(caller_loop)
        _complete(future, work)

    _THREAD_STARTER.start(run, "materia-cast")
    work_future, cancellation = asyncio.wrap_future(future), None
    with _WAKERS.setdefault(loop, _Waker()):
        while not work_future.done():
            try:
                await asyncio.wait([work_future], timeout=_POLL_S if cancellation else None)
            except asyncio.CancelledError as error:
                cancellation = error
            if cancellation is not None:
                stop.abandon()  # repeated, because a run that is just starting clears the event
    if cancellation is not None:
        work_future.exception()  # retrieved, so that asyncio does not log it as unretrieved
        raise cancellation
    return work_future.result()
