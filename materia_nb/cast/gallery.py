"""The gallery of loadout patterns and common mistakes: small loadouts with scripted answers and explanations."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pprint import pformat
from string import Template
from typing import Any, Final, Literal, TypeAlias

from materia_nb.display.blocks import Block, Displayable, FactTable, Heading, Line, fit_to_width, lines, mime_bundle
from materia_nb.display.escape import Html, html_heading, html_join, html_panel
from materia_nb.display.svg import graph_block
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.file_io import read_package_text, replace_file
from materia_nb.handoff.base import Pointer
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph, Report, build_graph, check_config
from materia_nb.store.files import disk_errors

CardKind: TypeAlias = Literal["pattern", "mistake"]

_FOLDER: Final = Path(__file__).parents[1] / "gallery"
CASES: Final = ".materia-case.json"
_CARD: Final = ".card.json"
_FOLDERS: Final[Mapping[CardKind, str]] = {"pattern": "patterns", "mistake": "mistakes"}
_WIDTH, _HEIGHT = 240, 200


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The bug in a gallery loadout that demonstrates a common mistake.

    Attributes:
        code: the code of the problem or hint that ``check`` reports.
        socket: the id of the socket with the bug.
        why: an explanation of how the bug causes the behavior in the complaint.
        step: the number of the step at which the bug becomes visible in the cast, or None.
    """

    code: str
    socket: str
    why: str
    step: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Card(Displayable):
    """An entry of the gallery, which shows a pattern or a common mistake.

    Attributes:
        name: the name of the card, such as ``critic-loop``. The name of a mistake does not reveal the bug.
        kind: ``pattern`` or ``mistake``.
        title: the title of the card.
        purpose: one line with the purpose of a pattern, or with a user's complaint about a mistake.
        request: the request with which to cast the loadout.
        answers: the scripted answers by materia, in the format of ``wb.cast(..., agents={"*": answers})``.
        look: the details of the cast that the reader should observe, one per line.
        document: the config, which contains a single loadout.
        diagnosis: the bug of a mistake; None for a pattern.
        fix: the JSON Patch (RFC 6902) that fixes a mistake; empty for a pattern.
    """

    name: str
    kind: CardKind
    title: str
    purpose: str
    request: str
    answers: Mapping[str, Any]
    look: tuple[str, ...]
    document: dict[str, JSON]
    diagnosis: Diagnosis | None = None
    fix: tuple[Mapping[str, JSON], ...] = ()

    @property
    def loadout(self) -> str:
        """The name of the card's loadout."""
        return str(self.document["activeLoadout"])

    @property
    def report(self) -> Report:
        """The problems and hints that ``check`` reports for the loadout."""
        return check_config(self.document, self.loadout)

    @property
    def graph(self) -> Graph | None:
        """The resolved loadout, or None if the mistake prevents it from being cast."""
        return None if self.report.problems else build_graph(self.document, self.loadout)

    @property
    def fixed(self) -> dict[str, JSON]:
        """A copy of the config in which the mistake is fixed, if there is one."""
        import jsonpatch

        document: dict[str, JSON] = jsonpatch.apply_patch(self.document, list(self.fix))
        return document

    @property
    def folder(self) -> Path:
        """The directory that contains the files of the card."""
        return _FOLDER / _FOLDERS[self.kind]

    @property
    def cases(self) -> tuple[Path, ...]:
        """The paths of the card's test cases, which pytest runs.

        The test cases of the card's own casts come first. The directory with the name of the card contains the others,
        written by ``explore(...).save_tests``: one for each possible end, and one for all possible visits.
        """
        own, explored = self.folder.glob(f"{self.name}.*{CASES}"), (self.folder / self.name).glob(f"*{CASES}")
        return (*sorted(own), *sorted(explored))

    def __repr__(self) -> str:
        return f"{self.name}: {self.title}\n{self.purpose}"

    def _blocks(self) -> list[Block]:
        graph_view: Block = Line("This loadout cannot be cast. Find out why.")
        if self.graph is not None:
            graph_view = graph_block(self.graph, text=graph_text(self.graph))
        look = lines(f"· {line}" for line in self.look)
        command = Line(f"%materia gallery {self.name}")
        return [Line(self.purpose), graph_view, command, Heading("What to look at"), *look]

    def preview_html(self) -> Html:
        """Return the card as HTML, with its title, its purpose, a small picture and the command that opens it."""
        purpose, graph_view, command, *_ = self._blocks()
        picture = Html(fit_to_width(graph_view.as_html(), _WIDTH, _HEIGHT))
        return html_panel(self.title, html_join([purpose.as_html(), picture, command.as_html()]))


class Gallery(Displayable, Mapping[str, Card]):
    """All gallery cards by name, patterns first, displayed with small pictures.

    Args:
        cards: the cards, in display order.
    """

    def __init__(self, cards: Sequence[Card]) -> None:
        self._cards = {card.name: card for card in cards}
        self._by_code = {card.diagnosis.code: card for card in cards if card.diagnosis is not None}

    def __getitem__(self, name: str) -> Card:
        """Return the card with this name, or the mistake for which ``check`` reports this code, such as ``late-retry``.

        Raises:
            MateriaError: the card does not exist (``unknown_card``).
        """
        slug = str(name).strip().casefold().replace(" ", "-")
        card = self._cards.get(slug) or self._by_code.get(slug)
        if card is None:
            message = f"The gallery has no card {str(name)[:80]!r}."
            raise MateriaError(message, hint=did_you_mean(str(name), self._cards), kind="unknown_card")
        return card

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)

    def __contains__(self, name: object) -> bool:
        return name in self._cards

    def of(self, kind: CardKind) -> tuple[Card, ...]:
        """Return all cards of one kind: all patterns, or all mistakes."""
        return tuple(card for card in self._cards.values() if card.kind == kind)

    def __repr__(self) -> str:
        width = max(map(len, self._cards), default=0)
        lines = []
        for kind, title in _TITLES.items():
            lines += ["", title, *(f"  {card.name:<{width}}  {card.purpose}" for card in self.of(kind))]
        return "\n".join([*lines[1:], "", "write a card as a notebook with `%materia gallery NAME`"])

    def _mime_bundle(self) -> dict[str, Any]:
        parts = []
        for kind, title in _TITLES.items():
            cards = (f'<div style="flex:0 1 290px">{card.preview_html()}</div>' for card in self.of(kind))
            grid = f'<div style="display:flex;flex-wrap:wrap;gap:8px;align-items:stretch">{"".join(cards)}</div>'
            parts += [html_heading(title), Html(grid)]
        return mime_bundle(repr(self), html=html_join(parts))


_TITLES: Final[Mapping[CardKind, str]] = {
    "pattern": "Patterns",
    "mistake": "Common mistakes, each with the problem that `check` reports",
}


@cache
def gallery() -> Gallery:
    """Read the gallery from the files of the package."""
    files = ((kind, path) for kind, folder in _FOLDERS.items() for path in sorted((_FOLDER / folder).glob(f"*{_CARD}")))
    return Gallery([_card(kind, path) for kind, path in files])


def _card(kind: CardKind, path: Path) -> Card:
    fields = json.loads(read_package_text(path))
    name = path.name.removesuffix(_CARD)
    document = json.loads(read_package_text(path.with_name(f"{name}.json")))
    if (diagnosis := fields.pop("diagnosis", None)) is not None:
        diagnosis = Diagnosis(**diagnosis)
    look, fix = tuple(fields.pop("look")), tuple(fields.pop("fix", ()))
    return Card(name, kind, document=document, diagnosis=diagnosis, look=look, fix=fix, **fields)


_LINE: Final = 92  # Maximum length of a line of code in a notebook, in characters, so that it fits on small screens.


@dataclass(frozen=True, slots=True, repr=False)
class OpenedCard(Displayable):
    """A notebook that was created from a gallery card, displayed as a link.

    Attributes:
        card: the gallery card.
        path: the path of the notebook.
    """

    card: Card
    path: Path

    def __repr__(self) -> str:
        return f"{self.path.name} was written: {self.card.title}"

    def _blocks(self) -> list[Block]:
        return [FactTable([(self.card.title, Pointer(self.path.name, self.path.name))])]


def open_card(card: Card, folder: str | Path) -> OpenedCard:
    """Write a gallery card to the notebook ``NAME.ipynb`` in a directory.

    Raises:
        MateriaError: a file with this name already exists (``exists``), or the notebook cannot be written.
    """
    path = Path(folder) / f"{card.name}.ipynb"
    text = json.dumps(notebook_of(card), ensure_ascii=False, indent=1) + "\n"
    if os.path.lexists(path):
        message, hint = f"{path.name} already exists and is not overwritten.", "open it, or rename it and try again"
        raise MateriaError(message, where=str(path), hint=hint, kind="exists")
    with disk_errors(path, "write the notebook"):
        replace_file(path, text.encode())
    return OpenedCard(card, path)


def notebook_of(card: Card) -> dict[str, JSON]:
    """Return the notebook of a gallery card as JSON (nbformat 4.5), without outputs."""
    return notebook(_cells(card))


def notebook(cells: Iterable[dict[str, JSON]], metadata: JSON = None) -> dict[str, JSON]:
    """Return a notebook with the given cells as JSON (nbformat 4.5); by default it uses the Python 3 kernel."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    numbered_cells = [{"id": f"cell-{number:02}", "metadata": {}, **cell} for number, cell in enumerate(cells, start=1)]
    return {"cells": numbered_cells, "metadata": metadata or {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def format_json(value: JSON, indent: int = 0) -> str:
    """Format a value as JSON. An object or list that fits on one line is not split."""
    one_line_json = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(one_line_json) + indent <= _LINE:
        return one_line_json
    if isinstance(value, dict):
        opening, closing = "{}"
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {format_json(child, indent + 2)}" for key, child in value.items()
        ]
    else:
        opening, closing = "[]"
        parts = [format_json(child, indent + 2) for child in value]
    pad = "\n" + " " * indent
    return f"{opening}{','.join(f'{pad}  {part}' for part in parts)}{pad}{closing}"


_CODE_FENCE: Final = re.compile(r"^```python ?(\w*)\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_CELL_METADATA: Final[Mapping[str, JSON]] = {
    "exercise": {"tags": ["raises-exception"]},  # raises until it is solved; the tag lets the run of all cells continue
    "folded": {"jupyter": {"source_hidden": True}},
}
"""Metadata of notebook cells, by the word after the language of a code fence. Cells with the word ``castable`` are
omitted if the loadout cannot be cast."""


def _cells(card: Card) -> Iterator[dict[str, JSON]]:
    """Yield the notebook cells of a card from a Markdown template with fenced code and ``$name`` placeholders."""
    prose, *rest = _CODE_FENCE.split(read_package_text(_FOLDER / f"{card.kind}.md"))
    values, is_castable = _template_values(card), card.graph is not None
    yield markdown_cell(Template(prose.strip()).substitute(values))
    for mark, code, prose in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if is_castable or mark != "castable":
            metadata = {"metadata": _CELL_METADATA[mark]} if mark in _CELL_METADATA else {}
            source = Template(code).substitute(values)
            yield {"cell_type": "code", "execution_count": None, "outputs": [], "source": source, **metadata}
        if prose.strip():
            yield markdown_cell(Template(prose.strip()).substitute(values))


def _template_values(card: Card) -> dict[str, str]:
    values = {
        "title": card.title,
        "purpose": card.purpose,
        "name": card.name,
        "loadout": card.loadout,
        "define": _definition_source(card.loadout, card.loadout, card.document),
        "answers": pformat(dict(card.answers), width=_LINE, sort_dicts=False),
        "request": repr(card.request),
        "look": "\n".join(f"- {line}" for line in card.look),
    }
    if (diagnosis := card.diagnosis) is not None:
        parameters = ("socket",) if diagnosis.step is None else ("socket", "step")
        values |= {
            "asked": " and ".join(parameters),
            "dots": ", ".join(f"{parameter}=..." for parameter in parameters),
            "why": diagnosis.why,
            "code": diagnosis.code,
            "fixed": _definition_source(f"{card.loadout}-Fixed", card.loadout, card.fixed),
        }
    return values


def _definition_source(name: str, own: str, document: Mapping[str, Any]) -> str:
    body = {**document["loadouts"][own], "materia": document["materia"]}
    return f"%%materia define loadout {name}\n{format_json(body)}"


def markdown_cell(source: str) -> dict[str, JSON]:
    """Return a notebook Markdown cell."""
    return {"cell_type": "markdown", "source": source}
