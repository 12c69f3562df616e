"""The state of a design in a panel, such as the selection, and the slice of this state for the inspector."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.model_agent import ready_models
from materia_nb.cast.agents_api import with_prompt_forms
from materia_nb.display.escape import part, shorten
from materia_nb.engine import entering
from materia_nb.engine.conversation import estimate_tokens
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.estimate import Prompts, VisitPrompt
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_object, is_text, pretty
from materia_nb.loadout.design import Design
from materia_nb.loadout.design import sockets as operations
from materia_nb.loadout.design.document import DesignChange, design_error
from materia_nb.loadout.fields import Model
from materia_nb.loadout.graph import END, Graph, PromptForm, with_names
from materia_nb.loadout.json_schema import FormField, form_fields
from materia_nb.loadout.models import (
    AgentMateria,
    Consumes,
    EdgeFields,
    ExitRouteFields,
    IteratorFields,
    Loadout,
    LoopFields,
    SocketFields,
    materia_model,
)
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import LoadoutFacts, materia_kind, parse_loadout
from materia_nb.loadout.vocabulary import CONDITION_SPECS, condition_spec, is_condition, protocol_names
from materia_nb.widgets.frontend import MessageRegistry
from materia_nb.widgets.selection import (
    END_FIELDS,
    Kind,
    Selection,
    drawn_parts,
    edge_selection,
    edges_of,
    members_of,
    owner_of,
    parts,
    raw_part,
)
from materia_nb.widgets.state_tree import json_digest

if TYPE_CHECKING:
    from pathlib import Path

    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench


REQUEST: Final = "[the request]"
ITEMS: Final = tuple(
    {"title": f"[title of item {number}]", "context": f"[context of item {number}]"} for number in range(1, 6)
)
"""Work items for the example prompts that are shown before a cast exists."""
SATISFIED_PROBABILITY: Final = 0.5
"""Assumed probability of a satisfied verdict for estimates and for the probability of each outcome."""
_MAX_STEPS: Final = 200
_KINDS: Final = ("socket", "edge", "exit", "loop", "materia", "loadout")


design_messages: Final = MessageRegistry("ToDesign", "Messages to the designer of a loadout.")


@dataclass(frozen=True, slots=True)
class DesignQuestion:
    """A question that the user must answer before an action continues.

    Attributes:
        text: the question.
        choices: the label of each button, and the message that the button sends.
        number: the id of the question in this kernel; an answer must repeat it.
    """

    text: str
    choices: tuple[tuple[str, Mapping[str, JSON]], ...]
    number: int = field(default_factory=itertools.count(1).__next__, compare=False)


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A value that the user entered in a field and that was refused, with the reason."""

    typed: str
    reason: str


class DesignState:
    """A design with its selection and the result of the last message.

    Args:
        bench: the workbench that saves and casts the design.
        design: the design to edit.
    """

    def __init__(self, bench: Workbench, design: Design) -> None:
        self.bench = bench
        self.design = design
        self.selected: Selection | None = None
        self.marked: list[str] = []
        self.clipboard: Object | None = None
        self.note: tuple[str, str] = ("status", "")
        self.question: DesignQuestion | None = None
        self.refused: dict[tuple[str, ...], RefusedField] = {}
        self.copied_from: dict[str, str] = {}
        """Id of the original of each materia that a change has copied for one socket, by the id of the copy."""
        self.explored: tuple[DesignChange, Exploration] | None = None
        self.route: tuple[str, ...] = ()
        self.proof: tuple[str, str] | None = None
        self.odds: dict[str, float] = {}
        self.estimated: tuple[DesignChange, str] | None = None
        self.compared: tuple[DesignChange, DesignChange, list[JSON]] | None = None
        self._offered: set[tuple[Path, int]] = set()
        self.on_cast_started: Callable[[Cast], object] | None = None
        self.casts_started = 0
        self._memo: tuple[DesignChange, Object, str, list[tuple[str, Selection]]] | None = None
        self._prompts: tuple[Graph, list[PromptForm | None], tuple[Prompts, Prompts]] | None = None

    # -- parts and names -----------------------------------------------------------------

    @property
    def parts(self) -> list[tuple[str, Selection]]:
        """All parts of the design, each with a unique name."""
        return self._derived()[3]

    @property
    def identity(self) -> str:
        """Identity of the current design, changed by each cast. A message that starts a cast must contain it (R69)."""
        return f"{self._derived()[2]}.{self.casts_started}"

    def _derived(self) -> tuple[DesignChange, Object, str, list[tuple[str, Selection]]]:
        """Return the current change and config, and the digest and parts that are computed from them."""
        design, memo = self.design, self._memo
        if memo is None or memo[0] is not design.current_change or memo[1] is not design.config:
            digest = json_digest([design.name, design.document, dict(design.definitions)])
            memo = design.current_change, design.config, digest, parts(design.document, design.graph())
            self._memo = memo
        return memo

    @property
    def prompts(self) -> tuple[Prompts, Prompts]:
        """Example prompts of a scripted cast in which all answers are satisfied, and of a scripted cast with rework.

        Raises:
            MateriaError: a socket does not accept a scripted answer (``no_answer``).
        """
        graph = self.design.graph()
        runnable = with_prompt_forms(graph, self.bench.agents.table(graph))
        forms = [socket.prompt_form for socket in runnable.sockets.values()]
        if self._prompts is None or self._prompts[0] is not graph or self._prompts[1] != forms:
            accepted, reworked = (
                Prompts(runnable, REQUEST, ITEMS, rework=rework, max_visits=_MAX_STEPS) for rework in (False, True)
            )
            self._prompts = graph, forms, (accepted, reworked)
        return self._prompts[2]

    @property
    def names(self) -> Mapping[str, str]:
        """Display name of each socket that is not malformed, and of the end, by id."""
        return self.design.graph().names

    def name_of(self, value: JSON) -> str:
        """Return the display name of a socket or of the end, or else the value as text."""
        text = _text_of_value(value)
        return part(self.names.get(text, text))

    @property
    def facts(self) -> LoadoutFacts:
        """The parsed design and its materia, without malformed parts."""
        return parse_loadout(self.design.name, self.design.document, self.design.definitions)

    def users_of_materia(self, facts: LoadoutFacts, socket: str) -> str:
        """Return a sentence about the other users of a socket's materia, or "" if only the socket can use it.

        ``facts`` are the current :attr:`facts`.
        """
        design = self.design
        materia_id, ids = facts.sockets[socket].raw.get("materia"), facts.sockets_sharing_materia(facts.sockets[socket])
        users = [self.name_of(id_) for id_ in ids if id_ != socket]
        for name, raw in as_object(design.config.get("loadouts")).items():
            sockets = as_object(as_object(raw).get("sockets")).values()
            if name != design.name and any(as_object(other).get("materia") == materia_id for other in sockets):
                users.append(f"loadout {name}")
        if users:
            return f"This materia is also used by {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}."
        return "Other loadouts can use this materia too." if materia_id in design.home.materia else ""

    def part_named(self, name: object) -> Selection | None:
        """Return the design part with the kind and key in ``name``, or None if ``name`` is not a pair of kind and key.

        ``name`` may also refer to an element of the graph.

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
        problem = f"the design has no {shorten(str(kind), 20)} {shorten(str(key), 60)!r}"
        raise design_error(problem, "design", "select an existing part; this part may have been removed")

    def require_part(self, name: object) -> Selection:
        """Like :meth:`part_named`, but raise MateriaError if ``name`` is not a pair of kind and key."""
        selection = self.part_named(name)
        if selection is None:
            raise design_error("the message does not specify a part", "design", "reload the page")
        return selection

    def has_part(self, kind: str, key: str) -> bool:
        """Return True if the design has this part."""
        return any((kind, key) == known for _, known in self.parts)

    def has_fields(self, kind: str, key: str, *sockets: str) -> bool:
        """Return True if the owner of a form field still exists: a part, a materia or its socket, or the loadout."""
        if kind == "materia":
            return self.has_part("socket", sockets[0]) if sockets else key in self.design.definitions
        return kind == "loadout" or (kind in _KINDS and self.has_part(kind, key))

    def offer_draft(self, *, handed_over: bool = False) -> None:
        """Ask the user whether to continue with an unsaved draft, if there is one.

        Args:
            handed_over: True to offer only a new draft that a coding agent has handed over, unless a question is open.
        """
        drafts = self.bench.loadouts.drafts(self.design.name)
        if handed_over:
            drafts = tuple(
                draft_ for draft_ in drafts if draft_.by and (draft_.path, draft_.saved_at) not in self._offered
            )
        draft = next((draft_ for draft_ in drafts if draft_.has_changes(self.design)), None)
        if draft is not None and not (handed_over and self.question is not None):
            self._offered.add((draft.path, draft.saved_at))
            message: dict[str, JSON] = {"kind": "draft", "file": draft.path.name}
            choices = ("Continue with draft", message), ("Discard draft", {**message, "discard": True})
            self.question = DesignQuestion(f"Unsaved changes exist in {draft}.", choices)


DesignSlice = dict[str, Any]

_VARIABLES: Final = (
    ("request", "the request of the cast"),
    ("lastOutput", "the previous output, as text"),
    ("lastJson.satisfied", "a field of the previous output"),
    ("stateJson", "the whole state, as JSON"),
)
_ITEM_VARIABLES: Final = (
    ("item.title", "the title of the work item"),
    ("item.context", "the context of the work item"),
    ("itemJson", "the whole work item, as JSON"),
)

_CONDITIONS: Final = [[word, condition.choice] for word, condition in CONDITION_SPECS.items()]
"""Possible conditions of an edge: the value and the label of each choice."""
_NO_MODELS: Final = "No models are listed, because no installed provider has an API key."


def inspector_slice(session: DesignState) -> DesignSlice:
    """Return the form for the selection: a socket with its materia, an edge, an exit, a loop, or the loadout."""
    pick = session.selected
    if len(session.marked) > 1 and pick is None:
        return _marked_form(session)
    if pick is None:
        return _loadout_form(session)
    kind, key = pick
    form = {"socket": _socket_form, "loop": _loop_form}.get(kind, _edge_form)(session, pick)
    return {**form, "of": [kind, key], "marked": list(session.marked), "names": dict(session.names)}


def _fields(
    session: DesignState, of: tuple[str, ...], model: type[Model], raw: Object, prefix: str = ""
) -> list[DesignSlice]:
    sockets = list(as_object(session.design.document.get("sockets")))
    known: Mapping[str, Iterable[str]] = {
        "socket id": sockets,
        "socket id or end": [*sockets, END],
        "materia id": session.design.definitions,
        "name of a protocol": protocol_names(),
        "model": ready_models() if model is AgentMateria else (),
    }
    fields = form_fields(model, raw, known)
    if model is AgentMateria and not known["model"]:
        fields = [field._replace(unit=_NO_MODELS) if field.name == "model" else field for field in fields]
    return [_field_slice(session, of, field, prefix) for field in fields]


def _field_slice(session: DesignState, of: tuple[str, ...], field: FormField, prefix: str) -> DesignSlice:
    name, names = f"{prefix}{field.name}", session.names if field.shape.startswith("socket id") else {}
    names = dict(_CONDITIONS) if field.input == "choice" else names
    refused_field = session.refused.get((*of, name))
    return {
        **field._asdict(),
        "name": name,
        "of": list(of),
        "options": [[value, names.get(value, label)] for value, label in field.options],
        "typed": None if refused_field is None else refused_field.typed,
        "error": refused_field.reason if refused_field else "",
    }


def _id_field(session: DesignState, of: tuple[str, str], about: str) -> DesignSlice:
    return _field_slice(session, of, FormField("id", "id", "text", of[1], (), about, "", "", True, True, ""), "")


def _loadout_form(session: DesignState) -> DesignSlice:
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


def _marked_form(session: DesignState) -> DesignSlice:
    return {
        "kind": "marked",
        "of": ["marked", ""],
        "title": counted(len(session.marked), "socket"),
        "sub": ", ".join(session.name_of(id_) for id_ in session.marked),
        "marked": list(session.marked),
        "fields": [],
    }


def _socket_form(session: DesignState, pick: Selection) -> DesignSlice:
    design, id_ = session.design, pick[1]
    raw, facts = raw_part(design.document, "socket", id_), session.facts
    materia_id = raw.get("materia")
    definition = facts.sockets[id_].materia.raw
    label = definition.get("label")
    removal_text = with_names(operations.remove_socket(design.document, id_).summary, session.names)
    form: DesignSlice = {
        "kind": "socket",
        "title": part(raw.get("label") or (label if is_text(label) else materia_id) or "no materia"),
        "sub": part(id_),
        "work": materia_kind(definition),
        "entry": design.document.get("entry") == id_,
        "isMarked": id_ in session.marked,
        "removes": shorten(removal_text.removeprefix("removed "), 300),
        "fields": [
            _id_field(session, pick, "All references to the socket are updated when its id changes."),
            *_fields(session, pick, SocketFields, raw),
        ],
        "ways": _edge_rows(design.document, facts, id_),
        "targets": [*facts.sockets, END],
        "conditions": _CONDITIONS,
        "json": pretty(raw),
    }
    if isinstance(materia_id, str) and materia_id in design.definitions:
        form["materia"] = _materia_form(session, facts, id_, materia_id)
    return form


def _materia_form(session: DesignState, facts: LoadoutFacts, socket: str, materia_id: str) -> DesignSlice:
    definition = as_object(session.design.definitions[materia_id])
    # The form keeps the id of the original, so that the first change does not replace the field with the focus.
    form_id = session.copied_from.get(materia_id, materia_id)
    return {
        "id": form_id,
        "work": materia_kind(definition),
        "users": session.users_of_materia(facts, socket),
        "fields": _fields(session, ("materia", form_id, socket), materia_model(definition), definition),
        "variables": [{"name": name, "about": about} for name, about in _prompt_variables(session, facts, socket)],
        "told": _prompts_at(session, socket) if materia_kind(definition) == "agent" else [],
    }


def _prompt_variables(session: DesignState, facts: LoadoutFacts, socket: str) -> list[tuple[str, str]]:
    """Return the variables that a prompt at this socket can use, each with a description."""
    variables = [*(_ITEM_VARIABLES if facts.sockets[socket].iterator is not None else ()), *_VARIABLES]
    for id_, owner in facts.sockets.items():
        variables += [(f"state.{target}", f"set by {session.name_of(id_)}") for _, target, _ in owner.assignments]
    return [(name, about) for name, about in dict(variables).items() if "}" not in name][:40]


def _prompts_at(session: DesignState, socket: str) -> list[DesignSlice]:
    """Return example prompts for the agent of a socket: for the first, second and last item, and for rework.

    If no example cast visits the socket, the prompt is computed as if the cast began there.
    """
    if not session.design.report.ok:
        return [{"words": "not yet", "about": "Fix the problems listed in the Problems tab first."}]
    try:
        accepted, reworked = (prompts.of(socket) for prompts in session.prompts)
    except MateriaError as error:
        return [{"words": "not known", "about": error.what}]
    rework = next((prompt for prompt in reworked if prompt.turn), None)
    labels = ("first item", "second", "last") if accepted and accepted[0].item else ("first visit",)
    labelled = [*zip(labels, [*accepted[:2], *accepted[2:][-1:]], strict=False)]
    labelled += [] if rework is None else [("sent back", rework)]
    if not labelled:
        rules = Rules(session.design.graph())
        state = entering.begin(rules, REQUEST, data={"workItems": [*ITEMS]})
        prompt, why_not = entering.preview(rules, state, socket)
        if prompt is None:
            return [{"words": "not visited", "about": why_not}]
        labelled = [("alone", VisitPrompt(1, socket, None, "", prompt, len(prompt.text), 0))]
    return [_prompt_slice(label, prompt) for label, prompt in labelled]


def _prompt_slice(label: str, prompt: VisitPrompt) -> DesignSlice:
    """Return a prompt, divided into its parts, with a note about each part that is shortened or omitted."""
    return {
        "words": label,
        "about": f"{prompt.characters:,} characters, about {prompt.tokens:,} tokens (one per four characters). "
        "The earlier answers in this example are invented and short.",
        "parts": [
            {
                "title": part.heading,
                "size": len(part.text),
                "tokens": estimate_tokens(len(part.text)),
                "share": round(len(part.text) / max(prompt.characters, 1), 3),
                "note": part.note,
                "text": part.text,
            }
            for part in prompt.prompt.parts
        ],
    }


def _edge_rows(document: Object, facts: LoadoutFacts, id_: str) -> list[DesignSlice]:
    """Return one row for each edge of a socket, in order, followed by the loop exits that start at the socket."""
    rows = [_edge_row("edge", id_, index, raw) for index, raw in enumerate(edges_of(document, "edge", id_))]
    for loop in facts.loops:
        for index, raw in enumerate(edges_of(document, "exit", loop.id)):
            if as_object(raw).get("from") == id_:
                rows.append({**_edge_row("exit", loop.id, index, raw), "place": None, "loop": loop.id})
    return rows


def _edge_row(kind: Kind, owner: str, index: int, raw: JSON) -> DesignSlice:
    """Return one row of a list of edges or exits."""
    when, to = (as_object(raw).get(name) for name in END_FIELDS[kind])
    limit = as_object(raw).get("maxTraversals") if kind == "edge" else None
    condition = condition_spec(when) if is_condition(when) else None
    return {
        "what": list(edge_selection(kind, owner, index)),
        "when": _text_of_value(when) if condition is None else condition.choice,
        "tone": "" if condition is None else condition.tone,
        "to": _text_of_value(to),
        "most": "" if limit is None else brief(limit),
        "place": index,
    }


def _text_of_value(value: JSON) -> str:
    return value if isinstance(value, str) else brief(value)


def _edge_form(session: DesignState, pick: Selection) -> DesignSlice:
    """Return the form of an edge or exit."""
    kind, document, (owner, index) = pick[0], session.design.document, owner_of(pick)
    if index is None:
        return {
            "kind": "oldExit",
            "title": f"exit of loop {part(owner)}",
            "sub": "legacy exit field",
            "sentence": "This is the legacy exit field, which also sets the advance. Remove the exit to delete it.",
            "fields": [],
            "json": pretty(raw_part(document, "loop", owner).get("exit")),
        }
    edges = edges_of(document, kind, owner)
    raw = as_object(edges[index])
    when, to = (raw.get(name) for name in END_FIELDS[kind])
    if kind == "edge":
        source, owner_text, exit_prefix = owner, f"from {session.name_of(owner)}", ""
        facts = session.facts
        loops = facts.sockets[source].loops
        leaves_loop = any(loop.iterates and to not in loop.members for loop in loops)
        conversion = "convert to an exit of the loop" if leaves_loop and to in (*facts.ids, END) else ""
    else:
        source, owner_text = str(raw.get("from")), f"of loop {part(owner)}"
        exit_prefix = f"After the last item of {part(owner)}: "
        conversion = "convert to an edge" if is_object(edges[index]) else ""
    condition = condition_spec(when).phrase if is_condition(when) else brief(when)
    traversals = raw.get("maxTraversals")
    limit = f", at most {brief(traversals)} times for each item" if traversals is not None else ""
    return {
        "kind": kind,
        "title": f"{session.name_of(source)} → {session.name_of(to)}",
        "sub": f"{kind} {index + 1} of {len(edges)} {owner_text}",
        "sentence": f"{exit_prefix}From {session.name_of(source)} {condition} to {session.name_of(to)}{limit}.",
        "first": index == 0,
        "last": index == len(edges) - 1,
        "turn": conversion,
        "fields": _fields(session, pick, EdgeFields if kind == "edge" else ExitRouteFields, raw),
        "json": pretty(edges[index]),
    }


def _loop_form(session: DesignState, of: Selection) -> DesignSlice:
    document, id_ = session.design.document, of[1]
    raw, members = raw_part(document, "loop", id_), members_of(document, id_)
    source = next((name for name in ("iterator", "consumes") if is_object(raw.get(name))), "")
    fields = [_id_field(session, of, "The ids of the exits do not change."), *_fields(session, of, LoopFields, raw)]
    if source:
        model: type[Model] = Consumes if source == "consumes" else IteratorFields
        fields += _fields(session, of, model, as_object(raw[source]), f"{source}.")
    exits = [
        {**_edge_row("exit", id_, index, route), "from": str(as_object(route).get("from"))}
        for index, route in enumerate(edges_of(document, "exit", id_))
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
        "conditions": _CONDITIONS,
        "json": pretty(raw),
    }


def materia_purpose(raw: Object) -> str:
    """Return the purpose of a materia in one line: its description, the start of its prompt, or its command."""
    for text in (raw.get("description"), raw.get("prompt")):
        if is_text(text):
            return shorten(" ".join(text.split()), 120)
    script = as_object(raw.get("script")).get("name")
    command = " ".join(str(argument) for argument in as_list(raw.get("command")))
    return shorten(str(script) if is_text(script) else " ".join(command.split()), 120)
