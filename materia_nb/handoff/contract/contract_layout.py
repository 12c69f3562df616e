"""What a contract says, laid out for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from materia_nb.handoff.capabilities import Cell, FindFile, Pointer, Section, told_rows
from materia_nb.handoff.contract.contract_fields import ABSENT, Output, as_list, output_of
from materia_nb.handoff.protocol import as_text
from materia_nb.jsonvalue import JSON


def layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what a contract says, in the order in which a person needs it; never raises.

    Args:
        value: the contract, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    said = output_of(value)
    sections = [Section("contract", rows=told_rows(_contract_headline(said)))]
    for title, owner in (
        ("verification", said.verification),
        ("asks for", said.approval_request),
        ("consolidation", said.consolidation_report),
    ):
        rows = tuple((name, entry) for name, given in owner.items() for entry in _texts(given))
        sections += [Section(title, rows=rows)] if rows else []
    sections.append(_contract_evidence(said, find))
    suggested = [(one["description"], one["body"]) for one in said.memorialize_suggestions.suggestions]
    suggested += [(note, "") for note in said.memory_suggestions]
    if suggested:
        sections.append(Section("suggests to remember", ("what", "in full"), tuple(suggested)))
    return sections


def _contract_headline(said: Output) -> list[tuple[str, Cell]]:
    loop, used = said.loop_state, said.context_consumption or {}
    rounds = f"{loop.iteration} of {as_text(loop.max_iterations)}" if loop else ""
    metric = f"{as_text(loop.metric)}, wanted {as_text(loop.threshold)}" if loop else ""
    rolled = said.rollback_executed
    return [
        ("status", said.plan_status),
        ("says", said.user_facing_summary or ""),
        *(("still to do", as_text(step)) for step in said.pending_steps),
        ("next", "" if said.next_action is None else as_text(said.next_action)),
        ("round", rounds),
        ("metric", metric),
        ("taken back", "" if rolled in (None, ABSENT) else str(rolled)),
        *((label, str(used[name])) for name, label in _USED.items() if used.get(name) is not None),
    ]


_USED: Final = {"tokens_used": "tokens used", "pct_window": "window used"}


def _contract_evidence(said: Output, find: FindFile) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, entries in said.evidence.items():
        for entry in entries:
            text = as_text(entry)
            rows.append((name, Pointer(text, find(text)) if name == "files_checked" else text))
    empty = [name for name, entries in said.evidence.items() if not entries]
    lines = (f"nothing in: {', '.join(empty)}",) if empty else ()
    return Section("evidence", ("list", "entry") if rows else (), tuple(rows), lines)


def _texts(given: JSON) -> list[str]:
    """An entry for each thing in a list, one for anything else; null says nothing."""
    return [as_text(entry) for entry in as_list(given)]
