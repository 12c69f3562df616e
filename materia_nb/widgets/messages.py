"""What a page may send to the kernel: each message is a type, and what is no such message is refused.

A message is a JSON object: the ``kind``, which is the name of its type in small letters, and its fields. The types of one
receiver stand in one class, such as :class:`ToCast`. From them a message is checked (:func:`read_message`), handed to whoever
does what its type asks for, and described to the page, in ``front/messages.d.ts`` (``python scripts/make_docs.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_snake

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import END
from materia_nb.loadout.vocabulary import Condition
from materia_nb.widgets.selection import Selection

LongText: TypeAlias = Annotated[str, Field(max_length=2_000_000)]
"""What a person typed, or the page holds."""
ShortText: TypeAlias = Annotated[str, Field(max_length=2_000)]
"""An id, a path, or a line."""
WholeNumber: TypeAlias = Annotated[StrictInt, Field(ge=0, lt=2**53)]
END_ELEMENT: Final = "s:end"
"""The element of the canvas that is the end."""
Token: TypeAlias = Annotated[str, Field(max_length=100)]
"""What a page asks with; the answer brings it back, so that other pages leave it alone."""


class PageMessage(BaseModel):
    """Something that a person did in a page, or that the page asks."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """Return it as a page sends it: its kind, and the fields that were given."""
        return {"kind": to_snake(type(self).__name__), **self.model_dump(by_alias=True, exclude_unset=True)}


class Acting(PageMessage):
    """A message that acts on what the page showed; it is refused once that is no longer current (R70).

    Attributes:
        of_cast: True if it is about the cast itself, wherever that is by now.
        seen: the identity that came with the frame which the page shows, see :func:`~materia_nb.widgets.cast_slices.identity`.
    """

    of_cast: ClassVar[bool] = False
    seen: Token


class WhenIdle(Acting):
    """A message that is refused while a step runs."""


class Starting(Acting):
    """A message that begins something which takes time.

    Attributes:
        first: messages that are done before it, for what was typed and not applied yet.
    """

    first: Annotated[list[dict[str, Any]], Field(max_length=20)] = []


class Inquiry(PageMessage):
    """A message that is answered to the page which asks, and changes nothing."""

    token: Token


class ItemRow(NamedTuple):
    """A work item as a table has it: its texts, the index that it came from, and whether it is to be done again.

    A text that the page has only in part, and that nobody changed, is None.
    """

    title: LongText | None
    context: LongText | None
    origin: WholeNumber | None = None
    again: StrictBool | None = None


ItemRows: TypeAlias = Annotated[list[ItemRow], Field(max_length=10_000)]


class Picked(BaseModel):
    """What is selected: its kind, and its id or number."""

    kind: ShortText
    id: ShortText


class ToCast:
    """What the panel of a cast is told."""

    class Step(Starting):
        """Run one socket."""

    class Run(Starting):
        """Run until the cast stops."""

    class RunTo(Starting):
        """Run until a socket comes next, or ``end``."""

        socket: ShortText

    class RunItem(Starting):
        """Run until the work item that is worked on is over, and another one or none begins."""

    class Recast(Starting):
        """Run the socket where the cast stopped once more."""

    class Resend(Starting):
        """Ask the turn that failed once more."""

    class Revive(Starting):
        """Go on, with the limit that stopped the cast granted once more."""

    class AskAgain(Starting, WhenIdle):
        """Go back before the last answer of the socket behind which a limit stopped the cast, and ask it again."""

        discard_edits: StrictBool = False

    class Take(Starting, WhenIdle):
        """Take what the workbench has changed of the materia where the cast failed, and run it once more."""

    class AllowFolder(Starting, WhenIdle):
        """Let the cast work in the directories outside the project that it asks for, and run what asked once more."""

    class ByHand(WhenIdle):
        """Answer in the place of what failed."""

        text: LongText

    class PinText(Starting, WhenIdle):
        """Let a text answer the socket where the cast failed, from now on, and go on."""

        socket: ShortText
        text: LongText

    class Skip(WhenIdle):
        """Go on without the socket that failed, or without its whole work item; the note says why."""

        note: LongText
        item: StrictBool = False

    class Budget(PageMessage):
        """Change the budget: tokens, a cost, or nothing for no maximum."""

        budget: ShortText

    class RaiseBudget(Starting, WhenIdle):
        """Change the budget that stopped the cast, and go on."""

        budget: ShortText

    class Pause(PageMessage):
        """Stop what runs after its step, or within it where it can be."""

    class Leave(Acting):
        """Go on without a function that does not return."""

    class Abort(Acting):
        """End the cast."""

        of_cast = True

    class Break(PageMessage):
        """Set a breakpoint or take it away."""

        breakpoint: Any

    class BreakWhere(PageMessage):
        """Have a breakpoint only the n-th time, where the text is a number, or only where it holds; every time without one."""

        breakpoint: Any
        text: ShortText

    class ClearBreaks(PageMessage):
        """Take all breakpoints away."""

    class Watch(PageMessage):
        """Stop when what stands at a path of the state changes, or no longer."""

        path: ShortText

    class Follow(PageMessage):
        """Show what stands at a path of the state, and how it changed, in the tab Watch; or no longer."""

        path: ShortText
        on: StrictBool = True

    class Select(PageMessage):
        """Let the inspector tell about an element; about wherever the cast is without one."""

        element: Picked | None

    class Tab(PageMessage):
        """Open a tab of the inspector."""

        tab: ShortText

    class Dock(PageMessage):
        """Open a tab of the dock."""

        dock: ShortText

    class Look(PageMessage):
        """Show everything as it was after a step, of the cast itself or of a lane."""

        step: WholeNumber
        lane: ShortText = ""

    class Row(PageMessage):
        """Show everything as it was after the step of a row of the timeline, counted from 1; 0 is the start."""

        row: WholeNumber

    class Now(PageMessage):
        """Go back to the present."""

    class Line(PageMessage):
        """Show the steps of an abandoned branch, or the present ones again."""

        line: WholeNumber | None

    class Lane(PageMessage):
        """Let the inspector tell about a lane, and answer what is asked there; about the cast itself without a name."""

        lane: ShortText

    class Height(PageMessage):
        """Make the surface higher or lower."""

        by: StrictInt

    class Heard(PageMessage):
        """Take the line over the graph away."""

    class Reply(WhenIdle):
        """Answer in the place of the agent."""

        text: LongText

    class Verdict(WhenIdle):
        """Answer by one of two buttons."""

        satisfied: StrictBool
        reason: LongText

    class ItemsAnswer(WhenIdle):
        """Answer a generator by a table of items."""

        rows: ItemRows
        reason: LongText
        satisfied: StrictBool | None = None

    class Refine(Starting):
        """Ask for a changed draft."""

        text: LongText

    class Finalize(Starting):
        """Accept the draft and ask for the final result."""

    class Answer(Starting):
        """Answer the agent that holds the cast."""

        text: LongText

    class Decide(WhenIdle):
        """Decide in the place of the agent that holds the cast: by a verdict, or where to go on."""

        satisfied: StrictBool | None = None
        target: ShortText | None = None

    class Allow(Starting):
        """Allow what is asked for; with ``always`` later calls of the same tools as well."""

        always: StrictBool = False

    class Deny(Starting):
        """Refuse what is asked for."""

        reason: LongText

    class Disallow(PageMessage):
        """Let a tool ask again."""

        tool: ShortText

    class Enter(WhenIdle):
        """Enter the next socket without running it."""

    class EditPrompt(WhenIdle):
        """Change layers of the prompt, for this turn only."""

        layers: dict[str, LongText]

    class Recommit(WhenIdle):
        """Decide the last step again with another output."""

        text: LongText
        discard_edits: StrictBool = False

    class SetValue(WhenIdle):
        """Put a value into the state, read as JSON unless it is text."""

        path: ShortText
        text: LongText
        as_text: StrictBool = False

    class RemoveValue(WhenIdle):
        """Take a value out of the state."""

        path: ShortText

    class Items(WhenIdle):
        """Put a list of work items into the cast; ``base`` names the list that it was made from."""

        rows: ItemRows
        base: ShortText | None = None
        abandon: StrictBool = False

    class Undo(WhenIdle):
        """Take the last edit back."""

    class Back(WhenIdle):
        """Go on from the state after an earlier step, with the files of then if asked."""

        step: WholeNumber
        files: bool = False
        discard_edits: StrictBool = False

    class Fork(WhenIdle):
        """Begin another cast from a step, or from how the cast stands."""

        step: WholeNumber | None = None

    class Again(WhenIdle):
        """Begin the same cast anew, from its beginning."""

        of_cast = True

    class Compare(PageMessage):
        """Show how the step of a row of the timeline differs from that of another, or from the visit of its socket before it.

        With a socket, its latest step is meant; with a cast, how that one differs from this.
        """

        socket: ShortText | None = None
        row: WholeNumber | None = None
        other: WholeNumber | None = None
        cast: ShortText | None = None

    class Page(PageMessage):
        """Save the cast as one HTML page."""

    class KeepTest(PageMessage):
        """Keep the cast as a test of its loadout, in the project."""

    class Label(PageMessage):
        """Call the cast by a name."""

        text: Annotated[str, Field(max_length=200)]

    class ShowCast(PageMessage):
        """Show one of the casts of the panel."""

        cast: WholeNumber

    class Pin(PageMessage):
        """Let what a socket said last answer from now on, or no longer."""

        socket: ShortText

    class Mode(PageMessage):
        """Go on with the cast, or design its loadout."""

        mode: Literal["cast", "design"]

    class Rows(Inquiry):
        """Give rows of the timeline."""

        first: WholeNumber
        last: WholeNumber

    class Find(Inquiry):
        """Give the rows of the timeline whose steps hold a text."""

        text: ShortText

    class Casts(Inquiry):
        """Give the casts that this one can be compared with: of each what names it, and words."""

    class Check(Inquiry):
        """Say what is wrong with what was typed: as an answer, a correction, or a value of the state."""

        what: Literal["reply", "by_hand", "correction", "value"]
        text: LongText

    class CheckItems(Inquiry):
        """Say what is wrong with a list of work items, and what applying it would move."""

        rows: ItemRows
        base: ShortText | None = None
        abandon: StrictBool = False

    class ItemTexts(Inquiry):
        """Give title and context of a work item whole; ``base`` names the list that it is in."""

        base: ShortText
        place: WholeNumber

    class LastOutput(Inquiry):
        """Give the last output whole, to be corrected."""

    class Value(Inquiry):
        """Give a value of the state whole."""

        path: list[ShortText]

    class Diff(Inquiry):
        """Say what changed in the state from the end of one step to that of another."""

        a: WholeNumber
        b: WholeNumber


def _picked(element: object, info: ValidationInfo) -> Selection | None:
    """Return what an element of the canvas stands for; None for one that stands for nothing, or no longer."""
    if not isinstance(element, str | None):
        what = "The message of the page names an element by something other than a text."
        raise MateriaError(what, hint="reload the page", kind="bad_message")
    selections: Mapping[str, Selection] = (info.context or {}).get("selections", {})
    return selections.get(element or "")


def _socket(element: str, info: ValidationInfo) -> str:
    pick = _picked(element, info)
    if pick is None or pick[0] != "socket":
        raise MateriaError(
            f"There is no socket {shorten(element, 120)!r} any more.",
            hint="the graph has changed meanwhile; try again",
            kind="bad_message",
        )
    return pick[1]


def _target(element: str, info: ValidationInfo) -> str:
    return END if element == END_ELEMENT else _socket(element, info)


Element: TypeAlias = Annotated[Any, BeforeValidator(_picked), WithJsonSchema({"type": "string"})]
"""An element of the canvas; read, it is the :data:`~materia_nb.widgets.selection.Selection` that it stands for, or None."""
SocketElement: TypeAlias = Annotated[ShortText, AfterValidator(_socket)]
"""The element of a socket; read, it is the socket's id."""
TargetElement: TypeAlias = Annotated[ShortText, AfterValidator(_target)]
"""The element of a socket or of the end."""
Pixels: TypeAlias = Annotated[float, Field(strict=True, ge=-1e6, le=1e6)]


class Gesture(PageMessage):
    """What a person does on the canvas beside selecting; whoever shows the canvas is told."""


class ToCanvas:
    """What the picture of a graph is told; elements of the canvas are read as what they stand for."""

    class Pick(PageMessage):
        """Select a part."""

        element: Element

    class Room(PageMessage):
        """The canvas is so wide and high."""

        w: float
        h: float

    class Turn(PageMessage):
        """Let the flow run the other way."""

    class Fold(PageMessage):
        """Draw a loop as one card, or again as a region."""

        element: Element

    class Svg(PageMessage):
        """Give the picture as SVG."""

        theme: Literal["light", "dark"]
        token: Token

    class Ground(Gesture):
        """A click beside everything."""

    class Open(Gesture):
        """Open a part in the inspector."""

        what: Element

    class Break(Gesture):
        """Set a breakpoint at a part or take it away; ``after`` means behind a socket."""

        what: Element
        after: StrictBool = False

    class Connect(Gesture):
        """Draw an edge."""

        source: Annotated[SocketElement, Field(alias="from")]
        to: TargetElement

    class When(Gesture):
        """Say what an edge or an exit waits for."""

        of: Element
        when: Condition

    class Order(Gesture):
        """Look at an edge or an exit earlier or later by one."""

        of: Element
        by: Literal[-1, 1]

    class Move(Gesture):
        """Put a socket somewhere: its centre in pixels of the picture."""

        id: SocketElement
        x: Pixels
        y: Pixels

    class Marquee(Gesture):
        """Mark sockets."""

        ids: list[SocketElement]

    class Delete(Gesture):
        """Take away the marked sockets, or a part."""

        ids: list[SocketElement] = []
        what: Element = None

    class Drop(Gesture):
        """Place a materia."""

        materia: Annotated[str, Field(max_length=300)]
        x: Pixels
        y: Pixels

    class Undo(Gesture):
        """Take the last change of the design back."""

    class Redo(Gesture):
        """Make it again."""

    class Copy(Gesture):
        """Keep sockets, to be pasted."""

        ids: list[SocketElement] = []

    class Cut(Copy):
        """Keep sockets and take them away."""

    class Paste(Gesture):
        """Place what was kept."""

    class Duplicate(Copy):
        """Place sockets once more."""


class ToCasts:
    """What the panel of all casts is told."""

    class Look(PageMessage):
        """Show the casts that hold these words and stand so, in this order."""

        words: ShortText = ""
        only: Literal["all", "waits", "failed", "tagged"] = "all"
        by: Literal["state", "request", "loadout", "when", "steps", "cost"] = "when"
        down: StrictBool = True

    class Refresh(PageMessage):
        """Look again which casts there are."""

    class Select(PageMessage):
        """Mark a cast, by its id."""

        cast: ShortText

    class Open(PageMessage):
        """Show a cast below the list, to be looked at."""

        cast: ShortText

    class Resume(PageMessage):
        """Show a cast below the list, to go on with it."""

        cast: ShortText

    class Fork(PageMessage):
        """Start another cast from where a cast is now, and show it below the list."""

        cast: ShortText

    class Compare(PageMessage):
        """Show how two casts differ, below the list."""

        a: ShortText
        b: ShortText

    class Label(PageMessage):
        """Call a cast by a name, and give it tags: words that begin with ``#``."""

        cast: ShortText
        text: Annotated[str, Field(max_length=200)]

    class Delete(PageMessage):
        """Delete a cast; the page has asked whether it is meant."""

        cast: ShortText

    class Shut(PageMessage):
        """Show nothing below the list any more."""

    class Heard(PageMessage):
        """Take the line over the list away."""

    class Rows(Inquiry):
        """Give rows of the list as it was in the order named ``order``."""

        order: WholeNumber
        first: WholeNumber
        last: WholeNumber


class ToQuestion:
    """What the picture of a question is told."""

    class Guess(PageMessage):
        """The next step leads to this place."""

        place: ShortText


@cache
def messages_of(receiver: type) -> dict[str, type[PageMessage]]:
    """Return the types of the messages to a receiver, such as :class:`ToCast`, by their kinds."""
    return {
        to_snake(name): one
        for name, one in vars(receiver).items()
        if isinstance(one, type) and issubclass(one, PageMessage)
    }


def read_message(
    receiver: type, content: object, selections: Mapping[str, Selection] | None = None
) -> PageMessage:
    """Read a message of a page.

    Args:
        receiver: who is told, such as :class:`ToCast`.
        content: the message.
        selections: what the elements of a canvas stand for.

    Raises:
        MateriaError: it is none that ``receiver`` knows, or a field of it is wrong (``bad_message``).
    """
    values = content if isinstance(content, dict) else {}
    kind = values.get("kind")
    known = messages_of(receiver).get(kind) if isinstance(kind, str) else None
    if known is None:
        raise MateriaError(
            f"The panel does not know the message {shorten(str(kind), 60)!r}.",
            hint="reload the page: its front-end may be of another version",
            kind="bad_message",
        )
    try:
        return known.model_validate(
            {name: value for name, value in values.items() if name != "kind"},
            context={"selections": selections or {}},
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(shorten(str(one), 40) for one in first["loc"])
        raise MateriaError(
            f"The message {kind!r} of the page is wrong at {where}: {first['msg']}.",
            hint="reload the page",
            kind="bad_message",
        ) from None
