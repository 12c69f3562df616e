"""Messages of a visit, tool calls of an agent, side events of an output, and the labels that people give to casts and steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.errors import MateriaError, did_you_mean
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


LabelKey: TypeAlias = tuple[int, int]
"""What a label belongs to: the branch and the number of a step, since numbers come anew after going back."""

WHOLE_CAST: Final[LabelKey] = (0, 0)
"""The key of what is said of the cast itself."""
VERDICTS: Final = ("good", "bad", "unsure")
_MOST_TAGS: Final = 20
_NOTE_CHARS: Final = 10_000
_LISTED_NOTE_CHARS: Final = 200  # every later line of the journal repeats it, for the list of casts

# A letter first: the ids of casts begin with a digit, so a name is never the beginning of one.
_NAME: Final = re.compile(r"[^\W\d_][\w .-]{0,63}")
_TAG: Final = re.compile(r"\w[\w.:+-]{0,39}")
_TAKEN: Final = frozenset({"latest", "end"})


class Label(NamedTuple):
    """What is said of one cast or step; empty where nothing is said."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    by: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.name or self.tags or self.note or self.verdict)

    @property
    def words(self) -> str:
        """All of it in a line."""
        parts = [
            self.name and f"named {self.name}",
            self.verdict and f"judged {self.verdict}",
            self.tags and f"tagged {', '.join(self.tags)}",
            self.note and f"note: {' '.join(self.note.split())}",
        ]
        text = "; ".join(str(part) for part in parts if part)
        return f"{text} (by {self.by})" if self.by not in ("", "person") else text

    def listed(self) -> dict[str, JSON]:
        """Return what the list of casts tells of it."""
        note = self.note[:_LISTED_NOTE_CHARS]
        fields: dict[str, JSON] = {
            "name": self.name,
            "tags": list(self.tags),
            "verdict": self.verdict,
            "note": note,
        }
        return {key: value for key, value in fields.items() if value}


def as_listed(listed: object) -> Label:
    """Read what :meth:`Label.listed` gave; what is not as it should be counts as not said."""
    fields: Mapping[str, JSON] = listed if isinstance(listed, dict) else {}
    texts = {key: value for key in ("name", "note", "verdict") if isinstance(value := fields.get(key), str)}
    tags = fields.get("tags")
    return Label(**texts, tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ())


def relabelled(
    before: Label,
    *,
    name: str | None,
    tag: str | Iterable[str],
    untag: str | Iterable[str],
    note: str | None,
    verdict: str | None,
    by: str,
) -> Label:
    """Return a label with some of it changed: None stays as it is, "" is taken away.

    Raises:
        MateriaError: a name, tag, note or verdict that cannot be one (``bad_label``).
    """
    tags = [tag_ for tag_ in before.tags if tag_ not in set(_several(untag))]
    tags += [tag_ for tag_ in _several(tag) if tag_ not in tags]
    new_label = Label(
        before.name if name is None else name.strip(),
        tuple(tags),
        before.note if note is None else note.strip(),
        before.verdict if verdict is None else verdict.strip(),
        by.strip() or "person",
    )
    _check(new_label)
    return new_label


def _several(tags: str | Iterable[str]) -> list[str]:
    """Tags may stand in one text, with commas or spaces between them."""
    if isinstance(tags, str):
        return [part for part in re.split(r"[,\s]+", tags) if part]
    return [str(tag).strip() for tag in tags]


def _check(label: Label) -> None:
    if label.name and (not _NAME.fullmatch(label.name) or label.name in _TAKEN):
        raise _bad(
            f"{label.name[:80]!r} cannot be a name.",
            "a letter, then letters, digits, spaces, dots, dashes or underscores, at most 64",
        )
    for tag in label.tags:
        if not _TAG.fullmatch(tag):
            raise _bad(
                f"{tag[:80]!r} cannot be a tag.",
                "one word of letters, digits and . : + - _, at most 40 characters",
            )
    if len(label.tags) > _MOST_TAGS:
        raise _bad(f"There are {len(label.tags)} tags, and {_MOST_TAGS} are the most.", "take some away: untag")
    if len(label.note) > _NOTE_CHARS:
        raise _bad(f"The note has {len(label.note):,} characters, and {_NOTE_CHARS:,} are the most.", "say less")
    if label.verdict and label.verdict not in VERDICTS:
        raise _bad(f"{label.verdict[:80]!r} is not a verdict.", did_you_mean(label.verdict, VERDICTS))


def _bad(message: str, hint: str) -> MateriaError:
    return MateriaError(message, hint=hint, kind="bad_label")
