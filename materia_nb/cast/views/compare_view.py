"""Views of comparisons, replays and state changes, as tables and as graphs that mark the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from materia_nb.cast.formatting import TableOf, origin_notes, summarize_verdict
from materia_nb.cast.views.tables import changes_table
from materia_nb.display.blocks import Block, Displayable, Fold, Heading, JsonTree, Line, Table, WordDiff, lines
from materia_nb.display.escape import shorten
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.display.svg import GraphPicture, graph_block
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord, all_steps
from materia_nb.errors import MateriaError, counted, plain
from materia_nb.insight.compare import (
    ComparedCast,
    Comparison,
    LoadoutComparison,
    StepComparison,
    StepPair,
    prompt_part_texts,
    sides_of,
    step_answer,
    step_target,
    visit_text,
)
from materia_nb.insight.estimate import format_work_time, step_time, step_usage
from materia_nb.insight.explore import Exploration, behaviour_changes
from materia_nb.insight.odds import Chances
from materia_nb.insight.replay import Replay
from materia_nb.insight.scripted_answers import check_list_lengths
from materia_nb.insight.values import format_difference
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph, shared_names

if TYPE_CHECKING:
    from materia_nb.insight.values import BlameEntry

# Maximum number of equal steps that are displayed at the beginning and at the end of a longer sequence of them.
_MAX_IDENTICAL_STEPS: Final = 3
_MAX_CHANGES: Final = 20
_MAX_LATER_STEPS: Final = 20  # Maximum number of steps after the first difference whose differences are displayed.
_MAX_VALUE_CHARS: Final = 120
_MAX_CELL_CHARS: Final = 80  # Maximum length of values and outputs in a table row, in characters.
_PAIR_COLUMNS: Final = ("step", "A", "B", "differs in")
_SIDE_COLUMNS: Final = ("", "A", "B")


class CompareView(Displayable, Comparison):
    """Two casts side by side; for the attributes see :class:`materia_nb.insight.compare.Comparison`."""

    @property
    def picture(self) -> GraphPicture:
        """The graph of the first cast, with marks on the sockets and edges that only one of the casts used."""
        return GraphPicture(
            self.a.rules.graph, CastOverlay(sides=_sided(self.sockets), route_sides=_sided(self.routes))
        )

    @property
    def pictures(self) -> tuple[GraphPicture, ...]:
        """The graph with marks on the parts that only one cast used; both graphs if the loadouts differ."""
        if not self.loadouts.differences:
            return (self.picture,)
        return self.picture, GraphPicture(self.b.rules.graph, self.picture.marks)

    def _difference(self) -> tuple[Heading, list[str]]:
        """Return a sentence about the first difference, and further lines about differences and their reasons."""
        first_difference = self.first
        if first_difference is None:
            steps = counted(len(all_steps(self.a.session)), "step")
            return Heading(f"A and B do not differ; each has {steps}.", tone="good"), []
        if self.unfinished is not None:
            other = "B" if self.unfinished == "A" else "A"
            after = f"after {first_difference.location}" if first_difference.step else "at the start"
            sentence = f"{self.unfinished} ends {after}. Up to that point, A and B do not differ. {other} continues."
            return Heading(sentence, tone="good"), []
        why, *details = first_difference.lines
        headline, _, detail = why.partition(": ")
        details = [*filter(None, [detail]), *details]
        if differences := self.loadouts.differences:
            details.append(f"Their loadouts have {counted(len(differences), 'difference')}; see `loadouts`.")
        return Heading(f"A and B first differ in {first_difference.location}: {headline}", tone="warn"), details

    def rows(self) -> list[tuple[str, ...]]:
        """Return the steps side by side, one pair per row; the middle of a long sequence of equal steps is omitted."""
        rows: list[tuple[str, ...]] = []
        for alike, pairs in groupby(self.pairs, lambda pair: pair.side == "both" and not pair.own_differences):
            group = [_pair_row(pair) for pair in pairs]
            if alike and (more := len(group) - 2 * _MAX_IDENTICAL_STEPS) > 1:
                group[_MAX_IDENTICAL_STEPS:-_MAX_IDENTICAL_STEPS] = [("…", f"{more} identical steps", "", "")]
            rows += group
        return rows

    def _totals_table(self) -> Table:
        sides = self.a, self.b
        rows = [
            ("ends", *(side.session.state.status for side in sides)),
            ("steps", *(str(len(all_steps(side.session))) for side in sides)),
            ("tokens", *(usage.tokens_text for usage in self.usage)),
        ]
        if any(usage.cost for usage in self.usage):
            rows.append(("cost", *(usage.cost_text for usage in self.usage)))
        return Table(_SIDE_COLUMNS, [*rows, ("time", *map(format_work_time, self.time))])

    def detail_blocks(self) -> list[Block]:
        """Return all blocks except the graph pictures."""
        rows = self.rows()
        differing = (index for index, row in enumerate(rows) if row[-1] and self.unfinished is None)
        headline, why = self._difference()
        blocks = [headline, Table(_PAIR_COLUMNS, rows, marked=next(differing, None)), *lines(why)]
        if self.a.snapshots is not None and self.a.snapshots == self.b.snapshots:
            blocks += changes_table(self.a.snapshots, self.a.session.files, self.b.session.files)
        if steps := self.differing_step:
            blocks.append(Heading(f"step {_step_number_text(steps.a)}"))
            blocks += StepCompareView(steps.a, steps.b, steps.casts).detail_blocks()
            blocks += self._later_blocks(steps.a)
        if self.state and self.unfinished is None:  # a cast that continues from the other has changed the state further
            a, b = (dict(side.session.state.data) for side in (self.a, self.b))
            blocks += [Heading("current state"), _changed_value_block(a, b, "state")]
        return [*blocks, Heading("in total"), self._totals_table()]

    def _later_blocks(self, first: StepRecord) -> Iterator[Block]:
        """Yield a collapsed block for each later pair of corresponding steps that differ."""
        other_pairs = [pair for pair in self.pairs if pair.own_differences and pair.a is not first]
        for a, b, differs in other_pairs[:_MAX_LATER_STEPS]:
            if a is not None and b is not None:
                aspects = ", ".join(StepPair(a, b, differs).own_differences)
                title = f"step {_step_number_text(a)}, {b.number} in B: {visit_text(a)} differs in {aspects}"
                yield Fold(title, StepCompareView(a, b, (self.a, self.b)).detail_blocks(), brief_chars=0)

    def _blocks(self) -> list[Block]:
        if len(self.pictures) == 1:
            return [*self.detail_blocks(), graph_block(self.picture.graph, self.picture.marks)]
        return self.detail_blocks() + _picture_blocks(self.pictures)


def _picture_blocks(pictures: Iterable[GraphPicture]) -> list[Block]:
    blocks: list[Block] = []
    for name, picture in zip("AB", pictures, strict=True):
        blocks += [Heading(f"{name}: {picture.graph.name}"), graph_block(picture.graph, picture.marks)]
    return blocks


class StepCompareView(Displayable, StepComparison):
    """Two steps side by side; for the attributes see :class:`materia_nb.insight.compare.StepComparison`."""

    def detail_blocks(self) -> list[Block]:
        """Return the differences between the answers, prompts and states; removed text is struck out and new text is marked."""
        a, b = sides = self.a, self.b
        rows = [
            ("step", *(f"{_step_number_text(step)}: {visit_text(step)}, visit {step.visit}" for step in sides)),
            ("went to", *(step.name_of(step_target(step) or "") for step in sides)),
            ("tokens", *(step_usage(step).tokens_text for step in sides)),
            ("time", *(step_time(step).words for step in sides)),
        ]
        origins = [", ".join(origin_notes(step)) for step in sides]
        if any(origins):
            rows.append(("answered", *(origin or "directly" for origin in origins)))
        blocks: list[Block] = [Table(_SIDE_COLUMNS, rows)]
        if self.answer:
            answers = _changed_value_block(step_answer(a), step_answer(b))
            blocks += [Heading("answer", small=True), answers]
        if self.prompt:
            blocks.append(Heading("prompt", small=True))
            blocks += _part_blocks(a.prompt, b.prompt, self.prompt, self._ids)
        if self.state:
            states = _changed_value_block(dict(a.after.data), dict(b.after.data), "state")
            blocks += [Heading("state after it", small=True), states]
        return blocks

    def explained_blocks(self) -> list[Block]:
        """Return the reasons for the difference, followed by the differences."""
        sentences = ["A and B do not differ."] if self.first is None else self.first.lines
        return [*lines(sentences), *self.detail_blocks()]

    _blocks = explained_blocks


def _changed_value_block(a: JSON, b: JSON, root: str = "$") -> Block:
    """Compare two strings by words, or two other values as trees below ``root``; None is treated as an empty string."""
    a, b = ("" if value is None else value for value in (a, b))
    if isinstance(a, str) and isinstance(b, str):
        return WordDiff(a, b)
    return JsonTree(b, root, open_levels=3, old=a)


def _part_blocks(a: Prompt | None, b: Prompt | None, parts: Iterable[str], names: tuple[str, str]) -> list[Block]:
    """Compare the named layers of two prompts by words."""
    left, right = (prompt_part_texts(prompt, name) for prompt, name in zip((a, b), names, strict=True))
    return [Fold(name, [WordDiff(left.get(name, ""), right.get(name, ""))], opened=True) for name in parts]


class LoadoutCompareView(Displayable, LoadoutComparison):
    """Two loadouts side by side; for the attributes see :class:`materia_nb.insight.compare.LoadoutComparison`."""

    @property
    def pictures(self) -> tuple[GraphPicture, GraphPicture]:
        """Both graphs, each with marks on the sockets and edges that the other graph lacks."""
        return self._picture("A", self.a), self._picture("B", self.b)

    def _picture(self, name: str, graph: Graph) -> GraphPicture:
        own_routes = {route for route, side in self.routes.items() if side == name} | self.changed_routes
        changed_ids = [change.of for change in self.differences if self.sockets.get(change.of) == "both"]
        sockets = dict.fromkeys(changed_ids, "both") | {id_: name for id_, side in self.sockets.items() if side == name}
        return GraphPicture(graph, CastOverlay(sides=sockets, route_sides=dict.fromkeys(own_routes, name)))

    def _blocks(self) -> list[Block]:
        if not self:
            return [Line("A and B are the same loadout, except for names and layout.")]
        names = shared_names(self.a, self.b)
        changes = [change.named(names) for change in self.differences]
        rows = [(of, field, *format_difference(a, b, _MAX_VALUE_CHARS)) for of, field, a, b in changes]
        return [Table(("of", "field", "A", "B"), rows), *_picture_blocks(self.pictures)]


class BehaviourView(Displayable):
    """The differences between the casts of two loadouts. The view is true in a boolean context if the casts differ.

    Args:
        a: loadout A.
        b: loadout B.
        satisfied: the probabilities from which the odds are computed, as for :meth:`.Exploration.odds`.
        item_count: the length of every work item list in the odds; lists of up to this length are compared.

    Attributes:
        a: the exploration of loadout A.
        b: the exploration of loadout B.
        changes: the results after which the routes differ; see :func:`.behaviour_changes`.
        odds: the odds of loadout A and of loadout B.
    """

    def __init__(self, a: Graph, b: Graph, satisfied: Chances, item_count: int) -> None:
        check_list_lengths(item_count)
        self.a, self.b = (Exploration(graph, range(item_count + 1)) for graph in (a, b))
        self.changes = behaviour_changes(self.a, self.b)
        self.odds = self.a.odds(satisfied, item_count), self.b.odds(satisfied, item_count)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def _blocks(self) -> list[Block]:
        if not self:
            return [Line("Every cast takes the same route in A and B.")]
        a, b = self.odds
        rows = [(end, *(f"{odds.ends.get(end, 0):.2%}" for odds in self.odds)) for end in sides_of(a.ends, b.ends)]
        rows.append(("turns, on average", f"{a.turns:.2f}", f"{b.turns:.2f}"))
        rows.append(("turns, 90th percentile", *(f"{odds.at(0.9).turns:.0f}" for odds in self.odds)))
        max_turns = (each.most_turns() for each in (self.a, self.b))
        rows.append(("turns, at most", *("unlimited" if turns is None else str(turns) for turns in max_turns)))
        names = shared_names(a.graph, b.graph)
        changes = [
            (*change[:3], " → ".join(names[id_] for id_ in change.route)) for change in self.changes[:_MAX_CHANGES]
        ]
        table = Table(("after", "A continues at", "B continues at", "shortest cast up to there"), changes)
        hidden_count = len(self.changes) - len(changes)
        return [Table(_SIDE_COLUMNS, rows), table, *lines([f"… {hidden_count} more"] if hidden_count else [])]


_Cast = TypeVar("_Cast")


class ReplayView(Displayable, Replay, Generic[_Cast]):
    """A replay of a recorded cast in another loadout; :meth:`continue_cast` creates a cast that continues it."""

    def __init__(self, replay: Replay, onward: Callable[[], _Cast] | None = None) -> None:
        super().__init__(replay.original, replay.replayed, replay.needs, replay.left_out, replay.events)
        self._onward = onward

    def continue_cast(self) -> _Cast:
        """Create a cast in the other loadout that continues after the recorded answers.

        The new cast gets its own run directory next to the original cast's directory. No agents are called for the
        replayed turns.

        Raises:
            MateriaError: the loadout is a graph without a config (``no_config``), or the directory cannot be written.
        """
        if self._onward is None:
            hint = "call `cast.replay(loadout).continue_cast()`"
            raise MateriaError("This replay was not created from a cast.", hint=hint, kind="no_cast")
        return self._onward()

    def _blocks(self) -> list[Block]:
        blocks = lines(self._lines())
        if self.first is None and self.other_difference is None:
            return blocks
        compared = CompareView(self.original, self.replayed)
        drawn = GraphPicture(self.replayed.rules.graph, compared.picture.marks)
        table = Table(_PAIR_COLUMNS, compared.rows())
        return [*blocks, Line("A is the cast, B is the replay."), table, graph_block(drawn.graph, drawn.marks)]

    def _lines(self) -> list[str]:
        first, same_route, missing_answer = self.first, self.other_difference, self.needs
        results = ", with the same results" if same_route is None else ""
        sentences = [f"The replay takes the same route{results}."]
        if first is not None:
            sentences = [
                f"The replay takes another route from {first.location}.",
                *(f"  {line}" for line in first.lines),
            ]
        if same_route is not None:
            when = "Before that," if first is not None else "On this route,"
            sentences += [f"{when} {same_route.location} differs.", *(f"  {line}" for line in same_route.lines)]
        if missing_answer is not None:
            name = self.replayed.rules.graph.names[missing_answer.socket]
            sentences.append(
                f"To continue, the replay needs an answer from {name}, visit {missing_answer.visit}: {missing_answer.why}. "
                "To ask for it in a new cast, call `continue_cast()`."
            )
        elif first is not None:
            sentences.append(f"The replay ended: {self.ends}.")
        if changed := self.changed_prompts:
            numbers = ", ".join(map(str, changed[:_MAX_CHANGES]))
            steps = "step" if len(changed) == 1 else "steps"
            sentences.append(f"In {steps} {numbers}, the recorded answer was given to a different prompt.")
        return [*sentences, *self.left_out]


class ReplaysView(TableOf[ReplayView[Any]]):
    """A table of replays of several casts; iterating over it yields the replays."""

    def __init__(self, replays: Sequence[ReplayView[Any]], problems: Sequence[tuple[str, str]] = ()) -> None:
        self.problems = tuple(problems)
        rows = [(replay.original.name, *_replay_cells(replay)) for replay in replays]
        rows += [(name, "cannot be replayed", "", why) for name, why in problems]
        super().__init__(replays, ("cast", "route", "step", "why"), rows, "no casts to replay")

    @property
    def differing(self) -> list[ReplayView[Any]]:
        """The replays whose route differs from the recorded route."""
        return [replay for replay in self if replay.first is not None]


class BlameView(TableOf["BlameEntry"]):
    """A table of the changes to a value in the state, latest first; iterating over it yields the changes."""

    def __init__(self, path: str, entries: Sequence[BlameEntry], names: Mapping[str, str]) -> None:
        """Create a table of the changes to the value at ``path``. ``names`` are the names of the sockets, by id."""
        self.path = path
        rows = [
            (
                str(entry.step),
                _author_text(entry, names),
                shorten(entry.item_label or "", 40),
                _cause_text(entry),
                *format_difference(entry.before, entry.after, _MAX_VALUE_CHARS),
            )
            for entry in entries
        ]
        columns = ("step", "who", "item", "by", "from", "to")
        super().__init__(entries, columns, rows, f"{plain(path)} was never set")


def _author_text(entry: BlameEntry, names: Mapping[str, str]) -> str:
    if entry.socket is not None:
        return f"{names[entry.socket]}{', corrected by a person' * entry.corrected}"
    return {"edit": "a person", "P6": "the lanes"}.get(entry.rule, "the start")


_RULES: Final = {"R10": "its answer", "R11": "an assignment", "R12": "the current item", "P6": "the join of the lanes"}


def _cause_text(entry: BlameEntry) -> str:
    if entry.rule not in _RULES:
        return entry.rule
    return f"{_RULES[entry.rule]}{f', {entry.source}' if entry.source else ''} ({entry.rule})"


Compared: TypeAlias = CompareView | StepCompareView | LoadoutCompareView | BehaviourView
"""A comparison of two casts, steps or loadouts."""


def compare_view(a: Any, b: Any, behaviour: tuple[Chances, int] | None = None) -> Compared:
    """Compare two casts, two steps or two graphs.

    Args:
        a: the first value.
        b: the second value.
        behaviour: None, or the arguments ``satisfied`` and ``items`` to compare the casts of two graphs.

    Raises:
        MateriaError: the values are not of the same kind, or their behaviour cannot be compared (``compare``).
    """
    if behaviour is not None:
        if isinstance(a, Graph) and isinstance(b, Graph):
            return BehaviourView(a, b, *behaviour)
        raise MateriaError("Only loadouts have a behaviour.", hint="compare two loadouts", kind="compare")
    if isinstance(a, ComparedCast) and isinstance(b, ComparedCast):
        return CompareView(a, b)
    if isinstance(a, StepRecord) and isinstance(b, StepRecord):
        return StepCompareView(a, b)
    if isinstance(a, Graph) and isinstance(b, Graph):
        return LoadoutCompareView(a, b)
    names = {ComparedCast: "a cast", StepRecord: "a step", Graph: "a loadout"}
    message = f"{names.get(type(a), type(a).__name__)} and {names.get(type(b), type(b).__name__)} cannot be compared."
    raise MateriaError(message, hint="compare two casts, two steps, or two loadouts", kind="compare")


def _replay_cells(replay: ReplayView[Any]) -> tuple[str, str, str]:
    """Return the table cells of a replay: its route, the number of the first step that differs, and the reason."""
    if replay.first is None:
        difference = replay.other_difference
        step, why = ("", "") if difference is None else (difference.location.removeprefix("step "), difference.why)
        return "same", step, why
    names = replay.replayed.rules.graph.names
    route = "different" if replay.needs is None else f"different, needs {names[replay.needs.socket]}"
    return route, replay.first.location.removeprefix("step "), replay.first.why


def _pair_row(pair: StepPair) -> tuple[str, ...]:
    a, b = pair.a, pair.b
    numbers = list(dict.fromkeys(_step_number_text(step) for step in (a, b) if step is not None))
    differs = f"only in {pair.side}" if pair.side != "both" else ", ".join(pair.own_differences)
    return " / ".join(numbers), _step_words(a), _step_words(b), differs


def _step_words(step: StepRecord | None) -> str:
    """Describe a step by its socket, the next socket and the output, as the timeline does."""
    if step is None:
        return ""
    name, target = visit_text(step), step.name_of(step_target(step) or "failed")
    target = f"{name}, waiting" if step.decision is None else f"{name} → {target}"
    verdict = summarize_verdict(step, _MAX_CELL_CHARS)
    return f"{target}: {verdict}" if verdict else target


def _step_number_text(step: StepRecord) -> str:
    return f"{step.number} in {shorten(step.lane, 40)}" if step.lane else str(step.number)


def _sided(sides: Any) -> dict[Any, str]:
    return {key: side for key, side in sides.items() if side != "both"}
