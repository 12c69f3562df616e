"""What a learner is asked: where the next step leads, and what is wrong with a mistake of the gallery, the patient of a clinic.

The first is asked of a copy of the cast, so that the cast does not move.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from materia_nb.cast.gallery import Card, Diagnosis, gallery
from materia_nb.cast.views.status import marks_of
from materia_nb.display.blocks import Block, Shown, Text, lines
from materia_nb.display.graph_parts import Marks
from materia_nb.engine.entering import enter
from materia_nb.engine.items import list_at
from materia_nb.engine.limits import edges_used
from materia_nb.engine.routing import short
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.why import Prediction, judge_guess, next_target, parse_guess, possible_guesses
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.checks import ANY, Ask, judged_answers, keep, kind_of, worth
from materia_nb.lessons.variants import cast_once
from materia_nb.loadout import check_config, read_text
from materia_nb.loadout.graph import END

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.routing import Decision


class _Told(Shown):
    """Lines under a title, the same in text and in HTML."""

    def __init__(self, title: str, lines: list[str]) -> None:
        self.title, self.lines = title, lines

    def _blocks(self) -> list[Block]:
        return lines(self.lines)


class PredictionView(_Told):
    """Whether a guess was right and why; ``right``, ``guess`` and ``came`` are the values to work with.

    Attributes:
        told: whether the answer is out. While it is not, what is shown says only why it is not what was guessed.
        lines: what is said, the first line marked as right or wrong.
    """

    def __init__(self, prediction: Prediction, *, told: bool = True, sure: bool | None = None) -> None:
        self.prediction, self.told = prediction, told
        self.right, self.guess, self.outcome = prediction.right, prediction.guess, prediction.outcome
        first, *lines = prediction.lines if told else prediction.retry_lines
        if not told:
            lines.append("Guess again, for half a point.")
        elif sure is not None and sure != self.right:
            unsure = "A lucky guess: read why."
            lines.append("You were sure of it, so this is what to remember." if sure else unsure)
        mark = "\u2713" if self.right else "\u2717"
        super().__init__(prediction.title, [f"{mark} {first}", *lines])


class RouteView(_Told):
    """How far a predicted route is right.

    Attributes:
        steps: the guesses that were judged, up to the first wrong one.
        left: how many guesses stand behind the end of the route.
        onward: the socket that runs after the last of them; empty where the route is at its end.
        lines: what is said of each guess, of the last one all.
    """

    def __init__(self, steps: Sequence[PredictionView], left: int, onward: str) -> None:
        self.steps, self.left, self.onward = tuple(steps), left, onward
        last = self.steps[-1]
        lines = [f"{one.title}: {one.lines[0]}" for one in self.steps] + last.lines[1:]
        if last.right and left:
            more = counted(left, "guess", "guesses")
            lines.append(f"\u2717 The route is at its end here: {more} too many.")
        elif last.right:
            lines.append(f"Right so far. {onward} runs next." if onward else "That is the whole route.")
        super().__init__(f"{counted(sum(one.right for one in self.steps), 'step')} right", lines)

    @property
    def right(self) -> bool:
        """Whether every guess was right, and no one is left over."""
        return self.left == 0 and all(one.right for one in self.steps)


class Question:
    """Where does the next step of a cast lead? The question stays the same, whatever the cast does later.

    It is about a twin: a fork of the cast in a temporary folder, made together with the question. The first guess
    runs one step of the twin, and every guess is judged by that step, so one can guess as often as one likes.
    :meth:`go_on` asks about the twin's step after it, so that a whole route can be walked.

    Args:
        cast: which; it stays as it is.
        tries: how many wrong guesses there may be until the answer is told.
        name: under which guesses are kept in the learner's file: ``LESSON/QUESTION``. Without one none is kept.

    Attributes:
        socket: the socket that runs next.
        text: the question in words.
        standing: where the cast stands: the item, the cursors, how often edges were taken.
        number: the number of the step that is asked about, from 1.
        places: what can be guessed: every socket, ``end`` and ``stop``.
        before: what to lay over the picture of the graph while the question is asked.
        told: whether the answer is out: it was guessed, or the tries are used up.
        points: what each step is worth so far: 1 when the first guess was right, a half when it was the second.
        twin: the fork.

    Raises:
        MateriaError: no socket runs next (``nothing_to_predict``), a step is running (``busy``), or the cast can only
            be looked at (``read_only``).
    """

    def __init__(self, cast: Cast, tries: int = 1, name: str = "") -> None:
        if cast.runner.busy():
            raise MateriaError(
                "A step is running, so it is not settled yet what comes next.",
                hint="wait for its end, or pause",
                kind="busy",
            )
        self.places = possible_guesses(cast.now.rules)
        self.points: list[float] = []
        self.number = 0
        self._tries, self._name = tries, name
        self._ask(cast)
        folder = tempfile.mkdtemp(prefix="materia-twin-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.twin = cast.fork(root=Path(folder))
        self.twin.runner.agents = cast.agents.frozen()  # another cell may let somebody else answer

    def _ask(self, cast: Cast) -> None:
        self.socket = _asked(cast)
        self.number += 1
        self.text = f"{self.socket} runs next. Where does the cast go after it?"
        self.standing = _standing(cast)
        self.before = dataclasses.replace(marks_of(cast.now), current=self.socket)
        self.told = False
        self._wrong: set[str] = set()
        self._judged: tuple[str, Decision, Decision | None] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def after(self) -> Marks:
        """What to lay over the picture of the graph once the answer is out: the route that was taken."""
        return marks_of(self.twin.now)

    @property
    def leads_on(self) -> bool:
        """Whether the answer is out and another socket runs after it, so that one can :meth:`go_on`."""
        return self.told and next_target(self.twin.now.rules, self.twin.now.engine) in self.twin.graph.sockets

    def go_on(self) -> None:
        """Ask about the step after the one that was guessed.

        Raises:
            MateriaError: the answer is not out yet (``not_yet``), or no socket runs next (``nothing_to_predict``).
        """
        if not self.told:
            raise MateriaError(
                "Where this step leads is not revealed yet.", hint="guess first", kind="not_yet"
            )
        self._ask(self.twin)

    def guess(self, guess: object, *, sure: bool | None = None, number: int | None = None) -> PredictionView:
        """Say whether a guess is right, and why; a question that has a name keeps it in the learner's file of guesses.

        Args:
            guess: a socket or its materia, ``end``, or ``stop`` (it fails, or needs a person).
            sure: True if the learner is sure, False if it is a guess; None if that was not said.
            number: the :attr:`number` of the step for which the guess was made; the current one if left out.

        Raises:
            MateriaError: the guess is not one of these (``unknown_socket``), a person must answer (``not_decided``), or
                the question is about another step by now (``outdated``).
        """
        if number not in (None, self.number):
            raise MateriaError(
                "Nothing was counted: the question is about another step by now.",
                hint="read the question as it is now, then guess again",
                kind="outdated",
            )
        expected = parse_guess(self.twin.now.rules, str(guess))
        if self._judged is None:
            self._judged = self._run()
        title, decision, entry = self._judged
        found = judge_guess(self.twin.now.rules, expected, title, decision, self.twin.now.engine, entry)
        if self.told:  # so this is not a guess any more
            return PredictionView(found)
        if self._name:
            lesson, _, asked = self._name.rpartition("/")
            place = f", step {len(self.points) + 1}" if self.points else ""
            keep(lesson, f"{asked}{place}", expected, right=found.right, sure=sure)
        self._count(found)
        return PredictionView(found, told=self.told, sure=sure)

    def walk(self, route: Sequence[object], *, sure: bool | None = None) -> RouteView:
        """Say how far a route is right, step by step up to the first wrong guess.

        Args:
            route: where each step leads, from this one on.
            sure: as :meth:`guess`.

        Raises:
            MateriaError: as :meth:`guess`, or the route is empty (``no_guess``).
        """
        if not route:
            raise MateriaError("No route was given.", hint="say where each step leads", kind="no_guess")
        steps = [self.guess(route[0], sure=sure)]
        while steps[-1].right and len(steps) < len(route) and self.leads_on:
            self.go_on()
            steps.append(self.guess(route[len(steps)], sure=sure))
        left = len(route) - len(steps) if steps[-1].right else 0
        return RouteView(
            steps, left, next_target(self.twin.now.rules, self.twin.now.engine) if self.leads_on else ""
        )

    def _count(self, found: Prediction) -> None:
        if not found.right:
            self._wrong.add(found.guess)
        self.told = found.right or len(self._wrong) >= self._tries
        if self.told:
            self.points.append(worth(len(self._wrong) + 1) if found.right else 0)

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
        self.twin.stop()
        self.twin.close()
        self._remove()


def question(cast: Cast, tries: int = 1, name: str = "") -> Question:
    """Ask where the next step of a cast leads; see :class:`Question`."""
    return Question(cast, tries, name)


def predict(cast: Cast, guess: object) -> PredictionView:
    """Say whether the next step leads where the guess says, and why. The cast does not move, and no guess is kept.

    Args:
        cast: which; its next socket must be answered by a function, a script or a process.
        guess: a socket or its materia, ``end``, or ``stop`` (it fails, or needs a person).

    Raises:
        MateriaError: as :class:`Question` and :meth:`Question.guess`.
    """
    with closing(Question(cast)) as asked:
        return asked.guess(guess)


def _outputs(cast: Cast) -> int:
    return sum(len(step.turns) for step in cast.steps)


def _asked(cast: Cast) -> str:
    """The socket whose way on is to be predicted."""
    if cast.status in ("ready", "waiting"):
        here = next_target(cast.now.rules, cast.now.engine)
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
        f"The cast {cast.runner.session.state.stands}, so there is no step to predict.",
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
    for (socket, place), (used, limit) in edges_used(cast.now.rules, state).items():
        edge = cast.graph.sockets[socket].edges[place]
        lines.append(f"edge {place + 1} to {edge.to} taken {used} of {counted(limit, 'time')}")
    return tuple(lines)


_EXPLAINED: Final = {
    "step": "That step did what was intended. In which step did the cast go wrong?",
    "socket": "Look for the socket whose edges, exits, advance or parse would have to be another.",
}


class Patient(Shown):
    """One mistake of the gallery. It shows itself with what is complained of, and tells nothing more.

    Args:
        name: its name in the gallery, such as ``raw-bread``.

    Raises:
        MateriaError: there is no such card (``unknown_card``), or it is a pattern (``healthy``).
    """

    def __init__(self, name: str) -> None:
        card = gallery()[name]
        if card.diagnosis is None:
            raise MateriaError(
                f"{card.name} is a pattern: nothing is wrong with it.",
                hint=f"one of: {', '.join(one.name for one in gallery().of('mistake'))}",
                kind="healthy",
            )
        self.card: Card = card
        self._sick: Diagnosis = card.diagnosis

    def __repr__(self) -> str:
        return repr(self.card)

    def _blocks(self) -> list[Block]:
        return [self.card]

    def diagnose(self, **found: object) -> Text:
        """Pass for the right diagnosis: the ``socket`` that must be changed, and the ``step`` that shows it.

        Where no step shows it only the socket is asked for.

        Raises:
            MateriaError: as :func:`materia_nb.lessons.check`.
        """
        truth: dict[str, JSON] = {"socket": self._sick.socket}
        if self._sick.step is not None:
            truth["step"] = self._sick.step
        if unknown := [name for name in found if name not in truth]:
            raise MateriaError(
                f"{unknown[0]} is not asked for.", hint=f"say {' and '.join(truth)}", kind="unknown_question"
            )
        asked = {name: (found.get(name, ...), right) for name, right in truth.items()}
        asks = {name: Ask(kind_of(right), {ANY: _EXPLAINED[name]}) for name, right in truth.items()}
        explained = judged_answers(f"clinic: {self.card.name}", "", asks, asked, self.card.graph)
        return Text(f"{explained}\n{self._sick.why}\ncheck would have said: {self._sick.code}")

    def mend(self, loadout: str | Mapping[str, JSON]) -> Text:
        """Pass when a changed loadout does with the same answers what was meant.

        Args:
            loadout: a loadout as it stands in a cell (JSON or YAML, or a mapping), with or without ``materia``.
                The one that was admitted, unchanged, is not a try, and is not kept.

        Raises:
            MateriaError: it has problems, it goes wrong still (``not_mended``), or it cannot be read.
        """
        wanted = _cast(self.card, self.card.mended)
        given = read_text(loadout, where="the loadout") if isinstance(loadout, str) else dict(loadout)
        if not isinstance(given, dict):
            raise MateriaError("A loadout is an object.", hint="give it entry and sockets", kind="not_mended")
        body = dict(given)
        materia = body.pop("materia", self.card.document["materia"])
        document = {**self.card.document, "materia": materia, "loadouts": {self.card.loadout: body}}
        wrong = self._wrong(document, wanted)
        if document != self.card.document:
            keep(f"clinic: {self.card.name}", "mend", "mended" if not wrong else wrong[0], right=not wrong)
        if wrong:
            raise MateriaError("It is not fixed yet.", more=wrong, kind="not_mended")
        return Text("✓ Fixed: with the same answers it does what was intended.")

    def _wrong(self, document: dict[str, JSON], wanted: _Course) -> list[str]:
        report = check_config(document, self.card.loadout)
        if report.problems:
            return [str(one) for one in report.problems]
        found = _cast(self.card, document)
        if found.ends != "complete":
            return [f"It ends as {found.ends}: {found.said}"]
        warnings = [f"The cast says of itself: {one}" for one in found.warnings]
        for socket, count in wanted.visits.items():
            came = found.visits.get(socket, 0)
            if came != count:
                times = "once" if came == 1 else f"{came} times"
                warnings.append(f"{socket} is visited {times}; it should be {count}.")
        return warnings


class _Course(NamedTuple):
    """What came of a cast."""

    ends: str
    said: str
    visits: Mapping[str, int]
    warnings: list[str]


def _cast(card: Card, document: dict[str, JSON]) -> _Course:
    with cast_once(document, card.request, card.answers) as (cast, ends):
        failure = "" if cast.failure is None else cast.failure.message
        odd = [str(one) for one in cast.now.warnings if one.code != "empty-loop"]
        return _Course(ends, failure, dict(cast.now.engine.visits), odd)


def clinic(name: str) -> Patient:
    """Admit a patient: a mistake of the gallery, by its name.

    Raises:
        MateriaError: as :class:`Patient`.
    """
    return Patient(name)
