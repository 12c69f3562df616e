"""The lessons in notebooks/: their form, and check cells that pass for right answers only."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.lessons import Sealed, check, seal, sealed
from materia_nb.lessons.misreadings import ANY, MISREADINGS
from materia_nb.widgets.base import runs_of
from materia_nb.widgets.predict import PredictPanel

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = sorted(path.name for path in NOTEBOOKS.glob("[01]*.ipynb") if path.name[:2] != "00")
PAPERMILL = "01-edges.ipynb"


@cache
def book(name):
    return nbformat.read(NOTEBOOKS / name, as_version=4)


def code_cells(name):
    return [cell for cell in book(name).cells if cell.cell_type == "code"]


def answers_cell(name):
    tagged = [cell for cell in code_cells(name) if "parameters" in cell.metadata.get("tags", ())]
    assert len(tagged) == 1, "papermill takes one cell of parameters"
    return tagged[0]


@cache
def right_answers(name):
    """The sealed answers of a lesson, by the variable that they stand in."""
    found = {}
    for node in ast.parse(answers_cell(name).source).body:
        assert isinstance(node, ast.Assign)
        if isinstance(node.value, ast.Constant) and node.value.value is ...:
            continue  # what was there before is forgotten
        assert isinstance(node.value, ast.Call)
        assert node.value.func.id == "sealed", "what is stored cannot be read at a glance"
        found[node.targets[0].id] = sealed(node.value.args[0].value).open()
    assert found
    return found


# -- their form -----------------------------------------------------------------------------


def test_there_are_lessons_from_edges_to_being_on_duty():
    assert [name[:2] for name in LESSONS] == [f"{number:02}" for number in range(1, 17)]


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_has_a_picture_an_exercise_a_check_and_folded_solutions(name):
    cells, code = book(name).cells, code_cells(name)
    assert 8 <= len(cells) <= 18
    assert cells[0].source.startswith("# ")
    pictures = [
        place
        for place, cell in enumerate(cells)
        for out in cell.get("outputs", [])
        if "image/svg+xml" in out.get("data", {})
    ]
    assert pictures
    assert pictures[0] <= 3, "the picture is near the top, and stored"
    assert any(re.search(r"^%materia predict", cell.source, re.MULTILINE) for cell in code)
    assert any("check(" in cell.source for cell in code)
    last = cells[-1]
    assert last.cell_type == "markdown"
    assert "<details>" in last.source
    assert last.source.rstrip().endswith("</details>")
    for answer in right_answers(name):
        assert f"**{answer}**" in last.source, "every question has a solution"


@pytest.mark.parametrize("name", LESSONS)
def test_stored_outputs_are_whole_and_need_no_kernel(name):
    assert "widgets" not in book(name).metadata
    for cell in code_cells(name):
        assert cell.execution_count
        for out in cell.outputs:
            assert out.output_type != "error" or "not answered yet" in out.evalue
            data = out.get("data", {})
            assert "application/vnd.jupyter.widget-view+json" not in data
            if str(data.get("text/plain", "")).startswith(("Record of cast", "<picture of cast")):
                continue  # it names the cast, so that a reader can open it; fresh runs are compared without it
            told = str(data) + out.get("text", "")
            assert str(Path.cwd()) not in told
            assert not re.search(r"\d{4}-\d\d-\d\dT\d\d-\d\d|/tmp/|/home/", told)


@pytest.mark.parametrize("name", LESSONS)
def test_the_question_of_a_prediction_does_not_tell_the_answer(name):
    """The buttons are shown with what can be chosen; nothing was run for them."""
    shown = [
        out["data"]["text/plain"]
        for cell in code_cells(name)
        if re.search(r"^%materia predict$", cell.source, re.MULTILINE)
        for out in cell.outputs
        if "data" in out
    ]
    assert shown
    assert all("Where does the cast go after it?" in text for text in shown)
    assert not any("Right" in text or "Not this time" in text for text in shown)


# -- right and wrong answers -----------------------------------------------------------------


@pytest.fixture
def shell(project, monkeypatch):
    (project / "recordings").symlink_to(NOTEBOOKS / "recordings")
    monkeypatch.chdir(project)
    made = new_shell()
    yield made
    bench = made.user_ns.get("wb")
    if isinstance(bench, Workbench):
        bench.close()


def run(shell, source):
    """Run a cell; what it raised, None when it went well."""
    done = shell.run_cell(source)
    return done.error_before_exec or done.error_in_exec


def wrong(answer):
    """An answer of the same kind that is not right."""
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, int):
        return answer + 1
    if isinstance(answer, list):
        return [*answer[:-1], "Socket-1", "Socket-99"]
    return "Socket-99" if answer != "Socket-99" else "end"


def check_cell(name):
    (found,) = (cell for cell in code_cells(name) if "check(\n" in cell.source)
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_a_check_cell_passes_for_right_answers_only(name, shell):
    """The learner's own answers, right, wrong and missing, in the cells of the lesson itself."""
    right, cell = right_answers(name), check_cell(name)
    for one in code_cells(name):
        if one is not cell:
            assert run(shell, one.source) is None
    assert f'"{name.removesuffix(".ipynb")}",' in cell.source
    assert set(re.findall(r"^    (\w+)=\(\n? *\1,", cell.source, re.MULTILINE)) == set(right)
    for asked, answer in right.items():
        for entered, kind in ((wrong(answer), "wrong_answer"), (..., "no_answer")):
            shell.user_ns |= {**right, asked: entered}
            error = run(shell, cell.source)
            assert isinstance(error, MateriaError)
            assert error.kind == kind
            assert error.what.startswith(f"{len(right) - 1} of {len(right)} right, 1 ")
        for shown in re.findall(r"to see how it went: (.+)", error.what):
            assert run(shell, shown) is None
    shell.user_ns |= right
    assert run(shell, cell.source) is None, "right answers without a seal"


@pytest.mark.parametrize("name", LESSONS)
def test_a_wrong_answer_is_explained_by_what_was_misread(name):
    """No explanation is for a right answer, and none tells it."""
    explained, right = MISREADINGS[name.removesuffix(".ipynb")], right_answers(name)
    assert explained.keys() == right.keys()
    for asked, words in explained.items():
        assert ANY in words
        assert str(right[asked]).casefold() not in words
        if str(right[asked]).startswith("Socket"):
            assert not any(right[asked] in told for told in words.values())


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_that_nobody_answers_gets_no_mark(name):
    """The stored run is one of those: every cell ran, and the check says that nothing is answered."""
    (told,) = [out for out in check_cell(name).outputs if out.output_type == "error"]
    assert told.evalue.startswith(f"0 of {len(right_answers(name))} right")
    assert "✓" not in told.evalue
    assert "raises-exception" in check_cell(name).metadata["tags"]


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_goes_on_for_those_who_click_twice_and_correct_a_guess(name, shell):
    clicked = 0
    for cell in code_cells(name):
        done = shell.run_cell(cell.source)
        assert done.success or cell is check_cell(name), cell.source
        if isinstance(done.result, PredictPanel):
            panel = done.result
            for place in ("end", "end", *panel.buttons):
                panel.buttons[place].click()
                assert runs_of(panel.question.twin).wait(30)
            assert panel.answer is not None
            clicked += 1
            panel.close()
    assert clicked


@pytest.mark.parametrize("name", LESSONS)
def test_a_cell_may_be_run_twice_and_the_casts_above_may_be_used(name, shell):
    for cell in code_cells(name):
        done = shell.run_cell(cell.source)
        if cell is not check_cell(name):
            assert shell.run_cell(cell.source).success, cell.source
        bench = shell.user_ns.get("wb")
        if bench is not None and (current := bench.cast_) is not None and current.status == "ready":
            current.run()  # a button of a panel, or a cell of one's own
        assert done.success or cell is check_cell(name)


@pytest.mark.parametrize("name", LESSONS)
def test_code_fits_the_width_of_a_laptop(name):
    assert not [line for cell in code_cells(name) for line in cell.source.splitlines() if len(line) > 92]


@pytest.mark.parametrize("name", ["00-quickstart.ipynb", "20-critic-loop.ipynb", "21-approval.ipynb"])
def test_a_cast_with_buttons_is_the_last_cell_so_that_no_click_breaks_another(name):
    cells = code_cells(name)
    panels = [
        place
        for place, cell in enumerate(cells)
        if re.search(r"^(%materia cast .*|yours)\Z", cell.source, re.MULTILINE)
    ]
    shown = [place for place, cell in enumerate(cells) if cell.source.splitlines()[-1].startswith("wb.cast(")]
    assert [*panels, *shown] == [len(cells) - 1]


# -- check itself ----------------------------------------------------------------------------


def test_a_right_answer_passes_and_a_sealed_one_is_none():
    assert str(check(a=("Socket-2", "Socket-2"), b=(3, 3))) == "✓ a is right\n✓ b is right"
    assert str(check(a=(" socket-2", "Socket-2"))) == "✓ a is right"
    assert str(check(a=(["END"], ["end"]))) == "✓ a is right"
    with pytest.raises(MateriaError, match="not answered yet"):
        check(a=(sealed(seal(["x"])), ["x"]))


def test_all_questions_are_told_and_a_wrong_answer_says_what_was_misread():
    asked = {
        "visits_of_plant": (2, 3, "three.route"),
        "after_the_last_check": ("Socket-4",) * 2,
        "other": (..., 1),
    }
    with pytest.raises(MateriaError) as raised:
        check("03-loops", **asked)
    told = raised.value.what.splitlines()
    assert told[0] == "1 of 3 right, 1 wrong, 1 not answered yet."
    assert told[1] == "✗ visits_of_plant: 2 is not right."
    assert told[2] == "    There were two beds above. Here there are three."
    assert told[3] == "    to see how it went: three.route"
    assert told[4:] == [
        "✓ after_the_last_check is right",
        "○ other: not answered yet; write other = and a whole number",
    ]


@pytest.mark.parametrize(
    "answer, truth, told",
    [
        ("Socket-3", "Socket-2", "'Socket-3' is not right"),
        ("2", 2, "a whole number"),
        (1, True, "True or False"),
        ("Socket-1", ["Socket-1"], "a list"),
        (5, "Socket-1", "text"),
        (["a", "b"], ["a", "c"], "Its first is right"),
        (["a"], ["a", "c"], "Its first is right"),
        (["b"], ["a"], "wrong at the first"),
    ],
)
def test_a_wrong_answer_is_told_without_giving_it_away(answer, truth, told):
    with pytest.raises(MateriaError) as raised:
        check(mine=(answer, truth))
    assert raised.value.kind == "wrong_answer"
    assert told in raised.value.what
    assert "Socket-2" not in str(raised.value)


def test_a_missing_answer_says_what_to_write():
    with pytest.raises(MateriaError, match="mine: not answered yet; write mine = and a whole number"):
        check(mine=(..., 3))
    with pytest.raises(MateriaError, match="cannot be opened"):
        sealed("?").open()
    assert repr(Sealed(seal("Socket-1"))) == "<sealed>"


# -- unattended ------------------------------------------------------------------------------


@pytest.mark.skipif(
    importlib.util.find_spec("papermill") is None and not os.environ.get("CI"),
    reason="papermill is not installed; it is in the test extra",
)
def test_papermill_runs_a_lesson_and_enters_answers(tmp_path, monkeypatch):
    import papermill
    from papermill.exceptions import PapermillExecutionError

    monkeypatch.delenv("MATERIA_CONFIG", raising=False)
    source, project = NOTEBOOKS / PAPERMILL, tmp_path / "project"
    project.mkdir()

    def execute(**parameters):
        return papermill.execute_notebook(
            source, tmp_path / "out.ipynb", parameters=parameters, cwd=project, progress_bar=False
        )

    done = execute(**right_answers(PAPERMILL))
    assert "✓ after_the_last is right" in str(done.cells)
    with pytest.raises(PapermillExecutionError, match="not answered yet"):
        execute()
    with pytest.raises(PapermillExecutionError, match="after_the_last: 'Socket-1' is not right"):
        execute(after_the_last="Socket-1")
