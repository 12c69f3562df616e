"""Predicting the route: where a step led, whether a guess was right, and why, read off the decision record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from materia_nb.engine.entering import enter
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.insight.why import explain
from materia_nb.loadout.graph import END

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
    """

    guess: str
    came: str
    title: str
    lines: tuple[str, ...]

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
    """Return the guess as the loadout writes it, whatever its case.

    Raises:
        MateriaError: there is no such socket (``unknown_socket``).
    """
    known = guesses(rules)
    if guess in known:
        return guess
    found = [name for name in known if name.casefold() == guess.strip().casefold()]
    if len(found) == 1:
        return found[0]
    hint = f"{did_you_mean(guess, known)} (a socket of this loadout, end, or stop)"
    raise MateriaError(f"{guess!r} is not a place that a step can lead to.", hint=hint, kind="unknown_socket")


def upcoming(rules: Rules, state: CastState) -> str:
    """Return the socket that runs next, ``end`` or ``stop``; loops without items are passed over (R16)."""
    return _arrival(rules, state)[0]


def judge(
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
        lines.append(f"The cast stopped ({onward.failure.kind}): {onward.failure.message}")
    if onward is not None and onward.passed_over:
        names = ", ".join(onward.passed_over)
        lines.append(f"{names} has no item left, so it is passed over; the loop is left towards {came}.")
    if guess != came:
        lines.append(_about_the_guess(rules, decision, came, guess))
    return Prediction(guess, came, title, tuple(line for line in lines if line))


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
        return f"The {look.kind} to {guess} was looked at, but {look.reason(decision.satisfied)}."
    return _not_looked_at(rules.sockets[decision.socket], decision, guess)


def _not_looked_at(here: SocketRules, decision: Decision, guess: str) -> str:
    if any(edge.to == guess for edge in here.socket.edges):
        if decision.advance is not None and decision.advance.exhausted:
            return f"There is an edge to {guess}, but the list is exhausted, and then only exits count."
        return f"There is an edge to {guess}, but an earlier one matched."
    if any(route.target == guess for route in here.exits):
        return f"There is an exit to {guess}, but exits count only in a step that exhausts the list."
    return f"No edge and no exit leads from {decision.socket} to {guess}."
