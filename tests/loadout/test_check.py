"""Test ``check``: the codes and paths of problems (R26, R27), for configs that may be any JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadout_samples import AGENT, UTILITY, config, edge, json_values, looped, route
from materia_nb.loadout import LoadoutError, build_graph, check_config
from materia_nb.loadout.check_fields import check_fields
from materia_nb.loadout.models import MODELS
from materia_nb.loadout.report import Findings, Report
from materia_nb.loadout.topology import SHIPPED_SCRIPTS

VECTORS = Path(__file__).parents[1] / "vectors"


def read_vectors(name):
    return [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines() if line]


def problems_of(document, loadout=None):
    return {(problem.code, problem.source) for problem in check_config(document, loadout).problems}


@given(json_values)
@example({"loadouts": {"T": {"entry": [], "sockets": {"Socket-1": {"edges": [{"to": {}, "when": []}]}}}}})
@example({"loadouts": {"T": {"sockets": {"a": 1}, "loops": {"L": {"sockets": [[], {}], "exit": {"from": []}}}}}})
@example({"limits": {"maxEdgeTraversals": 10**400}, "budget": {"maxTokens": float("nan")}})
def test_check_never_raises_on_any_json(document):
    report = check_config(document)
    for finding in (*report.problems, *report.hints):
        assert finding.code
        assert finding.message
        assert finding.hint
        str(finding)


@given(json_values, json_values)
def test_check_never_raises_on_any_loadout(socket, loop):
    document = config({"Socket-1": socket, "Socket-2": {"materia": "P"}}, loops={"L": loop, "M": {"exits": [loop]}})
    document["materia"]["X"] = socket
    report = check_config(document)
    if report.ok:
        build_graph(document)
    else:
        with pytest.raises(LoadoutError):
            build_graph(document, "T", {})


def test_all_problems_are_reported_at_once():
    document = config(
        {
            "Socket-1": {
                "materia": "Nobody",
                "edges": [{"when": "passed", "to": "Socket-9", "maxTraversals": 0}],
            },
            "bad id": {"materia": "P", "parse": "yaml"},
        },
        entry="Socket-7",
        limits={"maxEdgeTraversals": 0},
    )
    document["materia"]["P"]["prompt"] = " "
    assert problems_of(document) >= {
        ("unknown-endpoint", "entry"),
        ("unknown-materia", "Socket-1.materia"),
        ("invalid-edge-condition", "Socket-1.edges[0].when"),
        ("unknown-endpoint", "Socket-1.edges[0].to"),
        ("invalid-edge", "Socket-1.edges[0].maxTraversals"),
        ("invalid-socket-id", "sockets.bad id"),
        ("invalid-socket", "bad id.parse"),
        ("invalid-materia", "materia.P.prompt"),
        ("invalid-config", "limits.maxEdgeTraversals"),
    }


def test_problems_about_misspelt_names_suggest_the_nearest_name():
    document = config({"Socket-1": {"materia": "Buidl", "edges": [edge("Socket-11")]}})
    document["materia"]["Build"] = AGENT
    hints = {problem.source: problem.hint for problem in check_config(document).problems}
    assert "'Build'" in hints["Socket-1.materia"]
    assert "'Socket-1'" in hints["Socket-1.edges[0].to"]


@pytest.mark.parametrize(
    "id_, fine",
    [
        ("Socket-1", True),
        ("hello.World_2", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("end", False),
        ("1st", False),
        ("", False),
        ("ä", False),
        ("a/b", False),
        ("a\n", False),
    ],
)
def test_invalid_socket_ids_are_reported_as_problems_r26(id_, fine):
    problems = problems_of(config({id_: {"materia": "P"}}, entry=id_))
    assert (("invalid-socket-id", f"sockets.{id_}") in problems) is not fine
    assert bool(problems) is not fine


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
def test_max_traversals_is_a_positive_integer_r18(value):
    document = config({"Socket-1": {"materia": "P", "edges": [edge("end", maxTraversals=value)]}})
    assert problems_of(document) == {("invalid-edge", "Socket-1.edges[0].maxTraversals")}


def test_integer_may_be_written_as_a_float():
    graph = build_graph(config({"Socket-1": {"materia": "P", "edges": [edge("end", maxTraversals=3.0)]}}))
    assert graph.sockets["Socket-1"].edges[0].max_traversals == 3


@pytest.mark.parametrize(
    "limits, fine",
    [
        ({"repairAttempts": 0, "maxNoAdvanceCycles": 0, "maxEdgeTraversals": 1}, True),
        ({"repairAttempts": -1}, False),
        ({"maxNoAdvanceCycles": 1.5}, False),
        ({"maxEdgeTraversals": 0}, False),
        ({"maxEdgeTraversals": None}, False),
        ({"maxSocketVisits": "whatever"}, True),
    ],
)
def test_invalid_limits_are_reported_as_problems_r18_r19(limits, fine):
    assert check_config(config({"Socket-1": {"materia": "P"}}, limits=limits)).ok is fine


@pytest.mark.parametrize(
    "changed, field",
    [
        ({"tools": "all"}, "tools"),
        ({"tools": ["read", ""]}, "tools"),
        ({"tools": {"type": "custom"}}, "tools.tools"),
        ({"tools": None}, "tools"),
        ({"prompt": "  "}, "prompt"),
        ({"model": 5}, "model"),
        ({"multiTurn": "yes"}, "multiTurn"),
        ({"generator": 1}, "generator"),
        ({"parse": "yaml"}, "parse"),
        ({"type": "robot"}, "type"),
    ],
)
def test_invalid_agents_are_reported_as_problems_r26(changed, field):
    document = config({"Socket-1": {"materia": "P"}})
    document["materia"]["P"].update(changed)
    assert problems_of(document) == {("invalid-materia", f"materia.P.{field}")}


@pytest.mark.parametrize("tools", ["none", "readOnly", "coding", [], ["read"], {"type": "custom", "tools": ["read"]}])
def test_invalid_tool_scopes_are_reported_as_problems(tools):
    document = config({"Socket-1": {"materia": "P"}})
    document["materia"]["P"]["tools"] = tools
    wanted = tools["tools"] if isinstance(tools, dict) else tools
    kept = build_graph(document).sockets["Socket-1"].materia.tools
    assert kept == (wanted if isinstance(wanted, str) else tuple(wanted))


@pytest.mark.parametrize(
    "changed, field",
    [
        ({"command": None}, "command"),
        ({"command": "true"}, "command"),
        ({"command": []}, "command"),
        ({"command": ["echo", ""]}, "command[1]"),
        ({"command": ["echo", 1]}, "command[1]"),
        ({"timeoutMs": 0}, "timeoutMs"),
        ({"timeoutMs": True}, "timeoutMs"),
        ({"params": []}, "params"),
        ({"assign": {"x": 1}}, "assign.x"),
        ({"assign": {"x": "$.a["}}, "assign.x"),
        ({"script": {"kind": "shippedUtility", "name": "../x.py"}}, "script.name"),
        ({"script": {"kind": "shippedUtility", "name": "a\\b.py"}}, "script.name"),
        ({"script": {"kind": "other", "name": "x.py"}}, "script.kind"),
        ({"script": "x.py"}, "script"),
    ],
)
def test_invalid_utilities_are_reported_as_problems_r25_r26(changed, field):
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"].update({"command": None} if "script" in changed else {}, **changed)
    assert problems_of(document) == {("invalid-materia", f"materia.U.{field}")}


def test_utility_has_either_a_command_or_a_script_r25():
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"]["script"] = {"kind": "shippedUtility", "name": "detect-vcs.py"}
    assert problems_of(document) == {("invalid-materia", "materia.U.script")}


def test_missing_materia_type_is_inferred_from_the_fields():
    document = config({"Socket-1": {"materia": "A"}, "Socket-2": {"materia": "B"}})
    document["materia"]["A"] = {"tools": "none", "prompt": "p"}
    document["materia"]["B"] = {"command": ["true"]}
    graph = build_graph(document)
    assert [graph.sockets[id_].materia.kind for id_ in ("Socket-1", "Socket-2")] == ["agent", "utility"]


@pytest.mark.parametrize(
    "runs", [{"command": ["true"]}, {"script": {"kind": "shippedUtility", "name": "detect-vcs.py"}}]
)
def test_materia_with_both_a_prompt_and_a_program_needs_a_type_r38(runs):
    document = config({"Socket-1": {"materia": "A"}})
    document["materia"]["A"] = {"tools": "none", "prompt": "p", **runs}
    assert problems_of(document) == {("invalid-materia", "A")}
    document["materia"]["A"]["type"] = "agent"
    assert problems_of(document) == set()


def test_default_entry_is_the_first_socket_r36():
    document = config({"Socket-2": {"materia": "P", "edges": [edge("Socket-1")]}, "Socket-1": {"materia": "P"}})
    del document["loadouts"]["T"]["entry"]
    assert build_graph(document).entry == "Socket-2"
    assert ("missing-entry", "entry") in {(hint.code, hint.source) for hint in check_config(document).hints}


@pytest.mark.parametrize(
    "socket, problem",
    [
        ({"parse": "text"}, "parse"),
        ({"assign": {"workItems": "$.tasks"}}, "assign.workItems"),
        ({"assign": {".workItems.": "$.tasks"}}, "assign..workItems."),
    ],
)
def test_generator_agent_must_return_json_and_assign_its_items_r4(socket, problem):
    agent = config({"Socket-1": {"materia": "G", **socket}})
    assert problems_of(agent) == {("invalid-generator", f"Socket-1.{problem}")}
    assert check_config(config({"Socket-1": {"materia": "UG", **socket}})).ok


def test_sources_of_an_agent_socket_must_be_jsonpath_r11():
    for source, fine in [
        ("$.a.b.0", True),
        ("$", True),
        ("$.items[*].title", True),
        ("$.a[", False),
        ("state.[", True),
    ]:
        document = config({"Socket-1": {"materia": "P", "parse": "json", "assign": {"x": source}}})
        assert problems_of(document) == (set() if fine else {("invalid-socket", "Socket-1.assign.x")})


@pytest.mark.parametrize("field", ["cursor", "items"])
def test_fields_missing_from_an_advance_are_taken_from_the_iterator_r13(field):
    advance = {"cursor": "workItemIndex", "items": "state.workItems"}
    del advance[field]
    alone = config({"Socket-1": {"materia": "P", "advance": advance}})
    assert problems_of(alone) == {("invalid-socket", f"Socket-1.advance.{field}")}
    assert check_config(looped(Socket_3={"advance": advance})).ok


@pytest.mark.parametrize("when", [None, "$.x", "passed", True])
def test_advance_accepts_only_canonical_conditions_r14(when):
    document = looped(Socket_3={"advance": {"when": when}})
    assert problems_of(document) == {("invalid-edge-condition", "Socket-3.advance.when")}


@pytest.mark.parametrize(
    "consumes, problem",
    [
        ({}, ("missing-endpoint", "loops.L.consumes.from")),
        ({"from": "G"}, ("unknown-endpoint", "loops.L.consumes.from")),
        ({"from": "end"}, ("invalid-socket-id", "loops.L.consumes.from")),
        ({"from": "Socket-4"}, ("invalid-loop", "loops.L.consumes.from")),
        ({"from": "Socket-2"}, ("invalid-loop", "loops.L.consumes.from")),
        ({"from": "Socket-1", "output": "tasks"}, ("invalid-loop", "loops.L.consumes.output")),
        ({"from": "Socket-1", "cursor": 5}, ("invalid-loop", "loops.L.consumes.cursor")),
        ("Socket-1", ("invalid-loop", "loops.L.consumes")),
    ],
)
def test_loop_consumes_the_output_of_a_generator_r27(consumes, problem):
    assert problems_of(looped({"consumes": consumes})) == {problem}


@pytest.mark.parametrize("source", ["G", "Socket-4", "Socket-2"])
def test_error_for_a_wrong_loop_source_suggests_the_generator_r27(source):
    problem = check_config(looped({"consumes": {"from": source}})).problems[0]
    assert "'Socket-1'" in problem.hint


@pytest.mark.parametrize(
    "source, why",
    [
        ("Socket-4", "'Socket-4' is not a generator"),
        ("Socket-2", "'Socket-2' is a member of the loop that consumes its items"),
        ("Socket-1", "no edge leads from a generator into the loop"),
    ],
)
def test_unreachable_loop_is_reported_with_the_reason_r27(source, why):
    (problem,) = check_config(looped({"consumes": {"from": source}}, Socket_1={"edges": []})).problems
    assert problem.message == why


@pytest.mark.parametrize(
    "name, server, problems",
    [
        ("time_-1", {"command": "t"}, set()),
        ("time", {"url": "http://localhost/mcp"}, set()),
        ("the time", {"command": "t"}, {("invalid-config", "mcpServers.the time")}),
        ("time", {}, {("invalid-config", "mcpServers.time")}),
        ("time", {"command": "t", "url": "http://localhost"}, {("invalid-config", "mcpServers.time")}),
    ],
)
def test_mcp_server_needs_a_name_and_one_transport(name, server, problems):
    document = {**looped(), "mcpServers": {name: server}}
    assert problems_of(document) == problems


def test_loop_needs_exactly_one_edge_from_a_generator_r27():
    two_edges = looped(Socket_1={"edges": [edge("Socket-2", "satisfied"), edge("Socket-3")]})
    assert problems_of(two_edges) == {("invalid-loop", "loops.L.consumes")}
    other_socket = looped(Socket_4={"edges": [edge("Socket-2")]})
    assert check_config(other_socket).ok
    other_generator = looped(Socket_4={"materia": "UG", "edges": [edge("Socket-2")]})
    assert problems_of(other_generator) == {("invalid-loop", "loops.L.consumes")}


def test_generator_cannot_be_a_member_of_another_loop_r27():
    assert problems_of(looped(Socket_3={"materia": "G"})) == {("invalid-loop", "loops.L.sockets[1]")}


def test_exits_do_not_count_as_edges_of_the_loop_cycle_r27():
    document = looped({"exits": [route("Socket-3", "always", "Socket-2")]}, Socket_3={"edges": [edge("Socket-4")]})
    assert problems_of(document) == {("invalid-loop", "loops.L.sockets")}


def test_loops_over_the_same_generator_need_separate_cursors_r27():
    sockets = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2", "satisfied"), edge("Socket-3")]},
        "Socket-2": {"materia": "P", "edges": [edge("Socket-2")]},
        "Socket-3": {"materia": "P", "edges": [edge("Socket-3")]},
    }
    loops = {
        name: {"sockets": [id_], "consumes": {"from": "Socket-1"}}
        for name, id_ in [("A", "Socket-2"), ("B", "Socket-3")]
    }
    assert problems_of(config(sockets, loops=loops)) == {("invalid-loop", "loops.B.consumes.cursor")}
    loops["B"]["consumes"]["cursor"] = "second"
    assert check_config(config(sockets, loops=loops)).ok


@pytest.mark.parametrize(
    "legacy, problems",
    [
        ({"from": "Socket-3", "when": "satisfied"}, {("missing-endpoint", "loops.L.exit.to")}),
        ({"when": "satisfied", "to": "end"}, {("missing-endpoint", "loops.L.exit.from")}),
        ({"from": "Socket-3", "to": "end"}, {("invalid-edge-condition", "loops.L.exit.when")}),
        ({"from": "Socket-9", "when": "always", "to": "end"}, {("unknown-endpoint", "loops.L.exit.from")}),
        ([], {("invalid-loop", "loops.L.exit")}),
    ],
)
def test_every_field_of_a_legacy_exit_is_checked(legacy, problems):
    assert problems_of(looped({"exit": legacy})) == problems


@pytest.mark.parametrize(
    "advance, fields",
    [
        ({"cursor": "workItemIndex", "items": "state.workItems", "when": "satisfied"}, []),
        ({"when": "satisfied", "done": "end"}, []),
        ({}, ["when"]),
        ({"cursor": "i", "items": "state.rows", "when": "satisfied"}, ["cursor", "items"]),
    ],
)
def test_configured_advance_must_match_the_legacy_exit_r27(advance, fields):
    document = looped({"exit": {"from": "Socket-3", "when": "satisfied", "to": "end"}}, Socket_3={"advance": advance})
    assert problems_of(document) == {("invalid-loop", f"Socket-3.advance.{field}") for field in fields}


def test_guarded_legacy_exit_after_a_utility_with_text_output_is_refused_r15():
    document = looped({"exit": {"from": "Socket-3", "when": "satisfied", "to": "end"}}, Socket_3={"materia": "U"})
    document["materia"]["U"]["parse"] = "text"
    assert problems_of(document) == {("invalid-loop", "Socket-3.parse")}


@pytest.mark.parametrize(
    "edges, fine",
    [
        ([edge("Socket-2")], True),
        ([edge("Socket-2", "satisfied"), edge("Socket-2")], True),
        ([edge("Socket-2", "satisfied"), edge("Socket-4")], False),
        ([], False),
    ],
)
def test_socket_with_a_legacy_exit_needs_an_edge_back_into_the_loop_r27(edges, fine):
    document = looped(
        {"exit": {"from": "Socket-3", "when": "satisfied", "to": "end"}},
        Socket_2={"edges": [edge("Socket-2", "not_satisfied"), edge("Socket-3")]},
        Socket_3={"edges": edges},
    )
    assert problems_of(document) == (set() if fine else {("invalid-loop", "Socket-3.edges")})


def test_check_of_one_loadout_ignores_other_loadouts():
    document = config({"Socket-1": {"materia": "P"}})
    document["loadouts"]["Broken"] = {"entry": "nowhere"}
    document["materia"]["Broken"] = {"type": "utility"}
    assert not check_config(document).ok
    assert check_config(document, "T").ok
    assert build_graph(document, "T").name == "T"
    assert problems_of(document, "Tea") == {("invalid-config", "loadouts")}


def test_error_counts_problems_and_shows_the_first():
    document = config({f"Socket-{number}": {"materia": "Nobody"} for number in range(1, 9)})
    with pytest.raises(LoadoutError) as caught:
        build_graph(document)
    text = str(caught.value)
    assert "8 problems" in text
    assert "Socket-1.materia" in text
    assert "3 more" in text
    assert caught.value.kind == "refused"
    assert len(caught.value.report.problems) == 8


def test_large_broken_loadout_is_checked_in_bounded_time():
    sockets = {f"Socket-{number}": {"materia": "P", "edges": [edge(f"Sockel-{number}")]} for number in range(1, 1001)}
    start = time.process_time()
    assert len(check_config(config(sockets)).problems) == 1000
    assert time.process_time() - start < 10


def test_only_arguments_of_a_command_may_be_blank():
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"] = {**UTILITY, "command": ["printf", " "]}
    assert check_config(document).ok
    document["materia"]["U"]["command"] = [" "]
    assert problems_of(document) == {("invalid-materia", "materia.U.command[0]")}


def _places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


@given(st.data(), json_values)
def test_check_never_raises_on_a_config_with_one_replaced_value(data, value):
    vector = data.draw(st.sampled_from(read_vectors("validate.jsonl")))
    document = vector["config"]
    *way, last = data.draw(st.sampled_from([path for path in _places(document) if path]))
    node = document
    for key in way:
        node = node[key]
    node[last] = value
    if check_config(document).ok:
        build_graph(document)


@pytest.mark.parametrize("source", ['$.a[?(@.b =~ "(a+)+$")]', "$..a..a..a", "$.a.`sub(/(a+)+$/, x)`"])
def test_jsonpath_that_could_run_forever_is_refused(source):
    document = config({"Socket-1": {"materia": "P", "parse": "json", "assign": {"x": source}}})
    assert problems_of(document) == {("invalid-socket", "Socket-1.assign.x")}
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"]["assign"] = {"x": source}
    assert problems_of(document) == {("invalid-materia", "materia.U.assign.x")}


@pytest.mark.parametrize("alias", ["vcs.detect", "project.ensureIgnored", "echo"])
def test_built_in_utilities_of_the_reference_engine_are_included_r61(alias):
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"] = {"type": "utility", "utility": alias, "parse": "json"}
    assert check_config(document, "T") == Report()
    script = build_graph(document).sockets["Socket-1"].materia.script
    assert script["name"] in SHIPPED_SCRIPTS
    document["materia"]["U"]["command"] = ["true"]
    assert [(hint.code, hint.source) for hint in check_config(document, "T").hints] == [
        ("no-effect", "materia.U.utility")
    ]
    assert build_graph(document).sockets["Socket-1"].materia.script is None


@pytest.mark.parametrize("alias, told", [("vcs.Detect", "script"), ("Echo", "script"), (1, "script")])
def test_unknown_built_in_utility_is_reported_as_a_problem_r61(alias, told):
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"] = {"type": "utility", "utility": alias}
    (problem,) = check_config(document).problems
    assert problem.source == "materia.U.utility"
    assert told in problem.hint


ROWS = [row for model in MODELS for row in model.rows.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.model}.{row.field}")
def test_problem_with_a_field_names_the_field_and_its_allowed_values(row):
    model = next(model for model in MODELS if model.__name__.removesuffix("Fields") == row.model)
    findings = Findings()
    check_fields(findings, model, {row.field: "\0"}, "here")
    for problem in findings.entries:
        assert problem.source.startswith("here.")
        assert problem.hint.startswith(("write ", "name ", "list ", "remove "))


def test_invalid_value_with_a_lone_surrogate_is_reported_as_a_problem():
    document = config({"Socket-1": {"materia": "P", "assign": {"a": ["\ud800"]}}})
    assert problems_of(document) == {("invalid-socket", "Socket-1.assign.a")}


def test_each_invalid_part_of_a_command_is_reported_as_a_problem():
    document = config({"Socket-1": {"materia": "U"}})
    document["materia"]["U"]["command"] = ["x", "", 5, "a\0"]
    assert problems_of(document) == {("invalid-materia", f"materia.U.command[{place}]") for place in (1, 2, 3)}


def two_loops(first: dict, second: dict, **consumes) -> dict:
    """Return a loadout with two loops that share a member but have different ``consumes`` fields."""
    sockets = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "parse": "json", "edges": [edge("Socket-3")]},
        "Socket-3": {"materia": "P", "parse": "json", "edges": [edge("Socket-2")]},
    }
    members = ["Socket-2", "Socket-3"]
    loops = {
        "L": {"sockets": members, "consumes": {"from": "Socket-1"}, **first},
        "Lb": {"sockets": members, "consumes": {"from": "Socket-1", **consumes}, **second},
    }
    return config(sockets, loops=loops)


def an_exit(source: str, condition: str = "satisfied") -> dict:
    return {"exits": [{"id": "x", "from": source, "condition": condition, "targetSocketId": "end"}]}


def legacy_exit(source: str, when: str = "satisfied") -> dict:
    return {"exit": {"from": source, "when": when, "to": "end"}}


@pytest.mark.parametrize("first, second", [(an_exit, an_exit), (legacy_exit, legacy_exit), (legacy_exit, an_exit)])
def test_r66_problem_is_reported_if_two_loops_derive_an_advance_for_one_socket(first, second):
    document = two_loops(first("Socket-3"), second("Socket-3"), cursor="secondCursor")
    report = check_config(document)
    (problem,) = report.problems
    assert (problem.code, problem.source) == ("ambiguous-advance", "Socket-3.advance")
    assert "'L' and 'Lb'" in problem.message
    assert "set `from` of the exit of 'Lb' to another member" in str(problem)
    assert check_config(two_loops(first("Socket-3"), second("Socket-2"), cursor="secondCursor")).ok


def test_loop_with_a_member_that_is_null_is_reported():
    sockets = {"Plan": {"materia": "Plan", "edges": [{"when": "always", "to": "Build"}]}, "Build": None}
    loops = {"L": {"sockets": ["Build"], "consumes": {"from": "Plan", "output": "workItems"}}}
    materia = {"Plan": {"tools": "none", "prompt": "Plan", "generator": True}}
    report = check_config(
        {"loadouts": {"T": {"entry": "Plan", "sockets": sockets, "loops": loops}}, "materia": materia}
    )
    assert "Build" in [problem.source for problem in report.problems]
