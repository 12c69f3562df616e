"""The graph of a loadout, resolved against its materia; and what can be drawn of one that cannot be cast (R41)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import ceil
from pathlib import Path
from typing import Final, Literal

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import (
    WORK_ITEMS,
    WORK_ITEMS_SOURCE,
    Derivation,
    Facts,
    Object,
    as_list,
    as_object,
    assigns_work_items,
    camel,
    derive,
    is_condition,
    is_object,
    is_text,
    materia_group,
    materia_kind,
    placed_materia,
    socket_advance,
    socket_iterator,
    whole,
)
from materia_nb.loadout.graph import (
    CAST_CONTEXTS,
    DEFAULT_TIMEOUT_MS,
    END,
    Budget,
    CastContext,
    Edge,
    ExitRoute,
    Graph,
    Limits,
    Loop,
    Materia,
    Socket,
)
from materia_nb.loadout.report import INVALID_CONFIG, LoadoutError, Problem, Report
from materia_nb.loadout.validate import find_problems
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF


def sketch_graph(document: JSON, name: str | None, visited: Mapping[str, str]) -> Graph:
    """Make a graph of whatever is well formed; never raises.

    Args:
        document: the config.
        name: the loadout.
        visited: sockets that must be there, since something was recorded of them, each with its materia.
    """
    loadouts = as_object(as_object(document).get("loadouts"))
    title = name or next(iter(loadouts), "")
    facts = Facts(title, as_object(loadouts.get(title)), as_object(as_object(document).get("materia")))
    ids = dict.fromkeys([*facts.sockets, *visited])
    entry = facts.raw.get("entry")
    return Graph(
        name=title,
        entry=entry if isinstance(entry, str) and entry in ids else next(iter(ids), END),
        sockets={id_: _sketched_socket(facts, id_, ids, visited.get(id_)) for id_ in ids},
        loops={loop.id: _loop(facts, loop.id, ids) for loop in facts.loops},
        limits=Limits(),
        budget=Budget(),
        derived=(),
        consumers={},
    )


def _sketched_socket(facts: Facts, id_: str, ids: Iterable[str], recorded: str | None) -> Socket:
    named = facts.sockets.get(id_, {}).get("materia")
    raw = facts.materia_of(id_)
    return Socket(
        id=id_,
        materia=_sketched_materia(named if is_text(named) else recorded or "?", raw),
        parse="text",
        assign=(),
        edges=tuple(
            Edge(edge["when"], edge["to"], place)
            for place, edge in facts.edges(id_)
            if is_condition(edge.get("when")) and _is_target(edge.get("to"), ids)
        ),
        advance=None,
        iterator=None,
        loops=tuple(loop.id for loop in facts.loops_of.get(id_, ())),
    )


def _sketched_materia(id_: str, raw: Object) -> Materia:
    label = raw.get("label")
    return Materia(
        id=id_,
        label=label if is_text(label) else id_,
        kind=materia_kind(raw),
        prompt="",
        generator=raw.get("generator") is True,
        multi_turn=False,
        tools="none",
        model=None,
        thinking=None,
        command=(),
        script=None,
        params={},
        timeout_ms=0,
        owner=None,
        raw=raw,
    )


def _loop(facts: Facts, id_: str, ids: Iterable[str]) -> Loop:
    loop = next(one for one in facts.loops if one.id == id_)
    generator = (loop.consumes or {}).get("from")
    routes = [
        ExitRoute(str(raw.get("id")), id_, raw["from"], raw["condition"], raw["targetSocketId"])
        for raw in map(as_object, as_list(loop.raw.get("exits")))
        if raw.get("from") in loop.members
        and raw["from"] in ids
        and is_condition(raw.get("condition"))
        and _is_target(raw.get("targetSocketId"), ids)
    ]
    return Loop(
        id=id_,
        sockets=tuple(member for member in loop.members if member in ids),
        generator=generator if isinstance(generator, str) and generator in ids else None,
        output=None,
        iterator=None,
        routes=tuple(routes),
    )


def _is_target(target: JSON, ids: Iterable[str]) -> bool:
    return isinstance(target, str) and (target == END or target in ids)


LONGEST_TIMEOUT_MS: Final = 2**31 - 1  # about 24 days: beyond it, waiting overflows on some systems


def build_graph(
    document: JSON, loadout_name: str | None = None, owners: Mapping[str, Path] | None = None
) -> Graph:
    """Check one loadout of a config and resolve it into the graph that a cast runs.

    Args:
        document: the config as JSON; it is not changed.
        loadout_name: the loadout; None takes the active one (see :func:`active_loadout`).
        owners: materia id -> directory of the config file that it came from (R24).

    Raises:
        LoadoutError: the loadout, a materia that it uses, or the top of the config has problems.
    """
    name = active_loadout(document) if loadout_name is None else loadout_name
    problems = find_problems(document, name)
    if problems:
        raise LoadoutError(Report(tuple(problems)), name)
    if name is None:
        raise LoadoutError(Report((_NO_LOADOUT,)))
    facts = Facts(name, document["loadouts"][name], as_object(document.get("materia")))
    derivation = derive(facts)
    used = dict.fromkeys(placed_materia(facts))
    materia = {id_: _materia(id_, facts.materia[id_], (owners or {}).get(id_)) for id_ in used}
    told: CastContext = facts.raw.get("castContext") or document.get("castContext") or CAST_CONTEXTS[0]
    sockets = {
        id_: _socket(derivation, id_, raw, materia[raw["materia"]], told)
        for id_, raw in facts.sockets.items()
    }
    consumers: dict[str, tuple[str, ...]] = {}
    for loop in derivation.loops.values():
        if loop.generator is not None:
            consumers[loop.generator] = (*consumers.get(loop.generator, ()), loop.id)
    return Graph(
        name=name,
        entry=str(facts.entry),
        sockets=sockets,
        loops=derivation.loops,
        limits=_limits(as_object(document.get("limits"))),
        budget=_budget(as_object(document.get("budget"))),
        derived=tuple(derivation.told),
        consumers=consumers,
        document=_own_document(document, name, used),
    )


def _own_document(document: Object, name: str, used: Collection[str]) -> dict[str, JSON]:
    """Cut a config down to one loadout and what it uses."""
    kept = {key: value for key, value in document.items() if key not in ("loadouts", "materia")}
    kept["activeLoadout"] = name
    kept["loadouts"] = {name: document["loadouts"][name]}
    kept["materia"] = {key: document["materia"][key] for key in document["materia"] if key in used}
    return kept


def active_loadout(document: JSON) -> str | None:
    """Return the name of the loadout to cast: ``activeLoadout``, else the first one; None without any."""
    loadouts = as_object(as_object(document).get("loadouts"))
    active = as_object(document).get("activeLoadout")
    return active if isinstance(active, str) else next(iter(loadouts), None)


_NO_LOADOUT = Problem(INVALID_CONFIG, "loadouts", "the config has no loadouts", "add one")


def _socket(derivation: Derivation, id_: str, raw: Object, materia: Materia, told: CastContext) -> Socket:
    facts = derivation.facts
    loadout_layout = as_object(as_object(facts.raw.get("layout")).get("sockets")).get(id_)
    layout = loadout_layout if is_object(loadout_layout) else raw.get("layout")
    parse = _parse(derivation, id_, materia)
    return Socket(
        id=id_,
        materia=materia,
        parse=parse,
        assign=_assign(derivation, id_, raw, materia),
        edges=tuple(
            Edge(edge["when"], edge["to"], place, whole(edge.get("maxTraversals")))
            for place, edge in enumerate(as_list(raw.get("edges")))
        ),
        advance=socket_advance(derivation, id_),
        iterator=socket_iterator(facts, id_),
        loops=tuple(loop.id for loop in facts.loops_of.get(id_, ())),
        handoff=raw.get("handoff") or facts.raw.get("handoff") or DEFAULT_HANDOFF,
        parse_derived=id_ in derivation.json_sources,
        finalize=raw.get("finalize") is True and parse == "json" and _finalizes_alone(materia),
        cast_context=raw.get("castContext") or told,
        assignment=as_object(raw.get("assignment")),
        layout=layout if is_object(layout) else None,
    )


def _finalizes_alone(materia: Materia) -> bool:
    """Whether ``finalize`` means something for it: a process has no second turn, and drafts end with one anyway."""
    return materia.kind == "agent" and not materia.multi_turn


def _parse(derivation: Derivation, id_: str, materia: Materia) -> Literal["json", "text"]:
    """Return the parse mode in effect (R4, R15)."""
    authored = derivation.facts.authored_parse(id_)
    if materia.generator:
        if authored != "json":
            derivation.tell(f"{id_}.parse", f"{id_} is parsed as json, because {materia.id} is a generator")
        return "json"
    return "json" if authored == "json" or id_ in derivation.json_sources else "text"


def _assign(derivation: Derivation, id_: str, raw: Object, materia: Materia) -> tuple[tuple[str, str], ...]:
    """Return the assignments in effect: a utility's own, else the socket's; a generator hands on its items (R4)."""
    owner = materia.raw if materia.kind == "utility" else raw
    assign = tuple(as_object(owner.get("assign")).items())
    if not materia.generator:
        return assign
    if not any(assigns_work_items(target) and source == WORK_ITEMS_SOURCE for target, source in assign):
        derivation.tell(
            f"{id_}.assign", f"{id_} assigns {WORK_ITEMS} from {WORK_ITEMS_SOURCE}, being a generator"
        )
    others = tuple(pair for pair in assign if not assigns_work_items(pair[0]))
    return (*others, (WORK_ITEMS, WORK_ITEMS_SOURCE))


def _materia(id_: str, raw: Object, owner: Path | None) -> Materia:
    label, tools, script = raw.get("label"), raw.get("tools", "none"), raw.get("script")
    if is_object(tools):
        tools = tools["tools"]
    timeout = raw.get("timeoutMs", DEFAULT_TIMEOUT_MS)
    kind = materia_kind(raw)
    return Materia(
        id=id_,
        label=label if isinstance(label, str) and label.strip() else id_,
        kind=kind,
        prompt=raw["prompt"] if kind == "agent" else "",
        generator=raw.get("generator") is True,
        multi_turn=kind == "agent" and raw.get("multiTurn") is True,
        tools=tools if isinstance(tools, str) else tuple(tools),
        model=raw.get("model") if kind == "agent" else None,
        thinking=raw.get("thinking") if kind == "agent" else None,
        command=tuple(raw.get("command") or ()) if kind == "utility" else (),
        script=script if kind == "utility" else None,
        params=as_object(raw.get("params")),
        timeout_ms=min(ceil(timeout), LONGEST_TIMEOUT_MS) if kind == "utility" else DEFAULT_TIMEOUT_MS,
        owner=owner,
        raw=raw,
        group=materia_group(raw),
    )


def _limits(raw: Object) -> Limits:
    given = {name: whole(raw.get(camel(name))) for name in Limits.__slots__}
    return Limits(**{name: number for name, number in given.items() if number is not None})


def _budget(raw: Object) -> Budget:
    warn = raw.get("warnAtPercent")
    most = whole(raw.get("maxTokens"))
    return Budget(most) if warn is None else Budget(most, warn)
