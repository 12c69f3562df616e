"""What every transition of a cast gives: the next state, events, a decision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from materia_nb.engine.prompt import Prompt
from materia_nb.engine.prompt_layers import cut
from materia_nb.engine.routing import Assigned, By, Decision
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import (
    CastState,
    Draft,
    Failure,
    Visit,
)
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON

CORRECT_THE_UTILITY: Final = "correct the utility, then recast; the cast keeps its copy of the definition until redefine takes a changed one"
"""What to do about a utility that failed."""


class Event(NamedTuple):
    """Something that happened, for the journal; names and fields as R29 lists them."""

    type: str
    data: Mapping[str, JSON]


class Step(NamedTuple):
    """What a transition gives. ``prompt`` is set when an agent is to answer, ``reading`` when an output was read."""

    state: CastState
    events: tuple[Event, ...] = ()
    decision: Decision | None = None
    prompt: Prompt | None = None
    reading: Reading | None = None


def stop_cast(
    draft: Draft,
    failure: Failure,
    visit: Visit | None = None,
    reading: Reading | None = None,
    decision: Decision | None = None,
    *,
    first: Event | None = None,
    more: tuple[Event, ...] = (),
) -> Step:
    """Fail the cast; ``first`` and ``more`` are the events before its end."""
    decision = decision or decision_of(visit or draft.at, "failure", None, reading)
    draft.status, draft.failure, draft.next = "failed", failure, None
    data: dict[str, JSON] = {"ok": False, "error": failure.message, "kind": failure.kind}
    if failure.socket:
        data["socket"] = failure.socket
    events = (*((first,) if first else ()), *more, Event("cast_end", data))
    return Step(draft.done(), events, decision._replace(failure=failure), None, reading)


def decision_of(
    visit: Visit | None,
    by: By,
    target: str | None,
    reading: Reading | None = None,
    assigned: tuple[Assigned, ...] = (),
) -> Decision:
    """Begin the decision record of a visit with what its output said."""
    item = visit.item if visit else None
    return Decision(
        visit.step if visit else 0,
        visit.socket if visit else None,
        visit.visit if visit else None,
        item.key if item else None,
        item.label if item else None,
        by,
        target,
        reading.satisfied if reading else None,
        reading.notes if reading else (),
        reading.issues if reading else (),
        assigned,
        reason=reading.reason if reading else "",
        warnings=reading.warnings if reading else (),
        item=item.id if item else None,
    )


def about(rules: Rules, visit: Visit) -> dict[str, JSON]:
    """The fields that say which visit an event is about, as the reference names them."""
    return about_visit(rules.sockets[visit.socket], visit)


def about_visit(here: SocketRules, visit: Visit) -> dict[str, JSON]:
    """The same for whoever has the rules of the socket."""
    item = visit.item
    if item is None:
        return here.about
    return {**here.about, "itemKey": item.key, "itemLabel": item.label, "itemLabelShort": short(item.label)}


@lru_cache(maxsize=4096)
def short(label: str, most: int = 60) -> str:
    """A label on one line, at most ``most`` characters."""
    return cut(" ".join(label.split()), most)


def waiting_visit(state: CastState) -> Visit:
    """Return the visit that owes an output, or raise MateriaError (``not_waiting``)."""
    visit = state.waiting_at
    if visit is None:
        raise MateriaError(
            f"No socket is waiting for an answer; the cast is {state.status}.",
            hint="step first",
            kind="not_waiting",
        )
    return visit


def telling(step: Step, process: str) -> Step:
    """Add to the failure of a refused output how the process of its utility ended (R23)."""
    failure = step.state.failure
    if not process or failure is None or failure.kind != "invalid_output":
        return step
    message = f"{failure.message} {process}"
    added: dict[str, dict[str, JSON]] = {
        "cast_end": {"error": message},
        "socket_refused": {"process": process},
    }
    return step._replace(
        state=step.state._replace(failure=failure._replace(message=message)),
        events=tuple(
            event._replace(data={**event.data, **added.get(event.type, {})}) for event in step.events
        ),
    )
