"""Automatic placement of cards: cards are ranked along the flow, and each loop is placed as one block.

A long flow is split into several bands. Grid positions are measured in cards, including the gaps between them: first
along the flow, then across it, as in the ``layout`` of a loadout. The same positions are used for left-to-right flows
and, with the coordinates swapped, for top-to-bottom flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeAlias

from materia_nb.display.graph_parts import Link, LoopFrame, nested_frames
from materia_nb.loadout.graph import Graph

_Arc: TypeAlias = tuple[str, str]
GridPosition: TypeAlias = tuple[float, float]
LOOP_KEY: Final = "\x00loop:"
"""Prefix of the key of a folded loop."""
MAX_ABREAST: Final = 4
"""Maximum number of cards on one rank. More cards would not be readable in the width of a notebook."""
_FrameSpace: TypeAlias = tuple[float, float, float, float]
"""Space for the frame of a loop, in cards: before its members, after its members, and at their left and right sides."""


@dataclass(slots=True)
class _Block:
    """A group of cards that have been placed, with its size along and across the flow in cards."""

    length: float = 1.0
    breadth: float = 1.0
    positions: dict[str, GridPosition] = field(default_factory=dict)


def arrange_cards(
    graph: Graph,
    links: Sequence[Link],
    folded: Iterable[str],
    frame_space: _FrameSpace,
    max_length: float,
    max_abreast: int,
) -> dict[str, GridPosition]:
    """Compute the grid position of every card.

    Args:
        graph: the loadout.
        links: the lines of the loadout.
        folded: ids of the folded loops. The card of a folded loop has the key :data:`LOOP_KEY` plus the id.
        frame_space: the space for the frame of a loop.
        max_length: maximum length of a flow, in cards, before it continues in another band.
        max_abreast: maximum number of cards on one rank.
    """
    root, frames_around, _ = nested_frames(graph, frozenset())
    arcs: dict[int, list[_Arc]] = {}
    for link in links:
        if link.source in frames_around and link.target in frames_around:
            frame, tail, head = _common_frame(frames_around, link)
            arcs.setdefault(id(frame), []).append((tail, head))
    folded = frozenset(folded)

    def single_card(key: str) -> _Block:
        return _Block(positions={key: (0.0, 0.0)})

    def place_members(frame: LoopFrame) -> _Block:
        """Place the members of a frame, relative to the corner of the frame."""
        blocks: dict[str, _Block] = {}
        for child in frame.children:
            key = f"{LOOP_KEY}{child.loop}"
            is_folded = child.loop in folded
            blocks[key] = single_card(key) if is_folded else _with_frame_space(place_members(child), frame_space)
        keys = [*frame.sockets, *blocks]
        frame_arcs = arcs.get(id(frame), [])
        entry_frames = frames_around.get(graph.entry, ())
        first = _key_in_frame(graph.entry, entry_frames, entry_frames.index(frame)) if frame in entry_frames else None
        visit_order, back_arcs = _depth_first_order(keys, frame_arcs, [first] if first in keys else [])
        rank = assign_ranks(visit_order, frame_arcs, back_arcs, max_per_rank=max_abreast)
        rows: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
        for key in visit_order:
            rows[rank[key]].append(key)
        predecessors: dict[str, list[str]] = {}
        for index, (tail, head) in enumerate(frame_arcs):
            if index not in back_arcs:
                predecessors.setdefault(head, []).append(tail)
        sizes = {key: blocks.get(key) or single_card(key) for key in visit_order}
        block = _Block(0.0, 0.0)
        lengths = [max(sizes[key].length for key in row) for row in rows]
        for band in _bands(lengths, max_length if frame is root else inf):
            band_block = _stack_ranks([rows[rank] for rank in band], sizes, predecessors)
            gap = frame_space[3] if block.positions else 0.0
            block.positions |= {
                key: (along, block.breadth + gap + across) for key, (along, across) in band_block.positions.items()
            }
            block.length = max(block.length, band_block.length)
            block.breadth += gap + band_block.breadth
        return block

    return place_members(root).positions


def _common_frame(frames_around: Mapping[str, tuple[LoopFrame, ...]], link: Link) -> tuple[LoopFrame, str, str]:
    """Return the innermost frame that contains both ends of a line, and the key of each end in that frame."""
    source, target = frames_around[link.source], frames_around[link.target]
    depth = sum(1 for a, b in zip(source, target, strict=False) if a is b) - 1
    return source[depth], _key_in_frame(link.source, source, depth), _key_in_frame(link.target, target, depth)


def _key_in_frame(socket: str, path: tuple[LoopFrame, ...], depth: int) -> str:
    return f"{LOOP_KEY}{path[depth + 1].loop}" if depth + 1 < len(path) else socket


def _bands(lengths: Sequence[float], max_length: float) -> list[list[int]]:
    """Split a flow into bands whose length is at most ``max_length``. ``lengths`` contains the length of each rank."""
    bands: list[list[int]] = [[]]
    for rank, length in enumerate(lengths):
        if bands[-1] and sum(lengths[index] for index in bands[-1]) + length > max_length + 0.01:
            bands.append([])
        bands[-1].append(rank)
    return bands


def _stack_ranks(
    rows: Sequence[Sequence[str]], sizes: Mapping[str, _Block], predecessors: Mapping[str, Sequence[str]]
) -> _Block:
    """Place the ranks one after another along the flow, and align each card or loop with its predecessors."""
    along, min_across, max_across = 0.0, 0.0, 0.0
    positions: dict[str, GridPosition] = {}
    centre_of: dict[str, float] = {}
    for row in rows:
        sources = {key: [centre_of[tail] for tail in predecessors.get(key, ()) if tail in centre_of] for key in row}
        preferred = {key: sum(centres) / len(centres) if centres else 0.0 for key, centres in sources.items()}
        next_free = float("-inf")
        for key in sorted(row, key=lambda key: preferred[key]):
            block = sizes[key]
            spine = block.positions[next(iter(block.positions))][1]  # The first card is aligned with the incoming line.
            position = max(next_free, preferred[key] - spine)
            positions |= {member: (along + f, position + c) for member, (f, c) in block.positions.items()}
            centre_of[key] = position + spine
            next_free = position + block.breadth
            min_across, max_across = min(min_across, position), max(max_across, next_free)
        along += max(sizes[key].length for key in row)
    return _Block(along, max_across - min_across, {key: (f, c - min_across) for key, (f, c) in positions.items()})


def _with_frame_space(block: _Block, frame_space: _FrameSpace) -> _Block:
    """Add space for the frame and the heading of a loop around a block."""
    before, after, left, right = frame_space
    return _Block(
        block.length + before + after,
        block.breadth + left + right,
        {key: (along + before, across + left) for key, (along, across) in block.positions.items()},
    )


def _depth_first_order(items: Sequence[str], arcs: Sequence[_Arc], roots: Sequence[str]) -> tuple[list[str], set[int]]:
    """Traverse the arcs depth first, from ``roots`` and then from each item that has not been reached.

    Returns the items in the order of the traversal, and the indices of the arcs that close a cycle.
    """
    outgoing: dict[str, list[int]] = {item: [] for item in items}
    for index, (tail, _) in enumerate(arcs):
        outgoing[tail].append(index)
    visited_items: list[str] = []
    back_arcs: set[int] = set()
    state: dict[str, int] = {}  # 1: on the current path, 2: finished
    for root in (*roots, *items):
        if root in state:
            continue
        state[root] = 1
        visited_items.append(root)
        path = [(root, iter(outgoing[root]))]
        while path:
            item, remaining = path[-1]
            for index in remaining:
                head = arcs[index][1]
                visit_state = state.get(head)
                if visit_state == 1:
                    back_arcs.add(index)
                elif visit_state is None:
                    state[head] = 1
                    visited_items.append(head)
                    path.append((head, iter(outgoing[head])))
                    break
            else:
                state[item] = 2
                path.pop()
    return visited_items, back_arcs


def assign_ranks(order: Sequence[str], arcs: Sequence[_Arc], back_arcs: set[int], max_per_rank: int) -> dict[str, int]:
    """Assign each item a rank after the ranks of its predecessors, with at most ``max_per_rank`` items on each rank.

    Arcs whose index is in ``back_arcs`` are treated as reversed.
    """
    successors: dict[str, list[str]] = {item: [] for item in order}
    unranked_predecessors = dict.fromkeys(order, 0)
    for index, (tail, head) in enumerate(arcs):
        if tail == head:
            continue
        predecessor, successor = (head, tail) if index in back_arcs else (tail, head)
        successors[predecessor].append(successor)
        unranked_predecessors[successor] += 1
    rank = dict.fromkeys(order, 0)
    per_rank: Counter[int] = Counter()
    queue = [item for item in order if not unranked_predecessors[item]]
    for item in queue:
        while per_rank[rank[item]] >= max_per_rank:
            rank[item] += 1
        per_rank[rank[item]] += 1
        for successor in successors[item]:
            rank[successor] = max(rank[successor], rank[item] + 1)
            unranked_predecessors[successor] -= 1
            if not unranked_predecessors[successor]:
                queue.append(successor)
    return rank


def place_near_neighbours(
    positions: Mapping[str, GridPosition], links: Iterable[Link], keys: Sequence[str], loops: Iterable[Sequence[str]]
) -> dict[str, GridPosition]:
    """Return positions for all ``keys``: existing positions do not change, and new cards avoid other cards and loops.

    A new card is placed after its predecessor, before its successor, or after the previous key.
    """
    placed = dict(positions)
    links, loops = list(links), list(loops)
    for index, key in enumerate(keys):
        if key in placed:
            continue
        source = next((link.source for link in links if link.target == key and link.source in placed), None)
        target = next((link.target for link in links if link.source == key and link.target in placed), None)
        previous = next((other for other in reversed(keys[:index]) if other in placed), next(iter(placed)))
        column, row = placed[source or target or previous]
        occupied = [(*placed[other], *placed[other]) for other in placed]
        for loop in loops:
            members = [placed[other] for other in loop if other in placed]
            if members and key not in loop:
                (left, *_, right), (top, *_, bottom) = (sorted([*axis, *axis]) for axis in zip(*members, strict=True))
                occupied.append((left, top, right, bottom))
        ahead = -1 if source is None and target is not None else 1
        placed[key] = next(
            position for position in _positions_around(column, row, ahead) if _is_free_position(position, occupied)
        )
    return placed


def _positions_around(column: float, row: float, ahead: int) -> Iterator[GridPosition]:
    """Yield grid positions from the nearest to the farthest: first ahead, then at the sides, then backwards."""
    for distance in range(1, 1000):
        yield column + ahead * distance, row
        for side_distance in range(1, distance + 1):
            yield column + ahead * distance, row + side_distance
            yield column + ahead * distance, row - side_distance
        for back in range(distance - 1, -distance - 1, -1):
            yield column + ahead * back, row + distance
            yield column + ahead * back, row - distance


def _is_free_position(position: GridPosition, occupied: Iterable[tuple[float, float, float, float]]) -> bool:
    """Return True if a card at this position overlaps no occupied area; an area is (left, top, right, bottom)."""
    column, row = position
    return all(
        column <= left - 0.95 or column >= right + 0.95 or row <= top - 0.95 or row >= bottom + 0.95
        for left, top, right, bottom in occupied
    )
