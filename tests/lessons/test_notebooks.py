"""Test the lessons in notebooks/: their structure, and that check cells pass for correct answers only."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

from file_kernels import AsyncFileKernelManager
from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import frozen
from materia_nb.lessons import check, predict, progress
from materia_nb.lessons.__main__ import answer_key
from materia_nb.lessons.checks import PRACTICE, QUESTIONS, Numbers, guesses_file, read_guesses, shortest_verdicts
from materia_nb.loadout import build_graph
from materia_nb.widgets.base import NO_KERNEL_TEXT, runs_of
from materia_nb.widgets.predict import PredictPanel

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = sorted(path.name for path in NOTEBOOKS.glob("[01]*.ipynb") if path.name[:2] != "00")
NOTEBOOK_NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
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


def right_answers(name, learner=""):
    """Return the correct answers of a lesson, by variable."""
    return {asked: one.truth for asked, one in answer_key(name.removesuffix(".ipynb"), learner).items()}


def stem(name):
    return name.removesuffix(".ipynb")


# -- their form -----------------------------------------------------------------------------


def test_lessons_are_numbered_from_01_to_17():
    assert [name[:2] for name in LESSONS] == [f"{number:02}" for number in range(1, 18)]


@pytest.mark.parametrize("name", LESSONS)
def test_each_lesson_has_a_picture_an_exercise_a_check_and_folded_solutions(name):
    cells, code = book(name).cells, code_cells(name)
    assert 8 <= len(cells) <= 19
    assert cells[0].source.startswith("# ")
    pictures = [
        place
        for place, cell in enumerate(cells)
        for out in cell.get("outputs", [])
        if "image/svg+xml" in out.get("data", {})
    ]
    assert pictures
    assert pictures[0] <= 3, "the picture is near the top, and stored"
    asked = [re.findall(r"^%materia predict --as (\S+)$", cell.source, re.MULTILINE) for cell in code]
    names = [one for found in asked for one in found]
    assert names
    assert len(names) == len({*names})
    assert all(one.startswith(f"{stem(name)}/") for one in names), "the record says whose question it is"
    assert sum("mine.check(" in cell.source for cell in code) == 1
    assert sum(f'numbers("{stem(name)}"' in re.sub(r"\(\s+", "(", cell.source) for cell in code) == 1
    last = cells[-1]
    assert last.cell_type == "markdown"
    assert "<details>" in last.source
    assert last.source.rstrip().endswith("</details>")
    for answer in QUESTIONS[stem(name)]:
        assert f"**{answer}**" in last.source, "every question has a solution"


@pytest.mark.parametrize("name", LESSONS)
def test_answer_cell_shows_answer_forms_but_no_answers(name):
    lines = answers_cell(name).source.splitlines()
    for question in QUESTIONS[stem(name)]:
        (line,) = [line for line in lines if line.startswith(f"{question} = ...")]
        assert "  # " in line or lines[lines.index(line) - 1].startswith("# ")
    assigned = [node for node in ast.parse("\n".join(lines)).body if isinstance(node, ast.Assign)]
    assert all(isinstance(node.value, ast.Constant) and node.value.value is ... for node in assigned)
    assert len(assigned) == len(QUESTIONS[stem(name)])


@pytest.mark.parametrize("name", LESSONS)
def test_stored_outputs_are_complete_and_need_no_kernel(name):
    assert "widgets" not in book(name).metadata
    for cell in code_cells(name):
        assert cell.execution_count
        for out in cell.outputs:
            assert out.output_type != "error" or "not answered yet" in out.evalue
            data = out.get("data", {})
            assert "application/vnd.jupyter.widget-view+json" not in data
            if str(data.get("text/plain", "")).startswith(("Record of cast", "<picture of cast")):
                continue  # it names the cast, so that a reader can open it; fresh runs are compared without it
            shown = str(data) + out.get("text", "")
            assert str(Path.cwd()) not in shown
            assert not re.search(r"\d{4}-\d\d-\d\dT\d\d-\d\d|/tmp/|/home/", shown)


@pytest.mark.parametrize("name", LESSONS)
def test_prediction_question_does_not_reveal_the_answer(name):
    """The buttons offer the possible guesses, and no step runs before the learner guesses."""
    shown = [
        out["data"]["text/plain"]
        for cell in code_cells(name)
        if re.search(r"^%materia predict --as", cell.source, re.MULTILINE)
        for out in cell.outputs
        if "data" in out
    ]
    shown = [text for text in shown if text not in (NO_KERNEL_TEXT, "<picture>")]
    assert shown
    assert all("Where does the cast go after it?" in text for text in shown)
    assert not any("Right" in text or "Not this time" in text for text in shown)


# -- right and wrong answers -----------------------------------------------------------------


@pytest.fixture
def shell(project, monkeypatch):
    for needed in ("recordings", "loadouts", "night_shift.py"):
        (project / needed).symlink_to(NOTEBOOKS / needed)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    new_ipython = new_shell()
    yield new_ipython
    bench = new_ipython.user_ns.get("wb")
    if isinstance(bench, Workbench):
        bench.close()


def run(shell, source):
    """Run a cell and return the exception that it raised, or None."""
    result = shell.run_cell(source)
    return result.error_before_exec or result.error_in_exec


def wrong(answer):
    """Return a wrong answer that has the type of the correct answer."""
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, int):
        return answer + 1
    if isinstance(answer, list):
        return [*answer[:-1], "Socket-1", "Socket-99"]
    return "Socket-99" if answer != "Socket-99" else "end"


def check_cell(name):
    (found,) = (cell for cell in code_cells(name) if "mine.check(\n" in cell.source)
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_lesson_answered_correctly_records_no_wrong_guess(name, shell):
    """Every recorded prediction and answer is correct at the first attempt and names its lesson."""
    for cell in code_cells(name):
        if cell is answers_cell(name):
            shell.user_ns |= right_answers(name)
            continue
        result = shell.run_cell(cell.source)
        assert result.success, cell.source
        if isinstance(result.result, PredictPanel):
            panel = result.result
            panel.buttons[predict(panel.cast, "stop").outcome].click()
            assert runs_of(panel.question.fork).wait(30)
            panel.close()
    recorded_guesses = read_guesses(guesses_file())
    assert {recorded_guess.lesson for recorded_guess in recorded_guesses} == {stem(name)}
    rows = progress().rows
    assert all(row[2:] == ("1", "✓", "1") for row in rows), rows
    assert {row[1] for row in rows} >= QUESTIONS[stem(name)].keys()
    assert len(rows) > len(QUESTIONS[stem(name)]), "predictions as well"


@pytest.mark.parametrize("name", LESSONS)
def test_numbers_in_a_lesson_depend_on_the_learner(name):
    """The numbers depend on the learner's name but not on its case; only questions that use the numbers are marked."""
    asks, learners = QUESTIONS[stem(name)], ("", "ada", "ben")
    keys = [right_answers(name, learner) for learner in learners]
    assert all(found.keys() == asks.keys() for found in keys)
    for asked in PRACTICE.get(stem(name), ()):
        assert len({str(found[asked]) for found in keys}) == 1
    assert len({str(found) for found in keys}) > 1
    drawn = {"much": range(10_000)}
    assert Numbers("x", " ADA ", drawn).much == Numbers("x", "ada", drawn).much
    assert Numbers("x", "ada", drawn).much != Numbers("x", "ben", drawn).much


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("learner", ["", "ada"])
def test_hint_never_reveals_the_correct_answer(name, learner):
    for question, key in answer_key(stem(name), learner).items():
        assert key.hint, question
        assert not (str(key.truth).startswith("Socket") and key.truth in key.hint), question


@pytest.mark.parametrize("name", LESSONS)
def test_check_of_an_unanswered_lesson_marks_no_answer_as_correct(name):
    """All cells of the stored notebook were run, and its check reports that no question is answered."""
    (error,) = [out for out in check_cell(name).outputs if out.output_type == "error"]
    assert error.evalue.startswith(f"0 of {len(QUESTIONS[stem(name)])} right")
    assert "✓" not in error.evalue
    assert "raises-exception" in check_cell(name).metadata["tags"]


@pytest.mark.parametrize("name", LESSONS)
def test_check_cell_passes_only_for_correct_answers(name, shell):
    """The cells run with correct, wrong and missing answers, repeated clicks and corrected guesses."""
    clicked, check = 0, check_cell(name)
    for cell in code_cells(name):
        result = shell.run_cell(cell.source)
        assert result.success == (cell is not check), cell.source
        if isinstance(result.result, PredictPanel):
            panel = result.result
            for place in ("end", "end", *panel.buttons):
                panel.buttons[place].click()
                assert runs_of(panel.question.fork).wait(30)
            assert panel.answer is not None
            clicked += 1
            panel.close()
    assert clicked
    assert run(shell, check.source).kind == "no_answer"
    right = right_answers(name)
    first, count = next(iter(right)), len(right)
    every_wrong = {asked: wrong(answer) for asked, answer in right.items()}
    for entered, summary in (
        (every_wrong, f"0 of {count} right, {count} wrong."),
        ({**right, first: wrong(right[first])}, f"{count - 1} of {count} right, 1 wrong."),
        ({**right, first: ...}, f"{count - 1} of {count} right, 1 not answered yet."),
    ):
        shell.user_ns |= entered
        error = run(shell, check.source)
        assert isinstance(error, MateriaError)
        assert error.what.splitlines()[0] == summary
        for shown in re.findall(r"To see the cast, run: (.+)", error.what):
            assert run(shell, shown) is None
    shell.user_ns |= right
    assert run(shell, check.source) is None, "right answers"


@pytest.mark.parametrize("name", NOTEBOOK_NAMES)
def test_cells_can_be_run_twice_and_out_of_order(name, shell):
    """Each cell is followed by the previous cell and by itself again, and other casts run in between."""
    above = None
    for cell in code_cells(name):
        again = [cell] if above is None else [cell, above, cell]
        above = cell
        for one in again:
            result = shell.run_cell(one.source)
            assert result.success or "raises-exception" in one.metadata.get("tags", ()), one.source
        current = shell.user_ns["wb"].last_cast if name in LESSONS and "wb" in shell.user_ns else None
        if current is not None and current.status == "ready":
            current.run()  # a button of a panel, or a cell of one's own
    if name in LESSONS:
        assert repr(progress()) == "No answers yet. Answer a question in a lesson first.", "to run all is no guess"


@pytest.mark.parametrize("name", LESSONS)
def test_code_cells_fit_the_width_of_a_laptop_screen(name):
    assert not [line for cell in code_cells(name) for line in cell.source.splitlines() if len(line) > 92]


@pytest.mark.parametrize("name", ["00-quickstart.ipynb", "20-critic-loop.ipynb", "21-approval.ipynb"])
def test_only_the_last_cell_of_a_lesson_shows_a_panel(name):
    cells = code_cells(name)
    panels = [
        place
        for place, cell in enumerate(cells)
        if re.search(r"^(%materia cast .*|yours)\Z", cell.source, re.MULTILINE)
    ]
    shown = [place for place, cell in enumerate(cells) if cell.source.splitlines()[-1].startswith("wb.cast(")]
    assert [*panels, *shown] == [len(cells) - 1]


# -- check itself ----------------------------------------------------------------------------


def test_correct_answer_passes_in_any_equivalent_form():
    assert str(check(a=("Socket-2", "Socket-2"), b=(3, 3))) == "✓ a is right\n✓ b is right"
    assert str(check(a=(" socket-2", "Socket-2"))) == "✓ a is right"
    assert str(check(a=(("END",), ["end"]), b=(3.0, 3))) == "✓ a is right\n✓ b is right"
    with pytest.raises(MateriaError, match="not answered yet"):
        check(a=(None, ["x"]))


def test_answer_may_name_a_materia_instead_of_its_only_socket(bench):
    graph = bench.graph("Teach-Rework")
    drawn = Numbers("x", "", {})
    assert "is right" in str(
        drawn.check(graph, a=("draft", "Socket-1"), b=(["Draft", "Critique"], ["Socket-1", "Socket-2"]))
    )
    assert "is right" in str(drawn.check(graph, a=("Draft", "Draft"))), "a name that is asked for as such"
    with pytest.raises(MateriaError, match="Socket-2"):
        drawn.check(graph, a=("Critique", "Socket-1"))
    twice = build_graph(
        {
            "loadouts": {"Two": {"entry": "A", "sockets": {"A": {"materia": "M"}, "B": {"materia": "M"}}}},
            "materia": {"M": {"type": "agent", "tools": "none", "prompt": "x"}},
        },
        "Two",
    )
    with pytest.raises(MateriaError, match="M is the materia of A and B"):
        drawn.check(twice, a=("M", "A"))


def test_all_questions_are_judged_and_a_wrong_answer_gets_a_hint():
    mine = Numbers("03-loops", "", {"beds": [3], "refused": [1], "exit": ["always"]})
    asked = {
        "visits_of_plant": (3, 4, "yours.route"),
        "after_the_last_check": ("Socket-4",) * 2,
        "after_an_empty_plan": (..., "Socket-4"),
    }
    with pytest.raises(MateriaError) as raised:
        mine.check(**asked)
    lines = str(raised.value).splitlines()
    assert lines[:-1] == [
        "1 of 3 right, 1 wrong, 1 not answered yet.",
        "✗ visits_of_plant: 3 is not right.",
        "    Count one visit for each bed, and another visit for each refusal.",
        "    To see the cast, run: yours.route",
        "✓ after_the_last_check is right",
        "○ after_an_empty_plan: not answered yet; the answer is a socket, 'end' or 'stop', in quotes",
    ]


def test_shortest_list_of_verdicts_that_leads_to_a_state_is_found(bench):
    def play(*verdicts):
        left = list(verdicts)
        answers = {"Draft": lambda: "x", "Critique": lambda: {"satisfied": left.pop(0)}}
        return bench.cast("x", loadout="Teach-Rework", agents=answers)

    assert shortest_verdicts(play, lambda cast: cast.status == "complete") == [True]
    assert shortest_verdicts(play, lambda cast: cast.now.visits["Socket-1"] == 3) == [False, False]
    with pytest.raises(ValueError, match="No list of verdicts"):
        shortest_verdicts(play, lambda cast: cast.now.visits["Socket-1"] == 9)


@pytest.mark.parametrize(
    "answer, truth, explanation",
    [
        ("Socket-3", "Socket-2", "'Socket-3' is not right"),
        ("2", 2, "a whole number"),
        (1, True, "True or False"),
        ("Socket-1", ["Socket-1"], "a list"),
        (5, "Socket-1", "a socket"),
        (5, "Soup", "text"),
        (["a", "b"], ["a", "c"], "The first entry is right"),
        (["a"], ["a", "c"], "The first entry is right"),
        (["b"], ["a"], "first entry is wrong"),
        (["a", "end"], ["a"], "end is not a socket"),
    ],
)
def test_wrong_answer_is_explained_without_revealing_the_correct_answer(answer, truth, explanation):
    with pytest.raises(MateriaError) as raised:
        check(mine=(answer, truth))
    assert raised.value.kind == "wrong_answer"
    assert explanation in raised.value.what
    assert "Socket-2" not in str(raised.value)


def test_answer_typed_as_plain_data_can_equal_a_frozen_value():
    truth = frozen({"oven": 160, "pans": ["big"]})
    assert check(mine=({"oven": 160, "pans": ["big"]}, truth), theirs=(truth, truth))
    with pytest.raises(MateriaError, match=r"161.* is not right"):
        check(mine=({"oven": 161}, truth))


def test_message_for_a_missing_answer_describes_the_expected_form():
    with pytest.raises(MateriaError, match="mine: not answered yet; the answer is a whole number"):
        check(mine=(..., 3))


# -- unattended ------------------------------------------------------------------------------


@pytest.mark.skipif(
    importlib.util.find_spec("papermill") is None and not os.environ.get("CI"),
    reason="papermill is not installed; it is in the test extra",
)
def test_papermill_can_run_a_lesson_with_answers_as_parameters(tmp_path, monkeypatch):
    import papermill
    from papermill.exceptions import PapermillExecutionError

    monkeypatch.delenv("MATERIA_CONFIG", raising=False)
    source, project = NOTEBOOKS / PAPERMILL, tmp_path / "project"
    project.mkdir()

    def execute(**parameters):
        return papermill.execute_notebook(
            source,
            tmp_path / "out.ipynb",
            parameters=parameters,
            cwd=project,
            progress_bar=False,
            kernel_manager_class=AsyncFileKernelManager,
        )

    done = execute(**right_answers(PAPERMILL))
    assert "✓ after_the_last is right" in str(done.cells)
    with pytest.raises(PapermillExecutionError, match="after_the_last: 'Socket-1' is not right"):
        execute(after_the_last="Socket-1")


@pytest.mark.parametrize("name", NOTEBOOK_NAMES)
def test_stored_pictures_do_not_depend_on_inline_svg(name):
    """Untrusted notebooks and code hosts remove inline SVG from HTML, which would leave only its unformatted text."""
    for cell in json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            html = "".join(output.get("data", {}).get("text/html", ""))
            assert "<svg" not in html
            assert html.count("<img ") == html.count(' alt="')


# -- loadouts that the learner changes --------------------------------------------------------

MADE = {
    "10-complete.ipynb": (
        ("parse: json", "parse: json\n    advance: {when: satisfied}"),
        ("parse: json", "parse: json\n    advance: {when: not_satisfied}"),
    ),
    "01-edges.ipynb": (
        ("edges: [{when: not_satisfied, to: Socket-4}]", "edges: [{when: always, to: Socket-4}]"),
        ("edges: [{when: not_satisfied, to: Socket-4}]", "edges: [{when: satisfied, to: Socket-4}]"),
    ),
    "03-loops.ipynb": (
        ("condition: satisfied", "condition: always"),
        ("condition: satisfied", "condition: not_satisfied"),
    ),
    "04-rework.ipynb": (
        ("- {when: not_satisfied, to: Socket-1, maxTraversals: 2}", "- {when: always, to: Socket-3}\n  Socket-3: {materia: Draft}"),
        ("- {when: not_satisfied, to: Socket-1, maxTraversals: 2}", "- {when: always, to: end}"),
    ),
}  # fmt: skip
"""The text that a learner replaces in a lesson, with a replacement that solves the task and one that does not."""


@pytest.mark.parametrize("name", MADE)
def test_changed_loadout_is_judged_by_all_its_possible_casts(name, shell, capsys):
    *earlier, made, judge = code_cells(name)
    for cell in earlier:
        if cell.source.startswith(("%load_ext", "%%materia define")) or "%materia use" in cell.source:
            assert run(shell, cell.source) is None
    (old, solution), (_, wrong_change) = MADE[name]
    assert made.source.count(old) == 1
    for change, is_solved in ((old, False), (wrong_change, False), (solution, True)):
        assert run(shell, made.source.replace(old, change)) is None
        capsys.readouterr()
        assert run(shell, judge.source) is None
        assert ("Solved: " in capsys.readouterr().out) == is_solved, change
