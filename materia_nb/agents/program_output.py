"""What a program says on stdout: its answer, what it used, its session; read as text, or as JSON by paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from materia_nb.agents.interface import AgentError, Usage
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.vocabulary import jsonpath_fault

Paths: TypeAlias = str | Sequence[str]
"""A JSONPath, or several."""


class Answered(NamedTuple):
    """What a program answered.

    ``usage`` is None where the program reports none (R56), ``session`` names the conversation in which it can go on,
    and ``error`` says what failed; empty when nothing did. ``unread`` says why there is no answer where no error is reported.
    """

    text: str
    usage: Usage | None = None
    session: str = ""
    error: str = ""
    unread: str = ""


_TOLD: Final = 200
"""How much of what cannot be read is shown."""
_COUNTED: Final = ("input", "output", "cached", "reasoning")
"""What tokens are counted as."""

ReadsStdout: TypeAlias = Callable[[str], Answered]
"""Reads the stdout of a program that has ended."""


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """Reads JSON by paths.

    Attributes:
        answer: where the answer is; of several paths the first that finds something, of several values the last. An object
            is taken as JSON text.
        usage: where the tokens are: paths for ``input`` and for ``output``. All that is found is added up, since programs
            count cached and thinking tokens apart; ``cached`` and ``reasoning`` say how many of these there are among them.
        cost: where the cost is, in USD; added up as well.
        session: where the id of the session is.
        error: what is there, and not false, null or empty, only when it failed; a text says how.
        lines: whether each line is a JSON value of its own; the paths then begin at the list of all lines. Lines that are no JSON
            are passed over.

    Raises:
        AgentError: a path is not JSONPath.
    """

    answer: Paths
    usage: Mapping[str, Paths] = field(default_factory=dict)
    cost: Paths = ()
    session: Paths = ()
    error: Paths = ()
    lines: bool = False

    def __post_init__(self) -> None:
        if wrong := set(self.usage) - set(_COUNTED):
            raise AgentError(
                f"usage has no {', '.join(sorted(map(str, wrong)))}",
                hint=f"give paths for {', '.join(_COUNTED)}",
            )
        for paths in (self.answer, *self.usage.values(), self.cost, self.session, self.error):
            for path in _listed(paths):
                if (fault := jsonpath_fault(path)) is not None:
                    raise AgentError(f"{path!r} is not JSONPath: {fault}", hint='such as "$.result"')

    def __call__(self, stdout: str) -> Answered:
        """Read it."""
        try:
            value = self._value(stdout)
        except (ValueError, RecursionError) as fault:
            return Answered("", unread=f"What it printed is not JSON: {fault}")
        answers = next((found for path in _listed(self.answer) if (found := _find(path, value))), [])
        text = _text(answers[-1]) if answers else ""
        failures = [one for one in self._all(self.error, value) if one]
        paths = {name: self.usage.get(name, ()) for name in _COUNTED}
        tokens = {name: _whole(_sum(self._all(one, value))) for name, one in paths.items()}
        cost = _sum(self._all(self.cost, value))
        used = None
        if cost is not None or any(count is not None for count in tokens.values()):
            used = Usage(cost=cost, **tokens)
        sessions = [one for one in self._all(self.session, value) if isinstance(one, str)]
        error = ""
        if failures:
            error = _text(failures[-1]) if failures[-1] is not True else text or "it reports an error"
        unread = ""
        if not failures and not answers:
            unread = f"There is no answer at {' or '.join(_listed(self.answer))} of what it printed: {stdout[:_TOLD]}"
        return Answered(text, used, sessions[0] if sessions else "", error, unread)

    def _value(self, stdout: str) -> JSON:
        if not self.lines:
            whole: JSON = json.loads(stdout)
            return whole
        return [json.loads(line) for line in stdout.splitlines() if line.lstrip().startswith(("{", "["))]

    def _all(self, paths: Paths, value: JSON) -> list[JSON]:
        return [one for path in _listed(paths) for one in _find(path, value)]


def _listed(paths: Paths) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def _find(path: str, value: JSON) -> list[JSON]:
    from jsonpath_ng.ext import parse

    return [match.value for match in parse(path).find(value) if match.value is not None]


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else compact(value)


def _sum(values: Sequence[JSON]) -> float | None:
    """Add numbers up; None when there are none."""
    numbers = [one for one in values if isinstance(one, (int, float)) and not isinstance(one, bool)]
    return sum(numbers) if numbers else None


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


_AIDER_USED: Final = re.compile(
    r"^Tokens: (?P<sent>[\d.,]+[kM]?) sent,.*?(?P<received>[\d.,]+[kM]?) received\.(?: Cost: \$(?P<cost>[\d.,]+) message)?"
)
_UNITS: Final = {"k": 1_000, "M": 1_000_000}


def read_aider(stdout: str) -> Answered:
    """Read what aider prints: a banner, the answer, and a line with tokens (rounded, as in 2.4k) and cost a message."""
    lines = stdout.splitlines()
    used = [(place, match) for place, line in enumerate(lines) if (match := _AIDER_USED.match(line))]
    if any(line.startswith("Aider v") for line in lines):
        begin = next(place for place, line in enumerate(lines) if line.startswith("Aider v"))
        begin = next((place for place in range(begin, len(lines)) if not lines[place].strip()), len(lines))
    else:
        begin = 0
    end = used[-1][0] if used else len(lines)
    counted = {place for place, _ in used}
    text = "\n".join(lines[place] for place in range(begin, end) if place not in counted).strip()
    if not used:
        return Answered(text)
    costs = [match["cost"] for _, match in used]
    return Answered(
        text,
        Usage(
            sum(_count(match["sent"]) for _, match in used),
            sum(_count(match["received"]) for _, match in used),
            None if None in costs else sum(float(cost.replace(",", "")) for cost in costs),
        ),
    )


def _count(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * unit)
