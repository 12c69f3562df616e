"""Linear equations over many states of which each depends on a few: one knot of states at a time, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from materia_nb.errors import MateriaError

DENSE: Final = 200
"""States in one knot that are solved here; for more scipy is asked."""
_NOTHING: Final = 1e-12


def knots(following: Sequence[Iterable[int]]) -> list[list[int]]:
    """Return the states in groups that lead to one another (strongly connected components), the last ones first.

    Tarjan's algorithm, without recursion: a chain of states can be long.
    """
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    open_: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(following)):
        if root in number:
            continue
        todo = [(root, iter(following[root]))]
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
                    todo.append((child, iter(following[child])))
                    break
                if child in open_:
                    lowest[at] = min(lowest[at], number[child])
            else:
                todo.pop()
                if todo:
                    parent = todo[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[at])
                if lowest[at] == number[at]:
                    place = stack.index(at, -1) if stack[-1] == at else _last(stack, at)
                    found.append(stack[place:])
                    del stack[place:]
                    open_.difference_update(found[-1])
    return found


def _last(stack: Sequence[int], value: int) -> int:
    return next(place for place in range(len(stack) - 1, -1, -1) if stack[place] == value)


def solve(rows: Sequence[Mapping[int, float]], given: Sequence[float]) -> list[float]:
    """Return the x of ``x[i] = given[i] + sum(rows[i][j] * x[j])``.

    Raises:
        MateriaError: there is none (``endless``), or it takes scipy, which is not installed (``no_scipy``).
    """
    found = [0.0] * len(rows)
    for knot in knots(rows):
        inside = {state: place for place, state in enumerate(knot)}
        known = [
            given[state] + sum(part * found[to] for to, part in rows[state].items() if to not in inside)
            for state in knot
        ]
        matrix = [
            {inside[to]: part for to, part in rows[state].items() if to in inside and part} for state in knot
        ]
        for state, value in zip(knot, _knot(matrix, known), strict=True):
            found[state] = value
    return found


def _knot(matrix: Sequence[Mapping[int, float]], known: list[float]) -> Sequence[float]:
    if not any(matrix):
        return known
    return _eliminated(matrix, known) if len(known) <= DENSE else _by_scipy(matrix, known)


def _eliminated(matrix: Sequence[Mapping[int, float]], known: list[float]) -> list[float]:
    """Gauss, with the largest pivot of each column."""
    size = len(known)
    whole = [
        [float(row == column) - matrix[row].get(column, 0.0) for column in range(size)] + [known[row]]
        for row in range(size)
    ]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(whole[row][column]))
        if abs(whole[pivot][column]) < _NOTHING:
            raise _endless()
        whole[column], whole[pivot] = whole[pivot], whole[column]
        head = whole[column]
        for row in range(column + 1, size):
            if factor := whole[row][column] / head[column]:
                whole[row] = [a - factor * b for a, b in zip(whole[row], head, strict=True)]
    found = [0.0] * size
    for row in range(size - 1, -1, -1):
        rest = sum(whole[row][column] * found[column] for column in range(row + 1, size))
        found[row] = (whole[row][size] - rest) / whole[row][row]
    return found


def _by_scipy(matrix: Sequence[Mapping[int, float]], known: list[float]) -> Sequence[float]:
    try:
        from numpy import array
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu
    except ImportError:
        raise MateriaError(
            f"{len(known):,} states lead to one another, and scipy, which solves that, is not installed.",
            hint='pip install "materia-nb[insight]", or rehearse instead',
            kind="no_scipy",
        ) from None
    places = [(row, column, part) for row, line in enumerate(matrix) for column, part in line.items()]
    rows, columns, parts = zip(*places, strict=True)
    size = len(known)
    try:
        solved = splu(csc_array(eye_array(size) - csc_array((parts, (rows, columns)), shape=(size, size))))
    except RuntimeError:  # what SuperLU says of a singular matrix
        raise _endless() from None
    return [float(value) for value in solved.solve(array(known))]


def _endless() -> MateriaError:
    return MateriaError(
        "With these chances a cast can go round for ever, so it has no mean.",
        hint="explore says where; give a chance between 0 and 1, or bound the round with maxTraversals",
        kind="endless",
    )
