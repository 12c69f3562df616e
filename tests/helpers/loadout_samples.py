"""Provide configs for the loadout tests, and a Hypothesis strategy for valid configs."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from builders import agent, document, edge, utility
from builders import exit_route as route

JSONObject = dict[str, Any]

AGENT = agent()
UTILITY = utility()


def config(sockets: JSONObject, *, loops: JSONObject | None = None, entry: str = "Socket-1", **top: Any) -> JSONObject:
    """Return a config with the loadout T and the materia P (agent), G (generator), U (utility) and UG (utility
    generator).
    """
    known = {"P": AGENT, "G": agent(generator=True), "U": UTILITY, "UG": utility(generator=True)}
    return copy.deepcopy(document(sockets, top.pop("materia", known), loops, entry=entry, **top))


def looped(loop: JSONObject | None = None, **changed: Any) -> JSONObject:
    """Return a config that plans, builds and evaluates each item, and then tells the result.

    ``loop`` has additional fields for the loop.
    """
    sockets: JSONObject = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "edges": [edge("Socket-3")]},
        "Socket-3": {
            "materia": "P",
            "parse": "json",
            "edges": [edge("Socket-2", "satisfied"), edge("Socket-2", "not_satisfied")],
        },
        "Socket-4": {"materia": "P"},
    }
    for name, fields in changed.items():
        sockets[name.replace("_", "-")].update(fields)
    whole = {"sockets": ["Socket-2", "Socket-3"], "consumes": {"from": "Socket-1"}, **(loop or {})}
    return config(sockets, loops={"L": whole})


_keys = st.sampled_from(
    [
        "loadouts",
        "materia",
        "T",
        "P",
        "entry",
        "sockets",
        "Socket-1",
        "Socket-2",
        "edges",
        "when",
        "to",
        "loops",
        "L",
        "consumes",
        "from",
        "output",
        "exits",
        "exit",
        "id",
        "condition",
        "targetSocketId",
        "iterator",
        "items",
        "as",
        "cursor",
        "foreach",
        "advance",
        "assign",
        "parse",
        "limits",
        "budget",
        "type",
        "tools",
        "prompt",
        "command",
        "script",
        "name",
        "kind",
        "maxTraversals",
        "generator",
        "activeLoadout",
        "handoff",
        "layout",
        "params",
    ]
) | st.text(max_size=5)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["always", "end", "Socket-1", "agent", "utility", "$.a[", "$", "state.x", "json", "P"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=5),
    max_leaves=30,
)

CONDITIONS = ["always", "satisfied", "not_satisfied"]


@st.composite
def valid_configs(draw: st.DrawFn) -> JSONObject:
    """Draw a chain of stages, each a socket or a generator with its loop, with random retries and unknown fields."""
    sockets: JSONObject = {}
    loops: JSONObject = {}
    stages = draw(st.lists(st.sampled_from(["plain", "loop", "legacy"]), min_size=1, max_size=5))
    starts: list[str] = []
    count = 0
    for stage in stages:
        starts.append(f"Socket-{count + 1}")
        count += 1 if stage == "plain" else 1 + draw(st.integers(1, 3))
    starts.append("end")
    for place, stage in enumerate(stages):
        first, after = int(starts[place].split("-")[1]), starts[place + 1]
        if stage == "plain":
            sockets[f"Socket-{first}"] = {
                "materia": draw(st.sampled_from(["P", "U"])),
                "edges": [edge(after)],
            }
            continue
        last = (int(after.split("-")[1]) if after != "end" else count + 1) - 1
        members = [f"Socket-{number}" for number in range(first + 1, last + 1)]
        sockets[f"Socket-{first}"] = {
            "materia": draw(st.sampled_from(["G", "UG"])),
            "edges": [edge(members[0])],
        }
        for number, member in enumerate(members):
            to = members[(number + 1) % len(members)]
            guard = {"maxTraversals": draw(st.integers(1, 9))} if draw(st.booleans()) else {}
            sockets[member] = {
                "materia": draw(st.sampled_from(["P", "U"])),
                "parse": "json",
                "edges": [edge(members[0], "not_satisfied", **guard), edge(to)],
                **({"note": draw(json_values)} if draw(st.booleans()) else {}),
            }
        when = draw(st.sampled_from(CONDITIONS))
        loop: JSONObject = {
            "sockets": members,
            "consumes": {"from": f"Socket-{first}", "cursor": f"cursor{place}"},
        }
        if stage == "legacy":
            loop["exit"] = {"from": members[-1], "when": when, "to": after}
        else:
            loop["exits"] = [route(members[-1], when, after)]
        loops[f"L{place}"] = loop
    return config(sockets, loops=loops)


BROKEN = """\
{
  "loadouts": {
    "Good": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Say"}}},
    "Bad": {
      "entry": "Socket-1",
      "sockets": {
        "Socket-1": {
          "materia": "Say",
          "edges": [
            {"when": "always", "to": "Sockt-2"}
          ]
        },
        "Socket-2": {"materia": "Say"}
      }
    }
  },
  "materia": {
    "Say": {"tools": "none",
            "prompt": 3}
  }
}
"""
"""A config with a valid loadout and an invalid one, in which an edge leads to a missing socket and a prompt is a
number.
"""

RICH: JSONObject = {
    "artifactDir": ".materia",
    "artifacts": "all",
    "files": "not ignored",
    "activeLoadout": "T",
    "budget": {"maxTokens": 1000, "warnAtPercent": 50, "maxCostUsd": 2.5, "maxSeconds": 60, "maxTurns": 9},
    "prices": {"small": {"input": 1.25, "output": 10, "cached": 0.1, "asOf": "2026-01-01"}},
    "limits": {
        "repairAttempts": 2,
        "maxNoAdvanceCycles": 4,
        "maxEdgeTraversals": 9,
        "promptCharacters": 9000,
    },
    "castContext": {"state": ["a", "b"], "items": "titles"},
    "keepThinking": False,
    "parallelism": {"maxConcurrency": 3},
    "mcpServers": {"clock": {"command": "clock", "args": ["-u"], "env": {"A": "b"}, "allow": ["now"]}},
    "loadouts": {
        "T": {
            "entry": "Plan",
            "label": "All of it",
            "handoff": "sparse",
            "castContext": "full",
            "layout": {"sockets": {"Plan": {"x": 1, "y": 2}}},
            "sockets": {
                "Plan": {"materia": "G", "edges": [edge("Build", most=4)], "castContext": "request"},
                "Build": {
                    "materia": "P",
                    "label": "make",
                    "parse": "json",
                    "assign": {"plan.text": "$.context", "seen": "item.title", "last": "lastOutput"},
                    "edges": [
                        edge("Eval", "satisfied"),
                        edge("Build", "not_satisfied", 3),
                        edge("Rows", "failed"),
                    ],
                    "finalize": True,
                    "promptForm": "plain",
                    "limits": {"maxEdgeTraversals": 5},
                    "layout": {"x": 3, "y": 4},
                },
                "Eval": {
                    "materia": "U",
                    "edges": [edge("Build", "not_satisfied", 2), edge("Build")],
                    "advance": {"cursor": "workItemIndex", "items": "state.workItems", "when": "satisfied"},
                },
                "Rows": {
                    "materia": "M",
                    "parse": "json",
                    "foreach": {"items": "state.rows", "as": "row", "cursor": "rowsAt"},
                    "advance": {"when": "satisfied"},
                    "edges": [edge("Rows", "satisfied"), edge("Judge", "not_satisfied")],
                },
                "Judge": {
                    "materia": "J",
                    "parse": "json",
                    "handoff": "agent-contract",
                    "assignment": {"goal": "judge", "surfaces": ["a", "b"], "primary": False, "scope": "all"},
                },
            },
            "loops": {
                "L": {
                    "sockets": ["Build", "Eval"],
                    "label": "each",
                    "consumes": {
                        "from": "Plan",
                        "output": "workItems",
                        "as": "workItem",
                        "cursor": "workItemIndex",
                    },
                    "exits": [route("Eval", "satisfied", "Rows"), route("Eval", "always", "Judge")],
                },
                "K": {
                    "sockets": ["Rows"],
                    "iterator": {"items": "state.rows", "as": "row", "cursor": "rowsAt"},
                },
            },
        }
    },
    "materia": {
        "G": agent("Plan {{request}}", generator=True, label="Planner", model="small", thinking="high"),
        "P": agent("Build {{item.title}} {{state.plan.text}} {{cursor.workItemIndex}}", tools=["read", "bash"]),
        "M": agent("Talk", multiTurn=True, tools="readOnly", color="teal", group="talkers"),
        "J": agent("Judge", tools="coding", parallelSafe=True),
        "U": utility(timeoutMs=500, params={"a": [1, None]}, assign={"seen": "$.seen"}),
    },
}
"""A loadout that uses almost every field of a config."""
