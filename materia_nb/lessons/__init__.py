"""Tools for the lessons in ``notebooks/``, in which learners predict routes, answer questions and diagnose loadouts.

- ``predict`` judges a guess about the next step of a cast without changing the cast.
- ``numbers`` generates a lesson's numbers, seeded with the learner's name; the returned object can check answers.
- ``clinic`` opens a faulty example from the gallery for diagnosis.
"""

from materia_nb.lessons.checks import Numbers, check, numbers, progress, shortest_verdicts
from materia_nb.lessons.misreadings import from_route
from materia_nb.lessons.questions import Patient, PredictionView, Question, RouteView, clinic, predict

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
