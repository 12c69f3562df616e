"""The front-end of our own: what surrounds a graph and what fills its canvas, each one anywidget.

Its modules stand in ``front/``; ``make front`` bundles them, and the bundle is what is shipped and loaded. One widget of
the kernel holds it, packed, and all others refer to that one, so that a saved notebook has it once.

What comes from a page may be late, of another version or hostile: nothing of it goes on before it was checked.
"""

from __future__ import annotations

import functools
import gzip
import threading
from base64 import b64encode
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

import anywidget
import ipywidgets as ui
from traitlets import Dict, List, Unicode

from materia_nb.display.blocks import blocks_as_json
from materia_nb.widgets.graph_elements import Looks

_BUNDLE: Final = files("materia_nb.widgets") / "bundle"
_LOADER: Final = (_BUNDLE / "loader.js").read_text("utf-8")
_making: Final = threading.Lock()


@functools.cache
def bundle() -> str:
    """Return the module with all views and style sheets; its first line is the digest of the sources."""
    return (_BUNDLE / "front.js").read_text("utf-8")


class FrontCode(ui.Widget):
    """Holds the bundle for all widgets of the kernel, as base64 of gzip; it is not seen."""

    version = Unicode().tag(sync=True)
    packed = Unicode().tag(sync=True)


_code: FrontCode | None = None


def reference(widget: ui.Widget) -> str:
    """Return the reference to a widget that a page resolves."""
    return f"IPY_MODEL_{widget.model_id}"


def _shared_code() -> FrontCode:
    """Return the widget with the bundle; it is made when first needed, or when somebody has closed it."""
    global _code  # noqa: PLW0603 - there is one a kernel
    with _making:
        if _code is None or _code.comm is None:
            text = bundle()
            packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
            _code = FrontCode(version=text[3:].partition(" ")[0], packed=packed)
        return _code


class FrontWidget(anywidget.AnyWidget):
    """A widget that a view of the bundle draws; a subclass says which in ``view``."""

    _esm = _LOADER

    code = Unicode().tag(sync=True)
    view = Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(code=reference(_shared_code()), **traits)

    def answer(self, kind: str, token: str, values: Mapping[str, Any]) -> None:
        """Send the answer to a question of the page; its ``token`` lets the other views ignore the answer."""
        self.send(blocks_as_json({"kind": kind, "token": token, **values}))


class Front(FrontWidget):
    """Everything around the graph in one widget, which gets slices of state and sends messages.

    A slice is a JSON object. Only those that changed are sent, all of one update in one message.

    Args:
        slices: the names of what it is told beside ``surface`` and ``design``.
        parts: the parts of the panel, of each its name and place.
    """

    view = Unicode("shell").tag(sync=True)

    surface = Dict().tag(sync=True)
    design = Dict().tag(sync=True)
    parts: Any = List().tag(sync=True)

    def __init__(self, slices: Iterable[str], parts: list[dict[str, str]]) -> None:
        # Before the page hears of the widget at all, so that it is told of all of them at once.
        self.add_traits(**{name: Dict().tag(sync=True) for name in slices})
        super().__init__(parts=parts)

    def put(self, slices: Mapping[str, Mapping[str, Any]]) -> None:
        """Bring slices up to date; a slice that is as it was costs nothing."""
        with self.hold_sync():
            for name, value in slices.items():
                if getattr(self, name) != value:
                    setattr(self, name, dict(value))


FONT: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif'
"""Font family that the layout measures. Cytoscape refuses the list with other quotes."""


class CanvasFront(FrontWidget):
    """Draws on the canvas next to it, and sends what a person does there.

    ``scene`` is what never changes while a graph is shown, ``look`` how its elements look now, ``flags`` the rest;
    ``drawing`` refers to the widget that draws, as :func:`reference` writes it.
    """

    view = Unicode("canvas").tag(sync=True)
    drawing = Unicode().tag(sync=True)

    fixed = Dict().tag(sync=True)
    scene = Dict().tag(sync=True)
    look = Dict().tag(sync=True)
    flags = Dict().tag(sync=True)

    def change(self, changed: Looks) -> None:
        """Send how some elements look now. A page that comes later is sent all of it."""
        self.look.update(changed)  # in place, so that the whole is not sent again
        self.send({"kind": "look", "changed": changed})
