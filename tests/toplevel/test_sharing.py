"""Work that is shared among workers: in whatever order, also when a worker is lost, or somebody has had enough."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from builders import retry_loop
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import BATCH, rehearse_casts
from materia_nb.loadout import build_graph
from materia_nb.sharing import ProgressBar, shared

GRAPH = build_graph(retry_loop(most=2))
CASTS = 3 * BATCH


def double(number):
    return 2 * number


def die(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_piece_comes_back_with_its_place():
    with ThreadPoolExecutor(2) as pool:
        assert sorted(shared(double, [5, 6, 7], pool)) == [(0, 10, None), (1, 12, None), (2, 14, None)]
    assert [done.result for done in shared(double, [5, 6])] == [10, 12]


def die_once(marker):
    """End its own process the first time; the piece is a path of a file that remembers it, or None for no such piece."""
    if marker is not None and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_that_kills_its_worker_is_lost_and_no_other(workers):
    pieces = [0, 2, 3, 1, *range(4, 20), 1, 30]
    with ProcessPoolExecutor(workers) as pool:
        found = {done.place: done for done in shared(die, pieces, pool)}
    assert sorted(found) == list(range(len(pieces)))
    assert {place for place, done in found.items() if done.lost is not None} == {3, 20}
    assert [done.result for place, done in sorted(found.items()) if place not in (3, 20)] == [
        one for one in pieces if one != 1
    ]


def test_a_piece_whose_worker_was_killed_is_done_in_a_new_pool(tmp_path):
    pieces = [None, str(tmp_path / "marker"), *[None] * 10]
    with ProcessPoolExecutor(2) as pool:
        found = list(shared(die_once, pieces, pool))
    assert sorted(done.place for done in found) == list(range(len(pieces)))
    assert {done.result for done in found} == {"done"}


def test_a_pool_that_broke_before_is_replaced():
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(Exception, match="terminated"):
            pool.submit(die, 1).result()
        assert sorted(shared(double, [5, 6], pool)) == [(0, 10, None), (1, 12, None)]


def test_a_function_of_a_cell_cannot_go_to_another_process():
    with ProcessPoolExecutor(1) as pool, pytest.raises(MateriaError, match="cannot be sent"):
        list(shared(lambda number: number, [1], pool))


def test_a_pool_that_broke_changes_no_number():
    with ProcessPoolExecutor(2) as pool:
        with pytest.raises(Exception, match="terminated"):
            pool.submit(die, 1).result()
        assert rehearse_casts(GRAPH, CASTS, 0.6, 2, executor=pool) == rehearse_casts(GRAPH, CASTS, 0.6, 2)


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
            rehearse_casts(GRAPH, 40 * BATCH, 0.6, 2, executor=pool, progress=progress)
        waits = shared(work, list(range(1000)), pool)
        next(waits)
        waits.close()
        goes_on.set()
    assert told == [(BATCH, 40 * BATCH)]
    assert begun in ([0], [0, 1])


def test_a_bar_tells_how_much_is_done(capsys):
    bar = ProgressBar(progress=True, total=4, what="casts")
    bar.add(2)
    bar.close()
    told = capsys.readouterr().err
    assert "2 of 4 casts" in told
    assert told.count("█") == told.count("░")
