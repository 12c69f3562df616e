"""Saves drafts of designs automatically, and stores the quest board of a project.

Each change to a design is immediately appended to a draft, so that no change is lost if the kernel dies. A draft is the
file ``drafts/NAME.XXXXXXXX.jsonl``, which stays locked while a design is writing to it. The first line contains the
loadout as it was last saved. Each further line contains the loadout after another change, with a checksum of the
previous version. Loadouts are stored as JSON strings, which preserves the number format and the order of their keys.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from materia_nb.errors import MateriaError, counted, outgoing_line
from materia_nb.file_io import open_plain, opened, read_plain, replace_file, write_all
from materia_nb.jsonvalue import JSON, Object, as_object, is_object, json_or_none, whole_number
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import DesignChange, exact_text
from materia_nb.platform import HeldInterrupts, file_is_locked, lock_file, unlock_file
from materia_nb.store.files import CAST_ID, NO_FILE, disk_errors, hold_file_lock, json_bytes
from materia_nb.store.rundir import RunDir

_DRAFT_FOLDER: Final = "drafts"
_FORMAT: Final = "materia-nb draft 1"
_DRAFT_FILE: Final = re.compile(r"(.*)\.[0-9a-f]{8}\.jsonl")
_NEW_FILE_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND
_MAX_BYTES: Final = 2**25  # Maximum size of a draft, in bytes. A larger draft is rewritten with only its last change.
_MAX_DRAFTS: Final = 5  # Maximum number of drafts of a loadout that are kept while no design is writing to them.


@dataclass(frozen=True, slots=True)
class SavedDraft:
    """An autosaved draft, which contains the editing steps of a design that was neither saved nor discarded.

    Attributes:
        name: the name of the loadout.
        saved_at: the time of the latest step, in milliseconds since the epoch.
        home: the path of the file in which the loadout is saved; None if the loadout is saved in a notebook.
        original: the saved loadout to which the first step was applied.
        steps: the steps that have not been undone, oldest first.
        undone: the undone steps that can be redone; the last element is redone first.
        path: the path of the draft file.
        by: the name of the coding agent that edited the design; empty if a person edited it.
    """

    name: str
    saved_at: int
    home: str | None
    original: Object = field(repr=False)
    steps: tuple[DesignChange, ...] = field(repr=False)
    undone: tuple[DesignChange, ...] = field(repr=False)
    path: Path = field(repr=False)
    by: str = ""

    @property
    def document(self) -> Object:
        """The loadout after the latest step."""
        return self.steps[-1].document

    def __str__(self) -> str:
        """Return a description of the draft with its time and its number of steps."""
        saved_at, now = time.localtime(self.saved_at / 1000), time.localtime()
        day = "" if saved_at[:3] == now[:3] else time.strftime("%Y-%m-%d ", saved_at)
        by = f" by {self.by}" if self.by else ""
        return f"the draft of {day}{time.strftime('%H:%M', saved_at)}{by} ({counted(len(self.steps), 'step')})"

    def has_changes(self, design: Design) -> bool:
        """Return True if the latest step of the draft differs from the current state of ``design``."""
        last = self.steps[-1]
        definitions = design.definitions
        return exact_text(last.document) != exact_text(design.document) or any(
            exact_text(raw) != exact_text(definitions.get(id_)) for id_, raw in last.materia.items()
        )

    def continue_in(self, design: Design) -> str:
        """Apply the steps of this draft to ``design``, delete the draft, and return a message for the user.

        Raises:
            DiskError: the draft cannot be deleted.
        """
        message = f"continued with {self}"
        if design.changed:
            message += ", which replaces your unsaved edits until you undo its steps"
        design.restore_draft(self.steps, self.undone)
        if not design.draft_error:
            self.discard()
        if self.home not in (None, str(design.home)):
            return f"{message}; the draft was started for {self.home}, which is not loaded, so saving writes to {design.home}"
        if exact_text(self.original) != exact_text(design.saved_change.document):
            message += f"; {design.home} was changed in the meantime, so saving overwrites {design.name} in it"
        return message

    def discard(self) -> None:
        """Delete the draft file; raises DiskError if it cannot be deleted."""
        with disk_errors(self.path, "delete a draft"):
            self.path.unlink(missing_ok=True)


def list_drafts(root: Path, name: str | None = None) -> tuple[SavedDraft, ...]:
    """Return the drafts that are not in use by an open design, newest first. Unreadable drafts are skipped.

    Args:
        root: the directory of the project's casts.
        name: the name of a loadout; None to return the drafts of all loadouts.
    """
    readable = (_read_unlocked_draft(path) for path in _draft_files(root, name))
    drafts = [draft for draft in readable if draft is not None and draft.steps and name in (None, draft.name)]
    return tuple(sorted(drafts, key=lambda draft: draft.saved_at, reverse=True))


def autosave(design: Design, root: Path, by: str = "") -> Design:
    """Enable autosave for a design, and return the design.

    Each further step is saved in a draft until the design is saved.

    Args:
        design: the design.
        root: the directory of the project's casts, which contains the drafts.
        by: the name of the coding agent that edits the design; empty if a person edits it.
    """
    design.save_draft = _Autosaver(root, by).on_change
    return design


def _file_stem(name: str) -> str:
    return quote(name, safe=" ", errors="replace")[:100]


def _draft_files(root: Path, name: str | None) -> list[Path]:
    if not RunDir(root).is_inside(_DRAFT_FOLDER):  # the folder is a link to a directory outside the project
        return []
    try:
        matches = [(path, _DRAFT_FILE.fullmatch(path.name)) for path in (root / _DRAFT_FOLDER).iterdir()]
    except OSError:
        return []
    return [path for path, match in matches if match and (name is None or match[1] == _file_stem(name))]


def _read_unlocked_draft(path: Path) -> SavedDraft | None:
    """Return the draft in a file, or None if an open design is using the draft or the file cannot be read."""
    try:
        with opened(path) as handle:
            is_locked = file_is_locked(handle, path)
        return None if is_locked else _parse_draft(path, read_plain(path, 2 * _MAX_BYTES))
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None


def _parse_draft(path: Path, content: bytes) -> SavedDraft | None:
    lines = [as_object(json_or_none(line)) for line in content.split(b"\n")]
    first_line = lines[0]
    if first_line.get("format") != _FORMAT:
        return None
    home = first_line.get("home")
    text, timestamp = str(first_line["text"]), int(first_line["ts"])
    original = _parse_change(text, "").document
    steps: list[DesignChange] = []
    undone: list[DesignChange] = []
    for line in lines[1:]:
        if not line:  # the end of the file, or a line that is incomplete because of a crash
            break
        if line.get("undo"):
            undone.append(steps.pop())
        elif line.get("redo"):
            steps.append(undone.pop())
        else:
            if line["after"] != zlib.crc32(text.encode()):
                break  # the lines after a lost line cannot be trusted
            text = line["text"]
            steps.append(_parse_change(text, str(line["words"])))
            undone.clear()
        timestamp = int(line["ts"])
    name = str(first_line["name"])
    by, home = outgoing_line(str(first_line.get("by", ""))), None if home is None else str(home)
    return SavedDraft(name, timestamp, home, original, (*steps,), (*undone,), path, by)


def _parse_change(text: str, title: str) -> DesignChange:
    value = as_object(json.loads(text))
    materia = {id_: raw for id_, raw in as_object(value.get("materia")).items() if raw is None or is_object(raw)}
    return DesignChange(as_object(value["document"]), title, materia)


def _serialize_change(change: DesignChange, originals: Mapping[str, Object | None]) -> str:
    """Serialize a change with the definition of every edited materia, because saved definitions may change later."""
    return exact_text({"document": change.document, "materia": {**originals, **change.materia}})


class _Autosaver:
    """Writes the draft of one design. A disk error is reported as a message, so the design can still be edited."""

    def __init__(self, root: Path, by: str) -> None:
        self.root, self.by = root, by
        self._path: Path | None = None
        self._steps: list[DesignChange] = []  # the loadout as last saved, then the steps in the file
        self._undone: list[DesignChange] = []
        self._text = ""
        self._size = 0
        self._last_saved_ms = 0
        self._handle = NO_FILE
        self._release: Callable[[], object] = lambda: None

    def on_change(self, design: Design, *, complete: bool) -> str:
        """Save the current state of a design in its draft, and return an error message or an empty string.

        ``complete`` is True if the whole draft must be rewritten, because several changes in the history have been
        replaced at once.
        """
        try:
            if self._must_keep_draft(design):
                return ""
            if not design.changed and (
                complete
                or self._path is None
                or self._steps[0] is design.current_change
                or design.home.path is not None
            ):
                self._delete_draft()
            elif complete or self._path is None or self._size > _MAX_BYTES or not self._path.exists():
                self._begin_draft(design)
            else:
                self._append(self._change_or_undo(design.current_change, design.originals))
        except (OSError, ValueError) as error:
            self._release()
            self._path = None
            return f"the draft could not be saved: {getattr(error, 'strerror', None) or error}"
        return ""

    def _must_keep_draft(self, design: Design) -> bool:
        """Return True if the draft must be kept, because the latest step was saved in the notebook but not in a file.

        Without the draft, the step would be lost when the kernel ends.
        """
        return (
            design.home.path is None
            and self._path is not None
            and len(self._steps) > 1
            and self._steps[-1] is design.current_change
        )

    def _change_or_undo(self, now: DesignChange, originals: Mapping[str, Object | None]) -> dict[str, JSON]:
        if len(self._steps) > 1 and self._steps[-2] is now:
            self._undone.append(self._steps.pop())
            return {"undo": True}
        if self._undone and self._undone[-1] is now:
            self._steps.append(self._undone.pop())
            return {"redo": True}
        self._undone.clear()
        return self._change_line(now, originals)

    def _change_line(self, change: DesignChange, originals: Mapping[str, Object | None]) -> dict[str, JSON]:
        before, self._text = self._text, _serialize_change(change, originals)
        self._steps.append(change)
        return {"words": change.summary, "text": self._text, "after": zlib.crc32(before.encode())}

    def _append(self, *lines: dict[str, JSON]) -> None:
        # The time must be later than all earlier drafts, even if the clock was set back: the oldest drafts are removed.
        self._last_saved_ms = max(round(time.time() * 1000), self._last_saved_ms + 1)
        content = b"".join(json_bytes({"ts": self._last_saved_ms, **line}) + b"\n" for line in lines)
        with HeldInterrupts():
            write_all(self._handle, content)
        self._size += len(content)

    def _begin_draft(self, design: Design) -> None:
        """Write the unsaved steps to a new draft, and then delete the previous draft."""
        previous_path, release = self._path, self._release
        base, steps = design.saved_change, design.unsaved_steps
        self._steps, self._undone, self._size = [base], [], 0
        self._text = _serialize_change(base, design.originals)
        first_line: dict[str, JSON] = {
            "format": _FORMAT,
            "name": design.name,
            "home": None if design.home.path is None else str(design.home.path),
            "text": self._text,
            "by": self.by,
        }
        lines = [first_line, *(self._change_line(step, design.originals) for step in steps)]
        if sum(len(line["text"]) for line in lines) > _MAX_BYTES // 2:
            self._text, self._steps = str(first_line["text"]), [base]
            lines[1:] = [self._change_line(steps[-1], design.originals)]
        self._open_file(design.name)
        self._append(*lines)
        if previous_path is not None:
            release()
            previous_path.unlink(missing_ok=True)

    def _open_file(self, name: str) -> None:
        folder = self.root / _DRAFT_FOLDER
        if not RunDir(self.root).is_inside(_DRAFT_FOLDER):
            raise OSError(0, f"{folder} is a link")
        folder.mkdir(parents=True, exist_ok=True)
        drafts = list_drafts(self.root, name)
        self._last_saved_ms = max([self._last_saved_ms, *(draft.saved_at for draft in drafts[:1])])
        for old in drafts[_MAX_DRAFTS - 1 :]:
            with suppress(OSError):
                old.path.unlink()
        path = folder / f"{_file_stem(name)}.{secrets.token_hex(4)}.jsonl"
        with HeldInterrupts():
            handle = open_plain(path, _NEW_FILE_FLAGS)
            self._release = weakref.finalize(self, _close, handle)
            self._handle, self._path = handle, path
        lock_file(handle, path)

    def _delete_draft(self) -> None:
        """Delete the draft, because the design has no unsaved changes."""
        self._release()
        path, self._path = self._path, None
        if path is not None:
            path.unlink(missing_ok=True)


def _close(handle: int) -> None:
    with suppress(OSError):
        unlock_file(handle)
    os.close(handle)


BOARD_FILE: Final = "quest-board.json"
_OWN_RECORD: Final = "materiaNb"
"""Field with this engine's own data about a quest. The data is ignored if another engine has changed the quest."""
_SHARED_STATE: Final = {"sharedStatus": "status", "sharedAttempts": "attempts"}
"""Maps fields of this engine's own data to the quest fields of which they are copies. If a copy differs from its
original, another engine has changed the quest.
"""
_SHARED_STATUS: Final = {"done": "succeeded", "waiting": "blocked"}
_QUEST_ID: Final = re.compile(r"Q-([1-9][0-9]{0,8})")

QuestStatus: TypeAlias = Literal["pending", "running", "waiting", "done", "failed"]
"""Status of a quest. A quest that is ``waiting`` has an unfinished cast, which the next run continues."""


class _BoardModel(BaseModel):
    """Base model that preserves unknown fields, so that no data is lost if a later version wrote the board."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, populate_by_name=True)


class Quest(_BoardModel):
    """A request on the quest board.

    Attributes:
        id: the id of the quest, such as ``Q-1``. The reference engine assigns ids such as ``quest-k3x8``.
        request: the request with which the quest's cast is started.
        loadout: the name of the loadout; None if a loadout is chosen when the quest runs.
        status: the status of the quest.
        cast: the id of the quest's cast; None before the first run, or if the reference engine ran the quest.
        note: the reason why the quest failed or stopped; None if there is no reason.
        shared: the JSON object from which the quest was read.
    """

    id: str = Field(pattern=r"^[\w-]{1,100}$")
    request: str = Field(validation_alias="prompt")
    loadout: str | None = None
    status: QuestStatus = "pending"
    cast: str | None = Field(default=None, pattern=CAST_ID)
    note: str | None = None
    shared: Object = Field(default_factory=dict, repr=False)

    def with_fields(self, **fields: JSON) -> Quest:
        """Return a copy of the quest in which ``fields`` replace the current values."""
        return self.model_copy(update=fields)


class Board(_BoardModel):
    """The quest board of a project, which lists the quests in the order in which they run.

    Attributes:
        version: the version of the file format.
        next: the number of the next quest to be added; numbers are never reused.
        quests: the quests, in order.
    """

    version: Literal[1] = 1
    next: int = Field(default=1, ge=1)
    quests: tuple[Quest, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Board:
        ids = [quest.id for quest in self.quests]
        if len(set(ids)) < len(ids):
            raise ValueError("two quests have the same id")
        return self

    def with_quests(self, quests: tuple[Quest, ...]) -> Board:
        """Return a copy of the board with all its quests replaced by ``quests``."""
        return self.model_copy(update={"quests": quests})

    def with_quest(self, request: str, loadout: str | None) -> Board:
        """Return a copy of the board with a new quest at the end."""
        numbers = [int(match[1]) for quest in self.quests if (match := _QUEST_ID.fullmatch(quest.id))]
        number = max([self.next, *(number + 1 for number in numbers)])
        quest = Quest(id=f"Q-{number}", request=request, loadout=loadout)
        return self.model_copy(update={"quests": (*self.quests, quest), "next": number + 1})


def read_board(path: Path) -> Board:
    """Read the quest board in a file; return an empty board if the file does not exist.

    Raises:
        MateriaError: the file is not a quest board (``bad_quests``), or the file cannot be read.
    """
    content = b"{}"  # an empty board
    with disk_errors(path, "read the quest board"), suppress(FileNotFoundError):
        content = read_plain(path)
    try:
        return _parse_board(json.loads(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _damaged_board_error(path, f"{where}: {first['msg']}" if where else first["msg"]) from None
    except (ValueError, RecursionError):
        raise _damaged_board_error(path, "it is not JSON") from None


def change_board(path: Path, change: Callable[[Board], Board]) -> Board:
    """Update the quest board in a file while other processes are locked out, and return the new board.

    Args:
        path: the file.
        change: a function that receives the current board and returns the new board.

    Raises:
        MateriaError: the board cannot be read (see :func:`read_board`) or written, or ``change`` raised the error. The
            file is not changed.
    """
    with hold_file_lock(path.with_suffix(".lock"), "lock the quest board"):
        before = read_board(path)
        after = change(before)
        if after == before:
            return before
        document = _shared_board(after)
        with disk_errors(path, "write the quest board"):
            replace_file(path, json_bytes(document, indented=True))
    return _parse_board(document)


def _parse_board(document: JSON) -> Board:
    """Validate the JSON value in a board file and return the board; raises ValidationError if the value is invalid."""
    if not is_object(document) or not isinstance(document.get("quests"), list):
        return Board.model_validate(document)
    quests = [
        {
            **{name: quest[name] for name in ("id", "prompt") if name in quest},
            "loadout": quest.get("loadoutOverride"),
            **_read_own_record(quest),
            "shared": quest,
        }
        if is_object(quest)
        else quest
        for quest in document["quests"]
    ]
    return Board.model_validate({**document, "quests": quests})


def _read_own_record(quest: Object) -> Object:
    """Return the status, the cast and the note of a quest that was read from a file.

    If the reference engine changed the quest last, the cast is None, because this engine cannot continue a cast of the
    reference engine.
    """
    own_record = as_object(quest.get(_OWN_RECORD))
    if own_record and all(own_record.get(name) == quest.get(shared) for name, shared in _SHARED_STATE.items()):
        return {name: own_record.get(name) for name in ("status", "cast", "note")}
    status = quest.get("status", "pending")
    status_names = {"succeeded": "done", "blocked": "failed"}
    note = as_object(quest.get("lastError")).get("message") if status in ("failed", "blocked") else None
    return {"status": status_names.get(str(status), status), "cast": None, "note": note}


def _shared_board(board: Board) -> Object:
    """Convert a board to the file format of the reference engine, which allows only one running quest."""
    now = f"{datetime.now(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
    fields = board.model_dump(mode="json", exclude={"quests"})
    running = next((quest for quest in board.quests if quest.status == "running"), None)
    quests = [_shared_quest(quest, now, may_run=quest is running) for quest in board.quests]
    return {"createdAt": now, "runner": {"enabled": False}, **fields, "updatedAt": now, "quests": quests}


def _shared_quest(quest: Quest, now: str, *, may_run: bool) -> Object:
    """Convert a quest to the file format of the reference engine.

    If this engine has not changed the quest, the JSON object from which the quest was read is returned. With
    ``may_run=False``, a running quest is written as blocked.
    """
    before, own_record = quest.shared, {"status": quest.status, "cast": quest.cast, "note": quest.note}
    if before and _read_own_record(before) == own_record:
        return before
    status = _SHARED_STATUS.get(quest.status, quest.status)
    if status == "running" and not may_run:
        status = "blocked"
    shared: Object = {
        **{name: value for name, value in before.items() if name not in ("currentCastId", "lastError")},
        "id": quest.id,
        "title": before.get("title") or (quest.request.strip() or quest.id).splitlines()[0][:80],
        "prompt": quest.request,
        "status": status,
        "createdAt": before.get("createdAt", now),
        "updatedAt": now,
        "attempts": (whole_number(before.get("attempts")) or 0) + (quest.status == "running"),
    }
    shared[_OWN_RECORD] = own_record | {name: shared[field] for name, field in _SHARED_STATE.items()}
    optional = {
        "loadoutOverride": quest.loadout,
        "lastCastId": quest.cast,
        "currentCastId": quest.cast if status == "running" else None,
        "lastError": {"message": quest.note, "occurredAt": now} if quest.note else None,
    }
    return shared | {name: value for name, value in optional.items() if value is not None}


def _damaged_board_error(path: Path, why: str) -> MateriaError:
    return MateriaError(
        f"The file is not a quest board ({why}).",
        where=str(path),
        hint="fix the file, or move it away to start with an empty board; the file is not overwritten",
        kind="bad_quests",
    )
