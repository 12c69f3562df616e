"""Run the quickstart notebook without a browser and print the result of its cast (``make demo``)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from run_notebooks import ROOT, copy_notebooks, execute

NOTEBOOK = "00-quickstart.ipynb"
DEMO = ROOT / "build" / "demo"


def main() -> int:
    """Run the notebook in a copy of notebooks/ and print the route, the state and the locations of the files."""
    # The demo shows the same output on every machine, regardless of the user's loadouts.
    copy_notebooks(ROOT / "notebooks", DEMO)

    from nbclient.exceptions import CellExecutionError

    try:
        page = run_notebook(DEMO / NOTEBOOK)
    except CellExecutionError as error:
        print(f"A cell of {NOTEBOOK} failed:\n{error}", file=sys.stderr)
        return 1
    show_cast(page)
    return 0


def run_notebook(path: Path) -> Path:
    """Run a notebook in its folder, save it with its outputs, and return its HTML page."""
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter().from_notebook_node(execute(path))
    page = path.with_suffix(".html")
    page.write_text(body, encoding="utf-8")
    return page


def show_cast(notebook_page: Path) -> None:
    """Print the newest complete cast of the demo, using only its run directory."""
    from materia_nb import Workbench

    bench = Workbench(project=DEMO)
    cast = bench.open(next(entry.path for entry in bench.casts() if entry.status == "complete"))
    print(f"Route of the cast ({cast.status})")
    for number, (socket, visit, _, label) in enumerate(cast.route, 1):
        item = f"  item: {label}" if label else ""
        print(f"  {number:>3}. {socket} (visit {visit}){item}")
    print("State")
    for line in json.dumps(dict(cast.state), indent=2, ensure_ascii=False).splitlines():
        print(f"  {line}")
    cast_page = DEMO / "cast.html"
    cast.export.page(cast_page)
    files = sorted(path for path in cast.run_dir.rglob("*") if path.is_file())
    print(f"Artifacts: {relative_path(cast.run_dir)} ({len(files)} files)")
    for path in files:
        print(f"  {path.relative_to(cast.run_dir)}")
    print(f"HTML page of the cast:     {relative_path(cast_page)}")
    print(f"HTML page of the notebook: {relative_path(notebook_page)}")


def relative_path(path: Path) -> str:
    """Return a path relative to the checkout if it is inside the checkout; otherwise return it unchanged."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
