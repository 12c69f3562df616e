"""Test ``check --for pi-materia``, which reports features that the reference engine refuses or treats differently
(R74).
"""

from __future__ import annotations

import json

import pytest

from loadout_samples import config, edge, looped, route
from magics_helpers import line, text
from materia_nb.errors import MateriaError
from materia_nb.loadout.layers import BUNDLED
from materia_nb.loadout.rules.reference_rules import reference_report


def findings(document):
    report = reference_report(document, "T", [document])
    return {(finding.severity, finding.source) for finding in (*report.problems, *report.hints)}


def with_materia(**definition):
    document = config({"Socket-1": {"materia": "M"}})
    document["materia"] = {"M": definition}
    return document


@pytest.mark.parametrize(
    "document, source",
    [
        (config({"Plan": {"materia": "P"}}), "sockets.Plan"),
        (config({"Socket-1": {"materia": "P", "type": "agent"}}), "Socket-1.type"),
        (config({"Socket-1": {"materia": "P", "systemPrompt": None}}), "Socket-1.systemPrompt"),
        (config({"Socket-1": {"materia": "P", "edges": [edge("end", "failed")]}}), "Socket-1.edges[0].when"),
        (looped({"label": "items", "exit": route("Socket-3", "always", "Socket-4")}), "loops.L.label"),
        (with_materia(script={"kind": "shippedUtility", "name": "detect-vcs.py"}), "materia.M.script.name"),
        (with_materia(script={"kind": "shippedUtility", "name": "echo.mjs"}), "materia.M.script.name"),
        (with_materia(prompt="p", tools=["read"]), "materia.M.tools"),
    ],
)
def test_features_refused_by_the_reference_engine_are_reported_as_problems(document, source):
    assert findings(document) == {("problem", source)}


def test_loop_over_another_list_is_refused_if_pi_materia_would_use_a_generator_r27():
    loop = {"sockets": ["Socket-2", "Socket-3"], "iterator": {"items": "state.rows", "cursor": "row"}}
    document = config(
        {
            "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
            "Socket-2": {"materia": "P", "edges": [edge("Socket-3")]},
            "Socket-3": {"materia": "P", "advance": {"cursor": "row", "items": "state.rows", "when": "always"}},
        },
        loops={"L": loop},
    )
    refusal = {("problem", "loops.L.iterator")}
    sockets = document["loadouts"]["T"]["sockets"]
    assert findings(document) == refusal  # its members do not form a cycle
    sockets["Socket-3"]["edges"] = [edge("Socket-2")]
    assert findings(document) == set()
    sockets["Socket-1"]["edges"] = [edge("Socket-3", "satisfied"), edge("Socket-2")]
    assert findings(document) == refusal  # two edges of the generator enter it
    sockets["Socket-1"]["materia"] = "P"
    assert findings(document) == set()


FULL_ADVANCE = {"cursor": "workItemIndex", "items": "state.workItems", "when": "always"}
EMPTY_LIST = ("hint", "loops.L.exits")


def test_derived_advance_is_reported_until_the_config_contains_it_r15():
    document = looped({"exits": [route("Socket-3", "always", "Socket-4")]})
    [hint] = [hint for hint in reference_report(document, "T", [document]).hints if "advance" in hint.source]
    assert hint.source == "Socket-3.advance"
    assert "(R15)" in hint.message
    advance = json.loads(hint.hint.partition('"advance": ')[2].partition(", or")[0])
    document["loadouts"]["T"]["sockets"]["Socket-3"]["advance"] = advance
    assert findings(document) == {EMPTY_LIST}


@pytest.mark.parametrize("advance", [{}, {"when": "satisfied"}, {"items": "state.workItems"}])
def test_advance_is_reported_until_it_names_its_cursor_and_its_list_r14(advance):
    document = looped({"exits": [route("Socket-3", "always", "Socket-4")]}, Socket_3={"advance": advance})
    [hint] = [hint for hint in reference_report(document, "T", [document]).hints if "advance" in hint.source]
    assert "does not name its cursor and list (R14)" in hint.message
    completed = json.loads(hint.hint.partition('"advance": ')[2].partition(", or")[0])
    assert completed == {"cursor": "workItemIndex", "items": "state.workItems", **advance}
    document["loadouts"]["T"]["sockets"]["Socket-3"]["advance"] = completed
    assert findings(document) == {EMPTY_LIST}


def test_empty_list_is_reported_if_the_loop_is_entered_at_a_socket_without_an_exit_r16():
    document = looped({"exits": [route("Socket-3", "always", "Socket-4")]}, Socket_3={"advance": FULL_ADVANCE})
    [hint] = reference_report(document, "T", [document]).hints
    assert hint.source == "loops.L.exits"
    assert "ends the cast if the list is empty when 'Socket-2' is entered (R16)" in hint.message
    assert "the exit to Socket-4" in hint.message
    document["loadouts"]["T"]["sockets"]["Socket-1"]["edges"] = [edge("Socket-3")]
    assert findings(document) == set()


def test_generator_that_can_run_again_is_reported_r17():
    document = looped({"exits": [route("Socket-3", "always", "Socket-4")]}, Socket_3={"advance": FULL_ADVANCE})
    assert findings(document) == {EMPTY_LIST}
    document["loadouts"]["T"]["sockets"]["Socket-4"]["edges"] = [edge("Socket-1", "not_satisfied", maxTraversals=1)]
    assert findings(document) == {EMPTY_LIST, ("hint", "loops.L.consumes")}


def test_generator_that_can_run_again_only_before_its_loop_is_not_reported_r17():
    document = looped({"exits": [route("Socket-3", "always", "Socket-4")]}, Socket_3={"advance": FULL_ADVANCE})
    document["loadouts"]["T"]["sockets"]["Socket-1"]["edges"] = [edge("Socket-1", "not_satisfied", 2), edge("Socket-3")]
    assert findings(document) == set()


def two_lists(first_exit, cursor=None):
    """Return a config in which two generators each lead into a loop of one socket.

    ``first_exit`` is the target of the exit of the first loop, and ``cursor`` is the cursor of the second loop.
    """
    sockets = {
        "Socket-1": {"materia": "P", "parse": "json", "edges": [edge("Socket-2", "satisfied"), edge("Socket-4")]}
    }
    loops = {}
    for name, number, target, named in (
        ("L", 2, first_exit, {}),
        ("M", 4, "end", {"cursor": cursor} if cursor else {}),
    ):
        generator, member = f"Socket-{number}", f"Socket-{number + 1}"
        advance = {**FULL_ADVANCE, "cursor": cursor} if named else FULL_ADVANCE
        sockets[generator] = {"materia": "G", "edges": [edge(member)]}
        sockets[member] = {"materia": "P", "edges": [edge(member)], "advance": advance}
        exits = [route(member, "always", target)]
        loops[name] = {"sockets": [member], "consumes": {"from": generator, **named}, "exits": exits}
    return config(sockets, loops=loops)


def test_cursor_shared_with_an_earlier_loop_is_reported_r17():
    document = two_lists("Socket-4")
    [hint] = reference_report(document, "T", [document]).hints
    assert hint.source == "loops.M.consumes"
    assert "the cursor workItemIndex when 'Socket-4' creates new work items (R17)" in hint.message
    assert "after the route Socket-3 → Socket-4, it skips the first new items" in hint.message
    assert findings(two_lists("Socket-4", cursor="second")) == set()  # each loop moves its own cursor
    assert findings(two_lists("end")) == set()  # a cast enters only one of the loops


@pytest.mark.parametrize(
    "edges, message",
    [
        (
            [edge("Socket-1", "satisfied", 3), edge("Socket-1", "not_satisfied", 2)],
            "(R18): after 2 traversals of edge 1, the first traversal of edge 2 fails the cast",
        ),
        ([edge("Socket-1", "satisfied", 3), edge("Socket-2", "not_satisfied", 2)], None),
        ([edge("Socket-1", "not_satisfied", 3), edge("Socket-1", "not_satisfied", 2), edge("Socket-2")], None),
        ([edge("end", "satisfied", 3), edge("end", "not_satisfied", 2)], None),
    ],
)
def test_two_limited_edges_to_one_socket_are_reported_r18(edges, message):
    document = config({"Socket-1": {"materia": "P", "parse": "json", "edges": edges}, "Socket-2": {"materia": "P"}})
    hints = reference_report(document, "T", [document]).hints
    assert [hint.source for hint in hints] == (["Socket-1.edges"] if message else [])
    assert all("edges 1 and 2 to 'Socket-1'" in hint.message and message in hint.message for hint in hints)


def test_two_edges_to_one_socket_are_not_reported_if_only_one_is_limited_r18():
    edges = [edge("Socket-2", "satisfied", 3), edge("Socket-2", "not_satisfied")]
    sockets = {"Socket-1": {"materia": "P", "parse": "json", "edges": edges}, "Socket-2": {"materia": "P"}}
    assert findings(config(sockets)) == set()


@pytest.mark.parametrize(
    "when, condition, is_reported",
    [
        ("always", "always", True),
        ("satisfied", "not_satisfied", False),  # a retry of the current item, which both engines count per item
        ("not_satisfied", "not_satisfied", True),
    ],
)
def test_limited_edge_after_an_advance_is_reported_r18(when, condition, is_reported):
    """The reference engine fails at the third of five items if `maxTraversals` is 2."""
    sockets = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
        "Socket-2": {
            "materia": "P",
            "parse": "json",
            "edges": [edge("Socket-2", condition, 2)],
            "advance": {**FULL_ADVANCE, "when": when},
        },
    }
    exits = [route("Socket-2", when, "end")]
    loops = {"L": {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1"}, "exits": exits}}
    document = config(sockets, loops=loops)
    hints = [hint for hint in reference_report(document, "T", [document]).hints if "(R18)" in hint.message]
    assert [hint.source for hint in hints] == ["Socket-2.edges[0].maxTraversals"] * is_reported
    assert all("after 2 such traversals, the next one fails the cast" in hint.message for hint in hints)


@pytest.mark.parametrize(
    "parse, assign, is_reported",
    [
        ("json", {"seen": "lastOutput"}, True),
        ("text", {"seen": "lastOutput"}, False),
        ("json", {"lastOutput": "$.context"}, False),
    ],
)
def test_agent_that_assigns_its_json_from_lastoutput_is_reported_r2(parse, assign, is_reported):
    document = config({"Socket-1": {"materia": "P", "parse": parse, "assign": assign}})
    expected = {("hint", "Socket-1.assign.seen")} if is_reported else set()
    assert findings(document) == expected
    assert all("(R2)" in hint.message for hint in reference_report(document, "T", [document]).hints)


@pytest.mark.parametrize(
    "materia, edges, advance, is_reported",
    [
        ({"parse": "json"}, [edge("end", "not_satisfied"), edge("Socket-2")], None, True),
        ({"parse": "json"}, [edge("Socket-2")], {**FULL_ADVANCE, "when": "satisfied"}, True),
        ({"parse": "json"}, [edge("Socket-2")], FULL_ADVANCE, False),
        ({"parse": "json"}, [edge("end", "not_satisfied")], None, False),  # required in both engines
        ({}, [edge("end", "not_satisfied"), edge("Socket-2")], None, False),
        ({"type": "agent"}, [edge("end", "not_satisfied"), edge("Socket-2")], None, False),
    ],
)
def test_utility_that_must_return_a_verdict_in_pi_materia_is_reported_r7(materia, edges, advance, is_reported):
    utility = {"type": "utility", "command": ["true"], **materia}
    definition = utility if utility["type"] == "utility" else {"type": "agent", "prompt": "p", "tools": "none"}
    socket = {"materia": "M", "edges": edges, **({"advance": advance} if advance else {})}
    document = config({"Socket-1": socket, "Socket-2": {"materia": "P"}})
    document["materia"]["M"] = definition
    hints = [hint for hint in reference_report(document, "T", [document]).hints if "(R7)" in hint.message]
    assert [hint.source for hint in hints] == ["Socket-1.edges"] * is_reported


def test_utility_that_assigns_its_json_from_lastoutput_is_reported_r2():
    document = with_materia(type="utility", command=["true"], parse="json", assign={"seen": "lastOutput"})
    assert findings(document) == {("hint", "materia.M.assign.seen")}


def test_cycle_without_a_limit_is_reported_r18():
    sockets = {"Socket-1": {"materia": "P", "edges": [edge("Socket-2")]}, "Socket-2": {"materia": "P"}}
    back = edge("Socket-1", "not_satisfied")
    sockets["Socket-2"]["edges"] = [back]
    assert findings(config(sockets)) == {("hint", "Socket-1.edges")}
    back["maxTraversals"] = 2
    assert findings(config(sockets)) == set()


def test_endless_cycle_is_described_in_the_order_of_its_edges():
    targets = {"Socket-1": "Socket-3", "Socket-2": "Socket-1", "Socket-3": "Socket-2"}
    document = config({id_: {"materia": "P", "edges": [edge(to)]} for id_, to in targets.items()})
    [hint] = reference_report(document, "T", [document]).hints
    assert "the route Socket-1 → Socket-3 → Socket-2 → Socket-1 can repeat forever" in hint.message


def test_cycle_through_the_exit_of_an_empty_loop_is_reported_r18():
    exits = [route("Socket-3", "always", "Socket-4")]
    document = looped({"exits": exits}, Socket_3={"advance": FULL_ADVANCE})
    sockets = document["loadouts"]["T"]["sockets"]
    sockets["Socket-1"]["edges"] = [edge("Socket-3")]
    back = edge("Socket-3")
    sockets["Socket-4"]["edges"] = [back]
    [hint] = reference_report(document, "T", [document]).hints
    assert hint.source == "Socket-3.edges"
    assert "(R18): once no items are left for 'Socket-3', the route Socket-3 → Socket-4 → Socket-3" in hint.message
    back["maxTraversals"] = 2
    assert findings(document) == set()
    del back["maxTraversals"]
    document["loadouts"]["T"]["loops"]["L"]["exits"][0]["condition"] = "satisfied"  # not followed if the list is empty
    assert findings(document) == set()


def test_ignored_fields_are_reported():
    document = config({"Socket-1": {"materia": "P", "handoff": "envelope", "castContext": "none", "finalize": True}})
    document["budget"] = {"maxTokens": 1, "maxCostUsd": 1}
    ignored = ("Socket-1.handoff", "Socket-1.castContext", "Socket-1.finalize", "budget.maxCostUsd")
    assert findings(document) == {("hint", source) for source in ignored}


def test_check_magic_reports_problems_for_another_engine(shell, project):
    document = with_materia(prompt="p", tools=["read"])
    del document["activeLoadout"]
    (project / "one.json").write_text(json.dumps(document))
    line(shell, "load one.json")
    output = text(line(shell, "check --for pi-materia"))
    assert "pi-materia-refuses" in output
    assert "activeLoadout" in output
    assert "pi-materia-refuses" not in text(line(shell, "check"))
    with pytest.raises(MateriaError, match="checked for the engine 'pi'"):
        line(shell, "check --for pi")


def test_reference_engine_rejects_a_copy_without_the_materia_that_it_lacks(wb):
    wb.loadouts.copy("Plan-Build-Eval", "Mine")
    report = wb.check("Mine", engine="pi-materia")
    assert {problem.source for problem in report.problems} == {"materia.Plan", "materia.Eval"}
    assert all("pi-materia rejects the loadout, because no file defines" in p.message for p in report.problems)
    own = {hint.source: hint.message for hint in report.hints if "its own materia" in hint.message}
    assert own == {
        f"materia.{name}": f"pi-materia uses its own materia {name!r} here (R74)"
        for name in ("Build", "Maintain", "Narrate")
    }
    wb.loadouts.copy("Plan-Build-Eval", "Complete", materia=True)
    report = wb.check("Complete", engine="pi-materia")
    assert not report.problems
    assert not [hint for hint in report.hints if "its own materia" in hint.message]


def test_project_that_uses_materia_of_the_reference_engine_passes(wb, project):
    """A config file of pi-materia often places only materia that pi-materia itself defines."""
    sockets = {"Socket-1": {"materia": "Build", "edges": [edge("Socket-2")]}, "Socket-2": {"materia": "Mime-Bootstrap"}}
    document = {"activeLoadout": "Own", "loadouts": {"Own": {"entry": "Socket-1", "sockets": sockets}}}
    (project / ".pi").mkdir(exist_ok=True)
    (project / ".pi" / "pi-materia.json").write_text(json.dumps(document))
    wb.load()
    report = wb.check("Own", engine="pi-materia")
    assert not report.problems
    assert {hint.source for hint in report.hints if "own materia" in hint.message} == {
        "materia.Build",
        "materia.Mime-Bootstrap",
    }


def test_bundled_loadouts_that_the_reference_engine_lacks_or_defines_differently_are_reported(wb):
    assert "loadouts.Mime" in {problem.source for problem in wb.check("Mime", engine="pi-materia").problems}
    report = wb.check("Hojo-Consult", engine="pi-materia")
    assert "loadouts.Hojo-Consult" in {hint.source for hint in report.hints}


def test_only_bundled_loadouts_with_git_worktree_scripts_are_refused():
    document = json.loads(BUNDLED.read_text())
    for name in document["loadouts"]:
        problems = reference_report(document, name, [document]).problems
        assert {problem.source.split(".")[1] for problem in problems} <= {"Git-Spawn", "Git-Integrate", "Git-Finalize"}
