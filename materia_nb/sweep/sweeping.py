"""Runs a sweep: casts what is not there yet, keeps each row as it comes, and asks the checks."""

from __future__ import annotations

import json
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from materia_nb.cast import Cast, open_cast, resume_cast, start_cast
from materia_nb.cast.breakpoint import amount_of
from materia_nb.cast.views.loadout_views import estimated
from materia_nb.cast.views.status import draft_of
from materia_nb.cast.workbench import Workbench
from materia_nb.engine.state import Unit, Usage
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.file_io import append_line, read_plain
from materia_nb.insight.estimate import QUICK_CASTS
from materia_nb.insight.usage import work_time
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import expanded
from materia_nb.parallel import Progress, ProgressBar, run_jobs
from materia_nb.store.catalogue import list_casts
from materia_nb.store.files import disk
from materia_nb.sweep import results
from materia_nb.sweep.grid import GridPlace, Seen, as_given, places_of

_FEW: Final = 3
_UNDER_WAY: Final = ("stopped", "person")


class CastJob(NamedTuple):
    """What a worker needs for one cast.

    Attributes:
        place: which.
        anew: whether an earlier cast that failed, is held, or waits for a person, is left behind.
        asked: when it was asked for, so that no executor takes two of them for one.
    """

    place: GridPlace
    anew: bool
    asked: int


class Came(NamedTuple):
    """What came of a cast.

    Attributes:
        ends: ``complete``, the kind of a failure, ``person``, ``held``, or ``not cast``.
        why: the message of a failure, or what is waited for; empty for a success.
        cast: its directory, None when it could not be begun.
        steps: how many sockets were entered.
        turns: how many turns agents had.
        tokens: how many were used, None when nobody reported any (R56).
        cost: in the unit that agents give it in, None when nobody reported any.
        seconds: how long it worked, in all tries; None when no step says it.
    """

    ends: str
    why: str
    cast: str | None
    steps: int = 0
    turns: int = 0
    tokens: int | None = 0
    cost: float | None = 0.0
    seconds: float | None = 0.0


def make_cast(job: CastJob) -> Came:
    """Make the cast and return what came of it; a failure is a result."""
    try:
        cast = _begun(job)
    except MateriaError as error:
        return Came("not cast", error.what, None)
    try:
        _run(cast)
    except MateriaError as error:  # such as a disk that is full; what an agent raises fails the cast
        found = came(cast)
        return found._replace(ends=error.kind, why=error.what) if found.ends in _UNDER_WAY else found
    else:
        return came(cast)
    finally:
        cast.close()


def _begun(job: CastJob) -> Cast:
    """Go on with what an earlier try has begun, since it may have been paid for; else begin."""
    plan, table, pins = job.place.prepared
    for entry in list_casts(plan.root)[:1]:
        stuck = entry.status in ("failed", "held", "waiting")
        if entry.ours and entry.locked_by is None and not (job.anew and stuck):
            if entry.status in ("complete", "failed", "held"):
                return open_cast(entry.path, table)
            if entry.status in ("ready", "waiting"):
                return resume_cast(entry.path, table, utilities=plan.utilities, sync=plan.sync)
    plan.root.mkdir(parents=True, exist_ok=True)
    cast = start_cast(plan, job.place.text, table)
    try:
        for name, chosen in pins.items():
            cast.pins.put(name, chosen)
        if job.place.allow:
            cast.approvals.allow(*job.place.allow)
    except BaseException:
        cast.close()
        shutil.rmtree(cast.run_dir, ignore_errors=True)
        raise
    return cast


def _run(cast: Cast) -> None:
    """Run it until it is over or a person is needed; drafts are accepted as they come."""
    while cast.now.writable and cast.status in ("ready", "waiting"):
        if _has_draft(cast):
            cast.accept()
        elif cast.run() == "person" and not _has_draft(cast):
            return


def _has_draft(cast: Cast) -> bool:
    return draft_of(cast.now) is not None and not cast.approvals.asking


def came(cast: Cast) -> Came:
    """Say what came of a cast."""
    state, steps, sockets = cast.now.engine, cast.now.all_steps, cast.now.rules.sockets
    milliseconds, _ = work_time(steps)
    ends = {"waiting": "person", "ready": "stopped"}.get(cast.status, cast.status)
    why = cast.now.held.reason if cast.now.held else _waits(cast)
    if state.failure:
        ends, why = state.failure.kind, state.failure.message
    return Came(
        ends,
        why,
        str(cast.run_dir),
        len(steps),
        sum(len(step.turns) for step in steps if not sockets[step.socket].socket.is_utility),
        state.usage.tokens,
        state.usage.cost,
        None if milliseconds is None else milliseconds / 1000,
    )


def _waits(cast: Cast) -> str:
    if cast.now.waiting_at is None or cast.status == "complete":
        return ""
    tools = ", ".join(dict.fromkeys(call.tool for call in cast.approvals.asking))
    return f"{cast.now.waiting_at.socket} waits for {f'approval to use {tools}' if tools else 'an answer'}"


# -- the sweep -------------------------------------------------------------------------------

ROWS: Final = "rows.jsonl"
_MOST_BYTES: Final = 2**28
"""The longest file of rows that is read, in bytes."""


class KeptRows:
    """The file of a sweep's rows: one line for each cast and each verdict of a judge, the later one counts."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ROWS
        self.casts: dict[str, Came] = {}
        self.axes: set[tuple[object, ...]] = set()
        self.verdicts: dict[tuple[str, str], results.Verdict] = {}
        with disk(self._path, "read the rows of the sweep"), suppress(FileNotFoundError):
            for line in read_plain(self._path, _MOST_BYTES).splitlines():
                self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            given: Any = json.loads(line)
            if "came" in given:
                self.casts[given["key"]] = Came(**given["came"])
                self.axes.add(tuple(given["place"]))
            else:
                usage = Usage(*given["verdict"].pop("usage"))
                self.verdicts[given["cast"], given["judge"]] = results.Verdict(
                    **given["verdict"], usage=usage
                )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return  # a line that was cut off: its cast is looked up again

    def keep(self, place: GridPlace, came: Came) -> None:
        """Keep what came of a cast."""
        self.casts[place.key] = came
        self._append({"key": place.key, "place": list(place.axes), "came": came._asdict()})

    def keep_verdict(self, cast: str, judge: str, verdict: results.Verdict) -> None:
        """Keep what a judge said of a cast, which need not be paid again."""
        self.verdicts[cast, judge] = verdict
        told = {**verdict._asdict(), "usage": list(verdict.usage)}
        self._append({"cast": cast, "judge": judge, "verdict": told})

    def _append(self, value: Mapping[str, JSON]) -> None:
        with disk(self._path, "keep a row"):
            append_line(self._path, json.dumps(value).encode())


_SAME: Final[dict[str, tuple[str, list[weakref.ref[Any]]]]] = {}
"""Earlier keys of agents that were asked in this kernel, by their current key, with the agents themselves: an agent that
counts its calls stays the same agent, but another agent that looks like it does not become it."""


def run_sweep(
    look: Callable[[], Sequence[GridPlace]],
    checks: Mapping[str, results.Check],
    folder: Path,
    executor: Executor | None,
    *,
    retry: bool,
    progress: Progress,
    most: tuple[float, Unit] | None = None,
) -> results.Sweep:
    """Cast all places that are not done yet; rows are kept as they come, so that a run that is cut off goes on later.

    ``look`` gives the places as their agents are now; it is asked again when they have answered. Once the rows have used
    ``most`` together, no more casts are begun.
    """
    places = [one.known_as(_earlier_key(one.key, one.objects)) for one in look()]
    with disk(folder, "make the directory of the sweep"):
        folder.mkdir(parents=True, exist_ok=True)
    kept = KeptRows(folder)
    todo = [one for one in places if not _is_done(kept.casts.get(one.key), retry=retry)]
    changed = sum(one.axes in kept.axes and one.key not in kept.casts and not one.unseen for one in todo)
    jobs = [CastJob(one, retry, time.time_ns()) for one in todo]
    if todo and progress is True:
        sys.stderr.write(f"{_forecast(todo)}\n")
    lost: dict[str, str] = {}
    spent = Together(most, [kept.casts[one.key] for one in places if one.key in kept.casts])
    bar = ProgressBar(progress, len(places), "casts")
    bar.done = len(places) - len(todo)
    try:
        for result in run_jobs(make_cast, jobs, executor, spent.enough):
            place = todo[result.number]
            if result.value is None:
                lost[place.key] = f"{type(result.lost).__name__}: {result.lost}"
            else:
                kept.keep(place, result.value)
                spent.add(result.value)
                bar.add()
    finally:
        bar.close()
        for now, then in zip(look(), places, strict=True):
            _keep_key(now.key, then.key, now.objects)
    judging = {name: check for name, check in checks.items() if isinstance(check, results.Judge)}
    judges = {name: _known_as(check) for name, check in judging.items()}
    pause = spent.words
    rows = [
        results.SweepRow(*one.axes, results.LEFT_OUT, pause)
        if pause and one.key not in kept.casts and one.key not in lost
        else _row(one, kept, checks, judges, lost.get(one.key))
        for one in places
    ]
    left_out = sum(one.ends == results.LEFT_OUT for one in rows)
    for name, check in judging.items():
        _keep_key(check.seen().key, judges[name].key, (as_given(check.agent),))
    notes = _notes(todo, changed, judges)
    if left_out:
        notes.append(f"{counted(left_out, 'cast')} not made: {pause}")
    return results.Sweep(rows, list(checks), folder, len(todo) - len(lost) - left_out, notes)


class Together:
    """What the casts of a sweep have used together, against the most that they may.

    Raises:
        MateriaError: ``most`` is not an amount (``usage``).
    """

    def __init__(self, most: tuple[float, Unit] | None, made: Iterable[Came]) -> None:
        if most is not None and (most[1] not in get_args(Unit) or not 0 < most[0] < float("inf")):
            raise usage_error(
                f"{most[0]:g} {most[1]} is not a limit of a sweep.",
                f"give a number above 0, and one of {', '.join(get_args(Unit))}",
            )
        self._most = most
        self._used = 0.0
        self._unknown = 0
        for one in made:
            self.add(one)

    def add(self, came: Came) -> None:
        """Count what came of a cast; what nobody reported is not counted (R56)."""
        if self._most is not None:
            used = getattr(came, "cost" if self._most[1] == "usd" else self._most[1])
            self._used += used or 0.0
            self._unknown += used is None

    def enough(self) -> bool:
        """Whether no more casts are to be begun."""
        return self._most is not None and self._used >= self._most[0]

    @property
    def words(self) -> str:
        """Why no more were begun; empty while they are."""
        if self._most is None or not self.enough():
            return ""
        unknown = f", unknown of {counted(self._unknown, 'cast')}" if self._unknown else ""
        return f"{self._used:,.10g} of {self._most[0]:,g} {self._most[1]} are used{unknown}; the same sweep with more goes on"


def _forecast(places: Sequence[GridPlace]) -> str:
    """Say in a line what the casts of some places would take, over short lists (R56: what is not known is said to be so)."""
    alike: dict[tuple[str, str], list[GridPlace]] = {}
    for one in places:
        alike.setdefault((one.loadout, one.agents), []).append(one)
    turns, tokens_in, tokens_out, cost, unpriced, unknown = 0.0, 0.0, 0.0, 0.0, 0, 0
    for group in alike.values():
        (plan, table, pins), count = group[0].prepared, len(group)
        pinned = {name: chosen.pin for name, chosen in pins.items()}
        try:
            found = estimated(plan.graph, table, pinned, request=group[0].text, casts=QUICK_CASTS)
        except MateriaError:
            unknown += count
            continue
        turns += count * found.total.turns.mean
        tokens_in += count * found.total.input.mean
        tokens_out += count * found.total.output.mean
        cost += count * (found.total.cost.mean if found.total.cost is not None else 0.0)
        unpriced += count * bool(found.unpriced)
    priced = f"at least ${cost:.2f}" + (
        f", prices of {counted(unpriced, 'cast')} not all known" if unpriced else ""
    )
    words = (
        f"{counted(len(places), 'cast')} to make: lists of 3 and satisfied 0.5 would take some {turns:,.0f} turns, "
        f"with the shortest answers at least {tokens_in:,.0f} tokens in and {tokens_out:,.0f} out; "
        + (priced if cost else "no agent is asked" if not turns else "the cost is not known")
    )
    return words + (f"; of {counted(unknown, 'cast')} nothing is known" if unknown else "")


def _known_as(judge: results.Judge) -> Seen:
    seen = judge.seen()
    return seen._replace(key=_earlier_key(seen.key, (as_given(judge.agent),)))


def _earlier_key(key: str, objects: Sequence[object]) -> str:
    """Return the key under which these very objects were asked before, else ``key``."""
    earlier, refs = _SAME.get(key, (key, []))
    same = len(refs) == len(objects) and all(ref() is one for ref, one in zip(refs, objects, strict=True))
    return earlier if same else key


def _keep_key(now: str, then: str, objects: Sequence[object]) -> None:
    if now != then:
        with suppress(TypeError):  # an object that cannot be held weakly is never taken for an earlier one
            _SAME[now] = then, [weakref.ref(one) for one in objects]


def _notes(todo: Sequence[GridPlace], changed: int, judges: Mapping[str, Seen]) -> list[str]:
    """Say why casts were made, and judges asked, although they seem to have been before."""
    found = []
    if unseen := list(dict.fromkeys(words for one in todo for words in one.unseen)):
        blind = counted(sum(bool(one.unseen) for one in todo), "cast")
        found.append(
            f"{blind} can never be reused: whether their agents changed cannot be seen ({_few(unseen)})"
        )
    if changed:
        found.append(
            f"{counted(changed, 'cast')} made before are not these: loadout, agents or pins have changed"
        )
    found += [
        f"the judge {name} is asked each time: whether it changed cannot be seen ({_few(list(one.unseen))})"
        for name, one in judges.items()
        if one.unseen
    ]
    return found


def _few(words: Sequence[str]) -> str:
    return "; ".join([*words[:_FEW], *(["..."] if len(words) > _FEW else [])])


def _is_done(came: Came | None, *, retry: bool) -> bool:
    if came is None or (came.cast is not None and not Path(came.cast).is_dir()):
        return False
    return came.ends == "complete" or not retry


def _row(
    place: GridPlace,
    kept: KeptRows,
    checks: Mapping[str, results.Check],
    judges: Mapping[str, Seen],
    lost: str | None,
) -> results.SweepRow:
    came = kept.casts.get(place.key)
    if lost is not None or came is None:
        return results.SweepRow(*place.axes, "lost", lost or "")
    facts = came._asdict() | {"cast": None if came.cast is None else Path(came.cast)}
    return results.SweepRow(*place.axes, **facts, checks=_checked(came, kept, checks, judges))


def _checked(
    came: Came, kept: KeptRows, checks: Mapping[str, results.Check], judges: Mapping[str, Seen]
) -> dict[str, results.Verdict]:
    """Ask every check; what a judge said of this very cast is not asked again, functions always are."""
    if not checks or came.cast is None or not Path(came.cast).is_dir():
        return {}
    cast, found = open_cast(Path(came.cast)), {}
    for name, check in checks.items():
        if not isinstance(check, results.Judge):
            found[name] = results.verdict_of(name, check, cast)
            continue
        key, unseen = judges[name]
        known = None if unseen else kept.verdicts.get((came.cast, key))
        found[name] = known or results.verdict_of(name, check, cast)
        if known is None and found[name].value is not None and not unseen:
            kept.keep_verdict(came.cast, key, found[name])
    return found


class Sweeps:
    """What ``wb.sweep`` is: call it."""

    def __init__(self, bench: Workbench) -> None:
        """Sweep with what a workbench has."""
        self._bench = bench

    def __repr__(self) -> str:
        return f"<sweeps of {self._bench.project.name}: call it>"

    def __call__(  # noqa: PLR0913, PLR0917 - the axes of the grid, in the order in which they are thought of
        self,
        loadouts: str | Sequence[str] | None = None,
        requests: str | Sequence[str] | Mapping[str, str] | Any = (),
        agents: object = None,
        repeat: int = 1,
        checks: Mapping[str, results.Check] | Sequence[results.Check] | results.Check | None = None,
        dir: str | Path | None = None,  # noqa: A002 - its name in a notebook
        executor: Executor | None = None,
        *,
        pins: Mapping[str, object] | None = None,
        allow: Sequence[str] = (),
        retry: bool = False,
        most: str | None = None,
        progress: Progress = False,
    ) -> results.Sweep:
        """Make real casts of every loadout with every request and all agents, and check what comes of them.

        A cast that is done is not made again: the same sweep goes on where it was cut off, and one with more
        requests, agents or repeats makes only those. A failure is a row::

            wb.sweep(["Plan-Build-Eval", "Full-Auto"], ["a page on rain"], repeat=3,
                     agents={"small": "openai:gpt-5-mini", "large": "openai:gpt-5"},
                     checks={"short": lambda steps: len(steps) < 20,
                             "polite": Judge("openai:gpt-5", "Is the last answer polite?")})

        Args:
            loadouts: which; the chosen one by default.
            requests: what is asked for, or a dict of names to that; or a ``Dataset`` of pydantic-evals (the extra
                ``evals``), whose evaluators are then asked as checks: they get what the last step answered as output.
            agents: who answers: one choice as for ``wb.cast``, or an agent for everyone; a list of these, or a dict of
                labels to them. Whoever is set answers if left out.
            repeat: how often each is cast.
            checks: by name or as a list, functions of the cast, or of what their parameters name (``cast``, ``route``,
                ``state``, ``outputs``, ``steps``, ``request``, ``ends``), which return or assert; or a ``Judge``.
            dir: where rows and casts are saved, relative to the project; ``sweep`` beside its casts if left out.
            executor: a ``concurrent.futures.Executor``; one cast after the other if left out. Other machines must
                see the same directories.
            pins: what is pinned in every cast, as for ``wb.cast``. All casts work in one project: pin what changes it.
            allow: tools of agents that need not ask; a cast that waits for a person ends with ``person``.
            retry: cast again what did not finish.
            most: how much all casts of the sweep may use together, those that were there included: ``"200000 tokens"``, ``"2.5 usd"``,
                ``"600 seconds"`` or ``"100 turns"``. Then no more are begun, and those under way come to their end; the same
                sweep with more goes on. What judges use is not counted.
            progress: whether a bar is shown, below a line that estimates what the casts take; or a function
                that is called with how many casts are done and how many there are.

        Raises:
            MateriaError: a loadout has problems, a name is unknown, or what is asked for makes no grid (``usage``).
        """
        names = (
            [loadouts]
            if isinstance(loadouts, str)
            else list(loadouts or [self._bench.loadouts.needs(self._bench.loadouts.chosen)])
        )
        folder = (
            self._bench.casts.root / "sweep" if dir is None else self._bench.project / expanded(Path(dir))
        )
        asked = results.named_checks(checks, (*results.FIELDS, "passed"))
        if results.is_dataset(requests):
            evaluated = results.named_checks(results.checks_of(requests), (*results.FIELDS, "passed", *asked))
            requests, asked = results.requests_of(requests), {**evaluated, **asked}
        look = partial(
            places_of,
            names,
            requests,
            agents,
            repeat,
            tuple(allow),
            known=self._bench.agents.knows,
            prepare=lambda name, who: self._bench.agents.prepared(
                self._bench.graph(name), who, pins
            ).frozen(),
            folder=folder,
        )
        limit = None if most is None else amount_of(most)
        return run_sweep(look, asked, folder, executor, retry=retry, progress=progress, most=limit)
