"""What came of a sweep: its rows, as a table, as a matrix and as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from materia_nb.cast import Cast, open_cast
from materia_nb.cast.listing import data_frame
from materia_nb.cast.views.tables import known_words
from materia_nb.display.blocks import Bar, Block, Cell, Heading, Line, Shown, Table, lines
from materia_nb.display.escape import shorten
from materia_nb.engine.state import known_sum
from materia_nb.errors import MateriaError, counted, did_you_mean, needs_one_of
from materia_nb.sweep.verdicts import Verdict

_AXES: Final = ("loadout", "request", "agents", "repeat")
_NUMBERS: Final = ("complete", "steps", "turns", "tokens", "cost", "seconds")
FIELDS: Final = (*_AXES, "ends", "why", *_NUMBERS[1:], "cast")
"""The columns of ``sweep.frame()``, which has one more for each check, and one for why it does not hold."""
_THOUGHT_OF: Final = ("loadout", "agents", "request")
"""Which axes a matrix is laid out by if nobody says so, where they differ."""
_SHOWN: Final = 100
LEFT_OUT: Final = "left out"


@dataclass(frozen=True)
class Row:
    """One cast of a sweep.

    Attributes:
        loadout: its loadout.
        request: what its request is called.
        agents: what its agents are called.
        repeat: which of those that are alike, from 1.
        ends: ``complete``, the kind of a failure, ``person`` or ``held`` where one is waited for, ``not cast``,
            ``left out`` where the sweep had used what it may, or ``lost`` where its worker was lost: run the sweep again.
        why: the message of the failure, or what is waited for.
        steps: how many sockets were entered.
        turns: how many turns agents had.
        tokens: how many were used, None when nobody reported any (R56).
        cost: in the unit that agents give it in, None when nobody reported any.
        seconds: how long it worked, None when no step says it (R56).
        cast: its directory, which ``wb.open`` opens; None when there is none.
        checks: what each check says.
    """

    loadout: str
    request: str
    agents: str
    repeat: int
    ends: str
    why: str = ""
    steps: int = 0
    turns: int = 0
    tokens: int | None = 0
    cost: float | None = 0.0
    seconds: float | None = 0.0
    cast: Path | None = None
    checks: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the cast came to its end."""
        return self.ends == "complete"

    @property
    def passed(self) -> bool:
        """Whether the cast came to its end and every check that says yes or no says yes."""
        return self.complete and all(map(_holds, self.checks.values()))

    def open(self) -> Cast:
        """Open the cast to look at it.

        Raises:
            MateriaError: there is none.
        """
        if self.cast is None:
            raise MateriaError(f"This row has no cast: {self.why or self.ends}", kind="no_cast")
        return open_cast(self.cast)


class Sweep(Shown, Sequence[Row]):
    """The casts of a sweep, one a row; it shows itself as a matrix and a table. Made by ``wb.sweep``.

    Attributes:
        folder: where the rows and the casts are kept.
        fresh: how many of the casts were made by this run; the others were there.
        notes: why casts were made, and judges asked, although they seem to have been before.
    """

    def __init__(
        self, rows: Sequence[Row], checks: Sequence[str], folder: Path, fresh: int, notes: Sequence[str] = ()
    ) -> None:
        self._rows, self.checks = tuple(rows), tuple(checks)
        self.folder, self.fresh, self.notes = folder, fresh, tuple(notes)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    @property
    def failures(self) -> list[Row]:
        """The rows whose cast did not come to its end, or that a check does not let pass."""
        return [one for one in self if not one.passed]

    @property
    def lost(self) -> int:
        """How many casts lost their worker; the same sweep again goes on in them."""
        return sum(one.ends == "lost" for one in self)

    @property
    def left_out(self) -> int:
        """How many casts were not begun, since the others had used the ``most`` that the sweep may."""
        return sum(one.ends == LEFT_OUT for one in self)

    @property
    def tokens(self) -> int | None:
        """The tokens of all casts, as far as they are known; those of judges are not among them."""
        found: int | None = 0
        for one in self:
            found = known_sum(found, one.tokens)
        return found

    @property
    def cost(self) -> float | None:
        """The cost of all casts, as far as it is known; that of judges is not in it."""
        found: float | None = 0.0
        for one in self:
            found = known_sum(found, one.cost)
        return found

    def frame(self) -> Any:
        """Return the rows as a pandas data frame: their fields, and for each check its value and why.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = []
        for one in self:
            row: dict[str, object] = {name: getattr(one, name) for name in FIELDS}
            row["cast"] = None if one.cast is None else str(one.cast)
            for name in self.checks:
                verdict = one.checks.get(name)
                row[name] = None if verdict is None else verdict.value
                row[f"{name}: why"] = None if verdict is None else verdict.why
            rows.append(row)
        more = [column for name in self.checks for column in (name, f"{name}: why")]
        return data_frame(rows, [*FIELDS, *more])

    def matrix(self, value: str | None = None, rows: str | None = None, columns: str | None = None) -> Matrix:
        """Lay the rows out as a table of two axes: in each cell the mean of a value over all casts that fall into it.

        Args:
            value: ``complete``, a number such as ``tokens``, or a check; by default the share of casts that passed.
            rows: ``loadout``, ``agents``, ``request`` or ``repeat``; by default the first that differs.
            columns: the same, by default the next of them.

        Raises:
            MateriaError: there is no such value or axis (``usage``).
        """
        varied = [axis for axis in _THOUGHT_OF if len({getattr(one, axis) for one in self}) > 1]
        down = self._axis(rows) or next((one for one in (*varied, *_AXES) if one != columns), _AXES[0])
        over = self._axis(columns) or next(
            (one for one in (*varied, "agents", *_AXES) if one != down), _AXES[0]
        )
        of = self._value(value or "passed")
        share = value in (None, "passed", "complete") or self._says_yes(value)
        return Matrix(self, down, over, of, share=share)

    def _says_yes(self, value: str) -> bool:
        found = [one.checks[value].value for one in self if value in one.checks]
        return bool(found) and all(isinstance(one, bool) or one is None for one in found)

    def _axis(self, name: str | None) -> str | None:
        if name is not None:
            needs_one_of(name, _AXES, f"There is no axis {name!r}.", "usage")
        return name

    def _value(self, name: str) -> Callable[[Row], float | None]:
        if name in ("passed", *_NUMBERS):
            return lambda row: None if getattr(row, name) is None else float(getattr(row, name))
        if name in self.checks:

            def check(row: Row) -> float | None:
                verdict = row.checks.get(name)
                return None if verdict is None or verdict.value is None else float(verdict.value)

            return check
        known = ("passed", *_NUMBERS, *self.checks)
        raise MateriaError(f"Rows have no value {name!r}.", hint=did_you_mean(name, known), kind="usage")

    def _used(self) -> str:
        missing = sum(one.tokens is None for one in self)
        words = f"{known_words(self.tokens, '{:,}')} tokens"
        words += f", unknown of {counted(missing, 'cast')}" if missing and self.tokens is not None else ""
        return words + (f", {self.cost:.4f} USD" if self.cost else "")

    def _lines(self) -> list[str]:
        made = f"{self.fresh} made now, {len(self) - self.fresh - self.lost - self.left_out} were there"
        casts = counted(len(self), "cast")
        lines = [f"{casts}, {made}; {self._used()}"]
        if self.lost:
            lines.append(f"{self.lost} lost their worker: run the sweep again")
        return [*lines, *self.notes]

    def _table(self) -> Table:
        costs = any(one.cost for one in self)
        axes = ("row", "loadout", "request", "agents", "#", "ends")
        headers = (*axes, *self.checks, "turns", "tokens", *(["cost"] * costs))
        rows = [
            (
                str(place),
                one.loadout,
                one.request,
                shorten(one.agents, 40),
                str(one.repeat),
                one.ends,
                *(_mark(one.checks.get(name)) for name in self.checks),
                str(one.turns),
                known_words(one.tokens),
                *([known_words(one.cost, "{:.4f}")] * costs),
            )
            for place, one in enumerate(self._rows[:_SHOWN], start=1)
        ]
        return Table(headers, rows)

    def _reasons(self) -> list[tuple[str, str, str]]:
        """Why rows did not pass; those for the same reason together."""
        found: dict[tuple[str, str], list[str]] = {}
        for place, one in enumerate(self, start=1):
            told = [("", one.why)] if one.why and not one.complete else []
            told += [
                (name, check.why) for name, check in one.checks.items() if check.why and not _holds(check)
            ]
            for pair in told:
                found.setdefault(pair, []).append(str(place))
        rows = ((", ".join(places), name, shorten(why, 300)) for (name, why), places in found.items())
        return list(islice(rows, _SHOWN))

    def _blocks(self) -> list[Block]:
        said = [*lines(self._lines()), Heading("passed"), self.matrix(), Heading("casts"), self._table()]
        if len(self) > _SHOWN:
            said.append(Line(f"… {len(self) - _SHOWN} more (.frame() has all)"))
        reasons = self._reasons()
        return [*said, Heading("why"), Table(("rows", "check", "why"), reasons)] if reasons else said


class Matrix(Table):
    """The rows of a sweep by two axes, with the mean of a value in each cell.

    Attributes:
        means: by the two names, as they stand on the axes.
    """

    def __init__(
        self, rows: Sequence[Row], down: str, over: str, of: Callable[[Row], float | None], *, share: bool
    ) -> None:
        cells: dict[tuple[str, str], list[float]] = {}
        for one in rows:
            number = of(one)
            if number is not None:
                cells.setdefault((str(getattr(one, down)), str(getattr(one, over))), []).append(number)
        self.means: Mapping[tuple[str, str], float] = {place: fmean(found) for place, found in cells.items()}
        self._left = list(dict.fromkeys(str(getattr(one, down)) for one in rows))
        self._top = list(dict.fromkeys(str(getattr(one, over)) for one in rows))
        most = max((abs(mean) for mean in self.means.values()), default=0.0) or 1.0
        most = max(most, 1.0) if share else most

        def cell(place: tuple[str, str]) -> Cell:
            text = _mean(cells.get(place, []), share=share)
            return Bar(text, abs(self.means[place]) / most) if text else ""

        body = [(shorten(name, 60), *(cell((name, other)) for other in self._top)) for name in self._left]
        super().__init__((down, *(shorten(name, 40) for name in self._top)), body, "no casts")


def _holds(verdict: Verdict) -> bool:
    return verdict.value is not False and verdict.value is not None


def _mark(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    if verdict.value is None:
        return "? unknown"
    if isinstance(verdict.value, bool):
        return "✓ yes" if verdict.value else "✗ no"
    return f"{verdict.value:g}"


def _mean(numbers: Sequence[float], *, share: bool) -> str:
    if not numbers:
        return ""
    if share:
        return f"{fmean(numbers):.0%} of {len(numbers)}"
    return f"{fmean(numbers):,.4g}"
