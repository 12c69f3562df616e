"""Defines the interface of a handoff protocol: an abstract class, and the types of its arguments and results.

A protocol must implement ``read`` and ``ask``. All other methods are optional; ``HandoffProtocol.overridden`` contains
the names of the methods that a class overrides.
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
"""Severities of an event in an output, in ascending order; the default is ``info``."""
SAMPLE: Final = "x"
"""Value of the text fields in a sample output."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem in an output.

    Attributes:
        path: the path of the invalid value, such as ``$.workItems.0.title``.
        message: a sentence that describes the problem.
        fix: an imperative phrase, without a full stop, that describes how to fix the problem.
        code: a code that identifies the kind of problem; None if the protocol does not define codes.
    """

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
    """The requirements for an output, which follow from the socket's edges and assignments (R4, R7-R9, R11).

    Attributes:
        parse: the format of the output. Any output is valid for ``text``, and the other attributes apply only to
            ``json``.
        utility: True if the output comes from a utility, which may add its own fields (R8).
        why_satisfied: the reason why the field ``satisfied`` is required; None if it is optional (R7).
        work_items: True if the field ``workItems`` is required, because the socket is a generator.
        check_items: True if each work item must have exactly two fields, a title and a context (R9).
        fields: the names of the top-level fields that an agent may write.
        sources: pairs of an assignment target and its ``$`` source; each source must exist in the output (R8).
        only_guarded: True if every edge that the socket can take after an output depends on the verdict.
        sends_back: True if the socket has an edge for work that is not satisfactory.
        streams: True if the field ``parallelSchedule``, which assigns the items of a parallel generator to streams, is
            required.
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
    """The working directory of the following steps, which a utility can set.

    Attributes:
        id: the id of the scope.
        cwd: the directory, which may be relative to the project; empty for the project directory.
        state: data that is passed on to later utilities without interpretation.
        exports: named values that are passed on to later utilities without interpretation.
    """

    id: str = "base"
    cwd: str = ""
    state: JSON = None
    exports: Mapping[str, JSON] = FrozenDict()

    def as_json(self) -> dict[str, JSON]:
        """Return the scope as JSON for utilities and for the journal."""
        return {**self._asdict(), "exports": dict(self.exports)}


BASE: Final = Scope()
"""Initial scope of a cast or lane: the project directory."""


class Reading(NamedTuple):
    """The result of parsing and checking an output.

    Attributes:
        value: the parsed object or, if the socket expects text, the text. Assignments read from this value.
        error: the kind of refusal: ``not_json`` or ``contract``; None if the output is accepted.
        issues: the reasons for a refusal. An accepted output has issues only if it reports unfinished work.
        notes: remarks about the format of an accepted output, such as prose around the object.
        satisfied: the verdict; None if the output does not contain a verdict.
        context: the text that is passed to the next socket; None if the output does not contain one.
        work_items: the work items; None if the output does not contain any.
        action: the next action of the runtime; ``route`` follows the edges of the graph.
        target: the socket to run next if the action is ``detour``.
        warnings: problems that do not cause a refusal.
        reason: an explanation of the action for a person; empty for a plain ``route``.
        needs: the contribution that a ``pause`` needs from a person: the approval of a command, a direction, an answer
            or help.
        memory: the value of ``TurnFacts.memory`` for the socket's next output. Refused outputs do not change the value.
        events: the events that the output reports, unchanged (R39).
        scope: the new scope; None if the output does not set one (P8).
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
        """The result of the visit: ``REFUSED``, ``STOPPED`` if a person must act, or the verdict of the output."""
        if self.action in ("pause", "escalate"):
            return Result.STOPPED
        return Result.from_satisfied(self.satisfied) if self.error is None else Result.REFUSED

    @property
    def accepted(self) -> bool:
        """True if the output can complete the step."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Information about a turn, which the runtime passes to a protocol. Each attribute is unknown by default.

    Attributes:
        meta: the values of ``step_id``, ``flow_key``, ``agent_key`` and ``timestamp`` that the runtime assigned.
        agent_id: the id that the runtime assigned to the agent; repair turns are sent to the agent with this id.
        assignment: the assignment that the agent received before the turn.
        rounds: the number of times that the socket has sent work back.
        max_rounds: the maximum number of times that the socket may send work back.
        refused: the number of outputs that were refused in this turn.
        memory: ``Reading.memory`` of the last accepted output; None at the start of a task.
        sockets: the ids of the sockets to which a detour may lead; None if they are unknown.
        names: alternative names of these sockets, mapped to their ids. A name is a materia or a label that belongs to
            exactly one socket (R51).
        changed_files: the project files that were created or changed during the visit; empty unless the protocol sets
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
"""Turn facts whose attributes are all unknown."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of an agent, from which a protocol builds the agent's assignment.

    Attributes:
        goal: the goal of the turn.
        agent_id: the id that the runtime assigned to the agent.
        loadout: the name of the loadout.
        assignment: the value of the socket's ``assignment`` in the loadout.
        knowledge: the project's knowledge, by section.
        session: the id of the cast; empty if it is unknown.
        provider: the provider of the model that the loadout requests; empty if the loadout does not name a provider.
    """

    goal: str
    agent_id: str
    loadout: str
    assignment: Mapping[str, JSON] = field(default_factory=dict)
    knowledge: Mapping[str, JSON] = field(default_factory=dict)
    session: str = ""
    provider: str = ""


class KnowledgeUpdate(NamedTuple):
    """The project's knowledge after an accepted output, with warnings about updates that were refused."""

    knowledge: Mapping[str, JSON]
    warnings: tuple[Issue, ...] = ()


class AgentReport(NamedTuple):
    """The last accepted output of an agent, together with the agent's display name."""

    agent: str
    value: Mapping[str, JSON]


class WorkItem(NamedTuple):
    """A work item, which has a title and the context that an agent needs to complete it."""

    title: str
    context: str


@dataclass(frozen=True, slots=True)
class SimpleAnswer:
    """The content of an answer by a person or of a sample answer, independent of the handoff format.

    Attributes:
        outcome: the outcome of the work: ``done`` (finished and checked), ``accepted`` (not checked), ``again`` (must
            be redone), ``open`` (no verdict) or ``stuck`` (the agent needs help).
        findings: the findings as text.
        items: the remaining work items.
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
        """Return a sample answer that has the given outcome and ``count`` remaining work items."""
        items = tuple(WorkItem(f"Item {number + 1}", SAMPLE) for number in range(count))
        return cls(outcome, findings=SAMPLE, items=items, commands=commands, reason=SAMPLE, agent=agent)


class Pointer(NamedTuple):
    """A file reference in an output.

    Attributes:
        text: the reference as written in the output.
        path: the path of the file relative to the project; None if the file does not exist.
    """

    text: str
    path: str | None = None


TextOrPointer: TypeAlias = str | Pointer
FindFile: TypeAlias = Callable[[str], str | None]
"""A function that converts a file name in an output to a path in the project; None if the file does not exist."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the display of an output: a title, and a table or lines.

    The content is not escaped yet, because the section is escaped when it is displayed.
    """

    title: str
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[TextOrPointer, ...], ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def from_pairs(cls, title: str, pairs: Iterable[tuple[str, TextOrPointer]]) -> Self:
        """Return a section with one row for each name and value, without rows whose value is blank."""
        rows = [(name, value) for name, value in pairs if not isinstance(value, str) or value.strip()]
        return cls(title, rows=tuple(rows))


class HandoffProtocol(ABC):
    """A handoff protocol, which parses the outputs of agents and writes the instructions that agents receive.

    An instance must be stateless, because its methods may be called from several threads.

    Attributes:
        name: the name of the protocol, as used in the ``handoff`` field of a socket.
        needs_facts: False if ``read`` and ``form`` ignore ``facts``, so facts need not be collected.
        needs_changed_files: True if the protocol uses ``facts.changed_files``. Otherwise, changed files are not
            detected.
        can_detour: True if an output may name a socket to run next as a detour.
        after_answer: an instruction that is appended to the answer that a person gives to an agent.
        overridden: the names of the methods and attributes that the class overrides.
    """

    name: str
    needs_facts: ClassVar[bool] = True
    needs_changed_files: ClassVar[bool] = False
    can_detour: ClassVar[bool] = False
    after_answer: ClassVar[str] = ""
    overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Store the names of the methods and attributes that the subclass overrides in ``overridden``."""
        public = {name: value for name, value in vars(HandoffProtocol).items() if not name.startswith("_")}
        cls.overridden = frozenset(name for name, value in public.items() if getattr(cls, name) is not value)

    # Outputs

    @abstractmethod
    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Find, parse and check the output in an agent's reply. An implementation must not raise errors."""

    def schema(self, requirements: Requirements) -> dict[str, JSON] | None:
        """Return the JSON Schema for structured output, or None if the socket expects text.

        The schema may be stricter than ``read``.
        """
        return None

    def fields(self, requirements: Requirements) -> Mapping[str, str]:
        """Return the names and descriptions of the required fields; empty if the socket expects text."""
        return {}

    def artifacts(self, value: Mapping[str, JSON]) -> Sequence[str]:
        """Return the files that an output claims to have produced, so that missing files can be reported."""
        return ()

    def learn(
        self, value: Mapping[str, JSON], assignment: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> KnowledgeUpdate:
        """Return the project's knowledge after an accepted output.

        Args:
            value: the output.
            assignment: the assignment that the agent received.
            knowledge: the current knowledge, by section.
        """
        return KnowledgeUpdate(knowledge)

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """Return the project-memory suggestions in an output.

        A ``memory`` suggestion has a description and a body; a ``note`` has only text.
        """
        return []

    def file_content(self, value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
        """Return the content of the file in which an output is saved in the folder ``handoffs``.

        ``meta`` is the value of ``TurnFacts.meta``.
        """
        raise NotImplementedError

    # Prompts

    @abstractmethod
    def ask(self, requirements: Requirements) -> str:
        """Return the instructions that describe the required output; empty if the socket expects text."""

    def form(self, requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
        """Return the instructions for one turn, in at most 600 characters, or 300 if ``short`` is True.

        The default implementation calls ``ask``.
        """
        return self.ask(requirements)

    def assignment(self, task: Task) -> Mapping[str, JSON]:
        """Return the assignment that is included in the agent's prompt."""
        raise NotImplementedError

    # Views

    def layout(self, value: Mapping[str, JSON], find: FindFile) -> list[Section]:
        """Return the sections that display an output to a person, most important first.

        An implementation must not raise errors. If the list is empty, the raw JSON is displayed. ``find`` converts
        file names in the output to paths.
        """
        return []

    def status_sections(self, readings: Sequence[Reading]) -> list[Section]:
        """Return sections that display the statuses reported in a visit; empty if the format has no statuses."""
        return []

    def conclusion(self, reports: Sequence[AgentReport]) -> list[str]:
        """Return the final lines for a complete cast. ``reports`` contains one report per agent and work item."""
        return []

    # Answers of a person, a function or the explorer

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield sample outputs that can lead to the outcome, most likely first, each with ``count`` remaining items."""
        raise NotImplementedError

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield sample outputs that can stop the cast until a person acts."""
        raise NotImplementedError

    def write(self, value: Mapping[str, JSON]) -> str:
        """Serialize an output in the form in which an agent would write it."""
        raise NotImplementedError

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Serialize an answer that a person entered with buttons and a table.

        If a protocol does not override this method, the answer is written in the sparse format.
        """
        raise NotImplementedError
