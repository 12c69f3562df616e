"""What the page is told of a design, as plain values: bar, palette, inspector, and the dock with what is wrong.

Every function is pure. Texts are those of the loadout, unescaped: the page writes them as text, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.escape import part, shorten
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design import Design
from materia_nb.loadout.facts import (
    Object,
    as_object,
    is_text,
    materia_group,
    materia_kind,
)
from materia_nb.loadout.vocabulary import tint_of
from materia_nb.widgets.design_findings import dock_slice
from materia_nb.widgets.design_inspector import inspector_slice, purpose
from materia_nb.widgets.design_parts import drawn_parts

if TYPE_CHECKING:
    from materia_nb.widgets.design_session import DesignSession
    from materia_nb.widgets.picks import Pick

_MOST_WORDS: Final = 200
_UNGROUPED: Final = "agents"
_LAST: Final = "utilities"
Slice = dict[str, Any]


def design_slice(session: DesignSession) -> Slice:
    """Return the whole slice ``design``."""
    picked = drawn_pick(session)
    made: Slice = sendable(
        {
            "bar": bar_slice(session),
            "palette": palette_slice(session.design),
            "inspector": inspector_slice(session),
            "dock": dock_slice(session),
            "selected": None if picked is None else {"kind": picked[0], "id": picked[1]},
            "marked": list(session.marked),
            "parts": [
                {"words": words.replace("\N{NO-BREAK SPACE}", " ").strip(), "what": list(pick)}
                for words, pick in session.parts
            ],
        }
    )
    return made


def sendable(value: JSON) -> Any:
    """Return a value that can be sent: halves of surrogate pairs, which no message can hold, become signs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, dict):
        return {sendable(key): sendable(one) for key, one in value.items()}
    return [sendable(one) for one in value] if isinstance(value, list | tuple) else value


def drawn_pick(session: DesignSession) -> Pick | None:
    """Return what is selected, as the picture names it; None for nothing."""
    if session.selected is None:
        return None
    drawn = drawn_parts(session.design.document, session.design.graph())
    return next((one for one, mine in drawn.items() if mine == session.selected), None)


# -- bar and palette ----------------------------------------------------------------------


def bar_slice(session: DesignSession) -> Slice:
    """Return name, counts, what undo and redo would do, where it is saved, and what was said last."""
    design, (sign, words) = session.design, session.note
    question = session.question
    return {
        "name": part(design.name),
        "changed": design.changed,
        "steps": len(design.steps),
        "problems": len(design.report.problems),
        "hints": len(design.report.hints),
        "undo": shorten(design.steps[-1], _MOST_WORDS) if design.steps else None,
        "redo": shorten(design.undone[0], _MOST_WORDS) if design.undone else None,
        "home": str(design.home),
        "where": "this notebook" if design.home.path is None else design.home.path.name,
        "why": design.home.why,
        "note": {"sign": sign, "words": shorten(words, 2_000)},
        "question": None
        if question is None
        else {"words": question.words, "choices": [shorten(one, 80) for one, _ in question.choices]},
        "canPaste": session.clip is not None,
    }


def palette_slice(design: Design) -> Slice:
    """Return every materia under the heading of its group: agents without one first, utilities last."""
    used: dict[str, int] = {}
    for raw in as_object(design.document.get("sockets")).values():
        named = as_object(raw).get("materia")
        if isinstance(named, str):
            used[named] = used.get(named, 0) + 1
    groups: dict[str, list[Slice]] = {}
    for id_, raw in design.definitions.items():
        found = as_object(raw)
        group = materia_group(found)
        title = _UNGROUPED if not group else _LAST if group == "Utility" else group
        groups.setdefault(title, []).append(_entry(id_, found, used.get(id_, 0)))
    order = sorted(groups, key=lambda one: (one == _LAST, one != _UNGROUPED, one.casefold()))
    return {"groups": [{"title": shorten(title, 60), "entries": groups[title]} for title in order]}


def _entry(id_: str, raw: Object, placed: int) -> Slice:
    tint = tint_of(raw.get("color"))
    label = raw.get("label")
    return {
        "id": id_,
        "label": part(label if is_text(label) else id_, 60),
        "kind": materia_kind(raw),
        "generator": raw.get("generator") is True,
        "colour": None if tint is None else tint.fill,
        "about": purpose(raw),
        "placed": placed,
    }
