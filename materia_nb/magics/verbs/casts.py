"""Verbs that change a cast between its steps, those about casts on disk and the quest board, and help."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
    Argument,
    Call,
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
    Argument("--again", "items to work on again: numbers, keys or titles with commas between them", "option"),
    Argument("--abandon", "give up the item being worked on and continue with the next", "flag"),
    cell="may",
    example='%%materia edit items\n[{"title": "Outline", "context": "Three headings."}]',
)
def _items(call: Call) -> Any:
    """Show the work items and their status; with a cell, replace them with its list, in JSON or YAML.

    What is done comes first in the list, then what is being worked on, then the open ones in the order given.
    """
    said: list[str] = []
    abandon = bool(call.get("abandon"))
    if call.body is not None:
        given = _value(call.body)
        if not isinstance(given, list):
            raise MateriaError(
                "The cell must hold a list.", hint="each item has title and context", kind="items"
            )
        said += call.cast.edit.items(given, abandon=abandon)
    elif abandon:
        said += call.cast.edit.abandon()
    if again := call.get("again"):
        titles = [item_label(one, "") for one in call.cast.now.work_items]
        named = [str(again)] if again in titles else [one.strip() for one in str(again).split(",")]
        said += call.cast.edit.again(*named)
    return items_view(call.cast.now, said)


@verb(
    "edit set",
    Argument("path", "a dotted path; missing parts are created", required=True),
    Argument("value", "JSON, or plain text; none in a cell", "rest"),
    cell="may",
    example="%materia edit set plan.approved true",
)
def _set(call: Call) -> Any:
    """Change one value in the state."""
    given = call.body_or("value")
    if given is None:
        raise MateriaError("The value is missing.", hint="edit set plan.approved true", kind="usage")
    current = call.cast
    current.edit.set(str(call.get("path")), _value(given) if isinstance(given, str) else given)
    return JsonView("state", dict(current.state))


def _value(text: str | None) -> JSON:
    """JSON, else YAML; a bare word is text."""
    try:
        return json.loads(text or "")
    except ValueError:
        return read_text(text or "", "yaml", where="the value")


@verb(
    "edit reword",
    Argument(
        "part",
        one_of_words(HEADINGS),
        "rest",
        required=True,
    ),
    cell="must",
    example="%%materia edit reword task\nBuild it in one file.",
)
def _reword(call: Call) -> Any:
    """Change one part of the prompt that is asked next, for this turn only; an empty cell leaves it out."""
    current = call.cast
    prompt = current.edit.reword(str(call.get("part")), (call.body or "").strip())
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


@verb(
    "edit budget",
    Argument(
        "most",
        "the limit: 20000 tokens, 2.50 USD, 60 seconds, 10 turns; none for no limit",
        "words",
    ),
    example="%materia edit budget 200000",
)
def _budget(call: Call) -> Any:
    """Show the usage so far, or set the budget of this cast: tokens, cost, working time, turns."""
    most, current = call.get("most"), call.cast
    if most is not None:
        current.edit.budget_in_words(" ".join(map(str, most)))
    return budget_view(current.now)


@verb(
    "edit remember",
    Argument("number", "the number of a suggestion; all are listed if left out", whole=True),
    example="%materia edit remember 2",
)
def _remember(call: Call) -> Any:
    """Save an agent's suggestion to what is known about the project; nothing is saved automatically."""
    current, number = call.cast, call.get("number")
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


@verb(
    "list casts",
    Argument("--name", "only those with this name", "option"),
    Argument("--tag", "only those with this tag, or with all of several, separated by commas", "option"),
    Argument("--verdict", "only those with this verdict", "option", choices=VERDICTS),
    Argument("--loadout", "only those of the loadout with this name", "option", completes="loadout"),
    Argument("--status", "only those with this status, such as failed", "option"),
    example="%materia list casts --tag rain --verdict good",
)
def _list_casts(call: Call) -> Any:
    """List the casts of this project, newest first; in a notebook, without an option, as a panel to search, open and compare them."""
    wanted = {name: call.get(name) for name in ("name", "verdict", "loadout", "status")}
    tags = [tag for tag in str(call.get("tag") or "").split(",") if tag]
    if not tags and not any(wanted.values()):
        return call.bench.casts
    return casts_view(call.bench.casts(tag=tags, **wanted))


@verb(
    "inbox",
    Argument("--loadout", "only the casts of a loadout of this name", "option", completes="loadout"),
    Argument("number", "the cast to open, by its number in the list", whole=True),
    Argument("answer", "the answer; or in the cell", "rest"),
    cell="may",
    example='%materia inbox\n%materia inbox 2 {"satisfied": true}',
)
def _inbox(call: Call) -> Any:
    """List the casts of this project that wait for a person, and whether each could continue with its current loadout; with a number, open one; with an answer, reply to it."""
    listed, number = call.bench.inbox(call.get("loadout")), call.get("number")
    if number is None:
        return listed
    if not 0 < number <= len(listed):
        raise MateriaError(
            f"There is no number {number} in the inbox.", hint=listed.verdict or "inbox lists them"
        )
    cast = call.bench.resume(listed[number - 1].entry.id)
    if (answer := call.body_or("answer")) is not None:
        cast.reply(answer)
    return StatusView(cast.now)


@verb(
    "label",
    Argument("name", "the new name of the cast or step"),
    Argument("--tag", "tags to add, separated by commas", "option"),
    Argument("--untag", "tags to remove", "option"),
    Argument("--note", "any text, in quotes", "option"),
    Argument("--verdict", "what you think of it", "option", choices=VERDICTS),
    Argument("--step", "label this step, not the cast", "option", whole=True),
    Argument("--cast", "label this cast, not the current one", "option", completes="cast"),
    Argument("--by", "who says it", "option"),
    Argument("--undo", "undo the last change of names, tags, notes and verdicts", "flag"),
    example='%materia label first-good-one --tag rain,short\n%materia label --step 3 --verdict bad --note "It should have asked."',
)
def _label(call: Call) -> Any:
    """Name, tag, judge or annotate the cast or one of its steps; a cast's name works wherever its id does."""
    given: dict[str, Any] = {name: call.get(name) for name in ("name", "note", "verdict")}
    given |= {name: value for name in ("tag", "untag", "by") if (value := call.get(name)) is not None}
    bench, step, cast = call.bench, call.get("step"), call.get("cast")
    if call.get("undo"):
        call.cast.labels.undo()
        return Text(f"Taken back. The cast: {call.cast.labels.of().words or 'nothing is said of it'}.")
    said = bench.current.labels.add(step, **given) if cast is None else bench.casts.label(cast, step, **given)
    about = "The cast" if step is None else f"Step {step}"
    return Text(f"{about}: {said.words or 'nothing is said of it any more'}.")


from_method("open", Casts.open, value_of, reference=_CAST, example="%materia open -1")
from_method("resume", Casts.resume, value_of, reference=_CAST)
from_method(
    "delete",
    Casts.delete,
    lambda _, id_: Text(f"Deleted {id_}."),
    reference={**_CAST, "kind": "word"},
    example="%materia delete first-good-one --yes",
)


@verb(
    "export page",
    Argument("file", "where to; cast.html in the run directory if left out", "rest"),
)
def _page(call: Call) -> Any:
    """Save the cast as one HTML page."""
    return _wrote(call, "cast.html", call.cast.export.page)


@verb(
    "export recording",
    Argument("file", "where to; recording.json in the run directory if left out", "rest"),
    example="%materia export recording recordings/demo.json",
)
def _record(call: Call) -> Any:
    """Save the answers of the cast to a file, to answer other casts from (agent * recorded:FILE)."""
    return _wrote(call, "recording.json", call.cast.export.recording)


def _wrote(call: Call, name: str, write: Callable[[Path], object]) -> Text:
    """Write a file of the current cast where the call says, else under its name in the run directory."""
    project, target = call.bench.project, call.get("file")
    path = project / str(target) if target else call.cast.run_dir / name
    write(path)
    return Text(f"Wrote {path.relative_to(project) if path.is_relative_to(project) else path}.")


@verb(
    "export otel",
    Argument("--content", "include prompts, answers, and tool arguments and results; never keys", "flag"),
    Argument("endpoint", "where to; OTEL_EXPORTER_OTLP_ENDPOINT, else localhost, if left out"),
    example="%materia export otel http://localhost:4318/v1/traces",
)
def _otel(call: Call) -> Any:
    """Send the cast as OpenTelemetry spans to a collector, to view it in a tracing tool."""
    count = call.cast.export.otel(endpoint=call.get("endpoint"), content=bool(call.get("content")))
    return Text(f"Sent {counted(count, 'span')}.")


@verb("help", Argument("verb", "a verb", "rest", completes="verb"))
def _help(call: Call) -> Any:
    """List the verbs, or explain one."""
    return Text(help_text(call.get("verb")))


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


@verb(
    "quest add",
    Argument(
        "--loadout",
        "its loadout; if left out, the one chosen when it is run",
        "option",
        completes="loadout",
    ),
    Argument("request", "what is asked for", "rest"),
    cell="may",
    example="%materia quest add ship the widget",
)
def _add_quest(call: Call) -> Any:
    """Put a request at the end of the board."""
    call.bench.quests.add(call.request(), loadout=call.get("loadout"))
    return _board(call)


@verb(
    "quest run",
    Argument("count", "the most quests to run; all if left out", whole=True),
    example="%materia quest run 1",
)
def _run_quests(call: Call) -> Any:
    """Cast the quests one after another, with the agents of the workbench."""
    board = call.bench.quests
    words = board.words_of(board.run(call.get("count")))
    return Text("\n\n".join(filter(None, [repr(_board(call)), words])))


_QUEST: Final = Argument("quest", "its id or its number", required=True)


@verb(
    "quest move",
    _QUEST,
    Argument("to", "top, up, down, bottom, or a place counted from 1", required=True),
    example="%materia quest move 2 top",
)
def _move_quest(call: Call) -> Any:
    """Move a quest on the board."""
    call.bench.quests.move(call.get("quest"), call.get("to"))
    return _board(call)


@verb("quest remove", _QUEST, example="%materia quest remove 2")
def _remove_quest(call: Call) -> Any:
    """Remove a quest from the board; its cast stays. A running quest is refused."""
    call.bench.quests.remove(call.get("quest"))
    return _board(call)


@verb("quest requeue", _QUEST, example="%materia quest requeue 2")
def _requeue_quest(call: Call) -> Any:
    """Make a quest pending again, in its place; it will be cast again, and the earlier cast stays."""
    call.bench.quests.requeue(call.get("quest"))
    return _board(call)
