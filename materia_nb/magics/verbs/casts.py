"""Verbs that continue, change or list casts, verbs for the quest board, and the verb ``help``."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.breakpoint import OUTPUT_KINDS, parse_amount
from materia_nb.cast.edits import Approvals, Edits
from materia_nb.cast.formatting import casts_view
from materia_nb.cast.project_casts import Casts
from materia_nb.cast.views.status import approval_lines, status_view
from materia_nb.cast.views.step_views import prompt_view, step_view
from materia_nb.cast.views.tables import allowed_view, breakpoints_view, budget_view, items_view, quests_view
from materia_nb.cast.work import stopped_error
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import JsonView, Table, Text
from materia_nb.display.escape import shorten
from materia_nb.engine.conversation import HEADINGS
from materia_nb.engine.edit import VERDICTS
from materia_nb.engine.items import item_label
from materia_nb.engine.session import lanes_at_work
from materia_nb.errors import MateriaError, join_with_or, usage_error
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import read_text
from materia_nb.magics.cast_display import run_progress
from materia_nb.magics.registry import (
    Call,
    Rest,
    WordList,
    help_text,
    method_verb,
    status_after,
    step_after,
    value_of,
    verb,
)
from materia_nb.quests import STOP_MESSAGES, QuestBoard

method_verb(
    "cast",
    Workbench.cast,
    value_of,
    only="request loadout",
    cell="may",
    request={"required": False},
    example="%materia cast ship the widget",
)


@verb("step")
def _run_step(call: Call, count: int | None = None, *, enter: bool = False) -> Any:
    """Run the next socket, or the next several sockets.

    Args:
        count: the number of steps to run; defaults to 1
        enter: only enter the socket, so that you can read or change its prompt before it is sent
    """
    cast = call.cast
    if enter:
        if count is not None:
            raise usage_error("Only one socket can be entered at a time.", "write `step --enter` without a number")
        cast.step(ask=False)
        return status_view(cast.now)
    if count is not None and count < 1:
        raise usage_error("The number of steps must be 1 or more.")
    with run_progress(cast):
        cast.run(steps=count) if count is not None else cast.step()
    cast.export.derived_files()
    return status_view(cast.now) if lanes_at_work(cast.now.session) else step_view(cast.now)


@verb("run", until={"completes": "socket"}, example="%materia run --until Socket-3")
def _run_cast(call: Call, *, until: str | None = None, steps: int | None = None, raise_: bool = False) -> Any:
    """Run until the cast ends, a person must answer, or a breakpoint is reached.

    Args:
        until: stop before this socket
        steps: stop after this many steps
        raise_: raise an error if the cast fails or waits for a person, so that a program that runs the notebook notices
    """
    cast = call.cast
    with run_progress(cast):
        pause = cast.run(until, steps=steps)
    if raise_ and pause in ("failed", "aborted"):
        failure = stopped_error(cast.now.session)
        raise MateriaError(failure.what, where=failure.where, hint=failure.hint, kind="cast_failed")
    if raise_ and pause == "person":
        message = "The cast is waiting for a person."
        raise MateriaError(
            message, where=cast.now.next_socket, hint="answer with `reply`, then continue with `run`", kind="cast_waits"
        )
    return status_view(cast.now, pause, cast.now.breakpoints_hit)


method_verb("reply", Cast.reply, step_after, cell="may", example='%%materia reply\n{"satisfied": true}')
method_verb("refine", Cast.refine, step_after, cell="may", example="%materia refine make it shorter")
method_verb(
    "accept",
    Cast.accept,
    step_after,
    decision={"name": "word", "completes": "socket"},
    example="%materia accept\n%materia accept satisfied",
)


@verb("approve")
def _approve_request(call: Call, *, always: bool = False, lane: str | None = None) -> Any:
    """Approve the tool calls or the exact command that an agent requests, and show what you approved.

    Args:
        always: also approve later calls of the same tools in this cast
        lane: the lane whose request to approve, if several lanes request approval
    """
    approvals = call.cast.approvals if lane is None else call.cast.approvals.in_lane(lane)
    approved = approval_lines(approvals.cast)
    with run_progress(call.cast):
        step = approvals.approve(always=always)
    return step_view(call.cast.now, approved, step.lane)


method_verb("deny", Approvals.deny, step_after, only="reason lane", is_long=True)


@verb("allow", example="%materia allow edit write")
def _allow_tools(call: Call, tools: Rest = "", *, ask: bool = False) -> Any:
    """Allow tools to change files or run commands without approval in this cast. Without arguments, list the allowed tools.

    Args:
        tools: bash, edit, write, or all
        ask: require approval again, for the named tools or else for all tools
    """
    names = str(tools).split()
    if ask:
        call.cast.approvals.disallow(*names)
    elif names:
        call.cast.approvals.allow(*names)
    return allowed_view(call.cast.now)


@verb("break", example='%materia break Socket-3 --when "state.retries > 2"', kind={"choices": OUTPUT_KINDS})
def _set_breakpoint(
    call: Call,
    socket: str | None = None,
    *,
    on: str | None = None,
    every: str | None = None,
    nth: int | None = None,
    lane: str | None = None,
    when: str | None = None,
    edge: str | None = None,
    kind: str | None = None,
    clear: bool = False,
) -> Any:
    """Set a breakpoint before a socket or on another condition, for all casts of the loadout. Without arguments, list the breakpoints.

    Args:
        socket: the socket; without it, a kind applies to every socket
        on: stop after a step that changes the state at this dotted path
        every: stop each time this much more has been used: 20000 tokens, 2.5 usd, 60 seconds or 10 turns
        nth: stop only at the n-th time in a cast
        lane: stop only in this lane
        when: stop only if this quoted condition holds; it may use state, item, output, steps and visits
        edge: stop when this edge is taken; name it by its number or its target
        kind: what to stop at: after (the socket has run), refused (its output is refused, before the repair turn),
            not_satisfied (its verdict), same_again (the same output for the same item), or empty_answer (an accepted
            output that is much shorter than the refused one)
        clear: remove this breakpoint, all breakpoints of the socket, or all breakpoints
    """
    bench = call.bench
    where: dict[str, Any] = {"kind": kind, "edge": int(edge) if edge is not None and edge.isdecimal() else edge}
    if clear:
        bench.breakpoints.clear(socket, on, **where)
    elif on is not None:
        bench.breakpoints.watch(on, nth=nth)
    elif every is not None:
        bench.breakpoints.every(*parse_amount(every), socket)
    elif socket is not None or any(where.values()):
        bench.breakpoints.add(socket, when, **where, nth=nth, lane=lane)
    if bench.last_cast is None:
        return breakpoints_view(bench.breakpoints, bench.graph())
    return breakpoints_view(bench.current.breakpoints, bench.current.graph)


method_verb("abort", Cast.abort, status_after, only="reason")
method_verb("retry", Cast.retry, step_after, is_long=True, example="%materia retry\n%materia retry --limit")
method_verb("skip", Cast.skip, step_after, example="%materia skip the counter is down today")


@verb("attempt", cell="may", example="%materia attempt Socket-3 --n 3")
def _attempt_turn(
    call: Call,
    socket: str | None = None,
    *,
    n: int = 1,
    agents: Any = None,
    prompts: Any = None,
    take: int | None = None,
    pin: int | None = None,
) -> Any:
    """Get several answers to the current turn and compare them. The cast does not change until you take an answer. The body of a cell replaces the prompt of the materia.

    Args:
        socket: the socket whose turn is answered; it must be the current or the next socket
        n: the number of answers from each agent; defaults to 1
        agents: the agents to call, separated by commas, or a $list; defaults to the socket's own agent
        prompts: a $list of prompts to use instead of the materia's own
        take: use the latest attempt with this number as the answer
        pin: pin the answer of the latest attempt with this number to the socket
    """
    cast = call.cast
    if take is not None or pin is not None:
        attempts = cast.now.attempts
        if attempts is None:
            raise usage_error("No attempt has been made yet.", "run `attempt`, then `attempt --take 1`")
        if pin is not None:
            attempts.pin(pin)
        if take is None:
            return attempts
        attempts.take(take)
        return step_view(cast.now)
    if call.body is not None:
        prompts = [call.body.strip()]
    return cast.attempt(socket, n, _split_commas(agents), [prompts] if isinstance(prompts, str) else prompts)


@verb(
    "sweep",
    cell="may",
    loadouts={"completes": "loadout"},
    example="%materia sweep --loadouts Plan-Build-Eval,Full-Auto --repeat 3 a page on rain",
)
def _run_sweep(
    call: Call,
    request: Rest = (),
    *,
    loadouts: Any = None,
    agents: Any = None,
    repeat: int = 1,
    checks: Any = None,
    dir_: str | None = None,
    retry: bool = False,
    most: str | None = None,
) -> Any:
    """Run a cast for each combination of loadout, request and agent, and summarize the results. Finished casts are reused. Each line of a cell is a request.

    Args:
        request: the request, or a $list or $dict of requests
        loadouts: comma-separated loadouts; defaults to the selected loadout
        agents: comma-separated agents, or a $list or $dict of choices
        repeat: the number of casts for each combination; defaults to 1
        checks: a $function, or a $list or $dict of checks and judges
        dir_: the folder for the result rows and the casts
        retry: run unfinished casts again
        most: start no further casts once all casts together have used this much: 200000 tokens, 2.5 usd, 600 seconds or
            100 turns
    """
    if call.body is not None:
        request = [line.strip() for line in call.body.splitlines() if line.strip()]
    if not request:
        hint = "write a request after the verb, or a request on each line of the cell (in a terminal: `--body FILE`)"
        raise usage_error("A sweep needs at least one request.", hint)
    arguments = (_split_commas(loadouts), request, _split_commas(agents), repeat, checks, dir_)
    return call.bench.sweep(*arguments, retry=retry, most=most, progress=True)


def _split_commas(value: Any) -> Any:
    """Split a string at its commas; return any other value unchanged."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


@verb(
    "link",
    cell="may",
    parts={"completes": "part"},
    from_={"completes": "cast"},
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def _link_parts(call: Call, parts: WordList, request: Rest = "", *, from_: str | None = None) -> Any:
    """Start a cast of several loadouts and materia, one after another. Continue the cast with step or run.

    Args:
        parts: the loadouts and materia in order; write loadout:NAME or materia:NAME if the name is ambiguous
        request: the request; may be given in the cell instead
        from_: an earlier cast, whose context is stored in the state as previous
    """
    request = call.request(request)
    if not request:
        raise usage_error("The request is missing.", "write the request after `--`, as in `link A B -- REQUEST`")
    return call.bench.link(*map(str, parts), request=request, from_cast=from_)


_CAST_ARGUMENT: Final = {
    "name": "cast",
    "help": "the name of the cast, its id or the beginning of its id, -1 for the latest cast, or a directory",
}


@verb("edit items", cell="may", example='%%materia edit items\n[{"title": "Outline", "context": "Three headings."}]')
def _edit_items(call: Call, *, again: str | None = None, abandon: bool = False) -> Any:
    """Show the work items and their status. The body of a cell replaces the items: a JSON or YAML list, in the order finished, current, open.

    Args:
        again: run these items again; name them by number, key or title, separated by commas
        abandon: skip the current item and continue with the next item
    """
    warnings: list[str] = []
    if call.body is not None:
        warnings += call.cast.edit.items(_parse_value(call.body), abandon=abandon)
    elif abandon:
        warnings += call.cast.edit.abandon()
    if again:
        titles = [item_label(item, "") for item in call.cast.now.work_items]
        warnings += call.cast.edit.again(*([again] if again in titles else _split_commas(str(again))))
    return items_view(call.cast.now, warnings)


@verb("edit set", cell="may", example="%materia edit set plan.approved true")
def _edit_state(call: Call, path: str, value: Rest = None) -> Any:
    """Change one value in the state.

    Args:
        path: a dotted path; missing parts are created
        value: JSON or plain text; in a cell, the body is the value
    """
    value = call.body_or(value)
    if value is None:
        raise usage_error("The value is missing.", "write a value after the path: `edit set plan.approved true`")
    call.cast.edit.set(str(path), _parse_value(value) if isinstance(value, str) else value)
    return JsonView("state", dict(call.cast.state))


def _parse_value(text: str) -> JSON:
    """Parse JSON or YAML. A bare word is returned as a string."""
    try:
        return json.loads(text)
    except ValueError:
        return read_text(text, "yaml", where="the value")


@verb(
    "edit prompt",
    cell="must",
    part={"help": join_with_or(HEADINGS)},
    example="%%materia edit prompt task\nBuild it in one file.",
)
def _edit_prompt(call: Call, part: Rest) -> Any:
    """Change one part of the next prompt, for this turn only. An empty cell removes the part."""
    prompt = call.cast.edit.prompt(str(part), (call.body or "").strip())
    return prompt_view(call.cast.steps[-1], prompt)


method_verb("edit output", Edits.output, step_after, cell="may", example='%materia edit output {"satisfied": true}')
method_verb("edit redefine", Edits.redefine, status_after, only="materia", example="%materia edit redefine Count")
method_verb("edit undo", Edits.undo, status_after)


@verb("edit budget", example="%materia edit budget 200000")
def _edit_budget(call: Call, limit: WordList = None) -> Any:
    """Show the usage of this cast, or set its budget in tokens, cost, working time or turns.

    Args:
        limit: the limit, such as 20000 tokens, 2.50 USD, 60 seconds or 10 turns; none removes the limit
    """
    if limit is not None:
        call.cast.edit.budget_in_words(" ".join(map(str, limit)))
    return budget_view(call.cast.now)


@verb("edit remember", example="%materia edit remember 2")
def _save_suggestion(call: Call, number: int | None = None) -> Any:
    """Save an agent's suggestion to the project's knowledge. Nothing is saved automatically.

    Args:
        number: the number of the suggestion to save; without it, all suggestions are listed
    """
    if number is not None:
        call.cast.edit.remember(number)
    rows = []
    for suggestion in call.cast.now.suggestions:
        title = shorten(suggestion.fields.get("description") or suggestion.fields.get("text", ""), 120)
        body = shorten(suggestion.fields.get("body", ""), 200)
        saved = "saved" if suggestion.is_kept else ""
        rows.append((str(suggestion.number), str(suggestion.step), suggestion.kind, title, body, saved))
    return Table(("", "step", "kind", "suggestion", "details", "saved"), rows, "no suggestions")


method_verb("back", Cast.back, status_after, example="%materia back 3")
method_verb(
    "fork", Cast.fork, lambda call, cast: call.bench.casts.make_current(cast), only="step", example="%materia fork 3"
)


@verb("list casts", verdict={"choices": VERDICTS}, example="%materia list casts --tag rain --verdict good")
def _list_casts(
    call: Call,
    *,
    name: str | None = None,
    tag: str = "",
    verdict: str | None = None,
    loadout: str | None = None,
    status: Any = None,
) -> Any:
    """List the casts of this project, newest first. In a notebook, without options, show a panel to search, open and compare casts.

    Args:
        name: list only casts with this name
        tag: list only casts with this tag, or with all of several comma-separated tags
        verdict: list only casts with this verdict
        loadout: list only casts of this loadout
        status: list only casts with this status, such as failed
    """
    tags = list(filter(None, str(tag).split(",")))
    if not tags and not any((name, verdict, loadout, status)):
        return call.bench.casts
    return casts_view(call.bench.casts(tag=tags, name=name, verdict=verdict, loadout=loadout, status=status))


@verb("list failures", example="%materia list failures socket,item --tag rain")
def _list_failures(call: Call, by: str = "", *, tag: str = "", loadout: str | None = None) -> Any:
    """Group the failed casts of this project by their causes, most frequent first.

    Args:
        by: the fields to group by, separated by commas: kind, loadout, socket, edge, item and reason; defaults to the
            first four
        tag: include only casts with this tag, or with all of several comma-separated tags
        loadout: include only casts of this loadout
    """
    failed_casts = call.bench.casts(tag=list(filter(None, str(tag).split(","))), loadout=loadout, status="failed")
    return call.bench.casts.why(*filter(None, str(by).split(",")), casts=failed_casts)


@verb("inbox", cell="may", example='%materia inbox\n%materia inbox 2 {"satisfied": true}')
def _show_inbox(call: Call, number: int | None = None, answer: Rest = None, *, loadout: str | None = None) -> Any:
    """List the casts that are waiting for a person. With a number, open that cast; with an answer, also reply to it.

    Args:
        number: the number of the cast in the list
        answer: the answer; may be given in the cell instead
        loadout: list only casts of this loadout
    """
    inbox = call.bench.inbox(loadout)
    if number is None:
        return inbox
    if not 0 < number <= len(inbox):
        raise MateriaError(f"The inbox has no cast with the number {number}.", hint="use `inbox` to list the numbers")
    cast = call.bench.resume(inbox[number - 1].entry.id)
    if (answer := call.body_or(answer)) is not None:
        cast.reply(answer)
    return status_view(cast.now)


@verb(
    "label",
    verdict={"choices": VERDICTS},
    example='%materia label first-good-one --tag rain,short\n%materia label --step 3 --verdict bad --note "It should have asked."',
)
def _edit_labels(
    call: Call,
    name: str | None = None,
    *,
    tag: str = "",
    untag: str = "",
    note: str | None = None,
    verdict: str | None = None,
    step: int | None = None,
    cast: str | None = None,
    by: str = "person",
    undo: bool = False,
) -> Any:
    """Add a name, tags, a verdict or a note to the cast or to a step. You can use the name of a cast instead of its id.

    Args:
        name: the new name of the cast or step
        tag: the tags to add, separated by commas
        untag: the tags to remove, separated by commas
        note: a note, in quotes
        verdict: your verdict
        step: label this step instead of the cast
        cast: label this cast instead of the current cast
        by: the author of the label
        undo: undo the last change to the names, tags, notes and verdicts
    """
    if undo:
        call.cast.labels.undo()
        return Text(f"The last change was undone. The cast now has {call.cast.labels.of().words or 'no labels'}.")
    add = call.cast.labels.add if cast is None else partial(call.bench.casts.label, cast)
    label = add(step, name=name, tag=tag, untag=untag, note=note, verdict=verdict, by=by)
    subject = "The cast" if step is None else f"Step {step}"
    return Text(f"{subject}: {label.words}." if label.words else f"{subject} has no labels.")


method_verb("open", Casts.open, value_of, reference=_CAST_ARGUMENT, example="%materia open -1")
method_verb(
    "notify",
    Casts.notify,
    lambda call, _: Text(
        "Notifications are off." if call.arguments.get("receiver") is None else "Notifications are on."
    ),
    example="%materia notify --after 30 notify-send Materia",
)
method_verb("resume", Casts.resume, value_of, reference=_CAST_ARGUMENT)
method_verb(
    "delete",
    Casts.delete,
    lambda _, id_: Text(f"Deleted {id_}."),
    reference={**_CAST_ARGUMENT, "kind": "word"},
    example="%materia delete first-good-one --yes",
)


@verb("export page")
def _export_page(call: Call, path: Rest = None) -> Any:
    """Save the cast as one HTML page.

    Args:
        path: the file to write; defaults to cast.html in the run directory
    """
    return _write_export(call, path, "cast.html", call.cast.export.page)


@verb("export recording", example="%materia export recording recordings/demo.json")
def _export_recording(call: Call, path: Rest = None) -> Any:
    """Save the answers of the cast to a file, from which other casts can be answered (agent * recorded:FILE).

    Args:
        path: the file to write; defaults to recording.json in the run directory
    """
    return _write_export(call, path, "recording.json", call.cast.export.recording)


def _write_export(call: Call, path: Any, name: str, write: Callable[[Path], object]) -> Text:
    """Write a file about the current cast to ``path``; the default is the file ``name`` in the run directory."""
    project = call.bench.project
    target = project / str(path) if path else call.cast.run_dir / name
    write(target)
    return Text(f"Wrote {target.relative_to(project) if target.is_relative_to(project) else target}.")


@verb("help", verb={"completes": "verb"})
def _show_help(call: Call, verb: Rest = None) -> Any:  # noqa: ARG001 - every verb receives the call
    """List the verbs, or explain a verb.

    Args:
        verb: the verb to explain
    """
    return Text(help_text(verb))


def _board_view(call: Call, _: object = None) -> Table:
    return quests_view(call.bench.quests.quests)


@verb("quest")
def _show_quests(call: Call) -> Any:
    """Show the quest board of this project, whose requests are cast one after another."""
    return _board_view(call)


method_verb("quest add", QuestBoard.add, _board_view, cell="may", example="%materia quest add ship the widget")


@verb("quest run", example="%materia quest run 1")
def _run_quests(call: Call, count: int | None = None) -> Any:
    """Cast the quests one after another, with the agents of the workbench.

    Args:
        count: the maximum number of quests to run; defaults to all quests
    """
    board = call.bench.quests
    message = STOP_MESSAGES[board.run(count)]
    return Text("\n\n".join(filter(None, [repr(_board_view(call)), message])))


method_verb("quest move", QuestBoard.move, _board_view, to={"kind": "word"}, example="%materia quest move 2 top")
method_verb("quest remove", QuestBoard.remove, _board_view, quest={"kind": "word"}, example="%materia quest remove 2")
method_verb(
    "quest requeue", QuestBoard.requeue, _board_view, quest={"kind": "word"}, example="%materia quest requeue 2"
)
