"""Rules of the handoff formats that the runtime applies to outputs, in addition to the protocols.

The rules cover schedules of parallel work, approvals of commands, updates of the project's knowledge, and envelope
files.
"""

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
from materia_nb.jsonvalue import JSON, as_list, as_object, is_text, whole_number

# Schedules of parallel work

STREAM_NAME: Final = "<name>"
SCHEDULE_FORM: Final = f'{{"version": 1, "streams": [{{"name": "{STREAM_NAME}", "workItemIndexes": [<n>]}}]}}'
"""Placeholder for a schedule of parallel streams in a form."""
SCHEDULE_ADVICE: Final = (
    f"- {SCHEDULE}: put each item, by its index from 0, into exactly one stream. Streams run in parallel and cannot see "
    "one another. Put items that depend on one another or change the same files into one stream, in order. "
    "If in doubt, use fewer streams."
)
"""Instructions for a generator that must return a schedule of parallel streams."""
SCHEDULE_SHAPE: Final = closed_object(
    {
        "version": {"type": "integer", "enum": [1]},
        "streams": list_of(
            closed_object({"name": TEXT, "workItemIndexes": {"type": "array", "items": {"type": "integer"}}})
        ),
    }
)


class Stream(NamedTuple):
    """One stream of a schedule: its name, and the indexes of its work items in execution order."""

    name: str
    indexes: tuple[int, ...]


def streams_of(schedule: JSON) -> tuple[Stream, ...]:
    """Return the streams of a valid schedule."""
    streams = schedule["streams"] if isinstance(schedule, Mapping) else ()
    return tuple(Stream(stream["name"], tuple(int(index) for index in stream["workItemIndexes"])) for stream in streams)


def schedule_issues(output: Mapping[str, JSON]) -> Iterator[Issue]:
    """Yield the issues of an output's schedule, which must assign each of the output's work items to one stream."""
    path, schedule, items = f"$.{SCHEDULE}", output.get(SCHEDULE), output.get("workItems")
    if SCHEDULE not in output:
        message = f"{SCHEDULE} is missing: this socket divides its items into streams."
        yield Issue(path, message, f"add {SCHEDULE}")
        return
    if not isinstance(schedule, dict):
        yield Issue(path, f"{SCHEDULE} must be an object.", 'write {"version": 1, "streams": [...]}')
        return
    yield from _unknown_fields(path, schedule, ("version", "streams"))
    if whole_number(schedule.get("version")) != 1:
        yield Issue(f"{path}.version", "The version of a schedule must be 1.", "write 1")
    path, streams = f"{path}.streams", schedule.get("streams")
    if not isinstance(streams, list):
        yield Issue(path, "streams must be an array.", "put the streams into []")
        return
    count = len(items) if isinstance(items, list) else None
    path_by_name: dict[str, str] = {}
    path_by_index: dict[int, str] = {}
    for number, stream in enumerate(streams):
        stream_path = f"{path}.{number}"
        if not isinstance(stream, dict):
            fix = 'write {"name": "...", "workItemIndexes": [...]}'
            yield Issue(stream_path, "A stream must be an object.", fix)
            continue
        yield from _unknown_fields(stream_path, stream, ("name", "workItemIndexes"))
        yield from _name_issues(f"{stream_path}.name", stream.get("name"), path_by_name)
        indexes_path = f"{stream_path}.workItemIndexes"
        yield from _index_issues(indexes_path, stream.get("workItemIndexes"), count, path_by_index)
    unassigned = [index for index in range(count or 0) if index not in path_by_index]
    if unassigned:
        listed = ", ".join(map(str, unassigned[:8])) + (" and more" if len(unassigned) > 8 else "")
        message = f"The streams do not contain {counted(len(unassigned), 'work item')}: {listed}."
        yield Issue(path, message, "put each of these items into a stream")


def _unknown_fields(path: str, value: Mapping[str, JSON], names: tuple[str, str]) -> Iterator[Issue]:
    for name in value:
        if name not in names:
            yield Issue(f"{path}.{name}", f"Only {' and '.join(names)} are allowed in this object.", "remove the field")


def _name_issues(path: str, name: JSON, path_by_name: dict[str, str]) -> Iterator[Issue]:
    if not is_text(name):
        yield Issue(path, "The name of a stream must be a non-blank string.", "name the stream after its subject")
    elif (first := path_by_name.setdefault(name.strip(), path)) != path:
        yield Issue(path, f"The stream at {first} has the same name.", "give each stream its own name")


def _index_issues(path: str, indexes: JSON, count: int | None, path_by_index: dict[int, str]) -> Iterator[Issue]:
    if not isinstance(indexes, list):
        yield Issue(path, "workItemIndexes must be an array of whole numbers.", "write an array such as [0, 2]")
        return
    if not indexes:
        yield Issue(path, "The stream has no items.", "add the indexes of its items, or remove the stream")
    for number, value in enumerate(indexes):
        index_path, index = f"{path}.{number}", whole_number(value)
        if index is None:
            yield Issue(index_path, "An index must be a whole number.", "write the zero-based index of an item")
        elif index < 0 or (count is not None and index >= count):
            fix = f"use an index from 0 to {count - 1}" if count else "remove the streams, because workItems is empty"
            yield Issue(index_path, f"The item {index} does not exist.", fix)
        elif (first := path_by_index.setdefault(index, index_path)) != index_path:
            yield Issue(index_path, f"Item {index} is already listed at {first}.", "list each item once")


# Approvals of commands (agent contract rules, section 7). Callers pass the time, in seconds of one consistent clock.

_APPROVAL_SECONDS: Final = 60 * 60
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

_ApprovalStatus: TypeAlias = Literal["PENDING", "CONSUMED", "EXPIRED"]


def command_fingerprint(value: JSON) -> str:
    """Return the SHA-256 of a value as compact JSON with sorted keys, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval to run one exact command once, until it expires."""

    approval_id: str
    exact_content: str
    expires_at: float
    standing: _ApprovalStatus = "PENDING"

    @property
    def given_at(self) -> float:
        """The time when the approval was given, in seconds of the caller's clock."""
        return self.expires_at - _APPROVAL_SECONDS

    def use(self, command: str, now: float) -> tuple[bool, Approval]:
        """Return two values: True if ``command`` may run now, and the updated approval.

        A command that differs from the approved command in any character is refused. A refused command does not use up
        the approval.
        """
        approval = self.at(now)
        is_same = command_fingerprint(command) == command_fingerprint(approval.exact_content)
        if approval.standing != "PENDING" or not is_same:
            return False, approval
        return True, replace(approval, standing="CONSUMED")

    def at(self, now: float) -> Approval:
        """Return the approval with its status at the time ``now``; an unused approval may have expired."""
        is_over = self.standing == "PENDING" and now >= self.expires_at
        return replace(self, standing="EXPIRED") if is_over else self

    def as_json(self) -> dict[str, JSON]:
        """Return the approval as JSON, for prompts and the journal."""
        uses = 1 if self.standing == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A command that waits for approval, with an unchangeable copy of the agent's request."""

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    asked_at: float

    def approve(self, now: float) -> Approval | None:
        """Return an approval of the exact command, or None if the request is at least a day old."""
        if now >= self.asked_at + _PENDING_SECONDS:
            return None
        return Approval(self.approval_id, self.sealed["exact_content"], now + _APPROVAL_SECONDS)


def request_of(contract: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the approval request in a contract; empty if the contract has no request."""
    return as_object(contract.get("approval_request"))


def is_approval_id(value: JSON) -> bool:
    """Return True if the value is ``P-`` followed by 32 hexadecimal digits."""
    return isinstance(value, str) and _APPROVAL_ID.fullmatch(value) is not None


def can_be_approved(request: Mapping[str, JSON]) -> bool:
    """Return True if the request has an approval id and an exact command (R44).

    Any other request is a plan, to which a person responds with a direction.
    """
    return is_approval_id(request.get("approval_id")) and is_text(request.get("exact_content"))


def sealed_from(request: Mapping[str, JSON], now: float) -> ApprovalRequest:
    """Return an unchangeable copy of an approvable request (see :func:`can_be_approved`), with the time ``now``."""
    sealed = {name: request.get(name) for name in _SEALED} | {"rollback_hint": request.get("rollback")}
    if sealed["risk_level"] is not None:
        sealed["risk_level"] = str(sealed["risk_level"]).strip().upper()
    return ApprovalRequest(str(request.get("approval_id")), sealed, command_fingerprint(sealed), now)


def answer_note(approval: Approval | None) -> str:
    """Return a person's decision as text for the agent: the approved command, or a refusal."""
    reminder = "Report IN_PROGRESS before you report COMPLETE."
    if approval is None:
        return f"The command is not approved. Do not run it. {reminder}"
    return (
        f"Approved ({approval.approval_id}). Run exactly this command, once, within "
        f"{_APPROVAL_SECONDS // 60} minutes:\n{approval.exact_content}\n{reminder}"
    )


# Updates of the project's knowledge (agent contract rules, section 10)


def merged_context(stored: JSON, update: JSON) -> JSON:
    """Return ``stored`` merged with ``update``. The arguments are not changed, but the result shares parts with them.

    Objects are merged key by key; keys are never removed. Lists are combined without duplicates. Any other value,
    including null, is replaced by the value in the update.

    Raises:
        MateriaError: a value is nested too deeply (``too_deep``).
    """
    if too_deep(stored) or too_deep(update):
        raise MateriaError(
            f"The values are nested more than {MAX_DEPTH} levels deep.",
            hint="store a flat list of facts",
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
    items = [*stored, *update]
    kinds = {_kind(item) for item in items}
    if len(kinds) == 1 and None not in kinds:
        return sorted(_distinct(items))
    if stored and update and _all_named(items):
        return _merged_by_name(items)
    return _distinct(items)


def _kind(item: JSON) -> str | None:
    if isinstance(item, bool):
        return "flag"
    if isinstance(item, (int, float)):
        return "number"
    return "text" if isinstance(item, str) else None


def _all_named(items: Iterable[JSON]) -> TypeGuard[list[dict[str, JSON]]]:
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _merged_by_name(items: list[dict[str, JSON]]) -> list[JSON]:
    """Merge items with the same name, in the order in which the names first appear."""
    item_by_name: dict[str, JSON] = {}
    for item in items:
        name = item["name"]
        item_by_name[name] = _merged(item_by_name[name], item) if name in item_by_name else item
    return list(item_by_name.values())


def _distinct(items: list[JSON]) -> list[JSON]:
    """Return the items without duplicates.

    Items are compared as JSON: true differs from 1, and the key order is ignored.
    """
    item_by_identity: dict[Hashable, JSON] = {}
    for item in items:
        item_by_identity.setdefault(_identity(item), item)
    return list(item_by_identity.values())


def _identity(item: JSON) -> Hashable:
    if isinstance(item, dict):
        return ("object", frozenset((key, _identity(child)) for key, child in item.items()))
    if isinstance(item, list):
        return ("list", tuple(_identity(child) for child in item))
    return (_kind(item), item)


class ContextUpdate(NamedTuple):
    """An update of the project's knowledge: the name of a section (any JSON value), and the value to merge into it."""

    contract: JSON
    payload: JSON


class MergedUpdates(NamedTuple):
    """The result of applying updates to the project's knowledge.

    Attributes:
        document: the updated knowledge; the original object if no update was applied.
        applied: the updated sections, in order.
        rejected: names of sections that the agent may not write.
        issues: issues about refused payloads; the sections of these payloads stay unchanged.
        warnings: warnings about refused names.
    """

    document: Mapping[str, JSON]
    applied: tuple[str, ...]
    rejected: tuple[JSON, ...]
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


def update_entries(clause: JSON) -> list[ContextUpdate]:
    """Return the valid entries of ``update_contracts``; malformed entries are ignored."""
    return [
        ContextUpdate(entry["contract"], entry["payload"])
        for entry in as_list(clause)
        if isinstance(entry, dict) and "contract" in entry and "payload" in entry
    ]


def apply_updates(
    document: Mapping[str, JSON], clause: JSON, writable: Collection[str], agent: str = ""
) -> MergedUpdates:
    """Merge the entries of ``update_contracts`` into the project's knowledge, in order.

    ``document`` is not changed, so a caller that stores the result atomically applies
    all accepted updates or none. A refused entry does not affect other entries.

    Args:
        document: the stored sections, by name.
        clause: the ``update_contracts`` of an accepted contract.
        writable: names of the sections that the agent may write.
        agent: id of the agent, for the message.

    Raises:
        MateriaError: a value is nested too deeply (``too_deep``); then nothing is applied.
    """
    changed = dict(document)
    applied: list[str] = []
    names: list[JSON] = []
    issues: list[Issue] = []
    warnings: list[Issue] = []
    for index, (name, payload) in enumerate(update_entries(clause)):
        if not isinstance(name, str) or name not in writable:
            names.append(name)
            warnings.append(rejected(index, name, agent, writable))
        elif not isinstance(payload, dict):
            issues.append(issue_of("UPDATE_CONTRACT_PAYLOAD", name[:200], place=index, name=name[:100]))
        else:
            changed[name] = merged_context(changed.get(name, {}), payload)
            applied.append(name)
    return MergedUpdates(changed if applied else document, tuple(applied), tuple(names), tuple(issues), tuple(warnings))


def rejected(index: int, name: JSON, agent: str, writable: Collection[str]) -> Issue:
    """Return the warning about a section that the agent may not write."""
    allowed = ", ".join(sorted(writable)) or "nothing"
    values = {"place": index, "agent": agent or "of this turn", "name": str(name)[:100], "may": allowed}
    return issue_of("UPDATE_CONTRACT_REJECTED", str(name)[:200], **values)


# Files of envelopes (envelope rules, section 6)

MISSING_ENVELOPE: Final = issue_of("ENVELOPE_MISSING")
_MAX_PART_BYTES: Final = 200
"""Maximum length of one part of a file name, in bytes. A file name consists of two parts and a suffix."""


class EnvelopeFiles(NamedTuple):
    """The path of a step's envelope file, and the path of the draft file while the step is in progress."""

    final: str
    draft: str


def envelope_files(run_base: str, flow: str, step_id: str, agent_key: str) -> EnvelopeFiles:
    """Return ``<run_base>/<flow>/handoffs/<step_id>-<agent_key>.json`` and the path of its draft.

    Raises:
        MateriaError: a part could point to another folder, or the name could not be parsed again (``path_unsafe``, with
            ``PATH_UNSAFE:<field>`` as the location).
    """
    for field, part in (("flow", flow), ("step_id", step_id), ("agent_key", agent_key)):
        _require_safe(field, part)
    base = f"{run_base.rstrip('/')}/" if run_base.strip("/") else run_base[:1]
    stem = f"{base}{flow}/handoffs/{step_id}-{agent_key}"
    return EnvelopeFiles(f"{stem}.json", f"{stem}.draft.json")


def _require_safe(field: str, part: str) -> None:
    if not part.strip():
        raise _unsafe(field, part, "is empty")
    if any(mark in part for mark in "/\\") or ".." in part or part == ".":
        raise _unsafe(field, part, "leads to another folder")
    if not part.isprintable() or len(part.encode("utf-8", "replace")) > _MAX_PART_BYTES:
        raise _unsafe(field, part, "cannot be part of a file name")
    if field == "step_id" and "-" in part:
        raise _unsafe(field, part, "has a hyphen, which ends a step id in a file name")
    if field == "agent_key" and part.endswith(".draft"):
        raise _unsafe(field, part, "is reserved for drafts")


def _unsafe(field: str, part: str, reason: str) -> MateriaError:
    return MateriaError(
        f"The {field} {part[:80]!r} {reason}.",
        where=f"PATH_UNSAFE:{field}",
        hint="use letters, digits and _",
        kind="path_unsafe",
    )
