"""Problems of materia definitions (R25, R26, R38)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.check_fields import check_fields
from materia_nb.loadout.facts import LANE_UTILITIES, Object, is_object, materia_kind, replacement
from materia_nb.loadout.models_materia import AgentMateria, UtilityMateria
from materia_nb.loadout.report import INVALID_MATERIA, Findings, shown


def check_materia(findings: Findings, name: str, raw: JSON) -> None:
    """Note what is wrong with the definition of the materia ``name``."""
    here = f"materia.{name}"
    if is_object(raw) and _is_ambiguous(raw):
        findings.problem(
            INVALID_MATERIA,
            name,  # the source that the conformance vectors give
            f"the materia {name!r} has both a prompt and something to run, and does not say which it is",
            'write "type": "agent" or "type": "utility"',
        )
    utility = is_object(raw) and materia_kind(raw) == "utility"
    check_fields(findings, UtilityMateria if utility else AgentMateria, raw, here)
    if not is_object(raw):
        return
    if raw.get("parallel") is True and raw.get("generator") is not True:
        findings.problem(
            INVALID_MATERIA,
            f"{here}.parallel",
            f"materia {name!r} is parallel and no generator, so it has no items to hand to streams",
            'write "generator": true too, or remove parallel',
        )
    if utility and raw.get("command") is None and raw.get("script") is None:
        _nothing_to_run(findings, here, name, raw.get("utility"))


def _is_ambiguous(raw: Object) -> bool:
    """Whether it could be an agent as well as a utility: no program may start for want of a field (R38)."""
    runs = raw.get("command") is not None or raw.get("script") is not None
    return raw.get("type") is None and raw.get("prompt") is not None and runs


def _nothing_to_run(findings: Findings, here: str, name: str, alias: JSON) -> None:
    findings.problem(
        INVALID_MATERIA,
        f"{here}.command" if alias is None else f"{here}.utility",
        f"the utility {name!r} has nothing to run"
        + ("" if alias is None else f": {shown(alias)} is built into another engine"),
        _instead(alias)
        or 'write "command": ["program", "argument", ...] or "script": {"kind": "shippedUtility", "name": "....py"}',
    )


def _instead(alias: JSON) -> str | None:
    """Say what to write in place of a utility that is built into the reference engine."""
    if alias in LANE_UTILITIES:
        return "it belongs to streams side by side, which are not run here: remove the materia"
    now = replacement(alias)
    return f"place the bundled materia {now} in its stead" if now else None
