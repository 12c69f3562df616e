"""The agent that is a language model."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from materia_nb.agents.interface import TIMEOUT_S, AgentError, Asking, Reply, Turn
from materia_nb.errors import holds_key
from materia_nb.loadout.graph import PROMPT_FORMS, PromptForm
from materia_nb.platform import HeldInterrupts

if TYPE_CHECKING:
    from materia_nb.agents.model.providers import Made


_ATTEMPTS: Final = 4
_FIRST_PAUSE_S: Final = 1.0
_MOST_ROUNDS: Final = 50


def known_price(model: str, tokens_in: int, tokens_out: int) -> float | None:
    """Return what a request of a model, ``provider:model``, costs in dollars; None where no price is known (R56). Nobody is asked."""
    if find_spec("pydantic_ai") is None:
        return None
    with HeldInterrupts():
        from materia_nb.agents.model.requests import price_of

    return price_of(model, tokens_in, tokens_out)


class ModelAgent:
    """Asks a language model, streams what it says, and lets it use the tools of the materia.

    Keys come from the environment, and are never kept, shown or written.

    Args:
        model: ``provider:model``, any that pydantic-ai knows, or a model object of pydantic-ai. None
            takes the model that each materia asks for.
        base_url: where the provider's API is, when not at its own place: a local server, or any other
            that speaks the same protocol. ``openai:`` then means chat completions.
        key_env: the environment variable that holds the key; the provider's own if not given.
        settings: what else the model is told, in pydantic-ai's words: ``temperature``, ``max_tokens``, ...
        tools: whether the model can use tools; one that cannot is asked without those of the materia, which
            is told.
        timeout_s: seconds that one answer of the model may take, with everything that is tried again.
        attempts: how often a request is tried at most.
        first_pause_s: seconds before the first new try, about twice as many before each further one;
            a provider that says how long to wait is obeyed.
        prompt_form: how its prompts are written, ``md`` or ``plain``, where a socket does not say it (R50); as the
            ``prompt_form`` of a model object's profile has it if not given.
        name: what the agent is called where it is shown; the model if not given.

    Attributes:
        most_rounds: how often the model may answer with tool calls before a turn is given up; when it is
            sent again the count begins anew.

    Raises:
        AgentError: kind ``not_installed``: pydantic-ai, or what the provider needs, is missing; kind
            ``bad_model``: there is no such provider, or the name is none; kind ``bad_settings``: there is no such
            ``prompt_form``.
    """

    def __init__(  # noqa: PLR0913 - what there is to set, by name
        self,
        model: object = None,
        *,
        base_url: str | None = None,
        key_env: str | None = None,
        settings: Mapping[str, Any] | None = None,
        tools: bool = True,
        timeout_s: float = TIMEOUT_S,
        attempts: int = _ATTEMPTS,
        first_pause_s: float = _FIRST_PAUSE_S,
        prompt_form: str | None = None,
        name: str | None = None,
    ) -> None:
        with HeldInterrupts():
            from materia_nb.agents.model.providers import check, model_name_of

            name_of_it = "model" if model is None else model_name_of(model)
            if model is not None:
                check(model, base_url)
        if key_env:
            holds_key(key_env)
        form = prompt_form or (getattr(model, "profile", None) or {}).get("prompt_form")
        if form is not None and form not in PROMPT_FORMS:
            raise AgentError(
                f"{form!r:.40} is no form of a prompt",
                hint=f"one of {', '.join(PROMPT_FORMS)}",
                kind="bad_settings",
            )
        self.model = model
        self.prompt_form: PromptForm | None = form
        self.base_url = base_url
        self.key_env = key_env
        self.settings = dict(settings or {})
        self.tools = tools
        self.timeout_s = timeout_s
        self.attempts = attempts
        self.first_pause_s = first_pause_s
        self.most_rounds = _MOST_ROUNDS
        self._made: dict[str, Made] = {}
        self.name = name or name_of_it

    def __getstate__(self) -> dict[str, Any]:
        """What tells it from others, without the connections that it has made."""
        return {**vars(self), "_made": {}}

    def answer(self, turn: Turn) -> Reply | Asking:
        """Ask the model until it says something without using a tool, or a tool call needs leave.

        Raises:
            AgentError: kinds ``no_model``, ``no_key``, ``bad_key``, ``denied``, ``bad_model``, ``bad_request``,
                ``rate_limited``, ``refused``, ``context_too_long``, ``malformed``, ``transport``,
                ``agent_timeout``, ``agent_reply_too_long``, ``too_many_calls``, ``interrupted``, ``not_installed``.
            KeyboardInterrupt: interrupted; the request was given up, a command that ran has ended.
        """
        with HeldInterrupts():  # a package whose import was cut short stays broken in this kernel
            from materia_nb.agents.model.model_turn import Talk

            made = self._model_of(turn)
        try:
            return Talk(self, made, turn).answer()
        except AgentError as error:
            if error.kind in ("bad_key", "denied"):
                self._made.clear()  # the next try reads the environment again
            raise

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:  # noqa: ARG002 - it runs nothing there
        """Return why no model could be asked: none is named, a key is not set, a package is missing; else None."""
        wanted = self.model if self.model is not None else model
        if not wanted:
            return _no_model("The materia")
        try:
            with HeldInterrupts():
                from materia_nb.agents.model.providers import make

                make(wanted, self.base_url, self.key_env)
        except AgentError as error:
            return error
        return None

    def price_names(self, model: str | None) -> tuple[str, ...]:
        """Return by what a config may have its price: its name, and the model that answers."""
        wanted = self.model if self.model is not None else model
        return (self.name, wanted) if isinstance(wanted, str) else (self.name,)

    def price(self, model: str | None, tokens_in: int, tokens_out: int) -> float | None:
        """Return what a request of a materia that asks for ``model`` would cost, in dollars; None where no price is known (R56).

        None is known of a server of one's own (``base_url``), or of a model that is not named ``provider:model``.
        """
        wanted = self.model if self.model is not None else model
        named = isinstance(wanted, str) and not self.base_url
        return known_price(str(wanted), tokens_in, tokens_out) if named else None

    def _model_of(self, turn: Turn) -> Made:
        from materia_nb.agents.model.providers import make, model_name_of

        wanted = self.model if self.model is not None else turn.model
        if not wanted:
            raise _no_model(f"The materia {turn.materia_id}", turn.socket_id)
        name = model_name_of(wanted)
        if name not in self._made:
            self._made[name] = make(wanted, self.base_url, self.key_env)
        return self._made[name]

    def __repr__(self) -> str:
        where = f", base_url={_shown_url(self.base_url)!r}" if self.base_url else ""
        return f"ModelAgent({self.name!r}{where})"


def _no_model(who: str, where: str | None = None) -> AgentError:
    return AgentError(
        f"{who} names no model, and the agent has none of its own",
        where=where,
        hint="give the materia a model, or the agent: provider:model, as in openai:gpt-5",
        kind="no_model",
    )


def _shown_url(url: str) -> str:
    """Return a URL without what may be secret in it: user, password, query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(no URL)"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"
