"""Where tools work, and until when."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from materia_nb.agents.tools.place import Root
from materia_nb.agents.tools.tool import Refused


@dataclass(frozen=True, slots=True)
class Work:
    """The project, and what is set when the cast is to stop."""

    root: Root
    stop: threading.Event | None = None

    def go_on(self) -> None:
        """Raise Refused once the cast is to stop."""
        if self.stop is not None and self.stop.is_set():
            raise Refused("The cast was stopped.")
