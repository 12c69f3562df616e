"""What the inspector of a cast tells about what is selected, as blocks: items and steps; parts of the graph stand beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from materia_nb.cast.breakpoint import BreakKind, Breakpoint
from materia_nb.cast.listing import way_words
from materia_nb.cast.views.step_views import HandoffView, TranslationView
from materia_nb.display.escape import part
from materia_nb.display.graph_parts import links
from materia_nb.display.sections import lines_of, part_title
from materia_nb.engine import entering
from materia_nb.engine.item_edits import WORK_ITEMS
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord, item_now
from materia_nb.errors import MateriaError
from materia_nb.insight.why import HEADERS, THOUGHT
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.outgoing import plain
from materia_nb.widgets.blocks import (
    Block,
    call_blocks,
    fold,
    head,
    json_block,
    line,
    lines,
    pre,
    table,
)
from materia_nb.widgets.graph_inspector import DEFINITION, Inspector

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord, TurnRecord
    from materia_nb.handoff.capabilities import Section

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
    written = [fold(DEFINITION.lower(), [json_block(definition)])] if definition is not None else []
    return [*inspector.about(kind, key), *written]


def _item(cast: Snapshot, number: int) -> list[Block]:
    items = cast.work_items
    value = items[number - 1] if 0 < number <= len(items) else None
    if not isinstance(value, dict):
        return [json_block(value)]
    steps = [step for step in cast.steps if _is_about(cast, step, number - 1)]
    names = cast.names
    return [
        head(str(value.get("title", ""))),
        pre(str(value.get("context", ""))),
        head("Its steps"),
        table(("step", "socket", "went to"), [(str(s.number), names[s.socket], way_words(s)) for s in steps])
        if steps
        else line("None yet.", "quiet"),
    ]


def _is_about(cast: Snapshot, step: StepRecord, place: int) -> bool:
    item = item_now(cast.rules, cast.session, step)
    walks = cast.rules.lists.get((WORK_ITEMS,), ())
    return item is not None and item[1] == place and any(item[0] == walk.iterator.cursor for walk in walks)


# -- a step ----------------------------------------------------------------------------------


def why_blocks(cast: Snapshot, step: StepRecord | None) -> list[Block]:
    """Why a step went where it went, as sentences and as the table of what was looked at."""
    if step is None:
        return [line("No step yet: nothing has been decided.", "quiet")]
    why = cast.why(step.number)
    parts = [head(why.title), *lines(why.lines)]
    if why.thinking:
        parts.append(fold(THOUGHT, [pre(why.thinking)]))
    return [*parts, table(HEADERS, why.rows)] if why.rows else parts


def handoff_blocks(cast: Snapshot, step: StepRecord | None) -> list[Block]:
    """What a step handed on: each turn's output, what was found in it, what is wrong or odd about it."""
    if step is None:
        return [line("No step yet: nothing has been handed on.", "quiet")]
    parts: list[Block] = []
    view = HandoffView(cast, step)
    for place, turn in enumerate(step.turns, start=1):
        title = turn.mode if len(step.turns) > 1 else "output"
        inside = _turn(turn, view.sections(turn.reading))
        parts += (
            [head(title), *inside] if place == len(step.turns) else [fold(f"turn {place}: {title}", inside)]
        )
    if not step.turns:
        parts.append(line("no output yet", "quiet"))
    parts += [one for section in view.way() for one in _section(section)]
    parts += lines([f"not on the disk, though named as made: {path}" for path in step.missing], "warn")
    parts += lines([f"note: {note}" for note in step.notes[-5:]], "quiet")
    if wanted := list(cast.rules.sockets[step.socket].wants.items()):
        parts.append(fold("what was required", [table(("field", "what it must be"), wanted)]))
    assigned = step.decision.assigned if step.decision else ()
    if assigned:
        rows = [(f"state.{one.target}", one.source, "yes" if one.found else "no") for one in assigned]
        parts.append(fold("what was put into the state", [table(("to", "from", "there"), rows)]))
    parts += _other_formats(cast, step)
    if step.artifact:
        parts.append(line(f"kept in {step.artifact}", "quiet"))
    return parts


def _section(section: Section) -> list[Block]:
    """A part of an output as its protocol lays it out."""
    found = [head(section.title), *lines(lines_of(section))]
    if section.rows:
        headers = section.headers or ("",) * len(section.rows[0])
        rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in section.rows]
        found.append(table(headers, rows))
    return found


def _other_formats(cast: Snapshot, step: StepRecord) -> list[Block]:
    """The handoff of a step in every protocol of ours, with what is lost; nothing without an object."""
    if step.reading is None or not isinstance(step.reading.value, dict):
        return []
    found: list[Block] = []
    for name in OWN_PROTOCOLS:
        try:
            view = TranslationView(cast, step, name)
        except MateriaError as error:
            found.append(line(f"{name}: {error.what}", "quiet"))
            continue
        count = f" ({len(view.lost)} lost)" if view.lost else ""
        lost = [table(("lost", "what it said"), view.lost)] if view.lost else []
        found.append(fold(f"{name}{count}", [*lost, json_block(view.value)]))
    return [fold("in other formats", found)]


def _turn(turn: TurnRecord, sections: Sequence[Section]) -> list[Block]:
    """One output: what was asked for, who answered, the text, and what was made of it."""
    found = lines([f"asked for: {turn.message}"] if turn.message is not None else [])
    if isinstance(model := turn.meta.get("model"), str):
        found.append(line(f"answered by {model}", "quiet"))
    if turn.pinned:
        found.append(line(f"pinned to {turn.pinned}", "quiet"))
    if sections:
        found += [one for section in sections for one in _section(section)]
        found.append(fold("as it was written", [pre(turn.text)]))
    else:
        found.append(pre(turn.text))
    if turn.reading is None:
        return found
    found += lines(turn.reading.notes, "quiet")
    found += lines([f"Note: {one.message}" for one in turn.reading.warnings], "warn")
    if turn.reading.issues:
        rows = [(one.path, one.message, one.fix) for one in turn.reading.issues]
        found.append(table(("where", "issue", "what to do"), rows))
    if isinstance(turn.reading.value, dict):
        found.append(fold("the object that was found", [json_block(turn.reading.value)]))
    return found


def calls_of(step: StepRecord | None) -> list[Block]:
    """The tool calls of a step."""
    if step is None or not step.calls:
        return [line("No tool was used.", "quiet")]
    return call_blocks(step.calls)


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
