"""One question: where does the next step lead? Asked of a copy of the cast, so that the cast does not move."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from materia_nb.cast.views.status import marks_of
from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import plain
from materia_nb.display.graph_parts import Marks
from materia_nb.display.html import Html, html_join, html_panel, html_text
from materia_nb.engine.entering import enter
from materia_nb.engine.items import list_at
from materia_nb.engine.routing import edge_use
from materia_nb.engine.step import short
from materia_nb.errors import MateriaError
from materia_nb.insight.why import Prediction, guesses, judge, known_guess, upcoming
from materia_nb.lessons.checks import Sealed
from materia_nb.lessons.guessbook import keep
from materia_nb.loadout.graph import END

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.routing import Decision


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


class Question:
    """Where does the next step of a cast lead? The question stays the same, whatever the cast does later.

    It is about a twin: a fork of the cast in a temporary folder, made together with the question. The first guess
    runs one step of the twin, and every guess is judged by that step, so one can guess as often as one likes.

    Args:
        cast: which; it stays as it is.

    Attributes:
        socket: the socket that runs next.
        text: the question in words.
        standing: where the cast stands: the item, the cursors, how often edges were taken.
        places: what can be guessed: every socket, ``end`` and ``stop``.
        before: what to lay over the picture of the graph while the question is asked.
        twin: the fork.

    Raises:
        MateriaError: no socket runs next (``nothing_to_predict``), a step is running (``busy``), or the cast can only
            be looked at (``read_only``).
    """

    def __init__(self, cast: Cast) -> None:
        if cast.runner.busy():
            raise MateriaError(
                "A step is running, so it is not settled yet what comes next.",
                hint="wait for its end, or pause",
                kind="busy",
            )
        self.socket = _asked(cast)
        self.text = f"{self.socket} runs next. Where does the cast go after it?"
        self.standing = _standing(cast)
        self.places = guesses(cast.now.rules)
        self.before = dataclasses.replace(marks_of(cast.now), current=self.socket)
        folder = tempfile.mkdtemp(prefix="materia-twin-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.twin = cast.fork(root=Path(folder))
        self.twin.runner.agents = cast.agents.copy()  # another cell may let somebody else answer
        self._judged: tuple[str, Decision, Decision | None] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def after(self) -> Marks:
        """What to lay over the picture of the graph once a guess was made: the route that was taken."""
        return marks_of(self.twin.now)

    def guess(self, guess: object) -> PredictionView:
        """Say whether a guess is right, and why; it is kept in the learner's file of guesses.

        Args:
            guess: a socket, ``end``, or ``stop`` (it fails, or needs a person); also a sealed answer.

        Raises:
            MateriaError: the guess is none of these (``unknown_socket``), or a person must answer (``not_decided``).
        """
        opened = guess.open() if isinstance(guess, Sealed) else guess
        expected = known_guess(self.twin.now.rules, str(opened))
        if self._judged is None:
            self._judged = self._run()
            self.close()
        title, decision, entry = self._judged
        seen = PredictionView(
            judge(self.twin.now.rules, expected, title, decision, self.twin.now.engine, entry)
        )
        keep(self.twin.graph.name, f"predict: {title}", expected, right=seen.right)
        return seen

    def _run(self) -> tuple[str, Decision, Decision | None]:
        twin, before = self.twin, _outputs(self.twin)
        twin.step()
        step = twin.steps[-1]
        if step.decision is None or (twin.status == "waiting" and _outputs(twin) == before):
            raise MateriaError(
                f"{step.socket} waits for a person, so it is not decided yet where it leads.",
                hint="reply to it, or say who answers (agent); then predict the step after it",
                kind="not_decided",
            )
        return twin.why().title, step.decision, step.entry

    def close(self) -> None:
        """Let go of the twin and remove its folder; a guess that was judged can still be asked for."""
        self.twin.runner.stop.set()
        self.twin.close()
        self._remove()


def question(cast: Cast) -> Question:
    """Ask where the next step of a cast leads; see :class:`Question`."""
    return Question(cast)


def predict(cast: Cast, guess: object) -> PredictionView:
    """Say whether the next step leads where the guess says, and why. The cast does not move.

    Args:
        cast: which; its next socket must be answered by a function, a script or a process.
        guess: a socket, ``end``, or ``stop`` (it fails, or needs a person); also a sealed answer.

    Raises:
        MateriaError: as :class:`Question` and :meth:`Question.guess`.
    """
    asked = Question(cast)
    try:
        return asked.guess(guess)
    finally:
        asked.close()


def _outputs(cast: Cast) -> int:
    return sum(len(step.turns) for step in cast.steps)


def _asked(cast: Cast) -> str:
    """The socket whose way on is to be predicted."""
    if cast.status in ("ready", "waiting"):
        here = upcoming(cast.now.rules, cast.now.engine)
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


def _standing(cast: Cast) -> tuple[str, ...]:
    """What decides where the next step leads, apart from its output: item, cursors, edges that are counted."""
    state = enter(cast.now.rules, cast.now.engine).state if cast.status == "ready" else cast.now.engine
    visit = state.at
    if visit is None:
        return ()
    lines = [f"{visit.socket}, visit {visit.visit}"]
    if visit.item is not None:
        lines.append(f"item {visit.item.key} ({short(visit.item.label)})")
    for loop in cast.graph.loops.values():
        if loop.iterator is not None and visit.socket in loop.sockets:
            at, size = state.cursors.get(loop.iterator.cursor, 0), len(list_at(loop.iterator.items, state))
            lines.append(f"cursor {loop.iterator.cursor} at {at} of {size}")
    for edge in cast.graph.sockets[visit.socket].edges:
        used, limit = edge_use(cast.now.rules, state, visit, edge)
        if limit is not None and edge.max_traversals is not None:
            lines.append(f"edge {edge.place + 1} to {edge.to} taken {used} of {limit} times")
    return tuple(lines)
