"""One request to a model: streamed, tried again where that may help, ended when it must be; what it cost (R20)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import tenacity
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from materia_nb.agents.background import BackgroundLoop, Inbox
from materia_nb.agents.interface import AgentError, Noted, Said, Telling, Usage
from materia_nb.agents.model.failures import CutOff, briefly, failure, may_pass
from materia_nb.agents.model.providers import Made


class Spending:
    """Adds up the tokens of answers, also of those that broke off."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._input = self._output = 0
        self._cost: float | None = 0.0
        self._measured = False

    def add(self, response: ModelResponse) -> None:
        """Add the tokens of an answer, as far as they are known."""
        used = response.usage
        if used.unmeasured_requests or not used.has_values():
            self._cost = None
            return
        self._measured = True
        self._input += used.input_tokens
        self._output += used.output_tokens
        price = _price(response)
        self._cost = None if price is None or self._cost is None else self._cost + price

    def take(self) -> Usage | None:
        """Return the total, and begin anew."""
        if (used := self.total) is not None:  # else something is not known, which the next total must say
            self._begin()
        return used

    @property
    def total(self) -> Usage | None:
        """All of it; None when nobody said how many tokens there were. A cost that is known in part is not."""
        return Usage(self._input, self._output, self._cost) if self._measured else None


def _price(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # no price is known for the model
        return None


_LONGEST_PAUSE_S: Final = 60.0

LONGEST_ANSWER: Final = 8 * 1024 * 1024
"""The longest answer that is taken, in characters, with its thoughts and the arguments of its calls."""

LOOP: Final = BackgroundLoop()
"""Where all requests run. Not the loop of function agents, since one of these may ask a model."""


class ModelOptions(Protocol):
    """What a model agent was made with, as far as a turn needs it; :class:`ModelAgent` says what each means."""

    settings: dict[str, Any]
    tools: bool
    most_rounds: int
    timeout_s: float
    attempts: int
    first_pause_s: float


@dataclass(slots=True)
class Requests:
    """The requests of one turn.

    Attributes:
        options: how long, how often.
        made: the model.
        tell: takes what is told, in the thread of :meth:`ask`.
        stop: set when the cast is to stop.
        spending: where the tokens of every request are added up, also of those that failed.
        retries: how often something was tried again.
    """

    options: ModelOptions
    made: Made
    tell: Callable[[Telling], None]
    stop: threading.Event
    spending: Spending
    retries: int = field(default=0, init=False)

    def ask(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        """Return the model's answer to a conversation.

        Raises:
            AgentError: see :meth:`ModelAgent.answer`.
        """
        begun = time.monotonic()
        tries = 0

        def once() -> ModelResponse:
            nonlocal tries
            tries += 1
            left = max(self.options.timeout_s - (time.monotonic() - begun), 0.001)
            return self._once(messages, {**settings, "request_timeout": left}, parameters)

        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception(may_pass),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(self.options.attempts),
                tenacity.stop_before_delay(self.options.timeout_s),
            ),
            wait=self._pause,
            before_sleep=self._note,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return again(once)
        except Exception as error:  # noqa: BLE001 - the libraries of many providers raise what they like
            raise failure(error, self.made.name, tries) from None

    def _once(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        inbox: Inbox[Telling] = Inbox(self.tell)
        streams: list[StreamedResponse] = []
        try:
            response = LOOP.run(
                self._stream(messages, settings, parameters, inbox, streams), self.stop, inbox
            )
        except BaseException:
            if streams:
                self.spending.add(streams[0].get())
            raise
        self.spending.add(response)
        if response.state == "incomplete" or (self.made.tells_the_end and not _says_the_end(response)):
            raise CutOff("the stream ended before the answer did")
        return response

    async def _stream(
        self,
        messages: Sequence[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        inbox: Inbox[Telling],
        streams: list[StreamedResponse],
    ) -> ModelResponse:
        fresh = True
        model = self.made.model
        # Entered for each request, so that no connection stays open when nothing is asked.
        async with (
            model,
            model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream,
        ):
            streams.append(stream)
            size = 0
            async for event in stream:
                size += _size(event)
                if size > LONGEST_ANSWER:
                    raise AgentError(
                        f"{self.made.name} answered with more than {LONGEST_ANSWER:,} characters",
                        hint="resend, or give the agent fewer max_tokens in its settings",
                        kind="agent_reply_too_long",
                    )
                if text := _text(event):
                    inbox.tell(Said(text, fresh=fresh))
                    fresh = False
        return stream.get()

    def _pause(self, state: tenacity.RetryCallState) -> float:
        """Seconds before the next try: what the provider says, else twice as long each time, with some jitter."""
        error = state.outcome.exception() if state.outcome else None
        asked = getattr(error, "retry_after", None)
        if asked is not None:
            return float(asked)
        first = self.options.first_pause_s
        backoff = tenacity.wait_exponential(multiplier=first, max=_LONGEST_PAUSE_S)
        return float(backoff(state) + tenacity.wait_random(0, first / 2)(state))

    def _note(self, state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self.retries += 1
        what = briefly(error, self.made.name) if error else "nothing"
        number = f"{state.attempt_number + 1} of {self.options.attempts}"
        self.tell(Noted(f"{what}; trying again in {state.upcoming_sleep:.2g} s ({number})"))

    def _sleep(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise AgentError("The agent was interrupted", kind="interrupted")


def _text(event: ModelResponseStreamEvent) -> str:
    match event:
        case (
            PartStartEvent(part=TextPart(content=text))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
        ):
            return text
    return ""


def _size(event: ModelResponseStreamEvent) -> int:
    """Return how many characters came with an event."""
    match event:
        case PartStartEvent(part=TextPart(content=text) | ThinkingPart(content=text)):
            return len(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return len(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)):
            return len(text or "")
        case PartStartEvent(part=ToolCallPart() as part):
            return len(part.tool_name) + len(part.tool_call_id) + _length(part.args)
        case PartDeltaEvent(delta=ToolCallPartDelta() as delta):
            return len(delta.tool_name_delta or "") + _length(delta.args_delta)
    return 0


def _length(args: str | Mapping[str, object] | None) -> int:
    return len(args) if isinstance(args, str) else len(json.dumps(args, default=str)) if args else 0


def _says_the_end(response: ModelResponse) -> bool:
    told = response.provider_details or {}
    return response.finish_reason == "content_filter" or "finish_reason" in told
