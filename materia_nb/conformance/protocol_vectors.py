"""The vectors of the agent contract and of the handoff envelope, and what all kinds of vectors have in common."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from materia_nb.errors import MateriaError
from materia_nb.handoff import (
    Issue,
    Reading,
    Requirements,
    TurnFacts,
    approval,
    capabilities,
    contract_fields,
    contract_protocol,
    contract_texts,
)
from materia_nb.handoff import envelope_protocol as handoff_envelope
from materia_nb.jsonvalue import JSON, MISSING, compact, get_path, same

ANY_JSON = Requirements("json", False, None, False, True, frozenset(), ())
"""What a socket wants that neither guards its edges nor assigns anything."""


def generated(recipe: Mapping[str, Any]) -> str:
    """Build a long text: "@@" in the template stands for the unit, repeated."""
    return str(recipe["template"]).replace("@@", recipe["unit"] * recipe["times"])


def codes(issues: Iterable[Issue]) -> list[JSON]:
    """Return the codes of issues, or the path of one that has none."""
    return [issue.code or issue.path for issue in issues]


def judged(issues: Iterable[Issue], warnings: Iterable[Issue] = ()) -> dict[str, JSON]:
    """Return why something was refused, and what is odd about it, as vectors write it."""
    errors = codes(issues)
    return {"accepted": not errors, "errors": errors, "warnings": codes(warnings)}


def routing(reading: Reading) -> dict[str, JSON]:
    """Return the part of a reading that routes, as vectors write it."""
    found: dict[str, JSON] = {"satisfied": reading.satisfied, "action": reading.action}
    return found if reading.target is None else {**found, "target": reading.target}


def differences(found: Mapping[str, JSON], expect: Mapping[str, JSON]) -> list[str]:
    """Say what differs from ``expect``; ``errors`` and ``warnings`` in any order, ``parsed`` where it is named."""
    wrong = []
    for name, wanted in expect.items():
        if name not in found:
            wrong.append(f"{name}: there is nothing of that name to compare")
        elif not _equal(name, found[name], wanted):
            wrong.append(f"{name}: expected {compact(wanted)[:2000]}, found {compact(found[name])[:2000]}")
    return wrong


def _equal(name: str, found: JSON, wanted: JSON) -> bool:
    if name in ("errors", "warnings") and isinstance(wanted, list):
        return Counter(found) == Counter(wanted)
    if name == "parsed" and isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and same(found[key], value) for key, value in wanted.items())
    return same(found, wanted)


_NOW = 1_000_000.0


def run_output(vector: Mapping[str, Any]) -> list[str]:
    """Read one reply: what is wrong with it, who repairs it, and where it leads."""
    given, context = vector["input"], vector["input"].get("context") or {}
    text = generated(given["generate"]) if "generate" in given else given["text"]
    facts = TurnFacts(agent_id=context.get("task_agent_id", ""), given=context.get("input_envelope") or {})
    seen = contract_protocol.examine(contract_fields.find(text), ANY_JSON, facts)
    found = {
        **_read(seen.reading),
        "repair_action": seen.checked.repair,
        "tier": seen.checked.tier,
        "parsed": _parsed(seen.contract or {}, facts),
    }
    return differences(found, vector["expect"])


def _read(reading: Reading) -> dict[str, JSON]:
    return {**judged(reading.issues, reading.warnings), "routing": routing(reading)}


def _parsed(contract: Mapping[str, JSON], facts: TurnFacts) -> dict[str, JSON]:
    output = contract_fields.output_of(contract)
    loop = output.loop_state
    return {
        **{field.name: getattr(output, field.name) for field in fields(output)},
        "loop_state": None if loop is None else asdict(loop),
        "memorialize_suggestions": output.memorialize_suggestions._asdict(),
        "update_contracts": [entry._asdict() for entry in output.update_contracts],
        "consolidation_required": contract_fields.consolidation_required(facts.given),
    }


def run_transition(vector: Mapping[str, Any]) -> list[str]:
    """Report a status after others."""
    given = vector["input"]
    record = contract_fields.Record()
    for status in given["history"]:
        record = contract_fields.report(record, status).record
    step = contract_fields.report(record, given["report"])
    found: dict[str, JSON] = {
        **judged(filter(None, [step.issue]), filter(None, [step.warning])),
        "parsed": {"recorded_state": step.record.status, "in_progress_count": step.record.in_progress},
    }
    if step.issue is None:
        way = contract_texts.verdict({}, step.record.status or "")
        found["routing"] = {"satisfied": way.satisfied, "action": way.action}
    else:
        found["routing"] = {"satisfied": None, "action": contract_fields.refusal(step.issue)}
    return differences(found, vector["expect"])


def run_merge(vector: Mapping[str, Any]) -> list[str]:
    """Merge one payload into one stored section."""
    given = vector["input"]
    name = given["contract"]
    done = contract_fields.apply_updates(
        {name: given["stored"]}, [{"contract": name, "payload": given["payload"]}], [name]
    )
    found = {
        **judged(done.issues, done.warnings),
        "parsed": {"stored_after": done.document[name]},
    }
    return differences(found, vector["expect"])


def run_updates(vector: Mapping[str, Any]) -> list[str]:
    """Apply the update clause of one contract to the project context."""
    given = vector["input"]
    done = contract_fields.apply_updates(
        given["stored"], given["update_contracts"], given["writable_sections"], given["agent"]
    )
    found = {
        **judged(done.issues, done.warnings),
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
    spared = contract_protocol.MOST_REPAIRS - context.get("max_repairs", contract_protocol.MOST_REPAIRS)
    repairs, seen = 0, None
    for text in given["outputs"]:
        facts = TurnFacts(agent_id=context.get("task_agent_id", ""), refused=repairs + spared)
        seen = contract_protocol.examine(contract_fields.find(text), ANY_JSON, facts)
        if seen.reading.accepted or seen.reading.action != "reissue":
            break
        repairs += 1
    if seen is None:
        return ["outputs: there are none"]
    record = contract_fields.remembered(seen.reading.memory)
    parsed = {
        **_parsed(seen.contract or {}, TurnFacts()),
        "recorded_state": record.status,
        "in_progress_count": record.in_progress,
    }
    return differences({**_read(seen.reading), "repairs": repairs, "parsed": parsed}, vector["expect"])


def run_approval(vector: Mapping[str, Any]) -> list[str]:
    """Ask a person, and use what is granted."""
    given = vector["input"]
    reading = contract_protocol.examine(given["contract"], ANY_JSON).reading
    grant = None
    if given["human"] == "approve" and reading.needs == "consent":
        grant = approval.sealed_from(approval.request_of(given["contract"]), _NOW).grant(_NOW)
    told = None if grant is None else grant.as_json()
    allowed = []
    for command in given.get("uses", []):
        may, grant = grant.use(command, _NOW) if grant else (False, None)
        allowed.append(may)
    found = {
        **judged(reading.issues, reading.warnings),
        "pause_kind": reading.needs,
        "resume": {"action": "reissue", "grant": told},
        "uses_allowed": allowed,
    }
    return differences(found, vector["expect"])


def run_envelope(vector: Mapping[str, Any]) -> list[str]:
    """Check an envelope that is an object already, and where it leads."""
    given, context = vector["input"], vector["input"]["context"]
    value = json.loads(generated(given["generate_json"])) if "generate_json" in given else given["object"]
    loop = context.get("loop") or {}
    facts = TurnFacts(
        meta=context.get("kernel") or {}, rounds=loop.get("iteration", 0), most_rounds=loop.get("max", 3)
    )
    reading = handoff_envelope.read_object(
        value, ANY_JSON, facts, profile=context["profile"], channel=context["channel"]
    )
    return differences(_found(reading), vector["expect"])


def _found(reading: Reading) -> dict[str, JSON]:
    fields = {
        "status": ["status"],
        "recommendation": ["routing", "recommendation"],
        "can_further_iteration_help": ["routing", "can_further_iteration_help"],
        "_envelope_source": ["_envelope_source"],
    }
    parsed = {name: get_path(reading.value, path) for name, path in fields.items()}
    return {
        **_read(reading),
        "accepted": reading.accepted,
        "parsed": {name: None if value is MISSING else value for name, value in parsed.items()},
    }


def run_parse(vector: Mapping[str, Any]) -> list[str]:
    """Find the object in a reply, without checking its fields."""
    value, issue = handoff_envelope.find(vector["input"]["text"])
    return differences({**judged(filter(None, [issue])), "parsed": value}, vector["expect"])


def run_finalization(vector: Mapping[str, Any]) -> list[str]:
    """Ask for the envelope until one is valid or the tries are used up; the work itself runs once."""
    given = vector["input"]
    tries = given["context"].get("max_attempts", handoff_envelope.MOST_TRIES)
    kernel = given["context"].get("kernel") or {}
    attempts, reading = 0, None
    for reply in given["finalization_replies"][:tries]:
        facts = TurnFacts(meta=kernel, refused=attempts + handoff_envelope.MOST_TRIES - tries)
        attempts += 1
        if isinstance(reply, str):
            reading = handoff_envelope.EnvelopeProtocol().read(reply, ANY_JSON, facts)
        else:
            reading = handoff_envelope.read_object(reply, ANY_JSON, facts)
        if reading.action != "reissue":
            break
    if reading is None:
        return ["finalization_replies: there are none"]
    return differences({**_found(reading), "attempts": attempts, "work_phase_runs": 1}, vector["expect"])


def run_path(vector: Mapping[str, Any]) -> list[str]:
    """Make names from ids, read ids from a name, or look an envelope up among files."""
    try:
        found = _path(vector["input"])
    except MateriaError as error:
        found = {"accepted": False, "errors": [error.where], "warnings": []}
    return differences(found, vector["expect"])


def _path(given: Mapping[str, Any]) -> dict[str, JSON]:
    fine = judged(())
    if "filename" in given:
        step = capabilities.parse_name(given["filename"])
        return {**fine, "step_id": step.step_id, "agent_key": step.agent_key, "draft": step.draft}
    if "files" in given:
        read = given["read"]
        lookup = capabilities.look_for(
            given["files"], read["flow"], read["step_id"], read["agent_key"], given.get("run_base", "")
        )
        return {**judged(lookup.issues, lookup.warnings), "accepted": lookup.path is not None}
    names = capabilities.names(given["run_base"], given["flow"], given["step_id"], given["agent_key"])
    return {**fine, "final": names.final, "draft": names.draft}


PROTOCOL_KINDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "envelope": run_envelope,
    "parse": run_parse,
    "finalization": run_finalization,
    "path": run_path,
    "output": run_output,
    "transition": run_transition,
    "merge": run_merge,
    "update_contracts": run_updates,
    "repair": run_repair,
    "approval": run_approval,
}
"""The kinds of vectors here, with the function that runs one."""
