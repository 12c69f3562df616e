"""The content of the bar, palette and dock in design mode, as JSON. The inspector's content is in ``design_state.py``.

Every function is pure. Strings from the loadout are not escaped, because the page inserts them as text, never as
markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from materia_nb.display.blocks import without_surrogates
from materia_nb.display.escape import part, shorten
from materia_nb.errors import counted
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON, Object, as_object, compact, pointer_keys, text_or
from materia_nb.loadout.design import Design
from materia_nb.loadout.graph import with_names
from materia_nb.loadout.report import Problem
from materia_nb.loadout.topology import materia_group, materia_kind
from materia_nb.loadout.vocabulary import condition_spec, tint_of
from materia_nb.widgets.design_state import DesignSlice, DesignState, inspector_slice, materia_purpose
from materia_nb.widgets.selection import Kind, Selection, drawn_parts, edge_selection, owner_of

_MAX_STEP_CHARS: Final = 200
_UNGROUPED: Final = "agents"
_LAST_GROUP: Final = "utilities"


def design_slice(session: DesignState) -> DesignSlice:
    """Return the slice ``design``, which contains everything that the page needs for design mode."""
    picked_part = drawn_selection(session)
    content: DesignSlice = without_surrogates(
        {
            "bar": _bar_slice(session),
            "palette": _palette_slice(session.design),
            "inspector": inspector_slice(session),
            "dock": dock_slice(session),
            "selected": None if picked_part is None else {"kind": picked_part[0], "id": picked_part[1]},
            "marked": list(session.marked),
            "parts": [
                {"words": title.replace("\N{NO-BREAK SPACE}", " ").strip(), "what": list(pick)}
                for title, pick in session.parts
            ],
        }
    )
    return content


def drawn_selection(session: DesignState) -> Selection | None:
    """Return the graph element that shows the selected part, or None if nothing is selected."""
    if session.selected is None:
        return None
    drawn = drawn_parts(session.design.document, session.design.graph())
    return next((drawn_part for drawn_part, design_part in drawn.items() if design_part == session.selected), None)


# -- bar and palette ----------------------------------------------------------------------


def _bar_slice(session: DesignState) -> DesignSlice:
    """Return the content of the bar: the name, the counts, undo and redo, the file, and the last message."""
    design, (sign, note) = session.design, session.note
    question, (done, undone) = session.question, design.named_steps(1)
    return {
        "name": part(design.name),
        "identity": session.identity,
        "changed": design.changed,
        "fresh": not design.saved_change.document,
        "steps": len(design.steps),
        "problems": len(design.report.problems),
        "hints": len(design.report.hints),
        "undo": shorten(done[0], _MAX_STEP_CHARS) if done else None,
        "redo": shorten(undone[0], _MAX_STEP_CHARS) if undone else None,
        "home": str(design.home),
        "where": "this notebook" if design.home.path is None else design.home.path.name,
        "why": design.home.reason,
        "note": {"sign": sign, "words": shorten(note, 2_000)},
        "question": question
        and {
            "number": question.number,
            "words": with_names(question.text, session.names),
            "choices": [shorten(choice, 80) for choice, _ in question.choices],
        },
        "estimate": session.estimated[1] if session.estimated and session.estimated[0] is design.current_change else "",
        "left": _unsaved_changes_text(design),
    }


def _unsaved_changes_text(design: Design) -> str:
    """Return a sentence about the changes that can be recovered if the kernel dies."""
    if not design.changed:
        return "all changes are saved."
    if design.draft_error:
        return f"the file has the last saved version; {design.draft_error}."
    return (
        f"the new panel offers the draft of {part(design.name)}, with all {counted(len(design.unsaved_steps), 'step')}."
    )


def _palette_slice(design: Design) -> DesignSlice:
    """Return all materia by group. Ungrouped agents come first, and utilities come last."""
    used = Counter(str(as_object(raw).get("materia")) for raw in as_object(design.document.get("sockets")).values())
    groups: dict[str, list[DesignSlice]] = {}
    for id_, raw in design.definitions.items():
        definition = as_object(raw)
        group = materia_group(definition)
        title = _UNGROUPED if not group else _LAST_GROUP if group == "Utility" else group
        groups.setdefault(title, []).append(_palette_entry(id_, definition, used[id_]))
    order = sorted(groups, key=lambda title: (title == _LAST_GROUP, title != _UNGROUPED, title.casefold()))
    return {"groups": [{"title": shorten(title, 60), "entries": groups[title]} for title in order]}


def _palette_entry(id_: str, raw: Object, placed: int) -> DesignSlice:
    tint = tint_of(raw.get("color"))
    return {
        "id": id_,
        "label": part(text_or(raw.get("label"), id_), 60),
        "kind": materia_kind(raw),
        "generator": raw.get("generator") is True,
        "colour": None if tint is None else tint.fill,
        "about": materia_purpose(raw),
        "placed": placed,
    }


# -- the dock: findings, possible outcomes and changes ------------------------------------------

_MAX_FINDINGS: Final = 60
_MAX_TESTED_FIXES: Final = 20
"""Maximum number of findings for which an automatic fix is tried; each try validates the whole loadout."""
_MAX_CHANGES: Final = 60
_EMPTY_DESIGN_HINT: Final = "click a materia in the palette"
_OWNERS: Final[tuple[tuple[Kind, Kind, str, str], ...]] = (
    ("loop", "exit", "loops.", "exits"),
    ("socket", "edge", "", "edges"),
)  # For each kind of owner: the kind of its edges or exits, its path prefix, and its field of edges or exits.


def dock_slice(session: DesignState) -> DesignSlice:
    """Return the content of the dock: problems, possible outcomes and changes."""
    return {
        "problems": findings(session.design, {pick for _, pick in session.parts}),
        "happens": possible_outcomes(session),
        "changes": _changes_slice(session),
    }


def findings(design: Design, known: set[Selection]) -> list[DesignSlice]:
    """Return every problem and hint with its location and the label of the button that fixes it, if any."""
    problems_and_hints, names = [*design.report.problems, *design.report.hints], design.graph().names
    placed = as_object(design.document.get("sockets"))
    rows = []
    for index, problem in enumerate(problems_and_hints[:_MAX_FINDINGS]):
        fix = design.fix_of(problem) if index < _MAX_TESTED_FIXES else None
        pick, is_empty = part_of_problem(design, problem, known), problem.source == "sockets" and not placed
        rows.append(
            {
                "severity": problem.severity,
                "code": problem.code,
                "source": problem.source,
                "where": _location_text(problem, pick, names),
                "what": part(with_names(problem.message, names), 400),
                "todo": part(with_names(_EMPTY_DESIGN_HINT if is_empty else problem.hint, names), 400),
                "fix": None if fix is None else shorten(with_names(fix.label, names), 60),
                "pick": None if pick is None else list(pick),
            }
        )
    return rows


def part_of_problem(design: Design, problem: Problem, known: set[Selection]) -> Selection | None:
    """Return the part of the design that a finding concerns, or None if the finding concerns the whole design."""
    source = problem.source.removeprefix("sockets.")
    if source.startswith("materia."):
        sockets = as_object(design.document.get("sockets"))
        materia = {id_: str(as_object(raw).get("materia")) for id_, raw in sockets.items()}
        ids = [id_ for id_, name in materia.items() if source.startswith(f"materia.{name}")]
        return ("socket", max(ids, key=lambda id_: len(materia[id_]))) if ids else None
    for kind, edge_kind, prefix, name in _OWNERS:
        for id_ in sorted(as_object(design.document.get(f"{kind}s")), key=len, reverse=True):
            rest = source.removeprefix(f"{prefix}{id_}")
            if rest == source or rest[:1] not in ("", ".", "["):
                continue
            index = re.match(rf"\.{name}\[(\d{{1,5}})\]", rest, re.ASCII)
            pick = (kind, id_) if index is None else edge_selection(edge_kind, id_, int(index[1]))
            return pick if pick in known else (kind, id_)
    return None


def _location_text(problem: Problem, pick: Selection | None, names: Mapping[str, str]) -> str:
    """Describe the location of a finding: its socket or loop, with the edge or field, or else its path."""
    if pick is None:
        return part(problem.source, 80)
    kind, (owner, index) = pick[0], owner_of(pick)
    name = f"loop {part(owner, 60)}" if kind in ("loop", "exit") else part(names.get(owner, owner), 100)
    if index is not None:
        return f"{name}, {kind} {index + 1}"
    path = problem.source.removeprefix("sockets.").removeprefix("loops.").removeprefix(owner).lstrip(".")
    return f"{name}, {part(path, 60)}" if path and not problem.source.startswith("materia.") else name


def possible_outcomes(session: DesignState) -> DesignSlice | None:
    """Return the possible outcomes of a cast, or None before a search.

    ``stale`` is true if the design has changed since the search.
    """
    if session.explored is None:
        return None
    explored_change, explored = session.explored
    return {
        "stale": explored_change is not session.design.current_change,
        "states": explored.states,
        "whole": explored.complete_search,
        "notes": [with_names(note, explored.graph.names) for note in explored.notes],
        "rows": _outcome_rows(explored, session.odds) + _unreachable_rows(explored),
        "names": dict(explored.graph.names),
        "route": list(session.route),
        "proof": session.proof and list(session.proof),
    }


def _outcome_rows(explored: Exploration, odds: Mapping[str, float]) -> list[DesignSlice]:
    """Return one row for each possible outcome of a cast, with its probability if it is known."""
    rows = []
    ends, names = explored.ends_seen, explored.graph.names
    if "complete" not in ends:
        word = "cannot complete" if explored.complete_search else "no completing run found"
        rows.append(_row("fails", word, "no path leads to the end"))
    for end, sockets in ends.items():
        chance_text = f"; {odds[end]:.1%} for 3 items if half of the verdicts are satisfied" if end in odds else ""
        turns = len(explored.witness(end).route)
        if end == "complete":
            max_turns = explored.most_turns() if explored.complete_search else None
            turns_text = f", at most {max_turns} agent turns" if max_turns is not None else ", no limit on agent turns"
            about = f"shortest in {counted(turns, 'visit')}{turns_text}{chance_text}"
            rows.append(_row("ends", "can end", about, witness=end))
        else:
            socket_names = ", ".join(part(names[socket_id]) for socket_id in sockets)
            failure = end.replace("_", " ")
            rows.append(_row("fails", f"can fail: {failure}", f"at {socket_names}{chance_text}", witness=end))
    return rows + [
        _row("fails", "can get stuck without reaching the end", f"at {part(names[id_])}")
        for id_ in (explored.stalls if explored.complete_search else ())
    ]


def _row(
    sign: str, title: str, about: str, *, witness: str | None = None, pick: Selection | None = None
) -> DesignSlice:
    """Return a row for the page.

    Args:
        sign: the name of the row's icon.
        title: the outcome.
        about: details about the outcome.
        witness: the name of the outcome if the page can show a shortest path to it.
        pick: the part that a click on the row selects.
    """
    return {"sign": sign, "what": title, "about": about, "witness": witness, "pick": pick and list(pick)}


def _unreachable_rows(explored: Exploration) -> list[DesignSlice]:
    """Return one row for each edge, exit and socket that no explored cast reaches."""
    word, names = "never" if explored.certain else "so far not", explored.graph.names
    rows = [_row("never", f"{word} visited", part(names[id_]), pick=("socket", id_)) for id_ in explored.not_visited]
    for edge_or_exit in explored.not_taken:
        if isinstance(edge_or_exit, tuple):
            source, number = edge_or_exit
            edge = explored.graph.sockets[source].edges[number - 1]
            about, when, target = f"edge {number} of {part(names[source])}", edge.when, edge.to
            pick: Selection | None = edge_selection("edge", source, edge.index)
        else:
            routes = (route for loop in explored.graph.loops.values() for route in loop.routes)
            exit_ = next(route for route in routes if edge_or_exit in (route.id, route.edge_id))
            about, when, target = f"exit of {part(names[exit_.source])}", exit_.condition, exit_.target
            pick = None
        details = f"{about}: {condition_spec(when).choice} → {part(names[target])}"
        rows.append(_row("never", f"{word} taken", details, pick=pick))
    return rows


def _changes_slice(session: DesignState) -> DesignSlice:
    """Return the editing steps (newest first), the unsaved changes, and the effect of the changes if it is known."""
    design = session.design
    before, after, effect = session.compared or (None, None, [])
    materia_changes = ({**change, "path": f"/materia{change['path']}"} for change in design.materia_patch())
    patch, (done, undone) = [*design.patch(), *materia_changes], design.named_steps(_MAX_CHANGES)
    return {
        "steps": [shorten(step, _MAX_STEP_CHARS) for step in reversed(done)],
        "undone": [shorten(step, _MAX_STEP_CHARS) for step in undone],
        "unsaved": [_patch_text(change) for change in patch[:_MAX_CHANGES]],
        "more": max(0, len(patch) - _MAX_CHANGES),
        "compared": effect if before is design.saved_change and after is design.current_change else [],
    }


def _patch_text(step: Mapping[str, JSON]) -> DesignSlice:
    """Return the description of one JSON Patch operation."""
    path = ".".join(pointer_keys(step["path"]))
    verbs = {"add": "new", "remove": "removed", "replace": "changed", "move": "moved", "copy": "copied"}
    about = shorten(compact(step["value"]), 160) if "value" in step else ""
    if "from" in step:
        about = f"from {'.'.join(pointer_keys(step['from']))}"
    return {"verb": verbs[str(step["op"])], "where": part(path or "whole design", 120), "about": about}
