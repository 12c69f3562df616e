"""Define the events of a cast, with one class for each event type.

The fields of a class are the fields of the event's JSON object in the journal (R29). The JSON object omits a field
whose value is None or an empty object. The field ``about`` contains the JSON fields that identify the visit.
:mod:`materia_nb.engine.evolve` applies events to a session.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, cast, dataclass_transform

from materia_nb.engine.conversation import ToolCall, ToolDecision, parse_call
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision
from materia_nb.engine.state import NOTHING, CastState, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import Reading
from materia_nb.jsonvalue import JSON

VERSION: Final = 2
"""Format version of the events in a journal (R43)."""

About: TypeAlias = Mapping[str, JSON]
"""JSON fields that identify a visit; :data:`ABOUT_FIELDS` contains their names."""

LaneEnd: TypeAlias = Literal["accepted", "failed", "interrupted"]

ABOUT_FIELDS: Final = ("socket", "materia", "materiaLabel", "itemKey", "itemLabel", "itemLabelShort")

OUTPUT_INLINE_BYTES: Final = 65_536
"""Maximum size, in bytes, of an output stored inside an event; a longer output is stored as an artifact (R43)."""


_Kind: TypeAlias = "type[Event]"
EVENTS: Final[dict[str, _Kind]] = {}
"""The event classes by type name, in the order of their definition in this module."""


REQUIRED: Final[Any] = object()
"""The default value that marks a field as required; a missing required field is an error."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _EventFields:
    """Base class that collects an event's fields from the class annotations and registers the class by its type name.

    An instance stores only the fields that were passed to it; default values are stored in the class. Frozen
    dataclasses could be used instead, but creating sixty of them took a seventh of the time needed to load the magics.
    """

    type: ClassVar[str]
    annotations: ClassVar[Mapping[str, str]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, type: str = "") -> None:  # noqa: A002 - it is the word of the journal
        """Register the class under the type name ``type``; a base class has no type name and is not registered."""
        own_annotations = inspect.get_annotations(cls)
        cls.annotations = {**cls.annotations, **own_annotations}
        cls.defaults = {**cls.defaults, **{name: cls.__dict__.get(name, REQUIRED) for name in own_annotations}}
        cls.required = frozenset(name for name, default in cls.defaults.items() if default is REQUIRED)
        if type:
            cls.type = type
            EVENTS[type] = cast("_Kind", cls)

    def __init__(self, **fields: Any) -> None:
        """Set the fields; raise TypeError if a field is unknown or a required field is missing."""
        if not (self.required <= fields.keys() <= self.defaults.keys()):
            missing, more = self.required - fields.keys(), fields.keys() - self.defaults.keys()
            raise TypeError(f"{type(self).__name__}: missing fields {sorted(missing)}, unknown fields {sorted(more)}")
        self.__dict__.update(fields)

    def __setattr__(self, name: str, _: object) -> None:
        """Raise AttributeError, because events are immutable."""
        raise AttributeError(f"{name} cannot be set, because events are immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._compared_fields() == other._compared_fields()

    __hash__ = None  # type: ignore[assignment]

    def _compared_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.defaults if name not in _NOT_COMPARED}

    def __repr__(self) -> str:
        fields = {name: value for name, value in self._compared_fields().items() if value != self.defaults[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"


_NOT_COMPARED: Final = ("ts", "transition")


class Event(_EventFields):
    """Base class of all events.

    ``ts`` is the time of the event, in milliseconds since the epoch. ``lane`` is the name of the lane, or "" if the
    event belongs to the cast itself. ``transition`` is the state transition that caused the event, or None if the event
    was read from a journal: the journal does not contain transitions, so :func:`~materia_nb.engine.evolve.evolve`
    computes them again. Comparisons of events ignore ``ts`` and ``transition``.
    """

    ts: int = 0
    lane: str = ""
    transition: Transition | None = None

    def replace(self, **changes: Any) -> Self:
        """Return a copy of the event in which the fields in ``changes`` have new values."""
        if not changes.keys() <= self.defaults.keys():
            raise TypeError(f"a {self.type} has no {', '.join(changes.keys() - self.defaults.keys())}")
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy


class PersonEvent(Event):
    """Base class of events that record an action of a person; ``by`` is the person."""

    by: str = "person"


class AboutEvent(Event):
    """Base class of events that name a socket."""

    about: About = NOTHING


class VisitEvent(AboutEvent):
    """Base class of events that belong to one visit of a socket."""

    visit: int | None = None


class PersonAboutEvent(AboutEvent):
    """Base class of events that record an action of a person and name a socket; ``by`` is the person."""

    by: str = "person"


# -- the cast ----------------------------------------------------------------------------


class CastStart(Event, type="cast_start"):
    """The cast was started."""

    request: str = ""
    config_source: str = ""
    artifact_root: str = ""
    loadout: str | None = None
    project: str | None = None
    owners: Mapping[str, JSON] = NOTHING
    engine: str = ""
    session: str = ""
    place: Mapping[str, JSON] = NOTHING
    knowledge: Mapping[str, JSON] = NOTHING
    state: Mapping[str, JSON] = NOTHING
    forked_from: Mapping[str, JSON] = NOTHING
    files: str = ""


class EndEvent(Event):
    """Base class of events that record the end of a cast or of a lane.

    ``worked`` is the working time of the failed turn, in milliseconds.
    """

    error: str | None = None
    kind: str | None = None
    socket: str | None = None
    hint: str | None = None
    worked: int | None = None


class CastEnd(EndEvent, type="cast_end"):
    """The cast ended. A failed cast can be retried."""

    ok: bool | None = None
    step: int | None = None
    usage: Mapping[str, JSON] = NOTHING
    warnings: tuple[Mapping[str, JSON], ...] | None = None
    warnings_in_all: int | None = None


class CastRetried(AboutEvent, type="cast_recast"):
    """A person retried the socket at which the cast had stopped."""


class LimitRaised(AboutEvent, type="cast_revive"):
    """A person raised the limit that had stopped the cast, and the cast continues."""

    kind: str = ""


class AnsweredByHand(PersonAboutEvent, type="answered_by_hand"):
    """The stopped visit now waits for an answer from a person instead of its agent or process.

    `after` is the kind of failure that stopped the visit.
    """

    after: str = ""


class SocketFailed(VisitEvent, type="socket_failed"):
    """The agent or process of a visit failed, and the cast continues along a `failed` edge."""

    kind: str = ""
    error: str = ""
    hint: str | None = None
    worked: int | None = None


class SocketSkipped(VisitEvent, type="socket_skipped"):
    """A person skipped the socket at which the cast had stopped or, if `item` is true, the current item.

    `note` is the reason that the person gave.
    """

    note: str = ""
    next: str | None = None
    item: bool = False
    by: str = "person"


class CastBack(PersonEvent, type="cast_back"):
    """The cast went back and continues from the state after an earlier step; step 0 is the start of the cast."""

    step: int


class FilesKept(Event, type="files_kept"):
    """The project's files were saved as the snapshot `commit`.

    `by` is the trigger: a completed `step`, a change by a `person`, or a return to an earlier step (`back`).
    `changed` lists at most 200 of the changed files, and `inAll` is their total number. `leftOut` lists the files
    that are too large to save. If `folder` is set, the cast continues in this folder of its run directory; each
    lane has its own folder. If `problem` is set, the files could not be saved, and `problem` is the reason.
    """

    step: int = 0
    commit: str | None = None
    by: str = "step"
    changed: tuple[str, ...] = ()
    in_all: int = 0
    left_out: tuple[str, ...] = ()
    folder: str = ""
    problem: str = ""


# -- lanes -------------------------------------------------------------------------------


class StreamsStarted(Event, type="streams_started"):
    """The items of a parallel generator were distributed to lanes, of which at most `limit` run at a time."""

    loop: str
    streams: tuple[Mapping[str, JSON], ...]
    limit: int


class LaneStarted(Event, type="lane_started"):
    """A lane started, either for the first time or because it was retried."""


class LaneEnded(EndEvent, type="lane_ended"):
    """A lane ended as `accepted`, `failed` or `interrupted`. See `cast_end` for the other fields."""

    status: LaneEnd

    @property
    def ok(self) -> bool:
        """True if the lane was accepted; corresponds to the field `ok` of `cast_end`."""
        return self.status == "accepted"


class StreamsJoined(Event, type="streams_joined"):
    """All lanes were accepted. The cast continues after the parallel loop, with the outputs of the lanes."""

    loop: str
    next: str


class StreamsFailed(Event, type="streams_failed"):
    """At least one lane was not accepted. The cast fails, and the results of all lanes are discarded."""

    loop: str
    kind: str
    error: str


# -- a visit -----------------------------------------------------------------------------


class SocketStart(VisitEvent, type="socket_start"):
    """A socket was entered. `step` is the number of this visit within the cast."""

    step: int | None = None


class UtilityInput(VisitEvent, type="utility_input"):
    """A utility was started. The artifact contains its input."""

    artifact: str | None = None


class UtilityCommand(VisitEvent, type="utility_command"):
    """The process of a utility ended or could not be started."""

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


class Output(VisitEvent):
    """Base class of events that record an output.

    ``text`` is the output; if the output is long, it is stored in the file ``artifact`` instead. ``by`` is the person
    who answered in place of a failed agent or process. ``thinking`` is the agent's thinking (R49). ``cut`` names the
    limit that truncated the output (R52). ``worked`` is the working time in milliseconds: 0 for a person's answer, and
    None if the time is unknown (R56).
    """

    text: str | None = None
    artifact: str | None = None
    sha256: str | None = None
    usage: Usage | None = None
    meta: Mapping[str, JSON] = NOTHING
    changed_files: tuple[str, ...] = ()
    pinned: str | None = None
    by: str | None = None
    thinking: str | None = None
    cut: str | None = None
    worked: int | None = None


class SocketComplete(Output, type="socket_complete"):
    """An output was accepted. `detour` is the socket that runs next, before this socket runs again."""

    parsed: bool = False
    next: str | None = None
    detour: str | None = None


class SocketRefinement(Output, type="socket_refinement"):
    """The agent of a multi-turn socket returned a draft."""

    refinement_turn: int | None = None


class SocketWorked(Output, type="socket_worked"):
    """The agent of a socket with `finalize` finished its work. The next turn asks the agent for its handoff."""


class SocketRefused(Output, type="socket_refused"):
    """An output was refused, so the cast failed."""

    process: str = ""


class SocketHeld(Output, type="socket_held"):
    """An output asks for a person's answer or decision. The output is applied after the person has decided."""

    action: str = ""
    reason: str = ""
    needs: str | None = None


class SocketContinued(Output, type="socket_continued"):
    """The agent reported that it has not finished its work, so it is asked to continue."""

    reason: str = ""


class RecoveryStart(Output, type="same_socket_recovery_start"):
    """An output was refused, and a repair turn follows."""

    attempt: int | None = None
    max_attempts: int | None = None
    validation_kind: str | None = None
    error: str | None = None


class RecoveryRetry(VisitEvent, type="same_socket_recovery_retry"):
    """The repair turn starts."""

    attempt: int | None = None
    max_attempts: int | None = None
    validation_kind: str | None = None


class RecoveryExhausted(Output, type="same_socket_recovery_exhausted"):
    """An output was refused, and the visit has no repair turns left."""

    attempt: int | None = None
    error: str | None = None


class SideEventRecorded(VisitEvent, type="materia_event"):
    """An output contained a side event, that is, an entry in its field `event` (R39).

    `sequence` is the number of the side event within the cast, starting at 1; lanes continue this numbering. `refused`
    is true if the output was refused for a reason unrelated to the side event (R53).
    """

    sequence: int
    event: Mapping[str, JSON]
    refused: bool | None = None


class ScopeChanged(VisitEvent, type="scope_changed"):
    """The previous output changed the directory in which utilities and agents work (P8)."""

    scope: Mapping[str, JSON] = NOTHING


class AssignmentFailed(VisitEvent, type="assignment_failed"):
    """An assignment from the accepted output failed, so the cast fails (R54)."""

    error: str = ""


class EvidenceMissing(VisitEvent, type="evidence_missing"):
    """The accepted output lists created files that do not exist on disk; `paths` names these files."""

    paths: tuple[str, ...] = ()


class BudgetMaxima(Event):
    """Base class of events that contain the limits of a budget."""

    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    max_turns: int | None = None


class BudgetEvent(BudgetMaxima):
    """Base class of events that report the use of a budget and its limits."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    turns: int | None = None


class BudgetWarning(BudgetEvent, type="budget_warning"):
    """The budget is nearly used up."""


class BudgetLimit(BudgetEvent, type="budget_limit"):
    """The budget is used up."""


class BudgetBlind(AboutEvent, type="budget_blind"):
    """The `tokens`, `cost` or `seconds` of a turn are unknown, so the budget cannot count them.

    Each of these quantities is reported at most once in a cast (R56).
    """

    of: str = "tokens"


# -- the turn of an agent ------------------------------------------------------------------


class ToolCalled(AboutEvent, type="tool_call"):
    """An agent called a tool.

    A call with side effects is recorded when it starts and again, with the same id, when it ends.
    """

    call: ToolCall


class ToolAsked(AboutEvent, type="tool_asked"):
    """Tool calls are waiting for a person's approval. `worked` is the agent's working time so far, in milliseconds."""

    calls: tuple[ToolCall, ...] = ()
    worked: int | None = None


class ToolDecided(PersonAboutEvent, type="tool_decided"):
    """A person approved (`once`, `always`) or denied (`denied`) tool calls. `calls` are the calls that run now."""

    decided: ToolDecision
    calls: tuple[ToolCall, ...] = ()


class ToolsAllowed(PersonEvent, type="tools_allowed"):
    """A person changed the set of tools that run without approval; `tools` is the new set."""

    tools: tuple[str, ...] = ()


class AgentNote(AboutEvent, type="agent_note"):
    """The agent sent a note to the person, for example about a retried request or an unknown tool."""

    text: str = ""


class TurnSpent(AboutEvent, type="turn_spent"):
    """A turn ended without an output, because the turn failed, was interrupted or is waiting for approval.

    `usage` is the usage of this turn.
    """

    usage: Usage


class TurnRetried(AboutEvent, type="turn_resent"):
    """The prompt of an interrupted turn is sent again."""


# -- actions of a person ----------------------------------------------------------------------


class RefinementMessage(AboutEvent, type="refinement_message"):
    """A person asked for a change to a draft."""

    text: str = ""


class RefinementFinal(AboutEvent, type="refinement_final"):
    """A person asked for the final result of a draft."""


class HoldAnswered(PersonAboutEvent, type="hold_answered"):
    """A person answered the agent that put the cast on hold."""

    text: str = ""


class ApprovalAnswered(PersonAboutEvent, type="approval_answered"):
    """A person approved or denied the execution of a command."""

    approval_id: str = ""
    fingerprint: str = ""
    exact_content: str = ""
    granted: bool = False
    expires: int | None = None
    text: str = ""


class HoldDecided(PersonAboutEvent, type="hold_decided"):
    """A person decided in place of the agent, and the held output is accepted."""

    satisfied: bool | None = None
    target: str | None = None


class BudgetSet(BudgetMaxima, type="budget_set"):
    """A person changed the budget of this cast."""


class Pinned(PersonEvent, type="pinned"):
    """A person pinned the answer of a socket or materia (R40): one `text`, one text for each visit, or a `function`."""

    name: str
    kind: str
    to: str
    text: str | None = None
    visits: Mapping[str, JSON] = NOTHING


class Unpinned(PersonEvent, type="unpinned"):
    """A person removed the pin of a socket or materia."""

    name: str


class SuggestionKept(PersonEvent, type="suggestion_kept"):
    """A person saved a suggestion that the agent made in this step."""

    step: int | None = None
    suggestion: JSON = None


class StateEdited(PersonEvent, type="state_edited"):
    """A person edited the state after this step. `lists` contains the list edits; `said` describes the moved items."""

    patch: tuple[Mapping[str, JSON], ...] = ()
    inverse: tuple[Mapping[str, JSON], ...] = ()
    step: int = 0
    lists: Mapping[str, JSON] = NOTHING
    said: tuple[str, ...] = ()


class MateriaRedefined(PersonEvent, type="materia_redefined"):
    """A person changed the definition of a materia in the cast and its config. `previous` is the old definition."""

    materia: str
    definition: Mapping[str, JSON]
    previous: JSON = None
    step: int = 0


class PromptEdited(PersonAboutEvent, type="prompt_edited"):
    """A person changed part of the prompt, for this turn only."""

    part: str = ""
    text: str = ""


class EditUndone(Event, type="edit_undone"):
    """A person undid the last edit of the state."""


class Labelled(PersonEvent, type="labelled"):
    """A person changed the label of a step or, if `step` is 0, of the cast.

    `undoes` is true if this event undoes the previous change to a label.
    """

    step: int = 0
    branch: int = 0
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    undoes: bool = False


class OutputEdited(PersonEvent, type="socket_recommitted"):
    """A person corrected the output of this step."""

    step: int = 0
    text: str | None = None
    artifact: str | None = None
    sha256: str | None = None


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
"""The event classes that record an output of an agent or utility."""

RECOVERY: Final = (RecoveryStart, RecoveryExhausted)
"""The event classes that record a refused output and its repair."""


class ImpossibleEvent(MateriaError):
    """Raised for an event that is impossible in the session, for example because the journal was edited."""

    def __init__(self, event: Event, why: str) -> None:
        super().__init__(
            f"The journal is inconsistent at the event {event.type}: {why}.",
            hint="restore the run directory from a copy, because its config or journal was changed",
            kind="damaged_journal",
        )


Events: TypeAlias = tuple[Event, ...]
"""The events that a command returns, in order."""


class Transition(NamedTuple):
    """Result of a state transition: the next state, the events and the decision.

    Attributes:
        state: the state after the transition.
        events: the events that record the transition, in order.
        decision: the routing decision, or None if the transition made no decision.
        prompt: the prompt that an agent must answer, or None.
        reading: the parsed and validated output, or None if the transition read no output.
        before: the state before the transition.
        forced: True if a recorded cast made this transition but the engine's rules would not.
    """

    state: CastState
    events: tuple[Event, ...] = ()
    decision: Decision | None = None
    prompt: Prompt | None = None
    reading: Reading | None = None
    before: CastState | None = None
    forced: bool = False

    def events_from(self, before: CastState, ts: int) -> Events:
        """Return the events of the transition, with the time ``ts``.

        The first event carries this transition and the state before it, so that ``evolve`` need not compute the
        transition again.
        """
        first, *rest = self.events
        first_event = first.replace(ts=ts, transition=self._replace(before=before))
        return (first_event, *[event.replace(ts=ts) for event in rest]) if rest else (first_event,)


class _Conversion(NamedTuple):
    """Conversion of a field's value to and from JSON; ``read`` raises ValueError if the JSON value is invalid."""

    write: Callable[[Any], JSON]
    read: Callable[[JSON], Any]


def _return_unchanged(value: Any) -> Any:
    return value


def _type_reader(*types: type) -> Callable[[JSON], Any]:
    """Return a reader that accepts only values of exactly these types. For example, true is not accepted as a number."""

    def read(value: JSON) -> Any:
        if type(value) not in types:
            raise ValueError(value)
        return value

    return read


def _read_object(value: JSON) -> Any:
    if not isinstance(value, dict):
        raise ValueError(value)  # noqa: TRY004 - one kind of error for all
    return value


def _list_reader(form: Callable[[JSON], Any]) -> Callable[[JSON], Any]:
    def read(value: JSON) -> Any:
        if not isinstance(value, list):
            raise ValueError(value)  # noqa: TRY004
        return tuple(form(item) for item in value)

    return read


def _read_call(value: JSON) -> ToolCall:
    if (call := parse_call(value)) is None:
        raise ValueError(value)
    return call


def _choice_conversion(*choices: str) -> _Conversion:
    def read(value: JSON) -> Any:
        if value not in choices:
            raise ValueError(value)
        return value

    return _Conversion(_return_unchanged, read)


_CONVERSIONS: Final[Mapping[str, _Conversion]] = {
    "str": _Conversion(_return_unchanged, _type_reader(str)),
    "int": _Conversion(_return_unchanged, _type_reader(int)),
    "float": _Conversion(_return_unchanged, _type_reader(int, float)),
    "bool": _Conversion(_return_unchanged, _type_reader(bool)),
    "JSON": _Conversion(_return_unchanged, _return_unchanged),
    "Mapping[str, JSON]": _Conversion(dict, _read_object),
    "tuple[str, ...]": _Conversion(list, _list_reader(_type_reader(str))),
    "tuple[Mapping[str, JSON], ...]": _Conversion(list, _list_reader(_read_object)),
    "ToolCall": _Conversion(lambda call: call.as_json(), _read_call),
    "tuple[ToolCall, ...]": _Conversion(lambda calls: [call.as_json() for call in calls], _list_reader(_read_call)),
    "Usage": _Conversion(Usage.as_json, Usage.read),
    "ToolDecision": _choice_conversion("once", "always", "denied"),
    "LaneEnd": _choice_conversion("accepted", "failed", "interrupted"),
}


# -- events in the journal ------------------------------------------------------------


class Field(NamedTuple):
    """A field of an event: its attribute name, its key in the journal, its conversion and its default value."""

    name: str
    key: str
    form: _Conversion
    default: Any


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _fields(event: type[Event]) -> dict[str, Field]:
    return {
        _camel_case(name): Field(
            name, _camel_case(name), _CONVERSIONS[form.removesuffix(" | None")], event.defaults[name]
        )
        for name, form in event.annotations.items()
        if name not in ("ts", "about", "transition")
    }


FIELDS: Final = {event: _fields(event) for event in EVENTS.values()}
"""The fields of each event class by JSON key, except ``ts``, ``transition`` and the fields in ``about``."""
_OMITTED_IF_EMPTY: Final = frozenset({"changed_files", "process", "session", "lane"})
"""Fields that the JSON object omits if they are empty."""
_ABOUT_EVENTS: Final = frozenset(event for event in EVENTS.values() if "about" in event.annotations)


def to_json(event: Event) -> dict[str, JSON]:
    """Return the JSON object that represents an event in the journal."""
    kind = type(event)
    data: dict[str, JSON] = dict(event.about) if kind in _ABOUT_EVENTS else {}  # type: ignore[attr-defined]
    values = event.__dict__
    for name, key, form, default in FIELDS[kind].values():
        value = values.get(name, default)
        if value is None or (not value and (value == {} or (name in _OMITTED_IF_EMPTY and value in ((), "")))):
            continue
        data[key] = value if form.write is _return_unchanged else form.write(value)
    return data


def from_json(kind: str, data: Mapping[str, JSON], ts: int = 0, *, lenient: bool = False) -> Event | None:
    """Create an event from its JSON object; return None if the event type is unknown.

    Args:
        kind: the type name of the event.
        data: the JSON object from the journal.
        ts: the time of the event, in milliseconds since the epoch.
        lenient: True to ignore an optional field of the wrong type; False to raise an error.

    Raises:
        MateriaError: a required field is missing, or a field has the wrong type (``damaged_journal``).
    """
    if (event := EVENTS.get(kind)) is None:
        return None
    fields: dict[str, Any] = {"ts": ts}
    about: dict[str, JSON] = {}
    known_fields = FIELDS[event]
    for key, value in data.items():
        if (field := known_fields.get(key)) is None:
            if key in ABOUT_FIELDS:
                about[key] = value
        elif value is not None:
            try:
                fields[field.name] = field.form.read(value)
            except ValueError:
                if not lenient or field.default is REQUIRED:
                    raise _damaged_event_error(kind, key, "is of the wrong type") from None
    if event in _ABOUT_EVENTS:
        fields["about"] = about
    for name in event.required - fields.keys():
        raise _damaged_event_error(kind, _camel_case(name), "is missing")
    return event(**fields)


def _damaged_event_error(kind: str, key: str, why: str) -> MateriaError:
    return MateriaError(
        f"The journal is damaged: the field {key!r} of a {kind!r} event {why}.",
        hint="restore the file, or remove the damaged line and all later lines, then use `resume`",
        kind="damaged_journal",
    )
