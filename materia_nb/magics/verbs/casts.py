"""Verbs that change a cast between its steps, those about casts on disk and the quest board, and help."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.edits import Edits
from materia_nb.cast.listing import casts_view
from materia_nb.cast.project_casts import Casts
from materia_nb.cast.views.status import StatusView
from materia_nb.cast.views.step_views import PromptView
from materia_nb.cast.views.tables import budget_view, items_view, quests_view
from materia_nb.display.blocks import JsonView, Table, Text
from materia_nb.display.escape import shorten
from materia_nb.engine.items import item_label
from materia_nb.engine.labels import VERDICTS
from materia_nb.engine.told import HEADINGS
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.queries import Suggestion
from materia_nb.jsonvalue import JSON
from materia_nb.late import late
from materia_nb.loadout import read_text
from materia_nb.magics.registry import (
    Call,
    Rest,
    Several,
    from_method,
    help_text,
    one_of_words,
    status_after,
    step_after,
    value_of,
    verb,
)

_CAST: Final = {
    "name": "cast",
    "help": "its name, its id or the start of it, -1 for the latest, or a directory",
}


@verb(
    "edit items",
    cell="may",
    example='%%materia edit items\n[{"title": "Outline", "context": "Three headings."}]',
)
def _items(call: Call, *, again: str | None = None, abandon: bool = False) -> Any:
    """Show the work items and their status; with a cell, replace them with its list, in JSON or YAML. What is done comes first in the list, then what is being worked on, then the open ones in the order given.

    Args:
        again: items to work on again: numbers, keys or titles with commas between them
        abandon: give up the item being worked on and continue with the next
    """
    remarks: list[str] = []
    if call.body is not None:
        given = _value(call.body)
        if not isinstance(given, list):
            raise MateriaError(
                "The cell must hold a list.", hint="each item has title and context", kind="items"
            )
        remarks += call.cast.edit.items(given, abandon=abandon)
    elif abandon:
        remarks += call.cast.edit.abandon()
    if again:
        titles = [item_label(one, "") for one in call.cast.now.work_items]
        named = [str(again)] if again in titles else [one.strip() for one in str(again).split(",")]
        remarks += call.cast.edit.again(*named)
    return items_view(call.cast.now, remarks)


@verb("edit set", cell="may", example="%materia edit set plan.approved true")
def _set(call: Call, path: str, value: Rest = None) -> Any:
    """Change one value in the state.

    Args:
        path: a dotted path; missing parts are created
        value: JSON, or plain text; none in a cell
    """
    given = call.body_or(value)
    if given is None:
        raise MateriaError("The value is missing.", hint="edit set plan.approved true", kind="usage")
    current = call.cast
    current.edit.set(str(path), _value(given) if isinstance(given, str) else given)
    return JsonView("state", dict(current.state))


def _value(text: str) -> JSON:
    """JSON, else YAML; a bare word is text."""
    try:
        return json.loads(text)
    except ValueError:
        return read_text(text, "yaml", where="the value")


@verb(
    "edit reword",
    cell="must",
    part={"help": one_of_words(HEADINGS)},
    example="%%materia edit reword task\nBuild it in one file.",
)
def _reword(call: Call, part: Rest) -> Any:
    """Change one part of the prompt that is asked next, for this turn only; an empty cell leaves it out."""
    current = call.cast
    prompt = current.edit.reword(str(part), (call.body or "").strip())
    return PromptView(current.steps[-1], prompt)


from_method(
    "edit recommit",
    Edits.recommit,
    step_after,
    cell="may",
    example='%materia edit recommit {"satisfied": true}',
)
from_method(
    "edit redefine", Edits.redefine, status_after, only="materia", example="%materia edit redefine Count"
)
from_method("edit undo", Edits.undo, status_after)


@verb("edit budget", example="%materia edit budget 200000")
def _budget(call: Call, most: Several = None) -> Any:
    """Show the usage so far, or set the budget of this cast: tokens, cost, working time, turns.

    Args:
        most: the limit: 20000 tokens, 2.50 USD, 60 seconds, 10 turns; none for no limit
    """
    current = call.cast
    if most is not None:
        current.edit.budget_in_words(" ".join(map(str, most)))
    return budget_view(current.now)


@verb("edit remember", example="%materia edit remember 2")
def _remember(call: Call, number: int | None = None) -> Any:
    """Save an agent's suggestion to what is known about the project; nothing is saved automatically.

    Args:
        number: the number of a suggestion; all are listed if left out
    """
    current = call.cast
    if number is not None:
        current.edit.remember(number)
    return _suggested(current.now.suggestions)


def _suggested(suggestions: Sequence[Suggestion]) -> Table:
    rows = []
    for one in suggestions:
        title = one.fields.get("description") or one.fields.get("text", "")
        body = one.fields.get("body", "")
        kept = "kept" if one.kept else ""
        rows.append((str(one.number), str(one.step), one.kind, shorten(title, 120), shorten(body, 200), kept))
    return Table(("", "step", "kind", "what", "in full", "kept"), rows, "no suggestions")


from_method(
    "back", Cast.back, status_after, example="%materia back 3\n%materia back --change workItems.0.title"
)
from_method(
    "fork", Cast.fork, lambda call, cast: call.bench.casts.take(cast), only="step", example="%materia fork 3"
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
    """List the casts of this project, newest first; in a notebook, without an option, as a panel to search, open and compare them.

    Args:
        name: only those with this name
        tag: only those with this tag, or with all of several, separated by commas
        verdict: only those with this verdict
        loadout: only those of the loadout with this name
        status: only those with this status, such as failed
    """
    tags = [one for one in str(tag).split(",") if one]
    if not tags and not any((name, verdict, loadout, status)):
        return call.bench.casts
    return casts_view(call.bench.casts(tag=tags, name=name, verdict=verdict, loadout=loadout, status=status))


@verb("inbox", cell="may", example='%materia inbox\n%materia inbox 2 {"satisfied": true}')
def _inbox(call: Call, number: int | None = None, answer: Rest = None, *, loadout: str | None = None) -> Any:
    """List the casts of this project that wait for a person, and whether each could continue with its current loadout; with a number, open one; with an answer, reply to it.

    Args:
        number: the cast to open, by its number in the list
        answer: the answer; or in the cell
        loadout: only the casts of a loadout of this name
    """
    listed = call.bench.inbox(loadout)
    if number is None:
        return listed
    if not 0 < number <= len(listed):
        raise MateriaError(
            f"There is no number {number} in the inbox.", hint=listed.verdict or "inbox lists them"
        )
    cast = call.bench.resume(listed[number - 1].entry.id)
    if (given := call.body_or(answer)) is not None:
        cast.reply(given)
    return StatusView(cast.now)


@verb(
    "label",
    verdict={"choices": VERDICTS},
    example='%materia label first-good-one --tag rain,short\n%materia label --step 3 --verdict bad --note "It should have asked."',
)
def _label(
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
    """Name, tag, judge or annotate the cast or one of its steps; a cast's name works wherever its id does.

    Args:
        name: the new name of the cast or step
        tag: tags to add, separated by commas
        untag: tags to remove
        note: any text, in quotes
        verdict: what you think of it
        step: label this step, not the cast
        cast: label this cast, not the current one
        by: who says it
        undo: undo the last change of names, tags, notes and verdicts
    """
    if undo:
        call.cast.labels.undo()
        return Text(f"Taken back. The cast: {call.cast.labels.of().words or 'nothing is said of it'}.")
    add = call.cast.labels.add if cast is None else partial(call.bench.casts.label, cast)
    label = add(step, name=name, tag=tag, untag=untag, note=note, verdict=verdict, by=by)
    about = "The cast" if step is None else f"Step {step}"
    return Text(f"{about}: {label.words or 'nothing is said of it any more'}.")


from_method("open", Casts.open, value_of, reference=_CAST, example="%materia open -1")
from_method("resume", Casts.resume, value_of, reference=_CAST)
from_method(
    "delete",
    Casts.delete,
    lambda _, id_: Text(f"Deleted {id_}."),
    reference={**_CAST, "kind": "word"},
    example="%materia delete first-good-one --yes",
)


@verb("export page")
def _page(call: Call, file: Rest = None) -> Any:
    """Save the cast as one HTML page.

    Args:
        file: where to; cast.html in the run directory if left out
    """
    return _wrote(call, file, "cast.html", call.cast.export.page)


@verb("export recording", example="%materia export recording recordings/demo.json")
def _record(call: Call, file: Rest = None) -> Any:
    """Save the answers of the cast to a file, to answer other casts from (agent * recorded:FILE).

    Args:
        file: where to; recording.json in the run directory if left out
    """
    return _wrote(call, file, "recording.json", call.cast.export.recording)


def _wrote(call: Call, target: Any, name: str, write: Callable[[Path], object]) -> Text:
    """Write a file of the current cast to a target, else under its name in the run directory."""
    project = call.bench.project
    path = project / str(target) if target else call.cast.run_dir / name
    write(path)
    return Text(f"Wrote {path.relative_to(project) if path.is_relative_to(project) else path}.")


@verb("export otel", example="%materia export otel http://localhost:4318/v1/traces")
def _otel(call: Call, endpoint: str | None = None, *, content: bool = False) -> Any:
    """Send the cast as OpenTelemetry spans to a collector, to view it in a tracing tool.

    Args:
        endpoint: where to; OTEL_EXPORTER_OTLP_ENDPOINT, else localhost, if left out
        content: include prompts, answers, and tool arguments and results; never keys
    """
    return Text(f"Sent {counted(call.cast.export.otel(endpoint=endpoint, content=content), 'span')}.")


@verb("help", verb={"completes": "verb"})
def _help(call: Call, verb: Rest = None) -> Any:  # noqa: ARG001 - verbs are given the call
    """List the verbs, or explain one.

    Args:
        verb: a verb
    """
    return Text(help_text(verb))


@verb("quest")
def _quest(call: Call) -> Any:
    """Show the board of requests of this project, which are cast one after another, with buttons."""
    return late("panel of quests").show_quests(call.bench.quests)


def _board(call: Call) -> Table:
    return quests_view(call.bench.quests.quests)


@verb("quest list")
def _list_quests(call: Call) -> Any:
    """List the quests, in their order."""
    return _board(call)


@verb("quest add", cell="may", example="%materia quest add ship the widget")
def _add_quest(call: Call, request: Rest = "", *, loadout: str | None = None) -> Any:
    """Put a request at the end of the board.

    Args:
        request: what is asked for
        loadout: its loadout; if left out, the one chosen when it is run
    """
    call.bench.quests.add(call.request(request), loadout=loadout)
    return _board(call)


@verb("quest run", example="%materia quest run 1")
def _run_quests(call: Call, count: int | None = None) -> Any:
    """Cast the quests one after another, with the agents of the workbench.

    Args:
        count: the most quests to run; all if left out
    """
    board = call.bench.quests
    words = board.words_of(board.run(count))
    return Text("\n\n".join(filter(None, [repr(_board(call)), words])))


@verb("quest move", example="%materia quest move 2 top")
def _move_quest(call: Call, quest: str, to: str) -> Any:
    """Move a quest on the board.

    Args:
        to: top, up, down, bottom, or a place counted from 1
    """
    call.bench.quests.move(quest, to)
    return _board(call)


@verb("quest remove", example="%materia quest remove 2")
def _remove_quest(call: Call, quest: str) -> Any:
    """Remove a quest from the board; its cast stays. A running quest is refused."""
    call.bench.quests.remove(quest)
    return _board(call)


@verb("quest requeue", example="%materia quest requeue 2")
def _requeue_quest(call: Call, quest: str) -> Any:
    """Make a quest pending again, in its place; it will be cast again, and the earlier cast stays."""
    call.bench.quests.requeue(quest)
    return _board(call)
