"""Layers of a prompt that tell what went before: the cast (R32), and why work came back (R22)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final, NamedTuple

from materia_nb.engine.items import lies_in, without_item
from materia_nb.engine.state import FollowUp, Item, ItemId, Shown
from materia_nb.jsonvalue import JSON, pretty, remove_path, without_points
from materia_nb.loadout.facts import variables
from materia_nb.loadout.graph import Socket

REASON_CHARS: Final = 900
RENDERED_CHARS: Final = 2_400
KEPT: Final = 5


def capture(
    kept: tuple[FollowUp, ...],
    socket: Socket,
    target: str,
    item: Item | None,
    context: str | None,
    output: str,
) -> tuple[FollowUp, ...]:
    """Add why ``socket`` was not satisfied; only the last five per item and target stay."""
    entry = FollowUp(
        socket.id,
        socket.materia.label,
        target,
        item.id if item else None,
        item.label if item else None,
        _reason(context, output),
    )
    same = [old for old in kept if old.target == target and old.item == entry.item]
    dropped = same[0] if len(same) >= KEPT else None
    return (*(old for old in kept if old is not dropped), entry)


def without_entries_of(kept: tuple[FollowUp, ...], done: ItemId) -> tuple[FollowUp, ...]:
    """Drop the entries of an item that has advanced, and of those within it."""
    return tuple(entry for entry in kept if not lies_in(entry.item, done))


def without_target(kept: tuple[FollowUp, ...], target: str) -> tuple[FollowUp, ...]:
    """Drop the item-less entries for ``target``, which has dealt with them."""
    return tuple(entry for entry in kept if entry.item is not None or entry.target != target)


def shown_to(kept: tuple[FollowUp, ...], target: str, item: Item | None) -> list[FollowUp]:
    """Choose what ``target`` is told, oldest first, within 2,400 characters of reasons.

    The newest reasons are kept whole; the oldest one that is shown may be cut short.
    """
    matching = [
        entry
        for entry in kept
        if entry.target == target and (entry.item is None or item is None or entry.item == item.id)
    ]
    room = RENDERED_CHARS
    chosen: list[FollowUp] = []
    for entry in reversed(matching):
        if room <= 0:
            break
        reason = cut(entry.reason, room)
        chosen.append(entry if reason == entry.reason else entry._replace(reason=reason))
        room -= len(reason)
    return chosen[::-1]


def _reason(context: str | None, output: str) -> str:
    said = " ".join(context.split()) if context else ""
    if said:
        return cut(said, REASON_CHARS)
    excerpt = " ".join(output.split())
    if not excerpt:
        return "(no context and no output were given)"
    return cut(f"(no context was given; excerpt of the output) {excerpt}", REASON_CHARS)


def cut(text: str, most: int) -> str:
    """Cut ``text`` to at most ``most`` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


STRING_CHARS: Final = 2_000
STATE_CHARS: Final = 24_000
OUTPUT_CHARS: Final = 8_000
BRIEF_CHARS: Final = 1_500
"""What state and output may each take where the layer is kept or shown for a person, not told an agent."""
LABEL_CHARS: Final = 200
NOTICE_CHARS: Final = 120
"""Room in which it can be said that entries are left out."""
JOURNAL: Final = "events.jsonl"
"""The artifact that has the whole state: every output and every edit that made it stands or is named there."""


class Expanded(NamedTuple):
    """What a materia's own prompt tells already: the request, the output before, paths in the state.

    The empty path stands for the whole state.
    """

    request: bool = False
    output: bool = False
    paths: tuple[tuple[str, ...], ...] = ()


@lru_cache(maxsize=1024)
def expanded_by(prompt: str) -> Expanded:
    """Look up which parts of the cast layer the variables of a materia prompt tell (R31, R32)."""
    names = {name for _, _, name in variables(prompt)} - {""}
    return Expanded(
        "request" in names,
        bool(names & {"lastOutput", "lastJson"}),
        tuple(sorted(path for name in names if (path := _state_path(name)) is not None)),
    )


def _state_path(name: str) -> tuple[str, ...] | None:
    """The path in the state that a variable shows; None for one that shows something else."""
    head, *rest = name.split(".")
    if name == "stateJson":
        return ()
    if head == "state":
        return tuple(rest)
    if name in ("request", "lastOutput", "itemJson") or head in ("item", "lastJson"):
        return None
    return None if head == "cursor" and rest else (head, *rest)


class Placed(NamedTuple):
    """What the layer of a socket's agent holds at every visit: its place, whether it tells all, what it leaves out."""

    place: str
    full: bool
    told: Expanded


def placed(socket: Socket, loadout: str) -> Placed | None:
    """Work out what the agent of a socket is told of the cast; None for one that is told nothing (R32)."""
    materia, told = socket.materia, expanded_by(socket.materia.prompt)
    full = socket.cast_context == "full"
    if socket.is_utility or not (full or (socket.cast_context == "request" and not told.request)):
        return None
    label = cut(" ".join(materia.label.split()), LABEL_CHARS)
    named = label if label == materia.id else f"{label} (materia {materia.id})"
    return Placed(f"Your place: {socket.id}, {named}, in the loadout {loadout}.", full, told)


class CastLayer(NamedTuple):
    """What the layer tells. It is written only when somebody reads it, since many agents never do."""

    here: Placed
    item_key: str | None
    request: str
    data: Mapping[str, JSON]
    shown: tuple[Shown, ...]
    output: str | None
    output_of: str | None
    artifact: str | None

    @property
    def text(self) -> str:
        """The layer as an agent reads it."""
        return self.written(STATE_CHARS, OUTPUT_CHARS)

    @property
    def brief(self) -> str:
        """The layer with less of the state and of the output before."""
        return self.written(BRIEF_CHARS, BRIEF_CHARS)

    def written(self, state_chars: int, output_chars: int) -> str:
        """Write the layer; empty when there is nothing to tell.

        Raises nothing, whatever the state holds, and takes time for what it tells, not for what there is.
        """
        parts = []
        if not self.here.told.request and self.request.strip():
            parts.append(f"The request:\n{self.request}")
        if self.here.full:
            item = "" if self.item_key is None else f" The item is {self.item_key}."
            parts.append(f"{self.here.place}{item}")
            parts += self._state(state_chars)
            parts += self._output(output_chars)
        return "\n\n".join(parts)

    def _state(self, most: int) -> list[str]:
        told = self.here.told.paths
        if () in told:
            return []
        data: JSON = dict(without_item(self.data, self.shown))
        for path in told:
            data = remove_path(data, path)
        return [f"The state so far, as JSON:\n{state_json(data, most)}"] if data else []

    def _output(self, most: int) -> list[str]:
        if self.here.told.output or self.output is None or not self.output.strip():
            return []
        source = f"The output of {self.output_of or 'the socket'}, completed just before:"
        return [f"{source}\n{shortened(self.output, most, self.artifact)}"]


def shortened(text: str, most: int, artifact: str | None) -> str:
    """Cut ``text`` to ``most`` characters, saying so, how long it was, and where all of it is."""
    if len(text) <= most:
        return text
    where = f"; whole in {artifact}" if artifact else ""
    notice = f"… (cut: {len(text)} characters{where})"
    return text[: max(most - len(notice), 0)] + notice


def state_json(data: Mapping[str, JSON], most: int = STATE_CHARS) -> str:
    """Write the state as JSON of at most ``most`` characters; its work items are what is cut last.

    Where they alone are too long, the rest has up to a quarter.
    """
    whole = _whole(data, "", most)
    if whole is not None:
        return whole
    if "workItems" not in data:
        return _within(data, "", most)
    items = {"workItems": data["workItems"]}
    rest = {key: value for key, value in data.items() if key != "workItems"}
    if not rest:
        return _within(items, "", most)
    shown = _whole(items, "", most)
    room = most // 4 if shown is None else max(most - len(shown), NOTICE_CHARS)
    beside = _whole(rest, "", room) or _within(rest, "", room)
    left = most - len(beside)
    if shown is None or len(shown) > left:
        shown = _within(items, "", left)
    return f"{shown[:-2]},\n{beside[2:]}"  # one object of two


def _whole(value: JSON, pad: str, room: int) -> str | None:
    """Write a value whole, but for long strings; None when it does not fit, found out without writing the rest."""
    if isinstance(value, str):
        text = encode_basestring(shortened(value, STRING_CHARS, JOURNAL))
    elif not isinstance(value, (dict, list)) or not value:
        text = pretty(without_points(value))
    else:
        inner, lines, left = f"{pad}  ", [], room - 2 * len(pad) - 4
        if len(value) * (len(inner) + 3) > left:  # each member takes a line
            return None
        for head, child in _children(value):
            text_of = _whole(child, inner, left - len(head) - 2)
            if text_of is None:
                return None
            lines.append(head + text_of)
            left -= len(inner) + len(head) + len(text_of) + 2
        text = _enclosed(value, lines, pad)
    return text if len(text) <= room else None


def _within(value: JSON, pad: str, room: int) -> str:
    """Write as much of a value as fits that does not fit whole, still as JSON; empty where not even a notice does."""
    if isinstance(value, str):
        return _short_string(value, room)
    if not isinstance(value, (dict, list)):
        return ""
    inner, lines = f"{pad}  ", list[str]()
    left = room - 2 * len(pad) - NOTICE_CHARS
    for head, child in _children(value):
        space = left - len(inner) - len(head) - 2
        text = _whole(child, inner, space)
        if text is None:
            text = _within(child, inner, space) if space >= NOTICE_CHARS else ""
            lines += [head + text] if text else []
            break
        lines.append(head + text)
        left = space - len(text)
    missing = len(value) - len(lines)
    if missing:
        notice = f"{missing} of {len(value)} entries are left out; whole in {JOURNAL}"
        lines.append(f'"…": "{notice}"' if isinstance(value, dict) else f'"… {notice}"')
    text = _enclosed(value, lines, pad)
    return text if len(text) <= room else ""


def _children(value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield what stands before each member, and the member."""
    if isinstance(value, dict):
        yield from ((f"{encode_basestring(key)}: ", child) for key, child in value.items())
    else:
        yield from (("", child) for child in value)


def _enclosed(value: JSON, lines: list[str], pad: str) -> str:
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{pad}  " + f",\n{pad}  ".join(lines) + f"\n{pad}{end}"


def _short_string(text: str, room: int) -> str:
    """Write a string cut to fit; written as JSON, a character may take several."""
    most = min(room - 2, STRING_CHARS)
    while most >= NOTICE_CHARS:
        written = encode_basestring(shortened(text, most, JOURNAL))
        if len(written) <= room:
            return written
        most //= 2
    return ""
