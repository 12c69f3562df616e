"""Messages of a visit, tool calls of an agent, and side events of an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from materia_nb.jsonvalue import JSON

_Role: TypeAlias = Literal["user", "assistant"]
Decided: TypeAlias = Literal["once", "always", "denied"]
"""Decision of a person about a tool call that asked for approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One use of a tool in a turn.

    Attributes:
        id: what the model called it; unique within the turn.
        tool: the tool's name, which need not exist: a model may ask for anything.
        args: its arguments, as the model gave them.
        round: which answer of the model in this turn asked for it, from 1; an answer can ask for several.
        said: what the model said beside its calls in that answer; kept with the first of them.
        result: what the model was told, bounded; None while it has not run.
        ok: whether it did what was asked.
        seconds: how long it took.
        decided: what the person said, when it had to be asked for; None when it had not.
    """

    id: str
    tool: str
    args: Mapping[str, JSON] = field(default_factory=dict)
    round: int = 1
    said: str = ""
    result: str | None = None
    ok: bool = True
    seconds: float = 0.0
    decided: Decided | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return it as the journal keeps it."""
        return {
            "id": self.id,
            "tool": self.tool,
            "args": dict(self.args),
            "round": self.round,
            "said": self.said,
            "result": self.result,
            "ok": self.ok,
            "seconds": round(self.seconds, 6),
            "decided": self.decided,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MateriaEvent:
    """Side event of an output, from its ``event`` field (R39).

    Attributes:
        sequence: its number in the cast, from 1; in lanes that were at work side by side, in each from there.
        step: the number of its step.
        ts: when it was kept, in milliseconds since the epoch.
        severity: debug, info, warning, error or critical; ``info`` when the output did not say.
        refused: whether the output was refused, for another reason (R53).
        lane: the lane whose output told it, "" for the cast itself.
    """

    sequence: int
    step: int
    socket: str
    visit: int
    item_key: str | None
    item_label: str | None
    ts: int
    type: str
    severity: str = "info"
    message: str = ""
    source: str = ""
    payload: JSON = None
    refused: bool = False
    lane: str = ""

    @property
    def name(self) -> str:
        """Its type, and whether it is of a refused output, in words."""
        return f"{self.type} (output refused)" if self.refused else self.type


def call_from(fields: JSON) -> ToolCall | None:
    """Read a call as :meth:`ToolCall.as_json` wrote it; None when it is nothing of the kind."""
    if not isinstance(fields, dict):
        return None
    name, tool, args = fields.get("id"), fields.get("tool"), fields.get("args")
    if not isinstance(name, str) or not isinstance(tool, str):
        return None
    number, result_text, result, seconds = (fields.get(key) for key in ("round", "said", "result", "seconds"))
    decided = fields.get("decided")
    return ToolCall(
        id=name,
        tool=tool,
        args=args if isinstance(args, dict) else {},
        round=number if isinstance(number, int) else 1,
        said=result_text if isinstance(result_text, str) else "",
        result=result if isinstance(result, str) else None,
        ok=fields.get("ok") is not False,
        seconds=float(seconds) if isinstance(seconds, (int, float)) else 0.0,
        decided=decided if decided in ("once", "always", "denied") else None,
    )


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in a visit, by the user's side (prompts, feedback) or by the agent.

    ``calls`` are the tool calls that an agent made before it said ``text``.
    """

    role: _Role
    text: str
    calls: tuple[ToolCall, ...] = ()
