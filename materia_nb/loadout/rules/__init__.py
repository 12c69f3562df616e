"""Hints: what is allowed and yet probably not meant. A cast starts all the same. Each rule is a row of a table here."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.check_graph import FIELD_HINTS, hint_fields
from materia_nb.loadout.facts import Facts, as_object, is_object, placed_materia
from materia_nb.loadout.report import MISSING_COMMAND, Findings, HintRule, Problem
from materia_nb.loadout.rules import edge_rules, socket_rules

RULES: Final[tuple[HintRule, ...]] = (
    *socket_rules.SOCKET_RULES,
    *edge_rules.EDGE_RULES,
    *socket_rules.STATE_RULES,
)
HINT_CODES: Final = {
    **FIELD_HINTS,
    MISSING_COMMAND: "A utility whose program or script is not on this machine",
}
"""The codes of hints, each with what it says."""
for _rule in RULES:
    HINT_CODES.setdefault(_rule.code, _rule.about)


def find_hints(document: JSON, loadout: str | None = None) -> list[Problem]:
    """Return the hints on a config, or on one loadout of it and the materia it uses; never raises."""
    findings = Findings()
    if not is_object(document):
        return findings.found
    hint_fields(findings, document, loadout)
    materia = as_object(document.get("materia"))
    used: set[str] = set()
    for name, raw in as_object(document.get("loadouts")).items():
        if is_object(raw) and loadout in (None, name):
            facts = Facts(name, raw, materia, document)
            used.update(placed_materia(facts))
            findings.loadout = name
            _hint_loadout(findings, facts)
            findings.loadout = None
    for rule in RULES:
        if rule.scope == "materia":
            for id_, raw in materia.items():
                if loadout is None or id_ in used:
                    _note(findings, rule, id_, as_object(raw))
        elif rule.scope == "config" and loadout is None:
            _note(findings, rule, document)
    return findings.found


def _hint_loadout(findings: Findings, facts: Facts) -> None:
    """Ask the rules about a loadout: neighbours in the table that are about each socket, or each loop, one after another."""
    for scope, rules in groupby(RULES, key=lambda rule: rule.scope):
        subjects: Mapping[str, list[tuple[object, ...]]] = {
            "loadout": [()],
            "socket": [(id_,) for id_ in facts.sockets],
            "loop": [(loop,) for loop in facts.loops],
        }
        neighbours = list(rules)
        for about in subjects.get(scope, ()):
            for rule in neighbours:
                _note(findings, rule, facts, *about)


def _note(findings: Findings, rule: HintRule, *about: object) -> None:
    for one in rule.find(*about):
        findings.hint(rule.code, *one)
