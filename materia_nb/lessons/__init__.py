"""Tools for the lessons in ``notebooks/``: predict routes, check answers, diagnose faulty loadouts.

- ``predict`` judges a guess about the next step without changing the cast.
- ``numbers`` draws the numbers of a lesson from the learner's name; their ``check`` requires every right answer.
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
)

__all__ = [
    "Numbers",
    "Patient",
    "PredictionView",
    "Question",
    "RouteView",
    "check",
    "clinic",
    "from_route",
    "numbers",
    "predict",
    "progress",
    "shortest_verdicts",
]
