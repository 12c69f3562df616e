"""Provide three loadouts of realistic size: a software release, a paper with critics, and a data cleaning."""

from __future__ import annotations

from typing import Any

from builders import asks, at, config, edge


def _critic(onward: str, back: str, limit: int, **fields: Any) -> dict[str, Any]:
    return asks(edge(onward, "satisfied"), edge(back, "not_satisfied", limit), **fields)


def release() -> dict[str, Any]:
    """Return a loadout that implements and reviews changes one by one, and then reviews and publishes the release."""
    return config(
        {
            "Socket-1": at("G", edge("Socket-2")),
            "Socket-2": at("P", edge("Socket-3")),
            "Socket-3": asks(
                edge("Socket-2", "not_satisfied", 2),
                edge("Socket-2", "satisfied"),
                advance={"when": "satisfied"},
            ),
            "Socket-4": _critic("Socket-5", "Socket-1", 1),
            "Socket-5": at("P", edge("Socket-6")),
            "Socket-6": _critic("end", "Socket-5", 2),
        },
        {
            "changes": {
                "sockets": ["Socket-2", "Socket-3"],
                "consumes": {"from": "Socket-1"},
                "exits": [{"id": "done", "from": "Socket-3", "condition": "satisfied", "targetSocketId": "Socket-4"}],
            }
        },
    )


def paper() -> dict[str, Any]:
    """Return a loadout that writes the sections of a paper, each of which three critics can send back."""
    return config(
        {
            "Socket-1": at("G", edge("Socket-2")),
            "Socket-2": at("P", edge("Socket-3")),
            "Socket-3": _critic("Socket-4", "Socket-2", 2),
            "Socket-4": _critic("Socket-5", "Socket-2", 2),
            "Socket-5": asks(
                edge("Socket-2", "satisfied"),
                edge("Socket-2", "not_satisfied", 2),
                advance={"when": "satisfied"},
            ),
            "Socket-6": at("P"),
        },
        {
            "sections": {
                "sockets": ["Socket-2", "Socket-3", "Socket-4", "Socket-5"],
                "consumes": {"from": "Socket-1"},
                "exits": [{"id": "done", "from": "Socket-5", "condition": "satisfied", "targetSocketId": "Socket-6"}],
            }
        },
    )


def cleaning() -> dict[str, Any]:
    """Return a loadout that cleans and judges tables; its cast ends if the judge keeps refusing a table."""
    return config(
        {
            "Socket-1": at("G", edge("Socket-2")),
            "Socket-2": at("P", edge("Socket-3")),
            "Socket-3": _critic("Socket-4", "Socket-2", 3),
            "Socket-4": asks(edge("Socket-2"), advance={}),
            "Socket-5": at("P"),
        },
        {
            "tables": {
                "sockets": ["Socket-2", "Socket-3", "Socket-4"],
                "consumes": {"from": "Socket-1"},
                "exits": [{"id": "done", "from": "Socket-4", "condition": "always", "targetSocketId": "Socket-5"}],
            }
        },
    )


def critics_in_a_row(count: int) -> dict[str, Any]:
    """Return a pipeline of writers that each have their own critic."""
    sockets = {}
    for number in range(1, 2 * count, 2):
        onward = f"Socket-{number + 2}" if number + 2 < 2 * count else "end"
        sockets[f"Socket-{number}"] = at("P", edge(f"Socket-{number + 1}"))
        sockets[f"Socket-{number + 1}"] = _critic(onward, f"Socket-{number}", 2)
    return config(sockets)


def critics_in_a_loop(count: int) -> dict[str, Any]:
    """Return a loop that sends each work item through the same pipeline of writers and critics."""
    names = [f"Socket-{number}" for number in range(2, 2 * count + 2)]
    sockets: dict[str, Any] = {"Socket-1": at("G", edge("Socket-2"))}
    for writer, critic, onward in zip(names[::2], names[1::2], [*names[2::2], ""], strict=True):
        sockets[writer] = at("P", edge(critic))
        sockets[critic] = _critic(onward or names[0], writer, 2)
    sockets[names[-1]]["advance"] = {"when": "satisfied"}
    exits = [{"id": "done", "from": names[-1], "condition": "satisfied", "targetSocketId": "end"}]
    return config(sockets, {"items": {"sockets": names, "consumes": {"from": "Socket-1"}, "exits": exits}})
