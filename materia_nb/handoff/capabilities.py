"""What a handoff protocol may do beside reading and asking: each capability is asked of the object, no name is compared.

Among them: the names of the files in which outputs are kept for other tools, built and read back; and consent to one exact
command, asked for, answered by a person, used once (agent contract rules, section 7). Times are seconds of any one clock and
always arguments.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.protocol import (
    SCHEDULE,
    TEXT,
    Issue,
    Outcome,
    Reading,
    Requirements,
    SimpleAnswer,
    TurnFacts,
    closed_object,
    issue_of,
    listed_as,
)
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import whole


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
class NamesFields(Protocol):
    """A protocol whose outputs have fields that can be told one by one; of others the prompt alone says what they hold."""

    def fields(self, wanted: Requirements) -> Mapping[str, str]:
        """Return the fields that a socket wants, each with what it must be; empty for a text socket."""
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


class Pointer(NamedTuple):
    """A text that names a file, and the path of that file relative to the project; None where there is none."""

    text: str
    path: str | None = None


TextOrPointer: TypeAlias = str | Pointer
FindFile: TypeAlias = Callable[[str], str | None]
"""Turns what an output calls a file into its path relative to the project; None when it is not a file there."""


class StatusPath(NamedTuple):
    """The statuses that the outputs of a visit went through.

    Attributes:
        taken: as reported, in order.
        may_follow: those that may come next.
        hub: the one that lies between any two others.
        around: the others, four at most.
    """

    taken: tuple[str, ...]
    may_follow: tuple[str, ...]
    hub: str
    around: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table of what an output says; ``statuses`` are drawn as a diagram.

    Cells may hold hostile text: they are escaped when they are shown.
    """

    title: str
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[TextOrPointer, ...], ...] = ()
    lines: tuple[str, ...] = ()
    statuses: StatusPath | None = None


def told_rows(pairs: Sequence[tuple[str, TextOrPointer]]) -> tuple[tuple[TextOrPointer, ...], ...]:
    """Make rows of names and values, leaving out what says nothing."""
    return tuple((name, value) for name, value in pairs if not isinstance(value, str) or value.strip())


@runtime_checkable
class LaysOut(Protocol):
    """A protocol whose outputs are shown in the order in which a person needs what they say, not as raw JSON."""

    def layout(self, value: Mapping[str, JSON], find: FindFile) -> list[Section]:
        """Return what an output says; never raises, whatever the value. ``find`` tells which files are there."""
        ...


@runtime_checkable
class ShowsTheWay(Protocol):
    """A protocol in which the outputs of one visit go through statuses."""

    def way(self, readings: Sequence[Reading]) -> list[Section]:
        """Return the way through the outputs of a visit; empty where there is none."""
        ...


@runtime_checkable
class MakesAnswers(Protocol):
    """A protocol in whose form answers can be made up, so that a loadout is explored before anybody is asked."""

    @property
    def detours(self) -> bool:
        """Whether its outputs may name any socket to be run first."""
        ...

    def samples(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield outputs that may say an outcome, with ``count`` pieces of work that are left, the likeliest first."""
        ...

    def stopping(self) -> Iterator[dict[str, JSON]]:
        """Yield outputs that may stop the cast until a person has spoken."""
        ...

    def written(self, value: Mapping[str, JSON]) -> str:
        """Write an output as an agent does."""
        ...


@runtime_checkable
class WritesForAPerson(Protocol):
    """A protocol in whose form the buttons and tables of a panel answer; in others they answer in the sparse one."""

    def by_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Write the answer of a person: a verdict, a reason and pieces of work."""
        ...


MISSING_ENVELOPE: Final = issue_of("ENVELOPE_MISSING")
_FINAL: Final = ".json"
_DRAFT: Final = ".draft.json"
_MOST_BYTES: Final = 200
"""How long a part may be: two of them and the ending fit into one file name."""


class Names(NamedTuple):
    """The paths of one step's envelope, and of its draft while the step is worked on."""

    final: str
    draft: str


class _Step(NamedTuple):
    """What a file name says: the step, the agent, and whether it is a draft."""

    step_id: str
    agent_key: str
    draft: bool


class Lookup(NamedTuple):
    """The path of an envelope, or why there is none."""

    path: str | None
    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()


def names(run_base: str, flow: str, step_id: str, agent_key: str) -> Names:
    """Return ``<run_base>/<flow>/handoffs/<step_id>-<agent_key>.json`` and the name of its draft.

    Raises MateriaError (kind ``path_unsafe``, where ``PATH_UNSAFE:<field>``) for a part that
    could lead elsewhere or could not be read back.
    """
    for what, part in (("flow", flow), ("step_id", step_id), ("agent_key", agent_key)):
        _require(what, part)
    base = f"{run_base.rstrip('/')}/" if run_base.strip("/") else run_base[:1]
    stem = f"{base}{flow}/handoffs/{step_id}-{agent_key}"
    return Names(stem + _FINAL, stem + _DRAFT)


def parse_name(filename: str) -> _Step:
    """Read a file name: the first hyphen ends the step id, which has none.

    Raises MateriaError (kind ``path_unsafe``) for a name that :func:`names` cannot have made.
    """
    stem = filename.removesuffix(_DRAFT)
    draft = stem != filename
    stem = stem if draft else filename.removesuffix(_FINAL)
    if stem == filename:
        raise _unsafe("filename", filename, "does not end with .json")
    step_id, _, agent_key = stem.partition("-")
    _require("step_id", step_id)
    _require("agent_key", agent_key)
    return _Step(step_id, agent_key, draft)


def look_for(files: Collection[str], flow: str, step_id: str, agent_key: str, run_base: str = "") -> Lookup:
    """Find a step's envelope among ``files``; a draft alone is a turn that is not finished."""
    final, draft = names(run_base, flow, step_id, agent_key)
    if final in files:
        return Lookup(final)
    if draft not in files:
        return Lookup(None, (MISSING_ENVELOPE,))
    return Lookup(None, (MISSING_ENVELOPE,), (issue_of("DRAFT_PRESENT"),))


def _require(field: str, part: str) -> None:
    why = _why_unsafe(field, part)
    if why:
        raise _unsafe(field, part, why)


def _why_unsafe(field: str, part: str) -> str | None:
    if not part.strip():
        return "is empty"
    if any(mark in part for mark in "/\\") or ".." in part or part == ".":
        return "leads to another folder"
    if not part.isprintable() or len(part.encode("utf-8", "replace")) > _MOST_BYTES:
        return "cannot be part of a file name"
    if field == "step_id" and "-" in part:
        return "has a hyphen, which ends a step id in a file name"
    if field == "agent_key" and part.endswith(".draft"):
        return "would name a draft"
    return None


def _unsafe(field: str, part: str, why: str) -> MateriaError:
    return MateriaError(
        f"The {field} {part[:80]!r} {why}.",
        where=f"PATH_UNSAFE:{field}",
        hint="use letters, digits and _",
        kind="path_unsafe",
    )


_GRANT_SECONDS: Final = 60 * 60
_PENDING_SECONDS: Final = 24 * 60 * 60
_SEALED: Final = (
    "operation",
    "exact_content",
    "scope",
    "risk_level",
    "rollback_hint",
    "rationale",
    "commands",
)
_APPROVAL_ID = re.compile(r"P-[0-9a-f]{32}")

_GrantStanding: TypeAlias = Literal["PENDING", "CONSUMED", "EXPIRED"]


def command_fingerprint(value: JSON) -> str:
    """Return the SHA-256 of a value as compact JSON with sorted keys, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to run one exact command once, until it expires."""

    approval_id: str
    exact_content: str
    expires_at: float
    standing: _GrantStanding = "PENDING"

    @property
    def given_at(self) -> float:
        """The time of the consent, in seconds since the epoch."""
        return self.expires_at - _GRANT_SECONDS

    def use(self, command: str, now: float) -> tuple[bool, Grant]:
        """Say whether ``command`` may run now, and return the grant as it is afterwards.

        A command that differs in any character is not what was consented to; it is refused
        and the grant stays as it is.
        """
        grant = self.at(now)
        if grant.standing != "PENDING" or command_fingerprint(command) != command_fingerprint(
            grant.exact_content
        ):
            return False, grant
        return True, replace(grant, standing="CONSUMED")

    def at(self, now: float) -> Grant:
        """Return the grant at a time: expired when it was not used by then."""
        over = self.standing == "PENDING" and now >= self.expires_at
        return replace(self, standing="EXPIRED") if over else self

    def as_json(self) -> dict[str, JSON]:
        """Return what the agent and the journal are told of the grant."""
        uses = 1 if self.standing == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class Approval:
    """A command that was held back, sealed as it was tried."""

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    asked_at: float

    def grant(self, now: float) -> Grant | None:
        """Consent to the exact command; None when nobody answered within a day."""
        if now >= self.asked_at + _PENDING_SECONDS:
            return None
        return Grant(self.approval_id, self.sealed["exact_content"], now + _GRANT_SECONDS)


def request_of(contract: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the approval request of a contract; empty when it has none."""
    found = contract.get("approval_request")
    return found if isinstance(found, dict) else {}


def is_approval_id(value: JSON) -> bool:
    """Whether a value has the form of an approval id: ``P-`` and 32 hexadecimal digits."""
    return isinstance(value, str) and _APPROVAL_ID.fullmatch(value) is not None


def can_be_granted(request: Mapping[str, JSON]) -> bool:
    """Whether a person can consent to the request: it has an approval id and an exact command (R44).

    Any other request is a plan, which a person gives a direction for.
    """
    command = request.get("exact_content")
    return is_approval_id(request.get("approval_id")) and isinstance(command, str) and bool(command.strip())


def sealed_from(request: Mapping[str, JSON], now: float) -> Approval:
    """Seal what an agent asks for, which :func:`can_be_granted`, at the time when it was held back."""
    sealed = {name: request.get(name) for name in _SEALED} | {"rollback_hint": request.get("rollback")}
    if sealed["risk_level"] is not None:
        sealed["risk_level"] = str(sealed["risk_level"]).strip().upper()
    return Approval(str(request.get("approval_id")), sealed, command_fingerprint(sealed), now)


def answer_note(grant: Grant | None) -> str:
    """Return what the resumed agent is told: the one command that it may run now, or that there is none."""
    tail = "Report IN_PROGRESS before you report COMPLETE."
    if grant is None:
        return f"No consent was given. Do not run the command. {tail}"
    return (
        f"Consent was given ({grant.approval_id}) to run exactly this command once, within "
        f"{_GRANT_SECONDS // 60} minutes:\n{grant.exact_content}\n{tail}"
    )


STREAM_NAME: Final = "<name>"
SCHEDULE_FORM: Final = f'{{"version": 1, "streams": [{{"name": "{STREAM_NAME}", "workItemIndexes": [<n>]}}]}}'
"""What stands in the form of an answer in the place of a schedule."""
GOOD_SCHEDULE: Final = (
    f"- {SCHEDULE}: each item, by index from 0, in exactly one stream. Streams run side by side and see nothing of one another, so items that "
    "depend on one another or touch the same files go into one stream, in order; rather fewer streams than unsafe ones"
)
"""What a generator is told of schedules."""
SCHEDULE_SHAPE: Final = closed_object(
    {
        "version": {"type": "integer", "enum": [1]},
        "streams": listed_as(
            closed_object({"name": TEXT, "workItemIndexes": {"type": "array", "items": {"type": "integer"}}})
        ),
    }
)
_NAMED: Final = 8


class Stream(NamedTuple):
    """One stream of a schedule: its name, and the indexes of its items in the order in which they are worked on."""

    name: str
    indexes: tuple[int, ...]


def streams_of(schedule: JSON) -> tuple[Stream, ...]:
    """Read a schedule that has no issues."""
    streams = schedule["streams"] if isinstance(schedule, Mapping) else ()
    return tuple(
        Stream(one["name"], tuple(int(index) for index in one["workItemIndexes"])) for one in streams
    )


def schedule_issues(output: Mapping[str, JSON]) -> Iterator[Issue]:
    """Check the schedule of an output for its work items; all that is wrong, each at its path."""
    path, schedule, items = f"$.{SCHEDULE}", output.get(SCHEDULE), output.get("workItems")
    if SCHEDULE not in output:
        yield Issue(
            path, f"{SCHEDULE} is missing: this socket hands its items to streams.", "add it as asked for"
        )
        return
    if not isinstance(schedule, dict):
        yield Issue(path, f"{SCHEDULE} must be an object.", 'write {"version": 1, "streams": [...]}')
        return
    yield from _others(path, schedule, ("version", "streams"))
    if whole(schedule.get("version")) != 1:
        yield Issue(f"{path}.version", "The version of a schedule is 1.", "write 1")
    path, streams = f"{path}.streams", schedule.get("streams")
    if not isinstance(streams, list):
        yield Issue(path, "streams must be an array.", "write [] around the streams")
        return
    count = len(items) if isinstance(items, list) else None
    names: dict[str, str] = {}
    places: dict[int, str] = {}
    for number, stream in enumerate(streams):
        here = f"{path}.{number}"
        if not isinstance(stream, dict):
            yield Issue(
                here, "A stream must be an object.", 'write {"name": "...", "workItemIndexes": [...]}'
            )
            continue
        yield from _others(here, stream, ("name", "workItemIndexes"))
        yield from _name_issues(f"{here}.name", stream.get("name"), names)
        yield from _index_issues(f"{here}.workItemIndexes", stream.get("workItemIndexes"), count, places)
    left = [index for index in range(count or 0) if index not in places]
    if left:
        known = ", ".join(map(str, left[:_NAMED])) + (" and more" if len(left) > _NAMED else "")
        message = f"{counted(len(left), 'item')} of workItems in no stream: {known}."
        yield Issue(path, message, "put each into the stream where it belongs")


def _others(path: str, given: Mapping[str, JSON], names: tuple[str, str]) -> Iterator[Issue]:
    for name in given:
        if name not in names:
            fix = "leave it out; what a stream is about goes into its name"
            yield Issue(f"{path}.{name}", f"There are {' and '.join(names)} here and no other field.", fix)


def _name_issues(path: str, name: JSON, names: dict[str, str]) -> Iterator[Issue]:
    if not isinstance(name, str) or not name.strip():
        yield Issue(path, "The name of a stream must be a string that is not blank.", "say what it is about")
    elif (first := names.setdefault(name.strip(), path)) != path:
        yield Issue(path, f"This is the name at {first} too.", "give each stream a name of its own")


def _index_issues(path: str, indexes: JSON, count: int | None, places: dict[int, str]) -> Iterator[Issue]:
    if not isinstance(indexes, list):
        yield Issue(path, "workItemIndexes must be an array of whole numbers.", "write such as [0, 2]")
        return
    if not indexes:
        yield Issue(path, "A stream works on at least one item.", "name its items, or leave the stream out")
    for place, given in enumerate(indexes):
        here, index = f"{path}.{place}", whole(given)
        if index is None:
            yield Issue(here, "An index must be a whole number.", "write the place of an item, from 0")
        elif index < 0 or (count is not None and index >= count):
            fix = (
                f"the last of workItems is {count - 1}"
                if count
                else "there are no workItems: leave the streams out"
            )
            yield Issue(here, f"There is no item {index}.", fix)
        elif (first := places.setdefault(index, here)) != here:
            yield Issue(here, f"Item {index} stands at {first} already.", "name each item once")
