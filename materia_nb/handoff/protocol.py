"""The interface that every handoff protocol implements, what reading an output gives, and what it means for the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from materia_nb.errors import MateriaError
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON


class Verdict(NamedTuple):
    """Whether the step is satisfied, what happens next and why, and what was odd; as in ``Reading``."""

    satisfied: bool | None
    action: Action = "route"
    reason: str = ""
    target: str | None = None
    needs: Needs | None = None
    warnings: tuple[Issue, ...] = ()

    def reading(
        self,
        value: JSON,
        *,
        context: str,
        work_items: list[JSON] | None,
        issues: tuple[Issue, ...] = (),
        memory: JSON = None,
    ) -> Reading:
        """Return the reading of an accepted output with this verdict."""
        return Reading(
            value,
            issues=issues,
            satisfied=self.satisfied,
            context=context,
            work_items=work_items,
            action=self.action,
            target=self.target,
            warnings=self.warnings,
            reason=self.reason,
            needs=self.needs,
            memory=memory,
        )


_TOLD: Final = 40


class RefusedAnswer(MateriaError):
    """An answer was not taken; ``issues`` are all the reasons, each with path, message and what to do."""

    def __init__(self, what: str, issues: Sequence[Issue], kind: str = "refused_answer") -> None:
        self.issues = tuple(issues)
        first, *others = issues
        if not others:
            super().__init__(f"{what} {first.message}", where=first.path, hint=first.fix, kind=kind)
            return
        lines = [
            what,
            *(f"  {issue.path}: {issue.message} To mend it: {issue.fix}." for issue in issues[:_TOLD]),
        ]
        if len(issues) > _TOLD:
            lines.append(f"  and {len(issues) - _TOLD} more of this sort")
        super().__init__("\n".join(lines), kind=kind)


Action: TypeAlias = Literal["route", "reissue", "pause", "escalate", "detour", "reject"]
Refusal: TypeAlias = Literal["not_json", "contract"]
Needs: TypeAlias = Literal["consent", "direction", "question", "help"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an output: where, what, and what to do."""

    path: str
    message: str
    fix: str
    code: str | None = None


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
    """

    value: JSON
    error: Refusal | None = None
    issues: tuple[Issue, ...] = ()
    notes: tuple[str, ...] = ()
    satisfied: bool | None = None
    context: str | None = None
    work_items: JSON = None
    action: Action = "route"
    target: str | None = None
    warnings: tuple[Issue, ...] = ()
    reason: str = ""
    needs: Needs | None = None
    memory: JSON = None
    events: tuple[Mapping[str, JSON], ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the step can be completed with this output."""
        return self.error is None


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
    changed_files: tuple[str, ...] = ()


UNKNOWN: Final = TurnFacts()
"""Nothing is known of the turn."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is to do, for a protocol that tells it so in an envelope of its own.

    Attributes:
        goal: what the turn is for.
        agent_id: the runtime's name of the agent.
        loadout: what is cast.
        assignment: the socket's ``assignment`` as written in the loadout.
        knowledge: what is kept about the project, by section.
        session: the cast that it belongs to, "" when not known.
        provider: whose model the loadout asks for, "" when it names none.
    """

    goal: str
    agent_id: str
    loadout: str
    assignment: Mapping[str, JSON] = field(default_factory=dict)
    knowledge: Mapping[str, JSON] = field(default_factory=dict)
    session: str = ""
    provider: str = ""


class Learned(NamedTuple):
    """What an accepted output changed in what is kept about the project, and what of it was refused."""

    knowledge: Mapping[str, JSON]
    warnings: tuple[Issue, ...] = ()


@runtime_checkable
class TellsTheTask(Protocol):
    """A protocol that hands its agent an envelope before the turn."""

    def given(self, task: Task) -> Mapping[str, JSON]:
        """Return the envelope."""
        ...


@runtime_checkable
class Learns(Protocol):
    """A protocol whose outputs may update what is kept about the project."""

    def learn(
        self, value: Mapping[str, JSON], given: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> Learned:
        """Return the knowledge after an accepted output; ``given`` is what its agent was handed."""
        ...


class Reported(NamedTuple):
    """An agent's last accepted output, and whose it is, in words."""

    who: str
    value: Mapping[str, JSON]


@runtime_checkable
class Concludes(Protocol):
    """A protocol whose outputs tell a person what came of the work."""

    def conclusion(self, reports: Sequence[Reported]) -> list[str]:
        """Return what a person is told at the end of a cast, a line each; ``reports`` is one for each agent and item."""
        ...


SuggestionKind: TypeAlias = Literal["memory", "note"]


@runtime_checkable
class Suggests(Protocol):
    """A protocol whose outputs may suggest what to remember about the project."""

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """Return what an accepted output suggests: a ``memory`` with description and body, or a ``note`` with a text."""
        ...


@runtime_checkable
class SeesChanges(Protocol):
    """A protocol that is told which files changed; where none is, nobody looks."""

    @property
    def sees_changes(self) -> bool:
        """Whether ``TurnFacts.changed_files`` is wanted."""
        ...


@runtime_checkable
class ReadsTextAlone(Protocol):
    """A protocol that needs no facts of the turn; none are gathered for it."""

    @property
    def reads_text_alone(self) -> bool:
        """Whether :meth:`HandoffProtocol.read` does without ``facts``."""
        ...


@runtime_checkable
class NamesArtifacts(Protocol):
    """A protocol whose outputs name the files that were made; those that are not there are told."""

    def artifacts(self, value: Mapping[str, JSON]) -> Sequence[str]:
        """Return the files that an accepted output says were made, as it names them."""
        ...


@runtime_checkable
class HasFile(Protocol):
    """A protocol whose outputs are kept as files of their own too, for tools that read them."""

    def filed(self, value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
        """Return what the file holds; ``meta`` is what the runtime knows of the step (``TurnFacts.meta``), with its time."""
        ...


@runtime_checkable
class HasSchema(Protocol):
    """A protocol whose outputs are single JSON objects that a schema can describe."""

    def schema(self, wanted: Requirements) -> dict[str, JSON] | None:
        """Return the JSON Schema of an output; None for a text socket.

        It holds models to what they are asked for and may be narrower than what is accepted; what
        it cannot say is left to :meth:`HandoffProtocol.read`.
        """
        ...


class HandoffProtocol(Protocol):
    """A handoff format: how an output is read and what its author is asked for.

    It may be any of the other protocols of this module too, such as :class:`TellsTheTask`, :class:`Learns` or
    :class:`HasFile`, and is then used as that.
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
