"""Fields of a handoff as a table: how each is read, when it is missing, and what is told then, with a code and a fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff.protocol import TEXT, Issue, closed_object, listed_as, one_of
from materia_nb.jsonvalue import JSON

_FieldKind: TypeAlias = Literal["any", "word", "text", "texts", "flag", "numbers", "object", "objects"]
MOST_NOTED: Final = 1000
"""How many issues are kept; a reply of a megabyte could have a million, which nobody reads."""
_MOST_SHOWN: Final = 100
"""How many characters of a wrong word a code shows."""


def is_null(value: JSON) -> bool:
    """Whether it is null, or not there."""
    return value is None


def is_missing(value: JSON) -> bool:
    """Whether a field counts as absent: not there, null, or an empty string."""
    return value is None or value == ""


def is_blank(value: JSON) -> bool:
    """Whether there is no text, or one of white space alone."""
    return value is None or (isinstance(value, str) and not value.strip())


def no_object(value: JSON) -> bool:
    """Whether there is no object, or an empty one."""
    return not isinstance(value, dict) or not value


class HandoffField(NamedTuple):
    """One field of an object.

    Attributes:
        kind: how it is read. ``any`` and ``word`` without ``typed`` take every JSON value; others refuse a wrong type
            (``TYPE:path``).
        missing: the code of one that lacks, "" where it may be left out; ``{place}`` stands for the place in a list.
        fix: what to do about one that lacks.
        lacks: when it counts as missing; left out, as others of its kind.
        words: what a word may be, after ``fold``; another one has the issue ``code``, and what it was.
        typed: whether a word must be a string; one that only folding makes right is told as a warning.
        fields: those of the object, or of each object in the list.
        demands: whether the fields of an object that lacks are missing too.
        optional: whether a schema lets it out.
    """

    kind: _FieldKind = "any"
    missing: str = ""
    fix: str = "add it"
    lacks: Callable[[Any], bool] | None = None
    words: tuple[str, ...] = ()
    code: str = ""
    fold: Callable[[Any], JSON] = lambda value: value
    typed: bool = True
    fields: Mapping[str, HandoffField] = {}
    demands: bool = False
    optional: bool = False


Fields: TypeAlias = Mapping[str, HandoffField]
_KINDS: Final[Mapping[_FieldKind, tuple[type, str, object, Callable[[Any], bool]]]] = {
    "any": (object, "", None, is_missing),
    "word": (object, "", "", is_missing),
    "text": (str, "a string", "", is_blank),
    "texts": (list, "a list of strings", (), is_null),
    "flag": (bool, "true or false", None, is_null),
    "numbers": (dict, "an object", None, is_null),
    "object": (dict, "an object", None, is_null),
    "objects": (list, "a list of objects", (), is_null),
}
"""What each kind of field must be, in words too, what stands for one that is not there, and when it is not."""


class Checker:
    """Reads objects by their fields and collects issues and warnings; a path is written ``summary.evidence``."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def refuse(self, code: str, path: str, message: str, fix: str) -> None:
        """Note a reason to refuse the object."""
        if len(self.issues) < MOST_NOTED:
            self.issues.append(_issue(code, path, message, fix))

    def warn(self, code: str, path: str, message: str, fix: str) -> None:
        """Note something odd that is no reason to refuse the object."""
        if len(self.warnings) < MOST_NOTED:
            self.warnings.append(_issue(code, path, message, fix))

    def read(
        self, owner: Mapping[str, JSON], fields: Fields, path: str = "", place: int = 0
    ) -> dict[str, Any]:
        """Return the fields of an object by name, those that cannot be read as nothing of their kind."""
        return {
            name: self._field(owner.get(name), field, f"{path}{name}", place)
            for name, field in fields.items()
        }

    def _field(self, value: JSON, field: HandoffField, path: str, place: int) -> Any:
        wanted, words, nothing, is_none = _KINDS[field.kind]
        lacks = (field.lacks or is_none)(value)
        if lacks and field.missing:
            fix = f"write one of {', '.join(field.words)}" if field.words else field.fix
            self.refuse(field.missing.format(place=place), path, f"{path} is missing.", fix)
        if field.kind == "object":
            read = self if isinstance(value, dict) or field.demands else Checker()
            inside = value if lacks or self._is(value, wanted, path, words) else None
            return read.read(inside or {}, field.fields, f"{path}.")
        if lacks or (wanted is not object and not self._is(value, wanted, path, words)):
            return value if field.kind == "any" else nothing
        if field.kind == "word":
            return self._word(value, field, path)
        return self._entries(value, field, path) if isinstance(value, list) and field.kind != "any" else value

    def _entries(self, value: list[JSON], field: HandoffField, path: str) -> tuple[Any, ...]:
        """The entries of a list that are what they should be."""
        of, words = (str, "a string") if field.kind == "texts" else (dict, "an object")
        kept = [(n, one) for n, one in enumerate(value) if self._is(one, of, f"{path}[{n}]", words)]
        if field.kind == "texts":
            return tuple(text for _, text in kept)
        return tuple(self.read(one, field.fields, f"{path}[{n}].", n) for n, one in kept)

    def _is(self, value: JSON, wanted: type, path: str, words: str) -> bool:
        if not isinstance(value, wanted):
            self.refuse(f"TYPE:{path}", path, f"{path} is not {words}.", f"write {words}")
        return isinstance(value, wanted)

    def _word(self, value: JSON, field: HandoffField, path: str) -> JSON:
        if field.typed and not self._is(value, str, path, "a string"):
            return ""
        word, choices = field.fold(value), ", ".join(field.words)
        if word not in field.words:
            shown = str(value).strip()[:_MOST_SHOWN] if field.typed else str(word)[: 2 * _MOST_SHOWN]
            self.refuse(
                f"{field.code}:{shown}", path, f"{path} is none of {choices}.", f"write one of {choices}"
            )
            return ""
        if field.typed and word != value:
            self.warn(f"{field.code}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
        return word


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)


def schema_of(fields: Fields) -> dict[str, JSON]:
    """Describe an object of these fields as a JSON Schema."""
    optional = tuple(name for name, field in fields.items() if field.optional)
    return closed_object({name: _schema(field) for name, field in fields.items()}, optional=optional)


def _schema(field: HandoffField) -> JSON:
    made: dict[_FieldKind, Callable[[], JSON]] = {
        "any": dict,
        "word": lambda: one_of(field.words),
        "text": lambda: TEXT,
        "texts": lambda: listed_as(TEXT),
        "flag": lambda: {"type": "boolean"},
        "numbers": lambda: {"type": "object", "additionalProperties": {"type": "number"}},
        "object": lambda: schema_of(field.fields),
        "objects": lambda: listed_as(schema_of(field.fields)),
    }
    return made[field.kind]()
