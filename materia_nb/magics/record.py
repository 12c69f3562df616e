"""What stays in a notebook of a cast: its picture and its outcome, for readers without kernel, widgets or trust.

It stands right below the live panel and is brought up to date when the cast stops: by the cell that ran it, or a
moment after the button that did.
The panel hides it while it lives itself, see ``widgets/cast_panel.py``.
"""

from __future__ import annotations

import logging
import re
import textwrap
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from materia_nb.cast.views.status import marks_of, status_lines, steps_view
from materia_nb.display.bundle import MimeBundle, Shown, bundle, picture
from materia_nb.display.escape import plain, shorten
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import WIDTH, table
from materia_nb.platform import Handle, call_later

if TYPE_CHECKING:
    from materia_nb.cast import Cast

MOST_STEPS: Final = 30
"""How many steps the record tells, the latest ones."""

QUIET_S: Final = 0.6
"""A cast that did not change for so long has stopped, or is at work on a long step."""

ZOOM: Final = 1.5
"""Pixels of the PNG a unit: sharp on most screens, and half the bytes of 2."""
_SIZE: Final = re.compile(r'width="(\d+)" height="(\d+)"')
_log = logging.getLogger("materia_nb.magics")


class RecordText(Shown):
    """The outcome of a cast as text: how it stands, its latest steps, and how to go on with it."""

    metadata: Final[dict[str, dict[str, int]]] = {}

    def __init__(self, cast: Cast) -> None:
        steps = steps_view(cast.now)
        self.lines = [
            f"Record of cast {cast.id}: {shorten(cast.request, 60)}".rstrip(": "),
            *status_lines(cast.now),
        ]
        earlier = len(steps.rows) - MOST_STEPS
        self.earlier = f"... {earlier} earlier steps" if earlier > 0 else ""
        self.steps = table(steps.rows[-MOST_STEPS:], steps.headers) if steps.rows else ""
        what, verb = ("look at it", "open") if cast.status == "complete" else ("go on with it", "resume")
        self.then = f"to {what} in a new kernel: %load_ext materia_nb, then %materia {verb} {cast.id}"

    def __repr__(self) -> str:
        lines = [fold for line in self.lines for fold in textwrap.wrap(plain(line), WIDTH)]
        return "\n".join([*lines, *filter(None, ("", self.earlier, self.steps)), "", self.then])

    def _show(self) -> MimeBundle:
        return bundle(repr(self))


class RecordPicture(Shown):
    """The graph of a cast with what happened on it, as PNG too: an untrusted notebook shows no SVG."""

    def __init__(self, cast: Cast) -> None:
        # The attribute is for programs that compare notebooks: what is in here differs from run to run.
        self.svg = graph_svg(cast.graph, marks_of(cast.now)).replace("<svg ", '<svg data-record="" ', 1)
        self.text = f"<picture of cast {cast.id}>"
        size = _SIZE.search(self.svg)
        # A PNG has more pixels than the picture is to be wide.
        self.metadata = {"image/png": {"width": int(size[1]), "height": int(size[2])}} if size else {}

    def __repr__(self) -> str:
        return self.text

    def _show(self) -> MimeBundle:
        return picture(self.text, self.svg, zoom=ZOOM)


class Record:
    """The two outputs of a cast, text and picture, wherever in the notebook they were shown.

    Args:
        cast: which.
        display: IPython's ``display``.
    """

    def __init__(self, cast: Cast, display: Callable[..., object]) -> None:
        self.cast = cast
        self._display = display
        self._changed = False
        self._told: tuple[str, str] | None = None
        self._lock = threading.Lock()
        self._timer: Handle | None = None
        self._quiet = False
        self._end = cast.watch(lambda _: self._later())

    def show(self) -> None:
        """Show both, below what the cell has shown so far."""
        self._put(update=False)

    def refresh(self) -> None:
        """Bring both up to date if the cast has changed since."""
        if self._changed:
            self._put(update=True)

    def close(self) -> None:
        """Follow the cast no more; what is shown stays."""
        self._end()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _later(self) -> None:
        """The cast changed: once it is quiet, tell. Quick, since it is called after every change."""
        self._changed = True
        with self._lock:
            if self._timer is None:
                self._timer = call_later(QUIET_S, self._due)
            self._quiet = False

    def _due(self) -> None:
        with self._lock:
            again = not self._quiet
            self._quiet = True
            self._timer = call_later(QUIET_S, self._due) if again else None
        if not again:
            try:
                self.refresh()
            except Exception:  # noqa: BLE001 - a timer has nobody to tell it to
                _log.warning("the record of a cast cannot be brought up to date", exc_info=True)

    def _put(self, *, update: bool) -> None:
        self._changed = False
        drawn, text = RecordPicture(self.cast), RecordText(self.cast)
        told = (drawn.svg, repr(text))
        if update and told == self._told:
            return
        self._told = told
        for name, one in (("text", text), ("picture", drawn)):
            self._display(
                one._repr_mimebundle_(),
                raw=True,
                metadata=one.metadata,
                display_id=f"materia-{self.cast.id}-{name}",
                update=update,
            )
