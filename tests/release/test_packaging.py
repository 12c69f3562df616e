"""Test the package metadata: the version is defined once, and the README links resolve on a package index."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
import types
from pathlib import Path

import pytest

import materia_nb

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HOOK = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]


@pytest.fixture
def build(monkeypatch):
    """Return the module hatch_build.py with a replacement for hatchling, which is available only during a build."""
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_version_is_defined_once():
    assert "version" in PYPROJECT["project"]["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "materia_nb/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", materia_nb.__version__)


def test_readme_links_are_absolute_on_a_package_index(build):
    text = "[a](docs/a.md#b) ![c](docs/c.svg) [d](https://e.f) [g](#h)"
    made = build.absolute(text, "https://p/", "https://r/")
    assert made == "[a](https://p/docs/a.md#b) ![c](https://r/docs/c.svg) [d](https://e.f) [g](#h)"
    readme = build.absolute((ROOT / "README.md").read_text(encoding="utf-8"), **HOOK)
    assert not re.findall(r"\]\((?!https?:)", readme)


def test_source_distribution_contains_files_linked_from_the_readme():
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {f"/{link.split('/')[0]}" for link in links} <= set(included)
