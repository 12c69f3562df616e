"""The parts of a prompt, and texts and JSON shortened to a number of characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.jsonvalue import JSON, pretty, whole_floats_as_integers

PartName: TypeAlias = Literal[
    "request",
    "place",
    "state",
    "handoffs",
    "previous",
    "task",
    "item",
    "before",
    "reasons",
    "changed",
    "given",
    "draft",
    "repair",
    "resume",
    "finalize",
    "return",
]

HEADINGS: Final[Mapping[PartName, str]] = {
    "request": "Request",
    "place": "Where you are",
    "state": "State",
    "handoffs": "Handoffs",
    "previous": "Output just before",
    "task": "Your task",
    "item": "Work item",
    "before": "Your answer before",
    "reasons": "Why it came back",
    "changed": "Changed by a person",
    "given": "What you were given",
    "draft": "Working with a person",
    "repair": "What was wrong with the answer",
    "resume": "Going on",
    "finalize": "Handing over",
    "return": "What to return",
}
"""Heading of each part, by the name with which a person edits the part."""

STRING_CHARS: Final = 2_000
STATE_CHARS: Final = 12_000
OUTPUT_HEAD, OUTPUT_TAIL, OUTPUT_CHARS = 5_000, 2_500, 8_000
NOTICE_CHARS: Final = 120
"""Room in which it can be said that entries are left out."""


def middle(text: str, max_chars: int) -> str:
    """Cut a text in its middle to ``most`` characters, saying how many are left out."""
    if len(text) <= max_chars:
        return text
    notice = f"\n[… {len(text) - max_chars:,} or more characters omitted …]\n"
    room = max(max_chars - len(notice), 0)
    head = room * 2 // 3
    tail = room - head
    return text[:head] + notice + (text[-tail:] if tail else "")


def bounded(text: str, max_chars: int) -> tuple[str, str]:
    """Return a text shortened to its beginning and end if it is too long, and a note about the cut."""
    if len(text) <= max_chars:
        return text, ""
    if max_chars < NOTICE_CHARS:
        return "", "no room"
    if max_chars >= OUTPUT_CHARS:
        left = len(text) - OUTPUT_HEAD - OUTPUT_TAIL
        cut_out = f"\n[… {left:,} characters omitted …]\n"
        return text[:OUTPUT_HEAD] + cut_out + text[-OUTPUT_TAIL:], f"{left:,} of {len(text):,} characters omitted"
    return middle(text, max_chars), f"shortened to {max_chars:,} of {len(text):,} characters"


def state_json(data: Mapping[str, JSON], max_chars: int = STATE_CHARS) -> str:
    """Write the state as JSON of at most ``most`` characters; long strings lose their middle, then entries are left out."""
    return _whole(data, "", max_chars) or _within(data, "", max_chars)


def _whole(value: JSON, pad: str, room: int) -> str | None:
    """Write a value whole, but for long strings; None when it does not fit, found out without writing the rest."""
    if isinstance(value, str):
        text = encode_basestring(middle(value, STRING_CHARS))
    elif not isinstance(value, (dict, list)) or not value:
        text = pretty(whole_floats_as_integers(value))
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
        notice = f"{missing} of {len(value)} entries omitted"
        lines.append(f'"…": "{notice}"' if isinstance(value, dict) else f'"… {notice}"')
    text = _enclosed(value, lines, pad)
    return text if len(text) <= room else ""


def _children(value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield each member of an object or list with the text before it."""
    if isinstance(value, dict):
        yield from ((f"{encode_basestring(key)}: ", child) for key, child in value.items())
    else:
        yield from (("", child) for child in value)


def _enclosed(value: JSON, lines: list[str], pad: str) -> str:
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{pad}  " + f",\n{pad}  ".join(lines) + f"\n{pad}{end}"


def _short_string(text: str, room: int) -> str:
    """Write a string cut to fit; written as JSON, a character may take several."""
    max_chars = min(room - 2, STRING_CHARS)
    while max_chars >= NOTICE_CHARS:
        written = encode_basestring(middle(text, max_chars))
        if len(written) <= room:
            return written
        max_chars //= 2
    return ""


def tokens_of(characters: int) -> int:
    """Estimate the tokens of a text: one for four characters."""
    return -(-characters // 4)


class PromptPart(NamedTuple):
    """One part of a prompt.

    Attributes:
        name: which part it is.
        text: what the agent reads under the heading; empty where the part is left out.
        note: why it was left out, or what of it was cut; empty where it is whole.
        quotes: whether it quotes what others wrote, other than the request and the work item.
        tells: the values that it tells, such as ``("state", "plan")`` or ``("handoff", "3")``.
    """

    name: PartName
    text: str
    note: str = ""
    quotes: bool = False
    tells: tuple[tuple[str, str], ...] = ()

    @property
    def heading(self) -> str:
        """Heading of the part."""
        return HEADINGS[self.name]


def cut_to(text: str, max_chars: int) -> str:
    """Cut ``text`` to at most ``most`` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
