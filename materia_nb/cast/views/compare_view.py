"""What a notebook shows of comparisons, replays, blame and attempts: tables, and the graph with what only one of two did."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from materia_nb.cast.formatting import TableOf, how_it_came, verdict_words
from materia_nb.cast.views.tables import changes_table
from materia_nb.display.blocks import (
    Block,
    Fold,
    Heading,
    JsonTree,
    Line,
    Shown,
    Table,
    WordDiff,
    lines,
)
from materia_nb.display.escape import shorten
from materia_nb.display.graph_parts import Marks
from materia_nb.display.svg import GraphPicture, graph_block
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord, all_steps
from materia_nb.errors import MateriaError, counted, plain
from materia_nb.insight import diff
from materia_nb.insight.compare import Comparison, Replay, StepComparison, StepPair
from materia_nb.insight.diff import ComparedCast, LoadoutComparison, format_difference
from materia_nb.insight.estimate import format_work_time, step_time, step_usage
from materia_nb.jsonvalue import JSON, FrozenDict, same
from materia_nb.loadout.graph import Graph

if TYPE_CHECKING:
    from materia_nb.insight.blame import BlameEntry

_ALIKE_SHOWN: Final = 3
"""Of steps one after another that are alike, only so many are shown at each end."""
_CHANGES_SHOWN: Final = 20
_LATER_SHOWN: Final = 20
"""So many steps behind the first that differs are compared word by word."""
_VALUE_CHARS: Final = 120
_SAID_CHARS: Final = 80
"""So much of what a step said stands in its row."""

_PAIR_COLUMNS: Final = ("step", "A", "B", "differs in")
_SPENT_COLUMNS: Final = ("", "A", "B")


class CompareView(Shown, Comparison):
    """Two casts beside one another; see :class:`materia_nb.insight.compare.Comparison` for the values."""

    @property
    def picture(self) -> GraphPicture:
        """The graph of the first with the sockets and routes that only one of the two took."""
        return GraphPicture(self.a.rules.graph, Marks(only=_only(self.sockets), only_routes=_only(self.routes)))

    @property
    def pictures(self) -> tuple[GraphPicture, ...]:
        """The graph with what only one of them took; of casts of different loadouts, the graph of each."""
        if not self.loadouts.differences:
            return (self.picture,)
        return self.picture, GraphPicture(self.b.rules.graph, self.picture.marks)

    def _difference(self, names: Mapping[str, str]) -> tuple[Heading, list[str]]:
        """Say in one sentence where they first differ, or that they do not, and then in what and why."""
        first = self.first
        if first is None:
            steps = counted(len(all_steps(self.a.session)), "step")
            return Heading(f"A and B did the same, in {steps}.", tone="good"), []
        if self.stands is not None:
            other = "B" if self.stands == "A" else "A"
            after = f"after {first.place}" if first.step else "at the start"
            said = f"{self.stands} stands {after}; nothing differs so far. {other} has continued from there."
            return Heading(said, tone="good"), []
        why, *more = (_called(line, names) for line in first.lines)
        headline, _, what = why.partition(": ")
        more = [*([what] if what else []), *more]
        if found := self.loadouts.differences:
            more.append(f"Their loadouts differ in {counted(len(found), 'thing')} (.loadouts).")
        if self.parted is not None and self.parted > first.step and not first.lane:
            more.append(f"Their routes are the same up to step {self.parted}.")
        return Heading(f"They first differ in {first.place}: {headline}", tone="warn"), more

    def rows(self, names: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
        """The steps beside one another; those alike are left out but for the first and last few.

        Args:
            names: what sockets are called; by their ids if left out.
        """
        rows: list[tuple[str, ...]] = []
        for alike, pairs in groupby(self.pairs, lambda pair: pair.side == "both" and not pair.did):
            found = [_row(pair, names or {}) for pair in pairs]
            if alike and (more := len(found) - 2 * _ALIKE_SHOWN) > 1:
                found[_ALIKE_SHOWN:-_ALIKE_SHOWN] = [("…", f"{more} steps alike", "", "")]
            rows += found
        return rows

    def _spent(self) -> list[tuple[str, ...]]:
        rows = [
            ("ends", *(side.session.state.status for side in (self.a, self.b))),
            ("steps", *(str(len(all_steps(side.session))) for side in (self.a, self.b))),
            ("tokens", *(one.tokens_words for one in self.usage)),
        ]
        if any(one.cost for one in self.usage):
            rows.append(("cost", *(one.cost_words for one in self.usage)))
        return [*rows, ("time", *map(format_work_time, self.time))]

    def in_words(self, names: Mapping[str, str] | None = None) -> list[Block]:
        """Return what it says beside its pictures; ``names`` is what sockets are called."""
        names, rows = names or {}, self.rows(names)
        differing = (place for place, row in enumerate(rows) if row[-1] and self.stands is None)
        headline, why = self._difference(names)
        blocks = [headline, Table(_PAIR_COLUMNS, rows, marked=next(differing, None)), *lines(why)]
        if self.a.kept is not None and self.a.kept == self.b.kept:
            blocks += changes_table(self.a.kept, self.a.session.files, self.b.session.files)
        if steps := self.beside:
            both = StepCompareView(steps.a, steps.b, steps.names)
            blocks += [
                Heading(f"step {_numbered(steps.a)}"),
                *both.in_words(names),
                *self._later(steps.a, names),
            ]
        if self.state and self.stands is None:  # one that goes on from the other has put more into it
            now = (dict(side.session.state.data) for side in (self.a, self.b))
            blocks += [Heading("state, as each stands now"), _changed_tree(*now)]
        return [*blocks, Heading("in all"), Table(_SPENT_COLUMNS, self._spent())]

    def _later(self, first: StepRecord, names: Mapping[str, str]) -> Iterator[Block]:
        """Give the other steps that both made and in which they differ, folded."""
        others = [pair for pair in self.pairs if pair.did and pair.a is not first]
        for a, b, differs in others[:_LATER_SHOWN]:
            if a is not None and b is not None:
                title = f"step {_numbered(a)}, {b.number} in B: {_place(a, names)} differs in {', '.join(StepPair(a, b, differs).did)}"
                yield Fold(title, StepCompareView(a, b, self._names).in_words(names), brief=0)

    def _blocks(self) -> list[Block]:
        alone = len(self.pictures) == 1
        return self.in_words() + ([_drawn(self.picture)] if alone else _named_pictures(self.pictures))


def _drawn(one: GraphPicture) -> Block:
    """Draw a graph under words that say all that is in it."""
    return graph_block(one.graph, one.marks)


def _named_pictures(pictures: Iterable[GraphPicture]) -> list[Block]:
    named = zip("AB", pictures, strict=True)
    return [block for name, one in named for block in (Heading(f"{name}: {one.graph.name}"), _drawn(one))]


class StepCompareView(Shown, StepComparison):
    """Two steps beside one another."""

    def in_words(self, names: Mapping[str, str] = FrozenDict()) -> list[Block]:
        """Say what each answered, was asked and left in the state, what only A has struck out, what only B has marked.

        Args:
            names: what sockets are called; by their ids if left out.
        """
        a, b = self.a, self.b
        ways = [diff.step_target(one) or "" for one in (a, b)]
        rows = [
            ("step", *(f"{_numbered(one)}: {_place(one, names)}, visit {one.visit}" for one in (a, b))),
            ("went to", *(names.get(way, way) for way in ways)),
            ("tokens", *(step_usage(one).tokens_words for one in (a, b))),
            ("time", *(step_time(one).words for one in (a, b))),
        ]
        came = [", ".join(how_it_came(one)) for one in (a, b)]
        rows += [("answered", *(words or "at once" for words in came))] if any(came) else []
        blocks: list[Block] = [Table(_SPENT_COLUMNS, rows)]
        if self.answer:
            blocks += [
                Heading("what came", small=True),
                _changed_value(diff.step_answer(a), diff.step_answer(b)),
            ]
        if self.prompt:
            blocks.append(Heading("what was asked", small=True))
            blocks += _changed_parts(a.prompt, b.prompt, self.prompt, self.names)
        if self.state:
            blocks += [
                Heading("the state after it", small=True),
                _changed_tree(dict(a.after.data), dict(b.after.data)),
            ]
        return blocks

    def all_words(self, names: Mapping[str, str] = FrozenDict()) -> list[Block]:
        """Say also why they differ."""
        did = ["A and B did the same."] if self.first is None else self.first.lines
        return [*lines(_called(line, names) for line in did), *self.in_words(names)]

    def _blocks(self) -> list[Block]:
        return self.all_words()


class ValueCompareView(Shown):
    """Two prompts, or two states, beside one another; true if they differ."""

    def __init__(self, differing: Sequence[Block]) -> None:
        self.differing = tuple(differing)

    def __bool__(self) -> bool:
        return bool(self.differing)

    def _blocks(self) -> Sequence[Block]:
        return self.differing or [Line("A and B are the same.")]


def _changed_tree(a: JSON, b: JSON) -> Block:
    return JsonTree(b, "state", opened=3, was=a)


def _changed_value(a: JSON, b: JSON) -> Block:
    """Compare two texts by their words, and all else as trees; nothing at all is an empty text."""
    a, b = ("" if value is None else value for value in (a, b))
    if isinstance(a, str) and isinstance(b, str):
        return WordDiff(a, b)
    return JsonTree(b, "$", opened=3, was=a)


def _changed_parts(
    a: Prompt | None, b: Prompt | None, which: Iterable[str], names: tuple[str, str] = ("", "")
) -> list[Block]:
    """Compare the named parts of two prompts by their words."""
    left, right = (diff.prompt_part_texts(prompt, name) for prompt, name in zip((a, b), names, strict=True))
    return [Fold(name, [WordDiff(left.get(name, ""), right.get(name, ""))], opened=True) for name in which]


class LoadoutCompareView(Shown, LoadoutComparison):
    """Two loadouts beside one another."""

    @property
    def pictures(self) -> tuple[GraphPicture, GraphPicture]:
        """Both graphs, each with the sockets and routes marked that only it has."""
        return self._picture("A", self.a), self._picture("B", self.b)

    def _picture(self, name: str, graph: Graph) -> GraphPicture:
        own = {route for route, has in self.routes.items() if has == name} | self.changed_routes
        sockets = {
            difference.of: "both" for difference in self.differences if self.sockets.get(difference.of) == "both"
        }
        sockets |= {id_: name for id_, has in self.sockets.items() if has == name}
        return GraphPicture(graph, Marks(only=sockets, only_routes=dict.fromkeys(own, name)))

    def _blocks(self) -> list[Block]:
        if not self:
            return [Line("A and B are the same loadout, but for names and layout.")]
        rows = [
            (difference.of, difference.field, *_values(difference.a, difference.b)) for difference in self.differences
        ]
        return [Table(_LOADOUT_COLUMNS, rows), *_named_pictures(self.pictures)]


_Cast = TypeVar("_Cast")

_LOADOUT_COLUMNS: Final = ("of", "field", "A", "B")


class ReplayView(Shown, Replay, Generic[_Cast]):
    """A cast as it would have gone in another loadout; ``onward`` makes a cast of it."""

    def __init__(self, found: Replay, onward: Callable[[Replay], _Cast] | None = None) -> None:
        super().__init__(found.original, found.replayed, found.needs, found.left_out, found.events)
        self._onward = onward

    def go_on(self) -> _Cast:
        """Go on with the replay as a cast of its own, in the other loadout, from where the recorded answers end.

        It has a run directory beside that of the original, which stays as it is. Nothing of the replayed part is asked
        again; ``step`` or ``run`` goes on with agents.

        Raises:
            MateriaError: the loadout was given as a graph that cannot be kept (``no_config``), or the directory
                cannot be written.
        """
        if self._onward is None:
            raise MateriaError(
                "This replay was not made by a cast.", hint="cast.replay(loadout).go_on()", kind="no_cast"
            )
        return self._onward(self)

    def _blocks(self) -> list[Block]:
        blocks = lines(self._lines())
        if self.first is None and self.beside is None:
            return blocks
        compared = CompareView(self.original, self.replayed)
        drawn = GraphPicture(self.replayed.rules.graph, compared.picture.marks)
        table = Table(_PAIR_COLUMNS, compared.rows())
        return [*blocks, Line("A is the cast, B the replay."), table, _drawn(drawn)]

    def _lines(self) -> list[str]:
        first, difference_in_steps, needs = self.first, self.beside, self.needs
        outcome = ["It goes as it did." if difference_in_steps is None else "It goes the same way."]
        if first is not None:
            outcome = [f"It goes otherwise from {first.place}.", *(f"  {line}" for line in first.lines)]
        if difference_in_steps is not None:
            when = "Before that" if first is not None else "On it"
            outcome += [
                f"{when} {difference_in_steps.place} differs.",
                *(f"  {line}" for line in difference_in_steps.lines),
            ]
        if needs is not None:
            item = f", item {needs.item_key}" if needs.item_key else ""
            outcome.append(
                f"To continue it needs an answer of {needs.socket}, visit {needs.visit}{item}: {needs.why}. "
                "go_on() makes a cast that asks for it."
            )
        elif first is not None:
            outcome.append(f"It ends: {self.ends}.")
        if otherwise := self.asked_otherwise:
            numbers = ", ".join(map(str, otherwise[:_CHANGES_SHOWN]))
            steps = "step" if len(otherwise) == 1 else "steps"
            outcome.append(f"The answer was given to a different prompt in {steps} {numbers}.")
        return [*outcome, *self.left_out]


class ReplaysView(TableOf[ReplayView[Any]]):
    """Many casts in another loadout: which would have gone elsewhere. Iterating gives the replays."""

    def __init__(self, replays: Sequence[ReplayView[Any]], problems: Sequence[tuple[str, str]] = ()) -> None:
        self.problems = tuple(problems)
        rows = [(replay.original.name, *replayed_words(replay)) for replay in replays]
        rows += [(name, "cannot be replayed", "", why) for name, why in problems]
        super().__init__(replays, ("cast", "goes", "step", "why"), rows, "no casts to replay")

    @property
    def otherwise(self) -> list[ReplayView[Any]]:
        """Those that would have gone elsewhere."""
        return [replay for replay in self if replay.first is not None]


class BlameView(TableOf["BlameEntry"]):
    """What made a value of the state what it is, the latest change first; iterating gives the changes."""

    def __init__(self, path: str, entries: Sequence[BlameEntry]) -> None:
        self.path = path
        rows = [
            (
                str(entry.step),
                _who(entry),
                entry.item_key or "",
                _by(entry),
                *_values(entry.before, entry.after),
            )
            for entry in entries
        ]
        columns = ("step", "who", "item", "by", "from", "to")
        super().__init__(entries, columns, rows, f"nothing ever set {plain(path)}")


def _who(entry: BlameEntry) -> str:
    if entry.socket is not None:
        return f"{entry.socket}, corrected by a person" if entry.corrected else entry.socket
    return {"edit": "a person", "P6": "the lanes"}.get(entry.rule, "the start")


def _by(entry: BlameEntry) -> str:
    words = {
        "R10": "its answer",
        "R11": "an assignment",
        "R12": "the current item",
        "P6": "all came together",
    }.get(entry.rule)
    if words is None:
        return entry.rule
    return f"{words}{f', {entry.source}' if entry.source else ''} ({entry.rule})"


Compared: TypeAlias = CompareView | StepCompareView | LoadoutCompareView | ValueCompareView
"""Two of a kind beside one another."""


def compare_view(a: Any, b: Any) -> Compared:
    """Compare two of a kind: two sides of casts, two steps, two graphs, two prompts or two states.

    Raises:
        MateriaError: they are not of one kind (``compare``).
    """
    if isinstance(a, ComparedCast) and isinstance(b, ComparedCast):
        return CompareView(a, b)
    if isinstance(a, StepRecord) and isinstance(b, StepRecord):
        return StepCompareView(a, b)
    if isinstance(a, Graph) and isinstance(b, Graph):
        return LoadoutCompareView(a, b)
    if isinstance(a, Prompt) and isinstance(b, Prompt):
        return ValueCompareView(_changed_parts(a, b, diff.differing_prompt_parts(a, b)))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        a, b = dict(a), dict(b)
        return ValueCompareView([] if same(a, b) else [_changed_tree(a, b)])
    names = {ComparedCast: "a cast", StepRecord: "a step", Graph: "a loadout", Prompt: "a prompt"}
    raise MateriaError(
        f"{names.get(type(a), type(a).__name__)} and {names.get(type(b), type(b).__name__)} cannot be compared.",
        hint="compare two casts, steps, loadouts, prompts, or states",
        kind="compare",
    )


def replayed_words(replay: ReplayView[Any]) -> tuple[str, str, str]:
    """Say whether a replay goes otherwise, from which step, and why."""
    if replay.first is None:
        step_difference = replay.beside
        return "the same way", *(
            ("", "") if step_difference is None else (step_difference.place.removeprefix("step "), step_difference.why)
        )
    goes = "otherwise" if replay.needs is None else f"otherwise, needs {replay.needs.socket}"
    return goes, replay.first.place.removeprefix("step "), replay.first.why


def _row(pair: StepPair, names: Mapping[str, str]) -> tuple[str, ...]:
    a, b = pair.a, pair.b
    numbers = list(dict.fromkeys(_numbered(step) for step in (a, b) if step is not None))
    differs = f"only in {pair.side}" if pair.side != "both" else ", ".join(pair.did)
    return " / ".join(numbers), _way(a, names), _way(b, names), differs


def _way(step: StepRecord | None, names: Mapping[str, str]) -> str:
    """Say where a step was, where it went, and what it said, as the timeline does."""
    if step is None:
        return ""
    name, target = _place(step, names), diff.step_target(step) or "failed"
    target = f"{name}, waiting" if step.decision is None else f"{name} → {names.get(target, target)}"
    verdict = verdict_words(step, _SAID_CHARS)
    return f"{target}: {verdict}" if verdict else target


def _numbered(step: StepRecord) -> str:
    return f"{step.number} in {shorten(step.lane, 40)}" if step.lane else str(step.number)


def _place(step: StepRecord, names: Mapping[str, str] = FrozenDict()) -> str:
    name = names.get(step.socket, step.socket)
    return f"{name} {step.item_key}" if step.item_key else name


_SAYS: Final = re.compile(r"^(\s*(?:[AB] took (?:edge|exit) \S+ to |[AB] went to |Both went to )?)([^\s:.]+)")


def _called(line: str, names: Mapping[str, str]) -> str:
    """Name the socket that a sentence is about as people call it; what the sentence quotes stays."""
    return _SAYS.sub(lambda match: match[1] + names.get(match[2], match[2]), line)


def _values(a: JSON, b: JSON) -> tuple[str, str]:
    return format_difference(a, b, _VALUE_CHARS)


def _only(sides: Any) -> dict[Any, str]:
    return {key: has for key, has in sides.items() if has != "both"}
