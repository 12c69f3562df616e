"""What a person does in design mode: each message is one act on the design. No widgets here, and nothing is raised.

A message names the part that it is about, and brings what was typed whole, so that nothing typed for one part can
reach another, or arrive half. What is refused stays where it was typed, with the reason beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError, close_match, counted
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import Change, refused
from materia_nb.loadout.design.sockets import add_socket, clip_of, new_sockets, place_sockets
from materia_nb.loadout.facts import Object, as_object, is_number
from materia_nb.widgets.design_acts import Ways, set_field, text_in
from materia_nb.widgets.picks import members_of, owner_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench

_log = logging.getLogger("materia_nb.widgets")

COLUMN: Final = 220.0
ROW: Final = 110.0
"""How many pixels of the picture a column and a row of the loadout's layout are."""

_EXPLORED: Final = 8_000
"""After how many states the search for what can happen is cut off: a person waits for it."""
LIKELY: Final = 0.7
"""The chance of satisfied for which the chance of each end is told."""
_TYPED_MOST: Final = 2_000_000
_KINDS: Final = ("socket", "edge", "exit", "loop", "materia", "loadout")


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a person has to decide before it is done.

    Attributes:
        words: the question.
        choices: what stands on each button, and the message that it stands for.
    """

    words: str
    choices: tuple[tuple[str, Mapping[str, JSON]], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """What was typed into a field and not taken, and why."""

    typed: str
    why: str


class DesignSession(Ways):
    """A design, what of it is selected, and what was said last.

    Args:
        bench: where it is saved, and cast.
        design: what is edited.
    """

    def __init__(self, bench: Workbench, design: Design) -> None:
        super().__init__(design)
        self.bench = bench
        self.clip: Object | None = None
        self.note: tuple[str, str] = ("status", "")
        self.question: Question | None = None
        self.refused: dict[tuple[str, str, str], Refused] = {}
        self.explored: tuple[Change, Exploration] | None = None
        self.route: tuple[str, ...] = ()
        self.odds: dict[str, float] = {}
        self.cast_made: Callable[[Cast], object] | None = None
        self._acts: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
            name.removeprefix("_do_"): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of messages that it takes."""
        return tuple(self._acts)

    # -- what is said to it -----------------------------------------------------------

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for; what cannot be done is said in ``note``, and nothing has changed."""
        told, words = self.design.not_kept, None
        try:
            if kind not in ("answer", "pick"):
                self.question = None
            words = self._act(kind)(values)
        except MateriaError as error:
            self.note = "alert", str(error)
        except Exception as error:  # noqa: BLE001 - a message may hold anything
            _log.warning("the design could not do %r", shorten(str(kind), 60), exc_info=error)
            self.note = "alert", f"That could not be done: {type(error).__name__}."
        else:
            if words is not None or self.note[0] == "alert":
                self.note = "status", words or ""
        if self.design.not_kept not in ("", told):
            self.note = "alert", f"{words or 'done'}; {self.design.not_kept}: save it to be sure of it"
        self._tidy()

    def _act(self, kind: object) -> Callable[[Mapping[str, Any]], str | None]:
        act = self._acts.get(str(kind))
        if act is None:
            what = f"{shorten(str(kind), 60)!r} is nothing that can be done here"
            raise refused(what, "design", "reload the page")
        return act

    def _tidy(self) -> None:
        """Forget what is not there any more."""
        known = as_object(self.design.document.get("sockets"))
        self.marked = [one for one in self.marked if one in known]
        if self.selected is not None and not self.knows(self.selected):
            self.selected = None
        self.refused = {key: one for key, one in self.refused.items() if self._knows_owner(key[0], key[1])}

    def _knows_owner(self, kind: str, key: str) -> bool:
        if kind == "materia":
            return key in self.design.definitions
        return kind == "loadout" or (kind in _KINDS and self.knows((kind, key)))  # type: ignore[arg-type]

    # -- sockets and edges --------------------------------------------------------------

    def _do_add(self, values: Mapping[str, Any]) -> str | None:
        materia = text_in(values, "materia").strip()
        if materia not in self.design.definitions:
            self.ask_to_make(materia, {"kind": "add", **values})
            return None
        before = self.design.document
        change = add_socket(before, materia)
        [new] = new_sockets(before, change.document)
        spot = _spot(values.get("x"), values.get("y"))
        if spot is not None:
            change = replace(change, document=place_sockets(change.document, {new: spot}).document)
        self.selected, self.marked = ("socket", new), []
        return self.design.apply(change)

    _do_drop = _do_add

    def ask_to_make(self, name: str, again: Mapping[str, Any]) -> None:
        """Ask what is meant by a materia that is not there; ``again`` is the message that named it."""
        if not name:
            raise refused("no materia is named", "add", "click one in the palette, or type its name")
        near = close_match(name, self.design.materia)
        choices: list[tuple[str, Mapping[str, JSON]]] = []
        if near is not None:
            choices.append((f"Take {near}", {**again, "materia": near, "value": near}))
        choices += [
            (
                f"Make the {what} {shorten(name, 40)}",
                {"kind": "make", "what": what, "id": name, "then": dict(again)},
            )
            for what in ("agent", "utility")
        ]
        self.question = Question(f"There is no materia {shorten(name, 60)!r}.", tuple(choices))

    def _do_make(self, values: Mapping[str, Any]) -> str | None:
        id_ = text_in(values, "id").strip()
        words = self.design.make_materia(id_, text_in(values, "what"))
        then = values.get("then")
        if isinstance(then, Mapping) and then.get("kind") in ("add", "drop", "set"):
            more = self._acts[str(then["kind"])]({**then, "materia": id_, "value": id_})
            return f"{words}; {more}" if more else words
        return words

    def _do_move(self, values: Mapping[str, Any]) -> str | None:
        given = values.get("places")
        places = (
            given if isinstance(given, Mapping) else {values.get("id"): [values.get("x"), values.get("y")]}
        )
        spots = {}
        for id_, place in places.items():
            spot = _spot(*place) if isinstance(place, list | tuple) and len(place) == 2 else None
            if spot is None or not isinstance(id_, str):
                raise refused("a place is two numbers", "layout", "drag it once more")
            spots[id_] = spot
        return self.design.place_sockets(spots)

    def _do_entry(self, values: Mapping[str, Any]) -> str:
        return self.design.set_entry(text_in(values, "id"))

    def _do_delete(self, values: Mapping[str, Any]) -> str:
        what = values.get("what", values.get("of"))
        if what is None and self.marked:
            marked, self.marked = list(self.marked), []
            return self.design.remove_sockets(marked)
        pick = self.pick(what) if what is not None else self.selected
        if pick is None:
            raise refused("nothing is selected", "design", "click what is to go")
        kind, (owner, place) = pick[0], owner_of(pick)
        if kind == "socket":
            return self.design.remove_socket(owner)
        if kind == "loop":
            return self.design.delete_loop(owner)
        self.selected = ("socket" if kind == "edge" else "loop", owner)
        if place is None:
            return self.design.set_loop(owner, "exit", None)
        remove = self.design.remove_edge if kind == "edge" else self.design.remove_exit
        return remove(owner, place)

    # -- fields -------------------------------------------------------------------------

    def _do_set(self, values: Mapping[str, Any]) -> str | None:
        """Take the value of one field, whole, for the part that it was typed at."""
        of = values.get("of")
        kind, key = (str(of[0]), str(of[1])) if isinstance(of, list) and len(of) == 2 else ("", "")
        field, typed = text_in(values, "field"), values.get("value")
        if isinstance(typed, str) and len(typed) > _TYPED_MOST:
            raise refused(
                "this is more than a field can hold", field, f"write at most {_TYPED_MOST:,} characters"
            )
        place = (kind, key, field)
        self.refused.pop(place, None)
        try:
            return set_field(self, kind, key, field, typed)
        except MateriaError as error:
            if isinstance(typed, str) and self._knows_owner(kind, key):
                self.refused[place] = Refused(
                    typed, f"{error.what}; {error.hint}" if error.hint else error.what
                )
            raise

    def _do_forget(self, values: Mapping[str, Any]) -> None:
        """Let go of what was typed and refused."""
        of, field = values.get("of"), values.get("field")
        if isinstance(of, list) and len(of) == 2:
            self.refused.pop((str(of[0]), str(of[1]), str(field)), None)

    # -- steps and copies ---------------------------------------------------------------

    def _do_undo(self, _: Mapping[str, Any]) -> str:
        return f"undone: {self.design.undo()}"

    def _do_redo(self, _: Mapping[str, Any]) -> str:
        return f"done again: {self.design.redo()}"

    def _chosen(self) -> list[str]:
        if self.marked:
            return list(self.marked)
        if self.selected is not None and self.selected[0] == "socket":
            return [self.selected[1]]
        if self.selected is not None and self.selected[0] == "loop":
            return members_of(self.design.document, self.selected[1])
        raise refused("no socket is selected", "design", "select one, or draw a frame round some")

    def _do_copy(self, _: Mapping[str, Any]) -> str:
        ids = self._chosen()
        self.clip = clip_of(self.design.document, ids)
        return f"copied {', '.join(ids)}"

    def _do_cut(self, values: Mapping[str, Any]) -> str:
        ids = self._chosen()
        self._do_copy(values)
        self.marked = []
        return self.design.remove_sockets(ids)

    def _do_paste(self, _: Mapping[str, Any]) -> str:
        if self.clip is None:
            raise refused("nothing was copied yet", "paste", "select a socket and copy it")
        return self._pasted(self.clip)

    def _do_duplicate(self, _: Mapping[str, Any]) -> str:
        return self._pasted(clip_of(self.design.document, self._chosen()))

    def _pasted(self, clip: Object) -> str:
        before = self.design.document
        words = self.design.paste(clip)
        made = new_sockets(before, self.design.document)
        self.marked = made if len(made) > 1 else []
        self.selected = ("socket", made[0]) if len(made) == 1 else None
        return words

    # -- what follows from it -------------------------------------------------------------

    def _do_mend(self, values: Mapping[str, Any]) -> str:
        code, source = values.get("code"), values.get("source")
        for one in (*self.design.report.problems, *self.design.report.hints):
            if (one.code, one.source) == (code, source):
                return self.design.mend(one)
        raise refused("this is not there any more", "problems", "look at the list once more")

    def _do_explore(self, _: Mapping[str, Any]) -> str:
        report = self.design.report
        if not report.ok:
            verb = "stands" if len(report.problems) == 1 else "stand"
            raise refused(
                f"{counted(len(report.problems), 'problem')} {verb} in the way",
                "what can happen",
                "mend them first",
            )
        self.explored = self.design.now, Exploration(self.design.graph(), range(4), _EXPLORED)
        self.route, self.odds = (), {}
        with suppress(
            MateriaError
        ):  # no mean, too much to solve, or not all was looked at: then it is left out
            self.odds = dict(self.explored[1].odds(LIKELY, 3).ends)
        return f"looked at {self.explored[1].states:,} states"

    def _do_witness(self, values: Mapping[str, Any]) -> str:
        if self.explored is None:
            raise refused("nothing was explored yet", "what can happen", "press Explore")
        witness = self.explored[1].witness(text_in(values, "what"))
        self.route = witness.route
        return f"shortest way: {' → '.join((*witness.route, witness.end or 'no end'))}"

    def _do_save(self, values: Mapping[str, Any]) -> str | None:
        to = values.get("to")
        where: str | None = "" if to is None else str(to).strip()
        if where in ("", str(self.design.home)):
            where = None
        elif where == "this notebook":
            where = "notebook"
        try:
            return self.bench.save_design(self.design, where, anyway=values.get("anyway") is True)
        except MateriaError as error:
            if "save anyway" not in (error.hint or "") and "save it anyway" not in (error.hint or ""):
                raise
            words = f"{error.what} {error.hint}"
            self.question = Question(words, (("Save anyway", {"kind": "save", "to": to, "anyway": True}),))
            return None

    def offer_draft(self) -> None:
        """Ask whether to go on with what was designed before and not saved, where there is such a draft."""
        drafts = self.bench.drafts(self.design.name)
        found = next((one for one in drafts if one.is_news(self.design)), None)
        if found is None:
            return
        name = found.path.name
        self.question = Question(
            f"There is {found}, which was not saved.",
            (
                ("Go on with it", {"kind": "draft", "file": name}),
                ("Throw it away", {"kind": "draft", "file": name, "discard": True}),
            ),
        )

    def _do_draft(self, values: Mapping[str, Any]) -> str:
        named = values.get("file")
        found = next((one for one in self.bench.drafts(self.design.name) if one.path.name == named), None)
        if found is None:
            raise refused("this draft is not there any more", "draft", "open the design once more")
        if values.get("discard") is not True:
            return found.take_into(self.design)
        found.discard()
        self.offer_draft()
        return f"threw {found} away"

    def _do_reload(self, _: Mapping[str, Any]) -> str:
        return self.design.reload(self.bench.design(self.design.name))

    def _do_cast(self, values: Mapping[str, Any]) -> str:
        cast = self.bench.cast(text_in(values, "request"), loadout=self.design)
        if self.cast_made is not None:
            self.cast_made(cast)
        return f"cast {cast.id} has begun"

    def _do_answer(self, values: Mapping[str, Any]) -> str | None:
        number, question = values.get("number"), self.question
        self.question = None
        if question is None or not isinstance(number, int) or not 0 <= number < len(question.choices):
            return ""
        message = question.choices[number][1]
        return self._acts[str(message["kind"])](message)


def _spot(x: JSON, y: JSON) -> tuple[float, float] | None:
    """Read a place in the picture as column and row of the layout."""
    if not (is_number(x) and is_number(y)) or max(abs(x), abs(y)) > 1e6:
        return None
    return _even(x / COLUMN), _even(y / ROW)


def _even(value: float) -> float:
    made = round(value, 2)
    return int(made) if made == int(made) else made


def spots_in(document: Object) -> dict[str, tuple[float, float]]:
    """Return column and row of each socket that has a place in the layout of a loadout."""
    layout = as_object(as_object(document.get("layout")).get("sockets"))
    found = {id_: as_object(spot) for id_, spot in layout.items()}
    return {
        id_: (spot["x"], spot["y"])
        for id_, spot in found.items()
        if is_number(spot.get("x")) and is_number(spot.get("y"))
    }
