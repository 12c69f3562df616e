"""Hints: what is allowed and yet probably not meant. A cast starts all the same.

Those about handoff protocols stand here too: unknown ones, mixtures, and what one never does or never holds.
"""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.check_fields import hint_fields
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
from materia_nb.loadout.lint_loops import hint_loops
from materia_nb.loadout.lint_state import hint_growing, hint_lists, hint_variables
from materia_nb.loadout.lint_ways import hint_ways, visited, ways_on
from materia_nb.loadout.report import NO_EFFECT, Findings, Problem, shown
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    GUARDS,
    OWN_PROTOCOLS,
    SENDING_BACK,
    OwnProtocol,
    protocol_names,
)

_FOREIGN: Final = OwnProtocol("", tells_the_task=True)
"""Of a protocol from elsewhere nothing is known here, so nothing is said of it."""
_ONE_THAT_TELLS: Final = " or ".join(f'"{name}"' for name, own in OWN_PROTOCOLS.items() if own.tells_the_task)


def hint_protocols(findings: Findings, facts: Facts) -> None:
    """Hint on the protocols of one loadout and of each of its sockets."""
    given = facts.raw.get("handoff")
    _known(findings, "handoff", given)
    spoken: dict[str, list[str]] = {}
    for id_, raw in facts.sockets.items():
        _known(findings, f"{id_}.handoff", raw.get("handoff"))
        if facts.is_utility(id_):
            _on_utility(findings, id_, raw)
            continue
        name = _protocol_of(facts, raw)
        _on_agent(findings, facts, id_, name)
        if not facts.gives_text(id_):
            spoken.setdefault(name, []).append(id_)
    if len(spoken) > 1:
        said = "; ".join(
            f"{name} in {', '.join(ids[:3])}{', …' * (len(ids) > 3)}" for name, ids in spoken.items()
        )
        findings.hint(
            "mixed-protocols",
            "handoff",
            f"the agents of this loadout hand over in {len(spoken)} formats ({said})",
            'write "handoff" once, at the loadout, unless this is meant',
        )


def _protocol_of(facts: Facts, raw: Object) -> str:
    for given in (raw.get("handoff"), facts.raw.get("handoff")):
        if is_text(given):
            return str(given)
    return DEFAULT_HANDOFF


def _known(findings: Findings, source: str, name: JSON) -> None:
    if not is_text(name) or name in OWN_PROTOCOLS:
        return
    names = protocol_names()
    if name not in names:
        findings.hint(
            "unknown-protocol",
            source,
            f"no installed package offers the handoff protocol {name!r}, so this cannot be cast here",
            findings.near(str(name), names),
        )


def _on_utility(findings: Findings, id_: str, raw: Object) -> None:
    """Point out what is written for an agent where a process answers."""
    if is_text(raw.get("handoff")) and raw["handoff"] != DEFAULT_HANDOFF:
        findings.hint(
            NO_EFFECT,
            f"{id_}.handoff",
            f"a utility works here, and utilities always speak {DEFAULT_HANDOFF}",
            "remove it",
        )
    idle = (
        ("assignment", bool(as_object(raw.get("assignment"))), "is told no task"),
        ("finalize", raw.get("finalize") is True, "answers once"),
        ("castContext", raw.get("castContext") is not None, "reads its document"),
    )
    for field, written, why in idle:
        if written:
            findings.hint(NO_EFFECT, f"{id_}.{field}", f"a utility works here, which {why}", "remove it")


def _on_agent(findings: Findings, facts: Facts, id_: str, name: str) -> None:
    raw = facts.sockets[id_]
    own = OWN_PROTOCOLS.get(name, _FOREIGN)
    if as_object(raw.get("assignment")) and not own.tells_the_task:
        findings.hint(
            NO_EFFECT,
            f"{id_}.assignment",
            f"the protocol {name} does not tell an agent its task",
            f'write "handoff": {_ONE_THAT_TELLS}, or put the task into the prompt',
        )
    _finalized(findings, facts, id_, raw)
    if facts.gives_text(id_):
        if is_text(raw.get("handoff")) and name != DEFAULT_HANDOFF:
            findings.hint(
                NO_EFFECT,
                f"{id_}.handoff",
                f"the output of {id_!r} is text, which is taken whatever the protocol",
                'write "parse": "json", or remove it',
            )
        elif name != DEFAULT_HANDOFF:
            findings.hint(
                "text-handoff",
                f"{id_}.parse",
                f"the output of {id_!r} is text, so it hands over nothing in the protocol {name} of this loadout",
                'write "parse": "json", or "handoff": "sparse" where text is meant',
            )
        return
    if own.apart and "finalize" not in raw and facts.materia_of(id_).get("multiTurn") is not True:
        findings.hint(
            "not-finalized",
            f"{id_}.finalize",
            f"{id_!r} does its work and writes its {name} in one turn",
            'write "finalize": true, so that it is asked for that when the work is done, or false',
        )
    _assigned(findings, facts, id_, name)
    prompt = facts.materia_of(id_).get("prompt")
    asked = own.reviewer_says
    if asked and _sends_back(facts, id_) and is_text(prompt) and asked not in str(prompt):
        findings.hint(
            "critic-not-asked",
            f"materia.{raw.get('materia')}.prompt",
            f"{id_!r} sends work back, and its prompt does not say when another round can help",
            f"say in the prompt when {asked} is true and when it is false",
        )


def _finalized(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    """Point out a finalization that would ask for nothing, or that takes place anyway."""
    if raw.get("finalize") is not True:
        return
    if facts.gives_text(id_):
        why = f"the output of {id_!r} is text, so there is no handoff to ask for"
        findings.hint(NO_EFFECT, f"{id_}.finalize", why, 'write "parse": "json", or remove it')
    elif facts.materia_of(id_).get("multiTurn") is True:
        why = "the agent here is asked for its final result when its drafts are accepted, whatever this says"
        findings.hint(NO_EFFECT, f"{id_}.finalize", why, "remove it")


def _sends_back(facts: Facts, id_: str) -> bool:
    """Whether an edge leads elsewhere when the output is not satisfied; the end is no work."""
    return any(edge.get("when") in SENDING_BACK and edge.get("to") != "end" for _, edge in facts.edges(id_))


def _assigned(findings: Findings, facts: Facts, id_: str, name: str) -> None:
    """Point out sources that an output in this protocol does not hold, so that it would be refused."""
    fields = OWN_PROTOCOLS.get(name, _FOREIGN).fields
    if fields is None:
        return
    for here, _, source in facts.assignments(id_):
        head = source_head(source)
        if not head or head in fields or (head == "workItems" and facts.is_generator(id_)):
            continue
        findings.hint(
            "not-in-protocol",
            here,
            f"the agent is not asked for {head} in the protocol {name}, so an output without it is refused",
            f"assign one of its fields, such as $.{fields[1]}; satisfied, context and workItems reach the graph by themselves",
        )


OBSOLETE_SOURCES = {"tasks": "workItems", "task": "workItems", "work": "workItems", "passed": "satisfied"}


def find_hints(document: JSON, loadout: str | None = None) -> list[Problem]:
    """Return the hints on a config, or on one loadout of it and the materia it uses; never raises."""
    findings = Findings()
    if not is_object(document):
        return findings.found
    hint_fields(findings, document, loadout)
    loadouts = {name: raw for name, raw in as_object(document.get("loadouts")).items() if is_object(raw)}
    materia = as_object(document.get("materia"))
    if loadout is None and len(loadouts) > 1 and document.get("activeLoadout") is None:
        first = next(iter(loadouts))
        findings.hint(
            "active-loadout",
            "activeLoadout",
            f"no loadout is active, so {first!r}, the first, is cast",
            'write "activeLoadout"',
        )
    used: set[str] = set()
    for name, raw in loadouts.items():
        if loadout is not None and name != loadout:
            continue
        facts = Facts(name, raw, materia)
        used.update(placed_materia(facts))
        findings.loadout = name
        _hint_sockets(findings, facts)
        hint_loops(findings, facts)
        hint_ways(findings, facts)
        hint_lists(findings, facts)
        hint_growing(findings, facts)
        others = (Facts(other, one, materia) for other, one in loadouts.items() if other != name)
        hint_variables(findings, facts, frozenset(id_ for other in others for id_ in placed_materia(other)))
        hint_protocols(findings, facts)
        _hint_told_nothing(findings, facts, document.get("castContext"))
        findings.loadout = None
    for id_, raw in materia.items():
        if loadout is None or id_ in used:
            _hint_script(findings, f"materia.{id_}.script", as_object(raw))
    if loadout is None:
        for id_ in materia:
            if id_ not in used:
                findings.hint(
                    "unused-materia",
                    f"materia.{id_}",
                    f"no loadout uses the materia {id_!r}",
                    "place it, or remove it",
                )
    return findings.found


def _hint_script(findings: Findings, here: str, raw: Object) -> None:
    """Point out a script that does not come with the package (R25)."""
    name = script_file(as_object(raw.get("script")).get("name"))
    if name is not None and raw.get("command") is None and name not in SHIPPED_SCRIPTS:
        findings.hint(
            "unknown-script",
            f"{here}.name",
            f"no script {name!r} comes with the package, so it runs only where the profile has one",
            findings.near(name, SHIPPED_SCRIPTS),
        )


def _hint_sockets(findings: Findings, facts: Facts) -> None:
    if facts.raw.get("entry") is None and facts.sockets:
        findings.hint(
            "missing-entry",
            "entry",
            f"no entry is written, so a cast starts at {facts.entry!r}, the first socket",
            f'write "entry": "{facts.entry}"',
        )
    reached = visited(facts, ways_on(facts))
    moved = {facts.advance_cursor(id_) for id_ in facts.sockets}
    for id_, raw in facts.sockets.items():
        if is_socket_id(id_) and not CANONICAL_ID.fullmatch(id_):
            findings.hint(
                "socket-id",
                f"sockets.{id_}",
                f"{id_!r} is no canonical socket id",
                "other tools expect Socket-1, Socket-2, ...; put names into the label of the materia",
            )
        if reached and id_ not in reached:
            findings.hint(
                "unreachable-socket",
                id_,
                "no edge and no exit route leads here from the entry",
                "lead an edge to it, or remove it",
            )
        if facts.foreach(id_) is not None and facts.cursor_of(id_) not in moved:
            findings.hint(
                "never-advances",
                f"{id_}.foreach",
                "no socket advances over this list, so only its first item is worked on",
                'write "advance": {"when": "satisfied"} here, or where an item is done',
            )
        _hint_assign(findings, facts, id_)
        _hint_text_guards(findings, facts, id_, raw)
        _hint_utility_placement(findings, facts, id_, raw)
        _hint_shared_parse(findings, facts, id_)


def _hint_told_nothing(findings: Findings, facts: Facts, config: JSON) -> None:
    """Point out agents that are told nothing of the cast and whose prompts ask for nothing of it (R50)."""
    around = facts.raw.get("castContext") or config
    for id_, raw in facts.sockets.items():
        prompt = facts.materia_of(id_).get("prompt")
        materia = facts.materia_of(id_)
        if (raw.get("castContext") or materia.get("castContext") or around) != "none" or not isinstance(
            prompt, str
        ):
            continue
        if not facts.is_utility(id_) and not any(name for _, _, name in variables(prompt)):
            findings.hint(
                "told-nothing",
                f"{id_}.castContext",
                f"castContext is none and the prompt of {raw.get('materia')!r} names no variable, "
                "so its agent knows neither the request nor what came before",
                "write {{request}} or {{lastOutput}} into the prompt, or castContext full or request",
            )


def _hint_assign(findings: Findings, facts: Facts, id_: str) -> None:
    for here, target, source in facts.assignments(id_):
        if not split_path(target):
            findings.hint(
                "assign-target",
                here,
                f"the target {shown(target)} names nothing, so the cast will fail here",
                "name where the value goes, such as plan.steps",
            )
        head = source_head(source)
        if is_text(source) and str(source).startswith("$") and source != "$" and facts.gives_text(id_):
            owner = here.partition(".assign")[0]
            findings.hint(
                "assign-on-text",
                here,
                f"the output of {id_!r} is text, so {shown(source)} finds nothing in it and {shown(target)} stays unset",
                f'write "parse": "json" at {owner}, or assign $, which is the text',
            )
        if head in OBSOLETE_SOURCES and not facts.is_utility(id_):
            findings.hint(
                "obsolete-field",
                here,
                f"agents hand over {OBSOLETE_SOURCES[head]}, not {head}",
                f"read $.{OBSOLETE_SOURCES[head]} instead",
            )


def _hint_text_guards(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    """Point out guards that can never match, because a text output holds no ``satisfied`` (R3)."""
    if not facts.gives_text(id_):
        return
    owner = f"materia.{raw.get('materia')}" if facts.is_utility(id_) else id_
    advice = f'write "parse": "json" at {owner}, or use always'
    for place, edge in facts.edges(id_):
        if edge.get("when") in GUARDS:
            findings.hint(
                "guard-on-text",
                f"{id_}.edges[{place}].when",
                f"the output of {id_!r} is text, so an edge that waits for {edge['when']} is never taken",
                advice,
            )
    when = as_object(raw.get("advance")).get("when")
    if when in GUARDS:
        findings.hint(
            "guard-on-text",
            f"{id_}.advance.when",
            f"the output of {id_!r} is text, so an advance that waits for {when} never happens",
            advice,
        )
    for loop in facts.loops_of.get(id_, ()):
        for place, route in loop.exits():
            if route.get("from") == id_ and route.get("condition") in GUARDS:
                findings.hint(
                    "guard-on-text",
                    f"loops.{loop.id}.exits[{place}].condition",
                    f"the output of {id_!r} is text, so a route that waits for {route['condition']} is never taken",
                    advice,
                )


def _hint_shared_parse(findings: Findings, facts: Facts, id_: str) -> None:
    """Point out a utility that reads json because another socket of its materia is a guarded exit (R58)."""
    if not facts.is_utility(id_) or facts.exits_guarded(id_) or not facts.made_json(id_):
        return
    source = next(one for one in facts.sharing(id_) if facts.exits_guarded(one))
    materia = facts.sockets[id_].get("materia")
    findings.hint(
        "shared-parse",
        f"{id_}.materia",
        f"the output of {id_!r} is read as json, because a loop is left from {source!r}, where {materia!r} works too",
        f'write "parse": "json" at materia.{materia}, or place another materia here',
    )


def _hint_utility_placement(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    """Point out what a socket says for a utility, which decides itself (R4)."""
    definition = facts.materia_of(id_)
    if not facts.is_utility(id_):
        return
    for field in ("parse", "assign"):
        value = raw.get(field)
        if value is not None and value != definition.get(field):
            findings.hint(
                NO_EFFECT,
                f"{id_}.{field}",
                f"a utility works here, so the {field} of the socket has no effect",
                f"write {field} at materia.{raw.get('materia')}",
            )
