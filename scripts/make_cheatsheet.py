"""Write the cheat sheet as SVG and as PDF: the first lists of docs/rules.md on one page.

Both are drawn from one layout of boxes and positioned texts, in fonts that every PDF reader has. The same source gives
the same bytes, so make_docs.py can detect outdated files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

SOURCE: Final = Path("docs/rules.md")
WIDTH, HEIGHT = 842.0, 595.0  # A4 across, in points
MARGIN, GAP = 22.0, 9.0
TOP: Final = 48.0
COLUMNS: Final = 3
DIAGRAM_Y: Final = 500.0
"""The y coordinate of the row of boxes."""
SIZE, LEADING = 9.4, 12.0
PAD: Final = 8.0
INK, SOFT, RULE, FRAME, PAPER = "#1f2630", "#6a7380", "#1d5f8a", "#c9d1da", "#ffffff"

_FONTS: Final = {"plain": "Helvetica", "bold": "Helvetica-Bold", "code": "Courier"}
_CSS: Final = {
    "plain": "font-family='Helvetica, Arial, sans-serif'",
    "bold": "font-family='Helvetica, Arial, sans-serif' font-weight='bold'",
    "code": "font-family='Courier, monospace'",
}
# Advance widths of Helvetica for the characters from space to tilde, in thousandths of its size.
_HELVETICA: Final = (
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *([556] * 10),
    *(278, 278, 584, 584, 584, 556, 1015),
    *(667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611),
    *(722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333),
    *(556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278),
    *(556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
)
_PIECE: Final = re.compile(r"`([^`]+)`|\[(R\d+)\]\([^)]*\)|([^`\[]+)")
_ITEM: Final = re.compile(r"^(- |\d+\. )(.*)$")


class TextRun(NamedTuple):
    """Text in one font at a position. The baseline is at y, measured downwards from the top of the page."""

    x: float
    y: float
    text: str
    font: str
    size: float
    colour: str


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """A line with an arrowhead at its end."""

    x: float
    y: float
    to_x: float
    to_y: float


class Section(NamedTuple):
    """A title and its items, each with its list marker."""

    title: str
    items: tuple[tuple[str, str], ...]


def sheet(source: str) -> tuple[str, str]:
    """Return the page as SVG and as PDF, in ASCII."""
    parts = list(layout(sections(source)))
    return svg(parts), pdf(parts)


def sections(source: str) -> list[Section]:
    """Return the sections below the heading "On one page", each with its items."""
    sections = []
    one_page = source.partition("\n## On one page\n")[2].partition("\n## ")[0]
    for part in one_page.split("\n### ")[1:]:
        title, _, body = part.partition("\n")
        items = [match.groups() for line in body.splitlines() if (match := _ITEM.match(line))]
        sections.append(Section(title.strip(), tuple((mark.strip(), text) for mark, text in items)))
    return sections


# -- layout ------------------------------------------------------------------------------


def layout(sections: Sequence[Section]) -> Iterator[TextRun | Box | Line]:
    """Lay out the sections in columns of about equal height."""
    yield TextRun(MARGIN, 33, "Materia NB: how a cast continues", "bold", 17, RULE)
    note = "Numbers such as R16 are those of the rules in the documentation."
    yield TextRun(WIDTH - MARGIN - width(note, "plain", SIZE), 33, note, "plain", SIZE, SOFT)
    column = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
    format_json = [section_parts(section, column) for section in sections]
    for column_number, group in enumerate(columns([height for height, _ in format_json])):
        x, y = MARGIN + column_number * (column + GAP), TOP
        for number in group:
            height, parts = format_json[number]
            yield Box(x, y, column, height)
            for section_part in parts:
                yield section_part._replace(x=section_part.x + x, y=section_part.y + y)
            y += height + GAP
        if y > DIAGRAM_Y:
            raise ValueError(f"column {column_number + 1} of the cheat sheet is {y - DIAGRAM_Y:.0f} points too long")
    yield from step_diagram()


def step_diagram() -> Iterator[TextRun | Box | Line]:
    """Yield the row of boxes below the columns, which shows the order of a step."""
    high, wide, gap = 30.0, 98.0, 16.0
    middle = DIAGRAM_Y + 42
    boxes = {
        "answer": (0, middle, "an answer", "parsed and checked"),
        "state": (1, middle, "state", "merged, then assign"),
        "advance": (2, middle, "advance", "moves the cursor"),
        "exhausted": (3, middle, "list exhausted?", "or are items left?"),
        "exits": (4, middle - 20, "yes: exits only", "guarded, then always"),
        "edges": (4, middle + 20, "no: edges only", "in order, first match"),
        "limit": (5, middle + 20, "used up?", "then it fails"),
        "next": (6, middle, "next socket", "no match: complete"),
    }
    at = {name: (MARGIN + column_number * (wide + gap) + 8, y) for name, (column_number, y, _, _) in boxes.items()}
    for name, (_, _, title, description) in boxes.items():
        x, y = at[name]
        yield Box(x, y - high / 2, wide, high)
        yield TextRun(x + (wide - width(title, "bold", 8.6)) / 2, y - 2.5, title, "bold", 8.6, INK)
        yield TextRun(x + (wide - width(description, "plain", 7.6)) / 2, y + 8.5, description, "plain", 7.6, SOFT)
    for source, other in (
        ("answer", "state"),
        ("state", "advance"),
        ("advance", "exhausted"),
        ("exhausted", "exits"),
        ("exhausted", "edges"),
        ("edges", "limit"),
        ("limit", "next"),
        ("exits", "next"),
    ):
        (x, y), (to_x, to_y) = at[source], at[other]
        yield Line(x + wide, y, to_x, to_y)


def columns(heights: Sequence[float]) -> list[range]:
    """Split the sections into consecutive columns so that the tallest column is as short as possible."""
    count, best = len(heights), (float("inf"), 0, 0)
    for first in range(1, count - 1):
        for second in range(first + 1, count):
            groups = heights[:first], heights[first:second], heights[second:]
            best = min(best, (max(sum(group) + GAP * len(group) for group in groups), first, second))
    _, first, second = best
    return [range(first), range(first, second), range(second, count)]


def section_parts(section: Section, column: float) -> tuple[float, list[TextRun]]:
    """Return the height of a section and its texts, positioned relative to its top left corner."""
    parts = [TextRun(PAD, PAD + 9, section.title, "bold", 10, RULE)]
    y = PAD + 9 + 14.5
    for mark, text in section.items:
        parts.append(TextRun(PAD, y, "-" if mark == "-" else mark, "plain", SIZE, SOFT))
        indent = PAD + (7 if mark == "-" else 12)
        for line in wrap(text_pieces(text), column - indent - PAD):
            x = indent
            for text_run, font, colour in line:
                size = SIZE - 0.4 if font == "code" else SIZE
                parts.append(TextRun(x, y, text_run, font, size, colour))
                x += width(text_run, font, size)
            y += LEADING
        y += 2
    return y - LEADING + PAD - 2 + 3, parts


def text_pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the words of a text, each with its font and colour. A space belongs to the preceding word."""
    for code, rule, plain in _PIECE.findall(text):
        if code:
            yield code, "code", INK
        elif rule:
            yield rule, "plain", SOFT
        else:
            for word in re.findall(r"\S+\s*|\s+", plain):
                yield word, "plain", INK


def wrap(text_runs: Iterable[tuple[str, str, str]], max_width: float) -> list[list[tuple[str, str, str]]]:
    """Break text runs into lines. Text runs without a space between them stay together."""
    lines: list[list[tuple[str, str, str]]] = [[]]
    used = 0.0
    unit: list[tuple[str, str, str]] = []

    def put() -> None:
        nonlocal used
        size = sum(width(text.rstrip(), font, SIZE) for text, font, _ in unit)
        if lines[-1] and used + size > max_width:
            lines.append([])
            used = 0.0
        lines[-1].extend(unit)
        used += sum(width(text, font, SIZE) for text, font, _ in unit)
        unit.clear()

    for word in text_runs:
        unit.append(word)
        if word[0].endswith(" "):
            put()
    put()
    return lines


def width(text: str, font: str, size: float) -> float:
    """Return the width of a text in points; bold text is slightly wider."""
    if font == "code":
        return 0.6 * size * len(text)
    thousandths = sum(_HELVETICA[ord(sign) - 32] for sign in text)
    return thousandths * size / 1000 * (1.06 if font == "bold" else 1)


# -- two ways to write it ------------------------------------------------------------------


def svg(parts: Sequence[TextRun | Box | Line]) -> str:
    """Return the page as SVG."""
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Materia NB cheat sheet" '
            f'width="{WIDTH:g}" height="{HEIGHT:g}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}">'
        ),
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    for page_part in parts:
        if isinstance(page_part, Box):
            lines.append(
                f'<rect x="{page_part.x:.1f}" y="{page_part.y:.1f}" width="{page_part.width:.1f}" height="{page_part.height:.1f}" rx="4" '
                f'fill="none" stroke="{FRAME}"/>'
            )
        elif isinstance(page_part, Line):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrowhead(page_part))
            lines.append(
                f'<path d="M{page_part.x:.1f} {page_part.y:.1f}L{page_part.to_x:.1f} {page_part.to_y:.1f}" stroke="{SOFT}"/>'
            )
            lines.append(f'<polygon points="{points}" fill="{SOFT}"/>')
        else:
            css = _CSS[page_part.font].replace("'", '"')
            lines.append(
                f'<text x="{page_part.x:.1f}" y="{page_part.y:.1f}" {css} font-size="{page_part.size:g}" fill="{page_part.colour}" '
                f'xml:space="preserve" textLength="{width(page_part.text, page_part.font, page_part.size):.1f}">{escape(page_part.text)}</text>'
            )
    return "\n".join([*lines, "</svg>", ""])


def pdf(parts: Sequence[TextRun | Box | Line]) -> str:
    """Return the page as uncompressed PDF 1.4, which is ASCII."""
    names = {font: f"F{number}" for number, font in enumerate(_FONTS, start=1)}
    drawn = []
    for page_part in parts:
        if isinstance(page_part, Box):
            y = HEIGHT - page_part.y - page_part.height
            drawn.append(
                f"{_rgb(FRAME)} RG {page_part.x:.1f} {y:.1f} {page_part.width:.1f} {page_part.height:.1f} re S"
            )
        elif isinstance(page_part, Line):
            (x, y), (left, up), (right, down) = ((x, HEIGHT - y) for x, y in arrowhead(page_part))
            line = (
                f"{page_part.x:.1f} {HEIGHT - page_part.y:.1f} m {page_part.to_x:.1f} {HEIGHT - page_part.to_y:.1f} l S"
            )
            arrow = f"{x:.1f} {y:.1f} m {left:.1f} {up:.1f} l {right:.1f} {down:.1f} l f"
            drawn.append(f"{_rgb(SOFT)} RG {line} {_rgb(SOFT)} rg {arrow}")
        else:
            text = re.sub(r"([\\()])", r"\\\1", page_part.text)
            move_to = f"{page_part.x:.1f} {HEIGHT - page_part.y:.1f} Td"
            drawn.append(
                f"BT {_rgb(page_part.colour)} rg /{names[page_part.font]} {page_part.size:g} Tf {move_to} ({text}) Tj ET"
            )
    stream = "\n".join(drawn)
    fonts = " ".join(f"/{names[font]} {number} 0 R" for number, font in enumerate(_FONTS, start=6))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH:g} {HEIGHT:g}] /Contents 4 0 R "
            f"/Resources << /Font << {fonts} >> >> >>"
        ),
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Title (Materia NB cheat sheet) >>",
        *(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
            for name in _FONTS.values()
        ),
    ]
    text, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return f"{text}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}"


def arrowhead(line: Line) -> list[tuple[float, float]]:
    """Return the three corners of an arrowhead, starting with the tip."""
    across, down = line.to_x - line.x, line.to_y - line.y
    length = math.hypot(across, down)
    across, down = across / length, down / length
    back = line.to_x - 5 * across, line.to_y - 5 * down
    return [
        (line.to_x, line.to_y),
        (back[0] - 2.2 * down, back[1] + 2.2 * across),
        (back[0] + 2.2 * down, back[1] - 2.2 * across),
    ]


def _rgb(colour: str) -> str:
    return " ".join(f"{int(colour[start : start + 2], 16) / 255:.3f}" for start in (1, 3, 5))
