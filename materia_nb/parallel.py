"""Jobs that run in this thread or in a pool of threads, and the progress that is reported meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice, takewhile
from typing import Any, TypeAlias, TypeVar

from materia_nb.platform import THREADS

Progress: TypeAlias = bool | Callable[[int, int], object]
"""True for a bar; or a function that is called with the number done and the total."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def run_jobs(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    workers: int = 1,
    is_enough: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, _Result]]:
    """Yield the number and the result of each job when it is done, in any order if there are several workers.

    Each worker is a thread and has one job at a time; no more jobs are started once ``is_enough`` returns true. Closing
    the iterator waits for the jobs that run. An error of a job is raised.
    """
    # The caller counts a result before it takes the next one, so jobs must not wait inside the pool.
    next_jobs = takewhile(lambda _: not is_enough(), enumerate(jobs))
    if workers == 1 or not THREADS:
        yield from ((number, work(job)) for number, job in next_jobs)
        return
    running: dict[Future[_Result], int] = {}
    with ThreadPoolExecutor(workers) as pool:
        while True:
            for number, job in islice(next_jobs, workers - len(running)):
                running[pool.submit(copy_context().run, work, job)] = number
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


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
