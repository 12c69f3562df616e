"""The work items as a person edits them: a list of rows that know where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from materia_nb.handoff import Issue, item_issues
from materia_nb.jsonvalue import JSON, compact, same


@dataclass(slots=True)
class Row:
    """One work item; ``origin`` is its index in the list that was read, None for a new one."""

    title: str
    context: str
    origin: int | None = None
    read: JSON = None

    @property
    def value(self) -> JSON:
        """The item; as it was read while nothing in it was changed."""
        made = {"title": self.title, "context": self.context}
        if self.read is not None and (self.title, self.context) == _texts(self.read):
            return self.read
        return made

    @property
    def empty(self) -> bool:
        """Whether it is new and nothing has been typed in it."""
        return self.origin is None and not (self.title or self.context)


class Rows:
    """A list of work items, its rows, and what may be done to them."""

    def __init__(self, items: Sequence[JSON] = ()) -> None:
        self.base = list(items)
        self.rows = [Row(*_texts(item), origin, item) for origin, item in enumerate(items)]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def items(self) -> list[JSON]:
        """The list as it would be applied."""
        return [one.value for one in self.rows]

    @property
    def origins(self) -> list[int | None]:
        """Where each row stood in the list that was read."""
        return [one.origin for one in self.rows]

    @property
    def changed(self) -> bool:
        """Whether applying would change anything."""
        return self.origins != list(range(len(self.base))) or not same(self.items, self.base)

    @property
    def issues(self) -> list[Issue]:
        """What breaks the rules of work items (R9)."""
        return list(item_issues(self.items, "workItems"))

    @property
    def told(self) -> list[Issue]:
        """The issues without those of a new item in which nothing has been typed yet."""
        empty = [f"workItems.{place}." for place, one in enumerate(self.rows) if one.empty]
        return [issue for issue in self.issues if not issue.path.startswith(tuple(empty))]

    def add(self) -> None:
        """Add an empty item at the end."""
        self.rows.append(Row("", ""))

    def remove(self, place: int) -> None:
        """Remove an item."""
        del self.rows[place]

    def duplicate(self, place: int) -> None:
        """Put a copy behind an item; the copy is new."""
        one = self.rows[place]
        self.rows.insert(place + 1, Row(one.title, one.context))

    def move(self, place: int, by: int) -> int:
        """Move an item up (-1) or down (1), as far as there is room; returns where it stands."""
        to = min(max(place + by, 0), len(self.rows) - 1)
        self.rows.insert(to, self.rows.pop(place))
        return to


def _texts(item: JSON) -> tuple[str, str]:
    """Title and context as they can be edited; what is not an item with two texts as JSON."""
    if not isinstance(item, dict):
        return (item if isinstance(item, str) else compact(item)), ""
    title, context = item.get("title", ""), item.get("context", "")
    return (
        title if isinstance(title, str) else compact(title),
        context if isinstance(context, str) else compact(context),
    )
