"""How two differ: values by dotted path, loadouts, and two steps beside one another; never as text.

Of steps: what was said, decided and spent in each, in what they differ, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision, short
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.errors import alike, counted
from materia_nb.jsonvalue import JSON, MISSING, compact, same
from materia_nb.loadout.graph import Budget, Edge, ExitRoute, Graph, Limits, Loop, Materia, Route, Socket

_MOST_CHANGES: Final = 200
"""How many places are told at most; two values that have nothing in common differ everywhere."""


class ValueChange(NamedTuple):
    """One place where two values differ; MISSING where there is nothing. The path is empty for the whole value."""

    path: str
    a: JSON
    b: JSON


def value_changes(a: JSON, b: JSON) -> list[ValueChange]:
    """Return where ``b`` differs from ``a``, objects and lists looked into; at most :data:`_MOST_CHANGES` places."""
    return list(islice(_changes("", a, b), _MOST_CHANGES))


def _changes(path: str, a: JSON, b: JSON) -> Iterator[ValueChange]:
    if a is b:
        return  # states of one cast share what did not change
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _changes(_joined(path, key), a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        for place, (left, right) in enumerate(zip_longest(a, b, fillvalue=MISSING)):
            yield from _changes(_joined(path, str(place)), left, right)
    elif not same(a, b):
        yield ValueChange(path, a, b)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


Side: TypeAlias = Literal["A", "B", "both"]
"""Which of two that are compared has something."""
_Key = TypeVar("_Key", bound=Hashable)


def membership(a: Iterable[_Key], b: Iterable[_Key]) -> dict[_Key, Side]:
    """Return which of two has each thing, in the order of the first."""
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    return {
        one: "both" if one in left and one in right else "A" if one in left else "B" for one in left | right
    }


def cut_around_difference(a: str, b: str, most: int) -> tuple[str, str]:
    """Cut two long texts to about ``most`` characters, so that the place where they first differ is seen in both."""
    start = max(0, alike(a, b) - most // 2) if max(len(a), len(b)) > most else 0
    return _cut(a, start, most), _cut(b, start, most)


def _cut(text: str, start: int, most: int) -> str:
    end = start + most
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def format_difference(a: JSON, b: JSON, most: int) -> tuple[str, str]:
    """Write two values that differ on one line each, cut to where they do."""
    return cut_around_difference(_line(a), _line(b), most)


def _line(value: JSON) -> str:
    if value is MISSING:
        return "(none)"
    return " ".join(value.split()) if isinstance(value, str) else compact(value)


# -- two loadouts ----------------------------------------------------------------------------

_Part: TypeAlias = Socket | Loop | Materia | Limits | Budget
_OWN_ROWS: Final = frozenset({"id", "edges", "materia", "loops", "routes"})
"""What is compared in rows of its own."""
_NOT_COMPARED: Final = frozenset({"layout", "parse_derived", "raw", "owner", "group"})
"""What does not change how a cast goes: where something is drawn, listed or kept."""


class LoadoutDifference(NamedTuple):
    """One thing that differs: of which socket, materia or loop, in which field; MISSING where one has it not."""

    of: str
    field: str
    a: JSON
    b: JSON


class LoadoutComparison:
    """Two loadouts beside one another; true if a cast could go differently in them. Their names do not count."""

    def __init__(self, a: Graph, b: Graph) -> None:
        """Compare two loadouts."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return bool(self.differences)

    @cached_property
    def differences(self) -> tuple[LoadoutDifference, ...]:
        """What differs, in the order: the loadout itself, its sockets, loops, materia, limits."""
        a, b = self.a, self.b
        rows = list(_field("loadout", "entry", a.entry, b.entry))
        for id_ in membership(a.sockets, b.sockets):
            rows += compare_sockets(a, b, id_)
        for id_ in membership(a.loops, b.loops):
            rows += _loops(id_, a.loops.get(id_), b.loops.get(id_))
        left, right = _materia(a), _materia(b)
        for id_, has in membership(left, right).items():
            if has == "both":
                rows += _fields(f"materia {id_}", left[id_], right[id_])
        rows += _fields("limits", a.limits, b.limits)
        rows += _fields("budget", a.budget, b.budget)
        return tuple(rows)

    @property
    def sockets(self) -> Mapping[str, Side]:
        """Which of the two has a socket."""
        return membership(self.a.sockets, self.b.sockets)

    @property
    def routes(self) -> Mapping[Route, Side]:
        """Which of the two has an edge of a place, or an exit; ``changed_routes`` are those that both have."""
        return membership(_routes(self.a), _routes(self.b))

    @property
    def changed_routes(self) -> frozenset[Route]:
        """The edges and exits that stand in the same place and lead elsewhere, at another time, or as often otherwise."""
        left, right = _routes(self.a), _routes(self.b)
        return frozenset(key for key in left.keys() & right.keys() if left[key] != right[key])


def compare_sockets(a: Graph, b: Graph, id_: str) -> list[LoadoutDifference]:
    """Return how a socket of the same id differs in two loadouts, its edges one by one."""
    one, other = a.sockets.get(id_), b.sockets.get(id_)
    if one is None or other is None:
        return list(_field(id_, "socket", _placed(one), _placed(other)))
    rows = list(_field(id_, "materia", one.materia.id, other.materia.id))
    rows += _fields(id_, one, other)
    rows += _list(id_, "edge", list(map(_edge, one.edges)), list(map(_edge, other.edges)))
    return rows


def _placed(socket: Socket | None) -> JSON:
    return MISSING if socket is None else socket.materia.id


def _loops(id_: str, a: Loop | None, b: Loop | None) -> list[LoadoutDifference]:
    name = f"loop {id_}"
    if a is None or b is None:
        return list(
            _field(name, "sockets", *(MISSING if one is None else list(one.sockets) for one in (a, b)))
        )
    exits = (list(map(_exit, one.routes)) for one in (a, b))
    return [*_fields(name, a, b), *_list(name, "exit", *exits)]


def _materia(graph: Graph) -> dict[str, Materia]:
    return {socket.materia.id: socket.materia for socket in graph.sockets.values()}


def _edge(edge: Edge) -> str:
    most = "" if edge.max_traversals is None else f", at most {counted(edge.max_traversals, 'time')}"
    return f"{edge.when} to {edge.to}{most}"


def _exit(route: ExitRoute) -> str:
    return f"{route.condition} from {route.source} to {route.target}"


def _routes(graph: Graph) -> dict[Route, str]:
    found: dict[Route, str] = {}
    for socket in graph.sockets.values():
        found |= {(socket.id, edge.place): _edge(edge) for edge in socket.edges}
    for loop in graph.loops.values():
        found |= {(route.source, route.edge_id): _exit(route) for route in loop.routes}
    return found


def _list(of: str, field: str, a: list[str], b: list[str]) -> Iterator[LoadoutDifference]:
    for number, (one, other) in enumerate(zip_longest(a, b, fillvalue=MISSING), start=1):
        yield from _field(of, f"{field} {number}", one, other)


def _fields(of: str, a: _Part, b: _Part) -> Iterator[LoadoutDifference]:
    for field in fields(a):
        if field.name not in _OWN_ROWS | _NOT_COMPARED:
            yield from _field(of, field.name, getattr(a, field.name), getattr(b, field.name))


def _field(of: str, field: str, a: object, b: object) -> Iterator[LoadoutDifference]:
    if a != b:
        yield LoadoutDifference(of, field, _value(a), _value(b))


def _value(value: object) -> JSON:
    """Write a part of a graph as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _value(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _value(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_value(child) for child in value]
    return value


Aspect: TypeAlias = Literal["socket", "given", "answer", "route", "state"]
"""In what two steps can differ: where they are, what a person changed before, what was said, where it went, what it left."""


class ComparedCast(NamedTuple):
    """One of two casts that are compared: its name, what it runs by, everything it knows.

    ``name`` is the id of the cast too, which is taken out of texts before they are compared. ``kept`` is where its files are
    kept, if they are.
    """

    name: str
    rules: Rules
    session: Session
    kept: Path | None = None

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.session.steps)} steps>"


def step_answer(step: StepRecord) -> JSON:
    """Return what counts as the answer of a step: parsed where it is JSON, else the text; None while there is none."""
    reading = step.reading
    if reading is None or reading.value is None or reading.value is MISSING:
        return step.output
    return reading.value


def step_target(step: StepRecord) -> str | None:
    """Return where a step went: a socket or ``end``; None when it failed, or still owes an answer."""
    return None if step.decision is None else step.decision.target


def step_route(step: StepRecord) -> tuple[str | None, ...]:
    """Return the way of a step alone: its socket and item, where it went, and the failure that its answer led to."""
    decision = step.decision
    by_answer = decision is not None and (decision.by != "failure" or decision.said.error is not None)
    failure = decision.failure if decision is not None and by_answer else None
    return step.socket, step.item_key, step_target(step), failure.kind if failure else None


def differing_prompt_parts(
    a: Prompt | None, b: Prompt | None, names: tuple[str, str] = ("", "")
) -> tuple[str, ...]:
    """Name the parts of two prompts that differ; ids of the casts do not count."""
    left, right = prompt_part_texts(a, names[0]), prompt_part_texts(b, names[1])
    return tuple(name for name in dict.fromkeys((*left, *right)) if left.get(name) != right.get(name))


def prompt_part_texts(prompt: Prompt | None, cast: str) -> Mapping[str, str]:
    """Return the parts of a prompt that say something, by name, the id of its cast taken out."""
    parts = () if prompt is None else prompt.parts
    return {part.name: _without_id(part.text, cast) for part in parts if part.text}


def _without_id(text: str, name: str) -> str:
    """Return a text in which the id of its cast is no longer told from another's."""
    return text.replace(name, "<cast>") if name else text


def _alike(a: JSON, b: JSON, names: tuple[str, str] = ("", "")) -> bool:
    """Whether two values are the same, but for the ids of their casts."""
    if same(a, b):
        return True
    if isinstance(a, str) and isinstance(b, str):
        return _without_id(a, names[0]) == _without_id(b, names[1])
    if not any(isinstance(a, kind) and isinstance(b, kind) for kind in (dict, list)):
        return False
    return _without_id(compact(a), names[0]) == _without_id(compact(b), names[1])


def number_repeats(keys: Iterable[_Key]) -> Iterator[tuple[_Key, int]]:
    """Give each key with how many times it has come so far."""
    seen: Counter[_Key] = Counter()
    for key in keys:
        seen[key] += 1
        yield key, seen[key]


def changes_beyond_ids(a: JSON, b: JSON, names: tuple[str, str] = ("", "")) -> list[ValueChange]:
    """Return where two values differ, but for the ids of their casts."""
    return [one for one in value_changes(a, b) if not _alike(one.a, one.b, names)]


def differing_aspects(a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> tuple[Aspect, ...]:
    """Name in what two steps differ in what was done; empty when they did the same.

    What was asked, how long it took and what it cost are not part of it.
    """
    differ: dict[Aspect, bool] = {
        "socket": (a.socket, a.item_key) != (b.socket, b.item_key),
        "given": not _alike(dict(a.before.data), dict(b.before.data), names),
        "answer": not _same_answers(a, b, names),
        "route": _way(a) != _way(b),
        "state": not _alike(dict(a.after.data), dict(b.after.data), names),
    }
    return tuple(aspect for aspect, is_different in differ.items() if is_different)


def _same_answers(a: StepRecord, b: StepRecord, names: tuple[str, str]) -> bool:
    if len(a.turns) != len(b.turns):
        return False
    return all(
        x.mode == y.mode and _alike(_said(x.text, x.reading), _said(y.text, y.reading), names)
        for x, y in zip(a.turns, b.turns, strict=True)
    )


def _said(text: str, reading: object) -> JSON:
    value = getattr(reading, "value", None)
    return text.strip() if value is None or value is MISSING else value


def _way(step: StepRecord) -> tuple[object, ...]:
    """What was decided, apart from how often an edge had been used and what a failure says."""
    decision = step.decision
    if decision is None:
        return ()
    failure = decision.failure.kind if decision.failure else None
    return decision.by, decision.target, decision.satisfied, failure, decision.done, decision.exhausted


# -- why they differ -------------------------------------------------------------------------

_SHOWN = 60
_PLACES = 3


class FirstDifference(NamedTuple):
    """Where two casts first differ.

    Attributes:
        step: its number, the same in both; 0 when they differ before the first one.
        a: where the first cast went from there: a socket or ``end``; None when it failed, or has not gone on.
        b: where the second went.
        lines: which answer, verdict, edge or exit made the difference, a sentence each.
        aspects: in what the step differs; empty when only one of them has gone on, or they ended otherwise.
        lane: the lane of the step, "" for the cast itself.
        shorter: ``A`` or ``B`` where only the other has gone on from there, else "".
    """

    step: int
    a: str | None
    b: str | None
    lines: tuple[str, ...]
    aspects: tuple[Aspect, ...] = ()
    lane: str = ""
    shorter: Literal["", "A", "B"] = ""

    @property
    def place(self) -> str:
        """Which step it is, and of which lane, in words."""
        return f"step {self.step}{f' in lane {self.lane}' if self.lane else ''}"

    @property
    def why(self) -> str:
        """The reason in words."""
        return " ".join(self.lines)

    def __str__(self) -> str:
        head = f"S{self.place[1:]}: A went to {self.a or 'nowhere'}, B to {self.b or 'nowhere'}."
        return "\n  ".join([head, *self.lines])


def explain_difference(
    one: StepRecord,
    other: StepRecord,
    aspects: tuple[Aspect, ...],
    names: tuple[str, str] = ("", ""),
    graphs: tuple[Graph, Graph] | None = None,
) -> FirstDifference:
    """Tell why two steps differ, all steps before them being alike; ``graphs`` are the loadouts that they ran in."""
    told: list[str] = []
    if "socket" in aspects:
        told.append(f"A is at {_place_words(one)}, B at {_place_words(other)}.")
    if "given" in aspects:
        places = _places(changes_beyond_ids(one.before.data, other.before.data, names), "state")
        told.append(f"The state was changed by a person before it: {places}.")
    if "answer" in aspects and "socket" not in aspects:
        told.append(_answers(one, other, names))
    if "route" in aspects or "socket" in aspects:
        told += [_way_words("A", one.decision), _way_words("B", other.decision)]
    elif "answer" in aspects:
        told.append(f"Both went to {step_target(one) or 'nowhere'}.")
    if "state" in aspects and not {"answer", "socket", "given"} & {*aspects}:
        places = _places(changes_beyond_ids(one.after.data, other.after.data, names), "state")
        told.append(f"What was put into the state differs: {places}.")
    told += _loadouts(graphs, one, other)
    return FirstDifference(one.number, step_target(one), step_target(other), tuple(told), aspects, one.lane)


def compare_ends(a: ComparedCast, b: ComparedCast) -> FirstDifference | None:
    """Tell how two casts differ whose common steps are alike: in how far they went, or how they ended."""
    ones, others = a.session.steps, b.session.steps
    count = min(len(ones), len(others))
    left, right = (step_target(steps[count - 1]) if count else None for steps in (ones, others))
    state = a.session.start
    number, lane = state.steps + count, state.lane.name if state.lane is not None else ""
    if len(ones) != len(others):
        shorter, longer, names = (a, b, "AB") if len(ones) < len(others) else (b, a, "BA")
        following = longer.session.steps[count]
        why = f"{names[0]} {_stands(shorter)} there; {names[1]} went on with {_place_words(following)}."
        return FirstDifference(number, left, right, (why,), (), lane, "A" if shorter is a else "B")
    if _end(a) == _end(b):
        return None
    return FirstDifference(number, left, right, (f"A {_stands(a)}; B {_stands(b)}.",), (), lane)


def _end(side: ComparedCast) -> tuple[str, str | None]:
    state = side.session.state
    return state.status, state.failure.kind if state.failure else None


def _stands(side: ComparedCast) -> str:
    state = side.session.state
    if state.failure is not None:
        return f"is {state.status} ({short(state.failure.message, _SHOWN)})"
    return f"is {state.status}"


def _place_words(step: StepRecord) -> str:
    return f"{step.socket} ({step.item_key})" if step.item_key else step.socket


def _answers(one: StepRecord, other: StepRecord, names: tuple[str, str]) -> str:
    a, b = step_answer(one), step_answer(other)
    visit = _place_words(one)
    asked = differing_prompt_parts(one.prompt, other.prompt, names)
    given = f"What it was asked differs, in: {', '.join(asked)}." if asked else ""
    if a is None or b is None:
        who = "neither" if a is b else "only B" if a is None else "only A"
        text = f"{visit} has answered in {who}."
    elif isinstance(a, dict | list) and isinstance(b, dict | list):
        found = changes_beyond_ids(a, b, names)
        text = f"{visit} answered otherwise: {_places(found, '$')}." if found else _turns(one, other)
    elif _alike(a, b, names):
        text = _turns(one, other)
    else:
        text = f"{visit} answered otherwise: {_both(a, b)}."
    return f"{text} {given}".strip()


def _turns(one: StepRecord, other: StepRecord) -> str:
    if len(one.turns) == len(other.turns):
        return f"{_place_words(one)} answered otherwise in an earlier turn of the visit."
    return (
        f"{_place_words(one)} came to its answer in {len(one.turns)} turns in A, in {len(other.turns)} in B."
    )


def _places(found: list[ValueChange], root: str) -> str:
    warnings = [
        f"{f'{root}.{one.path}' if one.path else root} is {_both(one.a, one.b)}"
        for one in sorted(found, key=lambda one: one.path.rpartition(".")[2] != "satisfied")[:_PLACES]
    ]
    more = [f"and {len(found) - _PLACES} more"] if len(found) > _PLACES else []
    return "; ".join(warnings + more)


def _way_words(name: str, decision: Decision | None) -> str:
    if decision is None:
        return f"{name} waits for the answer."
    if decision.failure is not None:
        return f"{name} stopped: {short(decision.failure.message, _SHOWN)}"
    look = decision.chosen
    if look is None:
        return f"{name} went to {decision.target} ({decision.by})."
    way = f"exit {look.route}" if look.place is None else f"edge {look.place + 1}"
    return f"{name} took {way} to {look.to}: {look.reason(decision.result)}."


def _loadouts(graphs: tuple[Graph, Graph] | None, one: StepRecord, other: StepRecord) -> list[str]:
    """Say how the loadouts differ at this socket, since the same answer can lead elsewhere in another graph."""
    if graphs is None or graphs[0] is graphs[1] or one.socket != other.socket:
        return []
    found = compare_sockets(*graphs, one.socket)
    if not found:
        return []
    differences = "; ".join(f"{row.field} is {_both(row.a, row.b)}" for row in found[:_PLACES])
    more = f"; and {len(found) - _PLACES} more" if len(found) > _PLACES else ""
    return [f"The loadouts differ there: {differences}{more}."]


def _both(a: JSON, b: JSON) -> str:
    left, right = (
        f'"{text}"' if isinstance(value, str) else text
        for value, text in zip((a, b), format_difference(a, b, _SHOWN), strict=True)
    )
    return f"{left} in A, {right} in B"
