"""Checking a config: every problem at once, and hints apart from them (R26, R27)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.check_loops import check_loops
from materia_nb.loadout.check_materia import check_materia
from materia_nb.loadout.check_sockets import check_cast_context, check_sockets
from materia_nb.loadout.facts import (
    LANE_UTILITIES,
    Facts,
    Object,
    as_object,
    is_number,
    is_object,
    is_parallel,
    is_text,
    whole,
)
from materia_nb.loadout.report import INVALID_CONFIG, PARALLEL_GENERATION, Findings, Problem, Report, shown

LEAST_LIMITS = {"repairAttempts": 0, "maxNoAdvanceCycles": 0, "maxEdgeTraversals": 1}


def check_config(document: JSON, loadout: str | None = None) -> Report:
    """Check a config, or only one loadout of it with the materia that it uses.

    Never raises, whatever the document.

    Args:
        document: the config as JSON.
        loadout: the name of the loadout to check; None checks all of them and every materia.
    """
    from materia_nb.loadout.lint import find_hints

    return Report(tuple(find_problems(document, loadout)), tuple(find_hints(document, loadout)))


def find_problems(document: JSON, loadout: str | None = None) -> list[Problem]:
    """Return what stops a cast, without the hints; arguments as in :func:`check_config`."""
    findings = Findings()
    if not is_object(document):
        findings.problem(
            INVALID_CONFIG,
            "config",
            f"the config is {shown(document)}, not an object",
            'write {"loadouts": { ... }, "materia": { ... }}',
        )
        return findings.found
    _check_top(findings, document, loadout)
    loadouts = as_object(document.get("loadouts"))
    names = list(loadouts) if loadout is None else [loadout] if loadout in loadouts else []
    used: set[str] = set()
    for name in names:
        raw = loadouts[name]
        if not is_object(raw):
            findings.problem(
                INVALID_CONFIG,
                f"loadouts.{name}",
                f"the loadout {name!r} is {shown(raw)}, not an object",
                'write {"entry": "Socket-1", "sockets": { ... }}',
            )
            continue
        facts = Facts(name, raw, as_object(document.get("materia")))
        findings.loadout = name
        check_sockets(findings, facts)
        streams = _check_streams(findings, facts)
        if not streams:  # else its loops have another shape than ours
            check_loops(findings, facts)
        if "handoff" in raw and not is_text(raw["handoff"]):
            findings.problem(
                INVALID_CONFIG,
                "handoff",
                f"handoff is {shown(raw['handoff'])}",
                "write the name of a protocol",
            )
        check_cast_context(findings, INVALID_CONFIG, "castContext", raw)
        findings.loadout = None
        used.update(
            id_ for id_ in placed_materia(facts) if not (streams and _of_lanes(facts.materia.get(id_)))
        )
    for name, raw in as_object(document.get("materia")).items():
        if loadout is None or name in used:
            check_materia(findings, name, raw)
    return findings.found


def _check_streams(findings: Findings, facts: Facts) -> bool:
    """Note generators whose items go to streams side by side, which are not run here."""
    found = [id_ for id_ in facts.sockets if is_parallel(facts.materia_of(id_))]
    for id_ in found:
        findings.problem(
            PARALLEL_GENERATION,
            f"{id_}.materia",
            f"{id_!r} hands its work items to streams that run side by side, and Materia NB works on one item after another: "
            "it runs no schedule, no prelude of a stream and no workspaces",
            'place a generator without "parallel", with an edge into the loop',
        )
    return bool(found)


def _of_lanes(raw: JSON) -> bool:
    """Whether a materia is one of the utilities that only streams need."""
    return as_object(raw).get("utility") in LANE_UTILITIES


def placed_materia(facts: Facts) -> list[str]:
    """Return the ids of the materia that the sockets of a loadout name."""
    named = (socket.get("materia") for socket in facts.sockets.values())
    return [id_ for id_ in named if isinstance(id_, str)]


def _check_top(findings: Findings, document: Object, loadout: str | None) -> None:
    loadouts = document.get("loadouts")
    if not is_object(loadouts) or not loadouts:
        wrong = f"loadouts is {shown(loadouts)}" if "loadouts" in document else "the config has no loadouts"
        findings.problem(
            INVALID_CONFIG, "loadouts", wrong, 'write {"My loadout": {"entry": ..., "sockets": ...}}'
        )
        loadouts = {}
    if loadout is not None and loadouts and loadout not in loadouts:
        findings.problem(
            INVALID_CONFIG, "loadouts", f"there is no loadout {loadout!r}", findings.near(loadout, loadouts)
        )
    active = document.get("activeLoadout")
    named = loadout is None and active is not None and is_object(document.get("loadouts"))
    if named and not (isinstance(active, str) and active in loadouts):
        findings.problem(
            INVALID_CONFIG,
            "activeLoadout",
            f"there is no loadout {shown(active)}",
            findings.near(str(active), loadouts),
        )
    for field in ("materia", "limits", "budget"):
        value = document.get(field)
        if value is not None and not is_object(value):
            findings.problem(INVALID_CONFIG, field, f"{field} is {shown(value)}", "write an object: { ... }")
    check_cast_context(findings, INVALID_CONFIG, "castContext", document)
    directory = document.get("artifactDir")
    if directory is not None and (not is_text(directory) or "\0" in directory):
        findings.problem(
            INVALID_CONFIG,
            "artifactDir",
            f"artifactDir is {shown(directory)}",
            'write a path, such as ".pi/pi-materia"',
        )
    _check_bounds(findings, as_object(document.get("limits")), as_object(document.get("budget")))


def _check_bounds(findings: Findings, limits: Object, budget: Object) -> None:
    """Check the limits (R18, R19) and the budget (R20)."""
    for field, least in LEAST_LIMITS.items():
        number = whole(limits.get(field))
        if field in limits and (number is None or number < least):
            findings.problem(
                INVALID_CONFIG,
                f"limits.{field}",
                f"{field} is {shown(limits[field])}",
                f"write a whole number from {least} up, or leave it out",
            )
    most = budget.get("maxTokens")
    if most is not None and (whole(most) is None or most < 0):
        findings.problem(
            INVALID_CONFIG,
            "budget.maxTokens",
            f"maxTokens is {shown(most)}",
            "write a whole number of tokens from 0 up, or leave it out",
        )
    warn = budget.get("warnAtPercent")
    if warn is not None and (not is_number(warn) or warn < 0):
        findings.problem(
            INVALID_CONFIG,
            "budget.warnAtPercent",
            f"warnAtPercent is {shown(warn)}",
            "write a percentage, such as 75",
        )
