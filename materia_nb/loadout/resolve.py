"""From a config to the graph of a loadout, resolved against its materia, or to every problem at once (R26, R27).

And to what can be drawn of a loadout that cannot be cast (R41).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from materia_nb.jsonvalue import JSON, FrozenDict, frozen
from materia_nb.loadout.facts import (
    BUILT_IN,
    WORK_ITEMS,
    WORK_ITEMS_SOURCE,
    Derivation,
    Facts,
    Object,
    as_object,
    assigns_work_items,
    derive,
    is_condition,
    is_object,
    is_parallel,
    is_text,
    materia_group,
    materia_kind,
    placed_materia,
    socket_advance,
    socket_iterator,
    text_or,
    whole,
)
from materia_nb.loadout.graph import Budget, Edge, Graph, Limits, Loop, Materia, Price, Socket, cast_context
from materia_nb.loadout.regions import check_regions, regions_of
from materia_nb.loadout.report import (
    INVALID_CONFIG,
    Findings,
    LoadoutError,
    Problem,
    Report,
    brief,
)
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF

if TYPE_CHECKING:
    from materia_nb.loadout.fields import Model

_Resolved = TypeVar("_Resolved", Limits, Budget, Price)


def check_config(document: JSON, loadout: str | None = None) -> Report:
    """Check a config, or only one loadout of it with the materia that it uses.

    Never raises, whatever the document.

    Args:
        document: the config as JSON.
        loadout: the name of the loadout to check; None checks all of them and every materia.
    """
    from materia_nb.loadout.rules import find_hints

    return Report(tuple(find_problems(document, loadout)), tuple(find_hints(document, loadout)))


_CHECKED: Final[dict[tuple[int, str | None], tuple[JSON, list[Problem]]]] = {}
"""The problems of the last few documents that cannot change, by which object each is."""
_MOST_CHECKED: Final = 8


def find_problems(document: JSON, loadout: str | None = None) -> list[Problem]:
    """Return what stops a cast, without the hints; arguments as in :func:`check_config`.

    A document that cannot change is checked once: who looks at a loadout casts it next.
    """
    if type(document) is not FrozenDict:
        return _find_problems(document, loadout)
    known, problems = _CHECKED.pop((id(document), loadout), (None, []))
    if known is not document:
        problems = _find_problems(document, loadout)
    _CHECKED[id(document), loadout] = document, problems
    for key in list(_CHECKED)[:-_MOST_CHECKED]:
        _CHECKED.pop(key, None)
    return list(problems)


def _find_problems(document: JSON, loadout: str | None) -> list[Problem]:
    """Check a document. The models are loaded here: pydantic is slow to import, and not everyone needs it."""
    from materia_nb.loadout.check_graph import (
        check_fields,
        check_loops,
        check_materia,
        check_servers,
        check_sockets,
    )
    from materia_nb.loadout.models import Config, Loadout

    findings = Findings()
    check_fields(findings, Config, document, itself="config")
    if not is_object(document):
        return findings.found
    check_servers(findings, document.get("mcpServers"))
    _check_named(findings, document, loadout)
    loadouts = as_object(document.get("loadouts"))
    names = list(loadouts) if loadout is None else [loadout] if loadout in loadouts else []
    used: set[str] = set()
    for name in names:
        raw = loadouts[name]
        if not is_object(raw):
            check_fields(findings, Loadout, raw, f"loadouts.{name}")
            continue
        facts = Facts(name, raw, as_object(document.get("materia")))
        findings.loadout = name
        check_fields(findings, Loadout, raw)
        check_sockets(findings, facts)
        check_loops(findings, facts)
        check_regions(findings, facts)
        findings.loadout = None
        used.update(placed_materia(facts))
    for name, raw in as_object(document.get("materia")).items():
        if loadout is None or name in used:
            check_materia(findings, name, raw)
    return findings.found


def _check_named(findings: Findings, document: Object, loadout: str | None) -> None:
    """Note the name of a loadout that is not there."""
    loadouts = as_object(document.get("loadouts"))
    if loadout is not None and loadouts and loadout not in loadouts:
        findings.problem(
            INVALID_CONFIG, "loadouts", f"there is no loadout {loadout!r}", findings.near(loadout, loadouts)
        )
    active = document.get("activeLoadout")
    named = loadout is None and active is not None and is_object(document.get("loadouts"))
    if named and not (isinstance(active, str) and active in loadouts):
        what = f"there is no loadout {brief(active)}"
        findings.problem(INVALID_CONFIG, "activeLoadout", what, findings.near(str(active), loadouts))


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
    from materia_nb.loadout import models

    document = frozen(document)
    name = active_loadout(document) if loadout_name is None else loadout_name
    problems = find_problems(document, name)
    if problems:
        raise LoadoutError(Report(tuple(problems)), name)
    if name is None:
        raise LoadoutError(Report((_NO_LOADOUT,)))
    facts = Facts(name, document["loadouts"][name], as_object(document.get("materia")), document)
    used = dict.fromkeys(placed_materia(facts))
    materia = {id_: _materia(id_, facts.materia[id_], (owners or {}).get(id_)) for id_ in used}
    graph = _resolved(derive(facts), {id_: materia[raw["materia"]] for id_, raw in facts.sockets.items()})
    return replace(
        graph,
        limits=_bounds(Limits, models.LimitsFields, document.get("limits")),
        budget=_bounds(Budget, models.BudgetFields, document.get("budget")),
        document=frozen(_own_document(document, name, used)),
        keep_thinking=document.get("keepThinking") is not False,
        prices=FrozenDict(_prices(document.get("prices"))),
        mcp_servers=as_object(document.get("mcpServers")),
    )


def _resolved(derivation: Derivation, materia: Mapping[str, Materia]) -> Graph:
    """Return a graph of sockets that place these materia, by id; what is not well formed is left out."""
    sockets = {id_: _socket(derivation, id_, materia[id_]) for id_ in derivation.ids}
    entry = derivation.facts.entry
    return Graph(
        name=derivation.facts.name,
        entry=entry if isinstance(entry, str) and entry in sockets else "",
        sockets=FrozenDict(sockets),
        loops=FrozenDict(derivation.loops),
        derived=tuple(derivation.sentences),
        consumers=FrozenDict(_consumers(derivation.loops.values())),
        regions=FrozenDict(regions_of(derivation.facts)),
    )


def _consumers(loops: Iterable[Loop]) -> dict[str, tuple[str, ...]]:
    """Return which loops go over the work items of each generator."""
    consumers: dict[str, tuple[str, ...]] = {}
    for loop in loops:
        if loop.generator is not None:
            consumers[loop.generator] = (*consumers.get(loop.generator, ()), loop.id)
    return consumers


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


def _socket(derivation: Derivation, id_: str, materia: Materia) -> Socket:
    facts, raw = derivation.facts, derivation.facts.sockets.get(id_, {})
    parse = _parse(derivation, id_, materia)
    utility = (
        materia.kind == "utility"
    )  # it has no second turn to be asked in, and drafts end with one anyway
    contexts = (owner.get("castContext") for owner in (raw, materia.raw, facts.raw, facts.config))
    return Socket(
        id=id_,
        materia=materia,
        parse=parse,
        assign=_assign(derivation, id_, materia),
        edges=tuple(_edges(derivation, id_)),
        advance=socket_advance(derivation, id_),
        iterator=socket_iterator(facts, id_),
        loops=tuple(loop.id for loop in facts.loops_of.get(id_, ())),
        handoff=text_or(raw.get("handoff"), text_or(facts.raw.get("handoff"), DEFAULT_HANDOFF)),
        parse_derived=id_ in derivation.json_sources,
        finalize=raw.get("finalize") is True and parse == "json" and not (utility or materia.multi_turn),
        cast_context=cast_context(next(filter(None, contexts), None)),
        prompt_form=raw.get("promptForm"),
        assignment=as_object(raw.get("assignment")),
        layout=_layout(facts, id_, raw),
    )


def _edges(derivation: Derivation, id_: str) -> Iterator[Edge]:
    for place, edge in derivation.facts.edges(id_):
        when, to, most = edge.get("when"), edge.get("to"), whole(edge.get("maxTraversals"))
        if is_condition(when) and derivation.leads(to):
            yield Edge(when, to, place, most if most is not None and most > 0 else None)


def _layout(facts: Facts, id_: str, raw: Object) -> Object | None:
    """Return where a socket is drawn: as the loadout says, else the socket itself."""
    spot = as_object(as_object(facts.raw.get("layout")).get("sockets")).get(id_)
    drawn = spot if is_object(spot) else raw.get("layout")
    return drawn if is_object(drawn) else None


def _parse(derivation: Derivation, id_: str, materia: Materia) -> Literal["json", "text"]:
    """Return the parse mode in effect (R4, R15)."""
    authored = derivation.facts.authored_parse(id_)
    if materia.generator:
        if authored != "json":
            derivation.say(f"{id_}.parse", f"{id_} is parsed as json, because {materia.id} is a generator")
        return "json"
    return "json" if authored == "json" or id_ in derivation.json_sources else "text"


def _assign(derivation: Derivation, id_: str, materia: Materia) -> tuple[tuple[str, str], ...]:
    """Return the assignments in effect: a utility's own, else the socket's; a generator hands on its items (R4)."""
    written = derivation.facts.assignments(id_) if id_ in derivation.facts.sockets else ()
    assign = tuple((target, source) for _, target, source in written if isinstance(source, str))
    if not materia.generator:
        return assign
    if not any(assigns_work_items(target) and source == WORK_ITEMS_SOURCE for target, source in assign):
        derivation.say(
            f"{id_}.assign", f"{id_} assigns {WORK_ITEMS} from {WORK_ITEMS_SOURCE}, being a generator"
        )
    others = tuple(pair for pair in assign if not assigns_work_items(pair[0]))
    return (*others, (WORK_ITEMS, WORK_ITEMS_SOURCE))


def _materia(id_: str, raw: Object, owner: Path | None) -> Materia:
    from materia_nb.loadout.models import UtilityMateria

    tools = raw.get("tools", "none")
    if is_object(tools):
        tools = tools["tools"]
    made = replace(
        _plain_materia(id_, raw),
        tools=tools if isinstance(tools, str) else tuple(tools),
        params=as_object(raw.get("params")),
        owner=owner,
    )
    if made.kind == "utility":
        return replace(
            made,
            multi_turn=False,
            command=tuple(raw.get("command") or ()),
            script=raw.get("script") or _built_in(raw),
            timeout_ms=UtilityMateria.model_validate(raw).model_dump()["timeout_ms"],
        )
    return replace(made, prompt=raw["prompt"], model=raw.get("model"), thinking=raw.get("thinking"))


def _built_in(raw: Object) -> Object | None:
    """Return the script of a utility that is named as in the reference engine (R61)."""
    name = raw.get("utility")
    if raw.get("command") is not None or not isinstance(name, str) or name not in BUILT_IN:
        return None
    return {"kind": "shippedUtility", "name": BUILT_IN[name]}


def _bounds(kind: type[_Resolved], model: type[Model], raw: JSON) -> _Resolved:
    """Return limits, a budget or a price: the fields that are written, each as it counts; null is as good as left out."""
    read = model.model_validate(as_object(raw)).model_dump()
    named = {one.name for one in fields(kind)}
    return kind(**{name: value for name, value in read.items() if name in named and value is not None})


def _prices(raw: JSON) -> dict[str, Price]:
    from materia_nb.loadout.models import PriceFields

    written = {name: one for name, one in as_object(raw).items() if one is not None}
    return {name: _bounds(Price, PriceFields, one) for name, one in written.items()}


# -- what cannot be cast ------------------------------------------------------------------


def sketch_graph(document: JSON, name: str | None, visited: Mapping[str, str | None] | None = None) -> Graph:
    """Return what is well formed of a loadout as a graph to be looked at; it is not meant to be cast. Never raises.

    Edges and exits that lead nowhere and sockets that are not objects are left out; places, by which an edge is
    known, are those of the document.

    Args:
        document: the config.
        name: the loadout; None takes the first.
        visited: sockets that must be there, since something was recorded of them, each with its materia if it is known.
    """
    loadouts = as_object(as_object(document).get("loadouts"))
    title, recorded = name or next(iter(loadouts), ""), visited or {}
    facts = Facts(title, as_object(loadouts.get(title)), as_object(as_object(document).get("materia")))
    ids = dict.fromkeys([*facts.sockets, *recorded])
    materia = {}
    for id_ in ids:
        raw = facts.sockets.get(id_, {})
        names = (raw.get("materia"), recorded.get(id_), raw.get("utility"), "no materia")
        title_of = next(name for name in names if is_text(name))
        materia[id_] = _plain_materia(title_of, facts.materia_of(id_) or raw)  # a socket can define its own
    graph = _resolved(derive(facts, ids), materia)
    # It cannot be cast, so nobody speaks a protocol; one that is not installed must not keep it from being looked at.
    sockets = {id_: replace(one, handoff=DEFAULT_HANDOFF) for id_, one in graph.sockets.items()}
    return replace(graph, entry=graph.entry or next(iter(recorded), ""), sockets=sockets)


def _plain_materia(id_: str, raw: Object) -> Materia:
    """Return what can be said of any definition, well formed or not."""
    return Materia(
        id=id_,
        label=text_or(raw.get("label"), id_),
        kind=materia_kind(raw),
        generator=raw.get("generator") is True,
        parallel=is_parallel(raw),
        multi_turn=raw.get("multiTurn") is True,
        raw=raw,
        group=materia_group(raw),
    )
