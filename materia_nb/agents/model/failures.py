"""What a failed request means: its kind, what to say, what to do, whether to try again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic_ai import exceptions as ai

from materia_nb.agents.interface import AgentError
from materia_nb.engine.prompt_layers import cut
from materia_nb.handoff.protocol import one_line
from materia_nb.secrets import scrubbed

_SHOWN: Final = 300
_REFUSALS: Final = re.compile(r"content[_ ]?(policy|filter)|safety|moderation|flagged", re.IGNORECASE)
_TOOLS: Final = re.compile(r"\btools?\b", re.IGNORECASE)
_NO_TOOLS: Final = (
    "if the model takes no tools, set the agent again with --no-tools (tools=False), then resend"
)
_AGAIN: Final = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
)


class CutOff(Exception):
    """A stream ended before the answer did."""


class Kind(NamedTuple):
    """A kind of failure: what is said of it, with the model's name, and the way on."""

    kind: str
    what: str
    hint: str


_RATE: Final = Kind(
    "rate_limited",
    "{model} takes no more requests for now",
    "wait a while, then resend; or use another model",
)
_QUOTA: Final = Kind(
    "rate_limited",
    "The quota or the credit for {model} is used up",
    "see to the account, or use another model; then resend",
)
_LONG: Final = Kind(
    "context_too_long",
    "The conversation is too long for {model}",
    "use a model that takes more, or let the prompt and the tools say less; then resend",
)
_KEY: Final = Kind(
    "bad_key",
    "The key was refused for {model}",
    "put a key that may use the model into the environment, then resend",
)
_MODEL: Final = Kind(
    "bad_model", "{model} was not found", "is the name right, and the base URL, if there is one?"
)
_SLOW: Final = Kind(
    "agent_timeout", "{model} took too long", "give the agent a longer timeout_s, then resend"
)
_REFUSED: Final = Kind("refused", "{model} refused to answer", "change the prompt or the model, then resend")
_REQUEST: Final = Kind(
    "bad_request", "The request to {model} was refused", "change the settings or the model, then resend"
)
_LINE: Final = Kind(
    "transport",
    "{model} could not be reached or broke off",
    "is the provider up, and the base URL right? then resend",
)
_DOWN: Final = Kind(
    "transport", "{model} failed on its provider's side", "resend later, or use another model"
)
_OTHER: Final = Kind("agent_error", "Asking {model} failed", "put it right, then resend")
_MALFORMED: Final = Kind(
    "malformed", "The answer of {model} could not be read", "resend, or use another model"
)


def failure(error: Exception, model: str, tries: int = 1) -> AgentError:
    """Turn what the library raised into an error that a person can act on; keys are cut out of it.

    Args:
        error: what was raised.
        model: what the model is called.
        tries: how often it was tried.
    """
    if isinstance(error, AgentError):
        return error
    found = _kind(error)
    said = _said(error)
    what = found.what.format(model=model) + (f", in {tries} tries" if tries > 1 else "")
    hint = _NO_TOOLS if found is _REQUEST and _TOOLS.search(said) else found.hint
    if suggested := getattr(error, "suggested_model_id", None):
        hint = f"did you mean {suggested!r}?"
    return AgentError(what + (f": {said}" if said else ""), hint=hint, kind=found.kind)


def refused(model: str, why: object) -> AgentError:
    """Return the error for an answer that was refused, or held back by a filter."""
    said = f": {_short(why)}" if isinstance(why, str) and why else ""
    return AgentError(_REFUSED.what.format(model=model) + said, hint=_REFUSED.hint, kind=_REFUSED.kind)


def empty(model: str, finish: str | None) -> AgentError:
    """Return the error for an answer without text and without calls."""
    hint = "give the agent more max_tokens in its settings" if finish == "length" else _MALFORMED.hint
    return AgentError(f"The answer of {model} is empty", hint=hint, kind=_MALFORMED.kind)


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, ai.ModelHTTPError) and error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return isinstance(error, (*_AGAIN, CutOff))


def briefly(error: BaseException, model: str) -> str:
    """Say in a few words what went wrong, for a note that it is tried again."""
    if isinstance(error, ai.ModelHTTPError):
        return f"{error.status_code} from {model}"
    if isinstance(error, CutOff):
        return f"{model} broke off"
    return f"no connection to {model}"


def _kind(error: Exception) -> Kind:
    kinds: tuple[tuple[tuple[type[Exception], ...], Kind], ...] = (
        ((ai.ModelQuotaExceededError,), _QUOTA),
        ((ai.ModelRateLimitError,), _RATE),
        ((ai.ModelContextWindowExceededError,), _LONG),
        ((ai.ModelAuthenticationError,), _KEY),
        ((ai.ModelNotFoundError,), _MODEL),
        ((ai.ModelRequestTimeout, ai.ModelTimeoutError), _SLOW),
        ((ai.ModelUnavailableError, ai.ModelServerError), _DOWN),
        ((ai.ModelConnectionError, CutOff, OSError), _LINE),
        ((ai.ContentFilterError,), _REFUSED),
        ((ai.ModelRequestRejectedError, ai.UserError), _REQUEST),
        ((ai.ModelAPIError, ai.UnexpectedModelBehavior, ValidationError, ValueError), _MALFORMED),
    )
    found = next((kind for types, kind in kinds if isinstance(error, types)), None)
    if found is None:
        # The transport libraries have errors of their own, where a provider's client lets them through.
        found = _LINE if type(error).__module__.startswith("httpx") else _OTHER
    if found is _REQUEST and _REFUSALS.search(f"{getattr(error, 'provider_error_code', '')} {_said(error)}"):
        return _REFUSED
    if found is _MALFORMED and getattr(error, "in_stream", False):
        return _DOWN
    return found


def _said(error: Exception) -> str:
    """Return what the provider, or else the innermost cause, said of it; on one line, bounded, without keys."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        body = inner.get("message") if isinstance(inner, dict) else inner
    if isinstance(body, str) and body.strip():
        return _short(body)
    if isinstance(error, ai.ModelHTTPError):
        return f"status {error.status_code}"
    innermost = [
        f"{type(one).__name__}: {one}" if str(one) else type(one).__name__ for one in _causes(error)
    ][-1]
    return _short(innermost)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _short(text: str) -> str:
    return cut(one_line(scrubbed(text)), _SHOWN)
