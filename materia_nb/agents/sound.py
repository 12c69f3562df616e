"""What other people's agents give and raise, brought into a form that a cast can keep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from materia_nb.agents.base import Agent, AgentError, reply_from
from materia_nb.agents.places import place
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON


class SoundReply(NamedTuple):
    """A reply whose parts have been looked at: text, tokens as whole numbers, and meta that is JSON."""

    text: str
    usage: Usage | None
    meta: Mapping[str, JSON]


def sound(value: object, who: str) -> SoundReply:
    """Check what an agent gave; text and objects are taken as replies, see :func:`reply_from`.

    Raises:
        AgentError: it is no reply, or has parts that cannot be kept.
    """
    reply = reply_from(value, who)
    if not isinstance(reply.text, str):
        raise AgentError(f"{who} returned a reply whose text is a {type(reply.text).__name__}")
    usage = None if reply.usage is None else sound_usage(reply.usage, who)
    if not reply.meta:
        return SoundReply(reply.text, usage, {})
    try:
        meta = dict(reply.meta)
        json.dumps(meta, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"{who} returned a reply whose meta is not JSON: {error}") from error
    return SoundReply(reply.text, usage, meta)


def sound_usage(given: Any, who: str) -> Usage:
    """Take tokens and cost as an agent gave them.

    Raises:
        AgentError: they are no numbers, or cannot be.
    """
    try:
        numbers = int(given.input), int(given.output), float(given.cost or 0.0)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise AgentError(f"{who} returned a usage that is not numbers: {given!r}") from error
    if min(numbers) < 0 or not math.isfinite(numbers[2]):
        raise AgentError(f"{who} returned a usage that cannot be: {given!r}")
    return Usage(*numbers)


def agent_failure(agent: Agent, socket: str, error: Exception) -> tuple[str, str, str]:
    """Say what an exception of an agent means for the cast: kind, message, hint."""
    hint = "put it right, then resend the turn, or recast the visit"
    if isinstance(error, MateriaError):
        kind = error.kind if isinstance(error, AgentError) else "agent_error"
        where = f" ({error.where})" if error.where and error.where != socket else ""
        return kind, f"{error.what}{where}", error.hint or hint
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    name = getattr(agent, "name", type(agent).__name__)
    return "agent_error", f"The agent {name} failed for {socket} with {told}{_where(error)}", hint


def _where(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({place(trace.tb_frame.f_code.co_filename, trace.tb_lineno)})" if trace is not None else ""
