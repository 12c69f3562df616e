"""One cast of a sweep, as any worker makes it: begun, or gone on with where an earlier try of it was cut off."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.cast import Cast, Prepared, open_cast, resume_cast, start_cast
from materia_nb.errors import MateriaError
from materia_nb.store.catalogue import list_casts

_UNDER_WAY: Final = ("stopped", "person")


class CastJob(NamedTuple):
    """What a worker needs for one cast.

    Attributes:
        prepared: what it is started from; the plan's ``root`` is a directory of this cast alone.
        text: the request.
        allow: tools that need not ask.
        anew: whether an earlier cast that failed, is held, or waits for a person, is left behind.
        asked: when it was asked for, so that no executor takes two of them for one.
    """

    prepared: Prepared
    text: str
    allow: tuple[str, ...]
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
        tokens: how many were used.
        cost: in the unit that agents give it in.
        seconds: how long it worked, in all tries.
    """

    ends: str
    why: str
    cast: str | None
    steps: int = 0
    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


def make(job: CastJob) -> Came:
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
    plan, table, pins = job.prepared
    for entry in list_casts(plan.root)[:1]:
        stuck = entry.status in ("failed", "held", "waiting")
        if entry.ours and entry.locked_by is None and not (job.anew and stuck):
            if entry.status in ("complete", "failed", "held"):
                return open_cast(entry.path, table)
            if entry.status in ("ready", "waiting"):
                return resume_cast(entry.path, table, utilities=plan.utilities, sync=plan.sync)
    plan.root.mkdir(parents=True, exist_ok=True)
    cast = start_cast(plan, job.text, table)
    try:
        for name, chosen in pins.items():
            cast.pins.put(name, chosen)
        if job.allow:
            cast.approvals.allow(*job.allow)
    except BaseException:
        cast.close()
        shutil.rmtree(cast.run_dir, ignore_errors=True)
        raise
    return cast


def _run(cast: Cast) -> None:
    """Run it until it is over or a person is needed; drafts are accepted as they come."""
    while cast.now.writable and cast.status in ("ready", "waiting"):
        if _has_draft(cast):
            cast.finalize()
        elif cast.run() == "person" and not _has_draft(cast):
            return


def _has_draft(cast: Cast) -> bool:
    visit = cast.now.waiting_at
    return visit is not None and visit.mode == "draft" and visit.drafts > 0 and not cast.approvals.asking


def came(cast: Cast) -> Came:
    """Say what came of a cast."""
    state, steps = cast.now.engine, cast.steps
    sockets = cast.now.rules.sockets
    return Came(
        state.failure.kind
        if state.failure
        else {"waiting": "person", "ready": "stopped"}.get(cast.status, cast.status),
        state.failure.message
        if state.failure
        else state.hold.reason
        if cast.now.held and state.hold
        else _waits(cast),
        str(cast.run_dir),
        len(steps),
        sum(len(step.turns) for step in steps if not sockets[step.socket].socket.is_utility),
        state.usage.tokens,
        state.usage.cost,
        sum((step.ended or step.started) - step.started for step in steps) / 1000,
    )


def _waits(cast: Cast) -> str:
    if cast.now.waiting_at is None or cast.status == "complete":
        return ""
    tools = ", ".join(dict.fromkeys(call.tool for call in cast.approvals.asking))
    return f"{cast.now.waiting_at.socket} waits for {f'approval to use {tools}' if tools else 'an answer'}"


def opened(came: Came) -> Cast | None:
    """Open the cast to look at it; None when there is none any more."""
    if came.cast is None or not Path(came.cast).is_dir():
        return None
    return open_cast(Path(came.cast))


def now_ns() -> int:
    """Return a number that no other call returns in this process."""
    return time.time_ns()
