"""One socket asked alone, on values that are made up for it; no cast is made and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from materia_nb.agents.interface import Agent, Asking, name_of, nobody, sound
from materia_nb.cast.turns import now, redacted, turn_of
from materia_nb.display.blocks import Block, Code, Heading, Shown, lines
from materia_nb.display.sections import prompt_blocks
from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.evolve import begin_at, fold
from materia_nb.engine.items import state_path
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON, MISSING, get_path, json_copy, set_path
from materia_nb.loadout.graph import Graph
from materia_nb.platform import Stop

_SHOWN: Final = 8_000


class Asked(Shown):
    """What a socket was asked alone, and what came of it.

    Attributes:
        socket: the socket.
        agent: who was asked.
        prompt: what was asked, part by part.
        text: the answer; None where a person answers, or where its tools need approval first.
        value: the object that was read in it, None where there is none.
        accepted: whether a cast would take it.
        satisfied: what it says of that.
        issues: why it would be refused.
    """

    def __init__(self, socket: str, agent: str, prompt: Prompt, text: str | None, session: Session) -> None:
        self.socket, self.agent, self.prompt, self.text = socket, agent, prompt, text
        turns = session.steps[-1].turns if text is not None else ()
        reading = turns[-1].reading if turns else None
        self.accepted = text is not None and (reading is None or reading.accepted)
        self.value: JSON = reading.value if reading is not None and reading.accepted else None
        self.satisfied = reading.satisfied if reading is not None else None
        self.issues: tuple[Issue, ...] = () if reading is None else tuple(reading.issues)

    def _lines(self) -> list[str]:
        if self.text is None:
            return [f"{self.agent} gave no answer: a person answers, or has to approve a tool call."]
        said = "accepted" if self.accepted else "refused"
        if self.satisfied is not None:
            said += f", satisfied: {str(self.satisfied).lower()}"
        return [
            f"The answer of {self.agent} is {said}.",
            *(f"  {one.path}: {one.message}" for one in self.issues),
        ]

    def _blocks(self) -> list[Block]:
        answer = [Code(self.text, _SHOWN)] if self.text else []
        return [*prompt_blocks(self.prompt, whole=True), Heading("Answer"), *lines(self._lines()), *answer]


def asked_alone(
    graph: Graph,
    socket: str,
    agent: Agent,
    *,
    request: str,
    item: JSON,
    state: Mapping[str, JSON],
    project: Path,
) -> Asked:
    """Ask a socket's agent once; see :meth:`materia_nb.cast.workbench.Workbench.agents.ask`."""
    rules = Rules(graph)
    here = rules.sockets[socket]
    if here.socket.is_utility:
        raise MateriaError(f"{socket} is a utility, which is not asked.", where=socket, kind="not_an_agent")
    data, iterator = json_copy(dict(state)), here.socket.iterator
    path = state_path(iterator.items) if iterator is not None else ()
    if item is not None and not path:
        raise MateriaError(
            f"{socket} works on no list of the state.", where=socket, hint="leave item out", kind="no_item"
        )
    if path and (item is not None or get_path(data, path) is MISSING):
        data = set_path(data, path, [{"title": "Item 1"} if item is None else json_copy(item)])
    begun = entering.begin(rules, request, data=data)._replace(next=socket)
    session = begin_at(begun)
    session = fold(rules, session, decide.enter(rules, session, now()))
    visit = session.state.at
    if visit is None or visit.socket != socket:
        raise MateriaError(
            f"{socket} has no item to work on.", where=socket, hint="give item", kind="no_item"
        )
    prompt = session.prompt
    assert prompt is not None  # noqa: S101 - an agent's socket was entered
    turn = turn_of(rules, session, visit, folder=project, run_dir=project, stop=Stop(), tell=nobody)
    answer = agent.answer(turn)
    if answer is None or isinstance(answer, Asking):
        return Asked(socket, name_of(agent), prompt, None, session)
    free = visit.mode in here.any_text
    text = redacted(sound(answer, f"The agent {name_of(agent)}", here.write, free=free).text)
    events = decide.answer(rules, session, Answer(text), now())
    return Asked(socket, name_of(agent), prompt, text, fold(rules, session, events))
