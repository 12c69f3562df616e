"""Simulations, sweeps and the functions of lanes on two worker processes of Dask, of which one is killed in the middle."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import cast_helpers as h
from builders import asks, at, config, edge, retry_loop
from materia_nb import Workbench
from materia_nb.agents import FunctionAgent
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import CASTS_PER_BATCH, simulate_casts
from materia_nb.loadout import build_graph
from materia_nb.parallel import call_on
from materia_nb.platform import Stop
from stream_helpers import stream_agents, streams_config

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

CASTS = 6 * CASTS_PER_BATCH


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def test_a_worker_that_is_killed_in_the_middle_changes_no_number(client):
    graph = build_graph(retry_loop(most=2))
    client.wait_for_workers(2)  # one that was killed is started again
    pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2
    told = []

    def kill_one(done, total):
        if not told:
            os.kill(pids[0], signal.SIGKILL)
        told.append((done, total))

    found = simulate_casts(graph, CASTS, 0.6, 2, seed=3, executor=client.get_executor(), progress=kill_one)
    assert found == simulate_casts(graph, CASTS, 0.6, 2, seed=3)
    assert told == [(CASTS_PER_BATCH * count, CASTS) for count in range(1, 7)]


def test_a_sweep_takes_functions_of_a_notebook_and_a_killed_worker_pays_nothing_twice(
    client, project, tmp_path
):
    asked = tmp_path / "asked"

    def answer(turn):
        with asked.open("a") as file:
            file.write(f"{turn.request} {turn.socket_id}\n")
        if (
            turn.socket_id == "Check"
            and turn.request == "dies"
            and asked.read_text().count("dies Check") == 1
        ):
            os.kill(os.getpid(), signal.SIGKILL)
        return {"satisfied": True} if turn.socket_id == "Check" else "did it"

    bench = Workbench(project, bundled=False)
    bench.load(config({"Do": at("P", edge("Check")), "Check": asks()}))
    s = bench.sweep(requests=["lives", "dies"], agents=answer, executor=client.get_executor())
    assert [(one.ends, one.turns) for one in s] == [("complete", 2), ("complete", 2)]
    assert asked.read_text().count("dies Do") == 1
    bench.close()


def test_functions_answer_in_lanes_on_a_cluster_each_turn_anew(client, tmp_path):
    asked = tmp_path / "asked"

    def build(lane):
        with asked.open("a") as file:
            file.write(f"{lane} {os.getpid()}\n")
        return f"built in {lane}"

    agents = stream_agents(Build=FunctionAgent(build, executor=client.get_executor()))
    cast = h.start(tmp_path, streams_config(), agents)
    assert cast.run() == "complete"
    told = asked.read_text().split()
    assert sorted(told[::2]) == ["api", "ui", "ui"]  # what is asked alike is not taken for what was answered
    assert str(os.getpid()) not in told


def test_a_result_that_cannot_be_sent_is_one_clear_error(client):
    with pytest.raises(MateriaError, match="cannot be sent to another process") as caught:
        call_on(client.get_executor(), threading.Lock, Stop())
    assert caught.value.kind == "not_sendable"
