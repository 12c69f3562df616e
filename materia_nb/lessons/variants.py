"""Exercises that differ for each learner: a small random loadout with questions about its cast, and a night shift.

The graph and the numbers of an exercise are drawn from a seed. On the night shift six agents ask a person to approve a
command, or to answer a question.
"""

from __future__ import annotations

import json
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
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.checks import QuestionRow, QuestionSpec, answer_form, judge_answers
from materia_nb.loadout import Graph, build_graph
from materia_nb.loadout.graph import END, Edge
from materia_nb.loadout.vocabulary import Result, described

_Document: TypeAlias = dict[str, JSON]
_Verdicts: TypeAlias = dict[str, list[bool]]

_TRIES: Final = 2
"""Number of wrong checks after which the steps of the cast are shown."""
_TITLES: Final = ("Ants", "Bees", "Cats", "Dogs", "Eels")
_MOST_DRAWN: Final = 200


@dataclass(frozen=True, slots=True)
class Drawn:
    """A variant of an exercise: a config, the items, and the verdicts of each materia, visit by visit."""

    document: _Document
    items: tuple[str, ...] | None
    verdicts: _Verdicts


@dataclass(frozen=True, slots=True)
class Played:
    """The cast of a variant."""

    route: tuple[str, ...]
    ends: str
    visits: Mapping[str, int]
    last: str
    steps: Table


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of exercise.

    Attributes:
        about: its subject.
        draw: draws a variant.
        asks: the questions, each with its words and a function that reads the right answer from the cast.
        fits: returns True for a variant in which the usual wrong rules give another answer than the right ones.
        explained: the misreading that a wrong answer shows, by question and answer.
    """

    about: str
    draw: Callable[[Random], Drawn]
    asks: Mapping[str, tuple[str, Callable[[Played], JSON]]]
    fits: Callable[[Drawn, Played], bool]
    explained: Mapping[str, Mapping[str, str]]


class Exercise(Shown):
    """A loadout, the verdicts of its agents, and questions; the notebook does not contain the answers.

    They are read from a cast of the loadout with these verdicts.

    Args:
        topic: one of :data:`TOPICS`.
        seed: the seed of the variant, such as a name; the same seed gives the same exercise.

    Raises:
        MateriaError: there is no such topic (``unknown_topic``).
    """

    def __init__(self, topic: str, seed: str) -> None:
        needs_one_of(str(topic), TOPICS, f"There is no topic {str(topic)[:80]!r}.", "unknown_topic")
        self.topic, self.seed = topic, str(seed).strip()
        self._kind = TOPICS[topic]
        self.drawn, self.played = self._draw()
        self._wrong = 0

    def _draw(self) -> tuple[Drawn, Played]:
        chance = Random(f"{self.topic}:{self.seed.casefold()}")  # noqa: S311 - chances, no secrets
        for _ in range(_MOST_DRAWN):
            drawn = self._kind.draw(chance)
            played = _play(drawn)
            if self._kind.fits(drawn, played):
                return drawn, played
        raise AssertionError(f"the template of {self.topic} makes nothing worth asking")

    @cached_property
    def graph(self) -> Graph:
        """The loadout."""
        return build_graph(self.drawn.document)

    @property
    def document(self) -> _Document:
        """The config of the loadout."""
        return self.drawn.document

    @property
    def questions(self) -> dict[str, str]:
        """The questions, by the name of the argument of :meth:`check`."""
        return {name: words for name, (words, _) in self._kind.asks.items()}

    def check(self, **answers: object) -> Text:
        """Pass if every question has the right answer; see :func:`materia_nb.lessons.check`.

        Raises:
            MateriaError: an answer is wrong (``wrong_answer``), missing (``no_answer``), or to no question
                (``unknown_question``).
        """
        for name in answers:
            message = f"{name} is not a question of this exercise."
            needs_one_of(name, self.questions, message, "unknown_question")
        asked: dict[str, QuestionRow] = {
            name: (answers.get(name, ...), truth) for name, truth in right_answers(self).items()
        }
        try:
            return judge_answers(self.topic, self.seed, self._asks, asked, self.graph)
        except MateriaError as error:
            self._wrong += error.kind == "wrong_answer"
            if error.kind == "wrong_answer" and self._wrong >= _TRIES:
                error.hint = "look at the steps of the cast with steps() on this exercise, or try another seed"
            raise

    @property
    def _asks(self) -> dict[str, QuestionSpec]:
        truths = right_answers(self)
        return {
            name: QuestionSpec(answer_form(truths[name]), explanations)
            for name, explanations in self._kind.explained.items()
        }

    def steps(self) -> Table:
        """Show the steps of the cast, after two wrong checks.

        Raises:
            MateriaError: there were not enough checks yet (``not_yet``).
        """
        if self._wrong < _TRIES:
            raise MateriaError(
                f"The steps are shown after {_TRIES} tries.", hint="check your answers first", kind="not_yet"
            )
        return self.played.steps

    @property
    def said(self) -> tuple[str, ...]:
        """The items and the verdicts, in sentences."""
        items = self.drawn.items
        listed = [] if items is None else [f"Items: {', '.join(items) or 'none, the list is empty'}."]
        return (
            *listed,
            *(f"{who} says: {_words(verdicts)}." for who, verdicts in self.drawn.verdicts.items()),
        )

    @property
    def title(self) -> str:
        """The subject and the learner."""
        return f"{self._kind.about}, for {self.seed or 'everybody'}"

    @property
    def _asked(self) -> list[str]:
        return [f"{name}: {words}" for name, words in self.questions.items()]

    @property
    def picture(self) -> GraphPicture:
        """The loadout as a picture."""
        return GraphPicture(self.graph)

    def _blocks(self) -> list[Block]:
        return [*lines(self.said), graph_block(self.graph, text=self.picture.text), *lines(self._asked)]


def exercise(topic: str, seed: str = "") -> Exercise:
    """Draw an exercise: ``edges``, ``rework``, ``loops`` or ``exits``; the same seed gives the same one.

    Raises:
        MateriaError: there is no such topic (``unknown_topic``).
    """
    return Exercise(topic, seed)


def right_answers(exercise_: Exercise) -> dict[str, JSON]:
    """Return the right answers of an exercise, by question."""
    return {name: truth(exercise_.played) for name, (_, truth) in TOPICS[exercise_.topic].asks.items()}


def _words(verdicts: Sequence[bool]) -> str:
    return ", then ".join("satisfied" if verdict else "not satisfied" for verdict in verdicts)


# -- playing -----------------------------------------------------------------------------


@contextmanager
def cast_once(document: _Document, request: str, answers: Mapping[str, Any]) -> Iterator[tuple[Cast, str]]:
    """Run a cast in a temporary folder; also yield the reason why it stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="materia-lesson-") as folder,
        closing(Workbench(folder, bundled=False)) as bench,
    ):
        bench.load(document)
        cast = bench.cast(request, agents={"*": dict(answers)})
        yield cast, str(cast.run())


def _play(drawn: Drawn) -> Played:
    answers: dict[str, Any] = {
        who: [{"satisfied": verdict, "context": "As said."} for verdict in [*verdicts, *[verdicts[-1]] * 40]]
        for who, verdicts in drawn.verdicts.items()
    }
    if drawn.items is not None:
        answers["List"] = {"workItems": [{"title": verdict, "context": "An item."} for verdict in drawn.items]}
    graph = build_graph(drawn.document)
    for socket in graph.sockets.values():
        answers.setdefault(socket.materia.id, ["Done."] * 60)
    with cast_once(drawn.document, "an exercise", answers) as (cast, ends):
        return Played(
            tuple(socket for socket, *_ in cast.route),
            ends,
            dict(cast.now.engine.visits),
            decision.target or END if (decision := cast.steps[-1].decision) is not None else END,
            steps_view(cast.now),
        )


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


def _edge(when: str, to: str, most: int | None = None) -> _Document:
    return {"when": when, "to": to, **({} if most is None else {"maxTraversals": most})}


def _edges(chance: Random) -> Drawn:
    """Draw five to seven sockets whose edges lead to later ones, so that the cast ends."""
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
    """Draw a critic that refuses a few times, and the limit of the edge back."""
    sockets: _Document = {
        "Socket-1": {"materia": "Draft", "edges": [_edge("always", "Socket-2")]},
        "Socket-2": {
            "materia": "Critique",
            "parse": "json",
            "edges": [_edge("not_satisfied", "Socket-1", chance.randint(1, 3)), _edge("always", "Socket-3")],
        },
        "Socket-3": {"materia": "Send"},
    }
    return Drawn(_config(sockets), None, {"Critique": [*[False] * chance.randint(1, 4), True]})


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
    items = _TITLES[: chance.choice((0, 2, 2, 3, 3, 4))]
    verdicts = [chance.random() < 0.5 for _ in range(len(items) + 3)]
    return Drawn(_config(sockets, loop), items, {"Check": verdicts} if items else {})


def _loops(chance: Random) -> Drawn:
    when = chance.choice(("satisfied", "satisfied", "always"))
    return _loop(chance, [when], None, chance.randint(1, 2))


def _exits(chance: Random) -> Drawn:
    return _loop(chance, ["satisfied", chance.choice(("not_satisfied", "always"))], "always", None)


def _misread_routes(drawn: Drawn) -> set[tuple[str, ...]]:
    """Return the routes of a learner for whom the last edge that matches wins, or an always edge whatever is said."""
    return {_route(drawn, lambda edges: edges[-1]), _route(drawn, lambda edges: max(edges, key=_is_always))}


def _is_always(edge: Edge) -> bool:
    return edge.when == "always"


def _route(drawn: Drawn, choose: Callable[[list[Edge]], Edge]) -> tuple[str, ...]:
    """Return the route if ``choose`` says which of the edges that match is taken."""
    sockets = build_graph(drawn.document).sockets
    at, route = "Socket-1", list[str]()
    while at != END:
        route.append(at)
        (satisfied,) = drawn.verdicts.get(sockets[at].materia.id, [None])
        result = Result.of(satisfied)
        matching = [edge for edge in sockets[at].edges if described(edge.when).holds(result)]
        at = choose(matching).to if matching else END
    return tuple(route)


def _misread_visits(drawn: Drawn) -> set[int]:
    """Return the visits to the loop of a learner for whom the first verdict of a kind leaves it."""
    verdicts = drawn.verdicts.get("Check", [])
    return {
        verdicts.index(verdict) + 1
        for verdict in (True, False)
        if verdict in verdicts and drawn.items and len(drawn.items) > 1
    }


_VISITS: Final = ("how often is Socket-2 visited?", lambda played: played.visits.get("Socket-2", 0))
_ENDS: Final = ("how does it end, 'complete' or 'failed'?", lambda played: played.ends)
_WHERE: Final = ("which socket is visited last?", lambda played: played.route[-1])

TOPICS: Final[Mapping[str, Topic]] = {
    "edges": Topic(
        "Edges",
        _edges,
        {"route": ("which sockets are visited, in order, as a list?", lambda played: list(played.route))},
        lambda drawn, played: len(played.route) > 3 and _misread_routes(drawn).isdisjoint({played.route}),
        {"route": {"*": "At each socket take the first edge that matches its output."}},
    ),
    "rework": Topic(
        "Rework",
        _rework,
        {
            "drafts": ("how often is Socket-1 visited?", lambda played: played.visits["Socket-1"]),
            "ends": _ENDS,
        },
        lambda drawn, played: True,
        {
            "drafts": {"*": "The first draft, and one for each time the edge back is taken: how often may it be?"},
            "ends": {
                "complete": "The edge back matched once more than it may be taken. There is no fall-through to the next edge.",
                "failed": "It never refuses more often than the edge back may be taken.",
            },
        },
    ),
    "loops": Topic(
        "Loops",
        _loops,
        {"visits": _VISITS, "last": _WHERE, "ends": _ENDS},
        lambda drawn, played: len(played.route) != 3 and played.visits.get("Socket-2", 0) not in _misread_visits(drawn),
        {
            "visits": {"*": "Go visit by visit: does the item move on, or is it worked on again?"},
            "last": {
                "*": "Exits count only when the list is exhausted; with no item at all, only an exit for always does."
            },
            "ends": {"*": "The budget of the edge back counts for each item. Is it ever used up?"},
        },
    ),
    "exits": Topic(
        "Exits",
        _exits,
        {"visits": _VISITS, "last": _WHERE},
        lambda drawn, played: len(played.route) != 3,
        {
            "visits": {"*": "Each item is visited once here, whatever is said of it: look at the advance."},
            "last": {
                "*": "The verdict on the last item chooses the exit; with no item, only an exit for always matches."
            },
        },
    ),
}
"""The kinds of exercises by name."""


_FILES: Final = ("build/old.txt", "buiId/customers.csv", "invoices/may.pdf", "notes.txt")
"""The imaginary files at the beginning of each cast."""
LOADOUT: Final = "Night"


class _Case(NamedTuple):
    """The request of one agent: the task, the announced action (None if it asks a question), and the command or question."""

    request: str
    says: str | None
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
    """Six casts for the person on duty; it shows the request of each.

    Args:
        bench: the workbench; its loadout ``Night`` has an agent *Clean* that uses ``agent-contract``.
        order: the numbers of the requests in their order.

    Attributes:
        cases: the requests in that order.
        files: the imaginary files that exist now.
    """

    def __init__(self, bench: Workbench, order: Sequence[int]) -> None:
        self._bench = bench
        self.cases = tuple(_CASES[number] for number in order)
        self.files = set(_FILES)

    def cast(self, number: int) -> Cast:
        """Start the cast of a case, counted from 1, with all files."""
        case, memory = self.cases[number - 1], dict[str, Any]()
        self.files = set(_FILES)

        def clean(turn: Turn) -> str:
            if turn.kind == "work":
                match = re.search(r'"agent_id": "(\w+)"', turn.prompt)
                memory["id"] = match[1] if match else ""
                if case.says is None:
                    return _contract(memory["id"], "NEEDS_INPUT", case.asks)
                return _contract(memory["id"], "APPROVAL_REQUEST", "It was held back.", _ask(case, number))
            if turn.grant is not None and turn.grant.use(case.asks, time.time())[0]:
                self._run(case.asks)
            memory["turns"] = memory.get("turns", 0) + 1
            if memory["turns"] == 1:
                return _contract(memory["id"], "IN_PROGRESS", "I go on.")
            return _contract(memory["id"], "COMPLETE", "It is done.")

        return self._bench.cast(case.request, loadout=LOADOUT, agents={"Clean": clean, "Tell": lambda: "Told."})

    def after(self, number: int, decision: object) -> tuple[Cast, list[str]]:
        """Decide a case with ``approve`` or ``answer``, or deny it; return its cast and the files that were removed."""
        cast = self.cast(number)
        cast.run()
        if decision == "approve" and self.cases[number - 1].says is not None:
            cast.approvals.approve()
        elif decision in ("approve", "answer"):
            cast.reply("Ms Day keeps them.")
        else:
            cast.approvals.deny("Not on my shift.")
        return cast, sorted({*_FILES} - self.files)

    def right(self, number: int) -> str:
        """Return the right decision: approve if only the old builds are removed."""
        if self.cases[number - 1].says is None:
            return "answer"
        _, gone = self.after(number, "approve")
        return "approve" if {*gone} <= {"build/old.txt"} else "deny"

    def _run(self, command: str) -> None:
        program, *paths = command.split()
        for folder in paths[1:] if program == "rm" else ():
            self.files = {file for file in self.files if folder != "." and not file.startswith(f"{folder}/")}

    def _blocks(self) -> list[Block]:
        blocks = list[Block]()
        for number, case in enumerate(self.cases, start=1):
            verb = "asks" if case.says is None else "runs"
            announcement = [] if case.says is None else [f"   says: {case.says}"]
            blocks += lines([f"{number} {case.request}", *announcement, f"   {verb}: {case.asks}"])
        return blocks


def night_shift(bench: Workbench, order: Sequence[int]) -> Night:
    """Make a night shift; see :class:`Night`."""
    return Night(bench, order)


def _ask(case: _Case, number: int) -> dict[str, JSON]:
    return {
        "operation": case.says,
        "exact_content": case.asks,
        "scope": "this disk",
        "risk_level": "MEDIUM",
        "rollback": "none",
        "verification": "look",
        "approval_id": f"P-{number:032}",
    }


def _contract(who: str, status: str, text: str, ask: dict[str, JSON] | None = None) -> str:
    left = [] if status == "COMPLETE" else ["the work"]
    lists = ("patterns_checked", "files_checked", "commands_run", "verbatim_outputs")
    evidence: dict[str, JSON] = {key: [] for key in (*lists, "cross_layer_impacts", "open_gaps")}
    evidence |= {
        "key_outputs": [text],
        "verification": {"method": "looked at the files", "result": "pass"},
    }
    agent = {"plan_status": status, "agent_id": who, "pending_steps": left, "next_action": text}
    block = {
        "agent_status": agent,
        "evidence_report": evidence,
        "consolidation_report": None,
        "approval_request": ask,
    }
    return f"{text}\n\n```agent_contract_handoff\n{json.dumps(block)}\n```"
