"""Provide a loadout whose items are processed in lanes, and its agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import cast_helpers as h
from builders import at, exit_route
from builders import document as config

Json = dict[str, Any]


def streams_config(limit: int | None = None, *, build: Json | None = None, **top: Any) -> Json:
    """Return a config that plans items in streams; each lane is set up and builds and checks its items, then Tell
    follows.
    """
    return config(
        {
            "Socket-1": at("Plan", ("always", "Socket-2"), parse="json"),
            "Socket-2": at("Setup", ("always", "Socket-3")),
            "Socket-3": at("Build", ("always", "Socket-4")),
            "Socket-4": at("Check", ("satisfied", "Socket-3"), ("not_satisfied", "Socket-3", 3), parse="json"),
            "Socket-5": at("Tell"),
        },
        {
            "Plan": h.agent("Plan {{request}}", generator=True, parallel=True),
            "Setup": h.agent("Set up", parallelSafe=True),
            "Build": build or h.agent("Build {{item.title}} after {{state.context}}", parallelSafe=True),
            "Check": h.agent("Check {{lastOutput}}", parallelSafe=True),
            "Tell": h.agent("Tell {{state.parallelResults}}"),
        },
        {
            "L": {
                "sockets": ["Socket-3", "Socket-4"],
                "consumes": {"from": "Socket-1", "output": "workItems"},
                "exits": [exit_route("Socket-4", "satisfied", "Socket-5")],
                **({} if limit is None else {"parallel": {"maxConcurrency": limit}}),
            }
        },
        **top,
    )


def plan_of(streams: Mapping[str, Sequence[int]]) -> str:
    """Return the answer of the planner: one item for each name in the streams, and their schedule."""
    count = sum(map(len, streams.values()))
    return json.dumps(
        {
            "workItems": h.items(*[f"Part {n}" for n in range(count)]),
            "parallelSchedule": {
                "version": 1,
                "streams": [{"name": name, "workItemIndexes": list(indexes)} for name, indexes in streams.items()],
            },
        }
    )


TWO = {"ui": [2, 0], "api": [1]}
"""Two streams with three items in total."""


def stream_agents(streams: Mapping[str, Sequence[int]] = TWO, **others: object) -> dict[str, object]:
    """Return agents that always give the same answers."""
    return {
        "Plan": lambda: plan_of(streams),
        "Setup": lambda lane: f"ready for {lane}",
        "Build": lambda item: f"built {item['title']}",
        "Check": lambda last: json.dumps({"satisfied": True, "context": f"checked {last}"}),
        "Tell": lambda: "told",
        **others,
    }
