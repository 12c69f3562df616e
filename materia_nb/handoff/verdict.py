"""What a valid output means for the graph, in the words of every protocol."""

from __future__ import annotations

from typing import NamedTuple

from materia_nb.handoff.protocol import Action, Issue, Needs, Reading
from materia_nb.jsonvalue import JSON


class Verdict(NamedTuple):
    """Whether the step is satisfied, what happens next and why, and what was odd; as in ``Reading``."""

    satisfied: bool | None
    action: Action = "route"
    reason: str = ""
    target: str | None = None
    needs: Needs | None = None
    warnings: tuple[Issue, ...] = ()

    def reading(
        self,
        value: JSON,
        *,
        context: str,
        work_items: list[JSON] | None,
        issues: tuple[Issue, ...] = (),
        memory: JSON = None,
    ) -> Reading:
        """Return the reading of an accepted output with this verdict."""
        return Reading(
            value,
            issues=issues,
            satisfied=self.satisfied,
            context=context,
            work_items=work_items,
            action=self.action,
            target=self.target,
            warnings=self.warnings,
            reason=self.reason,
            needs=self.needs,
            memory=memory,
        )
