"""Problems of sockets, their edges and iterators (R3, R4, R13, R14, R18, R26)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import (
    WORK_ITEMS_SOURCE,
    Facts,
    Object,
    as_list,
    as_object,
    assigns_work_items,
    is_object,
    is_socket_id,
    is_text,
    replacement,
)
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import (
    INVALID_GENERATOR,
    INVALID_SOCKET,
    INVALID_SOCKET_ID,
    MISSING_ENDPOINT,
    UNKNOWN_ENDPOINT,
    UNKNOWN_MATERIA,
    UNREACHABLE_EDGE,
    Findings,
    shown,
)
from materia_nb.loadout.vocabulary import source_fault

ID_FORM = "a letter, then letters, digits, dots, dashes or underscores, at most 64 in all"


def check_sockets(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the entry and with each socket of the loadout."""
    sockets = as_object(facts.raw.get("sockets"))
    if sockets:
        check_endpoint(findings, facts, facts.entry, "entry", end=False)
    for id_, raw in sockets.items():
        if not is_socket_id(id_):
            reserved = " is reserved for the end of a cast" if id_ == END else " is not a socket id"
            findings.problem(INVALID_SOCKET_ID, f"sockets.{id_}", f"{shown(id_)}{reserved}", f"use {ID_FORM}")
        if is_object(raw):
            _check_socket(findings, facts, id_, raw)


def check_endpoint(
    findings: Findings,
    facts: Facts,
    value: JSON,
    source: str,
    *,
    required: bool = True,
    end: bool = True,
    advice: str | None = None,
) -> bool:
    """Note a reference that leads nowhere; whether it leads to a socket or, where allowed, to ``end``.

    ``advice`` replaces the close match for a socket that does not exist.
    """
    if value is None or value == "":
        if required:
            allowed = "a socket id or end" if end else "a socket id"
            findings.problem(MISSING_ENDPOINT, source, f"nothing is named at {source}", f"write {allowed}")
        return not required
    if isinstance(value, str) and (value in facts.ids or (end and value == END)):
        return True
    if not is_socket_id(value):
        why = "is the end of a cast, not a socket," if value == END else "is not a socket id"
        findings.problem(INVALID_SOCKET_ID, source, f"{shown(value)} {why}", f"name a socket: {ID_FORM}")
    else:
        advice = advice or findings.near(str(value), facts.ids)
        findings.problem(UNKNOWN_ENDPOINT, source, f"there is no socket {shown(value)}", advice)
    return False


def check_done(findings: Findings, facts: Facts, here: str, spec: Object | None) -> None:
    """Note a ``done`` of older loadouts that leads nowhere."""
    check_endpoint(findings, facts, (spec or {}).get("done"), f"{here}.done", required=False)


def _check_socket(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    _check_placement(findings, facts, id_, raw)
    _check_edges(findings, facts, id_)
    if not facts.is_utility(id_):
        _check_sources(findings, id_, raw)
        if facts.is_generator(id_):
            _check_agent_generator(findings, id_, raw)
    check_done(findings, facts, f"{id_}.foreach", facts.foreach(id_))
    advance = raw.get("advance")
    if is_object(advance):
        _check_advance(findings, facts, id_, advance)


def _check_sources(findings: Findings, id_: str, raw: Object) -> None:
    """Check that the sources of an agent's assignments can be read; those of a utility's socket never are (R4)."""
    for target, source in as_object(raw.get("assign")).items():
        fault = source_fault(source) if is_text(source) else None
        if fault is not None:
            findings.problem(INVALID_SOCKET, f"{id_}.assign.{target}", *fault)


def _check_placement(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    named = raw.get("materia")
    if not is_text(named):
        wrong = f"materia is {shown(named)}" if "materia" in raw else "the socket names no materia"
        findings.problem(UNKNOWN_MATERIA, f"{id_}.materia", wrong, findings.near("", facts.materia))
    elif named not in facts.materia:
        now = replacement(named)
        findings.problem(
            UNKNOWN_MATERIA,
            f"{id_}.materia",
            f"there is no materia {shown(named)}",
            f"it is called {now!r} now" if now else findings.near(named, facts.materia),
        )


def _check_edges(findings: Findings, facts: Facts, id_: str) -> None:
    unconditional: int | None = None
    for place, edge in enumerate(as_list(facts.sockets[id_].get("edges"))):
        here = f"{id_}.edges[{place}]"
        if unconditional is not None:
            findings.problem(
                UNREACHABLE_EDGE,
                here,
                f"edge {place + 1} is never looked at, because edge {unconditional + 1} always matches",
                "put guarded edges before the always edge, or remove this one",
            )
        if not is_object(edge):
            continue
        check_endpoint(findings, facts, edge.get("to"), f"{here}.to")
        if edge.get("when") == "always" and unconditional is None:
            unconditional = place


def _check_agent_generator(findings: Findings, id_: str, raw: Object) -> None:
    if raw.get("parse", "json") == "text":
        findings.problem(
            INVALID_GENERATOR,
            f"{id_}.parse",
            "the agent here is a generator, whose output is always json",
            "remove parse, or place a materia that is no generator",
        )
    assign = raw.get("assign")
    for target, source in assign.items() if is_object(assign) else ():
        if assigns_work_items(target) and source != WORK_ITEMS_SOURCE:
            findings.problem(
                INVALID_GENERATOR,
                f"{id_}.assign.{target}",
                f"the work items of a generator come from $.workItems, not from {shown(source)}",
                "remove this assignment, or assign to another name",
            )


def _check_advance(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    here = f"{id_}.advance"
    for field, default in (("cursor", facts.cursor_of(id_)), ("items", facts.items_of(id_))):
        if raw.get(field) is None and default is None:
            findings.problem(
                INVALID_SOCKET,
                f"{here}.{field}",
                f"advance names no {field}, and the socket has no iterator to take it from",
                f"write {field}, give the socket a foreach, or list it in a loop that consumes work items",
            )
    check_done(findings, facts, here, raw)
