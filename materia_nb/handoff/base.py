"""The interface of a handoff protocol: an abstract class, and the types of its arguments and results.

``read`` and ``ask`` are required. Every other method is optional; ``HandoffProtocol.overridden`` contains the names of
the methods that a class overrides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

from materia_nb.jsonvalue import JSON, FrozenDict
from materia_nb.loadout.vocabulary import Result

Reaction: TypeAlias = Literal["route", "reissue", "pause", "escalate", "detour", "reject"]
Refusal: TypeAlias = Literal["not_json", "contract"]
Needs: TypeAlias = Literal["approval", "direction", "question", "help"]
Outcome: TypeAlias = Literal["done", "accepted", "again", "open", "stuck"]
SuggestionKind: TypeAlias = Literal["memory", "note"]

EVENT_SEVERITIES: Final = ("debug", "info", "warning", "error", "critical")
"""Severities of an event in an output, lowest first; the default is ``info``."""
SAMPLE: Final = "x"
"""Placeholder in the text fields of a made-up output."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A fault in an output, with the path to the faulty part, a message, a fix and, in some protocols, a code."""

    path: str
    message: str
    fix: str
    code: str | None = None

    @property
    def summary(self) -> str:
        """The path and the message, without the fix."""
        return f"{self.path}: {self.message}"

    @property
    def line(self) -> str:
        """The path, the message and the fix, on one line."""
        return f"{self.summary} Fix: {self.fix}."


@dataclass(frozen=True, slots=True)
class Requirements:
    """The required content of a socket's next output, derived from its socket in the graph (R4, R7, R8, R9, R11).

    Attributes:
        parse: ``text`` accepts any output; the attributes below apply only to ``json``.
        utility: True if the output comes from a process, which may add its own fields (R8).
        why_satisfied: the reason why ``satisfied`` is required; None if it is optional (R7).
        work_items: True if ``workItems`` is required, because the socket is a generator.
        check_items: True if each work item must have exactly a title and a context (R9).
        fields: top-level fields that an agent may use.
        sources: pairs of an assignment target and its ``$`` source, which must exist in the output (R8).
        only_guarded: True if every edge that an output can follow depends on the verdict.
        sends_back: True if an edge is taken when the work is not satisfactory.
        streams: True if ``parallelSchedule`` is required, which assigns the items of a parallel generator to streams.
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


class Scope(NamedTuple):
    """A working directory, with additional data (``state`` and ``exports``) that this package passes on unchanged.

    ``cwd`` can be relative to the project; empty means the project.
    """

    id: str = "base"
    cwd: str = ""
    state: JSON = None
    exports: Mapping[str, JSON] = FrozenDict()

    def as_json(self) -> dict[str, JSON]:
        """Return the scope as JSON, for utilities and the journal."""
        return {**self._asdict(), "exports": dict(self.exports)}


BASE: Final = Scope()
"""The scope of a cast or lane before a utility changes it: the project directory."""


class Reading(NamedTuple):
    """The result of reading an output.

    Attributes:
        value: the parsed object (json), or the text itself (text); ``$`` sources refer to this value.
        error: the kind of refusal, ``not_json`` or ``contract``; None if the output is accepted.
        issues: all reasons for a refusal. An accepted output has issues only if it is well formed but reports
            unfinished work.
        notes: warnings on an accepted output, such as prose around the object.
        satisfied: the verdict; None if the output has no verdict.
        context: text for the next socket, if any.
        work_items: the work items, if there are any.
        action: what the runtime does next; ``route`` follows the graph.
        target: the socket that should run as a detour.
        warnings: faults that do not cause a refusal.
        reason: reason for an action other than a plain ``route``, as text for a person.
        needs: what the agent needs before it can continue after a ``pause``: approval of a command, a direction, an
            answer, or help.
        memory: the value of ``TurnFacts.memory`` for the next output of this socket; unchanged by a refused output.
        events: the events in the output, unchanged (R39).
        scope: the new scope, if a utility sets one (P8).
    """

    value: JSON = None
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
        """The result of the visit: refused, stopped for a person, or the verdict of the output."""
        if self.action in ("pause", "escalate"):
            return Result.STOPPED
        return Result.of(self.satisfied) if self.error is None else Result.REFUSED

    @property
    def accepted(self) -> bool:
        """True if the output can complete the step."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Facts about a turn that the runtime passes to a protocol. Each attribute defaults to a value that means unknown.

    Attributes:
        meta: the step_id, flow_key, agent_key and timestamp from the runtime.
        agent_id: the id that the runtime gave the agent; a repair turn is sent to this id.
        assignment: the assignment that the agent received before the turn.
        rounds: number of times that the socket has sent work back.
        max_rounds: maximum number of times that the socket may send work back.
        refused: number of refused outputs in this turn.
        memory: ``Reading.memory`` of the last accepted output; None at the start of a task.
        sockets: ids of the sockets that a detour may name; None if not known.
        names: other names that a detour may use, mapped to socket ids: each materia or label that belongs to exactly
            one socket (R51).
        changed_files: project files created or written since the visit began; empty unless the protocol sets
            ``needs_changed_files``.
    """

    meta: Mapping[str, str] = field(default_factory=dict)
    agent_id: str = ""
    assignment: Mapping[str, JSON] = field(default_factory=dict)
    rounds: int = 0
    max_rounds: int = 3
    refused: int = 0
    memory: JSON = None
    sockets: frozenset[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()


UNKNOWN: Final = TurnFacts()
"""Turn facts in which every fact is unknown."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of an agent, for a protocol with assignments.

    Attributes:
        goal: the goal of the turn.
        agent_id: the id that the runtime gave the agent.
        loadout: name of the loadout.
        assignment: the socket's ``assignment`` as written in the loadout.
        knowledge: the project's knowledge, by section.
        session: id of the cast, "" if not known.
        provider: provider of the model that the loadout asks for, "" if the loadout does not name a provider.
    """

    goal: str
    agent_id: str
    loadout: str
    assignment: Mapping[str, JSON] = field(default_factory=dict)
    knowledge: Mapping[str, JSON] = field(default_factory=dict)
    session: str = ""
    provider: str = ""


class KnowledgeUpdate(NamedTuple):
    """The project's knowledge after an accepted output, and warnings about refused updates."""

    knowledge: Mapping[str, JSON]
    warnings: tuple[Issue, ...] = ()


class AgentReport(NamedTuple):
    """The last accepted output of an agent, with the agent's display name."""

    agent: str
    value: Mapping[str, JSON]


class WorkItem(NamedTuple):
    """A work item: its title, and the context needed to do it."""

    title: str
    context: str


@dataclass(frozen=True, slots=True)
class SimpleAnswer:
    """The content of a made-up answer or of a person's answer, independent of the format; missing parts are empty.

    Attributes:
        outcome: ``done`` (finished and checked), ``accepted`` (not checked), ``again`` (must be redone),
            ``open`` (no verdict) or ``stuck`` (the agent needs help).
        findings: the findings.
        items: the remaining work.
        commands: the commands that were run.
        reason: the reason for the outcome.
        agent: the id of the agent that answers.
    """

    outcome: Outcome = "open"
    findings: str = ""
    items: tuple[WorkItem, ...] = ()
    commands: tuple[str, ...] = ()
    reason: str = ""
    agent: str = ""

    @classmethod
    def sample(cls, outcome: Outcome, count: int, *, commands: tuple[str, ...] = (), agent: str = "") -> Self:
        """Return a made-up answer with this outcome and ``count`` open work items."""
        items = tuple(WorkItem(f"Item {number + 1}", SAMPLE) for number in range(count))
        return cls(outcome, findings=SAMPLE, items=items, commands=commands, reason=SAMPLE, agent=agent)


class Pointer(NamedTuple):
    """A text that names a file.

    ``path`` is the file's path relative to the project, or None if the file does not exist.
    """

    text: str
    path: str | None = None


TextOrPointer: TypeAlias = str | Pointer
FindFile: TypeAlias = Callable[[str], str | None]
"""A function that returns the project path of a file named in an output, or None if the file does not exist."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an output as shown to a person: a title with a table or lines.

    The content may contain hostile text, which is escaped when it is shown.
    """

    title: str
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[TextOrPointer, ...], ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of_pairs(cls, title: str, pairs: Iterable[tuple[str, TextOrPointer]]) -> Self:
        """Return a section with a row for each name whose value is not blank."""
        rows = [(name, value) for name, value in pairs if not isinstance(value, str) or value.strip()]
        return cls(title, rows=tuple(rows))


class HandoffProtocol(ABC):
    """A handoff format, which reads outputs and tells agents how to write them.

    An instance has no state; the methods may be called from several threads.

    Attributes:
        name: name of the protocol in a socket's ``handoff``.
        needs_facts: False if ``read`` and ``form`` ignore ``facts``; facts are then not collected, which is faster.
        needs_changed_files: True if the protocol uses ``facts.changed_files``; otherwise files are not compared.
        can_detour: True if an output may choose any socket to run next, as a detour.
        after_answer: instruction for an agent, appended to a person's answer.
        overridden: the names of the methods and attributes that the class overrides.
    """

    name: str
    needs_facts: ClassVar[bool] = True
    needs_changed_files: ClassVar[bool] = False
    can_detour: ClassVar[bool] = False
    after_answer: ClassVar[str] = ""
    overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Store the names of the overridden methods and attributes in ``overridden``."""
        public = {name: value for name, value in vars(HandoffProtocol).items() if not name.startswith("_")}
        cls.overridden = frozenset(name for name, value in public.items() if getattr(cls, name) is not value)

    # Outputs

    @abstractmethod
    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Find, parse and check the output in a text. Never raises."""

    def schema(self, requirements: Requirements) -> dict[str, JSON] | None:
        """Return the JSON Schema for structured output; None for a text socket.

        The schema may be stricter than ``read``.
        """
        return None

    def fields(self, requirements: Requirements) -> Mapping[str, str]:
        """Return the fields that a socket requires, each with a description; empty for a text socket."""
        return {}

    def artifacts(self, value: Mapping[str, JSON]) -> Sequence[str]:
        """Return the files that the agent claims to have produced. The cast reports files that do not exist."""
        return ()

    def learn(
        self,
        value: Mapping[str, JSON],
        assignment: Mapping[str, JSON],
        knowledge: Mapping[str, JSON],
    ) -> KnowledgeUpdate:
        """Return the project's knowledge after an accepted output.

        ``assignment`` is the assignment that the agent received.
        """
        return KnowledgeUpdate(knowledge)

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """Return an output's suggestions for the project's memory: ``memory`` (description, body) or ``note`` (text)."""
        return []

    def file_content(self, value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
        """Return the content of an output's file in the folder ``handoffs``. ``meta`` is ``TurnFacts.meta``."""
        raise NotImplementedError

    # Prompts

    @abstractmethod
    def ask(self, requirements: Requirements) -> str:
        """Return an instruction that describes the required output; empty for a text socket."""

    def form(self, requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
        """Return the instructions for one turn: at most 600 characters, or 300 if ``short``. The default is ``ask``."""
        return self.ask(requirements)

    def assignment(self, task: Task) -> Mapping[str, JSON]:
        """Return the assignment to put into an agent's prompt."""
        raise NotImplementedError

    # Views

    def layout(self, value: Mapping[str, JSON], find: FindFile) -> list[Section]:
        """Return the sections that show an output to a person, most important first. Never raises.

        If there are no sections, the raw JSON is shown.
        """
        return []

    def status_sections(self, readings: Sequence[Reading]) -> list[Section]:
        """Return sections with the statuses of a visit's outputs; empty if the format has no statuses."""
        return []

    def conclusion(self, reports: Sequence[AgentReport]) -> list[str]:
        """Return the closing lines of a complete cast. ``reports`` has one report for each pair of agent and item."""
        return []

    # Answers of a person, a function or the explorer

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield made-up outputs that can lead to this outcome, with ``count`` open work items, the most likely first."""
        raise NotImplementedError

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield made-up outputs that can stop the cast until a person acts."""
        raise NotImplementedError

    def write(self, value: Mapping[str, JSON]) -> str:
        """Return an output as text, as an agent would write it."""
        raise NotImplementedError

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Return a person's answer, entered with buttons and a table, as the text of an output.

        A protocol without this method uses the sparse format.
        """
        raise NotImplementedError
