"""The vectors of the agent contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from materia_nb.conformance.vector_parts import ANY_JSON, codes, differences, generated, routing
from materia_nb.handoff import Reading, TurnFacts
from materia_nb.handoff import contract as protocol
from materia_nb.jsonvalue import JSON

_NOW = 1_000_000.0


def run_output(vector: Mapping[str, Any]) -> list[str]:
    """Read one reply: what is wrong with it, who repairs it, and where it leads."""
    given, context = vector["input"], vector["input"].get("context") or {}
    text = generated(given["generate"]) if "generate" in given else given["text"]
    facts = TurnFacts(agent_id=context.get("task_agent_id", ""), given=context.get("input_envelope") or {})
    seen = protocol.examine(protocol.find(text), ANY_JSON, facts)
    found = {
        **_read(seen.reading),
        "repair_action": seen.checked.repair,
        "tier": seen.checked.tier,
        "parsed": _parsed(seen.contract or {}, facts),
    }
    return differences(found, vector["expect"])


def _read(reading: Reading) -> dict[str, JSON]:
    return {
        "accepted": not reading.issues,
        "errors": codes(reading.issues),
        "warnings": codes(reading.warnings),
        "routing": routing(reading),
    }


def _parsed(contract: Mapping[str, JSON], facts: TurnFacts) -> dict[str, JSON]:
    output = protocol.output_of(contract)
    loop = output.loop_state
    return {
        **{field.name: getattr(output, field.name) for field in fields(output)},
        "loop_state": None if loop is None else asdict(loop),
        "memorialize_suggestions": output.memorialize_suggestions._asdict(),
        "update_contracts": [entry._asdict() for entry in output.update_contracts],
        "consolidation_required": protocol.consolidation_required(facts.given),
    }


def run_transition(vector: Mapping[str, Any]) -> list[str]:
    """Report a status after others."""
    given = vector["input"]
    record = protocol.Record()
    for status in given["history"]:
        record = protocol.report(record, status).record
    step = protocol.report(record, given["report"])
    found: dict[str, JSON] = {
        "accepted": step.issue is None,
        "errors": codes([step.issue] if step.issue else []),
        "warnings": codes([step.warning] if step.warning else []),
        "parsed": {"recorded_state": step.record.status, "in_progress_count": step.record.in_progress},
    }
    if step.issue is None:
        way = protocol.verdict({}, step.record.status or "")
        found["routing"] = {"satisfied": way.satisfied, "action": way.action}
    else:
        found["routing"] = {"satisfied": None, "action": protocol.refusal(step.issue)}
    return differences(found, vector["expect"])


def run_merge(vector: Mapping[str, Any]) -> list[str]:
    """Merge one payload into one stored section."""
    given = vector["input"]
    name = given["contract"]
    done = protocol.apply_updates(
        {name: given["stored"]}, [{"contract": name, "payload": given["payload"]}], [name]
    )
    found = {
        "accepted": not done.issues,
        "errors": codes(done.issues),
        "warnings": codes(done.warnings),
        "parsed": {"stored_after": done.document[name]},
    }
    return differences(found, vector["expect"])


def run_updates(vector: Mapping[str, Any]) -> list[str]:
    """Apply the update clause of one contract to the project context."""
    given = vector["input"]
    done = protocol.apply_updates(
        given["stored"], given["update_contracts"], given["writable_sections"], given["agent"]
    )
    found = {
        "accepted": not done.issues,
        "errors": codes(done.issues),
        "warnings": codes(done.warnings),
        "parsed": {
            "applied": list(done.applied),
            "rejected": list(done.rejected),
            "stored_after": dict(done.document),
        },
    }
    return differences(found, vector["expect"])


def run_repair(vector: Mapping[str, Any]) -> list[str]:
    """Read one reply after another until one is accepted or the repairs are used up."""
    given, context = vector["input"], vector["input"]["context"]
    spared = protocol.MOST_REPAIRS - context.get("max_repairs", protocol.MOST_REPAIRS)
    repairs, seen = 0, None
    for text in given["outputs"]:
        facts = TurnFacts(agent_id=context.get("task_agent_id", ""), refused=repairs + spared)
        seen = protocol.examine(protocol.find(text), ANY_JSON, facts)
        if seen.reading.accepted or seen.reading.action != "reissue":
            break
        repairs += 1
    if seen is None:
        return ["outputs: there are none"]
    record = protocol.remembered(seen.reading.memory)
    parsed = {
        **_parsed(seen.contract or {}, TurnFacts()),
        "recorded_state": record.status,
        "in_progress_count": record.in_progress,
    }
    return differences({**_read(seen.reading), "repairs": repairs, "parsed": parsed}, vector["expect"])


def run_approval(vector: Mapping[str, Any]) -> list[str]:
    """Ask a person, and use what is granted."""
    given = vector["input"]
    reading = protocol.examine(given["contract"], ANY_JSON).reading
    grant = None
    if given["human"] == "approve" and reading.needs == "consent":
        grant = protocol.sealed_from(protocol.request_of(given["contract"]), _NOW).approve(_NOW)[1]
    told = None if grant is None else grant.as_json()
    allowed = []
    for command in given.get("uses", []):
        may, grant = grant.use(command, _NOW) if grant else (False, None)
        allowed.append(may)
    found = {
        "accepted": not reading.issues,
        "errors": codes(reading.issues),
        "warnings": codes(reading.warnings),
        "pause_kind": reading.needs,
        "resume": {"action": "reissue", "grant": told},
        "uses_allowed": allowed,
    }
    return differences(found, vector["expect"])
