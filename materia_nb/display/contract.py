"""What a person sees of an agent contract: how far the work is, what supports that, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from materia_nb.display.plan_status import path_svg, path_words
from materia_nb.display.sections import Cell, FindFile, Pointer, Section, facts
from materia_nb.handoff.contract import Output, output_of
from materia_nb.handoff.contract.fields import ABSENT, as_list
from materia_nb.handoff.wording import as_text
from materia_nb.jsonvalue import JSON


def contract_sections(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what a contract says, in the order in which a person needs it; never raises.

    Args:
        value: the contract, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    said = output_of(value)
    sections = [Section("contract", rows=facts(_headline(said)))]
    for title, owner in (
        ("verification", said.verification),
        ("asks for", said.approval_request),
        ("consolidation", said.consolidation_report),
    ):
        rows = tuple((name, entry) for name, given in owner.items() for entry in _texts(given))
        sections += [Section(title, rows=rows)] if rows else []
    sections.append(_evidence(said, find))
    suggested = [(one["description"], one["body"]) for one in said.memorialize_suggestions.suggestions]
    suggested += [(note, "") for note in said.memory_suggestions]
    if suggested:
        sections.append(Section("suggests to remember", ("what", "in full"), tuple(suggested)))
    return sections


def path_section(statuses: Sequence[str]) -> Section:
    """Return the statuses that an agent has reported in this visit as a diagram and in words."""
    return Section("plan_status", lines=(path_words(statuses),), picture=path_svg(statuses))


def _headline(said: Output) -> list[tuple[str, Cell]]:
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


def _evidence(said: Output, find: FindFile) -> Section:
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
