"""Tools for the lessons in notebooks/: route predictions, cells that check answers, diagnoses and a night shift.

- ``predict`` judges a guess about the next step without changing the cast.
- ``numbers`` draws the numbers of a lesson from the learner's name; their ``check`` requires every right answer.
- ``clinic`` opens a faulty example of the gallery for diagnosis.
"""

from materia_nb.lessons.checks import Numbers, check, numbers, progress, shortest_verdicts
from materia_nb.lessons.misreadings import from_route
from materia_nb.lessons.questions import (
    Night,
    Patient,
    PredictionView,
    Question,
    RouteView,
    clinic,
    night_shift,
    predict,
)

__all__ = [
    "Night",
    "Numbers",
    "Patient",
    "PredictionView",
    "Question",
    "RouteView",
    "check",
    "clinic",
    "from_route",
    "night_shift",
    "numbers",
    "predict",
    "progress",
    "shortest_verdicts",
]
