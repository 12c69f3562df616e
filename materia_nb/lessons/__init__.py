"""What the lessons in notebooks/ are made with: predicting the route, and cells that check an answer.

``predict`` says whether a guess about the next step is right, without moving the cast; ``check`` passes only
when every question is answered, and answered rightly. The answers that a lesson brings with it are ``sealed``,
so that nobody reads them by accident.
"""

from materia_nb.lessons.checks import Sealed, check, seal, sealed
from materia_nb.lessons.questions import PredictionView, Question, predict, question

__all__ = ["PredictionView", "Question", "Sealed", "check", "predict", "question", "seal", "sealed"]
