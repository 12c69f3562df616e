"""The conditions of edges, exits and advances, each described once: what it asks of an output, and how it looks (R3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from materia_nb.errors import MateriaError, did_you_mean

Condition: TypeAlias = Literal["always", "satisfied", "not_satisfied"]


@dataclass(frozen=True, slots=True)
class Described:
    """A condition.

    Attributes:
        needs: what the output must say in ``satisfied``; None: whatever it says, and if it says nothing.
        sign: how it is written in pictures.
        colour: of its lines, and ``dashes`` their pattern, None for a solid line.
    """

    needs: bool | None
    sign: str
    colour: str
    dashes: tuple[int, int] | None = None

    def holds(self, satisfied: bool | None) -> bool:
        """Whether it matches an output that said ``satisfied``, None for one that said neither."""
        return self.needs is None or satisfied is self.needs


DESCRIBED: Final[Mapping[str, Described]] = {
    "always": Described(None, "always", "#7d8590"),
    "satisfied": Described(True, "✓ satisfied", "#2e9e62"),
    "not_satisfied": Described(False, "✗ not_satisfied", "#d9772b", (2, 4)),
}
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
GUARDS: Final[tuple[Condition, ...]] = tuple(word for word in CONDITIONS if DESCRIBED[word].needs is not None)
"""Those that ask for ``satisfied``, so that they never match a text."""
CONDITION_ADVICE: Final = "write one of: " + ", ".join(f'"{condition}"' for condition in CONDITIONS)


def described(condition: str) -> Described:
    """Return what a condition means; raises MateriaError for a word that is none."""
    found = DESCRIBED.get(condition)
    if found is None:
        hint = f"{CONDITION_ADVICE} ({did_you_mean(condition, CONDITIONS)})"
        raise MateriaError(f"{condition!r} is no condition", hint=hint, kind="condition")
    return found
