"""What can be done where a cast failed: one table of the kinds of failure, and of the acts that each offers.

The panel, the text of a status and the documentation are made from it, so that each names the same acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.cast.formatting import FAILURES, OTHER_FAILURE
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine import approvals
from materia_nb.engine.item_edits import WORKED_ON
from materia_nb.engine.session import lanes_at_work
from materia_nb.engine.state import Failure
from materia_nb.file_io import read_package_toml
from materia_nb.handoff.base import BASE
from materia_nb.jsonvalue import JSON, MISSING, pretty, same
from materia_nb.utilities.utility_step import with_absolute_paths


class Act(NamedTuple):
    """One way on: its words on a button, what it does, the verbs that do it, and where it is to be had."""

    words: str
    does: str
    verbs: str
    when: str


class FailureKind(NamedTuple):
    """A kind of failure: what happened, in words, as a headline goes on behind a name; and its acts, the likeliest first.

    ``note`` says why an act that one would look for is not among them.
    """

    words: str
    acts: tuple[str, ...]
    note: str = ""


_TABLES: Final = read_package_toml(__file__, "repairs.toml")

ACTS: Final = {name: Act(**row) for name, row in _TABLES["acts"].items()}
"""Every way on, in the order in which they are offered where a kind has no other."""


def _kind_of(words: str, acts: str | list[str], note: str = "") -> FailureKind:
    return FailureKind(words, tuple(_TABLES["groups"][acts] if isinstance(acts, str) else acts), note)


FAILURE_KINDS: Final = {name: _kind_of(**row) for name, row in FAILURES.items()}
"""Every kind of failure of ours, and how it is mended. An agent of other people may fail with one of its own."""

OTHER: Final = FAILURE_KINDS[OTHER_FAILURE]
"""What is offered for a kind that is not ours."""


REDEFINED: Final = frozenset({"command", "description", "model", "params", "script", "thinking", "timeoutMs", "tools"})
"""The fields of a materia that may change in a running cast: what is run or asked, nothing that decides."""


class Redefinition(NamedTuple):
    """How the definition that a workbench has of a materia differs from the copy of a cast.

    ``old`` and ``new`` are both whole; ``kept`` are the fields that earlier steps of the cast went by, for which it
    cannot be taken.
    """

    materia: str
    old: Mapping[str, JSON]
    new: Mapping[str, JSON]
    kept: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The fields that differ, written as JSON: each line behind ``+``, ``-`` or a blank; what is far from a change is left out."""
        changed: list[tuple[str, str]] = []
        for key in _differing(self.old, self.new):
            compared = ndiff(_field(key, self.old), _field(key, self.new))
            lines = [(line[0], line[2:]) for line in compared if line[0] != "?"]
            near = {at + by for at, (sign, _) in enumerate(lines) if sign != " " for by in (-1, 0, 1)}
            changed += [line for at, line in enumerate(lines) if at in near or at == 0]
        return changed


def _field(key: str, definition: Mapping[str, JSON]) -> list[str]:
    return pretty({key: definition[key]}).splitlines()[1:-1] if key in definition else []


def _differing(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> list[str]:
    """Name the fields in which two definitions differ, in the order of the new one."""
    keys = dict.fromkeys((*new, *old))
    return [key for key in keys if not same(old.get(key, MISSING), new.get(key, MISSING))]


def redefinition(
    old: Mapping[str, JSON], new: Mapping[str, JSON], materia: str, owner: Path | None
) -> Redefinition | None:
    """Compare a cast's copy of a definition with another one, whose config file is in ``owner``; None when they are the same."""
    changed = _differing(old, new)
    if not changed or same(dict(old), with_absolute_paths(new, owner)):
        return None
    return Redefinition(materia, old, new, tuple(sorted({*changed} - REDEFINED)))


def changed_definition(cast: Snapshot) -> Redefinition | None:
    """Return how the workbench's definition of the materia where a cast stopped differs from its copy; None when it does not."""
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


class Offer(NamedTuple):
    """An act that is offered now, in the words of this failure."""

    name: str
    words: str
    does: str
    verbs: str


def offers(cast: Snapshot, changed: Redefinition | None = None) -> list[Offer]:
    """Return what can be done where a cast failed or was aborted, the likeliest first; nothing where it did not.

    Args:
        cast: which.
        changed: how the definition of its materia differs, see :func:`changed_definition`.
    """
    failure = cast.failure
    if failure is None:
        return []
    socket = cast.graph.sockets.get(failure.socket or "")
    values = {"materia": socket.materia.id if socket else "", "socket": socket.id if socket else ""}
    values["folders"] = ", ".join(folders_asked(cast))
    values["more"] = _granted(failure)
    values["before"] = str(len(cast.steps) - 1)
    acts: Mapping[str, Act] = ACTS
    if lanes_at_work(cast.session) is not None:
        acts = {**ACTS, "recast": ACTS["recast"]._replace(does="go on with the lanes that were not accepted")}
    return [
        Offer(name, *(text.format(**values) for text in acts[name][:3]))
        for name in FAILURE_KINDS.get(failure.kind, OTHER).acts
        if _can(cast, name, changed)
    ]


def folders_asked(cast: Snapshot) -> list[str]:
    """Return the directories outside the project that a cast, or lanes of it, stopped before, as ``allow`` takes them (P8)."""
    base = cast.run_dir / cast.session.folder if cast.session.folder else cast.project
    asks = [
        engine
        for engine in (snapshot.engine for snapshot in _stopped(cast))
        if engine.failure is not None and engine.failure.kind == "folder_asks" and engine.scope != BASE
    ]
    return list(dict.fromkeys(f"{approvals.FOLDER}{base / engine.scope.cwd}" for engine in asks))


def _stopped(cast: Snapshot) -> list[Snapshot]:
    """Return the cast, and those of its lanes that failed."""
    return [cast, *(lane.now for lane in cast.lanes.values() if lane.status == "failed")]


def _granted(failure: Failure) -> str:
    """Say what going past a limit grants (R18, R19)."""
    if failure.allow is not None:
        return f"{failure.allow[1]} more allowed"
    return "one more attempt" if failure.kind == "repair_exhausted" else "the limit that stopped it granted once more"


def _answered_last(cast: Snapshot) -> bool:
    """Whether a limit stopped the cast behind the answer of its last step."""
    failure = cast.failure
    return bool(cast.steps and failure and failure.blocked and failure.socket == cast.steps[-1].socket)


def _can(cast: Snapshot, name: str, changed: Redefinition | None) -> bool:
    if lanes_at_work(cast.session) is not None and name in ("correct", "ask_again", "skip_item"):
        return False  # they have begun from what that would change
    stopped = _stopped(cast)
    cut_short = cast.prompt_cut_short is not None
    can: dict[str, bool] = {
        "take": changed is not None and not changed.kept,
        "resend": cut_short,
        "reword": cut_short,
        "budget": cast.budget_used_up,
        "revive": any(snapshot.at_limit for snapshot in stopped) and not cast.budget_used_up,
        "allow_folder": bool(folders_asked(cast)),
        "ask_again": _answered_last(cast),
        "correct": bool(cast.steps) and bool(cast.steps[-1].turns),
        **dict.fromkeys(("answer", "pin", "skip"), cast.owed),
        "skip_item": WORKED_ON in cast.standings,
    }
    return can.get(name, True)
