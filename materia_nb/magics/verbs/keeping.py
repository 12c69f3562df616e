"""Verbs about casts on disk, and help: casts, open, resume, page, help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from materia_nb import views
from materia_nb.magics.help import help_text
from materia_nb.magics.registry import Argument, Call, verb


@verb("casts", "List the casts of this project, newest first.")
def casts(call: Call) -> Any:
    return views.casts_view(call.bench.casts())


@verb(
    "open",
    "Open a cast to look at it, also one recorded by the reference engine.",
    Argument("cast", "an id or its beginning, -1 for the latest, or a directory", "rest", completes="cast"),
    example="%materia open -1",
)
def open_(call: Call) -> Any:
    return call.bench.open(call.get("cast") or "-1")


@verb(
    "resume",
    "Open a cast to go on with it, after a restart or a crash.",
    Argument("cast", "an id or its beginning, -1 for the latest, or a directory", "rest", completes="cast"),
    example="%materia resume",
)
def resume(call: Call) -> Any:
    return call.bench.resume(call.get("cast") or "-1")


@verb(
    "page",
    "Write the cast as one HTML page.",
    Argument("file", "where to; cast.html in the run directory if left out", "rest"),
)
def page(call: Call) -> Any:
    current = call.bench.current
    target = call.get("file")
    path = call.bench.project / str(target) if target else current.run_dir / "cast.html"
    current.save_page(path)
    return views.Text(f"Wrote {_short(path, call.bench.project)}.")


def _short(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


@verb("help", "List the verbs, or explain one.", Argument("verb", "a verb", completes="verb"))
def help_(call: Call) -> Any:
    return views.Text(help_text(call.get("verb")))
