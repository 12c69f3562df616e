"""One turn with a language model through pydantic-ai: the model is called until it answers without tool calls."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from materia_nb.agents.interface import (
    THINKING_LEVELS,
    THINKING_TAGS,
    UNCLOSED_THINKING,
    AgentError,
    CallEvent,
    NeedsApproval,
    NoteEvent,
    Reply,
    SplitReply,
    Turn,
    UsageEvent,
    join_thinking,
    split_thinking,
)
from materia_nb.agents.model_requests import ModelHandle, ModelOptions, Requests, answer_error, one_short_line
from materia_nb.agents.tools import Tool, choose_tools
from materia_nb.agents.tools.file_tools import Toolbox
from materia_nb.agents.tools.more_tools import ToolFinder
from materia_nb.engine.conversation import ToolCall
from materia_nb.errors import deceptive_signs, did_you_mean
from materia_nb.handoff.jsontext import NotJson, strict_json
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.topology import free_name

_THINKING_VALUES: Final[Mapping[str, Any]] = {level: level for level in THINKING_LEVELS} | {
    "off": False,
    "none": False,
    "on": True,
}  # Values of the setting `thinking` of pydantic-ai, by thinking level of a materia.

_REQUIRE_THINKING: Final = ("anthropic", "bedrock")


_INVALID_CHARS: Final = re.compile(r"[^A-Za-z0-9_-]")


def _provider_name(tool: str) -> str:
    """Return a tool name that providers accept, such as ``time_now`` for ``time.now``."""
    return _INVALID_CHARS.sub("_", tool)[:64]


def build_messages(turn: Turn) -> list[ModelMessage]:
    """Return the earlier messages of the visit, followed by the current prompt."""
    messages: list[ModelMessage] = []
    for message in turn.conversation:
        if message.role == "user":
            messages.append(_user_message(message.text))
        else:
            messages += tool_rounds(message.calls)
            if message.text:
                messages.append(ModelResponse([TextPart(message.text)]))
    return [*messages, _user_message(turn.prompt)]


def tool_rounds(calls: Sequence[ToolCall]) -> Iterator[ModelMessage]:
    """Yield one message for each answer with tool calls, followed by one message with the results of the calls."""
    for _, group in groupby(sorted(calls, key=lambda call: call.round), key=lambda call: call.round):
        round_calls = list(group)
        text = "".join(call.said for call in round_calls)
        parts: list[TextPart | ToolCallPart] = [TextPart(text)] if text else []
        parts += [ToolCallPart(_provider_name(call.tool), dict(call.args), call.id) for call in round_calls]
        yield ModelResponse(parts)
        yield make_results_message(round_calls)


def make_results_message(calls: Iterable[ToolCall]) -> ModelRequest:
    """Return a message for the model with the results of tool calls."""
    return ModelRequest(
        [
            ToolReturnPart(
                _provider_name(call.tool),
                call.result or "",
                call.id,
                outcome="denied" if call.decided == "denied" else "success" if call.ok else "failed",
            )
            for call in calls
        ]
    )


def make_request_parameters(
    model: Model, tools: Iterable[Tool], schema: Mapping[str, JSON] | None, settings: ModelSettings
) -> ModelRequestParameters:
    """Return the request parameters: the tools, and the schema of the answer if the provider can enforce it.

    If the provider cannot enforce the schema, only the prompt describes the format of the answer.
    """
    without_schema = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=_provider_name(tool.name),
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
            )
            for tool in tools
        ]
    )
    if schema is None:
        return without_schema
    with_schema = replace(
        without_schema,
        output_mode="native",
        output_object=OutputObjectDefinition(
            json_schema=dict(schema), name="handoff", strict=False if is_open_schema(schema) else None
        ),
    )
    try:
        if model.profile.get("supports_json_schema_output", False):
            model.prepare_request(settings, with_schema)
            return with_schema
    except (UserError, NotImplementedError):  # not this model, or not together with tools
        pass
    return without_schema


def _settings_for(model: Model, settings: Mapping[str, Any], thinking: str | None, *, has_calls: bool) -> ModelSettings:
    """Return the settings of a request. Retries in the client are disabled, because :class:`Requests` retries.

    Args:
        model: the model to call.
        settings: the settings of the agent.
        thinking: the thinking level that the materia requests, or None.
        has_calls: True if the turn continues after earlier tool calls. Some models then require the thinking that
            preceded these calls. Thinking is not stored, so it is turned off for these models.
    """
    request_settings = dict(settings)
    if "max_retries" not in getattr(model, "unsupported_settings", ()):
        request_settings["max_retries"] = 0
    if thinking is not None and thinking in _THINKING_VALUES:
        request_settings["thinking"] = _THINKING_VALUES[thinking]
    if has_calls and request_settings.get("thinking") and getattr(model, "system", "") in _REQUIRE_THINKING:
        request_settings["thinking"] = False
    return cast("ModelSettings", request_settings)


def split_response(response: ModelResponse, tags: tuple[str, str]) -> SplitReply:
    """Return the answer and the thinking of a model, even if the stream split a thinking tag into several pieces (R49).

    The library recognizes a tag only if the tag arrives as a separate piece, so the pieces are joined first.
    """
    text_parts = [part for part in response.parts if isinstance(part, TextPart | ThinkingPart)]
    is_in_text = [isinstance(part, TextPart) or _is_from_text(part) for part in text_parts]
    thoughts = [part.content for part, in_text in zip(text_parts, is_in_text, strict=True) if not in_text]
    if not any(isinstance(part, ThinkingPart) and _is_from_text(part) for part in text_parts):
        split = split_thinking(response.text or "", tags)
    else:
        pieces = [part for part, in_text in zip(text_parts, is_in_text, strict=True) if in_text]
        text = [
            part.content if isinstance(part, TextPart) else tags[0] + part.content + tags[1] * (part is not pieces[-1])
            for part in pieces
        ]
        split = split_thinking("".join(text), tags)
    is_closed = split.is_closed and bool(split.text or not thoughts or response.finish_reason != "length")
    return SplitReply(split.text, join_thinking([*thoughts, split.thinking]), is_closed)


def _is_from_text(part: ThinkingPart) -> bool:
    return part.signature is None and part.id in (None, "content")


def _user_message(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def is_open_schema(schema: JSON) -> bool:
    """Return True if any part of a schema allows arbitrary values, optional fields or additional fields.

    Providers with strict schemas do not accept such a schema.
    """
    if not isinstance(schema, dict):
        return False
    fields: dict[str, JSON] = schema.get("properties", {})
    required_names: list[str] = schema.get("required", list(fields))
    optional = set(fields).difference(required_names)
    is_open = schema.get("additionalProperties", False) is not False
    return bool(not schema or optional or is_open or any(map(is_open_schema, [*fields.values(), schema.get("items")])))


INVALID_ARGUMENTS: Final = "INVALID_JSON"
"""The argument name under which invalid arguments are stored as text, truncated if they are too long."""

MAX_ARGUMENTS_CHARS: Final = 1024 * 1024
"""Maximum length of the arguments of a tool call, in characters."""

_DENIED_RESULT: Final = "A person denied this call, so it was not run."
_INTERRUPTED_RESULT: Final = "This call was interrupted; it may have run in part."


class ToolCalls:
    """Runs the tool calls of one turn.

    Args:
        turn: the turn, with its earlier calls and the decisions about them.
        tools: the tools of the materia, by name. Calls of other tools do not run.
        stop: an event that stops a running call when it is set.
    """

    def __init__(self, turn: Turn, tools: Mapping[str, Tool], stop: threading.Event) -> None:
        self._turn = turn
        self._tools = tools
        self._stop = stop
        self._approval = _unused_approval(turn)
        # The monotonic clock is the minimum, so that setting the system clock back does not extend an approval.
        approved_at = self._approval.approved_at if self._approval is not None else 0.0
        self._clock_offset = max(time.time(), approved_at) - time.monotonic()
        self._toolbox = Toolbox(turn.project, stop, tools.values())
        earlier_ids = (call.id for message in turn.conversation for call in message.calls)
        self._ids = {*earlier_ids, *(call.id for call in turn.calls)}

    def new_id(self, preferred: str) -> str:
        """Return an id that is unique in the visit: ``preferred`` if it is not taken, or else a variation of it."""
        name = free_name(preferred, self._ids)
        self._ids.add(name)
        return name

    def run_calls(self, calls: Iterable[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
        """Run and report the allowed calls. Return the calls that have a result and the calls that need approval.

        Raises:
            AgentError: kind ``interrupted``: the cast must stop.
            KeyboardInterrupt: the user interrupted a call, which was reported as interrupted.
        """
        completed_calls, pending = [], []
        for call in calls:
            if call.result is not None:
                completed_calls.append(call)
            elif self._is_allowed(call):
                completed_calls.append(self._run(call))
            else:
                pending.append(call)
        return completed_calls, pending

    def _is_allowed(self, call: ToolCall) -> bool:
        if not self._has_side_effects(call) or call.decided is not None or self._tools[call.tool].preapproved:
            return True
        if call.tool in self._turn.allowed and not _is_deceptive(call):
            return True
        if self._approval is None or call.tool != "bash":
            return False
        now = max(time.time(), time.monotonic() + self._clock_offset)
        is_allowed, self._approval = self._approval.use(str(call.args.get("command", "")), now)
        return is_allowed

    def _run(self, call: ToolCall) -> ToolCall:
        started = time.perf_counter()
        if call.decided != "denied" and self._has_side_effects(call):
            # Recorded before it runs, so that it is not run again without approval if this process is killed.
            self.record(call, _INTERRUPTED_RESULT, ok=False, started=started)
        try:
            text, ok = self._result(call)
        except KeyboardInterrupt:
            self.record(call, _INTERRUPTED_RESULT, ok=False, started=started)
            raise
        if self._stop.is_set():
            self.record(call, f"{text}\n{_INTERRUPTED_RESULT}".strip(), ok=False, started=started)
            raise AgentError("The agent was interrupted", kind="interrupted")
        return self.record(call, text, ok=ok, started=started)

    def _has_side_effects(self, call: ToolCall) -> bool:
        """Return True if a call could change something. Calls with an unknown tool or invalid arguments do not run."""
        tool = self._tools.get(call.tool)
        return tool is not None and tool.has_side_effects and INVALID_ARGUMENTS not in call.args

    def _result(self, call: ToolCall) -> tuple[str, bool]:
        if call.decided == "denied":
            return _DENIED_RESULT, False
        if call.tool not in self._tools:
            suggestion = did_you_mean(call.tool, self._tools)
            return f"The tool {call.tool!r} does not exist: {suggestion}", False
        if INVALID_ARGUMENTS in call.args:
            limit = f"{MAX_ARGUMENTS_CHARS:,} characters"
            return f"The arguments must be a JSON object of at most {limit}. Send the call again.", False
        result = self._toolbox.call(call.tool, call.args)
        return result.text, result.ok

    def record(self, call: ToolCall, text: str, *, ok: bool, started: float | None = None) -> ToolCall:
        """Add the result to a call, report the call and return it. ``started`` is None if the call did not run."""
        seconds = 0.0 if started is None else round(time.perf_counter() - started, 6)
        call = replace(call, result=text, ok=ok, seconds=seconds)
        self._turn.report(CallEvent(call))
        return call


def _is_deceptive(call: ToolCall) -> bool:
    """Return True if the command or path of a call contains deceptive characters.

    A person must then approve the call even if its tool is allowed.
    """
    return any(deceptive_signs(str(call.args.get(name, ""))) for name in ("command", "path"))


def _unused_approval(turn: Turn) -> Approval | None:
    """Return the approval of a turn, or None if the approved command has already run in this turn."""
    approval = turn.approval
    past_commands = (call.args.get("command") for call in turn.calls if call.tool == "bash" and call.result is not None)
    return None if approval is None or approval.exact_content in past_commands else approval


MAX_CALLS: Final = 64
"""Maximum number of tool calls in one answer that are run."""

_MAX_SHOWN_ARGUMENT_CHARS: Final = 1_000


class ModelTurn:
    """Runs one turn with a model. Call :meth:`answer` once, in the thread that called the agent."""

    def __init__(self, options: ModelOptions, model: ModelHandle, turn: Turn) -> None:
        self._options = options
        self._handle = model
        self._turn = turn
        self._started_at = time.monotonic()
        self._stop = turn.stop
        self._requests = Requests(options, model, turn.report, self._stop)
        self._finder = ToolFinder(turn.more_tools, turn.project, turn.more_tools.run_dir, self._stop)
        self._omits_tools = not options.tools and turn.tools not in ("none", ())
        tools, self._unknown_tools = choose_tools(() if self._omits_tools else turn.tools, self._finder)
        self._tools = {tool.name: tool for tool in tools}
        self._tool_by_provider_name: dict[str, str] = {}
        for name in self._tools:
            if (other := self._tool_by_provider_name.setdefault(_provider_name(name), name)) != name:
                raise AgentError(
                    f"{turn.materia_label} has two tools that a model cannot tell apart: {other} and {name}",
                    where=turn.socket_id,
                    hint="remove one of the two from the materia's tools, or rename the function or the server",
                    kind="bad_tool",
                )
        self._calls = ToolCalls(turn, self._tools, self._stop)
        self._round = max((call.round for call in turn.calls), default=0)
        self._tags: tuple[str, str] = model.model.profile.get("thinking_tags", THINKING_TAGS)
        self._thoughts: list[str] = []

    def answer(self) -> Reply | NeedsApproval:
        """Call the model and run its tool calls until it answers, or until a tool call needs approval."""
        try:
            outcome = self._run_rounds()
        except BaseException:
            self._report_usage()
            raise
        if isinstance(outcome, NeedsApproval):
            self._report_usage()
            return outcome
        response, answer = outcome
        usage = self._requests.unreported_usage.pop()
        self._report_usage()  # of incomplete answers before this answer
        return Reply(
            answer.text,
            None if usage.input is None else usage,
            self._meta(response),
            thinking=join_thinking([*self._thoughts, answer.thinking]),
            cut=self._reached_limit_text(response, answer),
        )

    def _reached_limit_text(self, response: ModelResponse, answer: SplitReply) -> str:
        """Return the limit at which the answer was cut off, or an empty string (R52)."""
        max_tokens = self._options.settings.get("max_tokens")
        limit = f"max_tokens {max_tokens}" if max_tokens else "its maximum number of tokens"
        if answer.is_closed:
            return limit if response.finish_reason == "length" else ""
        return f"{limit}: {UNCLOSED_THINKING}" if response.finish_reason == "length" else UNCLOSED_THINKING

    def _run_rounds(self) -> tuple[ModelResponse, SplitReply] | NeedsApproval:
        turn = self._turn
        self._report_problems()
        model = self._handle.model
        settings = _settings_for(model, self._options.settings, turn.thinking, has_calls=bool(turn.calls))
        request_parameters = make_request_parameters(model, self._tools.values(), turn.schema, settings)
        messages: list[ModelMessage] = build_messages(turn)
        earlier, pending = self._calls.run_calls(turn.calls)
        if pending:
            return NeedsApproval(tuple(pending))
        messages += tool_rounds(earlier)
        first_round = self._round
        while True:
            response = self._requests.ask(messages, settings, request_parameters)
            split = split_response(response, self._tags)
            self._check_response(response, split)
            if not response.tool_calls:
                return response, split
            self._thoughts.append(split.thinking)
            self._report_usage()  # now, because the process may be killed while the tools run
            self._round += 1
            if self._round - first_round > self._options.max_rounds:
                raise AgentError(
                    f"{self._handle.name} called tools in more than {self._options.max_rounds} answers of one turn",
                    where=turn.socket_id,
                    hint="split the task into several sockets, continue with `retry --turn`, or increase `max_rounds` of the agent",
                    kind="too_many_calls",
                )
            response, calls = self._read_calls(response, split.text)
            completed_calls, pending = self._calls.run_calls(calls)
            if pending:
                return NeedsApproval(tuple(pending))
            messages += [response, make_results_message(completed_calls)]

    def _read_calls(self, response: ModelResponse, text: str) -> tuple[ModelResponse, list[ToolCall]]:
        """Return the answer with tool call ids that are unique in the visit, and the list of its calls.

        The returned answer contains thinking only if the provider sent the thinking as separate parts, which must be
        sent back with the results.
        """
        calls: list[ToolCall] = []
        parts: list[ModelResponsePart] = []
        for part in response.parts:
            if isinstance(part, TextPart) or (isinstance(part, ThinkingPart) and _is_from_text(part)):
                if text and not any(isinstance(kept_part, TextPart) for kept_part in parts):
                    parts.append(TextPart(text))
                continue
            if not isinstance(part, ToolCallPart):
                parts.append(part)
                continue
            if len(calls) > MAX_CALLS:
                continue  # the message of the previous call covers this call
            name, args = self._calls.new_id(part.tool_call_id), _arguments(part)
            call_text = "" if calls else text
            if INVALID_ARGUMENTS in args:
                part = replace(part, args=compact(args))  # noqa: PLW2901 - as it is kept, and so told again
            parts.append(replace(part, tool_call_id=name))
            tool = self._tool_by_provider_name.get(part.tool_name, part.tool_name)
            calls.append(ToolCall(id=name, tool=tool, args=args, round=self._round, said=call_text))
        if len(calls) > MAX_CALLS:
            message = (
                f"Not run: the answer has {len(response.tool_calls)} calls, and only the first {MAX_CALLS} were run. "
                "This call and all later calls were not run."
            )
            calls[-1] = self._calls.record(calls[-1], message, ok=False)
        return replace(response, parts=parts), calls

    def _check_response(self, response: ModelResponse, split: SplitReply) -> None:
        name = self._handle.name
        if response.finish_reason == "content_filter":
            refusal = (response.provider_details or {}).get("refusal") or response.text
            raise answer_error("refused", name, one_short_line(refusal) if isinstance(refusal, str) else "")
        if not response.tool_calls and not split.text.strip() and not self._reached_limit_text(response, split):
            raise answer_error("malformed", name, "it is empty")
        if response.finish_reason == "length":
            self._turn.report(NoteEvent(f"The answer of {name} was cut off at its maximum number of tokens"))

    def _report_problems(self) -> None:
        turn = self._turn
        if turn.calls:
            return  # reported when the turn began
        if unknown := self._unknown_tools:
            known_tools = [*choose_tools("coding")[0], *turn.more_tools.functions.values(), *self._tools.values()]
            guess = did_you_mean(unknown[0], [tool.name for tool in known_tools])
            turn.report(NoteEvent(f"{turn.materia_label} names unknown tools: {', '.join(unknown)}; {guess}"))
        for note in self._finder.notes:
            turn.report(NoteEvent(note))
        if self._omits_tools:
            turn.report(NoteEvent(f"{self._handle.name} is called without the tools of {turn.materia_label}"))
        if turn.thinking is not None and turn.thinking not in _THINKING_VALUES:
            guess = did_you_mean(turn.thinking, _THINKING_VALUES)
            turn.report(NoteEvent(f"The thinking level {turn.thinking!r} does not exist; {guess}"))

    def _report_usage(self) -> None:
        while self._requests.unreported_usage:
            self._turn.report(UsageEvent(self._requests.unreported_usage.pop(0)))

    def _meta(self, response: ModelResponse) -> dict[str, JSON]:
        return {
            "model": response.model_name,
            "provider": response.provider_name,
            "finish": response.finish_reason,
            "seconds": round(time.monotonic() - self._started_at, 6),
            "rounds": self._round,
            "retries": self._requests.retries,
        }


def _arguments(part: ToolCallPart) -> dict[str, JSON]:
    """Return the arguments of a call. Invalid or overlong arguments are stored under :data:`INVALID_ARGUMENTS`."""
    text = part.args if isinstance(part.args, str) else part.args_as_json_str()
    if len(text) > MAX_ARGUMENTS_CHARS:
        return {INVALID_ARGUMENTS: f"{text[:_MAX_SHOWN_ARGUMENT_CHARS]}… [{len(text):,} characters]"}
    try:
        value, _ = strict_json(text or "{}")
    except NotJson:
        return {INVALID_ARGUMENTS: text}
    return value if isinstance(value, dict) else {INVALID_ARGUMENTS: text}
