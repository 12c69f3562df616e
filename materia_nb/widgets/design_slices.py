"""What the parts of design mode show, as plain JSON: bar, palette, the form of what is selected, and the dock.

Every function is pure. Texts are those of the loadout, unescaped: the page writes them as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from materia_nb.agents.model_agent import ready_models
from materia_nb.display.blocks import without_surrogates
from materia_nb.display.escape import part, shorten
from materia_nb.engine import entering
from materia_nb.engine.prompt_context import tokens_of
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.estimate import VisitPrompt
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, compact, is_object, is_text, pretty
from materia_nb.loadout.design import Design
from materia_nb.loadout.design import sockets as operations
from materia_nb.loadout.design.forms import FormField, form_of
from materia_nb.loadout.design.sockets import materia_model
from materia_nb.loadout.fields import Model
from materia_nb.loadout.graph import END
from materia_nb.loadout.materia import materia_group, materia_kind
from materia_nb.loadout.models import (
    AgentMateria,
    Consumes,
    EdgeFields,
    ExitRouteFields,
    IteratorFields,
    Loadout,
    LoopFields,
    SocketFields,
)
from materia_nb.loadout.report import Problem, brief
from materia_nb.loadout.topology import LoadoutFacts
from materia_nb.loadout.vocabulary import DESCRIBED, described, is_condition, protocol_names, tint_of
from materia_nb.widgets.design_acts import LIKELY, DesignSession
from materia_nb.widgets.design_state import ITEMS, REQUEST
from materia_nb.widgets.selection import (
    ENDS,
    Kind,
    Selection,
    drawn_parts,
    edge_selection,
    edges_of,
    members_of,
    owner_of,
    written,
)

DesignSlice = dict[str, Any]
_MOST_WORDS: Final = 200
_UNGROUPED: Final = "agents"
_LAST: Final = "utilities"


def design_slice(session: DesignSession) -> DesignSlice:
    """Return the whole slice ``design``."""
    picked = drawn_pick(session)
    made: DesignSlice = without_surrogates(
        {
            "bar": _bar_slice(session),
            "palette": _palette_slice(session.design),
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


def drawn_pick(session: DesignSession) -> Selection | None:
    """Return what is selected, as the picture names it; None for nothing."""
    if session.selected is None:
        return None
    drawn = drawn_parts(session.design.document, session.design.graph())
    return next((one for one, mine in drawn.items() if mine == session.selected), None)


# -- bar and palette ----------------------------------------------------------------------


def _bar_slice(session: DesignSession) -> DesignSlice:
    """Return name, counts, what undo and redo would do, where it is saved, and what was said last."""
    design, (sign, words) = session.design, session.note
    question = session.question
    return {
        "name": part(design.name),
        "identity": session.identity,
        "changed": design.changed,
        "fresh": not design.began,
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
        else {
            "number": question.number,
            "words": question.words,
            "choices": [shorten(one, 80) for one, _ in question.choices],
        },
        "canPaste": session.clip is not None,
        "estimate": session.estimated[1]
        if session.estimated is not None and session.estimated[0] is design.now
        else "",
        "left": _left(design),
    }


def _left(design: Design) -> str:
    """Say what there is of a design when its kernel has died."""
    if not design.changed:
        return "all of it is saved."
    if design.not_kept:
        return f"what was saved is in its file; {design.not_kept}."
    return f"it offers the draft of {part(design.name)}, with all {counted(len(design.unsaved[1]), 'step')}."


def _palette_slice(design: Design) -> DesignSlice:
    """Return every materia under the heading of its group: agents without one first, utilities last."""
    used: dict[str, int] = {}
    for raw in as_object(design.document.get("sockets")).values():
        named = as_object(raw).get("materia")
        if isinstance(named, str):
            used[named] = used.get(named, 0) + 1
    groups: dict[str, list[DesignSlice]] = {}
    for id_, raw in design.definitions.items():
        definition = as_object(raw)
        group = materia_group(definition)
        title = _UNGROUPED if not group else _LAST if group == "Utility" else group
        groups.setdefault(title, []).append(_entry(id_, definition, used.get(id_, 0)))
    order = sorted(groups, key=lambda one: (one == _LAST, one != _UNGROUPED, one.casefold()))
    return {"groups": [{"title": shorten(title, 60), "entries": groups[title]} for title in order]}


def _entry(id_: str, raw: Object, placed: int) -> DesignSlice:
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


# -- what is selected: its form, its ways out, what its agent is told -------------------------

_VARIABLES: Final = (
    ("request", "what was asked for"),
    ("lastOutput", "the output before, as text"),
    ("lastJson.satisfied", "a field of the output before"),
    ("stateJson", "the whole state, as JSON"),
)
_ITEM_VARIABLES: Final = (
    ("item.title", "the title of the work item"),
    ("item.context", "what to do with it"),
    ("itemJson", "the whole item, as JSON"),
)

_NO_MODELS: Final = "none is offered: no provider that is installed here has its key"


def inspector_slice(session: DesignSession) -> DesignSlice:
    """Return the form of what is selected: of a socket with its materia, an edge, an exit, a loop, or the loadout."""
    pick = session.selected
    if len(session.marked) > 1 and pick is None:
        return _marked(session)
    if pick is None:
        return _loadout(session)
    kind, key = pick
    made = {"socket": _socket, "loop": _loop}.get(kind, _line)(session, pick)
    return {**made, "of": [kind, key], "marked": list(session.marked)}


def _fields(
    session: DesignSession, of: tuple[str, str], model: type[Model], raw: Object, prefix: str = ""
) -> list[DesignSlice]:
    sockets = list(as_object(session.design.document.get("sockets")))
    known: Mapping[str, Iterable[str]] = {
        "socket id": sockets,
        "socket id or end": [*sockets, END],
        "materia id": session.design.materia,
        "name of a protocol": protocol_names(),
        "model": ready_models() if model is AgentMateria else (),
    }
    fields = form_of(model, raw, known)
    if model is AgentMateria and not known["model"]:
        fields = [one._replace(unit=_NO_MODELS) if one.name == "model" else one for one in fields]
    return [_sent(session, of, one, prefix) for one in fields]


def _sent(session: DesignSession, of: tuple[str, str], field: FormField, prefix: str) -> DesignSlice:
    name = f"{prefix}{field.name}"
    refused = session.refused.get((*of, name))
    made: DesignSlice = {
        **field._asdict(),
        "name": name,
        "of": list(of),
        "options": [list(one) for one in field.options],
    }
    return {
        **made,
        "typed": None if refused is None else refused.typed,
        "error": refused.why if refused else "",
    }


def _id_field(session: DesignSession, of: tuple[str, str], about: str) -> DesignSlice:
    return _sent(session, of, FormField("id", "id", "text", of[1], (), about, "", "", True, True, ""), "")


def _loadout(session: DesignSession) -> DesignSlice:
    design = session.design
    sockets, loops = (len(as_object(design.document.get(name))) for name in ("sockets", "loops"))
    return {
        "kind": "loadout",
        "of": ["loadout", ""],
        "title": part(design.name),
        "sub": f"{counted(sockets, 'socket')}, {counted(loops, 'loop')}",
        "marked": list(session.marked),
        "empty": not sockets,
        "fields": _fields(session, ("loadout", ""), Loadout, design.document),
        "json": pretty(design.document) if sockets < 60 else "",
    }


def _marked(session: DesignSession) -> DesignSlice:
    return {
        "kind": "marked",
        "of": ["marked", ""],
        "title": counted(len(session.marked), "socket"),
        "sub": ", ".join(part(one) for one in session.marked),
        "marked": list(session.marked),
        "fields": [],
    }


def _socket(session: DesignSession, pick: Selection) -> DesignSlice:
    design, id_ = session.design, pick[1]
    raw, facts = written(design.document, "socket", id_), session.facts
    named = raw.get("materia")
    definition = facts.sockets[id_].materia.raw
    label = definition.get("label")
    gone = operations.remove_socket(design.document, id_).words.removeprefix("removed ")
    made: DesignSlice = {
        "kind": "socket",
        "title": part(raw.get("label") or (label if is_text(label) else named) or "no materia"),
        "sub": part(id_),
        "work": materia_kind(definition),
        "entry": design.document.get("entry") == id_,
        "isMarked": id_ in session.marked,
        "removes": shorten(gone, 300),
        "fields": [
            _id_field(session, pick, "Every reference to it follows."),
            *_fields(session, pick, SocketFields, raw),
        ],
        "ways": _ways(design.document, facts, id_),
        "targets": [*facts.sockets, END],
        "conditions": _conditions(),
        "json": pretty(raw),
    }
    if isinstance(named, str) and named in design.definitions:
        made["materia"] = _materia(session, facts, id_, named)
    return made


def _materia(session: DesignSession, facts: LoadoutFacts, socket: str, named: str) -> DesignSlice:
    design = session.design
    definition = as_object(design.definitions[named])
    others = [
        id_ for id_, other in facts.sockets.items() if other.raw.get("materia") == named and id_ != socket
    ]
    elsewhere = _placed_elsewhere(design, named)
    return {
        "id": named,
        "work": materia_kind(definition),
        "about": purpose(definition),
        "shared": [*others, *elsewhere],
        "fields": _fields(session, ("materia", named), materia_model(definition), definition),
        "variables": [{"name": name, "about": about} for name, about in _variables_of(facts, socket)],
        "told": _told_at(session, socket) if materia_kind(definition) == "agent" else [],
    }


def _placed_elsewhere(design: Design, named: str) -> list[str]:
    return [
        f"loadout {name}"
        for name, raw in as_object(design.config.get("loadouts")).items()
        if name != design.name
        and any(
            as_object(one).get("materia") == named
            for one in as_object(as_object(raw).get("sockets")).values()
        )
    ]


def _variables_of(facts: LoadoutFacts, socket: str) -> list[tuple[str, str]]:
    """Return what a prompt at this socket can name, with what it stands for: the item, and what is kept in the state."""
    named = [*(_ITEM_VARIABLES if facts.sockets[socket].iterator is not None else ()), *_VARIABLES]
    for id_, owner in facts.sockets.items():
        named += [(f"state.{target}", f"kept by {id_}") for _, target, _ in owner.assignments]
    return [(name, about) for name, about in dict(named).items() if "}" not in name][:40]


def _told_at(session: DesignSession, socket: str) -> list[DesignSlice]:
    """Return what the agent of a socket would be told before anything ran: of its first, second and last item, and after work came back.

    A socket to which no way leads yet is shown as if a cast began there.
    """
    if not session.design.report.ok:
        return [{"words": "not yet", "about": "It is shown once nothing stops a cast; see the problems."}]
    try:
        plain, back = (one.of(socket) for one in session.prompts)
    except MateriaError as error:
        return [{"words": "not known", "about": error.what}]
    again = next((one for one in back if one.turn), None)
    places = ("first item", "second", "last") if plain and plain[0].item else ("first visit",)
    chosen = [*zip(places, [*plain[:2], *plain[2:][-1:]], strict=False)]
    chosen += [] if again is None else [("sent back", again)]
    if not chosen:
        rules = Rules(session.design.graph())
        state = entering.begin(rules, REQUEST, data={"workItems": [*ITEMS]})
        prompt, why_not = entering.preview(rules, state, socket)
        if prompt is None:
            return [{"words": "not visited", "about": why_not}]
        chosen = [("alone", VisitPrompt(1, socket, None, "", prompt, len(prompt.text), 0))]
    return [_told(words, one) for words, one in chosen]


def _told(words: str, one: VisitPrompt) -> DesignSlice:
    """One prompt, part by part, with what is left out and why."""
    return {
        "words": words,
        "about": f"{one.characters:,} characters, some {one.tokens:,} tokens: an estimate, one for four characters. "
        "Answers before it are made up, the shortest.",
        "parts": [
            {
                "title": part.heading,
                "size": len(part.text),
                "tokens": tokens_of(len(part.text)),
                "share": round(len(part.text) / max(one.characters, 1), 3),
                "note": part.note,
                "text": part.text,
            }
            for part in one.prompt.parts
        ],
    }


def _ways(document: Object, facts: LoadoutFacts, id_: str) -> list[DesignSlice]:
    """The edges of a socket in their order, then the exits of loops that leave from it."""
    ways = [_way("edge", id_, place, raw) for place, raw in enumerate(edges_of(document, "edge", id_))]
    for loop in facts.loops:
        for place, raw in enumerate(edges_of(document, "exit", loop.id)):
            if as_object(raw).get("from") == id_:
                ways.append({**_way("exit", loop.id, place, raw), "place": None, "loop": loop.id})
    return ways


def _conditions() -> list[list[str]]:
    """What a new way can wait for: the word, and its name."""
    return [[word, one.choice] for word, one in DESCRIBED.items()]


def _way(kind: Kind, owner: str, place: int, raw: JSON) -> DesignSlice:
    """One row of a list of edges or exits."""
    when, to = (as_object(raw).get(name) for name in ENDS[kind])
    most = as_object(raw).get("maxTraversals") if kind == "edge" else None
    condition = described(when) if is_condition(when) else None
    return {
        "what": list(edge_selection(kind, owner, place)),
        "when": _said(when) if condition is None else condition.choice,
        "tone": "" if condition is None else condition.tone,
        "to": _said(to),
        "most": "" if most is None else brief(most),
        "place": place,
    }


def _said(value: JSON) -> str:
    return value if isinstance(value, str) else brief(value)


def _line(session: DesignSession, pick: Selection) -> DesignSlice:
    """An edge or an exit."""
    kind, document, (owner, place) = pick[0], session.design.document, owner_of(pick)
    if place is None:
        return {
            "kind": "oldExit",
            "title": f"exit of loop {part(owner)}",
            "sub": "in the older form",
            "sentence": "It is the field exit of the loop, which also sets an advance. Remove takes the field away.",
            "fields": [],
            "json": pretty(written(document, "loop", owner).get("exit")),
        }
    ways = edges_of(document, kind, owner)
    raw = as_object(ways[place])
    when, to = (raw.get(name) for name in ENDS[kind])
    if kind == "edge":
        source, whose, once = owner, f"from {part(owner)}", ""
        facts = session.facts
        loops = facts.sockets[source].loops
        leaves = any(loop.iterates and to not in loop.members for loop in loops)
        turn = "make it an exit of the loop" if leaves and to in (*facts.ids, END) else ""
    else:
        source, whose = str(raw.get("from")), f"of loop {part(owner)}"
        once = f"Once the list of {part(owner)} is done: "
        turn = "make it a plain edge" if is_object(ways[place]) else ""
    condition = described(when).phrase if is_condition(when) else brief(when)
    most = raw.get("maxTraversals")
    limit = f", at most {brief(most)} times for each item" if most is not None else ""
    return {
        "kind": kind,
        "title": f"{part(source)} → {part(_said(to))}",
        "sub": f"{kind} {place + 1} of {len(ways)} {whose}",
        "sentence": f"{once}From {part(source)} {condition} to {part(str(to))}{limit}.",
        "first": place == 0,
        "last": place == len(ways) - 1,
        "turn": turn,
        "fields": _fields(session, pick, EdgeFields if kind == "edge" else ExitRouteFields, raw),
        "json": pretty(ways[place]),
    }


def _loop(session: DesignSession, of: Selection) -> DesignSlice:
    document, id_ = session.design.document, of[1]
    raw, members = written(document, "loop", id_), members_of(document, id_)
    source = next((name for name in ("iterator", "consumes") if is_object(raw.get(name))), "")
    fields = [_id_field(session, of, "Exits keep their own ids."), *_fields(session, of, LoopFields, raw)]
    if source:
        model: type[Model] = Consumes if source == "consumes" else IteratorFields
        fields += _fields(session, of, model, as_object(raw[source]), f"{source}.")
    exits = [
        {**_way("exit", id_, place, one), "from": str(as_object(one).get("from"))}
        for place, one in enumerate(edges_of(document, "exit", id_))
    ]
    return {
        "kind": "loop",
        "title": f"loop {part(id_)}",
        "sub": counted(len(members), "member"),
        "members": members,
        "source": source,
        "fields": fields,
        "exits": exits,
        "targets": [*as_object(document.get("sockets")), END],
        "sockets": list(as_object(document.get("sockets"))),
        "conditions": _conditions(),
        "json": pretty(raw),
    }


def purpose(raw: Object) -> str:
    """Say in one line what a materia is for: its description, else how its prompt begins, else what it runs."""
    for text in (raw.get("description"), raw.get("prompt")):
        if is_text(text):
            return shorten(" ".join(text.split()), 120)
    script = as_object(raw.get("script")).get("name")
    command = " ".join(str(one) for one in as_list(raw.get("command")))
    return shorten(str(script) if is_text(script) else " ".join(command.split()), 120)


# -- the dock: what is wrong and what fixes it, what can happen, what was changed ---------------

_MOST_FINDINGS: Final = 60
_MOST_FIXES: Final = 20
"""For so many findings it is looked whether a button can fix them: each takes a check of the loadout."""
_MOST_CHANGES: Final = 60
_NOTHING_PLACED: Final = "click a materia in the palette"
_OWNERS: Final[tuple[tuple[Kind, Kind, str, str], ...]] = (
    ("loop", "exit", "loops.", "exits"),
    ("socket", "edge", "", "edges"),
)
"""What has ways out, what these are, how a path to it begins, and which of its fields lists them."""


def dock_slice(session: DesignSession) -> DesignSlice:
    """Return what is wrong, what can happen, and what was changed."""
    return {
        "problems": findings(session.design, {pick for _, pick in session.parts}),
        "happens": happens(session),
        "changes": _changes_slice(session.design),
    }


def findings(design: Design, known: set[Selection]) -> list[DesignSlice]:
    """Return each problem and hint with where it is, and the words of the button that fixes it, where one does."""
    listed = [*design.report.problems, *design.report.hints]
    placed = as_object(design.document.get("sockets"))
    rows = []
    for place, one in enumerate(listed[:_MOST_FINDINGS]):
        fix = design.fix_of(one) if place < _MOST_FIXES else None
        pick = part_of(design, one, known)
        rows.append(
            {
                "severity": one.severity,
                "code": one.code,
                "source": one.source,
                "where": _where_words(design, one, pick),
                "what": part(one.message, 400),
                "todo": _NOTHING_PLACED if one.source == "sockets" and not placed else part(one.hint, 400),
                "fix": None if fix is None else shorten(fix.label, 60),
                "pick": None if pick is None else list(pick),
            }
        )
    return rows


def part_of(design: Design, problem: Problem, known: set[Selection]) -> Selection | None:
    """Return the part of the design that a finding is about; None where it is about the whole."""
    source = problem.source.removeprefix("sockets.")
    if source.startswith("materia."):
        sockets = as_object(design.document.get("sockets"))
        using = [
            id_
            for id_, raw in sockets.items()
            if source.startswith(f"materia.{as_object(raw).get('materia')}")
        ]
        return ("socket", using[0]) if using else None
    for kind, way, head, name in _OWNERS:
        for id_ in sorted(as_object(design.document.get(f"{kind}s")), key=len, reverse=True):
            rest = source.removeprefix(f"{head}{id_}")
            if rest == source or rest[:1] not in ("", ".", "["):
                continue
            place = _number(rest.removeprefix(f".{name}[")) if rest.startswith(f".{name}[") else None
            pick = (kind, id_) if place is None else edge_selection(way, id_, place)
            return pick if pick in known else (kind, id_)
    return None


def _number(text: str) -> int | None:
    digits = text.split("]", maxsplit=1)[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def _where_words(design: Design, problem: Problem, pick: Selection | None) -> str:
    """Say where a finding is as a person reads it: the materia and the socket, the edge by its number, else the path."""
    if pick is None or pick[0] == "loop":
        return part(problem.source, 80)
    if pick[0] == "exit":
        loop, place = owner_of(pick)
        return (
            f"exit of loop {part(loop, 60)}"
            if place is None
            else f"exit {place + 1} of loop {part(loop, 60)}"
        )
    socket, place = owner_of(pick)
    named = written(design.document, "socket", socket).get("materia")
    words = f"{part(named, 40)} · {part(socket, 60)}" if is_text(named) else part(socket, 60)
    if place is not None:
        return f"{words}, edge {place + 1}"
    rest = problem.source.removeprefix("sockets.").removeprefix(f"{socket}.")
    return words if rest == socket or problem.source.startswith("materia.") else f"{words}, {part(rest, 60)}"


def happens(session: DesignSession) -> DesignSlice | None:
    """Return what casts of the design can come to, None before it was asked; ``stale`` once the design is another."""
    if session.explored is None:
        return None
    at, explored = session.explored
    return {
        "stale": at is not session.design.now,
        "states": explored.states,
        "whole": explored.complete_search,
        "notes": list(explored.notes),
        "rows": _ends_rows(explored, session.odds) + _never_rows(explored),
        "route": list(session.route),
    }


def _ends_rows(explored: Exploration, odds: Mapping[str, float]) -> list[DesignSlice]:
    """Return one row for each way in which a cast can end, with its chance where it is known."""
    rows = []
    ends = explored.ends_seen
    if "complete" not in ends:
        word = "cannot come to its end" if explored.complete_search else "was not seen to come to its end"
        rows.append(_row("fails", word, "no way leads there"))
    for end, sockets in ends.items():
        chance = (
            f"; {odds[end]:.1%} for 3 items, each verdict satisfied with a chance of {LIKELY}"
            if end in odds
            else ""
        )
        turns = len(explored.witness(end).route)
        if end == "complete":
            most = explored.most_turns() if explored.complete_search else None
            bound = f", at most {most} turns of agents" if most is not None else ", no bound on its turns"
            about = f"shortest in {counted(turns, 'visit')}{bound}{chance}"
            rows.append(_row("ends", "can end", about, witness=end))
        else:
            at = ", ".join(part(one) for one in sockets)
            words = end.replace("_", " ")
            rows.append(_row("fails", f"can fail: {words}", f"at {at}{chance}", witness=end))
    return rows + [
        _row("fails", "can come where no end is reached", f"at {part(id_)}")
        for id_ in (explored.stalls if explored.complete_search else ())
    ]


def _row(
    sign: str, what: str, about: str, *, witness: str | None = None, pick: Selection | None = None
) -> DesignSlice:
    """One row: what can happen, more about it, the end that its shortest way leads to, and the part to select."""
    picked = None if pick is None else list(pick)
    return {"sign": sign, "what": what, "about": about, "witness": witness, "pick": picked}


def _never_rows(explored: Exploration) -> list[DesignSlice]:
    """Return one row for each edge, exit and socket that no way takes."""
    word = "never" if explored.certain else "not seen to be"
    rows = [_row("never", f"{word} visited", part(id_), pick=("socket", id_)) for id_ in explored.not_visited]
    for one in explored.not_taken:
        if isinstance(one, tuple):
            edge = explored.graph.sockets[one[0]].edges[one[1] - 1]
            about = f"edge {one[1]} of {part(one[0])}: {edge.when} → {part(edge.to)}"
            pick: Selection | None = edge_selection("edge", one[0], edge.place)
        else:
            about, pick = f"exit {part(one)}", None
        rows.append(_row("never", f"{word} taken", about, pick=pick))
    return rows


def _changes_slice(design: Design) -> DesignSlice:
    """Return what was done, newest first, and what is not saved, in words."""
    patch = [*design.patch(), *({**one, "path": f"/materia{one['path']}"} for one in design.materia_patch())]
    return {
        "steps": [shorten(one, _MOST_WORDS) for one in reversed(design.steps[-_MOST_CHANGES:])],
        "undone": [shorten(one, _MOST_WORDS) for one in design.undone[:_MOST_CHANGES]],
        "unsaved": [_patch_words(one) for one in patch[:_MOST_CHANGES]],
        "more": max(0, len(patch) - _MOST_CHANGES),
    }


def _patch_words(step: Mapping[str, JSON]) -> DesignSlice:
    """Say one operation of a JSON Patch in words."""
    path = str(step["path"]).removeprefix("/").replace("/", ".").replace("~1", "/").replace("~0", "~")
    verbs = {"add": "new", "remove": "gone", "replace": "changed", "move": "moved", "copy": "copied"}
    about = ""
    if "value" in step:
        about = shorten(compact(step["value"]), 160)
    elif "from" in step:
        about = "from " + str(step["from"]).removeprefix("/").replace("/", ".")
    return {
        "verb": verbs.get(str(step["op"]), str(step["op"])),
        "where": part(path or "the whole", 120),
        "about": about,
    }
