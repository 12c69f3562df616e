"""Requests to language models: streaming, retries, time limits and costs (R20).

Failed requests become errors with a kind, a message and a hint.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from pydantic import ValidationError
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from materia_nb.agents.background import BackgroundLoop, EventLoopInbox
from materia_nb.agents.interface import AgentError, AgentEvent, NoteEvent, TextEvent, Usage
from materia_nb.engine.conversation import truncate
from materia_nb.errors import named_error, redact
from materia_nb.file_io import read_package_toml, read_plain, replace_file
from materia_nb.handoff.jsontext import one_line
from materia_nb.jsonvalue import json_or_none

_MAX_SHOWN_CHARS: Final = 300
_REFUSAL_PATTERN: Final = re.compile(r"content[_ ]?(policy|filter)|safety|moderation|flagged", re.IGNORECASE)
_KEY_WORDS: Final = re.compile(r"\b(api[ _-]?)?(key|token|credential)s?\b", re.IGNORECASE)
_LIMIT_PATTERN: Final = re.compile(r"rate.?limit|quota|exhausted", re.IGNORECASE)
_TOOL_PATTERN: Final = re.compile(r"\btools?\b", re.IGNORECASE)
_NO_TOOLS_HINT: Final = "if the model does not support tools, set the agent again with `--no-tools` (`tools=False`), then run `retry --turn`"
_TRANSIENT_ERRORS: Final = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
)

_CLASSES_WITH_FINISH_REASON: Final = frozenset(
    {
        "AnthropicModel",
        "BedrockConverseModel",
        "GoogleModel",
        "GroqModel",
        "HuggingFaceModel",
        "MistralModel",
        "OpenAIChatModel",
    }
)  # Model classes of pydantic-ai whose complete streams always end with a finish reason.
_ERRORS_WITH_UNKNOWN_USAGE: Final = (ai.ModelTimeoutError, ai.ModelRequestTimeout, AgentError, KeyboardInterrupt)
"""Errors after which it is unknown how many tokens the provider charges for, even if no answer has begun (R56)."""


class StreamCutOff(Exception):
    """Raised when a stream ends before the answer is complete."""


_FAILURES: Final = read_package_toml(__file__, "failures.toml")


def request_error(error: Exception, model: str, attempts: int = 1) -> AgentError:
    """Convert an exception from pydantic-ai to an AgentError with a hint and with API keys redacted.

    Args:
        error: the exception that was raised.
        model: the name of the model, for the message.
        attempts: the number of attempts that were made.
    """
    if isinstance(error, AgentError):
        return error
    name, detail = _failure_name(error), _provider_message(error)
    hint = _NO_TOOLS_HINT if name == "request" and _TOOL_PATTERN.search(detail) else ""
    if suggested_id := getattr(error, "suggested_model_id", None):
        hint = f"did you mean {suggested_id!r}?"
    return answer_error(name, model, detail, attempts=attempts, hint=hint)


def answer_error(name: str, model: str, detail: str = "", *, attempts: int = 1, hint: str = "") -> AgentError:
    """Return the error that ``failures.toml`` defines under ``name``, with ``detail`` appended to its message."""
    row = _FAILURES[name]
    sentence = row["what"].format(model=model) + (f" ({attempts} attempts)" if attempts > 1 else "")
    return AgentError(f"{sentence}: {detail}" if detail else sentence, hint=hint or row["hint"], kind=row["kind"])


def _is_transient(error: BaseException) -> bool:
    """Return True if the same request may succeed when it is repeated later."""
    if isinstance(error, ai.ModelHTTPError) and error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return isinstance(error, (*_TRANSIENT_ERRORS, StreamCutOff))


def short_reason(error: BaseException, model: str) -> str:
    """Return a short description of a transient error, for the note about the retry."""
    if isinstance(error, ai.ModelHTTPError):
        return f"{error.status_code} from {model}"
    if isinstance(error, StreamCutOff):
        return f"the answer of {model} ended before it was complete"
    return f"no connection to {model}"


def _failure_name(error: Exception) -> str:
    kinds: dict[str, tuple[type[Exception], ...]] = {
        "quota": (ai.ModelQuotaExceededError,),
        "rate": (ai.ModelRateLimitError,),
        "too_long": (ai.ModelContextWindowExceededError,),
        "key": (ai.ModelAuthenticationError,),
        "model": (ai.ModelNotFoundError,),
        "slow": (ai.ModelRequestTimeout, ai.ModelTimeoutError),
        "down": (ai.ModelUnavailableError, ai.ModelServerError),
        "line": (ai.ModelConnectionError, StreamCutOff, OSError),
        "refused": (ai.ContentFilterError,),
        "request": (ai.ModelRequestRejectedError, ai.UserError),
        "malformed": (ai.ModelAPIError, ai.UnexpectedModelBehavior, ValidationError, ValueError),
    }
    kind = next((kind for kind, types in kinds.items() if isinstance(error, types)), None)
    if kind is None:
        # Some provider clients let the errors of their transport libraries through.
        kind = "line" if type(error).__module__.startswith("httpx") else "other"
    if kind == "key" and getattr(error, "status_code", 401) == 403 and not _KEY_WORDS.search(_provider_message(error)):
        return "denied"
    if kind == "request" and _REFUSAL_PATTERN.search(
        f"{getattr(error, 'provider_error_code', '')} {_provider_message(error)}"
    ):
        return "refused"
    if kind == "malformed" and getattr(error, "in_stream", False):
        return "down"
    return kind


def _provider_message(error: Exception) -> str:
    """Return the message of the provider, or of the innermost exception, shortened to one line with keys redacted."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner_error = body.get("error", body)
        body = inner_error.get("message") if isinstance(inner_error, dict) else inner_error
    if isinstance(body, str) and body.strip():
        return one_short_line(body)
    if isinstance(error, ai.ModelHTTPError):
        return f"status {error.status_code}"
    innermost: BaseException = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    return one_short_line(named_error(innermost))


def one_short_line(text: str) -> str:
    """Shorten text to at most 300 characters on one line, with keys redacted."""
    return truncate(one_line(redact(text)), _MAX_SHOWN_CHARS)


def usage_of(response: ModelResponse) -> Usage:
    """Return the tokens and the cost of an answer. Values that the provider does not report are None."""
    usage = response.usage
    if usage.unmeasured_requests or not usage.has_values():
        return Usage(None, None)
    # A provider that counts zero looks like one that reports nothing, so a count of zero is unknown.
    cached, reasoning = usage.cache_read_tokens or None, usage.details.get("reasoning_tokens") or None
    return Usage(usage.input_tokens, usage.output_tokens, _price(response), cached, reasoning)


def _price(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # no price is known for the model
        return None


@lru_cache(maxsize=4096)
def price_of(model: str, tokens_in: int, tokens_out: int) -> float | None:
    """Return the cost of a request to the model ``provider:model``, in US dollars, or None if it is unknown."""
    provider, _, name = model.partition(":")
    usage = RequestUsage(input_tokens=tokens_in, output_tokens=tokens_out)
    return _price(ModelResponse([], usage=usage, model_name=name, provider_name=provider)) if name else None


_MAX_DELAY_S: Final = 60.0

MAX_ANSWER_CHARS: Final = 8 * 1024 * 1024
"""Maximum length of an answer, including its thinking and the arguments of its tool calls, in characters."""

LOOP: Final = BackgroundLoop()
"""The event loop for all requests to models. Function agents use another loop, because they may call a model."""


class ModelHandle(NamedTuple):
    """A pydantic-ai model that is ready for requests, with its display name."""

    model: Model
    name: str


class ModelOptions(Protocol):
    """The settings of a model agent that apply to its turns; :class:`ModelAgent` describes them."""

    settings: dict[str, Any]
    tools: bool
    max_rounds: int
    timeout_s: float
    attempts: int
    first_pause_s: float
    base_url: str | None
    requests_per_minute: float | None
    cache: Path | None
    cached_uses: Counter[str]


_RATE_LOCK: Final = threading.Lock()
_NEXT_REQUEST: Final[dict[tuple[str, str | None], float]] = {}  # the earliest time, by provider and base URL


@dataclass(slots=True)
class Requests:
    """Sends the requests of one turn to a model and records their usage.

    Attributes:
        options: the settings of the agent, such as the time limit and the number of attempts.
        handle: the model.
        report: a function that receives events, in the thread that calls :meth:`ask`.
        stop: an event that is set when the cast must stop.
        unreported_usage: the usage that has not been reported yet, including the usage of incomplete answers.
        retries: the number of retries so far.
    """

    options: ModelOptions
    handle: ModelHandle
    report: Callable[[AgentEvent], None]
    stop: threading.Event
    unreported_usage: list[Usage] = field(default_factory=list, init=False)
    retries: int = field(default=0, init=False)

    def ask(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        """Send a conversation to the model and return the answer, or return the cached answer to the same request.

        Raises:
            AgentError: the request failed; :meth:`ModelAgent.answer` lists the kinds.
        """
        if self.options.cache is None:
            return self._ask_with_retries(messages, settings, parameters)
        path = self.options.cache / self._cache_name(messages, settings, parameters)
        with suppress(OSError, ValidationError):  # a missing or damaged file is written again
            (cached_response,) = ModelMessagesTypeAdapter.validate_json(read_plain(path))
            if isinstance(cached_response, ModelResponse):
                self.unreported_usage.append(Usage())
                self.report(NoteEvent("The answer is from the cache."))
                self.report(TextEvent(cached_response.text or "", fresh=True))
                return cached_response
        response = self._ask_with_retries(messages, settings, parameters)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, ModelMessagesTypeAdapter.dump_json([response]))
        except OSError as error:
            self.report(NoteEvent(f"The answer was not stored in the cache: {error.strerror or error}."))
        return response

    def _cache_name(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> str:
        """Return the file name for a request. Identical requests are numbered, so that each has its own answer."""
        conversation = [
            (message["kind"], [{**part, "timestamp": None} for part in message["parts"]])
            for message in ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        ]
        request = (self.handle.name, self.options.base_url, conversation, settings, repr(parameters))
        digest = sha256(json.dumps(request, sort_keys=True, default=repr).encode()).hexdigest()
        with _RATE_LOCK:
            self.options.cached_uses[digest] += 1
            return f"{digest}-{self.options.cached_uses[digest]}.json"

    def _wait_for_rate_limit(self) -> float:
        """Wait until the rate limit allows a request, and return the waiting time in seconds.

        The agents of this process share one queue for each provider. The rate of the agent that sends a request
        determines the delay until the next request.
        """
        if self.options.requests_per_minute is None:
            return 0.0
        provider = (self.handle.model.system, self.options.base_url)
        with _RATE_LOCK:
            now = time.monotonic()
            start = max(now, _NEXT_REQUEST.get(provider, now))
            _NEXT_REQUEST[provider] = start + 60 / self.options.requests_per_minute
        if self.stop.wait(start - now):
            raise AgentError("The agent was interrupted", kind="interrupted")
        return start - now

    def _ask_with_retries(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        deadline = time.monotonic() + self.options.timeout_s
        attempt = 1
        while True:
            deadline += self._wait_for_rate_limit()
            remaining_s = max(deadline - time.monotonic(), 0.001)
            try:
                return self._try_once(messages, {**settings, "request_timeout": remaining_s}, parameters)
            except Exception as error:  # noqa: BLE001 - the libraries of many providers raise what they like
                delay_s = self._retry_delay(error, attempt)
                is_last = attempt >= self.options.attempts or time.monotonic() + delay_s >= deadline
                if is_last or not _is_transient(error):
                    raise request_error(error, self.handle.name, attempt) from None
                reason = short_reason(error, self.handle.name)
            attempt += 1
            self.retries += 1
            self.report(NoteEvent(f"{reason}; trying again in {delay_s:.2g} s ({attempt} of {self.options.attempts})"))
            if self.stop.wait(delay_s):
                raise AgentError("The agent was interrupted", kind="interrupted")

    def _try_once(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        inbox: EventLoopInbox[AgentEvent] = EventLoopInbox(self.report)
        streams: list[StreamedResponse] = []
        try:
            response = LOOP.run(self._stream(messages, settings, parameters, inbox, streams), self.stop, inbox)
        except BaseException as error:
            if streams or isinstance(error, _ERRORS_WITH_UNKNOWN_USAGE):
                self.unreported_usage.append(Usage(None, None))
            raise
        if _is_cut_off(response, self.handle.model):
            self.unreported_usage.append(Usage(None, None))
            raise StreamCutOff("the stream ended before the answer was complete")
        self.unreported_usage.append(usage_of(response))
        return response

    async def _stream(
        self,
        messages: Sequence[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        inbox: EventLoopInbox[AgentEvent],
        streams: list[StreamedResponse],
    ) -> ModelResponse:
        is_fresh = True
        model = self.handle.model
        async with AsyncExitStack() as stack:
            # Entered for each request, so that connections don't stay open between requests.
            await stack.enter_async_context(model)
            _accept_unstreamed(model)
            stream = await stack.enter_async_context(
                model_request_stream(model, messages, model_settings=settings, model_request_parameters=parameters)
            )
            streams.append(stream)
            size = 0
            async for event in stream:
                size += _event_chars(event)
                if size > MAX_ANSWER_CHARS:
                    raise AgentError(
                        f"{self.handle.name} returned an answer of more than {MAX_ANSWER_CHARS:,} characters",
                        hint="run `retry --turn`, or decrease `max_tokens` in the settings of the agent",
                        kind="agent_reply_too_long",
                    )
                if text := _delta_text(event):
                    inbox.add(TextEvent(text, fresh=is_fresh))
                    is_fresh = False
        return stream.get()

    def _retry_delay(self, error: Exception, attempt: int) -> float:
        """Return the delay before the next attempt, in seconds.

        The delay that the provider demands takes precedence over exponential backoff with jitter.
        """
        retry_after = getattr(error, "retry_after", None)
        if retry_after is not None:
            return float(retry_after)
        first_delay = self.options.first_pause_s
        return min(first_delay * 2.0 ** (attempt - 1), _MAX_DELAY_S) + random.uniform(0, first_delay / 2)  # noqa: S311 - no secret


def _accept_unstreamed(model: Model) -> None:
    """Register :func:`_as_stream` as a response hook of the model's HTTP client, if the client supports hooks."""
    client = getattr(getattr(model, "client", None), "_client", None)
    hooks = getattr(client, "event_hooks", {}).get("response")
    if hooks is not None and _as_stream not in hooks:
        hooks.append(_as_stream)


async def _as_stream(response: Any) -> None:
    """Convert a complete JSON response to a stream. If the response contains an error, set its HTTP status."""
    if response.status_code != 200 or "json" not in response.headers.get("content-type", ""):
        return
    body = json_or_none(await response.aread())  # the client reports an unreadable response
    match body:
        case {"error": error} if error:
            response.status_code = _http_status(error)
        case {"choices": [{"message": {**message}, **choice}, *_]}:
            tool_calls: Any = message.get("tool_calls") or ()
            calls = [{"index": number, **call} for number, call in enumerate(tool_calls)]
            delta = {**message, "tool_calls": calls or None}
            chunk = {**body, "object": "chat.completion.chunk", "choices": [{**choice, "delta": delta}]}
            _set_content(response, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n")
        case {**other} if other:
            response.status_code = 400
            problem = "The server sent a complete reply instead of a stream, and the reply is not a chat completion"
            _set_content(response, json.dumps({"error": {"message": problem}}))


def _set_content(response: Any, text: str) -> None:
    response._content = text.encode()  # noqa: SLF001 - httpx has no other way to change what was read


def _http_status(error: object) -> int:
    """Return the HTTP status that matches the fields of an error, because the server sent the error with status 200."""
    fields = error if isinstance(error, dict) else {}
    for name in ("code", "status", "status_code"):
        if str(fields.get(name)).isdecimal() and 400 <= int(fields[name]) < 600:
            return int(fields[name])
    return 429 if _LIMIT_PATTERN.search(f"{fields.get('code')} {fields.get('type')} {fields.get('status')}") else 502


def _delta_text(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


_COUNTED_FIELDS: Final = ("content", "content_delta", "tool_name", "tool_name_delta", "args", "args_delta")
"""Fields of stream events whose length counts towards the maximum length of an answer."""


def _event_chars(event: ModelResponseStreamEvent) -> int:
    """Return the number of characters of an event that count towards the maximum length of an answer."""
    match event:
        case PartStartEvent(part=part) | PartDeltaEvent(delta=part):
            values = (getattr(part, name, None) or "" for name in _COUNTED_FIELDS)
            return sum(len(value if isinstance(value, str) else json.dumps(value, default=str)) for value in values)
    return 0


def _is_cut_off(response: ModelResponse, model: Model) -> bool:
    """Return True if the stream of an answer ended before the answer was complete."""
    names = {base.__name__ for base in type(model).__mro__}
    # The library itself sets "stop" as the reason of some streams that end early.
    has_finish = response.finish_reason == "content_filter" or "finish_reason" in (response.provider_details or {})
    return response.state == "incomplete" or not (has_finish or _CLASSES_WITH_FINISH_REASON.isdisjoint(names))
