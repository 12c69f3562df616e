"""Where time, tokens and money went: by socket, materia and item, in any order and together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.insight import sides

GROUPS: Final = ("socket", "materia", "item")
"""What can be added up by."""


class Spent(NamedTuple):
    """What went into one socket, materia or item, or into a combination of these.

    Attributes:
        of: its names, in the order that was asked for; empty for what belongs to no item.
        visits: how often it was visited.
        turns: how often an agent was asked, repairs among it.
        calls: how many tools its agents used.
        usage: tokens and cost, also of turns that gave no answer.
        ms: milliseconds from entering the socket to its end, waiting for a person included; of visits that are over.
        left: how much of ``usage`` went into steps that going back left behind.
    """

    of: tuple[str, ...]
    visits: int = 0
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    ms: int = 0
    left: Usage = Usage()

    def with_step(self, step: StepRecord, *, left: bool) -> Spent:
        """Return it with another step counted."""
        used = sides.used(step)
        return self._replace(
            visits=self.visits + 1,
            turns=self.turns
            + sum(turn.prompt is not None and turn.mode != "correction" for turn in step.turns),
            calls=self.calls + len(step.calls),
            usage=self.usage.plus(used),
            ms=self.ms + max(0, sides.took(step) or 0),
            left=self.left.plus(used) if left else self.left,
        )


def spent(rules: Rules, session: Session, by: Sequence[str] = ("socket",)) -> list[Spent]:
    """Add up what a cast took, steps that were left behind included, in the order in which things came first.

    Raises:
        MateriaError: one of ``by`` is none of :data:`GROUPS` (``unknown_group``).
    """
    for name in by:
        if name not in GROUPS:
            raise MateriaError(
                f"Nothing is added up by {name!r}.", hint=did_you_mean(name, GROUPS), kind="unknown_group"
            )
    found: dict[tuple[str, ...], Spent] = {}
    for step, left in _steps(session):
        named = {
            "socket": step.socket,
            "materia": rules.sockets[step.socket].socket.materia.id,
            "item": f"{step.item_key} {step.item_label or ''}".strip() if step.item_key else "",
        }
        of = tuple(named[name] for name in by)
        found[of] = found.get(of, Spent(of)).with_step(step, left=left)
    return list(found.values())


def _steps(session: Session) -> Iterator[tuple[StepRecord, bool]]:
    yield from ((step, False) for step in session.steps)
    yield from ((step, True) for line in session.abandoned for step in line)
