"""A design while a person works on it in a surface: what is selected, what was refused, what is asked. No widgets here.

A message names the part that it is about, and brings what was typed whole, so that nothing typed for one part can
reach another, or arrive half. What is refused stays where it was typed, with the reason beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.escape import shorten
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.insight.explore import Exploration
from materia_nb.loadout.design import Change, Design
from materia_nb.loadout.design.document import refused
from materia_nb.loadout.facts import Facts, Object, as_object, is_number
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.design_acts import DesignQuestion, RefusedField, act_on
from materia_nb.widgets.picks import Pick, drawn_parts, parts

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench

_log = logging.getLogger("materia_nb.widgets")
_KINDS: Final = ("socket", "edge", "exit", "loop", "materia", "loadout")


class DesignSession:
    """A design, what of it is selected, and what was said last.

    Args:
        bench: where it is saved, and cast.
        design: what is edited.
    """

    def __init__(self, bench: Workbench, design: Design) -> None:
        self.bench = bench
        self.design = design
        self.selected: Pick | None = None
        self.marked: list[str] = []
        self.clip: Object | None = None
        self.note: tuple[str, str] = ("status", "")
        self.question: DesignQuestion | None = None
        self.refused: dict[tuple[str, str, str], RefusedField] = {}
        self.explored: tuple[Change, Exploration] | None = None
        self.route: tuple[str, ...] = ()
        self.odds: dict[str, float] = {}
        self.cast_made: Callable[[Cast], object] | None = None
        self._parts: tuple[Change, Object, list[tuple[str, Pick]]] | None = None
        self._rules: tuple[Graph, Rules] | None = None

    # -- what there is ------------------------------------------------------------------

    @property
    def parts(self) -> list[tuple[str, Pick]]:
        """Every part of the design under a name of its own."""
        now, config = self.design.now, self.design.config
        if self._parts is None or self._parts[0] is not now or self._parts[1] is not config:
            self._parts = now, config, parts(self.design.document, self.design.graph())
        return self._parts[2]

    @property
    def rules(self) -> Rules:
        """What a cast of the design would run by; only while nothing stops a cast."""
        graph = self.design.graph()
        if self._rules is None or self._rules[0] is not graph:
            self._rules = graph, Rules(graph)
        return self._rules[1]

    @property
    def facts(self) -> Facts:
        """The design with its materia, as far as it is well formed."""
        return Facts(self.design.name, self.design.document, self.design.definitions)

    def pick(self, what: object) -> Pick | None:
        """Read a part as the page names it: one of its own, or of the picture; raises MateriaError when it is not there."""
        kind, key = what if isinstance(what, list | tuple) and len(what) == 2 else (None, None)
        if kind is None:
            return None
        pick: Any = (kind, key)
        if isinstance(kind, str) and isinstance(key, str):
            pick = drawn_parts(self.design.document, self.design.graph()).get(pick, pick)
            if self.knows(*pick):
                return pick  # type: ignore[no-any-return]
        what = f"there is no {shorten(str(kind), 20)} {shorten(str(key), 60)!r}"
        raise refused(what, "design", "it may have been removed")

    def knows(self, kind: str, key: str) -> bool:
        """Whether the design has this part."""
        return any((kind, key) == known for _, known in self.parts)

    def has_fields(self, kind: str, key: str) -> bool:
        """Whether something with a form is still there: a part, a materia, or the loadout."""
        if kind == "materia":
            return key in self.design.definitions
        return kind == "loadout" or (kind in _KINDS and self.knows(kind, key))

    # -- what is said to it -----------------------------------------------------------

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for; what cannot be done is said in ``note``, and nothing has changed."""
        not_kept, words = self.design.not_kept, None
        try:
            if kind not in ("answer", "pick"):
                self.question = None
            words = act_on(self, kind, values)
        except MateriaError as error:
            self.note = "alert", str(error)
        except Exception as error:  # noqa: BLE001 - a message may hold anything
            _log.warning("the design could not do %r", shorten(str(kind), 60), exc_info=error)
            self.note = "alert", f"That could not be done: {type(error).__name__}."
        else:
            if words is not None or self.note[0] == "alert":
                self.note = "status", words or ""
        if self.design.not_kept not in ("", not_kept):
            self.note = "alert", f"{words or 'done'}; {self.design.not_kept}: save it to be sure of it"
        self._tidy()

    def _tidy(self) -> None:
        """Forget what is not there any more."""
        known = as_object(self.design.document.get("sockets"))
        self.marked = [one for one in self.marked if one in known]
        if self.selected is not None and not self.knows(*self.selected):
            self.selected = None
        self.refused = {key: one for key, one in self.refused.items() if self.has_fields(key[0], key[1])}

    def offer_draft(self) -> None:
        """Ask whether to go on with what was designed before and not saved, where there is such a draft."""
        drafts = self.bench.loadouts.drafts(self.design.name)
        draft = next((one for one in drafts if one.is_news(self.design)), None)
        if draft is not None:
            take = {"kind": "draft", "file": draft.path.name}
            choices = ("Go on with it", take), ("Throw it away", {**take, "discard": True})
            self.question = DesignQuestion(f"There is {draft}, which was not saved.", choices)


def spots_in(document: Object) -> dict[str, tuple[float, float]]:
    """Return column and row of each socket that has a place in the layout of a loadout."""
    layout = as_object(as_object(document.get("layout")).get("sockets"))
    return {
        id_: (spot["x"], spot["y"])
        for id_, raw in layout.items()
        if is_number((spot := as_object(raw)).get("x")) and is_number(spot.get("y"))
    }
