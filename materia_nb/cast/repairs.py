"""Kinds of failures of a cast, and the actions that the user can take after each kind.

The panel, the status text and the documentation all use these tables, so that they offer the same actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.cast.formatting import FAILURES, OTHER_FAILURE
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine import approvals
from materia_nb.engine.item_edits import IN_PROGRESS
from materia_nb.engine.session import lanes_at_work
from materia_nb.engine.state import Failure
from materia_nb.file_io import read_package_toml
from materia_nb.handoff.base import BASE
from materia_nb.jsonvalue import JSON, MISSING, equal_json, pretty
from materia_nb.utilities.utility_step import with_absolute_paths


class RepairAction(NamedTuple):
    """An action that the user can take after a failure.

    Attributes:
        name: the name of the action in ``repairs.toml``.
        label: the label of its button in the panel.
        does: a description of its effect.
        verbs: the equivalent magic commands.
        when: a description of the condition under which it is offered.
    """

    name: str
    label: str
    does: str
    verbs: str
    when: str


class FailureKind(NamedTuple):
    """A kind of failure.

    Attributes:
        description: a verb phrase that follows the name of the socket, such as ``took too long``.
        acts: the names of the actions to offer, most likely first.
        note: an explanation of why an expected action is missing; "" if no action is missing.
    """

    description: str
    acts: tuple[str, ...]
    note: str = ""


_REPAIR_TABLES: Final = read_package_toml(__file__, "repairs.toml")

ACTIONS: Final = {name: RepairAction(name, **row) for name, row in _REPAIR_TABLES["acts"].items()}
"""All actions, by name, in the default order. A kind of failure can define another order."""


def _failure_kind(description: str, acts: str | list[str], note: str = "") -> FailureKind:
    return FailureKind(description, tuple(_REPAIR_TABLES["groups"][acts] if isinstance(acts, str) else acts), note)


FAILURE_KINDS: Final = {name: _failure_kind(**row) for name, row in FAILURES.items()}
"""All known kinds of failures, by name. A third-party agent can fail with a kind that is not in this table."""

OTHER: Final = FAILURE_KINDS[OTHER_FAILURE]
"""The description and the actions for kinds of failures that are not in the table."""


CHANGEABLE: Final = frozenset({"command", "description", "model", "params", "script", "thinking", "timeoutMs", "tools"})
"""Fields of a materia that can be changed while a cast runs, because no routing decision depends on them."""


class Redefinition(NamedTuple):
    """The differences between two definitions of a materia.

    Attributes:
        materia: the id of the materia.
        old: the definition in the cast.
        new: the current definition in the workbench.
        fixed_fields: the changed fields that earlier steps of the cast depend on; if there are any, the cast cannot use
            the new definition.
    """

    materia: str
    old: Mapping[str, JSON]
    new: Mapping[str, JSON]
    fixed_fields: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The changed lines of the JSON definition with some context, each prefixed with ``+``, ``-`` or a space."""
        changed_lines: list[tuple[str, str]] = []
        for key in _differing_fields(self.old, self.new):
            diff = ndiff(_field_lines(key, self.old), _field_lines(key, self.new))
            lines = [(line[0], line[2:]) for line in diff if line[0] != "?"]
            context_indexes = {index + by for index, (sign, _) in enumerate(lines) if sign != " " for by in (-1, 0, 1)}
            changed_lines += [line for index, line in enumerate(lines) if index in context_indexes or index == 0]
        return changed_lines


def _field_lines(key: str, definition: Mapping[str, JSON]) -> list[str]:
    return pretty({key: definition[key]}).splitlines()[1:-1] if key in definition else []


def _differing_fields(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> list[str]:
    """Return the names of the fields in which two definitions differ, in the order of the new definition."""
    keys = dict.fromkeys((*new, *old))
    return [key for key in keys if not equal_json(old.get(key, MISSING), new.get(key, MISSING))]


def redefinition(
    old: Mapping[str, JSON], new: Mapping[str, JSON], materia: str, owner: Path | None
) -> Redefinition | None:
    """Return the differences between two definitions of a materia, or None if they are equal.

    Args:
        old: the definition in the cast.
        new: the definition in a config file.
        materia: the id of the materia.
        owner: the directory of the config file, to which relative paths in ``new`` refer.
    """
    changed_fields = _differing_fields(old, new)
    if not changed_fields or equal_json(dict(old), with_absolute_paths(new, owner)):
        return None
    return Redefinition(materia, old, new, tuple(sorted({*changed_fields} - CHANGEABLE)))


def changed_definition(cast: Snapshot) -> Redefinition | None:
    """Return the differences between two definitions of the materia at which a cast stopped.

    The definition in the cast is compared with the current definition in the workbench. Return None if the definitions
    are equal, or if one of them is not available.
    """
    socket = cast.graph.sockets.get(cast.failure.socket or "") if cast.failure is not None else None
    definitions = cast.live.definitions
    if socket is None or definitions is None:
        return None
    id_ = socket.materia.id
    known, owners = definitions()
    old, new = cast.graph.document.get("materia", {}).get(id_), known.get(id_)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    return redefinition(old, new, id_, owners.get(id_))


def offered_actions(cast: Snapshot, changed: Redefinition | None = None) -> list[RepairAction]:
    """Return the actions to offer for a failed or aborted cast, most likely first, with their placeholders filled in.

    Args:
        cast: a snapshot of the cast.
        changed: the differences in the definition of the failed materia; see :func:`changed_definition`.
    """
    failure = cast.failure
    if failure is None:
        return []
    socket = cast.graph.sockets.get(failure.socket or "")
    values = {
        "materia": socket.materia.id if socket else "",
        "socket": socket.id if socket else "",
        "folders": ", ".join(requested_folders(cast)),
        "more": _extension_text(failure),
        "before": str(len(cast.steps) - 1),
    }
    acts = [ACTIONS[name] for name in FAILURE_KINDS.get(failure.kind, OTHER).acts if _is_offered(cast, name, changed)]
    if lanes_at_work(cast.session) is not None:
        lanes = ACTIONS["retry"]._replace(does="continue the lanes that were not accepted")
        acts = [lanes if act.name == "retry" else act for act in acts]
    return [RepairAction(*(text.format(**values) for text in act)) for act in acts]


def requested_folders(cast: Snapshot) -> list[str]:
    """Return the directories outside the project for which a cast requests approval, formatted as arguments of ``allow`` (P8)."""
    base = cast.run_dir / cast.session.folder if cast.session.folder else cast.project
    asks = [
        engine
        for engine in (snapshot.engine for snapshot in _stopped_snapshots(cast))
        if engine.failure is not None and engine.failure.kind == "folder_asks" and engine.scope != BASE
    ]
    return list(dict.fromkeys(f"{approvals.FOLDER_PREFIX}{base / engine.scope.cwd}" for engine in asks))


def _stopped_snapshots(cast: Snapshot) -> list[Snapshot]:
    """Return the snapshots of the cast and of its failed lanes."""
    return [cast, *(lane.now for lane in cast.lanes.values() if lane.status == "failed")]


def _extension_text(failure: Failure) -> str:
    """Describe the extra turns or traversals that are allowed if the cast continues past a limit (R18, R19)."""
    if failure.allow is not None:
        return f"{failure.allow[1]} more allowed"
    return "one more attempt" if failure.kind == "repair_exhausted" else "the limit raised once"


def _answered_last(cast: Snapshot) -> bool:
    """Return True if a limit stopped the cast after its last socket had already answered."""
    failure = cast.failure
    return bool(cast.steps and failure and failure.blocked and failure.socket == cast.steps[-1].socket)


def _is_offered(cast: Snapshot, name: str, changed: Redefinition | None) -> bool:
    if lanes_at_work(cast.session) is not None and name in ("correct", "ask_again", "skip_item"):
        return False  # the lanes started from the values that these actions would change
    snapshots = _stopped_snapshots(cast)
    was_interrupted = cast.interrupted_prompt is not None
    conditions: dict[str, bool] = {
        "apply_changes": changed is not None and not changed.fixed_fields,
        "retry_turn": was_interrupted,
        "edit_prompt": was_interrupted,
        "budget": cast.budget_used_up,
        "retry_limit": any(snapshot.at_limit for snapshot in snapshots) and not cast.budget_used_up,
        "allow_folder": bool(requested_folders(cast)),
        "ask_again": _answered_last(cast),
        "correct": bool(cast.steps) and bool(cast.steps[-1].turns),
        **dict.fromkeys(("answer", "pin", "skip"), cast.is_unanswered),
        "skip_item": IN_PROGRESS in cast.item_statuses,
    }
    return conditions.get(name, True)
