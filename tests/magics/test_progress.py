"""Test the progress bar of a long run in a terminal; tests/browser/test_progress.py covers notebooks."""

from __future__ import annotations

import sys
import threading

import pytest
from tqdm import tqdm

from materia_nb.magics import cast_display
from materia_nb.magics.cast_display import count_progress, run_progress


@pytest.fixture
def drawn(monkeypatch, capsys):
    """Return an event that is set when a progress bar is drawn in the terminal; bars appear without a delay."""
    event, display = threading.Event(), tqdm.display

    def display_and_set(bar, *args, **kwargs):
        shown = display(bar, *args, **kwargs)
        event.set()
        return shown

    monkeypatch.setattr(tqdm, "display", display_and_set)
    monkeypatch.setattr(cast_display, "SHOW_AFTER_S", 0)
    monkeypatch.setattr(cast_display, "_REDRAW_S", 0)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)  # capsys makes a stream for each phase
    return event


def test_terminal_shows_progress_until_the_run_ends(drawn, capsys):
    with count_progress("casts") as report:
        assert drawn.wait(20)
        drawn.clear()
        report(3, 1000)
        assert drawn.wait(20)
    text = capsys.readouterr().err
    assert "3 of 1,000 casts" in text
    assert text.endswith("\r"), "the line is empty"


def test_last_of_two_simultaneous_updates_is_drawn(monkeypatch, drawn, capsys):
    monkeypatch.setattr(cast_display, "_REDRAW_S", 0.1)
    with count_progress("casts") as report:
        assert drawn.wait(20)
        report(3, 1000)
        report(4, 1000)
        while "4 of 1,000 casts" not in capsys.readouterr().err:
            drawn.clear()
            assert drawn.wait(20)


def test_update_that_arrives_while_the_bar_is_created_is_drawn(monkeypatch, drawn, capsys):
    creating, reported, create = threading.Event(), threading.Event(), tqdm.__init__

    def create_slowly(bar, *args, **kwargs):
        creating.set()
        assert reported.wait(20)
        create(bar, *args, **kwargs)

    monkeypatch.setattr(tqdm, "__init__", create_slowly)
    with count_progress("casts") as report:
        assert creating.wait(20)
        report(3, 1000)
        reported.set()
        while "3 of 1,000 casts" not in capsys.readouterr().err:
            drawn.clear()
            assert drawn.wait(20)


def test_terminal_shows_the_position_of_a_cast(drawn, capsys, cast):
    with run_progress(cast):
        assert drawn.wait(20)
    assert "Plan, step 0" in capsys.readouterr().err


def test_progress_is_drawn_in_a_terminal_of_unknown_size(monkeypatch, drawn, capsys, cast):
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda _: (-1, -1))
    with run_progress(cast):
        assert drawn.wait(20)
    assert "Plan, step 0" in capsys.readouterr().err


def test_progress_is_not_drawn_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(cast_display, "SHOW_AFTER_S", 0)
    with count_progress("casts") as report:
        report(3, 1000)
    assert capsys.readouterr().err == ""
