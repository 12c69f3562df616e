"""Escaping of untrusted text, HTML builders, and word diffs.

Text from models, loadouts and processes is hostile until it has been escaped here. There are three steps, in this
order: :func:`shorten` limits the length of a string, :func:`plain` replaces dangerous characters, and
:func:`esc` also escapes the text for HTML and XML (it calls :func:`plain` itself).

The HTML builders (tables, JSON trees, panels, badges) escape their arguments and return :class:`Html`. They do not
escape an argument that is already :class:`Html`. Concatenating an :class:`Html` with ``+`` returns an ordinary string,
which the next builder escapes.
"""

from __future__ import annotations

import html
import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from materia_nb.errors import PDI, count_open_isolates, plain
from materia_nb.jsonvalue import JSON, MISSING, compact, equal_json

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of a word diff, each preceded by a sign: ``-`` (deleted), ``+`` (inserted) or a space (unchanged)."""

_WORD: Final = re.compile(r"\w+|\s+|.")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_MAX_DIFF_WORDS: Final = 800
"""Maximum length of text to compare by word, in words. Longer text is compared by line to save time."""
_CONTEXT_CHARS: Final = 120  # Number of unchanged characters that are displayed before and after a change.


@lru_cache(64)  # An open panel draws the same texts again and again.
def word_parts(a: str, b: str) -> Parts:
    """Return the word diff of two texts, with long unchanged passages reduced to the text around each change."""
    parts: list[tuple[str, str]] = []
    for sign, text in _diff_by_line(a, b):
        if parts and parts[-1][0] == sign:
            parts[-1] = sign, parts[-1][1] + text
        elif text:
            parts.append((sign, text))
    last = len(parts) - 1
    return tuple(
        (sign, text if sign != " " else _near_changes(text, first=not index, last=index == last))
        for index, (sign, text) in enumerate(parts)
    )


def _diff_by_line(a: str, b: str) -> Iterator[tuple[str, str]]:
    """Yield the word diff of two texts. Equal lines are matched first, then the words in lines that differ."""
    for old, new, is_equal in _aligned_pieces(_LINE.findall(a), _LINE.findall(b)):
        if is_equal:
            yield " ", old
            continue
        old_and_new_words = _WORD.findall(old), _WORD.findall(new)
        if max(map(len, old_and_new_words)) > _MAX_DIFF_WORDS:
            yield from (("-", old), ("+", new))
            continue
        for removed, added, is_equal_word in _aligned_pieces(*old_and_new_words):
            yield from [(" ", removed)] if is_equal_word else [("-", removed), ("+", added)]


def _aligned_pieces(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield a piece of each sequence, with True if the two pieces are equal.

    Whitespace between two changes does not split a piece.
    """
    old_pieces: list[str] = []
    new_pieces: list[str] = []
    for operation, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        common = "".join(a[i:j])
        if operation == "equal" and (common.strip() or not (old_pieces or new_pieces)):
            if old_pieces or new_pieces:
                yield "".join(old_pieces), "".join(new_pieces), False
                old_pieces, new_pieces = [], []
            yield common, common, True
        else:
            old_pieces += a[i:j]
            new_pieces += b[k:m]
    if old_pieces or new_pieces:
        yield "".join(old_pieces), "".join(new_pieces), False


def _near_changes(text: str, *, first: bool, last: bool) -> str:
    """Shorten a long unchanged passage to the text next to the changes before and after it."""
    if len(text) <= 3 * _CONTEXT_CHARS:
        return text
    beginning = "" if first else text[:_CONTEXT_CHARS]
    return f"{beginning} … {'' if last else text[-_CONTEXT_CHARS:]}"


ELLIPSIS: Final = "…"
_WHITE_SPACE: Final = re.compile(r"\s+")
_HARMLESS_TEXT: Final = re.compile(r"(?:[!-~]+(?: [!-~]+)*)?")
"""Pattern of one-line text that is safe to display: printable ASCII words separated by single spaces."""
_JOINER, _KEYCAP = "\u200d", "\u20e3"


def esc(text: object) -> str:
    """Escape text for HTML and XML, both for character data and for quoted attributes."""
    return html.escape(plain(text), quote=True)


def _joins_previous(char: str) -> bool:
    """Return True if ``char`` combines with the character before it."""
    return (
        char in (_JOINER, _KEYCAP)
        or "\ufe00" <= char <= "\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _safe_cut(text: str, position: int) -> int:
    """Move the position of a cut back so that it does not split an emoji, a flag or an accented letter."""
    cut_position = position
    for _ in range(16):
        if cut_position <= 0 or cut_position >= len(text):
            return max(cut_position, 0)
        if _joins_previous(text[cut_position]) or text[cut_position - 1] == _JOINER:
            cut_position -= 1
            continue
        if _is_flag(text[cut_position]):
            flag_count = 0
            while flag_count < cut_position and _is_flag(text[cut_position - 1 - flag_count]):
                flag_count += 1
            if flag_count % 2:
                cut_position -= 1
        return cut_position
    return position  # With this many combining characters, the text is cut anyway.


def shorten(text: object, limit: int) -> str:
    """Return ``text`` on one line, shortened to at most ``limit`` characters with an ellipsis at the end.

    The result is not escaped: pass it to :func:`esc` or :func:`plain`.
    """
    value = text if isinstance(text, str) else str(text)
    beginning = value[: 20 * limit + 200]
    line = _WHITE_SPACE.sub(" ", beginning).strip()
    if len(line) <= limit and len(beginning) == len(value):
        return line
    return cut_off(line, max(0, limit - 1))


def cut_off(line: str, length: int) -> str:
    """Return the first ``length`` characters of a line, followed by an ellipsis.

    Bidirectional isolates that the cut leaves open are closed.
    """
    shortened = line[: _safe_cut(line, length)].rstrip()
    return shortened + ELLIPSIS + PDI * (count_open_isolates(shortened) or 0)


def part(text: object, limit: int = 64) -> str:
    """Return untrusted text shortened to one line and free of control characters, so that a message can include it."""
    if type(text) is str and len(text) <= limit and _HARMLESS_TEXT.fullmatch(text):
        return text
    return plain(shorten(text, limit))


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a string, with its line breaks.

    A shortened string ends with a note of its full length.
    """
    if len(text) <= limit:
        return text
    return f"{text[: _safe_cut(text[: limit + 40], limit)]}{ELLIPSIS} [{len(text):,} characters in total]"


_TEXT_COLOUR: Final = "var(--jp-ui-font-color1, inherit)"
_RED: Final = "#d5404d"
_SOFT_COLOUR: Final = "var(--jp-ui-font-color2, #7d8590)"
_BORDER_COLOUR: Final = "var(--jp-border-color2, #9aa3ad66)"
_MONO_FONT: Final = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"
_CELL_STYLE: Final = "padding:3px 6px;text-align:left;vertical-align:top"
_ROW_START: Final = f'<tr style="border-bottom:1px solid {_BORDER_COLOUR}">'
_HIGHLIGHTED_ROW_START: Final = f'<tr style="border-bottom:1px solid {_BORDER_COLOUR};background:#e0a10026">'
_KEEP_SPACE_STYLE: Final = "white-space:pre-wrap;overflow-wrap:anywhere"
"""Inline style that keeps whitespace and breaks long words. It is inline because notebooks remove style sheets."""
_SIMPLE_TEXT: Final = re.compile(r"\S{0,20}(?: \S{1,20})*")
"""Pattern of text that needs no inline style: short words separated by single spaces."""
# The table scrolls horizontally if space is narrow. In a flex layout, this needs a track that can shrink to 0.
_SCROLL_STYLE: Final = "display:grid;grid-template-columns:minmax(0,1fr);overflow-x:auto"
_MAX_CELL_CHARS: Final = 2000
_MAX_LINE_CHARS: Final = 20_000
_SHORT_CHARS: Final = 16
_READABLE_CHARS: Final = 16
_SAMPLED_CHARS: Final = 500
_MAX_STRING_CHARS: Final = 2000
_MAX_CHILDREN: Final = 200
_MAX_NODES: Final = 4000
_MAX_DEPTH: Final = 40


class Html(str):
    """HTML markup in which all text has been escaped."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def html_text(value: object, limit: int = _MAX_CELL_CHARS) -> Html:
    """Escape a value as text with line breaks, cut at ``limit`` characters.

    :class:`Html` is returned unchanged, and None becomes an empty string.
    """
    if isinstance(value, Html):
        return value
    text = "" if value is None else value if isinstance(value, str) else str(value)
    text = clip(text, limit)
    style = "" if _SIMPLE_TEXT.fullmatch(text) else f' style="{_KEEP_SPACE_STYLE}"'
    return Html(f"<bdi{style}>{esc(text)}</bdi>")


def html_join(parts: Iterable[object]) -> Html:
    """Join parts into one :class:`Html`, and escape the parts that are plain text."""
    return Html("".join(html_text(part) for part in parts))


def html_pre(text: str, limit: int = 20_000) -> Html:
    """Return HTML that displays text in a fixed-width font, cut at ``limit`` characters."""
    return Html(
        f'<pre style="margin:4px 0;padding:6px 8px;border:1px solid {_BORDER_COLOUR};border-radius:4px;color:{_TEXT_COLOUR};'
        "font-size:0.92em;white-space:pre-wrap;word-break:normal;"
        f'overflow-wrap:anywhere;max-height:32em;overflow:auto"><bdi>{esc(clip(text, limit))}</bdi></pre>'
    )


def html_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "", marked: int | None = None
) -> Html:
    """Return an HTML table. The cells are text or :class:`Html`. The row with the index ``marked`` is highlighted."""
    rows = [tuple(row) for row in rows]
    widths = (_min_column_width(column) for column in zip(headers, *rows, strict=True))
    header_cells = "".join(
        f'<th scope="col" style="{_CELL_STYLE};min-width:{width}ch">{html_text(name)}</th>'
        for name, width in zip(headers, widths, strict=True)
    )
    body_rows = "".join(
        (_HIGHLIGHTED_ROW_START if index == marked else _ROW_START)
        + "".join(f'<td style="{_CELL_STYLE}">{html_text(cell)}</td>' for cell in row)
        + "</tr>"
        for index, row in enumerate(rows)
    )
    title = f'<caption style="text-align:left;color:{_SOFT_COLOUR}">{html_text(caption)}</caption>' if caption else ""
    return Html(
        f'<div style="{_SCROLL_STYLE}"><table style="border-collapse:collapse;color:{_TEXT_COLOUR};font-size:0.95em;'
        f'justify-self:start">'
        f'{title}<thead style="color:{_SOFT_COLOUR}">{_ROW_START}{header_cells}</tr></thead><tbody>{body_rows}</tbody></table></div>'
    )


def _min_column_width(column: Iterable[object]) -> int:
    """Return the minimum width of a column, in ``ch`` units, at which short texts and words are not broken."""
    texts = [cell[:_SAMPLED_CHARS] for cell in column if isinstance(cell, str) and cell]
    short_words = [word for text in texts for word in ([text] if len(text) <= _SHORT_CHARS else text.split())]
    longest = max((len(word) + 1 for word in short_words if len(word) <= _SHORT_CHARS), default=0)
    return max(longest, _READABLE_CHARS) if any(len(text) > _READABLE_CHARS for text in texts) else longest


class _TreeBuilder:
    """Converts a JSON value to tree nodes, and stops at a maximum number of nodes."""

    def __init__(self) -> None:
        self.remaining_nodes = _MAX_NODES

    def diff_node(self, name: str, old: JSON, value: JSON, depth: int) -> dict[str, JSON]:
        """Return a node with the differences between two values. Each leaf has its word diff as ``parts``."""
        self.remaining_nodes -= 1
        node: dict[str, JSON] = {"name": plain(shorten(name, 120))}
        pairs = _paired_children(old, value)
        if pairs is None or depth >= _MAX_DEPTH:
            parts: list[JSON] = [[sign, text] for sign, text in word_parts(*_comparable_texts(old, value))]
            return {**node, "parts": parts}
        changed_pairs = {key: pair for key, pair in pairs.items() if not equal_json(*pair)}
        visible_pairs = list(changed_pairs.items())[: max(0, min(_MAX_CHILDREN, self.remaining_nodes))]
        children: list[JSON] = [self.diff_node(key or '""', *pair, depth + 1) for key, pair in visible_pairs]
        unchanged_count = len(pairs) - len(changed_pairs)
        one_sided = "added" if old is MISSING else "removed" if value is MISSING else ""
        summary = f"{unchanged_count} unchanged" if unchanged_count else one_sided
        return {**node, "words": summary, "children": children, "more": len(changed_pairs) - len(visible_pairs)}

    def value_node(self, name: str, value: JSON, depth: int) -> dict[str, JSON]:
        self.remaining_nodes -= 1
        node: dict[str, JSON] = {"name": plain(shorten(name, 120))}
        if not isinstance(value, dict | list) or not value:
            visible = value[:_MAX_STRING_CHARS] if isinstance(value, str) else value
            full_length = len(value) if isinstance(value, str) and visible != value else None
            return {**node, "kind": type(value).__name__, "text": plain(compact(visible)), "cut": full_length}
        node["words"] = f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
        pairs = value.items() if isinstance(value, dict) else ((str(n), item) for n, item in enumerate(value))
        children: list[JSON] = []
        for key, child in pairs:
            if len(children) >= _MAX_CHILDREN or self.remaining_nodes <= 0 or depth >= _MAX_DEPTH:
                break
            children.append(self.value_node(key or '""', child, depth + 1))
        return {**node, "children": children, "more": len(value) - len(children)}


def _paired_children(a: JSON, b: JSON) -> dict[str, tuple[JSON, JSON]] | None:
    """Pair the children of two objects or of two lists, or return None for other values.

    If one of the two values is missing, it is treated as an empty object or list.
    """
    if a is MISSING and isinstance(b, dict | list) and b:
        a = type(b)()
    elif b is MISSING and isinstance(a, dict | list) and a:
        b = type(a)()
    if isinstance(a, dict) and isinstance(b, dict):
        return {key: (a.get(key, MISSING), b.get(key, MISSING)) for key in {**a, **b}}
    if isinstance(a, list) and isinstance(b, list):
        return {str(index): pair for index, pair in enumerate(zip_longest(a, b, fillvalue=MISSING))}
    return None


def _comparable_texts(a: JSON, b: JSON) -> list[str]:
    """Return two values as texts to compare: unchanged if both are strings, or else as JSON."""
    are_strings = all(isinstance(value, str) or value is MISSING for value in (a, b))
    texts = ("" if value is MISSING else value if are_strings else compact(value) for value in (a, b))
    return [plain(clip(text, _MAX_STRING_CHARS)) for text in texts]


def json_tree(value: JSON, name: str = "", old: JSON = MISSING) -> dict[str, JSON]:
    """Return a JSON value as a tree with a limited number of nodes. With ``old``, return only the differences.

    Each node has a ``name``. A branch has a summary (``words``), its ``children``, and the number of omitted children
    (``more``). A leaf has its ``kind``, its ``text`` and, if the text is shortened, the full length of the text
    (``cut``). In a comparison, a leaf has its word diff (``parts``) instead.
    """
    builder = _TreeBuilder()
    return builder.value_node(name, value, 0) if old is MISSING else builder.diff_node(name, old, value, 0)


def html_json(value: JSON, open_depth: int = 1, *, name: str = "", old: JSON = MISSING) -> Html:
    """Return HTML that displays a JSON value as a collapsible tree, with the first ``open_depth`` levels expanded.

    Long strings and long lists are shortened, with a note of their size.
    """
    body = _node_html(json_tree(value, name, old), open_depth)
    return Html(f'<div style="font-family:{_MONO_FONT};font-size:0.92em;color:{_TEXT_COLOUR}">{body}</div>')


def _node_html(node: Any, opened: int) -> str:
    label = f'<bdi style="color:#3b82c4">{html.escape(node["name"])}</bdi>: ' if node["name"] else ""
    if "parts" in node:
        return f"<div>{label}{html_parts(node['parts'])}</div>"
    if "children" not in node:
        colour = "#2e9e62" if node["kind"] == "str" else "#b06fd1"
        note = f' <i style="color:{_SOFT_COLOUR}">… {node["cut"]:,} characters</i>' if node["cut"] else ""
        style = f"color:{colour};{_KEEP_SPACE_STYLE}"
        return f'<div>{label}<bdi style="{style}">{html.escape(node["text"])}</bdi>{note}</div>'
    more = f'<div style="color:{_SOFT_COLOUR}">… {node["more"]:,} more</div>' if node["more"] else ""
    children = "".join(_node_html(child, opened - 1) for child in node["children"])
    return (
        f'<details{" open" if opened > 0 else ""}><summary>{label}<span style="color:{_SOFT_COLOUR}">{node["words"]}</span>'
        f'</summary><div style="margin-left:1.2em">{children}{more}</div></details>'
    )


_DIFF_TAGS: Final = {"-": ("del", "background:#d5404d26"), "+": ("ins", "background:#2e9e6233")}


def html_parts(parts: Iterable[tuple[str, str]]) -> Html:
    """Return the result of :func:`~materia_nb.display.escape.word_parts` as HTML with deletions and insertions."""
    markup = []
    for sign, text in parts:
        tag, style = _DIFF_TAGS.get(sign, ("span", ""))
        markup.append(f'<{tag} style="{style}">{esc(text)}</{tag}>' if style else esc(text))
    return Html(f'<bdi style="white-space:pre-wrap;overflow-wrap:anywhere">{"".join(markup)}</bdi>')


def parts_as_text(parts: Iterable[Sequence[str]]) -> str:
    """Return a word diff as text in the usual notation, ``[-deleted-]`` and ``{+inserted+}``."""
    templates = {"-": "[-{}-]", "+": "{{+{}+}}"}
    return "".join(templates.get(sign, "{}").format(text) for sign, text in parts)


def changed_leaves(node: Any, parent_path: str = "") -> Iterator[str]:
    """Yield a line ``path: change`` for each leaf in a tree of differences."""
    path = f"{parent_path}.{node['name']}" if parent_path else node["name"]
    if "parts" in node:
        yield f"{path}: {parts_as_text(node['parts'])}"
        return
    for child in node["children"]:
        yield from changed_leaves(child, path)
    notes = [f"{node['more']:,} more"] if node["more"] else []
    if notes := [*notes, *([node["words"]] if node["words"] else [])]:
        yield f"{path}: … {', '.join(notes)}"


def html_panel(title: str, body: object) -> Html:
    """Return HTML that displays ``body`` in a frame with a title."""
    return Html(
        f'<section aria-label="{esc(shorten(title, 200))}" style="border:1px solid {_BORDER_COLOUR};border-radius:6px;'
        f'padding:8px 12px;margin:6px 0;color:{_TEXT_COLOUR}"><div style="font-weight:600;margin-bottom:4px">'
        f"{html_text(shorten(title, 200))}</div>{html_text(body)}</section>"
    )


def html_link(href: str, text: str) -> Html:
    """Return an HTML link to ``href``, which must be an address generated by this package."""
    return Html(f'<a href="{esc(href)}"><bdi>{esc(clip(text, _MAX_CELL_CHARS))}</bdi></a>')


def html_bar(text: str, positions: Sequence[float]) -> Html:
    """Return HTML that displays text on top of a bar.

    ``positions`` are the start and end of the bar, then those of its highlighted part, as fractions from 0 to 1.
    """
    gradients = (
        f"linear-gradient(90deg,transparent {start:.1%},{colour} {start:.1%} {end:.1%},transparent {end:.1%})"
        for start, end, colour in ((*positions[2:], "#3b82c488"), (*positions[:2], "#3b82c455"))
    )
    return Html(f'<div style="padding:0 4px;background:{",".join(gradients)}">{html_text(text)}</div>')


_TONE_STYLES: Final = {"bad": f"color:{_RED};font-weight:600", "quiet": "opacity:0.75"}


def html_line(text: str, tone: str = "") -> Html:
    """Return HTML that displays text on one line, such as a long command to approve.

    The tone ``bad`` makes the text red, and ``quiet`` makes it pale.
    """
    role = ' role="alert"' if tone == "bad" else ""
    style = f' style="{_TONE_STYLES[tone]}"' if tone in _TONE_STYLES else ""
    return Html(f"<div{role}{style}>{html_text(text, _MAX_LINE_CHARS)}</div>")


def html_lines(lines: Iterable[str]) -> Html:
    """Return HTML that displays each text on a separate line."""
    return Html("".join(map(html_line, lines)))


def html_heading(text: str) -> Html:
    """Return HTML that displays a heading in bold type."""
    return Html(f'<div style="margin-top:6px"><b>{html_text(text)}</b></div>')


def html_facts(facts: Iterable[tuple[str, str]]) -> Html:
    """Return HTML that displays names and their values in two columns."""
    rows = "".join(
        f'<div style="opacity:0.75;white-space:nowrap">{html_text(name)}</div><div>{html_text(value)}</div>'
        for name, value in facts
    )
    return Html(f'<div style="display:grid;grid-template-columns:max-content 1fr;gap:1px 12px">{rows}</div>')


def html_fold(title: str, body: object, *, opened: bool = False, anchor: str = "") -> Html:
    """Return HTML for a collapsible section with a title, and with ``anchor`` as its id unless ``anchor`` is empty."""
    id_attribute = f' id="{esc(anchor)}"' if anchor else ""
    return Html(
        f"<details{id_attribute}{' open' if opened else ''}><summary>{html_text(shorten(title, 200))}</summary>"
        f'<div style="margin-left:1.2em">{html_text(body)}</div></details>'
    )


_BADGES: Final = {
    "complete": ("✓", "#2e9e62"),
    "ok": ("✓", "#2e9e62"),
    "failed": ("✖", _RED),
    "problem": ("✖", _RED),
    "running": ("▶", "#3b82c4"),
    "waiting": ("▶", "#b97f00"),
    "held": ("‖", "#b97f00"),
    "paused": ("▮", "#b97f00"),
    "aborted": ("■", "#7d8590"),
    "stopped": ("■", "#7d8590"),
}


def badge_symbol(status: str) -> tuple[str, str]:
    """Return the symbol and the colour for a status such as ``failed: timeout``."""
    return _BADGES.get(status[:80].partition(":")[0].partition(",")[0], ("●", "#7d8590"))


def status_badge(status: str) -> Html:
    """Return HTML that displays a status with a coloured symbol.

    The symbol alone identifies the status, because some readers cannot distinguish the colours.
    """
    symbol, colour = badge_symbol(status)
    return Html(
        f'<span style="border:1.5px solid {colour};border-radius:9px;padding:0 8px;white-space:nowrap">'
        f'<span aria-hidden="true" style="color:{colour}">{symbol}</span> {esc(shorten(status, 60))}</span>'
    )


_PAGE_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2630;--bg:#fff;--soft:#5c6672;--rule:#d5dae0}
@media (prefers-color-scheme:dark){:root{--fg:#e4e8ed;--bg:#14181d;--soft:#9aa5b1;--rule:#333b45}}
body{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--fg);background:var(--bg);
max-width:70rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
--jp-ui-font-color1:var(--fg);--jp-ui-font-color2:var(--soft);--jp-border-color2:var(--rule)}
h1{font-size:1.5rem}summary{cursor:pointer}a{color:#3b82c4}svg{max-width:100%;height:auto}
body>details{border-left:3px solid var(--rule);padding-left:.8rem;margin:.6rem 0}
"""
_SECURITY_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_page(title: str, body: Html, script: str = "") -> str:
    """Return a complete HTML page without external resources. Its only script is ``script``, if specified."""
    policy, code = _SECURITY_POLICY, ""
    if script:
        digest = b64encode(sha256(script.encode()).digest()).decode()
        policy, code = f"{_SECURITY_POLICY}; script-src 'sha256-{digest}'", f"<script>{script}</script>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title)}</title><style>{_PAGE_STYLE}</style></head><body>"
        f"<h1>{esc(title)}</h1>{body}{code}</body></html>\n"
    )
