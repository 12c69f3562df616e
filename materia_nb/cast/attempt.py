"""One turn asked several times, of several agents or in several wordings; nothing of it touches the cast."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import Agent, name_of
from materia_nb.agents.notebook_agents import AgentTable, PersonAgent, agent_from
from materia_nb.cast.edits import Chosen, Pins
from materia_nb.cast.formatting import data_frame, failure_words
from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import refuse_recorded
from materia_nb.cast.views.compare_view import Attempt, AttemptsView
from materia_nb.cast.work import clean, now, redacted
from materia_nb.engine import decide
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold, without_consent
from materia_nb.engine.items import template
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import CastState, Pin, Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import summarize_issues
from materia_nb.insight.estimate import step_usage
from materia_nb.jsonvalue import JSON
from materia_nb.platform import run_jobs
from materia_nb.store.file_snapshots import ATTEMPTS, FileSnapshots

if TYPE_CHECKING:
    from materia_nb.engine.rules import Rules


class Trial(Runner):
    """Asks an agent as the runner of a cast does, and keeps what comes of it in memory only.

    Attributes:
        done: what was done, to be done again with the cast when the answer is taken.
        failed: why the agent could not answer, None when it could.
        wrote: the files before and after, where they are kept.
    """

    def __init__(self, runner: Runner, session: Session, agents: AgentTable) -> None:
        """Begin at a session of its cast, with tools that ask before they change something."""
        super().__init__(
            runner.files,
            runner.rules,
            without_consent(session),
            project=runner.project,
            agents=agents,
            utilities=runner.utilities,
        )
        self._own: Path | None = None
        self.wrote: tuple[str, str] | None = None
        self.done: list[Callable[[Runner, Mapping[str, JSON]], None]] = []
        self.failed: str | None = None

    @property
    def base(self) -> Path:
        """Where its agent works: a folder of its own, where files are kept."""
        return self._own or super().base

    @contextmanager
    def in_own_folder(self, number: int) -> Iterator[None]:
        """Work on a copy of the files, where they are kept, so that no try sees another's; what becomes of them is kept."""
        start_commit = self.session.files
        if start_commit is None:
            yield
            return
        own = self.files.path / ATTEMPTS / f"{os.getpid()}-{number}"
        keeper = FileSnapshots(own, self.files.path.parent, self.files.path.name, own=True)
        shutil.rmtree(own, ignore_errors=True)
        try:
            keeper.check_out(start_commit)
            self._own = own
            yield
            note = {
                "cast": self.files.path.name,
                "step": len(self.session.steps),
                "by": "step",
                "attempt": number,
            }
            self.wrote = (start_commit, keeper.take(start_commit, note).commit)
        finally:
            self._own = None
            shutil.rmtree(own, ignore_errors=True)

    def run_command(self, command: Callable[..., Events], *arguments: object) -> None:
        """Carry out a command in memory, and note it."""
        super().run_command(command, *arguments)
        self.done.append(lambda runner, _: runner.run_command(command, *arguments))

    def keep(self, events: Events, *, later: bool = False) -> None:  # noqa: ARG002
        """Believe what events lead to; nothing is written."""
        self.session = fold(self.rules, self.session, events)

    def handle_reply(self, reply: Answer) -> None:
        """Take an answer; one that is refused is not asked for again."""
        worked = self.worked
        super().handle_reply(reply)

        def adopt(runner: Runner, attempt_fields: Mapping[str, JSON]) -> None:
            runner.worked = worked
            runner.handle_reply(reply._replace(meta={**reply.meta, "attempt": dict(attempt_fields)}))

        self.done.append(adopt)
        at = self.session.state.waiting_at
        if at is not None and at.mode == "repair":
            self.stop.set()

    def write_side_files(self, visit: Visit, before: CastState) -> None:
        """Write nothing."""

    def write_derived(self) -> None:
        """Write nothing."""

    def _fail(self, kind: str, message: str, hint: str) -> None:
        super()._fail(kind, message, hint)
        self.failed = redacted(message)

    def pin_of(self, socket: str) -> str | None:  # noqa: ARG002 - whatever is pinned, the agent is asked
        """Return None: what is pinned need not be asked."""
        return None


def tried(
    trial: Trial, before: Session, number: int, name: str | None, wording: int, texts: Mapping[str, str]
) -> Attempt:
    """Ask the turn that waits in ``before`` once, in a wording: texts of layers by name."""
    visit = decide.waiting(before)
    agent: Agent = trial.agents.for_turn(visit.socket, trial.materia(visit).id)
    who = name or trial.materia(visit).model or name_of(agent)
    error: str | None = None
    for layer, text in texts.items():
        trial.run_command(decide.edit_prompt, layer, text)
    prompt = trial.session.asked
    started = time.monotonic()
    if isinstance(agent, PersonAgent):
        error = "a person answers here: give agents"
    else:
        with trial.in_own_folder(number):
            trial.ask()
        error = trial.failed
    seconds = time.monotonic() - started
    step = trial.session.steps[-1]
    turns = step.turns[len(before.steps[-1].turns) :]
    reading = turns[-1].reading if turns else None
    answered = bool(turns) and error is None
    valid = answered and (reading is None or reading.accepted)
    to, leads = _leads(trial) if answered else (None, _asks(trial.session))
    return Attempt(
        number,
        who,
        wording,
        turns[-1].text if turns else None,
        valid,
        () if reading is None or reading.accepted else reading.issues,
        None if reading is None else reading.satisfied,
        to,
        leads,
        step_usage(step).less(step_usage(before.steps[-1])),
        len(turns),
        len(step.calls) - len(before.steps[-1].calls),
        seconds,
        error or (None if turns or trial.session.asking else "it gave no answer"),
        prompt if isinstance(prompt, str) else prompt.text,
    )


def _leads(trial: Trial) -> tuple[str | None, str]:
    """Where an answer would lead: a socket or the end, and the same in words."""
    state = trial.session.state
    if state.status == "ready":
        state = fold(trial.rules, trial.session, decide.enter(trial.rules, trial.session, now())).state
        if state.status == "waiting" and state.at is not None:
            item = f" ({state.at.item.key})" if state.at.item is not None else ""
            return state.at.socket, f"{state.at.socket}{item}"
    if state.status == "complete":
        return "end", "end"
    if state.failure is not None:
        return None, f"fails: {failure_words(state.failure.kind)}"
    if state.hold is not None and state.status == "held":
        return None, f"holds the cast: {state.hold.reason}"
    turn = state.at.mode if state.at is not None else ""
    asks = {"repair": "is asked to repair it", "draft": "a draft to judge"}
    return None, _asks(trial.session) or asks.get(turn, "")


def _asks(session: Session) -> str:
    tools = ", ".join(dict.fromkeys(call.tool for call in session.asking))
    return f"asks approval for {tools}" if tools else ""


Wording = str | Mapping[str, str]
"""Another prompt of the materia, with the same variables; or texts of layers of the whole prompt, by name."""

_FIELDS: Final = (
    *("number", "agent", "wording", "valid", "satisfied", "leads", "turns", "calls", "input", "output"),
    *("tokens", "cost", "seconds", "text", "error"),
)
"""The columns of ``attempts.frame()``."""


class Attempts(AttemptsView):
    """Answers to one turn, side by side; it shows itself as a table. Made by ``cast.attempt``."""

    def __init__(
        self,
        runner: Runner,
        socket: str | None,
        n: int,
        agents: Sequence[object] | None,
        prompts: Sequence[Wording | None] | None,
    ) -> None:
        """See to it that the turn can be asked; :meth:`ask` asks it."""
        if n < 1:
            raise MateriaError("At least one attempt is needed.", hint="n from 1", kind="usage")
        if runner.session.keeps:
            with runner.lock():
                runner.begin()  # which keeps the files as they are now
        self._runner, self._from = runner, runner.session
        self._asked = _to_ask(runner, socket)
        layers = [_layers(self._asked, prompt) for prompt in prompts or [None]]
        tables = [(runner.agents, None)] if agents is None else [_table(entry) for entry in _listed(agents)]
        self._jobs = [
            (Trial(runner, self._asked, table), name, place if texts else 0, texts)
            for table, name in tables
            for place, texts in enumerate(layers, start=1)
            for _ in range(n)
        ]
        self._made: dict[int, tuple[Attempt, Trial]] = {}

    def ask(self, at_once: int) -> None:
        """Ask them all; when it is interrupted, those that have answered stay."""
        if at_once < 1:
            raise MateriaError("At least one is asked at a time.", hint="at_once from 1", kind="usage")

        def one(place: int) -> tuple[Attempt, Trial]:
            trial, name, wording, texts = self._jobs[place]
            return tried(trial, self._asked, place + 1, name, wording, texts), trial

        try:
            for number, result in run_jobs(one, range(len(self._jobs)), at_once):
                self._made[number] = result
        except BaseException:
            for trial, *_ in self._jobs:
                trial.stop.set()
            raise

    @property
    def _all(self) -> list[tuple[Attempt, Trial]]:
        return [self._made[number] for number in sorted(self._made)]

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: Any) -> Any:
        selected = self._all[index]
        return [attempt for attempt, _ in selected] if isinstance(index, slice) else selected[0]

    def __iter__(self) -> Iterator[Attempt]:
        return (attempt for attempt, _ in self._all)

    @property
    def socket(self) -> str:
        """Which socket was asked."""
        return decide.waiting(self._asked).socket

    def take(self, number: int) -> StepRecord:
        """Make one the answer of the turn: it is journaled as if its agent had just given it, with who and of how many.

        Its tool calls, notes and tokens go with it, and the wording that was asked; what the others cost stays
        out of the cast and its budget. Returns the step.

        Raises:
            MateriaError: there is no such attempt (``no_attempt``), it has no answer that would be accepted
                (``refused``), or the turn does not wait any more as it was asked (``gone_on``).
        """
        attempt, trial = self._nth(number)
        if not attempt.valid:
            why = attempt.error or summarize_issues(attempt.issues, 3) or attempt.leads
            raise MateriaError(
                f"Attempt {number} has no answer that would be accepted: {why}",
                where=self.socket,
                hint="take another, or reply with a corrected answer",
                kind="refused",
            )
        runner = self._runner
        with runner.lock():
            runner.begin()
            if runner.session is not self._from and not self._still_waits(runner.session):
                raise MateriaError(
                    "The turn is no longer waiting with the same prompt.",
                    where=self.socket,
                    hint="attempt it again, pin the answer, or go back to the step before",
                    kind="gone_on",
                )
            if runner.session.state.status == "ready":
                runner.enter()
            attempt_fields: dict[str, JSON] = {
                "number": number,
                "of": len(self._jobs),
                "agent": attempt.agent,
            }
            if attempt.wording:
                attempt_fields["wording"] = attempt.wording
            if trial.wrote is not None:
                if runner.session.files != trial.wrote[0]:
                    raise MateriaError(
                        "The files have changed since the attempt began.",
                        hint="attempt it again, or go back to the step before with its files",
                        kind="gone_on",
                    )
                runner.file_snapshots().restore(*trial.wrote)
            for repeat in trial.done:
                repeat(runner, attempt_fields)
            runner.write_derived()
            return runner.session.steps[-1]

    def pin(self, number: int) -> Pin:
        """Pin the socket to one of the answers: it answers there from the next turn on (R40).

        Raises:
            MateriaError: there is no such attempt (``no_attempt``), or it has no answer (``refused``).
        """
        attempt, _ = self._nth(number)
        if attempt.text is None:
            raise MateriaError(f"Attempt {number} has no answer: {attempt.error}", where=self.socket, kind="refused")
        pin = Pin("text", f"attempt {number} of {len(self._jobs)}, by {attempt.agent}", clean(attempt.text))
        Pins(self._runner).put(self.socket, Chosen(pin))
        return pin

    def _still_waits(self, session: Session) -> bool:
        """Whether the same turn waits: of the same visit, with the same said before, and asked the same."""
        current, asked = entered(self._runner.rules, session), self._asked
        if current is None or current.asking or len(current.abandoned) != len(asked.abandoned):
            return False
        visit, other = (decide.waiting(session_)._replace(grant=None) for session_ in (current, asked))
        left, right = (
            session_.asked if isinstance(session_.asked, str) else session_.asked.text for session_ in (current, asked)
        )
        return visit == other and left == right and current.said == asked.said and current.calls == asked.calls

    def _nth(self, number: int) -> tuple[Attempt, Trial]:
        if type(number) is not int or not 1 <= number <= len(self):
            raise MateriaError(
                f"There is no attempt {number!r}.",
                hint=f"they count from 1 to {len(self)}",
                kind="no_attempt",
            )
        return self._all[number - 1]

    def frame(self) -> Any:
        """Return the attempts as a pandas data frame, one a row, with their tokens and cost.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = (
            {
                **{name: getattr(attempt, name, None) for name in _FIELDS},
                "input": attempt.usage.input,
                "output": attempt.usage.output,
                "tokens": attempt.usage.tokens,
                "cost": attempt.usage.cost,
            }
            for attempt in self
        )
        return data_frame(rows, _FIELDS)


def _to_ask(runner: Runner, socket: str | None) -> Session:
    """Return the session in which the turn waits that is to be asked.

    Raises:
        MateriaError: no agent is asked there, or the cast stands elsewhere.
    """
    refuse_recorded(runner.problems, runner.files.path)
    graph, stands = runner.rules.graph, runner.session.state.stands
    if runner.busy():
        raise MateriaError("A step is running.", hint="wait until it is over, or pause", kind="busy")
    if socket is not None:
        graph.needs_socket(socket)
    session = entered(runner.rules, runner.session)
    if session is None:
        raise MateriaError(
            f"No turn of an agent waits; the cast {stands}.",
            hint="fork it after the previous step, and attempt there",
            kind="not_waiting",
        )
    visit = decide.waiting(session)
    if socket not in (None, visit.socket):
        raise MateriaError(
            f"{visit.socket} waits, not {socket}.",
            hint=f"run(until={socket!r}), or fork the cast behind the step before {socket}",
            kind="not_waiting",
        )
    if runner.rules.sockets[visit.socket].socket.is_utility:
        raise MateriaError(
            f"{visit.socket} is a utility; a process answers there.", hint="step runs it", kind="not_an_agent"
        )
    if session.asking or (visit.mode == "draft" and visit.drafts and session.wish is None):
        question = "tool calls wait to be approved" if session.asking else "a draft waits to be judged"
        raise MateriaError(
            f"A person decides first: {question}.",
            hint="approve or deny; refine or accept",
            kind="not_waiting",
        )
    return session


def entered(rules: Rules, session: Session) -> Session | None:
    """Return the session in which the next socket is entered, itself where one waits; None when there is none."""
    if session.state.status == "ready":
        session = fold(rules, session, decide.enter(rules, session, now()))
    return session if session.state.status == "waiting" else None


def _layers(session: Session, wording: Wording | None) -> dict[str, str]:
    """The layers that a wording changes, and their texts."""
    if wording is None:
        return {}
    if session.wish is not None:
        raise MateriaError(
            "The next prompt is your message about the draft.", hint="refine with another", kind="prompt"
        )
    if isinstance(wording, str):
        visit = decide.waiting(session)
        return {"task": template(wording)(session.state, visit.item)}
    return {name: clean(text) for name, text in wording.items()}


def _listed(agents: Sequence[object]) -> Sequence[object]:
    if isinstance(agents, str) or not isinstance(agents, Sequence):
        return [agents]
    return agents


def _table(value: object) -> tuple[AgentTable, str | None]:
    """Who is asked; its model as it was named, since all models have the same name."""
    agent = agent_from(value)
    return AgentTable(agent), value if isinstance(value, str) else name_of(agent)
