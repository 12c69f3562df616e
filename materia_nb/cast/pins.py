"""Answers that a person chose in the place of an agent or a process (R40): ``cast.pins``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from materia_nb.agents.interface import Agent, name_of, sound
from materia_nb.agents.notebook_agents import FunctionAgent, RecordedAgent
from materia_nb.cast.naming import needs_name
from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import Snapshot, snapshot_of
from materia_nb.engine import decide
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import to_bytes

_FORMS: Final = (
    "a text, a dict (sent as JSON), a function, or an earlier cast; nothing for its own latest output"
)


class Chosen(NamedTuple):
    """A pin, and the function behind it if it is pinned to one."""

    pin: Pin
    function: Agent | None = None


def choose(cast: Snapshot | None, name: str, to: object = None, visit: int | None = None) -> Chosen:
    """Make a pin of what a person gave; ``cast`` is where it is looked for when they gave nothing."""
    if (other := snapshot_of(to)) is not None:
        return Chosen(_said_in(other, name, visit, f"the cast {other.id}"))
    if isinstance(to, RecordedAgent):
        return Chosen(_recorded(to, name, cast))
    if to is None and cast is not None:
        return Chosen(_said_in(cast, name, visit))
    if visit is None and isinstance(to, str | Mapping):
        given = dict(to) if isinstance(to, Mapping) else to
        return Chosen(Pin("text", "a text", to_bytes(sound(given, "The pin").text).decode()))
    if visit is None and callable(to) and not isinstance(to, type):
        function = FunctionAgent(to)
        return Chosen(Pin("function", f"the function {function.name}"), function)
    what = "Nothing" if to is None else f"A {type(to).__name__}"
    if visit is not None:
        what = f"{what} that has visits"
    raise MateriaError(
        f"{what} was given to pin {name} to.", where=name, hint=f"give {_FORMS}", kind="bad_pin"
    )


def _said_in(cast: Snapshot, name: str, visit: int | None, whose: str = "") -> Pin:
    """Make a pin of what a socket or materia said in a cast: of one visit, else its latest, or all of another cast."""
    steps: list[StepRecord] = []
    for line in (cast.steps, *reversed(cast.abandoned)):  # what was left behind was said all the same
        steps = steps or [
            step
            for step in line
            if _is(cast.graph, step.socket, name) and _counts(step) and visit in (None, step.visit)
        ]
    if not steps:
        place = f"{name}{'' if visit is None else f', visit {visit},'} has no output"
        raise MateriaError(
            f"{place} in {whose or 'this cast'} that could be pinned.",
            where=name,
            hint=f"step first, or pin {_FORMS}",
            kind="no_output",
        )
    if whose and visit is None:
        found: dict[str, dict[str, str]] = {}
        for step in steps:
            found.setdefault(step.socket, {})[str(step.visit)] = step.output or ""
        return Pin("visits", whose, visits=found)
    last = steps[-1]
    return Pin(
        "text",
        f"step {last.number} of {whose}" if whose else f"its output of step {last.number}",
        last.output or "",
    )


def _recorded(agent: RecordedAgent, name: str, cast: Snapshot | None) -> Pin:
    found: dict[str, dict[str, str]] = {}
    for (socket, visit), text in agent.outputs.items():
        if cast is None or _is(cast.graph, socket, name):
            found.setdefault(socket, {})[str(visit)] = text
    if not found:
        raise MateriaError(
            f"{name} has no output in {name_of(agent)}.",
            where=name,
            hint="a recording holds what agents said; a cast (recorded:ID) has the outputs of utilities too",
            kind="no_output",
        )
    return Pin("visits", f"the recording {name_of(agent)}", visits=found)


def _is(graph: Graph, socket: str, name: str) -> bool:
    """Whether ``name`` is a socket or the materia placed there."""
    placed = graph.sockets.get(socket)
    return name == socket or (placed is not None and placed.materia.id == name)


def _counts(step: StepRecord) -> bool:
    """Whether a step has an output that was taken."""
    return step.output is not None and step.decision is not None and not step.decision.issues


def needs_pinned(name: str, pinned: Iterable[str]) -> None:
    """Raise MateriaError (``not_pinned``) unless a name is pinned."""
    if name not in (known := list(pinned)):
        raise MateriaError(
            f"{name} is not pinned.",
            hint=did_you_mean(name, known) if known else "nothing is pinned",
            kind="not_pinned",
        )


class Pins(Mapping[str, Pin]):
    """What answers in the place of sockets and materia of one cast, by their names: a mapping, and what changes it."""

    def __init__(self, runner: Runner) -> None:
        """Tell of the cast that ``runner`` runs."""
        self._runner = runner

    def __getitem__(self, name: str) -> Pin:
        return self._runner.session.pins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runner.session.pins)

    def __len__(self) -> int:
        return len(self._runner.session.pins)

    def __repr__(self) -> str:
        return repr(dict(self))

    def add(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Let what you choose answer a socket, or a materia wherever it is placed, from the next step on.

        A pinned utility starts no process: the text is read as its stdout would be. What is pinned stays
        when the cast is resumed or forked; a function is gone with its kernel, and the cast then
        stops in front of its socket rather than let anything else answer::

            cast.pins.add("Detect-VCS", {"state": {"vcs": "git"}})
            cast.pins.add("Socket-3")  # what it said last

        Args:
            name: a socket, or a materia; the socket's pin goes first.
            to: a text, a dict (sent as JSON), a function of the turn, or an earlier cast, which answers
                visit by visit; left out, the socket's own latest output.
            visit: the visit whose output to use, of this cast or of the cast given.

        Raises:
            MateriaError: there is no such socket or materia (``unknown_materia``), it has no such output
                (``no_output``), or ``to`` is nothing that can be pinned to (``bad_pin``).
        """
        chosen = choose(self._runner.snapshot(), name, to, visit)
        self.put(name, chosen)
        return chosen.pin

    def put(self, name: str, chosen: Chosen) -> None:
        """Pin what was chosen before; see :meth:`add`."""
        runner = self._runner
        needs_name(runner.rules.graph, name)
        with runner.lock():
            runner.begin()
            runner.functions.pop(name, None)
            if chosen.function is not None:
                runner.functions[name] = chosen.function
            runner.do(decide.pin, name, chosen.pin)

    def remove(self, name: str) -> None:
        """Let a socket or materia be answered as if it had never been pinned.

        Raises:
            MateriaError: it is not pinned (``not_pinned``).
        """
        needs_pinned(name, self)
        runner = self._runner
        with runner.lock():
            runner.begin()
            runner.do(decide.unpin, name)
            runner.functions.pop(name, None)
