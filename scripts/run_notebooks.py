"""Execute the notebooks and store them with their outputs: ``python scripts/run_notebooks.py [NAME...]``.

The notebooks run in a copy of notebooks/ with a separate profile, so casts and the user's loadouts do not affect them.
Only outputs that a reader without a kernel can see are stored, without widget state and times, which differ between
runs. An output that differs only by patterns in tests/nbval-sanitize.cfg is not replaced, so a second run changes
nothing.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
NOTEBOOKS: Final = ROOT / "notebooks"
SCRATCH: Final = ROOT / "build" / "notebooks"
MAY_DIFFER: Final = ROOT / "tests" / "nbval-sanitize.cfg"

WIDGET_VIEW: Final = "application/vnd.jupyter.widget-view+json"
CELL_NOISE: Final = (
    "execution",
    "ExecuteTime",
    "collapsed",
    "jp-MarkdownHeadingCollapsed",
    "scrolled",
    "trusted",
)
CELL_SECONDS: Final = 120


def main(folder: Path = NOTEBOOKS, scratch: Path = SCRATCH, only: Sequence[str] = ()) -> int:
    """Execute and store all notebooks of a folder, or only the named notebooks.

    Returns:
        The exit code, which is 1 if a cell failed or an output contains a path of this machine.
    """
    import nbformat
    from nbclient.exceptions import CellExecutionError

    copy_notebooks(folder, scratch)
    failed = 0
    for path in sorted(folder.glob("*.ipynb")):
        if only and path.stem not in only:
            continue
        stored = path.read_text(encoding="utf-8")
        try:
            book = execute(scratch / path.name)
        except CellExecutionError as error:
            print(f"{path.name}: a cell failed, so the notebook was not stored:\n{error}", file=sys.stderr)
            failed += 1
            continue
        remove_transient_outputs(book)
        if leaking_cells := cells_with_path(book, str(scratch.resolve())):
            print(f"{path.name}: the outputs of {leaking_cells} contain a path of this machine", file=sys.stderr)
            failed += 1
            continue
        keep_equivalent_outputs(book, nbformat.reads(stored, as_version=4))
        text = nbformat.writes(book).rstrip("\n") + "\n"
        if text != stored:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'stored' if text != stored else 'unchanged'}")
    return 1 if failed else 0


def copy_notebooks(folder: Path, scratch: Path) -> None:
    """Copy notebooks/ without casts, and hide the user's loadouts and IPython settings."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch, ignore=shutil.ignore_patterns(".ipynb_checkpoints", ".pi"))
    os.environ["MATERIA_PROFILE_DIR"] = str(scratch / "profile")
    os.environ["IPYTHONDIR"] = str(scratch / "ipython")
    os.environ.pop("MATERIA_CONFIG", None)


def execute(path: Path) -> Any:
    """Execute a notebook in its folder and return it. Its outputs are stored even if a cell fails.

    Raises:
        CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        book,
        timeout=CELL_SECONDS,
        resources=resources,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    try:
        client.execute()
    finally:
        nbformat.write(book, path)
    return book


def remove_transient_outputs(book: Any) -> None:
    """Remove the outputs that need a kernel or differ between runs."""
    book.metadata.pop("widgets", None)
    book.metadata.get("language_info", {}).pop("version", None)
    for cell in book.cells:
        for name in CELL_NOISE:
            cell.metadata.pop(name, None)
        if cell.cell_type == "code":
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]


def cells_with_path(book: Any, folder: str) -> str:
    """Return the code cells whose outputs contain the path of ``folder`` on this machine."""
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return ", ".join(f"cell [{cell.execution_count}]" for cell in cells if folder in json.dumps(cell.outputs))


def keep_equivalent_outputs(book: Any, stored: Any) -> None:
    """Keep the stored outputs of a cell if the new outputs differ only by allowed patterns."""
    remove_transient_outputs(stored)
    before = {cell.get("id"): cell for cell in stored.cells if cell.cell_type == "code"}
    patterns = may_differ()
    for cell in book.cells:
        was = before.get(cell.get("id"))
        if was is not None and normalized_outputs(was.outputs, patterns) == normalized_outputs(cell.outputs, patterns):
            cell.outputs = was.outputs


def may_differ(path: Path = MAY_DIFFER) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns and replacements for texts that may differ between runs."""
    rules = configparser.RawConfigParser()
    rules.read_string(path.read_text(encoding="utf-8"))
    return [(re.compile(rules[name]["regex"]), rules[name]["replace"]) for name in rules.sections()]


def normalized_outputs(outputs: Sequence[Mapping[str, Any]], patterns: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """Return the outputs as normalized text. Outputs that differ only by the patterns have the same text."""
    text = json.dumps(outputs, sort_keys=True, ensure_ascii=False)
    for pattern, replacement in patterns:
        text = pattern.sub(replacement, text)
    return text


if __name__ == "__main__":
    sys.exit(main(only=sys.argv[1:]))
