"""The exercise of lesson 16: six casts wait at night for a person's decision."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from materia_nb import Workbench
from materia_nb.agents.interface import Turn
from materia_nb.cast import Cast
from materia_nb.display.blocks import Block, Displayable, lines
from materia_nb.handoff import protocol
from materia_nb.jsonvalue import JSON, set_path, split_path

_FILES: Final = ("build/old.txt", "buiId/customers.csv", "invoices/may.pdf", "notes.txt")
"""The imaginary files that exist at the beginning of each cast."""
LOADOUT: Final = "Night"


class _Case(NamedTuple):
    """One request to the person on duty.

    Attributes:
        request: the task of the agent.
        announced: the action that the agent describes; None if the agent asks a question.
        asks: the exact command or question.
    """

    request: str
    announced: str | None
    asks: str


_CASES: Final = (
    _Case("Remove the old builds", "remove the folder build", "rm -r build"),
    _Case("Remove the old builds", "remove the folder build", "rm -r build ."),
    _Case("Write down who keeps the builds", None, "Who keeps them? I find no name."),
    _Case("Say how many builds there are", "list the folder build", "ls build"),
    _Case("Remove the old builds", "remove the folder build", "rm -r buiId"),
    _Case("Free some space", "remove what nobody needs", "rm -r build invoices"),
)


class Night(Displayable):
    """An exercise with six casts that wait for a person's decision. Its display lists the requests.

    Args:
        bench: the workbench; its loadout ``Night`` has an agent *Clean* that uses ``agent-contract``.
        order: the indices of the requests, in the order of presentation.

    Attributes:
        cases: the requests, in this order.
        files: the imaginary files that exist now.
    """

    def __init__(self, bench: Workbench, order: Sequence[int]) -> None:
        self._bench = bench
        self.cases = tuple(_CASES[number] for number in order)
        self.files = set(_FILES)

    def cast(self, number: int) -> Cast:
        """Start the cast of a case, counted from 1, after restoring all files."""
        case, memory = self.cases[number - 1], dict[str, Any]()
        self.files = set(_FILES)

        def clean(turn: Turn) -> str:
            if turn.kind == "work":
                match = re.search(r'"agent_id": "(\w+)"', turn.prompt)
                memory["id"] = match[1] if match else ""
                if case.announced is None:
                    return _contract(memory["id"], "NEEDS_INPUT", case.asks)
                request: dict[str, JSON] = {
                    "operation": case.announced,
                    "exact_content": case.asks,
                    "scope": "this disk",
                    "risk_level": "MEDIUM",
                    "rollback": "none",
                    "verification": "look",
                    "approval_id": f"P-{number:032}",
                }
                return _contract(memory["id"], "APPROVAL_REQUEST", "The command needs your approval.", request)
            if turn.approval is not None and turn.approval.use(case.asks, time.time())[0]:
                self._run(case.asks)
            memory["turns"] = memory.get("turns", 0) + 1
            if memory["turns"] == 1:
                return _contract(memory["id"], "IN_PROGRESS", "The work continues.")
            return _contract(memory["id"], "COMPLETE", "The work is done.")

        return self._bench.cast(case.request, loadout=LOADOUT, agents={"Clean": clean, "Tell": lambda: "Told."})

    def after(self, number: int, decision: object) -> tuple[Cast, list[str]]:
        """Run a case and approve, answer or deny it; return its cast and the removed files.

        The decision is ``approve`` or ``answer``; any other value denies the request.
        """
        cast = self.cast(number)
        cast.run()
        if decision == "approve" and self.cases[number - 1].announced is not None:
            cast.approvals.approve()
        elif decision in ("approve", "answer"):
            cast.reply("Ms Day keeps them.")
        else:
            cast.approvals.deny("Not on my shift.")
        return cast, sorted({*_FILES} - self.files)

    def right(self, number: int) -> str:
        """Return the right decision: ``answer`` a question, ``approve`` removing only old builds, or ``deny``."""
        if self.cases[number - 1].announced is None:
            return "answer"
        _, removed_files = self.after(number, "approve")
        return "approve" if {*removed_files} <= {"build/old.txt"} else "deny"

    def _run(self, command: str) -> None:
        program, *paths = command.split()
        for folder in paths[1:] if program == "rm" else ():
            self.files = {file for file in self.files if folder != "." and not file.startswith(f"{folder}/")}

    def _blocks(self) -> list[Block]:
        blocks = list[Block]()
        for number, case in enumerate(self.cases, start=1):
            verb = "asks" if case.announced is None else "runs"
            announcement = [] if case.announced is None else [f"   says: {case.announced}"]
            blocks += lines([f"{number} {case.request}", *announcement, f"   {verb}: {case.asks}"])
        return blocks


def _contract(agent: str, status: str, text: str, request: dict[str, JSON] | None = None) -> str:
    """Return an answer in the agent-contract protocol with this status, text and approval request."""
    handoff = protocol("agent-contract")
    value: Mapping[str, JSON] = next(handoff.sample_outputs("done" if status == "COMPLETE" else "stuck", 0))
    for path, part in (
        ("agent_status.agent_id", agent),
        ("agent_status.plan_status", status),
        ("agent_status.next_action", text),
        ("evidence_report.key_outputs", [text]),
        ("approval_request", request),
    ):
        value = set_path(value, split_path(path), part)
    return handoff.write(value)
