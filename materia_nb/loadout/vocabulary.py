"""Vocabulary of the config format: conditions, handoff protocols, assignment sources (R11) and colours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeGuard, cast, get_args

from materia_nb.errors import MateriaError, did_you_mean, join_with_or
from materia_nb.file_io import read_package_toml
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.report import brief

WORK_ITEMS: Final = "workItems"
RESULTS: Final = "parallelResults"
"""State field that contains the results of all lanes after the lanes have finished (P6)."""
WORK_ITEMS_SOURCE: Final = "$.workItems"
Condition: TypeAlias = Literal["always", "satisfied", "not_satisfied", "failed"]


class Result(StrEnum):
    """The result of a visit to a socket (R60), which determines the next edge or exit.

    An accepted output has the result YES, NO or NOTHING, depending on ``satisfied``; plain text has the result NOTHING.
    The result is FAILED if the agent or process returned no output, REFUSED if the output was still invalid after all
    repairs, and STOPPED if a person must decide. A member with ``kinds`` is a special case of FAILED.
    """

    YES = "yes", "satisfied: true", "the output sets satisfied: true"
    NO = "no", "satisfied: false", "the output sets satisfied: false"
    NOTHING = "nothing", "no satisfied", "the output does not set `satisfied`"
    FAILED = "failed", "a failure", "it failed"
    REFUSED = "refused", "a refused output", "the output was refused"
    STOPPED = "stopped", "a stop", "a person must decide"

    noun: str
    """Noun phrase for the result, such as ``a refused output``."""
    sentence: str
    """Sentence that describes the result."""
    kinds: tuple[str, ...]
    """Kinds of failures that have this result; empty if the result is not a special case of FAILED."""

    def __new__(cls, value: str, noun: str, sentence: str, kinds: str = "") -> Self:
        """Create a member; ``kinds`` is a list of failure kinds, separated by spaces."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.noun, member.sentence, member.kinds = noun, sentence, tuple(kinds.split())
        return member

    @classmethod
    def from_satisfied(cls, satisfied: object) -> Result:
        """Return the result of an accepted output, depending on the value of its field ``satisfied``."""
        return cls.YES if satisfied is True else cls.NO if satisfied is False else cls.NOTHING

    @classmethod
    def from_failure(cls, kind: str) -> Result:
        """Return the result of a visit that ended with this kind of failure."""
        return next((result for result in cls if kind in result.kinds), cls.FAILED)

    @property
    def satisfied(self) -> bool | None:
        """The value of ``satisfied`` in the output, or None if the output has no such field."""
        return True if self is Result.YES else False if self is Result.NO else None

    @property
    def is_silent(self) -> bool:
        """True if the visit returned no output at all, and False if an output was refused."""
        return self is Result.FAILED or bool(self.kinds)


ACCEPTED: Final = (Result.YES, Result.NO, Result.NOTHING)
"""Results of visits with an accepted output."""
VERDICTS: Final = (Result.YES, Result.NO)
"""Results of visits whose output sets ``satisfied``, which is the verdict of the agent."""
WITHOUT_OUTPUT: Final = tuple(result for result in Result if result.is_silent or result is Result.REFUSED)
"""Results of visits without an accepted output. The cast stops unless an edge matches the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSpec:
    """A condition of edges and exits: the results that it matches, and how it is displayed.

    Attributes:
        results: the results that the condition matches.
        sign: the full label.
        short: the short label on sockets and edges in drawings.
        choice: the label in legends and menus.
        phrase: the wording in a sentence, such as ``when satisfied``.
        light: the colour of labels on a light page. Edges have this colour too, unless the condition matches every
            output.
        dark: the same colour on a dark page.
        dashes: the dash pattern of edges, in pixels; None for solid lines.
        sends_back: True if an edge with this condition returns work for another attempt.
        tone: the suffix of the CSS class that the front end uses, such as ``good`` for ``mnb-t-good``; "" for no class.
    """

    results: tuple[Result, ...]
    sign: str
    short: str
    choice: str
    phrase: str
    light: str
    dark: str
    dashes: tuple[int, int] | None = None
    sends_back: bool = False
    tone: str = ""

    def matches(self, result: Result) -> bool:
        """Return True if the condition matches a result. Special cases of FAILED match where FAILED matches."""
        return result in self.results or (Result.FAILED in self.results and result.is_silent)

    def overlaps(self, other: ConditionSpec) -> bool:
        """Return True if at least one result matches both conditions."""
        return any(self.matches(result) and other.matches(result) for result in Result)

    @property
    def matches_any_output(self) -> bool:
        """True if the condition matches every accepted output."""
        return set(ACCEPTED).issubset(self.results)

    @property
    def is_guard(self) -> bool:
        """True if the condition matches only outputs that set ``satisfied``, which plain text never does."""
        return not self.matches(Result.NOTHING) and not set(VERDICTS).isdisjoint(self.results)

    @property
    def without_output(self) -> bool:
        """True if the condition matches only visits without an accepted output; only edges allow such conditions."""
        return set(ACCEPTED).isdisjoint(self.results)

    @property
    def needed_output(self) -> str:
        """A noun phrase for the outputs that the condition matches."""
        return "an output" if self.matches_any_output else " or ".join(result.noun for result in self.results)


_VOCABULARY: Final = read_package_toml(__file__, "vocabulary.toml")


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _condition_spec(results: tuple[str, ...], **row: Any) -> ConditionSpec:
    return ConditionSpec(results=tuple(Result[result_name.upper()] for result_name in results), **row)


CONDITION_SPECS: Final[Mapping[Condition, ConditionSpec]] = {
    condition: _condition_spec(**_with_tuples(row)) for condition, row in _VOCABULARY["conditions"].items()
}
"""The conditions, in the order in which menus list them. The type :data:`Condition` must list the same names."""
CONDITIONS: Final[tuple[Condition, ...]] = tuple(CONDITION_SPECS)
GUARDS: Final[tuple[Condition, ...]] = tuple(condition for condition, spec in CONDITION_SPECS.items() if spec.is_guard)
"""The conditions that match only outputs that set ``satisfied``, and therefore never match plain text."""
GUARD_FOR: Final[Mapping[Result, Condition]] = {
    verdict: next(condition for condition, spec in CONDITION_SPECS.items() if spec.results == (verdict,))
    for verdict in VERDICTS
}
"""The condition that matches only this verdict, by verdict (YES or NO)."""
REWORK_CONDITIONS: Final[tuple[Condition, ...]] = tuple(
    condition for condition, spec in CONDITION_SPECS.items() if spec.sends_back
)
"""The conditions whose edges return work for another attempt."""
OUTPUT_CONDITIONS: Final[tuple[Condition, ...]] = tuple(
    condition for condition, spec in CONDITION_SPECS.items() if not spec.without_output
)
"""The conditions that advances and loop exits allow, since both require an accepted output."""


def is_condition(value: JSON) -> TypeGuard[Condition]:
    """Return True if ``value`` is a known condition (R3)."""
    return isinstance(value, str) and value in CONDITION_SPECS


CONDITION_ADVICE: Final = "write " + join_with_or(f'"{condition}"' for condition in CONDITIONS)


def unmatched_verdicts(conditions: Iterable[Condition]) -> list[Condition]:
    """Return the verdicts, ``satisfied`` or ``not_satisfied``, that none of ``conditions`` matches."""
    matched_results = {result for condition in conditions for result in CONDITION_SPECS[condition].results}
    return [word for verdict, word in GUARD_FOR.items() if verdict not in matched_results]


def match_every_output(conditions: Collection[Condition], *, text: bool) -> bool:
    """Return True if each possible output matches at least one condition.

    Args:
        conditions: the conditions.
        text: True if the outputs are plain text, which cannot set ``satisfied``.
    """
    if text:
        return any(CONDITION_SPECS[condition].matches(Result.NOTHING) for condition in conditions)
    return not unmatched_verdicts(conditions)


def condition_spec(condition: str) -> ConditionSpec:
    """Return the specification of a condition; raise MateriaError if the condition is unknown."""
    row = cast("Mapping[str, ConditionSpec]", CONDITION_SPECS).get(condition)
    if row is None:
        hint = f"{CONDITION_ADVICE} ({did_you_mean(condition, CONDITIONS)})"
        raise MateriaError(f"{condition!r} is not a condition", hint=hint, kind="condition")
    return row


ENTRY_POINT_GROUP: Final = "materia_nb.handoff_protocols"
"""The entry point group in which other packages register handoff protocols."""


class OwnProtocol(NamedTuple):
    """A handoff protocol of this package, with the properties that are needed to check a config.

    Attributes:
        implementation: the class that implements the protocol, as ``module:class`` in ``materia_nb.handoff``.
        fields: the top-level fields that an agent must return; None if they depend on the socket and its assignments.
        includes_assignment: True if the prompt contains the ``assignment`` of the socket.
        in_separate_turn: True if the handoff should be requested in a separate turn after the work.
        requires_verdict: True if an output must set ``satisfied`` when every edge or exit depends on it (R7).
    """

    implementation: str
    fields: tuple[str, ...] | None = None
    includes_assignment: bool = False
    in_separate_turn: bool = False
    requires_verdict: bool = False


OWN_PROTOCOLS: Final[Mapping[str, OwnProtocol]] = {
    name: OwnProtocol(**_with_tuples(row)) for name, row in _VOCABULARY["protocols"].items()
}
"""The protocols of this package by name, starting with the default. Other packages cannot use these names."""
DEFAULT_HANDOFF: Final = next(iter(OWN_PROTOCOLS))


def requires_verdict(protocol: object) -> bool:
    """Return True if this protocol refuses outputs that do not set ``satisfied`` when all edges depend on it (R7)."""
    own_protocol = OWN_PROTOCOLS.get(protocol) if isinstance(protocol, str) else None
    return own_protocol is not None and own_protocol.requires_verdict


def protocol_names() -> list[str]:
    """Return the names of all installed handoff protocols, starting with the protocols of this package."""
    foreign = {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}
    return [*OWN_PROTOCOLS, *sorted(foreign.difference(OWN_PROTOCOLS))]


SIMPLE: Final = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")


_FIRST_FIELD: Final = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


def first_field(source: str) -> str | None:
    """Return the top-level field that a JSONPath source reads (R8), or None if the source has no such field."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)


def source_fault(source: str) -> tuple[str, str] | None:
    """Return an error message and advice for an invalid source, or None if the source is valid.

    Sources that start with ``$`` must be JSONPath. Other sources are state paths, which are always valid.
    """
    if not source.startswith("$"):
        return None
    if (slow_reason := slow_expression(source)) is not None:
        return f"{brief(source)} {slow_reason[0]}", slow_reason[1]
    if (fault := jsonpath_fault(source)) is None:
        return None
    return (
        f"{brief(source)} is not a JSONPath expression ({fault})",
        "write $, a dotted path such as $.plan.name, or JSONPath such as $.items[*].title",
    )


def slow_expression(source: str) -> tuple[str, str] | None:
    """Return the reason why a JSONPath expression could be too slow, with advice, or None if the expression is fast."""
    if "=~" in source or "`sub(" in source:
        return (
            "contains a regular expression, which could run forever on some outputs",
            "compare with ==, or use a utility",
        )
    if source.count("..") > 1:
        return "searches all levels more than once, which takes too long in a deep output", "use `..` at most once"
    return None


@lru_cache(maxsize=1024)
def jsonpath_fault(source: str) -> str | None:
    """Return the error of the JSONPath parser, or None if ``source`` is valid JSONPath."""
    if SIMPLE.fullmatch(source):
        return None
    from jsonpath_ng.ext import parse

    try:
        parse(source)
    except Exception as error:  # noqa: BLE001 - the library raises several unrelated types, bare Exception among them
        text = " ".join(str(error).split())
        return text[:120] or type(error).__name__
    return None


_HEX_COLOUR: Final = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")
_COLOUR_PREFIX: Final = "materia-color-"
COLOUR_NAMES: Final[Mapping[str, str]] = _VOCABULARY["colours"]
"""Names of background colours; the editor of the reference engine adds the prefix ``materia-color-``."""


class Tint(NamedTuple):
    """A background colour and the colour of text on it, both in the format ``#rrggbb``."""

    fill: str
    ink: str


def tint_of(colour: JSON) -> Tint | None:
    """Return the tint for a colour such as ``#1ab``, ``#11aabb`` or ``teal``, or None if the colour is invalid.

    The text is black or white, depending on which colour has the higher contrast.
    """
    if not isinstance(colour, str):
        return None
    name = colour.strip().lower()
    fill = COLOUR_NAMES.get(name.removeprefix(_COLOUR_PREFIX), name)
    if not _HEX_COLOUR.fullmatch(fill):
        return None
    if len(fill) == 4:
        fill = "#" + "".join(digit * 2 for digit in fill[1:])
    light = _luminance(fill)
    return Tint(fill, "#ffffff" if 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 else "#000000")


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1 (WCAG 2)."""
    parts = [int(colour[position : position + 2], 16) / 255 for position in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


FilesChoice: TypeAlias = Literal["off", "not ignored", "all"]
"""Project files that are saved after each step: no files, all files that Git does not ignore, or all files."""
FILES_OFF, FILES_NOT_IGNORED, ALL_FILES = FILE_CHOICES = get_args(FilesChoice)
