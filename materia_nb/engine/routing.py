"""How one step ended, and why: the decision that every transition records."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from materia_nb.engine.choosing import By, Look
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import Failure, ItemId, Visit
from materia_nb.handoff.protocol import Issue, Reading
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.vocabulary import Result


class AdvanceFact(NamedTuple):
    """What ``advance`` did: moved or not, from where to where, and how long the list is (R14)."""

    when: str
    moved: bool
    cursor: str
    before: int
    after: int
    length: int
    exhausted: bool
    derived: bool


class Assigned(NamedTuple):
    """One assignment: its target, its source, and whether the source was there (R11)."""

    target: str
    source: str
    found: bool


class Applied(NamedTuple):
    """What an accepted output did before the way on was chosen: assignments, advance; what was odd about what it taught."""

    assigned: tuple[Assigned, ...] = ()
    advance: AdvanceFact | None = None
    warnings: tuple[Issue, ...] = ()


NOTHING_APPLIED: Final = Applied()
NOTHING_SAID: Final = Reading(None)


class Passed(NamedTuple):
    """A socket that was passed over, since its list had no item left at the cursor (R16).

    ``loop`` is None for a socket's own ``foreach``, and ``route`` the exit that led on, None when there was none.
    """

    socket: str
    loop: str | None
    cursor: int
    route: str | None
    target: str

    @property
    def empty(self) -> bool:
        """Whether nothing of the list had been worked on: there was nothing in it."""
        return self.cursor == 0


class Decision(NamedTuple):
    """How one step ended.

    ``by`` says what chose the target: an edge, a loop exit, the implied end, an empty
    loop, a turn that is still owed (repair, draft, finalize, reissue), a person who is waited for (pause,
    escalate) or who has chosen, a detour and its way back, or a failure. ``at`` is the visit that ended, None on the
    way in, ``said`` what was made of its output, and ``result`` what happened to it. ``done`` tells whether its item advanced, and ``exhausted``
    whether its list came to its end.
    """

    step: int
    by: By
    target: str | None
    at: Visit | None = None
    said: Reading = NOTHING_SAID
    result: Result = Result.NOTHING
    applied: Applied = NOTHING_APPLIED
    looks: tuple[Look, ...] = ()
    passed: tuple[Passed, ...] = ()
    failure: Failure | None = None
    done: bool = False
    exhausted: bool = False

    @property
    def socket(self) -> str | None:
        """The socket that was visited."""
        return self.at.socket if self.at else None

    @property
    def visit(self) -> int | None:
        """Which visit of the socket it was."""
        return self.at.visit if self.at else None

    @property
    def item(self) -> ItemId | None:
        """The item of the visit."""
        return self.at.item.id if self.at and self.at.item else None

    @property
    def item_key(self) -> str | None:
        """The key of that item."""
        return self.at.item.key if self.at and self.at.item else None

    @property
    def item_label(self) -> str | None:
        """What that item is called."""
        return self.at.item.label if self.at and self.at.item else None

    @property
    def satisfied(self) -> bool | None:
        """What the output said of ``satisfied``, or a person for it; None where nobody said."""
        return self.result.satisfied

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the output, such as prose around its object."""
        return self.said.notes

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Why the output was refused."""
        return self.said.issues

    @property
    def reason(self) -> str:
        """Why the output asked for something else than a route."""
        return self.said.reason

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """What was odd about the output, and about what it taught."""
        return self.said.warnings + self.applied.warnings

    @property
    def assigned(self) -> tuple[Assigned, ...]:
        """What was assigned to the state."""
        return self.applied.assigned

    @property
    def advance(self) -> AdvanceFact | None:
        """What became of the cursor."""
        return self.applied.advance

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The sockets that were passed over on the way in."""
        return tuple(one.socket for one in self.passed)

    @property
    def chosen(self) -> Look | None:
        """The edge or exit that was taken, if one was."""
        return next((look for look in self.looks if look.matched), None)


def decision_of(  # noqa: PLR0913 - what is known of an end, by name
    visit: Visit | None,
    by: By,
    target: str | None,
    reading: Reading | None = None,
    applied: Applied = NOTHING_APPLIED,
    looks: tuple[Look, ...] = (),
    *,
    result: Result | None = None,
    done: bool = False,
    exhausted: bool = False,
) -> Decision:
    """Record how a visit ended, with what its output said and did; ``result`` where that is not what the output says."""
    said = reading or NOTHING_SAID
    step = 0 if visit is None else visit.step
    if result is None:
        result = Result.FAILED if reading is None and by == "failure" else said.result
    return Decision(step, by, target, visit, said, result, applied, looks, (), None, done, exhausted)


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """The fields that say which visit an event is about, as the reference names them."""
    here, item = rules.sockets[visit.socket], visit.item
    if item is None:
        return here.about
    return {**here.about, "itemKey": item.key, "itemLabel": item.label, "itemLabelShort": short(item.label)}


@lru_cache(maxsize=4096)
def short(label: str, most: int = 60) -> str:
    """A label on one line, at most ``most`` characters."""
    line = " ".join(label.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
