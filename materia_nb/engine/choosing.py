"""Which edge or exit is taken for what happened to a visit (R3, R16), worked out once for each socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from materia_nb.loadout.graph import END, Edge, ExitRoute
from materia_nb.loadout.vocabulary import TAKEN, Result, described

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

    def reason(self, result: Result) -> str:
        """Say in words why it matched or not, for a visit to which this happened."""
        condition = described(self.when)
        if not condition.whatever or result not in TAKEN:
            return f"{result.words}; {self.when} needs {condition.asked}"
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


Choices: TypeAlias = Mapping[Result, Choice]
"""What is chosen for each thing that can happen to a visit."""


def matches(when: str, result: Result) -> bool:
    """Whether a canonical condition holds for what happened to a visit (R3)."""
    return described(when).holds(result)


def edge_choices(edges: Sequence[Edge]) -> Choices:
    """Take the first edge that matches, else the implied end (R3); without an output, nothing where no edge waits for that."""
    choices = {result: _edge(edges, result) for result in Result}
    return {result: choice for result, choice in choices.items() if choice is not None}


def _edge(edges: Sequence[Edge], result: Result) -> Choice | None:
    looks: list[Look] = []
    for edge in edges:
        taken = matches(edge.when, result)
        looks.append(Look("edge", edge.when, edge.to, taken, edge.place, used=0))
        if taken:
            return Choice(edge.to, "edge", tuple(looks), edge)
    return Choice(END, "implied end", tuple(looks)) if result in TAKEN else None


def exit_choices(routes: Sequence[ExitRoute]) -> Choices:
    """Leave an exhausted loop: the guarded route that fits, then ``always``, then the end (R16)."""
    return {result: _exit(routes, result) for result in TAKEN}


def _exit(routes: Sequence[ExitRoute], result: Result) -> Choice:
    fitting = [route for route in routes if matches(route.condition, result)]
    guarded = [route for route in fitting if not described(route.condition).whatever]
    taken = next(iter(guarded or fitting), None)
    looks = tuple(
        Look("exit", route.condition, route.target, route is taken, route=route.edge_id) for route in routes
    )
    if taken is None:
        return Choice(END, "implied end", looks)
    return Choice(taken.target, "exit", looks, route=taken)
