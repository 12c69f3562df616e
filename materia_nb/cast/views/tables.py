"""Tables of pins, quests, work items, breakpoints, usage and allowed tools, and views of changed files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from materia_nb.cast.breakpoint import BreakpointSet
from materia_nb.cast.formatting import TableOf, data_frame, describe_outcome
from materia_nb.display.blocks import (
    Action,
    Bar,
    Block,
    Cell,
    Displayable,
    Fold,
    Heading,
    Line,
    LineDiff,
    Table,
    View,
    lines,
)
from materia_nb.display.escape import shorten
from materia_nb.engine.routing import short_label
from materia_nb.engine.session import StepFiles, StepRecord, files_after
from materia_nb.engine.state import BOUNDS, Pin
from materia_nb.errors import MateriaError, counted, needs_one_of
from materia_nb.insight.estimate import UsageRow, format_seconds, format_work_time
from materia_nb.jsonvalue import compact, pretty
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import FILES_NOT_IGNORED
from materia_nb.store import file_snapshots
from materia_nb.store.file_snapshots import GIT_FOLDER, Change

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.insight.values import OutputMatch
    from materia_nb.store.design_autosave import Quest


def pins_view(pins: Mapping[str, Pin], later: Mapping[str, tuple[Pin, str | None]]) -> Table:
    """Return a table of the pinned answers in the current cast and in later casts (R40).

    Args:
        pins: the pins of the current cast, by socket or materia.
        later: the pins of later casts, each with the name of the only loadout to which it applies, or None.
    """
    rows = []
    for name, pin in {**{name: pin for name, (pin, _) in later.items()}, **pins}.items():
        is_same = name in later and name in pins and later[name][0] == pin
        where = "this cast and later ones" if is_same else "this cast" if name in pins else "later casts"
        if name in later and (loadout := later[name][1]) is not None:
            where += f", of {loadout}"
        rows.append((name, pin.words, where, shorten(pin.text, 60)))
    return Table(("socket or materia", "pinned to", "in", "text"), rows, "nothing is pinned")


def breakpoints_view(stops: BreakpointSet, graph: Graph) -> Table:
    """Return a table of the breakpoints of a cast, or of all casts of a loadout."""
    return Table(("runs stop",), [(breakpoint_.words(graph),) for breakpoint_ in stops], "no breakpoints")


def budget_view(cast: Snapshot) -> Table:
    """Return a table of the usage and the budget, with one row for each limit.

    There is always a row for tokens, and a row for the cost if it is not zero.
    """
    usage, budget = cast.engine.usage, cast.engine.budget
    rows = [
        (
            bound.quantity,
            bound.amount_phrase(usage),
            *_share_texts(bound.used(usage), bound.maximum(budget), bound.number_format),
        )
        for bound in BOUNDS
        if bound.maximum(budget) is not None or bound.quantity == "tokens" or (bound.quantity == "cost" and usage.cost)
    ]
    return Table(("", "so far", "budget", "used"), rows)


def _share_texts(used: float | None, maximum: float | None, form: str) -> tuple[str, str]:
    """Return the limit and the used share of the limit, as two strings."""
    if maximum is None:
        return "none", ""
    share = "unknown" if used is None else f"{used / maximum:.0%}" if maximum else ""
    if (used or 0) >= maximum:
        share = f"{share}, used up: the cast stops after the next socket".removeprefix(", ")
    return form.format(maximum), share


def format_reported(value: float | None, form: str = "{}") -> str:
    """Format a number; return ``unknown`` for a number that was not reported (R56)."""
    return "unknown" if value is None else form.format(value)


def search_results_table(matches: Sequence[OutputMatch], names: Mapping[str, str]) -> Table:
    """Return a table of the search results in the outputs of a cast. ``names`` are the names of its sockets, by id."""
    return Table(_MATCH_COLUMNS, [_match_row(match, names) for match in matches], "nothing found")


_MATCH_COLUMNS: Final = ("step", "socket", "item", "value")


def _match_row(match: OutputMatch, names: Mapping[str, str]) -> tuple[str, ...]:
    step = str(match.step) + (f" in {shorten(match.lane, 40)}" if match.lane else "")
    value = match.value if isinstance(match.value, str) else compact(match.value)
    return step, names[match.socket], match.item or "", shorten(value, 200)


class SearchResultsView(TableOf[tuple[str, "OutputMatch"]]):
    """A table of search results in the outputs of several casts. Iterating over it yields pairs of a cast id and a match."""

    def __init__(
        self, matches: Sequence[tuple[Snapshot, OutputMatch]], problems: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.problems = tuple(problems)
        rows = [(cast.id, cast.label_of().name, *_match_row(match, cast.names)) for cast, match in matches]
        rows += [(id_, "", "", "", "", f"cannot be searched: {why}") for id_, why in problems]
        pairs = [(cast.id, match) for cast, match in matches]
        super().__init__(pairs, ("cast", "name", *_MATCH_COLUMNS), rows, "nothing found")


class FailureCause(NamedTuple):
    """The cause of a failed cast.

    Attributes:
        kind: the kind of the failure.
        loadout: the name of the loadout.
        socket: the name of the socket at which the cast failed, or "" if no socket failed.
        edge: the condition and the target of the edge or exit whose limit stopped the cast, or "".
        item: the title of the work item at that socket, or "" outside a loop.
        reason: the reason for the last verdict if a limit stopped the cast, or else the message of the failure.
    """

    kind: str
    loadout: str = ""
    socket: str = ""
    edge: str = ""
    item: str = ""
    reason: str = ""


def failure_cause(cast: Snapshot) -> FailureCause | None:
    """Return the cause of a failed cast, or None if the cast has not failed. The cause may be in a lane."""
    socket, lane = cast.failed_at
    if lane:
        return failure_cause(cast.lane(lane))
    if (failure := cast.failure) is None:
        return None
    name, edge, item, reason = cast.names.get(socket, socket), "", "", failure.message
    step = next((step for step in reversed(cast.steps) if step.socket == socket), None)
    if step is not None:
        item = step.item_label or step.item_key or ""
    if step is not None and step.decision is not None and failure.blocked:
        matched_checks = (check for check in step.decision.checks if check.matched)
        edge = next((f"{check.when} → {cast.names.get(check.to, check.to)}" for check in matched_checks), "")
        reason = step.decision.reading.context or reason
    return FailureCause(failure.kind, cast.graph.name, name, edge, item, short_label(reason, _MAX_REASON_CHARS))


_MAX_REASON_CHARS: Final = 200


class FailureCausesView(TableOf[tuple[FailureCause, tuple[str, ...]]]):
    """A table of the causes of failed casts, most frequent first.

    Iterating over the table yields pairs of a cause and the names of its casts. The fields of a cause that are not used
    for grouping are empty.
    """

    def __init__(
        self, causes: Iterable[tuple[str, FailureCause]], by: Sequence[str], problems: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Group named casts by the given fields of their causes. ``problems`` lists the casts that cannot be read."""
        by, fields = by or ("kind", "loadout", "socket", "edge"), FailureCause._fields
        for field in by:
            needs_one_of(field, fields, f"Failures cannot be grouped by {field!r}.", "usage")
        self.problems = tuple(problems)
        groups: dict[FailureCause, list[tuple[str, FailureCause]]] = {}
        for name, cause in causes:
            group = FailureCause(*(value if field in by else "" for field, value in zip(fields, cause, strict=True)))
            groups.setdefault(group, []).append((name, cause))
        ordered_groups = sorted(groups.items(), key=lambda pair: -len(pair[1]))
        rows: list[tuple[Cell, ...]] = [
            (
                len(cast_names),
                *(_most_common(values) for values in zip(*(cause for _, cause in cast_names), strict=True)),
                cast_names[0][0],
            )
            for _, cast_names in ordered_groups
        ]
        rows += [(1, "cannot be read", "", "", "", "", why, name) for name, why in problems]
        pairs = [(group, tuple(name for name, _ in cast_names)) for group, cast_names in ordered_groups]
        super().__init__(pairs, ("casts", *fields, "for example"), rows, "no failed casts")


def _most_common(values: Iterable[str]) -> str:
    """Return the most frequent values, each with its count if there are several values."""
    counts = Counter(values).most_common()
    if len(counts) == 1:
        return counts[0][0]
    texts = [f"{shorten(value, 60) or 'none'} ({count})" for value, count in counts[:_MAX_VALUES]]
    return ", ".join(texts) + (f" and {len(counts) - _MAX_VALUES} more" if len(counts) > _MAX_VALUES else "")


_MAX_VALUES: Final = 3


class UsageView(TableOf[UsageRow]):
    """A table of the time, tokens and cost used; iterating yields :class:`~materia_nb.insight.estimate.UsageRow` objects."""

    def __init__(self, by: Sequence[str], usage: Sequence[UsageRow], names: Mapping[str, str]) -> None:
        """Create a table of usage, grouped by the criteria ``by``. ``names`` are the names of the sockets, by id."""
        self.by, socket_column = tuple(by), [*by].index("socket") if "socket" in by else None
        total = reduce(UsageRow.plus, usage, UsageRow(("total", *[""] * (len(by) - 1))))
        columns = _spent_columns(total)
        rows = [
            (
                *(shorten(names.get(key, key) if at == socket_column else key, 60) for at, key in enumerate(row.of)),
                *(cell(row) for cell in columns.values()),
            )
            for row in ((*usage, total) if usage else ())
        ]
        super().__init__(usage, [*by, *columns], rows, "no steps yet")

    def frame(self) -> Any:
        """Return the rows as a pandas data frame, without the total.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = (
            dict(zip(self.by, row.of, strict=True)) | {name: of(row) for name, of in _SPENT_FIELDS.items()}
            for row in self.values
        )
        return data_frame(rows, (*self.by, *_SPENT_FIELDS))


def _spent_columns(total: UsageRow) -> dict[str, Callable[[UsageRow], Cell]]:
    """Return the functions that format the cells of each column; columns that would be empty are omitted."""
    has_cost = bool(total.usage.cost)
    all_ = total.usage.cost if has_cost else total.usage.tokens

    def share(row: UsageRow) -> Cell:
        part = row.usage.cost if has_cost else row.usage.tokens
        return Bar(format_reported(part and part / all_, "{:.0%}"), (part or 0) / all_) if all_ else ""

    def breakdown(name: str, row: UsageRow) -> str:
        return format_reported(getattr(row.usage, name))

    def abandoned(row: UsageRow) -> str:
        return f"{row.left.tokens_text} tokens" if row.left.tokens != 0 else ""

    columns: dict[str, Callable[[UsageRow], Cell] | None] = {
        "visits": lambda row: str(row.visits),
        "turns": lambda row: str(row.turns),
        "tools": lambda row: str(row.calls),
        "tokens in": lambda row: format_reported(row.usage.input),
        "tokens out": lambda row: format_reported(row.usage.output),
        **{f"of which {name}": partial(breakdown, name) for name in total.usage.token_details()},
        "cost": (lambda row: row.usage.cost_text) if has_cost else None,
        "share": share,
        "turns with unknown usage": (lambda row: str(row.usage.uncounted or "")) if total.usage.uncounted else None,
        "abandoned": abandoned if abandoned(total) else None,
        "took": lambda row: format_work_time(row.ms, row.untimed),
        "waited": (lambda row: format_seconds(row.waited) if row.waited else "") if total.waited else None,
    }
    return {name: cell for name, cell in columns.items() if cell is not None}


_SPENT_FIELDS: Final[Mapping[str, Callable[[UsageRow], object]]] = {
    "visits": lambda row: row.visits,
    "turns": lambda row: row.turns,
    "tools": lambda row: row.calls,
    "tokens_in": lambda row: row.usage.input,
    "tokens_out": lambda row: row.usage.output,
    "cached": lambda row: row.usage.cached,
    "reasoning": lambda row: row.usage.reasoning,
    "cost": lambda row: row.usage.cost,
    "seconds": lambda row: None if row.ms is None else row.ms / 1000,
    "waited": lambda row: row.waited / 1000,
    "left_behind": lambda row: row.left.tokens,
}


def quests_view(quests: Sequence[Quest]) -> Table:
    """Return a table of the quests of a board, in order."""
    rows = [
        (
            quest.id, quest.status, short_label(quest.request, 80), quest.loadout or "the chosen loadout",
            quest.cast or "", short_label(quest.note or "", 120),
        )
        for quest in quests
    ]  # fmt: skip
    columns = ("quest", "status", "request", "loadout", "cast", "note")
    return Table(columns, rows, "No quest has been added. Add a quest with `quest add REQUEST`.")


def items_table(cast: Snapshot) -> Table:
    """Return a table of the work items, with the progress (R46) and the lane of each item."""
    rows, lanes = [], cast.lane_of_item
    for index, (item, standing) in enumerate(zip(cast.work_items, cast.item_statuses, strict=True)):
        title = item.get("title", "") if isinstance(item, dict) else pretty(item)
        context = item.get("context", "") if isinstance(item, dict) else ""
        lane = (f"{shorten(lanes[index].name, 40)}, {lanes[index].status}",) if index in lanes else ()
        rows.append((f"WI-{index + 1}", standing, shorten(str(title), 80), shorten(str(context), 120), *lane))
    columns = ("item", "state", "title", "context", "lane")
    return Table(columns[: len(rows[0]) if rows else 4], rows, "no work items")


def items_view(cast: Snapshot, notes: Sequence[str] = ()) -> View:
    """Return a view of the work items, followed by notes about an edit of the list."""
    return View("", [items_table(cast), *lines(notes)])


def allowed_view(cast: Snapshot) -> Table:
    """Return a table of the tools with side effects, and whether each of them needs approval."""
    rows = [
        (tool, "runs without approval" if allowed else "asks for approval each time")
        for tool, allowed in cast.approvals.tools.items()
    ]
    return Table(("tool", "in this cast"), rows)


_MAX_STEPS: Final = 20
_MAX_LINES: Final = 400
_MAX_NAMES: Final = 6
_CHANGE_KINDS: Final = {"A": "added", "M": "changed", "D": "deleted", "R": "renamed", "T": "type changed"}


class FilesView(Displayable):
    """The files that the steps of a cast changed; iterating over it yields the steps that changed at least one file."""

    def __init__(self, cast: Snapshot) -> None:
        """Create a view of the files at the moment of the snapshot ``cast``."""
        self._cast = cast

    def __iter__(self) -> Iterator[StepRecord]:
        return (step for step in self._cast.steps if step.files is not None and step.files.changed)

    def changes(self, step: int) -> tuple[Change, ...]:
        """Return the files that a step changed, each with the number of changed lines.

        Raises:
            MateriaError: the step does not exist (``no_step``), or its files were not saved (``not_kept``).
        """
        files = self._files(step)
        return changes(self._git_dir, files.before, files.after)

    def difference(self, step: int, path: str | None = None) -> str:
        """Return the changes that a step made to all files, or to the file ``path``, as a patch.

        Raises:
            MateriaError: the step does not exist (``no_step``), or its files were not saved (``not_kept``).
        """
        files = self._files(step)
        return file_snapshots.difference(self._git_dir, files.before, files.after, path)

    @property
    def _git_dir(self) -> Path:
        return self._cast.run_dir.parent / GIT_FOLDER

    def _files(self, step: int) -> StepFiles:
        # Those of a lane are numbered from where it began.
        files = next((record.files for record in self._cast.steps if record.number == step), None)
        if files is None:
            raise MateriaError(
                f"The files of step {step} were not saved.",
                hint=f"start the cast with `files={FILES_NOT_IGNORED!r}`; steps in a directory shared with other lanes or casts are not saved",
                kind="not_kept",
            )
        return files

    def detail_blocks(self) -> list[Block]:
        """Return a table of the steps that changed files, followed by the differences of the latest of these steps."""
        cast = self._cast
        if not cast.session.snapshot_method:
            hint = f"This cast does not save the files of the project. Set `files={FILES_NOT_IGNORED!r}` in `wb.cast` or the config."
            return [Line(hint, "quiet")]
        not_kept = "not saved: the directory is shared, or saving failed (see messages)"
        rows = [
            (
                str(step.number),
                step.name,
                shorten(step.item_label or step.item_key or "", 40),
                not_kept if step.files is None else _changed_files_text(step.files),
                describe_outcome(step),
            )
            for step in cast.steps
            if step.files is None or step.files.changed
        ]
        latest = reversed(list(self)[-_MAX_STEPS:])
        blocks: list[Block] = [Table(("step", "socket", "item", "files", "went to"), rows, "no step changed a file")]
        blocks += [Fold(f"{step.title}: {_changed_files_text(step.files)}", self._step_blocks(step)) for step in latest]
        for name, lane in cast.lanes.items():
            blocks += [Heading(f"lane {name}"), *FilesView(lane.now).detail_blocks()]
        return blocks

    _blocks = detail_blocks

    def lane(self, name: str) -> FilesView:
        """Return the files of a lane that has its own directory.

        Raises:
            MateriaError: the lane does not exist (``unknown_lane``).
        """
        return FilesView(self._cast.lane(name))

    def _step_blocks(self, step: StepRecord) -> list[Block]:
        try:
            return [_changes_table(self.changes(step.number)), *_patch_blocks(self.difference(step.number))]
        except MateriaError as error:  # the Git directory is gone
            return [Line(str(error), "bad")]


@lru_cache(maxsize=1024)
def changes(git_dir: Path, before: str, after: str) -> tuple[Change, ...]:
    """Return the files that differ between two commits of the file snapshots."""
    return tuple(file_snapshots.changes(git_dir, before, after))


def _changes_table(changed: Sequence[Change]) -> Table:
    rows = [
        (
            _CHANGE_KINDS.get(change.kind, change.kind),
            change.path if change.old is None else f"{change.old} → {change.path}",
            "binary" if change.added is None else f"+{change.added} -{change.removed}",
        )
        for change in changed
    ]
    return Table(("", "file", "lines"), rows)


def changes_table(git_dir: Path, before: str | None, after: str | None) -> list[Block]:
    """Return a table of the files that differ between two casts; empty if none differ or if no files were saved."""
    if before is None or after is None or before == after:
        return []
    try:
        changed_files = changes(git_dir, before, after)
    except MateriaError:  # kept elsewhere
        return []
    return [Heading("files that differ between A and B"), _changes_table(changed_files)] if changed_files else []


def _changed_files_text(files: StepFiles | None) -> str:
    """Return the names of the first few files that a step changed, and the number of remaining files."""
    return "" if files is None or not files.changed else _first_names_text(files.changed, files.in_all)


def _first_names_text(paths: Sequence[str], in_all: int) -> str:
    hidden_count = in_all - len(paths[:_MAX_NAMES])
    return ", ".join(paths[:_MAX_NAMES]) + (f" and {hidden_count:,} more" if hidden_count > 0 else "")


def _patch_blocks(patch: str) -> list[Block]:
    """Return a patch as blocks, with a heading for each file."""
    blocks: list[Block] = []
    rows: list[tuple[str, str]] = []
    for line in patch.splitlines()[:_MAX_LINES]:
        if line.startswith("diff --git "):
            rows = []
            blocks += [Heading(line.partition(" b/")[2] or line, small=True), LineDiff(rows)]
        elif line[:1] in ("+", "-", " ") and not line.startswith(("+++ ", "--- ")):
            rows.append((line[0], line[1:]))
        elif line.startswith(("@@", "Binary", "rename", "new file", "deleted", "old mode", "new mode")):
            rows.append((" ", line))
    if len(patch.splitlines()) > _MAX_LINES:
        rest = "The rest of the differences is hidden. Use `cast.files.difference(step)` for the full patch."
        blocks.append(Line(rest, "quiet"))
    return blocks


def files_blocks(cast: Snapshot, current: Snapshot) -> list[Block]:
    """Return the content of the files tab, with an action that restores the files if ``cast`` is an earlier moment.

    Args:
        cast: the snapshot to display.
        current: the current snapshot of the same cast.
    """
    blocks: list[Block] = []
    number = len(cast.steps)
    is_of_cast = cast is not current and cast.engine.lane is None
    earlier_files = files_after(current.session, number) if is_of_cast and current.session.steps else None
    if earlier_files is not None and current.session.files is not None:
        changed_files = changes(current.run_dir.parent / GIT_FOLDER, current.session.files, earlier_files)
        names = _first_names_text([change.path for change in changed_files], len(changed_files))
        if changed_files and current.writable:
            blocks.append(
                Action(
                    f"Going back restores {counted(len(changed_files), 'file')} to their contents after step {number}: {names}. Do you want to go back and restore them?",
                    "Go back with files",
                    "The current files are saved first. Files that were never saved are not overwritten.",
                    "back",
                    {"step": number, "files": True},
                )
            )
    return [*blocks, *FilesView(cast).detail_blocks()]
