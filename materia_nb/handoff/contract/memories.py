"""What an agent suggests to remember; nothing is stored without a person's consent (section 9)."""

from __future__ import annotations

from typing import Final, NamedTuple

from materia_nb.jsonvalue import JSON

_REQUIRED: Final = ("description", "body")
_OPTIONAL: Final = ("slug", "type", "class", "rationale")
_CHOICES: Final = {"type": ("atom", "decision", "negative"), "class": ("anchor", "log", "thread")}


class Suggestions(NamedTuple):
    """The well-formed suggestions, every value a text, and remarks on the others."""

    suggestions: list[dict[str, str]]
    warnings: list[str]


def memorialize_suggestions(clause: JSON) -> Suggestions:
    """Read the clause; it never makes a contract invalid."""
    if clause is None:
        return Suggestions([], [])
    if not isinstance(clause, list):
        return Suggestions([], [f"memorialize_suggestions: expected array, got {type(clause).__name__}"])
    found = Suggestions([], [])
    for index, entry in enumerate(clause):
        _read(found, f"memorialize_suggestions[{index}]", entry)
    return found


def _read(found: Suggestions, place: str, entry: JSON) -> None:
    if not isinstance(entry, dict):
        found.warnings.append(f"{place}: not an object")
        return
    missing = [name for name in _REQUIRED if not entry.get(name)]
    if missing:
        found.warnings.append(f"{place}: missing required field(s) {', '.join(missing)}")
        return
    texts = {name: str(entry[name]) for name in (*_REQUIRED, *_OPTIONAL) if entry.get(name) is not None}
    for name, choices in _CHOICES.items():
        said = texts.get(name, "").lower()
        if said and said not in choices:
            found.warnings.append(f"{place}: {name}={said!r} not in {list(choices)} (kept as-is)")
    found.suggestions.append(texts)
