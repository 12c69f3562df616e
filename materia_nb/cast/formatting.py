"""The steps of a cast and the casts of a project: sequences that show themselves as tables, and data frames of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar, overload

from materia_nb.display.blocks import Block, Cell, Code, Fold, Shown, Table, View, lines
from materia_nb.display.escape import shorten
from materia_nb.engine.conversation import MateriaEvent
from materia_nb.engine.routing import short
from materia_nb.engine.session import Session, StepRecord
from materia_nb.errors import MateriaError, counted, needs_one_of, plain
from materia_nb.file_io import read_package_toml
from materia_nb.handoff.base import EVENT_SEVERITIES
from materia_nb.insight import diff
from materia_nb.insight.blame import OutputMatch, query_outputs
from materia_nb.insight.estimate import step_time, step_usage
from materia_nb.insight.why import EDGE_COLUMNS, THINKING_HEADING, Why
from materia_nb.jsonvalue import compact
from materia_nb.loadout.graph import Graph
from materia_nb.registry import view_registry
from materia_nb.store.catalogue import CastEntry

STEP_FIELDS: Final = (
    *("step", "socket", "materia", "visit", "item", "label", "next", "by", "satisfied", "issues"),
    *("turns", "tries", "calls", "input", "output", "tokens", "cost"),
    *("started", "seconds", "waited", "pinned", "text"),
)
"""The columns of ``cast.steps.frame()``."""
CAST_FIELDS: Final = (
    *("cast", "loadout", "request", "status", "warnings", "steps", "cost", "started", "last_event"),
    *("ours", "locked_by", "problem", "path"),
)
"""The columns of ``wb.casts().frame()``."""

_T = TypeVar("_T")


def data_frame(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> Any:
    """Return rows as a pandas data frame, which has its columns also where there is no row.

    Raises:
        MateriaError: pandas is not installed (``not_installed``).
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MateriaError(
            "A data frame takes pandas, which is not installed.",
            hint='pip install "materia-nb[data]"',
            kind="not_installed",
        ) from error
    return pd.DataFrame([[row.get(name) for name in columns] for row in rows], columns=list(columns))


class Listed(Shown, Sequence[_T], Generic[_T]):
    """A sequence that is equal to any other with the same in it, and shows itself as a table."""

    __slots__ = ("_all",)

    def __init__(self, given: Sequence[_T]) -> None:
        self._all = given

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_T]: ...
    def __getitem__(self, place: int | slice) -> _T | Sequence[_T]:
        return self._all[place]

    def __iter__(self) -> Iterator[_T]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def table(self) -> Table:
        """The table that it shows itself as: ``headers`` and ``rows`` of text."""
        raise NotImplementedError

    def _blocks(self) -> list[Block]:
        return [self.table]


class TableOf(Table, Generic[_T]):
    """A table of values; iterating gives the values themselves."""

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
    """What outputs told beside their handoff; iterating gives the events themselves (R39)."""

    def __init__(self, events: Sequence[MateriaEvent]) -> None:
        lanes = any(one.lane for one in events)
        rows = [
            (
                str(event.sequence),
                *[shorten(event.lane, 40)] * lanes,
                str(event.step),
                event.socket,
                f"{event.item_key} {short(event.item_label or '', 40)}" if event.item_key is not None else "",
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


class StepList(Listed[StepRecord]):
    """The steps of a cast as they were when it was asked for them; ``steps[-1]`` is the latest."""

    __slots__ = ("_graph", "_note")

    def __init__(self, steps: Sequence[StepRecord], graph: Graph, note: str = "") -> None:
        """Show ``steps`` of a cast of ``graph``; ``note`` says what other steps there are."""
        super().__init__(steps)
        self._graph, self._note = graph, note

    def _blocks(self) -> list[Block]:
        return [self.table, *lines(filter(None, [self._note]), "quiet")]

    @property
    def table(self) -> Table:
        """The table that it shows itself as."""
        return step_table(self._all, self._graph)

    def at(self, number: int) -> StepRecord:
        """Return the step of that number, from 1; negative numbers count from the end.

        Raises:
            MateriaError: there is no such step (``no_step``).
        """
        return nth(self._all, number)

    def ask(self, expression: str) -> list[OutputMatch]:
        """Look through the outputs with JSONPath, or a dotted path; each match with its step.

        Such as ``cast.steps.ask("$.workItems[*].title")``.

        Raises:
            MateriaError: it is not JSONPath (``question``).
        """
        return query_outputs(self._all, expression)

    def events(
        self,
        *,
        severity: str | None = None,
        type: str | None = None,  # noqa: A002 - the field that it is compared with
        socket: str | None = None,
    ) -> EventsView:
        """Return what outputs told in their ``event`` field, in order; it shows itself as a table (R39).

        Args:
            severity: only events of this severity or a graver one: debug, info, warning, error, critical.
            type: only events of this type.
            socket: only events of this socket.

        Raises:
            MateriaError: there is no such severity (``unknown_severity``) or socket (``unknown_socket``).
        """
        if severity is not None:
            needs_one_of(severity, EVENT_SEVERITIES, f"There is no severity {severity!r}.", "unknown_severity")
        if socket is not None:
            self._graph.needs_socket(socket)
        min_severity = 0 if severity is None else EVENT_SEVERITIES.index(severity)
        selected = [
            event
            for step in self
            for event in step.events
            if EVENT_SEVERITIES.index(event.severity) >= min_severity
            and type in (None, event.type)
            and socket in (None, event.socket)
        ]
        return EventsView(selected)

    def frame(self) -> Any:
        """Return the steps as a pandas data frame, one a row; ``STEP_FIELDS`` of its module are its columns.

        ``started`` is a time in UTC, ``seconds`` is how long its agent or process was at work and ``waited`` how long it stood
        still, empty where that is unknown; ``input``, ``output`` and ``tokens`` count tokens, and ``cost`` is in the unit that
        agents give it in.

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
            "next": diff.step_target(step),
            "by": None if decision is None else decision.by,
            "satisfied": None if decision is None else decision.satisfied,
            "issues": 0 if step.reading is None else len(step.reading.issues),
            "turns": len(step.turns),
            "tries": step.tries,
            "calls": len(step.calls),
            "input": used.input,
            "output": used.output,
            "tokens": used.tokens,
            "cost": used.cost,
            "started": _time(step.started),
            "seconds": _seconds(time.work),
            "waited": _seconds(time.waited),
            "pinned": step.pinned,
            "text": step.output,
        }


def steps_of(session: Session, graph: Graph) -> StepList:
    """Return the steps of a cast itself; shown, they say how many more its lanes have made."""
    lanes = (lane for streams in session.streams for lane in streams.lanes.values())
    others = sum(len(lane.session.steps) for lane in lanes)
    note = f"{counted(others, 'more step')} in lanes: cast.now.all_steps" if others else ""
    return StepList(session.steps, graph, note)


def nth(steps: Sequence[StepRecord], number: int) -> StepRecord:
    """Return the step of that number; see :meth:`StepList.at`."""
    is_integer = type(number) is int  # what comes from a notebook need not be what the annotation says
    first = steps[0].number if steps else 1  # those of a lane are numbered on from where it began
    index = -1 if not is_integer else number - first if number > 0 else len(steps) + number
    if number == 0 or not 0 <= index < len(steps):
        raise MateriaError(
            f"There is no step {number if is_integer else type(number).__name__}; the cast has {len(steps)}.",
            hint="give a number from 1, or -1 for the latest",
            kind="no_step",
        )
    return steps[index]


class CastList(Listed[CastEntry]):
    """The casts of a project, the one begun or continued last first."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The table that it shows itself as."""
        return casts_view(self._all)

    def frame(self) -> Any:
        """Return the casts as a pandas data frame, one a row; ``CAST_FIELDS`` of its module are its columns.

        ``started`` and ``last_event`` are times in UTC.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = (
            {
                **{name: getattr(entry, name, None) for name in CAST_FIELDS},
                "cast": entry.id,
                "warnings": ", ".join(entry.warnings),
                "started": _time(entry.started),
                "last_event": _time(entry.last_event),
                "path": str(entry.path),
            }
            for entry in self._all
        )
        return data_frame(rows, CAST_FIELDS)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _time(milliseconds: int | None) -> datetime | None:
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a recording may hold any number
        return None


_STEP_COLUMNS: Final = ("step", "socket", "materia", "visit", "item", "output", "next", "took")


def step_table(steps: Sequence[StepRecord], graph: Graph) -> Table:
    """Steps of casts of a loadout, one a row."""
    rows: list[tuple[str, ...]] = []
    more = {
        "pinned to": [step.pinned or "" for step in steps],
        "files": [str(step.files.in_all) if step.files and step.files.in_all else "" for step in steps],
    }
    more = {title: cells for title, cells in more.items() if any(cells)}
    lanes = any(step.lane for step in steps)
    for index, step in enumerate(steps):
        lane = (shorten(step.lane, 40),) if lanes else ()
        materia = graph.sockets[step.socket].materia.label
        item = f"{step.item_key} {short(step.item_label or '', 40)}" if step.item_key else ""
        output = verdict_words(step, 60)
        target, took = way_words(step), step_time(step).words
        row = (str(step.number), *lane, step.socket, materia, str(step.visit), item, output, target, took)
        rows.append((*row, *(cells[index] for cells in more.values())))
    first, *others = _STEP_COLUMNS
    return Table((first, *["lane"] * lanes, *others, *more), rows, "no steps yet")


_READ: Final = 4_000
"""How much of an output is read to say how it begins."""


def output_words(step: StepRecord) -> str:
    """Say in plain words what a step said, or how that begins: its prose (R62), its context, its work items, or else its output."""
    reading = None if step.shown != step.output else step.reading
    fields = reading.value if reading is not None and isinstance(reading.value, dict) else {}
    verdict_alone = not any(value for name, value in fields.items() if name != "satisfied")
    if reading is not None and (reading.context or (reading.satisfied is not None and verdict_alone)):
        return plain((reading.context or "")[:_READ])
    if reading is not None and isinstance(reading.work_items, list):
        titles = [str(item.get("title", "")) for item in reading.work_items if isinstance(item, dict)]
        return f"{counted(len(reading.work_items), 'item')}: {', '.join(map(plain, titles))}"
    if step.shown is not None:
        return plain(step.shown[:_READ])
    if step.skipped is not None:
        return f"skipped: {plain(step.skipped)}"
    failure = step.decision.failure if step.decision is not None else None
    return plain(failure.message) if failure is not None else ""


def how_it_came(step: StepRecord) -> list[str]:
    """Say how the output of a step came, where it was not just an answer: after drafts or repairs, pinned, by hand, corrected."""
    modes = [turn.mode for turn in step.turns]
    counts = ((modes.count("draft"), "draft"), (modes.count("repair"), "repair"))
    marks = [counted(count, word) for count, word in counts if count]
    marks += [f"tried {step.tries} times"] if step.tries > 1 else []
    marks += ["pinned"] if step.pinned else []
    marks += ["by hand"] if step.by_hand else []
    return [*marks, "corrected"] if "correction" in modes else marks


def verdict_mark(step: StepRecord) -> str:
    """Return ✓ where a step said that it is satisfied, ✗ where it said that it is not, else nothing."""
    verdict = step.reading.satisfied if step.reading is not None else None
    return "" if verdict is None else "✓" if verdict else "✗"


def verdict_words(step: StepRecord, max_chars: int) -> str:
    """Say on one line what a step said, behind its verdict."""
    return shorten(f"{verdict_mark(step)} {output_words(step)}".strip(), max_chars)


def way_words(step: StepRecord) -> str:
    """Say in a few words how a step went on: its target, what failed, or that it waits."""
    decision = step.decision
    if decision is None or decision.by in ("reissue", "finalize"):
        return "waiting"
    if decision.by in ("pause", "escalate"):
        return f"held: {decision.by}"
    if decision.failure is not None:
        target = failure_words(decision.failure.kind)
        return target if target == "failed" else f"failed: {target}"
    return decision.target or ("not recorded" if decision.by == "recording" else decision.by)


def failure_words(kind: str) -> str:
    """Say what happened where a cast failed, as one goes on behind a name; an agent of other people may have a kind of its own."""
    return str(FAILURES.get(kind, FAILURES[OTHER_FAILURE])["words"])


FAILURES: Final[Mapping[str, Mapping[str, Any]]] = read_package_toml(__file__, "failures.toml")
"""Every kind of failure of ours: its words, and the acts that mend it."""
OTHER_FAILURE: Final = "agent_error"
"""The kind that stands for any that is not ours."""


def record_view(step: StepRecord) -> View:
    """One step by itself: which visit it is, how it went on, how long it took, what came, and what its agent thought."""
    took, issues = step_time(step).words, step.reading.issues if step.reading else ()
    blocks = lines([f"next: {way_words(step)}", *([f"took {took}"] if took else [])])
    blocks += lines(issue.line for issue in issues)
    if step.shown is not None:
        blocks.append(Code(step.shown, title="output"))
    return View(step.title, [*blocks, *([Fold(THINKING_HEADING, [Code(step.thinking)])] if step.thinking else [])])


view_registry[StepRecord] = record_view


def why_blocks(why: Why, *, narrow: bool = False) -> list[Block]:
    """Say why a step went where it went: the reasons, every edge and exit that was looked at, what its agent thought.

    ``narrow`` is for a column beside the graph: it has room for three columns.
    """
    rows = [(f"{row[0]}, {row[1]} → {row[2]}", row[3], " · ".join(filter(None, row[4:]))) for row in why.rows]
    edges = Table(("way", "taken", "reason"), rows) if narrow else Table(EDGE_COLUMNS, why.rows)
    thought = [Fold(THINKING_HEADING, [Code(why.thinking)])] if why.thinking else []
    return [*lines(why.lines), *([edges] if rows else []), *thought]


view_registry[Why] = lambda why: View(why.title, why_blocks(why))


def casts_view(entries: Sequence[CastEntry]) -> Table:
    """Casts on disk, newest first."""
    columns: tuple[str, ...] = ("cast", "loadout", "status", "steps", "request")
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        steps = "" if entry.steps is None else str(entry.steps)
        rows.append((entry.id, entry.loadout or "", entry.outcome, steps, short(entry.request or "", 60)))
    if any(entry_.name or entry_.tags or entry_.verdict or entry_.note for entry_ in entries):
        columns = ("cast", "name", *columns[1:], "tags", "verdict", "note")
        rows = [
            (row[0], entry_.name, *row[1:], ", ".join(entry_.tags), entry_.verdict, short(entry_.note, 60))
            for entry_, row in zip(entries, rows, strict=True)
        ]
    return Table(columns, rows, "no casts yet")


def when_words(then: int | None, now: float) -> str:
    """Say when something was as one says it aloud: today 19:33, yesterday 16:05, Friday 9:12, 12 November, 3 May 2024.

    Args:
        then: milliseconds since the epoch; None, or what is not a time, gives an empty text.
        now: seconds since the epoch; days are those of this machine's time zone.
    """
    time = _time(then)
    if time is None:
        return ""
    try:
        at, local_now = time.astimezone(), datetime.fromtimestamp(now).astimezone()
    except (OverflowError, ValueError, OSError):
        return ""
    clock, days = f"{at.hour}:{at.minute:02}", (local_now.date() - at.date()).days
    if days in (0, 1):
        return f"{('today', 'yesterday')[days]} {clock}"
    if 1 < days < _WEEK:
        return f"{_DAYS[at.weekday()]} {clock}"
    day = f"{at.day} {_MONTHS[at.month - 1]}"
    return day if at.year == local_now.year else f"{day} {at.year}"


_WEEK: Final = 7
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def cost_words(cost: float | None, unpriced: int) -> str:
    """Say what something cost: empty where nobody reported it, and ``at least`` where some turns are missing in it."""
    if cost is None:
        return ""
    return f"{'at least ' if unpriced else ''}${cost:.{4 if 0 < cost < 1 else 2}f}"


def sought(entries: Iterable[CastEntry], query: str) -> list[CastEntry]:
    """Return the casts in which each word of ``query`` is found, case aside.

    A word is looked for in name, request, loadout, tags, verdict, note, status, warnings, failure and id;
    ``loadout:essay``, ``tag:rain``, ``name:``, ``status:`` and ``request:`` look in that alone.
    """
    terms = [word.partition(":") for word in query.casefold().split()]
    return [entry for entry in entries if all(_holds(entry, *word) for word in terms)]


def _holds(entry: CastEntry, field: str, colon: str, rest: str) -> bool:
    fields = {
        "name": entry.name,
        "request": entry.request or "",
        "loadout": entry.loadout or "",
        "tag": " ".join(entry.tags),
        "status": entry.outcome,
    }
    if colon and field in fields:
        return rest in fields[field].casefold()
    all_of_it = (*fields.values(), entry.verdict, entry.note, entry.failure, entry.id)
    return f"{field}{colon}{rest}" in "\n".join(all_of_it).casefold()
