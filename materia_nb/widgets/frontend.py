"""The front-end of our own: what surrounds a graph and what fills its canvas, each one anywidget.

The modules stand in ``front/``. A notebook loads a widget's code from a blob, where relative imports lead
nowhere, so they are put behind one another here: plainly, by dropping ``import`` lines and ``export`` words.
Therefore their names share one scope, and :func:`esm` refuses two of one name.

What comes from a page may be late, of another version or hostile: nothing of it goes on before it was checked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

import anywidget
from traitlets import Dict, List

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import END
from materia_nb.widgets.picks import Pick
from materia_nb.widgets.scene import Look

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([A-Za-z_]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?!default)", re.MULTILINE)
_NAMED: Final = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|const|let|class) ([A-Za-z_$][\w$]*)", re.MULTILINE
)
HOME: Final = files("materia_nb.widgets") / "front"


@functools.cache
def esm(entry: str = "shell.js") -> str:
    """Return ``entry`` with all that it imports in front of it, each module once, as one module.

    Raises:
        ValueError: two modules define the same name, or import one another.
    """
    order: dict[str, str] = {}
    owner: dict[str, str] = {}
    _collect(entry, order, owner, ())
    return "\n".join(order.values())


def _collect(name: str, order: dict[str, str], owner: dict[str, str], within: tuple[str, ...]) -> None:
    if name in within:
        raise ValueError(f"modules import one another: {' -> '.join((*within, name))}")
    if name in order:
        return
    text = (HOME / name).read_text("utf-8")
    for needed in _IMPORT.findall(text):
        _collect(needed, order, owner, (*within, name))
    for one in _NAMED.findall(text):
        if (other := owner.setdefault(one, name)) != name:
            raise ValueError(f"{name} and {other} both define {one}")
    order[name] = _EXPORT.sub("", _IMPORT.sub("", text))


@functools.cache
def css() -> str:
    """Return every style sheet in ``front/``, the shared one first."""
    names = sorted(one.name for one in HOME.iterdir() if one.name.endswith(".css"))
    names.sort(key=lambda name: name != "front.css")
    return "\n".join((HOME / name).read_text("utf-8") for name in names)


class Front(anywidget.AnyWidget):
    """Everything around the graph in one widget: it is told slices of state, and sends messages.

    A slice is a JSON object. Only those that changed are sent, all of one update in one message.

    Args:
        slices: the names of what it is told beside ``surface`` and ``design``.
        parts: the parts of the panel, of each its name and place.
    """

    _esm = esm()
    _css = css()

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

    def answer(self, kind: str, token: Any, **values: Any) -> None:
        """Send what a view asked for; ``token`` is what it asked with, so that other views leave it alone."""
        self.send({"kind": kind, "token": token, **values})


FONT: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif'
"""The family that the layout measures, in the quotes that cytoscape takes: it refuses the whole list for one of the others."""
GESTURES: Final = frozenset(
    {"connect", "move", "marquee", "delete", "drop", "open", "break", "run_to", "undo", "redo", "copy", "cut"}
    | {"paste", "duplicate", "ground"}
)
"""What is told by a dict; see :meth:`~materia_nb.widgets.graph_panel.GraphPanel.on_gesture`."""
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
