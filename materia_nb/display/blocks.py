"""Documents built from immutable blocks. Each block renders as text, as HTML, and as JSON for a panel.

A view is a function that turns values into blocks, or a :class:`Displayable` object with such a function. No other code
writes markup. Text in blocks may be hostile: this module limits its length and escapes it in the output.

A list of blocks can be written as one static HTML page without scripts or external resources, for light and dark
themes. In a notebook, blocks are displayed as MIME bundles with text, HTML and pictures.
"""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from textwrap import indent, wrap
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

from materia_nb.display.escape import (
    Html,
    Parts,
    badge_symbol,
    changed_leaves,
    clip,
    html_bar,
    html_facts,
    html_fold,
    html_heading,
    html_join,
    html_json,
    html_line,
    html_link,
    html_panel,
    html_parts,
    html_pre,
    html_table,
    json_tree,
    part,
    parts_as_text,
    status_badge,
    word_parts,
)
from materia_nb.display.text import WIDTH, table
from materia_nb.errors import named_error, plain
from materia_nb.handoff.base import Pointer
from materia_nb.jsonvalue import JSON, MISSING, pretty

CELL_WIDTH: Final = 848
"""Default width of a notebook's output area, in pixels."""
_SVG_SIZE: Final = re.compile(r' width="([\d.]+)" height="([\d.]+)"')
_MAX_PNG_BYTES: Final = 1_000_000
"""Maximum size of a PNG, in bytes. A larger PNG is omitted, because notebooks store every picture."""


def _with_palette(png: bytes) -> bytes:
    """Reduce a PNG to 256 colours to make it much smaller. If Pillow is missing, return the PNG unchanged."""
    try:
        from PIL import Image
    except ImportError:
        return png
    buffer = BytesIO()
    Image.open(BytesIO(png)).convert("RGB").quantize().save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


@lru_cache(maxsize=16)
def _cached_png(svg: str, render: Callable[..., Iterable[int]]) -> bytes:
    """Return an SVG picture as PNG. The results for the most recent pictures are cached."""
    return _with_palette(bytes(render(svg_string=svg, background="white")))


def png_of(svg: str) -> bytes | None:
    """Return an SVG picture as PNG, or None if resvg is not installed or fails, or if the PNG is too large."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        return None
    try:
        png = _cached_png(svg, svg_to_bytes)
    except Exception:  # The SVG can still be displayed.
        logging.getLogger("materia_nb.display").warning("a picture could not be converted to PNG", exc_info=True)
        return None
    return png if len(png) <= _MAX_PNG_BYTES else None


MimeBundle: TypeAlias = dict[str, Any]
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def without_surrogates(value: JSON) -> JSON:
    """Replace lone surrogates in all strings of a value, because kernel messages cannot contain them."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(child) for child in value]
    return value


def fit_to_width(svg: str, max_width: float = CELL_WIDTH, max_height: float = 10_000) -> str:
    """Scale an SVG picture down to the width of a notebook cell, because notebooks do not shrink wide pictures."""
    size = _SVG_SIZE.search(svg)
    if size is None:
        return svg
    width, height = float(size[1]), float(size[2])
    scale = min(1, max_width / width, max_height / height)
    return svg.replace(size[0], f' width="{width * scale:.0f}" height="{height * scale:.0f}"', 1)


def picture_bundle(text: str, svg: str, *, html: str | None = None) -> MimeBundle:
    """Return the MIME bundle of a picture: SVG, text, and a PNG for untrusted notebooks, which do not show SVG."""
    svg = fit_to_width(svg)
    png = png_of(svg)
    png_entry = {} if png is None else {"image/png": b64encode(png).decode("ascii")}
    return {**mime_bundle(text, svg=svg, html=html), **png_entry}


def mime_bundle(text: str, *, svg: str | None = None, html: str | None = None) -> MimeBundle:
    """Return a MIME bundle. ``text`` is the fallback for frontends that show neither pictures nor HTML."""
    contents = {"text/plain": text, "image/svg+xml": svg, "text/html": html}
    return {mime_type: without_surrogates(content) for mime_type, content in contents.items() if content is not None}


_CHILD_SELECTOR: Final = ".jp-OutputArea-child"
_LIVE_OUTPUT: Final = f"{_CHILD_SELECTOR}:has(.mnb-recorded:not(.jupyter-widgets-disconnected))"
_RECORD_CSS: Final = (
    f"{_LIVE_OUTPUT}+{_CHILD_SELECTOR},{_LIVE_OUTPUT}+{_CHILD_SELECTOR}+{_CHILD_SELECTOR},"
    # Without its widget, the output contains only JupyterLab's "model not found".
    f"{_CHILD_SELECTOR}:not(:has(>.jp-OutputArea-output>*)):has(+{_CHILD_SELECTOR} .mnb-record){{display:none!important}}"
)  # CSS for Jupyter that shows a panel's live widgets or, if there are none, the two recorded outputs that follow.


def record_bundle(text: str, html: str) -> MimeBundle:
    """Return the MIME bundle of a panel's record, which is shown when the panel's kernel is no longer running.

    The record includes the CSS rule that shows either the panel or the record, because a reopened notebook does not
    load the style sheet of this package.
    """
    return mime_bundle(text, html=f'<div class="mnb-record"><style>{_RECORD_CSS}</style>{html}</div>')


_MAX_CODE_CHARS: Final = 6_000
"""Maximum length of displayed verbatim text, in characters; the stored artifact contains the complete text."""
_MAX_CELL_CHARS: Final = 1_000
_MAX_LINE_CHARS: Final = 20_000
_MAX_HEADING_CHARS: Final = 300
_MAX_ROWS: Final = 200  # Maximum number of table rows that are sent to a panel.

_Tone: TypeAlias = Literal["", "bad", "warn", "good", "quiet", "said"]


class Block:
    """A part of a document that renders the same content as text, as HTML and as JSON for a panel."""

    __slots__ = ()

    def as_text(self, width: int = WIDTH) -> str:
        """Return plain text for terminals and for notebooks that have no kernel. Tables fit into ``width`` columns."""
        raise NotImplementedError

    def as_html(self) -> Html:
        """Return escaped HTML for a notebook cell or a web page."""
        raise NotImplementedError

    def as_json(self) -> dict[str, JSON]:
        """Return JSON for ``front/blocks.js``. The field ``is`` names the kind of block."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A heading within a document."""

    text: str
    small: bool = False
    tone: _Tone = ""

    def as_text(self, width: int = WIDTH) -> str:
        return part(self.text, _MAX_HEADING_CHARS)

    def as_html(self) -> Html:
        return html_heading(self.as_text())

    def as_json(self) -> dict[str, JSON]:
        return {"is": "head", "text": self.as_text(), "small": self.small, "tone": self.tone}


@dataclass(frozen=True, slots=True)
class Line(Block):
    """A line of text. The tone ``bad`` highlights an important warning."""

    text: str
    tone: _Tone = ""

    def as_text(self, width: int = WIDTH) -> str:
        return clip_plain(self.text, _MAX_LINE_CHARS)

    def as_html(self) -> Html:
        return html_line(clip(self.text, _MAX_LINE_CHARS), self.tone)

    def as_json(self) -> dict[str, JSON]:
        return {"is": "line", "text": self.as_text(), "tone": self.tone}


@dataclass(frozen=True, slots=True)
class Code(Block):
    """Text displayed verbatim, cut at ``max_chars`` characters, with an optional title."""

    text: str
    max_chars: int = _MAX_CODE_CHARS
    title: str = ""

    def as_text(self, width: int = WIDTH) -> str:
        text = clip_plain(self.text, self.max_chars)
        return _indent_under_title(self.title, text) if "\n" in text or not self.title else f"{self.title}: {text}"

    def as_html(self) -> Html:
        title = html_heading(self.title) if self.title else Html()
        return html_join([title, html_pre(self.text, self.max_chars)])

    def as_json(self) -> dict[str, JSON]:
        return {"is": "pre", "text": clip_plain(self.text, self.max_chars), "title": self.title}


@dataclass(frozen=True, slots=True)
class LineDiff(Block):
    """A line-by-line diff. Each row has a sign (``+``, ``-`` or a space) and the text of the line."""

    rows: Sequence[tuple[str, str]]

    def as_text(self, width: int = WIDTH) -> str:
        return "\n".join(f"{sign} {clip_plain(text, _MAX_CELL_CHARS)}" for sign, text in self.rows)

    def as_html(self) -> Html:
        return html_pre(self.as_text())

    def as_json(self) -> dict[str, JSON]:
        rows: list[JSON] = [[sign, clip_plain(text, _MAX_CELL_CHARS)] for sign, text in self.rows[:_MAX_ROWS]]
        return {"is": "diff", "rows": rows}


@dataclass(frozen=True, slots=True)
class WordDiff(Block):
    """A word-by-word diff between ``old_text`` and the new text ``text``."""

    old_text: str
    text: str

    @property
    def _parts(self) -> Parts:
        return word_parts(*(clip_plain(text, _MAX_LINE_CHARS) for text in (self.old_text, self.text)))

    def as_text(self, width: int = WIDTH) -> str:
        return _wrap_lines(parts_as_text(self._parts).split("\n"), width)

    def as_html(self) -> Html:
        return Html(f"<div>{html_parts(self._parts)}</div>")

    def as_json(self) -> dict[str, JSON]:
        return {"is": "words", "parts": [[sign, text] for sign, text in self._parts]}


def _wrap_lines(texts: Iterable[str], width: int) -> str:
    return "\n".join(row for text in texts for row in (wrap(text, width) or [""]))


@dataclass(frozen=True, slots=True)
class JsonTree(Block):
    """A JSON value displayed as a tree whose first ``open_levels`` levels are expanded.

    With ``old``, the tree shows only the differences from that earlier value.
    """

    value: JSON
    name: str = ""
    open_levels: int = 1
    old: JSON = MISSING

    def as_text(self, width: int = WIDTH) -> str:
        if self.old is not MISSING:
            return _wrap_lines(changed_leaves(json_tree(self.value, self.name, self.old)), width)
        name = f"{plain(self.name)} = " if self.name else ""
        return name + clip_plain(pretty(self.value), _MAX_CODE_CHARS)

    def as_html(self) -> Html:
        return html_json(self.value, self.open_levels, name=self.name, old=self.old)

    def as_json(self) -> dict[str, JSON]:
        return {"is": "tree", "root": json_tree(self.value, self.name, self.old), "opened": self.open_levels}


@dataclass(frozen=True, slots=True)
class Fold(Block):
    """Collapsible blocks under a title. Links on the page can refer to ``anchor``.

    In a terminal, a closed fold shows its first lines, up to about ``brief_chars`` characters.
    """

    title: str
    blocks: Sequence[Block]
    opened: bool = False
    anchor: str = ""
    brief_chars: int = 400

    def as_text(self, width: int = WIDTH) -> str:
        text = blocks_as_text(self.blocks, width - 2)
        return _indent_under_title(self.title, text if self.opened else _first_lines(text, self.brief_chars))

    def as_html(self) -> Html:
        return html_fold(self.title, blocks_as_html(self.blocks), opened=self.opened, anchor=self.anchor)

    def as_json(self) -> dict[str, JSON]:
        title, inner_json = part(self.title, _MAX_HEADING_CHARS), [block.as_json() for block in self.blocks]
        return {"is": "fold", "title": title, "inside": [*inner_json], "open": self.opened}


_DARK_BODY: Final = ':is(body[data-jp-theme-light="false"],body.vscode-dark)'
_SVG_LABEL: Final = re.compile(r'aria-label="([^"]*)"')
_PICTURES_AS_IMAGES: Final = ContextVar("_PICTURES_AS_IMAGES", default=False)
"""True while a cell output is rendered: pictures become images, because untrusted notebooks remove inline SVG."""


@dataclass(frozen=True, slots=True)
class Picture(Block):
    """A picture drawn by this package, with an alternative text.

    The alternative text is empty if the surrounding text already describes the picture.

    Args:
        svg: the SVG for light pages.
        text: the alternative text.
        dark: pairs of colours, written ``#rrggbb``: a colour in ``svg``, and its replacement on dark screens.
    """

    svg: str
    text: str = ""
    dark: tuple[tuple[str, str], ...] = ()

    def as_text(self, width: int = WIDTH) -> str:
        return plain(self.text)

    def as_html(self) -> Html:
        svg = fit_to_width(self.svg)
        if _PICTURES_AS_IMAGES.get():
            return self._as_image(svg)
        if not self.dark:
            return Html(svg)
        rules = "".join(f"--mnb-{light[1:]}:{dark};" for light, dark in self.dark)
        svg = _with_colours(svg, {light: f"var(--mnb-{light[1:]},{light})" for light, _ in self.dark})
        return Html(
            f'<style>@media screen{{{_DARK_BODY} .mnb-drawn{{{rules}}}}}</style><div class="mnb-drawn">{svg}</div>'
        )

    def _as_image(self, svg: str) -> Html:
        label, size = _SVG_LABEL.search(svg), _SVG_SIZE.search(svg)
        name = f"mnb-{sha256(svg.encode()).hexdigest()[:10]}"
        style = ""
        if self.dark:
            dark_url = _data_url(_with_colours(svg, dict(self.dark)))
            style = f"<style>@media screen{{{_DARK_BODY} .{name}{{content:url({dark_url})}}}}</style>"
        attributes = f'class="{name}" alt="{label[1] if label else "picture"}"{size[0] if size else ""}'
        return Html(f'{style}<img {attributes} src="{_data_url(svg)}">')

    def as_json(self) -> dict[str, JSON]:
        dark = _with_colours(self.svg, dict(self.dark))
        return {"is": "picture", "svg": self.svg, "dark": dark, "text": self.as_text()}


def _data_url(svg: str) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg.encode(errors='replace')).decode()}"


def _with_colours(svg: str, colours: Mapping[str, str]) -> str:
    """Replace all colours of a picture in one pass, because a new colour may equal an old colour."""
    return re.sub(r'"(#[0-9a-f]{6})"', lambda match: f'"{colours.get(match[1], match[1])}"', svg)


@dataclass(frozen=True, slots=True)
class Action(Block):
    """A sentence followed by a button. Only panels show the button.

    Attributes:
        text: the sentence.
        label: the label of the button.
        tooltip: the tooltip of the button.
        kind: the kind of message that the button sends.
        values: the fields of that message.
    """

    text: str
    label: str
    tooltip: str
    kind: str
    values: Mapping[str, JSON]

    def as_text(self, width: int = WIDTH) -> str:
        return part(self.text, _MAX_HEADING_CHARS)

    def as_html(self) -> Html:
        return html_line(self.as_text())

    def as_json(self) -> dict[str, JSON]:
        message: dict[str, JSON] = {"kind": self.kind, "values": dict(self.values)}
        label = {"text": self.as_text(), "words": self.label, "explained": self.tooltip}
        return {"is": "action", **label, **message}


@dataclass(frozen=True, slots=True)
class Badge:
    """A status in a table cell, such as ``failed: timeout``, displayed with a coloured symbol."""

    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A number in a table cell, displayed on top of a bar. Positions in the cell are numbers from 0 to 1.

    Attributes:
        text: the number.
        end: the position of the end of the bar.
        start: the position of the start of the bar.
        strong: the start and end of the part in a stronger colour, such as the first of two amounts, or a mean.
    """

    text: str
    end: float
    start: float = 0.0
    strong: tuple[float, float] = (0.0, 0.0)

    @property
    def positions(self) -> list[float]:
        """The start and end of the bar, and of its part in a stronger colour, all from 0 to 1."""
        return [min(max(position, 0.0), 1.0) for position in (self.start, self.end, *self.strong)]


@dataclass(frozen=True, slots=True)
class AnchorLink:
    """Text in a table cell that links to the :class:`Fold` with the same ``anchor`` on the page."""

    text: str
    anchor: str


Cell: TypeAlias = str | int | float | Pointer | Badge | Bar | AnchorLink


def cell_text(cell: Cell) -> str:
    """Return the content of a table cell as text, shortened and without control characters."""
    return clip_plain(str(getattr(cell, "text", cell)), _MAX_CELL_CHARS)


def _cell_html(cell: Cell) -> str:
    match cell:
        case Badge():
            return status_badge(cell.text)
        case Bar():
            return html_bar(cell.text, cell.positions)
        case AnchorLink():
            return html_link(f"#{cell.anchor}", cell.text)
        case Pointer(path=str() as path):
            # "./" and the quoted colon keep a file name from being read as a scheme or a host.
            return html_link(f"./{quote(path, safe='/', errors='replace')}", cell.text)
    return cell_text(cell)


def _cell_json(cell: Cell) -> JSON:
    """Return a table cell as JSON for a panel, with the symbol and colour of a badge and the positions of a bar."""
    text = cell_text(cell)
    if isinstance(cell, Badge):
        return {"text": text, **dict(zip(("sign", "colour"), badge_symbol(cell.text), strict=True))}
    return {"text": text, "bar": [*cell.positions]} if isinstance(cell, Bar) else text


@dataclass(frozen=True, slots=True)
class FactTable(Block):
    """A table of two columns that shows names and their values."""

    rows: Sequence[tuple[str, Cell]]

    def as_text(self, width: int = WIDTH) -> str:
        return "\n".join(f"{plain(name)}: {cell_text(value)}" for name, value in self.rows)

    def as_html(self) -> Html:
        return html_facts((name, _cell_html(value)) for name, value in self.rows)

    def as_json(self) -> dict[str, JSON]:
        return {"is": "facts", "rows": [[name, _cell_json(value)] for name, value in self.rows]}


class Displayable(Block):
    """Base class of values that a notebook displays as blocks. Displaying a value never raises an exception.

    If the value has an attribute ``title``, the blocks are displayed in a frame with that title.
    """

    __slots__ = ()

    def _blocks(self) -> Iterable[Block]:
        """Return the blocks to display."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.as_text()

    def as_text(self, width: int = WIDTH) -> str:
        title = self._title()
        return _indent_under_title(title, blocks_as_text(self._blocks(), width - 2 * bool(title)))

    def as_html(self) -> Html:
        body = blocks_as_html(self._blocks())
        return html_panel(title, body) if (title := self._title()) else body

    def as_json(self) -> dict[str, JSON]:
        return Fold(self._title(), tuple(self._blocks()), opened=True).as_json()

    def _title(self) -> str:
        return str(getattr(self, "title", ""))

    def _mime_bundle(self) -> MimeBundle:
        """Return the MIME bundle: text, HTML, and a picture.

        The HTML is omitted if the value consists of plain lines or of one picture. The picture is included as SVG and
        PNG if it is the only one.
        """
        blocks = list(self._blocks())
        # Text and HTML are rendered from the same blocks, so that each picture is drawn only once.
        view = View(self._title(), blocks) if type(self).as_text is Displayable.as_text else self
        pictures = [block for block in blocks if isinstance(block, Picture)]
        only_picture = pictures == blocks and not any(picture.dark for picture in pictures)
        only_lines = all(isinstance(block, Line) for block in blocks)
        text, html = view.as_text(), None
        if self._title() or not (only_picture or only_lines):
            context_token = _PICTURES_AS_IMAGES.set(True)
            try:
                html = view.as_html()
            finally:
                _PICTURES_AS_IMAGES.reset(context_token)
        if len(pictures) == 1:
            return picture_bundle(text, pictures[0].svg, html=html)
        return mime_bundle(text, html=html)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> MimeBundle:
        """Return the MIME bundle, restricted to the types in ``include`` and without the types in ``exclude``."""
        try:
            bundle = self._mime_bundle()
        except Exception as error:  # noqa: BLE001 - a failing display would hide the value
            bundle = {"text/plain": f"<{type(self).__name__}: cannot be shown ({named_error(error, 300)})>"}
        return {
            mime_type: content
            for mime_type, content in bundle.items()
            if (not include or mime_type in include) and (not exclude or mime_type not in exclude)
        }


class View(Displayable):
    """A titled document that a notebook displays as the value of a cell."""

    def __init__(self, title: str, blocks: Sequence[Block]) -> None:
        self.title, self.blocks = title, tuple(blocks)

    def _blocks(self) -> Iterable[Block]:
        return self.blocks


class Table(Displayable):
    """A table of cell values. If it has no rows, the text ``empty`` is displayed instead.

    The row with the index ``marked`` is highlighted.
    """

    def __init__(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        empty: str = "(none)",
        *,
        marked: int | None = None,
    ) -> None:
        self.headers, self.rows, self.empty = tuple(headers), [tuple(row) for row in rows], empty
        self.marked = marked

    def __len__(self) -> int:
        return len(self.rows)

    def _blocks(self) -> Iterable[Block]:
        return [self] if self.rows else [Line(self.empty)]

    def as_text(self, width: int = WIDTH) -> str:
        if not self.rows:
            return self.empty
        rows = [[cell if isinstance(cell, int) else cell_text(cell) for cell in row] for row in self.rows]
        text = table(rows, [*map(cell_text, self.headers)], limit=_MAX_CELL_CHARS, width=width)
        return text if any(self.headers) else text.split("\n", 2)[2]

    def as_html(self) -> Html:
        headers, rows = self._without_empty_columns()
        if not rows:
            return html_line(self.empty)
        return html_table(headers, [[*map(_cell_html, row)] for row in rows], marked=self.marked)

    def as_json(self) -> dict[str, JSON]:
        headers, all_rows = self._without_empty_columns()
        rows: list[JSON] = [[*map(_cell_json, row)] for row in all_rows[:_MAX_ROWS]]
        if omitted_count := len(all_rows) - len(rows):
            rows.append([f"… {omitted_count:,} more", *[""] * (len(headers) - 1)])
        table_json: dict[str, JSON] = {"is": "table", "headers": [*map(cell_text, headers)], "rows": rows}
        if self.marked is not None:
            table_json["marked"] = self.marked
        return table_json if rows else Line(self.empty).as_json()

    def _without_empty_columns(self) -> tuple[list[str], list[tuple[Cell, ...]]]:
        """Return the headers and the rows without the columns that are empty in every row."""
        columns = sorted({column for row in self.rows for column, cell in enumerate(row) if cell != ""})
        return [self.headers[column] for column in columns], [tuple(row[n] for n in columns) for row in self.rows]


class Text(Displayable):
    """Plain text that a notebook displays as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def as_text(self, width: int = WIDTH) -> str:
        return plain(self.text)

    def _blocks(self) -> Iterable[Block]:
        return [Line(self.text)]


class JsonView(Displayable):
    """A named JSON value that a notebook displays as a collapsible tree."""

    def __init__(self, name: str, value: JSON) -> None:
        self.name, self.value = name, value

    def _blocks(self) -> Iterable[Block]:
        return [JsonTree(self.value, self.name, open_levels=2)]


def lines(texts: Iterable[str], tone: _Tone = "") -> list[Block]:
    """Return a :class:`Line` block for each text."""
    return [Line(text, tone) for text in texts]


def blocks_as_text(blocks: Iterable[Block], width: int = WIDTH) -> str:
    """Return blocks as plain text, separated by line breaks.

    An empty line precedes and follows each table, except between a heading and its table.
    """
    text, previous = "", None
    for block in blocks:
        if block_text := block.as_text(width):
            needs_gap = isinstance(previous, Table) or (isinstance(block, Table) and not isinstance(previous, Heading))
            text += f"{(chr(10) * (1 + needs_gap)) if previous else ''}{block_text}"
            previous = block
    return text


def blocks_as_html(blocks: Iterable[Block]) -> Html:
    """Return blocks as one piece of HTML."""
    return html_join(block.as_html() for block in blocks)


_SCALARS: Final = (str, int, float)


def blocks_as_json(value: Any) -> Any:
    """Return a copy of a nested value with every block replaced by its JSON."""
    if isinstance(value, Block):
        return value.as_json()
    if isinstance(value, dict):
        return {name: item if isinstance(item, _SCALARS) else blocks_as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if isinstance(item, _SCALARS) else blocks_as_json(item) for item in value]
    return value


def _first_lines(text: str, max_chars: int) -> str:
    """Return the first lines of a string, up to ``max_chars`` characters, with a note if lines are omitted."""
    if len(text) <= max_chars or not max_chars:
        return text if max_chars else ""
    cut = text.rfind("\n", 0, max_chars)
    return clip(text, max_chars) if cut < 0 else f"{text[:cut]}\n… [{len(text):,} characters in total]"


def _indent_under_title(title: str, text: str) -> str:
    """Indent a string and put its title above it. A string that has no title is returned unchanged."""
    return f"{plain(title)}\n{indent(text, '  ')}".rstrip() if title else text


def clip_plain(text: str, max_chars: int) -> str:
    """Remove control characters from a string, and cut a long string with a note of its full length."""
    return plain(clip(text, max_chars))
