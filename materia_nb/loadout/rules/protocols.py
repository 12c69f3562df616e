"""Rules about handoff protocols: unknown ones, mixtures, and what one never does or never holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.loadout.facts import Facts, as_object, is_text, source_head
from materia_nb.loadout.report import NO_EFFECT, without_field
from materia_nb.loadout.rules.rows import Finding, HintRule, rule
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    OWN_PROTOCOLS,
    SENDING_BACK,
    OwnProtocol,
    protocol_names,
)

RULES: Final[list[HintRule]] = []
_FOREIGN: Final = OwnProtocol("", tells_the_task=True)
"""Of a protocol from elsewhere nothing is known here, so nothing is said of it."""
_ONE_THAT_TELLS: Final = " or ".join(f'"{name}"' for name, own in OWN_PROTOCOLS.items() if own.tells_the_task)


def _spoken(facts: Facts, id_: str) -> tuple[str, OwnProtocol]:
    """The protocol that the agent in a socket speaks, by its name, and what is known of it."""
    written = (facts.sockets[id_].get("handoff"), facts.raw.get("handoff"))
    name = next((one for one in written if is_text(one)), DEFAULT_HANDOFF)
    return name, OWN_PROTOCOLS.get(name, _FOREIGN)


@rule(RULES, "loadout", "unknown-protocol")
def _unknown_protocol(facts: Facts) -> Iterator[Finding]:
    """A `handoff` that no installed package offers: it cannot be cast here."""
    owners = [("handoff", facts.raw), *((f"{id_}.handoff", raw) for id_, raw in facts.sockets.items())]
    for source, owner in owners:
        name = owner.get("handoff")
        if is_text(name) and name not in OWN_PROTOCOLS and name not in (names := protocol_names()):
            what = f"no installed package offers the handoff protocol {name!r}, so this cannot be cast here"
            yield Finding(source, what, did_you_mean(name, names))


@rule(RULES, "socket", NO_EFFECT)
def _written_for_an_agent(facts: Facts, id_: str) -> Iterator[Finding]:
    """What is written for an agent where a process answers."""
    if not facts.is_utility(id_):
        return
    raw = facts.sockets[id_]
    if is_text(raw.get("handoff")) and raw["handoff"] != DEFAULT_HANDOFF:
        why = f"a utility works here, and utilities always speak {DEFAULT_HANDOFF}"
        yield Finding(f"{id_}.handoff", why, "remove it", without_field(id_, "handoff"))
    idle = (
        ("assignment", bool(as_object(raw.get("assignment"))), "is told no task"),
        ("finalize", raw.get("finalize") is True, "answers once"),
        ("castContext", raw.get("castContext") is not None, "reads its document"),
    )
    for field, written, why in idle:
        if written:
            what = f"a utility works here, which {why}"
            yield Finding(f"{id_}.{field}", what, "remove it", without_field(id_, field))


@rule(RULES, "socket", NO_EFFECT)
def _not_told(facts: Facts, id_: str) -> Iterator[Finding]:
    """A task of an agent whose protocol does not tell it."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or own.tells_the_task or not as_object(facts.sockets[id_].get("assignment")):
        return
    what = f"the protocol {name} does not tell an agent its task"
    advice = f'write "handoff": {_ONE_THAT_TELLS}, or put the task into the prompt'
    yield Finding(f"{id_}.assignment", what, advice, without_field(id_, "assignment"))


@rule(RULES, "socket", NO_EFFECT)
def _finalized_for_nothing(facts: Facts, id_: str) -> Iterator[Finding]:
    """A finalization that would ask for nothing, or that takes place anyway."""
    if facts.is_utility(id_) or facts.sockets[id_].get("finalize") is not True:
        return
    if facts.gives_text(id_):
        why = f"the output of {id_!r} is text, so there is no handoff to ask for"
        advice = 'write "parse": "json", or remove it'
    elif facts.materia_of(id_).get("multiTurn") is True:
        why = "the agent here is asked for its final result when its drafts are accepted, whatever this says"
        advice = "remove it"
    else:
        return
    yield Finding(f"{id_}.finalize", why, advice, without_field(id_, "finalize"))


@rule(RULES, "socket", NO_EFFECT)
def _handoff_on_text(facts: Facts, id_: str) -> Iterator[Finding]:
    """A protocol of its own where the output is text."""
    name, _ = _spoken(facts, id_)
    written = is_text(facts.sockets[id_].get("handoff"))
    if not facts.is_utility(id_) and facts.gives_text(id_) and written and name != DEFAULT_HANDOFF:
        what = f"the output of {id_!r} is text, which is taken whatever the protocol"
        advice = 'write "parse": "json", or remove it'
        yield Finding(f"{id_}.handoff", what, advice, without_field(id_, "handoff"))


@rule(RULES, "socket", "text-handoff")
def _text_handoff(facts: Facts, id_: str) -> Iterator[Finding]:
    """An agent whose output is text, in a loadout whose agents hand over in another protocol."""
    name, _ = _spoken(facts, id_)
    written = is_text(facts.sockets[id_].get("handoff"))
    if not facts.is_utility(id_) and facts.gives_text(id_) and not written and name != DEFAULT_HANDOFF:
        what = (
            f"the output of {id_!r} is text, so it hands over nothing in the protocol {name} of this loadout"
        )
        yield Finding(
            f"{id_}.parse", what, 'write "parse": "json", or "handoff": "sparse" where text is meant'
        )


@rule(RULES, "socket", "not-finalized")
def _not_finalized(facts: Facts, id_: str) -> Iterator[Finding]:
    """An agent that works and writes its envelope in one turn: say whether `finalize` is meant."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or facts.gives_text(id_) or not own.apart:
        return
    if "finalize" not in facts.sockets[id_] and facts.materia_of(id_).get("multiTurn") is not True:
        advice = 'write "finalize": true, so that it is asked for that when the work is done, or false'
        yield Finding(f"{id_}.finalize", f"{id_!r} does its work and writes its {name} in one turn", advice)


@rule(RULES, "socket", "not-in-protocol")
def _not_in_protocol(facts: Facts, id_: str) -> Iterator[Finding]:
    """An assignment from a field that the agent is not asked for in its protocol."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or facts.gives_text(id_) or own.fields is None:
        return
    for here, _, source in facts.assignments(id_):
        head = source_head(source)
        if head and head not in own.fields and not (head == "workItems" and facts.is_generator(id_)):
            yield Finding(
                here,
                f"the agent is not asked for {head} in the protocol {name}, so an output without it is refused",
                f"assign one of its fields, such as $.{own.fields[1]}; satisfied, context and workItems reach the graph "
                "by themselves",
            )


@rule(RULES, "socket", "critic-not-asked")
def _critic_not_asked(facts: Facts, id_: str) -> Iterator[Finding]:
    """A prompt that does not say when another round can help, where envelopes send work back."""
    asked, prompt = _spoken(facts, id_)[1].reviewer_says, facts.materia_of(id_).get("prompt")
    if facts.is_utility(id_) or facts.gives_text(id_) or not asked or not is_text(prompt) or asked in prompt:
        return
    # The end is no work that is sent back.
    back = any(edge.get("when") in SENDING_BACK and edge.get("to") != "end" for _, edge in facts.edges(id_))
    if back:
        what = f"{id_!r} sends work back, and its prompt does not say when another round can help"
        advice = f"say in the prompt when {asked} is true and when it is false"
        yield Finding(f"materia.{facts.sockets[id_].get('materia')}.prompt", what, advice)


@rule(RULES, "loadout", "mixed-protocols")
def _mixed_protocols(facts: Facts) -> Iterator[Finding]:
    """Agents that hand over in different formats."""
    spoken: dict[str, list[str]] = {}
    for id_ in facts.sockets:
        if not facts.is_utility(id_) and not facts.gives_text(id_):
            spoken.setdefault(_spoken(facts, id_)[0], []).append(id_)
    if len(spoken) > 1:
        formats = "; ".join(
            f"{name} in {', '.join(ids[:3])}{', …' * (len(ids) > 3)}" for name, ids in spoken.items()
        )
        what = f"the agents of this loadout hand over in {len(spoken)} formats ({formats})"
        yield Finding("handoff", what, 'write "handoff" once, at the loadout, unless this is meant')
