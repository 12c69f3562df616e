"""Validation that is shared by all protocols: the requirements of a socket, field tables, and copied placeholders.

A field table defines the type of each field in a format, the test for a missing value, and the issue to report.
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
_CANONICAL_FIELDS = ("workItems", "satisfied", "context")


@lru_cache(maxsize=1024)
def reader(source: str) -> Callable[[JSON], JSON]:
    """Return a function that evaluates the JSONPath expression ``source`` on a parsed output.

    The function returns MISSING if nothing matches, the value if there is one match, and a list if there are several
    matches (R11). Dotted paths such as ``$.a.b.0`` are evaluated without the JSONPath library.

    Raises:
        MateriaError: ``source`` is not a valid JSONPath expression (``assignment``).
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
    """Derive the requirements for a socket's output from its edges, advance condition, assignments and materia."""
    conditions = [edge.when for edge in socket.edges if edge.when in OUTPUT_CONDITIONS]
    sources = tuple((target, source) for target, source in socket.assign if source.startswith("$"))
    return Requirements(
        parse=socket.parse,
        utility=socket.is_utility,
        why_satisfied=_why_satisfied(socket, conditions),
        work_items=socket.is_generator,
        check_items=not socket.is_utility or socket.is_generator,
        streams=socket.materia.parallel,
        fields=frozenset((*_CANONICAL_FIELDS, *([SCHEDULE] if socket.materia.parallel else [])))
        | {name for _, source in sources if (name := first_field(source))},
        sources=sources,
        sends_back=any(edge.when in REWORK_CONDITIONS for edge in socket.edges),
        only_guarded=bool(conditions) and all(when in GUARDS for when in conditions),
    )


def _why_satisfied(socket: Socket, conditions: Sequence[Condition]) -> str | None:
    """Return the reason why ``satisfied`` is required, or None if it is optional.

    ``conditions`` contains the conditions of the socket's edges.
    """
    guards = [when for when in conditions if when in GUARDS]
    advance_guarded = socket.advance is not None and socket.advance.when in GUARDS
    if socket.is_utility and len(guards) < len(conditions):
        guards, advance_guarded = [], False
    if guards:
        return "the next step depends on it"
    if advance_guarded:
        return "the move to the next item depends on it"
    if not socket.is_utility and any(first_field(source) == "satisfied" for _, source in socket.assign):
        return "an assignment reads it"
    return None


def missing_sources(value: JSON, requirements: Requirements, reported_sources: Collection[str] = ()) -> Iterator[Issue]:
    """Yield an issue for each source of an assignment that is missing in the output ``value``.

    Missing work items of a generator are skipped, because the protocol reports them itself (R4). ``reported_sources``
    contains further sources to skip.
    """
    skipped_sources = {*reported_sources, *(("$.workItems",) if requirements.work_items else ())}
    for target, source in requirements.sources:
        if source not in skipped_sources and reader(source)(value) is MISSING:
            skipped_sources.add(source)
            message = f"{source} is missing: it is assigned to state.{target}."
            yield Issue(source, message, "add it; its value may be null")


_MAX_LISTED_ISSUES: Final = 40


class RefusedAnswer(MateriaError):
    """Raised if an answer is refused; the attribute ``issues`` contains all reasons."""

    def __init__(self, message: str, issues: Sequence[Issue], kind: str = "refused_answer") -> None:
        self.issues = tuple(issues)
        first, *others = issues
        if not others:
            super().__init__(f"{message} {first.message}", where=first.path, hint=first.fix, kind=kind)
            return
        lines = [f"  {issue.line}" for issue in issues[:_MAX_LISTED_ISSUES]]
        if len(issues) > _MAX_LISTED_ISSUES:
            lines.append(f"  and {len(issues) - _MAX_LISTED_ISSUES} more issues")
        super().__init__(message, more=lines, kind=kind)


_ISSUES: Final = read_package_toml(__file__, "issues.toml")


def issue_of(code: str, detail: object = None, **values: object) -> Issue:
    """Return the issue with the code ``code``, whose texts are defined in ``issues.toml``.

    Args:
        code: the name of the issue in ``issues.toml``.
        detail: a value that is appended to the code of the issue; None to append nothing.
        values: the values of the placeholders in the texts.
    """
    path, message, fix = (_ISSUES[code][part].format_map(values) for part in ("path", "message", "fix"))
    return Issue(path, message, fix, code if detail is None else f"{code}:{detail}")


def summarize_issues(issues: Sequence[Issue], limit: int = 8) -> str:
    """Return one line with the paths and messages of the first ``limit`` issues."""
    return "; ".join(issue.summary for issue in issues[:limit])


MAX_FORM_CHARS: Final = 600
MAX_SHORT_FORM_CHARS: Final = 300
"""Maximum length of the short form that is used in later turns of a conversation, in characters (R50, R51)."""
COPIED_PLACEHOLDERS: Final = "form_words"
_PLACEHOLDER = re.compile(r"<?(?:\.{3}|…)>?|<[^\W\d][\w,'-]*(?: [\w,'-]+)+>?")
"""Pattern of a placeholder in a form: an ellipsis, or words in angle brackets. Weak models vary placeholders."""


def placeholder_issues(value: JSON, placeholders: Collection[str], path: str = "$") -> Iterator[Issue]:
    """Yield an issue for each string in an answer that is a placeholder copied from the form (R51).

    Args:
        value: the answer, or part of it.
        placeholders: the placeholders in the form.
        path: the path of ``value`` in the answer.
    """
    if isinstance(value, str):
        text = value.strip()
        if text in placeholders or _PLACEHOLDER.fullmatch(text):
            yield Issue(
                path,
                f"{text!r:.200} is a placeholder from the form, not an answer.",
                "replace it with your own content, or omit the field if it is optional",
                COPIED_PLACEHOLDERS,
            )
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from placeholder_issues(child, placeholders, f"{path}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from placeholder_issues(child, placeholders, f"{path}.{index}")


TEXT_SCHEMA: Final[JSON] = {"type": "string"}
ANY_SCHEMA: Final[JSON] = {}
"""A JSON Schema that accepts any value."""


def closed_object(fields: Mapping[str, JSON], optional: tuple[str, ...] = ()) -> dict[str, JSON]:
    """Return the JSON Schema of an object that allows only ``fields``; all of them are required except ``optional``."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def list_of(entry: JSON) -> dict[str, JSON]:
    """Return the JSON Schema of a list whose entries have the schema ``entry``."""
    return {"type": "array", "items": entry}


_FieldKind: TypeAlias = Literal["any", "word", "text", "texts", "flag", "numbers", "object", "objects"]
MAX_ISSUES: Final = 1000
"""Maximum number of issues per reply, because a reply of one megabyte could contain a million problems."""
_MAX_EXCERPT_CHARS: Final = 100  # Maximum length of an invalid word that is quoted in an issue code, in characters.


def is_null(value: JSON) -> bool:
    """Return True if ``value`` is None, which stands for null or for a missing field."""
    return value is None


def is_missing(value: JSON) -> bool:
    """Return True if ``value`` is None, which stands for null or for a missing field, or if it is an empty string."""
    return value is None or value == ""


def is_blank(value: JSON) -> bool:
    """Return True if the value is null, an empty string, or a string of whitespace."""
    return value is None or (isinstance(value, str) and not value.strip())


def has_no_fields(value: JSON) -> bool:
    """Return True if the value is an empty object or not an object."""
    return not isinstance(value, dict) or not value


class HandoffField(NamedTuple):
    """The definition of a field in a field table.

    Attributes:
        kind: the type of the value. A value of the wrong type causes the issue ``TYPE:path``. All types are valid for
            ``any``, and for ``word`` if ``typed`` is False.
        missing: the issue code to report if the value is missing; empty if the value is optional. ``{index}`` is
            replaced by the index of the object in its list.
        fix: the fix to report if the value is missing.
        missing_test: a function that returns True if the value counts as missing; None to use the default of the kind.
        choices: the allowed words. They are compared with the value after ``fold`` has been applied.
        code_prefix: the prefix of the issue code to report for any other word; the word is appended to it.
        fold: a function that normalizes a word.
        typed: True if a word must be a string. A word that ``fold`` changes causes a warning.
        fields: the fields of the object, or of each object in the list.
        report_nested_fields: True if a missing object also causes an issue for each of its fields.
        optional: True if the field is optional in the JSON Schema.
    """

    kind: _FieldKind = "any"
    missing: str = ""
    fix: str = "add it"
    missing_test: Callable[[Any], bool] | None = None
    choices: tuple[str, ...] = ()
    code_prefix: str = ""
    fold: Callable[[Any], JSON] = lambda value: value
    typed: bool = True
    fields: Mapping[str, HandoffField] = {}
    report_nested_fields: bool = False
    optional: bool = False


Fields: TypeAlias = Mapping[str, HandoffField]
_KIND_SPECS: Final[Mapping[_FieldKind, tuple[type, str, object, Callable[[Any], bool]]]] = {
    "any": (object, "", None, is_missing),
    "word": (object, "", "", is_missing),
    "text": (str, "a string", "", is_blank),
    "texts": (list, "a list of strings", (), is_null),
    "flag": (bool, "true or false", None, is_null),
    "numbers": (dict, "an object", None, is_null),
    "object": (dict, "an object", None, is_null),
    "objects": (list, "a list of objects", (), is_null),
}  # Maps each kind of field to a Python type, a name for messages, a default value and a test for missing values.


class Checker:
    """Reads objects according to field tables, and collects the issues and warnings."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def read(self, owner: Mapping[str, JSON], fields: Fields, path: str = "", index: int = 0) -> dict[str, Any]:
        """Read the fields of an object, and return their values by name.

        A value that cannot be read is replaced by the default of its kind.

        Args:
            owner: the object.
            fields: the field table.
            path: the prefix of the paths in issues, such as ``summary.evidence.``.
            index: the index of the object in its list, for issue codes.
        """
        return {name: self._value(owner.get(name), field, f"{path}{name}", index) for name, field in fields.items()}

    def _add_issue(self, code: str, path: str, message: str, fix: str) -> None:
        if len(self.issues) < MAX_ISSUES:
            self.issues.append(_issue(code, path, message, fix))

    def _value(self, value: JSON, field: HandoffField, path: str, index: int) -> Any:
        kind, kind_name, default, is_absent = _KIND_SPECS[field.kind]
        is_missing_value = (field.missing_test or is_absent)(value)
        if is_missing_value and field.missing:
            fix = f"write one of {', '.join(field.choices)}" if field.choices else field.fix
            self._add_issue(field.missing.format(index=index), path, f"{path} is missing.", fix)
        if field.kind == "object":
            checker = self if isinstance(value, dict) or field.report_nested_fields else Checker()
            content = value if is_missing_value or self._is(value, kind, path, kind_name) else None
            return checker.read(content or {}, field.fields, f"{path}.")
        if is_missing_value or (kind is not object and not self._is(value, kind, path, kind_name)):
            return value if field.kind == "any" else default
        if field.kind == "word":
            return self._read_word(value, field, path)
        return self._read_entries(value, field, path) if isinstance(value, list) and field.kind != "any" else value

    def _read_entries(self, value: list[JSON], field: HandoffField, path: str) -> tuple[Any, ...]:
        """Read the entries of a list, and skip entries of a wrong type after reporting them."""
        kind, kind_name = (str, "a string") if field.kind == "texts" else (dict, "an object")
        valid = [
            (index, entry) for index, entry in enumerate(value) if self._is(entry, kind, f"{path}[{index}]", kind_name)
        ]
        if field.kind == "texts":
            return tuple(text for _, text in valid)
        return tuple(self.read(entry, field.fields, f"{path}[{index}].", index) for index, entry in valid)

    def _is(self, value: JSON, kind: type, path: str, kind_name: str) -> bool:
        if not isinstance(value, kind):
            self._add_issue(f"TYPE:{path}", path, f"{path} is not {kind_name}.", f"write {kind_name}")
        return isinstance(value, kind)

    def _read_word(self, value: JSON, field: HandoffField, path: str) -> JSON:
        if field.typed and not self._is(value, str, path, "a string"):
            return ""
        word, choices = field.fold(value), ", ".join(field.choices)
        if word not in field.choices:
            excerpt = str(value).strip()[:_MAX_EXCERPT_CHARS] if field.typed else str(word)[: 2 * _MAX_EXCERPT_CHARS]
            self._add_issue(
                f"{field.code_prefix}:{excerpt}",
                path,
                f"{path} must be one of these words: {choices}.",
                f"write one of {choices}",
            )
            return ""
        if field.typed and word != value and len(self.warnings) < MAX_ISSUES:
            warning = _issue(f"{field.code_prefix}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
            self.warnings.append(warning)
        return word


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)


def schema_of(fields: Fields) -> dict[str, JSON]:
    """Return the JSON Schema of an object whose fields are defined by a field table."""
    optional = tuple(name for name, field in fields.items() if field.optional)
    return closed_object({name: _schema(field) for name, field in fields.items()}, optional=optional)


def _schema(field: HandoffField) -> JSON:
    schemas: dict[_FieldKind, Callable[[], JSON]] = {
        "any": dict,
        "word": lambda: {"type": "string", "enum": list(field.choices)},
        "text": lambda: TEXT_SCHEMA,
        "texts": lambda: list_of(TEXT_SCHEMA),
        "flag": lambda: {"type": "boolean"},
        "numbers": lambda: {"type": "object", "additionalProperties": {"type": "number"}},
        "object": lambda: schema_of(field.fields),
        "objects": lambda: list_of(schema_of(field.fields)),
    }
    return schemas[field.kind]()
