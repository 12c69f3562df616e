"""The updates of project context that a contract asks for, merged so that nothing else is lost (section 10)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeGuard

from materia_nb.errors import MateriaError
from materia_nb.handoff.jsontext import MAX_DEPTH, too_deep
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON

Kind: TypeAlias = Literal["text", "number", "flag"]


def merge(stored: JSON, update: JSON) -> JSON:
    """Return ``stored`` with ``update`` merged into it; both stay as they were, and parts are shared.

    Objects are merged key by key and keys are never removed. Lists are united. Anything
    else, null included, is replaced by the update.
    Raises MateriaError (kind ``too_deep``) for values nested too deeply to be walked.
    """
    if too_deep(stored) or too_deep(update):
        raise MateriaError(
            f"The values are nested more than {MAX_DEPTH} levels deep.",
            hint="keep an index of facts, no tree of that depth",
            kind="too_deep",
        )
    return _merged(stored, update)


def _merged(stored: JSON, update: JSON) -> JSON:
    if isinstance(stored, dict) and isinstance(update, dict):
        changed = {key: _merged(stored[key], new) if key in stored else new for key, new in update.items()}
        return {**stored, **changed}
    if isinstance(stored, list) and isinstance(update, list):
        return _united(stored, update)
    return update


def _united(stored: list[JSON], update: list[JSON]) -> list[JSON]:
    both = [*stored, *update]
    kinds = {_kind(item) for item in both}
    if len(kinds) == 1 and None not in kinds:
        return sorted(_distinct(both))
    if stored and update and _all_named(both):
        return _by_name(both)
    return _distinct(both)


def _kind(item: JSON) -> Kind | None:
    if isinstance(item, bool):
        return "flag"
    if isinstance(item, (int, float)):
        return "number"
    return "text" if isinstance(item, str) else None


def _all_named(items: Iterable[JSON]) -> TypeGuard[list[dict[str, JSON]]]:
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _by_name(items: list[dict[str, JSON]]) -> list[JSON]:
    """Merge the items of one name, in the order in which the names first appear."""
    found: dict[str, JSON] = {}
    for item in items:
        name = item["name"]
        found[name] = _merged(found[name], item) if name in found else item
    return list(found.values())


def _distinct(items: list[JSON]) -> list[JSON]:
    """Drop what equals an earlier item as JSON: true is not 1, and the order of keys does not count."""
    seen: dict[Hashable, JSON] = {}
    for item in items:
        seen.setdefault(_identity(item), item)
    return list(seen.values())


def _identity(item: JSON) -> Hashable:
    if isinstance(item, dict):
        return ("object", frozenset((key, _identity(child)) for key, child in item.items()))
    if isinstance(item, list):
        return ("list", tuple(_identity(child) for child in item))
    return (_kind(item), item)


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
