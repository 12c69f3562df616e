"""What a command does to a cast: the events it leads to, and the session after them. Pure.

Each function is one command. It refuses by raising MateriaError, and nothing has changed then. The session
that it returns is the one that :func:`materia_nb.engine.evolve.evolve` makes of the events, found on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from materia_nb.engine import edit, entering, outputs, recovery, routing
from materia_nb.engine import events as ev
from materia_nb.engine import session_changes as to
from materia_nb.engine.conversation import Decided, ToolCall
from materia_nb.engine.event_json import from_json
from materia_nb.engine.evolve import evolve
from materia_nb.engine.item_edits import WORK_ITEMS, ListEdit, lay_out, origins_of
from materia_nb.engine.labels import Label, LabelKey
from materia_nb.engine.prompt import reworded
from materia_nb.engine.remarks import remarks_of
from materia_nb.engine.routing import Step, waiting_visit
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, name_of_correction, name_of_output
from materia_nb.engine.state import Failure, Pin, Usage, Visit
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.approval import Approval, Grant, answer_facts, answer_note
from materia_nb.handoff.protocol import RefusedAnswer
from materia_nb.jsonvalue import JSON, too_deep_to_write

ASKING: Final = ("bash", "edit", "write")
"""The tools that ask for approval unless a cast allows them."""


MOST_REMARKS: Final = 200
"""How many remarks the last event of a cast holds at most; the cast itself has all."""


class Outcome(NamedTuple):
    """The session after a command, and the events that lead to it."""

    session: Session
    events: tuple[ev.Event, ...] = ()


# -- steps -------------------------------------------------------------------------------


def enter(rules: Rules, session: Session, ts: int) -> Outcome:
    """Enter the next socket, or come to the end."""
    step = entering.enter(rules, session.state)
    after = to.keep_entry(session, step, ts)
    if after.state.status == "waiting":
        return Outcome(after, (_event_of(rules, step.events[0], ts),))
    made = [one.as_json() for one in remarks_of(rules, after)]
    remarks = tuple(made[:MOST_REMARKS]) or None
    in_all = len(made) if len(made) > MOST_REMARKS else None
    end = _event_of(rules, step.events[-1], ts, step=step.state.steps, remarks=remarks, remarks_in_all=in_all)
    return Outcome(after, (end,))


def answer(
    rules: Rules,
    session: Session,
    given: to.Answer,
    ts: int,
) -> Outcome:
    """Take an output for the socket that waits."""
    name = name_of_output(session, "socket_complete")
    step = outputs.output(
        rules,
        session.state,
        given.text,
        given.usage,
        session.prompt,
        given.changed,
        artifact=name,
        cut=given.cut,
    )
    if given.process:
        step = routing.telling(step, given.process)
    first, target = step.events[0], None
    if first.type != "socket_complete":
        name = name_of_output(session, first.type)
    elif step.decision is not None:
        target = step.decision.target
    output = _event_of(
        rules,
        first,
        ts,
        text=given.text,
        artifact=name,
        usage=given.usage,
        meta=given.meta,
        changed_files=given.changed,
        pinned=given.pinned,
        by=given.by,
        thinking=given.thinking or None,
        cut=given.cut or None,
        worked=given.worked,
        **({"next": target} if target else {}),
    )
    after = to.keep_output(rules, session, step, given._replace(artifact=name), ts)
    rest = [_event_of(rules, one, ts) for one in step.events[1:]] if len(step.events) > 1 else ()
    return Outcome(after, (output, *rest))


def lacking(rules: Rules, outcome: Outcome, paths: tuple[str, ...]) -> Outcome:
    """Add to an output that it says it made files which are not there."""
    first, *rest = outcome.events
    assert isinstance(first, ev.Output)  # noqa: S101 - only outputs name files
    event = ev.EvidenceMissing(about=first.about, visit=first.visit, paths=paths, ts=first.ts)
    return Outcome(evolve(rules, outcome.session, event), (first, event, *rest))


def fail(rules: Rules, session: Session, failure: Failure, worked: int, ts: int) -> Outcome:
    """Fail the waiting visit for a reason that the engine cannot know, after so many milliseconds of work."""
    change = to.failed(session, failure, ts, worked)
    return Outcome(change.session, _told(rules, change.step, ts, hint=failure.hint, worked=worked))


def abort(rules: Rules, session: Session, reason: str, ts: int) -> Outcome:
    """Stop the cast."""
    change = to.aborted(session, reason, ts)
    return Outcome(change.session, _told(rules, change.step, ts))


def recast(rules: Rules, session: Session, ts: int) -> Outcome:
    """Run the socket where a failed or aborted cast stopped once more, from its first prompt."""
    change = to.again(rules, session, recovery.recast, ts)
    return Outcome(change.session, _told(rules, change.step, ts))


def revive(rules: Rules, session: Session, ts: int) -> Outcome:
    """Go on with a failed or aborted cast, with the limit that stopped it granted once more."""
    change = to.again(rules, session, recovery.revive, ts)
    return Outcome(change.session, _told(rules, change.step, ts))


def resend(rules: Rules, session: Session, ts: int) -> Outcome:
    """Let the turn that was cut short wait for its answer again."""
    change = to.resent(rules, session, ts)
    return Outcome(change.session, _told(rules, change.step, ts))


def by_hand(rules: Rules, session: Session, ts: int) -> Outcome:
    """Let the visit where the cast stopped wait for a person's answer in the place of what failed."""
    change = to.by_hand(rules, session, ts)
    return Outcome(change.session, _told(rules, change.step, ts))


def skip(rules: Rules, session: Session, note: str, ts: int) -> Outcome:
    """Go on without the visit where the cast stopped; a note says why."""
    _needs_note(note)
    change = to.skipped(rules, session, note, ts)
    first, *rest = change.step.events
    target = change.session.state.next
    event = _event_of(rules, first, ts, note=note, **({"next": target} if target else {}))
    return Outcome(change.session, (event, *[_event_of(rules, one, ts) for one in rest]))


def skip_item(rules: Rules, session: Session, note: str, ts: int) -> Outcome:
    """Give up the item at which the cast stopped and go on with the next (R46); a note says why."""
    _needs_note(note)
    visit = session.state.at
    items = session.state.data.get(WORK_ITEMS)
    if session.state.failure is None or visit is None or not isinstance(items, list):
        raise MateriaError(
            "The cast did not stop at a work item.",
            hint="skip without item goes on without the socket",
            kind="no_item",
        )
    given_up = edit_items(rules, session, items, range(len(items)), ts, abandon=True)
    if given_up.session.state.failure is not None:
        raise MateriaError("No work item is being worked on.", hint="skip without item", kind="no_item")
    event = ev.SocketSkipped(
        about=routing.about(rules, visit),
        visit=visit.visit,
        note=note,
        next=given_up.session.state.next,
        item=True,
        ts=ts,
    )
    return Outcome(evolve(rules, given_up.session, event), (*given_up.events, event))


def _needs_note(note: str) -> None:
    if not note.strip():
        raise MateriaError("The note is missing.", hint="say in a few words why it is skipped", kind="usage")


def nothing(_: Rules, session: Session, __: int) -> Outcome:
    """Change nothing: what waits is only to be asked."""
    return Outcome(session)


def check_reply(rules: Rules, session: Session, text: str) -> None:
    """Refuse a person's answer that breaks the rules; nothing is recorded of it (R42).

    Raises:
        RefusedAnswer: with all its issues.
    """
    if issues := outputs.check_answer(rules, session.state, text):
        raise RefusedAnswer(f"{waiting(session).socket} still waits: the answer was not taken.", issues)


# -- drafts ------------------------------------------------------------------------------


def refine(rules: Rules, session: Session, message: str, ts: int) -> Outcome:
    """Ask for a change of the draft."""
    visit = waiting(session)
    _needs_decided(session)
    if visit.mode != "draft" or not visit.drafts:
        raise MateriaError(
            f"{visit.socket} has no draft to refine.",
            hint="only a multi-turn socket that has answered can be refined",
            kind="no_draft",
        )
    return _fold(rules, session, ev.RefinementMessage(about=routing.about(rules, visit), text=message, ts=ts))


def finalize(rules: Rules, session: Session, ts: int) -> Outcome:
    """Ask for the final result of the draft."""
    visit = waiting(session)
    _needs_decided(session)
    return _fold(rules, session, ev.RefinementFinal(about=routing.about(rules, visit), ts=ts))


# -- what an agent tells on the way -------------------------------------------------------


def called(rules: Rules, session: Session, call: ToolCall, ts: int) -> Outcome:
    """Keep a tool call of the turn that waits."""
    return _fold(
        rules, session, ev.ToolCalled(about=routing.about(rules, waiting(session)), call=call, ts=ts)
    )


def noted(rules: Rules, session: Session, text: str, ts: int) -> Outcome:
    """Keep what the agent tells a person."""
    return _fold(rules, session, ev.AgentNote(about=routing.about(rules, waiting(session)), text=text, ts=ts))


def spent(rules: Rules, session: Session, usage: Usage, ts: int) -> Outcome:
    """Count what a turn without an output cost."""
    about = routing.about(rules, waiting(session))
    return _fold(rules, session, ev.TurnSpent(about=about, usage=usage, ts=ts))


def ask(rules: Rules, session: Session, calls: Sequence[ToolCall], worked: int, ts: int) -> Outcome:
    """Let tool calls wait for a person's approval."""
    about = routing.about(rules, waiting(session))
    return _fold(rules, session, ev.ToolAsked(about=about, calls=tuple(calls), worked=worked, ts=ts))


# -- approvals ---------------------------------------------------------------------------


def decide_calls(
    rules: Rules,
    session: Session,
    how: Decided,
    reason: str,
    meant: Sequence[ToolCall] | None,
    ts: int,
) -> Outcome:
    """Approve or deny the tool calls that wait; ``meant`` are those that the person looked at."""
    asked = asking(session)
    if not asked or (meant is not None and tuple(meant) != asked):
        what = "Other tool calls wait for approval by now" if asked else "No tool call waits for approval"
        hint = "look at them first" if asked else "allow lets a tool run without asking"
        raise MateriaError(f"{what}.", hint=hint, kind="not_asked")
    about = routing.about(rules, waiting(session))
    calls = tuple(_decided(call, how, reason) for call in asked)
    denied = calls if how == "denied" else ()
    granted = () if denied else calls
    events: list[ev.Event] = [ev.ToolDecided(about=about, decided=how, calls=granted, ts=ts)]
    events += [ev.ToolCalled(about=about, call=call, ts=ts) for call in denied]
    allowed = session.allowed | ({call.tool for call in asked} if how == "always" else set())
    if allowed != session.allowed:
        events.append(ev.ToolsAllowed(tools=tuple(sorted(allowed)), ts=ts))
    return _fold(rules, session, *events)


def _decided(call: ToolCall, how: Decided, reason: str) -> ToolCall:
    if how != "denied":
        return replace(call, decided=how)
    why = f" The reason: {reason}" if reason.strip() else ""
    return replace(call, decided=how, ok=False, result=f"The person did not allow this call.{why}")


def allow(rules: Rules, session: Session, tools: frozenset[str], ts: int) -> Outcome:
    """Set which tools need not ask."""
    if tools == session.allowed:
        return Outcome(session)
    return _fold(rules, session, ev.ToolsAllowed(tools=tuple(sorted(tools)), ts=ts))


def ask_anew(rules: Rules, session: Session, ts: int) -> Outcome:
    """Take back what was allowed to tools somewhere else."""
    events: list[ev.Event] = []
    if session.allowed:
        events.append(ev.ToolsAllowed(tools=(), by="resume", ts=ts))
    visit = session.state.at
    if visit is not None and any(call.decided is not None for call in session.asking):
        calls = tuple(replace(call, decided=None) for call in session.asking)
        events.append(ev.ToolAsked(about=routing.about(rules, visit), calls=calls, worked=0, ts=ts))
    return _fold(rules, session, *events)


def answer_hold(rules: Rules, session: Session, text: str, ts: int) -> Outcome:
    """Answer the agent that holds the cast."""
    given: object = text  # what comes from a notebook need not be what the annotation says
    if not isinstance(given, str) or not given.strip():
        raise MateriaError("The answer is blank.", hint="say it in words", kind="usage")
    about = routing.about(rules, held(session))
    return _fold(rules, session, ev.HoldAnswered(about=about, text=text, ts=ts))


def approve(rules: Rules, session: Session, approval: Approval, ts: int) -> Outcome:
    """Consent to the exact command that the agent which holds the cast asks for."""
    _, grant = approval.approve(ts / 1000)
    if grant is None:
        raise MateriaError(
            "The request has expired: nobody answered it in time.",
            hint="deny it, or answer that it should be asked for again",
            kind="approval",
        )
    return _consent(rules, session, approval, answer_note(grant), grant, ts)


def deny(rules: Rules, session: Session, approval: Approval, reason: str, ts: int) -> Outcome:
    """Refuse the command that the agent which holds the cast asks consent for."""
    told = "\n".join([answer_note(None), *([f"The reason: {reason}"] if reason.strip() else [])])
    return _consent(rules, session, approval, told, None, ts)


def _consent(
    rules: Rules, session: Session, approval: Approval, text: str, grant: Grant | None, ts: int
) -> Outcome:
    told = {**routing.about(rules, held(session)), **answer_facts(approval, grant), "text": text}
    event = from_json("approval_answered", told, ts)
    assert event is not None  # noqa: S101 - of a known type
    return _fold(rules, session, event)


def decide_hold(
    rules: Rules, session: Session, satisfied: bool | None, target: str | None, ts: int
) -> Outcome:
    """Take the output that is held, as a person decides."""
    change = to.decided(rules, session, satisfied, target, ts)
    about = routing.about(rules, held(session))
    first = ev.HoldDecided(about=about, satisfied=satisfied, target=target, ts=ts)
    more = change.step.events[1:]  # but for socket_complete, which this says
    return Outcome(change.session, (first, *[_event_of(rules, one, ts) for one in more]))


# -- edits -------------------------------------------------------------------------------


def edit_items(
    rules: Rules,
    session: Session,
    items: list[JSON],
    origins: Sequence[int | None] | None,
    ts: int,
    *,
    again: Sequence[int] = (),
    abandon: bool = False,
) -> Outcome:
    """Replace the work items; ``origins`` says where each stood, found by comparing if left out (R46)."""
    edit.check_items(items)
    old = session.state.data.get(WORK_ITEMS)
    found = origins_of(old if isinstance(old, list) else [], items) if origins is None else origins
    wanted = {WORK_ITEMS: ListEdit(tuple(found), tuple(again), abandon)}
    return edit_state(rules, session, {**session.state.data, WORK_ITEMS: items}, wanted, ts)


def edit_state(
    rules: Rules, session: Session, data: Mapping[str, JSON], wanted: Mapping[str, ListEdit], ts: int
) -> Outcome:
    """Replace the state's data; ``wanted`` is what is known of its lists, what other items became is found by comparing."""
    before = session.state
    if before.status == "complete":
        raise MateriaError("The cast is complete.", hint="go back to a step first, or fork it", kind="over")
    try:
        laid = lay_out(rules, before, data, wanted)
        patch = edit.patch_between(before.data, laid.data)
        if not patch and not laid.said and laid.state == before:
            return Outcome(session)
        event = ev.StateEdited(
            patch=patch,
            inverse=edit.patch_between(laid.data, before.data),
            step=before.steps,
            lists={path: one.as_json() for path, one in laid.lists.items()},
            said=laid.said,
            ts=ts,
        )
        return _fold(rules, session, event)
    except RecursionError as error:
        raise too_deep_to_write() from error


def edit_prompt(rules: Rules, session: Session, part: str, text: str, ts: int) -> Outcome:
    """Change one part of the prompt that waits, or of the one that was cut short, which waits again then."""
    state = session.state
    failure = state.failure
    cut_short = state.at if failure is not None and failure.again and state.status != "waiting" else None
    visit, prompt = cut_short or waiting(session), session.prompt
    if prompt is None or rules.sockets[visit.socket].socket.is_utility:
        raise MateriaError(
            f"{visit.socket} is a utility and has no prompt.",
            hint="edit the state that it reads",
            kind="not_an_agent",
        )
    if session.wish is not None:
        raise MateriaError(
            "What is asked now is your message about the draft.",
            hint="refine with another message",
            kind="prompt",
        )
    changed = reworded(prompt, part, text)
    opened = resend(rules, session, ts) if cut_short is not None else Outcome(session)
    if changed == prompt:
        return opened
    event = ev.PromptEdited(about=routing.about(rules, visit), part=part, text=text, ts=ts)
    after = _fold(rules, opened.session, event)
    return Outcome(after.session, (*opened.events, *after.events))


def redefine(
    rules: Rules,
    session: Session,
    materia: str,
    definition: Mapping[str, JSON],
    previous: JSON,
    ts: int,
) -> Outcome:
    """Take a changed definition of a materia into the cast; what earlier steps went by stays as it is."""
    event = ev.MateriaRedefined(
        materia=materia, definition=definition, previous=previous, step=session.state.steps, ts=ts
    )
    return _fold(rules, session, event)


def undo(rules: Rules, session: Session, ts: int) -> Outcome:
    """Take the last edit back, as long as no step was made since."""
    if not session.edits:
        raise MateriaError("There is no edit to undo.", kind="undo")
    if session.edits[-1].after != session.state:
        raise MateriaError(
            "The cast has gone on since the last edit.", hint="go back to the step before it", kind="undo"
        )
    return _fold(rules, session, ev.EditUndone(ts=ts))


def recommit(rules: Rules, session: Session, text: str, ts: int) -> Outcome:
    """Correct the output of the last step."""
    record = session.steps[-1] if session.steps else None
    if record is None or not record.turns or session.state.status == "waiting":
        raise MateriaError(
            "There is no completed step to correct.", hint="reply answers a waiting socket", kind="recommit"
        )
    if session.edits and session.edits[-1].step == session.state.steps:
        raise MateriaError(
            "The cast was edited since that step.", hint="undo the edit first", kind="recommit"
        )
    name = name_of_correction(session)
    change = to.recommitted(rules, session, text, name, ts)
    first = ev.SocketRecommitted(step=record.number, text=text, artifact=name, ts=ts)
    ends = [
        one for one in change.step.events if one.type in ("materia_event", "assignment_failed", "cast_end")
    ]
    return Outcome(change.session, (first, *[_event_of(rules, one, ts) for one in ends]))


def back_to(rules: Rules, session: Session, number: int, ts: int) -> Outcome:
    """Go on from the state after an earlier step."""
    return _fold(rules, session, ev.CastBack(step=number, ts=ts))


def set_budget(
    rules: Rules, session: Session, max_tokens: int | None, max_cost_usd: float | None, ts: int
) -> Outcome:
    """Change the budget of this cast only (R20)."""
    # what comes from a notebook need not be what the annotation says
    given: tuple[tuple[object, tuple[type, ...], str], ...] = (
        (max_tokens, (int,), "a whole number of tokens"),
        (max_cost_usd, (int, float), "an amount in US dollars"),
    )
    for most, types, what in given:
        if most is None or (type(most) in types and most >= 0):  # type: ignore[operator]
            continue
        told = f"{most!r:.40}" if isinstance(most, int | float | str) else type(most).__name__
        raise MateriaError(
            f"A budget is {what}, not {told}.",
            hint="give a number from 0, or None for no limit",
            kind="bad_budget",
        )
    return _fold(rules, session, ev.BudgetSet(max_tokens=max_tokens, max_cost_usd=max_cost_usd, ts=ts))


def pin(rules: Rules, session: Session, name: str, chosen: Pin, ts: int) -> Outcome:
    """Let what a person chose answer a socket or materia (R40)."""
    return _fold(rules, session, ev.Pinned(name=name, ts=ts, **chosen.as_json()))


def unpin(rules: Rules, session: Session, name: str, ts: int) -> Outcome:
    """Let a socket or materia be answered as usual."""
    return _fold(rules, session, ev.Unpinned(name=name, ts=ts))


def label(rules: Rules, session: Session, key: LabelKey, said: Label, ts: int) -> Outcome:
    """Keep what a person says of a step, or of the cast itself."""
    if said._replace(by="") == session.labels.get(key, Label())._replace(by=""):
        return Outcome(session)
    return _fold(rules, session, _labelled(key, said, ts))


def unlabel(rules: Rules, session: Session, by: str, ts: int) -> Outcome:
    """Take the last change of what people say of the cast and its steps back."""
    if not session.labels_before:
        raise MateriaError(
            "There is no label to take back.",
            hint="label says something of the cast or of a step",
            kind="undo",
        )
    key, before = session.labels_before[-1]
    event = replace(_labelled(key, before, ts), undoes=True, by=before.by or by)
    return _fold(rules, session, event)


def _labelled(key: LabelKey, said: Label, ts: int) -> ev.Labelled:
    branch, step = key
    return ev.Labelled(branch=branch, step=step, ts=ts, **said._asdict())


def remember(rules: Rules, session: Session, step: int, suggestion: JSON, ts: int) -> Outcome:
    """Keep that a suggestion was kept about the project."""
    return _fold(rules, session, ev.SuggestionKept(step=step, suggestion=suggestion, ts=ts))


# -- what is asked of a session ------------------------------------------------------------


def waiting(session: Session) -> Visit:
    """Return the visit that owes an output, or raise MateriaError (``not_waiting``)."""
    return waiting_visit(session.state)


def held(session: Session) -> Visit:
    """Return the visit that holds the cast, or raise MateriaError (``not_held``)."""
    state = session.state
    if state.status != "held" or state.at is None:
        raise MateriaError(
            f"The cast is {state.status}; nothing waits for a person's word.",
            hint="step, or reply to the socket that waits",
            kind="not_held",
        )
    return state.at


def asking(session: Session) -> tuple[ToolCall, ...]:
    """Return the tool calls that wait for a person."""
    return tuple(call for call in session.asking if call.decided is None)


def known_tools(tools: Sequence[str]) -> frozenset[str]:
    """Return the tools of these names, ``all`` for each that asks; raises MateriaError (``unknown_tool``)."""
    names = frozenset(ASKING) if set(tools) == {"all"} else frozenset(tools)
    for name in sorted(names - set(ASKING)):
        raise MateriaError(
            f"{name!r} is not a tool that asks for approval.",
            hint=did_you_mean(name, (*ASKING, "all")),
            kind="unknown_tool",
        )
    return names


def _needs_decided(session: Session) -> None:
    if asking(session):
        raise MateriaError(
            "Tool calls wait for your approval.",
            hint="approve or deny them first, or reply in the agent's place",
            kind="asking",
        )


def _fold(rules: Rules, session: Session, *events: ev.Event) -> Outcome:
    for event in events:
        session = evolve(rules, session, event)
    return Outcome(session, events)


def _told(rules: Rules, step: Step, ts: int, **of_end: Any) -> tuple[ev.Event, ...]:
    """Return the engine's own events as those of the journal; ``of_end`` is for the end of the cast."""
    events = [_event_of(rules, one, ts) for one in step.events]
    if of_end and isinstance(events[-1], ev.CastEnd):
        events[-1] = replace(events[-1], **of_end)
    return tuple(events)


def _event_of(rules: Rules, told: routing.EventDraft, ts: int, **more: Any) -> ev.Event:
    """Return an event that a transition told, with its time and ``more`` fields."""
    event = ev.EVENTS[told.type]
    if told.visit is None:
        return event(ts=ts, **told.data, **more)
    return event(ts=ts, about=routing.about(rules, told.visit), **told.data, **more)  # type: ignore[call-arg]
