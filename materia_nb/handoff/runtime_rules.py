"""Rules of the handoff formats that the runtime applies: approvals, schedules, names of envelope files, merged knowledge."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, TypeGuard

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.base import Issue
from materia_nb.handoff.checks import SCHEDULE, TEXT, closed_object, issue_of, list_of
from materia_nb.handoff.jsontext import MAX_DEPTH, too_deep
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import whole

MISSING_ENVELOPE: Final = issue_of("ENVELOPE_MISSING")
_FINAL: Final = ".json"
_DRAFT: Final = ".draft.json"
_MOST_BYTES: Final = 200
"""How long a part may be: two of them and the ending fit into one file name."""


class Names(NamedTuple):
    """The paths of one step's envelope, and of its draft while the step is worked on."""

    final: str
    draft: str


class _Step(NamedTuple):
    """What a file name says: the step, the agent, and whether it is a draft."""

    step_id: str
    agent_key: str
    draft: bool


class Lookup(NamedTuple):
    """The path of an envelope, or why there is none."""

    path: str | None
    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()


def names(run_base: str, flow: str, step_id: str, agent_key: str) -> Names:
    """Return ``<run_base>/<flow>/handoffs/<step_id>-<agent_key>.json`` and the name of its draft.

    Raises MateriaError (kind ``path_unsafe``, where ``PATH_UNSAFE:<field>``) for a part that
    could lead elsewhere or could not be read back.
    """
    for what, part in (("flow", flow), ("step_id", step_id), ("agent_key", agent_key)):
        _require(what, part)
    base = f"{run_base.rstrip('/')}/" if run_base.strip("/") else run_base[:1]
    stem = f"{base}{flow}/handoffs/{step_id}-{agent_key}"
    return Names(stem + _FINAL, stem + _DRAFT)


def parse_name(filename: str) -> _Step:
    """Read a file name: the first hyphen ends the step id, which has none.

    Raises MateriaError (kind ``path_unsafe``) for a name that :func:`names` cannot have made.
    """
    stem = filename.removesuffix(_DRAFT)
    draft = stem != filename
    stem = stem if draft else filename.removesuffix(_FINAL)
    if stem == filename:
        raise _unsafe("filename", filename, "does not end with .json")
    step_id, _, agent_key = stem.partition("-")
    _require("step_id", step_id)
    _require("agent_key", agent_key)
    return _Step(step_id, agent_key, draft)


def look_for(files: Collection[str], flow: str, step_id: str, agent_key: str, run_base: str = "") -> Lookup:
    """Find a step's envelope among ``files``; a draft alone is a turn that is not finished."""
    final, draft = names(run_base, flow, step_id, agent_key)
    if final in files:
        return Lookup(final)
    if draft not in files:
        return Lookup(None, (MISSING_ENVELOPE,))
    return Lookup(None, (MISSING_ENVELOPE,), (issue_of("DRAFT_PRESENT"),))


def _require(field: str, part: str) -> None:
    why = _why_unsafe(field, part)
    if why:
        raise _unsafe(field, part, why)


def _why_unsafe(field: str, part: str) -> str | None:
    if not part.strip():
        return "is empty"
    if any(mark in part for mark in "/\\") or ".." in part or part == ".":
        return "leads to another folder"
    if not part.isprintable() or len(part.encode("utf-8", "replace")) > _MOST_BYTES:
        return "cannot be part of a file name"
    if field == "step_id" and "-" in part:
        return "has a hyphen, which ends a step id in a file name"
    if field == "agent_key" and part.endswith(".draft"):
        return "would name a draft"
    return None


def _unsafe(field: str, part: str, why: str) -> MateriaError:
    return MateriaError(
        f"The {field} {part[:80]!r} {why}.",
        where=f"PATH_UNSAFE:{field}",
        hint="use letters, digits and _",
        kind="path_unsafe",
    )


_GRANT_SECONDS: Final = 60 * 60
_PENDING_SECONDS: Final = 24 * 60 * 60
_SEALED: Final = (
    "operation",
    "exact_content",
    "scope",
    "risk_level",
    "rollback_hint",
    "rationale",
    "commands",
)
_APPROVAL_ID = re.compile(r"P-[0-9a-f]{32}")
_GrantStanding: TypeAlias = Literal["PENDING", "CONSUMED", "EXPIRED"]


def command_fingerprint(value: JSON) -> str:
    """Return the SHA-256 of a value as compact JSON with sorted keys, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to run one exact command once, until it expires."""

    approval_id: str
    exact_content: str
    expires_at: float
    standing: _GrantStanding = "PENDING"

    @property
    def given_at(self) -> float:
        """The time of the consent, in seconds since the epoch."""
        return self.expires_at - _GRANT_SECONDS

    def use(self, command: str, now: float) -> tuple[bool, Grant]:
        """Say whether ``command`` may run now, and return the grant as it is afterwards.

        A command that differs in any character is not what was consented to; it is refused
        and the grant stays as it is.
        """
        grant = self.at(now)
        if grant.standing != "PENDING" or command_fingerprint(command) != command_fingerprint(
            grant.exact_content
        ):
            return False, grant
        return True, replace(grant, standing="CONSUMED")

    def at(self, now: float) -> Grant:
        """Return the grant at a time: expired when it was not used by then."""
        over = self.standing == "PENDING" and now >= self.expires_at
        return replace(self, standing="EXPIRED") if over else self

    def as_json(self) -> dict[str, JSON]:
        """Return what the agent and the journal are told of the grant."""
        uses = 1 if self.standing == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class Approval:
    """A command that was held back, sealed as it was tried."""

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    asked_at: float

    def grant(self, now: float) -> Grant | None:
        """Consent to the exact command; None when nobody answered within a day."""
        if now >= self.asked_at + _PENDING_SECONDS:
            return None
        return Grant(self.approval_id, self.sealed["exact_content"], now + _GRANT_SECONDS)


def request_of(contract: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the approval request of a contract; empty when it has none."""
    found = contract.get("approval_request")
    return found if isinstance(found, dict) else {}


def is_approval_id(value: JSON) -> bool:
    """Whether a value has the form of an approval id: ``P-`` and 32 hexadecimal digits."""
    return isinstance(value, str) and _APPROVAL_ID.fullmatch(value) is not None


def can_be_granted(request: Mapping[str, JSON]) -> bool:
    """Whether a person can consent to the request: it has an approval id and an exact command (R44).

    Any other request is a plan, which a person gives a direction for.
    """
    command = request.get("exact_content")
    return is_approval_id(request.get("approval_id")) and isinstance(command, str) and bool(command.strip())


def sealed_from(request: Mapping[str, JSON], now: float) -> Approval:
    """Seal what an agent asks for, which :func:`can_be_granted`, at the time when it was held back."""
    sealed = {name: request.get(name) for name in _SEALED} | {"rollback_hint": request.get("rollback")}
    if sealed["risk_level"] is not None:
        sealed["risk_level"] = str(sealed["risk_level"]).strip().upper()
    return Approval(str(request.get("approval_id")), sealed, command_fingerprint(sealed), now)


def answer_note(grant: Grant | None) -> str:
    """Return what the resumed agent is told: the one command that it may run now, or that there is none."""
    tail = "Report IN_PROGRESS before you report COMPLETE."
    if grant is None:
        return f"No consent was given. Do not run the command. {tail}"
    return (
        f"Consent was given ({grant.approval_id}) to run exactly this command once, within "
        f"{_GRANT_SECONDS // 60} minutes:\n{grant.exact_content}\n{tail}"
    )


STREAM_NAME: Final = "<name>"
SCHEDULE_FORM: Final = f'{{"version": 1, "streams": [{{"name": "{STREAM_NAME}", "workItemIndexes": [<n>]}}]}}'
"""What stands in the form of an answer in the place of a schedule."""
GOOD_SCHEDULE: Final = (
    f"- {SCHEDULE}: each item, by index from 0, in exactly one stream. Streams run side by side and see nothing of one another, so items that "
    "depend on one another or touch the same files go into one stream, in order; rather fewer streams than unsafe ones"
)
"""What a generator is told of schedules."""
SCHEDULE_SHAPE: Final = closed_object(
    {
        "version": {"type": "integer", "enum": [1]},
        "streams": list_of(
            closed_object({"name": TEXT, "workItemIndexes": {"type": "array", "items": {"type": "integer"}}})
        ),
    }
)
_NAMED: Final = 8


class Stream(NamedTuple):
    """One stream of a schedule: its name, and the indexes of its items in the order in which they are worked on."""

    name: str
    indexes: tuple[int, ...]


def streams_of(schedule: JSON) -> tuple[Stream, ...]:
    """Read a schedule that has no issues."""
    streams = schedule["streams"] if isinstance(schedule, Mapping) else ()
    return tuple(
        Stream(one["name"], tuple(int(index) for index in one["workItemIndexes"])) for one in streams
    )


def schedule_issues(output: Mapping[str, JSON]) -> Iterator[Issue]:
    """Check the schedule of an output for its work items; all that is wrong, each at its path."""
    path, schedule, items = f"$.{SCHEDULE}", output.get(SCHEDULE), output.get("workItems")
    if SCHEDULE not in output:
        yield Issue(
            path, f"{SCHEDULE} is missing: this socket hands its items to streams.", "add it as asked for"
        )
        return
    if not isinstance(schedule, dict):
        yield Issue(path, f"{SCHEDULE} must be an object.", 'write {"version": 1, "streams": [...]}')
        return
    yield from _others(path, schedule, ("version", "streams"))
    if whole(schedule.get("version")) != 1:
        yield Issue(f"{path}.version", "The version of a schedule is 1.", "write 1")
    path, streams = f"{path}.streams", schedule.get("streams")
    if not isinstance(streams, list):
        yield Issue(path, "streams must be an array.", "write [] around the streams")
        return
    count = len(items) if isinstance(items, list) else None
    names: dict[str, str] = {}
    places: dict[int, str] = {}
    for number, stream in enumerate(streams):
        here = f"{path}.{number}"
        if not isinstance(stream, dict):
            yield Issue(
                here, "A stream must be an object.", 'write {"name": "...", "workItemIndexes": [...]}'
            )
            continue
        yield from _others(here, stream, ("name", "workItemIndexes"))
        yield from _name_issues(f"{here}.name", stream.get("name"), names)
        yield from _index_issues(f"{here}.workItemIndexes", stream.get("workItemIndexes"), count, places)
    left = [index for index in range(count or 0) if index not in places]
    if left:
        known = ", ".join(map(str, left[:_NAMED])) + (" and more" if len(left) > _NAMED else "")
        message = f"{counted(len(left), 'item')} of workItems in no stream: {known}."
        yield Issue(path, message, "put each into the stream where it belongs")


def _others(path: str, given: Mapping[str, JSON], names: tuple[str, str]) -> Iterator[Issue]:
    for name in given:
        if name not in names:
            fix = "leave it out; what a stream is about goes into its name"
            yield Issue(f"{path}.{name}", f"There are {' and '.join(names)} here and no other field.", fix)


def _name_issues(path: str, name: JSON, names: dict[str, str]) -> Iterator[Issue]:
    if not isinstance(name, str) or not name.strip():
        yield Issue(path, "The name of a stream must be a string that is not blank.", "say what it is about")
    elif (first := names.setdefault(name.strip(), path)) != path:
        yield Issue(path, f"This is the name at {first} too.", "give each stream a name of its own")


def _index_issues(path: str, indexes: JSON, count: int | None, places: dict[int, str]) -> Iterator[Issue]:
    if not isinstance(indexes, list):
        yield Issue(path, "workItemIndexes must be an array of whole numbers.", "write such as [0, 2]")
        return
    if not indexes:
        yield Issue(path, "A stream works on at least one item.", "name its items, or leave the stream out")
    for place, given in enumerate(indexes):
        here, index = f"{path}.{place}", whole(given)
        if index is None:
            yield Issue(here, "An index must be a whole number.", "write the place of an item, from 0")
        elif index < 0 or (count is not None and index >= count):
            fix = (
                f"the last of workItems is {count - 1}"
                if count
                else "there are no workItems: leave the streams out"
            )
            yield Issue(here, f"There is no item {index}.", fix)
        elif (first := places.setdefault(index, here)) != here:
            yield Issue(here, f"Item {index} stands at {first} already.", "name each item once")


def merged_context(stored: JSON, update: JSON) -> JSON:
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


def _kind(item: JSON) -> str | None:
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


class ContextUpdate(NamedTuple):
    """One update: the name of a contract, whatever it is, and what to merge into it."""

    contract: JSON
    payload: JSON


class MergedUpdates(NamedTuple):
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


def update_entries(clause: JSON) -> list[ContextUpdate]:
    """Return the well-formed entries of ``update_contracts``; anything else is left out."""
    given = clause if isinstance(clause, list) else []
    return [
        ContextUpdate(entry["contract"], entry["payload"])
        for entry in given
        if isinstance(entry, dict) and "contract" in entry and "payload" in entry
    ]


def apply_updates(
    document: Mapping[str, JSON], clause: JSON, writable: Collection[str], agent: str = ""
) -> MergedUpdates:
    """Merge the entries of ``update_contracts`` into a project context document, in order.

    The old document is not changed: a caller that stores the new one in one go either has
    all of it or nothing. Entries are judged one by one, and a refused one stops no other.

    Args:
        document: the stored sections, by contract name.
        clause: the ``update_contracts`` of an accepted contract.
        writable: the names that the agent was given.
        agent: who asked, for the message.

    Raises MateriaError (kind ``too_deep``) as :func:`merged_context` does; then nothing is applied.
    """
    changed = dict(document)
    applied: list[str] = []
    names: list[JSON] = []
    issues: list[Issue] = []
    warnings: list[Issue] = []
    for place, (name, payload) in enumerate(update_entries(clause)):
        if not isinstance(name, str) or name not in writable:
            names.append(name)
            warnings.append(rejected(place, name, agent, writable))
        elif not isinstance(payload, dict):
            issues.append(issue_of("UPDATE_CONTRACT_PAYLOAD", name[:200], place=place, name=name[:100]))
        else:
            changed[name] = merged_context(changed.get(name, {}), payload)
            applied.append(name)
    return MergedUpdates(
        changed if applied else document, tuple(applied), tuple(names), tuple(issues), tuple(warnings)
    )


def rejected(place: int, name: JSON, agent: str, writable: Collection[str]) -> Issue:
    """Return the warning about a contract that the agent may not write."""
    who, what, may = agent or "of this turn", str(name), ", ".join(sorted(writable)) or "none"
    return issue_of("UPDATE_CONTRACT_REJECTED", what[:200], place=place, agent=who, name=what[:100], may=may)
