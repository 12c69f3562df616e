"""Leave for the tools of agents: a person says once, always or no to what would change something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

    def permit(self, *, always: bool = False, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Give leave to the tool calls that wait for it, and let the agent go on.

        Args:
            always: whether later calls of the same tools need not ask in this cast.
            calls: those that were looked at; if others wait by now, leave is not given.

        Raises:
            MateriaError: no tool call waits for leave, or other ones than ``calls`` (``not_asked``).
        """
        return self._decided("always" if always else "once", "", calls)

    def forbid(self, reason: str = "", *, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Refuse the tool calls that wait for leave; the agent is told why, and goes on without."""
        return self._decided("denied", reason, calls)

    def _ask_anew(self) -> bool:
        """Take back what was allowed to tools, in the journal too; whether there was anything."""
        calls = [replace(call, decided=None) for call in self._history.asking]
        due, allowed = self.calls_due, self.allowed

        def keep(_: int) -> None:
            self._history.asks(calls)
            self._history.allowed = frozenset()

        with self._hold():
            self._begin()
            events: list[tuple[str, Mapping[str, JSON]]] = []
            if allowed:
                events.append(("tools_allowed", {"tools": [], "by": "resume"}))
            if due and (visit := self.now.at) is not None:
                about = engine.about(self.rules, visit)
                events.append(("tool_asked", {**about, "calls": [call.as_json() for call in calls]}))
            if events:
                self._commit(events, keep)
        return bool(events)

    def _decided(self, how: Decided, reason: str, meant: Sequence[ToolCall] | None) -> StepRecord:
        with self._hold():
            self._begin()
            asked = self._asked_now(meant)
            about = engine.about(self.rules, self._visit())
            self.stop.clear()
            calls = [self._answered(call, how, reason) for call in asked]
            denied = calls if how == "denied" else []
            granted = [] if denied else calls
            event = {**about, "decided": how, "by": "person", "calls": [call.as_json() for call in granted]}
            events: list[tuple[str, Mapping[str, JSON]]] = [("tool_decided", event)]
            events += [("tool_call", {**about, "call": call.as_json()}) for call in denied]
            allowed = self.allowed | ({call.tool for call in asked} if how == "always" else set())
            if allowed != self.allowed:
                events.append(("tools_allowed", {"tools": sorted(allowed), "by": "person"}))

            def keep(_: int) -> None:
                self._history.asks(granted)
                self._history.allowed = allowed
                for call in denied:
                    self._history.called(call)

            self._commit(events, keep)
            self._told()
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def _asked_now(self, meant: Sequence[ToolCall] | None) -> tuple[ToolCall, ...]:
        asked = self.asking
        if not asked or (meant is not None and tuple(meant) != asked):
            what = "Other tool calls wait for leave by now" if asked else "No tool call waits for leave"
            hint = "look at them first" if asked else "allow lets a tool run without asking"
            raise MateriaError(f"{what}.", hint=hint, kind="not_asked")
        return asked

    def _answered(self, call: ToolCall, how: Decided, reason: str) -> ToolCall:
        if how != "denied":
            return replace(call, decided=how)
        why = f" The reason: {to_bytes(reason).decode()}" if reason.strip() else ""
        return replace(call, decided=how, ok=False, result=f"The person did not allow this call.{why}")

    def _set_allowed(self, tools: frozenset[str]) -> None:
        def keep(_: int) -> None:
            self._history.allowed = tools

        with self._hold():
            self._begin()
            if tools != self.allowed:
                self._commit([("tools_allowed", {"tools": sorted(tools), "by": "person"})], keep)
            self._told()


def _known(tools: Iterable[str]) -> frozenset[str]:
    names = frozenset(ASKING) if set(tools) == {"all"} else frozenset(tools)
    for name in sorted(names - set(ASKING)):
        raise MateriaError(
            f"{name!r} is not a tool that asks for leave.",
            hint=did_you_mean(name, (*ASKING, "all")),
            kind="unknown_tool",
        )
    return names
