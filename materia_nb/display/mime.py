"""MIME bundles for notebooks: text, HTML, pictures, PNG among them."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from typing import Any, Final, TypeAlias

from materia_nb.display.png import with_palette
from materia_nb.jsonvalue import JSON

CELL_WIDTH: Final = 848
"""Pixels of an output in a notebook that is as wide as it is to begin with."""
_SIZE: Final = re.compile(r' width="([\d.]+)" height="([\d.]+)"')
MOST_BYTES: Final = 1_000_000
"""A larger picture is left out, since it stands in the notebook's file."""


def png_of(svg: str) -> bytes | None:
    """Return the picture as PNG; None where resvg is not installed, cannot draw it, or draws too large a one."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        return None
    try:
        png = with_palette(bytes(svg_to_bytes(svg_string=svg, background="white")))
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


def fitted(svg: str, wide: float = CELL_WIDTH, high: float = 10_000) -> str:
    """Scale a picture down to what has room for it, which a cell of a notebook does not do by itself."""
    size = _SIZE.search(svg)
    if size is None:
        return svg
    width, height = float(size[1]), float(size[2])
    scale = min(1, wide / width, high / height)
    return svg.replace(size[0], f' width="{width * scale:.0f}" height="{height * scale:.0f}"', 1)


def picture(text: str, svg: str, *, html: str | None = None) -> MimeBundle:
    """Make the MIME bundle of a picture: SVG, text, and PNG if it can be drawn, since untrusted notebooks show no SVG."""
    svg = fitted(svg)
    png = png_of(svg)
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


_CHILD: Final = ".jp-OutputArea-child"
_LIVES: Final = f"{_CHILD}:has(.mnb-recorded:not(.jupyter-widgets-disconnected))"
_RULES: Final = (
    f"{_LIVES}+{_CHILD},{_LIVES}+{_CHILD}+{_CHILD},"
    # Without a widget in it, the output holds only JupyterLab's "model not found", which no other output hides.
    f"{_CHILD}:not(:has(>.jp-OutputArea-output>*)):has(+{_CHILD} .mnb-record){{display:none!important}}"
)
"""CSS of Jupyter's pages: either the widgets of a panel are seen, or the two outputs of its record below them."""


def record_bundle(text: str, html: str) -> MimeBundle:
    """Make the MIME bundle of what stands below a panel, for readers who do not have its kernel.

    It brings the rule by which only one of the two is seen: a notebook that is opened again has no other style of ours.
    """
    return bundle(text, html=f'<div class="mnb-record"><style>{_RULES}</style>{html}</div>')


def reason_of(error: Exception, most: int = 300) -> str:
    """Return the type of an error, and its message where it has one; of that at most so many characters."""
    try:
        said = str(error)[:most]
    except Exception:  # noqa: BLE001 - even the message of an error may fail
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
