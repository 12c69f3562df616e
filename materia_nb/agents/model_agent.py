"""Agents that call a language model through pydantic-ai (the extra ``models``), which is imported on first use."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import TIMEOUT_S, AgentError, NeedsApproval, Reply, Turn
from materia_nb.errors import close_match, join_with_or, redact, redact_library_logs, register_key_variable
from materia_nb.loadout.graph import PROMPT_FORMS, PromptForm
from materia_nb.platform import HeldInterrupts

if TYPE_CHECKING:
    from materia_nb.agents.model_requests import ModelHandle


_OLLAMA_URL: Final = "http://127.0.0.1:11434/v1"
_OTHER_KEY_NAMES: Final = {"cohere": ("CO_API_KEY",), "google": ("GEMINI_API_KEY",), "google-gla": ("GEMINI_API_KEY",)}
"""Environment variables with API keys, for providers that do not use the variable ``PROVIDER_API_KEY``."""
_VARIABLE_NAME: Final = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_PLACEHOLDER_KEY: Final = "none"
"""The API key that is sent to a server without keys. The client library requires a value."""


def display_name(model: object) -> str:
    """Return the display name of a model, which may be a name or a model object."""
    return model if isinstance(model, str) else str(getattr(model, "model_id", type(model).__name__))


def providers() -> list[str]:
    """Return the names of common model providers, for completion and suggestions."""
    _require_library()
    from pydantic_ai.models import known_model_names

    names = {name.partition(":")[0] for name in known_model_names() if ":" in name}
    return sorted({*(name for name in names if "/" not in name), "ollama", "openrouter"})


def suggest_model(name: str) -> str:
    """Return the correct name of a model for a misspelling such as ``openai/gpt-5``, or an empty string."""
    provider, separator, model_name = name.removeprefix("model:").removeprefix("model/").partition("/")
    is_known = bool(separator and model_name) and find_spec("pydantic_ai") is not None and provider in providers()
    return f"{provider}:{model_name}" if is_known else ""


def ready_models() -> tuple[str, ...]:
    """Return the names of common models whose provider has an API key in the environment."""
    keys = frozenset(name for name, value in os.environ.items() if name.endswith("_API_KEY") and value.strip())
    return _models_with_keys(keys) if keys and find_spec("pydantic_ai") is not None else ()


def _key_variables(provider: str) -> tuple[str, ...]:
    return (f"{provider.partition('-')[0].upper()}_API_KEY", *_OTHER_KEY_NAMES.get(provider, ()))


def _check_keys(variables: Iterable[str]) -> None:
    """Raise AgentError (kind ``bad_key``) if the value of a variable cannot be sent in an HTTP header."""
    for name in variables:
        key = os.environ.get(name, "")
        if key != key.strip() or not (key.isascii() and key.isprintable()):
            raise AgentError(
                f"The key in {name} begins or ends with a space, or contains a line break or a character that is not ASCII",
                hint=f"set {name} to the key without other characters, then run `retry --turn`",
                kind="bad_key",
            )


@functools.cache
def _models_with_keys(keys: frozenset[str]) -> tuple[str, ...]:
    from pydantic_ai.models import known_model_names

    ready_providers = {provider for provider in providers() if not keys.isdisjoint(_key_variables(provider))}
    return tuple(name for name in known_model_names() if name.partition(":")[0] in ready_providers)


def _require_library() -> None:
    """Raise AgentError (kind ``not_installed``) unless pydantic-ai is installed."""
    if find_spec("pydantic_ai") is None:
        raise AgentError(
            "Language models need the package pydantic-ai, which is not installed",
            hint='pip install "materia-nb[models]"',
            kind="not_installed",
        )


def _did_you_mean(name: str) -> str:
    return f"did you mean {suggestion!r}?" if (suggestion := suggest_model(name)) else ""


def _bad_model_error(message: str, hint: str | None = None) -> AgentError:
    return AgentError(message, hint=hint, kind="bad_model")


def check_model(model: object, base_url: str | None = None) -> None:
    """Raise AgentError if a model or its base URL is not valid. No request is sent."""
    _require_library()
    from pydantic_ai.models import Model

    if isinstance(model, Model):
        if base_url is not None:
            raise _bad_model_error("A model object has its own base URL, so another base URL cannot be set for it")
        return
    if not isinstance(model, str):
        raise _bad_model_error(
            f"A value of type {type(model).__name__} is not a model",
            "write provider:model, as in openai:gpt-5, or pass a pydantic-ai model object",
        )
    if base_url is not None and not re.match(r"https?://[^/\s]", base_url):
        raise _bad_model_error("The base URL is not valid", "write the full URL, such as http://127.0.0.1:8080/v1")
    provider, _, name = model.partition(":")
    if not provider or not name:
        raise _bad_model_error(
            f"{model!r} is not the name of a model",
            _did_you_mean(model) or "write provider:model, as in openai:gpt-5 or ollama:llama3.2",
        )
    if provider == "model" and (hint := _did_you_mean(model)):
        raise _bad_model_error("The model provider 'model' does not exist", hint)
    _provider_class(provider)


def make_model(model: object, base_url: str | None = None, key_env: str | None = None) -> ModelHandle:
    """Return the model with the given name, ready for requests. A model object of pydantic-ai is used unchanged.

    Raises:
        AgentError: kinds ``bad_model`` and ``not_installed`` as in :func:`check_model`; kind ``no_key``: the
            environment contains no API key for the model.
    """
    check_model(model, base_url)
    redact_library_logs()
    from pydantic_ai.models import Model, infer_model

    from materia_nb.agents.model_requests import ModelHandle

    if isinstance(model, Model):
        return ModelHandle(model, display_name(model))
    name = str(model)
    provider, _, model_name = name.partition(":")
    if provider == "openai" and (base_url or os.environ.get("OPENAI_BASE_URL")):
        provider = "openai-chat"  # the protocol that servers other than OpenAI's understand
    pydantic_model = infer_model(f"{provider}:{model_name}", lambda _: _make_provider(provider, base_url, key_env))
    return ModelHandle(pydantic_model, name)


def _provider_class(provider: str) -> Any:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    try:
        return infer_provider_class(provider)
    except (ValueError, UserError):
        match, known_names = close_match(provider, providers()), ", ".join(providers())
        hint = f"did you mean {match!r}?" if match else f"choose one of: {known_names}"
        raise _bad_model_error(f"The model provider {provider!r} does not exist", hint) from None
    except ImportError as error:
        raise AgentError(
            f"The provider {provider} needs a package that is not installed",
            hint=" ".join(str(error).split())[:300],
            kind="not_installed",
        ) from None


def _make_provider(provider: str, base_url: str | None, key_env: str | None) -> Any:
    from pydantic_ai.exceptions import UserError

    provider_class = _provider_class(provider)
    accepted_options = inspect.signature(provider_class.__init__).parameters
    options: dict[str, str] = {}
    if provider == "ollama" and not base_url and not os.environ.get("OLLAMA_BASE_URL"):
        base_url = _OLLAMA_URL
    _check_keys([key_env] if key_env else _key_variables(provider))
    if base_url:
        options["base_url"] = base_url
    if key_env:
        options["api_key"] = os.environ.get(key_env) or _raise_missing_key([key_env], provider)
    elif provider == "openai-chat" and not os.environ.get("OPENAI_API_KEY"):
        options["api_key"] = _PLACEHOLDER_KEY
    for name in options:
        if name not in accepted_options:
            option_label = "base URL" if name == "base_url" else "key"
            raise _bad_model_error(f"The provider {provider} does not accept a {option_label}")
    try:
        return provider_class(**options)
    except UserError as error:
        _raise_missing_key(_VARIABLE_NAME.findall(str(error)), provider, str(error))
    except OSError as error:
        raise AgentError(
            f"The certificates for {provider} cannot be read: {redact(error.strerror or str(error))}",
            hint="correct or unset SSL_CERT_FILE and SSL_CERT_DIR in the environment",
            kind="transport",
        ) from None
    except ImportError as error:
        raise AgentError(
            f"The proxy that is set in the environment for {provider} needs a package that is not installed",
            hint=" ".join(redact(str(error)).split())[:300],
            kind="not_installed",
        ) from None


def _raise_missing_key(variables: Iterable[str], provider: str, message: str = "") -> Any:
    """Raise the error for required environment variables that are not set."""
    names = list(variables)
    if not names:
        raise _bad_model_error(f"Settings for the provider {provider} are missing: {redact(message)}")
    raise AgentError(
        f"The provider {provider} needs {' or '.join(names)} in the environment",
        hint=f"set {names[0]} before Jupyter starts; keys are read only from the environment",
        kind="no_key",
    )


@dataclass(eq=False, repr=False)
class ModelAgent:
    """Calls a language model, streams its answer, and lets the model use the tools of the materia.

    API keys are read from the environment; they are never stored or displayed.

    Args:
        model: the name of the model as ``provider:model``, or a model object of pydantic-ai. By default, the agent uses
            the model that each materia requests.
        base_url: the URL of another server that supports the provider's protocol, such as a local server. ``openai:``
            then selects the chat completions protocol.
        key_env: the environment variable that contains the API key; defaults to the usual variable of the provider.
        settings: additional model settings for pydantic-ai, such as ``temperature`` and ``max_tokens``.
        tools: False if the model does not support tools. The model is then called without the tools of the materia,
            and a note reports the omission.
        timeout_s: the time limit for one answer of the model, including all retries, in seconds.
        attempts: the maximum number of attempts for each request.
        first_pause_s: the delay before the first retry, in seconds. The delay is approximately doubled before each
            further retry. If the provider demands a delay, that delay is used instead.
        prompt_form: the format of prompts, ``md`` or ``plain``, for sockets that do not set it (R50); defaults to the
            ``prompt_form`` in the profile of the model object.
        requests_per_minute: the maximum rate of requests to the provider. Agents of the same provider in all casts of
            this process wait for each other.
        cache: a directory in which the answers of the model are stored. A request with the same model, conversation and
            settings returns the stored answer without using tokens. The n-th equal request of this agent gets the n-th
            stored answer, so that repeated casts can differ.
        name: the display name of the agent; defaults to the name of the model.

    Attributes:
        max_rounds: the maximum number of answers with tool calls in one turn. The count starts again when the turn is
            repeated.

    Raises:
        AgentError: kind ``not_installed``: pydantic-ai or a package that the provider needs is not installed; kind
            ``bad_model``: the provider is unknown or the name is not valid; kind ``bad_settings``: the ``prompt_form``
            is unknown.
    """

    model: object = None
    _: KW_ONLY
    base_url: str | None = None
    key_env: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    tools: bool = True
    timeout_s: float = TIMEOUT_S
    attempts: int = 4
    first_pause_s: float = 1.0
    prompt_form: PromptForm | None = None
    requests_per_minute: float | None = None
    cache: Path | None = None
    name: str = ""
    cached_uses: Counter[str] = field(default_factory=Counter, init=False, repr=False)
    max_rounds: int = field(default=50, init=False)
    _handles: dict[str, ModelHandle] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        with HeldInterrupts():
            self.name = self.name or ("model" if self.model is None else display_name(self.model))
            if self.model is not None:
                check_model(self.model, self.base_url)
        if self.requests_per_minute is not None and self.requests_per_minute <= 0:
            raise AgentError("`requests_per_minute` must be greater than 0", kind="bad_settings")
        self.cache = None if self.cache is None else Path(self.cache).expanduser().absolute()
        if self.key_env:
            register_key_variable(self.key_env)
        self.prompt_form = self.prompt_form or (getattr(self.model, "profile", None) or {}).get("prompt_form")
        if self.prompt_form is not None and self.prompt_form not in PROMPT_FORMS:
            raise AgentError(
                f"{self.prompt_form!r:.40} is not a prompt form",
                hint=f"use {join_with_or(PROMPT_FORMS)}",
                kind="bad_settings",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings of the agent without its open connections, for copying and pickling."""
        return {**vars(self), "_handles": {}}

    def answer(self, turn: Turn) -> Reply | NeedsApproval:
        """Call the model until it answers without tool calls, or until a tool call needs approval.

        Raises:
            AgentError: kinds ``no_model``, ``no_key``, ``bad_key``, ``denied``, ``bad_model``, ``bad_request``,
                ``rate_limited``, ``refused``, ``context_too_long``, ``malformed``, ``transport``, ``agent_timeout``,
                ``agent_reply_too_long``, ``too_many_calls``, ``interrupted``, ``not_installed``.
            KeyboardInterrupt: the user interrupted the call. The request was cancelled, and a running command has
                ended.
        """
        with HeldInterrupts():  # a package stays broken in this kernel if its import was interrupted
            from materia_nb.agents.model_turn import ModelTurn

            model = self._chosen_model(turn)
        try:
            return ModelTurn(self, model, turn).answer()
        except AgentError as error:
            if error.kind in ("bad_key", "denied"):
                self._handles.clear()  # the next try reads the environment again
            raise

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:  # noqa: ARG002 - a model does not run in the project
        """Return an error if the model, its API key or a required package is missing; otherwise return None."""
        selected_model = self.model if self.model is not None else model
        if not selected_model:
            return _no_model_error("The materia")
        try:
            with HeldInterrupts():
                make_model(selected_model, self.base_url, self.key_env)
        except AgentError as error:
            return error
        return None

    def price_names(self, model: str | None) -> tuple[str, ...]:
        """Return the names under which a config may list the agent's price: the name of the agent, then the model."""
        selected_model = self.model if self.model is not None else model
        return (self.name, selected_model) if isinstance(selected_model, str) else (self.name,)

    def price(self, model: str | None, tokens_in: int, tokens_out: int) -> float | None:
        """Return the cost of a request for a materia that requests ``model``, in US dollars.

        The cost is unknown (None) if ``base_url`` is set, and for models that are not named ``provider:model`` (R56).
        """
        selected_model = self.model if self.model is not None else model
        if not isinstance(selected_model, str) or self.base_url or find_spec("pydantic_ai") is None:
            return None
        with HeldInterrupts():
            from materia_nb.agents.model_requests import price_of

        return price_of(selected_model, tokens_in, tokens_out)

    def _chosen_model(self, turn: Turn) -> ModelHandle:
        selected_model = self.model if self.model is not None else turn.model
        if not selected_model:
            raise _no_model_error(f"The materia {turn.materia_id}", turn.socket_id)
        name = display_name(selected_model)
        if name not in self._handles:
            self._handles[name] = make_model(selected_model, self.base_url, self.key_env)
        return self._handles[name]

    def __repr__(self) -> str:
        return f"ModelAgent({self.name!r})"


def _no_model_error(subject: str, where: str | None = None) -> AgentError:
    return AgentError(
        f"{subject} does not name a model, and the agent has no default model",
        where=where,
        hint="name a model in the materia or for the agent: provider:model, as in openai:gpt-5",
        kind="no_model",
    )
