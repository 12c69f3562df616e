"""Write the path of one answer through the code as a list of the calls in a real step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import materia_nb

_PACKAGE: Final = Path(materia_nb.__file__).parent
_STEP: Final = "    "
"""Indentation of a function below its caller, for a nested list in Markdown."""


class Station(NamedTuple):
    """A function on the path of the answer, and a sentence about its purpose."""

    file: str
    function: str
    does: str


class Call(NamedTuple):
    """A call to a function of the package, with its depth in the stack."""

    depth: int
    file: str
    function: str


STATIONS: Final = (
    Station("cast/cast.py", "Cast.step", "takes the lock: one call at a time changes a cast."),
    Station("cast/runner.py", "Runner.advance", "runs the pending action and saves its results."),
    Station("engine/decide.py", "enter", "is the first command; it returns the events of entering the next socket."),
    Station("engine/entering.py", "enter", "finds the item, counts the visit and builds the prompt."),
    Station("engine/evolve.py", "fold", "creates the session after the events; no other function creates sessions."),
    Station("engine/session.py", "pending_action", "returns the next action: here, a request to an agent."),
    Station(
        "agents/notebook_agents.py",
        "AgentTable.for_turn",
        "selects the agent for the turn: by socket, by materia, or `*`.",
    ),
    Station("store/journal.py", "Journal.append", "writes `socket_start` before an agent is asked."),
    Station("agents/interface.py", "make_turn", "creates the `Turn`, which contains all information for the agent."),
    Station("agents/notebook_agents.py", "FunctionAgent.answer", "calls the function that the notebook defines."),
    Station("agents/interface.py", "validate_reply", "checks that the agent returned a reply."),
    Station("cast/work.py", "Work.handle_reply", "handles the reply, whichever agent it came from."),
    Station("errors.py", "redact", "removes keys before anything is saved."),
    Station("engine/decide.py", "answer", "is the second command; it returns the events of this answer."),
    Station(
        "engine/outputs.py",
        "output",
        "parses the answer with the protocol, and then stores a draft, refuses the answer or completes the visit.",
    ),
    Station("handoff/sparse.py", "SparseProtocol.read", "lists the violations of the protocol."),
    Station("handoff/jsontext.py", "agent_object", "finds the JSON in the text."),
    Station("engine/completing.py", "complete", "applies an accepted answer."),
    Station("engine/completing.py", "apply_output", "merges the output into the state."),
    Station("loadout/vocabulary.py", "Result.from_satisfied", "classifies the result."),
    Station("engine/completing.py", "_advance_cursor", "moves the cursor, because this answer ends an item."),
    Station(
        "loadout/vocabulary.py", "ConditionSpec.matches", "checks the result against one row of the condition table."
    ),
    Station(
        "engine/completing.py",
        "route",
        "chooses an exit, an edge or the end, and records every candidate as data.",
    ),
    Station("engine/routing.py", "count_edge", "counts the traversal of the edge and checks its limit."),
    Station("engine/evolve.py", "evolve", "applies the event `socket_output`, as it does when a cast is resumed."),
    Station("engine/events.py", "to_json", "serializes the event as a JSON object of its fields."),
    Station("store/journal.py", "Journal.append", "writes the step in one append."),
    Station(
        "store/rundir.py",
        "ArtifactWriter.schedule_write",
        "queues the remaining files for the writer thread.",
    ),
    Station("cast/runner.py", "Runner.snapshot", "returns a frozen copy of the cast for a view."),
    Station("insight/why.py", "explain", "reads the recorded decision instead of reconstructing it."),
    Station("cast/formatting.py", "why_blocks", "converts the explanation into a short document."),
    Station("display/blocks.py", "Displayable.as_text", "renders the document for a terminal."),
    Station(
        "display/blocks.py", "Displayable.as_html", "renders the document for a notebook cell, with all text escaped."
    ),
)


def calls_of(action: Callable[[], object]) -> list[Call]:
    """Run ``action`` and return the calls of the package's functions on this thread, in order."""
    calls: list[Call] = []
    depth = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        if event == "call":
            depth += 1
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(_PACKAGE):
                path = file.relative_to(_PACKAGE).as_posix()
                calls.append(Call(depth, path, frame.f_code.co_qualname))
        elif event == "return":
            depth -= 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def walk(calls: Sequence[Call], stations: Sequence[Station] = STATIONS) -> Iterator[str]:
    """Yield a line for each function on the path, indented under the function that called it.

    Raises:
        SystemExit: a station is not called after the station before it.
    """
    at, callers = -1, list[int]()
    for number, station in enumerate(stations, 1):
        later_calls = (index for index in range(at + 1, len(calls)) if calls[index][1:] == station[:2])
        next_call = next(later_calls, None)
        if next_call is None:
            raise SystemExit(
                f"The walk in docs/architecture.md is outdated: no call of {station.function} in {station.file}"
                f" after station {number - 1}. Correct the table STATIONS in scripts/make_walk.py."
            )
        lowest = min(call.depth for call in calls[at + 1 : next_call + 1])
        callers = [depth for depth in callers if depth < lowest]
        yield f"{_STEP * len(callers)}- {number}. `{station.file}` `{station.function}` {station.does}"
        callers.append(calls[next_call].depth)
        at = next_call
