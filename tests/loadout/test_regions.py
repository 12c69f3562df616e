"""Test the region of a parallel generator: prelude, loop, exit, and which materia may run in parallel."""

from __future__ import annotations

import pytest

from loadout_samples import AGENT, edge, looped
from materia_nb.loadout import build_graph, check_config


def way_out(id_="e", to="Socket-4"):
    return {"id": id_, "from": "Socket-3", "condition": "satisfied", "targetSocketId": to}


def parallel_loadout(loop=None, **changed):
    """Return a loadout with a parallel generator, a prelude, a loop of Build and Eval, and a last socket."""
    document = looped({"exits": [way_out()], **(loop or {})})
    sockets = document["loadouts"]["T"]["sockets"]
    sockets["Socket-1"]["edges"] = [edge("Socket-5")]
    sockets["Socket-4"]["materia"] = "Tell"
    sockets["Socket-5"] = {"materia": "P", "edges": [edge("Socket-2")]}
    for name, fields in changed.items():
        sockets.setdefault(name.replace("_", "-"), {}).update(fields)
    document["materia"]["G"]["parallel"] = True
    document["materia"]["P"]["parallelSafe"] = True
    document["materia"]["Tell"] = AGENT
    return document


def problems_of(document):
    return {(problem.code, problem.source) for problem in check_config(document).problems}


def test_parallel_region_has_a_prelude_a_loop_and_an_exit():
    region = build_graph(parallel_loadout()).regions["Socket-1"]
    assert (region.prelude, region.loop, region.members) == (("Socket-5",), "L", ("Socket-2", "Socket-3"))
    assert (region.first, region.exit, region.max_concurrency) == ("Socket-5", "Socket-4", 2)


def test_parallel_region_needs_neither_a_prelude_nor_an_exit():
    document = parallel_loadout({"exits": []}, Socket_1={"edges": [edge("Socket-2")]}, Socket_3={"advance": {}})
    del document["loadouts"]["T"]["sockets"]["Socket-5"]
    region = build_graph(document).regions["Socket-1"]
    assert (region.prelude, region.first, region.exit) == ((), "Socket-2", "end")


def test_number_of_parallel_lanes_comes_from_the_loop_or_the_config():
    document = parallel_loadout()
    document["parallelism"] = {"maxConcurrency": 5}
    assert build_graph(document).regions["Socket-1"].max_concurrency == 5
    document["loadouts"]["T"]["loops"]["L"]["parallel"] = {"maxConcurrency": 3}
    assert build_graph(document).regions["Socket-1"].max_concurrency == 3
    document["loadouts"]["T"]["loops"]["L"]["parallel"] = {"maxConcurrency": 0}
    document["parallelism"] = {"maxConcurrency": "two"}
    assert problems_of(document) == {
        ("invalid-loop", "loops.L.parallel.maxConcurrency"),
        ("invalid-config", "parallelism.maxConcurrency"),
    }


@pytest.mark.parametrize("field", ["parallel", "parallelPlanner"])
def test_only_generators_can_be_parallel(field):
    document = parallel_loadout()
    document["materia"]["Tell"] = {**AGENT, field: True}
    assert problems_of(document) == {("invalid-materia", f"materia.Tell.{field}")}


def test_generator_that_is_not_parallel_has_no_region():
    document = parallel_loadout(Socket_1={"edges": [edge("Socket-2")]})
    document["materia"]["G"]["parallel"] = False
    del document["loadouts"]["T"]["sockets"]["Socket-5"]
    del document["materia"]["P"]["parallelSafe"]
    assert not build_graph(document).regions


def with_safe_generator():
    document = parallel_loadout(Socket_5={"materia": "Again"})
    document["materia"]["Again"] = {**AGENT, "generator": True, "parallelSafe": True}
    return document


WRONG = {
    "a guarded edge in the prelude": (
        parallel_loadout(Socket_5={"parse": "json", "edges": [edge("Socket-2", "satisfied"), edge("Socket-4", "not_satisfied")]}),
        {"Socket-5.edges[0]", "Socket-5.edges[1]"},
    ),
    "a guarded edge of the generator": (
        parallel_loadout(Socket_1={"edges": [edge("Socket-5", "satisfied")]}),
        {"Socket-1.edges[0]"},
    ),
    "two edges from the generator": (
        parallel_loadout(Socket_1={"edges": [edge("Socket-5", "satisfied"), edge("Socket-4")]}),
        {"Socket-1.edges[0]", "Socket-1.edges[1]"},
    ),
    "the path ends before the loop": (parallel_loadout(Socket_5={"edges": []}), {"Socket-5.edges", "loops.L.consumes"}),
    "an edge from outside into the prelude": (
        parallel_loadout(Socket_4={"edges": [edge("Socket-5")]}),
        {"Socket-4.edges[0]"},
    ),
    "an edge from outside into the loop": (parallel_loadout(Socket_4={"edges": [edge("Socket-3")]}), {"Socket-4.edges[0]"}),
    "a member leads back to the prelude": (
        parallel_loadout(Socket_2={"parse": "json", "edges": [edge("Socket-5", "not_satisfied"), edge("Socket-3")]}),
        {"Socket-2.edges[0]"},
    ),
    "an edge leads out of the lanes": (
        parallel_loadout(
            Socket_2={"parse": "json", "edges": [edge("Socket-6", "not_satisfied"), edge("Socket-3")]},
            Socket_6={"materia": "Tell"},
        ),
        {"Socket-2.edges[0]"},
    ),
    "two continuations": (
        parallel_loadout(
            {"exits": [way_out(), {**way_out("f", "end"), "condition": "always"}]}
        ),
        {"loops.L.exits[1]"},
    ),
    "an exit into the lanes": (parallel_loadout({"exits": [way_out(to="Socket-5")]}), {"loops.L.exits[0]"}),
    "the entry is in the lanes": ({**parallel_loadout(), "loadouts": {"T": {**parallel_loadout()["loadouts"]["T"], "entry": "Socket-5"}}}, {"entry"}),
    "no loop consumes the items": (
        parallel_loadout({"consumes": None, "iterator": {"items": "state.rows"}}, Socket_3={"advance": {}}),
        {"Socket-1.edges"},
    ),
    "a generator in the prelude": (with_safe_generator(), {"Socket-5.materia", "loops.L.consumes"}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_invalid_region_is_refused_with_a_specific_message(name):
    document, sources = WRONG[name]
    problems = check_config(document).problems
    assert {problem.code for problem in problems} == {"invalid-loop"}
    assert {problem.source for problem in problems} == sources
    assert len({problem.message for problem in problems}) == len(problems)


def test_regions_that_share_a_socket_are_refused():
    document = parallel_loadout()
    loadout = document["loadouts"]["T"]
    loadout["sockets"] |= {
        "Socket-4": {"materia": "Tell", "edges": [edge("Socket-6")]},
        "Socket-6": {"materia": "G", "edges": [edge("Socket-3")]},
    }
    loadout["loops"]["M"] = {
        "sockets": ["Socket-2", "Socket-3"],
        "consumes": {"from": "Socket-6", "cursor": "other"},
        "exits": [way_out(to="end")],
    }
    problems = check_config(document).problems
    assert any("in the lanes of both" in problem.message for problem in problems)


def test_materia_in_lanes_must_be_parallel_safe_and_have_no_drafts():
    document = parallel_loadout()
    document["materia"]["P"] |= {"parallelSafe": False, "multiTurn": True}
    assert problems_of(document) == {
        ("invalid-materia", "materia.P.parallelSafe"),
        ("invalid-materia", "materia.P.multiTurn"),
    }
    (first, _) = check_config(document).problems
    assert "'P'" in first.message
    assert "'L'" in first.message


def test_parallel_generator_needs_the_sparse_protocol():
    document = parallel_loadout(Socket_1={"handoff": "agent-contract"})
    assert ("invalid-socket", "Socket-1.handoff") in problems_of(document)
