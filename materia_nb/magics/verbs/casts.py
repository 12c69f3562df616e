"""Verbs about casts on disk, several casts, what agents suggest to remember, and help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from materia_nb.cast.listing import casts_view
from materia_nb.cast.views.tables import quests_view
from materia_nb.display.blocks import Table, Text
from materia_nb.display.escape import shorten
from materia_nb.engine.labels import VERDICTS
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.queries import Suggestion
from materia_nb.magics.registry import Argument, Call, help_text, verb

_CAST: Final = Argument(
    "cast",
    "its name, its id or the beginning of that, -1 for the latest, or a directory",
    "rest",
    completes="cast",
)


@verb(
    "casts",
    Argument("--name", "only those that were named so", "option"),
    Argument("--tag", "only those with this tag, or with all of several, with commas between them", "option"),
    Argument("--verdict", "only those that were judged so", "option", choices=VERDICTS),
    Argument("--loadout", "only those of a loadout of this name", "option", completes="loadout"),
    Argument("--status", "only those that stand so, such as failed", "option"),
    example="%materia casts --tag rain --verdict good",
)
def casts(call: Call) -> Any:
    """List the casts of this project, newest first."""
    wanted = {name: call.get(name) for name in ("name", "verdict", "loadout", "status")}
    tags = [tag for tag in str(call.get("tag") or "").split(",") if tag]
    return casts_view(call.bench.casts(tag=tags, **wanted))


@verb(
    "label",
    Argument("name", "what the cast, or the step, is called from now on"),
    Argument("--tag", "tags to add, with commas between them", "option"),
    Argument("--untag", "tags to take away", "option"),
    Argument("--note", "any text, in quotes", "option"),
    Argument("--verdict", "what you think of it", "option", choices=VERDICTS),
    Argument("--step", "say it of this step rather than of the cast", "option", whole=True),
    Argument("--cast", "of this cast rather than of the current one", "option", completes="cast"),
    Argument("--by", "who says it", "option"),
    example='%materia label first-good-one --tag rain,short\n%materia label --step 3 --verdict bad --note "It should have asked."',
)
def label(call: Call) -> Any:
    """Name, tag, judge or annotate the cast or one of its steps; a cast's name can stand wherever its id can."""
    given: dict[str, Any] = {name: call.get(name) for name in ("name", "note", "verdict")}
    given |= {name: value for name in ("tag", "untag", "by") if (value := call.get(name)) is not None}
    bench, step, cast = call.bench, call.get("step"), call.get("cast")
    said = bench.current.labels.add(step, **given) if cast is None else bench.label(cast, step, **given)
    about = "The cast" if step is None else f"Step {step}"
    return Text(f"{about}: {said.words or 'nothing is said of it any more'}.")


@verb("unlabel")
def unlabel(call: Call) -> Any:
    """Take the last change of names, tags, notes and verdicts back."""
    call.cast.labels.undo()
    said = call.cast.labels.of().words
    return Text(f"Taken back. The cast: {said or 'nothing is said of it'}.")


@verb(
    "delete",
    Argument("cast", "its name, its id or the beginning of that", required=True, completes="cast"),
    Argument("--yes", "it is meant; without it nothing happens but that you are told what would go", "flag"),
    example="%materia delete first-good-one --yes",
)
def delete(call: Call) -> Any:
    """Delete a cast and its run directory. This cannot be undone."""
    return Text(f"Deleted {call.bench.delete(str(call.get('cast')), yes=bool(call.get('yes')))}.")


@verb("open", _CAST, example="%materia open -1")
def open_(call: Call) -> Any:
    """Open a cast to look at it, also one recorded by the reference engine."""
    return call.bench.open(call.get("cast") or "-1")


@verb("resume", _CAST)
def resume(call: Call) -> Any:
    """Open a cast to go on with it, after a restart or a crash."""
    return call.bench.resume(call.get("cast") or "-1")


@verb("verify", _CAST, example="%materia verify -1")
def verify(call: Call) -> Any:
    """Say up to which step a recorded cast is as it was written; works where it is too damaged to be opened."""
    return Text(repr(call.bench.verify(call.get("cast") or call.cast.run_dir)))


@verb(
    "page",
    Argument("file", "where to; cast.html in the run directory if left out", "rest"),
)
def page(call: Call) -> Any:
    """Write the cast as one HTML page."""
    return _wrote(call, "cast.html", call.cast.export.page)


@verb(
    "record",
    Argument("file", "where to; recording.json in the run directory if left out", "rest"),
    example="%materia record recordings/demo.json",
)
def record(call: Call) -> Any:
    """Write what was answered in the cast as a file that other casts can be answered from (agent * recorded:FILE)."""
    return _wrote(call, "recording.json", call.cast.export.recording)


def _wrote(call: Call, name: str, write: Callable[[Path], object]) -> Text:
    """Write a file of the current cast where the call says, else under its name in the run directory."""
    project, target = call.bench.project, call.get("file")
    path = project / str(target) if target else call.cast.run_dir / name
    write(path)
    return Text(f"Wrote {path.relative_to(project) if path.is_relative_to(project) else path}.")


@verb(
    "otel",
    Argument(
        "--content", "tell prompts, answers, and what tools were given and gave too; keys never are", "flag"
    ),
    Argument("endpoint", "where to; OTEL_EXPORTER_OTLP_ENDPOINT, else localhost, if left out"),
    example="%materia otel http://localhost:4318/v1/traces",
)
def otel(call: Call) -> Any:
    """Send the cast as OpenTelemetry spans to a collector, to be looked at in a tracing tool."""
    count = call.cast.export.otel(endpoint=call.get("endpoint"), content=bool(call.get("content")))
    return Text(f"Sent {counted(count, 'span')}.")


@verb("help", Argument("verb", "a verb", completes="verb"))
def help_(call: Call) -> Any:
    """List the verbs, or explain one."""
    return Text(help_text(call.get("verb")))


def _view(suggestions: list[Suggestion]) -> Table:
    rows = []
    for one in suggestions:
        title = one.fields.get("description") or one.fields.get("text", "")
        body = one.fields.get("body", "")
        kept = "kept" if one.kept else ""
        rows.append((str(one.number), str(one.step), one.kind, shorten(title, 120), shorten(body, 200), kept))
    return Table(("", "step", "kind", "what", "in full", "kept"), rows, "no suggestions")


@verb("suggestions")
def suggestions(call: Call) -> Any:
    """List what the agents of the cast suggest to remember; nothing of it is kept by itself."""
    return _view(call.cast.now.suggestions)


@verb(
    "remember",
    Argument("number", "the number of a suggestion", required=True, whole=True),
    example="%materia remember 2",
)
def remember(call: Call) -> Any:
    """Keep a suggestion in what is known about the project."""
    current = call.cast
    current.edit.remember(call.get("number"))
    return _view(current.now.suggestions)


@verb(
    "link",
    Argument(
        "--from", "an earlier cast, whose context the state gets as previous", "option", completes="cast"
    ),
    Argument(
        "parts",
        "loadouts and materia in their order; loadout:NAME or materia:NAME where a name means both",
        "words",
        required=True,
        completes="part",
    ),
    Argument("request", "what is asked for; or in the cell", "rest"),
    cell="may",
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def link(call: Call) -> Any:
    """Start a cast of loadouts and materia one behind the other; buttons, step or run go on with it."""
    request = call.request()
    if not request:
        raise MateriaError(
            "The request is missing.", hint="write it behind --: link A B -- request", kind="usage"
        )
    return call.bench.link(*map(str, call.get("parts")), request=request, from_cast=call.get("from"))


ACTIONS: Final = ("add", "list", "run", "move", "remove", "requeue")


@verb(
    "quest",
    Argument(
        "--loadout",
        "for add: what it is cast with; else the one that is chosen then",
        "option",
        completes="loadout",
    ),
    Argument("action", f"{', '.join(ACTIONS)}; a panel with buttons if left out", choices=ACTIONS),
    Argument(
        "words",
        "add: the request; run: how many, all if left out; move: QUEST and top, up, down, bottom or a place; "
        "remove, requeue: QUEST",
        "rest",
    ),
    cell="may",
    example="%materia quest add ship the widget\n%materia quest move 2 top\n%materia quest run",
)
def quest(call: Call) -> Any:
    """Work with the board of requests of this project, which are cast one after another."""
    board, action = call.bench.quests, call.get("action")
    words = str(call.get("words") or "")
    if call.body is not None and action != "add":
        raise MateriaError(
            "Only quest add takes the body of a cell.", hint="write it on a line", kind="usage"
        )
    if action is None:
        from materia_nb.widgets.quest_panel import show_quests

        return show_quests(board)
    if action == "add":
        board.add(f"{words}\n{call.body or ''}".strip(), loadout=call.get("loadout"))
    elif action == "run":
        from materia_nb.cast.quests import WORDS

        why = board.run(_count(words))
        return Text("\n\n".join(filter(None, [repr(quests_view(board.quests)), WORDS[why]])))
    elif action == "move":
        which, _, place = words.partition(" ")
        board.move(_needed(which), place.strip() or "")
    elif action == "remove":
        board.remove(_needed(words))
    elif action == "requeue":
        board.requeue(_needed(words))
    return quests_view(board.quests)


def _needed(which: str) -> str:
    if not which:
        raise MateriaError("Which quest?", hint="give its number, as quest list shows it", kind="usage")
    return which


def _count(words: str) -> int | None:
    if not words:
        return None
    if not words.isdecimal() or int(words) < 1:
        raise MateriaError(f"How many quests? {words!r} is no number.", hint="quest run 1", kind="usage")
    return int(words)
