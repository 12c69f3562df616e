"""An agent that repeats what was said in an earlier cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from materia_nb.agents.base import AgentError, Called, Reply, Spent, ToolCall, Turn, TurnKind, Usage


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A reply, and what came on the way to it.

    Attributes:
        reply: what was answered.
        calls: the tool calls that were made before.
        kind: what the turn was for; None answers the turn of any kind that is at its place.
        spent: what was used up before the reply, beside what the reply itself cost.
    """

    reply: Reply
    calls: tuple[ToolCall, ...] = ()
    kind: TurnKind | None = None
    spent: tuple[Usage, ...] = ()


class RecordedAgent:
    """Gives each turn of a visit the reply that the same turn of the same visit had.

    The tool calls of then are told again, so that they can be seen, but nothing is run; what was
    spent is told again too, so that a budget lasts as long as it did.

    Args:
        replies: by (socket id, visit), the replies of that visit in turn order.
        name: what the agent is called where it is shown.
    """

    at_once = True

    def __init__(
        self,
        replies: Mapping[tuple[str, int], Sequence[str | Reply | RecordedTurn]],
        *,
        name: str = "recording",
    ) -> None:
        self.name = name
        self._replies = {key: tuple(_turn(reply) for reply in given) for key, given in replies.items()}

    @property
    def outputs(self) -> dict[tuple[str, int], str]:
        """What each visit came to: the text of its last reply, by (socket id, visit)."""
        return {key: given[-1].reply.text for key, given in self._replies.items() if given}

    def answer(self, turn: Turn) -> Reply:
        """Return what was said then.

        Raises:
            AgentError: kind ``recorded_exhausted``: nothing was said then.
        """
        given = self._replies.get((turn.socket_id, turn.visit), ())
        then = _same_turn(given, turn)
        if then is not None:
            told = {call.id for call in turn.calls}
            for call in then.calls:
                if call.id not in told:
                    turn.tell(Called(call))
            for used in then.spent:
                turn.tell(Spent(used))
            return then.reply
        visits = sorted(visit for socket, visit in self._replies if socket == turn.socket_id)
        if not visits:
            what = f"The recorded cast has no replies of {turn.socket_id}"
        elif not given:
            what = (
                f"The recorded cast has no visit {turn.visit} of {turn.socket_id}, the last is {visits[-1]}"
            )
        else:
            what = (
                f"Visit {turn.visit} of {turn.socket_id} has {len(given)} recorded replies, "
                f"turn {turn.turn_of_visit + 1} ({turn.kind}) has none"
            )
        raise AgentError(
            what,
            where=turn.socket_id,
            hint=f"this cast took another way than the recorded one; let someone else answer {turn.socket_id}",
            kind="recorded_exhausted",
        )

    def __repr__(self) -> str:
        return f"RecordedAgent({sum(map(len, self._replies.values()))} replies)"


def _same_turn(given: Sequence[RecordedTurn], turn: Turn) -> RecordedTurn | None:
    """Find the reply to a turn: of its kind, and at its place, which depends on the turn alone.

    The place in the conversation comes first, since it holds in a visit that was begun anew; a repair that
    was granted once more begins another conversation, and is found by the count of turns. Where fewer
    turns came before than then, such as refinements, the next reply of the kind is taken.
    """
    answered = sum(said.role == "assistant" for said in turn.conversation)
    places: list[int] = [answered, turn.turn_of_visit, *range(answered, len(given))]
    for place in places:
        if place < len(given) and given[place].kind == turn.kind:
            return given[place]
    if turn.turn_of_visit < len(given) and given[turn.turn_of_visit].kind is None:
        return given[turn.turn_of_visit]
    return None


def _turn(given: str | Reply | RecordedTurn) -> RecordedTurn:
    if isinstance(given, RecordedTurn):
        return given
    return RecordedTurn(Reply(given) if isinstance(given, str) else given)
