"""Sweeps (``wb.sweep``) run real casts of all combinations of loadouts, requests and agents, and check them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from materia_nb.cast import Cast, Prepared, open_cast, resume_cast, start_cast
from materia_nb.cast.breakpoint import parse_amount
from materia_nb.cast.views.status import draft_of
from materia_nb.cast.views.tables import failure_cause
from materia_nb.cast.workbench import Workbench
from materia_nb.engine.state import Unit, Usage
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.file_io import append_line, read_plain
from materia_nb.insight.estimate import work_time
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import expand_path
from materia_nb.platform import Progress, ProgressBar, run_jobs
from materia_nb.store.catalogue import list_casts
from materia_nb.store.files import disk_errors
from materia_nb.sweep import results
from materia_nb.sweep.grid import AgentMemory, Axes, Fingerprint, GridCell, grid_cells
from materia_nb.sweep.results import Check, Judge, Sweep, SweepRow, Verdict

__all__ = ["Judge", "Verdict"]

ROWS: Final = "rows.jsonl"
_MAX_ROWS_BYTES: Final = 2**28
_MAX_SHOWN_DESCRIPTIONS: Final = 3
_IN_PROGRESS: Final = ("stopped", "person")
_AGENT_MEMORY: Final = AgentMemory()


def run_cast(cell: GridCell, *, restart: bool) -> SweepRow:
    """Run the cast of a grid cell and return its row. A cast that fails or cannot start also has a row.

    Args:
        cell: the grid cell.
        restart: True to start a new cast if the earlier cast failed, is held, or waits for a person.
    """
    try:
        cast = _open_or_start(cell, restart=restart)
    except MateriaError as error:
        return SweepRow(*cell.axes, "not cast", error.what)
    try:
        _run_to_end(cast)
    except MateriaError as error:  # such as a full disk; an error of an agent is a failure of the cast instead
        row = row_of(cast, cell.axes)
        return replace(row, ends=error.kind, why=error.what) if row.ends in _IN_PROGRESS else row
    else:
        return row_of(cast, cell.axes)
    finally:
        cast.close()


def _open_or_start(cell: GridCell, *, restart: bool) -> Cast:
    """Return the cast of a cell from an earlier sweep, even if it is unfinished, or start a new cast."""
    plan, table, pins = cell.prepared
    for entry in list_casts(plan.root)[:1]:
        is_stopped = entry.status in ("failed", "held", "waiting")
        if entry.ours and entry.locked_by is None and not (restart and is_stopped):
            if entry.status in ("complete", "failed", "held"):
                return open_cast(entry.path, table)
            if entry.status in ("ready", "waiting"):
                return resume_cast(entry.path, table, utilities=plan.utilities, sync=plan.sync)
    plan.root.mkdir(parents=True, exist_ok=True)
    cast = start_cast(plan, cell.text, table)
    try:
        for name, pin in pins.items():
            cast.pins.put(name, pin)
        if cell.allow:
            cast.approvals.allow(*cell.allow)
    except BaseException:
        cast.close()
        shutil.rmtree(cast.run_dir, ignore_errors=True)
        raise
    return cast


def _run_to_end(cast: Cast) -> None:
    """Run a cast until it ends or needs human input. Drafts are accepted automatically."""
    while cast.now.writable and cast.status in ("ready", "waiting"):
        if _has_draft(cast):
            cast.accept()
        elif cast.run() == "person" and not _has_draft(cast):
            return


def _has_draft(cast: Cast) -> bool:
    return draft_of(cast.now) is not None and not cast.approvals.asking


def row_of(cast: Cast, axes: Axes) -> SweepRow:
    """Return the row of a cast, without the verdicts of its checks."""
    state, steps, sockets = cast.now.engine, cast.now.all_steps, cast.now.rules.sockets
    milliseconds, _ = work_time(steps)
    ends = {"waiting": "person", "ready": "stopped"}.get(cast.status, cast.status)
    why = cast.now.held.reason if cast.now.held else _waiting_reason(cast)
    cause = failure_cause(cast.now)
    if state.failure:
        ends, why = state.failure.kind, state.failure.message
    turns = sum(len(step.turns) for step in steps if not sockets[step.socket].socket.is_utility)
    seconds = None if milliseconds is None else milliseconds / 1000
    usage, details = state.usage, cause[2:] if cause else ()
    return SweepRow(*axes, ends, why, len(steps), turns, usage.tokens, usage.cost, seconds, cast.run_dir, *details)


def _waiting_reason(cast: Cast) -> str:
    if cast.now.waiting_at is None or cast.status == "complete":
        return ""
    tools = ", ".join(dict.fromkeys(call.tool for call in cast.approvals.asking))
    return f"{cast.now.names[cast.now.waiting_at.socket]} is waiting for {f'approval to use {tools}' if tools else 'an answer'}"


class RowFile:
    """The file of a sweep, with one row or verdict per line. A later line for the same cast replaces an earlier line.

    Attributes:
        rows: the rows, by key of the grid cell.
        verdicts: the verdicts, by directory of the cast and key of the judge.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ROWS
        self.rows: dict[str, SweepRow] = {}
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        with disk_errors(self._path, "read the rows of the sweep"), suppress(FileNotFoundError):
            for line in read_plain(self._path, _MAX_ROWS_BYTES).splitlines():
                self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            entry: Any = json.loads(line)
            if "row" in entry:
                folder = entry["row"].pop("cast")
                self.rows[entry["key"]] = SweepRow(**entry["row"], cast=None if folder is None else Path(folder))
            else:
                usage = Usage(*entry["verdict"].pop("usage"))
                self.verdicts[entry["cast"], entry["judge"]] = Verdict(**entry["verdict"], usage=usage)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return  # skip an incomplete line: its cast is opened again

    def add_row(self, key: str, row: SweepRow) -> None:
        """Append the row of a grid cell to the file."""
        self.rows[key] = row
        self._append({"key": key, "row": row.fields})

    def add_verdict(self, cast: Path, judge: str, verdict: Verdict) -> None:
        """Append the verdict of a judge to the file, so that the judge is not paid again for the same cast."""
        self.verdicts[str(cast), judge] = verdict
        fields = {**verdict._asdict(), "usage": list(verdict.usage)}
        self._append({"cast": str(cast), "judge": judge, "verdict": fields})

    def _append(self, value: Mapping[str, JSON]) -> None:
        with disk_errors(self._path, "save a row"):
            append_line(self._path, json.dumps(value).encode())


def _parse_limit(text: str) -> tuple[float, Unit]:
    amount, unit = parse_amount(text)
    if unit not in get_args(Unit) or not 0 < amount < math.inf:
        hint = f"set a number above 0 and a unit: {', '.join(get_args(Unit))}"
        raise usage_error(f"{amount:g} {unit} is not a limit of a sweep.", hint)
    return amount, unit


def _reached_limit_text(limit: tuple[float, Unit] | None, rows: Iterable[SweepRow]) -> str:
    """Return a note if the casts have reached the limit, or else "". Unreported usage does not count (R56)."""
    if limit is None:
        return ""
    amount, unit = limit
    usage: list[float | None] = [getattr(row, "cost" if unit == "usd" else unit) for row in rows]
    used_amount = sum(number for number in usage if number is not None)
    if used_amount < amount:
        return ""
    unknown = f" (unknown for {counted(usage.count(None), 'cast')})" if None in usage else ""
    return f"{used_amount:,.10g} of {amount:,g} {unit} are used{unknown}. To continue, run the same sweep with a higher limit."


def run_sweep(
    read_cells: Callable[[], Sequence[GridCell]],
    checks: Mapping[str, Check],
    folder: Path,
    workers: int,
    *,
    retry: bool,
    progress: Progress,
    limit: tuple[float, Unit] | None = None,
) -> Sweep:
    """Run all unfinished casts of a sweep. Each row is saved immediately, so that an interrupted sweep can continue.

    ``read_cells`` returns the grid cells with the current fingerprints of their agents. It is called before and after
    the casts, because an agent can change its own state.
    """
    cells = [cell.with_key(_AGENT_MEMORY.first_key(cell.key, cell.agent_objects)) for cell in read_cells()]
    with disk_errors(folder, "create the directory of the sweep"):
        folder.mkdir(parents=True, exist_ok=True)
    file = RowFile(folder)
    open_cells = [cell for cell in cells if not _is_done(file.rows.get(cell.key), retry=retry)]
    earlier_axes = {row.axes for row in file.rows.values()}
    reruns = sum(cell.axes in earlier_axes and cell.key not in file.rows and not cell.opaque for cell in open_cells)

    def limit_reached() -> str:
        return _reached_limit_text(limit, [file.rows[cell.key] for cell in cells if cell.key in file.rows])

    bar = ProgressBar(progress, len(cells), "casts")
    bar.done = len(cells) - len(open_cells)
    try:
        jobs = run_jobs(partial(run_cast, restart=retry), open_cells, workers, lambda: bool(limit_reached()))
        for number, row in jobs:
            file.add_row(open_cells[number].key, row)
            bar.add()
    finally:
        bar.close()
        for now, before in zip(read_cells(), cells, strict=True):
            _AGENT_MEMORY.remember(now.key, before.key, now.agent_objects)
    judges = {name: check for name, check in checks.items() if isinstance(check, Judge)}
    fingerprints = {name: _first_fingerprint(judge) for name, judge in judges.items()}
    reason = limit_reached()
    left_out = [cell for cell in cells if cell.key not in file.rows]
    table = [
        SweepRow(*cell.axes, results.LEFT_OUT, reason)
        if cell in left_out
        else _with_verdicts(replace(file.rows[cell.key], loadout=cell.loadout), file, checks, fingerprints)
        for cell in cells
    ]
    for name, judge in judges.items():
        _AGENT_MEMORY.remember(judge.fingerprint().key, fingerprints[name].key, [judge.agent])
    notes = _notes(open_cells, reruns, fingerprints)
    if left_out:
        notes.append(f"{counted(len(left_out), 'cast')} not started: {reason}")
    return Sweep(table, list(checks), folder, len(open_cells) - len(left_out), notes)


def _is_done(row: SweepRow | None, *, retry: bool) -> bool:
    if row is None or (row.cast is not None and not row.cast.is_dir()):
        return False
    return row.complete or not retry


def _first_fingerprint(judge: Judge) -> Fingerprint:
    fingerprint = judge.fingerprint()
    return fingerprint._replace(key=_AGENT_MEMORY.first_key(fingerprint.key, [judge.agent]))


def _with_verdicts(
    row: SweepRow, file: RowFile, checks: Mapping[str, Check], fingerprints: Mapping[str, Fingerprint]
) -> SweepRow:
    """Return the row with the verdicts of all checks. A judge whose verdict was saved is not asked again."""
    if not checks or row.cast is None or not row.cast.is_dir():
        return row
    cast, verdicts = open_cast(row.cast), {}
    for name, check in checks.items():
        fingerprint = fingerprints.get(name)
        key = None if fingerprint is None or fingerprint.opaque else fingerprint.key
        saved = None if key is None else file.verdicts.get((str(row.cast), key))
        verdict = verdicts[name] = saved or results.verdict_of(name, check, cast)
        if key is not None and saved is None and verdict.value is not None:
            file.add_verdict(row.cast, key, verdict)
    return replace(row, checks=verdicts)


def _notes(cells: Sequence[GridCell], changed: int, fingerprints: Mapping[str, Fingerprint]) -> list[str]:
    """Return notes that explain why casts were run again or judges were asked again."""
    notes = []
    if descriptions := list(dict.fromkeys(text for cell in cells for text in cell.opaque)):
        count = counted(sum(bool(cell.opaque) for cell in cells), "cast")
        notes.append(f"{count} cannot be reused, because changes to {_shorten(descriptions)} cannot be detected")
    if changed:
        notes.append(f"{counted(changed, 'earlier cast')} not reused: the loadout, agents or pins changed")
    notes += [
        f"the judge {name} is asked each time, because changes to {_shorten(fingerprint.opaque)} cannot be detected"
        for name, fingerprint in fingerprints.items()
        if fingerprint.opaque
    ]
    return notes


def _shorten(descriptions: Sequence[str]) -> str:
    more = ["..."] if len(descriptions) > _MAX_SHOWN_DESCRIPTIONS else []
    return "; ".join([*descriptions[:_MAX_SHOWN_DESCRIPTIONS], *more])


class Sweeps:
    """The type of ``wb.sweep``. Calling ``wb.sweep`` runs a sweep."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def __repr__(self) -> str:
        return f"<sweeps of {self._bench.project.name}: call to run a sweep>"

    def __call__(  # noqa: PLR0913, PLR0917 - the axes of the grid, in the order in which they are thought of
        self,
        loadouts: str | Sequence[str] | None = None,
        requests: str | Sequence[str] | Mapping[str, str] = (),
        agents: object = None,
        repeat: int = 1,
        checks: Mapping[str, results.Check] | Sequence[results.Check] | results.Check | None = None,
        dir: str | Path | None = None,  # noqa: A002 - its name in a notebook
        workers: int = 1,
        *,
        pins: Mapping[str, object] | None = None,
        allow: Sequence[str] = (),
        retry: bool = False,
        most: str | None = None,
        progress: Progress = False,
    ) -> results.Sweep:
        """Run a cast for every combination of loadouts, requests and agents, and check each cast.

        Finished casts are not run again. After an interruption, the sweep continues; if you add requests, agents or
        repeats, only the new casts run. A failed cast also has a row::

            wb.sweep(["Plan-Build-Eval", "Full-Auto"], ["a page on rain"], repeat=3,
                     agents={"small": "openai:gpt-5-mini", "large": "openai:gpt-5"},
                     checks={"short": lambda steps: len(steps) < 20,
                             "polite": Judge("openai:gpt-5", "Is the last answer polite?")})

        Args:
            loadouts: the names of the loadouts; defaults to the current loadout.
            requests: the requests, or a dict from names to requests.
            agents: the agents of a cast, as for ``wb.cast``, or one agent for all sockets. To compare agents, pass a
                list of choices, or a dict from labels to choices. Defaults to the agents of the workbench.
            repeat: the number of casts of each combination.
            checks: a list of checks, or a dict of checks by name. A check is a ``Judge``, or a function that returns a
                value or raises AssertionError. The parameter of the function is the cast, or its parameters are named
                ``cast``, ``route``, ``state``, ``outputs``, ``steps``, ``request`` or ``ends``.
            dir: the directory for the rows and casts, relative to the project; defaults to ``sweep`` next to the casts
                of the workbench.
            workers: the number of casts that run at the same time, each in a separate thread.
            pins: the pins of every cast, as for ``wb.cast``. Pin utilities that change files, because all casts run in
                the same project.
            allow: the tools that agents may use without approval. A cast that is waiting for a person ends with
                ``person``.
            retry: True to rerun the casts that did not complete.
            most: the limit for all casts of the sweep together, including earlier casts, such as ``"200000 tokens"``,
                ``"2.5 usd"``, ``"600 seconds"`` or ``"100 turns"``. When it is reached, no further casts are started,
                and running casts finish. To continue, run the same sweep with a higher limit. The usage of judges does
                not count.
            progress: True to display a progress bar, or a function that is called with the number of finished casts and
                the total.

        Raises:
            MateriaError: a loadout has problems, a name is unknown, or the grid is empty or ambiguous (``usage``).
        """
        bench = self._bench
        if workers < 1:
            raise usage_error("A sweep needs at least one worker.", "set workers to 1 or more")
        chosen = [loadouts] if isinstance(loadouts, str) else loadouts
        names = list(chosen or [bench.loadouts.require_loadout(bench.loadouts.chosen)])
        folder = bench.casts.root / "sweep" if dir is None else bench.project / expand_path(Path(dir))
        named_checks = results.named_checks(checks, (*results.FIELDS, "passed"))

        def prepare(loadout: str, choice: Mapping[str, Any] | None) -> Prepared:
            return bench.agents.prepare(bench.graph(loadout), choice, pins).frozen()

        def read_cells() -> list[GridCell]:
            arguments = (names, requests, agents, repeat, tuple(allow))
            return grid_cells(*arguments, is_known=bench.agents.knows, prepare=prepare, folder=folder)

        limit = None if most is None else _parse_limit(most)
        return run_sweep(read_cells, named_checks, folder, workers, retry=retry, progress=progress, limit=limit)
