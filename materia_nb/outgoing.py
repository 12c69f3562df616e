"""The door for text that leaves: into an error, a traceback, a name that is shown. Keys are cut out, and it is harmless as text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from traceback import format_exception
from typing import Any, Final
from urllib.parse import quote

_NAMES: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PROVIDERS: Final = re.compile(r".*_API_KEY|AWS_SECRET_ACCESS_KEY|AWS_BEARER_TOKEN_BEDROCK|HF_TOKEN")
_SHORTEST: Final = 6  # a shorter value is no key, and would be cut out of ordinary words
_MIXED, _LONG = (
    12,
    16,
)  # from which length on a value looks like a key, with other signs than letters or without
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD: Final = 24
_PIECE: Final = 8  # so much of a key that was cut in two is cut out as well
_CUT: Final = "***"

_named: set[str] = set()
_seen: tuple[object, Sequence[str]] | None = None


def holds_key(variable: str) -> None:
    """Take the value of an environment variable for a key from now on, whatever its name and its look."""
    _named.add(variable)


def scrubbed(text: str, *more: str) -> str:
    """Return text without keys, and without ``more``.

    Keys are the values of the variables that :func:`holds_key` named and of those that providers of
    models read; of other variables that are called a key, token, secret, password or credential
    only values that look like one: ``postgres`` is a word that files have for other reasons.
    """
    for key in _keys(more) if more else _known_keys():
        text = text.replace(key, _CUT)
    return text


def scrubbed_part(text: str, *more: str, start: bool = False, end: bool = False) -> str:
    """Do as :func:`scrubbed` with a part of a longer text, which may begin or end within a key.

    Args:
        text: the part.
        more: what else to cut out.
        start: whether something was left out before it.
        end: whether something was left out behind it.
    """
    keys = _keys(more)
    text = scrubbed(text, *more)
    pieces = [key[:size] for key in keys for size in range(_PIECE, len(key))] if end else []
    if piece := max(filter(text.endswith, pieces), key=len, default=""):
        text = text.removesuffix(piece) + _CUT
    pieces = [key[-size:] for key in keys for size in range(_PIECE, len(key))] if start else []
    if piece := max(filter(text.startswith, pieces), key=len, default=""):
        text = _CUT + text.removeprefix(piece)
    return text


def secret_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a command that are keys by the option before them: ``--api-key VALUE`` or ``=VALUE``."""
    found = []
    for option, value in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, joined = option.partition("=")
        if name.startswith("-") and _NAMES.search(name):
            found.append(joined if equals else value)
    return tuple(found)


def scrubbed_bytes(data: bytes, *more: str, end: bool = False) -> bytes:
    """Do as :func:`scrubbed_part` with the output of a process, and leave bytes that are no text as they are."""
    text = data.decode(errors="surrogateescape")
    return scrubbed_part(text, *more, end=end).encode(errors="surrogateescape")


def scrubbed_json(value: Any) -> Any:
    """Do as :func:`scrubbed` with every string in a JSON value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    clean = scrubbed(text)
    return value if clean == text else json.loads(clean)


def _keys(more: Sequence[str]) -> list[str]:
    """Return what is to be cut out, the longest first, since one key may be the beginning of another."""
    found = {*_known_keys(), *(one for one in more if len(one) >= _SHORTEST)}
    return sorted(found, key=len, reverse=True)


def _known_keys() -> Sequence[str]:
    """Return the keys in the environment in all their forms, the longest first, worked out again when it has changed.

    Every text that an agent or a process gives is searched, and comparing what lies under ``os.environ`` takes
    a hundredth of reading it name by name.
    """
    global _seen  # noqa: PLW0603 - one environment, one cache
    now = ([*os.environ._data.items()], frozenset(_named))  # type: ignore[attr-defined]  # noqa: SLF001
    if _seen is None or _seen[0] != now:
        values = [value for name, value in os.environ.items() if _is_key(name, value)]
        forms = {one for value in values for one in _forms(value) if len(one) >= _SHORTEST}
        _seen = (now, sorted(forms, key=len, reverse=True))
    return _seen[1]


def _forms(key: str) -> Iterator[str]:
    """How a key may be written: as it is, escaped in JSON or in an address, and line by line."""
    yield key
    yield json.dumps(key, ensure_ascii=False)[1:-1]
    yield quote(key, safe="", errors="replace")
    if "\n" in key:
        yield from (
            line for each in key.splitlines() if len(line := each.strip()) >= _LONG and line[:5] != "-----"
        )


def _is_key(name: str, value: str) -> bool:
    if name in _named or _PROVIDERS.fullmatch(name):
        return True
    if not _NAMES.search(name) or (len(value) <= _LONGEST_WORD and _WORD.fullmatch(value)):
        return False
    return len(value) >= _LONG or (len(value) >= _MIXED and not value.isalpha() and not value.isdecimal())


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
    """Return text as it may leave: without keys (:func:`~materia_nb.outgoing.scrubbed`), and :func:`plain`."""
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
