"""What agents used of a cast: tokens and cost, and which of their tools need no leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from materia_nb.views import Table

if TYPE_CHECKING:
    from materia_nb.permits import Permits

GROUPS: Final = {"socket": "bySocket", "materia": "byMateria", "item": "byTask"}
"""What tokens are added up by, and what that is called in usage.json."""


def allowed_view(cast: Permits) -> Table:
    """Which tools of agents change something without asking, and which ask first."""
    rows = [
        (tool, "runs without asking" if allowed else "asks each time")
        for tool, allowed in cast.tools_that_ask.items()
    ]
    return Table(("tool", "in this cast"), rows)


def usage_view(cast: Permits, group: str = "socket") -> Table:
    """Tokens and cost by socket, materia or item, and in all."""
    report: Any = cast.usage
    rows = [_row(name, used) for name, used in report[GROUPS[group]].items()]
    whole = {**report["tokens"], "cost": report["cost"]["total"]}
    return Table((group, "tokens in", "tokens out", "together", "cost"), [*rows, _row("in all", whole)])


def _row(name: str, used: Any) -> tuple[str, ...]:
    cost = f"{used['cost']:.4f} USD" if used["cost"] else ""
    return name, str(used["input"]), str(used["output"]), str(used["total"]), cost
