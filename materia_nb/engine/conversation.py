"""Messages, tool calls, side events and handoffs of a cast, and the reasons for rework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.items import lies_in
from materia_nb.engine.state import Answered, Draft, FollowUp, Handoff, Handoffs, Item, ItemId, Unrouted
from materia_nb.jsonvalue import JSON, FrozenDict, pretty, whole_floats_as_integers
from materia_nb.loadout.vocabulary import WITHOUT_OUTPUT, Result

if TYPE_CHECKING:
    from materia_nb.loadout.graph import Socket


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
        return {**asdict(self), "args": dict(self.args), "seconds": round(self.seconds, 6)}


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


# -- why work is sent back ------------------------------------------------------------------------

_REASON_CHARS: Final = 900
RENDERED_CHARS: Final = 2_400
KEPT: Final = 5
SCANNED: Final = 500
"""Maximum number of handoffs that are searched, newest first; it bounds the cost of a step in a long cast."""


def capture(
    follow_ups: tuple[FollowUp, ...],
    socket: Socket,
    target: str,
    item: Item | None,
    unrouted: Unrouted,
    step: int,
) -> tuple[FollowUp, ...]:
    """Add why ``socket`` was not satisfied; only the last five per item and target stay."""
    entry = FollowUp(
        socket.id,
        socket.materia.label,
        target,
        item.id if item else None,
        item.label if item else None,
        _reason(unrouted.context, unrouted.text),
        step,
    )
    same = [old for old in follow_ups if old.target == target and old.item == entry.item]
    dropped = same[0] if len(same) >= KEPT else None
    return (*(old for old in follow_ups if old is not dropped), entry)


def without_entries_of(follow_ups: tuple[FollowUp, ...], done: ItemId) -> tuple[FollowUp, ...]:
    """Drop the entries of an item that has advanced, and of those within it."""
    return tuple(entry for entry in follow_ups if not lies_in(entry.item, done))


def without_target(follow_ups: tuple[FollowUp, ...], target: str) -> tuple[FollowUp, ...]:
    """Drop the item-less entries for ``target``, which has dealt with them."""
    return tuple(entry for entry in follow_ups if entry.item is not None or entry.target != target)


def shown_to(follow_ups: tuple[FollowUp, ...], target: str, item: Item | None) -> list[FollowUp]:
    """Choose what ``target`` is told, oldest first, within 2,400 characters of reasons.

    The newest reasons are kept whole; the oldest one that is shown may be cut short.
    """
    matching = [
        entry
        for entry in follow_ups
        if entry.target == target and (entry.item is None or item is None or entry.item == item.id)
    ]
    room = RENDERED_CHARS
    chosen: list[FollowUp] = []
    for entry in reversed(matching):
        if room <= 0:
            break
        reason = cut_to(entry.reason, room)
        chosen.append(entry if reason == entry.reason else entry._replace(reason=reason))
        room -= len(reason)
    return chosen[::-1]


def _reason(context: str | None, output: str) -> str:
    line = " ".join(context.split()) if context else ""
    if line:
        return cut_to(line, _REASON_CHARS)
    excerpt = " ".join(output.split())
    if not excerpt:
        return "(no context and no output were given)"
    return cut_to(f"(no context was given; excerpt of the output) {excerpt}", _REASON_CHARS)


# -- handoffs ----------------------------------------------------------------------------------


def context_of(data: Mapping[str, JSON]) -> str:
    """Return the handoffs in the state as one text; empty if there are none (R10)."""
    context = data.get("context")
    return context if isinstance(context, str) and context.strip() else ""


def hand_over(draft: Draft, socket: Socket, item: Item | None, result: Result, text: str) -> None:
    """Add a handoff to the records and to ``state.context`` (R10)."""
    item_id, key = (item.id, item.key) if item else (None, None)
    entry = Handoff(socket.id, socket.materia.label, item_id, key, draft.steps, result, text)
    before = context_of(draft.data)
    context = f"{before}\n\n{entry.line}" if before else entry.line
    draft.data = FrozenDict({**draft.data, "context": context})
    draft.handoffs = Handoffs((*records(draft.handoffs, before), entry), context)


def forget_refusals(draft: Draft, socket: str, item: ItemId | None) -> None:
    """Remove a socket's refusals of an item that it has since accepted (R50); ``state.context`` keeps the text."""
    _forget(draft, socket, item, Result.NO)
    draft.follow_up = tuple(
        follow_up._replace(settled=True) if (follow_up.source, follow_up.item) == (socket, item) else follow_up
        for follow_up in draft.follow_up
    )


def forget_failures(draft: Draft, socket: str, item: ItemId | None) -> None:
    """Forget why earlier visits of a socket to an item failed, now that one gave an output (R60)."""
    _forget(draft, socket, item, *WITHOUT_OUTPUT)


def _forget(draft: Draft, socket: str, item: ItemId | None, *results: Result) -> None:
    entries = draft.handoffs.entries
    older, newer = entries[:-SCANNED], entries[-SCANNED:]
    # A list, since this runs for each item over many entries, and a generator takes three times as long.
    remaining = [
        entry for entry in newer if entry.item != item or entry.socket != socket or entry.result not in results
    ]
    if len(remaining) < len(newer):
        draft.handoffs = draft.handoffs._replace(entries=(*older, *remaining))


def records(handoffs: Handoffs, context: str) -> tuple[Handoff, ...]:
    """Return the records of a context; a context that was set by other means is one record of unknown origin."""
    if context == handoffs.text:
        return handoffs.entries
    return (Handoff("", "as it was set", None, None, 0, Result.NOTHING, context),) if context else ()


def without_answers_of(
    answers: Mapping[tuple[str, ItemId | None], Answered], done: ItemId
) -> Mapping[tuple[str, ItemId | None], Answered]:
    """Drop the answers that were given for an item that has advanced, and for those within it."""
    if not any(lies_in(item, done) for _, item in answers):
        return answers
    return FrozenDict({key: answer for key, answer in answers.items() if not lies_in(key[1], done)})


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
"""Heading of each part, by the name with which a person edits the part."""

STRING_CHARS: Final = 2_000
STATE_CHARS: Final = 12_000
OUTPUT_HEAD, OUTPUT_TAIL, OUTPUT_CHARS = 5_000, 2_500, 8_000
NOTICE_CHARS: Final = 120
"""Room in which it can be said that entries are left out."""


def middle(text: str, max_chars: int) -> str:
    """Cut a text in its middle to ``most`` characters, saying how many are left out."""
    if len(text) <= max_chars:
        return text
    notice = f"\n[… {len(text) - max_chars:,} or more characters omitted …]\n"
    room = max(max_chars - len(notice), 0)
    head = room * 2 // 3
    tail = room - head
    return text[:head] + notice + (text[-tail:] if tail else "")


def bounded(text: str, max_chars: int) -> tuple[str, str]:
    """Return a text shortened to its beginning and end if it is too long, and a note about the cut."""
    if len(text) <= max_chars:
        return text, ""
    if max_chars < NOTICE_CHARS:
        return "", "no room"
    if max_chars >= OUTPUT_CHARS:
        left = len(text) - OUTPUT_HEAD - OUTPUT_TAIL
        cut_out = f"\n[… {left:,} characters omitted …]\n"
        return text[:OUTPUT_HEAD] + cut_out + text[-OUTPUT_TAIL:], f"{left:,} of {len(text):,} characters omitted"
    return middle(text, max_chars), f"shortened to {max_chars:,} of {len(text):,} characters"


def state_json(data: Mapping[str, JSON], max_chars: int = STATE_CHARS) -> str:
    """Write the state as JSON of at most ``most`` characters; long strings lose their middle, then entries are left out."""
    return _whole(data, "", max_chars) or _within(data, "", max_chars)


def _whole(value: JSON, pad: str, room: int) -> str | None:
    """Write a value whole, but for long strings; None when it does not fit, found out without writing the rest."""
    if isinstance(value, str):
        text = encode_basestring(middle(value, STRING_CHARS))
    elif not isinstance(value, (dict, list)) or not value:
        text = pretty(whole_floats_as_integers(value))
    else:
        inner, lines, left = f"{pad}  ", [], room - 2 * len(pad) - 4
        if len(value) * (len(inner) + 3) > left:  # each member takes a line
            return None
        for head, child in _children(value):
            text_of = _whole(child, inner, left - len(head) - 2)
            if text_of is None:
                return None
            lines.append(head + text_of)
            left -= len(inner) + len(head) + len(text_of) + 2
        text = _enclosed(value, lines, pad)
    return text if len(text) <= room else None


def _within(value: JSON, pad: str, room: int) -> str:
    """Write as much of a value as fits that does not fit whole, still as JSON; empty where not even a notice does."""
    if isinstance(value, str):
        return _short_string(value, room)
    if not isinstance(value, (dict, list)):
        return ""
    inner, lines = f"{pad}  ", list[str]()
    left = room - 2 * len(pad) - NOTICE_CHARS
    for head, child in _children(value):
        space = left - len(inner) - len(head) - 2
        text = _whole(child, inner, space)
        if text is None:
            text = _within(child, inner, space) if space >= NOTICE_CHARS else ""
            lines += [head + text] if text else []
            break
        lines.append(head + text)
        left = space - len(text)
    missing = len(value) - len(lines)
    if missing:
        notice = f"{missing} of {len(value)} entries omitted"
        lines.append(f'"…": "{notice}"' if isinstance(value, dict) else f'"… {notice}"')
    text = _enclosed(value, lines, pad)
    return text if len(text) <= room else ""


def _children(value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield each member of an object or list with the text before it."""
    if isinstance(value, dict):
        yield from ((f"{encode_basestring(key)}: ", child) for key, child in value.items())
    else:
        yield from (("", child) for child in value)


def _enclosed(value: JSON, lines: list[str], pad: str) -> str:
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{pad}  " + f",\n{pad}  ".join(lines) + f"\n{pad}{end}"


def _short_string(text: str, room: int) -> str:
    """Write a string cut to fit; written as JSON, a character may take several."""
    max_chars = min(room - 2, STRING_CHARS)
    while max_chars >= NOTICE_CHARS:
        written = encode_basestring(middle(text, max_chars))
        if len(written) <= room:
            return written
        max_chars //= 2
    return ""


def tokens_of(characters: int) -> int:
    """Estimate the tokens of a text: one for four characters."""
    return -(-characters // 4)


class PromptPart(NamedTuple):
    """One part of a prompt.

    Attributes:
        name: which part it is.
        text: what the agent reads under the heading; empty where the part is left out.
        note: why it was left out, or what of it was cut; empty where it is whole.
        quotes: whether it quotes what others wrote, other than the request and the work item.
        tells: the values that it tells, such as ``("state", "plan")`` or ``("handoff", "3")``.
    """

    name: PartName
    text: str
    note: str = ""
    quotes: bool = False
    tells: tuple[tuple[str, str], ...] = ()

    @property
    def heading(self) -> str:
        """Heading of the part."""
        return HEADINGS[self.name]


def cut_to(text: str, max_chars: int) -> str:
    """Cut ``text`` to at most ``most`` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
