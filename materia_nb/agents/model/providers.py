"""From a name such as ``openai:gpt-5`` to a model of pydantic-ai."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import AgentError
from materia_nb.errors import close_match, scrubbed

if TYPE_CHECKING:
    from pydantic_ai.models import Model


_INSTALL: Final = 'pip install "materia-nb[models]"'
_OLLAMA_URL: Final = "http://127.0.0.1:11434/v1"
_OTHER_KEYS: Final = {
    "cohere": ("CO_API_KEY",),
    "google": ("GEMINI_API_KEY",),
    "google-gla": ("GEMINI_API_KEY",),
}
"""Keys that are not called after their provider."""
_VARIABLE: Final = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_NO_KEY: Final = (
    "none"  # what a server that wants no key is sent in its place; the client library needs something
)


@dataclass(frozen=True, slots=True)
class Made:
    """A model that is ready to be asked.

    Attributes:
        model: the model.
        name: its name where it is shown.
        tells_the_end: whether each stream of it must say why it ended; one that does not was cut off.
    """

    model: Model
    name: str
    tells_the_end: bool


def model_name_of(model: object) -> str:
    """Return what a model is called where it is shown."""
    return model if isinstance(model, str) else str(getattr(model, "model_id", type(model).__name__))


def providers() -> list[str]:
    """Return the names of the providers that are commonly used, for completion and for what was meant."""
    _needs_library()
    from pydantic_ai.models import known_model_names

    found = {name.partition(":")[0] for name in known_model_names() if ":" in name}
    return sorted({*(name for name in found if "/" not in name), "ollama", "openrouter"})


def meant(name: str) -> str:
    """Return the model that is plainly meant by ``openai/gpt-5`` or ``model:openai/gpt-5``; empty where none is."""
    provider, slash, rest = name.removeprefix("model:").removeprefix("model/").partition("/")
    known = bool(slash and rest) and find_spec("pydantic_ai") is not None and provider in providers()
    return f"{provider}:{rest}" if known else ""


def ready_models() -> tuple[str, ...]:
    """Return the models that could be asked here: their provider is installed, and its key is in the environment."""
    keys = frozenset(
        name for name, value in os.environ.items() if name.endswith("_API_KEY") and value.strip()
    )
    return _models_for(keys) if keys and find_spec("pydantic_ai") is not None else ()


@functools.cache
def _models_for(keys: frozenset[str]) -> tuple[str, ...]:
    from pydantic_ai.models import known_model_names

    def is_ready(provider: str) -> bool:
        if not keys & {f"{provider.partition('-')[0].upper()}_API_KEY", *_OTHER_KEYS.get(provider, ())}:
            return False
        with suppress(AgentError):
            _provider_class(provider)
            return True
        return False

    ready = {provider for provider in providers() if is_ready(provider)}
    return tuple(name for name in known_model_names() if name.partition(":")[0] in ready)


def _needs_library() -> None:
    """Raise AgentError (kind ``not_installed``) unless pydantic-ai is there."""
    if find_spec("pydantic_ai") is None:
        raise AgentError(
            "Language models need pydantic-ai, which is not installed", hint=_INSTALL, kind="not_installed"
        )


def _did_you_mean(name: str) -> str:
    return f"did you mean {found!r}?" if (found := meant(name)) else ""


def _bad_model(what: str, hint: str | None = None) -> AgentError:
    return AgentError(what, hint=hint, kind="bad_model")


def check(model: object, base_url: str | None = None) -> None:
    """Raise AgentError for a name that cannot be a model's; nothing is asked of anyone."""
    _needs_library()
    from pydantic_ai.models import Model

    if isinstance(model, Model):
        if base_url is not None:
            raise _bad_model("A model object has its base URL already")
        return
    if not isinstance(model, str):
        raise _bad_model(
            f"A {type(model).__name__} is not a model",
            "write provider:model, as in openai:gpt-5, or give a model of pydantic-ai",
        )
    if base_url is not None and not re.match(r"https?://[^/\s]", base_url):
        raise _bad_model("The base URL is none", "write it whole: http://127.0.0.1:8080/v1")
    provider, _, name = model.partition(":")
    if not provider or not name:
        raise _bad_model(
            f"{model!r} names no model",
            _did_you_mean(model) or "write provider:model, as in openai:gpt-5 or ollama:llama3.2",
        )
    if provider == "model" and (hint := _did_you_mean(model)):
        raise _bad_model("There is no model provider 'model'", hint)
    _provider_class(provider)


def make(model: object, base_url: str | None = None, key_env: str | None = None) -> Made:
    """Make a model of its name; a model object stays as it is.

    Raises:
        AgentError: kinds ``bad_model`` and ``not_installed`` as :func:`check`; ``no_key``: the
            environment has no key for it.
    """
    check(model, base_url)
    from pydantic_ai.models import Model, infer_model

    if isinstance(model, Model):
        return Made(model, model_name_of(model), _tells_the_end(model))
    name = str(model)
    provider, _, rest = name.partition(":")
    if provider == "openai" and (base_url or os.environ.get("OPENAI_BASE_URL")):
        provider = "openai-chat"  # what servers other than OpenAI's own understand
    built = infer_model(f"{provider}:{rest}", lambda _: _provider(provider, base_url, key_env))
    return Made(built, name, _tells_the_end(built))


def _provider_class(provider: str) -> Any:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    try:
        return infer_provider_class(provider)
    except (ValueError, UserError):
        near, known = close_match(provider, providers()), ", ".join(providers())
        hint = f"did you mean {near!r}?" if near else f"choose one of: {known}"
        raise _bad_model(f"There is no model provider {provider!r}", hint) from None
    except ImportError as error:
        raise AgentError(
            f"The provider {provider} needs a package that is not installed",
            hint=" ".join(str(error).split())[:300],
            kind="not_installed",
        ) from None


def _provider(provider: str, base_url: str | None, key_env: str | None) -> Any:
    from pydantic_ai.exceptions import UserError

    kind = _provider_class(provider)
    known = inspect.signature(kind.__init__).parameters
    given: dict[str, str] = {}
    if provider == "ollama" and not base_url and not os.environ.get("OLLAMA_BASE_URL"):
        base_url = _OLLAMA_URL
    if base_url:
        given["base_url"] = base_url
    if key_env:
        given["api_key"] = os.environ.get(key_env) or _missing([key_env], provider)
    elif provider == "openai-chat" and not os.environ.get("OPENAI_API_KEY"):
        given["api_key"] = _NO_KEY
    for name in given:
        if name not in known:
            word = "base URL" if name == "base_url" else "key"
            raise _bad_model(f"The provider {provider} takes no {word} of ours")
    try:
        return kind(**given)
    except UserError as error:
        _missing(_VARIABLE.findall(str(error)), provider, str(error))


def _missing(variables: Iterable[str], provider: str, said: str = "") -> Any:
    """Raise the error for what must be set in the environment and is not."""
    names = list(variables)
    if not names:
        raise _bad_model(f"The provider {provider} is not set up: {scrubbed(said)}")
    raise AgentError(
        f"The provider {provider} needs {' or '.join(names)} in the environment",
        hint=f"set {names[0]} before Jupyter starts; keys are taken from the environment only",
        kind="no_key",
    )


def _tells_the_end(model: Model) -> bool:
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
    except ImportError:
        return False
    return isinstance(model, OpenAIChatModel)
