"""The updates of project context that a contract asks for (agent contract rules, section 10)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from materia_nb.handoff.contract.merge import merge
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON


class Entry(NamedTuple):
    """One update: the name of a contract, whatever it is, and what to merge into it."""

    contract: JSON
    payload: JSON


class Applied(NamedTuple):
    """What became of the updates.

    Attributes:
        document: the project context afterwards; the old one when nothing was applied.
        applied: the contracts that were updated, in order.
        rejected: the names that may not be written.
        issues: payloads that were refused; their sections are as they were.
        warnings: names that were refused.
    """

    document: Mapping[str, JSON]
    applied: tuple[str, ...]
    rejected: tuple[JSON, ...]
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


def entries(clause: JSON) -> list[Entry]:
    """Return the well-formed entries of ``update_contracts``; anything else is left out."""
    given = clause if isinstance(clause, list) else []
    return [
        Entry(entry["contract"], entry["payload"])
        for entry in given
        if isinstance(entry, dict) and "contract" in entry and "payload" in entry
    ]


def apply_updates(
    document: Mapping[str, JSON], clause: JSON, writable: Collection[str], agent: str = ""
) -> Applied:
    """Merge the entries of ``update_contracts`` into a project context document, in order.

    The old document is not changed: a caller that stores the new one in one go either has
    all of it or nothing. Entries are judged one by one, and a refused one stops no other.

    Args:
        document: the stored sections, by contract name.
        clause: the ``update_contracts`` of an accepted contract.
        writable: the names that the agent was given.
        agent: who asked, for the message.

    Raises MateriaError (kind ``too_deep``) as :func:`merge` does; then nothing is applied.
    """
    changed = dict(document)
    applied: list[str] = []
    names: list[JSON] = []
    issues: list[Issue] = []
    warnings: list[Issue] = []
    for place, (name, payload) in enumerate(entries(clause)):
        if not isinstance(name, str) or name not in writable:
            names.append(name)
            warnings.append(rejected(place, name, agent, writable))
        elif not isinstance(payload, dict):
            issues.append(bad_payload(place, name))
        else:
            changed[name] = merge(changed.get(name, {}), payload)
            applied.append(name)
    return Applied(
        changed if applied else document, tuple(applied), tuple(names), tuple(issues), tuple(warnings)
    )


def rejected(place: int, name: JSON, agent: str, writable: Collection[str]) -> Issue:
    """Return the warning about a contract that the agent may not write."""
    may = ", ".join(sorted(writable)) or "none"
    return Issue(
        f"$.update_contracts.{place}.contract",
        f"The agent {agent or 'of this turn'} may not write the contract {str(name)[:100]!r}.",
        f"it may write: {may}",
        f"UPDATE_CONTRACT_REJECTED:{str(name)[:200]}",
    )


def bad_payload(place: int, name: str) -> Issue:
    """Return the issue of a payload that is no object."""
    return Issue(
        f"$.update_contracts.{place}.payload",
        f"The payload for {name[:100]!r} is not an object.",
        "write the keys to add or change",
        f"UPDATE_CONTRACT_PAYLOAD:{name[:200]}",
    )
