"""Reading values for assignments, iterators and templates (R11, R31)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from materia_nb.engine.state import Item, View
from materia_nb.errors import MateriaError
from materia_nb.handoff.sources import reader
from materia_nb.jsonvalue import JSON, MISSING, get_path, pretty, without_points
from materia_nb.loadout.facts import variables

Source: TypeAlias = Callable[[View, Item | None, JSON], JSON]
"""Reads a value from the state, the current item and a parsed output; MISSING when nothing is there."""

Template: TypeAlias = Callable[[View, Item | None], str]
"""Fills a materia prompt for the state and the current item."""


@lru_cache(maxsize=4096)
def source(text: str) -> Source:
    """Compile an assignment or list source (R11).

    ``$...`` reads the parsed output; ``state.x``, ``item.x``, ``lastJson.x`` and
    ``lastOutput`` say what they read; any other path is read from the state.
    """
    if text.startswith("$"):
        read = reader(text)
        return lambda _state, _item, parsed: MISSING if parsed is MISSING else read(parsed)
    return _path(text)


def _path(text: str) -> Source:
    head, _, rest = text.partition(".")
    segments = rest.split(".") if rest else []
    if head == "state":
        return lambda state, _item, _parsed: get_path(state.data, segments)
    if head == "item":
        return lambda _state, item, _parsed: MISSING if item is None else get_path(item.value, segments)
    if head == "lastJson":
        return lambda state, _item, _parsed: get_path(state.last_json, segments)
    if text == "lastOutput":
        return lambda state, _item, _parsed: MISSING if state.last_output is None else state.last_output
    whole = text.split(".")
    return lambda state, _item, _parsed: get_path(state.data, whole)


@lru_cache(maxsize=1024)
def template(text: str) -> Template:
    """Compile a materia prompt; what is put in for a variable is not expanded again (R31)."""
    parts: list[str | Source] = []
    done = 0
    for start, end, name in variables(text):
        if name:
            parts += [text[done:start], _variable(name)]
            done = end
    if not parts:
        return lambda _state, _item: text
    parts.append(text[done:])

    def fill(state: View, item: Item | None) -> str:
        return "".join([p if isinstance(p, str) else as_text(p(state, item, MISSING)) for p in parts])

    return fill


def _variable(name: str) -> Source:
    if name == "request":
        return lambda state, _item, _parsed: state.request
    if name == "stateJson":
        return lambda state, _item, _parsed: _pretty(state.data)
    if name == "itemJson":
        return lambda _state, item, _parsed: (
            None if item is None or item.value is None else _pretty(item.value)
        )
    if name.startswith("cursor."):
        cursor = name[len("cursor.") :]
        return lambda state, _item, _parsed: state.cursors.get(cursor)
    return _path(name)


def as_text(value: JSON) -> str:
    """Write a value the way a template does: text as it is, nothing for null or missing, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or value is MISSING else _pretty(value)


def _pretty(value: JSON) -> str:
    # Outputs have bounded nesting, but a state that is assigned into itself grows with each step.
    try:
        return pretty(without_points(value))
    except RecursionError:
        raise MateriaError(
            "The state is nested too deeply to be written into a prompt.",
            hint="see which assignment puts the state into itself again and again",
            kind="too_deep",
        ) from None
