"""What can be seen of a cast. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from materia_nb.engine import step as engine
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.said import Message, ToolCall
from materia_nb.engine.state import CastState, Failure, Hold, Item, Visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END, Graph
from materia_nb.store.files import disk, replace_file
from materia_nb.store.history import History, StepRecord, history_to
from materia_nb.store.journal import Journal

if TYPE_CHECKING:
    from materia_nb.insight.ask import Found
    from materia_nb.insight.why import Why
    from materia_nb.store.differences import Difference


LIMITS: Final = frozenset(
    {"repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"}
)
"""The kinds of failure in which a limit was reached (R18, R19, R20)."""


class Looks:
    """The part of a cast that looks; ``Cast`` is the class to use."""

    run_dir: Path
    project: Path
    id: str
    rules: Rules
    differences: tuple[Difference, ...]
    messages: list[str]
    _history: History
    _journal: Journal | None
    _watchers: list[Callable[[Self], None]]
    _listeners: list[Callable[[], None]]
    _saying: list[str]

    @property
    def breakpoints(self) -> Mapping[str, object]:
        """The sockets that runs stop in front of; a moment of the past has none."""
        return {}

    @property
    def graph(self) -> Graph:
        """The loadout that this cast runs."""
        return self.rules.graph

    @property
    def request(self) -> str:
        """What the cast was asked to do."""
        return self.now.request

    @property
    def now(self) -> CastState:
        """The whole state of the engine, immutable."""
        return self._history.state

    @property
    def status(self) -> str:
        """``ready``, ``waiting``, ``complete``, ``failed`` or ``aborted``."""
        return self.now.status

    @property
    def state(self) -> Mapping[str, JSON]:
        """The JSON state that the sockets share."""
        return self.now.data

    @property
    def steps(self) -> Sequence[StepRecord]:
        """Every step so far, in order; ``steps[-1]`` is the latest."""
        return self._history.steps

    @property
    def route(self) -> list[tuple[str, int, str | None, str | None]]:
        """The visits in order: socket, visit, item key, item label."""
        return [(step.socket, step.visit, step.item_key, step.item_label) for step in self.steps]

    @property
    def work_items(self) -> list[JSON]:
        """The work items in the state; an empty list when there are none."""
        items = self.now.data.get("workItems")
        return list(items) if isinstance(items, list) else []

    @property
    def failure(self) -> Failure | None:
        """Why the cast stopped, when it failed or was aborted."""
        return self.now.failure

    @property
    def at_limit(self) -> bool:
        """Whether a limit stopped the cast, which ``revive`` grants once more."""
        failure = self.failure
        return failure is not None and (failure.kind in LIMITS or bool(failure.blocked))

    @property
    def prompt(self) -> Prompt | None:
        """The prompt that is waiting for an answer, None when no agent is asked."""
        visit = self.waiting_at
        if visit is None or self.rules.sockets[visit.socket].socket.is_utility:
            return None
        return self._history.prompt

    @property
    def prompt_cut_short(self) -> Prompt | None:
        """The prompt of a turn that failed or was aborted and can be sent again; None when there is none."""
        visit, failure = self.now.at, self.failure
        if visit is None or failure is None or not failure.again:
            return None
        return None if self.rules.sockets[visit.socket].socket.is_utility else self._history.prompt

    @property
    def waiting_at(self) -> Visit | None:
        """The visit that owes an output, None when no socket is entered."""
        return self.now.at if self.now.status == "waiting" else None

    @property
    def held(self) -> Hold | None:
        """What the cast is held for: why, and what a person is asked for; None when it is not held."""
        return self.now.hold if self.now.status == "held" else None

    @property
    def next_socket(self) -> str | None:
        """The socket that the next step runs, None when the cast is over; ``end`` when only the end is left."""
        visit = self.waiting_at
        return visit.socket if visit else self._upcoming()

    @property
    def upcoming_item(self) -> Item | None:
        """The item that the next socket will work on, or that the waiting one works on; None outside items."""
        if (visit := self.waiting_at) is not None:
            return visit.item
        if self.now.next is None or self.now.status != "ready":
            return None
        entered = engine.enter(self.rules, self.now).state
        return entered.at.item if entered.status == "waiting" and entered.at else None

    @property
    def ended_by(self) -> Any:
        """The decision that passed over empty loops to the end, None when the cast ended otherwise."""
        return self._history.ending

    @property
    def writable(self) -> bool:
        """Whether this object may go on with the cast."""
        return self._journal is not None

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What was said in the current visit."""
        return tuple(self._history.said)

    @property
    def saying(self) -> str:
        """What the agent that is asked has said so far of an answer that is still coming."""
        return "".join(self._saying)

    @property
    def wish(self) -> str | None:
        """What the person wants changed in the draft, while that is asked in place of the prompt."""
        return self._history.message

    @property
    def notes(self) -> Sequence[str]:
        """What the agent of the latest step told a person since it was asked last."""
        return self.steps[-1].notes[self._history.noted_before :] if self.steps else ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turn that waits, so far."""
        return self._history.calls

    @property
    def asking(self) -> tuple[ToolCall, ...]:
        """The tool calls that wait for a person's leave; empty when none does."""
        return tuple(call for call in self._history.asking if call.decided is None)

    @property
    def calls_due(self) -> tuple[ToolCall, ...]:
        """The tool calls that a person allowed and that have not run yet."""
        return tuple(call for call in self._history.asking if call.decided is not None)

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that change something and yet need not ask in this cast."""
        return self._history.allowed

    def at_step(self, number: int) -> StepRecord:
        """Return the step of that number; negative numbers count from the end."""
        return _nth(self.steps, number)

    def line(self, branch: int | None = None) -> Sequence[StepRecord]:
        """Return the steps one after another, as they led to the present, or into an abandoned branch.

        Args:
            branch: which abandoned branch, from 0; its line begins with the steps that it shares with later ones.

        Raises:
            MateriaError: there is no such branch (``no_branch``).
        """
        left = self._history.abandoned
        if branch is None:
            return self.steps
        if not 0 <= branch < len(left):
            raise MateriaError(
                f"There is no abandoned branch {branch}; the cast has {len(left)}.", kind="no_branch"
            )
        found: list[StepRecord] = list(self.steps)
        for steps in reversed(left[branch:]):
            found[steps[0].number - 1 :] = steps
        return found

    def as_of(self, number: int, branch: int | None = None) -> Past:
        """Return the cast as it was after a step, to be looked at like the cast itself.

        Args:
            number: of the step; 0 is the start.
            branch: the abandoned branch to which the step belongs, if it is one of those.

        Raises:
            MateriaError: there is no such step (``no_step``) or branch (``no_branch``).
        """
        steps = self.line(branch)
        last = _nth(steps, number).number if number else 0
        return Past(self, history_to(self._history.start, steps, last))

    def why(self, step: int | None = None) -> Why:
        """Explain why a step went where it went; the latest one by default."""
        from materia_nb.insight.why import explain

        if not self.steps:
            raise MateriaError("The cast has no step yet.", hint="step first", kind="no_step")
        record = self.at_step(-1 if step is None else step)
        item = f", item {record.item_key} ({record.item_label})" if record.item_key else ""
        title = f"Step {record.number}: {record.socket}, visit {record.visit}{item}"
        latest = record is self.steps[-1] and self.now.status == "failed"
        after = self.now if latest else record.after
        return explain(self.rules, title, record.decision, after, record.entry)

    def ask(self, expression: str) -> list[Found]:
        """Look through the outputs of all steps with JSONPath, or a dotted path; each match with its step.

        Such as ``cast.ask("$.workItems[*].title")``.

        Raises:
            MateriaError: it is no JSONPath (``question``).
        """
        from materia_nb.insight.ask import ask

        return ask(self.steps, expression)

    def __repr__(self) -> str:
        """Say how the cast stands; stable from run to run, since notebooks are compared by it."""
        from materia_nb.views import status_lines

        return "\n".join(status_lines(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        from materia_nb.views import CastView

        return CastView(self)._repr_mimebundle_()

    def save_page(self, path: str | Path) -> Path:
        """Write the cast as one HTML page that needs nothing else, and return its path."""
        from materia_nb.views import cast_page_html

        target = Path(path)
        with disk(target, "write the page"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, cast_page_html(self).encode("utf-8", "replace"))
        return target

    def save_recording(self, path: str | Path) -> Path:
        """Write what was answered as a file that another cast can be answered from, and return its path."""
        from materia_nb.recordings import recording_text

        target = Path(path)
        with disk(target, "write the recording"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, recording_text(self).encode("utf-8", "replace"))
        return target

    def watch(self, watcher: Callable[[Self], None]) -> Callable[[], None]:
        """Call ``watcher`` after every change; returns a function that ends it.

        A watcher that raises is not called again, and ``messages`` tells why.
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever more of an answer has come (``saying``); returns a function that ends it.

        It is called often and must be quick; one that raises is not called again.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _heard(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception as error:  # noqa: BLE001 - a view must not break the cast
                if listener in self._listeners:
                    self._listeners.remove(listener)
                self.messages.append(f"A view stopped listening to the cast: {error}")

    def _upcoming(self) -> str | None:
        """The socket that is entered next: behind the loops that are passed over because they are empty."""
        target = self.now.next
        socket = self.graph.sockets.get(target) if target else None
        if socket is None or socket.iterator is None or self.now.status != "ready":
            return target
        entered = engine.enter(self.rules, self.now).state
        if entered.status == "complete":
            return END
        return entered.at.socket if entered.status == "waiting" and entered.at else target


class Past(Looks):
    """A cast as it was after one of its steps; it stays so, whatever becomes of the cast. See :meth:`Looks.as_of`."""

    def __init__(self, cast: Looks, history: History) -> None:
        """Show ``history``, which is that of ``cast`` up to some step."""
        self.run_dir, self.id, self.rules = cast.run_dir, cast.id, cast.rules
        self.project = cast.project
        self.differences, self.messages = (), []
        self._history, self._journal, self._watchers = history, None, []
        self._listeners, self._saying = [], []


def _nth(steps: Sequence[StepRecord], number: int) -> StepRecord:
    index = number - 1 if number > 0 else len(steps) + number
    if number == 0 or not 0 <= index < len(steps):
        raise MateriaError(
            f"There is no step {number}; the cast has {len(steps)}.",
            hint="give a number from 1, or -1 for the latest",
            kind="no_step",
        )
    return steps[index]
