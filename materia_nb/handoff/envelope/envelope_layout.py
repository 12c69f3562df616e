"""What an envelope says, laid out for a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from materia_nb.handoff.capabilities import Cell, FindFile, Pointer, Section, told_rows
from materia_nb.handoff.envelope.envelope_check import IDENTITY, SEVERITIES, Concern, Envelope, envelope_of
from materia_nb.handoff.protocol import as_text
from materia_nb.jsonvalue import JSON

_SIGNS: Final = {"HIGH": "!!!", "MEDIUM": "!!", "LOW": "!"}
_LINE: Final = re.compile(r":\d+(?:[-:]\d+)*$")


def layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what an envelope says, in the order in which a person needs it; never raises.

    Args:
        value: the envelope, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    said = envelope_of(value)
    sections = [Section("envelope", rows=told_rows(_envelope_headline(said)))]
    if said.concerns:
        rows = [_concern(one, find) for one in sorted(said.concerns, key=_rank)]
        sections.append(Section("concerns", ("severity", "what", "where", "what to do"), tuple(rows)))
    evidence = _envelope_evidence(said, find)
    if evidence:
        sections.append(Section("evidence", ("kind", "pointer"), tuple(evidence)))
    if said.assumptions:
        assumed = tuple((one.assumption, one.why, one.impact) for one in said.assumptions)
        sections.append(Section("assumptions", ("taken for granted", "why", "if it is wrong"), assumed))
    meta = value.get("meta")
    if isinstance(meta, dict):
        written = told_rows([(name, str(meta[name])) for name in IDENTITY if isinstance(meta.get(name), str)])
        sections += [Section("meta", rows=written)] if written else []
    return sections


def _envelope_headline(said: Envelope) -> list[tuple[str, Cell]]:
    can_help = {True: "yes", False: "no", None: ""}[said.can_help]
    return [
        ("status", said.status),
        ("done", said.did),
        ("found", said.found),
        *(("decided", decision) for decision in said.decisions),
        ("recommends", said.recommendation),
        ("because", said.reason),
        ("another round helps", can_help),
        ("suggests", said.suggestion),
    ]


def _rank(concern: Concern) -> int:
    return SEVERITIES.index(concern.severity) if concern.severity in SEVERITIES else len(SEVERITIES)


def _concern(concern: Concern, find: FindFile) -> tuple[Cell, ...]:
    severity = f"{_SIGNS.get(concern.severity, '')} {concern.severity}".strip()
    place = Pointer(concern.location, find(_LINE.sub("", concern.location)))
    return severity, concern.description, place, concern.recommendation


def _envelope_evidence(said: Envelope, find: FindFile) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [("file", Pointer(text, find(text))) for text in said.artifacts]
    rows += [("command", text) for text in said.commands]
    rows += [("measured", f"{name} = {as_text(value)}") for name, value in (said.measurements or {}).items()]
    return rows
