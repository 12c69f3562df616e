"""Rebuilding a cast by running the engine over what its journal recorded.

The same reader serves our own run directories and those of the reference engine:
both say which socket was started and where its output is kept. Where the recorded
route is not the one that the engine takes, the difference is kept, with the
engine's reason, and the rebuilding goes on along the recorded route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from materia_nb.engine import edit
from materia_nb.engine import step as engine
from materia_nb.engine.pins import Pin
from materia_nb.engine.prompt import reworded
from materia_nb.engine.rules import Rules
from materia_nb.engine.said import call_from
from materia_nb.engine.state import CastState, Failure, Usage
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END
from materia_nb.store.detour import finalized, towards
from materia_nb.store.differences import Difference, our_reason, our_way
from materia_nb.store.history import Edit, History
from materia_nb.store.journal import Line
from materia_nb.store.rundir import output_name

__all__ = ["OUTPUT_TYPES", "Difference", "Replay", "replay"]

OUTPUT_TYPES: Final = frozenset(
    {
        "socket_complete",
        "socket_refinement",
        "socket_worked",
        "socket_refused",
        "socket_held",
        "socket_continued",
        "same_socket_recovery_start",
        "same_socket_recovery_exhausted",
    }
)
"""Events that name the artifact of an output which arrived."""

_RECOVERY: Final = frozenset({"same_socket_recovery_start", "same_socket_recovery_exhausted"})


@dataclass(slots=True)
class Replay:
    """A rebuilt cast: its history, differences from what was recorded, and what could not be read."""

    history: History
    differences: list[Difference] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def replay(
    rules: Rules, lines: Sequence[Line], read: Callable[[str], str], *, strict: bool = False
) -> Replay:
    """Run the engine over recorded events.

    Args:
        rules: those of the recorded loadout.
        lines: the events.
        read: gives the text of an artifact by name; raises MateriaError when it cannot.
        strict: whether an artifact that cannot be read is an error rather than a message.

    Raises:
        MateriaError: kind ``damaged_journal``, or what ``read`` raised if strict.
    """
    start = next((line.data for line in lines if line.type == "cast_start"), {})
    request = start.get("request")
    known, data = (
        value if isinstance(value := start.get(name), dict) else None for name in ("knowledge", "state")
    )
    state = engine.begin(rules, request if isinstance(request, str) else "", known, data)
    done = Replay(History(state))
    named = {str(line.data.get("artifact")) for line in lines if line.type in OUTPUT_TYPES}
    player = _Player(rules, read, done, named, strict=strict)
    for line in lines:
        player.play(line)
    return done


class _Player:
    def __init__(
        self, rules: Rules, read: Callable[[str], str], done: Replay, named: set[str], *, strict: bool
    ) -> None:
        self.rules = rules
        self.named = named
        self.read = read
        self.done = done
        self.strict = strict
        self.history = done.history
        self.command: Line | None = None
        self.recovery: Line | None = None
        self.budget: Line | None = None
        self.free = False  # the next start need not be where the engine would go: recast, or a lost output
        self.handlers: Mapping[str, Callable[[Line], None]] = {
            **dict.fromkeys(OUTPUT_TYPES, self._output),
            "socket_start": self._start,
            "utility_command": self._command,
            "cast_end": self._end,
            "refinement_message": self._say,
            "refinement_final": self._finalize,
            "budget_limit": self._over_budget,
            "budget_set": self._set_budget,
            "budget_updated": self._set_budget,
            "cast_recast": self._again,
            "cast_revive": self._again,
            "state_edited": self._edited,
            "prompt_edited": self._reworded,
            "edit_undone": self._undone,
            "socket_recommitted": self._recommitted,
            "cast_back": self._back,
            "hold_answered": self._answer,
            "approval_answered": self._answer,
            "hold_decided": self._decide,
            "evidence_missing": self._lacking,
            "tool_call": self._called,
            "tool_asked": self._asks,
            "tool_decided": self._asks,
            "tools_allowed": self._allowed,
            "agent_note": self._agent_note,
            "turn_spent": self._spent,
            "turn_resent": self._resent,
            "pinned": self._pinned,
            "unpinned": self._unpinned,
            "suggestion_kept": lambda line: self.history.remembered(line.data.get("suggestion")),
        }

    def play(self, line: Line) -> None:
        handler = self.handlers.get(line.type)
        if handler is not None:
            handler(line)

    # -- starting a socket ------------------------------------------------------------

    def _start(self, line: Line) -> None:
        recorded, key = line.data.get("socket"), line.data.get("itemKey")
        if not isinstance(recorded, str) or recorded not in self.rules.sockets:
            raise MateriaError(
                f"The journal visits {recorded!r}, which the recorded loadout does not have.",
                hint="the config or the journal of this run directory was exchanged or changed",
                kind="damaged_journal",
            )
        state, visit = self.history.state, line.data.get("visit")
        if state.at and state.status == "waiting" and (state.at.socket, state.at.visit) == (recorded, visit):
            return  # the same visit once more
        step = engine.enter(self.rules, state) if state.status == "ready" else None
        at = step.state.at if step and step.state.status == "waiting" else None
        if step is None or at is None or at.socket != recorded:
            if not self.free:
                self._differs(f"went to {recorded}", step)
        elif (found := at.item.key if at.item else None) != key and not self.free:
            why = (
                "the cursors differ"
                if at.item is None
                else f"the cursor {at.item.cursor} is at {at.item.position}"
            )
            difference = Difference(at.step, f"took item {key}", f"takes item {found}", why)
            self.done.differences.append(difference)
        elif found == key and visit in (at.visit, None):
            self._entered(step, line)
            return
        self._entered(towards(self.rules, state, recorded, line.data), line)

    def _entered(self, step: engine.Step, line: Line) -> None:
        self.history.entered(step, line.ts)
        self.command = self.recovery = self.budget = None
        self.free = False

    # -- outputs ------------------------------------------------------------------------

    def _output(self, line: Line) -> None:
        artifact = line.data.get("artifact")
        if artifact is None and line.type in _RECOVERY:
            self._unkept(line)
            return
        visit = self.history.state.at
        if self.history.state.status != "waiting" or visit is None:
            self._note(
                f"an output of {line.data.get('socket')} was recorded that nothing asked for; it is left out"
            )
            return
        if line.data.get("socket", visit.socket) != visit.socket:
            self._note(f"an output of {line.data.get('socket')} was recorded while {visit.socket} was asked")
            return
        self.free = False
        try:
            text = self.read(artifact if isinstance(artifact, str) else "")
        except MateriaError as error:
            if self.strict:
                raise
            self._note(" ".join(str(error).split()))
            self._lost(line, artifact)
            return
        self._answered(line, text, artifact)

    def _answered(self, line: Line, text: str, artifact: JSON) -> None:
        visit = self.history.state.at
        if line.type == "socket_complete" and visit is not None:
            self._finalize(line)  # whoever recorded it asked for no more
        usage = _usage(line.data.get("usage"))
        step = engine.output(self.rules, self.history.state, text, usage, self.history.prompt)
        kept, meta = artifact if isinstance(artifact, str) else None, line.data.get("meta")
        pinned = line.data.get("pinned")
        self.history.answered(
            step,
            text,
            kept,
            usage,
            line.ts,
            meta if isinstance(meta, dict) else None,
            pinned=pinned if isinstance(pinned, str) else None,
        )

    def _lost(self, line: Line, artifact: JSON) -> None:
        """Go on without an output that cannot be read: the step is shown, what it did is not known."""
        if line.type != "socket_complete":
            self._answered(line, "", artifact)
            return
        target = line.data.get("next")
        known = target if target in self.rules.sockets else END
        state = self.history.state._replace(status="ready", next=known)
        self.history.answered(engine.Step(state), "", str(artifact), _usage(line.data.get("usage")), line.ts)
        self.free = True

    def _unkept(self, line: Line) -> None:
        """Note a refused answer of the reference: the next answer of the visit overwrote its artifact."""
        self.recovery = line
        if line.type == "same_socket_recovery_start":
            error = str(line.data.get("error", "no reason given"))
            self._note(
                f"an answer was refused and asked for again; the recording does not keep it ({error[:300]})"
            )

    def _lacking(self, line: Line) -> None:
        paths = line.data.get("paths")
        if self.history.steps and isinstance(paths, list):
            self.history.lacking([path for path in paths if isinstance(path, str)])

    # -- what a person changed ----------------------------------------------------------

    def _edited(self, line: Line) -> None:
        import jsonpatch

        before, patch = self.history.state, line.data.get("patch") or []
        data = jsonpatch.apply_patch(dict(before.data), patch)
        origins = line.data.get("origins")
        if isinstance(origins, list):
            after = edit.edit_items(self.rules, before, data["workItems"], origins)
        else:
            after = edit.edit_data(before, data)
        made = Edit(line.ts, before.steps, tuple(patch), tuple(line.data.get("inverse", ())), before, after)
        self.history.edited(made, edit.prompt_after(self.rules, after))

    def _reworded(self, line: Line) -> None:
        if self.history.prompt is not None:
            layer, text = str(line.data.get("layer")), str(line.data.get("text", ""))
            self.history.reworded(reworded(self.history.prompt, layer, text))

    def _undone(self, _: Line) -> None:
        if self.history.edits:
            self.history.undone()

    def _recommitted(self, line: Line) -> None:
        artifact = str(line.data.get("artifact"))
        text = self.read(artifact)
        step = edit.recommit(self.rules, self.history.steps[-1].before, self.history.state, text)
        self.history.recommitted(step, text, artifact, line.ts)

    def _back(self, line: Line) -> None:
        number = int(line.data.get("step", 0))
        earlier = self.history.steps[number - 1].after if number else self.history.start
        self.history.back(edit.back_to(earlier, self.history.state), number)

    def _pinned(self, line: Line) -> None:
        pin, name = Pin.read(line.data), line.data.get("name")
        if pin is not None and isinstance(name, str):
            self.history.pins = {**self.history.pins, name: pin}

    def _unpinned(self, line: Line) -> None:
        name = line.data.get("name")
        self.history.pins = {key: pin for key, pin in self.history.pins.items() if key != name}

    # -- what a person said to a cast that was held -------------------------------------

    def _answer(self, line: Line) -> None:
        prompt = self.history.prompt or (self.history.steps[-1].prompt if self.history.steps else None)
        if self.history.state.status == "held" and prompt is not None:
            said = str(line.data.get("text", ""))
            self.history.moved(engine.answered(self.rules, self.history.state, said, prompt), line.ts)

    def _decide(self, line: Line) -> None:
        if self.history.state.status == "held":
            satisfied, target = line.data.get("satisfied"), line.data.get("target")
            step = engine.decided(
                self.rules,
                self.history.state,
                satisfied=satisfied if isinstance(satisfied, bool) else None,
                target=target if isinstance(target, str) else None,
            )
            self.history.moved(step, line.ts)

    # -- what an agent did on the way to an answer -----------------------------------------

    def _called(self, line: Line) -> None:
        call = call_from(line.data.get("call"))
        if call is not None and self.history.steps:
            self.history.called(call)

    def _asks(self, line: Line) -> None:
        calls = line.data.get("calls")
        if isinstance(calls, list):
            self.history.asks([call for one in calls if (call := call_from(one)) is not None])

    def _allowed(self, line: Line) -> None:
        tools = line.data.get("tools")
        if isinstance(tools, list):
            self.history.allowed = frozenset(tool for tool in tools if isinstance(tool, str))

    def _agent_note(self, line: Line) -> None:
        if self.history.steps:
            self.history.noted(str(line.data.get("text", "")))

    def _spent(self, line: Line) -> None:
        usage = _usage(line.data.get("usage"))
        if usage is not None and self.history.steps:
            self.history.spent(usage, engine.spend(self.history.state, usage))

    def _resent(self, line: Line) -> None:
        state = self.history.state
        if state.failure is not None and state.at is not None:
            state = state._replace(failure=state.failure._replace(again=True))
            self.history.resent(engine.resend(self.rules, state), line.ts)

    # -- turns of a visit ---------------------------------------------------------------

    def _command(self, line: Line) -> None:
        self.command = line

    def _say(self, line: Line) -> None:
        self.history.refined(str(line.data.get("text", "")))

    def _finalize(self, line: Line) -> None:
        state = self.history.state
        visit = state.at if state.status == "waiting" else None
        if visit is not None and self.rules.sockets[visit.socket].any_text(visit.mode):
            self.history.moved(finalized(self.rules, state, self.history.prompt), line.ts)

    def _set_budget(self, line: Line) -> None:
        most = line.data.get("maxTokens")
        limit = most if isinstance(most, int) and not isinstance(most, bool) else None
        self.history.state = engine.set_budget(self.history.state, limit)

    def _over_budget(self, line: Line) -> None:
        self.budget = line

    # -- the end, and going on after it -------------------------------------------------

    def _again(self, line: Line) -> None:
        state = self.history.state
        self.free = True
        if line.type == "cast_recast" and state.status != "waiting" and state.at is not None:
            failure = state.failure._replace(blocked=None) if state.failure else None
            state = state._replace(status="failed", next=None, pending=None, failure=failure)
        elif state.status not in ("failed", "aborted"):
            return
        transition = engine.recast if line.type == "cast_recast" else engine.revive
        try:
            step = transition(self.rules, state)
        except MateriaError as error:
            self._note(f"the recording went on where this engine would not: {error.what}")
            return
        self.history.again(step, line.ts)

    def _end(self, line: Line) -> None:
        self.free, free = False, self.free
        state = self._with_usage(line)
        if line.data.get("ok") is not True:
            self._failed(line, state, free=free)
            return
        if state.status == "ready":
            step = engine.enter(self.rules, state)
            if step.state.status == "complete":
                self.history.entered(step, line.ts)
                return
            if not free:
                self._differs("ended", step)
        elif state.status != "complete":
            self._differs("ended", None)
        self.history.state = state._replace(status="complete", next=None, failure=None)

    def _with_usage(self, line: Line) -> CastState:
        """Take the totals of a recording that does not keep them for each output."""
        state, usage = self.history.state, line.data.get("usage")
        if isinstance(usage, dict) and not state.usage.tokens:
            tokens, cost = usage.get("tokens"), usage.get("cost")
            total = (
                {**tokens, "cost": cost.get("total") if isinstance(cost, dict) else 0}
                if isinstance(tokens, dict)
                else None
            )
            state = state._replace(usage=_usage(total) or state.usage)
            self.history.state = state
        return state

    def _failed(self, line: Line, state: CastState, *, free: bool) -> None:
        message = str(line.data.get("error", "the recording does not say why"))
        kind = line.data.get("kind")
        if kind == "aborted" or (kind is None and message.strip().lower() == "aborted"):
            if state.status in ("ready", "waiting"):
                self.history.moved(engine.abort(state, message), line.ts)
        elif state.status == "waiting":
            self._failed_visit(line, message, kind)
        elif state.status == "ready":
            self._failed_between(line, message, kind, free=free)

    def _failed_visit(self, line: Line, message: str, kind: JSON) -> None:
        """Fail the visit that owes an output: by the output that the recording refused, if it kept that."""
        if kind is None and self._refused_last(line):
            state = self.history.state
            if state.failure is not None:
                self.history.state = state._replace(failure=state.failure._replace(message=message))
                return
            self._differs(
                f"failed ({message})", engine.enter(self.rules, state) if state.status == "ready" else None
            )
        state = self.history.state
        hint, socket = line.data.get("hint"), state.at.socket if state.at else None
        failure = Failure(
            kind if isinstance(kind, str) else self._kind(),
            message,
            socket,
            hint if isinstance(hint, str) else "recast to run it again",
        )
        if state.status == "waiting":
            self.history.moved(engine.fail(state, failure), line.ts)
        else:
            self.history.state = state._replace(status="failed", next=None, failure=failure)

    def _refused_last(self, line: Line) -> bool:
        """Read the output that a recording stopped at. The reference keeps only the last one of a visit.

        A file that another event names holds what a recast brought.
        """
        state = self.history.state
        visit = state.at
        if visit is None or self.rules.sockets[visit.socket].any_text(visit.mode):
            return False
        if self.command and self._kind() != "invalid_output":
            return False
        name = output_name(visit.socket, visit.visit, visit.item.key if visit.item else None)
        if name in self.named:
            return False
        try:
            text = self.read(name)
        except MateriaError:
            return False
        self.history.state = state._replace(
            at=visit._replace(repairs=self.rules.graph.limits.repair_attempts)
        )
        self._answered(line, text, name)
        return True

    def _failed_between(self, line: Line, message: str, kind: JSON, *, free: bool) -> None:
        state = self.history.state
        socket = state.at.socket if state.at else None
        if self.budget is None:
            step = engine.enter(self.rules, state)
            if step.state.status == "failed":
                self.history.entered(step, line.ts)
                return
            if not free:
                self._differs(f"failed ({message})", step, message)
        given = kind if isinstance(kind, str) else "budget" if self.budget else "recorded_failure"
        failure = Failure(given, message, socket, "the reason is the recorded one")
        self.history.state = state._replace(status="failed", next=None, failure=failure)

    def _kind(self) -> str:
        if self.command is not None:
            data = self.command.data
            if data.get("timedOut"):
                return "utility_timeout"
            if data.get("startError"):
                return "utility_not_started"
            return "utility_exit" if data.get("code") != 0 else "invalid_output"
        if self.recovery is None:
            return "recorded_failure"
        return "repair_exhausted" if self.recovery.data.get("validationKind") else "agent_error"

    def _differs(self, recorded: str, step: engine.Step | None, error: str = "") -> None:
        number = max(len(self.history.steps), 1)
        why = our_reason(self.history, step, error)
        self.done.differences.append(Difference(number, recorded, our_way(self.history, step), why))

    def _note(self, message: str) -> None:
        self.done.messages.append(f"Step {len(self.history.steps)}: {message}.".replace("..", "."))


def _usage(value: JSON) -> Usage | None:
    """Read the usage of an output; anything that is not a number counts as none."""
    if not isinstance(value, dict):
        return None
    given = [value.get(name) for name in ("input", "output", "cost")]
    numbers = [n if isinstance(n, (int, float)) and not isinstance(n, bool) else 0 for n in given]
    try:
        return Usage(int(numbers[0]), int(numbers[1]), float(numbers[2]))
    except (ValueError, OverflowError):  # not finite
        return None
