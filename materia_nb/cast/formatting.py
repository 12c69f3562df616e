"""Sequences of steps, casts and events that are displayed as tables, and functions that format steps, times and costs."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar, overload

from materia_nb.display.blocks import Block, Cell, Code, Displayable, Fold, Table, View, lines
from materia_nb.display.escape import shorten
from materia_nb.engine.conversation import MateriaEvent
from materia_nb.engine.routing import short_label
from materia_nb.engine.session import Session, StepRecord
from materia_nb.errors import MateriaError, counted, needs_one_of, plain
from materia_nb.file_io import read_package_toml
from materia_nb.handoff.base import EVENT_SEVERITIES
from materia_nb.insight.compare import step_target
from materia_nb.insight.estimate import step_time, step_usage
from materia_nb.insight.values import OutputMatch, query_outputs
from materia_nb.insight.why import THINKING_HEADING, Why
from materia_nb.jsonvalue import compact
from materia_nb.loadout.graph import Graph
from materia_nb.registry import view_registry
from materia_nb.store.catalogue import CastEntry

STEP_FIELDS: Final = (
    *("step", "socket", "materia", "visit", "item", "label", "next", "by", "satisfied", "issues"),
    *("turns", "tries", "calls", "input", "output", "tokens", "cost"),
    *("started", "seconds", "waited", "pinned", "text"),
)
"""Columns of the data frame that ``cast.steps.frame()`` returns."""
CAST_FIELDS: Final = (
    *("cast", "loadout", "request", "status", "failure", "warnings", "steps", "cost", "started", "last_event"),
    *("ours", "locked_by", "problem", "path"),
)
"""Columns of the data frame that ``wb.casts().frame()`` returns."""

_T = TypeVar("_T")


def data_frame(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> Any:
    """Return the rows as a pandas data frame with the given columns.

    Raises:
        MateriaError: pandas is not installed (``not_installed``).
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MateriaError(
            "A data frame needs pandas, which is not installed.",
            hint='pip install "materia-nb[data]"',
            kind="not_installed",
        ) from error
    return pd.DataFrame([[row.get(name) for name in columns] for row in rows], columns=list(columns))


class TableSequence(Displayable, Sequence[_T], Generic[_T]):
    """A sequence that is displayed as a table, and that equals any other sequence with the same values."""

    __slots__ = ("_all",)

    def __init__(self, values: Sequence[_T]) -> None:
        self._all = values

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        return self._all[index]

    def __iter__(self) -> Iterator[_T]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def table(self) -> Table:
        """The table that displays the sequence."""
        raise NotImplementedError

    def _blocks(self) -> list[Block]:
        return [self.table]


class TableOf(Table, Generic[_T]):
    """A table with one row for each value. Iterating over the table yields the values instead of the rows."""

    def __init__(
        self, values: Iterable[_T], headers: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str
    ) -> None:
        super().__init__(headers, rows, empty)
        self.values = tuple(values)

    def __iter__(self) -> Iterator[_T]:
        return iter(self.values)

    def __getitem__(self, index: int) -> _T:
        return self.values[index]


class EventsView(TableOf[MateriaEvent]):
    """A table of the events that agents reported in their outputs (R39). Iterating over it yields the events."""

    def __init__(self, events: Sequence[MateriaEvent], names: Mapping[str, str]) -> None:
        """Create a table of events. ``names`` are the display names of the sockets, by id."""
        lanes = any(event.lane for event in events)
        rows = [
            (
                str(event.sequence),
                *[shorten(event.lane, 40)] * lanes,
                str(event.step),
                names[event.socket],
                short_label(event.item_label or event.item_key or "", 40),
                event.severity,
                shorten(event.name, 80),
                shorten(event.message, 200),
                shorten(event.source, 80),
                "" if event.payload is None else shorten(compact(event.payload), 200),
            )
            for event in events
        ]
        columns = ("step", "socket", "item", "severity", "type", "message", "source", "payload")
        super().__init__(events, ("event", *["lane"] * lanes, *columns), rows, "no output reported an event")


class StepList(TableSequence[StepRecord]):
    """An immutable list of the steps of a cast; ``steps[-1]`` is the latest step."""

    __slots__ = ("_graph", "_note")

    def __init__(self, steps: Sequence[StepRecord], graph: Graph, note: str = "") -> None:
        """Create a list of steps.

        Args:
            steps: the steps of the cast.
            graph: the loadout of the cast.
            note: a sentence to display below the table, about steps that the list does not contain.
        """
        super().__init__(steps)
        self._graph, self._note = graph, note

    def _blocks(self) -> list[Block]:
        return [self.table, *lines(filter(None, [self._note]), "quiet")]

    @property
    def table(self) -> Table:
        """The table that displays the steps."""
        return step_table(self._all)

    def at(self, step: int) -> StepRecord:
        """Return the step with the number ``step``, counting from 1. Negative numbers count from the end.

        Raises:
            MateriaError: the step does not exist (``no_step``).
        """
        return step_at(self._all, step)

    def ask(self, expression: str) -> list[OutputMatch]:
        """Query the outputs with a JSONPath expression or a dotted path, and return each match with its step.

        Example: ``cast.steps.ask("$.workItems[*].title")``.

        Raises:
            MateriaError: the expression is not valid (``question``).
        """
        return query_outputs(self._all, expression)

    def events(
        self,
        *,
        severity: str | None = None,
        type: str | None = None,  # noqa: A002 - named after the field of the event
        socket: str | None = None,
    ) -> EventsView:
        """Return the events that agents reported in the ``event`` field of their outputs, in order (R39).

        Args:
            severity: the minimum severity: ``debug``, ``info``, ``warning``, ``error`` or ``critical``; by default all
                events are returned.
            type: the type of the events; by default all types.
            socket: the id of the socket that reported the events; by default all sockets.

        Raises:
            MateriaError: the severity (``unknown_severity``) or the socket (``unknown_socket``) does not exist.
        """
        if severity is not None:
            needs_one_of(severity, EVENT_SEVERITIES, f"The severity {severity!r} does not exist.", "unknown_severity")
        if socket is not None:
            socket = self._graph.find_socket(socket)
        min_severity = 0 if severity is None else EVENT_SEVERITIES.index(severity)
        matching_events = [
            event
            for step in self
            for event in step.events
            if EVENT_SEVERITIES.index(event.severity) >= min_severity
            and type in (None, event.type)
            and socket in (None, event.socket)
        ]
        return EventsView(matching_events, self._graph.names)

    def frame(self) -> Any:
        """Return the steps as a pandas data frame, with one row per step and the columns in ``STEP_FIELDS``.

        ``started`` is a time in UTC. ``seconds`` is the working time and ``waited`` the waiting time; both are missing
        if they are unknown. ``input``, ``output`` and ``tokens`` are numbers of tokens. ``cost`` is in the currency
        that the agents report.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        return data_frame(map(self._row, self._all), STEP_FIELDS)

    def _row(self, step: StepRecord) -> dict[str, object]:
        used, time, decision = step_usage(step), step_time(step), step.decision
        return {
            "step": step.number,
            "socket": step.socket,
            "materia": self._graph.sockets[step.socket].materia.id,
            "visit": step.visit,
            "item": step.item_key,
            "label": step.item_label,
            "next": step_target(step),
            "by": None if decision is None else decision.by,
            "satisfied": None if decision is None else decision.satisfied,
            "issues": 0 if step.reading is None else len(step.reading.issues),
            "turns": len(step.turns),
            "tries": step.attempts,
            "calls": len(step.calls),
            "input": used.input,
            "output": used.output,
            "tokens": used.tokens,
            "cost": used.cost,
            "started": _to_datetime(step.started),
            "seconds": _to_seconds(time.work),
            "waited": _to_seconds(time.waited),
            "pinned": step.pinned,
            "text": step.output,
        }


def steps_of(session: Session, graph: Graph) -> StepList:
    """Return the steps of a cast, with a note about the number of further steps in its lanes."""
    lanes = (lane for streams in session.streams for lane in streams.lanes.values())
    lane_step_count = sum(len(lane.session.steps) for lane in lanes)
    note = f"{counted(lane_step_count, 'more step')} in lanes: see `cast.now.all_steps`" if lane_step_count else ""
    return StepList(session.steps, graph, note)


def step_at(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the step with the given number; see :meth:`StepList.at`."""
    is_integer = type(number) is int  # a value from a notebook need not fit the annotation
    first = steps[0].number if steps else 1  # the steps of a lane do not begin at 1
    index = -1 if not is_integer else number - first if number > 0 else len(steps) + number
    if number == 0 or not 0 <= index < len(steps):
        raise MateriaError(
            f"There is no step {number if is_integer else type(number).__name__}; the cast has {counted(len(steps), 'step')}.",
            hint="use a step number (counting from 1), or -1 for the latest step",
            kind="no_step",
        )
    return steps[index]


class CastList(TableSequence[CastEntry]):
    """The casts of a project, displayed as a table. The most recently started or continued cast comes first."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The table that displays the casts."""
        return casts_view(self._all)

    def frame(self) -> Any:
        """Return the casts as a pandas data frame with the columns in ``CAST_FIELDS``. Times are in UTC.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = (
            {
                **{name: getattr(entry, name, None) for name in CAST_FIELDS},
                "cast": entry.id,
                "warnings": ", ".join(entry.warnings),
                "started": _to_datetime(entry.started),
                "last_event": _to_datetime(entry.last_event),
                "path": str(entry.path),
            }
            for entry in self._all
        )
        return data_frame(rows, CAST_FIELDS)


def _to_seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _to_datetime(milliseconds: int | None) -> datetime | None:
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a recording may hold any number
        return None


def step_table(steps: Sequence[StepRecord]) -> Table:
    """Return a table with one row per step."""
    optional = {
        "pinned to": [step.pinned or "" for step in steps],
        "files": [str(step.files.in_all) if step.files and step.files.in_all else "" for step in steps],
    }
    optional = {title: cells for title, cells in optional.items() if any(cells)}
    lanes = any(step.lane for step in steps)
    rows: list[tuple[str, ...]] = []
    for index, step in enumerate(steps):
        lane = (shorten(step.lane, 40),) if lanes else ()
        item = short_label(step.item_label or step.item_key or "", 40)
        cells = (step.name, str(step.visit), item, summarize_verdict(step, 60), describe_outcome(step))
        rows.append(
            (str(step.number), *lane, *cells, step_time(step).words, *(col[index] for col in optional.values()))
        )
    headers = ("step", *["lane"] * lanes, "socket", "visit", "item", "output", "next", "took", *optional)
    return Table(headers, rows, "no steps yet")


_MAX_READ_CHARS: Final = 4_000  # Maximum number of characters of an output that are used for its summary.


def summarize_output(step: StepRecord) -> str:
    """Return a summary of an output: its prose (R62), its context, the titles of its work items, or its beginning."""
    text = step.shown
    reading = None if text != step.output else step.reading
    fields = reading.value if reading is not None and isinstance(reading.value, dict) else {}
    has_only_verdict = not any(value for name, value in fields.items() if name != "satisfied")
    if reading is not None and (reading.context or (reading.satisfied is not None and has_only_verdict)):
        return plain((reading.context or "")[:_MAX_READ_CHARS])
    if reading is not None and isinstance(reading.work_items, list):
        titles = [str(item.get("title", "")) for item in reading.work_items if isinstance(item, dict)]
        return f"{counted(len(reading.work_items), 'item')}: {plain(', '.join(titles)[:_MAX_READ_CHARS])}"
    if text is not None:
        return plain(text[:_MAX_READ_CHARS])
    if step.skipped is not None:
        return f"skipped: {plain(step.skipped)}"
    failure = step.decision.failure if step.decision is not None else None
    return plain(failure.message) if failure is not None else ""


def origin_notes(step: StepRecord) -> list[str]:
    """Return notes about the origin of an output, such as ``1 repair``, ``2 drafts``, ``pinned`` or ``corrected``."""
    modes = [turn.mode for turn in step.turns]
    counts = ((modes.count("draft"), "draft"), (modes.count("repair"), "repair"))
    marks = [counted(count, word) for count, word in counts if count]
    marks += [f"tried {step.attempts} times"] if step.attempts > 1 else []
    marks += ["pinned"] if step.pinned else []
    marks += ["by hand"] if step.by_hand else []
    return [*marks, "corrected"] if "correction" in modes else marks


def verdict_mark(step: StepRecord) -> str:
    """Return ✓ if the output is satisfied, ✗ if it is not satisfied, or "" if it has no verdict."""
    reading = step.reading
    if reading is None or reading.satisfied is None:
        return ""
    return "✓" if reading.satisfied else "✗"


def summarize_verdict(step: StepRecord, max_chars: int) -> str:
    """Return the verdict of a step and a summary of its output in one line of at most ``max_chars`` characters."""
    return shorten(f"{verdict_mark(step)} {summarize_output(step)}".strip(), max_chars)


def describe_outcome(step: StepRecord) -> str:
    """Describe the result of a step: the name of the next socket, the kind of failure, or a status such as waiting."""
    decision = step.decision
    if decision is None or decision.by in ("reissue", "finalize"):
        return "waiting"
    if decision.by in ("pause", "escalate"):
        return f"held: {decision.by}"
    if decision.failure is not None:
        target = describe_failure(decision.failure.kind)
        return target if target == "failed" else f"failed: {target}"
    if decision.target is None:
        return "not recorded" if decision.by == "recording" else decision.by
    return step.name_of(decision.target)


def describe_failure(kind: str) -> str:
    """Return the description of a kind of failure as a verb phrase, such as ``took too long``.

    For unknown kinds, such as those of third-party agents, return the description of ``OTHER_FAILURE``.
    """
    return str(FAILURES.get(kind, FAILURES[OTHER_FAILURE])["description"])


FAILURES: Final[Mapping[str, Mapping[str, Any]]] = read_package_toml(__file__, "failures.toml")
"""Description of each kind of failure, and the actions that are offered after it."""
OTHER_FAILURE: Final = "agent_error"
"""Kind of failure whose description and actions are used for unknown kinds."""


def record_view(step: StepRecord) -> View:
    """Return a view of a step with its next socket, duration, issues and output, and the reasoning of the agent."""
    duration, issues = step_time(step).words, step.reading.issues if step.reading else ()
    blocks = lines([f"next: {describe_outcome(step)}", *([f"took {duration}"] if duration else [])])
    blocks += lines(issue.line for issue in issues)
    if step.shown is not None:
        blocks.append(Code(step.shown, title="output"))
    return View(step.title, [*blocks, *([Fold(THINKING_HEADING, [Code(step.thinking)])] if step.thinking else [])])


view_registry[StepRecord] = record_view


def why_blocks(why: Why) -> list[Block]:
    """Return the explanation of a routing decision. The checked edges and the agent's reasoning are collapsed."""
    rows = [(f"{row[0]}, {row[1]} → {row[2]}", row[3], " · ".join(filter(None, row[4:]))) for row in why.rows]
    table = Table(("edge or exit", "taken", "reason"), rows)
    edges = [Fold("All edges and exits", [table], brief_chars=10_000)] if rows else []
    thought = [Fold(THINKING_HEADING, [Code(why.thinking)])] if why.thinking else []
    return [*lines(why.lines), *edges, *thought]


view_registry[Why] = lambda why: View(why.title, why_blocks(why))


def casts_view(entries: Sequence[CastEntry]) -> Table:
    """Return a table with one row per saved cast, in the given order."""
    failed = any(entry.failure for entry in entries)
    columns: tuple[str, ...] = ("cast", "loadout", "status", "steps", "request")
    has_labels = any(entry.name or entry.tags or entry.verdict or entry.note for entry in entries)
    if has_labels:
        columns = ("cast", "name", *columns[1:], "tags", "verdict", "note")
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        steps = "" if entry.steps is None else str(entry.steps)
        cells = (entry.loadout or "", entry.outcome, steps, short_label(entry.request or "", 60))
        label = (", ".join(entry.tags), entry.verdict, short_label(entry.note, 60)) if has_labels else ()
        rows.append((entry.id, *[entry.name] * has_labels, *cells, *label, *[short_label(entry.failure, 100)] * failed))
    return Table((*columns, *["why"] * failed), rows, "no casts yet")


def relative_time(timestamp: int | None, now: float) -> str:
    """Format a time relative to now, such as ``today 19:33``, ``Friday 9:12``, ``12 November`` or ``3 May 2024``.

    Args:
        timestamp: the time to format, in milliseconds since the epoch; the result is "" if it is None or out of range.
        now: the current time, in seconds since the epoch. Days begin at midnight in the local time zone.
    """
    time = _to_datetime(timestamp)
    if time is None:
        return ""
    try:
        local_time, today = time.astimezone(), datetime.fromtimestamp(now).astimezone()
    except (OverflowError, ValueError, OSError):
        return ""
    clock, days = f"{local_time.hour}:{local_time.minute:02}", (today.date() - local_time.date()).days
    if days in (0, 1):
        return f"{('today', 'yesterday')[days]} {clock}"
    if 1 < days < 7:
        return f"{calendar.day_name[local_time.weekday()]} {clock}"
    date = f"{local_time.day} {calendar.month_name[local_time.month]}"
    return date if local_time.year == today.year else f"{date} {local_time.year}"


def format_cost(cost: float | None, unpriced: int) -> str:
    """Format a cost in dollars, with ``at least`` if some prices are unknown. Return "" for an unknown cost."""
    if cost is None:
        return ""
    return f"{'at least ' if unpriced else ''}${cost:.{4 if 0 < cost < 1 else 2}f}"


def search_casts(entries: Iterable[CastEntry], query: str) -> list[CastEntry]:
    """Return the casts that match every word of ``query``, ignoring case.

    Each word is searched for in the name, request, loadout, tags, verdict, note, status, warnings, failure and id. With
    a prefix such as ``loadout:essay``, ``tag:rain``, ``name:``, ``status:`` or ``request:``, only that field is
    searched.
    """
    terms = [word.partition(":") for word in query.casefold().split()]
    return [entry for entry in entries if all(_matches(entry, *word) for word in terms)]


def _matches(entry: CastEntry, field: str, colon: str, value: str) -> bool:
    fields = {
        "name": entry.name,
        "request": entry.request or "",
        "loadout": entry.loadout or "",
        "tag": " ".join(entry.tags),
        "status": entry.outcome,
    }
    if colon and field in fields:
        return value in fields[field].casefold()
    texts = (*fields.values(), entry.verdict, entry.note, entry.failure, entry.id)
    return f"{field}{colon}{value}" in "\n".join(texts).casefold()
