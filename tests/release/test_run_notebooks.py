"""Test that stored notebook outputs need no kernel and are reproducible."""

from __future__ import annotations

import json

import nbformat
import pytest

import run_notebooks

PICTURE = """
import ipywidgets

class Both(ipywidgets.IntSlider):
    def _repr_mimebundle_(self, **kwargs):
        return {**super()._repr_mimebundle_(**kwargs), "image/svg+xml": "<svg/>", "text/plain": "five"}

Both(value=5)
"""
RANDOM = """
import random, time
print(f"it took {time.monotonic()} s, cast 2026-01-01T00-00-00-{random.randrange(1000):03}Z")
"""
CASTS = """
%load_ext materia_nb
%materia use Hello-Utility
%materia cast hi
%materia run
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "user"))
    made = tmp_path / "notebooks"
    made.mkdir()
    return made


def store(folder, *sources, name="one.ipynb"):
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    cells[0].metadata.update({"execution": {"iopub.status.busy": "2026"}, "tags": ["kept"]})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={**kernel, "widgets": {}}), folder / name)
    return folder / name


def run(folder):
    return run_notebooks.main(folder, folder.parent / "scratch")


def test_stored_notebook_outputs_are_reproducible(folder, capsys):
    path = store(folder, PICTURE, RANDOM, CASTS)
    assert run(folder) == 0
    text = path.read_text()
    book = json.loads(text)
    assert "widgets" not in book["metadata"]
    assert "version" not in book["metadata"]["language_info"]
    assert book["cells"][0]["metadata"] == {"tags": ["kept"]}
    [picture] = book["cells"][0]["outputs"]
    assert picture["data"] == {"image/svg+xml": ["<svg/>"], "text/plain": ["five"]}
    assert "it took" in "".join(book["cells"][1]["outputs"][0]["text"])
    assert "complete after 1 step" in text
    assert [one.name for one in folder.iterdir()] == ["one.ipynb"], "its casts are elsewhere"

    assert run(folder) == 0
    assert path.read_text() == text
    assert capsys.readouterr().out.split() == ["one.ipynb:", "stored", "one.ipynb:", "unchanged"]

    path.write_text(text.replace("it took", "it needed"))
    assert run(folder) == 0
    assert "it needed" in "".join(json.loads(path.read_text())["cells"][1]["outputs"][0]["text"])


def test_failing_or_machine_dependent_notebook_is_not_stored(folder, capsys):
    bad = store(folder, "1 / 0", name="bad.ipynb").read_bytes()
    path = store(folder, "1", "import pathlib; pathlib.Path.cwd()", name="tells.ipynb").read_bytes()
    good = store(folder, "'fine'", name="unhurt.ipynb")
    assert run(folder) == 1
    assert (folder / "bad.ipynb").read_bytes() == bad
    assert (folder / "tells.ipynb").read_bytes() == path
    assert "fine" in str(json.loads(good.read_text())["cells"][0]["outputs"])
    told = capsys.readouterr().err
    assert "bad.ipynb: a cell failed" in told
    assert "tells.ipynb: the outputs of cell [2] contain a path of this machine" in told
