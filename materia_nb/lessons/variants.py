"""Exercises that differ for each learner: a small random loadout with questions about its cast; and a night shift.

The graph and the numbers of an exercise are drawn from a seed. On the night shift, six agents ask a person to approve a
command or to answer a question.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from materia_nb.agents.interface import Turn
from materia_nb.cast import Cast
from materia_nb.cast.views.status import steps_view
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Block, Shown, Table, Text, lines
from materia_nb.display.svg import GraphPicture, graph_block
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.handoff import protocol
from materia_nb.jsonvalue import JSON, set_path, split_path
from materia_nb.lessons.checks import QuestionRow, judge_answers
from materia_nb.lessons.misreadings import MISREADINGS, RouteAnswer, RouteWalk, ScriptedVerdicts
from materia_nb.loadout import Graph, build_graph
from materia_nb.loadout.graph import END

_Document: TypeAlias = dict[str, JSON]
_Verdicts: TypeAlias = dict[str, list[bool]]

_CHECKS_BEFORE_STEPS: Final = 2
"""Number of wrong checks after which the steps of the cast are shown."""
_TITLES: Final = ("Ants", "Bees", "Cats", "Dogs", "Eels")
_EMPTY_SHARE: Final = 0.03
"""Share of empty lists among the draws; among exercises it is larger, since most draws with items are rejected."""
_MAX_DRAWS: Final = 500


@dataclass(frozen=True, slots=True)
class Drawn:
    """A variant of an exercise: a config, the items, and the verdicts of each materia in visit order."""

    document: _Document
    items: tuple[str, ...] | None
    verdicts: _Verdicts


class TopicQuestion(NamedTuple):
    """A question of an exercise, with a function that reads the right answer, and a hint for a wrong answer."""

    text: str
    read: Callable[[RouteWalk], JSON]
    hint: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of exercise.

    Attributes:
        title: the subject of the exercise.
        draw: function that draws a variant.
        questions: the questions by name.
        misreadings: the misreadings that lead to a wrong answer in each variant.
    """

    title: str
    draw: Callable[[Random], Drawn]
    questions: Mapping[str, TopicQuestion]
    misreadings: tuple[str, ...]


class Exercise(Shown):
    """An exercise with a loadout, the verdicts of its agents, and questions; the notebook does not contain the answers.

    Args:
        topic: one of :data:`TOPICS`.
        seed: the seed of the variant, such as a name; the same seed gives the same exercise.

    Raises:
        MateriaError: there is no such topic (``unknown_topic``).
    """

    def __init__(self, topic: str, seed: str) -> None:
        needs_one_of(str(topic), TOPICS, f"The topic {str(topic)[:80]!r} does not exist.", "unknown_topic")
        self.topic, self.seed = topic, str(seed).strip()
        self._topic = TOPICS[topic]
        self.drawn = self._draw()
        self._wrong_checks = 0

    def _draw(self) -> Drawn:
        chance = Random(f"{self.topic}:{self.seed.casefold()}")  # noqa: S311 - chances, no secrets
        for _ in range(_MAX_DRAWS):
            drawn = self._topic.draw(chance)
            if _separates(drawn, self._topic):
                return drawn
        raise AssertionError(f"no variant of {self.topic} separates its misreadings from the rules")

    @cached_property
    def graph(self) -> Graph:
        """The resolved graph of the drawn loadout."""
        return build_graph(self.drawn.document)

    @property
    def document(self) -> _Document:
        """The config of the loadout."""
        return self.drawn.document

    @property
    def questions(self) -> dict[str, str]:
        """The questions, by the name of the argument of :meth:`check`."""
        return {name: question.text for name, question in self._topic.questions.items()}

    def check(self, **answers: object) -> Text:
        """Pass if every question has the right answer; see :func:`materia_nb.lessons.check`.

        Raises:
            MateriaError: an answer is wrong (``wrong_answer``) or missing (``no_answer``), or does not belong to a
                question (``unknown_question``).
        """
        for name in answers:
            message = f"{name} is not a question of this exercise."
            needs_one_of(name, self.questions, message, "unknown_question")
        rows: dict[str, QuestionRow] = {
            name: (answers.get(name, ...), answer) for name, answer in route_answers(self).items()
        }
        hints = {name: question.hint for name, question in self._topic.questions.items()}
        try:
            return judge_answers(self.topic, self.seed, hints, rows, self.graph)
        except MateriaError as error:
            self._wrong_checks += error.kind == "wrong_answer"
            if error.kind == "wrong_answer" and self._wrong_checks >= _CHECKS_BEFORE_STEPS:
                error.hint = "see the steps of the cast with steps() of this exercise, or try another seed"
            raise

    def steps(self) -> Table:
        """Cast the loadout and return its steps as a table; available after two wrong checks.

        Raises:
            MateriaError: there were fewer than two wrong checks (``not_yet``).
        """
        if self._wrong_checks < _CHECKS_BEFORE_STEPS:
            raise MateriaError(
                f"The steps are shown after {_CHECKS_BEFORE_STEPS} wrong checks.",
                hint="check your answers first",
                kind="not_yet",
            )
        with cast_once(self.document, "an exercise", scripted_agents(self)) as (cast, _):
            return steps_view(cast.now)

    @property
    def script_lines(self) -> tuple[str, ...]:
        """Sentences that describe the items and the verdicts."""
        items = self.drawn.items
        listed = [] if items is None else [f"Items: {', '.join(items) or 'none, the list is empty'}."]
        return (
            *listed,
            *(f"{materia} answers: {_verdicts_text(verdicts)}." for materia, verdicts in self.drawn.verdicts.items()),
        )

    @property
    def title(self) -> str:
        """The title of the exercise: its subject and its seed."""
        return f"{self._topic.title}, for {self.seed or 'everybody'}"

    @property
    def picture(self) -> GraphPicture:
        """The loadout as a picture."""
        return GraphPicture(self.graph)

    def _blocks(self) -> list[Block]:
        questions = [f"{name}: {text}" for name, text in self.questions.items()]
        return [*lines(self.script_lines), graph_block(self.graph, text=self.picture.text), *lines(questions)]


def exercise(topic: str, seed: str = "") -> Exercise:
    """Draw an exercise on ``edges``, ``rework``, ``loops`` or ``exits``; the same seed gives the same exercise.

    Raises:
        MateriaError: there is no such topic (``unknown_topic``).
    """
    return Exercise(topic, seed)


def route_answers(exercise_: Exercise) -> dict[str, RouteAnswer]:
    """Return the right answers of an exercise, by question."""
    return _route_answers(exercise_.drawn, TOPICS[exercise_.topic])


def _route_answers(drawn: Drawn, topic: Topic) -> dict[str, RouteAnswer]:
    graph = build_graph(drawn.document)
    verdicts = {id_: drawn.verdicts.get(socket.materia.id, ()) for id_, socket in graph.sockets.items()}
    script = ScriptedVerdicts(drawn.items or (), verdicts)
    return {name: RouteAnswer(graph, script, question.read) for name, question in topic.questions.items()}


def _separates(drawn: Drawn, topic: Topic) -> bool:
    """Return True if each misreading of the topic gives a wrong answer to at least one question."""
    answers = _route_answers(drawn, topic).values()
    names = _EMPTY_MISREADINGS if drawn.items == () else topic.misreadings
    return all(any(answer.by(MISREADINGS[name]) != answer.truth for answer in answers) for name in names)


def _verdicts_text(verdicts: Sequence[bool]) -> str:
    return ", then ".join("satisfied" if verdict else "not satisfied" for verdict in verdicts)


# -- playing -----------------------------------------------------------------------------


@contextmanager
def cast_once(document: _Document, request: str, answers: Mapping[str, Any]) -> Iterator[tuple[Cast, str]]:
    """Run a cast in a temporary folder; yield the cast and the reason why it stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="materia-lesson-") as folder,
        closing(Workbench(folder, bundled=False)) as bench,
    ):
        bench.load(document)
        cast = bench.cast(request, agents={"*": dict(answers)})
        yield cast, str(cast.run())


def scripted_agents(exercise_: Exercise) -> dict[str, Any]:
    """Return agents that give the verdicts and the items of an exercise; the last verdict repeats."""
    drawn = exercise_.drawn
    answers: dict[str, Any] = {socket.materia.id: ["Done."] * 60 for socket in exercise_.graph.sockets.values()}
    for materia, verdicts in drawn.verdicts.items():
        repeated = [*verdicts, *[verdicts[-1]] * 40]
        answers[materia] = [{"satisfied": verdict, "context": "As said."} for verdict in repeated]
    if drawn.items is not None:
        answers["List"] = {"workItems": [{"title": title, "context": "An item."} for title in drawn.items]}
    return answers


# -- templates ---------------------------------------------------------------------------


def _config(sockets: Mapping[str, JSON], loop: _Document | None = None) -> _Document:
    """Return a config with these sockets; the materia List is a generator."""
    materia: _Document = {}
    for socket in sockets.values():
        assert isinstance(socket, dict)  # noqa: S101 - made below
        materia_id = str(socket["materia"])
        materia[materia_id] = {
            "type": "agent",
            "tools": "none",
            "prompt": "{{request}}",
            "generator": materia_id == "List",
        }
    loadout: _Document = {"entry": "Socket-1", "sockets": dict(sockets)}
    if loop is not None:
        loadout["loops"] = {"items": loop}
    return {"activeLoadout": "Exercise", "loadouts": {"Exercise": loadout}, "materia": materia}


def _edge(when: str, to: str, limit: int | None = None) -> _Document:
    return {"when": when, "to": to, **({} if limit is None else {"maxTraversals": limit})}


def _edges(chance: Random) -> Drawn:
    """Draw five to seven sockets whose edges lead only to later sockets, so that the cast ends."""
    count = chance.choice((5, 6, 7))
    sockets: _Document = {}
    verdicts: _Verdicts = {}
    for number in range(1, count):
        later = [f"Socket-{later_number}" for later_number in range(number + 1, count + 1)]
        first, second = chance.choice(
            (("satisfied", "not_satisfied"), ("satisfied", "always"), ("not_satisfied", "always"))
        )
        edges: list[JSON] = [_edge(first, chance.choice(later)), _edge(second, chance.choice([*later, END]))]
        sockets[f"Socket-{number}"] = {"materia": f"Ask-{number}", "parse": "json", "edges": edges}
        verdicts[f"Ask-{number}"] = [chance.random() < 0.5]
    sockets[f"Socket-{count}"] = {"materia": "Tell"}
    return Drawn(_config(sockets), None, verdicts)


def _rework(chance: Random) -> Drawn:
    """Draw a critic that refuses a few times, and the limit of the edge that sends work back."""
    sockets: _Document = {
        "Socket-1": {"materia": "Draft", "edges": [_edge("always", "Socket-2")]},
        "Socket-2": {
            "materia": "Critique",
            "parse": "json",
            "edges": [_edge("not_satisfied", "Socket-1", chance.randint(1, 4)), _edge("always", "Socket-3")],
        },
        "Socket-3": {"materia": "Send"},
    }
    return Drawn(_config(sockets), None, {"Critique": [*[False] * chance.randint(1, 5), True]})


def _loop(chance: Random, exits: Sequence[str], advance: str | None, budget: int | None) -> Drawn:
    """Draw a loop of Do and Check, with an exit from Check for each condition, to Socket-4 and Socket-5."""
    check: _Document = {
        "materia": "Check",
        "parse": "json",
        "edges": [_edge("not_satisfied", "Socket-2", budget), _edge("satisfied", "Socket-2")],
        **({} if advance is None else {"advance": {"when": advance}}),
    }
    sockets: _Document = {
        "Socket-1": {"materia": "List", "edges": [_edge("always", "Socket-2")]},
        "Socket-2": {"materia": "Do", "edges": [_edge("always", "Socket-3")]},
        "Socket-3": check,
        **{f"Socket-{4 + index}": {"materia": ("Tell", "Explain")[index]} for index in range(len(exits))},
    }
    routes: list[JSON] = [
        {"id": f"{when}", "from": "Socket-3", "condition": when, "targetSocketId": f"Socket-{4 + index}"}
        for index, when in enumerate(exits)
    ]
    loop: _Document = {
        "sockets": ["Socket-2", "Socket-3"],
        "consumes": {"from": "Socket-1", "output": "workItems"},
        "exits": routes,
    }
    items = _TITLES[: 0 if chance.random() < _EMPTY_SHARE else chance.choice((2, 3, 4, 5))]
    verdicts = [chance.random() < 0.5 for _ in range(len(items) + 3)]
    return Drawn(_config(sockets, loop), items, {"Check": verdicts} if items else {})


def _loops(chance: Random) -> Drawn:
    when = chance.choice(("satisfied", "satisfied", "always"))
    return _loop(chance, [when], None, chance.randint(1, 2))


def _exits(chance: Random) -> Drawn:
    return _loop(chance, ["satisfied", chance.choice(("not_satisfied", "always"))], "always", None)


_VISITS: Final = "How many times is Socket-2 visited?"
_LAST: Final = "Which socket is visited last?"
_ENDS: Final = "How does the cast end, 'complete' or 'failed'?"
_EMPTY_MISREADINGS: Final = ("empty-enters", "empty-fails")

TOPICS: Final[Mapping[str, Topic]] = {
    "edges": Topic(
        "Edges",
        _edges,
        {
            "route": TopicQuestion(
                "Which sockets are visited, in order? Answer with a list.",
                lambda walk: list(walk.route),
                "At each socket, take the first edge that matches the output.",
            )
        },
        ("last-match", "always-wins"),
    ),
    "rework": Topic(
        "Rework",
        _rework,
        {
            "drafts": TopicQuestion(
                "How many times is Socket-1 visited?",
                lambda walk: walk.visits["Socket-1"],
                "Count the first draft and every use of the edge back to Socket-1. How many times may that edge be taken?",
            ),
            "ends": TopicQuestion(
                _ENDS, lambda walk: walk.ends, "Does the edge back match more times than it may be taken?"
            ),
        },
        ("one-less",),
    ),
    "loops": Topic(
        "Loops",
        _loops,
        {
            "visits": TopicQuestion(
                _VISITS,
                lambda walk: walk.visits["Socket-2"],
                "Follow each visit: does the loop move to the next item, or repeat the current item?",
            ),
            "last": TopicQuestion(
                _LAST,
                lambda walk: walk.route[-1],
                "Exits count only when the list is exhausted. Without items, only an always exit matches.",
            ),
            "ends": TopicQuestion(
                _ENDS,
                lambda walk: walk.ends,
                "The limit of the edge back counts for each item. Is it reached for any item?",
            ),
        },
        ("early-exit", "refusal-leaves", "always-advances", "limit-per-cast"),
    ),
    "exits": Topic(
        "Exits",
        _exits,
        {
            "visits": TopicQuestion(
                _VISITS,
                lambda walk: walk.visits["Socket-2"],
                "Look at the advance: here each item is visited once, whatever the verdict is.",
            ),
            "last": TopicQuestion(
                _LAST,
                lambda walk: walk.route[-1],
                "The verdict on the last item selects the exit. Without items, only an always exit matches.",
            ),
        },
        ("early-exit", "satisfied-advances"),
    ),
}
"""The kinds of exercises by name."""


_FILES: Final = ("build/old.txt", "buiId/customers.csv", "invoices/may.pdf", "notes.txt")
"""The imaginary files that exist at the beginning of each cast."""
LOADOUT: Final = "Night"


class _Case(NamedTuple):
    """The request of one agent: the task, the announced action (None if it asks a question), and the command or question."""

    request: str
    announced: str | None
    asks: str


_CASES: Final = (
    _Case("Remove the old builds", "remove the folder build", "rm -r build"),
    _Case("Remove the old builds", "remove the folder build", "rm -r build ."),
    _Case("Write down who keeps the builds", None, "Who keeps them? I find no name."),
    _Case("Say how many builds there are", "list the folder build", "ls build"),
    _Case("Remove the old builds", "remove the folder build", "rm -r buiId"),
    _Case("Free some space", "remove what nobody needs", "rm -r build invoices"),
)


class Night(Shown):
    """Six casts that need a decision of the person on duty; the display shows the request of each cast.

    Args:
        bench: the workbench; its loadout ``Night`` has an agent *Clean* that uses ``agent-contract``.
        order: the indices of the requests, in the order of the cases.

    Attributes:
        cases: the requests in that order.
        files: the imaginary files that exist now.
    """

    def __init__(self, bench: Workbench, order: Sequence[int]) -> None:
        self._bench = bench
        self.cases = tuple(_CASES[number] for number in order)
        self.files = set(_FILES)

    def cast(self, number: int) -> Cast:
        """Start the cast of a case, counted from 1, after restoring all files."""
        case, memory = self.cases[number - 1], dict[str, Any]()
        self.files = set(_FILES)

        def clean(turn: Turn) -> str:
            if turn.kind == "work":
                match = re.search(r'"agent_id": "(\w+)"', turn.prompt)
                memory["id"] = match[1] if match else ""
                if case.announced is None:
                    return _contract(memory["id"], "NEEDS_INPUT", case.asks)
                request: dict[str, JSON] = {
                    "operation": case.announced,
                    "exact_content": case.asks,
                    "scope": "this disk",
                    "risk_level": "MEDIUM",
                    "rollback": "none",
                    "verification": "look",
                    "approval_id": f"P-{number:032}",
                }
                return _contract(memory["id"], "APPROVAL_REQUEST", "The command needs your approval.", request)
            if turn.approval is not None and turn.approval.use(case.asks, time.time())[0]:
                self._run(case.asks)
            memory["turns"] = memory.get("turns", 0) + 1
            if memory["turns"] == 1:
                return _contract(memory["id"], "IN_PROGRESS", "The work continues.")
            return _contract(memory["id"], "COMPLETE", "The work is done.")

        return self._bench.cast(case.request, loadout=LOADOUT, agents={"Clean": clean, "Tell": lambda: "Told."})

    def after(self, number: int, decision: object) -> tuple[Cast, list[str]]:
        """Run a case and approve, answer or deny it; return its cast and the removed files.

        The decision is ``approve`` or ``answer``; any other value denies the request.
        """
        cast = self.cast(number)
        cast.run()
        if decision == "approve" and self.cases[number - 1].announced is not None:
            cast.approvals.approve()
        elif decision in ("approve", "answer"):
            cast.reply("Ms Day keeps them.")
        else:
            cast.approvals.deny("Not on my shift.")
        return cast, sorted({*_FILES} - self.files)

    def right(self, number: int) -> str:
        """Return the right decision: ``answer`` for a question; ``approve`` if only old builds are removed; or ``deny``."""
        if self.cases[number - 1].announced is None:
            return "answer"
        _, removed_files = self.after(number, "approve")
        return "approve" if {*removed_files} <= {"build/old.txt"} else "deny"

    def _run(self, command: str) -> None:
        program, *paths = command.split()
        for folder in paths[1:] if program == "rm" else ():
            self.files = {file for file in self.files if folder != "." and not file.startswith(f"{folder}/")}

    def _blocks(self) -> list[Block]:
        blocks = list[Block]()
        for number, case in enumerate(self.cases, start=1):
            verb = "asks" if case.announced is None else "runs"
            announcement = [] if case.announced is None else [f"   says: {case.announced}"]
            blocks += lines([f"{number} {case.request}", *announcement, f"   {verb}: {case.asks}"])
        return blocks


def night_shift(bench: Workbench, order: Sequence[int]) -> Night:
    """Return a night shift with the requests in this order; see :class:`Night`."""
    return Night(bench, order)


def _contract(agent: str, status: str, text: str, request: dict[str, JSON] | None = None) -> str:
    """Return a made-up contract with this status, text and approval request."""
    handoff = protocol("agent-contract")
    value: Mapping[str, JSON] = next(handoff.sample_outputs("done" if status == "COMPLETE" else "stuck", 0))
    for path, part in (
        ("agent_status.agent_id", agent),
        ("agent_status.plan_status", status),
        ("agent_status.next_action", text),
        ("evidence_report.key_outputs", [text]),
        ("approval_request", request),
    ):
        value = set_path(value, split_path(path), part)
    return handoff.write(value)
