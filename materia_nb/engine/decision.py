"""Why the cast went where it went: the record that every step leaves (R3, R14, R16, R18)."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from materia_nb.engine.state import Failure, ItemId
from materia_nb.handoff.protocol import Issue
from materia_nb.loadout.conditions import described

Said: TypeAlias = bool | None
"""What an output said in ``satisfied``; None when it said nothing."""


class Look(NamedTuple):
    """One edge or exit route that was looked at, in order, and whether it matched."""

    kind: Literal["edge", "exit"]
    when: str
    to: str
    matched: bool
    place: int | None = None
    route: str | None = None
    used: int | None = None
    limit: int | None = None

    def reason(self, satisfied: Said) -> str:
        """Say in words why it matched or not, for an output that said ``satisfied``."""
        needs = described(self.when).needs
        if needs is None:
            return "always matches" if self.matched else "always would match, but a guarded exit goes first"
        said = "no satisfied" if satisfied is None else f"satisfied: {str(satisfied).lower()}"
        return f"the output says {said}; {self.when} needs satisfied: {str(needs).lower()}"


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


By: TypeAlias = Literal[
    "edge",
    "exit",
    "implied end",
    "empty loop",
    "repair",
    "draft",
    "finalize",
    "failure",
    "budget",
    "reissue",
    "pause",
    "escalate",
    "detour",
    "return",
    "person",
]
"""What chose the target of a step."""


class Decision(NamedTuple):
    """How one step ended.

    ``by`` says what chose the target: an edge, a loop exit, the implied end, an empty
    loop, a turn that is still owed (repair, draft, finalize, reissue), a person who is waited for (pause,
    escalate) or who has chosen, a detour and its way back, or a failure. ``reason`` says why the
    output asked for something else than a route, ``warnings`` what was odd about it.
    ``item`` is the item of the visit, ``done`` whether it advanced, and ``exhausted`` whether its list came to its end.
    """

    step: int
    socket: str | None
    visit: int | None
    item_key: str | None
    item_label: str | None
    by: By
    target: str | None
    satisfied: bool | None = None
    notes: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    assigned: tuple[Assigned, ...] = ()
    advance: AdvanceFact | None = None
    looks: tuple[Look, ...] = ()
    passed: tuple[Passed, ...] = ()
    reason: str = ""
    warnings: tuple[Issue, ...] = ()
    failure: Failure | None = None
    item: ItemId | None = None
    done: bool = False
    exhausted: bool = False

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The sockets that were passed over on the way in."""
        return tuple(one.socket for one in self.passed)

    @property
    def chosen(self) -> Look | None:
        """The edge or exit that was taken, if one was."""
        return next((look for look in self.looks if look.matched), None)
