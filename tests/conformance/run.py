"""Run conformance vectors through the public API: ``python tests/conformance/run.py FILE...``.

Each kind of vector has a function that returns the differences from the expected result. The program prints a line for
each failed vector, and a total for each kind.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from materia_nb.agents import AgentTable
from materia_nb.agents.interface import Reply, Turn, Usage
from materia_nb.cast import Cast, Plan, start_cast
from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain
from materia_nb.handoff import (
    Issue,
    Reading,
    Requirements,
    TurnFacts,
    contract_fields,
    contract_protocol,
    protocol,
    requirements_of,
    runtime_rules,
)
from materia_nb.handoff import envelope_protocol as handoff_envelope
from materia_nb.jsonvalue import JSON, MISSING, compact, equal_json, get_path
from materia_nb.loadout import LoadoutError, build_graph, check_config
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.resolve import sketch_graph

_ANY_JSON = Requirements("json", False, None, False, True, frozenset(), ())
"""The requirements of a socket that needs no verdict and has no assignments."""


def generated(recipe: Mapping[str, Any]) -> str:
    """Return a long text from a recipe: its template with "@@" replaced by the repeated unit."""
    return str(recipe["template"]).replace("@@", recipe["unit"] * recipe["times"])


def codes(issues: Iterable[Issue]) -> list[JSON]:
    """Return the code of each issue, or its path if it has no code."""
    return [issue.code or issue.path for issue in issues]


def judged(issues: Iterable[Issue], warnings: Iterable[Issue] = ()) -> dict[str, JSON]:
    """Return the issues of a refusal and the warnings in the format of the vectors."""
    errors = codes(issues)
    return {"accepted": not errors, "errors": errors, "warnings": codes(warnings)}


def routing(reading: Reading) -> dict[str, JSON]:
    """Return the routing part of a parsed output in the format of the vectors."""
    found: dict[str, JSON] = {"satisfied": reading.satisfied, "action": reading.action}
    return found if reading.target is None else {**found, "target": reading.target}


def differences(found: Mapping[str, JSON], expect: Mapping[str, JSON]) -> list[str]:
    """Return the differences from ``expect``; the order of ``errors`` and ``warnings`` is ignored, and ``parsed`` is
    compared only if it is expected.
    """
    mismatches = []
    for name, wanted in expect.items():
        if name not in found:
            mismatches.append(f"{name}: the result has no field with this name")
        elif not _equal(name, found[name], wanted):
            mismatches.append(f"{name}: expected {compact(wanted)[:2000]}, found {compact(found[name])[:2000]}")
    return mismatches


def _equal(name: str, found: JSON, wanted: JSON) -> bool:
    if name in ("errors", "warnings") and isinstance(wanted, list):
        return Counter(found) == Counter(wanted)
    if name == "parsed" and isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and equal_json(found[key], value) for key, value in wanted.items())
    return equal_json(found, wanted)


_NOW = 1_000_000.0


def _run_output(vector: Mapping[str, Any]) -> list[str]:
    """Parse one reply; return the differences in its issues, its repair and its route."""
    vector_input, context = vector["input"], vector["input"].get("context") or {}
    text = generated(vector_input["generate"]) if "generate" in vector_input else vector_input["text"]
    facts = TurnFacts(agent_id=context.get("task_agent_id", ""), assignment=context.get("input_envelope") or {})
    examined = contract_protocol.examine_contract(contract_fields.contract_in(text), _ANY_JSON, facts)
    found = {
        **_read(examined.reading),
        "repair_action": examined.checked.repair,
        "tier": examined.checked.tier,
        "parsed": _parsed(examined.checked.contract, facts),
    }
    return differences(found, vector["expect"])


def _read(reading: Reading) -> dict[str, JSON]:
    return {**judged(reading.issues, reading.warnings), "routing": routing(reading)}


def _parsed(output: contract_fields.Contract, facts: TurnFacts) -> dict[str, JSON]:
    loop = output.loop_state
    return {
        **vars(output),
        "loop_state": None if loop is None else asdict(loop),
        "memorialize_suggestions": output.memorialize_suggestions._asdict(),
        "update_contracts": [entry._asdict() for entry in output.update_contracts],
        "consolidation_required": contract_fields.consolidation_required(facts.assignment),
    }


def _run_transition(vector: Mapping[str, Any]) -> list[str]:
    """Parse a reply that reports a status after earlier statuses."""
    vector_input = vector["input"]
    record = contract_fields.StatusRecord()
    for status in vector_input["history"]:
        record = contract_fields.record_status(record, status).record
    step = contract_fields.record_status(record, vector_input["report"])
    found: dict[str, JSON] = {
        **judged(filter(None, [step.issue]), filter(None, [step.warning])),
        "parsed": {"recorded_state": step.record.status, "in_progress_count": step.record.in_progress},
    }
    if step.issue is None:
        verdict = contract_fields.contract_verdict(contract_fields.Contract({}), step.record.status or "")
        found["routing"] = {"satisfied": verdict.satisfied, "action": verdict.action}
    else:
        found["routing"] = {"satisfied": None, "action": contract_fields.action_after_refusal(step.issue)}
    return differences(found, vector["expect"])


def _run_merge(vector: Mapping[str, Any]) -> list[str]:
    """Merge one update into one stored section."""
    vector_input = vector["input"]
    name = vector_input["contract"]
    update = runtime_rules.apply_updates(
        {name: vector_input["stored"]}, [{"contract": name, "payload": vector_input["payload"]}], [name]
    )
    found = {
        **judged(update.issues, update.warnings),
        "parsed": {"stored_after": update.document[name]},
    }
    return differences(found, vector["expect"])


def _run_updates(vector: Mapping[str, Any]) -> list[str]:
    """Apply the update clause of one contract to the project context."""
    vector_input = vector["input"]
    update = runtime_rules.apply_updates(
        vector_input["stored"],
        vector_input["update_contracts"],
        vector_input["writable_sections"],
        vector_input["agent"],
    )
    found = {
        **judged(update.issues, update.warnings),
        "parsed": {
            "applied": list(update.applied),
            "rejected": list(update.rejected),
            "stored_after": dict(update.document),
        },
    }
    return differences(found, vector["expect"])


def _run_repair(vector: Mapping[str, Any]) -> list[str]:
    """Parse replies until one is accepted or the repairs are used up."""
    vector_input, context = vector["input"], vector["input"]["context"]
    unavailable_repairs = contract_protocol.MAX_REPAIRS - context.get("max_repairs", contract_protocol.MAX_REPAIRS)
    repairs, examined = 0, None
    for text in vector_input["outputs"]:
        facts = TurnFacts(agent_id=context.get("task_agent_id", ""), refused=repairs + unavailable_repairs)
        examined = contract_protocol.examine_contract(contract_fields.contract_in(text), _ANY_JSON, facts)
        if examined.reading.accepted or examined.reading.action != "reissue":
            break
        repairs += 1
    if examined is None:
        return ["outputs: there are none"]
    record = contract_fields.restore_status(examined.reading.memory)
    parsed = {
        **_parsed(examined.checked.contract, TurnFacts()),
        "recorded_state": record.status,
        "in_progress_count": record.in_progress,
    }
    return differences({**_read(examined.reading), "repairs": repairs, "parsed": parsed}, vector["expect"])


def _run_approval(vector: Mapping[str, Any]) -> list[str]:
    """Request an approval, grant it as a person, and use it."""
    vector_input = vector["input"]
    reading = contract_protocol.examine_contract(vector_input["contract"], _ANY_JSON).reading
    approval = None
    if vector_input["human"] == "approve" and reading.needs == "approval":
        approval = runtime_rules.seal_request(runtime_rules.request_of(vector_input["contract"]), _NOW).approve(_NOW)
    approval_json = None if approval is None else approval.as_json()
    allowed = []
    for command in vector_input.get("uses", []):
        is_allowed, approval = approval.use(command, _NOW) if approval else (False, None)
        allowed.append(is_allowed)
    found = {
        **judged(reading.issues, reading.warnings),
        "pause_kind": reading.needs,
        "resume": {"action": "reissue", "grant": approval_json},
        "uses_allowed": allowed,
    }
    return differences(found, vector["expect"])


def _run_envelope(vector: Mapping[str, Any]) -> list[str]:
    """Check an envelope that is already a parsed object, and the resulting route."""
    vector_input, context = vector["input"], vector["input"]["context"]
    value = (
        json.loads(generated(vector_input["generate_json"]))
        if "generate_json" in vector_input
        else vector_input["object"]
    )
    loop = context.get("loop") or {}
    facts = TurnFacts(meta=context.get("kernel") or {}, rounds=loop.get("iteration", 0), max_rounds=loop.get("max", 3))
    reading = handoff_envelope.read_envelope(
        value, _ANY_JSON, facts, profile=context["profile"], channel=context["channel"]
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


def _run_parse(vector: Mapping[str, Any]) -> list[str]:
    """Find the object in a reply without checking its fields."""
    value, issue = handoff_envelope.envelope_in(vector["input"]["text"])
    return differences({**judged(filter(None, [issue])), "parsed": value}, vector["expect"])


def _run_finalization(vector: Mapping[str, Any]) -> list[str]:
    """Request an envelope until one is valid or the attempts are used up; the work itself runs once."""
    vector_input = vector["input"]
    max_tries = vector_input["context"].get("max_attempts", handoff_envelope.MAX_TRIES)
    kernel = vector_input["context"].get("kernel") or {}
    attempts, reading = 0, None
    for reply in vector_input["finalization_replies"][:max_tries]:
        facts = TurnFacts(meta=kernel, refused=attempts + handoff_envelope.MAX_TRIES - max_tries)
        attempts += 1
        if isinstance(reply, str):
            reading = handoff_envelope.EnvelopeProtocol().read(reply, _ANY_JSON, facts)
        else:
            reading = handoff_envelope.read_envelope(reply, _ANY_JSON, facts)
        if reading.action != "reissue":
            break
    if reading is None:
        return ["finalization_replies: there are none"]
    return differences({**_found(reading), "attempts": attempts, "work_phase_runs": 1}, vector["expect"])


def run_path(vector: Mapping[str, Any]) -> list[str]:
    """Build file names from ids, parse ids from a file name, or find an envelope among files."""
    try:
        found = _path(vector["input"])
    except MateriaError as error:
        found = {"accepted": False, "errors": [error.where], "warnings": []}
    return differences(found, vector["expect"])


def _path(vector_input: Mapping[str, Any]) -> dict[str, JSON]:
    no_issues = judged(())
    if "filename" in vector_input:
        return {**no_issues, **_parse_envelope_name(vector_input["filename"])}
    if "files" in vector_input:
        return _find_envelope(vector_input["files"], vector_input["read"], vector_input.get("run_base", ""))
    names = runtime_rules.envelope_files(
        vector_input["run_base"], vector_input["flow"], vector_input["step_id"], vector_input["agent_key"]
    )
    return {**no_issues, "final": names.final, "draft": names.draft}


def _parse_envelope_name(filename: str) -> dict[str, JSON]:
    """Split a file name at its first hyphen, and check that the package builds the same name from the parts."""
    is_draft = filename.endswith(".draft.json")
    stem = filename.removesuffix(".draft.json" if is_draft else ".json")
    step_id, _, agent_key = stem.partition("-")
    names = runtime_rules.envelope_files("", "f", step_id, agent_key)
    made = names.draft if is_draft else names.final
    if made != f"f/handoffs/{filename}":
        raise MateriaError(f"{filename!r} is not the name of an envelope.", where="PATH_UNSAFE:filename")
    return {"step_id": step_id, "agent_key": agent_key, "draft": is_draft}


def _find_envelope(files: Sequence[str], read: Mapping[str, str], run_base: str) -> dict[str, JSON]:
    """Find the envelope of a step among files; if only a draft exists, the turn is unfinished."""
    names = runtime_rules.envelope_files(run_base, read["flow"], read["step_id"], read["agent_key"])
    if names.final in files:
        return judged(())
    warnings: list[JSON] = ["DRAFT_PRESENT"] if names.draft in files else []
    return {"accepted": False, "errors": ["ENVELOPE_MISSING"], "warnings": warnings}


_PROTOCOL_KINDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "envelope": _run_envelope,
    "parse": _run_parse,
    "finalization": _run_finalization,
    "path": run_path,
    "output": _run_output,
    "transition": _run_transition,
    "merge": _run_merge,
    "update_contracts": _run_updates,
    "repair": _run_repair,
    "approval": _run_approval,
}
"""The functions that run vectors about protocols, by kind of vector."""


_ON_STDIN_SINCE = ("executionScope", "baseScope")
"""Fields of a utility's input that are newer than the vectors that list the input fields.

P8 requires both fields in every cast, and the reference engine writes both in every cast that it recorded. Only the
lists of field names in the vectors are older, so the fields are ignored when such a list is compared.
"""
_LONG = re.compile(r"(.*)…\[string of (\d+) chars\]", re.DOTALL)


def run_vector(vector: Mapping[str, Any]) -> list[str]:
    """Run a vector and return the differences from the expected result."""
    kind = vector.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        return [f"kind: {kind!r} is not one of {', '.join(_KINDS)}"]
    try:
        return _KINDS[kind](vector)
    except MateriaError as error:
        return [f"stopped by an error: {error.what}"]
    except Exception as error:  # noqa: BLE001 - a crash on one vector is a failure of that vector
        return [f"stopped by an unexpected error: {error!r}"]


def _run_validate(vector: Mapping[str, Any]) -> list[str]:
    """Check whether a config has the expected validity and the expected problems."""
    report = check_config(vector["config"])
    expect = vector["expect"]
    found = {(problem.code, problem.source) for problem in report.problems}
    mismatches = []
    if (not found) != expect["ok"]:
        mismatches.append(f"ok: expected {expect['ok']}, found the problems {sorted(found)}")
    missing = [pair for pair in expect.get("problems", []) if tuple(pair) not in found]
    if missing:
        mismatches.append(f"problems: {missing} not among {sorted(found)}")
    return mismatches


def _run_handoff(vector: Mapping[str, Any]) -> list[str]:
    """Parse one output of a socket, and check that it is accepted or refused for the expected reasons."""
    socket = {**vector["socket"], "materia": "M"}
    others = {edge["to"] for edge in socket.get("edges", []) if edge.get("to") != "end"}
    document = {
        "loadouts": {
            "T": {
                "entry": "Socket-1",
                "sockets": {"Socket-1": socket, **{name: {"materia": "N"} for name in others}},
            }
        },
        "materia": {"M": vector["materia"], "N": {"type": "agent", "prompt": "next", "tools": "none"}},
    }
    resolved = _socket_of(document)
    reading = protocol(resolved.handoff).read(vector["text"], requirements_of(resolved))
    expect = vector["expect"]
    mismatches = []
    if reading.accepted != expect["accepted"]:
        mismatches.append(f"accepted: expected {expect['accepted']}, found {reading.error}: {reading.issues}")
    if "parsed" in expect and not equal_json(reading.value, expect["parsed"]):
        mismatches.append(f"parsed: expected {compact(expect['parsed'])}, found {compact(reading.value)}")
    if "error" in expect and reading.error != expect["error"]:
        mismatches.append(f"error: expected {expect['error']}, found {reading.error}")
    if "paths" in expect:
        paths = {issue.path for issue in reading.issues}
        if paths != set(expect["paths"]):
            mismatches.append(f"paths: expected {sorted(expect['paths'])}, found {sorted(paths)}")
    return mismatches


def _socket_of(document: JSON) -> Socket:
    """Resolve the socket of a vector; a parallel generator gets the loop that its loadout would have."""
    try:
        graph = build_graph(document)
    except LoadoutError:
        graph = sketch_graph(document, None)
    return graph.sockets["Socket-1"]


class _VectorAgent:
    """An agent that gives the n-th reply in the n-th turn of a socket, and records the prompts."""

    name = "vector"

    def __init__(self, replies: Mapping[str, Sequence[Any]]) -> None:
        self.replies = replies
        self.turn_counts: dict[str, int] = {}
        self.cast: Cast | None = None
        self.instructions: list[list[JSON]] = []
        self.follow_up: list[list[JSON]] = []

    def answer(self, turn: Turn) -> Reply | None:
        prompt = self.cast.now.prompt if self.cast else None
        if prompt is not None:
            self.instructions.append([turn.socket_id, prompt.instruction])
            self.follow_up.append([turn.socket_id, turn.item_key, list(prompt.reasons)])
        entry = self.peek(turn.socket_id)
        if entry is None:
            return None
        self.turn_counts[turn.socket_id] = self.turn_counts.get(turn.socket_id, 0) + 1
        if isinstance(entry, str):
            return Reply(entry)
        usage = entry.get("usage")
        return Reply(entry["text"], Usage(usage["input"], usage["output"]) if usage else None)

    def peek(self, socket: str) -> Any:
        """Return the next reply of a socket, or None."""
        replies = self.replies.get(socket, [])
        index = self.turn_counts.get(socket, 0)
        return replies[index] if index < len(replies) else None


def _run_cast(vector: Mapping[str, Any]) -> list[str]:
    """Run a complete cast with real utilities and the replies of the vector, and compare its route and result."""
    expect = vector["expect"]
    try:
        graph = build_graph(vector["config"])
    except LoadoutError as error:
        if expect["outcome"] == "refused":
            return []
        return [f"outcome: expected {expect['outcome']}, but the config was refused: {error.what}"]
    if expect["outcome"] == "refused":
        return ["outcome: expected the config to be refused, but it is valid"]
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        plan = Plan(graph, vector["config"], "vector", project, project / "casts")
        agent = _VectorAgent(vector.get("replies", {}))
        cast = start_cast(plan, vector.get("request", ""), AgentTable(agent))
        agent.cast = cast
        try:
            _play(cast, agent)
            return _compare(cast, agent, expect)
        finally:
            cast.close()


def _play(cast: Cast, agent: _VectorAgent) -> None:
    while cast.status == "ready":
        cast.run()
        while (visit := cast.now.waiting_at) is not None:
            entry = agent.peek(visit.socket)
            if entry is None:
                return  # the replies are used up; the comparison reports the difference
            if isinstance(entry, dict) and "user" in entry:
                cast.refine(entry["user"])
            elif visit.mode == "draft" and visit.drafts:
                cast.accept()
            else:
                return


def _compare(cast: Cast, agent: _VectorAgent, expect: Mapping[str, Any]) -> list[str]:
    state = cast.now.engine
    hidden = {"item", "workItem", "currentWorkItem"} | {
        path[0] for one in state.shown for path in one.iteration.paths if len(path) == 1
    }
    hidden |= {
        socket_rules.socket.iterator.alias
        for socket_rules in cast.now.rules.sockets.values()
        if socket_rules.socket.iterator
    }
    found: dict[str, JSON] = {
        "outcome": state.status,
        "failure": state.failure.kind if state.failure else None,
        "route": [list(visit) for visit in cast.route],
        "data": {key: value for key, value in state.data.items() if key not in hidden},
        "cursors": dict(state.cursors),
        "visits": dict(state.visits),
        "edgeTraversals": dict(state.traversals),
        "instructions": agent.instructions,
        "followUp": agent.follow_up,
    }
    shown = {name: _abbreviated(value, expect.get(name)) for name, value in found.items()}
    return differences(shown, expect)


def _abbreviated(found: JSON, wanted: JSON) -> JSON:
    """Return a long string in the abbreviated format of the vector if the vector abbreviates this string."""
    if isinstance(found, str) and isinstance(wanted, str) and (match := _LONG.fullmatch(wanted)):
        head, length = match.group(1), int(match.group(2))
        return wanted if len(found) == length and found.startswith(head) else found
    if isinstance(found, dict) and isinstance(wanted, dict):
        return {key: _abbreviated(value, wanted.get(key)) for key, value in found.items()}
    if isinstance(found, list) and isinstance(wanted, list):
        found = [one for one in found if one not in _ON_STDIN_SINCE or one in wanted]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [_abbreviated(a, b) for a, b in zip(found, wanted, strict=True)]
    return found


_KINDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "cast": _run_cast,
    "validate": _run_validate,
    "handoff": _run_handoff,
    **_PROTOCOL_KINDS,
}
"""The functions that run vectors, by kind of vector."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "cast": ("config",),
    "validate": ("config",),
    "handoff": ("text", "materia", "socket"),
    **dict.fromkeys(_PROTOCOL_KINDS, ("input",)),
}
"""The required fields of a vector in addition to id, kind and expect, by kind."""


_USAGE: Final = "usage: python tests/conformance/run.py FILE...\n\nFILE holds one JSON vector a line.\n"


class UnusableInput(Exception):
    """Raised if a file cannot be read or one of its lines is not a vector; the message names the location."""


def main(arguments: Sequence[str]) -> int:
    """Run the vector files. Return 0 if all vectors passed, 1 if some failed, or 2 if the input is unusable."""
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(_USAGE)
        return 0 if arguments else 2
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    try:
        for name in arguments:
            for vector in _vectors(name):
                kind, mismatches = str(vector["kind"]), run_vector(vector)
                (failed if mismatches else passed)[kind] += 1
                if mismatches:
                    _say(f"FAILED {kind} {vector['id']}: " + " | ".join(mismatches))
    except UnusableInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for kind in sorted(passed | failed):
        _say(f"{kind}: {passed[kind]} passed, {failed[kind]} failed")
    return 1 if failed else 0


def _vectors(name: str) -> Iterator[dict[str, Any]]:
    try:
        lines = read_plain(name, follow=True).split(b"\n")
    except OSError as error:
        raise UnusableInput(f"{name}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            vector = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnusableInput(f"{place}: not JSON: {error}") from error
        if not isinstance(vector, dict):
            raise UnusableInput(f"{place}: not a vector: an object is needed")
        missing = {"id", "kind", "expect", *_NEEDED.get(str(vector.get("kind")), ())} - vector.keys()
        if missing:
            raise UnusableInput(f"{place}: not a vector: it has no {', '.join(sorted(missing))}")
        yield vector


def _say(line: str) -> None:
    # A vector may contain characters that the terminal's encoding cannot represent.
    sys.stdout.write(line.encode(sys.stdout.encoding or "utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
