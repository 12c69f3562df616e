"""The agent that is a function of the notebook, sync or async, and agents whose answer is a coroutine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from materia_nb.agents.background import CALLERS, LoopInbox, can_abandon, run_abandonable
from materia_nb.agents.interface import (
    TURN_FIELDS,
    Agent,
    AgentError,
    Reply,
    Telling,
    Turn,
    code_location,
    reply_from,
    turn_has,
)
from materia_nb.errors import MateriaError, named_error
from materia_nb.platform import Stop

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionAgent:
    """Calls a function for each turn; a coroutine runs on the loop that awaits the cast, or else in a separate thread.

    The function gets what its parameters ask for: ``turn`` is the whole turn, any other name is
    that field of it (``item``, ``state``, ``last``, ``request``, ``prompt``, ...). A single parameter
    of another name gets the turn, parameters with a default keep it, and a function without
    parameters gets nothing. It returns text, a dict (sent as JSON) or a :class:`Reply`.

    Args:
        function: the function to call.
        name: the display name of the agent; the function's name if not given.
        thinking: False if the function never returns the thinking of a model, so that its text is used unchanged (R68).

    Raises:
        AgentError: the function asks for something that a turn does not have.
    """

    def __init__(
        self,
        function: Any,
        *,
        name: str | None = None,
        thinking: bool = True,
    ) -> None:
        if not callable(function):
            raise AgentError(f"A {type(function).__name__} is not a function.", hint="pass a function")
        self.function, self.thinking = function, thinking
        self.name = name or _name(function)
        self._asks = _asks(function, self.name)
        self._awaited = inspect.iscoroutinefunction(function)

    def answer(self, turn: Turn) -> Reply:
        """Call the function.

        Raises:
            AgentError: the function raised an error (the ``__cause__``), returned an unusable value, or was abandoned
                (kind ``interrupted``).
            KeyboardInterrupt: the function was interrupted.
        """
        if self._awaited:  # the coroutine is cancelled when the cast must stop
            inbox = LoopInbox(turn.tell)
            return self._answer(turn.telling_to(inbox.tell), inbox)
        if not isinstance(turn.stop, Stop) or not can_abandon(turn.stop):
            return self._answer(turn)
        abandoned = False

        def tell(telling: Telling) -> None:
            if not abandoned:
                turn.tell(telling)

        try:
            return run_abandonable(lambda: self._answer(turn.telling_to(tell)), turn.stop)
        finally:
            abandoned = True  # an abandoned function may report more events later

    def _answer(self, turn: Turn, inbox: LoopInbox[Telling] | None = None) -> Reply:
        try:
            if self._asks is None:
                value = self.function(turn)
            else:
                arguments = {name: turn if name == "turn" else getattr(turn, name) for name in self._asks}
                value = self.function(**arguments)
            if not isinstance(value, str) and inspect.isawaitable(value):
                value = CALLERS.get().run(value, turn.stop, inbox)
        except MateriaError:
            raise
        except Exception as error:
            raise AgentError(
                f"Function {self.name} failed for {turn.socket_id} with {named_error(error)}",
                where=_where(self.function, error),
                hint="fix the function, then retry --turn or retry; why --traceback shows the traceback",
            ) from error
        return reply_from(value, f"Function {self.name}")

    def __repr__(self) -> str:
        return f"FunctionAgent({self.name})"


class AwaitedAgent:
    """Runs an agent whose ``answer`` is a coroutine, and forwards all other attributes to the agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # such as what pickle looks for before there is an agent
            raise AttributeError(name)
        return getattr(self._agent, name)

    def answer(self, turn: Turn) -> Any:
        """Return the awaited answer, and pass on the agent's events in this thread meanwhile."""
        inbox = LoopInbox(turn.tell)
        answer: Any = self._agent.answer(turn.telling_to(inbox.tell))
        return CALLERS.get().run(answer, turn.stop, inbox)

    def __repr__(self) -> str:
        return repr(self._agent)


def _asks(function: Callable[..., Any], name: str) -> tuple[str, ...] | None:
    """Return the turn fields that the function's parameters name, or None if it takes the whole turn."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C without a readable signature
        return None
    required = [p for p in parameters if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}]
    unknown = [p for p in required if p.kind not in _NAMED or (p.name != "turn" and p.name not in TURN_FIELDS)]
    if (
        len(required) == 1
        and (unknown or required[0].name == "turn")
        and required[0].kind is not required[0].KEYWORD_ONLY
    ):
        return None
    if unknown:
        raise AgentError(
            f"Function {name} asks for {', '.join(p.name for p in unknown)}, which a turn does not have",
            where=_where(function),
            hint=f"name a parameter turn, or after a field of the turn; {turn_has(*(p.name for p in unknown))}",
        )
    return tuple(p.name for p in required)


def _name(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _where(function: Callable[..., Any], error: BaseException | None = None) -> str | None:
    """Return the file and line in the function's file where the error last passed, or the function's definition."""
    inner = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(inner) and not inspect.isclass(inner):
        inner = type(inner).__call__  # an object that can be called
    code = getattr(inner, "__code__", None)
    if code is None:
        return None
    line = code.co_firstlineno
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return code_location(code.co_filename, line)
