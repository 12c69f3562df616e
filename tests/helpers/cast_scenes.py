"""Create casts that have stopped for different reasons; each scene takes a folder and returns a cast."""

from __future__ import annotations

import json

import cast_helpers as h
from materia_nb.agents.interface import AgentError, NeedsApproval, Reply, ToolCall, Usage
from materia_nb.cast import open_cast
from protocol_helpers import envelope
from protocol_helpers import start as start_protocol
from stream_helpers import stream_agents, streams_config


def not_begun(tmp_path):
    return h.start(tmp_path, h.loop_config(), h.loop_agents(2))


def after_a_step(tmp_path):
    cast = not_begun(tmp_path)
    cast.step()
    return cast


def asking(*_):
    return NeedsApproval((ToolCall(id="1.1", tool="bash", args={"command": "make\nit"}, round=1),))


def in_a_mess(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Check": lambda: "no object"})
    cast.run()
    return cast


def out_of_reach(tmp_path):
    def fails():
        raise AgentError("The server is gone", kind="transport", hint="see that it is there, then retry")

    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Check": fails})
    cast.run()
    return cast


def over_budget(tmp_path):
    check = lambda: Reply(h.YES, Usage(1100, 70, 0.25, cached=100, reasoning=20))  # noqa: E731
    cast = h.start(tmp_path, h.loop_config(budget={"maxTokens": 1000}), {**h.loop_agents(), "Check": check})
    cast.run()
    return cast


def out_of_turns(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=range(9)))
    cast.run()
    return cast


def failing_utility(tmp_path):
    said = "import sys; print('half'); sys.stderr.write('no'); sys.exit(3)"
    cast = h.start(tmp_path, h.one_config({"type": "utility", "command": ["python3", "-I", "-S", "-c", said]}))
    cast.run()
    return cast


def by_a_person(tmp_path):
    agents = h.loop_agents(2)
    cast = h.start(tmp_path, h.loop_config(), {name: agents[name] for name in ("Build", "Tell")})
    cast.run()
    return cast


def with_a_draft(tmp_path):
    document = h.one_config(h.agent("Write {{request}}", multiTurn=True))
    cast = h.start(tmp_path, document, h.Until("a first draft", "a second", "final"))
    cast.run()
    return cast


def with_a_tool(tmp_path):
    cast = h.start(tmp_path, h.chain_config(1), type("Asks", (), {"name": "asks", "answer": asking})())
    cast.run()
    return cast


def held(tmp_path):
    routing = {"recommendation": "ESCALATE", "reason": "it is unclear", "can_further_iteration_help": False}
    cast = start_protocol(tmp_path, "envelope", [json.dumps(envelope(status="UNVERIFIED", routing=routing))])
    cast.run()
    return cast


def in_lanes(tmp_path):
    agents = stream_agents()
    del agents["Check"]
    cast = h.start(tmp_path, streams_config(1), agents)
    cast.run()
    return cast


def come_to_its_end(tmp_path):
    event = {"type": "seen", "severity": "warning", "message": "m", "payload": [1]}
    checks = iter([{"satisfied": False}, {"satisfied": True, "event": [event]}, {"satisfied": True}])
    check = lambda: json.dumps(next(checks))  # noqa: E731
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(2), "Check": check})
    cast.run()
    return cast


def tried_twice(tmp_path):
    cast = in_a_mess(tmp_path)
    cast.retry()
    return cast


def aborted(tmp_path):
    cast = after_a_step(tmp_path)
    cast.abort("enough")
    return cast


def opened(tmp_path):
    """Return a cast that is open in read-only mode."""
    cast = after_a_step(tmp_path)
    cast.close()
    return open_cast(cast.run_dir)


STOPPED = (
    in_a_mess,
    out_of_reach,
    over_budget,
    out_of_turns,
    failing_utility,
    by_a_person,
    with_a_draft,
    with_a_tool,
    held,
    in_lanes,
    come_to_its_end,
)
ALL = (not_begun, after_a_step, *STOPPED, tried_twice, aborted, opened)
