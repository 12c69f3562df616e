"""The inspector of a cast: which tabs it has for what is selected, and what the open one shows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.breakpoint import ordinal
from materia_nb.cast.views.step_views import against_last_visit, counted_tokens
from materia_nb.display.blocks import Action, Block, Line, json_of
from materia_nb.display.escape import part
from materia_nb.display.graph_parts import END_SIGN, Marks, links, who_words
from materia_nb.engine.session import lanes_at_work
from materia_nb.loadout.graph import END
from materia_nb.widgets.answering import answer_state
from materia_nb.widgets.graph_inspector import last_handoffs
from materia_nb.widgets.inspector_blocks import (
    Element,
    about,
    any_blocks,
    chips_of,
    preview,
    prompt_part,
    step_tab,
    stops_at,
)
from materia_nb.widgets.state_and_items import changed_blocks, limit_blocks, tree_of

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

_WORDS: Final = {
    "answer": "Answer",
    "output": "Output",
    "prompt": "Prompt",
    "why": "Why",
    "state": "State",
    "calls": "Calls",
    "about": "About",
}
_OF_SOCKET: Final = ("answer", "prompt", "why", "state", "calls", "about")
_OF_STEP: Final = ("output", "prompt", "why", "state", "calls")
TABS: Final = tuple(_WORDS)


def inspector_state(
    now: Snapshot, selected: Element | None, past: Snapshot | None, tab: str, *, busy: bool, only: str = ""
) -> dict[str, Any]:
    """Return title, tabs and the content of the open one.

    Args:
        now: the cast at present.
        selected: what is selected, None for wherever the cast is.
        past: the moment that is looked at, None for the present.
        tab: the tab that was opened last; one that there is not for this gives way to the first.
        busy: whether a step runs.
        only: the one tab that is shown of the present; all that there are if left out.
    """
    if past is not None:
        record = past.latest
        return _state(
            _OF_STEP if record is not None else ("state",),
            tab,
            _step_title(past, record),
            _Tabs(past, record, now, None, busy=busy, present=False),
        )
    if selected is not None and selected.kind not in ("socket", "step"):
        tabs = _Tabs(now, None, now, selected, busy=busy)
        return _state(("about",), tab, _title_of(now, selected), tabs)
    here = _here(now)
    socket = selected.id if selected is not None else here
    record = next((step for step in reversed(now.steps) if step.socket == socket), None)
    at_present = selected is None or socket == here
    if at_present:
        record = now.latest
    element = Element("socket", socket) if socket in now.graph.sockets else None
    several = _OF_SOCKET if element is not None else ("answer", "why", "state", "calls")
    names = (only,) if only else several
    tabs = _Tabs(now, record, now, element, busy=busy, at_present=at_present)
    return _state(names, tab, _socket_title(now, element, at_present=at_present), tabs)


def _here(cast: Snapshot) -> str:
    at = cast.engine.at
    if cast.failure is not None and lanes_at_work(cast.session) is not None:
        return ""  # it stopped in its lanes
    if cast.engine.status in ("waiting", "held", "failed", "aborted") and at is not None:
        return at.socket
    failed = cast.failure.socket if cast.failure is not None else None
    return failed or cast.next_socket or ""


def _state(names: tuple[str, ...], tab: str, title: dict[str, Any], tabs: _Tabs) -> dict[str, Any]:
    opened = tab if tab in names else "output" if tab == "answer" and "output" in names else names[0]
    words = dict(_WORDS)
    if tabs.record is not None and tabs.record.calls:
        words["calls"] += f" {len(tabs.record.calls)}"
    waits = not tabs.busy and (bool(tabs.now.approvals.asking) or tabs.now.held is not None)
    return {
        "title": title,
        # With a dot where something waits for the person.
        "tabs": [[name, words[name], name == "answer" and waits] for name in names],
        "tab": opened,
        "content": json_of(tabs.content(opened)),
        "busy": tabs.busy,
    }


@dataclass(frozen=True, slots=True)
class _Tabs:
    """What the tabs are about, and what each shows."""

    shown: Snapshot
    record: StepRecord | None
    now: Snapshot
    element: Element | None
    _: KW_ONLY
    busy: bool
    present: bool = True  # whether what is shown is the cast as it is now
    at_present: bool = False

    def content(self, name: str) -> dict[str, Any]:
        """Return what a tab shows."""
        special = {"answer": self._answer, "prompt": self._prompt, "state": self._tree}
        if name in special:
            return special[name]()
        if name == "about" and self.element is not None:
            return any_blocks(about(self.shown, self.element))
        found = any_blocks(step_tab(name, self.shown, self.record))
        if self.present and name == "output":
            correct = answer_state(self.now, busy=self.busy).get("correct")
            found = {**found, "correct": correct} if correct else found
        return found

    def _answer(self) -> dict[str, Any]:
        if self.at_present:
            return answer_state(self.now, busy=self.busy)
        assert self.element is not None  # noqa: S101 - a socket is selected where it is not the present one
        parts: list[Block] = []
        here = self.now.names.get(_here(self.shown))
        if here is not None and self.now.status in ("waiting", "held", "failed"):
            where = f"The cast is at {here}. "
            parts.append(Action(where, "Show it", "show where the cast is", "select", {"element": None}))
        return any_blocks([*parts, *last_handoffs(self.shown, self.element.id)])

    def _prompt(self) -> dict[str, Any]:
        cast, record = self.shown, self.record
        if self.present and self.at_present:
            waiting = cast.prompt or cast.prompt_cut_short
            if waiting is not None:
                edit = cast.writable and not self.busy and not cast.lanes_go_on
                turn = cast.engine.at.turn if cast.engine.at else 0
                against = against_last_visit(cast.steps, cast.steps[-1], waiting)
                return prompt_part(
                    f"The prompt. Changes are for this turn only. {against}".rstrip(),
                    waiting,
                    f"{cast.id} {len(cast.steps)} {turn} {len(cast.abandoned)}",
                    edit=edit,
                )
        if (
            self.present
            and self.element is not None
            and (record is None or not self.at_present or cast.status == "ready")
        ):
            made, why_not = preview(cast, self.element.id)
            if made is None:
                return any_blocks([Line(why_not, "quiet")])
            enter = self.at_present and cast.writable and not self.busy and cast.status == "ready"
            enter = enter and not cast.lanes_go_on
            more = " Change a layer here, and it is entered with it, for this turn only." if enter else ""
            return prompt_part(
                f"A preview: what would be asked if it were entered now.{more}",
                made,
                f"{cast.id} {len(cast.steps)} {self.element.id}",
                edit=enter,
            )
        if record is None or record.prompt is None:
            return any_blocks(
                [Line("A process was run: it gets the state and its parameters, no prompt.", "quiet")]
            )
        against = against_last_visit(cast.steps, record, record.prompt)
        words = " ".join(
            filter(None, (f"What step {record.number} was asked.", counted_tokens(record), against))
        )
        key = f"{cast.id} step {record.number}"
        return prompt_part(words, record.prompt, key, edit=False)

    def _tree(self) -> dict[str, Any]:
        shown = self.shown
        data = dict(shown.state)
        last = shown.latest
        changed = (
            changed_blocks(dict(last.before.data), dict(last.after.data), f"step {last.number} changed")
            if last is not None
            else []
        )
        return {
            "is": "state",
            "nodes": tree_of(data),
            "blocks": changed,
            "limits": limit_blocks(shown),
            "edit": self.present and shown.writable and not self.busy and not shown.lanes_go_on,
            "watched": list(self.now.breakpoints.paths),
            "steps": len(self.now.steps),
            "at": len(shown.steps),
        }


def _socket_title(cast: Snapshot, element: Element | None, *, at_present: bool) -> dict[str, Any]:
    if element is None:
        name = "the end" if cast.next_socket == END else "the cast"
        chips = [*_lane(cast), cast.status]
        return {"kind": "cast", "name": name, "chips": chips, "id": None, "present": True}
    socket, pinned = cast.graph.sockets[element.id], cast.pinned_at(element.id)
    chips = [*_lane(cast), part(element.id, 40), _who(cast, element.id, pinned)]
    at = cast.engine.at
    if at_present and at is not None and at.socket == element.id and cast.status != "ready":
        chips.append(f"visit {at.visit}" + (f" · {at.item.key} {part(at.item.label, 40)}" if at.item else ""))
    elif visits := cast.visits.get(element.id, 0):
        chips.append(f"{visits} visit{'s' * (visits > 1)}")
    return {
        "kind": "generator" if socket.is_generator else "utility" if socket.is_utility else "agent",
        "name": cast.names[element.id],
        "chips": [chip for chip in chips if chip],
        "id": element.id,
        "present": at_present,
        "stops": _stops(cast, element),
        "pinned": pinned is not None,
        "answered": any(step.socket == element.id and step.turns for step in cast.steps[-500:]),
    }


def _lane(cast: Snapshot) -> list[str]:
    return [] if cast.engine.lane is None else [f"lane {part(cast.engine.lane.name, 40)}"]


def _who(cast: Snapshot, socket: str, pinned: str | None) -> str:
    who = cast.answered_by(socket) or ("a process" if cast.graph.sockets[socket].is_utility else "you")
    pins = {} if pinned is None else {socket: cast.pins[pinned].words}
    return who_words(socket, Marks(answers={socket: who}, pins=pins))


def _step_title(past: Snapshot, record: StepRecord | None) -> dict[str, Any]:
    if record is None:
        return {"kind": "step", "name": "the start", "chips": ["looking back"], "id": None}
    return {
        "kind": "step",
        "name": past.names[record.socket],
        "chips": [*_lane(past), *chips_of(record)],
        "id": None,
        "step": record.number,
    }


def _stops(cast: Snapshot, element: Element) -> list[list[Any]]:
    """The breakpoints that an element can have: the words of each, what it is, and whether it is set."""
    there = {one.every_time: one for one in cast.breakpoints}
    names = {**cast.names, END: "the end"}
    return [
        [there.get(one, one).words(cast.graph, names), one.as_json(), one in there]
        for place, one in enumerate(stops_at(cast, element))
        if element.kind == "socket" or not place or one in there
    ]


def _title_of(cast: Snapshot, element: Element) -> dict[str, Any]:
    if element.kind == "item":
        return {"kind": "item", "name": f"WI-{element.id}", "chips": ["work item"], "id": None}
    name, under = f"loop {part(element.id, 60)}", "loop"
    if element.kind != "loop":
        link = next(one for one in links(cast.graph) if one.key == element.id)
        names = {**cast.names, END_SIGN: "the end"}
        name = f"{names.get(link.source, link.source)} → {names.get(link.target, link.target)}"
        under = link.condition if link.place is None else f"{link.condition} · {ordinal(link.place + 1)} way"
        under = f"exit · {under}" if element.kind == "exit" else under
    return {"kind": element.kind, "name": name, "chips": [under], "id": None, "stops": _stops(cast, element)}
