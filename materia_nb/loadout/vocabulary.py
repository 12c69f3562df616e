"""Words of a config: conditions, names of protocols, assignment sources (R11), colours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeGuard, cast, get_args

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.file_io import read_package_toml
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.report import brief

WORK_ITEMS: Final = "workItems"
RESULTS: Final = "parallelResults"
"""Name in the state of the results of the lanes after the join (P6)."""
WORK_ITEMS_SOURCE: Final = "$.workItems"
Condition: TypeAlias = Literal["always", "satisfied", "not_satisfied", "failed"]


class Result(StrEnum):
    """The result of a visit (R60), by which the next edge or exit is chosen.

    An output that is accepted says YES, NO or NOTHING in ``satisfied``; a text says NOTHING. A visit whose agent or
    process gave no output has FAILED, one whose output is refused for good is REFUSED, and one that a person must end is
    STOPPED. A member has its value, what a condition that waits for it needs, what happened as a sentence, and the kinds
    of failures that it stands for, separated by blanks: such a member is a special case of FAILED.
    """

    YES = "yes", "satisfied: true", "the output says satisfied: true"
    NO = "no", "satisfied: false", "the output says satisfied: false"
    NOTHING = "nothing", "no satisfied", "the output says no satisfied"
    FAILED = "failed", "a failure", "it failed"
    REFUSED = "refused", "a refused output", "the output was refused"
    STOPPED = "stopped", "a stop", "a person must decide"

    asked: str
    """Description of the output that a condition on this result needs."""
    words: str
    """A sentence about the result."""
    kinds: tuple[str, ...]
    """The kinds of failures that it stands for; empty for results that are not special cases of FAILED."""

    def __new__(cls, value: str, asked: str, words: str, kinds: str = "") -> Self:
        """Return a new member."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.asked, member.words, member.kinds = asked, words, tuple(kinds.split())
        return member

    @classmethod
    def of(cls, satisfied: object) -> Result:
        """Return the result of an accepted output with this value of ``satisfied``."""
        return cls.YES if satisfied is True else cls.NO if satisfied is False else cls.NOTHING

    @classmethod
    def of_failure(cls, kind: str) -> Result:
        """Return what happened to a visit that failed with this kind of failure."""
        return next((result for result in cls if kind in result.kinds), cls.FAILED)

    @property
    def satisfied(self) -> bool | None:
        """The value of ``satisfied`` in the output; None without a verdict."""
        return True if self is Result.YES else False if self is Result.NO else None

    @property
    def silent(self) -> bool:
        """True if no output came back at all; a refused output did come back."""
        return self is Result.FAILED or bool(self.kinds)


TAKEN: Final = (Result.YES, Result.NO, Result.NOTHING)
"""Results of visits whose output is accepted."""
YES_OR_NO: Final = (Result.YES, Result.NO)
"""Results with a verdict."""
WITHOUT_OUTPUT: Final = tuple(result for result in Result if result.silent or result is Result.REFUSED)
"""Results of visits without an accepted output; the cast stops unless an edge waits for the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A condition: when it matches, its texts, and how its edges are drawn.

    Attributes:
        needs: what may have happened to a visit for it to match.
        sign: how it is written in full.
        short: the same on cards and lines.
        choice: its name in legends and where one is chosen.
        phrase: what it is in a sentence, as ``when satisfied``.
        light: the colour of its words, and of its lines unless it matches whatever an output says; ``dark`` on a dark page.
        dashes: the pattern of its lines, None for solid ones.
        sends_back: whether an edge that waits for it sends work back that was not good enough.
        tone: the tone of the front end in which it is listed, such as ``good`` (``mnb-t-good`` in ``front.css``); ""
            for none.
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
        """True if it matches a visit with this result; a condition on FAILED matches its special cases too."""
        return result in self.needs or (Result.FAILED in self.needs and result.silent)

    def meets(self, other: Described) -> bool:
        """True if a visit can match both conditions."""
        return not set(self.needs).isdisjoint(other.needs)

    @property
    def whatever(self) -> bool:
        """True if it matches every accepted output."""
        return set(TAKEN).issubset(self.needs)

    @property
    def guards(self) -> bool:
        """True if it needs a verdict, so that an output without one, such as a text, never matches."""
        return not self.holds(Result.NOTHING) and not set(YES_OR_NO).isdisjoint(self.needs)

    @property
    def without_output(self) -> bool:
        """True if it only matches visits without an accepted output, so that only an edge can have it."""
        return set(TAKEN).isdisjoint(self.needs)

    @property
    def asked(self) -> str:
        """Description of the output that it needs to match."""
        return "an output" if self.whatever else " or ".join(result.asked for result in self.needs)


_TABLE: Final = read_package_toml(__file__, "vocabulary.toml")


def _in_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _described(needs: tuple[str, ...], **row: Any) -> Described:
    return Described(needs=tuple(Result[need.upper()] for need in needs), **row)


DESCRIBED: Final[Mapping[Condition, Described]] = {
    word: _described(**_in_tuples(row)) for word, row in _TABLE["conditions"].items()
}
"""The conditions in the order of menus; :data:`Condition` lists the same words."""
CONDITIONS: Final[tuple[Condition, ...]] = tuple(DESCRIBED)
GUARDS: Final[tuple[Condition, ...]] = tuple(word for word, condition in DESCRIBED.items() if condition.guards)
"""The conditions on a verdict, which never match a text."""
WAITING_FOR: Final[Mapping[Result, Condition]] = {
    verdict: next(word for word, condition in DESCRIBED.items() if condition.needs == (verdict,))
    for verdict in YES_OR_NO
}
"""The condition on exactly one verdict, by verdict; together they cover all verdicts."""
SENDING_BACK: Final[tuple[Condition, ...]] = tuple(
    word for word, condition in DESCRIBED.items() if condition.sends_back
)
"""The conditions whose edges send work back."""
OF_OUTPUTS: Final[tuple[Condition, ...]] = tuple(
    word for word, condition in DESCRIBED.items() if not condition.without_output
)
"""The conditions of an advance or an exit, which follow an output."""


def is_condition(value: JSON) -> TypeGuard[Condition]:
    """True if ``value`` is a canonical condition (R3)."""
    return isinstance(value, str) and value in DESCRIBED


CONDITION_ADVICE: Final = "write one of: " + ", ".join(f'"{condition}"' for condition in CONDITIONS)


def unmet(conditions: Iterable[Condition]) -> list[Condition]:
    """Return the verdicts that none of ``conditions`` matches, each as the condition that waits for it alone."""
    matched = {result for condition in conditions for result in DESCRIBED[condition].needs}
    return [word for verdict, word in WAITING_FOR.items() if verdict not in matched]


def covered(conditions: Collection[Condition], *, text: bool) -> bool:
    """True if the conditions match every output: of a text, which has no verdict, or of another output."""
    return (
        any(DESCRIBED[condition].holds(Result.NOTHING) for condition in conditions) if text else not unmet(conditions)
    )


def described(condition: str) -> Described:
    """Return the meaning of a condition; raises MateriaError for an unknown word."""
    row = cast("Mapping[str, Described]", DESCRIBED).get(condition)
    if row is None:
        hint = f"{CONDITION_ADVICE} ({did_you_mean(condition, CONDITIONS)})"
        raise MateriaError(f"{condition!r} is not a condition", hint=hint, kind="condition")
    return row


GROUP: Final = "materia_nb.handoff_protocols"
"""The entry point group in which a package names its protocols."""


class OwnProtocol(NamedTuple):
    """The facts about a protocol of this package that reading a config needs.

    Attributes:
        place: the class in ``materia_nb.handoff`` that reads and asks for it.
        fields: the top-level fields that an agent is asked for; None where its socket says them, and assignments add theirs.
        tells_the_task: whether an agent is told an ``assignment``.
        apart: whether it is better asked for in a turn of its own, when the work is done.
        reviewer_says: the field with which a reviewer says whether another round helps, "" where there is none.
        must_judge: whether an output without a verdict is refused where every way on asks for one (R7).
    """

    place: str
    fields: tuple[str, ...] | None = None
    tells_the_task: bool = False
    apart: bool = False
    reviewer_says: str = ""
    must_judge: bool = False


OWN_PROTOCOLS: Final[Mapping[str, OwnProtocol]] = {
    name: OwnProtocol(**_in_tuples(row)) for name, row in _TABLE["protocols"].items()
}
"""The protocols of this package by name, the default first; other packages cannot use these names."""
DEFAULT_HANDOFF: Final = next(iter(OWN_PROTOCOLS))


def must_judge(protocol: object) -> bool:
    """True if this protocol requires a verdict when every edge or exit depends on one (R7)."""
    own = OWN_PROTOCOLS.get(protocol) if isinstance(protocol, str) else None
    return own is not None and own.must_judge


def protocol_names() -> list[str]:
    """Return the names of all protocols, our own first."""
    foreign = {entry.name for entry in entry_points(group=GROUP)}
    return [*OWN_PROTOCOLS, *sorted(foreign.difference(OWN_PROTOCOLS))]


SIMPLE: Final = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")


_FIRST_FIELD: Final = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


def first_field(source: str) -> str | None:
    """Return the top-level field that a ``$`` source reads, so that agents may write it (R8); None for ``$`` itself."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)


def source_fault(source: str) -> tuple[str, str] | None:
    """Return the fault of a ``$`` source that is not JSONPath, and advice; None if it is fine.

    Other sources are state paths, and always readable.
    """
    if not source.startswith("$"):
        return None
    if (endless := takes_long(source)) is not None:
        return f"{brief(source)} {endless[0]}", endless[1]
    if (fault := jsonpath_fault(source)) is None:
        return None
    return (
        f"{brief(source)} is not a JSONPath expression ({fault})",
        "write $, a dotted path such as $.plan.name, or JSONPath such as $.items[*].title",
    )


def takes_long(source: str) -> tuple[str, str] | None:
    """Return why an output could make an expression run without end, and advice; None if it cannot."""
    if "=~" in source or "`sub(" in source:
        return (
            "holds a regular expression, which an output can keep busy for ever",
            "compare with ==, or use a utility",
        )
    if source.count("..") > 1:
        return (
            "searches all levels more than once, which takes too long in a deep output",
            "write .. once at most",
        )
    return None


@lru_cache(maxsize=1024)
def jsonpath_fault(source: str) -> str | None:
    """Return why ``source`` is not JSONPath, or None if it is."""
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
"""Names of colours on which text is readable; the reference's editor writes ``materia-color-`` before them."""


class Tint(NamedTuple):
    """A background and the colour of the text on it, both ``#rrggbb``."""

    fill: str
    ink: str


def tint_of(colour: JSON) -> Tint | None:
    """Return the tint of a colour: ``#rgb``, ``#rrggbb``, or a name such as ``teal``; None for anything else."""
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


FilesWord: TypeAlias = Literal["as they are", "kept", "kept with ignored"]
"""Mode of the file snapshots after each step: none, without the files that Git ignores, or with them."""
FILES_AS_THEY_ARE, FILES_KEPT, FILES_WITH_IGNORED = FILE_CHOICES = get_args(FilesWord)
