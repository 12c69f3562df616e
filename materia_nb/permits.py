"""Leave for the tools of agents: a person says once, always or no to what would change something."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from materia_nb.engine import step as engine
from materia_nb.engine.said import Decided, ToolCall
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.steps import Steps
from materia_nb.store.derived import usage_report
from materia_nb.store.files import to_bytes
from materia_nb.store.history import StepRecord

ASKING: Final = ("bash", "edit", "write")
"""The tools that ask for leave unless a cast allows them."""


class Permits(Steps):
    """The part of a cast that gives leave; ``Cast`` is the class to use."""

    @property
    def tools_that_ask(self) -> dict[str, bool]:
        """The tools that change something, and whether each is allowed to without asking."""
        return {tool: tool in self.allowed for tool in ASKING}

    @property
    def usage(self) -> dict[str, JSON]:
        """Tokens and cost in all, by socket, by materia and by item, as usage.json has them (R20)."""
        return usage_report(self.rules, self._history)

    def allow(self, *tools: str) -> None:
        """Let these tools (``bash``, ``edit``, ``write``) run without asking, in this cast only.

        Raises:
            MateriaError: a name is not that of a tool which asks (``unknown_tool``).
        """
        self._set_allowed(self.allowed | _known(tools))

    def disallow(self, *tools: str) -> None:
        """Let these tools ask again; all of them if none is named."""
        self._set_allowed(self.allowed - (_known(tools) if tools else self.allowed))

    def permit(self, *, always: bool = False) -> StepRecord:
        """Give leave to the tool calls that wait for it, and let the agent go on.

        Args:
            always: whether later calls of the same tools need not ask in this cast.

        Raises:
            MateriaError: no tool call waits for leave (``not_asked``).
        """
        return self._decided("always" if always else "once", "")

    def forbid(self, reason: str = "") -> StepRecord:
        """Refuse the tool calls that wait for leave; the agent is told why, and goes on without."""
        return self._decided("denied", reason)

    def _decided(self, how: Decided, reason: str) -> StepRecord:
        self.stop.clear()
        with self._hold():
            self._begin()
            asked = self.asking
            if not asked:
                raise MateriaError(
                    "No tool call waits for leave.",
                    hint="allow lets a tool run without asking",
                    kind="not_asked",
                )
            if how == "always":
                self._allowed_now(self.allowed | {call.tool for call in asked})
            about = engine.about(self.rules, self._visit())
            calls = [self._answered(call, how, reason) for call in asked]
            denied = calls if how == "denied" else []
            granted = [] if denied else calls
            event = {**about, "decided": how, "by": "person", "calls": [call.as_json() for call in granted]}
            ended = [("tool_call", {**about, "call": call.as_json()}) for call in denied]

            def keep(_: int) -> None:
                self._history.asks(granted)
                for call in denied:
                    self._history.called(call)

            self._commit([("tool_decided", event), *ended], keep)
            self._told()
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def _answered(self, call: ToolCall, how: Decided, reason: str) -> ToolCall:
        if how != "denied":
            return replace(call, decided=how)
        why = f" The reason: {to_bytes(reason).decode()}" if reason.strip() else ""
        return replace(call, decided=how, ok=False, result=f"The person did not allow this call.{why}")

    def _set_allowed(self, tools: Iterable[str]) -> None:
        with self._hold():
            self._begin()
            self._allowed_now(frozenset(tools))
            self._told()

    def _allowed_now(self, tools: frozenset[str]) -> None:
        def keep(_: int) -> None:
            self._history.allowed = tools

        if tools != self.allowed:
            self._commit([("tools_allowed", {"tools": sorted(tools), "by": "person"})], keep)


def _known(tools: Iterable[str]) -> frozenset[str]:
    names = frozenset(ASKING) if set(tools) == {"all"} else frozenset(tools)
    for name in sorted(names - set(ASKING)):
        raise MateriaError(
            f"{name!r} is not a tool that asks for leave.",
            hint=did_you_mean(name, (*ASKING, "all")),
            kind="unknown_tool",
        )
    return names
