"""Trial answers to a turn: get answers from different agents or to different prompts without changing the cast."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import Agent, name_of
from materia_nb.agents.notebook_agents import AgentTable, PersonAgent, agent_from
from materia_nb.cast.edits import PinnedAnswer, Pins
from materia_nb.cast.formatting import data_frame, describe_failure
from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import require_castable
from materia_nb.cast.work import clean, now, redacted
from materia_nb.display.blocks import Block, Code, Displayable, Fold, Line, Table, lines
from materia_nb.engine import decide
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold, without_approvals
from materia_nb.engine.items import compile_template
from materia_nb.engine.routing import short_label
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import CastState, Pin, Usage, Visit, phrase_with_unknown
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.handoff.base import Issue
from materia_nb.handoff.checks import summarize_issues
from materia_nb.insight.estimate import step_usage
from materia_nb.jsonvalue import JSON, compact
from materia_nb.platform import run_jobs
from materia_nb.store.file_snapshots import ATTEMPTS_DIR, FileSnapshots

if TYPE_CHECKING:
    from materia_nb.engine.rules import Rules

Wording = str | Mapping[str, str]
"""A string that replaces the prompt of a materia, or a mapping from names of prompt layers to new text."""


@dataclass(frozen=True)
class Attempt:
    """A trial answer to a turn, with the socket that would run next.

    Attributes:
        number: the number of the attempt, counting from 1.
        agent: the name of the agent or model.
        wording: the number of the replacement prompt, counting from 1; 0 for the unchanged prompt.
        text: the answer, or None if there is no answer.
        valid: True if the cast would accept the answer.
        issues: the reasons why the cast would refuse the answer.
        satisfied: the verdict in the answer, or None.
        to: the id of the socket that would follow, ``end``, or None if the cast would not continue yet.
        leads: a description of the next socket and its work item, or of the outcome if the cast would not continue.
        usage: the tokens and the cost of the attempt.
        turns: the number of turns, which is 2 if the agent writes the handoff in a separate turn.
        calls: the number of tool calls.
        seconds: the duration in seconds.
        error: the reason why there is no answer, or None.
        prompt: the prompt that the agent received.
    """

    number: int
    agent: str
    wording: int
    text: str | None
    valid: bool
    issues: tuple[Issue, ...]
    satisfied: bool | None
    to: str | None
    leads: str
    usage: Usage
    turns: int
    calls: int
    seconds: float
    error: str | None
    prompt: str

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the attempt in the table of attempts."""
        return (
            str(self.number),
            self.agent,
            str(self.wording) if self.wording else "as it is",
            "no answer" if self.text is None else "yes" if self.valid else "refused",
            "" if self.satisfied is None else compact(self.satisfied),
            self.leads,
            self.usage.tokens_text,
            self.usage.cost_text if self.usage.cost else "",
            f"{self.seconds:.1f} s",
        )


class Trial(Runner):
    """A runner that runs a single turn and keeps the results in memory.

    Attributes:
        repeats: functions that repeat the commands of the trial in the real cast if its answer is used.
        failure_message: the reason why the agent could not answer, or None.
        file_commits: the commits of the file snapshots before and after the turn, or None if the cast stores no
            snapshots.
    """

    def __init__(self, runner: Runner, session: Session, agents: AgentTable) -> None:
        """Create a trial that starts from ``session``. All tools with side effects require approval."""
        super().__init__(
            runner.run_dir,
            runner.rules,
            without_approvals(session),
            project=runner.project,
            agents=agents,
            utilities=runner.utilities,
        )
        self._own_folder: Path | None = None
        self.file_commits: tuple[str, str] | None = None
        self.repeats: list[Callable[[Runner, Mapping[str, JSON]], None]] = []
        self.failure_message: str | None = None

    @property
    def base(self) -> Path:
        """The working directory of the agent, which is a copy of the files if the cast stores file snapshots."""
        return self._own_folder or super().base

    @contextmanager
    def in_own_folder(self, number: int) -> Iterator[None]:
        """Work in a copy of the files, so that attempts do not see each other's changes.

        There is no copy if the cast does not store file snapshots.
        """
        start_commit = self.session.files
        if start_commit is None:
            yield
            return
        cast_dir = self.run_dir.path
        folder = cast_dir / ATTEMPTS_DIR / f"{os.getpid()}-{number}"
        snapshots = FileSnapshots(folder, cast_dir.parent, cast_dir.name, own=True)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            snapshots.check_out(start_commit)
            self._own_folder = folder
            yield
            self.file_commits = (start_commit, snapshots.take(start_commit).commit)
        finally:
            self._own_folder = None
            shutil.rmtree(folder, ignore_errors=True)

    def run_command(self, command: Callable[..., Events], *arguments: object) -> None:
        """Run a command in memory, and store the command so that it can be repeated in the real cast."""
        super().run_command(command, *arguments)
        self.repeats.append(lambda runner, _: runner.run_command(command, *arguments))

    def record_events(self, events: Events, *, later: bool = False) -> None:  # noqa: ARG002
        """Apply events to the session in memory, without writing them to disk."""
        self.session = fold(self.rules, self.session, events)

    def handle_reply(self, reply: Answer) -> None:
        """Apply an answer to the trial, but do not ask for a repair if the answer is refused."""
        work_time = self.worked
        super().handle_reply(reply)

        def adopt(runner: Runner, attempt_fields: Mapping[str, JSON]) -> None:
            runner.worked = work_time
            runner.handle_reply(reply._replace(meta={**reply.meta, "attempt": dict(attempt_fields)}))

        self.repeats.append(adopt)
        visit = self.session.state.waiting_at
        if visit is not None and visit.mode == "repair":
            self.stop.set()

    def write_side_files(self, visit: Visit, before: CastState) -> None:
        """Do nothing, because an attempt writes no files."""

    def write_derived(self) -> None:
        """Do nothing, because an attempt writes no files."""

    def _fail(self, kind: str, message: str, hint: str) -> None:
        super()._fail(kind, message, hint)
        self.failure_message = redacted(message)

    def pin_name_of(self, socket: str) -> str | None:  # noqa: ARG002
        """Return None, so that the agent is called even if the socket is pinned."""
        return None

    def attempt(
        self, before: Session, number: int, agent_name: str | None, wording: int, texts: Mapping[str, str]
    ) -> Attempt:
        """Ask the agent for one answer to the waiting turn.

        Args:
            before: the session in which the turn is waiting.
            number: the number of the attempt, counting from 1.
            agent_name: the name to display for the agent; None to use the name of the model or agent.
            wording: the number of the replacement prompt, counting from 1; 0 for the unchanged prompt.
            texts: the replacement text of prompt layers, by layer name.
        """
        visit = decide.waiting_visit_of(before)
        agent: Agent = self.agents.for_turn(visit.socket, self.materia(visit).id)
        for layer, text in texts.items():
            self.run_command(decide.edit_prompt, layer, text)
        prompt = _next_prompt_text(self.session)
        started = time.monotonic()
        if isinstance(agent, PersonAgent):
            error: str | None = "a person answers this socket; pass other agents"
        else:
            with self.in_own_folder(number):
                self.ask()
            error = self.failure_message
        seconds = time.monotonic() - started
        step, step_before = self.session.steps[-1], before.steps[-1]
        turns = step.turns[len(step_before.turns) :]
        reading = turns[-1].reading if turns else None
        is_accepted = reading is None or reading.accepted
        has_answer = bool(turns) and error is None
        target, leads = self._next_socket_and_text() if has_answer else (None, _approval_question(self.session))
        return Attempt(
            number,
            agent_name or self.materia(visit).model or name_of(agent),
            wording,
            text=turns[-1].text if turns else None,
            valid=has_answer and is_accepted,
            issues=() if reading is None or is_accepted else reading.issues,
            satisfied=None if reading is None else reading.satisfied,
            to=target,
            leads=leads,
            usage=step_usage(step).minus(step_usage(step_before)),
            turns=len(turns),
            calls=len(step.calls) - len(step_before.calls),
            seconds=seconds,
            error=error or (None if turns or self.session.open_calls else "the agent did not answer"),
            prompt=prompt,
        )

    def _next_socket_and_text(self) -> tuple[str | None, str]:
        """Return the next socket after the answer (its id, ``end`` or None), and a description of it for display."""
        state = self.session.state
        if state.status == "ready":
            state = fold(self.rules, self.session, decide.enter(self.rules, self.session, now())).state
            if state.status == "waiting" and state.at is not None:
                item = f" ({short_label(state.at.item.label)})" if state.at.item is not None else ""
                return state.at.socket, f"{self.rules.graph.names[state.at.socket]}{item}"
        if state.status == "complete":
            return "end", "end"
        if state.failure is not None:
            return None, f"fails: {describe_failure(state.failure.kind)}"
        if state.hold is not None and state.status == "held":
            return None, f"puts the cast on hold: {state.hold.reason}"
        turn = state.at.mode if state.at is not None else ""
        questions = {"repair": "would be asked to repair the answer", "draft": "a draft is waiting for a decision"}
        return None, _approval_question(self.session) or questions.get(turn, "")


def _approval_question(session: Session) -> str:
    tools = ", ".join(dict.fromkeys(call.tool for call in session.open_calls))
    return f"is asking for approval of {tools}" if tools else ""


def _next_prompt_text(session: Session) -> str:
    return session.next_message if isinstance(session.next_message, str) else session.next_message.text


_COLUMNS: Final = ("attempt", "agent", "wording", "valid", "satisfied", "leads to", "tokens", "cost", "took")
_MAX_OPEN: Final = 6
_FIELDS: Final = (
    *("number", "agent", "wording", "valid", "satisfied", "leads", "turns", "calls", "input", "output"),
    *("tokens", "cost", "seconds", "text", "error"),
)  # Columns of the data frame that `attempts.frame()` returns.


class Attempts(Displayable, Sequence[Attempt]):
    """The trial answers to one turn that ``cast.attempt`` created, displayed as a table."""

    def __init__(
        self,
        runner: Runner,
        socket: str | None,
        n: int,
        agents: Sequence[object] | None,
        prompts: Sequence[Wording | None] | None,
    ) -> None:
        """Prepare the attempts without running them. ``Cast.attempt`` describes the arguments.

        Raises:
            MateriaError: no turn of an agent is waiting, or ``n`` is less than 1 (``usage``).
        """
        if n < 1:
            raise usage_error("At least one attempt is needed.", "set `n` to 1 or more")
        if runner.session.snapshot_method:
            with runner.lock():
                runner.prepare_change()  # saves the files that the attempts start from
        self._runner, self._session_before = runner, runner.session
        self._asked_session = _session_to_ask(runner, socket)
        layers = [_replacement_layers(self._asked_session, prompt) for prompt in prompts or [None]]
        if isinstance(agents, str) or not isinstance(agents, Sequence | None):
            agents = [agents]
        tables = [(runner.agents, None)] if agents is None else [_agent_table(agent) for agent in agents]
        self._jobs = [
            (Trial(runner, self._asked_session, table), name, wording if texts else 0, texts)
            for table, name in tables
            for wording, texts in enumerate(layers, start=1)
            for _ in range(n)
        ]
        self._results: dict[int, tuple[Attempt, Trial]] = {}

    def ask(self, at_once: int) -> None:
        """Run the attempts, at most ``at_once`` in parallel. Completed attempts are kept after an interrupt."""
        if at_once < 1:
            raise usage_error("The number of parallel attempts must be at least 1.", "set `at_once` to 1 or more")

        def run(index: int) -> tuple[Attempt, Trial]:
            trial, name, wording, texts = self._jobs[index]
            return trial.attempt(self._asked_session, index + 1, name, wording, texts), trial

        try:
            for number, result in run_jobs(run, range(len(self._jobs)), at_once):
                self._results[number] = result
        except BaseException:
            for trial, *_ in self._jobs:
                trial.stop.set()
            raise

    @property
    def _finished_attempts(self) -> list[tuple[Attempt, Trial]]:
        return [self._results[number] for number in sorted(self._results)]

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: Any) -> Any:
        return [attempt for attempt, _ in self._finished_attempts][index]

    @property
    def socket(self) -> str:
        """The id of the socket whose turn is attempted."""
        return decide.waiting_visit_of(self._asked_session).socket

    @property
    def usage(self) -> Usage:
        """The total tokens and cost of all attempts."""
        return Usage().plus(*(attempt.usage for attempt in self))

    def _blocks(self) -> list[Block]:
        answers = [
            Fold(f"answer {attempt.number} by {attempt.agent}", [Code(attempt.text)], opened=len(self) <= _MAX_OPEN)
            for attempt in self
            if attempt.text is not None
        ]
        table = Table(_COLUMNS, [attempt.row for attempt in self])
        return [Line(self._summary()), table, *lines(self._problems()), *answers]

    def _summary(self) -> str:
        usable_count, usage = sum(attempt.valid for attempt in self), self.usage
        times = "once" if len(self) == 1 else f"{len(self)} times"
        tokens = "tokens unknown" if usage.tokens is None else f"{usage.tokens:,} tokens"
        cost = f", {usage.cost:.4f} USD" if usage.cost else ""
        unknown_count = max(usage.without_tokens, usage.without_cost if cost else 0) if usage.tokens else 0
        usage_text = phrase_with_unknown(f"{tokens}{cost} in total", unknown_count)
        name = self._runner.rules.graph.names[self.socket]
        return f"{name} was asked {times}; {counted(usable_count, 'answer')} would be accepted, {usage_text}"

    def _problems(self) -> Iterator[str]:
        for attempt in self:
            yield from (f"Attempt {attempt.number} was refused: {issue.summary}" for issue in attempt.issues[:3])
            if attempt.error:
                yield f"Attempt {attempt.number} has no answer: {attempt.error}"

    def take(self, number: int) -> StepRecord:
        """Use an attempt as the answer of the turn, and return the resulting step.

        The journal records the answer with the agent, prompt wording, tool calls, notes and tokens of the attempt. The
        usage of the other attempts is not added to the cast.

        Raises:
            MateriaError: the attempt does not exist (``no_attempt``), its answer would be refused (``refused``), or the
                cast no longer waits for an answer to the same prompt (``gone_on``).
        """
        attempt, trial = self._result(number)
        if not attempt.valid:
            why = attempt.error or summarize_issues(attempt.issues, 3) or attempt.leads
            raise MateriaError(
                f"Attempt {number} has no acceptable answer:  {why}",
                where=self.socket,
                hint="use another attempt, or use `reply` to send a corrected answer",
                kind="refused",
            )
        runner = self._runner
        with runner.lock(), runner.change():
            if runner.session is not self._session_before and not self._is_still_waiting(runner.session):
                raise MateriaError(
                    "The turn is no longer waiting with the same prompt.",
                    where=self.socket,
                    hint="try again, pin the answer, or go back to the previous step",
                    kind="gone_on",
                )
            if runner.session.state.status == "ready":
                runner.enter()
            if trial.file_commits is not None:
                if runner.session.files != trial.file_commits[0]:
                    raise MateriaError(
                        "The files have changed since the attempt began.",
                        hint="call `cast.attempt` again, or go back one step and restore its files",
                        kind="gone_on",
                    )
                runner.file_snapshots().restore(*trial.file_commits)
            fields: dict[str, JSON] = {"number": number, "of": len(self._jobs), "agent": attempt.agent}
            if attempt.wording:
                fields["wording"] = attempt.wording
            for repeat in trial.repeats:
                repeat(runner, fields)
            runner.write_derived()
            return runner.session.steps[-1]

    def pin(self, number: int) -> Pin:
        """Pin the socket to the answer of an attempt, from the next turn on (R40).

        Raises:
            MateriaError: the attempt does not exist (``no_attempt``) or has no answer (``refused``).
        """
        attempt, _ = self._result(number)
        if attempt.text is None:
            raise MateriaError(f"Attempt {number} has no answer: {attempt.error}", where=self.socket, kind="refused")
        pin = Pin("text", f"attempt {number} of {len(self._jobs)}, by {attempt.agent}", clean(attempt.text))
        Pins(self._runner).put(self.socket, PinnedAnswer(pin))
        return pin

    def _is_still_waiting(self, session: Session) -> bool:
        """Return True if the cast is still waiting at the same visit, with the same conversation and prompt."""
        current, before = entered(self._runner.rules, session), self._asked_session
        if current is None or current.open_calls or len(current.abandoned) != len(before.abandoned):
            return False
        visit, other = (decide.waiting_visit_of(session_)._replace(approval=None) for session_ in (current, before))
        same_text = _next_prompt_text(current) == _next_prompt_text(before)
        return visit == other and same_text and current.messages == before.messages and current.calls == before.calls

    def _result(self, number: int) -> tuple[Attempt, Trial]:
        if type(number) is not int or not 1 <= number <= len(self):
            raise MateriaError(
                f"Attempt {number!r} does not exist.", hint=f"choose a number from 1 to {len(self)}", kind="no_attempt"
            )
        return self._finished_attempts[number - 1]

    def frame(self) -> Any:
        """Return the attempts as a pandas data frame, with one row per attempt.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        used = ("input", "output", "tokens", "cost")
        rows = ({**vars(attempt), **{name: getattr(attempt.usage, name) for name in used}} for attempt in self)
        return data_frame(rows, _FIELDS)


def _session_to_ask(runner: Runner, socket: str | None) -> Session:
    """Return the session of the cast at the turn that the attempts will answer.

    Raises:
        MateriaError: the next turn does not belong to an agent, the cast is at another socket, or a step is running.
    """
    require_castable(runner.problems, runner.run_dir.path)
    graph = runner.rules.graph
    if runner.busy():
        raise MateriaError("A step is running.", hint="wait until the step ends, or pause the run", kind="busy")
    if socket is not None:
        socket = graph.find_socket(socket)
    session = entered(runner.rules, runner.session)
    if session is None:
        raise MateriaError(
            f"No agent turn is waiting; the cast {runner.session.state.status_phrase}.",
            hint="fork the cast after the previous step, and attempt the turn in the fork",
            kind="not_waiting",
        )
    visit = decide.waiting_visit_of(session)
    if socket is not None and socket != visit.socket:
        message = f"The turn of {graph.names[visit.socket]} is waiting, not a turn of {graph.names[socket]}."
        hint = f"continue with `run(until={socket!r})`, or fork the cast after the step before {socket}"
        raise MateriaError(message, hint=hint, kind="not_waiting")
    if runner.rules.sockets[visit.socket].socket.is_utility:
        message = f"{graph.names[visit.socket]} is a utility, so a process answers it."
        raise MateriaError(message, hint="run it with `step`", kind="not_an_agent")
    if session.open_calls or (visit.mode == "draft" and visit.drafts and session.change_request is None):
        question = "tool calls are waiting for approval" if session.open_calls else "a draft is waiting for a decision"
        raise MateriaError(
            f"A person must decide first: {question}.",
            hint="approve or deny the tool calls, or refine or accept the draft",
            kind="not_waiting",
        )
    return session


def entered(rules: Rules, session: Session) -> Session | None:
    """Return the session after entering the next socket, or None if the cast is not waiting after that."""
    if session.state.status == "ready":
        session = fold(rules, session, decide.enter(rules, session, now()))
    return session if session.state.status == "waiting" else None


def _replacement_layers(session: Session, wording: Wording | None) -> dict[str, str]:
    """Return the replacement text of each prompt layer that ``wording`` changes, by layer name."""
    if wording is None:
        return {}
    if session.change_request is not None:
        raise MateriaError(
            "The next prompt is your message about the draft, so its wording cannot be changed.",
            hint="use `refine` to send another message",
            kind="prompt",
        )
    if isinstance(wording, str):
        visit = decide.waiting_visit_of(session)
        return {"task": compile_template(wording)(session.state, visit.item)}
    return {name: clean(text) for name, text in wording.items()}


def _agent_table(value: object) -> tuple[AgentTable, str]:
    """Return an agent table that contains only the agent ``value``, and the name of the agent."""
    agent = agent_from(value)
    return AgentTable(agent), value if isinstance(value, str) else name_of(agent)
