"""Reports about a config. Problems prevent a cast, hints do not, and both can have fixes.

The module also defines the table rows and the decorator for rules, which are functions that yield hints.
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
    (INVALID_LOOP := "invalid-loop"): "a loop with invalid members, `consumes`, `iterator` or exits",
    (AMBIGUOUS_ADVANCE := "ambiguous-advance"): "two loops that would each derive an `advance` on a socket",
    (UNKNOWN_MATERIA := "unknown-materia"): "a missing materia of a socket, or a materia that does not exist",
    (INVALID_MATERIA := "invalid-materia"): "an invalid definition of a materia",
    (INVALID_GENERATOR := "invalid-generator"): "a socket whose fields contradict its role as a generator",
    (INVALID_SOCKET := "invalid-socket"): "another invalid field of a socket",
    (INVALID_CONFIG := "invalid-config"): (
        "an invalid field of the config, such as `limits`, `budget`, `activeLoadout` or `artifactDir`"
    ),
}
"""Description of each problem code (R26). The codes of hints are in ``rules``."""

MISSING_COMMAND: Final = "missing-command"
"""Code of hints about programs that are not installed on this machine."""
NO_EFFECT: Final = "no-effect"
"""Code of hints about known fields that have no effect."""

UNKNOWN_FIELD: Final = "unknown-field"
"""Code of hints about unknown fields (R28); a strict check reports these hints as problems."""

_MAX_LISTED_PROBLEMS = 5
_MAX_SEARCHES = 40
_MAX_LISTED_NO_EFFECT = 3


class FixStep(NamedTuple):
    """A call of a designer operation: its name, and its arguments after the loadout."""

    operation: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}


def do(operation: str, *arguments: Any, **options: Any) -> FixStep:
    """Return a step of a :class:`Fix` that will call a designer operation with the given arguments."""
    return FixStep(operation, arguments, options)


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix for a problem or hint, as a sequence of designer operations.

    Attributes:
        label: the text on the button that applies the fix.
        steps: the operations, in order.
        suggestion: True if there are other ways to fix the problem, so a person has to confirm this fix.
        summary: a description of the change; empty until the designer has tested the fix.
    """

    label: str
    steps: tuple[FixStep, ...]
    suggestion: bool = False
    summary: str = ""


def safe_fix(label: str, *steps: FixStep) -> Fix:
    """Return a fix that needs no confirmation, because it is the only reasonable fix."""
    return Fix(label, steps)


def suggested_fix(label: str, *steps: FixStep) -> Fix:
    """Return a fix that a person must confirm, because there are other reasonable fixes."""
    return Fix(label, steps, suggestion=True)


def removal_fix(id_: str, field: str) -> Fix:
    """Return a fix that removes a field from a socket."""
    return safe_fix(f"Remove {field} from {id_}", do("set_socket", id_, field, None))


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or hint about a config.

    Attributes:
        code: the stable code of the kind of problem or hint; R26 lists the codes of problems.
        source: the path in the loadout, such as ``Socket-1.edges[0].to``, or in the config, such as
            ``materia.Build.prompt``.
        message: a description of the problem.
        hint: advice on how to solve the problem.
        loadout: the name of the loadout that contains ``source``; None if ``source`` is not in a loadout.
        severity: ``problem`` if it prevents a cast, and ``hint`` if it does not.
        fix: a fix that probably solves the problem; None if only a person can decide. The designer tests the fix before
            offering it.
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
    """The problems and hints that a check of a config has found, in the order of the config."""

    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the config has no problems, so it can be cast."""
        return not self.problems

    @property
    def no_effect(self) -> tuple[Problem, ...]:
        """The hints about fields without effect, if there are so many that :attr:`no_effect_line` summarizes them."""
        hints = tuple(hint for hint in self.hints if hint.code == NO_EFFECT)
        return hints if len(hints) > _MAX_LISTED_NO_EFFECT else ()

    @property
    def shown_hints(self) -> tuple[Problem, ...]:
        """The hints that are shown individually rather than summarized."""
        is_summarized = bool(self.no_effect)
        return tuple(hint for hint in self.hints if not (is_summarized and hint.code == NO_EFFECT))

    @property
    def no_effect_line(self) -> str:
        """One line that summarizes :attr:`no_effect` by field name and count; "" if there is nothing to summarize."""
        names = Counter(hint.source.rpartition(".")[2] for hint in self.no_effect)
        fields = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in names.items())
        return outgoing_line(f"{len(self.no_effect)} fields have no effect: {fields}") if names else ""

    def strict(self) -> Report:
        """Return a copy of the report that treats hints about unknown fields as problems."""
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
    """Raised for a config that cannot be cast because of its problems.

    The attribute ``report`` contains all problems. The message includes at most the first five.
    """

    def __init__(self, report: Report, name: str | None = None) -> None:
        subject = f"the loadout {name!r}" if name is not None else "the config"
        first = report.problems[0]
        if len(report.problems) == 1:
            message = f"{subject} cannot be cast: {first.message}"
            super().__init__(message, where=first.source, hint=outgoing_line(first.hint), kind="refused")
        else:
            brief = report.problems[:_MAX_LISTED_PROBLEMS]
            lines = [f"  - {problem.source}: {problem.message}; {problem.hint}" for problem in brief]
            omitted_count = len(report.problems) - len(brief)
            if omitted_count:
                lines.append(f"  - and {omitted_count} more")
            message = f"{subject} cannot be cast: {len(report.problems)} problems"
            super().__init__(message, more=lines, kind="refused")
        self.report = report


@dataclass(slots=True)
class Findings:
    """Collects problems and hints while a config is checked.

    Attributes:
        loadout: the name of the loadout that is being checked, or None.
        entries: the problems and hints collected so far.
        search_count: the number of searches for similar names so far.
    """

    loadout: str | None = None
    entries: list[Problem] = field(default_factory=list)
    search_count: int = 0

    def problem(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Add a problem; the parameters are the attributes of :class:`Problem`."""
        self.entries.append(Problem(code, source, message, hint, self.loadout, fix=fix))

    def hint(self, code: str, source: str, message: str, hint: str, fix: Fix | None = None) -> None:
        """Add a hint; the parameters are the attributes of :class:`Problem`."""
        self.entries.append(Problem(code, source, message, hint, self.loadout, "hint", fix))

    def add_hints(self, rules: Iterable[HintRule], subjects: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        """Run rules and add their hints.

        Args:
            rules: the rules.
            subjects: the argument lists with which to call each rule, by the scope of the rule.
        """
        for rule in rules:
            for subject in subjects.get(rule.scope, ()):
                for hint in rule.find(*subject):
                    self.hint(rule.code, *hint)

    def closest(self, name: JSON, known: Iterable[str]) -> str | None:
        """Return the known name that is most similar to ``name``, or None if no name is similar.

        After 40 searches the result is always None, because comparing many names is slow.
        """
        self.search_count += 1
        return close_match(name, known) if self.search_count <= _MAX_SEARCHES and isinstance(name, str) else None

    def suggest(self, name: str, known: Iterable[str]) -> str:
        """Return advice that suggests the most similar known name; the limit of :meth:`closest` applies."""
        self.search_count += 1
        if self.search_count > _MAX_SEARCHES:
            return "choose an existing name"
        return did_you_mean(name, known)


def brief(value: JSON, limit: int = 60) -> str:
    """Return a config value as JSON for use in a message, truncated to ``limit`` characters."""
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


_Scope: TypeAlias = Literal["loadout", "socket", "loop", "materia", "config"]
"""The part of a config that a rule is about, which determines the arguments of the rule's function.

- ``loadout``: the parsed loadout.
- ``socket``: the parsed loadout and one of its sockets.
- ``loop``: the parsed loadout and one of its loops.
- ``materia``: the id and the definition of a materia.
- ``config``: the config; such rules are skipped if only one loadout is checked."""


class Hint(NamedTuple):
    """A hint that a rule yields: the path in the loadout or config, the message, the advice and an optional fix."""

    source: str
    message: str
    advice: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class HintRule:
    """A rule that yields hints.

    Attributes:
        code: the code of the hints.
        about: the description of the code in the documentation.
        scope: the part of a config that the rule is about.
        find: the function that yields the hints.
    """

    code: str
    about: str
    scope: _Scope
    find: Callable[..., Iterable[Hint]]


_RuleFunction = TypeVar("_RuleFunction", bound=Callable[..., Iterable[Any]])


def rule(table: list[HintRule], scope: _Scope, code: str) -> Callable[[_RuleFunction], _RuleFunction]:
    """Return a decorator that adds a function to a table of rules.

    The function must not raise, even if the config contains malformed values. The first line of its docstring describes
    the code in the documentation; if several rules have the same code, the first rule describes it.

    Args:
        table: the table of rules.
        scope: the part of a config that the rule is about, which determines the arguments of the function.
        code: the code of the hints.
    """

    def add(find: _RuleFunction) -> _RuleFunction:
        about = (find.__doc__ or "").splitlines()[0].removesuffix(".")
        table.append(HintRule(code, about, scope, find))
        return find

    return add
