"""Checking a config: every problem at once, and hints apart from them (R26, R27)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.check_graph import check_loops, check_sockets
from materia_nb.loadout.facts import (
    LANE_UTILITIES,
    Facts,
    Object,
    as_object,
    is_object,
    is_parallel,
    placed_materia,
)
from materia_nb.loadout.report import INVALID_CONFIG, PARALLEL_GENERATION, Findings, Problem, Report, shown


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
    """Return what stops a cast, without the hints; arguments as in :func:`check_config`.

    The models are loaded here: pydantic is slow to import, and whoever loads no config needs none of it.
    """
    from materia_nb.loadout.check_fields import check_fields, check_materia
    from materia_nb.loadout.models import Config, Loadout

    findings = Findings()
    check_fields(findings, Config, document, itself="config")
    if not is_object(document):
        return findings.found
    _check_named(findings, document, loadout)
    loadouts = as_object(document.get("loadouts"))
    names = list(loadouts) if loadout is None else [loadout] if loadout in loadouts else []
    used: set[str] = set()
    for name in names:
        raw = loadouts[name]
        if not is_object(raw):
            check_fields(findings, Loadout, raw, f"loadouts.{name}")
            continue
        facts = Facts(name, raw, as_object(document.get("materia")))
        findings.loadout = name
        streams = _check_streams(findings, facts)
        if streams:  # its loops have another shape than ours
            raw = {field: value for field, value in raw.items() if field != "loops"}
        check_fields(findings, Loadout, raw)
        check_sockets(findings, facts)
        if not streams:
            check_loops(findings, facts)
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


def _check_named(findings: Findings, document: Object, loadout: str | None) -> None:
    """Note the name of a loadout that is not there."""
    loadouts = as_object(document.get("loadouts"))
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
