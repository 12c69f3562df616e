"""Who follows a cast while it runs: views that are called after every change, with each event, or as an answer comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from materia_nb.engine.events import Event
from materia_nb.errors import named_error
from materia_nb.platform import resting

_E = TypeVar("_E", bound=Event)


class Followers:
    """Who follows one cast. One that raises is not called again.

    Attributes:
        watchers: those called after every change.
        listeners: those called whenever more of an answer has come.
        readers: those called with each event that was written.
    """

    def __init__(self, messages: list[str]) -> None:
        """Have nobody yet; ``messages`` is told why somebody stopped."""
        self._messages = messages
        self.watchers: list[Callable[[], None]] = []
        self.listeners: list[Callable[[], None]] = []
        self.readers: list[Callable[[Event], None]] = []

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` after every change; returns a function that ends it."""
        return _added(self.watchers, watcher)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever more of an answer has come; it must be quick. Returns a function that ends it."""
        return _added(self.listeners, listener)

    def read(self, kind: type[_E], reader: Callable[[_E], object]) -> Callable[[], None]:
        """Call ``reader`` with each event of a kind, once it is written; returns a function that ends it."""
        return _added(self.readers, lambda event: reader(event) if isinstance(event, kind) else None)

    def told(self, events: Sequence[Event]) -> None:
        """Tell the readers what was written, in its order."""
        for event in events:
            self._call(self.readers, "reading the events of", event)

    def tell(self) -> None:
        """Tell the watchers that something changed."""
        self._call(self.watchers, "following")

    def hear(self) -> None:
        """Tell the listeners that more of an answer has come."""
        self._call(self.listeners, "listening to")

    def _call(self, views: list[Any], what: str, *given: Event) -> None:
        for view in tuple(views):
            try:
                resting(partial(view, *given))
            except Exception as error:  # noqa: BLE001 - a view must not break the cast
                if view in views:
                    views.remove(view)
                self._messages.append(f"A view stopped {what} the cast: {named_error(error)}")


def _added(views: list[Any], view: Callable[..., object]) -> Callable[[], None]:
    views.append(view)
    return lambda: views.remove(view) if view in views else None
