"""Questions about a cast: JSONPath over it, what made a value, where time and money went, what came of it, why a step went on so.

The expression is a person's, what it runs over came from models: an expression cannot make the kernel hang.

Which outputs tell what came of the work, and what to remember, is up to their protocols: those that
:class:`HandoffProtocol` and :class:`HandoffProtocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.entering import enter
from materia_nb.engine.followup import cut_to
from materia_nb.engine.routing import AdvanceFact, Decision, Passed
from materia_nb.engine.rules import Look, Rules, SocketRules, matches
from materia_nb.engine.session import Edit, Session, StepRecord, Streams, every_step
from materia_nb.engine.state import CastState, Failure, Usage, known_sum
from materia_nb.errors import MateriaError, counted, did_you_mean, needs_one_of, plain
from materia_nb.handoff.base import AgentReport, HandoffProtocol, SuggestionKind
from materia_nb.insight import diff
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import YES_OR_NO, Result, jsonpath_fault, takes_long
from materia_nb.registry import mimebundle_from_view

LONGEST_EXPRESSION: Final = 500
"""Characters of an expression."""
MOST_VALUES: Final = 100_000
"""Objects, lists and scalars in a value that is looked through."""
_MOST_FOUND: Final = 1_000
"""Values that one question finds; the rest is left out."""

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
    if "`" in text:
        raise _refused(text, "functions in backticks are left out")
    if (why := takes_long(text)) is not None:
        raise _refused(text, f"it {why[0]}")
    if (fault := jsonpath_fault(text)) is not None:
        raise _refused(text, fault)
    from jsonpath_ng.ext import parse

    parsed = parse(text)

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
        f"{expression[:100]!r} cannot be asked: {why.rstrip('.!')}.",
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
    used, time = diff.used(step), diff.time_of(step)
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
    reports: dict[str, tuple[HandoffProtocol, list[AgentReport]]] = {}
    for step in last.values():
        here = rules.sockets[step.socket]
        name, spoken = here.protocol.name, here.protocol
        values = list(_accepted(step))
        if values:
            who = here.socket.materia.label + (f", {step.item_key}" if step.item_key else "")
            reports.setdefault(name, (spoken, []))[1].append(AgentReport(who, values[-1]))
    return [line for spoken, told in reports.values() for line in spoken.conclusion(told)]


def _accepted(step: StepRecord) -> Iterator[Mapping[str, JSON]]:
    for turn in step.turns:
        if turn.reading is not None and turn.reading.accepted and isinstance(turn.reading.value, dict):
            yield turn.reading.value


THOUGHT: Final = "What the agent thought"
"""The heading above thinking, which is shown to people and told to nobody (R49)."""

_THOUGHT_CHARS: Final = 600

HEADERS = ("kind", "when", "to", "taken", "reason", "used")


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of one step.

    Attributes:
        title: which visit it is about.
        lines: the explanation in sentences, in the order in which things were decided.
        rows: every edge or exit that was looked at, in order: see :data:`HEADERS`.
        decision: the record that this was read off.
        thinking: what the agent thought before it answered, empty when that is not known (R49).
    """

    title: str
    lines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    decision: Decision | None
    thinking: str = ""

    def __str__(self) -> str:
        thought = cut_to(" ".join(self.thinking.split()), _THOUGHT_CHARS)
        lines = [*self.lines, f"{THOUGHT}: {thought}"] if thought else self.lines
        return plain("\n".join([self.title, *(f"  {line}" for line in lines)]))

    __repr__ = __str__
    _repr_mimebundle_ = mimebundle_from_view


def explain(
    rules: Rules,
    title: str,
    decision: Decision | None,
    after: CastState,
    entry: Decision | None = None,
    *,
    onward: Decision | None = None,
    pinned: str | None = None,
) -> Why:
    """Explain a decision.

    Args:
        rules: what the cast runs by.
        title: which visit it is about, in words.
        decision: the step's decision; None while its socket owes an output.
        after: the state after the step.
        entry: the decision on the way in, when empty loops were passed over.
        onward: the decision on the way to what came next, when empty loops were passed over there.
        pinned: what the answer was pinned to, if it was (R40).
    """
    lines: list[str] = []
    if entry is not None and entry.passed_over:
        lines.append(_passed_over(entry))
    if decision is None:
        lines.append(f"It is {after.status}: no output has been decided on yet.")
        return Why(title, tuple(lines), (), None)
    if pinned is not None:
        lines.append(_pinned(rules, decision, pinned))
    lines += decision.notes and [f"Output: {note}." for note in decision.notes]
    if decision.issues:
        refused = not decision.said.accepted
        lines.append("The output was refused:" if refused else "The output says that it is not done:")
        lines += [f"- {issue.line}" for issue in decision.issues]
    lines += [f"Note: {one.message}" for one in decision.warnings]
    lines += [
        f"state.{one.target} was left alone: {one.source} is not there."
        for one in decision.assigned
        if not one.found
    ]
    if decision.advance is not None:
        lines.append(_advance(decision.advance, decision))
    if decision.by in ("failure", "budget") and after.failure is None and after.status == "waiting":
        lines.append(f"{decision.socket} was cut short and is asked again.")
    else:
        if decision.result is Result.FAILED and decision.failure is None:
            lines.append(f"It failed: {decision.reason}")
        lines += _way(rules, decision)
    if onward is not None and onward.passed_over:
        lines.append(_passed_over(onward))
    if after.failure is not None and decision.failure is None:
        lines += _stopped(after.failure)  # the next socket could not be entered
    rows = tuple(_row(look, decision) for look in _all_looks(rules, decision))
    return Why(title, tuple(lines), rows, decision)


def _pinned(rules: Rules, decision: Decision, pinned: str) -> str:
    utility = decision.socket is not None and rules.sockets[decision.socket].socket.is_utility
    instead = "no process was started" if utility else "its agent was not asked"
    return f"It was pinned to {pinned}; {instead}."


def _passed_over(entry: Decision) -> str:
    return " ".join(_passed(one) for one in entry.passed)


def _passed(one: Passed) -> str:
    lacks = "its list is empty" if one.empty else "no item of its list is left"
    what = one.socket if one.loop is None else f"{one.socket} of loop {one.loop}"
    if one.route is not None:
        way = f"the always exit of the loop led to {one.target}"
    elif one.target != END:
        way = f"so the detour was over, and it went back to {one.target}"
    else:
        way = "there is no always exit, so the cast ended there, as a success"
    return f"{what} was passed over: {lacks}; {way}."


def _advance(fact: AdvanceFact, decision: Decision) -> str:
    name = "The derived advance" if fact.derived else "advance"
    if not fact.moved:
        return f"{name} did not move: it needs {fact.when}, and {decision.result.words}."
    left = (
        "the list is exhausted" if fact.exhausted else f"{fact.length - fact.after} of {fact.length} are left"
    )
    return f"{name} moved the cursor {fact.cursor} from {fact.before} to {fact.after} ({fact.when}); {left}."


def _way(rules: Rules, decision: Decision) -> list[str]:  # noqa: PLR0911 - one for each way on
    by, target, chosen = decision.by, decision.target, decision.chosen
    if decision.failure is not None and by in ("failure", "budget"):
        return _stopped(decision.failure)
    if by == "repair":
        return [f"{decision.socket} is asked again, in the same visit."]
    if by in _ASKED:
        return [_ASKED[by].format(socket=decision.socket, target=target, reason=decision.reason)]
    if by == "recording":
        return [_recorded_way(target)]
    if by == "draft":
        return ["It was a draft: refine it, or accept it."]
    if by == "implied end" and not decision.looks:
        exhausted = decision.advance is not None and decision.advance.exhausted
        lack = "loop has no exit route from here" if exhausted else "socket has no edges"
        return [f"The {lack}, so the cast ends, as a success."]
    if by == "implied end":
        return [
            f"Nothing matches ({decision.result.words}), so the cast ends, as a success.",
            *_otherwise(rules, decision),
        ]
    if chosen is None:
        return [f"It goes on to {target}."]
    what = "The exit route" if chosen.place is None else f"Edge {chosen.place + 1}"
    lines = [f"{what} to {chosen.to} was taken: {chosen.reason(decision.result)}."]
    if chosen.limit is not None and chosen.used is not None:
        place = f"for {decision.item_key}" if decision.item_key is not None else "here"
        lines.append(f"It has been used {chosen.used + 1} of {counted(chosen.limit, 'time')} {place}.")
    return lines + _otherwise(rules, decision)


_ASKED = {
    "finalize": "The work is done; {socket} is asked to hand it over, in the same conversation.",
    "reissue": "{socket} is asked to go on, in the same visit. {reason}",
    "pause": "The output asks for a person: {reason}",
    "escalate": "A person must decide: {reason}",
    "detour": "The output wants {target} done first: {reason}",
    "return": "The detour is over; it goes back to {target}.",
    "person": "A person chose to go on to {target}.",
}


def _recorded_way(target: str | None) -> str:
    if target is None:
        return "The recording has its output, and ends before the next socket."
    onward = "the cast ended" if target == END else f"it went on to {target}"
    return f"The recording says that {onward}. Its edges are not evaluated, because the loadout cannot be cast here."


def _stopped(failure: Failure) -> list[str]:
    lines = [f"The cast stopped: {failure.message}"]
    return [*lines, f"To go on: {failure.hint}."] if failure.hint else lines


def _otherwise(rules: Rules, decision: Decision) -> list[str]:
    """Say where it would have led had something else happened, where that is elsewhere."""
    if decision.socket is None:
        return []
    here = rules.sockets[decision.socket]
    unknown = decision.advance is None and here.socket.advance is not None
    possible = () if here.wanted.parse == "text" or unknown else YES_OR_NO
    others = [
        result
        for result in (*possible, Result.FAILED)
        if result in here.goes and result is not decision.result
    ]
    ways = [(result, _target_if(here, decision.advance, result)) for result in others]
    return [
        f"With {result.asked} it would have gone to {target}."
        for result, target in ways
        if target != decision.target
    ]


def _target_if(here: SocketRules, fact: AdvanceFact | None, result: Result) -> str:
    if fact is not None and matches(fact.when, result) and fact.before + 1 >= fact.length:
        return here.leaves[result].target
    return here.goes[result].target


def _all_looks(rules: Rules, decision: Decision) -> tuple[Look, ...]:
    """The looks of the decision, and behind them the edges that were not reached."""
    seen = {look.place for look in decision.looks if look.kind == "edge"}
    if not seen or decision.socket is None:
        return decision.looks
    edges = rules.graph.sockets[decision.socket].edges
    rest = tuple(
        Look("edge", edge.when, edge.to, False, edge.place) for edge in edges if edge.place not in seen
    )
    return (*decision.looks, *rest)


def _row(look: Look, decision: Decision) -> tuple[str, ...]:
    reached = look in decision.looks
    used = "" if look.limit is None else f"{(look.used or 0) + look.matched} of {look.limit}"
    reason = look.reason(decision.result) if reached else "not looked at: an earlier one matched"
    kind = look.route or f"edge {0 if look.place is None else look.place + 1}"
    return (kind, look.when, look.to, "yes" if look.matched else "no", reason, used)


# -- guesses ---------------------------------------------------------------------------------

STOP: Final = "stop"
"""The guess that the cast goes nowhere: it fails, or is held until a person decides."""

_HELD: Final = frozenset({"pause", "escalate"})
_ROUTED: Final = frozenset({"edge", "exit", "implied end"})


@dataclass(frozen=True, slots=True)
class Prediction:
    """A guess beside what happened.

    Attributes:
        guess: the socket, ``end`` or ``stop`` that was expected.
        came: the one that it was.
        title: which visit it is about, in words.
        lines: whether the guess was right and why, in sentences.
        first: the same for whoever may guess once more: why it is not the guess, and not what it is.
    """

    guess: str
    came: str
    title: str
    lines: tuple[str, ...]
    first: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the guess was what happened."""
        return self.guess == self.came

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.lines)])


def guesses(rules: Rules) -> tuple[str, ...]:
    """Return what can be guessed: every socket, the end, and that the cast stops."""
    return tuple(dict.fromkeys([*rules.graph.sockets, END, STOP]))


def known_guess(rules: Rules, guess: str) -> str:
    """Return the guess as the loadout writes it, whatever its case; a materia may be named in place of its socket.

    Raises:
        MateriaError: there is no such socket (``unknown_socket``), or the materia is in several (``ambiguous``).
    """
    known, place = guesses(rules), place_meant(rules.graph, guess)
    if place in known:
        return place
    hint = f"{did_you_mean(guess, known)} (a socket of this loadout, end, or stop)"
    raise MateriaError(f"{guess!r} is not a place that a step can lead to.", hint=hint, kind="unknown_socket")


def place_meant(graph: Graph, word: str) -> str:
    """Return the socket, ``end`` or ``stop`` that a person means by a word: its name in any case, or its materia.

    A word that names no place comes back as it is.

    Raises:
        MateriaError: it names a materia that is in several sockets (``ambiguous``).
    """
    meant, places = word.strip().casefold(), (*graph.sockets, END, STOP)
    if word in places:
        return word
    if found := [place for place in places if place.casefold() == meant]:
        return found[0] if len(found) == 1 else word
    found = [socket.id for socket in graph.sockets.values() if socket.materia.id.casefold() == meant]
    if len(found) > 1:
        raise MateriaError(
            f"{word.strip()} is the materia of {' and '.join(found)}.",
            hint="name the socket",
            kind="ambiguous",
        )
    return found[0] if found else word


def upcoming(rules: Rules, state: CastState) -> str:
    """Return the socket that runs next, ``end`` or ``stop``; loops without items are passed over (R16)."""
    return _arrival(rules, state)[0]


def judge_guess(
    rules: Rules, guess: str, title: str, decision: Decision, after: CastState, entry: Decision | None = None
) -> Prediction:
    """Compare a guess with the decision of a step.

    Args:
        rules: what the cast runs by.
        guess: one of :func:`guesses`.
        title: which visit it is about, in words.
        decision: how the step ended.
        after: the state after the step.
        entry: the decision on the way into the step, when empty loops were passed over.
    """
    came, onward = _came(rules, decision, after)
    lines = [_verdict(guess, came), *explain(rules, title, decision, after, entry).lines]
    if onward is not None and onward.failure is not None:
        lines += _stopped(onward.failure)[:1]
    if onward is not None and onward.passed_over:
        names = ", ".join(onward.passed_over)
        lines.append(f"{names} has no item left, so it is passed over; the loop is left towards {came}.")
    if guess == came:
        return Prediction(guess, came, title, tuple(filter(None, lines)), tuple(lines[:1]))
    about = _about_the_guess(rules, decision, came, guess)
    first = (f"Not this time. Your guess: {_words(guess)}.", about)
    return Prediction(guess, came, title, tuple(filter(None, [*lines, about])), tuple(filter(None, first)))


def _came(rules: Rules, decision: Decision, after: CastState) -> tuple[str, Decision | None]:
    """Where the step led, and the decision on the way into the next socket."""
    if after.failure is not None or decision.failure is not None or decision.by in _HELD:
        return STOP, None
    if after.status == "ready":
        return _arrival(rules, after)
    return decision.target or END, None  # the same socket, when a turn of its visit is still owed


def _arrival(rules: Rules, state: CastState) -> tuple[str, Decision | None]:
    if state.status == "ready":
        step = enter(rules, state)
        state, onward = step.state, step.decision
    else:
        onward = None
    if state.failure is not None:
        return STOP, onward
    return (state.at.socket if state.status != "complete" and state.at else END), onward


def _verdict(guess: str, came: str) -> str:
    if guess == came:
        return f"Right: {_words(came)}."
    return f"Not this time. Your guess: {_words(guess)}. What happened: {_words(came)}."


def _words(place: str) -> str:
    words = {END: "the cast comes to its end", STOP: "the cast stops here"}
    return words.get(place, f"it goes to {place}")


def _about_the_guess(rules: Rules, decision: Decision, came: str, guess: str) -> str:
    """Say why it was not the guess, as far as the record tells; empty when the rest has said it."""
    if guess == STOP:
        return "Nothing failed, no limit was reached, and no person is needed."
    if came == STOP or guess == decision.target or decision.by not in _ROUTED or decision.socket is None:
        return ""
    look = next((one for one in decision.looks if one.to == guess), None)
    if look is not None:
        return f"The {look.kind} to {guess} was looked at, but {look.reason(decision.result)}."
    return _not_looked_at(rules.sockets[decision.socket], decision, guess)


def _not_looked_at(here: SocketRules, decision: Decision, guess: str) -> str:
    if any(edge.to == guess for edge in here.socket.edges):
        if decision.advance is not None and decision.advance.exhausted:
            return f"There is an edge to {guess}, but the list is exhausted, and then only exits count."
        return f"There is an edge to {guess}, but an earlier one matched."
    if any(route.target == guess for route in here.exits):
        return f"There is an exit to {guess}, but exits count only in a step that exhausts the list."
    return f"No edge and no exit leads from {decision.socket} to {guess}."
