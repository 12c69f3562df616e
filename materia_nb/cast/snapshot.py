"""What can be seen of a cast: a frozen view of its session. Panels, magics and pictures read this."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.accepted import Suggestion, conclusion_of, suggestions_of
from materia_nb.engine import decide
from materia_nb.engine import step as engine
from materia_nb.engine.pins import Pin
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.said import Message, ToolCall
from materia_nb.engine.session import Edit, Session, StepRecord, Steps, remarks_of
from materia_nb.engine.state import CastState, Failure, Hold, Item, Visit
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.contract import Approval, Grant, can_be_granted, request_of, sealed_from
from materia_nb.handoff.event_field import SEVERITIES
from materia_nb.insight.sides import Side
from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import END, Graph
from materia_nb.store.derived import usage_report
from materia_nb.store.files import disk, replace_file

if TYPE_CHECKING:
    from materia_nb.compare_view import BlameView, ReplayView
    from materia_nb.engine.remarks import Remark
    from materia_nb.insight.ask import Found
    from materia_nb.insight.why import Why
    from materia_nb.store.differences import Difference
    from materia_nb.views import EventsView


LIMITS: Final = frozenset(
    {"repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"}
)
"""The kinds of failure in which a limit was reached (R18, R19, R20)."""


class Snapshot:
    """A cast at one moment; nothing that happens to the cast changes it.

    Attributes:
        session: everything that the cast knew.
        rules: what it runs by.
        run_dir: its directory.
        project: the directory that utilities and agents work in.
        id: the name of its directory.
    """

    rules: Rules
    run_dir: Path
    project: Path
    id: str
    differences: tuple[Difference, ...]
    messages: list[str]
    problems: tuple[str, ...]

    def __init__(
        self,
        session: Session,
        rules: Rules,
        run_dir: Path,
        project: Path,
        *,
        problems: Sequence[str] = (),
        answerers: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """Show ``session``.

        ``problems`` is why its loadout cannot be cast here, so that it is shown as recorded; ``answerers``
        tells who answers a socket now, which is no part of the past.
        """
        self._session = session
        self.rules, self.run_dir, self.project, self.id = rules, run_dir, project, run_dir.name
        self.differences, self.messages, self.problems = (), [], tuple(problems)
        self._answerers = answerers

    @property
    def session(self) -> Session:
        """Everything that the cast knew."""
        return self._session

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
        return self.session.state

    @property
    def status(self) -> str:
        """``ready``, ``waiting``, ``held``, ``complete``, ``failed`` or ``aborted``."""
        return self.now.status

    @property
    def state(self) -> Mapping[str, JSON]:
        """The JSON state that the sockets share."""
        return self.now.data

    @property
    def steps(self) -> Sequence[StepRecord]:
        """Every step so far, in order; ``steps[-1]`` is the latest."""
        return self.session.steps

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
        return self.session.prompt

    @property
    def prompt_cut_short(self) -> Prompt | None:
        """The prompt of a turn that failed or was aborted and can be sent again; None when there is none."""
        visit, failure = self.now.at, self.failure
        if visit is None or failure is None or not failure.again:
            return None
        return None if self.rules.sockets[visit.socket].socket.is_utility else self.session.prompt

    @property
    def waiting_at(self) -> Visit | None:
        """The visit that owes an output, None when no socket is entered."""
        return self.now.waiting_at

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
        return self.session.ending

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What is odd about a complete cast, since complete is not the same as good; empty while it is not (R45)."""
        return remarks_of(self.rules, self.session)

    @property
    def writable(self) -> bool:
        """Whether this object may go on with the cast."""
        return False

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What was said in the current visit."""
        return self.session.said

    @property
    def saying(self) -> str:
        """What the agent that is asked has said so far of an answer that is still coming."""
        return ""

    @property
    def wish(self) -> str | None:
        """What the person wants changed in the draft, while that is asked in place of the prompt."""
        return self.session.wish

    @property
    def notes(self) -> Sequence[str]:
        """What the agent of the latest step told a person since it was asked last."""
        return self.steps[-1].notes[self.session.noted_before :] if self.steps else ()

    @property
    def abandoned(self) -> Sequence[Sequence[StepRecord]]:
        """The steps that were left behind by going back, one branch each."""
        return self.session.abandoned

    @property
    def pins(self) -> Mapping[str, Pin]:
        """What answers in the place of sockets and materia because a person chose it, by their names (R40)."""
        return self.session.pins

    @property
    def pins_gone(self) -> tuple[str, ...]:
        """The names pinned to functions of a kernel that is no more: pin them again, or unpin them."""
        return ()

    def pinned_at(self, socket: str) -> str | None:
        """Return the name whose pin answers a socket, its own or its materia's; None when none does."""
        names = (socket, self.graph.sockets[socket].materia.id)
        return next((name for name in names if name in self.pins), None)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turn that waits, so far."""
        return self.session.calls

    @property
    def asking(self) -> tuple[ToolCall, ...]:
        """The tool calls that wait for a person's leave; empty when none does."""
        return decide.asking(self.session)

    @property
    def calls_due(self) -> tuple[ToolCall, ...]:
        """The tool calls that a person allowed and that have not run yet."""
        return tuple(call for call in self.session.asking if call.decided is not None)

    @property
    def edits(self) -> Sequence[Edit]:
        """The changes that a person made and did not undo, in order."""
        return self.session.edits

    @property
    def usage(self) -> dict[str, JSON]:
        """Tokens and cost in all, by socket, by materia and by item, as usage.json has them (R20)."""
        return usage_report(self.rules, self.session)

    @property
    def tools_that_ask(self) -> dict[str, bool]:
        """The tools that change something, and whether each is allowed to without asking."""
        return {tool: tool in self.allowed for tool in decide.ASKING}

    @property
    def approval(self) -> Approval | None:
        """The command that consent is asked for, sealed with its fingerprint; None when none is asked for."""
        hold = self.held
        if hold is None or hold.needs != "consent" or not isinstance(hold.reading.value, dict):
            return None
        request, asked_at = request_of(hold.reading.value), (self.steps[-1].ended or 0) / 1000
        return sealed_from(request, asked_at) if can_be_granted(request) else None

    @property
    def suggestions(self) -> list[Suggestion]:
        """What the accepted outputs of this cast suggest to remember, in order, each thing once."""
        return suggestions_of(self.rules, self.steps, self.session.kept)

    @property
    def conclusion(self) -> list[str]:
        """What the agents of a complete cast tell a person, a line each; empty where their protocols have no such field."""
        return conclusion_of(self.rules, self.steps) if self.status == "complete" else []

    @property
    def grant(self) -> Grant | None:
        """A person's consent to one exact command, while the waiting agent may still use it; None when none stands (R44)."""
        grant = self.waiting_at.grant if self.waiting_at else None
        return grant if grant is not None and grant.at(time.time()).standing == "PENDING" else None

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that change something and yet need not ask in this cast."""
        return self.session.allowed

    @property
    def stopping(self) -> str | None:
        """What a stop that was asked for still waits for, and for how long; None when it waits for nothing."""
        return None

    def needs_castable(self) -> None:
        """Raise MateriaError (``not_castable``) when the loadout of an opened cast cannot be cast here (R41)."""
        if self.problems:
            raise MateriaError(
                f"The loadout of this cast cannot be cast here, so it can only be looked at: {self.problems[0]}",
                where=str(self.run_dir),
                hint="correct the loadout and cast it anew",
                kind="not_castable",
            )

    def answered_by(self, socket: str) -> str | None:
        """Return who answers an agent's socket, in a word or two; None when nobody can say."""
        return self._answerers(socket)

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
        left = self.session.abandoned
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

    def as_of(self, number: int, branch: int | None = None) -> Snapshot:
        """Return the cast as it was after a step.

        Args:
            number: of the step; 0 is the start.
            branch: the abandoned branch to which the step belongs, if it is one of those.

        Raises:
            MateriaError: there is no such step (``no_step``) or branch (``no_branch``).
        """
        steps = self.line(branch)
        last = _nth(steps, number).number if number else 0
        line = steps if isinstance(steps, Steps) else Steps(list(steps[:-1]), len(steps) - 1, steps[-1])
        then = self.session.at(self.rules, line.to(last))
        return Snapshot(
            then,
            self.rules,
            self.run_dir,
            self.project,
            problems=self.problems,
            answerers=self.answered_by,
        )

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
        following = self.steps[record.number].entry if record.number < len(self.steps) else self.ended_by
        return explain(
            self.rules, title, record.decision, after, record.entry, onward=following, pinned=record.pinned
        )

    def events(
        self,
        *,
        severity: str | None = None,
        type: str | None = None,  # noqa: A002 - the field that it is compared with
        socket: str | None = None,
    ) -> EventsView:
        """Return what outputs told in their ``event`` field, in order; it shows itself as a table (R39).

        Args:
            severity: only events of this severity or a graver one: debug, info, warning, error, critical.
            type: only events of this type.
            socket: only events of this socket.

        Raises:
            MateriaError: there is no such severity (``unknown_severity``) or socket (``unknown_socket``).
        """
        from materia_nb.views import EventsView

        if severity is not None and severity not in SEVERITIES:
            raise MateriaError(
                f"There is no severity {severity!r}.",
                hint=did_you_mean(severity, SEVERITIES),
                kind="unknown_severity",
            )
        if socket is not None and socket not in self.graph.sockets:
            raise MateriaError(
                f"The loadout {self.graph.name!r} has no socket {socket!r}.",
                hint=did_you_mean(socket, self.graph.sockets),
                kind="unknown_socket",
            )
        least = 0 if severity is None else SEVERITIES.index(severity)
        told = [
            event
            for step in self.steps
            for event in step.events
            if SEVERITIES.index(event.severity) >= least
            and type in (None, event.type)
            and socket in (None, event.socket)
        ]
        return EventsView(told)

    def ask(self, expression: str) -> list[Found]:
        """Look through the outputs of all steps with JSONPath, or a dotted path; each match with its step.

        Such as ``cast.ask("$.workItems[*].title")``.

        Raises:
            MateriaError: it is no JSONPath (``question``).
        """
        from materia_nb.insight.ask import ask

        return ask(self.steps, expression)

    @property
    def side(self) -> Side:
        """The cast as one side of a comparison."""
        return Side(self.id, self.rules, self.session)

    def blame(self, path: str) -> BlameView:
        """Tell what made a value of the state what it is, the latest change first: which step, answer and rule.

        It shows itself as a table; iterating gives each change with its ``step``, ``rule`` and ``source``.

        Args:
            path: dotted, such as ``plan.title`` or ``state.workItems.0.title``.

        Raises:
            MateriaError: the path names nothing (``bad_path``), or the cast is shown as recorded (``not_castable``).
        """
        from materia_nb.compare_view import BlameView
        from materia_nb.insight.blame import blame

        self.needs_castable()
        if not split_path(path):
            raise MateriaError("The path names nothing.", hint="such as plan.title", kind="bad_path")
        return BlameView(path, blame(self.session, path))

    def replay(self, loadout: object) -> ReplayView:
        """Send the recorded answers through another loadout: where would it have gone otherwise? Nothing runs.

        The value is true if it would have: ``first`` says where and why, ``route`` which way it takes, ``needs``
        which answer it would still lack, ``asked_otherwise`` which steps were asked something else then.

        Args:
            loadout: a graph (``wb.graph(name)``), a shown loadout (``wb.loadout(name)``), or a config as a mapping.

        Raises:
            MateriaError: it is no loadout, or has problems; or the cast is shown as recorded (``not_castable``).
        """
        from materia_nb.compare_view import ReplayView
        from materia_nb.insight.replay import replay

        self.needs_castable()
        found = replay(self.side, Rules(graph_of(loadout)).in_session(self.id))
        return ReplayView(found.original, found.replayed, found.needs, found.left_out)

    def __repr__(self) -> str:
        """Say how the cast stands; stable from run to run, since notebooks are compared by it."""
        from materia_nb.views import CastView

        return repr(CastView(self))

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

    def save_test(self, path: str | Path, *, follows: str | Path | None = None) -> Path:
        """Write the cast as a case that ``pytest`` runs, and return its path: ``NAME.materia-case.json``.

        It sends the recorded answers through the loadout and asks for the same route, end and state. Nothing
        runs. The ending is put behind a name that lacks it.

        Args:
            path: the file.
            follows: the config file whose loadout of that name is tested, as it is then; the loadout of this
                cast, kept in the case, if left out.

        Raises:
            MateriaError: its answers alone do not lead where it went (``no_test``), or it is shown as recorded.
        """
        from materia_nb.cases import SUFFIX, case_of
        from materia_nb.loadout import read_config

        self.needs_castable()
        target = Path(path)
        if not target.name.endswith(SUFFIX):
            target = target.with_name(f"{target.name.removesuffix('.json')}{SUFFIX}")
        target = target.absolute()
        read_from = None if follows is None else os.path.relpath(Path(follows).absolute(), target.parent)
        case = case_of(self, read_config(self.run_dir / "config.resolved.json"), read_from)
        with disk(target, "write the case"):
            target.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(case, ensure_ascii=False, indent=1) + "\n"
            replace_file(target, text.encode("utf-8", "replace"))
        return target

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


def graph_of(loadout: object) -> Graph:
    """Return the graph of a loadout, however it is given."""
    graph = getattr(loadout, "graph", loadout)
    if isinstance(graph, Mapping):
        return build_graph(graph)
    if isinstance(graph, Graph):
        return graph
    if graph is None:
        raise MateriaError("The loadout has problems.", hint="check shows them", kind="bad_loadout")
    raise MateriaError(
        f"A loadout is wanted, not {type(loadout).__name__}.",
        hint="give wb.graph(name), or use wb.replay(name)",
        kind="bad_loadout",
    )


def _nth(steps: Sequence[StepRecord], number: int) -> StepRecord:
    whole = type(number) is int  # what comes from a notebook need not be what the annotation says
    index = -1 if not whole else number - 1 if number > 0 else len(steps) + number
    if number == 0 or not 0 <= index < len(steps):
        raise MateriaError(
            f"There is no step {number if whole else type(number).__name__}; the cast has {len(steps)}.",
            hint="give a number from 1, or -1 for the latest",
            kind="no_step",
        )
    return steps[index]
