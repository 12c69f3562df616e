"""What can be seen of a cast: a frozen view of its session. Panels, magics and pictures read this."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.cast.breakpoint import Breakpoint, BreakpointSet
from materia_nb.cast.formatting import StepList, nth, steps_of
from materia_nb.display.escape import part
from materia_nb.engine import approvals, entering
from materia_nb.engine.cast_warnings import CastWarning, Difference, find_warnings
from materia_nb.engine.conversation import Label, Message, ToolCall
from materia_nb.engine.evolve import session_after
from materia_nb.engine.item_edits import governing
from materia_nb.engine.items import Standing, standing, standings
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import used_up
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Lane, Session, StepRecord, Steps, all_steps, lanes_at_work
from materia_nb.engine.session import label_of as session_label
from materia_nb.engine.state import Item
from materia_nb.errors import MateriaError, needs_one_of, scrubbed
from materia_nb.handoff.runtime_rules import Approval, ApprovalRequest, can_be_approved, request_of, sealed_from
from materia_nb.insight.compare import ComparedCast
from materia_nb.insight.why import Suggestion, conclusion_lines, suggestions_of
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import WORK_ITEMS
from materia_nb.store.file_snapshots import REPOSITORY
from materia_nb.store.rundir import usage_report as report_of

if TYPE_CHECKING:
    from materia_nb.insight.why import Why


LIMITS: Final = frozenset({"repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"})
"""The kinds of failure in which a limit was reached (R18, R19, R20)."""


Definitions: TypeAlias = Callable[[], tuple[Mapping[str, JSON], Mapping[str, Path]]]
"""Gives the definitions of materia that a workbench has now, and the directories of their config files."""


RESUME: Final = "resume it to continue"
"""How to continue a cast of our own that is open read-only."""


@dataclass(frozen=True, slots=True)
class Live:
    """What is so of a cast only now and here, and stands in no journal.

    Attributes:
        writable: whether it can be gone on with.
        continuing: how to continue it where it is not writable.
        saying: the pieces of an answer that is still coming.
        stop_asked: whether a stop was asked for.
        stopping: what that still waits for.
        raised: what an agent raised last in this kernel.
        attempts: the latest of ``cast.attempt``, also of one that was interrupted.
        stops: where runs stop.
        pins_gone: names pinned to functions of a kernel that is no more.
        messages: what a person is to know of how it was opened, and of views that broke.
        differences: where our engine would not have taken the recorded route.
        definitions: gives what the workbench has of each materia now; None where no workbench has the cast.
        agents: who is set to answer, see :attr:`~materia_nb.agents.notebook_agents.AgentTable.chosen`.
    """

    writable: bool = False
    continuing: str = RESUME
    saying: Sequence[str] = ()
    lanes_saying: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stop_asked: bool = False
    stopping: str | None = None
    raised: Exception | None = None
    attempts: Any = None
    stops: BreakpointSet = field(default_factory=BreakpointSet)
    pins_gone: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    definitions: Definitions | None = None
    agents: tuple[object, ...] = ()


class Snapshot:
    """A cast at one moment; nothing that happens to the cast changes it.

    Attributes:
        session: everything that the cast knew.
        engine: the whole state of the engine.
        rules: what it runs by.
        graph: the loadout that it runs.
        run_dir: its directory.
        project: the directory that utilities and agents work in.
        id: the name of its directory.
        problems: why its loadout cannot be cast here, if it cannot (R41).
        messages: what a person is to know of how it was opened, and of views that broke.
        differences: where our engine would not have taken the recorded route.
        live: what is so only now and here; that of the past is empty.
        request: what the cast was asked to do.
        status: ``ready``, ``waiting``, ``held``, ``complete``, ``failed`` or ``aborted``.
        state: the JSON state that the sockets share.
        latest: the latest step; None before the first.
        visits: how often each socket was entered.
        waiting_at: the visit that owes an output, None when no socket is entered.
        held: what the cast is held for: why, and what a person is asked for; None when it is not held.
        failure: why the cast stopped, when it failed or was aborted.
        ended_by: the decision that skipped empty loops to the end, None when the cast ended otherwise.
        wish: what the person wants changed in the draft, while that is asked in place of the prompt.
        calls: the tool calls of the turn that waits, so far.
        edits: the changes that a person made and did not undo, in order.
        can_undo: whether the last edit can be taken back: nothing was done since.
        abandoned: the steps that were left behind by going back, one branch each.
        pins: what answers in the place of sockets and materia because a person chose it, by their names (R40).
        pins_gone: the names pinned to functions of a kernel that is no more: pin them again, or unpin them.
        lanes_go_on: whether this is a lane, or a cast in the middle of its lanes: nothing is edited that these have begun from.
        answered_by: says who answers an agent's socket, in a word or two; None when nobody can say.
        usage: tokens and cost in all: ``input``, ``output``, ``tokens``, ``cost``.
        writable: whether the cast can be gone on with from where it is held.
        breakpoints: where runs stop; a moment of the past has no breakpoints.
        stopping: what a stop that was asked for still waits for, and for how long; None when it waits for nothing.
        attempts: the latest of ``cast.attempt``, also of one that was interrupted; None before the first.
    """

    def __init__(
        self,
        session: Session,
        rules: Rules,
        run_dir: Path,
        project: Path,
        *,
        problems: Sequence[str] = (),
        answerers: Callable[[str], str | None] = lambda _: None,
        live: Live | None = None,
    ) -> None:
        """Show ``session``.

        ``problems`` is why its loadout cannot be cast here, so that it is shown as recorded; ``answerers``
        tells who answers a socket now, which is not part of the past; ``live`` is what the journal does not hold of
        the present.
        """
        self.session, self.engine = session, session.state
        self.rules, self.graph = rules, rules.graph
        self.run_dir, self.project, self.id = run_dir, project, run_dir.name
        self.problems, self.answered_by = tuple(problems), answerers
        engine, live = session.state, live or Live()
        self.request, self.status, self.state = engine.request, engine.status, engine.data
        self.visits, self.usage, self.failure = engine.visits, engine.usage, engine.failure
        self.waiting_at = engine.waiting_at
        self.held = engine.hold if engine.status == "held" else None
        self.latest, self.ended_by, self.wish = session.steps.latest, session.ending, session.wish
        self.calls, self.edits = session.calls, session.edits
        self.pins, self.abandoned = session.pins, session.abandoned
        self.lanes_go_on = engine.lane is not None or lanes_at_work(session) is not None
        self.can_undo = live.writable and bool(session.edits) and session.edits[-1].after is engine
        self.live, self.breakpoints, self.pins_gone = live, live.stops, live.pins_gone
        self.writable, self.stopping, self.attempts = live.writable, live.stopping, live.attempts
        self.differences, self.messages = live.differences, list(live.messages)

    @cached_property
    def breakpoints_hit(self) -> list[Breakpoint]:
        """The breakpoints that the cast is at, whatever their conditions say."""
        stops = tuple(self.breakpoints)
        upcoming = self.next_socket if stops else None
        return [breakpoint_ for breakpoint_ in stops if breakpoint_.hit(self.rules, self.session, upcoming)]

    @cached_property
    def names(self) -> dict[str, str]:
        """What each socket is called: by its materia's label, behind its id where several have the same."""
        labels = {id_: part(socket.materia.label, 60) for id_, socket in self.graph.sockets.items()}
        count = Counter(labels.values())
        return {id_: label if count[label] == 1 else f"{part(id_)} {label}" for id_, label in labels.items()}

    @cached_property
    def steps(self) -> StepList:
        """Every step so far, in order; ``steps[-1]`` is the latest. It shows itself as a table, see :class:`StepList`."""
        return steps_of(self.session, self.rules.graph)

    @cached_property
    def all_steps(self) -> StepList:
        """The steps of the cast and of its lanes: one lane behind the other, behind the step that handed the items out."""
        return StepList(all_steps(self.session), self.rules.graph)

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order: socket, visit, item key, item label."""
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in self.steps]

    @property
    def work_items(self) -> list[JSON]:
        """The work items in the state; an empty list when there are none."""
        items = self.engine.data.get("workItems")
        return list(items) if isinstance(items, list) else []

    @cached_property
    def lanes(self) -> Mapping[str, LaneNow]:
        """The lanes that are at work, or that the cast had last, by name in the order of the schedule."""
        if not self.session.streams:
            return {}
        return {name: LaneNow(lane, self) for name, lane in self.session.streams[-1].lanes.items()}

    @cached_property
    def lane_of_item(self) -> Mapping[int, LaneNow]:
        """Which of :attr:`lanes` works, or has worked, on an item, by its place in the list as it is now."""
        lanes = list(self.lanes.values())
        if not lanes or not same(lanes[0].lane.session.start.data.get(WORK_ITEMS), self.state.get(WORK_ITEMS)):
            return {}  # the items were changed since, or are those of another generator
        return {index: lane for lane in lanes for index in lane.indexes}

    def lane(self, name: str | None) -> Snapshot:
        """Return one of :attr:`lanes` as a cast is shown; this snapshot itself without a name.

        Raises:
            MateriaError: there is no such lane (``unknown_lane``).
        """
        if not name:
            return self
        needs_one_of(name, self.lanes, f"The cast has no lane {name!r}.", "unknown_lane")
        snapshot: Snapshot = self.lanes[name].now
        return snapshot

    def maker_of(self, step: StepRecord) -> Snapshot:
        """Return the lane that made one of :attr:`all_steps`, as a cast is shown; this snapshot itself if the cast did."""
        lanes = (streams.lanes[step.lane] for streams in self.session.streams if step.lane in streams.lanes)
        maker = next((lane for lane in lanes if any(other is step for other in lane.session.steps)), None)
        return self if maker is None else LaneNow(maker, self).now

    @property
    def failed_at(self) -> tuple[str, str]:
        """The socket where the cast stopped, and the lane if it did so in one: the first that failed.

        Empty where all its lanes stopped with it: by a person, or by the budget.
        """
        if (failure := self.failure) is None or lanes_at_work(self.session) is None:
            return "" if failure is None else failure.socket or "", ""
        failed = [lane for lane in self.lanes.values() if lane.status == "failed" and lane.now.failure is not None]
        return (failed[0].now.failed_at[0], failed[0].name) if failed and failure.kind == "stream_failed" else ("", "")

    @property
    def at_limit(self) -> bool:
        """Whether a limit stopped the cast, which ``revive`` grants once more."""
        failure = self.failure
        return failure is not None and (failure.kind in LIMITS or bool(failure.blocked))

    @property
    def budget_used_up(self) -> bool:
        """Whether what is used reaches the budget (R20)."""
        return used_up(self.engine) is not None

    @property
    def owed(self) -> bool:
        """Whether the socket where the cast failed or was aborted still owes an answer."""
        state, failure = self.engine, self.failure
        stopped = failure is not None and not failure.blocked
        return stopped and state.at is not None and state.next is None and not state.unrouted

    @cached_property
    def standings(self) -> list[Standing]:
        """How each work item stands: ``done``, ``being worked on``, ``open`` or ``skipped``, by its visits (R46).

        Where several loops go over the work items, for the one that the cast is in, or was in last; in lanes that are at work,
        for the lane that each is in.
        """
        if (WORK_ITEMS,) not in self.rules.lists:
            return ["open"] * len(self.work_items)
        walk, _ = governing(self.rules, self.engine, (WORK_ITEMS,))
        statuses = standings(self.engine, walk)
        at_work = lanes_at_work(self.session)
        for lane in at_work.lanes.values() if at_work is not None else ():
            for index in lane.indexes:
                statuses[index] = standing(lane.session.state, (walk.iterator.cursor, index, ()))
        return statuses

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt that is waiting for an answer, None when no agent is asked."""
        visit = self.waiting_at
        if visit is None or self.rules.sockets[visit.socket].socket.is_utility:
            return None
        return self.session.prompt

    @property
    def prompt_cut_short(self) -> Prompt | None:
        """The prompt of a turn that failed or was aborted and can be sent again; None when there is none."""
        visit, failure = self.engine.at, self.failure
        if visit is None or failure is None or not failure.again:
            return None
        return None if self.rules.sockets[visit.socket].socket.is_utility else self.session.prompt

    @cached_property
    def next_socket(self) -> str | None:
        """The socket that the next step runs, None when the cast is over; ``end`` when only the end is left."""
        visit = self.waiting_at
        return visit.socket if visit else self._upcoming()

    @cached_property
    def upcoming_item(self) -> Item | None:
        """The item that the next socket will work on, or that the waiting one works on; None outside items."""
        if (visit := self.waiting_at) is not None:
            return visit.item
        if self.engine.next is None or self.engine.status != "ready":
            return None
        entered = entering.enter(self.rules, self.engine).state
        return entered.at.item if entered.status == "waiting" and entered.at else None

    @cached_property
    def warnings(self) -> tuple[CastWarning, ...]:
        """What is odd about a complete cast, since complete is not the same as good; empty while it is not (R45)."""
        return find_warnings(self.rules, self.session)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What was said in the current visit."""
        return self.session.said

    @cached_property
    def saying(self) -> str:
        """What the agent that is asked has said so far of an answer that is still coming."""
        return scrubbed("".join(self.live.saying))

    @property
    def notes(self) -> Sequence[str]:
        """What the agent of the latest step told a person since it was asked last."""
        return self.steps[-1].notes[self.session.noted_before :] if self.steps else ()

    def pinned_at(self, socket: str) -> str | None:
        """Return the name whose pin answers a socket, its own or its materia's; None when none does."""
        pins, materia = self.session.pins, self.graph.sockets[socket].materia.id
        return socket if socket in pins else materia if materia in pins else None

    @cached_property
    def approvals(self) -> ApprovalsNow:
        """What its agents asked a person for."""
        return ApprovalsNow(lambda: self)

    def label_of(self, step: StepRecord | int | None = None) -> Label:
        """Return what people say of a step, or of the cast itself: ``name``, ``tags``, ``note``, ``verdict``, ``by``.

        Raises:
            MateriaError: there is no such step (``no_step``).
        """
        record = self.steps.at(step) if isinstance(step, int) else step
        if record is not None and record.lane:
            return Label()  # those of lanes have numbers that steps of the cast have too, and cannot be labelled
        return session_label(self.session, record)

    @property
    def usage_report(self) -> dict[str, JSON]:
        """Tokens and cost in all, by socket, by materia and by item, as usage.json has them (R20)."""
        return report_of(self.rules, self.session)

    @property
    def suggestions(self) -> list[Suggestion]:
        """What the accepted outputs of this cast suggest to remember, in order, each thing once."""
        return suggestions_of(self.rules, self.all_steps, self.session.kept)

    @property
    def conclusion(self) -> list[str]:
        """What the agents of a complete cast tell a person, a line each; empty where their protocols have no such field."""
        return conclusion_lines(self.rules, self.all_steps) if self.status == "complete" else []

    def needs_castable(self) -> None:
        """Raise MateriaError (``not_castable``) when the loadout of an opened cast cannot be cast here (R41)."""
        refuse_recorded(self.problems, self.run_dir)

    def line(self, branch: int | None = None) -> Sequence[StepRecord]:
        """Return the steps one after another, as they led to the present, or into an abandoned branch.

        Args:
            branch: which abandoned branch, from 0; its line begins with the steps that it shares with later ones.

        Raises:
            MateriaError: there is no such branch (``no_branch``).
        """
        left = self.session.abandoned
        if branch is None:
            return self.session.steps
        if not 0 <= branch < len(left):
            raise MateriaError(f"There is no abandoned branch {branch}; the cast has {len(left)}.", kind="no_branch")
        steps_of_branch: list[StepRecord] = list(self.steps)
        for steps in reversed(left[branch:]):
            steps_of_branch[steps[0].number - 1 :] = steps
        return steps_of_branch

    def at(self, number: int, branch: int | None = None) -> Snapshot:
        """Return the cast as it was after a step.

        Args:
            number: of the step; 0 is the start.
            branch: the abandoned branch to which the step belongs, if it is one of those.

        Raises:
            MateriaError: there is no such step (``no_step``) or branch (``no_branch``).
        """
        steps = self.line(branch)
        count = nth(steps, number).number - steps[0].number + 1 if number else 0
        line = steps if isinstance(steps, Steps) else Steps(list(steps[:-1]), len(steps) - 1, steps[-1])
        then = session_after(self.rules, self.session, line.to(count))
        return self.of_session(then)

    def of_session(self, session: Session, live: Live | None = None) -> Snapshot:
        """Return another session of this cast as it is shown: of a moment, or of a lane."""
        cast_parts, answerers = (session, self.rules, self.run_dir, self.project), self.answered_by
        return Snapshot(*cast_parts, problems=self.problems, answerers=answerers, live=live)

    def why(self, step: int | None = None) -> Why:
        """Explain why a step went where it went; the latest one by default."""
        from materia_nb.insight.why import explain

        if not self.steps:
            raise MateriaError("The cast has no step yet.", hint="step first", kind="no_step")
        record = self.steps.at(-1 if step is None else step)
        latest = record is self.steps[-1] and self.engine.status == "failed"
        after = self.engine if latest else record.after
        after_it = record.number - self.steps[0].number + 1
        following = self.steps[after_it].entry if after_it < len(self.steps) else self.ended_by
        why = explain(
            self.rules,
            record.title,
            record.decision,
            after,
            record.entry,
            onward=following,
            pinned=record.pinned,
        )
        first = ["A person answered it by hand, after it had failed."] if record.by_hand else []
        if record.skipped is not None:
            first.append(f"A person continued without it: {record.skipped}")
        label = self.label_of(record).words
        last = [f"A person's label: {label}."] if label else []
        return dataclasses.replace(why, lines=(*first, *why.lines, *last), thinking=record.thinking)

    @property
    def side(self) -> ComparedCast:
        """The cast as one side of a comparison."""
        return ComparedCast(
            self.id,
            self.rules,
            self.session,
            self.run_dir.parent / REPOSITORY if self.session.keeps else None,
        )

    def __repr__(self) -> str:
        """Say which cast, and how it stands."""
        return f"<{self.id}: {self.graph.name!r} {self.status} after {len(self.steps)} steps>"

    def _upcoming(self) -> str | None:
        """The socket that is entered next: behind the loops that are skipped because they are empty."""
        target = self.engine.next
        socket = self.graph.sockets.get(target) if target else None
        if socket is None or socket.iterator is None or self.engine.status != "ready":
            return target
        entered = entering.enter(self.rules, self.engine).state
        if entered.status == "complete":
            return END
        return entered.at.socket if entered.status == "waiting" and entered.at else target


class ApprovalsNow:
    """What the agents of a cast ask a person for, and what they were allowed."""

    def __init__(self, take_snapshot: Callable[[], Snapshot]) -> None:
        """``seen`` returns the cast as it is to be looked at: at one moment, or whenever it is asked."""
        self._seen = take_snapshot

    def __repr__(self) -> str:
        return f"<approvals of {self.cast.id}: {len(self.asking)} asked for>"

    @property
    def cast(self) -> Snapshot:
        """The cast, or the lane of it, whose agents ask."""
        return self._seen()

    @property
    def asking(self) -> tuple[ToolCall, ...]:
        """The tool calls that wait for a person's leave; empty when none does."""
        return approvals.asking(self.cast.session)

    @property
    def due(self) -> tuple[ToolCall, ...]:
        """The tool calls that a person allowed and that have not run yet."""
        return tuple(call for call in self.cast.session.asking if call.decided is not None)

    @property
    def tools(self) -> dict[str, bool]:
        """The tools that change something, and whether each is allowed to without asking."""
        known = approvals.asking_tools(self.cast.rules)
        return {tool: tool in self.allowed for tool in dict.fromkeys([*known, *sorted(self.allowed)])}

    @property
    def request(self) -> ApprovalRequest | None:
        """The command that waits for approval, sealed with its fingerprint; None when none is asked for."""
        hold = self.cast.held
        if hold is None or hold.needs != "approval" or not isinstance(hold.reading.value, dict):
            return None
        request, asked_at = request_of(hold.reading.value), (self.cast.steps[-1].ended or 0) / 1000
        return sealed_from(request, asked_at) if can_be_approved(request) else None

    @property
    def current(self) -> Approval | None:
        """A person's approval of one exact command, while the waiting agent may still use it; None when none stands (R44)."""
        approval = self.cast.waiting_at.approval if self.cast.waiting_at else None
        return approval if approval is not None and approval.at(time.time()).standing == "PENDING" else None

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that change something and yet need not ask in this cast."""
        return self.cast.session.allowed


class LaneNow:
    """A lane at one moment.

    Attributes:
        name: that of its stream.
        status: ``waiting``, ``running``, ``accepted``, ``failed`` or ``interrupted``.
        error: why it was not accepted.
        indexes: of its items in the whole list, in the order in which they are worked on.
        now: the lane as the cast is shown: its steps, its prompt, why ...
    """

    def __init__(self, lane: Lane, cast: Snapshot) -> None:
        """Show a lane of ``cast``."""
        self.lane, self.name, self.status, self.error = lane, lane.name, lane.status, lane.error
        self.indexes = lane.indexes
        self._cast = cast

    @cached_property
    def now(self) -> Snapshot:
        """The lane as the cast is shown."""
        live, saying = self._cast.live, self._cast.live.lanes_saying.get(self.name, ())
        return self._cast.of_session(self.lane.session, dataclasses.replace(live, saying=saying))

    @property
    def done(self) -> int:
        """How many of its items are done."""
        state, of_lane = self.lane.session.state, self.lane.session.start.lane
        cursor = of_lane.cursor if of_lane is not None else ""
        return sum(standing(state, (cursor, index, ())) == "done" for index in self.indexes)

    @property
    def wants_a_person(self) -> bool:
        """Whether it stands still until a person has answered, decided or allowed something there."""
        now = self.now
        visit = now.waiting_at
        if self.status != "running" or visit is None:
            return self.status == "running" and now.held is not None
        asks = bool(now.approvals.asking) or (visit.mode == "draft" and visit.drafts > 0)
        return asks or now.answered_by(visit.socket) in (None, "person")

    def __repr__(self) -> str:
        """Say how it stands."""
        return f"<lane {self.name}: {self.status}, {self.done} of {len(self.indexes)} items done>"


def snapshot_of(value: object) -> Snapshot | None:
    """Return a snapshot, also of a cast as it is now; None when ``value`` is neither."""
    now = getattr(value, "now", value)
    return now if isinstance(now, Snapshot) else None


def refuse_recorded(problems: Sequence[str], run_dir: Path) -> None:
    """Raise MateriaError (``not_castable``) when ``problems`` keep the loadout of an opened cast from being cast here."""
    if problems:
        raise MateriaError(
            f"The loadout of this cast cannot be cast here, so it can only be inspected: {problems[0]}",
            where=str(run_dir),
            hint="correct the loadout and start a new cast",
            kind="not_castable",
        )


def graph_of(loadout: object) -> Graph:
    """Return the graph of a loadout, however it is given."""
    graph = getattr(loadout, "graph", loadout)
    if isinstance(graph, Mapping):
        return build_graph(graph)
    if isinstance(graph, Graph):
        return graph
    if graph is None:
        raise MateriaError("The loadout has problems.", hint="check shows them", kind="bad_loadout")
    raise MateriaError(
        f"A loadout is needed, not {type(loadout).__name__}.",
        hint="give wb.graph(name), or use wb.casts.replay(name)",
        kind="bad_loadout",
    )
