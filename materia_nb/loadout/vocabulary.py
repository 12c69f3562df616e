"""Fixed words of a config: conditions, names of protocols, assignment sources (R11) and colours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeGuard, cast, get_args

from materia_nb.errors import MateriaError, did_you_mean, one_of_words
from materia_nb.file_io import read_package_toml
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.report import brief

WORK_ITEMS: Final = "workItems"
RESULTS: Final = "parallelResults"
"""State field with the results of the lanes after the join (P6)."""
WORK_ITEMS_SOURCE: Final = "$.workItems"
Condition: TypeAlias = Literal["always", "satisfied", "not_satisfied", "failed"]


class Result(StrEnum):
    """The result of a visit (R60), which selects the next edge or exit.

    An accepted output results in YES, NO or NOTHING, depending on ``satisfied``; a text output results in NOTHING. The
    result is FAILED if the agent or process returned no output, REFUSED if the output was finally refused, and STOPPED
    if a person must end the visit. A member with kinds of failures is a special case of FAILED.
    """

    YES = "yes", "satisfied: true", "the output sets satisfied: true"
    NO = "no", "satisfied: false", "the output sets satisfied: false"
    NOTHING = "nothing", "no satisfied", "the output does not set satisfied"
    FAILED = "failed", "a failure", "it failed"
    REFUSED = "refused", "a refused output", "the output was refused"
    STOPPED = "stopped", "a stop", "a person must decide"

    noun: str
    """A noun phrase for the result, such as ``a refused output``."""
    sentence: str
    """A sentence about the result."""
    kinds: tuple[str, ...]
    """The kinds of failures that have this result; empty if the result is not a special case of FAILED."""

    def __new__(cls, value: str, noun: str, sentence: str, kinds: str = "") -> Self:
        """Return a new member."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.noun, member.sentence, member.kinds = noun, sentence, tuple(kinds.split())
        return member

    @classmethod
    def of(cls, satisfied: object) -> Result:
        """Return the result of an accepted output with this value of ``satisfied``."""
        return cls.YES if satisfied is True else cls.NO if satisfied is False else cls.NOTHING

    @classmethod
    def of_failure(cls, kind: str) -> Result:
        """Return the result of a visit that failed with this kind of failure."""
        return next((result for result in cls if kind in result.kinds), cls.FAILED)

    @property
    def satisfied(self) -> bool | None:
        """The value of ``satisfied`` in the output; None without a verdict."""
        return True if self is Result.YES else False if self is Result.NO else None

    @property
    def silent(self) -> bool:
        """True if the visit returned no output at all; False for a refused output."""
        return self is Result.FAILED or bool(self.kinds)


ACCEPTED: Final = (Result.YES, Result.NO, Result.NOTHING)
"""Results of visits with an accepted output."""
YES_OR_NO: Final = (Result.YES, Result.NO)
"""Results with a verdict."""
WITHOUT_OUTPUT: Final = tuple(result for result in Result if result.silent or result is Result.REFUSED)
"""Results of visits without an accepted output; the cast stops unless an edge handles the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSpec:
    """A condition: the results that it matches, its texts, and how its edges are drawn.

    Attributes:
        needs: the results that the condition matches.
        sign: its full label.
        short: its short label on cards and lines.
        choice: its name in legends and menus.
        phrase: its wording in a sentence, such as ``when satisfied``.
        light: the colour of its text, and of its lines unless the condition matches every output; ``dark`` is the
            colour on a dark page.
        dashes: the dash pattern of its lines, None for solid lines.
        sends_back: True if an edge with this condition sends insufficient work back.
        tone: the tone in which the front end lists the condition, such as ``good`` (``mnb-t-good`` in ``front.css``);
            "" for no tone.
    """

    needs: tuple[Result, ...]
    sign: str
    short: str
    choice: str
    phrase: str
    light: str
    dark: str
    dashes: tuple[int, int] | None = None
    sends_back: bool = False
    tone: str = ""

    def holds(self, result: Result) -> bool:
        """True if the condition matches a result; a condition on FAILED also matches the special cases of FAILED."""
        return result in self.needs or (Result.FAILED in self.needs and result.silent)

    def overlaps(self, other: ConditionSpec) -> bool:
        """True if one result can match both conditions."""
        return any(self.holds(result) and other.holds(result) for result in Result)

    @property
    def matches_any_output(self) -> bool:
        """True if the condition matches every accepted output."""
        return set(ACCEPTED).issubset(self.needs)

    @property
    def guards(self) -> bool:
        """True if the condition needs a verdict, so that an output without a verdict, such as a text, never matches."""
        return not self.holds(Result.NOTHING) and not set(YES_OR_NO).isdisjoint(self.needs)

    @property
    def without_output(self) -> bool:
        """True if the condition matches only visits without an accepted output. Only edges can have such conditions."""
        return set(ACCEPTED).isdisjoint(self.needs)

    @property
    def needed_output(self) -> str:
        """Description of the output that the condition needs."""
        return "an output" if self.matches_any_output else " or ".join(result.noun for result in self.needs)


_TABLE: Final = read_package_toml(__file__, "vocabulary.toml")


def _in_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _condition_spec(needs: tuple[str, ...], **row: Any) -> ConditionSpec:
    return ConditionSpec(needs=tuple(Result[result_name.upper()] for result_name in needs), **row)


CONDITION_SPECS: Final[Mapping[Condition, ConditionSpec]] = {
    condition: _condition_spec(**_in_tuples(row)) for condition, row in _TABLE["conditions"].items()
}
"""The conditions in the order of menus; :data:`Condition` lists the same words."""
CONDITIONS: Final[tuple[Condition, ...]] = tuple(CONDITION_SPECS)
GUARDS: Final[tuple[Condition, ...]] = tuple(condition for condition, spec in CONDITION_SPECS.items() if spec.guards)
"""The conditions that need a verdict, and therefore never match a text."""
GUARD_FOR: Final[Mapping[Result, Condition]] = {
    verdict: next(condition for condition, spec in CONDITION_SPECS.items() if spec.needs == (verdict,))
    for verdict in YES_OR_NO
}
"""For each verdict, the condition that matches only this verdict."""
REWORK_CONDITIONS: Final[tuple[Condition, ...]] = tuple(
    condition for condition, spec in CONDITION_SPECS.items() if spec.sends_back
)
"""The conditions whose edges send work back."""
OUTPUT_CONDITIONS: Final[tuple[Condition, ...]] = tuple(
    condition for condition, spec in CONDITION_SPECS.items() if not spec.without_output
)
"""The conditions that an advance or an exit can have, since both follow an accepted output."""


def is_condition(value: JSON) -> TypeGuard[Condition]:
    """True if ``value`` is a canonical condition (R3)."""
    return isinstance(value, str) and value in CONDITION_SPECS


CONDITION_ADVICE: Final = "write " + one_of_words(f'"{condition}"' for condition in CONDITIONS)


def unmatched_verdicts(conditions: Iterable[Condition]) -> list[Condition]:
    """Return the verdicts that none of ``conditions`` matches, each as the condition on only this verdict."""
    matched = {result for condition in conditions for result in CONDITION_SPECS[condition].needs}
    return [word for verdict, word in GUARD_FOR.items() if verdict not in matched]


def match_every_output(conditions: Collection[Condition], *, text: bool) -> bool:
    """True if the conditions match every output; with ``text``, outputs are texts and have no verdict."""
    if text:
        return any(CONDITION_SPECS[condition].holds(Result.NOTHING) for condition in conditions)
    return not unmatched_verdicts(conditions)


def condition_spec(condition: str) -> ConditionSpec:
    """Return the description of a condition; raises MateriaError for an unknown condition."""
    row = cast("Mapping[str, ConditionSpec]", CONDITION_SPECS).get(condition)
    if row is None:
        hint = f"{CONDITION_ADVICE} ({did_you_mean(condition, CONDITIONS)})"
        raise MateriaError(f"{condition!r} is not a condition", hint=hint, kind="condition")
    return row


GROUP: Final = "materia_nb.handoff_protocols"
"""The entry point group in which a package registers its protocols."""


class OwnProtocol(NamedTuple):
    """The properties of a protocol of this package that are needed to check a config.

    Attributes:
        implementation: the class in ``materia_nb.handoff`` that implements the protocol.
        fields: the top-level fields that an agent must return; None if the socket determines the fields and its
            assignments add more.
        includes_assignment: True if the agent gets the ``assignment`` of its socket.
        in_separate_turn: True if the handoff should be requested in a separate turn after the work.
        requires_verdict: True if an output without a verdict is refused when every edge or exit needs a verdict (R7).
    """

    implementation: str
    fields: tuple[str, ...] | None = None
    includes_assignment: bool = False
    in_separate_turn: bool = False
    requires_verdict: bool = False


OWN_PROTOCOLS: Final[Mapping[str, OwnProtocol]] = {
    name: OwnProtocol(**_in_tuples(row)) for name, row in _TABLE["protocols"].items()
}
"""The protocols of this package by name, the default first; other packages cannot use these names."""
DEFAULT_HANDOFF: Final = next(iter(OWN_PROTOCOLS))


def requires_verdict(protocol: object) -> bool:
    """True if this protocol requires a verdict when every edge or exit depends on one (R7)."""
    own = OWN_PROTOCOLS.get(protocol) if isinstance(protocol, str) else None
    return own is not None and own.requires_verdict


def protocol_names() -> list[str]:
    """Return the names of all protocols, the protocols of this package first."""
    foreign = {entry.name for entry in entry_points(group=GROUP)}
    return [*OWN_PROTOCOLS, *sorted(foreign.difference(OWN_PROTOCOLS))]


SIMPLE: Final = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")


_FIRST_FIELD: Final = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


def first_field(source: str) -> str | None:
    """Return the top-level field that a ``$`` source reads (R8); None if the source does not begin with a field."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)


def source_fault(source: str) -> tuple[str, str] | None:
    """Return an error message and advice for a ``$`` source that is not valid JSONPath; None for a valid source.

    Other sources are state paths, which are always valid.
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
    """Return the reason why a JSONPath expression could take extremely long on some outputs, and advice; else None."""
    if "=~" in source or "`sub(" in source:
        return (
            "contains a regular expression, which could run forever on some outputs",
            "compare with ==, or use a utility",
        )
    if source.count("..") > 1:
        return (
            "searches all levels more than once, which takes too long in a deep output",
            "write .. at most once",
        )
    return None


@lru_cache(maxsize=1024)
def jsonpath_fault(source: str) -> str | None:
    """Return the reason why ``source`` is not valid JSONPath, or None if it is valid."""
    if SIMPLE.fullmatch(source):
        return None
    from jsonpath_ng.ext import parse

    try:
        parse(source)
    except Exception as error:  # noqa: BLE001 - the library raises several unrelated types, bare Exception among them
        text = " ".join(str(error).split())
        return text[:120] or type(error).__name__
    return None


_HEX: Final = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")
_PREFIX: Final = "materia-color-"
NAMED: Final[Mapping[str, str]] = _TABLE["colours"]
"""Colours on which text is readable, by name; the editor of the reference engine prefixes ``materia-color-``."""


class Tint(NamedTuple):
    """A background and the colour of the text on it, both ``#rrggbb``."""

    fill: str
    ink: str


def tint_of(colour: JSON) -> Tint | None:
    """Return the tint of a colour, given as ``#rgb``, ``#rrggbb`` or a name such as ``teal``; else None."""
    if not isinstance(colour, str):
        return None
    name = colour.strip().lower()
    fill = NAMED.get(name.removeprefix(_PREFIX), name)
    if not _HEX.fullmatch(fill):
        return None
    if len(fill) == 4:
        fill = "#" + "".join(digit * 2 for digit in fill[1:])
    light = _luminance(fill)
    return Tint(fill, "#ffffff" if 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 else "#000000")


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1 (WCAG 2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


FilesChoice: TypeAlias = Literal["off", "not ignored", "all"]
"""Files in the snapshot after each step: no files, the files that Git does not ignore, or all files."""
FILES_OFF, FILES_NOT_IGNORED, ALL_FILES = FILE_CHOICES = get_args(FilesChoice)
