"""The front-end that fills the canvas of a graph, and what it tells that a person does there.

What comes from a page may be late, of another version or hostile: nothing of it goes on before it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anywidget
from traitlets import Dict

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import END
from materia_nb.widgets.frontend import css, esm
from materia_nb.widgets.picks import Pick
from materia_nb.widgets.scene import Look

FONT: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif'
"""The family that the layout measures, in the quotes that cytoscape takes: it refuses the whole list for one of the others."""
GESTURES: Final = frozenset(
    {"connect", "move", "marquee", "delete", "drop", "open", "break", "run_to", "undo", "redo", "copy", "cut"}
    | {"paste", "duplicate", "ground"}
)
"""What is told by a dict; see :meth:`~materia_nb.widgets.graph.GraphPanel.on_gesture`."""
_FARTHEST: Final = 1e6


class CanvasFront(anywidget.AnyWidget):
    """Fills the canvas beside it, and tells what a person does there.

    ``scene`` is what never changes while a graph is shown, ``look`` how its elements look now, ``flags`` the rest.
    """

    _esm = esm("canvas_widget.js")
    _css = css()

    fixed = Dict().tag(sync=True)
    scene = Dict().tag(sync=True)
    look = Dict().tag(sync=True)
    flags = Dict().tag(sync=True)

    def change(self, changed: Look) -> None:
        """Send how some elements look now. A page that comes later is sent all of it."""
        self.look.update(changed)  # in place, so that the whole is not sent again
        self.send({"kind": "look", "changed": changed})


def gesture(kind: str, values: Mapping[Any, Any], picks: Mapping[str, Pick]) -> dict[str, Any]:
    """Check what a message is about, and name it by the ids of the loadout.

    Args:
        kind: one of :data:`GESTURES`.
        values: the message.
        picks: what the elements of the canvas stand for.

    Raises:
        MateriaError: it is about a socket that is not there (``bad_message``).
    """
    message: dict[str, Any] = {"kind": kind}
    for name in ("from", "to", "id"):
        if name in values:
            ends = name == "to" and values[name] == "s:end"
            message[name] = END if ends else _socket(values[name], picks)
    if "ids" in values:
        given = values["ids"] if isinstance(values["ids"], list) else []
        message["ids"] = [_socket(one, picks) for one in given]
    if "what" in values:
        pick = picks.get(str(values["what"]))
        message["what"] = list(pick) if pick is not None else None
    for name in ("x", "y"):
        if name in values:
            number = values[name]
            near = isinstance(number, int | float) and abs(number) < _FARTHEST
            message[name] = float(number) if near else 0.0
    if kind == "break" and values.get("after") is True:
        message["after"] = True
    if kind == "drop":
        message["materia"] = shorten(values.get("materia"), 300)
    return message


def _socket(element: object, picks: Mapping[str, Pick]) -> str:
    pick = picks.get(str(element))
    if pick is None or pick[0] != "socket":
        raise MateriaError(
            f"There is no socket {shorten(str(element), 120)!r} any more.",
            hint="the graph has changed meanwhile; try again",
            kind="bad_message",
        )
    return pick[1]
