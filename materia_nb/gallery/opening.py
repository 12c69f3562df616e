"""A card of the gallery as a notebook of its own, to run, to change and to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from typing import Any, Final

from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import esc
from materia_nb.display.html import Html
from materia_nb.errors import MateriaError
from materia_nb.gallery import Card
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk

_WIDTH: Final = 92
"""Characters of a line of code that a laptop shows without cutting."""


@dataclass(frozen=True, slots=True, repr=False)
class Opened(Shown):
    """A notebook that was written; it shows itself as a link.

    Attributes:
        card: what it is made of.
        path: where it is.
    """

    card: Card
    path: Path

    def __repr__(self) -> str:
        return f"{self.path.name} is written: {self.card.title}"

    def _show(self) -> dict[str, Any]:
        name = esc(self.path.name)
        link = Html(f'<a href="{name}" target="_blank">{name}</a> is written: {esc(self.card.title)}')
        return bundle(repr(self), html=link)


def open_card(card: Card, folder: str | Path) -> Opened:
    """Write a card as a notebook, ``NAME.ipynb``, into a folder.

    Raises:
        MateriaError: there is a file of that name (``exists``), or it cannot be written.
    """
    path = Path(folder) / f"{card.name}.ipynb"
    text = json.dumps(notebook_of(card), ensure_ascii=False, indent=1) + "\n"
    try:
        with disk(path, "write the notebook"), path.open("x", encoding="utf-8") as file:
            file.write(text)
    except MateriaError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise MateriaError(
                f"There is a {path.name} already, and it stays as it is.",
                where=str(path),
                hint="open it, or rename it and ask again",
                kind="exists",
            ) from None
        raise
    return Opened(card, path)


def notebook_of(card: Card) -> dict[str, JSON]:
    """Return a card as a notebook in its JSON form (nbformat 4.5), without outputs."""
    cells = _mistake(card) if card.kind == "mistake" else _pattern(card)
    numbered = [
        {"id": f"cell-{number:02}", "metadata": {}, **cell} for number, cell in enumerate(cells, start=1)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": numbered, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def laid_out(value: JSON, indent: int = 0, width: int = _WIDTH) -> str:
    """Return JSON in which what fits into a line stands in one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(flat) + indent <= width:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        lines = [
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {laid_out(child, indent + 2, width)}"
            for key, child in value.items()
        ]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    lines = [pad + laid_out(child, indent + 2, width) for child in value]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def _pattern(card: Card) -> Iterable[dict[str, JSON]]:
    yield _words(
        f"# {card.title}",
        card.purpose,
        "Everything in this notebook is yours to change: the loadout, the answers, the request.",
    )
    yield _code("%load_ext materia_nb")
    yield _loadout(card.loadout, card.document)
    yield _words(
        "## A cast",
        "A script answers here, so it costs nothing and always comes out the same. "
        '`wb.agent("*", "command:claude")` or a model would answer instead: see `%materia help agent`.',
    )
    yield _code(_cast("cast", card, card.loadout))
    yield _words("## What to look at", *(f"- {line}" for line in card.look), between="\n")
    yield _code("%materia why 1")
    yield _words("## All that it can do", "Nobody is asked for this: every answer is tried.")
    yield _code(f"%materia explore {card.loadout}")
    yield from _tests("cast", card.name, card.loadout)


def _mistake(card: Card) -> Iterable[dict[str, JSON]]:
    wrong, mended = card.loadout, f"{card.loadout}-Mended"
    castable = card.graph is not None
    yield _words(
        f"# {card.title}",
        f"*{card.purpose}*",
        "One thing is wrong with the loadout below. Find out what, from its records, before you unfold anything.",
    )
    yield _code("%load_ext materia_nb")
    yield _loadout(wrong, card.document)
    if castable:
        yield _code(_cast("cast", card, wrong))
    yield _words("## What to look at", *(f"- {line}" for line in card.look), between="\n")
    if castable:
        yield _code(_lines("# The number is that of the step.", "%materia why 1"))
    assert card.diagnosis is not None  # noqa: S101 - every mistake has one
    yield _words(
        "## What is wrong",
        f"<details>\n<summary>When you have a diagnosis</summary>\n\n{card.diagnosis.why}\n\nThe next cell says what "
        f"could have been known before the cast: `{card.diagnosis.code}`.\n\n</details>",
    )
    yield _code(f"%materia check {wrong}")
    yield _words("## Mended", "Mend it yourself in the cell above, or see one way to do it here.")
    yield _loadout(mended, card.mended, card.loadout)
    yield _code(_cast("mended", card, mended))
    if castable:
        yield _code("wb.compare(cast, mended)")
    yield from _tests("mended", card.name, mended)


def _tests(cast: str, name: str, loadout: str) -> Iterable[dict[str, JSON]]:
    yield _words(
        "## Kept as tests",
        "One for this cast, and one for each way in which the loadout can end, as explore finds it. `pytest` runs the "
        "files, and says what goes another way once the loadout was changed.",
    )
    yield _code(
        _lines(
            f'tests = [{cast}.export.test("{name}-tests/cast")]',
            f'tests += wb.explore("{loadout}").save_tests("{name}-tests")',
            'print(*(path.name for path in tests), sep="\\n")',
        )
    )


def _cast(variable: str, card: Card, loadout: str) -> str:
    answers = pformat(dict(card.answers), width=_WIDTH, sort_dicts=False)
    made = f'wb.cast({card.request!r}, loadout="{loadout}", agents={{"*": answers}})'
    return _lines(f"answers = {answers}", f"{variable} = {made}", f"{variable}.run()", "%materia steps")


def _loadout(name: str, document: Mapping[str, JSON], own: str | None = None) -> dict[str, JSON]:
    loadouts = document["loadouts"]
    assert isinstance(loadouts, dict)  # noqa: S101 - tests check every card
    body = {**loadouts[own or name], "materia": document["materia"]}
    return _code(_lines(f"%%materia loadout {name}", laid_out(body)))


def _code(source: str) -> dict[str, JSON]:
    return {"cell_type": "code", "execution_count": None, "outputs": [], "source": source}


def _words(*parts: str, between: str = "\n\n") -> dict[str, JSON]:
    first, *rest = parts
    return {"cell_type": "markdown", "source": "\n\n".join([first, between.join(rest)])}


def _lines(*lines: str) -> str:
    return "\n".join(lines)
