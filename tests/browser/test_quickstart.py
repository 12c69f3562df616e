"""Test the quickstart notebook in JupyterLab with a real kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from browser.lab import Lab

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

pytestmark = pytest.mark.browser


@pytest.fixture
def quickstart(lab: Lab) -> Path:
    """Return a copy of the notebook without outputs, next to its loadouts, in a folder of the server."""
    book = nbformat.read(NOTEBOOKS / "00-quickstart.ipynb", as_version=4)
    book.cells = [cell for cell in book.cells if cell.cell_type == "code"]
    for cell in book.cells:
        cell.outputs = []
    path = lab.folder / "quickstart.ipynb"
    nbformat.write(book, path)
    shutil.copytree(NOTEBOOKS / "loadouts", path.parent / "loadouts", dirs_exist_ok=True)
    return path


def test_quickstart_runs_and_draws_its_graph(lab: Lab, quickstart: Path):
    lab.open(quickstart)
    lab.run_all()
    lab.wait_idle()
    sources = json.loads(quickstart.read_text(encoding="utf-8"))["cells"]
    errors = [
        (index, output.text)
        for index, cell in enumerate(sources)
        if "raises-exception" not in cell["metadata"].get("tags", ())
        for output in lab.outputs(index)
        if output.kind == "error"
    ]
    assert errors == []
    grid = next(i for i, cell in enumerate(sources) if "".join(cell["source"]) == "%materia grid")
    picture = lab.cell(grid).locator("svg, img").first
    assert picture.is_visible()
    assert len(lab.seen(cell=grid)) > 1_000
    assert len(lab.seen(cell=grid, dark=True)) > 1_000


def test_typo_shows_a_short_red_error_and_completion_offers_verbs_and_loadouts(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", "", "%materia lod loadouts/hello-utility.json"))
    lab.run_all()
    lab.wait_idle()
    (output,) = lab.outputs(2)
    assert output.kind == "error"
    assert "did you mean 'load'?" in lab.cell_text(2)
    assert "Traceback" not in lab.cell_text(2)
    assert {"state", "status", "step", "steps"} <= set(lab.complete(1, "%materia st"))
    assert "Plan-Build-Eval" in lab.complete(1, "%materia use Pl")


def test_hostile_text_is_not_executed(lab: Lab):
    hostile = "<img src=x onerror=window.__owned=1>"
    loadout = json.dumps(
        {
            "entry": "Socket-1",
            "sockets": {"Socket-1": {"materia": "M", "edges": [{"when": "always", "to": "end"}]}},
            "materia": {"M": {"label": hostile, "tools": "none", "prompt": f"{hostile} {{{{request}}}}"}},
        }
    )
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia define loadout Hostile\n{loadout}",
            f"%materia cast {hostile}",
            "%materia run",
            "%materia prompt",
            f"%%materia reply\n{hostile}",
            "%materia handoff",
            "%materia why",
            "%materia state",
            "%materia steps",
        )
    )
    lab.run_all()
    lab.wait_idle()
    assert lab.page.evaluate("window.__owned") is None
    assert hostile in lab.cell_text(6)
