"""Immutable snapshots of a cast, which the panel, the magics and the graph pictures display."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.cast.breakpoint import Breakpoint, BreakpointSet
from materia_nb.cast.formatting import StepList, step_at, steps_of
from materia_nb.display.escape import part
from materia_nb.engine import approvals, entering
from materia_nb.engine.cast_warnings import CastWarning, Difference, find_warnings
from materia_nb.engine.conversation import Message, ToolCall
from materia_nb.engine.evolve import session_after
from materia_nb.engine.item_edits import current_iteration
from materia_nb.engine.items import ItemStatus, item_status, item_statuses, iteration_of
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import budget_problem
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Lane, Session, StepRecord, Steps, all_steps, lanes_at_work
from materia_nb.engine.session import label_of as session_label
from materia_nb.engine.state import CastState, Item, Label
from materia_nb.errors import MateriaError, needs_one_of, redact
from materia_nb.handoff.runtime_rules import Approval, ApprovalRequest, can_be_approved, request_of, seal_request
from materia_nb.insight.compare import ComparedCast
from materia_nb.insight.why import Suggestion, conclusion_lines, suggestions_of
from materia_nb.jsonvalue import JSON, as_list, equal_json
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import END, Graph, Iterator
from materia_nb.loadout.vocabulary import WORK_ITEMS
from materia_nb.store.file_snapshots import GIT_FOLDER
from materia_nb.store.rundir import usage_report as report_of

if TYPE_CHECKING:
    from materia_nb.insight.why import Why


LIMITS: Final = frozenset({"repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"})
"""Kinds of failures that a limit causes, such as the maximum number of repair turns (R18, R19, R20)."""
Definitions: TypeAlias = Callable[[], tuple[Mapping[str, JSON], Mapping[str, Path]]]
"""A function that returns the current materia of a workbench by id, and the config directory of each materia."""
RESUME: Final = "resume the cast, or use `cast.fork()` to continue in a copy of the cast"
"""The hint for a read-only cast that can be resumed."""


@dataclass(frozen=True, slots=True)
class Live:
    """The properties of a cast that exist only in this kernel and are not stored in the journal.

    Attributes:
        writable: True if this kernel can continue the cast.
        continue_hint: a hint that explains how to continue a read-only cast.
        writer: the name of the program that has a read-only cast open for writing, or None.
        answer_chunks: the chunks of the current answer that have been received.
        lane_answer_chunks: the chunks of the current answers that have been received, by lane name.
        stop_requested: True if the user has requested a stop.
        stopping: a description of the function or step that a requested stop waits for, or None.
        last_exception: the most recent exception that an agent raised in this kernel, or None.
        attempts: the most recent trial answers for a turn, even if they were interrupted, or None.
        stops: the breakpoints that apply to the cast.
        lost_pins: the names of sockets and materia whose pinned function was lost with an earlier kernel.
        messages: warnings about parts that could not be read and about views that failed.
        differences: the recorded steps after which this engine would have chosen another route.
        definitions: a function that returns the current materia of the workbench; None if there is no workbench.
        agents: the configured agents; see :attr:`~materia_nb.agents.notebook_agents.AgentTable.selected_agents`.
    """

    writable: bool = False
    continue_hint: str = RESUME
    writer: str | None = None
    answer_chunks: Sequence[str] = ()
    lane_answer_chunks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stop_requested: bool = False
    stopping: str | None = None
    last_exception: Exception | None = None
    attempts: Any = None
    stops: BreakpointSet = field(default_factory=BreakpointSet)
    lost_pins: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    definitions: Definitions | None = None
    agents: tuple[object, ...] = ()

    @property
    def writer_name(self) -> str:
        """The name of the program that runs a read-only cast, without the computer name; "" if no program runs it."""
        return (self.writer or "").partition(" on ")[0]


class Snapshot:
    """An immutable view of a cast at one moment.

    Attributes:
        session: the session of the cast at that moment.
        engine: the state of the engine at that moment.
        rules: the rules that the engine applies to the cast.
        graph: the loadout that is cast.
        run_dir: the run directory, which contains the journal of the cast.
        project: the working directory of utilities and agents.
        id: the id of the cast, which is also the name of its run directory.
        problems: the reasons why this engine cannot cast the loadout (R41); empty if it can.
        messages: warnings about parts that could not be read and about views that failed.
        differences: the recorded steps after which this engine would have chosen another route.
        live: the properties that exist only in this kernel; all defaults for a snapshot of an earlier moment.
        request: the request with which the cast was started.
        status: ``ready``, ``waiting``, ``held``, ``complete``, ``failed`` or ``aborted``.
        state: the JSON state that all sockets share.
        latest: the most recent step, or None before the first step.
        visits: the number of visits to each socket, by socket id.
        waiting_at: the visit that is waiting for an output, or None.
        held: the reason why the cast is on hold and the decision that a person must make, or None.
        failure: the reason why the cast failed or was aborted, or None.
        ending_decision: the decision that completed the cast after skipping loops without items, or None.
        change_request: a person's request to change a draft, which replaces the next prompt; None if there is none.
        calls: the tool calls that the agent has made so far in the waiting turn.
        edits: the edits that have not been undone, oldest first.
        can_undo: True if the latest edit can be undone because no step has been completed since the edit.
        abandoned: the steps that were abandoned by going back, one list per branch.
        pins: the pinned answers, by the name of the socket or materia (R40).
        lost_pins: the names of sockets and materia whose pinned function was lost with an earlier kernel.
        is_state_locked: True if the state cannot be edited because this is a lane, or because lanes are running.
        answered_by: a function that returns a short description of a socket's agent, or None if it is unknown.
        usage: the total usage, with the attributes ``input``, ``output``, ``tokens`` and ``cost``.
        writable: True if this kernel can continue the cast.
        breakpoints: the breakpoints that apply to the cast; empty for a snapshot of an earlier moment.
        stopping: the function or step that a requested stop waits for, with the elapsed time, or None.
        attempts: the most recent trial answers for a turn, even if they were interrupted, or None.
    """

    def __init__(
        self,
        session: Session,
        rules: Rules,
        run_dir: Path,
        project: Path,
        *,
        problems: Sequence[str] = (),
        answered_by: Callable[[str], str | None] = lambda _: None,
        live: Live | None = None,
    ) -> None:
        """Create a snapshot of a session.

        Args:
            session: the session of the cast.
            rules: the rules that the engine applies to the cast.
            run_dir: the run directory.
            project: the working directory of utilities and agents.
            problems: the reasons why this engine cannot cast the loadout; empty by default.
            answered_by: a function that returns a description of a socket's current agent, or None if it is unknown.
            live: the properties that exist only in this kernel; by default the snapshot is read-only.
        """
        self.session, self.engine = session, session.state
        self.rules, self.graph = rules, rules.graph
        self.run_dir, self.project, self.id = run_dir, project, run_dir.name
        self.problems, self.answered_by = tuple(problems), answered_by
        engine, live = session.state, live or Live()
        self.request, self.status, self.state = engine.request, engine.status, engine.data
        self.visits, self.usage, self.failure = engine.visits, engine.usage, engine.failure
        self.waiting_at = engine.waiting_at
        self.held = engine.hold if engine.status == "held" else None
        self.latest, self.ending_decision = session.steps.latest, session.ending
        self.calls, self.edits, self.change_request = session.calls, session.edits, session.change_request
        self.pins, self.abandoned = session.pins, session.abandoned
        self.is_state_locked = engine.lane is not None or lanes_at_work(session) is not None
        self.can_undo = live.writable and bool(session.edits) and session.edits[-1].after is engine
        self.live, self.breakpoints, self.lost_pins = live, live.stops, live.lost_pins
        self.writable, self.stopping, self.attempts = live.writable, live.stopping, live.attempts
        self.differences, self.messages = live.differences, list(live.messages)
        self._standings: dict[Iterator, Sequence[ItemStatus]] = {}

    @cached_property
    def breakpoints_hit(self) -> list[Breakpoint]:
        """The breakpoints at which the cast is currently stopped."""
        stops = tuple(self.breakpoints)
        next_socket = self.next_socket if stops else None
        return [breakpoint_ for breakpoint_ in stops if breakpoint_.is_reached(self.rules, self.session, next_socket)]

    @cached_property
    def names(self) -> dict[str, str]:
        """The display names of the sockets and of the end of the graph by id, with unsafe characters escaped."""
        return {id_: part(name, 130) for id_, name in self.graph.names.items()}

    @cached_property
    def steps(self) -> StepList:
        """The completed steps in order; ``steps[-1]`` is the latest step."""
        return steps_of(self.session, self.rules.graph)

    @cached_property
    def all_steps(self) -> StepList:
        """The steps of the cast and of its lanes.

        The steps of the lanes are grouped by lane and follow the step that distributed the work items.
        """
        return StepList(all_steps(self.session), self.rules.graph)

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order, each as a tuple of the socket, the visit number, the item key and the item label."""
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in self.steps]

    @property
    def work_items(self) -> list[JSON]:
        """The work items in the current state; empty if the state contains no list of work items."""
        return list(as_list(self.engine.data.get("workItems")))

    @cached_property
    def lanes(self) -> Mapping[str, LaneSnapshot]:
        """The running lanes by name, or the most recent lanes if none are running, in scheduling order."""
        if not self.session.streams:
            return {}
        return {name: LaneSnapshot(lane, self) for name, lane in self.session.streams[-1].lanes.items()}

    @cached_property
    def lane_of_item(self) -> Mapping[int, LaneSnapshot]:
        """The lane that handles each work item, by the index of the item in the current list."""
        lanes = list(self.lanes.values())
        if not lanes or not equal_json(lanes[0].lane.session.start.data.get(WORK_ITEMS), self.state.get(WORK_ITEMS)):
            return {}  # the items were changed later, or come from another generator
        return {index: lane for lane in lanes for index in lane.indexes}

    def lane(self, name: str | None) -> Snapshot:
        """Return the snapshot of the named lane, or this snapshot if ``name`` is empty.

        Raises:
            MateriaError: the cast has no lane with this name (``unknown_lane``).
        """
        if not name:
            return self
        needs_one_of(name, self.lanes, f"The cast has no lane {name!r}.", "unknown_lane")
        snapshot: Snapshot = self.lanes[name].now
        return snapshot

    def snapshot_for(self, step: StepRecord) -> Snapshot:
        """Return the snapshot of the lane that ran a step of :attr:`all_steps`, or this snapshot if no lane ran it."""
        lanes = (streams.lanes[step.lane] for streams in self.session.streams if step.lane in streams.lanes)
        step_lane = next((lane for lane in lanes if any(other is step for other in lane.session.steps)), None)
        return self if step_lane is None else LaneSnapshot(step_lane, self).now

    @property
    def failed_at(self) -> tuple[str, str]:
        """The id of the socket at which the cast failed and the name of the first failed lane, as a pair.

        A value is "" if it does not apply. Both are "" if a person or the budget stopped all lanes.
        """
        if (failure := self.failure) is None or lanes_at_work(self.session) is None:
            return "" if failure is None else failure.socket or "", ""
        failed = [lane for lane in self.lanes.values() if lane.status == "failed" and lane.now.failure is not None]
        return (failed[0].now.failed_at[0], failed[0].name) if failed and failure.kind == "stream_failed" else ("", "")

    @property
    def at_limit(self) -> bool:
        """True if a limit stopped the cast; ``retry(limit=True)`` raises the limit and continues."""
        failure = self.failure
        return failure is not None and (failure.kind in LIMITS or bool(failure.blocked))

    @property
    def budget_used_up(self) -> bool:
        """True if the cast has used up its budget of turns, tokens, time or cost (R20)."""
        return budget_problem(self.engine) is not None

    @property
    def is_unanswered(self) -> bool:
        """True if the cast failed or was aborted before the current socket answered."""
        state, failure = self.engine, self.failure
        has_stopped = failure is not None and not failure.blocked
        return has_stopped and state.at is not None and state.next is None and not state.pending_route

    def is_answered_by_person(self, socket: str) -> bool:
        """Return True if a person writes the output of a socket."""
        return not self.graph.sockets[socket].is_utility and self.answered_by(socket) in (None, "person")

    @property
    def waits_for_person(self) -> bool:
        """True if a person must answer a turn or a question, accept or change a draft, or approve a tool call."""
        visit = self.waiting_at
        if visit is None:
            return self.held is not None
        is_draft = visit.mode == "draft" and visit.drafts > 0
        return is_draft or bool(self.approvals.asking) or self.is_answered_by_person(visit.socket)

    @cached_property
    def item_statuses(self) -> list[ItemStatus]:
        """The progress of each work item: ``done``, ``being worked on``, ``open`` or ``skipped`` (R46).

        The progress of an item follows from the visits for the item. If several loops iterate over the work items, only
        the current or most recent loop is considered. While lanes are running, only the lane that handles the item is
        considered.
        """
        if (WORK_ITEMS,) not in self.rules.lists:
            return ["open"] * len(self.work_items)
        iteration, _ = current_iteration(self.rules, self.engine, (WORK_ITEMS,))
        statuses = list(self._progress_in(iteration.iterator))
        at_work = lanes_at_work(self.session)
        for lane in at_work.lanes.values() if at_work is not None else ():
            for index in lane.indexes:
                statuses[index] = item_status(lane.session.state, (iteration.iterator.cursor, index, ()))
        return statuses

    def _progress_in(self, iterator: Iterator) -> Sequence[ItemStatus]:
        """Return the progress of each item in the list of an iterator, not counting visits in lanes."""
        if iterator not in self._standings:
            self._standings[iterator] = item_statuses(self.engine, iteration_of(iterator))
        return self._standings[iterator]

    @cached_property
    def loops_entered(self) -> frozenset[str]:
        """The ids of the loops that were entered at least once.

        A loop that shares its cursor with another loop may never be entered, even if its items are done.
        """
        visited_sockets = set(self.visits).union(*(lane.lane.session.state.visits for lane in self.lanes.values()))
        return frozenset(id_ for id_, loop in self.graph.loops.items() if not visited_sockets.isdisjoint(loop.sockets))

    @cached_property
    def loop_progress(self) -> Mapping[str, tuple[int, int]]:
        """The number of completed items (R46) and the total number of items, by the id of each loop over items."""
        progress = {}
        for loop in self.graph.loops.values():
            if loop.iterator is not None:
                statuses, lane = self._progress_in(loop.iterator), self.engine.lane
                if lane is not None and lane.cursor == loop.iterator.cursor:
                    statuses = [statuses[index] for index in lane.indexes]
                progress[loop.id] = (statuses.count("done") if loop.id in self.loops_entered else 0, len(statuses))
        if self.lanes and (streams := self.session.streams[-1]).status != "joined":
            done_count = sum(lane_.done for lane_ in self.lanes.values())
            progress[streams.region.loop] = done_count, sum(len(lane_.indexes) for lane_ in self.lanes.values())
        return progress

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt of the waiting turn, or None if no agent turn is waiting."""
        visit = self.waiting_at
        if visit is None or self.rules.sockets[visit.socket].socket.is_utility:
            return None
        return self.session.prompt

    @property
    def interrupted_prompt(self) -> Prompt | None:
        """The prompt of a failed or aborted turn that can be retried, or None."""
        visit, failure = self.engine.at, self.failure
        if visit is None or failure is None or not failure.again:
            return None
        return None if self.rules.sockets[visit.socket].socket.is_utility else self.session.prompt

    @cached_property
    def next_socket(self) -> str | None:
        """The socket that the next step will run, ``end`` if the cast will complete, or None if the cast is over."""
        visit, target = self.waiting_at, self.engine.next
        if visit is not None:
            return visit.socket
        socket = self.graph.sockets.get(target) if target else None
        if socket is None or socket.iterator is None or self.engine.status != "ready":
            return target
        entered = self._entered_state
        return END if entered.status == "complete" else entered.waiting_at.socket if entered.waiting_at else target

    @cached_property
    def _entered_state(self) -> CastState:
        """The state of the engine after it has entered the next socket and skipped loops that have no items."""
        return entering.enter(self.rules, self.engine).state

    @cached_property
    def upcoming_item(self) -> Item | None:
        """The work item of the waiting visit or of the next visit; None outside a loop."""
        if (visit := self.waiting_at) is not None:
            return visit.item
        if self.engine.next is None or self.engine.status != "ready":
            return None
        visit = self._entered_state.waiting_at
        return visit.item if visit is not None else None

    @cached_property
    def warnings(self) -> tuple[CastWarning, ...]:
        """The warnings about a completed cast (R45); empty until the cast is complete."""
        return find_warnings(self.rules, self.session)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages between the cast and the agent during the current visit, oldest first."""
        return self.session.messages

    @cached_property
    def partial_answer(self) -> str:
        """The part of the current answer that has been received, with secret keys redacted; "" if there is none."""
        return redact("".join(self.live.answer_chunks))

    @property
    def notes(self) -> Sequence[str]:
        """The progress notes that the agent reported during the latest turn of the latest step."""
        return self.steps[-1].notes[self.session.noted_before :] if self.steps else ()

    def pin_name_of(self, socket: str) -> str | None:
        """Return the name of the socket or materia whose pin applies to a socket, or None if no pin applies."""
        pins, materia = self.session.pins, self.graph.sockets[socket].materia.id
        return socket if socket in pins else materia if materia in pins else None

    @cached_property
    def approvals(self) -> ApprovalRequests:
        """The tool calls and commands that wait for a person's approval, and the tools that need no approval."""
        return ApprovalRequests(lambda: self)

    def label_of(self, step: StepRecord | int | None = None) -> Label:
        """Return the label of a step, by default of the cast, with ``name``, ``tags``, ``note``, ``verdict`` and ``by``.

        Raises:
            MateriaError: the cast has no step with this number (``no_step``).
        """
        record = self.steps.at(step) if isinstance(step, int) else step
        if record is not None and record.lane:
            return Label()  # steps of lanes cannot be labelled, since their numbers are not unique
        return session_label(self.session, record)

    @property
    def usage_report(self) -> dict[str, JSON]:
        """The total usage and the usage by socket, materia and work item, in the format of usage.json (R20)."""
        return report_of(self.rules, self.session)

    @property
    def suggestions(self) -> list[Suggestion]:
        """The additions to the project's knowledge that accepted outputs suggest, in order and without duplicates."""
        return suggestions_of(self.rules, self.all_steps, self.session.kept)

    @property
    def conclusion(self) -> list[str]:
        """The lines of the conclusion that the handoff protocols define for a complete cast; empty otherwise."""
        return conclusion_lines(self.rules, self.all_steps) if self.status == "complete" else []

    def require_castable(self) -> None:
        """Raise MateriaError (``not_castable``) if this engine cannot cast the recorded loadout (R41)."""
        require_castable(self.problems, self.run_dir)

    def line(self, branch: int | None = None) -> Sequence[StepRecord]:
        """Return the steps that led to the current state or to the end of an abandoned branch.

        Args:
            branch: the number of an abandoned branch, counting from 0; by default the current state. The steps of a
                branch include the steps that it shares with later branches.

        Raises:
            MateriaError: the branch does not exist (``no_branch``).
        """
        left = self.session.abandoned
        if branch is None:
            return self.session.steps
        if not 0 <= branch < len(left):
            raise MateriaError(
                f"Branch {branch} does not exist; the number of branches is {len(left)}.", kind="no_branch"
            )
        steps_of_branch: list[StepRecord] = list(self.steps)
        for steps in reversed(left[branch:]):
            steps_of_branch[steps[0].number - 1 :] = steps
        return steps_of_branch

    def at(self, step: int, branch: int | None = None) -> Snapshot:
        """Return a snapshot of the cast immediately after a step.

        Args:
            step: the number of the step, counting from 1; 0 for the start of the cast.
            branch: the number of the abandoned branch that contains the step; by default the current steps.

        Raises:
            MateriaError: the step (``no_step``) or the branch (``no_branch``) does not exist.
        """
        steps = self.line(branch)
        count = step_at(steps, step).number - steps[0].number + 1 if step else 0
        line = steps if isinstance(steps, Steps) else Steps(list(steps[:-1]), len(steps) - 1, steps[-1])
        earlier_session = session_after(self.rules, self.session, line.to(count))
        return self.of_session(earlier_session)

    def of_session(self, session: Session, live: Live | None = None) -> Snapshot:
        """Return a snapshot of another session of this cast, such as an earlier session or the session of a lane."""
        arguments = session, self.rules, self.run_dir, self.project
        return Snapshot(*arguments, problems=self.problems, answered_by=self.answered_by, live=live)

    def why(self, step: int | None = None) -> Why:
        """Explain the routing decision of a step, by default the latest step.

        If the step is still waiting, explain the decision of the previous step as well.

        Raises:
            MateriaError: the cast has no steps, or has no step with this number (``no_step``).
        """
        from materia_nb.insight.why import explain

        if not self.steps:
            raise MateriaError("The cast has no step yet.", hint="use `step` first", kind="no_step")
        record = self.steps.at(-1 if step is None else step)
        is_latest = record is self.steps[-1] and self.engine.status == "failed"
        after = self.engine if is_latest else record.after
        next_index = record.number - self.steps[0].number + 1
        next_entry = self.steps[next_index].entry if next_index < len(self.steps) else self.ending_decision
        decision, entry, pinned = record.decision, record.entry, record.pinned
        why = explain(self.rules, record.title, decision, after, entry, onward=next_entry, pinned=pinned)
        if decision is None and next_index > 1:
            source = f"The cast arrived here after step {record.number - 1}."
            return dataclasses.replace(why, lines=(source, *self.why(record.number - 1).lines, why.lines[-1]))
        first = ["A person answered the socket after the failure."] if record.by_hand else []
        if record.skipped is not None:
            first.append(f"A person skipped the socket: {record.skipped}")
        label = self.label_of(record).words
        last = [f"Label: {label}."] if label else []
        return dataclasses.replace(why, lines=(*first, *why.lines, *last), thinking=record.thinking)

    @property
    def compared_cast(self) -> ComparedCast:
        """The data that is needed to compare this cast with another cast."""
        repository = self.run_dir.parent / GIT_FOLDER if self.session.snapshot_method else None
        return ComparedCast(self.id, self.rules, self.session, repository)

    def __repr__(self) -> str:
        """Return a one-line summary with the id, the loadout and the status of the cast."""
        return f"<{self.id}: {self.graph.name!r} {self.status} after {len(self.steps)} steps>"


class ApprovalRequests:
    """The tool calls and commands of a cast that wait for approval, and the tools that run without approval."""

    def __init__(self, take_snapshot: Callable[[], Snapshot]) -> None:
        """Create a view of the snapshot that ``take_snapshot`` returns. The function is called for each access."""
        self._snapshot = take_snapshot

    def __repr__(self) -> str:
        return f"<approvals of {self.cast.id}: {len(self.asking)} asked for>"

    @property
    def cast(self) -> Snapshot:
        """A snapshot of the cast or lane that the requests belong to."""
        return self._snapshot()

    @property
    def asking(self) -> tuple[ToolCall, ...]:
        """The tool calls awaiting approval."""
        return approvals.calls_awaiting_approval(self._snapshot().session)

    @property
    def due(self) -> tuple[ToolCall, ...]:
        """The tool calls that a person has approved or denied, but whose result the agent has not yet received."""
        return tuple(call for call in self.cast.session.open_calls if call.decided is not None)

    @property
    def tools(self) -> dict[str, bool]:
        """The tools with side effects by name, each mapped to True if it runs without approval in this cast."""
        known = approvals.approval_tools(self.cast.rules)
        return {tool: tool in self.allowed for tool in dict.fromkeys([*known, *sorted(self.allowed)])}

    @property
    def request(self) -> ApprovalRequest | None:
        """The command awaiting approval, with a digest that detects later changes to it, or None."""
        hold = self.cast.held
        if hold is None or hold.needs != "approval" or not isinstance(hold.reading.value, dict):
            return None
        request, requested_at = request_of(hold.reading.value), (self.cast.steps[-1].ended or 0) / 1000
        return seal_request(request, requested_at) if can_be_approved(request) else None

    @property
    def current(self) -> Approval | None:
        """The approval of one exact command that the waiting agent has not used yet (R44), or None."""
        approval = self.cast.waiting_at.approval if self.cast.waiting_at else None
        return approval if approval is not None and approval.at(time.time()).status == "PENDING" else None

    @property
    def allowed(self) -> frozenset[str]:
        """The names of the tools with side effects that run without approval in this cast."""
        return self.cast.session.allowed


class LaneSnapshot:
    """An immutable view of a lane at one moment.

    Attributes:
        name: the name of the lane.
        status: ``waiting``, ``running``, ``accepted``, ``failed`` or ``interrupted``.
        error: the reason why the result of the lane was not accepted.
        indexes: the positions of the lane's items in the complete list, in the order in which the lane handles them.
    """

    def __init__(self, lane: Lane, cast: Snapshot) -> None:
        """Create a view of a lane. ``cast`` is the snapshot of the cast that the lane belongs to."""
        self.lane, self.name, self.status, self.error = lane, lane.name, lane.status, lane.error
        self.indexes = lane.indexes
        self._cast = cast

    @cached_property
    def now(self) -> Snapshot:
        """A snapshot of the lane, which can be used like the snapshot of a cast."""
        live, chunks = self._cast.live, self._cast.live.lane_answer_chunks.get(self.name, ())
        return self._cast.of_session(self.lane.session, dataclasses.replace(live, answer_chunks=chunks))

    @property
    def done(self) -> int:
        """The number of work items that the lane has completed."""
        state, lane_scope = self.lane.session.state, self.lane.session.start.lane
        cursor = lane_scope.cursor if lane_scope is not None else ""
        return sum(item_status(state, (cursor, index, ())) == "done" for index in self.indexes)

    @property
    def waits_for_person(self) -> bool:
        """True if the lane is running and waits for a person; see :attr:`Snapshot.waits_for_person`."""
        return self.status == "running" and self.now.waits_for_person

    def __repr__(self) -> str:
        """Return a one-line summary with the status and the progress of the lane."""
        return f"<lane {self.name}: {self.status}, {self.done} of {len(self.indexes)} items done>"


def snapshot_of(value: object) -> Snapshot | None:
    """Return ``value`` if it is a snapshot, or the current snapshot if it is a cast; return None for other values."""
    now = getattr(value, "now", value)
    return now if isinstance(now, Snapshot) else None


def require_castable(problems: Sequence[str], run_dir: Path) -> None:
    """Raise MateriaError (``not_castable``) if there is a problem that prevents this engine from casting the loadout."""
    if problems:
        raise MateriaError(
            f"The loadout of this cast cannot be cast by this engine, so you can only inspect the cast: {problems[0]}",
            where=str(run_dir),
            hint="correct the loadout and start a new cast",
            kind="not_castable",
        )


def graph_of(loadout: object) -> Graph:
    """Return the graph of a loadout, which may be a graph, a config or an object with a ``graph`` attribute.

    Raises:
        MateriaError: the loadout has problems or is a value of another type (``bad_loadout``).
    """
    graph = getattr(loadout, "graph", loadout)
    if isinstance(graph, Mapping):
        return build_graph(graph)
    if isinstance(graph, Graph):
        return graph
    if graph is None:
        raise MateriaError("The loadout has problems.", hint="list them with `%materia check`", kind="bad_loadout")
    raise MateriaError(
        f"The loadout must be a graph or a config, not a value of type {type(loadout).__name__}.",
        hint="pass `wb.graph(name)`, or use `wb.casts.replay(name)`",
        kind="bad_loadout",
    )
