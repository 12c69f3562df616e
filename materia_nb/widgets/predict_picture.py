"""The picture of a question, in which a click on a socket is a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
from traitlets import List, Unicode


class PredictPicture(anywidget.AnyWidget):
    """An SVG of the graph whose sockets can be clicked.

    Args:
        places: the sockets that can be guessed.
        guess: what is called with the socket that was clicked.
    """

    _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    _css = (
        ".mnb-question svg{max-width:100%;max-height:380px;width:auto;height:auto;display:block}"
        ".mnb-place{cursor:pointer}.mnb-place:hover{filter:brightness(1.15)}"
    )

    svg = Unicode().tag(sync=True)
    places = List(Unicode()).tag(sync=True)

    def __init__(self, places: Sequence[str], guess: Callable[[str], None]) -> None:
        super().__init__(places=list(places))
        self._guess = guess
        self.on_msg(self._told)

    def _told(self, _: Any, content: Any, __: Any) -> None:
        """Take a click; a message of another form, or about no socket, is not ours."""
        socket = content.get("guess") if isinstance(content, dict) else None
        if isinstance(socket, str) and socket in self.places:
            self._guess(socket)
