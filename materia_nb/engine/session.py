"""The session: an immutable record of a cast with its steps, pending actions and file names (R29)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import chain, islice
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)

from materia_nb.engine.conversation import MateriaEvent, Message, ToolCall
from materia_nb.engine.events import (
    Output,
    SocketComplete,
    SocketContinued,
    SocketHeld,
    SocketRefinement,
    SocketWorked,
)
from materia_nb.engine.item_edits import ListEdit
from materia_nb.engine.items import places
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import (
    NOTHING,
    WHOLE_CAST,
    CastState,
    ItemId,
    Label,
    LabelKey,
    Mode,
    Past,
    Pin,
    Usage,
    Visit,
)
from materia_nb.handoff.base import Reading
from materia_nb.jsonvalue import JSON, FrozenDict, copied_by_position, refuse_change, same
from materia_nb.loadout.graph import Region
from materia_nb.registry import mimebundle_from_view


class TurnRecord(NamedTuple):
    """One output of a visit: its prompt, text, artifact and reading.

    ``prompt`` is None for a utility, and ``reading`` is None for a draft. ``message`` is a person's message about a
    draft, sent instead of a prompt. In the mode ``correction``, a person replaced the output of a completed step.
    ``calls`` are the tool calls before the answer, ``meta`` is the metadata of the answer, and ``spent`` is the usage
    of failed tries and of turns that waited for approval. ``events`` are the side events of the output. ``pinned`` is
    the pin that supplied the answer, if any (R40). ``by`` is the person who answered instead of a failed agent or
    process. ``thinking`` is the thinking of the agent (R49). ``cut`` is the limit that truncated the answer (R52).
    ``worked`` is the working time in milliseconds, None if unknown (R56).
    """

    mode: Mode | Literal["correction"]
    prompt: Prompt | None
    text: str
    artifact: str | None
    reading: Reading | None
    usage: Usage | None
    message: str | None = None
    calls: tuple[ToolCall, ...] = ()
    meta: Mapping[str, JSON] = NOTHING
    spent: tuple[Usage, ...] = ()
    events: tuple[MateriaEvent, ...] = ()
    pinned: str | None = None
    by: str | None = None
    thinking: str = ""
    cut: str = ""
    worked: int | None = None


class StepFiles(NamedTuple):
    """The project files that a step changed: the commits before and after the step, and the names of changed files.

    ``changed`` has at most 200 of the ``in_all`` changed files.
    """

    before: str
    after: str
    changed: tuple[str, ...] = ()
    in_all: int = 0


@copied_by_position
class StepRecord(NamedTuple):
    """One visit, from entering the socket (``at``) to the decision that followed.

    ``states`` are the state on entry and the latest state, or an object that computes both. While the socket waits for
    an output, ``decision`` is None or the decision of its last turn. ``entry`` has the empty loops that were skipped
    before the socket was entered. ``branch`` counts how often the cast had gone back, because visit numbers repeat
    after going back. ``missing`` are the files that the last output names but that do not exist.

    ``calls`` are all tool calls of the visit, including turns without an output. ``notes`` are the agent's notes to a
    person. ``spent`` is the usage of turns without an output. ``left`` is the number of ``turns`` before the last
    retry. ``pins`` are the pins on entry (R40). ``tries`` is 1 plus the number of retries, also of single turns and
    after a raised limit. ``plain`` is True if the engine's own rules led to the entry and nothing has changed the state
    since. ``worked`` is the working time in milliseconds so far, None if the time of a turn is unknown (R56). ``files``
    is the effect on the project's files, None without snapshots. ``reworded`` is True if a person changed the prompt.
    """

    at: Visit
    started: int
    states: tuple[CastState, CastState] | Past
    prompt: Prompt | None
    entry: Decision | None = None
    decision: Decision | None = None
    turns: tuple[TurnRecord, ...] = ()
    ended: int | None = None
    branch: int = 0
    missing: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    spent: tuple[Usage, ...] = ()
    left: int = 0
    pins: Mapping[str, Pin] = NOTHING
    tries: int = 1
    plain: bool = True
    skipped: str | None = None
    worked: int | None = 0
    files: StepFiles | None = None
    reworded: bool = False

    def __repr__(self) -> str:
        """Return the visit and its target in one line."""
        target = f" -> {self.decision.target}" if self.decision is not None else ""
        return f"<step {self.number}: {self.socket}, visit {self.visit}{target}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object] | None:
        return mimebundle_from_view(self, include, exclude)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        """Print the step as text, on one line in a list. IPython does not request MIME bundles from tuples."""
        view = mimebundle_from_view(self) if len(printer.stack) == 1 else None
        printer.text(repr(self) if view is None else view["text/plain"])

    def __eq__(self, other: object) -> bool:
        """Compare the fields; a stored state and a recomputed state are equal."""
        if not isinstance(other, StepRecord):
            return NotImplemented
        position = StepRecord._fields.index("states")
        return (
            self[:position] == other[:position]
            and self[position + 1 :] == other[position + 1 :]
            and (self.before, self.after) == (other.before, other.after)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.branch, self.number))

    @property
    def number(self) -> int:
        """Number of the step in the cast, from 1."""
        return self.at.step

    @property
    def socket(self) -> str:
        """The socket that was visited."""
        return self.at.socket

    @property
    def visit(self) -> int:
        """Number of the visit of this socket, from 1."""
        return self.at.visit

    @property
    def title(self) -> str:
        """Title of the step, such as ``Step 3: Socket-3, visit 1, item WI-1 (Part 1) in lane ui``."""
        item = f", item {self.item_key} ({self.item_label})" if self.item_key else ""
        lane = f" in lane {self.lane}" if self.lane else ""
        return f"Step {self.number}: {self.socket}, visit {self.visit}{item}{lane}"

    @property
    def lane(self) -> str:
        """Name of the step's lane, "" for the cast itself. Steps of different lanes can have the same number."""
        of_lane = (self.states[0] if isinstance(self.states, tuple) else self.states).lane
        return of_lane.name if of_lane is not None else ""

    @property
    def item_key(self) -> str | None:
        """Key of the step's item, or None outside a loop."""
        return self.at.item.key if self.at.item else None

    @property
    def item_label(self) -> str | None:
        """Label of the item of the step."""
        return self.at.item.label if self.at.item else None

    @property
    def before(self) -> CastState:
        """The state when the socket was entered."""
        return self.states[0] if isinstance(self.states, tuple) else self.states.before(self.number)

    @property
    def after(self) -> CastState:
        """The latest state of the step."""
        return self.states[1] if isinstance(self.states, tuple) else self.states.after(self.number)

    @property
    def output(self) -> str | None:
        """Text of the last turn, or None before the first output."""
        return self.turns[-1].text if self.turns else None

    @property
    def shown(self) -> str | None:
        """The output as shown to a person: the text of the last turn, or the prose assigned from ``$.text`` (R62)."""
        decision, reading = self.decision, self.reading
        value = reading.value if reading is not None and reading.accepted else None
        text = value.get("text") if isinstance(value, dict) else None
        if decision is None or not isinstance(text, str):
            return self.output
        assigned = any(assignment.found and assignment.source == "$.text" for assignment in decision.assigned)
        return text if assigned else self.output

    @property
    def reading(self) -> Reading | None:
        """Reading of the last turn."""
        return self.turns[-1].reading if self.turns else None

    @property
    def pinned(self) -> str | None:
        """The pin that supplied the answer, or None. A person's later correction of the output is ignored (R40)."""
        return next((turn.pinned for turn in reversed(self.turns) if turn.mode != "correction"), None)

    @property
    def by_hand(self) -> bool:
        """True if a person answered instead of an agent or process that had failed."""
        return bool(self.turns) and self.turns[-1].by is not None

    @property
    def thinking(self) -> str:
        """Thinking of the agent in its last answered turn; empty if unknown (R49)."""
        return next((turn.thinking for turn in reversed(self.turns) if turn.mode != "correction"), "")

    @property
    def events(self) -> tuple[MateriaEvent, ...]:
        """The side events of the accepted output (R39), and of refused outputs, which are marked as refused (R53)."""
        accepted_turn = next((turn for turn in reversed(self.turns) if turn.reading and turn.reading.accepted), None)
        return tuple(event for turn in self.turns for event in turn.events if event.refused or turn is accepted_turn)

    @property
    def artifact(self) -> str | None:
        """Path of the artifact that contains the output of the last turn."""
        return self.turns[-1].artifact if self.turns else None


class Edit(NamedTuple):
    """A person's edit after a step: a JSON Patch, its inverse, and the states before and after.

    ``asked`` is the previous prompt, which undoing the edit restores. ``lists`` are the edited lists, by path. ``said``
    is the report to the person. ``visit`` is the session before the edit if the edit ended a visit (R46).
    """

    ts: int
    step: int
    patch: tuple[Mapping[str, JSON], ...]
    inverse: tuple[Mapping[str, JSON], ...]
    before: CastState
    after: CastState
    asked: Prompt | None = None
    lists: Mapping[str, ListEdit] = NOTHING
    said: tuple[str, ...] = ()
    visit: Session | None = None


class Steps(Sequence[StepRecord]):
    """The steps of a cast so far, immutable; longer and shorter versions of the sequence share one list.

    The shared list only grows at its end, and each object stores the length of its own part. So the cost of adding a
    step does not depend on the number of steps, and an earlier object never contains a later step.

    Attributes:
        latest: the latest step, or None.
        behind: the step before ``latest``, or None.
    """

    __slots__ = ("_count", "_shared_steps", "behind", "latest")

    latest: StepRecord | None
    behind: StepRecord | None
    _shared_steps: list[StepRecord]
    _count: int

    def __init__(
        self, closed: list[StepRecord] | None = None, count: int = 0, latest: StepRecord | None = None
    ) -> None:
        set_attribute = object.__setattr__
        set_attribute(self, "_shared_steps", [] if closed is None else closed)
        set_attribute(self, "_count", count)
        set_attribute(self, "behind", closed[count - 1] if closed and count else None)
        set_attribute(self, "latest", latest)

    __setattr__ = refuse_change

    def __len__(self) -> int:
        return self._count + (self.latest is not None)

    @overload
    def __getitem__(self, index: int) -> StepRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StepRecord]: ...
    def __getitem__(self, index: int | slice) -> StepRecord | Sequence[StepRecord]:
        position = range(self._count + (self.latest is not None))[index]
        if isinstance(position, int):
            return self._step_at(position)
        return tuple([self._shared_steps[each] if each < self._count else self._step_at(each) for each in position])

    def _step_at(self, position: int) -> StepRecord:
        step = self._shared_steps[position] if position < self._count else self.latest
        assert step is not None  # noqa: S101 - the callers check the length
        return step

    def __iter__(self) -> Iterator[StepRecord]:
        return chain(islice(self._shared_steps, self._count), () if self.latest is None else (self.latest,))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} steps>"

    def adding(self, step: StepRecord) -> Steps:
        """Return the steps followed by ``step``."""
        if self.latest is None:
            return Steps(self._shared_steps[: self._count], self._count, step)
        if len(self._shared_steps) == self._count:
            self._shared_steps.append(self.latest)
            if self._shared_steps[self._count] is self.latest:  # else another thread has just added a step
                return Steps(self._shared_steps, self._count + 1, step)
        return Steps([*self._shared_steps[: self._count], self.latest], self._count + 1, step)

    def ending_in(self, step: StepRecord) -> Steps:
        """Return the steps with ``step`` instead of the latest step."""
        return Steps(self._shared_steps, self._count, step)

    def to(self, number: int) -> Steps:
        """Return the first ``number`` steps."""
        return Steps(self._shared_steps, number - 1, self._step_at(number - 1)) if number else Steps()


class FollowsSteps(NamedTuple):
    """Marks a field of :class:`Session` that ``value_after`` computes from the steps when the cast goes back."""

    value_after: Callable[[Rules, Session, Steps], object]


_T = TypeVar("_T")
Kept: TypeAlias = Annotated[_T, "kept"]
"""Annotation of a field that keeps its value when the cast goes back."""
OfTurn: TypeAlias = Annotated[_T, "of turn"]
"""Annotation of a field about the waiting turn. It gets its default value when the cast goes back."""


@copied_by_position
class Session(NamedTuple):
    """The complete record of a cast. The annotation of each field determines its value after the cast goes back.

    Attributes:
        state: the engine's state.
        start: the state before the first step.
        steps: the steps of the current branch.
        prompt: the prompt of the waiting turn, or of the last turn.
        mode: the purpose of the waiting turn, or of the last turn.
        wish: the person's message about a draft, which is sent instead of the prompt.
        spoken: the earlier turns in the current visit's conversation.
        calls: the tool calls of the waiting turn so far.
        asking: the tool calls that wait for approval, or are approved but have not run.
        noted_before: number of notes of the latest step that belong to turns before the waiting one.
        spent: the usage of the waiting turn before it has an output.
        allowed: the tools with side effects that run without approval.
        turns: number of turns by socket and by materia (``materia <id>``).
        edits: the edits of a person that were not undone.
        abandoned: the steps abandoned by going back, one entry per branch.
        kept: the suggestions that a person saved.
        pins: by name, the pinned answers of sockets and materia (R40).
        ending: the decision that skipped empty loops to the end.
        labels: the labels of the cast and of its steps.
        labels_before: the labels that each change of labels replaced, the latest last.
        keeps: the method by which project files are saved; empty if they are not saved.
        files: the commit of the latest saved files.
        folder: the folder in the run directory where the cast works; empty if it works in the project.
        streams: each distribution of items to lanes in the current branch; the last may still run.
        streams_left: the distributions in abandoned branches.
        forks: number of distributions, including those in abandoned branches.
        asks: number of times that tool calls waited for approval, including abandoned branches.
        prefix: folder of the session's files in the run directory: "" for the cast itself, else the folder of its lane.
    """

    state: Annotated[CastState, FollowsSteps(state_after)]
    start: Kept[CastState]
    steps: Annotated[Steps, FollowsSteps(_same_steps)] = Steps()
    prompt: OfTurn[Prompt | None] = None
    mode: OfTurn[Mode] = "work"
    wish: OfTurn[str | None] = None
    spoken: OfTurn[tuple[TurnRecord, ...]] = ()
    calls: OfTurn[tuple[ToolCall, ...]] = ()
    asking: OfTurn[tuple[ToolCall, ...]] = ()
    noted_before: OfTurn[int] = 0
    spent: OfTurn[tuple[Usage, ...]] = ()
    allowed: Kept[frozenset[str]] = frozenset()
    turns: Annotated[Mapping[str, int], FollowsSteps(count_turns)] = NOTHING
    edits: Annotated[tuple[Edit, ...], FollowsSteps(edits_before)] = ()
    abandoned: Kept[tuple[Sequence[StepRecord], ...]] = ()
    kept: Kept[tuple[JSON, ...]] = ()
    pins: Kept[Mapping[str, Pin]] = NOTHING
    ending: OfTurn[Decision | None] = None
    labels: Kept[Mapping[LabelKey, Label]] = NOTHING
    labels_before: Kept[tuple[tuple[LabelKey, Label], ...]] = ()
    keeps: Kept[str] = ""
    files: Kept[str | None] = None
    streams: Annotated[tuple[Streams, ...], FollowsSteps(_streams_before)] = ()
    streams_left: Kept[tuple[Streams, ...]] = ()
    forks: Kept[int] = 0
    asks: Kept[int] = 0
    folder: Kept[str] = ""
    prefix: Kept[str] = ""

    @property
    def asked(self) -> str | Prompt:
        """The question to the waiting agent: the person's last message, or the prompt if the person sent no message."""
        return self.wish if self.wish is not None else self.prompt or ""

    def forgetting(self) -> Session:
        """Return the session with an empty conversation, so that the next prompt starts a new conversation."""
        return self._replace(wish=None, spoken=(), calls=(), asking=())

    def with_latest(self, **changes: Any) -> Session:
        """Return the session with changed fields in the record of the latest step."""
        return self._replace(steps=self.steps.ending_in(self.steps[-1]._replace(**changes)))

    @property
    def said(self) -> tuple[Message, ...]:
        """The earlier messages in the conversation of the current visit."""
        return tuple(message for turn in self.spoken for message in _said_by(turn))


@cache
def lifetimes() -> Mapping[str, object]:
    """Return how long each field of a session keeps its value: :class:`FollowsSteps`, ``kept`` or ``of turn``."""
    hints = get_type_hints(Session, include_extras=True)
    return {name: get_args(hints[name])[1] for name in Session._fields}


def without_later_steps(rules: Rules, session: Session, steps: Steps) -> Session:
    """Return the session after the last of ``steps``; fields that do not follow from steps keep their current values."""
    changes: dict[str, Any] = {}
    for name, lifetime in lifetimes().items():
        if isinstance(lifetime, FollowsSteps):
            changes[name] = lifetime.value_after(rules, session, steps)
        elif lifetime == "of turn":
            changes[name] = Session._field_defaults[name]
    return session._replace(**changes)


def _same_steps(_: Rules, __: Session, steps: Steps) -> Steps:
    return steps


def _streams_before(_: Rules, session: Session, steps: Steps) -> tuple[Streams, ...]:
    return tuple(streams for streams in session.streams if streams.step < len(steps))


def state_after(_: Rules, session: Session, steps: Sequence[StepRecord]) -> CastState:
    """Return the state after the last of ``steps``, or the start state if there are no steps."""
    return steps[-1].after if steps else session.start


def edits_before(rules: Rules, session: Session, steps: Sequence[StepRecord]) -> tuple[Edit, ...]:
    """Return the edits that are contained in the state after the last of ``steps``, oldest first.

    The state after a step contains the edits that were made while the step was waiting.
    """
    number, reached = len(steps), state_after(rules, session, steps)
    newer = [edit for edit in session.edits if edit.step >= number]
    first = next(
        (index for index, edit in enumerate(newer) if edit.step > number or same(edit.before.data, reached.data)),
        len(newer),
    )
    return session.edits[: len(session.edits) - len(newer) + first]


def files_after(session: Session, number: int) -> str | None:
    """Return the commit of the project files after step ``number``, or None if they were not saved.

    Step 0 is the start.
    """
    if not session.steps:
        return session.files
    files = session.steps[max(0, number - 1)].files
    return None if files is None else files.after if number else files.before


_LaneStatus: TypeAlias = Literal["waiting", "running", "accepted", "failed", "interrupted"]


class Lane(NamedTuple):
    """A lane, which works on one stream of items.

    Its ``session`` begins when the items are distributed. Each lane continues the step numbers of the cast. ``started``
    and ``ended`` are the times of the lane's last run.
    """

    name: str
    indexes: tuple[int, ...]
    session: Session
    status: _LaneStatus = "waiting"
    error: str = ""
    started: int | None = None
    ended: int | None = None

    @property
    def is_over(self) -> bool:
        """True if the lane has finished; a retry of the cast can continue it."""
        return self.status not in ("waiting", "running")


class Streams(NamedTuple):
    """The lanes of a parallel loop, in the order of the schedule.

    ``step`` is the number of the generator's step, and ``before`` the usage of the cast before the lanes started.
    """

    region: Region
    step: int
    before: Usage
    limit: int
    lanes: Mapping[str, Lane]
    status: Literal["running", "joined", "failed"] = "running"


def lanes_at_work(session: Session) -> Streams | None:
    """Return the lanes that have not been joined: running lanes, or failed lanes that a retry can continue."""
    last = session.streams[-1] if session.streams else None
    return last if last is not None and last.status != "joined" else None


def lanes_running(session: Session) -> Streams | None:
    """Return the running lanes; None without lanes or if the cast has stopped."""
    last = session.streams[-1] if session.streams else None
    return last if last is not None and last.status == "running" and session.state.status == "ready" else None


def parts_of(session: Session) -> Iterator[Session]:
    """Yield the cast's session and the session of each lane."""
    yield session
    for streams in session.streams:
        for lane in streams.lanes.values():
            yield lane.session


def every_step(session: Session) -> Iterator[tuple[StepRecord, bool]]:
    """Yield each step of the cast and its lanes, with True if going back abandoned the step."""
    for part in parts_of(session):
        yield from ((step, False) for step in part.steps)
        yield from ((step, True) for line in part.abandoned for step in line)
    for streams in session.streams_left:
        yield from ((step, True) for lane in streams.lanes.values() for step, _ in every_step(lane.session))


def all_steps(session: Session, *, by_time: bool = False) -> Sequence[StepRecord]:
    """Return the steps of a cast. The steps of lanes come after the step that distributed the items.

    The lanes follow one another. With ``by_time``, the steps of all lanes are sorted by start time.
    """
    if not session.streams:
        return session.steps
    steps: list[StepRecord] = []
    done = 0
    for streams in session.streams:
        steps += session.steps[done : streams.step]
        of_lanes = [lane.session.steps for lane in streams.lanes.values()]
        steps += merge(*of_lanes, key=lambda step: step.started) if by_time else chain(*of_lanes)
        done = streams.step
    return [*steps, *session.steps[done:]]


def label_of(session: Session, step: StepRecord | None = None) -> Label:
    """Return the label of a step, or of the cast."""
    return session.labels.get(WHOLE_CAST if step is None else (step.branch, step.number), Label())


def item_now(rules: Rules, session: Session, step: StepRecord) -> ItemId | None:
    """Return the current id of a step's item; None if the step has no item or a person removed the item (R46)."""
    if step.at.item is None or not session.edits:
        return step.at.item and step.at.item.id
    return moved_by(rules, (edit for edit in session.edits if edit.step >= step.number), step.at.item.id)


def moved_by(rules: Rules, edits: Iterable[Edit], item: ItemId) -> ItemId | None:
    """Return the id of an item after a sequence of edits, or None if one of the edits removed the item."""
    walked = list(places(item))
    for edit in edits:
        for path, change in edit.lists.items():
            cursors = {walk.iterator.cursor for walk in rules.lists[tuple(path.split("."))]}
            for depth, (name, index) in enumerate(walked):
                if name in cursors:
                    if index not in change.origins:
                        return None
                    walked[depth] = (name, change.origins.index(index))
    return (*walked[-1], tuple(walked[:-1]))


def _said_by(turn: TurnRecord) -> tuple[Message, Message]:
    """Return the two messages of a turn: the question and the answer."""
    question = turn.message if turn.message is not None else turn.prompt.text if turn.prompt else ""
    return Message("user", question), Message("assistant", turn.text, turn.calls)


def count_turns(rules: Rules, _: Session, steps: Sequence[StepRecord]) -> dict[str, int]:
    """Return the number of turns of each socket and each materia (``materia <id>``) in these steps."""
    counts: dict[str, int] = {}
    for step in steps:
        socket = rules.sockets[step.socket].socket
        if not socket.is_utility:
            turn_count = sum(turn.mode != "correction" for turn in step.turns)  # nobody was asked for a correction
            for key in (step.socket, f"materia {socket.materia.id}"):
                counts[key] = counts.get(key, 0) + turn_count
    return FrozenDict({key: count for key, count in counts.items() if count})


What: TypeAlias = Literal["enter", "utility", "agent", "person"]


class Pending(NamedTuple):
    """A pending action.

    Attributes:
        what: the kind of action: ``enter`` the next socket, run a ``utility``, ask an ``agent``, or wait for a
            ``person`` to decide about tool calls, a draft or a held output.
        visit: the visit that waits for an output; None for ``enter``.
        lane: the lane of the action; "" for the cast itself.
    """

    what: What
    visit: Visit | None = None
    lane: str = ""


def pending(rules: Rules, session: Session) -> tuple[Pending, ...]:
    """Return the pending actions; empty if the cast is over. Actions of lanes can run in parallel."""
    if (streams := lanes_running(session)) is not None:
        return tuple(_pending_in(rules, streams)) or (Pending("enter"),)
    action = pending_here(rules, session)
    return () if action is None else (action,)


def _pending_in(rules: Rules, streams: Streams) -> Iterator[Pending]:
    """Yield the pending action of each unfinished lane: running lanes first, then in schedule order (P4)."""
    for lane in sorted(streams.lanes.values(), key=lambda lane: lane.status != "running"):
        if not lane.is_over and (action := pending_here(rules, lane.session)) is not None:
            yield action._replace(lane=lane.name)


def pending_here(rules: Rules, session: Session) -> Pending | None:
    """Return the pending action of one session without its lanes; None if the session has ended."""
    state, visit = session.state, session.state.at
    if state.status == "ready":
        return Pending("enter")
    if state.status == "held":
        return Pending("person", visit)
    if state.status != "waiting" or visit is None:
        return None
    if rules.sockets[visit.socket].socket.is_utility:
        return Pending("utility", visit)
    decides_calls = session.asking and any(call.decided is None for call in session.asking)
    reviews_draft = visit.drafts and visit.mode == "draft" and session.wish is None
    return Pending("person" if decides_calls or reviews_draft else "agent", visit)


_WORDS: Final[Mapping[type[Output], str]] = {
    SocketRefinement: "refinement",
    SocketWorked: "work",
    SocketHeld: "held",
    SocketContinued: "continued",
}
"""Word in the artifact name of an output that did not complete its socket, by event type; the default is ``refused``.
"""


def branch_suffix(branch: int) -> str:
    """Return the suffix of file names in a branch, so that files of an abandoned branch are kept."""
    return f".branch-{branch}" if branch else ""


def output_name(socket: str, visit: int, item_key: str | None, suffix: str = ".md") -> str:
    """Return the path of the output of a visit."""
    item = "" if item_key is None else f"-{item_key}"
    return f"sockets/{socket}/{visit}{item}{suffix}"


def context_name(socket: str, visit: int, item_key: str | None, branch: int = 0) -> str:
    """Return the path of the prompt of a visit."""
    middle = f"{socket}-{visit}" if item_key is None else f"{socket}-{item_key}-{visit}"
    return f"contexts/{middle}{branch_suffix(branch)}.md"


def name_of_output(session: Session, kind: type[Output]) -> str:
    """Return the artifact name of an output of the latest step.

    ``kind`` is the type of the event that records the output.
    """
    step = session.steps.latest
    assert step is not None  # noqa: S101 - an output answers a step
    suffix = f"{branch_suffix(step.branch)}.md" if step.branch else ".md"
    if kind is not SocketComplete:
        # Numbered by the turns of the visit, so that no retry overwrites an earlier output.
        suffix = f".{_WORDS.get(kind, 'refused')}-{len(step.turns) + 1}{suffix}"
    at = step.at
    key = at.item.key if at.item else None
    name = session.prefix + output_name(at.socket, at.visit, key, suffix)
    if step.turns and name in [turn.artifact for turn in step.turns]:  # it was accepted, and yet the cast failed there
        name = session.prefix + output_name(at.socket, at.visit, key, f".again-{len(step.turns) + 1}{suffix}")
    return name


def name_of_correction(session: Session) -> str:
    """Return the artifact name for a person's correction of the latest step."""
    step = session.steps[-1]
    suffix = f"{branch_suffix(step.branch)}.corrected-{len(step.turns) + 1}.md"
    return session.prefix + output_name(step.socket, step.visit, step.item_key, suffix)
