"""Problems of sockets, edges, iterators and loop regions, and of fields (R3, R4, R13-R16, R18, R21, R25-R28, R38).

Of fields: each error of pydantic with its path, unknown and idle fields, materia.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from materia_nb.errors import close_match, counted
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import models
from materia_nb.loadout.facts import (
    BUILT_IN,
    LANE_UTILITIES,
    WORK_ITEMS_SOURCE,
    Facts,
    LoopFacts,
    Object,
    as_list,
    as_object,
    assigns_work_items,
    derive,
    is_condition,
    is_object,
    is_socket_id,
    is_text,
    materia_kind,
    next_socket_id,
    replacement,
)
from materia_nb.loadout.fields import Fault, FieldRow, Model, field_path, objects, row_named
from materia_nb.loadout.graph import END
from materia_nb.loadout.models import AgentMateria, UtilityMateria
from materia_nb.loadout.regions import leads_into, rounds_in
from materia_nb.loadout.report import (
    AMBIGUOUS_ADVANCE,
    INVALID_CONFIG,
    INVALID_GENERATOR,
    INVALID_LOOP,
    INVALID_MATERIA,
    INVALID_SOCKET,
    INVALID_SOCKET_ID,
    MISSING_ENDPOINT,
    NO_EFFECT,
    UNKNOWN_ENDPOINT,
    UNKNOWN_FIELD,
    UNKNOWN_MATERIA,
    UNREACHABLE_EDGE,
    Findings,
    Fix,
    brief,
    do,
    safe_fix,
    suggested_fix,
    without_field,
)
from materia_nb.loadout.vocabulary import CONDITIONS, GUARDS, NAMED, described, source_fault, tint_of

ID_FORM = "a letter, then letters, digits, dots, dashes or underscores, at most 64 in all"


_NearFix: TypeAlias = Callable[[str | None], Fix | None]
"""Makes what fixes a reference that leads nowhere, of the name that is plainly meant, where there is one."""


def _no_fix(_near: str | None) -> None:
    """Fix nothing: a person has to choose."""


def check_sockets(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the entry and with each socket of the loadout."""
    sockets = as_object(facts.raw.get("sockets"))
    if sockets:
        _check_endpoint(
            findings, facts, facts.entry, "entry", end=False, near_fix=lambda _: _first_entry(facts)
        )
    for id_, raw in sockets.items():
        if not is_socket_id(id_):
            reserved = " is reserved for the end of a cast" if id_ == END else " is not a socket id"
            number = renumber(facts, id_) if is_object(raw) else None
            wrong = f"{brief(id_)}{reserved}"
            findings.problem(INVALID_SOCKET_ID, f"sockets.{id_}", wrong, f"use {ID_FORM}", number)
        if is_object(raw):
            _check_socket(findings, facts, id_, raw)


def renumber(facts: Facts, id_: str) -> Fix:
    """Give a socket a canonical id and keep its old one as its label."""
    new = next_socket_id(facts.raw)
    label = () if facts.sockets[id_].get("label") else (do("set_socket", new, "label", id_),)
    words = f"renamed {id_} to {new}, with its label"
    return safe_fix(f"Call it {new}, labelled {id_}", do("rename_socket", id_, new), *label, words=words)


def _check_endpoint(
    findings: Findings,
    facts: Facts,
    value: JSON,
    source: str,
    *,
    required: bool = True,
    end: bool = True,
    advice: str | None = None,
    near_fix: _NearFix = _no_fix,
) -> bool:
    """Note a reference that leads nowhere; whether it leads to a socket or, where allowed, to ``end``.

    ``advice`` replaces the close match for a socket that does not exist; ``near_fix`` makes what fixes it of that.
    """
    if value is None or value == "":
        if required:
            allowed = "a socket id or end" if end else "a socket id"
            what = f"nothing is named at {source}"
            findings.problem(MISSING_ENDPOINT, source, what, f"write {allowed}", near_fix(None))
        return not required
    if isinstance(value, str) and (value in facts.ids or (end and value == END)):
        return True
    known = [*facts.ids, *([END] if end else [])]
    fix = near_fix(findings.closest(value, known))
    if not is_socket_id(value):
        why = "is the end of a cast, not a socket," if value == END else "is not a socket id"
        advice = f"name a socket: {ID_FORM}"
        findings.problem(INVALID_SOCKET_ID, source, f"{brief(value)} {why}", advice, fix)
    else:
        advice = advice or findings.near(str(value), facts.ids)
        findings.problem(UNKNOWN_ENDPOINT, source, f"there is no socket {brief(value)}", advice, fix)
    return False


def _first_entry(facts: Facts) -> Fix | None:
    first = next(iter(facts.sockets), None)
    return suggested_fix(f"Start at {first}", do("set_entry", first)) if first is not None else None


def _check_done(findings: Findings, facts: Facts, here: str, spec: Object | None) -> None:
    """Note a ``done`` of older loadouts that leads nowhere."""
    _check_endpoint(findings, facts, (spec or {}).get("done"), f"{here}.done", required=False)


def _check_socket(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    _check_placement(findings, facts, id_, raw)
    _check_edges(findings, facts, id_)
    if not facts.is_utility(id_):
        _check_sources(findings, facts, id_)
        if facts.is_generator(id_):
            _check_agent_generator(findings, facts, id_)
    _check_done(findings, facts, f"{id_}.foreach", facts.foreach(id_))
    advance = raw.get("advance")
    if is_object(advance):
        _check_advance(findings, facts, id_, advance)


def _check_sources(findings: Findings, facts: Facts, id_: str) -> None:
    """Check that the sources of an agent's assignments can be read; those of a utility's socket never are (R4)."""
    for here, _, source in facts.assignments(id_):
        fault = source_fault(source) if is_text(source) else None
        if fault is not None:
            findings.problem(INVALID_SOCKET, here, *fault)


def _check_placement(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    named = raw.get("materia")
    if not is_text(named):
        wrong = f"materia is {brief(named)}" if "materia" in raw else "the socket names no materia"
        findings.problem(UNKNOWN_MATERIA, f"{id_}.materia", wrong, findings.near("", facts.materia))
    elif named not in facts.materia:
        now = replacement(named)
        findings.problem(
            UNKNOWN_MATERIA,
            f"{id_}.materia",
            f"there is no materia {brief(named)}",
            f"it is called {now!r} now" if now else findings.near(named, facts.materia),
            _place(id_, now or findings.closest(named, facts.materia), facts, certain=now is not None),
        )


def _place(id_: str, meant: str | None, facts: Facts, *, certain: bool) -> Fix | None:
    if meant not in facts.materia:
        return None
    make = safe_fix if certain else suggested_fix
    return make(f"Place {meant}", do("set_socket", id_, "materia", meant))


def _check_edges(findings: Findings, facts: Facts, id_: str) -> None:
    unconditional: int | None = None  # the first that every output matches
    for place, edge in enumerate(as_list(facts.sockets[id_].get("edges"))):
        here = f"{id_}.edges[{place}]"
        when = as_object(edge).get("when")
        awaited = described(when) if is_condition(when) else None
        if unconditional is not None and not (awaited and awaited.without_output):
            findings.problem(
                UNREACHABLE_EDGE,
                here,
                f"edge {place + 1} is never looked at, because edge {unconditional + 1} always matches",
                "put guarded edges before the always edge, or remove this one",
                safe_fix("Remove it", do("remove_edge", id_, place))
                if as_object(edge).get("when") == "always"  # behind another one it has no use
                else safe_fix("Look at it first", do("move_edge", id_, place, unconditional)),
            )
        if not is_object(edge):
            continue
        to_near = partial(_lead_to, id_, place)
        _check_endpoint(findings, facts, edge.get("to"), f"{here}.to", near_fix=to_near)
        if awaited and awaited.whatever and unconditional is None:
            unconditional = place


def _lead_to(id_: str, place: int, near: str | None) -> Fix:
    """Lead an edge that leads nowhere to what is plainly meant, else take it away."""
    if near is None:
        return suggested_fix("Remove the edge", do("remove_edge", id_, place))
    return suggested_fix(f"Lead it to {near}", do("change_edge", id_, place, to=near))


def _check_agent_generator(findings: Findings, facts: Facts, id_: str) -> None:
    if facts.authored_parse(id_) == "text":
        what = "the agent here is a generator, whose output is always json"
        advice = "remove parse, or place a materia that is not a generator"
        fix = suggested_fix("Remove parse", do("set_socket", id_, "parse", None))
        findings.problem(INVALID_GENERATOR, f"{id_}.parse", what, advice, fix)
    for here, target, source in facts.assignments(id_):
        if assigns_work_items(target) and source != WORK_ITEMS_SOURCE:
            what = f"the work items of a generator come from $.workItems, not from {brief(source)}"
            advice = "remove this assignment, or assign to another name"
            findings.problem(INVALID_GENERATOR, here, what, advice)


def _check_advance(findings: Findings, facts: Facts, id_: str, raw: Object) -> None:
    here = f"{id_}.advance"
    for field, default in (("cursor", facts.cursor_of(id_)), ("items", facts.items_of(id_))):
        if raw.get(field) is None and default is None:
            what = f"advance names no {field}, and the socket has no iterator to take it from"
            advice = (
                f"write {field}, give the socket a foreach, or list it in a loop that consumes work items"
            )
            findings.problem(INVALID_SOCKET, f"{here}.{field}", what, advice)
    _check_done(findings, facts, here, raw)


# -- loop regions ----------------------------------------------------------------------------


_Inbound: TypeAlias = Sequence[tuple[str, str]]
"""The edges from generator sockets: from where, to where."""


def check_loops(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the loops of the loadout."""
    inbound = [(id_, to) for id_ in facts.sockets if facts.is_generator(id_) for to in leads_into(facts, id_)]
    for loop in facts.loops:
        _check_loop(findings, facts, inbound, loop)
    for socket, first, second in derive(facts).conflicts:
        what = f"the exits of loops {first!r} and {second!r} each derive an advance of {socket!r}, and only one can count"
        advice = f"start the exit of {second!r} at another of its sockets, or remove one of the loops"
        findings.problem(AMBIGUOUS_ADVANCE, f"{socket}.advance", what, advice)
    _check_cursors(findings, facts)


def _check_loop(findings: Findings, facts: Facts, inbound: _Inbound, loop: LoopFacts) -> None:
    here = f"loops.{loop.id}"
    members_known = _check_members(findings, facts, loop, here)
    _check_done(findings, facts, f"{here}.iterator", loop.iterator)
    if loop.consumes is not None:
        _check_consumes(findings, facts, inbound, loop, members_known=members_known)
    if loop.legacy is not None:
        _check_legacy_exit(findings, facts, loop, loop.legacy)
    _check_exits(findings, facts, loop)


def _check_members(findings: Findings, facts: Facts, loop: LoopFacts, here: str) -> bool:
    """Whether the list of members is well formed and every member exists."""
    members = as_list(loop.raw.get("sockets"))
    known = [
        _check_endpoint(findings, facts, member, f"{here}.sockets[{place}]", end=False)
        for place, member in enumerate(members)
    ]
    return bool(known) and all(known)


def _check_consumes(
    findings: Findings, facts: Facts, inbound: _Inbound, loop: LoopFacts, *, members_known: bool
) -> None:
    here = f"loops.{loop.id}.consumes"
    consumes = loop.consumes or {}
    _check_done(findings, facts, here, consumes)
    members = set(loop.members)
    entering = [(source, to) for source, to in inbound if to in members and source not in members]
    advice, source = None, consumes.get("from")
    if len({one for one, _ in entering}) == 1:
        advice = f"name {entering[0][0]!r}, the generator whose edge leads into the loop"
    likely = partial(_likely_source, facts, loop)
    named = _check_endpoint(
        findings, facts, source, f"{here}.from", end=False, advice=advice, near_fix=likely
    )
    if not members_known:
        return
    if not rounds_in({id_: members & set(facts.targets(id_)) for id_ in loop.members}):
        findings.problem(
            INVALID_LOOP,
            f"loops.{loop.id}.sockets",
            "the members form no cycle, so no second item would ever be worked on",
            f"add an edge from the last member back to {loop.members[0]!r}; exit routes do not count",
            suggested_fix(
                f"Lead {loop.members[-1]} back to {loop.members[0]}",
                do("add_edge", loop.members[-1], loop.members[0]),
            ),
        )
    _check_source(findings, facts, entering, loop, source if named else None)


def _likely_source(facts: Facts, loop: LoopFacts, _near: str | None = None) -> Fix | None:
    """Let a loop go over the items of the generator that leads into it, or lead the named one into it."""
    named, likely = (loop.consumes or {}).get("from"), facts.likely_generator(loop.members)
    if likely is not None and likely != named:
        step = do("set_source", loop.id, "consumes", from_=likely)
        return suggested_fix(f"Go over the items of {likely}", step)
    if isinstance(named, str) and facts.is_generator(named) and named not in loop.members and loop.members:
        return suggested_fix(f"Lead {named} into it", do("add_edge", named, loop.members[0]))
    return None


def _check_source(
    findings: Findings, facts: Facts, entering: list[tuple[str, str]], loop: LoopFacts, source: JSON
) -> None:
    """Check that exactly one edge from a generator leads into the loop, from the socket that is named (R27)."""
    here = f"loops.{loop.id}.consumes"
    for place, member in enumerate(loop.members):
        if facts.is_generator(member) and member != source:
            what = f"{member!r} is a generator itself, inside a loop that consumes the items of another one"
            advice = "place it before the loop, or give it a loop of its own"
            findings.problem(INVALID_LOOP, f"loops.{loop.id}.sockets[{place}]", what, advice)
    if source in loop.members:
        why = f"{source!r} is a member of the loop that consumes it"
    elif source is not None and not facts.is_generator(str(source)):
        why = f"{source!r} is not a generator"
    else:
        why = None
    advice = "let exactly one edge of one generator lead into the loop"
    if not entering:
        known = [id_ for id_ in facts.sockets if facts.is_generator(id_) and id_ not in loop.members]
        if known:
            advice += f", such as one from {known[0]!r}"
        what = why or "no edge of a generator leads into the loop"
    elif len(entering) > 1:
        ways = ", ".join(f"{from_} -> {to}" for from_, to in entering[:5])
        what = f"{counted(len(entering), 'edge')} of generators lead into the loop: {ways}"
    elif source is not None and entering[0][0] != source:
        here, what = f"{here}.from", why or f"no edge leads from {source!r} into the loop"
        advice = f"name {entering[0][0]!r}, the generator whose edge leads into it"
    else:
        return
    findings.problem(INVALID_LOOP, here, what, advice, _likely_source(facts, loop))


def _check_legacy_exit(findings: Findings, facts: Facts, loop: LoopFacts, legacy: Object) -> None:
    here = f"loops.{loop.id}.exit"
    source = _exit_source(findings, facts, loop, legacy.get("from"), f"{here}.from")
    _check_endpoint(findings, facts, legacy.get("to"), f"{here}.to")
    when = legacy.get("when")
    if source is None or not is_condition(when) or loop.consumes is None:
        return
    if when in GUARDS and facts.authored_parse(source) == "text":
        what = f"{source!r} is parsed as text, but loop {loop.id!r} is left from it when it is {when}"
        advice = 'write "parse": "json", or let the exit be "always"'
        findings.problem(INVALID_LOOP, f"{source}.parse", what, advice)
    _check_legacy_advance(findings, facts, loop, source, when)
    back = [edge.get("when") for _, edge in facts.edges(source) if edge.get("to") in loop.members]
    if all(condition == when and when != "always" for condition in back):
        what = f"{source!r} has no way back into loop {loop.id!r} while items are left"
        advice = f'add an edge to a member, such as {{"when": "always", "to": "{loop.members[0]}"}}'
        findings.problem(INVALID_LOOP, f"{source}.edges", what, advice)


def _check_legacy_advance(findings: Findings, facts: Facts, loop: LoopFacts, source: str, when: str) -> None:
    """Check that an authored ``advance`` on the exit's source equals what the exit derives (R27)."""
    advance = facts.sockets[source].get("advance")
    if not is_object(advance):
        return
    derived = {"cursor": loop.cursor(source), "items": loop.items(), "when": when}
    authored = {
        "cursor": facts.advance_cursor(source),
        "items": advance.get("items", facts.items_of(source)),
        "when": advance.get("when", "always"),
    }
    for field, wanted in derived.items():
        if authored[field] != wanted:
            what = f"{field} is {brief(authored[field])}, but the exit of loop {loop.id!r} needs {wanted!r}"
            advice = f"write {wanted!r}, or remove advance: the exit derives it"
            findings.problem(INVALID_LOOP, f"{source}.advance.{field}", what, advice)


def _exit_source(
    findings: Findings,
    facts: Facts,
    loop: LoopFacts,
    source: JSON,
    here: str,
    near_fix: _NearFix = _no_fix,
) -> str | None:
    """Check where a way out starts; its socket when that is a member."""
    known = _check_endpoint(findings, facts, source, here, end=False, near_fix=near_fix)
    if not known or not isinstance(source, str):
        return None
    if source in loop.members:
        return source if source in facts.sockets else None
    advice = findings.near(source, loop.members) if loop.members else "list its members first"
    findings.problem(INVALID_LOOP, here, f"{source!r} is not a member of loop {loop.id!r}", advice)
    return None


def _remove_exit(loop: str, place: int, _near: str | None) -> Fix:
    return suggested_fix("Remove the exit", do("remove_exit", loop, place))


def _check_exits(findings: Findings, facts: Facts, loop: LoopFacts) -> None:
    ids: set[str] = set()
    conditions: set[tuple[JSON, JSON]] = set()
    for place, route in loop.exits():
        here = f"loops.{loop.id}.exits[{place}]"
        remove = partial(_remove_exit, loop.id, place)
        id_ = route.get("id")
        if is_text(id_):
            if id_ in ids:
                findings.problem(
                    INVALID_LOOP, f"{here}.id", f"another route has the id {id_!r}", "make ids unique"
                )
            ids.add(id_)
        _exit_source(findings, facts, loop, route.get("from"), f"{here}.from", remove)
        key = (route.get("from"), route.get("condition"))
        if is_text(key[0]) and is_condition(key[1]):
            if key in conditions:
                what = f"another route already leaves from {key[0]!r} when {key[1]}"
                advice = "keep one route for each source and condition"
                findings.problem(INVALID_LOOP, f"{here}.condition", what, advice)
            conditions.add(key)
        target, source = route.get("targetSocketId"), f"{here}.targetSocketId"
        _check_endpoint(findings, facts, target, source, near_fix=remove)


def _check_cursors(findings: Findings, facts: Facts) -> None:
    """Check that loops over the items of one generator keep their places apart (R27)."""
    seen: dict[tuple[str, str], str] = {}
    for loop in facts.loops:
        source = (loop.consumes or {}).get("from")
        if not isinstance(source, str) or not loop.members:
            continue
        cursor = loop.cursor(loop.members[0])
        other = seen.setdefault((source, cursor), loop.id)
        if other != loop.id:
            findings.problem(
                INVALID_LOOP,
                f"loops.{loop.id}.consumes.cursor",
                f"loop {other!r} consumes {source!r} with the cursor {cursor!r} too, so one would move the other",
                f'write a cursor of its own, such as "cursor": "{loop.id}Index"',
                suggested_fix(
                    f"Call its cursor {loop.id}Index",
                    do("set_source", loop.id, "consumes", cursor=f"{loop.id}Index"),
                ),
            )


def check_fields(
    findings: Findings, model: type[Model], raw: JSON, here: str = "", *, itself: str | None = None
) -> None:
    """Note what is wrong with the fields of an object, and of the objects inside it.

    ``here`` is the path in front of its fields, and ``itself`` its own, where that is another.
    """
    try:
        model.model_validate(raw)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            _note(findings, model, one, here, here if itself is None else itself)


def _note(findings: Findings, model: type[Model], error: ErrorDetails, here: str, itself: str) -> None:
    """Say an error in the words of the field that it is about, or of the model that an entry is not."""
    row: FieldRow | None = None
    whole_entry = True
    for part in error["loc"]:
        if row is not None and row.many and not whole_entry:
            here, whole_entry = row.entry(here, part), True
            continue
        model = model if row is None or row.part is None else row.part
        row, whole_entry, here = row_named(model, str(part)), False, field_path(here, str(part))
    if row is None or (whole_entry and row.part is not None):
        wanted = model if row is None or row.part is None else row.part
        wrong = f"this is {brief(error['input'])}, not {wanted.words}"
        findings.problem(wanted.code, here if row else itself, wrong, f"write {wanted.example}")
        return
    fault = error.get("ctx", {}).get("error")
    fault = fault if isinstance(fault, Fault) else Fault()
    what = fault.what or f"{here if whole_entry else row.field} is {brief(error['input'])}"
    if error["type"] == "missing":
        what = row.missing or f"{row.field} is missing"
    hint = fault.hint if fault.what or whole_entry else row.write or fault.hint
    fix = _field_fix(findings, row, error, itself)
    findings.problem(row.code or model.code, here + fault.at, what, hint or _advice(row), fix)


def _field_fix(findings: Findings, row: FieldRow, error: ErrorDetails, owner: str) -> Fix | None:
    """Return what fixes a wrong condition of an edge, or a field that is missing and has a value to begin with."""
    match error["loc"]:
        case ("sockets", str(id_), "edges", int(place), "when"):
            condition = findings.closest(error["input"], CONDITIONS) or "always"
            return suggested_fix(f"Make it {condition}", do("change_edge", id_, place, when=condition))
        case (str(field),) if error["type"] == "missing" and row.first_value is not None:
            id_ = owner.removeprefix("materia.")
            value = str(row.first_value)
            return suggested_fix(f"Let {field} of {id_} be {value}", do("set_materia", id_, field, value))
    return None


def _advice(row: FieldRow) -> str:
    if row.part is not None and not row.many:
        return f"write an object, such as {row.part.example}"
    article = _ARTICLES.get(row.shape.partition(" ")[0], "")
    return f"write {article}{row.shape}" + ("" if row.required else ", or leave it out")


_ARTICLES: Final = {"object": "an ", "list": "a ", "number": "a ", "whole": "a ", "percent": "a "}
"""What stands before a shape that is one thing, by its first word; others say what can be written."""


def check_materia(findings: Findings, name: str, raw: JSON) -> None:
    """Note what is wrong with the definition of the materia ``name``."""
    here = f"materia.{name}"
    if is_object(raw) and _is_ambiguous(raw):
        what = f"the materia {name!r} has both a prompt and something to run, and does not say which it is"
        findings.problem(INVALID_MATERIA, name, what, 'write "type": "agent" or "type": "utility"')
    utility = is_object(raw) and materia_kind(raw) == "utility"
    check_fields(findings, UtilityMateria if utility else AgentMateria, raw, here)
    if not is_object(raw):
        return
    for field in ("parallel", "parallelPlanner"):
        if raw.get(field) is True and raw.get("generator") is not True:
            what = f"materia {name!r} is parallel and no generator, so it has no items to hand to streams"
            advice = f'write "generator": true too, or remove {field}'
            findings.problem(INVALID_MATERIA, f"{here}.{field}", what, advice)
    program = next(iter(as_list(raw.get("command"))), None)
    if utility and isinstance(program, str) and program.isspace():
        what = "the program of the command has no name"
        findings.problem(INVALID_MATERIA, f"{here}.command[0]", what, "write one, such as python3")
    if utility and raw.get("command") is not None and raw.get("script") is not None:
        what = f"the utility {name!r} has both a command and a script, and does not say which is run"
        findings.problem(INVALID_MATERIA, f"{here}.script", what, "remove one of them")
    if utility and raw.get("command") is None and raw.get("script") is None:
        _nothing_to_run(findings, here, name, raw.get("utility"))


def _is_ambiguous(raw: Object) -> bool:
    """Whether it could be an agent as well as a utility: no program may start for want of a field (R38)."""
    runs = raw.get("command") is not None or raw.get("script") is not None
    return raw.get("type") is None and raw.get("prompt") is not None and runs


def _nothing_to_run(findings: Findings, here: str, name: str, alias: JSON) -> None:
    if isinstance(alias, str) and alias in BUILT_IN:
        return
    findings.problem(
        INVALID_MATERIA,
        f"{here}.command" if alias is None else f"{here}.utility",
        f"the utility {name!r} has nothing to run"
        + ("" if alias is None else f": {brief(alias)} is built into another engine"),
        _LANES
        if alias in LANE_UTILITIES
        else 'write "command": ["program", "argument", ...] or "script": {"kind": "shippedUtility", "name": "....py"}',
    )


_LANES: Final = "it works in workspaces of jj: place Git-Spawn, Git-Integrate or Git-Finalize, which work in worktrees of Git"


def check_servers(findings: Findings, servers: JSON) -> None:
    """Note what is wrong with the MCP servers of a config beside their fields."""
    for name, raw in as_object(servers).items():
        here, ways = f"mcpServers.{name}", [way for way in ("command", "url") if as_object(raw).get(way)]
        if not _SERVER_NAME.fullmatch(name):
            what = f"{brief(name)} cannot be the name of a server"
            findings.problem(INVALID_CONFIG, here, what, "use letters, digits, _ and -")
        if is_object(raw) and len(ways) != 1:
            what = "has both a command and a url" if ways else "has neither a command nor a url"
            findings.problem(INVALID_CONFIG, here, f"the server {name!r} {what}", "write one of them")


_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


# -- hints -----------------------------------------------------------------------------------

FIELD_HINTS: Final = {
    UNKNOWN_FIELD: "A field that nothing reads, with the nearest known name",
    NO_EFFECT: "A known field that has no effect here, and why",
}
_MATERIA_MODELS: tuple[type[Model], ...] = (models.AgentMateria, models.UtilityMateria)


def hint_fields(findings: Findings, document: Object, loadout: str | None) -> None:
    """Hint on the fields of a config; of one loadout and its materia when ``loadout`` names it."""
    _fields(findings, models.Config, document)
    if as_object(document.get("budget")).get("stopAtLimit") is False:
        what = "the maximum always stops a cast"
        findings.hint(NO_EFFECT, "budget.stopAtLimit", what, "leave maxTokens out for no maximum")
    used: set[JSON] = set()
    for name, raw in as_object(document.get("loadouts")).items():
        if loadout is None or name == loadout:
            findings.loadout = name
            _fields(findings, models.Loadout, as_object(raw))
            findings.loadout = None
            sockets = as_object(as_object(raw).get("sockets")).values()
            named = [as_object(socket).get("materia") for socket in sockets]
            used.update(id_ for id_ in named if isinstance(id_, str))
    for id_, raw in as_object(document.get("materia")).items():
        if loadout is None or id_ in used:
            _materia(findings, f"materia.{id_}", as_object(raw))


def _materia(findings: Findings, here: str, raw: Object) -> None:
    own = _MATERIA_MODELS[materia_kind(raw) == "utility"]
    _fields(findings, own, raw, here)
    if raw.get("utility") is not None and (raw.get("command") or raw.get("script")) is not None:
        why = "utility has no effect beside what is to be run"
        findings.hint(NO_EFFECT, f"{here}.utility", why, "remove it")
    colour = raw.get("color")
    if colour is not None and tint_of(colour) is None:
        advice = f"write #rrggbb, or a name: {', '.join(NAMED)}"
        findings.hint(NO_EFFECT, f"{here}.color", "this is not a colour that is understood", advice)


def _fields(findings: Findings, model: type[Model], raw: Object, here: str = "") -> None:
    """Hint on the fields of an object and of the objects inside it."""
    for part, one, at in objects(model, raw, here):
        for field, value in one.items():
            _field(findings, part, one, field, value, at)


def _field(findings: Findings, model: type[Model], owner: Object, field: str, value: JSON, here: str) -> None:
    row, source = row_named(model, field), field_path(here, field)
    remove = without_field(here, field) if model is models.SocketFields else None
    if row is not None:
        if row.ignored is not None and _says_something(value):
            findings.hint(NO_EFFECT, source, f"{field} has no effect", row.ignored, remove)
    elif (elsewhere := _elsewhere(model, owner, field)) is not None:
        why = f"{field} has no effect here: {elsewhere}"
        findings.hint(NO_EFFECT, source, why, "move it, or remove it", remove)
    elif not field.startswith("x-"):  # whose they are, nobody else says anything of
        near = close_match(field, model.rows)
        advice = f"did you mean {near!r}?" if near else "it is kept, and nothing reads it"
        rename = near is not None and near not in owner and model is models.SocketFields
        fix = safe_fix(f"Call it {near}", do("rename_field", here, field, near)) if rename else None
        findings.hint(UNKNOWN_FIELD, source, f"{field!r} is not a field of {model.words}", advice, fix)


def _elsewhere(model: type[Model], owner: Object, field: str) -> str | None:
    """Say where a field belongs that stands on a loadout, on a socket, or on a materia of the other kind."""
    if model is models.Loadout and row_named(models.Config, field):
        return "it belongs to the top of the config, beside loadouts"
    if model not in (models.SocketFields, *_MATERIA_MODELS) or not any(
        row_named(one, field) for one in _MATERIA_MODELS
    ):
        return None
    if model is models.SocketFields:
        named = owner.get("materia")
        return f"it belongs to materia.{named}" if isinstance(named, str) else "it belongs to the materia"
    assigns = model is models.AgentMateria and "assign" in owner
    return f"this materia is {model.words}{'; assign of an agent goes on its socket' * assigns}"


def _says_something(value: JSON) -> bool:
    """Whether a field asks for anything; switched off and empty ones do not."""
    return bool(value) and not (is_object(value) and value.get("enabled") is False)
