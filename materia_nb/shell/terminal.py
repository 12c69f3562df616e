"""A person or a program at a terminal: how far a cast is, what it asks, and what came of a verb, as data and as exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

import click

from materia_nb.cast import Cast
from materia_nb.cast.project_casts import Casts
from materia_nb.cast.views import compare_view as compared
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.cast.views.status import StatusView
from materia_nb.cast.views.step_views import HandoffView
from materia_nb.cast.views.tables import SpentView
from materia_nb.cast.workbench import DryBench
from materia_nb.display.blocks import Block, JsonView, Shown, Table, cell_text
from materia_nb.doctor import Checkup
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.magics import cast_display
from materia_nb.store.opening import Verified
from materia_nb.sweep.results import Sweep

_END = "."


class TerminalBar:
    """A bar on the standard error, below which nothing else is written while it is there."""

    def __init__(self, told: cast_display.HowFar) -> None:
        self._told, self._words, self._began = told, "", time.monotonic()
        self._bar: Any = click.progressbar(
            length=1, file=sys.stderr, show_eta=False, item_show_func=lambda _: self._words
        )

    def update(self) -> None:
        """Bring the bar up to date, if it is there: short runs have none."""
        if time.monotonic() - self._began < cast_display.SHOW_AFTER_S:
            return
        done, total, self._words = self._told()
        known = total > 0  # how far a cast is, nobody knows; how many casts of a sweep are done, one does
        self._bar.show_percent, self._bar.bar_template = (
            known,
            "  [%(bar)s]  %(info)s" if known else "  %(info)s",
        )
        self._bar.length, self._bar.pos = max(total, 1), done
        self._bar.current_item = done
        self._bar.render_progress()

    def close(self) -> None:
        """End its line."""
        if self._words:
            self._bar.render_finish()


@contextmanager
def bars() -> Iterator[None]:
    """Show bars on this terminal, if it is one, while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    cast_display.TERMINAL.append(TerminalBar)
    try:
        yield
    finally:
        cast_display.TERMINAL.pop()


def can_ask(*, as_json: bool) -> bool:
    """Whether somebody sits there who can be asked: what is written and what is read is a terminal."""
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def let_answer(cast: Cast) -> bool:
    """Show what a cast waits for, and let the person answer; whether they did, so that the cast can go on.

    An answer may have many lines; a line with a dot alone ends it. With an end of file (Ctrl-D) in its place the cast
    goes on waiting.
    """
    if cast.status == "complete" or not (cast.now.approvals.asking or cast.now.waiting_at or cast.now.held):
        return False
    click.echo(repr(StatusView(cast.now)))
    try:
        if cast.now.approvals.asking:
            _consent(cast)
        elif cast.now.held or (cast.now.waiting_at and cast.now.waiting_at.mode == "draft"):
            message = _lines("What should be different? Nothing, to accept it")
            cast.refine(message) if message else cast.accept()
        else:
            cast.reply(_lines("Your answer"))
    except EOFError:
        return False
    except MateriaError as error:  # a refused answer: it is asked for again
        click.echo(str(error).replace("%materia ", "materia "), err=True)
    return True


def _consent(cast: Cast) -> None:
    word = click.prompt("Approve", type=click.Choice(["yes", "no", "always"]), default="no")
    if word == "no":
        cast.approvals.deny("the person said no")
    else:
        cast.approvals.approve(always=word == "always")


def _lines(what: str) -> str:
    """Read an answer up to a line with a dot alone; raises EOFError where there is none."""
    click.echo(f"{what}; a line with {_END!r} alone ends it, Ctrl-D leaves the cast waiting:")
    found: list[str] = []
    while (line := input("> ")) != _END:
        found.append(line)
    return "\n".join(found)


_RULES: Final[tuple[tuple[Any, Callable[[Any], bool]], ...]] = (
    (Verified, lambda found: found.good),
    (Checkup, lambda found: all(one.status != "missing" for one in found.findings)),
    (Sweep, lambda found: not found.failures),
    (compared.CompareView | compared.StepCompareView | compared.LoadoutCompareView, lambda found: not found),
    (ExploreView, lambda found: found.complete_search and not found.stalls),
)
"""By the type of what a verb found: whether it is fine. Two things that differ are not, as for ``diff``."""


def is_fine(verb: str, value: object, bench: Any) -> bool:
    """Whether a verb found no problem; where it found nothing of its own, whether its cast did not fail, or, run, did not stop for somebody."""
    for kind, rule in _RULES:
        if isinstance(value, kind):
            return rule(value)
    if verb == "quest run":
        return not any(one.status in ("failed", "waiting") for one in bench.quests.quests)
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


def data_of(verb: str, value: object, bench: DryBench) -> dict[str, JSON]:
    """Return what came of a verb as JSON: ``cast`` is the cast that it was about, ``value`` what it showed."""
    cast = getattr(bench, "cast_", None)
    data: dict[str, JSON] = {"value": _plain(value)}
    if cast is not None:
        now = cast.now
        if verb == "steps":
            data["value"] = [_plain(_handed_on(step)) for step in now.all_steps]
        data["cast"] = {
            "id": now.id,
            "directory": str(now.run_dir),
            "loadout": now.graph.name,
            "request": now.request,
            "status": now.status,
            "steps": len(now.all_steps),
            "route": [one.socket for one in now.all_steps],
            "next": now.next_socket,
            "output": now.all_steps[-1].output if now.all_steps else None,
            "failure": now.failure and {"kind": now.failure.kind, "message": now.failure.message},
            "usage": now.usage_report,
            "state": dict(now.state),
        }
    return data


def _handed_on(step: StepRecord) -> dict[str, object]:
    """What a step handed on: its output as text and as it was read, why that was refused, and where it led."""
    reading = step.reading
    return {
        "step": step.number,
        "socket": step.socket,
        "visit": step.visit,
        "item": step.item_label,
        "lane": step.lane or None,
        "output": step.output,
        "handoff": None if reading is None else reading.value,
        "issues": [] if reading is None else reading.issues,
        "next": None if step.decision is None else step.decision.target,
        "seconds": None if step.worked is None else step.worked / 1000,
    }


_EXPLORED: Final = ("items", "states", "not_taken", "not_visited", "unrouted", "notes")


def _explored(found: Exploration) -> dict[str, object]:
    """What an exploration found; ``complete`` says whether everything was looked at, else there may be more."""
    whole = found.complete_search
    seen = {name: getattr(found, name) for name in _EXPLORED}
    known = {"stalls": found.stalls, "most_turns": found.most_turns()} if whole else {}
    return {"loadout": found.graph.name, "complete": whole, "ends": found.ends_seen, **seen, **known}


_AS_DATA: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    (Casts, lambda shown: shown()),
    (Graph, lambda shown: shown.name),
    (JsonView, lambda shown: shown.value),
    (compared.ReplayView, lambda shown: compared.ReplaysView([shown])),
    (SpentView, lambda shown: shown.found),
    (HandoffView, lambda shown: _handed_on(shown.step)),
    (Exploration, _explored),
)
"""By the type of what a verb showed: what of it is written as JSON, where that is neither its fields nor its rows."""


def _plain(value: Any) -> JSON:
    """Write a value as JSON: its fields where it has some, the rows of a table by its headers, else what it shows."""
    for kind, said in _AS_DATA:
        if isinstance(value, kind):
            return _plain(said(value))
    plain: JSON
    match value:
        case None | str() | int() | float():
            plain = value
        case Table():
            headers = [cell_text(one) or "mark" for one in value.headers]
            plain = [dict(zip(headers, map(cell_text, row), strict=True)) for row in value.rows]
        case Mapping():
            plain = {str(key): _plain(one) for key, one in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            plain = _plain(value._asdict())
        case Sequence() | set() | frozenset():
            plain = [_plain(one) for one in value]
        case _ if is_dataclass(value):
            plain = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
        case Shown() if type(value)._blocks is not Shown._blocks:  # noqa: SLF001 - of a panel there is only its text
            plain = value.as_json()
        case _:
            plain = str(value)
    return plain
