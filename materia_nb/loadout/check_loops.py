"""Problems of loop regions: members, what they consume, and the ways out (R15, R16, R26, R27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.check_sockets import check_done, check_endpoint
from materia_nb.loadout.facts import Facts, LoopFacts, Object, as_list, is_condition, is_object, is_text
from materia_nb.loadout.report import INVALID_LOOP, Findings, counted, shown


@dataclass(frozen=True, slots=True)
class _Inbound:
    """The edges from generator sockets, by where they lead."""

    edges: tuple[tuple[str, str], ...]

    def into(self, members: frozenset[str]) -> list[tuple[str, str]]:
        return [(source, to) for source, to in self.edges if to in members and source not in members]


def check_loops(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the loops of the loadout."""
    inbound = _Inbound(
        tuple((id_, to) for id_ in facts.sockets if facts.is_generator(id_) for to in facts.targets(id_))
    )
    for loop in facts.loops:
        _check_loop(findings, facts, inbound, loop)
    _check_cursors(findings, facts)


def _check_loop(findings: Findings, facts: Facts, inbound: _Inbound, loop: LoopFacts) -> None:
    here = f"loops.{loop.id}"
    members_known = _check_members(findings, facts, loop, here)
    check_done(findings, facts, f"{here}.iterator", loop.iterator)
    if loop.consumes is not None:
        _check_consumes(findings, facts, inbound, loop, members_known=members_known)
    legacy = loop.raw.get("exit")
    if is_object(legacy):
        _check_legacy_exit(findings, facts, loop, legacy)
    _check_exits(findings, facts, loop)


def _check_members(findings: Findings, facts: Facts, loop: LoopFacts, here: str) -> bool:
    """Whether the list of members is well formed and every member exists."""
    members = as_list(loop.raw.get("sockets"))
    known = [
        check_endpoint(findings, facts, member, f"{here}.sockets[{place}]", end=False)
        for place, member in enumerate(members)
    ]
    return bool(known) and all(known)


def _check_consumes(
    findings: Findings, facts: Facts, inbound: _Inbound, loop: LoopFacts, *, members_known: bool
) -> None:
    here = f"loops.{loop.id}.consumes"
    consumes = loop.consumes or {}
    check_done(findings, facts, here, consumes)
    members = frozenset(loop.members)
    entering = inbound.into(members)
    sources = {source for source, _ in entering}
    advice = (
        f"name {entering[0][0]!r}, the generator whose edge leads into the loop"
        if len(sources) == 1
        else None
    )
    named = check_endpoint(findings, facts, consumes.get("from"), f"{here}.from", end=False, advice=advice)
    if not members_known:
        return
    if not _has_cycle({id_: [to for to in facts.targets(id_) if to in members] for id_ in loop.members}):
        findings.problem(
            INVALID_LOOP,
            f"loops.{loop.id}.sockets",
            "the members form no cycle, so no second item would ever be worked on",
            f"add an edge from the last member back to {loop.members[0]!r}; exit routes do not count",
        )
    _check_source(findings, facts, entering, loop, consumes.get("from") if named else None)


def _check_source(
    findings: Findings, facts: Facts, entering: list[tuple[str, str]], loop: LoopFacts, source: JSON
) -> None:
    """Check that exactly one edge from a generator leads into the loop, from the socket that is named (R27)."""
    here = f"loops.{loop.id}.consumes"
    for place, member in enumerate(loop.members):
        if facts.is_generator(member) and member != source:
            findings.problem(
                INVALID_LOOP,
                f"loops.{loop.id}.sockets[{place}]",
                f"{member!r} is a generator itself, inside a loop that consumes the items of another one",
                "place it before the loop, or give it a loop of its own",
            )
    if source in loop.members:
        why = f"{source!r} is a member of the loop that consumes it"
    elif source is not None and not facts.is_generator(str(source)):
        why = f"{source!r} is no generator"
    else:
        why = None
    advice = "let exactly one edge of one generator lead into the loop"
    sources = list(dict.fromkeys(from_ for from_, _ in entering))
    if not entering:
        known = [id_ for id_ in facts.sockets if facts.is_generator(id_) and id_ not in loop.members]
        if known:
            advice += f", such as one from {known[0]!r}"
        findings.problem(INVALID_LOOP, here, why or "no edge of a generator leads into the loop", advice)
    elif len(entering) > 1:
        ways = ", ".join(f"{from_} -> {to}" for from_, to in entering[:5])
        findings.problem(
            INVALID_LOOP,
            here,
            f"{counted(len(entering), 'edge')} of generators lead into the loop: {ways}",
            advice,
        )
    elif source is not None and sources[0] != source:
        findings.problem(
            INVALID_LOOP,
            f"{here}.from",
            why or f"no edge leads from {source!r} into the loop",
            f"name {sources[0]!r}, the generator whose edge leads into it",
        )


def _check_legacy_exit(findings: Findings, facts: Facts, loop: LoopFacts, legacy: Object) -> None:
    here = f"loops.{loop.id}.exit"
    source = _exit_source(findings, facts, loop, legacy.get("from"), f"{here}.from")
    check_endpoint(findings, facts, legacy.get("to"), f"{here}.to")
    when = legacy.get("when")
    if source is None or not is_condition(when) or loop.consumes is None:
        return
    if when != "always" and facts.authored_parse(source) == "text":
        findings.problem(
            INVALID_LOOP,
            f"{source}.parse",
            f"{source!r} is parsed as text, but loop {loop.id!r} is left from it when it is {when}",
            'write "parse": "json", or let the exit be "always"',
        )
    _check_legacy_advance(findings, facts, loop, source, when)
    back = [edge.get("when") for _, edge in facts.edges(source) if edge.get("to") in loop.members]
    if all(condition == when and when != "always" for condition in back):
        findings.problem(
            INVALID_LOOP,
            f"{source}.edges",
            f"{source!r} has no way back into loop {loop.id!r} while items are left",
            f'add an edge to a member, such as {{"when": "always", "to": "{loop.members[0]}"}}',
        )


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
            findings.problem(
                INVALID_LOOP,
                f"{source}.advance.{field}",
                f"{field} is {shown(authored[field])}, but the exit of loop {loop.id!r} needs {wanted!r}",
                f"write {wanted!r}, or remove advance: the exit derives it",
            )


def _exit_source(findings: Findings, facts: Facts, loop: LoopFacts, source: JSON, here: str) -> str | None:
    """Check where a way out starts; its socket when that is a member."""
    if not check_endpoint(findings, facts, source, here, end=False) or not isinstance(source, str):
        return None
    if source in loop.members:
        return source if source in facts.sockets else None
    findings.problem(
        INVALID_LOOP,
        here,
        f"{source!r} is no member of loop {loop.id!r}",
        findings.near(source, loop.members) if loop.members else "list its members first",
    )
    return None


def _check_exits(findings: Findings, facts: Facts, loop: LoopFacts) -> None:
    ids: set[str] = set()
    conditions: set[tuple[JSON, JSON]] = set()
    for place, route in enumerate(as_list(loop.raw.get("exits"))):
        here = f"loops.{loop.id}.exits[{place}]"
        if not is_object(route):
            continue
        id_ = route.get("id")
        if is_text(id_):
            if id_ in ids:
                findings.problem(
                    INVALID_LOOP, f"{here}.id", f"another route has the id {id_!r}", "make ids unique"
                )
            ids.add(id_)
        _exit_source(findings, facts, loop, route.get("from"), f"{here}.from")
        key = (route.get("from"), route.get("condition"))
        if is_text(key[0]) and is_condition(key[1]):
            if key in conditions:
                findings.problem(
                    INVALID_LOOP,
                    f"{here}.condition",
                    f"another route already leaves from {key[0]!r} when {key[1]}",
                    "keep one route for each source and condition",
                )
            conditions.add(key)
        check_endpoint(findings, facts, route.get("targetSocketId"), f"{here}.targetSocketId")


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
            )


def _has_cycle(graph: Mapping[str, Iterable[str]]) -> bool:
    """Whether a walk along ``graph`` can come back; without recursion, so that size does not matter."""
    state: dict[str, bool] = {}
    for start in graph:
        if start in state:
            continue
        state[start] = False
        walk = [(start, iter(graph[start]))]
        while walk:
            node, left = walk[-1]
            following = next(left, None)
            if following is None:
                state[node] = True
                walk.pop()
            elif following not in state:
                state[following] = False
                walk.append((following, iter(graph.get(following, ()))))
            elif not state[following]:
                return True
    return False
