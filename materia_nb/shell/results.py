"""What came of a verb, for programs: whether all is fine, and the same as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.dry_bench import DryBench
from materia_nb.cast.views.compare_view import CompareView, LoadoutCompareView, StepCompareView
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.display.blocks import Block, Shown, Table, cell_text
from materia_nb.doctor import Checkup
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.store.verifying import Verified
from materia_nb.sweep.results import Sweep

_RULES: Final[tuple[tuple[Any, Callable[[Any], bool]], ...]] = (
    (Verified, lambda found: found.good),
    (Checkup, lambda found: all(one.status != "missing" for one in found.findings)),
    (Sweep, lambda found: not found.failures),
    (CompareView | StepCompareView | LoadoutCompareView, lambda found: not found),
    (ExploreView, lambda found: found.complete_search and not found.stalls),
)
"""By the type of what a verb found: whether it is fine. Two things that differ are not, as for ``diff``."""


def is_fine(verb: str, value: object, bench: DryBench) -> bool:
    """Whether a verb found no problem; where it found nothing of its own, whether its cast did not fail, or, run, did not stop for somebody."""
    for kind, rule in _RULES:
        if isinstance(value, kind):
            return rule(value)
    cast: Cast | None = getattr(bench, "cast_", None)
    if cast is None or not cast.now.writable:
        return True
    stopped = {"failed", "aborted"} | ({"waiting", "held"} if verb == "run" else set())
    return cast.status not in stopped


def text_of(value: object, width: int) -> str:
    """Return what came of a verb as text; a panel, which only a notebook can draw, as whoever has no widgets reads it."""
    if isinstance(value, Shown) and type(value)._blocks is Shown._blocks:  # noqa: SLF001
        return str(value._repr_mimebundle_()["text/plain"])
    return value.as_text(width) if isinstance(value, Block) else repr(value)


def data_of(value: object, bench: DryBench) -> dict[str, JSON]:
    """Return what came of a verb as JSON: ``cast`` is the cast that it was about, ``value`` what it showed."""
    cast = getattr(bench, "cast_", None)
    data: dict[str, JSON] = {"value": _plain(value)}
    if cast is not None:
        now = cast.now
        data["cast"] = {
            "id": now.id,
            "directory": str(now.run_dir),
            "loadout": now.graph.name,
            "request": now.request,
            "status": now.status,
            "steps": len(now.steps),
            "next": now.next_socket,
            "failure": None
            if now.failure is None
            else {"kind": now.failure.kind, "message": now.failure.message},
            "usage": now.usage_report,
            "state": dict(now.state),
        }
    return data


def _plain(value: Any) -> JSON:
    """Write a value as JSON: its fields where it has some, the rows of a table by its headers, else what it shows."""
    plain: JSON
    match value:
        case None | str() | int() | float():
            plain = value
        case Table():
            headers = [cell_text(one) or "mark" for one in value.headers]
            plain = [dict(zip(headers, map(cell_text, row), strict=True)) for row in value.rows]
        case Graph():
            plain = value.name
        case Mapping():
            plain = {str(key): _plain(one) for key, one in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            plain = _plain(value._asdict())
        case Sequence() | set() | frozenset():
            plain = [_plain(one) for one in value]
        case _ if is_dataclass(value):
            plain = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
        case Shown():
            plain = value.as_json()
        case _:
            plain = str(value)
    return plain
