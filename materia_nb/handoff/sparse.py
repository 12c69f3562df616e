"""The sparse protocol, whose outputs have the fields ``workItems``, ``satisfied`` and ``context`` (R5-R9).

An output may also contain ``event``, which reports events (R39), and the output of a utility may contain
``scopeTransition``, which sets the working directory (P8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from materia_nb.handoff.base import (
    BASE,
    EVENT_SEVERITIES,
    UNKNOWN,
    HandoffProtocol,
    Issue,
    Reading,
    Requirements,
    Scope,
    TurnFacts,
)
from materia_nb.handoff.checks import (
    ANY_SCHEMA,
    MAX_FORM_CHARS,
    MAX_SHORT_FORM_CHARS,
    SCHEDULE,
    TEXT_SCHEMA,
    closed_object,
    list_of,
    missing_sources,
    placeholder_issues,
)
from materia_nb.handoff.jsontext import FoundObject, NotJson, agent_object, join_within_limit, utility_object
from materia_nb.handoff.runtime_rules import (
    SCHEDULE_ADVICE,
    SCHEDULE_FORM,
    SCHEDULE_SHAPE,
    STREAM_NAME,
    schedule_issues,
)
from materia_nb.jsonvalue import JSON, FrozenDict, compact, frozen, is_text
from materia_nb.loadout.vocabulary import first_field

MAX_EXPORTS: Final = 64
MAX_EXPORT_BYTES: Final = 65_536
"""Maximum size of one export in compact JSON, in bytes."""
_MAX_EXPORTS_BYTES: Final = 262_144
_SCOPE_FIELD: Final = "scopeTransition"
_SCOPE_PATH: Final = f"$.{_SCOPE_FIELD}"
_SCOPE_FORM: Final = f'{{"{_SCOPE_FIELD}": {{"kind": "replace", "scope": {{"id": "...", "cwd": "..."}}}}}}'


def _read_scope(transition: JSON) -> tuple[Scope | None, tuple[Issue, ...]]:
    """Parse a utility's scope transition; return the new scope, or None if it is refused, and the issues."""
    if transition == {"kind": "base"}:
        return BASE, ()
    issues = tuple(_scope_issues(transition))
    if issues or not isinstance(transition, dict):
        return None, issues
    scope = frozen(transition["scope"])
    return Scope(scope["id"], scope["cwd"], scope.get("state"), scope.get("exports", FrozenDict())), ()


def _scope_issues(transition: JSON) -> Iterator[Issue]:
    if not isinstance(transition, dict) or transition.get("kind") not in ("replace", "base"):
        yield Issue(_SCOPE_PATH, "The kind of a scope transition must be replace or base.", f"write {_SCOPE_FORM}")
        return
    kind, scope = transition["kind"], transition.get("scope")
    for name in transition.keys() - ({"kind", "scope"} if kind == "replace" else {"kind"}):
        yield Issue(f"{_SCOPE_PATH}.{name}", f"A {kind} scope transition has no field {name}.", "remove the field")
    if kind == "base":
        return
    if not isinstance(scope, dict):
        yield Issue(f"{_SCOPE_PATH}.scope", "The scope must be an object.", f"write {_SCOPE_FORM}")
        return
    for name in ("id", "cwd"):
        text = scope.get(name)
        if not is_text(text) or "\0" in text:
            yield Issue(f"{_SCOPE_PATH}.scope.{name}", f"The {name} must be a non-blank string.", "add it")
    for name in sorted(scope.keys() - {"id", "cwd", "state", "exports"}):
        yield Issue(
            f"{_SCOPE_PATH}.scope.{name}",
            "A scope has only id, cwd, state and exports.",
            "put the value into state or exports",
        )
    yield from _export_issues(scope.get("exports", {}))


def _export_issues(exports: JSON) -> Iterator[Issue]:
    path = f"{_SCOPE_PATH}.scope.exports"
    if not isinstance(exports, dict):
        yield Issue(path, "exports must be an object.", 'write {"name": {"producer": "...", "value": ...}}')
        return
    if len(exports) > MAX_EXPORTS:
        yield Issue(path, f"There are {len(exports)} exports; the limit is {MAX_EXPORTS}.", "remove some exports")
    total = 0
    for name, export in exports.items():
        size = len(compact(export).encode(errors="replace"))
        total += size
        if not isinstance(export, dict) or export.keys() != {"producer", "value"}:
            yield Issue(
                f"{path}.{name}",
                "An export must have exactly two fields: producer and value.",
                "write these two fields",
            )
        elif not is_text(export["producer"]):
            yield Issue(f"{path}.{name}.producer", "The producer must be a non-blank string.", "write its name")
        if size > MAX_EXPORT_BYTES:
            message = f"The export has {size:,} bytes; the limit is {MAX_EXPORT_BYTES:,}."
            yield Issue(f"{path}.{name}", message, "write the value to a file and export the name of the file")
    if total > _MAX_EXPORTS_BYTES:
        message = f"The exports have {total:,} bytes; the limit is {_MAX_EXPORTS_BYTES:,}."
        yield Issue(path, message, "shorten or remove some exports")


_EVENT_TEXTS: Final = ("message", "source")
_EVENT_FIELDS: Final = ("type", "severity", *_EVENT_TEXTS, "payload")


def _read_events(events: JSON) -> tuple[tuple[dict[str, JSON], ...], tuple[Issue, ...]]:
    """Return the events that an output reports, and the issues. If an event is refused, no events are returned."""
    if not isinstance(events, list):
        return (), (Issue("$.event", "event must be an array of events.", "put the event into [], or remove it"),)
    issues = tuple(issue for index, event in enumerate(events) for issue in _event_issues(f"$.event[{index}]", event))
    return () if issues else tuple(events), issues


def _event_issues(path: str, event: JSON) -> Iterator[Issue]:
    if not isinstance(event, dict):
        yield Issue(path, "An event must be an object.", 'write {"type": "...", "message": "..."}')
        return
    if not is_text(event.get("type")):
        yield Issue(f"{path}.type", "The type of an event must be a non-blank string.", "write its type")
    if event.get("severity", "info") not in EVENT_SEVERITIES:
        fix = f"write one of {', '.join(EVENT_SEVERITIES)}, or omit it"
        yield Issue(f"{path}.severity", "The severity is unknown.", fix)
    for name in _EVENT_TEXTS:
        if not isinstance(event.get(name, ""), str):
            yield Issue(f"{path}.{name}", f"The {name} of an event must be a string.", "write plain text")
    for name in event:
        if name not in _EVENT_FIELDS:
            fix = "put the value into payload, which accepts any JSON"
            yield Issue(f"{path}.{name}", f"An event has only {', '.join(_EVENT_FIELDS)}.", fix)


_WORK_ITEMS_FIX: Final = "put the work into workItems, each with title and context"
_CONTEXT_FIX: Final = "put the value into context if the next agent needs it"
_FIX_BY_NAME: Final = {
    "tasks": _WORK_ITEMS_FIX,
    "task": _WORK_ITEMS_FIX,
    "work": _WORK_ITEMS_FIX,
    "passed": "write true or false into satisfied",
    "feedback": "put the value into context",
    "missing": "put the value into context",
    "summary": _CONTEXT_FIX,
    "guidance": "put the value into context, or into the context of a work item",
    "decisions": _CONTEXT_FIX,
    "risks": _CONTEXT_FIX,
    "state": "remove the field; only utilities patch the state",
}  # Fixes for unknown fields that models often add, by the name of the field.
_ITEM_FIX_BY_NAME: Final = {
    "id": "remove the field; the key of an item follows from its position in the list",
    "description": "put the value into context",
    "acceptance": "put the value into context as text",
}
_NOTES: Final = {
    "fence": "the object was accepted although it was wrapped in a code fence",
    "prose": "the object was accepted although it was wrapped in prose",
}


class SparseProtocol(HandoffProtocol):
    """The default protocol, in which an output has the fields that its socket requires and a few optional fields."""

    name = "sparse"
    needs_facts = False

    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:  # noqa: ARG002
        """Parse and check the output of an agent or a utility; any text is valid if the socket expects text."""
        if requirements.parse == "text":
            return Reading(text if requirements.utility else text.strip())
        try:
            output = utility_object(text) if requirements.utility else agent_object(text)
        except NotJson as error:
            issue = Issue("$", f"{error}.", "return one JSON object and nothing else")
            return Reading(None, "not_json", (issue,))
        value, scope = output.value, None
        events, issues = _read_events(value.pop("event", []))
        if requirements.utility and _SCOPE_FIELD in value:
            scope, scope_issues = _read_scope(value.pop(_SCOPE_FIELD))
            issues += scope_issues
        issues += tuple(_output_issues(value, requirements))
        if requirements.streams:
            issues += tuple(schedule_issues(value))
        if not requirements.utility:
            issues += tuple(placeholder_issues(value, _FORM_WORDS))
        if issues:
            return Reading(value, "contract", issues, _format_notes(output), events=events)
        satisfied, context = value.get("satisfied"), value.get("context")
        return Reading(
            value,
            notes=_format_notes(output),
            satisfied=satisfied if isinstance(satisfied, bool) else None,
            context=context if isinstance(context, str) else None,
            work_items=value.get("workItems"),
            events=events,
            scope=scope,
        )

    def fields(self, requirements: Requirements) -> dict[str, str]:
        """Return the names and descriptions of the required fields; empty if the socket expects text."""
        if requirements.parse == "text":
            return {}
        fields: dict[str, str] = {}
        if requirements.work_items:
            fields["workItems"] = _MEANINGS["workItems"]
        if requirements.streams:
            fields[SCHEDULE] = _MEANINGS[SCHEDULE]
        if requirements.why_satisfied:
            fields["satisfied"] = f"true or false, because {requirements.why_satisfied}"
        for target, source in requirements.sources:
            name = first_field(source)
            if name and name not in fields:
                fields[name] = _MEANINGS.get(name, f"any JSON; {source} is stored as state.{target}")
        return fields

    def form(self, requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:  # noqa: ARG002
        """Return a JSON template with the required fields, and a description of each field (R51)."""
        if requirements.parse == "text":
            return ""
        names = dict.fromkeys((*self.fields(requirements), "context"))
        shape = ", ".join(f"{compact(name)}: {_PLACEHOLDERS.get(name, _ANY)}" for name in names)
        lines = ["Output only this JSON object: no other text, no code fence.\n{" + shape + "}"]
        if not short:
            if requirements.streams:
                lines.append(SCHEDULE_ADVICE)
            if "workItems" in names:
                lines.append("- workItems: one object for each work item, [] if there are none")
            if requirements.why_satisfied:
                lines.append(f"- satisfied: true or false; {requirements.why_satisfied}")
            need = "required" if "context" in self.fields(requirements) else "optional"
            lines.append(f"- context is {need}; other fields are refused")
            lines += [
                f"- {name}: {source} is stored as state.{target}"
                for target, source in requirements.sources
                if (name := first_field(source)) and name not in _PLACEHOLDERS
            ]
        return join_within_limit(lines, MAX_SHORT_FORM_CHARS if short else MAX_FORM_CHARS)

    ask = form

    def schema(self, requirements: Requirements) -> dict[str, JSON] | None:
        """Return a JSON Schema with the required fields and ``context``, or None if the socket expects text.

        All fields are required in the schema, because providers do not enforce a schema with optional fields. The
        value of ``context`` may be empty.
        """
        if requirements.parse == "text":
            return None
        names = dict.fromkeys((*self.fields(requirements), "context"))
        return closed_object({name: _FIELD_SCHEMAS.get(name, ANY_SCHEMA) for name in names})


_MEANINGS: Final = {
    "workItems": "an array of work items, each with exactly the strings title and context",
    "context": "plain text for the next agent",
    "satisfied": "true or false",
    SCHEDULE: "streams of item indexes, starting at 0; the items of a stream run in order, and the streams run in parallel",
}
_TITLE, _TASK, _NEXT, _ANY_WORD = (
    "<what to do>",
    "<everything needed to do it>",
    "<notes for the next agent>",
    "<any JSON>",
)
_ANY: Final = compact(_ANY_WORD)
_PLACEHOLDERS: Final[dict[str, str]] = {
    "workItems": f'[{{"title": "{_TITLE}", "context": "{_TASK}"}}]',
    "satisfied": "<true or false>",
    "context": compact(_NEXT),
    SCHEDULE: SCHEDULE_FORM,
}
_FORM_WORDS: Final = frozenset({_TITLE, _TASK, _NEXT, _ANY_WORD, STREAM_NAME, "<true or false>", *_MEANINGS.values()})
_FIELD_SCHEMAS: Final[dict[str, JSON]] = {
    "workItems": list_of(closed_object({"title": TEXT_SCHEMA, "context": TEXT_SCHEMA})),
    "satisfied": {"type": "boolean"},
    "context": TEXT_SCHEMA,
    SCHEDULE: SCHEDULE_SHAPE,
}


def _format_notes(output: FoundObject) -> tuple[str, ...]:
    notes = [_NOTES[output.where]] if output.where in _NOTES else []
    notes += [f"the key {_quote(key)} occurs more than once; the last value is used" for key in output.duplicates[:8]]
    if len(output.duplicates) > 8:
        notes.append(f"and {len(output.duplicates) - 8} more keys")
    return tuple(notes)


def _quote(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:59]}…")


def _output_issues(value: dict[str, JSON], requirements: Requirements) -> Iterator[Issue]:
    if not requirements.utility:
        for name in value:
            if name not in requirements.fields:
                fix = _FIX_BY_NAME.get(name, "remove the field, or put its value into context")
                yield Issue(f"$.{name}", f"The field {_quote(name)} is not part of this handoff.", fix)
        if "context" in value and not isinstance(value["context"], str):
            yield Issue("$.context", "context must be a string.", "write it as plain text")
    if "satisfied" in value:
        if not isinstance(value["satisfied"], bool):
            message = "satisfied must be true or false."
            yield Issue("$.satisfied", message, "write true or false, without quotes")
    elif requirements.why_satisfied:
        yield Issue("$.satisfied", f"satisfied is missing: {requirements.why_satisfied}.", "add true or false")
    if requirements.check_items and "workItems" in value:
        yield from item_issues(value["workItems"])
    elif requirements.work_items and "workItems" not in value:
        message = "workItems is missing: this socket generates work."
        yield Issue("$.workItems", message, "add an array, [] if there is no work")
    is_checked = requirements.why_satisfied or "satisfied" in value
    yield from missing_sources(value, requirements, ("$.satisfied",) if is_checked else ())


def item_issues(items: JSON, path: str = "$.workItems") -> Iterator[Issue]:
    """Yield the issues of a list of work items (R9). ``path`` is the path of the list in the output."""
    if not isinstance(items, list):
        yield Issue(path, "workItems must be an array.", "put the items into []")
        return
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from _item_field_issues(item, f"{path}.{index}")
        else:
            fix = 'write {"title": "...", "context": "..."}'
            yield Issue(f"{path}.{index}", "A work item must be an object.", fix)


def _item_field_issues(item: Mapping[str, JSON], path: str) -> Iterator[Issue]:
    for name in ("title", "context"):
        if name not in item:
            message, fix = f"The work item has no {name}.", f"add a {name}, a non-blank string"
        elif not isinstance(item[name], str):
            message, fix = f"The {name} of a work item must be a string.", "write it as plain text"
        elif not item[name].strip():
            message, fix = f"The {name} of a work item must not be blank.", "describe the work"
        else:
            continue
        yield Issue(f"{path}.{name}", message, fix)
    for name in (name for name in item if name not in ("title", "context")):
        fix = _ITEM_FIX_BY_NAME.get(name, "remove the field, or put its value into context as text")
        yield Issue(f"{path}.{name}", f"A work item has only title and context, not {_quote(name)}.", fix)
