"""Test the built-in utilities under the names that the reference engine uses (R61)."""

from __future__ import annotations

import pytest

import cast_helpers as h


@pytest.mark.parametrize(
    "params, result",
    [
        ({"text": " as it is\n"}, " as it is\n"),
        ({"text": "this", "output": "not this"}, "this"),
        ({"output": {"satisfied": True}}, '{"satisfied": true}'),
        ({"output": "plain"}, "plain"),
        ({}, ""),
    ],
)
def test_r61_echo_writes_its_text_or_output(tmp_path, params, result):
    cast = h.start(tmp_path, h.one_config({"type": "utility", "utility": "echo", "params": params}))
    assert cast.run() == "complete"
    assert cast.steps[0].output == result


def test_r61_other_built_in_utilities_are_scripts_of_their_names(tmp_path):
    made = {"type": "utility", "utility": "vcs.detect", "parse": "json"}
    cast = h.start(tmp_path, h.one_config(made))
    assert cast.run() == "complete"
    assert "vcs" in cast.state
    made = {
        "type": "utility",
        "utility": "project.ensureIgnored",
        "parse": "json",
        "params": {"patterns": ["x/"]},
    }
    cast = h.start(tmp_path, h.one_config(made))
    assert cast.run() == "complete"
    assert (tmp_path / ".gitignore").read_text() == "x/\n"
