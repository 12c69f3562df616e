"""What a valid output means for the graph, in the words of every protocol."""

from __future__ import annotations

from typing import NamedTuple

from materia_nb.handoff.protocol import Action, Issue, Needs


class Verdict(NamedTuple):
    """Whether the step is satisfied, what happens next and why, and what was odd; as in ``Reading``."""

    satisfied: bool | None
    action: Action = "route"
    reason: str = ""
    target: str | None = None
    needs: Needs | None = None
    warnings: tuple[Issue, ...] = ()
