"""Two steps beside one another: what was said, decided and spent in each, in what they differ, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision, short
from materia_nb.engine.rules import Look, Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import Usage
from materia_nb.insight.changes import ValueChange, changes, compare_sockets, shown
from materia_nb.jsonvalue import JSON, MISSING, compact, same
from materia_nb.loadout.graph import Graph

Aspect: TypeAlias = Literal["socket", "given", "answer", "route", "state"]
"""In what two steps can differ: where they are, what a person changed before, what was said, where it went, what it left."""


_Key = TypeVar("_Key", bound=Hashable)


class Side(NamedTuple):
    """One of two casts that are compared: its name, what it runs by, everything it knows.

    ``name`` is the id of the cast too, which is taken out of texts before they are compared. ``kept`` is where its files are
    kept, if they are.
    """

    name: str
    rules: Rules
    session: Session
    kept: Path | None = None

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.session.steps)} steps>"


def answer(step: StepRecord) -> JSON:
    """Return what counts as the answer of a step: parsed where it is JSON, else the text; None while there is none."""
    reading = step.reading
    if reading is None or reading.value is None or reading.value is MISSING:
        return step.output
    return reading.value


def went(step: StepRecord) -> str | None:
    """Return where a step went: a socket or ``end``; None when it failed, or still owes an answer."""
    return None if step.decision is None else step.decision.target


def led(step: StepRecord) -> tuple[str | None, ...]:
    """Return the way of a step alone: its socket and item, where it went, and the failure that its answer led to."""
    decision = step.decision
    by_answer = decision is not None and (decision.by != "failure" or decision.said.error is not None)
    failure = decision.failure if decision is not None and by_answer else None
    return step.socket, step.item_key, went(step), failure.kind if failure else None


def used(step: StepRecord) -> Usage:
    """Add up what a step cost: its turns, and what ``spent`` has of tries without an answer, whose turn has it as well."""
    return reduce(Usage.plus, (*step.spent, *(turn.usage for turn in step.turns if turn.usage)), Usage())


class Time(NamedTuple):
    """How long a step was worked on, in milliseconds, and how long not; None is what is unknown (R56).

    Attributes:
        work: its agent or process was at work, in all tries; 0 where only a person answered.
        waited: it stood still: a person was awaited, after a failure too. None while the step is not over.
        whole: from entering the socket to its end; None before that.
    """

    work: int | None
    waited: int | None
    whole: int | None

    @property
    def words(self) -> str:
        """Such as ``0.20 s + 46 s waited``; empty before it is over."""
        if self.whole is None:
            return ""
        if self.work is None:
            return f"at most {seconds_words(self.whole)}"
        waited = f" + {seconds_words(self.waited)} waited" if self.waited else ""
        return f"{seconds_words(self.work)}{waited}"


_STANDS_STILL_MS: Final = 500
"""What is shorter is no waiting: an answer is written, and the next step begins."""


def time_of(step: StepRecord) -> Time:
    """Say how long a step was worked on, and how long it waited. All that tells of time is made from this."""
    if step.ended is None:
        return Time(step.worked, None, None)
    whole = max(0, step.ended - step.started)
    if step.worked is None:
        return Time(None, None, whole)
    waited = whole - step.worked
    return Time(step.worked, waited if waited >= _STANDS_STILL_MS else 0, whole)


def worked(steps: Iterable[StepRecord]) -> tuple[int | None, int]:
    """Add up the milliseconds that steps were worked on; beside it how many there are of which that is unknown (R56)."""
    times = [step.worked for step in steps]
    known = [one for one in times if one is not None]
    return sum(known) if known or not times else None, len(times) - len(known)


def worked_words(milliseconds: int | None, unknown: int = 0) -> str:
    """Write what :func:`worked` adds up."""
    if milliseconds is None:
        return "unknown"
    return seconds_words(milliseconds) + (f" + {unknown} unknown" if unknown else "")


def seconds_words(milliseconds: int) -> str:
    """Write a time, as long for a short one as for others: notebooks are compared."""
    seconds = milliseconds / 1000
    digits = next((digits for digits, most in ((2, 9.995), (1, 99.95)) if seconds < most), 0)
    return f"{seconds:.{digits}f} s"


def prompt_parts(a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> tuple[str, ...]:
    """Name the parts of the prompts of two steps that differ; ids of the casts do not count."""
    return parts_that_differ(a.prompt, b.prompt, names)


def parts_that_differ(
    a: Prompt | None, b: Prompt | None, names: tuple[str, str] = ("", "")
) -> tuple[str, ...]:
    """Name the parts of two prompts that differ; ids of the casts do not count."""
    left, right = parts_of(a, names[0]), parts_of(b, names[1])
    return tuple(name for name in dict.fromkeys((*left, *right)) if left.get(name) != right.get(name))


def parts_of(prompt: Prompt | None, cast: str) -> Mapping[str, str]:
    """Return the parts of a prompt that say something, by name, the id of its cast taken out."""
    parts = () if prompt is None else prompt.parts
    return {part.name: _without_id(part.text, cast) for part in parts if part.text}


def _without_id(text: str, name: str) -> str:
    """Return a text in which the id of its cast is no longer told from another's."""
    return text.replace(name, "<cast>") if name else text


def alike(a: JSON, b: JSON, names: tuple[str, str] = ("", "")) -> bool:
    """Whether two values are the same, but for the ids of their casts."""
    if same(a, b):
        return True
    if isinstance(a, str) and isinstance(b, str):
        return _without_id(a, names[0]) == _without_id(b, names[1])
    if not any(isinstance(a, kind) and isinstance(b, kind) for kind in (dict, list)):
        return False
    return _without_id(compact(a), names[0]) == _without_id(compact(b), names[1])


def counted_keys(keys: Iterable[_Key]) -> Iterator[tuple[_Key, int]]:
    """Give each key with how many times it has come so far."""
    seen: Counter[_Key] = Counter()
    for key in keys:
        seen[key] += 1
        yield key, seen[key]


def told_changes(a: JSON, b: JSON, names: tuple[str, str] = ("", "")) -> list[ValueChange]:
    """Return where two values differ, but for the ids of their casts."""
    return [one for one in changes(a, b) if not alike(one.a, one.b, names)]


def state_changes(
    a: Mapping[str, JSON], b: Mapping[str, JSON], names: tuple[str, str] = ("", "")
) -> list[ValueChange]:
    """Return where two states differ, but for the ids of their casts."""
    return told_changes(dict(a), dict(b), names)


def differs(a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> tuple[Aspect, ...]:
    """Name in what two steps differ in what was done; empty when they did the same.

    What was asked, how long it took and what it cost are no part of it.
    """
    differ: dict[Aspect, bool] = {
        "socket": (a.socket, a.item_key) != (b.socket, b.item_key),
        "given": not alike(dict(a.before.data), dict(b.before.data), names),
        "answer": not _same_answers(a, b, names),
        "route": _way(a) != _way(b),
        "state": not alike(dict(a.after.data), dict(b.after.data), names),
    }
    return tuple(aspect for aspect, differs in differ.items() if differs)


def _same_answers(a: StepRecord, b: StepRecord, names: tuple[str, str]) -> bool:
    if len(a.turns) != len(b.turns):
        return False
    return all(
        x.mode == y.mode and alike(_said(x.text, x.reading), _said(y.text, y.reading), names)
        for x, y in zip(a.turns, b.turns, strict=True)
    )


def _said(text: str, reading: object) -> JSON:
    value = getattr(reading, "value", None)
    return text.strip() if value is None or value is MISSING else value


def _way(step: StepRecord) -> tuple[object, ...]:
    """What was decided, apart from how often an edge had been used and what a failure says."""
    decision = step.decision
    if decision is None:
        return ()
    failure = decision.failure.kind if decision.failure else None
    return decision.by, decision.target, decision.satisfied, failure, decision.done, decision.exhausted


# -- why they differ -------------------------------------------------------------------------

_SHOWN = 60
_PLACES = 3


class FirstDifference(NamedTuple):
    """Where two casts first differ.

    Attributes:
        step: its number, the same in both; 0 when they differ before the first one.
        a: where the first cast went from there: a socket or ``end``; None when it failed, or has not gone on.
        b: where the second went.
        lines: which answer, verdict, edge or exit made the difference, a sentence each.
        aspects: in what the step differs; empty when only one of them has gone on, or they ended otherwise.
        lane: the lane of the step, "" for the cast itself.
        shorter: ``A`` or ``B`` where only the other has gone on from there, else "".
    """

    step: int
    a: str | None
    b: str | None
    lines: tuple[str, ...]
    aspects: tuple[Aspect, ...] = ()
    lane: str = ""
    shorter: Literal["", "A", "B"] = ""

    @property
    def place(self) -> str:
        """Which step it is, and of which lane, in words."""
        return f"step {self.step}{f' in lane {self.lane}' if self.lane else ''}"

    @property
    def why(self) -> str:
        """The reason in words."""
        return " ".join(self.lines)

    def __str__(self) -> str:
        head = f"S{self.place[1:]}: A went to {self.a or 'nowhere'}, B to {self.b or 'nowhere'}."
        return "\n  ".join([head, *self.lines])


def between(
    one: StepRecord,
    other: StepRecord,
    aspects: tuple[Aspect, ...],
    names: tuple[str, str] = ("", ""),
    graphs: tuple[Graph, Graph] | None = None,
) -> FirstDifference:
    """Tell why two steps differ, all steps before them being alike; ``graphs`` are the loadouts that they ran in."""
    told: list[str] = []
    if "socket" in aspects:
        told.append(f"A is at {_place_words(one)}, B at {_place_words(other)}.")
    if "given" in aspects:
        places = _places(state_changes(one.before.data, other.before.data, names), "state")
        told.append(f"The state was changed by a person before it: {places}.")
    if "answer" in aspects and "socket" not in aspects:
        told.append(_answers(one, other, names))
    if "route" in aspects or "socket" in aspects:
        told += [_way_words("A", one.decision), _way_words("B", other.decision)]
    elif "answer" in aspects:
        told.append(f"Both went to {went(one) or 'nowhere'}.")
    if "state" in aspects and not {"answer", "socket", "given"} & {*aspects}:
        places = _places(state_changes(one.after.data, other.after.data, names), "state")
        told.append(f"What was put into the state differs: {places}.")
    told += _loadouts(graphs, one, other)
    return FirstDifference(one.number, went(one), went(other), tuple(told), aspects, one.lane)


def after_the_last(a: Side, b: Side) -> FirstDifference | None:
    """Tell how two casts differ whose common steps are alike: in how far they went, or how they ended."""
    ones, others = a.session.steps, b.session.steps
    count = min(len(ones), len(others))
    left, right = (went(steps[count - 1]) if count else None for steps in (ones, others))
    state = a.session.start
    number, lane = state.steps + count, state.lane.name if state.lane is not None else ""
    if len(ones) != len(others):
        shorter, longer, names = (a, b, "AB") if len(ones) < len(others) else (b, a, "BA")
        following = longer.session.steps[count]
        why = f"{names[0]} {_stands(shorter)} there; {names[1]} went on with {_place_words(following)}."
        return FirstDifference(number, left, right, (why,), (), lane, "A" if shorter is a else "B")
    if _end(a) == _end(b):
        return None
    return FirstDifference(number, left, right, (f"A {_stands(a)}; B {_stands(b)}.",), (), lane)


def _end(side: Side) -> tuple[str, str | None]:
    state = side.session.state
    return state.status, state.failure.kind if state.failure else None


def _stands(side: Side) -> str:
    state = side.session.state
    if state.failure is not None:
        return f"is {state.status} ({state.failure.kind}: {short(state.failure.message, _SHOWN)})"
    return f"is {state.status}"


def _place_words(step: StepRecord) -> str:
    return f"{step.socket} ({step.item_key})" if step.item_key else step.socket


def _answers(one: StepRecord, other: StepRecord, names: tuple[str, str]) -> str:
    a, b = answer(one), answer(other)
    where = _place_words(one)
    asked = prompt_parts(one, other, names)
    given = f"What it was asked differs, in: {', '.join(asked)}." if asked else ""
    if a is None or b is None:
        who = "neither" if a is b else "only B" if a is None else "only A"
        text = f"{where} has answered in {who}."
    elif isinstance(a, dict | list) and isinstance(b, dict | list):
        found = told_changes(a, b, names)
        text = f"{where} answered otherwise: {_places(found, '$')}." if found else _turns(one, other)
    elif alike(a, b, names):
        text = _turns(one, other)
    else:
        text = f"{where} answered otherwise: {_both(a, b)}."
    return f"{text} {given}".strip()


def _turns(one: StepRecord, other: StepRecord) -> str:
    if len(one.turns) == len(other.turns):
        return f"{_place_words(one)} answered otherwise in an earlier turn of the visit."
    return (
        f"{_place_words(one)} came to its answer in {len(one.turns)} turns in A, in {len(other.turns)} in B."
    )


def _places(found: list[ValueChange], root: str) -> str:
    told = [
        f"{f'{root}.{one.path}' if one.path else root} is {_both(one.a, one.b)}"
        for one in sorted(found, key=lambda one: one.path.rpartition(".")[2] != "satisfied")[:_PLACES]
    ]
    more = [f"and {len(found) - _PLACES} more"] if len(found) > _PLACES else []
    return "; ".join(told + more)


def _way_words(name: str, decision: Decision | None) -> str:
    if decision is None:
        return f"{name} waits for the answer."
    if decision.failure is not None:
        return f"{name} stopped ({decision.failure.kind}: {short(decision.failure.message, _SHOWN)})."
    look = decision.chosen
    if look is None:
        return f"{name} went to {decision.target} ({decision.by})."
    return f"{name} took {_edge(look)} to {look.to}: {look.reason(decision.result)}."


def _edge(look: Look) -> str:
    return f"exit {look.route}" if look.place is None else f"edge {look.place + 1}"


def _loadouts(graphs: tuple[Graph, Graph] | None, one: StepRecord, other: StepRecord) -> list[str]:
    """Say how the loadouts differ at this socket, since the same answer can lead elsewhere in another graph."""
    if graphs is None or graphs[0] is graphs[1] or one.socket != other.socket:
        return []
    found = compare_sockets(*graphs, one.socket)
    if not found:
        return []
    told = "; ".join(f"{row.field} is {_both(row.a, row.b)}" for row in found[:_PLACES])
    more = f"; and {len(found) - _PLACES} more" if len(found) > _PLACES else ""
    return [f"The loadouts differ there: {told}{more}."]


def _both(a: JSON, b: JSON) -> str:
    left, right = shown(a, b, _SHOWN)
    return f"{left} in A, {right} in B"
