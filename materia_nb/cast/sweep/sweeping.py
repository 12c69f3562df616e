"""Runs a sweep: casts what is not there yet, keeps each row as it comes, and asks the checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from materia_nb.cast.sweep.checks import Check, Judge, Verdict, verdict_of
from materia_nb.cast.sweep.grid import Place
from materia_nb.cast.sweep.outcome import Row, Sweep
from materia_nb.cast.sweep.rowcast import Came, CastJob, make, now_ns, opened
from materia_nb.engine.state import Usage
from materia_nb.jsonvalue import JSON
from materia_nb.sharing import Bar, Progress, shared
from materia_nb.store.files import disk, read_plain

ROWS: Final = "rows.jsonl"
LONGEST: Final = 2**28
"""The longest file of rows that is read, in bytes."""


class Kept:
    """The file of a sweep's rows: one line for each cast and each verdict of a judge, the later one counts."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ROWS
        self.casts: dict[str, Came] = {}
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        for line in self._lines():
            self._read(line)

    def _lines(self) -> list[bytes]:
        try:
            return read_plain(self._path, LONGEST).splitlines()
        except FileNotFoundError:
            return []

    def _read(self, line: bytes) -> None:
        try:
            given: Any = json.loads(line)
            if "came" in given:
                self.casts[given["key"]] = Came(**given["came"])
            else:
                usage = Usage(*given["verdict"].pop("usage"))
                self.verdicts[given["cast"], given["judge"]] = Verdict(**given["verdict"], usage=usage)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return  # a line that was cut off: its cast is looked up again

    def keep(self, key: str, came: Came) -> None:
        """Keep what came of a cast."""
        self.casts[key] = came
        self._append({"key": key, "came": came._asdict()})

    def keep_verdict(self, cast: str, judge: str, verdict: Verdict) -> None:
        """Keep what a judge said of a cast, which need not be paid again."""
        self.verdicts[cast, judge] = verdict
        told = {**verdict._asdict(), "usage": list(verdict.usage)}
        self._append({"cast": cast, "judge": judge, "verdict": told})

    def _append(self, value: Mapping[str, JSON]) -> None:
        with disk(self._path, "keep a row"):
            torn = b"" if not self._path.exists() or self._path.read_bytes()[-1:] in (b"", b"\n") else b"\n"
            with self._path.open("ab") as file:
                file.write(torn + json.dumps(value).encode() + b"\n")


def sweep(
    places: Sequence[Place],
    checks: Mapping[str, Check],
    folder: Path,
    executor: Executor | None,
    *,
    retry: bool,
    progress: Progress,
) -> Sweep:
    """Cast all places that are not done yet; rows are kept as they come, so that a run that is cut off goes on later."""
    with disk(folder, "make the directory of the sweep"):
        folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(folder)
    todo = [one for one in places if not _is_done(kept.casts.get(one.key), retry=retry)]
    jobs = [CastJob(one.prepared, one.text, one.allow, retry, now_ns()) for one in todo]
    lost: dict[str, str] = {}
    bar = Bar(progress, len(places), "casts")
    bar.done = len(places) - len(todo)
    try:
        for done in shared(make, jobs, executor):
            key = todo[done.place].key
            if done.result is None:
                lost[key] = f"{type(done.lost).__name__}: {done.lost}"
            else:
                kept.keep(key, done.result)
            bar.add()
    finally:
        bar.close()
    rows = [_row(one, kept, checks, lost.get(one.key)) for one in places]
    return Sweep(rows, list(checks), folder, len(todo) - len(lost))


def _is_done(came: Came | None, *, retry: bool) -> bool:
    if came is None or (came.cast is not None and not Path(came.cast).is_dir()):
        return False
    return came.ends == "complete" or not retry


def _row(place: Place, kept: Kept, checks: Mapping[str, Check], lost: str | None) -> Row:
    axes = (place.loadout, place.request, place.agents, place.repeat)
    came = kept.casts.get(place.key)
    if lost is not None or came is None:
        return Row(*axes, "lost", lost or "")
    facts = came._asdict() | {"cast": None if came.cast is None else Path(came.cast)}
    return Row(*axes, **facts, checks=_checked(came, kept, checks))


def _checked(came: Came, kept: Kept, checks: Mapping[str, Check]) -> dict[str, Verdict]:
    """Ask every check; what a judge said of this very cast is not asked again, functions always are."""
    cast, found = (opened(came) if checks else None), {}
    if cast is None or came.cast is None:
        return {}
    for name, check in checks.items():
        if not isinstance(check, Judge):
            found[name] = verdict_of(name, check, cast)
            continue
        known = kept.verdicts.get((came.cast, check.key))
        found[name] = known or verdict_of(name, check, cast)
        if known is None and found[name].value is not None:
            kept.keep_verdict(came.cast, check.key, found[name])
    return found
