"""The bar of a long run in a terminal; tests/browser/test_progress.py has the one of a notebook."""

from __future__ import annotations

import sys
import threading

import pytest

from materia_nb.magics import cast_display
from materia_nb.magics.cast_display import counting, running
from materia_nb.parallel import TerminalBar


@pytest.fixture
def drawn(monkeypatch, capsys):
    """Set when a bar has been drawn on a terminal, however short the run is."""
    event, draw = threading.Event(), TerminalBar.draw

    def draw_and_tell(bar, *status):
        draw(bar, *status)
        event.set()

    monkeypatch.setattr(TerminalBar, "draw", draw_and_tell)
    monkeypatch.setattr(cast_display, "SHOW_AFTER_S", 0)
    monkeypatch.setattr(cast_display, "_REDRAW_S", 0)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)  # capsys makes a stream for each phase
    return event


def test_a_terminal_shows_how_many_are_done_and_its_line_ends(drawn, capsys):
    with counting("casts") as tell:
        assert drawn.wait(20)
        tell(3, 1000)
    text = capsys.readouterr().err
    assert "3 of 1,000 casts" in text
    assert text.endswith("\n")


def test_a_terminal_shows_where_a_cast_is(drawn, capsys, cast):
    with running(cast):
        assert drawn.wait(20)
    assert "Socket-1, step 0" in capsys.readouterr().err


def test_a_line_is_as_long_as_the_terminal_and_hides_the_one_before(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    bar = TerminalBar()
    bar.draw(0, 0, "a" * 30)
    bar.draw(0, 0, "b")
    assert capsys.readouterr().err == "\r" + "a" * 19 + "\rb" + " " * 18


def test_nothing_is_drawn_where_no_terminal_is(monkeypatch, capsys):
    monkeypatch.setattr(cast_display, "SHOW_AFTER_S", 0)
    with counting("casts") as tell:
        tell(3, 1000)
    assert capsys.readouterr().err == ""
