"""Verbs of the lessons: predict."""

from __future__ import annotations

from typing import Any

from materia_nb import lessons
from materia_nb.magics.progress import running
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "predict",
    Argument(
        "socket",
        "where the next step leads: a socket, end, or stop; or a $variable",
        completes="socket",
    ),
    example="%materia predict Socket-2",
)
def predict(call: Call) -> Any:
    """Guess where the next step leads, and be told whether that is so, and why; the cast stays. Alone: with buttons."""
    current, guess = call.bench.current, call.get("socket")
    if guess is None:
        from materia_nb.widgets.predict import show

        return show(current)
    asked = lessons.question(current)
    try:
        with running(asked.twin):
            return asked.guess(guess)
    finally:
        asked.close()
