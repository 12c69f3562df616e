"""The shortest answers in the form of another handoff protocol than the sparse one, for what explores a loadout.

What such an output says beside a route is tried too where it ends there: that it needs a person, or cannot go on.
Detours, and turns in which an agent only goes on, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import step as engine
from materia_nb.engine.entering import agent_id, given_to
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.handoff.common import Gist, Outcome, Piece
from materia_nb.handoff.contract.contract_fields import FINDINGS
from materia_nb.handoff.contract.contract_texts import from_gist as contract_of
from materia_nb.handoff.contract.contract_turn import TAG
from materia_nb.handoff.envelope.envelope_texts import from_gist as envelope_of
from materia_nb.handoff.protocol import Action, Reading, TurnFacts
from materia_nb.jsonvalue import JSON, compact

Value: TypeAlias = dict[str, JSON]

_WORD: Final = "x"
_AGENT: Final = "a000000"
"""An agent id as contracts want it; nobody has it."""


class Form(NamedTuple):
    """How answers of a protocol are made.

    Attributes:
        made: gives values that may say an outcome, with so many pieces of work that are left, the likeliest first.
        text: writes a value as an agent does.
        detours: whether its outputs may name any socket to be run first.
    """

    made: Callable[[Outcome, int], Iterator[Value]]
    text: Callable[[Value], str]
    detours: bool


def _pieces(count: int) -> tuple[Piece, ...]:
    return tuple(Piece(f"Item {number + 1}", _WORD) for number in range(count))


def _envelopes(outcome: Outcome, count: int) -> Iterator[Value]:
    gist = Gist(outcome, found=_WORD, pieces=_pieces(count), commands=(_WORD,), reason=_WORD)
    yield envelope_of(gist)


def _contracts(outcome: Outcome, count: int) -> Iterator[Value]:
    # What is not satisfied is told as done and not of this agent's making: work in progress may be asked to go on.
    gist = Gist(
        "done" if outcome == "again" else outcome,
        found=_WORD,
        pieces=_pieces(count),
        reason=_WORD,
        agent=_AGENT,
    )
    value = contract_of(gist)
    if outcome != "again":
        yield value
    owner = "not_my_surface" if outcome == "again" else "owned_here"
    report: Value = {name: [_WORD] for name in FINDINGS if name != "open_gaps"}
    gaps: JSON = _part(value, "evidence_report").get("open_gaps")
    for told in (gaps, [_WORD]):
        yield {
            **value,
            "consolidation_report": {**report, "ownership_assessment": owner, "open_gaps": told},
        }


def _part(value: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


FORMS: Final[Mapping[str, Form]] = {
    "envelope": Form(_envelopes, compact, detours=True),
    "agent-contract": Form(
        _contracts, lambda value: f"{_WORD}\n```{TAG}\n{compact(value)}\n```", detours=False
    ),
}
"""The protocols whose answers can be made; an agent that speaks another one is explored as if it spoke the sparse one."""


def answer_in_form(
    rules: Rules,
    here: SocketRules,
    outcome: Outcome,
    count: int,
    fits: Callable[[Reading], bool],
    complete: Callable[[Value], Value] = lambda value: value,
) -> str | None:
    """Return the shortest answer of a socket whose reading fits; None when there is none.

    Args:
        rules: what the cast runs by.
        here: the socket, of a protocol in :data:`FORMS`.
        outcome: what the answer says.
        count: how many pieces of work it leaves.
        fits: whether a reading is the one that is looked for.
        complete: adds the fields that assignments read.
    """
    form = FORMS[here.protocol.name]
    state = engine.begin(rules, _WORD)
    facts = TurnFacts(
        agent_id=agent_id(_WORD, here.socket.id),
        given=given_to(rules, here, state),
        sockets=frozenset(rules.sockets),
    )
    for value in form.made(outcome, count):
        text = form.text(complete(value))
        if fits(here.protocol.read(text, here.wanted, facts)):
            return text
    return None


def holds(rules: Rules, here: SocketRules) -> Iterator[tuple[Action, str]]:
    """Give answers with which an agent stops the cast until a person has spoken: what each asks for, and its text."""
    found: set[Action] = set()
    for value in _stopping(here):
        facts = TurnFacts(given=given_to(rules, here, engine.begin(rules, _WORD)))
        text = FORMS[here.protocol.name].text(value)
        reading = here.protocol.read(text, here.wanted, facts)
        if reading.accepted and reading.action in ("pause", "escalate") and reading.action not in found:
            found.add(reading.action)
            yield reading.action, text


def _stopping(here: SocketRules) -> Iterator[Value]:
    for value in FORMS[here.protocol.name].made("stuck", 0):
        yield value
        if here.protocol.name == "envelope":
            yield {**value, "status": "UNVERIFIED"}
        else:
            yield {**value, "agent_status": {**_part(value, "agent_status"), "plan_status": "NEEDS_INPUT"}}
