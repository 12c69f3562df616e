"""The casts of a project that wait for a person, and what would become of each with its loadout as it is now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from materia_nb.cast.cast import Cast
from materia_nb.cast.listing import Listed
from materia_nb.cast.views.compare_view import compare_view, replayed_words
from materia_nb.cast.views.status import status_lines
from materia_nb.display.blocks import Block, Line, Table
from materia_nb.engine.routing import short
from materia_nb.errors import MateriaError, counted
from materia_nb.loadout import Graph
from materia_nb.store.catalogue import CastEntry

Verdict: TypeAlias = Literal["unchanged", "safe", "elsewhere", "cannot"]
"""Of a waiting cast and its loadout as it is now: not changed, the same way so far, another way, not to be told."""
_WORDS: Final[dict[Verdict, str]] = {
    "safe": "safe to move",
    "elsewhere": "would go elsewhere",
    "cannot": "cannot move",
}


@dataclass(frozen=True)
class Waiting:
    """A cast that waits for a person.

    Attributes:
        entry: which, as the list of casts has it.
        waits: what it waits for, in a sentence.
        verdict: what its answers so far do in its loadout as it is now.
        why: where it would go elsewhere, or why it cannot be told; else empty.
    """

    entry: CastEntry
    waits: str
    verdict: Verdict
    why: str = ""


class Inbox(Listed[Waiting]):
    """The casts that wait for a person, newest first; it shows itself as a table, numbered from 1."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The table that it shows itself as."""
        rows = [
            (
                str(number),
                one.entry.name or one.entry.id,
                one.entry.loadout or "",
                one.waits,
                short(one.entry.request or "", 60),
                ": ".join(filter(None, [_WORDS.get(one.verdict, ""), one.why])),
            )
            for number, one in enumerate(self, start=1)
        ]
        headers = ("", "cast", "loadout", "waits for", "request", "with its loadout of now")
        return Table(headers, rows, "no cast is waiting for a person")

    @property
    def verdict(self) -> str:
        """What becomes of the casts whose loadout was changed since they began, in a sentence; empty where there is none."""
        counts: Counter[Verdict] = Counter(one.verdict for one in self if one.verdict != "unchanged")
        if not counts:
            return ""
        said = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _WORDS.items())
        return f"{counted(counts.total(), 'cast')} with a loadout that was changed since: {said}"

    def _blocks(self) -> list[Block]:
        return [self.table, *([Line(self.verdict)] if self.verdict else [])]


def waiting(entry: CastEntry, cast: Cast, graph: Graph | MateriaError) -> Waiting:
    """Say what a cast waits for, and what its answers so far do in a loadout; the loadout may be one that has problems."""
    waits = status_lines(cast.now)[-1].removeprefix("waiting: ")
    if isinstance(graph, MateriaError):
        return Waiting(entry, waits, "cannot", graph.what.partition("\n")[0])
    if not compare_view(cast.graph, graph):
        return Waiting(entry, waits, "unchanged")
    try:
        replayed = cast.replay(graph)
    except MateriaError as error:
        return Waiting(entry, waits, "cannot", error.what)
    if replayed.first is None:
        return Waiting(entry, waits, "safe")
    _, step, why = replayed_words(replayed)
    return Waiting(entry, waits, "elsewhere", f"step {step}: {why}")
