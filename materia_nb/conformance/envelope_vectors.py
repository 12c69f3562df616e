"""The vectors of the handoff envelope."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from materia_nb.conformance.vector_parts import ANY_JSON, codes, differences, generated, routing
from materia_nb.errors import MateriaError
from materia_nb.handoff import Reading, TurnFacts
from materia_nb.handoff import envelope as protocol
from materia_nb.jsonvalue import JSON, MISSING, get_path


def run_envelope(vector: Mapping[str, Any]) -> list[str]:
    """Check an envelope that is an object already, and where it leads."""
    given, context = vector["input"], vector["input"]["context"]
    value = json.loads(generated(given["generate_json"])) if "generate_json" in given else given["object"]
    loop = context.get("loop") or {}
    facts = TurnFacts(
        meta=context.get("kernel") or {}, rounds=loop.get("iteration", 0), most_rounds=loop.get("max", 3)
    )
    reading = protocol.read_object(
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
        "accepted": reading.accepted,
        "errors": codes(reading.issues),
        "warnings": codes(reading.warnings),
        "routing": routing(reading),
        "parsed": {name: None if value is MISSING else value for name, value in parsed.items()},
    }


def run_parse(vector: Mapping[str, Any]) -> list[str]:
    """Find the object in a reply, without checking its fields."""
    value, issue = protocol.find(vector["input"]["text"])
    found = {
        "accepted": issue is None,
        "errors": codes([issue] if issue else []),
        "warnings": [],
        "parsed": value,
    }
    return differences(found, vector["expect"])


def run_finalization(vector: Mapping[str, Any]) -> list[str]:
    """Ask for the envelope until one is valid or the tries are used up; the work itself runs once."""
    given = vector["input"]
    tries = given["context"].get("max_attempts", protocol.MOST_TRIES)
    kernel = given["context"].get("kernel") or {}
    attempts, reading = 0, None
    for reply in given["finalization_replies"][:tries]:
        facts = TurnFacts(meta=kernel, refused=attempts + protocol.MOST_TRIES - tries)
        attempts += 1
        if isinstance(reply, str):
            reading = protocol.EnvelopeProtocol().read(reply, ANY_JSON, facts)
        else:
            reading = protocol.read_object(reply, ANY_JSON, facts)
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
    fine: dict[str, JSON] = {"accepted": True, "errors": [], "warnings": []}
    if "filename" in given:
        step = protocol.parse_name(given["filename"])
        return {**fine, "step_id": step.step_id, "agent_key": step.agent_key, "draft": step.draft}
    if "files" in given:
        read = given["read"]
        lookup = protocol.look_for(
            given["files"], read["flow"], read["step_id"], read["agent_key"], given.get("run_base", "")
        )
        return {
            "accepted": lookup.path is not None,
            "errors": codes(lookup.issues),
            "warnings": codes(lookup.warnings),
        }
    names = protocol.names(given["run_base"], given["flow"], given["step_id"], given["agent_key"])
    return {**fine, "final": names.final, "draft": names.draft}
