"""PNG of a picture, for where SVG is not drawn: in notebooks that are not trusted, and in many viewers."""

from __future__ import annotations

import logging
from typing import Final

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
