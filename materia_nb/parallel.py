"""Jobs for the workers of any ``concurrent.futures.Executor``, or for this thread, one after the other."""

from __future__ import annotations

import os
import pickle
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast
from uuid import uuid4

from materia_nb.errors import MateriaError, named_error
from materia_nb.platform import THREADS, Stop

Progress: TypeAlias = bool | Callable[[int, int], object]
"""True for a bar; or a function that is called with the number done and the total."""

_STOP_CHECK_S: Final = 0.1
"""Seconds between two checks for a stop."""
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class WorkerError(MateriaError):
    """An error of a worker, or on the way to it, but not of the work."""


class JobResult(NamedTuple, Generic[_Result]):
    """The result of a job, by its place in the list, or the error that lost the job."""

    number: int
    value: _Result | None = None
    lost: Exception | None = None

    def require(self) -> _Result:
        """Return the value, or raise the error."""
        if self.lost is not None:
            raise self.lost
        return cast("_Result", self.value)


def run_jobs(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    executor: Executor | None = None,
    is_enough: Callable[[], bool] | None = None,
) -> Iterator[JobResult[_Result]]:
    """Yield the result of each job when it is done, with an executor in any order.

    With ``is_enough``, each worker has one job at a time, and no more jobs are started once it returns true. Closing the
    iterator cancels jobs that have not started. A process pool ends when one of its processes dies: all jobs that it
    still has are lost.

    Raises:
        WorkerError: a job or its result cannot be pickled (``not_sendable``), or the executor takes no jobs
            (``worker_lost``).
    """
    # The caller counts a result before it takes the next one. Jobs that wait in the executor would start in the meantime.
    next_jobs = takewhile(lambda _: is_enough is None or not is_enough(), enumerate(jobs))
    if executor is None:
        yield from (JobResult(number, work(job)) for number, job in next_jobs)
        return
    limit = len(jobs) if is_enough is None else _worker_count(executor)
    running: dict[Future[_Result], int] = {}
    try:
        while True:
            for number, job in islice(next_jobs, limit - len(running)):
                running[_submit(executor, work, job)] = number
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield _job_result(running.pop(future), future)
    finally:
        for future in running:
            future.cancel()


def _worker_count(executor: Executor) -> int:
    """Return the number of workers; executors have no public attribute for it."""
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


def _submit(executor: Executor, work: Callable[..., _Result], *args: object) -> Future[_Result]:
    """Submit a job; the future of a broken pool has the error."""
    try:
        return executor.submit(work, *args)
    except BrokenExecutor as error:
        broken: Future[_Result] = Future()
        broken.set_exception(error)
        return broken
    except Exception as error:  # a closed executor raises RuntimeError, Dask any error of pickling
        raise _worker_error(error) from error


def _job_result(number: int, future: Future[_Result]) -> JobResult[_Result]:
    try:
        error = future.exception()
    except CancelledError as cancelled:
        return JobResult(number, lost=cancelled)
    if error is None:
        return JobResult(number, future.result())
    if _is_pickling_error(error):
        raise _worker_error(error) from error
    if isinstance(error, MateriaError) or not isinstance(error, Exception):
        raise error
    return JobResult(number, lost=error)


def call_on(executor: Executor, work: Callable[[], _Result], stop: Stop) -> _Result:
    """Call a function on one worker of an executor and return its result; a thread has the caller's context.

    When ``stop`` is set, a call that has not started is cancelled. A call that runs is awaited, unless ``stop`` is left.

    Raises:
        WorkerError: the function or its result cannot be pickled (``not_sendable``), the worker was lost or the executor
            takes no calls (``worker_lost``), or the call was cancelled or left (``interrupted``).
        Exception: any error of ``work``.
    """
    is_local = isinstance(executor, ThreadPoolExecutor)
    if is_local:
        work = partial(copy_context().run, work)
    # Unlike a future, the queue is not left locked by an interrupt.
    finished: queue.SimpleQueue[object] = queue.SimpleQueue()
    future: Future[_Result] = _submit(executor, _call, work, "" if is_local else uuid4().hex)
    try:
        future.add_done_callback(finished.put)
        while not future.done():
            if stop.left or (stop.is_set() and future.cancel()):
                raise WorkerError("The call was abandoned.", kind="interrupted")
            with suppress(queue.Empty):
                finished.get(timeout=_STOP_CHECK_S)
    finally:
        future.cancel()
    try:
        error = future.exception()
    except CancelledError as cancelled:
        raise _worker_error(cancelled) from cancelled
    if isinstance(error, BrokenExecutor) or (error is not None and _is_pickling_error(error)):
        raise _worker_error(error) from error
    return future.result()


def _call(work: Callable[[], _Result], call_id: str) -> _Result:
    """Call a function for ``call_on``; the id, empty for a thread, keeps Dask from computing equal calls only once."""
    result = work()
    if call_id:
        pickle.dumps(result)  # Dask never delivers a result that cannot be pickled
    return result


def _is_pickling_error(error: BaseException) -> bool:
    """Return True for an error of pickle, which has several types."""
    text = f"{type(error).__name__}: {error}".lower()
    is_unsent = any(word in text for word in ("pickle", "serialize", "local object"))
    return isinstance(error, pickle.PicklingError) or (
        isinstance(error, TypeError | AttributeError) and is_unsent
    )


def _worker_error(error: BaseException) -> WorkerError:
    if _is_pickling_error(error):
        return WorkerError(
            f"The work, or its result, cannot be sent to another process: {str(error)[:200]}",
            hint="use functions that a module defines, not a cell, or use threads; Dask sends functions of a notebook too",
            kind="not_sendable",
        )
    return WorkerError(
        f"The worker was lost: {named_error(error)}",
        hint="check that the executor and its workers are running, then retry",
        kind="worker_lost",
    )


class ProgressBar:
    """Reports progress: with a tqdm bar, to a function, or not at all.

    Args:
        progress: the way to report.
        total: the number of things to do, as far as is known.
        unit: the plural noun of what is counted.
    """

    def __init__(self, progress: Progress, total: int, unit: str) -> None:
        self._progress, self.total, self.done = progress, total, 0
        self._bar: Any = None
        if progress is True and THREADS:  # tqdm watches its bars from a thread
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=f" {unit}", leave=False, dynamic_ncols=True)

    def add(self, count: int = 1) -> None:
        """Report that ``count`` more are done."""
        self.done += count
        if callable(self._progress):
            self._progress(self.done, self.total)
        elif self._bar is not None:
            self._bar.total = self.total
            self._bar.update(count)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.total = None  # a bar below its total would stay, in red
            self._bar.close()
