"""The file of a quest board: its schema, and changing it in one go among all processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain, replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk, json_bytes, locked
from materia_nb.store.rundir import CAST_ID

NAME: Final = "quest-board.json"

QuestStatus: TypeAlias = Literal["pending", "running", "waiting", "done", "failed"]
"""``waiting``: its cast is there and goes on when it is run, perhaps after a person has answered."""


class _Model(BaseModel):
    """Unknown fields are kept, so that a board written by a later version loses nothing."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Quest(_Model):
    """One request on the board.

    Attributes:
        id: its number on the board, as ``Q-1``.
        request: what is asked for.
        loadout: what it is cast with; None for the one that is chosen when it is run.
        status: how it stands.
        cast: the id of its cast, once there is one.
        note: why it failed or stopped, in words.
    """

    id: str = Field(pattern=r"^Q-[1-9][0-9]{0,8}$")
    request: str
    loadout: str | None = None
    status: QuestStatus = "pending"
    cast: str | None = Field(default=None, pattern=CAST_ID)
    note: str | None = None

    @property
    def number(self) -> int:
        """The number in its id."""
        return int(self.id[2:])

    def having(self, **fields: JSON) -> Quest:
        """Return it with other values in some fields."""
        return self.model_copy(update=fields)


class Board(_Model):
    """All quests in their order. ``next`` is the number of the next one: numbers are not used again."""

    version: Literal[1] = 1
    next: int = Field(default=1, ge=1)
    quests: tuple[Quest, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Board:
        ids = [quest.id for quest in self.quests]
        if len(set(ids)) < len(ids):
            raise ValueError("two quests have the same id")
        return self

    def having(self, quests: tuple[Quest, ...]) -> Board:
        """Return the board with other quests."""
        return self.model_copy(update={"quests": quests})

    def adding(self, request: str, loadout: str | None) -> Board:
        """Return the board with one more quest at the end."""
        number = max(self.next, *(quest.number + 1 for quest in self.quests), 1)
        quest = Quest(id=f"Q-{number}", request=request, loadout=loadout)
        return self.model_copy(update={"quests": (*self.quests, quest), "next": number + 1})


def read_board(path: Path) -> Board:
    """Return the board in a file; an empty one when there is no file.

    Raises:
        MateriaError: it is not a quest board (``bad_quests``), with the place and what is wrong there, or
            cannot be read.
    """
    with disk(path, "read the quest board"):
        try:
            content = read_plain(path)
        except FileNotFoundError:
            return Board()
    try:
        return Board.model_validate(json.loads(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _damaged(path, f"{where}: {first['msg']}" if where else first["msg"]) from None
    except (ValueError, RecursionError):
        raise _damaged(path, "it is not JSON") from None


def change_board(path: Path, change: Callable[[Board], Board]) -> Board:
    """Read the board, change it and write it, as one transaction among all processes; returns the new one.

    Raises:
        MateriaError: as :func:`read_board`, what ``change`` raises, or it cannot be written; then the file
            is as it was.
    """
    with locked(path.with_suffix(".lock"), "lock the quest board"):
        before = read_board(path)
        after = change(before)
        if after != before:
            with disk(path, "write the quest board"):
                replace_file(path, json_bytes(after.model_dump(mode="json"), indented=True))
    return after


def _damaged(path: Path, why: str) -> MateriaError:
    return MateriaError(
        f"The file is not a quest board ({why}).",
        where=str(path),
        hint="fix it, or move it away to start over; it is not overwritten",
        kind="bad_quests",
    )
