"""Check configs, resolve loadouts into graphs (R26, R27), and build graphs of invalid loadouts for drawing (R41)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from materia_nb.jsonvalue import JSON, FrozenDict, Object, as_object, frozen, is_object, is_text, text_or, whole_number
from materia_nb.loadout.graph import Budget, Edge, Graph, Limits, Loop, Materia, Price, Socket, parse_cast_context
from materia_nb.loadout.items import (
    Derivation,
    assigns_work_items,
    check_regions,
    derive,
    regions_of,
    socket_advance,
    socket_iterator,
)
from materia_nb.loadout.report import INVALID_CONFIG, Findings, LoadoutError, Problem, Report, brief
from materia_nb.loadout.topology import (
    BUILT_IN_SCRIPTS,
    GIT_TASK_BY_UTILITY,
    LoadoutFacts,
    MateriaFacts,
    SocketFacts,
    cached_per_config,
    loadout_facts,
    materia_group,
    parse_loadout,
    parse_materia,
    parts_to_check,
)
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, WORK_ITEMS, WORK_ITEMS_SOURCE

if TYPE_CHECKING:
    from materia_nb.loadout.fields import Model

_Settings = TypeVar("_Settings", Limits, Budget, Price)


def check_config(document: JSON, loadout: str | None = None) -> Report:
    """Check a whole config or a single loadout, and return the problems and hints.

    This function never raises, even if the config is malformed.

    Args:
        document: the config.
        loadout: the name of the loadout to check with its materia; None checks all loadouts and all materia.
    """
    from materia_nb.loadout.rules import find_hints

    return Report(tuple(find_problems(document, loadout)), tuple(find_hints(document, loadout)))


@cached_per_config
def find_problems(document: JSON, loadout: str | None) -> list[Problem]:
    """Return the problems with a config, but no hints. The arguments are the same as for :func:`check_config`."""
    # imported here, since pydantic is slow to import and not every caller checks a config
    from materia_nb.loadout.check_fields import check_fields, check_materia, check_servers
    from materia_nb.loadout.check_graph import check_loops, check_sockets
    from materia_nb.loadout.models import Config, Loadout

    findings = Findings()
    check_fields(findings, Config, document, object_path="config")
    if not is_object(document):
        return findings.entries
    check_servers(findings, document.get("mcpServers"))
    _check_loadout_name(findings, document, loadout)
    names, definitions = parts_to_check(document, loadout)
    for name in names:
        raw = document["loadouts"][name]
        if not is_object(raw):
            check_fields(findings, Loadout, raw, f"loadouts.{name}")
            continue
        facts = loadout_facts(document, name)
        findings.loadout = name
        check_fields(findings, Loadout, raw)
        check_sockets(findings, facts)
        check_loops(findings, facts)
        check_regions(findings, facts)
        findings.loadout = None
    for name, raw in definitions.items():
        check_materia(findings, name, raw)
    return findings.entries


def _check_loadout_name(findings: Findings, document: Object, loadout: str | None) -> None:
    """Report a loadout name that does not exist: ``loadout`` or, if that is None, ``activeLoadout``."""
    loadouts = as_object(document.get("loadouts"))
    if loadout is not None and loadouts and loadout not in loadouts:
        message = f"the loadout {loadout!r} does not exist"
        findings.problem(INVALID_CONFIG, "loadouts", message, findings.suggest(loadout, loadouts))
    active = document.get("activeLoadout")
    has_active = loadout is None and active is not None and is_object(document.get("loadouts"))
    if has_active and not (isinstance(active, str) and active in loadouts):
        message = f"the loadout {brief(active)} does not exist"
        findings.problem(INVALID_CONFIG, "activeLoadout", message, findings.suggest(str(active), loadouts))


def build_graph(document: JSON, loadout_name: str | None = None, folders: Mapping[str, Path] | None = None) -> Graph:
    """Check a loadout and resolve it into a graph that a cast can run.

    Args:
        document: the config, which is not modified.
        loadout_name: the name of the loadout; None selects the active loadout (see ``active_loadout``).
        folders: the directory of the config file that defines each materia, by materia id (R24).

    Raises:
        LoadoutError: the loadout, its materia or the top level of the config has problems.
    """
    from materia_nb.loadout import models

    document = frozen(document)
    name = active_loadout(document) if loadout_name is None else loadout_name
    problems = find_problems(document, name)
    if problems:
        raise LoadoutError(Report(tuple(problems)), name)
    if name is None:
        no_loadout = Problem(
            INVALID_CONFIG, "loadouts", "the config has no loadouts", "add a loadout to the field `loadouts`"
        )
        raise LoadoutError(Report((no_loadout,)))
    facts = loadout_facts(document, name)
    materia: dict[str, Materia] = {}
    for socket in facts.sockets.values():
        id_ = socket.materia.id
        if id_ not in materia:
            materia[id_] = _resolve_materia(socket.materia, (folders or {}).get(id_))
    graph = _resolved_graph(facts, {id_: materia[socket.materia.id] for id_, socket in facts.sockets.items()})
    return replace(
        graph,
        limits=_parse_settings(Limits, models.LimitsFields, document.get("limits")),
        budget=_parse_settings(Budget, models.BudgetFields, document.get("budget")),
        document=frozen(_reduced_document(document, name, materia)),
        keep_thinking=document.get("keepThinking") is not False,
        prices=FrozenDict(_resolve_prices(document.get("prices"))),
        mcp_servers=as_object(document.get("mcpServers")),
    )


def _resolved_graph(facts: LoadoutFacts, materia: Mapping[str, Materia]) -> Graph:
    """Return a graph of the well-formed parts of a loadout.

    Args:
        facts: the parsed loadout.
        materia: the materia of each socket, by socket id.
    """
    derived = derive(facts)
    derivation = replace(derived, sentences=[*derived.sentences])
    sockets = {id_: _resolve_socket(derivation, socket, materia[id_]) for id_, socket in facts.sockets.items()}
    return Graph(
        name=facts.name,
        entry=facts.entry if isinstance(facts.entry, str) and facts.entry in sockets else "",
        sockets=FrozenDict(sockets),
        loops=FrozenDict(derivation.loops),
        derived=tuple(derivation.sentences),
        consumers=FrozenDict(_loops_by_generator(derivation.loops.values())),
        regions=FrozenDict(regions_of(facts)),
    )


def _loops_by_generator(loops: Iterable[Loop]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the loops that consume the items of each generator, by generator."""
    consumers: dict[str, tuple[str, ...]] = {}
    for loop in loops:
        if loop.generator is not None:
            consumers[loop.generator] = (*consumers.get(loop.generator, ()), loop.id)
    return consumers


def _reduced_document(document: Object, name: str, used_materia: Collection[str]) -> dict[str, JSON]:
    """Return a copy of the config that contains only the loadout ``name`` and the materia in ``used_materia``."""
    general_fields = {key: value for key, value in document.items() if key not in ("loadouts", "materia")}
    general_fields["activeLoadout"] = name
    general_fields["loadouts"] = {name: document["loadouts"][name]}
    general_fields["materia"] = {key: document["materia"][key] for key in document["materia"] if key in used_materia}
    return general_fields


def active_loadout(document: JSON) -> str | None:
    """Return the name of the loadout to cast: ``activeLoadout``, else the first loadout, else None."""
    loadouts = as_object(as_object(document).get("loadouts"))
    active = as_object(document).get("activeLoadout")
    return active if isinstance(active, str) else next(iter(loadouts), None)


def _resolve_socket(derivation: Derivation, socket: SocketFacts, materia: Materia) -> Socket:
    facts, raw = derivation.facts, socket.raw
    parse = _parse_mode(derivation, socket, materia)
    if (utility := str(socket.materia.raw.get("utility"))) in GIT_TASK_BY_UTILITY:
        text = f"{socket.id} uses Git worktrees, not the jj workspaces of {utility}, and needs a Git repository"
        derivation.note(f"{socket.id}.materia", text)
    # a utility has no second turn, and drafts end with a handoff turn anyway
    finalize = raw.get("finalize", facts.raw.get("finalize")) is True and parse == "json"
    contexts = [owner.get("castContext") for owner in (raw, materia.raw, facts.raw, facts.config)]
    return Socket(
        id=socket.id,
        materia=materia,
        parse=parse,
        assign=_assignments(derivation, socket, materia),
        edges=_resolve_edges(derivation, socket),
        advance=socket_advance(derivation, socket),
        iterator=socket_iterator(socket),
        loops=tuple([loop.id for loop in socket.loops]),
        handoff=socket.handoff,
        parse_derived=socket.id in derivation.json_sources,
        finalize=finalize and not (materia.kind == "utility" or materia.multi_turn),
        cast_context=parse_cast_context(next(filter(None, contexts), None)),
        prompt_form=raw.get("promptForm"),
        assignment=as_object(raw.get("assignment")),
        layout=_socket_position(facts, socket),
    )


def _resolve_edges(derivation: Derivation, socket: SocketFacts) -> tuple[Edge, ...]:
    edges = []
    for edge in socket.edges:
        maximum = whole_number(edge.raw.get("maxTraversals"))
        if edge.when is not None and derivation.is_target(edge.to):
            edges.append(Edge(edge.when, edge.to, edge.index, maximum if maximum is not None and maximum > 0 else None))
    return tuple(edges)


def _socket_position(facts: LoadoutFacts, socket: SocketFacts) -> Object | None:
    """Return the position of a socket from the layout of the loadout, else from the socket itself, else None."""
    position = as_object(as_object(facts.raw.get("layout")).get("sockets")).get(socket.id)
    stored_position = position if is_object(position) else socket.raw.get("layout")
    return stored_position if is_object(stored_position) else None


def _parse_mode(derivation: Derivation, socket: SocketFacts, materia: Materia) -> Literal["json", "text"]:
    """Return the effective format of a socket's output (R4, R15)."""
    if materia.generator:
        if socket.parse != "json":
            text = f"the output of {socket.id} is parsed as json, because {materia.id} is a generator"
            derivation.note(f"{socket.id}.parse", text)
        return "json"
    return "json" if socket.parse == "json" or socket.id in derivation.json_sources else "text"


def _assignments(derivation: Derivation, socket: SocketFacts, materia: Materia) -> tuple[tuple[str, str], ...]:
    """Return the effective assignments of a socket (R4). A generator always assigns its work items."""
    assign = tuple([(target, source) for _, target, source in socket.assignments if isinstance(source, str)])
    if not materia.generator:
        return assign
    if not any(assigns_work_items(target) and source == WORK_ITEMS_SOURCE for target, source in assign):
        text = f"{socket.id} assigns {WORK_ITEMS} from {WORK_ITEMS_SOURCE}, because its materia is a generator"
        derivation.note(f"{socket.id}.assign", text)
    other_assignments = tuple([pair for pair in assign if not assigns_work_items(pair[0])])
    return (*other_assignments, (WORK_ITEMS, WORK_ITEMS_SOURCE))


def _resolve_materia(facts: MateriaFacts, folder: Path | None) -> Materia:
    raw = facts.raw
    tools = raw.get("tools", "none")
    if is_object(tools):
        tools = tools["tools"]
    materia = replace(
        _sketch_materia(facts),
        tools=tools if isinstance(tools, str) else tuple(tools),
        params=_params(raw),
        folder=folder,
    )
    if not facts.is_utility:
        return replace(materia, prompt=facts.prompt, model=raw.get("model"), thinking=raw.get("thinking"))
    from materia_nb.loadout.models import UtilityMateria

    return replace(
        materia,
        multi_turn=False,
        command=tuple(raw.get("command") or ()),
        script=raw.get("script") or _built_in_script(raw),
        timeout_ms=UtilityMateria.model_validate(raw).model_dump()["timeout_ms"],
    )


def _params(raw: Object) -> Object:
    """Return the parameters of a materia, including the Git task that replaces a lane utility of the reference engine."""
    task = GIT_TASK_BY_UTILITY.get(str(raw.get("utility")))
    return ({"do": task} if task else {}) | as_object(raw.get("params"))


def _built_in_script(raw: Object) -> Object | None:
    """Return the bundled script that replaces a built-in utility of the reference engine, or None (R61)."""
    name = raw.get("utility")
    if raw.get("command") is not None or not isinstance(name, str) or name not in BUILT_IN_SCRIPTS:
        return None
    return {"kind": "shippedUtility", "name": BUILT_IN_SCRIPTS[name]}


def _parse_settings(kind: type[_Settings], model: type[Model], raw: JSON) -> _Settings:
    """Return the limits, budget or price in ``raw``. Fields that are missing or null have their default values."""
    field_values = model.model_validate(as_object(raw)).model_dump()
    field_names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in field_values.items() if name in field_names and value is not None})


def _resolve_prices(raw: JSON) -> dict[str, Price]:
    from materia_nb.loadout.models import PriceFields

    written_prices = {name: price for name, price in as_object(raw).items() if price is not None}
    return {name: _parse_settings(Price, PriceFields, price) for name, price in written_prices.items()}


# -- sketches --------------------------------------------------------------------------


def sketch_graph(document: JSON, name: str | None, visited: Mapping[str, str | None] | None = None) -> Graph:
    """Return a graph for drawing that contains the well-formed parts of a loadout. This function never raises.

    Malformed sockets are skipped, and so are edges and exits without an existing target. Each edge keeps its index in
    the document.

    Args:
        document: the config.
        name: the name of the loadout; None selects the first loadout.
        visited: sockets that a cast has visited, each with its materia id or None. Sockets that the loadout does not
            contain are added to the graph.
    """
    loadouts = as_object(as_object(document).get("loadouts"))
    title, recorded_sockets = name or next(iter(loadouts), ""), visited or {}
    raw = as_object(loadouts.get(title))
    sockets = {id_: socket for id_, socket in as_object(raw.get("sockets")).items() if is_object(socket)}
    sockets = {**sockets, **{id_: {} for id_ in recorded_sockets if id_ not in sockets}}
    facts = parse_loadout(title, {**raw, "sockets": sockets}, as_object(as_object(document).get("materia")))
    materia = {}
    for id_, socket in facts.sockets.items():
        names = (socket.raw.get("materia"), recorded_sockets.get(id_), socket.raw.get("utility"), "no materia")
        materia_id = next(name for name in names if is_text(name))
        # a socket can contain the definition itself
        materia[id_] = _sketch_materia(parse_materia(materia_id, socket.materia.raw or socket.raw))
    graph = _resolved_graph(facts, materia)
    # A sketch is never cast and needs no protocol; a protocol that is not installed must not prevent drawing.
    drawn_sockets = {id_: replace(socket, handoff=DEFAULT_HANDOFF) for id_, socket in graph.sockets.items()}
    return replace(graph, entry=graph.entry or next(iter(recorded_sockets), ""), sockets=drawn_sockets)


def _sketch_materia(facts: MateriaFacts) -> Materia:
    """Return a materia with only the attributes that can be read even from a malformed definition."""
    return Materia(
        id=facts.id,
        label=text_or(facts.raw.get("label"), facts.id),
        kind="utility" if facts.is_utility else "agent",
        generator=facts.generator,
        parallel=facts.parallel,
        multi_turn=facts.raw.get("multiTurn") is True,
        raw=facts.raw,
        group=materia_group(facts.raw),
    )
