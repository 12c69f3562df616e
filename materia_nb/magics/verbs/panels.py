"""Verbs that show live panels: show, panel."""

from __future__ import annotations

from typing import Any

from materia_nb.magics.registry import Argument, Call, verb


@verb("show")
def show(call: Call) -> Any:
    """Show the cast with buttons: go on with it, see its graph, edit items and state, answer, look at handoffs."""
    from materia_nb.widgets import bench

    return bench.show(call.bench.current, forked=call.bench.take)


@verb(
    "panel",
    Argument("name", "items, state, handoff, reply, timeline, toolbar or graph", required=True),
    example="%materia panel items",
)
def panel(call: Call) -> Any:
    """Show one live panel of the cast; showing it again replaces it."""
    from materia_nb.widgets import bench

    return bench.show_one(call.bench.current, str(call.get("name")))
