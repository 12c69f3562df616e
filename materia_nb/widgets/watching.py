"""The tab Watch: what stands at chosen paths of the state, and which steps changed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.escape import part, shorten
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import as_text
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

_MOST: Final = 20
"""How many paths are watched."""
_CHANGES: Final = 40
"""How many changes of each are told, the latest."""
_VALUE_CHARS: Final = 200


class Watched:
    """The paths that are watched in one panel; where each changed is kept, so that a step is looked at once."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._looked: dict[str, tuple[list[StepRecord], list[int]]] = {}
        """By path, the steps that were looked at and the places of those that changed it."""

    def paths(self, now: Snapshot) -> list[str]:
        """Return what was chosen here, and behind it what stops runs when it changes."""
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
        """Return what the page is told: of each path its value at the moment that is looked at, and its changes, the latest first."""
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
        for place in range(len(looked), len(steps)):
            step = steps[place]
            looked.append(step)
            if not same(_value(step.before.data, path), _value(step.after.data, path)):
                changed.append(place)
        rows = [
            [
                steps[place].number,
                now.names.get(steps[place].socket, ""),
                _words(steps[place].after.data, path),
            ]
            for place in reversed(changed[-_CHANGES:])
        ]
        return {"changes": len(changed), "rows": rows}


def _value(data: Mapping[str, JSON], path: str) -> Any:
    return get_path(dict(data), split_path(path))


def _words(data: Mapping[str, JSON], path: str) -> str:
    value = _value(data, path)
    return "not there" if value is MISSING else shorten(part(as_text(value), _VALUE_CHARS), _VALUE_CHARS)
