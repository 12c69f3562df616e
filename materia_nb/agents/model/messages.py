"""A turn in the words of pydantic-ai: the conversation, the tools, the settings, the form of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_ai.tools import ToolDefinition

from materia_nb.agents.interface import ToolCall, Turn
from materia_nb.agents.tools import Tool
from materia_nb.jsonvalue import JSON

THINKING: Final[Mapping[str, ThinkingLevel]] = {
    "off": False,
    "none": False,
    "on": True,
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""How much a materia may ask its model to think, and what that is to the library."""

_WANT_THOUGHTS: Final = ("anthropic", "bedrock")


def conversation(turn: Turn) -> list[ModelMessage]:
    """Return what was said before in this visit and what is asked now."""
    messages: list[ModelMessage] = []
    for said in turn.conversation:
        if said.role == "user":
            messages.append(_asked(said.text))
        else:
            messages += rounds(said.calls)
            if said.text:
                messages.append(ModelResponse([TextPart(said.text)]))
    return [*messages, _asked(turn.prompt)]


def rounds(calls: Sequence[ToolCall]) -> Iterator[ModelMessage]:
    """Yield for each answer that asked for calls that answer and what the calls gave."""
    for _, group in groupby(sorted(calls, key=lambda call: call.round), key=lambda call: call.round):
        together = list(group)
        said = "".join(call.said for call in together)
        parts: list[TextPart | ToolCallPart] = [TextPart(said)] if said else []
        parts += [ToolCallPart(call.tool, dict(call.args), call.id) for call in together]
        yield ModelResponse(parts)
        yield results(together)


def results(calls: Iterable[ToolCall]) -> ModelRequest:
    """Return what the calls gave, as the model is told."""
    return ModelRequest(
        [
            ToolReturnPart(
                call.tool,
                call.result or "",
                call.id,
                outcome="denied" if call.decided == "denied" else "success" if call.ok else "failed",
            )
            for call in calls
        ]
    )


def parameters(
    model: Model, tools: Iterable[Tool], schema: Mapping[str, JSON] | None, settings: ModelSettings
) -> ModelRequestParameters:
    """Return the tools and, where the provider can hold the model to it, the schema of the answer.

    Elsewhere the prompt alone says what must be returned.
    """
    plain = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters)
            )
            for tool in tools
        ]
    )
    if schema is None:
        return plain
    native = replace(
        plain,
        output_mode="native",
        output_object=OutputObjectDefinition(
            json_schema=dict(schema), name="handoff", strict=False if leaves_open(schema) else None
        ),
    )
    try:
        if model.profile.get("supports_json_schema_output", False):
            model.prepare_request(settings, native)
            return native
    except (UserError, NotImplementedError):  # not this model, or not together with tools
        pass
    return plain


def settings_for(
    model: Model, given: Mapping[str, Any], thinking: str | None, *, rebuilt: bool = False
) -> ModelSettings:
    """Return the settings of a request; what is tried again is ours to say, so the client must not.

    Args:
        model: who is asked.
        given: the settings of the agent.
        thinking: how much the materia asks its model to think.
        rebuilt: whether the turn goes on behind tool calls that were told to another request. Some
            models then want the thoughts that led to the calls, which are not kept, or no thinking.
    """
    made = dict(given)
    if "max_retries" not in getattr(model, "unsupported_settings", ()):
        made["max_retries"] = 0
    if thinking is not None and thinking in THINKING:
        made["thinking"] = THINKING[thinking]
    if rebuilt and made.get("thinking") and getattr(model, "system", "") in _WANT_THOUGHTS:
        made["thinking"] = False
    return cast("ModelSettings", made)


def _asked(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def leaves_open(schema: JSON) -> bool:
    """Whether a schema leaves something open: a value, a field that may be missing, or one of any name.

    A provider that holds its model to a strict schema takes none of these.
    """
    if not isinstance(schema, dict):
        return False
    fields: dict[str, JSON] = schema.get("properties", {})
    required: list[str] = schema.get("required", list(fields))
    optional = set(fields).difference(required)
    free = schema.get("additionalProperties", False) is not False
    return bool(
        not schema or optional or free or any(map(leaves_open, [*fields.values(), schema.get("items")]))
    )
