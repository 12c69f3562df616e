"""Define the work of the benchmarks: a plan, and then build, evaluate and maintain for each item.

A visit ends with a reply text. The reply of the evaluation is JSON and determines the next socket. The cursor advances
after maintain. The compared implementations store different amounts of data.
"""

from __future__ import annotations

import json
from typing import Any

BUILT, NOTED = "built it as described", "noted what was done"
VERDICT = '{"satisfied": true}'


def plan(items: int) -> str:
    """Return the planner's reply with ``items`` work items, as JSON."""
    return json.dumps(
        {"workItems": [{"title": f"Item {n}", "context": f"Do part {n} of the work."} for n in range(items)]}
    )


def document() -> dict[str, Any]:
    """Return the loadout that does the work."""

    def agent(prompt: str, **more: Any) -> dict[str, Any]:
        return {"type": "agent", "tools": "none", "prompt": prompt, **more}

    def always(to: str) -> dict[str, Any]:
        return {"when": "always", "to": to}

    retry = {"when": "not_satisfied", "to": "Socket-2", "maxTraversals": 3}
    return {
        "activeLoadout": "Bench",
        "loadouts": {
            "Bench": {
                "entry": "Socket-1",
                "sockets": {
                    "Socket-1": {"materia": "Plan", "parse": "json", "edges": [always("Socket-2")]},
                    "Socket-2": {"materia": "Build", "edges": [always("Socket-3")]},
                    "Socket-3": {
                        "materia": "Eval",
                        "parse": "json",
                        "edges": [retry, {"when": "satisfied", "to": "Socket-4"}],
                    },
                    "Socket-4": {"materia": "Maintain", "edges": [always("Socket-2")]},
                },
                "loops": {
                    "work": {
                        "sockets": ["Socket-2", "Socket-3", "Socket-4"],
                        "consumes": {"from": "Socket-1", "output": "workItems"},
                        "exits": [{"id": "done", "from": "Socket-4", "condition": "always", "targetSocketId": "end"}],
                    }
                },
            }
        },
        "materia": {
            "Plan": agent("Plan {{request}}", generator=True),
            "Build": agent("Build {{item.title}}"),
            "Eval": agent("Evaluate {{lastOutput}}"),
            "Maintain": agent("Record {{item.title}}"),
        },
    }
