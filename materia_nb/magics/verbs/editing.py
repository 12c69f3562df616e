"""Verbs that change what is between two steps: items, set, recommit, reword, redefine, undo, back, fork."""

from __future__ import annotations

from typing import Any

from materia_nb.cast.views.status import StatusView
from materia_nb.cast.views.step_views import PromptView, StepView
from materia_nb.cast.views.tables import items_view
from materia_nb.display.blocks import JsonView
from materia_nb.engine.items import item_label
from materia_nb.engine.told import HEADINGS
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import read_text
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "items",
    Argument("--again", "items to work on again: numbers, keys or titles with commas between them", "option"),
    Argument("--abandon", "give up the item being worked on and go on with the next", "flag"),
    cell="may",
    example='%%materia items\n[{"title": "Outline", "context": "Three headings."}]',
)
def items(call: Call) -> Any:
    """Show the work items and how each stands; with a cell, replace them by the list in it, in JSON or YAML.

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
    "set",
    Argument("path", "a dotted path; what is not there yet is made", required=True),
    Argument("value", "JSON, or text as it is; none in a cell", "rest"),
    cell="may",
    example="%materia set plan.approved true",
)
def set_(call: Call) -> Any:
    """Change one value in the state."""
    given = call.body_or("value")
    if given is None:
        raise MateriaError("The value is missing.", hint="set plan.approved true", kind="usage")
    current = call.cast
    current.edit.set(str(call.get("path")), _value(given) if isinstance(given, str) else given)
    return JsonView("state", dict(current.state))


def _value(text: str | None) -> JSON:
    """JSON, else YAML; a bare word is text."""
    import json

    try:
        return json.loads(text or "")
    except ValueError:
        return read_text(text or "", "yaml", where="the value")


@verb(
    "recommit",
    Argument("output", "the corrected output, or a $variable", "rest"),
    cell="may",
    example='%materia recommit {"satisfied": true}',
)
def recommit(call: Call) -> Any:
    """Correct the output of the last step; it is checked and decided anew, the original is kept."""
    call.cast.edit.recommit(call.needed("output", "The corrected output is missing."))
    return StepView(call.cast.now)


@verb(
    "reword",
    Argument(
        "part",
        f"{', '.join(list(HEADINGS)[:-1])} or {list(HEADINGS)[-1]}",
        "rest",
        required=True,
    ),
    cell="must",
    example="%%materia reword task\nBuild it in one file.",
)
def reword(call: Call) -> Any:
    """Change one part of the prompt that is asked next, for this turn only; an empty cell leaves it out."""
    current = call.cast
    prompt = current.edit.reword(str(call.get("part")), (call.body or "").strip())
    return PromptView(current.steps[-1], prompt)


@verb(
    "redefine",
    Argument("materia", "its name", "rest", required=True, completes="materia"),
    example="%materia redefine Count",
)
def redefine(call: Call) -> Any:
    """Take a materia's changed command, script, timeout, model or tools into the running cast; recast then runs it."""
    call.bench.redefine(str(call.get("materia")))
    return StatusView(call.cast.now)


@verb("undo")
def undo(call: Call) -> Any:
    """Take the last edit back, as long as no step was made since."""
    call.cast.edit.undo()
    return StatusView(call.cast.now)


@verb(
    "back",
    Argument("step", "the step to go on from; 0 is the start", whole=True),
    Argument(
        "--change",
        "in place of a step: right before what stands at this path of the state was changed last",
        "option",
    ),
    example="%materia back 3\n%materia back --change workItems.0.title",
)
def back(call: Call) -> Any:
    """Go on from an earlier step; later steps are kept, files that utilities changed stay as they are."""
    call.cast.back(call.get("step"), change=call.get("change"))
    return StatusView(call.cast.now)


@verb(
    "fork",
    Argument("step", "as it was after this step, without later edits; as it is now if left out", whole=True),
    example="%materia fork 3",
)
def fork(call: Call) -> Any:
    """Start another cast from a step, in a directory of its own."""
    return call.bench.take(call.cast.fork(call.get("step")))
