"""Test that the report of an agent's exception names the cell and line that define the agent."""

from __future__ import annotations

import re

import pytest

from magics_helpers import ASK, cell, line, run, text
from materia_nb.errors import MateriaError
from materia_nb.widgets.frontend import FONT


@pytest.fixture
def ask_shell(shell):
    cell(shell, "define loadout Ask", ASK)
    return shell


def failure_message(shell):
    cast = line(shell, "cast x")
    with pytest.raises(MateriaError):
        cast.run(), cast.run()
    return cast.failure.message


def test_error_in_a_cell_function_is_located_by_cell_and_line(ask_shell):
    ask_shell.run_cell("def judge(turn):\n    return 1 / 0", store_history=True)
    ask_shell.user_ns["wb"].agent("Judge", ask_shell.user_ns["judge"])
    assert re.search(r"line 2 of cell In\[\d+\]", failure_message(ask_shell))


def test_error_in_an_agent_cell_is_located_by_line(ask_shell):
    run(ask_shell, "%%materia agent Judge\nx = 1\nreturn x / 0")
    assert "line 3 of the cell %%materia agent Judge" in failure_message(ask_shell)
    assert "traceback" in ask_shell.user_ns["wb"].current.failure.hint


def test_traceback_can_be_shown(ask_shell):
    with pytest.raises(MateriaError, match="No agent"):
        line(ask_shell, "cast x") and line(ask_shell, "why --traceback")
    run(ask_shell, "%%materia agent Judge\nreturn 1 / 0")
    failure_message(ask_shell)
    assert "ZeroDivisionError" in text(line(ask_shell, "why --traceback"))


def test_canvas_font_is_supported_by_cytoscape():
    assert re.fullmatch(r'[\w\- "]+(?:\s*,\s*[\w\- "]+)*', FONT)
