"""The run directory of a cast: where each thing stands in it (R29)."""

from __future__ import annotations

import datetime as dt
import os
import re
import socket
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import (
    disk,
    json_bytes,
    read_plain,
    replace_file,
    sync_folder,
    to_bytes,
    write_file,
)

LONGEST: Final = 2**28
"""The longest artifact that is read, in bytes."""

CAST_ID: Final = r"^[0-9A-Za-z][0-9A-Za-z_.-]*$"
"""What the id of a cast looks like: the name of a directory, and nothing that leads elsewhere."""
_CAST_ID = re.compile(CAST_ID)
_ITEM_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,199}")


class RunDir:
    """Paths and writes of one run directory. Artifact names are relative to it, with ``/``."""

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """Stand for the directory ``path``; ``sync`` asks for an fsync of every artifact."""
        self.path = path
        self.sync = sync
        self._root = str(path)
        self._made: set[str] = set()

    @property
    def journal(self) -> Path:
        """Where the events stand."""
        return self.path / "events.jsonl"

    def write(self, name: str, content: bytes) -> str:
        """Write the artifact ``name`` and return its name."""
        folder, path = name.rpartition("/")[0], f"{self._root}/{name}"
        with disk(path, "write an artifact"):
            if folder not in self._made:
                self._make(folder)
            write_file(path, content, sync=self.sync)
            if self.sync:
                sync_folder(f"{self._root}/{folder}")
        return name

    def _make(self, folder: str) -> None:
        self.check_inside(folder)
        os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103 - hot path
        if self.sync:
            steps = folder.split("/")
            for depth in range(len(steps)):
                sync_folder("/".join([self._root, *steps[:depth]]))
        self._made.add(folder)

    def check_inside(self, folder: str) -> None:
        """Raise MateriaError unless a folder of artifacts lies in the run directory, links followed."""
        wanted = self._resolved / folder
        if ".." in folder.split("/") or wanted.resolve() != wanted:
            raise MateriaError(
                "The cast would write outside of its run directory, or through a link in it.",
                where=f"{self._root}/{folder}"[:500],
                hint="do not trust this run directory; or take the link away",
                kind="bad_artifact",
            )

    def write_text(self, name: str, text: str) -> str:
        """Write an artifact of text."""
        return self.write(name, to_bytes(text))

    def write_json(self, name: str, value: JSON) -> str:
        """Write an artifact of JSON, indented."""
        return self.write(name, json_bytes(value, indent=2))

    def replace_json(self, name: str, value: JSON) -> None:
        """Write a derived file such as manifest.json anew, atomically."""
        self.replace(name, json_bytes(value, indent=2) + b"\n")

    def replace(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Write a file anew, atomically."""
        with disk(self.path / name, f"write {name}"):
            replace_file(self.path / name, content, sync=self.sync)

    def journal_bytes(self) -> int:
        """How long the journal is, 0 when there is none."""
        try:
            return self.journal.stat().st_size
        except OSError:
            return 0

    def has(self, name: str) -> bool:
        """Whether there is such an artifact."""
        return os.path.isfile(f"{self._root}/{name}")  # noqa: PTH113 - asked for each output of a cast

    def read_text(self, name: str) -> str:
        """Read an artifact; raises MateriaError when it is not there or leads out of the directory."""
        path = self.path / name
        try:
            path = path.resolve()
            inside = path.is_relative_to(self._resolved)
        except (OSError, ValueError, RuntimeError):  # names that no file can have, loops of links
            inside = False
        if not inside:
            raise MateriaError(
                "The journal names an artifact that cannot be in the run directory.",
                where=name[:200],
                hint="do not trust this recording",
                kind="bad_artifact",
            )
        try:
            return read_plain(path, LONGEST).decode("utf-8", "replace")
        except OSError as error:
            raise MateriaError(
                f"An artifact that the journal names cannot be read: {error.strerror}.",
                where=str(path),
                hint="restore it from a copy of the run directory",
                kind="missing_artifact",
            ) from error

    @cached_property
    def _resolved(self) -> Path:
        return self.path.resolve()


def is_item_key(key: str) -> bool:
    """Whether ``key`` may be that of an item (R13), so that the names of artifacts cannot lead elsewhere by it."""
    return bool(_ITEM_KEY.fullmatch(key)) and ".." not in key


def place_of(path: Path) -> dict[str, JSON]:
    """Say where a run directory is: what a person allowed in a cast counts there and nowhere else."""
    return {"host": socket.gethostname(), "user": os.getuid(), "directory": str(path.resolve())}


def new_run_dir(root: Path) -> Path:
    """Make the run directory of a new cast; its name is the cast id, a UTC time as R29 spells it."""
    while True:
        now = dt.datetime.now(dt.UTC)
        stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        cast_id = stamp.replace(":", "-").replace(".", "-")
        path = root / cast_id
        with disk(path, "make the directory of the cast"):
            root.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError:
                time.sleep(0.001)  # two casts in one millisecond: the next one has another id
                continue
        return path


def is_cast_id(name: str) -> bool:
    """Whether ``name`` may be the id of a cast, so that it cannot lead out of the artifact directory."""
    return bool(_CAST_ID.fullmatch(name)) and ".." not in name
