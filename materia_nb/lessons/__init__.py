"""Tools for the lessons in notebooks/: route predictions, cells that check answers, and exercises.

- ``predict`` judges a guess about the next step without changing the cast.
- ``numbers`` draws the numbers of a lesson from the learner's name; their ``check`` requires every right answer.
- ``exercise`` draws a loadout and questions, without answers, from a seed.
- ``clinic`` opens a faulty example of the gallery for diagnosis.
"""

from materia_nb.lessons.checks import Numbers, check, numbers, progress, shortest_verdicts
from materia_nb.lessons.misreadings import from_route
from materia_nb.lessons.questions import (
    Patient,
    PredictionView,
    Question,
    RouteView,
    clinic,
    predict,
    question,
)
from materia_nb.lessons.variants import Exercise, Night, exercise, night_shift

__all__ = [
    "Exercise",
    "Night",
    "Numbers",
    "Patient",
    "PredictionView",
    "Question",
    "RouteView",
    "check",
    "clinic",
    "exercise",
    "from_route",
    "night_shift",
    "numbers",
    "predict",
    "progress",
    "question",
    "shortest_verdicts",
]
