"""Work in pieces, shared among the workers of any ``concurrent.futures.Executor``, or done here one after the other."""

from __future__ import annotations

import pickle
import queue
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import takewhile
from pickle import PicklingError
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, cast
from uuid import uuid4

from materia_nb.errors import MateriaError, named_error
from materia_nb.platform import Stop

Progress: TypeAlias = bool | Callable[[int, int], object]
"""Whether a bar is printed; or what is called with how much is done and how much there is in all."""

_WIDTH: Final = 30
_LOOK_S: Final = 0.1  # how often whoever waits looks for a stop
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class Done(NamedTuple, Generic[_Result]):
    """A piece that is done: its place among all, and what came of it, or what went wrong with its worker."""

    place: int
    result: _Result | None = None
    lost: Exception | None = None

    def needed(self) -> _Result:
        """Return what came of it, or raise what went wrong."""
        if self.lost is not None:
            raise self.lost
        return cast("_Result", self.result)


def shared(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    executor: Executor | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[Done[_Result]]:
    """Do all pieces, and give each when it is done; with an executor in any order.

    Once there is ``enough`` no more are begun, and those under way are waited for.
    What is raised here while they are waited for, an interrupt among it, cancels those that have not begun. A piece
    whose worker was lost for good is given as such. A process pool breaks when one of its processes dies: a new one
    goes on, where a piece that was under way then is done alone, and is lost when its process dies again.

    Raises:
        MateriaError: a piece cannot be sent to a worker (``not_sendable``).
    """
    if executor is None:
        for place, job in takewhile(lambda _: not enough(), enumerate(jobs)):
            yield Done(place, work(job))
        return
    if enough():
        return
    if isinstance(executor, ProcessPoolExecutor):
        yield from _in_processes(work, jobs, executor, enough)
        return
    waiting: dict[Future[_Result], int] = {}
    try:
        for place, job in enumerate(jobs):
            try:
                waiting[executor.submit(work, job)] = place
            except BrokenExecutor as error:
                yield Done(place, lost=error)
            except Exception as error:
                _refuse_if_not_sendable(error)
                raise
        yield from _come(waiting, enough)
    finally:
        for future in waiting:
            with suppress(Exception):  # the workers may be gone by now
                future.cancel()


def _come(waiting: Mapping[Future[_Result], int], enough: Callable[[], bool]) -> Iterator[Done[_Result]]:
    for future in as_completed(waiting):
        if not future.cancelled():
            yield _done(waiting[future], future)
        if enough():
            for other in waiting:
                other.cancel()


def _in_processes(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    pool: ProcessPoolExecutor,
    enough: Callable[[], bool],
) -> Iterator[Done[_Result]]:
    """Do all pieces in a process pool, few at a time, so that few are under way when it breaks."""
    todo, alone = deque(range(len(jobs))), deque[int]()
    at_once = 2 * int(getattr(pool, "_max_workers", 1))
    waiting: dict[Future[_Result], int] = {}
    ours: ProcessPoolExecutor | None = None
    try:
        while waiting or ((todo or alone) and not enough()):
            by_itself = bool(alone)
            while not enough() and (
                (alone and not waiting) or (todo and not by_itself and len(waiting) < at_once)
            ):
                places = alone or todo
                try:
                    waiting[(ours or pool).submit(work, jobs[places[0]])] = places[0]
                except BrokenExecutor:  # it broke before, or just now: nothing of this piece has begun
                    break
                places.popleft()
            found, broke = [], not waiting
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                done = _done(waiting.pop(future), future)
                broke = broke or isinstance(done.lost, BrokenExecutor)
                found.append(done)
            if broke:  # then those that still wait are lost with it
                found += [_done(place, future) for future, place in waiting.items()]
                waiting.clear()
                ours = _another(pool, ours)
            for done in found:
                if isinstance(done.lost, BrokenExecutor) and not by_itself:
                    alone.append(done.place)
                else:
                    yield done
    finally:
        for future in waiting:
            future.cancel()
        if ours is not None:
            ours.shutdown(wait=False, cancel_futures=True)


def _another(pool: ProcessPoolExecutor, broken: ProcessPoolExecutor | None) -> ProcessPoolExecutor:
    """Return a pool like one that broke, in the place of the last such."""
    if broken is not None:
        broken.shutdown(wait=False)
    kept = ("max_workers", "mp_context", "initializer", "initargs")
    return ProcessPoolExecutor(**{name: getattr(pool, f"_{name}") for name in kept})


def _done(place: int, future: Future[_Result]) -> Done[_Result]:
    try:
        return Done(place, future.result())
    except MateriaError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever becomes of a worker
        _refuse_if_not_sendable(error)
        return Done(place, lost=error)


def _refuse_if_not_sendable(error: Exception) -> None:
    """Raise WorkerError (``not_sendable``) for an error of pickle, which has no one type for it."""
    told = f"{type(error).__name__}: {error}".lower()
    unsent = any(word in told for word in ("pickle", "serialize", "local object"))
    if isinstance(error, PicklingError) or (isinstance(error, TypeError | AttributeError) and unsent):
        raise _not_sendable(error) from error


def _not_sendable(error: Exception) -> WorkerError:
    return WorkerError(
        f"The work, or what comes of it, cannot be sent to another process: {str(error)[:200]}",
        hint="give functions that a module defines rather than a cell, or share it among threads; "
        "Dask sends functions of a notebook too",
        kind="not_sendable",
    )


class WorkerError(MateriaError):
    """What went wrong with a worker, or on the way to it, and not in what it did."""


def done_by(executor: Executor, work: Callable[[], _Result], stop: Stop) -> _Result:
    """Let one worker of an executor do something, and wait for it.

    What has not begun when ``stop`` is set is taken back. What has begun is waited for, unless ``stop`` says to leave it.

    Raises:
        WorkerError: it cannot be sent to the worker (``not_sendable``), the worker was lost or takes nothing any more
            (``worker_lost``), or it was taken back or left behind (``interrupted``).
        Exception: whatever ``work`` raises.
    """
    # An interrupt cannot leave it locked, as it can a future.
    came: queue.SimpleQueue[object] = queue.SimpleQueue()
    try:
        future = executor.submit(_Errand(work, copy_context()))
    except Exception as error:
        _refuse_if_not_sendable(error)
        raise _lost(error) from error
    try:
        future.add_done_callback(came.put)
        while not future.done():
            if stop.left or (stop.is_set() and future.cancel()):
                raise WorkerError("It was left behind.", kind="interrupted")
            with suppress(queue.Empty):
                came.get(timeout=_LOOK_S)
    finally:
        future.cancel()
    try:
        outcome = future.result()
    except (Exception, CancelledError) as error:
        if isinstance(error, Exception):
            _refuse_if_not_sendable(error)
        raise _lost(error) from error
    if outcome.error is not None:
        raise outcome.error
    return cast("_Result", outcome.value)


def _lost(error: BaseException) -> WorkerError:
    hint = "see that the executor is there, and its workers; then retry"
    return WorkerError(
        f"The worker of its executor was lost: {named_error(error)}", hint=hint, kind="worker_lost"
    )


class _Errand:
    """What a worker does: here in the context of whoever asks for it; in another process without.

    The number keeps apart what Dask would take for the same work, done once.
    """

    def __init__(self, work: Callable[[], object], here: Context | None = None, number: str = "") -> None:
        self._work, self._here, self._number = work, here, number or uuid4().hex

    def __call__(self) -> _Outcome:
        try:
            return _Outcome(self._work() if self._here is None else self._here.run(self._work))
        except Exception as error:  # noqa: BLE001 - it is raised again, by whoever waits
            return _Outcome(error=error)

    def __reduce__(self) -> tuple[object, ...]:
        return _Errand, (self._work, None, self._number)


class _Outcome:
    """What came of it; an error is brought from another process with the way that it took there."""

    def __init__(self, value: object = None, error: Exception | None = None) -> None:
        self.value, self.error = value, error

    def __reduce__(self) -> tuple[object, ...]:
        value, error = self.value, self.error
        try:
            pickle.dumps(value)  # Dask would wait for ever for what its worker cannot send
        except Exception as unsent:  # noqa: BLE001 - other people's objects
            value, error = None, _not_sendable(unsent)
        if error is not None:
            way = "".join(traceback.format_exception(error))
            try:
                pickle.loads(pickle.dumps(error))  # noqa: S301 - just written
            except Exception:  # noqa: BLE001 - other people's errors
                error = RuntimeError(named_error(error))
            error.add_note(way)
        return _Outcome, (value, error)


class ProgressBar:
    """Tells how much is done: as a bar on stderr, to a function, or not at all.

    Args:
        progress: which of them.
        total: how much there is to do, as far as is known.
        what: what is counted, in the plural.
    """

    def __init__(self, progress: Progress, total: int, what: str) -> None:
        self._progress, self.total, self._what = progress, total, what
        self.done = 0

    def add(self, count: int = 1) -> None:
        """Tell that so much more is done."""
        self.done += count
        if callable(self._progress):
            self._progress(self.done, self.total)
        elif self._progress:
            full = _WIDTH * self.done // max(1, self.total)
            bar = "█" * full + "░" * (_WIDTH - full)
            sys.stderr.write(f"\r{bar} {self.done:,} of {self.total:,} {self._what}")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line of the bar."""
        if self._progress is True:
            sys.stderr.write("\n")
