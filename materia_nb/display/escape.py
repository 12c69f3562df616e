"""Text from models, loadouts and processes is hostile until it has been through here.

Three steps, in this order: :func:`shorten` bounds, :func:`plain` makes it harmless as text,
:func:`esc` makes it harmless inside HTML and XML too (and includes :func:`plain`).
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

ELLIPSIS: Final = "…"
_FSI, _PDI = "\u2068", "\u2069"

# Everything that XML 1.0 forbids, plus what a terminal or a bidirectional renderer would act upon.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MAY_BE_RTL: Final = re.compile(
    "[\u0590-\u08ff\u200f\u061c\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATES: Final = re.compile(f"[{_FSI}{_PDI}]")
# A pile of accents on one letter grows over the lines around it; real text has at most three or four.
_PILE: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_SPACE: Final = re.compile(r"\s+")
_CSS_VALUE: Final = re.compile(
    r"#[0-9A-Fa-f]{3,8}|[A-Za-z][A-Za-z-]{0,39}|-?\d{1,6}(\.\d{1,4})?(px|em|rem|ch|%)?"
)
_JOINER, _KEYCAP = "\u200d", "\u20e3"


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


def _open_isolates(text: str) -> int | None:
    """Count the isolates left open at the end of ``text``; None if one is closed that was not opened."""
    depth = 0
    for mark in _ISOLATES.findall(text):
        depth += 1 if mark == _FSI else -1
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
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    value = _PILE.sub(r"\1", _UNSAFE.sub(_visible, value))
    if _open_isolates(value) != 0:
        value = _ISOLATES.sub(_visible, value)
    return f"{_FSI}{value}{_PDI}" if _MAY_BE_RTL.search(value) else value


def esc(text: object) -> str:
    """Return ``text`` safe as HTML or XML character data and inside a quoted attribute."""
    return html.escape(plain(text), quote=True)


def _joins_previous(char: str) -> bool:
    """Whether ``char`` belongs to the character before it on the screen."""
    return (
        char in (_JOINER, _KEYCAP)
        or "\ufe00" <= char <= "\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _safe_cut(text: str, at: int) -> int:
    """Move a cut back so that it does not fall inside an emoji, a flag or an accented letter."""
    cut = at
    for _ in range(16):
        if cut <= 0 or cut >= len(text):
            return max(cut, 0)
        if _joins_previous(text[cut]) or text[cut - 1] == _JOINER:
            cut -= 1
            continue
        if _is_flag(text[cut]):
            run = 0
            while run < cut and _is_flag(text[cut - 1 - run]):
                run += 1
            if run % 2:
                cut -= 1
        return cut
    return at  # an absurd pile of marks: cut it anyway


def shorten(text: object, limit: int) -> str:
    """Return ``text`` on one line in at most ``limit`` characters, the last one an ellipsis if it was cut.

    Not yet escaped: pass the result to :func:`esc` or :func:`plain`.
    """
    value = text if isinstance(text, str) else str(text)
    head = value[: 20 * limit + 200]
    line = _SPACE.sub(" ", head).strip()
    if len(line) <= limit and len(head) == len(value):
        return line
    return cut_off(line, max(0, limit - 1))


def cut_off(line: str, at: int) -> str:
    """Keep ``at`` characters of a line and an ellipsis; isolates that the cut left open are closed."""
    cut = line[: _safe_cut(line, at)].rstrip()
    return cut + ELLIPSIS + _PDI * (_open_isolates(cut) or 0)


def part(text: object, limit: int = 64) -> str:
    """Bound one piece of foreign text and make it harmless, to be put between words of our own."""
    return plain(shorten(text, limit))


def clip(text: str, limit: int) -> str:
    """Keep line breaks, and at most ``limit`` characters; a cut says how long the whole was."""
    if len(text) <= limit:
        return text
    return f"{text[: _safe_cut(text[: limit + 40], limit)]}{ELLIPSIS} [{len(text):,} characters in all]"


def css_safe(value: object, fallback: str = "inherit") -> str:
    """Return ``value`` if it is one colour, keyword or length, else ``fallback``."""
    text = str(value)
    return text if _CSS_VALUE.fullmatch(text) else fallback
