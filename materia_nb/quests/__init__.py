"""The quest board of a project: an ordered list of requests to cast one after another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError, join_with_or, needs_one_of
from materia_nb.platform import Stop
from materia_nb.store.catalogue import cast_entry
from materia_nb.store.design_autosave import BOARD_FILE, Board, Quest, QuestStatus, change_board, read_board

StopReason: TypeAlias = Literal["empty", "person", "failed", "stopped", "count"]
"""Reason why a run of the board ended, for example because no quests were left or because a person must act."""

POSITIONS: Final = ("top", "up", "down", "bottom")
STOP_MESSAGES: Final[Mapping[str, str]] = {
    "empty": "No quest is left to run.",
    "person": "The cast is waiting for a person. It is now the current cast; use `show` to open it. Then use `quest run` to continue it.",
    "failed": "A cast failed. It is now the current cast. Use `quest run` to continue with the next quest.",
    "stopped": "The run was stopped. Use `quest run` to continue.",
    "count": "",
}
"""Message for each reason why a run of the board ended."""

_STATUS_AT_END: Final[Mapping[str, QuestStatus]] = {"complete": "done", "failed": "failed", "aborted": "failed"}


class QuestBoard:
    """The quest board of a project, available as ``Workbench.quests``.

    Each change is a transaction on the board's file, so several kernels can share a board.
    """

    def __init__(self, bench: Workbench) -> None:
        """Open the board of a workbench. The board's file is in the directory of the casts."""
        self._bench = bench
        self._writer = threading.Lock()  # locked while this kernel runs quests
        self._stop = Stop()
        self._active: str | None = None

    def __repr__(self) -> str:
        return f"<quest board in {self.path.name}>"

    @property
    def path(self) -> Path:
        """The path of the board's file."""
        return self._bench.casts.root / BOARD_FILE

    @property
    def quests(self) -> tuple[Quest, ...]:
        """The quests in order, after their status has been updated from their casts.

        If the kernel ended during a cast, the quest becomes waiting, and the next run of the board continues the cast.

        Raises:
            MateriaError: the file is not a quest board (``bad_quests``), or it cannot be read or written.
        """
        board = read_board(self.path)
        if self._with_cast_status(board) != board:
            board = self._change_board(self._with_cast_status)
        return board.quests

    def find(self, reference: str | int) -> Quest:
        """Return the quest with the id or the number ``reference``.

        Raises:
            MateriaError: the quest does not exist (``unknown_quest``).
        """
        return _find_quest(read_board(self.path), reference)

    def add(self, request: str, *, loadout: str | None = None) -> Quest:
        """Add a quest at the end of the board, and return the quest.

        Args:
            request: the request to cast.
            loadout: the name of the loadout; defaults to the loadout that is selected when the quest runs.
        """
        if type(request) is not str or not request.strip():  # a notebook may pass any value
            raise MateriaError("The request is missing.", hint="write a request", kind="bad_quest")
        if loadout is not None:
            message = f"The loadout {loadout!r} does not exist."
            needs_one_of(loadout, self._bench.loadouts, message, "unknown_loadout")
        return self._change_board(lambda board: board.with_quest(request.strip(), loadout)).quests[-1]

    def move(self, quest: str | int, to: str | int) -> None:
        """Move a quest to another position on the board.

        Args:
            quest: the id or the number of the quest.
            to: ``top``, ``up``, ``down``, ``bottom``, or the number of the new position; the first position is 1.
        """

        def move_quest(board: Board) -> Board:
            target = _find_quest(board, quest)
            index, others = board.quests.index(target), [other for other in board.quests if other != target]
            others.insert(_parse_position(to, index, len(others)), target)
            return board.with_quests(tuple(others))

        self._change_board(move_quest)

    def remove(self, quest: str | int) -> None:
        """Remove a quest from the board. Its cast is kept. A running quest cannot be removed."""
        self._change_board(lambda board: _replace_quest(board, _find_idle_quest(board, quest)))

    def requeue(self, quest: str | int) -> Quest:
        """Reset the status of a quest to pending, so that the board casts it again; return the quest.

        The quest keeps its position, and its earlier cast is not deleted.
        """

        def requeue_quest(board: Board) -> Board:
            idle_quest = _find_idle_quest(board, quest)
            return _replace_quest(board, idle_quest, idle_quest.with_fields(status="pending", cast=None, note=None))

        return _find_quest(self._change_board(requeue_quest), quest)

    def run(self, count: int | None = None) -> StopReason:
        """Cast the quests one after another, with the agents of the workbench.

        The first waiting quest is continued; then the pending quests are cast from top to bottom. If a cast waits for a
        person, the run ends, the cast becomes the current cast, and the next run continues it. If a cast fails, the run
        also ends, and the next run starts with the next quest.

        Args:
            count: the maximum number of quests to run; defaults to all quests.

        Returns:
            The reason why the run ended.

        Raises:
            MateriaError: this kernel is already running the board (``busy``), or a cast cannot be started or is being
                written by another process.
        """
        if not self._writer.acquire(blocking=False):
            raise MateriaError("The board is already running.", hint="wait until the run ends, or stop it", kind="busy")
        self._stop.clear()
        try:
            cast_count = 0
            cast: Cast | None = None
            while not self._stop.is_set():
                if count is not None and cast_count >= count:
                    return "count"
                finished_cast, cast = cast, self._start_next()
                if finished_cast is not None:
                    finished_cast.close()  # otherwise, a long run would keep the journals of all casts open
                if cast is None:
                    return "empty"
                reason = self._run_cast(cast)
                if reason is not None:
                    return reason
                cast_count += 1
            return "stopped"
        finally:
            self._writer.release()

    def stop(self) -> None:
        """Stop the run of the board, during the current step if possible, and otherwise after the step."""
        self._stop.set()
        cast = self._open_cast(self._active)
        if cast is not None:
            cast.stop()

    # -- running ----------------------------------------------------------------------

    def _start_next(self) -> Cast | None:
        """Resume or start the cast of the next quest; return None if no quest is left."""
        casts: list[Cast] = []

        def start(board: Board) -> Board:
            board = self._with_cast_status(board)
            quest = _next_quest(board.quests)
            if quest is None:
                return board
            if quest.status == "waiting":
                cast = self._bench.resume(str(quest.cast))
            else:
                cast = self._bench.cast(quest.request, loadout=quest.loadout)
            casts.append(cast)
            self._active = cast.id
            return _replace_quest(board, quest, quest.with_fields(status="running", cast=cast.id, note=None))

        try:
            self._change_board(start)
        except BaseException:
            self._active = None
            raise
        return casts[0] if casts else None

    def _run_cast(self, cast: Cast) -> StopReason | None:
        """Run the cast of a quest, and return the reason to end the run, or None to continue with the next quest."""
        try:
            if cast.status in ("ready", "waiting"):
                cast.run(lambda _: self._stop.is_set())
        finally:
            self._active = None
            self._change_board(self._with_cast_status)
        status = _STATUS_AT_END.get(cast.status)
        if status is None:
            return "stopped" if self._stop.is_set() else "person"
        return "failed" if status == "failed" else None

    def _with_cast_status(self, board: Board) -> Board:
        """Return a copy of the board in which the status of each quest is updated from its cast."""
        return board.with_quests(tuple(map(self._update_quest, board.quests)))

    def _update_quest(self, quest: Quest) -> Quest:
        if quest.status in ("pending", "done") or quest.cast is None or quest.cast == self._active:
            return quest
        cast = self._open_cast(quest.cast)
        if cast is not None:
            status, failure = cast.status, cast.failure
            note = failure.message if failure else _waiting_note(cast)
        else:
            entry = cast_entry(self._bench.casts.root / quest.cast)
            if entry.locked_by is not None:
                return quest  # another kernel runs the quest
            if entry.status == "broken":
                return quest.with_fields(status="failed", note=f"its cast cannot be read: {entry.problem}")
            status, note = entry.status, quest.note
            if quest.status == "running" and status not in _STATUS_AT_END:
                note = "The kernel stopped during the cast. Use `quest run` to continue this quest."
        quest_status = _STATUS_AT_END.get(status, "waiting")
        return quest.with_fields(status=quest_status, note=None if quest_status == "done" else note)

    def _open_cast(self, cast_id: str | None) -> Cast | None:
        """Return the cast with the id ``cast_id`` if this kernel has opened it for writing, or None."""
        return None if cast_id is None else self._bench.casts.find_open_cast(self._bench.casts.root / cast_id)

    def _change_board(self, change: Callable[[Board], Board]) -> Board:
        return change_board(self.path, change)


def _next_quest(quests: Sequence[Quest]) -> Quest | None:
    """Return the quest to run next: the first waiting quest with a cast, or else the first pending quest."""
    waiting_quests = (quest for quest in quests if quest.status == "waiting" and quest.cast)
    pending = (quest for quest in quests if quest.status == "pending")
    return next(waiting_quests, None) or next(pending, None)


def _waiting_note(cast: Cast) -> str | None:
    if cast.now.held is not None:
        return f"held: {cast.now.held.reason}"
    visit = cast.now.waiting_at
    return None if visit is None else f"{cast.now.names[visit.socket]} is waiting for an answer"


def _find_quest(board: Board, quest: str | int) -> Quest:
    known = {known.id: known for known in board.quests}
    reference = str(quest).strip()
    id_ = f"Q-{reference}" if reference.isdecimal() else reference if reference in known else reference.upper()
    needs_one_of(id_, known, f"The board has no quest {quest!r}.", "unknown_quest")
    return known[id_]


def _find_idle_quest(board: Board, reference: str | int) -> Quest:
    quest = _find_quest(board, reference)
    if quest.status == "running":
        raise MateriaError(
            f"{quest.id} is running.", hint="stop the run, or wait until the quest ends", kind="quest_running"
        )
    return quest


def _replace_quest(board: Board, quest: Quest, *new: Quest) -> Board:
    """Return a copy of the board in which ``quest`` is replaced by ``new``, or removed if ``new`` is empty."""
    index = board.quests.index(quest)
    return board.with_quests((*board.quests[:index], *new, *board.quests[index + 1 :]))


def _parse_position(to: str | int, index: int, last: int) -> int:
    word = str(to).strip()
    positions = {"top": 0, "up": max(index - 1, 0), "down": min(index + 1, last), "bottom": last}
    if word in positions:
        return positions[word]
    if word.isdecimal() and len(word) < 10 and int(word) >= 1:
        return min(int(word) - 1, last)
    raise MateriaError(
        f"A quest cannot be moved to {word!r}.",
        hint=f"use {join_with_or(POSITIONS)}, or the number of a position, starting at 1",
        kind="bad_place",
    )
