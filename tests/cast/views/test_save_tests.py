"""Test the cases that explore saves: one for each possible end, and one that covers all routes."""

from __future__ import annotations

import json
import subprocess

import pytest

from builders import asks, at, config, edge, exit_route, loop
from materia_nb.cast.cases import read_case
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError
from materia_nb.handoff.envelope_protocol import EnvelopeProtocol
from materia_nb.loadout import build_graph
from materia_nb.shell.commands import main
from process_helpers import RUN_CASES
from protocol_helpers import OTHER_PROTOCOLS


def test_each_outcome_of_an_exploration_has_a_passing_case(wb, tmp_path):
    paths = wb.explore("Release", items=2).save_tests(tmp_path / "cases")
    assert {path.name.removesuffix(".materia-case.json") for path in paths} == {
        "complete",
        "edge_traversals_exhausted-at-Socket-3",
        "edge_traversals_exhausted-at-Socket-5",
        "no_advance_cycles_exhausted-at-Socket-4",
        "ways",
    }
    assert [read_case(path).check() for path in paths] == [[]] * 5


def test_saved_tests_cover_drafts_and_varying_utilities(tmp_path):
    document = config({"A": at("M", edge("B")), "B": at("U", edge("B", "not_satisfied", 1), parse="json")})
    view = ExploreView(build_graph(document), 0)
    paths = view.save_tests(tmp_path)
    assert len(paths) == 3
    assert [read_case(path).check() for path in paths] == [[], [], []]


def test_case_that_follows_a_config_file_fails_when_the_routing_changes(wb, tmp_path):
    document = json.loads(json.dumps(wb.loadouts.config.document))
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document))
    (first, *_) = wb.explore("Plan-Build-Eval", 1).save_tests(tmp_path / "cases", follows=file)
    assert read_case(first).check() == []
    document["loadouts"]["Plan-Build-Eval"]["sockets"]["Socket-2"]["edges"][0]["to"] = "Socket-4"
    file.write_text(json.dumps(document))
    assert read_case(first).check()


def test_sockets_whose_names_differ_only_in_case_have_separate_files(tmp_path):
    document = config({"A": at("P", edge("a"), edge("A", most=1)), "a": at("P", edge("a", most=1))})
    document["loadouts"]["T"]["sockets"]["A"] = at("U", edge("A", "satisfied", 1), edge("a"), parse="json")
    paths = ExploreView(build_graph(document), 0).save_tests(tmp_path)
    assert len({path.name.casefold() for path in paths}) == len(paths) == 3


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_saved_cases_of_other_protocols_pass(tmp_path, name):
    document = config({"A": at("P", parse="json", handoff=name)})
    paths = ExploreView(build_graph(document), 0).save_tests(tmp_path)
    assert [path.name.partition(".")[0] for path in paths] == ["complete", "held-at-A", "ways"]
    assert [read_case(path).check() for path in paths] == [[], [], []]


def test_saving_tests_with_malformed_answers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(EnvelopeProtocol, "overridden", EnvelopeProtocol.overridden - {"sample_outputs"})
    document = config({"A": at("P", parse="json", handoff="envelope")})
    with pytest.raises(MateriaError, match="handoff format of P"):
        ExploreView(build_graph(document), 0).save_tests(tmp_path)


def test_saved_test_of_a_cast_that_ends_with_a_failed_visit_passes(tmp_path):
    document = config({"Do": asks(edge("Fix", "failed", most=1), edge("end")), "Fix": at("P", edge("Do"))})
    paths = ExploreView(build_graph(document), 0).save_tests(tmp_path)
    assert {path.name.partition(".")[0] for path in paths} == {"complete", "edge_traversals_exhausted-at-Do", "ways"}
    cases = [read_case(path) for path in paths]
    assert [case.check() for case in cases] == [[], [], []]
    (case,) = [case for case in cases if case.path.name.startswith("edge_traversals")]
    assert [visit["socket"] for visit in case.fields["expect"]["route"]] == ["Do", "Fix", "Do"]
    case.fields["config"]["loadouts"]["T"]["sockets"]["Do"]["edges"][0]["maxTraversals"] = 2
    assert any("should take 3 steps" in line for line in case.check())


# -- rules ----------------------------------------------------------------------------------

EVALUATED = {"never": "Narrate", "without": "Eval", "since": "Build"}
BROKEN = 'The rule "never Narrate without Eval since Build" is broken: Plan → Build → Maintain → Narrate → complete.'


@pytest.fixture
def saved(wb, tmp_path):
    """Save a rule of Plan-Build-Eval, and return the test case and a function that changes the sockets."""
    document, file = json.loads(json.dumps(wb.loadouts.config.document)), tmp_path / "mine.json"

    def change(**edges):
        for socket, rows in edges.items():
            document["loadouts"]["Plan-Build-Eval"]["sockets"][socket.replace("_", "-")]["edges"] = rows
        file.write_text(json.dumps(document))

    change()
    *_, path = wb.explore("Plan-Build-Eval").save_tests(tmp_path / "cases", follows=file, rules=[EVALUATED])
    return read_case(path), change


def test_rule_is_saved_as_data_and_checked_for_all_answers(saved):
    case, change = saved
    assert case.path.name == "rules.materia-case.json"
    assert case.fields["ways"] == {"items": [0, 1, 2, 3], "rules": [EVALUATED]}
    assert case.check() == []
    change(Socket_3=[edge("Socket-4", "satisfied"), edge("Socket-2", "not_satisfied", 9)])
    assert case.check() == [], "another limit does not break the rule"
    change(Socket_2=[edge("Socket-4")])
    assert case.check() == [BROKEN]


def test_broken_rule_fails_in_pytest_and_in_the_shell(saved, capsys):
    case, change = saved
    before = case.path.read_text()
    change(Socket_2=[edge("Socket-4")])
    for options in ((), ("--materia-update",)):  # a broken rule is never accepted
        done = subprocess.run(
            [*RUN_CASES, *options, str(case.path)], cwd=case.path.parent, capture_output=True, text=True, check=False
        )
        assert "1 failed" in done.stdout, done.stdout + done.stderr
        assert BROKEN in done.stdout
        assert case.path.read_text() == before
    assert main(["check", "--format", "github", str(case.path)]) == 1
    shown = capsys.readouterr().out
    assert BROKEN in shown
    assert "delete the rule from this file" in shown


def test_saved_rule_about_a_removed_socket_fails(saved):
    case, _ = saved
    case.fields["ways"]["rules"][0]["without"] = "Evaluate"
    with pytest.raises(MateriaError, match="'Evaluate' is not a socket"):
        case.check()


@pytest.mark.parametrize(
    "rule, kind",
    [
        ({"never": "Narrate", "without": "Eval"}, "broken_rule"),
        ({"never": "Narrate", "without": "Evil"}, "unknown_socket"),
        ({"never": "failed", "sinse": "Eval"}, "usage"),
        ({"never": "budget"}, "no_witness"),
    ],
)
def test_rule_that_does_not_hold_is_not_saved(wb, tmp_path, rule, kind):
    with pytest.raises(MateriaError) as error:
        wb.explore("Plan-Build-Eval").save_tests(tmp_path / "cases", rules=[EVALUATED, rule])
    assert error.value.kind == kind
    assert not (tmp_path / "cases").exists()


def test_saved_route_may_name_the_target_after_a_skipped_loop(tmp_path):
    """Without items, a socket leads to the same exit whether its edge leads into the loop or to the end."""
    document = config(
        {"Plan": asks(edge("Do"), materia="G"), "Do": asks(edge("Do"), advance={})},
        {"L": loop("Do", exits=[exit_route("Do", "always", "end")])},
    )
    cases = [read_case(path) for path in ExploreView(build_graph(document), 0).save_tests(tmp_path)]
    (case,) = [case for case in cases if case.path.name.startswith("complete")]
    case.fields["expect"]["route"][0]["to"] = "end"
    assert case.check() == []
    case.fields["expect"]["route"][0]["socket"] = "Do"
    assert case.check()
