"""What the lessons in notebooks/ are made with: predicting the route, cells that check an answer, exercises.

``predict`` says whether a guess about the next step is right, without moving the cast; ``check`` passes only
when every question is answered, and answered rightly. The answers that a lesson brings with it are ``sealed``,
so that nobody reads them by accident. ``exercise`` draws a loadout and questions from a seed, and brings no answers; ``clinic`` admits a mistake of the gallery.
"""

from materia_nb.lessons.checks import Sealed, check, progress, seal, sealed
from materia_nb.lessons.questions import (
    Patient,
    PredictionView,
    Question,
    RouteView,
    clinic,
    predict,
    question,
)
from materia_nb.lessons.variants import Exercise, exercise

__all__ = [
    "Exercise",
    "Patient",
    "PredictionView",
    "Question",
    "RouteView",
    "Sealed",
    "check",
    "clinic",
    "exercise",
    "predict",
    "progress",
    "question",
    "seal",
    "sealed",
]
