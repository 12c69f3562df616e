"""Which part of a picture the canvas shows, told to it as the options of a ``preset`` layout."""

from __future__ import annotations

from typing import Any, Final

from materia_nb.display.geometry import Box, Point

_SMALLEST_TO_READ: Final = 0.62
_READING: Final = 0.85
_WIDTH: Final = 560.0
"""The kernel does not learn how wide the canvas is; this much is taken to be there."""
_MARGIN: Final = 40.0


class Viewport:
    """The view of a picture of ``size`` pixels in a canvas ``height`` pixels high.

    It begins with the whole picture where that can be read, else with its top, and then follows what it is told to.
    What a person moves with the mouse it does not learn of, so it changes nothing unless it must.
    """

    def __init__(self, size: tuple[float, float], height: float) -> None:
        self.size, self.height = size, height
        self.zoom = min(1.0, height / size[1])
        self._pan: Point | None = None
        self._followed: Box | None = None
        self._told = 0
        if self.zoom < _SMALLEST_TO_READ:
            self.zoom = _READING
            self._centre(size[0] / 2, 0)

    @property
    def layout(self) -> dict[str, Any]:
        """The options: all positions are those that the elements bring."""
        # The same options once more would not be sent, and the canvas may be of another size by now.
        options = {"name": "preset", "padding": 2 + 0.001 * (self._told % 2), "animate": False}
        if self._pan is None:
            return {**options, "fit": True}
        pan = {"x": round(self._pan[0], 1), "y": round(self._pan[1], 1)}
        return {**options, "fit": False, "zoom": round(self.zoom, 3), "pan": pan}

    def take(self, other: Viewport) -> None:
        """Show the same part as the view of an earlier picture, as far as this one goes."""
        if other._pan is not None:
            x, y = other._middle()
            self.zoom = other.zoom
            self._centre(x, y)

    def fit(self) -> None:
        """Show the whole picture."""
        self.zoom, self._pan = min(1.0, self.height / self.size[1]), None

    def again(self) -> None:
        """Tell the canvas once more, although nothing changed."""
        self._told += 1

    def zoom_by(self, factor: float) -> None:
        """Show it larger or smaller, about the middle of what is shown."""
        x, y = self._middle()
        self.zoom = min(2.5, max(0.1, self.zoom * factor))
        self._centre(x, y)

    def reach(self, box: Box) -> None:
        """Bring a box into view, if it is not there."""
        if self._pan is None:
            return
        left, top = (box.x * self.zoom + self._pan[0]), (box.y * self.zoom + self._pan[1])
        if not (0 <= left <= _WIDTH - box.w * self.zoom and 0 <= top <= self.height - box.h * self.zoom):
            self._centre(box.cx, box.cy)

    def follow(self, box: Box) -> None:
        """As :meth:`reach`, but only when the box is another one than the last time."""
        if box != self._followed:
            self._followed = box
            self.reach(box)

    def _middle(self) -> Point:
        if self._pan is None:
            return self.size[0] / 2, self.size[1] / 2
        wide = min(_WIDTH, self.size[0] * self.zoom)
        return (wide / 2 - self._pan[0]) / self.zoom, (self.height / 2 - self._pan[1]) / self.zoom

    def _centre(self, x: float, y: float) -> None:
        """Put a point of the picture into the middle, as far as the picture goes."""
        wide, high = self.size[0] * self.zoom, self.size[1] * self.zoom
        self._pan = (_clamped(_WIDTH, wide, x * self.zoom), _clamped(self.height, high, y * self.zoom))


def _clamped(room: float, whole: float, at: float) -> float:
    """Where the picture begins so that ``at`` is in the middle, without showing more than the margin beside it."""
    if whole <= room:
        return 0.0
    return min(0.0, max(room - whole, room / 2 - at))
