"""What the lessons in notebooks/ are made with: predicting the route, cells that check an answer, exercises.

``predict`` says whether a guess about the next step is right, without moving the cast; ``numbers`` draws those of a
lesson from the learner's name, and its ``check`` passes only when every question is answered, and answered rightly.
``exercise`` draws a loadout and questions from a seed, and brings no answers; ``clinic`` admits a mistake of the gallery.
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
