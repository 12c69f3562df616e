"""Hints about handoff protocols: unknown ones, mixtures, and what a protocol never does or never holds."""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Facts, Object, as_object, is_text, source_head
from materia_nb.loadout.report import Findings
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, OWN_PROTOCOLS, protocol_names

_FIELDS: Final = {
    "envelope": ("meta", "status", "summary", "concerns", "assumptions", "routing"),
    "agent-contract": (
        "agent_status",
        "evidence_report",
        "consolidation_report",
        "approval_request",
        "loop_state",
        "user_facing_summary",
        "memorialize_suggestions",
        "memory_suggestions",
        "update_contracts",
        "rollback_executed",
        "context_consumption",
    ),
}
"""The top-level fields that an agent is asked for in each protocol; in sparse an assignment adds its own."""
_TELLS_THE_TASK: Final = "agent-contract"
_CAN_HELP: Final = "can_further_iteration_help"


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
            "no-effect",
            f"{id_}.handoff",
            f"a utility works here, and utilities always speak {DEFAULT_HANDOFF}",
            "remove it",
        )
    if as_object(raw.get("assignment")):
        findings.hint(
            "no-effect", f"{id_}.assignment", "a utility works here, which is told no task", "remove it"
        )
    if raw.get("finalize") is True:
        findings.hint("no-effect", f"{id_}.finalize", "a utility works here, which answers once", "remove it")
    if raw.get("castContext") is not None:
        findings.hint(
            "no-effect", f"{id_}.castContext", "a utility works here, which reads its document", "remove it"
        )


def _on_agent(findings: Findings, facts: Facts, id_: str, name: str) -> None:
    raw = facts.sockets[id_]
    if as_object(raw.get("assignment")) and name in OWN_PROTOCOLS and name != _TELLS_THE_TASK:
        findings.hint(
            "no-effect",
            f"{id_}.assignment",
            f"the protocol {name} does not tell an agent its task",
            f'write "handoff": "{_TELLS_THE_TASK}", or put the task into the prompt',
        )
    _finalized(findings, facts, id_, raw)
    if facts.gives_text(id_):
        if is_text(raw.get("handoff")) and name != DEFAULT_HANDOFF:
            findings.hint(
                "no-effect",
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
    if name == "envelope" and "finalize" not in raw and facts.materia_of(id_).get("multiTurn") is not True:
        findings.hint(
            "not-finalized",
            f"{id_}.finalize",
            f"{id_!r} does its work and writes its envelope in one turn",
            'write "finalize": true, so that it is asked for the envelope when the work is done, or false',
        )
    _assigned(findings, facts, id_, name)
    prompt = facts.materia_of(id_).get("prompt")
    if name == "envelope" and _sends_back(facts, id_) and is_text(prompt) and _CAN_HELP not in str(prompt):
        findings.hint(
            "critic-not-asked",
            f"materia.{raw.get('materia')}.prompt",
            f"{id_!r} sends work back, and its prompt does not say when another round can help",
            f"say in the prompt when {_CAN_HELP} is true and when it is false",
        )


def _finalized(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    """Point out a finalization that would ask for nothing, or that takes place anyway."""
    if raw.get("finalize") is not True:
        return
    if facts.gives_text(id_):
        why = f"the output of {id_!r} is text, so there is no handoff to ask for"
        findings.hint("no-effect", f"{id_}.finalize", why, 'write "parse": "json", or remove it')
    elif facts.materia_of(id_).get("multiTurn") is True:
        why = "the agent here is asked for its final result when its drafts are accepted, whatever this says"
        findings.hint("no-effect", f"{id_}.finalize", why, "remove it")


def _sends_back(facts: Facts, id_: str) -> bool:
    """Whether an edge leads elsewhere when the output is not satisfied; the end is no work."""
    return any(
        edge.get("when") == "not_satisfied" and edge.get("to") != "end" for _, edge in facts.edges(id_)
    )


def _assigned(findings: Findings, facts: Facts, id_: str, name: str) -> None:
    """Point out sources that an output in this protocol does not hold, so that it would be refused."""
    fields = _FIELDS.get(name)
    if fields is None:
        return
    for target, source in as_object(facts.sockets[id_].get("assign")).items():
        head = source_head(source)
        if not head or head in fields or (head == "workItems" and facts.is_generator(id_)):
            continue
        findings.hint(
            "not-in-protocol",
            f"{id_}.assign.{target}",
            f"the agent is not asked for {head} in the protocol {name}, so an output without it is refused",
            f"assign one of its fields, such as $.{fields[1]}; satisfied, context and workItems reach the graph by themselves",
        )
