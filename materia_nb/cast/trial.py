"""One try of a turn: its agent is asked as a cast asks it, and what comes of it stays in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from materia_nb.agents.agent_table import AgentTable
from materia_nb.agents.interface import Agent, SoundReply
from materia_nb.agents.notebook_agents import PersonAgent
from materia_nb.cast.runner import Runner
from materia_nb.cast.turns import now, redacted
from materia_nb.cast.views.attempt_view import Attempt
from materia_nb.engine import decide
from materia_nb.engine.decide import Outcome
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState, Usage, Visit
from materia_nb.insight import sides
from materia_nb.jsonvalue import JSON


class Trial(Runner):
    """Asks an agent as the runner of a cast does, and keeps what comes of it in memory only.

    Attributes:
        done: what was done, to be done again with the cast when the answer is taken.
        failed: why the agent could not answer, None when it could.
    """

    def __init__(self, runner: Runner, session: Session, agents: AgentTable) -> None:
        """Begin at a session of its cast, with tools that ask before they change something."""
        at = session.state.at
        if at is not None and at.grant is not None:
            session = session._replace(state=session.state._replace(at=at._replace(grant=None)))
        session = session._replace(allowed=frozenset())
        super().__init__(
            runner.files,
            runner.rules,
            session,
            project=runner.project,
            agents=agents,
            utilities=runner.utilities,
        )
        self.done: list[Callable[[Runner, Mapping[str, JSON]], None]] = []
        self.failed: str | None = None

    def do(self, command: Callable[..., Outcome], *given: object) -> None:
        """Carry out a command in memory, and note it."""
        super().do(command, *given)
        self.done.append(lambda runner, _: runner.do(command, *given))

    def keep(self, outcome: Outcome, *, later: bool = False) -> None:  # noqa: ARG002 - nothing is written
        """Believe an outcome."""
        self.session = outcome.session

    def arrived(self, reply: SoundReply, process: str = "", pinned: str | None = None) -> None:
        """Take an answer; one that is refused is not asked for again."""
        super().arrived(reply, process, pinned)
        self.done.append(
            lambda runner, told: runner.arrived(reply._replace(meta={**reply.meta, "attempt": dict(told)}))
        )
        at = self.session.state.waiting_at
        if at is not None and at.mode == "repair":
            self.stop.set()

    def keep_beside(self, visit: Visit, before: CastState) -> None:
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
    who = name or trial.materia(visit).model or agent.name
    error: str | None = None
    for layer, text in texts.items():
        trial.do(decide.edit_prompt, layer, text)
    prompt = trial.session.asked
    begun = time.monotonic()
    if isinstance(agent, PersonAgent):
        error = "a person answers here: give agents"
    else:
        trial.ask()
        error = trial.failed
    seconds = time.monotonic() - begun
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
        _less(sides.used(step), sides.used(before.steps[-1])),
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
        state = decide.enter(trial.rules, trial.session, now()).session.state
        if state.status == "waiting" and state.at is not None:
            item = f" ({state.at.item.key})" if state.at.item is not None else ""
            return state.at.socket, f"{state.at.socket}{item}"
    if state.status == "complete":
        return "end", "end"
    if state.failure is not None:
        return None, f"fails: {state.failure.kind}"
    if state.hold is not None and state.status == "held":
        return None, f"holds the cast: {state.hold.reason}"
    turn = state.at.mode if state.at is not None else ""
    asks = {"repair": "is asked to repair it", "draft": "a draft to judge"}
    return None, _asks(trial.session) or asks.get(turn, "")


def _asks(session: Session) -> str:
    tools = ", ".join(dict.fromkeys(call.tool for call in session.asking))
    return f"asks leave for {tools}" if tools else ""


def _less(used: Usage, before: Usage) -> Usage:
    return Usage(used.input - before.input, used.output - before.output, used.cost - before.cost)
