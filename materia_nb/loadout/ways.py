"""Where ways lead: what can be reached over them, and which of their ends lead to one another."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def reachable_from(starts: Iterable[T], ways: Mapping[T, Iterable[T]]) -> set[T]:
    """Return these, and all that ways lead to from them; what is no key of ``ways`` leads nowhere."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        new = set(ways.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def turned(ways: Mapping[T, Iterable[T]]) -> dict[T, set[T]]:
    """Return the ways from their other ends: each end of one, with what leads to it."""
    back: dict[T, set[T]] = {start: set() for start in ways}
    for start, onward in ways.items():
        for to in onward:
            back.setdefault(to, set()).add(start)
    return back


def knots(ways: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """Return the keys in groups that lead to one another (strongly connected components), the last ones first.

    Tarjan's algorithm, without recursion: a chain of states can be long.
    """
    number: dict[T, int] = {}
    lowest: dict[T, int] = {}
    stack: list[T] = []
    open_: set[T] = set()
    groups: list[list[T]] = []
    for root in ways:
        if root in number:
            continue
        todo = [(root, iter(ways[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        open_.add(root)
        while todo:
            at, rest = todo[-1]
            for child in rest:
                if child not in number:
                    number[child] = lowest[child] = len(number)
                    stack.append(child)
                    open_.add(child)
                    todo.append((child, iter(ways[child])))
                    break
                if child in open_:
                    lowest[at] = min(lowest[at], number[child])
            else:
                todo.pop()
                if todo:
                    parent = todo[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[at])
                if lowest[at] == number[at]:
                    knot: list[T] = []
                    while at in open_:
                        knot.append(stack.pop())
                        open_.remove(knot[-1])
                    groups.append(knot[::-1])
    return groups


def rounds_in(ways: Mapping[T, Iterable[T]]) -> dict[T, int]:
    """Return what a way leads back to, each with the number of its round: those that lead to one another."""
    rounds: dict[T, int] = {}
    for number, knot in enumerate(knots(ways)):
        if len(knot) > 1 or knot[0] in ways[knot[0]]:
            rounds |= dict.fromkeys(knot, number)
    return rounds
