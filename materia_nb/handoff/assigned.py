"""The sources that an assignment names must exist in the output, in every protocol (R8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from materia_nb.handoff.protocol import Issue
from materia_nb.handoff.requirements import Requirements
from materia_nb.handoff.sources import reader
from materia_nb.jsonvalue import JSON, MISSING


def missing_sources(value: JSON, wanted: Requirements, told: Collection[str] = ()) -> Iterator[Issue]:
    """Yield an issue for each ``$`` source of the socket that ``value`` lacks, except those in ``told``."""
    seen = set(told)
    for target, source in wanted.sources:
        if source not in seen and reader(source)(value) is MISSING:
            seen.add(source)
            yield Issue(
                source,
                f"{source} is missing: it is assigned to state.{target}.",
                "add it; null is a value too",
            )
