"""Problems of sockets, their edges and iterators (R3, R4, R13, R14, R18, R26)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.facts import (
    ASSIGNMENT_SHAPES,
    WORK_ITEMS_SOURCE,
    Facts,
    Object,
    assigns_work_items,
    has_shape,
    is_condition,
    is_object,
    is_socket_id,
    is_text,
    replacement,
    told_in,
    whole,
)
from materia_nb.loadout.graph import CAST_CONTEXTS, CONDITIONS, END
from materia_nb.loadout.report import (
    INVALID_CONDITION,
    INVALID_EDGE,
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
from materia_nb.loadout.sources import check_assign, check_source

ID_FORM = "a letter, then letters, digits, dots, dashes or underscores, at most 64 in all"
CONDITION_ADVICE = "write one of: " + ", ".join(f'"{condition}"' for condition in CONDITIONS)


def check_sockets(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the entry and with each socket of the loadout."""
    sockets = facts.raw.get("sockets")
    if not is_object(sockets) or not sockets:
        wrong = f"sockets is {shown(sockets)}" if "sockets" in facts.raw else "the loadout has no sockets"
        findings.problem(INVALID_SOCKET, "sockets", wrong, 'write {"Socket-1": {"materia": "..."}, ...}')
        return
    check_endpoint(findings, facts, facts.entry, "entry", end=False)
    for id_, raw in sockets.items():
        if not is_socket_id(id_):
            reserved = " is reserved for the end of a cast" if id_ == END else " is not a socket id"
            findings.problem(INVALID_SOCKET_ID, f"sockets.{id_}", f"{shown(id_)}{reserved}", f"use {ID_FORM}")
        if is_object(raw):
            _check_socket(findings, facts, id_, raw)
        else:
            findings.problem(
                INVALID_SOCKET, id_, f"the socket is {shown(raw)}, not an object", 'write {"materia": "..."}'
            )


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


def check_condition(findings: Findings, raw: Object, field: str, source: str) -> None:
    """Note a condition that is absent or not canonical (R3)."""
    if not is_condition(raw.get(field)):
        wrong = f"the condition is {shown(raw[field])}" if field in raw else "the condition is missing"
        findings.problem(INVALID_CONDITION, source, wrong, CONDITION_ADVICE)


def check_iterator(findings: Findings, facts: Facts, code: str, here: str, spec: Object) -> None:
    """Note what is wrong with a ``foreach`` or an ``iterator`` (R12, R13)."""
    items = spec.get("items")
    if is_text(items):
        check_source(findings, code, f"{here}.items", items)
    else:
        wrong = f"items is {shown(items)}" if "items" in spec else "items is missing"
        findings.problem(code, f"{here}.items", wrong, 'name the list, such as "state.rows"')
    check_names(findings, code, here, spec)
    check_endpoint(findings, facts, spec.get("done"), f"{here}.done", required=False)


def check_names(findings: Findings, code: str, here: str, spec: Object) -> None:
    """Note an alias or a cursor that is not a name."""
    for field in ("as", "cursor"):
        named = spec.get(field)
        if named is not None and not (is_text(named) and split_path(named)):
            findings.problem(
                code, f"{here}.{field}", f"{field} is {shown(named)}", "write a name, or leave it out"
            )


def _check_socket(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    _check_placement(findings, facts, id_, raw)
    _check_edges(findings, facts, id_, raw)
    if "parse" in raw and raw["parse"] not in ("json", "text"):
        findings.problem(
            INVALID_SOCKET, f"{id_}.parse", f"parse is {shown(raw['parse'])}", 'write "json" or "text"'
        )
    check_assign(
        findings, INVALID_SOCKET, f"{id_}.assign", raw.get("assign"), in_effect=not facts.is_utility(id_)
    )
    if facts.is_generator(id_) and not facts.is_utility(id_):
        _check_agent_generator(findings, id_, raw)
    foreach = raw.get("foreach")
    if is_object(foreach):
        check_iterator(findings, facts, INVALID_SOCKET, f"{id_}.foreach", foreach)
    elif foreach is not None:
        _not_an_object(findings, f"{id_}.foreach", foreach, '{"items": "state.rows"}')
    advance = raw.get("advance")
    if is_object(advance):
        _check_advance(findings, facts, id_, advance)
    elif advance is not None:
        _not_an_object(findings, f"{id_}.advance", advance, '{"when": "satisfied"}')
    for field, example in (("limits", "{ ... }"), ("assignment", '{"goal": "..."}')):
        if raw.get(field) is not None and not is_object(raw[field]):
            _not_an_object(findings, f"{id_}.{field}", raw[field], example)
    _check_assignment(findings, id_, raw.get("assignment"))
    _check_handoff(findings, id_, raw)
    check_cast_context(findings, INVALID_SOCKET, f"{id_}.castContext", raw)


def check_cast_context(findings: Findings, code: str, source: str, raw: Object) -> None:
    """Note a ``castContext`` that is none of the three words (R32)."""
    given = raw.get("castContext")
    if given is not None and given not in CAST_CONTEXTS:
        advice = "write one of: " + ", ".join(f'"{word}"' for word in CAST_CONTEXTS)
        findings.problem(code, source, f"castContext is {shown(given)}", advice)


def _check_assignment(findings: Findings, id_: str, assignment: JSON) -> None:
    for name, shape in ASSIGNMENT_SHAPES.items() if is_object(assignment) else ():
        spelt, value = told_in(assignment, name)
        if value is not None and not has_shape(value, shape):
            findings.problem(
                INVALID_SOCKET, f"{id_}.assignment.{spelt}", f"{spelt} is {shown(value)}", f"write {shape}"
            )


def _check_handoff(findings: Findings, id_: str, raw: Object) -> None:
    if not isinstance(raw.get("finalize"), bool | None):
        findings.problem(
            INVALID_SOCKET,
            f"{id_}.finalize",
            f"finalize is {shown(raw['finalize'])}",
            "write true, or leave it out",
        )
    if "handoff" in raw and not is_text(raw["handoff"]):
        findings.problem(
            INVALID_SOCKET,
            f"{id_}.handoff",
            f"handoff is {shown(raw['handoff'])}",
            "write the name of a protocol",
        )


def _not_an_object(findings: Findings, source: str, value: JSON, example: str) -> None:
    field = source.rpartition(".")[2]
    findings.problem(
        INVALID_SOCKET, source, f"{field} is {shown(value)}", f"write an object, such as {example}"
    )


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


def _check_edges(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    edges = raw.get("edges")
    if edges is None:
        return
    if not isinstance(edges, list):
        findings.problem(
            INVALID_SOCKET,
            f"{id_}.edges",
            f"edges is {shown(edges)}",
            'write a list: [{"when": "always", "to": "Socket-2"}]',
        )
        return
    unconditional: int | None = None
    for place, edge in enumerate(edges):
        here = f"{id_}.edges[{place}]"
        if unconditional is not None:
            findings.problem(
                UNREACHABLE_EDGE,
                here,
                f"edge {place + 1} is never looked at, because edge {unconditional + 1} always matches",
                "put guarded edges before the always edge, or remove this one",
            )
        if not is_object(edge):
            findings.problem(
                INVALID_EDGE,
                here,
                f"edge {place + 1} is {shown(edge)}",
                'write {"when": "always", "to": "Socket-2"}',
            )
            continue
        check_condition(findings, edge, "when", f"{here}.when")
        check_endpoint(findings, facts, edge.get("to"), f"{here}.to")
        most = whole(edge.get("maxTraversals"))
        if "maxTraversals" in edge and (most is None or most < 1):
            findings.problem(
                INVALID_EDGE,
                f"{here}.maxTraversals",
                f"maxTraversals is {shown(edge['maxTraversals'])}",
                "write a whole number from 1 up, or leave it out",
            )
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
        value = raw.get(field)
        if value is None and default is None:
            findings.problem(
                INVALID_SOCKET,
                f"{here}.{field}",
                f"advance names no {field}, and the socket has no iterator to take it from",
                f"write {field}, give the socket a foreach, or list it in a loop that consumes work items",
            )
        elif value is not None and not is_text(value):
            findings.problem(
                INVALID_SOCKET, f"{here}.{field}", f"{field} is {shown(value)}", "write a name in quotes"
            )
        elif field == "items" and isinstance(value, str):
            check_source(findings, INVALID_SOCKET, f"{here}.items", value)
    if "when" in raw:
        check_condition(findings, raw, "when", f"{here}.when")
    check_endpoint(findings, facts, raw.get("done"), f"{here}.done", required=False)
