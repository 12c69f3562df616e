"""The state of a design on a surface: selection, marks, refused values, the open question, and the exploration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.agents_api import in_their_form
from materia_nb.display.escape import shorten
from materia_nb.insight.estimate import Prompts
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON, Object, as_object, is_number
from materia_nb.loadout.design import Design, DesignChange
from materia_nb.loadout.design.document import design_error
from materia_nb.loadout.graph import Graph, PromptForm
from materia_nb.loadout.topology import LoadoutFacts, parse_loadout
from materia_nb.widgets.messages import MessageRegistry
from materia_nb.widgets.selection import Selection, drawn_parts, parts
from materia_nb.widgets.work_items import json_digest

if TYPE_CHECKING:
    from pathlib import Path

    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench

REQUEST: Final = "[the request]"
ITEMS: Final = tuple(
    {"title": f"[title of item {number}]", "context": f"[what to do with item {number}]"}
    for number in range(1, 6)
)
"""Work items of the example prompts, before a cast."""
LIKELY: Final = 0.5
"""Chance of satisfied for which the chance of each end is shown."""
_MOST_STEPS: Final = 200
_KINDS: Final = ("socket", "edge", "exit", "loop", "materia", "loadout")


design_messages: Final = MessageRegistry("ToDesign", "Messages to the designer of a loadout.")


@dataclass(frozen=True, slots=True)
class DesignQuestion:
    """Something that a person has to decide before it is done.

    Attributes:
        words: the question.
        choices: what stands on each button, and the message that it stands for.
        number: its identity in this kernel, which an answer brings back.
    """

    words: str
    choices: tuple[tuple[str, Mapping[str, JSON]], ...]
    number: int = field(default_factory=itertools.count(1).__next__, compare=False)


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A typed value that was refused, and the reason."""

    typed: str
    why: str


class DesignState:
    """A design with its selection and its last message.

    Args:
        bench: where it is saved, and cast.
        design: what is edited.
    """

    def __init__(self, bench: Workbench, design: Design) -> None:
        self.bench = bench
        self.design = design
        self.selected: Selection | None = None
        self.marked: list[str] = []
        self.clip: Object | None = None
        self.note: tuple[str, str] = ("status", "")
        self.question: DesignQuestion | None = None
        self.refused: dict[tuple[str, str, str], RefusedField] = {}
        self.explored: tuple[DesignChange, Exploration] | None = None
        self.route: tuple[str, ...] = ()
        self.odds: dict[str, float] = {}
        self.estimated: tuple[DesignChange, str] | None = None
        self.proposed: DesignChange | None = None
        self._offered: set[tuple[Path, int]] = set()
        self.cast_made: Callable[[Cast], object] | None = None
        self.casts_started = 0
        self._identity: tuple[DesignChange, Object, str] | None = None
        self._parts: tuple[DesignChange, Object, list[tuple[str, Selection]]] | None = None
        self._prompts: tuple[Graph, list[PromptForm | None], tuple[Prompts, Prompts]] | None = None

    # -- what there is ------------------------------------------------------------------

    @property
    def parts(self) -> list[tuple[str, Selection]]:
        """Every part of the design under a name of its own."""
        now, config = self.design.now, self.design.config
        if self._parts is None or self._parts[0] is not now or self._parts[1] is not config:
            self._parts = now, config, parts(self.design.document, self.design.graph())
        return self._parts[2]

    @property
    def identity(self) -> str:
        """Identity of the design as it is shown, which the start of a cast names (R69); another one after each cast."""
        now, config = self.design.now, self.design.config
        if self._identity is None or self._identity[0] is not now or self._identity[1] is not config:
            digest = json_digest([self.design.name, self.design.document, dict(self.design.definitions)])
            self._identity = now, config, digest
        return f"{self._identity[2]}.{self.casts_started}"

    @property
    def prompts(self) -> tuple[Prompts, Prompts]:
        """Prompts of a cast in which every answer is satisfied, and of one in which work is sent back once.

        Raises:
            MateriaError: a socket takes no scripted answer (``no_answer``).
        """
        graph = self.design.graph()
        written = in_their_form(graph, self.bench.agents.table(graph))
        forms = [socket.prompt_form for socket in written.sockets.values()]
        if self._prompts is None or self._prompts[0] is not graph or self._prompts[1] != forms:
            plain, back = (
                Prompts(written, REQUEST, ITEMS, rework=rework, max_visits=_MOST_STEPS)
                for rework in (False, True)
            )
            self._prompts = graph, forms, (plain, back)
        return self._prompts[2]

    @property
    def facts(self) -> LoadoutFacts:
        """The design with its materia, as far as it is well formed."""
        return parse_loadout(self.design.name, self.design.document, self.design.definitions)

    def part_named(self, name: object) -> Selection | None:
        """Return the part that the page names by kind and key: a part of the design, or an element of the picture.

        None if no part is named.

        Raises:
            MateriaError: there is no such part.
        """
        kind, key = name if isinstance(name, list | tuple) and len(name) == 2 else (None, None)
        if kind is None:
            return None
        part: Any = (kind, key)
        if isinstance(kind, str) and isinstance(key, str):
            part = drawn_parts(self.design.document, self.design.graph()).get(part, part)
            if self.has_part(*part):
                return part  # type: ignore[no-any-return]
        problem = f"there is no {shorten(str(kind), 20)} {shorten(str(key), 60)!r}"
        raise design_error(problem, "design", "it may have been removed")

    def require_part(self, name: object) -> Selection:
        """Like :meth:`part_named`, but also raise MateriaError when no part is named."""
        selection = self.part_named(name)
        if selection is None:
            raise design_error("the message names no part", "design", "reload the page")
        return selection

    def has_part(self, kind: str, key: str) -> bool:
        """Return True if the design has this part."""
        return any((kind, key) == known for _, known in self.parts)

    def has_fields(self, kind: str, key: str) -> bool:
        """Return True if the owner of a form still exists: a part, a materia, or the loadout."""
        if kind == "materia":
            return key in self.design.definitions
        return kind == "loadout" or (kind in _KINDS and self.has_part(kind, key))

    @property
    def reviewing(self) -> bool:
        """True while a person reviews the steps of a draft."""
        return self.question is not None and self.question.choices[0][1]["kind"] == "judge"

    def offer_draft(self, *, handed_over: bool = False) -> None:
        """Ask whether to continue an unsaved draft, if there is one.

        Args:
            handed_over: only one of an agent that was not offered here before; a question that is open stays.
        """
        drafts = self.bench.loadouts.drafts(self.design.name)
        if handed_over:
            drafts = tuple(
                draft_ for draft_ in drafts if draft_.by and (draft_.path, draft_.at) not in self._offered
            )
        draft = next((draft_ for draft_ in drafts if draft_.has_changes(self.design)), None)
        if draft is not None and not (handed_over and self.question is not None):
            self._offered.add((draft.path, draft.at))
            take: dict[str, JSON] = {"kind": "draft", "file": draft.path.name}
            choices: list[tuple[str, Mapping[str, JSON]]] = [("Go on with it", take)]
            if draft.by:
                choices.insert(0, ("Look at each step", {**take, "kind": "review"}))
            choices.append(("Throw it away", {**take, "discard": True}))
            self.question = DesignQuestion(f"There is {draft}, which was not saved.", tuple(choices))


def written_positions(document: Object) -> dict[str, tuple[float, float]]:
    """Return column and row of each socket that has a place in the layout of a loadout."""
    layout = as_object(as_object(document.get("layout")).get("sockets"))
    return {
        id_: (spot["x"], spot["y"])
        for id_, raw in layout.items()
        if is_number((spot := as_object(raw)).get("x")) and is_number(spot.get("y"))
    }
