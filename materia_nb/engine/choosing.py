"""Which edge or exit is taken for what an output said (R3, R16), worked out once for each socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from materia_nb.loadout.graph import END, Edge, ExitRoute
from materia_nb.loadout.vocabulary import ANYTHING, Said, described, said_words

By: TypeAlias = Literal[
    "edge",
    "exit",
    "implied end",
    "empty loop",
    "repair",
    "draft",
    "finalize",
    "failure",
    "budget",
    "reissue",
    "pause",
    "escalate",
    "detour",
    "return",
    "person",
]
"""What chose the target of a step."""


class Look(NamedTuple):
    """One edge or exit route that was looked at, in order, and whether it matched."""

    kind: Literal["edge", "exit"]
    when: str
    to: str
    matched: bool
    place: int | None = None
    route: str | None = None
    used: int | None = None
    limit: int | None = None

    def reason(self, satisfied: Said) -> str:
        """Say in words why it matched or not, for an output that said ``satisfied``."""
        condition = described(self.when)
        if not condition.whatever:
            return f"the output says {said_words(satisfied)}; {self.when} needs {condition.asked}"
        if self.matched:
            return f"{self.when} matches"
        return f"{self.when} would match, but a guarded exit goes first"


class Choice(NamedTuple):
    """The target, what chose it, everything that was looked at, and the edge if it was one, with its use and limit."""

    target: str
    by: By
    looks: tuple[Look, ...] = ()
    edge: Edge | None = None
    route: ExitRoute | None = None
    used: int = 0
    limit: int | None = None


Choices: TypeAlias = Mapping[Said, Choice]
"""What is chosen for each thing that an output can say."""


def matches(when: str, satisfied: Said) -> bool:
    """Whether a canonical condition holds for what the output said (R3)."""
    return described(when).holds(satisfied)


def edge_choices(edges: Sequence[Edge]) -> Choices:
    """Take the first edge that matches, else the implied end (R3)."""
    return {said: _edge(edges, said) for said in ANYTHING}


def _edge(edges: Sequence[Edge], said: Said) -> Choice:
    looks: list[Look] = []
    for edge in edges:
        taken = matches(edge.when, said)
        looks.append(Look("edge", edge.when, edge.to, taken, edge.place, used=0))
        if taken:
            return Choice(edge.to, "edge", tuple(looks), edge)
    return Choice(END, "implied end", tuple(looks))


def exit_choices(routes: Sequence[ExitRoute]) -> Choices:
    """Leave an exhausted loop: the guarded route that fits, then ``always``, then the end (R16)."""
    return {said: _exit(routes, said) for said in ANYTHING}


def _exit(routes: Sequence[ExitRoute], said: Said) -> Choice:
    fitting = [route for route in routes if matches(route.condition, said)]
    guarded = [route for route in fitting if not described(route.condition).whatever]
    taken = next(iter(guarded or fitting), None)
    looks = tuple(
        Look("exit", route.condition, route.target, route is taken, route=route.edge_id) for route in routes
    )
    if taken is None:
        return Choice(END, "implied end", looks)
    return Choice(taken.target, "exit", looks, route=taken)
