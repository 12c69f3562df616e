"""A breakpoint: its fields, its description, its file format, and the check whether a cast has reached it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from materia_nb.display.escape import part
from materia_nb.engine.cast_warnings import latest_step_repeats, repeated_steps, shortened_fields
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, TurnRecord, every_step
from materia_nb.engine.state import Unit
from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain
from materia_nb.insight.estimate import step_usage
from materia_nb.jsonvalue import JSON, as_object, equal_json, get_path, json_or_none, split_path
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import disk_errors, json_bytes, write_file

OutputKind: TypeAlias = Literal["after", "refused", "not_satisfied", "same_again", "empty_answer"]
"""A property of a socket's output at which a breakpoint stops a run."""
OUTPUT_KINDS: Final[tuple[OutputKind, ...]] = get_args(OutputKind)
BreakKind: TypeAlias = Literal["before", "edge", "changed", "every", OutputKind]
"""The kind of event at which a breakpoint stops a run."""
_REQUIRED_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("before", "after"), frozenset({"socket"})),
    **dict.fromkeys(("refused", "not_satisfied", "same_again", "empty_answer"), frozenset[str]()),
    "edge": frozenset({"socket", "edge"}),
    "changed": frozenset({"path"}),
    "every": frozenset({"amount", "unit"}),
}
"""The required fields of each kind. All kinds except ``changed`` may also have ``socket``."""


def parse_amount(text: str) -> tuple[float, Any]:
    """Split an amount such as ``20000 tokens`` or ``2.5usd`` into the number and the unit.

    If the string does not start with a number, return 0 and the whole string.
    """
    match = re.fullmatch(r"([\d_.]+)\s*([a-z]+)", text.strip().lower())
    try:
        number, unit = (float(match[1]), match[2]) if match else (0.0, text)
    except ValueError:
        number, unit = 0.0, text
    return number, {"token": "tokens", "second": "seconds", "turn": "turns", "s": "seconds"}.get(unit, unit)


def path_segments(path: str) -> list[str]:
    """Return the segments of a dotted path.

    Raises:
        MateriaError: the path is empty (``bad_path``).
    """
    segments = split_path(path.strip())
    if not segments:
        raise MateriaError("The path is empty.", hint="use a path such as `plan.approved`", kind="bad_path")
    return segments


FILE: Final = "breakpoints.json"
"""Name of the file that stores breakpoints, either next to the casts of a project or in the run directory of a cast."""
_MAX_BYTES: Final = 1_000_000
_MAX_BREAKPOINTS: Final = 200
"""Maximum number of breakpoints read for a loadout. Each step tests all breakpoints."""
_MAX_TEXT: Final = 1_000


class Breakpoint(NamedTuple):
    """An event that stops runs. A breakpoint does not belong to a particular cast.

    Attributes:
        kind: the event: ``before`` or ``after`` a socket; when an ``edge`` of the socket is taken; when an output is
            ``refused``, ``not_satisfied``, the ``same_again`` as an earlier output, or an ``empty_answer`` (R64); when
            a step has ``changed`` a value in the state; or each time the cast has used another ``amount`` (``every``).
        socket: the id of the socket. None for ``changed``, or to stop at the outputs of any socket.
        edge: the number of an edge of the socket, counting from 1; or the id of a socket, or ``end``, for every edge
            that leads there.
        path: the dotted path of the watched value in the state.
        nth: the number of the occurrence at which to stop, such as 3 for only the third occurrence in a cast. None to
            stop at every occurrence.
        amount: the amount that can be used between two stops, in ``unit``. If ``socket`` is set, only its usage counts.
        unit: the unit of ``amount``. Usage that agents did not report is not counted (R56).
        lane: the name of the only lane in which to stop; None to stop in every lane and outside lanes.
        where: a condition that must hold, such as ``state.score < 3``, or None. See ``compile_condition``.
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
    def event_key(self) -> Breakpoint:
        """A copy without ``nth`` and ``where``. All breakpoints for the same event have the same key."""
        return self._replace(nth=None, where=None)

    def words(self, graph: Graph | None = None) -> str:
        """Return a description such as ``before Build`` or ``Eval → Build (edge 2), 3rd time``.

        Args:
            graph: the loadout, which is needed for names and for the target of an edge that is identified by its number.
        """
        names = {} if graph is None else graph.names
        socket = part(names.get(self.socket, self.socket), 130) if self.socket else "any socket"
        description = {
            "before": f"before {socket}",
            "after": f"after {socket}",
            "refused": f"refused output of {socket}",
            "not_satisfied": f"{socket} not satisfied",
            "same_again": f"{socket} repeats its output",
            "empty_answer": f"empty answer of {socket}",
            "changed": f"state.{self.path and part(self.path, 60)} changed",
            "every": f"every {self.amount or 0:,g} {self.unit}" + (f" of {socket}" if self.socket else ""),
            "edge": f"edge {self.edge} of {socket}",
        }[self.kind]
        if self.kind == "edge" and (target := self._edge_target(graph)) is not None:
            number = f" (edge {self.edge})" if isinstance(self.edge, int) else ""
            description = f"{socket} → {part(names.get(target, target), 130)}{number}"
        description += "" if self.lane is None else f" in lane {part(self.lane, 60)}"
        description += "" if self.where is None else f", where {part(self.where, 80)}"
        return description if self.nth is None else f"{description}, {ordinal(self.nth)} time"

    def _edge_target(self, graph: Graph | None) -> str | None:
        if not isinstance(self.edge, int):
            return self.edge
        socket = graph.sockets.get(self.socket or "") if graph is not None else None
        return socket.edges[self.edge - 1].to if socket is not None and 1 <= self.edge <= len(socket.edges) else None

    def is_on_edge(self, source: str, edge_index: int | None, target: str) -> bool:
        """Return True if this breakpoint is set on an edge.

        Args:
            source: the id of the socket at which the edge starts.
            edge_index: the index of the edge in the list of the socket, or None for an exit of a loop.
            target: the id of the socket to which the edge leads, or ``end``.
        """
        if self.kind != "edge" or self.socket != source:
            return False
        return self.edge == target or (edge_index is not None and self.edge == edge_index + 1)

    def is_reached(self, rules: Rules, session: Session, upcoming: str | None) -> bool:
        """Return True if a cast has reached the breakpoint between two steps or before the repair of a refused output.

        Args:
            rules: the rules that the engine applies to the cast.
            session: the session of the cast.
            upcoming: the id of the socket that runs next, or None if there is none.
        """
        if not self._is_reached(rules, session, upcoming):
            return False
        return self.where is None or compile_condition(self.where)(_condition_variables(session))

    def _is_reached(self, rules: Rules, session: Session, upcoming: str | None) -> bool:
        state, last = session.state, session.steps.latest
        if self.lane is not None and (state.lane is None or state.lane.name != self.lane):
            return False
        if self.kind == "before":
            is_here = state.status == "ready" and upcoming is not None and upcoming == self.socket
            return is_here and self._is_nth_time(lambda: state.visits.get(upcoming or "", 0) + 1)
        if last is None or state.status != ("waiting" if self.kind == "refused" else "ready"):
            return False
        if self.kind == "same_again":
            is_here = self._is_about(last) and latest_step_repeats(rules, session)
            return is_here and self._is_nth_time(lambda: sum(map(self._is_about, repeated_steps(rules, session))))
        if self.kind == "every":
            return self._used_another_amount(session, last)
        if self.kind == "refused":
            is_here = self._is_about(last) and bool(last.turns) and _is_refused(last.turns[-1])
        else:
            is_here = self._count_times(rules, last) > 0
        return is_here and self._is_nth_time(lambda: sum(self._count_times(rules, step) for step in session.steps))

    def _used_another_amount(self, session: Session, last: StepRecord) -> bool:
        """Return True if another ``amount`` was used up in the latest step, or in the lanes that joined before it."""
        after = self._total_used_amount(step for step, _ in every_step(session))
        joined_lanes = (streams for streams in session.streams if streams.step == last.number - 1)
        lanes = (step for streams in joined_lanes for lane in streams.lanes.values() for step in lane.session.steps)
        amount = self.amount or 0.0
        return (after - self._total_used_amount((last, *lanes))) // amount < after // amount

    def _total_used_amount(self, steps: Iterable[StepRecord]) -> float:
        return sum(self._used_amount(step) for step in steps if self._is_about(step))

    def _used_amount(self, step: StepRecord) -> float:
        if self.unit == "turns":
            return sum(turn.prompt is not None for turn in step.turns)
        if self.unit == "seconds":
            return (step.worked or 0) / 1000
        usage = step_usage(step)
        return (usage.cost if self.unit == "usd" else usage.tokens) or 0

    def _is_nth_time(self, count: Callable[[], int]) -> bool:
        return self.nth is None or self.nth == count()

    def _is_about(self, step: StepRecord) -> bool:
        return self.socket in (None, step.socket)

    def _count_times(self, rules: Rules, step: StepRecord) -> int:
        """Return the number of times that a step reached the breakpoint."""
        if not self._is_about(step):
            return 0
        times = 1
        match self.kind:
            case "refused":
                times = sum(_is_refused(turn) for turn in step.turns)
            case "edge":
                times = self._is_taken(step.decision)
            case "empty_answer":
                times = bool(shortened_fields(rules, step))
            case "not_satisfied":
                times = step.decision is not None and step.decision.satisfied is False
            case "changed":
                segments = split_path(self.path or "")
                before, after = (get_path(dict(state.data), segments) for state in (step.before, step.after))
                times = not equal_json(before, after)
        return times

    def _is_taken(self, decision: Decision | None) -> bool:
        if decision is None or isinstance(self.edge, str):
            return decision is not None and decision.target == self.edge
        chosen = decision.chosen
        return chosen is not None and chosen.edge_index is not None and chosen.edge_index + 1 == self.edge

    def as_json(self) -> dict[str, JSON]:
        """Return the fields that are not None, in the format of the breakpoint file and of the panel."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class BreakpointSet:
    """An immutable set of breakpoints. Iterating over it yields each :class:`Breakpoint`."""

    _graph: Graph | None = None  # The loadout whose names of sockets are shown.

    def __init__(self, breakpoints: Iterable[Breakpoint] = ()) -> None:
        """Create a set that contains ``breakpoints`` in the same order."""
        self._all: Sequence[Breakpoint] = tuple(breakpoints)

    @property
    def paths(self) -> list[str]:
        """The dotted paths of all watched values in the state."""
        return [breakpoint_.path for breakpoint_ in self if breakpoint_.path is not None]

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"<breakpoints: {'; '.join(breakpoint_.words(self._graph) for breakpoint_ in self) or 'none'}>"


def _is_refused(turn: TurnRecord) -> bool:
    return turn.mode != "correction" and turn.reading is not None and not turn.reading.accepted


def ordinal(number: int) -> str:
    """Return the English ordinal of a number, such as ``1st``, ``2nd`` or ``11th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def parse_breakpoint(value: object) -> Breakpoint:
    """Return the breakpoint that a JSON object describes. This is the inverse of :meth:`Breakpoint.as_json`.

    Raises:
        MateriaError: the value does not describe a breakpoint (``bad_breakpoint``).
    """
    row: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    required_fields, fields = _REQUIRED_FIELDS.get(str(row.get("kind"))), set(row) - {"kind", "nth", "lane", "where"}
    if (
        required_fields is not None
        and required_fields <= fields <= required_fields | (frozenset() if "path" in required_fields else {"socket"})
        and all(_fits(name, field) for name, field in row.items())
    ):
        return Breakpoint(**row)
    raise MateriaError(
        f"This is not a valid breakpoint: {part(str(value), 200)}", hint="remove it", kind="bad_breakpoint"
    )


def _fits(name: str, value: object) -> bool:
    if name == "amount":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
    if name == "unit":
        return value in get_args(Unit)
    if name == "nth" or (name == "edge" and not isinstance(value, str)):
        return type(value) is int and value >= 1
    if not isinstance(value, str) or len(value) > _MAX_TEXT or value.encode("utf-8", "replace").decode() != value:
        return False
    return (name != "path" or bool(split_path(value))) and (name != "where" or _is_condition(value))


# -- conditions ----------------------------------------------------------------------------------

ConditionVariables: TypeAlias = Mapping[str, JSON]
_CONSTANTS: Final[Mapping[str, JSON]] = {"true": True, "false": False, "null": None}
_NAMES: Final = ("state", "item", "output", "steps", "visits")
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
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


def _condition_variables(session: Session) -> ConditionVariables:
    """Return the variables that a condition can use, by name."""
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
def compile_condition(text: str) -> Callable[[ConditionVariables], bool]:
    """Compile a condition to a function that tests whether it holds for the variables of a session.

    A condition can use ``state``, ``item``, ``output``, ``steps`` and ``visits``, and combine them with comparisons,
    ``in``, ``and``, ``or``, ``not`` and ``len``. Examples are ``state.score < 3``, ``item.title == "Draft"``, ``"TODO"
    in output`` and ``visits["Socket-3"] > 1 and not state.done``. A missing value is null. A comparison is false if the
    types of its values cannot be compared.

    Raises:
        MateriaError: the string is not a valid condition (``bad_condition``).
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _evaluate(tree, dict.fromkeys(_NAMES))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MateriaError(
            f"The condition is invalid: {getattr(error, 'msg', None) or error}.",
            where=part(text, 200),
            hint='write a condition such as `state.score < 3`, `item.title == "Draft"` or `"TODO" in output`; it can use '
            + ", ".join(_NAMES),
            kind="bad_condition",
        ) from None
    return lambda facts: bool(_evaluate(tree, facts))


def _is_condition(text: str) -> bool:
    try:
        compile_condition(text)
    except MateriaError:
        return False
    return True


def _evaluate(node: ast.expr, facts: ConditionVariables) -> Any:  # noqa: C901, PLR0911 - one case for each kind of expression
    """Evaluate an expression of a condition.

    Raises:
        ValueError: the expression is not allowed in a condition.
    """
    match node:
        case ast.Constant(value=None | str() | int() | float() as constant):
            return constant
        case ast.Name(id=name) if name in facts or name in _CONSTANTS:
            return facts[name] if name in facts else _CONSTANTS[name]
        case ast.Name(id=name):
            raise ValueError(f"{name} is not defined")
        case ast.Attribute(value=owner, attr=attribute):
            return _value_at_key(_evaluate(owner, facts), attribute)
        case ast.Subscript(value=owner, slice=key):
            return _value_at_key(_evaluate(owner, facts), _evaluate(key, facts))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_evaluate(element, facts) for element in elements]
        case ast.BoolOp(op=operation, values=operands):
            values = [_evaluate(operand, facts) for operand in operands]  # all, so that an invalid one is refused
            return all(values) if isinstance(operation, ast.And) else any(values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, facts)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
            value = _evaluate(argument, facts)
            return len(value) if isinstance(value, str | list | dict) else None
        case ast.Compare(left=left, ops=operations, comparators=comparators):
            values = [_evaluate(operand, facts) for operand in (left, *comparators)]
            return all(map(_comparison_holds, operations, values, values[1:]))
    raise ValueError(f"{ast.unparse(node)} is not allowed in a condition")


def _value_at_key(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(key) if isinstance(key, str) else None
    is_index = isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value)
    return value[key] if is_index else None


def _comparison_holds(op: ast.cmpop, a: Any, b: Any) -> bool:
    try:
        return bool(_COMPARISONS[type(op)](a, b))
    except TypeError:
        return False


# -- stored for later kernels ---------------------------------------------------------------------------


def read_breakpoints(path: Path, loadout: str) -> tuple[list[Breakpoint], str]:
    """Read the breakpoints of a loadout from a file.

    Returns:
        The breakpoints, and a sentence about entries that could not be read, or "" if all could be read.
    """
    try:
        entries = _read_file(path).get(loadout, [])
    except MateriaError as error:
        return [], f"The breakpoints in {part(str(path), 200)} were not read: {error.what}"
    rows = entries if isinstance(entries, list) else [entries]
    breakpoints = []
    problem = f"There are more than {_MAX_BREAKPOINTS} breakpoints." if len(rows) > _MAX_BREAKPOINTS else ""
    for row in rows[:_MAX_BREAKPOINTS]:
        try:
            breakpoints.append(parse_breakpoint(row))
        except MateriaError as error:
            problem = error.what
    if problem:
        problem = f"Some breakpoints in {part(str(path), 200)} were not read. {problem}"
    return breakpoints, problem


def write_breakpoints(path: Path, loadout: str, breakpoints: Sequence[Breakpoint]) -> None:
    """Write the breakpoints of a loadout to a file. Breakpoints of other loadouts are kept unless the file is damaged.

    Raises:
        MateriaError: the file cannot be written (``disk``).
    """
    try:
        entries = _read_file(path)
    except MateriaError:
        entries = {}
    entries.pop(loadout, None)
    if breakpoints:
        entries[loadout] = [breakpoint_.as_json() for breakpoint_ in breakpoints]
    write_file(path, json_bytes({"version": 1, "loadouts": entries}, indented=True), "keep the breakpoints")


def _read_file(path: Path) -> dict[str, JSON]:
    """Return the JSON value stored for each loadout in a breakpoint file, or an empty dict if there is no file."""
    loadouts: JSON = {}
    with disk_errors(path, "read the breakpoints"), suppress(FileNotFoundError):
        loadouts = as_object(json_or_none(read_plain(path, _MAX_BYTES))).get("loadouts")
    if not isinstance(loadouts, dict):
        raise MateriaError("This file does not contain breakpoints.", where=str(path), kind="bad_breakpoint")
    return loadouts
