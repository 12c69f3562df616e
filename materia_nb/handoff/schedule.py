"""The schedule of a parallel generator: which work items each stream works on, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from materia_nb.errors import counted
from materia_nb.handoff.protocol import SCHEDULE, TEXT, Issue, closed_object, listed_as
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import whole

STREAM_NAME: Final = "<name>"
SCHEDULE_FORM: Final = f'{{"version": 1, "streams": [{{"name": "{STREAM_NAME}", "workItemIndexes": [<n>]}}]}}'
"""What stands in the form of an answer in the place of a schedule."""
GOOD_SCHEDULE: Final = (
    f"- {SCHEDULE}: each item, by index from 0, in exactly one stream. Streams run side by side and see nothing of one another, so items that "
    "depend on one another or touch the same files go into one stream, in order; rather fewer streams than unsafe ones"
)
"""What a generator is told of schedules."""
SCHEDULE_SHAPE: Final = closed_object(
    {
        "version": {"type": "integer", "enum": [1]},
        "streams": listed_as(
            closed_object({"name": TEXT, "workItemIndexes": {"type": "array", "items": {"type": "integer"}}})
        ),
    }
)
_NAMED: Final = 8


class Stream(NamedTuple):
    """One stream of a schedule: its name, and the indexes of its items in the order in which they are worked on."""

    name: str
    indexes: tuple[int, ...]


def streams_of(schedule: JSON) -> tuple[Stream, ...]:
    """Read a schedule that has no issues."""
    streams = schedule["streams"] if isinstance(schedule, Mapping) else ()
    return tuple(
        Stream(one["name"], tuple(int(index) for index in one["workItemIndexes"])) for one in streams
    )


def schedule_issues(output: Mapping[str, JSON]) -> Iterator[Issue]:
    """Check the schedule of an output for its work items; all that is wrong, each at its path."""
    path, schedule, items = f"$.{SCHEDULE}", output.get(SCHEDULE), output.get("workItems")
    if SCHEDULE not in output:
        yield Issue(
            path, f"{SCHEDULE} is missing: this socket hands its items to streams.", "add it as asked for"
        )
        return
    if not isinstance(schedule, dict):
        yield Issue(path, f"{SCHEDULE} must be an object.", 'write {"version": 1, "streams": [...]}')
        return
    yield from _others(path, schedule, ("version", "streams"))
    if whole(schedule.get("version")) != 1:
        yield Issue(f"{path}.version", "The version of a schedule is 1.", "write 1")
    path, streams = f"{path}.streams", schedule.get("streams")
    if not isinstance(streams, list):
        yield Issue(path, "streams must be an array.", "write [] around the streams")
        return
    count = len(items) if isinstance(items, list) else None
    names: dict[str, str] = {}
    places: dict[int, str] = {}
    for number, stream in enumerate(streams):
        here = f"{path}.{number}"
        if not isinstance(stream, dict):
            yield Issue(
                here, "A stream must be an object.", 'write {"name": "...", "workItemIndexes": [...]}'
            )
            continue
        yield from _others(here, stream, ("name", "workItemIndexes"))
        yield from _name_issues(f"{here}.name", stream.get("name"), names)
        yield from _index_issues(f"{here}.workItemIndexes", stream.get("workItemIndexes"), count, places)
    left = [index for index in range(count or 0) if index not in places]
    if left:
        known = ", ".join(map(str, left[:_NAMED])) + (" and more" if len(left) > _NAMED else "")
        message = f"{counted(len(left), 'item')} of workItems in no stream: {known}."
        yield Issue(path, message, "put each into the stream where it belongs")


def _others(path: str, given: Mapping[str, JSON], names: tuple[str, str]) -> Iterator[Issue]:
    for name in given:
        if name not in names:
            fix = "leave it out; what a stream is about goes into its name"
            yield Issue(f"{path}.{name}", f"There are {' and '.join(names)} here and no other field.", fix)


def _name_issues(path: str, name: JSON, names: dict[str, str]) -> Iterator[Issue]:
    if not isinstance(name, str) or not name.strip():
        yield Issue(path, "The name of a stream must be a string that is not blank.", "say what it is about")
    elif (first := names.setdefault(name.strip(), path)) != path:
        yield Issue(path, f"This is the name at {first} too.", "give each stream a name of its own")


def _index_issues(path: str, indexes: JSON, count: int | None, places: dict[int, str]) -> Iterator[Issue]:
    if not isinstance(indexes, list):
        yield Issue(path, "workItemIndexes must be an array of whole numbers.", "write such as [0, 2]")
        return
    if not indexes:
        yield Issue(path, "A stream works on at least one item.", "name its items, or leave the stream out")
    for place, given in enumerate(indexes):
        here, index = f"{path}.{place}", whole(given)
        if index is None:
            yield Issue(here, "An index must be a whole number.", "write the place of an item, from 0")
        elif index < 0 or (count is not None and index >= count):
            fix = (
                f"the last of workItems is {count - 1}"
                if count
                else "there are no workItems: leave the streams out"
            )
            yield Issue(here, f"There is no item {index}.", fix)
        elif (first := places.setdefault(index, here)) != here:
            yield Issue(here, f"Item {index} stands at {first} already.", "name each item once")
