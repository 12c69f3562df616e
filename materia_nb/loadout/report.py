"""Findings on a config, with their fixes: problems, which prevent a cast, and hints, which do not.

Each rule that yields hints is a row of a table, with its code, description and function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.errors import MateriaError, close_match, counted, did_you_mean, outgoing_line
from materia_nb.jsonvalue import JSON, compact
from materia_nb.registry import mimebundle_from_view

PROBLEM_CODES: Final = {
    (MISSING_ENDPOINT := "missing-endpoint"): ("a missing reference to a socket, such as an edge without `to`"),
    (UNKNOWN_ENDPOINT := "unknown-endpoint"): "a reference to a socket that does not exist",
    (INVALID_SOCKET_ID := "invalid-socket-id"): "an invalid socket id, or `end` where a socket is needed",
    (INVALID_CONDITION := "invalid-edge-condition"): "a missing or unknown condition",
    (INVALID_EDGE := "invalid-edge"): "an invalid field of an edge, such as `maxTraversals`",
    (UNREACHABLE_EDGE := "unreachable-edge"): "an edge after an `always` edge",
    (INVALID_LOOP := "invalid-loop"): "an invalid loop: members, `consumes`, `iterator` or exits",
    (AMBIGUOUS_ADVANCE := "ambiguous-advance"): "two loops that would each derive an `advance` on a socket",
    (UNKNOWN_MATERIA := "unknown-materia"): "a missing materia of a socket, or a materia that does not exist",
    (INVALID_MATERIA := "invalid-materia"): "an invalid definition of a materia",
    (INVALID_GENERATOR := "invalid-generator"): "a socket whose fields contradict its role as a generator",
    (INVALID_SOCKET := "invalid-socket"): "another invalid field of a socket",
    (INVALID_CONFIG := "invalid-config"): (
        "an invalid field of the config, such as `limits`, `budget`, `activeLoadout` or `artifactDir`"
    ),
}
"""The codes of problems (R26) with their descriptions; the codes of hints are in ``rules``."""

MISSING_COMMAND: Final = "missing-command"
"""The code of hints on missing commands, which depend on the machine."""
NO_EFFECT: Final = "no-effect"
"""The code of hints on known fields without effect."""

UNKNOWN_FIELD: Final = "unknown-field"
"""The code of hints on unknown fields (R28), which are problems in a strict check."""

_SHOWN_IN_ERROR = 5
_CLOSE_MATCHES = 40
_SHOWN_NO_EFFECT = 3


class FixStep(NamedTuple):
    """A call of a designer operation: its name and its arguments, without the loadout."""

    operation: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}


def do(operation: str, *arguments: Any, **options: Any) -> FixStep:
    """Return a step of a :class:`Fix`: a call of a designer operation."""
    return FixStep(operation, arguments, options)


@dataclass(frozen=True, slots=True)
class Fix:
    """Operations of the designer that fix a finding.

    Attributes:
        label: the text of its button.
        steps: the operations, in order.
        suggestion: True if other changes would fix the finding too, so that a person has to decide.
        summary: the description of the change; empty until the designer has tested the fix.
    """

    label: str
    steps: tuple[FixStep, ...]
    suggestion: bool = False
    summary: str = ""


def safe_fix(label: str, *steps: FixStep) -> Fix:
    """Return a fix that needs no confirmation, because no other change would fix the finding."""
    return Fix(label, steps)


def suggested_fix(label: str, *steps: FixStep) -> Fix:
    """Return a fix that a person must confirm, because other changes would fix the finding too."""
    return Fix(label, steps, suggestion=True)


def without_field(id_: str, field: str) -> Fix:
    """Return the fix that removes a field without effect from a socket."""
    return safe_fix(f"Remove {field} from {id_}", do("set_socket", id_, field, None))


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or a hint, with advice.

    Attributes:
        code: a stable code; the codes of problems are listed in R26.
        source: the path in the loadout (``Socket-1.edges[0].to``) or config (``materia.Build.prompt``).
        message: the description of the problem.
        hint: the advice.
        loadout: the loadout that contains ``source``; None if ``source`` is outside the loadouts.
        severity: ``problem`` if the finding prevents a cast, else ``hint``.
        fix: its probable fix, which the designer tests before offering it; None if a person has to choose.
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
    """The findings on a config, in the order of the config."""

    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """True if a cast may start."""
        return not self.problems

    @property
    def no_effect(self) -> tuple[Problem, ...]:
        """The hints on fields without effect, if there are enough of them for the summary :attr:`no_effect_line`."""
        hints = tuple(hint for hint in self.hints if hint.code == NO_EFFECT)
        return hints if len(hints) > _SHOWN_NO_EFFECT else ()

    @property
    def shown_hints(self) -> tuple[Problem, ...]:
        """The hints that are shown individually."""
        is_summarized = bool(self.no_effect)
        return tuple(hint for hint in self.hints if not (is_summarized and hint.code == NO_EFFECT))

    @property
    def no_effect_line(self) -> str:
        """Summary of :attr:`no_effect` in one line, with each field and its count; "" without such hints."""
        names = Counter(hint.source.rpartition(".")[2] for hint in self.no_effect)
        fields = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in names.items())
        return outgoing_line(f"{len(self.no_effect)} fields have no effect: {fields}") if names else ""

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
            lines.append(f"  hint     {self.no_effect_line}; report.hints lists them all")
        return "\n".join(lines)

    __repr__ = __str__
    _repr_mimebundle_ = mimebundle_from_view


class LoadoutError(MateriaError):
    """Raised for a config that cannot be cast. ``report`` contains all problems; the message shows the first few."""

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
            message = f"{subject} cannot be cast: {len(report.problems)} problems"
            super().__init__(message, more=lines, kind="refused")
        self.report = report


@dataclass(slots=True)
class Findings:
    """Collects problems and hints while a config is checked."""

    loadout: str | None = None
    entries: list[Problem] = field(default_factory=list)
    matches: int = 0

    def problem(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Add a problem."""
        self.entries.append(Problem(code, source, message, hint, self.loadout, fix=fix))

    def hint(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Add a hint."""
        self.entries.append(Problem(code, source, message, hint, self.loadout, "hint", fix))

    def add_hints(self, rules: Iterable[HintRule], subjects: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        """Run rules and add their hints; ``subjects`` lists the arguments of the rules, by the scope of the rule."""
        for rule in rules:
            for subject in subjects.get(rule.scope, ()):
                for hint in rule.find(*subject):
                    self.hint(rule.code, *hint)

    def closest(self, name: JSON, known: Iterable[str]) -> str | None:
        """Return the most similar known name or None; always None after 40 calls, since many comparisons are slow."""
        self.matches += 1
        return close_match(name, known) if self.matches <= _CLOSE_MATCHES and isinstance(name, str) else None

    def near(self, name: str, known: Iterable[str]) -> str:
        """Return advice that suggests the most similar known name, up to the limit of :meth:`closest`."""
        self.matches += 1
        if self.matches > _CLOSE_MATCHES:
            return "choose an existing name"
        return did_you_mean(name, known)


def brief(value: JSON, limit: int = 60) -> str:
    """Return a config value as JSON for a message, cut to ``limit`` characters."""
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


_Scope: TypeAlias = Literal["loadout", "socket", "loop", "materia", "config"]
"""The subject of a rule, which determines its arguments.

- ``loadout``: the loadout.
- ``socket``: the loadout and a socket.
- ``loop``: the loadout and a loop.
- ``materia``: the id and the definition of a materia.
- ``config``: the config; the rule is skipped if only one loadout is checked."""


class Hint(NamedTuple):
    """A hint of a rule: its path, message, advice and fix."""

    source: str
    message: str
    advice: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class HintRule:
    """A rule: its code, its description for the documentation, its subject, and the function that yields its hints."""

    code: str
    about: str
    scope: _Scope
    find: Callable[..., Iterable[Hint]]


_RuleFunction = TypeVar("_RuleFunction", bound=Callable[..., Iterable[Any]])


def rule(table: list[HintRule], scope: _Scope, code: str) -> Callable[[_RuleFunction], _RuleFunction]:
    """Return a decorator that adds a function to a table of rules. The function must never raise.

    The function must also accept malformed values, since its arguments come from the config as written.

    The first line of its docstring describes the code in the documentation. If rules share a code, the first rule
    describes the code.
    """

    def add(find: _RuleFunction) -> _RuleFunction:
        about = (find.__doc__ or "").splitlines()[0].removesuffix(".")
        table.append(HintRule(code, about, scope, find))
        return find

    return add
