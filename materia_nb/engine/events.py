"""What happens to a cast: one class an event. Its fields are its JSON in the journal (R29, :mod:`materia_nb.engine.event_json`).

:mod:`materia_nb.engine.evolve` says what each does to a session. A field that is None or an empty object is
left out of the JSON. ``about`` stands for the fields that say which visit is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.conversation import Decided, ToolCall
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision, decision_of
from materia_nb.engine.state import CastState, Draft, Failure, Usage, Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON

VERSION: Final = 2
"""The form of our events in a journal (R43)."""

About: TypeAlias = Mapping[str, JSON]
"""``socket``, ``materia``, ``materiaLabel`` and, inside an item, ``itemKey``, ``itemLabel``, ``itemLabelShort``."""

LaneEnd: TypeAlias = Literal["accepted", "failed", "interrupted"]

ABOUT: Final = ("socket", "materia", "materiaLabel", "itemKey", "itemLabel", "itemLabelShort")

OUTPUT_INLINE_BYTES: Final = 65_536
"""An output of at most so many bytes stands in its event, a longer one in its artifact (R43)."""


EVENTS: Final[dict[str, type[Event]]] = {}
"""Every event by its type, in the order of this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. ``ts`` is the time in milliseconds since the epoch, ``lane`` the lane that it happened in, if any.

    ``transition`` is what whoever told the event found that the engine makes of it; the journal does not have it, and
    :func:`~materia_nb.engine.evolve.evolve` finds it anew then.
    """

    type: ClassVar[str]
    ts: int = field(default=0, compare=False)
    lane: str = ""
    transition: Transition | None = field(default=None, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        """Keep the event by its type; what only others are made from has none."""
        if "type" in cls.__dict__:
            EVENTS[cls.type] = cls


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitEvent(Event):
    """Something that happened to a visit."""

    about: About = field(default_factory=dict)
    visit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutEvent(Event):
    """Something that happened at a socket."""

    about: About = field(default_factory=dict)


# -- the cast ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CastStart(Event):
    """The cast began."""

    type: ClassVar[str] = "cast_start"
    request: str = ""
    config_source: str = ""
    artifact_root: str = ""
    loadout: str | None = None
    project: str | None = None
    owners: Mapping[str, JSON] = field(default_factory=dict)
    engine: str = ""
    session: str = ""
    place: Mapping[str, JSON] = field(default_factory=dict)
    knowledge: Mapping[str, JSON] = field(default_factory=dict)
    state: Mapping[str, JSON] = field(default_factory=dict)
    forked_from: Mapping[str, JSON] = field(default_factory=dict)
    files: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CastEnd(Event):
    """The cast ended; recast and revive may follow. ``worked`` is the time in milliseconds of a turn that failed."""

    type: ClassVar[str] = "cast_end"
    ok: bool | None = None
    error: str | None = None
    kind: str | None = None
    socket: str | None = None
    hint: str | None = None
    step: int | None = None
    worked: int | None = None
    usage: Mapping[str, JSON] = field(default_factory=dict)
    remarks: tuple[Mapping[str, JSON], ...] | None = None
    remarks_in_all: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRecast(AboutEvent):
    """The socket where the cast stopped is asked again."""

    type: ClassVar[str] = "cast_recast"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRevive(AboutEvent):
    """The cast goes on, with more of what it lacked."""

    type: ClassVar[str] = "cast_revive"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredByHand(AboutEvent):
    """The socket where the cast stopped waits for what a person says in its place; `after` is the kind of the failure."""

    type: ClassVar[str] = "answered_by_hand"
    after: str = ""
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketFailed(VisitEvent):
    """The agent or process of a visit failed, and the cast goes on by the edge that waits for that."""

    type: ClassVar[str] = "socket_failed"
    kind: str = ""
    error: str = ""
    hint: str | None = None
    worked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketSkipped(VisitEvent):
    """A person goes on without the socket where the cast stopped, or with `item` without its item; `note` says why."""

    type: ClassVar[str] = "socket_skipped"
    note: str = ""
    next: str | None = None
    item: bool = False
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastBack(Event):
    """The cast goes on from the state after an earlier step; 0 is the start."""

    type: ClassVar[str] = "cast_back"
    step: int
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesKept(Event):
    """The project's files changed and are kept as `commit`, by that `step`, a `person` before the next one, or by going `back`.

    `changed` names the files, the first 200 of `inAll`; `leftOut` are those too long to be kept. With `folder` the cast works from here on in that folder of its run directory, a lane in that directory of its own;
    with `problem` nothing could be kept, and it says why.
    """

    type: ClassVar[str] = "files_kept"
    step: int = 0
    commit: str | None = None
    by: str = "step"
    changed: tuple[str, ...] = ()
    in_all: int = 0
    left_out: tuple[str, ...] = ()
    folder: str = ""
    problem: str = ""


# -- lanes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsStarted(Event):
    """The items of a parallel generator were handed to streams, each of which gets a lane; at most `limit` run at once."""

    type: ClassVar[str] = "streams_started"
    loop: str
    streams: tuple[Mapping[str, JSON], ...]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStarted(Event):
    """A lane runs now, for the first time or again."""

    type: ClassVar[str] = "lane_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneEnded(Event):
    """A lane was `accepted`, `failed` or `interrupted`; the other fields say why, as those of `cast_end` do."""

    type: ClassVar[str] = "lane_ended"
    status: LaneEnd
    error: str | None = None
    kind: str | None = None
    socket: str | None = None
    hint: str | None = None
    worked: int | None = None

    @property
    def ok(self) -> bool:
        """Whether it was accepted, as `cast_end` says it of a cast."""
        return self.status == "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsJoined(Event):
    """All lanes were accepted, and the cast goes on behind the barrier with what they handed over."""

    type: ClassVar[str] = "streams_joined"
    loop: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsFailed(Event):
    """Not all lanes were accepted, so the cast fails and nothing of any lane goes into its state."""

    type: ClassVar[str] = "streams_failed"
    loop: str
    kind: str
    error: str


# -- a visit -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketStart(VisitEvent):
    """A socket was entered; ``step`` counts the visits of the whole cast."""

    type: ClassVar[str] = "socket_start"
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityInput(VisitEvent):
    """A utility is started with the input in this artifact."""

    type: ClassVar[str] = "utility_input"
    artifact: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityCommand(VisitEvent):
    """The process of a utility ended, or did not start."""

    type: ClassVar[str] = "utility_command"
    command: JSON = None
    code: int | None = None
    signal: JSON = None
    timed_out: bool = False
    timeout_ms: JSON = None
    stdout_artifact: str | None = None
    stderr_artifact: str | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    max_bytes: JSON = None
    seconds: JSON = None
    start_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(VisitEvent):
    """An output arrived. ``text`` is the output, in the journal or, if it is long, in ``artifact``.

    ``by`` says who gave it, where that was a person in the place of an agent or a process that had failed.
    ``thinking`` is what its agent thought before (R49), ``cut`` by what it was cut off, if it was (R52). ``worked`` is for how
    many milliseconds its agent or process was at work, 0 where a person answered; absent, it is unknown (R56).
    """

    text: str | None = None
    artifact: str | None = None
    sha256: str | None = None
    usage: Usage | None = None
    meta: Mapping[str, JSON] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()
    pinned: str | None = None
    by: str | None = None
    thinking: str | None = None
    cut: str | None = None
    worked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketComplete(Output):
    """An output was accepted; ``detour`` is what runs first before this socket is done again."""

    type: ClassVar[str] = "socket_complete"
    parsed: bool = False
    next: str | None = None
    detour: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRefinement(Output):
    """A draft came."""

    type: ClassVar[str] = "socket_refinement"
    refinement_turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketWorked(Output):
    """The work of a socket with `finalize` came; its handoff is asked for next."""

    type: ClassVar[str] = "socket_worked"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRefused(Output):
    """An output was refused, and the cast fails."""

    type: ClassVar[str] = "socket_refused"
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketHeld(Output):
    """The output asks for a person; nothing of it is applied yet."""

    type: ClassVar[str] = "socket_held"
    action: str = ""
    reason: str = ""
    needs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketContinued(Output):
    """The agent is still at work and is asked to go on."""

    type: ClassVar[str] = "socket_continued"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryStart(Output):
    """An output was refused, and a repair turn follows."""

    type: ClassVar[str] = "same_socket_recovery_start"
    attempt: int | None = None
    max_attempts: int | None = None
    validation_kind: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRetry(VisitEvent):
    """The repair turn begins."""

    type: ClassVar[str] = "same_socket_recovery_retry"
    attempt: int | None = None
    max_attempts: int | None = None
    validation_kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryExhausted(Output):
    """An output was refused, and no repair turn is left."""

    type: ClassVar[str] = "same_socket_recovery_exhausted"
    attempt: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MateriaTold(VisitEvent):
    """The output just before told it in its `event` field (R39); `sequence` counts in the cast, from 1 and never twice; lanes count on from there, each by itself.

    `refused` marks what an output told that was refused for another reason (R53).
    """

    type: ClassVar[str] = "materia_event"
    sequence: int
    event: Mapping[str, JSON]
    refused: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChanged(VisitEvent):
    """The output just before says where utilities and agents work from here on (P8)."""

    type: ClassVar[str] = "scope_changed"
    scope: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentFailed(VisitEvent):
    """An assignment of the output just accepted cannot be carried out, and the cast fails (R54)."""

    type: ClassVar[str] = "assignment_failed"
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceMissing(VisitEvent):
    """The output just accepted says that it made these files, and they are not on the disk."""

    type: ClassVar[str] = "evidence_missing"
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEvent(Event):
    """How much of the budget is used."""

    tokens: int | None = None
    max_tokens: int | None = None
    cost: float | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWarning(BudgetEvent):
    """The budget is nearly used up."""

    type: ClassVar[str] = "budget_warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimit(BudgetEvent):
    """The budget is used up."""

    type: ClassVar[str] = "budget_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetBlind(AboutEvent):
    """Nobody reported the `tokens`, or the `cost`, of a turn, so the budget cannot count it (R56); told once of each."""

    type: ClassVar[str] = "budget_blind"
    of: str = "tokens"


# -- the turn of an agent ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(AboutEvent):
    """An agent used a tool; one that changes something is told when it begins, and again, with its id, when it ended."""

    type: ClassVar[str] = "tool_call"
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAsked(AboutEvent):
    """The agent cannot go on before a person has decided about these calls; it was at work for ``worked`` milliseconds."""

    type: ClassVar[str] = "tool_asked"
    calls: tuple[ToolCall, ...] = ()
    worked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecided(AboutEvent):
    """A person decided `once`, `always` or `denied`; `calls` are those to run now."""

    type: ClassVar[str] = "tool_decided"
    decided: Decided
    calls: tuple[ToolCall, ...] = ()
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsAllowed(Event):
    """The tools that need not ask from here on."""

    type: ClassVar[str] = "tools_allowed"
    tools: tuple[str, ...] = ()
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNote(AboutEvent):
    """The agent told something: a request that it tries again, a tool that does not exist."""

    type: ClassVar[str] = "agent_note"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSpent(AboutEvent):
    """What a turn cost that gave no output: it failed, was interrupted, or waits for approval."""

    type: ClassVar[str] = "turn_spent"
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResent(AboutEvent):
    """A turn that was cut short is asked once more."""

    type: ClassVar[str] = "turn_resent"


# -- what a person does ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementMessage(AboutEvent):
    """A person asked for a change of a draft."""

    type: ClassVar[str] = "refinement_message"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementFinal(AboutEvent):
    """A person asked for the final result."""

    type: ClassVar[str] = "refinement_final"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAnswered(AboutEvent):
    """A person answered the agent that holds the cast."""

    type: ClassVar[str] = "hold_answered"
    text: str = ""
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(AboutEvent):
    """A person consented to a command, or refused it."""

    type: ClassVar[str] = "approval_answered"
    approval_id: str = ""
    fingerprint: str = ""
    exact_content: str = ""
    granted: bool = False
    expires: int | None = None
    text: str = ""
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldDecided(AboutEvent):
    """A person decided in the agent's place; its output counts."""

    type: ClassVar[str] = "hold_decided"
    satisfied: bool | None = None
    target: str | None = None
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSet(Event):
    """A person changed the budget of this cast."""

    type: ClassVar[str] = "budget_set"
    max_tokens: int | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(Event):
    """A person chose what answers a socket or materia (R40): a `text`, a text for each visit, or a `function`."""

    type: ClassVar[str] = "pinned"
    name: str
    kind: str
    to: str
    text: str | None = None
    visits: Mapping[str, JSON] = field(default_factory=dict)
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned(Event):
    """A socket or materia is answered as if it had never been pinned."""

    type: ClassVar[str] = "unpinned"
    name: str
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionKept(Event):
    """A person kept what the agent of that step suggested to remember."""

    type: ClassVar[str] = "suggestion_kept"
    step: int | None = None
    suggestion: JSON = None
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEdited(Event):
    """A person changed the state after that step; `lists` says of each list which items are which, `said` what was moved."""

    type: ClassVar[str] = "state_edited"
    patch: tuple[Mapping[str, JSON], ...] = ()
    inverse: tuple[Mapping[str, JSON], ...] = ()
    step: int = 0
    lists: Mapping[str, JSON] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class MateriaRedefined(Event):
    """A person took a changed definition of a materia into the cast, whose config has it; `previous` is the one before."""

    type: ClassVar[str] = "materia_redefined"
    materia: str
    definition: Mapping[str, JSON]
    previous: JSON = None
    step: int = 0
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEdited(AboutEvent):
    """A person changed a part of the prompt, for this turn."""

    type: ClassVar[str] = "prompt_edited"
    part: str = ""
    text: str = ""
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditUndone(Event):
    """The last change of the state was taken back."""

    type: ClassVar[str] = "edit_undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Event):
    """What a person says of a step, or with `step` 0 of the cast, all of it anew; `undoes` takes the last change back."""

    type: ClassVar[str] = "labelled"
    step: int = 0
    branch: int = 0
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    undoes: bool = False
    by: str = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRecommitted(Event):
    """A person corrected the output of that step."""

    type: ClassVar[str] = "socket_recommitted"
    step: int = 0
    text: str | None = None
    artifact: str | None = None
    sha256: str | None = None
    by: str = "person"


OUTPUTS: Final[tuple[type[Output], ...]] = (
    SocketComplete,
    SocketRefinement,
    SocketWorked,
    SocketRefused,
    SocketHeld,
    SocketContinued,
    RecoveryStart,
    RecoveryExhausted,
)
"""The events of an output that arrived."""

RECOVERY: Final = (RecoveryStart, RecoveryExhausted)
"""Those of them that refuse it and ask for another, or would."""


class Unfit(MateriaError):
    """An event that cannot follow on the session: the journal was changed, or another engine wrote it."""

    def __init__(self, event: Event, why: str) -> None:
        super().__init__(
            f"The journal does not fit together: {event.type}, {why}.",
            hint="the config or the journal of this run directory was exchanged or changed",
            kind="damaged_journal",
        )


Events: TypeAlias = tuple[Event, ...]
"""What happened at once, in order."""


class Transition(NamedTuple):
    """What the engine makes of a state: the next one, the events that tell it, the decision.

    ``prompt`` is set when an agent is to answer, ``reading`` when an output was read. ``before`` is the state that an
    event which carries it was told in, and ``forced`` says that a recording went so, and the engine would not.
    """

    state: CastState
    events: tuple[Event, ...] = ()
    decision: Decision | None = None
    prompt: Prompt | None = None
    reading: Reading | None = None
    before: CastState | None = None
    forced: bool = False


def stop_cast(
    draft: Draft,
    failure: Failure,
    visit: Visit | None = None,
    reading: Reading | None = None,
    decision: Decision | None = None,
    *,
    events: tuple[Event, ...] = (),
) -> Transition:
    """Fail the cast; ``events`` are those before its end."""
    decision = decision or decision_of(visit or draft.at, "failure", None, reading)
    draft.status, draft.failure, draft.next = "failed", failure, None
    end = CastEnd(ok=False, error=failure.message, kind=failure.kind, socket=failure.socket or None)
    return Transition(draft.done(), (*events, end), decision._replace(failure=failure), None, reading)
