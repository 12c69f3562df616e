"""Commands for answering an agent: approve or deny its calls, answer its question, or decide on a held output.

Each command returns the events that record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from materia_nb.engine import events as ev
from materia_nb.engine import outputs, routing
from materia_nb.engine.conversation import ToolCall, ToolDecision
from materia_nb.engine.events import Events
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import held_visit, waiting_visit
from materia_nb.errors import MateriaError, did_you_mean, usage_error
from materia_nb.handoff.runtime_rules import Approval, ApprovalRequest, answer_note

_READ_ONLY_TOOLS: Final = ("read", "grep", "find", "ls")
"""Names of the built-in tools that only read the project and therefore never need approval."""
TOOLS_NEEDING_APPROVAL: Final = ("bash", "edit", "write")
"""Names of the built-in tools that need approval for each call, unless the cast allows the tool."""

FOLDER_PREFIX: Final = "folder:"
"""Prefix of a permission to work in a folder outside the project, as in ``folder:/data`` (P8)."""


def decide_calls(
    rules: Rules, session: Session, decision: ToolDecision, reason: str, calls: Sequence[ToolCall] | None, ts: int
) -> Events:
    """Approve or deny the tool calls awaiting approval.

    Args:
        rules: the rules of the cast.
        session: the session with the waiting calls.
        decision: the decision: ``once``, ``always`` or ``denied``.
        reason: the reason for a denial, which is sent to the agent; may be empty.
        calls: the calls that the person reviewed, or None to accept any waiting calls.
        ts: the current time, in milliseconds since the epoch.

    Raises:
        MateriaError: no calls are waiting, or the waiting calls differ from ``calls`` (``not_asked``).
    """
    waiting_calls = calls_awaiting_approval(session)
    if not waiting_calls or (calls is not None and tuple(calls) != waiting_calls):
        problem, hint = "No tool call is waiting for approval.", "use `allow` to let a tool run without approval"
        if waiting_calls:
            problem = "Other tool calls are now waiting for approval."
            hint = "review the current calls, then approve or deny them"
        raise MateriaError(problem, hint=hint, kind="not_asked")
    about = routing.about(rules, waiting_visit(session.state))
    decided_calls = tuple(_decided_call(call, decision, reason) for call in waiting_calls)
    denied_calls = decided_calls if decision == "denied" else ()
    granted_calls = () if denied_calls else decided_calls
    events: list[ev.Event] = [ev.ToolDecided(about=about, decided=decision, calls=granted_calls, ts=ts)]
    events += [ev.ToolCalled(about=about, call=call, ts=ts) for call in denied_calls]
    allowed_tools = session.allowed | ({call.tool for call in waiting_calls} if decision == "always" else set())
    if allowed_tools != session.allowed:
        events.append(ev.ToolsAllowed(tools=tuple(sorted(allowed_tools)), ts=ts))
    return tuple(events)


def _decided_call(call: ToolCall, decision: ToolDecision, reason: str) -> ToolCall:
    if decision != "denied":
        return replace(call, decided=decision)
    why = f" Reason: {reason}" if reason.strip() else ""
    return replace(call, decided=decision, ok=False, result=f"The person did not allow this call.{why}")


def allow(rules: Rules, session: Session, tools: frozenset[str], ts: int) -> Events:
    """Replace the set of tools that run without approval; return no event if the set does not change."""
    if tools == session.allowed:
        return ()
    return (ev.ToolsAllowed(tools=tuple(sorted(tools)), ts=ts),)


def ask_again(rules: Rules, session: Session, ts: int) -> Events:
    """Revoke the tool permissions of a resumed cast.

    If any open call was approved or denied, ask about all open calls again.
    """
    events: list[ev.Event] = []
    if session.allowed:
        events.append(ev.ToolsAllowed(tools=(), by="resume", ts=ts))
    visit = session.state.at
    if visit is not None and any(call.decided is not None for call in session.open_calls):
        calls = tuple(replace(call, decided=None) for call in session.open_calls)
        events.append(ev.ToolAsked(about=routing.about(rules, visit), calls=calls, worked=0, ts=ts))
    return tuple(events)


def answer_hold(rules: Rules, session: Session, text: str, ts: int) -> Events:
    """Send a person's answer to the agent that put the cast on hold; raise MateriaError if the answer is blank."""
    answer_text: object = text  # a notebook may pass a value of any type
    if not isinstance(answer_text, str) or not answer_text.strip():
        raise usage_error("The answer is blank.", "enter an answer that is not blank")
    return (ev.HoldAnswered(about=routing.about(rules, held_visit(session.state)), text=text, ts=ts),)


def approve(rules: Rules, session: Session, request: ApprovalRequest, ts: int) -> Events:
    """Approve the exact command in the agent's request.

    Raises:
        MateriaError: the request has expired (``approval``).
    """
    approval = request.approve(ts / 1000)
    if approval is None:
        raise MateriaError(
            "The approval request expired before anybody answered it.",
            hint="deny the request, or use `reply` to tell the agent to ask again",
            kind="approval",
        )
    return _answer_approval(rules, session, request, answer_note(approval), approval, ts)


def deny(rules: Rules, session: Session, request: ApprovalRequest, reason: str, ts: int) -> Events:
    """Deny the command in the agent's request; ``reason`` may be empty."""
    lines = "\n".join([answer_note(None), *([f"Reason: {reason}"] if reason.strip() else [])])
    return _answer_approval(rules, session, request, lines, None, ts)


def _answer_approval(
    rules: Rules, session: Session, request: ApprovalRequest, text: str, approval: Approval | None, ts: int
) -> Events:
    event = ev.ApprovalAnswered(
        about=routing.about(rules, held_visit(session.state)),
        approval_id=request.approval_id,
        fingerprint=request.fingerprint,
        exact_content=request.sealed["exact_content"],
        granted=approval is not None,
        expires=None if approval is None else round(approval.expires_at * 1000),
        text=text,
        ts=ts,
    )
    return (event,)


def decide_hold(rules: Rules, session: Session, satisfied: bool | None, target: str | None, ts: int) -> Events:
    """Accept the held output with a person's decision: a verdict, the next socket, or both."""
    visit = held_visit(session.state)
    artifact = session.steps[-1].artifact
    step = outputs.complete_held_output(rules, session.state, satisfied=satisfied, target=target, artifact=artifact)
    first = ev.HoldDecided(about=routing.about(rules, visit), satisfied=satisfied, target=target)
    # This event replaces socket_complete.
    return step._replace(events=(first, *step.events[1:])).events_from(session.state, ts)


def calls_awaiting_approval(session: Session) -> tuple[ToolCall, ...]:
    """Return the tool calls awaiting a person's decision."""
    return session.open_calls and tuple(call for call in session.open_calls if call.decided is None)


def approval_tools(rules: Rules) -> tuple[str, ...]:
    """Return the tools that can need approval: ``TOOLS_NEEDING_APPROVAL``, and the tools of the loadout that can do more than read."""
    scopes = [socket_rules.socket.materia.tools for socket_rules in rules.sockets.values()]
    names = (name for tools in scopes if not isinstance(tools, str) for name in tools)
    return tuple(dict.fromkeys([*TOOLS_NEEDING_APPROVAL, *(name for name in names if name not in _READ_ONLY_TOOLS)]))


def known_tools(rules: Rules, tools: Sequence[str]) -> frozenset[str]:
    """Validate tool names and return them as a set; ``all`` means all tools in ``TOOLS_NEEDING_APPROVAL``.

    The name ``folder:/a/path`` means permission to work in that folder, which is outside the project (P8).

    Raises:
        MateriaError: a name is not a tool that can need approval (``unknown_tool``).
    """
    valid_names = approval_tools(rules)
    names = frozenset(TOOLS_NEEDING_APPROVAL) if set(tools) == {"all"} else frozenset(tools)
    for name in sorted(names):
        if name in valid_names or name.startswith(FOLDER_PREFIX) or f"{name.partition('.')[0]}.*" in valid_names:
            continue
        raise MateriaError(
            f"{name!r} is not a tool that can need approval.",
            hint=did_you_mean(name, (*valid_names, "all")),
            kind="unknown_tool",
        )
    return names
