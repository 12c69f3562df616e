"""The door for text that leaves: into an error, a traceback, a name that is shown. Keys are cut out, and it is harmless as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from traceback import format_exception
from typing import Any, Final

from materia_nb.secrets import scrubbed

FSI, PDI = "\u2068", "\u2069"

# Everything that XML 1.0 forbids, plus what a terminal or a bidirectional renderer would act upon.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MAY_BE_RTL: Final = re.compile(
    "[\u0590-\u08ff\u200f\u061c\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATES: Final = re.compile(f"[{FSI}{PDI}]")
# A pile of accents on one letter grows over the lines around it; real text has at most three or four.
_PILE: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_BREAK: Final = re.compile("[\n\u2028\u2029]")


def _visible(match: re.Match[str]) -> str:
    """Give the sign that stands for an unsafe character."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF or 0x80 <= code <= 0x9F or code >= 0xFFFE:
        return "\ufffd"
    return f"[U+{code:04X}]"


def open_isolates(text: str) -> int | None:
    """Count the isolates left open at the end of ``text``; None if one is closed that was not opened."""
    depth = 0
    for mark in _ISOLATES.findall(text):
        depth += 1 if mark == FSI else -1
        if depth < 0:
            return None
    return depth


def plain(text: object) -> str:
    """Return ``text`` with control characters, lone surrogates and bidi controls made visible.

    Line feeds and tabs stay, carriage returns become line feeds, more than four accents on one letter are
    dropped. Text with right-to-left letters is put between isolates, so that it cannot reorder what stands
    beside it; isolates that are closed again are kept, so text that went through here may be put into more.
    """
    value = text if isinstance(text, str) else str(text)
    if value.isascii() and value.isprintable():
        return value  # most texts: there is nothing in them to look for
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    value = _PILE.sub(r"\1", _UNSAFE.sub(_visible, value))
    if open_isolates(value) != 0:
        value = _ISOLATES.sub(_visible, value)
    return f"{FSI}{value}{PDI}" if _MAY_BE_RTL.search(value) else value


def outgoing(text: object) -> str:
    """Return text as it may leave: without keys (:func:`~materia_nb.secrets.scrubbed`), and :func:`plain`."""
    return plain(scrubbed(str(text)))


def outgoing_line(text: object) -> str:
    """Return a name, a path, one sentence: as :func:`outgoing`, and what would begin a line of its own is made visible."""
    return _BREAK.sub("\u240a", outgoing(text))


def outgoing_traceback(error: BaseException) -> str:
    """Return where an exception was raised, with what it says and what caused it."""
    return outgoing("".join(format_exception(error)).rstrip())


VIEWS: Final[dict[type, Callable[[Any], Any]]] = {}
"""What makes the view that a value shows in a notebook, by its type; the modules that have views fill it in."""


def shown_by_its_view(value: object, include: object = None, exclude: object = None) -> dict[str, Any] | None:
    """Be the ``_repr_mimebundle_`` of a type below all views: that of its view, or None, for its text alone."""
    view = next((VIEWS[kind] for kind in type(value).__mro__ if kind in VIEWS), None)
    shown: dict[str, Any] | None = None if view is None else view(value)._repr_mimebundle_(include, exclude)
    return shown
