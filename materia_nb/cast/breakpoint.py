"""One breakpoint: what it is, its words, whether a cast is at it, and the file in which those of a project are kept."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from materia_nb.display.escape import part
from materia_nb.engine.cast_warnings import hollow_fields, latest_repeats, repeats
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, TurnRecord, every_step
from materia_nb.engine.state import Unit, Usage
from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain, replace_file
from materia_nb.insight.estimate import step_usage
from materia_nb.jsonvalue import JSON, get_path, same, split_path
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import disk, json_bytes

BreakKind: TypeAlias = Literal[
    "before", "after", "edge", "refused", "not_satisfied", "changed", "same_again", "hollow_answer", "every"
]
"""What a breakpoint stops at."""
_NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "before": frozenset({"socket"}),
    "after": frozenset({"socket"}),
    "edge": frozenset({"socket", "edge"}),
    "refused": frozenset(),
    "not_satisfied": frozenset(),
    "changed": frozenset({"path"}),
    "same_again": frozenset(),
    "hollow_answer": frozenset(),
    "every": frozenset({"amount", "unit"}),
}
"""The fields that each kind must have; those that need no socket may have one, but for ``changed``."""


def amount_of(words: str) -> tuple[float, Any]:
    """Read an amount, ``20000 tokens`` or ``2.5usd``; what is none is 0, or of a unit that there is not."""
    match = re.fullmatch(r"([\d_.]+)\s*([a-z]+)", words.strip().lower())
    try:
        number, unit = (float(match[1]), match[2]) if match else (0.0, words)
    except ValueError:
        number, unit = 0.0, words
    return number, {"token": "tokens", "second": "seconds", "turn": "turns", "s": "seconds"}.get(unit, unit)


StopCondition: TypeAlias = Callable[[Any], bool]
"""Whether a run stops at a breakpoint: a function of the cast. It lasts as long as its kernel."""

FILE: Final = "breakpoints.json"
"""What the file is called that keeps the breakpoints of a project, beside its casts."""
_MOST_BYTES: Final = 1_000_000
_MOST: Final = 200
"""How many breakpoints of a loadout are read: each is looked at behind each step."""
_LONGEST: Final = 1_000


class Breakpoint(NamedTuple):
    """Where runs stop; nothing of it belongs to one cast.

    Attributes:
        kind: ``before`` or ``after`` a socket, on an ``edge`` out of it, when an output is ``refused``, when one says
            ``not_satisfied``, when one is the ``same_again`` or a ``hollow_answer`` (R64), when a step ``changed`` what stands at a
            path of the state, or behind the step with which one more amount of tokens, cost, time or turns is used: ``every``.
        socket: which; None for ``changed``, or for any socket where an output is refused or not satisfied.
        edge: an edge by its number among those of its socket, from 1, or every way to a socket or ``end`` by that name.
        path: dotted, of what is watched in the state.
        nth: only the n-th time in a cast; every time if None.
        amount: how much of ``unit`` may be used until it stops, and again after each stop; by the socket alone if there is one.
        unit: what is counted. What nobody reported is not counted (R56).
        lane: only in the lane of this name; in every lane, and outside of them, if None.
        where: only where this condition holds, such as ``state.score < 3``; see ``condition_of``.
    """

    kind: BreakKind
    socket: str | None = None
    edge: int | str | None = None
    path: str | None = None
    nth: int | None = None
    amount: float | None = None
    unit: Unit | None = None
    lane: str | None = None
    where: str | None = None

    @property
    def every_time(self) -> Breakpoint:
        """The same without ``nth`` and ``where``."""
        return self._replace(nth=None, where=None)

    def words(self, graph: Graph | None = None, names: Mapping[str, str] | None = None) -> str:
        """Say where it stops, as ``before Socket-3`` or ``Socket-4 → Socket-2 (edge 2), 3rd time``.

        Args:
            graph: tells where an edge with a number leads.
            names: how sockets are called instead of by their ids.
        """

        def name(id_: str) -> str:
            return names[id_] if names and id_ in names else part(id_, 60)

        where = name(self.socket) if self.socket else "any socket"
        words = {
            "before": f"before {where}",
            "after": f"after {where}",
            "refused": f"refused output of {where}",
            "not_satisfied": f"{where} not satisfied",
            "same_again": f"{where} says the same again",
            "hollow_answer": f"hollow answer of {where}",
        }.get(self.kind, "")
        if self.kind == "every":
            words = f"every {self.amount:,g} {self.unit}" + (f" of {where}" if self.socket else "")
        elif self.kind == "changed":
            words = f"state.{part(self.path or '', 60)} changed"
        elif self.kind == "edge":
            target = self._target(graph) if isinstance(self.edge, int) else str(self.edge)
            number = f" (edge {self.edge})" if isinstance(self.edge, int) else ""
            words = f"{where} → {name(target)}{number}" if target else f"edge {self.edge} of {where}"
        words += "" if self.lane is None else f" in lane {part(self.lane, 60)}"
        words += "" if self.where is None else f", where {part(self.where, 80)}"
        return words if self.nth is None else f"{words}, {ordinal(self.nth)} time"

    def _target(self, graph: Graph | None) -> str | None:
        socket = graph.sockets.get(self.socket or "") if graph is not None else None
        index = self.edge - 1 if isinstance(self.edge, int) else -1
        return socket.edges[index].to if socket is not None and 0 <= index < len(socket.edges) else None

    def marks(self, source: str, edge_index: int | None, target: str) -> bool:
        """Whether it stops on a line of the graph: from ``source`` to ``target``, with ``place`` if it is an edge."""
        if self.kind != "edge" or self.socket != source:
            return False
        return (
            self.edge == target
            if isinstance(self.edge, str)
            else edge_index is not None and self.edge == edge_index + 1
        )

    def hit(self, rules: Rules, session: Session, upcoming: str | None) -> bool:
        """Whether a cast is at it between two steps, or before the repair of a refused output.

        Args:
            rules: what the cast runs by.
            session: what the cast knows.
            upcoming: the socket that comes next.
        """
        return self._is_at(rules, session, upcoming) and (
            self.where is None or condition_of(self.where)(_facts_of(session))
        )

    def _is_at(self, rules: Rules, session: Session, upcoming: str | None) -> bool:
        state, last = session.state, session.steps.latest
        if self.lane is not None and (state.lane is None or state.lane.name != self.lane):
            return False
        if self.kind == "before":
            is_here = state.status == "ready" and upcoming is not None and upcoming == self.socket
            return is_here and self._is_time(lambda: state.visits.get(upcoming or "", 0) + 1)
        if last is None or state.status != ("waiting" if self.kind == "refused" else "ready"):
            return False
        if self.kind == "same_again":
            is_here = self._is_about(last) and latest_repeats(rules, session)
            return is_here and self._is_time(lambda: sum(map(self._is_about, repeats(rules, session))))
        if self.kind == "every":
            return self._passed(session, last)
        if self.kind == "refused":
            is_here = self._is_about(last) and bool(last.turns) and _is_refused(last.turns[-1])
        else:
            is_here = self._times(rules, last) > 0
        return is_here and self._is_time(lambda: sum(self._times(rules, step) for step in session.steps))

    def _passed(self, session: Session, last: StepRecord) -> bool:
        """Return True if the last step, with the lanes joined before it, used up one more amount."""
        after = self._used_by(step for step, _ in every_step(session))
        joined = (streams_ for streams_ in session.streams if streams_.step == last.number - 1)
        lanes = (step for one in joined for lane in one.lanes.values() for step in lane.session.steps)
        amount = self.amount or 0.0
        return (after - self._used_by((last, *lanes))) // amount < after // amount

    def _used_by(self, steps: Iterable[StepRecord]) -> float:
        return sum(self._used(step) for step in steps if self._is_about(step))

    def _used(self, step: StepRecord) -> float:
        if self.unit == "turns":
            return sum(turn.prompt is not None for turn in step.turns)
        if self.unit == "seconds":
            return (step.worked or 0) / 1000
        return self._spent(step_usage(step))

    def _spent(self, usage: Usage) -> float:
        return (usage.cost if self.unit == "usd" else usage.tokens) or 0

    def _is_time(self, count: Callable[[], int]) -> bool:
        return self.nth is None or self.nth == count()

    def _is_about(self, step: StepRecord) -> bool:
        return self.socket in (None, step.socket)

    def _times(self, rules: Rules, step: StepRecord) -> int:
        """How often it was come to in or behind a step."""
        if not self._is_about(step):
            return 0
        times = 1
        match self.kind:
            case "refused":
                times = sum(_is_refused(turn) for turn in step.turns)
            case "edge":
                times = self._taken(step.decision)
            case "hollow_answer":
                times = bool(hollow_fields(rules, step))
            case "not_satisfied":
                times = step.decision is not None and step.decision.satisfied is False
            case "changed":
                times = self._changed(step)
        return times

    def _taken(self, decision: Decision | None) -> bool:
        if decision is None or isinstance(self.edge, str):
            return decision is not None and decision.target == self.edge
        chosen = decision.chosen
        return chosen is not None and chosen.place is not None and chosen.place + 1 == self.edge

    def _changed(self, step: StepRecord) -> bool:
        segments = split_path(self.path or "")
        before, after = (get_path(dict(state.data), segments) for state in (step.before, step.after))
        return not same(before, after)

    def as_json(self) -> dict[str, JSON]:
        """Return it as the file and the panel have it: only the fields that say something."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class BreakpointSet:
    """Where runs stop at one moment. Iterating gives each :class:`Breakpoint`."""

    def __init__(self, conditions: Mapping[Breakpoint, StopCondition | None] | None = None) -> None:
        """Keep these breakpoints, each with its condition if it has one; none if left out."""
        self._conditions = dict(conditions or {})

    @property
    def conditions(self) -> Mapping[Breakpoint, StopCondition | None]:
        """The breakpoints, each with its condition if it has one."""
        return self._conditions

    @property
    def paths(self) -> list[str]:
        """The paths in the state that stop a run when a step changes what is there."""
        return [condition.path for condition in self.conditions if condition.path is not None]

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(tuple(self.conditions))

    def __len__(self) -> int:
        return len(self.conditions)

    def __repr__(self) -> str:
        return f"<breakpoints: {'; '.join(breakpoint_.words() for breakpoint_ in self) or 'none'}>"


def _is_refused(turn: TurnRecord) -> bool:
    return turn.mode != "correction" and turn.reading is not None and not turn.reading.accepted


def ordinal(number: int) -> str:
    """Write a place in an order: 1st, 2nd, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def breakpoint_of(value: object) -> Breakpoint:
    """Read what :meth:`Breakpoint.as_json` gave.

    Raises:
        MateriaError: it is not a breakpoint (``bad_breakpoint``).
    """
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    needs = _NEEDS.get(str(given.get("kind")))
    fields = set(given) - {"kind", "nth", "lane", "where"}
    if (
        needs is not None
        and needs <= fields <= needs | (frozenset() if "path" in needs else {"socket"})
        and all(_fits(name, one) for name, one in given.items())
    ):
        return Breakpoint(**given)
    raise MateriaError(f"This is not a breakpoint: {part(str(value), 200)}", hint="remove it", kind="bad_breakpoint")


def _fits(name: str, value: object) -> bool:
    if name == "amount":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
    if name == "unit":
        return value in get_args(Unit)
    if name == "nth" or (name == "edge" and not isinstance(value, str)):
        return type(value) is int and value >= 1
    if not isinstance(value, str) or len(value) > _LONGEST or value.encode("utf-8", "replace").decode() != value:
        return False
    return (name != "path" or bool(split_path(value))) and (name != "where" or _is_condition(value))


# -- conditions ----------------------------------------------------------------------------------

StateFacts: TypeAlias = Mapping[str, JSON]
_CONSTANTS: Final[Mapping[str, JSON]] = {"true": True, "false": False, "null": None}
_NAMES: Final = ("state", "item", "output", "steps", "visits")
_COMPARED: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _facts_of(session: Session) -> StateFacts:
    """What a condition can speak of: the state, the current item, the last output, the number of steps, visits by socket."""
    last = session.steps.latest
    data = dict(session.state.data)
    return {
        "state": data,
        "item": data.get("item"),
        "output": None if last is None else last.output,
        "steps": len(session.steps),
        "visits": dict(session.state.visits),
    }


@lru_cache(maxsize=256)
def condition_of(text: str) -> Callable[[StateFacts], bool]:
    """Read a condition: comparisons, ``in``, ``and``, ``or`` and ``not`` over what :func:`_facts_of` gives; nothing is called but ``len``.

    Such as ``state.score < 3``, ``item.title == "Draft"``, ``"TODO" in output``, ``visits["Socket-3"] > 1 and not state.done``. What is not
    there is null, and what cannot be compared does not hold.

    Raises:
        MateriaError: it is none (``bad_condition``).
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _value_of(tree, dict.fromkeys(_NAMES))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MateriaError(
            f"This is not a condition: {getattr(error, 'msg', None) or error}.",
            where=part(text, 200),
            hint='as in state.score < 3, item.title == "Draft", "TODO" in output; there are ' + ", ".join(_NAMES),
            kind="bad_condition",
        ) from None
    return lambda facts: bool(_value_of(tree, facts))


def _is_condition(text: str) -> bool:
    try:
        condition_of(text)
    except MateriaError:
        return False
    return True


def _value_of(node: ast.expr, facts: StateFacts) -> Any:
    """Return the value of an expression; raises ValueError for what no condition has."""
    read = _VALUES.get(type(node))
    if read is None:
        raise ValueError(f"{ast.unparse(node)} is not allowed in it")
    return read(node, facts)


def _constant(node: ast.Constant, _: StateFacts) -> Any:
    if node.value is not None and not isinstance(node.value, str | int | float):
        raise ValueError(f"{node.value!r} is not a JSON value")
    return node.value


def _name(node: ast.Name, facts: StateFacts) -> Any:
    if node.id not in facts and node.id not in _CONSTANTS:
        raise ValueError(f"there is no {node.id}")
    return facts[node.id] if node.id in facts else _CONSTANTS[node.id]


def _both(node: ast.BoolOp, facts: StateFacts) -> bool:
    values = [
        _value_of(operand, facts) for operand in node.values
    ]  # each is read, so that what cannot stand there is found at once
    return all(values) if isinstance(node.op, ast.And) else any(values)


def _signed(node: ast.UnaryOp, facts: StateFacts) -> Any:
    value = _value_of(node.operand, facts)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -value
    raise ValueError(f"{ast.unparse(node)} is not allowed in it")


def _length(node: ast.Call, facts: StateFacts) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id != "len" or len(node.args) != 1 or node.keywords:
        raise ValueError(f"{ast.unparse(node)} is not allowed in it: only len(...) is called")
    value = _value_of(node.args[0], facts)
    return len(value) if isinstance(value, str | list | dict) else None


def _comparison(node: ast.Compare, facts: StateFacts) -> bool:
    values = [_value_of(operand, facts) for operand in (node.left, *node.comparators)]
    return all(_compares(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False))


_VALUES: Final[Mapping[type[ast.expr], Callable[[Any, StateFacts], Any]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: lambda node, facts: _within(_value_of(node.value, facts), node.attr),
    ast.Subscript: lambda node, facts: _within(_value_of(node.value, facts), _value_of(node.slice, facts)),
    ast.BoolOp: _both,
    ast.UnaryOp: _signed,
    ast.Call: _length,
    ast.List: lambda node, facts: [_value_of(one, facts) for one in node.elts],
    ast.Tuple: lambda node, facts: [_value_of(one, facts) for one in node.elts],
    ast.Compare: _comparison,
}


def _within(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(key) if isinstance(key, str) else None
    at = isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value)
    return value[key] if at else None


def _compares(op: ast.cmpop, a: Any, b: Any) -> bool:
    try:
        return bool(_COMPARED[type(op)](a, b))
    except TypeError:
        return False


# -- kept over kernels ---------------------------------------------------------------------------


def read_breakpoints(path: Path, loadout: str) -> tuple[list[Breakpoint], str]:
    """Return the breakpoints that a file keeps for a loadout, and what of it could not be read, in a sentence."""
    try:
        saved = _read(path).get(loadout, [])
    except MateriaError as error:
        return [], f"The breakpoints kept in {part(str(path), 200)} are not there: {error.what}"
    rows = saved if isinstance(saved, list) else [saved]
    breakpoints, problem = [], f"There are more than {_MOST}." if len(rows) > _MOST else ""
    for row in rows[:_MOST]:
        try:
            breakpoints.append(breakpoint_of(row))
        except MateriaError as error:
            problem = error.what
    return (
        breakpoints,
        f"Not all breakpoints kept in {part(str(path), 200)} are there. {problem}" if problem else "",
    )


def write_breakpoints(path: Path, loadout: str, breakpoints: Sequence[Breakpoint]) -> None:
    """Keep the breakpoints of a loadout in a file, those of the others as they are; what is damaged is written over.

    Raises:
        MateriaError: the disk refuses (``disk``).
    """
    try:
        saved = _read(path)
    except MateriaError:
        saved = {}
    saved.pop(loadout, None)
    if breakpoints:
        saved[loadout] = [breakpoint_.as_json() for breakpoint_ in breakpoints]
    with disk(path, "keep the breakpoints"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json_bytes({"version": 1, "loadouts": saved}, indented=True))


def _read(path: Path) -> dict[str, JSON]:
    """Read what a file keeps, by loadout; nothing where there is none."""
    with disk(path, "read the breakpoints"):
        try:
            content = read_plain(path, _MOST_BYTES)
        except FileNotFoundError:
            return {}
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    loadouts = document.get("loadouts") if isinstance(document, dict) else None
    if not isinstance(loadouts, dict):
        raise MateriaError("This is not a file of breakpoints.", where=str(path), kind="bad_breakpoint")
    return loadouts
