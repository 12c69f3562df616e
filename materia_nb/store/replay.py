"""Rebuilding a cast by running the engine over what its journal recorded.

The same reader serves our own run directories and those of the reference engine:
both say which socket was started and where its output is kept. Where the recorded
route is not the one that the engine takes, the difference is kept, with the
engine's reason, and the rebuilding goes on along the recorded route.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Failure, Usage
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END
from materia_nb.store.history import History
from materia_nb.store.journal import Line

OUTPUT_TYPES: Final = frozenset(
    {
        "socket_complete",
        "socket_refinement",
        "socket_refused",
        "same_socket_recovery_start",
        "same_socket_recovery_exhausted",
    }
)
"""Events that name the artifact of an output which arrived."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engine's route is not the recorded one: at which step, what each did, and why."""

    step: int
    recorded: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step}: recorded {self.recorded}; ours {self.ours}: {self.why}"


@dataclass(slots=True)
class Replay:
    """A rebuilt cast: its history, differences from what was recorded, and what could not be read."""

    history: History
    differences: list[Difference] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    conversation: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False


def replay(rules: Rules, lines: Sequence[Line], read: Callable[[str], str]) -> Replay:
    """Run the engine over recorded events; ``read`` gives the text of an artifact by name."""
    request = next((str(line.data.get("request", "")) for line in lines if line.type == "cast_start"), "")
    done = Replay(History(engine.begin(rules, request)))
    player = _Player(rules, read, done)
    for line in lines:
        player.play(line)
    return done


class _Player:
    def __init__(self, rules: Rules, read: Callable[[str], str], done: Replay) -> None:
        self.rules = rules
        self.read = read
        self.done = done
        self.history = done.history
        self.command: Line | None = None

    def play(self, line: Line) -> None:
        if line.type == "socket_start":
            self._start(line)
        elif line.type in OUTPUT_TYPES:
            self._output(line)
        elif line.type == "utility_command":
            self.command = line
        elif line.type == "cast_end":
            self._end(line)
        elif line.type == "refinement_message":
            self._say(line)
        elif line.type == "refinement_final":
            self._finalize(line)
        elif line.type == "budget_set":
            most = line.data.get("maxTokens")
            self.history.state = engine.set_budget(
                self.history.state, most if isinstance(most, int) else None
            )
        elif line.type in ("cast_recast", "cast_revive"):
            self._again(line)

    def _start(self, line: Line) -> None:
        recorded = str(line.data.get("socket"))
        if recorded not in self.rules.sockets:
            raise MateriaError(
                f"The journal visits {recorded!r}, which the recorded loadout does not have.",
                kind="damaged_journal",
            )
        state, number = self.history.state, len(self.history.steps) + 1
        step = engine.enter(self.rules, state) if state.status == "ready" else None
        entered = step.state.at.socket if step and step.state.status == "waiting" and step.state.at else None
        if entered == recorded and step is not None:
            item = step.state.at.item.key if step.state.at and step.state.at.item else None
            if item != line.data.get("itemKey"):
                self._differs(
                    number, f"item {line.data.get('itemKey')}", f"item {item}", "the cursors differ"
                )
        else:
            self._differs(number, f"went to {recorded}", self._our_way(step), self._our_reason(step))
            self.history.state = state._replace(status="ready", next=recorded, failure=None, pending=None)
            step = engine.enter(self.rules, self.history.state)
        self.history.entered(step, line.ts)
        self.done.conversation.clear()
        self.command = None

    def _output(self, line: Line) -> None:
        if line.type == "same_socket_recovery_start" and "artifact" not in line.data:
            return  # the reference overwrites a refused answer, so there is nothing to read
        if line.type == "same_socket_recovery_exhausted" and "artifact" not in line.data:
            return
        artifact = str(line.data.get("artifact"))
        try:
            text = self.read(artifact)
        except MateriaError as error:
            self.done.messages.append(str(error))
            text = ""
        if self.history.state.status != "waiting":
            return
        if (
            line.data.get("finalizedRefinement")
            and self.history.state.at
            and self.history.state.at.mode == "draft"
        ):
            self._finalize(line)
        usage = _usage(line.data.get("usage"))
        step = engine.output(self.rules, self.history.state, text, usage, self.history.prompt)
        self.done.conversation.append(("user", self.history.prompt.text if self.history.prompt else ""))
        self.done.conversation.append(("assistant", text))
        self.history.answered(step, text, artifact, usage, line.ts)

    def _say(self, line: Line) -> None:
        text = (
            self.read(str(line.data["artifact"]))
            if "artifact" in line.data
            else str(line.data.get("text", ""))
        )
        self.done.conversation.append(("user", text))

    def _finalize(self, line: Line) -> None:
        state, prompt = self.history.state, self.history.prompt
        if prompt is not None and state.at is not None and state.at.drafts:
            self.history.moved(engine.finalize(self.rules, state, prompt), line.ts)

    def _again(self, line: Line) -> None:
        if self.history.state.status not in ("failed", "aborted"):
            return
        transition = engine.recast if line.type == "cast_recast" else engine.revive
        self.history.moved(transition(self.rules, self.history.state), line.ts)
        self.done.conversation.clear()
        self.done.ended = False

    def _end(self, line: Line) -> None:
        state = self.history.state
        ok = line.data.get("ok") is True
        self.done.ended = True
        if not ok:
            self._failed(line, state)
            return
        if state.status == "ready":
            step = engine.enter(self.rules, state)
            if step.state.status == "complete":
                self.history.entered(step, line.ts)
                return
            self._differs(len(self.history.steps), "ended", self._our_way(step), self._our_reason(step))
        elif state.status != "complete":
            ours = f"is {state.status}"
            self._differs(len(self.history.steps), "ended", ours, self._our_reason(None))
        self.history.state = state._replace(status="complete", next=None, failure=None)

    def _failed(self, line: Line, state: CastState) -> None:
        message = str(line.data.get("error", "it failed"))
        kind = line.data.get("kind")
        if kind == "aborted":
            self.history.moved(engine.abort(state, message), line.ts)
            return
        if state.status == "waiting":
            kind = kind if isinstance(kind, str) else _utility_kind(self.command)
            failure = Failure(kind, message, state.at.socket if state.at else None, "recast to run it again")
            self.history.moved(engine.fail(state, failure), line.ts)
        elif state.status == "ready":
            step = engine.enter(self.rules, state)
            if step.state.status == "failed":
                self.history.entered(step, line.ts)
                return
            ours = self._our_way(step)
            self._differs(len(self.history.steps), f"failed ({message})", ours, self._our_reason(step))
            failure = Failure(
                str(kind or "recorded_failure"), message, None, "the reason is the recorded one"
            )
            self.history.state = state._replace(status="failed", next=None, failure=failure)

    def _our_way(self, step: engine.Step | None) -> str:
        state = step.state if step else self.history.state
        if state.status == "waiting" and state.at is not None:
            return f"goes on to {state.at.socket}"
        if state.status == "failed" and state.failure is not None:
            return f"fails ({state.failure.kind})"
        return "ends" if state.status in ("complete", "ready") else f"is {state.status}"

    def _our_reason(self, step: engine.Step | None) -> str:
        state = step.state if step else self.history.state
        if state.failure is not None:
            return state.failure.message
        decision = self.history.steps[-1].decision if self.history.steps else None
        if decision is None:
            return "the entry socket of the loadout comes first"
        chosen = decision.chosen
        if chosen is None:
            return f"{decision.socket} has no matching edge or exit, so {decision.target or END} follows"
        room = "" if chosen.limit is None else f"; used {chosen.used} of {chosen.limit} times here"
        return (
            f"the {chosen.kind} of {decision.socket} to {chosen.to} is the first that matches: "
            f"{chosen.reason(decision.satisfied)}{room}"
        )

    def _differs(self, step: int, recorded: str, ours: str, why: str) -> None:
        self.done.differences.append(Difference(step, recorded, ours, why))


def _utility_kind(command: Line | None) -> str:
    if command is None:
        return "recorded_failure"
    if command.data.get("timedOut"):
        return "utility_timeout"
    if command.data.get("startError"):
        return "utility_not_started"
    return "utility_exit" if command.data.get("code") != 0 else "invalid_output"


def _usage(value: JSON) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(int(value.get("input", 0)), int(value.get("output", 0)), float(value.get("cost", 0.0)))
