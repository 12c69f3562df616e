"""What the lessons in notebooks/ are made with: predicting the route, and cells that check an answer.

``predict`` runs one step and says whether a guess was right; ``check`` passes only for a right answer.
The answers that a lesson brings with it are ``sealed``, so that nobody reads them by accident.
"""

from __future__ import annotations

import base64
import binascii
import json
from types import EllipsisType
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import plain, shorten
from materia_nb.display.html import Html, html_join, html_panel, html_text
from materia_nb.errors import MateriaError
from materia_nb.insight.predict import Prediction, guesses, judge, known_guess, upcoming
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END
from materia_nb.views import Text

_KINDS: Final = (
    (bool, "True or False"),
    (int, "a whole number"),
    (str, "text, such as 'Socket-1' or 'end'"),
    (list, "a list, such as ['Socket-1', 'end']"),
)


class Sealed:
    """The answer that a lesson brings with it, in a form that is not read at a glance.

    It stands where a learner's answer belongs, so that a lesson also runs when nobody is there to answer.
    """

    def __init__(self, seal: str) -> None:
        self._seal = seal

    def open(self) -> JSON:
        """Return the answer.

        Raises:
            MateriaError: the seal is not one that :func:`seal` made (``bad_seal``).
        """
        try:
            value: JSON = json.loads(base64.b64decode(self._seal, validate=True))
        except (binascii.Error, ValueError):
            raise MateriaError(
                "This sealed answer cannot be opened.",
                hint="put your own answer in its place: x = 'Socket-1'",
                kind="bad_seal",
            ) from None
        return value

    def __repr__(self) -> str:
        return "<sealed>"


def sealed(seal: str) -> Sealed:
    """Take a sealed answer; put your own in its place."""
    return Sealed(seal)


def seal(answer: JSON) -> str:
    """Make the seal of an answer, for those who write a lesson."""
    return base64.b64encode(json.dumps(answer, separators=(",", ":")).encode()).decode()


# -- predicting ---------------------------------------------------------------------------


class PredictionView(Shown):
    """Whether a guess was right and why; ``right`` and ``came`` are the values to work with."""

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction
        self.right, self.guess, self.came = prediction.right, prediction.guess, prediction.came

    @property
    def _marked(self) -> list[str]:
        mark = "\u2713" if self.right else "\u2717"
        first, *rest = self.prediction.lines
        return [f"{mark} {first}", *rest]

    def __repr__(self) -> str:
        return plain("\n".join([self.prediction.title, *(f"  {line}" for line in self._marked)]))

    def _show(self) -> dict[str, Any]:
        lines = html_join(Html(f"<div>{html_text(line)}</div>") for line in self._marked)
        return bundle(repr(self), html=html_panel(self.prediction.title, lines))


def question(cast: Cast) -> str:
    """Return what is to be predicted, in words.

    Raises:
        MateriaError: no socket runs next (``nothing_to_predict``).
    """
    return f"{_asked(cast)} runs next. Where does the cast go after it?"


def predict(cast: Cast, guess: object) -> PredictionView:
    """Run one step of the cast and say whether it led where the guess says, and why.

    Args:
        cast: which; its next socket must be answered by a function, a script or a process.
        guess: a socket, ``end``, or ``stop`` (it fails, or needs a person); also a sealed answer.

    Raises:
        MateriaError: the guess is none of these (``unknown_socket``) or nothing runs next
            (``nothing_to_predict``); the cast has not moved then. Or a person must answer (``not_decided``).
    """
    opened = guess.open() if isinstance(guess, Sealed) else guess
    expected = known_guess(cast.rules, str(opened))
    _asked(cast)
    before = _outputs(cast)
    cast.step()
    cast.write_derived()
    step = cast.steps[-1]
    if step.decision is None or (cast.status == "waiting" and _outputs(cast) == before):
        raise MateriaError(
            f"{step.socket} waits for a person, so it is not decided yet where it leads.",
            hint="reply to it, or say who answers (agent); then predict the step after it",
            kind="not_decided",
        )
    why = cast.why()
    return PredictionView(judge(cast.rules, expected, why.title, step.decision, cast.now, step.entry))


def _outputs(cast: Cast) -> int:
    return sum(len(step.turns) for step in cast.steps)


def choices(cast: Cast) -> tuple[str, ...]:
    """Return what can be guessed: every socket, ``end`` and ``stop``."""
    return guesses(cast.rules)


def _asked(cast: Cast) -> str:
    """The socket whose way on is to be predicted."""
    if cast.status in ("ready", "waiting"):
        here = upcoming(cast.rules, cast.now)
        if here in cast.graph.sockets:
            return here
        if here == END:
            raise MateriaError(
                "No socket runs next: the cast is at its end.",
                hint="run completes it; cast starts another",
                kind="nothing_to_predict",
            )
        raise MateriaError(
            "The next socket cannot be entered.", hint="step shows why", kind="nothing_to_predict"
        )
    raise MateriaError(
        f"The cast is {cast.status}, so there is no step to predict.",
        hint="start another with cast",
        kind="nothing_to_predict",
    )


# -- checking -----------------------------------------------------------------------------


def check(**questions: tuple[object, JSON]) -> Text:
    """Pass for right answers only; the first that is not raises.

    Args:
        questions: under the variable that an answer stands in, the answer and the right one, taken from a
            cast: ``check(next_socket=(next_socket, cast.route[1][0]))``. An answer that is not there yet is ``...``.

    Raises:
        MateriaError: an answer is missing (``no_answer``) or wrong (``wrong_answer``); it says what is wrong
            with it, and not what the right one is.
    """
    return Text("\n".join(_checked(name, *pair) for name, pair in questions.items()))


def _checked(name: str, answer: object, truth: JSON) -> str:
    if answer is None or isinstance(answer, EllipsisType):
        hint = f"write {name} = and your answer: {_kind(truth)}"
        raise MateriaError(f"{name} has no answer yet.", hint=hint, kind="no_answer")
    given = answer.open() if isinstance(answer, Sealed) else answer
    if type(given) is type(truth) and _folded(given) == _folded(truth):
        stored = " (the sealed answer: put yours in its place)" if isinstance(answer, Sealed) else ""
        return f"\u2713 {name} is right{stored}"
    raise MateriaError(
        f"{name}: {shorten(repr(given), 80)} is not right. {_what_is_wrong(given, truth)}".rstrip(),
        hint="correct it in the cell above; what the cast did is shown by steps and why",
        kind="wrong_answer",
    )


def _what_is_wrong(given: object, truth: JSON) -> str:
    """Say what is wrong without giving the answer away."""
    if type(given) is not type(truth):
        return f"The answer is {_kind(truth)}."
    if isinstance(given, list) and isinstance(truth, list):
        same = [_folded(one) == _folded(other) for one, other in zip(given, truth, strict=False)]
        right = same.index(False) if False in same else len(same)
        return f"Its first {right} are right." if right else "It goes wrong at the first."
    return ""


def _kind(truth: JSON) -> str:
    return next((words for kind, words in _KINDS if isinstance(truth, kind)), "a value")


def _folded(value: object) -> object:
    """A value as it is compared: upper and lower case do not count, nor do spaces around a word."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_folded(one) for one in value] if isinstance(value, list) else value
