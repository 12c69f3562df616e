"""What a tool is, what it gives back, and how foreign text is made fit to be told to a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from materia_nb.jsonvalue import JSON

MOST_TEXT: Final = 32_000
"""The longest result that a model is told, in characters."""

_NAME_SHOWN: Final = 200
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TAIL_SHARE: Final = 3  # of a text that is too long the last third is kept, the rest from its beginning


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model is told of it.

    Attributes:
        name: what the model calls it by.
        description: what it does, for the model.
        parameters: its arguments as a JSON schema of type object, without additional properties.
        changes: whether it can change something, and so needs a person's leave.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    changes: bool


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a model is told of a call: ``text``, at most ``MOST_TEXT`` characters, and whether it worked."""

    text: str
    ok: bool


class Refused(Exception):
    """A call cannot be done as it was asked for. The message is for the model: what is wrong, what to do."""


def readable(text: str) -> str:
    r"""Return text without control characters: they become escapes such as ``\x1b``; line feeds and tabs stay.

    Bytes that were not UTF-8 and were decoded with ``surrogateescape`` become the same kind of escape.
    """
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def named(text: str) -> str:
    """Return a name or another short foreign text on one line, to be put between words of our own."""
    line = readable(text[:_NAME_SHOWN]).replace("\n", "\\n").replace("\t", "\\t")
    return line + "…" if len(text) > _NAME_SHOWN else line


def bounded(text: str) -> str:
    """Return text in at most :data:`MOST_TEXT` characters: its beginning, how much is left out, its end."""
    if len(text) <= MOST_TEXT:
        return text
    room = MOST_TEXT - 60
    tail = room // _TAIL_SHARE
    gap = f"\n[... {len(text) - room:,} characters left out ...]\n"
    return text[: room - tail] + gap + text[-tail:]


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\r":
        return "\\r"
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
