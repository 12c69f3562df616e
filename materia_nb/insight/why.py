"""Why a step went where it did: the explanation of a decision, and the comparison of a guess with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from materia_nb.engine.entering import enter
from materia_nb.engine.followup import cut_to
from materia_nb.engine.routing import (
    AdvanceFact,
    Choice,
    Decision,
    Look,
    Passed,
    awaited_failures,
    choose_edge,
)
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, counted, did_you_mean, plain
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import YES_OR_NO, Result, described
from materia_nb.registry import mimebundle_from_view

THINKING_HEADING: Final = "What the agent thought"
"""The heading above thinking, which is shown to people and told to nobody (R49)."""

_THOUGHT_CHARS: Final = 600

EDGE_COLUMNS = ("kind", "when", "to", "taken", "reason", "used")


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of one step.

    Attributes:
        title: which visit it is about.
        lines: the explanation in sentences, in the order in which things were decided.
        rows: every edge or exit that was looked at, in order: see :data:`EDGE_COLUMNS`.
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
        lines = [*self.lines, f"{THINKING_HEADING}: {thought}"] if thought else self.lines
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
        entry: the decision on the way in, when empty loops were skipped.
        onward: the decision on the way to what came next, when empty loops were skipped there.
        pinned: what the answer was pinned to, if it was (R40).
    """
    lines: list[str] = []
    if entry is not None and entry.skipped_sockets:
        lines.append(_skipped_sockets(entry))
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
        if decision.result.silent and decision.failure is None:
            lines.append(f"{decision.result.words.capitalize()}: {decision.reason}")
        lines += _way(rules, decision)
    if onward is not None and onward.skipped_sockets:
        lines.append(_skipped_sockets(onward))
    if after.failure is not None and decision.failure is None:
        lines += _stopped(after.failure)  # the next socket could not be entered
    rows = tuple(_row(look, decision) for look in _all_looks(rules, decision))
    return Why(title, tuple(lines), rows, decision)


def _pinned(rules: Rules, decision: Decision, pinned: str) -> str:
    utility = decision.socket is not None and rules.sockets[decision.socket].socket.is_utility
    instead = "no process was started" if utility else "its agent was not asked"
    return f"It was pinned to {pinned}; {instead}."


def _skipped_sockets(entry: Decision) -> str:
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
    return f"{what} was skipped: {lacks}; {way}."


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
        for result in (*possible, *dict.fromkeys(awaited_failures(here).values()))
        if result is not decision.result
    ]
    choices = [(result, _choice_if(here, decision.advance, result)) for result in others]
    return [
        f"With {result.asked} it would have gone to {choice.target}."
        for result, choice in choices
        if choice is not None and choice.target != decision.target
    ]


def _choice_if(here: SocketRules, fact: AdvanceFact | None, result: Result) -> Choice | None:
    advances = fact is not None and described(fact.when).holds(result)
    return choose_edge(here, result, fact is not None and advances and fact.before + 1 >= fact.length)


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


def possible_guesses(rules: Rules) -> tuple[str, ...]:
    """Return what can be guessed: every socket, the end, and that the cast stops."""
    return tuple(dict.fromkeys([*rules.graph.sockets, END, STOP]))


def parse_guess(rules: Rules, guess: str) -> str:
    """Return the guess as the loadout writes it, whatever its case; a materia may be named in place of its socket.

    Raises:
        MateriaError: there is no such socket (``unknown_socket``), or the materia is in several (``ambiguous``).
    """
    known, place = possible_guesses(rules), resolve_target(rules.graph, guess)
    if place in known:
        return place
    hint = f"{did_you_mean(guess, known)} (a socket of this loadout, end, or stop)"
    raise MateriaError(f"{guess!r} is not a place that a step can lead to.", hint=hint, kind="unknown_socket")


def resolve_target(graph: Graph, word: str) -> str:
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


def next_target(rules: Rules, state: CastState) -> str:
    """Return the socket that runs next, ``end`` or ``stop``; loops without items are skipped (R16)."""
    return _arrival(rules, state)[0]


def judge_guess(
    rules: Rules, guess: str, title: str, decision: Decision, after: CastState, entry: Decision | None = None
) -> Prediction:
    """Compare a guess with the decision of a step.

    Args:
        rules: what the cast runs by.
        guess: one of :func:`possible_guesses`.
        title: which visit it is about, in words.
        decision: how the step ended.
        after: the state after the step.
        entry: the decision on the way into the step, when empty loops were skipped.
    """
    came, onward = _came(rules, decision, after)
    lines = [_verdict(guess, came), *explain(rules, title, decision, after, entry).lines]
    if onward is not None and onward.failure is not None:
        lines += _stopped(onward.failure)[:1]
    if onward is not None and onward.skipped_sockets:
        names = ", ".join(onward.skipped_sockets)
        lines.append(f"{names} has no item left, so it is skipped; the loop is left towards {came}.")
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
