"""A person at a terminal: how far a cast is, as a bar, and what it asks, answered there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from materia_nb.cast import Cast
from materia_nb.cast.views.status import StatusView
from materia_nb.errors import MateriaError
from materia_nb.magics import cast_display

_END = "."


class TerminalBar:
    """A bar on the standard error, below which nothing else is written while it is there."""

    def __init__(self, told: cast_display.Telling) -> None:
        self._told, self._words, self._began = told, "", time.monotonic()
        self._bar: Any = click.progressbar(
            length=1, file=sys.stderr, show_eta=False, item_show_func=lambda _: self._words
        )

    def update(self) -> None:
        """Bring the bar up to date, if it is there: short runs have none."""
        if time.monotonic() - self._began < cast_display.SHOW_AFTER_S:
            return
        done, total, self._words = self._told()
        self._bar.length, self._bar.pos = max(total, 1), done
        self._bar.current_item = done
        self._bar.render_progress()

    def close(self) -> None:
        """End its line."""
        if self._words:
            self._bar.render_finish()


@contextmanager
def bars() -> Iterator[None]:
    """Show bars on this terminal, if it is one, while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    cast_display.TERMINAL.append(TerminalBar)
    try:
        yield
    finally:
        cast_display.TERMINAL.pop()


def can_ask(*, as_json: bool) -> bool:
    """Whether somebody sits there who can be asked: what is written and what is read is a terminal."""
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def answer(cast: Cast) -> bool:
    """Show what a cast waits for, and let the person answer; whether they did, so that the cast can go on.

    An answer may have many lines; a line with a dot alone ends it. With an end of file (Ctrl-D) in its place the cast
    goes on waiting.
    """
    if cast.status == "complete" or not (cast.now.approvals.asking or cast.now.waiting_at or cast.now.held):
        return False
    click.echo(repr(StatusView(cast.now)))
    try:
        if cast.now.approvals.asking:
            _consent(cast)
        elif cast.now.held or (cast.now.waiting_at and cast.now.waiting_at.mode == "draft"):
            message = _lines("What should be different? Nothing, to accept it")
            cast.refine(message) if message else cast.accept()
        else:
            cast.reply(_lines("Your answer"))
    except EOFError:
        return False
    except MateriaError as error:  # a refused answer: it is asked for again
        click.echo(str(error).replace("%materia ", "materia "), err=True)
    return True


def _consent(cast: Cast) -> None:
    word = click.prompt("Approve", type=click.Choice(["yes", "no", "always"]), default="no")
    if word == "no":
        cast.approvals.deny("the person said no")
    else:
        cast.approvals.approve(always=word == "always")


def _lines(what: str) -> str:
    """Read an answer up to a line with a dot alone; raises EOFError where there is none."""
    click.echo(f"{what}; a line with {_END!r} alone ends it, Ctrl-D leaves the cast waiting:")
    found: list[str] = []
    while (line := input("> ")) != _END:
        found.append(line)
    return "\n".join(found)
