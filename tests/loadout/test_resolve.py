"""Test the resolved graph: its effective values, and the marks of derived values (R1, R4, R12 to R15)."""

from __future__ import annotations

import copy
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from loadout_samples import CONDITIONS, config, edge, looped, route, valid_configs
from materia_nb.jsonvalue import frozen
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.fields import Count, Milliseconds, Model, config_field
from materia_nb.loadout.graph import Advance, Budget, ExitRoute, Iterator, Limits, Price

LEGACY = {"from": "Socket-3", "when": "satisfied", "to": "Socket-4"}


def sockets_of(document):
    return build_graph(document).sockets


def told(graph):
    return {fact.source: fact.text for fact in graph.derived}


def without_marks(graph):
    """Return the graph without the marks of derived values."""
    sockets = {
        id_: replace(s, parse_derived=False, advance=s.advance and replace(s.advance, derived=False))
        for id_, s in graph.sockets.items()
    }
    loops = {
        id_: replace(loop, routes=tuple(replace(r, derived=False) for r in loop.routes))
        for id_, loop in graph.loops.items()
    }
    return replace(graph, sockets=sockets, loops=loops, derived=())


def test_parse_is_read_from_the_socket_of_an_agent_and_the_materia_of_a_utility_r4():
    document = config(
        {
            "Socket-1": {"materia": "P", "parse": "json", "assign": {"a": "$"}},
            "Socket-2": {"materia": "P"},
            "Socket-3": {"materia": "U", "parse": "text", "assign": {"ignored": "$"}},
        }
    )
    document["materia"]["P"]["parse"] = "json"
    document["materia"]["U"]["assign"] = {"kept": "$.x"}
    sockets = sockets_of(document)
    assert [s.parse for s in sockets.values()] == ["json", "text", "json"]
    assert [s.assign for s in sockets.values()] == [(("a", "$"),), (), (("kept", "$.x"),)]


@pytest.mark.parametrize("materia", ["G", "UG"])
def test_generator_parses_json_and_assigns_its_items_r4(materia):
    document = config({"Socket-1": {"materia": materia}})
    document["materia"]["UG"].update(parse="text", assign={"workItems": "$.tasks", "x": "$.y"})
    graph = build_graph(document)
    socket = graph.sockets["Socket-1"]
    assert socket.parse == "json"
    assert socket.assign[-1] == ("workItems", "$.workItems")
    assert dict(socket.assign).get("x") == ("$.y" if materia == "UG" else None)
    assert {"Socket-1.parse", "Socket-1.assign"} <= told(graph).keys()


def test_iterators_are_resolved_r1_r12_r13():
    document = looped()
    document["loadouts"]["T"]["loops"]["M"] = {
        "sockets": ["Socket-3", "Socket-4"],
        "iterator": {"items": "state.rows", "cursor": "i"},
    }
    document["loadouts"]["T"]["loops"]["N"] = {"sockets": ["Socket-1"]}
    document["loadouts"]["T"]["sockets"]["Socket-2"]["foreach"] = {"items": "state.parts", "as": "part"}
    graph = build_graph(document)
    iterators = {id_: s.iterator for id_, s in graph.sockets.items()}
    assert iterators == {
        "Socket-1": None,  # a plain group gives no items
        "Socket-2": Iterator("state.parts", "part", "Socket-2Index"),  # its own beats the loop's
        "Socket-3": Iterator("state.workItems", "workItem", "workItemIndex", "L"),  # the first loop that has one
        "Socket-4": Iterator("state.rows", "item", "i", "M"),
    }
    assert graph.sockets["Socket-3"].loops == ("L", "M")
    assert graph.loops["N"].iterator is None
    assert graph.consumers == {"Socket-1": ("L",)}


def test_loop_that_consumes_a_generator_names_its_item_r12():
    graph = build_graph(looped({"consumes": {"from": "Socket-1", "as": "todo", "cursor": "c"}}))
    assert graph.sockets["Socket-2"].iterator == Iterator("state.workItems", "todo", "c", "L")
    assert graph.sockets["Socket-2"].iterator.has_work_item_keys


@pytest.mark.parametrize(
    "conditions, when",
    [
        (["satisfied"], "satisfied"),
        (["not_satisfied"], "not_satisfied"),
        (["always"], "always"),
        (["satisfied", "not_satisfied"], "always"),
        (["satisfied", "always"], "always"),
    ],
)
def test_advance_of_a_loop_is_derived_from_its_exits_r15(conditions, when):
    graph = build_graph(looped({"exits": [route("Socket-3", condition, "Socket-4") for condition in conditions]}))
    assert graph.sockets["Socket-3"].advance == Advance("workItemIndex", "state.workItems", when, derived=True)
    assert graph.sockets["Socket-2"].advance is None
    assert "workItemIndex" in told(graph)["Socket-3.advance"]


def test_each_socket_with_an_exit_gets_an_advance_r15():
    exits = [route("Socket-2", "always", "end"), route("Socket-3", "satisfied", "end")]
    sockets = sockets_of(looped({"exits": exits}))
    assert sockets["Socket-2"].advance.when == "always"
    assert sockets["Socket-3"].advance.when == "satisfied"


def test_no_advance_is_derived_if_another_member_advances_the_cursor_r15():
    exits = {"exits": [route("Socket-3", "always", "Socket-4")]}
    assert sockets_of(looped(exits, Socket_2={"advance": {}}))["Socket-3"].advance is None
    other = looped(exits, Socket_2={"advance": {"cursor": "other", "items": "state.rows"}})
    assert sockets_of(other)["Socket-3"].advance.derived


def test_exits_do_not_change_the_parse_setting_r15():
    document = looped({"exits": [route("Socket-2", "satisfied", "end")]})
    assert sockets_of(document)["Socket-2"].parse == "text"


def test_no_advance_is_derived_for_a_loop_that_consumes_no_generator():
    loop = {"iterator": {"items": "state.rows", "cursor": "i"}, "exits": [route("Socket-3", "always", "end")]}
    document = looped(loop)
    del document["loadouts"]["T"]["loops"]["L"]["consumes"]
    assert all(s.advance is None for s in sockets_of(document).values())


@pytest.mark.parametrize("when", CONDITIONS)
@pytest.mark.parametrize("materia", ["P", "U"])
def test_advance_route_and_parse_are_derived_from_the_legacy_exit_r15(when, materia):
    document = looped({"exit": {**LEGACY, "when": when}}, Socket_3={"materia": materia, "edges": [edge("Socket-2")]})
    del document["loadouts"]["T"]["sockets"]["Socket-3"]["parse"]
    del document["materia"]["U"]["parse"]
    graph = build_graph(document)
    socket = graph.sockets["Socket-3"]
    assert socket.advance == Advance("workItemIndex", "state.workItems", when, derived=True)
    assert (socket.parse, socket.parse_derived) == (("text", False) if when == "always" else ("json", True))
    assert graph.loops["L"].routes == (
        ExitRoute(f"exit:Socket-3:{when}", "L", "Socket-3", when, "Socket-4", derived=True),
    )
    assert {"Socket-3.advance", "loops.L.exit"} <= told(graph).keys()


def test_guarded_legacy_exit_makes_its_utility_parse_json_in_every_socket_r58():
    document = looped(
        {"exit": {**LEGACY, "when": "satisfied"}},
        Socket_3={"materia": "U", "edges": [edge("Socket-2")]},
        Socket_4={"materia": "U"},
    )
    del document["loadouts"]["T"]["sockets"]["Socket-3"]["parse"]
    del document["materia"]["U"]["parse"]
    sockets = build_graph(document).sockets
    assert [sockets[id_].parse for id_ in ("Socket-3", "Socket-4")] == ["json", "json"]
    found = [(hint.code, hint.source) for hint in check_config(document).hints]
    assert ("shared-parse", "Socket-4.materia") in found
    assert ("shared-parse", "Socket-3.materia") not in found
    document["materia"]["V"] = dict(document["materia"]["U"])
    document["loadouts"]["T"]["sockets"]["Socket-4"]["materia"] = "V"
    assert build_graph(document).sockets["Socket-4"].parse == "text"


def test_legacy_exit_to_end_adds_no_route_and_keeps_the_other_routes_r15():
    exits = [route("Socket-3", "always", "Socket-4")]
    graph = build_graph(looped({"exit": {**LEGACY, "to": "end"}, "exits": exits}))
    assert [r.target for r in graph.loops["L"].routes] == ["Socket-4"]
    assert graph.sockets["Socket-3"].advance.when == "satisfied"  # its own, not that of the routes


def test_legacy_exit_replaces_the_route_of_its_source_and_condition_r15():
    exits = [route("Socket-3", "satisfied", "end", id="mine"), route("Socket-3", "always", "end", id="other")]
    routes = build_graph(looped({"exit": LEGACY, "exits": exits})).loops["L"].routes
    assert [(r.id, r.target, r.derived) for r in routes] == [
        ("other", "end", False),
        ("exit:Socket-3:satisfied", "Socket-4", True),
    ]


def test_config_that_contains_its_derived_fields_gives_the_same_graph():
    written = looped(
        {"exit": LEGACY, "exits": [route("Socket-3", "satisfied", "Socket-4")]},
        Socket_3={"advance": {"cursor": "workItemIndex", "items": "state.workItems", "when": "satisfied"}},
    )
    graph = build_graph(written)
    assert graph == replace(without_marks(build_graph(looped({"exit": LEGACY}))), derived=graph.derived)
    assert "Socket-3.advance" not in told(graph)


def test_advance_takes_cursor_and_items_from_the_iterator_r13():
    graph = build_graph(looped(Socket_3={"advance": {"when": "satisfied"}}))
    assert graph.sockets["Socket-3"].advance == Advance("workItemIndex", "state.workItems", "satisfied")
    assert "of the iterator" in told(graph)["Socket-3.advance"]


def test_each_member_has_its_own_cursor_if_the_loop_iterator_names_none_r13():
    sockets = {
        "Socket-1": {"materia": "P", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "advance": {}},
    }
    graph = build_graph(
        config(sockets, loops={"L": {"sockets": ["Socket-1", "Socket-2"], "iterator": {"items": "state.rows"}}})
    )
    assert [s.iterator.cursor for s in graph.sockets.values()] == ["Socket-1Index", "Socket-2Index"]
    assert graph.sockets["Socket-2"].advance.cursor == "Socket-2Index"


def test_materia_limits_and_budget_are_resolved():
    document = config(
        {"Socket-1": {"materia": "U", "layout": {"x": 1}}},
        limits={"repairAttempts": 0, "maxEdgeTraversals": 7.0},
        budget={"maxTokens": 0, "warnAtPercent": 50},
    )
    document["materia"]["U"].update(label="Check", params={"a": 1}, timeoutMs=1.5)
    graph = build_graph(document, folders={"U": Path("/somewhere")})
    materia = graph.sockets["Socket-1"].materia
    assert (materia.label, materia.command, materia.params) == ("Check", ("true",), {"a": 1})
    assert (materia.timeout_ms, materia.folder) == (2, Path("/somewhere"))
    assert graph.limits == Limits(repair_attempts=0, max_edge_traversals=7)
    assert graph.budget == Budget(max_tokens=0, warn_at_percent=50)
    assert graph.sockets["Socket-1"].layout == {"x": 1}


def test_numbers_are_converted_to_the_type_of_their_field():
    class Waits(Model):
        rounds: Count = config_field("Rounds.")
        wait_ms: Milliseconds = config_field("The time to wait.", default=5)

    for written, counts in ((1.5, 2), (2**31 - 1.5, 2**31 - 1), (10**400, 2**31 - 1)):
        read = Waits.model_validate({"rounds": 3.0, "waitMs": written})
        assert (read.rounds, read.wait_ms) == (3, counts)
        assert (type(read.rounds), type(read.wait_ms)) == (int, int)
        document = config({"Socket-1": {"materia": "U"}})
        document["materia"]["U"]["timeoutMs"] = written
        assert sockets_of(document)["Socket-1"].materia.timeout_ms == counts
    assert Waits.model_validate({}).wait_ms == 5


def test_defaults_are_applied_r18_r19_r20_r23():
    graph = build_graph(config({"Socket-1": {"materia": "U"}}))
    assert graph.limits == Limits(1, 3, 25)
    assert graph.budget == Budget(None, 75)
    assert graph.sockets["Socket-1"].materia.timeout_ms == 30_000


def test_protocol_is_set_by_socket_or_loadout_and_is_sparse_by_default():
    document = config({"Socket-1": {"materia": "P", "handoff": "envelope"}, "Socket-2": {"materia": "P"}})
    assert [s.handoff for s in sockets_of(document).values()] == ["envelope", "sparse"]
    document["loadouts"]["T"]["handoff"] = "other"
    assert [s.handoff for s in sockets_of(document).values()] == ["envelope", "other"]


def test_first_loadout_is_built_if_no_loadout_is_active():
    document = config({"Socket-1": {"materia": "P"}})
    del document["activeLoadout"]
    assert build_graph(document).name == "T"


@given(valid_configs())
def test_building_a_loadout_does_not_change_its_config(document):
    before = copy.deepcopy(document)
    report = check_config(document)
    assert report.ok, str(report)
    graph = build_graph(document)
    assert document == before
    assert set(graph.sockets) == set(document["loadouts"]["T"]["sockets"])
    for loop in graph.loops.values():
        assert any(graph.sockets[member].advance for member in loop.sockets)
        for member in loop.sockets:
            assert graph.sockets[member].iterator.loop == loop.id
    json.dumps([[fact.source, fact.text] for fact in graph.derived])


def test_loadout_with_a_thousand_sockets_is_built_quickly():
    sockets = {f"Socket-{n}": {"materia": "P", "edges": [edge(f"Socket-{n + 1}")]} for n in range(2, 1000)}
    sockets["Socket-1"] = {"materia": "G", "edges": [edge("Socket-2")]}
    sockets["Socket-1000"] = {"materia": "P", "edges": [edge("Socket-2")]}
    members = [f"Socket-{n}" for n in range(2, 1001)]
    loop = {
        "sockets": members,
        "consumes": {"from": "Socket-1"},
        "exits": [route("Socket-1000", "always", "end")],
    }
    document = config(sockets, loops={"L": loop})
    start = time.process_time()
    build_graph(document)
    assert time.process_time() - start < 1


def test_frozen_config_is_checked_once_and_mutable_config_each_time(monkeypatch):
    checked = []
    monkeypatch.setattr("materia_nb.loadout.check_graph.check_sockets", lambda _, facts: checked.append(facts.name))
    document = config({"Socket-1": {"materia": "P"}})
    fixed = frozen(document)
    for _ in range(2):
        assert check_config(fixed, "T").ok
        build_graph(fixed, "T")
    assert checked == ["T"]
    check_config(document, "T")
    document["materia"].clear()
    assert len(check_config(document).problems) == len(check_config(frozen(document)).problems)
    assert checked == ["T"] * 4


def test_price_of_cached_tokens_is_set_separately():
    plain, cached = Price(3.0, 15.0), Price(3.0, 15.0, 0.5)
    million = 1_000_000
    assert plain.cost(million, million) == 18.0
    assert plain.cost(million, 0, million) == 3.0, "cached tokens without a price cost as much as other tokens"
    assert cached.cost(million, 0, million // 2) == 1.75
    assert cached.cost(million, 0, 2 * million) == 0.5, (
        "the number of cached tokens cannot exceed the number of sent tokens"
    )
    assert (cached.cost(None, 1), cached.cost(1, None), cached.cost(0, 0)) == (None, None, 0)
