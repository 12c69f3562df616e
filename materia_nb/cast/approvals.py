"""What agents ask a person for: tool calls, one exact command, a decision or an answer: ``cast.approvals``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import Asked
from materia_nb.cast.turns import clean
from materia_nb.engine import decide
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.decide import Outcome
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Approval


class Approvals(Asked):
    """What waits for a person in one cast, and the commands that answer it."""

    def __init__(self, runner: Runner) -> None:
        """Answer for the cast that ``runner`` runs."""
        super().__init__(runner.snapshot)
        self._runner = runner

    def _ask(self, command: Callable[..., Outcome], *given: object) -> StepRecord:
        self._runner.and_ask(command, *given)
        return self._runner.session.steps[-1]

    def allow(self, *tools: str) -> None:
        """Let these tools (``bash``, ``edit``, ``write``) run without asking, in this cast only.

        Raises:
            MateriaError: a name is not that of a tool which asks (``unknown_tool``).
        """
        with self._runner.lock():
            self._runner.begin()
            self._runner.do(decide.allow, self.allowed | decide.known_tools(tools))

    def disallow(self, *tools: str) -> None:
        """Let these tools ask again; all of them if none is named."""
        with self._runner.lock():
            self._runner.begin()
            gone = decide.known_tools(tools) if tools else self.allowed
            self._runner.do(decide.allow, self.allowed - gone)

    def answer(self, text: str) -> StepRecord:
        """Answer the agent that holds the cast; it goes on in the same conversation.

        Raises:
            MateriaError: the cast is not held (``not_held``), or the answer is blank.
        """
        return self._ask(decide.answer_hold, clean(text))

    def approve(self, *, always: bool = False, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Approve what an agent asks a person for, and let it go on: tool calls, or one exact command.

        Consent to a command is for one use and expires.

        Args:
            always: whether later calls of the same tools need not ask in this cast.
            calls: the tool calls that were looked at; if others wait by now, they are not approved.

        Raises:
            MateriaError: nothing waits for approval, or other calls than ``calls`` (``not_asked``),
                or the request has expired (``approval``).
        """
        if self.asking or always or calls is not None:
            return self._ask(decide.decide_calls, "always" if always else "once", "", calls)
        return self._ask(decide.approve, self._asked())

    def deny(self, reason: str = "", *, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Refuse what an agent asks a person for; it is told why, and goes on without. See :meth:`approve`."""
        if self.asking or calls is not None:
            return self._ask(decide.decide_calls, "denied", clean(reason), calls)
        return self._ask(decide.deny, self._asked(), clean(reason))

    def _asked(self) -> Approval:
        if self._cast.held is None:
            raise MateriaError(
                f"Nothing waits for approval; the cast is {self._cast.status}.",
                hint="allow lets a tool run without asking",
                kind="not_asked",
            )
        approval = self.request
        if approval is None:
            needs = self._cast.held.needs or "a decision"
            raise MateriaError(
                f"The agent does not ask for consent to a command but for {needs}.",
                hint="answer, or decide",
                kind="not_asked",
            )
        return approval

    def decide(self, *, satisfied: bool | None = None, target: str | None = None) -> StepRecord:
        """Decide in the place of the agent that holds the cast: its output is taken and the cast goes on.

        Args:
            satisfied: what counts as the output's word; as the output says itself if left out.
            target: the socket to go on to (``end`` for the end), whatever the edges say.

        Raises:
            MateriaError: the cast is not held (``not_held``), or there is no such socket.
        """
        with self._runner.lock():
            self._runner.begin()
            self._runner.stop.clear()
            before, visit = self._runner.session.state, decide.held(self._runner.session)
            self._runner.do(decide.decide_hold, satisfied, target)
            self._runner.keep_beside(visit, before)
            self._runner.write_derived()
            return self._runner.session.steps[-1]
