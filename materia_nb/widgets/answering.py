"""The Answer tab of the inspector: the question to the user, and the form for answers, approvals and corrections."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.breakpoint import ordinal
from materia_nb.cast.formatting import summarize_output
from materia_nb.display.blocks import Block, Code, FactTable, Fold, Heading, Line, blocks_as_text, lines
from materia_nb.display.escape import part
from materia_nb.display.sections import MAX_APPROVAL_CHARS, approval_blocks, call_blocks, issue_rows
from materia_nb.engine import outputs
from materia_nb.engine.entering import turn_facts
from materia_nb.errors import MateriaError, plain
from materia_nb.handoff.base import Outcome, SimpleAnswer, WorkItem
from materia_nb.handoff.jsontext import NotJson, strict_json
from materia_nb.handoff.runtime_rules import request_of
from materia_nb.jsonvalue import JSON, json_advice
from materia_nb.widgets.cast_slices import identity, step_text
from materia_nb.widgets.failure_panel import check_answer_by_hand, failure_state, next_actions, result_blocks
from materia_nb.widgets.state_tree import title_and_context

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.routing import Decision
    from materia_nb.engine.state import Visit
    from materia_nb.handoff import Issue

_DRAFT_CHARS: Final = 4_000
_MAX_OUTPUT: Final = 20_000
"""Maximum length of an output that the page receives without a request, in characters."""
_MAX_EXCERPT: Final = 1_500
_FILE_NAME: Final = re.compile(r"""("[^"\n]+"|'[^'\n]+'|[^\s"'`<>()\[\]{},;:]*[^\s"'`<>()\[\]{},;:.])""")
"""Pattern of a possible file name, such as ``front/blocks.js``, with or without quotation marks."""
_MAX_FILE_NAMES: Final = 200


def answer_state(now: Snapshot, *, busy: bool) -> dict[str, Any]:
    """Return the content of the Answer tab.

    The tab shows a failure or the final result at the top, then the open question, and then the answer form.

    Args:
        now: the current snapshot of the cast.
        busy: True while a step is running.
    """
    visit, is_writable = now.waiting_at, now.writable
    failure = None if busy else failure_state(now)
    if failure is not None:
        failure["files"] = named_files(failure["blocks"] + failure["more"], (now.project, now.run_dir))
    state: dict[str, Any] = {
        "is": "answer",
        "key": _question_key(now, visit),
        "busy": busy,
        "top": [*result_blocks(now), *_work_blocks(now, visit, busy=busy)],
        "failed": failure,
        "next": [] if busy else next_actions(now),
        "live": _agent_progress(now, visit),
    }
    if now.approvals.asking and is_writable:
        socket = now.engine.at.socket if now.engine.at else ""
        state["asks"] = {
            "is": "calls",
            "key": identity(now),
            "words": f"{now.names.get(socket, socket)} is asking for approval to run",
            "said": plain(_approval_reason(now)),
            "blocks": call_blocks(now.approvals.asking, omit_text=True),
        }
    elif now.held is not None and is_writable:
        state["asks"] = _hold_state(now)
    elif visit is not None and now.prompt is not None and is_writable and not busy:
        state["form"] = _form_state(now, visit)
    elif is_writable and not busy and now.status == "ready" and not now.is_state_locked:
        state["enter"] = _entry_offer(now)
    if not busy and (output := correctable_output(now)) is not None:
        state["correct"] = {**output, "text": output["text"] if len(output["text"]) <= _MAX_OUTPUT else None}
    state["blocks"] = _notes_and_conversation(now)
    return state


def named_files(blocks: Sequence[Block], folders: Sequence[Path]) -> dict[str, str]:
    """Return the existing files that are mentioned in blocks, each with its path relative to the notebook's folder.

    The result is empty if no server reports the notebook's folder. The front end checks whether its server can open the
    files.

    Args:
        blocks: blocks that may mention files by absolute paths, or by paths relative to one of the folders.
        folders: the folders to search, such as the project folder.
    """
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    files: dict[str, str] = {}
    if not notebook.is_absolute():
        return files
    text = blocks_as_text(inner for block in blocks for inner in (block.blocks if isinstance(block, Fold) else [block]))
    names = dict.fromkeys(name.strip("\"'") for name in _FILE_NAME.findall(text))
    for name in islice((name for name in names if re.search(r"[./\\]", name)), _MAX_FILE_NAMES):
        for folder in folders:
            with contextlib.suppress(OSError, ValueError):  # not a valid path, or on another drive
                path = folder / name
                if path.is_file():
                    files[name] = Path(os.path.relpath(path, notebook.parent)).as_posix()
                    break
    return files


def _question_key(now: Snapshot, visit: Visit | None) -> str:
    """Return a key that identifies the current question. The page keeps unsent text until the key changes."""
    position = (visit.step, visit.turn, visit.mode) if visit is not None else (len(now.steps), now.status)
    return f"{now.id} {len(now.abandoned)} {' '.join(map(str, position))}"


def _work_blocks(now: Snapshot, visit: Visit | None, *, busy: bool) -> list[Block]:
    """Return a line about the agent that is working; for a read-only cast, also explain how to continue it here."""
    if visit is None or (now.writable and (not busy or now.is_answered_by_person(visit.socket))):
        return []
    name, item = now.names[visit.socket], f" on {part(visit.item.label, 40)}" if visit.item else ""
    if now.writable:
        since = now.latest and strftime("%H:%M:%S", localtime(now.latest.started / 1000))
        return [Line(f"{name} has been working{item} since {since}.")]
    writer = now.live.writer_name
    text = f"{name} is working{item} in {writer}." if writer else f"{name} has not answered{item}."
    return [Line(text), Line(f"You can {now.live.continue_hint}.", "quiet")]


def _agent_progress(now: Snapshot, visit: Visit | None) -> dict[str, Any]:
    """Return the progress of a running agent: its text so far, its tool calls, and its latest notes."""
    if visit is None:
        return {}
    progress_text = now.partial_answer
    return {
        "words": plain(progress_text[-_DRAFT_CHARS:]),
        "cut": len(progress_text) > _DRAFT_CHARS,
        "calls": call_blocks([call for call in now.calls if call.result is not None or call.decided is not None]),
        "notes": [plain(note) for note in now.notes[-5:]],
    }


def _approval_reason(now: Snapshot) -> str:
    """Return the reason for an approval request: the text that the model wrote before the request."""
    reasons = [call.said for call in now.approvals.asking if call.said.strip()]
    return "\n".join(dict.fromkeys(reasons)) or now.partial_answer[-_DRAFT_CHARS:]


def _hold_state(now: Snapshot) -> dict[str, Any]:
    """Return the reason why the cast is on hold, the command to approve (if any), and the possible decisions."""
    hold = now.held
    assert hold is not None and now.engine.at is not None  # noqa: S101, PT018 - the cast is on hold
    name = now.names[now.engine.at.socket]
    value = hold.reading.value
    parts: list[Block] = lines([hold.reason])
    approval, is_complete = None, True
    if hold.needs in ("approval", "direction") and isinstance(value, dict):
        request = request_of(value)
        approval = now.approvals.request
        content = str(request.get("exact_content") or "")
        is_complete = len(content) <= MAX_APPROVAL_CHARS
        rows = [
            (label, str(request.get(key) or "not stated"))
            for label, key in (
                ("operation", "operation"),
                ("touches", "scope"),
                ("risk", "risk_level"),
                ("how to undo it", "rollback"),
                ("how to verify it", "verification"),
            )
        ]
        rows += [("fingerprint", approval.fingerprint)] if approval is not None else []
        if content:
            parts += [Heading(f"exact content ({len(content):,} characters)"), *approval_blocks(content)]
        parts.append(FactTable(rows))
    parts += lines([f"Note: {warning.message}" for warning in hold.reading.warnings], "warn")
    return {
        "is": "hold",
        "key": identity(now),
        "words": f"{name} asks for {hold.needs}" if hold.needs else f"{name} needs your decision",
        "said": "",
        "blocks": parts,
        "approve": hold.needs == "approval" and approval is not None and is_complete,
        "deny": hold.needs == "approval" and approval is not None,
        "sockets": [*now.names.items()],
    }


def _form_state(now: Snapshot, visit: Visit) -> dict[str, Any]:
    """Return the answer form: its format, the required fields, the task, and the next socket after each verdict."""
    socket_rules = now.rules.sockets[visit.socket]
    is_draft = visit.mode == "draft"
    any_text = is_draft or visit.mode in socket_rules.work_modes or socket_rules.requirements.parse == "text"
    who = now.answered_by(visit.socket)
    verdicts = {} if any_text else {word: _socket_after_verdict(now, word == "yes") for word in ("yes", "no")}
    form: dict[str, Any] = {
        "words": _request_text(
            now.names[visit.socket], who, any_text=any_text, draft=is_draft, fields=[*socket_rules.required_fields]
        ),
        "person": who in (None, "person"),
        "text": any_text,
        "draft": bool(is_draft and visit.drafts),
        "wanted": [[field, plain(description)] for field, description in socket_rules.required_fields.items()],
        "verdict": verdicts if verdicts and all(verdicts.values()) else None,
        "items": socket_rules.requirements.work_items and not any_text,
        "previous": _text_to_review(now, drafted=bool(is_draft and visit.drafts)),
        "task": _task_rows(now),
    }
    if now.change_request is not None:
        form["wish"] = plain(now.change_request[:_MAX_EXCERPT])
    return form


def _text_to_review(now: Snapshot, *, drafted: bool) -> dict[str, Any] | None:
    """Return the text to review, with its author; None if nothing has been written.

    The text is the agent's own draft, or else the output that the socket received.
    """
    last, source = now.engine.last_output, now.engine.last_socket
    if drafted:
        return {"who": "its draft", "text": plain((now.steps[-1].shown or "")[:_DRAFT_CHARS]), "cut": False}
    if last is None or source is None:
        return None
    step = next((step for step in reversed(now.steps) if step.output == last), None)
    text = last if step is None else step_text(step)
    if step is not None and text.lstrip().startswith(("{", "[")):
        text = summarize_output(step)
    return {"who": now.names.get(source, source), "text": plain(text[:_MAX_EXCERPT]), "cut": len(text) > _MAX_EXCERPT}


def _task_rows(now: Snapshot) -> list[list[str]]:
    """Return the request and the current work item as rows of a label and a value."""
    rows = [["request", plain(now.request[:_MAX_EXCERPT])]] if now.request else []
    item = now.state.get("item")
    if isinstance(item, dict) and any(title_and_context(item)):
        rows += [["item", ": ".join(plain(text[:_MAX_EXCERPT]) for text in title_and_context(item) if text)]]
    return rows


def _request_text(name: str, who: str | None, *, any_text: bool, draft: bool, fields: list[str]) -> str:
    if draft:
        request = "Write a draft in plain words."
    elif any_text:
        request = "Any text is accepted."
    elif fields == ["satisfied"]:
        request = "Is the work done?"
    else:
        request = (
            "List the work items." if fields == ["workItems"] else f"Required: {', '.join(fields) or 'see the prompt'}."
        )
    if who in (None, "person"):
        return f"Your turn. {request}"
    return f"{part(who or '', 40)} will answer for {name} when you click Step. You can also answer yourself. {request}"


def build_answer(now: Snapshot, satisfied: bool | None, reason: str, items: Sequence[JSON] | None = None) -> str:
    """Build an answer in the protocol of the waiting socket from a verdict, a reason and a table of items.

    Args:
        now: the current snapshot of the cast.
        satisfied: the verdict, or None for an answer without a verdict.
        reason: the reason for the verdict; may be empty.
        items: the work items of a generator, each with a title and a context; None if the user did not fill in a table.
    """
    visit = now.waiting_at
    socket_rules = None if visit is None else now.rules.sockets[visit.socket]
    if visit is not None and socket_rules is not None and "write_for_person" in socket_rules.protocol.overridden:
        outcome: Outcome = "open" if satisfied is None else "done" if satisfied else "again"
        work_items, why = tuple(WorkItem(*title_and_context(item)) for item in items or ()), reason.strip()
        simple_answer = SimpleAnswer(outcome, findings=why, items=work_items, reason=why)
        return socket_rules.protocol.write_for_person(simple_answer, turn_facts(now.rules, now.engine, visit))
    answer: dict[str, JSON] = {} if items is None else {"workItems": list(items)}
    if satisfied is not None:
        answer["satisfied"] = satisfied
    if reason or items is None:
        answer["context"] = reason
    return json.dumps(answer, ensure_ascii=False)


def _socket_after_verdict(now: Snapshot, satisfied: bool) -> str | None:
    """Describe what would follow a verdict: the next socket with the traversal limit of the edge, a hold, or a failure.

    Return None if the answer needs fields other than the verdict and the reason.
    """
    text = build_answer(now, satisfied, "(reason)")
    try:
        if outputs.check_answer(now.rules, now.engine, text):
            return None
        completed_output = outputs.output(now.rules, now.engine, text, prompt=now.prompt)
    except MateriaError:
        return None
    if completed_output.state.status == "held":
        return "a pause for your decision"
    if completed_output.state.failure is not None and completed_output.decision is not None:
        return f"a failure: {completed_output.state.failure.kind}"
    return None if completed_output.decision is None else _edge_text(now, completed_output.decision)


def _edge_text(now: Snapshot, decision: Decision) -> str:
    chosen, target = decision.chosen, decision.target or ""
    name = now.names.get(target, target)
    if chosen is None or chosen.limit is None:
        return name
    return f"{name} ({ordinal((chosen.used or 0) + 1)} of {chosen.limit} times)"


def check_text(now: Snapshot, text: str, purpose: str) -> dict[str, Any]:
    """Validate text that the user has typed, and return the problems.

    Args:
        now: the current snapshot of the cast.
        text: the typed text.
        purpose: how the text will be used: ``reply`` (answer to the current question), ``by_hand`` (answer for a failed
            socket), ``correction`` (new output of the last step) or ``value`` (JSON value in the state).
    """
    record = now.latest
    issues: list[Issue] = []
    if purpose == "value":
        try:
            strict_json(text)
        except NotJson as error:
            return {"issues": [], "advice": json_advice(text) or str(error), "fine": False}
    elif purpose == "correction":
        if record is None:
            return {"issues": [], "advice": "", "fine": False}
        rules = now.rules.sockets[record.socket]
        issues = list(rules.protocol.read(text, rules.requirements).issues)
    elif purpose == "by_hand" and now.is_unanswered:
        issues = check_answer_by_hand(now, text)
    elif purpose == "reply" and now.waiting_at:
        issues = list(outputs.check_answer(now.rules, now.engine, text))
    advice = json_advice(text) if issues and text.lstrip().startswith("{") else ""
    return {"issues": issue_rows(issues[:20]), "advice": advice, "fine": not issues}


def correctable_output(now: Snapshot) -> dict[str, Any] | None:
    """Return the last output and a label for its editor; None if the output cannot be edited."""
    record = now.latest
    if record is None or not record.turns or not now.writable or now.status == "waiting" or now.is_state_locked:
        return None
    return {
        "key": f"{record.branch} {record.number} {len(record.turns)}",
        "text": record.output or "",
        "words": f"Edit the output of step {record.number}",
    }


def _entry_offer(now: Snapshot) -> dict[str, str] | None:
    socket = now.graph.sockets.get(now.next_socket or "")
    if socket is None:
        return None
    name, who = now.names[socket.id], now.answered_by(socket.id)
    if socket.is_utility:
        return {"words": f"Next: {name}, a utility. Click Step to run it."}
    if who in (None, "person"):
        return {"words": f"Next: {name}. You write the answer.", "button": "Show the prompt"}
    return {"words": f"Next: {name}, answered by {part(who or '', 60)}.", "button": "Show and edit the prompt first"}


def _notes_and_conversation(now: Snapshot) -> list[Block]:
    """Return the blocks below the answer form: the conversation, notes about the cast, and pinned answers."""
    parts: list[Block] = []
    if now.waiting_at is not None and now.conversation:
        turns = [block for message in now.conversation for block in (Line(message.role, "quiet"), Code(message.text))]
        parts.append(Fold(f"the conversation so far ({len(now.conversation)} messages)", turns))
    notes = [*now.messages, *(f"differs: {difference}" for difference in now.differences)]
    notes += [f"pinned: {name} to {pin.words}" for name, pin in now.pins.items()]
    notes += [f"{name} is pinned to a missing function; pin it again or unpin it" for name in now.lost_pins]
    if notes:
        parts.append(Fold(f"notes ({len(notes)})", lines(notes)))
    return parts


def parse_value(text: str, *, as_text: bool) -> JSON:
    """Parse a state value that the user has typed; with ``as_text``, return the text itself.

    Raises:
        MateriaError: the text is not valid JSON (``not_json``).
    """
    if as_text:
        return text
    try:
        return strict_json(text)[0]
    except NotJson as error:
        raise MateriaError("The value is not JSON.", hint=json_advice(text) or str(error), kind="not_json") from error
