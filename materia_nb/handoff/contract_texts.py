"""What a contract means in the words of others: the graph, the gist, a person (sections 12 and 14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from materia_nb.handoff.capabilities import (
    FindFile,
    Pointer,
    Reported,
    Section,
    TextOrPointer,
    can_be_granted,
    told_rows,
)
from materia_nb.handoff.contract_fields import (
    ABSENT,
    EVIDENCE,
    PLAN_STATUSES,
    Contract,
    as_entries,
)
from materia_nb.handoff.protocol import (
    NO_REASON,
    Gist,
    Issue,
    Outcome,
    Piece,
    RoutingVerdict,
    as_text,
    labelled,
    one_line,
)
from materia_nb.jsonvalue import JSON


def conclusion(reports: Sequence[Reported]) -> list[str]:
    """Return the summary of a single agent as it wrote it, else what each one found, and what was checked and is open."""
    read = [(who, Contract(value)) for who, value in reports]
    done = [(who, one) for who, one in read if one.plan_status == "COMPLETE"]
    if len(done) == 1 and (summary := done[0][1].user_facing_summary):
        lines = summary.splitlines()
    else:
        lines = [line for who, one in done for line in labelled(who, _outcome_words(one))]
    contracts = [one for _, one in done]
    return [
        *lines,
        *labelled("Verified by", dict.fromkeys(map(_checked, contracts))),
        *labelled("Impacts elsewhere", _all(contracts, "cross_layer_impacts")),
        *labelled("Still open", _all(contracts, "open_gaps")),
    ]


def _outcome_words(contract: Contract) -> list[str]:
    return _texts_of(contract.evidence["key_outputs"]) or [contract.user_facing_summary or "done"]


def _checked(contract: Contract) -> str:
    """How the work was checked, as far as the agent says; a COMPLETE contract has passed."""
    words = (as_text(contract.verification.get(name) or "") for name in ("method", "details"))
    return next(filter(None, words), "")


def _all(contracts: Sequence[Contract], name: str) -> list[str]:
    return list(dict.fromkeys(text for one in contracts for text in _texts_of(one.evidence[name])))


def _texts_of(entries: Sequence[JSON]) -> list[str]:
    return [as_text(entry) for entry in entries if entry is not None]


def contract_verdict(contract: Contract, status: str) -> RoutingVerdict:
    """Turn the status of a valid contract into a route or an action."""
    if status == "COMPLETE":
        return RoutingVerdict(_ownership(contract) != "not_my_surface")
    if status == "IN_PROGRESS":
        if contract.passed is False or contract.loop_state is not None:
            return RoutingVerdict(False)
        return RoutingVerdict(None, "reissue", f"The agent is still at work: {_next_action(contract)}")
    if status == "APPROVAL_REQUEST":
        return _approval(contract.approval_request)
    if status == "NEEDS_INPUT":
        return RoutingVerdict(None, "pause", _next_action(contract), needs="question")
    return RoutingVerdict(
        None, "escalate", "; ".join(["The agent is blocked", *_gaps(contract), *_helper(contract)])
    )


def _approval(request: Mapping[str, JSON]) -> RoutingVerdict:
    asked = one_line(as_text(request.get("exact_content") or request.get("operation") or ""))
    if not can_be_granted(request):
        return RoutingVerdict(None, "pause", f"The agent asks for direction: {asked}", needs="direction")
    own = f"nothing here issued the id {request['approval_id']}: it is the agent's own"
    return RoutingVerdict(None, "pause", f"The agent asks for consent: {asked} ({own})", needs="consent")


def contract_context(contract: Contract, warnings: Sequence[Issue]) -> str:
    """Write the contract as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(contract, warnings))


def _lines(contract: Contract, warnings: Sequence[Issue]) -> Iterator[str]:
    yield contract.plan_status
    if contract.user_facing_summary:
        yield f"Summary: {contract.user_facing_summary}"
    yield from labelled("Key outputs", _texts_of(contract.evidence["key_outputs"]))
    yield from labelled("Impacts elsewhere", _texts_of(contract.evidence["cross_layer_impacts"]))
    yield from labelled("Open gaps", _gaps(contract))
    if _ownership(contract) in ("cross_surface_dependency", "not_my_surface"):
        yield f"Ownership: {_ownership(contract)}"
        yield from _helper(contract)
    yield from labelled("Warnings", [warning.message for warning in warnings])


def work_items_of_gaps(contract: Contract) -> list[JSON]:
    """Turn each open gap into a work item: its first line is the title, the rest the context.

    A report that must have a gap has "none" where there is none, which is no work.
    """
    helper = "\n".join(_helper(contract))
    items: list[JSON] = []
    for gap in _gaps(contract):
        title, _, rest = gap.strip().partition("\n")
        if title.strip(" .").lower() == "none" and not rest.strip():
            continue
        context = "\n".join(line for line in (rest.strip(), helper) if line)
        items.append({"title": title.strip(), "context": context or title.strip()})
    return items


def _ownership(contract: Contract) -> JSON:
    return contract.consolidation_report.get("ownership_assessment")


def _next_action(contract: Contract) -> str:
    return as_text(contract.next_action or "")


def _gaps(contract: Contract) -> list[str]:
    """The open gaps of both reports, each once and none blank."""
    others = as_entries(contract.consolidation_report.get("open_gaps"))
    gaps = _texts_of([*contract.evidence["open_gaps"], *others])
    return [gap for gap in dict.fromkeys(gaps) if gap.strip()]


def _helper(contract: Contract) -> Iterator[str]:
    helper = contract.consolidation_report.get("next_best_agent")
    if helper:
        yield f"Next best agent: {one_line(as_text(helper))}"


_STATUS: Final[dict[Outcome, tuple[str, str | None]]] = {
    "done": ("COMPLETE", "pass"),
    "accepted": ("IN_PROGRESS", None),
    "again": ("IN_PROGRESS", "fail"),
    "open": ("IN_PROGRESS", None),
    "stuck": ("BLOCKED", None),
}
"""Status and result of the verification; what was accepted unchecked is not said to have passed."""


def gist_of_contract(value: Mapping[str, JSON]) -> Gist:
    """Return what a contract says; fields of the wrong type say nothing."""
    contract = Contract(value)
    reason, listed = contract.next_action, contract.evidence
    commands = [one.get("command") if isinstance(one, dict) else one for one in listed["commands_run"]]
    return Gist(
        outcome=_outcome(contract),
        did=contract.user_facing_summary or "",
        found="\n".join(one for one in listed["key_outputs"] if isinstance(one, str)),
        pieces=tuple(_piece(gap) for gap in listed["open_gaps"] if isinstance(gap, str) and gap.strip()),
        commands=tuple(command for command in commands if isinstance(command, str)),
        reason=reason if isinstance(reason, str) else "",
        agent=contract.agent_id,
    )


def contract_from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as a contract; it reports no agent id that the gist does not have."""
    status, result = _STATUS[gist.outcome]
    agent_status: dict[str, JSON] = {
        "plan_status": status,
        "pending_steps": [],
        "next_action": gist.reason or NO_REASON,
    }
    if gist.agent:
        agent_status["agent_id"] = gist.agent
    report: dict[str, JSON] = {name: [] for name in EVIDENCE}
    report["commands_run"] = list(gist.commands)
    report["key_outputs"] = gist.found.split("\n") if gist.found else []
    report["open_gaps"] = [_gap(piece) for piece in gist.pieces]
    if result is not None:
        report["verification"] = {"result": result}
    value: dict[str, JSON] = {
        "agent_status": agent_status,
        "evidence_report": report,
        "consolidation_report": None,
        "approval_request": None,
    }
    return {**value, "user_facing_summary": gist.did} if gist.did else value


def _outcome(contract: Contract) -> Outcome:
    status, loop = contract.plan_status, contract.loop_state
    if status not in PLAN_STATUSES:
        return "open"
    if status == "COMPLETE":
        if contract_verdict(contract, status).satisfied is False or (loop is not None and loop.unfinished):
            return "again"
        return "done" if contract.passed else "open"
    if status == "IN_PROGRESS":
        return "again" if contract_verdict(contract, status).satisfied is False else "open"
    return "stuck"


def _piece(gap: str) -> Piece:
    title, _, rest = gap.partition("\n")
    return Piece(title, rest or title)


def _gap(piece: Piece) -> str:
    return piece.title if piece.context == piece.title else f"{piece.title}\n{piece.context}"


def contract_layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what a contract says, in the order in which a person needs it; never raises.

    Args:
        value: the contract, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    contract = Contract(value)
    sections = [Section("contract", rows=told_rows(_contract_headline(contract)))]
    for title, owner in (
        ("verification", contract.verification),
        ("asks for", contract.approval_request),
        ("consolidation", contract.consolidation_report),
    ):
        rows = tuple((name, entry) for name, given in owner.items() for entry in _each_as_text(given))
        sections += [Section(title, rows=rows)] if rows else []
    sections.append(_contract_evidence(contract, find))
    suggested = [(one["description"], one["body"]) for one in contract.memorialize_suggestions.suggestions]
    suggested += [(note, "") for note in contract.memory_suggestions]
    if suggested:
        sections.append(Section("suggests to remember", ("what", "in full"), tuple(suggested)))
    return sections


def _contract_headline(contract: Contract) -> list[tuple[str, TextOrPointer]]:
    loop, used = contract.loop_state, contract.context_consumption or {}
    rounds = f"{loop.iteration} of {as_text(loop.max_iterations)}" if loop else ""
    metric = f"{as_text(loop.metric)}, wanted {as_text(loop.threshold)}" if loop else ""
    rolled = contract.rollback_executed
    return [
        ("status", contract.plan_status),
        ("says", contract.user_facing_summary or ""),
        *(("still to do", as_text(step)) for step in contract.pending_steps),
        ("next", "" if contract.next_action is None else as_text(contract.next_action)),
        ("round", rounds),
        ("metric", metric),
        ("taken back", "" if rolled in (None, ABSENT) else str(rolled)),
        *((label, str(used[name])) for name, label in _USED.items() if used.get(name) is not None),
    ]


_USED: Final = {"tokens_used": "tokens used", "pct_window": "window used"}


def _contract_evidence(contract: Contract, find: FindFile) -> Section:
    rows: list[tuple[TextOrPointer, ...]] = []
    for name, entries in contract.evidence.items():
        for entry in entries:
            text = as_text(entry)
            rows.append((name, Pointer(text, find(text)) if name == "files_checked" else text))
    empty = [name for name, entries in contract.evidence.items() if not entries]
    lines = (f"nothing in: {', '.join(empty)}",) if empty else ()
    return Section("evidence", ("list", "entry") if rows else (), tuple(rows), lines)


def _each_as_text(given: JSON) -> list[str]:
    """An entry for each thing in a list, one for anything else; null says nothing."""
    return [as_text(entry) for entry in as_entries(given)]
