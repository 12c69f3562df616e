"""An agent that gives prepared replies, for tests and lessons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from materia_nb.agents.base import AgentError, Reply, Turn, Usage, reply_from
from materia_nb.errors import did_you_mean

ScriptEntry: TypeAlias = str | Mapping[str, object] | Reply

_REPLY_KEYS: Final = frozenset({"text", "usage", "user"})


class ScriptedAgent:
    """Gives the n-th turn of a socket, or of a materia, its n-th reply.

    The place in the script comes from the turn, so that a resumed cast goes on where it was.

    Args:
        replies: lists of replies by socket id or materia id; the socket's list comes first. A
            reply is text, an object that is sent as JSON, or ``{"text": ..., "usage": {"input":
            ..., "output": ...}}``; one reply may stand without a list.
        name: what the agent is called where it is shown.

    Raises:
        AgentError: a reply is none of these.
    """

    at_once = True

    def __init__(
        self, replies: Mapping[str, Sequence[ScriptEntry] | ScriptEntry], *, name: str = "script"
    ) -> None:
        self.name = name
        self._replies = {key: _entries(key, value) for key, value in replies.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The sockets and materia that it has replies for."""
        return tuple(self._replies)

    def answer(self, turn: Turn) -> Reply:
        """Return the reply that the script has for this turn.

        Raises:
            AgentError: kind ``scripted_exhausted``: it has none; nothing is made up.
        """
        if turn.socket_id in self._replies:
            key, place = turn.socket_id, turn.index
        elif turn.materia_id in self._replies:
            key, place = turn.materia_id, turn.materia_index
        else:
            raise AgentError(
                f"The script has no replies for {turn.socket_id} (materia {turn.materia_id})",
                where=turn.socket_id,
                hint=did_you_mean(turn.socket_id, self._replies),
                kind="scripted_exhausted",
            )
        given = self._replies[key]
        if place >= len(given):
            raise AgentError(
                f"Turn {place + 1} of {key} (visit {turn.visit} of {turn.socket_id}, {turn.kind}) has no reply: "
                f"the script gives {len(given)}",
                where=turn.socket_id,
                hint=f"add a reply to {key!r}, or let someone else answer {turn.socket_id}",
                kind="scripted_exhausted",
            )
        return given[place]

    def __repr__(self) -> str:
        counts = ", ".join(f"{key}: {len(given)}" for key, given in self._replies.items())
        return f"ScriptedAgent({counts})"


def _entries(key: str, value: Sequence[ScriptEntry] | ScriptEntry) -> tuple[Reply, ...]:
    if isinstance(value, (str, Mapping, Reply)):
        value = [value]
    # what comes from a notebook need not be what the annotation says
    if not isinstance(value, Sequence):
        raise AgentError(
            f"The script's entry {key!r} is {type(value).__name__}, not replies.",
            hint="a dict is a script: lists of replies by socket or materia; for one fixed answer give a function",
        )
    return tuple(
        _entry(f"Reply {n} of {key!r} in the script", entry) for n, entry in enumerate(value, start=1)
    )


def _entry(who: str, entry: ScriptEntry) -> Reply:
    if isinstance(entry, Mapping):
        text = entry.get("text")
        # Any other object, also one that has a text among other fields, is the output itself.
        if isinstance(text, str) and entry.keys() <= _REPLY_KEYS:
            return Reply(text, usage=_usage(who, entry.get("usage")))
        entry = dict(entry)
    return reply_from(entry, who)


def _usage(who: str, given: object) -> Usage | None:
    if given is None or isinstance(given, Usage):
        return given
    if not isinstance(given, Mapping):
        raise AgentError(f"{who} has a usage that is not an object", hint='write {"input": 10, "output": 5}')
    tokens = given.get("input", 0), given.get("output", 0)
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in tokens):
        raise AgentError(f"{who} has a usage without whole numbers", hint='write {"input": 10, "output": 5}')
    cost = given.get("cost")
    return Usage(tokens[0], tokens[1], float(cost) if isinstance(cost, (int, float)) else None)
