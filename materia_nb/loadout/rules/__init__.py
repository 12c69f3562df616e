"""Rules that yield hints about probable mistakes in a valid config. Hints do not prevent a cast."""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import JSON, as_object, is_object
from materia_nb.loadout.check_fields import FIELD_HINTS, hint_fields
from materia_nb.loadout.report import MISSING_COMMAND, Findings, HintRule, Problem
from materia_nb.loadout.rules import edge_rules, socket_rules
from materia_nb.loadout.topology import cached_per_config, loadout_facts, parts_to_check

RULES: Final[tuple[HintRule, ...]] = (*socket_rules.SOCKET_RULES, *edge_rules.EDGE_RULES)
HINT_CODES: Final = {**FIELD_HINTS, MISSING_COMMAND: "A utility whose program or script is missing on this machine"}
"""Description of each hint code."""
for _rule in RULES:
    HINT_CODES.setdefault(_rule.code, _rule.about)


@cached_per_config
def find_hints(document: JSON, loadout: str | None) -> list[Problem]:
    """Return the hints about a config, or about one loadout and its materia.

    This function never raises, even if the config is malformed.
    """
    findings = Findings()
    if not is_object(document):
        return findings.entries
    hint_fields(findings, document, loadout)
    names, materia = parts_to_check(document, loadout)
    for name in names:
        findings.loadout = name
        findings.add_hints(RULES, loadout_facts(document, name).subjects)
        findings.loadout = None
    shared = [(id_, as_object(raw)) for id_, raw in materia.items()]
    findings.add_hints(RULES, {"materia": shared, "config": [(document,)] if loadout is None else []})
    return findings.entries
