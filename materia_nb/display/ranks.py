"""Which arcs of a flow run backwards, and on which rank each item stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

Arc: TypeAlias = tuple[str, str]


def walk(items: Sequence[str], arcs: Sequence[Arc], roots: Sequence[str]) -> tuple[list[str], set[int]]:
    """Walk the arcs depth first, in their order, from ``roots`` and then from whatever was not reached.

    Returns the items in the order in which they were met, and the indices of the arcs that close a cycle.
    """
    out: dict[str, list[int]] = {item: [] for item in items}
    for index, (tail, _) in enumerate(arcs):
        out[tail].append(index)
    met: list[str] = []
    back: set[int] = set()
    state: dict[str, int] = {}  # 1 while on the path, 2 when left
    for root in (*roots, *items):
        if root in state:
            continue
        state[root] = 1
        met.append(root)
        path = [(root, iter(out[root]))]
        while path:
            item, rest = path[-1]
            for index in rest:
                head = arcs[index][1]
                seen = state.get(head)
                if seen == 1:
                    back.add(index)
                elif seen is None:
                    state[head] = 1
                    met.append(head)
                    path.append((head, iter(out[head])))
                    break
            else:
                state[item] = 2
                path.pop()
    return met, back


def ranks(order: Sequence[str], arcs: Sequence[Arc], back: set[int], *, most: int) -> dict[str, int]:
    """Give each item a rank below all that lead to it, with at most ``most`` items on a rank.

    Backward arcs count the other way round.
    """
    after: dict[str, list[str]] = {item: [] for item in order}
    waiting = dict.fromkeys(order, 0)
    for index, (tail, head) in enumerate(arcs):
        if tail == head:
            continue
        first, then = (head, tail) if index in back else (tail, head)
        after[first].append(then)
        waiting[then] += 1
    rank = dict.fromkeys(order, 0)
    taken: Counter[int] = Counter()
    todo = [item for item in order if not waiting[item]]
    for item in todo:
        while taken[rank[item]] >= most:
            rank[item] += 1
        taken[rank[item]] += 1
        for then in after[item]:
            rank[then] = max(rank[then], rank[item] + 1)
            waiting[then] -= 1
            if not waiting[then]:
                todo.append(then)
    return rank
