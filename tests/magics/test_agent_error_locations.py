"""The report of an agent's exception names the cell and the line that define the agent."""

from __future__ import annotations

import re

import pytest

from magics_helpers import ASK, cell, line, run, text
from materia_nb.errors import MateriaError
from materia_nb.widgets.frontend import FONT


@pytest.fixture
def asked(shell):
    cell(shell, "define loadout Ask", ASK)
    return shell


def failed(shell):
    cast = line(shell, "cast x")
    with pytest.raises(MateriaError):
        cast.run(), cast.run()
    return cast.failure.message


def test_cell_function_is_located_by_cell_and_line(asked):
    asked.run_cell("def judge(turn):\n    return 1 / 0", store_history=True)
    asked.user_ns["wb"].agent("Judge", asked.user_ns["judge"])
    assert re.search(r"line 2 of cell In\[\d+\]", failed(asked))


def test_agent_cell_is_located_by_line(asked):
    run(asked, "%%materia agent Judge\nx = 1\nreturn x / 0")
    assert "line 3 of the cell %%materia agent Judge" in failed(asked)
    assert "traceback" in asked.user_ns["wb"].current.failure.hint


def test_traceback_can_be_shown(asked):
    with pytest.raises(MateriaError, match="No agent"):
        line(asked, "cast x") and line(asked, "why --traceback")
    run(asked, "%%materia agent Judge\nreturn 1 / 0")
    failed(asked)
    assert "ZeroDivisionError" in text(line(asked, "why --traceback"))


def test_canvas_font_is_supported_by_cytoscape():
    assert re.fullmatch(r'[\w\- "]+(?:\s*,\s*[\w\- "]+)*', FONT)
