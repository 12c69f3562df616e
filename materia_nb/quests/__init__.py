"""The quest board of a project: an ordered list of requests that are cast one after another. Its panel is in ``panel.py``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from materia_nb.cast import Cast
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.platform import Stop
from materia_nb.store.board import NAME, Board, Quest, QuestStatus, change_board, read_board
from materia_nb.store.catalogue import cast_entry

WhyStopped: TypeAlias = Literal["empty", "person", "failed", "stopped", "count"]
"""Why running the board stopped: nothing is left to run, a person must act, a cast failed, or it was told to."""

PLACES: Final = ("top", "up", "down", "bottom")
WORDS: Final[Mapping[str, str]] = {
    "empty": "Nothing is left to run.",
    "person": "A person must act: the cast is the current one (show). Running the board then goes on with it.",
    "failed": "A cast failed; it is the current one. Running the board goes on with the next.",
    "stopped": "Stopped; running the board goes on.",
    "count": "",
}
"""Why running the board stopped, in words."""

_ENDED: Final[Mapping[str, QuestStatus]] = {"complete": "done", "failed": "failed", "aborted": "failed"}


class Bench(Protocol):
    """What the board needs of a workbench."""

    @property
    def loadouts(self) -> Mapping[str, str]:
        """The loadouts that there are."""

    def cast(self, request: str, *, loadout: str | None = None) -> Cast:
        """Start a cast and make it the current one."""

    def resume(self, reference: str) -> Cast:
        """Go on with a cast and make it the current one."""


class QuestBoard:
    """The quests of a project, in their order. Get it with ``Workbench.quests``.

    Whatever it does is one transaction on the file, so several kernels can work on one board.
    """

    def __init__(
        self, bench: Bench, open_here: Callable[[Path], Cast | None], root: Callable[[], Path]
    ) -> None:
        """Work for ``bench``; ``open_here`` gives the cast in a directory, if it is open for writing here; ``root`` is where casts are kept, and the board."""
        self._bench, self._root = bench, root
        self._open_here = open_here
        self._writer = threading.Lock()  # held while quests are run here
        self._stop = Stop()
        self._active: str | None = None
        self._watchers: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"<quest board in {self.path.name}>"

    @property
    def path(self) -> Path:
        """The file."""
        return self._root() / NAME

    @property
    def loadouts(self) -> tuple[str, ...]:
        """The loadouts that a quest may name."""
        return tuple(self._bench.loadouts)

    def busy(self, wait: float = 0.0) -> bool:  # noqa: ARG002 - asked as of a cast; a run of quests is long
        """Whether quests are run here."""
        return self._writer.locked()

    @property
    def quests(self) -> tuple[Quest, ...]:
        """The quests as they stand, after a look at the casts of those that are under way.

        A cast that its kernel left behind is found here: its quest is then waiting, and running the board
        goes on with it.

        Raises:
            MateriaError: the file is not a quest board (``bad_quests``), or cannot be read or written.
        """
        board = read_board(self.path)
        if self._settled(board) != board:
            board = self._change(self._settled)
        return board.quests

    def words_of(self, why: WhyStopped) -> str:
        """Say in words why running the board stopped."""
        return WORDS[why]

    def find(self, reference: str | int) -> Quest:
        """Return a quest by its id or number.

        Raises:
            MateriaError: there is none (``unknown_quest``).
        """
        return _found(read_board(self.path), reference)

    def add(self, request: str, *, loadout: str | None = None) -> Quest:
        """Put a request at the end of the board.

        Args:
            request: what is asked for.
            loadout: its loadout; if left out, the one chosen when it is run.
        """
        if type(request) is not str or not request.strip():  # a notebook gives what it likes
            raise MateriaError("The request is missing.", hint="say what is asked for", kind="bad_quest")
        if loadout is not None:
            what = f"There is no loadout {loadout!r}."
            needs_one_of(loadout, self._bench.loadouts, what, "unknown_loadout")
        return self._change(lambda board: board.adding(request.strip(), loadout)).quests[-1]

    def move(self, reference: str | int, to: str | int) -> None:
        """Move a quest on the board.

        Args:
            reference: its id or its number.
            to: top, up, down, bottom, or a place counted from 1.
        """

        def moved(board: Board) -> Board:
            quest = _found(board, reference)
            at, rest = board.quests.index(quest), [one for one in board.quests if one != quest]
            rest.insert(_place(to, at, len(rest)), quest)
            return board.having(tuple(rest))

        self._change(moved)

    def remove(self, reference: str | int) -> None:
        """Remove a quest from the board; its cast stays. A running quest is refused."""
        self._change(lambda board: board.having(_without(board, _at_rest(board, reference))))

    def requeue(self, reference: str | int) -> Quest:
        """Make a quest pending again, in its place; it will be cast again, and the earlier cast stays."""

        def requeued(board: Board) -> Board:
            quest = _at_rest(board, reference)
            return _put(board, quest.having(status="pending", cast=None, note=None))

        return _found(self._change(requeued), reference)

    def run(self, count: int | None = None) -> WhyStopped:
        """Cast the quests one after another, with the agents of the workbench.

        One that waits goes on first, then those that are pending, from the top. A cast that a person must
        answer stops the run and is the current cast; running again goes on with it. A failed one stops the
        run too; running again goes on with the next.

        Args:
            count: the most quests to run; all if left out.

        Raises:
            MateriaError: the board is being run here already (``busy``), a cast cannot be started or is
                written by another process.
        """
        if not self._writer.acquire(blocking=False):
            raise MateriaError("The board is being run.", hint="wait, or stop it", kind="busy")
        self._stop.clear()
        try:
            done = 0
            cast: Cast | None = None
            while not self._stop.is_set():
                if count is not None and done >= count:
                    return "count"
                before, cast = cast, self._take_up()
                if before is not None:
                    before.close()  # it is done; a long board must not hold all its journals open
                if cast is None:
                    return "empty"
                why = self._run(cast)
                if why is not None:
                    return why
                done += 1
            return "stopped"
        finally:
            self._writer.release()
            self._tell()

    def stop(self) -> None:
        """Stop running the board after, or if it can be stopped within, the step that runs."""
        self._stop.set()
        cast = self._here(self._active)
        if cast is not None:
            cast.stop()

    def watch(self, watcher: Callable[[], object]) -> Callable[[], None]:
        """Call ``watcher`` after every change that is made here; returns a function that ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    # -- running ----------------------------------------------------------------------

    def _take_up(self) -> Cast | None:
        """Resume the cast of the first quest that waits, else start that of the first that is pending."""
        taken: list[Cast] = []

        def take(board: Board) -> Board:
            board = self._settled(board)
            quest = next((one for one in board.quests if one.status == "waiting" and one.cast), None)
            if quest is not None:
                cast = self._bench.resume(str(quest.cast))
            else:
                quest = next((one for one in board.quests if one.status == "pending"), None)
                if quest is None:
                    return board
                cast = self._bench.cast(quest.request, loadout=quest.loadout)
            taken.append(cast)
            self._active = cast.id
            return _put(board, quest.having(status="running", cast=cast.id, note=None))

        try:
            self._change(take)
        except BaseException:
            self._active = None
            raise
        return taken[0] if taken else None

    def _run(self, cast: Cast) -> WhyStopped | None:
        """Run a cast; why the board has to stop, None when it goes on with the next."""
        try:
            if cast.status in ("ready", "waiting"):
                cast.run(lambda _: self._stop.is_set())
        finally:
            self._active = None
            self._change(self._settled)
        status = _ENDED.get(cast.status)
        if status is None:
            return "stopped" if self._stop.is_set() else "person"
        return "failed" if status == "failed" else None

    def _settled(self, board: Board) -> Board:
        """Bring the quests up to date with their casts."""
        return board.having(tuple(map(self._settle, board.quests)))

    def _settle(self, quest: Quest) -> Quest:
        if quest.status in ("pending", "done") or quest.cast is None or quest.cast == self._active:
            return quest
        cast = self._here(quest.cast)
        if cast is not None:
            status, failure = cast.status, cast.failure
            note = failure.message if failure else _waits_for(cast)
        else:
            entry = cast_entry(self._root() / quest.cast)
            if entry.locked_by is not None:
                return quest  # another kernel has it
            if entry.status == "broken":
                return quest.having(status="failed", note=f"its cast cannot be read: {entry.problem}")
            status, note = entry.status, quest.note
            if quest.status == "running" and status not in _ENDED:
                note = "its kernel ended; running the board goes on with it"
        settled = _ENDED.get(status, "waiting")
        return quest.having(status=settled, note=None if settled == "done" else note)

    def _here(self, cast_id: str | None) -> Cast | None:
        return None if cast_id is None else self._open_here(self._root() / cast_id)

    def _change(self, change: Callable[[Board], Board]) -> Board:
        board = change_board(self.path, change)
        self._tell()
        return board

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()


def _waits_for(cast: Cast) -> str | None:
    if cast.now.held is not None:
        return f"held: {cast.now.held.reason}"
    return f"{cast.now.waiting_at.socket} waits for an answer" if cast.now.waiting_at else None


def _found(board: Board, reference: str | int) -> Quest:
    wanted = str(reference).strip()
    id_ = f"Q-{wanted}" if wanted.isdecimal() else wanted.upper()
    known = {quest.id: quest for quest in board.quests}
    needs_one_of(id_, known, f"There is no quest {reference!r}.", "unknown_quest")
    return known[id_]


def _at_rest(board: Board, reference: str | int) -> Quest:
    quest = _found(board, reference)
    if quest.status == "running":
        raise MateriaError(
            f"{quest.id} is being run.", hint="stop it, or wait until it ends", kind="quest_running"
        )
    return quest


def _without(board: Board, quest: Quest) -> tuple[Quest, ...]:
    return tuple(one for one in board.quests if one.id != quest.id)


def _put(board: Board, quest: Quest) -> Board:
    return board.having(tuple(quest if one.id == quest.id else one for one in board.quests))


def _place(to: str | int, at: int, last: int) -> int:
    word = str(to).strip()
    places = {"top": 0, "up": max(at - 1, 0), "down": min(at + 1, last), "bottom": last}
    if word in places:
        return places[word]
    if word.isdecimal() and len(word) < 10 and int(word) >= 1:
        return min(int(word) - 1, last)
    raise MateriaError(
        f"A quest cannot be moved to {word!r}.",
        hint=f"one of {', '.join(PLACES)}, or a place counted from 1",
        kind="bad_place",
    )
