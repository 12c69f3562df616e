"""A cast, with methods to inspect, continue, edit and fork it.

A cast stops only between steps. A method that runs the cast returns if the cast has to wait for a person. Calling the
method again continues the cast.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from materia_nb.agents.background import run_in_thread
from materia_nb.agents.interface import validate_reply
from materia_nb.agents.notebook_agents import AgentTable
from materia_nb.cast import runner_factory
from materia_nb.cast.attempt import Attempts, Wording
from materia_nb.cast.breakpoint import path_segments
from materia_nb.cast.cast_breakpoints import END_PAUSES, CastBreakpoints, Pause
from materia_nb.cast.edits import Approvals, Edits, Labels, Pins
from materia_nb.cast.exports import Exports
from materia_nb.cast.formatting import StepList, steps_of
from materia_nb.cast.runner import Followers, Runner
from materia_nb.cast.snapshot import Snapshot, graph_of
from materia_nb.cast.work import Work, clean, copy_answer, now, stopped_error
from materia_nb.engine import approvals, decide
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, lanes_at_work
from materia_nb.engine.state import CONTINUATION_HINTS, Failure, Status
from materia_nb.errors import MateriaError, usage_error
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import GUARD_FOR
from materia_nb.platform import computing
from materia_nb.registry import lookup

if TYPE_CHECKING:
    from materia_nb.cast.views.compare_view import BlameView, ReplayView
    from materia_nb.cast.views.tables import FilesView, UsageView
    from materia_nb.insight.why import Why


class Cast(AbstractContextManager["Cast"], AbstractAsyncContextManager["Cast"]):
    """One run of a loadout, created by ``Workbench.cast`` or ``Workbench.open``.

    A cast can be used in ``with`` and ``async with`` statements, which close it.

    Attributes:
        runner: the runner of the cast, which the panel uses to check whether a step is running.
    """

    def __init__(self, runner: Runner) -> None:
        """Create the public interface of the cast that ``runner`` runs."""
        self.runner = runner
        runner.followers.follow(self)
        if not isinstance(runner.stops, CastBreakpoints):
            runner.stops = CastBreakpoints(runner)

    def close(self) -> None:
        """Release the journal and the lock of the cast. The cast can still be inspected."""
        with self.runner.lock():
            self.runner.close()

    def __exit__(self, *_: object) -> None:
        """Close the cast."""
        self.close()

    async def __aexit__(self, *_: object) -> None:
        """Close the cast."""
        await run_in_thread(self.close, self.runner.stop)

    # -- parts --------------------------------------------------------------------------

    @property
    def edit(self) -> Edits:
        """Methods that edit the cast between two steps, such as ``cast.edit.set("plan.approved", True)``."""
        return Edits(self.runner)

    @property
    def approvals(self) -> Approvals:
        """The requests that await a person's approval, with methods such as ``cast.approvals.approve()``."""
        return Approvals(self.runner)

    @property
    def breakpoints(self) -> CastBreakpoints:
        """The breakpoints of the cast, with methods such as ``cast.breakpoints.add("Socket-3", kind="after")``."""
        stops = self.runner.stops
        assert isinstance(stops, CastBreakpoints)  # noqa: S101 - see __init__
        return stops

    @property
    def pins(self) -> Pins:
        """The pinned answers of the cast (R40), with methods such as ``cast.pins.add("Socket-3", "done")``."""
        return Pins(self.runner)

    @property
    def export(self) -> Exports:
        """Methods that export the cast as a page, a recording or a test, such as ``cast.export.page("cast.html")``."""
        return Exports(self.runner)

    @property
    def labels(self) -> Labels:
        """The labels of the cast and its steps, with methods such as ``cast.labels.add(3, note="too long")``."""
        return Labels(self.runner)

    def show(self, panel: str | None = None, *, height: int | None = None) -> Any:
        """Display the cast, or one of its panels, as a widget.

        The panels include ``graph``, ``items``, ``state`` and ``timeline``. Displaying the cast again in the same cell
        closes the previous widget.

        Args:
            panel: the name of the panel to display; by default all panels.
            height: the height in pixels; by default 560 for all panels, or the height of the single panel.

        Raises:
            MateriaError: the panel does not exist (``unknown_panel``).
        """
        panels = lookup("panels of a cast")
        if panel is None:
            return panels.show(self, height=height)
        return panels.show_part(self, panel, height=height)

    @property
    def agents(self) -> AgentTable:
        """The agents of the cast, with methods such as ``cast.agents.set("Write", function)``."""
        return self.runner.agents

    # -- inspecting ---------------------------------------------------------------------

    @property
    def now(self) -> Snapshot:
        """A snapshot of the cast in its current state, with its prompt, requests, usage and warnings.

        A snapshot never changes.
        """
        return self.runner.snapshot()

    def at(self, step: int, branch: int | None = None) -> Snapshot:
        """Return a snapshot of the cast after step number ``step``; 0 is the start of the cast.

        With ``branch``, the step is looked up in the abandoned branch with this number.
        """
        return self.now.at(step, branch)

    @property
    def id(self) -> str:
        """The id of the cast, which is also the name of its run directory."""
        return self.runner.run_dir.path.name

    @property
    def run_dir(self) -> Path:
        """The directory that contains the journal and the other files of the cast."""
        return self.runner.run_dir.path

    @property
    def graph(self) -> Graph:
        """The loadout that this cast runs."""
        return self.runner.rules.graph

    @property
    def _session(self) -> Session:
        self.runner.refresh()
        return self.runner.session

    @property
    def status(self) -> Status:
        """The status of the cast: ``ready``, ``waiting``, ``held``, ``complete``, ``failed`` or ``aborted``."""
        return self._session.state.status

    @property
    def state(self) -> Mapping[str, JSON]:
        """The JSON state that all sockets share."""
        return self._session.state.data

    @property
    def steps(self) -> StepList:
        """The completed steps in order, displayed as a table; ``steps[-1]`` is the latest step. See :class:`StepList`."""
        return steps_of(self._session, self.graph)

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order, each as a tuple of the socket, the visit number, the item key and the item label."""
        return self.now.route

    @property
    def failure(self) -> Failure | None:
        """The reason why the cast failed or was aborted, or None."""
        return self._session.state.failure

    def why(self, step: int | None = None, *, lane: str | None = None) -> Why:
        """Explain why the cast continued at the next socket after a step.

        Args:
            step: the number of the step; by default the latest step.
            lane: the name of the current or most recent lane that contains the step; by default the cast itself.

        Raises:
            MateriaError: the step (``no_step``) or the lane (``unknown_lane``) does not exist.
        """
        return self.now.lane(lane).why(step)

    @property
    def follow(self) -> Followers:
        """Methods that register callbacks for a running cast, such as ``cast.follow.changes(function)``."""
        return self.runner.followers

    def usage(self, *by: str) -> UsageView:
        """Return the tokens, cost and time used, grouped by socket, materia, work item, or a combination of them.

        The usage of abandoned steps is included. The result is displayed as a table with a total. Iterating over it
        yields the rows, and ``frame()`` returns a pandas data frame::

            cast.usage("socket", "item")

        Args:
            by: the groups, each ``socket``, ``materia`` or ``item``; by default ``socket``.

        Raises:
            MateriaError: a group does not exist (``unknown_group``).
        """
        from materia_nb.cast.views.tables import UsageView
        from materia_nb.insight.estimate import usage_by

        groups = by or ("socket",)
        return UsageView(groups, usage_by(self.runner.rules, self._session, groups), self.graph.names)

    @property
    def files(self) -> FilesView:
        """The files that each step changed, if snapshots are stored. ``cast.files.difference(3)`` returns a patch."""
        from materia_nb.cast.views.tables import FilesView

        return FilesView(self.now)

    def blame(self, path: str) -> BlameView:
        """List the changes to a value in the state, latest first, each with its step, answer and rule.

        The result is displayed as a table; iterating over it yields each change with its ``step``, ``rule`` and
        ``source``.

        Args:
            path: the dotted path of the value, such as ``workItems.0.title``.

        Raises:
            MateriaError: the path is empty (``bad_path``), or this engine cannot cast the loadout (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import BlameView
        from materia_nb.insight.values import blame_value

        self.now.require_castable()
        path_segments(path)
        return BlameView(path, blame_value(self._session, path), self.graph.names)

    def replay(self, loadout: object) -> ReplayView[Cast]:
        """Replay the recorded answers of the cast in another loadout, without running agents or processes.

        The result is true if the route differs. Its attributes are ``route``, ``first`` (the first difference and its
        reason), ``needs`` (the answer that was not recorded) and ``changed_prompts`` (the steps whose prompt differs).

        Args:
            loadout: a graph (``wb.graph(name)``), the result of ``wb.loadouts.show(name)``, or a config as a mapping.

        Raises:
            MateriaError: the loadout has problems or is of another type (``bad_loadout``), or this engine cannot cast
                the recorded loadout (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import ReplayView
        from materia_nb.insight.replay import replay_answers

        self.now.require_castable()
        rules = Rules(graph_of(loadout)).in_session(self.runner.rules.session or self.id)
        replay = replay_answers(self.now.compared_cast, rules)
        return ReplayView(replay, lambda: self._resume_like_this(runner_factory.replay_directory(self.runner, replay)))

    def __repr__(self) -> str:
        """Return the status without ids or times, so that stored outputs of notebooks can be compared."""
        from materia_nb.cast.views.status import status_text

        return status_text(self.now)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        from materia_nb.cast.views.status import cast_view

        return cast_view(self.now)._repr_mimebundle_()

    # -- continuing ---------------------------------------------------------------------

    def step(self, *, ask: bool = True) -> StepRecord | None:
        """Run one socket and return its step, or None if the cast ended because no socket was left.

        If a person must answer the socket, the cast waits for the answer. If the socket is interrupted, the cast also
        waits, and the next step runs the socket again.

        Args:
            ask: False to only enter the socket, so that its prompt can be read and edited before its agent is called.

        Raises:
            MateriaError: the cast has ended or is on hold.
        """
        with self.runner.lock(), self.runner.change():
            if ask:
                self.runner.stop.clear()
                return self.runner.advance(once=True)
            if self.status == "ready":
                self.runner.enter()
            elif self.status != "waiting":
                raise stopped_error(self.runner.session)
            if self.status != "ready":
                self.runner.write_derived()
            return self.steps[-1] if self.runner.session.state.waiting_at else None

    def run(self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None) -> Pause:
        """Run steps until the cast ends or must stop, and return the reason.

        The run stops before the socket ``until`` and before breakpoints, except at the socket where the run starts. A
        breakpoint for refused outputs stops the run before the repair turn.

        Args:
            until: the id or name of the socket to stop before (``end`` to stop before the cast completes), or a
                function that is called with the cast before each step and returns True to stop. By default, the run
                does not stop early.
            steps: the maximum number of steps; unlimited by default.

        Raises:
            MateriaError: the cast has already ended or is on hold. If it failed, the error describes the failure.
        """
        with contextlib.closing(self._running(until, steps, unattended=not callable(until))) as running:
            while True:
                try:
                    next(running)
                except StopIteration as end:
                    pause: Pause = end.value
                    return pause

    async def arun(self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None) -> Pause:
        """Run steps like :meth:`run`, but without blocking the caller's event loop. Coroutine agents use the same loop.

        Cancelling the call stops the cast like an interrupt, and the cast can be continued. A function that is not a
        coroutine cannot be stopped, so the cast abandons it and discards its answer.
        """
        return await run_in_thread(partial(self.run, until, steps=steps), self.runner.stop)

    async def astream(
        self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None
    ) -> AsyncIterator[StepRecord]:
        """Run steps like :meth:`arun`, and yield each completed step. The next step starts when the caller requests it.

        While the caller handles a step of a lane, running agents and processes of other lanes continue, but no new jobs
        start.
        """
        running = self._running(until, steps)
        try:
            while (step := await run_in_thread(partial(next, running, None), self.runner.stop)) is not None:
                yield step
        finally:
            await run_in_thread(running.close, self.runner.stop)

    def _running(
        self, until: str | Callable[[Cast], bool] | None, steps: int | None, *, unattended: bool = False
    ) -> Generator[StepRecord, None, Pause]:
        """Yield each step of a run, write the derived files, and return the reason why the run stopped.

        ``unattended`` is True if the caller does nothing between two steps.
        """
        if isinstance(until, str) and until != END:
            until = self.graph.find_socket(until)
        if self.status not in ("ready", "waiting"):
            raise stopped_error(self.runner.session)
        with self.runner.lock(), self.runner.change():
            self.runner.stop.clear()
            self.runner.running = True
        steps_taken, broken_off, started = 0, False, time.monotonic()

        def stops_after(lane: str) -> bool:
            nonlocal broken_off
            broken_off = self.breakpoints.reached(lane) or broken_off
            return broken_off

        try:
            while not (pause := self._pause(until, steps, steps_taken, broken_off=broken_off)):
                if self.runner.rules.graph.regions and self.runner.lanes_are_next:
                    yield from self._through_lanes(stops_after, once=steps is not None)
                else:
                    with self.runner.lock(), self.runner.change():
                        has_followers = self.runner.followers.wants_each_step()
                        self.runner.batches_writes = unattended and not has_followers and not self.runner.stops
                        step = self.runner.advance(stops_after)
                    if step is not None:
                        yield step
                steps_taken += 1
        except BaseException:
            with contextlib.suppress(MateriaError):
                self.runner.write_now()
            raise
        finally:
            self.runner.running = self.runner.batches_writes = False
        self.runner.write_now()
        if self.runner.on_run_stopped is not None:
            self.runner.on_run_stopped(self.now, pause, time.monotonic() - started)
        return pause

    def _through_lanes(self, stops_after: Callable[[str], bool], *, once: bool) -> Iterator[StepRecord]:
        """Yield each step of the lanes. The lock of the cast is released between two steps."""
        lane_steps = self.runner.advance_lanes(stops_after, once=once)
        try:
            while True:
                with self.runner.lock(), self.runner.change(), computing():
                    step = next(lane_steps, None)
                if step is None:
                    return
                yield step
        finally:
            with self.runner.lock():
                lane_steps.close()

    def _pause(
        self, until: str | Callable[[Cast], bool] | None, steps: int | None, steps_taken: int, *, broken_off: bool
    ) -> Pause | None:
        """Return the reason why a run must stop now, or None if it can continue.

        ``broken_off`` is True if a breakpoint before a repair turn was reached.
        """
        status = self.status
        if status in END_PAUSES:
            return END_PAUSES[status]
        if self.runner.stop.is_set():
            return "stopped"
        if broken_off or (steps_taken and (status == "waiting" or self.runner.stuck)) or status == "held":
            return "breakpoint" if broken_off else "person"
        if steps is not None and steps_taken >= steps:
            return "steps"
        if steps_taken and self.breakpoints.reached():
            return "breakpoint"
        if callable(until):
            result = until(self)
        else:
            result = steps_taken > 0 and until is not None and self.now.next_socket == until
        return "until" if result else None

    def reply(self, answer: str | Mapping[str, JSON], *, lane: str | None = None) -> StepRecord:
        """Answer the socket that waits for a person, the question of an agent, or the socket that failed.

        An object is converted to the handoff format of the socket. If an agent has put the cast on hold, a string
        continues the conversation with the agent. If the cast failed or was aborted during a visit, the answer replaces
        the missing answer of the agent, or the missing stdout of the utility (R6-R10). The journal, ``why`` and the
        timeline show that a person answered.

        An answer that violates the handoff rules is refused with all of its issues: nothing is recorded, no repair turn
        is used up, and the socket keeps waiting (R42).

        Args:
            answer: a string or a JSON object; in a notebook also a ``$variable``.
            lane: the name of the lane that waits or has stopped; by default the only lane that failed or waits for a
                person, if lanes are running.

        Raises:
            ~materia_nb.handoff.checks.RefusedAnswer: the answer violates the handoff rules; ``issues`` lists the
                details.
            MateriaError: no agent waits for an answer (``not_waiting``, ``not_an_agent``), the lane is not running
                (``unknown_lane``), or the cast stopped after a complete answer (``nothing_owed``).
        """
        if lane is None and self.status == "held" and isinstance(answer, str):
            return self.approvals.answer(answer)
        in_lanes = lane is not None or lanes_at_work(self.runner.session) is not None
        work = self.runner.work_of_lane(lane) if in_lanes else self.runner
        with self.runner.lock(), self.runner.change():
            if self.status == "ready" and not in_lanes:
                self.runner.enter()
            try:
                if work.session.state.status == "held" and isinstance(answer, str):
                    work.run_command(approvals.answer_hold, clean(answer))
                else:
                    self._reply_in(work, answer)
            finally:
                self.runner.write_derived()
            return work.session.steps[-1]

    def _reply_in(self, work: Work, answer: str | Mapping[str, JSON]) -> None:
        """Apply a person's answer to the waiting visit, or to the visit at which the cast or the lane stopped."""
        state = work.session.state
        has_failed = self.failure is not None or state.failure is not None
        visit = state.at if has_failed else decide.waiting_visit_of(work.session)
        socket_rules = None if visit is None else work.rules.sockets[visit.socket]
        if socket_rules is not None and socket_rules.socket.is_utility and not has_failed:
            message = f"{self.graph.names[socket_rules.socket.id]} is a utility, so a process answers it."
            raise MateriaError(message, hint="run it with `step`", kind="not_an_agent")
        reply = validate_reply(copy_answer(answer), "The reply", None if socket_rules is None else socket_rules.write)
        if has_failed:
            self.runner.by_hand(work, reply, clean(reply.text))
        else:
            decide.check_reply(work.rules, work.session, clean(reply.text))
            work.handle_reply(reply)

    def refine(self, message: str) -> StepRecord:
        """Ask a multi-turn agent to change its draft, in the conversation of the current visit.

        Args:
            message: a description of the requested change.
        """
        return self.runner.run_command_and_ask(self.runner, decide.refine, clean(message))

    def accept(self, decision: str | None = None, *, lane: str | None = None) -> StepRecord:
        """Accept an agent's draft and ask for its final result, or accept an output that put the cast on hold.

        Args:
            decision: the verdict on the output that put the cast on hold (``satisfied`` or ``not_satisfied``), or the
                socket at which to continue; by default the verdict in the output.
            lane: the name of the lane on hold, which is required if there are several.

        Raises:
            MateriaError: there is no draft and the cast is not on hold (``not_held``), or the socket does not exist.
        """
        if decision is lane is None and self.status != "held" and not self.runner.lanes_at_work:
            return self.runner.run_command_and_ask(self.runner, decide.finalize)
        word = None if decision is None else decision.replace(" ", "_")
        satisfied = next((result.satisfied for result, condition in GUARD_FOR.items() if condition == word), None)
        approvals = self.approvals if lane is None else self.approvals.in_lane(lane)
        return approvals.decide(satisfied=satisfied, target=decision if satisfied is None else None)

    def stop(self) -> None:
        """Stop a run from another thread. The running step is interrupted and can be run again."""
        self.runner.stop.set()

    def abort(self, reason: str = "stopped by the person", *, leave: bool = False) -> None:
        """Abort the cast at its current socket; ``retry`` continues it.

        A step that is running in another thread is stopped first.

        Args:
            reason: the reason to record in the journal.
            leave: True to abandon a running function that does not return, and to discard its answer. A function in the
                main thread can only be ended by interrupting the kernel.

        Raises:
            MateriaError: the cast has already ended (``over``).
        """
        if leave:
            self.runner.stop.abandon()
        self.runner.stop.set()
        with self.runner.lock(), self.runner.change():
            if self.status not in ("ready", "waiting", "held"):
                message = f"The cast {self.runner.session.state.status_phrase}, so it cannot be aborted."
                raise MateriaError(message, hint=CONTINUATION_HINTS[self.status], kind="over")
            self.runner.record_events(decide.abort(self.runner.rules, self.runner.session, reason, now()))
            self.runner.write_derived()

    def retry(self, *, turn: bool = False, limit: bool = False) -> StepRecord | None:
        """Continue a cast that failed or was aborted, by running its socket again from the first prompt.

        Args:
            turn: True to repeat only the interrupted turn, with the same prompt, conversation and completed tool calls.
            limit: True to raise, one time only, the limit that stopped the cast, and to continue.

        Raises:
            MateriaError: the cast has not stopped (``not_stopped``), no socket or turn can be run again
                (``nothing_to_send``, ``nothing_owed``), a limit stopped the cast after an answer (``at_limit``), or
                both options are set (``usage``).
        """
        if turn and limit:
            raise usage_error("A retry can repeat the turn or raise the limit, but not both.")
        if turn:  # a turn that already waits, perhaps with an edited prompt, only needs to be asked
            command = decide.retry_turn if self.now.prompt is None else lambda *_: ()
            return self.runner.run_command_and_ask(self.runner, command)
        failure, steps = self.failure, len(self.steps)
        if failure is not None and failure.blocked and not limit:
            raise MateriaError(
                f"{self.now.names.get(failure.socket or '', 'The socket')} has answered; a limit stopped the cast after the answer.",
                hint=f"continue past the limit with `retry --limit`, or ask {failure.socket} again with `back {steps - 1}`, then `step`",
                kind="at_limit",
            )
        with self.runner.lock(), self.runner.change():
            self.runner.run_command(decide.raise_limit if limit else decide.retry)
            self.runner.stop.clear()
            if self.status in ("ready", "waiting"):
                return self.runner.advance(once=True)
            self.runner.write_derived()
            return self.steps[-1] if self.steps else None

    def skip(self, note: str, *, item: bool = False) -> StepRecord:
        """Continue a failed cast without an output of the socket at which it failed, or without the whole work item.

        The state does not change, and the cast follows the first ``always`` edge (R3). The journal stores the note.

        Args:
            note: the reason, which ``why`` displays.
            item: True to skip the whole work item and start the next one (R46).

        Raises:
            MateriaError: the note is blank (``usage``), the cast has not stopped (``not_stopped``), the last socket had
                already answered (``nothing_owed``), or there is no current work item (``no_item``).
        """
        with self.runner.lock(), self.runner.change():
            self.runner.run_command(decide.skip_item if item else decide.skip, clean(note))
            self.runner.stop.clear()
            self.runner.write_derived()
            return self.steps[-1]

    def back(self, step: int, *, files: bool = False, discard_edits: bool = False) -> None:
        """Go back to an earlier step, so that the cast continues from there.

        Later steps become an abandoned branch, and your later edits are applied again. The project's files do not
        change unless ``files`` is set.

        Args:
            step: the number of the step to continue from; 0 for the start of the cast.
            files: True to also restore the project's files as saved after that step; the current files are saved first.
            discard_edits: True to discard the edits that were made after that step.

        Raises:
            MateriaError: the step does not exist (``no_step``), its files were not saved (``not_kept``), a file that
                has no saved copy would be overwritten (``in_the_way``), an edit cannot be applied to the earlier state
                (``edits_lost``), or the cast did not continue from that step (``back``). Nothing is changed in these
                cases.
        """
        number = self.steps.at(step).number if step else 0
        command = partial(decide.back_to, discard_edits=discard_edits)
        self.runner.refuse_while_running()
        self.runner.write_now()  # the files of the abandoned steps, which the journal names (R43)
        if files:
            self.runner.back_with_files(command, number)
        else:
            self.runner.edit(command, number)
        self.runner.write_now()

    def fork(self, step: int | None = None, *, root: Path | None = None) -> Cast:
        """Start another cast from a step, in a run directory of its own; this cast does not change (R55).

        A read-only cast can be forked too, even while another program runs it. A cast of the reference engine is
        replayed in its own loadout up to the step.

        The new cast has copies of the agents, pins and breakpoints, so later changes in one cast do not affect the
        other (R47).

        Args:
            step: the number of the step after which the fork starts, without later edits; 0 for the start of the cast.
                By default, the fork starts from the current state with all edits.
            root: the parent directory of the new run directory; by default the parent directory of this cast.

        Raises:
            MateriaError: the step does not exist (``no_step``), or the cast later went back to a step before it (``back``).
        """
        number = self.steps.at(step).number if step else step
        if self.runner.reading is not None and not self.runner.reading.ours:
            cast = self.replay(self.graph).continue_cast()
            if number is not None and number < len(cast.steps):
                cast.back(number)
            return cast
        return self._resume_like_this(runner_factory.fork_directory(self.runner, number, root))

    def _resume_like_this(self, path: Path) -> Cast:
        """Resume the cast at ``path`` with the agents, breakpoints and pinned functions of this cast."""
        runner = runner_factory.resume_like(self.runner, path)
        try:
            cast = Cast(runner)
            cast.breakpoints.copy_from(self.breakpoints)
            runner.definitions = self.runner.definitions
            return cast  # noqa: TRY300 - an interrupt at this point must release the lock too
        except BaseException:
            runner.close()
            raise

    def attempt(
        self,
        socket: str | None = None,
        n: int = 1,
        agents: Sequence[object] | None = None,
        prompts: Sequence[Wording | None] | None = None,
        *,
        at_once: int = 1,
    ) -> Attempts:
        """Ask for several answers to the waiting or next turn, and compare them side by side.

        The cast does not change: nothing is written to the journal, the usage is not added, and tools with side effects
        wait for approval. To use one of the attempts as the answer, call ``take``::

            tried = cast.attempt("Socket-3", n=2, agents=["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"])
            tried.take(3)  # or tried.pin(3)

        Args:
            socket: the expected id of the waiting or next socket; an error is raised if it is another socket.
            n: the number of attempts for each combination of agent and prompt.
            agents: the agents to call, in any format that ``Workbench.agent`` accepts; by default the agent of the
                socket.
            prompts: the prompts to use: a string that replaces the prompt of the materia and may use the same
                variables, a mapping that replaces prompt layers by name, or None for the unchanged prompt, which is the
                default.
            at_once: the number of attempts that run in parallel, in threads.

        Returns:
            The attempts, displayed as a table. ``cast.now.attempts`` also returns them, even after an interrupt. If an
            agent fails, its attempt has no answer.

        Raises:
            MateriaError: no turn of an agent is waiting at the socket (``not_waiting``, ``not_an_agent``).
        """
        self.runner.attempts = attempts = Attempts(self.runner, socket, n, agents, prompts)
        attempts.ask(at_once)
        return attempts


def open_cast(path: Path, agents: AgentTable | None = None) -> Cast:
    """Open a run directory read-only; see :func:`materia_nb.cast.runner_factory.open_runner`."""
    return Cast(runner_factory.open_runner(path, agents))


def resume_cast(
    path: Path, agents: AgentTable | None = None, *, utilities: tuple[Path, ...] = (), sync: bool = False
) -> Cast:
    """Open a run directory in order to continue its cast; see :func:`materia_nb.cast.runner_factory.resume_runner`."""
    return Cast(runner_factory.resume_runner(path, agents, utilities=utilities, sync=sync))


def start_cast(plan: runner_factory.Plan, request: str, agents: AgentTable | None = None) -> Cast:
    """Start a cast; see :func:`materia_nb.cast.runner_factory.start_runner`."""
    return Cast(runner_factory.start_runner(plan, request, agents))
