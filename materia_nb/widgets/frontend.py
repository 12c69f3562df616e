"""The front-end of our own: one anywidget, its ES modules joined into the one file that a notebook loads.

The modules stand in ``front/``. A notebook loads a widget's code from a blob, where relative imports lead
nowhere, so they are put behind one another here: plainly, by dropping ``import`` lines and ``export`` words.
Therefore their names share one scope, and :func:`esm` refuses two of one name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import anywidget
from traitlets import Dict

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([A-Za-z_]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?!default)", re.MULTILINE)
_NAMED: Final = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|const|let|class) ([A-Za-z_$][\w$]*)", re.MULTILINE
)
_HOME: Final = files("materia_nb.widgets") / "front"


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
    text = (_HOME / name).read_text("utf-8")
    for needed in _IMPORT.findall(text):
        _collect(needed, order, owner, (*within, name))
    for one in _NAMED.findall(text):
        if (other := owner.setdefault(one, name)) != name:
            raise ValueError(f"{name} and {other} both define {one}")
    order[name] = _EXPORT.sub("", _IMPORT.sub("", text))


@functools.cache
def css() -> str:
    """Return every style sheet in ``front/``, the shared one first."""
    names = sorted(one.name for one in _HOME.iterdir() if one.name.endswith(".css"))
    names.sort(key=lambda name: name != "front.css")
    return "\n".join((_HOME / name).read_text("utf-8") for name in names)


class Front(anywidget.AnyWidget):
    """Everything around the graph in one widget: it is told slices of state, and sends messages.

    A slice is a JSON object. Only those that changed are sent, all of one update in one message.
    """

    _esm = esm()
    _css = css()

    surface = Dict().tag(sync=True)
    bar = Dict().tag(sync=True)
    inspector = Dict().tag(sync=True)
    timeline = Dict().tag(sync=True)
    items = Dict().tag(sync=True)
    compare = Dict().tag(sync=True)
    design = Dict().tag(sync=True)

    def put(self, slices: Mapping[str, Mapping[str, Any]]) -> None:
        """Bring slices up to date; a slice that is as it was costs nothing."""
        with self.hold_sync():
            for name, value in slices.items():
                if getattr(self, name) != value:
                    setattr(self, name, dict(value))

    def answer(self, kind: str, token: Any, **values: Any) -> None:
        """Send what a view asked for; ``token`` is what it asked with, so that other views leave it alone."""
        self.send({"kind": kind, "token": token, **values})
