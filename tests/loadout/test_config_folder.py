"""Test the example configs in config/: ``check`` reports no findings, and ``explore`` finds every end."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from materia_nb import Workbench
from materia_nb.loadout import check_config, read_config

FOLDER = Path(__file__).parents[2] / "config"
EXAMPLES = sorted((FOLDER / "examples").glob("*.json"))
ENDS = {
    "coding-agents": {"complete": (), "edge_traversals_exhausted": ("Socket-3", "Socket-4")},
    "data-cleaning": {
        "complete": (),
        "edge_traversals_exhausted": ("Socket-3",),
        "no_advance_cycles_exhausted": ("Socket-2",),
    },
    "paper-with-critics": {"complete": (), "edge_traversals_exhausted": ("Socket-3", "Socket-4", "Socket-5")},
    "release-pipeline": {"complete": (), "edge_traversals_exhausted": ("Socket-4", "Socket-6", "Socket-7")},
}


@pytest.fixture
def wb(project):
    with Workbench(project, bundled=False) as bench:
        yield bench


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_no_findings_and_matches_the_schema(path):
    document = read_config(path)
    report = check_config(document)
    assert report.ok
    assert [hint for hint in report.hints if hint.code != "missing-command"] == []
    schema = json.loads((path.parent / document["$schema"]).read_text(encoding="utf-8"))
    assert list(Draft202012Validator(schema).iter_errors(document)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_explore_finds_every_expected_end_of_an_example(path, wb):
    wb.load(path)
    explored = wb.explore(wb.loadouts.chosen, items=range(4))
    assert explored.complete_search
    assert {end: tuple(sorted(sockets)) for end, sockets in explored.ends.items()} == ENDS[path.stem]
    assert (explored.never, explored.unreached, explored.stalls) == ([], (), ())


def test_readme_lists_every_example():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"(examples/{path.name})" not in readme] == []


def test_data_cleaning_example_cleans_a_file(wb, project, tmp_path):
    examples = shutil.copytree(FOLDER / "examples", tmp_path / "examples")
    (project / "people.csv").write_text("name,city\nAda,Berlin\nBo, berlin\nCy,Berlin\n", encoding="utf-8")
    wb.load(examples / "data-cleaning.json")
    answers = [{"replacements": {"berlin": "Berlin"}}, {"replacements": {" berlin": "Berlin"}}]
    script = {"Propose-Replacements": answers, "Report-Changes": "One city had two spellings."}
    cast = wb.cast("clean it", agents={"*": script})
    assert cast.run() == "complete"
    assert [item["title"] for item in cast.now.work_items] == ["city"]
    with (project / "people.cleaned.csv").open(encoding="utf-8") as file:
        assert {row["city"] for row in csv.DictReader(file)} == {"Berlin"}
