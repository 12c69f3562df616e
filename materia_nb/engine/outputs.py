"""Process an output: store a draft, refuse the output, put the cast on hold, or complete the socket (R2, R19)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from materia_nb.engine import events as ev
from materia_nb.engine.completing import apply_output, complete, fail, number_side_events, start_detour
from materia_nb.engine.conversation import ToolCall, truncate
from materia_nb.engine.entering import EntryPrompt, answer_format, enter, first_prompt, turn_facts
from materia_nb.engine.events import Transition
from materia_nb.engine.prompt import DRAFT_ACCEPTED, WORK_IS_OVER, Prompt, next_prompt, repair_prompt
from materia_nb.engine.routing import about, decision_of, max_repairs
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, TurnRecord
from materia_nb.engine.state import (
    CastState,
    Draft,
    Failure,
    Handoffs,
    Hold,
    StateView,
    Usage,
    Visit,
    held_visit,
    waiting_visit,
    with_working_time,
)
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.handoff.base import UNKNOWN, Issue, Reading
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, FrozenDict, frozen
from materia_nb.loadout.graph import END
from materia_nb.loadout.vocabulary import ACCEPTED, Result

_CONTINUE_PROMPT: Final = "Continue this work where you stopped."

CORRECT_UTILITY_HINT: Final = "correct the utility, then use `retry`; if you changed its definition, use `edit redefine` to apply the change to this cast"
"""Hint for a cast that stopped because a utility failed."""


def hold_cast(rules: Rules, draft: Draft, visit: Visit, text: str, reading: Reading) -> Transition:
    """Put the cast on hold until a person answers or decides; the socket is not completed yet."""
    visit = visit._replace(memory=reading.memory)
    action: Literal["pause", "escalate"] = "pause" if reading.action == "pause" else "escalate"
    draft.status, draft.at = "held", visit
    draft.hold = Hold(action, reading.reason, reading.needs, text, reading)
    event = ev.SocketHeld(
        about=about(rules, visit), visit=visit.visit, action=action, reason=reading.reason, needs=reading.needs
    )
    return Transition(draft.freeze(), (event,), decision_of(visit, action, None, reading), None, reading)


def continue_agent(rules: Rules, draft: Draft, visit: Visit, reading: Reading, prompt: Prompt) -> Transition:
    """Ask an agent that reported unfinished work to continue in the same conversation."""
    visit = visit._replace(mode="resume", turn=visit.turn + 1, repairs=0, memory=reading.memory)
    draft.at = visit
    event = ev.SocketContinued(about=about(rules, visit), visit=visit.visit, reason=reading.reason)
    text = "\n".join([_CONTINUE_PROMPT, *([reading.reason] if reading.reason else [])])
    request = next_prompt(prompt, "resume", text, answer_format(rules, draft, visit, short=True))
    return Transition(draft.freeze(), (event,), decision_of(visit, "reissue", visit.socket, reading), request, reading)


def _run_requested_socket_first(rules: Rules, draft: Draft, visit: Visit, text: str, reading: Reading) -> Transition:
    """Start the detour that the output requests.

    After the detour, the cast follows the edges if the output is satisfied; otherwise, this socket runs again.
    """
    target = reading.target or END
    if reading.satisfied:
        return complete(rules, draft, visit, text, reading, detour=target)
    apply_output(rules.sockets[visit.socket], draft, text, reading)
    decision = decision_of(visit, "detour", target, reading)
    complete_event = ev.SocketComplete(about=about(rules, visit), visit=visit.visit, parsed=True, detour=target)
    return start_detour(rules, draft, visit, visit.socket, decision, events=(complete_event,), reading=reading)


def resume_after_answer(
    rules: Rules, state: CastState, text: str, prompt: Prompt, approval: Approval | None = None
) -> Transition:
    """Continue the agent's conversation with a person's answer.

    Args:
        rules: the rules of the cast.
        state: the state of a cast that is on hold.
        text: the answer to send to the agent.
        prompt: the last prompt of the agent.
        approval: the person's approval of a command, or None if the person did not approve a command.
    """
    visit = held_visit(state)
    socket_rules = rules.sockets[visit.socket]
    resumed_visit = visit._replace(mode="resume", turn=visit.turn + 1, repairs=0, approval=approval)
    after = state._replace(status="waiting", at=resumed_visit, hold=None)
    hold = state.hold
    lines = [f"You asked: {hold.reason}"] if hold is not None and hold.needs == "question" and hold.reason else []
    lines += ["The person answers:", text] if approval is None else [text]
    if socket_rules.protocol.after_answer and hold is not None and hold.action == "pause" and approval is None:
        lines.append(socket_rules.protocol.after_answer)
    form = answer_format(rules, after, resumed_visit, short=True)
    return Transition(after, (), None, next_prompt(prompt, "resume", "\n".join(lines), form))


def use_up_approval(state: CastState, call: ToolCall) -> CastState:
    """Remove the approval of a command when a tool call runs this command; an approval can be used only once (R44)."""
    visit = state.at
    if visit is None or visit.approval is None or call.args.get("command") != visit.approval.exact_content:
        return state
    return state._replace(at=visit._replace(approval=None))


def complete_held_output(
    rules: Rules,
    state: CastState,
    *,
    satisfied: bool | None = None,
    target: str | None = None,
    artifact: str | None = None,
) -> Transition:
    """Complete the socket with the held output, using a person's decision.

    Args:
        rules: the rules of the cast.
        state: the state of a cast that is on hold.
        satisfied: the person's verdict, or None to use the verdict of the output.
        target: the next socket, or None to follow the edges.
        artifact: the path of the file that contains the output.

    Raises:
        MateriaError: the cast is not on hold (``not_held``), the target does not exist, or the decision has neither a
            verdict nor a target although one is needed (``usage``).
    """
    visit = held_visit(state)
    socket_rules = rules.sockets[visit.socket]
    hold = state.hold
    assert hold is not None  # noqa: S101 - held_visit raises otherwise
    if target is not None and target != END:
        target = rules.graph.find_socket(target)
    held_reading = hold.reading
    value: JSON = held_reading.value if isinstance(held_reading.value, dict) else {}
    word = held_reading.satisfied if satisfied is None else satisfied
    if word is None and target is None and socket_rules.requirements.only_guarded:
        raise usage_error(
            f"The output has no verdict, but every edge of {rules.graph.names[visit.socket]} needs a verdict.",
            "use `accept satisfied` or `accept not_satisfied`, or name the next socket",
        )
    reading = Reading(
        value,
        notes=held_reading.notes,
        satisfied=word,
        context=held_reading.context,
        work_items=held_reading.work_items,
        warnings=held_reading.warnings,
    )
    draft = Draft(state, artifact)
    draft.hold = None
    return complete(rules, draft, visit, hold.text, reading, target=target)


_ANSWER_CUT: Final = "answer_cut"  # Code of the issue that reports a truncated answer (R52).

_MAX_REPAIR_TURNS: Final = 2  # Maximum number of repair turns for one output, if the protocol itself requests repairs.


def output(  # noqa: PLR0913 - what is known of an output, by name
    rules: Rules,
    state: CastState,
    text: str,
    usage: Usage | None = None,
    prompt: Prompt | None = None,
    changed: Sequence[str] = (),
    *,
    artifact: str | None = None,
    refused: str | None = None,
    cut: str = "",
    process: str = "",
) -> Transition:
    """Process an output: store a draft, refuse the output, put the cast on hold, or complete the step (R19, R20).

    Args:
        rules: the rules of the cast.
        state: the state of a cast that is waiting for an output.
        text: the output.
        usage: the usage of the turn, or None if it is already counted.
        prompt: the prompt that was answered; the prompt of a repair turn is based on it.
        changed: the files that changed during the turn, if the protocol needs them.
        artifact: the path of the file that contains the output once the output is accepted.
        refused: the recorded reason for a refusal, or None; an output that was recorded as refused stays refused.
        cut: the limit that truncated the output, or "" if the output is complete (R52).
        process: a description of how a utility's process ended, for the message if its output is refused (R23).
    """
    visit = waiting_visit(state)
    if visit.approval is not None or changed:  # an approval ends with the turn
        visit = visit._replace(approval=None, changed=tuple(dict.fromkeys((*visit.changed, *changed))))
    socket_rules = rules.sockets[visit.socket]
    draft = Draft(state, artifact)
    draft.at = visit
    if usage is not None:
        draft.usage = draft.usage.plus(usage)
    if visit.mode in socket_rules.free_text_modes:
        answered_prompt = prompt or first_prompt(rules, draft.freeze(), visit)
        return (
            _store_work(rules, draft, visit, answered_prompt)
            if visit.mode in socket_rules.work_modes
            else _store_draft(rules, draft, visit)
        )
    reading = _read_output(rules, draft, visit, text)
    if cut:
        reading = _add_truncation_issue(reading, text, cut)
    if refused is not None and reading.error is None:
        reading = Reading(None, "contract", (Issue("$", refused, "return the whole answer again"),))
    if reading.error is not None:
        return _refuse(rules, draft, visit, text, reading, prompt=prompt, process=process)
    if reading.action == "route":
        return complete(rules, draft, visit, text, reading)
    if reading.action == "detour":
        return _run_requested_socket_first(rules, draft, visit, text, reading)
    if reading.action == "reissue":
        return continue_agent(rules, draft, visit, reading, prompt or first_prompt(rules, draft.freeze(), visit))
    return hold_cast(rules, draft, visit, text, reading)


def _add_truncation_issue(reading: Reading, text: str, by: str) -> Reading:
    """Add an issue about the truncation of the answer; if the answer is usable, add only a warning."""
    is_blank = not text.strip()
    extent = "empty" if is_blank else "incomplete"
    issue = Issue(
        "$", f"The answer was cut off by {by} and is {extent}.", "write a shorter, complete answer", _ANSWER_CUT
    )
    if reading.error is None and not is_blank:
        return reading._replace(warnings=(issue, *reading.warnings))
    return reading._replace(error=reading.error or "contract", issues=(issue, *reading.issues))


def check_answer(rules: Rules, state: CastState, text: str) -> tuple[Issue, ...]:
    """Return the issues for which the waiting visit would refuse an answer, or () if it would accept it (R42)."""
    visit = waiting_visit(state)
    socket_rules = rules.sockets[visit.socket]
    if visit.mode in socket_rules.free_text_modes:
        return ()
    reading = _read_output(rules, state, visit, text)
    return () if reading.error is None else reading.issues


def _read_output(rules: Rules, state: StateView, visit: Visit, text: str) -> Reading:
    socket_rules = rules.sockets[visit.socket]
    facts = turn_facts(rules, state, visit) if socket_rules.protocol.needs_facts else UNKNOWN
    reading = socket_rules.protocol.read(text, socket_rules.requirements, facts)
    if not isinstance(reading.value, dict | list):
        return reading
    value, items = frozen(reading.value), reading.work_items
    if isinstance(reading.value, dict) and items is not None and items is reading.value.get("workItems"):
        items = value["workItems"]
    return reading._replace(
        value=value, work_items=frozen(items), memory=frozen(reading.memory), events=tuple(map(frozen, reading.events))
    )


def _store_draft(rules: Rules, draft: Draft, visit: Visit) -> Transition:
    visit = visit._replace(drafts=visit.drafts + 1, turn=visit.turn + 1)
    draft.at = visit
    event = ev.SocketRefinement(about=about(rules, visit), visit=visit.visit, refinement_turn=visit.drafts)
    return Transition(draft.freeze(), (event,), decision_of(visit, "draft", visit.socket))


def _store_work(rules: Rules, draft: Draft, visit: Visit, prompt: Prompt) -> Transition:
    """Store the agent's work, and ask the agent for the handoff in the next turn."""
    work_event = ev.SocketWorked(about=about(rules, visit), visit=visit.visit)
    visit = visit._replace(mode="final", turn=visit.turn + 1)
    draft.at = visit
    decision = decision_of(visit, "finalize", visit.socket)
    request = next_prompt(prompt, "finalize", WORK_IS_OVER, answer_format(rules, draft, visit))
    return Transition(draft.freeze(), (work_event,), decision, request)


def finalize(rules: Rules, state: CastState, prompt: Prompt) -> Transition:
    """Ask the agent for the final result of its drafts, in the same conversation."""
    visit = waiting_visit(state)
    if visit.mode != "draft":
        message = f"{rules.graph.names[visit.socket]} is not a multi-turn socket with a draft."
        raise MateriaError(message, hint="use `reply` to answer in place of the agent", kind="not_multi_turn")
    if not visit.drafts:
        message = f"{rules.graph.names[visit.socket]} has no draft yet."
        raise MateriaError(message, hint="use `step` to run its agent first", kind="no_draft")
    visit = visit._replace(mode="final")
    request = next_prompt(prompt, "draft", DRAFT_ACCEPTED, answer_format(rules, state, visit))
    return Transition(state._replace(at=visit), (), None, request)


_ASK_AGAIN_HINT: Final = (
    "use `retry` to ask again, use `retry --limit` for another repair turn, or correct the answer yourself"
)
_MORE_TOKENS_HINT: Final = (
    "raise the agent's max_tokens (--max-tokens N, or in its settings) or ask for a shorter answer, then use `retry`"
)


def _refuse(
    rules: Rules, draft: Draft, visit: Visit, text: str, reading: Reading, *, prompt: Prompt | None, process: str
) -> Transition:
    summary = "; ".join(truncate(issue.summary, 300) for issue in reading.issues[:8])
    subject, events = about(rules, visit), number_side_events(rules, draft, visit, reading)
    if rules.sockets[visit.socket].socket.is_utility:
        message = f"The output of {rules.graph.names[visit.socket]} was refused. {summary}"
        failure = Failure(
            "invalid_output", f"{message} {process}" if process else message, visit.socket, CORRECT_UTILITY_HINT
        )
        refused_event = ev.SocketRefused(about=subject, visit=visit.visit, process=process)
        events = (refused_event, *events)
        return fail(rules, draft, visit, Result.REFUSED, failure, events=events, reading=reading)
    asks = reading.action in ("reissue", "reject")  # such a protocol decides itself when to escalate
    if reading.action == "escalate" or (asks and visit.repairs >= _MAX_REPAIR_TURNS):
        return hold_cast(rules, draft, visit, text, reading)
    max_turns = max_repairs(rules, draft, visit)
    if visit.repairs >= max_turns and not asks:
        failure = Failure(
            "repair_exhausted",
            f"{rules.graph.names[visit.socket]} gave an unusable answer {counted(visit.repairs + 1, 'time')}. {summary}",
            visit.socket,
            _MORE_TOKENS_HINT if reading.issues[0].code == _ANSWER_CUT else _ASK_AGAIN_HINT,
            refused=(reading.issues, text),
        )
        exhausted_event = ev.RecoveryExhausted(about=subject, visit=visit.visit, error=summary, attempt=visit.repairs)
        events = (exhausted_event, *events)
        return fail(rules, draft, visit, Result.REFUSED, failure, events=events, reading=reading)
    visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    draft.at = visit
    before = prompt or first_prompt(rules, draft.freeze(), visit)
    kind = "json_parse" if reading.error == "not_json" else "handoff_validation"
    max_attempts = _MAX_REPAIR_TURNS if asks else max_turns
    attempt: dict[str, Any] = {"attempt": visit.repairs, "max_attempts": max_attempts, "validation_kind": kind}
    start = ev.RecoveryStart(about=subject, visit=visit.visit, error=summary, **attempt)
    retry = ev.RecoveryRetry(about=subject, visit=visit.visit, **attempt)
    return Transition(
        draft.freeze(),
        (start, *events, retry),
        decision_of(visit, "repair", visit.socket, reading),
        repair_prompt(before, answer_format(rules, draft, visit, short=True), reading.issues, text),
        reading,
    )


# -- earlier states ------------------------------------------------------------------
#
# A cast stores the prompt and the output of every step. Storing the states too would double the memory, and few of them
# are ever read. So they are computed again from the outputs when they are read.


MAX_STEPS: Final = 64
"""Maximum number of steps to recompute for one state. Recomputing this many steps takes about a millisecond."""


class PastStates:
    """The states before and after consecutive steps, recomputed from the first state and the outputs of the steps.

    If the output of a step does not determine the state after the step, the object covers only this step and stores the
    state after the step. Another object, which starts with this state, covers the next steps.
    """

    __slots__ = ("_after", "_first", "_latest", "_next", "_rules", "_shared_sizes", "_start", "_turns", "lane")

    def __init__(self, rules: Rules, start: CastState, after: CastState | None = None) -> None:
        """Start with ``start``, the state before the first step.

        ``after`` is the state after the first step, if the output does not determine this state; otherwise None.
        """
        self._rules, self._start = rules, start
        self._after: CastState | PastStates | None = after
        self._first, self.lane = start.steps + 1, start.lane
        self._latest: tuple[CastState, CastState] | None = (start, start)
        self._next: PastStates | None = None
        self._shared_sizes = (0, 0)
        self._turns: dict[int, TurnRecord] = {}

    def share_handoffs_with(self, other: PastStates) -> None:
        """Share the handoff records with ``other``, which contains the states of the next steps. This saves memory."""
        begin, first = self._start, other.start
        (after, context), (entries, context_text) = first.handoffs, begin.handoffs
        self._latest = None
        unchanged = self._after is None or self._after is first  # nothing changed it before the next step
        extends_earlier_handoffs = context.startswith(context_text) and after[: len(entries)] == entries
        if self._next is None and unchanged and extends_earlier_handoffs and begin.data.get("context") == context_text:
            self._shared_sizes = (len(entries), len(context_text))
            self._next = other  # set first, because other threads may read it
            self._start = begin._replace(data=FrozenDict({**begin.data, "context": ""}), handoffs=Handoffs())
            if self._after is not None:
                self._after = other

    @property
    def start(self) -> CastState:
        """The state before the first step."""
        begin, last = self._start, self
        if self._next is None:
            return begin
        while last._next is not None:
            following = last._next
            last._next = following._next or following  # noqa: SLF001 - its own class; the next time it is half as far
            last = following
        entries, context_text = last._start.handoffs  # noqa: SLF001 - its own class
        handoffs = Handoffs(entries[: self._shared_sizes[0]], context_text[: self._shared_sizes[1]])
        return begin._replace(data=FrozenDict({**begin.data, "context": handoffs.text}), handoffs=handoffs)

    def append_step(self, rules: Rules, turn: TurnRecord, before: CastState, after: CastState) -> bool:
        """Append a step if it starts from the latest state under the same rules; return True if it was appended."""
        number, latest = after.steps, self._latest
        if self._after is not None or latest is None or before is not latest[1]:
            return False
        if rules is not self._rules or number - self._first == MAX_STEPS:
            return False
        if self._turns.setdefault(number, turn) is not turn:
            return False  # another branch, perhaps in another thread, has already added this step
        self._latest = (before, after)
        return True

    def before(self, number: int) -> CastState:
        """Return the state before step ``number``."""
        return self._states_around(number)[0]

    def after(self, number: int) -> CastState:
        """Return the state after step ``number``."""
        return self._states_around(number)[1]

    def _states_around(self, number: int) -> tuple[CastState, CastState]:
        latest, index, after = self._latest, number - self._first, self._after
        if after is not None:
            return self.start, after.start if isinstance(after, PastStates) else after
        if latest is not None and latest[1].steps == number:
            return latest
        states = _cached_states(self, len(self._turns))
        return states[index], states[index + 1]

    def compute(self, count: int) -> tuple[CastState, ...]:
        """Compute the states before and after each of the first ``count`` steps."""
        states = [self.start]
        for turn in list(self._turns.values())[:count]:
            waiting_state = enter(self._rules, states[-1]).state
            turn_usage = with_working_time(turn.worked, turn.usage, turns=turn.prompt is not None)
            states.append(output(self._rules, waiting_state, turn.text, turn_usage, artifact=turn.artifact).state)
        return tuple(states)


@lru_cache(maxsize=4)
def _cached_states(past: PastStates, count: int) -> tuple[CastState, ...]:
    return past.compute(count)


def past_states_of(rules: Rules, session: Session, step: Transition, turn: TurnRecord) -> PastStates | None:
    """Return an object that recomputes the states of the latest step, or None while the visit continues.

    The previous state and this turn determine the states only if the visit had a single turn, its output was accepted,
    and no person or tool changed the state. For any other visit, the object stores the state after the step.
    """
    record, after = session.steps.latest, step.state
    if record is None or after.status != "ready" or not isinstance(record.states, tuple):
        return None
    before, latest = record.states
    is_simple = record.is_recomputable and turn.mode == "work" and not (after.at and after.at.changed)
    is_accepted = step.decision is not None and step.decision.result in ACCEPTED
    is_determined = is_simple and is_accepted and latest is session.state  # unchanged during the visit
    previous = session.steps.previous
    last = past = previous.states if previous else None
    if not is_determined or not isinstance(past, PastStates) or not past.append_step(rules, turn, before, after):
        past = PastStates(rules, before, None if is_determined else after)
        past.append_step(rules, turn, before, after)
        if isinstance(last, PastStates):
            last.share_handoffs_with(past)
    if is_determined and isinstance(record.prompt, EntryPrompt):
        record.prompt._before = past  # noqa: SLF001 - so that the state itself can be released
    return past
