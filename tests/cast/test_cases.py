"""Test casts that are saved as test cases: their answers must take the same route through the loadout."""

from __future__ import annotations

import json
import subprocess

import pytest

from cast_helpers import items
from materia_nb.cast.cases import read_case
from materia_nb.errors import MateriaError
from process_helpers import RUN_CASES


@pytest.fixture
def case(cast, tmp_path):
    cast.run()
    return cast.export.test(tmp_path / "cases" / "retry")


def changed(path, change):
    given = json.loads(path.read_text())
    change(given)
    path.write_text(json.dumps(given))
    return read_case(path).check()


def test_saved_case_passes(case):
    assert case.name == "retry.materia-case.json"
    assert read_case(case).check() == []


def test_case_reports_changed_route_end_and_state(case):
    def no_retry(given):
        given["config"]["loadouts"]["Plan-Build-Eval"]["sockets"]["Socket-3"]["edges"][1]["to"] = "end"

    told = changed(case, no_retry)
    assert told[0] == "Step 3 should be Eval (a), followed by Build, but is Eval (a), followed by the end."
    assert any(line.startswith("state.context should be") for line in told)


def test_case_reports_a_missing_answer(case):
    def again(given):
        given["config"]["loadouts"]["Plan-Build-Eval"]["sockets"]["Socket-3"]["edges"][1]["to"] = "Socket-1"

    assert "The replay needs an answer: Plan answered only 1 time." in changed(case, again)


def test_case_that_follows_a_config_file_reports_changes_of_the_file(cast, tmp_path):
    cast.run()
    document = json.loads((cast.run_dir / "config.resolved.json").read_text())
    config = tmp_path / "mine.json"
    config.write_text(json.dumps(document))
    case = read_case(cast.export.test(tmp_path / "cases" / "follow", follows=config))
    assert case.check() == []
    document["loadouts"]["Plan-Build-Eval"]["sockets"]["Socket-3"]["edges"][1]["to"] = "end"
    config.write_text(json.dumps(document))
    assert any("The loadouts define this socket differently: edge 2" in line for line in case.check())


def test_case_of_a_cast_with_edits_and_corrections_passes(cast, tmp_path):
    cast.run(steps=1)
    cast.edit.items(items("other"))
    cast.run(steps=2)
    cast.edit.output({"satisfied": True, "context": "good"})
    cast.run()
    assert read_case(cast.export.test(tmp_path / "edited")).check() == []


def test_unfinished_cast_can_be_saved_as_a_passing_case(cast, tmp_path):
    cast.run(steps=3)
    cast.step(ask=False)
    assert read_case(cast.export.test(tmp_path / "half")).check() == []


@pytest.mark.parametrize(
    "text, told",
    [
        (None, "The case cannot be read: No such file"),
        ("", "This is not a case: it is not JSON"),
        ("[" * 100_000, "This is not a case: it is not JSON"),
        ("[]", "This is not a case: its format is not"),
        ("{}", "This is not a case: its format is not"),
        ('{"format": "materia-nb case 1"}', "This is not a case: it has no 'config'"),
    ],
)
def test_invalid_case_is_refused(tmp_path, text, told):
    path = tmp_path / "x.materia-case.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(MateriaError, match=told) as error:
        read_case(path)
    assert error.value.kind == ("no_case" if text is None else "bad_case")
    assert (error.value.where, error.value.hint) == (str(path), "write a test case with `cast.export.test(path)`")


def test_damaged_case_raises_an_error_with_its_path(case):
    with pytest.raises(MateriaError, match="damaged"):
        changed(case, lambda given: given.update(answers=[{"socket": "Socket-1"}]))


def test_pytest_runs_cases_and_reports_differences(case):
    other = case.with_name("broken.materia-case.json")
    other.write_text(case.read_text().replace('"ends": "complete"', '"ends": "failed"'))
    result = subprocess.run(
        [*RUN_CASES, str(case.parent)], cwd=case.parent, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in result.stdout, result.stdout + result.stderr
    assert "Expected end: failed. Actual end: complete." in result.stdout
    assert "Traceback" not in result.stdout
