"""Define the session (the immutable record of a cast with its steps), pending actions and artifact names (R29)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import chain, islice
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_type_hints, overload

from materia_nb.engine.conversation import MateriaEvent, Message, ToolCall
from materia_nb.engine.events import Output, SocketComplete, SocketContinued, SocketHeld, SocketRefinement, SocketWorked
from materia_nb.engine.item_edits import ListEdit
from materia_nb.engine.items import positions_of
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
from materia_nb.jsonvalue import JSON, FrozenDict, equal_json, reject_change
from materia_nb.loadout.graph import Region
from materia_nb.registry import mimebundle_from_view


class TurnRecord(NamedTuple):
    """One output of a visit.

    Attributes:
        mode: the purpose of the turn; ``correction`` if a person replaced the output of a completed step.
        prompt: the prompt, or None for a utility.
        text: the output.
        artifact: the path of the file that contains the output.
        reading: the parsed output, or None for a draft.
        usage: the usage of the turn, or None if unknown.
        message: a person's message about a draft, which was sent instead of the prompt.
        calls: the tool calls before the answer.
        meta: the metadata of the answer.
        spent: the usage of failed attempts and of turns that waited for approval.
        events: the side events of the output.
        pinned: the source of the pinned answer, or None if the answer was not pinned (R40).
        by: the person who answered in place of a failed agent or process.
        thinking: the agent's thinking (R49).
        cut: the limit that truncated the answer, or "" if the answer is complete (R52).
        worked: the working time in milliseconds, or None if unknown (R56).
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
    """The effect of a step on the project's files: the snapshots before and after the step, and the changed files.

    ``changed`` lists at most 200 of the ``in_all`` changed files.
    """

    before: str
    after: str
    changed: tuple[str, ...] = ()
    in_all: int = 0


class StepRecord(NamedTuple):
    """One visit, from entering the socket to the decision about the next socket.

    Attributes:
        at: the visit when the socket was entered.
        started: the start time, in milliseconds since the epoch.
        states: the states before and after the visit, or an object that recomputes these states.
        prompt: the first prompt of the visit, or None for a utility.
        entry: the decision that skipped empty loops before the socket was entered, or None.
        decision: the decision of the last turn, or None before the first output.
        turns: the outputs of the visit, in order.
        ended: the end time, or None while the visit continues.
        branch: the number of times that the cast had gone back; steps of different branches can have the same number.
        missing: the files that the last output lists but that do not exist.
        calls: all tool calls of the visit, including calls in turns without an output.
        notes: the agent's notes to the person.
        spent: the usage of turns without an output.
        turns_before_retry: the number of ``turns`` before the last retry.
        pins: the pins when the socket was entered (R40).
        attempts: 1 plus the number of retries, including retries of single turns and after a raised limit.
        is_recomputable: True if the engine's rules led to this visit and nothing has changed the state since.
        skipped: the reason that a person gave for skipping the visit, or None.
        worked: the working time so far in milliseconds, or None if the time of a turn is unknown (R56).
        files: the effect on the project's files, or None if no snapshots were taken.
        reworded: True if a person changed the prompt.
        names: the display names of the sockets in the loadout, by id.
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
    turns_before_retry: int = 0
    pins: Mapping[str, Pin] = NOTHING
    attempts: int = 1
    is_recomputable: bool = True
    skipped: str | None = None
    worked: int | None = 0
    files: StepFiles | None = None
    reworded: bool = False
    names: Mapping[str, str] = NOTHING

    def __repr__(self) -> str:
        target = f" → {self.name_of(self.decision.target or 'nothing')}" if self.decision is not None else ""
        return f"<step {self.number}: {self.name}, visit {self.visit}{target}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object] | None:
        return mimebundle_from_view(self, include, exclude)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        """Print the step as text, or as one line inside a list, because IPython ignores the MIME bundle of a tuple."""
        view = mimebundle_from_view(self) if len(printer.stack) == 1 else None
        printer.text(repr(self) if view is None else view["text/plain"])

    def __eq__(self, other: object) -> bool:
        """Compare all fields. A stored state is equal to a recomputed state with the same content."""
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
        """Number of the step in the cast, starting at 1."""
        return self.at.step

    @property
    def socket(self) -> str:
        """Id of the visited socket."""
        return self.at.socket

    @property
    def name(self) -> str:
        """Display name of the visited socket."""
        return self.name_of(self.socket)

    def name_of(self, socket: str) -> str:
        """Return the display name of a socket of the loadout, or its id if the name is unknown."""
        return self.names.get(socket, socket)

    @property
    def visit(self) -> int:
        """Number of this visit among the visits of the socket, starting at 1."""
        return self.at.visit

    @property
    def title(self) -> str:
        """Title of the step, such as ``Step 3: Build, visit 1, item Part 1 in lane ui``."""
        item = f", item {self.item_label or self.item_key}" if self.item_key else ""
        lane = f" in lane {self.lane}" if self.lane else ""
        return f"Step {self.number}: {self.name}, visit {self.visit}{item}{lane}"

    @property
    def lane(self) -> str:
        """Name of the step's lane, or "" for the cast itself. Steps of different lanes can have the same number."""
        scope = (self.states[0] if isinstance(self.states, tuple) else self.states).lane
        return scope.name if scope is not None else ""

    @property
    def item_key(self) -> str | None:
        """Key of the step's item, such as WI-2, or None outside a loop."""
        return self.at.item.key if self.at.item else None

    @property
    def item_label(self) -> str | None:
        """Label of the step's item, or None outside a loop."""
        return self.at.item.label if self.at.item else None

    @property
    def before(self) -> CastState:
        """The state of the cast before the socket was entered."""
        return self.states[0] if isinstance(self.states, tuple) else self.states.before(self.number)

    @property
    def after(self) -> CastState:
        """The state of the cast after the step or, while the step continues, its current state."""
        return self.states[1] if isinstance(self.states, tuple) else self.states.after(self.number)

    @property
    def output(self) -> str | None:
        """Text of the last output, or None before the first output."""
        return self.turns[-1].text if self.turns else None

    @property
    def shown(self) -> str | None:
        """The output to display to a person: the last output, or only its ``text`` if this field was assigned (R62)."""
        decision, reading = self.decision, self.reading
        value = reading.value if reading is not None and reading.accepted else None
        text = value.get("text") if isinstance(value, dict) else None
        if decision is None or not isinstance(text, str):
            return self.output
        assigned = any(assignment.found and assignment.source == "$.text" for assignment in decision.assigned)
        return text if assigned else self.output

    @property
    def reading(self) -> Reading | None:
        """The last output in parsed form, or None if the step has no output or the output is a draft."""
        return self.turns[-1].reading if self.turns else None

    @property
    def pinned(self) -> str | None:
        """Source of the pinned answer, or None if the answer was not pinned; later corrections do not count (R40)."""
        return next((turn.pinned for turn in reversed(self.turns) if turn.mode != "correction"), None)

    @property
    def by_hand(self) -> bool:
        """True if a person answered in place of a failed agent or process."""
        return bool(self.turns) and self.turns[-1].by is not None

    @property
    def thinking(self) -> str:
        """Thinking of the agent in its last turn, or "" if unknown (R49)."""
        return next((turn.thinking for turn in reversed(self.turns) if turn.mode != "correction"), "")

    @property
    def events(self) -> tuple[MateriaEvent, ...]:
        """Side events of the accepted output (R39) and of refused outputs; the latter are marked as refused (R53)."""
        accepted_turn = next((turn for turn in reversed(self.turns) if turn.reading and turn.reading.accepted), None)
        return tuple(event for turn in self.turns for event in turn.events if event.refused or turn is accepted_turn)

    @property
    def artifact(self) -> str | None:
        """Path of the file that contains the last output, or None before the first output."""
        return self.turns[-1].artifact if self.turns else None


class Edit(NamedTuple):
    """A person's edit of the state after a step.

    Attributes:
        ts: the time of the edit, in milliseconds since the epoch.
        step: the number of the step before the edit.
        patch: the edit as a JSON Patch.
        inverse: the JSON Patch that undoes the edit.
        before: the state before the edit.
        after: the state after the edit.
        prompt: the prompt before the edit, which is restored when the edit is undone.
        lists: the edits of lists, by the path of the list.
        messages: the messages to the person about the effects of the edit.
        visit: the session before the edit, if the edit ended a visit (R46).
    """

    ts: int
    step: int
    patch: tuple[Mapping[str, JSON], ...]
    inverse: tuple[Mapping[str, JSON], ...]
    before: CastState
    after: CastState
    prompt: Prompt | None = None
    lists: Mapping[str, ListEdit] = NOTHING
    messages: tuple[str, ...] = ()
    visit: Session | None = None


class Steps(Sequence[StepRecord]):
    """The immutable sequence of the steps of a cast; longer and shorter versions of the sequence share one list.

    The shared list only grows at its end, and each sequence stores its own length. Adding a step therefore takes
    constant time, and an existing sequence never gains steps.

    Attributes:
        latest: the latest step, or None if the sequence is empty.
        previous: the step before ``latest``, or None.
    """

    __slots__ = ("_count", "_shared_steps", "latest", "previous")

    latest: StepRecord | None
    previous: StepRecord | None
    _shared_steps: list[StepRecord]
    _count: int

    def __init__(
        self, closed: list[StepRecord] | None = None, count: int = 0, latest: StepRecord | None = None
    ) -> None:
        set_attribute = object.__setattr__
        set_attribute(self, "_shared_steps", [] if closed is None else closed)
        set_attribute(self, "_count", count)
        set_attribute(self, "previous", closed[count - 1] if closed and count else None)
        set_attribute(self, "latest", latest)

    __setattr__ = reject_change

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

    def with_step(self, step: StepRecord) -> Steps:
        """Return these steps followed by ``step``."""
        if self.latest is None:
            return Steps(self._shared_steps[: self._count], self._count, step)
        if len(self._shared_steps) == self._count:
            self._shared_steps.append(self.latest)
            if self._shared_steps[self._count] is self.latest:  # otherwise, another thread has just added a step
                return Steps(self._shared_steps, self._count + 1, step)
        return Steps([*self._shared_steps[: self._count], self.latest], self._count + 1, step)

    def with_last(self, step: StepRecord) -> Steps:
        """Return these steps with the latest step replaced by ``step``."""
        return Steps(self._shared_steps, self._count, step)

    def to(self, number: int) -> Steps:
        """Return the first ``number`` steps."""
        return Steps(self._shared_steps, number - 1, self._step_at(number - 1)) if number else Steps()


class FollowsSteps(NamedTuple):
    """Annotation of a :class:`Session` field that depends on the steps.

    ``value_after`` computes the field from the remaining steps when the cast goes back.
    """

    value_after: Callable[[Rules, Session, Steps], object]


_T = TypeVar("_T")
KeptField: TypeAlias = Annotated[_T, "kept"]
"""Annotation of a :class:`Session` field that keeps its value when the cast goes back."""
TurnField: TypeAlias = Annotated[_T, "of turn"]
"""Annotation of a :class:`Session` field about the waiting turn; going back resets the field to its default."""


class Session(NamedTuple):
    """The complete record of a cast; the annotation of a field determines its value after the cast goes back.

    Attributes:
        state: the current state of the cast.
        start: the state before the first step.
        steps: the steps of the current branch.
        prompt: the prompt of the waiting turn or, if no turn is waiting, of the last turn.
        mode: the purpose of the waiting turn or, if no turn is waiting, of the last turn.
        change_request: the person's message about a draft, which is sent instead of the prompt.
        earlier_turns: the earlier turns of the current visit's conversation.
        calls: the tool calls of the waiting turn so far.
        open_calls: the tool calls that are waiting for approval, or that are approved but have not run.
        noted_before: the number of notes that earlier turns sent in the latest step.
        spent: the usage of the waiting turn so far.
        allowed: the tools with side effects that run without approval.
        turns: the number of turns by socket and by materia (``materia <id>``).
        edits: the edits by a person that have not been undone.
        abandoned: the steps that the cast abandoned by going back, one entry for each branch.
        kept: the suggestions that a person saved.
        pins: the pins, by the name of the socket or materia (R40).
        ending: the decision that skipped empty loops before the cast ended, or None.
        labels: the labels of the cast and of its steps.
        labels_before: the replaced labels, one for each change to a label, the latest last.
        snapshot_method: the method of saving snapshots of the project's files, or "" if no snapshots are saved.
        files: the latest snapshot of the project's files.
        folder: the folder in the run directory in which the cast works, or "" if it works in the project directory.
        streams: the parallel loops of the current branch; the lanes of the last loop may still be running.
        abandoned_streams: the parallel loops of abandoned branches.
        loop_count: the number of parallel loops so far, including those in abandoned branches.
        asks: the number of times that tool calls waited for approval, including those in abandoned branches.
        prefix: the folder of the session's artifacts in the run directory: "" for the cast itself, or the lane's
            folder.
    """

    state: Annotated[CastState, FollowsSteps(state_after)]
    start: KeptField[CastState]
    steps: Annotated[Steps, FollowsSteps(lambda _rules, _session, steps: steps)] = Steps()
    prompt: TurnField[Prompt | None] = None
    mode: TurnField[Mode] = "work"
    change_request: TurnField[str | None] = None
    earlier_turns: TurnField[tuple[TurnRecord, ...]] = ()
    calls: TurnField[tuple[ToolCall, ...]] = ()
    open_calls: TurnField[tuple[ToolCall, ...]] = ()
    noted_before: TurnField[int] = 0
    spent: TurnField[tuple[Usage, ...]] = ()
    allowed: KeptField[frozenset[str]] = frozenset()
    turns: Annotated[Mapping[str, int], FollowsSteps(count_turns)] = NOTHING
    edits: Annotated[tuple[Edit, ...], FollowsSteps(edits_before)] = ()
    abandoned: KeptField[tuple[Sequence[StepRecord], ...]] = ()
    kept: KeptField[tuple[JSON, ...]] = ()
    pins: KeptField[Mapping[str, Pin]] = NOTHING
    ending: TurnField[Decision | None] = None
    labels: KeptField[Mapping[LabelKey, Label]] = NOTHING
    labels_before: KeptField[tuple[tuple[LabelKey, Label], ...]] = ()
    snapshot_method: KeptField[str] = ""
    files: KeptField[str | None] = None
    streams: Annotated[tuple[Streams, ...], FollowsSteps(_earlier_streams)] = ()
    abandoned_streams: KeptField[tuple[Streams, ...]] = ()
    loop_count: KeptField[int] = 0
    asks: KeptField[int] = 0
    folder: KeptField[str] = ""
    prefix: KeptField[str] = ""

    @property
    def next_message(self) -> str | Prompt:
        """The message to send to the waiting agent: the person's message about a draft, if any, or else the prompt."""
        return self.change_request if self.change_request is not None else self.prompt or ""

    def without_conversation(self) -> Session:
        """Return the session with an empty conversation, so that the next prompt starts a new conversation."""
        return self._replace(change_request=None, earlier_turns=(), calls=(), open_calls=())

    def with_latest(self, **changes: Any) -> Session:
        """Return the session with the given fields of its latest step changed."""
        return self._replace(steps=self.steps.with_last(self.steps[-1]._replace(**changes)))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The earlier messages in the conversation of the current visit."""
        return tuple(message for turn in self.earlier_turns for message in _turn_messages(turn))


@cache
def field_lifetimes() -> Mapping[str, object]:
    """Return the annotation of each session field: a :class:`FollowsSteps`, ``kept`` or ``of turn``."""
    hints = get_type_hints(Session, include_extras=True)
    return {name: get_args(hints[name])[1] for name in Session._fields}


def without_later_steps(rules: Rules, session: Session, steps: Steps) -> Session:
    """Return the session as it was after the last of ``steps``; :data:`KeptField` fields keep their current values."""
    changes: dict[str, Any] = {}
    for name, lifetime in field_lifetimes().items():
        if isinstance(lifetime, FollowsSteps):
            changes[name] = lifetime.value_after(rules, session, steps)
        elif lifetime == "of turn":
            changes[name] = Session._field_defaults[name]
    return session._replace(**changes)


def _earlier_streams(_: Rules, session: Session, steps: Steps) -> tuple[Streams, ...]:
    return tuple(streams for streams in session.streams if streams.step < len(steps))


def state_after(_: Rules, session: Session, steps: Sequence[StepRecord]) -> CastState:
    """Return the state after the last of ``steps``, or the start state if ``steps`` is empty."""
    return steps[-1].after if steps else session.start


def edits_before(rules: Rules, session: Session, steps: Sequence[StepRecord]) -> tuple[Edit, ...]:
    """Return the edits that are included in the state after the last of ``steps``, oldest first.

    The state after a step includes the edits that a person made while the step was waiting.
    """
    number, reached = len(steps), state_after(rules, session, steps)
    newer = [edit for edit in session.edits if edit.step >= number]
    first = next(
        (index for index, edit in enumerate(newer) if edit.step > number or equal_json(edit.before.data, reached.data)),
        len(newer),
    )
    return session.edits[: len(session.edits) - len(newer) + first]


def files_after(session: Session, number: int) -> str | None:
    """Return the snapshot of the project's files after step ``number``, or None if no snapshot was saved.

    Step 0 is the start of the cast.
    """
    if not session.steps:
        return session.files
    files = session.steps[max(0, number - 1)].files
    return None if files is None else files.after if number else files.before


_LaneStatus: TypeAlias = Literal["waiting", "running", "accepted", "failed", "interrupted"]


class Lane(NamedTuple):
    """A lane, which processes one stream of a parallel loop's items.

    The lane's ``session`` starts when the items are distributed, and its step numbers continue the cast's numbering.
    ``indexes`` are the positions of the lane's items in the list. ``started`` and ``ended`` are the times of the lane's
    last run.
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
        """True if the lane has ended; a retry of the cast can continue a lane that was not accepted."""
        return self.status not in ("waiting", "running")


class Streams(NamedTuple):
    """The lanes of a parallel loop, in the order of the schedule.

    Attributes:
        region: the loop region whose items are distributed.
        step: the number of the step in which the generator returned the items.
        before: the usage of the cast before the lanes started.
        limit: the maximum number of lanes that run at the same time.
        lanes: the lanes by name.
        status: the status of the parallel loop.
    """

    region: Region
    step: int
    before: Usage
    limit: int
    lanes: Mapping[str, Lane]
    status: Literal["running", "joined", "failed"] = "running"


def lanes_at_work(session: Session) -> Streams | None:
    """Return the lanes that are not yet joined: lanes that are running, or failed lanes that a retry can continue."""
    last = session.streams[-1] if session.streams else None
    return last if last is not None and last.status != "joined" else None


def lanes_running(session: Session) -> Streams | None:
    """Return the lanes that are running, or None if no lane is running or the cast has stopped."""
    last = session.streams[-1] if session.streams else None
    return last if last is not None and last.status == "running" and session.state.status == "ready" else None


def parts_of(session: Session) -> Iterator[Session]:
    """Yield the session of the cast and then the session of each lane."""
    yield session
    for streams in session.streams:
        for lane in streams.lanes.values():
            yield lane.session


def every_step(session: Session) -> Iterator[tuple[StepRecord, bool]]:
    """Yield each step of the cast and its lanes, with True if the cast abandoned the step by going back."""
    for part in parts_of(session):
        yield from ((step, False) for step in part.steps)
        yield from ((step, True) for line in part.abandoned for step in line)
    for streams in session.abandoned_streams:
        yield from ((step, True) for lane in streams.lanes.values() for step, _ in every_step(lane.session))


def all_steps(session: Session, *, by_time: bool = False) -> Sequence[StepRecord]:
    """Return the steps of the cast and its lanes; steps of lanes follow the step that distributed the items.

    The steps are grouped by lane or, if ``by_time`` is True, sorted by their start time.
    """
    if not session.streams:
        return session.steps
    steps: list[StepRecord] = []
    done = 0
    for streams in session.streams:
        steps += session.steps[done : streams.step]
        lane_steps = [lane.session.steps for lane in streams.lanes.values()]
        steps += merge(*lane_steps, key=lambda step: step.started) if by_time else chain(*lane_steps)
        done = streams.step
    return [*steps, *session.steps[done:]]


def label_of(session: Session, step: StepRecord | None = None) -> Label:
    """Return the label of a step or, if ``step`` is None, of the cast."""
    return session.labels.get(WHOLE_CAST if step is None else (step.branch, step.number), Label())


def current_item_id(rules: Rules, session: Session, step: StepRecord) -> ItemId | None:
    """Return the current id of a step's item, or None if the step has no item or a person removed the item (R46)."""
    if step.at.item is None or not session.edits:
        return step.at.item and step.at.item.id
    return id_after_edits(rules, (edit for edit in session.edits if edit.step >= step.number), step.at.item.id)


def id_after_edits(rules: Rules, edits: Iterable[Edit], item: ItemId) -> ItemId | None:
    """Return the id that an item has after a sequence of edits, or None if an edit removed the item."""
    positions = list(positions_of(item))
    for edit in edits:
        for path, change in edit.lists.items():
            cursors = {iteration.iterator.cursor for iteration in rules.lists[tuple(path.split("."))]}
            for depth, (name, index) in enumerate(positions):
                if name in cursors:
                    if index not in change.origins:
                        return None
                    positions[depth] = (name, change.origins.index(index))
    return (*positions[-1], tuple(positions[:-1]))


def _turn_messages(turn: TurnRecord) -> tuple[Message, Message]:
    """Return the prompt and the answer of a turn as two messages of a conversation."""
    question = turn.message if turn.message is not None else turn.prompt.text if turn.prompt else ""
    return Message("user", question), Message("assistant", turn.text, turn.calls)


def count_turns(rules: Rules, _: Session, steps: Sequence[StepRecord]) -> dict[str, int]:
    """Return the number of turns of each socket and each materia (``materia <id>``) in these steps."""
    counts: dict[str, int] = {}
    for step in steps:
        socket = rules.sockets[step.socket].socket
        if not socket.is_utility:
            turn_count = sum(turn.mode != "correction" for turn in step.turns)  # a correction is not a turn of an agent
            for key in (step.socket, f"materia {socket.materia.id}"):
                counts[key] = counts.get(key, 0) + turn_count
    return FrozenDict({key: count for key, count in counts.items() if count})


ActionKind: TypeAlias = Literal["enter", "utility", "agent", "person"]


class PendingAction(NamedTuple):
    """An action that the cast is waiting for.

    Attributes:
        what: the kind of action: ``enter`` the next socket, run a ``utility``, call an ``agent``, or wait for a
            ``person`` to decide on tool calls, a draft or a held output.
        visit: the visit that is waiting for an output, or None for ``enter``.
        lane: the name of the lane, or "" for the cast itself.
    """

    what: ActionKind
    visit: Visit | None = None
    lane: str = ""


def pending_actions(rules: Rules, session: Session) -> tuple[PendingAction, ...]:
    """Return the actions that the cast is waiting for, or () if the cast has ended. There can be several, because lanes can run in parallel."""
    if (streams := lanes_running(session)) is not None:
        return tuple(_lane_actions(rules, streams)) or (PendingAction("enter"),)
    action = pending_action(rules, session)
    return () if action is None else (action,)


def _lane_actions(rules: Rules, streams: Streams) -> Iterator[PendingAction]:
    """Yield the pending action of each unfinished lane: running lanes first, then in schedule order (P4)."""
    for lane in sorted(streams.lanes.values(), key=lambda lane: lane.status != "running"):
        if not lane.is_over and (action := pending_action(rules, lane.session)) is not None:
            yield action._replace(lane=lane.name)


def pending_action(rules: Rules, session: Session) -> PendingAction | None:
    """Return the pending action of one session, ignoring its lanes, or None if the session has ended."""
    state, visit = session.state, session.state.at
    if state.status == "ready":
        return PendingAction("enter")
    if state.status == "held":
        return PendingAction("person", visit)
    if state.status != "waiting" or visit is None:
        return None
    if rules.sockets[visit.socket].socket.is_utility:
        return PendingAction("utility", visit)
    decides_calls = session.open_calls and any(call.decided is None for call in session.open_calls)
    reviews_draft = visit.drafts and visit.mode == "draft" and session.change_request is None
    return PendingAction("person" if decides_calls or reviews_draft else "agent", visit)


_ARTIFACT_WORDS: Final[Mapping[type[Output], str]] = {
    SocketRefinement: "refinement",
    SocketWorked: "work",
    SocketHeld: "held",
    SocketContinued: "continued",
}  # The word in the artifact name of an output that did not complete its socket, by event class.


def branch_suffix(branch: int) -> str:
    """Return the suffix for file names in a branch, so that files of abandoned branches are not overwritten."""
    return f".branch-{branch}" if branch else ""


def output_name(socket: str, visit: int, item_key: str | None, suffix: str = ".md") -> str:
    """Return the path of the file that contains the output of a visit."""
    item = "" if item_key is None else f"-{item_key}"
    return f"sockets/{socket}/{visit}{item}{suffix}"


def context_name(socket: str, visit: int, item_key: str | None, branch: int = 0) -> str:
    """Return the path of the file that contains the prompt of a visit."""
    middle = f"{socket}-{visit}" if item_key is None else f"{socket}-{item_key}-{visit}"
    return f"contexts/{middle}{branch_suffix(branch)}.md"


def name_of_output(session: Session, kind: type[Output]) -> str:
    """Return the artifact name for a new output of the latest step; an event of class ``kind`` records the output."""
    step = session.steps.latest
    assert step is not None  # noqa: S101 - an output answers a step
    suffix = f"{branch_suffix(step.branch)}.md" if step.branch else ".md"
    if kind is not SocketComplete:
        # Numbered by the turns of the visit, so that no retry overwrites an earlier output.
        suffix = f".{_ARTIFACT_WORDS.get(kind, 'refused')}-{len(step.turns) + 1}{suffix}"
    at = step.at
    key = at.item.key if at.item else None
    name = session.prefix + output_name(at.socket, at.visit, key, suffix)
    if step.turns and name in [turn.artifact for turn in step.turns]:  # accepted, but the cast failed
        name = session.prefix + output_name(at.socket, at.visit, key, f".again-{len(step.turns) + 1}{suffix}")
    return name


def name_of_correction(session: Session) -> str:
    """Return the artifact name for a person's correction of the latest output."""
    step = session.steps[-1]
    suffix = f"{branch_suffix(step.branch)}.corrected-{len(step.turns) + 1}.md"
    return session.prefix + output_name(step.socket, step.visit, step.item_key, suffix)
