"""An agent that is a Python function, or a person who answers in a later cell."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from materia_nb.agents.background import can_leave, leavable, run_awaitable
from materia_nb.agents.interface import AgentError, Reply, Telling, Turn, place, reply_from
from materia_nb.errors import MateriaError
from materia_nb.interrupts import Stop


@dataclass(frozen=True, slots=True)
class PersonAgent:
    """Leaves every turn to the person at the notebook."""

    name: str = "person"

    def answer(self, turn: Turn) -> Reply | None:  # noqa: ARG002 - the protocol's signature
        """Return None: the cast stops here and shows the prompt."""
        return None


_FIELDS: Final = frozenset(field.name for field in dataclasses.fields(Turn))
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionAgent:
    """Calls a function for each turn; a coroutine function runs on a loop of its own thread.

    The function gets what its parameters ask for: ``turn`` is the whole turn, any other name is
    that field of it (``prompt``, ``conversation``, ``visit``, ``request``, ...). A single parameter
    of another name gets the turn, parameters with a default keep it, and a function without
    parameters gets nothing. It returns text, a dict (sent as JSON) or a :class:`Reply`.

    Args:
        function: what to call.
        name: what the agent is called where it is shown; the function's name if not given.

    Raises:
        AgentError: the function asks for something that a turn does not have.
    """

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        self.function = function
        self.name = name or _name(function)
        self._asks = _asks(function, self.name)

    def answer(self, turn: Turn) -> Reply:
        """Call the function.

        Raises:
            AgentError: it raised something (its ``__cause__``) or returned something else, or it was left behind
                (kind ``interrupted``).
            KeyboardInterrupt: it was interrupted.
        """
        if not isinstance(turn.stop, Stop) or not can_leave(turn.stop):
            return self._answer(turn)
        gone = False

        def tell(telling: Telling) -> None:
            if not gone:
                turn.tell(telling)

        try:
            return leavable(lambda: self._answer(dataclasses.replace(turn, tell=tell)), turn.stop)
        finally:
            gone = True  # a function that was left behind may tell more later

    def _answer(self, turn: Turn) -> Reply:
        try:
            if self._asks is None:
                value = self.function(turn)
            else:
                asked = {name: turn if name == "turn" else getattr(turn, name) for name in self._asks}
                value = self.function(**asked)
            if inspect.isawaitable(value):
                value = run_awaitable(value, turn.stop)
        except MateriaError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise AgentError(
                f"Function {self.name} failed for {turn.socket_id} with {text}",
                where=_where(self.function, error),
                hint="put it right, then resend the turn or recast; traceback shows how it came there",
            ) from error
        return reply_from(value, f"Function {self.name}")

    def __repr__(self) -> str:
        return f"FunctionAgent({self.name})"


def _asks(function: Callable[..., Any], name: str) -> tuple[str, ...] | None:
    """Find out what of a turn the function asks for by name; None for the whole turn, by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C that does not tell
        return None
    asked = [
        p for p in parameters if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
    ]
    unknown = [p for p in asked if p.kind not in _NAMED or (p.name != "turn" and p.name not in _FIELDS)]
    if (
        len(asked) == 1
        and (unknown or asked[0].name == "turn")
        and asked[0].kind is not asked[0].KEYWORD_ONLY
    ):
        return None
    if unknown:
        raise AgentError(
            f"Function {name} asks for {', '.join(p.name for p in unknown)}, which a turn does not have",
            where=_where(function),
            hint=f"ask for turn, or for fields of it: {', '.join(sorted(_FIELDS))}",
        )
    return tuple(p.name for p in asked)


def _name(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _where(function: Callable[..., Any], error: BaseException | None = None) -> str | None:
    """Say the file and the line: where the error left the function's file last, else where it is defined."""
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
    return place(code.co_filename, line)
