"""A night shift: six agents that ask for consent to a command, or for something that they do not know."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from materia_nb.cast import Cast
from materia_nb.display.blocks import Block, Shown, lines
from materia_nb.jsonvalue import JSON

if TYPE_CHECKING:
    from materia_nb.agents.interface import Turn
    from materia_nb.cast.workbench import Workbench

FILES: Final = ("build/old.txt", "buiId/customers.csv", "invoices/may.pdf", "notes.txt")
"""What is on the disk at the beginning of each cast; nothing of it is real."""
LOADOUT: Final = "Night"


class Case(NamedTuple):
    """What one agent is going to ask: the request, what it says it will do (None: it asks a question), the command."""

    request: str
    says: str | None
    asks: str


CASES: Final = (
    Case("Remove the old builds", "remove the folder build", "rm -r build"),
    Case("Remove the old builds", "remove the folder build", "rm -r build ."),
    Case("Write down who keeps the builds", None, "Who keeps them? I find no name."),
    Case("Say how many builds there are", "list the folder build", "ls build"),
    Case("Remove the old builds", "remove the folder build", "rm -r buiId"),
    Case("Free some space", "remove what nobody needs", "rm -r build invoices"),
)


class Night(Shown):
    """Six casts for the person on duty; it shows itself with what each of them asks.

    Args:
        bench: where they are made; its loadout ``Night`` has an agent *Clean* that speaks ``agent-contract``.
        order: the numbers of :data:`CASES` in the order in which they come.

    Attributes:
        cases: what is asked, in that order.
        files: what is on the disk now.
    """

    def __init__(self, bench: Workbench, order: Sequence[int]) -> None:
        self._bench = bench
        self.cases = tuple(CASES[one] for one in order)
        self.files = set(FILES)

    def cast(self, number: int) -> Cast:
        """Begin the cast of a case, counted from 1, with all files on the disk."""
        case, told = self.cases[number - 1], dict[str, Any]()
        self.files = set(FILES)

        def clean(turn: Turn) -> str:
            if turn.kind == "work":
                found = re.search(r'"agent_id": "(\w+)"', turn.prompt)
                told["id"] = found[1] if found else ""
                if case.says is None:
                    return _contract(told["id"], "NEEDS_INPUT", case.asks)
                return _contract(told["id"], "APPROVAL_REQUEST", "It was held back.", _ask(case, number))
            if turn.grant is not None and turn.grant.use(case.asks, time.time())[0]:
                self._run(case.asks)
            told["turns"] = told.get("turns", 0) + 1
            if told["turns"] == 1:
                return _contract(told["id"], "IN_PROGRESS", "I go on.")
            return _contract(told["id"], "COMPLETE", "It is done.")

        return self._bench.cast(
            case.request, loadout=LOADOUT, agents={"Clean": clean, "Tell": lambda: "Told."}
        )

    def after(self, number: int, decision: object) -> tuple[Cast, list[str]]:
        """Decide a case: ``approve``, ``answer``, or anything else to deny it; its cast, and the files that are gone."""
        cast = self.cast(number)
        cast.run()
        if decision == "approve" and self.cases[number - 1].says is not None:
            cast.approvals.approve()
        elif decision in ("approve", "answer"):
            cast.reply("Ms Day keeps them.")
        else:
            cast.approvals.deny("Not on my shift.")
        return cast, sorted({*FILES} - self.files)

    def right(self, number: int) -> str:
        """What the right decision is: an approval is one when nothing goes but the old builds."""
        if self.cases[number - 1].says is None:
            return "answer"
        _, gone = self.after(number, "approve")
        return "approve" if {*gone} <= {"build/old.txt"} else "deny"

    def _run(self, command: str) -> None:
        program, *words = command.split()
        for place in words[1:] if program == "rm" else ():
            self.files = {one for one in self.files if place != "." and not one.startswith(f"{place}/")}

    def _blocks(self) -> list[Block]:
        said = list[Block]()
        for number, case in enumerate(self.cases, start=1):
            asks = "asks" if case.says is None else "runs"
            says = [] if case.says is None else [f"   says: {case.says}"]
            said += lines([f"{number} {case.request}", *says, f"   {asks}: {case.asks}"])
        return said


def night_shift(bench: Workbench, order: Sequence[int]) -> Night:
    """Make a night shift; see :class:`Night`."""
    return Night(bench, order)


def _ask(case: Case, number: int) -> dict[str, JSON]:
    return {
        "operation": case.says,
        "exact_content": case.asks,
        "scope": "this disk",
        "risk_level": "MEDIUM",
        "rollback": "none",
        "verification": "look",
        "approval_id": f"P-{number:032}",
    }


def _contract(who: str, status: str, words: str, ask: dict[str, JSON] | None = None) -> str:
    left = [] if status == "COMPLETE" else ["the work"]
    lists = ("patterns_checked", "files_checked", "commands_run", "verbatim_outputs")
    evidence: dict[str, JSON] = {key: [] for key in (*lists, "cross_layer_impacts", "open_gaps")}
    evidence |= {
        "key_outputs": [words],
        "verification": {"method": "looked at the files", "result": "pass"},
    }
    agent = {"plan_status": status, "agent_id": who, "pending_steps": left, "next_action": words}
    block = {
        "agent_status": agent,
        "evidence_report": evidence,
        "consolidation_report": None,
        "approval_request": ask,
    }
    return f"{words}\n\n```agent_contract_handoff\n{json.dumps(block)}\n```"
