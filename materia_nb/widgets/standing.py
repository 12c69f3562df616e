"""How a cast stands, for the bar of its panel: whose turn it is, since when, and what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from materia_nb.display.calls import call_words
from materia_nb.display.escape import part, plain
from materia_nb.errors import counted
from materia_nb.handoff.contract import request_of
from materia_nb.loadout.graph import END, Graph

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.widgets.base import Runs

BAR_CHARS: Final = 60
"""How long a command may be to be allowed in the bar, where all of it must be seen."""
_NO_LIMIT: Final = (
    "no limit stopped the cast, so there is none to grant once more: Recast runs the socket again"
)


class Standing(NamedTuple):
    """In whose hands a cast is.

    Attributes:
        tone: working, wants, breakpoint, paused, ready, aborting, done, failed, aborted or gone.
        words: in a few words.
        since: since when, in milliseconds since the epoch; None where nobody waits.
        detail: more of it, for those who point at it.
    """

    tone: str
    words: str
    since: int | None = None
    detail: str = ""


def names_of(graph: Graph) -> dict[str, str]:
    """Name every socket: by its materia's label, behind its id where several have the same."""
    labels = [part(socket.materia.label, 60) for socket in graph.sockets.values()]
    return {
        id_: label if labels.count(label) == 1 else f"{part(id_)} {label}"
        for (id_, _), label in zip(graph.sockets.items(), labels, strict=True)
    }


def standing(cast: Cast, runs: Runs, *, busy: bool, aborting: bool) -> Standing:
    """Say whose turn it is."""
    names = names_of(cast.graph)
    if busy:
        return _working(cast, runs, names, aborting=aborting)
    status, failure, ended = cast.status, cast.failure, _ended(cast)
    if not cast.now.writable:
        return Standing("gone", f"{status} · only to look at", detail="resume it to go on with it")
    if status == "complete":
        words = "done, with remarks" if cast.now.remarks else "done"
        return Standing("done", words, detail="; ".join(map(str, cast.now.remarks[:3])))
    if failure is not None:
        where = f" · {names[failure.socket]}" if failure.socket in names else ""
        return Standing(
            "aborted" if status == "aborted" else "failed", f"{status}{where}", detail=plain(failure.message)
        )
    step = cast.steps[-1] if cast.steps else None
    if status == "held" and cast.now.engine.at is not None:
        what = f" for {cast.now.held.needs}" if cast.now.held and cast.now.held.needs else ""
        return Standing("wants", f"wants you · {names[cast.now.engine.at.socket]} asks{what}", ended)
    return _stopped(cast, runs, names, ended, step.started if step else None)


def _working(cast: Cast, runs: Runs, names: dict[str, str], *, aborting: bool) -> Standing:
    visit = cast.now.engine.at
    place = visit.socket if visit is not None else cast.now.engine.next
    name = names.get(place or "", "")
    where = f" · {name}" if name else ""
    item = f" · {part(visit.item.label, 40)}" if visit is not None and visit.item is not None else ""
    since = runs.begun or (cast.steps[-1].started if cast.steps else None)
    if aborting or cast.runner.stop.is_set():
        word = "aborting" if aborting else "pausing"
        return Standing(
            "aborting",
            f"{word}{where}",
            runs.asked_to_stop or since,
            cast.now.stopping or "waits for the step to end",
        )
    return Standing("working", f"working{where}{item}", since)


def _stopped(
    cast: Cast, runs: Runs, names: dict[str, str], ended: int | None, entered: int | None
) -> Standing:
    place = cast.now.next_socket or ""
    name = "the end" if place == END else names.get(place, "")
    visit = cast.now.waiting_at
    if visit is not None and cast.approvals.asking:
        return Standing("wants", f"wants you · {name} asks for approval", entered)
    if visit is not None and visit.mode == "draft" and visit.drafts:
        return Standing("wants", f"wants you · draft of {name}", entered)
    if visit is not None and _is_person(cast, visit.socket):
        return Standing("wants", f"wants you · {name}", entered)
    stops = cast.breakpoints.conditions
    hit = [one for one in cast.breakpoints.hit if runs.outcome == "breakpoint" or stops.get(one) is None]
    if hit:
        detail = "; ".join(one.words(cast.graph, names) for one in hit)
        return Standing("breakpoint", f"at breakpoint · {name}", ended, detail)
    if visit is not None or runs.outcome == "stopped":
        return Standing("paused", f"paused · {name}", ended)
    return Standing("ready", f"ready · {name} is next" if name else "ready")


def _is_person(cast: Cast, socket: str) -> bool:
    return not cast.graph.sockets[socket].is_utility and cast.now.answered_by(socket) in (None, "person")


def _ended(cast: Cast) -> int | None:
    return cast.steps[-1].ended if cast.steps else None


def bar_state(cast: Cast, runs: Runs, *, busy: bool, aborting: bool) -> dict[str, Any]:
    """Return what the bar shows of a cast."""
    stands = standing(cast, runs, busy=busy, aborting=aborting)
    status, alive = cast.status, cast.now.writable
    going = status in ("ready", "waiting") and alive
    stopped = status in ("failed", "aborted")
    again = stopped and alive and not busy
    usage, budget = cast.now.engine.usage, cast.now.engine.budget
    names = names_of(cast.graph)
    edits = cast.now.edits
    return {
        "tone": stands.tone,
        "words": stands.words,
        "since": stands.since,
        "detail": stands.detail,
        "busy": busy,
        "stopped": stopped,
        "can": {
            "step": going
            and (not busy or (runs.running == "Step" and not aborting and not cast.runner.stop.is_set())),
            "run": going and not busy,
            "pause": busy and not aborting,
            "leave": stands.tone == "aborting",
            "abort": (going or status == "held") and alive and not aborting,
            "recast": again,
            "resend": again and cast.now.prompt_cut_short is not None,
            "revive": again and cast.now.at_limit,
        },
        "why": {
            "step": _why_not(cast, busy=busy),
            "run": _why_not(cast, busy=busy),
            "pause": "nothing runs",
            "revive": _NO_LIMIT,
        },
        "resendable": cast.now.prompt_cut_short is not None,
        "sockets": [*names.items(), (END, "the end")],
        "breaks": [
            {
                "breakpoint": one.as_json(),
                "words": one.words(cast.graph, {**names, END: "the end"}),
                "asks": how is not None,
            }
            for one, how in cast.breakpoints.conditions.items()
        ],
        "counts": _counts(cast),
        "tokens": usage.tokens,
        "cost": usage.cost,
        "most": budget.max_tokens,
        "warn": bool(budget.max_tokens)
        and usage.tokens * 100 >= (budget.max_tokens or 0) * budget.warn_at_percent,
        "asks": _asks(cast) if alive else None,
        "undo": alive and not busy and bool(edits) and edits[-1].after is cast.now.engine,
        "allowed": sorted(cast.approvals.allowed),
    }


def _why_not(cast: Cast, *, busy: bool) -> str:
    if busy:
        return "a step is running"
    if not cast.now.writable:
        return "this cast is only looked at: resume it to go on"
    return f"the cast is {cast.status}"


def _counts(cast: Cast) -> str:
    steps = len(cast.steps)
    words = counted(steps, "step")
    took = sum((step.ended or step.started) - step.started for step in cast.steps)
    return f"{words} · {_clock(took)}" if steps else words


def _clock(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def asked_key(cast: Cast) -> str:
    """Name what a person is asked for now, so that a late click cannot allow something else."""
    if cast.approvals.asking:
        return f"calls {len(cast.steps)} {cast.now.engine.at.turn if cast.now.engine.at else 0} " + " ".join(
            call.id for call in cast.approvals.asking
        )
    if (hold := cast.now.held) is not None:
        return f"hold {len(cast.steps)} {cast.now.engine.at.turn if cast.now.engine.at else 0} {id(hold)}"
    return ""


def _asks(cast: Cast) -> dict[str, Any] | None:
    if cast.approvals.asking:
        words = "; ".join(call_words(call) for call in cast.approvals.asking)
    elif (
        cast.now.held is not None
        and cast.now.held.needs == "consent"
        and isinstance(cast.now.held.reading.value, dict)
    ):
        words = str(request_of(cast.now.held.reading.value).get("exact_content") or "a command")
    else:
        return None
    shown = plain(words)
    whole = len(shown) <= BAR_CHARS and "\n" not in shown
    return {"words": shown if whole else f"{shown[: BAR_CHARS - 2]}…", "whole": whole, "key": asked_key(cast)}
