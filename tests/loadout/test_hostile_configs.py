"""Test that malformed configs and impossible names cause clear errors and never library exceptions."""

from __future__ import annotations

from contextlib import suppress

import pytest

from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError

ODD = [
    None,
    5,
    "x",
    [],
    [1],
    {"a": 5},
    {"a": {"sockets": [1]}},
    {"a": {"sockets": 5, "loops": "x"}},
    {"a": {"sockets": {"b": 5}}},
]
VERBS = [
    "list loadouts",
    "list loadouts a",
    "list materia",
    "list materia a",
    "agent a person",
    "check",
    "show",
    "doctor",
    "grid",
]


@pytest.fixture
def shell(bench):
    return new_shell(bench)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("given", ODD)
def test_no_magic_verb_crashes_on_a_malformed_config(shell, bench, verb, given):
    for group in ("loadouts", "materia"):
        with suppress(MateriaError):
            bench.load({group: given})
        with suppress(MateriaError):
            repr(shell.run_line_magic("materia", verb))


@pytest.mark.parametrize("name", ["a\0b", "~no-such-person/x", "a" * 5000, "\ud800"])
def test_invalid_file_name_raises_one_clear_error(bench, name):
    for use in (
        bench.open,
        bench.resume,
        bench.load,
        bench.agents.recorded,
        lambda name: bench.agent("*", f"recorded:{name}"),
    ):
        with pytest.raises(MateriaError) as caught:
            use(name)
        str(caught.value)


@pytest.mark.parametrize("name", ["a\0b", "~no-such-person/x"])
def test_invalid_project_folder_raises_one_clear_error(name):
    with pytest.raises(MateriaError) as caught:
        Workbench(name)
    assert caught.value.hint
