"""How two casts differ: their steps beside one another, the first difference, and why it came to it.

What they did counts: answers, decisions, states and ends. Time, cost, ids and what was asked are told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple, TypeAlias

from materia_nb.engine.session import StepRecord, Streams, all_steps
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError
from materia_nb.insight import sides
from materia_nb.insight.sides import (
    Aspect,
    FirstDifference,
    LoadoutComparison,
    Side,
    ValueChange,
    WhichSide,
    after_the_last,
    between,
    where,
)
from materia_nb.loadout.graph import Route


class Pair(NamedTuple):
    """A step of each cast beside one another, None where only the other has it; ``differs`` says in what they differ."""

    a: StepRecord | None
    b: StepRecord | None
    differs: tuple[Aspect, ...] = ()

    @property
    def did(self) -> tuple[Aspect, ...]:
        """In what the steps themselves differ: a state that differed before is no doing of theirs."""
        inherited = {"given", "state"} if "given" in self.differs else {"given"}
        return tuple(one for one in self.differs if one not in inherited)

    @property
    def where(self) -> WhichSide:
        """Which of the two casts has it."""
        return "A" if self.b is None else "B" if self.a is None else "both"


class Comparison:
    """Two casts beside one another; true if they differ in what they did.

    ``a`` and ``b`` are what is compared.
    """

    def __init__(self, a: Side, b: Side) -> None:
        """Compare two casts; nothing is worked out before it is asked for."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def _names(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    @cached_property
    def first(self) -> FirstDifference | None:
        """Where they first differ in what they did, and why; None when they did the same."""
        return self.first_where(lambda one, other: bool(sides.differs(one, other, self._names)))

    def first_where(self, differ: Callable[[StepRecord, StepRecord], bool]) -> FirstDifference | None:
        """Where they first differ in the sense of ``differ``, or in how far they went, lane by lane; None where they do not."""
        right_of = {streams.step: streams for streams in self.b.session.streams}
        left_of = {streams.step: streams for streams in self.a.session.streams}
        for one, other in zip(self.a.session.steps, self.b.session.steps, strict=False):
            if differ(one, other):
                return self._at(one, other)
            left, right = left_of.get(one.number), right_of.get(one.number)
            if (found := self._in_lanes(left, right, one, differ)) is not None:
                return found
        return after_the_last(self.a, self.b)

    def _in_lanes(
        self,
        left: Streams | None,
        right: Streams | None,
        behind: StepRecord,
        differ: Callable[[StepRecord, StepRecord], bool],
    ) -> FirstDifference | None:
        if left is None or right is None:
            if left is right:
                return None
            shorter, longer = ("B", "A") if right is None else ("A", "B")
            why = f"{longer} has handed the items to lanes; {shorter} has not yet."
            way = sides.went(behind)
            return FirstDifference(behind.number, way, way, (why,), (), "", "B" if right is None else "A")
        found = []
        for name in left.lanes:
            if name in right.lanes:
                a = self.a._replace(session=left.lanes[name].session)
                b = self.b._replace(session=right.lanes[name].session)
                found.append(Comparison(a, b).first_where(differ))
        known = [one for one in found if one is not None]
        return next((one for one in known if not one.shorter), known[0] if known else None)

    def _at(self, one: StepRecord, other: StepRecord) -> FirstDifference:
        aspects = sides.differs(one, other, self._names)
        return between(one, other, aspects, self._names, (self.a.rules.graph, self.b.rules.graph))

    @property
    def stands(self) -> str | None:
        """Which of the two, ``A`` or ``B``, only has not gone on yet: all of its steps are the other's; None if neither."""
        name = "" if self.first is None else self.first.shorter
        side = self.a if name == "A" else self.b
        return name if name and side.session.state.status in ("ready", "waiting") else None

    @cached_property
    def parted(self) -> int | None:
        """The first step behind which the two routes are no longer the same, counted from 1; None when they are."""
        ones, others = self.a.session.steps, self.b.session.steps
        for number, (one, other) in enumerate(zip(ones, others, strict=False), start=1):
            if one.socket != other.socket:
                return number - 1
            if sides.went(one) != sides.went(other):
                return number
        return None if len(ones) == len(others) else min(len(ones), len(others))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The steps of both, aligned: by index as long as they do the same, then by socket, item and how many times."""
        ones, others = tuple(all_steps(self.a.session)), tuple(all_steps(self.b.session))
        together = 0
        for one, other in zip(ones, others, strict=False):
            if (one.socket, one.item_key, one.lane) != (other.socket, other.item_key, other.lane):
                break
            together += 1
        pairs: list[_Aligned] = list(zip(ones[:together], others[:together], strict=True))
        pairs += _aligned(ones[together:], others[together:])
        return tuple(
            Pair(one, other, sides.differs(one, other, self._names) if one and other else ())
            for one, other in pairs
        )

    @cached_property
    def state(self) -> list[ValueChange]:
        """Where their states differ as they stand now."""
        return sides.state_changes(self.a.session.state.data, self.b.session.state.data, self._names)

    @property
    def loadouts(self) -> LoadoutComparison:
        """The loadouts that they ran, beside one another."""
        return LoadoutComparison(self.a.rules.graph, self.b.rules.graph)

    @property
    def beside(self) -> StepComparison | None:
        """The step in which they first differ, of both: answer, prompt, state; None where not both have it."""
        first, found = self.first, list[StepRecord]()
        if first is None:
            return None
        for side in (self.a, self.b):
            steps = all_steps(side.session) if first.lane else side.session.steps[first.step - 1 :][:1]
            found += [one for one in steps if (one.number, one.lane) == (first.step, first.lane)]
        one, other = found if len(found) == 2 else (None, None)
        return None if one is None or other is None else StepComparison(one, other, self._names)

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """What each used in all."""
        return self.a.session.state.usage, self.b.session.state.usage

    @property
    def time(self) -> tuple[int | None, int | None]:
        """How many milliseconds the steps of each were worked on, None where that is unknown (R56)."""
        a, b = (sides.worked(all_steps(side.session))[0] for side in (self.a, self.b))
        return a, b

    @property
    def sockets(self) -> Mapping[str, WhichSide]:
        """Which of the two was at a socket, by its id."""
        return where(*([step.socket for step in all_steps(side.session)] for side in (self.a, self.b)))

    @property
    def routes(self) -> Mapping[Route, WhichSide]:
        """Which of the two took an edge or exit."""
        return where(_routes(self.a), _routes(self.b))


class StepComparison:
    """Two steps beside one another, of one cast or of two; true if they differ in what was done.

    ``a`` and ``b`` are the steps.
    """

    def __init__(self, a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> None:
        """Compare two steps; ``names`` are the ids of their casts, which make no difference."""
        self.a, self.b, self.names = a, b, names

    def __bool__(self) -> bool:
        return self.first is not None

    @cached_property
    def differs(self) -> tuple[Aspect, ...]:
        """In what they differ; what stood in the state before does not count, since other steps made it."""
        found = sides.differs(self.a, self.b, self.names)
        return tuple(one for one in found if one not in ("given", "state"))

    @cached_property
    def first(self) -> FirstDifference | None:
        """How they differ, None when they did the same."""
        return between(self.a, self.b, self.differs, self.names) if self.differs else None

    @cached_property
    def answer(self) -> list[ValueChange]:
        """Where their answers differ."""
        return sides.told_changes(sides.answer_of(self.a), sides.answer_of(self.b), self.names)

    @cached_property
    def state(self) -> list[ValueChange]:
        """Where the states that they left differ."""
        return sides.state_changes(self.a.after.data, self.b.after.data, self.names)

    @cached_property
    def prompt(self) -> tuple[str, ...]:
        """The layers of their prompts that differ, by name."""
        return sides.prompt_parts(self.a, self.b, self.names)


def visit_before(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the visit of the same socket before a step, of the same item if there is one.

    Raises:
        MateriaError: its socket was not visited before (``no_step``).
    """
    place = number - steps[0].number  # the steps of a lane are numbered on from where it began
    step = steps[place]
    earlier = [one for one in steps[:place] if one.socket == step.socket]
    if not earlier:
        raise MateriaError(
            f"{step.socket} was not visited before step {number}.", hint="compare other steps", kind="no_step"
        )
    return next((one for one in reversed(earlier) if one.item_key == step.item_key), earlier[-1])


_Aligned: TypeAlias = tuple[StepRecord | None, StepRecord | None]


def _aligned(a: Sequence[StepRecord], b: Sequence[StepRecord]) -> list[_Aligned]:
    left, right = _keys(a), _keys(b)
    if right < left:  # the matcher is not symmetric, and a comparison is
        return [(one, other) for other, one in _aligned(b, a)]
    made: list[_Aligned] = []
    for kind, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            made += zip(a[i:j], b[k:m], strict=True)
        else:
            made += [(one, None) for one in a[i:j]]
            made += [(None, other) for other in b[k:m]]
    return made


def _keys(steps: Sequence[StepRecord]) -> list[tuple[str, str, str, int]]:
    """Name each step by its lane, its socket, its item, and how many times the socket had worked on it."""
    keys = ((step.lane, step.socket, step.item_key or "") for step in steps)
    return [(*key, times) for key, times in sides.counted_keys(keys)]


def _routes(side: Side) -> list[Route]:
    found: list[Route] = []
    for decision in (step.decision for step in all_steps(side.session)):
        if decision is None or decision.socket is None or decision.failure is not None:
            continue
        chosen = decision.chosen
        if chosen is not None:
            found.append((decision.socket, chosen.route or chosen.place or 0))
        elif decision.by == "implied end":
            found.append((decision.socket, "end"))
    return found
