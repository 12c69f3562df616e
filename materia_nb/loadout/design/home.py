"""Where a design is kept: a file, as it was when it was read, or this notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from materia_nb.loadout.facts import Object


@dataclass(frozen=True, slots=True)
class Home:
    """Where a loadout is saved.

    Attributes:
        path: the file; None for this notebook.
        seen: what the file held when it was read; None when it was not there.
        why: why it is saved here and not where it came from; empty when it came from here.
        below: the loadout as the layers below this place have it: a field of it that is not wanted is saved as
            null, or it would shine through (R33).
        materia: the materia as those layers have them, by id.
    """

    path: Path | None
    seen: str | None = field(default=None, repr=False)
    why: str = ""
    below: Object = field(default_factory=dict, repr=False, compare=False)
    materia: Object = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return "this notebook" if self.path is None else str(self.path)


NOTEBOOK: Final = Home(None)
