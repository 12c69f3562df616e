"""What checking a config found: problems, which stop a cast, and hints, which do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, compact
from materia_nb.outgoing import outgoing_line, shown_by_its_view

MISSING_ENDPOINT: Final = "missing-endpoint"
UNKNOWN_ENDPOINT: Final = "unknown-endpoint"
INVALID_SOCKET_ID: Final = "invalid-socket-id"
INVALID_CONDITION: Final = "invalid-edge-condition"
INVALID_EDGE: Final = "invalid-edge"
UNREACHABLE_EDGE: Final = "unreachable-edge"
INVALID_LOOP: Final = "invalid-loop"
UNKNOWN_MATERIA: Final = "unknown-materia"
INVALID_MATERIA: Final = "invalid-materia"
INVALID_GENERATOR: Final = "invalid-generator"
INVALID_SOCKET: Final = "invalid-socket"
INVALID_CONFIG: Final = "invalid-config"
PARALLEL_GENERATION: Final = "parallel-generation"
MISSING_COMMAND: Final = "missing-command"
"""A hint that depends on the machine."""
NO_EFFECT: Final = "no-effect"
"""A hint at a field that nothing reads where it stands; the other hints are named where they are found."""

_SHOWN_IN_ERROR = 5
_CLOSE_MATCHES = 40
_SHOWN_NO_EFFECT = 3


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
    """

    code: str
    source: str
    message: str
    hint: str
    loadout: str | None = None
    severity: Literal["problem", "hint"] = "problem"

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
        found = tuple(hint for hint in self.hints if hint.code == NO_EFFECT)
        return found if len(found) > _SHOWN_NO_EFFECT else ()

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
    _repr_mimebundle_ = shown_by_its_view


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
            shown = report.problems[:_SHOWN_IN_ERROR]
            lines = [f"  - {problem.source}: {problem.message}; {problem.hint}" for problem in shown]
            left = len(report.problems) - len(shown)
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

    def problem(self, code: str, source: str, message: str, hint: str) -> None:
        """Note something that stops a cast."""
        self.found.append(Problem(code, source, message, hint, self.loadout))

    def hint(self, code: str, source: str, message: str, hint: str) -> None:
        """Note something worth knowing that stops nothing."""
        self.found.append(Problem(code, source, message, hint, self.loadout, "hint"))

    def near(self, name: str, known: Iterable[str]) -> str:
        """Say what was probably meant; only for the first names, since comparing is slow in a large config."""
        self.matches += 1
        if self.matches > _CLOSE_MATCHES:
            return "choose one that exists"
        return did_you_mean(name, known)


def shown(value: JSON, limit: int = 60) -> str:
    """Write a value of a config for a message, cut to ``limit`` characters."""
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
