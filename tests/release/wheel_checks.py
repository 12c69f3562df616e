"""Test the wheel as a user installs it, alone and with each extra (``make wheel-test``).

Not part of the test suite, because installing the environments takes several minutes.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from typing import Any

import pytest

from wheel_helpers import ROOT, NewUser, build, pythons

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEVELOPER_EXTRAS = {"test", "bench", "local-model"}
"""Large extras for developers, which `make test`, `make bench` and `make demo-model` install."""
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - DEVELOPER_EXTRAS)
FEATURE_CODE = {
    "docs": "import furo, myst_parser, sphinx",
    "lab": "from materia_nb.display.blocks import png_of; "
    'assert png_of(\'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\')',
    "mcp": "import httpx2; from mcp import Client; from pathlib import Path; "
    "from materia_nb.shell.mcp_server import DesignServer; assert DesignServer(Path.cwd()).tools",
    "models": "from materia_nb.agents import ModelAgent; import anthropic, openai",
}
"""Code that uses the features of each extra; the modules of its distributions are imported as well."""

CAST = """
import materia_nb, pathlib, sys
assert pathlib.Path(materia_nb.__file__).is_relative_to(sys.prefix), materia_nb.__file__
wb = materia_nb.Workbench()
items = {"workItems": [{"title": "One", "context": "Do it."}]}
answers = {"Plan": items, "Eval": {"satisfied": True}, "Maintain": {"satisfied": True}, "Build": "", "Narrate": "End"}
cast = wb.cast("a guide", loadout="Plan-Build-Eval", agents={"*": lambda turn: answers[turn.materia_id]})
print(cast.run(), len(cast.route))
print(wb.cast("hi", loadout="Hello-Utility").run())
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.display.svg import graph_svg
assert "<svg" in graph_svg(wb.graph("Teach-Exits"), CastOverlay())
"""
IMPORTS = """
import sys
from importlib import import_module
from importlib.metadata import packages_distributions, requires
from packaging.requirements import Requirement
extra = sys.argv[1]
asked = [Requirement(one) for one in requires("materia-nb")]
mine = {
    one.name.lower().replace("_", "-")
    for one in asked
    if one.marker and not one.marker.evaluate({"extra": ""}) and one.marker.evaluate({"extra": extra})
}
assert mine, extra
names = sorted(
    name
    for name, owners in packages_distributions().items()
    if name.isidentifier() and mine.intersection(owner.lower().replace("_", "-") for owner in owners)
)
for name in names:
    if not name.startswith("_"):
        import_module(name)
print(*names)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("built")).wheel


def cells_after_a_run(stranger: NewUser, name: str) -> list[dict[str, Any]]:
    stranger.run("jupyter", "execute", "--allow-errors", "--inplace", f"lessons/{name}")
    cells = json.loads((stranger.home / "lessons" / name).read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    return code


def failed(cells: list[dict[str, Any]]) -> set[str]:
    return {cell["id"] for cell in cells for out in cell["outputs"] if out["output_type"] == "error"}


def assert_lesson_works(stranger: NewUser, name: str) -> None:
    """Assert that a copied lesson fails only at its unanswered questions, and not at all with correct answers."""
    cells = cells_after_a_run(stranger, name)
    checks = {cell["id"] for cell in cells if "raises-exception" in cell["metadata"].get("tags", ())}
    assert failed(cells) == checks
    assert len(checks) == 1
    path = stranger.home / "lessons" / name
    answers = stranger.run("python", "-m", "materia_nb.lessons", "key", path.stem, "")
    book = json.loads(path.read_text())
    (cell,) = [one for one in book["cells"] if "parameters" in one["metadata"].get("tags", ())]
    cell["source"] = answers
    path.write_text(json.dumps(book))
    assert failed(cells_after_a_run(stranger, name)) == set()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [f"3.{minor}" for minor in range(11, 15)])
def test_wheel_without_extras_runs_a_cast_and_copies_its_lessons(wheel, tmp_path, version):
    python = pythons().get(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    stranger = NewUser(tmp_path, python)
    stranger.install(wheel)
    stranger.run("python", "-m", "pip", "check")
    assert stranger.python(CAST).splitlines() == ["complete 5", "complete"]
    told = stranger.run("python", "-m", "materia_nb")
    assert "01-edges" in told
    assert "every edge and exit can be taken" in stranger.run("materia", "explore", "Teach-Edges")
    told = stranger.run("python", "-m", "materia_nb", "lessons", "lessons")
    assert "pip install" in told, "JupyterLab is an extra"
    with zipfile.ZipFile(wheel) as file:
        kept = {name for name in file.namelist() if name.startswith("materia_nb/notebooks/")}
    copied = {path for path in (stranger.home / "lessons").rglob("*") if path.is_file()}
    assert len(copied) == len(kept) > 12
    # These packages run a notebook but do not display it; a lesson needs no extra.
    stranger.run("python", "-m", "pip", "install", "-q", "ipykernel", "nbclient", "nbformat")
    assert_lesson_works(stranger, "01-edges.ipynb")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_provides_its_features_without_the_other_extras(wheel, tmp_path, extra):
    stranger = NewUser(tmp_path)
    stranger.install(wheel, extra)
    stranger.run("python", "-m", "pip", "check")
    stranger.python(CAST)
    stranger.run("python", "-m", "pip", "install", "-q", "packaging")
    assert stranger.run("python", "-c", IMPORTS, extra).strip()
    if extra in FEATURE_CODE:
        stranger.python(FEATURE_CODE[extra])
    if extra == "lab":
        assert "pip install" not in stranger.run("python", "-m", "materia_nb", "lessons", "lessons")
        assert_lesson_works(stranger, "01-edges.ipynb")
        extensions = stranger.run("jupyter", "labextension", "list")
        assert re.search(r"jupyter-cytoscape v\S+ .*enabled.*OK", extensions), extensions


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
