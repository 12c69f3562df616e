"""Rules about single sockets, what they assign and place, about materia (R3, R4, R25, R26, R50, R58) and their protocols.

Of protocols: unknown ones, mixtures, and what one never does or never holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import split_path
from materia_nb.loadout.check_graph import renumber
from materia_nb.loadout.facts import (
    CANONICAL_ID,
    SHIPPED_SCRIPTS,
    Facts,
    Object,
    as_object,
    is_object,
    is_socket_id,
    is_text,
    placed_materia,
    script_file,
    source_head,
    variables,
)
from materia_nb.loadout.report import (
    NO_EFFECT,
    Hint,
    HintRule,
    Mend,
    brief,
    do,
    mend,
    rule,
    suggest,
    without_field,
)
from materia_nb.loadout.rules.way_rules import advance_when, read_as_json, visited, ways_on
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    GUARDS,
    OWN_PROTOCOLS,
    SENDING_BACK,
    OwnProtocol,
    protocol_names,
)

SOCKET_RULES: Final[list[HintRule]] = []
_OBSOLETE: Final = {"tasks": "workItems", "task": "workItems", "work": "workItems", "passed": "satisfied"}


@rule(SOCKET_RULES, "loadout", "missing-entry")
def _missing_entry(facts: Facts) -> Iterator[Hint]:
    """A loadout without `entry`, which starts at its first socket."""
    if facts.raw.get("entry") is None and facts.sockets:
        first = next(iter(facts.sockets))
        what = f"no entry is written, so a cast starts at {facts.entry!r}, the first socket"
        advice = f'write "entry": "{facts.entry}"'
        yield Hint("entry", what, advice, mend(f"Start at {first}", do("set_entry", first)))


@rule(SOCKET_RULES, "socket", "socket-id")
def _socket_id(facts: Facts, id_: str) -> Iterator[Hint]:
    """An id that is not `Socket-1`, `Socket-2`, ...."""
    if is_socket_id(id_) and not CANONICAL_ID.fullmatch(id_):
        advice = "other tools expect Socket-1, Socket-2, ...; put names into the label of the materia"
        yield Hint(f"sockets.{id_}", f"{id_!r} is no canonical socket id", advice, renumber(facts, id_))


@rule(SOCKET_RULES, "loadout", "unreachable-socket")
def _unreachable(facts: Facts) -> Iterator[Hint]:
    """A socket to which nothing leads."""
    reached = visited(facts, ways_on(facts))
    for id_ in facts.sockets:
        if reached and id_ not in reached:
            what = "no edge and no exit route leads here from the entry"
            yield Hint(id_, what, "lead an edge to it, or remove it")


@rule(SOCKET_RULES, "loadout", "never-advances")
def _foreach_never_advances(facts: Facts) -> Iterator[Hint]:
    """A list of which only the first item is ever worked on."""
    moved = {facts.advance_cursor(id_) for id_ in facts.sockets}
    for id_ in facts.sockets:
        if facts.foreach(id_) is not None and facts.cursor_of(id_) not in moved:
            when = "always" if facts.gives_text(id_) else "satisfied"
            yield Hint(
                f"{id_}.foreach",
                "no socket advances over this list, so only its first item is worked on",
                'write "advance": {"when": "satisfied"} here, or where an item is done',
                suggest(f"Move on when {when}", advance_when(facts, id_, when)),
            )


@rule(SOCKET_RULES, "socket", "assign-target")
def _assign_target(facts: Facts, id_: str) -> Iterator[Hint]:
    """A target that names nothing: the cast will fail there."""
    for here, target, _ in facts.assignments(id_):
        if not split_path(target):
            what = f"the target {brief(target)} names nothing, so the cast will fail here"
            yield Hint(here, what, "name where the value goes, such as plan.steps")


@rule(SOCKET_RULES, "socket", "assign-on-text")
def _assign_on_text(facts: Facts, id_: str) -> Iterator[Hint]:
    """An assignment from a field of a text output, which has none."""
    for here, target, source in facts.assignments(id_):
        if is_text(source) and source.startswith("$") and source != "$" and facts.gives_text(id_):
            what = f"the output of {id_!r} is text, so {brief(source)} finds nothing in it and {brief(target)} stays unset"
            advice = (
                f'write "parse": "json" at {here.partition(".assign")[0]}, or assign $, which is the text'
            )
            yield Hint(here, what, advice, read_as_json(facts, id_))


@rule(SOCKET_RULES, "socket", "obsolete-field")
def _obsolete_field(facts: Facts, id_: str) -> Iterator[Hint]:
    """An assignment from an earlier name of a handoff field."""
    if facts.is_utility(id_):
        return
    for here, target, source in facts.assignments(id_):
        head = source_head(source)
        if head in _OBSOLETE:
            what = f"agents hand over {_OBSOLETE[head]}, not {head}"
            advice = f"read $.{_OBSOLETE[head]} instead"
            yield Hint(here, what, advice, _newer_source(facts, id_, target, str(source)))


def _newer_source(facts: Facts, id_: str, target: str, source: str) -> Mend | None:
    head = re.match(r"\$\.(\w+)", source)
    if head is None or head[1] not in _OBSOLETE:
        return None
    newer = f"$.{_OBSOLETE[head[1]]}{source[head.end() :]}"
    assign = {**as_object(facts.sockets[id_].get("assign")), target: newer}
    words = f"{id_} assigns {target} from {newer}"
    return mend(f"Read {newer}", do("set_socket", id_, "assign", assign), words=words)


@rule(SOCKET_RULES, "socket", "guard-on-text")
def _guard_on_text(facts: Facts, id_: str) -> Iterator[Hint]:
    """A guard that waits for `satisfied` in a text output (R3)."""
    if not facts.gives_text(id_):
        return
    raw = facts.sockets[id_]
    guards = [
        (f"{id_}.edges[{place}].when", edge.get("when"), "an edge that waits for {} is never taken")
        for place, edge in facts.edges(id_)
    ]
    when = as_object(raw.get("advance")).get("when")
    guards.append((f"{id_}.advance.when", when, "an advance that waits for {} never happens"))
    guards += [
        (
            f"loops.{loop.id}.exits[{place}].condition",
            route.get("condition"),
            "a route that waits for {} is never taken",
        )
        for loop in facts.loops_of.get(id_, ())
        for place, route in loop.exits()
        if route.get("from") == id_
    ]
    owner = f"materia.{raw.get('materia')}" if facts.is_utility(id_) else id_
    for source, guard, effect in guards:
        if guard in GUARDS:
            what = f"the output of {id_!r} is text, so {effect.format(guard)}"
            advice = f'write "parse": "json" at {owner}, or use always'
            yield Hint(source, what, advice, read_as_json(facts, id_))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _decided_by_the_utility(facts: Facts, id_: str) -> Iterator[Hint]:
    """What a socket says for a utility, which decides itself (R4)."""
    if not facts.is_utility(id_):
        return
    raw, definition = facts.sockets[id_], facts.materia_of(id_)
    for field in ("parse", "assign"):
        if raw.get(field) is not None and raw[field] != definition.get(field):
            what = f"a utility works here, so the {field} of the socket has no effect"
            advice = f"write {field} at materia.{raw.get('materia')}"
            yield Hint(f"{id_}.{field}", what, advice, without_field(id_, field))


@rule(SOCKET_RULES, "socket", "shared-parse")
def _shared_parse(facts: Facts, id_: str) -> Iterator[Hint]:
    """A utility that is read as json because another socket of its materia is the guarded exit of a loop."""
    if not facts.is_utility(id_) or facts.exits_guarded(id_) or not facts.made_json(id_):
        return
    source = next(one for one in facts.sharing(id_) if facts.exits_guarded(one))
    materia = facts.sockets[id_].get("materia")
    what = f"the output of {id_!r} is read as json, because a loop is left from {source!r}, where {materia!r} works too"
    advice = f'write "parse": "json" at materia.{materia}, or place another materia here'
    yield Hint(f"{id_}.materia", what, advice)


@rule(SOCKET_RULES, "socket", "told-nothing")
def _told_nothing(facts: Facts, id_: str) -> Iterator[Hint]:
    """`castContext` is `none` where the prompt names no variable either (R50)."""
    raw, definition = facts.sockets[id_], facts.materia_of(id_)
    written = (one.get("castContext") for one in (raw, definition, facts.raw, facts.config))
    prompt = definition.get("prompt")
    if facts.is_utility(id_) or next(filter(None, written), None) != "none" or not isinstance(prompt, str):
        return
    if not any(name for _, _, name in variables(prompt)):
        yield Hint(
            f"{id_}.castContext",
            f"castContext is none and the prompt of {raw.get('materia')!r} names no variable, "
            "so its agent knows neither the request nor what came before",
            "write {{request}} or {{lastOutput}} into the prompt, or castContext full or request",
            suggest("Tell it the request", do("set_socket", id_, "castContext", "request")),
        )


# -- materia, and the config around the loadouts -----------------------------------------------


@rule(SOCKET_RULES, "materia", "unknown-script")
def _unknown_script(id_: str, raw: Object) -> Iterator[Hint]:
    """A shipped script that does not come with the package (R25)."""
    name = script_file(as_object(raw.get("script")).get("name"))
    if name is not None and raw.get("command") is None and name not in SHIPPED_SCRIPTS:
        what = f"no script {name!r} comes with the package, so it runs only where the profile has one"
        yield Hint(f"materia.{id_}.script.name", what, did_you_mean(name, SHIPPED_SCRIPTS))


@rule(SOCKET_RULES, "config", "active-loadout")
def _active_loadout(document: Object) -> Iterator[Hint]:
    """Several loadouts and none of them active."""
    loadouts = [name for name, raw in as_object(document.get("loadouts")).items() if is_object(raw)]
    if len(loadouts) > 1 and document.get("activeLoadout") is None:
        what = f"no loadout is active, so {loadouts[0]!r}, the first, is cast"
        yield Hint("activeLoadout", what, 'write "activeLoadout"')


@rule(SOCKET_RULES, "config", "unused-materia")
def _unused_materia(document: Object) -> Iterator[Hint]:
    """A materia that no loadout places."""
    materia = as_object(document.get("materia"))
    loadouts = as_object(document.get("loadouts")).values()
    used = {id_ for raw in loadouts if is_object(raw) for id_ in placed_materia(Facts("", raw, materia))}
    for id_ in materia:
        if id_ not in used:
            what = f"no loadout uses the materia {id_!r}"
            yield Hint(f"materia.{id_}", what, "place it, or remove it")


_FOREIGN: Final = OwnProtocol("", tells_the_task=True)
"""Of a protocol from elsewhere nothing is known here, so nothing is said of it."""
_ONE_THAT_TELLS: Final = " or ".join(f'"{name}"' for name, own in OWN_PROTOCOLS.items() if own.tells_the_task)


def _spoken(facts: Facts, id_: str) -> tuple[str, OwnProtocol]:
    """The protocol that the agent in a socket speaks, by its name, and what is known of it."""
    written = (facts.sockets[id_].get("handoff"), facts.raw.get("handoff"))
    name = next((one for one in written if is_text(one)), DEFAULT_HANDOFF)
    return name, OWN_PROTOCOLS.get(name, _FOREIGN)


@rule(SOCKET_RULES, "loadout", "unknown-protocol")
def _unknown_protocol(facts: Facts) -> Iterator[Hint]:
    """A `handoff` that no installed package offers: it cannot be cast here."""
    owners = [("handoff", facts.raw), *((f"{id_}.handoff", raw) for id_, raw in facts.sockets.items())]
    for source, owner in owners:
        name = owner.get("handoff")
        if is_text(name) and name not in OWN_PROTOCOLS and name not in (names := protocol_names()):
            what = f"no installed package offers the handoff protocol {name!r}, so this cannot be cast here"
            yield Hint(source, what, did_you_mean(name, names))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _written_for_an_agent(facts: Facts, id_: str) -> Iterator[Hint]:
    """What is written for an agent where a process answers."""
    if not facts.is_utility(id_):
        return
    raw = facts.sockets[id_]
    if is_text(raw.get("handoff")) and raw["handoff"] != DEFAULT_HANDOFF:
        why = f"a utility works here, and utilities always speak {DEFAULT_HANDOFF}"
        yield Hint(f"{id_}.handoff", why, "remove it", without_field(id_, "handoff"))
    idle = (
        ("assignment", bool(as_object(raw.get("assignment"))), "is told no task"),
        ("finalize", raw.get("finalize") is True, "answers once"),
        ("castContext", raw.get("castContext") is not None, "reads its document"),
    )
    for field, written, why in idle:
        if written:
            what = f"a utility works here, which {why}"
            yield Hint(f"{id_}.{field}", what, "remove it", without_field(id_, field))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _not_told(facts: Facts, id_: str) -> Iterator[Hint]:
    """A task of an agent whose protocol does not tell it."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or own.tells_the_task or not as_object(facts.sockets[id_].get("assignment")):
        return
    what = f"the protocol {name} does not tell an agent its task"
    advice = f'write "handoff": {_ONE_THAT_TELLS}, or put the task into the prompt'
    yield Hint(f"{id_}.assignment", what, advice, without_field(id_, "assignment"))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _finalized_for_nothing(facts: Facts, id_: str) -> Iterator[Hint]:
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
    yield Hint(f"{id_}.finalize", why, advice, without_field(id_, "finalize"))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _handoff_on_text(facts: Facts, id_: str) -> Iterator[Hint]:
    """A protocol of its own where the output is text."""
    name, _ = _spoken(facts, id_)
    written = is_text(facts.sockets[id_].get("handoff"))
    if not facts.is_utility(id_) and facts.gives_text(id_) and written and name != DEFAULT_HANDOFF:
        what = f"the output of {id_!r} is text, which is taken whatever the protocol"
        advice = 'write "parse": "json", or remove it'
        yield Hint(f"{id_}.handoff", what, advice, without_field(id_, "handoff"))


@rule(SOCKET_RULES, "socket", "text-handoff")
def _text_handoff(facts: Facts, id_: str) -> Iterator[Hint]:
    """An agent whose output is text, in a loadout whose agents hand over in another protocol."""
    name, _ = _spoken(facts, id_)
    written = is_text(facts.sockets[id_].get("handoff"))
    if not facts.is_utility(id_) and facts.gives_text(id_) and not written and name != DEFAULT_HANDOFF:
        what = (
            f"the output of {id_!r} is text, so it hands over nothing in the protocol {name} of this loadout"
        )
        yield Hint(f"{id_}.parse", what, 'write "parse": "json", or "handoff": "sparse" where text is meant')


@rule(SOCKET_RULES, "socket", "not-finalized")
def _not_finalized(facts: Facts, id_: str) -> Iterator[Hint]:
    """An agent that works and writes its envelope in one turn: say whether `finalize` is meant."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or facts.gives_text(id_) or not own.apart:
        return
    if "finalize" not in facts.sockets[id_] and facts.materia_of(id_).get("multiTurn") is not True:
        advice = 'write "finalize": true, so that it is asked for that when the work is done, or false'
        yield Hint(f"{id_}.finalize", f"{id_!r} does its work and writes its {name} in one turn", advice)


@rule(SOCKET_RULES, "socket", "not-in-protocol")
def _not_in_protocol(facts: Facts, id_: str) -> Iterator[Hint]:
    """An assignment from a field that the agent is not asked for in its protocol."""
    name, own = _spoken(facts, id_)
    if facts.is_utility(id_) or facts.gives_text(id_) or own.fields is None:
        return
    for here, _, source in facts.assignments(id_):
        head = source_head(source)
        if head and head not in own.fields and not (head == "workItems" and facts.is_generator(id_)):
            yield Hint(
                here,
                f"the agent is not asked for {head} in the protocol {name}, so an output without it is refused",
                f"assign one of its fields, such as $.{own.fields[1]}; satisfied, context and workItems reach the graph "
                "by themselves",
            )


@rule(SOCKET_RULES, "socket", "critic-not-asked")
def _critic_not_asked(facts: Facts, id_: str) -> Iterator[Hint]:
    """A prompt that does not say when another round can help, where envelopes send work back."""
    asked, prompt = _spoken(facts, id_)[1].reviewer_says, facts.materia_of(id_).get("prompt")
    if facts.is_utility(id_) or facts.gives_text(id_) or not asked or not is_text(prompt) or asked in prompt:
        return
    # The end is no work that is sent back.
    back = any(edge.get("when") in SENDING_BACK and edge.get("to") != "end" for _, edge in facts.edges(id_))
    if back:
        what = f"{id_!r} sends work back, and its prompt does not say when another round can help"
        advice = f"say in the prompt when {asked} is true and when it is false"
        yield Hint(f"materia.{facts.sockets[id_].get('materia')}.prompt", what, advice)


@rule(SOCKET_RULES, "loadout", "mixed-protocols")
def _mixed_protocols(facts: Facts) -> Iterator[Hint]:
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
        yield Hint("handoff", what, 'write "handoff" once, at the loadout, unless this is meant')
