"""Work that is shared among workers: in whatever order, also when a worker is lost, or somebody has had enough."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from builders import retry_loop
from materia_nb.errors import MateriaError
from materia_nb.insight.rehearse import BATCH, rehearse
from materia_nb.loadout import build_graph
from materia_nb.sharing import Bar, shared

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


def test_pieces_whose_worker_died_are_given_as_lost():
    with ProcessPoolExecutor(1) as pool:
        found = {done.place: done for done in shared(die, [0, 1, 2], pool)}
    assert set(found) == {0, 1, 2}
    assert found[1].lost is not None
    assert found[1].result is None


def test_a_function_of_a_cell_cannot_go_to_another_process():
    with ProcessPoolExecutor(1) as pool, pytest.raises(MateriaError, match="cannot be sent"):
        list(shared(lambda number: number, [1], pool))


def test_a_pool_that_broke_changes_no_number():
    with ProcessPoolExecutor(2) as pool:
        with pytest.raises(Exception, match="terminated"):
            pool.submit(die, 1).result()
        assert rehearse(GRAPH, CASTS, 0.6, 2, executor=pool) == rehearse(GRAPH, CASTS, 0.6, 2)


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
            rehearse(GRAPH, 40 * BATCH, 0.6, 2, executor=pool, progress=progress)
        waits = shared(work, list(range(1000)), pool)
        next(waits)
        waits.close()
        goes_on.set()
    assert told == [(BATCH, 40 * BATCH)]
    assert begun in ([0], [0, 1])


def test_a_bar_tells_how_much_is_done(capsys):
    bar = Bar(progress=True, total=4, what="casts")
    bar.add(2)
    bar.close()
    told = capsys.readouterr().err
    assert "2 of 4 casts" in told
    assert told.count("█") == told.count("░")
