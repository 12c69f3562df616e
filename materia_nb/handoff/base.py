"""The contract of a handoff protocol: one abstract class, and the values that its methods take and return.

``read`` and ``ask`` are required. Every other method is optional; ``HandoffProtocol.has`` tells whether a class overrides it.
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
"""The text in every text field of a made-up output."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault of an output: its path, a message, a fix, and a code in protocols that have codes."""

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
        """The path, the message and the fix, in one line."""
        return f"{self.summary} Fix: {self.fix}."


@dataclass(frozen=True, slots=True)
class Requirements:
    """The required content of a socket's next output, derived from its place in the graph (R4, R7, R8, R9, R11).

    Attributes:
        parse: ``text`` accepts anything; everything below applies to ``json`` only.
        utility: True if a process answers, which may add fields of its own (R8).
        why_satisfied: the reason why ``satisfied`` is required; None if it is optional (R7).
        work_items: True if ``workItems`` is required (a generator).
        check_items: True if each work item must be exactly a title and a context (R9).
        fields: top-level fields that an agent may use.
        sources: ``$`` sources that must exist in the output, each after its assignment target (R8).
        only_guarded: True if every edge that an output can take asks for a verdict.
        sends_back: True if an edge leads back when the work is not satisfactory.
        streams: True if ``parallelSchedule`` is required, which divides the items into streams (a parallel generator).
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
    """A working directory, with a state and exports that the package passes on without reading them.

    ``cwd`` may be relative to the project; empty means the project.
    """

    id: str = "base"
    cwd: str = ""
    state: JSON = None
    exports: Mapping[str, JSON] = FrozenDict()

    def as_json(self) -> dict[str, JSON]:
        """Return the scope as utilities read it and the journal stores it."""
        return {**self._asdict(), "exports": dict(self.exports)}


BASE: Final = Scope()
"""The scope of a cast, or of a lane, until a utility changes it: the project."""


class Reading(NamedTuple):
    """The result of reading an output.

    Attributes:
        value: the parsed object (json), or the text itself (text); ``$`` sources read it.
        error: None if accepted, ``not_json`` or ``contract`` if refused.
        issues: every reason for a refusal; an accepted output has one only if it is
            well formed but reports that the work is not done.
        notes: warnings on an accepted output, such as prose around the object.
        satisfied: true, false, or None if the output has no verdict.
        context: text for the next socket, if any.
        work_items: the work items, if there are any.
        action: what the runtime does next; ``route`` follows the graph.
        target: the socket that a detour names.
        warnings: oddities that are no reason for a refusal.
        reason: why the action is not a plain ``route``, for a person.
        needs: what a ``pause`` waits for: approval of a command, a direction, an answer, or help.
        memory: the value of ``TurnFacts.memory`` for the next output of this socket; unchanged by a refused output.
        events: the events in the output, as written (R39).
        scope: the scope from now on, if a utility sets one (P8).
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
        """The result of the visit: refused, stopped until a person acts, or the verdict of the output."""
        if self.action in ("pause", "escalate"):
            return Result.STOPPED
        return Result.of(self.satisfied) if self.error is None else Result.REFUSED

    @property
    def accepted(self) -> bool:
        """True if the step can be completed with this output."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Facts that the runtime knows about a turn; every default means "not known".

    Attributes:
        meta: the runtime's own step_id, flow_key, agent_key and timestamp.
        agent_id: the runtime's id of the agent, for routing a repair.
        assignment: the assignment that the agent received before the turn.
        rounds: number of times that the loop was taken.
        max_rounds: maximum number of times that it may be taken.
        refused: number of refused outputs in this turn.
        memory: ``Reading.memory`` of the last accepted output; None at the start of a task.
        sockets: ids that a detour may name; None if not known.
        names: other names for a detour, materia and labels that are placed once, each with its socket (R51).
        changed_files: project files created or written since the visit began; only for a protocol that
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
"""No facts are known."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of an agent, for a protocol with assignments.

    Attributes:
        goal: the goal of the turn.
        agent_id: the runtime's id of the agent.
        loadout: name of the loadout.
        assignment: the socket's ``assignment`` as written in the loadout.
        knowledge: the project's knowledge, by section.
        session: id of the cast, "" if not known.
        provider: provider of the model that the loadout asks for, "" if it names none.
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
    """The last accepted output of an agent, and the agent's name for a person."""

    agent: str
    value: Mapping[str, JSON]


class WorkItem(NamedTuple):
    """A work item: its title, and the context needed to do it."""

    title: str
    context: str


@dataclass(frozen=True, slots=True)
class SimpleAnswer:
    """The content of a made-up answer or of a person's answer, in any format; absent parts are empty.

    Attributes:
        outcome: ``done`` and checked, ``accepted`` but not checked, to be done ``again``,
            ``open`` without a verdict, ``stuck`` if the agent needs help.
        findings: what was found.
        items: the work that is left.
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
        """Return a made-up answer with an outcome and ``count`` open work items."""
        items = tuple(WorkItem(f"Item {number + 1}", SAMPLE) for number in range(count))
        return cls(outcome, findings=SAMPLE, items=items, commands=commands, reason=SAMPLE, agent=agent)


class Pointer(NamedTuple):
    """A text that names a file, and the file's path relative to the project; None if the file does not exist."""

    text: str
    path: str | None = None


TextOrPointer: TypeAlias = str | Pointer
FindFile: TypeAlias = Callable[[str], str | None]
"""Returns the path, relative to the project, of a file that an output names; None if the file does not exist."""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table of an output's content.

    Cells may hold hostile text: they are escaped when they are shown.
    """

    title: str
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[TextOrPointer, ...], ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of_pairs(cls, title: str, pairs: Iterable[tuple[str, TextOrPointer]]) -> Self:
        """Return a table of names and values without the blank values."""
        rows = [(name, value) for name, value in pairs if not isinstance(value, str) or value.strip()]
        return cls(title, rows=tuple(rows))


class HandoffProtocol(ABC):
    """A handoff format: reads outputs and instructs agents.

    An instance has no state; the methods may be called from several threads.

    Attributes:
        name: the word that a socket's ``handoff`` names the protocol by.
        needs_facts: False if ``read`` and ``form`` ignore their ``facts``; none are then collected, which is faster.
        needs_changed_files: True if ``facts.changed_files`` is used; otherwise no files are compared.
        can_detour: True if an output may name any socket to run first.
        after_answer: instruction for an agent, below a person's answer to it.
    """

    name: str
    needs_facts: ClassVar[bool] = True
    needs_changed_files: ClassVar[bool] = False
    can_detour: ClassVar[bool] = False
    after_answer: ClassVar[str] = ""

    def has(self, method: str) -> bool:
        """Return True if the class overrides the optional ``method``."""
        return getattr(type(self), method) is not getattr(HandoffProtocol, method)

    # Outputs

    @abstractmethod
    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Find, parse and validate an output; never raises, whatever the text."""

    def schema(self, requirements: Requirements) -> dict[str, JSON] | None:
        """Return the JSON Schema that models are held to, which may be narrower than ``read``; None for a text socket."""
        return None

    def fields(self, requirements: Requirements) -> Mapping[str, str]:
        """Return the fields that a socket requires, each with a description; empty for a text socket."""
        return {}

    def artifacts(self, value: Mapping[str, JSON]) -> Sequence[str]:
        """Return the files that an accepted output claims to have produced; the cast reports missing files."""
        return ()

    def learn(
        self,
        value: Mapping[str, JSON],
        assignment: Mapping[str, JSON],
        knowledge: Mapping[str, JSON],
    ) -> KnowledgeUpdate:
        """Return the project's knowledge after an accepted output; ``assignment`` is that of its agent."""
        return KnowledgeUpdate(knowledge)

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """Return suggestions for the project's memory: a ``memory`` with description and body, or a ``note`` with a text."""
        return []

    def file_content(self, value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
        """Return the content of the file in ``<loadout>/handoffs/`` for an output; ``meta`` as in ``TurnFacts``."""
        raise NotImplementedError

    # Prompts

    @abstractmethod
    def ask(self, requirements: Requirements) -> str:
        """Return the instruction that describes the output; empty for a text socket."""

    def form(self, requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
        """Return the instruction for one turn, at most 600 characters, ``short`` 300; ``ask`` by default."""
        return self.ask(requirements)

    def assignment(self, task: Task) -> Mapping[str, JSON]:
        """Return the assignment that an agent's prompt contains."""
        raise NotImplementedError

    # Views

    def layout(self, value: Mapping[str, JSON], find: FindFile) -> list[Section]:
        """Return an output in sections, most important first; never raises. Empty: raw JSON is shown."""
        return []

    def status_sections(self, readings: Sequence[Reading]) -> list[Section]:
        """Return the statuses of a visit's outputs; empty if the format has none."""
        return []

    def conclusion(self, reports: Sequence[AgentReport]) -> list[str]:
        """Return the last lines of a complete cast; ``reports`` has one report for each agent and item."""
        return []

    # Answers of a person, a function or the explorer

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield outputs that may have an outcome, with ``count`` open work items, the likeliest first."""
        raise NotImplementedError

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield outputs that may stop the cast until a person acts."""
        raise NotImplementedError

    def write(self, value: Mapping[str, JSON]) -> str:
        """Return an output as an agent writes it."""
        raise NotImplementedError

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Return a person's answer, given by buttons and a table; without this method it is a sparse one."""
        raise NotImplementedError
