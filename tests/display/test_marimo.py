"""Test that marimo displays a cast as its picture and its steps as a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import materia_nb

    wb = materia_nb.Workbench()
    wb.use("Plan-Build-Eval")
    cast = wb.cast("a guide", agents={"Plan": lambda: {"workItems": [{"title": "<b>Outline", "context": "x"}]}})
    cast.step()
    cast
    return (cast,)


@app.cell
def _(cast):
    cast.steps
    return


if __name__ == "__main__":
    app.run()
"""


def test_marimo_shows_casts_as_pictures_and_steps_as_tables(tmp_path: Path):
    notebook, page = tmp_path / "guide.py", tmp_path / "guide.html"
    notebook.write_text(NOTEBOOK, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "marimo",
        "-q",
        "export",
        "html",
        str(notebook),
        "-o",
        str(page),
        "--no-sandbox",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stderr
    made = page.read_text(encoding="utf-8").encode().decode("unicode_escape", "replace")
    assert 'aria-label="loadout Plan-Build-Eval' in made
    steps = made[made.index('<th scope="col"') :]
    assert "1 item: &lt;b&gt;Outline" in steps, "escaped"
