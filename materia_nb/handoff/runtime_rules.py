"""Rules that the runtime applies to the outputs of agents, in addition to the handoff protocols.

The rules cover schedules of parallel work, approvals of commands, updates of the project's knowledge, and the names of
envelope files.
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
from materia_nb.handoff.checks import SCHEDULE, TEXT_SCHEMA, closed_object, issue_of, list_of
from materia_nb.handoff.jsontext import MAX_DEPTH, is_too_deep
from materia_nb.jsonvalue import JSON, as_list, as_object, is_text, whole_number

# Schedules of parallel work

STREAM_NAME: Final = "<name>"
SCHEDULE_FORM: Final = f'{{"version": 1, "streams": [{{"name": "{STREAM_NAME}", "workItemIndexes": [<n>]}}]}}'
"""Template of a schedule in a form."""
SCHEDULE_ADVICE: Final = (
    f"- {SCHEDULE}: put the 0-based index of each item into exactly one stream. Streams run in parallel and cannot see "
    "one another. Put items that depend on one another or change the same files into one stream, in order. "
    "If in doubt, use fewer streams."
)
"""Instructions for a generator that assigns its work items to parallel streams."""
SCHEDULE_SHAPE: Final = closed_object(
    {
        "version": {"type": "integer", "enum": [1]},
        "streams": list_of(
            closed_object({"name": TEXT_SCHEMA, "workItemIndexes": {"type": "array", "items": {"type": "integer"}}})
        ),
    }
)


class Stream(NamedTuple):
    """A stream of a schedule: its name, and the indexes of its work items in execution order."""

    name: str
    indexes: tuple[int, ...]


def streams_of(schedule: JSON) -> tuple[Stream, ...]:
    """Return the streams of a valid schedule."""
    streams = schedule["streams"] if isinstance(schedule, Mapping) else ()
    return tuple(Stream(stream["name"], tuple(int(index) for index in stream["workItemIndexes"])) for stream in streams)


def schedule_issues(output: Mapping[str, JSON]) -> Iterator[Issue]:
    """Yield the issues of the schedule in an output; a schedule must assign each work item to exactly one stream."""
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
        listed_indexes = ", ".join(map(str, unassigned[:8])) + (" and more" if len(unassigned) > 8 else "")
        message = f"The streams do not contain {counted(len(unassigned), 'work item')}: {listed_indexes}."
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
_REQUEST_SECONDS: Final = 24 * 60 * 60
_SEALED_FIELDS: Final = ("operation", "exact_content", "scope", "risk_level", "rollback_hint", "rationale", "commands")
_APPROVAL_ID = re.compile(r"P-[0-9a-f]{32}")

_ApprovalStatus: TypeAlias = Literal["PENDING", "CONSUMED", "EXPIRED"]


def command_fingerprint(value: JSON) -> str:
    """Return the hexadecimal SHA-256 digest of a value, serialized as compact JSON with sorted keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's permission to run one exact command once, before a certain time.

    Attributes:
        approval_id: the id of the request that was approved.
        exact_content: the approved command.
        expires_at: the time at which the approval expires, in seconds of the caller's clock.
        status: the status of the approval.
    """

    approval_id: str
    exact_content: str
    expires_at: float
    status: _ApprovalStatus = "PENDING"

    @property
    def approved_at(self) -> float:
        """The time at which the person approved the command, in seconds of the caller's clock."""
        return self.expires_at - _APPROVAL_SECONDS

    def use(self, command: str, now: float) -> tuple[bool, Approval]:
        """Use the approval for a command that is about to run.

        A command that differs from the approved command in any character is refused. A refused command does not consume
        the approval.

        Returns:
            True if the command may run, and the updated approval.
        """
        approval = self.at(now)
        is_same_command = command_fingerprint(command) == command_fingerprint(approval.exact_content)
        if approval.status != "PENDING" or not is_same_command:
            return False, approval
        return True, replace(approval, status="CONSUMED")

    def at(self, now: float) -> Approval:
        """Return a copy of the approval with the status that it has at the time ``now``."""
        is_expired = self.status == "PENDING" and now >= self.expires_at
        return replace(self, status="EXPIRED") if is_expired else self

    def as_json(self) -> dict[str, JSON]:
        """Return the approval as JSON for prompts and for the journal."""
        uses = 1 if self.status == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """An agent's request for the approval of a command.

    Attributes:
        approval_id: the id that identifies the request.
        sealed: an immutable copy of the request.
        fingerprint: the digest of the copy.
        requested_at: the time of the request, in seconds of the caller's clock.
    """

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    requested_at: float

    def approve(self, now: float) -> Approval | None:
        """Approve the exact command that was requested; return None if the request is at least one day old."""
        if now >= self.requested_at + _REQUEST_SECONDS:
            return None
        return Approval(self.approval_id, self.sealed["exact_content"], now + _APPROVAL_SECONDS)


def request_of(contract: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the approval request in a contract, or an empty dict if the contract does not contain a request."""
    return as_object(contract.get("approval_request"))


def is_approval_id(value: JSON) -> bool:
    """Return True if the value is a string that consists of ``P-`` and 32 lowercase hexadecimal digits."""
    return isinstance(value, str) and _APPROVAL_ID.fullmatch(value) is not None


def can_be_approved(request: Mapping[str, JSON]) -> bool:
    """Return True if a request contains an approval id and an exact command (R44).

    Any other request is treated as a plan, and a person answers with a direction instead of an approval.
    """
    return is_approval_id(request.get("approval_id")) and is_text(request.get("exact_content"))


def seal_request(request: Mapping[str, JSON], now: float) -> ApprovalRequest:
    """Create an immutable copy of a request at the time ``now``; the request must satisfy :func:`can_be_approved`."""
    sealed_fields = {name: request.get(name) for name in _SEALED_FIELDS} | {"rollback_hint": request.get("rollback")}
    if sealed_fields["risk_level"] is not None:
        sealed_fields["risk_level"] = str(sealed_fields["risk_level"]).strip().upper()
    return ApprovalRequest(str(request.get("approval_id")), sealed_fields, command_fingerprint(sealed_fields), now)


def answer_note(approval: Approval | None) -> str:
    """Return the message that tells the agent whether a person approved the command; ``approval`` is None if not."""
    reminder = "Report IN_PROGRESS before you report COMPLETE."
    if approval is None:
        return f"The command is not approved. Do not run it. {reminder}"
    return (
        f"Approved ({approval.approval_id}). Run exactly this command, once, within "
        f"{_APPROVAL_SECONDS // 60} minutes:\n{approval.exact_content}\n{reminder}"
    )


# Updates of the project's knowledge (agent contract rules, section 10)


def merged_context(stored: JSON, update: JSON) -> JSON:
    """Merge an update into a stored value, and return the result without changing the arguments.

    Objects are merged key by key, and keys are never removed. Lists are concatenated, and duplicates are removed. Any
    other value is replaced by the value in the update, which may be null. The result shares parts with the arguments.

    Raises:
        MateriaError: a value is nested too deeply (``too_deep``).
    """
    if is_too_deep(stored) or is_too_deep(update):
        raise MateriaError(
            f"The values are nested more than {MAX_DEPTH} levels deep.",
            hint="store a flat list of facts",
            kind="too_deep",
        )
    return _merge(stored, update)


def _merge(stored: JSON, update: JSON) -> JSON:
    if isinstance(stored, dict) and isinstance(update, dict):
        changed_fields = {key: _merge(stored[key], new) if key in stored else new for key, new in update.items()}
        return {**stored, **changed_fields}
    if isinstance(stored, list) and isinstance(update, list):
        return _merge_lists(stored, update)
    return update


def _merge_lists(stored: list[JSON], update: list[JSON]) -> list[JSON]:
    items = [*stored, *update]
    kinds = {_scalar_kind(item) for item in items}
    if len(kinds) == 1 and None not in kinds:
        return sorted(_without_duplicates(items))
    if stored and update and _all_have_names(items):
        return _merge_by_name(items)
    return _without_duplicates(items)


def _scalar_kind(item: JSON) -> str | None:
    if isinstance(item, bool):
        return "flag"
    if isinstance(item, (int, float)):
        return "number"
    return "text" if isinstance(item, str) else None


def _all_have_names(items: Iterable[JSON]) -> TypeGuard[list[dict[str, JSON]]]:
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _merge_by_name(items: list[dict[str, JSON]]) -> list[JSON]:
    """Merge items that have the same name, and keep the order in which the names first appear."""
    item_by_name: dict[str, JSON] = {}
    for item in items:
        name = item["name"]
        item_by_name[name] = _merge(item_by_name[name], item) if name in item_by_name else item
    return list(item_by_name.values())


def _without_duplicates(items: list[JSON]) -> list[JSON]:
    """Return the items without duplicates, in their original order.

    Items are compared as JSON values, so true differs from 1, and the order of keys is ignored.
    """
    item_by_identity: dict[Hashable, JSON] = {}
    for item in items:
        item_by_identity.setdefault(_comparison_key(item), item)
    return list(item_by_identity.values())


def _comparison_key(item: JSON) -> Hashable:
    if isinstance(item, dict):
        return ("object", frozenset((key, _comparison_key(child)) for key, child in item.items()))
    if isinstance(item, list):
        return ("list", tuple(_comparison_key(child) for child in item))
    return (_scalar_kind(item), item)


class ContextUpdate(NamedTuple):
    """An update of the project's knowledge.

    Attributes:
        contract: the name of the section to update. An agent can write any JSON value here.
        payload: the value to merge into the section.
    """

    contract: JSON
    payload: JSON


class MergedUpdates(NamedTuple):
    """The result of applying updates to the project's knowledge.

    Attributes:
        document: the updated knowledge, or the original object if no update was applied.
        applied: the names of the updated sections, in order.
        rejected: the names of sections that the agent may not update.
        issues: issues about invalid payloads, which were not applied.
        warnings: warnings about the rejected names.
    """

    document: Mapping[str, JSON]
    applied: tuple[str, ...]
    rejected: tuple[JSON, ...]
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


def update_entries(clause: JSON) -> list[ContextUpdate]:
    """Return the entries of the field ``update_contracts``; malformed entries are ignored."""
    return [
        ContextUpdate(entry["contract"], entry["payload"])
        for entry in as_list(clause)
        if isinstance(entry, dict) and "contract" in entry and "payload" in entry
    ]


def apply_updates(
    document: Mapping[str, JSON], clause: JSON, writable: Collection[str], agent: str = ""
) -> MergedUpdates:
    """Merge the entries of ``update_contracts`` into the project's knowledge, in order.

    ``document`` is not changed, so a caller that stores the result atomically applies either all accepted updates or
    none of them. A refused entry does not affect other entries.

    Args:
        document: the stored sections, by name.
        clause: the value of ``update_contracts`` in an accepted contract.
        writable: the names of the sections that the agent may update.
        agent: the id of the agent for warnings; empty if it is unknown.

    Raises:
        MateriaError: a value is nested too deeply (``too_deep``). No update is applied in this case.
    """
    updated = dict(document)
    applied: list[str] = []
    names: list[JSON] = []
    issues: list[Issue] = []
    warnings: list[Issue] = []
    for index, (name, payload) in enumerate(update_entries(clause)):
        if not isinstance(name, str) or name not in writable:
            names.append(name)
            warnings.append(rejected_update(index, name, agent, writable))
        elif not isinstance(payload, dict):
            issues.append(issue_of("UPDATE_CONTRACT_PAYLOAD", name[:200], place=index, name=name[:100]))
        else:
            updated[name] = merged_context(updated.get(name, {}), payload)
            applied.append(name)
    return MergedUpdates(updated if applied else document, tuple(applied), tuple(names), tuple(issues), tuple(warnings))


def rejected_update(index: int, name: JSON, agent: str, writable: Collection[str]) -> Issue:
    """Return the warning about an update of a section that the agent may not update.

    Args:
        index: the index of the update in ``update_contracts``.
        name: the name of the section.
        agent: the id of the agent; empty if it is unknown.
        writable: the names of the sections that the agent may update.
    """
    allowed_names = ", ".join(sorted(writable)) or "nothing"
    values = {"place": index, "agent": agent or "of this turn", "name": str(name)[:100], "may": allowed_names}
    return issue_of("UPDATE_CONTRACT_REJECTED", str(name)[:200], **values)


# Files of envelopes (envelope rules, section 6)

MISSING_ENVELOPE: Final = issue_of("ENVELOPE_MISSING")
_MAX_PART_BYTES: Final = 200  # Maximum length of each of the two parts of an envelope's file name, in bytes.


class EnvelopeFiles(NamedTuple):
    """The paths of a step's envelope file: ``final`` for a completed step, and ``draft`` for a step in progress."""

    final: str
    draft: str


def envelope_files(run_base: str, flow: str, step_id: str, agent_key: str) -> EnvelopeFiles:
    """Return the paths of an envelope file and of its draft.

    The path of the envelope file is ``<run_base>/<flow>/handoffs/<step_id>-<agent_key>.json``.

    Raises:
        MateriaError: a part of the path is unsafe or ambiguous, for example because it leads to another folder
            (``path_unsafe``). The location of the error is ``PATH_UNSAFE:<field>``.
    """
    for field, part in (("flow", flow), ("step_id", step_id), ("agent_key", agent_key)):
        _require_safe(field, part)
    base = f"{run_base.rstrip('/')}/" if run_base.strip("/") else run_base[:1]
    stem = f"{base}{flow}/handoffs/{step_id}-{agent_key}"
    return EnvelopeFiles(f"{stem}.json", f"{stem}.draft.json")


def _require_safe(field: str, part: str) -> None:
    if not part.strip():
        raise _unsafe_path_error(field, part, "is empty")
    if any(separator in part for separator in "/\\") or ".." in part or part == ".":
        raise _unsafe_path_error(field, part, "leads to another folder")
    if not part.isprintable() or len(part.encode("utf-8", "replace")) > _MAX_PART_BYTES:
        raise _unsafe_path_error(field, part, "cannot be part of a file name")
    if field == "step_id" and "-" in part:
        raise _unsafe_path_error(field, part, "contains a hyphen, which marks the end of the step id in a file name")
    if field == "agent_key" and part.endswith(".draft"):
        raise _unsafe_path_error(field, part, "is reserved for drafts")


def _unsafe_path_error(field: str, part: str, reason: str) -> MateriaError:
    return MateriaError(
        f"The {field} {part[:80]!r} {reason}.",
        where=f"PATH_UNSAFE:{field}",
        hint="use letters, digits and _",
        kind="path_unsafe",
    )
