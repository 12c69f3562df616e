"""Verbs about casts on disk, and help: casts, open, resume, page, record, help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from materia_nb import tables, views
from materia_nb.magics.help import help_text
from materia_nb.magics.registry import Argument, Call, verb


@verb("casts")
def casts(call: Call) -> Any:
    """List the casts of this project, newest first."""
    return tables.casts_view(call.bench.casts())


@verb(
    "open",
    Argument("cast", "an id or its beginning, -1 for the latest, or a directory", "rest", completes="cast"),
    example="%materia open -1",
)
def open_(call: Call) -> Any:
    """Open a cast to look at it, also one recorded by the reference engine."""
    return call.bench.open(call.get("cast") or "-1")


@verb(
    "resume",
    Argument("cast", "an id or its beginning, -1 for the latest, or a directory", "rest", completes="cast"),
    example="%materia resume",
)
def resume(call: Call) -> Any:
    """Open a cast to go on with it, after a restart or a crash."""
    return call.bench.resume(call.get("cast") or "-1")


@verb(
    "page",
    Argument("file", "where to; cast.html in the run directory if left out", "rest"),
)
def page(call: Call) -> Any:
    """Write the cast as one HTML page."""
    current = call.bench.current
    target = call.get("file")
    path = call.bench.project / str(target) if target else current.run_dir / "cast.html"
    current.save_page(path)
    return views.Text(f"Wrote {_short(path, call.bench.project)}.")


@verb(
    "record",
    Argument("file", "where to; recording.json in the run directory if left out", "rest"),
    example="%materia record recordings/demo.json",
)
def record(call: Call) -> Any:
    """Write what was answered in the cast as a file that other casts can be answered from (agent * recorded:FILE)."""
    current = call.bench.current
    target = call.get("file")
    path = call.bench.project / str(target) if target else current.run_dir / "recording.json"
    current.save_recording(path)
    return views.Text(f"Wrote {_short(path, call.bench.project)}.")


def _short(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


@verb("help", Argument("verb", "a verb", completes="verb"))
def help_(call: Call) -> Any:
    """List the verbs, or explain one."""
    return views.Text(help_text(call.get("verb")))
