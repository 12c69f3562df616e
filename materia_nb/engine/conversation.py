"""Records of the conversation with agents: messages, tool calls, side events, handoffs and reasons for rework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.state import Draft, Handoff, Handoffs, Item, ItemId, PendingRoute, ReworkReason
from materia_nb.jsonvalue import JSON, FrozenDict, pretty, whole_floats_as_integers
from materia_nb.loadout.vocabulary import Result

if TYPE_CHECKING:
    from materia_nb.loadout.graph import Socket


_Role: TypeAlias = Literal["user", "assistant"]
ToolDecision: TypeAlias = Literal["once", "always", "denied"]
"""A person's decision about a tool call that needed approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call by an agent.

    Attributes:
        id: the id that the model assigned to the call; unique within the turn.
        tool: the name of the tool; a model may call a tool that does not exist.
        args: the arguments that the model passed.
        round: the number of the model's message that contains the call; messages are counted within the turn, starting
            at 1.
        said: the text of this message, stored only with the first call of the message.
        result: the result for the model, truncated to a maximum length, or None if the call has not run.
        ok: True if the call succeeded.
        seconds: the duration of the call, in seconds.
        decided: the person's decision about the call, or None if the call needed no approval.
    """

    id: str
    tool: str
    args: Mapping[str, JSON] = field(default_factory=dict)
    round: int = 1
    said: str = ""
    result: str | None = None
    ok: bool = True
    seconds: float = 0.0
    decided: ToolDecision | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return the call as a JSON object for the journal."""
        return {**asdict(self), "args": dict(self.args), "seconds": round(self.seconds, 6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MateriaEvent:
    """A side event: an entry in the ``event`` field of an output (R39).

    Attributes:
        sequence: the number of the side event in the cast, starting at 1; each lane continues the numbering separately.
        step: the number of the step.
        ts: the time at which the side event was recorded, in milliseconds since the epoch.
        severity: debug, info, warning, error or critical; the default is ``info``.
        refused: True if the output was refused for a reason unrelated to the side event (R53).
        lane: the lane of the output, or "" for the cast itself.
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
        """The type of the event, followed by a note if the output was refused."""
        return f"{self.type} (output refused)" if self.refused else self.type


def parse_call(fields: JSON) -> ToolCall | None:
    """Parse a tool call that :meth:`ToolCall.as_json` returned; return None for any other value."""
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
    """A message of a conversation: ``user`` for prompts and feedback, ``assistant`` for the answers of the agent.

    ``calls`` are the tool calls that the agent made before it wrote ``text``.
    """

    role: _Role
    text: str
    calls: tuple[ToolCall, ...] = ()


# -- reasons for rework ------------------------------------------------------------------------

_MAX_REASON_CHARS: Final = 900
MAX_REASONS_CHARS: Final = 2_400
MAX_REASONS: Final = 5
MAX_SCANNED_HANDOFFS: Final = 500
"""Maximum number of handoffs that are searched, newest first, so that steps stay fast in a long cast."""


def record_rework_reason(
    reasons: tuple[ReworkReason, ...], socket: Socket, target: str, item: Item | None, outcome: PendingRoute, step: int
) -> tuple[ReworkReason, ...]:
    """Record why ``socket`` sent work back; only the last five reasons are kept for each item and target."""
    entry = ReworkReason(
        socket.id,
        socket.materia.label,
        target,
        item.id if item else None,
        item.label if item else None,
        _rework_reason(outcome.context, outcome.text),
        step,
    )
    same_entries = [other for other in reasons if other.target == target and other.item == entry.item]
    dropped_entry = same_entries[0] if len(same_entries) >= MAX_REASONS else None
    return (*(other for other in reasons if other is not dropped_entry), entry)


def reasons_for(reasons: tuple[ReworkReason, ...], target: str, item: Item | None) -> list[ReworkReason]:
    """Return the reasons for rework to show to the socket ``target``, oldest first, up to 2,400 characters in total.

    The oldest of these reasons may be truncated.
    """
    matching = [
        entry
        for entry in reasons
        if entry.target == target and (entry.item is None or item is None or entry.item == item.id)
    ]
    chars_left = MAX_REASONS_CHARS
    chosen: list[ReworkReason] = []
    for entry in reversed(matching):
        if chars_left <= 0:
            break
        reason = truncate(entry.reason, chars_left)
        chosen.append(entry if reason == entry.reason else entry._replace(reason=reason))
        chars_left -= len(reason)
    return chosen[::-1]


def _rework_reason(context: str | None, output: str) -> str:
    line = " ".join(context.split()) if context else ""
    if line:
        return truncate(line, _MAX_REASON_CHARS)
    excerpt = " ".join(output.split())
    if not excerpt:
        return "(no context and no output were given)"
    return truncate(f"(no context was given; excerpt of the output) {excerpt}", _MAX_REASON_CHARS)


# -- handoffs ----------------------------------------------------------------------------------


def context_of(data: Mapping[str, JSON]) -> str:
    """Return the text of the handoffs in the state's ``context``; "" if ``context`` is blank or not a string (R10)."""
    context = data.get("context")
    return context if isinstance(context, str) and context.strip() else ""


def add_handoff(draft: Draft, socket: Socket, item: Item | None, result: Result, text: str) -> None:
    """Add a handoff to the records and to ``state.context`` (R10)."""
    item_id, key = (item.id, item.key) if item else (None, None)
    entry = Handoff(socket.id, socket.materia.label, item_id, key, draft.steps, result, text)
    before = context_of(draft.data)
    context = f"{before}\n\n{entry.line}" if before else entry.line
    draft.data = FrozenDict({**draft.data, "context": context})
    draft.handoffs = Handoffs((*handoff_records(draft.handoffs, before), entry), context)


def forget_refusals(draft: Draft, socket: str, item: ItemId | None) -> None:
    """Remove a socket's ``not_satisfied`` handoffs for an item that the socket has since accepted (R50).

    The socket's reasons for rework of the item are marked as settled. The text in ``state.context`` does not change.
    """
    forget_handoffs(draft, socket, item, Result.NO)
    draft.rework_reasons = tuple(
        follow_up._replace(settled=True) if (follow_up.source, follow_up.item) == (socket, item) else follow_up
        for follow_up in draft.rework_reasons
    )


def forget_handoffs(draft: Draft, socket: str, item: ItemId | None, *results: Result) -> None:
    """Remove a socket's handoffs about an item if their result is in ``results``.

    Only the newest 500 handoffs are searched.
    """
    entries = draft.handoffs.entries
    older, newer = entries[:-MAX_SCANNED_HANDOFFS], entries[-MAX_SCANNED_HANDOFFS:]
    # A list is three times as fast as a generator, and this runs for each item over many entries.
    remaining = [
        entry for entry in newer if entry.item != item or entry.socket != socket or entry.result not in results
    ]
    if len(remaining) < len(newer):
        draft.handoffs = draft.handoffs._replace(entries=(*older, *remaining))


def handoff_records(handoffs: Handoffs, context: str) -> tuple[Handoff, ...]:
    """Return the handoff records from which a context was generated.

    A context that was not generated from handoffs becomes one record without a source socket.
    """
    if context == handoffs.text:
        return handoffs.entries
    return (Handoff("", "as it was set", None, None, 0, Result.NOTHING, context),) if context else ()


PartName: TypeAlias = Literal[
    "request",
    "place",
    "state",
    "handoffs",
    "previous",
    "task",
    "item",
    "before",
    "reasons",
    "changed",
    "given",
    "draft",
    "repair",
    "resume",
    "finalize",
    "return",
]

HEADINGS: Final[Mapping[PartName, str]] = {
    "request": "Request",
    "place": "Where you are",
    "state": "State",
    "handoffs": "Handoffs",
    "previous": "Output just before",
    "task": "Your task",
    "item": "Work item",
    "before": "Your answer before",
    "reasons": "Why it came back",
    "changed": "Changed by a person",
    "given": "What you were given",
    "draft": "Working with a person",
    "repair": "What was wrong with the answer",
    "resume": "Going on",
    "finalize": "Handing over",
    "return": "What to return",
}
"""The heading of each prompt part, by the name of the part in edit commands."""

MAX_STRING_CHARS: Final = 2_000
MAX_STATE_CHARS: Final = 12_000
OUTPUT_HEAD, OUTPUT_TAIL, MAX_OUTPUT_CHARS = 5_000, 2_500, 8_000
NOTICE_CHARS: Final = 120
"""Number of characters reserved for a note about omitted entries."""


def shorten_middle(text: str, max_chars: int) -> str:
    """Shorten a string to at most ``max_chars`` characters by replacing its middle with a note about the omission."""
    if len(text) <= max_chars:
        return text
    notice = f"\n[… {len(text) - max_chars:,} or more characters omitted …]\n"
    kept_chars = max(max_chars - len(notice), 0)
    head_chars = kept_chars * 2 // 3
    tail_chars = kept_chars - head_chars
    return text[:head_chars] + notice + (text[-tail_chars:] if tail_chars else "")


def shorten_with_note(text: str, max_chars: int) -> tuple[str, str]:
    """Return a string, shortened in its middle if it is too long, and a note about the omitted characters.

    The note is empty if the text is complete. The text is empty if ``max_chars`` is too small for a shortened text.
    """
    if len(text) <= max_chars:
        return text, ""
    if max_chars < NOTICE_CHARS:
        return "", "no room"
    if max_chars >= MAX_OUTPUT_CHARS:
        omitted_count = len(text) - OUTPUT_HEAD - OUTPUT_TAIL
        omission_note = f"\n[… {omitted_count:,} characters omitted …]\n"
        return text[:OUTPUT_HEAD] + omission_note + text[
            -OUTPUT_TAIL:
        ], f"{omitted_count:,} of {len(text):,} characters omitted"
    return shorten_middle(text, max_chars), f"shortened to {max_chars:,} of {len(text):,} characters"


def state_json(data: Mapping[str, JSON], max_chars: int = MAX_STATE_CHARS) -> str:
    """Return the state as JSON with at most ``max_chars`` characters: shorten long strings first, then omit entries."""
    return _complete_json(data, "", max_chars) or _shortened_json(data, "", max_chars)


def _complete_json(value: JSON, indent: str, max_chars: int) -> str | None:
    """Return a value as JSON with long strings shortened, or None if the JSON is longer than ``max_chars`` characters."""
    if isinstance(value, str):
        text = encode_basestring(shorten_middle(value, MAX_STRING_CHARS))
    elif not isinstance(value, (dict, list)) or not value:
        text = pretty(whole_floats_as_integers(value))
    else:
        inner, lines, remaining = f"{indent}  ", [], max_chars - 2 * len(indent) - 4
        if len(value) * (len(inner) + 3) > remaining:  # each member takes a line
            return None
        for label, child in _members(value):
            child_text = _complete_json(child, inner, remaining - len(label) - 2)
            if child_text is None:
                return None
            lines.append(label + child_text)
            remaining -= len(inner) + len(label) + len(child_text) + 2
        text = _with_brackets(value, lines, indent)
    return text if len(text) <= max_chars else None


def _shortened_json(value: JSON, indent: str, max_chars: int) -> str:
    """Return a value as JSON of at most ``max_chars`` characters, shortened with a note; "" if not even the note fits."""
    if isinstance(value, str):
        return _short_string(value, max_chars)
    if not isinstance(value, (dict, list)):
        return ""
    inner, lines = f"{indent}  ", list[str]()
    remaining = max_chars - 2 * len(indent) - NOTICE_CHARS
    for label, child in _members(value):
        space = remaining - len(inner) - len(label) - 2
        text = _complete_json(child, inner, space)
        if text is None:
            text = _shortened_json(child, inner, space) if space >= NOTICE_CHARS else ""
            lines += [label + text] if text else []
            break
        lines.append(label + text)
        remaining = space - len(text)
    omitted_count = len(value) - len(lines)
    if omitted_count:
        notice = f"{omitted_count} of {len(value)} entries omitted"
        lines.append(f'"…": "{notice}"' if isinstance(value, dict) else f'"… {notice}"')
    text = _with_brackets(value, lines, indent)
    return text if len(text) <= max_chars else ""


def _members(value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield each member of an object or list, preceded by the JSON text of its key."""
    if isinstance(value, dict):
        yield from ((f"{encode_basestring(key)}: ", child) for key, child in value.items())
    else:
        yield from (("", child) for child in value)


def _with_brackets(value: JSON, lines: list[str], indent: str) -> str:
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{indent}  " + f",\n{indent}  ".join(lines) + f"\n{indent}{end}"


def _short_string(text: str, max_chars: int) -> str:
    """Return a string as JSON of at most ``max_chars`` characters, shortened in its middle; "" if it does not fit."""
    text_chars = min(max_chars - 2, MAX_STRING_CHARS)
    while text_chars >= NOTICE_CHARS:
        encoded = encode_basestring(shorten_middle(text, text_chars))
        if len(encoded) <= max_chars:
            return encoded
        text_chars //= 2
    return ""


def estimate_tokens(characters: int) -> int:
    """Return the estimated number of tokens in a string: one for every four characters, rounded up."""
    return -(-characters // 4)


class PromptPart(NamedTuple):
    """One part of a prompt.

    Attributes:
        name: the name of the part.
        text: the text below the heading, or "" if the part is omitted.
        note: the reason why the part is omitted or shortened, or "" if the part is complete.
        quotes: True if the part quotes text from outside the loadout, apart from the request and the work item.
        values: the values that the part contains, such as ``("state", "plan")`` or ``("handoff", "3")``.
    """

    name: PartName
    text: str
    note: str = ""
    quotes: bool = False
    values: tuple[tuple[str, str], ...] = ()

    @property
    def heading(self) -> str:
        """Heading of the part in the prompt."""
        return HEADINGS[self.name]


def truncate(text: str, max_chars: int) -> str:
    """Truncate ``text`` to at most ``max_chars`` characters, ending with an ellipsis if it was truncated."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
