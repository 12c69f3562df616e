"""Test that every gallery card behaves as described, that its test cases pass, and that its notebook runs."""

from __future__ import annotations

import json

import nbformat
import pytest

from magics_helpers import line
from materia_nb import Workbench
from materia_nb.cast.cases import read_case
from materia_nb.cast.gallery import gallery, notebook_of, open_card
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError

CARDS = tuple(gallery().values())
MISTAKES = gallery().of("mistake")


def each(cards):
    return pytest.mark.parametrize("card", cards, ids=lambda card: card.name)


def cast_of(card, document, project):
    bench = Workbench(project, bundled=False)
    bench.load(document)
    cast = bench.cast(card.request, agents={"*": dict(card.answers)})
    cast.run()
    bench.close()
    return cast


def test_gallery_contains_fourteen_patterns_and_ten_mistakes():
    assert [len(gallery().of(kind)) for kind in ("pattern", "mistake")] == [14, 10]
    assert len({card.loadout for card in CARDS}) == 24
    assert all(card.purpose.endswith(".") and len(card.purpose) < 140 for card in CARDS)
    assert all(1 < len(card.look) < 4 for card in CARDS if card.graph is not None)


@each(gallery().of("pattern"))
def test_pattern_has_no_hints_and_its_cast_completes_as_documented(card, project):
    assert (card.report.problems, card.report.hints) == ((), ())
    cast = cast_of(card, card.document, project)
    assert (cast.status, cast.now.warnings) == ("complete", ())


@each(MISTAKES)
def test_each_mistake_is_diagnosed_as_documented_and_its_fix_lets_the_cast_complete(card, project):
    wrong = card.diagnosis
    found = card.report.problems or card.report.hints
    assert wrong.code in [one.code for one in found]
    fixed = cast_of(card, card.fixed, project)
    assert fixed.status == "complete"
    assert {warning.code for warning in fixed.now.warnings} <= {"empty-loop"}
    if card.graph is None:
        return
    cast = cast_of(card, card.document, project)
    assert cast.route != fixed.route
    if wrong.step is not None:
        assert cast.steps.at(wrong.step).socket == wrong.socket


@each(CARDS)
def test_saved_tests_of_a_card_pass(card):
    own = {path.name.split(".")[1] for path in card.cases if path.parent == card.folder}
    assert own >= ({"cast"} if card.kind == "pattern" else {"fixed"})
    for path in card.cases:
        assert read_case(path).check() == []


@each([card for card in CARDS if card.graph is not None])
def test_stored_tests_of_a_card_are_the_tests_that_explore_generates(card, tmp_path):
    """Every possible end has a test and no others exist; make_docs.py generates the tests again when a loadout changes."""
    paths = ExploreView(card.graph, range(4)).save_tests(tmp_path)
    stored = [path for path in card.cases if path.parent != card.folder]
    assert [path.name for path in stored] == sorted(path.name for path in paths)
    assert stored
    for path in stored:
        kept, anew = (read_case(place / path.name).fields for place in (path.parent, tmp_path))
        assert kept["follows"] == f"../{card.name}.json"
        assert {**anew, "follows": kept["follows"]} == kept


def test_saved_test_of_a_card_fails_when_its_loadout_takes_another_route(tmp_path):
    card = gallery()["critic-loop"]
    case = card.cases[0]
    (tmp_path / case.name).write_bytes(case.read_bytes())
    document = card.fixed
    document["loadouts"][card.loadout]["sockets"]["Socket-2"]["edges"][1]["to"] = "end"
    (tmp_path / "critic-loop.json").write_text(json.dumps(document))
    assert any("Step 2 should be" in told for told in read_case(tmp_path / case.name).check())


@each(CARDS)
def test_notebook_of_a_card_runs_from_top_to_bottom(card, shell, monkeypatch):
    book = nbformat.from_dict(notebook_of(card))
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            result = shell.run_cell(cell.source)
            assert result.success == ("raises-exception" not in cell.metadata.get("tags", ())), cell.source
    if card.graph is not None:
        assert shell.user_ns["cast"].graph.name == card.loadout
    written = list(shell.user_ns["wb"].project.glob(f"{card.name}-tests/*.materia-case.json"))
    assert len(written) > 1
    for path in written:  # the others are what is stored, see above
        if path.name.startswith("cast."):
            assert read_case(path).check() == []


@each(MISTAKES)
def test_notebook_hides_the_cell_that_fixes_the_mistake(card):
    cells = notebook_of(card)["cells"]
    fixing = [cell for cell in cells if f"loadout {card.loadout}-Fixed" in "".join(cell["source"])]
    assert [cell["metadata"] for cell in fixing] == [{"jupyter": {"source_hidden": True}}]


@each(MISTAKES)
def test_exercise_about_a_mistake_accepts_only_correct_answers(card, shell, monkeypatch):
    cells = [cell for cell in notebook_of(card)["cells"] if cell["cell_type"] == "code"]
    load, *_, diagnose, mend = [
        one["source"]
        for one in cells
        if "raises-exception" in one.get("metadata", {}).get("tags", ())
        or f"define loadout {card.loadout}\n" in one["source"]
    ]
    shell.run_cell("%load_ext materia_nb")
    shell.run_cell(load)
    assert not shell.run_cell(diagnose).success
    assert not shell.run_cell(mend).success
    right = diagnose.replace("socket=...", f'socket="{card.diagnosis.socket}"')
    assert shell.run_cell(right.replace("step=...", f"step={card.diagnosis.step}")).success
    shell.user_ns["right"] = card.fixed["loadouts"][card.loadout] | {"materia": card.fixed["materia"]}
    assert shell.run_cell(mend.replace("patient.fix(mine)", "patient.fix(right)")).success


def test_exported_card_does_not_overwrite_files(bench):
    opened = bench.gallery("Raw Bread")
    assert opened.path == bench.project / "raw-bread.ipynb"
    assert 'href="./raw-bread.ipynb"' in opened._repr_mimebundle_()["text/html"]
    opened.path.write_text("mine")
    with pytest.raises(MateriaError, match=r"raw-bread\.ipynb already exists") as raised:
        bench.gallery("late-retry")  # by what check calls it
    assert raised.value.kind == "exists"
    assert opened.path.read_text() == "mine"
    with pytest.raises(MateriaError) as raised:
        open_card(opened.card, bench.project / "nowhere")
    assert raised.value.kind == "disk"


def test_error_for_an_unknown_card_suggests_the_nearest_name(bench):
    with pytest.raises(MateriaError, match="'raw-bred'") as raised:
        bench.gallery("raw-bred")
    assert "raw-bread" in raised.value.hint


def test_gallery_is_shown_as_cards_with_pictures(shell):
    bundle = line(shell, "gallery")._repr_mimebundle_()
    assert bundle["text/html"].count("<svg") == 23
    assert "One agent writes, another judges" in bundle["text/html"]
    assert "raw-bread" in bundle["text/plain"]
    assert not any(card.diagnosis.why in str(bundle) for card in MISTAKES), "to be diagnosed first"
    card = gallery()["late-retry"]._repr_mimebundle_()
    assert "What to look at" in card["text/html"]
    assert "cursor" not in card["text/html"].split("What to look at")[0]
    assert line(shell, "gallery critic-loop").path.exists()
