"""Values that show themselves without ever raising: MIME bundles for notebooks, PNG among them, pictures, text, tables, JSON."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from materia_nb.display.escape import html_json, html_panel, html_table
from materia_nb.display.graph_parts import Marks
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_mermaid, graph_text, table
from materia_nb.jsonvalue import JSON, pretty
from materia_nb.loadout.graph import Graph
from materia_nb.outgoing import VIEWS, plain

MOST_BYTES: Final = 1_000_000
"""A larger picture is left out, since it stands in the notebook's file."""


def png_of(svg: str, zoom: float = 1) -> bytes | None:
    """Return the picture as PNG, ``zoom`` pixels a unit; None where resvg is not installed, cannot draw it, or draws too large a one."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        return None
    try:
        png = bytes(svg_to_bytes(svg_string=svg, zoom=zoom, background="white"))
    except Exception:  # the SVG is there all the same
        logging.getLogger("materia_nb.display").warning("a picture cannot be drawn as PNG", exc_info=True)
        return None
    return png if len(png) <= MOST_BYTES else None


MimeBundle: TypeAlias = dict[str, Any]
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def sendable(value: JSON) -> JSON:
    """Replace lone surrogates, which no kernel message can carry."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sendable(key): sendable(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(child) for child in value]
    return value


def picture(text: str, svg: str, *, html: str | None = None, zoom: float = 1) -> MimeBundle:
    """Make the MIME bundle of a picture: SVG, text, and PNG if it can be drawn, since untrusted notebooks show no SVG."""
    png = png_of(svg, zoom)
    drawn = {} if png is None else {"image/png": b64encode(png).decode("ascii")}
    return {**bundle(text, svg=svg, html=html), **drawn}


def bundle(
    text: str,
    *,
    svg: str | None = None,
    html: str | None = None,
    json: JSON = None,
    mermaid: str | None = None,
) -> MimeBundle:
    """Make a MIME bundle; ``text`` is what a reader without a richer view sees.

    Give ``mermaid`` only when it is to be the picture: JupyterLab writes its own SVG over one beside it.
    """
    parts = {
        "text/plain": text,
        "image/svg+xml": svg,
        "text/html": html,
        "application/json": json,
        "text/vnd.mermaid": mermaid,
    }
    return {kind: sendable(part) for kind, part in parts.items() if part is not None}


class Shown:
    """Gives a class its notebook display: it writes ``_show``, and this keeps errors out of the output."""

    __slots__ = ()

    def _show(self) -> MimeBundle:
        raise NotImplementedError

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> MimeBundle:
        """Return the bundle, with only what ``include`` names and without what ``exclude`` names."""
        try:
            shown = self._show()
        except Exception as error:  # noqa: BLE001 - a display that raises hides the value that it is for
            shown = {"text/plain": f"<{type(self).__name__}: cannot be shown ({reason_of(error)})>"}
        return {
            kind: part
            for kind, part in shown.items()
            if (not include or kind in include) and (not exclude or kind not in exclude)
        }


def reason_of(error: Exception, most: int = 300) -> str:
    """Return the type of an error, and its message where it has one; of that at most so many characters."""
    try:
        said = str(error)[:most]
    except Exception:  # noqa: BLE001 - even the message of an error may fail
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True, slots=True, repr=False)
class GraphPicture(Shown):
    """A graph with marks laid over it, to be the value of a cell: SVG, and text where that is not drawn."""

    graph: Graph
    marks: Marks = field(default_factory=Marks)

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return graph_svg(self.graph, self.marks)

    @property
    def text(self) -> str:
        """The graph as a grid of text."""
        return graph_text(self.graph, self.marks)

    @property
    def mermaid(self) -> str:
        """The graph as mermaid source."""
        return graph_mermaid(self.graph, self.marks)

    def __repr__(self) -> str:
        return f"<GraphPicture {self.graph.name!r}, {len(self.graph.sockets)} sockets>"

    def _show(self) -> MimeBundle:
        return picture(self.text, self.svg)


VIEWS[Graph] = GraphPicture

SHOWN_CHARS: Final = 4_000
"""How much of a text a view shows; the whole is in the artifact."""


class Text(Shown):
    """Plain text, shown as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return plain(self.text)

    def __str__(self) -> str:
        return self.text

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self))


class Table(Shown):
    """Rows under headers; ``rows`` are the values to work with."""

    def __init__(self, headers: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "(none)") -> None:
        self.headers, self.rows, self.empty = tuple(headers), [tuple(row) for row in rows], empty

    def __repr__(self) -> str:
        return table(self.rows, self.headers) if self.rows else self.empty

    def __len__(self) -> int:
        return len(self.rows)

    def _show(self) -> dict[str, Any]:
        html = html_table(self.headers, self.rows) if self.rows else None
        return bundle(repr(self), html=html)


class JsonView(Shown):
    """A JSON value under its name, as a tree that opens and closes."""

    def __init__(self, name: str, value: JSON) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        text = pretty(self.value)
        return f"{plain(self.name)} = {plain(bounded(text))}"

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.name, html_json(self.value, open_depth=2)))


def bounded(text: str) -> str:
    """Cut a text that is too long to be shown, and say how long it is."""
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}… ({len(text)} characters in all; the artifact holds the whole)"
