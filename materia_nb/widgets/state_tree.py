"""The shared state as an editable tree, the differences of two states, and the watched paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.blocks import Block, Heading, JsonTree, Line, Table
from materia_nb.display.escape import part, shorten
from materia_nb.engine.limits import edges_used, limits_of
from materia_nb.errors import MateriaError, plain
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

_MOST_CHILDREN: Final = 300
_TEXT_CHARS: Final = 1_000
_DEPTH: Final = 12
_BUDGET: Final = 4_000


def aliases(state: _CastData) -> dict[str, list[str]]:
    """Return the names under which one item is shown, by the first of them: they are one thing and one row."""
    twins: dict[str, list[str]] = {}
    for name in (name for name, value in state.items() if isinstance(value, dict) and value):
        first = next((name_ for name_ in twins if same(state[name_], state[name])), None)
        if first is not None and name != "workItems":
            twins[first].append(name)
        else:
            twins[name] = []
    return {name: others for name, others in twins.items() if others}


_CastData = dict[str, JSON]


def state_nodes(data: _CastData) -> list[dict[str, Any]]:
    """Return the state as nodes: name, path, kind, value or children; at most some thousand, the rest is counted."""
    left = [_BUDGET]
    twins = aliases(data)
    folded = {name for others in twins.values() for name in others}
    return [
        {**_node(name, [name], value, left), **({"same": twins[name]} if name in twins else {})}
        for name, value in data.items()
        if name not in folded
    ]


def _node(name: str, path: list[str], value: JSON, left: list[int]) -> dict[str, Any]:
    left[0] -= 1
    node: dict[str, Any] = {"name": plain(name), "path": path}
    if isinstance(value, dict | list):
        pairs = (
            list(value.items())
            if isinstance(value, dict)
            else [(str(n), item) for n, item in enumerate(value)]
        )
        node |= {"kind": "object" if isinstance(value, dict) else "list", "count": len(pairs)}
        if len(path) < _DEPTH and left[0] > 0:
            node["children"] = [
                _node(key, [*path, key], child, left) for key, child in pairs[:_MOST_CHILDREN] if left[0] > 0
            ]
            node["more"] = len(pairs) - len(node["children"])
        else:
            node |= {"children": [], "more": len(pairs)}
        return node
    text = as_text(value)
    node |= {"kind": "text" if isinstance(value, str) else "value", "text": plain(text[:_TEXT_CHARS])}
    if len(text) > _TEXT_CHARS:
        node["cut"] = len(text)
    return node


def diff_blocks(before: _CastData, after: _CastData, title: str) -> list[Block]:
    """Return the differences of two states as a tree; an item with several names is shown once."""
    folded = {name for data in (before, after) for others in aliases(data).values() for name in others}
    kept_before, kept_after = (
        {name: value for name, value in data.items() if name not in folded} for data in (before, after)
    )
    if same(kept_before, kept_after):
        return [Heading(title), Line("nothing", "quiet")]
    return [Heading(title), JsonTree(kept_after, "state", was=kept_before)]


def limit_blocks(cast: Snapshot) -> list[Block]:
    """Cursors, budgets and limits with how much of each is used."""
    now = cast.engine
    rows = [(f"cursor {name}", str(index), "") for name, index in now.cursors.items()]
    rows += [
        (f"edge {index + 1} of {socket}", str(used), str(limit))
        for (socket, index), (used, limit) in edges_used(cast.rules, now).items()
    ]
    rows += [
        (
            limit_row.what,
            "" if limit_row.used is None else str(limit_row.used),
            "no limit" if limit_row.most is None else str(limit_row.most),
        )
        for limit_row in limits_of(cast.rules, now)
    ]
    return [Table(("cursors and limits", "now", "limit"), rows)]


_MOST: Final = 20
"""Maximum number of watched paths."""
_CHANGES: Final = 40
"""Maximum number of changes that are shown of each path, latest first."""
_VALUE_CHARS: Final = 200


class WatchList:
    """The paths that are watched in one panel; where each changed is kept, so that a step is looked at once."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._looked: dict[str, tuple[list[StepRecord], list[int]]] = {}
        """By path: the steps that were examined, and the indexes of those that changed it."""

    def paths(self, now: Snapshot) -> list[str]:
        """Return the paths that were chosen here, then the paths at which runs stop."""
        return list(dict.fromkeys([*self._paths, *now.breakpoints.paths]))

    def follow(self, path: str, *, on: bool) -> None:
        """Watch a dotted path, or no longer.

        Raises:
            MateriaError: it names nothing (``bad_path``), or there are too many.
        """
        path = path.strip().removeprefix("state.")
        if not on:
            self._paths.pop(path, None)
            return
        if not split_path(path):
            raise MateriaError("A path of the state is needed.", hint="such as plan.title", kind="bad_path")
        if len(self._paths) >= _MOST and path not in self._paths:
            raise MateriaError(
                f"{_MOST} paths are watched already.", hint="take one away first", kind="bad_path"
            )
        self._paths[path] = None

    def told(self, now: Snapshot, shown: Snapshot, line: int | None) -> dict[str, Any]:
        """Return the value of each path at the shown moment, and its changes, latest first."""
        stops = now.breakpoints.paths
        return {
            "watched": [
                {
                    "path": path,
                    "now": _words(dict(shown.state), path),
                    "stops": path in stops,
                    "mine": path in self._paths,
                    **self._history(now, path, line),
                }
                for path in self.paths(now)
            ]
        }

    def _history(self, now: Snapshot, path: str, line: int | None) -> dict[str, Any]:
        steps = now.line(line)
        looked, changed = self._looked.setdefault(path, ([], []))
        while looked and (len(looked) > len(steps) or looked[-1] is not steps[len(looked) - 1]):
            looked.pop()  # it goes on from an earlier step, another line is shown, or the latest one is not what it was
        while changed and changed[-1] >= len(looked):
            changed.pop()
        for index in range(len(looked), len(steps)):
            step = steps[index]
            looked.append(step)
            if not same(_value(step.before.data, path), _value(step.after.data, path)):
                changed.append(index)
        rows = [
            [
                steps[index].number,
                now.names.get(steps[index].socket, ""),
                _words(steps[index].after.data, path),
            ]
            for index in reversed(changed[-_CHANGES:])
        ]
        return {"changes": len(changed), "rows": rows}


def _value(data: Mapping[str, JSON], path: str) -> Any:
    return get_path(dict(data), split_path(path))


def _words(data: Mapping[str, JSON], path: str) -> str:
    value = _value(data, path)
    return "not there" if value is MISSING else shorten(part(as_text(value), _VALUE_CHARS), _VALUE_CHARS)
