"""Writing the parts of an output as text for whoever works next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON, compact

WORK_IS_OVER: Final = "Your work on this step is over. Do no further work; say what you did and found."
"""What the turn begins with that asks for a handoff, after the work and in the same conversation."""

_SHOWN: Final = 20
"""How many entries of a list are named; the whole list stays in the recorded output."""


def one_line(text: str) -> str:
    """Return the text with its white space collapsed."""
    return " ".join(text.split())


def as_text(value: JSON) -> str:
    """Return a string as it is, anything else as JSON on one line."""
    return value if isinstance(value, str) else compact(value)


def named(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield one line that names the entries, blank ones left out; nothing when there are none."""
    kept = [one_line(entry) for entry in entries if entry.strip()]
    if kept:
        more = f" and {len(kept) - _SHOWN} more" if len(kept) > _SHOWN else ""
        yield f"{title}: {'; '.join(kept[:_SHOWN])}{more}"


def listed(issues: Iterable[Issue]) -> str:
    """Return what an agent is told of its issues, a line each."""
    return "\n".join(f"- {issue.code or issue.path}: {issue.message} {issue.fix}." for issue in issues)
