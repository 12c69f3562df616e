"""Test scripts/check_language.py, which counts vague names and awkward phrases."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_language.py"


@pytest.fixture
def check(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("check_language", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_vague_names_are_counted_in_every_kind_of_binding(check, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("found = 1\nedge = 2\ndef run(what, graph):\n    for one in graph:\n        print(one, told)\n")
    names = [name.text for name in check.python_names(path)]
    assert sorted(name for name in names if name in check.VAGUE) == ["found", "one", "what"]
    assert len(names) == 5


def test_translated_phrases_are_detected(check, tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""Say what came of a cast."""\nLIMIT = 3\n"""Maximum note length, in characters."""\n')
    assert [check._is_translated(sample.text) for sample in check.docstrings(path)] == [True, False]


def test_three_word_strings_outside_docstrings_count_as_messages(check, tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""A docstring of five words."""\nraise ValueError(f"no such {kind} of socket", "two words")\n')
    assert [sample.text for sample in check.messages(path)] == ["no such X of socket"]
