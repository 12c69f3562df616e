"""What the inspector of a cast tells about what is selected, as blocks: items and steps; parts of the graph stand beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from materia_nb.cast.breakpoint import BreakKind, Breakpoint
from materia_nb.cast.listing import why_blocks
from materia_nb.cast.repairs import went_words
from materia_nb.cast.views.step_views import handoff_blocks
from materia_nb.display.blocks import Block, Code, Fold, Heading, Line, Table, Tree
from materia_nb.display.escape import part
from materia_nb.display.graph_parts import links
from materia_nb.display.sections import call_blocks, part_title
from materia_nb.engine import entering
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord, item_now
from materia_nb.errors import MateriaError, plain
from materia_nb.loadout.facts import WORK_ITEMS
from materia_nb.widgets.graph_inspector import DEFINITION, Inspector

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

KINDS: Final = ("socket", "edge", "exit", "loop", "item", "step")


class Element(NamedTuple):
    """What is selected."""

    kind: Literal["socket", "edge", "exit", "loop", "item", "step"]
    id: str


def check_element(cast: Snapshot, kind: object, key: object) -> Element:
    """Return an element that the cast has.

    Raises:
        MateriaError: it has no such element (``unknown_part``).
    """
    found = kind in KINDS and isinstance(key, str) and _is_there(cast, str(kind), key)
    if not found:
        raise MateriaError(
            f"The cast has no {part(str(kind), 20)} {part(str(key), 60)!r}.",
            hint="select one on the graph",
            kind="unknown_part",
        )
    return Element(kind, key)  # type: ignore[arg-type]


def _is_there(cast: Snapshot, kind: str, key: str) -> bool:
    if kind in ("item", "step"):
        most = len(cast.work_items) if kind == "item" else len(cast.steps)
        return key.isdecimal() and int(key) <= most
    return Inspector(cast.graph, cast).has(kind, key)


def stops_at(cast: Snapshot, element: Element) -> list[Breakpoint]:
    """Return the breakpoints that an element of the graph can have, the plainest first; none of an item or a loop."""
    if element.kind == "socket":
        asked = not cast.graph.sockets[element.id].is_utility
        of_agents: tuple[BreakKind, ...] = ("refused", "not_satisfied", "hollow_answer") if asked else ()
        kinds: tuple[BreakKind, ...] = ("before", "after", *of_agents, "same_again")
        return [Breakpoint(kind, element.id) for kind in kinds]
    if element.kind not in ("edge", "exit"):
        return []
    link = next(one for one in links(cast.graph) if one.key == element.id)
    anyway = Breakpoint("edge", link.source, link.to)
    return [anyway] if link.place is None else [Breakpoint("edge", link.source, link.place + 1), anyway]


# -- about ---------------------------------------------------------------------------------


def about(cast: Snapshot, element: Element) -> list[Block]:
    """Tell about an element as it is written, and as it stands."""
    kind, key = element
    if kind == "item":
        return _item(cast, int(key))
    inspector = Inspector(cast.graph, cast, cast.names)
    definition = inspector.definition(kind, key)
    written = [Fold(DEFINITION.lower(), [Tree(definition, opened=3)])] if definition is not None else []
    return [*inspector.about(kind, key), *written]


def _item(cast: Snapshot, number: int) -> list[Block]:
    items = cast.work_items
    value = items[number - 1] if 0 < number <= len(items) else None
    if not isinstance(value, dict):
        return [Tree(value)]
    steps = [step for step in cast.steps if _is_about(cast, step, number - 1)]
    names = cast.names
    return [
        Heading(str(value.get("title", ""))),
        Code(str(value.get("context", ""))),
        Heading("Its steps"),
        Table(("step", "socket", "went to"), [(str(s.number), names[s.socket], went_words(s)) for s in steps])
        if steps
        else Line("None yet.", "quiet"),
    ]


def _is_about(cast: Snapshot, step: StepRecord, place: int) -> bool:
    item = item_now(cast.rules, cast.session, step)
    walks = cast.rules.lists.get((WORK_ITEMS,), ())
    return item is not None and item[1] == place and any(item[0] == walk.iterator.cursor for walk in walks)


# -- a step ----------------------------------------------------------------------------------


def step_tab(name: str, cast: Snapshot, step: StepRecord | None) -> list[Block]:
    """Return what a tab says of a step: why it went on as it did, its tool calls, or what it handed on."""
    if name == "calls":
        calls = step.calls if step is not None else ()
        return call_blocks(calls) or [Line("No tool was used.", "quiet")]
    if step is None:
        lacking = "nothing has been decided" if name == "why" else "nothing has been handed on"
        return [Line(f"No step yet: {lacking}.", "quiet")]
    if name == "why":
        why = cast.why(step.number)
        return [Heading(why.title), *why_blocks(why)]
    return handoff_blocks(cast, step)


# -- prompts ---------------------------------------------------------------------------------


def prompt_part(words: str, prompt: Prompt, key: str, *, edit: bool) -> dict[str, Any]:
    """The content of a tab with a prompt: texts as they are where they can be edited, else made harmless."""
    names = [one.name for one in prompt.parts]
    first = names.index("task") if "task" in names else 0
    layers = [
        {
            "name": one.name,
            "open": place >= first and bool(one.text),
            "heading": plain(part_title(one)),
            "text": one.text if edit else plain(one.text),
        }
        for place, one in enumerate(prompt.parts)
        if one.text or not edit
    ]
    return {"is": "prompt", "words": words, "layers": layers, "key": key, "edit": edit}


def preview(cast: Snapshot, socket: str) -> tuple[Prompt | None, str]:
    """Assemble the prompt that an agent would get if its socket were entered now, or say why there would be none."""
    if cast.graph.sockets[socket].is_utility:
        return None, "A utility is a process: it gets the state and its parameters, no prompt."
    prompt, why_not = entering.preview(cast.rules, cast.engine, socket)
    return prompt, plain(why_not)


def chips_of(step: StepRecord) -> list[str]:
    """What to say of a step beside its name."""
    item = [f"{step.item_key} {part(step.item_label or '', 40)}"] if step.item_key else []
    return [f"step {step.number}", f"visit {step.visit}", *item]


def any_blocks(found: Any) -> dict[str, Any]:
    """The content of a tab that is only to be read."""
    return {"is": "blocks", "blocks": found}
