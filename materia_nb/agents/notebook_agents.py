"""Agents defined in a notebook (functions, people, scripts, recordings), and the table that assigns them to sockets."""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from traceback import walk_tb
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from materia_nb.agents.background import CALLER_LOOP, EventLoopInbox, run_abandonable
from materia_nb.agents.command_agent import COMMAND_PREFIX, PRESETS, CommandAgent, preset_agent
from materia_nb.agents.interface import (
    TOKEN_KINDS,
    TURN_FIELDS,
    Agent,
    AgentError,
    AgentEvent,
    CallEvent,
    NeedsApproval,
    Reply,
    Turn,
    TurnKind,
    Usage,
    UsageEvent,
    can_think,
    code_location,
    name_of,
    reply_from,
    turn_fields_hint,
)
from materia_nb.agents.model_agent import ModelAgent, suggest_model
from materia_nb.agents.tools import Tool
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.routing import short_label
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, counted, did_you_mean, has_typo, named_error, needs_one_of
from materia_nb.loadout.graph import Graph
from materia_nb.registry import mimebundle_from_view

_NAMED_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionAgent:
    """Calls a function for each turn. Coroutines run on the loop that awaits the cast, or else in a separate thread.

    The names of the parameters determine the arguments. ``turn`` receives the whole turn, and a parameter that is named
    after a field of the turn (``item``, ``state``, ``last``, ``request``, ``prompt``, ...) receives that field. If the
    function has only one parameter with another name, that parameter also receives the turn, unless its name is
    probably a misspelled field. All other parameters must have default values. The function returns text, a dict to
    send as JSON, or a :class:`Reply`.

    Args:
        function: the function to call.
        name: the display name of the agent; defaults to the name of the function.
        thinking: False if the function never returns the thinking of a model, so its text is used unchanged (R68).

    Raises:
        AgentError: a parameter without a default value is not named after a field of a turn.
    """

    def __init__(self, function: Any, *, name: str | None = None, thinking: bool = True) -> None:
        if not callable(function):
            raise AgentError(f"A value of type {type(function).__name__} is not a function.", hint="pass a function")
        self.function, self.thinking = function, thinking
        self.name = name or _function_name(function)
        self._turn_fields = _turn_fields(function, self.name)
        self._is_coroutine = inspect.iscoroutinefunction(function)

    def answer(self, turn: Turn) -> Reply:
        """Call the function and convert its result to a reply.

        Raises:
            AgentError: the function raised an error (the ``__cause__``), returned an unsupported value, or was
                abandoned (kind ``interrupted``).
            KeyboardInterrupt: the user interrupted the function.
        """
        if self._is_coroutine:  # the coroutine is cancelled when the cast must stop
            inbox = EventLoopInbox(turn.report)
            return self._answer(turn.reporting_to(inbox.add), inbox)
        is_abandoned = False

        def report(event: AgentEvent) -> None:
            if not is_abandoned:
                turn.report(event)

        try:
            return run_abandonable(partial(self._answer, turn.reporting_to(report)), turn.stop)
        finally:
            is_abandoned = True  # an abandoned function may report more events later

    def _answer(self, turn: Turn, inbox: EventLoopInbox[AgentEvent] | None = None) -> Reply:
        try:
            if self._turn_fields is None:
                value = self.function(turn)
            else:
                arguments = {name: turn if name == "turn" else getattr(turn, name) for name in self._turn_fields}
                value = self.function(**arguments)
            if not isinstance(value, str) and inspect.isawaitable(value):
                value = CALLER_LOOP.get().run(value, turn.stop, inbox)
        except MateriaError:
            raise
        except Exception as error:
            raise AgentError(
                f"Function {self.name} failed with {named_error(error)}",
                where=_source_location(self.function, error),
                hint="fix the function, then run `retry --turn` or `retry`; `why --traceback` shows the traceback",
            ) from error
        return reply_from(value, f"Function {self.name}")

    def __repr__(self) -> str:
        return f"FunctionAgent({self.name})"


class CoroutineAgent:
    """Runs an agent whose ``answer`` method is a coroutine. All other attributes are taken from the wrapped agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pickle reads such names before ``_agent`` is set
            raise AttributeError(name)
        return getattr(self._agent, name)

    def answer(self, turn: Turn) -> Any:
        """Await the answer and return it. The agent's events are delivered in the calling thread while it waits."""
        inbox = EventLoopInbox(turn.report)
        answer: Any = self._agent.answer(turn.reporting_to(inbox.add))
        return CALLER_LOOP.get().run(answer, turn.stop, inbox)


def _turn_fields(function: Callable[..., Any], name: str) -> tuple[str, ...] | None:
    """Return the turn fields named by a function's parameters, or None if the function receives the whole turn."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C without a readable signature
        return None
    required = [p for p in parameters if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}]
    unknown = [p for p in required if p.kind not in _NAMED_KINDS or (p.name != "turn" and p.name not in TURN_FIELDS)]
    receiver = required[0] if len(required) == 1 and required[0].kind is not inspect.Parameter.KEYWORD_ONLY else None
    if receiver is not None and (receiver.name == "turn" or (unknown and not _is_misspelled_field(receiver.name))):
        return None
    if unknown:
        raise AgentError(
            f"Function {name} has parameters that are not fields of a turn: {', '.join(p.name for p in unknown)}",
            where=_source_location(function),
            hint=f"name a parameter turn, or use the names of its fields; {turn_fields_hint(*(p.name for p in unknown))}",
        )
    return tuple(p.name for p in required)


def _is_misspelled_field(parameter: str) -> bool:
    """Return True for names such as ``reqest`` and ``items``, but not if a letter is replaced, as in ``stage``."""
    typos = [field for field in TURN_FIELDS if has_typo(parameter, field)]
    return len(parameter) > 3 and any(
        sorted(field) == sorted(parameter) or len(field) != len(parameter) for field in typos
    )


def _function_name(function: Callable[..., Any]) -> str:
    inner_function = getattr(function, "func", function)  # functools.partial
    return str(getattr(inner_function, "__name__", type(inner_function).__name__))


def _source_location(function: Callable[..., Any], error: BaseException | None = None) -> str | None:
    """Return the location of an error in the function's file, or of the function's definition if there is no error."""
    inner_function = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(inner_function) and not inspect.isclass(inner_function):
        inner_function = type(inner_function).__call__  # an object that can be called
    code = getattr(inner_function, "__code__", None)
    if code is None:
        return None
    frames = walk_tb(None if error is None else error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == code.co_filename]
    return code_location(code.co_filename, lines[-1] if lines else code.co_firstlineno)


@dataclass(frozen=True, slots=True)
class PersonAgent:
    """Lets the person who uses the notebook answer every turn."""

    name: str = "person"

    def answer(self, turn: Turn) -> Reply | None:  # noqa: ARG002 - the protocol's signature
        """Return None, so that the cast stops and displays the prompt."""
        return None


@dataclass(frozen=True, slots=True)
class PinnedAgent:
    """Answers each turn of a visit with the pinned answer, or with the result of the pinned ``function``."""

    pin: Pin
    function: Agent | None = None

    @property
    def thinking(self) -> bool:
        """True if the pin is a function that may think before it answers. Pinned text is used unchanged (R68)."""
        return self.function is not None and can_think(self.function)

    @property
    def name(self) -> str:
        """The description of the pin, used as the display name."""
        return self.pin.words

    def answer(self, turn: Turn) -> Reply | NeedsApproval | Awaitable[Reply | NeedsApproval | None] | None:
        """Return the answer that is pinned for the visit of the turn.

        Raises:
            AgentError: kind ``pin_exhausted``: no answer is pinned for this visit; other kinds: the pinned function
                failed.
        """
        if self.function is not None:
            return self.function.answer(turn)
        text = self.pin.answer(turn.socket_id, turn.visit)
        if text is None:
            raise AgentError(
                f"{turn.socket_id} is pinned to {self.pin.words}, which has no answer for visit {turn.visit}",
                where=turn.socket_id,
                hint=f"use `pin --off {turn.socket_id}`, or pin another answer; then run `retry`",
                kind="pin_exhausted",
            )
        return Reply(text)


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A recorded reply, with the tool calls and the usage that preceded it.

    Attributes:
        reply: the recorded reply.
        calls: the tool calls before the reply.
        kind: the kind of the turn; None matches a turn of any kind at the same position.
        spent: the usage that was reported before the reply, excluding the usage of the reply itself.
    """

    reply: Reply
    calls: tuple[ToolCall, ...] = ()
    kind: TurnKind | None = None
    spent: tuple[Usage, ...] = ()


def recording_key(socket: str, lane: str) -> str:
    """Return the key under which a recording stores the replies of a socket in a lane."""
    return f"{lane}/{socket}" if lane else socket


class RecordedAgent:
    """Answers each turn of a visit with the reply that was recorded for the same turn.

    The recorded tool calls are reported again for display, but they are not run. The recorded usage is reported again
    as well, so that a budget is exhausted at the same turn as in the recording.

    Args:
        replies: the recorded turns of each visit, in order, keyed by the tuple ``(recording key, visit number)``.
        name: the display name of the agent.
    """

    is_immediate = True

    def __init__(self, replies: Mapping[tuple[str, int], Sequence[RecordedTurn]], *, name: str = "recording") -> None:
        self.name = name
        self._replies = replies

    @property
    def outputs(self) -> dict[tuple[str, int], str]:
        """The text of the last reply of each visit, keyed by the tuple ``(recording key, visit number)``."""
        return {key: turns[-1].reply.text for key, turns in self._replies.items() if turns}

    def answer(self, turn: Turn) -> Reply:
        """Return the reply that was recorded for the turn, after reporting the recorded tool calls and usage.

        Raises:
            AgentError: kind ``recorded_exhausted``: the recording has no reply for this turn.
        """
        socket_id = recording_key(turn.socket_id, turn.lane)
        turns = self._replies.get((socket_id, turn.visit), ())
        recorded = _recorded_turn(turns, turn)
        if recorded is not None:
            reported_ids = {call.id for call in turn.calls}
            for call in recorded.calls:
                if call.id not in reported_ids:
                    turn.report(CallEvent(call))
            for usage in recorded.spent:
                turn.report(UsageEvent(usage))
            return recorded.reply
        visits = sorted(visit for socket, visit in self._replies if socket == socket_id)
        if not turns:
            last = f"; its last recorded visit is {visits[-1]}" if visits else ""
            message = f"The recorded cast has no replies for visit {turn.visit} of {turn.socket_id}{last}"
        else:
            message = (
                f"Visit {turn.visit} of {turn.socket_id} has {len(turns)} recorded replies, "
                f"but none for turn {turn.turn_of_visit + 1} ({turn.kind})"
            )
        raise AgentError(
            message,
            where=turn.socket_id,
            hint=f"set another agent for {turn.socket_id}, because this cast took a different route than the recorded cast",
            kind="recorded_exhausted",
        )


def _recorded_turn(turns: Sequence[RecordedTurn], turn: Turn) -> RecordedTurn | None:
    """Return the recorded turn of the same kind at the same position as ``turn``, or None.

    The position is the number of answers in the conversation, because this number is also correct in a restarted visit.
    If that position has no turn of the same kind, the number of turns in the visit is used instead. If that position
    has none either, for example after recorded refinements, the next recorded turn of the same kind is returned.
    """
    answer_count = sum(message.role == "assistant" for message in turn.conversation)
    positions: list[int] = [answer_count, turn.turn_of_visit, *range(answer_count, len(turns))]
    for number in positions:
        if number < len(turns) and turns[number].kind == turn.kind:
            return turns[number]
    if turn.turn_of_visit < len(turns) and turns[turn.turn_of_visit].kind is None:
        return turns[turn.turn_of_visit]
    return None


_ScriptEntry: TypeAlias = str | Mapping[str, object] | Reply

_REPLY_KEYS: Final = frozenset({"text", "usage", "user"})


class ScriptedAgent:
    """Answers the n-th turn of a socket or materia with the n-th reply of a script.

    The position in the script depends only on the turn, so that a resumed cast continues at the same position.

    Args:
        replies: the lists of replies, by socket id or materia id; a list for the socket takes precedence. A reply is
            text, an object to send as JSON, or ``{"text": ..., "usage": {"input": ..., "output": ...}}``. A single
            reply does not need a list.
        name: the display name of the agent.

    Raises:
        AgentError: a reply has an unsupported type or an invalid usage.
    """

    is_immediate = True

    def __init__(self, replies: Mapping[str, Sequence[_ScriptEntry] | _ScriptEntry], *, name: str = "script") -> None:
        self.name = name
        self._replies = {key: _parse_entries(key, value) for key, value in replies.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the sockets and materia that have replies in the script."""
        return tuple(self._replies)

    def answer(self, turn: Turn) -> Reply:
        """Return the reply of the script for the turn.

        Raises:
            AgentError: kind ``scripted_exhausted``: the script has no reply for this turn.
        """
        if turn.socket_id in self._replies:
            key, number = turn.socket_id, turn.index
        elif turn.materia_id in self._replies:
            key, number = turn.materia_id, turn.materia_index
        else:
            raise AgentError(
                f"The script has no replies for {turn.socket_id} (materia {turn.materia_id})",
                where=turn.socket_id,
                hint=did_you_mean(turn.socket_id, self._replies),
                kind="scripted_exhausted",
            )
        replies = self._replies[key]
        if number >= len(replies):
            raise AgentError(
                f"Turn {number + 1} of {key} (visit {turn.visit} of {turn.socket_id}, {turn.kind}) has no reply: "
                f"the script has only {counted(len(replies), 'reply', 'replies')}",
                where=turn.socket_id,
                hint=f"add a reply to {key!r}, or set another agent for {turn.socket_id}",
                kind="scripted_exhausted",
            )
        return replies[number]


def _parse_entries(key: str, value: Sequence[_ScriptEntry] | _ScriptEntry) -> tuple[Reply, ...]:
    if isinstance(value, (str, Mapping, Reply)):
        value = [value]
    # a notebook may pass any value
    if not isinstance(value, Sequence):
        raise AgentError(
            f"The script entry {key!r} must be a reply or a list of replies, not {type(value).__name__}.",
            hint="write a list of replies for each socket or materia; for a fixed answer, use a function",
        )
    return tuple(_parse_entry(f"Reply {n} of {key!r} in the script", entry) for n, entry in enumerate(value, start=1))


def _parse_entry(source: str, entry: _ScriptEntry) -> Reply:
    if isinstance(entry, Mapping):
        text = entry.get("text")
        # Any other object is the output itself, even if it has a text among other fields.
        if isinstance(text, str) and entry.keys() <= _REPLY_KEYS:
            return Reply(text, usage=_parse_usage(source, entry.get("usage")))
        entry = dict(entry)
    return reply_from(entry, source)


def _parse_usage(source: str, value: object) -> Usage | None:
    if value is None or isinstance(value, Usage):
        return value
    if not isinstance(value, Mapping):
        raise AgentError(f"{source} has a usage that is not an object", hint='write {"input": 10, "output": 5}')
    tokens = {"input": 0, "output": 0} | {name: value[name] for name in TOKEN_KINDS if name in value}
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in tokens.values()):
        raise AgentError(f"{source} has usage values that are not integers", hint='write {"input": 10, "output": 5}')
    cost = value.get("cost")
    return Usage(**tokens, cost=float(cost) if isinstance(cost, (int, float)) else None)


_AGENT_FORMS: Final = (
    "a function, a dict of replies by socket or materia, "
    'a model ("openai:gpt-5"), a command as a list of strings (["pi", "-p"]), "command:NAME", "person", or an agent'
)


class NamedModel(Protocol):
    """A pydantic-ai model, reduced to the attribute that this module needs."""

    @property
    def model_name(self) -> str:
        """The name of the model."""


AgentLike: TypeAlias = Agent | str | NamedModel | Mapping[str, Any] | Sequence[str] | Callable[..., Any]
"""A value that :func:`agent_from` can convert to an agent."""


def agent_from(value: object) -> Agent:
    """Convert a value to an agent.

    - A function is called for each turn (:class:`FunctionAgent`).
    - A dict is a script of replies (:class:`ScriptedAgent`).
    - A list of strings is a command (:class:`CommandAgent`).
    - ``"command:claude"`` is the name of a preset (``PRESETS`` in ``materia_nb.agents.command_agent``).
    - ``"person"`` lets a person answer.
    - ``"provider:model"`` or a model object of pydantic-ai is a language model (:class:`ModelAgent`).
    - ``"model"`` is the model that each materia requests.
    - An agent is returned unchanged.

    Raises:
        AgentError: the value has another type, or is not a valid name of a model.
    """
    if isinstance(value, Agent) and not isinstance(value, type):
        return CoroutineAgent(value) if inspect.iscoroutinefunction(value.answer) else value
    if isinstance(value, Mapping):
        return ScriptedAgent(value)
    if isinstance(value, (list, tuple)):
        _require_program(value)
        return CommandAgent(value)
    if isinstance(value, str):
        return _agent_from_name(value)
    if is_model(value):
        return ModelAgent(value)
    if callable(value) and not isinstance(value, type):
        return FunctionAgent(value)
    raise AgentError(f"A value of type {type(value).__name__} is not an agent", hint=f"use {_AGENT_FORMS}")


def _require_program(command: Sequence[object]) -> None:
    """Raise AgentError if the first string of a command contains spaces and is not the name of a program.

    The list was probably meant as a list of replies.
    """
    first = command[0] if command else None
    if isinstance(first, str) and len(first.split()) > 1 and shutil.which(first) is None:
        raise AgentError(
            f"A list of strings is run as a command, but {short_label(first, 40)!r} is not a program",
            hint='write replies by socket or materia: {"Socket-1": ["first", "second"]}',
        )


def _agent_from_name(value: str) -> Agent:
    if value == "person":
        return PersonAgent()
    if value.startswith(COMMAND_PREFIX):
        return preset_agent(value)
    if is_model(value):
        return ModelAgent(None if value == "model" else value)
    raise AgentError(
        f"{value!r} is not an agent",
        hint=f"did you mean {suggestion!r}?"
        if (suggestion := f"{COMMAND_PREFIX}{value}" if value in PRESETS else suggest_model(value))
        else f'pass a list such as {value.split()!r} for a program, "person" for a person, or a name such as "openai:gpt-5" for a model',
    )


def is_model(value: object) -> bool:
    """Return True for a pydantic-ai model and for the name of a model (``model`` or ``provider:model``)."""
    if isinstance(value, str):
        provider, colon, _ = value.partition(":")
        return value == "model" or (bool(colon) and provider != "recorded" and len(value.split()) == 1)
    library = sys.modules.get("pydantic_ai.models")  # a model can exist only if the library is loaded
    return library is not None and isinstance(value, library.Model)


_DEFAULT: Final = "*"
"""The name of the default entry, which applies to all sockets and materia without an entry of their own."""


class AgentEntry(NamedTuple):
    """One entry of :meth:`AgentTable.describe`. ``name`` is None for the default agent."""

    name: str | None
    agent: str


class AgentTable:
    """Selects the agent of a socket: the agent set for the socket, or else for its materia, or else the default agent.

    A table can extend a lower table. If the upper table has neither an entry for the socket nor a default agent, the
    lower table selects the agent (R47).

    Args:
        default: the default agent; if it is None, the default agent of the lower table, or else a person.
        lower_table: the lower table that this table extends, or None.
        renamed: a mapping from names in this table to names in the lower table, for sockets and materia whose names
            differ.
        check: a function that is called with each name before an agent is set; it raises an error for an unknown name.
    """

    def __init__(
        self,
        default: object = None,
        *,
        lower_table: AgentTable | None = None,
        renamed: Mapping[str, str] | None = None,
        check: Callable[[str], None] | None = None,
    ) -> None:
        self._default = None if default is None else agent_from(default)
        self._agents: dict[str, Agent] = {}
        self._tools: dict[str, Tool] = {}
        self._lower_table, self._renamed, self._check = lower_table, dict(renamed or {}), check

    def __setitem__(self, name: str, agent: AgentLike) -> None:
        """Set the agent for a name, as :meth:`set` does."""
        self.set(name, agent)

    @property
    def default(self) -> Agent:
        """The agent for sockets and materia without an entry of their own."""
        if self._default is not None:
            return self._default
        return PersonAgent() if self._lower_table is None else self._lower_table.default

    @default.setter
    def default(self, agent: object) -> None:
        self._default = agent_from(agent)

    def set(self, name: str, agent: AgentLike) -> Agent:
        """Set the agent of a socket or materia, or the default agent (``*``).

        The agent may be any value that :func:`~materia_nb.agents.agent_from` accepts.

        Raises:
            MateriaError: no socket or materia has this name (``unknown_materia``), the name belongs to a utility
                (``not_an_agent``), or ``agent`` is not an agent (``bad_agent``).
        """
        if name == _DEFAULT:
            self.default = agent
            return self.default
        if self._check is not None:
            self._check(name)
        if not name:
            raise AgentError("The agent cannot be set, because the name of its socket or materia is empty")
        new_agent = self._agents[name] = agent_from(agent)
        return new_agent

    def remove(self, name: str) -> None:
        """Remove the agent set for a name, or the default agent (``*``). Names without an agent are ignored."""
        if name == _DEFAULT:
            self._default = None
        self._agents.pop(name, None)

    def add_tool(self, function: Callable[..., Any], *, name: str | None = None, ask: bool = False) -> Tool:
        """Register a function as a tool, which models can call if their materia lists the tool.

        See ``function_tool`` in ``materia_nb.agents.tools.more_tools``.
        """
        from materia_nb.agents.tools.more_tools import function_tool

        tool = function_tool(function, name=name, ask=ask)
        self._tools[tool.name] = tool
        return tool

    @property
    def tools(self) -> dict[str, Tool]:
        """The functions that are registered as tools, by name."""
        return {**({} if self._lower_table is None else self._lower_table.tools), **self._tools}

    def for_turn(self, socket_id: str, materia_id: str) -> Agent:
        """Return the agent that answers the turns of a materia in a socket."""
        agent = self._agents.get(socket_id) or self._agents.get(materia_id) or self._default
        if agent is not None or self._lower_table is None:
            return agent or self.default
        old_names = self._renamed
        return self._lower_table.for_turn(old_names.get(socket_id, socket_id), old_names.get(materia_id, materia_id))

    @property
    def selected_agents(self) -> tuple[object, ...]:
        """The agents of this table and of its lower tables. Two tables with equal values select the same agents."""
        inherited_agents = () if self._lower_table is None else self._lower_table.selected_agents
        return (dict(self._agents), self._default, *inherited_agents)

    def describe(self) -> list[AgentEntry]:
        """Return an entry for each name that has an agent, followed by the default agent."""
        entries = {name: AgentEntry(name, name_of(agent)) for name, agent in self._agents.items()}
        lower_entries = self._lower_table.describe() if self._lower_table is not None and self._default is None else []
        for name, agent in lower_entries:
            for own_name in self._own_names(name) if name is not None else ():
                entries.setdefault(own_name, AgentEntry(own_name, agent))
        return [*entries.values(), AgentEntry(None, name_of(self.default))]

    def _own_names(self, lower_name: str) -> list[str]:
        """Return the names that this table uses for a name in the lower table."""
        renamed_names = [own_name for own_name, other_name in self._renamed.items() if other_name == lower_name]
        return renamed_names if lower_name in self._renamed or renamed_names else [lower_name]

    def copy(self, check: Callable[[str], None] | None = None) -> AgentTable:
        """Return an independent copy with the same lower table. ``check`` validates the names set in the copy."""
        table = AgentTable(lower_table=self._lower_table, renamed=self._renamed, check=check)
        table._default = self._default
        table._agents.update(self._agents)
        table._tools.update(self._tools)
        return table

    def frozen(self) -> AgentTable:
        """Return an independent copy that is not affected by later changes to the table that this table extends."""
        table = self.copy()
        table._lower_table = None if self._lower_table is None else self._lower_table.frozen()  # noqa: SLF001 - its own class
        return table

    _repr_mimebundle_ = mimebundle_from_view

    def __repr__(self) -> str:
        return "AgentTable(" + ", ".join(f"{a.name or 'default'}: {a.agent}" for a in self.describe()) + ")"


def names_of(graph: Graph) -> set[str]:
    """Return all names for which a pin or an agent can be set: the ids of sockets and of the materia in them."""
    return {*graph.sockets, *(socket.materia.id for socket in graph.sockets.values())}


def require_name(graph: Graph, name: str) -> None:
    """Raise MateriaError (kind ``unknown_materia``) unless the loadout has a socket or materia with this name."""
    message = f"The loadout {graph.name} has no socket or materia {name!r}."
    needs_one_of(name, names_of(graph), message, "unknown_materia")


def unknown_name_error(name: str, known: Iterable[str]) -> MateriaError:
    """Return the error for setting the agent of an unknown socket or materia."""
    return MateriaError(
        f"No materia or socket is called {name!r}.",
        hint=did_you_mean(name, known) + " (`*` means all other names)",
        kind="unknown_materia",
    )


def utility_error(name: str, label: str) -> MateriaError:
    """Return the error for setting the agent of a utility, which would ignore the agent."""
    return MateriaError(
        f"{label} is a utility, which runs a process, so no agent can be set for it.",
        where=name,
        hint=f"use `wb.pin({name!r}, ...)` to pin a fixed answer, or `pins={{{name!r}: ...}}` to pin the answer for one cast",
        kind="not_an_agent",
    )


def utilities_of(graph: Graph) -> dict[str, str]:
    """Return a description of each utility in a loadout, by socket id and by materia id."""
    utilities = [socket for socket in graph.sockets.values() if socket.is_utility]
    return {socket.materia.id: socket.materia.id for socket in utilities} | {
        socket.id: f"{socket.id} ({socket.materia.label})" for socket in utilities
    }


def require_agent(graph: Graph, name: str) -> None:
    """Raise MateriaError (``unknown_materia``, ``not_an_agent``) unless ``name`` can have an agent."""
    if name not in (names := names_of(graph)):
        raise unknown_name_error(name, names)
    if (label := utilities_of(graph).get(name)) is not None:
        raise utility_error(name, label)
