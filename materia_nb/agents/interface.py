"""The interface of agents: an agent receives a turn and returns a reply, which is validated and stored."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final, Generic, Literal, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

from materia_nb.agents.tools import MoreTools, Tool
from materia_nb.engine.conversation import Message, PromptPart, ToolCall
from materia_nb.engine.decide import Answer
from materia_nb.engine.prompt_context import current_handoffs
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import NOTHING, Handoff, Mode, Visit
from materia_nb.engine.state import Usage as StepUsage
from materia_nb.errors import MateriaError, close_match, named_error, outgoing_line
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, MISSING, compact, json_or_none, thawed
from materia_nb.platform import Stop

AGENT_CELL_PREFIX: Final = "<agent "
"""Prefix of the file name under which the code of a ``%%materia agent`` cell is compiled."""

TIMEOUT_S: Final = 600.0
"""Default time limit for the answer of a model or a program, in seconds."""

CELL_NAME_FINDERS: Final[list[Callable[[str], str | None]]] = []
"""Functions that convert the file name of compiled code to the name of a notebook cell; the magics add a function."""


def code_location(filename: str, line: int) -> str:
    """Return the location of a line of code for a message. In a notebook cell, lines are counted from 1."""
    if filename.startswith(AGENT_CELL_PREFIX):
        return f"line {line} of the cell %%materia agent {filename.removeprefix(AGENT_CELL_PREFIX).removesuffix('>')}"
    for find_cell_name in CELL_NAME_FINDERS:
        if (cell_name := find_cell_name(filename)) is not None:
            return f"line {line} of cell {cell_name}"
    return f"{filename}:{line}"


TurnKind: TypeAlias = Literal["work", "repair", "refine", "finalize", "resume"]

KIND_BY_MODE: Final[Mapping[Mode, TurnKind]] = {"draft": "refine", "final": "finalize"}
"""The kind of turn for each mode of a visit. For modes that are not listed, the kind is the name of the mode."""


class AgentError(MateriaError):
    """Raised when an agent cannot answer.

    ``kind`` identifies the reason; it is ``agent_error`` if no other kind applies.
    """

    default_kind = "agent_error"


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and the cost in US dollars of one turn (R20); values that are unknown are None (R56).

    ``cached`` is the part of ``input`` that was read from a cache, and ``reasoning`` is the part of ``output`` that was
    spent on thinking.
    """

    input: int | None = 0
    output: int | None = 0
    cost: float | None = None
    cached: int | None = None
    reasoning: int | None = None


TOKEN_KINDS: Final = ("input", "output", "cached", "reasoning")
"""The kinds of tokens that :class:`Usage` counts."""


@dataclass(frozen=True, slots=True)
class TextEvent:
    """Text that arrives while an agent answers. It is displayed but not stored.

    ``fresh`` is True for the first text of an answer.
    """

    text: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A tool call that has run or was denied. It is written to the journal immediately."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class NoteEvent:
    """A note to the user, for example about a retried request or a tool that does not exist."""

    text: str


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """Usage that is not part of a reply, because it belongs to an answer with tool calls or to a failed turn (R20)."""

    usage: Usage


AgentEvent: TypeAlias = TextEvent | CallEvent | NoteEvent | UsageEvent
"""An event that an agent reports while it answers."""


def ignore_event(_: AgentEvent) -> None:
    """Discard an event. This is the default handler for the events of a turn."""


_Value = TypeVar("_Value")


class _LazyField(Generic[_Value]):
    """A field of a turn that may be computed by a function when the field is first read."""

    def __init__(self, **default: _Value) -> None:
        self._default = default

    def __set_name__(self, _: type[Turn], name: str) -> None:
        self._name = name

    def __get__(self, turn: Turn | None, _: type[Turn]) -> _Value:
        if turn is None:
            if not self._default:
                raise AttributeError  # so that the dataclass field has no default
            return self._default["default"]
        stored = turn.__dict__[self._name]
        if callable(stored):
            stored = turn.__dict__[self._name] = stored()
        value: _Value = stored
        return value

    def __set__(self, turn: Turn, value: _Value | Callable[[], _Value]) -> None:
        turn.__dict__[self._name] = value


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A request to an agent for one answer.

    Attributes:
        socket_id: the id of the visited socket.
        materia_id: the id of the materia in the socket.
        materia_label: the label of the materia.
        visit: the number of the visit to the socket, starting at 1.
        kind: the kind of the turn: ``work`` (the first answer), ``repair`` (correct an invalid output, R19), ``refine``
            (improve a draft), ``finalize`` (write the final answer) or ``resume`` (continue after an interruption).
        prompt: the current prompt.
        parts: the parts of the prompt, each with its name, heading and text, and the reason if it was omitted.
        item: the current work item, or None outside an iterator. An agent can read the item but not change it (R47).
        state: the state of the cast.
        last: the previous output of any socket: the object if the output is JSON, otherwise its text. None in the first
            step.
        handoffs: the handoffs that are still valid, oldest first. Each has the fields socket, label, key (of its work
            item), step, satisfied and text.
        conversation: the earlier messages of this visit, without ``prompt``.
        meta: the ``meta`` of the previous reply in this conversation.
        item_key: the key of the current work item, or None outside an iterator.
        item_label: the title of the current work item, or None outside an iterator.
        tools: the tools of the materia: the scope ``none``, ``readOnly`` or ``coding``, or a tuple of tool names.
        model: the model that the materia requests, or None.
        thinking: the thinking level that the materia requests, or None.
        required_fields: the required fields of the answer, each with a description. None if no field is required, as in
            a draft, or if only the prompt describes the protocol.
        schema: the JSON Schema of the answer, for agents that can enforce a schema. None if the answer is not a single
            JSON object, as in a draft.
        request: the request of the cast.
        cast_id: the id of the cast.
        project: the project directory.
        stop: an event that is set when the cast must stop. A slow agent must check it.
        index: the number of earlier turns of this socket in the cast.
        materia_index: the number of earlier turns of this materia in the cast, in any socket.
        turn_of_visit: the number of earlier turns in this visit.
        approval: a person's approval to run one exact command once in this turn, or None.
        allowed: the names of tools that can change something but need no approval in this cast.
        calls: the tool calls that this turn has already made, if it continues after an interruption or an approval.
            Calls without a result have been approved or denied, but have not run.
        report: a function that receives the events that the agent reports while it answers. Call the function in the
            thread in which ``answer`` runs.
        lane: the name of the lane, or "" outside lanes.
        more_tools: the other tools that ``tools`` may name: functions, and the MCP servers of the config.
    """

    socket_id: str
    materia_id: str
    materia_label: str
    visit: int
    kind: TurnKind
    prompt: _LazyField[str] = _LazyField()
    parts: _LazyField[tuple[PromptPart, ...]] = _LazyField(default=())
    item: JSON = None
    state: Mapping[str, JSON] = field(default_factory=lambda: NOTHING)
    last: JSON = None
    handoffs: _LazyField[tuple[Handoff, ...]] = _LazyField(default=())
    conversation: tuple[Message, ...] = ()
    meta: Mapping[str, JSON] = field(default_factory=lambda: NOTHING)
    item_key: str | None = None
    item_label: str | None = None
    tools: str | tuple[str, ...] = "none"
    model: str | None = None
    thinking: str | None = None
    required_fields: Mapping[str, JSON] | None = None
    schema: _LazyField[Mapping[str, JSON] | None] = _LazyField(default=None)
    request: str = ""
    cast_id: str = ""
    project: Path = field(default_factory=Path)
    stop: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    index: int = 0
    materia_index: int = 0
    turn_of_visit: int = 0
    approval: Approval | None = None
    allowed: frozenset[str] = frozenset()
    calls: tuple[ToolCall, ...] = ()
    report: Callable[[AgentEvent], None] = field(default=ignore_event, compare=False, repr=False)
    lane: str = ""
    more_tools: MoreTools = field(default_factory=MoreTools, compare=False, repr=False)

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an AttributeError that lists the fields of a turn."""
        raise AttributeError(f"a turn has no {name}; {turn_fields_hint(name)}")

    def reporting_to(self, report: Callable[[AgentEvent], None]) -> Turn:
        """Return a copy of the turn that reports its events to ``report``. The lazy fields are not computed."""
        turn = object.__new__(Turn)
        turn.__dict__.update(self.__dict__, report=report)
        return turn


TURN_FIELDS: Final = tuple(field.name for field in fields(Turn))
"""The names of all fields of a turn."""


def turn_fields_hint(*names: str) -> str:
    """Return a message that lists the fields of a turn and suggests corrections for the unknown ``names``."""
    matches = [match for name in names if (match := close_match(name, TURN_FIELDS))]
    suggestion = f"did you mean {', '.join(matches)}? " if matches else ""
    return f"{suggestion}the fields of a turn are: {', '.join(TURN_FIELDS)}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of an agent.

    Attributes:
        text: the text of the answer.
        usage: the tokens and the cost of the answer, or None if they are unknown.
        meta: additional JSON data to store with the answer.
        value: the answer as an object, or None if the agent returned text. The object is serialized in the format of
            the socket's handoff.
        thinking: the model's thinking before the answer. It is stored with the turn but never passed to other agents
            (R49).
        cut: the limit at which the answer was cut off, such as ``max_tokens 200``, or "" if the answer is complete
            (R52).
    """

    text: str
    usage: Usage | None = None
    meta: Mapping[str, JSON] = field(default_factory=dict)
    value: Mapping[str, JSON] | None = None
    thinking: str = ""
    cut: str = ""


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A result of :meth:`Agent.answer` with the tool calls that must be approved before the agent can continue."""

    calls: tuple[ToolCall, ...]


@runtime_checkable
class Agent(Protocol):
    """The interface of an agent, which answers the turns of a socket.

    An agent may also have these attributes:

    - ``is_immediate``: True if the agent answers without waiting and has no side effects. The journal then records the
      entry into the socket together with the answer.
    - ``thinking``: False if the text of the agent's replies never contains the thinking of a model (R68).
    - ``price_names(model)``: a method that returns the names under which a config may list the agent's price, the most
      specific name first.
    - ``not_ready(model, project)``: a method that checks whether the agent can answer for a materia that requests
      ``model``. It returns an error, or None if no problem is known. It must not start a program or use the network.
    """

    @property
    def name(self) -> str:
        """The display name of the agent."""

    def answer(self, turn: Turn) -> Reply | NeedsApproval | Awaitable[Reply | NeedsApproval | None] | None:
        """Answer one turn, or return None to let a person answer; the cast then stops until the person has answered.

        The method may be ``async``. The coroutine runs on the event loop that awaits the cast, or else on a loop in a
        separate thread.

        If the method returns a :class:`NeedsApproval`, the cast stops until each of the calls has been approved or
        denied. The agent then receives the same turn again, with these calls in ``turn.calls``.

        Raises:
            AgentError: the agent cannot answer.
            KeyboardInterrupt: the agent was interrupted and has cleaned up.
        """


def name_of(agent: Agent) -> str:
    """Return the name of an agent on one line. Keys are redacted, because the author of the agent chooses the name."""
    return outgoing_line(getattr(agent, "name", type(agent).__name__))


def price_names(agent: Agent, model: str | None) -> tuple[str, ...]:
    """Return the names under which a config may list the price of an agent, the most specific name first."""
    get_names: Callable[[str | None], tuple[str, ...]] | None = getattr(agent, "price_names", None)
    return (name_of(agent),) if get_names is None else get_names(model)


def readiness_problem(agent: Agent, model: str | None, project: Path) -> AgentError | None:
    """Return the error that prevents an agent from answering with ``model``, or None if no problem is known."""
    find_problem: Callable[[str | None, Path], AgentError | None] | None = getattr(agent, "not_ready", None)
    return None if find_problem is None else find_problem(model, project)


def can_think(agent: Agent) -> bool:
    """Return False if an agent declares with ``thinking = False`` that its text never contains thinking."""
    return getattr(agent, "thinking", True) is not False


def reply_from(value: object, source: object) -> Reply:
    """Convert the return value of user code to a reply. The value may be a reply, text, or a dict to send as JSON.

    Raises:
        AgentError: the value has another type or cannot be converted to JSON; the message begins with ``source``.
    """
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply(value)
    if isinstance(value, dict):
        try:
            return Reply(compact(value), value=value)
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentError(f"{source} returned an object that is not JSON: {error}") from error
    return_hint = " (is a return statement missing?)" if value is None else ""
    raise AgentError(
        f"{source} returned {type(value).__name__}{return_hint}",
        hint="return text, a dict, or a materia_nb.agents.Reply",
    )


def validate_reply(
    value: object,
    agent_name: object,
    write: Callable[[Mapping[str, JSON]], str] | None = None,
    *,
    any_text: bool = False,
    thinks: bool = False,
) -> Answer:
    """Validate the reply of an agent and convert it to an Answer with integer token counts and JSON metadata.

    Args:
        value: the value that the agent returned.
        agent_name: the description of the agent in error messages.
        write: a function that serializes a reply given as an object; by default, the object becomes plain JSON.
        any_text: True if any text is accepted. In this case, no later check would detect an answer that was cut off
            before it began (R52).
        thinks: True if the thinking must be separated from the text when the reply does not separate them (R68).

    Raises:
        AgentError: the value is not a reply, or parts of it cannot be stored; kind ``answer_cut``: the reply has no
            text because it reached a limit.
    """
    reply = value if isinstance(value, Reply) else reply_from(value, agent_name)
    for part in ("text", "thinking", "cut"):
        if not isinstance(getattr(reply, part), str):
            raise AgentError(f"{agent_name} returned a reply whose {part} is a {type(getattr(reply, part)).__name__}")
    if thinks and reply.value is None and not reply.thinking:
        text, thinking, closed = split_thinking(reply.text)
        if thinking or not closed:
            reply = replace(reply, text=text, thinking=thinking, cut=reply.cut or ("" if closed else UNCLOSED_THINKING))
    if any_text and reply.cut and not reply.text.strip():
        raise AgentError(
            f"{agent_name} reached a limit before its answer began: {reply.cut}",
            hint="increase `max_tokens` in the settings of the agent (`--max-tokens N`), then run `retry --turn`",
            kind="answer_cut",
        )
    text = reply.text if write is None or reply.value is None else write(reply.value)
    usage = None if reply.usage is None else validate_usage(reply.usage, agent_name)
    try:
        meta = dict(reply.meta) if reply.meta else NOTHING
        if meta:
            json.dumps(meta, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"{agent_name} returned a reply whose meta is not JSON: {error}") from error
    return Answer(text, usage, meta, thinking=reply.thinking, cut=reply.cut)


def validate_usage(usage: Any, agent_name: object) -> StepUsage:
    """Convert the usage reported by an agent to its stored form, with integer token counts.

    Raises:
        AgentError: a value is not a number, is negative, or is infinite.
    """
    try:
        optional = {name: getattr(usage, name, None) for name in ("cached", "reasoning")}
        counts = {"input": usage.input, "output": usage.output, **optional}
        whole_counts: dict[str, Any] = {name: None if count is None else int(count) for name, count in counts.items()}
        step_usage = StepUsage(cost=None if usage.cost is None else float(usage.cost), **whole_counts)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise AgentError(f"{agent_name} returned usage values that are not numbers: {usage!r}") from error
    if any(count is not None and not 0 <= count < math.inf for count in step_usage):
        raise AgentError(f"{agent_name} returned invalid usage data: {usage!r}")
    return step_usage


def agent_failure(agent: Agent, socket: str, error: Exception) -> tuple[str, str, str]:
    """Return the kind, message and hint that are stored for a failed call of an agent."""
    hint = "fix the cause, then run `retry --turn`, or run `retry` to repeat the whole visit"
    if isinstance(error, MateriaError):
        kind = outgoing_line(error.kind) if isinstance(error, AgentError) else "agent_error"
        where = f" ({error.where})" if error.where and error.where != socket else ""
        return kind, f"{error.what}{where}", error.hint or hint
    return (
        "agent_error",
        f"The agent {name_of(agent)} failed with {named_error(error)}{_error_location(error)}",
        hint,
    )


def _error_location(error: Exception) -> str:
    frames = list(walk_tb(error.__traceback__))
    return f" ({code_location(frames[-1][0].f_code.co_filename, frames[-1][1])})" if frames else ""


# -- thinking levels, and thinking that is not an answer (R49, R68) ------------------------------------------------------

THINKING_LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""The thinking levels in ascending order. In a materia, ``none`` also means ``off``; ``on`` sets no level."""

THINKING_TAGS: Final = ("<think>", "</think>")
"""The tags that enclose thinking, unless the profile of a model defines other tags."""
_TAG: Final = re.compile(r"<(/?)(think|thinking|reasoning)>", re.IGNORECASE)
_CHANNEL: Final = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>analysis\b(?:<\|message\|>)?")
_FINAL: Final = re.compile(r"<\|channel\|>final(?:<\|message\|>)?")
_AFTER_CHANNEL: Final = re.compile(r"<\|(?:end|return)\|>\s*$")
_QUOTED: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)

MAX_THINKING_BYTES: Final = 65_536
"""Maximum size of the thinking that is stored for one turn, in bytes."""

UNCLOSED_THINKING: Final = "unfinished thinking"
"""The reason that is stored for a reply that contains only thinking. The reply counts as cut off (R52)."""


class SplitReply(NamedTuple):
    """A reply split into the answer and the thinking before it. ``is_closed`` is True if the thinking is complete."""

    text: str
    thinking: str = ""
    is_closed: bool = True


def split_thinking(text: str, tags: tuple[str, str] = THINKING_TAGS) -> SplitReply:
    """Split the text of a reply into the answer and the thinking that precedes it.

    Thinking is a block at the beginning of the text: between ``tags``, between ``think``, ``thinking`` or ``reasoning``
    tags in upper or lower case, or in an analysis channel before the final channel. The opening tag may be missing
    because some servers put it into the prompt. In that case, everything before the first closing tag is thinking,
    unless the tag is quoted as code or is part of a JSON answer (R68). If the block is not closed, the answer is empty.
    """
    stripped_text = text.lstrip("\ufeff \t\r\n")
    if stripped_text.startswith(tags[0]):
        thinking, is_closed, answer = stripped_text.removeprefix(tags[0]).partition(tags[1])
        return SplitReply(answer.strip(), thinking.strip(), bool(is_closed))
    if channel := _CHANNEL.match(stripped_text):
        final = _FINAL.search(stripped_text, channel.end())
        thinking = stripped_text[channel.end() : final.start() if final else None]
        answer = _AFTER_CHANNEL.sub("", stripped_text[final.end() :]) if final else ""
        return SplitReply(answer.strip(), _AFTER_CHANNEL.sub("", thinking).strip(), final is not None)
    if "<" not in stripped_text or not (tag_matches := list(_TAG.finditer(stripped_text))):
        return SplitReply(text)
    if tag_matches[0].start() == 0 and not tag_matches[0][1]:
        name = tag_matches[0][2].lower()
        closing_tag = next((tag for tag in tag_matches[1:] if tag[1] and tag[2].lower() == name), None)
        thinking_start = tag_matches[0].end()
    else:
        thinking_start, closing_tag = 0, _unopened_tag(stripped_text, tag_matches)
        if closing_tag is None:
            return SplitReply(text)
    answer = stripped_text[closing_tag.end() :] if closing_tag is not None else ""
    thinking = stripped_text[thinking_start : closing_tag.start() if closing_tag is not None else None]
    return SplitReply(answer.strip(), thinking.strip(), closing_tag is not None)


def _unopened_tag(text: str, tags: list[re.Match[str]]) -> re.Match[str] | None:
    """Return the closing tag of thinking whose opening tag is missing, or None."""
    if not any(tag[1] for tag in tags) or json_or_none(text) is not None:
        return None
    quoted_spans = deque(match.span() for match in _QUOTED.finditer(text))
    for tag in tags:
        while quoted_spans and quoted_spans[0][1] <= tag.start():
            quoted_spans.popleft()
        if not quoted_spans or tag.start() < quoted_spans[0][0]:
            return tag if tag[1] else None  # a block that opens later is part of the answer
    return None


def join_thinking(thoughts: Iterable[str]) -> str:
    """Join the thinking of several answers into one string, with blank lines in between."""
    return "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))


def truncate_thinking(thinking: str) -> str:
    """Shorten thinking that exceeds the maximum stored size, and append a note about the omitted part."""
    data = thinking.encode()
    if len(data) <= MAX_THINKING_BYTES:
        return thinking
    notice = f"\n[cut: {len(thinking):,} characters in total]"
    return data[: MAX_THINKING_BYTES - len(notice.encode())].decode(errors="ignore") + notice


def make_turn(  # noqa: PLR0913 - all that a turn is made of, by name
    rules: Rules,
    session: Session,
    visit: Visit,
    *,
    folder: Path,
    run_dir: Path,
    stop: Stop,
    report: Callable[[AgentEvent], None],
    document: JSON = None,
    before: tuple[int, int] | None = None,
    functions: Mapping[str, Tool] = NOTHING,
) -> Turn:
    """Return the turn for the agent of a visit, or for the pinned function that replaces the agent.

    Args:
        rules: the rules of the cast.
        session: the session of the cast.
        visit: the visit that needs an answer.
        folder: the project directory.
        run_dir: the run directory of the cast.
        stop: the event that is set to stop the agent.
        report: a function that receives the events that the agent reports while it answers.
        document: the input of the process that a pin replaces, or None for an agent.
        before: the number of earlier turns of the socket and the number of earlier turns of its materia; by default,
            the turns in the session are counted.
        functions: the functions that models can call as tools, by name.
    """
    socket_rules = rules.sockets[visit.socket]
    materia, item = socket_rules.socket.materia, visit.item
    accepts_any_text = visit.mode in socket_rules.free_text_modes  # any text is accepted before the final answer
    state = session.state
    last_rules = rules.sockets.get(state.last_socket or "")  # use the parsed object if the output is JSON
    last_output = state.last_json if last_rules and last_rules.requirements.parse == "json" else state.last_output
    question = session.next_message if document is None else compact(document)
    turn = object.__new__(Turn)  # faster than the constructor of a frozen dataclass
    turn.__dict__.update(
        socket_id=visit.socket,
        materia_id=materia.id,
        materia_label=materia.label,
        visit=visit.visit,
        kind="work" if visit.mode == "draft" and not visit.drafts else KIND_BY_MODE.get(visit.mode, visit.mode),
        prompt=question if isinstance(question, str) else lambda: question.text,
        parts=() if isinstance(question, str) else lambda: question.parts,
        item=item.value if item else None,
        state=state.data,
        last=None if last_output is MISSING else last_output,
        handoffs=lambda: current_handoffs(state),
        conversation=session.messages if session.earlier_turns else (),
        meta=session.earlier_turns[-1].meta if session.earlier_turns else NOTHING,
        item_key=item.key if item else None,
        item_label=item.label if item else None,
        tools=materia.tools,
        model=materia.model,
        thinking=materia.thinking,
        required_fields=None if accepts_any_text else dict(socket_rules.required_fields) or None,
        schema=None if accepts_any_text or socket_rules.schema is None else lambda: thawed(socket_rules.schema),
        request=state.request,
        cast_id=run_dir.name,
        project=folder,
        stop=stop,
        index=session.turns.get(visit.socket, 0) if before is None else before[0],
        materia_index=session.turns.get(f"materia {materia.id}", 0) if before is None else before[1],
        lane=state.lane.name if state.lane is not None else "",
        turn_of_visit=visit.turn,
        approval=visit.approval if visit.approval and visit.approval.at(time.time()).status == "PENDING" else None,
        allowed=session.allowed,
        calls=(*session.calls, *session.open_calls),
        report=report,
        more_tools=MoreTools(functions, rules.graph.mcp_servers, str(run_dir)),
    )
    return turn
