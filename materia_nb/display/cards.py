"""What stands on the card of each socket and beside each line, and how much room that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.geometry import fit, text_width
from materia_nb.display.links import END_SIGN, Link
from materia_nb.display.words import (
    budget_words,
    edge_words,
    kind_words,
    link_words,
    loop_words,
    socket_notes,
)
from materia_nb.loadout.colours import Tint, tint_of
from materia_nb.loadout.graph import Loop, Socket

ID_SIZE: Final = 13.0
LABEL_SIZE: Final = 12.0
SMALL_SIZE: Final = 10.5
LINE: Final = 17.0
PADDING: Final = 12.0
CARD_MAX: Final = 330.0
CARD_MIN: Final = 172.0
# Room kept at the right of the second line for a visit count, so that a running cast does not move.
COUNT_ROOM: Final = 46.0


@dataclass(frozen=True, slots=True)
class Card:
    """The lines on one socket's card, already bounded but not escaped, its size in pixels, and its materia's colour."""

    title: str
    kind: str
    label: str
    badges: tuple[str, ...]
    notes: tuple[str, ...]
    w: float
    h: float
    tint: Tint | None = None


def card(socket: Socket, *, detached: bool = False) -> Card:
    """Lay out the card of ``socket``; a detached one lists its edges, for no lines are drawn from it."""
    inner = CARD_MAX - 2 * PADDING
    kind, *rest = kind_words(socket)
    kind_width = text_width(kind, SMALL_SIZE)
    title = fit(part(socket.id), ID_SIZE, inner - kind_width - 14, bold=True)
    label = fit(part(socket.materia.label), LABEL_SIZE, inner - COUNT_ROOM)
    badges = tuple(rest)
    words = [*socket_notes(socket), *(edge_words(edge) for edge in socket.edges[:6] if detached)]
    notes = tuple(fit(part(note, 120), SMALL_SIZE, inner) for note in words)
    widths = [
        text_width(title, ID_SIZE, bold=True) + 14 + kind_width,
        text_width(label, LABEL_SIZE) + COUNT_ROOM,
        sum(text_width(badge, SMALL_SIZE) + 20 for badge in badges),
        *(text_width(note, SMALL_SIZE) for note in notes),
    ]
    lines = 2 + bool(badges) + len(notes)
    return Card(
        title,
        kind,
        label,
        badges,
        notes,
        w=max(CARD_MIN, max(widths) + 2 * PADDING),
        h=lines * LINE + 16 + 3 * bool(badges),
        tint=tint_of(socket.materia.raw.get("color")),
    )


def stub_label(link: Link) -> str:
    """Label of a line that only names its target."""
    words = link_words(link)
    target = "end" if link.target == END_SIGN else part(link.target, 40)
    return f"{words} ▸ {target}" if words else f"▸ {target}"


def stub_size(link: Link) -> tuple[float, float]:
    """Width and height to keep for the label of a line that only names its target."""
    return (text_width(stub_label(link) + "000", SMALL_SIZE) + 38, 19.0)


def label_size(link: Link) -> tuple[float, float]:
    """Width and height to keep for a line's label; (0, 0) without one. The same in every state of a cast."""
    words = link_words(link)
    if not words:
        return (0.0, 0.0)
    if link.limit is not None:  # in a cast it says how often it was taken
        words = words.replace(
            budget_words(link.limit), budget_words(link.limit, (link.limit, link.limit), item=True)
        )
    return (text_width(words, SMALL_SIZE) + 14 + (24 if link.kind == "edge" else 0), 19.0)


def loop_title(loop: Loop) -> tuple[str, str]:
    """The two lines over a loop region, bounded; the second without progress."""
    return (
        fit("loop " + part(loop.id), ID_SIZE, 300, bold=True),
        fit(part(loop_words(loop), 200), SMALL_SIZE, 300),
    )


def title_size(loop: Loop) -> tuple[float, float]:
    """Width and height to keep for a loop's title, progress included."""
    first, second = loop_title(loop)
    room = 90.0
    return (max(text_width(first, ID_SIZE, bold=True), text_width(second, SMALL_SIZE) + room) + 8, 36.0)
