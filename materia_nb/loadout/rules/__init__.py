"""Hints on configs that are valid but probably a mistake; hints do not stop a cast. The rules are rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final

from materia_nb.jsonvalue import JSON, as_object, is_object
from materia_nb.loadout.check_fields import FIELD_HINTS, hint_fields
from materia_nb.loadout.report import MISSING_COMMAND, Findings, HintRule, Problem
from materia_nb.loadout.rules import edge_rules, socket_rules
from materia_nb.loadout.topology import LoadoutFacts, loadout_facts, once_per_config, parts_to_check

RULES: Final[tuple[HintRule, ...]] = (
    *socket_rules.SOCKET_RULES,
    *edge_rules.EDGE_RULES,
)
HINT_CODES: Final = {
    **FIELD_HINTS,
    MISSING_COMMAND: "A utility whose program or script is missing on this machine",
}
"""The codes of hints with their descriptions."""
for _rule in RULES:
    HINT_CODES.setdefault(_rule.code, _rule.about)


@once_per_config
def find_hints(document: JSON, loadout: str | None) -> list[Problem]:
    """Return the hints on a config, or on one loadout and its materia; never raises."""
    findings = Findings()
    if not is_object(document):
        return findings.entries
    hint_fields(findings, document, loadout)
    names, materia = parts_to_check(document, loadout)
    for name in names:
        findings.loadout = name
        _hint_loadout(findings, loadout_facts(document, name))
        findings.loadout = None
    for rule in RULES:
        if rule.scope == "materia":
            for id_, raw in materia.items():
                findings.add_hints(rule, id_, as_object(raw))
        elif rule.scope == "config" and loadout is None:
            findings.add_hints(rule, document)
    return findings.entries


def _hint_loadout(findings: Findings, facts: LoadoutFacts) -> None:
    """Apply the rules to a loadout. Consecutive rules with the same scope are applied subject by subject."""
    subjects: Mapping[str, list[tuple[object, ...]]] = {
        "loadout": [()],
        "socket": [(socket,) for socket in facts.sockets.values()],
        "loop": [(loop,) for loop in facts.loops],
    }
    for scope, rules in _BY_SCOPE:
        for subject in subjects.get(scope, ()):
            for rule in rules:
                findings.add_hints(rule, facts, *subject)


_BY_SCOPE: Final = [(scope, list(rules)) for scope, rules in groupby(RULES, key=attrgetter("scope"))]
