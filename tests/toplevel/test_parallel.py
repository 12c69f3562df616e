"""Test parallel jobs, which finish in any order, respect the worker limit and report progress."""

from __future__ import annotations

import sys
import threading

import pytest
import tqdm

from materia_nb.platform import ProgressBar, run_jobs


def double(number):
    return 2 * number


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_each_result_is_returned_with_its_job_number(workers):
    assert sorted(run_jobs(double, [5, 6, 7], workers)) == [(0, 10), (1, 12), (2, 14)]


def test_several_workers_run_jobs_concurrently():
    both = threading.Barrier(2, timeout=60)
    assert len(list(run_jobs(lambda _: both.wait(), range(2), 2))) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_no_job_starts_after_the_stop_condition_is_true(workers):
    started, counted = [], []
    for number, _ in run_jobs(started.append, range(9), workers, lambda: bool(counted)):
        counted.append(number)
    assert len(started) == len(counted) == workers


def test_error_of_a_job_is_raised_and_no_more_jobs_start():
    started = []

    def fail(number):
        started.append(number)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        list(run_jobs(fail, range(9), 2))
    assert len(started) <= 2


def test_progress_bar_shows_counts_and_leaves_no_text(monkeypatch, capsys):
    # With the modules of a kernel loaded tqdm would draw widgets.
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)
    bar = ProgressBar(progress=True, total=4, unit="casts")
    bar.add(2)
    assert "/4" in capsys.readouterr().err
    bar.close()
    assert capsys.readouterr().err.endswith("\r")
