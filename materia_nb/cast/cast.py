"""One cast, with methods to inspect, continue, change and fork it.

A cast stops only between steps. Waiting for a person ends the call, and the next call continues.
"""

from __future__ import annotations

import contextlib
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
from materia_nb.cast.cast_breakpoints import OVER, CastBreakpoints, Pause
from materia_nb.cast.edits import Approvals, Edits, Labels, Pins
from materia_nb.cast.exports import Exports
from materia_nb.cast.formatting import StepList, steps_of
from materia_nb.cast.runner import Followers, Runner
from materia_nb.cast.snapshot import Snapshot, graph_of
from materia_nb.cast.work import Work, clean, given, now, over
from materia_nb.engine import approvals, decide
from materia_nb.engine.events import Events
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, lanes_at_work
from materia_nb.engine.state import NEXT, Failure, Status
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import GUARD_FOR
from materia_nb.platform import computing
from materia_nb.registry import lookup

if TYPE_CHECKING:
    from materia_nb.cast.views.compare_view import BlameView, ReplayView
    from materia_nb.cast.views.tables import FilesView, SpentView
    from materia_nb.insight.replay import Replay
    from materia_nb.insight.why import Why


class Cast(AbstractContextManager["Cast"], AbstractAsyncContextManager["Cast"]):
    """One run of a loadout, created by ``Workbench.cast`` or ``Workbench.open``. ``with`` and ``async with`` close it.

    Attributes:
        runner: the runner of the cast; panels use it to see whether a step is running.
    """

    def __init__(self, runner: Runner) -> None:
        """Create the user interface of the cast that ``runner`` runs."""
        self.runner = runner
        runner.followers.follow(self)
        if not isinstance(runner.stops, CastBreakpoints):
            runner.stops = CastBreakpoints(runner)

    def close(self) -> None:
        """Release the journal and the lock. The cast can still be inspected."""
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
        """The methods that edit the cast between steps: ``cast.edit.items(...)``, ``cast.edit.set("plan.approved", True)``."""
        return Edits(self.runner)

    @property
    def approvals(self) -> Approvals:
        """Requests that a person must approve: ``cast.approvals.approve()``, ``cast.approvals.allow("bash")``."""
        return Approvals(self.runner)

    @property
    def breakpoints(self) -> CastBreakpoints:
        """The breakpoints: ``cast.breakpoints.add("Socket-3", kind="after")``, ``cast.breakpoints.watch("plan.approved")``."""
        stops = self.runner.stops
        assert isinstance(stops, CastBreakpoints)  # noqa: S101 - see __init__
        return stops

    @property
    def pins(self) -> Pins:
        """The pinned answers (R40): ``cast.pins.add("Socket-3", "done")``, ``cast.pins.remove(...)``."""
        return Pins(self.runner)

    @property
    def export(self) -> Exports:
        """Methods that export the cast as a page, a recording or a test: ``cast.export.page("cast.html")``."""
        return Exports(self.runner)

    @property
    def labels(self) -> Labels:
        """The labels of the cast and its steps: ``cast.labels.add(3, note="too long")``, ``cast.labels.of(3)``."""
        return Labels(self.runner)

    def show(self, panel: str | None = None, *, height: int | None = None) -> Any:
        """Show the cast, or one of its panels, as a widget.

        Panels are for example ``graph``, ``items``, ``state`` and ``timeline``. Showing the cast again in the same cell
        closes the earlier widget.

        Args:
            panel: the name of one panel; all panels if left out.
            height: the height in pixels; 560 for all panels if left out.

        Raises:
            MateriaError: there is no such panel (``unknown_panel``).
        """
        panels = lookup("panels of a cast")
        if panel is None:
            return panels.show(self, height=height)
        return panels.show_one(self, panel, height=height)

    @property
    def agents(self) -> AgentTable:
        """The agents of the cast; for example, ``cast.agents.set("Write", function)`` sets one."""
        return self.runner.agents

    # -- inspecting ---------------------------------------------------------------------

    @property
    def now(self) -> Snapshot:
        """A snapshot of the cast at this moment, with its prompt, requests, usage and warnings.

        A snapshot never changes.
        """
        return self.runner.snapshot()

    def at(self, number: int, branch: int | None = None) -> Snapshot:
        """Return a snapshot of the cast after a step; ``branch`` is the number of an abandoned branch."""
        return self.now.at(number, branch)

    @property
    def id(self) -> str:
        """Id of the cast, also the name of its run directory."""
        return self.runner.files.path.name

    @property
    def run_dir(self) -> Path:
        """Directory with the journal and the other files of the cast."""
        return self.runner.files.path

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
        """``ready``, ``waiting``, ``held``, ``complete``, ``failed`` or ``aborted``."""
        return self._session.state.status

    @property
    def state(self) -> Mapping[str, JSON]:
        """The JSON state that the sockets share."""
        return self._session.state.data

    @property
    def steps(self) -> StepList:
        """The completed steps in order, shown as a table; ``steps[-1]`` is the latest. See :class:`StepList`."""
        return steps_of(self._session, self.graph)

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order, each with its socket, visit number, item key and item label."""
        return self.now.route

    @property
    def failure(self) -> Failure | None:
        """The reason why the cast failed or was aborted, or None."""
        return self._session.state.failure

    def why(self, step: int | None = None, *, lane: str | None = None) -> Why:
        """Explain why the cast continued at the socket that followed a step.

        Args:
            step: a step number; the latest if left out.
            lane: the current or most recent lane that contains the step, if any.

        Raises:
            MateriaError: there is no such step (``no_step``) or lane (``unknown_lane``).
        """
        return self.now.lane(lane).why(step)

    @property
    def follow(self) -> Followers:
        """Call functions while the cast runs: ``cast.follow.changes(function)``, ``cast.follow.events(CastEnd, function)``."""
        return self.runner.followers

    def usage(self, *by: str) -> SpentView:
        """Return tokens, cost and time by socket (the default), materia, item, or a combination.

        Abandoned steps are included. The result is shown as a table with a total. Iterating yields the rows, and
        ``frame()`` returns a pandas data frame::

            cast.usage("socket", "item")

        Args:
            by: socket, materia or item; socket if left out.

        Raises:
            MateriaError: a name in ``by`` is unknown (``unknown_group``).
        """
        from materia_nb.cast.views.tables import SpentView
        from materia_nb.insight.estimate import usage_by

        groups = by or ("socket",)
        return SpentView(groups, usage_by(self.runner.rules, self._session, groups))

    @property
    def files(self) -> FilesView:
        """The files that each step changed, if snapshots are stored; ``cast.files.difference(3)`` returns a patch."""
        from materia_nb.cast.views.tables import FilesView

        return FilesView(self.now)

    def blame(self, path: str) -> BlameView:
        """List the changes of a state value, latest first, each with its step, answer and rule.

        The result is shown as a table; iterating yields each change with its ``step``, ``rule`` and ``source``.

        Args:
            path: a dotted path into the state, such as workItems.0.title.

        Raises:
            MateriaError: the path is empty (``bad_path``), or the cast is shown from its records only
                (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import BlameView
        from materia_nb.insight.values import blame_value

        self.now.needs_castable()
        path_segments(path)
        return BlameView(path, blame_value(self._session, path))

    def replay(self, loadout: object) -> ReplayView[Cast]:
        """Replay the recorded answers in another loadout and return the route. No agent or process runs.

        The result is true if the route differs. Its attributes are ``route``, ``first`` (the first difference and its
        reason), ``needs`` (the missing answer) and ``asked_otherwise`` (the steps whose prompt differs).

        Args:
            loadout: a graph (``wb.graph(name)``), a shown loadout (``wb.loadouts.show(name)``), or a config as a mapping.

        Raises:
            MateriaError: ``loadout`` is not a loadout or has problems, or the cast is shown from its records only
                (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import ReplayView
        from materia_nb.insight.replay import replay_answers

        self.now.needs_castable()
        rules = Rules(graph_of(loadout)).in_session(self.runner.rules.session or self.id)
        return ReplayView(replay_answers(self.now.side, rules), self._cast_of_replay)

    def __repr__(self) -> str:
        """Return the status without ids and times, so that stored notebook outputs can be compared."""
        from materia_nb.cast.views.status import status_text

        return status_text(self.now)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        from materia_nb.cast.views.status import cast_view

        return cast_view(self.now)._repr_mimebundle_()

    # -- continuing ---------------------------------------------------------------------

    def step(self, *, ask: bool = True) -> StepRecord | None:
        """Run one socket and return its step, or None if the cast ended because no socket was left.

        At a socket for a person, the cast waits for the answer. An interrupted socket also waits, and the next step
        runs it again.

        Args:
            ask: False to only enter the socket, so that its prompt can be read and edited before its agent is asked.
        """
        with self.runner.lock():
            self.runner.begin()
            if ask:
                self.runner.stop.clear()
                return self.runner.advance(once=True)
            if self.status == "ready":
                self.runner.enter()
            elif self.status != "waiting":
                raise over(self.runner.session)
            if self.status != "ready":
                self.runner.write_derived()
            return self.steps[-1] if self.runner.session.state.waiting_at else None

    def run(self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None) -> Pause:
        """Run steps until the cast is over or must stop, and return the reason.

        A run stops before the socket ``until`` and before breakpoints, except at the socket where the run starts. A
        breakpoint on a refused output stops before the repair turn.

        Args:
            until: a socket to stop before (``end`` for the end), or a condition that is tested before each step.
            steps: the maximum number of steps.

        Raises:
            MateriaError: the cast is over. If the cast failed, the error is its failure.
        """
        with contextlib.closing(self._running(until, steps, unattended=not callable(until))) as running:
            while True:
                try:
                    next(running)
                except StopIteration as end:
                    pause: Pause = end.value
                    return pause

    async def arun(self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None) -> Pause:
        """Do the same as :meth:`run` without blocking the event loop of the caller; coroutine agents run on this loop.

        Cancelling the call stops the cast like an interrupt, and the cast can be continued. A function that is not a
        coroutine cannot be stopped: the cast abandons it and discards its answer.
        """
        return await run_in_thread(partial(self.run, until, steps=steps), self.runner.stop)

    async def astream(
        self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None
    ) -> AsyncIterator[StepRecord]:
        """Do the same as :meth:`arun`, but yield each completed step; the next step starts when the caller requests it.

        While the caller handles a step of a lane, running agents and processes of other lanes continue, but no new ones
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
        """Yield each step of a run and return the reason why it stopped. The derived files are written last.

        ``unattended`` is True if the caller does nothing between two steps.
        """
        if isinstance(until, str) and until != END:
            self.graph.require_socket(until)
        if self.status not in ("ready", "waiting"):
            raise over(self.runner.session)
        with self.runner.lock():
            self.runner.begin()
            self.runner.stop.clear()
            self.runner.running = True
        steps_taken, broken_off = 0, False

        def breaks(lane: str) -> bool:
            nonlocal broken_off
            broken_off = self.breakpoints.reached(lane) or broken_off
            return broken_off

        try:
            while not (pause := self._pause(until, steps, steps_taken, broken_off=broken_off)):
                if self.runner.rules.graph.regions and self.runner.lanes_are_next:
                    yield from self._through_lanes(breaks, once=steps is not None)
                else:
                    with self.runner.lock():
                        self.runner.begin()
                        followed = self.runner.followers.wants_each_step()
                        self.runner.goes_on = unattended and not followed and not self.runner.stops
                        step = self.runner.advance(breaks)
                    if step is not None:
                        yield step
                steps_taken += 1
        except BaseException:
            with contextlib.suppress(MateriaError):
                self.runner.write_now()
            raise
        finally:
            self.runner.running = self.runner.goes_on = False
        self.runner.write_now()
        return pause

    def _through_lanes(self, breaks: Callable[[str], bool], *, once: bool) -> Iterator[StepRecord]:
        """Yield each step of the lanes, without holding the lock of the cast between two steps."""
        lane_steps = self.runner.advance_lanes(breaks, once=once)
        try:
            while True:
                with self.runner.lock():
                    self.runner.begin()
                    with computing():
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
        """Return the reason why a run stops now, or None.

        ``broken_off`` is True at a breakpoint before a repair turn.
        """
        status = self.status
        if status in OVER:
            return OVER[status]
        if self.runner.stop.is_set():
            return "stopped"
        if broken_off or (steps_taken and (status == "waiting" or self.runner.stuck)) or status == "held":
            return "breakpoint" if broken_off else "person"
        if steps is not None and steps_taken >= steps:
            return "steps"
        if steps_taken and self.breakpoints.reached():
            return "breakpoint"
        if callable(until):
            reached = until(self)
        else:
            reached = steps_taken > 0 and until is not None and self.now.next_socket == until
        return "until" if reached else None

    def reply(self, answer: str | Mapping[str, JSON], *, lane: str | None = None) -> StepRecord:
        """Answer the socket that waits for a person, a question of an agent, or the socket that failed.

        An object is converted to the handoff format of the socket. An agent that holds the cast receives the text in
        the same conversation. If a cast failed or was aborted within a visit, the text replaces the missing answer of
        the agent, or the missing stdout of the utility (R6-R10). The journal, ``why`` and the timeline show that a
        person answered.

        An answer that breaks the rules of the handoff is refused with all its issues: nothing is recorded, no repair turn
        is used up, and the socket keeps waiting (R42).

        Args:
            answer: text or a value; in a notebook also a $variable.
            lane: the lane, if lanes are running or stopped; may be left out if only one lane failed or waits for a
                person.

        Raises:
            ~materia_nb.handoff.checks.RefusedAnswer: the answer breaks the rules; ``issues`` has the details.
            MateriaError: no agent waits for an answer (``not_waiting``, ``not_an_agent``), there is no such running
                lane (``unknown_lane``), or the cast stopped after a complete answer (``nothing_owed``).
        """
        if lane is None and self.status == "held" and isinstance(answer, str):
            return self.approvals.answer(answer)
        in_lanes = lane is not None or lanes_at_work(self.runner.session) is not None
        work = self.runner.lane_meant(lane) if in_lanes else self.runner
        with self.runner.lock():
            self.runner.begin()
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
        """Handle a person's answer for the waiting visit, or for the visit at which the cast or the lane stopped."""
        state = work.session.state
        stopped = self.failure is not None or state.failure is not None
        visit = state.at if stopped else decide.waiting(work.session)
        socket_rules = None if visit is None else work.rules.sockets[visit.socket]
        if socket_rules is not None and socket_rules.socket.is_utility and not stopped:
            message = f"{socket_rules.socket.id} is a utility, so a process answers it."
            raise MateriaError(message, hint="run it with step", kind="not_an_agent")
        reply = validate_reply(given(answer), "The reply", None if socket_rules is None else socket_rules.write)
        if stopped:
            self.runner.by_hand(work, reply, clean(reply.text))
        else:
            decide.check_reply(work.rules, work.session, clean(reply.text))
            work.handle_reply(reply)

    def refine(self, message: str) -> StepRecord:
        """Ask a multi-turn agent to change its draft, in the conversation of this visit.

        Args:
            message: the requested change.
        """
        return self._record(decide.refine, clean(message))

    def accept(self, decision: str | None = None, *, lane: str | None = None) -> StepRecord:
        """Accept an agent's draft and ask for its final result, or accept the output with which an agent holds the cast.

        Args:
            decision: the verdict (``satisfied`` or ``not_satisfied``) on an output that holds the cast, or a socket to
                continue at; the verdict of the output if left out.
            lane: the held lane, if there are several.

        Raises:
            MateriaError: there is no draft, or nothing is held (``not_held``), or there is no such socket.
        """
        if decision is lane is None and self.status != "held" and not self.runner.lanes_at_work:
            return self._record(decide.finalize)
        word = None if decision is None else decision.replace(" ", "_")
        satisfied = next((result.satisfied for result, condition in GUARD_FOR.items() if condition == word), None)
        approvals = self.approvals if lane is None else self.approvals.in_lane(lane)
        return approvals.decide(satisfied=satisfied, target=decision if satisfied is None else None)

    def _record(self, command: Callable[..., Events], *arguments: object) -> StepRecord:
        self.runner.and_ask(self.runner, command, *arguments)
        return self.steps[-1]

    def stop(self) -> None:
        """Stop a run from another thread. The running step is interrupted and can be run again."""
        self.runner.stop.set()

    def abort(self, reason: str = "stopped by the person", *, leave: bool = False) -> None:
        """Abort the cast at its current socket; retry continues it.

        A step that runs in another thread is stopped first.

        Args:
            reason: the reason, for the journal.
            leave: abandon a function that does not return, and discard its answer. Only an interrupt of the kernel ends
                a function in the main thread.
        """
        if leave:
            self.runner.stop.leave()
        self.runner.stop.set()
        with self.runner.lock():
            self.runner.begin()
            if self.status not in ("ready", "waiting", "held"):
                message = f"The cast {self.runner.session.state.stands} already."
                raise MateriaError(message, hint=NEXT[self.status], kind="over")
            self.runner.keep(decide.abort(self.runner.rules, self.runner.session, reason, now()))
            self.runner.write_derived()

    def retry(self, *, turn: bool = False, limit: bool = False) -> StepRecord | None:
        """Continue where a cast failed or was aborted: run the socket again, from its first prompt.

        Args:
            turn: repeat only the interrupted turn, with the same prompt, conversation and completed tool calls.
            limit: raise the limit that stopped the cast once, and continue.

        Raises:
            MateriaError: the cast has not stopped (``not_stopped``), there is nothing to run or ask again
                (``nothing_to_send``, ``nothing_owed``), a limit stopped it after an answer (``at_limit``), or both options
                are given (``usage``).
        """
        if turn and limit:
            raise MateriaError("Choose either the turn or the limit for a retry, not both.", kind="usage")
        if turn:  # a turn that already waits, perhaps with an edited prompt, only needs to be asked
            return self._record(decide.retry_turn if self.now.prompt is None else lambda *_: ())
        failure, steps = self.failure, len(self.steps)
        if failure is not None and failure.blocked and not limit:
            raise MateriaError(
                f"{failure.socket} has answered; a limit stopped the cast after the answer.",
                hint=f"continue past the limit with retry --limit, or ask {failure.socket} again with back {steps - 1}, then step",
                kind="at_limit",
            )
        with self.runner.lock():
            self.runner.begin()
            self.runner.run_command(decide.raise_limit if limit else decide.retry)
            self.runner.stop.clear()
            if self.status in ("ready", "waiting"):
                return self.runner.advance(once=True)
            self.runner.write_derived()
            return self.steps[-1] if self.steps else None

    def skip(self, note: str, *, item: bool = False) -> StepRecord:
        """Continue a failed cast without the socket where it failed, or without the whole work item.

        The state does not change, and the cast follows the first ``always`` edge (R3). The journal stores the note.

        Args:
            note: the reason, shown by ``why``.
            item: skip the whole work item and start the next one (R46).

        Raises:
            MateriaError: the note is blank (``usage``), the cast has not stopped (``not_stopped``), the last socket had
                already answered (``nothing_owed``), or the cast has no current work item (``no_item``).
        """
        with self.runner.lock():
            self.runner.begin()
            self.runner.run_command(decide.skip_item if item else decide.skip, clean(note))
            self.runner.stop.clear()
            self.runner.write_derived()
            return self.steps[-1]

    def back(self, step: int, *, files: bool = False, discard_edits: bool = False) -> None:
        """Continue from an earlier step.

        Later steps become an abandoned branch, and your later edits are applied again.

        Project files do not change unless ``files`` is set.

        Args:
            step: the step to continue from; 0 is the start.
            files: whether to restore the saved project files of that step too; the current files are saved first.
            discard_edits: whether to continue without the edits made after that step.

        Raises:
            MateriaError: there is no such step (``no_step``), its files were not saved (``not_kept``), a file without a
                saved copy would be overwritten (``in_the_way``), an edit does not fit the earlier state
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
        """Start another cast from a step, in its own directory; this cast does not change (R55).

        A read-only cast can be forked too, also while another program runs it. A cast of the reference engine is
        replayed in its own loadout up to the step.

        The new cast has copies of the agents, pins and breakpoints; later changes in one cast do not affect the other
        cast (R47).

        Args:
            step: the step after which the fork starts, without later edits; 0 is the start. If left out, the fork has
                the current state with all edits.
            root: the parent of the new run directory; by default, the same as for this cast.

        Raises:
            MateriaError: there is no such step (``no_step``), or the cast did not continue from it (``back``).
        """
        number = self.steps.at(step).number if step else step
        if self.runner.reading is not None and not self.runner.reading.ours:
            cast = self.replay(self.graph).go_on()
            if number is not None and number < len(cast.steps):
                cast.back(number)
            return cast
        return self._resume_like_this(runner_factory.fork_directory(self.runner, number, root))

    def _cast_of_replay(self, replay: Replay) -> Cast:
        return self._resume_like_this(runner_factory.replay_directory(self.runner, replay))

    def _resume_like_this(self, path: Path) -> Cast:
        """Resume a cast with the agents, breakpoints and pinned functions of this cast."""
        runner = runner_factory.resume_like(self.runner, path)
        try:
            cast = Cast(runner)
            cast.breakpoints.begin_as(self.breakpoints)
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
        """Ask for several answers to the waiting or next turn, and compare the answers side by side.

        The cast does not change: nothing is written to the journal, the usage is not added, and tools that change
        something wait for approval. ``take`` uses an attempt as the answer::

            tried = cast.attempt("Socket-3", n=2, agents=["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"])
            tried.take(3)  # or tried.pin(3)

        Args:
            socket: the waiting or next socket; a different socket is an error.
            n: the number of attempts for each agent and prompt.
            agents: the agents, each as for ``Workbench.agent``; the agent of the socket if left out.
            prompts: other prompts of the materia, with the same variables, or texts of prompt layers by name; None is
                the unchanged prompt, which is also the default.
            at_once: the number of attempts that run at the same time, in threads.

        Returns:
            The attempts, shown as a table. ``cast.now.attempts`` has the latest ones, also after an interrupt.

        Raises:
            MateriaError: the socket has no waiting turn of an agent (``not_waiting``, ``not_an_agent``). If an agent
                fails, the result is an attempt without an answer.
        """
        self.runner.attempts = attempts = Attempts(self.runner, socket, n, agents, prompts)
        attempts.ask(at_once)
        return attempts


def open_cast(path: Path, agents: AgentTable | None = None) -> Cast:
    """Open a run directory read-only, see :func:`materia_nb.cast.runner_factory.open_runner`."""
    return Cast(runner_factory.open_runner(path, agents))


def resume_cast(
    path: Path, agents: AgentTable | None = None, *, utilities: tuple[Path, ...] = (), sync: bool = False
) -> Cast:
    """Open a run directory to continue the cast, see :func:`materia_nb.cast.runner_factory.resume_runner`."""
    return Cast(runner_factory.resume_runner(path, agents, utilities=utilities, sync=sync))


def start_cast(plan: runner_factory.Plan, request: str, agents: AgentTable | None = None) -> Cast:
    """Start a cast, see :func:`materia_nb.cast.runner_factory.start_runner`."""
    return Cast(runner_factory.start_runner(plan, request, agents))
