"""The inspector's content after a cast has ended: the failure and its remedies, or the result and the next actions."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.formatting import describe_failure, format_cost
from materia_nb.cast.repairs import Redefinition, changed_definition, offered_actions
from materia_nb.cast.views.status import describe_steps, describe_tries
from materia_nb.display.blocks import Block, Code, FactTable, Fold, Heading, Line, LineDiff, Table, clip_plain, lines
from materia_nb.display.escape import part, shorten
from materia_nb.display.sections import issue_rows
from materia_nb.engine import decide, evolve, outputs
from materia_nb.engine.session import branch_suffix, lanes_at_work, output_name
from materia_nb.engine.state import BOUNDS, CastState
from materia_nb.errors import MateriaError, counted, outgoing_traceback, plain
from materia_nb.insight.estimate import format_seconds, format_work_time, step_time, work_time
from materia_nb.jsonvalue import JSON
from materia_nb.store.rundir import RunDir
from materia_nb.widgets.cast_slices import step_text
from materia_nb.widgets.state_tree import diff_blocks

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.cast_warnings import CastWarning
    from materia_nb.handoff import Issue

_MAX_STDERR_CHARS: Final = 4_000
_MAX_WARNINGS: Final = 8
_MAX_CONCLUSION_LINES: Final = 20
_REPEATING_ACTIONS: Final = ("retry_turn", "retry", "retry_limit", "ask_again")
"""Names of the repair actions that are in the menu *Again*."""
_BACK: Final = "Continue the cast from here. The later steps stay as a branch; the tab Files can restore files."
_FORK: Final = "Start another cast from here, and show it in this panel. This cast does not change."
_NEW: Final = "Start a new cast with the same request, loadout and agents."


def failure_state(now: Snapshot) -> dict[str, Any] | None:
    """Return the description of a failure and the actions that may resolve it; None if the cast has not failed.

    Args:
        now: the current snapshot of the cast.
    """
    failure = now.failure
    if failure is None:
        return None
    changed = changed_definition(now) if now.writable else None
    socket = failure.socket or ""
    socket_rules = now.rules.sockets.get(socket)
    is_text = socket_rules is not None and (socket_rules.requirements.parse == "text")
    record = now.latest
    blocks = _failure_blocks(now, changed)
    offers = offered_actions(now, changed) if now.writable else []
    return {
        "key": f"{now.id} {len(now.steps)} {record.attempts if record else 0} {failure.kind}",
        "blocks": [block for block in blocks if not isinstance(block, Fold)],
        "more": [block for block in blocks if isinstance(block, Fold)],
        "offers": [
            {"name": offer.name, "words": part(offer.label, 80), "does": offer.does}
            for offer in offers
            if offer.name not in (*_REPEATING_ACTIONS, "correct")
            and (now.engine.lane is None or offer.name == "answer")
        ],
        "main": offers[0].name if offers else "",
        "socket": socket,
        "says": "the output of the process"
        if socket_rules is not None and socket_rules.socket.is_utility
        else "the answer",
        "form": "as text" if is_text else "as JSON",
        "refused": "" if failure.refused is None else failure.refused[1],
        "budget": _doubled_budget_text(now.engine),
    }


def _doubled_budget_text(state: CastState) -> str:
    """Return a budget that allows the cast to continue: twice the used amount of the exhausted limit."""
    bound = next((bound for bound in BOUNDS if bound.is_reached(state.usage, state.budget)), BOUNDS[0])
    limit = 2 * (bound.used(state.usage) or 0)
    return str(limit) if bound.quantity == "tokens" else f"{limit if bound.is_integer else f'{limit:.2f}'} {bound.unit}"


def _failure_blocks(now: Snapshot, changed: Redefinition | None) -> list[Block]:
    failure = now.failure
    assert failure is not None  # noqa: S101 - the caller checks this
    name = now.names.get("" if lanes_at_work(now.session) else failure.socket or "", "The cast")
    command = _process_record(now)
    ending = _exit_text(command) or describe_failure(failure.kind)
    parts = [Heading(f"{name} {ending}", tone="bad"), Line(" · ".join(_failure_details(now)), "quiet")]
    if failure.refused is None and (command is None or failure.kind == "invalid_output"):
        parts.append(Line(_limit_text(now) or failure.message))
    if failure.refused is not None:
        issues, text = failure.refused
        parts += [Table(("where", "issue", "what to do"), issue_rows(issues)), Fold("the refused answer", [Code(text)])]
    if command is not None:
        parts += _command_blocks(now, command)
    if not now.writable:  # a writable cast has buttons instead
        parts.append(Line(f"To continue: {now.live.continue_hint}"))
    raised_error = now.live.last_exception
    if raised_error is not None and failure.kind in ("agent_error", "agent_failed", "failed"):
        parts.append(Fold("traceback", [Code(outgoing_traceback(raised_error))]))
    if changed is not None:
        used_by_steps = (
            f" (including {', '.join(changed.fixed_fields)}, which earlier steps already used)"
            if changed.fixed_fields
            else ""
        )
        parts += [Heading(f"changed since this cast began{used_by_steps} · {changed.materia}", small=True)]
        parts.append(LineDiff(changed.lines))
        if changed.fixed_fields:
            parts.append(Line("Only a new cast uses this change.", "quiet"))
    return parts


def _limit_text(now: Snapshot) -> str:
    """Describe the exceeded edge limit, with the reason for the last verdict; "" if no edge limit was exceeded."""
    failure, record = now.failure, now.latest
    if failure is None or failure.kind != "edge_traversals_exhausted" or failure.allow is None or record is None:
        return ""
    limit = failure.allow[1] + now.engine.extra.get(failure.allow[0], 0)
    source, target = (now.names.get(id_ or "", id_ or "") for id_ in (failure.socket, failure.blocked))
    text = f"{source} may send {record.item_label or 'its work'} to {target} {counted(limit, 'time')}."
    reason = record.reading.context if record.reading is not None else None
    return f"{text} Last reason: “{shorten(reason, 200)}”" if isinstance(reason, str) and reason else text


def _failure_details(now: Snapshot) -> list[str]:
    """Return the step and the work item at which a cast failed, and the number of attempts that were made."""
    record = now.latest
    if lanes_at_work(now.session) is not None:  # the generator's step is not part of the failure
        return ["all steps are kept"]
    step = f"step {record.number}" if record is not None else ""
    item = part(record.item_label or record.item_key or "", 40) if record is not None else ""
    return [*filter(None, [step, item, describe_tries(now)]), "all steps are kept"]


def _process_record(now: Snapshot) -> dict[str, JSON] | None:
    """Return the recorded command of the failed step's process, or None if the step ran no process."""
    record, failure = now.latest, now.failure
    if record is None or failure is None or failure.socket != record.socket:
        return None
    if not now.graph.sockets[record.socket].is_utility or record.pinned:
        return None
    name = f"{output_name(record.socket, record.visit, None, branch_suffix(record.branch))}.command.json"
    with contextlib.suppress(MateriaError, ValueError):
        command = json.loads(RunDir(now.run_dir).read_text(name))
        return command if isinstance(command, dict) else None
    return None


def _exit_text(command: dict[str, JSON] | None) -> str:
    """Describe how a process ended, such as ``exited with code 1``; return "" if the process succeeded."""
    if command is None:
        return ""
    if command.get("startError"):
        return "could not be started"
    if command.get("timedOut"):
        return f"took longer than {command.get('timeoutMs')} ms and was stopped"
    if command.get("signal"):
        return f"ended with signal {command['signal']}"
    return f"exited with code {command['code']}" if command.get("code") else ""


def _command_blocks(now: Snapshot, command: dict[str, JSON]) -> list[Block]:
    """Return the output and the command of a process, and the names of the files that contain the output."""
    parts: list[Block] = []
    if command.get("startError"):
        parts.append(Line(str(command["startError"])))
    files = [(name, command.get(f"{name}Artifact")) for name in ("stderr", "stdout")]
    for name, artifact in files:
        text = ""
        with contextlib.suppress(MateriaError):
            text = RunDir(now.run_dir).read_text(str(artifact)).rstrip()
        if not text and (name == "stdout" or command.get("startError")):
            continue
        content = Code(text[-_MAX_STDERR_CHARS:]) if text else Line("empty", "quiet")
        parts += [Heading(name, small=True), content] if name == "stderr" else [Fold(name, [content])]
    argv = command.get("command")
    command_blocks = [Code("\n".join(map(str, argv)) if isinstance(argv, list) else str(argv))]
    locations = [f"{name} saved in {artifact}" for name, artifact in files if artifact]
    parts.append(Fold("command, and where its output is saved", [*command_blocks, *lines(locations, "quiet")]))
    return parts


def check_answer_by_hand(now: Snapshot, text: str) -> list[Issue]:
    """Validate text as the user's answer for a failed socket, and return the problems."""
    session = evolve.fold(now.rules, now.session, decide.answer_by_hand(now.rules, now.session, 0))
    return list(outputs.check_answer(now.rules, session.state, text))


def result_blocks(now: Snapshot) -> list[Block]:
    """Return the output, warnings, state changes, time and cost of a complete cast; empty if it is not complete."""
    if now.status != "complete":
        return []
    warnings = now.warnings
    counts = now.loop_progress.values()
    done, total = (sum(counts_) for counts_ in zip(*counts, strict=True)) if counts else (0, 0)
    items = f": {done} of {counted(total, 'item')} done" if total else ""
    heading = f"Complete{', with warnings' if warnings else ''}{items}, after {describe_steps(now)}"
    parts: list[Block] = [Heading(heading, tone="warn" if warnings else "good")]
    record = next((step for step in reversed(now.steps) if step.output is not None), None)
    if now.conclusion:
        parts += [Heading("conclusion of the agents", small=True), *lines(now.conclusion[:_MAX_CONCLUSION_LINES])]
    elif record is not None:
        name = now.names[record.socket]
        parts.append(Heading(f"final output · {name}, step {record.number}", small=True))
        text = step_text(record)
        parts.append(Code(text))
        if plain(record.output or "").strip() != text.strip():
            parts.append(Fold("original text", [Code(record.output or "")]))
    if warnings:
        parts.append(Heading("warnings", small=True))
        messages_by_code: dict[str, list[str]] = {}
        for warning in warnings:
            messages_by_code.setdefault(warning.code, []).append(clip_plain(_warning_text(warning), 600))
        for code, messages in messages_by_code.items():
            parts += lines(messages[:1], "warn")
            if messages[1:]:
                parts.append(Fold(f"{len(messages) - 1} more of {code}", lines(messages[1:_MAX_WARNINGS])))
    change_blocks = diff_blocks(dict(now.session.start.data), dict(now.state), "what changed in the state")
    return [*parts, *change_blocks, Heading("cost and time", small=True), FactTable(_cost_and_time(now))]


def _warning_text(warning: CastWarning) -> str:
    """Return the text of a warning with its step."""
    step = f"step {warning.step}, " if warning.step is not None else ""
    return f"{warning.message} ({step}{warning.code})"


def _cost_and_time(now: Snapshot) -> list[tuple[str, str]]:
    """Return rows with the cost of a cast and its time, split into agents, processes and waiting."""
    steps = [*now.steps, *(step for lane in now.lanes.values() for step in lane.now.steps)]
    processes = [step for step in steps if now.graph.sockets[step.socket].is_utility]
    agents = [step for step in steps if not now.graph.sockets[step.socket].is_utility]
    kinds = [("agents", agents), ("processes", processes)]
    run_time = ", ".join(f"{name} {format_work_time(*work_time(group))}" for name, group in kinds if group)
    waiting_time = sum(step_time(step).waited or 0 for step in steps)
    usage = now.engine.usage
    tokens = "unknown" if usage.tokens is None else f"{usage.tokens:,}"
    unknown = f", unknown of {counted(usage.uncounted, 'turn')}" if usage.uncounted and usage.tokens is not None else ""
    return [
        ("run time", run_time or "none"),
        ("waited", format_seconds(waiting_time) if waiting_time else "never"),
        ("tokens", tokens + unknown),
        ("cost", format_cost(usage.cost, usage.unpriced) or "unknown"),
    ]


def next_actions(now: Snapshot) -> list[dict[str, str]]:
    """Return the actions that are possible after a complete cast, each with the kind of its page message."""
    if now.status != "complete" or not now.writable:
        return []
    actions = [
        ("compare", "Compare…", "compare with another cast of the project"),
        ("label", "Label…", "give the cast a name"),
        ("keep_test", "Keep as a test", "save a test for pytest: the same answers must take the same route"),
        ("page", "Web page", "save the cast as one HTML page in the project"),
    ]
    return [{"kind": kind, "words": label, "title": title} for kind, label, title in actions]


def rerun_actions(now: Snapshot, inspected: Snapshot, past: Snapshot | None, line: int | None) -> list[dict[str, Any]]:
    """Return the actions of the menu *Again*, most likely first, each with the message that the page sends.

    Args:
        now: the current snapshot of the cast.
        inspected: the current snapshot of the cast or lane in the inspector, which may have failed.
        past: the past snapshot that the user is viewing, or None for the present.
        line: the number of the abandoned branch that the timeline shows, or None for the current branch.
    """
    is_lane, writable = inspected.engine.lane is not None, now.writable
    step = None if past is None or past.engine.lane is not None else len(past.steps)
    offers = offered_actions(inspected, changed_definition(inspected)) if writable else []
    actions: list[tuple[str, str, dict[str, Any]]] = [
        (offer.label, offer.does, {"kind": offer.name})
        for offer in offers
        if offer.name in _REPEATING_ACTIONS and not (is_lane and offer.name == "ask_again")
    ]
    if now.steps and line is None:
        label = "Continue here" if not writable else "Fork" if step is None else "Fork from here"
        actions.append((label, _FORK, {"kind": "fork", "step": step}))
    if step is not None and line is None and writable:
        index = 1 if now.status == "complete" else 0  # a fork keeps the result of a complete cast
        actions.insert(index, ("Go back to here", _BACK, {"kind": "back", "step": step}))
    if now.steps or actions:
        is_new_likely = now.status == "complete" and step is None and writable
        actions.insert(0 if is_new_likely else len(actions), ("Cast again", _NEW, {"kind": "again"}))
    return [{"words": label, "title": does, "message": message} for label, does, message in actions]
