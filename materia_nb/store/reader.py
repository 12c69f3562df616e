"""Rebuilds a session from a journal that this engine or the reference engine wrote.

The events are applied by :func:`~materia_nb.engine.evolve.evolve`, which also applies the events of a running cast.
Events that this engine would not accept are translated first. Either the reference engine wrote them, or the config was
changed. If the recorded route differs from the route that this engine would take, the session follows the recorded
route, and the difference is reported with the reason for this engine's route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Iterator as Iterating
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine import events as ev
from materia_nb.engine.cast_warnings import Difference, engine_reason, engine_route
from materia_nb.engine.events import RECOVERY, Event, RecoveryStart, SocketStart, Transition, from_json
from materia_nb.engine.evolve import begin_session, evolve, output_of
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import about
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, output_name
from materia_nb.engine.state import NEW_ITEM, CastState, Failure, Item, Usage, Visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, as_list, as_object, is_number, whole_number
from materia_nb.loadout.graph import END, Iterator
from materia_nb.platform import without_collecting
from materia_nb.store.files import to_bytes
from materia_nb.store.journal import JournalLine
from materia_nb.store.rundir import is_item_key


def _enter_recorded_item(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> Transition:
    """Return a transition into ``socket`` with the recorded item and visit number.

    The transition is returned even if this engine would not enter the socket now.
    """
    state = state._replace(status="ready", next=socket, failure=None, pending_route=None)
    visit, key = recorded.visit, recorded.about.get("itemKey")
    if visit is not None and visit > 0:
        state = state._replace(visits={**state.visits, socket: visit - 1})
    iterator = rules.sockets[socket].socket.iterator
    index = _item_index(iterator, key)
    if iterator is not None and index is not None:
        state = state._replace(cursors={**state.cursors, iterator.cursor: index})
    with suppress(MateriaError):
        step = entering.enter(rules, state)
        at = step.state.waiting_at
        if at is not None and at.socket == socket and (at.item.key if at.item else None) == key:
            return step
    return _recorded_entry(rules, state, socket, recorded)


def _recorded_entry(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> Transition:
    """Return a transition into a recorded visit that this engine would not enter, or whose item does not exist."""
    state = enter_recorded_visit(rules, state, socket, recorded)
    item = state.at.item if state.at else None
    if item is not None:  # mark the item as entered, so that it does not count as skipped
        state = state._replace(items={**state.items, item.id: state.items.get(item.id, NEW_ITEM)})
    prompt = None if rules.sockets[socket].socket.is_utility else entering.prompt_for(rules, state)
    return Transition(state, (), None, prompt)


def enter_recorded_visit(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> CastState:
    """Return the state in which ``socket`` is waiting for an output for the recorded item."""
    node, mode = rules.sockets[socket].socket, rules.sockets[socket].first_mode
    key, label = recorded.about.get("itemKey"), recorded.about.get("itemLabel")
    item = None
    if isinstance(key, str):
        iterator, index = node.iterator, _item_index(node.iterator, key)
        item = Item(
            None,
            key,
            label if isinstance(label, str) else key,
            (iterator.cursor if iterator else "", index or 0, ()),
            iterator.loop if iterator else None,
        )
    number = state.visits.get(socket, 0) + 1
    visit = Visit(socket, number, state.steps + 1, item, mode)
    return state._replace(
        status="waiting",
        next=None,
        at=visit,
        steps=visit.step,
        failure=None,
        visits={**state.visits, socket: number},
        trail=(*state.trail, socket)[-rules.trail :],
    )


def _forced_finalization(rules: Rules, state: CastState, prompt: Prompt | None) -> Transition:
    """Return the transition that asks a socket for its final handoff, after a draft or other work.

    The transition is returned even if no draft or work is recorded.
    """
    visit = state.at
    if visit is not None and not visit.drafts:
        return Transition(state._replace(at=visit._replace(mode="final")))
    return outputs.finalize(rules, state, prompt or entering.prompt_for(rules, state))


def _turn_failed(event: Event | None) -> bool:
    """Return True if a turn of the reference engine failed before the agent answered (R59).

    The possible causes are a provider error, a timeout and a full context window. A refused answer is not a failed
    turn; its event names the validation that failed.
    """
    if not isinstance(event, RECOVERY):
        return False
    error = (event.error or "").casefold()
    has_no_kind = isinstance(event, RecoveryStart) and event.validation_kind is None
    return "agent turn failed" in error or (has_no_kind and "validation failed" not in error)


def describe_missing_answer(event: RecoveryStart) -> str:
    """Describe a turn whose answer is not in the recording."""
    error = (event.error or "no reason given")[:300]
    if _turn_failed(event):
        return f"a turn failed, and the agent was called again ({error})"
    unknown = "the recording does not contain this answer, so this engine cannot check it"
    return f"an answer was refused, and the agent was called again; {unknown} ({error})"


def _quest_id(lines: Sequence[JournalLine]) -> str | None:
    """Return the quest id of a reference-engine cast, which that engine uses as the item key outside loops (R59)."""
    start = next((line.data for line in lines if line.type == "cast_start"), {})
    quest = start.get("quest")
    quest_id = quest.get("id") if isinstance(quest, dict) else quest
    return quest_id if isinstance(quest_id, str) else None


def _item_index(iterator: Iterator | None, key: JSON) -> int | None:
    """Return the index of the work item with the key ``key`` (R13), or None if the key is invalid."""
    if iterator is None or not isinstance(key, str):
        return None
    digits = key.removeprefix("WI-") if iterator.has_work_item_keys else key
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    index = int(digits) - (1 if iterator.has_work_item_keys else 0)
    return index if index >= 0 else None


_EVENT_TYPE_NAMES: Final = {"budget_updated": "budget_set"}
"""Maps event types of the reference engine to this engine's names for the same events."""


@dataclass(slots=True)
class Recording:
    """A cast that was read from a journal.

    Attributes:
        session: the session after the last event.
        differences: the points at which this engine would have taken a different route than the recorded route.
        messages: messages about failed turns, and about events and artifacts that could not be read.
    """

    session: Session
    differences: list[Difference] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


@without_collecting()
def read_session(
    rules: Rules,
    lines: list[JournalLine],
    read: Callable[[str], str],
    *,
    strict: bool = False,
    consume_lines: bool = False,
) -> Recording:
    """Rebuild a cast from the events of its journal.

    Args:
        rules: the rules of the recorded loadout.
        lines: the events of the journal.
        read: a function that returns the content of the artifact with a given name; it raises MateriaError if the
            artifact cannot be read.
        strict: raise an error for an unreadable event or artifact instead of adding a message to the recording.
        consume_lines: remove each event from ``lines`` before it is applied, to save memory.

    Raises:
        MateriaError: the journal is damaged (``damaged_journal``) or, with ``strict``, an artifact cannot be read.
    """
    reader = _JournalReader(rules, lines, read, strict=strict)
    for line in _pop_lines(lines) if consume_lines else lines:
        reader.apply_line(line)
    return reader.recording


def _pop_lines(lines: list[JournalLine]) -> Iterating[JournalLine]:
    lines.reverse()
    while lines:
        yield lines.pop()


_OUTPUT_TYPES: Final = frozenset(event.type for event in ev.OUTPUTS)


def with_recorded_usage(lines: Sequence[JournalLine], report: JSON) -> list[JournalLine]:
    """Return the events of a reference-engine cast, with the usage of each turn added to the event of its output.

    The reference engine records the usage of the turns only in its usage report, in order. The usage of a turn whose
    answer was not stored is added to the next output of the same socket. The usage of the remaining turns is added to
    the last output of the socket.

    Args:
        lines: the recorded events.
        report: the usage report, from the end event of the cast or from ``usage.json``.
    """
    turns: dict[str, list[Usage]] = {}
    for turn in as_list(as_object(report).get("turns")):
        socket = as_object(turn).get("socket")
        if isinstance(socket, str):
            turns.setdefault(socket, []).append(_reference_usage(as_object(turn)))
    result, last_output, pending = list(lines), dict[str, int](), dict[str, list[Usage]]()
    for number, line in enumerate(lines):
        socket = line.data.get("socket")
        if line.type not in _OUTPUT_TYPES or not isinstance(socket, str) or not turns.get(socket):
            continue
        pending.setdefault(socket, []).append(turns[socket].pop(0))
        if line.data.get("artifact") is not None or line.data.get("text") is not None:
            last_output[socket] = number
            result[number] = _with_usage(line, pending.pop(socket))
    for socket, number in last_output.items():
        remaining = [*pending.get(socket, ()), *turns[socket]]
        if remaining:
            result[number] = _with_usage(result[number], remaining)
    return result


def _with_usage(line: JournalLine, usages: Sequence[Usage]) -> JournalLine:
    total = usages[0].plus(*usages[1:])
    recorded = line.data.get("usage")
    if recorded is not None:
        total = Usage.read(recorded).plus(total)
    return line._replace(data={**line.data, "usage": total.as_json()})


def _reference_usage(turn: Mapping[str, JSON]) -> Usage:
    """Convert the usage of a turn of the reference engine, which counts cached input tokens separately."""
    tokens, cost = as_object(turn.get("tokens")), as_object(turn.get("cost")).get("total")
    fresh, read, stored, output = (
        count if count is None or count >= 0 else None
        for count in (whole_number(tokens.get(name)) for name in ("input", "cacheRead", "cacheWrite", "output"))
    )
    tokens_in = None if fresh is None else fresh + (read or 0) + (stored or 0)
    return Usage(tokens_in, output, cost if is_number(cost) else None, cached=read or None)


class _WrongConfig(MateriaError):
    """Raised if the config does not match the journal, so the cast cannot be displayed."""


class _JournalReader:
    """Applies the events of a journal to a session, and translates events that this engine would not accept.

    If this engine would have continued differently, a translated event carries the recorded transition.
    """

    def __init__(self, rules: Rules, lines: Sequence[JournalLine], read: Callable[[str], str], *, strict: bool) -> None:
        self.rules = rules
        self.strict = strict
        self._read = read
        self.recording = Recording(begin_session(rules, start_event(lines)))
        self.quest = _quest_id(lines)
        self.recorded_artifacts = {str(name) for line in lines if (name := line.data.get("artifact")) is not None}
        self.command: ev.UtilityCommand | None = None
        self.recovery: ev.Event | None = None
        self.has_budget_limit = False
        self.may_differ = False  # True after a retry or a lost output: any socket may start next
        self.translators: Mapping[type[ev.Event], Callable[[Any], None]] = {
            ev.SocketStart: self._apply_start,
            ev.RefinementFinal: self._finalize_visit,
            ev.CastRetried: self._apply_continuation,
            ev.LimitRaised: self._apply_continuation,
            ev.CastEnd: self._apply_end,
            **dict.fromkeys(ev.OUTPUTS, self._apply_output),
        }

    @property
    def session(self) -> Session:
        return self.recording.session

    def apply_line(self, line: JournalLine) -> None:
        try:
            if line.type == "inference_interruption":
                self._add_message(f"{line.data.get('socket')}: the agent was interrupted: {line.data.get('error')}")
            kind = _EVENT_TYPE_NAMES.get(line.type, line.type)
            event = from_json(kind, line.data, line.ts, lenient=not self.strict)
            if event is not None and not isinstance(event, ev.CastStart):  # the start event was read by __init__
                self._apply_translated(event)
        except MateriaError as error:
            if self.strict or isinstance(error, _WrongConfig):
                raise
            self._add_message(error)

    def _apply_translated(self, event: ev.Event) -> None:
        if isinstance(event, (ev.Output, ev.OutputEdited)) and event.text is None:
            if isinstance(event, ev.RECOVERY) and event.artifact is None:
                self._report_missing_answer(event)
                return
            try:
                event = event.replace(text=self._read_output(event))
            except MateriaError as error:
                if self.strict or not isinstance(event, ev.Output):
                    raise
                self._add_message(error)
                self._skip_output(event)
                return
        translate = None if event.lane else self.translators.get(type(event))  # only this engine has lanes
        if isinstance(event, ev.CastEnd) and event.usage:
            self._apply_end(event)  # the totals in this event may be the only record of the usage
        else:
            try:
                self._apply_event(event)
            except MateriaError:
                if translate is None:
                    raise
                translate(event)
        self._store_context(event)

    def _apply_event(self, event: ev.Event) -> None:
        self.recording.session = evolve(self.rules, self.session, event)

    def _apply_forced(self, event: ev.Event, transition: Transition) -> None:
        """Apply an event with the recorded transition, which this engine would not make itself."""
        self._apply_event(event.replace(transition=transition._replace(before=self.session.state, forced=True)))

    def _store_context(self, event: ev.Event) -> None:
        """Remember events that can explain a later failure or a later change of route.

        ``may_differ`` becomes True if the recording may continue at another socket than this engine would choose.
        """
        match event:
            case ev.SocketStart():
                self.command = self.recovery = None
                self.has_budget_limit = self.may_differ = False
            case ev.UtilityCommand():
                self.command = event
            case ev.BudgetLimit():
                self.has_budget_limit = True
            case ev.CastRetried() | ev.LimitRaised():
                self.may_differ = True
            case ev.Output() | ev.CastEnd():
                self.may_differ = False

    # -- starting a socket ------------------------------------------------------------

    def _apply_start(self, event: ev.SocketStart) -> None:
        recorded, key = event.about.get("socket"), event.about.get("itemKey")
        if not isinstance(recorded, str) or recorded not in self.rules.sockets:
            raise _WrongConfig(
                f"The journal contains a visit to the socket {recorded!r}, which is not in the recorded loadout.",
                hint="restore the run directory from a copy, because its config or journal was changed",
                kind="damaged_journal",
            )
        if self.strict and key is not None and not (isinstance(key, str) and is_item_key(key)):
            raise MateriaError(
                f"The journal contains an invalid item key: {str(key)[:100]!r}.",
                hint="do not trust this run directory, because its journal was changed",
                kind="damaged_journal",
            )
        state = self.session.state
        if state.at and state.status == "waiting" and (state.at.socket, state.at.visit) == (recorded, event.visit):
            return  # the event repeats the start of the current visit
        step = entering.enter(self.rules, state) if state.status == "ready" else None
        at = step.state.waiting_at if step else None
        if step is None or at is None or at.socket != recorded:
            if not self.may_differ:
                self._add_difference(f"went to {recorded}", step)
        elif (item_key := at.item.key if at.item else None) != key and not (
            self.may_differ or (at.item is None and key == self.quest)
        ):
            why = "the cursors differ" if at.item is None else f"the cursor {at.item.cursor} is at {at.item.position}"
            self.recording.differences.append(Difference(at.step, f"took item {key}", f"takes item {item_key}", why))
        elif item_key == key and event.visit in (at.visit, None):
            self._apply_event(event.replace(transition=step._replace(before=state)))
            return
        self._apply_forced(event, _enter_recorded_item(self.rules, state, recorded, event))

    # -- outputs ------------------------------------------------------------------------

    def _apply_output(self, event: ev.Output) -> None:
        visit, socket = self.session.state.waiting_at, event.about.get("socket")
        if visit is None:
            self._add_message(f"the output of {socket} is skipped, because no socket was waiting for an output")
            return
        if socket not in (None, visit.socket):
            self._add_message(f"the output of {socket} is skipped, because the cast was waiting for {visit.socket}")
            return
        if isinstance(event, ev.SocketComplete):
            self._finalize_visit(event)  # the recording engine accepted this output as final
        self._apply_forced(event, output_of(self.rules, self.session, event))

    def _read_output(self, event: ev.Output | ev.OutputEdited) -> str:
        """Return the output that is stored in an artifact.

        Raises MateriaError if the digest of the output differs from the recorded digest (R43).
        """
        text = self._read(event.artifact or "")
        if event.sha256 is not None and sha256(to_bytes(text)).hexdigest() != event.sha256:
            raise MateriaError(
                "An output was changed: its SHA-256 differs from the recorded SHA-256.",
                where=event.artifact,
                hint="restore the output from a copy of the run directory",
                kind="damaged_artifact",
            )
        return text

    def _skip_output(self, event: ev.Output) -> None:
        """Continue after an output that cannot be read.

        The step gets an empty output, and its effects on the state are unknown.
        """
        event, visit = event.replace(text=""), self.session.state.waiting_at
        if not isinstance(event, ev.SocketComplete) or visit is None:
            self._apply_output(event)
        else:
            target = event.next if event.next in self.rules.sockets else END
            empty_output = event.replace(meta={}, pinned=None, by=None, thinking=None, cut=None)
            self._apply_forced(empty_output, Transition(self.session.state._replace(status="ready", next=target)))
            self.may_differ = True

    def _report_missing_answer(self, event: ev.Output) -> None:
        """Add a message about a turn whose answer was not kept, because the visit's next answer overwrote the file."""
        if isinstance(event, ev.RecoveryStart):
            self._add_message(describe_missing_answer(event))
            self.recovery = event
        elif _turn_failed(event):
            self.recovery = event

    def _finalize_visit(self, event: ev.Event) -> None:
        state = self.session.state
        visit = state.waiting_at
        if visit is not None and visit.mode in self.rules.sockets[visit.socket].free_text_modes:
            step = _forced_finalization(self.rules, state, self.session.prompt)
            self._apply_forced(ev.RefinementFinal(about=about(self.rules, visit), ts=event.ts), step)

    # -- the end, and going on after it -------------------------------------------------

    def _apply_continuation(self, event: ev.CastRetried | ev.LimitRaised) -> None:
        state = self.session.state
        if isinstance(event, ev.CastRetried) and state.status not in ("waiting", "held") and state.at is not None:
            failure = state.failure._replace(blocked=None) if state.failure else None
            status = state.status if state.status == "aborted" else "failed"
            state = state._replace(status=status, next=None, pending_route=None, failure=failure)
        elif state.status not in ("failed", "aborted", "held"):
            return
        transition = recovery.retry if isinstance(event, ev.CastRetried) else recovery.raise_limit
        try:
            self._apply_forced(event, transition(self.rules, state))
        except MateriaError as error:
            self._add_message(f"the recording continued, although this engine would stop: {error.what}")

    def _apply_end(self, event: ev.CastEnd) -> None:
        state = self.session.state
        if event.usage and not state.usage.tokens:
            state = state._replace(usage=_reference_usage(event.usage))
        if event.ok is not True:
            self._apply_failure(event, state)
            return
        if state.status == "ready":
            step = entering.enter(self.rules, state)
            if step.state.status == "complete":
                self._apply_forced(event, step)
                return
            if not self.may_differ:
                self._add_difference("ended", step)
        elif state.status != "complete":
            self._add_difference("ended", None)
        self._apply_forced(event, Transition(state._replace(status="complete", next=None, failure=None)))

    def _apply_failure(self, event: ev.CastEnd, state: CastState) -> None:
        message = "the recording contains no reason" if event.error is None else event.error
        if event.kind == recovery.ABORTED or (event.kind is None and message.strip().lower() == "aborted"):
            if state.status in ("ready", "waiting", "held"):
                end_event = event.replace(kind=recovery.ABORTED, error=message)
                self._apply_forced(end_event, recovery.abort(state, message))
        elif state.status == "waiting":
            self._fail_visit(event, state, message)
        elif state.status == "ready":
            self._fail_between_visits(event, state, message)

    def _fail_visit(self, event: ev.CastEnd, state: CastState, message: str) -> None:
        """Apply the failure of a cast that was waiting for an output.

        If the refused output is recorded, it is applied first.
        """
        if event.kind is None and self._apply_refused(event, state):
            state = self.session.state
            if state.failure is not None:
                known_state = state._replace(failure=state.failure._replace(message=message))
                self._apply_forced(event, Transition(known_state))
                return
            step = entering.enter(self.rules, state) if state.status == "ready" else None
            self._add_difference(f"failed ({message})", step)
        socket = state.at.socket if state.at else None
        hint = event.hint if event.hint is not None else "run `retry` to repeat the visit"
        failure = Failure(event.kind if event.kind is not None else self._failure_kind(), message, socket, hint)
        if state.status == "waiting":
            self._apply_forced(event, recovery.fail(self.rules, state, failure))
        else:
            self._apply_forced(event, Transition(state._replace(status="failed", next=None, failure=failure)))

    def _apply_refused(self, event: ev.CastEnd, state: CastState) -> bool:
        """Apply the refused output that made a recorded cast fail; return False if the output is not recorded.

        The reference engine stores only the last output of a visit. If another event names the file, the file contains
        the output of a later retry instead.
        """
        visit = state.at
        if visit is None or visit.mode in self.rules.sockets[visit.socket].free_text_modes:
            return False
        if (self.command and self._failure_kind() != "invalid_output") or _turn_failed(self.recovery):
            return False
        name = output_name(visit.socket, visit.visit, visit.item.key if visit.item else None)
        if name in self.recorded_artifacts:
            return False
        try:
            text = self._read(name)
        except MateriaError:
            return False
        last = visit._replace(repairs=self.rules.graph.limits.repair_attempts)
        step = outputs.output(self.rules, state._replace(at=last), text, None, self.session.prompt, artifact=name)
        first = step.events[0]
        assert isinstance(first, ev.Output)  # noqa: S101 - the transition of an output starts with the output event
        self._apply_forced(first.replace(text=text, artifact=name, ts=event.ts), step)
        return True

    def _fail_between_visits(self, event: ev.CastEnd, state: CastState, message: str) -> None:
        socket = state.at.socket if state.at else None
        if not self.has_budget_limit:
            step = entering.enter(self.rules, state)
            if step.state.status == "failed":
                self._apply_forced(event, step)
                return
            if not self.may_differ:
                self._add_difference(f"failed ({message})", step, message)
        kind = event.kind or ("budget" if self.has_budget_limit else "recorded_failure")
        failure = Failure(kind, message, socket, "read the recorded reason")
        self._apply_forced(event, Transition(state._replace(status="failed", next=None, failure=failure)))

    def _failure_kind(self) -> str:
        if self.command is not None:
            if self.command.timed_out:
                return "utility_timeout"
            if self.command.start_error:
                return "utility_not_started"
            return "utility_exit" if self.command.code != 0 else "invalid_output"
        if self.recovery is None:
            return "recorded_failure"
        return "agent_error" if _turn_failed(self.recovery) else "repair_exhausted"

    def _add_difference(self, recorded: str, step: Transition | None, error: str = "") -> None:
        number = max(len(self.session.steps), 1)
        why = engine_reason(self.session, step, error)
        self.recording.differences.append(Difference(number, recorded, engine_route(self.session, step), why))

    def _add_message(self, content: object) -> None:
        message = " ".join(str(content).split())
        self.recording.messages.append(f"Step {len(self.session.steps)}: {message}.".replace("..", "."))


def start_event(lines: Sequence[JournalLine]) -> ev.CastStart:
    """Return the start event of a journal, or an empty start event if the journal does not contain one."""
    data: Mapping[str, JSON] = next((line.data for line in lines if line.type == "cast_start"), {})
    event = from_json("cast_start", data, lenient=True)
    assert isinstance(event, ev.CastStart)  # noqa: S101 - for the type checker
    return event
