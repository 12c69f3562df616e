"""Why two casts, alike up to here, differ in a step: in sentences, read off their decision records."""

from __future__ import annotations

from typing import NamedTuple

from materia_nb.engine.routing import Decision, Look
from materia_nb.engine.session import StepRecord
from materia_nb.insight.changes import Change, changes, shown
from materia_nb.insight.loadouts import compare_sockets
from materia_nb.insight.sides import Aspect, Side, alike, answer, prompt_layers, state_changes, went
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph

_SHOWN = 60
_PLACES = 3


class Difference(NamedTuple):
    """Where two casts first differ.

    Attributes:
        step: its number, the same in both; 0 when they differ before the first one.
        a: where the first cast went from there: a socket or ``end``; None when it failed, or has not gone on.
        b: where the second went.
        lines: which answer, verdict, edge or exit made the difference, a sentence each.
        aspects: in what the step differs; empty when only one of them has gone on, or they ended otherwise.
    """

    step: int
    a: str | None
    b: str | None
    lines: tuple[str, ...]
    aspects: tuple[Aspect, ...] = ()

    @property
    def why(self) -> str:
        """The reason in words."""
        return " ".join(self.lines)

    def __str__(self) -> str:
        head = f"Step {self.step}: A went to {self.a or 'nowhere'}, B to {self.b or 'nowhere'}."
        return "\n  ".join([head, *self.lines])


def between(
    one: StepRecord,
    other: StepRecord,
    aspects: tuple[Aspect, ...],
    names: tuple[str, str] = ("", ""),
    graphs: tuple[Graph, Graph] | None = None,
) -> Difference:
    """Tell why two steps differ, all steps before them being alike; ``graphs`` are the loadouts that they ran in."""
    told: list[str] = []
    if "socket" in aspects:
        told.append(f"A is at {_place(one)}, B at {_place(other)}.")
    if "given" in aspects:
        places = _places(state_changes(one.before.data, other.before.data, names), "state")
        told.append(f"The state was changed by a person before it: {places}.")
    if "answer" in aspects and "socket" not in aspects:
        told.append(_answers(one, other, names))
    if "route" in aspects or "socket" in aspects:
        told += [_way("A", one.decision), _way("B", other.decision)]
    elif "answer" in aspects:
        told.append(f"Both went to {went(one) or 'nowhere'}.")
    if "state" in aspects and not {"answer", "socket", "given"} & {*aspects}:
        places = _places(state_changes(one.after.data, other.after.data, names), "state")
        told.append(f"What was put into the state differs: {places}.")
    told += _loadouts(graphs, one, other)
    return Difference(one.number, went(one), went(other), tuple(told), aspects)


def after_the_last(a: Side, b: Side) -> Difference | None:
    """Tell how two casts differ whose common steps are alike: in how far they went, or how they ended."""
    ones, others = a.session.steps, b.session.steps
    number = min(len(ones), len(others))
    left, right = (went(steps[number - 1]) if number else None for steps in (ones, others))
    if len(ones) != len(others):
        shorter, longer, names = (a, b, "AB") if len(ones) < len(others) else (b, a, "BA")
        following = longer.session.steps[number]
        why = f"{names[0]} {_stands(shorter)} there; {names[1]} went on with {_place(following)}."
        return Difference(number, left, right, (why,))
    if _end(a) == _end(b):
        return None
    return Difference(number, left, right, (f"A {_stands(a)}; B {_stands(b)}.",))


def _end(side: Side) -> tuple[str, str | None]:
    state = side.session.state
    return state.status, state.failure.kind if state.failure else None


def _stands(side: Side) -> str:
    state = side.session.state
    if state.failure is not None:
        return f"is {state.status} ({state.failure.kind}: {_cut(state.failure.message)})"
    return f"is {state.status}"


def _place(step: StepRecord) -> str:
    return f"{step.socket} ({step.item_key})" if step.item_key else step.socket


def _answers(one: StepRecord, other: StepRecord, names: tuple[str, str]) -> str:
    a, b = answer(one), answer(other)
    where = _place(one)
    asked = prompt_layers(one, other, names)
    given = f"What it was asked differs, in: {', '.join(asked)}." if asked else ""
    if a is None or b is None:
        who = "neither" if a is b else "only B" if a is None else "only A"
        text = f"{where} has answered in {who}."
    elif isinstance(a, dict | list) and isinstance(b, dict | list):
        found = [change for change in changes(a, b) if not alike(change.a, change.b, names)]
        text = f"{where} answered otherwise: {_places(found, '$')}." if found else _turns(one, other)
    elif alike(a, b, names):
        text = _turns(one, other)
    else:
        text = f"{where} answered otherwise: {_both(a, b)}."
    return f"{text} {given}".strip()


def _turns(one: StepRecord, other: StepRecord) -> str:
    if len(one.turns) == len(other.turns):
        return f"{_place(one)} answered otherwise in an earlier turn of the visit."
    return f"{_place(one)} came to its answer in {len(one.turns)} turns in A, in {len(other.turns)} in B."


def _places(found: list[Change], root: str) -> str:
    told = [
        f"{f'{root}.{one.path}' if one.path else root} is {_both(one.a, one.b)}"
        for one in sorted(found, key=lambda one: one.path.rpartition(".")[2] != "satisfied")[:_PLACES]
    ]
    more = [f"and {len(found) - _PLACES} more"] if len(found) > _PLACES else []
    return "; ".join(told + more)


def _way(name: str, decision: Decision | None) -> str:
    if decision is None:
        return f"{name} waits for the answer."
    if decision.failure is not None:
        return f"{name} stopped ({decision.failure.kind}: {_cut(decision.failure.message)})."
    look = decision.chosen
    if look is None:
        return f"{name} went to {decision.target} ({decision.by})."
    return f"{name} took {_edge(look)} to {look.to}: {look.reason(decision.satisfied)}."


def _edge(look: Look) -> str:
    return f"exit {look.route}" if look.place is None else f"edge {look.place + 1}"


def _loadouts(graphs: tuple[Graph, Graph] | None, one: StepRecord, other: StepRecord) -> list[str]:
    """Say how the loadouts differ at this socket, since the same answer can lead elsewhere in another graph."""
    if graphs is None or graphs[0] is graphs[1] or one.socket != other.socket:
        return []
    found = compare_sockets(*graphs, one.socket)
    if not found:
        return []
    told = "; ".join(f"{row.field} is {_both(row.a, row.b)}" for row in found[:_PLACES])
    more = f"; and {len(found) - _PLACES} more" if len(found) > _PLACES else ""
    return [f"The loadouts differ there: {told}{more}."]


def _both(a: JSON, b: JSON) -> str:
    left, right = shown(a, b, _SHOWN)
    return f"{left} in A, {right} in B"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
