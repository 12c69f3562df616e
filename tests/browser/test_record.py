"""A notebook that was saved shows the run as it ended: live, reopened, without trust, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser.lab import Lab

pytestmark = pytest.mark.browser

CELLS = (
    "%load_ext materia_nb",
    "%%materia agent *\nreturn {'satisfied': True, 'workItems': [{'title': 'a', 'context': 'b'}]} "
    "if 'workItems' in prompt else 'done'",
    "%materia cast --loadout Plan-Build-Eval bake a cake (don't burn it",
    "print('beside it')",
)


@pytest.fixture
def cast(lab: Lab) -> Path:
    path = lab.notebook(*CELLS)
    lab.open(path)
    lab.run_all()
    lab.cell(2).get_by_role("button", name="Step").first.wait_for()
    return path


def shown(lab: Lab) -> str:
    return lab.cell_text(2)


def pictures(lab: Lab) -> int:
    return lab.cell(2).locator(".jp-OutputArea-child > .jp-OutputArea-output img:visible").count()


def steps_recorded(lab: Lab, words: str) -> None:
    lab.page.wait_for_function(
        """(words) => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[2]
            .model.outputs.toJSON()).includes(words)""",
        arg=words,
    )


def without_kernel(lab: Lab, path: Path, trusted: bool) -> None:
    lab.page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")
    book = json.loads(path.read_text())
    book["metadata"].pop("widgets", None)
    again = path.with_name("again.ipynb")
    again.write_text(json.dumps(book))
    lab.close()
    lab.open(again)
    if trusted:
        lab.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.content.widgets.forEach(c => { c.model.trusted = true; })"
        )


def test_the_record_is_hidden_while_the_panel_lives_and_is_told_of_clicks(lab: Lab, cast: Path):
    assert pictures(lab) == 0
    assert "Record of cast" not in shown(lab)
    lab.cell(2).get_by_role("button", name="Step").first.click()
    steps_recorded(lab, "ready after 1 step")
    lab.cell(2).get_by_role("button", name="Run", exact=True).first.click()
    steps_recorded(lab, "after 5 steps")
    lab.screenshot("record-live", cell=2)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_reopened_notebook_shows_picture_and_outcome(lab: Lab, cast: Path, trusted: bool):
    lab.cell(2).get_by_role("button", name="Step").first.click()
    steps_recorded(lab, "ready after 1 step")
    without_kernel(lab, cast, trusted)
    lab.page.wait_for_function("() => document.body.innerText.includes('Record of cast')")
    assert "ready after 1 step" in shown(lab)
    assert "%materia resume 20" in shown(lab)
    assert pictures(lab) == 1
    for dark in (False, True):
        lab.screenshot(f"record-{'trusted' if trusted else 'untrusted'}", dark=dark)


def test_after_a_restart_the_record_stands_in_place_of_the_panel(lab: Lab, cast: Path):
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    lab.page.wait_for_function("() => document.body.innerText.includes('Record of cast')")
    assert not lab.cell(2).get_by_role("button", name="Step").first.is_visible()
    assert pictures(lab) == 1
    assert "beside it" in lab.cell_text(3)
    lab.screenshot("record-restarted")
