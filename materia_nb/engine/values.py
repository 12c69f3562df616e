"""Reading values for assignments, iterators and templates (R11, R31)."""

from __future__ import annotations

import re
from typing import Final

from materia_nb.engine.state import CastState, Item
from materia_nb.handoff.sources import reader
from materia_nb.jsonvalue import JSON, MISSING, get_path, pretty

VARIABLE: Final = re.compile(r"\{\{([^}]+)\}\}")


def source_value(source: str, state: CastState, item: Item | None, parsed: JSON) -> JSON:
    """Read an assignment or list source; MISSING when nothing is there (R11)."""
    if source.startswith("$"):
        return MISSING if parsed is MISSING else reader(source)(parsed)
    return path_value(source, state, item)


def path_value(path: str, state: CastState, item: Item | None) -> JSON:
    """Read ``state.x``, ``item.x``, ``lastJson.x``, ``lastOutput``; any other path is read from the state."""
    head, _, rest = path.partition(".")
    if head == "state":
        return get_path(state.data, rest.split(".")) if rest else state.data
    if head == "item":
        if item is None:
            return MISSING
        return get_path(item.value, rest.split(".")) if rest else item.value
    if head == "lastJson":
        if rest and state.last_json is not MISSING:
            return get_path(state.last_json, rest.split("."))
        return state.last_json
    if path == "lastOutput":
        return MISSING if state.last_output is None else state.last_output
    return get_path(state.data, path.split("."))


def render(template: str, state: CastState, item: Item | None) -> str:
    """Fill the variables of a materia prompt; what is put in is not expanded again (R31)."""
    if "{{" not in template:
        return template
    return VARIABLE.sub(lambda match: _variable(match, state, item), template)


def _variable(match: re.Match[str], state: CastState, item: Item | None) -> str:
    name = match.group(1).strip()
    if not name:
        return match.group()
    if name == "request":
        return state.request
    if name == "stateJson":
        return pretty(state.data)
    if name == "itemJson":
        return "" if item is None or item.value is None else pretty(item.value)
    if name.startswith("cursor."):
        return as_text(state.cursors.get(name[len("cursor.") :]))
    return as_text(path_value(name, state, item))


def as_text(value: JSON) -> str:
    """Write a value the way a template does: text as it is, nothing for null or missing, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or value is MISSING else pretty(value)
