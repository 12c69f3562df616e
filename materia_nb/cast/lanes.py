"""The lanes of a cast, which run in parallel threads. The results of the lanes are handled one at a time."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path

from materia_nb import platform
from materia_nb.cast.work import Job, Work
from materia_nb.engine import decide
from materia_nb.engine import events as ev
from materia_nb.engine.events import Events
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import PendingAction, Session, StepRecord, lanes_running, pending_actions
from materia_nb.handoff.base import BASE
from materia_nb.store.file_snapshots import LANE_SEPARATOR, FileSnapshots

_POLL_S = 0.1
_END_S = 1.0  # Maximum time to wait for running jobs to end after an interrupt, in seconds.


class LaneWork(Work):
    """Runs the visits of one lane, and shares the journal and the agents with the cast."""

    def __init__(self, main: Work, lane: str, lanes: Lanes) -> None:
        super().__init__(main)
        self.run_dir, self.utilities = main.run_dir, main.utilities
        self.agents, self.functions = main.agents, main.functions
        self.stop, self.messages = main.stop, main.messages
        self.lane, self._lanes, self.count_earlier_turns = lane, lanes, lanes.count_earlier_turns

    @property
    def rules(self) -> Rules:  # type: ignore[override]
        """The rules that the engine applies to the cast."""
        return self.main.rules

    @property
    def session(self) -> Session:  # type: ignore[override]
        """The session of the lane."""
        return self.main.session.streams[-1].lanes[self.lane].session

    @property
    def base(self) -> Path:
        """The working directory of agents and processes that have no sandbox scope."""
        return self.main.base

    def save_files(self, by: str) -> None:
        """Save a snapshot of the lane's directory if only this lane uses it, for example because it is a worktree.

        Project files that several lanes change are saved after the lanes have joined.
        """
        scope = self.session.state.scope
        if not self.session.snapshot_method or scope == BASE or not self._is_alone():
            return
        folder = self.base / scope.cwd
        number = [*self.main.session.streams[-1].lanes].index(self.lane) + 1
        if self._kept is None or self._kept.folder != folder:
            self._kept = None
        is_new = self.session.folder != scope.cwd  # its earlier files are not from this lane

        def keeper() -> FileSnapshots:
            self._kept = self._kept or self.keeper_of(folder, f"{LANE_SEPARATOR}{self._lanes.number}-{number}")
            return self._kept

        self.keep_with(keeper, "start" if is_new else by, lane=self.lane, folder=scope.cwd if is_new else "")

    def _is_alone(self) -> bool:
        """Return True if no other lane works in the directory of this lane, in a parent of it or in a subdirectory."""
        folder = (self.base / self.session.state.scope.cwd).resolve()
        others = (
            (self.base / lane.session.state.scope.cwd).resolve()
            for name, lane in self.main.session.streams[-1].lanes.items()
            if name != self.lane and lane.session.state.scope != BASE
        )
        return folder.is_dir() and not any(
            other.is_relative_to(folder) or folder.is_relative_to(other) for other in others
        )

    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Apply the events of a command to the session of the lane; for the arguments see :meth:`Work.apply`."""
        self.main.apply(decide.run_in_lane, self.lane, command, *arguments, later=later)


class Lanes:
    """The lanes among which one list of work items was distributed. Callers must hold the lock of the cast.

    Attributes:
        number: the number of this distribution in the cast, counting from 1.
        stuck: True if no lane can continue until a person has answered.
    """

    def __init__(self, main: Work) -> None:
        self.number = main.session.loop_count
        self.stuck = False
        self._may_continue = True  # the lane of the last handled result may continue
        self._main = main
        self._works: dict[str, LaneWork] = {}
        self._running: dict[str, tuple[str, Job]] = {}  # the running socket and job of each lane
        self._results: queue.SimpleQueue[tuple[str, Job, object]] = queue.SimpleQueue()

    def work(self, name: str) -> LaneWork:
        """Return the object that runs the named lane."""
        if name not in self._works:
            self._works[name] = LaneWork(self._main, name, self)
        return self._works[name]

    @property
    def busy_sockets(self) -> list[str]:
        """The sockets whose agent or process is running, one for each busy lane."""
        return [socket for socket, _ in tuple(self._running.values())]

    @property
    def answer_chunks(self) -> dict[str, tuple[str, ...]]:
        """The chunks of the current answers that have been received, by lane name."""
        return {name: tuple(work.answer_chunks) for name, work in self._works.items()}

    def count_earlier_turns(self, socket: str) -> tuple[int, int]:
        """Return the number of earlier turns of a socket and of its materia, in all lanes."""
        session, sockets = self._main.session, self._main.rules.sockets
        materia = sockets[socket].socket.materia.id
        busy_sockets = self.busy_sockets
        lanes = [lane.session.turns for lane in session.streams[-1].lanes.values()]

        def count(key: str, running: int) -> int:
            before = session.turns.get(key, 0)
            return before + sum(turns.get(key, 0) - before for turns in lanes) + running

        of_materia = sum(sockets[other].socket.materia.id == materia for other in busy_sockets)
        return count(socket, busy_sockets.count(socket)), count(f"materia {materia}", of_materia)

    def steps(self, stops_after: Callable[[str], bool], *, once: bool) -> Iterator[StepRecord]:
        """Run the lanes, and yield each step that is complete or waits for a person.

        The lanes stop when all lanes have ended or wait for a person, or when ``stops_after`` returns True for a lane
        after one of its steps. If ``once`` is set, each lane runs only one socket. While the caller handles a step,
        running jobs continue, but no new jobs start. Closing the generator stops the jobs like an interrupt.
        """
        stop = self._main.stop
        idle: set[str] = set()  # lanes that a person must answer
        lanes_done: set[str] = set()  # lanes that have run their one socket
        must_stop = has_stepped = False
        try:
            while True:
                if not must_stop and not stop.is_set() and (started := self._start_next(idle, lanes_done)) is not None:
                    if started in idle:
                        yield self._latest(started)
                    continue
                if not self._running:
                    break
                if (name := self._take_next()) is None:
                    continue
                is_waiting, has_stepped = self.work(name).session.state.waiting_at is not None, True
                if is_waiting and not self._may_continue:
                    idle.add(name)
                elif once:
                    lanes_done.add(name)
                must_stop = stops_after(name) or must_stop
                if not is_waiting or name in idle or name in lanes_done or must_stop:
                    yield self._latest(name)
        except BaseException:
            self._stop_running_jobs()
            raise
        wait = lanes_running(self._main.session) is not None and any(action.lane for action in self._due())
        self.stuck = wait and not (must_stop or stop.is_set() or (once and has_stepped))

    def _latest(self, name: str) -> StepRecord:
        step = self.work(name).session.steps.latest
        assert step is not None  # noqa: S101 - the lane has entered a socket
        return step

    def _due(self) -> tuple[PendingAction, ...]:
        return pending_actions(self._main.rules, self._main.session)

    def _start_next(self, idle: set[str], lanes_done: set[str]) -> str | None:
        """Start a job in the next eligible lane if fewer lanes than the maximum are running (P4).

        Return the name of the lane, or None if no lane can be started.
        """
        at_work = lanes_running(self._main.session)
        if at_work is None or len(self._running) >= at_work.limit:
            return None
        due_actions = (action for action in self._due() if action.lane and action.what != "person")
        names = [action.lane for action in due_actions if action.lane not in idle]
        running = [lane for lane in names if at_work.lanes[lane].status == "running"]
        eligible = names if len(running) < at_work.limit else running
        next_lane = next((lane for lane in eligible if lane not in self._running and lane not in lanes_done), None)
        if next_lane is None:
            return None
        work = self.work(next_lane)
        if work.session.state.status == "ready":
            work.enter()
        elif at_work.lanes[next_lane].status == "waiting":
            self._main.run_command(decide.record, ev.LaneStarted(lane=next_lane))
        visit = work.session.state.waiting_at
        if visit is None:
            return next_lane  # the lane is over
        job = work.job()
        if job is None:
            idle.add(next_lane)
            return next_lane
        self._running[next_lane] = (visit.socket, job)
        if job.is_immediate or not platform.CAN_START_THREADS:
            self._results.put((next_lane, job, job.run()))
        else:
            context = copy_context()  # which has the event loop of coroutines
            run_job = partial(context.run, lambda: self._results.put((next_lane, job, job.run())))
            platform.start_thread(run_job, f"materia-lane-{next_lane}")
        return next_lane

    def _take_next(self) -> str | None:
        """Apply the result of the next finished job and return the name of its lane.

        Return None if no job has finished, or if the result of the job is no longer needed.
        """
        try:
            with platform.released_slot():
                name, job, result = self._results.get(timeout=_POLL_S)
        except queue.Empty:
            return None
        if self._running.get(name, ("", None))[1] is not job:
            return None
        del self._running[name]
        at_work = lanes_running(self._main.session)
        if at_work is None or at_work.lanes[name].is_over:
            job.drop()
            return None
        self._may_continue = job.take(result)
        return name

    def _stop_running_jobs(self) -> None:
        """Stop all running jobs after an interrupt, and discard the results of jobs that cannot be stopped."""
        self._main.stop.set()
        for _, job in self._running.values():
            job.drop()
        until = time.monotonic() + _END_S
        for _ in range(len(self._running)):
            with suppress(queue.Empty):
                self._results.get(timeout=max(0.0, until - time.monotonic()))
        self._running.clear()
