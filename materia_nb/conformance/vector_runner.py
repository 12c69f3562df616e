"""One function for each kind of vector; each returns what differed, an empty list when nothing did."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from materia_nb.agents import AgentTable
from materia_nb.agents.interface import Reply, Turn, Usage
from materia_nb.cast import Cast, Plan, start_cast
from materia_nb.conformance.protocol_vectors import PROTOCOL_KINDS, differences
from materia_nb.errors import MateriaError
from materia_nb.handoff import protocol
from materia_nb.handoff.protocol import requirements
from materia_nb.jsonvalue import JSON, compact, same
from materia_nb.loadout import LoadoutError, build_graph, check_config
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.resolve import sketch_graph

_ON_STDIN_SINCE = ("executionScope", "baseScope")
"""What utilities are given since the vectors were made that list what they are given.

P8 says without a condition that utilities get both, the newer reference gives both in every cast that it recorded, and the
programs of these very vectors take both away before they show the rest: only the list of names is older. So they are passed over
in such a list, rather than left out of stdin where a cast has no scope but the base, which a utility could then not ask for.
"""
_LONG = re.compile(r"(.*)…\[string of (\d+) chars\]", re.DOTALL)


def run_vector(vector: Mapping[str, Any]) -> list[str]:
    """Run one vector and say what differed from what it expects."""
    kind = vector.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return [f"kind: {kind!r} is not one of {', '.join(KINDS)}"]
    try:
        return KINDS[kind](vector)
    except MateriaError as error:
        return [f"stopped by an error: {error.what}"]
    except Exception as error:  # noqa: BLE001 - a crash on one vector is a failure of that vector
        return [f"stopped by an unexpected error: {error!r}"]


def run_validate(vector: Mapping[str, Any]) -> list[str]:
    """Check a config: whether it is valid, and that the named problems are among those found."""
    report = check_config(vector["config"])
    expect = vector["expect"]
    found = {(problem.code, problem.source) for problem in report.problems}
    wrong = []
    if (not found) != expect["ok"]:
        wrong.append(f"ok: expected {expect['ok']}, found the problems {sorted(found)}")
    missing = [pair for pair in expect.get("problems", []) if tuple(pair) not in found]
    if missing:
        wrong.append(f"problems: {missing} not among {sorted(found)}")
    return wrong


def run_handoff(vector: Mapping[str, Any]) -> list[str]:
    """Read one output at a socket: accepted and parsed, or refused for the expected reasons."""
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
    reading = protocol(resolved.handoff).read(vector["text"], requirements(resolved))
    expect = vector["expect"]
    wrong = []
    if reading.accepted != expect["accepted"]:
        wrong.append(f"accepted: expected {expect['accepted']}, found {reading.error}: {reading.issues}")
    if "parsed" in expect and not same(reading.value, expect["parsed"]):
        wrong.append(f"parsed: expected {compact(expect['parsed'])}, found {compact(reading.value)}")
    if "error" in expect and reading.error != expect["error"]:
        wrong.append(f"error: expected {expect['error']}, found {reading.error}")
    if "paths" in expect:
        paths = {issue.path for issue in reading.issues}
        if paths != set(expect["paths"]):
            wrong.append(f"paths: expected {sorted(expect['paths'])}, found {sorted(paths)}")
    return wrong


def _socket_of(document: JSON) -> Socket:
    """Resolve the socket of a vector; one of a parallel generator lacks the loop that its loadout would have."""
    try:
        graph = build_graph(document)
    except LoadoutError:
        graph = sketch_graph(document, None)
    return graph.sockets["Socket-1"]


class _VectorAgent:
    """Gives the n-th turn of a socket its n-th reply, and notes what the engine told it."""

    name = "vector"

    def __init__(self, replies: Mapping[str, Sequence[Any]]) -> None:
        self.replies = replies
        self.given: dict[str, int] = {}
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
        self.given[turn.socket_id] = self.given.get(turn.socket_id, 0) + 1
        if isinstance(entry, str):
            return Reply(entry)
        usage = entry.get("usage")
        return Reply(entry["text"], Usage(usage["input"], usage["output"]) if usage else None)

    def peek(self, socket: str) -> Any:
        """The next reply of a socket, None when there is none."""
        replies = self.replies.get(socket, [])
        index = self.given.get(socket, 0)
        return replies[index] if index < len(replies) else None


def run_cast(vector: Mapping[str, Any]) -> list[str]:
    """Run a whole cast with real utilities and the vector's replies, and compare how it went."""
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
                return  # the replies ran out: the comparison will show it
            if isinstance(entry, dict) and "user" in entry:
                cast.refine(entry["user"])
            elif visit.mode == "draft" and visit.drafts:
                cast.accept()
            else:
                return


def _compare(cast: Cast, agent: _VectorAgent, expect: Mapping[str, Any]) -> list[str]:
    state = cast.now.engine
    hidden = {"item", "workItem", "currentWorkItem"} | {
        path[0] for one in state.shown for path in one.walk.paths if len(path) == 1
    }
    hidden |= {here.socket.iterator.alias for here in cast.now.rules.sockets.values() if here.socket.iterator}
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
    """Write a long string the way the vector does, when it is the string that the vector means."""
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


KINDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "cast": run_cast,
    "validate": run_validate,
    "handoff": run_handoff,
    **PROTOCOL_KINDS,
}
"""The kinds of vectors that can be run, with the function that runs one."""

NEEDED: dict[str, tuple[str, ...]] = {
    "cast": ("config",),
    "validate": ("config",),
    "handoff": ("text", "materia", "socket"),
    **dict.fromkeys(PROTOCOL_KINDS, ("input",)),
}
"""The fields that a vector of each kind must have, beside id, kind and expect."""
