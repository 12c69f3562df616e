"""Build small configs for tests, and run casts on the engine alone, without files, processes or agents."""

from __future__ import annotations

import json
from typing import Any

from materia_nb.engine import decide, entering, evolve, outputs, recovery
from materia_nb.engine.events import CastStart, Event, Transition
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import pending_actions
from materia_nb.engine.state import CastState, Usage
from materia_nb.handoff import Requirements, requirements_of
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import Materia

JSONObject = dict[str, Any]

YES, NO = '{"satisfied": true}', '{"satisfied": false}'


def resolved_materia(**fields: Any) -> Materia:
    """Return a resolved materia, by default a utility without a command; ``fields`` replaces its fields."""
    given: JSONObject = {
        "id": "U",
        "label": "U",
        "kind": "utility",
        "prompt": "",
        "generator": False,
        "multi_turn": False,
        "tools": "none",
        "model": None,
        "thinking": None,
        "command": (),
        "script": None,
        "params": {},
        "timeout_ms": 30_000,
        "folder": None,
        "raw": {},
    }
    return Materia(**{**given, **fields})


def agent(prompt: str = "p", **fields: Any) -> JSONObject:
    return {"type": "agent", "tools": "none", "prompt": prompt, **fields}


def utility(**fields: Any) -> JSONObject:
    return {"type": "utility", "command": ["true"], "parse": "json", **fields}


def edge(to: str, when: str = "always", most: int | None = None, **more: Any) -> JSONObject:
    return {"when": when, "to": to, **more} | ({} if most is None else {"maxTraversals": most})


def exit_route(source: str, condition: str, target: str, **more: Any) -> JSONObject:
    return {
        "id": f"exit:{source}:{condition}",
        "from": source,
        "condition": condition,
        "targetSocketId": target,
        **more,
    }


def at(materia: str, *edges: JSONObject | tuple[Any, ...], **fields: Any) -> JSONObject:
    """Return a socket with the specified materia.

    Each edge is the result of :func:`edge`, or a tuple (when, to) or (when, to, maxTraversals).
    """
    made = [one if isinstance(one, dict) else edge(one[1], one[0], *one[2:]) for one in edges]
    return {"materia": materia, "edges": made, **fields}


def asks(*edges: JSONObject, materia: str = "P", **fields: Any) -> JSONObject:
    """Return a socket whose output is parsed as JSON."""
    return at(materia, *edges, parse="json", **fields)


def document(
    sockets: JSONObject,
    materia: JSONObject,
    loops: JSONObject | None = None,
    *,
    entry: str | None = None,
    **top: Any,
) -> JSONObject:
    """Return a config document with exactly the specified materia and the loadout T."""
    loadout: JSONObject = {"entry": entry or next(iter(sockets)), "sockets": sockets}
    if loops is not None:
        loadout["loops"] = loops
    return {"activeLoadout": "T", "loadouts": {"T": loadout}, "materia": materia, **top}


def config(
    sockets: JSONObject, loops: JSONObject | None = None, *, materia: JSONObject | None = None, **more: Any
) -> JSONObject:
    """Return a config with one loadout.

    Its materia are P (agent), G (generator), U (utility), T (utility with text output), M (multi-turn agent) and UG
    (utility that generates work items).
    """
    known = {
        "P": agent(),
        "G": agent(generator=True),
        "U": utility(),
        "T": utility(parse="text"),
        "UG": utility(generator=True),
        "M": agent(multiTurn=True),
    }
    return document(sockets, known | (materia or {}), loops, **more)


def loop(*members: str, exits: list[JSONObject] | None = None, source: str = "Plan", **fields: Any) -> JSONObject:
    """Return a loop over the work items of ``source``."""
    whole = {"sockets": list(members), "consumes": {"from": source, **fields.pop("consumes", {})}, **fields}
    return whole | ({} if exits is None else {"exits": exits})


def retry_loop(most: int | None = None, exits: list[JSONObject] | None = None, **top: Any) -> JSONObject:
    """Return a config with a plan, a loop of Build and Eval that retries on not_satisfied, and a final Tell."""
    exits = exits if exits is not None else [exit_route("Eval", "satisfied", "Tell")]
    return config(
        {
            "Plan": asks(edge("Build"), materia="G"),
            "Build": at("P", edge("Eval")),
            "Eval": asks(edge("Build", "not_satisfied", most), edge("Build", "satisfied")),
            "Tell": at("P"),
        },
        {"L": loop("Build", "Eval", exits=exits)},
        **top,
    )


def say(**fields: Any) -> str:
    return json.dumps(fields)


def items(*titles: str, **fields: Any) -> str:
    """Return the answer of a generator with the specified work items."""
    return say(workItems=[{"title": title, "context": f"about {title}"} for title in titles], **fields)


def requirements_for(socket: JSONObject, **materia: Any) -> Requirements:
    """Return the requirements of one socket with the specified materia (an agent by default)."""
    one = materia.pop("materia", None) or agent(**materia)
    names = {e["to"] for e in socket.get("edges", []) if e["to"] != "end"} - {"Socket-1"}
    sockets = {"Socket-1": {"materia": "X", **socket}} | {name: at("P") for name in names}
    return requirements_of(build_graph(config(sockets, materia={"X": one})).sockets["Socket-1"])


class Play:
    """A cast on the engine alone, which either waits for an output or has ended."""

    def __init__(self, document: JSONObject, *answers: Any, request: str = "the request") -> None:
        self.rules = Rules(build_graph(document))
        self.state: CastState = entering.begin(self.rules, request)
        self.route: list[tuple[str, str | None]] = []
        self.prompt: Prompt | None = None
        self.last: Transition | None = None
        self.entered: Transition | None = None
        self.enter()
        self.go(*answers)

    def enter(self) -> Transition:
        step = entering.enter(self.rules, self.state)
        self.state, self.entered = step.state, step
        self.prompt = step.prompt
        if visit := self.visit:
            self.route.append((visit.socket, visit.item.key if visit.item else None))
        return step

    def go(self, *answers: Any) -> Play:
        for answer in answers:
            self.answer(answer)
        return self

    def answer(self, given: Any, tokens: int | None = None) -> Transition:
        text = given if isinstance(given, str) else json.dumps(given)
        usage = None if tokens is None else Usage(tokens, 0)
        return self.take(outputs.output(self.rules, self.state, text, usage, self.prompt))

    def take(self, step: Transition) -> Transition:
        """Apply a transition, and enter the next socket if the cast is ready for it."""
        self.state, self.last = step.state, step
        self.prompt = step.prompt or self.prompt
        if self.state.status == "ready":
            self.enter()
        return step

    def raise_limit(self) -> Transition:
        return self.take(recovery.raise_limit(self.rules, self.state))

    def retry(self) -> Transition:
        return self.take(recovery.retry(self.rules, self.state))

    @property
    def visit(self):
        return self.state.at if self.state.status == "waiting" else None

    @property
    def at(self) -> str:
        """The socket that waits for an output, or the final status of the cast."""
        return self.visit.socket if self.visit else self.failure or self.state.status

    @property
    def failure(self) -> str | None:
        return self.state.failure.kind if self.state.failure else None

    @property
    def data(self) -> JSONObject:
        return dict(self.state.data)

    @property
    def decision(self):
        return self.last.decision

    @property
    def sockets(self) -> list[str]:
        return [socket for socket, _ in self.route]


class Folded:
    """A cast in memory: a session and the events that produced it."""

    def __init__(self, document: JSONObject, request: str = "the request") -> None:
        self.rules = Rules(build_graph(document))
        self.events: list[Event] = [CastStart(request=request)]
        self.session = evolve.begin_session(self.rules, self.events[0])

    def do(self, command: Any, *given: Any, ts: int = 0) -> Folded:
        """Apply a command from the ``decide`` module."""
        made = command(self.rules, self.session, *given, ts)
        self.session = evolve.fold(self.rules, self.session, made)
        self.events += made
        return self

    def answers(self, *given: Any) -> Folded:
        """Enter the sockets one after another, and apply the next answer to each socket."""
        for answer in given:
            if self.state.status == "ready":
                self.do(decide.enter)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            self.do(decide.answer, decide.Answer(text, Usage(1, 1, 0.1)))
        return self

    @property
    def state(self) -> CastState:
        return self.session.state

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def due(self) -> list[str]:
        return [one.what for one in pending_actions(self.rules, self.session)]
