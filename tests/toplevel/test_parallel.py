"""Jobs on the workers of an executor: in any order, also when a worker is lost or the caller stops."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import tqdm

from builders import retry_loop
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import CASTS_PER_BATCH, simulate_casts
from materia_nb.loadout import build_graph
from materia_nb.parallel import ProgressBar, WorkerError, run_jobs

GRAPH = build_graph(retry_loop(most=2))
CASTS = 3 * CASTS_PER_BATCH


def double(number):
    return 2 * number


def die(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_piece_comes_back_with_its_place():
    with ThreadPoolExecutor(2) as pool:
        assert sorted(run_jobs(double, [5, 6, 7], pool)) == [(0, 10, None), (1, 12, None), (2, 14, None)]
    assert [result.value for result in run_jobs(double, [5, 6])] == [10, 12]


def test_a_worker_that_dies_loses_its_jobs_and_the_others_are_done():
    with ProcessPoolExecutor(1) as pool:
        results = {result.number: result for result in run_jobs(die, [0, *range(2, 20), 1, 30], pool)}
    assert sorted(results) == list(range(21))
    assert results[0].value == 0
    assert isinstance(results[19].lost, BrokenExecutor)
    with pytest.raises(BrokenExecutor):
        results[20].require()


def test_no_job_starts_before_the_last_result_is_counted():
    started, counted = [], []
    with ThreadPoolExecutor(1) as pool:
        for result in run_jobs(started.append, range(5), pool, lambda: bool(counted)):
            pool.submit(double, 0).result()  # runs after all jobs that wait in the pool
            counted.append(result)
    assert started == [0]


def test_all_jobs_of_a_pool_that_broke_before_are_lost():
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(die, 1).result()
        assert [result.lost is not None for result in run_jobs(double, [5, 6], pool)] == [True, True]


def test_an_executor_that_was_shut_down_is_one_clear_error():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(WorkerError, match="cannot schedule new futures") as caught:
        list(run_jobs(double, [5], pool))
    assert caught.value.kind == "worker_lost"


def test_a_function_of_a_cell_cannot_go_to_another_process():
    with ProcessPoolExecutor(1) as pool, pytest.raises(MateriaError, match="cannot be sent"):
        list(run_jobs(lambda number: number, [1], pool))


def test_a_pool_that_broke_changes_no_number():
    with ProcessPoolExecutor(2) as pool:
        with pytest.raises(Exception, match="terminated"):
            pool.submit(die, 1).result()
        assert simulate_casts(GRAPH, CASTS, 0.6, 2, executor=pool) == simulate_casts(GRAPH, CASTS, 0.6, 2)


def test_whoever_is_told_can_end_it_and_nothing_more_is_begun():
    begun, told, goes_on = [], [], threading.Event()

    def work(number):
        begun.append(number)
        if number:
            goes_on.wait(60)

    class Enough(Exception):
        pass

    def progress(done, total):
        told.append((done, total))
        raise Enough

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Enough):
            simulate_casts(GRAPH, 40 * CASTS_PER_BATCH, 0.6, 2, executor=pool, progress=progress)
        waits = run_jobs(work, list(range(1000)), pool)
        next(waits)
        waits.close()
        goes_on.set()
    assert told == [(CASTS_PER_BATCH, 40 * CASTS_PER_BATCH)]
    assert begun in ([0], [0, 1])


def test_a_bar_shows_how_much_is_done_and_leaves_an_empty_line(monkeypatch, capsys):
    monkeypatch.setitem(
        sys.modules, "tqdm.auto", tqdm
    )  # with a kernel's modules loaded it would draw widgets
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)
    bar = ProgressBar(progress=True, total=4, unit="casts")
    bar.add(2)
    assert "/4" in capsys.readouterr().err
    bar.close()
    assert capsys.readouterr().err.endswith("\r")
