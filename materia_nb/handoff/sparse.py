"""The sparse protocol: ``workItems``, ``satisfied`` and ``context`` (R5-R9), and two side channels.

These are ``event`` (R39) and ``scopeTransition``, the field of a utility that says where it and the agents work from now on (P8).
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
    ANYTHING,
    LONGEST_FORM,
    LONGEST_SHORT_FORM,
    SCHEDULE,
    TEXT,
    closed_object,
    form_words,
    list_of,
    missing_sources,
)
from materia_nb.handoff.jsontext import FoundObject, NotJson, agent_object, join_within_limit, utility_object
from materia_nb.handoff.runtime_rules import (
    GOOD_SCHEDULE,
    SCHEDULE_FORM,
    SCHEDULE_SHAPE,
    STREAM_NAME,
    schedule_issues,
)
from materia_nb.jsonvalue import JSON, FrozenDict, compact, frozen
from materia_nb.loadout.vocabulary import first_field

MOST_EXPORTS: Final = 64
LONGEST_EXPORT: Final = 65_536
"""Bytes of one export as JSON, without white space."""
_LONGEST_EXPORTS: Final = 262_144
_FIELD: Final = "scopeTransition"

_HERE: Final = f"$.{_FIELD}"
_AS_WRITTEN: Final = f'{{"{_FIELD}": {{"kind": "replace", "scope": {{"id": "...", "cwd": "..."}}}}}}'


def _take_scope(value: dict[str, JSON]) -> tuple[dict[str, JSON], Scope | None, tuple[Issue, ...]]:
    """Take the field out of a utility's output: the rest, the scope that follows (None: the same), what is wrong with it."""
    if _FIELD not in value:
        return value, None, ()
    rest = {name: child for name, child in value.items() if name != _FIELD}
    given = value[_FIELD]
    if given == {"kind": "base"}:
        return rest, BASE, ()
    issues = tuple(_scope_issues(given))
    if issues or not isinstance(given, dict) or not isinstance(given["scope"], dict):
        return rest, None, issues
    scope = frozen(given["scope"])
    return rest, Scope(scope["id"], scope["cwd"], scope.get("state"), scope.get("exports", FrozenDict())), ()


def _scope_issues(given: JSON) -> Iterator[Issue]:
    if not isinstance(given, dict) or given.get("kind") not in ("replace", "base"):
        yield Issue(
            _HERE, "A scope transition replaces the scope, or goes back to the base.", f"write {_AS_WRITTEN}"
        )
        return
    scope = given.get("scope")
    for name in given.keys() - ({"kind", "scope"} if given["kind"] == "replace" else {"kind"}):
        yield Issue(f"{_HERE}.{name}", f"A transition of this kind has no {name}.", "leave it out")
    if given["kind"] == "base":
        return
    if not isinstance(scope, dict):
        yield Issue(f"{_HERE}.scope", "The scope must be an object.", f"write {_AS_WRITTEN}")
        return
    for name in ("id", "cwd"):
        text = scope.get(name)
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            yield Issue(f"{_HERE}.scope.{name}", f"The {name} must be text that is not blank.", "give it")
    for name in sorted(scope.keys() - {"id", "cwd", "state", "exports"}):
        yield Issue(
            f"{_HERE}.scope.{name}", "A scope has id, cwd, state and exports.", "put it into state or exports"
        )
    yield from _export_issues(scope.get("exports", {}))


def _export_issues(exports: JSON) -> Iterator[Issue]:
    path = f"{_HERE}.scope.exports"
    if not isinstance(exports, dict):
        yield Issue(path, "exports must be an object.", 'write {"name": {"producer": "...", "value": ...}}')
        return
    if len(exports) > MOST_EXPORTS:
        yield Issue(
            path, f"There are {len(exports)} exports, and at most {MOST_EXPORTS} are kept.", "give fewer"
        )
    sizes = 0
    for name, export in exports.items():
        size = len(compact(export).encode(errors="replace"))
        sizes += size
        if not isinstance(export, dict) or export.keys() != {"producer", "value"}:
            yield Issue(f"{path}.{name}", "An export has producer and value.", "write both, and nothing else")
        elif not isinstance(export["producer"], str) or not export["producer"].strip():
            yield Issue(f"{path}.{name}.producer", "The producer must be text that is not blank.", "name it")
        if size > LONGEST_EXPORT:
            yield Issue(
                f"{path}.{name}",
                f"The export has {size:,} bytes, and at most {LONGEST_EXPORT:,} are kept.",
                "write it to a file and export the name of that",
            )
    if sizes > _LONGEST_EXPORTS:
        yield Issue(
            path, f"The exports have {sizes:,} bytes, and at most {_LONGEST_EXPORTS:,} are kept.", "give less"
        )


_TEXTS: Final = ("message", "source")
_FIELDS: Final = ("type", "severity", *_TEXTS, "payload")


def _take_events(
    value: dict[str, JSON],
) -> tuple[dict[str, JSON], tuple[dict[str, JSON], ...], tuple[Issue, ...]]:
    """Take the field out of an output, of which whoever reads on sees nothing: the rest, the events, what is wrong with these."""
    if "event" not in value:
        return value, (), ()
    rest = {name: child for name, child in value.items() if name != "event"}
    given = value["event"]
    if not isinstance(given, list):
        issue = Issue("$.event", "event must be an array of events.", "write [] around it, or leave it out")
        return rest, (), (issue,)
    issues = tuple(
        issue for place, one in enumerate(given) for issue in _event_issues(f"$.event[{place}]", one)
    )
    return rest, () if issues else tuple(given), issues


def _event_issues(path: str, event: JSON) -> Iterator[Issue]:
    if not isinstance(event, dict):
        yield Issue(path, "An event must be an object.", 'write {"type": "...", "message": "..."}')
        return
    kind = event.get("type")
    if not isinstance(kind, str) or not kind.strip():
        yield Issue(f"{path}.type", "The type of an event must be a string that is not blank.", "name it")
    severity = event.get("severity", "info")
    if not isinstance(severity, str) or severity not in EVENT_SEVERITIES:
        fix = f"write one of {', '.join(EVENT_SEVERITIES)}, or leave it out"
        yield Issue(f"{path}.severity", "There is no such severity.", fix)
    for name in _TEXTS:
        if not isinstance(event.get(name, ""), str):
            yield Issue(f"{path}.{name}", f"The {name} of an event must be a string.", "write plain text")
    for name in event:
        if name not in _FIELDS:
            fix = "put it into payload, which may be anything"
            yield Issue(f"{path}.{name}", f"An event has {', '.join(_FIELDS)} and no other field.", fix)


_LEGACY = {
    "tasks": "put the work units in workItems, each with title and context",
    "task": "put the work units in workItems, each with title and context",
    "work": "put the work units in workItems, each with title and context",
    "passed": "say true or false in satisfied instead",
    "feedback": "put what should be done into context",
    "missing": "put what is missing into context",
    "summary": "put it into context if the next socket needs it",
    "guidance": "put it into context, or into the context of a work item",
    "decisions": "put them into context if the next socket needs them",
    "risks": "put them into context if the next socket needs them",
    "state": "only utilities patch the state; leave it out",
}
_ITEM_LEGACY = {
    "id": "leave it out; the key of an item comes from its place in the list",
    "description": "put it into context",
    "acceptance": "put it into context as text",
}
_WHERE_NOTE = {
    "fence": "accepted although wrapped in a code fence",
    "prose": "accepted although wrapped in prose",
}


class SparseProtocol(HandoffProtocol):
    """Reads and asks for the sparse handoff."""

    name = "sparse"
    needs_facts = False

    def read(
        self,
        text: str,
        wanted: Requirements,
        facts: TurnFacts = UNKNOWN,  # noqa: ARG002 - part of the interface; the text is all this one needs
    ) -> Reading:
        """Read an agent's or a utility's output; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text if wanted.utility else text.strip())
        try:
            found = utility_object(text) if wanted.utility else agent_object(text)
        except NotJson as error:
            issue = Issue("$", f"{error}.", "return one JSON object and nothing else")
            return Reading(None, "not_json", (issue,))
        value, events, wrong = _take_events(found.value)
        scope = None
        if wanted.utility:
            value, scope, unsound = _take_scope(value)
            wrong += unsound
        issues = (*wrong, *_issues(value, wanted), *(schedule_issues(value) if wanted.streams else ()))
        if not wanted.utility:
            issues += tuple(form_words(value, _FORM_WORDS))
        if issues:
            return Reading(value, "contract", issues, _notes(found), events=events)
        return accepted(value, _notes(found), events)._replace(scope=scope)

    def fields(self, wanted: Requirements) -> dict[str, str]:
        """Say what each field must be, of those that concern this socket."""
        if wanted.parse == "text":
            return {}
        found: dict[str, str] = {}
        if wanted.work_items:
            found["workItems"] = _MEANINGS["workItems"]
        if wanted.streams:
            found[SCHEDULE] = _MEANINGS[SCHEDULE]
        if wanted.why_satisfied:
            found["satisfied"] = f"true or false, because {wanted.why_satisfied}"
        for target, source in wanted.sources:
            name = first_field(source)
            if name and name not in found:
                found[name] = _MEANINGS.get(name, f"whatever {source} reads; it is kept as state.{target}")
        return found

    def ask(self, wanted: Requirements) -> str:
        """Name the fields that this socket needs, and only those."""
        return self.form(wanted)

    def form(
        self,
        wanted: Requirements,
        facts: TurnFacts = UNKNOWN,  # noqa: ARG002 - part of the interface; the same is legal in every turn
        *,
        short: bool = False,
    ) -> str:
        """Write the fields that this socket needs as one line to copy, and what each must be (R51)."""
        if wanted.parse == "text":
            return ""
        names = dict.fromkeys((*self.fields(wanted), "context"))
        shape = ", ".join(f"{compact(name)}: {_PLACES.get(name, _ANY)}" for name in names)
        lines = [
            "Answer with one JSON object of this form, with no words and no fence around it:\n{" + shape + "}"
        ]
        if not short:
            if wanted.streams:
                lines.append(GOOD_SCHEDULE)
            if "workItems" in names:
                lines.append("- workItems: one object for each piece of work, [] if there is none")
            if wanted.why_satisfied:
                lines.append(f"- satisfied: true or false; {wanted.why_satisfied}")
            lines.append("- context may be left out; any other field is refused")
            lines += [
                f"- {name}: it is read as {source} and kept as state.{target}"
                for target, source in wanted.sources
                if (name := first_field(source)) and name not in _PLACES
            ]
        return join_within_limit(lines, LONGEST_SHORT_FORM if short else LONGEST_FORM)

    def schema(self, wanted: Requirements) -> dict[str, JSON] | None:
        """Require the fields that are asked for, and context, which may be empty.

        Every field is required, since models are held only to schemas without optional ones.
        """
        if wanted.parse == "text":
            return None
        names = dict.fromkeys((*self.fields(wanted), "context"))
        return closed_object({name: _SHAPES.get(name, ANYTHING) for name in names})


_MEANINGS: Final = {
    "workItems": "an array of work items, each with exactly the strings title and context",
    "context": "plain text for whoever works next",
    "satisfied": "true or false",
    SCHEDULE: "which items are worked on one after another, by index from 0; streams are worked on side by side",
}
_TITLE, _TASK, _NEXT, _ANY_WORD = (
    "<what to do>",
    "<all that is needed to do it>",
    "<for whoever works next>",
    "<any JSON>",
)
_ANY: Final = compact(_ANY_WORD)
_PLACES: Final[dict[str, str]] = {
    "workItems": f'[{{"title": "{_TITLE}", "context": "{_TASK}"}}]',
    "satisfied": "<true or false>",
    "context": compact(_NEXT),
    SCHEDULE: SCHEDULE_FORM,
}
"""What stands in the form in place of each field."""
_FORM_WORDS: Final = frozenset(
    {_TITLE, _TASK, _NEXT, _ANY_WORD, STREAM_NAME, "<true or false>", *_MEANINGS.values()}
)
_SHAPES: Final[dict[str, JSON]] = {
    "workItems": list_of(closed_object({"title": TEXT, "context": TEXT})),
    "satisfied": {"type": "boolean"},
    "context": TEXT,
    SCHEDULE: SCHEDULE_SHAPE,
}


def accepted(
    value: dict[str, JSON], notes: tuple[str, ...] = (), events: tuple[Mapping[str, JSON], ...] = ()
) -> Reading:
    """Build the reading of a valid sparse object."""
    satisfied, context = value.get("satisfied"), value.get("context")
    return Reading(
        value,
        notes=notes,
        satisfied=satisfied if isinstance(satisfied, bool) else None,
        context=context if isinstance(context, str) else None,
        work_items=value.get("workItems"),
        events=events,
    )


def _notes(found: FoundObject) -> tuple[str, ...]:
    notes = [_WHERE_NOTE[found.where]] if found.where in _WHERE_NOTE else []
    notes += [f"the key {_short(key)} was given twice; the last one counts" for key in found.duplicates[:8]]
    if len(found.duplicates) > 8:
        notes.append(f"so were {len(found.duplicates) - 8} more keys")
    return tuple(notes)


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:59]}…")


def _issues(value: dict[str, JSON], wanted: Requirements) -> Iterator[Issue]:
    if not wanted.utility:
        for name in value:
            if name not in wanted.fields:
                fix = _LEGACY.get(name, "leave it out, or say it in context")
                yield Issue(f"$.{name}", f"The field {_short(name)} is not part of this handoff.", fix)
        if "context" in value and not isinstance(value["context"], str):
            yield Issue("$.context", "context must be a string.", "write it as plain text")
    if "satisfied" in value:
        if not isinstance(value["satisfied"], bool):
            yield Issue(
                "$.satisfied", "satisfied must be true or false.", "write true or false, without quotes"
            )
    elif wanted.why_satisfied:
        yield Issue("$.satisfied", f"satisfied is missing: {wanted.why_satisfied}.", "add true or false")
    if wanted.check_items and "workItems" in value:
        yield from item_issues(value["workItems"])
    elif wanted.work_items and "workItems" not in value:
        yield Issue(
            "$.workItems",
            "workItems is missing: this socket generates work.",
            "add an array, empty if there is no work",
        )
    checked = wanted.why_satisfied or "satisfied" in value
    yield from missing_sources(value, wanted, ("$.satisfied",) if checked else ())


def item_issues(items: JSON, path: str = "$.workItems") -> Iterator[Issue]:
    """Check a list of work items against R9; ``path`` names the list in the issues."""
    if not isinstance(items, list):
        yield Issue(path, "workItems must be an array.", "write [] around the items")
        return
    for index, item in enumerate(items):
        here = f"{path}.{index}"
        if not isinstance(item, dict):
            yield Issue(here, "A work item must be an object.", 'write {"title": "...", "context": "..."}')
            continue
        for name in ("title", "context"):
            spot, given = f"{here}.{name}", item.get(name)
            if name not in item:
                yield Issue(
                    spot, f"The work item has no {name}.", f"add a {name}, a string that is not blank"
                )
            elif not isinstance(given, str):
                yield Issue(spot, f"The {name} of a work item must be a string.", "write it as plain text")
            elif not given.strip():
                yield Issue(spot, f"The {name} of a work item must not be blank.", "say what is to be done")
        for name in item:
            if name not in ("title", "context"):
                fix = _ITEM_LEGACY.get(name, "leave it out, or put it into context as text")
                yield Issue(
                    f"{here}.{name}", f"A work item has title and context only, not {_short(name)}.", fix
                )
