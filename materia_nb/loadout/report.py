"""What checking a config found: problems, which stop a cast, and hints, which do not; and what would fix them.

A rule about what is allowed and yet probably not meant is one row, with its code, what it is about, and how it is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.errors import MateriaError, close_match, counted, did_you_mean, outgoing_line
from materia_nb.jsonvalue import JSON, compact
from materia_nb.registry import mimebundle_from_view

PROBLEM_CODES: Final = {
    (MISSING_ENDPOINT := "missing-endpoint"): (
        "a reference to a socket that is not written, such as an edge without `to`"
    ),
    (UNKNOWN_ENDPOINT := "unknown-endpoint"): "a reference to a socket that does not exist",
    (INVALID_SOCKET_ID := "invalid-socket-id"): (
        "an id of the wrong form, or `end` where a socket is needed"
    ),
    (INVALID_CONDITION := "invalid-edge-condition"): "a condition that is missing or none of the three",
    (INVALID_EDGE := "invalid-edge"): "another field of an edge, such as `maxTraversals`",
    (UNREACHABLE_EDGE := "unreachable-edge"): "an edge behind an `always` edge",
    (INVALID_LOOP := "invalid-loop"): "a loop: members, `consumes`, `iterator`, exits",
    (AMBIGUOUS_ADVANCE := "ambiguous-advance"): "two loops that would each derive an `advance` on a socket",
    (UNKNOWN_MATERIA := "unknown-materia"): "a socket that names no materia, or one that does not exist",
    (INVALID_MATERIA := "invalid-materia"): "the definition of a materia",
    (INVALID_GENERATOR := "invalid-generator"): "a generator whose socket says that it is none",
    (INVALID_SOCKET := "invalid-socket"): "another field of a socket",
    (INVALID_CONFIG := "invalid-config"): (
        "what is around the loadouts: limits, budget, `activeLoadout`, `artifactDir`, `castContext`"
    ),
}
"""The codes of problems (R26), each with what it is about; those of hints are in ``rules``."""

MISSING_COMMAND: Final = "missing-command"
"""A hint that depends on the machine."""
NO_EFFECT: Final = "no-effect"
"""A hint at a field that nothing reads where it stands."""

UNKNOWN_FIELD: Final = "unknown-field"
"""A hint at a field that nothing reads anywhere (R28); a problem where one is strict."""

_SHOWN_IN_ERROR = 5
_CLOSE_MATCHES = 40
_SHOWN_NO_EFFECT = 3


class FixStep(NamedTuple):
    """One operation of the designer, by its name, with what it is given behind the loadout."""

    operation: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}


def do(operation: str, *arguments: Any, **options: Any) -> FixStep:
    """Name an operation of the designer with its arguments, to be done by a :class:`Fix`."""
    return FixStep(operation, arguments, options)


@dataclass(frozen=True, slots=True)
class Fix:
    """What would fix a finding: operations of the designer, which do what it advises or remove what has no effect.

    Attributes:
        label: what it does, in the words of a button.
        steps: the operations, one after another.
        suggestion: other changes would fix it too, so that a person decides.
        words: what was done, for undo; empty for the words of the operations.
    """

    label: str
    steps: tuple[FixStep, ...]
    suggestion: bool = False
    summary: str = ""


def safe_fix(label: str, *steps: FixStep, summary: str = "") -> Fix:
    """Fix a finding in the only way that there is."""
    return Fix(label, steps, summary=summary)


def suggested_fix(label: str, *steps: FixStep, summary: str = "") -> Fix:
    """Fix a finding in one of several ways, when a person says so."""
    return Fix(label, steps, suggestion=True, summary=summary)


def without_field(id_: str, field: str) -> Fix:
    """Take away a field of a socket that has no effect there."""
    return safe_fix(f"Remove {field} here", do("set_socket", id_, field, None))


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: what is wrong and what to do about it.

    Attributes:
        code: a stable word, one of R26 for problems.
        source: the path in the loadout (``Socket-1.edges[0].to``) or config (``materia.Build.prompt``).
        message: what is wrong, naming it.
        hint: what to do.
        loadout: the loadout that ``source`` is in; None for the rest of the config.
        severity: ``problem`` stops a cast, ``hint`` does not.
        fix: what would probably fix it; the designer tries it before it offers it. None where a person has to choose.
    """

    code: str
    source: str
    message: str
    hint: str
    loadout: str | None = None
    severity: Literal["problem", "hint"] = "problem"
    fix: Fix | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        where = f"{self.loadout}: {self.source}" if self.loadout is not None else self.source
        return outgoing_line(f"{where} [{self.code}] {self.message}; {self.hint}")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that checking a config found, in the order of the config."""

    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a cast may start."""
        return not self.problems

    @property
    def no_effect(self) -> tuple[Problem, ...]:
        """The hints that are shown as one line, :attr:`no_effect_line`: more than a few fields without effect."""
        hints = tuple(hint for hint in self.hints if hint.code == NO_EFFECT)
        return hints if len(hints) > _SHOWN_NO_EFFECT else ()

    @property
    def shown_hints(self) -> tuple[Problem, ...]:
        """The hints that are shown one by one."""
        folded = bool(self.no_effect)
        return tuple(hint for hint in self.hints if not (folded and hint.code == NO_EFFECT))

    @property
    def no_effect_line(self) -> str:
        """Name the fields of :attr:`no_effect`, with how often each is written; "" where there is none."""
        names = Counter(hint.source.rpartition(".")[2] for hint in self.no_effect)
        fields = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in names.items())
        return outgoing_line(f"{len(self.no_effect)} fields have no effect here: {fields}") if names else ""

    def strict(self) -> Report:
        """Return the same report with every unknown field as a problem."""
        unknown = [replace(hint, severity="problem") for hint in self.hints if hint.code == UNKNOWN_FIELD]
        hints = tuple(hint for hint in self.hints if hint.code != UNKNOWN_FIELD)
        return Report((*self.problems, *unknown), hints)

    def __str__(self) -> str:
        if not self.problems and not self.hints:
            return "no problems, no hints"
        lines = [f"{counted(len(self.problems), 'problem')}, {counted(len(self.hints), 'hint')}"]
        lines += [f"  problem  {problem}" for problem in self.problems]
        lines += [f"  hint     {hint}" for hint in self.shown_hints]
        if self.no_effect:
            lines.append(f"  hint     {self.no_effect_line}; report.hints has each with its place")
        return "\n".join(lines)

    __repr__ = __str__
    _repr_mimebundle_ = mimebundle_from_view


class LoadoutError(MateriaError):
    """A config that cannot be cast. ``report`` holds every problem; the text shows the first few."""

    def __init__(self, report: Report, name: str | None = None) -> None:
        subject = f"the loadout {name!r}" if name is not None else "the config"
        first = report.problems[0]
        if len(report.problems) == 1:
            super().__init__(
                f"{subject} cannot be cast: {first.message}",
                where=first.source,
                hint=outgoing_line(first.hint),
                kind="refused",
            )
        else:
            brief = report.problems[:_SHOWN_IN_ERROR]
            lines = [f"  - {problem.source}: {problem.message}; {problem.hint}" for problem in brief]
            left = len(report.problems) - len(brief)
            if left:
                lines.append(f"  - and {left} more")
            what = f"{subject} cannot be cast: {len(report.problems)} problems"
            super().__init__(what, more=lines, kind="refused")
        self.report = report


@dataclass(slots=True)
class Findings:
    """Collects problems while a config is checked."""

    loadout: str | None = None
    found: list[Problem] = field(default_factory=list)
    matches: int = 0

    def problem(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Note something that stops a cast."""
        self.found.append(Problem(code, source, message, hint, self.loadout, fix=fix))

    def hint(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Note something worth knowing that stops nothing."""
        self.found.append(Problem(code, source, message, hint, self.loadout, "hint", fix))

    def add_hints(self, rule: HintRule, *subject: object) -> None:
        """Note the hints that a rule has on its subject."""
        for hint in rule.find(*subject):
            self.hint(rule.code, *hint)

    def closest(self, name: JSON, known: Iterable[str]) -> str | None:
        """Return what was probably meant; only for the first names, since comparing is slow in a large config."""
        self.matches += 1
        return close_match(name, known) if self.matches <= _CLOSE_MATCHES and isinstance(name, str) else None

    def near(self, name: str, known: Iterable[str]) -> str:
        """Say what was probably meant, for the first names as in :meth:`closest`."""
        self.matches += 1
        if self.matches > _CLOSE_MATCHES:
            return "choose one that exists"
        return did_you_mean(name, known)


def brief(value: JSON, limit: int = 60) -> str:
    """Write a value of a config for a message, cut to ``limit`` characters."""
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


_Scope: TypeAlias = Literal["loadout", "socket", "loop", "materia", "config"]
"""What a rule is asked for, and given: facts; facts and the id of a socket; facts and a loop; the id of a materia and its
definition; or the document of the config, when all of it is checked."""


class Hint(NamedTuple):
    """One place where a rule holds: the path, what is odd about it, what to do, and what would fix it."""

    source: str
    message: str
    advice: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class HintRule:
    """A hint: its code, what it says in the words of the documentation, what it is asked for, and how it is found."""

    code: str
    about: str
    scope: _Scope
    find: Callable[..., Iterable[Hint]]


_Find = TypeVar("_Find", bound=Callable[..., Iterable[Any]])


def rule(table: list[HintRule], scope: _Scope, code: str) -> Callable[[_Find], _Find]:
    """Put a function into a table of rules. It yields what it finds, in loadouts of any shape, and never raises.

    The first line of its docstring is what the documentation says of the code, of the first rule that has it.
    """

    def add(find: _Find) -> _Find:
        about = (find.__doc__ or "").splitlines()[0].removesuffix(".")
        table.append(HintRule(code, about, scope, find))
        return find

    return add
