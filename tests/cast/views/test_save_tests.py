"""Test the cases that explore saves: one for each possible end, and one that covers all routes."""

from __future__ import annotations

import json

import pytest

from builders import asks, at, config, edge
from materia_nb.cast.cases import read_case
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError
from materia_nb.handoff.envelope_protocol import EnvelopeProtocol
from materia_nb.loadout import build_graph
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


def test_case_linked_to_a_config_file_fails_when_its_routing_changes(wb, tmp_path):
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
    with pytest.raises(MateriaError, match="handoff format of A"):
        ExploreView(build_graph(document), 0).save_tests(tmp_path)


def test_end_after_a_failed_visit_has_a_passing_case(tmp_path):
    document = config({"Do": asks(edge("Fix", "failed", most=1), edge("end")), "Fix": at("P", edge("Do"))})
    paths = ExploreView(build_graph(document), 0).save_tests(tmp_path)
    assert {path.name.partition(".")[0] for path in paths} == {"complete", "edge_traversals_exhausted-at-Do", "ways"}
    cases = [read_case(path) for path in paths]
    assert [case.check() for case in cases] == [[], [], []]
    (case,) = [case for case in cases if case.path.name.startswith("edge_traversals")]
    assert [visit["socket"] for visit in case.fields["expect"]["route"]] == ["Do", "Fix", "Do"]
    case.fields["config"]["loadouts"]["T"]["sockets"]["Do"]["edges"][0]["maxTraversals"] = 2
    assert any("should take 3 steps" in line for line in case.check())
