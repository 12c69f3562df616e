"""Checks that all protocols share: required fields of a socket, field tables, and placeholders copied from a form.

A field table defines for each field of a format its type, the test for a missing value, and the issue with its fix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.errors import MateriaError
from materia_nb.file_io import read_package_toml
from materia_nb.handoff.base import Issue, Requirements
from materia_nb.jsonvalue import JSON, MISSING, get_path
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.vocabulary import GUARDS, OUTPUT_CONDITIONS, REWORK_CONDITIONS, SIMPLE, Condition, first_field

SCHEDULE: Final = "parallelSchedule"
_CANONICAL = ("workItems", "satisfied", "context")


@lru_cache(maxsize=1024)
def reader(source: str) -> Callable[[JSON], JSON]:
    """Return a function that reads ``source`` from a parsed output and returns the value, or MISSING without a match.

    ``$`` and dotted paths such as ``$.a.b.0`` are read directly. Any other source is full JSONPath: one match returns
    the value, several matches return a list (R11).

    Raises:
        MateriaError: ``source`` is not valid JSONPath (``assignment``).
    """
    if SIMPLE.fullmatch(source):
        segments = source.split(".")[1:]
        return lambda value: get_path(value, segments)
    from jsonpath_ng.ext import parse

    try:
        expression = parse(source)
    except Exception as error:  # the library raises several unrelated types, even bare Exception
        raise MateriaError(
            f"{source!r} is not a JSONPath expression: {error}",
            hint="write $, a dotted path such as $.plan.name, or full JSONPath such as $.items[*].title",
            kind="assignment",
        ) from error

    def read(value: JSON) -> JSON:
        try:
            matches = [match.value for match in expression.find(value)]
        except Exception:  # noqa: BLE001 - filters raise various errors for unexpected values
            return MISSING
        if not matches:
            return MISSING
        return matches[0] if len(matches) == 1 else matches

    return read


def requirements_of(socket: Socket) -> Requirements:
    """Return the required output of ``socket``, derived from its edges, advance condition, assignments and materia."""
    followed = [edge.when for edge in socket.edges if edge.when in OUTPUT_CONDITIONS]
    sources = tuple((target, source) for target, source in socket.assign if source.startswith("$"))
    return Requirements(
        parse=socket.parse,
        utility=socket.is_utility,
        why_satisfied=_why_satisfied(socket, followed),
        work_items=socket.is_generator,
        check_items=not socket.is_utility or socket.is_generator,
        streams=socket.materia.parallel,
        fields=frozenset((*_CANONICAL, *([SCHEDULE] if socket.materia.parallel else [])))
        | {name for _, source in sources if (name := first_field(source))},
        sources=sources,
        sends_back=any(edge.when in REWORK_CONDITIONS for edge in socket.edges),
        only_guarded=bool(followed) and all(when in GUARDS for when in followed),
    )


def _why_satisfied(socket: Socket, followed: Sequence[Condition]) -> str | None:
    """Return the reason why ``satisfied`` is required, or None. ``followed`` contains the socket's edge conditions."""
    guards = [when for when in followed if when in GUARDS]
    advance_guarded = socket.advance is not None and socket.advance.when in GUARDS
    if socket.is_utility and len(guards) < len(followed):
        guards, advance_guarded = [], False
    if guards:
        return "the next step depends on it"
    if advance_guarded:
        return "the move to the next item depends on it"
    if not socket.is_utility and any(first_field(source) == "satisfied" for _, source in socket.assign):
        return "an assignment reads it"
    return None


def missing_sources(value: JSON, requirements: Requirements, reported: Collection[str] = ()) -> Iterator[Issue]:
    """Yield an issue for each assignment source that is missing in ``value``, except sources in ``reported``.

    Missing work items of a generator are skipped, because its protocol reports them (R4).
    """
    checked = {*reported, *(("$.workItems",) if requirements.work_items else ())}
    for target, source in requirements.sources:
        if source not in checked and reader(source)(value) is MISSING:
            checked.add(source)
            message = f"{source} is missing: it is assigned to state.{target}."
            yield Issue(source, message, "add it; its value may be null")


_ISSUES_LISTED: Final = 40


class RefusedAnswer(MateriaError):
    """Raised if an answer is refused. ``issues`` contains every reason with its path, message and fix."""

    def __init__(self, message: str, issues: Sequence[Issue], kind: str = "refused_answer") -> None:
        self.issues = tuple(issues)
        first, *others = issues
        if not others:
            super().__init__(f"{message} {first.message}", where=first.path, hint=first.fix, kind=kind)
            return
        lines = [f"  {issue.line}" for issue in issues[:_ISSUES_LISTED]]
        if len(issues) > _ISSUES_LISTED:
            lines.append(f"  and {len(issues) - _ISSUES_LISTED} more issues")
        super().__init__(message, more=lines, kind=kind)


_ISSUES: Final = read_package_toml(__file__, "issues.toml")


def issue_of(code: str, detail: object = None, **values: object) -> Issue:
    """Return the issue for a code, with texts from ``issues.toml``; ``detail`` is appended to the code."""
    path, message, fix = (_ISSUES[code][part].format_map(values) for part in ("path", "message", "fix"))
    return Issue(path, message, fix, code if detail is None else f"{code}:{detail}")


def summarize_issues(issues: Sequence[Issue], limit: int = 8) -> str:
    """Return the paths and messages of the first ``limit`` issues, in one line."""
    return "; ".join(issue.summary for issue in issues[:limit])


LONGEST_FORM: Final = 600
LONGEST_SHORT_FORM: Final = 300
"""Maximum length of a form, and of the short form in later turns of a conversation, in characters (R50, R51)."""
FORM_WORDS: Final = "form_words"
_PLACEHOLDER = re.compile(r"<?(?:\.{3}|…)>?|<[^\W\d][\w,'-]*(?: [\w,'-]+)+>?")
"""Pattern of a placeholder from a form: dots, or words after ``<``. Weak models also vary placeholders."""


def form_words(value: JSON, placeholders: Collection[str], path: str = "$") -> Iterator[Issue]:
    """Yield an issue for each text in an answer that is only a placeholder copied from the form (R51)."""
    if isinstance(value, str):
        text = value.strip()
        if text in placeholders or _PLACEHOLDER.fullmatch(text):
            yield Issue(
                path,
                f"{text!r:.200} is a placeholder of the form, not an answer.",
                "replace it with your own content, or omit the field if it is optional",
                FORM_WORDS,
            )
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from form_words(child, placeholders, f"{path}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from form_words(child, placeholders, f"{path}.{index}")


TEXT: Final[JSON] = {"type": "string"}
ANYTHING: Final[JSON] = {}
"""JSON Schema that accepts any value."""


def closed_object(fields: Mapping[str, JSON], optional: tuple[str, ...] = ()) -> dict[str, JSON]:
    """Return the schema of an object that allows only ``fields``."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def list_of(entry: JSON) -> dict[str, JSON]:
    """Return the schema of a list; ``entry`` is the schema of each entry."""
    return {"type": "array", "items": entry}


_FieldKind: TypeAlias = Literal["any", "word", "text", "texts", "flag", "numbers", "object", "objects"]
MAX_ISSUES: Final = 1000
"""Maximum number of issues per reply, because a reply of one megabyte could have a million issues."""
_SHOWN_CHARS: Final = 100
"""Maximum length of a wrong word that is quoted in an issue code, in characters."""


def is_null(value: JSON) -> bool:
    """Return True for null, and for a field that does not exist."""
    return value is None


def is_missing(value: JSON) -> bool:
    """Return True for null, an empty string, and a field that does not exist."""
    return value is None or value == ""


def is_blank(value: JSON) -> bool:
    """Return True for null, and for a text that is empty or only white space."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_no_object(value: JSON) -> bool:
    """Return True unless the value is an object that has at least one field."""
    return not isinstance(value, dict) or not value


class HandoffField(NamedTuple):
    """One field of an object.

    Attributes:
        kind: the type. ``any``, and ``word`` without ``typed``, accept every JSON type. All other kinds refuse a wrong
            type with the issue ``TYPE:path``.
        missing: issue code if the field is missing, "" if it is optional; ``{place}`` is replaced by the index in the
            list.
        fix: the fix to report if the field is missing.
        lacks: test for a missing value; None for the default test of the kind.
        choices: the allowed words, compared after ``fold``. Any other word causes an issue: ``code`` followed by the
            word.
        typed: True if the word must be a string. A word that is valid only after ``fold`` causes a warning.
        fields: fields of the object, or of each object in the list.
        demands: True if a missing object also causes an issue for each of its fields.
        optional: True if the field is optional in the schema.
    """

    kind: _FieldKind = "any"
    missing: str = ""
    fix: str = "add it"
    lacks: Callable[[Any], bool] | None = None
    choices: tuple[str, ...] = ()
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
"""The Python type, the name in messages, the default value and the test for a missing value of each kind of field."""


class Checker:
    """Reads objects with field tables, and collects issues and warnings with paths such as ``summary.evidence``."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def read(self, owner: Mapping[str, JSON], fields: Fields, path: str = "", index: int = 0) -> dict[str, Any]:
        """Return the values of an object by field name; an unreadable value is replaced by the default of its kind."""
        return {name: self._field(owner.get(name), field, f"{path}{name}", index) for name, field in fields.items()}

    def _refuse(self, code: str, path: str, message: str, fix: str) -> None:
        if len(self.issues) < MAX_ISSUES:
            self.issues.append(_issue(code, path, message, fix))

    def _field(self, value: JSON, field: HandoffField, path: str, index: int) -> Any:
        kind, kind_name, default, is_absent = _KINDS[field.kind]
        lacks = (field.lacks or is_absent)(value)
        if lacks and field.missing:
            fix = f"write one of {', '.join(field.choices)}" if field.choices else field.fix
            self._refuse(field.missing.format(place=index), path, f"{path} is missing.", fix)
        if field.kind == "object":
            checker = self if isinstance(value, dict) or field.demands else Checker()
            content = value if lacks or self._is(value, kind, path, kind_name) else None
            return checker.read(content or {}, field.fields, f"{path}.")
        if lacks or (kind is not object and not self._is(value, kind, path, kind_name)):
            return value if field.kind == "any" else default
        if field.kind == "word":
            return self._word(value, field, path)
        return self._entries(value, field, path) if isinstance(value, list) and field.kind != "any" else value

    def _entries(self, value: list[JSON], field: HandoffField, path: str) -> tuple[Any, ...]:
        """Return the entries of a list that have the right type."""
        kind, kind_name = (str, "a string") if field.kind == "texts" else (dict, "an object")
        valid = [
            (index, entry) for index, entry in enumerate(value) if self._is(entry, kind, f"{path}[{index}]", kind_name)
        ]
        if field.kind == "texts":
            return tuple(text for _, text in valid)
        return tuple(self.read(entry, field.fields, f"{path}[{index}].", index) for index, entry in valid)

    def _is(self, value: JSON, kind: type, path: str, kind_name: str) -> bool:
        if not isinstance(value, kind):
            self._refuse(f"TYPE:{path}", path, f"{path} is not {kind_name}.", f"write {kind_name}")
        return isinstance(value, kind)

    def _word(self, value: JSON, field: HandoffField, path: str) -> JSON:
        if field.typed and not self._is(value, str, path, "a string"):
            return ""
        word, choices = field.fold(value), ", ".join(field.choices)
        if word not in field.choices:
            excerpt = str(value).strip()[:_SHOWN_CHARS] if field.typed else str(word)[: 2 * _SHOWN_CHARS]
            self._refuse(
                f"{field.code}:{excerpt}",
                path,
                f"{path} must be one of these words: {choices}.",
                f"write one of {choices}",
            )
            return ""
        if field.typed and word != value and len(self.warnings) < MAX_ISSUES:
            warning = _issue(f"{field.code}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
            self.warnings.append(warning)
        return word


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)


def schema_of(fields: Fields) -> dict[str, JSON]:
    """Return the JSON Schema of an object with these fields."""
    optional = tuple(name for name, field in fields.items() if field.optional)
    return closed_object({name: _schema(field) for name, field in fields.items()}, optional=optional)


def _schema(field: HandoffField) -> JSON:
    schemas: dict[_FieldKind, Callable[[], JSON]] = {
        "any": dict,
        "word": lambda: {"type": "string", "enum": list(field.choices)},
        "text": lambda: TEXT,
        "texts": lambda: list_of(TEXT),
        "flag": lambda: {"type": "boolean"},
        "numbers": lambda: {"type": "object", "additionalProperties": {"type": "number"}},
        "object": lambda: schema_of(field.fields),
        "objects": lambda: list_of(schema_of(field.fields)),
    }
    return schemas[field.kind]()
