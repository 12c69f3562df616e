"""Provide loadouts, agents and comparisons for the tests of casts and their files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import builders
from builders import at
from builders import document as config
from materia_nb.agents import AgentTable
from materia_nb.agents.interface import Reply, Turn
from materia_nb.cast import Cast, Plan, start_cast
from materia_nb.cast.runner import Runner
from materia_nb.cast.runner_factory import start_runner
from materia_nb.engine.state import CastState
from materia_nb.jsonvalue import equal_json
from materia_nb.loadout import build_graph

Json = dict[str, Any]

YES, NO = '{"satisfied": true, "context": "well done"}', '{"satisfied": false, "context": "once more"}'


def item(title: str) -> Json:
    return {"title": title, "context": f"about {title}"}


def items(*titles: str) -> list[Json]:
    return [item(title) for title in titles]


def agent(prompt: str = "Do {{request}}", **fields: Any) -> Json:
    return builders.agent(prompt, **fields)


def python(code: str, **fields: Any) -> Json:
    """Return a utility that runs ``code`` in Python without site packages, because that starts quickly."""
    return {"type": "utility", "command": [sys.executable, "-I", "-S", "-c", code], **fields}


def loop_config(**top: Any) -> Json:
    """Return a config whose agents plan items, build and check each item, and then tell the result."""
    return config(
        {
            "Socket-1": at("Plan", ("always", "Socket-2"), parse="json"),
            "Socket-2": at("Build", ("always", "Socket-3")),
            "Socket-3": at("Check", ("satisfied", "Socket-2"), ("not_satisfied", "Socket-2", 3), parse="json"),
            "Socket-4": at("Tell"),
        },
        {
            "Plan": agent("Plan {{request}}", generator=True),
            "Build": agent("Build {{item.title}}"),
            "Check": agent("Check {{lastOutput}}"),
            "Tell": agent("Tell {{state.context}}"),
        },
        {
            "L": {
                "sockets": ["Socket-2", "Socket-3"],
                "consumes": {"from": "Socket-1", "output": "workItems"},
                "exits": [{"id": "e", "from": "Socket-3", "condition": "satisfied", "targetSocketId": "Socket-4"}],
            }
        },
        **top,
    )


def one_config(materia: Json | None = None, **socket: Any) -> Json:
    """Return a config with one socket."""
    return config({"Socket-1": at("M", **socket)}, {"M": materia or agent()})


def chain_config(count: int = 3, **socket: Any) -> Json:
    """Return a config with a chain of text agents."""
    sockets = {
        f"Socket-{n}": at("M", *([("always", f"Socket-{n + 1}")] if n < count else []), **socket)
        for n in range(1, count + 1)
    }
    return config(sockets, {"M": agent("{{request}} {{lastOutput}}")})


def plan(root: Path, document: Mapping[str, Any], **fields: Any) -> Plan:
    return Plan(build_graph(document), document, "test", root, root / "casts", **fields)


def start(
    root: Path,
    document: Mapping[str, Any],
    agents: Mapping[str, object] | object = None,
    request: str = "the widget",
    **fields: Any,
) -> Cast:
    return start_cast(plan(root, document, **fields), request, table(agents))


class Until:
    """An agent that returns the specified texts, for all turns or for some kinds of turn, and then needs a person."""

    name = "until"

    def __init__(self, *texts: str, kinds: Sequence[str] = ()) -> None:
        self.texts, self.kinds = list(texts), kinds

    def answer(self, turn: Turn) -> Reply | None:
        asked = not self.kinds or turn.kind in self.kinds
        return Reply(self.texts.pop(0)) if asked and self.texts else None


def table(agents: Mapping[str, object] | object = None) -> AgentTable:
    """Return an agent table from agents by socket or materia, or from one agent for all sockets."""
    if not isinstance(agents, Mapping):
        return AgentTable(agents)
    made = AgentTable()
    for name, one in agents.items():
        made.set(name, one)
    return made


def loop_agents(count: int = 2, refuse: Sequence[int] = (), long: str = "") -> dict[str, Callable[..., str]]:
    """Return agents for :func:`loop_config` that always give the same answers.

    Args:
        count: the number of planned items.
        refuse: the numbers of the visits in which the check is not satisfied.
        long: text that is appended to the plan and the builds to make the outputs too long for the journal.
    """

    def check(visit: int) -> str:
        return NO if visit in refuse else YES

    return {
        "Plan": lambda: json.dumps(
            {"workItems": items(*[f"Part {n}" for n in range(1, count + 1)])} | ({"context": long} if long else {})
        ),
        "Build": lambda prompt, visit: f"built {visit}: {prompt.splitlines()[0]}{long}",
        "Check": check,
        "Tell": lambda: "told",
    }


def lines_of(cast: Cast | Path) -> list[Json]:
    path = cast.run_dir if isinstance(cast, Cast) else cast
    return [json.loads(line) for line in (path / "events.jsonl").read_bytes().splitlines()]


def types_of(cast: Cast | Path) -> list[str]:
    return [line["type"] for line in lines_of(cast)]


def timeless(state: CastState) -> CastState:
    """Return a state without the working times of agents and processes."""
    return state._replace(usage=state.usage._replace(worked=0, untimed=0))


def facts(cast: Cast) -> dict[str, Any]:
    """Return the complete content of a cast except its times, for comparisons."""
    found = cast.runner.session._asdict()
    found["steps"] = [
        step._replace(
            started=0,
            ended=step.ended and 0,
            worked=0,
            states=(timeless(step.before), timeless(step.after)),
            turns=tuple(turn._replace(worked=0) for turn in step.turns),
        )
        for step in cast.steps
    ]
    found["state"] = timeless(found["state"])
    found["edits"] = [edit._replace(ts=0) for edit in cast.now.edits]
    return found


def assert_same(one: Cast, other: Cast) -> None:
    """Assert that two casts are equal in every field."""
    actual = facts(one)
    for name, wanted in facts(other).items():
        assert actual[name] == wanted, name
    assert equal_json(dict(one.state), dict(other.state))


class WatchedCast(Cast):
    """A cast that records the number of journal lines and the session after every change."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.seen = [(1, runner.session)]
        self.follow.changes(lambda cast: self.seen.append((len(lines_of(self)), cast.runner.session)))


def watched(root: Path, document: Mapping[str, Any], agents: Mapping[str, object] | object = None) -> WatchedCast:
    return WatchedCast(start_runner(plan(root, document), "the widget", table(agents)))


def prefix(cast_dir: Path, count: int, to: Path) -> Path:
    """Copy a run directory with only its first ``count`` events, as it was before the first pause of the cast."""
    shutil.copytree(cast_dir, to)
    (to / "manifest.json").unlink(missing_ok=True)
    kept = (cast_dir / "events.jsonl").read_bytes().splitlines(keepends=True)[:count]
    (to / "events.jsonl").write_bytes(b"".join(kept))
    return to


def work_turn(project: Path, prompt: str, **fields: Any) -> Turn:
    """Return the first turn of a visit to the socket of a materia named Build."""
    return Turn(
        socket_id="Socket-1",
        materia_id="Build",
        materia_label="Build",
        visit=1,
        kind="work",
        prompt=prompt,
        project=project,
        **fields,
    )
