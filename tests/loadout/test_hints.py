"""Test that each hint is given where it applies, and that a clean loadout has none (R4, R18, R21, R26, R28)."""

from __future__ import annotations

import pytest

from loadout_samples import AGENT, UTILITY, config, edge, looped, route
from materia_nb.insight.explore import Exploration
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.design import Design
from materia_nb.loadout.json_schema import config_schema
from materia_nb.loadout.models import MODELS
from stream_helpers import streams_config

ADVANCE = {"when": "satisfied"}


def hints(document):
    report = check_config(document)
    assert report.ok, str(report)
    assert all(hint.severity == "hint" for hint in report.hints)
    return {(hint.code, hint.source) for hint in report.hints if hint.code != "unused-materia"}


def plain(**fields):
    return config({"Socket-1": {"materia": "P", **fields}})


def with_exit(document):
    """Return the loop config with an exit to its last socket, so that ``check`` reports only the tested hint."""
    loadout = document["loadouts"]["T"]
    loadout["loops"]["L"].setdefault("exits", [route("Socket-3", "always", "Socket-4")])
    loadout["sockets"]["Socket-3"].setdefault("advance", ADVANCE)
    return document


def test_clean_loadout_has_no_hints():
    assert hints(plain()) == set()
    assert hints(with_exit(looped())) == set()


@pytest.mark.parametrize(
    "field, near",
    [("edgse", "edges"), ("Parse", "parse"), ("banana", None)],
)
def test_unknown_field_suggests_the_nearest_known_field_r28(field, near):
    (hint,) = [hint for hint in check_config(plain(**{field: 1})).hints if hint.code == "unknown-field"]
    assert hint.source == f"Socket-1.{field}"
    assert (f"'{near}'" in hint.hint) if near else ("remove the field" in hint.hint)


def test_unknown_fields_at_every_level_get_a_hint():
    document = with_exit(looped({"exits": [route("Socket-3", "always", "Socket-4", x=1)], "x": 1}))
    loadout = document["loadouts"]["T"]
    for place in (
        document,
        loadout,
        loadout["loops"]["L"]["consumes"],
        loadout["sockets"]["Socket-1"]["edges"][0],
    ):
        place["x"] = 1
    document["materia"]["P"]["x"] = 1
    document["limits"] = {"x": 1}
    assert hints(document) == {
        ("unknown-field", source)
        for source in (
            "x",
            "limits.x",
            "loops.L.x",
            "loops.L.exits[0].x",
            "loops.L.consumes.x",
            "Socket-1.edges[0].x",
            "materia.P.x",
        )
    }


def test_ignored_fields_get_a_hint_r4_r21():
    document = plain(limits={"maxVisits": 1}, command=["x"], advance={"cursor": "c", "items": "state.x", "done": "end"})
    document["limits"] = {"maxSocketVisits": 5}
    document["budget"] = {"maxCostUsd": 3, "stopAtLimit": False}
    document["eventing"] = {"enabled": False}
    document["materia"]["P"]["parse"] = "json"
    document["materia"]["P"]["timeoutMs"] = 5
    assert hints(document) == {
        ("no-effect", source)
        for source in (
            "Socket-1.limits.maxVisits",
            "Socket-1.command",
            "Socket-1.advance.done",
            "limits.maxSocketVisits",
            "budget.stopAtLimit",
            "materia.P.parse",
            "materia.P.timeoutMs",
        )
    }


def config_with_ineffective_fields(count):
    """Return a config whose sockets have an ineffective ``parse`` and whose materia has an invalid colour."""
    document = config({f"Socket-{n}": {"materia": "U", "parse": "text"} for n in range(1, count)})
    document["materia"]["U"]["color"] = "tael"
    return document


def test_many_ignored_fields_are_summarized_in_one_line_with_all_locations():
    report = check_config(config_with_ineffective_fields(5))
    folded = [hint for hint in report.hints if hint.code == "no-effect"]
    assert report.no_effect == tuple(folded)
    assert {hint.source for hint in folded} == {f"Socket-{n}.parse" for n in range(1, 5)} | {"materia.U.color"}
    assert report.no_effect_line == "5 fields have no effect: color, parse (4 times)"
    assert str(report).count("no effect") == 1
    assert report.no_effect_line in str(report)
    assert len(report.shown_hints) == len(report.hints) - 5
    assert all(str(hint) in str(report) for hint in report.shown_hints)


def test_few_ignored_fields_are_listed_individually():
    report = check_config(config_with_ineffective_fields(3))
    assert (report.no_effect, report.no_effect_line) == ((), "")
    assert report.shown_hints == report.hints
    assert all(str(hint) in str(report) for hint in report.hints)


@pytest.mark.parametrize("field", ["limits", "budget"])
def test_config_fields_inside_a_loadout_get_a_hint(field):
    document = plain()
    document["loadouts"]["T"][field] = {}
    (hint,) = [finding for finding in check_config(document).hints if finding.code == "no-effect"]
    assert hint.source == field
    assert "top level of the config" in hint.message


@pytest.mark.parametrize("colour, hinted", [("#12ab34", False), ("teal", False), ("tael", True), (7, True)])
def test_invalid_colour_gets_a_hint(colour, hinted):
    document = plain()
    document["materia"]["P"]["color"] = colour
    assert (("no-effect", "materia.P.color") in hints(document)) is hinted


def test_socket_fields_for_a_utility_are_ignored_r4():
    document = config({"Socket-1": {"materia": "U", "parse": "text", "assign": {"x": "$"}}})
    assert hints(document) == {("no-effect", "Socket-1.parse"), ("no-effect", "Socket-1.assign")}
    assert hints(config({"Socket-1": {"materia": "U", "parse": "json"}})) == set()


def test_non_canonical_socket_ids_get_a_hint_r26():
    assert hints(config({"hello": {"materia": "P"}}, entry="hello")) == {("socket-id", "sockets.hello")}


def test_unreachable_sockets_get_a_hint():
    document = config({"Socket-1": {"materia": "P"}, "Socket-2": {"materia": "P", "edges": [edge("Socket-1")]}})
    assert hints(document) == {("unreachable-socket", "Socket-2")}


def test_unused_materia_get_a_hint():
    document = plain()
    document["materia"] = {"P": AGENT, "Q": AGENT}
    assert [hint.source for hint in check_config(document).hints] == ["materia.Q"]
    assert check_config(document, "T").hints == ()


def test_guarded_edges_of_text_sockets_get_a_hint_r3():
    document = config({"Socket-1": {"materia": "P", "edges": [edge("end", "satisfied")]}})
    assert hints(document) == {("guard-on-text", "Socket-1.edges[0].when")}
    document["materia"]["P"] = {**UTILITY, "parse": "text"}
    assert hints(document) == {("guard-on-text", "Socket-1.edges[0].when")}
    document["materia"]["P"]["parse"] = "json"
    assert hints(document) == set()


def test_guarded_advance_and_exit_of_text_sockets_get_a_hint():
    document = looped({"exits": [route("Socket-2", "satisfied", "Socket-4")]}, Socket_2={"advance": ADVANCE})
    assert hints(document) == {
        ("guard-on-text", "Socket-2.advance.when"),
        ("guard-on-text", "loops.L.exits[0].condition"),
        ("empty-list-ends", "loops.L.exits"),
    }


def test_output_of_the_socket_before_a_guarded_legacy_exit_is_parsed_as_json_r15():
    document = looped({"exit": {"from": "Socket-3", "when": "satisfied", "to": "Socket-4"}})
    del document["loadouts"]["T"]["sockets"]["Socket-3"]["parse"]
    assert hints(document) == {("legacy-exit", "loops.L.exit"), ("empty-list-ends", "loops.L.exits")}


def test_edge_that_leaves_a_loop_gets_a_hint():
    document = with_exit(looped(Socket_3={"edges": [edge("Socket-2", "satisfied"), edge("Socket-4", "not_satisfied")]}))
    assert hints(document) == {("leaves-loop", "Socket-3.edges[1]")}


def test_retry_edge_next_to_an_always_exit_gets_a_hint():
    document = looped(
        {"exits": [route("Socket-3", "always", "Socket-4")]},
        Socket_3={"edges": [edge("Socket-2", "not_satisfied"), edge("Socket-2")]},
    )
    assert hints(document) == {("late-retry", "Socket-3.edges[0]")}


def test_limited_edge_that_is_taken_after_an_advance_gets_a_hint():
    edges = [edge("Socket-2", "not_satisfied", maxTraversals=2), edge("Socket-2", maxTraversals=2)]
    assert hints(with_exit(looped(Socket_3={"edges": edges}))) == {
        ("budget-on-advance", "Socket-3.edges[1].maxTraversals")
    }


def test_loop_or_foreach_that_never_advances_gets_a_hint():
    assert ("never-advances", "loops.L") in hints(looped(Socket_3={"edges": [edge("Socket-2")]}))
    rows = {"foreach": {"items": "lastJson.rows"}}
    assert hints(plain(**rows)) == {("never-advances", "Socket-1.foreach")}
    assert hints(plain(**rows, advance={})) == set()


def test_exits_that_are_never_taken_get_a_hint():
    other = looped({"exits": [route("Socket-2", "always", "Socket-4")]}, Socket_3={"advance": ADVANCE})
    assert hints(other) == {("idle-route", "loops.L.exits[0]"), ("exhausted-unmatched", "loops.L.exits")}
    opposite = looped({"exits": [route("Socket-3", "not_satisfied", "Socket-4")]}, Socket_3={"advance": ADVANCE})
    assert ("idle-route", "loops.L.exits[0]") in hints(opposite)


def fix_idle_exit(document):
    """Apply the fix of the idle exit; return its label, the exits and the advance."""
    design = Design("T", document["loadouts"]["T"], document)
    [hint] = [hint for hint in design.report.hints if hint.code == "idle-route"]
    fix = design.fix_of(hint)
    assert fix.suggestion, "a person decides"
    design.fix(hint)
    return fix.label, design.document["loops"]["L"].get("exits"), design.document["sockets"]["Socket-3"]["advance"]


def test_fix_makes_an_unused_exit_reachable_or_removes_it_if_it_conflicts_with_a_retry():
    exit_ = route("Socket-3", "not_satisfied", "Socket-4")
    document = looped({"exits": [exit_]}, Socket_3={"advance": ADVANCE, "edges": [edge("Socket-2")]})
    assert fix_idle_exit(document) == ("Advance Socket-3 after every result", [exit_], {"when": "always"})
    document["loadouts"]["T"]["sockets"]["Socket-3"]["edges"].insert(0, edge("Socket-2", "not_satisfied"))
    assert fix_idle_exit(document) == ("Remove the exit", None, ADVANCE)
    other = looped({"exits": [route("Socket-2", "always", "Socket-4")]}, Socket_3={"advance": ADVANCE})
    label, exits, _ = fix_idle_exit(other)
    assert (label, exits[0]["from"]) == ("Start the exit at Socket-3", "Socket-3")


def test_fix_for_an_empty_list_does_not_make_other_exits_unreachable():
    exits = [route("Socket-3", "satisfied", "Socket-4"), route("Socket-3", "not_satisfied", "end")]
    document = looped({"exits": exits}, Socket_3={"edges": [edge("Socket-2")]})
    design = Design("T", document["loadouts"]["T"], document)
    [hint] = [hint for hint in design.report.hints if hint.code == "empty-list-ends"]
    design.fix(hint)
    assert design.document["sockets"]["Socket-3"]["advance"] == {"when": "always"}
    assert not design.report.hints


def test_loop_without_an_exit_for_an_empty_list_gets_a_hint_r16():
    document = looped({"exits": [route("Socket-3", "satisfied", "Socket-4")]})
    assert hints(document) == {("empty-list-ends", "loops.L.exits")}
    document["loadouts"]["T"]["loops"]["L"]["exits"].append(route("Socket-3", "always", "Socket-4"))
    document["loadouts"]["T"]["sockets"]["Socket-3"]["advance"] = ADVANCE
    assert hints(document) == set()
    assert hints(looped({"exits": [route("Socket-3", "satisfied", "end")]})) == {("unreachable-socket", "Socket-4")}


def test_loop_without_an_exit_for_a_result_of_the_last_item_gets_a_hint_r16():
    loop = {"exits": [route("Socket-3", "satisfied", "Socket-4"), route("Socket-2", "always", "Socket-4")]}
    document = looped(loop, Socket_3={"advance": {}})
    assert ("exhausted-unmatched", "loops.L.exits") in hints(document)
    loop["exits"].append(route("Socket-3", "not_satisfied", "Socket-4"))
    assert ("exhausted-unmatched", "loops.L.exits") not in hints(looped(loop, Socket_3={"advance": {}}))


@pytest.mark.parametrize("when, other", [("satisfied", "not_satisfied"), ("not_satisfied", "satisfied")])
def test_guarded_edge_with_an_uncovered_result_gets_a_hint_r3(when, other):
    sockets = {
        "Socket-1": {"materia": "P", "parse": "json", "edges": [edge("Socket-2", when)]},
        "Socket-2": {"materia": "P"},
    }
    assert hints(config(sockets)) == {("lone-guard", "Socket-1.edges")}
    sockets["Socket-1"]["edges"].append(edge("end", other))
    assert hints(config(sockets)) == set()


def test_loop_that_names_two_lists_but_no_cursor_gets_hints():
    loop = {"sockets": ["Socket-2", "Socket-3"], "iterator": {"items": "state.rows"}}
    document = looped(loop, Socket_3={"edges": [edge("Socket-2")], "advance": {"when": "satisfied"}})
    hint_codes = hints(document)
    assert {("two-lists", "loops.L.iterator"), ("cursor-for-each", "loops.L.iterator")} <= hint_codes


def test_assignment_without_a_target_path_gets_a_hint_r11():
    assert hints(plain(parse="json", assign={".": "$.x"})) == {("assign-target", "Socket-1.assign..")}


def test_missing_active_loadout_gets_a_hint():
    document = plain()
    document["loadouts"]["S"] = document["loadouts"]["T"]
    assert hints(document) == set()
    del document["activeLoadout"]
    assert hints(document) == {("active-loadout", "activeLoadout")}


def test_every_field_is_documented():
    rows = [row for model in MODELS for row in model.rows.values()]
    assert {row.model for row in rows} == {model.__name__.removesuffix("Fields") for model in MODELS}
    assert all(row.description.endswith(".") and row.shape for row in rows)
    assert all(rule.startswith("R") for row in rows for rule in row.rules)
    assert len({(row.model, row.field) for row in rows}) == len(rows)
    assert {"from", "as", "targetSocketId", "maxTraversals", "timeoutMs", "maxCostUsd"} <= {row.field for row in rows}


def test_schema_uses_the_field_names_of_the_config():
    assert {"artifactDir", "loadouts", "materia"} <= config_schema()["properties"].keys()


def test_loop_that_ends_after_one_item_because_no_edge_matches_gets_a_hint():
    document = with_exit(looped())
    sockets = document["loadouts"]["T"]["sockets"]
    sockets["Socket-3"]["parse"] = "json"
    sockets["Socket-3"]["edges"] = [edge("Socket-2", "not_satisfied")]
    assert ("one-item", "Socket-3.edges") in hints(document)
    sockets["Socket-3"]["edges"].append(edge("Socket-2", "satisfied"))
    assert ("one-item", "Socket-3.edges") not in hints(document)


def test_member_without_edges_that_always_advances_gets_a_hint():
    loop = {"sockets": ["Socket-2", "Socket-3", "Socket-4"], "consumes": {"from": "Socket-1"}}
    loop["exits"] = [{"id": "done", "from": "Socket-4", "condition": "always", "targetSocketId": "end"}]
    document = looped(loop)
    sockets = document["loadouts"]["T"]["sockets"]
    sockets["Socket-3"]["parse"] = "json"
    sockets["Socket-3"]["edges"] = [edge("Socket-4", "satisfied"), edge("Socket-2", "not_satisfied")]
    sockets["Socket-4"]["edges"] = []
    assert ("one-item", "Socket-4.edges") in hints(document)
    sockets["Socket-4"]["edges"] = [edge("Socket-2")]
    assert ("one-item", "Socket-4.edges") not in hints(document)


# -- edges, rounds and variables --------------------------------------------------------------


def sources_of(code, document):
    return {source for found, source in hints(document) if found == code}


def test_shadowed_edges_get_a_hint_r3():
    twice = [edge("end", "satisfied"), edge("Socket-1", "satisfied"), edge("end")]
    assert sources_of("never-taken", plain(parse="json", edges=twice)) == {"Socket-1.edges[1]"}
    combined = [edge("end", "satisfied"), edge("Socket-1", "not_satisfied"), edge("end")]
    assert sources_of("never-taken", plain(parse="json", edges=combined)) == {"Socket-1.edges[2]"}
    utility = config({"Socket-1": {"materia": "U", "edges": combined}})
    assert sources_of("never-taken", utility) == set()  # a process need not say satisfied (R7)
    assert sources_of("never-taken", plain(parse="json", handoff="envelope", edges=combined)) == set()
    failing = [edge("end", "failed"), edge("Socket-1", "failed"), edge("end")]
    assert sources_of("never-taken", plain(edges=failing)) == {"Socket-1.edges[1]"}
    assert sources_of("never-taken", plain(parse="json", edges=failing)) == {"Socket-1.edges[1]"}


@pytest.mark.parametrize("edges", [["satisfied"] * 2, ["satisfied", "not_satisfied", "always"]])
def test_edges_with_a_never_taken_hint_are_unreachable_in_explore(edges):
    made = plain(parse="json", edges=[edge("end", when) for when in edges])
    e = Exploration(build_graph(made))
    assert {f"{source}.edges[{number - 1}]" for source, number in e.never} == sources_of("never-taken", made)


def test_cycle_without_an_exit_edge_gets_a_hint():
    def round_of(*edges):
        return config({"Socket-1": {"materia": "P", "parse": "json", "edges": [edge("Socket-2")]},
                       "Socket-2": {"materia": "P", "parse": "json", "edges": list(edges)}})  # fmt: skip

    assert sources_of("no-way-out", round_of(edge("Socket-1"))) == {"Socket-1.edges"}
    assert sources_of("no-way-out", round_of(edge("Socket-1", "satisfied"), edge("Socket-2", "not_satisfied")))
    assert not sources_of("no-way-out", round_of(edge("Socket-1", "not_satisfied"), edge("end")))
    assert not sources_of("no-way-out", round_of(edge("Socket-1", "not_satisfied")))  # satisfied ends it (R3)
    assert not sources_of("no-way-out", looped())
    stuck = round_of(edge("Socket-1"))
    e = Exploration(build_graph(stuck))
    assert not e.can("complete")


def with_reader(prompt, assign=None, **sockets):
    """Return a loadout in which Socket-3 reads a value that is assigned only on the path through Socket-2."""
    document = config(
        {
            "Socket-1": {
                "materia": "P",
                "parse": "json",
                "edges": [edge("Socket-2", "satisfied"), edge("Socket-3")],
            },
            "Socket-2": {"materia": "P", "assign": {"plan.text": "lastOutput"}, "edges": [edge("Socket-3")]},
            "Socket-3": {"materia": "R", **({"assign": assign} if assign else {})},
            **sockets,
        }
    )
    document["materia"]["R"] = {**AGENT, "prompt": prompt}
    return document


def test_variable_that_is_unset_on_some_route_gets_a_hint():
    report = check_config(with_reader("Read {{state.plan.text}}."))
    (hint,) = [finding for finding in report.hints if finding.code == "never-written"]
    assert (hint.source, "Socket-1 → Socket-3" in hint.message, "Socket-2" in hint.hint) == (
        "materia.R.prompt",
        True,
        True,
    )
    (never,) = [
        finding for finding in check_config(with_reader("Read {{plna.text}}.")).hints if finding.code == "never-written"
    ]
    assert "on any path" in never.message


@pytest.mark.parametrize(
    "prompt",
    [
        "{{request}} {{stateJson}} {{lastOutput}} {{lastJson.x}} {{item.title}} {{cursor.x}}",
        "{{state.context}}",
        "{{ }}",
        "{{state}}",
    ],
)
def test_variables_set_by_the_engine_get_no_hint(prompt):
    assert not sources_of("never-written", with_reader(prompt))


def test_variable_that_a_later_socket_sets_for_the_next_visit_gets_no_hint():
    document = config(
        {
            "Socket-1": {"materia": "R", "edges": [edge("Socket-2")]},
            "Socket-2": {"materia": "P", "parse": "json", "assign": {"review": "$.context"},
                         "edges": [edge("Socket-1", "not_satisfied", maxTraversals=2), edge("end")]},
        }
    )  # fmt: skip
    document["materia"]["R"] = {**AGENT, "prompt": "Write. {{state.review}}"}
    assert not sources_of("never-written", document)


def test_variable_for_lane_results_gets_a_hint_only_in_a_loadout_without_lanes():
    document = streams_config()
    assert "state.parallelResults" in document["materia"]["Tell"]["prompt"]
    assert not sources_of("never-written", document)
    assert sources_of("never-written", with_reader("{{state.parallelResults}}"))


def test_list_or_assignment_whose_source_is_never_set_gets_a_hint():
    assert sources_of("never-written", with_reader("x", {"b": "state.plan.text"})) == {"Socket-3.assign.b"}
    assert sources_of("never-written", plain(foreach={"items": "state.rows"}, advance={})) == {"Socket-1.foreach.items"}
    after = with_reader("x")
    after["loadouts"]["T"]["sockets"]["Socket-2"]["materia"] = "U"  # it may patch anything
    after["materia"]["R"]["prompt"] = "{{state.anything}}"
    del after["loadouts"]["T"]["sockets"]["Socket-1"]["edges"][1]
    assert not sources_of("never-written", after)


def test_shared_materia_may_use_variables_of_other_loadouts():
    made = with_reader("Read {{state.vcs}}.")
    made["loadouts"]["S"] = made["loadouts"]["T"]
    assert not [finding for finding in check_config(made, "T").hints if finding.code == "never-written"]


def test_assignment_from_a_text_output_gets_a_hint():
    document = plain(assign={"x": "$.y", "whole": "$", "n": "item.n"})
    assert hints(document) == {("assign-on-text", "Socket-1.assign.x")}
    document["loadouts"]["T"]["sockets"]["Socket-1"]["parse"] = "json"
    assert hints(document) == set()
    made = config({"Socket-1": {"materia": "U"}})
    made["materia"]["U"].update(parse="text", assign={"x": "$.y"})
    assert hints(made) == {("assign-on-text", "materia.U.assign.x")}


@pytest.mark.parametrize(
    "prompt, grows",
    [
        ("Of {{state.workItems}} do one.", True),
        ("{{stateJson}}", True),
        ("{{workItems}} {{item.title}}", True),
        ("Do {{item.title}} of {{itemJson}} after {{state.context}}.", False),
        ("The first is {{state.workItems.0}}.", False),
    ],
)
def test_prompt_with_the_whole_list_for_each_item_gets_a_hint(prompt, grows):
    sockets = {"Socket-1": {"materia": "Plan"}, "Socket-2": {"materia": "Work"}}
    sockets["Socket-1"]["edges"] = [{"when": "always", "to": "Socket-2"}]
    loop = {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1", "output": "workItems"}, "exits": []}
    document = {
        "loadouts": {"T": {"entry": "Socket-1", "sockets": sockets, "loops": {"each": loop}}},
        "materia": {
            "Plan": {"type": "agent", "tools": "none", "prompt": "{{stateJson}}", "generator": True},
            "Work": {"type": "agent", "tools": "none", "prompt": prompt},
        },
    }
    found = [
        (finding.code, finding.source) for finding in check_config(document).hints if finding.code == "prompt-grows"
    ]
    assert [source for _, source in found] == (["Socket-2"] if grows else [])
