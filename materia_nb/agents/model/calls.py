"""Running the tool calls of a turn, and holding back those that need leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from materia_nb.agents.base import AgentError, Called, ToolCall, Turn
from materia_nb.agents.tools import Tool, Toolbox
from materia_nb.errors import did_you_mean
from materia_nb.handoff.contract.approval import Grant

INVALID: Final = "INVALID_JSON"
"""The name under which arguments are kept that are no JSON object, or too long: then their beginning."""

LONGEST_ARGUMENTS: Final = 1024 * 1024
"""The longest arguments of a call that are taken, in characters."""

_DENIED: Final = "A person decided that this must not be done."
_INTERRUPTED: Final = "This was interrupted; a part of it may have been done."


class Calls:
    """The tool calls of one turn.

    Args:
        turn: whose they are, with what was decided about them.
        tools: the tools of its materia by name; no other runs, whatever the model asks for.
        stop: ends a call that takes long.
        clock: the seconds that the times of grants are in.
    """

    def __init__(
        self,
        turn: Turn,
        tools: Mapping[str, Tool],
        stop: threading.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._turn = turn
        self._tools = tools
        self._stop = stop
        self._clock = clock
        self._grant = _unused(turn)
        self._box = Toolbox(turn.project, stop)
        said = (call.id for message in turn.conversation for call in message.calls)
        self._ids = {*said, *(call.id for call in turn.calls)}

    def new_id(self, wanted: str) -> str:
        """Return an id that no other call of the visit has, the wanted one if that is free."""
        name, number = wanted, 1
        while name in self._ids:
            number += 1
            name = f"{wanted}-{number}"
        self._ids.add(name)
        return name

    def not_run(self, call: ToolCall, why: str) -> ToolCall:
        """Tell a call that is not even tried, and return it with this result."""
        return self._told(call, why, ok=False, begun=time.perf_counter())

    def settle(self, calls: Iterable[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
        """Run what may run and return the calls that have a result, and those that need leave first.

        Each call that gets its result here is told.

        Raises:
            AgentError: kind ``interrupted``: the cast is to stop.
            KeyboardInterrupt: the call that ran is told as interrupted.
        """
        done, pending = [], []
        for call in calls:
            if call.result is not None:
                done.append(call)
            elif self._may(call):
                done.append(self._run(call))
            else:
                pending.append(call)
        return done, pending

    def _may(self, call: ToolCall) -> bool:
        if not self._changes(call):
            return True
        if call.decided is not None or call.tool in self._turn.allowed:
            return True
        if self._grant is None or call.tool != "bash":
            return False
        granted, self._grant = self._grant.use(str(call.args.get("command", "")), self._clock())
        return granted

    def _run(self, call: ToolCall) -> ToolCall:
        begun = time.perf_counter()
        if call.decided != "denied" and self._changes(call):
            # Kept before it runs: whatever ends this process meanwhile, it is not run a second time unasked.
            self._told(call, _INTERRUPTED, ok=False, begun=begun)
        try:
            text, ok = self._result(call)
        except KeyboardInterrupt:
            self._told(call, _INTERRUPTED, ok=False, begun=begun)
            raise
        if self._stop.is_set():
            self._told(call, f"{text}\n{_INTERRUPTED}".strip(), ok=False, begun=begun)
            raise AgentError("The agent was interrupted", kind="interrupted")
        return self._told(call, text, ok=ok, begun=begun)

    def _changes(self, call: ToolCall) -> bool:
        """Whether it would change something if it ran; one of no tool, or without arguments, does nothing."""
        tool = self._tools.get(call.tool)
        return tool is not None and tool.changes and INVALID not in call.args

    def _result(self, call: ToolCall) -> tuple[str, bool]:
        if call.decided == "denied":
            return _DENIED, False
        if call.tool not in self._tools:
            meant = did_you_mean(call.tool, self._tools)
            return f"There is no tool {call.tool!r}: {meant}", False
        if INVALID in call.args:
            limit = f"{LONGEST_ARGUMENTS:,}"
            return (
                f"The arguments are not a JSON object of at most {limit} characters; send the call again.",
                False,
            )
        result = self._box.call(call.tool, call.args)
        return result.text, result.ok

    def _told(self, call: ToolCall, text: str, *, ok: bool, begun: float) -> ToolCall:
        call = replace(call, result=text, ok=ok, seconds=round(time.perf_counter() - begun, 6))
        self._turn.tell(Called(call))
        return call


def _unused(turn: Turn) -> Grant | None:
    """Return the grant of a turn, unless its command ran before the turn was cut off."""
    grant = turn.grant
    ran = (call.args.get("command") for call in turn.calls if call.tool == "bash" and call.result is not None)
    return None if grant is None or grant.exact_content in ran else grant
