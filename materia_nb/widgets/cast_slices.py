"""What the page is told of a cast: how it stands, for the bar; its steps, as rows of the timeline; and beside another cast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from materia_nb.cast.listing import output_words, way_words
from materia_nb.display.escape import part, shorten
from materia_nb.display.sections import call_words
from materia_nb.engine.limits import nearly_used_up
from materia_nb.errors import counted
from materia_nb.handoff.approval import request_of
from materia_nb.handoff.protocol import EVENT_SEVERITIES
from materia_nb.insight.compare import Comparison, Pair
from materia_nb.insight.sides import seconds_words, time_of, used, worked, worked_words
from materia_nb.loadout.graph import END, Graph
from materia_nb.outgoing import plain
from materia_nb.widgets.blocks import Block, line, lines, table

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.session import StepRecord
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
    # The person is the agent: a step would ask nobody.
    yours = stands.tone == "wants" and cast.now.waiting_at is not None
    again = stopped and alive and not busy
    usage, budget = cast.now.engine.usage, cast.now.engine.budget
    names = names_of(cast.graph)
    return {
        "tone": stands.tone,
        "words": stands.words,
        "since": stands.since,
        "detail": stands.detail,
        "busy": busy,
        "stopped": stopped,
        "can": {
            "step": going
            and not yours
            and (not busy or (runs.running == "Step" and not aborting and not cast.runner.stop.is_set())),
            "run": going and not busy and not yours,
            "pause": busy and not aborting,
            "leave": stands.tone == "aborting",
            "abort": (going or status == "held") and alive and not aborting,
            "recast": again,
            "resend": again and cast.now.prompt_cut_short is not None,
            "revive": again and cast.now.at_limit,
        },
        "why": {
            "step": _why_not(cast, busy=busy, yours=yours),
            "run": _why_not(cast, busy=busy, yours=yours),
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
        "mostCost": budget.max_cost_usd,
        "unknown": usage.uncounted,
        "warn": nearly_used_up(cast.now.engine),
        "asks": _asks(cast) if alive else None,
        "undo": can_undo(cast, busy=busy),
        "allowed": sorted(cast.approvals.allowed),
    }


def can_undo(cast: Cast, *, busy: bool) -> bool:
    """Whether the last edit of a cast can be taken back: nothing was done since."""
    now = cast.now
    return now.writable and not busy and bool(now.edits) and now.edits[-1].after is now.engine


def _why_not(cast: Cast, *, busy: bool, yours: bool) -> str:
    if busy:
        return "a step is running"
    if yours:
        return "it is your turn: answer in the inspector, and the cast goes on from there"
    if not cast.now.writable:
        return "this cast is only looked at: resume it to go on"
    return f"the cast is {cast.status}"


def _counts(cast: Cast) -> str:
    steps = len(cast.steps)
    words = counted(steps, "step")
    return f"{words} · {worked_words(*worked(cast.steps))} at work" if steps else words


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


Row: TypeAlias = list[Any]
"""Number, socket, its name, item, output, its verdict, next, tokens, cost, :func:`_timed`, marks."""

TAIL: Final = 120
"""How many of the latest rows are always told; a view asks for others."""
MOST_ASKED: Final = 400
_OUTPUT_CHARS: Final = 160


class StepRows:
    """The rows of one line of steps of a cast; each is made once and kept while its record stays the same.

    Args:
        cast: whose.
        line: None for the present line, else which abandoned branch.
    """

    def __init__(self, cast: Cast, line: int | None = None) -> None:
        self.cast, self.line = cast, line
        self.names = names_of(cast.graph)
        self._made: dict[int, tuple[StepRecord, bool, Row]] = {}
        self._ends: list[tuple[StepRecord, Place]] = []

    @property
    def steps(self) -> Sequence[StepRecord]:
        """The records."""
        return self.cast.steps if self.line is None else self.cast.now.line(self.line)

    def between(self, first: int, last: int) -> list[Row]:
        """Return the rows of the steps numbered ``first`` to ``last``, as far as there are any."""
        steps, edited = self.steps, self._edited()
        first, last = max(1, first), min(len(steps), last, first + MOST_ASKED - 1)
        return [self._row(steps[number - 1], number in edited) for number in range(first, last + 1)]

    def place_after(self, number: int) -> Place:
        """Say how far the axis of time is after the step of that number; what is older was counted before."""
        steps, ends = self.steps, self._ends
        del ends[len(steps) :]
        while ends and ends[-1][0] is not steps[len(ends) - 1]:
            ends.pop()
        while len(ends) < number:
            at, step = ends[-1][1] if ends else Place(0, 0), steps[len(ends)]
            time = time_of(step)
            length = time.work if time.work is not None else time.whole or 0
            ends.append((step, Place(at.ms + length, at.waits + bool(time.waited))))
        return ends[number - 1][1] if number else Place(0, 0)

    def find(self, text: str) -> list[int]:
        """Return the numbers of the steps whose row or output holds ``text``, case aside."""
        wanted = " ".join(text.split()).casefold()
        return [step.number for step in self.steps if wanted in self._sought(step)]

    def _sought(self, step: StepRecord) -> str:
        words = (
            step.socket,
            self.names.get(step.socket, ""),
            f"{step.item_key or ''} {step.item_label or ''}",
            step.shown or "",
            way_words(step),
            self.names.get(way_words(step), ""),
        )
        return "\n".join(words).casefold()

    def _edited(self) -> frozenset[int]:
        return frozenset(edit.step for edit in self.cast.now.edits) if self.line is None else frozenset()

    def _row(self, step: StepRecord, edited: bool) -> Row:
        kept = self._made.get(step.number)
        if kept is None or kept[0] is not step or kept[1] is not edited:
            kept = self._made[step.number] = (step, edited, self._new(step, edited=edited))
        return kept[2]

    def _new(self, step: StepRecord, *, edited: bool) -> Row:
        way = way_words(step)
        spent = used(step)
        verdict = step.reading.satisfied if step.reading is not None else None
        return [
            step.number,
            step.socket,
            self.names.get(step.socket, step.socket),
            [step.item_key, part(step.item_label or "", 60)] if step.item_key else None,
            shorten(output_words(step), _OUTPUT_CHARS),
            {True: "yes", False: "no"}.get(verdict) if verdict is not None else "",
            self.names.get(way, "the end" if way == END else plain(way)),
            spent.tokens,
            spent.cost,
            self._timed(step),
            _marks(step, edited=edited),
        ]

    def _timed(self, step: StepRecord) -> list[Any]:
        """Whether it is over, its seconds at work, its time in words, where its bar begins and ends, if work is known."""
        time, before, after = time_of(step), self.place_after(step.number - 1), self.place_after(step.number)
        seconds = "?" if time.work is None else seconds_words(time.work).removesuffix(" s")
        return [time.whole is not None, seconds, time.words, *before, *after, time.work is not None]


class Place(NamedTuple):
    """A place on the axis of time, where waiting is folded: milliseconds of work before it, and how often it was waited."""

    ms: int
    waits: int


def said_words(step: StepRecord) -> str:
    """What a step said, whole: its prose (R62), its context beside what is only for the machine, else its output."""
    reading = None if step.shown != step.output else step.reading
    if reading is not None and isinstance(reading.context, str) and reading.context.strip():
        return plain(reading.context)
    return plain(step.shown or "")


def _marks(step: StepRecord, *, edited: bool) -> list[str]:
    marks = []
    drafts = sum(turn.mode == "draft" for turn in step.turns)
    repairs = sum(turn.mode == "repair" for turn in step.turns)
    for count, word in ((drafts, "draft"), (repairs, "repair")):
        if count:
            marks.append(f"{count} {word}{'s' * (count > 1)}")
    if step.tries > 1:
        marks.append(f"tried {step.tries} times")
    if step.pinned:
        marks.append("pinned")
    if step.by_hand:
        marks.append("by hand")
    if any(turn.mode == "correction" for turn in step.turns):
        marks.append("corrected")
    if step.events:
        gravest = max((event.severity for event in step.events), key=EVENT_SEVERITIES.index)
        grave = f" {gravest}" if EVENT_SEVERITIES.index(gravest) > EVENT_SEVERITIES.index("info") else ""
        marks.append(f"{len(step.events)} event{'s' * (len(step.events) > 1)}{grave}")
    if edited:
        marks.append("edited")
    return marks


def timeline_state(rows: StepRows, at: int | None, *, alive: bool, busy: bool) -> dict[str, Any]:
    """Return what the timeline shows: the latest rows, how many there are, and which one is looked at.

    Args:
        rows: of the line that is shown.
        at: the step that is looked at, None for the present.
        alive: whether the cast can be gone on with here.
        busy: whether a step runs.
    """
    cast, steps = rows.cast, rows.steps
    total = len(steps)
    return {
        "line": rows.line,
        "lines": [
            [None, "the present line"],
            *(
                [place, f"branch {place + 1}: left after step {left[0].number - 1}"]
                for place, left in enumerate(cast.now.abandoned)
                if left
            ),
        ],
        "total": total,
        "tail": rows.between(total - TAIL + 1, total),
        "span": list(rows.place_after(total)),
        "at": at,
        "can": alive and not busy,
        "busy": busy,
        "id": f"{cast.id} {rows.line} {len(cast.now.abandoned)}",
    }


def events_blocks(rows: StepRows) -> list[Block]:
    """Return what the latest steps told in their event field, the latest first."""
    events = [one for step in rows.steps[-TAIL * 4 :] for one in step.events]
    found = [
        (
            str(one.sequence),
            str(one.step),
            rows.names.get(one.socket, one.socket),
            one.severity,
            shorten(one.name, 80),
            shorten(one.message, 300),
        )
        for one in reversed(events[-100:])
    ]
    return [table(("event", "step", "socket", "severity", "type", "message"), found)]


MOST_PAIRS: Final = 1_000


def compare_state(casts: Sequence[Cast], shown: Cast) -> dict[str, Any]:
    """Return the routes of the first cast and the one that is shown, aligned, the first difference marked.

    Args:
        casts: those of the panel, the first being what the others were forked from.
        shown: which of them the panel shows; the latest fork if that is the first.
    """
    if len(casts) < 2:
        return {
            "pairs": [],
            "blocks": [line("Fork a step: then both casts are shown here, side by side.", "quiet")],
        }
    other = shown if shown is not casts[0] else casts[-1]
    found = Comparison(casts[0].now.side, other.now.side)
    names = names_of(casts[0].graph)
    ours = ("this cast", f"fork {list(casts).index(other)}")
    first = found.first.step if found.first is not None and found.stands is None else None
    if found.first is None:
        told = ["Nothing differs: they did the same."]
    elif found.stands is not None:
        after = f"after step {found.first.step}" if found.first.step else "at the start"
        told = [f"{ours[found.stands == 'B']} stands {after}; nothing differs so far."]
    else:
        told = [f"They first differ in step {first}.", *(_named(one, ours) for one in found.first.lines)]
    blocks: list[Block] = lines(told)
    spent = [
        ("ends", casts[0].status, other.status),
        ("tokens", *(one.tokens_words for one in found.usage)),
        ("time", *map(worked_words, found.time)),
    ]
    return {
        "names": list(ours),
        "pairs": [_pair(one, names, first, ours) for one in found.pairs[-MOST_PAIRS:]],
        "blocks": [*blocks, table(("", *ours), spent)],
    }


def _named(text: str, ours: tuple[str, str]) -> str:
    """Write the names of this panel for the A and B of a comparison."""
    where = r"(?:^|(?<=; )|(?<=, )|(?<=\bin )|(?<=only ))[AB](?= |[,.;]|$)"
    return re.sub(where, lambda found: ours[found[0] == "B"], text)


def _pair(pair: Pair, names: dict[str, str], first: int | None, ours: tuple[str, str]) -> dict[str, Any]:
    one = pair.a if pair.a is not None else pair.b
    number = one.number if one is not None else None
    return {
        "number": number,
        "a": _words(pair.a, names),
        "b": _words(pair.b, names),
        "what": f"only in {ours[pair.where == 'B']}" if pair.where != "both" else ", ".join(pair.did),
        "first": first is not None and number == first,
    }


def _words(step: StepRecord | None, names: dict[str, str]) -> str:
    if step is None:
        return ""
    item = f" {step.item_key}" if step.item_key else ""
    way = step.decision.target if step.decision is not None else None
    return f"{names.get(step.socket, step.socket)}{item} → {names.get(way, way) if way else 'waiting'}"
