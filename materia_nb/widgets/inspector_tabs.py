"""The inspector of a cast: the tabs for the selected element, and the content of the open tab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from materia_nb.cast.breakpoint import BreakKind, Breakpoint, ordinal
from materia_nb.cast.formatting import describe_outcome, why_blocks
from materia_nb.cast.views.step_views import compare_with_last_visit, handoff_blocks, reported_tokens
from materia_nb.display.blocks import (
    Action,
    Block,
    Code,
    Fold,
    Heading,
    JsonTree,
    Line,
    Table,
    blocks_as_json,
    clip_plain,
)
from materia_nb.display.escape import part
from materia_nb.display.graph_parts import END_MARKER, links, pinned_label
from materia_nb.display.sections import call_blocks, part_title
from materia_nb.engine import entering
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord, current_item_id, lanes_at_work
from materia_nb.errors import MateriaError, plain
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import as_object
from materia_nb.loadout.graph import END
from materia_nb.loadout.vocabulary import WORK_ITEMS
from materia_nb.widgets.answering import answer_state
from materia_nb.widgets.selection import Inspector, last_handoffs, step_title
from materia_nb.widgets.state_tree import diff_blocks, limit_blocks, state_nodes

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot

KINDS: Final = ("socket", "edge", "exit", "loop", "item", "step")


class Element(NamedTuple):
    """The selected element of a cast."""

    kind: Literal["socket", "edge", "exit", "loop", "item", "step"]
    id: str


def require_element(cast: Snapshot, kind: object, key: object) -> Element:
    """Return an element of the cast.

    Raises:
        MateriaError: the cast has no such element (``unknown_part``).
    """
    if not (kind in KINDS and isinstance(key, str) and _has_element(cast, str(kind), key)):
        raise MateriaError(
            f"The cast has no {part(str(kind), 20)} {part(str(key), 60)!r}.",
            hint="select a part of the graph",
            kind="unknown_part",
        )
    return Element(kind, key)


def _has_element(cast: Snapshot, kind: str, key: str) -> bool:
    if kind in ("item", "step"):
        count = len(cast.work_items) if kind == "item" else len(cast.steps)
        return key.isdecimal() and int(key) <= count
    return Inspector(cast.graph, cast).has(kind, key)


def possible_breakpoints(cast: Snapshot, element: Element) -> list[Breakpoint]:
    """Return the possible breakpoints at an element, simplest first; items and loops cannot have breakpoints."""
    if element.kind == "socket":
        is_agent = not cast.graph.sockets[element.id].is_utility
        of_agents: tuple[BreakKind, ...] = ("refused", "not_satisfied", "empty_answer") if is_agent else ()
        kinds: tuple[BreakKind, ...] = ("before", "after", *of_agents, "same_again")
        return [Breakpoint(kind, element.id) for kind in kinds]
    if element.kind not in ("edge", "exit"):
        return []
    link = next(link for link in links(cast.graph) if link.key == element.id)
    any_edge = Breakpoint("edge", link.source, link.to)
    return [any_edge] if link.edge_index is None else [Breakpoint("edge", link.source, link.edge_index + 1), any_edge]


# -- about ---------------------------------------------------------------------------------


def about(cast: Snapshot, element: Element) -> list[Block]:
    """Return the definition and the current state of an element."""
    kind, key = element
    if kind == "item":
        return _item(cast, int(key))
    inspector = Inspector(cast.graph, cast)
    definition = inspector.definition(kind, key)
    raw_part = [Fold("definition", [JsonTree(definition, open_levels=3)])] if definition is not None else []
    return [*inspector.about(kind, key), *raw_part]


def _item(cast: Snapshot, number: int) -> list[Block]:
    items = cast.work_items
    value = items[number - 1] if 0 < number <= len(items) else None
    if not isinstance(value, dict):
        return [JsonTree(value)]
    steps = [step for step in cast.steps if _is_step_of_item(cast, step, number - 1)]
    return [
        Heading(str(value.get("title", ""))),
        Code(str(value.get("context", ""))),
        Heading("Steps"),
        Table(
            ("step", "socket", "went to"),
            [(str(step.number), step.name, describe_outcome(step)) for step in steps],
        )
        if steps
        else Line("None yet.", "quiet"),
    ]


def _is_step_of_item(cast: Snapshot, step: StepRecord, index: int) -> bool:
    item = current_item_id(cast.rules, cast.session, step)
    sockets = cast.rules.lists.get((WORK_ITEMS,), ())
    return item is not None and item[1] == index and any(item[0] == socket.iterator.cursor for socket in sockets)


# -- a step ----------------------------------------------------------------------------------


def step_blocks(name: str, cast: Snapshot, step: StepRecord | None) -> list[Block]:
    """Return the content of a tab about a step: the reasons for its decision, its tool calls, or its handoff."""
    if step is None:
        subject = "Decisions" if name == "why" else "Outputs"
        return [Line(f"No step has run yet. {subject} appear here after a step.", "quiet")]
    if name == "calls":
        return call_blocks(step.calls)
    if name == "why":
        why = cast.why(step.number)
        return [Heading(step_title(step)), *why_blocks(why)]
    return [*_item_blocks(step), *handoff_blocks(cast, step)]


def _item_blocks(step: StepRecord) -> list[Block]:
    """Return the work item of a step as blocks; empty if the step had no work item."""
    item = step.at.item
    if item is None:
        return []
    value = item.value if isinstance(item.value, dict) else {}
    heading = part(str(value.get("title", item.label or item.key)), 200)
    task = [Code(clip_plain(plain(as_text(value["context"])), 1_500))] if value.get("context") else []
    return [Heading(f"worked on {heading}"), *task]


# -- prompts ---------------------------------------------------------------------------------


def prompt_content(title: str, prompt: Prompt, key: str, *, edit: bool) -> dict[str, Any]:
    """Return the content of the Prompt tab; editable text is unchanged, all other text is escaped."""
    names = [part.name for part in prompt.parts]
    first = names.index("task") if "task" in names else 0
    layers = [
        {
            "name": part.name,
            "open": index >= first and bool(part.text),
            "heading": plain(part_title(part)),
            "text": part.text if edit else plain(part.text),
        }
        for index, part in enumerate(prompt.parts)
        if part.text or not edit
    ]
    return {"is": "prompt", "words": title, "layers": layers, "key": key, "edit": edit}


def blocks_content(blocks: Any) -> dict[str, Any]:
    """Return the content of a read-only tab."""
    return {"is": "blocks", "blocks": blocks}


_TAB_TITLES: Final = {
    "answer": "Answer",
    "output": "Output",
    "prompt": "Prompt",
    "why": "Why",
    "state": "State",
    "calls": "Calls",
    "about": "About",
}
_SOCKET_TABS: Final = ("answer", "prompt", "why", "state", "calls", "about")
_STEP_TABS: Final = ("output", "prompt", "why", "state", "calls")
TABS: Final = tuple(_TAB_TITLES)
_NO_PROMPT: Final = "A utility has no prompt: its process receives the state and its parameters."


def inspector_state(
    now: Snapshot, selected: Element | None, past: Snapshot | None, tab: str, *, busy: bool, only: str = ""
) -> dict[str, Any]:
    """Return the title and tabs of the inspector, and the content of the open tab.

    Args:
        now: the current snapshot of the cast.
        selected: the selected element, or None for the current position of the cast.
        past: the past snapshot that the user is viewing, or None for the present.
        tab: the tab that was opened last; if the selection has no such tab, its first tab opens.
        busy: True while a step is running.
        only: the name of the only tab to show; by default all tabs are shown.
    """
    if past is not None:
        tabs = _Tabs(past, past.latest, now, None, busy=busy, present=False)
        names = _STEP_TABS if past.latest is not None else ("state",)
        return _tab_state(names, tab, _step_title(past, past.latest), tabs)
    if selected is not None and selected.kind not in ("socket", "step"):
        tabs = _Tabs(now, None, now, selected, busy=busy)
        return _tab_state(("about",), tab, _element_title(now, selected), tabs)
    current = _current_socket(now)
    socket = selected.id if selected is not None else current
    is_current = socket == current
    element = Element("socket", socket) if socket in now.graph.sockets else None
    record = now.latest if is_current else next((step for step in reversed(now.steps) if step.socket == socket), None)
    tabs = _Tabs(now, record, now, element, busy=busy, is_current=is_current)
    tab_names = _SOCKET_TABS if element is not None else ("answer", "why", "state", "calls")
    return _tab_state((only,) if only else tab_names, tab, _socket_title(now, element, is_current=is_current), tabs)


def _current_socket(cast: Snapshot) -> str:
    visit = cast.engine.at
    if cast.failure is not None and lanes_at_work(cast.session) is not None:
        return ""  # the cast stopped in its lanes
    if cast.engine.status in ("waiting", "held", "failed", "aborted") and visit is not None:
        return visit.socket
    failed = cast.failure.socket if cast.failure is not None else None
    return failed or cast.next_socket or ""


def _tab_state(names: Sequence[str], tab: str, title: dict[str, Any], tabs: _Tabs) -> dict[str, Any]:
    calls = tabs.record.calls if tabs.record is not None else ()
    names = [name for name in names if name != "calls" or calls] or names
    titles = {**_TAB_TITLES, "calls": f"Calls {len(calls)}"}
    opened_tab = tab if tab in names else "output" if tab == "answer" and "output" in names else names[0]
    needs_user = not tabs.busy and tabs.now.writable and tabs.now.waits_for_person
    return {
        "title": title,
        # A dot marks a tab that waits for the user.
        "tabs": [[name, titles[name], name == "answer" and needs_user] for name in names],
        "tab": opened_tab,
        "content": tabs.tree() if opened_tab == "state" else blocks_as_json(tabs.content(opened_tab)),
        "busy": tabs.busy,
    }


@dataclass(frozen=True, slots=True)
class _Tabs:
    """The content of each tab about the selected element and step."""

    snapshot: Snapshot
    record: StepRecord | None
    now: Snapshot
    element: Element | None
    _: KW_ONLY
    busy: bool
    present: bool = True  # True if the tabs show the present
    is_current: bool = False

    def content(self, name: str) -> dict[str, Any]:
        """Return the content of any tab except the State tab."""
        if name in ("answer", "prompt"):
            return self._answer() if name == "answer" else self._prompt()
        if name == "about" and self.element is not None:
            return blocks_content(about(self.snapshot, self.element))
        offer = self._fork_blocks() if name == "output" and not self.present else []
        return blocks_content([*offer, *step_blocks(name, self.snapshot, self.record)])

    def _fork_blocks(self) -> list[Block]:
        """Return the offer to edit the output of a past step in a fork; empty if the cast cannot be forked there."""
        record, steps = self.record, self.now.steps
        if record is None or not record.turns or self.busy or [*steps[record.number - 1 : record.number]] != [record]:
            return []
        tooltip = "fork the cast after this step; its output can then be edited, and the casts are compared"
        return [Action("", "Edit in a fork", tooltip, "fork", {"step": record.number})]

    def _answer(self) -> dict[str, Any]:
        if self.is_current:
            return answer_state(self.now, busy=self.busy)
        assert self.element is not None  # noqa: S101 - a position other than the current one is a selected socket
        parts: list[Block] = []
        current_name = self.now.names.get(_current_socket(self.snapshot))
        if current_name is not None and self.now.status in ("waiting", "held", "failed"):
            where = f"The cast is at {current_name}. "
            parts.append(Action(where, "Show it", "show the current position of the cast", "select", {"element": None}))
        return blocks_content([*parts, *last_handoffs(self.snapshot, self.element.id)])

    def _prompt(self) -> dict[str, Any]:
        cast, record = self.snapshot, self.record
        can_edit = cast.writable and not self.busy and not cast.is_state_locked
        waiting_prompt = cast.prompt or cast.interrupted_prompt
        if self.present and self.is_current and waiting_prompt is not None:
            turn = cast.engine.at.turn if cast.engine.at else 0
            title = f"Prompt. Changes apply to this turn only. {compare_with_last_visit(cast.steps, cast.steps[-1], waiting_prompt)}"
            key = f"{cast.id} {len(cast.steps)} {turn} {len(cast.abandoned)}"
            return prompt_content(title.rstrip(), waiting_prompt, key, edit=can_edit)
        is_preview = self.present and (record is None or not self.is_current or cast.status == "ready")
        if is_preview and self.element is not None:
            return self._preview(self.element.id, edit=can_edit and self.is_current and cast.status == "ready")
        if record is None or record.prompt is None:
            return blocks_content([Line(_NO_PROMPT, "quiet")])
        comparison = compare_with_last_visit(cast.steps, record, record.prompt)
        title = " ".join(filter(None, (f"The prompt of step {record.number}.", reported_tokens(record), comparison)))
        return prompt_content(title, record.prompt, f"{cast.id} step {record.number}", edit=False)

    def _preview(self, socket: str, *, edit: bool) -> dict[str, Any]:
        """Return the prompt that the socket's agent would receive if the cast entered it now, or the reason why there is no prompt."""
        cast = self.snapshot
        if cast.graph.sockets[socket].is_utility:
            return blocks_content([Line(_NO_PROMPT, "quiet")])
        prompt, why_not = entering.preview(cast.rules, cast.engine, socket)
        if prompt is None:
            return blocks_content([Line(plain(why_not), "quiet")])
        title = "Preview of the prompt if the socket were entered now."
        if edit:
            title += " If you change a layer, the socket is entered with the changed prompt, for this turn only."
        return prompt_content(title, prompt, f"{cast.id} {len(cast.steps)} {socket}", edit=edit)

    def tree(self) -> dict[str, Any]:
        """Return the content of the State tab as plain data rather than widgets.

        The state may contain thousands of values, and that many widgets would be slow.
        """
        snapshot = self.snapshot
        return {
            "is": "state",
            "nodes": state_nodes(dict(snapshot.state)),
            "blocks": blocks_as_json(_change_blocks(snapshot.latest)),
            "limits": blocks_as_json(limit_blocks(snapshot)),
            "edit": self.present and snapshot.writable and not self.busy and not snapshot.is_state_locked,
            "watched": list(self.now.breakpoints.paths),
            "steps": len(self.now.steps),
            "at": len(snapshot.steps),
        }


def _change_blocks(last: StepRecord | None) -> list[Block]:
    if last is None:
        return []
    return diff_blocks(dict(last.before.data), dict(last.after.data), f"step {last.number} changed")


def _socket_title(cast: Snapshot, element: Element | None, *, is_current: bool) -> dict[str, Any]:
    if element is None:
        name = "the end" if cast.next_socket == END else "the cast"
        chips = [*_lane_chips(cast), cast.status]
        return {"kind": "cast", "name": name, "chips": chips, "id": None, "present": True}
    socket, pinned = cast.graph.sockets[element.id], cast.pin_name_of(element.id)
    chips = [*_lane_chips(cast), part(element.id, 40), _agent_name(cast, element.id, pinned)]
    at = cast.engine.at
    if is_current and at is not None and at.socket == element.id and cast.status != "ready":
        chips.append(f"visit {at.visit}" + (f" · {part(at.item.label or at.item.key, 40)}" if at.item else ""))
    elif visits := cast.visits.get(element.id, 0):
        chips.append(f"{visits} visit{'s' * (visits > 1)}")
    return {
        "kind": "generator" if socket.is_generator else "utility" if socket.is_utility else "agent",
        "name": cast.names[element.id],
        "chips": [chip for chip in chips if chip],
        "id": element.id,
        "present": is_current,
        "stops": _breakpoint_rows(cast, element),
        "pinned": pinned is not None,
        "answered": element.id in cast.visits
        and any(s.at.socket == element.id and s.turns for s in cast.session.steps),
    }


def _lane_chips(cast: Snapshot) -> list[str]:
    return [] if cast.engine.lane is None else [f"lane {part(cast.engine.lane.name, 40)}"]


def _agent_name(cast: Snapshot, socket: str, pinned: str | None) -> str:
    if pinned is not None:
        return pinned_label(cast.pins[pinned].words)
    default_name = "you" if cast.writable else "agent"
    answerer = cast.answered_by(socket) or ("a process" if cast.graph.sockets[socket].is_utility else default_name)
    return part(answerer, 80)


def _step_title(past: Snapshot, record: StepRecord | None) -> dict[str, Any]:
    if record is None:
        return {"kind": "step", "name": "the start", "chips": ["looking back"], "id": None}
    return {
        "kind": "step",
        "name": past.names[record.socket],
        "chips": [*_lane_chips(past), step_title(record)],
        "id": None,
        "step": record.number,
    }


def _breakpoint_rows(cast: Snapshot, element: Element) -> list[list[Any]]:
    """Return the possible breakpoints of an element, each with its label, its JSON, and True if it is set."""
    existing = {stop.event_key: stop for stop in cast.breakpoints}
    return [
        [existing.get(possible, possible).words(cast.graph), possible.as_json(), possible in existing]
        for index, possible in enumerate(possible_breakpoints(cast, element))
        if element.kind == "socket" or not index or possible in existing
    ]


def _element_title(cast: Snapshot, element: Element) -> dict[str, Any]:
    if element.kind == "item":
        index = int(element.id) - 1
        title = as_object(cast.work_items[index]).get("title") if 0 <= index < len(cast.work_items) else None
        return {"kind": "item", "name": part(str(title or f"WI-{element.id}"), 60), "chips": ["work item"], "id": None}
    name, chip = f"loop {part(element.id, 60)}", "loop"
    if element.kind != "loop":
        link = next(link for link in links(cast.graph) if link.key == element.id)
        names = {**cast.names, END_MARKER: "the end"}
        name = f"{names.get(link.source, link.source)} → {names.get(link.target, link.target)}"
        chip = link.condition if link.edge_index is None else f"{link.condition} · {ordinal(link.edge_index + 1)} edge"
        chip = f"exit · {chip}" if element.kind == "exit" else chip
    return {"kind": element.kind, "name": name, "chips": [chip], "id": None, "stops": _breakpoint_rows(cast, element)}
