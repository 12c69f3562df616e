"""The parts of a first prompt that describe the cast to the agent; each value appears only once (R50).

:class:`PromptContext` writes the parts within the limits of a :class:`PromptBudget`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from materia_nb.engine.conversation import (
    MAX_OUTPUT_CHARS,
    MAX_REASONS_CHARS,
    MAX_SCANNED_HANDOFFS,
    MAX_STATE_CHARS,
    MAX_STRING_CHARS,
    NOTICE_CHARS,
    PromptPart,
    context_of,
    handoff_records,
    reasons_for,
    shorten_middle,
    shorten_with_note,
    state_json,
    truncate,
)
from materia_nb.engine.items import fence_text, item_label, item_status, list_at
from materia_nb.engine.rules import SocketContext
from materia_nb.engine.state import CastState, Handoff, Item, ItemId, LastAnswer, ReworkReason, Visit
from materia_nb.handoff.jsontext import one_line
from materia_nb.jsonvalue import JSON, MISSING, get_path, pretty, remove_path, split_path, whole_floats_as_integers
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, VERDICTS

MAX_CONTEXTS_CHARS: Final = 16_000
_MAX_TITLE_CHARS: Final = 120
SURROUNDING_TITLES: Final = 10
MIN_SURROUNDING_TITLES: Final = 5
MAX_HANDOFF_CHARS_INSIDE, MAX_HANDOFF_CHARS_OUTSIDE = 2_000, 6_000
_MAX_LABEL_CHARS: Final = 200


# -- limits and data -----------------------------------------------------


class PromptBudget(NamedTuple):
    """Maximum lengths, in characters, of the parts that can be shortened."""

    state: int = MAX_STATE_CHARS
    output: int = MAX_OUTPUT_CHARS
    handoffs: int = MAX_HANDOFF_CHARS_OUTSIDE
    answer: int = MAX_OUTPUT_CHARS
    contexts: int = MAX_CONTEXTS_CHARS
    titles: int | None = None


class PromptContext(NamedTuple):
    """The description of the cast in a first prompt, written only on demand, because most prompts are never read.

    ``previous`` is the socket that was completed last.
    """

    socket: SocketContext
    visit: Visit
    state: CastState
    previous: Socket | None

    def parts(self, limits: PromptBudget) -> tuple[list[PromptPart], list[PromptPart]]:
        """Return the parts before the task and the parts after the task."""
        open_reasons = tuple(follow_up for follow_up in self.state.rework_reasons if not follow_up.settled)
        reasons = reasons_for(open_reasons, self.visit.socket, self.visit.item)
        rework_steps = {entry.step for entry in reasons}
        before = self._answer_before(reasons)
        shown_steps = {step for step in rework_steps if self._entry_at(step) is not None}
        if before is not None:
            shown_steps.add(before.step)
        if self.socket.own.output:
            shown_steps.add(self.state.last_step)
        return (
            [
                self._request_part(),
                self._place_part(limits),
                self._state_part(limits, before),
                self._handoffs_part(limits, shown_steps),
                self._output_part(limits, rework_steps),
            ],
            [self._item_part(), self._answer_part(limits, before), self._reasons_part(reasons), self._changes_part()],
        )

    # -- request and place

    def _request_part(self) -> PromptPart:
        if not self.socket.shown.request:
            return PromptPart("request", "", "castContext excludes it")
        if self.socket.own.request:
            return PromptPart("request", "", "your prompt contains {{request}}")
        text = self.state.request
        if not text.strip():
            return PromptPart("request", "", "it is empty")
        return PromptPart("request", self.quote(text), values=(("request", ""),))

    def _place_part(self, limits: PromptBudget) -> PromptPart:
        context = self.socket
        if not context.shown.position:
            return PromptPart("place", "", "castContext excludes it")
        if context.is_only_socket and self.visit.item is None:
            return PromptPart("place", "", "the loadout has one socket")
        lines = [context.introduction]
        item = self.visit.item
        if item is not None:
            lines += self._outer_lines()
            lines.append(f"You are working on item {item.position + 1} of {len(self._own_list())} ({item.key}).")
        if item is None or self.socket.generator:
            more, note, values = self._list_outside(limits)
        else:
            more, note, values = self._list_inside(item, limits)
        return PromptPart("place", "\n".join([*lines, *more]), note, quotes=False, values=values)

    def _outer_lines(self) -> Iterator[str]:
        for outer in self.state.shown[:-1]:
            inner = self.state.shown[-1].iteration.list_path
            value = outer.item.value
            for alias in outer.iteration.paths:
                if inner[: len(alias)] == alias:
                    value = remove_path(value, inner[len(alias) :])
            written = one_line(value if isinstance(value, str) else pretty(whole_floats_as_integers(value)))
            yield f"Part of {outer.item.key}: {truncate(written, MAX_STRING_CHARS)}"

    def _list_inside(self, item: Item, limits: PromptBudget) -> tuple[list[str], str, tuple[tuple[str, str], ...]]:
        items, lines = self._own_list(), list[str]()
        if self.socket.shown.items == "none":
            return lines, "castContext excludes the list", ()
        if why := self.socket.own.variable_of(self.socket.list_path):
            return lines, f"your prompt contains {why}", ()
        position = item.position
        if limits.titles is None:
            first = max(0, min(position - SURROUNDING_TITLES // 2, len(items) - SURROUNDING_TITLES - 1))
            last = min(len(items), first + SURROUNDING_TITLES + 1)
        else:
            first, last = max(0, position - limits.titles), min(len(items), position + limits.titles + 1)
        for index in range(first, last):
            if index == position:
                lines.append("- this item")
            else:
                lines.append(f"- {self._status_word(index, item)}: {_title(items[index], str(index))}")
        if last - first < len(items):
            lines.append(self._count_sentence(item, len(items)))
        values = tuple(("title", str(index)) for index in range(first, last) if index != position)
        return lines, "", values

    def _status_word(self, index: int, item: Item) -> str:
        return _STATUS_WORDS[item_status(self.state, (item.cursor, index, item.outer))]

    def _count_sentence(self, item: Item, count: int) -> str:
        """Return a sentence with the number of items by status, computed without iterating over the items."""
        earlier_count = min(item.position, count)
        skips = sum(item_id[0] == item.cursor and item_id[2] == item.outer for item_id in self.state.passed_items)
        counts = {"done": earlier_count - skips, "skipped": skips, "pending": count - earlier_count - 1}
        return "In total: " + ", ".join(f"{number} {word}" for word, number in counts.items() if number > 0) + "."

    def _own_list(self) -> list[JSON]:
        shown_items = self.state.shown
        if not shown_items:
            return []
        outer = shown_items[-2].item if len(shown_items) > 1 else None
        items = get_path(self.state.data, shown_items[-1].iteration.list_path)
        if isinstance(items, list):
            return items
        return list_at(shown_items[-1].iteration.iterator.items, self.state, outer)

    def _list_outside(self, limits: PromptBudget) -> tuple[list[str], str, tuple[tuple[str, str], ...]]:
        items = self.state.data.get("workItems")
        if not isinstance(items, list) or not items:
            return [], "", ()
        if self.socket.shown.items == "none":
            return [], "castContext excludes the list", ()
        if why := self.socket.own.variable_of(("workItems",)):
            return [], f"your prompt contains {why}", ()
        with_contexts = self.socket.shown.items == "whole"
        share = limits.contexts // len(items) if with_contexts else 0
        lines, values, short = [], [], 0
        for index, item in enumerate(items):
            if limits.titles is not None and limits.titles <= index < len(items) - limits.titles:
                continue
            word = "" if self.socket.cursor is None else item_status(self.state, (self.socket.cursor, index, ()))
            prefix = f"{index + 1}. " + (f"({_STATUS_WORDS[word]}) " if word in ("done", "skipped") else "")
            lines.append(prefix + _title(item, str(index)))
            values.append(("title", str(index)))
            text = _item_context(item)
            if text and share >= NOTICE_CHARS:
                shortened_text = shorten_middle(text, share)
                short += shortened_text != text
                lines.append(_indented(shortened_text))
                values.append(("context", str(index)))
        note = f"contexts of {short} items shortened" if short else ""
        if len(items) > len(titles := [value for value in values if value[0] == "title"]):
            note = f"{len(items) - len(titles)} titles in the middle are omitted"
            lines.append(f"({note})")
        count = len(items)
        return [f"Work items ({count}):", *lines], note, tuple(values)

    # -- state

    def _state_part(self, limits: PromptBudget, before: LastAnswer | None) -> PromptPart:
        selected = self.socket.shown.state
        if selected is False:
            return PromptPart("state", "", "castContext excludes it")
        if () in self.socket.own.paths:
            return PromptPart("state", "", "your prompt contains {{stateJson}}")
        data: JSON = dict(self.state.data)
        if isinstance(selected, tuple):
            data = _select_paths(data, selected)
        for path in (*self._paths_shown_elsewhere(), *self._copied_output_paths(before)):
            data = remove_path(data, path)
        if not data:
            return PromptPart("state", "", "nothing beyond the other parts")
        text = state_json(data, limits.state) if limits.state >= NOTICE_CHARS else ""
        if not text:
            return PromptPart("state", "", "no room")
        note = "shortened" if _OMISSION_MARK in text else ""
        return PromptPart("state", self.quote(text), note, True, tuple(("state", key) for key in data))

    def _paths_shown_elsewhere(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths of values that other parts of the prompt contain: the item, loop lists and handoffs."""
        yield ("context",)
        for shown_item in self.state.shown:
            yield from shown_item.iteration.paths
            yield shown_item.iteration.list_path
        if self.visit.item is None and self.socket.shown.items != "none":
            yield ("workItems",)
        yield from (path for path in self.socket.own.paths if path)

    def _copied_output_paths(self, before: LastAnswer | None) -> Iterator[tuple[str, ...]]:
        """Yield the paths in the state that contain a copy of an output that another part of the prompt shows."""
        shown_values: list[JSON] = []
        last, state = self.previous, self.state
        if last is not None and last.parse == "text" and self.socket.shown.previous and not self.socket.own.output:
            shown_values.append((state.last_output or "").strip())
        if before is not None and before.step != state.last_step:
            shown_values += [before.text.strip(), before.value]
        for path in self.socket.output_paths:
            value = get_path(state.data, path)
            if value and value is not MISSING and (value.strip() if isinstance(value, str) else value) in shown_values:
                yield path

    # -- handoffs

    def _entry_at(self, step: int) -> Handoff | None:
        return next((entry for entry in reversed(self.state.handoffs.entries) if entry.step == step), None)

    def _handoffs_part(self, limits: PromptBudget, shown_steps: set[int]) -> PromptPart:
        limit = self.socket.shown.handoffs
        if limit is False:
            return PromptPart("handoffs", "", "castContext excludes them")
        if why := self.socket.own.variable_of(("context",)):
            return PromptPart("handoffs", "", f"your prompt contains {why}")
        entries = [entry for entry in current_handoffs(self.state) if entry.step not in shown_steps or not entry.step]
        if not entries:
            return PromptPart("handoffs", "", "nothing beyond the other parts")
        max_entry_chars = MAX_HANDOFF_CHARS_INSIDE if self.visit.item is not None else MAX_HANDOFF_CHARS_OUTSIDE
        if limit is not True:
            max_entry_chars = limit
        chosen_handoffs = self._select_handoffs(entries, max_entry_chars, min(max_entry_chars, limits.handoffs))
        lines, note = [], ""
        left_out = (
            max(len(handoff_records(self.state.handoffs, context_of(self.state.data))) - MAX_SCANNED_HANDOFFS, 0)
            + len(entries)
            - len(chosen_handoffs)
        )
        if left_out:
            note = f"{left_out} older omitted"
            lines.append(f"({note})")
        lines += [
            f"[{entry.socket} {entry.label}] {text}" if entry.socket else f"({entry.label}) {text}"
            for entry, text in chosen_handoffs
        ]
        values = tuple([("handoff", str(entry.step)) for entry, _ in chosen_handoffs])
        return PromptPart("handoffs", self.quote("\n\n".join(lines)), note, True, values)

    def _select_handoffs(self, entries: Sequence[Handoff], bound: int, max_chars: int) -> list[tuple[Handoff, str]]:
        """Select handoffs by priority: the newest handoff, handoffs of this item, handoffs without an item, all others.

        Return the selected handoffs with their texts, oldest first. The newest handoff is shortened in its middle if it
        is longer than ``bound``. The others are complete, and as many are selected as fit into ``max_chars``.
        """
        current_item_id = self.visit.item.id if self.visit.item else None
        label_sizes = [len(entry.socket) + len(entry.label) + 6 for entry in entries]
        last = len(entries) - 1
        earlier = range(last - 1, -1, -1)
        same_item_indexes = [index for index in earlier if current_item_id and entries[index].item == current_item_id]
        no_item_indexes = [index for index in earlier if entries[index].item is None]
        other_indexes = [index for index in earlier if entries[index].item not in (current_item_id, None)]
        texts = {last: shorten_middle(entries[last].text, max(bound - label_sizes[last], NOTICE_CHARS))}
        max_chars -= label_sizes[last] + len(texts[last])
        for index in (*same_item_indexes, *no_item_indexes, *other_indexes):
            size = label_sizes[index] + len(entries[index].text)
            if size > max_chars:
                break
            texts[index] = entries[index].text
            max_chars -= size
        return [(entries[index], texts[index]) for index in sorted(texts)]

    # -- previous output

    def _output_part(self, limits: PromptBudget, reasons_of: set[int]) -> PromptPart:
        state, context, last = self.state, self.socket, self.previous
        why = (
            "castContext excludes it"
            if not context.shown.previous
            else "already in your prompt"
            if context.own.output
            else "no previous output"
            if last is None or not (state.last_output or "").strip()
            else ""
        )
        if why or last is None:
            return PromptPart("previous", "", why)
        source = f"{last.id} ({truncate(one_line(last.materia.label), _MAX_LABEL_CHARS)})"
        if last.parse == "text":
            text, note = shorten_with_note(state.last_output or "", limits.output)
            output_text = f"From {source}:\n{self.quote(text)}" if text else ""
            return PromptPart(
                "previous", output_text, note, bool(text), (("output", str(state.last_step)),) if text else ()
            )
        if state.last_step in reasons_of:
            return PromptPart("previous", "", "see Why it came back")
        return self._json_output_part(limits, last, source)

    def _json_output_part(self, limits: PromptBudget, last: Socket, source: str) -> PromptPart:
        """Return the part for a JSON output, with its verdict and the fields that no other part contains."""
        state, note = self.state, ""
        lines = [f"{source} reported {state.last_result.noun}."] if state.last_result in VERDICTS else []
        other_fields = self._remaining_fields(state.last_json, last)
        if other_fields:
            text, note = shorten_with_note(pretty(whole_floats_as_integers(other_fields)), limits.output)
            if text:
                lines += ["It also reported:" if lines else f"From {source}:", self.quote(text)]
            else:
                other_fields = {}
        if not lines:
            return PromptPart("previous", "", note or "already in other parts")
        values = tuple(("output", f"{state.last_step}.{name}") for name in other_fields)
        return PromptPart("previous", "\n".join(lines), note, bool(other_fields), values)

    def _remaining_fields(self, value: JSON, last: Socket) -> dict[str, JSON]:
        """Return the fields of a JSON output that no other part contains.

        Only sparse handoffs and the outputs of utilities have such fields.
        """
        if not isinstance(value, dict) or (last.handoff != DEFAULT_HANDOFF and not last.is_utility):
            return {}
        excluded_names = {
            "satisfied",
            "context",
            "workItems",
            *self.socket.own.fields,
            *(("state",) if last.is_utility else ()),
        }
        if self.socket.shown.state is True:
            excluded_names |= {text[2:] for _, text in last.assign if text.startswith("$.")}
            if any(text in ("$", "lastOutput") for _, text in last.assign):
                return {}
        return {name: field_value for name, field_value in value.items() if name not in excluded_names}

    # -- the item, earlier answers and reasons for rework

    def _item_part(self) -> PromptPart:
        item, own = self.visit.item, self.socket.own.item
        if item is None:
            return PromptPart("item", "", "no work item")
        if () in own:
            return PromptPart("item", "", "already in your prompt")
        value = item.value
        for path in own:
            value = remove_path(value, path)
        values = (("item", item.key),)
        if not isinstance(value, dict):
            text = value if isinstance(value, str) else pretty(whole_floats_as_integers(value))
            return PromptPart("item", f"{item.key}:\n{self.quote(text)}", values=values)
        if not value:
            return PromptPart("item", "", "already in your prompt")
        title, context = value.get("title"), value.get("context")
        is_plain = isinstance(item.value, dict) and set(item.value) <= {"title", "context"}
        if is_plain and all(isinstance(part, str) for part in value.values()):
            lines = [f"{item.key}: {one_line(title)}" if isinstance(title, str) else f"{item.key}:"]
            if isinstance(context, str):
                lines.append(self.quote(context))
            return PromptPart("item", "\n".join(lines), values=values)
        return PromptPart("item", f"{item.key}:\n{self.quote(pretty(whole_floats_as_integers(value)))}", values=values)

    def reasons(self) -> list[ReworkReason]:
        """Return the reasons for rework, including settled reasons, oldest first (R22)."""
        return reasons_for(self.state.rework_reasons, self.visit.socket, self.visit.item)

    def _answer_before(self, reasons: Sequence[ReworkReason]) -> LastAnswer | None:
        """Return the socket's last answer for this item if the last step sent the work back, or None.

        The result is also None if the prompt does not show outputs.
        """
        if not reasons or not self.socket.shown.previous or reasons[-1].step != self.state.last_step:
            return None
        item = self.visit.item
        return self.state.answers.get((self.visit.socket, item.id if item else None))

    def _answer_part(self, limits: PromptBudget, before: LastAnswer | None) -> PromptPart:
        if before is None:
            return PromptPart("before", "", "the work was not sent back")
        if before.step == self.state.last_step:
            return PromptPart("before", "", "same as Output just before")
        value = before.value
        if isinstance(value, dict):
            elsewhere = {"workItems", *self._fields_in_state(value)}
            value = {name: field_value for name, field_value in value.items() if name not in elsewhere}
            if not value:
                return PromptPart("before", "", "already in other parts")
            text = pretty(whole_floats_as_integers(value))
        else:
            text = before.text
        text, note = shorten_with_note(text, limits.answer)
        if not text:
            return PromptPart("before", "", note)
        return PromptPart("before", self.quote(text), note, True, (("output", str(before.step)),))

    def _fields_in_state(self, answer: dict[str, JSON]) -> Iterator[str]:
        """Yield the fields of an earlier answer that were assigned to the state and are unchanged in the state."""
        if self.socket.shown.state is True:
            for name, path in self.socket.assigned_fields:
                if name in answer and get_path(self.state.data, path) == answer[name]:
                    yield name

    def _reasons_part(self, reasons: Sequence[ReworkReason]) -> PromptPart:
        if not reasons:
            return PromptPart("reasons", "", "the work was not sent back")
        chars_left, blocks, values = MAX_REASONS_CHARS, [], []
        for entry in reversed(reasons):
            if chars_left <= 0:
                break
            handoff = self._entry_at(entry.step)
            text = shorten_middle(handoff.text if handoff is not None else entry.reason, max(chars_left, NOTICE_CHARS))
            chars_left -= len(text)
            about = f" about {entry.item[0] and self._item_key(entry.item)}" if entry.item else ""
            label = truncate(one_line(entry.label), _MAX_LABEL_CHARS)
            blocks.append(f"{entry.source} ({label}){about}:\n{self.quote(text)}")
            values.append(("handoff" if handoff is not None else "reason", str(entry.step)))
        heading = "The work was not satisfactory" + (". Oldest reason first:" if len(blocks) > 1 else ":")
        return PromptPart("reasons", "\n".join([heading, *reversed(blocks)]), "", True, tuple(reversed(values)))

    def _item_key(self, item: ItemId) -> str:
        mine = self.visit.item
        if mine is not None and mine.id == item:
            return mine.key
        return f"item {item[1] + 1}"

    def _changes_part(self) -> PromptPart:
        if not self.state.changed or not self.socket.shown.position:
            return PromptPart("changed", "", "no changes since the previous step")
        changes = ", ".join(self.state.changed)
        text = f"After the previous step, a person changed {changes}. This prompt shows the current values."
        return PromptPart("changed", text)

    def quote(self, text: str) -> str:
        """Return text from outside the loadout in a code fence, or unchanged if the prompt form is ``plain``."""
        return text if self.socket.form == "plain" else fence_text(text)


def current_handoffs(state: CastState) -> tuple[Handoff, ...]:
    """Return the records of the newest 500 handoffs in ``state.context``, oldest first."""
    return handoff_records(state.handoffs, context_of(state.data))[-MAX_SCANNED_HANDOFFS:]


_STATUS_WORDS: Final = {"done": "done", "being worked on": "in progress", "open": "pending", "skipped": "skipped"}
"""The word for each item status in a prompt."""


def _title(item: JSON, key: str) -> str:
    return truncate(one_line(item_label(item, key)), _MAX_TITLE_CHARS)


def _item_context(item: JSON) -> str:
    if isinstance(item, dict):
        other_fields = {name: field_value for name, field_value in item.items() if name not in ("title", "name")}
        if set(other_fields) <= {"context"}:
            context = other_fields.get("context")
            return context if isinstance(context, str) else ""
        return pretty(whole_floats_as_integers(other_fields))
    return "" if isinstance(item, str) else pretty(whole_floats_as_integers(item))


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" if line else "" for line in text.splitlines())


def _select_paths(data: Mapping[str, JSON], paths: Sequence[str]) -> dict[str, JSON]:
    """Return a copy of the state's data that contains only the values at the given paths."""
    values = {path: get_path(data, split_path(path)) for path in paths}
    return {path: value for path, value in values.items() if value is not MISSING}


_OMISSION_MARK: Final = "omitted"
