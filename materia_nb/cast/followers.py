"""Who follows a cast while it runs: views that are called after every change, and whenever more of an answer has come."""

from __future__ import annotations

from collections.abc import Callable

from materia_nb.errors import named_error
from materia_nb.platform import resting


class Followers:
    """The watchers and the listeners of one cast. One that raises is not called again.

    Attributes:
        watchers: those called after every change.
        listeners: those called whenever more of an answer has come.
    """

    def __init__(self, messages: list[str]) -> None:
        """Have nobody yet; ``messages`` is told why somebody stopped."""
        self._messages = messages
        self.watchers: list[Callable[[], None]] = []
        self.listeners: list[Callable[[], None]] = []

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` after every change; returns a function that ends it."""
        return _added(self.watchers, watcher)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever more of an answer has come; it must be quick. Returns a function that ends it."""
        return _added(self.listeners, listener)

    def tell(self) -> None:
        """Tell the watchers that something changed."""
        self._call(self.watchers, "following")

    def hear(self) -> None:
        """Tell the listeners that more of an answer has come."""
        self._call(self.listeners, "listening to")

    def _call(self, views: list[Callable[[], None]], what: str) -> None:
        for view in tuple(views):
            try:
                with resting():
                    view()
            except Exception as error:  # noqa: BLE001 - a view must not break the cast
                if view in views:
                    views.remove(view)
                self._messages.append(f"A view stopped {what} the cast: {named_error(error)}")


def _added(views: list[Callable[[], None]], view: Callable[[], None]) -> Callable[[], None]:
    views.append(view)
    return lambda: views.remove(view) if view in views else None
