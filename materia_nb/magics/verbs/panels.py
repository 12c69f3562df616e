"""Verbs that show live panels: show, panel, design."""

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


@verb(
    "design",
    Argument("--new", "begin an empty loadout of that name", "flag"),
    Argument("loadout", "a loadout, the chosen one if left out", "rest", completes="loadout"),
    example="%materia design Plan-Build-Eval",
)
def design(call: Call) -> Any:
    """Edit a loadout on its graph: sockets, edges, loops, exits; with problems told, undo, and saving."""
    from materia_nb.widgets.designer import show_designer

    return show_designer(call.bench, call.get("loadout"), new=bool(call.get("new")))
