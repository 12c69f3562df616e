"""Tables of what there is: loadouts, materia, who answers, casts, quests, work items, breakpoints, tokens, leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from materia_nb.display.escape import shorten
from materia_nb.engine.step import short
from materia_nb.jsonvalue import compact, pretty
from materia_nb.loadout.facts import as_object, materia_group, materia_kind
from materia_nb.views import Table, loop_progress

if TYPE_CHECKING:
    from materia_nb.agents.registry import AgentTable
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.insight.ask import Found
    from materia_nb.loadout.layers import LayeredConfig
    from materia_nb.store.catalogue import CastEntry
    from materia_nb.store.quests import Quest
    from materia_nb.workbench import Workbench

GROUPS: Final = {"socket": "bySocket", "materia": "byMateria", "item": "byTask"}
"""What tokens are added up by, and what that is called in usage.json."""


def loadouts_view(loadouts: Mapping[str, str], chosen: str | None, config: LayeredConfig) -> Table:
    """The loadouts, where each comes from, which is chosen; and what was left out because it is faulty."""
    found = as_object(config.document.get("loadouts"))
    rows = [
        (
            "*" if name == chosen else "",
            name,
            _layers(config, "loadout", name) or origin,
            str(len(as_object(as_object(found.get(name)).get("sockets")))),
        )
        for name, origin in loadouts.items()
    ]
    rows += [("left out", f"{fault.what} ({fault.where})", fault.hint or "", "") for fault in config.faults]
    return Table(("", "loadout", "from", "sockets"), rows, "no loadouts")


def materia_view(config: LayeredConfig, agents: AgentTable) -> Table:
    """The materia: what each is, the layer that it comes from, and who answers."""
    rows = []
    for name, raw in as_object(config.document.get("materia")).items():
        given = as_object(raw)
        utility = materia_kind(given) == "utility"
        kind = ("utility" if utility else "agent") + (", generator" if given.get("generator") is True else "")
        who = "a process" if utility else agents.for_turn("", name).name
        rows.append(
            (
                name,
                kind,
                materia_group(given),
                _layers(config, "materia", name) or config.origin("materia", name).name,
                who,
                shorten(str(given.get("description", "")), 80),
            )
        )
    return Table(("materia", "kind", "group", "from", "answered by", "description"), rows, "no materia")


def fields_view(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> Table:
    """The fields of a loadout or a materia, and the layer that each came from (R33).

    Raises:
        MateriaError: no layer has it.
    """
    config.origin(kind, name)
    group = "loadouts" if kind == "loadout" else kind
    merged = as_object(as_object(config.document.get(group)).get(name))
    origins = config.origins(kind, name)
    rows = [
        (key, shorten(value if isinstance(value, str) else pretty(value), 120), str(origins[key]))
        for key, value in merged.items()
    ]
    return Table(("field", "value", "from"), rows, "no fields")


def _layers(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> str:
    """Name the layers that the fields came from, the lowest first."""
    came = {layer.name for layer in config.origins(kind, name).values()}
    return ", ".join(layer.name for layer in config.layers if layer.name in came)


def agents_view(agents: AgentTable) -> Table:
    """Who answers what."""
    rows = [(one.name or "everyone else", one.agent) for one in agents.describe()]
    return Table(("materia or socket", "answered by"), rows)


def pins_view(bench: Workbench) -> Table:
    """What is pinned: in the current cast, and for casts that begin later (R40)."""
    later = bench.pins
    here = bench.cast_.pins if bench.cast_ is not None else {}
    rows = []
    for name, pin in {**{name: one.pin for name, one in later.items()}, **here}.items():
        both = name in later and name in here and later[name].pin == pin
        where = "this cast and later ones" if both else "this cast" if name in here else "later casts"
        if name in later and (loadout := later[name].loadout) is not None:
            where += f", of {loadout}"
        rows.append((name, pin.words, where, shorten(pin.text, 60)))
    return Table(("socket or materia", "pinned to", "in", "text"), rows, "nothing is pinned")


def breakpoints_view(cast: Cast) -> Table:
    """The breakpoints of a cast, and the paths of its state that are watched."""
    rows = [
        (name, condition.__doc__ or "condition" if condition else "always")
        for name, condition in cast.breakpoints.items()
    ]
    rows += [(f"state.{path}", "a step changes it") for path in cast.watchpoints]
    return Table(("stops at", "when"), rows, "no breakpoints")


def budget_view(cast: Snapshot) -> Table:
    """The tokens used against the budget."""
    usage, most = cast.now.usage, cast.now.budget.max_tokens
    share = f"{usage.tokens / most:.0%}" if most else ""
    if most is not None and usage.tokens >= most:
        share = f"{share}, used up: the cast stops behind the next socket".removeprefix(", ")
    return Table(
        ("tokens in", "tokens out", "in all", "budget", "used"),
        [
            (
                str(usage.input),
                str(usage.output),
                str(usage.tokens),
                "none" if most is None else str(most),
                share,
            )
        ],
    )


def casts_view(entries: Sequence[CastEntry]) -> Table:
    """Casts on disk, newest first."""
    rows = [
        (
            one.id,
            one.loadout or "",
            one.outcome,
            "" if one.steps is None else str(one.steps),
            short(one.request or "", 60),
        )
        for one in entries
    ]
    return Table(("cast", "loadout", "status", "steps", "request"), rows, "no casts yet")


def found_view(found: Sequence[Found]) -> Table:
    """What a question found in the outputs of the steps, one match a row."""
    rows = [
        (
            str(one.step),
            one.socket,
            one.item or "",
            shorten(one.value if isinstance(one.value, str) else compact(one.value), 200),
        )
        for one in found
    ]
    return Table(("step", "socket", "item", "value"), rows, "nothing found")


QUEST_COLUMNS: Final = ("quest", "status", "request", "loadout", "cast", "note")


def quests_view(quests: Sequence[Quest]) -> Table:
    """The quests of a board, in their order."""
    return Table(QUEST_COLUMNS, [quest_row(one) for one in quests], "no quests yet: quest add REQUEST")


def quest_row(quest: Quest) -> tuple[str, ...]:
    """What is told of a quest, by :data:`QUEST_COLUMNS`."""
    words = (short(quest.request, 80), quest.loadout or "the chosen one", quest.cast or "")
    return (quest.id, quest.status, *words, short(quest.note or "", 120))


def items_view(cast: Snapshot) -> Table:
    """The work items, which are done and which is current."""
    visit = cast.waiting_at
    current = visit.item.position if visit and visit.item else None
    done = max((done for done, _ in loop_progress(cast).values()), default=0)
    rows = []
    for index, item in enumerate(cast.work_items):
        stands = "current" if index == current else "done" if index < done else "open"
        title = item.get("title", "") if isinstance(item, dict) else pretty(item)
        context = item.get("context", "") if isinstance(item, dict) else ""
        rows.append((f"WI-{index + 1}", stands, shorten(str(title), 80), shorten(str(context), 120)))
    return Table(("item", "", "title", "context"), rows, "no work items")


def allowed_view(cast: Cast) -> Table:
    """Which tools of agents change something without asking, and which ask first."""
    rows = [
        (tool, "runs without asking" if allowed else "asks each time")
        for tool, allowed in cast.tools_that_ask.items()
    ]
    return Table(("tool", "in this cast"), rows)


def usage_view(cast: Cast, group: str = "socket") -> Table:
    """Tokens and cost by socket, materia or item, and in all."""
    report: Any = cast.usage
    rows = [_row(name, used) for name, used in report[GROUPS[group]].items()]
    whole = {**report["tokens"], "cost": report["cost"]["total"]}
    return Table((group, "tokens in", "tokens out", "together", "cost"), [*rows, _row("in all", whole)])


def _row(name: str, used: Any) -> tuple[str, ...]:
    cost = f"{used['cost']:.4f} USD" if used["cost"] else ""
    return name, str(used["input"]), str(used["output"]), str(used["total"]), cost
