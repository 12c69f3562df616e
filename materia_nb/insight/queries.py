"""Questions about a cast: JSONPath over steps and state, what made a value, where time and money went, what came of the work.

The expression is a person's, what it runs over came from models: an expression cannot make the kernel hang.

Which outputs tell what came of the work, and what to remember, is up to their protocols: those that
:class:`Concludes` and :class:`Suggests`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, StepRecord, Streams, every_step
from materia_nb.engine.state import Usage, known_sum
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.handoff.capabilities import Concludes, Reported, SuggestionKind, Suggests
from materia_nb.insight import sides
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path

LONGEST_EXPRESSION: Final = 500
"""Characters of an expression."""
MOST_VALUES: Final = 100_000
"""Objects, lists and scalars in a value that is looked through."""
_MOST_FOUND: Final = 1_000
"""Values that one question finds; the rest is left out."""

_PATTERNS: Final = re.compile(r"=~|`")
_DEEP: Final = re.compile(r"\.\.")

_Query = Callable[[JSON], list[JSON]]


class FoundValue(NamedTuple):
    """A value that a question found: in which step's output, of which socket, item and lane."""

    step: int
    socket: str
    item: str | None
    value: JSON
    lane: str = ""


def query_of(expression: str) -> _Query:
    """Return what reads an expression from a value: every match, none where nothing is there.

    Args:
        expression: JSONPath such as ``$.workItems[*].title``, or a dotted path such as ``plan.name``.

    Raises:
        MateriaError: it is not JSONPath, or could take without end (``question``).
    """
    text = expression.strip()
    if not text.startswith("$"):
        segments = split_path(text)
        return lambda value: [] if (found := get_path(value, segments)) is MISSING else [found]
    if len(text) > LONGEST_EXPRESSION:
        raise _refused(text, f"it is longer than {LONGEST_EXPRESSION} characters")
    if _PATTERNS.search(text):
        raise _refused(text, "regular expressions and functions in backticks are left out")
    if len(_DEEP.findall(text)) > 1:
        raise _refused(text, "only one .. can stand in it")
    from jsonpath_ng.ext import parse

    try:
        parsed = parse(text)
    except Exception as error:  # the library raises several unrelated types, bare Exception among them
        raise _refused(text, " ".join(str(error).split())) from error

    def find(value: JSON) -> list[JSON]:
        if _count(value) > MOST_VALUES:
            raise _refused(text, f"what it is asked of has more than {MOST_VALUES:,} values")
        try:
            return [match.value for match in parsed.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return []

    return find


def ask_outputs(steps: Iterable[StepRecord], expression: str) -> list[FoundValue]:
    """Ask the output of every step, parsed where it is JSON and else the text; at most :data:`_MOST_FOUND` values."""
    query = query_of(expression)
    found: list[FoundValue] = []
    for step in steps:
        value: JSON = step.output if step.reading is None else step.reading.value
        if value is None or value is MISSING:
            continue
        found += [FoundValue(step.number, step.socket, step.item_key, one, step.lane) for one in query(value)]
        if len(found) >= _MOST_FOUND:
            return found[:_MOST_FOUND]
    return found


def _count(value: JSON) -> int:
    """How many values a value holds, counted no further than needed."""
    return sum(1 for _ in islice(_values(value), MOST_VALUES + 1))


def _values(root: JSON) -> Iterator[JSON]:
    todo = [root]
    while todo:
        value = todo.pop()
        yield value
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value


def _refused(expression: str, why: str) -> MateriaError:
    return MateriaError(
        f"{expression[:100]!r} cannot be asked: {why}.",
        hint="write a dotted path such as plan.name, or JSONPath such as $.workItems[*].title",
        kind="question",
    )


# -- what made a value -----------------------------------------------------------------------

_Rule: TypeAlias = Literal["start", "R10", "R11", "R12", "P6", "edit"]
"""By what a value came to be: given at the start, the state patch or a canonical field of an answer (R10), an
assignment (R11), the current item as the state shows it (R12), lanes that came together (P6), or a person."""


Data: TypeAlias = Mapping[str, JSON]


class Blamed(NamedTuple):
    """One change of a value.

    Attributes:
        step: the step that made it; for an edit the one after which, or in which, it was made; 0 for the start; for lanes
            the one that handed their items out.
        socket: the socket of the step, None for a person's edit, for the start and for lanes.
        item_key: the item of the step.
        rule: by what it came to be.
        source: where in the answer it stood, such as ``$.context``, or what an assignment read; None where
            that cannot be told.
        before: the value before, MISSING where there was none.
        after: the value since.
        corrected: whether a person had corrected the answer.
    """

    step: int
    socket: str | None
    item_key: str | None
    rule: _Rule
    source: str | None
    before: JSON
    after: JSON
    corrected: bool = False


def changes_of_value(session: Session, path: str) -> list[Blamed]:
    """Return what changed a value of the state, the latest change first; empty when nothing ever set it.

    Args:
        session: the cast.
        path: dotted, such as ``plan.title`` or ``state.workItems.0.title``.
    """
    segments = split_path(path)
    if segments[:1] == ["state"] and (len(segments) > 1 or "state" not in session.state.data):
        segments = segments[1:]
    begun = get_path(dict(session.start.data), segments)
    found = [Blamed(0, None, None, "start", None, MISSING, begun)]
    for made, before, after in _changes(session):
        was, now = get_path(dict(before), segments), get_path(dict(after), segments)
        if same(was, now):
            continue
        if isinstance(made, Streams):
            found.append(Blamed(made.step, None, None, "P6", None, was, now))
        elif isinstance(made, Edit):
            found.append(Blamed(made.step, None, None, "edit", None, was, now))
        else:
            found.append(_by_step(made, segments, was, now))
    return [one for one in reversed(found) if one.rule != "start" or one.after is not MISSING]


def _changes(session: Session) -> Iterator[tuple[StepRecord | Edit | Streams, Data, Data]]:
    """Go through all that changed the state, in order: who did, the state before and after."""
    yield from _edits([one for one in session.edits if one.step == 0])
    joined = {streams.step: streams for streams in session.streams if streams.status == "joined"}
    for step in session.steps:
        edits = [one for one in session.edits if one.step == step.number]
        inside = [one for one in edits if one.before.status in ("waiting", "held")]
        at = step.before.data
        for edit in inside:
            yield step, at, edit.before.data
            yield edit, edit.before.data, edit.after.data
            at = edit.after.data
        if not inside or step.after is not inside[-1].before:
            yield step, at, step.after.data
        behind = [one for one in edits if one not in inside]
        if (streams := joined.get(step.number)) is None:
            yield from _edits(behind)
        else:
            following = session.steps[step.number :][:1]
            then = following[0].before.data if following else session.state.data
            yield from _around(streams, behind, step.after.data, then)


def _around(
    streams: Streams, edits: Sequence[Edit], at: Data, then: Data
) -> Iterator[tuple[Edit | Streams, Data, Data]]:
    """Give the edits before lanes were at work, what these brought when they came together, and the edits after that."""
    for place, edit in enumerate(edits):
        if edit.before.data != at:
            yield streams, at, edit.before.data
            yield from _edits(edits[place:])
            return
        yield from _edits([edit])
        at = edit.after.data
    yield streams, at, then


def _edits(edits: Sequence[Edit]) -> Iterator[tuple[Edit, Data, Data]]:
    for edit in edits:
        yield edit, edit.before.data, edit.after.data


def _by_step(step: StepRecord, segments: Sequence[str], was: JSON, now: JSON) -> Blamed:
    rule, source = _rule(step, segments, now)
    corrected = bool(step.turns) and step.turns[-1].mode == "correction"
    return Blamed(step.number, step.socket, step.item_key, rule, source, was, now, corrected)


def _rule(step: StepRecord, segments: Sequence[str], now: JSON) -> tuple[_Rule, str | None]:
    """Find what in a step set a value: its last assignment that reaches it, else its answer, else its item."""
    assigned = step.decision.assigned if step.decision else ()
    for one in reversed(assigned):
        target = split_path(one.target)
        if one.found and segments[: len(target)] == target:
            return "R11", _at(one.source, segments[len(target) :])
        if one.found and target[: len(segments)] == segments:
            return "R11", None  # a part of it was assigned
    value = step.reading.value if step.reading else None
    for rule_source, inside in (("$.state", ["state", *segments]), ("$", segments)):
        if segments and get_path(value, inside) is not MISSING and same(get_path(value, inside), now):
            return "R10", _at(rule_source, segments)
    if segments[:1] == ["context"] and get_path(value, ["context"]) is not MISSING:
        return "R10", "$.context"  # what it says is added to what was there
    for shown in (*step.after.shown, *step.before.shown):
        if any(segments[: len(path)] == list(path) for path in shown.walk.paths):
            return "R12", None
    return ("R12", None) if step.decision is None else ("R10", None)


def _at(source: str, rest: Sequence[str]) -> str:
    return source + "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in rest)


# -- where time and money went ---------------------------------------------------------------

_GROUPS: Final = ("socket", "materia", "item")
"""What can be added up by."""


class SpentOn(NamedTuple):
    """What went into one socket, materia or item, or into a combination of these.

    Attributes:
        of: its names, in the order that was asked for; empty for what belongs to no item.
        visits: how often it was visited.
        turns: how often an agent was asked, repairs among it.
        calls: how many tools its agents used.
        usage: tokens and cost, also of turns that gave no answer.
        ms: milliseconds that its agents and processes were at work, None where that is unknown of all visits.
        untimed: how many visits there are of which it is unknown: they are not in ``ms`` (R56).
        waited: milliseconds that it stood still, as for a person.
        left: how much of ``usage`` went into steps that going back left behind.
    """

    of: tuple[str, ...]
    visits: int = 0
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    ms: int | None = 0
    left: Usage = Usage()
    untimed: int = 0
    waited: int = 0

    def plus(self, other: SpentOn) -> SpentOn:
        """Add what went into something else."""
        return SpentOn(
            self.of,
            self.visits + other.visits,
            self.turns + other.turns,
            self.calls + other.calls,
            self.usage.plus(other.usage),
            known_sum(self.ms, other.ms),
            self.left.plus(other.left),
            self.untimed + other.untimed,
            self.waited + other.waited,
        )


def _spent_in(step: StepRecord, *, left: bool) -> SpentOn:
    """What went into one step; ``left`` is whether going back left it behind."""
    used, time = sides.used(step), sides.time_of(step)
    turns = sum(turn.prompt is not None and turn.mode != "correction" for turn in step.turns)
    gone = used if left else Usage()
    return SpentOn((), 1, turns, len(step.calls), used, time.work, gone, time.work is None, time.waited or 0)


def spent_by(rules: Rules, session: Session, by: Sequence[str] = ("socket",)) -> list[SpentOn]:
    """Add up what a cast took, steps that were left behind included, in the order in which things came first.

    Raises:
        MateriaError: one of ``by`` is none of socket, materia and item (``unknown_group``).
    """
    for name in by:
        needs_one_of(name, _GROUPS, f"Nothing is added up by {name!r}.", "unknown_group")
    found: dict[tuple[str, ...], SpentOn] = {}
    for step, left in every_step(session):
        named = {
            "socket": step.socket,
            "materia": rules.sockets[step.socket].socket.materia.id,
            "item": f"{step.item_key} {step.item_label or ''}".strip() if step.item_key else "",
        }
        of = tuple(named[name] for name in by)
        found[of] = found.get(of, SpentOn(of)).plus(_spent_in(step, left=left))
    return list(found.values())


_SECTION: Final = "memory"
"""The section of the project's document that holds what a person kept."""


class Suggestion(NamedTuple):
    """One thing that an agent suggests to remember.

    Attributes:
        number: its place in ``Cast.suggestions``, from 1.
        step: the step whose output suggests it.
        kind: ``memory`` with description, body and more; ``note`` with a text.
        fields: what it says, every value a text.
        kept: whether a person has kept it.
    """

    number: int
    step: int
    kind: SuggestionKind
    fields: Mapping[str, str]
    kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """What is kept of it."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, steps: Sequence[StepRecord], kept: Sequence[JSON]) -> list[Suggestion]:
    """Return what the accepted outputs suggest to remember, in order, each thing once."""
    found: list[Suggestion] = []
    entries: list[dict[str, JSON]] = []
    for step in steps:
        spoken = rules.sockets[step.socket].protocol
        if not isinstance(spoken, Suggests):
            continue
        for value in _accepted(step):
            for kind, fields in spoken.suggestions(value):
                one = Suggestion(len(found) + 1, step.number, kind, fields, kept=False)
                if one.entry not in entries:
                    entries.append(one.entry)
                    found.append(one._replace(kept=one.entry in kept))
    return found


def suggestion(found: list[Suggestion], number: int) -> Suggestion:
    """Return the suggestion of that number; raises MateriaError (``no_suggestion``)."""
    if type(number) is not int or not 1 <= number <= len(found):
        raise MateriaError(
            f"There is no suggestion {number!r}; the cast has {len(found)}.",
            hint="edit remember lists them, numbered from 1",
            kind="no_suggestion",
        )
    return found[number - 1]


def with_entry(stored: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the project's document with an entry at the end of its section, once."""
    section = stored.get(_SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {_SECTION!r} of what is kept about the project is not a list.",
            hint="mend the section in the document, or rename it",
            kind="bad_context",
        )
    return {**stored, _SECTION: section if entry in section else [*section, entry]}


def conclusion_of(rules: Rules, steps: Sequence[StepRecord]) -> list[str]:
    """Return what the last outputs of the agents tell a person at the end, a line each.

    An agent that worked on several items reports on each of them.
    """
    last = {(step.socket, step.item_key): step for step in steps}
    reports: dict[str, tuple[Concludes, list[Reported]]] = {}
    for step in last.values():
        here = rules.sockets[step.socket]
        name, spoken = here.protocol.name, here.protocol
        values = list(_accepted(step))
        if values and isinstance(spoken, Concludes):
            who = here.socket.materia.label + (f", {step.item_key}" if step.item_key else "")
            reports.setdefault(name, (spoken, []))[1].append(Reported(who, values[-1]))
    return [line for spoken, told in reports.values() for line in spoken.conclusion(told)]


def _accepted(step: StepRecord) -> Iterator[Mapping[str, JSON]]:
    for turn in step.turns:
        if turn.reading is not None and turn.reading.accepted and isinstance(turn.reading.value, dict):
            yield turn.reading.value
