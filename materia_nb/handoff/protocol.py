"""What a handoff protocol is, what it is asked for, and the form of an answer.

What an output must be follows from the place of its socket in the graph and nothing else (R4, R7, R8, R9, R11). A reading says
what an output gives and what it means for the graph. The form is what is legal in a turn as one line to copy; its own words
are not an answer (R51).

The fields of a format are a table: how each is read, when it is missing, and what is told then, with a code and a fix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.file_io import read_own_table
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, compact, get_path
from materia_nb.loadout.graph import Socket
from materia_nb.loadout.vocabulary import (
    GROUP,
    GUARDS,
    OF_OUTPUTS,
    OWN_PROTOCOLS,
    SENDING_BACK,
    SIMPLE,
    Condition,
    Result,
    protocol_names,
)

_FIRST_FIELD = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


@lru_cache(maxsize=1024)
def reader(source: str) -> Callable[[JSON], JSON]:
    """Return a function that reads ``source`` from a parsed output; it gives MISSING where nothing is there.

    ``$`` and dotted paths such as ``$.a.b.0`` are read directly. Anything else is
    full JSONPath: one match gives the value, several give a list (R11).
    Raises MateriaError (kind ``assignment``) for an expression that is not JSONPath.
    """
    if SIMPLE.fullmatch(source):
        segments = source.split(".")[1:]
        return lambda value: get_path(value, segments)
    from jsonpath_ng.ext import parse

    try:
        expression = parse(source)
    except Exception as error:  # the library raises several unrelated types, bare Exception among them
        raise MateriaError(
            f"{source!r} is not a JSONPath expression: {error}",
            hint="write $, a dotted path such as $.plan.name, or full JSONPath such as $.items[*].title",
            kind="assignment",
        ) from error

    def read(value: JSON) -> JSON:
        try:
            matches = [match.value for match in expression.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return MISSING
        if not matches:
            return MISSING
        return matches[0] if len(matches) == 1 else matches

    return read


def first_field(source: str) -> str | None:
    """Name the top-level field that a ``$`` source opens for agents (R8); ``$`` itself opens none."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)


_CANONICAL = ("workItems", "satisfied", "context")
SCHEDULE: Final = "parallelSchedule"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the next output of a socket must hold.

    Attributes:
        parse: ``text`` accepts anything; everything below concerns ``json`` only.
        utility: whether a process answers, which may add fields of its own (R8).
        why_satisfied: why ``satisfied`` must be there, in words; None when it need not be (R7).
        work_items: whether ``workItems`` must be there (a generator).
        streams: whether ``parallelSchedule`` must be there, which hands the items to streams (a parallel generator).
        check_items: whether each work item must be exactly a title and a context (R9).
        fields: top-level fields that an agent may use.
        sources: the ``$`` sources that must exist in the output, with the assignment target of each (R8).
        only_guarded: whether the socket has edges for outputs and every one of them asks for a verdict.
        sends_back: whether an edge says where work goes that was not good enough.
    """

    parse: Literal["json", "text"]
    utility: bool
    why_satisfied: str | None
    work_items: bool
    check_items: bool
    fields: frozenset[str]
    sources: tuple[tuple[str, str], ...]
    only_guarded: bool = False
    sends_back: bool = True
    streams: bool = False


def requirements(socket: Socket) -> Requirements:
    """Derive what ``socket`` must return from its edges, advance, assignments and materia."""
    followed = [edge.when for edge in socket.edges if edge.when in OF_OUTPUTS]
    sources = tuple((target, source) for target, source in socket.assign if source.startswith("$"))
    return Requirements(
        parse=socket.parse,
        utility=socket.is_utility,
        why_satisfied=_why_satisfied(socket, followed),
        work_items=socket.is_generator,
        check_items=not socket.is_utility or socket.is_generator,
        streams=socket.materia.parallel,
        fields=frozenset((*_CANONICAL, *([SCHEDULE] if socket.materia.parallel else [])))
        | {name for _, source in sources if (name := first_field(source))},
        sources=sources,
        sends_back=any(edge.when in SENDING_BACK for edge in socket.edges),
        only_guarded=bool(followed) and all(when in GUARDS for when in followed),
    )


def _why_satisfied(socket: Socket, followed: Sequence[Condition]) -> str | None:
    """Say why ``satisfied`` must be there; ``followed`` are the conditions of the edges that an output can take."""
    guards = [when for when in followed if when in GUARDS]
    advance_guarded = socket.advance is not None and socket.advance.when in GUARDS
    if socket.is_utility and len(guards) < len(followed):
        guards, advance_guarded = [], False
    if guards:
        return "edges of this socket depend on it"
    if advance_guarded:
        return "going on to the next item depends on it"
    if not socket.is_utility and any(first_field(source) == "satisfied" for _, source in socket.assign):
        return "an assignment reads it"
    return None


EVENT_SEVERITIES: Final = ("debug", "info", "warning", "error", "critical")
"""How grave an event may be that an output tells, the gravest last; one that does not say so is ``info``."""

_TOLD: Final = 40


class RefusedAnswer(MateriaError):
    """An answer was not taken; ``issues`` are all the reasons, each with path, message and what to do."""

    def __init__(self, what: str, issues: Sequence[Issue], kind: str = "refused_answer") -> None:
        self.issues = tuple(issues)
        first, *others = issues
        if not others:
            super().__init__(f"{what} {first.message}", where=first.path, hint=first.fix, kind=kind)
            return
        lines = [f"  {issue.line}" for issue in issues[:_TOLD]]
        if len(issues) > _TOLD:
            lines.append(f"  and {len(issues) - _TOLD} more of this sort")
        super().__init__(what, more=lines, kind=kind)


Reaction: TypeAlias = Literal["route", "reissue", "pause", "escalate", "detour", "reject"]
Refusal: TypeAlias = Literal["not_json", "contract"]
Needs: TypeAlias = Literal["consent", "direction", "question", "help"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an output: where, what, and what to do."""

    path: str
    message: str
    fix: str
    code: str | None = None

    @property
    def told(self) -> str:
        """Where and what, without a way out."""
        return f"{self.path}: {self.message}"

    @property
    def line(self) -> str:
        """Where, what, and what to do, in one line."""
        return f"{self.told} To mend it: {self.fix}."


_ISSUES: Final = read_own_table(__file__, "issues.toml")


def issue_of(code: str, about: object = None, **named: object) -> Issue:
    """Make the issue of a code with the words that the table has for it; ``about`` stands behind the code."""
    path, message, fix = (_ISSUES[code][part].format_map(named) for part in ("path", "message", "fix"))
    return Issue(path, message, fix, code if about is None else f"{code}:{about}")


def in_brief(issues: Sequence[Issue], most: int = 8) -> str:
    """Return where the first ``most`` issues are and what they are, in one line."""
    return "; ".join(issue.told for issue in issues[:most])


class Scope(NamedTuple):
    """A directory to work in, and what is carried along with it, which nothing here interprets.

    ``cwd`` may be relative to the project; empty it is the project itself.
    """

    id: str = "base"
    cwd: str = ""
    state: JSON = None
    exports: Mapping[str, JSON] = FrozenDict()

    def as_json(self) -> dict[str, JSON]:
        """Return it as utilities read it and the journal keeps it."""
        return {**self._asdict(), "exports": dict(self.exports)}


BASE: Final = Scope()
"""The scope of a cast, and of a lane, that no utility has changed: the project."""


class Reading(NamedTuple):
    """What a protocol made of an output.

    Attributes:
        value: the parsed object (json), or the text itself (text); what ``$`` reads.
        error: None when accepted, ``not_json`` or ``contract`` when refused.
        issues: why it was refused, all of them; an accepted output has one only when it is
            well formed but says itself that the work is not done.
        notes: remarks on an accepted output, such as prose around the object.
        satisfied: true, false, or None when the output says neither.
        context: text for the next socket, if any.
        work_items: the work items, if any were given.
        action: what the runtime does next; ``route`` follows the graph.
        target: the socket that a detour names.
        warnings: what is odd about the output without being a reason to refuse it.
        reason: why the action is not a plain ``route``, in words for a person.
        needs: what a ``pause`` waits for: consent to a command, a direction, an answer, or help.
        memory: what the protocol wants to be given back with the next output of this socket
            (``TurnFacts.memory``); unchanged by an output that is refused.
        events: what the output tells beside its handoff, each as it was given (R39).
        scope: where to go on working, as a utility says (P8); None where it does not.
    """

    value: JSON
    error: Refusal | None = None
    issues: tuple[Issue, ...] = ()
    notes: tuple[str, ...] = ()
    satisfied: bool | None = None
    context: str | None = None
    work_items: JSON = None
    action: Reaction = "route"
    target: str | None = None
    warnings: tuple[Issue, ...] = ()
    reason: str = ""
    needs: Needs | None = None
    memory: JSON = None
    events: tuple[Mapping[str, JSON], ...] = ()
    scope: Scope | None = None

    @property
    def result(self) -> Result:
        """What happened to the visit: refused, stopped until a person has spoken, or what its output says."""
        if self.action in ("pause", "escalate"):
            return Result.STOPPED
        return Result.of(self.satisfied) if self.error is None else Result.REFUSED

    @property
    def accepted(self) -> bool:
        """Whether the step can be completed with this output."""
        return self.error is None


def verdict(
    satisfied: bool | None, action: Reaction = "route", reason: str = "", *, needs: Needs | None = None
) -> Reading:
    """Return a reading that says where an output leads and why; what it gives is filled in by whoever read it."""
    return Reading(None, satisfied=satisfied, action=action, reason=reason, needs=needs)


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What the runtime knows of a turn beside its socket; every default means "not known".

    Attributes:
        meta: the runtime's own step_id, flow_key, agent_key and timestamp.
        agent_id: the runtime's name of the agent, for routing a repair.
        given: the envelope that the agent was given before the turn.
        rounds: how often the loop was taken already.
        most_rounds: how often it may be taken.
        refused: how many outputs of this turn were refused already.
        memory: ``Reading.memory`` of the last accepted output; None at the start of a task.
        sockets: the ids that a detour may name; None when not known.
        names: what else a detour may name, the materia and labels that are placed once, each with its socket (R51).
        changed_files: the files of the project that were made or written since the visit began, as the
            runtime saw it; only for a protocol that :class:`SeesChanges`.
    """

    meta: Mapping[str, str] = field(default_factory=dict)
    agent_id: str = ""
    given: Mapping[str, JSON] = field(default_factory=dict)
    rounds: int = 0
    most_rounds: int = 3
    refused: int = 0
    memory: JSON = None
    sockets: frozenset[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()


UNKNOWN: Final = TurnFacts()
"""Nothing is known of the turn."""


class HandoffProtocol(Protocol):
    """A handoff format: how an output is read and what its author is asked for.

    It may have any of the capabilities of ``materia_nb.handoff.capabilities`` too, and is then used as that.
    """

    @property
    def name(self) -> str:
        """The word that a socket's ``handoff`` names it by."""
        ...

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Find, parse and validate ``text``; never raises, whatever the text."""
        ...

    def ask(self, wanted: Requirements) -> str:
        """Return the prompt layer that says what must be returned; empty for a text socket."""
        ...


Outcome: TypeAlias = Literal["done", "accepted", "again", "open", "stuck"]

NO_REASON: Final = "No reason was given."
"""Written where a format requires a text and none was given."""


class Piece(NamedTuple):
    """A piece of work that is left: its title, and what one needs to know to do it."""

    title: str
    context: str


@dataclass(frozen=True, slots=True)
class SimpleAnswer:
    """The content of a made-up answer or of a person's answer, in any format; a field is empty where nothing was given.

    Attributes:
        outcome: ``done`` and checked, ``accepted`` but not checked, to be done ``again``,
            ``open`` without a verdict, ``stuck`` when the agent needs help.
        found: the findings.
        pieces: the work that is left.
        commands: the commands that were run.
        reason: the reason for the outcome.
        agent: the id of the agent that answers.
    """

    outcome: Outcome = "open"
    found: str = ""
    pieces: tuple[Piece, ...] = ()
    commands: tuple[str, ...] = ()
    reason: str = ""
    agent: str = ""


SAMPLE: Final = "x"
"""What stands for any text in an answer that is made up."""


def sample_answer(
    outcome: Outcome, count: int, *, commands: tuple[str, ...] = (), agent: str = ""
) -> SimpleAnswer:
    """Return a made-up answer with an outcome and ``count`` pieces of work that are left."""
    pieces = tuple(Piece(f"Item {number + 1}", SAMPLE) for number in range(count))
    return SimpleAnswer(outcome, found=SAMPLE, pieces=pieces, commands=commands, reason=SAMPLE, agent=agent)


def without_backticks(value: Mapping[str, JSON]) -> str:
    """Write an object as JSON in which backticks are escaped, so that none opens or ends a fence."""
    return compact(value).replace("`", "\\u0060")


TEXT: Final[JSON] = {"type": "string"}
ANYTHING: Final[JSON] = {}
"""Any value at all; only an assignment says what it reads from it."""


def closed_object(fields: Mapping[str, JSON], optional: tuple[str, ...] = ()) -> dict[str, JSON]:
    """Describe an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def listed_as(entry: JSON) -> dict[str, JSON]:
    """Describe a list whose entries are all of one form."""
    return {"type": "array", "items": entry}


def one_of(words: tuple[str, ...]) -> dict[str, JSON]:
    """Describe a string that is one of these words."""
    return {"type": "string", "enum": list(words)}


WORK_IS_OVER: Final = "Your work on this step is over. Do no further work; say what you did and found."
"""What the turn begins with that asks for a handoff, after the work and in the same conversation."""

_SHOWN: Final = 20
"""How many entries of a list are named; the whole list stays in the recorded output."""


def one_line(text: str) -> str:
    """Return the text with its white space collapsed."""
    return " ".join(text.split())


def as_text(value: JSON) -> str:
    """Return a string as it is, anything else as JSON on one line."""
    return value if isinstance(value, str) else compact(value)


def labelled(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield one line that names the entries, blank ones left out; nothing when there are none."""
    kept = [one_line(entry) for entry in entries if entry.strip()]
    if kept:
        more = f" and {len(kept) - _SHOWN} more" if len(kept) > _SHOWN else ""
        yield f"{title}: {'; '.join(kept[:_SHOWN])}{more}"


def listed(issues: Iterable[Issue]) -> str:
    """Return what an agent is told of its issues, a line each."""
    return "\n".join(f"- {issue.code or issue.path}: {issue.message} {issue.fix}." for issue in issues)


def missing_sources(value: JSON, wanted: Requirements, told: Collection[str] = ()) -> Iterator[Issue]:
    """Yield an issue for each ``$`` source of the socket that ``value`` lacks, except those in ``told``.

    The work items of a generator are always assigned and told of by its protocol (R4).
    """
    seen = {*told, *(("$.workItems",) if wanted.work_items else ())}
    for target, source in wanted.sources:
        if source not in seen and reader(source)(value) is MISSING:
            seen.add(source)
            yield Issue(
                source,
                f"{source} is missing: it is assigned to state.{target}.",
                "add it; null is a value too",
            )


_OWN: Final = {
    name: EntryPoint(name, f"materia_nb.handoff.{own.place}", GROUP) for name, own in OWN_PROTOCOLS.items()
}


@cache
def protocol(name: str) -> HandoffProtocol:
    """Return the protocol of that name, loading it on first use.

    An entry point names a class, made without arguments, or a ready object. The names of
    our own protocols cannot be taken.
    Raises MateriaError: kind ``unknown_protocol`` when nobody offers the name, kind
    ``broken_protocol`` when what is offered cannot be loaded, is not a protocol, or when two
    packages offer the name.
    """
    if name in _OWN:
        return _load(_OWN[name])
    offers = list(entry_points(group=GROUP, name=name))
    if not offers:
        raise MateriaError(
            f"There is no handoff protocol {name!r}.",
            hint=did_you_mean(name, protocol_names()),
            kind="unknown_protocol",
        )
    if len({entry.value for entry in offers}) > 1:
        raise _broken(offers, "several packages offer it")
    return _load(offers[0])


def _load(entry: EntryPoint) -> HandoffProtocol:
    try:
        found = entry.load()
        made = found() if isinstance(found, type) else found
    except Exception as error:
        raise _broken([entry], f"it cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "read", None)) or not callable(getattr(made, "ask", None)):
        raise _broken([entry], "it has no read or no ask")
    if getattr(made, "name", None) != entry.name:
        raise _broken([entry], f"it calls itself {getattr(made, 'name', None)!r}")
    return cast("HandoffProtocol", made)


def _broken(offers: Sequence[EntryPoint], why: str) -> MateriaError:
    packages = sorted({entry.dist.name for entry in offers if entry.dist})
    return MateriaError(
        f"The handoff protocol {offers[0].name!r} is not usable: {why}.",
        where=", ".join(sorted({entry.value for entry in offers})),
        hint=f"correct or uninstall {' or '.join(packages) or 'the package that offers it'}",
        kind="broken_protocol",
    )


LONGEST_FORM: Final = 600
LONGEST_SHORT_FORM: Final = 300
"""How many characters a form may have, and the one of a later turn of the same conversation (R50, R51)."""
FORM_WORDS: Final = "form_words"
_BLANK = re.compile(r"<?(?:\.{3}|…)>?|<[^\W\d][\w,'-]*(?: [\w,'-]+)+>?")
"""The dots of an example, or nothing but words after ``<``: a form's own, or a weak model's variation of it."""


@runtime_checkable
class FormsByTurn(Protocol):
    """A protocol that asks for what is legal in this very turn; others ask for the same in each."""

    def form(self, wanted: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
        """Return what the agent is told to return, at most 600 characters, ``short`` 300; empty for a text socket."""
        ...


@runtime_checkable
class ResumesAfterAnswers(Protocol):
    """A protocol in which an agent that a person has answered must report in a certain way next."""

    @property
    def after_answer(self) -> str:
        """What the agent is told behind the answer."""
        ...


def within(lines: Sequence[str], most: int) -> str:
    """Join lines, the last ones left out as far as they do not fit; the first is always there."""
    kept, room = list(lines[:1]), most - len(lines[0])
    for line in filter(None, lines[1:]):
        if len(line) + 1 <= room:
            kept.append(line)
            room -= len(line) + 1
    return "\n".join(kept)


def as_many(start: str, entries: Sequence[str], room: int) -> str:
    """List as many entries behind ``start`` as there is room for; empty where not even the first one fits."""
    for count in range(len(entries), 0, -1):
        more = "." if count == len(entries) else ", …"
        line = f"{start}{', '.join(entries[:count])}{more}"
        if len(line) <= room:
            return line
    return ""


def form_words(value: JSON, words: Collection[str], path: str = "$") -> Iterator[Issue]:
    """Yield an issue for each field of an answer that still holds the form's own words, words like them, or dots."""
    if isinstance(value, str):
        text = value.strip()
        if text in words or _BLANK.fullmatch(text):
            yield Issue(
                path,
                f"This is the text of a form, {text!r:.200}, and no answer.",
                "write what it asks for, or leave the field out if it may be left out",
                FORM_WORDS,
            )
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from form_words(child, words, f"{path}.{name}")
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from form_words(child, words, f"{path}.{place}")


_FieldKind: TypeAlias = Literal["any", "word", "text", "texts", "flag", "numbers", "object", "objects"]
MOST_NOTED: Final = 1000
"""How many issues are kept; a reply of a megabyte could have a million, which nobody reads."""
_MOST_SHOWN: Final = 100
"""How many characters of a wrong word a code shows."""


def is_null(value: JSON) -> bool:
    """Whether it is null, or not there."""
    return value is None


def is_missing(value: JSON) -> bool:
    """Whether a field counts as absent: not there, null, or an empty string."""
    return value is None or value == ""


def is_blank(value: JSON) -> bool:
    """Whether there is no text, or one of white space alone."""
    return value is None or (isinstance(value, str) and not value.strip())


def no_object(value: JSON) -> bool:
    """Whether there is no object, or an empty one."""
    return not isinstance(value, dict) or not value


class HandoffField(NamedTuple):
    """One field of an object.

    Attributes:
        kind: how it is read. ``any`` and ``word`` without ``typed`` take every JSON value; others refuse a wrong type
            (``TYPE:path``).
        missing: the code of one that lacks, "" where it may be left out; ``{place}`` stands for the place in a list.
        fix: what to do about one that lacks.
        lacks: when it counts as missing; left out, as others of its kind.
        words: what a word may be, after ``fold``; another one has the issue ``code``, and what it was.
        typed: whether a word must be a string; one that only folding makes right is told as a warning.
        fields: those of the object, or of each object in the list.
        demands: whether the fields of an object that lacks are missing too.
        optional: whether a schema lets it out.
    """

    kind: _FieldKind = "any"
    missing: str = ""
    fix: str = "add it"
    lacks: Callable[[Any], bool] | None = None
    words: tuple[str, ...] = ()
    code: str = ""
    fold: Callable[[Any], JSON] = lambda value: value
    typed: bool = True
    fields: Mapping[str, HandoffField] = {}
    demands: bool = False
    optional: bool = False


Fields: TypeAlias = Mapping[str, HandoffField]
_KINDS: Final[Mapping[_FieldKind, tuple[type, str, object, Callable[[Any], bool]]]] = {
    "any": (object, "", None, is_missing),
    "word": (object, "", "", is_missing),
    "text": (str, "a string", "", is_blank),
    "texts": (list, "a list of strings", (), is_null),
    "flag": (bool, "true or false", None, is_null),
    "numbers": (dict, "an object", None, is_null),
    "object": (dict, "an object", None, is_null),
    "objects": (list, "a list of objects", (), is_null),
}
"""What each kind of field must be, in words too, what stands for one that is not there, and when it is not."""


class Checker:
    """Reads objects by their fields and collects issues and warnings; a path is written ``summary.evidence``."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def refuse(self, code: str, path: str, message: str, fix: str) -> None:
        """Note a reason to refuse the object."""
        if len(self.issues) < MOST_NOTED:
            self.issues.append(_issue(code, path, message, fix))

    def warn(self, code: str, path: str, message: str, fix: str) -> None:
        """Note something odd that is no reason to refuse the object."""
        if len(self.warnings) < MOST_NOTED:
            self.warnings.append(_issue(code, path, message, fix))

    def read(
        self, owner: Mapping[str, JSON], fields: Fields, path: str = "", place: int = 0
    ) -> dict[str, Any]:
        """Return the fields of an object by name, those that cannot be read as nothing of their kind."""
        return {
            name: self._field(owner.get(name), field, f"{path}{name}", place)
            for name, field in fields.items()
        }

    def _field(self, value: JSON, field: HandoffField, path: str, place: int) -> Any:
        wanted, words, nothing, is_none = _KINDS[field.kind]
        lacks = (field.lacks or is_none)(value)
        if lacks and field.missing:
            fix = f"write one of {', '.join(field.words)}" if field.words else field.fix
            self.refuse(field.missing.format(place=place), path, f"{path} is missing.", fix)
        if field.kind == "object":
            read = self if isinstance(value, dict) or field.demands else Checker()
            inside = value if lacks or self._is(value, wanted, path, words) else None
            return read.read(inside or {}, field.fields, f"{path}.")
        if lacks or (wanted is not object and not self._is(value, wanted, path, words)):
            return value if field.kind == "any" else nothing
        if field.kind == "word":
            return self._word(value, field, path)
        return self._entries(value, field, path) if isinstance(value, list) and field.kind != "any" else value

    def _entries(self, value: list[JSON], field: HandoffField, path: str) -> tuple[Any, ...]:
        """The entries of a list that are what they should be."""
        of, words = (str, "a string") if field.kind == "texts" else (dict, "an object")
        kept = [(n, one) for n, one in enumerate(value) if self._is(one, of, f"{path}[{n}]", words)]
        if field.kind == "texts":
            return tuple(text for _, text in kept)
        return tuple(self.read(one, field.fields, f"{path}[{n}].", n) for n, one in kept)

    def _is(self, value: JSON, wanted: type, path: str, words: str) -> bool:
        if not isinstance(value, wanted):
            self.refuse(f"TYPE:{path}", path, f"{path} is not {words}.", f"write {words}")
        return isinstance(value, wanted)

    def _word(self, value: JSON, field: HandoffField, path: str) -> JSON:
        if field.typed and not self._is(value, str, path, "a string"):
            return ""
        word, choices = field.fold(value), ", ".join(field.words)
        if word not in field.words:
            shown = str(value).strip()[:_MOST_SHOWN] if field.typed else str(word)[: 2 * _MOST_SHOWN]
            self.refuse(
                f"{field.code}:{shown}", path, f"{path} is none of {choices}.", f"write one of {choices}"
            )
            return ""
        if field.typed and word != value:
            self.warn(f"{field.code}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
        return word


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)


def schema_of(fields: Fields) -> dict[str, JSON]:
    """Describe an object of these fields as a JSON Schema."""
    optional = tuple(name for name, field in fields.items() if field.optional)
    return closed_object({name: _schema(field) for name, field in fields.items()}, optional=optional)


def _schema(field: HandoffField) -> JSON:
    made: dict[_FieldKind, Callable[[], JSON]] = {
        "any": dict,
        "word": lambda: one_of(field.words),
        "text": lambda: TEXT,
        "texts": lambda: listed_as(TEXT),
        "flag": lambda: {"type": "boolean"},
        "numbers": lambda: {"type": "object", "additionalProperties": {"type": "number"}},
        "object": lambda: schema_of(field.fields),
        "objects": lambda: listed_as(schema_of(field.fields)),
    }
    return made[field.kind]()
