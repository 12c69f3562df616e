"""A program that runs a cast with a model, an MCP server and fake coding agents until it is killed.

Usage: ``... URL PROJECT``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cast_helpers as h
from materia_nb.agents import AgentTable, ModelAgent
from materia_nb.cast import start_cast

PROGRAMS = ("claude", "codex", "gemini", "opencode", "aider")
LAST = f"Socket-{len(PROGRAMS) + 2}"
SERVER = {
    "command": str(Path(sys.executable).with_name("mcp-server-time")),
    "args": ["--local-timezone", "UTC"],
}


def document() -> dict[str, Any]:
    """Return a loadout with a planner that has the tool ``clock``, five programs that work, and Tell; it costs 5.2
    cents.
    """
    sockets = {"Socket-1": h.at("Plan", ("always", "Socket-2"))}
    for number, _ in enumerate(PROGRAMS, 2):
        sockets[f"Socket-{number}"] = h.at("Work", ("always", f"Socket-{number + 1}"))
    sockets[LAST] = h.at("Tell")
    materia = {
        "Plan": h.agent("Plan {{request}}", tools=["time.convert_time"]),
        "Work": h.agent("Work {{lastOutput}}", tools="readOnly"),
        "Tell": h.agent("Tell {{lastOutput}}"),
    }
    return h.config(sockets, materia, mcpServers={"time": SERVER}, budget={"maxCostUsd": 0.043})


def agents(url: str) -> AgentTable:
    """Return the agents of the cast."""
    model = ModelAgent("openai:tiny", base_url=url, first_pause_s=0.001)
    programs = {f"Socket-{number}": f"command:{name}+tools" for number, name in enumerate(PROGRAMS, 2)}
    return h.table({"Plan": model, "Tell": model, **programs})


if __name__ == "__main__":
    url, project = sys.argv[1:]
    cast = start_cast(h.plan(Path(project), document()), "the widget", agents(url))
    cast.run()
    assert [call.tool for call in cast.approvals.asking] == ["time.convert_time"], cast.status
    cast.approvals.approve()
    cast.run()
