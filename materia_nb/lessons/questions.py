"""Exercises in which a learner predicts the next target of a cast, diagnoses a faulty example, or plays a level.

A prediction is judged by running a fork of the cast, so that the cast itself does not change. A level is a page that
needs neither Python nor a network; see :mod:`materia_nb.cast.views.play_page` for its states and answers.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice, permutations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from materia_nb.cast.cases import write_export
from materia_nb.cast.gallery import Card, Diagnosis, gallery
from materia_nb.cast.views.play_page import SCRIPT, play_data, play_page
from materia_nb.cast.views.status import overlay_of
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Block, Displayable, Text, View, lines
from materia_nb.display.escape import Html, esc, html_join, html_page
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.engine.entering import enter
from materia_nb.engine.items import list_at
from materia_nb.engine.routing import edge_uses, short_label
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import read_package_text
from materia_nb.insight.reachable_states import COMPLETE, StateSpace, explore_states
from materia_nb.insight.why import STOP, Prediction, judge_guess, next_target, parse_guess, possible_guesses
from materia_nb.jsonvalue import JSON, as_object, with_patch
from materia_nb.lessons.checks import QuestionRow, judge_answers, points_for, record_guess
from materia_nb.lessons.misreadings import MISREADINGS, RouteWalk, ScriptedVerdicts, walk
from materia_nb.loadout import Graph, build_graph, check_config, read_text
from materia_nb.loadout.graph import END
from materia_nb.loadout.layers import BUNDLED
from materia_nb.loadout.vocabulary import Result

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.routing import Decision


class PredictionView(View):
    """The display of a judged guess, with the reasons for the verdict.

    Attributes:
        prediction: the judged guess.
        right: True if the guess is right.
        guess: the guess.
        outcome: the actual target.
        is_revealed: True if the outcome is revealed. Otherwise, the lines only explain why the guess is wrong.
        lines: the displayed lines; the first line states whether the guess is right.
    """

    def __init__(self, prediction: Prediction, *, is_revealed: bool = True, sure: bool | None = None) -> None:
        self.prediction, self.is_revealed = prediction, is_revealed
        self.right, self.guess, self.outcome = prediction.right, prediction.guess, prediction.outcome
        first, *reasons = prediction.lines if is_revealed else prediction.retry_lines
        if not is_revealed:
            reasons.append("Guess again for half a point.")
        elif sure is not None and sure != self.right:
            unsure = "You were not sure, so read the reason."
            reasons.append("You were sure of a wrong answer, so remember the reason." if sure else unsure)
        mark = "\u2713" if self.right else "\u2717"
        self.lines = [f"{mark} {first}", *reasons]
        super().__init__(prediction.title, lines(self.lines))


class RouteView(View):
    """The display of a predicted route that has been judged.

    Attributes:
        steps: the judged guesses, up to the first wrong guess.
        surplus: the number of guesses that follow the end of the actual route.
        next_socket: the socket that runs after the last guess; empty if the route has ended.
        lines: the first line of each judged guess, and all lines of the last guess.
    """

    def __init__(self, steps: Sequence[PredictionView], surplus: int, next_socket: str) -> None:
        self.steps, self.surplus, self.next_socket = tuple(steps), surplus, next_socket
        last = self.steps[-1]
        self.lines = [f"{step.title}: {step.lines[0]}" for step in self.steps] + last.lines[1:]
        if last.right and surplus:
            more = counted(surplus, "guess", "guesses")
            self.lines.append(f"\u2717 The route ends before your last guesses: {more} too many.")
        elif last.right:
            self.lines.append(f"Right so far. {next_socket} runs next." if next_socket else "That is the whole route.")
        super().__init__(f"{counted(sum(step.right for step in self.steps), 'step')} right", lines(self.lines))

    @property
    def right(self) -> bool:
        """True if every guess is right and the predicted route is not longer than the actual route."""
        return self.surplus == 0 and all(step.right for step in self.steps)


class Question:
    """A question about the target of a cast's next step. Later changes to the cast do not affect the question.

    The question uses a fork of the cast in a temporary folder. The first guess runs one step of the fork, and this step
    is used to judge all guesses, so the number of guesses is unlimited. :meth:`next_step` asks about the next step of
    the fork, so that a learner can predict a whole route.

    Args:
        cast: the cast, which is not changed.
        tries: the number of wrong guesses after which the outcome is revealed.
        name: the name under which guesses are recorded in the learner's file, in the form ``LESSON/QUESTION``; empty to
            record no guesses.

    Attributes:
        socket: the socket that runs next.
        text: the text of the question.
        state_lines: lines that describe the visit, the work item, the cursors and the remaining uses of limited edges.
        number: the number of the step that the question is about; the first step is 1.
        targets: the valid guesses, which are all sockets, ``end`` and ``stop``.
        marks_before: the marks in the picture of the graph while the outcome is not revealed.
        is_revealed: True if the outcome is revealed because a guess was right or all tries were used.
        points: the points for each finished step: 1 if the first guess was right, 0.5 if the second guess was right,
            and otherwise 0.
        fork: the fork of the cast.

    Raises:
        MateriaError: no socket runs next (``nothing_to_predict``), a step is running (``busy``), or the cast is
            read-only (``read_only``).
    """

    def __init__(self, cast: Cast, tries: int = 1, name: str = "") -> None:
        if cast.runner.busy():
            raise MateriaError(
                "A step is running, so the next socket is not known yet.",
                hint="wait until the step ends, or press Pause in the panel",
                kind="busy",
            )
        self.targets = possible_guesses(cast.now.rules)
        self.points: list[float] = []
        self.number = 0
        self._tries, self._name = tries, name
        self._ask_about(cast)
        folder = tempfile.mkdtemp(prefix="materia-fork-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.fork = cast.fork(root=Path(folder))
        self.fork.runner.agents = cast.agents.frozen()  # another cell may change the agents of the cast

    def _ask_about(self, cast: Cast) -> None:
        self.socket = _next_socket(cast)
        self.number += 1
        self.text = f"{self.socket} runs next. Where does the cast go after it?"
        self.state_lines = _describe_state(cast)
        self.marks_before = dataclasses.replace(overlay_of(cast.now), current=self.socket)
        self.is_revealed = False
        self._wrong: set[str] = set()
        self._judged: tuple[str, Decision, Decision | None] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def marks_after(self) -> CastOverlay:
        """The marks that show the route in the picture of the graph after the outcome is revealed."""
        return overlay_of(self.fork.now)

    @property
    def has_next(self) -> bool:
        """True if the outcome is revealed and another socket runs next, so :meth:`next_step` can be called."""
        return self.is_revealed and next_target(self.fork.now.rules, self.fork.now.engine) in self.fork.graph.sockets

    def next_step(self) -> None:
        """Replace the question by a question about the following step.

        Raises:
            MateriaError: the outcome is not revealed yet (``not_yet``), or no socket runs next
                (``nothing_to_predict``).
        """
        if not self.is_revealed:
            raise MateriaError("The target of this step is not revealed yet.", hint="guess first", kind="not_yet")
        self._ask_about(self.fork)

    def guess(self, guess: object, *, sure: bool | None = None, number: int | None = None) -> PredictionView:
        """Judge a guess, record it if the question has a name, and return the verdict with its reasons.

        Args:
            guess: the predicted target: a socket, the materia of a socket, ``end``, or ``stop`` if the cast fails or
                waits for a person.
            sure: True if the learner is sure of the guess, False if not; None if this is unknown.
            number: the :attr:`number` of the step that the guess is about; defaults to the current step.

        Raises:
            MateriaError: the guess is not a valid target (``unknown_socket``), a person must answer first
                (``not_decided``), or the question is now about another step (``outdated``).
        """
        if number not in (None, self.number):
            raise MateriaError(
                "Your guess was not counted, because the question is now about another step.",
                hint="read the current question, then guess again",
                kind="outdated",
            )
        expected = parse_guess(self.fork.now.rules, str(guess))
        if self._judged is None:
            self._judged = self._run_step()
        title, decision, entry = self._judged
        prediction = judge_guess(self.fork.now.rules, expected, title, decision, self.fork.now.engine, entry)
        if self.is_revealed:  # the learner knows the outcome, so the guess does not count
            return PredictionView(prediction)
        if self._name:
            lesson, _, question = self._name.rpartition("/")
            step = f", step {len(self.points) + 1}" if self.points else ""
            record_guess(lesson, f"{question}{step}", expected, right=prediction.right, sure=sure)
        self._count_guess(prediction)
        return PredictionView(prediction, is_revealed=self.is_revealed, sure=sure)

    def walk(self, route: Sequence[object], *, sure: bool | None = None) -> RouteView:
        """Judge a predicted route step by step, up to the first wrong guess.

        Args:
            route: the predicted target of each step, starting with the current step.
            sure: True if the learner is sure of the route, False if not; None if this is unknown.

        Raises:
            MateriaError: the route is empty (``no_guess``), or :meth:`guess` raised the error.
        """
        if not route:
            raise MateriaError("The predicted route is empty.", hint="name the target of each step", kind="no_guess")
        steps = [self.guess(route[0], sure=sure)]
        while steps[-1].right and len(steps) < len(route) and self.has_next:
            self.next_step()
            steps.append(self.guess(route[len(steps)], sure=sure))
        surplus = len(route) - len(steps) if steps[-1].right else 0
        return RouteView(
            steps, surplus, next_target(self.fork.now.rules, self.fork.now.engine) if self.has_next else ""
        )

    def _count_guess(self, prediction: Prediction) -> None:
        if not prediction.right:
            self._wrong.add(prediction.guess)
        self.is_revealed = prediction.right or len(self._wrong) >= self._tries
        if self.is_revealed:
            self.points.append(points_for(len(self._wrong) + 1) if prediction.right else 0)

    def _run_step(self) -> tuple[str, Decision, Decision | None]:
        fork, before = self.fork, _count_outputs(self.fork)
        fork.step()
        step = fork.steps[-1]
        if step.decision is None or (fork.status == "waiting" and _count_outputs(fork) == before):
            raise MateriaError(
                f"{step.socket} is waiting for a person, so its target is not decided yet.",
                hint="answer the socket with `reply`, or set an agent with `agent`; then predict the next step",
                kind="not_decided",
            )
        return fork.why().title, step.decision, step.entry

    def close(self) -> None:
        """Close the fork and delete its folder. The outcome of a step that has been judged remains available."""
        self.fork.stop()
        self.fork.close()
        self._remove()


def predict(cast: Cast, guess: object) -> PredictionView:
    """Judge a guess about the target of a cast's next step, and return the verdict with its reasons.

    The cast is not changed, and the guess is not recorded.

    Args:
        cast: the cast. Its next socket must be answered by a function, a script or a process.
        guess: the predicted target: a socket, the materia of a socket, ``end``, or ``stop`` if the cast fails or waits
            for a person.

    Raises:
        MateriaError: the next step cannot be predicted (see :class:`Question`), or the guess is not a valid target (see
            :meth:`Question.guess`).
    """
    with closing(Question(cast)) as open_question:
        return open_question.guess(guess)


def _count_outputs(cast: Cast) -> int:
    return sum(len(step.turns) for step in cast.steps)


def _next_socket(cast: Cast) -> str:
    """Return the socket that runs next, or raise MateriaError (``nothing_to_predict``) if no socket runs next."""
    is_open = cast.status in ("ready", "waiting")
    target = next_target(cast.now.rules, cast.now.engine) if is_open else ""
    if target in cast.graph.sockets:
        return target
    message = f"The cast {cast.runner.session.state.status_phrase}, so no further step can be predicted."
    hint = "use `cast` to start another cast"
    if target == END:
        message = "No socket runs next, because the cast has reached its end."
        hint = "use `run` to complete the cast, or `cast` to start another cast"
    elif target:
        message, hint = "The next socket cannot be entered.", "use `step` to see the reason"
    raise MateriaError(message, hint=hint, kind="nothing_to_predict")


def _describe_state(cast: Cast) -> tuple[str, ...]:
    """Return lines that describe the state on which the next target depends.

    The lines contain the visit, the work item, the cursors, and the number of times that each limited edge was taken.
    """
    state = enter(cast.now.rules, cast.now.engine).state if cast.status == "ready" else cast.now.engine
    visit = state.at
    if visit is None:
        return ()
    lines = [f"{visit.socket}, visit {visit.visit}"]
    if visit.item is not None:
        lines.append(f"item {visit.item.key} ({short_label(visit.item.label)})")
    for loop in cast.graph.loops.values():
        if loop.iterator is not None and visit.socket in loop.sockets:
            cursor_position, size = state.cursors.get(loop.iterator.cursor, 0), len(list_at(loop.iterator.items, state))
            lines.append(f"cursor {loop.iterator.cursor} at {cursor_position} of {size}")
    for (socket, index), (used, limit) in edge_uses(cast.now.rules, state).items():
        edge = cast.graph.sockets[socket].edges[index]
        lines.append(f"edge {index + 1} to {edge.to} taken {used} of {counted(limit, 'time')}")
    return tuple(lines)


_HINTS: Final = {
    "step": "That step is correct. Look for the first step that went wrong.",
    "socket": "Look for the socket with a wrong edge, exit, advance or parse.",
}


class Patient(Displayable):
    """A faulty example from the gallery for a learner to diagnose. Its display shows the symptoms, but not the cause.

    Args:
        name: the name of the example in the gallery, such as ``raw-bread``.

    Raises:
        MateriaError: the example does not exist (``unknown_card``), or it is not faulty (``healthy``).
    """

    def __init__(self, name: str) -> None:
        card = gallery()[name]
        if card.diagnosis is None:
            raise MateriaError(
                f"{card.name} is a pattern, so it does not contain a mistake.",
                hint=f"choose one of: {', '.join(other.name for other in gallery().of('mistake'))}",
                kind="healthy",
            )
        self.card: Card = card
        self._diagnosis: Diagnosis = card.diagnosis

    def __repr__(self) -> str:
        return repr(self.card)

    def _blocks(self) -> list[Block]:
        return [self.card]

    def diagnose(self, **diagnosis: object) -> Text:
        """Check a diagnosis, and return an explanation of the mistake if the diagnosis is right.

        Args:
            diagnosis: the ``socket`` that must be changed, and the ``step`` in which the mistake is visible. The step
                is required only if the mistake is visible in a step.

        Raises:
            MateriaError: the diagnosis is wrong (``wrong_answer``) or incomplete (``no_answer``), or it has an unknown
                part (``unknown_question``).
        """
        truth: dict[str, JSON] = {"socket": self._diagnosis.socket}
        if self._diagnosis.step is not None:
            truth["step"] = self._diagnosis.step
        if unknown := [name for name in diagnosis if name not in truth]:
            raise MateriaError(
                f"{unknown[0]} is not part of the diagnosis.",
                hint=f"name {' and '.join(truth)}",
                kind="unknown_question",
            )
        rows: dict[str, QuestionRow] = {name: (diagnosis.get(name, ...), right) for name, right in truth.items()}
        verdict = judge_answers(f"clinic: {self.card.name}", "", _HINTS, rows, self.card.graph)
        return Text(
            f"{verdict}\n{self._diagnosis.why}\nThe command `check` reports this mistake as `{self._diagnosis.code}`."
        )

    def fix(self, loadout: str | Mapping[str, JSON]) -> Text:
        """Check that a corrected loadout behaves as intended if the agents give the same answers as before.

        Args:
            loadout: the corrected loadout, as a mapping or as JSON or YAML text. It may contain changed ``materia``.
                The original loadout does not count as a try.

        Raises:
            MateriaError: the loadout has problems or still behaves wrongly (``not_fixed``), or it cannot be read.
        """
        changed_loadout = read_text(loadout, where="the loadout") if isinstance(loadout, str) else dict(loadout)
        if not isinstance(changed_loadout, dict):
            raise MateriaError("A loadout must be an object.", hint="write its entry and its sockets", kind="not_fixed")
        body = dict(changed_loadout)
        materia = body.pop("materia", self.card.document["materia"])
        document = {**self.card.document, "materia": materia, "loadouts": {self.card.loadout: body}}
        faults = self._faults(document)
        if document != self.card.document:
            record_guess(f"clinic: {self.card.name}", "fix", faults[0] if faults else "fixed", right=not faults)
        if faults:
            raise MateriaError("The loadout is not fixed yet.", more=faults, kind="not_fixed")
        return Text("✓ Fixed: with the same answers, the loadout now behaves as intended.")

    def _faults(self, document: dict[str, JSON]) -> list[str]:
        """Return the problems of a loadout or, if it is valid, the differences between its cast and the intended cast."""
        report = check_config(document, self.card.loadout)
        if report.problems:
            return [str(problem) for problem in report.problems]
        with cast_once(self.card.fixed, self.card.request, self.card.answers) as (cast, _):
            intended = dict(cast.now.engine.visits)
        with cast_once(document, self.card.request, self.card.answers) as (cast, end):
            if end != "complete":
                return [f"The cast does not complete: {cast.failure.message if cast.failure else end}"]
            faults = [f"The cast has a warning: {fault}" for fault in cast.now.warnings if fault.code != "empty-loop"]
            visits = {socket: cast.now.engine.visits.get(socket, 0) for socket in intended}
        for socket, count in intended.items():
            if visits[socket] != count:
                times = counted(visits[socket], "time")
                faults.append(f"{socket} is visited {times}, but it should be visited {counted(count, 'time')}.")
        return faults


def clinic(name: str) -> Patient:
    """Return the faulty example from the gallery with the name ``name``, such as ``raw-bread``, for diagnosis.

    Raises:
        MateriaError: the example does not exist (``unknown_card``), or it is not faulty (``healthy``).
    """
    return Patient(name)


@contextmanager
def cast_once(document: Mapping[str, JSON], request: str, answers: Mapping[str, Any]) -> Iterator[tuple[Cast, str]]:
    """Run a cast in a temporary folder, and yield the cast and the reason why it stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="materia-lesson-") as folder,
        closing(Workbench(folder, bundled=False)) as bench,
    ):
        bench.load(document)
        cast = bench.cast(request, agents={"*": dict(answers)})
        yield cast, str(cast.run())


# -- levels: exercises on pages that need no kernel ---------------------------------------------

_PATHS: Final = 256  # Number of routes from which a level draws one for each learner.
_MAX_DRAWS: Final = 16_000
_OVERVIEW: Final = "Predict the route of a cast, make a cast reach a goal, and change a loadout. Begin with level 1."


class PlayLevel(NamedTuple):
    """The definition of a level. An event is a socket, an end, the key of an edge or exit, or a verdict.

    An end is ``complete`` or ``failed``. The key of an edge has the form ``edge:0:Socket-3``, and the key of an exit is its id.
    A verdict has the form ``Socket-3 ✗``.

    Attributes:
        name: the name of the level and of its page.
        lesson: the name of the lesson to which the level belongs.
        title: the title of the page.
        goal: the task, in one or two sentences.
        loadout: the name of a bundled loadout, or of a card in the gallery.
        items: the list lengths that the learner can choose.
        patch: the JSON Patch that adapts the loadout.
        misreadings: the misreadings that a predicted route must reveal; empty for other kinds of levels.
        questions: the maximum number of predictions in a cast.
        casts: the number of casts that the learner predicts one after another.
        event: the event that the learner must reach, or that the changed loadout must make impossible.
        without: an event that must not happen before ``event``.
        since: an event that must happen first; ``without`` then applies after it.
        changes: the JSON Patch of each change from which the learner can choose, by label; empty for other levels.
    """

    name: str
    lesson: str
    title: str
    goal: str
    loadout: str
    items: Sequence[int] = (2,)
    patch: Sequence[Mapping[str, JSON]] = ()
    misreadings: Sequence[str] = ()
    questions: int = 12
    casts: int = 1
    event: str = COMPLETE
    without: str | None = None
    since: str | None = None
    changes: Mapping[str, Sequence[Mapping[str, JSON]]] = {}


def levels() -> list[PlayLevel]:
    """Return all levels, in the order in which they are played."""
    return [PlayLevel(**fields) for fields in json.loads(read_package_text(Path(__file__).with_name("levels.json")))]


def write_levels(folder: Path) -> list[Path]:
    """Write a page for each level and the overview ``index.html`` to a folder, and return the paths of the pages.

    Raises:
        MateriaError: a file cannot be written.
    """
    defined = levels()
    entries = [
        Html(f'<li><a href="{level.name}.html" data-level="{level.name}">{esc(level.title)}</a></li>')
        for level in defined
    ]
    overview = Html(f'<p>{_OVERVIEW}</p><ul>{html_join(entries)}</ul><main id="levels"></main>')
    paths = [write_export(folder / "index.html", "page", html_page("Levels", overview, read_package_text(SCRIPT)))]
    for level, next_name in zip(defined, [*(level.name for level in defined[1:]), ""], strict=True):
        graph, changed = level_graph(level), changed_graphs(level)
        page = play_page(level.title, graph, level_data(level, graph, changed, next_name), list(changed.values()))
        paths.append(write_export(folder / f"{level.name}.html", "page", page))
    return paths


def level_graph(level: PlayLevel, change: Sequence[Mapping[str, JSON]] = ()) -> Graph:
    """Return the loadout of a level, with the operations in ``change`` applied."""
    card = dict(gallery()).get(level.loadout)
    document = json.loads(read_package_text(BUNDLED)) if card is None else card.document
    name = level.loadout if card is None else card.loadout
    return build_graph(as_object(with_patch(document, [*level.patch, *change])), name)


def level_data(level: PlayLevel, graph: Graph, changed: Mapping[str, Graph], next_name: str = "") -> dict[str, JSON]:
    """Return the states and answers of a level, and its task, in the form that the page reads.

    Args:
        level: the level.
        graph: the loadout of the level.
        changed: the loadout after each change that the level offers, by the label of the change.
        next_name: the name of the next level; empty for the last level.
    """
    space = explore_states(graph, level.items)
    ends = {END: "The cast completes", STOP: "The cast fails"}
    task: dict[str, JSON] = {
        **{field: getattr(level, field) for field in ("name", "goal", "event", "without", "since")},
        "next": next_name,
        "targets": [[id_, label] for id_, label in {**graph.names, **ends}.items()],
        "beliefs": [MISREADINGS[name].belief for name in level.misreadings],
        "paths": _draw_series(level, graph, space) if level.misreadings else [],
        "changes": [
            {"label": label, "play": play_data(other, explore_states(other, level.items), 0.5)}
            for label, other in changed.items()
        ],
    }
    play: dict[str, Any] = play_data(graph, space, 0.5)
    if level.casts > 1:
        for state in play["states"]:
            state[5] = state[5] or [[0, play["start"], play["start"], 0]]  # the next cast follows an end
    return {**play, "level": task}


def changed_graphs(level: PlayLevel) -> dict[str, Graph]:
    """Return the loadout after each change that a level offers, by the label of the change."""
    return {label: level_graph(level, change) for label, change in level.changes.items()}


# -- routes to predict -----------------------------------------------------------------------


def _draw_series(level: PlayLevel, graph: Graph, space: StateSpace) -> list[JSON]:
    """Return series of routes to predict, each with one route per cast of the level; move 0 separates two routes."""
    series = list(permutations(islice(_draw_paths(level, graph, space), _PATHS), level.casts))
    Random(level.name).shuffle(series)  # noqa: S311 - the routes are not secret
    return [
        [
            [number for path, _ in routes for number in (*path, 0)][:-1],
            [wrong_targets for _, beliefs in routes for wrong_targets in (*beliefs, None)][:-1],
        ]
        for routes in series[:_PATHS]
    ]


def _draw_paths(
    level: PlayLevel, graph: Graph, space: StateSpace
) -> Iterator[tuple[list[int], list[dict[str, JSON] | None]]]:
    """Yield distinct routes on which each misreading of a level leads to a different wrong prediction.

    A route is a pair of lists with an entry for each step. The first list contains the number of each move. Each entry of
    the second list maps wrong targets to misreading numbers, or is None if the step has only one target.
    """
    rng, seen = Random(level.name), set[tuple[object, ...]]()  # noqa: S311 - the routes are not secret
    misreadings = [MISREADINGS[name] for name in level.misreadings]
    choices = [_plain_moves(space, state) for state in range(len(space.nodes))]
    for _ in range(_MAX_DRAWS):
        path, has_choice = _random_path(space, choices, rng, level.questions)
        if tuple(path) in seen:
            continue
        seen.add(tuple(path))
        route, script = _route_and_script(space, path)
        if tuple(route) in seen:
            continue
        seen.add(tuple(route))
        beliefs: list[dict[str, JSON] | None] = [{} if is_choice else None for is_choice in has_choice]
        right = walk(graph, script)  # the engine has limits that :func:`walk` does not know
        is_right = [*right.route, right.target][: len(route)] == route
        if is_right and _add_beliefs(beliefs, route, [walk(graph, script, rules) for rules in misreadings]):
            yield path, beliefs


def _random_path(
    space: StateSpace, choices: Sequence[tuple[list[int], bool]], rng: Random, question_count: int
) -> tuple[list[int], list[bool]]:
    """Return the numbers of random moves, and a list that contains True for each move with several possible targets.

    ``choices`` is the result of :func:`_plain_moves` for each state.
    """
    path, has_choice, state = list[int](), list[bool](), 0
    while sum(has_choice) < question_count and choices[state][0]:
        numbers, has_several_targets = choices[state]
        has_choice.append(has_several_targets)
        path.append(rng.choice(numbers))
        state = space.moves[state][path[-1]].to
    return path, has_choice


def _plain_moves(space: StateSpace, state: int) -> tuple[list[int], bool]:
    """Return the numbers of the moves without a question or failure, and True if they lead to several targets."""
    moves = space.moves[state]
    numbers = [
        number
        for number, move in enumerate(moves)
        if not move.answer.asks and move.answer.result not in (Result.FAILED, Result.REFUSED)
    ]
    targets = {(node.socket, node.end) for node in (space.nodes[moves[number].to] for number in numbers)}
    return numbers, len(targets) > 1


def _add_beliefs(beliefs: Sequence[dict[str, JSON] | None], route: Sequence[str], walks: Iterable[RouteWalk]) -> bool:
    """Add the first wrong target of each misreading, and return False if a misreading cannot be recognized by its target."""
    for number, wrong in enumerate(walks):
        targets = (*wrong.route, wrong.target)
        step = next((step for step, pair in enumerate(zip(route, targets, strict=False)) if pair[0] != pair[1]), 0)
        targets_of_step = beliefs[step - 1]
        if not step or targets_of_step is None or targets[step] in targets_of_step:
            return False
        targets_of_step[targets[step]] = number
    return True


def _route_and_script(space: StateSpace, path: Sequence[int]) -> tuple[list[str], ScriptedVerdicts]:
    """Return the sockets on a route, including its end, and the work items and verdicts that produce the route."""
    state, route, item_count = 0, [str(space.nodes[0].socket)], 0
    verdicts: dict[str, list[bool | None]] = {}
    for number in path:
        move = space.moves[state][number]
        verdicts.setdefault(route[-1], []).append({Result.YES: True, Result.NO: False}.get(move.answer.result))
        item_count = item_count if move.answer.list_length is None else move.answer.list_length
        state = move.to
        node = space.nodes[state]
        route.append(str(node.socket) if node.end is None else END if node.end == COMPLETE else STOP)
    return route, ScriptedVerdicts([f"item {number + 1}" for number in range(item_count)], verdicts)
